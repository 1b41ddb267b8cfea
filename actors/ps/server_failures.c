#include "actors/ps/server_failures.h"

#include "actors/packing.h"

#include <stdlib.h>
#include <string.h>

struct failure_report {
    uint64_t at_ms;
    uint32_t reporter;
};

/* A server and its reports that count, the oldest first. */
struct failing_server {
    uint32_t index;
    uint32_t count;
    uint32_t capacity;
    uint64_t heard_ms; /* the last report, also one that does not count */
    struct failure_report *reports;
};

struct mu__server_failures {
    struct mu__server_failures_options options;
    uint32_t count;
    uint32_t capacity;
    struct failing_server *servers;
};

struct mu__server_failures *mu__server_failures_new(
    const struct mu__server_failures_options *options)
{
    struct mu__server_failures *failures = calloc(1, sizeof *failures);

    if (failures != NULL)
        failures->options = *options;
    return failures;
}

void mu__server_failures_free(struct mu__server_failures *failures)
{
    if (failures == NULL)
        return;
    for (size_t i = 0; i < failures->count; i++)
        free(failures->servers[i].reports);
    free(failures->servers);
    free(failures);
}

/* ---- servers ---- */

static struct failing_server *find_failing_server(
    const struct mu__server_failures *failures, uint32_t index)
{
    for (size_t i = 0; i < failures->count; i++)
        if (failures->servers[i].index == index)
            return &failures->servers[i];
    return NULL;
}

static struct failing_server *longest_silent(struct mu__server_failures *failures)
{
    struct failing_server *silent = &failures->servers[0];

    for (size_t i = 1; i < failures->count; i++)
        if (failures->servers[i].heard_ms < silent->heard_ms)
            silent = &failures->servers[i];
    return silent;
}

/* NULL: out of memory. */
static struct failing_server *need_failing_server(struct mu__server_failures *failures,
                                                  uint32_t index)
{
    struct failing_server *server = find_failing_server(failures, index);

    if (server != NULL)
        return server;
    if (failures->count == MU__SERVER_FAILURES_SERVERS_MAX) {
        server = longest_silent(failures);
        free(server->reports);
    } else if (mu__grow_for_one((void **)&failures->servers, &failures->capacity,
                                failures->count, sizeof *failures->servers)) {
        server = &failures->servers[failures->count++];
    } else {
        return NULL;
    }
    *server = (struct failing_server){.index = index};
    return server;
}

/* ---- reports ---- */

static uint64_t get_report_age(const struct failure_report *report, uint64_t now_ms)
{
    return now_ms < report->at_ms ? 0 : now_ms - report->at_ms;
}

static void forget_old_reports(struct failing_server *server, uint64_t decay_ms,
                               uint64_t now_ms)
{
    uint32_t old = 0;

    while (old < server->count &&
           get_report_age(&server->reports[old], now_ms) >= decay_ms)
        old++;
    if (old == 0)
        return;
    server->count -= old;
    memmove(server->reports, server->reports + old,
            server->count * sizeof *server->reports);
}

static bool is_same_trouble(const struct failing_server *server, uint32_t reporter,
                            uint64_t same_ms, uint64_t now_ms)
{
    for (uint32_t i = server->count; i > 0; i--)
        if (server->reports[i - 1].reporter == reporter)
            return get_report_age(&server->reports[i - 1], now_ms) < same_ms;
    return false;
}

static void add_failure_report(struct failing_server *server,
                               struct failure_report report)
{
    if (mu__grow_for_one((void **)&server->reports, &server->capacity, server->count,
                         sizeof *server->reports))
        server->reports[server->count++] = report;
}

bool mu__server_failures_report(struct mu__server_failures *failures, uint32_t index,
                                uint32_t reporter, uint64_t now_ms)
{
    const struct mu__server_failures_options *options = &failures->options;
    struct failing_server *server;

    if (options->ignored == 0)
        return true;
    server = need_failing_server(failures, index);
    if (server == NULL)
        return false;
    server->heard_ms = now_ms;
    forget_old_reports(server, options->decay_ms, now_ms);
    if (is_same_trouble(server, reporter, options->same_ms, now_ms))
        return false;
    if (server->count == options->ignored) {
        server->count = 0;
        return true;
    }
    add_failure_report(server,
                       (struct failure_report){.at_ms = now_ms, .reporter = reporter});
    return false;
}

uint32_t mu__server_failures_count(struct mu__server_failures *failures, uint32_t index,
                                   uint64_t now_ms)
{
    struct failing_server *server = find_failing_server(failures, index);

    if (server == NULL)
        return 0;
    forget_old_reports(server, failures->options.decay_ms, now_ms);
    return server->count;
}
