/* A stream, at the actor that gives it. */
#ifndef MU_ACTORS_USER_PRODUCERS_H
#define MU_ACTORS_USER_PRODUCERS_H

#include "actors/user/internal.h"

struct mu_stream {
    struct mu__list_node node;    /* of its actor's streams */
    struct mu__list_node of_peer; /* of the consumer's, if that is another node */
    mu_actor *actor;
    const mu_actor_method *method;
    struct answer_to answer;
    struct peer
        *peer; /* NULL: the consumer is here, or it was cancelled, or has not begun */
    struct mu__msg *end; /* for a peer */
    struct mail *notice; /* the next one; NULL: there was no memory */
    uint64_t id;
    uint64_t token;
    uint64_t given;     /* items, to a peer */
    uint64_t bytes;     /* of those under way */
    uint32_t under_way; /* with those of the present turn */
    uint32_t ahead;
    bool has_begun;
    bool waits;        /* for room */
    bool is_cancelled; /* nobody wants more of it */
    bool is_ended;     /* perhaps in this turn */
};

#endif
