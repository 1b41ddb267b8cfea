/* What the files of the plugin share. */
#ifndef PLUGIN_MIXED_H
#define PLUGIN_MIXED_H

#include <muster.h>

#include <pthread.h>
#include <stdint.h>

enum {
    ELEMENTS = 8,       /* of the counter variable */
    OPEN_MS = 60000,    /* for the parameter servers to be there */
    NAME_BYTES = 48     /* of a closure's name, or of a key */
};

struct settings {
    uint64_t start;     /* the number of this start of the whole job */
    uint64_t hang;      /* closures that hang until they are cancelled */
    uint64_t freeze;    /* that hang the first time, until their worker is killed */
    uint64_t stumble;   /* that hang the first time, until they are given up */
    uint64_t slow;      /* that add 1 after 100 to 500 ms */
    uint64_t quick;     /* and at once */
    uint64_t outstanding; /* of the last three, scheduled and not fetched; 0: all */
    uint64_t fails;     /* 1: the program fails in the end */
};

/* One node's plugin. */
struct mixed {
    struct mixed *next;
    struct settings settings;   /* constant */
    int trace;                  /* constant: a line for each run that freezes; -1: none */
    pthread_mutex_t lock;       /* guards what follows */
    mu_variable *variable;      /* opened by the first run, then constant */
};

/* The counter variable, one shard on each parameter server: int64[ELEMENTS]. Whoever
 * comes without `flags` creates it, full of zeros, if it is not there. */
int mixed_open(mu_node *node, unsigned flags, mu_error *ret_error,
               mu_variable **ret_variable);

/* What the chief does (plugin_chief.c). */
int chief_program(mu_node *node, void *user);

/* Let this thread rest. */
void nap(uint64_t ms);

#endif
