/* Servers on threads of a test: started, joined, and told their cluster. */
#ifndef MU_TESTS_SERVER_FIXTURE_H
#define MU_TESTS_SERVER_FIXTURE_H

#include "tests/real/nodes.h"

#include <muster/compat/server.h>

static inline void server_options(struct nodes *nodes, const char *type, int index,
                                  mu_node_options *node, mu_server_options *options)
{
    nodes_options(nodes, type, index, node);
    mu_server_options_init(options);
    options->node = node;
}

/* A thread that joins a server. */
struct joiner {
    pthread_t thread;
    mu_server *server;
    int64_t timeout_ms;
    int rv;
    mu_error error;
};

static inline void *join_server(void *arg)
{
    struct joiner *joiner = arg;

    joiner->rv = mu_server_join(joiner->server, joiner->timeout_ms, &joiner->error);
    return NULL;
}

static inline void begin_join(struct joiner *joiner, mu_server *server)
{
    *joiner = (struct joiner){.server = server, .timeout_ms = SOON_MS, .rv = 1};
    assert_int_equal(pthread_create(&joiner->thread, NULL, join_server, joiner), 0);
}

static inline void end_join(struct joiner *joiner)
{
    assert_int_equal(pthread_join(joiner->thread, NULL), 0);
    if (joiner->rv != 0)
        fail_msg("%s", joiner->error.message);
}

/* A server that waits at the address of a task: one at a time. */
static inline void waiting_options(struct nodes *nodes, const char *type, int index,
                                   mu_node_options *node, mu_server_options *options)
{
    static char url[300];

    server_options(nodes, type, index, node, options);
    (void)snprintf(url, sizeof url, "tcp://%s",
                   mu_cluster_address(nodes->cluster, type, index));
    node->bind_address = url;
    node->cluster = NULL;
    node->task_type = NULL;
    node->task_index = -1;
    options->timeout_ms = SOON_MS;
}

static inline int is_in(const char *text, const char *words)
{
    return strstr(text, words) != NULL;
}

#endif
