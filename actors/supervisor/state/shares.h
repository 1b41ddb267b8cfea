/* One bound (closures, or bytes of their arguments) divided among those that use it.
 * Plain data; knows no messages and no time.
 *
 * Of each share is known what it was told to hold to, what it may still act on, what it
 * holds, and whether it wants more. The sum of what is reserved for shares never exceeds
 * the bound: a share that is to shrink keeps its reservation until it has answered, and
 * one grows only into what is free. */
#ifndef MU_ACTORS_SUPERVISOR_SHARES_H
#define MU_ACTORS_SUPERVISOR_SHARES_H

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct mu__share {
    uint64_t granted;          /* what it may have, as it was told last */
    uint64_t allowed;       /* that, or more until it has answered */
    uint64_t held;          /* what it has */
    uint64_t need;          /* its next piece is larger than what it is told; 0: is not */
    uint64_t need_order;    /* whose need is older */
    uint64_t target;        /* what it should have: the divider's */
    bool hungry;            /* it waits for more */
    bool is_fresh;          /* it was told nothing yet: an equal part is due to it */
    bool may_take;          /* its need was waited with for long enough */
    bool awaits_ack;          /* it has not answered: what it is told stays until then */
};

struct mu__shares {
    uint64_t max;
    uint64_t reserved;      /* the sum over all shares, those of no list included */
    uint32_t rotation;      /* who is first when there is not one for each */
    bool is_short;          /* a hungry one has less than it should have */
    bool must_rotate;       /* there are more hungry ones than there is to divide */
};

static inline uint64_t mu__share_reserved(const struct mu__share *share)
{
    return share->allowed > share->held ? share->allowed : share->held;
}

static inline uint64_t mu__shares_free(const struct mu__shares *shares)
{
    return shares->reserved < shares->max ? shares->max - shares->reserved : 0;
}

/* A share may hold `size` more: within what it is allowed, or because so much is free.
 * False: neither. `size` is at most the bound. */
static inline bool mu__share_may_hold(const struct mu__shares *shares,
                                      const struct mu__share *share, uint64_t size)
{
    uint64_t held = share->held + size;

    return held <= share->allowed ||
           held - mu__share_reserved(share) <= mu__shares_free(shares);
}

/* It holds so much more, or less. */
static inline void mu__share_hold(struct mu__shares *shares, struct mu__share *share,
                                  uint64_t size)
{
    shares->reserved -= mu__share_reserved(share);
    share->held += size;
    shares->reserved += mu__share_reserved(share);
}

static inline void mu__share_drop(struct mu__shares *shares, struct mu__share *share,
                                  uint64_t size)
{
    assert(share->held >= size);
    shares->reserved -= mu__share_reserved(share);
    share->held -= size;
    shares->reserved += mu__share_reserved(share);
}

/* It has answered, and holds to what it was told. */
void mu__share_acknowledged(struct mu__shares *shares, struct mu__share *share);

/* It is told and allowed nothing any more. */
void mu__share_end(struct mu__shares *shares, struct mu__share *share);

/* Divide the bound among `count` shares, equally among those that are hungry; of what
 * others hold not more is taken than they do not use. Changes what is told: what grows at
 * once, by at least a step unless `flush`; what shrinks only when somebody goes short. */
void mu__shares_divide(struct mu__shares *shares, struct mu__share *const *list,
                       size_t count, bool flush);

#endif
