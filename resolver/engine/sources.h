/* The sources of a resolver: its engine's one door to the world, by calls that block.
 *
 * resolver/engine/uv/real_sources.c is the real one; tests have one that answers from
 * rows (tests/support/script.h) and one in virtual time (tests/support/slow_sources.h).
 * Used by one thread at a time. */
#ifndef MU_RESOLVER_SOURCES_H
#define MU_RESOLVER_SOURCES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct mu__exchange;

/* Why a pause has ended. */
enum mu__pause {
    MU__PAUSE_OVER,
    MU__PAUSE_HURRIED, /* a watched file or folder has changed */
    MU__PAUSE_STOPPED  /* nobody waits for the outcome any more; from now on, always */
};

struct mu__sources {
    const struct mu__sources_ops *ops;
};

struct mu__sources_ops {
    /* Answer those of the batch that are sent (exchange->is_sent): fill in
     * exchange->answer, whose data is from malloc and the exchange's from now on, and
     * call mu__exchange_answered. Blocks until all are answered, each for its request's
     * timeout at most. At `end_ms` (UINT64_MAX: none), and when it is stopped, it returns
     * at once: the others stay sent, without an answer. */
    void (*answer)(struct mu__sources *sources, struct mu__exchange *const *batch,
                   size_t count, uint64_t end_ms);

    /* Block until `due_ms`; with `may_hurry` only until a change, also one since the last
     * pause that was hurried. */
    enum mu__pause (*pause)(struct mu__sources *sources, uint64_t due_ms, bool may_hurry);

    uint64_t (*now_ms)(struct mu__sources *sources); /* monotonic */
    uint64_t (*random)(struct mu__sources *sources);
};

#endif
