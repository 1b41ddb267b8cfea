/* Runs of a job over a store that lasts, in virtual time: what another run has of the
 * one before (keys alone), what a run has that goes on (all of its own), and who is let
 * in. The host's process is killed at the end of each part of a story, unless it says
 * otherwise; what is a new process of a task has another incarnation. */
#include "actors/coordination/job_runs.h"
#include "actors/coordination/store/journal.h"
#include "tests/support/service.h"

static const char *wanted;          /* the name that hosts are started for */
static struct mu__own_run own;      /* what their agents were told */

static void configure(struct service_host *host, struct mu__coordination_config *config)
{
    (void)host;
    config->run = wanted;
    config->own_run = &own;
}

static int forget(void **state)
{
    (void)state;
    wanted = NULL;
    own = (struct mu__own_run){0};
    return 0;
}

struct job {
    struct service *s;
    struct service_agent *chief;
    struct service_agent *w0;
    struct service_agent *w1;
};

static struct job begin(void)
{
    struct job job = {.s = SERVICE(.store = &mu__store_journal, .configure = configure)};

    job.chief = service_task(job.s, "chief", 0);
    job.w0 = service_task(job.s, "worker", 0);
    job.w1 = service_task(job.s, "worker", 1);
    return job;
}

static const struct mu__store_run *present(const struct job *job)
{
    return mu__coord_run(service_state(job->s, 0));
}

/* The host's process is another one; its agent is, too. */
static void restart_host(struct job *job)
{
    service_crash(job->s, 0);
    service_start(job->s, 0);
    job->chief->incarnation = job->s->hosts[0].incarnation;
    job->s->hosts[0].at_home = job->chief;
    job->chief->since = 0;
    service_forget_said(job->chief);
}

static void restart_task(struct service_agent *agent)
{
    if (agent->home < 0)
        service_agent_restart(agent);
    expect_ok(agent, service_register(agent, false, 0));
    agent->beats = true;
}

/* All processes are new. */
static void restart_all(struct job *job)
{
    restart_host(job);
    restart_task(job->chief);
    restart_task(job->w0);
    restart_task(job->w1);
}

/* A process that lives finds its host again. */
static void come_back(struct service_agent *agent)
{
    service_link_up(agent, 0);
    expect_ok(agent, service_register(agent, false, 0));
}

static uint64_t end_run(struct service_agent *agent, int code, const char *message)
{
    TELL(agent, RUN_END, run_end, .token = ++agent->token, .code = (uint32_t)-code,
         .message = mu__view_str(message));
    return agent->token;
}

static uint64_t close_host(struct service_agent *agent)
{
    TELL(agent, RUN_END, run_end, .token = ++agent->token, .closing = true);
    return agent->token;
}

static uint64_t arrive(struct service_agent *agent, const char *name, uint64_t timeout_ms)
{
    TELL(agent, BARRIER_ARRIVE, barrier_arrive, .token = ++agent->token,
         .name = mu__view_str(name), .timeout_ms = timeout_ms);
    return agent->token;
}

static void expect_passed(struct service_agent *agent, uint64_t token, int code)
{
    const struct service_said *said = service_answer(agent, MU__BARRIER_PASSED, token);

    assert_non_null(said);
    assert_int_equal(((const struct mu__barrier_passed *)(const void *)said->msg->body)
                         ->code, -code);
}

#define expect_stays(agent, token) \
    assert_null(service_answer(agent, MU__BARRIER_PASSED, token))

static void pass(struct job *job, const char *name)
{
    uint64_t chief = arrive(job->chief, name, 0);
    uint64_t w0 = arrive(job->w0, name, 0);

    expect_stays(job->chief, chief);
    expect_stays(job->w0, w0);
    expect_passed(job->w1, arrive(job->w1, name, 0), 0);
    expect_passed(job->w0, w0, 0);
    expect_passed(job->chief, chief, 0);
}

static uint64_t put(struct service_agent *agent, const char *key, const char *value)
{
    TELL(agent, KEY_PUT, key_put, .token = ++agent->token, .key = mu__view_str(key),
         .value = mu__view_str(value), .flags = MU__PUT_OVERWRITE);
    assert_non_null(service_answer(agent, MU__KEY_DONE, agent->token));
    return agent->token;
}

static bool has_key(const struct job *job, const char *key)
{
    struct mu__key_value entry;

    return mu__coord_keys_get_own((struct coordination *)service_state(job->s, 0), key,
                                  &entry);
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

static uint64_t count_below(const struct job *job, const char *directory)
{
    uint64_t count;
    uint64_t bytes;

    mu__coord_keys_measure(service_state(job->s, 0), mu__view_str(directory), &count,
                           &bytes);
    return count;
}

/* ---- barriers ---- */

static void test_barrier_waits_in_the_next_run(void **state)
{
    struct job job = begin();

    (void)state;
    assert_string_equal(present(&job)->name, "run-1");
    pass(&job, "start");
    expect_ok(job.chief, end_run(job.chief, 0, ""));
    assert_int_equal(present(&job)->state, MU__RUN_ENDED);
    restart_all(&job);
    assert_string_equal(present(&job)->name, "run-2");
    pass(&job, "start");    /* and each of them had to wait for all */
    service_end(job.s);
}

static void test_barrier_is_remembered_in_a_run_that_goes_on(void **state)
{
    struct job job = begin();

    (void)state;
    pass(&job, "start");
    restart_all(&job);
    assert_string_equal(present(&job)->name, "run-1");
    expect_passed(job.w0, arrive(job.w0, "start", 0), 0);
    service_end(job.s);
}

static void test_failed_barrier_does_not_poison_the_next_run(void **state)
{
    struct job job = begin();
    uint64_t token;

    (void)state;
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

static void preempt(struct job *job)
{
    struct service_agent *agents[] = {job->chief, job->w0, job->w1};

    TELL(job->w0, PREEMPT_NOTICE, preempt_notice, .token = ++job->w0->token,
         .reason = mu__view_str("maintenance"), .grace_ms = 30000);
    for (int i = 0; i < 3; i++)
        TELL(agents[i], PREEMPT_STEP, preempt_step, .round = 1, .counts = true,
             .step = 28);
    assert_non_null(service_next(job->w1, MU__PREEMPT_STOP));
}

static void test_preempted_run_does_not_stop_the_next(void **state)
{
    struct job job = begin();

    (void)state;
    preempt(&job);
    expect_ok(job.chief, end_run(job.chief, 0, ""));
    restart_all(&job);
    service_run(job.s, 1000);
    assert_null(service_next(job.w0, MU__PREEMPT_ASK));
    assert_int_equal(count_below(&job, "_muster/run/2"), 0);
    preempt(&job);          /* and it may be preempted, too */
    service_end(job.s);
}

static void test_notice_stays_with_the_run_that_goes_on(void **state)
{
    struct job job = begin();

    (void)state;
    preempt(&job);
    restart_host(&job);
    service_agent_restart(job.w0);
    (void)service_register(job.w0, false, 0);
    assert_non_null(service_next(job.w0, MU__PREEMPT_ASK));
    service_end(job.s);
}

static void test_notice_by_key_goes_with_its_run(void **state)
{
    struct job job = begin();

    (void)state;
    (void)put(job.w0, MU__KEY_PREEMPTION, "rack 7");
    expect_ok(job.chief, end_run(job.chief, 0, ""));
    restart_all(&job);
    assert_false(has_key(&job, MU__KEY_PREEMPTION));
    service_end(job.s);
}

/* ---- functions ---- */

/* What independent tasks tell each other is about one run; that a function has failed is
 * what the run comes to, even if its processes were killed before they said so. */
static void test_failed_function_does_not_fail_the_next_run(void **state)
{
    struct job job = begin();

    (void)state;
    (void)put(job.w0, "muster/distribute/0/failed", "x");
    (void)put(job.w0, "muster/distribute/0/result/job:worker/task:0", "y");
    (void)put(job.w0, "rate", "0.1");
    restart_all(&job);
    assert_string_equal(present(&job)->name, "run-2");
    assert_int_equal(count_below(&job, "muster/distribute"), 0);
    assert_true(has_key(&job, "rate"));
    service_end(job.s);
}

static void test_results_stay_with_the_run_that_goes_on(void **state)
{
    struct job job = begin();
    uint64_t token;

    (void)state;
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
                          job.w1, MU__KEY_DONE, token)->msg->body)->number, 5);
    service_end(job.s);
}

/* ---- names ---- */

static void test_named_run_goes_on_or_begins(void **state)
{
    struct job job;

    (void)state;
    wanted = "a";
    job = begin();
    pass(&job, "start");
    expect_ok(job.chief, end_run(job.chief, 0, ""));
    restart_all(&job);
    assert_int_equal(present(&job)->number, 1);
    assert_int_equal(present(&job)->state, MU__RUN_RUNNING);
    expect_passed(job.w0, arrive(job.w0, "start", 0), 0);
    wanted = "b";           /* which had not begun, so a is left as it is */
    restart_all(&job);
    assert_int_equal(present(&job)->number, 2);
    pass(&job, "start");
    service_end(job.s);
}

static void test_host_of_a_former_run_does_not_lead(void **state)
{
    struct job job;

    (void)state;
    wanted = "a";
    job = begin();
    wanted = "b";
    restart_all(&job);
    wanted = "a";
    restart_host(&job);
    service_run(job.s, 5000);
    assert_false(service_state(job.s, 0)->leads);
    assert_non_null(strstr(service_state(job.s, 0)->reason, "run \"a\" is over"));
    wanted = "b";           /* nothing has come of that */
    restart_all(&job);
    assert_string_equal(present(&job)->name, "b");
    assert_int_equal(present(&job)->number, 2);
    service_end(job.s);
}

/* A host that takes over goes on with the run that its own task is in. */
static void test_fail_over_goes_on_with_an_ended_run(void **state)
{
    struct job job = begin();

    (void)state;
    pass(&job, "start");
    expect_ok(job.chief, end_run(job.chief, 0, ""));
    own = (struct mu__own_run){service_state(job.s, 0)->number, 1};
    restart_all(&job);
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

static void test_task_of_a_former_run_is_told(void **state)
{
    struct service_agent *client;
    struct job job = begin();

    (void)state;
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
static void test_task_that_comes_at_the_end_is_of_the_next_run(void **state)
{
    const struct service_said *said;
    struct job job = begin();
    uint64_t token;

    (void)state;
    expect_ok(job.chief, end_run(job.chief, 0, ""));
    service_agent_restart(job.w0);
    token = register_for(job.w0, 0, "");
    said = service_answer(job.w0, MU__TASKS_ANSWER, token);
    assert_int_equal(((const struct mu__tasks_answer *)(const void *)said->msg->body)
                         ->run, 0);
    token = register_for(job.w1, 1, "");
    said = service_answer(job.w1, MU__TASKS_ANSWER, token);
    assert_int_equal(((const struct mu__tasks_answer *)(const void *)said->msg->body)
                         ->run, 1);
    restart_host(&job);
    come_back(job.w0);
    service_link_up(job.w1, 0);
    expect_refused(job.w1, register_for(job.w1, 1, ""), "belongs to a former run");
    service_end(job.s);
}

static void test_only_the_leading_task_ends_a_run(void **state)
{
    struct job job = begin();
    uint64_t token = end_run(job.w0, 0, "");

    (void)state;
    assert_non_null(service_answer(job.w0, MU__TASKS_ANSWER, token));
    assert_int_equal(present(&job)->state, MU__RUN_RUNNING);
    (void)close_host(job.w0);
    assert_int_equal(present(&job)->state, MU__RUN_RUNNING);
    service_end(job.s);
}

/* ---- closed in order, without the job's end ---- */

static void test_closed_alone_is_the_end(void **state)
{
    struct job job = begin();

    (void)state;
    expect_ok(job.w0, service_leave(job.w0, 0));
    expect_ok(job.w1, service_leave(job.w1, 0));
    expect_ok(job.chief, close_host(job.chief));
    assert_int_equal(present(&job)->state, MU__RUN_CLOSED);
    restart_all(&job);
    assert_int_equal(present(&job)->number, 2);
    service_end(job.s);
}

/* The others may live on, and are told what they did not hear; or all are new, and what
 * was over before is not for them. */
static void test_closed_among_others_goes_on(void **state)
{
    struct job job = begin();
    uint64_t token;

    (void)state;
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
    assert_null(service_next(job.w0, MU__PREEMPT_ASK));
    expect_stays(job.w0, arrive(job.w0, "start", 0));
    service_end(job.s);
}

/* ---- what is in the store ---- */

/* Of a run that is over a line stays, and of many the last lines. */
static void test_nothing_of_dead_runs_piles_up(void **state)
{
    struct job job = begin();
    uint64_t bytes = 0;
    uint64_t count;

    (void)state;
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
static void test_leases_go_with_their_run(void **state)
{
    struct job job = begin();

    (void)state;
    TELL(job.w0, KEY_PUT, key_put, .token = ++job.w0->token,
         .key = mu__view_str("session/main"), .flags = MU__PUT_LEASE);
    expect_ok(job.chief, end_run(job.chief, 0, ""));
    restart_host(&job);
    assert_false(has_key(&job, "session/main"));
    service_end(job.s);
}

static int ignore(void *owner, struct mu__msg *msg)
{
    (void)owner;
    (void)msg;
    return 0;
}

static void append(struct mu__journal *journal, uint16_t kind, const void *body,
                   size_t size)
{
    struct mu__msg *msg = mu__msg_heap(kind, size);

    assert_non_null(msg);
    memcpy(msg->body, body, size);
    assert_int_equal(mu__journal_append(journal, msg, NULL), 0);
    free(msg);
}

#define APPEND(journal, KIND, name, ...)                                        \
    append(journal, MU__##KIND, &(struct mu__##name){__VA_ARGS__},              \
           sizeof(struct mu__##name))

/* The host's file as it was written before there were runs. */
static void write_former_journal(struct job *job)
{
    struct sim_storage *storage = job->s->hosts[0].storage;
    struct mu__journal *journal;
    struct mu__pool pool;
    uint64_t cut = 0;

    mu__pool_init(&pool);
    assert_int_equal(mu__journal_open(&storage->base, &mu__messages, &pool, ignore, NULL,
                                      NULL, &cut, &journal), 0);
    mu__journal_rewrite_begin(journal);
    APPEND(journal, STORE_BEGIN, store_begin, .store = 99, .epoch = 3);
    APPEND(journal, STORE_CHANGE, store_change, .revision = 5,
           .key = mu__view_str("rate"), .value = mu__view_str("0.1"));
    APPEND(journal, STORE_CHANGE, store_change, .revision = 6,
           .key = mu__view_str("_muster/barrier/start"),
           .value = mu__view_str("0 6 0 0 0  0 "));
    APPEND(journal, STORE_CHANGE, store_change, .revision = 7,
           .key = mu__view_str("_muster/preemption"),
           .value = mu__view_str("3 1 29 0 30000 5 6 /job:worker/task:0 rack"));
    APPEND(journal, STORE_RESULT, store_result, .agent = 7, .token = 3, .done = 1,
           .revision = 5);
    APPEND(journal, STORE_COMMIT, store_commit, .revision = 7);
    assert_int_equal(mu__journal_rewrite_commit(journal, NULL), 0);
    mu__journal_close(journal);
    mu__pool_done(&pool);
}

static void test_journal_from_before_there_were_runs(void **state)
{
    struct job job = begin();

    (void)state;
    service_crash(job.s, 0);
    write_former_journal(&job);
    restart_all(&job);
    assert_int_equal(service_state(job.s, 0)->number, 99);
    assert_string_equal(present(&job)->name, "run-1");
    assert_true(has_key(&job, "rate"));
    assert_false(has_key(&job, "_muster/barrier/start"));
    assert_false(has_key(&job, "_muster/preemption"));
    assert_int_equal(mu__coord_keys_results(service_state(job.s, 0)), 0);
    assert_null(service_next(job.w0, MU__PREEMPT_ASK));
    pass(&job, "start");
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

static void test_clearing(void **state)
{
    struct job job = begin();

    (void)state;
    for (int i = 0; i < 3; i++) {
        expect_ok(job.chief, end_run(job.chief, 0, ""));
        restart_all(&job);
    }
    assert_int_equal(cleared(job.w0, clear(job.w0, 0, "run-2")), 1);
    assert_false(has_key(&job, "_muster/run/2"));
    expect_error(job.w0, clear(job.w0, 0, "run-2"), -MU_ENOTFOUND,
                 "the store knows no run \"run-2\"");
    assert_int_equal(cleared(job.w0, clear(job.w0, MU__RUNS_CLEAR_ENDED, "")), 2);
    assert_int_equal(count_below(&job, "_muster"), 1);
    service_end(job.s);
}

static void test_clearing_what_the_present_run_has_come_to(void **state)
{
    struct job job = begin();
    uint64_t waits;

    (void)state;
    pass(&job, "start");
    preempt(&job);
    (void)put(job.w0, "muster/distribute/0/failed", "x");
    (void)put(job.w0, "rate", "0.1");
    waits = arrive(job.w0, "other", 0);
    assert_int_equal(cleared(job.w0, clear(job.w0, MU__RUNS_CLEAR_PRESENT, "")), 3);
    assert_int_equal(count_below(&job, "_muster"), 1);
    assert_true(has_key(&job, "rate"));
    (void)arrive(job.chief, "other", 0);
    (void)arrive(job.w1, "other", 0);
    expect_passed(job.w0, waits, 0);    /* what ran goes on */
    service_agent_restart(job.w1);
    (void)service_register(job.w1, false, 0);
    assert_null(service_next(job.w1, MU__PREEMPT_ASK));
    expect_stays(job.w1, arrive(job.w1, "start", 0));
    assert_int_equal(cleared(job.w0, clear(job.w0, MU__RUNS_CLEAR_KEYS, "")), 1);
    assert_false(has_key(&job, "rate"));
    service_end(job.s);
}

static void test_showing(void **state)
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

    (void)state;
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

#define TEST(name) cmocka_unit_test_setup(name, forget)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_barrier_waits_in_the_next_run),
        TEST(test_barrier_is_remembered_in_a_run_that_goes_on),
        TEST(test_failed_barrier_does_not_poison_the_next_run),
        TEST(test_preempted_run_does_not_stop_the_next),
        TEST(test_notice_stays_with_the_run_that_goes_on),
        TEST(test_notice_by_key_goes_with_its_run),
        TEST(test_failed_function_does_not_fail_the_next_run),
        TEST(test_results_stay_with_the_run_that_goes_on),
        TEST(test_named_run_goes_on_or_begins),
        TEST(test_host_of_a_former_run_does_not_lead),
        TEST(test_fail_over_goes_on_with_an_ended_run),
        TEST(test_task_of_a_former_run_is_told),
        TEST(test_task_that_comes_at_the_end_is_of_the_next_run),
        TEST(test_only_the_leading_task_ends_a_run),
        TEST(test_closed_alone_is_the_end),
        TEST(test_closed_among_others_goes_on),
        TEST(test_nothing_of_dead_runs_piles_up),
        TEST(test_leases_go_with_their_run),
        TEST(test_journal_from_before_there_were_runs),
        TEST(test_clearing),
        TEST(test_clearing_what_the_present_run_has_come_to),
        TEST(test_showing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
