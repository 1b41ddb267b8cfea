/* Any frames at the links of a node, from connections that come and go, of peers that
 * have proven something: greetings that fit and greetings that do not, answers to
 * nothing, pieces, goodbyes, garbage.
 *
 * Whatever comes, nobody is a task, or another one, without the proof of it; no message
 * is delivered without the right to it, or of a node that is not up; nothing stays.
 *
 * The first byte says what peers have proven. Each operation is four bytes: what, and
 * three that say how; bytes of a frame follow where it has some. */
#include "actors/messages.h"
#include "runtime/message/codec.h"
#include "tests/fuzz/must.h"
#include "tests/support/bare_world.h"
#include "transport/link/frames.h"
#include "transport/link/links.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum {
    OUTS_MAX = 64,
    INS_MAX = 64,
    DIALLED = 4,
    NODES_MAX = 256,
    OPERATION_BYTES = 4,
    OPERATIONS_MAX = 200,
    FRAME_BYTES = 4096,
    US = 10,
    PEERS = 4 /* incarnations, from 20 on */
};

struct net {
    struct mu__world world; /* first */
    struct mu__wire wire;
    struct mu__links *links;
    struct mu__pool pool;
    struct mu__proof proof;
    uint64_t now_ms;
    uint32_t outs[OUTS_MAX]; /* that are dialled; 0: free */
    bool is_up[OUTS_MAX];
    bool ins[INS_MAX];     /* that are there, by number */
    bool nodes[NODES_MAX]; /* that are up, by number */
    uint32_t ups;
    struct mu__buf *heard; /* the last frame that went out */
};

/* ---- the wire ---- */

static struct net *net_of(struct mu__wire *wire)
{
    return (struct net *)(void *)((char *)wire - offsetof(struct net, wire));
}

static struct mu__buf *wire_buffer(struct mu__wire *wire, size_t capacity)
{
    (void)wire;
    return mu__buf_new(capacity);
}

static int wire_dial(struct mu__wire *wire, uint32_t out, const char *url)
{
    struct net *net = net_of(wire);

    if (strstr(url, "://") == NULL)
        return -MU_EINVALID;
    for (unsigned i = 0; i < OUTS_MAX; i++) {
        must(net->outs[i] != out, "each dialled once");
        if (net->outs[i] != 0)
            continue;
        net->outs[i] = out;
        net->is_up[i] = false;
        return 0;
    }
    return -MU_ENOMEM;
}

/* Where a connection that was dialled stands; OUTS_MAX: it is not there. */
static unsigned place_of(const struct net *net, uint32_t connection)
{
    unsigned at = 0;

    while (at < OUTS_MAX && (net->outs[at] != connection || connection == 0))
        at++;
    return at;
}

static bool is_there(const struct net *net, uint32_t connection)
{
    unsigned at = place_of(net, connection);

    return mu__wire_is_accepted(connection) ? net->ins[connection & ~MU__WIRE_ACCEPTED]
                                            : at < OUTS_MAX && net->is_up[at];
}

static void wire_hangup(struct mu__wire *wire, uint32_t connection)
{
    struct net *net = net_of(wire);
    unsigned at = place_of(net, connection);

    if (mu__wire_is_accepted(connection))
        net->ins[connection & ~MU__WIRE_ACCEPTED] = false;
    else if (at < OUTS_MAX)
        net->outs[at] = 0;
}

static int wire_send(struct mu__wire *wire, uint32_t connection, struct mu__buf *frame)
{
    struct net *net = net_of(wire);
    struct mu__frame_header header;

    if (!is_there(net, connection))
        return -MU_EUNAVAILABLE;
    must(mu__frame_read(frame, &header) == 0, "what goes out is a frame");
    mu__buf_unref(net->heard);
    net->heard = frame;
    return 0;
}

static void wire_proof(struct mu__wire *wire, uint32_t connection,
                       struct mu__proof *ret_proof)
{
    must(is_there(net_of(wire), connection), "of a connection that is there");
    *ret_proof = net_of(wire)->proof;
}

static const char *wire_last_error(struct mu__wire *wire, uint32_t out)
{
    (void)wire;
    (void)out;
    return NULL;
}

static const struct mu__wire_ops wire_ops = {
    .buffer = wire_buffer,
    .dial = wire_dial,
    .hangup = wire_hangup,
    .send = wire_send,
    .proof = wire_proof,
    .last_error = wire_last_error,
};

/* ---- above ---- */

static void note_up(void *owner, uint32_t node, const char *type, uint32_t index,
                    uint64_t incarnation, const char *address)
{
    struct net *net = owner;
    bool is_client = strcmp(type, "client") == 0;

    must(incarnation != 0 && address != NULL, "a process somewhere");
    must(is_client || net->proof.right >= MU__RIGHT_TASK, "a task has proven it");
    must(is_client || !net->proof.names_task ||
             (strcmp(type, net->proof.task_type) == 0 && index == net->proof.task_index),
         "and is the one of its certificate");
    must(node < NODES_MAX && !net->nodes[node], "a new number");
    net->nodes[node] = true;
    net->ups++;
}

static void note_down(void *owner, uint32_t node, const char *reason, bool left)
{
    struct net *net = owner;

    must(node < NODES_MAX && net->nodes[node], "it was up");
    must(reason[0] != '\0', "for a reason");
    must(left == (strncmp(reason, "it left: ", 9) == 0), "left by its own goodbye alone");
    net->nodes[node] = false;
    net->ups--;
}

static void note_trouble(void *owner, const char *type, uint32_t index,
                         const char *reason)
{
    (void)owner;
    (void)type;
    (void)index;
    (void)reason;
}

static void note_message(void *owner, struct mu__msg *msg)
{
    struct net *net = owner;

    must(msg->from.node < NODES_MAX && net->nodes[msg->from.node], "of one that is up");
    must(mu__messages.rows[msg->kind].right <= net->proof.right, "with the right to it");
    mu__pool_put(&net->pool, msg);
}

static uint64_t now_ms(struct mu__world *world)
{
    return ((struct net *)world)->now_ms;
}

static const struct mu__world_ops world_ops = {
    .now_ms = now_ms,
    .random = bare_random,
    .wake_at = bare_wake_at,
    .submit = bare_submit,
    .withdraw = bare_withdraw,
    .log = bare_log,
};

static void open_links(struct net *net)
{
    const struct mu__links_upcalls upcalls = {
        .owner = net,
        .up = note_up,
        .down = note_down,
        .trouble = note_trouble,
        .deliver = note_message,
    };
    const struct mu__links_config config = {
        .cluster_name = "test",
        .task_type = "worker",
        .address = "tcp://us:1",
        .incarnation = US,
        .heartbeat_ms = 100,
        .silence_ms = 500,
        .claim_ms = 3000,
        .schema = &mu__messages,
        .pool = &net->pool,
        .world = &net->world,
    };

    must(mu__links_new(&config, &upcalls, &net->wire, &net->links) == 0, "links");
    must(mu__links_dial(net->links, "chief", 0, "tcp://chief:1") == 0, "dialled");
    must(mu__links_dial_any(net->links, "tcp://any:1") == 0, "dialled");
}

/* ---- frames ---- */

/* Borrowed by whom it is given to. Low numbers are those of connections that were
 * dialled. */
static void give(struct net *net, uint32_t in, struct mu__buf *frame)
{
    uint32_t connection = MU__WIRE_ACCEPTED | in;

    if (in < DIALLED)
        connection = net->outs[in];
    if (connection != 0 && is_there(net, connection))
        mu__links_frame(net->links, connection, frame);
    mu__buf_unref(frame);
}

static struct mu__buf *frame_of(const struct mu__frame_header *header,
                                const struct mu__schema *schema, uint16_t kind,
                                const void *body, size_t size)
{
    struct mu__buf *frame = mu__buf_new(FRAME_BYTES);
    struct mu__msg *msg = mu__msg_heap(kind, size);

    must(frame != NULL && msg != NULL, "memory");
    mu__frame_write(frame, header);
    frame->size = MU__FRAME_HEADER_BYTES;
    memcpy(msg->body, body, size);
    must(mu__encode(schema, msg, frame) == 0, "it fits");
    free(msg);
    return frame;
}

/* Bits of `how`: what is as it should be, and what is not. */
static struct mu__frame_header header_of(uint8_t type, const uint8_t how[3])
{
    return (struct mu__frame_header){
        .version = (how[0] & 0xe0) == 0xe0 ? 2 : MU__FRAME_VERSION,
        .type = type,
        .from = 20U + how[1] % PEERS,
        .to = (how[0] & 1) != 0 ? US : 0,
        .count = 1,
    };
}

static void say_hello(struct net *net, uint32_t in, const uint8_t how[3])
{
    static const char *const types[] = {"client", "chief",     "worker", "ps",
                                        "server", "evaluator", "client", "worker"};
    static const char *const urls[] = {"tcp://chief:1", "tcp://any:1", "tcp://a:1",
                                       "tcp://us:1"};
    const struct mu__frame_header header = header_of(MU__FRAME_HELLO, how);
    const char *expected = (how[2] & 0x20) != 0 ? types[how[2] >> 6] : "";
    const struct mu__hello hello = {
        .cluster = mu__view_str((how[0] & 0x18) == 0x18 ? "other" : "test"),
        .type = mu__view_str(types[how[2] & 7]),
        .index = how[2] >> 3 & 3,
        .address = mu__view_str(urls[how[1] >> 2 & 3]),
        .expected_type = mu__view_str(expected),
    };

    give(net, in,
         frame_of(&header, &mu__frame_messages, MU__FRAME_HELLO, &hello, sizeof hello));
}

static void say_other(struct net *net, uint32_t in, const uint8_t how[3])
{
    const struct mu__refuse refuse = {mu__view_str("chief"), how[2] & 1,
                                      mu__view_str("no"), (how[2] & 2) != 0};
    const struct mu__bye bye = {mu__view_str("bye")};
    const struct mu__piece piece = {how[2] & 3, how[2] >> 2, {how, 1 + (how[2] & 1)}};
    bool is_piece = (how[2] & 0x40) != 0;
    bool is_bye = (how[2] & 0x80) != 0;
    uint8_t type = is_bye ? MU__FRAME_BYE : is_piece ? MU__FRAME_PIECE : MU__FRAME_REFUSE;
    const struct mu__frame_header header = header_of(type, how);

    if (is_bye)
        give(net, in, frame_of(&header, &mu__frame_messages, type, &bye, sizeof bye));
    else if (is_piece)
        give(net, in, frame_of(&header, &mu__frame_messages, type, &piece, sizeof piece));
    else
        give(net, in,
             frame_of(&header, &mu__frame_messages, type, &refuse, sizeof refuse));
}

static void say_data(struct net *net, uint32_t in, const uint8_t how[3])
{
    const struct mu__frame_header header = header_of(MU__FRAME_DATA, how);
    const struct mu__cancel cancel = {how[2], 1};

    give(net, in, frame_of(&header, &mu__messages, MU__CANCEL, &cancel, sizeof cancel));
}

/* A header that fits, or none, and any bytes. */
static void say_bytes(struct net *net, uint32_t in, const uint8_t how[3],
                      const uint8_t *bytes, size_t size)
{
    struct mu__buf *frame = mu__buf_new(MU__FRAME_HEADER_BYTES + size);
    struct mu__frame_header header = header_of(how[2] & 7, how);

    must(frame != NULL, "memory");
    if ((how[2] & 0x80) == 0) {
        header.count = how[2] >> 3 & 3;
        mu__frame_write(frame, &header);
        frame->size = MU__FRAME_HEADER_BYTES;
    }
    if (size > 0)
        memcpy(frame->data + frame->size, bytes, size);
    frame->size += (uint32_t)size;
    give(net, in, frame);
}

/* ---- operations ---- */

static void come_or_go(struct net *net, uint32_t in)
{
    if (net->ins[in])
        mu__links_disconnected(net->links, MU__WIRE_ACCEPTED | in, "gone");
    net->ins[in] = !net->ins[in];
}

static void reach_or_lose(struct net *net, unsigned at)
{
    uint32_t out = net->outs[at];

    if (out == 0)
        return;
    net->is_up[at] = !net->is_up[at];
    if (net->is_up[at]) {
        mu__links_connected(net->links, out);
    } else {
        net->outs[at] = 0;
        mu__links_disconnected(net->links, out, "lost");
    }
}

static void reach_all(struct net *net)
{
    for (unsigned i = 0; i < OUTS_MAX; i++)
        if (!net->is_up[i])
            reach_or_lose(net, i);
}

/* What this node has said comes back to it. */
static void mirror(struct net *net, uint32_t in)
{
    struct mu__buf *heard = net->heard;
    struct mu__buf *copy;

    if (heard == NULL)
        return;
    copy = mu__buf_new(heard->size);
    must(copy != NULL, "memory");
    memcpy(copy->data, heard->data, heard->size);
    copy->size = heard->size;
    give(net, in, copy);
}

/* How many bytes of `rest` it has used. */
static size_t operate(struct net *net, const uint8_t *o, const uint8_t *rest, size_t left)
{
    uint32_t in = o[0] >> 3;
    size_t size = o[3] < left ? o[3] : left;

    switch (o[0] & 7) {
    case 0:
        come_or_go(net, in);
        return 0;
    case 1:
        if (o[1] < OUTS_MAX)
            reach_or_lose(net, o[1]);
        else
            reach_all(net);
        return 0;
    case 2:
        say_hello(net, in, o + 1);
        return 0;
    case 3:
        say_data(net, in, o + 1);
        return 0;
    case 4:
        say_other(net, in, o + 1);
        return 0;
    case 5:
        net->now_ms += o[1];
        (void)mu__links_tick(net->links, net->now_ms);
        return 0;
    case 6:
        mirror(net, in);
        return 0;
    default:
        say_bytes(net, in, o + 1, rest, size);
        return size;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct net net = {.world.ops = &world_ops, .wire.ops = &wire_ops, .now_ms = 1};
    struct mu__links_counters counters;
    size_t at = 1;

    if (size == 0)
        return 0;
    net.proof.right = (enum mu__right)(data[0] % (MU__RIGHT_ALL + 1));
    net.proof.names_task = (data[0] & 0x80) != 0;
    (void)snprintf(net.proof.task_type, sizeof net.proof.task_type, "ps");
    mu__pool_init(&net.pool);
    open_links(&net);
    for (int i = 0; i < OPERATIONS_MAX && at + OPERATION_BYTES <= size; i++) {
        const uint8_t *operation = data + at;

        at += OPERATION_BYTES;
        at += operate(&net, operation, data + at, size - at);
        mu__links_flush(net.links);
        must(mu__links_count_up(net.links) == net.ups, "as many as were told");
    }
    mu__links_counters(net.links, &counters);
    must(counters.links_up == net.ups, "counted");
    mu__links_free(net.links);
    mu__buf_unref(net.heard);
    must(net.pool.live == 0, "no message is lost");
    mu__pool_done(&net.pool);
    return 0;
}
