/* Receiving: frames, their records, and the pieces of large records. */
#include "transport/link/proof.h"

#include "runtime/message/codec.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

void mu__links_refused(struct mu__links *links, const char *address, const char *why)
{
    mu__links_log_peer(links, MU__LOG_WARN, address, "dropped a connection%s%s: %s",
                       address[0] == '\0' ? "" : " from ", address, why);
}

void mu__links_short_of(struct mu__links *links, const char *words)
{
    mu__links_log(links, MU__LOG_WARN, "%s", words);
}

static void note_dropped(struct mu__links *links, uint32_t connection, const char *why)
{
    const struct mu__wire_ops *ops = links->wire->ops;
    char address[MU__LOG_LIMIT_BYTES] = "";

    if (ops->peer != NULL)
        ops->peer(links->wire, connection, address, sizeof address);
    mu__links_refused(links, address, why);
}

static void bad_frame(struct mu__links *links, uint32_t connection, const char *what)
{
    struct mu__link *link = mu__map_get(&links->index.by_connection, connection);
    char why[MU__LINK_REASON_BYTES];

    (void)snprintf(why, sizeof why, "bad bytes: %s", what);
    if (link != NULL) {
        mu__link_go_down(links, link, why);
        return;
    }
    note_dropped(links, connection, why);
    links->wire->ops->hangup(links->wire, connection);
}

/* ---- records ---- */

static int deliver_records(struct mu__links *links, uint32_t connection,
                           struct mu__buf *frame, size_t offset, uint32_t count)
{
    char why[128] = "";

    for (uint32_t i = 0; i < count; i++) {
        struct mu__link *link = mu__map_get(&links->index.by_connection, connection);
        struct mu__msg *msg;

        if (link == NULL)
            return 0; /* went down while its messages were delivered */
        if (mu__decode(links->config.schema, links->config.pool, frame, &offset, why,
                       sizeof why, &msg) != 0) {
            bad_frame(links, connection, why);
            return -MU_EDATALOSS;
        }
        if (msg == NULL)
            continue;
        links->counters.messages_in++;
        if (mu__link_is_forbidden(links, link, msg)) {
            mu__pool_put(links->config.pool, msg);
            continue;
        }
        msg->from.node = link->node;
        links->upcalls.deliver(links->upcalls.owner, msg);
    }
    if (offset != frame->size) {
        bad_frame(links, connection, "bytes behind the last record");
        return -MU_EDATALOSS;
    }
    return 0;
}

/* ---- pieces ---- */

static bool is_client(const struct mu__link *link)
{
    return strcmp(link->type, "client") == 0;
}

/* The bytes that all clients' unfinished large messages have announced. */
static uint64_t bytes_of_clients(const struct mu__links *links)
{
    uint64_t bytes = 0;

    for (const struct mu__link *link = mu__links_first(links); link != NULL;
         link = mu__links_next(link))
        if (is_client(link) && link->assembling.record != NULL)
            bytes += link->assembling.total;
    return bytes;
}

/* NULL: the peer may begin a large message of `total` bytes. */
static const char *refuse_large(const struct mu__links *links,
                                const struct mu__link *link, uint64_t total)
{
    if (link->assembling.record != NULL)
        return "a large message begins inside another one";
    if (total > MU__LINK_MESSAGE_BYTES_MAX)
        return "a message larger than the limit";
    if (total > MU__LINK_OBSERVER_BYTES_MAX && link->peer.right < MU__RIGHT_USE)
        return "RESOURCE EXHAUSTED: a message of more than 4 MiB, from a peer that may "
               "only observe";
    if (is_client(link) &&
        bytes_of_clients(links) + total >
            MU__LINK_CLIENTS_LARGE_MAX * (uint64_t)MU__LINK_MESSAGE_BYTES_MAX)
        return "RESOURCE EXHAUSTED: the unfinished large messages of all clients would "
               "have more than 4 GiB";
    return NULL;
}

/* Pieces come in order; the first one says how large the whole is. */
static const char *add_piece(const struct mu__links *links, struct mu__link *link,
                             const struct mu__piece *piece)
{
    if (piece->offset == 0) {
        const char *wrong = refuse_large(links, link, piece->total);

        if (wrong != NULL)
            return wrong;
        link->assembling.record = mu__buf_new(piece->total);
        if (link->assembling.record == NULL)
            return "out of memory for a large message";
        link->assembling.total = piece->total;
    }
    if (link->assembling.record == NULL ||
        piece->offset != link->assembling.record->size ||
        piece->total != link->assembling.total || piece->data.size == 0 ||
        piece->data.size > piece->total - piece->offset)
        return "a piece that does not follow its predecessor";
    memcpy(link->assembling.record->data + piece->offset, piece->data.data,
           piece->data.size);
    link->assembling.record->size += piece->data.size;
    return NULL;
}

static void on_piece(struct mu__links *links, struct mu__link *link, struct mu__msg *msg)
{
    const char *wrong = add_piece(links, link, (void *)msg->body);
    struct mu__buf *whole = link->assembling.record;

    if (wrong != NULL) {
        bad_frame(links, link->connection, wrong);
        return;
    }
    if (whole->size < link->assembling.total)
        return;
    link->assembling.record = NULL;
    (void)deliver_records(links, link->connection, whole, 0, 1);
    mu__buf_unref(whole);
}

/* ---- the protocol's own records ---- */

/* The one record of a frame of the protocol; NULL: it is malformed, and was dropped. */
static struct mu__msg *protocol_record(struct mu__links *links, uint32_t connection,
                                       struct mu__buf *frame, uint8_t type)
{
    size_t offset = MU__FRAME_HEADER_BYTES;
    struct mu__msg *msg = NULL;
    char why[128] = "";

    if (mu__decode(&mu__frame_messages, links->config.pool, frame, &offset, why,
                   sizeof why, &msg) != 0) {
        bad_frame(links, connection, why);
        return NULL;
    }
    if (msg == NULL || msg->kind != type) {
        bad_frame(links, connection, "a frame whose record is of another kind");
        mu__pool_put(links->config.pool, msg);
        return NULL;
    }
    return msg;
}

static void on_hello(struct mu__links *links, uint32_t connection, struct mu__buf *frame,
                     const struct mu__frame_header *header)
{
    struct mu__msg *msg = protocol_record(links, connection, frame, header->type);

    if (msg == NULL)
        return;
    mu__links_hello(links, connection, header, msg);
    mu__pool_put(links->config.pool, msg);
}

/* A REFUSE answers our HELLO, or comes after it. */
static void on_refuse(struct mu__links *links, struct mu__link *link,
                      struct mu__buf *frame, const struct mu__frame_header *header)
{
    struct mu__msg *msg = protocol_record(links, link->connection, frame, header->type);

    if (msg == NULL)
        return;
    mu__links_refusal(links, link, header, msg);
    mu__pool_put(links->config.pool, msg);
}

static void on_record_frame(struct mu__links *links, struct mu__link *link,
                            struct mu__buf *frame, uint8_t type)
{
    struct mu__msg *msg = protocol_record(links, link->connection, frame, type);
    char why[MU__LINK_REASON_BYTES];

    if (msg == NULL)
        return;
    if (type == MU__FRAME_PIECE) {
        on_piece(links, link, msg);
    } else {
        struct mu__bye *bye = (void *)msg->body;

        (void)snprintf(why, sizeof why, "it left: %.*s", (int)bye->reason.size,
                       (const char *)bye->reason.data);
        link->left = true;
        mu__link_go_down(links, link, why);
    }
    mu__pool_put(links->config.pool, msg);
}

/* ---- frames ---- */

static void on_peer_frame(struct mu__links *links, struct mu__link *link,
                          struct mu__buf *frame, const struct mu__frame_header *header)
{
    if (header->from != link->peer.incarnation ||
        header->to != links->config.incarnation) {
        links->counters.stale_frames++;
        return;
    }
    link->times.heard_ms = mu__links_now(links);
    if (header->type == MU__FRAME_DATA)
        (void)deliver_records(links, link->connection, frame, MU__FRAME_HEADER_BYTES,
                              header->count);
    else if (header->type != MU__FRAME_PING)
        on_record_frame(links, link, frame, header->type);
}

void mu__links_frame(struct mu__links *links, uint32_t connection, struct mu__buf *frame)
{
    struct mu__link *link = mu__map_get(&links->index.by_connection, connection);
    struct mu__frame_header header;

    links->counters.frames_in++;
    links->counters.bytes_in += frame->size;
    if (mu__frame_read(frame, &header) != 0) {
        bad_frame(links, connection, "no frame of muster's");
        return;
    }
    if (link != NULL && link->state == MU__LINK_PARTING)
        links->counters.stale_frames++;
    else if (header.type == MU__FRAME_HELLO)
        on_hello(links, connection, frame, &header);
    else if (link != NULL && header.type == MU__FRAME_REFUSE)
        on_refuse(links, link, frame, &header);
    else if (link != NULL && link->state == MU__LINK_UP)
        on_peer_frame(links, link, frame, &header);
    else
        bad_frame(links, connection, "a frame before a HELLO");
}
