/* Barriers that a former host has passed, and processes that began later, in virtual
 * time: who is told at once, who waits and until when; and that it is the same outcome in
 * each case. Three tasks; the chief is the host, whose process is killed with its task.
 *
 * Rows of cases:
 *
 *     the host was killed               who came later is told
 *     before there was an outcome       nothing: it runs anew, with those who come
 *     with some of that time living     at once, or when the first of these is back
 *     with all the others               when all have come, if their programs begin anew;
 *                                       else when who is missing waits elsewhere, has
 *                                       left or ended, or is silent for five minutes;
 *                                       at the latest when its timeout is over
 *     after a failure                   at once
 *     with a name used again            nothing: it joins the next generation */
#include "tests/support/service/runs.h"

enum { HERE_MS = 5 * 60 * 1000, LEFT_MS = 30 * 1000 };

static uint64_t arrive_at(struct service_agent *agent, const char *name,
                          uint64_t generation)
{
    TELL(agent, BARRIER_ARRIVE, barrier_arrive, .token = ++agent->token,
         .name = mu__view_str(name), .generation = generation);
    return agent->token;
}

static void expect_generation(struct service_agent *agent, uint64_t token,
                              uint64_t generation)
{
    const struct service_said *said = service_answer(agent, MU__BARRIER_PASSED, token);
    const struct mu__barrier_passed *body;

    assert_non_null(said);
    body = (const void *)said->msg->body;
    assert_int_equal(body->code, 0);
    assert_int_equal(body->generation, generation);
}

/* All have passed, all are new, and the first worker comes again. */
static uint64_t come_anew(struct job *job)
{
    pass(job, "start");
    restart_all(job);
    return arrive(job->w0, "start", 0);
}

static void fail_at(struct job *job, const char *name)
{
    uint64_t token = arrive(job->w0, name, 50);

    service_run(job->s, 60);
    expect_passed(job->w0, token, -MU_EDEADLINE);
}

/* ---- some of that time live ---- */

TEST_WITH(test_told_as_soon_as_one_is_back, forget, NULL)
{
    struct job job = begin();
    uint64_t chief;
    uint64_t w0;

    pass(&job, "start");
    restart_host(&job);
    restart_task(job.chief);
    restart_task(job.w0);
    w0 = arrive(job.w0, "start", 0);
    expect_stays(job.w0, w0);
    come_back(job.w1);
    expect_generation(job.w0, w0, 0);
    chief = arrive(job.chief, "start", 0);
    expect_generation(job.chief, chief, 0);
    service_end(job.s);
}

/* Whom it was told is one of its time, at the next host, too. */
TEST_WITH(test_told_is_passed_on, forget, NULL)
{
    struct job job = begin();
    uint64_t w1;

    pass(&job, "start");
    restart_host(&job);
    come_back(job.w1);
    restart_task(job.w0);
    expect_passed(job.w0, arrive(job.w0, "start", 0), 0);
    restart_host(&job);
    restart_task(job.w1);
    w1 = arrive(job.w1, "start", 0);
    expect_stays(job.w1, w1);
    come_back(job.w0);
    expect_passed(job.w1, w1, 0);
    service_end(job.s);
}

TEST_WITH(test_next_generation, forget, NULL)
{
    struct job job = begin();
    uint64_t chief;
    uint64_t w0;

    pass(&job, "round");
    restart_host(&job);
    come_back(job.w0);
    w0 = arrive_at(job.w0, "round", 1);
    restart_task(job.chief);
    chief = arrive(job.chief, "round", 0);
    come_back(job.w1);
    expect_stays(job.w0, w0);
    expect_stays(job.chief, chief);
    expect_generation(job.w1, arrive_at(job.w1, "round", 1), 1);
    expect_generation(job.w0, w0, 1);
    expect_generation(job.chief, chief, 1);
    service_end(job.s);
}

/* ---- all are new, and begin anew ---- */

TEST_WITH(test_all_meet_again, forget, NULL)
{
    struct job job = begin();

    pass(&job, "start");
    fail_at(&job, "late");
    for (int i = 0; i < 3; i++) {
        restart_all(&job);
        assert_string_equal(present(&job)->name, "run-1");
        pass(&job, "start");
        expect_passed(job.w1, arrive(job.w1, "late", 0), -MU_EDEADLINE);
    }
    service_end(job.s);
}

/* What was told once, and not heard, is told again; who is restarted then is told. */
TEST_WITH(test_met_again_is_over, forget, NULL)
{
    struct job job = begin();
    uint64_t token;

    pass(&job, "start");
    restart_all(&job);
    pass(&job, "start");
    token = job.w1->token;
    service_forget_said(job.w1);
    TELL(job.w1, BARRIER_ARRIVE, barrier_arrive, .token = token,
         .name = mu__view_str("start"));
    expect_generation(job.w1, token, 0);
    restart_task(job.w0);
    expect_generation(job.w0, arrive(job.w0, "start", 0), 0);
    restart_host(&job);
    come_back(job.w0);
    restart_task(job.w1);
    expect_generation(job.w1, arrive(job.w1, "start", 0), 0);
    service_end(job.s);
}

/* The host is killed among those who wait; one of them is restarted meanwhile. */
TEST_WITH(test_next_host_waits_too, forget, NULL)
{
    struct job job = begin();
    uint64_t w0;

    pass(&job, "start");
    restart_all(&job);
    (void)arrive(job.w0, "start", 0);
    (void)arrive(job.w1, "start", 0);
    restart_all(&job);
    w0 = arrive(job.w0, "start", 0);
    restart_task(job.w1);
    expect_stays(job.w0, w0);
    (void)arrive(job.w1, "start", 0);
    restart_task(job.w1);
    (void)arrive(job.chief, "start", 0);
    expect_stays(job.w0, w0);
    expect_passed(job.w1, arrive(job.w1, "start", 0), 0);
    expect_passed(job.w0, w0, 0);
    service_end(job.s);
}

/* A name that was used twice: who counts from the beginning joins the next generation. */
TEST_WITH(test_used_again, forget, NULL)
{
    struct job job = begin();
    uint64_t w0;

    pass(&job, "round");
    (void)arrive_at(job.chief, "round", 1);
    (void)arrive_at(job.w0, "round", 1);
    (void)arrive_at(job.w1, "round", 1);
    restart_all(&job);
    w0 = arrive_at(job.w0, "round", 0);
    (void)arrive_at(job.chief, "round", 0);
    expect_stays(job.w0, w0);
    expect_generation(job.w1, arrive_at(job.w1, "round", 0), 2);
    expect_generation(job.w0, w0, 2);
    service_end(job.s);
}

TEST_WITH(test_memory_knows_nothing, forget, NULL)
{
    struct job job = {.s = SERVICE(.configure = configure)};
    uint64_t w0;

    job.chief = service_task(job.s, "chief", 0);
    job.w0 = service_task(job.s, "worker", 0);
    job.w1 = service_task(job.s, "worker", 1);
    w0 = come_anew(&job);
    expect_stays(job.w0, w0);
    (void)arrive(job.chief, "start", 0);
    (void)arrive(job.w1, "start", 0);
    expect_generation(job.w0, w0, 0);
    service_end(job.s);
}

/* ---- all are new, and some have noted that they passed ---- */

/* The others wait where they were never before. */
TEST_WITH(test_others_have_gone_on, forget, NULL)
{
    struct job job = begin();
    uint64_t w0;
    uint64_t w1;

    pass(&job, "one");
    restart_all(&job);
    w1 = arrive(job.w1, "two", 0);
    w0 = arrive(job.w0, "one", 0);
    service_run(job.s, 900);
    expect_stays(job.w0, w0);
    service_run(job.s, 2000);
    expect_generation(job.w0, w0, 0);
    (void)arrive(job.chief, "two", 0);
    expect_stays(job.w1, w1);
    (void)arrive(job.w0, "two", 0);
    expect_generation(job.w1, w1, 0);
    service_end(job.s);
}

/* They wait at one that was passed later: theirs is not told before. */
TEST_WITH(test_others_are_further, forget, NULL)
{
    struct job job = begin();
    uint64_t chief;
    uint64_t w0;
    uint64_t w1;

    pass(&job, "one");
    pass(&job, "two");
    restart_all(&job);
    w1 = arrive(job.w1, "two", 0);
    chief = arrive(job.chief, "two", 0);
    w0 = arrive(job.w0, "one", 0);
    service_run(job.s, 3000);
    expect_generation(job.w0, w0, 0);
    expect_stays(job.w1, w1);
    expect_stays(job.chief, chief);
    expect_generation(job.w0, arrive(job.w0, "two", 0), 0);
    expect_generation(job.w1, w1, 0);
    expect_generation(job.chief, chief, 0);
    service_end(job.s);
}

/* It waits for others than those who are here. */
TEST_WITH(test_waiting_for_another_is_no_sign, forget, NULL)
{
    struct job job = begin();
    uint64_t w0;

    w0 = come_anew(&job);
    TELL(job.w1, BARRIER_ARRIVE, barrier_arrive, .token = ++job.w1->token,
         .name = mu__view_str("pair"), .tasks = mu__view_str("chief:0,worker:1"));
    service_run(job.s, 5000);
    expect_stays(job.w0, w0);
    TELL(job.chief, BARRIER_ARRIVE, barrier_arrive, .token = ++job.chief->token,
         .name = mu__view_str("pair"), .tasks = mu__view_str("chief:0,worker:1"));
    (void)arrive(job.chief, "start", 0);
    expect_stays(job.w0, w0);
    (void)arrive(job.w1, "start", 0);
    expect_passed(job.w0, w0, 0);
    service_end(job.s);
}

/* Left at the former host; and at this one. Who has come back has not left. */
TEST_WITH(test_one_has_left, forget, NULL)
{
    struct job job = begin();
    uint64_t w0;

    pass(&job, "end");
    expect_ok(job.w1, service_leave_now(job.w1));
    restart_host(&job);
    restart_task(job.chief);
    restart_task(job.w0);
    w0 = arrive(job.w0, "end", 0);
    service_run(job.s, LEFT_MS - 2000);
    expect_stays(job.w0, w0); /* the whole job may be starting */
    service_run(job.s, 4000);
    expect_passed(job.w0, w0, 0);
    restart_all(&job);
    assert_int_equal(count_below(&job, "_muster/run/1/left"), 0);
    w0 = arrive(job.w0, "end", 0);
    service_run(job.s, 2000);
    expect_stays(job.w0, w0);
    expect_ok(job.w1, service_leave_now(job.w1));
    service_run(job.s, 2000);
    expect_passed(job.w0, w0, 0);
    service_end(job.s);
}

TEST_WITH(test_one_is_silent, forget, NULL)
{
    struct job job = begin();
    uint64_t w0;

    pass(&job, "start");
    restart_host(&job);
    restart_task(job.chief);
    restart_task(job.w0);
    service_agent_crash(job.w1);
    w0 = arrive(job.w0, "start", 0);
    service_run(job.s, 3 * HERE_MS);
    expect_stays(job.w0, w0); /* as one waits for whoever has not begun */
    restart_task(job.w1);
    service_run(job.s, HERE_MS - 2000);
    expect_stays(job.w0, w0);
    service_run(job.s, 4000);
    expect_generation(job.w0, w0, 0);
    service_end(job.s);
}

/* ---- other ends: it is the outcome that was told all the same ---- */

TEST_WITH(test_timeout, forget, NULL)
{
    struct job job = begin();
    uint64_t w0;
    uint64_t w1;

    pass(&job, "start");
    restart_all(&job);
    w0 = arrive(job.w0, "start", 700);
    service_run(job.s, 690);
    expect_stays(job.w0, w0);
    service_run(job.s, 20);
    expect_generation(job.w0, w0, 0);
    w1 = arrive(job.w1, "start", 0);
    expect_generation(job.w1, w1, 0);
    service_end(job.s);
}

TEST_WITH(test_cancel, forget, NULL)
{
    struct job job = begin();
    const struct service_said *said;
    uint64_t w0;

    w0 = come_anew(&job);
    TELL(job.w0, BARRIER_CANCEL, barrier_cancel, .token = ++job.w0->token,
         .name = mu__view_str("start"));
    expect_generation(job.w0, w0, 0);
    said = service_answer(job.w0, MU__TASKS_ANSWER, job.w0->token);
    assert_non_null(said);
    assert_int_equal(
        ((const struct mu__tasks_answer *)(const void *)said->msg->body)->code,
        MU_EPRECONDITION);
    service_end(job.s);
}

TEST_WITH(test_failed_task, forget, NULL)
{
    struct job job = begin();
    uint64_t w0;

    w0 = come_anew(&job);
    expect_ok(job.w1, service_report(job.w1, -MU_EABORTED, "no disk"));
    expect_generation(job.w0, w0, 0);
    service_end(job.s);
}

/* Who names other tasks is refused alone; who is ahead has passed it. */
TEST_WITH(test_wrong_arrivals, forget, NULL)
{
    struct job job = begin();
    uint64_t w0;

    w0 = come_anew(&job);
    TELL(job.w1, BARRIER_ARRIVE, barrier_arrive, .token = ++job.w1->token,
         .name = mu__view_str("start"), .tasks = mu__view_str("worker:0-1"));
    expect_passed(job.w1, job.w1->token, -MU_EINVALID);
    expect_generation(job.w0, w0, 0);
    restart_all(&job);
    w0 = arrive(job.w0, "start", 0);
    (void)arrive_at(job.w1, "start", 1);
    expect_generation(job.w0, w0, 0);
    expect_stays(job.w1, job.w1->token);
    service_end(job.s);
}

TEST_PROGRAM()
