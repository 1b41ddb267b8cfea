/* The chief's queue: its bounds, who comes first, who may pass whom. */
#include "actors/supervisor/internal.h"
#include "tests/support/story.h"

/* ---- Bounds ---- */

/* Eight closures of all clients together: what is more waits at its client, and nothing
 * fails. */
TEST(test_count)
{
    struct cluster *cluster =
        BEGIN(.workers = 1, .window = 1, .clients = 3, .queue_max = 8);
    struct cluster_closure *closures[3][6];

    set_work_ms(cluster, 100);
    for (int i = 0; i < 3; i++)
        open_at(cluster->clients[i]);
    for (int i = 0; i < 3; i++) {
        schedule(cluster->clients[i], "square", 6, closures[i]);
        run_for(cluster, 1);
    }
    run_for(cluster, 150);
    assert_int_equal(status_number(cluster->chief, "closures", "in_flight"), 1);
    assert_in_range(status_number(cluster->chief, "closures", "queued"), 6, 7);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(join(cluster->clients[i]), 0);
        expect_squares(closures[i], 6);
    }
    end(cluster);
}

/* A megabyte of arguments: what is in flight counts. One that is larger than all that is
 * allowed goes through when nothing else is there. */
TEST(test_bytes)
{
    struct cluster *cluster =
        BEGIN(.workers = 1, .clients = 2, .node.queue_bytes_max = 1000000);
    struct cluster_closure *closures[3];
    void *data = calloc(1, 2000000);

    assert_non_null(data);
    set_work_ms(cluster, 1000);
    open_at(cluster->clients[0]);
    open_at(cluster->clients[1]);
    closures[0] = cluster_schedule_value(cluster->clients[0], "weigh",
                                         mu_value_bytes(data, 600000));
    run_for(cluster, 100);
    closures[1] = cluster_schedule_value(cluster->clients[1], "weigh",
                                         mu_value_bytes(data, 600000));
    closures[2] = cluster_schedule_value(cluster->clients[1], "weigh",
                                         mu_value_bytes(data, 2000000));
    run_for(cluster, 500);
    assert_in_range(status_number(cluster->chief, "closures", "args_bytes"), 600000,
                    600100);
    assert_int_equal(join(cluster->clients[0]), 0);
    run_for(cluster, 500);
    assert_in_range(status_number(cluster->chief, "closures", "args_bytes"), 600000,
                    600100);
    assert_int_equal(join(cluster->clients[1]), 0);
    assert_int_equal(status_number(cluster->chief, "closures", "args_bytes"), 0);
    assert_int_equal(cluster_result(closures[1]), 600000);
    assert_int_equal(cluster_result(closures[2]), 2000000);
    free(data);
    end(cluster);
}

/* A full queue and all workers failing at once: what is put back has its place already,
 * so that nothing waits for anything. */
TEST(test_put_back_when_full)
{
    struct cluster *cluster =
        BEGIN(.workers = 2, .window = 2, .clients = 1, .queue_max = 8);
    struct cluster_task *client = cluster->clients[0];
    struct cluster_closure *closures[8];

    set_work_ms(cluster, 1000);
    open_at(client);
    schedule(client, "square", 8, closures);
    run_until(cluster, 500);
    assert_int_equal(status_number(client, "closures", "in_flight"), 4);
    for (int i = 0; i < 2; i++)
        assert_int_equal(sim_restart(cluster->workers[i]->node), 0);
    run_until(cluster, 540);
    assert_int_equal(status_number(client, "closures", "queued"), 8);
    assert_int_equal(join(client), 0);
    expect_squares(closures, 8);
    end(cluster);
}

/* ---- Order ---- */

/* Scheduled from the least to the most urgent, two of each: run from the most to the
 * least urgent, and in order among equals. The first one scheduled has the worker before
 * the others come. */
TEST(test_priorities)
{
    struct cluster *cluster = BEGIN(.workers = 1, .window = 1);
    struct cluster_closure *closures[17];

    open_at(cluster->chief);
    closures[0] = cluster_schedule(cluster->chief, "square");
    run_for(cluster, 5);
    for (unsigned i = 0; i < 16; i++)
        closures[1 + i] =
            cluster_schedule_with(cluster->chief, "square", ASK(.priority = 8 - i / 2));
    assert_int_equal(join(cluster->chief), 0);
    expect_trace(cluster, "[  180] sim note: worker/0 runs square 0\n"
                          "[  210] sim note: worker/0 runs square 15\n"
                          "[  240] sim note: worker/0 runs square 16\n"
                          "[  270] sim note: worker/0 runs square 13\n"
                          "[  300] sim note: worker/0 runs square 14\n"
                          "[  330] sim note: worker/0 runs square 11\n"
                          "[  360] sim note: worker/0 runs square 12\n"
                          "[  390] sim note: worker/0 runs square 9\n"
                          "[  420] sim note: worker/0 runs square 10\n"
                          "[  450] sim note: worker/0 runs square 7\n"
                          "[  480] sim note: worker/0 runs square 8\n"
                          "[  510] sim note: worker/0 runs square 5\n"
                          "[  540] sim note: worker/0 runs square 6\n"
                          "[  570] sim note: worker/0 runs square 3\n"
                          "[  600] sim note: worker/0 runs square 4\n"
                          "[  630] sim note: worker/0 runs square 1\n"
                          "[  660] sim note: worker/0 runs square 2\n");
    expect_squares(closures, 17);
    end(cluster);
}

/* The usual urgency is the fifth of eight, also for those that say nothing. */
TEST(test_usual)
{
    struct cluster *cluster = BEGIN(.workers = 1, .window = 1);

    open_at(cluster->chief);
    (void)cluster_schedule(cluster->chief, "square");
    run_for(cluster, 5);
    (void)cluster_schedule_with(cluster->chief, "square", ASK(.priority = 6));
    (void)cluster_schedule(cluster->chief, "square");
    (void)cluster_schedule_with(cluster->chief, "square",
                                ASK(.priority = MU_PRIORITY_DEFAULT + 1));
    (void)cluster_schedule_with(cluster->chief, "square", ASK(.priority = 4));
    assert_int_equal(join(cluster->chief), 0);
    expect_trace(cluster, "[  180] sim note: worker/0 runs square 0\n"
                          "[  210] sim note: worker/0 runs square 4\n"
                          "[  240] sim note: worker/0 runs square 2\n"
                          "[  270] sim note: worker/0 runs square 3\n"
                          "[  300] sim note: worker/0 runs square 1\n");
    end(cluster);
}

/* One that is run again goes before its equals, but not before the more urgent ones. */
TEST(test_again)
{
    struct cluster *cluster = BEGIN(.workers = 1, .window = 1);

    set_work_ms(cluster, 100);
    open_at(cluster->chief);
    (void)cluster_schedule(cluster->chief, "square");
    (void)cluster_schedule(cluster->chief, "square");
    run_until(cluster, 200);
    (void)cluster_schedule_with(cluster->chief, "square", ASK(.priority = 1));
    assert_int_equal(sim_restart(cluster->workers[0]->node), 0);
    run_until(cluster, 300);
    (void)sim_trace(cluster->sim);
    assert_int_equal(join(cluster->chief), 0);
    expect_trace(cluster, "[  368] sim note: worker/0 runs square 2\n"
                          "[  488] sim note: worker/0 runs square 0\n"
                          "[  608] sim note: worker/0 runs square 1\n");
    end(cluster);
}

/* Forty closures that may not run on the only worker do not keep the others from it; nor
 * are they forgotten when one comes that suits them. */
TEST(test_constrained)
{
    struct cluster *cluster = BEGIN(.workers = 1);
    struct cluster_closure *constrained[40];
    struct cluster_closure *plain[4];

    open_at(cluster->chief);
    for (int i = 0; i < 40; i++)
        constrained[i] =
            cluster_schedule_with(cluster->chief, "square", ASK(.not_worker = 1));
    schedule(cluster->chief, "square", 4, plain);
    run_for(cluster, 100);
    expect_squares(plain, 4);
    assert_int_equal(status_number(cluster->chief, "closures", "queued"), 40);
    cluster_start(cluster_add(cluster, "worker", 1, "second"));
    assert_int_equal(join(cluster->chief), 0);
    expect_squares(constrained, 40);
    end(cluster);
}

/* A window of 32 that was filled. Results come one at a time, each in a turn of its own:
 * nothing is sent before half of it is free. */
TEST(test_a_filled_window_is_refilled_by_halves)
{
    enum { WINDOW = 32, CLOSURES = 2 * WINDOW, RUN_MS = 4 };
    struct cluster *cluster = BEGIN(.workers = 1, .window = WINDOW);
    const struct supervisor *s =
        mu__actor_state(cluster->chief->member.kernel, (mu__pid){0, MU__SUPERVISOR});
    struct cluster_closure *closures[CLOSURES];
    uint64_t before = WINDOW;
    int refills = 0;

    set_work_ms(cluster, RUN_MS);
    open_at(cluster->chief);
    schedule(cluster->chief, "square", CLOSURES, closures);
    run_for(cluster, 1);
    assert_int_equal(s->members.load, WINDOW);
    for (int i = 0; i < CLOSURES * RUN_MS / 2; i++) {
        uint64_t now = s->members.load;

        if (now > before) {
            assert_in_range(before, WINDOW / 2, WINDOW / 2 + 2);
            refills++;
        }
        before = now;
        run_for(cluster, 1);
    }
    assert_in_range(refills, 1, 3);
    assert_int_equal(join(cluster->chief), 0);
    expect_squares(closures, CLOSURES);
    end(cluster);
}

TEST_PROGRAM()
