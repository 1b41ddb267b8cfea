/* The queue of a lock, as it is seen from one place in it. Plain data.
 *
 * A place is a key right below the lock's directory, put once: its revision says who came
 * first, and whose place has the lowest one holds the lock. */
#ifndef MU_ACTORS_COORDINATION_LOCK_QUEUE_H
#define MU_ACTORS_COORDINATION_LOCK_QUEUE_H

#include "actors/messages.h"
#include "muster/value.h"

enum { MU__LOCK_HOLDER_BYTES = 200 };

struct mu__lock_queue {
    bool is_ours_there;
    unsigned before_count;          /* places before ours */
    uint64_t before;                /* revision of the one right before; 0: none */
    char before_key[MU__KEY_MAX + 1];
    uint64_t first;                 /* revision of the holder's; 0: it is ours */
    char holder[MU__LOCK_HOLDER_BYTES];
};

/* From a list of the keys below `directory`, with values and revisions; `number` is the
 * revision of our place. */
void mu__lock_queue_read(const mu_value *items, const char *directory, uint64_t number,
                         struct mu__lock_queue *ret_queue);

/* What whoever waits for the lock does next. */
enum mu__lock_step {
    MU__LOCK_COME,      /* our place is not there any more: we come again, as the last */
    MU__LOCK_HOLD,
    MU__LOCK_WAIT       /* until the place before ours has gone; then look again */
};

enum mu__lock_step mu__lock_queue_next(const struct mu__lock_queue *queue);

#endif
