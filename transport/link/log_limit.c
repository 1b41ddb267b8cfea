#include "transport/link/log_limit.h"

#include "runtime/message/message.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static void copy_peer_host(const char *address, char host[MU__LOG_LIMIT_BYTES])
{
    const char *colon = strrchr(address, ':');
    size_t size = colon == NULL ? strlen(address) : (size_t)(colon - address);

    (void)snprintf(host, MU__LOG_LIMIT_BYTES, "%.*s", (int)size, address);
}

/* The slot of `about`, or else the one used last the longest ago: it has expired, since
 * there is a slot for each line that may be shown in that time. */
static struct mu__log_limit_slot *get_log_slot(struct mu__log_limit *limit,
                                               const char *about)
{
    struct mu__log_limit_slot *oldest = &limit->slots[0];

    for (size_t i = 0; i < MU__LOG_LIMIT_SLOTS; i++) {
        struct mu__log_limit_slot *slot = &limit->slots[i];

        if (slot->used && strcmp(slot->about, about) == 0)
            return slot;
        if (oldest->used && (!slot->used || slot->said_ms < oldest->said_ms))
            oldest = slot;
    }
    *oldest = (struct mu__log_limit_slot){0};
    (void)snprintf(oldest->about, sizeof oldest->about, "%s", about);
    return oldest;
}

static bool show_limited(struct mu__log_limit *limit, const char *about, uint64_t now_ms,
                         uint64_t *ret_hidden)
{
    struct mu__log_limit_slot *slot;

    if (limit->used && now_ms - limit->said_ms < MU__LOG_PAUSE_MS) {
        limit->hidden++;
        return false;
    }
    slot = get_log_slot(limit, about);
    if (slot->used && now_ms - slot->said_ms < MU__LOG_TIMEOUT_MS) {
        limit->hidden++;
        return false;
    }
    *ret_hidden = limit->hidden;
    slot->used = limit->used = true;
    slot->said_ms = limit->said_ms = now_ms;
    limit->hidden = 0;
    return true;
}

bool mu__log_limit_show(struct mu__log_limit *limit, const char *address, uint64_t now_ms,
                        uint64_t *ret_hidden)
{
    char host[MU__LOG_LIMIT_BYTES];

    copy_peer_host(address, host);
    return show_limited(limit, host, now_ms, ret_hidden);
}

bool mu__log_limit_show_line(struct mu__log_limit *limit, const char *line,
                             uint64_t now_ms, uint64_t *ret_hidden)
{
    char text[MU__LOG_LIMIT_BYTES];

    (void)snprintf(text, sizeof text, "%zu %08" PRIx32, strlen(line),
                   mu__view_hash(mu__view_str(line)));
    return show_limited(limit, text, now_ms, ret_hidden);
}
