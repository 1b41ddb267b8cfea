/* Memory that is missing anywhere for a stream: each call that asks for one ends once,
 * what begins at the other node ends there, nothing is left, and once there is memory
 * again all of it works. The office on a kernel of its own; another node is played
 * here. */
#include "actors/messages.h"
#include "tests/support/bare_world.h"
#include "tests/support/users/office_oom.h"

enum { CALLS = 64, AHEAD = 2 };

static struct world {
    struct bare_world bare; /* first */
    struct mu__kernel *kernel;
    uint64_t call;   /* that the peer was asked */
    uint64_t stream; /* that the peer reads */
    unsigned begun;  /* streams that it reads, */
    unsigned over;   /* and their ends */
    unsigned answered;
    unsigned made; /* calls of actors here: their tokens are 0, 1, ... */
    unsigned ended[CALLS];
    unsigned fine; /* of these, without an error */
    unsigned items;
} w;

static int world_transmit(struct mu__world *world, struct mu__msg *msg)
{
    (void)world;
    w.answered += msg->kind == MU__ACTOR_ANSWER;
    w.begun += msg->kind == MU__STREAM_BEGIN;
    w.over += msg->kind == MU__STREAM_END;
    if (msg->kind == MU__ACTOR_MESSAGE)
        w.call = ((const struct mu__actor_message *)mu__body(msg))->call;
    if (msg->kind == MU__STREAM_BEGIN)
        w.stream = ((const struct mu__stream_begin *)mu__body(msg))->stream;
    mu__pool_put(mu__kernel_pool(w.kernel), msg);
    return 0;
}

static const struct mu__world_ops world_ops = BARE_WORLD_OPS(world_transmit);

static void pass(uint64_t ms)
{
    w.bare.now_ms += ms;
    for (int i = 0; i < 16; i++)
        mu__kernel_turn(w.kernel);
}

static struct office *office(void)
{
    return mu__actor_state(w.kernel, (mu__pid){MU__NODE_SELF, MU__ACTORS});
}

/* Mail is allocated each time. */
static void drop_spares(void)
{
    while (office()->spare != NULL) {
        struct mail *spare = office()->spare;

        office()->spare = (struct mail *)(void *)spare->node.next;
        free(spare);
    }
}

/* The memory of the message is no part of this: what is lost is lost with its link. */
static void say(uint16_t kind, const void *body)
{
    struct mu__msg *msg = mu__msg_heap(kind, mu__messages.rows[kind].body_size);

    if (msg == NULL)
        msg = mu__msg_heap(kind, mu__messages.rows[kind].body_size);
    memcpy(msg->body, body, mu__messages.rows[kind].body_size);
    msg->from = (mu__pid){PEER, MU__ACTORS};
    msg->to.actor = MU__ACTORS;
    drop_spares();
    (void)mu__kernel_deliver(w.kernel, msg);
    pass(1);
}

/* ---- actors ---- */

struct one {
    mu_stream *stream;
};

static int give_most(struct one *one)
{
    int rv = 0;

    for (int i = 0; i < AHEAD && rv == 0; i++)
        rv = mu_stream_give(one->stream, NULL);
    return rv;
}

/* As much as may be under way; one more, and the end, when there is room. */
static int flow(mu_actor *self, void *state, const mu_value *args)
{
    struct one *one = state;
    int rv;

    (void)args;
    one->stream = mu_actor_stream(self, AHEAD, 0);
    rv = one->stream == NULL ? -MU_ENOMEM : give_most(one);
    if (rv == 0)
        rv = mu_stream_give(one->stream, NULL) == -MU_EAGAIN ? 0 : -MU_EINTERNAL;
    return rv;
}

static int call_one(mu_actor *self, const mu_address *to)
{
    int rv = mu_actor_call(self, to, "flow", NULL, TIMEOUT_MS, w.made);

    w.made += rv == 0;
    assert_true(w.made < CALLS);
    return rv;
}

/* A stream of an actor here, and one of the peer. */
static int read_two(mu_actor *self, void *state, const mu_value *args)
{
    const mu_address there = {
        .type = "worker", .index = 1, .number = 9, .incarnation = PEER_INCARNATION};
    const unsigned before = w.made;
    mu_address here;
    int rv = mu_actor_spawn(self, "one", args, NULL, &here);

    (void)state;
    w.call = 0;
    if (rv == 0)
        rv = call_one(self, &here);
    if (rv == 0)
        rv = call_one(self, &there);
    if (rv == 0)
        rv = mu_actor_read_stream(self, w.made - 1, MU_READ_GO_ON);
    if (rv != 0)
        w.made = before; /* what a failed turn asked for is not */
    return rv;
}

static int nothing(mu_actor *self, void *state, const mu_value *args)
{
    (void)self;
    (void)state;
    (void)args;
    return 0;
}

static void hear(mu_actor *self, void *state, const mu_notice *notice)
{
    struct one *one = state;

    (void)self;
    w.items += notice->kind == MU_NOTICE_ITEM;
    if (notice->kind == MU_NOTICE_STREAM_ROOM)
        (void)mu_stream_give(one->stream, NULL);
    if (notice->kind == MU_NOTICE_STREAM_ROOM || notice->kind == MU_NOTICE_STREAM_CLOSED)
        if (mu_stream_end(one->stream, NULL) != 0)
            (void)mu_stream_end(one->stream, NULL);
    if (notice->kind == MU_NOTICE_ANSWER) {
        assert_true(notice->token < w.made);
        w.ended[notice->token]++;
        w.fine += notice->error == NULL;
    }
}

static const mu_actor_method methods[] = {
    {"flow", flow}, {"read", read_two}, {"nothing", nothing}, {NULL, NULL}};
static const mu_actor_type type = {
    .name = "one", .state_size = sizeof(struct one), .methods = methods, .notice = hear};

/* ---- the course of it ---- */

static struct mu__world *clear(void)
{
    w = (struct world){.bare = {{&world_ops}, 1}};
    return &w.bare.world;
}

static void ask(uint32_t actor, const char *method, uint64_t call)
{
    const struct mu__actor_message message = {
        .actor = actor, .method = mu__view_str(method), .call = call};

    say(MU__ACTOR_MESSAGE, &message);
}

/* The peer reads one, and gives one. */
static void use(uint32_t actor)
{
    ask(actor, "flow", 1);
    if (w.begun > w.over) {
        say(MU__STREAM_TAKEN, &(struct mu__stream_taken){w.stream, AHEAD, 0});
        ask(actor, "nothing", 0); /* a poke for which there was no memory */
    }
    ask(actor, "read", 2);
    ask(actor, "nothing", 0);
    if (w.call != 0) {
        say(MU__STREAM_BEGIN, &(struct mu__stream_begin){w.call, 70, AHEAD});
        for (uint64_t i = 1; i <= AHEAD; i++)
            say(MU__STREAM_ITEM, &(struct mu__stream_item){.call = w.call, .number = i});
        say(MU__STREAM_END, &(struct mu__stream_end){.call = w.call, .items = AHEAD});
    }
    ask(actor, "nothing", 0);
}

static void expect_once(void)
{
    for (unsigned i = 0; i < w.made; i++)
        assert_int_equal(w.ended[i], 1);
    assert_int_equal(w.over, w.begun);
}

/* With memory again: the same once more, on the same office. */
static void expect_well(uint32_t actor)
{
    const struct world before = w;

    use(actor);
    pass(2 * TIMEOUT_MS);
    assert_int_equal(w.begun, before.begun + 1);
    assert_int_equal(w.made, before.made + 2);
    assert_int_equal(w.fine, before.fine + 2);
    assert_int_equal(w.items, before.items + AHEAD + 1 + AHEAD);
}

static const struct office_story story = {
    .type = &type,
    .clear = clear,
    .kernel = &w.kernel,
    .pass = pass,
    .use = use,
    .expect_once = expect_once,
    .expect_well = expect_well,
    .allocations_min = 30,
};

TEST(test_every_allocation_can_fail)
{
    office_story_run(&story);
    assert_false(fault_disarm());
}

TEST_PROGRAM()
