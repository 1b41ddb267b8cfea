/* Limits of what a program asks for, and of how much fits: into frames, wires, queues. */
#include "tests/support/story.h"

/* ---- Large messages, full wires ---- */

/* Six MiB at 4 KiB a millisecond take 1.5 s, three times the silence that is death. */
TEST(test_large_arguments)
{
    struct cluster *cluster = BEGIN(.workers = 1, .clients = 1);
    struct cluster_task *client = cluster->clients[0];
    size_t size = 6 << 20;
    void *data = calloc(1, size);
    struct cluster_closure *closure;
    struct mu__links_counters before;
    struct mu__links_counters after;

    assert_non_null(data);
    sim_settings(cluster->sim)->bytes_per_ms = 4096;
    sim_settings(cluster->sim)->connection_bytes_max = 1 << 20;
    open_at(client);
    mu__links_counters(client->member.links, &before);
    closure = cluster_schedule_value(client, "weigh", mu_value_bytes(data, size));
    assert_int_equal(join(client), 0);
    assert_int_equal(cluster_result(closure), size);
    mu__links_counters(client->member.links, &after);
    assert_true(sim_now_ms(cluster->sim) > 3000);
    /* Seven pieces, and a heartbeat every now and then between them and after. */
    assert_true(after.frames_out - before.frames_out >= 7 + 3000 / 200);
    expect_trace(cluster, "");
    free(data);
    end(cluster);
}

TEST(test_large_result)
{
    struct cluster *cluster = BEGIN(.workers = 1, .clients = 1);
    struct cluster_closure *closure;
    const void *data;
    size_t size = 0;

    open_at(cluster->clients[0]);
    closure = cluster_schedule_value(cluster->clients[0], "make", mu_value_int(9 << 20));
    assert_int_equal(join(cluster->clients[0]), 0);
    assert_int_equal(mu_value_get_bytes(closure->future->result, &data, &size), 0);
    assert_int_equal(size, 9 << 20);
    end(cluster);
}

/* A wire that takes little at once only makes it take longer. */
TEST(test_full_wire)
{
    struct cluster *cluster = BEGIN(.workers = 2, .clients = 1, .window = 64);
    struct cluster_closure *closures[500];

    sim_settings(cluster->sim)->connection_bytes_max = 512;
    sim_settings(cluster->sim)->again_percent = 50;
    open_at(cluster->clients[0]);
    schedule(cluster->clients[0], "quick", 500, closures);
    assert_int_equal(join(cluster->clients[0]), 0);
    expect_squares(closures, 500);
    end(cluster);
}

/* A chief that takes what it is sent, but slowly: more than 64 MiB wait, and nobody gives
 * up. */
TEST(test_peer_that_reads_slowly)
{
    enum { CLOSURES = 100 };
    struct cluster *cluster = BEGIN(.workers = 1, .clients = 1);
    struct cluster_task *client = cluster->clients[0];
    size_t size = 1 << 20;
    void *data = calloc(1, size);

    assert_non_null(data);
    sim_settings(cluster->sim)->bytes_per_ms = 1 << 16;
    sim_settings(cluster->sim)->connection_bytes_max = 1 << 20;
    open_at(client);
    for (int i = 0; i < CLOSURES; i++)
        (void)cluster_schedule_value(client, "weigh", mu_value_bytes(data, size));
    assert_int_equal(join(client), 0);
    assert_true(sim_now_ms(cluster->sim) > 1600);
    expect_trace(cluster, "");
    free(data);
    end(cluster);
}

/* A client whose chief is there but takes nothing. */
static struct cluster *begin_unread(void)
{
    struct cluster *cluster = BEGIN(.workers = 1, .clients = 1, .silence_ms = 4000);

    sim_settings(cluster->sim)->connection_bytes_max = 1 << 20;
    open_at(cluster->clients[0]);
    run_for(cluster, 20);
    sim_block(cluster->sim, cluster->clients[0]->node, cluster->chief->node);
    return cluster;
}

static void schedule_megabytes(struct cluster_task *client, unsigned count)
{
    size_t size = 1 << 20;
    void *data = calloc(1, size);

    assert_non_null(data);
    for (unsigned i = 0; i < count; i++)
        (void)cluster_schedule_value(client, "weigh", mu_value_bytes(data, size));
    free(data);
}

/* With more than 64 MiB unsent, the client gives up when that was so for half of the
 * silence that is death. */
TEST(test_peer_does_not_read)
{
    struct cluster *cluster = begin_unread();
    struct cluster_task *client = cluster->clients[0];

    schedule_megabytes(client, 60);
    run_for(cluster, 1000);
    expect_trace(cluster, "");
    schedule_megabytes(client, 10);
    run_for(cluster, 1000);
    expect_trace(
        cluster,
        "[ 2180] client/0 links: /job:chief/task:0 is lost: it does not read what it "
        "is sent: 73405198 bytes wait, and none was taken for 2000 ms\n");
    assert_int_equal(join(client), -MU_EUNAVAILABLE);
    sim_heal(cluster->sim);
    end(cluster);
}

/* A client that stood still itself, with more than 64 MiB unsent: in that time it has
 * written nothing, which is not the chief's doing. */
TEST(test_own_pause_is_not_the_peers)
{
    struct cluster *cluster = begin_unread();
    struct cluster_task *client = cluster->clients[0];

    schedule_megabytes(client, 70);
    run_for(cluster, 100);
    sim_pause(client->node, 2200);
    schedule_megabytes(client, 1);
    run_for(cluster, 2300);
    expect_trace(cluster,
                 "[ 2480] client/0 links: this process stood still for 2230 ms\n");
    sim_heal(cluster->sim);
    assert_int_equal(join(client), 0);
    end(cluster);
}

/* ---- Limits and questions ---- */

TEST(test_open_without_chief)
{
    struct cluster *cluster = MAKE(.clients = 1);
    struct cluster_task *client = cluster->clients[0];
    struct cluster_call *call;

    cluster_start(client);
    call = cluster_open(client, 1000);
    assert_int_equal(cluster_wait(call), -MU_EDEADLINE);
    assert_string_equal(
        call->of.call.error.message,
        "/job:chief/task:0 at tcp://chief-0:1 was not reached within 1000 ms: nothing "
        "has answered yet");
    assert_int_equal(call->done_ms, 1000);
    client->session->over = true;

    call = cluster_open(client, -1);
    run_for(cluster, 5000);
    assert_false(call->done);
    assert_int_equal(cluster_wait(cluster_open(client, 10)), -MU_EEXISTS);
    cluster_start(cluster->chief);
    assert_int_equal(cluster_wait(call), 0);
    end(cluster);
}

TEST(test_join_limit)
{
    struct cluster *cluster = BEGIN(.workers = 1, .clients = 1);
    struct cluster_closure *closures[3];
    struct cluster_call *call;

    set_work_ms(cluster, 3000);
    open_at(cluster->clients[0]);
    run_for(cluster, 20);
    schedule(cluster->clients[0], "square", 3, closures);
    call = cluster_ask(cluster->clients[0], MU__CLIENT_JOIN, 1000);
    assert_int_equal(cluster_wait(call), -MU_EDEADLINE);
    assert_string_equal(
        call->of.call.error.message,
        "3 closures are outstanding after 1000 ms; closure 4294967296 \"square\" "
        "runs on /job:worker/task:0 for 980 ms; the chief has 1 running, 2 sent, 0 "
        "queued");

    /* A chief that does not answer is lost before it has said why: that is the error. */
    sim_block(cluster->sim, cluster->chief->node, cluster->clients[0]->node);
    call = cluster_ask(cluster->clients[0], MU__CLIENT_JOIN, 100);
    assert_int_equal(cluster_wait(call), -MU_EUNAVAILABLE);
    assert_string_equal(
        call->of.call.error.message,
        "/job:chief/task:0 at tcp://chief-0:1 is lost: silent for 500 ms");
    sim_heal(cluster->sim);
    (void)join(cluster->clients[0]);
    end(cluster);
}

/* No worker at all. */
TEST(test_join_without_workers)
{
    struct cluster *cluster = MAKE(.workers = 1);
    struct cluster_call *call;

    cluster_start(cluster->chief);
    open_at(cluster->chief);
    (void)cluster_schedule(cluster->chief, "square");
    call = cluster_ask(cluster->chief, MU__CLIENT_JOIN, 1000);
    assert_int_equal(cluster_wait(call), -MU_EDEADLINE);
    assert_string_equal(
        call->of.call.error.message,
        "1 closure is outstanding after 1000 ms; none is in flight: no worker "
        "is up, or none has room; /job:worker/task:0 is missing for 1000 ms; the chief "
        "has 0 running, 0 sent, 1 queued");
    cluster_start(cluster->workers[0]);
    assert_int_equal(join(cluster->chief), 0);
    end(cluster);
}

/* Functions on the only threads wait for closures of their own processes, which wait for
 * these threads. */
TEST(test_join_at_a_standstill)
{
    struct cluster *cluster = BEGIN(.workers = 2, .node.watchdog_ms = 900);
    struct cluster_closure *closures[2];
    struct cluster_call *call;

    set_work_ms(cluster, 3000);
    open_at(cluster->chief);
    schedule(cluster->chief, "square", 2, closures);
    run_for(cluster, 200);
    open_at(cluster->workers[0]);
    (void)cluster_schedule(cluster->workers[0], "square");
    call = cluster_ask(cluster->chief, MU__CLIENT_JOIN, 500);
    assert_int_equal(cluster_wait(call), -MU_EDEADLINE);
    assert_null(strstr(call->of.call.error.message, "closures of their own"));
    open_at(cluster->workers[1]);
    (void)cluster_schedule(cluster->workers[1], "square");
    call = cluster_ask(cluster->chief, MU__CLIENT_JOIN, 500);
    assert_int_equal(cluster_wait(call), -MU_EDEADLINE);
    assert_non_null(strstr(
        call->of.call.error.message,
        "; all threads of 2 worker(s) run functions that have closures of their own "
        "outstanding: who waits for these needs one more thread (option threads)"));
    assert_non_null(strstr(sim_trace(cluster->sim), "own outstanding: who waits"));
    assert_int_equal(join(cluster->chief), 0);
    expect_squares(closures, 2);
    assert_int_equal(join(cluster->workers[1]), 0);
    end(cluster);
}

TEST(test_fetch_limit)
{
    struct cluster *cluster = BEGIN(.workers = 1);
    struct cluster_closure *closure;
    struct cluster_call *call;

    set_work_ms(cluster, 3000);
    open_at(cluster->chief);
    closure = cluster_schedule(cluster->chief, "square");
    call = cluster_fetch(closure, 1000);
    assert_int_equal(cluster_wait(call), -MU_EDEADLINE);
    assert_non_null(strstr(call->of.call.error.message,
                           "the closure has no result after 1000 ms; "));
    assert_int_equal(cluster_wait(cluster_fetch(closure, 10000)), 0);
    expect_squares(&closure, 1);
    assert_int_equal(cluster_wait(cluster_fetch(closure, 0)), 0);
    end(cluster);
}

/* A queue of 16: room is told of when an eighth is free, or has not become free for some
 * milliseconds. */
TEST(test_room)
{
    struct cluster *cluster = BEGIN(.workers = 1, .clients = 1, .queue_max = 16);
    struct cluster_closure *closures[16];
    struct cluster_call *call;

    set_work_ms(cluster, 100);
    open_at(cluster->clients[0]);
    assert_int_equal(cluster_wait(cluster_ask(cluster->clients[0], MU__CLIENT_ROOM, 0)),
                     0);
    schedule(cluster->clients[0], "square", 16, closures);
    call = cluster_ask(cluster->clients[0], MU__CLIENT_ROOM, 50);
    assert_int_equal(cluster_wait(call), -MU_EDEADLINE);
    call = cluster_ask(cluster->clients[0], MU__CLIENT_ROOM, -1);
    assert_int_equal(cluster_wait(call), 0);
    expect_counts(cluster->clients[0], 1, 0, 0);
    assert_int_equal(join(cluster->clients[0]), 0);
    end(cluster);
}

/* The chief holds at most so many closures, of all clients together: one that has nothing
 * there gets its part as soon as something is resolved, and nobody's closure fails. */
TEST(test_chief_is_full)
{
    struct cluster *cluster = BEGIN(.workers = 1, .clients = 2, .queue_max = 8);
    struct cluster_closure *closures[16];

    set_work_ms(cluster, 1000);
    open_at(cluster->clients[0]);
    run_for(cluster, 20);
    schedule(cluster->clients[0], "square", 8, closures);
    run_for(cluster, 20);
    open_at(cluster->clients[1]);
    schedule(cluster->clients[1], "square", 8, closures + 8);
    run_for(cluster, 900);
    assert_int_equal(status_number(cluster->chief, "closures", "scheduled"), 8);
    assert_int_equal(join(cluster->clients[0]), 0);
    assert_int_equal(join(cluster->clients[1]), 0);
    expect_squares(closures, 16);
    end(cluster);
}

TEST(test_close)
{
    struct cluster *cluster = BEGIN(.workers = 1, .window = 2);
    struct cluster_closure *closures[6];

    set_work_ms(cluster, 100);
    open_at(cluster->chief);
    schedule(cluster->chief, "square", 6, closures);
    run_for(cluster, 10);
    assert_int_equal(cluster_wait(cluster_ask(cluster->chief, MU__CLIENT_CLOSE, -1)), 0);
    expect_counts(cluster->chief, 1, 0, 5);
    cluster->chief->session->over = true;
    open_at(cluster->chief);
    schedule(cluster->chief, "square", 2, closures);
    assert_int_equal(join(cluster->chief), 0);
    expect_squares(closures, 2);
    end(cluster);
}

TEST(test_status)
{
    struct cluster *cluster =
        BEGIN(.workers = 1, .servers = 1, .clients = 1, .evaluator = true);
    struct cluster_closure *closures[6];
    struct cluster_call *call;

    set_work_ms(cluster, 1000);
    open_at(cluster->clients[0]);
    schedule(cluster->clients[0], "square", 6, closures);
    cluster_report(cluster->evaluator, "loss", 0.25, 7);
    run_for(cluster, 100);
    assert_int_equal(status_number(cluster->evaluator, "closures", "scheduled"), 6);
    assert_int_equal(status_number(cluster->clients[0], "closures", "in_flight"), 4);
    assert_int_equal(status_number(cluster->chief, "closures", "queued"), 2);
    call = cluster_metric(cluster->chief, "loss");
    assert_int_equal(cluster_wait(call), 0);
    assert_true(call->of.metric.number == 0.25);
    assert_int_equal(call->of.metric.step, 7);
    call = cluster_metric(cluster->chief, "accuracy");
    assert_int_equal(cluster_wait(call), -MU_ENOTFOUND);
    assert_int_equal(join(cluster->clients[0]), 0);

    /* A server that does not answer is waited for, but not long. */
    sim_block(cluster->sim, cluster->servers[0]->node, cluster->chief->node);
    call = cluster_ask(cluster->clients[0], MU__CLIENT_STATUS, 200);
    assert_int_equal(cluster_wait(call), -MU_EDEADLINE);
    assert_string_equal(
        call->of.call.error.message,
        "/job:chief/task:0 at tcp://chief-0:1 did not answer within 200 ms");
    sim_heal(cluster->sim);
    end(cluster);
}

TEST_PROGRAM()
