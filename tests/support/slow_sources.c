#include "tests/support/slow_sources.h"
#include "tests/support/test.h"

enum { PAUSES_MAX = 10000, BEGIN_MS = 5000 };

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

static const struct slow_row *row_of(const struct slow_sources *sources,
                                     const struct mu__exchange *exchange)
{
    const struct slow_row *row = sources->rows;

    while (row->name != NULL && strcmp(row->name, exchange->request.name) != 0)
        row++;
    if (row->name == NULL)
        fail_msg("nobody thought of \"%s\"", exchange->request.name);
    return row;
}

static uint64_t due_of(const struct slow_sources *sources,
                       const struct mu__exchange *exchange, uint64_t now_ms)
{
    const struct slow_row *row = row_of(sources, exchange);
    char outcome[32];

    outcome_of(row->outcomes, exchange->tries, outcome);
    return strcmp(outcome, "never") == 0 ? UINT64_MAX : now_ms + row->takes_ms;
}

static void op_answer(struct mu__sources *base, struct mu__exchange *const *batch,
                      size_t count, uint64_t end_ms)
{
    struct slow_sources *sources = (struct slow_sources *)base;
    uint64_t now_ms = sources->now_ms;

    for (size_t i = 0; i < count; i++) {
        uint64_t due_ms;
        char outcome[32];

        if (!batch[i]->is_sent)
            continue;
        sources->requested++;
        due_ms = due_of(sources, batch[i], now_ms);
        assert_true(due_ms != UINT64_MAX || end_ms != UINT64_MAX);
        if (due_ms > end_ms) {
            sources->cut_off++;
            sources->now_ms = end_ms;
            continue;
        }
        if (due_ms > sources->now_ms)
            sources->now_ms = due_ms;
        outcome_of(row_of(sources, batch[i])->outcomes, batch[i]->tries, outcome);
        give(batch[i], outcome);
        mu__exchange_answered(batch[i]);
    }
}

/* ---- The query's world ---- */

static int on_run(void *owner, struct mu__requests *requests, mu_error *ret_error)
{
    struct slow_sources *sources = owner;

    sources->runs++;
    return sources->run(sources, requests, ret_error);
}

static void on_progress(void *owner, const char *line)
{
    struct slow_sources *sources = owner;
    size_t used = strlen(sources->lines);

    (void)snprintf(sources->lines + used, sizeof sources->lines - used, "[%llu] %s\n",
                   (unsigned long long)(sources->now_ms - BEGIN_MS), line);
}

uint64_t slow_reading_ms;
uint32_t slow_pause_most_ms;
int64_t slow_whole_ms;
unsigned slow_rounds_before;
uint64_t slow_hurry_ms;

static uint64_t op_now(struct mu__sources *base)
{
    struct slow_sources *sources = (struct slow_sources *)base;

    sources->now_ms += slow_reading_ms;
    return sources->now_ms;
}

/* The longest pause: its half, and the other half. */
static uint64_t op_random(struct mu__sources *base)
{
    (void)base;
    return 0;
}

static enum mu__pause op_pause(struct mu__sources *base, uint64_t due_ms, bool may_hurry)
{
    struct slow_sources *sources = (struct slow_sources *)base;
    uint64_t change_ms = BEGIN_MS + slow_hurry_ms;
    bool hurries = may_hurry && slow_hurry_ms != 0 && change_ms < due_ms;
    uint64_t until_ms = hurries ? change_ms : due_ms;

    assert_true(until_ms != UINT64_MAX && ++sources->pauses < PAUSES_MAX);
    if (until_ms > sources->now_ms)
        sources->now_ms = until_ms;
    if (hurries)
        slow_hurry_ms = 0;
    return hurries ? MU__PAUSE_HURRIED : MU__PAUSE_OVER;
}

int slow_query(struct slow_sources *sources, const struct slow_row *rows,
               int (*run)(struct slow_sources *sources, struct mu__requests *requests,
                          mu_error *ret_error),
               int64_t timeout_ms, mu_error *ret_error)
{
    static const struct mu__sources_ops ops = {op_answer, op_pause, op_now, op_random};
    const struct mu__query_config config = {
        .sources = &sources->base,
        .run = on_run,
        .run_owner = sources,
        .progress = on_progress,
        .owner = sources,
        .limits.timeout_ms = timeout_ms,
        .limits.whole_ms = slow_whole_ms,
        .limits.rounds_before = slow_rounds_before,
        .limits.pause_most_ms = slow_pause_most_ms,
    };

    *sources = (struct slow_sources){
        .base.ops = &ops, .rows = rows, .now_ms = BEGIN_MS, .run = run};
    return mu__query(&config, ret_error, &sources->notes);
}

void slow_done(struct slow_sources *sources)
{
    mu__requests_free(sources->notes.requests);
    sources->notes.requests = NULL;
}
