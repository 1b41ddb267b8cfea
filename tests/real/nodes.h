/* Real nodes in one process, on free ports of loopback, for tests. */
#ifndef MUSTER_TESTS_REAL_NODES_H
#define MUSTER_TESTS_REAL_NODES_H

#include "tests/real/ports.h"
#include "tests/support/test.h"

#include <muster.h>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { NODES_MAX = 12, LOG_BYTES_MAX = 1 << 18, SOON_MS = 20000 };

/* Give others the processor for a moment, while waiting for an event. */
static inline void nodes_pause(void)
{
    const struct timespec moment = {0, 1000000};

    (void)nanosleep(&moment, NULL);
}

/* Fails the test with what a call says. */
static inline void check(int rv, const mu_error *error)
{
    if (rv != 0)
        fail_msg("%s: %s", mu_err_name(rv), error->message);
}

/* All log lines of the nodes of a test. */
struct nodes_log {
    pthread_mutex_t lock;
    size_t size;
    char text[LOG_BYTES_MAX];
};

struct nodes {
    struct nodes_log log;
    char json[1024];
    mu_cluster *cluster;
    unsigned window;   /* of the chief; 0: it adapts */
    unsigned insecure; /* for tests that speak to the nodes in plain bytes */
    mu_node *open[NODES_MAX];
    int open_count;
};

static inline void nodes_write_cluster(char *json, size_t size, int workers, int servers)
{
    const struct {
        const char *type;
        int count;
    } jobs[] = {{"chief", 1}, {"worker", workers}, {"ps", servers}};
    size_t at = 0;

    for (size_t i = 0; i < 3; i++) {
        if (jobs[i].count == 0)
            continue;
        at += (size_t)snprintf(json + at, size - at, "%s\"%s\":[", at == 0 ? "{" : ",",
                               jobs[i].type);
        for (int j = 0; j < jobs[i].count; j++)
            at += (size_t)snprintf(json + at, size - at, "%s\"127.0.0.1:%d\"",
                                   j == 0 ? "" : ",", ports_free());
        at += (size_t)snprintf(json + at, size - at, "]");
    }
    (void)snprintf(json + at, size - at, "}");
}

static inline void nodes_init(struct nodes *nodes, int workers, int servers)
{
    mu_error error = {0};

    memset(nodes, 0, sizeof *nodes);
    (void)pthread_mutex_init(&nodes->log.lock, NULL);
    nodes_write_cluster(nodes->json, sizeof nodes->json, workers, servers);
    if (mu_cluster_parse(nodes->json, strlen(nodes->json), "test", &error,
                         &nodes->cluster) != 0)
        fail_msg("%s", error.message);
}

static inline void nodes_note(void *user, int level, const char *task, const char *who,
                              const char *line)
{
    struct nodes_log *log = user;
    int written;

    (void)level;
    (void)pthread_mutex_lock(&log->lock);
    written = snprintf(log->text + log->size, sizeof log->text - log->size, "%s %s: %s\n",
                       task, who, line);
    if (written > 0 && (size_t)written < sizeof log->text - log->size)
        log->size += (size_t)written;
    (void)pthread_mutex_unlock(&log->lock);
}

static inline int nodes_has_logged(struct nodes *nodes, const char *words)
{
    int found;

    (void)pthread_mutex_lock(&nodes->log.lock);
    found = strstr(nodes->log.text, words) != NULL;
    (void)pthread_mutex_unlock(&nodes->log.lock);
    return found;
}

/* Until a line is logged; fails the test when that takes too long. */
static inline void nodes_wait_log(struct nodes *nodes, const char *words)
{
    for (int i = 0; i < SOON_MS; i++) {
        if (nodes_has_logged(nodes, words))
            return;
        nodes_pause();
    }
    fail_msg("nobody logged \"%s\"; the log:\n%s", words, nodes->log.text);
}

/* Options that differ from the default ones are set by the caller in between. */
static inline void nodes_options(struct nodes *nodes, const char *type, int index,
                                 mu_node_options *options)
{
    mu_node_options_init(options);
    options->cluster = nodes->cluster;
    options->task_type = type;
    options->task_index = index;
    options->log = nodes_note;
    options->log_user = &nodes->log;
    options->window = nodes->window;
    if (nodes->insecure)
        options->insecure = 1;
    options->heartbeat_ms = 200;
    options->silence_ms = 4000;
}

static inline mu_node *nodes_open_with(struct nodes *nodes,
                                       const mu_node_options *options)
{
    mu_error error = {0};
    mu_node *node = NULL;

    if (mu_node_open(options, &error, &node) != 0)
        fail_msg("%s", error.message);
    assert_true(nodes->open_count < NODES_MAX);
    nodes->open[nodes->open_count++] = node;
    return node;
}

static inline mu_node *nodes_open(struct nodes *nodes, const char *type, int index)
{
    mu_node_options options;

    nodes_options(nodes, type, index, &options);
    return nodes_open_with(nodes, &options);
}

static inline void nodes_close(struct nodes *nodes, mu_node *node)
{
    mu_error error = {0};

    for (int i = 0; i < nodes->open_count; i++)
        if (nodes->open[i] == node) {
            nodes->open[i] = nodes->open[--nodes->open_count];
            break;
        }
    if (mu_node_close(node, SOON_MS, &error) != 0)
        fail_msg("%s", error.message);
}

static inline mu_coordinator *nodes_coordinator(mu_node *node)
{
    mu_coordinator *coordinator = NULL;
    mu_error error = {0};

    if (mu_coordinator_open(node, SOON_MS, &error, &coordinator) != 0)
        fail_msg("%s", error.message);
    return coordinator;
}

static inline void nodes_done(struct nodes *nodes)
{
    while (nodes->open_count > 0)
        nodes_close(nodes, nodes->open[nodes->open_count - 1]);
    mu_cluster_free(nodes->cluster);
    (void)pthread_mutex_destroy(&nodes->log.lock);
}

#endif
