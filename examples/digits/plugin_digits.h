/* Declarations shared by the files of the plugin: its settings, and the model's
 * parameters on the parameter servers. */
#ifndef PLUGIN_DIGITS_H
#define PLUGIN_DIGITS_H

#include "digits_data.h"
#include "digits_model.h"

#include <muster.h>
#include <pthread.h>

enum { HIDDEN = DIGITS_HIDDEN_DEFAULT };

/* ---- Settings (plugin_settings.c) ---- */

struct settings {
    uint64_t steps; /* mini-batches to train on */
    uint64_t batch; /* images in each */
    uint64_t seed;  /* decides the first parameters, the split and the batches */
    double rate;
    double momentum;
    double target;    /* accuracy below which the chief's program fails */
    uint64_t slow_ms; /* delay of each step, to have something to watch */
};

/* Read `muster run --set key=value`, with defaults. Returns 0; -MU_EINVALID, with the
 * setting, its value and what was expected in *ret_error. */
int settings_read(const mu_node *node, mu_error *ret_error,
                  struct settings *ret_settings);

/* ---- Parameters (plugin_parameters.c) ---- */

/* An open variable with a reference count: closed after its last use. */
struct opened {
    mu_variable *variable;
    unsigned users;
};

/* The plugin's state of one node. Any thread may use it. */
struct digits {
    struct digits *next;
    struct settings settings; /* constant */
    const char *data_path;    /* constant; NULL: searched */
    pthread_mutex_t lock;     /* guards what follows */
    struct digits_data *data; /* loaded on first use, then constant */
    struct opened *opened[DIGITS_TENSORS];
};

/* The images, owned by the plugin and never freed. */
int digits_images(struct digits *digits, mu_error *ret_error,
                  const struct digits_data **ret_data);

/* Create the model's variables unless they exist, with the initial parameters of `seed`;
 * the first caller creates them. All calls below do that too, and reopen variables that a
 * restarted parameter server has lost. */
int parameters_open(struct digits *digits, mu_node *node, uint64_t seed,
                    mu_error *ret_error);

/* Read all tensors into `flat`, of digits_model_size(HIDDEN) floats. */
int parameters_read(struct digits *digits, mu_node *node, uint64_t seed, float *flat,
                    mu_error *ret_error);

/* Take one step of gradient descent on the servers, with a `flat` gradient. */
int parameters_apply(struct digits *digits, mu_node *node, uint64_t seed,
                     const float *flat, const mu_optimizer *optimizer,
                     mu_error *ret_error);

/* Number of gradients applied to the parameters. Parameters read afterwards have at least
 * as many. */
int parameters_version(struct digits *digits, mu_node *node, uint64_t seed,
                       mu_error *ret_error, uint64_t *ret_version);

/* Loss and accuracy of the present parameters on the images that are held out, and a
 * lower bound of their version. */
int parameters_score(struct digits *digits, mu_node *node, mu_error *ret_error,
                     struct digits_score *ret_score, uint64_t *ret_version);

/* ---- Programs and helpers ---- */

/* The chief's program (plugin_chief.c). */
int chief_program(mu_node *node, void *user);

#endif
