#include "actors/supervisor/state/shares.h"

/* A share that is not hungry keeps 1 / IDLE_PART of an equal part; a grant grows by 1 /
 * STEP_PART of its target at least. */
enum { IDLE_PART = 8, STEP_PART = 8 };

static uint64_t min_u64(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static uint64_t max_u64(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/* ---- Reservations ---- */

static void set_share(struct mu__shares *shares, struct mu__share *share,
                      uint64_t allowed, uint64_t held)
{
    shares->reserved -= mu__share_reserved(share);
    share->allowed = allowed;
    share->held = held;
    shares->reserved += mu__share_reserved(share);
}

void mu__share_acknowledged(struct mu__shares *shares, struct mu__share *share)
{
    set_share(shares, share, share->granted, share->held);
}

void mu__share_end(struct mu__shares *shares, struct mu__share *share)
{
    share->granted = share->need = 0;
    share->hungry = share->is_fresh = false;
    set_share(shares, share, 0, share->held);
}

/* ---- Targets ---- */

static size_t count_hungry_shares(struct mu__share *const *list, size_t count)
{
    size_t hungry = 0;

    for (size_t i = 0; i < count; i++)
        hungry += list[i]->hungry;
    return hungry;
}

/* What can be divided among the list: other shares may hold some of the bound. */
static uint64_t capacity_for(const struct mu__shares *shares,
                             struct mu__share *const *list, size_t count)
{
    uint64_t others = shares->reserved;

    for (size_t i = 0; i < count; i++)
        others -= mu__share_reserved(list[i]);
    return others < shares->max ? shares->max - others : 0;
}

/* Sets the targets of shares that are not hungry; returns what is left. */
static uint64_t target_idle(struct mu__share *const *list, size_t count,
                            uint64_t capacity, bool any_hungry)
{
    uint64_t part = capacity / count;
    uint64_t rest = capacity;

    for (size_t i = 0; i < count; i++) {
        struct mu__share *share = list[i];

        if (share->hungry)
            continue;
        share->target = min_u64(part, rest);
        if (any_hungry && !share->is_fresh)
            share->target =
                min_u64(share->target, max_u64(share->held, part / IDLE_PART));
        rest -= share->target;
    }
    return rest;
}

/* The share with the oldest need that may be met now; SIZE_MAX: there is none. */
static size_t find_oldest_need(struct mu__share *const *list, size_t count, uint64_t part)
{
    size_t found = SIZE_MAX;

    for (size_t i = 0; i < count; i++)
        if (list[i]->hungry && list[i]->need > part && list[i]->may_take &&
            (found == SIZE_MAX || list[i]->need_order < list[found]->need_order))
            found = i;
    return found;
}

static void target_hungry(struct mu__shares *shares, struct mu__share *const *list,
                          size_t count, size_t hungry, uint64_t rest, size_t skip)
{
    uint64_t part = hungry == 0 ? 0 : rest / hungry;
    uint64_t extra = hungry == 0 ? 0 : rest % hungry;

    shares->must_rotate = shares->must_rotate || (hungry > 0 && part == 0 && extra > 0);
    for (size_t n = 0; n < count; n++) {
        size_t i = (n + shares->rotation) % count;

        if (!list[i]->hungry || i == skip)
            continue;
        list[i]->target = part + (extra > 0);
        extra -= extra > 0;
    }
}

/* All others make room for the one with a need. */
static void target_need(struct mu__shares *shares, struct mu__share *const *list,
                        size_t count, size_t first, uint64_t capacity)
{
    uint64_t rest;
    uint64_t part;

    list[first]->target = min_u64(list[first]->need, capacity);
    rest = capacity - list[first]->target;
    part = rest / count;
    for (size_t i = 0; i < count; i++) {
        if (list[i]->hungry)
            continue;
        list[i]->target = min_u64(list[i]->target, part);
        rest -= list[i]->target;
    }
    target_hungry(shares, list, count, count_hungry_shares(list, count) - 1, rest, first);
    shares->must_rotate = false;
}

static void set_targets(struct mu__shares *shares, struct mu__share *const *list,
                        size_t count)
{
    size_t hungry = count_hungry_shares(list, count);
    uint64_t capacity = capacity_for(shares, list, count);
    uint64_t rest = target_idle(list, count, capacity, hungry > 0);
    size_t first;

    shares->must_rotate = false;
    if (hungry == 0)
        return;
    first = find_oldest_need(list, count, rest / hungry);
    if (first == SIZE_MAX) {
        target_hungry(shares, list, count, hungry, rest, SIZE_MAX);
        return;
    }
    target_need(shares, list, count, first, capacity);
}

/* ---- Grants ---- */

static bool has_share_left(const struct mu__share *share)
{
    return (share->hungry || share->is_fresh) && share->granted < share->target;
}

static bool find_short(struct mu__share *const *list, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (has_share_left(list[i]))
            return true;
    return false;
}

static void grow_share(struct mu__shares *shares, struct mu__share *share, bool flush)
{
    uint64_t lacking = share->target - share->granted;
    uint64_t reserved = mu__share_reserved(share);
    uint64_t most = reserved + mu__shares_free(shares);
    uint64_t granted = min_u64(share->target, max_u64(most, share->granted));

    if (granted == share->granted ||
        (!flush && granted - share->granted <
                       min_u64(lacking, max_u64(1, share->target / STEP_PART))))
        return;
    share->granted = granted;
    set_share(shares, share, max_u64(share->allowed, granted), share->held);
}

void mu__shares_divide(struct mu__shares *shares, struct mu__share *const *list,
                       size_t count, bool flush)
{
    shares->is_short = shares->must_rotate = false;
    if (count == 0)
        return;
    set_targets(shares, list, count);
    if (!find_short(list, count))
        return;
    for (size_t i = 0; i < count; i++)
        if (list[i]->granted > list[i]->target && !list[i]->awaits_ack)
            list[i]->granted = list[i]->target;
    for (size_t n = 0; n < count; n++) {
        struct mu__share *share = list[(n + shares->rotation) % count];

        if (has_share_left(share) && !share->awaits_ack)
            grow_share(shares, share, flush);
    }
    shares->is_short = find_short(list, count);
}
