/* Room at the chief. The chief says how many closures this client may have there
 * (ROOM_ALLOW); the rest is queued here by priority, in order within a priority. No
 * closure overtakes the first one in the queue: a large one waits until enough of those
 * sent before it are resolved.
 *
 * The client sends ROOM_REQUEST when it begins to lack room, and when nothing is queued
 * and half of its room is free: never for each closure. */
#include "actors/client/actions.h"

#include "actors/client/holds.h"
#include "actors/keep.h"
#include "actors/packing.h"

#include <inttypes.h>
#include <stdio.h>

/* ---- the size of the room ---- */

/* What a closure lacks at the chief: bits of enum mu__room_lack; 0: it fits. */
static uint32_t compute_lacks(const struct mu__room *room, uint64_t bytes)
{
    uint64_t size = mu__room_size(room, bytes);
    uint32_t lacking = 0;

    if (room->closures_sent >= room->closures_allowed)
        lacking |= MU__LACKS_CLOSURES;
    if (size > 0 && room->bytes_sent + size > room->bytes_allowed)
        lacking |= MU__LACKS_BYTES;
    return lacking;
}

/* To a power of two, so that not every closure is a new need. */
static uint64_t round_up_need(uint64_t bytes, uint64_t max)
{
    uint64_t step = 4096;

    while (step < bytes)
        step *= 2;
    return max != 0 && step > max ? max : step;
}

/* ---- the queues ---- */

static uint32_t first_waiting(const struct mu__room *room)
{
    for (uint32_t i = 0; i < MU__PRIORITIES; i++)
        if (room->queues[i].first != 0)
            return room->queues[i].first - 1;
    return UINT32_MAX;
}

static struct mu__room_queue *queue_of(struct mu__room *room, struct mu__msg *msg)
{
    const struct mu__schedule *body = mu__body(msg);

    return &room->queues[body->priority == 0 ? MU__PRIORITY_DEFAULT : body->priority - 1];
}

static bool need_entries(struct client_actor *c, uint32_t slot)
{
    return slot < c->room.entries_count ||
           mu__grow_zeroed((void **)&c->room.entries, &c->room.entries_count,
                           c->slots.count, sizeof *c->room.entries);
}

static void queue_closure(struct mu__room *room, uint32_t slot)
{
    struct mu__room_entry *entry = &room->entries[slot];
    struct mu__room_queue *queue = queue_of(room, entry->msg);

    entry->next = 0;
    entry->prev = queue->last;
    if (queue->last == 0)
        queue->first = slot + 1;
    else
        room->entries[queue->last - 1].next = slot + 1;
    queue->last = slot + 1;
    room->waiting++;
}

/* Take a closure out of its queue; the caller owns the message. */
static struct mu__msg *unqueue_closure(struct mu__ctx *ctx, struct mu__room *room,
                                       uint32_t slot)
{
    struct mu__room_entry *entry = &room->entries[slot];
    struct mu__room_queue *queue = queue_of(room, entry->msg);
    struct mu__msg *msg = entry->msg;

    if (entry->prev == 0)
        queue->first = entry->next;
    else
        room->entries[entry->prev - 1].next = entry->next;
    if (entry->next == 0)
        queue->last = entry->prev;
    else
        room->entries[entry->next - 1].prev = entry->prev;
    if (entry->timer != 0) {
        mu__timer_cancel(ctx, entry->timer);
        (void)mu__map_remove(&room->deadlines, entry->timer);
    }
    *entry = (struct mu__room_entry){0};
    room->waiting--;
    return msg;
}

/* ---- sending ---- */

static void drop_unsent_message(struct mu__ctx *ctx, struct client_actor *c,
                                uint32_t slot, struct mu__msg *msg)
{
    if (c->slots.items[slot].has_holds)
        mu__holds_drop(mu__body(msg));
    c->slots.items[slot].has_holds = false;
    mu__msg_free(ctx, msg);
}

static void send_closure(struct mu__ctx *ctx, struct client_actor *c, uint32_t slot,
                         struct mu__msg *msg)
{
    int rv;

    c->slots.items[slot].state = SLOT_SENT;
    c->room.need_stands = false;
    c->room.closures_sent++;
    c->room.bytes_sent += mu__room_size(&c->room, c->slots.items[slot].bytes);
    mu__client_hand_over(c, slot, msg);
    rv = mu__send(ctx, c->chief.pid, msg);
    if (rv != 0)
        mu__client_not_sent(ctx, c, (uint64_t)slot + 1, rv);
}

static void send_queued_closure(struct mu__ctx *ctx, struct client_actor *c,
                                uint32_t slot)
{
    uint64_t waited_ms = mu__now_ms(ctx) - c->room.entries[slot].since_ms;
    struct mu__msg *msg = unqueue_closure(ctx, &c->room, slot);
    struct mu__schedule *body = mu__body(msg);

    mu__client_shorten_deadline(body, waited_ms);
    send_closure(ctx, c, slot, msg);
}

/* ---- requests for room ---- */

static void request_room(struct mu__ctx *ctx, struct client_actor *c, bool leaves)
{
    struct mu__room *room = &c->room;
    const struct mu__room_request body = {
        .session = room->session,
        .number = room->number,
        .lacks = room->lacks_reported,
        .need_bytes = room->need_reported,
        .leaves = leaves,
    };

    int rv = mu__send_body(ctx, c->chief.pid, MU__ROOM_REQUEST, &body, sizeof body);

    if (rv == 0 || rv == -MU_EPERMISSION) /* closures are refused before they wait */
        return;
    room->lacks_reported = 0; /* the next queued closure requests room again */
    mu__log(ctx, MU__LOG_WARN, "a request for room was not sent to the chief");
}

/* Whether half of the room is free, so that the chief may give it to other clients. */
static bool has_spare_room(const struct mu__room *room)
{
    return room->waiting == 0 && room->closures_sent * 2 <= room->closures_allowed &&
           room->bytes_sent * 2 <= room->bytes_allowed;
}

/* The bytes that the first queued closure needs if they are more than are allowed; else
 * 0. The need stands until a closure is sent: with enough bytes the first one may still
 * lack room for one more closure, and must keep the bytes meanwhile. */
static uint64_t find_bytes_need(const struct mu__room *room, uint32_t lacking,
                                uint64_t size)
{
    if (room->number == 0 || room->waiting == 0)
        return 0;
    if (room->need_stands && size <= room->need_reported)
        return room->need_reported;
    return (lacking & MU__LACKS_BYTES) != 0 && size > room->bytes_allowed
               ? round_up_need(size, room->bytes_max)
               : 0;
}

/* Update what the client lacks; true: the chief must be told. */
static bool update_lacks(struct client_actor *c)
{
    struct mu__room *room = &c->room;
    uint64_t bytes = room->waiting == 0 ? 0 : c->slots.items[first_waiting(room)].bytes;
    uint64_t size = mu__room_size(room, bytes);
    uint32_t lacking = room->waiting == 0 ? 0 : compute_lacks(room, bytes);
    uint64_t need = find_bytes_need(room, lacking, size);
    bool is_new = (lacking & ~room->lacks_reported) != 0 || need > room->need_reported ||
                  (need == 0 && room->need_reported != 0);

    if (has_spare_room(room)) {
        is_new = is_new || room->lacks_reported != 0;
        room->lacks_reported = 0;
    }
    room->lacks_reported |= lacking;
    room->need_reported = need;
    room->need_stands = need != 0;
    return is_new;
}

static void send_fitting_closures(struct mu__ctx *ctx, struct client_actor *c)
{
    struct mu__room *room = &c->room;

    while (room->waiting > 0) {
        uint32_t slot = first_waiting(room);

        if (compute_lacks(room, c->slots.items[slot].bytes) != 0)
            break;
        send_queued_closure(ctx, c, slot);
    }
}

void mu__client_room_use(struct mu__ctx *ctx, struct client_actor *c)
{
    send_fitting_closures(ctx, c);
    if (update_lacks(c))
        request_room(ctx, c, false);
}

/* ---- arriving ---- */

static void begin_queue_deadline(struct mu__ctx *ctx, struct client_actor *c,
                                 uint32_t slot)
{
    struct mu__room_entry *entry = &c->room.entries[slot];
    const struct mu__schedule *body = mu__body(entry->msg);

    if (body->deadline_ms != 0)
        entry->timer = mu__client_start_timer(ctx, &c->room.deadlines, body->deadline_ms,
                                              (void *)((uintptr_t)slot + 1));
}

static void wait_for_chief_room(struct mu__ctx *ctx, struct client_actor *c,
                                uint32_t slot, struct mu__msg *msg)
{
    if (!need_entries(c, slot)) {
        drop_unsent_message(ctx, c, slot, msg);
        mu__client_not_stored(ctx, c, (uint64_t)slot + 1);
        return;
    }
    c->slots.items[slot].state = SLOT_WAITS;
    c->room.entries[slot] =
        (struct mu__room_entry){.msg = msg, .since_ms = mu__now_ms(ctx)};
    queue_closure(&c->room, slot);
    begin_queue_deadline(ctx, c, slot);
}

void mu__client_dispatch(struct mu__ctx *ctx, struct client_actor *c, uint64_t token,
                         struct mu__msg *msg)
{
    uint32_t slot = (uint32_t)(token - 1);

    if (c->room.waiting == 0 && compute_lacks(&c->room, c->slots.items[slot].bytes) == 0)
        send_closure(ctx, c, slot, msg);
    else
        wait_for_chief_room(ctx, c, slot, msg);
}

/* ---- leaving the queue ---- */

void mu__client_room_drop(struct mu__ctx *ctx, struct client_actor *c, uint32_t slot)
{
    drop_unsent_message(ctx, c, slot, unqueue_closure(ctx, &c->room, slot));
}

void mu__client_room_cancel_all(struct mu__ctx *ctx, struct client_actor *c)
{
    mu_error error = {0};

    (void)mu_error_set(&error, -MU_ECANCELLED,
                       "cancelled before it ran, after another closure's error");
    while (c->room.waiting > 0) {
        struct closure_slot slot =
            mu__client_take_slot(ctx, c, (uint64_t)first_waiting(&c->room) + 1);

        mu__client_cancelled(ctx, c, &slot, &error);
    }
}

static void over_deadline(struct mu__ctx *ctx, struct client_actor *c, uint32_t slot)
{
    const struct mu__room_entry *entry = &c->room.entries[slot];
    const struct mu__schedule *body = mu__body(entry->msg);
    mu_error error = {0};
    char words[256];
    struct closure_slot taken;

    mu__client_room_describe(c, slot, words, sizeof words);
    (void)mu_error_set(&error, -MU_EDEADLINE,
                       "the closure waited until its deadline of %" PRIu64 " ms %s",
                       body->deadline_ms, words);
    error.kind = MU_ERROR_LIMIT;
    mu__view_copy(body->function, error.function, sizeof error.function);
    taken = mu__client_take_slot(ctx, c, (uint64_t)slot + 1);
    mu__client_failed(ctx, c, &taken, &error);
}

bool mu__client_room_timer(struct mu__ctx *ctx, struct client_actor *c, uint64_t timer)
{
    uintptr_t slot;

    if (timer == c->room.review_timer) {
        mu__client_room_late(ctx, c);
        return true;
    }
    slot = (uintptr_t)mu__map_remove(&c->room.deadlines, timer);
    if (slot == 0)
        return false;
    c->room.entries[slot - 1].timer = 0;
    over_deadline(ctx, c, (uint32_t)(slot - 1));
    return true;
}

/* ---- the chief ---- */

void mu__client_room_open(struct mu__ctx *ctx, struct client_actor *c)
{
    c->room.session++;
    c->room.lacks_reported = 0;
    c->room.need_reported = 0;
    request_room(ctx, c, false);
}

void mu__client_room_close(struct mu__ctx *ctx, struct client_actor *c)
{
    if (c->chief.connected)
        request_room(ctx, c, true);
    mu__client_room_forget(c);
}

void mu__client_room_forget(struct client_actor *c)
{
    struct mu__room *room = &c->room;

    room->number = room->clients = 0;
    room->closures_allowed = room->bytes_allowed = 0;
    room->closures_max = room->bytes_max = 0;
    room->lacks_reported = 0;
    room->need_reported = 0;
    room->need_stands = false;
}

void mu__client_on_allow(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    struct client_actor *c = state;
    struct mu__room_allow *body = mu__body(msg);
    struct mu__room *room = &c->room;

    if (!mu__client_is_from_chief(c, msg) || body->number == 0 ||
        c->session.shared == NULL || body->session != room->session)
        return;
    room->number = body->number;
    room->closures_allowed = body->closures;
    room->bytes_allowed = body->bytes;
    room->closures_max = body->closures_max;
    room->bytes_max = body->bytes_max;
    room->clients = body->clients;
    send_fitting_closures(ctx, c);
    (void)update_lacks(c);
    request_room(ctx, c, false);
}

/* ---- texts for messages ---- */

void mu__client_room_describe(const struct client_actor *c, uint32_t slot, char *out,
                              size_t size)
{
    const struct mu__room *room = &c->room;
    uint32_t lacking = compute_lacks(room, c->slots.items[slot].bytes);

    if (room->number == 0)
        (void)snprintf(out, size,
                       "at its client, until the chief reports how much room there is");
    else if ((lacking & MU__LACKS_CLOSURES) != 0 && room->closures_allowed == 0)
        (void)snprintf(out, size,
                       "at its client, which has requested room at %s and got none yet",
                       c->config.chief);
    else if ((lacking & MU__LACKS_CLOSURES) != 0)
        (void)snprintf(out, size,
                       "at its client for room at the chief: %" PRIu64 " of "
                       "the %" PRIu64
                       " that may be there are this client's part (of %" PRIu32
                       "), and all in use",
                       room->closures_allowed, room->closures_max, room->clients);
    else if (lacking != 0)
        (void)snprintf(out, size,
                       "at its client for room at the chief: it has %" PRIu32
                       " bytes of arguments, and %" PRIu64 " of %" PRIu64 " bytes are in "
                       "use, this client's part of the chief's %" PRIu64,
                       c->slots.items[slot].bytes, room->bytes_sent, room->bytes_allowed,
                       room->bytes_max);
    else
        (void)snprintf(out, size, "at its client for room at the chief, behind others");
}

struct mu__view mu__client_room_function(const struct client_actor *c, uint32_t slot)
{
    const struct mu__schedule *body = mu__body(c->room.entries[slot].msg);

    return body->function;
}

void mu__client_room_done(struct client_actor *c)
{
    mu__map_done(&c->room.deadlines);
    mu__free_array(c->room.entries);
}
