/* Rounds of workers over the coordination service: increments, compare-and-sets, and a
 * barrier at the end of each round. A worker that is killed and restarted continues with
 * its round. With a trace, each request is recorded before it is sent and when it is
 * answered, so that a checker can judge whether the history is possible. */
#include "plugin_tally.h"

#include "../progress.h"
#include "../settings.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    TIMEOUT_MS = 60000, /* of one call: hosts may restart */
    MAY_FAIL_EVERY = 5, /* in every fifth round the barrier has a short timeout */
    MAY_FAIL_MS = 300
};

struct settings {
    uint64_t rounds;
    uint64_t increments; /* of each of two counters in a round */
    uint64_t pause_ms;   /* least length of a round */
    uint64_t barriers;   /* 0: workers do not wait for each other */
    uint64_t workers;    /* 0: as many as the cluster has */
    uint64_t tallies;    /* counters that are kept actors; each worker has one more */
};

struct worker {
    mu_node *node;
    struct settings settings;
    int trace; /* -1: none */
    unsigned index;
    char set[32];   /* all workers */
    mu_error error; /* of the call that failed */
};

MU_PLUGIN;

int mu_plugin_open(mu_node *node);

/* Write a line of the trace in one write(), so that lines of several workers do not
 * mix. */
MU_PRINTF(2, 3)
static void note(const struct worker *w, const char *format, ...)
{
    char line[512];
    va_list list;
    int size = snprintf(line, sizeof line, "%u ", w->index);

    if (w->trace < 0)
        return;
    va_start(list, format);
    size += vsnprintf(line + size, sizeof line - 1 - (size_t)size, format, list);
    va_end(list);
    if (size > (int)sizeof line - 2)
        size = (int)sizeof line - 2;
    line[size++] = '\n';
    if (write(w->trace, line, (size_t)size) != size)
        (void)fprintf(stderr, "rounds: the trace: %s\n", strerror(errno));
}

/* ---- Changes ---- */

static int increment(struct worker *w, const char *key)
{
    int64_t number = 0;
    int rv;

    note(w, "ask %s", key);
    rv = mu_kv_increment(w->node, key, 1, TIMEOUT_MS, &w->error, &number);
    if (rv == 0)
        note(w, "ack %s %" PRId64, key, number);
    return rv;
}

/* Read a key's value as a number, and its revision; both 0 when it is absent. */
static int look(struct worker *w, const char *key, uint64_t *ret_number,
                uint64_t *ret_revision)
{
    mu_kv_item item = {0};
    int rv;

    note(w, "look %s", key);
    rv = mu_kv_try_get(w->node, key, TIMEOUT_MS, &w->error, &item);
    if (rv != 0 && rv != -MU_ENOTFOUND)
        return rv;
    *ret_number = rv == 0 ? strtoull(item.value, NULL, 10) : 0;
    *ret_revision = rv == 0 ? item.revision : 0;
    note(w, "saw %s %" PRIu64, key, *ret_number);
    mu_kv_item_clear(&item);
    return 0;
}

/* Add 1 by compare-and-set, repeated while other workers were faster. */
static int add_by_compare(struct worker *w, const char *key)
{
    uint64_t number;
    uint64_t revision;
    char text[24];
    int rv;

    do {
        rv = look(w, key, &number, &revision);
        if (rv != 0)
            return rv;
        (void)snprintf(text, sizeof text, "%" PRIu64, number + 1);
        note(w, "ask %s", key);
        rv = mu_kv_put(w->node, key, text, strlen(text), MU_KV_OVERWRITE | MU_KV_COMPARE,
                       revision, TIMEOUT_MS, &w->error, NULL);
        if (rv == 0)
            note(w, "ack %s %s", key, text);
        else if (rv == -MU_EPRECONDITION &&
                 mu_agent_state(w->node, NULL) != MU_AGENT_ERROR)
            note(w, "no %s", key);
        else
            return rv;
    } while (rv != 0);
    return 0;
}

/* ---- Tallies ---- */

/* Those that all call, and behind them the worker's own. As the trace has them; the name
 * of the actor has no slash. */
static void name_tally(uint64_t which, uint64_t worker, const struct settings *settings,
                       char key[32], char name[32])
{
    if (which < settings->tallies)
        (void)snprintf(key, 32, "tally/%" PRIu64, which);
    else
        (void)snprintf(key, 32, "own/tally-%" PRIu64, worker);
    (void)snprintf(name, 32, "%s", key);
    *strchr(name, '/') = '-';
}

static int open_tallies(struct worker *w)
{
    char key[32];
    char name[32];
    int rv = 0;

    for (uint64_t i = 0; w->settings.tallies > 0 && i <= w->settings.tallies && rv == 0;
         i++) {
        name_tally(i, w->index, &w->settings, key, name);
        rv = tally_open(w->node, name, TIMEOUT_MS, &w->error);
    }
    return rv;
}

/* What is known to have changed nothing is noted as that. */
static void note_refused(const struct worker *w, const char *key)
{
    if (w->error.ran == MU_RAN_NO)
        note(w, "no %s", key);
}

static int begin_raising(struct worker *w, uint64_t which, mu_remote_value **ret_call)
{
    char key[32];
    char name[32];
    int rv;

    name_tally(which, w->index, &w->settings, key, name);
    note(w, "ask %s", key);
    rv = tally_begin(w->node, name, "add", TIMEOUT_MS, &w->error, ret_call);
    if (rv != 0)
        note(w, "no %s", key);
    return rv;
}

static int end_raising(struct worker *w, uint64_t which, mu_remote_value *call)
{
    char key[32];
    char name[32];
    int64_t number = 0;
    int rv = tally_end(call, &w->error, &number);

    name_tally(which, w->index, &w->settings, key, name);
    if (rv == 0)
        note(w, "ack %s %" PRId64, key, number);
    else
        note_refused(w, key);
    return rv;
}

/* All at once, each as often as the other counters. */
static int raise_tallies(struct worker *w)
{
    const uint64_t kinds = w->settings.tallies + 1;
    const uint64_t count = w->settings.tallies == 0 ? 0 : kinds * w->settings.increments;
    mu_remote_value **calls = calloc(count + 1, sizeof(mu_remote_value *));
    int rv = calls == NULL ? -MU_ENOMEM : 0;

    for (uint64_t i = 0; i < count && rv == 0; i++)
        rv = begin_raising(w, i % kinds, &calls[i]);
    for (uint64_t i = 0; calls != NULL && calls[i] != NULL; i++) {
        int one = end_raising(w, i % kinds, calls[i]);

        rv = rv == 0 ? one : rv;
    }
    free(calls);
    return rv;
}

static int look_at_tally(struct worker *w, uint64_t which, uint64_t of, const char *words)
{
    mu_remote_value *call = NULL;
    char key[32];
    char name[32];
    int64_t number = 0;
    int rv;

    name_tally(which, of, &w->settings, key, name);
    note(w, "look %s", key);
    rv = tally_begin(w->node, name, "get", TIMEOUT_MS, &w->error, &call);
    if (rv == 0)
        rv = tally_end(call, &w->error, &number);
    if (rv == 0)
        note(w, "saw %s %" PRId64, key, number);
    if (rv == 0 && words != NULL)
        note(w, "%s %s %" PRId64, words, key, number);
    return rv;
}

static int tell_tallies(struct worker *w, uint64_t workers)
{
    int rv = 0;

    for (uint64_t i = 0; i < w->settings.tallies && rv == 0; i++)
        rv = look_at_tally(w, i, 0, "final");
    for (uint64_t i = 0; w->settings.tallies > 0 && i < workers && rv == 0; i++)
        rv = look_at_tally(w, w->settings.tallies, i, "final");
    return rv;
}

/* ---- A round ---- */

/* Wait at a barrier, and record its outcome. */
static int meet(struct worker *w, const char *name, int64_t timeout_ms)
{
    mu_barrier_options options;
    int rv;

    mu_barrier_options_init(&options);
    options.tasks = w->set;
    options.timeout_ms = timeout_ms;
    rv = mu_barrier_wait(w->node, name, &options, &w->error);
    if (rv == 0 || (rv == -MU_EDEADLINE && timeout_ms >= 0))
        note(w, "met %s %s %s", name, rv == 0 ? "0" : mu_err_name(rv),
             rv == 0 ? "" : w->error.message);
    return rv == -MU_EDEADLINE && timeout_ms >= 0 ? 0 : rv;
}

static int meet_all(struct worker *w, uint64_t round)
{
    char name[48];
    int rv = 0;

    if (round % MAY_FAIL_EVERY == 0) {
        (void)snprintf(name, sizeof name, "may-fail-%" PRIu64, round);
        rv = meet(w, name, MAY_FAIL_MS);
    }
    (void)snprintf(name, sizeof name, "round-%" PRIu64, round);
    return rv != 0 ? rv : meet(w, name, -1);
}

static int do_round(struct worker *w, uint64_t round)
{
    char own[32];
    char at[32];
    char next[24];
    uint64_t sum;
    uint64_t revision;
    int rv = 0;

    (void)snprintf(own, sizeof own, "own/%u", w->index);
    (void)snprintf(at, sizeof at, "at/%u", w->index);
    (void)snprintf(next, sizeof next, "%" PRIu64, round + 1);
    nap(w->settings.pause_ms);
    for (uint64_t i = 0; rv == 0 && i < w->settings.increments; i++) {
        rv = increment(w, "sum");
        if (rv == 0)
            rv = increment(w, own);
    }
    if (rv == 0)
        rv = raise_tallies(w);
    if (rv == 0 && w->settings.tallies > 0)
        rv = look_at_tally(w, round % w->settings.tallies, 0, NULL);
    if (rv == 0)
        rv = look(w, "sum", &sum, &revision);
    if (rv == 0)
        rv = add_by_compare(w, "compared");
    if (rv == 0 && w->settings.barriers)
        rv = meet_all(w, round);
    return rv != 0 ? rv
                   : mu_kv_put(w->node, at, next, strlen(next), MU_KV_OVERWRITE, 0,
                               TIMEOUT_MS, &w->error, NULL);
}

/* Run rounds, beginning with the one that this worker reached before a restart. At the
 * end all meet once more: nobody has a round to repeat then. */
static int do_rounds(struct worker *w)
{
    char at[32];
    uint64_t round = 0;
    uint64_t revision;
    int stop = 0;
    int rv = mu_agent_register(w->node, 0, TIMEOUT_MS, &w->error);

    (void)snprintf(at, sizeof at, "at/%u", w->index);
    if (rv == 0)
        rv = open_tallies(w);
    if (rv == 0)
        rv = look(w, at, &round, &revision);
    for (; rv == 0 && round < w->settings.rounds; round++) {
        rv = mu_preemption_reached(w->node, round, &w->error, &stop);
        if (rv == 0 && stop) {
            (void)printf("rounds: stops at step %" PRIu64 "\n", round);
            return 0;
        }
        if (rv == 0)
            rv = do_round(w, round);
    }
    return rv == 0 && w->settings.barriers ? meet(w, "end", -1) : rv;
}

/* ---- The program ---- */

/* Record the results after the last round of all workers. */
static int tell_results(struct worker *w)
{
    uint64_t count = w->settings.workers;
    uint64_t number;
    uint64_t revision;
    char own[32];
    int rv = look(w, "sum", &number, &revision);

    if (rv == 0) {
        note(w, "final sum %" PRIu64, number);
        rv = look(w, "compared", &number, &revision);
    }
    if (rv == 0)
        note(w, "final compared %" PRIu64, number);
    for (uint64_t i = 0; rv == 0 && i < count; i++) {
        (void)snprintf(own, sizeof own, "own/%" PRIu64, i);
        rv = look(w, own, &number, &revision);
        if (rv == 0)
            note(w, "final %s %" PRIu64, own, number);
    }
    return rv != 0 ? rv : tell_tallies(w, count);
}

static int do_all(struct worker *w)
{
    int rv = do_rounds(w);

    return rv == 0 && w->settings.barriers ? tell_results(w) : rv;
}

/* When the service has taken a silent worker for dead, it is in error: it resets its
 * agent, and begins again like after a restart. */
static int work(struct worker *w)
{
    int rv = do_all(w);

    while (rv != 0 && mu_agent_state(w->node, NULL) == MU_AGENT_ERROR) {
        note(w, "error %s %s", mu_err_name(rv), w->error.message);
        rv = mu_agent_reset(w->node, TIMEOUT_MS, &w->error);
        if (rv == 0)
            rv = do_all(w);
    }
    return rv;
}

static int worker_program(mu_node *node, void *user)
{
    struct worker w = {.node = node, .settings = *(const struct settings *)user};
    const char *task = strrchr(mu_node_task(node), ':');
    int rv = settings_open_trace(node, "rounds", &w.trace);

    if (rv != 0)
        return rv;
    w.index = task == NULL ? 0 : (unsigned)strtoul(task + 1, NULL, 10);
    if (w.settings.workers == 0)
        w.settings.workers = mu_node_task_count(node, "worker");
    (void)snprintf(w.set, sizeof w.set, "worker:0-%" PRIu64, w.settings.workers - 1);
    rv = work(&w);
    if (rv != 0 && w.error.code == rv)
        (void)mu_node_fail_with(node, &w.error);
    (void)fflush(stdout);
    if (w.trace >= 0)
        (void)close(w.trace);
    return rv;
}

/* ---- Loading ---- */

/* A plugin is never unloaded, and has one node in its process: `muster node`'s. */
static struct settings settings = {.rounds = 100, .increments = 5, .barriers = 1};

int mu_plugin_open(mu_node *node)
{
    static const struct setting rows[] = {
        {"rounds", &settings.rounds, NULL, 0, 1000000000},
        {"increments", &settings.increments, NULL, 0, 1000000},
        {"pause_ms", &settings.pause_ms, NULL, 0, 60000},
        {"barriers", &settings.barriers, NULL, 0, 1},
        {"workers", &settings.workers, NULL, 0, 4096},
        {"tallies", &settings.tallies, NULL, 0, 1000},
    };

    if (settings_take_or_say(node, "rounds", rows, sizeof rows / sizeof rows[0]) != 0)
        return -MU_EINVALID;
    if (settings.tallies > 0 && strstr(mu_node_task(node), "worker") != NULL &&
        mu_node_register_actor(node, &tally_type) != 0)
        return -MU_EINVALID;
    return mu_node_register_program(node, "worker", worker_program, &settings);
}
