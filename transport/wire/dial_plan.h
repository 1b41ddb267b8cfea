/* Which address of a name is tried when, as RFC 8305 has it: families alternate; the next
 * address begins when the last one was silent for a moment, or at once when one has
 * failed; those under way go on, each until its own limit. Pure: time is told. */
#ifndef MU_TRANSPORT_DIAL_PLAN_H
#define MU_TRANSPORT_DIAL_PLAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    MU__DIAL_ADDRESSES_MAX = 16,    /* of one name; the rest is not tried. So no more than
                                       these are under way at a time */
    MU__DIAL_DELAY_MS = 250,
    MU__DIAL_TIMEOUT_MS = 10000       /* of one address, for connection and greeting */
};

/* In which order `count` addresses are tried: as they are, but the families by turns, and
 * those that were tried already behind the others. */
void mu__dial_order(const bool *is_v6, const bool *is_tried, unsigned count,
                    unsigned *ret_order);

/* At which addresses of its name somebody was looked for, and is not: one round of those
 * who want one peer and no other. Zeroed: nowhere yet. */
struct mu__dial_tried {
    unsigned count;
    uint32_t numbers[MU__DIAL_ADDRESSES_MAX];    /* numbers of addresses, none 0 */
};

bool mu__dial_tried_has(const struct mu__dial_tried *tried, uint32_t number);

/* `place` was reached, one of `count` addresses. True: go on at once, there is one that
 * was not tried. False: the round is over, and the next one begins with all of them. */
bool mu__dial_tried_add(struct mu__dial_tried *tried, uint32_t number, unsigned count);

struct mu__dial_plan {
    uint32_t timeout_ms;
    unsigned count;
    unsigned begun;             /* the first so many */
    bool is_next_due;           /* one has failed since the last began */
    bool has_failed[MU__DIAL_ADDRESSES_MAX];
    uint64_t begun_ms[MU__DIAL_ADDRESSES_MAX];
};

enum mu__dial_move {
    MU__DIAL_BEGIN,             /* with address `which` */
    MU__DIAL_GIVE_UP,           /* address `which` is beyond its limit: it has failed */
    MU__DIAL_WAIT,              /* until `until_ms`, or something fails */
    MU__DIAL_OVER               /* all have failed */
};

struct mu__dial_step {
    enum mu__dial_move move;
    unsigned which;
    uint64_t until_ms;
};

/* `count` is at most MU__DIAL_ADDRESSES_MAX. */
void mu__dial_plan_init(struct mu__dial_plan *plan, unsigned count, uint32_t timeout_ms);

/* What to do now: to be asked until it says to wait, or that all is over. */
struct mu__dial_step mu__dial_plan_step(struct mu__dial_plan *plan, uint64_t now_ms);

/* One that is under way has failed. */
void mu__dial_plan_fail(struct mu__dial_plan *plan, unsigned which);

/* What became of one address. */
struct mu__dial_failure {
    const char *name;
    const char *why;
};

/* "10.0.0.1, 10.0.0.2: connection refused; ::1: ...": addresses of which the same is to
 * be said stand together. Cut where `size` ends. */
void mu__dial_words(const struct mu__dial_failure *rows, unsigned count, char *out,
                    size_t size);

#endif
