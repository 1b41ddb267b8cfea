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

enum { ROOM_FIRST = 16, SAID_MAX = 256, SAID_BYTES = 320 };

struct mu__requests {
    struct mu__sources *sources;
    struct mu__settler *settler;
    struct mu__exchange **items; /* in the order of requesting */
    size_t count;
    size_t room;
    struct mu__hash_table table; /* of the items, by what was requested */
    bool is_out_of_memory;       /* there was no memory for a request */
    const char *who;
    char **explanation; /* lines "RESOLVER: text" */
    size_t explanation_count;
    struct mu__answer no_memory;
    struct mu__answer too_many;
};

/* They never wait, and are never tried again. */
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

static struct mu__exchange *find_exchange(const struct mu__requests *requests,
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

static struct mu__exchange *add_exchange(struct mu__requests *requests,
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
    exchange->who = requests->who;
    requests->items[requests->count++] = exchange;
    return exchange;
}

/* ---- Requesting ---- */

void mu__exchange_send(struct mu__exchange *exchange)
{
    assert(!exchange->settled && !exchange->is_sent);
    answer_done(&exchange->answer);
    exchange->is_sent = true;
}

void mu__exchange_answered(struct mu__exchange *exchange)
{
    assert(exchange->is_sent && !exchange->settled);
    assert(exchange->answer.code != 0 || exchange->answer.data != NULL);
    exchange->is_sent = false;
    exchange->tries++;
}

void mu__requests_end(struct mu__requests *requests)
{
    requests->settler = NULL;
}

static void settle_first(const struct mu__requests *requests,
                         struct mu__exchange *const *batch, size_t count)
{
    for (size_t i = 0; i < count; i++)
        mu__exchange_send(batch[i]);
    requests->sources->ops->answer(requests->sources, batch, count, UINT64_MAX);
    for (size_t i = 0; i < count; i++)
        batch[i]->settled = true;
}

/* Exchanges that are not settled. */
static void settle_exchanges(const struct mu__requests *requests,
                             struct mu__exchange *const *batch, size_t count)
{
    if (count == 0)
        return;
    if (requests->settler == NULL || is_at_once(batch[0]->request.kind))
        settle_first(requests, batch, count);
    else
        requests->settler->settle(requests->settler, batch, count);
}

/* The exchange of a request, which may have to be settled; NULL: *ret_refused says why
 * there is none. */
static struct mu__exchange *enter_request(struct mu__requests *requests,
                                          const struct mu__request *request,
                                          const struct mu__answer **ret_refused)
{
    struct mu__exchange *exchange = find_exchange(requests, request);

    *ret_refused = &requests->no_memory;
    if (exchange != NULL)
        return exchange;
    if (requests->count >= MU__REQUESTS_MAX && !is_at_once(request->kind)) {
        *ret_refused = &requests->too_many;
        return NULL;
    }
    exchange = requests->is_out_of_memory ? NULL : add_exchange(requests, request);
    requests->is_out_of_memory = exchange == NULL;
    return exchange;
}

const struct mu__answer *mu__requests_get(struct mu__requests *requests,
                                          const struct mu__request *request)
{
    const struct mu__answer *refused;
    struct mu__exchange *exchange = enter_request(requests, request, &refused);

    if (exchange == NULL)
        return refused;
    if (!exchange->settled)
        settle_exchanges(requests, &exchange, 1);
    assert(exchange->settled);
    if (is_at_once(request->kind) && exchange->answer.code == -MU_ENOMEM)
        requests->is_out_of_memory = true;
    return &exchange->answer;
}

/* Without memory for the batch they are made one after the other. */
void mu__requests_get_all(struct mu__requests *requests, const struct mu__request *list,
                          size_t count)
{
    struct mu__exchange **batch = calloc(count + 1, sizeof(struct mu__exchange *));
    const struct mu__answer *refused;
    size_t used = 0;

    for (size_t i = 0; batch != NULL && i < count; i++) {
        struct mu__exchange *exchange = enter_request(requests, &list[i], &refused);

        if (exchange == NULL || exchange->settled || exchange->is_sent)
            continue;
        exchange->is_sent = true; /* each once */
        batch[used++] = exchange;
    }
    for (size_t i = 0; i < used; i++)
        batch[i]->is_sent = false;
    settle_exchanges(requests, batch, used);
    free(batch);
}

void mu__exchange_give_up(struct mu__exchange *exchange)
{
    char requested[256];

    assert(!exchange->settled);
    if (exchange->is_sent || exchange->tries == 0) {
        answer_done(&exchange->answer);
        mu__request_describe(&exchange->request, requested, sizeof requested);
        exchange->answer.code = mu_error_set(
            &exchange->answer.error, -MU_EDEADLINE, "%s: no answer in time%s%s",
            requested,
            exchange->reason[0] == '\0' ? "" : "; the last try: ", exchange->reason);
    }
    exchange->is_sent = false;
    exchange->settled = true;
}

/* The text of a request that is answered at once. */
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

int mu__requests_new(struct mu__sources *sources, struct mu__settler *settler,
                     struct mu__requests **ret_requests)
{
    struct mu__requests *requests = calloc(1, sizeof *requests);

    if (requests == NULL)
        return -MU_ENOMEM;
    requests->sources = sources;
    requests->settler = settler;
    requests->no_memory.code =
        mu_error_set(&requests->no_memory.error, -MU_ENOMEM, "out of memory");
    requests->too_many.code =
        mu_error_set(&requests->too_many.error, -MU_EEXHAUSTED,
                     "expected at most %d requests of one query", (int)MU__REQUESTS_MAX);
    *ret_requests = requests;
    return 0;
}

void mu__requests_free(struct mu__requests *requests)
{
    if (requests == NULL)
        return;
    for (size_t i = 0; i < requests->count; i++)
        exchange_free(requests->items[i]);
    for (size_t i = 0; i < requests->explanation_count; i++)
        free(requests->explanation[i]);
    free(requests->explanation);
    mu__hash_table_done(&requests->table);
    free(requests->items);
    free(requests);
}

void mu__requests_begin_pass(struct mu__requests *requests, const char *who)
{
    requests->who = who;
}

bool mu__requests_out_of_memory(const struct mu__requests *requests)
{
    return requests->is_out_of_memory;
}

int64_t mu__requests_left_ms(const struct mu__requests *requests)
{
    return requests->settler == NULL ? 0 : requests->settler->left_ms(requests->settler);
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
