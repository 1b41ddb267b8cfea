/* The coordination service and questions about tasks, in virtual time: states, devices,
 * waiting for tasks, watching them; how much work many tasks are. */
#include "tests/support/service/service.h"

#include "actors/coordination/task_requests.h"

static const char *text_of(const mu_value *map, const char *key)
{
    const char *text = "(none)";
    size_t size;

    (void)mu_value_get_string(mu_value_find(map, key), &text, &size);
    return text;
}

static int64_t number_of(const mu_value *map, const char *key)
{
    int64_t number = -1;

    (void)mu_value_get_int(mu_value_find(map, key), &number);
    return number;
}

static int truth_of(const mu_value *map, const char *key)
{
    int truth = -1;

    (void)mu_value_get_bool(mu_value_find(map, key), &truth);
    return truth;
}

/* The names of the tasks of an answer, with spaces between. */
static void expect_tasks(const struct service_agent *agent, uint64_t token,
                         const char *names)
{
    mu_value *content = service_content(agent, token);
    char text[512] = "";
    size_t used = 0;

    for (size_t i = 0; i < mu_value_count(content); i++) {
        const char *task = text_of(mu_value_at(content, i), "task") + strlen("/job:");

        used += (size_t)snprintf(text + used, sizeof text - used, "%s%s",
                                 i > 0 ? " " : "", task);
        assert_true(used < sizeof text);
    }
    assert_string_equal(text, names);
    mu_value_free(content);
}

static uint64_t get(struct service_agent *agent, uint32_t what, const char *tasks)
{
    return service_tasks_get(agent, what, tasks, 0, 0);
}

/* ---- states ---- */

TEST(test_states)
{
    struct service *s = SERVICE(.recoverable = "worker");
    struct service_agent *w0 = service_task(s, "worker", 0);
    struct service_agent *w1 = service_task(s, "worker", 1);
    mu_value *content;
    const mu_value *at;
    char incarnation[24];

    w0->progress = 7;
    service_run_until(s, 250);
    expect_said(w1, "");
    assert_int_equal(service_answered_ms(w1, service_report(w1, -MU_EDATALOSS, "bad")),
                     250);
    service_run_until(s, 280);
    content = service_content(w0, get(w0, MU__TASKS_STATES, "chief:0,worker:0-1"));
    assert_int_equal(mu_value_count(content), 3);

    at = mu_value_at(content, 0);
    assert_string_equal(text_of(at, "task"), "/job:chief/task:0");
    assert_string_equal(text_of(at, "state"), "disconnected");
    assert_int_equal(truth_of(at, "recoverable"), 0);
    assert_int_equal(truth_of(at, "coordinated"), 1);
    assert_null(mu_value_find(at, "heard_ms"));
    assert_null(mu_value_find(at, "incarnation"));

    at = mu_value_at(content, 1);
    assert_string_equal(text_of(at, "type"), "worker");
    assert_int_equal(number_of(at, "index"), 0);
    assert_string_equal(text_of(at, "state"), "connected");
    assert_int_equal(number_of(at, "heard_ms"), 0);
    assert_int_equal(number_of(at, "since_ms"), 280);
    assert_int_equal(number_of(at, "progress"), 7);
    assert_int_equal(truth_of(at, "recoverable"), 1);
    assert_null(mu_value_find(at, "error"));
    (void)snprintf(incarnation, sizeof incarnation, "%016" PRIx64, w0->incarnation);
    assert_string_equal(text_of(at, "incarnation"), incarnation);

    at = mu_value_at(content, 2);
    assert_string_equal(text_of(at, "state"), "error");
    assert_int_equal(number_of(at, "since_ms"), 30);
    assert_int_equal(number_of(mu_value_find(at, "error"), "code"), -MU_EDATALOSS);
    assert_string_equal(text_of(mu_value_find(at, "error"), "name"), "EDATALOSS");
    assert_string_equal(text_of(mu_value_find(at, "error"), "message"), "bad");
    assert_string_equal(text_of(mu_value_find(at, "error"), "task"),
                        "/job:worker/task:1");
    mu_value_free(content);
    service_end(s);
}

/* Sorted by type and index, guests among them; unknown tasks are an error, no crash. */
TEST(test_which_tasks)
{
    struct service *s = SERVICE();
    struct service_agent *w0 = service_task(s, "worker", 0);
    struct service_agent *w12 = service_task(s, "worker", 12);
    struct service_agent *evaluator = service_task(s, "evaluator", 0);

    expect_tasks(w0, get(w0, MU__TASKS_STATES, ""),
                 "chief/task:0 evaluator/task:0 worker/task:0 worker/task:1 "
                 "worker/task:12");
    expect_tasks(w12, get(w12, MU__TASKS_STATES, "worker:12,chief:0"),
                 "chief/task:0 worker/task:12");
    expect_error(w0, get(w0, MU__TASKS_STATES, "worker:1-2"), -MU_ENOTFOUND,
                 "/job:worker/task:2 is not known: it is not one of the coordinated "
                 "jobs, and has not registered");
    expect_error(w0, get(w0, MU__TASKS_WAIT, "worker:0-999999"), -MU_ENOTFOUND,
                 "/job:worker/task:2 is not known: it is not one of the coordinated "
                 "jobs, and has not registered");
    expect_error(evaluator, get(evaluator, MU__TASKS_WATCH, "ps:0"), -MU_ENOTFOUND,
                 "/job:ps/task:0 is not known: it is not one of the coordinated jobs, "
                 "and has not registered");
    assert_int_equal(service_tasks_answer(w0, get(w0, MU__TASKS_STATES, "Boss:0"))->code,
                     MU_EINVALID);
    assert_int_equal(service_tasks_answer(w0, get(w0, MU__TASKS_WAIT, "worker:"))->code,
                     MU_EINVALID);
    expect_error(w0, get(w0, 17, ""), -MU_EINVALID, "tasks cannot be asked for 17");
    service_end(s);
}

/* ---- devices ---- */

static void register_with(struct service_agent *agent, const char *host)
{
    mu_value *devices = mu_value_map();
    struct mu__packed packed;
    struct mu__buf *buf;

    assert_int_equal(mu_value_set(devices, "host", mu_value_string(host)), 0);
    assert_int_equal(mu_value_set(devices, "cores", mu_value_int(8)), 0);
    buf = mu__pack_value(devices, &packed);
    assert_non_null(buf);
    TELL(agent, TASK_REGISTER, task_register, .token = ++agent->token, .devices = packed);
    expect_ok(agent, agent->token);
    agent->beats = true;
    mu__buf_unref(buf);
    mu_value_free(devices);
}

TEST(test_devices)
{
    struct service *s = SERVICE();
    struct service_agent *w1 = service_agent(s, "worker", 1);
    struct service_agent *w0 = service_agent(s, "worker", 0);
    struct service_agent *chief = service_task(s, "chief", 0);
    mu_value *content;

    register_with(w1, "b");
    register_with(w0, "a");
    expect_tasks(chief, get(chief, MU__TASKS_DEVICES, ""),
                 "chief/task:0 worker/task:0 worker/task:1");
    content = service_content(chief, get(chief, MU__TASKS_DEVICES, "worker:0-1"));
    assert_string_equal(text_of(mu_value_at(content, 0), "host"), "a");
    assert_string_equal(text_of(mu_value_at(content, 1), "host"), "b");
    assert_int_equal(number_of(mu_value_at(content, 1), "cores"), 8);
    mu_value_free(content);

    /* Of those that are connected; and once more is once. */
    register_with(w0, "c");
    expect_ok(w1, service_leave(w1, 0));
    content = service_content(chief, get(chief, MU__TASKS_DEVICES, "worker:0-1"));
    assert_int_equal(mu_value_count(content), 1);
    assert_string_equal(text_of(mu_value_at(content, 0), "host"), "c");
    mu_value_free(content);
    service_end(s);
}

/* ---- waiting ---- */

/* Tasks may say so much about their machines that no message has room for it. */
TEST(test_devices_of_too_many)
{
    enum { TASKS = 1100, BYTES = 65000 };
    struct service *s = SERVICE(.tasks = "worker:0-1099");
    struct service_agent *w0 = NULL;
    mu_value *machine = mu_value_map();
    mu_value *content;
    struct mu__packed packed;
    struct mu__buf *buf;
    char *bytes = calloc(1, BYTES);

    assert_non_null(bytes);
    assert_int_equal(mu_value_set(machine, "host", mu_value_bytes(bytes, BYTES)), 0);
    buf = mu__pack_value(machine, &packed);
    for (uint32_t i = 0; i < TASKS; i++) {
        w0 = service_agent(s, "worker", i);
        TELL(w0, TASK_REGISTER, task_register, .token = ++w0->token, .devices = packed);
        expect_ok(w0, w0->token);
    }
    for (uint32_t what = MU__TASKS_DEVICES; what <= MU__TASKS_WAIT; what++) {
        (void)get(w0, what, "");
        service_run_until(s, sim_now_ms(s->sim) + 50);
        assert_non_null(strstr(
            service_text(w0),
            "code=8 message=\"the records of these tasks at /job:chief/task:0 have 7"));
    }
    content = service_content(w0, get(w0, MU__TASKS_DEVICES, "worker:3-5"));
    assert_int_equal(mu_value_count(content), 3);
    mu_value_free(content);
    mu__buf_unref(buf);
    mu_value_free(machine);
    free(bytes);
    service_end(s);
}

TEST(test_wait)
{
    struct service *s = SERVICE();
    struct service_agent *w0 = service_agent(s, "worker", 0);
    struct service_agent *evaluator = service_task(s, "evaluator", 0);
    uint64_t all = get(evaluator, MU__TASKS_WAIT, "");
    const mu_value *devices;
    mu_value *content;
    uint64_t one;

    register_with(w0, "a");
    one = get(w0, MU__TASKS_WAIT, "worker:0");
    content = service_content(w0, one);
    devices = mu_value_find(mu_value_at(content, 0), "devices");
    assert_string_equal(text_of(devices, "host"), "a");
    mu_value_free(content);
    service_run_until(s, 100);
    (void)service_task(s, "worker", 1);
    expect_waits(evaluator, all);
    service_run_until(s, 200);
    (void)service_task(s, "chief", 0);
    assert_int_equal(service_answered_ms(evaluator, all), 200);
    expect_tasks(evaluator, all, "chief/task:0 worker/task:0 worker/task:1");
    service_end(s);
}

TEST(test_wait_late)
{
    struct service *s = SERVICE(.tasks = "chief:0,ps:0,worker:0-1");
    struct service_agent *w0 = service_task(s, "worker", 0);
    struct service_agent *w1 = service_task(s, "worker", 1);
    struct service_agent *ps = service_task(s, "ps", 0);
    uint64_t token;
    uint64_t narrow;

    service_run_until(s, 1000);
    w1->beats = false;
    expect_ok(ps, service_leave(ps, 0));
    service_run_until(s, 1500);
    token = service_tasks_get(w0, MU__TASKS_WAIT, "", 0, 4200);
    service_run_until(s, 2000);
    narrow = service_tasks_get(w0, MU__TASKS_WAIT, "worker:0-1", 0, 3700);
    service_run_until(s, 5699);
    expect_waits(w0, token);
    service_run_until(s, 5700);
    expect_error(w0, token, -MU_EDEADLINE,
                 "1 of 4 tasks are connected after 4200 ms; missing: /job:worker/task:1 "
                 "(in error, last heard 4,700 ms ago), /job:ps/task:0 (has left, last "
                 "heard 4,700 ms ago), /job:chief/task:0 (never registered)");
    expect_error(w0, narrow, -MU_EDEADLINE,
                 "1 of 2 tasks are connected after 3700 ms; missing: /job:worker/task:1 "
                 "(in error, last heard 4,700 ms ago)");
    service_end(s);
}

/* A question that is repeated, because its link broke, is one question. */
TEST(test_wait_link)
{
    struct service *s = SERVICE(.tasks = "worker:0-1");
    struct service_agent *w0 = service_task(s, "worker", 0);
    uint64_t token = get(w0, MU__TASKS_WAIT, "");

    TELL(w0, TASKS_GET, tasks_get, .token = token, .what = MU__TASKS_WAIT);
    service_link_down(w0, 0, "connection reset");
    service_link_up(w0, 0);
    TELL(w0, TASKS_GET, tasks_get, .token = token, .what = MU__TASKS_WAIT);
    (void)service_task(s, "worker", 1);
    /* The other one is that of its registration. */
    assert_int_equal(w0->counts[MU__TASKS_ANSWER], 2);
    expect_tasks(w0, token, "worker/task:0 worker/task:1");
    service_end(s);
}

/* ---- watching ---- */

static uint64_t version_of(const struct service_agent *agent, uint64_t token)
{
    assert_non_null(service_tasks_answer(agent, token));
    return service_tasks_answer(agent, token)->version;
}

static uint64_t watch(struct service_agent *agent, const char *tasks, uint64_t version,
                      uint64_t timeout_ms)
{
    return service_tasks_get(agent, MU__TASKS_WATCH, tasks, version + 1, timeout_ms);
}

TEST(test_watch)
{
    struct service *s = SERVICE();
    struct service_agent *w0 = service_task(s, "worker", 0);
    struct service_agent *w1 = service_task(s, "worker", 1);
    uint64_t first = get(w0, MU__TASKS_WATCH, "worker:1");
    uint64_t second;
    uint64_t other;

    expect_tasks(w0, first, "worker/task:1");
    service_run_until(s, 100);
    second = watch(w0, "worker:1", version_of(w0, first), 0);
    other = watch(w0, "chief:0", version_of(w0, get(w0, MU__TASKS_WATCH, "chief:0")), 0);
    service_run_until(s, 200);
    expect_waits(w0, second);
    service_link_down(w1, 0, "connection reset");
    assert_int_equal(service_answered_ms(w0, second), 200);
    assert_true(version_of(w0, second) > version_of(w0, first));
    expect_waits(w0, other);

    /* A version that is not the present one is answered at once. */
    first = watch(w0, "worker:1", version_of(w0, first), 0);
    assert_int_equal(version_of(w0, first), version_of(w0, second));
    service_end(s);
}

/* All, with guests that come. */
TEST(test_watch_all)
{
    struct service *s = SERVICE();
    struct service_agent *w0 = service_task(s, "worker", 0);
    uint64_t token = get(w0, MU__TASKS_WATCH, "");

    token = watch(w0, "", version_of(w0, token), 0);
    expect_waits(w0, token);
    service_run_until(s, 100);
    (void)service_task(s, "evaluator", 0);
    expect_tasks(w0, token, "chief/task:0 evaluator/task:0 worker/task:0 worker/task:1");
    service_end(s);
}

TEST(test_watch_late)
{
    struct service *s = SERVICE();
    struct service_agent *w0 = service_task(s, "worker", 0);
    uint64_t token = get(w0, MU__TASKS_WATCH, "worker:0-1");

    token = watch(w0, "worker:0-1", version_of(w0, token), 500);
    service_run_until(s, 500);
    expect_error(w0, token, -MU_EDEADLINE,
                 "no state of 2 tasks (worker:0-1) has changed for 500 ms: their version "
                 "is 4294967297 still");
    service_end(s);
}

/* Who watches is told every 50 ms at most, and then the last state. */
TEST(test_watch_pause)
{
    struct service *s = SERVICE(.tasks = "worker:0-9");
    struct service_agent *client = service_task(s, "client", 0);
    uint64_t token = watch(client, "worker:0-9", 0, 0);
    uint64_t second;

    service_run_until(s, 10);
    (void)service_task(s, "worker", 0);
    assert_int_equal(service_answered_ms(client, token), 10);
    second = watch(client, "worker:0-9", version_of(client, token), 0);
    for (uint32_t i = 1; i < 10; i++) {
        service_run_until(s, 10 + i);
        (void)service_task(s, "worker", i);
    }
    service_run_until(s, 59);
    expect_waits(client, second);
    service_run_until(s, 60);
    assert_int_equal(service_answered_ms(client, second), 60);
    assert_int_equal(version_of(client, second), service_state(s, 0)->roster->version);
    service_end(s);
}

/* ---- the end of the service ---- */

TEST(test_stop)
{
    struct service *s = SERVICE(.recoverable = "none", .leave_ms = 5000);
    struct service_agent *w0 = service_task(s, "worker", 0);
    struct service_agent *w1 = service_task(s, "worker", 1);
    uint64_t wait = get(w0, MU__TASKS_WAIT, "");
    uint64_t both = service_register(w0, true, 0);
    uint64_t leave = service_leave(w1, 0);

    w0->notes_hosts = true;
    service_stop(s, 0);
    expect_error(w0, wait, -MU_EUNAVAILABLE,
                 "the coordination service at /job:chief/task:0 has stopped");
    expect_error(w0, both, -MU_EUNAVAILABLE,
                 "the coordination service at /job:chief/task:0 has stopped");
    expect_error(w1, leave, -MU_EUNAVAILABLE,
                 "the coordination service at /job:chief/task:0 has stopped");
    assert_int_equal(w0->counts[MU__SERVICE_HERE], 2);
    service_end(s);
}

/* A host that was lost with its memory knows nobody. */
TEST(test_host_restart)
{
    struct service *s = SERVICE();
    struct service_agent *w0 = service_task(s, "worker", 0);
    uint64_t number = service_state(s, 0)->number;

    service_run_until(s, 100);
    service_crash(s, 0);
    service_start(s, 0);
    service_link_up(w0, 0);
    assert_true(service_state(s, 0)->leads);
    assert_int_not_equal(service_state(s, 0)->number, number);
    expect_error(w0, get(w0, MU__TASKS_STATES, ""), -MU_EPRECONDITION,
                 "/job:worker/task:0 is not registered at /job:chief/task:0");
    expect_ok(w0, service_register(w0, false, 0));
    service_end(s);
}

/* ---- bounds, and work ---- */

/* Sets that are asked about at a time are bounded; so are questions. */
TEST(test_sets_bound)
{
    struct service *s = SERVICE(.tasks = "ps:0,worker:0-1199", .fast = true);
    struct service_agent *w0 = service_agent(s, "worker", 0);
    uint64_t answers;

    (void)service_register(w0, false, 0);
    service_settle(s);
    answers = w0->counts[MU__TASKS_ANSWER];
    for (uint32_t i = 1; i < 1200; i++) {
        char text[32];

        (void)snprintf(text, sizeof text, "worker:%" PRIu32, i);
        (void)get(w0, MU__TASKS_WAIT, text);
        service_settle(s);
    }
    assert_true(w0->counts[MU__TASKS_ANSWER] > answers);
    assert_true(w0->counts[MU__TASKS_ANSWER] < answers + 1199);
    service_end(s);
}

/* One task cannot have all the room for questions: others go on, and so does it when its
 * own were answered. */
TEST(test_questions_of_one_task)
{
    struct service *s = SERVICE(.tasks = "worker:0-2");
    struct service_agent *w0 = service_task(s, "worker", 0);
    struct service_agent *w1 = service_task(s, "worker", 1);
    uint64_t last = 0;
    char words[128];

    for (uint32_t i = 0; i < PENDING_OF_TASK_MAX; i++)
        last = get(w0, MU__TASKS_WAIT, "worker:2");
    expect_waits(w0, last);
    (void)snprintf(words, sizeof words,
                   "%d requests about tasks of /job:worker/task:0 "
                   "wait already, as many as one task may have",
                   PENDING_OF_TASK_MAX);
    expect_error(w0, get(w0, MU__TASKS_WAIT, "worker:2"), -MU_EEXHAUSTED, words);
    expect_waits(w1, get(w1, MU__TASKS_WAIT, "worker:2"));
    (void)service_task(s, "worker", 2);
    expect_ok(w0, last);
    expect_ok(w0, get(w0, MU__TASKS_WAIT, "worker:2"));
    assert_int_equal(service_state(s, 0)->roster->tasks[0]->requests_count, 0);
    service_end(s);
}

static struct mu__kernel_counters counters_of(const struct service *s)
{
    struct mu__kernel_counters counters;

    mu__kernel_counters(s->hosts[0].kernel, &counters);
    return counters;
}

/* With nothing to do it wakes about once a second. */
TEST(test_idle)
{
    struct service *s = SERVICE();
    uint64_t turns;

    service_run_until(s, 5000);
    turns = counters_of(s).turns;
    service_run_until(s, 65000);
    assert_in_range(counters_of(s).turns - turns, 1, 66);
    service_end(s);
}

enum {
#ifdef MUSTER_TINY
    MANY = 200
#else
    MANY = 10000
#endif
};

/* Ten thousand tasks, counted in messages that the actor handles: each registration is
 * one, each heartbeat is one, and ticks are few, whatever the number of tasks. */
TEST(test_many)
{
    char tasks[32];
    struct service *s;
    struct service_agent *agents;
    uint64_t messages;
    uint64_t answers = 0;

    (void)snprintf(tasks, sizeof tasks, "worker:0-%d", MANY - 1);
    s = SERVICE(.tasks = tasks, .fast = true, .suspect_ms = 30000, .dead_ms = 90000,
                .heartbeat_ms = 10000);
    for (uint32_t i = 0; i < MANY; i++)
        (void)service_agent(s, "worker", i);
    messages = counters_of(s).messages;
    for (agents = s->agents; agents != NULL; agents = agents->next) {
        (void)service_register(agents, true, 60000);
        agents->beats = true;
    }
    service_run_until(s, 5000);
    for (agents = s->agents; agents != NULL; agents = agents->next)
        answers += agents->counts[MU__TASKS_ANSWER];
    assert_int_equal(answers, MANY);
    assert_int_equal(service_state(s, 0)->roster->connected, MANY);
    assert_in_range(counters_of(s).messages - messages, MANY, MANY + 20);

    service_run_until(s, 15000);
    messages = counters_of(s).messages;
    service_run_until(s, 75000);
    assert_in_range(counters_of(s).messages - messages, 6 * MANY, 6 * MANY + 200);

    /* All fall silent: each is looked at twice more, for suspicion and for death. */
    for (agents = s->agents; agents != NULL; agents = agents->next)
        agents->beats = false;
    service_run_until(s, 200000);
    assert_int_equal(service_state(s, 0)->roster->connected, 0);
    service_end(s);
}

TEST_PROGRAM()
