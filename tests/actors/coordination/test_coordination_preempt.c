/* Rounds of preemption, in virtual time: who is asked, where all stop, and what becomes
 * of a round whose tasks or host go. The host answers at once; tasks are suspect after
 * 300 ms of silence and dead after 900, or after 600 with a broken link. */
#include "tests/support/service/service.h"

#include "actors/coordination/preemption.h"
#include "actors/coordination/tasks.h"

enum { MINUTE_MS = 60 * 1000 };

static uint64_t notice(struct service_agent *agent, const char *reason, uint64_t grace_ms)
{
    TELL(agent, PREEMPT_NOTICE, preempt_notice, .token = ++agent->token,
         .reason = mu__view_str(reason), .grace_ms = grace_ms);
    return agent->token;
}

static void notice_again(struct service_agent *agent, uint64_t token)
{
    TELL(agent, PREEMPT_NOTICE, preempt_notice, .token = token);
}

/* What an agent says to PREEMPT_REQUEST; a negative step: it has none. */
static void step(struct service_agent *agent, uint64_t round, int64_t reached)
{
    TELL(agent, PREEMPT_STEP, preempt_step, .round = round, .counts = reached >= 0,
         .step = reached >= 0 ? (uint64_t)reached : 0);
}

static uint64_t put(struct service_agent *agent, const char *key, const char *value)
{
    TELL(agent, KEY_PUT, key_put, .token = ++agent->token, .key = mu__view_str(key),
         .value = mu__view_str(value), .flags = MU__PUT_OVERWRITE);
    return agent->token;
}

struct crew {
    struct service *s;
    struct service_agent *w0;
    struct service_agent *w1;
    struct service_agent *ps;
};

#define CREW(...)                         \
    crew_begin(&(struct service_options){ \
        .given = true, .tasks = "ps:0,worker:0-1", __VA_ARGS__})

static struct crew crew_begin(const struct service_options *options)
{
    struct crew crew = {.s = service_begin(options)};

    crew.w0 = service_task(crew.s, "worker", 0);
    crew.w1 = service_task(crew.s, "worker", 1);
    crew.ps = service_task(crew.s, "ps", 0);
    return crew;
}

#define expect_crew(crew, words)        \
    do {                                \
        expect_said((crew)->w0, words); \
        expect_said((crew)->w1, words); \
        expect_said((crew)->ps, words); \
    } while (0)

static void register_again(struct service_agent *agent)
{
    service_link_up(agent, 0);
    (void)service_register(agent, false, 0);
    agent->beats = true;
}

/* All are asked at once; one more than the largest step is where they stop. */
TEST(test_round)
{
    struct crew crew = CREW(.seed = 1);
    uint64_t token;

    service_run_until(crew.s, 100);
    token = notice(crew.w1, "spot instance", 30000);
    expect_crew(&crew, "[  100] preempt_request round=1 task=\"/job:worker/task:1\" "
                       "grace_ms=30000 reason=\"spot instance\"\n");
    step(crew.w0, 1, 70);
    step(crew.ps, 1, -1);
    service_run_until(crew.s, 150);
    expect_crew(&crew, "");
    step(crew.w1, 1, 64);
    expect_said(crew.w0, "[  150] preempt_stop round=1 step=71\n");
    expect_said(crew.ps, "[  150] preempt_stop round=1 step=71\n");
    expect_said(crew.w1, "[  150] preempt_stop round=1 step=71\n"
                         "[  150] tasks_answer token=2\n");
    /* Who gives the same notice again begins no other round; another one does. */
    notice_again(crew.w1, token);
    expect_said(crew.w1, "[  150] tasks_answer token=2\n");
    service_run_until(crew.s, 200);
    (void)notice(crew.w0, "", 0);
    expect_crew(&crew, "[  200] preempt_request round=2 task=\"/job:worker/task:0\"\n");
    step(crew.w0, 2, 71);
    step(crew.w1, 2, 71);
    step(crew.ps, 2, -1);
    expect_said(crew.ps, "[  200] preempt_stop round=2 step=72\n");
    service_end(crew.s);
}

/* Nobody has a step yet: the first is where they stop. */
TEST(test_no_steps)
{
    struct crew crew = CREW(.seed = 1);

    (void)notice(crew.ps, "", 0);
    step(crew.w0, 1, -1);
    step(crew.w1, 1, -1);
    step(crew.ps, 1, -1);
    (void)service_next(crew.w0, MU__PREEMPT_REQUEST);
    expect_said(crew.w0, "[    0] preempt_stop round=1\n");
    service_end(crew.s);
}

/* A program that puts the key does the same. */
TEST(test_key)
{
    struct crew crew = CREW(.seed = 1);

    (void)put(crew.w0, MU__KEY_PREEMPTION, "SIGTERM");
    (void)service_next(crew.w1, 0);
    expect_said(crew.ps, "[    0] preempt_request round=1 task=\"/job:worker/task:0\" "
                         "reason=\"SIGTERM\"\n");
    /* While the round runs, others who say so join it. */
    (void)put(crew.w1, MU__KEY_PREEMPTION, "SIGTERM");
    expect_said(crew.ps, "");
    service_end(crew.s);
}

/* Of two notices the first counts; both are answered when the round is over. */
TEST(test_two_notices)
{
    struct crew crew = CREW(.seed = 1);
    uint64_t first = notice(crew.w0, "first", 1000);
    uint64_t second = notice(crew.w1, "second", 500);

    expect_said(crew.ps, "[    0] preempt_request round=1 task=\"/job:worker/task:0\" "
                         "grace_ms=1000 reason=\"first\"\n");
    step(crew.w0, 1, 3);
    step(crew.w1, 1, 5);
    expect_waits(crew.w0, first);
    expect_waits(crew.w1, second);
    service_run_until(crew.s, 30);
    step(crew.ps, 1, 4);
    expect_ok(crew.w0, first);
    expect_ok(crew.w1, second);
    assert_int_equal(service_answered_ms(crew.w1, second), 30);
    expect_said(crew.ps, "[   30] preempt_stop round=1 step=6\n");
    service_end(crew.s);
}

/* Longer before its end than 15 minutes a task only says so; the round comes then. */
TEST(test_early)
{
    struct crew crew = CREW(.seed = 1);
    uint64_t token = notice(crew.w1, "maintenance", 20 * MINUTE_MS);

    expect_ok(crew.w1, token);
    expect_said(crew.w0, "");
    /* One that ends later changes nothing. */
    expect_ok(crew.ps, notice(crew.ps, "later", 25 * MINUTE_MS));
    (void)service_text(crew.w1);
    (void)service_text(crew.ps);
    service_run_until(crew.s, 5 * MINUTE_MS - 1);
    expect_crew(&crew, "");
    service_run_until(crew.s, 5 * MINUTE_MS);
    expect_crew(&crew, "[300000] preempt_request round=1 task=\"/job:worker/task:1\" "
                       "grace_ms=900000 reason=\"maintenance\"\n");
    step(crew.w0, 1, 1);
    step(crew.w1, 1, 2);
    step(crew.ps, 1, -1);
    expect_crew(&crew, "[300000] preempt_stop round=1 step=3\n");
    service_end(crew.s);
}

/* One that cannot wait goes before one that can. */
TEST(test_early_and_urgent)
{
    struct crew crew = CREW(.seed = 1);

    expect_ok(crew.w1, notice(crew.w1, "maintenance", 20 * MINUTE_MS));
    service_run_until(crew.s, 50);
    (void)notice(crew.ps, "spot", 30000);
    expect_said(crew.w0, "[   50] preempt_request round=1 task=\"/job:ps/task:0\" "
                         "grace_ms=30000 reason=\"spot\"\n");
    service_end(crew.s);
}

/* ---- tasks that go and come ---- */

/* A task that dies is not counted, whether it has said its step or not. */
TEST(test_deaths)
{
    struct crew crew = CREW(.seed = 1);

    service_run_until(crew.s, 1000);
    (void)notice(crew.w1, "", 0);
    step(crew.w0, 1, 10);
    step(crew.w1, 1, 99);
    service_agent_crash(crew.w1);
    service_agent_crash(crew.ps);
    service_run_until(crew.s, 1599);
    (void)service_next(crew.w0, MU__PREEMPT_REQUEST);
    expect_said(crew.w0, "");
    service_run_until(crew.s, 1600);
    expect_said(crew.w0, "[ 1600] preempt_stop round=1 step=11\n");
    service_end(crew.s);
}

TEST(test_comes_in_the_middle)
{
    struct service *s = SERVICE(.tasks = "worker:0-1");
    struct service_agent *w0 = service_task(s, "worker", 0);
    struct service_agent *w1;

    service_run_until(s, 100);
    (void)notice(w0, "spot", 10000);
    service_run_until(s, 150);
    w1 = service_agent(s, "worker", 1);
    (void)service_register(w1, false, 0);
    w1->beats = true;
    expect_said(w1, "[  150] preempt_request round=1 task=\"/job:worker/task:0\" "
                    "grace_ms=9950 reason=\"spot\"\n"
                    "[  150] tasks_answer token=1 since=1\n");
    step(w0, 1, 5);
    expect_waits(w0, 2);
    step(w1, 1, 8);
    expect_said(w1, "[  150] preempt_stop round=1 step=9\n");
    /* One that comes while the others are on their way hears of it, too. */
    service_agent_restart(w1);
    (void)service_register(w1, false, 0);
    w1->beats = true;
    expect_said(w1, "[  150] preempt_request round=1 task=\"/job:worker/task:0\" "
                    "grace_ms=9950 reason=\"spot\"\n"
                    "[  150] tasks_answer token=1 since=1\n");
    step(w1, 1, -1);
    expect_said(w1, "[  150] preempt_stop round=1 step=9\n");
    /* But not for ever. */
    service_run_until(s, 10200);
    service_agent_restart(w1);
    (void)service_register(w1, false, 0);
    expect_said(w1, "[10200] tasks_answer token=1 since=1\n");
    service_end(s);
}

/* A question or an answer that was lost with a link is said again. */
TEST(test_broken_link)
{
    struct crew crew = CREW(.seed = 1);

    service_run_until(crew.s, 100);
    service_link_down(crew.w1, 0, "connection reset");
    (void)notice(crew.w0, "", 0);
    step(crew.w0, 1, 4);
    step(crew.ps, 1, -1);
    service_run_until(crew.s, 200);
    register_again(crew.w1);
    expect_said(crew.w1, "[  200] preempt_request round=1 task=\"/job:worker/task:0\"\n"
                         "[  200] tasks_answer token=2 since=1\n");
    step(crew.w1, 1, 2);
    expect_said(crew.w1, "[  200] preempt_stop round=1 step=5\n");
    service_link_down(crew.w1, 0, "connection reset");
    register_again(crew.w1);
    step(crew.w1, 1, 2);
    expect_said(crew.w1, "[  200] tasks_answer token=3 since=1\n"
                         "[  200] preempt_stop round=1 step=5\n");
    service_end(crew.s);
}

/* ---- limits ---- */

/* One that has left is not waited for either while this host is new. */
TEST(test_left_while_the_host_is_new)
{
    struct crew crew = CREW(.seed = 1);

    service_run_until(crew.s, 100);
    (void)service_leave_now(crew.ps);
    (void)notice(crew.w0, "", 0);
    step(crew.w0, 1, 4);
    step(crew.w1, 1, 7);
    (void)service_next(crew.w1, MU__PREEMPT_REQUEST);
    expect_said(crew.w1, "[  100] preempt_stop round=1 step=8\n");
    service_end(crew.s);
}

/* Who gave notice waits for so long only, and hears who is missing; the round goes on. A
 * task that has left is not asked. */
TEST(test_limit_of_the_notice)
{
    struct crew crew = CREW(.seed = 1);
    uint64_t token;

    service_run_until(crew.s, 1000);
    (void)service_leave_now(crew.ps);
    token = ++crew.w0->token;
    TELL(crew.w0, PREEMPT_NOTICE, preempt_notice, .token = token, .timeout_ms = 400);
    step(crew.w0, 1, 4);
    service_run_until(crew.s, 1399);
    expect_waits(crew.w0, token);
    service_run_until(crew.s, 1400);
    expect_error(crew.w0, token, -MU_EDEADLINE,
                 "round 1 of preemption: after 400 ms these tasks have not reported the "
                 "step they have reached: /job:worker/task:1 (last heard 100 ms ago)");
    step(crew.w1, 1, 7);
    (void)service_next(crew.w1, MU__PREEMPT_REQUEST);
    expect_said(crew.w1, "[ 1400] preempt_stop round=1 step=8\n");
    service_end(crew.s);
}

TEST(test_limit)
{
    struct crew crew = CREW(.seed = 1);
    uint64_t token;

    service_run_until(crew.s, 1000);
    token = notice(crew.w0, "", 0);
    step(crew.w0, 1, 4);
    service_run_until(crew.s, 1000 + 3 * MINUTE_MS - 1);
    expect_waits(crew.w0, token);
    service_run_until(crew.s, 1000 + 3 * MINUTE_MS);
#define WORDS                                                                        \
    "round 1 of preemption: after 180000 ms these tasks have not reported the step " \
    "they have reached: /job:ps/task:0 (last heard 100 ms ago), "                    \
    "/job:worker/task:1 (last heard 100 ms ago)"
    expect_error(crew.w0, token, -MU_EDEADLINE, WORDS);
    (void)service_next(crew.w1, MU__PREEMPT_REQUEST);
    expect_said(crew.w1, "[181000] preempt_stop round=1 code=4 message=\"" WORDS "\"\n");
    /* Whoever says it later hears what came of it; and there can be another round. */
    step(crew.w1, 1, 4);
    expect_said(crew.w1, "[181000] preempt_stop round=1 code=4 message=\"" WORDS "\"\n");
#undef WORDS
    (void)notice(crew.w0, "", 0);
    expect_said(crew.w1,
                "[181000] preempt_request round=2 task=\"/job:worker/task:0\"\n");
    step(crew.w0, 2, 4);
    step(crew.w1, 2, 4);
    step(crew.ps, 2, -1);
    expect_said(crew.w1, "[181000] preempt_stop round=2 step=5\n");
    /* What belongs to a former round counts for nothing. */
    step(crew.w1, 1, 900);
    expect_said(crew.w1, "[181000] preempt_stop round=1 code=10 message=\"round 1 of "
                         "preemption: another round has begun since\"\n");
    service_end(crew.s);
}

/* ---- other hosts ---- */

/* The round goes on where it is known of, and does not end before all who live had time
 * to say their steps again. */
TEST(test_host_lost_in_the_middle)
{
    struct crew crew = CREW(.store = &mu__store_journal);

    service_run_until(crew.s, 100);
    (void)notice(crew.w0, "spot", 5000);
    step(crew.w0, 1, 12);
    service_run_until(crew.s, 200);
    service_crash(crew.s, 0);
    service_start(crew.s, 0);
    register_again(crew.w0);
    service_run_until(crew.s, 300);
    assert_int_equal(crew.w0->counts[MU__PREEMPT_REQUEST], 2);
    step(crew.w0, 1, 12);
    register_again(crew.w1);
    step(crew.w1, 1, 30);
    service_run_until(crew.s, 1099);
    assert_int_equal(crew.w0->counts[MU__PREEMPT_STOP], 0);
    /* The parameter server does not come. */
    (void)service_text(crew.w0);
    service_run_until(crew.s, 1150);
    expect_said(crew.w0, "[ 1100] preempt_stop round=1 step=31\n");
    service_end(crew.s);
}

/* What was agreed is what all are told, by the next host, too. */
TEST(test_outcome_outlives_host)
{
    struct crew crew = CREW(.store = &mu__store_journal);
    uint64_t token;

    token = notice(crew.w0, "spot", 60000);
    step(crew.w0, 1, 12);
    step(crew.w1, 1, 15);
    service_link_down(crew.w1, 0, "connection reset");
    step(crew.ps, 1, -1);
    service_run_until(crew.s, 50);
    assert_int_equal(crew.w0->counts[MU__PREEMPT_STOP], 1);
    assert_int_equal(crew.w1->counts[MU__PREEMPT_STOP], 0);
    service_crash(crew.s, 0);
    service_start(crew.s, 0);
    register_again(crew.w1);
    (void)service_text(crew.w1);
    step(crew.w1, 1, 15);
    expect_said(crew.w1, "[   50] preempt_stop round=1 step=16\n");
    /* The notice that began it is known, and the next round has the next number. */
    register_again(crew.w0);
    (void)service_text(crew.w0);
    notice_again(crew.w0, token);
    expect_said(crew.w0, "[   50] tasks_answer token=2\n");
    (void)notice(crew.w1, "", 0);
    expect_said(crew.w0, "[   50] preempt_request round=2 task=\"/job:worker/task:1\"\n");
    service_end(crew.s);
}

/* One that was to begin later begins with the next host: how much later is not known. */
TEST(test_early_outlives_host)
{
    struct crew crew = CREW(.store = &mu__store_journal);

    service_run_until(crew.s, 50);
    expect_ok(crew.w0, notice(crew.w0, "maintenance", 20 * MINUTE_MS));
    service_crash(crew.s, 0);
    service_start(crew.s, 0);
    register_again(crew.w1);
    service_run_until(crew.s, 60);
    assert_non_null(strstr(service_text(crew.w1), "preempt_request round=1 "
                                                  "task=\"/job:worker/task:0\""));
    service_end(crew.s);
}

/* A host that has lost its store knows of no round: those who wait are told. */
TEST(test_store_lost)
{
    struct crew crew = CREW(.seed = 1);

    (void)notice(crew.w0, "", 0);
    service_crash(crew.s, 0);
    service_start(crew.s, 0);
    register_again(crew.w1);
    (void)service_text(crew.w1);
    step(crew.w1, 1, 15);
    expect_said(crew.w1, "[    0] preempt_stop round=1 code=10 message=\"round 1 of "
                         "preemption: the host of the service was lost, and its store "
                         "with it\"\n");
    /* Its number is not used again. */
    (void)notice(crew.w1, "", 0);
    expect_said(crew.w1, "[    0] preempt_request round=2 task=\"/job:worker/task:1\"\n");
    service_end(crew.s);
}

TEST_PROGRAM()
