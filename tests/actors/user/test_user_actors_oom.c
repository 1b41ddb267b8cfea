/* Memory that is missing anywhere in the office of a node's actors: each call of an actor
 * ends once, what another node asks is answered once at most, nothing is left, and once
 * there is memory again all of it works. The office on a kernel of its own; another node
 * is played here. */
#include "actors/messages.h"
#include "actors/packing.h"
#include "tests/support/bare_world.h"
#include "tests/support/users/office_oom.h"

enum { CALLS = 64 };

static struct world {
    struct bare_world bare; /* first */
    struct mu__kernel *kernel;
    uint64_t call; /* that the peer was asked, not answered yet; 0: none */
    uint64_t monitor;
    unsigned asked; /* by the peer */
    unsigned answered;
    unsigned made; /* calls of actors here: their tokens are 0, 1, ... */
    unsigned ended[CALLS];
    unsigned fine; /* of these, without an error */
    unsigned downs;
    unsigned timers;
    unsigned stopped;
} w;

static int world_transmit(struct mu__world *world, struct mu__msg *msg)
{
    (void)world;
    w.answered += msg->kind == MU__ACTOR_ANSWER;
    if (msg->kind == MU__ACTOR_MESSAGE)
        w.call = ((const struct mu__actor_message *)mu__body(msg))->call;
    if (msg->kind == MU__ACTOR_WATCH)
        w.monitor = ((const struct mu__actor_watch *)mu__body(msg))->monitor;
    mu__pool_put(mu__kernel_pool(w.kernel), msg);
    return 0;
}

static const struct mu__world_ops world_ops = BARE_WORLD_OPS(world_transmit);

static void pass(uint64_t ms)
{
    w.bare.now_ms += ms;
    for (int i = 0; i < 8; i++)
        mu__kernel_turn(w.kernel);
}

/* A message that there is no memory for is lost with its link: not said. */
static void say(uint16_t kind, const void *body)
{
    struct mu__msg *msg = mu__msg_heap(kind, mu__messages.rows[kind].body_size);

    if (msg == NULL)
        return;
    memcpy(msg->body, body, mu__messages.rows[kind].body_size);
    msg->from = (mu__pid){PEER, MU__ACTORS};
    msg->to.actor = MU__ACTORS;
    w.asked += kind == MU__ACTOR_MESSAGE || kind == MU__ACTOR_START;
    (void)mu__kernel_deliver(w.kernel, msg);
    pass(1);
}

/* ---- Actors ---- */

struct one {
    mu_reply *held;
    mu_address friend_here;
};

static int call_one(mu_actor *self, const mu_address *to, const char *method)
{
    int rv = mu_actor_call(self, to, method, NULL, TIMEOUT_MS, w.made);

    w.made += rv == 0;
    assert_true(w.made < CALLS);
    return rv;
}

/* All that a turn may ask for. */
static int do_much(mu_actor *self, void *state, const mu_value *args)
{
    const mu_address there = {
        .type = "worker", .index = 1, .number = 9, .incarnation = PEER_INCARNATION};
    struct one *one = state;
    const unsigned before = w.made;
    int rv = mu_actor_spawn(self, "one", args, NULL, &one->friend_here);

    if (rv == 0)
        rv = call_one(self, &one->friend_here, "echo");
    if (rv == 0)
        rv = call_one(self, &there, "echo");
    if (rv == 0)
        rv = mu_actor_monitor(self, &there, 0);
    if (rv == 0)
        rv = mu_actor_monitor(self, &one->friend_here, 0);
    if (rv == 0)
        rv = mu_actor_timer(self, 20, 0);
    if (rv == 0)
        rv = mu_actor_send(self, &one->friend_here, "hold", args);
    if (rv == 0)
        rv = mu_actor_stop(self, &one->friend_here, MU_STOP_AFTER_QUEUE);
    if (rv != 0)
        w.made = before; /* what a failed turn asked for is not */
    mu_actor_reply(self, mu_value_int(1));
    return rv;
}

static int echo(mu_actor *self, void *state, const mu_value *args)
{
    (void)state;
    mu_actor_reply(self, mu_value_ref(args));
    return 0;
}

static int hold(mu_actor *self, void *state, const mu_value *args)
{
    struct one *one = state;

    (void)args;
    if (one->held != NULL)
        (void)mu_reply_give(one->held, mu_value_int(2), NULL);
    one->held = mu_actor_reply_later(self);
    return one->held == NULL ? -MU_ENOMEM : 0;
}

static int give(mu_actor *self, void *state, const mu_value *args)
{
    struct one *one = state;
    mu_reply *held = one->held;

    (void)self;
    (void)args;
    one->held = NULL;
    return held == NULL ? 0 : mu_reply_give(held, mu_value_int(3), NULL);
}

static void hear(mu_actor *self, void *state, const mu_notice *notice)
{
    (void)self;
    (void)state;
    if (notice->kind == MU_NOTICE_ANSWER) {
        assert_true(notice->token < w.made);
        w.ended[notice->token]++;
        w.fine += notice->error == NULL;
    }
    w.downs += notice->kind == MU_NOTICE_DOWN;
    w.timers += notice->kind == MU_NOTICE_TIMER;
}

static void stop(mu_actor *self, void *state, const mu_error *why)
{
    (void)self;
    (void)state;
    (void)why;
    w.stopped++;
}

static const mu_actor_method methods[] = {
    {"much", do_much}, {"echo", echo}, {"hold", hold}, {"give", give}, {NULL, NULL}};
static const mu_actor_type type = {.name = "one",
                                   .state_size = sizeof(struct one),
                                   .methods = methods,
                                   .notice = hear,
                                   .stop = stop};

/* ---- The course of it ---- */

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

static void use(uint32_t actor)
{
    const struct mu__actor_start start = {.call = 50, .type = mu__view_str("one")};
    const struct mu__actor_watch watch = {actor, 60};
    const struct mu__actor_unwatch unwatch = {actor, 60};

    ask(actor, "much", 1);
    say(MU__ACTOR_ANSWER, &(struct mu__actor_answer){.call = w.call});
    say(MU__ACTOR_DOWN, &(struct mu__actor_down){.monitor = w.monitor});
    ask(actor, "hold", 2);
    ask(actor, "hold", 3);
    ask(actor, "give", 4);
    ask(actor, "none", 5);
    ask(actor + 1000, "echo", 6);
    say(MU__ACTOR_START, &start);
    say(MU__ACTOR_WATCH, &watch);
    say(MU__ACTOR_UNWATCH, &unwatch);
    say(MU__ACTOR_WATCH, &watch);
    pass(30);
}

/* An answer to another node may be lost: there the call ends by its timeout. */
static void expect_once(void)
{
    for (unsigned i = 0; i < w.made; i++)
        assert_int_equal(w.ended[i], 1);
    assert_true(w.answered <= w.asked && w.answered + 1 >= w.asked);
}

/* With memory again: the same once more, on the same office. */
static void expect_well(uint32_t actor)
{
    const unsigned made = w.made;
    const unsigned asked = w.asked;
    const unsigned answered = w.answered;
    const unsigned fine = w.fine;
    const unsigned timers = w.timers;
    const unsigned downs = w.downs;
    const unsigned stopped = w.stopped;

    use(actor);
    pass(2 * TIMEOUT_MS);
    assert_int_equal(w.made, made + 2);
    assert_true(w.fine >= fine + 2);
    assert_true(w.answered - answered >= w.asked - asked);
    assert_true(w.timers > timers);
    assert_true(w.downs >= downs + 2);
    assert_true(w.stopped > stopped);
}

static const struct office_story story = {
    .type = &type,
    .clear = clear,
    .kernel = &w.kernel,
    .pass = pass,
    .use = use,
    .expect_once = expect_once,
    .expect_well = expect_well,
    .allocations_min = 50,
};

TEST(test_every_allocation_can_fail)
{
    office_story_run(&story);
    assert_false(fault_disarm());
}

TEST_PROGRAM()
