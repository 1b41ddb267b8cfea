/* The coordination service and its tasks, in virtual time: registering, heartbeats,
 * failures, resets, leaving. A host answers at once; limits of tasks are 300 ms of
 * silence until suspicion, 900 until death, 600 with a broken link. */
#include "tests/support/service/tasks.h"

/* ---- registering ---- */

TEST(test_register)
{
    struct service *s = SERVICE();
    struct service_agent *w0 = service_agent(s, "worker", 0);
    uint64_t get;

    get = service_tasks_get(w0, MU__TASKS_STATES, "", 0, 0);
    expect_error(w0, get, -MU_EPRECONDITION,
                 "/job:worker/task:0 is not registered at /job:chief/task:0");
    expect_ok(w0, service_register(w0, false, 0));
    expect_state(w0, "worker:0", "connected");
    expect_state(w0, "worker:1", "disconnected");
    service_end(s);
}

/* An answer that was lost is asked for again, and that is a sign of life. */
TEST(test_register_again)
{
    struct service *s = SERVICE();
    struct service_agent *w0 = service_agent(s, "worker", 0);
    struct service_agent *w1 = service_task(s, "worker", 1);

    expect_ok(w0, service_register(w0, false, 0));
    service_run_until(s, 250);
    expect_ok(w0, service_register(w0, false, 0));
    service_run_until(s, 549);
    expect_state(w1, "worker:0", "connected");
    service_run_until(s, 550);
    expect_state(w1, "worker:0", "suspect");
    service_end(s);
}

/* Every node hears where the service is as soon as it is up. */
TEST(test_service_here)
{
    struct service *s = SERVICE();
    struct service_agent *w0 = service_agent(s, "worker", 0);
    char text[160];

    assert_int_equal(w0->counts[MU__SERVICE_HERE], 1);
    w0->notes_hosts = true;
    service_agent_restart(w0);
    (void)snprintf(text, sizeof text,
                   "[    0] service_here leads=yes epoch=1 store=%" PRIu64 "\n",
                   service_state(s, 0)->number);
    expect_said(w0, text);
    service_end(s);
}

/* The host's own agent is beside it, without a link. */
TEST(test_at_home)
{
    struct service *s = SERVICE();
    struct service_agent *chief = service_task(s, "chief", 0);

    service_run_until(s, 500);
    expect_state(chief, "chief:0", "connected");
    chief->beats = false;
    service_run_until(s, 801);
    /* Asking is a sign of life. */
    expect_state(chief, "chief:0", "connected");
    service_run_until(s, 1701);
    expect_error(chief, service_tasks_get(chief, MU__TASKS_STATES, "", 0, 0),
                 -MU_EUNAVAILABLE,
                 "/job:chief/task:0 has been silent for 900 ms: it must register again");
    expect_ok(chief, service_register(chief, false, 0));
    service_end(s);
}

/* Tasks that are not coordinated come and go, and nobody waits for them. */
TEST(test_guests)
{
    struct service *s = SERVICE(.tasks = "worker:0", .recoverable = "none");
    struct service_agent *evaluator = service_task(s, "evaluator", 0);
    struct service_agent *joined = service_task(s, "worker", 7);
    struct service_agent *w0 = service_agent(s, "worker", 0);

    expect_ok(w0, service_register(w0, true, 1000));
    expect_state(joined, "evaluator:0", "connected");
    w0->beats = true;
    service_agent_crash(evaluator);
    service_run_until(s, 2000);
    expect_state(w0, "evaluator:0", "error");
    expect_said(joined, "");
    expect_ok(w0, service_tasks_get(w0, MU__TASKS_WAIT, "", 0, 100));
    service_end(s);
}

TEST(test_devices_refused)
{
    struct service *s = SERVICE();
    struct service_agent *w0 = service_agent(s, "worker", 0);
    mu_value *list = mu_value_list();
    struct mu__packed packed;
    struct mu__buf *buf = mu__pack_value(list, &packed);

    TELL(w0, TASK_REGISTER, task_register, .token = 1, .devices = packed);
    expect_error(w0, 1, -MU_EINVALID, "devices of /job:worker/task:0 are no map");
    w0->token = 2;
    TELL(w0, TASK_REGISTER, task_register, .token = 2, .devices = {"\xc1", NULL, 1, 0});
    expect_error(w0, 2, -MU_EINVALID,
                 "devices of /job:worker/task:0: value, byte 0: expected a value, found "
                 "a byte that is not msgpack");
    expect_error(w0, service_tasks_get(w0, MU__TASKS_STATES, "", 0, 0), -MU_EPRECONDITION,
                 "/job:worker/task:0 is not registered at /job:chief/task:0");
    mu__buf_unref(buf);
    mu_value_free(list);
    service_end(s);
}

/* ---- restarts ---- */

TEST(test_restart_recoverable)
{
    struct service *s = SERVICE();
    struct service_agent *w0 = service_task(s, "worker", 0);
    struct service_agent *w1 = service_task(s, "worker", 1);

    service_run_until(s, 100);
    service_agent_restart(w0);
    expect_state(w1, "worker:0", "suspect");
    expect_ok(w0, service_register(w0, false, 0));
    expect_state(w1, "worker:0", "connected");
    expect_said(w1, "");
    service_end(s);
}

TEST(test_restart_shares_fate)
{
    struct service *s = SERVICE(.recoverable = "none");
    struct service_agent *w0 = service_task(s, "worker", 0);
    struct service_agent *w1 = service_task(s, "worker", 1);

    service_run_until(s, 100);
    service_agent_restart(w0);
    expect_error(w0, service_register(w0, false, 0), -MU_EABORTED,
                 "/job:worker/task:0 was registered with another incarnation: it was "
                 "restarted, and must be reset first");
    expect_said(w1, "[  100] task_error code=14 message=\"/job:worker/task:0 was "
                    "restarted\" task=\"/job:worker/task:0\"\n");
    expect_error(w0, service_register(w0, false, 0), -MU_EABORTED,
                 "/job:worker/task:0 is in error and must be reset first: "
                 "/job:worker/task:0 was restarted");
    expect_error(w0, service_tasks_get(w0, MU__TASKS_STATES, "", 0, 0), -MU_EUNAVAILABLE,
                 "/job:worker/task:0 was restarted");
    expect_ok(w0, service_reset(w0));
    expect_ok(w0, service_register(w0, false, 0));
    service_end(s);
}

/* ---- registering together ---- */

TEST(test_register_barrier)
{
    struct service *s = SERVICE(.tasks = "worker:0-2");
    struct service_agent *agents[3];
    uint64_t tokens[3];

    for (uint32_t i = 0; i < 3; i++) {
        service_run_until(s, 100 * i);
        agents[i] = service_agent(s, "worker", i);
        tokens[i] = service_register(agents[i], true, 5000);
        if (i < 2)
            expect_waits(agents[i], tokens[i]);
    }
    for (uint32_t i = 0; i < 3; i++) {
        expect_ok(agents[i], tokens[i]);
        assert_int_equal(service_answered_ms(agents[i], tokens[i]), 200);
    }
    /* From now on it passes at once. */
    expect_ok(agents[1], service_register(agents[1], true, 5000));
    service_end(s);
}

TEST(test_register_barrier_late)
{
    struct service *s = SERVICE(.tasks = "chief:0,worker:0-8");
    struct service_agent *w0 = service_agent(s, "worker", 0);
    struct service_agent *w1 = service_task(s, "worker", 1);
    uint64_t token = service_register(w0, true, 500);

    w0->beats = true;
    w1->beats = false;
    service_run_until(s, 100);
    service_agent_crash(w1);
    service_run_until(s, 499);
    expect_waits(w0, token);
    service_run_until(s, 500);
    expect_error(w0, token, -MU_EDEADLINE,
                 "2 of 10 tasks have registered after 500 ms; missing: "
                 "/job:chief/task:0 (never registered), /job:worker/task:2 (never "
                 "registered), /job:worker/task:3 (never registered), "
                 "/job:worker/task:4 (never registered), /job:worker/task:5 (never "
                 "registered) and 3 more");
    /* It is registered all the same. */
    expect_state(w0, "worker:0", "connected");
    service_run_until(s, 700);
    token = service_register(w0, true, 100);
    service_run_until(s, 800);
    assert_int_equal(service_answered_ms(w0, token), 800);
    service_end(s);
}

/* Where fate is shared, not all coming is the failure of those who came. */
TEST(test_register_barrier_shares_fate)
{
    struct service *s = SERVICE(.tasks = "worker:0-2", .recoverable = "none");
    struct service_agent *w0 = service_agent(s, "worker", 0);
    struct service_agent *w1 = service_agent(s, "worker", 1);
    uint64_t waits = service_register(w0, true, 500);
    uint64_t waits_longer = service_register(w1, true, 5000);

    w0->beats = w1->beats = true;
    service_run_until(s, 500);
    expect_error(w0, waits, -MU_EDEADLINE,
                 "2 of 3 tasks have registered after 500 ms; missing: "
                 "/job:worker/task:2 (never registered)");
    expect_waits(w1, waits_longer);
    expect_said(w1, "[  500] task_error code=4 message=\"2 of 3 tasks have registered "
                    "after 500 ms; missing: /job:worker/task:2 (never registered)\" "
                    "task=\"/job:worker/task:0\"\n");
    expect_state(w1, "worker:0", "error");
    service_end(s);
}

TEST(test_register_barrier_replaced)
{
    struct service *s = SERVICE(.tasks = "worker:0-1", .recoverable = "none");
    struct service_agent *older = service_agent(s, "worker", 0);
    struct service_agent *newer = service_agent(s, "worker", 0);
    struct service_agent *w1;
    uint64_t waits = service_register(older, true, 5000);
    uint64_t passes = service_register(newer, true, 5000);

    expect_error(older, waits, -MU_EEXISTS,
                 "/job:worker/task:0 has registered with another incarnation, which "
                 "takes the place of this one");
    expect_waits(newer, passes);
    w1 = service_agent(s, "worker", 1);
    expect_ok(w1, service_register(w1, true, 5000));
    expect_ok(newer, passes);
    (void)service_text(older);
    service_heartbeat(older, 0);
    expect_said(older, "[    0] task_heard epoch=1 code=10 message=\"/job:worker/task:0 "
                       "is registered with another incarnation\"\n");
    service_end(s);
}

/* ---- heartbeats ---- */

TEST(test_heartbeats)
{
    struct service *s = SERVICE();
    struct service_agent *w0 = service_agent(s, "worker", 0);

    w0->notes_beats = true;
    service_heartbeat(w0, 0);
    expect_said(w0, "[    0] task_heard epoch=1 code=9 message=\"/job:worker/task:0 is "
                    "not registered at /job:chief/task:0\"\n");
    expect_ok(w0, service_register(w0, false, 0));
    (void)service_text(w0);
    service_heartbeat(w0, 0);
    expect_said(w0, "[    0] task_heard epoch=1\n");

    /* One that crosses its leaving counts, a late one does not. */
    expect_ok(w0, service_leave(w0, 0));
    (void)service_text(w0);
    service_run_until(s, 899);
    service_heartbeat(w0, 0);
    expect_said(w0, "[  899] task_heard epoch=1\n");
    service_run_until(s, 900);
    service_heartbeat(w0, 0);
    expect_said(w0, "[  900] task_heard epoch=1 code=3 message=\"/job:worker/task:0 has "
                    "left and is no longer registered\"\n");
    service_end(s);
}

TEST(test_heartbeat_in_error)
{
    struct service *s = SERVICE();
    struct service_agent *w0 = service_task(s, "worker", 0);

    expect_ok(w0, service_report(w0, -MU_EDATALOSS, "a bad disk"));
    (void)service_text(w0);
    service_heartbeat(w0, 0);
    expect_said(w0, "[    0] task_heard epoch=1 code=10 message=\"a bad disk\"\n");
    service_end(s);
}

/* ---- leaving ---- */

TEST(test_leave)
{
    struct service *s = SERVICE();
    struct service_agent *w0 = service_task(s, "worker", 0);
    struct service_agent *w1 = service_task(s, "worker", 1);
    uint64_t waits = service_tasks_get(w0, MU__TASKS_WAIT, "", 0, 0);

    expect_ok(w0, service_leave(w0, 0));
    expect_error(w0, waits, -MU_EPRECONDITION,
                 "/job:worker/task:0 is no longer registered");
    expect_state(w1, "worker:0", "disconnected");
    expect_error(w0, service_leave(w0, 0), -MU_EPRECONDITION,
                 "/job:worker/task:0 has left and is no longer registered");

    /* Its end means nothing to others. */
    service_agent_crash(w0);
    service_run_until(s, 2000);
    expect_state(w1, "worker:0", "disconnected");
    service_end(s);
}

TEST(test_leave_in_error)
{
    struct service *s = SERVICE();
    struct service_agent *w0 = service_task(s, "worker", 0);
    struct service_agent *w1 = service_task(s, "worker", 1);

    expect_ok(w0, service_report(w0, -MU_EDATALOSS, "a bad disk"));
    expect_error(w0, service_leave(w0, 0), -MU_EPRECONDITION,
                 "/job:worker/task:0 leaves in error: a bad disk");
    expect_state(w1, "worker:0", "disconnected");
    service_end(s);
}

/* A process that ends well says that its task leaves, and waits for nobody: no setting
 * makes that a failure, and who leaves together does not miss it. */
TEST(test_leave_now)
{
    static const char *const recoverable[] = {"all", "none"};

    for (size_t i = 0; i < 2; i++) {
        struct service *s =
            SERVICE(.recoverable = recoverable[i], .leave_ms = (uint32_t)i * 10000);
        struct service_agent *chief = service_task(s, "chief", 0);
        struct service_agent *w0 = service_task(s, "worker", 0);
        struct service_agent *w1 = service_task(s, "worker", 1);
        uint64_t token;

        service_run_until(s, 100);
        token = service_leave(chief, 0);
        (void)service_leave_now(w0);
        service_agent_crash(w0);
        service_run_until(s, 3000);
        expect_state(w1, "worker:0", "disconnected");
        assert_int_equal(w1->counts[MU__TASK_ERROR], 0);
        if (i == 1)
            expect_waits(chief, token);
        (void)service_leave_now(w1);
        expect_ok(chief, token);
        service_end(s);
    }
}

TEST(test_leave_together)
{
    struct service *s = SERVICE(.tasks = "chief:0,ps:0,worker:0-1", .recoverable = "ps",
                                .leave_ms = 1000);
    struct service_agent *chief = service_task(s, "chief", 0);
    struct service_agent *w0 = service_task(s, "worker", 0);
    struct service_agent *w1 = service_task(s, "worker", 1);
    struct service_agent *ps = service_task(s, "ps", 0);
    uint64_t first;
    uint64_t second;

    service_run_until(s, 100);
    first = service_leave(w0, 0);
    service_run_until(s, 300);
    second = service_leave(chief, 0);
    expect_waits(w0, first);
    expect_waits(chief, second);
    /* A recoverable task leaves when it wants to. */
    expect_ok(ps, service_leave(ps, 0));
    service_run_until(s, 400);
    expect_ok(w1, service_leave(w1, 0));
    expect_ok(w0, first);
    expect_ok(chief, second);
    assert_int_equal(service_answered_ms(w0, first), 400);
    service_agent_crash(w0);
    service_run_until(s, 3000);
    assert_int_equal(w1->counts[MU__TASK_ERROR], 0);
    service_end(s);
}

#define LEAVE_LATE \
    "tasks could not leave together: 1000 ms are over; 1 of 3 were leaving, missing: "

TEST(test_leave_late)
{
    struct service *s = SERVICE(.recoverable = "none", .leave_ms = 1000);
    struct service_agent *chief = service_task(s, "chief", 0);
    struct service_agent *w0 = service_task(s, "worker", 0);
    uint64_t token;

    service_run_until(s, 100);
    token = service_leave(w0, 0);
    service_run_until(s, 1099);
    expect_waits(w0, token);
    chief->beats = false;
    service_run_until(s, 1100);
    expect_error(w0, token, -MU_EINTERNAL,
                 LEAVE_LATE "/job:worker/task:1 (never registered), "
                            "/job:chief/task:0 (last heard 100 ms ago)");
    expect_said(chief, "[ 1100] task_error code=13 message=\"/job:chief/task:0 did not "
                       "leave with the others\" task=\"/job:chief/task:0\" own=yes\n");
    expect_error(chief, service_leave(chief, 0), -MU_EPRECONDITION,
                 "/job:chief/task:0 leaves in error: /job:chief/task:0 did not leave "
                 "with the others");
    service_end(s);
}

TEST(test_leave_own_limit)
{
    struct service *s = SERVICE(.recoverable = "none", .leave_ms = 1000);
    struct service_agent *chief = service_task(s, "chief", 0);
    struct service_agent *w0 = service_task(s, "worker", 0);
    uint64_t token = service_leave(w0, 250);

    service_run_until(s, 250);
    expect_error(w0, token, -MU_EDEADLINE,
                 "the others have not left after 250 ms; 2 are missing: "
                 "/job:worker/task:1 (never registered), /job:chief/task:0 (last heard "
                 "50 ms ago)");
    /* It is there still, and not leaving any more. */
    expect_state(chief, "worker:0", "connected");
    service_run_until(s, 2000);
    expect_state(chief, "worker:0", "connected");
    service_end(s);
}

TEST(test_leave_spoilt)
{
    struct service *s = SERVICE(.recoverable = "none", .leave_ms = 10000);
    struct service_agent *chief = service_task(s, "chief", 0);
    struct service_agent *w0 = service_task(s, "worker", 0);
    struct service_agent *w1 = service_task(s, "worker", 1);
    uint64_t token = service_leave(w0, 0);

    service_run_until(s, 100);
    w1->beats = false;
    service_run_until(s, 1000);
    expect_error(w0, token, -MU_EINTERNAL,
                 "tasks could not leave together: /job:worker/task:1 has failed; 1 of 3 "
                 "were leaving, missing: /job:worker/task:1 (in error, last heard 900 "
                 "ms ago), /job:chief/task:0 (last heard 100 ms ago)");
    assert_int_equal(service_answered_ms(w0, token), 1000);

    /* With one in error it cannot begin. */
    expect_error(chief, service_leave(chief, 0), -MU_EINTERNAL,
                 "tasks could not leave together: /job:worker/task:1 is in error; 1 of 3 "
                 "were leaving, missing: /job:worker/task:1 (in error, last heard 900 "
                 "ms ago)");
    service_end(s);
}

/* What came over a link that broke is asked again. */
TEST(test_leave_link)
{
    struct service *s =
        SERVICE(.tasks = "worker:0-1", .recoverable = "none", .leave_ms = 5000);
    struct service_agent *w0 = service_task(s, "worker", 0);
    struct service_agent *w1 = service_task(s, "worker", 1);
    uint64_t first = service_leave(w0, 0);
    uint64_t second;

    service_link_down(w0, 0, "connection reset");
    service_link_up(w0, 0);
    second = service_leave(w1, 0);
    expect_waits(w1, second);
    TELL(w0, TASK_LEAVE, task_leave, .token = first);
    expect_ok(w0, first);
    expect_ok(w1, second);
    service_end(s);
}

TEST(test_leave_reset)
{
    struct service *s =
        SERVICE(.tasks = "worker:0-1", .recoverable = "none", .leave_ms = 5000);
    struct service_agent *w0 = service_task(s, "worker", 0);
    struct service_agent *w1 = service_task(s, "worker", 1);
    uint64_t token = service_leave(w0, 0);

    expect_ok(w1, service_reset(w1));
    expect_error(w0, token, -MU_EINTERNAL,
                 "tasks could not leave together: /job:worker/task:1 was reset; 1 of 2 "
                 "were leaving, missing: /job:worker/task:1 (has left, last heard 0 ms "
                 "ago)");
    service_end(s);
}

TEST_PROGRAM()
