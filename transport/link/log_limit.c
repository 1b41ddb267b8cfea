#include "transport/link/log_limit.h"

#include "runtime/message/message.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static void host_of(const char *address, char host[MU__LOG_LIMIT_BYTES])
{
    const char *colon = strrchr(address, ':');
    size_t size = colon == NULL ? strlen(address) : (size_t)(colon - address);

    (void)snprintf(host, MU__LOG_LIMIT_BYTES, "%.*s", (int)size, address);
}

/* The host's own slot, or one that is free or expired, or that of all others. */
static struct mu__log_limit_slot *slot_of(struct mu__log_limit *limit, const char *host,
                                          uint64_t now_ms)
{
    struct mu__log_limit_slot *free_slot = &limit->others;

    for (size_t i = 0; i < MU__LOG_LIMIT_ADDRESSES; i++) {
        struct mu__log_limit_slot *slot = &limit->slots[i];

        if (slot->used && strcmp(slot->host, host) == 0)
            return slot;
        if (!slot->used || now_ms - slot->said_ms >= MU__LOG_TIMEOUT_MS)
            free_slot = slot;
    }
    if (free_slot != &limit->others) {
        *free_slot = (struct mu__log_limit_slot){0};
        (void)snprintf(free_slot->host, sizeof free_slot->host, "%s", host);
    }
    return free_slot;
}

static bool show(struct mu__log_limit *limit, const char *host, uint64_t now_ms,
                 uint64_t *ret_hidden)
{
    struct mu__log_limit_slot *slot = slot_of(limit, host, now_ms);

    if (slot->used && now_ms - slot->said_ms < MU__LOG_TIMEOUT_MS) {
        slot->hidden++;
        return false;
    }
    *ret_hidden = slot->hidden;
    slot->used = true;
    slot->said_ms = now_ms;
    slot->hidden = 0;
    return true;
}

bool mu__log_limit_show(struct mu__log_limit *limit, const char *address, uint64_t now_ms,
                        uint64_t *ret_hidden)
{
    char host[MU__LOG_LIMIT_BYTES];

    host_of(address, host);
    return show(limit, host, now_ms, ret_hidden);
}

bool mu__log_limit_show_line(struct mu__log_limit *limit, const char *line,
                             uint64_t now_ms, uint64_t *ret_hidden)
{
    char text[MU__LOG_LIMIT_BYTES];

    (void)snprintf(text, sizeof text, "%zu %08" PRIx32, strlen(line),
                   mu__view_hash(mu__view_str(line)));
    return show(limit, text, now_ms, ret_hidden);
}
