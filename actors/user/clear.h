/* Zeroing of some hundred bytes. For a known size like that compilers use a string
 * instruction, which takes longer to begin than plain stores need for all of it. */
#ifndef MU_ACTORS_USER_CLEAR_H
#define MU_ACTORS_USER_CLEAR_H

#include <stddef.h>
#include <string.h>

static inline void mu__clear(void *memory, size_t size)
{
    enum { AT_ONCE = 64 };
    char *at = memory;
    char *end = at + size - size % AT_ONCE;

    for (; at != end; at += AT_ONCE)
        memset(at, 0, AT_ONCE);
    memset(end, 0, size % AT_ONCE);
}

#endif
