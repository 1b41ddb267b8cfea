/* One bound of the chief's queue (closures, or bytes of their arguments), divided among
 * the clients that schedule. Plain data; knows no messages and no time.
 *
 * The policy, for each bound by itself:
 *
 * - As long as every client has what it asked for, nothing changes. A client that is
 *   alone is granted all of it.
 * - A client is hungry when something of it waits for more. It gets an equal part of
 *   what the others leave.
 * - A client that is not hungry keeps what it uses, or an eighth of an equal part if
 *   that is more, so that it can begin without asking. One that has just come is due an
 *   equal part.
 * - If there are more hungry clients than pieces, they take turns.
 * - A piece that is larger than an equal part waits for its turn, in the order in which
 *   such needs came; then all others share the rest. The caller decides how long it
 *   waits (may_take).
 *
 * A share is told its grant, and acknowledges it. The sum of what is reserved for shares
 * never exceeds the bound: a share that is to shrink keeps its reservation until it has
 * answered, since more may be on its way, and one grows only into what is free, by an
 * eighth of its target at least.
 *
 * This is the chief's bound. The bound of the program (queue_max of its own node) is
 * counted by its threads, in actors/client/admitting.c. How much is sent to a worker
 * ahead of time is its window (mu__sup_window), and recall.c takes it back. */
#ifndef MU_ACTORS_SUPERVISOR_SHARES_H
#define MU_ACTORS_SUPERVISOR_SHARES_H

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct mu__share {
    uint64_t granted;    /* what it may hold, as it was told last */
    uint64_t allowed;    /* that, or an earlier grant until it has answered */
    uint64_t held;       /* what it has */
    uint64_t need;       /* size of a next piece that exceeds its grant; 0: none */
    uint64_t need_order; /* the lower, the older the need */
    uint64_t target;     /* what it should be granted; for mu__shares_divide */
    bool hungry;         /* it waits for more */
    bool is_fresh;       /* without a grant yet: an equal part is due to it */
    bool may_take;       /* its need has waited long enough */
    bool awaits_ack;     /* it has not answered: its grant stays until then */
};

struct mu__shares {
    uint64_t max;
    uint64_t reserved; /* the sum over all shares, also those of owners that have
                          left */
    uint32_t rotation; /* the share that is first when there is less than one for
                          each */
    bool is_short;     /* a hungry share has less than its target */
    bool must_rotate;  /* more shares are hungry than there is to divide */
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

/* The share holds `size` more, or less. */
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

/* The share has answered, and stays within its grant. */
void mu__share_acknowledged(struct mu__shares *shares, struct mu__share *share);

/* The share's owner has left: nothing is granted or allowed any more. */
void mu__share_end(struct mu__shares *shares, struct mu__share *share);

/* Divide the bound among `count` shares: their grants change. `flush`: they grow by less
 * than an eighth, too. */
void mu__shares_divide(struct mu__shares *shares, struct mu__share *const *list,
                       size_t count, bool flush);

#endif
