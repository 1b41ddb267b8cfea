/* The queue of a lock, from the view of one task. Plain data.
 *
 * Each task in the queue has one key right below the lock's directory. The key with the
 * lowest revision, which was put first, holds the lock. */
#ifndef MU_ACTORS_COORDINATION_LOCK_QUEUE_H
#define MU_ACTORS_COORDINATION_LOCK_QUEUE_H

#include "actors/messages.h"
#include "muster/value.h"

enum { MU__LOCK_HOLDER_BYTES = 200 };

struct mu__lock_queue {
    bool is_ours_there;    /* our own key is in the queue */
    unsigned before_count; /* keys before ours */
    uint64_t before;       /* revision of the key right before ours; 0: none */
    char before_key[MU__KEY_MAX + 1];
    uint64_t first;                     /* revision of the holder's key; 0: ours */
    char holder[MU__LOCK_HOLDER_BYTES]; /* its value */
};

/* From a list of the keys below `directory`, with values and revisions; `number` is the
 * revision of our key. */
void mu__lock_queue_read(const mu_value *items, const char *directory, uint64_t number,
                         struct mu__lock_queue *ret_queue);

/* The next step of a task that waits for the lock. */
enum mu__lock_step {
    MU__LOCK_COME, /* put a key again, as the last: ours is not there any more */
    MU__LOCK_HOLD,
    MU__LOCK_WAIT /* until the key before ours is deleted; then read again */
};

enum mu__lock_step mu__lock_queue_next(const struct mu__lock_queue *queue);

#endif
