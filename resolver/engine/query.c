#include "resolver/engine/query.h"

#include "runtime/base/retry.h"
#include "runtime/base/text.h"

#include <stdio.h>
#include <stdlib.h>

enum {
    LINE_BYTES = 900,
    REST = 4        /* pause after a round, as a multiple of its length, even when a
                       file changes: many processes that wait for the same file must not
                       spend all their time on reading it */
};

struct mu__query {
    struct mu__query_config config;
    struct mu__requests *requests; /* of this round; between rounds, of the last one */
    uint64_t began_ms;
    uint64_t end_ms;            /* MU__RETRY_NO_END: no limit */
    uint64_t again_ms;          /* between two rounds: when the next one begins */
    uint64_t due_ms;            /* when the first request is asked again; UINT64_MAX:
                                   none is */
    size_t answered;            /* the first so many requests have had an answer */
    uint64_t round_ms;          /* when the last round began */
    uint64_t rest_ms;           /* between two rounds: the next one does not begin
                                   before, even after a change */
    unsigned rounds;            /* that have failed */
    bool between;               /* two rounds */
    bool news;                  /* something was settled since the last run */
    bool hurried;               /* the next pause ends at once */
    bool ended;                 /* the deadline has passed */
    mu_error last;              /* why the last run failed */
    mu_error concluded;         /* the error of the last round that was complete; code
                                   0: none was */
};

int mu__query_new(const struct mu__query_config *config, struct mu__query **ret_query)
{
    struct mu__query *e = calloc(1, sizeof *e);

    if (e == NULL)
        return -MU_ENOMEM;
    e->config = *config;
    e->began_ms = config->now_ms(config->owner);
    e->end_ms = config->limits.timeout_ms < 0
                    ? MU__RETRY_NO_END
                    : e->began_ms + (uint64_t)config->limits.timeout_ms;
    *ret_query = e;
    return 0;
}

void mu__query_free(struct mu__query *e)
{
    if (e == NULL)
        return;
    mu__requests_free(e->requests);
    free(e);
}

struct mu__requests *mu__query_notes(struct mu__query *e)
{
    return e->requests;
}

static uint64_t now(const struct mu__query *e)
{
    return e->config.now_ms(e->config.owner);
}

int64_t mu__query_left_ms(const struct mu__query *e)
{
    uint64_t now_ms = now(e);

    if (e->end_ms == MU__RETRY_NO_END)
        return -1;
    return now_ms < e->end_ms ? (int64_t)(e->end_ms - now_ms) : 0;
}

unsigned mu__query_rounds(const struct mu__query *e)
{
    return e->rounds;
}

static uint64_t whole_end_ms(const struct mu__query *e)
{
    if (e->config.limits.whole_ms == 0)
        return e->end_ms;
    return e->config.limits.whole_ms < 0
               ? MU__RETRY_NO_END
               : e->began_ms + (uint64_t)e->config.limits.whole_ms;
}

static void log_line(const struct mu__query *e, const struct mu__retry *retry,
                     const char *what, const char *reason, unsigned tries,
                     uint64_t due_ms)
{
    struct mu__retry whole = *retry;
    char line[LINE_BYTES];

    if (e->config.progress == NULL)
        return;
    whole.end_ms = whole_end_ms(e);
    mu__retry_words(&whole, what, reason, tries, now(e), due_ms, line, sizeof line);
    mu__hide_control(line);
    e->config.progress(e->config.owner, line);
}

/* ---- Answers ---- */

static bool status_is_passing(int status)
{
    static const int passing[] = {408, 429, 500, 502, 503, 504};

    for (size_t i = 0; i < sizeof passing / sizeof passing[0]; i++)
        if (passing[i] == status)
            return true;
    return false;
}

/* Whether the same request may have a better answer in a while. */
static bool is_passing(const struct mu__exchange *exchange)
{
    const struct mu__answer *answer = &exchange->answer;

    if (answer->code == -MU_EUNAVAILABLE || answer->code == -MU_EDEADLINE)
        return true;
    if (answer->code == -MU_ENOTFOUND)
        return exchange->request.retry_missing;
    if (answer->code != 0)
        return false;
    return status_is_passing(answer->status) ||
           (answer->status == 404 && exchange->request.retry_missing);
}

static void wait_until(struct mu__query *e, struct mu__exchange *exchange,
                       uint64_t due_ms)
{
    exchange->due_ms = due_ms;
    if (due_ms < e->due_ms)
        e->due_ms = due_ms;
    mu__exchange_reason(exchange, exchange->reason, sizeof exchange->reason);
}

static void try_again(struct mu__query *e, struct mu__exchange *exchange,
                      const struct mu__retry *retry, uint64_t due_ms)
{
    char requested[256];
    char what[300];

    wait_until(e, exchange, due_ms);
    mu__request_describe(&exchange->request, requested, sizeof requested);
    (void)snprintf(what, sizeof what, "asking %s failed", requested);
    log_line(e, retry, what, exchange->reason, exchange->tries, due_ms);
}

/* Whether a failed exchange whose retry would be after the deadline stays open until
 * then, since others may still be answered. Not when a server's Retry-After is after
 * the deadline. */
static bool waits_for_end(const struct mu__query *e, const struct mu__exchange *exchange)
{
    return is_passing(exchange) && e->config.limits.timeout_ms > 0 && !e->ended &&
           (exchange->request.tries == 0 || exchange->tries < exchange->request.tries) &&
           (int64_t)exchange->answer.retry_after_ms < mu__query_left_ms(e);
}

/* Called by the requester: the resolver is not run from here. */
static void on_answered(void *owner, struct mu__exchange *exchange)
{
    struct mu__query *e = owner;
    struct mu__retry retry = {.tries_max = exchange->request.tries, .end_ms = e->end_ms};
    uint64_t due_ms;

    exchange->answered_ms = now(e);
    if (e->config.limits.timeout_ms != 0 && !e->ended && is_passing(exchange) &&
        mu__retry_next(&retry, exchange->tries, now(e), e->config.random(e->config.owner),
                       exchange->answer.retry_after_ms, &due_ms)) {
        try_again(e, exchange, &retry, due_ms);
    } else if (waits_for_end(e, exchange)) {
        wait_until(e, exchange, e->end_ms);
    } else {
        mu__exchange_settle(exchange);
        e->news = true;
    }
    e->config.wake(e->config.owner);
}

/* Send the retries that are due; answers may come within the calls. There may be
 * thousands of exchanges, and a turn for each answer: the list is only walked when one
 * is due. */
static void retry(struct mu__query *e, uint64_t now_ms)
{
    struct mu__exchange *exchange;

    if (now_ms < e->due_ms)
        return;
    e->due_ms = UINT64_MAX;
    for (size_t i = 0; (exchange = mu__requests_at(e->requests, i)) != NULL; i++) {
        if (exchange->settled || exchange->in_flight)
            continue;
        if (exchange->due_ms <= now_ms)
            mu__exchange_retry(exchange);
        else if (exchange->due_ms < e->due_ms)
            e->due_ms = exchange->due_ms;
    }
}

/* Whether an exchange has had no answer at all yet: until then a run would hardly get
 * further than the last one. */
static bool first_answers_are_due(struct mu__query *e)
{
    const struct mu__exchange *exchange;

    while ((exchange = mu__requests_at(e->requests, e->answered)) != NULL &&
           (exchange->settled || exchange->tries > 0))
        e->answered++;
    return exchange != NULL;
}

static uint64_t next_due(const struct mu__query *e)
{
    uint64_t end_ms = e->config.limits.timeout_ms > 0 ? e->end_ms : UINT64_MAX;

    return e->due_ms < end_ms ? e->due_ms : end_ms;
}

/* The longest Retry-After of the servers that failed, counted from now, ms. */
static uint32_t requested_pause_ms(const struct mu__query *e)
{
    const struct mu__exchange *exchange;
    uint64_t now_ms = now(e);
    uint64_t until_ms = now_ms;

    for (size_t i = 0; (exchange = mu__requests_at(e->requests, i)) != NULL; i++)
        if (is_passing(exchange) && exchange->answer.retry_after_ms != 0 &&
            until_ms < exchange->answered_ms + exchange->answer.retry_after_ms)
            until_ms = exchange->answered_ms + exchange->answer.retry_after_ms;
    return (uint32_t)(until_ms - now_ms);
}

/* ---- Changed files ---- */

static bool is_of_paths(const struct mu__exchange *exchange)
{
    return exchange->request.kind == MU__REQUEST_FILE ||
           exchange->request.kind == MU__REQUEST_FOLDER;
}

/* A request in flight may have read the file before the change: `hurried` stays, and
 * ends its next pause. */
static void hurry(struct mu__query *e, uint64_t now_ms)
{
    struct mu__exchange *exchange;

    if (e->between) {
        if (e->rest_ms < e->again_ms)
            e->again_ms = e->rest_ms;
        e->hurried = false;
    }
    for (size_t i = 0; (exchange = mu__requests_at(e->requests, i)) != NULL; i++)
        if (!exchange->settled && !exchange->in_flight && exchange->due_ms > now_ms &&
            is_of_paths(exchange)) {
            wait_until(e, exchange, now_ms);
            e->hurried = false;
        }
}

void mu__query_hurry(struct mu__query *e)
{
    e->hurried = true;
    e->config.wake(e->config.owner);
}

/* ---- Rounds ---- */

static int begin_round(struct mu__query *e, mu_error *ret_error)
{
    struct mu__requests *requests;
    int rv = mu__requests_new(e->config.requester, on_answered, e, &requests);

    if (rv != 0)
        return mu_error_set(ret_error, rv, "out of memory");
    mu__requests_free(e->requests);
    e->requests = requests;
    e->due_ms = UINT64_MAX;
    e->answered = 0;
    e->round_ms = now(e);
    e->between = false;
    e->news = true;
    return 0;
}

static int run(struct mu__query *e, mu_error *ret_error)
{
    e->news = false;
    mu__requests_begin_pass(e->requests, NULL);
    return e->config.run(e->config.owner, e->requests, ret_error);
}

static int give_up(const struct mu__query *e, int code, mu_error *ret_error)
{
    char tried[32];

    mu__retry_time(now(e) - e->began_ms, tried, sizeof tried);
    return mu_error_set(ret_error, code, "%.460s; tried for %s", e->last.message, tried);
}

/* Why a request failed in the round that the deadline has cut off; "" when none did. */
static const char *late_reason(const struct mu__query *e)
{
    const struct mu__exchange *exchange;

    for (size_t i = 0; (exchange = mu__requests_at(e->requests, i)) != NULL; i++)
        if (is_passing(exchange) && exchange->reason[0] != '\0')
            return exchange->reason;
    return "";
}

/* The error to report: that of the last complete round says more than that of a round
 * that was cut off. */
static void remember(struct mu__query *e)
{
    const char *reason = late_reason(e);

    if (!e->ended) {
        e->concluded = e->last;
        return;
    }
    if (e->concluded.code == 0)
        return;
    if (reason[0] == '\0')
        e->last = e->concluded;
    else
        (void)mu_error_set(&e->last, e->last.code, "%.300s; since then: %.120s",
                           e->concluded.message, reason);
}

/* The earliest begin of the next round: REST times the length of the last one, or the
 * end of a server's Retry-After. */
static uint64_t rest_until(const struct mu__query *e)
{
    uint64_t now_ms = now(e);
    uint64_t rest_ms = REST * (now_ms - e->round_ms);
    uint64_t requested_ms = requested_pause_ms(e);

    return now_ms + (rest_ms > requested_ms ? rest_ms : requested_ms);
}

/* The end of a round that failed: another one, or the conclusion. */
static int conclude(struct mu__query *e, int rv, mu_error *ret_error,
                    uint64_t *ret_due_ms)
{
    bool passing = rv == -MU_EUNAVAILABLE || rv == -MU_EDEADLINE;
    struct mu__retry retry = {.most_ms = e->config.limits.pause_most_ms,
                              .end_ms = e->end_ms};

    if (e->config.limits.timeout_ms == 0 || (!passing && !e->ended)) {
        *ret_error = e->last;
        return rv;
    }
    if (passing)
        remember(e);
    e->rounds++;
    if (!passing || !mu__retry_next(&retry, e->rounds, now(e),
                                    e->config.random(e->config.owner),
                                    requested_pause_ms(e), &e->again_ms))
        return give_up(e, passing ? -MU_EDEADLINE : rv, ret_error);
    e->between = true;
    e->rest_ms = rest_until(e);
    *ret_due_ms = e->hurried ? now(e) : e->again_ms;
    log_line(e, &retry, e->last.message, NULL, e->config.limits.rounds_before + e->rounds,
             e->again_ms);
    return MU__LATER;
}

/* The deadline: the resolver concludes from the answers that it has. */
static int force(struct mu__query *e, mu_error *ret_error)
{
    uint64_t due_ms;
    int rv;

    e->ended = true;
    mu__requests_end(e->requests);
    rv = run(e, &e->last);
    if (rv == MU__LATER)
        rv = mu_error_set(&e->last, -MU_EDEADLINE, "it asks for more and more");
    return rv == 0 ? 0 : conclude(e, rv, ret_error, &due_ms);
}

int mu__query_turn(struct mu__query *e, mu_error *ret_error, uint64_t *ret_due_ms)
{
    uint64_t now_ms = now(e);
    int rv;

    if (e->hurried && e->requests != NULL)
        hurry(e, now_ms);
    if (e->between && now_ms < e->again_ms) {
        *ret_due_ms = e->again_ms;
        return MU__LATER;
    }
    if (e->requests == NULL || e->between) {
        rv = begin_round(e, ret_error);
        if (rv != 0)
            return rv;
    }
    if (e->config.limits.timeout_ms > 0 && now_ms >= e->end_ms)
        return force(e, ret_error);
    retry(e, now_ms);
    while (e->news && !first_answers_are_due(e)) {
        rv = run(e, &e->last);
        if (rv == 0)
            return 0;
        if (rv != MU__LATER)
            return conclude(e, rv, ret_error, ret_due_ms);
    }
    *ret_due_ms = next_due(e);
    return MU__LATER;
}
