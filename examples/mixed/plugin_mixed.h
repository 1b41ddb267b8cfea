/* Declarations shared by the files of the plugin. */
#ifndef PLUGIN_MIXED_H
#define PLUGIN_MIXED_H

#include <muster.h>

#include <pthread.h>
#include <stdint.h>

enum {
    ELEMENTS = 8,    /* of the counter variable */
    OPEN_MS = 60000, /* timeout of opening the variable */
    NAME_BYTES = 48  /* of a closure's name, or of a key */
};

struct settings {
    uint64_t start;       /* the number of this start of the whole job */
    uint64_t hang;        /* closures that hang until they are cancelled */
    uint64_t freeze;      /* closures that hang the first time, until their worker is
                             killed */
    uint64_t stumble;     /* closures that hang the first time, until run_timeout_ms */
    uint64_t slow;        /* closures that add 1 after 100 to 500 ms */
    uint64_t quick;       /* closures that add 1 at once */
    uint64_t outstanding; /* bound of the last three, scheduled and not fetched; 0:
                             none */
    uint64_t fails;       /* 1: the program fails in the end */
};

/* The plugin's state of one node. */
struct mixed {
    struct mixed *next;
    struct settings settings; /* constant */
    int trace;                /* constant: a line for each run that freezes; -1: none */
    pthread_mutex_t lock;     /* guards what follows */
    mu_variable *variable;    /* opened by the first run, then constant */
};

/* Open the counter variable, int64[ELEMENTS], with one shard on each parameter server.
 * Without `flags` it is created, with zeros, if it does not exist. */
int mixed_open(mu_node *node, unsigned flags, mu_error *ret_error,
               mu_variable **ret_variable);

/* The chief's program (plugin_chief.c). */
int chief_program(mu_node *node, void *user);

#endif
