#include "transport/link/outbox.h"

#include "muster/error.h"
#include "runtime/message/codec.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* A frame begins at twice the size of its predecessor and doubles, so that a lone message
 * does not pay for the memory of a large frame. */
enum {
    FRAME_FIRST_BYTES = 1 << 10,
    FRAME_FULL_BYTES = 256 << 10, /* a fuller one is closed, the next begun */
    RING_FIRST = 8
};

_Static_assert((int)MU__ENCODED_BYTES_MAX <= (int)MU__FRAME_BYTES_MAX, "frames fit");

/* A record too large for a frame. Large pieces of its message are spliced, not copied. */
struct large {
    struct mu__list_node node;
    struct mu__buf *record;
    uint64_t offset;            /* sent so far, of mu__buf_total() */
    struct mu__splices splices; /* of the record */
};

/* ---- closed frames ---- */

static int ring_grow(struct mu__outbox *outbox)
{
    uint32_t size = outbox->ring_size == 0 ? RING_FIRST : outbox->ring_size * 2;
    struct mu__buf **ring = malloc(size * sizeof *ring);

    if (ring == NULL)
        return -MU_ENOMEM;
    for (uint32_t i = 0; i < outbox->ring_count; i++)
        ring[i] = outbox->ring[(outbox->ring_first + i) & (outbox->ring_size - 1)];
    free(outbox->ring);
    outbox->ring = ring;
    outbox->ring_size = size;
    outbox->ring_first = 0;
    return 0;
}

/* Takes the frame, whatever is returned. */
static int ring_put(struct mu__outbox *outbox, struct mu__buf *frame)
{
    if (outbox->ring_count == outbox->ring_size && ring_grow(outbox) != 0) {
        mu__buf_unref(frame);
        return -MU_ENOMEM;
    }
    outbox->ring[(outbox->ring_first + outbox->ring_count) & (outbox->ring_size - 1)] =
        frame;
    outbox->ring_count++;
    outbox->waiting_bytes += mu__buf_total(frame);
    return 0;
}

static void ring_drop_first(struct mu__outbox *outbox, uint32_t size)
{
    outbox->waiting_bytes -= size;
    outbox->ring_first = (outbox->ring_first + 1) & (outbox->ring_size - 1);
    outbox->ring_count--;
}

/* ---- large records ---- */

static struct large *first_large(const struct mu__outbox *outbox)
{
    return MU__LIST_FIRST(&outbox->larges, struct large, node);
}

/* Pieces that are being sent have their own references to the memory. */
static void large_free(struct large *large)
{
    mu__buf_cut_splices(large->record, 0);
    large->record->splices = NULL;
    mu__buf_unref(large->record);
    free(large);
}

static void large_drop_first(struct mu__outbox *outbox)
{
    struct large *large = first_large(outbox);

    mu__list_remove(&outbox->larges, &large->node);
    outbox->waiting_bytes -= mu__buf_total(large->record) - large->offset;
    large_free(large);
}

static int large_add(struct mu__outbox *outbox, const struct mu__schema *schema,
                     const struct mu__msg *msg, size_t bound)
{
    struct large *large = calloc(1, sizeof *large);
    int rv;

    if (large == NULL)
        return -MU_ENOMEM;
    large->record = mu__buf_new(bound - mu__encode_spliceable(schema, msg));
    if (large->record == NULL) {
        free(large);
        return -MU_ENOMEM;
    }
    large->record->splices = &large->splices;
    large->splices.bytes_max = UINT32_MAX;
    rv = mu__encode(schema, msg, large->record);
    if (rv != 0) {
        large_free(large);
        return rv;
    }
    mu__list_append(&outbox->larges, &large->node);
    outbox->waiting_bytes += mu__buf_total(large->record);
    return 0;
}

/* The contiguous bytes of a record from `offset` on, and the buffer that has them. */
static struct mu__view extent_at(struct mu__buf *record, uint64_t offset,
                                 struct mu__buf **ret_holder)
{
    uint32_t own = 0; /* of the record's own bytes, before the next splice */

    for (uint32_t i = 0; i < record->splices->count; i++) {
        const struct mu__splice *splice = &record->splices->items[i];

        if (offset < splice->at - own) {
            *ret_holder = record;
            return (struct mu__view){record->data + own + offset,
                                     (uint32_t)(splice->at - own - offset)};
        }
        offset -= splice->at - own;
        own = splice->at;
        if (offset < splice->size) {
            *ret_holder = splice->owner;
            return (struct mu__view){splice->data + offset,
                                     (uint32_t)(splice->size - offset)};
        }
        offset -= splice->size;
    }
    *ret_holder = record;
    return (struct mu__view){record->data + own + offset,
                             (uint32_t)(record->size - own - offset)};
}

/* ---- the open frame ---- */

void mu__outbox_clear(struct mu__outbox *outbox)
{
    mu__buf_unref(outbox->open);
    outbox->open = NULL;
    outbox->open_count = 0;
    while (outbox->ring_count > 0) {
        struct mu__buf *frame = outbox->ring[outbox->ring_first];

        ring_drop_first(outbox, mu__buf_total(frame));
        mu__buf_unref(frame);
    }
    while (!mu__list_is_empty(&outbox->larges))
        large_drop_first(outbox);
}

void mu__outbox_done(struct mu__outbox *outbox)
{
    mu__outbox_clear(outbox);
    free(outbox->ring);
    *outbox = (struct mu__outbox){0};
}

static int close_open(struct mu__outbox *outbox, const struct mu__outbox_route *route)
{
    struct mu__buf *frame = outbox->open;
    const struct mu__frame_header header = {MU__FRAME_VERSION, MU__FRAME_DATA,
                                            route->from, route->to, outbox->open_count};

    if (frame == NULL)
        return 0;
    mu__frame_write(frame, &header);
    outbox->open_bytes_hint = frame->size;
    outbox->open = NULL;
    outbox->open_count = 0;
    return ring_put(outbox, frame);
}

static struct mu__buf *frame_new(struct mu__wire *wire, size_t capacity)
{
    struct mu__buf *frame = wire->ops->buffer(wire, capacity);

    if (frame != NULL)
        frame->size = MU__FRAME_HEADER_BYTES;
    return frame;
}

/* The part of a record's bound that needs room in a frame of this wire. */
static size_t own_bound(const struct mu__wire *wire, const struct mu__schema *schema,
                        const struct mu__msg *msg, size_t bound)
{
    return wire->ops->splices ? bound - mu__encode_spliceable(schema, msg) : bound;
}

/* A larger open frame with the same content, or the first one. */
static int grow_open(struct mu__outbox *outbox, const struct mu__outbox_route *route,
                     size_t needed)
{
    size_t capacity = outbox->open == NULL ? outbox->open_bytes_hint * (size_t)2
                                           : outbox->open->capacity * (size_t)2;
    struct mu__buf *frame;

    if (capacity > FRAME_FULL_BYTES)
        capacity = FRAME_FULL_BYTES;
    if (capacity < FRAME_FIRST_BYTES)
        capacity = FRAME_FIRST_BYTES;
    if (capacity < needed)
        capacity = needed;
    frame = frame_new(route->wire, capacity);
    if (frame == NULL)
        return -MU_ENOMEM;
    if (outbox->open != NULL) {
        memcpy(frame->data, outbox->open->data, outbox->open->size);
        frame->size = outbox->open->size;
        mu__buf_unref(outbox->open);
    }
    outbox->open = frame;
    return 0;
}

/* Make room for `bound` more bytes, in the open frame or a new one. A frame with
 * splices is not grown, because its table of splices may be full. */
static int make_frame_room(struct mu__outbox *outbox,
                           const struct mu__outbox_route *route, size_t bound)
{
    const struct mu__buf *open = outbox->open;

    if (open != NULL &&
        (open->size + bound > FRAME_FULL_BYTES || mu__buf_total(open) > open->size)) {
        int rv = close_open(outbox, route);

        if (rv != 0)
            return rv;
    }
    return grow_open(outbox, route,
                     bound + (outbox->open == NULL ? MU__FRAME_HEADER_BYTES
                                                   : outbox->open->size));
}

/* Close the open frame before a large record: the messages in it would arrive only with
 * the end of that record. */
static int close_before_large(struct mu__outbox *outbox,
                              const struct mu__outbox_route *route,
                              const struct mu__schema *schema, const struct mu__msg *msg)
{
    const struct mu__buf *open = outbox->open;

    if (open == NULL || open->splices == NULL || msg->backing == NULL ||
        msg->backing->capacity < MU__SPLICE_BYTES_MIN ||
        mu__buf_total(open) + mu__encode_spliceable(schema, msg) <= FRAME_FULL_BYTES)
        return 0;
    return close_open(outbox, route);
}

int mu__outbox_add(struct mu__outbox *outbox, const struct mu__outbox_route *route,
                   const struct mu__schema *schema, const struct mu__msg *msg)
{
    int rv = close_before_large(outbox, route, schema, msg);
    size_t bound;

    if (rv != 0)
        return rv;
    rv = outbox->open == NULL ? -MU_EEXHAUSTED : mu__encode(schema, msg, outbox->open);
    if (rv == -MU_EEXHAUSTED) {
        bound = mu__encode_bound(schema, msg);
        if (bound > MU__FRAME_BYTES_MAX - MU__FRAME_HEADER_BYTES)
            return large_add(outbox, schema, msg, bound);
        rv = make_frame_room(outbox, route, own_bound(route->wire, schema, msg, bound));
        if (rv == 0)
            rv = mu__encode(schema, msg, outbox->open);
    }
    if (rv != 0)
        return rv;
    outbox->open_count++;
    return mu__buf_total(outbox->open) > FRAME_FULL_BYTES ? close_open(outbox, route) : 0;
}

int mu__outbox_control(struct mu__outbox *outbox, const struct mu__outbox_route *route,
                       uint8_t type, const struct mu__msg *msg)
{
    size_t bound = msg == NULL ? 0 : mu__encode_bound(&mu__frame_messages, msg);
    size_t own =
        msg == NULL ? 0 : own_bound(route->wire, &mu__frame_messages, msg, bound);
    const struct mu__frame_header header = {MU__FRAME_VERSION, type, route->from,
                                            route->to, msg == NULL ? 0 : 1};
    struct mu__buf *frame;
    int rv = close_open(outbox, route);

    if (rv != 0)
        return rv;
    frame = frame_new(route->wire, MU__FRAME_HEADER_BYTES + own);
    if (frame == NULL)
        return -MU_ENOMEM;
    mu__frame_write(frame, &header);
    rv = msg == NULL ? 0 : mu__encode(&mu__frame_messages, msg, frame);
    if (rv != 0) {
        mu__buf_unref(frame);
        return rv;
    }
    return ring_put(outbox, frame);
}

/* ---- sending ---- */

/* The next piece of the first large record becomes a frame in the ring. */
static int cut_piece(struct mu__outbox *outbox, const struct mu__outbox_route *route)
{
    struct large *large = first_large(outbox);
    uint64_t total = mu__buf_total(large->record);
    struct mu__buf *holder;
    struct mu__view extent = extent_at(large->record, large->offset, &holder);
    uint32_t size =
        extent.size > MU__LINK_PIECE_BYTES ? MU__LINK_PIECE_BYTES : extent.size;
    union {
        struct mu__msg msg;
        unsigned char bytes[sizeof(struct mu__msg) + sizeof(struct mu__piece)];
    } record = {.msg = {.kind = MU__FRAME_PIECE, .backing = holder}};
    struct mu__piece piece = {large->offset, total, {extent.data, size}};
    int rv;

    memcpy(record.msg.body, &piece, sizeof piece);
    rv = mu__outbox_control(outbox, route, MU__FRAME_PIECE, &record.msg);
    if (rv != 0)
        return rv;
    large->offset += size;
    outbox->waiting_bytes -= size;
    if (large->offset == total)
        large_drop_first(outbox);
    return 0;
}

/* Send closed frames until the wire takes no more. */
static int send_ring(struct mu__outbox *outbox, const struct mu__outbox_route *route,
                     uint64_t *ret_frames, uint64_t *ret_bytes)
{
    outbox->blocked = false;
    while (outbox->ring_count > 0) {
        struct mu__buf *frame = outbox->ring[outbox->ring_first];
        uint32_t size = mu__buf_total(frame);
        int rv = route->wire->ops->send(route->wire, route->connection, frame);

        outbox->blocked = rv == -MU_EAGAIN;
        if (rv != 0)
            return rv;
        ring_drop_first(outbox, size);
        *ret_frames += 1;
        *ret_bytes += size;
    }
    return 0;
}

int mu__outbox_send(struct mu__outbox *outbox, const struct mu__outbox_route *route,
                    uint64_t *ret_frames, uint64_t *ret_bytes)
{
    int rv = close_open(outbox, route);

    while (rv == 0 && !mu__outbox_is_empty(outbox)) {
        if (outbox->ring_count == 0)
            rv = cut_piece(outbox, route);
        else
            rv = send_ring(outbox, route, ret_frames, ret_bytes);
    }
    return rv == -MU_EAGAIN ? 0 : rv;
}

int mu__outbox_send_early(struct mu__outbox *outbox, const struct mu__outbox_route *route,
                          uint64_t *ret_frames, uint64_t *ret_bytes)
{
    int rv = 0;

    if (mu__outbox_may_send_early(outbox))
        rv = send_ring(outbox, route, ret_frames, ret_bytes);
    return rv == -MU_EAGAIN ? 0 : rv;
}
