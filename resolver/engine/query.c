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
    uint64_t due_ms;            /* when the next retry is due; UINT64_MAX: none is */
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
    struct mu__query *q = calloc(1, sizeof *q);

    if (q == NULL)
        return -MU_ENOMEM;
    q->config = *config;
    q->began_ms = config->now_ms(config->owner);
    q->end_ms = config->limits.timeout_ms < 0
                    ? MU__RETRY_NO_END
                    : q->began_ms + (uint64_t)config->limits.timeout_ms;
    *ret_query = q;
    return 0;
}

void mu__query_free(struct mu__query *q)
{
    if (q == NULL)
        return;
    mu__requests_free(q->requests);
    free(q);
}

struct mu__requests *mu__query_notes(struct mu__query *q)
{
    return q->requests;
}

static uint64_t now(const struct mu__query *q)
{
    return q->config.now_ms(q->config.owner);
}

int64_t mu__query_left_ms(const struct mu__query *q)
{
    uint64_t now_ms = now(q);

    if (q->end_ms == MU__RETRY_NO_END)
        return -1;
    return now_ms < q->end_ms ? (int64_t)(q->end_ms - now_ms) : 0;
}

unsigned mu__query_rounds(const struct mu__query *q)
{
    return q->rounds;
}

static uint64_t whole_end_ms(const struct mu__query *q)
{
    if (q->config.limits.whole_ms == 0)
        return q->end_ms;
    return q->config.limits.whole_ms < 0
               ? MU__RETRY_NO_END
               : q->began_ms + (uint64_t)q->config.limits.whole_ms;
}

static void log_line(const struct mu__query *q, const struct mu__retry *retry,
                     const char *what, const char *reason, unsigned tries,
                     uint64_t due_ms)
{
    struct mu__retry whole = *retry;
    char line[LINE_BYTES];

    if (q->config.progress == NULL)
        return;
    whole.end_ms = whole_end_ms(q);
    mu__retry_words(&whole, what, reason, tries, now(q), due_ms, line, sizeof line);
    mu__hide_control(line);
    q->config.progress(q->config.owner, line);
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

static void wait_until(struct mu__query *q, struct mu__exchange *exchange,
                       uint64_t due_ms)
{
    exchange->due_ms = due_ms;
    if (due_ms < q->due_ms)
        q->due_ms = due_ms;
    mu__exchange_reason(exchange, exchange->reason, sizeof exchange->reason);
}

static void try_again(struct mu__query *q, struct mu__exchange *exchange,
                      const struct mu__retry *retry, uint64_t due_ms)
{
    char requested[256];
    char what[300];

    wait_until(q, exchange, due_ms);
    mu__request_describe(&exchange->request, requested, sizeof requested);
    (void)snprintf(what, sizeof what, "asking %s failed", requested);
    log_line(q, retry, what, exchange->reason, exchange->tries, due_ms);
}

/* Whether a failed exchange whose retry would be after the deadline stays open until
 * then, since others may still be answered. Not when a server's Retry-After is after
 * the deadline. */
static bool waits_for_end(const struct mu__query *q, const struct mu__exchange *exchange)
{
    return is_passing(exchange) && q->config.limits.timeout_ms > 0 && !q->ended &&
           (exchange->request.tries == 0 || exchange->tries < exchange->request.tries) &&
           (int64_t)exchange->answer.retry_after_ms < mu__query_left_ms(q);
}

/* Called by the requester: the resolver is not run from here. */
static void on_answered(void *owner, struct mu__exchange *exchange)
{
    struct mu__query *q = owner;
    struct mu__retry retry = {.tries_max = exchange->request.tries, .end_ms = q->end_ms};
    uint64_t due_ms;

    exchange->answered_ms = now(q);
    if (q->config.limits.timeout_ms != 0 && !q->ended && is_passing(exchange) &&
        mu__retry_next(&retry, exchange->tries, now(q), q->config.random(q->config.owner),
                       exchange->answer.retry_after_ms, &due_ms)) {
        try_again(q, exchange, &retry, due_ms);
    } else if (waits_for_end(q, exchange)) {
        wait_until(q, exchange, q->end_ms);
    } else {
        mu__exchange_settle(exchange);
        q->news = true;
    }
    q->config.wake(q->config.owner);
}

/* Send the retries that are due; answers may come within the calls. There may be
 * thousands of exchanges, and a turn for each answer: the list is only walked when one
 * is due. */
static void retry(struct mu__query *q, uint64_t now_ms)
{
    struct mu__exchange *exchange;

    if (now_ms < q->due_ms)
        return;
    q->due_ms = UINT64_MAX;
    for (size_t i = 0; (exchange = mu__requests_at(q->requests, i)) != NULL; i++) {
        if (exchange->settled || exchange->in_flight)
            continue;
        if (exchange->due_ms <= now_ms)
            mu__exchange_retry(exchange);
        else if (exchange->due_ms < q->due_ms)
            q->due_ms = exchange->due_ms;
    }
}

/* Whether an exchange has had no answer at all yet: until then a run would hardly get
 * further than the last one. */
static bool first_answers_are_due(struct mu__query *q)
{
    const struct mu__exchange *exchange;

    while ((exchange = mu__requests_at(q->requests, q->answered)) != NULL &&
           (exchange->settled || exchange->tries > 0))
        q->answered++;
    return exchange != NULL;
}

static uint64_t next_due(const struct mu__query *q)
{
    uint64_t end_ms = q->config.limits.timeout_ms > 0 ? q->end_ms : UINT64_MAX;

    return q->due_ms < end_ms ? q->due_ms : end_ms;
}

/* The longest Retry-After of the servers that failed, counted from now, ms. */
static uint32_t requested_pause_ms(const struct mu__query *q)
{
    const struct mu__exchange *exchange;
    uint64_t now_ms = now(q);
    uint64_t until_ms = now_ms;

    for (size_t i = 0; (exchange = mu__requests_at(q->requests, i)) != NULL; i++)
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
static void hurry(struct mu__query *q, uint64_t now_ms)
{
    struct mu__exchange *exchange;

    if (q->between) {
        if (q->rest_ms < q->again_ms)
            q->again_ms = q->rest_ms;
        q->hurried = false;
    }
    for (size_t i = 0; (exchange = mu__requests_at(q->requests, i)) != NULL; i++)
        if (!exchange->settled && !exchange->in_flight && exchange->due_ms > now_ms &&
            is_of_paths(exchange)) {
            wait_until(q, exchange, now_ms);
            q->hurried = false;
        }
}

void mu__query_hurry(struct mu__query *q)
{
    q->hurried = true;
    q->config.wake(q->config.owner);
}

/* ---- Rounds ---- */

static int begin_round(struct mu__query *q, mu_error *ret_error)
{
    struct mu__requests *requests;
    int rv = mu__requests_new(q->config.requester, on_answered, q, &requests);

    if (rv != 0)
        return mu_error_set(ret_error, rv, "out of memory");
    mu__requests_free(q->requests);
    q->requests = requests;
    q->due_ms = UINT64_MAX;
    q->answered = 0;
    q->round_ms = now(q);
    q->between = false;
    q->news = true;
    return 0;
}

static int run(struct mu__query *q, mu_error *ret_error)
{
    q->news = false;
    mu__requests_begin_pass(q->requests, NULL);
    return q->config.run(q->config.owner, q->requests, ret_error);
}

static int give_up(const struct mu__query *q, int code, mu_error *ret_error)
{
    char tried[32];

    mu__retry_time(now(q) - q->began_ms, tried, sizeof tried);
    return mu_error_set(ret_error, code, "%.460s; tried for %s", q->last.message, tried);
}

/* Why a request failed in the round that the deadline has cut off; "" when none did. */
static const char *late_reason(const struct mu__query *q)
{
    const struct mu__exchange *exchange;

    for (size_t i = 0; (exchange = mu__requests_at(q->requests, i)) != NULL; i++)
        if (is_passing(exchange) && exchange->reason[0] != '\0')
            return exchange->reason;
    return "";
}

/* The error to report: that of the last complete round says more than that of a round
 * that was cut off. */
static void remember(struct mu__query *q)
{
    const char *reason = late_reason(q);

    if (!q->ended) {
        q->concluded = q->last;
        return;
    }
    if (q->concluded.code == 0)
        return;
    if (reason[0] == '\0')
        q->last = q->concluded;
    else
        (void)mu_error_set(&q->last, q->last.code, "%.300s; since then: %.120s",
                           q->concluded.message, reason);
}

/* The earliest begin of the next round: REST times the length of the last one, or the
 * end of a server's Retry-After. */
static uint64_t rest_until(const struct mu__query *q)
{
    uint64_t now_ms = now(q);
    uint64_t rest_ms = REST * (now_ms - q->round_ms);
    uint64_t requested_ms = requested_pause_ms(q);

    return now_ms + (rest_ms > requested_ms ? rest_ms : requested_ms);
}

/* The end of a round that failed: another one, or the conclusion. */
static int conclude(struct mu__query *q, int rv, mu_error *ret_error,
                    uint64_t *ret_due_ms)
{
    bool passing = rv == -MU_EUNAVAILABLE || rv == -MU_EDEADLINE;
    struct mu__retry retry = {.most_ms = q->config.limits.pause_most_ms,
                              .end_ms = q->end_ms};

    if (q->config.limits.timeout_ms == 0 || (!passing && !q->ended)) {
        *ret_error = q->last;
        return rv;
    }
    if (passing)
        remember(q);
    q->rounds++;
    if (!passing ||
        !mu__retry_next(&retry, q->rounds, now(q), q->config.random(q->config.owner),
                        requested_pause_ms(q), &q->again_ms))
        return give_up(q, passing ? -MU_EDEADLINE : rv, ret_error);
    q->between = true;
    q->rest_ms = rest_until(q);
    *ret_due_ms = q->hurried ? now(q) : q->again_ms;
    log_line(q, &retry, q->last.message, NULL, q->config.limits.rounds_before + q->rounds,
             q->again_ms);
    return MU__LATER;
}

/* The deadline: the resolver concludes from the answers that it has. */
static int force(struct mu__query *q, mu_error *ret_error)
{
    uint64_t due_ms;
    int rv;

    q->ended = true;
    mu__requests_end(q->requests);
    rv = run(q, &q->last);
    if (rv == MU__LATER)
        rv = mu_error_set(&q->last, -MU_EDEADLINE, "it makes new requests without end");
    return rv == 0 ? 0 : conclude(q, rv, ret_error, &due_ms);
}

int mu__query_turn(struct mu__query *q, mu_error *ret_error, uint64_t *ret_due_ms)
{
    uint64_t now_ms = now(q);
    int rv;

    if (q->hurried && q->requests != NULL)
        hurry(q, now_ms);
    if (q->between && now_ms < q->again_ms) {
        *ret_due_ms = q->again_ms;
        return MU__LATER;
    }
    if (q->requests == NULL || q->between) {
        rv = begin_round(q, ret_error);
        if (rv != 0)
            return rv;
    }
    if (q->config.limits.timeout_ms > 0 && now_ms >= q->end_ms)
        return force(q, ret_error);
    retry(q, now_ms);
    while (q->news && !first_answers_are_due(q)) {
        rv = run(q, &q->last);
        if (rv == 0)
            return 0;
        if (rv != MU__LATER)
            return conclude(q, rv, ret_error, ret_due_ms);
    }
    *ret_due_ms = next_due(q);
    return MU__LATER;
}
