#include "tests/support/slow_requester.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { TURNS_MAX = 10000, BEGIN_MS = 5000 };

/* ---- Answers ---- */

/* The outcome of try number `tries`, from 0. */
static void outcome_of(const char *outcomes, unsigned tries, char *out)
{
    for (; tries > 0 && strchr(outcomes, ' ') != NULL; tries--)
        outcomes = strchr(outcomes, ' ') + 1;
    (void)snprintf(out, 32, "%.*s", (int)strcspn(outcomes, " "), outcomes);
}

static void give_failure(struct mu__exchange *exchange, int code, const char *words)
{
    char requested[256];

    mu__request_describe(&exchange->request, requested, sizeof requested);
    exchange->answer.code =
        mu_error_set(&exchange->answer.error, code, "%s: %s", requested, words);
}

static void give(struct mu__exchange *exchange, const char *outcome)
{
    static const struct {
        const char *word;
        int code;
        const char *words;
    } failures[] = {
        {"refused", -MU_EUNAVAILABLE, "connection refused"},
        {"missing", -MU_ENOTFOUND, "not there"},
        {"denied", -MU_EPERMISSION, "not permitted"},
    };

    for (size_t i = 0; i < sizeof failures / sizeof failures[0]; i++)
        if (strcmp(failures[i].word, outcome) == 0) {
            give_failure(exchange, failures[i].code, failures[i].words);
            return;
        }
    exchange->answer.data = strdup("{}");
    if (exchange->answer.data == NULL)
        exchange->answer.code = -MU_ENOMEM;
    exchange->answer.size = 2;
    if (strncmp(outcome, "wait:", 5) == 0) {
        exchange->answer.status = 503;
        exchange->answer.retry_after_ms = (uint32_t)strtoul(outcome + 5, NULL, 10);
    } else if (strcmp(outcome, "ok") != 0) {
        exchange->answer.status = (int)strtol(outcome, NULL, 10);
    }
}

static const struct slow_row *row_of(const struct slow_requester *requester,
                                     const struct mu__exchange *exchange)
{
    const struct slow_row *row = requester->rows;

    while (row->name != NULL && strcmp(row->name, exchange->request.name) != 0)
        row++;
    if (row->name == NULL)
        fail_msg("nobody thought of \"%s\"", exchange->request.name);
    return row;
}

static void answer(struct slow_requester *requester, struct mu__exchange *exchange)
{
    char outcome[32];

    outcome_of(row_of(requester, exchange)->outcomes, exchange->tries, outcome);
    give(exchange, outcome);
    mu__exchange_answer(exchange);
}

static void on_send(struct mu__requester *base, struct mu__exchange *exchange)
{
    struct slow_requester *requester = (struct slow_requester *)base;
    const struct slow_row *row = row_of(requester, exchange);
    char outcome[32];

    requester->requested++;
    outcome_of(row->outcomes, exchange->tries, outcome);
    if (row->takes_ms == 0 && strcmp(outcome, "never") != 0) {
        answer(requester, exchange);
        return;
    }
    assert_true(requester->waiting_count < 64);
    requester->waiting[requester->waiting_count].exchange = exchange;
    requester->waiting[requester->waiting_count].due_ms =
        strcmp(outcome, "never") == 0 ? UINT64_MAX : requester->now_ms + row->takes_ms;
    requester->waiting_count++;
}

static void on_cancel(struct mu__requester *base, struct mu__exchange *exchange)
{
    struct slow_requester *requester = (struct slow_requester *)base;
    unsigned i = 0;

    while (i < requester->waiting_count && requester->waiting[i].exchange != exchange)
        i++;
    assert_true(i < requester->waiting_count);
    requester->waiting[i] = requester->waiting[--requester->waiting_count];
    requester->cancelled++;
}

/* ---- The query's world ---- */

static int on_run(void *owner, struct mu__requests *requests, mu_error *ret_error)
{
    struct slow_requester *requester = owner;

    requester->runs++;
    return requester->run(requester, requests, ret_error);
}

static void on_wake(void *owner)
{
    ((struct slow_requester *)owner)->woken = true;
}

static void on_progress(void *owner, const char *line)
{
    struct slow_requester *requester = owner;
    size_t used = strlen(requester->lines);

    (void)snprintf(requester->lines + used, sizeof requester->lines - used, "[%llu] %s\n",
                   (unsigned long long)(requester->now_ms - BEGIN_MS), line);
}

uint64_t slow_reading_ms;
uint32_t slow_pause_most_ms;
int64_t slow_whole_ms;
unsigned slow_rounds_before;
uint64_t slow_hurry_ms;

static uint64_t on_now(void *owner)
{
    struct slow_requester *requester = owner;

    requester->now_ms += slow_reading_ms;
    return requester->now_ms;
}

static void go_to(struct slow_requester *requester, uint64_t due_ms)
{
    assert_true(due_ms >= requester->now_ms || slow_reading_ms > 0);
    if (due_ms > requester->now_ms)
        requester->now_ms = due_ms;
}

/* The longest pause: its half, and the other half. */
static uint64_t on_random(void *owner)
{
    (void)owner;
    return 0;
}

/* The place of the first that is answered; 0 when there is none. */
static unsigned first_waiting(const struct slow_requester *requester)
{
    unsigned first = 0;

    for (unsigned i = 1; i < requester->waiting_count; i++)
        if (requester->waiting[i].due_ms < requester->waiting[first].due_ms)
            first = i;
    return first;
}

/* Whether the change comes before `due_ms` and all answers. */
static bool hurries(struct slow_requester *requester, uint64_t due_ms)
{
    uint64_t at_ms = BEGIN_MS + slow_hurry_ms;

    if (requester->waiting_count > 0 &&
        requester->waiting[first_waiting(requester)].due_ms < due_ms)
        due_ms = requester->waiting[first_waiting(requester)].due_ms;
    if (slow_hurry_ms == 0 || at_ms >= due_ms)
        return false;
    go_to(requester, at_ms);
    slow_hurry_ms = 0;
    mu__query_hurry(requester->query);
    return true;
}

/* Go to the next answer, or to `due_ms`. */
static void advance(struct slow_requester *requester, uint64_t due_ms)
{
    unsigned first = first_waiting(requester);

    if (hurries(requester, due_ms)) {
        assert_true(requester->woken);
        return;
    }
    if (requester->waiting_count > 0 && requester->waiting[first].due_ms <= due_ms) {
        struct mu__exchange *exchange = requester->waiting[first].exchange;

        assert_true(requester->waiting[first].due_ms != UINT64_MAX);
        go_to(requester, requester->waiting[first].due_ms);
        requester->waiting[first] = requester->waiting[--requester->waiting_count];
        answer(requester, exchange);
        assert_true(requester->woken);
        return;
    }
    assert_true(due_ms != UINT64_MAX);
    go_to(requester, due_ms);
}

int slow_query(struct slow_requester *requester, const struct slow_row *rows,
               int (*run)(struct slow_requester *requester, struct mu__requests *requests,
                          mu_error *ret_error),
               int64_t timeout_ms, mu_error *ret_error)
{
    static const struct mu__requester_ops ops = {on_send, on_cancel};
    const struct mu__query_config config = {
        .requester = &requester->requester,
        .run = on_run,
        .wake = on_wake,
        .progress = on_progress,
        .now_ms = on_now,
        .random = on_random,
        .owner = requester,
        .limits.timeout_ms = timeout_ms,
        .limits.whole_ms = slow_whole_ms,
        .limits.rounds_before = slow_rounds_before,
        .limits.pause_most_ms = slow_pause_most_ms,
    };
    int rv;

    *requester = (struct slow_requester){
        .requester.ops = &ops, .rows = rows, .now_ms = BEGIN_MS, .run = run};
    rv = mu__query_new(&config, &requester->query);
    if (rv != 0)
        return mu_error_set(ret_error, rv, "out of memory");
    for (unsigned i = 0; i < TURNS_MAX; i++) {
        uint64_t due_ms = 0;

        requester->woken = false;
        rv = mu__query_turn(requester->query, ret_error, &due_ms);
        if (rv != MU__LATER)
            return rv;
        if (!requester->woken)
            advance(requester, due_ms);
    }
    fail_msg("%d turns, and it has not ended", (int)TURNS_MAX);
    return rv;
}

void slow_done(struct slow_requester *requester)
{
    mu__query_free(requester->query);
    assert_int_equal(requester->waiting_count, 0);
}
