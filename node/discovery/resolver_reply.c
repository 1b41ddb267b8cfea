#include "node/discovery/resolver_reply.h"

#include "runtime/message/arguments.h"

#include <pthread.h>
#include <stdint.h>

/* `lock` guards both. A process has few open replies: one for each resolver at most. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct mu__list replies;
static uintptr_t last_handle;

/* NULL: it is not open. */
static struct mu__own_reply *find_locked(const mu_resolver_reply *handle)
{
    struct mu__own_reply *reply = MU__LIST_FIRST(&replies, struct mu__own_reply, node);

    while (reply != NULL && reply->handle != handle)
        reply = MU__LIST_NEXT(reply, struct mu__own_reply, node);
    return reply;
}

void mu__own_reply_open(struct mu__own_reply *reply)
{
    (void)pthread_mutex_lock(&lock);
    reply->handle = (mu_resolver_reply *)++last_handle; /* as none had before */
    mu__list_append(&replies, &reply->node);
    (void)pthread_mutex_unlock(&lock);
}

bool mu__own_reply_close(struct mu__own_reply *reply)
{
    bool is_open;

    (void)pthread_mutex_lock(&lock);
    is_open = find_locked(reply->handle) != NULL;
    if (is_open)
        mu__list_remove(&replies, &reply->node);
    (void)pthread_mutex_unlock(&lock);
    return is_open;
}

int mu_resolver_reply_finish(mu_resolver_reply *reply, int code, const mu_error *error,
                             mu_resolution *resolution)
{
    MU__REQUIRE(NULL, reply);

    struct mu__own_reply *open;
    int rv = -MU_EPRECONDITION;

    (void)pthread_mutex_lock(&lock);
    open = find_locked(reply);
    if (open != NULL)
        rv = mu__own_reply_check(open, code, resolution);
    if (rv == 0)
        mu__list_remove(&replies, &open->node);
    (void)pthread_mutex_unlock(&lock);
    if (rv == 0)
        mu__own_reply_finish(open, code, error, resolution);
    return rv;
}
