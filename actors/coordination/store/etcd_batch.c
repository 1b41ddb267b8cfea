/* Batches of operations, and results in buckets of tokens. */
#include "actors/coordination/store/etcd_batch.h"

#include "muster/error.h"
#include "runtime/base/map.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { OP_BYTES = 128 }; /* of a request, beside key and value */

/* ---- Batches ---- */

struct mu__etcd_batch *mu__etcd_batch_new(void)
{
    return calloc(1, sizeof(struct mu__etcd_batch));
}

static size_t get_op_bytes(const struct mu__etcd_op *op)
{
    return OP_BYTES + op->key.size + op->value.size;
}

void mu__etcd_batch_free(struct mu__etcd_batch *batch)
{
    if (batch == NULL)
        return;
    for (size_t i = 0; i < batch->count; i++)
        free((void *)batch->ops[i].key.data);
    free(batch->ops);
    free(batch);
}

static int reserve_ops(struct mu__etcd_batch *batch, size_t more)
{
    size_t capacity = batch->capacity == 0 ? 8 : batch->capacity;
    struct mu__etcd_op *ops;

    while (capacity < batch->count + more)
        capacity *= 2;
    if (capacity == batch->capacity)
        return 0;
    ops = realloc(batch->ops, capacity * sizeof *ops);
    if (ops == NULL)
        return -MU_ENOMEM;
    batch->ops = ops;
    batch->capacity = capacity;
    return 0;
}

int mu__etcd_batch_add(struct mu__etcd_batch *batch, struct mu__view key,
                       struct mu__view value)
{
    struct mu__etcd_op *op;
    char *bytes;

    if (reserve_ops(batch, 1) != 0)
        return -MU_ENOMEM;
    bytes = malloc((size_t)key.size + value.size + 1);
    if (bytes == NULL)
        return -MU_ENOMEM;
    memcpy(bytes, key.data, key.size);
    if (value.size > 0)
        memcpy(bytes + key.size, value.data, value.size);
    op = &batch->ops[batch->count++];
    op->key = (struct mu__view){bytes, key.size};
    op->value = (struct mu__view){bytes + key.size, value.size};
    batch->bytes += get_op_bytes(op);
    return 0;
}

static int compare_op_keys(struct mu__view a, struct mu__view b)
{
    uint32_t size = a.size < b.size ? a.size : b.size;
    int order = memcmp(a.data, b.data, size);

    if (order != 0)
        return order;
    return a.size < b.size ? -1 : a.size > b.size;
}

/* Merge two sorted sequences; of equal keys those of the first come first. */
static void merge_ops(const struct mu__etcd_op *first, size_t first_count,
                      const struct mu__etcd_op *second, size_t second_count,
                      struct mu__etcd_op *out)
{
    while (first_count > 0 && second_count > 0) {
        if (compare_op_keys(first->key, second->key) <= 0) {
            *out++ = *first++;
            first_count--;
        } else {
            *out++ = *second++;
            second_count--;
        }
    }
    memcpy(out, first, first_count * sizeof *out);
    memcpy(out + first_count, second, second_count * sizeof *out);
}

/* A stable merge sort; `room` is for `count` operations. */
static void sort_ops(struct mu__etcd_op *ops, size_t count, struct mu__etcd_op *room)
{
    size_t half = count / 2;

    if (count < 2)
        return;
    sort_ops(ops, half, room);
    sort_ops(ops + half, count - half, room);
    merge_ops(ops, half, ops + half, count - half, room);
    memcpy(ops, room, count * sizeof *ops);
}

static void keep_last_of_each(struct mu__etcd_batch *batch)
{
    size_t count = 0;

    for (size_t i = 0; i < batch->count; i++) {
        struct mu__etcd_op *op = &batch->ops[i];

        if (i + 1 < batch->count &&
            compare_op_keys(op->key, batch->ops[i + 1].key) == 0) {
            batch->bytes -= get_op_bytes(op);
            free((void *)op->key.data);
        } else {
            batch->ops[count++] = *op;
        }
    }
    batch->count = count;
}

int mu__etcd_batch_settle(struct mu__etcd_batch *batch)
{
    if (reserve_ops(batch, batch->count) != 0)
        return -MU_ENOMEM;
    sort_ops(batch->ops, batch->count, batch->ops + batch->count);
    keep_last_of_each(batch);
    return 0;
}

int mu__etcd_batch_append(struct mu__etcd_batch *batch, struct mu__etcd_batch *later)
{
    size_t count = batch->count + later->count;

    if (reserve_ops(batch, 2 * count) != 0)
        return -MU_ENOMEM;
    if (later->count > 0)
        memcpy(batch->ops + batch->count, later->ops, later->count * sizeof *later->ops);
    batch->count = count;
    batch->bytes += later->bytes;
    later->count = 0;
    later->bytes = 0;
    return mu__etcd_batch_settle(batch);
}

size_t mu__etcd_batch_chunk(const struct mu__etcd_batch *batch, size_t at)
{
    size_t bytes = 0;
    size_t end = at;

    while (end < batch->count && end - at < MU__ETCD_TXN_OPS) {
        bytes += get_op_bytes(&batch->ops[end]);
        if (end > at && bytes > MU__ETCD_TXN_BYTES)
            break;
        end++;
    }
    return end;
}

/* ---- Results ---- */

struct result {
    uint64_t token;
    uint8_t *bytes;
    uint32_t size;
};

/* The results of MU__ETCD_BUCKET tokens of an agent, which share a key. */
struct bucket {
    struct bucket *next; /* of the agent, in order of tokens */
    struct bucket *next_dirty;
    uint64_t agent;
    uint64_t number; /* its first token / MU__ETCD_BUCKET */
    struct result *results;
    size_t count;
    size_t capacity;
    bool dirty;
};

struct agent_results {
    struct bucket *buckets;
};

struct mu__etcd_results {
    struct mu__map agents;
    struct bucket *dirty;
};

struct mu__etcd_results *mu__etcd_results_new(void)
{
    return calloc(1, sizeof(struct mu__etcd_results));
}

static void bucket_free(struct bucket *bucket)
{
    for (size_t i = 0; i < bucket->count; i++)
        free(bucket->results[i].bytes);
    free(bucket->results);
    free(bucket);
}

static void agent_free(struct agent_results *agent)
{
    while (agent->buckets != NULL) {
        struct bucket *bucket = agent->buckets;

        agent->buckets = bucket->next;
        bucket_free(bucket);
    }
    free(agent);
}

void mu__etcd_results_free(struct mu__etcd_results *results)
{
    if (results == NULL)
        return;
    for (size_t i = 0; i < results->agents.capacity; i++)
        if (results->agents.entries[i].key != 0)
            agent_free(results->agents.entries[i].value);
    mu__map_done(&results->agents);
    free(results);
}

static void mark_bucket_dirty(struct mu__etcd_results *results, struct bucket *bucket)
{
    if (bucket->dirty)
        return;
    bucket->dirty = true;
    bucket->next_dirty = results->dirty;
    results->dirty = bucket;
}

static struct agent_results *agent_of(struct mu__etcd_results *results, uint64_t id)
{
    struct agent_results *agent = mu__map_get(&results->agents, id);

    if (agent != NULL)
        return agent;
    agent = calloc(1, sizeof *agent);
    if (agent != NULL && mu__map_set(&results->agents, id, agent) != 0) {
        free(agent);
        agent = NULL;
    }
    return agent;
}

static struct bucket *need_bucket(struct agent_results *agent, uint64_t id,
                                  uint64_t number)
{
    struct bucket **at = &agent->buckets;
    struct bucket *bucket;

    while (*at != NULL && (*at)->number < number)
        at = &(*at)->next;
    if (*at != NULL && (*at)->number == number)
        return *at;
    bucket = calloc(1, sizeof *bucket);
    if (bucket == NULL)
        return NULL;
    bucket->agent = id;
    bucket->number = number;
    bucket->next = *at;
    *at = bucket;
    return bucket;
}

/* The result of a token in a bucket; a new one is added at the end. NULL: out of
 * memory. */
static struct result *need_result_slot(struct bucket *bucket, uint64_t token)
{
    for (size_t i = 0; i < bucket->count; i++)
        if (bucket->results[i].token == token)
            return &bucket->results[i];
    if (bucket->count == bucket->capacity) {
        size_t capacity = bucket->capacity == 0 ? 4 : 2 * bucket->capacity;
        struct result *grown = realloc(bucket->results, capacity * sizeof *grown);

        if (grown == NULL)
            return NULL;
        bucket->results = grown;
        bucket->capacity = capacity;
    }
    bucket->results[bucket->count] = (struct result){.token = token};
    return &bucket->results[bucket->count++];
}

static void forget_below(struct mu__etcd_results *results, struct bucket *bucket,
                         uint64_t done)
{
    size_t count = 0;

    for (size_t i = 0; i < bucket->count; i++) {
        if (bucket->results[i].token < done)
            free(bucket->results[i].bytes);
        else
            bucket->results[count++] = bucket->results[i];
    }
    if (count == bucket->count)
        return;
    bucket->count = count;
    mark_bucket_dirty(results, bucket);
}

int mu__etcd_results_add(struct mu__etcd_results *results, uint64_t agent_id,
                         uint64_t token, uint64_t done, struct mu__view packed)
{
    struct agent_results *agent = agent_id == 0 ? NULL : agent_of(results, agent_id);
    struct bucket *bucket;
    struct result *slot;
    uint8_t *bytes;

    if (agent == NULL)
        return agent_id == 0 ? -MU_EINVALID : -MU_ENOMEM;
    for (bucket = agent->buckets;
         bucket != NULL && bucket->number <= done / MU__ETCD_BUCKET;
         bucket = bucket->next)
        forget_below(results, bucket, done);
    if (token < done)
        return 0;
    bucket = need_bucket(agent, agent_id, token / MU__ETCD_BUCKET);
    slot = bucket == NULL ? NULL : need_result_slot(bucket, token);
    bytes = slot == NULL ? NULL : realloc(slot->bytes, packed.size);
    if (bytes == NULL)
        return -MU_ENOMEM;
    memcpy(bytes, packed.data, packed.size);
    slot->bytes = bytes;
    slot->size = packed.size;
    mark_bucket_dirty(results, bucket);
    return 0;
}

static int write_bucket(struct bucket *bucket, struct mu__etcd_batch *batch)
{
    uint8_t *value;
    uint8_t *at;
    size_t size = 0;
    char key[64];
    int rv;

    for (size_t i = 0; i < bucket->count; i++)
        size += bucket->results[i].size;
    value = malloc(size + 1);
    if (value == NULL)
        return -MU_ENOMEM;
    at = value;
    for (size_t i = 0; i < bucket->count; at += bucket->results[i++].size)
        memcpy(at, bucket->results[i].bytes, bucket->results[i].size);
    (void)snprintf(key, sizeof key, "results/%016" PRIx64 "/%016" PRIx64, bucket->agent,
                   bucket->number);
    rv = mu__etcd_batch_add(batch, mu__view_str(key),
                            (struct mu__view){value, (uint32_t)size});
    free(value);
    return rv;
}

/* Free a bucket without results, and an agent without buckets. */
static void drop_if_empty(struct mu__etcd_results *results, struct bucket *bucket)
{
    struct agent_results *agent = mu__map_get(&results->agents, bucket->agent);
    struct bucket **at = &agent->buckets;

    if (bucket->count > 0)
        return;
    while (*at != bucket)
        at = &(*at)->next;
    *at = bucket->next;
    if (agent->buckets == NULL)
        free(mu__map_remove(&results->agents, bucket->agent));
    bucket_free(bucket);
}

int mu__etcd_results_write(struct mu__etcd_results *results, struct mu__etcd_batch *batch)
{
    while (results->dirty != NULL) {
        struct bucket *bucket = results->dirty;
        int rv = write_bucket(bucket, batch);

        if (rv != 0)
            return rv;
        results->dirty = bucket->next_dirty;
        bucket->dirty = false;
        drop_if_empty(results, bucket);
    }
    return 0;
}

void mu__etcd_results_read(struct mu__etcd_results *results)
{
    while (results->dirty != NULL) {
        struct bucket *bucket = results->dirty;

        results->dirty = bucket->next_dirty;
        bucket->dirty = false;
        drop_if_empty(results, bucket);
    }
}
