/* The calls of the owner: to retain a link to a task, to hang up on it, to move it, to
 * leave. */
#include "transport/link/internal.h"

#include "runtime/base/text.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- retained links ---- */

static int keep_link(struct mu__links *links, const char *type, uint32_t index,
                     const char *url, enum mu__link_origin origin)
{
    struct mu__link *link = mu__link_new(links, type, index, url, MU__LINK_RESTING);
    int rv;

    if (link == NULL)
        return mu__links_are_too_many(links, type, url, MU__LINK_RESTING) ? -MU_EEXHAUSTED
                                                                          : -MU_ENOMEM;
    link->origin = origin;
    rv = mu__link_dial(links, link);
    if (rv != 0)
        mu__link_free(links, link);
    return rv;
}

/* The next link of a task behind `link` (NULL: the first), except those of
 * mu__links_dial_any. */
static struct mu__link *get_next_task_link(const struct mu__links *links,
                                           const struct mu__link *link, const char *type,
                                           uint32_t index)
{
    struct mu__link *at = link == NULL ? mu__link_first(links, mu__view_str(type), index)
                                       : mu__link_next(link);

    while (at != NULL && (at->origin == MU__LINK_RETAINED_ANY || at->index != index ||
                          strcmp(at->type, type) != 0))
        at = mu__link_next(at);
    return at;
}

/* The link of a task that is up, or retained; of others the first. NULL: none. */
static struct mu__link *main_of(const struct mu__links *links, const char *type,
                                uint32_t index)
{
    struct mu__link *first = get_next_task_link(links, NULL, type, index);
    struct mu__link *found = first;

    for (struct mu__link *at = first; at != NULL;
         at = get_next_task_link(links, at, type, index)) {
        if (at->state == MU__LINK_UP)
            return at;
        if (mu__link_is_retained(at))
            found = at;
    }
    return found;
}

int mu__links_dial(struct mu__links *links, const char *type, uint32_t index,
                   const char *url)
{
    return keep_link(links, type, index, url, MU__LINK_RETAINED);
}

int mu__links_dial_any(struct mu__links *links, const char *url)
{
    return keep_link(links, MU__LINK_UNKNOWN, 0, url, MU__LINK_RETAINED_ANY);
}

/* ---- hanging up ---- */

static void begin_parting(struct mu__links *links, struct mu__link *link,
                          const char *reason)
{
    mu__link_unkey(links, link);
    link->origin = MU__LINK_ACCEPTED;
    mu__link_move(links, link, MU__LINK_PARTING);
    mu__link_say_bye(links, link, reason);
}

/* End a link. The owner is notified at once. The link itself says goodbye and leaves the
 * hanging up to the peer, since the end of its connection could overtake the goodbye. */
static void part_link(struct mu__links *links, struct mu__link *link, const char *reason)
{
    uint32_t node = link->node;

    if (link->state != MU__LINK_UP) {
        mu__link_free(links, link);
        return;
    }
    mu__links_log(links, MU__LOG_INFO, "hung up on /job:%s/task:%" PRIu32 ": %s",
                  link->type, link->index, reason);
    (void)mu__map_remove(&links->index.by_node, node);
    links->counters.links_up--;
    link->node = 0;
    if (links->parting_count < MU__LINKS_MAX)
        begin_parting(links, link, reason);
    else
        mu__link_free(links, link);
    links->upcalls.down(links->upcalls.owner, node, reason, false);
}

static void bar_task(struct mu__links *links, const char *type, uint32_t index,
                     const struct mu__link *former, const char *reason)
{
    if (mu__barred_add(&links->barred, type, index,
                       former == NULL ? 0 : former->peer.incarnation,
                       former == NULL ? NULL : former->url, reason) != 0)
        mu__links_log(links, MU__LOG_ERROR,
                      "out of memory: /job:%s/task:%" PRIu32
                      " may link to this node although %s",
                      type, index, reason);
}

void mu__links_hangup(struct mu__links *links, const char *type, uint32_t index,
                      const char *reason)
{
    struct mu__link *link = get_next_task_link(links, NULL, type, index);
    struct mu__link *next;

    bar_task(links, type, index, NULL, reason);
    for (; link != NULL; link = next) {
        next = get_next_task_link(links, link, type, index);
        part_link(links, link, reason);
    }
}

void mu__links_allow(struct mu__links *links, const char *type, uint32_t index)
{
    mu__barred_remove(&links->barred, type, index);
}

/* ---- addresses ---- */

static bool is_at(const struct mu__link *link, const char *url)
{
    return strcmp(link->url, url) == 0 ||
           (link->state == MU__LINK_UP && strcmp(mu__link_address(link), url) == 0);
}

/* The link is at `url` already, by the peer's HELLO or its own url: that is its url
 * now. */
static void find_at(struct mu__link *link, const char *url)
{
    if (strcmp(link->url, url) == 0)
        return;
    free(link->url);
    link->url = link->peer.url;
    link->peer.url = NULL;
}

int mu__links_move(struct mu__links *links, const char *type, uint32_t index,
                   const char *url)
{
    struct mu__link *link = main_of(links, type, index);
    char reason[MU__LINK_REASON_BYTES];
    bool is_retained;

    if (strlen(url) >= MU__LINK_URL_BYTES)
        return -MU_EEXHAUSTED;
    mu__barred_remove(&links->barred, type, index);
    if (link == NULL)
        return 0;
    if (is_at(link, url)) {
        find_at(link, url);
        return 0;
    }
    (void)snprintf(reason, sizeof reason, "the task is at %s now", url);
    is_retained = mu__link_is_retained(link);
    bar_task(links, type, index, link, reason);
    part_link(links, link, reason);
    return is_retained ? keep_link(links, type, index, url, MU__LINK_RETAINED) : 0;
}

int mu__links_adopt(struct mu__links *links, const char *type, uint32_t index,
                    const char *url)
{
    struct mu__link *link = main_of(links, type, index);

    mu__barred_remove(&links->barred, type, index);
    if (url[0] == '\0')
        return 0;
    if (link == NULL || strcmp(type, "client") == 0)
        return keep_link(links, type, index, url, MU__LINK_RETAINED);
    if (!mu__link_is_retained(link))
        link->origin = MU__LINK_RETAINED;
    return mu__links_move(links, type, index, url);
}

void mu__links_leave(struct mu__links *links, const char *reason)
{
    struct mu__link *next;

    links->leaving = true;
    for (struct mu__link *link = mu__links_first(links); link != NULL; link = next) {
        next = mu__links_next(link);
        if (link->state == MU__LINK_UP)
            mu__link_say_bye(links, link, reason);
        else
            mu__link_free(links, link);
    }
}

/* ---- making and freeing ---- */

int mu__links_new(const struct mu__links_config *config,
                  const struct mu__links_upcalls *upcalls, struct mu__wire *wire,
                  struct mu__links **ret_links)
{
    struct mu__links *links;

    assert(config->incarnation != 0 && config->heartbeat_ms > 0);
    if (strlen(config->cluster_name) >= sizeof links->own.cluster_name ||
        strlen(config->task_type) >= sizeof links->own.task_type ||
        strlen(config->address) >= sizeof links->own.address)
        return -MU_EINVALID;
    links = calloc(1, sizeof *links);
    if (links == NULL)
        return -MU_ENOMEM;
    links->config = *config;
    MU__COPY_TEXT(links->own.cluster_name, config->cluster_name);
    MU__COPY_TEXT(links->own.task_type, config->task_type);
    MU__COPY_TEXT(links->own.address, config->address);
    MU__COPY_TEXT(links->own.host, config->host == NULL ? "" : config->host);
    links->config.cluster_name = links->own.cluster_name;
    links->config.task_type = links->own.task_type;
    links->config.address = links->own.address;
    links->config.host = links->own.host;
    links->upcalls = *upcalls;
    links->wire = wire;
    *ret_links = links;
    return 0;
}

void mu__links_free(struct mu__links *links)
{
    if (links == NULL)
        return;
    while (!mu__list_is_empty(&links->all))
        mu__link_free(links, mu__links_first(links));
    mu__map_done(&links->index.by_connection);
    mu__map_done(&links->index.by_node);
    mu__hash_table_done(&links->index.by_key);
    mu__barred_done(&links->barred);
    free(links);
}
