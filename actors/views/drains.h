/* Who waits until a parameter server has given away all that it has. A part of the views
 * actor (views.h). */
#ifndef MU_ACTORS_VIEWS_DRAINS_H
#define MU_ACTORS_VIEWS_DRAINS_H

#include "actors/local_messages.h"
#include "actors/views/view_table.h"
#include "runtime/kernel/kernel.h"

enum { MU__VIEW_DRAINS_MAX = 16 };

struct mu__view_drains {
    struct mu__server_drain items[MU__VIEW_DRAINS_MAX]; /* the oldest first */
    uint32_t count;
};

/* A server is to be drained. */
void mu__view_drains_add(struct mu__ctx *ctx, struct mu__view_drains *drains,
                         struct mu__view_table *table,
                         const struct mu__server_drain *drain);

/* Answer those whose server has nothing any more, by views that are recorded. */
void mu__view_drains_settle(struct mu__ctx *ctx, struct mu__view_drains *drains,
                            const struct mu__view_table *table);

#endif
