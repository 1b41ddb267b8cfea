/* Sending: messages gathered into frames, and the protocol's own records. */
#include "transport/link/internal.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static struct mu__outbox_route get_link_route(const struct mu__links *links,
                                              const struct mu__link *link)
{
    return (struct mu__outbox_route){links->wire, link->connection,
                                     links->config.incarnation, link->peer.incarnation};
}

/* ---- links with something to send ---- */

static void mark_dirty(struct mu__links *links, struct mu__link *link)
{
    if (link->dirty)
        return;
    link->dirty = true;
    mu__list_prepend(&links->dirty, &link->sending);
}

void mu__link_undirty(struct mu__links *links, struct mu__link *link)
{
    if (!link->dirty)
        return;
    mu__list_remove(&links->dirty, &link->sending);
    link->dirty = false;
}

/* ---- the protocol's own records ---- */

/* A record of the protocol's own table, on the stack. */
union record {
    struct mu__msg msg;
    unsigned char bytes[sizeof(struct mu__msg) + sizeof(struct mu__hello) +
                        sizeof(struct mu__refuse) + sizeof(struct mu__bye)];
};

void mu__link_say(struct mu__links *links, struct mu__link *link, uint8_t type,
                  const struct mu__msg *msg)
{
    const struct mu__outbox_route route = get_link_route(links, link);

    if (mu__outbox_control(&link->outbox, &route, type, msg) != 0)
        mu__links_log(links, MU__LOG_ERROR,
                      "out of memory: nothing said to /job:%s/task:%" PRIu32, link->type,
                      link->index);
    link->times.said_ms = mu__links_now(links);
    mark_dirty(links, link);
}

void mu__link_say_hello(struct mu__links *links, struct mu__link *link)
{
    union record record = {.msg = {.kind = MU__FRAME_HELLO}};
    struct mu__hello hello = {
        .cluster = mu__view_str(links->own.cluster_name),
        .type = mu__view_str(links->own.task_type),
        .index = links->config.task_index,
        .address = mu__view_str(links->own.address),
        .software = mu__view_str(links->config.software == NULL ? "muster"
                                                                : links->config.software),
        .host = mu__view_str(links->own.host),
        .pid = links->config.pid,
    };

    if (link->origin != MU__LINK_RETAINED_ANY) {
        hello.expected_type = mu__view_str(link->type);
        hello.expected_index = link->index;
    }
    memcpy(record.msg.body, &hello, sizeof hello);
    mu__link_say(links, link, MU__FRAME_HELLO, &record.msg);
}

void mu__link_say_refuse(struct mu__links *links, struct mu__link *link)
{
    union record record = {.msg = {.kind = MU__FRAME_REFUSE}};
    struct mu__refuse refuse = {.type = mu__view_str(links->own.task_type),
                                .index = links->config.task_index,
                                .reason = mu__view_str(mu__link_words(link->why)),
                                .taken = link->missing.taken_since_ms != 0};

    memcpy(record.msg.body, &refuse, sizeof refuse);
    mu__link_say(links, link, MU__FRAME_REFUSE, &record.msg);
}

void mu__link_say_bye(struct mu__links *links, struct mu__link *link, const char *reason)
{
    union record record = {.msg = {.kind = MU__FRAME_BYE}};
    struct mu__bye bye = {mu__view_str(reason)};

    memcpy(record.msg.body, &bye, sizeof bye);
    mu__link_say(links, link, MU__FRAME_BYE, &record.msg);
}

/* ---- frames ---- */

/* Whether the peer does not read: more waits than for a busy peer, and the wire has taken
 * nothing for half of silence_ms; or the peer reads so slowly that the queue grows all
 * the same. Not while this process itself may have stood still since the last tick,
 * since nothing was written then: the next tick decides. */
static bool is_link_stuck(const struct mu__links *links, const struct mu__link *link)
{
    const struct mu__outbox *outbox = &link->outbox;
    uint64_t now_ms = mu__links_now(links);
    uint32_t most_ms = links->config.silence_ms / 2;
    uint64_t most_bytes = link->peer.right < MU__RIGHT_USE
                              ? 2 * (uint64_t)MU__LINK_QUEUE_BYTES_MAX
                              : 2 * (uint64_t)MU__LINK_MESSAGE_BYTES_MAX;

    if (outbox->waiting_bytes <= MU__LINK_QUEUE_BYTES_MAX || mu__outbox_has_one(outbox))
        return false;
    return outbox->waiting_bytes > most_bytes ||
           (now_ms >= link->times.taken_ms + most_ms &&
            now_ms < links->tick_ms + most_ms);
}

static void give_up_stuck_link(struct mu__links *links, struct mu__link *link)
{
    char why[MU__LINK_REASON_BYTES];

    (void)snprintf(why, sizeof why,
                   "it does not read what it is sent: %" PRIu64 " bytes "
                   "wait, and none was taken for %" PRIu64 " ms",
                   link->outbox.waiting_bytes,
                   mu__links_now(links) - link->times.taken_ms);
    mu__link_go_down(links, link, why);
}

static void note_backlog(struct mu__links *links, struct mu__link *link)
{
    uint64_t bytes = link->outbox.waiting_bytes;
    bool is_behind = bytes > (link->backlog.is_behind ? MU__LINK_CAUGHT_UP_BYTES
                                                      : MU__LINK_BEHIND_BYTES);

    if (is_behind == link->backlog.is_behind || link->state != MU__LINK_UP ||
        links->upcalls.behind == NULL)
        return;
    link->backlog.is_behind = is_behind;
    links->upcalls.behind(links->upcalls.owner, link->node, is_behind);
}

static void send_link_waiting(struct mu__links *links, struct mu__link *link)
{
    const struct mu__outbox_route route = get_link_route(links, link);
    uint64_t frames = 0;
    uint64_t bytes = 0;
    int rv;

    if (link->connection == 0 || link->state == MU__LINK_DIALLING)
        return;
    rv = mu__outbox_send(&link->outbox, &route, &frames, &bytes);
    links->counters.frames_out += frames;
    links->counters.bytes_out += bytes;
    if (frames > 0)
        link->times.said_ms = mu__links_now(links);
    if (bytes > 0)
        link->times.taken_ms = mu__links_now(links);
    if (rv == -MU_ENOMEM)
        mu__link_go_down(links, link, "out of memory");
    else if (is_link_stuck(links, link))
        give_up_stuck_link(links, link);
    else
        note_backlog(links, link);
}

/* Send closed frames while the turn goes on. Errors are ignored here, and come again in
 * the flush, where a link may go down. */
static void send_early(struct mu__links *links, struct mu__link *link,
                       const struct mu__outbox_route *route)
{
    if (link->state == MU__LINK_UP)
        (void)mu__outbox_send_early(&link->outbox, route, &links->counters.frames_out,
                                    &links->counters.bytes_out);
}

void mu__links_writable(struct mu__links *links, uint32_t connection)
{
    struct mu__link *link = mu__map_get(&links->index.by_connection, connection);

    if (link != NULL)
        send_link_waiting(links, link);
}

void mu__links_flush(struct mu__links *links)
{
    struct mu__link *link;

    while ((link = MU__LIST_FIRST(&links->dirty, struct mu__link, sending)) != NULL) {
        mu__link_undirty(links, link);
        send_link_waiting(links, link);
    }
}

void mu__links_read(struct mu__links *links, uint32_t node, bool is_read)
{
    struct mu__link *link = mu__map_get(&links->index.by_node, node);

    if (link == NULL || link->backlog.is_unread == !is_read ||
        links->wire->ops->hold == NULL)
        return;
    link->backlog.is_unread = !is_read;
    link->times.heard_ms = mu__links_now(links);
    links->wire->ops->hold(links->wire, link->connection, !is_read);
}

int mu__links_transmit(struct mu__links *links, struct mu__msg *msg)
{
    struct mu__link *link = mu__map_get(&links->index.by_node, msg->to.node);
    struct mu__outbox_route route;
    int rv = -MU_EUNAVAILABLE;

    if (link != NULL) {
        route = get_link_route(links, link);
        rv = mu__outbox_add(&link->outbox, &route, links->config.schema, msg);
        links->counters.messages_out++;
        mark_dirty(links, link);
        if (mu__outbox_may_send_early(&link->outbox))
            send_early(links, link, &route);
        note_backlog(links, link);
    }
    mu__pool_put(links->config.pool, msg);
    return rv;
}
