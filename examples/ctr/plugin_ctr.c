/* Loading the plugin. */
#include "plugin_ctr.h"

#include <stdio.h>
#include <stdlib.h>

/* The states of all nodes, which are never freed: a plugin is never unloaded, and
 * functions may still run while their node is being closed. */
static pthread_mutex_t all_lock = PTHREAD_MUTEX_INITIALIZER;
static struct ctr *all;

static struct ctr *ctr_new(void)
{
    struct ctr *ctr = calloc(1, sizeof *ctr);

    if (ctr == NULL || pthread_mutex_init(&ctr->lock, NULL) != 0) {
        free(ctr);
        return NULL;
    }
    (void)pthread_mutex_lock(&all_lock);
    ctr->next = all;
    all = ctr;
    (void)pthread_mutex_unlock(&all_lock);
    return ctr;
}

MU_PLUGIN;

int mu_plugin_open(mu_node *node);

int mu_plugin_open(mu_node *node)
{
    struct ctr *ctr = ctr_new();
    mu_error error;
    int rv;

    if (ctr == NULL)
        return -MU_ENOMEM;
    rv = settings_read(node, &error, &ctr->settings);
    if (rv == 0)
        rv = source_open(&ctr->settings, &error, &ctr->source);
    if (rv != 0) {
        (void)fprintf(stderr, "ctr: %s\n", error.message);
        return rv;
    }
    rv = register_steps(node, ctr);
    if (rv == 0)
        rv = mu_node_register_program(node, "chief", chief_program, ctr);
    if (rv == 0)
        rv = mu_node_register_program(node, "evaluator", evaluator_program, ctr);
    return rv;
}
