/* Barriers and preemption by agents, and a store that outlives its host. */
#include "tests/actors/agent/agent_story.h"

/* ---- Barriers ---- */

TEST(test_barrier)
{
    struct cluster *cluster = SERVICE(.workers = 1);
    struct cluster_call *calls[2];

    for (unsigned round = 0; round < 3; round++) {
        calls[0] = meet(cluster->workers[0], "b", NULL, 1, 1000);
        run_for(cluster, 100);
        assert_false(calls[0]->done);
        calls[1] = meet(cluster->chief, "b", NULL, 1, 1000);
        expect_done(calls[1], 0, 0);
        expect_done(calls[0], 0, 10);
    }
    end(cluster);
}

/* A worker that was restarted counts from 0 and joins the third generation; from then on
 * it counts as the others do. */
TEST(test_barrier_restarted)
{
    struct cluster *cluster = SERVICE(.workers = 1);
    struct cluster_call *chief;

    for (unsigned round = 0; round < 6; round++) {
        chief = meet(cluster->chief, "b", NULL, 1, -1);
        if (round == 2) {
            run_for(cluster, 100);
            sim_crash(cluster->workers[0]->node);
            run_for(cluster, 2000);
            cluster_start(cluster->workers[0]);
            run_for(cluster, 1000);
        }
        assert_false(chief->done);
        expect_done(meet(cluster->workers[0], "b", NULL, 1, 1000), 0, 20);
        assert_int_equal(cluster_wait(chief), 0);
    }
    end(cluster);
}

/* Who was reset does not go through a generation again that it went through before. */
TEST(test_barrier_after_reset)
{
    struct cluster *cluster = SERVICE(.workers = 1);
    struct cluster_task *worker = cluster->workers[0];
    struct cluster_call *chief = meet(cluster->chief, "b", NULL, 1, -1);
    struct cluster_call *again;

    expect_done(meet(worker, "b", NULL, 1, 1000), 0, 20);
    assert_int_equal(cluster_wait(chief), 0);
    expect_done(fail_with(worker, MU__AGENT_SET_ERROR, -MU_EDATALOSS, "bad"), 0, 0);
    expect_done(ask(worker, MU__AGENT_RESET, 1000), 0, 20);
    expect_done(ask(worker, MU__AGENT_REGISTER, 1000), 0, 20);
    again = meet(worker, "b", NULL, 1, -1);
    run_for(cluster, 1000);
    assert_false(again->done);
    expect_done(meet(cluster->chief, "b", NULL, 1, 1000), 0, 0);
    assert_int_equal(cluster_wait(again), 0);
    end(cluster);
}

TEST(test_barrier_of_threads)
{
    struct cluster *cluster = SERVICE(.workers = 1);
    struct cluster_task *worker = cluster->workers[0];
    struct cluster_call *other = meet(cluster->chief, "b", NULL, 1, -1);
    struct cluster_call *calls[3];

    calls[0] = meet(worker, "b", NULL, 3, -1);
    calls[1] = meet(worker, "b", NULL, 3, -1);
    run_for(cluster, 100);
    assert_false(other->done);
    expect_failed(meet(worker, "b", NULL, 2, -1), -MU_EINVALID,
                  "barrier \"b\": 3 threads of this task are to meet, and this one says "
                  "2");
    expect_failed(meet(worker, "b", "chief:0", 3, -1), -MU_EINVALID,
                  "barrier \"b\": the first thread said tasks \"\", and this one says "
                  "\"chief:0\"");
    calls[2] = meet(worker, "b", NULL, 3, -1);
    expect_failed(meet(worker, "b", NULL, 3, -1), -MU_EINVALID,
                  "barrier \"b\": all 3 threads of this task are here already");
    expect_done(calls[0], 0, 20);
    expect_done(calls[1], 0, 0);
    expect_done(calls[2], 0, 0);
    assert_true(other->done);
    end(cluster);
}

/* The service is not told: the chief's barrier goes on. */
TEST(test_too_few_threads)
{
    struct cluster *cluster = SERVICE(.workers = 1);
    struct cluster_call *other = meet(cluster->chief, "b", NULL, 1, -1);
    struct cluster_call *calls[2];

    calls[0] = meet(cluster->workers[0], "b", NULL, 3, 300);
    run_for(cluster, 100);
    calls[1] = meet(cluster->workers[0], "b", NULL, 3, 9000);
    expect_failed(calls[1], -MU_EDEADLINE,
                  "barrier \"b\": 2 of 3 threads of this task arrived, the others did "
                  "not come within 300 ms");
    assert_int_equal(calls[1]->done_ms, 500);
    assert_int_equal(calls[0]->done_ms, 500);
    assert_false(other->done);
    expect_done(meet(cluster->workers[0], "b", NULL, 1, -1), 0, 20);
    assert_true(other->done);
    end(cluster);
}

/* Of one task: the service is not asked, though it is away. */
TEST(test_barrier_alone)
{
    struct cluster *cluster = SERVICE(.workers = 1);
    struct cluster_call *calls[2];

    sim_crash(cluster->chief->node);
    run_for(cluster, 50);
    calls[0] = meet(cluster->workers[0], "b", "worker:0", 2, 100);
    calls[1] = meet(cluster->workers[0], "b", "worker:0", 2, 100);
    expect_done(calls[0], 0, 0);
    expect_done(calls[1], 0, 0);
    cluster_start(cluster->chief);
    end(cluster);
}

/* A program may have a new name for each of its steps: old ones are forgotten. */
TEST(test_many_barriers)
{
    struct cluster *cluster = SERVICE(.workers = 1);
    struct cluster_call *calls[2];
    char name[32];

    for (unsigned i = 0; i <= AGENT_BARRIERS_MAX; i++) {
        (void)snprintf(name, sizeof name, "step %u", i);
        assert_int_equal(cluster_wait(meet(cluster->chief, name, NULL, 2, 0)),
                         -MU_EDEADLINE);
    }
    for (unsigned round = 0; round < 3; round++) {
        calls[0] = meet(cluster->chief, "step 1", NULL, 1, 1000);
        calls[1] = meet(cluster->workers[0], "step 1", NULL, 1, 1000);
        assert_int_equal(cluster_wait(calls[0]), 0);
        assert_int_equal(cluster_wait(calls[1]), 0);
    }
    end(cluster);
}

TEST(test_barrier_cancel)
{
    struct cluster *cluster = SERVICE(.workers = 1);
    struct cluster_call *cancel;
    struct cluster_call *calls[2];

    cancel =
        cluster_agent(cluster->chief, CALL(.call = {.operation = MU__AGENT_BARRIER_CANCEL,
                                                    .timeout_ms = 1000},
                                           .name = "b"));
    expect_failed(cancel, -MU_EPRECONDITION, "this task is not at barrier \"b\"");
    for (unsigned round = 0; round < 2; round++) {
        calls[0] = meet(cluster->workers[0], "b", "chief:0,worker:0", 1, -1);
        run_for(cluster, 50);
        expect_failed(meet(cluster->workers[0], "b", "chief:0,worker:0", 1, -1),
                      -MU_EPRECONDITION, "this task is at barrier \"b\" already");
        cancel = cluster_agent(
            cluster->workers[0],
            CALL(.call = {.operation = MU__AGENT_BARRIER_CANCEL, .timeout_ms = 1000},
                 .name = "b"));
        expect_done(cancel, 0, 20);
        assert_int_equal(cluster_wait(calls[0]), -MU_ECANCELLED);
        calls[1] = meet(cluster->chief, "b", "chief:0,worker:0", 1, -1);
        assert_int_equal(cluster_wait(calls[1]), -MU_ECANCELLED);
    }
    calls[0] = meet(cluster->workers[0], "t", NULL, 2, -1);
    cancel =
        cluster_agent(cluster->workers[0],
                      CALL(.call = {.operation = MU__AGENT_BARRIER_CANCEL}, .name = "t"));
    expect_done(cancel, 0, 0);
    expect_failed(calls[0], -MU_ECANCELLED, "barrier \"t\" was cancelled");
    end(cluster);
}

/* ---- A store that outlives its host ---- */

/* Each time the host dies while the answers are on their way, or before it was asked:
 * whatever was applied is not applied again. */
TEST(test_applied_once)
{
    for (unsigned after_ms = 0; after_ms <= 25; after_ms += 5) {
        struct sim_storage *storage;
        struct cluster *cluster = begin_journal(&storage);
        struct cluster_call *calls[6];

        for (unsigned i = 0; i < 6; i++)
            calls[i] = key_call(cluster->workers[i % 2], MU_KV_INCREMENT, "n", -1);
        run_for(cluster, after_ms);
        assert_int_equal(sim_restart(cluster->chief->node), 0);
        for (unsigned i = 0; i < 6; i++)
            assert_int_equal(cluster_wait(calls[i]), 0);
        run_for(cluster, 1000);
        expect_key(cluster->chief, "n", "6");
        assert_int_equal(state_of(cluster->workers[0]), MU_AGENT_CONNECTED);
        end_journal(cluster, storage);
    }
}

/* ---- Preemption ---- */

static struct cluster_call *reach(struct cluster_task *task, uint64_t step)
{
    atomic_store(&task->member.agent.step, step + 1);
    return cluster_agent(task,
                         CALL(.call = {.operation = MU__AGENT_REACHED, .timeout_ms = -1},
                              .version = step));
}

static bool stops_at(struct cluster_task *task, uint64_t step)
{
    struct cluster_call *call = reach(task, step);

    assert_int_equal(cluster_wait(call), 0);
    return call->of.agent.number != 0;
}

static struct cluster_call *wait_round(struct cluster_task *task, uint64_t round,
                                       bool agreed)
{
    return cluster_agent(
        task, CALL(.call = {.operation = MU__AGENT_PREEMPTION, .timeout_ms = 1000},
                   .version = round, .number = agreed));
}

/* The largest step that anybody has reached is 7: all stop at 8, and only there. */
TEST(test_preemption)
{
    struct cluster *cluster = SERVICE(.workers = 2, .servers = 1);
    struct cluster_call *call;

    assert_false(stops_at(cluster->workers[0], 3));
    assert_false(stops_at(cluster->workers[1], 7));
    assert_false(stops_at(cluster->chief, 5));
    call = cluster_agent(cluster->workers[0],
                         CALL(.call = {.operation = MU__AGENT_NOTICE, .timeout_ms = 1000},
                              .name = "maintenance", .version = 5000));
    assert_int_equal(cluster_wait(call), 0);
    call = wait_round(cluster->servers[0], 0, true);
    assert_int_equal(cluster_wait(call), 0);
    assert_string_equal(call->of.agent.preemption.task, "/job:worker/task:0");
    assert_string_equal(call->of.agent.preemption.reason, "maintenance");
    assert_int_equal(call->of.agent.preemption.step, 8);
    assert_int_equal(call->of.agent.preemption.round, 1);
    run_for(cluster, 20);
    assert_false(stops_at(cluster->workers[0], 7));
    assert_true(stops_at(cluster->workers[0], 8));
    assert_true(stops_at(cluster->workers[1], 8));
    assert_false(stops_at(cluster->chief, 9));
    assert_int_equal(atomic_load(&cluster->chief->member.agent.stop), 8);
    assert_int_equal(cluster_wait(wait_round(cluster->chief, 1, false)), -MU_EDEADLINE);

    /* Another round, later. */
    assert_false(stops_at(cluster->workers[1], 20));
    call = cluster_agent(cluster->chief,
                         CALL(.call = {.operation = MU__AGENT_NOTICE, .timeout_ms = 1000},
                              .name = "", .version = 5000));
    assert_int_equal(cluster_wait(call), 0);
    assert_int_equal(cluster_wait(wait_round(cluster->workers[1], 1, true)), 0);
    assert_true(stops_at(cluster->workers[1], 21));
    end(cluster);
}

/* It was asked while it left: nobody would tell it what came of that. */
TEST(test_preemption_of_one_that_left)
{
    const mu__pid service = {MU__NODE_SELF, MU__COORDINATION};
    const struct mu__preempt_request round = {.round = 1};
    struct cluster *cluster = SERVICE(.workers = 1);

    expect_done(ask(cluster->chief, MU__AGENT_LEAVE, 1000), 0, 0);
    forge(cluster->chief, service, MU__AGENT, MU__PREEMPT_REQUEST, &round, sizeof round);
    run_for(cluster, 100);
    assert_int_equal(atomic_load(&cluster->chief->member.agent.gate), MU__GATE_OPEN);
    assert_false(stops_at(cluster->chief, 1));
    end(cluster);
}

/* A step that is begun while the tasks agree waits, and is the one to stop at when it is
 * one more than the largest. */
TEST(test_preemption_waits)
{
    struct cluster *cluster = SERVICE(.workers = 1);
    struct cluster_call *call;

    assert_false(stops_at(cluster->workers[0], 4));
    (void)cluster_agent(cluster->chief,
                        CALL(.call = {.operation = MU__AGENT_NOTICE, .timeout_ms = 1000},
                             .name = ""));
    run_for(cluster, 15);
    call = reach(cluster->workers[0], 5);
    run_for(cluster, 1);
    assert_false(call->done);
    expect_done(call, 0, 14);
    assert_int_equal(call->of.agent.number, 1);
    end(cluster);
}

TEST_PROGRAM()
