/* Barriers over several hosts and of many tasks, and who is alive. */
#include "actors/coordination/barriers/alive.h"
#include "tests/support/service/barriers.h"

#include <time.h>

#ifdef MUSTER_TINY
enum { MANY = 40 };
#else
enum { MANY = 1000 };
#endif

enum { CPU_MS_MAX = 200 };

static uint64_t alive(struct service_agent *agent, const char *tasks, uint64_t timeout_ms)
{
    return service_tasks_get(agent, MU__TASKS_ALIVE, tasks, 0, timeout_ms);
}

/* ---- many ---- */

TEST(test_warning)
{
    struct three t = THREE(.seed = 1);
    char name[16];

    if (MU__BARRIERS_MAX < 21) {
        service_end(t.s);
        skip();
    }
    for (int i = 0; i < 20; i++) {
        (void)snprintf(name, sizeof name, "b%d", i);
        (void)arrive(t.w0, name, 0, "", 0);
    }
    assert_null(strstr(sim_trace(t.s->sim), "barriers run at once"));
    (void)arrive(t.w0, "b20", 0, "", 0);
    assert_non_null(strstr(sim_trace(t.s->sim), "21 barriers run at once: do all tasks "
                                                "arrive at all of them?"));
    /* They do not disturb each other. */
    (void)arrive(t.w1, "b7", 0, "", 0);
    (void)arrive(t.w2, "b7", 0, "", 0);
    expect_said(t.w0, "[    0] barrier_passed token=9\n");
    service_end(t.s);
}

TEST(test_too_many)
{
    struct three t = THREE(.seed = 1);
    char name[16];
    uint64_t passed;

    t.s->options.fast = true;
    for (int i = 0; i < MU__BARRIERS_MAX; i++) {
        (void)snprintf(name, sizeof name, "b%d", i);
        (void)arrive(t.w0, name, 0, "worker:0", 0);
        service_settle(t.s);
    }
    passed = t.w0->counts[MU__BARRIER_PASSED];
    assert_int_equal(passed, MU__BARRIERS_MAX);
    t.s->options.fast = false;
    (void)service_text(t.w0);
    (void)arrive(t.w0, "more", 0, "worker:0", 0);
    assert_non_null(strstr(service_text(t.w0), "code=8 message=\"barrier \"more\": 0 "
                                               "barriers run and "));
    service_run_until(t.s, MU__BARRIER_KEEP_MS);
    (void)service_text(t.w0);
    (void)arrive(t.w0, "more", 0, "worker:0", 0);
    assert_non_null(strstr(service_text(t.w0), "barrier_passed token="));
    assert_int_equal(t.w0->counts[MU__BARRIER_PASSED], passed + 2);
    service_end(t.s);
}

/* A thousand tasks at one barrier: cheap. */
TEST(test_thousand)
{
    static struct service_agent *agents[MANY];
    struct service *s;
    double used_ms = 0;
    char tasks[32];

    (void)snprintf(tasks, sizeof tasks, "worker:0-%d", MANY - 1);
    s = SERVICE(.tasks = tasks, .fast = true);
    for (uint32_t i = 0; i < MANY; i++) {
        agents[i] = service_agent(s, "worker", i);
        (void)service_register(agents[i], false, 0);
        service_settle(s);
    }
    for (uint64_t generation = 0; generation < 10; generation++) {
        clock_t begin = clock();
        double ms;

        for (int i = 0; i < MANY; i++)
            (void)arrive(agents[i], "sync", generation, "", 0);
        service_settle(s);
        ms = 1000.0 * (double)(clock() - begin) / CLOCKS_PER_SEC;
        used_ms = generation == 0 || ms < used_ms ? ms : used_ms;
        for (int i = 0; i < MANY; i++)
            assert_int_equal(agents[i]->counts[MU__BARRIER_PASSED], generation + 1);
    }
    assert_true(used_ms < CPU_MS_MAX);
    service_end(s);
}

/* ---- other hosts ---- */

static void register_again(struct service_agent *agent)
{
    service_link_up(agent, 0);
    (void)service_register(agent, false, 0);
    agent->beats = true;
}

/* The host dies in the middle: nobody has been told anything, all ask again. */
TEST(test_host_lost_in_the_middle)
{
    struct three t = THREE(.store = &mu__store_journal);

    (void)arrive(t.w0, "sync", 0, "", 0);
    (void)arrive(t.w1, "sync", 0, "", 0);
    service_run_until(t.s, 100);
    service_crash(t.s, 0);
    service_run_until(t.s, 200);
    service_start(t.s, 0);
    register_again(t.w0);
    register_again(t.w1);
    register_again(t.w2);
    (void)arrive(t.w2, "sync", 0, "", 0);
    (void)service_text(t.w0);
    (void)service_text(t.w1);
    arrive_again(t.w0, 2, "sync", 0);
    service_run_until(t.s, 300);
    expect_said(t.w0, "");
    arrive_again(t.w1, 2, "sync", 0);
    service_run_until(t.s, 310);
    expect_said(t.w0, "[  300] barrier_passed token=2\n");
    expect_said(t.w1, "[  300] barrier_passed token=2\n");
    service_end(t.s);
}

/* The host dies when one was told and the others were not: all get the same, although
 * the one who knows it does not come again. */
static void expect_outlives_host(int code)
{
    struct three t = THREE(.store = &mu__store_journal);
    const char *words =
        code == 0 ? "[  200] barrier_passed token=2\n"
                  : "[  200] barrier_passed token=2 code=1 message=\"barrier \"sync\": "
                    "cancelled by /job:worker/task:0\" task=\"/job:worker/task:0\"\n";

    (void)arrive(t.w0, "sync", 0, "", 0);
    (void)arrive(t.w1, "sync", 0, "", 0);
    service_link_down(t.w1, 0, "connection reset");
    service_run_until(t.s, 100);
    if (code == 0)
        (void)arrive(t.w2, "sync", 0, "", 0);
    else
        (void)cancel(t.w0, "sync", 0);
    service_run_until(t.s, 150);
    assert_int_equal(t.w0->counts[MU__BARRIER_PASSED], 1);
    assert_int_equal(t.w1->counts[MU__BARRIER_PASSED], 0);
    service_crash(t.s, 0);
    service_run_until(t.s, 200);
    service_start(t.s, 0);
    register_again(t.w1);
    (void)service_text(t.w1);
    arrive_again(t.w1, 2, "sync", 0);
    expect_said(t.w1, words);
    /* Whoever was told may be one further already. */
    register_again(t.w0);
    (void)service_text(t.w0);
    (void)arrive(t.w0, "sync", 1, "", 0);
    (void)arrive(t.w1, "sync", 1, "", 0);
    expect_said(t.w0, "");
    service_end(t.s);
}

TEST(test_outcome_outlives_host)
{
    expect_outlives_host(0);
    expect_outlives_host(-MU_ECANCELLED);
}

/* A task that was away for longer than its peers needed for two more generations hears of
 * all of them, from another host. */
TEST(test_older_outcomes_outlive_host)
{
    struct three t = THREE(.store = &mu__store_journal);

    (void)arrive(t.w0, "a/b c", 0, "", 0);
    (void)arrive(t.w1, "a/b c", 0, "", 0);
    service_link_down(t.w1, 0, "connection reset");
    (void)arrive(t.w2, "a/b c", 0, "", 0);
    service_run_until(t.s, 10);
    (void)arrive(t.w0, "a/b c", 1, "", 20);
    service_run_until(t.s, 50);
    (void)arrive(t.w0, "a/b c", 2, "", 20);
    service_run_until(t.s, 100);
    service_crash(t.s, 0);
    service_start(t.s, 0);
    register_again(t.w1);
    (void)service_text(t.w1);
    arrive_again(t.w1, 2, "a/b c", 0);
    (void)arrive(t.w1, "a/b c", 1, "", 0);
    (void)arrive(t.w1, "a/b c", 2, "", 0);
    (void)arrive(t.w1, "a/b c", 3, "", 0);
    expect_said(t.w1, "[  100] barrier_passed token=2\n"
                      "[  100] barrier_passed token=4 code=4 message=\"barrier \"a/b "
                      "c\": 1 "
                      "of 3 tasks arrived in 20 ms, /job:worker/task:0 first; missing: "
                      "/job:worker/task:1 (last heard 30 ms ago), /job:worker/task:2 "
                      "(last heard 30 ms ago)\" error_kind=5 generation=1\n"
                      "[  100] barrier_passed token=5 code=4 message=\"barrier \"a/b "
                      "c\": 1 "
                      "of 3 tasks arrived in 20 ms, /job:worker/task:0 first; missing: "
                      "/job:worker/task:1 (last heard 70 ms ago), /job:worker/task:2 "
                      "(last heard 70 ms ago)\" error_kind=5 generation=2\n");
    service_end(t.s);
}

/* All but the store are restarted, and count from 0: what their former lives went through
 * lets nobody of them pass. */
static void expect_nothing_is_passed_again(const char *recoverable)
{
    struct three t = THREE(.store = &mu__store_journal, .recoverable = recoverable);
    struct service_agent *const agents[3] = {t.w0, t.w1, t.w2};

    for (uint64_t generation = 0; generation < 3; generation++)
        for (unsigned i = 0; i < 3; i++)
            (void)arrive(agents[i], "sync", generation, "", 0);
    service_crash(t.s, 0);
    service_run_until(t.s, 100);
    service_start(t.s, 0);
    for (unsigned i = 0; i < 3; i++) {
        service_agent_restart(agents[i]);
        expect_ok(agents[i], service_register(agents[i], false, 0));
        agents[i]->beats = true;
        (void)service_text(agents[i]);
    }
    (void)arrive(t.w0, "sync", 0, "", 0);
    (void)arrive(t.w1, "sync", 0, "", 0);
    service_run_until(t.s, 300);
    expect_said(t.w0, "");
    expect_said(t.w1, "");
    (void)arrive(t.w2, "sync", 0, "", 0);
    expect_said(t.w2, "[  300] barrier_passed token=2 generation=3\n");
    expect_said(t.w0, "[  300] barrier_passed token=2 generation=3\n");
    expect_said(t.w1, "[  300] barrier_passed token=2 generation=3\n");
    service_end(t.s);
}

TEST(test_restarted_with_their_host)
{
    expect_nothing_is_passed_again("all");
    expect_nothing_is_passed_again("none");
}

/* Tasks whose processes count from 0 join the fourth generation; the host is lost while
 * they wait, and once more when all are there and the last one alone was told. */
TEST(test_restarted_and_asked_again)
{
    struct three t = THREE(.store = &mu__store_journal);
    struct service_agent *const agents[3] = {t.w0, t.w1, t.w2};

    for (uint64_t generation = 0; generation < 3; generation++)
        for (unsigned i = 0; i < 3; i++)
            (void)arrive(agents[i], "sync", generation, "", 0);
    for (unsigned i = 0; i < 2; i++) {
        service_agent_restart(agents[i]);
        expect_ok(agents[i], service_register(agents[i], false, 0));
        agents[i]->beats = true;
        (void)arrive(agents[i], "sync", 0, "", 0);
    }
    service_crash(t.s, 0);
    service_run_until(t.s, 100);
    service_start(t.s, 0);
    for (unsigned i = 0; i < 3; i++) {
        register_again(agents[i]);
        (void)service_text(agents[i]);
    }
    arrive_again(t.w0, 2, "sync", 0);
    arrive_again(t.w1, 2, "sync", 0);
    service_run_until(t.s, 200);
    expect_said(t.w0, "");
    expect_said(t.w1, "");
    service_link_down(t.w0, 0, "connection reset");
    service_link_down(t.w1, 0, "connection reset");
    (void)arrive(t.w2, "sync", 3, "", 0);
    expect_said(t.w2, "[  200] barrier_passed token=6 generation=3\n");
    service_crash(t.s, 0);
    service_run_until(t.s, 300);
    service_start(t.s, 0);
    register_again(t.w0);
    (void)service_text(t.w0);
    arrive_again(t.w0, 2, "sync", 0);
    expect_said(t.w0, "[  300] barrier_passed token=2 generation=3\n");
    service_end(t.s);
}

/* The last one that was passed is passed for one that was restarted with the host, too:
 * the others have gone on. */
TEST(test_host_comes_back_to_the_last)
{
    struct three t = THREE(.store = &mu__store_journal);
    struct service_agent *const agents[3] = {t.w0, t.w1, t.w2};

    for (unsigned i = 0; i < 3; i++)
        (void)arrive(agents[i], "sync", 0, "", 0);
    service_crash(t.s, 0);
    service_run_until(t.s, 100);
    service_start(t.s, 0);
    service_agent_restart(t.w0);
    expect_ok(t.w0, service_register(t.w0, false, 0));
    (void)service_text(t.w0);
    (void)arrive(t.w0, "sync", 0, "", 0);
    expect_said(t.w0, "");
    register_again(t.w1);
    expect_said(t.w0, "[  100] barrier_passed token=2\n");
    service_end(t.s);
}

/* ---- who is alive ---- */

static const char *alive_text(const struct service_agent *agent, uint64_t token)
{
    static char text[512];
    mu_value *list = service_content(agent, token);

    text[0] = '\0';
    for (size_t i = 0; i < mu_value_count(list); i++) {
        const mu_value *map = mu_value_at(list, i);
        const char *task = "";
        const char *incarnation = "";
        size_t used = strlen(text);
        size_t size;

        (void)mu_value_get_string(mu_value_find(map, "task"), &task, &size);
        (void)mu_value_get_string(mu_value_find(map, "incarnation"), &incarnation, &size);
        (void)snprintf(text + used, sizeof text - used, "%s%s %s", i == 0 ? "" : ", ",
                       task + 5, incarnation);
    }
    mu_value_free(list);
    return text;
}

TEST(test_alive)
{
    struct three t = THREE(.seed = 1);
    uint64_t tokens[4];
    const char *all = "worker/task:0 0000000000000102, worker/task:1 0000000000000103, "
                      "worker/task:2 0000000000000104";

    tokens[0] = alive(t.w0, "", 0);
    tokens[1] = alive(t.w1, "worker:0-2", 0);
    tokens[3] = alive(t.w1, "", 0);
    service_run_until(t.s, 70);
    expect_said(t.w0, "");
    expect_waits(t.w0, tokens[0]);
    tokens[2] = alive(t.w2, "", 0);
    assert_string_equal(alive_text(t.w0, tokens[0]), all);
    assert_string_equal(alive_text(t.w1, tokens[1]), all);
    assert_string_equal(alive_text(t.w1, tokens[3]), all);
    assert_string_equal(alive_text(t.w2, tokens[2]), all);
    assert_int_equal(service_answered_ms(t.w0, tokens[0]), 70);
    /* The next question is another one. */
    tokens[0] = alive(t.w0, "", 0);
    expect_waits(t.w0, tokens[0]);
    service_end(t.s);
}

/* Sets are independent of each other. */
TEST(test_alive_sets)
{
    struct three t = THREE(.seed = 1);
    uint64_t all = alive(t.w0, "", 0);
    uint64_t two = alive(t.w0, "worker:0-1", 0);
    uint64_t token = alive(t.w1, "worker:0-1", 0);

    assert_string_equal(alive_text(t.w1, token), "worker/task:0 0000000000000102, "
                                                 "worker/task:1 0000000000000103");
    assert_string_equal(alive_text(t.w0, two), "worker/task:0 0000000000000102, "
                                               "worker/task:1 0000000000000103");
    expect_waits(t.w0, all);
    expect_error(t.w0, alive(t.w0, "worker:1-2", 0), -MU_EINVALID,
                 "/job:worker/task:0 is not one of its tasks");
    expect_error(t.w0, alive(t.w0, "worker:0,worker:5", 0), -MU_EINVALID,
                 "/job:worker/task:5 is not known to the cluster");
    service_end(t.s);
}

TEST(test_alive_of_one_task)
{
    struct three t = THREE(.seed = 1);
    uint64_t token = 0;
    char words[128];

    for (uint32_t i = 0; i < MU__ALIVE_OF_TASK_MAX; i++)
        token = alive(t.w0, "", 0);
    (void)snprintf(words, sizeof words,
                   "%d requests for live tasks of "
                   "/job:worker/task:0 wait already, as many as one task may have",
                   MU__ALIVE_OF_TASK_MAX);
    expect_error(t.w0, alive(t.w0, "", 0), -MU_EEXHAUSTED, words);
    (void)alive(t.w1, "", 0);
    (void)alive(t.w2, "", 0);
    expect_ok(t.w0, token);
    service_end(t.s);
}

/* Failures make it complete, and who registers is waited for. */
TEST(test_alive_failures)
{
    struct service *s = SERVICE(.tasks = "worker:0-3");
    struct service_agent *w0 = service_task(s, "worker", 0);
    struct service_agent *w1 = service_task(s, "worker", 1);
    struct service_agent *w2 = service_task(s, "worker", 2);
    struct service_agent *w3;
    uint64_t token = alive(w0, "", 0);
    uint64_t other;

    (void)alive(w1, "", 0);
    service_run_until(s, 100);
    service_agent_crash(w1);
    w2->beats = false;
    service_run_until(s, 500);
    w3 = service_task(s, "worker", 3);
    service_run_until(s, 1200);
    expect_waits(w0, token);
    other = alive(w3, "", 0);
    assert_string_equal(alive_text(w0, token), "worker/task:0 0000000000000102, "
                                               "worker/task:3 0000000000000105");
    assert_string_equal(alive_text(w3, other), "worker/task:0 0000000000000102, "
                                               "worker/task:3 0000000000000105");
    /* The last one missing dies. */
    token = alive(w0, "", 0);
    service_run_until(s, 1300);
    (void)service_leave(w3, 0);
    assert_string_equal(alive_text(w0, token), "worker/task:0 0000000000000102");
    assert_int_equal(service_answered_ms(w0, token), 1300);
    service_end(s);
}

TEST(test_alive_limit)
{
    struct three t = THREE(.seed = 1);
    uint64_t first = alive(t.w0, "", 250);
    uint64_t second = alive(t.w1, "", 400);
    uint64_t again;

    service_run_until(t.s, 249);
    expect_waits(t.w0, first);
    service_run_until(t.s, 260);
    expect_error(t.w0, first, -MU_EDEADLINE,
                 "who of worker:0-2 is alive: after 250 ms these are connected and have "
                 "not asked: /job:worker/task:2 (last heard 50 ms ago)");
    assert_int_equal(service_answered_ms(t.w0, first), 250);
    /* It is missing itself from then on. */
    service_run_until(t.s, 500);
    expect_error(t.w1, second, -MU_EDEADLINE,
                 "who of worker:0-2 is alive: after 400 ms these are connected and have "
                 "not "
                 "asked: /job:worker/task:0 (last heard 100 ms ago), /job:worker/task:2 "
                 "(last heard 100 ms ago)");
    first = alive(t.w0, "", 0);
    second = alive(t.w1, "", 0);
    again = alive(t.w2, "", 0);
    assert_int_equal(service_answered_ms(t.w0, first), 500);
    assert_int_equal(service_answered_ms(t.w1, second), 500);
    assert_int_equal(service_answered_ms(t.w2, again), 500);
    service_end(t.s);
}

/* A question asked again under its token is one question. */
TEST(test_alive_asked_again)
{
    struct three t = THREE(.seed = 1);
    uint64_t token = alive(t.w0, "", 0);

    service_link_down(t.w0, 0, "connection reset");
    service_run_until(t.s, 50);
    service_link_up(t.w0, 0);
    (void)service_register(t.w0, false, 0);
    TELL(t.w0, TASKS_GET, tasks_get, .token = token, .what = MU__TASKS_ALIVE);
    (void)alive(t.w1, "", 0);
    (void)alive(t.w2, "", 0);
    assert_int_equal(t.w0->counts[MU__TASKS_ANSWER], 3);
    assert_int_equal(service_answered_ms(t.w0, token), 50);
    service_end(t.s);
}

/* One whose answer was lost with its link, or that had no link then, gets the same list:
 * the others, who have it, will not ask with it again. */
TEST(test_alive_answer_lost)
{
    struct three t = THREE(.seed = 1);
    uint64_t token = alive(t.w0, "", 0);
    uint64_t other;

    service_link_down(t.w0, 0, "connection reset");
    (void)alive(t.w1, "", 0);
    other = alive(t.w2, "", 0);
    assert_int_equal(service_answered_ms(t.w2, other), 0);
    service_run_until(t.s, 50);
    for (unsigned i = 0; i < 2; i++) {
        service_link_up(t.w0, 0);
        (void)service_register(t.w0, false, 0);
        (void)service_text(t.w0);
        TELL(t.w0, TASKS_GET, tasks_get, .token = token, .what = MU__TASKS_ALIVE);
        assert_string_equal(alive_text(t.w0, token),
                            "worker/task:0 0000000000000102, "
                            "worker/task:1 0000000000000103, worker/task:2 "
                            "0000000000000104");
        service_link_down(t.w0, 0, "connection reset");
    }
    /* Its next question is another one. */
    service_link_up(t.w0, 0);
    (void)service_register(t.w0, false, 0);
    (void)service_text(t.w0);
    (void)alive(t.w0, "", 0);
    expect_said(t.w0, "");
    service_end(t.s);
}

TEST_PROGRAM()
