/* Watches over a plugin while it is loaded: see load.c. */
#ifndef MU_NODE_PLUGIN_GUARD_H
#define MU_NODE_PLUGIN_GUARD_H

#include "muster/node.h"

#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

enum { MU__PLUGIN_SIGNALS = 5, MU__PLUGIN_EXIT_CODE = 2 };

/* The caller's, on the stack of the thread that loads. */
struct mu__plugin_guard {
    struct mu__plugin_guard *outer; /* whose mu_plugin_open loads this one */
    mu_node *node;
    const char *path;
    pthread_t loader;
    struct sigaction former[MU__PLUGIN_SIGNALS];
    uint64_t began_ns;
    bool watched; /* there is a thread that waits for the end */
    uv_thread_t watcher;
    uv_mutex_t lock; /* guards `over` */
    uv_cond_t changed;
    bool over;
};

/* Until the end, exit() on this thread ends the process with MU__PLUGIN_EXIT_CODE and a
 * line that names the plugin, and a crash writes such a line. A plugin that takes long is
 * logged by the node, and ends the process after the node's plugin_timeout_ms. */
void mu__plugin_guard_begin(struct mu__plugin_guard *guard, mu_node *node,
                            const char *path);
void mu__plugin_guard_end(struct mu__plugin_guard *guard);

#endif
