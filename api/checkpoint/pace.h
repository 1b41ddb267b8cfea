/* How fast a checkpoint is written while others want the same cores. A thread that never
 * waits for a core goes on at full speed; one that does rests as long as it works.
 * Belongs to one thread. */
#ifndef MU_API_CHECKPOINT_PACE_H
#define MU_API_CHECKPOINT_PACE_H

#include <stdint.h>

struct mu__pace {
    int file;           /* what the system says of the thread; -1: nothing */
    uint64_t since_ns;  /* the end of its last rest, or when it needed none, */
    uint64_t waited_ns; /* and how long it had waited for cores until then */
};

/* On the thread that will rest. Times are monotonic. */
void mu__pace_init(struct mu__pace *pace, uint64_t now_ns);

/* Called often: how long the thread is to rest now, in milliseconds. */
unsigned mu__pace_rest_ms(struct mu__pace *pace, uint64_t now_ns);

void mu__pace_done(struct mu__pace *pace);

#endif
