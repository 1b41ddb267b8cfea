/* While an actor handles its mail. */
#ifndef MU_ACTORS_USER_BATCH_H
#define MU_ACTORS_USER_BATCH_H

#include "actors/user/internal.h"

/* Thousands of mails wait, and are not in the cache when it is their turn: the next one
 * comes while this one is handled. NULL is fine. */
static inline void mu__mail_fetch(const void *mail)
{
    __builtin_prefetch(mail);
    __builtin_prefetch((const char *)mail + 64);
}

static inline uint64_t mu__office_now_ms(struct office *office)
{
    return office->now_ms != 0 ? office->now_ms : mu__now_ms(&office->ctx);
}

#endif
