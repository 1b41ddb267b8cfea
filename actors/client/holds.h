/* Closures that refer to per-worker values only, as every closure with a Python function
 * does. Their inputs are ready, and are replaced by their numbers, so the program's
 * thread packs the arguments itself and no mu__pending_closure is needed.
 *
 * The `inputs` field of such a SUBMIT has holds instead of numbers: pointers to struct
 * mu__held, each with a reference. When the client sends the message to the chief they
 * become numbers, and the references are dropped. The chief hears of a release after the
 * closure, and keeps an input as long as a closure needs it. */
#ifndef MU_ACTORS_CLIENT_HOLDS_H
#define MU_ACTORS_CLIENT_HOLDS_H

#include "actors/messages.h"
#include "actors/references.h"

/* Whether all inputs are per-worker values, and there is one at least. */
bool mu__holds_suffice(const struct mu__references *inputs);

/* Set the holds of `inputs`, taking references. `at`: 8 bytes for each, in the memory of
 * the message. Any thread. */
void mu__holds_take(struct mu__schedule *body, void *at,
                    const struct mu__references *inputs);

/* How many of the holds are not of the present chief. */
uint32_t mu__holds_lost(const struct mu__schedule *body, uint16_t chief_epoch);

/* Replace the holds by numbers before the message is sent. Drops the references. */
void mu__holds_become_numbers(struct mu__schedule *body);

/* Drop the references of a message that is not sent. */
void mu__holds_drop(struct mu__schedule *body);

#endif
