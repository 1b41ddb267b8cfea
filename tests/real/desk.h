/* A discovery in a loop of the test's own: whether it has found, and what it has said. */
#ifndef MUSTER_TESTS_REAL_DESK_H
#define MUSTER_TESTS_REAL_DESK_H

#include "tests/real/nodes.h"

#include "node/discovery/discovery.h"
#include "resolver/engine/resolver.h"

#include <stdbool.h>
#include <uv.h>

struct desk {
    uv_loop_t loop;
    struct mu__discovery *discovery;
    mu_resolver *resolver;
    struct nodes_log log;
    bool is_found;
    bool is_closed;
};

static inline void desk_on_found(void *owner, mu_resolution *resolution)
{
    ((struct desk *)owner)->is_found = true;
    mu_cluster_free(resolution->cluster);
}

static inline void desk_on_failed(void *owner, const mu_error *error)
{
    (void)owner;
    fail_msg("%s", error->message);
}

static inline void desk_on_log(void *owner, int level, const char *line)
{
    nodes_note(&((struct desk *)owner)->log, level, "", "", line);
}

static inline void desk_on_closed(void *arg)
{
    ((struct desk *)arg)->is_closed = true;
}

/* A chief is told of, and looks for the cluster, as long as the limit; negative: none.
 * Takes `resolver`. */
static inline void desk_open(struct desk *desk, mu_resolver *resolver, int64_t timeout_ms)
{
    const mu_announcement announcement = {"muster", "chief", 0, "127.0.0.1:1", "0abc"};
    const struct mu__discovery_config config = {.loop = &desk->loop,
                                                .resolver = resolver,
                                                .announcement = &announcement,
                                                .timeout_ms = timeout_ms,
                                                .found = desk_on_found,
                                                .failed = desk_on_failed,
                                                .log = desk_on_log,
                                                .owner = desk};
    mu_error error;

    memset(desk, 0, sizeof *desk);
    assert_int_equal(pthread_mutex_init(&desk->log.lock, NULL), 0);
    assert_int_equal(uv_loop_init(&desk->loop), 0);
    desk->resolver = resolver;
    assert_int_equal(mu__discovery_open(&config, &error, &desk->discovery), 0);
}

static inline void desk_close(struct desk *desk, bool withdraws, int64_t timeout_ms)
{
    mu__discovery_close(desk->discovery, withdraws, timeout_ms, desk_on_closed, desk);
    (void)uv_run(&desk->loop, UV_RUN_DEFAULT);
    assert_true(desk->is_closed);
    assert_int_equal(uv_loop_close(&desk->loop), 0);
    mu_resolver_free(desk->resolver);
}

static inline bool desk_has_logged(const struct desk *desk, const char *words)
{
    return strstr(desk->log.text, words) != NULL;
}

#endif
