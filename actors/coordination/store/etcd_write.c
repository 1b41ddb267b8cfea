/* Transactions of the holder.
 *
 * Each one compares the create revision of the leader's key, so that a former holder can
 * change nothing, and the key's version, which it increases: so a transaction that was
 * sent twice counts once, however late the first one arrives. When the comparison fails,
 * the key's value tells why: it is the last one that was written, and if it is ours, this
 * transaction was applied already, and only its answer was lost.
 *
 * One transaction is under way at a time; batches that are committed meanwhile go
 * together into the next one. A batch that is too large for one transaction is staged
 * first, in several (STAGING), counts from the write of one key on (POINTING), and is
 * then applied, again in several; if this holder does not get so far, the next one does
 * it. */
#include "actors/coordination/store/etcd_form.h"
#include "actors/coordination/store/internal.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* ---- The frame of a transaction that only the holder can make ---- */

void mu__etcd_leader_value(struct etcd_store *store)
{
    (void)snprintf(store->leader.value, sizeof store->leader.value,
                   "%s %016" PRIx64 " %" PRIu64, store->task, store->incarnation,
                   store->leader.writes);
}

static void begin_fenced(struct etcd_store *store)
{
    const struct etcd_form *form = mu__etcd_form(store);
    struct mu__build *body = &store->main.body;
    char key[ETCD_KEY_MAX + 1];
    struct mu__view leader = mu__etcd_key(store, "leader", key);

    mu__etcd_leader_value(store);
    form->begin(body);
    form->compare(body, MU__ETCD_CREATE, leader, store->leader.created);
    form->compare(body, MU__ETCD_VERSION, leader, store->leader.version);
    form->then(body);
    form->put(body, leader, mu__view_str(store->leader.value), store->lease.id);
}

static void end_fenced(struct etcd_store *store)
{
    char key[ETCD_KEY_MAX + 1];

    mu__etcd_form(store)->end(&store->main.body, mu__etcd_key(store, "leader", key));
}

enum outcome { APPLIED, NOT_OURS };

/* Why a comparison failed. Negative: the answer cannot be read. */
static int look_at_leader(struct etcd_store *store, struct mu__ctx *ctx,
                          const struct mu__etcd_answer *answer, mu_error *ret_error,
                          enum outcome *ret_outcome)
{
    struct mu__etcd_entries entries;
    struct mu__etcd_entry leader;
    int rv = mu__etcd_txn_ranged(answer, 0, ret_error, &entries);
    int found = rv != 0 ? rv : mu__etcd_next_entry(&entries, ret_error, &leader);

    if (found < 0)
        return found;
    if (found == 1 && leader.create_revision == store->leader.created &&
        mu__view_is(leader.value, store->leader.value)) {
        store->leader.version = leader.version;
        *ret_outcome = APPLIED;
        return 0;
    }
    *ret_outcome = NOT_OURS;
    if (found == 0)
        mu__etcd_abandon(store, ctx, "its lease has ended");
    else
        mu__etcd_abandon(store, ctx, "%s is now of \"%.*s\"", store->prefix,
                         (int)(leader.value.size < 100 ? leader.value.size : 100),
                         (const char *)leader.value.data);
    return 0;
}

static int judge_fenced(struct etcd_store *store, struct mu__ctx *ctx,
                        const struct mu__etcd_answer *answer, mu_error *ret_error,
                        enum outcome *ret_outcome)
{
    bool succeeded = false;
    int rv = mu__etcd_succeeded(answer, ret_error, &succeeded);

    if (rv != 0)
        return rv;
    if (!succeeded)
        return look_at_leader(store, ctx, answer, ret_error, ret_outcome);
    store->leader.version++;
    *ret_outcome = APPLIED;
    return 0;
}

/* ---- The operations of each stage ---- */

static void add_ops(struct etcd_store *store, const char *below, bool is_apart)
{
    struct etcd_work *work = &store->queue.work;
    char key[ETCD_KEY_MAX + 1];
    char rest[ETCD_KEY_MAX + 1];

    work->end = mu__etcd_batch_chunk(work->batch, work->at);
    for (size_t i = work->at; i < work->end; i++) {
        const struct mu__etcd_op *op = &work->batch->ops[i];
        size_t size = strlen(below);
        struct mu__view at = {rest, (uint32_t)size + op->key.size};

        assert(at.size < sizeof rest);
        memcpy(rest, below, size);
        memcpy(rest + size, op->key.data, op->key.size);
        at = mu__etcd_key_of(store, at, key);
        if (op->value.size > 0 || is_apart)
            mu__etcd_form(store)->put(&store->main.body, at, op->value, 0);
        else
            mu__etcd_form(store)->remove(&store->main.body, at, (struct mu__view){"", 0});
    }
}

static void build_ops(struct etcd_store *store)
{
    add_ops(store, "", false);
}

static void build_staging(struct etcd_store *store)
{
    add_ops(store, "staged/", true);
}

static void put_etcd_number(struct etcd_store *store, const char *name, uint64_t number)
{
    char key[ETCD_KEY_MAX + 1];
    char text[24];

    (void)snprintf(text, sizeof text, "%" PRIu64, number);
    mu__etcd_form(store)->put(&store->main.body, mu__etcd_key(store, name, key),
                              mu__view_str(text), 0);
}

static void build_pointing(struct etcd_store *store)
{
    put_etcd_number(store, "meta/staged", store->queue.work.batch->count);
}

static void build_clearing(struct etcd_store *store)
{
    const struct etcd_form *form = mu__etcd_form(store);
    struct mu__build *body = &store->main.body;
    char key[ETCD_KEY_MAX + 1];
    char end[ETCD_KEY_MAX + 1];

    form->remove(body, mu__etcd_key(store, "staged/", key),
                 mu__etcd_key(store, "staged0", end));
    form->remove(body, mu__etcd_key(store, "meta/staged", key), (struct mu__view){"", 0});
    if (store->content.is_new)
        put_etcd_number(store, "meta/number", store->content.number);
}

/* Each stage, and its successor. */
static const struct write_stage {
    void (*build)(struct etcd_store *store);
    bool is_in_parts; /* may take several transactions */
    bool is_safe;     /* from here on the batch counts */
    bool is_last;
    enum etcd_stage next;
} stages[] = {
    [ETCD_PLAIN] = {build_ops, false, true, true, ETCD_PLAIN},
    [ETCD_STAGING] = {build_staging, true, false, false, ETCD_POINTING},
    [ETCD_POINTING] = {build_pointing, false, true, false, ETCD_APPLYING},
    [ETCD_APPLYING] = {build_ops, true, false, false, ETCD_CLEARING},
    [ETCD_CLEARING] = {build_clearing, false, false, true, ETCD_CLEARING},
};

void mu__etcd_write_build(struct etcd_store *store)
{
    begin_fenced(store);
    stages[store->queue.work.stage].build(store);
    end_fenced(store);
}

/* ---- Answers ---- */

/* The committed batches of the work are safe. The owner may write during the upcalls. */
static void report_committed(struct etcd_store *store, struct mu__ctx *ctx)
{
    struct mu__etcd_batch *merged = store->queue.work.merged;

    store->queue.work.merged = NULL;
    for (const struct mu__etcd_batch *at = merged; at != NULL; at = at->next)
        store->up.committed(store->up.owner, ctx, at->sequence);
    mu__etcd_batches_free(merged);
}

/* A transaction of the present stage was applied. */
static void on_stage_applied(struct etcd_store *store, struct mu__ctx *ctx)
{
    struct etcd_work *work = &store->queue.work;
    const struct write_stage *stage = &stages[work->stage];

    store->leader.writes++;
    if (stage->is_in_parts && work->end < work->batch->count) {
        work->at = work->end;
        return;
    }
    if (work->stage == ETCD_CLEARING)
        store->content.is_new = false;
    if (stage->is_last)
        mu__etcd_work_end(work);
    else
        mu__etcd_work_enter(work, stage->next);
    if (stage->is_safe)
        report_committed(store, ctx);
}

void mu__etcd_write_applied(struct etcd_store *store, struct mu__ctx *ctx)
{
    store->leader.version++;
    on_stage_applied(store, ctx);
}

int mu__etcd_write_answered(struct etcd_store *store, struct mu__ctx *ctx,
                            const struct mu__etcd_answer *answer, mu_error *ret_error)
{
    enum outcome outcome = NOT_OURS;
    int rv = judge_fenced(store, ctx, answer, ret_error, &outcome);

    if (rv == 0 && outcome == APPLIED)
        on_stage_applied(store, ctx);
    return rv;
}

/* ---- Operations of the owner ---- */

static int fail_queue(struct etcd_store *store, int code, const char *reason)
{
    if (!store->queue.failed)
        (void)snprintf(store->queue.reason, sizeof store->queue.reason, "%s", reason);
    store->queue.failed = true;
    return code;
}

static int add_store_change(struct etcd_store *store,
                            const struct mu__store_change *change, struct mu__view packed)
{
    char key[MU__KEY_MAX + 8];
    struct mu__view at = {key, 5 + change->key.size};

    memcpy(key, "keys/", 5);
    memcpy(key + 5, change->key.data, change->key.size);
    if (!change->deleted)
        return mu__etcd_batch_add(store->queue.open, at, packed);
    if (mu__etcd_batch_add(store->queue.open, mu__view_str("deleted/last"), packed) != 0)
        return -MU_ENOMEM;
    return mu__etcd_batch_add(store->queue.open, at, (struct mu__view){"", 0});
}

static int add_packed(struct etcd_store *store, const struct mu__msg *record,
                      struct mu__view packed)
{
    const struct mu__store_result *result = (const void *)record->body;

    if (record->kind == MU__STORE_CHANGE)
        return add_store_change(store, (const void *)record->body, packed);
    return mu__etcd_results_add(store->queue.results, result->agent, result->token,
                                result->done, packed);
}

static int add_record(struct etcd_store *store, const struct mu__msg *record)
{
    struct mu__buf *packed = mu__buf_new(mu__encode_bound(store->schema, record));
    int rv = packed == NULL ? -MU_ENOMEM : mu__encode(store->schema, record, packed);

    if (rv == 0 && store->queue.open == NULL) {
        store->queue.open = mu__etcd_batch_new();
        rv = store->queue.open == NULL ? -MU_ENOMEM : 0;
    }
    if (rv == 0)
        rv = add_packed(store, record, (struct mu__view){packed->data, packed->size});
    mu__buf_unref(packed);
    return rv;
}

int mu__etcd_write(struct mu__store *base, struct mu__ctx *ctx,
                   const struct mu__msg *record)
{
    struct etcd_store *store = (struct etcd_store *)base;
    int rv;

    (void)ctx;
    assert(record->kind == MU__STORE_CHANGE || record->kind == MU__STORE_RESULT);
    if (store->phase != ETCD_HOLDING || store->queue.failed)
        return -MU_EUNAVAILABLE;
    if (store->queue.bytes + (store->queue.open == NULL ? 0 : store->queue.open->bytes) >
        ETCD_QUEUE_BYTES_MAX)
        return fail_queue(store, -MU_EEXHAUSTED,
                          "etcd is too slow: 64 MiB of changes wait to be written");
    rv = add_record(store, record);
    return rv == 0 ? 0 : fail_queue(store, rv, mu_strerror(rv));
}

/* An empty batch is safe at once if no other is open. */
void mu__etcd_commit(struct mu__store *base, struct mu__ctx *ctx, uint64_t revision,
                     uint64_t sequence)
{
    struct etcd_store *store = (struct etcd_store *)base;
    struct etcd_queue *queue = &store->queue;
    struct mu__etcd_batch *batch;

    (void)revision;
    if (store->phase != ETCD_HOLDING || queue->failed)
        return;
    if (queue->open == NULL && queue->first == NULL && !queue->work.active) {
        store->up.committed(store->up.owner, ctx, sequence);
        return;
    }
    batch = queue->open == NULL ? mu__etcd_batch_new() : queue->open;
    queue->open = batch;
    if (batch == NULL || mu__etcd_results_write(queue->results, batch) != 0 ||
        mu__etcd_batch_settle(batch) != 0) {
        (void)fail_queue(store, -MU_ENOMEM, mu_strerror(-MU_ENOMEM));
        return;
    }
    queue->open = NULL;
    batch->sequence = sequence;
    *queue->end = batch;
    queue->end = &batch->next;
    queue->bytes += batch->bytes;
    mu__etcd_step(store, ctx);
}
