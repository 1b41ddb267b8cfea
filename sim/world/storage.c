/* A storage in memory, with faults. */
#include "sim/world/storage.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

static const char *const op_names[SIM_STORAGE_OPS] = {"read", "write", "flush", "replace",
                                                      "renew"};

static struct sim_storage *storage_of(struct mu__storage *base)
{
    return (struct sim_storage *)base; /* the base is its first member */
}

/* Before each operation. *ret_happens: it has its effect, whatever is returned. */
static int begin(struct sim_storage *s, enum sim_storage_op op, mu_error *error,
                 bool *ret_happens)
{
    struct sim_storage_fault *fault = &s->faults[op];

    s->counts[op]++;
    *ret_happens = false;
    if (!s->dead && s->dies && s->lives_for-- == 0) {
        s->dead = true;
        *ret_happens = sim_chance(&s->random, 50);
    }
    if (s->dead)
        return mu_error_set(error, -MU_ECLOSED, "%s: cannot %s it: the process is dead",
                            s->base.name, op_names[op]);
    if (fault->times > 0) {
        fault->times--;
        return mu_error_set(error, fault->code, "%s: cannot %s it: %s", s->base.name,
                            op_names[op], mu_strerror(fault->code));
    }
    *ret_happens = true;
    return 0;
}

/* Of an operation that happens. */
static int check_room(struct sim_storage *s, size_t size, mu_error *error,
                      bool *ret_happens)
{
    if (!*ret_happens || s->limit == 0 || size <= s->limit)
        return 0;
    *ret_happens = false;
    return mu_error_set(error, -MU_EEXHAUSTED, "%s: cannot write it: no space left",
                        s->base.name);
}

static void add_to(uint8_t **content, size_t *content_size, size_t *capacity,
                   const void *data, size_t size)
{
    if (*content_size + size > *capacity) {
        *capacity = 2 * (*content_size + size);
        *content = realloc(*content, *capacity);
        assert(*content != NULL);
    }
    if (size > 0)
        memcpy(*content + *content_size, data, size);
    *content_size += size;
}

static void add(struct sim_storage *s, const void *data, size_t size)
{
    add_to(&s->content, &s->size, &s->capacity, data, size);
}

void sim_storage_set(struct sim_storage *s, const void *data, size_t size)
{
    s->size = 0;
    add(s, data, size);
    s->flushed = size;
}

/* ---- The door ---- */

static int sim_load(struct mu__storage *base, uint64_t offset, uint32_t bytes_max,
                    mu_error *ret_error, struct mu__buf **ret_content)
{
    struct sim_storage *s = storage_of(base);
    size_t left = offset < s->flushed ? s->flushed - (size_t)offset : 0;
    size_t size = left < bytes_max ? left : bytes_max;
    struct mu__buf *content;
    bool happens;
    int rv = begin(s, SIM_STORAGE_LOAD, ret_error, &happens);

    *ret_content = NULL;
    if (rv != 0 || size == 0)
        return rv;
    content = mu__buf_new(size);
    assert(content != NULL);
    memcpy(content->data, s->content + offset, size);
    content->size = (uint32_t)size;
    *ret_content = content;
    return 0;
}

static uint64_t sim_size(const struct mu__storage *base)
{
    return ((const struct sim_storage *)base)->flushed;
}

static int sim_cut(struct mu__storage *base, uint64_t size, mu_error *ret_error)
{
    struct sim_storage *s = storage_of(base);
    bool happens;
    int rv = begin(s, SIM_STORAGE_REPLACE, ret_error, &happens);

    assert(s->size == s->flushed && size <= s->size);
    if (happens)
        s->size = s->flushed = (size_t)size;
    return rv;
}

static int sim_append(struct mu__storage *base, const void *data, size_t size,
                      mu_error *ret_error)
{
    struct sim_storage *s = storage_of(base);
    bool happens;
    int rv = begin(s, SIM_STORAGE_APPEND, ret_error, &happens);

    if (rv == 0)
        rv = check_room(s, s->size + size, ret_error, &happens);
    if (happens)
        add(s, data, size);
    return rv;
}

static int sim_flush(struct mu__storage *base, mu_error *ret_error)
{
    struct sim_storage *s = storage_of(base);
    bool happens;
    int rv = begin(s, SIM_STORAGE_FLUSH, ret_error, &happens);

    if (happens)
        s->flushed = s->size;
    return rv;
}

static int sim_replace(struct mu__storage *base, const void *data, size_t size,
                       mu_error *ret_error)
{
    struct sim_storage *s = storage_of(base);
    bool happens;
    int rv = begin(s, SIM_STORAGE_REPLACE, ret_error, &happens);

    if (rv == 0)
        rv = check_room(s, size, ret_error, &happens);
    if (happens)
        sim_storage_set(s, data, size);
    return rv;
}

static void sim_renew_drop(struct mu__storage *base)
{
    struct sim_storage *s = storage_of(base);

    s->renews = false;
    s->renewed_size = 0;
}

static int sim_renew(struct mu__storage *base, mu_error *ret_error)
{
    struct sim_storage *s = storage_of(base);
    bool happens;
    int rv = begin(s, SIM_STORAGE_RENEW, ret_error, &happens);

    sim_renew_drop(base);
    s->renews = rv == 0;
    return rv;
}

static int sim_renew_append(struct mu__storage *base, const void *data, size_t size,
                            mu_error *ret_error)
{
    struct sim_storage *s = storage_of(base);
    bool happens;
    int rv;

    assert(s->renews);
    rv = begin(s, SIM_STORAGE_RENEW, ret_error, &happens);
    if (rv == 0)
        rv = check_room(s, s->renewed_size + size, ret_error, &happens);
    if (happens)
        add_to(&s->renewed, &s->renewed_size, &s->renewed_capacity, data, size);
    return rv;
}

static bool sim_renew_is_busy(struct mu__storage *base)
{
    struct sim_storage *s = storage_of(base);

    assert(s->renews);
    return sim_chance(&s->renew_random, 50);
}

static int sim_renew_commit(struct mu__storage *base, mu_error *ret_error)
{
    struct sim_storage *s = storage_of(base);
    bool happens;
    int rv;

    assert(s->renews);
    if (sim_chance(&s->renew_random, 50))
        return MU__STORAGE_NOT_YET;
    rv = begin(s, SIM_STORAGE_REPLACE, ret_error, &happens);
    if (happens)
        sim_storage_set(s, s->renewed, s->renewed_size);
    sim_renew_drop(base);
    return rv;
}

static int sim_reserve(struct mu__storage *base, uint64_t bytes, mu_error *ret_error)
{
    struct sim_storage *s = storage_of(base);
    bool happens = true;

    return check_room(s, s->size + bytes, ret_error, &happens);
}

static const struct mu__storage_ops sim_storage_ops = {
    .load = sim_load,
    .size = sim_size,
    .cut = sim_cut,
    .append = sim_append,
    .flush = sim_flush,
    .replace = sim_replace,
    .reserve = sim_reserve,
    .renew = sim_renew,
    .renew_append = sim_renew_append,
    .renew_is_busy = sim_renew_is_busy,
    .renew_commit = sim_renew_commit,
    .renew_drop = sim_renew_drop,
};

/* ---- Its life ---- */

struct sim_storage *sim_storage_new(const char *name, uint64_t seed)
{
    struct sim_storage *s = calloc(1, sizeof *s);

    assert(s != NULL);
    s->base = (struct mu__storage){&sim_storage_ops, name};
    s->random = sim_stream(seed, UINT64_C(0x53544F52));
    s->renew_random = sim_stream(seed, UINT64_C(0x52454E57));
    s->hurt_random = sim_stream(seed, UINT64_C(0x48555254));
    return s;
}

void sim_storage_free(struct sim_storage *storage)
{
    if (storage == NULL)
        return;
    free(storage->content);
    free(storage->renewed);
    free(storage->whole);
    free(storage->damaged);
    free(storage);
}

/* ---- Damage ---- */

enum {
    WHOLE_MIN = 64, /* bytes: less is not damaged */
    HOLE_MAX = 200,
    FOOT = 8,         /* bytes at the end that stay */
    RECORD_MAX = 1024 /* in which nothing is missing: it would look torn */
};

static uint8_t *copy_of(const uint8_t *bytes, size_t size)
{
    uint8_t *copy = malloc(size);

    assert(copy != NULL);
    memcpy(copy, bytes, size);
    return copy;
}

/* One of three ways. Zeros where zeros were are none. */
static void damage_some(struct sim_storage *s, size_t size)
{
    struct sim_random *random = &s->hurt_random;
    size_t at = (size_t)sim_between(random, 0, size - FOOT - 1);
    size_t hole = (size_t)sim_between(random, 1, HOLE_MAX);
    uint64_t way = sim_between(random, 0, 2);

    if (hole > size - FOOT - at)
        hole = size - FOOT - at;
    if (way == 0)
        memset(s->content + at, 0, hole);
    if (way == 1 && at + hole + RECORD_MAX <= size) {
        memmove(s->content + at, s->content + at + hole, s->size - at - hole);
        s->size = s->flushed -= hole;
    }
    if (s->size == s->whole_size && memcmp(s->content, s->whole, s->size) == 0)
        s->content[at] ^= (uint8_t)(1U << sim_between(random, 0, 7));
}

/* Of the first bytes, which had been flushed when the process died. */
static void hurt_after_crash(struct sim_storage *s, size_t size)
{
    if (s->hurt_percent == 0 || s->whole != NULL || size < WHOLE_MIN ||
        size > s->flushed || !sim_chance(&s->hurt_random, s->hurt_percent))
        return;
    s->hurt++;
    s->whole_size = s->size;
    s->whole = copy_of(s->content, s->size);
    damage_some(s, size);
    s->damaged_size = s->size;
    s->damaged = copy_of(s->content, s->size);
}

void sim_storage_hurt(struct sim_storage *storage, unsigned percent)
{
    storage->hurt_percent = percent;
}

bool sim_storage_is_hurt(const struct sim_storage *storage)
{
    return storage->whole != NULL;
}

bool sim_storage_mend(struct sim_storage *s)
{
    bool is_same =
        s->size == s->damaged_size && memcmp(s->content, s->damaged, s->size) == 0;

    sim_storage_set(s, s->whole, s->whole_size);
    free(s->whole);
    free(s->damaged);
    s->whole = s->damaged = NULL;
    return is_same;
}

void sim_storage_crash(struct sim_storage *s)
{
    size_t flushed = s->flushed;
    size_t pending = s->size - s->flushed;

    if (pending > 0 && !sim_chance(&s->random, 30))
        pending =
            sim_chance(&s->random, 40) ? 0 : (size_t)sim_between(&s->random, 0, pending);
    s->size = s->flushed += pending;
    sim_renew_drop(&s->base);
    memset(s->faults, 0, sizeof s->faults);
    s->dies = s->dead = false;
    hurt_after_crash(s, flushed);
}

void sim_storage_limit(struct sim_storage *storage, size_t bytes)
{
    storage->limit = bytes;
}

bool sim_storage_is_limited(const struct sim_storage *storage)
{
    return storage->limit > 0;
}

size_t sim_storage_damage(struct sim_storage *s, size_t from)
{
    size_t at;

    if (s->flushed <= from)
        return from;
    at = (size_t)sim_between(&s->random, from, s->flushed - 1);
    s->content[at] ^= (uint8_t)(1U << sim_between(&s->random, 0, 7));
    return at;
}

void sim_storage_fail(struct sim_storage *storage, enum sim_storage_op op, unsigned times,
                      int code)
{
    assert(times == 0 || code < 0);
    storage->faults[op] = (struct sim_storage_fault){times, code};
}

void sim_storage_die_after(struct sim_storage *storage, unsigned operations)
{
    storage->dies = true;
    storage->dead = false;
    storage->lives_for = operations;
}
