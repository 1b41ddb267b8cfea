/* Dialling back. A link has two connections, so a node dials whoever says HELLO, at the
 * address that is given there. That may be another one than it came from: behind NAT, in
 * containers, on hosts with several networks. But it must make sense: a peer on another
 * machine has this node dial neither a unix socket nor loopback, and for one host only so
 * many are dialled at a time. Names are not looked up here. */
#include "transport/link/internal.h"

#include "transport/wire/url.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* ---- addresses ---- */

static bool begins(const char *text, const char *with)
{
    return strncmp(text, with, strlen(with)) == 0;
}

static bool ends(const char *text, const char *with)
{
    size_t size = strlen(text);

    return size >= strlen(with) && strcmp(text + size - strlen(with), with) == 0;
}

/* Addresses that mean something else on each machine: loopback, any, link-local. */
static bool is_local_v6(const char *host)
{
    return strcmp(host, "::") == 0 || strcmp(host, "::1") == 0 || begins(host, "fe8") ||
           begins(host, "fe9") || begins(host, "fea") || begins(host, "feb") ||
           begins(host, "::ffff:") || begins(host, "0:");
}

static bool is_local(const char *host)
{
    if (strchr(host, ':') != NULL)
        return is_local_v6(host);
    return begins(host, "127.") || begins(host, "0.") || begins(host, "169.254.") ||
           strcmp(host, "0") == 0 || strcmp(host, "localhost") == 0 ||
           ends(host, ".localhost");
}

bool mu__link_may_dial_back(struct mu__links *links, const struct mu__greeting *greeting,
                            const char *url)
{
    struct mu__url parsed;
    char type[16];

    if (greeting->is_near || mu__url_parse(url, false, &parsed) != NULL ||
        (!parsed.ipc && !is_local(parsed.host)))
        return true;
    mu__view_copy(greeting->hello->type, type, sizeof type);
    mu__links_log_limited(links, MU__LOG_WARN,
                          "/job:%s/task:%" PRIu32
                          " says its address is \"%s\", but it is on another machine, "
                          "%s: not dialled",
                          type, greeting->hello->index, url, greeting->from);
    return false;
}

/* ---- how many ---- */

static uint64_t host_key(const char *host)
{
    return mu__view_hash(mu__view_str(host)) | 1;
}

static uintptr_t count_of(const struct mu__links *links, uint64_t key)
{
    return (uintptr_t)mu__map_get(&links->dialled_back, key);
}

static bool may_dial_one_more(struct mu__links *links,
                              const struct mu__greeting *greeting)
{
    if (count_of(links, host_key(greeting->from)) < MU__LINK_BACK_MAX)
        return true;
    mu__links_log_limited(links, MU__LOG_WARN,
                          "dropped a HELLO%s%s: %d processes from there are dialled back "
                          "and have not answered",
                          greeting->from[0] == '\0' ? "" : " from ", greeting->from,
                          MU__LINK_BACK_MAX);
    return false;
}

struct mu__link *mu__link_new_back(struct mu__links *links,
                                   const struct mu__greeting *greeting, const char *url,
                                   enum mu__link_state state)
{
    uint64_t key = host_key(greeting->from);
    struct mu__link *link;
    char type[16];

    if (!mu__link_may_dial_back(links, greeting, url) ||
        !may_dial_one_more(links, greeting))
        return NULL;
    mu__view_copy(greeting->hello->type, type, sizeof type);
    link = mu__link_new(links, type, greeting->hello->index, url, state);
    if (link == NULL)
        return NULL;
    link->peer.right = greeting->proof.right;
    if (mu__map_set(&links->dialled_back, key, (void *)(count_of(links, key) + 1)) != 0) {
        mu__link_free(links, link);
        return NULL;
    }
    link->handshake.back_for = key;
    return link;
}

void mu__link_is_back(struct mu__links *links, struct mu__link *link)
{
    uint64_t key = link->handshake.back_for;
    uintptr_t count = key == 0 ? 0 : count_of(links, key);

    if (count > 1)
        (void)mu__map_set(&links->dialled_back, key, (void *)(count - 1));
    else if (count == 1)
        (void)mu__map_remove(&links->dialled_back, key);
    link->handshake.back_for = 0;
}
