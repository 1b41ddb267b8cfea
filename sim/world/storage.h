/* The other storage: bytes in memory that belong to no process. A renewal is busy half of
 * the times, and not ready for its end half of the times, by the seed.
 *
 * It outlives the process that writes to it; whoever takes the process away calls
 * sim_storage_crash. Then what was flushed is there, and of what was appended since any
 * first part, drawn from the seed. A test may let operations fail, or the process die in
 * the middle of one. */
#ifndef MU_SIM_WORLD_STORAGE_H
#define MU_SIM_WORLD_STORAGE_H

#include "runtime/kernel/storage.h"
#include "sim/world/random.h"

enum sim_storage_op {
    SIM_STORAGE_LOAD,
    SIM_STORAGE_APPEND,
    SIM_STORAGE_FLUSH,
    SIM_STORAGE_REPLACE, /* also by a cut, or the commit of a renewal */
    SIM_STORAGE_RENEW,   /* its begin and its appends */
    SIM_STORAGE_OPS
};

struct sim_storage_fault {
    unsigned times; /* 0: none */
    int code;
};

struct sim_storage {
    struct mu__storage base;
    struct sim_random random;
    uint8_t *content;
    size_t size;    /* what was appended included */
    size_t flushed; /* the part of it that survives */
    size_t capacity;
    size_t limit; /* the disk has room for so many bytes; 0: for all */
    struct sim_storage_fault faults[SIM_STORAGE_OPS];
    uint64_t counts[SIM_STORAGE_OPS]; /* operations that were asked for */
    bool renews;
    uint8_t *renewed; /* the content of a renewal */
    size_t renewed_size;
    size_t renewed_capacity;
    struct sim_random renew_random; /* of its own, as the next one */
    struct sim_random hurt_random;  /* of its own: it changes no other draw */
    unsigned hurt_percent;          /* of crashes that damage what was flushed */
    unsigned hurt;                  /* how often that was */
    uint8_t *whole;                 /* while it is damaged: as it was, */
    size_t whole_size;
    uint8_t *damaged; /* and as it is */
    size_t damaged_size;
    bool dies; /* in the operation that follows `lives_for` others */
    bool dead;
    unsigned lives_for;
};

/* Empty. `name` is borrowed. */
struct sim_storage *sim_storage_new(const char *name, uint64_t seed);
void sim_storage_free(struct sim_storage *storage);

/* From now on the content cannot grow beyond that, also over lives; 0: it can. */
void sim_storage_limit(struct sim_storage *storage, size_t bytes);

bool sim_storage_is_limited(const struct sim_storage *storage);

/* A bit of what was flushed, drawn from behind the first `from` bytes, becomes another.
 * Returns its byte; `from` when there are none. */
size_t sim_storage_damage(struct sim_storage *storage, size_t from);

/* From now on so many percent of crashes damage what was flushed before: a bit is another
 * one, bytes are zero, or some are missing. The end of the file stays as it is, so that
 * nothing of it looks torn that was whole. */
void sim_storage_hurt(struct sim_storage *storage, unsigned percent);
bool sim_storage_is_hurt(const struct sim_storage *storage);

/* It is as it was before the damage, from a copy that somebody had. False when the
 * damaged file has been changed meanwhile. */
bool sim_storage_mend(struct sim_storage *storage);

/* The process is gone: what was not flushed is lost, but for a first part of it that is
 * drawn (all and nothing are likely). Faults are over, and the next life may begin. */
void sim_storage_crash(struct sim_storage *storage);

/* The next `times` operations of this kind fail with `code` and change nothing; 0 times:
 * they work again. */
void sim_storage_fail(struct sim_storage *storage, enum sim_storage_op op, unsigned times,
                      int code);

/* The process dies inside the operation after `operations` others: whether that one still
 * happens is drawn, it and all that follow fail with -MU_ECLOSED, and nothing changes
 * any more until sim_storage_crash. */
void sim_storage_die_after(struct sim_storage *storage, unsigned operations);

/* Make this the whole content, flushed: what a test found or damaged on its own. */
void sim_storage_set(struct sim_storage *storage, const void *data, size_t size);

#endif
