/* Writes of runs whose servers are lost, refuse, or answer anything. */
#include "tests/support/effects_net.h"
#include "tests/support/test.h"

/* ---- Servers that are lost ---- */

TEST_ON(test_lost_answer, struct fixture *f, set_up, tear_down)
{
    struct writes *writes;
    struct writes *plain;
    struct var_request v;

    open_variable(f->workers[0], &v, 4, 1);
    fence(f, 7);
    writes = post_add(f->workers[0], &v, 7, 1);
    plain = post_add(f->workers[0], &v, 7, 0);
    net_run_to_frame(&f->net, MU__EFFECT_WRITTEN);
    net_run_to_frame(&f->net, MU__EFFECT_WRITTEN);
    net_link_down(f->workers[0], f->servers[0]);
    net_run_for(&f->net, 100);
    assert_false(plain->sent);
    assert_false(writes->sent);
    net_link_up(f->workers[0], f->servers[0]);
    net_settle(&f->net);
    assert_fine(writes);
    assert_fine(plain);
    assert_int_equal(f->net.counts[MU__EFFECT_WRITE], 4);
    assert_all(f->workers[0], &v, 2);
}

/* Cut before the last piece: nothing was applied, so plain writes are sent again too. */
TEST_WITH(test_cut_midway, set_up, tear_down)
{
    for (uint64_t effect = 0; effect < 2; effect++) {
        struct fixture *f = *state;
        struct writes *writes;
        struct var_request v;

        open_variable(f->workers[0], &v, 4 << 20, 2);
        fence(f, 7);
        writes = post_add(f->workers[0], &v, 7, effect);
        net_run_to_frame(&f->net, MU__EFFECT_WRITTEN);
        net_link_down(f->workers[0], f->servers[0]);
        net_link_down(f->workers[0], f->servers[1]);
        assert_all(f->workers[1], &v, (int64_t)effect);
        assert_false(writes->sent);
        net_link_up(f->workers[0], f->servers[0]);
        net_link_up(f->workers[0], f->servers[1]);
        net_settle(&f->net);
        assert_fine(writes);
        assert_all(f->workers[0], &v, (int64_t)effect + 1);
    }
}

/* False when the run has ended before server 0 is lost, whose partitions have a
 * backup. */
static bool check_batches_move(int events, uint64_t effect)
{
    struct writes *writes;
    struct var_request v;
    struct fixture *f;
    void *state = NULL;
    bool in_time;

    assert_int_equal(set_up_with(&state, true), 0);
    f = state;
    open_variable(f->workers[0], &v, 1 << 20, 2);
    fence(f, 7);
    net_settle(&f->net);
    writes = post_add(f->workers[0], &v, 7, effect);
    for (int i = 0; i < events && !writes->sent; i++)
        (void)net_step(&f->net);
    in_time = !writes->sent;
    net_crash(f->servers[0]);
    net_run_for(&f->net, 500);
    assert_fine(writes);
    assert_all(f->workers[0], &v, 1);
    assert_int_equal(effects_of(f->servers[1]).staged_batches, 0);
    assert_int_equal(tear_down(&state), 0);
    return in_time;
}

TEST(test_batches_move)
{
    for (uint64_t effect = 0; effect < 2; effect++) {
        int events = 0;

        while (check_batches_move(events, effect))
            events++;
        assert_true(events > 10);
    }
}

/* A server that comes back without the variable. */
TEST_ON(test_restart, struct fixture *f, set_up, tear_down)
{
    struct writes *writes;
    struct var_request v;

    open_variable(f->workers[0], &v, 2 << 20, 2);
    fence(f, 7);
    writes = post_add(f->workers[0], &v, 7, 1);
    net_run_to_frame(&f->net, MU__EFFECT_WRITTEN);
    net_crash(f->servers[1]);
    net_run_for(&f->net, 100);
    assert_false(writes->sent);
    net_start(f->servers[1]);
    net_run_for(&f->net, 100);
    assert_false(writes->sent);
    fence(f, 7);
    net_run_for(&f->net, 50);
    assert_ended(writes, -MU_ENOTFOUND, "/job:ps/task:1",
                 "what the run wrote: /job:ps/task:1 (tcp://ps1:1) refused it: the "
                 "server was restarted, or the variable created anew: it does not have "
                 "it");
}

/* The server may have applied the batch before it was lost, and what was restored since
 * may have it. */
TEST_ON(test_restart_in_doubt, struct fixture *f, set_up, tear_down)
{
    struct writes *writes;
    struct var_request v;

    open_variable(f->workers[0], &v, 4, 1);
    writes = post_add(f->workers[0], &v, 0, 0);
    net_run_to_frame(&f->net, MU__EFFECT_WRITTEN);
    net_crash(f->servers[0]);
    net_run_for(&f->net, 100);
    net_start(f->servers[0]);
    net_run_for(&f->net, 100);
    assert_ended(writes, -MU_EUNAVAILABLE, "/job:ps/task:0",
                 "what the run wrote: /job:ps/task:0 (tcp://ps0:1) was lost before it "
                 "answered: the outcome is unknown");
}

TEST_ON(test_missing, struct fixture *f, set_up, tear_down)
{
    struct writes *writes = run_of(7, 1);
    struct var_request v;

    open_variable(f->workers[0], &v, 4, 2);
    fence(f, 7);
    net_crash(f->servers[1]);
    net_run_for(&f->net, 500);
    write_all(writes, &v, MU__WRITE_ADD, 1);
    post(f->workers[0], writes);
    net_run_for(&f->net, TIMEOUT_MS - 1);
    assert_false(writes->sent);
    net_run_for(&f->net, 1);
    assert_ended(writes, -MU_EUNAVAILABLE, "/job:ps/task:1",
                 "what the run wrote: /job:ps/task:1 (tcp://ps1:1) not reached for 2.5 s "
                 "(connection lost)");
    net_restart(f->workers[0]);
    writes = post_add(f->workers[0], &v, 7, 2);
    net_run_for(&f->net, TIMEOUT_MS);
    assert_ended(writes, -MU_EUNAVAILABLE, "/job:ps/task:1",
                 "what the run wrote: /job:ps/task:1 not reached for 2.0 s");
}

/* One server refuses what it gets while the other has a part of what it is to get. */
TEST_ON(test_abandoned, struct fixture *f, set_up, tear_down)
{
    struct writes *writes = run_of(7, 1);
    struct writes *next;
    struct var_request v;

    open_variable(f->workers[0], &v, 1 << 20, 1);
    fence(f, 7);
    write_all(writes, &v, MU__WRITE_ADD, 1);
    assert_int_equal(mu__effects_add(&writes->run.effects,
                                     &(struct mu__effect){.partition = 1, .size = 1},
                                     "x"),
                     0);
    post(f->workers[0], writes);
    next = post_add(f->workers[0], &v, 7, 2);
    net_settle(&f->net);
    assert_int_equal(writes->run.code, -MU_ENOTFOUND);
    run_free(writes);
    assert_fine(next);
    assert_all(f->workers[0], &v, 1);
    assert_int_equal(effects_of(f->servers[0]).staged_batches, 0);
    assert_int_equal(effects_of(f->servers[0]).staged_bytes, 0);
}

/* A run that failed leaves nothing behind on the servers that had not all of it, and
 * holds up nobody. */
TEST_ON(test_orphans, struct fixture *f, set_up, tear_down)
{
    struct writes *writes = run_of(7, 1);
    struct writes *next;
    struct var_request v;

    open_variable(f->workers[0], &v, 4 << 20, 2);
    fence(f, 7);
    write_all(writes, &v, MU__WRITE_ADD, 1);
    writes->run.effects.last->variable++;
    post(f->workers[0], writes);
    next = post_add(f->workers[0], &v, 7, 2);
    net_settle(&f->net);
    assert_ended(writes, -MU_ENOTFOUND, "/job:ps/task:1",
                 "what the run wrote: /job:ps/task:1 (tcp://ps1:1) refused it: the "
                 "server was restarted, or the variable created anew: it does not have "
                 "it");
    assert_fine(next);
    assert_int_equal(effects_of(f->servers[0]).staged_batches, 0);
    assert_int_equal(effects_of(f->servers[1]).staged_batches, 0);
    writes = run_of(7, 3);
    write_all(writes, &v, MU__WRITE_ADD, 1);
    post(f->workers[0], writes);
    net_run_to_frame(&f->net, MU__EFFECT_WRITTEN);
    net_crash(f->servers[1]);
    net_run_for(&f->net, TIMEOUT_MS);
    assert_int_equal(writes->run.code, -MU_EUNAVAILABLE);
    run_free(writes);
}

/* ---- Refusals ---- */

/* Of a batch with one bad write nothing is applied, and its number is free. */
static const struct bad {
    uint32_t operation;
    uint64_t size;
    uint64_t variable; /* added to the id */
    int code;
} bads[] = {
    {0, 8, 0, -MU_EINVALID},
    {MU__WRITE_ZERO, 8, 0, -MU_EINVALID},
    {MU__WRITE_COMMIT, 8, 0, -MU_EINVALID},
    {99, 8, 0, -MU_EINVALID},
    {MU__WRITE_ADD, 7, 0, -MU_EINVALID},
    {MU__WRITE_ADD, 40, 0, -MU_ERANGE},
    {MU__WRITE_GRADIENT, 8, 0, -MU_EINVALID},
    {5, 8, 0, -MU_EINVALID},
    {MU__WRITE_ADD, 8, 1, -MU_ENOTFOUND},
};

TEST_ON(test_bad_writes, struct fixture *f, set_up, tear_down)
{
    const int64_t data[5] = {1, 1, 1, 1, 1};
    struct writes *writes;
    struct var_request v;

    open_variable(f->workers[0], &v, 4, 1);
    fence(f, 7);
    for (size_t i = 0; i < sizeof bads / sizeof bads[0]; i++) {
        const struct mu__effect bad = {.partition = partition_of(0),
                                       .operation = bads[i].operation,
                                       .variable = v.ids[0] + bads[i].variable,
                                       .size = bads[i].size};

        writes = run_of(7, 1);
        write_all(writes, &v, MU__WRITE_ADD, 1);
        assert_int_equal(mu__effects_add(&writes->run.effects, &bad, data), 0);
        write_all(writes, &v, MU__WRITE_ADD, 1);
        post(f->workers[0], writes);
        net_settle(&f->net);
        if (writes->run.code != bads[i].code)
            fail_msg("row %zu: %d", i, writes->run.code);
        run_free(writes);
        assert_all(f->workers[0], &v, 0);
    }
    writes = post_add(f->workers[0], &v, 7, 1);
    net_settle(&f->net);
    assert_fine(writes);
    assert_all(f->workers[0], &v, 1);
}

/* What was refused takes no room of what follows. */
TEST_ON(test_refused_leave_room, struct fixture *f, set_up, tear_down)
{
    struct writes *writes[12];
    struct var_request v;

    open_variable(f->workers[0], &v, MU__PIECE_BYTES_MAX / 8, 1);
    v.ids[0]++;
    for (size_t i = 0; i < 12; i++)
        writes[i] = post_add(f->workers[0], &v, 0, 0);
    net_settle(&f->net);
    for (size_t i = 0; i < 12; i++) {
        assert_int_equal(writes[i]->run.code, -MU_ENOTFOUND);
        run_free(writes[i]);
    }
}

/* Far ahead of what is finished with. */
TEST_ON(test_too_far, struct fixture *f, set_up, tear_down)
{
    struct writes *writes;
    struct var_request v;

    open_variable(f->workers[0], &v, 4, 1);
    fence(f, 7);
    writes = post_add(f->workers[0], &v, 7, UINT64_C(1) << 40);
    net_run_for(&f->net, TIMEOUT_MS);
    assert_ended(writes, -MU_EEXHAUSTED, "/job:ps/task:0",
                 "what the run wrote: /job:ps/task:0 (tcp://ps0:1) has no room and has "
                 "refused it for 2.0 s");
    assert_all(f->workers[0], &v, 0);
}

/* To the partition of the shard of "w" that is on this server. */
static void deliver_write(struct net_process *from, struct net_process *server,
                          const struct mu__effect_write *write)
{
    struct mu__msg *msg = mu__msg_heap(MU__EFFECT_WRITE, sizeof *write);
    struct mu__effect_write *body;

    assert_non_null(msg);
    body = mu__body(msg);
    *body = *write;
    body->partition = partition_of(server->index);
    body->generation = mu__generation_of(1);
    msg->from = (mu__pid){server->numbers[from - from->net->processes], MU__VARIABLES};
    msg->to.actor = MU__PS;
    net_deliver(server, msg);
}

/* Beginnings of two batches: one of supervisor 7, and one with a number of its node. */
static void stage_some(struct fixture *f, const struct var_request *v)
{
    static const uint8_t data[8];
    struct mu__effect_write write = {.token = 1,
                                     .variable = v->ids[0],
                                     .batch = 5,
                                     .operation = MU__WRITE_ADD,
                                     .own = true,
                                     .origin = 1,
                                     .effect = 1,
                                     .data = {data, 8}};

    deliver_write(f->workers[1], f->servers[1], &write);
    write.batch = 6;
    write.own = false;
    write.effect = 1000;
    write.origin = 7;
    deliver_write(f->workers[1], f->servers[1], &write);
    assert_int_equal(effects_of(f->servers[1]).staged_batches, 2);
}

/* Whatever a peer says: the server lives, answers, and lets nobody else's batch go. */
TEST_ON(test_any_fields, struct fixture *f, set_up, tear_down)
{
    static const uint8_t data[64];
    struct sim_random random = sim_stream(5, 5);
    struct writes *writes;
    struct var_request v;

    open_variable(f->workers[0], &v, 4, 1);
    fence(f, 7);
    for (int i = 0; i < 50000; i++) {
        const struct mu__effect_write write = {
            .token = sim_draw(&random),
            .batch = sim_between(&random, 0, 3),
            .variable = sim_chance(&random, 80) ? v.ids[0] : sim_draw(&random),
            .operation = (uint32_t)sim_between(&random, 0, 9),
            .offset =
                sim_chance(&random, 90) ? sim_between(&random, 0, 40) : sim_draw(&random),
            .data = {data, (uint32_t)sim_between(&random, 0, 48)},
            .last = sim_chance(&random, 30),
            .own = sim_chance(&random, 50),
            .origin = sim_between(&random, 6, 7),
            .effect =
                sim_chance(&random, 90) ? sim_between(&random, 0, 5) : sim_draw(&random),
            .effects_done = sim_chance(&random, 90) ? 0 : sim_draw(&random),
            .before = (uint32_t)sim_between(&random, 0, 4),
        };

        deliver_write(f->workers[1], f->servers[0], &write);
    }
    net_settle(&f->net);
    assert_all(f->workers[0], &v, 0);
    stage_some(f, &v);
    fence(f, 8);
    assert_int_equal(effects_of(f->servers[1]).staged_batches, 1);
    net_link_down(f->workers[1], f->servers[0]);
    net_link_down(f->workers[1], f->servers[1]);
    net_settle(&f->net);
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(effects_of(f->servers[i]).staged_batches, 0);
        assert_int_equal(effects_of(f->servers[i]).staged_bytes, 0);
    }
    writes = post_add(f->workers[0], &v, 8, 1);
    net_settle(&f->net);
    assert_fine(writes);
    assert_all(f->workers[0], &v, 1);
}

/* One node cannot fill a server with pieces. */
TEST_ON(test_staged_bound, struct fixture *f, set_up, tear_down)
{
    uint8_t *data = calloc(1, MU__PIECE_BYTES_MAX);
    struct mu__effect_write write = {
        .token = 1,
        .operation = MU__WRITE_ADD,
        .own = true,
        .effect = 1,
        .data = {data, MU__PIECE_BYTES_MAX},
    };
    struct writes *writes;
    struct var_request v;

    assert_non_null(data);
    open_variable(f->workers[0], &v, 1 << 19, 1);
    write.variable = v.ids[0];
    for (write.batch = 1; write.batch <= 4; write.batch++)
        for (write.before = 0; write.before < 65; write.before++)
            deliver_write(f->workers[1], f->servers[0], &write);
    net_drop_all(&f->net);
    writes = post_add(f->workers[0], &v, 0, 0);
    net_settle(&f->net);
    assert_fine(writes);
    assert_all(f->workers[0], &v, 1);
    free(data);
}

/* ---- Answers that nobody asked for ---- */

static void deliver_answer(struct net_process *server, struct net_process *worker,
                           const struct mu__effect_written *answer)
{
    struct mu__msg *msg = mu__msg_heap(MU__EFFECT_WRITTEN, sizeof *answer);

    assert_non_null(msg);
    *(struct mu__effect_written *)mu__body(msg) = *answer;
    msg->from = (mu__pid){worker->numbers[server - server->net->processes], MU__PS};
    msg->to.actor = MU__VARIABLES;
    net_deliver(worker, msg);
}

TEST_ON(test_any_answers, struct fixture *f, set_up, tear_down)
{
    const uint64_t token = 3; /* of the batch: an open and its ZERO came before */
    struct sim_random random = sim_stream(6, 6);
    struct writes *writes;
    struct var_request v;

    open_variable(f->workers[0], &v, 1 << 20, 1);
    fence(f, 7);
    writes = post_add(f->workers[0], &v, 7, 1);
    for (uint64_t i = 0; i < 20000; i++) {
        const struct mu__effect_written answer = {
            .token = i < 100 ? i : sim_draw(&random) >> sim_between(&random, 0, 63),
            .code = (uint32_t)sim_between(&random, 0, 3),
            .again = sim_chance(&random, 50),
            .staged = sim_chance(&random, 50) ? sim_draw(&random) : 0,
        };

        if (answer.token != token)
            deliver_answer(f->servers[0], f->workers[0], &answer);
        deliver_answer(f->servers[1], f->workers[0], &answer);
    }
    assert_false(writes->sent);
    deliver_answer(f->servers[0], f->workers[0],
                   &(struct mu__effect_written){.token = token, .staged = UINT64_MAX});
    net_settle(&f->net);
    assert_fine(writes);
    assert_all(f->workers[0], &v, 1);
}

/* ---- Chaos: cuts at any time, each effect by two workers ---- */

enum { EFFECTS = 60 };

static void disturb(struct fixture *f)
{
    struct net_process *worker = f->workers[sim_between(&f->net.random, 0, 1)];
    struct net_process *server = f->servers[sim_between(&f->net.random, 0, 1)];

    net_link_down(worker, server);
    if (sim_chance(&f->net.random, 50))
        net_run_for(&f->net, sim_between(&f->net.random, 0, 3));
    net_link_up(worker, server);
}

static void check_chaos(struct fixture *f, uint64_t count)
{
    struct writes *writes[2 * EFFECTS];
    struct var_request v;

    open_variable(f->workers[0], &v, count, 4);
    fence(f, 7);
    for (uint64_t i = 0; i < 2 * EFFECTS; i++) {
        writes[i] = post_add(f->workers[i % 2], &v, 7, i / 2 + 1);
        for (uint64_t n = sim_between(&f->net.random, 0, 8); n > 0; n--)
            (void)net_step(&f->net);
        if (sim_chance(&f->net.random, 60))
            disturb(f);
    }
    net_settle(&f->net);
    for (size_t i = 0; i < 2 * EFFECTS; i++)
        assert_fine(writes[i]);
    assert_all(f->workers[0], &v, EFFECTS);
}

TEST(test_chaos)
{
    for (uint64_t seed = 1; seed <= 20; seed++) {
        void *f = NULL;

        assert_int_equal(set_up(&f), 0);
        ((struct fixture *)f)->net.random = sim_stream(seed, 2);
        check_chaos(f, seed % 4 == 0 ? 1 << 18 : 7);
        assert_int_equal(tear_down(&f), 0);
    }
}

TEST_PROGRAM()
