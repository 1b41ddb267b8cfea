/* Tasks that fall silent, are stuck, report errors and are reset. */
#include "tests/support/service/tasks.h"

/* ---- silence and broken links ---- */

TEST(test_silence)
{
    struct service *s = SERVICE();
    struct service_agent *w0 = service_task(s, "worker", 0);
    struct service_agent *w1 = service_task(s, "worker", 1);

    service_run_until(s, 1000);
    w0->beats = false;
    service_run_until(s, 1299);
    expect_state(w1, "worker:0", "connected");
    service_run_until(s, 1300);
    expect_state(w1, "worker:0", "suspect");
    service_heartbeat(w0, 0);
    expect_state(w1, "worker:0", "connected");
    service_run_until(s, 2199);
    expect_state(w1, "worker:0", "suspect");
    service_run_until(s, 2200);
    expect_state(w1, "worker:0", "error");

    /* A recoverable one is told when it is heard again, and registers again. */
    expect_said(w0, "");
    service_heartbeat(w0, 0);
    expect_said(w0, "[ 2200] task_heard epoch=1 code=14 message=\"/job:worker/task:0 has "
                    "been silent for 900 ms: it must register again\"\n");
    expect_ok(w0, service_register(w0, false, 0));
    expect_state(w1, "worker:0", "connected");
    (void)service_text(w1);
    service_run_until(s, 2300);
    expect_said(w1, "");
    service_end(s);
}

TEST(test_silence_shares_fate)
{
    struct service *s = SERVICE(.recoverable = "worker");
    struct service_agent *chief = service_task(s, "chief", 0);
    struct service_agent *w0 = service_task(s, "worker", 0);

    chief->beats = false;
    service_run_until(s, 1500);
    expect_said(chief, "[  900] task_error code=14 message=\"/job:chief/task:0 has been "
                       "silent for 900 ms\" task=\"/job:chief/task:0\" own=yes\n");
    expect_said(w0, "[  900] task_error code=14 message=\"/job:chief/task:0 has been "
                    "silent for 900 ms\" task=\"/job:chief/task:0\"\n");
    expect_state(w0, "worker:0", "connected");
    service_end(s);
}

TEST(test_link)
{
    struct service *s = SERVICE();
    struct service_agent *w0 = service_task(s, "worker", 0);
    struct service_agent *w1 = service_task(s, "worker", 1);

    service_run_until(s, 50);
    service_link_down(w0, 0, "connection reset");
    expect_state(w1, "worker:0", "suspect");

    /* The same incarnation: as if nothing had been. */
    service_run_until(s, 649);
    service_link_up(w0, 0);
    expect_state(w1, "worker:0", "connected");
    service_run_until(s, 900);
    expect_state(w1, "worker:0", "connected");

    service_link_down(w0, 0, "connection reset");
    service_run_until(s, 1499);
    expect_state(w1, "worker:0", "suspect");
    service_run_until(s, 1500);
    expect_state(w1, "worker:0", "error");
    assert_string_equal(sim_trace(s->sim),
                        "[   50] chief/task:0 coordination: /job:worker/task:0: suspect: "
                        "its link is down: connection reset\n"
                        "[  900] chief/task:0 coordination: /job:worker/task:0: suspect: "
                        "its link is down: connection reset\n"
                        "[ 1500] chief/task:0 coordination: /job:worker/task:0: error: "
                        "/job:worker/task:0 is lost: its link has been down for 600 "
                        "ms\n");
    service_link_up(w0, 0);
    expect_ok(w0, service_register(w0, false, 0));
    service_end(s);
}

/* A new link before the end of the old one is noticed. */
TEST(test_link_overtakes)
{
    struct service *s = SERVICE();
    struct service_agent *w0 = service_task(s, "worker", 0);
    struct service_agent *twin = service_agent(s, "worker", 0);
    struct service_agent *w1 = service_task(s, "worker", 1);

    /* The same process, over another connection. */
    service_link_down(twin, 0, "");
    twin->incarnation = w0->incarnation;
    service_link_up(twin, 0);
    expect_state(twin, "worker:0", "connected");
    service_link_down(w0, 0, "connection reset");
    expect_state(w1, "worker:0", "connected");
    expect_state(twin, "worker:0", "connected");
    service_end(s);
}

/* A host that stood still declares nobody dead: tasks get their time from when it goes
 * on. The tick was due at 300 (suspicion of what was heard at 0, at the earliest). */
TEST(test_host_paused)
{
    struct service *s = SERVICE(.reconnect_ms = 5000);
    struct service_agent *w0 = service_task(s, "worker", 0);
    struct service_agent *w1 = service_task(s, "worker", 1);

    service_run_until(s, 200);
    w0->beats = false;
    w1->beats = false;
    sim_pause(s->hosts[0].node, 10000);
    service_run_until(s, 10200);
    assert_string_equal(sim_trace(s->sim),
                        "[10200] chief/task:0 coordination: this host was paused for "
                        "9800 ms: no task's limit counts them\n");
    w1->beats = true;
    service_run_until(s, 10300);
    expect_state(w1, "worker:0", "suspect");
    expect_state(w1, "worker:1", "connected");
    service_run_until(s, 10899);
    expect_state(w1, "worker:0", "suspect");
    service_run_until(s, 10900);
    expect_state(w1, "worker:0", "error");
    service_end(s);
}

/* ---- stuck ---- */

TEST(test_stuck)
{
    struct service *s = SERVICE(.tasks = "ps:0,worker:0-1", .stuck_ms = 2000);
    struct service_agent *w0 = service_task(s, "worker", 0);
    struct service_agent *w1 = service_task(s, "worker", 1);
    struct service_agent *ps = service_task(s, "ps", 0);

    w0->progress = 5;
    for (int i = 0; i < 40; i++) {
        w1->progress++;
        service_run(s, 100);
        if (w0->counts[MU__TASK_ERROR] > 0)
            w0->beats = false;
    }
    expect_said(
        w0, "[ 2100] task_error code=4 message=\"/job:worker/task:0 is stuck: "
            "its node is alive, its program has made no progress for 2000 ms (progress "
            "5)\" task=\"/job:worker/task:0\" own=yes\n"
            "[ 2100] task_heard epoch=1 code=10 message=\"/job:worker/task:0 is "
            "stuck: its node is alive, its program has made no progress for 2000 ms "
            "(progress 5)\"\n");
    expect_state(w1, "worker:0-1", "error");
    expect_state(w1, "worker:1", "connected");
    /* A server without a program of its own has no progress to make. */
    expect_state(w1, "ps:0", "connected");
    expect_said(ps, "");
    service_end(s);
}

/* What the agent itself says about it counts, too. */
TEST(test_stuck_by_agent)
{
    struct service *s = SERVICE(.stuck_ms = 2000);
    struct service_agent *w0 = service_task(s, "worker", 0);

    TELL(w0, TASK_HEARTBEAT, task_heartbeat, .progress = 1, .stuck_ms = 1999);
    expect_said(w0, "");
    TELL(w0, TASK_HEARTBEAT, task_heartbeat, .progress = 1, .stuck_ms = 2000);
    expect_said(
        w0, "[    0] task_error code=4 message=\"/job:worker/task:0 is stuck: "
            "its node is alive, its program has made no progress for 2000 ms (progress "
            "1)\" task=\"/job:worker/task:0\" own=yes\n"
            "[    0] task_heard epoch=1 code=10 message=\"/job:worker/task:0 is "
            "stuck: its node is alive, its program has made no progress for 2000 ms "
            "(progress 1)\"\n");
    service_end(s);
}

/* ---- errors ---- */

TEST(test_report)
{
    struct service *s = SERVICE();
    struct service_agent *w0 = service_agent(s, "worker", 0);
    struct service_agent *w1 = service_task(s, "worker", 1);
    uint64_t get;

    expect_error(w0, service_report(w0, -MU_EINTERNAL, "?"), -MU_EPRECONDITION,
                 "/job:worker/task:0 is not registered at /job:chief/task:0");
    expect_ok(w0, service_register(w0, false, 0));
    expect_error(w0, service_report(w0, 0, ""), -MU_EINVALID,
                 "/job:worker/task:0 reports an error with code 0");
    expect_state(w1, "worker:0", "connected");
    expect_ok(w0, service_report(w0, -MU_EDATALOSS, "a bad disk"));
    expect_state(w1, "worker:0", "error");
    (void)service_text(w1);

    /* A recoverable task's error is its own; everything that it asks fails with it. */
    service_run_until(s, 100);
    expect_said(w1, "");
    get = service_tasks_get(w0, MU__TASKS_STATES, "", 0, 0);
    expect_error(w0, get, -MU_EDATALOSS, "a bad disk");
    expect_error(w0, service_report(w0, -MU_EINTERNAL, "again"), -MU_EDATALOSS,
                 "a bad disk");
    expect_ok(w0, service_register(w0, false, 0));
    service_end(s);
}

TEST(test_report_shares_fate)
{
    struct service *s = SERVICE(.recoverable = "none");
    struct service_agent *chief = service_task(s, "chief", 0);
    struct service_agent *w0 = service_task(s, "worker", 0);
    struct service_agent *w1 = service_task(s, "worker", 1);
    struct service_agent *client = service_task(s, "client", 3);

    service_run_until(s, 50);
    service_link_down(w1, 0, "connection reset");
    TELL(w0, TASK_REPORT, task_report, .token = 9, .code = MU_EDATALOSS,
         .message = mu__view_str("a bad disk"), .task = mu__view_str("/job:ps/task:0"));
    expect_ok(w0, 9);
    assert_int_equal(w0->counts[MU__TASK_ERROR], 0);
    expect_said(chief, "[   50] task_error code=15 message=\"a bad disk\" "
                       "task=\"/job:ps/task:0\"\n");
    expect_said(client, "[   50] task_error code=15 message=\"a bad disk\" "
                        "task=\"/job:ps/task:0\"\n");

    /* One whose link was down hears of it when it is up again: once. */
    service_run_until(s, 150);
    service_link_up(w1, 0);
    service_link_down(w1, 0, "connection reset");
    service_link_up(w1, 0);
    expect_said(w1, "[  150] task_error code=15 message=\"a bad disk\" "
                    "task=\"/job:ps/task:0\"\n");

    /* Who has been told is in error already: further failures are not told to it. */
    expect_ok(chief, service_report(chief, -MU_EINTERNAL, "me, too"));
    expect_said(w1, "");
    service_end(s);
}

/* ---- resets ---- */

TEST(test_reset)
{
    struct service *s = SERVICE(.recoverable = "none");
    struct service_agent *w0 = service_task(s, "worker", 0);
    struct service_agent *w1 = service_task(s, "worker", 1);
    uint64_t waits = service_tasks_get(w1, MU__TASKS_WAIT, "", 0, 0);

    expect_ok(w0, service_report(w0, -MU_EDATALOSS, "a bad disk"));
    expect_error(w0, service_register(w0, false, 0), -MU_EABORTED,
                 "/job:worker/task:0 is in error and must be reset first: a bad disk");
    expect_ok(w0, service_reset(w0));
    expect_state(w1, "worker:0", "disconnected");
    expect_ok(w0, service_reset(w0));
    expect_ok(w0, service_register(w0, false, 0));

    /* An agent that others' failure put into error resets a task that is connected. */
    expect_waits(w1, waits);
    expect_ok(w1, service_reset(w1));
    expect_error(w1, waits, -MU_EABORTED, "/job:worker/task:1 was reset");
    expect_error(w1, service_tasks_get(w1, MU__TASKS_STATES, "", 0, 0), -MU_EPRECONDITION,
                 "/job:worker/task:1 has left and is no longer registered");
    service_end(s);
}

TEST(test_reset_of_another)
{
    struct service *s = SERVICE();
    struct service_agent *w0 = service_task(s, "worker", 0);
    struct service_agent *other = service_agent(s, "worker", 0);
    struct service_agent *w9 = service_agent(s, "worker", 9);

    expect_error(other, service_reset(other), -MU_EPRECONDITION,
                 "/job:worker/task:0 is registered with another incarnation");
    expect_state(w0, "worker:0", "connected");
    expect_ok(w9, service_reset(w9));
    service_end(s);
}

TEST_PROGRAM()
