/* When to try which address of a name, as in RFC 8305: families alternate; the next
 * attempt begins when the last one has had no answer for MU__DIAL_DELAY_MS, or at once
 * when one has failed; attempts under way go on until their own timeout. Pure: time is
 * passed in. */
#ifndef MU_TRANSPORT_DIAL_PLAN_H
#define MU_TRANSPORT_DIAL_PLAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    MU__DIAL_ADDRESSES_MAX = 16, /* of one name, and so of attempts at a time; further
                                    addresses are not tried */
    MU__DIAL_DELAY_MS = 250,
    MU__DIAL_TIMEOUT_MS = 10000 /* of one address, for connection and greeting */
};

/* The order in which `count` addresses are tried: as they are, but families alternate,
 * and those that were tried already come last. */
void mu__dial_order(const bool *is_v6, const bool *is_tried, unsigned count,
                    unsigned *ret_order);

/* The addresses of a name at which a peer was not found, in one round over all of them.
 * Zeroed memory: none. */
struct mu__dial_tried {
    unsigned count;
    uint32_t numbers[MU__DIAL_ADDRESSES_MAX]; /* numbers of addresses, none 0 */
};

bool mu__dial_tried_has(const struct mu__dial_tried *tried, uint32_t number);

/* Address `number`, one of `count`, was reached. True: go on at once, there is one that
 * was not tried. False: the round is over, and the next one begins with all of them. */
bool mu__dial_tried_add(struct mu__dial_tried *tried, uint32_t number, unsigned count);

struct mu__dial_plan {
    uint32_t timeout_ms;
    unsigned count;
    unsigned begun;   /* how many attempts have begun, the first ones */
    bool is_next_due; /* one has failed since the last began */
    bool has_failed[MU__DIAL_ADDRESSES_MAX];
    uint64_t begun_ms[MU__DIAL_ADDRESSES_MAX];
};

enum mu__dial_move {
    MU__DIAL_BEGIN,   /* with address `which` */
    MU__DIAL_GIVE_UP, /* the timeout of address `which` has passed: it failed */
    MU__DIAL_WAIT,    /* until `until_ms`, or something fails */
    MU__DIAL_OVER     /* all have failed */
};

struct mu__dial_step {
    enum mu__dial_move move;
    unsigned which;
    uint64_t until_ms;
};

/* `count` is at most MU__DIAL_ADDRESSES_MAX. */
void mu__dial_plan_init(struct mu__dial_plan *plan, unsigned count, uint32_t timeout_ms);

/* The next step; to be called until it is MU__DIAL_WAIT or MU__DIAL_OVER. */
struct mu__dial_step mu__dial_plan_step(struct mu__dial_plan *plan, uint64_t now_ms);

/* An attempt that is under way has failed. */
void mu__dial_plan_fail(struct mu__dial_plan *plan, unsigned which);

/* Why one address has failed. */
struct mu__dial_failure {
    const char *name;
    const char *why;
};

/* Write "10.0.0.1, 10.0.0.2: connection refused; ::1: ...": addresses grouped by reason,
 * cut to `size` bytes. */
void mu__dial_words(const struct mu__dial_failure *rows, unsigned count, char *out,
                    size_t size);

#endif
