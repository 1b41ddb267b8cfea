/* Declarations shared by the files of the plugin. */
#ifndef PLUGIN_COUNTER_H
#define PLUGIN_COUNTER_H

#include <muster.h>

#include <pthread.h>
#include <stdint.h>

enum {
    ELEMENTS = 8,    /* of the counter variable; closure i adds to element i mod 8 */
    OPEN_MS = 60000, /* timeout of opening the variable */
    NAME_BYTES = 32, /* of a closure's name */
    IDS = 1000       /* of the table; closure i pushes to id i mod 1000 */
};

struct settings {
    uint64_t closures;
    uint64_t outstanding; /* closures scheduled and not resolved, at most */
    uint64_t work_ms;     /* a run takes 0 to this long */
    uint64_t table;       /* 1: closures push to a table, too */
};

/* The plugin's state of one node. */
struct counter {
    struct counter *next;
    struct settings settings; /* constant */
    int trace;                /* constant: file for a line of each run; -1: none */
    pthread_mutex_t lock;     /* guards what follows */
    mu_variable *variable;    /* opened by the first run, then constant, */
    mu_table *table;          /* as is the table; NULL: there is none */
};

/* Open the counter variable, int64[ELEMENTS], with one shard on each parameter server.
 * Without `flags` it is created, with zeros, if it does not exist. */
int counter_open(mu_node *node, unsigned flags, mu_error *ret_error,
                 mu_variable **ret_variable);

/* Open the table, whose rows are one number, 0 at first: what was pushed to them. */
int counter_open_table(mu_node *node, unsigned flags, mu_error *ret_error,
                       mu_table **ret_table);

/* The chief's program (plugin_chief.c). */
int chief_program(mu_node *node, void *user);

#endif
