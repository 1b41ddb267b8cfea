/* Calls of asynchronous functions of the program's own resolvers that it has not
 * finished: a list of the process behind a lock. Any thread. */
#ifndef MU_NODE_RESOLVER_REPLY_H
#define MU_NODE_RESOLVER_REPLY_H

#include "resolver/engine/resolver.h"

/* As in struct mu__own_kind. */
void mu__own_reply_open(struct mu__own_reply *reply);
bool mu__own_reply_close(struct mu__own_reply *reply);

#endif
