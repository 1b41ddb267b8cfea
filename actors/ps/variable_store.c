/* Every open gets its answer's memory when it is made, so that answering cannot fail. */
#include "actors/ps/variable_store.h"

#include "actors/ps/optimizer.h"
#include "runtime/base/map.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

const struct mu__store_limits mu__store_limits_default = {
    .bytes_max = UINT64_C(1) << 40,
    .variables_max = 1 << 16,
    .waiting_max = 1 << 16,
    .transfers_node_max = 64,
};

/* What a shard can be.
 *
 *     ABSENT --> MAKING --> FILLED --> READY      shard 0 goes from MAKING to READY
 *      ^ ^       |    ^      |          |
 *      | '-------'    |      v          |
 *      |              '--- ORPHAN ------+         made anew; or found, READY
 *      '-----------------------'--------'
 *
 * ABSENT: somebody waits for it, and nobody makes it. FILLED: has its content, but the
 * creator has not said COMMIT. ORPHAN: nor will it, for it was lost: whether shard 0 got
 * its content only the next one who opens knows. */
enum shard_stage { ABSENT, MAKING, FILLED, ABANDONED, READY };

struct open_answer {
    struct open_answer *next;
    struct mu__store_opened opened;
    struct mu__shape shape;         /* as it was opened */
    bool existing;
};

struct answers {
    struct open_answer *first;
    struct open_answer *last;
};

struct variable {
    struct variable *next;          /* by age */
    struct variable *next_alike;    /* under the same key of by_name */
    uint64_t key;
    uint64_t id;
    struct mu__shape shape;         /* this and all below: unless ABSENT */
    uint32_t shard;
    enum shard_stage stage;
    uint64_t bytes;
    uint8_t *data;
    uint8_t *velocity;              /* NULL until momentum was used */
    uint64_t version;
    uint64_t reads;
    uint64_t writes;
    uint64_t bytes_read;
    uint64_t bytes_written;
    struct mu__requester creator;   /* MAKING, FILLED: who owes the content or COMMIT, */
    uint64_t received;              /* how much of it is here */
    struct answers waiting;         /* for READY; in all stages before it */
    char name[];
};

/* An assign under way: pieces 0 to `received` are in `data`. */
struct transfer {
    struct transfer *next;
    struct variable *variable;
    mu__pid writer;
    uint64_t number;
    uint64_t received;
    uint8_t *data;
};

struct mu__store {
    struct mu__store_limits limits;
    uint64_t incarnation;
    uint64_t serial;
    struct mu__map by_id;
    struct mu__map by_name;
    struct variable *first;
    struct variable *last;
    struct transfer *transfers;
    uint8_t *spare;                 /* what the last assign replaced, for the next one: */
    uint64_t spare_bytes;           /* fresh memory costs more than the copy into it */
    struct answers due;
    struct mu__store_totals totals;
};

/* ---- Answers ---- */

static void append(struct answers *list, struct open_answer *answer)
{
    answer->next = NULL;
    if (list->last == NULL)
        list->first = answer;
    else
        list->last->next = answer;
    list->last = answer;
}

static struct open_answer *take_first(struct answers *list)
{
    struct open_answer *answer = list->first;

    if (answer == NULL)
        return NULL;
    list->first = answer->next;
    if (list->first == NULL)
        list->last = NULL;
    return answer;
}

static void free_answers(struct answers *list)
{
    struct open_answer *answer;

    while ((answer = take_first(list)) != NULL)
        free(answer);
}

bool mu__store_next_opened(struct mu__store *store, struct mu__store_opened *ret_opened)
{
    struct open_answer *answer = take_first(&store->due);

    if (answer == NULL)
        return false;
    *ret_opened = answer->opened;
    free(answer);
    return true;
}

static struct open_answer *answer_new(const struct mu__store_open *request)
{
    struct open_answer *answer = calloc(1, sizeof *answer);

    if (answer == NULL)
        return NULL;
    answer->opened.requester = request->requester;
    answer->shape = request->shape;
    answer->existing = request->existing;
    return answer;
}

/* Who waits is told that there is nothing yet. */
static void answer_absent(struct mu__store *store, const struct open_answer *waiting)
{
    struct open_answer *notice = calloc(1, sizeof *notice);

    if (notice == NULL)
        return;
    notice->opened.requester = waiting->opened.requester;
    notice->opened.code = -MU_EAGAIN;
    notice->opened.reason = "it does not exist, and nobody creates it";
    append(&store->due, notice);
}

static void answer_opener(struct mu__store *store, const struct variable *v, bool created,
                 struct open_answer *answer)
{
    answer->opened.id = v->id;
    answer->opened.created = created;
    append(&store->due, answer);
}

/* Those for whom `leaves` is true wait no more; they are handed to `leave`. */
static void
stop_waiting(struct mu__store *store, struct variable *v,
             bool (*leaves)(const struct open_answer *answer, const void *arg),
             const void *arg,
             void (*leave)(struct mu__store *store, struct open_answer *answer))
{
    struct answers stay = {NULL, NULL};
    struct open_answer *answer;

    while ((answer = take_first(&v->waiting)) != NULL) {
        if (!leaves(answer, arg)) {
            append(&stay, answer);
            continue;
        }
        store->totals.waiting--;
        leave(store, answer);
    }
    v->waiting = stay;
}

static bool same_requester(const struct mu__requester *a, const struct mu__requester *b)
{
    return mu__pid_equal(a->pid, b->pid) && a->token == b->token;
}

static bool is_of_requester(const struct open_answer *answer, const void *requester)
{
    return same_requester(&answer->opened.requester, requester);
}

static bool is_of_node(const struct open_answer *answer, const void *node)
{
    return answer->opened.requester.pid.node == *(const uint32_t *)node;
}

static bool is_mismatch(const struct open_answer *answer, const void *shape)
{
    return !mu__shape_equal(&answer->shape, shape);
}

static void answer_cancelled(struct mu__store *store, struct open_answer *answer)
{
    answer->opened.code = -MU_ECANCELLED;
    answer->opened.reason = "the open was given up";
    append(&store->due, answer);
}

/* Before tell_misfit: how many shards there are, if that is all that differs. */
static void set_shards(const struct variable *v)
{
    for (struct open_answer *a = v->waiting.first; a != NULL; a = a->next)
        if (mu__shape_alike(&a->shape, &v->shape))
            a->opened.shards = v->shape.shards;
}

static void answer_mismatch(struct mu__store *store, struct open_answer *answer)
{
    answer->opened.code = -MU_EPRECONDITION;
    answer->opened.reason =
        "it was created with another dtype, shape or number of shards";
    append(&store->due, answer);
}

static void drop_answer(struct mu__store *store, struct open_answer *answer)
{
    (void)store;
    free(answer);
}

/* ---- Variables ---- */

/* A well mixed number that is not 0; different ones for different `number`. */
static uint64_t mixed(uint64_t number)
{
    number = (number ^ (number >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    number = (number ^ (number >> 27)) * UINT64_C(0x94d049bb133111eb);
    number ^= number >> 31;
    return number == 0 ? 1 : number;
}

static uint64_t key_of(const struct mu__store *store, struct mu__view name,
                       uint32_t shard)
{
    return mixed(mixed(mu__name_hash(name) ^ store->incarnation) + shard);
}

static struct variable *find_by_name(const struct mu__store *store, struct mu__view name,
                                     uint32_t shard)
{
    struct variable *v = mu__map_get(&store->by_name, key_of(store, name, shard));

    while (v != NULL && (v->shard != shard || !mu__view_is(name, v->name)))
        v = v->next_alike;
    return v;
}

static struct variable *find_by_id(const struct mu__store *store, uint64_t id,
                                   mu_error *ret_error)
{
    struct variable *v = mu__map_get(&store->by_id, id);

    if (v == NULL)
        (void)mu_error_set(ret_error, -MU_ENOTFOUND,
                           "no variable has the id %" PRIx64
                           " in this life of the server", id);
    return v;
}

/* Room under the bound for `bytes` more. */
static int charge(struct mu__store *store, uint64_t bytes, mu_error *ret_error)
{
    if (bytes > store->limits.bytes_max - store->totals.bytes)
        return mu_error_set(ret_error, -MU_EEXHAUSTED,
                            "%" PRIu64 " bytes more: the server holds %" PRIu64
                            " of at most %" PRIu64,
                            bytes, store->totals.bytes, store->limits.bytes_max);
    store->totals.bytes += bytes;
    return 0;
}

/* Charged and zeroed memory. */
static int get_memory(struct mu__store *store, uint64_t bytes, mu_error *ret_error,
                      uint8_t **ret_data)
{
    int rv = charge(store, bytes, ret_error);
    uint8_t *data;

    if (rv != 0)
        return rv;
    data = bytes > SIZE_MAX ? NULL : calloc((size_t)bytes, 1);
    if (data == NULL) {
        store->totals.bytes -= bytes;
        return mu_error_set(ret_error, -MU_ENOMEM,
                            "the server is out of memory for %" PRIu64 " bytes", bytes);
    }
    *ret_data = data;
    return 0;
}

static void give_memory(struct mu__store *store, uint8_t *data, uint64_t bytes)
{
    if (data == NULL)
        return;
    store->totals.bytes -= bytes;
    free(data);
}

static void unlist(struct mu__store *store, struct variable *v)
{
    struct variable *head = mu__map_get(&store->by_name, v->key);

    if (head == v) {
        if (v->next_alike == NULL)
            (void)mu__map_remove(&store->by_name, v->key);
        else
            (void)mu__map_set(&store->by_name, v->key, v->next_alike);
        return;
    }
    while (head->next_alike != v)
        head = head->next_alike;
    head->next_alike = v->next_alike;
}

static int list(struct mu__store *store, struct variable *v)
{
    struct variable *head = mu__map_get(&store->by_name, v->key);

    if (head != NULL) {
        v->next_alike = head->next_alike;
        head->next_alike = v;
        return 0;
    }
    return mu__map_set(&store->by_name, v->key, v);
}

static void free_variable(struct mu__store *store, struct variable *v)
{
    give_memory(store, v->data, v->bytes);
    give_memory(store, v->velocity, v->bytes);
    free_answers(&v->waiting);
    free(v);
}

/* An ABSENT one. */
static int variable_new(struct mu__store *store, const struct mu__store_open *request,
                        mu_error *ret_error, struct variable **ret_variable)
{
    struct variable *v = calloc(1, sizeof *v + request->name.size + 1);

    if (v == NULL)
        return mu_error_set(ret_error, -MU_ENOMEM, "the server is out of memory");
    v->key = key_of(store, request->name, request->shard);
    v->shard = request->shard;
    memcpy(v->name, request->name.data, request->name.size);
    if (list(store, v) != 0) {
        free(v);
        return mu_error_set(ret_error, -MU_ENOMEM, "the server is out of memory");
    }
    if (store->last == NULL)
        store->first = v;
    else
        store->last->next = v;
    store->last = v;
    *ret_variable = v;
    return 0;
}

/* Forget an ABSENT one that nobody waits for. */
static void remove_unused(struct mu__store *store, struct variable *v)
{
    struct variable **link = &store->first;
    struct variable *before = NULL;

    if (v->stage != ABSENT || v->waiting.first != NULL)
        return;
    while (*link != v) {
        before = *link;
        link = &before->next;
    }
    *link = v->next;
    if (store->last == v)
        store->last = before;
    unlist(store, v);
    free_variable(store, v);
}

/* What was ABSENT is to be made by the asker, under a fresh id. */
static int create(struct mu__store *store, struct variable *v,
                   const struct mu__store_open *request, mu_error *ret_error)
{
    uint64_t id = mixed(store->incarnation + ++store->serial);
    int rv;

    assert(v->stage == ABSENT);
    if (store->totals.variables >= store->limits.variables_max)
        return mu_error_set(ret_error, -MU_EEXHAUSTED,
                            "the server has %" PRIu32 " variables, at most %" PRIu32,
                            store->totals.variables, store->limits.variables_max);
    rv = get_memory(store, request->bytes, ret_error, &v->data);
    if (rv != 0)
        return rv;
    if (mu__map_set(&store->by_id, id, v) != 0) {
        give_memory(store, v->data, request->bytes);
        v->data = NULL;
        return mu_error_set(ret_error, -MU_ENOMEM, "the server is out of memory");
    }
    v->id = id;
    v->shape = request->shape;
    v->bytes = request->bytes;
    v->creator = request->requester;
    v->received = 0;
    v->stage = MAKING;
    store->totals.variables++;
    set_shards(v);
    stop_waiting(store, v, is_mismatch, &v->shape, answer_mismatch);
    return 0;
}

static void drop_transfers(struct mu__store *store, const struct variable *v);

/* Whatever it was, it is ABSENT. */
static void strip(struct mu__store *store, struct variable *v)
{
    if (v->stage == ABSENT)
        return;
    drop_transfers(store, v);
    (void)mu__map_remove(&store->by_id, v->id);
    give_memory(store, v->data, v->bytes);
    give_memory(store, v->velocity, v->bytes);
    v->data = NULL;
    v->velocity = NULL;
    v->id = 0;
    v->version = 0;
    v->reads = 0;
    v->writes = 0;
    v->bytes_read = 0;
    v->bytes_written = 0;
    v->stage = ABSENT;
    store->totals.variables--;
}

static void make_ready(struct mu__store *store, struct variable *v)
{
    struct open_answer *answer;

    v->stage = READY;
    while ((answer = take_first(&v->waiting)) != NULL) {
        store->totals.waiting--;
        answer_opener(store, v, false, answer);
    }
}

/* The oldest who waits and may create; NULL when there is none. */
static struct open_answer *take_successor(struct mu__store *store, struct variable *v)
{
    struct answers others = {NULL, NULL};
    struct open_answer *successor = NULL;
    struct open_answer *answer;

    while ((answer = take_first(&v->waiting)) != NULL) {
        if (successor == NULL && !answer->existing)
            successor = answer;
        else
            append(&others, answer);
    }
    v->waiting = others;
    store->totals.waiting -= successor != NULL;
    return successor;
}

/* Made again, from zeros, by the next in line. */
static void hand_over(struct mu__store *store, struct variable *v,
                      struct open_answer *successor)
{
    memset(v->data, 0, (size_t)v->received);
    v->received = 0;
    v->version = 0;
    v->writes = 0;
    v->bytes_written = 0;
    v->creator = successor->opened.requester;
    v->stage = MAKING;
    answer_opener(store, v, true, successor);
}

/* The creator gave up, or was lost, before it said COMMIT. May free `v`. */
static void lose_creator(struct mu__store *store, struct variable *v)
{
    struct open_answer *successor = take_successor(store, v);

    if (successor != NULL) {
        hand_over(store, v, successor);
        return;
    }
    if (v->stage == FILLED) {
        v->stage = ABANDONED;
        if (v->waiting.first != NULL)
            make_ready(store, v);
        return;
    }
    strip(store, v);
    for (const struct open_answer *a = v->waiting.first; a != NULL; a = a->next)
        answer_absent(store, a);
    remove_unused(store, v);
}

/* ---- Opening ---- */

static int check_open(const struct mu__store_open *request, mu_error *ret_error)
{
    uint64_t offset;
    uint64_t bytes;
    int rv = mu__variable_name_check(request->name, ret_error);

    if (rv == 0)
        rv = mu__shape_check(&request->shape, ret_error);
    if (rv != 0)
        return rv;
    if (request->shard >= request->shape.shards)
        return mu_error_set(ret_error, -MU_EINVALID,
                            "shard %" PRIu32 " of %" PRIu32, request->shard,
                            request->shape.shards);
    mu__shape_shard(&request->shape, request->shard, &offset, &bytes);
    if (bytes != request->bytes)
        return mu_error_set(ret_error, -MU_EINVALID,
                            "shard of %" PRIu64 " bytes: expected %" PRIu64,
                            request->bytes, bytes);
    return 0;
}

static int check_same(const struct variable *v, const struct mu__shape *wanted,
                      mu_error *ret_error)
{
    char has[MU__SHAPE_TEXT_MAX];
    char expected[MU__SHAPE_TEXT_MAX];

    if (mu__shape_equal(&v->shape, wanted))
        return 0;
    mu__shape_text(&v->shape, has, sizeof has);
    mu__shape_text(wanted, expected, sizeof expected);
    return mu_error_set(ret_error, -MU_EPRECONDITION, "it is %s; opened as %s", has,
                        expected);
}

/* Whether the asker is to make it. */
static bool is_to_make(const struct variable *v, const struct mu__store_open *request)
{
    if (request->existing)
        return false;
    return v->stage == ABSENT || v->stage == ABANDONED ||
           (v->stage == READY && v->id == request->replaces);
}

static int make(struct mu__store *store, struct variable *v,
                const struct mu__store_open *request, struct open_answer *answer,
                mu_error *ret_error)
{
    int rv;

    strip(store, v);
    rv = create(store, v, request, ret_error);
    if (rv == 0)
        answer_opener(store, v, true, answer);
    return rv;
}

static int wait_for(struct mu__store *store, struct variable *v,
                    struct open_answer *answer, mu_error *ret_error)
{
    if (store->totals.waiting >= store->limits.waiting_max)
        return mu_error_set(ret_error, -MU_EEXHAUSTED,
                            "%" PRIu32 " wait for initial content, at most %" PRIu32,
                            store->totals.waiting, store->limits.waiting_max);
    append(&v->waiting, answer);
    store->totals.waiting++;
    if (v->stage == ABSENT)
        answer_absent(store, answer);
    return 0;
}

/* Takes `answer` when it returns 0. */
static int admit(struct mu__store *store, struct variable *v,
                 const struct mu__store_open *request, struct open_answer *answer,
                 mu_error *ret_error)
{
    int rv = 0;

    if (is_to_make(v, request))
        return make(store, v, request, answer, ret_error);
    if (v->stage != ABSENT)
        rv = check_same(v, &request->shape, ret_error);
    if (rv != 0)
        return rv;
    if (v->stage == ABANDONED)
        make_ready(store, v);
    if (v->stage != READY)
        return wait_for(store, v, answer, ret_error);
    answer_opener(store, v, false, answer);
    return 0;
}

int mu__store_open(struct mu__store *store, const struct mu__store_open *request,
                   mu_error *ret_error)
{
    int rv = check_open(request, ret_error);
    struct variable *v;
    struct open_answer *answer;

    if (rv != 0)
        return rv;
    answer = answer_new(request);
    if (answer == NULL)
        return mu_error_set(ret_error, -MU_ENOMEM, "the server is out of memory");
    v = find_by_name(store, request->name, request->shard);
    if (v == NULL)
        rv = variable_new(store, request, ret_error, &v);
    if (rv == 0) {
        rv = admit(store, v, request, answer, ret_error);
        remove_unused(store, v);
    }
    if (rv != 0)
        free(answer);
    return rv;
}

uint32_t mu__store_shards(const struct mu__store *store,
                          const struct mu__store_open *request)
{
    const struct variable *v = find_by_name(store, request->name, request->shard);

    if (v == NULL || v->stage == ABSENT || !mu__shape_alike(&v->shape, &request->shape))
        return 0;
    return v->shape.shards;
}

/* ---- Reading ---- */

static int check_range(const struct variable *v, uint64_t offset, uint64_t size,
                       mu_error *ret_error)
{
    if (offset <= v->bytes && size <= v->bytes - offset)
        return 0;
    return mu_error_set(ret_error, -MU_ERANGE,
                        "%" PRIu64 " bytes at %" PRIu64 " of a shard of %" PRIu64, size,
                        offset, v->bytes);
}

int mu__store_read(struct mu__store *store, const struct mu__store_read *request,
                   mu_error *ret_error, struct mu__view *ret_data, uint64_t *ret_version)
{
    struct variable *v = find_by_id(store, request->id, ret_error);
    int rv;

    if (v == NULL)
        return -MU_ENOTFOUND;
    if (v->stage != READY)
        return mu_error_set(ret_error, -MU_EPRECONDITION,
                            "variable %s has no initial content yet", v->name);
    rv = check_range(v, request->offset, request->size, ret_error);
    if (rv != 0)
        return rv;
    v->reads++;
    v->bytes_read += request->size;
    *ret_data = (struct mu__view){v->data + request->offset, request->size};
    *ret_version = v->version;
    return 0;
}

/* ---- Staged assigns ---- */

static struct transfer **find_transfer(struct mu__store *store, const struct variable *v,
                                       const struct mu__store_write *write)
{
    struct transfer **link = &store->transfers;

    while (*link != NULL && ((*link)->variable != v ||
                             (*link)->number != write->transfer ||
                             !mu__pid_equal((*link)->writer, write->writer)))
        link = &(*link)->next;
    return link;
}

static void free_transfer(struct mu__store *store, struct transfer **link)
{
    struct transfer *transfer = *link;

    *link = transfer->next;
    store->totals.transfers--;
    give_memory(store, transfer->data, transfer->variable->bytes);
    free(transfer);
}

static void drop_transfers(struct mu__store *store, const struct variable *v)
{
    struct transfer **link = &store->transfers;

    while (*link != NULL) {
        if ((*link)->variable == v)
            free_transfer(store, link);
        else
            link = &(*link)->next;
    }
}

/* Charged memory with any content. */
static int get_staging(struct mu__store *store, uint64_t bytes, mu_error *ret_error,
                       uint8_t **ret_data)
{
    int rv;

    if (store->spare == NULL || store->spare_bytes != bytes)
        return get_memory(store, bytes, ret_error, ret_data);
    rv = charge(store, bytes, ret_error);
    if (rv != 0)
        return rv;
    *ret_data = store->spare;
    store->spare = NULL;
    return 0;
}

/* Keeps memory that was charged, and frees what was kept before. */
static void save_spare(struct mu__store *store, uint8_t *data, uint64_t bytes)
{
    free(store->spare);
    store->spare = data;
    store->spare_bytes = bytes;
    store->totals.bytes -= bytes;
}

static uint32_t transfers_of(const struct mu__store *store, uint32_t node)
{
    uint32_t count = 0;

    for (const struct transfer *t = store->transfers; t != NULL; t = t->next)
        count += t->writer.node == node;
    return count;
}

static int begin_transfer(struct mu__store *store, struct variable *v,
                          const struct mu__store_write *write, mu_error *ret_error)
{
    struct transfer *transfer;
    int rv;

    if (transfers_of(store, write->writer.node) >= store->limits.transfers_node_max)
        return mu_error_set(ret_error, -MU_EEXHAUSTED,
                            "%" PRIu32 " assigns of one node under way",
                            store->limits.transfers_node_max);
    transfer = calloc(1, sizeof *transfer);
    if (transfer == NULL)
        return mu_error_set(ret_error, -MU_ENOMEM, "the server is out of memory");
    rv = get_staging(store, v->bytes, ret_error, &transfer->data);
    if (rv != 0) {
        free(transfer);
        return rv;
    }
    transfer->variable = v;
    transfer->writer = write->writer;
    transfer->number = write->transfer;
    transfer->next = store->transfers;
    store->transfers = transfer;
    store->totals.transfers++;
    return 0;
}

/* One piece; the last one makes all of them visible. */
static int stage(struct mu__store *store, struct variable *v,
                 const struct mu__store_write *write, mu_error *ret_error)
{
    struct transfer **link = find_transfer(store, v, write);

    if (*link != NULL && (*link)->received != write->offset)
        free_transfer(store, link);
    if (write->offset == 0) {
        int rv = begin_transfer(store, v, write, ret_error);

        if (rv != 0)
            return rv;
    }
    link = find_transfer(store, v, write);
    if (*link == NULL)
        return mu_error_set(ret_error, -MU_EABORTED,
                            "piece at %" PRIu64 " follows none of its transfer",
                            write->offset);
    memcpy((*link)->data + write->offset, write->data.data, write->data.size);
    (*link)->received += write->data.size;
    if ((*link)->received == v->bytes) {
        save_spare(store, v->data, v->bytes);
        v->data = (*link)->data;
        (*link)->data = NULL;
        free_transfer(store, link);
    }
    return 0;
}

/* ---- Writing ---- */

static int assign(struct mu__store *store, struct variable *v,
                  const struct mu__store_write *write, mu_error *ret_error)
{
    if (write->data.size != v->bytes)
        return stage(store, v, write, ret_error);
    memcpy(v->data, write->data.data, write->data.size);
    return 0;
}

static int zero(struct mu__store *store, struct variable *v,
                const struct mu__store_write *write, mu_error *ret_error)
{
    (void)store;
    (void)write;
    (void)ret_error;
    memset(v->data, 0, (size_t)v->bytes);
    return 0;
}

static int refuse_unready(const struct variable *v, mu_error *ret_error)
{
    return mu_error_set(ret_error, -MU_EPRECONDITION,
                        "variable %s has no initial content yet", v->name);
}

static int refuse_dtype(const struct variable *v, const char *what, mu_error *ret_error)
{
    return mu_error_set(ret_error, -MU_EINVALID, "variable %s is %s, which %s", v->name,
                        mu_dtype_name((int)v->shape.dtype), what);
}

static int add(struct mu__store *store, struct variable *v,
               const struct mu__store_write *write, mu_error *ret_error)
{
    (void)store;
    if (!mu__optimizer_adds((int)v->shape.dtype))
        return refuse_dtype(v, "does not add", ret_error);
    mu__optimizer_add((int)v->shape.dtype, v->data + write->offset, write->data.data,
                      write->data.size);
    return 0;
}

static int sgd(struct mu__store *store, struct variable *v,
               const struct mu__store_write *write, mu_error *ret_error)
{
    (void)store;
    if (!mu__optimizer_learns((int)v->shape.dtype))
        return refuse_dtype(v, "takes no gradients", ret_error);
    mu__optimizer_sgd((int)v->shape.dtype, v->data + write->offset, write->data.data,
                      write->data.size, write->rate);
    return 0;
}

static int need_velocity(struct mu__store *store, struct variable *v,
                         mu_error *ret_error)
{
    if (v->velocity != NULL)
        return 0;
    return get_memory(store, v->bytes, ret_error, &v->velocity);
}

static int momentum(struct mu__store *store, struct variable *v,
                    const struct mu__store_write *write, mu_error *ret_error)
{
    const struct mu__momentum how = {write->rate, write->momentum};
    int rv;

    if (!mu__optimizer_learns((int)v->shape.dtype))
        return refuse_dtype(v, "takes no gradients", ret_error);
    rv = need_velocity(store, v, ret_error);
    if (rv != 0)
        return rv;
    mu__optimizer_momentum((int)v->shape.dtype, v->data + write->offset,
                           v->velocity + write->offset, write->data.data,
                           write->data.size, &how);
    return 0;
}

/* Fine too when somebody has found before that it may be used. */
static int commit(struct mu__store *store, struct variable *v,
                  const struct mu__store_write *write, mu_error *ret_error)
{
    const struct mu__requester writer = {write->writer, write->transfer};

    if (v->stage == FILLED && same_requester(&writer, &v->creator))
        make_ready(store, v);
    if (v->stage == READY)
        return 0;
    return refuse_unready(v, ret_error);
}

static const struct write_kind {
    int (*run)(struct mu__store *store, struct variable *v,
               const struct mu__store_write *write, mu_error *ret_error);
    bool has_data;
    bool changes;           /* content; before there is any, nobody may but its creator */
} operations[] = {
    [MU__WRITE_ASSIGN] = {assign, true, true},
    [MU__WRITE_ZERO] = {zero, false, true},
    [MU__WRITE_ADD] = {add, true, true},
    [MU__WRITE_SGD] = {sgd, true, true},
    [MU__WRITE_MOMENTUM] = {momentum, true, true},
    [MU__WRITE_COMMIT] = {commit, false, false},
};

static int check_write(const struct variable *v, const struct mu__store_write *write,
                       mu_error *ret_error)
{
    size_t element_bytes = mu_dtype_bytes((int)v->shape.dtype);

    if (write->operation >= sizeof operations / sizeof operations[0] ||
        operations[write->operation].run == NULL)
        return mu_error_set(ret_error, -MU_EINVALID, "no write operation %" PRIu32,
                            write->operation);
    if (!operations[write->operation].has_data && write->data.size == 0)
        return 0;
    if (write->data.size == 0 || !operations[write->operation].has_data ||
        write->offset % element_bytes != 0 || write->data.size % element_bytes != 0)
        return mu_error_set(ret_error, -MU_EINVALID,
                            "%" PRIu32 " bytes at %" PRIu64
                            " are not a number of elements of variable %s",
                            write->data.size, write->offset, v->name);
    return check_range(v, write->offset, write->data.size, ret_error);
}

/* The initial content goes where it belongs at once: nobody can read it yet. */
static int write_initial(struct mu__store *store, struct variable *v,
                         const struct mu__store_write *write, mu_error *ret_error)
{
    bool is_zero = write->operation == MU__WRITE_ZERO;
    struct mu__requester writer = {write->writer, write->transfer};

    if (v->stage != MAKING || !same_requester(&writer, &v->creator) ||
        (write->operation != MU__WRITE_ASSIGN && !is_zero))
        return refuse_unready(v, ret_error);
    if (!is_zero && write->offset != v->received)
        return mu_error_set(ret_error, -MU_EABORTED,
                            "piece at %" PRIu64 " of variable %s: expected %" PRIu64,
                            write->offset, v->name, v->received);
    if (is_zero) {
        memset(v->data, 0, (size_t)v->received);
        v->received = v->bytes;
    } else {
        memcpy(v->data + write->offset, write->data.data, write->data.size);
        v->received += write->data.size;
    }
    if (v->received == v->bytes && v->shard == 0)
        make_ready(store, v);
    else if (v->received == v->bytes)
        v->stage = FILLED;
    return 0;
}

static bool has_creator(const struct variable *v)
{
    return v->stage == MAKING || v->stage == FILLED;
}

static void give_up_waiting(struct mu__store *store,
                            const struct mu__requester *requester)
{
    struct variable *next;

    for (struct variable *v = store->first; v != NULL; v = next) {
        next = v->next;
        stop_waiting(store, v, is_of_requester, requester, answer_cancelled);
        remove_unused(store, v);
    }
}

static void abandon(struct mu__store *store, const struct mu__store_write *write)
{
    const struct mu__requester writer = {write->writer, write->transfer};
    struct variable *v = mu__map_get(&store->by_id, write->id);
    struct transfer **link;

    if (write->id == 0)
        give_up_waiting(store, &writer);
    if (v == NULL)
        return;
    if (has_creator(v) && same_requester(&writer, &v->creator)) {
        lose_creator(store, v);
        return;
    }
    link = find_transfer(store, v, write);
    if (*link != NULL)
        free_transfer(store, link);
}

static void count_write(struct variable *v, const struct mu__store_write *write)
{
    v->writes++;
    v->bytes_written += write->data.size;
    if (write->data.size == 0 || write->offset + write->data.size == v->bytes)
        v->version++;
}

static int apply(struct mu__store *store, struct variable *v,
                 const struct mu__store_write *write, mu_error *ret_error)
{
    const struct write_kind *operation = &operations[write->operation];
    int rv = v->stage == READY || !operation->changes
                 ? operation->run(store, v, write, ret_error)
                 : write_initial(store, v, write, ret_error);

    if (rv == 0 && operation->changes)
        count_write(v, write);
    return rv;
}

int mu__store_write(struct mu__store *store, const struct mu__store_write *write,
                    mu_error *ret_error, uint64_t *ret_version)
{
    struct variable *v;
    int rv;

    if (write->operation == MU__WRITE_ABANDON) {
        abandon(store, write);
        return 0;
    }
    v = find_by_id(store, write->id, ret_error);
    if (v == NULL)
        return -MU_ENOTFOUND;
    rv = check_write(v, write, ret_error);
    if (rv == 0)
        rv = apply(store, v, write, ret_error);
    if (rv == 0)
        *ret_version = v->version;
    return rv;
}

/* ---- Batches ---- */

/* What a write of a batch needs of its variable. */
static int check_fit(struct mu__store *store, struct variable *v,
                     const struct mu__store_write *write, mu_error *ret_error)
{
    int dtype = (int)v->shape.dtype;

    switch (write->operation) {
    case MU__WRITE_ASSIGN:
        return 0;
    case MU__WRITE_ADD:
        return mu__optimizer_adds(dtype) ? 0
                                         : refuse_dtype(v, "does not add", ret_error);
    case MU__WRITE_SGD:
    case MU__WRITE_MOMENTUM:
        if (!mu__optimizer_learns(dtype))
            return refuse_dtype(v, "takes no gradients", ret_error);
        return write->operation == MU__WRITE_SGD ? 0 : need_velocity(store, v, ret_error);
    default:
        return mu_error_set(ret_error, -MU_EINVALID,
                            "write operation %" PRIu32 " is not for batches",
                            write->operation);
    }
}

int mu__store_check_batch(struct mu__store *store, const struct mu__store_write *first,
                          mu_error *ret_error)
{
    for (const struct mu__store_write *write = first; write != NULL;
         write = write->next) {
        struct variable *v = find_by_id(store, write->id, ret_error);
        int rv;

        if (v == NULL)
            return -MU_ENOTFOUND;
        rv = check_write(v, write, ret_error);
        if (rv == 0 && v->stage != READY)
            rv = refuse_unready(v, ret_error);
        if (rv == 0)
            rv = check_fit(store, v, write, ret_error);
        if (rv != 0)
            return rv;
    }
    return 0;
}

void mu__store_apply_batch(struct mu__store *store, const struct mu__store_write *first)
{
    for (const struct mu__store_write *write = first; write != NULL;
         write = write->next) {
        struct variable *v = mu__map_get(&store->by_id, write->id);
        int rv = 0;

        assert(v != NULL && v->stage == READY);
        if (write->operation == MU__WRITE_ASSIGN)
            memcpy(v->data + write->offset, write->data.data, write->data.size);
        else
            rv = operations[write->operation].run(store, v, write, NULL);
        assert(rv == 0);
        (void)rv;
        count_write(v, write);
    }
}

/* ---- The rest ---- */

void mu__store_node_down(struct mu__store *store, uint32_t node)
{
    struct transfer **link = &store->transfers;
    struct variable *next;

    while (*link != NULL) {
        if ((*link)->writer.node == node)
            free_transfer(store, link);
        else
            link = &(*link)->next;
    }
    for (struct variable *v = store->first; v != NULL; v = next) {
        next = v->next;
        stop_waiting(store, v, is_of_node, &node, drop_answer);
        if (has_creator(v) && v->creator.pid.node == node)
            lose_creator(store, v);
        else
            remove_unused(store, v);
    }
}

void mu__store_each(const struct mu__store *store,
                    void (*visit)(void *user, const struct mu__store_info *info),
                    void *user)
{
    for (const struct variable *v = store->first; v != NULL; v = v->next) {
        if (v->stage == ABSENT)
            continue;
        visit(user, &(struct mu__store_info){
                        .name = v->name,
                        .shape = &v->shape,
                        .shard = v->shard,
                        .bytes = v->bytes,
                        .version = v->version,
                        .ready = v->stage == READY,
                        .reads = v->reads,
                        .writes = v->writes,
                        .bytes_read = v->bytes_read,
                        .bytes_written = v->bytes_written,
                    });
    }
}

void mu__store_totals(const struct mu__store *store, struct mu__store_totals *ret_totals)
{
    *ret_totals = store->totals;
}

struct mu__store *mu__store_new(const struct mu__store_limits *limits,
                                uint64_t incarnation)
{
    struct mu__store *store = calloc(1, sizeof *store);

    if (store == NULL)
        return NULL;
    store->limits = *limits;
    store->incarnation = incarnation;
    return store;
}

void mu__store_free(struct mu__store *store)
{
    struct variable *next;

    if (store == NULL)
        return;
    while (store->transfers != NULL)
        free_transfer(store, &store->transfers);
    for (struct variable *v = store->first; v != NULL; v = next) {
        next = v->next;
        free_variable(store, v);
    }
    free(store->spare);
    free_answers(&store->due);
    mu__map_done(&store->by_id);
    mu__map_done(&store->by_name);
    free(store);
}
