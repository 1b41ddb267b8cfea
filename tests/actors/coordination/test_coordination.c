/* The coordination service and its store, in virtual time: what is said waits until what
 * was written is safe, a host without its store does not lead. The store here does what
 * the test says, when the test says it. */
#include "tests/support/service/service.h"

/* One at a time; the service's host opens it. */
static struct script {
    struct mu__store base;
    struct mu__store_upcalls up;
    bool holds; /* as soon as it ticks */
    bool held;
    bool commits_at_once;
    bool rewrites;    /* it wants to, once */
    int write_code;   /* of the next write */
    const char *lose; /* in the next tick, as */
    const char *trouble;
    uint64_t epoch;
    unsigned written;
    unsigned commits;
    unsigned rewritten;
    uint64_t sequence; /* of the last commit */
    uint64_t safe;     /* to be told in the next tick */
} script;

static void script_start(struct mu__store *store, struct mu__ctx *ctx)
{
    (void)store;
    (void)ctx;
}

static int script_write(struct mu__store *store, struct mu__ctx *ctx,
                        const struct mu__msg *record)
{
    (void)store;
    (void)ctx;
    assert_true(record->kind == MU__STORE_CHANGE || record->kind == MU__STORE_RESULT);
    script.written++;
    return script.write_code;
}

static void script_commit(struct mu__store *store, struct mu__ctx *ctx, uint64_t revision,
                          uint64_t sequence)
{
    (void)store;
    (void)revision;
    assert_int_equal(sequence, script.sequence + 1);
    script.commits++;
    script.sequence = sequence;
    if (script.commits_at_once)
        script.up.committed(script.up.owner, ctx, sequence);
}

static bool script_may_read(struct mu__store *store, struct mu__ctx *ctx)
{
    (void)store;
    (void)ctx;
    return script.held;
}

static void script_tick(struct mu__store *store, struct mu__ctx *ctx)
{
    (void)store;
    if (script.trouble != NULL)
        script.up.trouble(script.up.owner, ctx, script.trouble);
    script.trouble = NULL;
    if (script.holds && !script.held) {
        script.held = true;
        script.up.reading(script.up.owner);
        script.up.held(script.up.owner, ctx, ++script.epoch, 77);
    }
    if (script.safe != 0)
        script.up.committed(script.up.owner, ctx, script.safe);
    script.safe = 0;
    if (script.lose != NULL && script.held) {
        script.held = false;
        script.holds = false;
        script.up.lost(script.up.owner, ctx, script.lose);
    }
    script.lose = NULL;
}

static bool script_wants_rewrite(struct mu__store *store, uint64_t records)
{
    (void)store;
    (void)records;
    return script.rewrites;
}

static void script_rewrite(struct mu__store *store, struct mu__ctx *ctx)
{
    (void)store;
    (void)ctx;
    script.rewrites = false;
    script.rewritten++;
}

static void script_close(struct mu__store *store, struct mu__ctx *ctx)
{
    (void)store;
    (void)ctx;
}

static const struct mu__store_ops script_ops = {
    .start = script_start,
    .write = script_write,
    .commit = script_commit,
    .may_read = script_may_read,
    .tick = script_tick,
    .needs_rewrite = script_wants_rewrite,
    .rewrite = script_rewrite,
    .close = script_close,
};

static int script_open(const struct mu__store_config *config, mu_error *ret_error,
                       struct mu__store **ret_store)
{
    (void)ret_error;
    script.base.ops = &script_ops;
    script.up = config->up;
    *ret_store = &script.base;
    return 0;
}

static const struct mu__store_kind script_store = {"script", false, false, true,
                                                   script_open};
static const struct mu__store_kind shared_store = {"shared", false, true, true,
                                                   script_open};

static int begin_script(void **state)
{
    (void)state;
    script = (struct script){.holds = true, .commits_at_once = true};
    return 0;
}

static uint64_t put(struct service_agent *agent, const char *key)
{
    TELL(agent, KEY_PUT, key_put, .token = ++agent->token, .key = mu__view_str(key),
         .value = mu__view_str("v"));
    return agent->token;
}

#define expect_put(agent, token) \
    assert_non_null(service_answer(agent, MU__KEY_DONE, token))
#define expect_put_waits(agent, token) \
    assert_null(service_answer(agent, MU__KEY_DONE, token))

/* ---- who leads ---- */

TEST_WITH(test_not_held, begin_script, NULL)
{
    struct service *s;
    struct service_agent *w0;

    script.holds = false;
    s = SERVICE(.store = &script_store);
    w0 = service_agent(s, "worker", 0);
    w0->notes_hosts = true;
    service_run_until(s, 20);
    (void)service_register(w0, false, 0);
    expect_said(w0, "[   20] service_here reason=\"its store is not held yet\"\n");
    script.trouble = "nobody answers";
    service_run_until(s, 60);
    expect_said(w0, "[   50] service_here reason=\"its store is not held yet: nobody "
                    "answers\"\n");
    script.holds = true;
    service_run_until(s, 110);
    expect_said(w0, "[  100] service_here leads=yes epoch=1 store=77\n");
    expect_ok(w0, service_register(w0, false, 0));
    service_end(s);
}

TEST_WITH(test_lost, begin_script, NULL)
{
    struct service *s = SERVICE(.store = &script_store);
    struct service_agent *w0 = service_task(s, "worker", 0);
    uint64_t wait = service_tasks_get(w0, MU__TASKS_WAIT, "", 0, 0);
    uint64_t token;

    w0->notes_hosts = true;
    w0->beats = false;
    service_run_until(s, 10);
    script.lose = "the disk is full";
    service_run_until(s, 1300);
    expect_said(w0, "[  300] service_here epoch=1 store=77 reason=\"the disk is "
                    "full\"\n");

    /* What is asked now is answered with who leads; and nobody is known any more. */
    token = put(w0, "a");
    expect_said(w0, "[ 1300] service_here epoch=1 store=77 reason=\"the disk is "
                    "full\"\n");
    script.holds = true;
    service_run_until(s, 1400);
    service_heartbeat(w0, 0);
    expect_said(w0, "[ 1350] service_here leads=yes epoch=2 store=77\n"
                    "[ 1400] task_heard epoch=2 code=9 message=\"/job:worker/task:0 is "
                    "not registered at /job:chief/task:0\"\n");
    expect_ok(w0, service_register(w0, false, 0));
    expect_waits(w0, wait);
    expect_put_waits(w0, token);
    service_end(s);
}

/* Every host says where it is to every node, its own included, and goes without
 * others. */
TEST_WITH(test_hosts, begin_script, NULL)
{
    struct service *s = SERVICE(.hosts = "chief:0,worker:0");
    struct service_agent *w0 = service_agent(s, "worker", 0);
    struct service_agent *w1 = service_agent(s, "worker", 1);

    assert_int_equal(w0->home, 1);
    assert_int_equal(w0->counts[MU__SERVICE_HERE], 1);
    assert_int_equal(w1->counts[MU__SERVICE_HERE], 2);
    service_crash(s, 0);
    TELL_HOST(w1, 1, TASK_REGISTER, task_register, .token = 1);
    expect_ok(w1, 1);
    TELL_HOST(w0, 1, TASK_REGISTER, task_register, .token = 1);
    expect_ok(w0, 1);
    assert_int_equal(service_state(s, 1)->roster->connected, 2);

    w0->notes_hosts = true;
    service_start(s, 0);
    service_link_up(w0, 0);
    assert_int_equal(service_next(w0, MU__SERVICE_HERE)->host, 0);
    service_end(s);
}

/* ---- what is said when ---- */

/* Three changes of one turn are one commit, and answered when that is safe, in order;
 * so is what was asked after them. A heartbeat does not depend on the store. */
TEST_WITH(test_commit, begin_script, NULL)
{
    struct service *s = SERVICE(.store = &script_store);
    struct service_agent *w0 = service_task(s, "worker", 0);
    struct service_agent *w1 = service_task(s, "worker", 1);
    const unsigned commits = script.commits;
    const unsigned written = script.written;
    uint64_t states;

    script.commits_at_once = false;
    w1->notes_beats = true;
    s->options.fast = true;
    (void)put(w0, "a");
    (void)put(w0, "b");
    (void)put(w1, "c");
    s->options.fast = false;
    service_settle(s);
    if (MU__TURN_MESSAGES >= 3)
        assert_int_equal(script.commits - commits, 1);
    assert_int_equal(script.written - written, 6); /* each with its result */
    states = service_tasks_get(w1, MU__TASKS_STATES, "", 0, 0);
    expect_waits(w1, states);
    service_heartbeat(w1, 0);
    expect_said(w1, "[    0] task_heard epoch=1\n");

    script.safe = script.sequence;
    service_run_until(s, 49);
    expect_put_waits(w0, 2);
    service_run_until(s, 60);
    expect_said(w0, "[   50] key_done token=2 revision=1\n"
                    "[   50] key_done token=3 revision=2\n");
    assert_int_equal(service_answer(w1, MU__KEY_DONE, 2)->at_ms, 50);
    assert_int_equal(service_answered_ms(w1, states), 50);
    service_end(s);
}

/* Commits overlap: an answer waits for its own, not for later ones. */
TEST_WITH(test_commits, begin_script, NULL)
{
    struct service *s = SERVICE(.store = &script_store);
    struct service_agent *w0 = service_task(s, "worker", 0);
    const uint64_t before = script.sequence;
    uint64_t first;
    uint64_t second;

    script.commits_at_once = false;
    first = put(w0, "a");
    second = put(w0, "b");
    assert_int_equal(script.sequence - before, 2);
    script.safe = before + 1;
    service_run_until(s, 50);
    expect_put(w0, first);
    expect_put_waits(w0, second);
    script.safe = before + 2;
    service_run_until(s, 100);
    expect_put(w0, second);
    service_end(s);
}

/* After a write that failed nothing is said until it is known what the store has. */
TEST_WITH(test_write_fails, begin_script, NULL)
{
    struct service *s = SERVICE(.store = &script_store);
    struct service_agent *w0 = service_task(s, "worker", 0);
    const unsigned commits = script.commits;
    uint64_t token;

    w0->notes_hosts = true;
    script.write_code = -MU_EEXHAUSTED;
    script.lose = "too much was written";
    s->options.fast = true;
    token = put(w0, "a");
    s->options.fast = false;
    service_settle(s);
    expect_put_waits(w0, token);
    assert_int_equal(script.commits, commits);
    expect_said(w0, "[    0] service_here epoch=1 store=77 reason=\"too much was "
                    "written\"\n");
    script.write_code = 0;
    script.holds = true;
    service_run_until(s, 50);
    expect_ok(w0, service_register(w0, false, 0));
    expect_put(w0, put(w0, "a"));
    service_end(s);
}

/* Answers that waited when the store was lost are not given: they may not be true. */
TEST_WITH(test_lost_answers, begin_script, NULL)
{
    struct service *s = SERVICE(.store = &script_store);
    struct service_agent *w0 = service_task(s, "worker", 0);
    uint64_t token;

    script.commits_at_once = false;
    token = put(w0, "a");
    script.lose = "another one leads";
    service_run_until(s, 50);
    script.holds = true;
    service_run_until(s, 200);
    assert_true(service_state(s, 0)->leads);
    expect_put_waits(w0, token);
    assert_null(service_state(s, 0)->commits.later.first);
    service_end(s);
}

TEST_WITH(test_rewrite, begin_script, NULL)
{
    struct service *s = SERVICE(.store = &script_store);
    struct service_agent *w0 = service_task(s, "worker", 0);
    const unsigned commits = script.commits;
    unsigned written;

    (void)put(w0, "a");
    (void)put(w0, "b");
    written = script.written;
    assert_int_equal(script.commits - commits, 2);
    script.rewrites = true;
    service_run_until(s, 1000);
    assert_int_equal(script.rewritten, 1);
    assert_int_equal(script.commits - commits, 3);
    /* Two keys, the results that w0 has not said it got, the last revision, the run. */
    assert_int_equal(script.written - written, 6);
    service_end(s);
}

/* Where another host can take over, that one is asked, and nothing is answered here. */
TEST_WITH(test_stop_shared, begin_script, NULL)
{
    struct service *s = SERVICE(.store = &shared_store);
    struct service_agent *w0 = service_task(s, "worker", 0);
    uint64_t wait = service_tasks_get(w0, MU__TASKS_WAIT, "", 0, 0);

    w0->notes_hosts = true;
    service_stop(s, 0);
    expect_waits(w0, wait);
    expect_said(w0, "[    0] service_here epoch=1 store=77 reason=\"the service at "
                    "/job:chief/task:0 has stopped\"\n");
    service_end(s);
}

TEST_PROGRAM()
