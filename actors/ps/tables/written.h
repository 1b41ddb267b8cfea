/* Answers that say of writes only that they are applied. Those of one turn of the actor
 * go to a client in one message. */
#ifndef MU_ACTORS_PS_TABLES_WRITTEN_H
#define MU_ACTORS_PS_TABLES_WRITTEN_H

#include "actors/messages.h"
#include "runtime/kernel/kernel.h"

struct written {
    mu__pid to; /* actor 0: it was sent */
    uint64_t token;
};

/* Zeroed memory has none. */
struct written_answers {
    uint64_t batches;  /* applied, */
    uint64_t repeated; /* and not applied a second time */
    uint32_t count;    /* of answers to be sent */
    struct written answers[MU__FRAME_WRITES_MAX];
};

void mu__written_add(struct mu__ctx *ctx, struct written_answers *written, mu__pid to,
                     uint64_t token);
void mu__written_flush(struct mu__ctx *ctx, struct written_answers *written);

#endif
