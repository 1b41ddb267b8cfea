/* Most of a world for one kernel that a test turns by hand: of the test are a clock, and
 * what becomes of messages to other nodes.
 *
 *     struct world {
 *         struct bare_world bare;     first
 *         ...
 *     };
 *
 *     static const struct mu__world_ops world_ops = BARE_WORLD_OPS(world_transmit); */
#ifndef MU_TESTS_BARE_WORLD_H
#define MU_TESTS_BARE_WORLD_H

#include "runtime/kernel/world.h"

struct bare_world {
    struct mu__world world; /* first */
    uint64_t now_ms;
};

#define BARE_WORLD_OPS(send)                                                   \
    {                                                                          \
        .now_ms = bare_now_ms, .random = bare_random, .wake_at = bare_wake_at, \
        .transmit = send, .submit = bare_submit, .withdraw = bare_withdraw,    \
        .log = bare_log                                                        \
    }

uint64_t bare_now_ms(struct mu__world *world); /* that of a bare_world */
uint64_t bare_random(struct mu__world *world); /* always the same */
void bare_wake_at(struct mu__world *world, uint64_t due_ms);

/* Fails the test: there is no executor. */
void bare_submit(struct mu__world *world, struct mu__work *work);
bool bare_withdraw(struct mu__world *world, struct mu__work *work);

/* Nobody reads it. */
void bare_log(struct mu__world *world, enum mu__log_level level, const char *who,
              const char *line);

#endif
