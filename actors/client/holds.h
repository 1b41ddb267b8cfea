/* Closures whose references are to per-worker values alone: each one with a function of
 * Python. Nothing has to be waited for, and what stands for a per-worker value is its
 * number, so the program's thread packs the arguments as they are.
 *
 * Where the inputs of its SUBMIT go are then, from the program to the client actor and
 * as long as the message waits there, holds: pointers that count. When the message leaves
 * for the chief they become numbers, and what they hold is let go of: the chief, which
 * hears of that after the closure, keeps an input as long as a closure needs it. */
#ifndef MU_ACTORS_CLIENT_HOLDS_H
#define MU_ACTORS_CLIENT_HOLDS_H

#include "actors/messages.h"
#include "actors/references.h"

/* Whether these are per-worker values alone. */
bool mu__holds_suffice(const struct mu__references *inputs);

/* Take holds, in a message's own memory: 8 bytes each, at `at`. Any thread. */
void mu__holds_take(struct mu__schedule *body, void *at,
                    const struct mu__references *inputs);

/* How many of them are not of the present chief. */
uint32_t mu__holds_lost(const struct mu__schedule *body, uint16_t chief_epoch);

/* The message leaves. */
void mu__holds_become_numbers(struct mu__schedule *body);

/* It does not leave. */
void mu__holds_drop(struct mu__schedule *body);

#endif
