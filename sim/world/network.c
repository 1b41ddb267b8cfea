/* The network: connections that go both ways and keep their order, and everything that
 * happens to them.
 *
 * A connection has two ways, each of them a struct sim_conn, from one process to the
 * other. The process at the end of a way has it open until it has been told of the last
 * frame and of the end, or hangs up; a dead process has no ways. Both ways of a
 * connection end together, but for a cut that one side alone notices.
 *
 * One connection neither repeats nor reorders its frames: a wire is a byte stream, and
 * whoever sends on it again makes another connection first. What is left of "duplicated"
 * and "reordered" happens here between connections:
 *   - a connection that was cut for one side only still brings the other what was under
 *     way, while the next one between the same two has begun: frames of a link's former
 *     life come between those of its present one (sim_counters.frames_overtaken);
 *   - what a process sent before it died still comes, also to peers that hear its next
 *     life already (frames_of_dead);
 *   - connections of different senders, and the two ways between two nodes, overtake each
 *     other at any time. So an answer comes twice: late from the worker that was given
 *     up, and from the one that ran it again. */
#include "muster/error.h"
#include "sim/world/inner.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

static void dial_try(void *owner);
static void writable(void *owner);
static void conn_arrive(void *owner);

struct sim_node *sim_node_of_wire(struct mu__wire *wire)
{
    return (struct sim_node *)(void *)((char *)wire - offsetof(struct sim_node, wire));
}

uint64_t sim_latency_us(const struct sim_node *from, const struct sim_node *to)
{
    uint64_t factor = from->slow_to[to->number] > 0 ? from->slow_to[to->number] : 1;

    return sim_draw_range(from->sim, from->sim->settings.latency) * factor;
}

/* ---- Frames under way ---- */

static struct sim_frame *frame_new(struct sim *sim)
{
    struct sim_frame *frame = sim->frames_free;

    if (frame == NULL)
        return sim_alloc(sizeof *frame);
    sim->frames_free = frame->next;
    return frame;
}

/* Gives its buffer to the caller. */
static struct mu__buf *take_first(struct sim_conn *conn)
{
    struct sim *sim = conn->to->sim;
    struct sim_frame *frame = conn->first;
    struct mu__buf *buf = frame->buf;

    conn->first = frame->next;
    if (conn->first == NULL)
        conn->last = &conn->first;
    conn->frames--;
    conn->bytes -= buf->size;
    frame->next = sim->frames_free;
    sim->frames_free = frame;
    return buf;
}

/* The frames after the first `keep` ones never arrive. */
static void lose_after(struct sim_conn *conn, uint32_t keep)
{
    struct sim *sim = conn->to->sim;
    struct sim_frame **link = &conn->first;

    for (uint32_t i = 0; i < keep; i++)
        link = &(*link)->next;
    while (*link != NULL) {
        struct sim_frame *frame = *link;

        *link = frame->next;
        conn->frames--;
        conn->bytes -= frame->buf->size;
        sim->counters.frames_lost++;
        mu__buf_unref(frame->buf);
        frame->next = sim->frames_free;
        sim->frames_free = frame;
    }
    conn->last = link;
}

static void lose_some(struct sim_conn *conn)
{
    struct sim *sim = conn->to->sim;

    if (conn->frames > 0 && sim_chance(&sim->random, sim->settings.lose_percent))
        lose_after(conn, (uint32_t)sim_between(&sim->random, 0, conn->frames - 1));
}

/* ---- Connections ---- */

static void enlist(struct sim_conn *conn)
{
    struct sim *sim = conn->to->sim;

    conn->next = sim->conns;
    conn->link = &sim->conns;
    if (conn->next != NULL)
        conn->next->link = &conn->next;
    sim->conns = conn;
    conn->next_end = conn->to->ends;
    conn->to->ends = conn;
}

static struct sim_conn *way_new(struct sim_node *from, struct sim_node *to,
                                uint32_t number)
{
    struct sim_conn *conn = sim_alloc(sizeof *conn);

    conn->from = from;
    conn->to = to;
    conn->last = &conn->first;
    conn->number = number;
    conn->age = to->sim->conns_made;
    conn->from_life = from->lives;
    conn->open = true;
    sim_event_init(&conn->arrive, to, SIM_CONTEXT_WIRE, conn_arrive, conn);
    sim_event_init(&conn->writable, from, SIM_CONTEXT_WIRE, writable, conn);
    enlist(conn);
    return conn;
}

/* Returns the way to the dialler. */
static struct sim_conn *conn_new(struct sim_node *dialler, uint32_t number,
                                 struct sim_node *to)
{
    struct sim_conn *there;
    struct sim_conn *back;

    to->sim->conns_made++;
    there = way_new(dialler, to, MU__WIRE_ACCEPTED | ++to->ins);
    back = way_new(to, dialler, number);
    there->back = back;
    back->back = there;
    return back;
}

static void way_free(struct sim_conn *conn)
{
    struct sim_conn **end = &conn->to->ends;

    assert(conn->arrive.place == SIM_EVENT_IDLE);
    sim_event_cancel(conn->to->sim, &conn->writable);
    lose_after(conn, 0);
    *conn->link = conn->next;
    if (conn->next != NULL)
        conn->next->link = conn->link;
    while (*end != conn)
        end = &(*end)->next_end;
    *end = conn->next_end;
    free(conn);
}

void sim_conn_arm(struct sim_conn *conn)
{
    struct sim *sim = conn->to->sim;

    conn->held = false;
    if (conn->first != NULL)
        sim_event_at_order(sim, &conn->arrive, conn->first->due_us, conn->first->order);
    else if (conn->end_reason != NULL)
        sim_event_at(sim, &conn->arrive, conn->last_due_us);
}

/* The process at the end of this way hears nothing more of the connection. */
static void conn_shut(struct sim_conn *conn)
{
    sim_event_cancel(conn->to->sim, &conn->arrive);
    sim_event_cancel(conn->to->sim, &conn->back->writable);
    lose_after(conn, 0);
    conn->open = false;
    conn->held = false;
    conn->to->sim->sweep = true;
}

void sim_conn_end(struct sim_conn *conn, uint64_t after_us, const char *reason)
{
    uint64_t end_us = conn->to->sim->now_us + after_us;

    if (conn->end_reason != NULL || !conn->open)
        return;
    conn->end_reason = reason;
    lose_some(conn);
    if (conn->last_due_us < end_us)
        conn->last_due_us = end_us;
    if (conn->first == NULL && !conn->held)
        sim_conn_arm(conn);
}

/* The process at the end of this way hangs up. */
static void conn_hangup(struct sim_conn *conn)
{
    conn_shut(conn);
    sim_conn_end(conn->back, sim_latency_us(conn->to, conn->from), "closed by the peer");
}

void sim_network_sweep(struct sim *sim)
{
    struct sim_conn *conn = sim->conns;

    sim->sweep = false;
    while (conn != NULL) {
        struct sim_conn *next = conn->next;

        if (!conn->open && !conn->back->open) {
            if (next == conn->back)
                next = next->next;
            way_free(conn->back);
            way_free(conn);
        }
        conn = next;
    }
}

/* ---- Dialling ---- */

static void dial_again(struct sim_dial *dial)
{
    struct sim *sim = dial->node->sim;
    uint64_t wait_us = dial->redial_us;

    if (sim->settings.redial_drawn)
        wait_us = sim_between(&sim->random, wait_us / 2, wait_us);
    dial->redial_us *= 2;
    if (dial->redial_us > sim->settings.redial.max_us)
        dial->redial_us = sim->settings.redial.max_us;
    sim_event_at(sim, &dial->event, sim->now_us + wait_us);
}

static struct sim_node *find_listener(struct sim *sim, const char *url)
{
    for (uint32_t i = 0; i < sim->nodes_count; i++)
        if (sim->nodes[i]->running && strcmp(sim->nodes[i]->address, url) == 0)
            return sim->nodes[i];
    return NULL;
}

/* NULL: nobody. Somebody who stands still accepts nothing, and neither does anybody
 * unheard. */
static struct sim_node *reach(struct sim_node *node, const char *url)
{
    struct sim_node *to = find_listener(node->sim, url);

    if (to == NULL || to->paused || to->doomed || sim_is_blocked(node, to) ||
        sim_is_blocked(to, node))
        return NULL;
    return to;
}

static uint32_t place_of(const struct sim_node *node)
{
    return node->number + 1;
}

static struct sim_name *find_name(struct sim *sim, const char *url)
{
    for (unsigned i = 0; i < sim->names_count; i++)
        if (strcmp(sim->names[i].url, url) == 0)
            return &sim->names[i];
    return NULL;
}

static struct sim_node *reach_by_name(const struct sim_dial *dial,
                                      const struct sim_name *name)
{
    struct sim_node *last = NULL;

    for (unsigned i = 0; i < name->count; i++) {
        struct sim_node *to = reach(dial->node, name->addresses[i]);

        if (to != NULL &&
            (dial->tried == NULL || !mu__dial_tried_has(dial->tried, place_of(to))))
            return to;
        if (last == NULL)
            last = to;
    }
    return last;
}

static struct sim_dial **dial_find(struct sim_node *node, uint32_t number)
{
    struct sim_dial **link = &node->dials;

    while (*link != NULL && (*link)->number != number)
        link = &(*link)->next;
    return link;
}

static void dial_free(struct sim_node *node, uint32_t number)
{
    struct sim_dial **link = dial_find(node, number);
    struct sim_dial *dial = *link;

    *link = dial->next;
    sim_event_cancel(node->sim, &dial->event);
    free(dial->url);
    free(dial);
}

/* The other side hears of it, and who has dialled tries again. */
static void dial_refused(struct sim_dial *dial, struct sim_conn *conn,
                         const struct sim_meeting *meeting)
{
    struct sim_conn *there = conn->back;

    dial->node->sim->counters.refused++;
    dial->refused = meeting->dialler_why;
    there->refused = true;
    memcpy(there->why, meeting->why, sizeof there->why);
    conn_shut(conn);
    sim_conn_end(there, sim_latency_us(dial->node, there->to), there->why);
    dial_again(dial);
}

static void dial_try(void *owner)
{
    struct sim_dial *dial = owner;
    struct sim_node *node = dial->node;
    uint32_t number = dial->number;
    const struct sim_name *name = find_name(node->sim, dial->url);
    struct sim_node *to =
        name == NULL ? reach(node, dial->url) : reach_by_name(dial, name);
    struct sim_meeting meeting;
    struct sim_conn *conn;

    if (to == NULL) {
        if (sim_is_refused(node, dial->url))
            dial->refused = "connection refused";
        dial_again(dial);
        return;
    }
    conn = conn_new(node, number, to);
    sim_meet(node, to, &meeting);
    if (meeting.refused) {
        dial_refused(dial, conn, &meeting);
        return;
    }
    conn->met = meeting.listener;
    conn->back->met = meeting.dialler;
    conn->addresses = name == NULL ? 1 : name->count;
    dial_free(node, number);
    if (node->events.up != NULL)
        node->events.up(node->events_owner, number);
    sim_burst_after(node);
}

/* ---- Sending ---- */

static void writable(void *owner)
{
    struct sim_conn *conn = owner;
    struct sim_node *node = conn->from;

    conn->full = false;
    if (node->events.writable != NULL)
        node->events.writable(node->events_owner, conn->back->number);
    sim_burst_after(node);
}

/* Frames were taken at the other end: the sender may hear that there is room again. */
static void tell_room(struct sim_conn *conn)
{
    struct sim *sim = conn->to->sim;

    if (!conn->back->open || !conn->full || conn->writable.place != SIM_EVENT_IDLE ||
        conn->bytes > sim->settings.connection_bytes_max / 2)
        return;
    sim_event_at(sim, &conn->writable,
                 sim->now_us + sim_latency_us(conn->to, conn->from));
}

/* ---- What arrives ---- */

static void tell_end(struct sim_conn *conn)
{
    struct sim_node *node = conn->to;

    conn_shut(conn);
    if (conn->refused && node->events.refused != NULL)
        node->events.refused(node->events_owner, conn->from->name, conn->end_reason);
    if (!conn->refused && node->events.down != NULL)
        node->events.down(node->events_owner, conn->number, conn->end_reason);
    sim_burst_after(node);
}

static void refuse_frame(struct sim_conn *conn, struct mu__buf *buf)
{
    mu__buf_unref(buf);
    lose_after(conn, 0);
    conn->end_reason = "frame is too large";
    sim_conn_end(conn->back, sim_latency_us(conn->to, conn->from),
                 "connection reset by the peer");
    tell_end(conn);
}

static void count_frame(const struct sim_conn *conn)
{
    struct sim_counters *counters = &conn->to->sim->counters;
    uint32_t *youngest = &conn->to->youngest[conn->from->number];

    counters->frames++;
    counters->frames_overtaken += conn->age < *youngest;
    counters->frames_of_dead +=
        !conn->from->running || conn->from->lives != conn->from_life;
    if (conn->age > *youngest)
        *youngest = conn->age;
}

static void give_frame(struct sim_conn *conn)
{
    struct sim_node *node = conn->to;
    struct sim *sim = node->sim;
    struct mu__buf *buf = take_first(conn);
    bool more = true;

    if (buf->size > MU__FRAME_BYTES_MAX) {
        refuse_frame(conn, buf);
        return;
    }
    sim_conn_arm(conn);
    tell_room(conn);
    count_frame(conn);
    sim->digest = sim_digest_bytes(sim->digest, buf->data, buf->size);
    if (node->events.frame != NULL)
        more = node->events.frame(node->events_owner, conn->number, buf);
    mu__buf_unref(buf);
    sim_burst_after(node);
    if (more)
        return;
    node->read_us = sim->now_us + sim_between(&sim->random, 1, 1000);
    sim_burst_close(node);
}

static void conn_arrive(void *owner)
{
    struct sim_conn *conn = owner;
    struct sim *sim = conn->to->sim;

    assert(conn->open);
    if (conn->to->read_us > sim->now_us) {
        sim_event_at_order(sim, &conn->arrive, conn->to->read_us, conn->arrive.order);
        return;
    }
    if (!conn->cut && sim_is_blocked(conn->from, conn->to)) {
        conn->held = true;
        return;
    }
    if (conn->first != NULL)
        give_frame(conn);
    else
        tell_end(conn);
}

/* ---- What the process asks for ---- */

struct sim_conn *sim_conn_find(const struct sim_node *node, uint32_t number)
{
    struct sim_conn *conn = node->ends;

    while (conn != NULL && (conn->number != number || !conn->open))
        conn = conn->next_end;
    return conn;
}

static bool is_url(const char *url)
{
    static const char *const schemes[] = {"tcp://", "ipc://"};

    for (size_t i = 0; i < sizeof schemes / sizeof schemes[0]; i++)
        if (strncmp(url, schemes[i], strlen(schemes[i])) == 0)
            return url[strlen(schemes[i])] != '\0';
    return false;
}

static struct mu__buf *wire_buffer(struct mu__wire *wire, size_t capacity)
{
    (void)wire;
    return mu__buf_new(capacity);
}

static int wire_dial(struct mu__wire *wire, uint32_t number, const char *url)
{
    struct sim_node *node = sim_node_of_wire(wire);
    struct sim *sim = node->sim;
    struct sim_dial *dial;

    assert(number != 0 && !mu__wire_is_accepted(number));
    if (!node->running)
        return -MU_ECLOSED;
    if (!is_url(url))
        return -MU_EINVALID;
    if (*dial_find(node, number) != NULL || sim_conn_find(node, number) != NULL)
        return -MU_EEXISTS;

    dial = sim_alloc(sizeof *dial);
    dial->node = node;
    dial->number = number;
    dial->url = sim_copy(url);
    dial->redial_us = sim->settings.redial.min_us;
    sim_event_init(&dial->event, node, SIM_CONTEXT_WIRE, dial_try, dial);
    sim_event_in(sim, &dial->event, sim->settings.connect);
    dial->next = node->dials;
    node->dials = dial;
    return 0;
}

static void wire_hangup(struct mu__wire *wire, uint32_t number)
{
    struct sim_node *node = sim_node_of_wire(wire);
    struct sim_conn *conn = sim_conn_find(node, number);

    if (conn != NULL)
        conn_hangup(conn);
    else if (*dial_find(node, number) != NULL)
        dial_free(node, number);
}

/* A process that dies midway has sent its last frame without knowing. */
static bool dies_midway(struct sim_node *node)
{
    if (node->midway && node->sends_left == 0)
        node->doomed = true;
    else if (node->midway)
        node->sends_left--;
    return node->doomed && node->midway;
}

static bool refuses(struct sim_conn *conn, size_t size)
{
    struct sim *sim = conn->from->sim;

    if (conn->full)
        return true;
    if (conn->bytes > 0 && conn->bytes + size > sim->settings.connection_bytes_max) {
        conn->full = true;
        tell_room(conn);
        return true;
    }
    if (!sim_chance(&sim->random, sim->settings.again_percent))
        return false;
    conn->full = true;
    sim_event_at(sim, &conn->writable,
                 sim->now_us + sim_latency_us(conn->from, conn->to));
    return true;
}

/* The receiver gets a buffer of its own when the sender has kept a reference. */
static struct mu__buf *own_buffer(struct mu__buf *frame)
{
    struct mu__buf *copy;

    if (frame->refs == 1)
        return frame;
    sim_own_memory++;
    copy = mu__buf_new(frame->size);
    sim_own_memory--;
    assert(copy != NULL);
    memcpy(copy->data, frame->data, frame->size);
    copy->size = frame->size;
    mu__buf_unref(frame);
    return copy;
}

static void put_frame(struct sim_conn *conn, struct mu__buf *buf)
{
    struct sim *sim = conn->from->sim;
    struct sim_frame *frame = frame_new(sim);

    if (conn->busy_us < sim->now_us)
        conn->busy_us = sim->now_us;
    if (sim->settings.bytes_per_ms > 0)
        conn->busy_us += buf->size * UINT64_C(1000) / sim->settings.bytes_per_ms;
    frame->due_us = conn->busy_us + sim_latency_us(conn->from, conn->to);
    if (frame->due_us < conn->last_due_us)
        frame->due_us = conn->last_due_us;
    conn->last_due_us = frame->due_us;
    frame->order = sim->order++;
    frame->buf = own_buffer(buf);
    frame->next = NULL;
    *conn->last = frame;
    conn->last = &frame->next;
    conn->frames++;
    conn->bytes += frame->buf->size;
}

/* What is sent on a connection that has ended, whose end was not told yet, is lost. */
static int wire_send(struct mu__wire *wire, uint32_t number, struct mu__buf *frame)
{
    struct sim_node *node = sim_node_of_wire(wire);
    struct sim_conn *end = sim_conn_find(node, number);
    struct sim_conn *conn = end == NULL ? NULL : end->back;
    bool is_over;
    bool first;

    if (end == NULL)
        return -MU_EUNAVAILABLE;
    is_over = !conn->open || conn->end_reason != NULL || end->end_reason != NULL;
    if (!is_over && refuses(conn, frame->size))
        return -MU_EAGAIN;
    if (dies_midway(node) || is_over) {
        node->sim->counters.frames_lost++;
        mu__buf_unref(frame);
        return 0;
    }
    first = conn->first == NULL;
    put_frame(conn, frame);
    if (first && !conn->held)
        sim_conn_arm(conn);
    return 0;
}

static void wire_avoid(struct mu__wire *wire, uint32_t number,
                       const struct mu__dial_tried *tried)
{
    struct sim_dial *dial = *dial_find(sim_node_of_wire(wire), number);

    if (dial != NULL)
        dial->tried = tried;
}

static uint32_t wire_place(struct mu__wire *wire, uint32_t number, unsigned *ret_count)
{
    const struct sim_conn *conn = sim_conn_find(sim_node_of_wire(wire), number);

    if (conn == NULL || mu__wire_is_accepted(number))
        return 0;
    *ret_count = conn->addresses;
    return place_of(conn->from);
}

/* Here nothing else ever fails for a reason. */
static const char *wire_last_error(struct mu__wire *wire, uint32_t number)
{
    const struct sim_dial *dial = *dial_find(sim_node_of_wire(wire), number);

    return dial == NULL ? NULL : dial->refused;
}

const struct mu__wire_ops sim_wire_ops = {
    .last_error = wire_last_error,
    .avoid = wire_avoid,
    .address_number = wire_place,
    .buffer = wire_buffer,
    .dial = wire_dial,
    .hangup = wire_hangup,
    .send = wire_send,
    .proof = sim_wire_proof,
    .own_right = sim_wire_own_right,
};

void sim_name(struct sim *sim, const char *url, const char *const *addresses,
              unsigned count)
{
    struct sim_name *name = find_name(sim, url);

    if (name == NULL) {
        assert(sim->names_count < SIM_NAMES_MAX);
        name = &sim->names[sim->names_count++];
    }
    *name = (struct sim_name){url, addresses, count};
}

/* ---- What happens to processes ---- */

void sim_network_leave(struct sim_node *node)
{
    struct sim *sim = node->sim;

    while (node->dials != NULL)
        dial_free(node, node->dials->number);
    for (struct sim_conn *conn = node->ends; conn != NULL; conn = conn->next_end)
        if (conn->open)
            conn_hangup(conn);
    if (sim->current == NULL)
        sim_network_sweep(sim);
}

void sim_network_done(struct sim *sim)
{
    sim_network_sweep(sim);
    assert(sim->conns == NULL);
    while (sim->frames_free != NULL) {
        struct sim_frame *frame = sim->frames_free;

        sim->frames_free = frame->next;
        free(frame);
    }
}
