/* Clocks of a partition at its servers, message by message: members that are lost, and
 * copies. */
#include "actors/ps/clocks.h"
#include "tests/support/replicas.h"

#include "muster/error.h"

enum { PASSES_MAX = 32 };

static struct {
    struct mu__clock_passed all[PASSES_MAX];
    size_t count;
} passes;

static void on_clock_passed(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    (void)ctx;
    (void)state;
    assert_true(passes.count < PASSES_MAX);
    passes.all[passes.count++] = *(const struct mu__clock_passed *)mu__body(msg);
}

static const struct mu__handler member_handlers[] = {
    {MU__CLOCK_PASSED, on_clock_passed},
    {MU__SERVES, on_serves},
};

static const struct mu__behavior member_behavior = {
    .name = "member",
    .handlers = member_handlers,
    .handlers_count = sizeof member_handlers / sizeof member_handlers[0],
};

static int spawn_member(struct net_process *p)
{
    return mu__spawn(p->kernel, &member_behavior, MU__VARIABLES, NULL, NULL);
}

/* Two members, "worker:0" and "worker:1", beside the fixture's client. */
static struct net_process *members[2];

static int clocks_set_up(void **state)
{
    struct fixture *f;

    if (set_up(state) != 0)
        return -1;
    f = *state;
    passes.count = 0;
    f->client->spawn = spawn_member;
    f->client->incarnation = 100; /* of all processes, each has another one */
    net_restart(f->client);
    members[0] = f->client;
    members[1] = net_add(&f->net, "worker", 1, spawn_member);
    members[1]->incarnation = 200;
    net_start(members[1]);
    net_settle(&f->net);
    return 0;
}

static const struct mu__clock_passed *pass_of(uint64_t token)
{
    for (size_t i = 0; i < passes.count; i++)
        if (passes.all[i].token == token)
            return &passes.all[i];
    return NULL;
}

/* Returns the token. */
static uint64_t say_step(struct fixture *f, struct net_process *server, uint32_t member,
                         uint64_t step)
{
    char task[32];
    const struct mu__clock_set body = {
        .token = ++f->token,
        .member = 100 + member,
        .name = mu__view_str("train"),
        .task = {task, (uint32_t)snprintf(task, sizeof task, "/job:worker/task:%u",
                                          (unsigned)member)},
        .incarnation = members[member]->incarnation,
        .step = step,
        .partition = PARTITION,
        .generation = f->generation,
    };

    say(members[member], MU__VARIABLES, server, MU__CLOCK_SET, &body);
    net_settle(&f->net);
    return body.token;
}

/* Both have joined a synchronous clock, on server 0. */
static void begin_clock(struct fixture *f)
{
    for (uint32_t member = 0; member < 2; member++)
        assert_non_null(pass_of(say_step(f, f->servers[0], member, 0)));
}

/* ---- Members that are lost ---- */

TEST_ON(test_a_step_waits_for_the_slowest, struct fixture *f, clocks_set_up, tear_down)
{
    uint64_t step;

    change_view(f, f->servers[0], NULL, NULL);
    begin_clock(f);
    step = say_step(f, f->servers[0], 0, 1);
    assert_null(pass_of(step));
    assert_non_null(pass_of(say_step(f, f->servers[0], 1, 1)));
    assert_int_equal(pass_of(step)->step, 1);
    assert_int_equal(pass_of(step)->minimum, 1);
}

TEST_ON(test_a_lost_member_leaves_after_a_while, struct fixture *f, clocks_set_up,
        tear_down)
{
    uint64_t step;

    change_view(f, f->servers[0], NULL, NULL);
    begin_clock(f);
    step = say_step(f, f->servers[0], 0, 1);
    net_crash(members[1]);
    net_run_for(&f->net, 900);
    assert_null(pass_of(step));
    net_run_for(&f->net, 1000);
    assert_non_null(pass_of(step));
}

TEST_ON(test_a_link_that_is_back_soon_ends_no_membership, struct fixture *f,
        clocks_set_up, tear_down)
{
    uint64_t step;

    change_view(f, f->servers[0], NULL, NULL);
    begin_clock(f);
    step = say_step(f, f->servers[0], 0, 1);
    net_link_down(members[1], f->servers[0]);
    net_run_for(&f->net, 500);
    net_link_up(members[1], f->servers[0]);
    net_run_for(&f->net, 5000);
    assert_null(pass_of(step));
    assert_non_null(pass_of(say_step(f, f->servers[0], 1, 1)));
    assert_non_null(pass_of(step));
}

/* The next process of the same task is another member, and the former one is dead. */
TEST_ON(test_a_restarted_task_leaves_at_once, struct fixture *f, clocks_set_up, tear_down)
{
    uint64_t step;

    change_view(f, f->servers[0], NULL, NULL);
    begin_clock(f);
    step = say_step(f, f->servers[0], 0, 1);
    members[1]->incarnation += 50;
    net_restart(members[1]);
    net_settle(&f->net);
    assert_non_null(pass_of(step));
}

/* With their last members clocks end, while the server goes through them. */
TEST_ON(test_a_node_that_leaves_ends_its_clocks, struct fixture *f, clocks_set_up,
        tear_down)
{
    static const char *const names[] = {"a", "b", "c"};
    struct mu__node_down *down;
    struct mu__msg *msg;
    struct mu__clock_set body = {.task = mu__view_str("/job:worker/task:0"),
                                 .incarnation = members[0]->incarnation,
                                 .partition = PARTITION};

    change_view(f, f->servers[0], NULL, NULL);
    body.generation = f->generation;
    for (uint32_t i = 0; i < 3; i++) {
        body.token = ++f->token;
        body.member = 100 + i;
        body.name = mu__view_str(names[i]);
        say(members[0], MU__VARIABLES, f->servers[0], MU__CLOCK_SET, &body);
        net_settle(&f->net);
        assert_non_null(pass_of(body.token));
    }
    msg = mu__msg_heap(MU__NODE_DOWN, sizeof *down); /* of this process: in no table */
    assert_non_null(msg);
    down = (struct mu__node_down *)msg->body;
    down->node = f->servers[0]->numbers[members[0] - f->net.processes];
    down->left = true;
    msg->to.actor = MU__PS;
    net_deliver(f->servers[0], msg);
    net_settle(&f->net);

    body.staleness = 7; /* of none of them that is there still */
    for (uint32_t i = 0; i < 3; i++) {
        body.token = ++f->token;
        body.member = 200 + i;
        body.name = mu__view_str(names[i]);
        say(members[0], MU__VARIABLES, f->servers[0], MU__CLOCK_SET, &body);
        net_settle(&f->net);
        assert_int_equal(pass_of(body.token)->code, 0);
    }
}

/* ---- Copies ---- */

TEST_ON(test_a_clock_survives_its_primary, struct fixture *f, clocks_set_up, tear_down)
{
    uint64_t step;

    change_view(f, f->servers[0], f->servers[1], NULL);
    begin_clock(f);
    assert_null(pass_of(say_step(f, f->servers[0], 0, 1)));
    net_crash(f->servers[0]);
    change_view(f, f->servers[1], NULL, NULL);
    step = say_step(f, f->servers[1], 0, 1);
    assert_null(pass_of(step));
    assert_non_null(pass_of(say_step(f, f->servers[1], 1, 1)));
    assert_int_equal(pass_of(step)->step, 1);
}

/* The backup has let both through, and nobody has heard so. */
TEST_ON(test_a_step_that_is_said_again_counts_once, struct fixture *f, clocks_set_up,
        tear_down)
{
    const struct mu__clock_passed *pass;

    change_view(f, f->servers[0], f->servers[1], NULL);
    begin_clock(f);
    members[1]->deaf = true;
    (void)say_step(f, f->servers[0], 0, 1);
    (void)say_step(f, f->servers[0], 1, 1);
    members[1]->deaf = false;
    net_crash(f->servers[0]);
    change_view(f, f->servers[1], NULL, NULL);
    pass = pass_of(say_step(f, f->servers[1], 1, 1));
    assert_non_null(pass);
    assert_int_equal(pass->step, 1);
    assert_int_equal(pass->minimum, 1);
}

/* The primary answers when the backup has it, too. */
TEST_ON(test_a_step_is_let_through_when_the_backup_has_it, struct fixture *f,
        clocks_set_up, tear_down)
{
    uint64_t step;

    change_view(f, f->servers[0], f->servers[1], NULL);
    begin_clock(f);
    (void)say_step(f, f->servers[0], 0, 1);
    f->servers[1]->deaf = true;
    step = say_step(f, f->servers[0], 1, 1);
    assert_null(pass_of(step));
    change_view(f, f->servers[0], NULL, NULL);
    assert_non_null(pass_of(step));
}

TEST_ON(test_a_learner_is_filled_with_clocks, struct fixture *f, clocks_set_up, tear_down)
{
    uint64_t step;

    change_view(f, f->servers[0], NULL, NULL);
    begin_clock(f);
    (void)say_step(f, f->servers[0], 0, 1);
    change_view(f, f->servers[0], NULL, f->servers[1]);
    assert_int_equal(f->news, MU__REPLICA_LEVEL);
    change_view(f, f->servers[0], f->servers[1], NULL);
    assert_null(pass_of(say_step(f, f->servers[0], 0, 1)));
    net_crash(f->servers[0]);
    change_view(f, f->servers[1], NULL, NULL);
    step = say_step(f, f->servers[1], 0, 1);
    assert_null(pass_of(step));
    assert_non_null(pass_of(say_step(f, f->servers[1], 1, 1)));
    assert_non_null(pass_of(step));
}

/* It dies together with the primary, so that nobody but the next one can notice. */
TEST_ON(test_a_member_that_is_lost_with_the_primary_leaves, struct fixture *f,
        clocks_set_up, tear_down)
{
    uint64_t step;

    change_view(f, f->servers[0], f->servers[1], NULL);
    begin_clock(f);
    net_crash(members[1]);
    net_crash(f->servers[0]);
    change_view(f, f->servers[1], NULL, NULL);
    step = say_step(f, f->servers[1], 0, 1);
    assert_null(pass_of(step));
    net_run_for(&f->net, 2000);
    assert_non_null(pass_of(step));
}

TEST_PROGRAM()
