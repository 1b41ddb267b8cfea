/* Any bytes as what two other nodes say to the office of a node's actors: numbers that
 * there are not, answers that nobody waits for, more messages and items of streams than
 * there is credit for, names and their owners, calls that are to be relayed. What is
 * asked is answered once at most, a call of an actor here ends once, nothing of its
 * stream comes behind, and when all is quiet every call has ended, and every stream when
 * its node is lost.
 *
 * An operation is six bytes: what, which node, which actor, a number, more, and how many
 * bytes of a value follow. */
#include "actors/messages.h"
#include "actors/user/actions.h"
#include "actors/user/streams/producers.h"
#include "tests/fuzz/must.h"
#include "tests/support/bare_world.h"

#include <string.h>

enum {
    PEERS = 2,
    ACTORS = 3,
    NUMBERS = 16, /* of calls and monitors: small ones, which are hit */
    OPERATION_BYTES = 6,
    OPERATIONS_MAX = 300,
    CALLS_MAX = 1024,
    TIMEOUT_MS = 500,
    QUIET_MS = 5000
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* ---- The world ---- */

static struct world {
    struct bare_world bare; /* first */
    struct mu__kernel *kernel;
    mu__pid pid;
    uint32_t actors[ACTORS];
    uint32_t nodes[PEERS]; /* their numbers now */
    uint32_t lives;        /* of nodes, so far */
    uint64_t asked;
    uint64_t answered;
    uint64_t begun;   /* streams of the actors here, */
    uint64_t over;    /* and their ends */
    uint64_t watched; /* by the actors here */
    uint64_t downs;
    size_t calls; /* of the actors here: their tokens */
    bool ended[CALLS_MAX];
    uint64_t incarnations[PEERS];
} w;

static int world_transmit(struct mu__world *world, struct mu__msg *msg)
{
    (void)world;
    w.answered += msg->kind == MU__ACTOR_ANSWER || msg->kind == MU__STREAM_BEGIN;
    w.begun += msg->kind == MU__STREAM_BEGIN;
    w.over += msg->kind == MU__STREAM_END;
    mu__pool_put(mu__kernel_pool(w.kernel), msg);
    return 0;
}

static const struct mu__world_ops ops = BARE_WORLD_OPS(world_transmit);

static void take_turns(void)
{
    for (int i = 0; i < 4; i++)
        mu__kernel_turn(w.kernel);
}

static void say_from(mu__pid from, uint16_t kind, const void *body)
{
    struct mu__msg *msg = mu__msg_heap(kind, mu__messages.rows[kind].body_size);

    must(msg != NULL, "memory");
    memcpy(msg->body, body, mu__messages.rows[kind].body_size);
    msg->from = from;
    msg->to = w.pid;
    must(mu__kernel_deliver(w.kernel, msg) == 0, "delivered");
    take_turns();
}

static void say(uint32_t peer, uint16_t kind, const void *body)
{
    say_from((mu__pid){w.nodes[peer], MU__ACTORS}, kind, body);
}

/* ---- Actors ---- */

static int echo(mu_actor *self, void *state, const mu_value *args)
{
    (void)state;
    mu_actor_reply(self, mu_value_ref(args));
    return 0;
}

static int keep(mu_actor *self, void *state, const mu_value *args)
{
    (void)state;
    (void)args;
    return mu_actor_reply_later(self) == NULL ? -MU_ENOMEM : 0;
}

static int fail(mu_actor *self, void *state, const mu_value *args)
{
    (void)state;
    (void)args;
    return mu_actor_fail(self, -MU_EINVALID, "it fails");
}

static void give_items(mu_stream *stream)
{
    int rv = 0;

    for (int i = 0; i < 20 && rv == 0; i++)
        rv = mu_stream_give(stream, NULL);
}

/* The last one of each actor. */
static int flow(mu_actor *self, void *state, const mu_value *args)
{
    mu_stream **last = state;
    int64_t ahead = 0;

    (void)mu_value_get_int(args, &ahead);
    if (*last != NULL)
        (void)mu_stream_end(*last, NULL);
    *last = mu_actor_stream(self, (unsigned)ahead % 8, 0);
    if (*last == NULL)
        return -MU_EEXHAUSTED;
    give_items(*last);
    return 0;
}

/* Calls an actor of a peer, and watches it. */
static int reach(mu_actor *self, void *state, const mu_value *args)
{
    mu_address to = {.type = "worker", .index = 1};
    int64_t number = 0;

    (void)state;
    (void)mu_value_get_int(args, &number);
    to.index = 1 + (uint32_t)number % PEERS;
    to.number = (uint32_t)number % NUMBERS;
    to.incarnation = w.incarnations[to.index - 1];
    if (w.calls < CALLS_MAX &&
        mu_actor_call(self, &to, "echo", args, TIMEOUT_MS, w.calls) == 0)
        w.calls++;
    if (mu_actor_monitor(self, &to, 0) == 0)
        w.watched++;
    return 0;
}

static void hear(mu_actor *self, void *state, const mu_notice *notice)
{
    mu_stream **last = state;

    (void)self;
    if (notice->kind == MU_NOTICE_STREAM_ROOM) {
        must(*last != NULL, "room of a stream that there is");
        give_items(*last);
    } else if (notice->kind == MU_NOTICE_STREAM_CLOSED) {
        must(*last != NULL && mu_stream_give(*last, NULL) == -MU_ECANCELLED,
             "a stream that there is, is closed");
        (void)mu_stream_end(*last, NULL);
        *last = NULL;
    } else if (notice->kind == MU_NOTICE_ITEM) {
        must(!w.ended[notice->token], "an item comes before the end");
    } else if (notice->kind == MU_NOTICE_ANSWER) {
        must(notice->token < w.calls && !w.ended[notice->token], "a call ends once");
        w.ended[notice->token] = true;
    }
    w.downs += notice->kind == MU_NOTICE_DOWN;
    must(w.downs <= w.watched, "one DOWN of each monitor");
}

static const mu_actor_method methods[] = {{"echo", echo},   {"keep", keep},
                                          {"fail", fail},   {"flow", flow},
                                          {"reach", reach}, {NULL, NULL}};
static const mu_actor_type type = {
    .name = "one", .state_size = sizeof(mu_stream *), .methods = methods, .notice = hear};

static struct office *office(void)
{
    return mu__actor_state(w.kernel, w.pid);
}

static void make_actors(void)
{
    mu_actor_options options;

    must(mu__types_add(office(), &type, NULL) == 0 &&
             mu__actors_read_options(NULL, NULL, &options) == 0,
         "a type");
    options.mailbox_max = 8;
    for (int i = 0; i < ACTORS; i++) {
        struct mail *start;

        must(mu__spawn_user(office(), mu__view_str("one"), NULL, NULL, &options, NULL,
                            &start) == 0,
             "an actor");
        w.actors[i] = start->actor;
        mu__turn_do(office(), start);
    }
    take_turns();
}

/* ---- Nodes ---- */

static void bring_up(uint32_t peer)
{
    w.nodes[peer] = ++w.lives;
    w.incarnations[peer] = 100 + w.lives;
    mu__kernel_node_up(w.kernel, w.nodes[peer], "worker", 1 + peer, w.incarnations[peer],
                       "tcp://w:1");
    take_turns();
}

static void begin(void)
{
    static const struct mu__actors_config config = {
        .task = "/job:worker/task:0", .type = "worker", .incarnation = 1};

    w = (struct world){.bare = {{&ops}, 1}};
    must(mu__kernel_new(&w.bare.world, &mu__messages, &w.kernel) == 0, "kernel");
    must(mu__spawn(w.kernel, &mu__actors, MU__ACTORS, &config, &w.pid) == 0, "office");
    make_actors();
    for (uint32_t i = 0; i < PEERS; i++)
        bring_up(i);
}

/* ---- Operations ---- */

struct operation {
    unsigned what;
    uint32_t peer;
    uint32_t actor;
    uint64_t number;
    uint32_t more;
    struct mu__packed value;
};

/* False: too few bytes are left. */
static bool take(const uint8_t **at, size_t *left, struct operation *ret)
{
    const uint8_t *head = *at;
    size_t size;

    if (*left < OPERATION_BYTES || *left < OPERATION_BYTES + (size_t)(head[5] & 31))
        return false;
    size = OPERATION_BYTES + (head[5] & 31);
    *ret = (struct operation){
        .what = head[0] % 23,
        .peer = head[1] % PEERS,
        .actor = head[2] < 200 ? w.actors[head[2] % ACTORS] : head[2] - 200U,
        .number = head[3] % NUMBERS,
        .more = head[4],
        .value = {.head = head + OPERATION_BYTES, .head_size = head[5] & 31},
    };
    *at += size;
    *left -= size;
    return true;
}

static void say_message(const struct operation *o)
{
    static const char *const names[] = {"echo", "keep", "fail", "reach", "none", "flow"};
    const struct mu__actor_message message = {
        .actor = o->actor,
        .method = mu__view_str(names[o->more % 6]),
        .args = o->value,
        .call = o->more < 128 ? o->number : 0,
        .timeout_ms = (o->more & 8) != 0 ? o->more : 0,
        .chain = {o->value.head, (o->more & 16) != 0 ? o->value.head_size : 0},
    };

    w.asked += message.call != 0;
    say(o->peer, MU__ACTOR_MESSAGE, &message);
}

static void say_start(const struct operation *o)
{
    const struct mu__actor_start start = {
        .call = o->number,
        .type = mu__view_str((o->more & 1) != 0 ? "one" : "none"),
        .args = o->value,
        .timeout_ms = o->more,
        .flags = o->more >> 4,
        .mailbox_max = o->more & 7,
    };

    w.asked++;
    say(o->peer, MU__ACTOR_START, &start);
}

static void say_end(const struct operation *o)
{
    const struct mu__view words = {o->value.head, o->value.head_size};
    const struct mu__actor_answer answer = {.call = o->number,
                                            .result = o->value,
                                            .code = o->more & 31,
                                            .ran = o->more & 3,
                                            .message = words};
    const struct mu__actor_down down = {
        .monitor = o->number, .code = o->more & 31, .message = words};

    if (o->what == 2)
        say(o->peer, MU__ACTOR_ANSWER, &answer);
    else
        say(o->peer, MU__ACTOR_DOWN, &down);
}

static void say_number(const struct operation *o)
{
    const struct mu__actor_cancel cancel = {o->actor, o->number};
    const struct mu__actor_room room = {o->actor, (uint32_t)o->number, o->more,
                                        (o->more & 1) != 0};
    const struct mu__actor_stop stop = {o->actor, o->more & 1};
    const struct mu__actor_watch watch = {o->actor, o->number};
    const struct mu__actor_unwatch unwatch = {o->actor, o->number};

    if (o->what == 4)
        say(o->peer, MU__ACTOR_CANCEL, &cancel);
    else if (o->what == 5)
        say(o->peer, MU__ACTOR_ROOM, &room);
    else if (o->what == 6)
        say(o->peer, MU__ACTOR_STOP, &stop);
    else if (o->what == 7)
        say(o->peer, MU__ACTOR_WATCH, &watch);
    else
        say(o->peer, MU__ACTOR_UNWATCH, &unwatch);
}

static void say_of_stream(const struct operation *o)
{
    const struct mu__stream_begin begin = {o->number, o->number, o->more & 15};
    const struct mu__stream_item item = {o->number, o->more, o->value};
    const struct mu__stream_end end = {
        .call = o->number,
        .items = o->more & 7,
        .code = o->more >> 4,
        .ran = o->more & 3,
        .message = {o->value.head, o->value.head_size},
    };
    const struct mu__stream_taken taken = {o->number, o->more & 7, o->more};
    const struct mu__stream_close close = {o->number};

    if (o->what == 18)
        say(o->peer, MU__STREAM_BEGIN, &begin);
    else if (o->what == 19)
        say(o->peer, MU__STREAM_ITEM, &item);
    else if (o->what == 20)
        say(o->peer, MU__STREAM_END, &end);
    else if (o->what == 21)
        say(o->peer, MU__STREAM_TAKEN, &taken);
    else
        say(o->peer, MU__STREAM_CLOSE, &close);
}

/* ---- Names ---- */

static struct mu__view name_of(const struct operation *o)
{
    static const char *const names[] = {"a", "b", "c", "", "no/name", "no#name"};

    return (o->more & 64) != 0 ? (struct mu__view){o->value.head, o->value.head_size}
                               : mu__view_str(names[o->number % 6]);
}

/* The peer has the coordination service, from now on. */
static void begin_session(uint32_t peer)
{
    struct mu__msg *msg = mu__msg_new(&office()->ctx, MU__SERVICE_SESSION);

    must(msg != NULL, "a message");
    ((struct mu__service_session *)mu__body(msg))->node = w.nodes[peer];
    must(mu__send(&office()->ctx, w.pid, msg) == 0, "a session");
    take_turns();
}

static void say_from_service(uint32_t peer, uint16_t kind, const void *body)
{
    say_from((mu__pid){w.nodes[peer], MU__COORDINATION}, kind, body);
}

static void say_news(const struct operation *o)
{
    const struct mu__name_news news = {
        .name = name_of(o),
        .token = (o->more & 32) != 0 ? o->number : 0,
        .state = o->more % MU__NAME_STATES,
        .epoch = o->number,
        .task_type = mu__view_str((o->more & 4) != 0 ? "worker" : "client"),
        .index = 1 + o->peer,
        .incarnation = (o->more & 8) != 0 ? w.incarnations[o->peer] : o->number,
        .actor = o->actor,
        .code = o->more & 16,
        .message = {o->value.head, o->value.head_size},
    };

    say_from_service(o->peer, MU__NAME_NEWS, &news);
}

static void say_of_owner(const struct operation *o)
{
    const struct mu__name_start start = {
        .name = name_of(o),
        .epoch = o->number,
        .type = mu__view_str((o->more & 1) != 0 ? "one" : "none"),
        .args = o->value,
        .mailbox_max = o->more & 7,
    };
    const struct mu__name_stop stop = {
        .name = name_of(o), .token = 0, .epoch = o->number, .how = o->more & 1};
    const struct mu__name_hold hold = {.sent_ms = w.bare.now_ms - (o->more & 3),
                                       .lease_ms = o->more * 10U};

    if (o->what == 13)
        say_from_service(o->peer, MU__NAME_START, &start);
    else if (o->what == 14)
        say_from_service(o->peer, MU__NAME_STOP, &stop);
    else
        say_from_service(o->peer, MU__NAME_HOLD, &hold);
}

static void say_relay(const struct operation *o)
{
    const struct mu__actor_relay relay = {
        .name = name_of(o),
        .method = mu__view_str((o->more & 1) != 0 ? "echo" : "none"),
        .args = o->value,
        .call = o->more < 128 ? o->number : 0,
        .timeout_ms = o->more & 62,
    };

    w.asked += relay.call != 0;
    say(o->peer, MU__ACTOR_RELAY, &relay);
}

static void pass(uint64_t ms)
{
    for (; ms > 0; ms -= ms < 10 ? ms : 10) {
        w.bare.now_ms += ms < 10 ? ms : 10;
        take_turns();
    }
}

static void lose_node(uint32_t peer)
{
    mu__kernel_node_down(w.kernel, w.nodes[peer], "lost", false);
    take_turns();
    bring_up(peer);
}

static void do_one(const struct operation *o)
{
    if (o->what == 0)
        say_message(o);
    else if (o->what == 1)
        say_start(o);
    else if (o->what == 2 || o->what == 3)
        say_end(o);
    else if (o->what < 9)
        say_number(o);
    else if (o->what == 9)
        lose_node(o->peer);
    else if (o->what == 11)
        begin_session(o->peer);
    else if (o->what == 12)
        say_news(o);
    else if (o->what < 16 && o->what > 12)
        say_of_owner(o);
    else if (o->what == 16)
        say_relay(o);
    else if (o->what < 18)
        pass(o->more);
    else
        say_of_stream(o);
}

/* ---- What must be ---- */

static void look_at_streams(const mu_actor *actor)
{
    for (const mu_stream *stream =
             actor->streams == NULL
                 ? NULL
                 : MU__LIST_FIRST(&actor->streams->producers, mu_stream, node);
         stream != NULL; stream = MU__LIST_NEXT(stream, mu_stream, node))
        must(stream->under_way <= stream->ahead, "what is under way is bounded");
}

static void look(void)
{
    must(w.answered <= w.asked, "what is asked is answered once");
    must(w.over <= w.begun, "a stream ends once");
    for (const mu_actor *actor = MU__LIST_FIRST(&office()->actors, mu_actor, in_office);
         actor != NULL; actor = MU__LIST_NEXT(actor, mu_actor, in_office)) {
        must(actor->mail_count <= actor->mailbox_max + PEERS * MU__ACTOR_WINDOW,
             "mailboxes are bounded");
        look_at_streams(actor);
    }
}

static bool lives(void)
{
    bool all = true;

    for (int i = 0; i < ACTORS; i++)
        all = all && mu__actor_find(office(), w.actors[i]) != NULL;
    return all;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct operation o;

    begin();
    for (int i = 0; i < OPERATIONS_MAX && take(&data, &size, &o); i++) {
        do_one(&o);
        look();
    }
    for (uint32_t i = 0; i < PEERS && office()->streams.consumers.count > 0; i++)
        lose_node(i);
    pass(QUIET_MS);
    for (size_t i = 0; lives() && i < w.calls; i++)
        must(w.ended[i], "a call ends");
    mu__kernel_free(w.kernel);
    return 0;
}
