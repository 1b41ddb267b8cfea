/* What the parts of the plugin share: its settings, and the model's parameters as they
 * are kept on the parameter servers. */
#ifndef PLUGIN_DIGITS_H
#define PLUGIN_DIGITS_H

#include "digits_data.h"
#include "digits_model.h"

#include <muster.h>
#include <pthread.h>

enum { HIDDEN = DIGITS_HIDDEN_DEFAULT };

/* ---- Settings (plugin_settings.c) ---- */

struct settings {
    uint64_t steps;     /* mini-batches to train on */
    uint64_t batch;     /* images in each */
    uint64_t seed;      /* decides the first parameters, the split and the batches */
    double rate;
    double momentum;
    double target;      /* accuracy below which the chief's program fails */
    uint64_t slow_ms;   /* delay of each step, to have something to watch */
};

/* Read `muster run --set key=value`, with defaults. Returns 0; -MU_EINVALID, with the
 * setting, its value and what was expected in *ret_error. */
int settings_read(const mu_node *node, mu_error *ret_error,
                  struct settings *ret_settings);

/* ---- Parameters (plugin_parameters.c) ---- */

/* One variable that is open, counted: it is closed when nobody uses it any more. */
struct opened {
    mu_variable *variable;
    unsigned users;
};

/* What one node of this process keeps. Any thread may use it. */
struct digits {
    struct digits *next;
    struct settings settings;           /* constant */
    const char *data_path;              /* constant; NULL when it is to be found */
    pthread_mutex_t lock;               /* guards what follows */
    struct digits_data *data;           /* read when first asked for, then constant */
    struct opened *opened[DIGITS_TENSORS];
};

/* The images. They stay the plugin's, and are there as long as the process. */
int digits_images(struct digits *digits, mu_error *ret_error,
                  const struct digits_data **ret_data);

/* Create the model's variables where they are not there yet: with the first parameters
 * that belong to `seed`, whoever comes first. All calls below do so too, and open
 * anew what a parameter server has lost by a restart. */
int parameters_open(struct digits *digits, mu_node *node, uint64_t seed,
                    mu_error *ret_error);

/* Read all tensors into `flat`, of digits_model_size(HIDDEN) floats. */
int parameters_read(struct digits *digits, mu_node *node, uint64_t seed, float *flat,
                    mu_error *ret_error);

/* Take one step of gradient descent on the servers, with a `flat` gradient. */
int parameters_apply(struct digits *digits, mu_node *node, uint64_t seed,
                     const float *flat, const mu_optimizer *optimizer,
                     mu_error *ret_error);

/* How many gradients the parameters have seen. What is read afterwards has seen at least
 * as many. */
int parameters_version(struct digits *digits, mu_node *node, uint64_t seed,
                       mu_error *ret_error, uint64_t *ret_version);

/* Loss and accuracy of the present parameters on the images that are held out, and the
 * version that they had at least. */
int parameters_score(struct digits *digits, mu_node *node, mu_error *ret_error,
                     struct digits_score *ret_score, uint64_t *ret_version);

/* ---- Programs and helpers ---- */

/* Train: what the chief does (plugin_chief.c). */
int chief_program(mu_node *node, void *user);

/* Let this thread rest. */
void nap(uint64_t ms);

#endif
