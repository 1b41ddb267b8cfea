/* Runs of a job over a store that lasts, in virtual time: what another run has of the
 * one before (keys alone), what a run has that goes on (all of its own), and who is let
 * in. The host's process is killed at the end of each part of a story, unless it says
 * otherwise; what is a new process of a task has another incarnation. */
#include "tests/support/service/runs.h"

static uint64_t close_host(struct service_agent *agent)
{
    TELL(agent, RUN_END, run_end, .token = ++agent->token, .closing = true);
    return agent->token;
}

static void expect_refused(struct service_agent *agent, uint64_t token, const char *words)
{
    const struct service_said *said = service_answer(agent, MU__TASKS_ANSWER, token);
    const struct mu__tasks_answer *answer;

    assert_non_null(said);
    answer = (const void *)said->msg->body;
    if (strstr((const char *)answer->message.data, words) == NULL)
        fail_msg("%.*s", (int)answer->message.size, (const char *)answer->message.data);
    assert_int_equal(answer->code, MU_EABORTED);
}

/* ---- barriers ---- */

TEST_WITH(test_barrier_waits_in_the_next_run, forget, NULL)
{
    struct job job = begin();

    assert_string_equal(present(&job)->name, "run-1");
    pass(&job, "start");
    expect_ok(job.chief, end_run(job.chief, 0, ""));
    assert_int_equal(present(&job)->state, MU__RUN_ENDED);
    restart_all(&job);
    assert_string_equal(present(&job)->name, "run-2");
    pass(&job, "start"); /* and each of them had to wait for all */
    service_end(job.s);
}

TEST_WITH(test_failed_barrier_does_not_poison_the_next_run, forget, NULL)
{
    struct job job = begin();
    uint64_t token;

    token = arrive(job.w0, "start", 50);
    service_run(job.s, 60);
    expect_passed(job.w0, token, -MU_EDEADLINE);
    expect_ok(job.chief, end_run(job.chief, -MU_EDEADLINE, "barrier \"start\": missing"));
    assert_int_equal(present(&job)->state, MU__RUN_FAILED);
    assert_int_equal(present(&job)->code, -MU_EDEADLINE);
    restart_all(&job);
    pass(&job, "start");
    service_end(job.s);
}

/* ---- preemption ---- */

TEST_WITH(test_preempted_run_does_not_stop_the_next, forget, NULL)
{
    struct job job = begin();

    preempt(&job);
    expect_ok(job.chief, end_run(job.chief, 0, ""));
    restart_all(&job);
    service_run(job.s, 1000);
    assert_null(service_next(job.w0, MU__PREEMPT_REQUEST));
    assert_int_equal(count_below(&job, "_muster/run/2"), 0);
    preempt(&job); /* and it may be preempted, too */
    service_end(job.s);
}

TEST_WITH(test_notice_stays_with_the_run_that_goes_on, forget, NULL)
{
    struct job job = begin();

    preempt(&job);
    restart_host(&job);
    service_agent_restart(job.w0);
    (void)service_register(job.w0, false, 0);
    assert_non_null(service_next(job.w0, MU__PREEMPT_REQUEST));
    service_end(job.s);
}

TEST_WITH(test_notice_by_key_goes_with_its_run, forget, NULL)
{
    struct job job = begin();

    (void)put(job.w0, MU__KEY_PREEMPTION, "rack 7");
    expect_ok(job.chief, end_run(job.chief, 0, ""));
    restart_all(&job);
    assert_false(has_key(&job, MU__KEY_PREEMPTION));
    service_end(job.s);
}

/* ---- functions ---- */

/* What independent tasks tell each other is about one run; that a function has failed is
 * what the run comes to, even if its processes were killed before they said so. */
TEST_WITH(test_failed_function_does_not_fail_the_next_run, forget, NULL)
{
    struct job job = begin();

    (void)put(job.w0, "muster/distribute/0/failed", "x");
    (void)put(job.w0, "muster/distribute/0/result/job:worker/task:0", "y");
    (void)put(job.w0, "rate", "0.1");
    restart_all(&job);
    assert_string_equal(present(&job)->name, "run-2");
    assert_int_equal(count_below(&job, "muster/distribute"), 0);
    assert_true(has_key(&job, "rate"));
    service_end(job.s);
}

TEST_WITH(test_results_stay_with_the_run_that_goes_on, forget, NULL)
{
    struct job job = begin();
    uint64_t token;

    (void)put(job.w0, "muster/distribute/0/result/job:worker/task:0", "y");
    TELL(job.w1, KEY_INCREMENT, key_increment, .token = ++job.w1->token,
         .key = mu__view_str("count"), .by = 5);
    token = job.w1->token;
    service_forget_said(job.w1);
    restart_host(&job);
    assert_true(has_key(&job, "muster/distribute/0/result/job:worker/task:0"));
    come_back(job.w1);
    TELL(job.w1, KEY_INCREMENT, key_increment, .token = token,
         .key = mu__view_str("count"), .by = 5);
    assert_int_equal(((const struct mu__key_done *)(const void *)service_answer(
                          job.w1, MU__KEY_DONE, token)
                          ->msg->body)
                         ->number,
                     5);
    service_end(job.s);
}

/* ---- names ---- */

TEST_WITH(test_named_run_goes_on_or_begins, forget, NULL)
{
    struct job job;

    wanted = "a";
    job = begin();
    pass(&job, "start");
    expect_ok(job.chief, end_run(job.chief, 0, ""));
    restart_all(&job);
    assert_int_equal(present(&job)->number, 1);
    assert_int_equal(present(&job)->state, MU__RUN_RUNNING);
    pass(&job, "start");
    wanted = "b"; /* which had not begun, so a is left as it is */
    restart_all(&job);
    assert_int_equal(present(&job)->number, 2);
    pass(&job, "start");
    service_end(job.s);
}

TEST_WITH(test_host_of_a_former_run_does_not_lead, forget, NULL)
{
    struct job job;

    wanted = "a";
    job = begin();
    wanted = "b";
    restart_all(&job);
    wanted = "a";
    restart_host(&job);
    service_run(job.s, 5000);
    assert_false(service_state(job.s, 0)->leads);
    assert_non_null(strstr(service_state(job.s, 0)->reason, "run \"a\" is over"));
    wanted = "b"; /* nothing has come of that */
    restart_all(&job);
    assert_string_equal(present(&job)->name, "b");
    assert_int_equal(present(&job)->number, 2);
    service_end(job.s);
}

/* A host that takes over goes on with the run that its own task is in. */
TEST_WITH(test_fail_over_goes_on_with_an_ended_run, forget, NULL)
{
    struct job job = begin();

    pass(&job, "start");
    expect_ok(job.chief, end_run(job.chief, 0, ""));
    own = (struct mu__own_run){service_state(job.s, 0)->number, 1};
    restart_host(&job);
    come_back(job.w1);
    restart_task(job.w0);
    assert_int_equal(present(&job)->number, 1);
    assert_int_equal(present(&job)->state, MU__RUN_ENDED);
    expect_passed(job.w0, arrive(job.w0, "start", 0), 0);
    own = (struct mu__own_run){0};
    wanted = "next";
    restart_all(&job);
    own = (struct mu__own_run){service_state(job.s, 0)->number, 1};
    wanted = NULL;
    restart_host(&job);
    service_run(job.s, 2000);
    assert_false(service_state(job.s, 0)->leads);
    assert_non_null(strstr(service_state(job.s, 0)->reason, "belongs to run 1"));
    service_end(job.s);
}

/* ---- who is let in ---- */

static uint64_t register_for(struct service_agent *agent, uint64_t run, const char *name)
{
    TELL(agent, TASK_REGISTER, task_register, .token = ++agent->token, .run = run,
         .run_name = mu__view_str(name));
    return agent->token;
}

TEST_WITH(test_task_of_a_former_run_is_told, forget, NULL)
{
    struct service_agent *client;
    struct job job = begin();

    expect_ok(job.chief, end_run(job.chief, 0, ""));
    restart_host(&job);
    service_link_up(job.w0, 0);
    expect_refused(job.w0, register_for(job.w0, 1, ""),
                   "belongs to a former run of the job (number 1), and the service is in "
                   "run \"run-2\"");
    expect_refused(job.w0, register_for(job.w0, 0, "night"),
                   "was started for run \"night\" of the job, and the service is in run "
                   "\"run-2\"");
    expect_ok(job.w0, register_for(job.w0, 2, "run-2"));
    client = service_agent(job.s, "client", 3);
    expect_ok(client, register_for(client, 0, "night"));
    service_end(job.s);
}

/* Started for the next run, it has found the host of the last one at its end. */
TEST_WITH(test_task_that_comes_at_the_end_is_of_the_next_run, forget, NULL)
{
    const struct service_said *said;
    struct job job = begin();
    uint64_t token;

    expect_ok(job.chief, end_run(job.chief, 0, ""));
    service_agent_restart(job.w0);
    token = register_for(job.w0, 0, "");
    said = service_answer(job.w0, MU__TASKS_ANSWER, token);
    assert_int_equal(
        ((const struct mu__tasks_answer *)(const void *)said->msg->body)->run, 0);
    token = register_for(job.w1, 1, "");
    said = service_answer(job.w1, MU__TASKS_ANSWER, token);
    assert_int_equal(
        ((const struct mu__tasks_answer *)(const void *)said->msg->body)->run, 1);
    restart_host(&job);
    come_back(job.w0);
    service_link_up(job.w1, 0);
    expect_refused(job.w1, register_for(job.w1, 1, ""), "belongs to a former run");
    service_end(job.s);
}

TEST_WITH(test_only_the_leading_task_ends_a_run, forget, NULL)
{
    struct job job = begin();
    uint64_t token = end_run(job.w0, 0, "");

    assert_non_null(service_answer(job.w0, MU__TASKS_ANSWER, token));
    assert_int_equal(present(&job)->state, MU__RUN_RUNNING);
    (void)close_host(job.w0);
    assert_int_equal(present(&job)->state, MU__RUN_RUNNING);
    service_end(job.s);
}

/* ---- closed in order, without the job's end ---- */

TEST_WITH(test_closed_alone_is_the_end, forget, NULL)
{
    struct job job = begin();

    expect_ok(job.w0, service_leave(job.w0, 0));
    expect_ok(job.w1, service_leave(job.w1, 0));
    expect_ok(job.chief, close_host(job.chief));
    assert_int_equal(present(&job)->state, MU__RUN_CLOSED);
    restart_all(&job);
    assert_int_equal(present(&job)->number, 2);
    service_end(job.s);
}

/* The program of the host has said goodbye for its task before it closes the node. */
TEST_WITH(test_closed_after_its_task_has_left, forget, NULL)
{
    struct job job = begin();

    pass(&job, "start");
    expect_ok(job.w0, service_leave(job.w0, 0));
    expect_ok(job.w1, service_leave(job.w1, 0));
    expect_ok(job.chief, service_leave(job.chief, 0));
    expect_ok(job.chief, close_host(job.chief));
    assert_int_equal(present(&job)->state, MU__RUN_CLOSED);
    restart_all(&job);
    assert_int_equal(present(&job)->number, 2);
    pass(&job, "start");
    service_end(job.s);
}

/* The others may live on, and are told what they did not hear; or all are new, and what
 * was over before is not for them. */
TEST_WITH(test_closed_among_others_goes_on, forget, NULL)
{
    struct job job = begin();
    uint64_t token;

    pass(&job, "start");
    preempt(&job);
    token = job.w1->token;
    expect_ok(job.chief, close_host(job.chief));
    assert_int_equal(present(&job)->state, MU__RUN_LEFT);
    service_forget_said(job.w1);
    restart_host(&job);
    assert_int_equal(present(&job)->number, 1);
    come_back(job.w1);
    TELL(job.w1, BARRIER_ARRIVE, barrier_arrive, .token = token,
         .name = mu__view_str("start"));
    expect_passed(job.w1, token, 0);
    restart_task(job.chief);
    restart_task(job.w0);
    assert_null(service_next(job.w0, MU__PREEMPT_REQUEST));
    expect_stays(job.w0, arrive(job.w0, "start", 0));
    service_end(job.s);
}

TEST_PROGRAM()
