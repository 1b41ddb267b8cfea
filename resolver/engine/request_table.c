/* The requests of one query. */
#include "resolver/engine/exchange.h"

#include "resolver/engine/request.h"
#include "runtime/base/array.h"

#include <assert.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    ROOM_FIRST = 16,
    LATE_MAX = 1000, /* requests after mu__requests_end that are answered */
    SAID_MAX = 256,
    SAID_BYTES = 320
};

struct mu__requests {
    struct mu__requester *requester;
    void (*answered)(void *owner, struct mu__exchange *exchange);
    void *owner;
    struct mu__exchange **items;   /* in the order of requesting */
    size_t count;
    size_t room;
    struct mu__hash_table table;   /* of the items, by what was requested */
    bool has_ended;                /* mu__requests_end was called */
    unsigned late;                 /* new requests since then */
    bool is_out_of_memory;         /* there was no memory for a request of this run */
    unsigned runs;
    const char *who;
    char **explanation; /* lines "RESOLVER: text" */
    size_t explanation_count;
    struct mu__answer no_memory;
    struct mu__answer too_many;
};

/* Answered within mu__requests_get. */
static bool is_at_once(enum mu__request_kind kind)
{
    return kind == MU__REQUEST_VARIABLE || kind == MU__REQUEST_HOST_NAME ||
           kind == MU__REQUEST_CLOCK;
}

/* ---- An exchange ---- */

static void answer_done(struct mu__answer *answer)
{
    free(answer->data);
    *answer = (struct mu__answer){0};
}

static void exchange_free(struct mu__exchange *exchange)
{
    if (exchange->answer.parsed_done != NULL)
        exchange->answer.parsed_done(exchange->answer.parsed);
    mu__request_free_copy(&exchange->request);
    answer_done(&exchange->answer);
    free(exchange);
}

/* ---- Finding ---- */

static struct mu__exchange *find(const struct mu__requests *requests,
                                 const struct mu__request *request)
{
    struct mu__hash_node *node =
        mu__hash_table_find(&requests->table, mu__request_hash(request));

    for (; node != NULL; node = mu__hash_next(node)) {
        struct mu__exchange *exchange = (struct mu__exchange *)node;

        if (mu__request_same(&exchange->request, request))
            return exchange;
    }
    return NULL;
}

static struct mu__exchange *add(struct mu__requests *requests,
                                const struct mu__request *request)
{
    struct mu__exchange *exchange = calloc(1, sizeof *exchange);

    if (exchange == NULL)
        return NULL;
    if (!MU__ARRAY_RESERVE(&requests->items, &requests->room, requests->count,
                           ROOM_FIRST) ||
        mu__request_copy(request, &exchange->request) != 0) {
        free(exchange);
        return NULL;
    }
    if (mu__hash_table_add(&requests->table, mu__request_hash(request),
                           &exchange->node) != 0) {
        exchange_free(exchange);
        return NULL;
    }
    exchange->requests = requests;
    exchange->who = requests->who;
    requests->items[requests->count++] = exchange;
    return exchange;
}

/* ---- Requesting ---- */

void mu__exchange_retry(struct mu__exchange *exchange)
{
    assert(!exchange->settled && !exchange->in_flight);
    answer_done(&exchange->answer);
    exchange->in_flight = true;
    exchange->due_ms = 0;
    exchange->requests->requester->ops->request(exchange->requests->requester, exchange);
}

const struct mu__answer *mu__requests_get(struct mu__requests *requests,
                                          const struct mu__request *request)
{
    struct mu__exchange *exchange = find(requests, request);
    bool is_late = requests->has_ended && !is_at_once(request->kind);

    if (exchange == NULL && is_late && requests->late++ >= LATE_MAX)
        return NULL;
    if (exchange == NULL && requests->count >= MU__REQUESTS_MAX &&
        !is_at_once(request->kind))
        return &requests->too_many;
    if (exchange == NULL) {
        exchange = requests->is_out_of_memory ? NULL : add(requests, request);
        requests->is_out_of_memory = exchange == NULL;
        if (exchange == NULL)
            return &requests->no_memory;
        if (is_late)
            mu__exchange_give_up(exchange);
        else
            mu__exchange_retry(exchange);
        assert(exchange->settled || !is_at_once(request->kind));
    }
    if (is_at_once(request->kind) && exchange->answer.code == -MU_ENOMEM)
        requests->is_out_of_memory = true;
    return exchange->settled ? &exchange->answer : NULL;
}

void mu__exchange_answer(struct mu__exchange *exchange)
{
    struct mu__requests *requests = exchange->requests;

    assert(exchange->in_flight && !exchange->settled);
    assert(exchange->answer.code != 0 || exchange->answer.data != NULL);
    exchange->in_flight = false;
    exchange->tries++;
    if (requests->answered == NULL || is_at_once(exchange->request.kind))
        mu__exchange_settle(exchange);
    else
        requests->answered(requests->owner, exchange);
}

void mu__exchange_settle(struct mu__exchange *exchange)
{
    assert(!exchange->settled && !exchange->in_flight);
    exchange->settled = true;
    exchange->due_ms = 0;
}

void mu__exchange_give_up(struct mu__exchange *exchange)
{
    struct mu__requests *requests = exchange->requests;
    bool has_answer = !exchange->in_flight && exchange->tries > 0;
    char requested[256];

    assert(!exchange->settled);
    if (exchange->in_flight)
        requests->requester->ops->cancel(requests->requester, exchange);
    exchange->in_flight = false;
    if (!has_answer) {
        answer_done(&exchange->answer);
        mu__request_describe(&exchange->request, requested, sizeof requested);
        exchange->answer.code = mu_error_set(
            &exchange->answer.error, -MU_EDEADLINE, "%s: no answer in time%s%s",
            requested,
            exchange->reason[0] == '\0' ? "" : "; the last try: ", exchange->reason);
    }
    mu__exchange_settle(exchange);
}

void mu__requests_end(struct mu__requests *requests)
{
    requests->has_ended = true;
    for (size_t i = 0; i < requests->count; i++)
        if (!requests->items[i]->settled)
            mu__exchange_give_up(requests->items[i]);
}

/* Of a request that is answered at once. */
static const char *text_at_once(struct mu__requests *requests, enum mu__request_kind kind,
                                const char *name)
{
    const struct mu__request request = {.kind = kind, .name = name};
    const struct mu__answer *answer = mu__requests_get(requests, &request);

    return answer->code == 0 ? answer->data : NULL;
}

const char *mu__request_variable(struct mu__requests *requests, const char *name)
{
    return text_at_once(requests, MU__REQUEST_VARIABLE, name);
}

const char *mu__request_host_name(struct mu__requests *requests)
{
    return text_at_once(requests, MU__REQUEST_HOST_NAME, NULL);
}

const struct mu__answer *mu__request_file(struct mu__requests *requests, const char *path)
{
    const struct mu__request request = {.kind = MU__REQUEST_FILE, .name = path};

    return mu__requests_get(requests, &request);
}

/* Free the bytes of an answer that was parsed: a list of pods is many pages of some
 * megabytes each. */
static void drop_bytes(struct mu__answer *answer)
{
    char *less = realloc(answer->data, 1);

    answer->data = less == NULL ? answer->data : less;
    answer->data[0] = '\0';
}

void mu__answer_set_parsed(const struct mu__answer *answer, void *parsed,
                           void (*done)(void *parsed))
{
    struct mu__answer *own = (struct mu__answer *)(uintptr_t)answer;

    assert(answer->parsed == NULL);
    own->parsed = parsed;
    own->parsed_done = done;
    drop_bytes(own);
}

/* ---- Requests as a whole ---- */

int mu__requests_new(struct mu__requester *requester,
                     void (*answered)(void *owner, struct mu__exchange *exchange),
                     void *owner, struct mu__requests **ret_requests)
{
    struct mu__requests *requests = calloc(1, sizeof *requests);

    if (requests == NULL)
        return -MU_ENOMEM;
    requests->requester = requester;
    requests->answered = answered;
    requests->owner = owner;
    requests->no_memory.code =
        mu_error_set(&requests->no_memory.error, -MU_ENOMEM, "out of memory");
    requests->too_many.code =
        mu_error_set(&requests->too_many.error, -MU_EEXHAUSTED,
                     "expected at most %d requests of one query", (int)MU__REQUESTS_MAX);
    *ret_requests = requests;
    return 0;
}

static void drop_explanation(struct mu__requests *requests)
{
    for (size_t i = 0; i < requests->explanation_count; i++)
        free(requests->explanation[i]);
    requests->explanation_count = 0;
}

void mu__requests_free(struct mu__requests *requests)
{
    if (requests == NULL)
        return;
    for (size_t i = 0; i < requests->count; i++)
        if (requests->items[i]->in_flight)
            requests->requester->ops->cancel(requests->requester, requests->items[i]);
    for (size_t i = 0; i < requests->count; i++)
        exchange_free(requests->items[i]);
    drop_explanation(requests);
    free(requests->explanation);
    mu__hash_table_done(&requests->table);
    free(requests->items);
    free(requests);
}

void mu__requests_begin_pass(struct mu__requests *requests, const char *who)
{
    if (who == NULL) {
        drop_explanation(requests);
        requests->runs++;
        requests->is_out_of_memory = false;
    }
    requests->who = who;
}

bool mu__requests_out_of_memory(const struct mu__requests *requests)
{
    return requests->is_out_of_memory;
}

unsigned mu__requests_runs(const struct mu__requests *requests)
{
    return requests->runs;
}

struct mu__exchange *mu__requests_at(const struct mu__requests *requests, size_t i)
{
    return i < requests->count ? requests->items[i] : NULL;
}

/* Lines beyond SAID_MAX, and lines without memory, are dropped. */
void mu__requests_explain(struct mu__requests *requests, const char *format, ...)
{
    char line[SAID_BYTES];
    va_list arguments;
    int used;

    if (requests->explanation == NULL)
        requests->explanation = calloc(SAID_MAX, sizeof *requests->explanation);
    if (requests->explanation == NULL || requests->explanation_count == SAID_MAX)
        return;
    used =
        snprintf(line, sizeof line, "%s: ", requests->who == NULL ? "" : requests->who);
    va_start(arguments, format);
    (void)vsnprintf(line + used, sizeof line - (size_t)used, format, arguments);
    va_end(arguments);
    requests->explanation[requests->explanation_count] = strdup(line);
    requests->explanation_count +=
        requests->explanation[requests->explanation_count] != NULL;
}

const char *mu__requests_explanation(const struct mu__requests *requests, size_t i)
{
    return i < requests->explanation_count ? requests->explanation[i] : NULL;
}
