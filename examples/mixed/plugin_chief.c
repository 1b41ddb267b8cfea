/* The chief's program: schedules functions that hang among many that do not; waits until
 * all of the latter have ended; cancels the hanging ones; provokes errors one by one; and
 * compares the counter with the number of closures. With a journal it may be killed at
 * any moment and restarted. */
#include "plugin_mixed.h"

#include "../progress.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    SCHEDULE_MS = 60000,
    FETCH_MS = 120000,    /* enough for workers to be restarted */
    CALL_MS = 60000,      /* of any other call */
    RUN_TIMEOUT_MS = 700, /* of closures that hang the first time */
    SHORT_MS = 300,       /* timeouts that are expected to pass */
    SHOW_MS = 500         /* between two lines of progress */
};

struct mixing {
    const struct settings *settings;
    mu_node *node;
    mu_coordinator *coordinator;
    mu_variable *variable;
    uint64_t named;         /* number of named closures */
    mu_remote_value **held; /* values of closures that hang until they are cancelled,
                               then of those that freeze */
    size_t held_count;
    mu_remote_value **values; /* values of the others, in order of scheduling */
    size_t scheduled;
    size_t fetched; /* of them */
    int64_t expected[ELEMENTS];
    uint64_t shown_ms;
};

/* Number of closures that end by themselves. */
static size_t values_count(const struct settings *s)
{
    return (size_t)(s->stumble + s->slow + s->quick);
}

static uint64_t added_count(const struct settings *s)
{
    return s->freeze + values_count(s);
}

/* ---- Waiting ---- */

static void show_progress(struct mixing *m)
{
    const uint64_t now = now_ms();
    mu_coordinator_stats counts;

    if (now - m->shown_ms < SHOW_MS)
        return;
    m->shown_ms = now;
    mu_coordinator_get_stats(m->coordinator, &counts);
    (void)printf("mixed: %" PRIu64 " of %" PRIu64 " closures, %" PRIu64 " retried\n",
                 counts.finished, m->named, counts.retried);
}

/* Fetch values of closures that neither hang nor freeze, until at most `outstanding` are
 * left. */
static int fetch_until(struct mixing *m, size_t outstanding, mu_error *ret_error)
{
    int rv = 0;

    while (rv == 0 && m->fetched + outstanding < m->scheduled) {
        rv = mu_remote_value_fetch(m->values[m->fetched], FETCH_MS, ret_error, NULL);
        m->fetched += rv == 0;
        show_progress(m);
    }
    return rv;
}

/* ---- Scheduling ---- */

static mu_value *make_args(const struct mixing *m, int64_t element)
{
    mu_value *args = mu_value_list();

    if (args == NULL ||
        mu_value_append(args, mu_value_int((int64_t)m->settings->start)) != 0 ||
        mu_value_append(args, mu_value_int(element)) != 0) {
        mu_value_free(args);
        return NULL;
    }
    return args;
}

/* A closure whose name finished before a restart of the chief gets its result from the
 * journal; one that was running is joined. */
static int schedule_named(struct mixing *m, const char *function, int64_t run_timeout_ms,
                          mu_error *ret_error, mu_remote_value **ret_value)
{
    const int64_t element = (int64_t)(m->named % ELEMENTS);
    mu_closure_options options;
    char name[NAME_BYTES];
    mu_value *args = make_args(m, element);
    int rv;

    if (args == NULL)
        return mu_error_set(ret_error, -MU_ENOMEM, "no memory for a closure's arguments");
    (void)snprintf(name, sizeof name, "%" PRIu64 "/%s-%" PRIu64, m->settings->start,
                   function, m->named);
    mu_closure_options_init(&options);
    options.name = name;
    options.flags = MU_CLOSURE_EFFECT_ONCE | MU_CLOSURE_NO_BACKUP;
    options.run_timeout_ms = run_timeout_ms;
    rv = mu_coordinator_schedule_with(m->coordinator, function, args, &options,
                                      SCHEDULE_MS, ret_error, ret_value);
    mu_value_free(args);
    if (rv != 0)
        return rv;
    m->named++;
    m->expected[element] += strcmp(function, "hang") != 0;
    return 0;
}

static int schedule_held(struct mixing *m, const char *function, uint64_t count,
                         mu_error *ret_error)
{
    int rv = 0;

    for (uint64_t i = 0; rv == 0 && i < count; i++) {
        rv = schedule_named(m, function, 0, ret_error, &m->held[m->held_count]);
        m->held_count += rv == 0;
    }
    return rv;
}

static int schedule_many(struct mixing *m, const char *function, uint64_t count,
                         int64_t run_timeout_ms, mu_error *ret_error)
{
    const uint64_t outstanding = m->settings->outstanding;
    int rv = 0;

    for (uint64_t i = 0; rv == 0 && i < count; i++) {
        rv = schedule_named(m, function, run_timeout_ms, ret_error,
                            &m->values[m->scheduled]);
        m->scheduled += rv == 0;
        if (rv == 0 && outstanding != 0)
            rv = fetch_until(m, (size_t)outstanding, ret_error);
    }
    return rv;
}

/* Schedule slow closures evenly spread among quick ones. */
static int schedule_behaved(struct mixing *m, uint64_t quick, uint64_t slow,
                            mu_error *ret_error)
{
    uint64_t done = 0;
    int rv = 0;

    for (uint64_t i = 0; rv == 0 && i < quick; i++) {
        for (; rv == 0 && done < slow && done * quick <= i * slow; done++)
            rv = schedule_many(m, "slow", 1, 0, ret_error);
        if (rv == 0)
            rv = schedule_many(m, "quick", 1, 0, ret_error);
    }
    return rv != 0 ? rv : schedule_many(m, "slow", slow - done, 0, ret_error);
}

/* Hanging closures are scheduled after many quick ones, and before others. */
static int schedule_all(struct mixing *m, mu_error *ret_error)
{
    const struct settings *s = m->settings;
    int rv = schedule_behaved(m, s->quick / 2, 0, ret_error);

    if (rv == 0)
        rv = schedule_held(m, "hang", s->hang, ret_error);
    if (rv == 0)
        rv = schedule_held(m, "freeze", s->freeze, ret_error);
    if (rv == 0)
        rv = schedule_many(m, "stumble", s->stumble, RUN_TIMEOUT_MS, ret_error);
    if (rv == 0)
        rv = schedule_behaved(m, s->quick - s->quick / 2, s->slow, ret_error);
    return rv;
}

/* ---- Running ---- */

/* Check that the hanging closures are still running, and that the others have ended. */
static int check_hanging(struct mixing *m, mu_error *ret_error)
{
    for (size_t i = 0; i < m->settings->hang; i++)
        if (mu_remote_value_state(m->held[i]) != MU_REMOTE_NOT_READY)
            return mu_error_set(ret_error, -MU_EINTERNAL,
                                "closure %zu of those that "
                                "hang has ended, and nobody has cancelled it",
                                i);
    return 0;
}

/* Fetch frozen closures, whose workers are killed from outside. */
static int fetch_frozen(struct mixing *m, mu_error *ret_error)
{
    int rv = 0;

    for (size_t i = m->settings->hang; rv == 0 && i < m->held_count; i++)
        rv = mu_remote_value_fetch(m->held[i], FETCH_MS, ret_error, NULL);
    return rv;
}

static int cancel_hanging(struct mixing *m, mu_error *ret_error)
{
    for (size_t i = 0; i < m->settings->hang; i++) {
        int rv = mu_remote_value_cancel(m->held[i]);

        if (rv != 0)
            return mu_error_set(ret_error, rv,
                                "closure %zu of those that hang was not cancelled", i);
        rv = mu_remote_value_fetch(m->held[i], FETCH_MS, ret_error, NULL);
        if (rv != -MU_ECANCELLED)
            return mu_error_set(ret_error, -MU_EINTERNAL,
                                "closure %zu of those that hang was cancelled and has %s",
                                i, rv == 0 ? "a result" : mu_err_name(rv));
    }
    return mu_coordinator_join(m->coordinator, CALL_MS, ret_error);
}

static int run_closures(struct mixing *m, mu_error *ret_error)
{
    int rv = schedule_all(m, ret_error);

    if (rv == 0)
        rv = fetch_until(m, 0, ret_error);
    if (rv == 0)
        rv = check_hanging(m, ret_error);
    if (rv == 0)
        rv = fetch_frozen(m, ret_error);
    return rv != 0 ? rv : cancel_hanging(m, ret_error);
}

/* ---- Errors ---- */

struct provoked {
    const char *function;
    int64_t deadline_ms;
    int64_t run_timeout_ms;
    int code;
    int kind;
    const char *words; /* part of the message */
};

static int schedule_provoked(struct mixing *m, const struct provoked *p,
                             mu_error *ret_error)
{
    mu_closure_options options;
    mu_value *args = make_args(m, 0);
    int rv;

    if (args == NULL)
        return mu_error_set(ret_error, -MU_ENOMEM, "no memory for a closure's arguments");
    mu_closure_options_init(&options);
    options.deadline_ms = p->deadline_ms;
    options.run_timeout_ms = p->run_timeout_ms;
    options.attempts_max = 1;
    rv = mu_coordinator_schedule_with(m->coordinator, p->function, args, &options,
                                      SCHEDULE_MS, ret_error, NULL);
    mu_value_free(args);
    return rv;
}

/* Schedule a failing closure: join returns its error once, and the coordinator is usable
 * again. A closure that may run only once also ends when its worker is lost. */
static int provoke(struct mixing *m, const struct provoked *p, mu_error *ret_error)
{
    mu_error error = {0};
    int rv = schedule_provoked(m, p, ret_error);

    if (rv != 0)
        return rv;
    rv = mu_coordinator_join(m->coordinator, CALL_MS, &error);
    if (rv == 0 ||
        (error.kind != MU_ERROR_WORKER && (rv != p->code || error.kind != p->kind ||
                                           strstr(error.message, p->words) == NULL)))
        return mu_error_set(ret_error, -MU_EINTERNAL,
                            "%s ended with %s, kind %d, "
                            "\"%.200s\", expected %s, kind %d, \"%s\"",
                            p->function, rv == 0 ? "0" : mu_err_name(rv), error.kind,
                            error.message, mu_err_name(p->code), p->kind, p->words);
    return mu_coordinator_join(m->coordinator, CALL_MS, ret_error);
}

static int provoke_errors(struct mixing *m, mu_error *ret_error)
{
    static const struct provoked errors[] = {
        {.function = "fail",
         .code = -MU_EINVALID,
         .kind = MU_ERROR_FUNCTION,
         .words = "told to fail"},
        {.function = "hang",
         .deadline_ms = SHORT_MS,
         .code = -MU_EDEADLINE,
         .kind = MU_ERROR_LIMIT,
         .words = "deadline has passed"},
        {.function = "hang",
         .run_timeout_ms = SHORT_MS,
         .code = -MU_EDEADLINE,
         .kind = MU_ERROR_LIMIT,
         .words = "limit of one run"},
    };
    int rv = 0;

    for (size_t i = 0; rv == 0 && i < sizeof errors / sizeof errors[0]; i++)
        rv = provoke(m, &errors[i], ret_error);
    return rv;
}

/* ---- Results of earlier jobs ---- */

/* Print the sums of all starts that have ended: kept/START. */
static int show_kept(struct mixing *m, mu_error *ret_error)
{
    mu_value *items = NULL;
    int rv = mu_kv_list(m->node, "kept", CALL_MS, ret_error, &items);

    if (rv != 0)
        return rv;
    (void)printf("mixed: kept:");
    for (size_t i = 0; i < mu_value_count(items); i++) {
        const mu_value *item = mu_value_at(items, i);
        const void *data = "";
        const char *key = "";
        size_t size = 0;

        (void)mu_value_get_string(mu_value_find(item, "key"), &key, &size);
        (void)mu_value_get_bytes(mu_value_find(item, "value"), &data, &size);
        (void)printf(" %s=%.*s", key, (int)size, (const char *)data);
    }
    (void)printf("\n");
    mu_value_free(items);
    return 0;
}

static int keep_sum(struct mixing *m, int64_t sum, mu_error *ret_error)
{
    char key[NAME_BYTES];
    char text[32];
    const int size = snprintf(text, sizeof text, "%" PRId64, sum);

    (void)snprintf(key, sizeof key, "kept/%" PRIu64, m->settings->start);
    return mu_kv_put(m->node, key, text, (size_t)size, MU_KV_OVERWRITE, 0, CALL_MS,
                     ret_error, NULL);
}

/* ---- The end ---- */

static int judge(struct mixing *m, mu_error *ret_error)
{
    const uint64_t expected = added_count(m->settings);
    mu_coordinator_stats counts;
    int64_t elements[ELEMENTS];
    int64_t sum = 0;
    int wrong = 0;
    int rv = mu_variable_read(m->variable, elements, sizeof elements, CALL_MS, ret_error);

    if (rv != 0)
        return rv;
    for (uint64_t e = 0; e < ELEMENTS; e++) {
        sum += elements[e];
        wrong += elements[e] != m->expected[e];
    }
    rv = keep_sum(m, sum, ret_error);
    if (rv != 0)
        return rv;
    mu_coordinator_get_stats(m->coordinator, &counts);
    (void)printf("mixed: the counter is %" PRId64 " after %" PRIu64 " closures, %" PRIu64
                 " retried, %d elements wrong\n",
                 sum, expected, counts.retried, wrong);
    (void)fflush(stdout);
    return wrong == 0 ? 0
                      : mu_error_set(ret_error, -MU_EDATALOSS,
                                     "the counter is %" PRId64 ", expected %" PRIu64
                                     " (%d of %d elements are wrong)",
                                     sum, expected, wrong, ELEMENTS);
}

static int open_all(struct mixing *m, mu_error *ret_error)
{
    int rv = mu_coordinator_open(m->node, OPEN_MS, ret_error, &m->coordinator);

    if (rv == 0)
        rv = mixed_open(m->node, 0, ret_error, &m->variable);
    if (rv != 0)
        return rv;
    m->held =
        calloc((size_t)(m->settings->hang + m->settings->freeze) + 1, sizeof m->held[0]);
    m->values = calloc(values_count(m->settings) + 1, sizeof m->values[0]);
    return m->held != NULL && m->values != NULL
               ? 0
               : mu_error_set(ret_error, -MU_ENOMEM, "no memory for the values");
}

/* The journal is cleared only after the result was reported: until then the chief may be
 * killed, and must know which closures are done. */
static int mix(struct mixing *m, mu_error *ret_error)
{
    int rv = open_all(m, ret_error);

    if (rv == 0)
        rv = show_kept(m, ret_error);
    if (rv == 0)
        rv = run_closures(m, ret_error);
    if (rv == 0)
        rv = provoke_errors(m, ret_error);
    if (rv == 0)
        rv = judge(m, ret_error);
    if (rv == 0)
        rv = mu_coordinator_forget(m->coordinator, CALL_MS, ret_error);
    if (rv == 0 && m->settings->fails != 0)
        rv = mu_error_set(ret_error, -MU_EABORTED, "told to fail in the end");
    return rv;
}

static void free_values(mu_remote_value **values, size_t count)
{
    for (size_t i = 0; i < count; i++)
        mu_remote_value_free(values[i]);
    free(values);
}

int chief_program(mu_node *node, void *user)
{
    const struct mixed *mixed = user;
    struct mixing m = {
        .settings = &mixed->settings,
        .node = node,
        .shown_ms = now_ms(),
    };
    mu_error error = {0};
    int rv = mix(&m, &error);

    if (rv != 0)
        (void)fprintf(stderr, "mixed: %s%s%s\n", error.task,
                      error.task[0] == '\0' ? "" : ": ", error.message);
    free_values(m.held, m.held_count);
    free_values(m.values, m.scheduled);
    mu_variable_close(m.variable);
    mu_coordinator_close(m.coordinator);
    (void)fflush(stdout);
    return rv;
}
