#include "actors/ps/store_snapshots.h"

#include "actors/ps/internal.h"
#include "actors/ps/tables/copies/set_copies.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

struct snapshot_shard {
    uint64_t id;
    uint64_t bytes;       /* of the content, */
    uint64_t slots_bytes; /* and of the slots behind it */
    uint64_t left;        /* to be read */
    const uint8_t *live;  /* NULL: it is a copy */
    const uint8_t *live_slots;
    uint8_t *copy; /* NULL: it did not change since, or was read */
};

struct snapshot {
    struct mu__list_node node;
    struct mu__snapshot_key key;
    uint64_t refused; /* bytes for which there was no memory; 0: it has not failed */
    bool idle;        /* not read since mu__snapshots_drop_idle */
    uint32_t unread;
    struct mu__set_copies tables;
    uint8_t *rows; /* of a table, as they were read last; or NULL */
    uint32_t count;
    struct snapshot_shard shards[]; /* by id */
};

static struct snapshot *first_snapshot(const struct mu__variable_store *store)
{
    return MU__LIST_FIRST(&store->snapshots, struct snapshot, node);
}

static struct snapshot *next_snapshot(const struct snapshot *snapshot)
{
    return MU__LIST_NEXT(snapshot, struct snapshot, node);
}

/* ---- Memory ---- */

static struct mu__snapshot_usage *usage_of(struct mu__variable_store *store)
{
    return store->limits.snapshots == NULL ? &store->usage : store->limits.snapshots;
}

/* Whether there is room for so many bytes more; they are counted then. */
static bool charge_copy(struct mu__variable_store *store, uint64_t bytes)
{
    uint64_t *copied = &usage_of(store)->copied;

    if (bytes > store->limits.copies_max - *copied)
        return false;
    *copied += bytes;
    return true;
}

static void free_copy(struct mu__variable_store *store, struct snapshot_shard *shard)
{
    if (shard->copy == NULL)
        return;
    usage_of(store)->copied -= shard->bytes + shard->slots_bytes;
    free(shard->copy);
    shard->copy = NULL;
}

static void free_copies(struct mu__variable_store *store, struct snapshot *snapshot)
{
    for (uint32_t i = 0; i < snapshot->count; i++)
        free_copy(store, &snapshot->shards[i]);
}

static void free_snapshot(struct mu__variable_store *store, struct snapshot *snapshot)
{
    free_copies(store, snapshot);
    mu__set_copies_end(&snapshot->tables);
    mu__list_remove(&store->snapshots, &snapshot->node);
    usage_of(store)->count--;
    free(snapshot->rows);
    free(snapshot);
}

/* ---- Opening ---- */

uint8_t *mu__snapshot_id_put(uint8_t *at, uint64_t id)
{
    for (unsigned i = 0; i < MU__SNAPSHOT_ID_BYTES; i++)
        at[i] = (uint8_t)(id >> (8 * i));
    return at + MU__SNAPSHOT_ID_BYTES;
}

static uint64_t id_at(struct mu__view ids, uint32_t i)
{
    const uint8_t *at = (const uint8_t *)ids.data + (size_t)i * MU__SNAPSHOT_ID_BYTES;
    uint64_t id = 0;

    for (unsigned k = 0; k < MU__SNAPSHOT_ID_BYTES; k++)
        id |= (uint64_t)at[k] << (8 * k);
    return id;
}

static int compare_shard_ids(const void *a, const void *b)
{
    uint64_t one = ((const struct snapshot_shard *)a)->id;
    uint64_t two = ((const struct snapshot_shard *)b)->id;

    return one < two ? -1 : one > two;
}

uint8_t *mu__snapshot_slots_pack(const struct mu__variable_store *store,
                                 struct mu__view ids, uint32_t *ret_size)
{
    uint32_t count = ids.size / MU__SNAPSHOT_ID_BYTES;
    uint8_t *slots = malloc((size_t)count * MU__SNAPSHOT_SLOTS_BYTES + 1);

    for (uint32_t i = 0; slots != NULL && i < count; i++) {
        const struct variable *v = mu__map_get(&store->by_id, id_at(ids, i));
        uint32_t rule = v == NULL ? 0 : v->slots.kind;
        uint64_t step = v == NULL ? 0 : v->slots.step;

        memcpy(slots + (size_t)i * MU__SNAPSHOT_SLOTS_BYTES, &rule, sizeof rule);
        memcpy(slots + (size_t)i * MU__SNAPSHOT_SLOTS_BYTES + sizeof rule, &step,
               sizeof step);
    }
    *ret_size = count * MU__SNAPSHOT_SLOTS_BYTES;
    return slots;
}

struct mu__snapshot_slots mu__snapshot_slots_at(const uint8_t *slots, size_t i)
{
    const uint8_t *at = slots + i * MU__SNAPSHOT_SLOTS_BYTES;
    struct mu__snapshot_slots found;

    memcpy(&found.rule, at, sizeof found.rule);
    memcpy(&found.step, at + sizeof found.rule, sizeof found.step);
    return found;
}

static int add_to_snapshot(const struct mu__variable_store *store,
                           struct snapshot *snapshot, uint64_t id, bool with_slots,
                           mu_error *ret_error)
{
    const struct variable *v = mu__shard_find_by_id(store, id, ret_error);

    if (v == NULL)
        return -MU_ENOTFOUND;
    if (v->stage != READY)
        return mu_error_set(ret_error, -MU_EPRECONDITION,
                            "variable %s has no initial content yet", v->name);
    snapshot->shards[snapshot->count++] =
        (struct snapshot_shard){.id = id,
                                .bytes = v->bytes,
                                .slots_bytes = with_slots ? v->slots.bytes : 0,
                                .left = v->bytes + (with_slots ? v->slots.bytes : 0),
                                .live = v->data,
                                .live_slots = v->slots.data};
    return 0;
}

static int sort_shards(struct snapshot *snapshot, mu_error *ret_error)
{
    qsort(snapshot->shards, snapshot->count, sizeof snapshot->shards[0],
          compare_shard_ids);
    for (uint32_t i = 1; i < snapshot->count; i++)
        if (snapshot->shards[i - 1].id == snapshot->shards[i].id)
            return mu_error_set(ret_error, -MU_EINVALID, "a shard is in it twice");
    return 0;
}

static int check_snapshots_count(struct mu__variable_store *store, mu_error *ret_error)
{
    uint32_t count = usage_of(store)->count;

    if (count < store->limits.snapshots_max)
        return 0;
    return mu_error_set(ret_error, -MU_EEXHAUSTED,
                        "%" PRIu32 " snapshots are open, at most %" PRIu32, count,
                        store->limits.snapshots_max);
}

static int add_tables(struct mu__variable_store *store, struct snapshot *snapshot,
                      const struct mu__snapshot_content *content, mu_error *ret_error)
{
    const struct mu__table_copy_memory memory = {store->limits.copies_max,
                                                 &usage_of(store)->copied};

    return mu__set_copies_begin(&snapshot->tables, &store->tables, content->tables,
                                &content->marks, &memory, ret_error);
}

/* Takes content->extra when it returns 0. */
static int fill_snapshot(struct mu__variable_store *store, struct snapshot *snapshot,
                         const struct mu__snapshot_content *content, mu_error *ret_error)
{
    uint32_t count = content->ids.size / MU__SNAPSHOT_ID_BYTES;
    uint64_t extra = content->extra_bytes;
    int rv = check_snapshots_count(store, ret_error);

    if (extra > 0)
        snapshot->shards[snapshot->count++] =
            (struct snapshot_shard){.bytes = extra, .left = extra};
    for (uint32_t i = 0; rv == 0 && i < count; i++)
        rv = add_to_snapshot(store, snapshot, id_at(content->ids, i), content->with_slots,
                             ret_error);
    if (rv == 0)
        rv = sort_shards(snapshot, ret_error);
    if (rv == 0)
        rv = add_tables(store, snapshot, content, ret_error);
    if (rv == 0 && !charge_copy(store, extra))
        rv = mu_error_set(ret_error, -MU_EEXHAUSTED,
                          "snapshots have copies of %" PRIu64 " bytes, at most %" PRIu64,
                          usage_of(store)->copied, store->limits.copies_max);
    if (rv == 0 && extra > 0)
        snapshot->shards[0].copy = content->extra;
    snapshot->unread = snapshot->count + mu__set_copies_unread(&snapshot->tables);
    return rv;
}

int mu__snapshot_open(struct mu__variable_store *store,
                      const struct mu__snapshot_key *key,
                      const struct mu__snapshot_content *content, mu_error *ret_error)
{
    uint32_t count = content->ids.size / MU__SNAPSHOT_ID_BYTES + 1;
    struct snapshot *snapshot =
        calloc(1, sizeof *snapshot + count * sizeof snapshot->shards[0]);
    int rv = snapshot == NULL
                 ? mu_error_set(ret_error, -MU_ENOMEM, "the server is out of memory")
                 : fill_snapshot(store, snapshot, content, ret_error);

    if (rv != 0 || content->extra_bytes == 0)
        free(content->extra);
    if (rv != 0 || snapshot->unread == 0) {
        if (snapshot != NULL)
            mu__set_copies_end(&snapshot->tables);
        free(snapshot);
        return rv;
    }
    snapshot->key = *key;
    mu__list_append(&store->snapshots, &snapshot->node);
    usage_of(store)->count++;
    return 0;
}

/* ---- Changes ---- */

static struct snapshot_shard *find_in_snapshot(struct snapshot *snapshot, uint64_t id)
{
    const struct snapshot_shard expected = {.id = id};

    return bsearch(&expected, snapshot->shards, snapshot->count,
                   sizeof snapshot->shards[0], compare_shard_ids);
}

/* A snapshot without this shard is no snapshot any more. */
static void fail_snapshot(struct mu__variable_store *store, struct snapshot *snapshot,
                          uint64_t bytes)
{
    snapshot->refused = bytes;
    free_copies(store, snapshot);
}

static void copy_shard_for(struct mu__variable_store *store, struct snapshot *snapshot,
                           struct snapshot_shard *shard)
{
    uint64_t bytes = shard->bytes + shard->slots_bytes;

    if (!charge_copy(store, bytes)) {
        fail_snapshot(store, snapshot, bytes);
        return;
    }
    shard->copy = bytes > SIZE_MAX ? NULL : malloc((size_t)bytes);
    if (shard->copy == NULL) {
        usage_of(store)->copied -= bytes;
        fail_snapshot(store, snapshot, bytes);
        return;
    }
    memcpy(shard->copy, shard->live, (size_t)shard->bytes);
    if (shard->slots_bytes > 0)
        memcpy(shard->copy + shard->bytes, shard->live_slots, (size_t)shard->slots_bytes);
    shard->live = NULL;
}

void mu__shard_will_change(struct mu__variable_store *store, const struct variable *v)
{
    for (struct snapshot *at = first_snapshot(store); at != NULL;
         at = next_snapshot(at)) {
        struct snapshot_shard *shard = find_in_snapshot(at, v->id);

        if (shard != NULL && shard->live != NULL && shard->left > 0 && at->refused == 0)
            copy_shard_for(store, at, shard);
    }
}

/* ---- Reading ---- */

static struct snapshot *find_snapshot(const struct mu__variable_store *store,
                                      const struct mu__snapshot_key *key)
{
    struct snapshot *at = first_snapshot(store);

    while (at != NULL &&
           (at->key.number != key->number || !mu__pid_equal(at->key.client, key->client)))
        at = next_snapshot(at);
    return at;
}

/* The bytes of the content, or of the slots behind it, from an offset on; and how many
 * there are. */
static const uint8_t *find_snapshot_bytes(const struct snapshot_shard *shard,
                                          uint64_t offset, uint64_t *ret_room)
{
    bool is_content = offset < shard->bytes;
    uint64_t all = shard->bytes + shard->slots_bytes;

    *ret_room = is_content ? shard->bytes - offset : offset < all ? all - offset : 0;
    if (shard->live == NULL)
        return shard->copy + (offset < all ? offset : 0);
    if (is_content)
        return shard->live + offset;
    return offset < all ? shard->live_slots + (offset - shard->bytes) : shard->live;
}

static int refuse_unsaved(const struct mu__variable_store *store, uint64_t bytes,
                          mu_error *ret_error)
{
    return mu_error_set(ret_error, -MU_EEXHAUSTED,
                        "the snapshot was given up: no memory to keep %" PRIu64
                        " bytes that were written meanwhile (copies: at most "
                        "%" PRIu64 " bytes)",
                        bytes, store->limits.copies_max);
}

static int read_shard(struct snapshot *snapshot, const struct mu__store_read *request,
                      mu_error *ret_error, struct mu__view *ret_data)
{
    const struct snapshot_shard *shard = find_in_snapshot(snapshot, request->id);
    const uint8_t *from;
    uint64_t room;

    if (shard == NULL || request->size == 0 || request->size > shard->left)
        return mu_error_set(ret_error, -MU_EABORTED,
                            "the shard is not in the snapshot, or was read");
    from = find_snapshot_bytes(shard, request->offset, &room);
    if (request->size > room)
        return mu_error_set(ret_error, -MU_ERANGE,
                            "%" PRIu32 " bytes at %" PRIu64 " of a shard of %" PRIu64,
                            request->size, request->offset, shard->bytes);
    *ret_data = (struct mu__view){from, request->size};
    return 0;
}

int mu__snapshot_read(struct mu__variable_store *store,
                      const struct mu__snapshot_key *key,
                      const struct mu__store_read *request, mu_error *ret_error,
                      struct mu__view *ret_data)
{
    struct snapshot *snapshot = find_snapshot(store, key);
    const struct mu__set_copy *table;
    uint64_t refused;
    int rv;

    if (snapshot == NULL)
        return mu_error_set(ret_error, -MU_EABORTED,
                            "the snapshot is not there any more");
    refused = snapshot->refused != 0 ? snapshot->refused
                                     : mu__set_copies_refused(&snapshot->tables);
    if (refused != 0)
        return refuse_unsaved(store, refused, ret_error);
    table = mu__set_copies_find(&snapshot->tables, request->id);
    if (table == NULL)
        return read_shard(snapshot, request, ret_error, ret_data);
    free(snapshot->rows);
    snapshot->rows = NULL;
    rv = mu__set_copy_read(table, request->offset, request->size, ret_error,
                           &snapshot->rows);
    *ret_data = (struct mu__view){snapshot->rows, rv == 0 ? request->size : 0};
    return rv;
}

/* Whether nothing of it is left. */
static bool take_snapshot_bytes(struct mu__variable_store *store,
                                struct snapshot_shard *shard, uint32_t size)
{
    shard->left -= size;
    if (shard->left > 0)
        return false;
    free_copy(store, shard);
    return true;
}

void mu__snapshot_taken(struct mu__variable_store *store,
                        const struct mu__snapshot_key *key,
                        const struct mu__store_read *request)
{
    struct snapshot *snapshot = find_snapshot(store, key);
    struct mu__set_copy *table = mu__set_copies_find(&snapshot->tables, request->id);
    bool is_all =
        table != NULL
            ? mu__set_copy_take(table, request->size)
            : take_snapshot_bytes(store, find_in_snapshot(snapshot, request->id),
                                  request->size);

    snapshot->idle = false;
    if (is_all && --snapshot->unread == 0)
        free_snapshot(store, snapshot);
}

/* ---- The end ---- */

void mu__snapshot_close(struct mu__variable_store *store,
                        const struct mu__snapshot_key *key)
{
    struct snapshot *snapshot = find_snapshot(store, key);

    if (snapshot != NULL)
        free_snapshot(store, snapshot);
}

void mu__snapshots_drop_node(struct mu__variable_store *store, uint32_t node)
{
    struct snapshot *next;

    for (struct snapshot *at = first_snapshot(store); at != NULL; at = next) {
        next = next_snapshot(at);
        if (at->key.client.node == node)
            free_snapshot(store, at);
    }
}

void mu__snapshots_drop_idle(struct mu__variable_store *store)
{
    struct snapshot *next;

    for (struct snapshot *at = first_snapshot(store); at != NULL; at = next) {
        next = next_snapshot(at);
        if (at->idle)
            free_snapshot(store, at);
        else
            at->idle = true;
    }
}

void mu__snapshots_drop(struct mu__variable_store *store)
{
    while (first_snapshot(store) != NULL)
        free_snapshot(store, first_snapshot(store));
}
