/* Look-ups of rows: the ids of a partition are a chunk, or several; chunks of one server
 * are requested together, and answered as the server has them. */
#include "actors/variables/actions.h"

#include "actors/keep.h"
#include "actors/ps/tables/lookup_spans.h"
#include "actors/ps/tables/narrow_rows.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    FRAME_ROWS_BYTES = 256 << 10, /* of one answer, if a row has less */
    POOLED_IDS = 32 << 10, /* of one request for bags: each answer has the sums of all */
    POOLED_ID_BYTES = 16,  /* the id, its bag and its weight */
    FRAME_BITS = 24        /* of a token: the number of the request */
};

enum chunk_state { CHUNK_QUEUED, CHUNK_SENT, CHUNK_DONE };

struct lookup_chunk {
    uint32_t partition;
    uint32_t first; /* of the sorted ids */
    uint32_t count;
    enum chunk_state state;
    uint32_t server; /* SENT: to this one, in the request with this token, */
    uint64_t token;
    uint32_t request_first; /* behind so many ids */
};

struct lookup {
    struct mu__list_node node;
    struct mu__table_call *call;
    uint64_t id;
    uint64_t requests;
    uint64_t began_ms;
    uint64_t bytes_under_way;
    uint32_t queued; /* chunks */
    uint32_t left;   /* chunks that are not done */
    uint32_t chunks_count;
    struct lookup_chunk chunks[];
};

static struct lookup *first_lookup(const struct variables *v)
{
    return MU__LIST_FIRST(&v->lookups, struct lookup, node);
}

static struct lookup *next_lookup(const struct lookup *lookup)
{
    return MU__LIST_NEXT(lookup, struct lookup, node);
}

/* The first with a higher id, which are in rising order; the new ones are looked at
 * first. NULL: none has. */
static struct lookup *first_lookup_after(const struct variables *v, uint64_t id)
{
    struct mu__list_node *at = v->lookups.last;
    struct lookup *found = NULL;

    for (; at != NULL && MU__LIST_ENTRY(at, struct lookup, node)->id > id; at = at->prev)
        found = MU__LIST_ENTRY(at, struct lookup, node);
    return found;
}

/* Of a row in an answer, or of a sum. */
static uint32_t row_bytes_of(const struct mu__table_call *call)
{
    bool is_narrow = call->dtype != 0 && call->bags.count == 0;

    return call->dim * (uint32_t)(is_narrow ? sizeof(uint16_t) : sizeof(float));
}

/* What an id weighs in the window, and so many of them. */
static uint32_t id_weight(const struct mu__table_call *call)
{
    return call->bags.count != 0 ? POOLED_ID_BYTES : row_bytes_of(call);
}

static uint64_t weight_of(const struct lookup *lookup, uint32_t ids)
{
    return (uint64_t)ids * id_weight(lookup->call);
}

/* ---- The end ---- */

/* The last one of those that belong together completes their call, with the error of one
 * that has failed. */
static void complete_table_lookup(struct mu__table_call *call, int code)
{
    struct mu__table_call *lead = call->lead;

    if (code != 0 && call != lead)
        lead->call.error = call->call.error;
    if (code != 0)
        lead->call.code = code;
    if (--lead->lookups_left == 0)
        mu__call_complete(&lead->call, lead->call.code);
}

static void complete_lookup(struct mu__ctx *ctx, struct variables *v,
                            struct lookup *lookup, int code)
{
    struct mu__table_call *call = lookup->call;

    mu__timer_cancel(ctx, call->call.timer);
    mu__list_remove(&v->lookups, &lookup->node);
    free(lookup);
    complete_table_lookup(call, code);
}

static void fail_lookup(struct mu__ctx *ctx, struct variables *v, struct lookup *lookup,
                        uint32_t server, int code, const char *reason)
{
    mu_error *error = &lookup->call->call.error;

    (void)mu_error_set(error, code, "table %s: lookup: %s", lookup->call->name, reason);
    error->kind = MU_ERROR_SERVER;
    (void)snprintf(error->task, sizeof error->task, "/job:ps/task:%" PRIu32, server);
    complete_lookup(ctx, v, lookup, code);
}

/* A partition is waited for: its server is away, or does not answer. */
static void fail_waiting_lookup(struct mu__ctx *ctx, struct variables *v,
                                struct lookup *lookup, const struct lookup_chunk *chunk)
{
    uint32_t server = server_of(v, chunk->partition);
    const struct variable_server *s = v->servers[server];
    char words[MU__ERROR_TEXT_MAX + 1];

    mu__vars_server_words(ctx, v, chunk->partition, lookup->began_ms, words,
                          sizeof words);
    fail_lookup(ctx, v, lookup, server,
                s->was_up && !s->up ? -MU_EUNAVAILABLE : -MU_EDEADLINE, words);
}

static const struct lookup_chunk *first_missing(const struct lookup *lookup)
{
    const struct lookup_chunk *chunk = lookup->chunks;

    while (chunk->state == CHUNK_DONE)
        chunk++;
    return chunk;
}

bool mu__vars_lookup_timeout(struct mu__ctx *ctx, struct variables *v, uint64_t id)
{
    struct lookup *lookup = first_lookup(v);

    while (lookup != NULL && lookup->id != id)
        lookup = next_lookup(lookup);
    if (lookup != NULL)
        fail_waiting_lookup(ctx, v, lookup, first_missing(lookup));
    return lookup != NULL;
}

/* NULL: it needs no server that is lost. */
static const struct lookup_chunk *find_lost(
    struct mu__ctx *ctx, const struct variables *v, const struct lookup *lookup)
{
    for (uint32_t i = 0; i < lookup->chunks_count; i++)
        if (lookup->chunks[i].state != CHUNK_DONE &&
            mu__vars_is_lost(ctx, v, server_of(v, lookup->chunks[i].partition)))
            return &lookup->chunks[i];
    return NULL;
}

static void end_lost_from(struct mu__ctx *ctx, struct variables *v, struct lookup *first)
{
    struct lookup *next;

    for (struct lookup *lookup = first; lookup != NULL; lookup = next) {
        const struct lookup_chunk *lost = find_lost(ctx, v, lookup);

        next = next_lookup(lookup);
        if (lost != NULL)
            fail_waiting_lookup(ctx, v, lookup, lost);
    }
}

void mu__vars_end_lost_lookups(struct mu__ctx *ctx, struct variables *v)
{
    end_lost_from(ctx, v, first_lookup(v));
}

void mu__vars_close_lookups(struct mu__ctx *ctx, struct variables *v)
{
    struct lookup *lookup;

    while ((lookup = first_lookup(v)) != NULL) {
        (void)mu_error_set(&lookup->call->call.error, -MU_ECLOSED,
                           "table %s: lookup: the node is being closed",
                           lookup->call->name);
        complete_lookup(ctx, v, lookup, -MU_ECLOSED);
    }
}

/* ---- The begin ---- */

static uint32_t chunk_ids_max(const struct mu__table_call *call)
{
    uint32_t count = FRAME_ROWS_BYTES / id_weight(call);

    if (call->bags.count != 0)
        return POOLED_IDS;
    return count == 0 ? 1 : count;
}

static uint32_t count_chunks(const struct mu__table_call *call)
{
    uint32_t most = chunk_ids_max(call);
    uint32_t count = 0;

    for (uint32_t p = call->ids->first;
         p <= call->ids->last && call->ids->ends[p] < call->ids->count; p++)
        count += (call->ids->ends[p + 1] - call->ids->ends[p] + most - 1) / most;
    return count;
}

static void cut_chunks(struct lookup *lookup)
{
    const struct mu__sorted_ids *ids = lookup->call->ids;
    uint32_t most = chunk_ids_max(lookup->call);

    for (uint32_t p = ids->first; p <= ids->last && ids->ends[p] < ids->count; p++)
        for (uint32_t first = ids->ends[p]; first < ids->ends[p + 1]; first += most) {
            uint32_t left = ids->ends[p + 1] - first;

            lookup->chunks[lookup->chunks_count++] = (struct lookup_chunk){
                .partition = p, .first = first, .count = left < most ? left : most};
        }
    lookup->queued = lookup->left = lookup->chunks_count;
}

static int plan_lookup(struct mu__ctx *ctx, struct variables *v,
                       struct mu__table_call *call, struct lookup **ret_lookup)
{
    int rv = mu__vars_need_servers(ctx, v, call->servers_count);
    struct lookup *lookup;

    if (rv != 0)
        return rv;
    lookup = calloc(1, sizeof *lookup + count_chunks(call) * sizeof lookup->chunks[0]);
    if (lookup == NULL)
        return -MU_ENOMEM;
    lookup->id = ++v->id_last;
    lookup->call = call;
    lookup->began_ms = mu__now_ms(ctx);
    call->call.timer = 0;
    if (call->call.timeout_ms >= 0)
        call->call.timer =
            mu__timer_set(ctx, (uint64_t)call->call.timeout_ms, lookup->id);
    if (call->call.timeout_ms >= 0 && call->call.timer == 0) {
        free(lookup);
        return -MU_EEXHAUSTED;
    }
    cut_chunks(lookup);
    *ret_lookup = lookup;
    return 0;
}

static void begin_one_lookup(struct mu__ctx *ctx, struct variables *v,
                             struct mu__table_call *call)
{
    struct lookup *lookup;
    int rv = plan_lookup(ctx, v, call, &lookup);

    if (rv != 0) {
        (void)mu_error_set(&call->call.error, rv, "table %s: lookup: %s", call->name,
                           mu_strerror(rv));
        complete_table_lookup(call, rv);
        return;
    }
    mu__list_append(&v->lookups, &lookup->node);
}

/* ---- Requests ---- */

/* One that is put together. */
struct lookup_request {
    uint32_t server;
    uint32_t ids_count;
    uint32_t spans_count;
    struct lookup_chunk *chunks[MU__PARTITIONS];
};

static void gather_request(const struct variables *v, struct lookup *lookup,
                           struct lookup_request *request)
{
    uint32_t most = chunk_ids_max(lookup->call);

    request->ids_count = request->spans_count = 0;
    for (uint32_t i = 0; i < lookup->chunks_count; i++) {
        struct lookup_chunk *chunk = &lookup->chunks[i];
        const struct placement *placement = &v->placements[chunk->partition];

        if (chunk->state != CHUNK_QUEUED || !placement->served ||
            placement->server != request->server)
            continue;
        if (request->ids_count + chunk->count > most ||
            request->spans_count == MU__PARTITIONS)
            return;
        request->chunks[request->spans_count++] = chunk;
        request->ids_count += chunk->count;
    }
}

/* The bags of a request's ids, and their weights. */
static void pack_bags(const struct mu__table_call *call,
                      const struct lookup_request *request, uint8_t *memory,
                      struct mu__table_lookup *body)
{
    uint32_t bytes = request->ids_count * (uint32_t)sizeof(uint32_t);
    uint32_t at = 0;

    body->bags = call->bags.count;
    body->bag_of = (struct mu__view){memory, bytes};
    if (call->bags.weights != NULL)
        body->weights = (struct mu__view){memory + bytes, bytes};
    for (uint32_t i = 0; i < request->spans_count; i++) {
        const struct lookup_chunk *chunk = request->chunks[i];

        mu__lookup_bags_put(&call->bags, call->ids->positions + chunk->first,
                            chunk->count, memory + at, memory + bytes + at);
        at += chunk->count * (uint32_t)sizeof(uint32_t);
    }
}

/* What a request has, in the caller's memory: a span for each chunk, and POOLED_ID_BYTES
 * for each id. */
static void pack_request(const struct variables *v, const struct lookup *lookup,
                         const struct lookup_request *request, uint8_t *memory,
                         struct mu__table_lookup *body)
{
    uint32_t ids_bytes = request->ids_count * (uint32_t)sizeof(uint64_t);
    uint8_t *ids = memory;
    uint8_t *spans = memory + ids_bytes;

    body->ids = (struct mu__view){ids, ids_bytes};
    body->spans = (struct mu__view){spans, request->spans_count * MU__LOOKUP_SPAN_BYTES};
    for (uint32_t i = 0; i < request->spans_count; i++) {
        const struct lookup_chunk *chunk = request->chunks[i];
        size_t bytes = chunk->count * sizeof(uint64_t);

        memcpy(ids, lookup->call->ids->ids + chunk->first, bytes);
        ids += bytes;
        spans = mu__lookup_spans_put(
            spans, &(struct mu__lookup_span){chunk->partition, chunk->count,
                                             v->placements[chunk->partition].generation});
    }
    if (lookup->call->bags.count != 0)
        pack_bags(lookup->call, request, spans, body);
}

static void note_requested(struct lookup *lookup, const struct lookup_request *request,
                           uint64_t token)
{
    uint32_t first = 0;

    for (uint32_t i = 0; i < request->spans_count; i++) {
        struct lookup_chunk *chunk = request->chunks[i];

        chunk->state = CHUNK_SENT;
        chunk->server = request->server;
        chunk->token = token;
        chunk->request_first = first;
        first += chunk->count;
    }
    lookup->queued -= request->spans_count;
    lookup->bytes_under_way += weight_of(lookup, first);
}

static int send_lookup(struct mu__ctx *ctx, const struct variables *v,
                       struct lookup *lookup, const struct lookup_request *request)
{
    struct mu__table_lookup body = {
        .token = lookup->id << FRAME_BITS | ++lookup->requests,
        .table = lookup->call->table,
        .dim = lookup->call->dim,
        .dtype = lookup->call->dtype,
    };
    uint8_t *memory = malloc((size_t)request->spans_count * MU__LOOKUP_SPAN_BYTES +
                             (size_t)request->ids_count * POOLED_ID_BYTES);
    int rv;

    if (memory == NULL)
        return -MU_ENOMEM;
    pack_request(v, lookup, request, memory, &body);
    rv = mu__send_body(ctx, pid_of(v, request->server), MU__TABLE_LOOKUP, &body,
                       sizeof body);
    free(memory);
    if (rv == 0)
        note_requested(lookup, request, body.token);
    return rv;
}

/* False: it has failed, or has to wait. */
static bool request_some_rows(struct mu__ctx *ctx, struct variables *v,
                              struct lookup *lookup, struct lookup_request *request)
{
    mu_error error;
    int rv;

    gather_request(v, lookup, request);
    if (request->spans_count == 0)
        return false;
    if (mu__send_is_forbidden(ctx, v->servers[request->server]->node, MU__TABLE_LOOKUP,
                              &error)) {
        fail_lookup(ctx, v, lookup, request->server, -MU_EPERMISSION, error.message);
        return false;
    }
    rv = send_lookup(ctx, v, lookup, request);
    if (rv != 0 && mu__send_is_transient(rv))
        mu__vars_arm(ctx, v, RETRY, RETRY_MS);
    else if (rv != 0)
        fail_lookup(ctx, v, lookup, request->server, rv, "a message could not be sent");
    return rv == 0;
}

/* Whether a look-up is still there. */
static bool is_lookup(const struct variables *v, uint64_t id)
{
    const struct lookup *lookup = first_lookup_after(v, id - 1);

    return lookup != NULL && lookup->id == id;
}

static void pump_lookup(struct mu__ctx *ctx, struct variables *v, struct lookup *lookup)
{
    struct lookup_request request;
    uint64_t id = lookup->id;

    for (uint32_t i = 0; i < v->servers_count && is_lookup(v, id); i++) {
        request.server = i;
        while (lookup->queued > 0 && lookup->bytes_under_way < MU__WINDOW_BYTES &&
               request_some_rows(ctx, v, lookup, &request))
            continue;
    }
}

static void pump_from(struct mu__ctx *ctx, struct variables *v, struct lookup *first)
{
    struct lookup *next;

    for (struct lookup *lookup = first; lookup != NULL; lookup = next) {
        next = next_lookup(lookup);
        if (lookup->queued > 0)
            pump_lookup(ctx, v, lookup);
    }
}

void mu__vars_pump_lookups(struct mu__ctx *ctx, struct variables *v)
{
    pump_from(ctx, v, first_lookup(v));
}

void mu__vars_begin_lookup(struct mu__ctx *ctx, struct variables *v,
                           struct mu__table_call *call)
{
    uint64_t before = v->id_last;
    struct mu__table_call *next;

    call->lookups_left = 1;
    for (struct mu__table_call *at = call; at != NULL; at = next) {
        next = at->others;
        at->lead = call;
        call->lookups_left++;
        begin_one_lookup(ctx, v, at);
    }
    complete_table_lookup(call, 0);
    end_lost_from(ctx, v, first_lookup_after(v, before));
    mu__vars_watch_lost(ctx, v);
    pump_from(ctx, v, first_lookup_after(v, before));
}

static void queue_again(struct lookup *lookup, struct lookup_chunk *chunk)
{
    chunk->state = CHUNK_QUEUED;
    lookup->queued++;
    lookup->bytes_under_way -= weight_of(lookup, chunk->count);
}

void mu__vars_recall_lookups(struct variables *v)
{
    for (struct lookup *lookup = first_lookup(v); lookup != NULL;
         lookup = next_lookup(lookup))
        for (uint32_t i = 0; i < lookup->chunks_count; i++)
            if (lookup->chunks[i].state == CHUNK_SENT &&
                !v->placements[lookup->chunks[i].partition].served)
                queue_again(lookup, &lookup->chunks[i]);
}

/* ---- Answers ---- */

static void scatter_rows(const struct lookup *lookup, const struct lookup_chunk *chunk,
                         const uint8_t *rows)
{
    const struct mu__table_call *call = lookup->call;
    const uint32_t *positions = call->ids->positions + chunk->first;
    size_t bytes = row_bytes_of(call);
    size_t bytes_wide = call->dim * sizeof(float);
    uint8_t *to = call->rows;

    for (uint32_t i = 0; i < chunk->count; i++) {
        if (call->dtype == 0 || call->is_raw)
            memcpy(to + positions[i] * bytes, rows + i * bytes, bytes);
        else
            mu__narrow_row_widen(call->dtype, rows + i * bytes, call->dim,
                                 to + positions[i] * bytes_wide);
    }
}

static void take_chunk_rows(struct lookup *lookup, struct lookup_chunk *chunk,
                            const struct mu__table_rows *body)
{
    size_t offset =
        (size_t)(chunk->request_first - body->first) * row_bytes_of(lookup->call);

    if (lookup->call->bags.count == 0)
        scatter_rows(lookup, chunk, (const uint8_t *)body->rows.data + offset);
    chunk->state = CHUNK_DONE;
    lookup->left--;
    lookup->bytes_under_way -= weight_of(lookup, chunk->count);
}

/* Whether an answer has a chunk that was requested from its sender. */
static bool is_chunk_answered(const struct variables *v, const struct lookup_chunk *chunk,
                              const struct mu__msg *msg,
                              const struct mu__table_rows *body)
{
    return chunk->state == CHUNK_SENT && chunk->token == body->token &&
           mu__pid_equal(pid_of(v, chunk->server), msg->from) &&
           chunk->request_first >= body->first &&
           chunk->request_first - body->first <= body->count &&
           body->count - (chunk->request_first - body->first) >= chunk->count;
}

/* The chunks that an answer has. */
struct answered_chunks {
    uint32_t count;
    uint32_t ids;
    struct lookup_chunk *chunks[MU__PARTITIONS];
};

static void find_answered(const struct variables *v, struct lookup *lookup,
                          const struct mu__msg *msg, const struct mu__table_rows *body,
                          struct answered_chunks *ret_answered)
{
    ret_answered->count = ret_answered->ids = 0;
    for (uint32_t i = 0; i < lookup->chunks_count && ret_answered->count < MU__PARTITIONS;
         i++) {
        struct lookup_chunk *chunk = &lookup->chunks[i];

        if (!is_chunk_answered(v, chunk, msg, body))
            continue;
        ret_answered->chunks[ret_answered->count++] = chunk;
        ret_answered->ids += chunk->count;
    }
}

/* Sums that have ids of chunks that were requested again meanwhile are of no use. 0: they
 * count; -MU_EAGAIN, -MU_ENOMEM. */
static int take_sums(struct lookup *lookup, const struct answered_chunks *answered,
                     const struct mu__table_rows *body)
{
    if (lookup->call->bags.count == 0)
        return 0;
    if (answered->ids != body->count)
        return -MU_EAGAIN;
    return mu__bag_sums_add(&lookup->call->bags, answered->chunks[0]->first, body->rows);
}

static bool is_whole_answer(const struct lookup *lookup,
                            const struct mu__table_rows *body)
{
    uint32_t bags = lookup->call->bags.count;

    return body->code != 0 ||
           body->rows.size ==
               (uint64_t)(bags != 0 ? bags : body->count) * row_bytes_of(lookup->call);
}

/* False: the look-up has failed. */
static bool take_rows(struct mu__ctx *ctx, struct variables *v, struct lookup *lookup,
                      const struct mu__msg *msg, const struct mu__table_rows *body)
{
    struct answered_chunks answered;
    char reason[MU__ERROR_TEXT_MAX + 1] = "the server answered something else";
    int rv = -(int)body->code;

    find_answered(v, lookup, msg, body, &answered);
    if (answered.count == 0)
        return true;
    if (!is_whole_answer(lookup, body))
        rv = -MU_EDATALOSS;
    else if (rv != 0)
        mu__view_copy(body->message, reason, sizeof reason);
    else
        rv = take_sums(lookup, &answered, body);
    if (rv != 0 && rv != -MU_EAGAIN) {
        fail_lookup(ctx, v, lookup, answered.chunks[0]->server, rv,
                    rv == -MU_ENOMEM ? mu_strerror(rv) : reason);
        return false;
    }
    for (uint32_t i = 0; i < answered.count; i++) {
        if (rv == 0)
            take_chunk_rows(lookup, answered.chunks[i], body);
        else
            queue_again(lookup, answered.chunks[i]);
    }
    return true;
}

void mu__vars_on_table_rows(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    struct variables *v = state;
    const struct mu__table_rows *body = mu__body(msg);
    struct lookup *lookup = first_lookup(v);

    while (lookup != NULL && lookup->id != body->token >> FRAME_BITS)
        lookup = next_lookup(lookup);
    if (lookup == NULL || !take_rows(ctx, v, lookup, msg, body))
        return;
    if (body->code == MU_EAGAIN)
        mu__vars_arm(ctx, v, RETRY, RETRY_MS);
    else if (lookup->left == 0)
        complete_lookup(ctx, v, lookup, 0);
    else if (lookup->queued > 0)
        pump_lookup(ctx, v, lookup);
}
