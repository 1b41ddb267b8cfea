/* A log of chunks for the closures, and a table of their names by linear hashing: with
 * `buckets` buckets there are `level` <= buckets < 2 * level, the first buckets - level
 * of which have been split already. */
#include "actors/supervisor/state/finished_closures.h"

#include "actors/packing.h"
#include "runtime/base/sip_hash.h"

#include <assert.h>
#include <string.h>

enum {
    UNIT = 8,
    CHUNK_UNITS_BITS = 13,
    CHUNK_UNITS = 1 << CHUNK_UNITS_BITS, /* 64 KiB */
    SEGMENT = 1024,                      /* buckets */
    RESULT_INLINE_MAX = 1024,
    AGE_PARTS = 8 /* a chunk's closures finished in such a part of the age */
};

struct finished_chunk {
    uint64_t first_ms; /* when the first and the last of it finished */
    uint64_t last_ms;
    uint32_t units; /* used */
    uint64_t content[CHUNK_UNITS];
};

/* A result that is not beside the name. */
struct large_result {
    struct mu__packed packed;
    struct mu__buf *buf;
};

static uint32_t hash_finished_name(const struct finished_closures *f,
                                   struct mu__view name)
{
    return (uint32_t)mu__sip_hash(f->functions->secret, name.data, name.size);
}

static struct finished_chunk *chunk_of(const struct finished_closures *f,
                                       mu__finished_ref ref)
{
    return f->chunks[(ref >> CHUNK_UNITS_BITS) & (f->chunks_size - 1)];
}

static struct finished_closure *at_ref(const struct finished_closures *f,
                                       mu__finished_ref ref)
{
    return (void *)&chunk_of(f, ref)->content[ref & (CHUNK_UNITS - 1)];
}

static size_t get_result_offset(const struct finished_closure *closure)
{
    return (offsetof(struct finished_closure, bytes) + closure->name_size + UNIT - 1) /
           UNIT * UNIT;
}

static uint32_t units_of(uint32_t name_size, bool is_large, uint32_t result_size)
{
    size_t size = offsetof(struct finished_closure, bytes) + name_size;

    if (is_large)
        size = (size + UNIT - 1) / UNIT * UNIT + sizeof(struct large_result);
    else
        size += result_size;
    return (uint32_t)((size + UNIT - 1) / UNIT);
}

static uint32_t count_units(const struct finished_closure *closure)
{
    return units_of(closure->name_size, closure->is_large != 0, closure->result_size);
}

static struct large_result *large_of(const struct finished_closure *closure)
{
    return (void *)((char *)closure + get_result_offset(closure));
}

/* How far a place is behind the oldest one. */
static uint32_t get_ref_distance(const struct finished_closures *f, mu__finished_ref ref)
{
    return ref - f->head;
}

/* ---- Buckets ---- */

static uint32_t *finished_bucket_of(const struct finished_closures *f, uint32_t hash)
{
    uint32_t i = hash & (2 * f->level - 1);

    if (i >= f->buckets)
        i -= f->level;
    return &f->segments[i / SEGMENT][i % SEGMENT];
}

static bool add_segment(struct finished_closures *f)
{
    uint32_t number = f->buckets / SEGMENT;
    uint32_t *segment = NULL;

    if (!mu__grow_for_one((void **)&f->segments, &f->segments_size, number,
                          sizeof *f->segments) ||
        !mu__grow_array((void **)&segment, SEGMENT, sizeof *segment))
        return false;
    for (uint32_t i = 0; i < SEGMENT; i++)
        segment[i] = MU__FINISHED_NONE;
    f->segments[number] = segment;
    return true;
}

static bool make_buckets(struct finished_closures *f)
{
    if (f->buckets > 0)
        return true;
    if (!add_segment(f))
        return false;
    f->buckets = f->level = SEGMENT;
    return true;
}

/* The next bucket in order gives half of its closures to a new one. Out of memory, chains
 * become longer instead. */
static void split_bucket(struct finished_closures *f)
{
    uint32_t from = f->buckets - f->level;
    mu__finished_ref ref;
    uint32_t *old;

    if (f->buckets == UINT32_C(1) << 31 || (f->buckets % SEGMENT == 0 && !add_segment(f)))
        return;
    old = &f->segments[from / SEGMENT][from % SEGMENT];
    ref = *old;
    *old = MU__FINISHED_NONE;
    f->buckets++;
    while (ref != MU__FINISHED_NONE) {
        struct finished_closure *closure = at_ref(f, ref);
        mu__finished_ref next = closure->next;
        uint32_t *bucket = finished_bucket_of(f, closure->hash);

        closure->next = *bucket;
        *bucket = ref;
        ref = next;
    }
    if (f->buckets == 2 * f->level)
        f->level = f->buckets;
}

static void unlink_ref(struct finished_closures *f, mu__finished_ref ref)
{
    const struct finished_closure *closure = at_ref(f, ref);
    uint32_t *at = finished_bucket_of(f, closure->hash);

    while (*at != ref)
        at = &at_ref(f, *at)->next;
    *at = closure->next;
}

const struct finished_closure *mu__finished_find(const struct finished_closures *f,
                                                 struct mu__view name)
{
    uint32_t hash;
    mu__finished_ref ref;

    if (f->count == 0)
        return NULL;
    hash = hash_finished_name(f, name);
    ref = *finished_bucket_of(f, hash);
    for (; ref != MU__FINISHED_NONE; ref = at_ref(f, ref)->next) {
        const struct finished_closure *closure = at_ref(f, ref);

        if (closure->hash == hash && closure->name_size == name.size &&
            memcmp(closure->bytes, name.data, name.size) == 0 &&
            get_ref_distance(f, ref) >= get_ref_distance(f, f->known))
            return closure;
    }
    return NULL;
}

/* ---- Chunks ---- */

static uint32_t chunks_count(const struct finished_closures *f)
{
    uint32_t used = f->head % CHUNK_UNITS + (f->tail - f->head);

    return (used + CHUNK_UNITS - 1) >> CHUNK_UNITS_BITS;
}

/* Twice as many chunks; each finds its place by its number. */
static bool grow_chunk_ring(struct finished_closures *f)
{
    uint32_t size = f->chunks_size == 0 ? 2 : 2 * f->chunks_size;
    struct finished_chunk **ring = NULL;
    uint32_t count = chunks_count(f);

    if (size > UINT32_C(1) << (32 - CHUNK_UNITS_BITS - 1) ||
        !mu__grow_array((void **)&ring, size, sizeof(struct finished_chunk *)))
        return false;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t number = (f->head >> CHUNK_UNITS_BITS) + i;

        ring[number & (size - 1)] = f->chunks[number & (f->chunks_size - 1)];
    }
    mu__free_array(f->chunks);
    f->chunks = ring;
    f->chunks_size = size;
    return true;
}

/* The tail is at the begin of a chunk that is not there. */
static bool add_finished_chunk(struct finished_closures *f, uint64_t now_ms)
{
    struct finished_chunk *chunk = NULL;

    if (chunks_count(f) == f->chunks_size && !grow_chunk_ring(f))
        return false;
    if (!mu__grow_array((void **)&chunk, 1, sizeof *chunk))
        return false;
    chunk->first_ms = chunk->last_ms = now_ms;
    chunk->units = 0;
    f->chunks[(f->tail >> CHUNK_UNITS_BITS) & (f->chunks_size - 1)] = chunk;
    return true;
}

static mu__finished_ref next_chunk(mu__finished_ref ref)
{
    return (ref | (CHUNK_UNITS - 1)) + 1;
}

/* The tail leaves a chunk that is not full. What points there moves with it. */
static void end_chunk(struct finished_closures *f)
{
    mu__finished_ref from = f->tail;

    if (from % CHUNK_UNITS == 0)
        return;
    f->tail = next_chunk(from);
    if (f->known == from)
        f->known = f->tail;
    if (f->head != from)
        return;
    mu__free_array(chunk_of(f, from));
    f->head = f->tail;
}

/* Where the closure at `ref` ends, and the next one begins. */
static mu__finished_ref get_next_ref(const struct finished_closures *f,
                                     mu__finished_ref ref)
{
    mu__finished_ref next = ref + count_units(at_ref(f, ref));

    if (ref >> CHUNK_UNITS_BITS != f->tail >> CHUNK_UNITS_BITS &&
        next - (ref & ~(mu__finished_ref)(CHUNK_UNITS - 1)) >= chunk_of(f, ref)->units)
        next = next_chunk(ref);
    return next;
}

/* Room for one closure at the tail. */
static bool reserve_units(struct finished_closures *f, uint32_t size, uint64_t now_ms)
{
    if (f->tail % CHUNK_UNITS + size > CHUNK_UNITS)
        end_chunk(f);
    if (f->tail % CHUNK_UNITS == 0 && !add_finished_chunk(f, now_ms))
        return false;
    return true;
}

int mu__finished_add(struct finished_closures *f, uint64_t number, uint32_t function,
                     struct mu__view name, const struct mu__packed *result,
                     uint64_t now_ms)
{
    bool is_large = result->tail_size > 0 || result->head_size > RESULT_INLINE_MAX;
    uint32_t size = units_of(name.size, is_large, result->head_size);
    struct large_result large = {.buf = NULL};
    struct finished_closure *closure;
    struct finished_chunk *chunk;
    uint32_t *bucket;

    if (is_large) {
        large.buf = mu__pack_copy(result, &large.packed);
        if (large.buf == NULL)
            return -MU_ENOMEM;
    }
    if (!make_buckets(f) || !reserve_units(f, size, now_ms)) {
        mu__buf_unref(large.buf);
        return -MU_ENOMEM;
    }
    chunk = chunk_of(f, f->tail);
    closure = at_ref(f, f->tail);
    *closure = (struct finished_closure){
        .number = number,
        .hash = hash_finished_name(f, name),
        .function = function,
        .name_size = (uint16_t)name.size,
        .is_large = is_large,
        .result_size = is_large ? 0 : result->head_size,
    };
    memcpy(closure->bytes, name.data, name.size);
    if (is_large)
        memcpy(large_of(closure), &large, sizeof large);
    else if (result->head_size > 0)
        memcpy(closure->bytes + name.size, result->head, result->head_size);
    mu__names_hold(f->functions, function);
    bucket = finished_bucket_of(f, closure->hash);
    closure->next = *bucket;
    *bucket = f->tail;
    f->tail += size;
    chunk->units = ((f->tail - 1) & (CHUNK_UNITS - 1)) + 1;
    chunk->last_ms = now_ms;
    f->count++;
    if (f->count > f->buckets)
        split_bucket(f);
    return 0;
}

struct mu__packed mu__finished_result(const struct finished_closure *closure,
                                      struct mu__buf **ret_buf)
{
    *ret_buf = NULL;
    if (closure->is_large == 0)
        return (struct mu__packed){.head = closure->bytes + closure->name_size,
                                   .head_size = closure->result_size};
    *ret_buf = large_of(closure)->buf;
    return large_of(closure)->packed;
}

/* ---- Forgetting ---- */

/* What it holds. */
static void release_finished(struct finished_closures *f,
                             struct finished_closure *closure)
{
    mu__names_release(f->functions, closure->function);
    if (closure->is_large != 0)
        mu__buf_unref(large_of(closure)->buf);
    closure->is_removed = 1;
}

void mu__finished_remove(struct finished_closures *f,
                         const struct finished_closure *closure)
{
    mu__finished_ref ref = *finished_bucket_of(f, closure->hash);

    while (at_ref(f, ref) != closure)
        ref = at_ref(f, ref)->next;
    unlink_ref(f, ref);
    release_finished(f, at_ref(f, ref));
    f->count--;
}

/* The oldest that is known is forgotten. */
static void forget_oldest(struct finished_closures *f)
{
    if (at_ref(f, f->known)->is_removed == 0)
        f->count--;
    f->known = get_next_ref(f, f->known);
}

void mu__finished_forget_all(struct finished_closures *f)
{
    f->known = f->tail;
    f->count = 0;
}

void mu__finished_keep(struct finished_closures *f, uint64_t count)
{
    while (f->count > count)
        forget_oldest(f);
}

void mu__finished_forget_old(struct finished_closures *f, uint64_t now_ms,
                             uint64_t age_ms)
{
    if (f->tail % CHUNK_UNITS != 0 &&
        now_ms - chunk_of(f, f->tail)->first_ms > age_ms / AGE_PARTS)
        end_chunk(f);
    while (f->known != f->tail && now_ms - chunk_of(f, f->known)->last_ms > age_ms)
        forget_oldest(f);
}

void mu__finished_sweep(struct finished_closures *f, unsigned max)
{
    for (unsigned i = 0; i < max && f->head != f->known; i++) {
        mu__finished_ref ref = f->head;
        mu__finished_ref next = get_next_ref(f, ref);
        struct finished_closure *closure = at_ref(f, ref);

        if (closure->is_removed == 0) {
            unlink_ref(f, ref);
            release_finished(f, closure);
        }
        if (next >> CHUNK_UNITS_BITS != ref >> CHUNK_UNITS_BITS)
            mu__free_array(chunk_of(f, ref));
        f->head = next;
    }
}

const struct finished_closure *mu__finished_walk(
    const struct finished_closures *f, mu__finished_ref *at, mu__finished_ref end)
{
    if ((int32_t)(f->known - *at) > 0)
        *at = f->known;
    while ((int32_t)(end - *at) > 0) {
        const struct finished_closure *closure = at_ref(f, *at);

        *at = get_next_ref(f, *at);
        if (closure->is_removed == 0)
            return closure;
    }
    return NULL;
}

void mu__finished_done(struct finished_closures *f)
{
    mu__finished_ref at = f->head;
    uint32_t count = chunks_count(f);

    while (at != f->tail) {
        const struct finished_closure *closure = at_ref(f, at);

        if (closure->is_removed == 0 && closure->is_large != 0)
            mu__buf_unref(large_of(closure)->buf);
        at = get_next_ref(f, at);
    }
    for (uint32_t i = 0; i < count; i++)
        mu__free_array(
            f->chunks[((f->head >> CHUNK_UNITS_BITS) + i) & (f->chunks_size - 1)]);
    mu__free_array(f->chunks);
    for (uint32_t i = 0; i < f->buckets / SEGMENT + (f->buckets % SEGMENT != 0); i++)
        mu__free_array(f->segments[i]);
    mu__free_array(f->segments);
}
