#include "resolver/engine/query.h"

#include "runtime/base/retry.h"
#include "runtime/base/text.h"

#include <stdio.h>
#include <stdlib.h>

enum {
    LINE_BYTES = 900,
    REST = 4 /* pause after a round, as a multiple of its length, even when a
                file changes: many processes that wait for the same file must not
                spend all their time on reading it */
};

struct query {
    struct mu__settler settler; /* first: operations cast */
    const struct mu__query_config *config;
    struct mu__requests *requests; /* of this round; between rounds, of the last one */
    uint64_t began_ms;
    uint64_t end_ms;    /* MU__RETRY_NO_END: no limit */
    uint64_t round_ms;  /* when the last round began */
    unsigned rounds;    /* that have failed */
    bool ended;         /* the deadline has passed, or: */
    bool stopped;       /* nobody waits for the outcome any more */
    mu_error last;      /* why the last round failed */
    mu_error concluded; /* the error of the last round that was complete; code
                           0: none was */
};

static uint64_t get_query_now(const struct query *q)
{
    return q->config->sources->ops->now_ms(q->config->sources);
}

static uint64_t get_query_random(const struct query *q)
{
    return q->config->sources->ops->random(q->config->sources);
}

static int64_t get_query_left_ms(const struct query *q)
{
    uint64_t now_ms = get_query_now(q);

    if (q->end_ms == MU__RETRY_NO_END)
        return -1;
    return now_ms < q->end_ms ? (int64_t)(q->end_ms - now_ms) : 0;
}

static int64_t op_left_ms(struct mu__settler *settler)
{
    return get_query_left_ms((struct query *)settler);
}

static uint64_t whole_end_ms(const struct query *q)
{
    int64_t whole_ms = q->config->limits.whole_ms;

    if (whole_ms == 0)
        return q->end_ms;
    return whole_ms < 0 ? MU__RETRY_NO_END : q->began_ms + (uint64_t)whole_ms;
}

static void log_query_retry(const struct query *q, const struct mu__retry *retry,
                            const char *what, const char *reason, unsigned tries,
                            uint64_t due_ms)
{
    struct mu__retry whole = *retry;
    char line[LINE_BYTES];

    if (q->config->progress == NULL)
        return;
    whole.end_ms = whole_end_ms(q);
    mu__retry_words(&whole, what, reason, tries, get_query_now(q), due_ms, line,
                    sizeof line);
    mu__hide_control(line);
    q->config->progress(q->config->owner, line);
}

/* Wait until `due_ms`, but not beyond the deadline. */
static enum mu__pause pause_query(struct query *q, uint64_t due_ms, bool may_hurry)
{
    struct mu__sources *sources = q->config->sources;
    enum mu__pause outcome =
        sources->ops->pause(sources, due_ms < q->end_ms ? due_ms : q->end_ms, may_hurry);

    q->stopped |= outcome == MU__PAUSE_STOPPED;
    return outcome;
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
static bool is_passing_answer(const struct mu__exchange *exchange)
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

static void set_exchange_due(struct mu__exchange *exchange, uint64_t due_ms)
{
    exchange->due_ms = due_ms;
    mu__exchange_reason(exchange, exchange->reason, sizeof exchange->reason);
}

static void retry_exchange(const struct query *q, struct mu__exchange *exchange,
                           const struct mu__retry *retry, uint64_t due_ms)
{
    char requested[256];
    char what[300];

    set_exchange_due(exchange, due_ms);
    mu__request_describe(&exchange->request, requested, sizeof requested);
    (void)snprintf(what, sizeof what, "asking %s failed", requested);
    log_query_retry(q, retry, what, exchange->reason, exchange->tries, due_ms);
}

/* Whether a failed exchange whose retry would be after the deadline stays open until
 * then, since others may still be answered. Not when a server's Retry-After is after
 * the deadline. */
static bool waits_for_end(const struct query *q, const struct mu__exchange *exchange)
{
    return is_passing_answer(exchange) && q->config->limits.timeout_ms > 0 &&
           (exchange->request.tries == 0 || exchange->tries < exchange->request.tries) &&
           (int64_t)exchange->answer.retry_after_ms < get_query_left_ms(q);
}

static void judge_exchange(const struct query *q, struct mu__exchange *exchange)
{
    struct mu__retry retry = {.tries_max = exchange->request.tries, .end_ms = q->end_ms};
    uint64_t due_ms;

    exchange->answered_ms = get_query_now(q);
    if (q->config->limits.timeout_ms != 0 && is_passing_answer(exchange) &&
        mu__retry_next(&retry, exchange->tries, exchange->answered_ms,
                       get_query_random(q), exchange->answer.retry_after_ms, &due_ms))
        retry_exchange(q, exchange, &retry, due_ms);
    else if (waits_for_end(q, exchange))
        set_exchange_due(exchange, q->end_ms);
    else
        exchange->settled = true;
}

/* Send the exchanges that are due, and judge their answers. One that is still sent was
 * cut off. */
static void send_due(struct query *q, struct mu__exchange *const *batch, size_t count)
{
    struct mu__sources *sources = q->config->sources;
    uint64_t now_ms = get_query_now(q);

    for (size_t i = 0; i < count; i++)
        if (!batch[i]->settled && batch[i]->due_ms <= now_ms)
            mu__exchange_send(batch[i]);
    sources->ops->answer(sources, batch, count,
                         q->config->limits.timeout_ms == 0 ? UINT64_MAX : q->end_ms);
    for (size_t i = 0; i < count; i++) {
        if (batch[i]->is_sent)
            q->ended = true;
        else if (!batch[i]->settled && batch[i]->due_ms <= now_ms)
            judge_exchange(q, batch[i]);
    }
}

static bool is_of_path(const struct mu__exchange *exchange)
{
    return exchange->request.kind == MU__REQUEST_FILE ||
           exchange->request.kind == MU__REQUEST_FOLDER;
}

/* When the next exchange is due; UINT64_MAX: all are settled. */
static uint64_t get_next_due(struct mu__exchange *const *batch, size_t count,
                             bool *ret_any_paths)
{
    uint64_t due_ms = UINT64_MAX;

    *ret_any_paths = false;
    for (size_t i = 0; i < count; i++) {
        if (batch[i]->settled)
            continue;
        *ret_any_paths |= is_of_path(batch[i]);
        if (batch[i]->due_ms < due_ms)
            due_ms = batch[i]->due_ms;
    }
    return due_ms;
}

/* A watched path has changed: read files and folders again at once. */
static void hurry_path_exchanges(const struct query *q, struct mu__exchange *const *batch,
                                 size_t count)
{
    uint64_t now_ms = get_query_now(q);

    for (size_t i = 0; i < count; i++)
        if (!batch[i]->settled && is_of_path(batch[i]) && batch[i]->due_ms > now_ms)
            batch[i]->due_ms = now_ms;
}

static bool has_query_ended(const struct query *q)
{
    return q->ended || q->stopped ||
           (q->config->limits.timeout_ms > 0 && get_query_now(q) >= q->end_ms);
}

static void op_settle(struct mu__settler *settler, struct mu__exchange *const *batch,
                      size_t count)
{
    struct query *q = (struct query *)settler;
    bool any_paths;
    uint64_t due_ms;

    q->ended = has_query_ended(q);
    while (!q->ended && (due_ms = get_next_due(batch, count, &any_paths)) != UINT64_MAX) {
        if (due_ms <= get_query_now(q))
            send_due(q, batch, count);
        else if (pause_query(q, due_ms, any_paths) == MU__PAUSE_HURRIED)
            hurry_path_exchanges(q, batch, count);
        q->ended = has_query_ended(q);
    }
    for (size_t i = 0; i < count; i++)
        if (!batch[i]->settled)
            mu__exchange_give_up(batch[i]);
}

/* ---- Rounds ---- */

static int run_query_round(struct query *q)
{
    struct mu__requests *requests;

    if (mu__requests_new(q->config->sources, &q->settler, &requests) != 0)
        return mu_error_set(&q->last, -MU_ENOMEM, "out of memory");
    mu__requests_free(q->requests);
    q->requests = requests;
    q->round_ms = get_query_now(q);
    return q->config->run(q->config->run_owner, requests, &q->last);
}

static int give_up_query(const struct query *q, int code, mu_error *ret_error)
{
    char tried[32];

    mu__retry_time(get_query_now(q) - q->began_ms, tried, sizeof tried);
    return mu_error_set(ret_error, code, "%.460s; tried for %s", q->last.message, tried);
}

/* Why a request failed in the round that the deadline has cut off; "" when none did. */
static const char *late_reason(const struct query *q)
{
    const struct mu__exchange *exchange;

    for (size_t i = 0; (exchange = mu__requests_at(q->requests, i)) != NULL; i++)
        if (is_passing_answer(exchange) && exchange->reason[0] != '\0')
            return exchange->reason;
    return "";
}

/* The error to report: that of the last complete round says more than that of a round
 * that was cut off. */
static void remember_round_error(struct query *q)
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

/* The longest Retry-After of the servers that failed, counted from now, ms. */
static uint32_t requested_pause_ms(const struct query *q)
{
    const struct mu__exchange *exchange;
    uint64_t now_ms = get_query_now(q);
    uint64_t until_ms = now_ms;

    for (size_t i = 0; (exchange = mu__requests_at(q->requests, i)) != NULL; i++)
        if (is_passing_answer(exchange) && exchange->answer.retry_after_ms != 0 &&
            until_ms < exchange->answered_ms + exchange->answer.retry_after_ms)
            until_ms = exchange->answered_ms + exchange->answer.retry_after_ms;
    return (uint32_t)(until_ms - now_ms);
}

/* The earliest begin of the next round: REST times the length of the last one, or the
 * end of a server's Retry-After. */
static uint64_t rest_until(const struct query *q)
{
    uint64_t now_ms = get_query_now(q);
    uint64_t rest_ms = REST * (now_ms - q->round_ms);
    uint64_t requested_ms = requested_pause_ms(q);

    return now_ms + (rest_ms > requested_ms ? rest_ms : requested_ms);
}

static void pause_between_rounds(struct query *q, uint64_t again_ms)
{
    uint64_t rest_ms = rest_until(q);

    if (pause_query(q, again_ms, true) == MU__PAUSE_HURRIED)
        (void)pause_query(q, rest_ms < again_ms ? rest_ms : again_ms, false);
}

/* After a round that has failed: pause, and return true when there is to be another one;
 * else *ret_error is the conclusion. */
static bool begins_another_round(struct query *q, int rv, mu_error *ret_error)
{
    bool passing = rv == -MU_EUNAVAILABLE || rv == -MU_EDEADLINE;
    struct mu__retry retry = {.most_ms = q->config->limits.pause_most_ms,
                              .end_ms = q->end_ms};
    uint64_t again_ms;

    if (q->config->limits.timeout_ms == 0 || (!passing && !q->ended)) {
        *ret_error = q->last;
        return false;
    }
    if (passing)
        remember_round_error(q);
    q->rounds++;
    if (!passing ||
        !mu__retry_next(&retry, q->rounds, get_query_now(q), get_query_random(q),
                        requested_pause_ms(q), &again_ms)) {
        (void)give_up_query(q, passing ? -MU_EDEADLINE : rv, ret_error);
        return false;
    }
    log_query_retry(q, &retry, q->last.message, NULL,
                    q->config->limits.rounds_before + q->rounds, again_ms);
    pause_between_rounds(q, again_ms);
    return true;
}

int mu__query(const struct mu__query_config *config, mu_error *ret_error,
              struct mu__query_notes *ret_notes)
{
    struct query q = {.settler = {op_settle, op_left_ms}, .config = config};
    mu_error error = {0};
    int rv;

    q.began_ms = get_query_now(&q);
    q.end_ms = config->limits.timeout_ms < 0
                   ? MU__RETRY_NO_END
                   : q.began_ms + (uint64_t)config->limits.timeout_ms;
    do {
        rv = run_query_round(&q);
    } while (rv != 0 && !q.stopped && begins_another_round(&q, rv, &error) && !q.stopped);
    if (rv != 0 && q.stopped)
        (void)mu_error_set(&error, -MU_ECANCELLED, "the query was stopped");
    if (rv != 0 && ret_error != NULL)
        *ret_error = error;
    if (q.requests != NULL)
        mu__requests_end(q.requests);
    *ret_notes = (struct mu__query_notes){q.requests, q.rounds};
    return rv == 0 ? 0 : error.code;
}
