/* Runs of the job as they are in the store, shown and cleared. */
#include "tests/support/service/runs.h"

#include <muster/admin.h>

/* ---- what is in the store ---- */

/* Of a run that is over a line stays, and of many the last lines. */
TEST_WITH(test_nothing_of_dead_runs_piles_up, forget, NULL)
{
    struct job job = begin();
    uint64_t bytes = 0;
    uint64_t count;

    for (int run = 1; run <= 60; run++) {
        char name[32];

        (void)snprintf(name, sizeof name, "barrier-%d", run);
        pass(&job, name);
        (void)put(job.w0, "muster/distribute/0/result/job:worker/task:0", name);
        (void)put(job.w1, "kept", name);
        if (run % 3 != 0)
            expect_ok(job.chief, end_run(job.chief, 0, ""));
        else
            (void)put(job.w0, "muster/distribute/0/failed", name);
        restart_all(&job);
        assert_int_equal(present(&job)->number, run + 1);
        assert_int_equal(mu__coord_keys_results(service_state(job.s, 0)), 0);
        mu__coord_keys_measure(service_state(job.s, 0), mu__view_str(""), &count, &bytes);
        assert_true(count <= MU__RUN_HISTORY_MAX + 2);
    }
    assert_true(bytes < 4096);
    assert_true(has_key(&job, "kept"));
    service_end(job.s);
}

/* Leases are of tasks, and no task outlives its run. */
TEST_WITH(test_leases_go_with_their_run, forget, NULL)
{
    struct job job = begin();

    TELL(job.w0, KEY_PUT, key_put, .token = ++job.w0->token,
         .key = mu__view_str("session/main"), .flags = MU__PUT_LEASE);
    expect_ok(job.chief, end_run(job.chief, 0, ""));
    restart_host(&job);
    assert_false(has_key(&job, "session/main"));
    service_end(job.s);
}

/* ---- showing and clearing ---- */

static uint64_t clear(struct service_agent *agent, uint32_t what, const char *name)
{
    TELL(agent, RUNS_CLEAR, runs_clear, .token = ++agent->token, .what = what,
         .name = mu__view_str(name));
    return agent->token;
}

static uint64_t cleared(struct service_agent *agent, uint64_t token)
{
    const struct service_said *said = service_answer(agent, MU__TASKS_ANSWER, token);

    assert_non_null(said);
    return ((const struct mu__tasks_answer *)(const void *)said->msg->body)->version;
}

TEST_WITH(test_clearing, forget, NULL)
{
    struct job job = begin();

    for (int i = 0; i < 3; i++) {
        expect_ok(job.chief, end_run(job.chief, 0, ""));
        restart_all(&job);
    }
    assert_int_equal(cleared(job.w0, clear(job.w0, 0, "run-2")), 1);
    assert_false(has_key(&job, "_muster/run/2"));
    expect_error(job.w0, clear(job.w0, 0, "run-2"), -MU_ENOTFOUND,
                 "the store knows no run \"run-2\"");
    assert_int_equal(cleared(job.w0, clear(job.w0, MU_RUNS_CLEAR_ENDED, "")), 2);
    assert_int_equal(count_below(&job, "_muster"), 1);
    service_end(job.s);
}

TEST_WITH(test_clearing_what_the_present_run_has_come_to, forget, NULL)
{
    struct job job = begin();
    uint64_t waits;

    pass(&job, "start");
    preempt(&job);
    (void)put(job.w0, "muster/distribute/0/failed", "x");
    (void)put(job.w0, "rate", "0.1");
    waits = arrive(job.w0, "other", 0);
    assert_int_equal(cleared(job.w0, clear(job.w0, MU_RUNS_CLEAR_PRESENT, "")), 3);
    assert_int_equal(count_below(&job, "_muster"), 1);
    assert_true(has_key(&job, "rate"));
    (void)arrive(job.chief, "other", 0);
    (void)arrive(job.w1, "other", 0);
    expect_passed(job.w0, waits, 0); /* what ran goes on */
    service_agent_restart(job.w1);
    (void)service_register(job.w1, false, 0);
    assert_null(service_next(job.w1, MU__PREEMPT_REQUEST));
    expect_stays(job.w1, arrive(job.w1, "start", 0));
    assert_int_equal(cleared(job.w0, clear(job.w0, MU_RUNS_CLEAR_KEYS, "")), 1);
    assert_false(has_key(&job, "rate"));
    service_end(job.s);
}

TEST_WITH(test_showing, forget, NULL)
{
    struct job job = begin();
    const struct service_said *said;
    const struct mu__tasks_answer *answer;
    mu_value *map;
    const mu_value *runs;
    const char *text;
    int64_t number;
    size_t size;
    char why[64];

    expect_ok(job.chief, end_run(job.chief, -MU_EABORTED, "no luck\nat all"));
    restart_all(&job);
    pass(&job, "start");
    TELL(job.w0, RUNS_GET, runs_get, .token = ++job.w0->token);
    said = service_answer(job.w0, MU__TASKS_ANSWER, job.w0->token);
    assert_non_null(said);
    answer = (const void *)said->msg->body;
    assert_int_equal(mu__value_unpack(&answer->content, why, sizeof why, &map), 0);
    runs = mu_value_find(map, "runs");
    assert_int_equal(mu_value_count(runs), 2);
    (void)mu_value_get_string(mu_value_find(mu_value_at(runs, 0), "message"), &text,
                              &size);
    assert_string_equal(text, "no luck, says /job:chief/task:0");
    (void)mu_value_get_string(mu_value_find(mu_value_at(runs, 0), "state"), &text, &size);
    assert_string_equal(text, "failed");
    (void)mu_value_get_int(mu_value_find(mu_value_at(runs, 1), "barriers"), &number);
    assert_int_equal(number, 1);
    mu_value_free(map);
    service_end(job.s);
}

TEST_PROGRAM()
