/* The network: one-way connections that keep their order, and everything that happens to
 * them.
 *
 * A connection has two ends that close one by one. The sender's end is an `out`, which
 * lives from dial to hangup over many connections; the receiver's end is open until it
 * has been told of the last frame and of the end. A dead process has no ends.
 *
 * One connection neither repeats nor reorders its frames: a wire is a byte stream, and
 * whoever sends on it again makes another connection first. What is left of "duplicated"
 * and "reordered" happens here between connections:
 *   - a connection that was cut for its sender only still brings what was under way,
 *     while the next one between the same two has begun: frames of a link's former life
 *     come between those of its present one (sim_counters.frames_overtaken);
 *   - what a process sent before it died still comes, also to peers that hear its next
 *     life already (frames_of_dead);
 *   - connections of different senders, and the two ways between two nodes, overtake each
 *     other at any time. So an answer comes twice: late from the worker that was given
 *     up, and from the one that ran it again. */
#include "muster/error.h"
#include "tests/sim/inner.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

static void out_try(void *owner);
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

static struct sim_conn *conn_new(struct sim_out *out, struct sim_node *to)
{
    struct sim *sim = to->sim;
    struct sim_conn *conn = sim_alloc(sizeof *conn);

    conn->from = out->node;
    conn->to = to;
    conn->out = out;
    conn->last = &conn->first;
    conn->in = ++to->ins;
    conn->from_life = out->node->lives;
    conn->open = true;
    sim_event_init(&conn->arrive, to, SIM_CONTEXT_WIRE, conn_arrive, conn);
    conn->next = sim->conns;
    conn->link = &sim->conns;
    if (conn->next != NULL)
        conn->next->link = &conn->next;
    sim->conns = conn;
    return conn;
}

static void conn_free(struct sim_conn *conn)
{
    assert(conn->arrive.place == SIM_EVENT_IDLE);
    lose_after(conn, 0);
    *conn->link = conn->next;
    if (conn->next != NULL)
        conn->next->link = conn->link;
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

/* The receiver's end is closed without a word to it. */
static void conn_shut(struct sim_conn *conn)
{
    sim_event_cancel(conn->to->sim, &conn->arrive);
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

void sim_network_sweep(struct sim *sim)
{
    struct sim_conn *next;

    sim->sweep = false;
    for (struct sim_conn *conn = sim->conns; conn != NULL; conn = next) {
        next = conn->next;
        if (conn->out == NULL && !conn->open)
            conn_free(conn);
    }
}

/* ---- The sender's end ---- */

static void out_lost(void *owner);

void sim_out_lose(struct sim_out *out, struct sim_node *to, const char *reason)
{
    struct sim *sim = out->node->sim;

    out->conn->out = NULL;
    out->conn = NULL;
    out->lost_reason = reason;
    out->lost_to = to;
    sim->sweep = true;
    sim_event_cancel(sim, &out->writable);
    sim_event_init(&out->event, out->node, SIM_CONTEXT_WIRE, out_lost, out);
    sim_event_in(sim, &out->event, sim->settings.notice);
}

static void out_redial(struct sim_out *out)
{
    struct sim *sim = out->node->sim;
    uint64_t wait_us = out->redial_us;

    if (sim->settings.redial_drawn)
        wait_us = sim_between(&sim->random, wait_us / 2, wait_us);
    out->redial_us *= 2;
    if (out->redial_us > sim->settings.redial.max_us)
        out->redial_us = sim->settings.redial.max_us;
    sim_event_init(&out->event, out->node, SIM_CONTEXT_WIRE, out_try, out);
    sim_event_at(sim, &out->event, sim->now_us + wait_us);
}

static void out_lost(void *owner)
{
    struct sim_out *out = owner;
    struct sim_node *node = out->node;
    const char *reason = out->lost_reason;

    if (out->lost_to != NULL && sim_is_blocked(out->lost_to, node)) {
        out->held = true;
        return;
    }
    out->lost_reason = NULL;
    out->full = false;
    out_redial(out);
    if (node->events.out_down != NULL)
        node->events.out_down(node->events_owner, out->number, reason);
    sim_burst_after(node);
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

static struct sim_node *reach_by_name(const struct sim_out *out,
                                      const struct sim_name *name)
{
    struct sim_node *last = NULL;

    for (unsigned i = 0; i < name->count; i++) {
        struct sim_node *to = reach(out->node, name->addresses[i]);

        if (to != NULL &&
            (out->tried == NULL || !mu__dial_tried_has(out->tried, place_of(to))))
            return to;
        if (last == NULL)
            last = to;
    }
    return last;
}

/* The other side hears of it, and who has dialled tries again. */
static void out_refused(struct sim_out *out, struct sim_conn *conn)
{
    struct sim *sim = out->node->sim;

    sim->counters.refused++;
    sim->sweep = true;
    conn->out = NULL;
    out->refused = conn->meeting.dialler_why;
    sim_conn_end(conn, sim_latency_us(out->node, conn->to), conn->meeting.why);
    out_redial(out);
}

static void out_try(void *owner)
{
    struct sim_out *out = owner;
    struct sim_node *node = out->node;
    const struct sim_name *name = find_name(node->sim, out->url);
    struct sim_node *to = name == NULL ? reach(node, out->url) : reach_by_name(out, name);
    struct sim_conn *conn;

    if (to == NULL) {
        out_redial(out);
        return;
    }
    conn = conn_new(out, to);
    sim_meet(node, out->shows, to, &conn->meeting);
    if (conn->meeting.refused) {
        out_refused(out, conn);
        return;
    }
    out->refused = NULL;
    out->conn = conn;
    out->redial_us = node->sim->settings.redial.min_us;
    if (node->events.out_up != NULL)
        node->events.out_up(node->events_owner, out->number);
    sim_burst_after(node);
}

static void out_writable(void *owner)
{
    struct sim_out *out = owner;
    struct sim_node *node = out->node;

    out->full = false;
    if (node->events.writable != NULL)
        node->events.writable(node->events_owner, out->number);
    sim_burst_after(node);
}

/* Frames were taken at the other end: the sender may hear that there is room again. */
static void tell_room(struct sim_conn *conn)
{
    struct sim_out *out = conn->out;
    struct sim *sim = conn->to->sim;

    if (out == NULL || !out->full || out->writable.place != SIM_EVENT_IDLE ||
        conn->bytes > sim->settings.connection_bytes_max / 2)
        return;
    sim_event_at(sim, &out->writable, sim->now_us + sim_latency_us(conn->to, conn->from));
}

static void out_free(struct sim_out *out)
{
    struct sim *sim = out->node->sim;

    sim_event_cancel(sim, &out->event);
    sim_event_cancel(sim, &out->writable);
    if (out->conn != NULL) {
        out->conn->out = NULL;
        sim->sweep = true;
        sim_conn_end(out->conn, sim_latency_us(out->node, out->conn->to),
                     "closed by the peer");
    }
    free(out->url);
    free(out);
}

/* ---- The receiver's end ---- */

static void tell_end(struct sim_conn *conn)
{
    struct sim_node *node = conn->to;

    conn_shut(conn);
    if (conn->meeting.refused && node->events.refused != NULL)
        node->events.refused(node->events_owner, conn->from->name, conn->end_reason);
    if (!conn->meeting.refused && node->events.in_down != NULL)
        node->events.in_down(node->events_owner, conn->in, conn->end_reason);
    sim_burst_after(node);
}

static void refuse_frame(struct sim_conn *conn, struct mu__buf *buf)
{
    mu__buf_unref(buf);
    lose_after(conn, 0);
    conn->end_reason = "frame is too large";
    if (conn->out != NULL)
        sim_out_lose(conn->out, conn->to, "connection reset by the peer");
    tell_end(conn);
}

static void count_frame(const struct sim_conn *conn)
{
    struct sim_counters *counters = &conn->to->sim->counters;
    uint32_t *youngest = &conn->to->youngest[conn->from->number];

    counters->frames++;
    counters->frames_overtaken += conn->in < *youngest;
    counters->frames_of_dead +=
        !conn->from->running || conn->from->lives != conn->from_life;
    if (conn->in > *youngest)
        *youngest = conn->in;
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
        more = node->events.frame(node->events_owner, conn->in, buf);
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

struct sim_out **sim_out_find(struct sim_node *node, uint32_t number)
{
    struct sim_out **link = &node->outs;

    while (*link != NULL && (*link)->number != number)
        link = &(*link)->next;
    return link;
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
    struct sim_out *out;

    if (!node->running)
        return -MU_ECLOSED;
    if (!is_url(url))
        return -MU_EINVALID;
    if (*sim_out_find(node, number) != NULL)
        return -MU_EEXISTS;

    out = sim_alloc(sizeof *out);
    out->node = node;
    out->number = number;
    out->url = sim_copy(url);
    out->shows = MU__RIGHT_ALL;
    out->redial_us = sim->settings.redial.min_us;
    sim_event_init(&out->writable, node, SIM_CONTEXT_WIRE, out_writable, out);
    sim_event_init(&out->event, node, SIM_CONTEXT_WIRE, out_try, out);
    sim_event_in(sim, &out->event, sim->settings.connect);
    out->next = node->outs;
    node->outs = out;
    return 0;
}

static void wire_hangup(struct mu__wire *wire, uint32_t number)
{
    struct sim_out **link = sim_out_find(sim_node_of_wire(wire), number);
    struct sim_out *out = *link;

    if (out == NULL)
        return;
    *link = out->next;
    out_free(out);
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

static bool refuses(struct sim_out *out, size_t size)
{
    struct sim *sim = out->node->sim;
    uint64_t bytes = out->conn->bytes;

    if (out->full)
        return true;
    if (bytes > 0 && bytes + size > sim->settings.connection_bytes_max) {
        out->full = true;
        tell_room(out->conn);
        return true;
    }
    if (!sim_chance(&sim->random, sim->settings.again_percent))
        return false;
    out->full = true;
    sim_event_at(sim, &out->writable,
                 sim->now_us + sim_latency_us(out->node, out->conn->to));
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

static int wire_send(struct mu__wire *wire, uint32_t number, struct mu__buf *frame)
{
    struct sim_node *node = sim_node_of_wire(wire);
    struct sim_out *out = *sim_out_find(node, number);
    bool first;

    if (out == NULL || (out->conn == NULL && out->lost_reason == NULL))
        return -MU_EUNAVAILABLE;
    if (out->conn != NULL && refuses(out, frame->size))
        return -MU_EAGAIN;
    if (dies_midway(node) || out->conn == NULL) {
        node->sim->counters.frames_lost++;
        mu__buf_unref(frame);
        return 0;
    }
    first = out->conn->first == NULL;
    put_frame(out->conn, frame);
    if (first && !out->conn->held)
        sim_conn_arm(out->conn);
    return 0;
}

static void wire_drop(struct mu__wire *wire, uint32_t in)
{
    struct sim_node *node = sim_node_of_wire(wire);

    for (struct sim_conn *conn = node->sim->conns; conn != NULL; conn = conn->next)
        if (conn->to == node && conn->in == in && conn->open) {
            conn_shut(conn);
            if (conn->out != NULL)
                sim_out_lose(conn->out, node, "connection reset by the peer");
            return;
        }
}

static void wire_avoid(struct mu__wire *wire, uint32_t number,
                       const struct mu__dial_tried *tried)
{
    struct sim_out *out = *sim_out_find(sim_node_of_wire(wire), number);

    if (out != NULL)
        out->tried = tried;
}

static uint32_t wire_place(struct mu__wire *wire, uint32_t number, unsigned *ret_count)
{
    const struct sim_out *out = *sim_out_find(sim_node_of_wire(wire), number);
    const struct sim_name *name;

    if (out == NULL || out->conn == NULL)
        return 0;
    name = find_name(out->node->sim, out->url);
    *ret_count = name == NULL ? 1 : name->count;
    return place_of(out->conn->to);
}

/* Here nothing else ever fails for a reason. */
static const char *wire_last_error(struct mu__wire *wire, uint32_t number)
{
    const struct sim_out *out = *sim_out_find(sim_node_of_wire(wire), number);

    return out == NULL || out->conn != NULL ? NULL : out->refused;
}

const struct mu__wire_ops sim_wire_ops = {
    .last_error = wire_last_error,
    .avoid = wire_avoid,
    .address_number = wire_place,
    .buffer = wire_buffer,
    .dial = wire_dial,
    .hangup = wire_hangup,
    .send = wire_send,
    .drop = wire_drop,
    .proof = sim_wire_proof,
    .show = sim_wire_show,
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

    while (node->outs != NULL) {
        struct sim_out *out = node->outs;

        node->outs = out->next;
        out_free(out);
    }
    for (struct sim_conn *conn = sim->conns; conn != NULL; conn = conn->next) {
        if (conn->to != node || !conn->open)
            continue;
        conn_shut(conn);
        if (conn->out != NULL)
            sim_out_lose(conn->out, node, "connection reset by the peer");
    }
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
