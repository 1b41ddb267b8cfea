/* What the files of the plugin share. */
#ifndef PLUGIN_COUNTER_H
#define PLUGIN_COUNTER_H

#include <muster.h>

#include <pthread.h>
#include <stdint.h>

enum {
    ELEMENTS = 8,       /* of the counter variable; closure i adds to element i mod 8 */
    OPEN_MS = 60000,    /* for the parameter servers to be there */
    NAME_BYTES = 32     /* of a closure's name */
};

struct settings {
    uint64_t closures;
    uint64_t outstanding;   /* closures scheduled and not resolved, at most */
    uint64_t work_ms;       /* a run takes 0 to so long */
};

/* One node's plugin. */
struct counter {
    struct counter *next;
    struct settings settings;   /* constant */
    int trace;                  /* constant: a line for each run is written here; -1 */
    pthread_mutex_t lock;       /* guards what follows */
    mu_variable *variable;      /* opened by the first run, then constant */
};

/* The counter variable, one shard on each parameter server: int64[ELEMENTS]. Whoever
 * comes without `flags` creates it, full of zeros, if it is not there. */
int counter_open(mu_node *node, unsigned flags, mu_error *ret_error,
                 mu_variable **ret_variable);

/* Schedule, join, read and judge: what the chief does (plugin_chief.c). */
int chief_program(mu_node *node, void *user);

/* Let this thread rest. */
void nap(uint64_t ms);

#endif
