/* Messages with results that a client does not read for now, in their order. Plain data;
 * knows no time. Zeroed memory is empty. */
#ifndef MU_ACTORS_UNREAD_RESULTS_H
#define MU_ACTORS_UNREAD_RESULTS_H

#include "actors/messages.h"

enum { MU__UNREAD_BYTES = 64 << 20 };

struct mu__unread_results {
    struct mu__msg *first;
    struct mu__msg *last;
    uint64_t bytes; /* that they take */
    bool is_full;   /* from MU__UNREAD_BYTES on, until half of that is left */
};

/* Takes a RESOLVED or a FETCHED. */
void mu__unread_add(struct mu__unread_results *unread, struct mu__msg *msg);

/* The oldest one, the caller's. There is one. */
struct mu__msg *mu__unread_pop(struct mu__unread_results *unread);

#endif
