/* The servers, and what is done when one is lost. */
#ifndef MU_ACTORS_VARIABLES_SERVERS_H
#define MU_ACTORS_VARIABLES_SERVERS_H

#include "actors/variables/internal.h"

/* What is known at the start; `options` may be NULL. After a failure, too, ..._done. */
int mu__vars_servers_init(struct mu__ctx *ctx, struct variables *v,
                          const struct mu__variables_options *options);
void mu__vars_servers_done(struct variables *v);

/* Servers up to an index; their queues stay where they are. */
int mu__vars_need_servers(struct mu__ctx *ctx, struct variables *v, uint32_t count);
void mu__vars_on_node_up(struct mu__ctx *ctx, void *state, struct mu__msg *msg);
void mu__vars_on_node_down(struct mu__ctx *ctx, void *state, struct mu__msg *msg);
void mu__vars_on_node_trouble(struct mu__ctx *ctx, void *state, struct mu__msg *msg);
void mu__vars_on_cluster_moved(struct mu__ctx *ctx, void *state, struct mu__msg *msg);

enum { LOST_TOKEN = 1 };        /* of `lost_timer`; operations begin behind it */

bool mu__vars_is_lost(struct mu__ctx *ctx, const struct variables *v, uint32_t server);

/* End an operation that needs a server that is lost; false: it needs none. */
bool mu__vars_end_if_lost(struct mu__ctx *ctx, struct variables *v, struct operation *op);

/* After a server went down or an operation began: the timer for what is lost next. */
void mu__vars_watch_lost(struct mu__ctx *ctx, struct variables *v);
void mu__vars_lost_tick(struct mu__ctx *ctx, struct variables *v);

#endif
