/* The chief's program: schedules the closures, joins them, and compares the counter with
 * their number. With a journal it may be killed at any moment and restarted. */
#include "plugin_counter.h"

#include "../progress.h"

#include <inttypes.h>
#include <stdio.h>

enum {
    SCHEDULE_MS = 60000, /* timeout of schedule while other closures are cancelled
                            after an error */
    JOIN_MS = 120000,
    READ_MS = 60000,
    REST_MS = 2,  /* polling interval of outstanding closures */
    SHOW_MS = 500 /* between two lines of progress */
};

struct counting {
    const struct settings *settings;
    mu_node *node;
    mu_coordinator *coordinator;
    mu_variable *variable;
    mu_table *table; /* NULL: there is none */
    uint64_t scheduled;
    uint64_t shown_ms;
    uint64_t finished; /* as it was seen last, */
    uint64_t grown_ms; /* since when, */
    uint64_t pause_ms; /* and the longest time without another one */
};

/* From the first one on: before, workers have to come. */
static void note_pause(struct counting *c, uint64_t finished, uint64_t now)
{
    if (c->finished > 0 && now - c->grown_ms > c->pause_ms)
        c->pause_ms = now - c->grown_ms;
    if (finished == c->finished)
        return;
    c->finished = finished;
    c->grown_ms = now;
}

static void show_progress(struct counting *c, const mu_coordinator_stats *counts)
{
    const uint64_t now = now_ms();

    note_pause(c, counts->finished, now);
    if (now - c->shown_ms < SHOW_MS)
        return;
    c->shown_ms = now;
    (void)printf("counter: %" PRIu64 " of %" PRIu64 " closures, %" PRIu64
                 " retried, the longest pause %" PRIu64 " ms\n",
                 counts->finished, c->settings->closures, counts->retried, c->pause_ms);
    (void)fflush(stdout);
}

/* ---- Closures ---- */

/* A closure whose name finished before a restart of the chief gets its result from the
 * journal; one that was running is joined. */
static int schedule_one(struct counting *c, uint64_t i, mu_error *ret_error)
{
    mu_closure_options options;
    char name[NAME_BYTES];
    mu_value *number = mu_value_int((int64_t)i);
    int rv;

    if (number == NULL)
        return mu_error_set(ret_error, -MU_ENOMEM, "no memory for a closure's argument");
    (void)snprintf(name, sizeof name, "count-%06" PRIu64, i);
    mu_closure_options_init(&options);
    options.name = name;
    options.flags = MU_CLOSURE_EFFECT_ONCE;
    rv = mu_coordinator_schedule_with(c->coordinator, "count", number, &options,
                                      SCHEDULE_MS, ret_error, NULL);
    mu_value_free(number);
    return rv;
}

static void wait_for_room(struct counting *c)
{
    mu_coordinator_stats counts;

    for (;;) {
        mu_coordinator_get_stats(c->coordinator, &counts);
        show_progress(c, &counts);
        if (counts.outstanding < c->settings->outstanding || counts.failed > 0)
            return;
        nap(REST_MS);
    }
}

/* The first error of a closure is returned by the next schedule, or by join. */
static int run_closures(struct counting *c, mu_error *ret_error)
{
    int rv = 0;

    for (uint64_t i = 1; rv == 0 && i <= c->settings->closures; i++) {
        wait_for_room(c);
        rv = schedule_one(c, i, ret_error);
    }
    if (rv == 0)
        rv = mu_coordinator_join(c->coordinator, JOIN_MS, ret_error);
    return rv;
}

/* ---- The end ---- */

/* The expected value of element e of 8: the number of closures e, e + 8, e + 16 ...,
 * counted from 1. */
static int64_t expected_at(const struct counting *c, uint64_t element, uint64_t of)
{
    const uint64_t count = c->settings->closures;

    return (int64_t)(count / of + (element != 0 && element <= count % of));
}

static int judge_table(struct counting *c, mu_error *ret_error)
{
    uint64_t ids[IDS];
    float rows[IDS];
    int wrong = 0;
    int rv;

    for (uint64_t i = 0; i < IDS; i++)
        ids[i] = i;
    rv = mu_table_lookup(c->table, ids, IDS, rows, READ_MS, ret_error);
    if (rv != 0)
        return rv;
    for (uint64_t i = 0; i < IDS; i++)
        wrong += (int64_t)rows[i] != expected_at(c, i, IDS);
    (void)printf("counter: %d of %d rows wrong\n", wrong, IDS);
    return wrong == 0 ? 0
                      : mu_error_set(ret_error, -MU_EDATALOSS, "%d of %d rows are wrong",
                                     wrong, IDS);
}

static int judge(struct counting *c, mu_error *ret_error)
{
    mu_coordinator_stats counts;
    int64_t elements[ELEMENTS];
    int64_t sum = 0;
    int wrong = 0;
    int rv = mu_variable_read(c->variable, elements, sizeof elements, READ_MS, ret_error);

    if (rv != 0)
        return rv;
    for (uint64_t e = 0; e < ELEMENTS; e++) {
        sum += elements[e];
        wrong += elements[e] != expected_at(c, e, ELEMENTS);
    }
    mu_coordinator_get_stats(c->coordinator, &counts);
    (void)mu_node_report_metric(c->node, "counter", (double)sum, counts.finished);
    (void)mu_node_report_metric(c->node, "closures", (double)c->settings->closures,
                                counts.finished);
    (void)mu_node_report_metric(c->node, "errors", (double)counts.failed,
                                counts.finished);
    (void)printf("counter: the counter is %" PRId64 " after %" PRIu64
                 " closures, %" PRIu64 " retried, %d elements wrong\n",
                 sum, c->settings->closures, counts.retried, wrong);
    return wrong == 0 ? 0
                      : mu_error_set(ret_error, -MU_EDATALOSS,
                                     "the counter is %" PRId64 ", expected %" PRIu64
                                     " (%d of %d elements are wrong)",
                                     sum, c->settings->closures, wrong, ELEMENTS);
}

/* Print the errors besides the first one. */
static void print_errors(struct counting *c)
{
    mu_error errors[4];
    uint64_t lost = 0;
    size_t count = mu_coordinator_take_errors(c->coordinator, errors, 4, &lost);

    for (size_t i = 0; i < count; i++)
        (void)fprintf(stderr, "counter: closure %" PRIu64 ", attempt %u: %s: %s: %s\n",
                      errors[i].closure, (unsigned)errors[i].attempt, errors[i].task,
                      mu_err_name(errors[i].code), errors[i].message);
}

int chief_program(mu_node *node, void *user)
{
    const struct counter *counter = user;
    struct counting c = {.settings = &counter->settings, .node = node};
    mu_error error = {0};
    int rv = mu_coordinator_open(node, OPEN_MS, &error, &c.coordinator);

    c.shown_ms = now_ms();
    if (rv == 0)
        rv = counter_open(node, 0, &error, &c.variable);
    if (rv == 0 && c.settings->table != 0)
        rv = counter_open_table(node, 0, &error, &c.table);
    if (rv == 0)
        rv = run_closures(&c, &error);
    if (rv == 0)
        rv = judge(&c, &error);
    if (rv == 0 && c.table != NULL)
        rv = judge_table(&c, &error);
    if (rv != 0) {
        (void)mu_node_fail_with(node, &error);
        if (c.coordinator != NULL)
            print_errors(&c);
    }
    mu_table_close(c.table);
    mu_variable_close(c.variable);
    mu_coordinator_close(c.coordinator);
    (void)fflush(stdout);
    return rv;
}
