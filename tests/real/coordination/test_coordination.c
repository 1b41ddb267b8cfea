/* The coordination service by its public calls: several nodes in one process, over real
 * sockets. The chief hosts the service. */
#include "tests/real/nodes.h"

#include <stdatomic.h>
#include <stdbool.h>

struct fixture {
    struct nodes nodes;
    mu_node *chief;
    mu_node *workers[2];
};

static mu_node *open_node(struct nodes *nodes, const char *type, int index)
{
    mu_node_options options;

    nodes_options(nodes, type, index, &options);
    options.suspect_ms = 2000;
    options.dead_ms = 4000;
    return nodes_open_with(nodes, &options);
}

static void begin(struct fixture *f, int workers)
{
    mu_error error = {0};

    nodes_init(&f->nodes, workers, 0);
    f->chief = open_node(&f->nodes, "chief", 0);
    for (int i = 0; i < workers; i++)
        f->workers[i] = open_node(&f->nodes, "worker", i);
    check(mu_agent_register(f->chief, 1, SOON_MS, &error), &error);
    for (int i = 0; i < workers; i++)
        check(mu_agent_register(f->workers[i], 1, SOON_MS, &error), &error);
}

static void end(struct fixture *f)
{
    nodes_done(&f->nodes);
}

/* ---- Keys ---- */

static void put(mu_node *node, const char *key, const char *value, unsigned flags)
{
    mu_error error = {0};

    check(mu_kv_put(node, key, value, strlen(value), flags, 0, SOON_MS, &error, NULL),
          &error);
}

static void has_value(mu_node *node, const char *key, const char *value)
{
    mu_kv_item item = {0};
    mu_error error = {0};

    check(mu_kv_get(node, key, SOON_MS, &error, &item), &error);
    assert_string_equal(item.value, value);
    assert_int_equal(item.size, strlen(value));
    assert_true(item.revision > 0);
    mu_kv_item_clear(&item);
    assert_null(item.value);
}

TEST(test_keys)
{
    struct fixture f;
    mu_error error = {0};
    mu_kv_item item;
    uint64_t revision = 0;
    uint64_t count = 0;
    int64_t number = 0;

    begin(&f, 2);
    put(f.workers[0], "/a//b/", "one", 0);
    has_value(f.workers[1], "a/b", "one");
    has_value(f.chief, "a/b", "one");
    assert_int_equal(mu_kv_put(f.chief, "a/b", "x", 1, 0, 0, SOON_MS, &error, NULL),
                     -MU_EEXISTS);
    check(mu_kv_put(f.chief, "a/b", "two", 3, MU_KV_OVERWRITE, 0, SOON_MS, &error,
                    &revision),
          &error);
    assert_int_equal(mu_kv_put(f.workers[0], "a/b", "x", 1,
                               MU_KV_OVERWRITE | MU_KV_COMPARE, revision + 7, SOON_MS,
                               &error, NULL),
                     -MU_EPRECONDITION);
    check(mu_kv_put(f.workers[0], "a/b", "3", 1, MU_KV_OVERWRITE | MU_KV_COMPARE,
                    revision, SOON_MS, &error, NULL),
          &error);
    has_value(f.workers[1], "a/b", "3");
    check(mu_kv_increment(f.workers[1], "a/n", 40, SOON_MS, &error, &number), &error);
    check(mu_kv_increment(f.workers[0], "a/n", 2, SOON_MS, &error, &number), &error);
    assert_int_equal(number, 42);
    check(mu_kv_delete(f.workers[0], "a", SOON_MS, &error, &count), &error);
    assert_int_equal(count, 2);
    assert_int_equal(mu_kv_try_get(f.chief, "a/b", SOON_MS, &error, &item),
                     -MU_ENOTFOUND);
    assert_int_equal(mu_kv_get(f.workers[0], "a/b", 50, &error, &item), -MU_EDEADLINE);
    assert_non_null(strstr(error.message, "key \"a/b\" was not put within 50 ms: "
                                          "/job:chief/task:0, which hosts the service, "
                                          "is connected, and was heard "));
    end(&f);
}

TEST(test_bad_arguments)
{
    static const char too_large[(1 << 20) + 1];
    struct fixture f;
    mu_barrier_options options;
    mu_value *content = NULL;
    mu_error error = {0};
    mu_kv_item item;

    begin(&f, 1);
    assert_int_equal(mu_kv_get(f.chief, NULL, 0, &error, &item), -MU_EINVALID);
    assert_string_equal(error.message, "mu_kv_get: argument key is NULL");
    assert_int_equal(mu_kv_get(f.chief, "//", 0, &error, &item), -MU_EINVALID);
    assert_int_equal(mu_kv_put(f.chief, "a", too_large, sizeof too_large, 0, 0, 0, &error,
                               NULL),
                     -MU_EEXHAUSTED);
    assert_string_equal(error.message,
                        "a value has 1048577 bytes, at most 1048576 are kept");
    assert_int_equal(mu_kv_put(f.chief, "a", NULL, 3, 0, 0, 0, &error, NULL),
                     -MU_EINVALID);
    assert_int_equal(mu_kv_put(f.chief, "a", "", 0, 64, 0, 0, &error, NULL),
                     -MU_EINVALID);
    assert_int_equal(mu_kv_put(f.chief, "_muster/x", "", 0, 0, 0, SOON_MS, &error, NULL),
                     -MU_EPERMISSION);
    assert_int_equal(mu_tasks_states(f.chief, "worker:x", SOON_MS, &error, &content),
                     -MU_EINVALID);
    assert_int_equal(mu_tasks_states(f.chief, "worker:9", SOON_MS, &error, &content),
                     -MU_ENOTFOUND);
    assert_int_equal(mu_barrier_wait(f.chief, "", NULL, &error), -MU_EINVALID);
    assert_int_equal(mu_barrier_wait(f.chief, "a\nb", NULL, &error), -MU_EINVALID);
    assert_non_null(strstr(error.message, "no control characters"));
    mu_barrier_options_init(&options);
    options.threads = 0;
    assert_int_equal(mu_barrier_wait(f.chief, "b", &options, &error), -MU_EINVALID);
    assert_string_equal(error.message,
                        "barrier \"b\": option threads is 0, expected at least 1");
    assert_int_equal(mu_barrier_cancel(f.chief, "a\x1b", SOON_MS, &error), -MU_EINVALID);
    assert_int_equal(mu_preemption_notify(f.chief, "x", -1, SOON_MS, &error),
                     -MU_EINVALID);
    assert_string_equal(error.message,
                        "the grace of a preemption is -1 ms, expected 0 or more");
    assert_int_equal(mu_agent_report_error(f.chief, 3, "x", SOON_MS, &error),
                     -MU_EINVALID);
    assert_int_equal(mu_agent_report_error(f.chief, -99, "x", SOON_MS, &error),
                     -MU_EINVALID);
    assert_int_equal(mu_agent_set_error(f.chief, 0, "x"), -MU_EINVALID);
    end(&f);
}

struct flow {
    atomic_uint answered;
    atomic_uint wrong;
    int64_t last;
};

static void note_number(void *user, const mu_kv_response *answer)
{
    struct flow *flow = user;

    if (answer->code != 0 || answer->number != flow->last + 1)
        atomic_fetch_add(&flow->wrong, 1);
    flow->last = answer->number;
    atomic_fetch_add(&flow->answered, 1);
}

static void wait_for(const atomic_uint *counter, unsigned count)
{
    for (int i = 0; i < SOON_MS && atomic_load(counter) < count; i++)
        nodes_pause();
    assert_int_equal(atomic_load(counter), count);
}

/* Ten thousand increments under way: each once, in order. */
TEST(test_many_at_once)
{
    enum { MANY = 10000 };
    const mu_kv_request ask = {
        .operation = MU_KV_INCREMENT, .key = "n", .by = 1, .timeout_ms = SOON_MS};
    struct flow flow = {.last = 0};
    struct fixture f;

    begin(&f, 1);
    for (unsigned i = 0; i < MANY; i++)
        assert_int_equal(
            mu_kv_request_async(f.workers[0], &ask, note_number, &flow, NULL), 0);
    wait_for(&flow.answered, MANY);
    assert_int_equal(atomic_load(&flow.wrong), 0);
    has_value(f.chief, "n", "10000");
    end(&f);
}

static void note_code(void *user, const mu_kv_response *answer)
{
    atomic_store((atomic_int *)user, answer->code);
}

TEST(test_cancel)
{
    const mu_kv_request ask = {.operation = MU_KV_GET, .key = "never", .timeout_ms = -1};
    atomic_int code = 0;
    uint64_t request = 0;
    struct fixture f;

    begin(&f, 1);
    assert_int_equal(mu_kv_request_async(f.workers[0], &ask, note_code, &code, &request),
                     0);
    assert_int_equal(mu_kv_cancel(f.workers[0], request), 0);
    for (int i = 0; i < SOON_MS && atomic_load(&code) == 0; i++)
        nodes_pause();
    assert_int_equal(atomic_load(&code), -MU_ECANCELLED);
    assert_int_equal(mu_kv_cancel(f.workers[0], request), 0);
    end(&f);
}

TEST(test_lists)
{
    enum { MANY = 3000 };
    mu_value *items = NULL;
    mu_error error = {0};
    struct fixture f;
    char key[32];

    begin(&f, 1);
    for (int i = 0; i < MANY; i++) {
        (void)snprintf(key, sizeof key, "dir/%05d", i);
        put(f.chief, key, key, 0);
    }
    check(mu_kv_list(f.workers[0], "dir", SOON_MS, &error, &items), &error);
    assert_int_equal(mu_value_count(items), MANY);
    for (size_t i = 0; i < MANY; i++) {
        const char *text = NULL;
        size_t size = 0;

        (void)snprintf(key, sizeof key, "dir/%05zu", i);
        assert_int_equal(mu_value_get_string(mu_value_find(mu_value_at(items, i), "key"),
                                             &text, &size),
                         0);
        assert_string_equal(text, key);
    }
    mu_value_free(items);
    check(mu_kv_list(f.workers[0], "none", SOON_MS, &error, &items), &error);
    assert_int_equal(mu_value_count(items), 0);
    mu_value_free(items);
    end(&f);
}

/* ---- Watches ---- */

static void next_is(mu_kv_watch *watch, int type, const char *key, const char *value)
{
    mu_kv_event event = {0};
    mu_error error = {0};

    check(mu_kv_watch_next(watch, SOON_MS, &error, &event), &error);
    assert_int_equal(event.type, type);
    if (key == NULL)
        assert_null(event.key);
    else
        assert_string_equal(event.key, key);
    if (value != NULL)
        assert_string_equal(event.item.value, value);
    mu_kv_event_clear(&event);
}

TEST(test_watch)
{
    mu_kv_watch *watch = NULL;
    mu_kv_event event;
    mu_error error = {0};
    struct fixture f;

    begin(&f, 1);
    put(f.chief, "d/a", "1", 0);
    check(mu_kv_watch_open(f.workers[0], "d", 1, SOON_MS, &error, &watch), &error);
    next_is(watch, MU_KV_EVENT_PUT, "d/a", "1");
    next_is(watch, MU_KV_EVENT_SYNCED, NULL, NULL);
    put(f.chief, "d/b", "2", 0);
    next_is(watch, MU_KV_EVENT_PUT, "d/b", "2");
    check(mu_kv_delete(f.chief, "d/a", SOON_MS, &error, NULL), &error);
    next_is(watch, MU_KV_EVENT_DELETED, "d/a", NULL);
    assert_int_equal(mu_kv_watch_next(watch, 20, &error, &event), -MU_EDEADLINE);
    mu_kv_watch_close(watch);
    mu_kv_watch_close(NULL);

    /* After the node, too. */
    check(mu_kv_watch_open(f.workers[0], "d/b", 0, SOON_MS, &error, &watch), &error);
    nodes_close(&f.nodes, f.workers[0]);
    mu_kv_watch_close(watch);
    end(&f);
}

/* ---- Barriers ---- */

enum { ROUNDS = 50, THREADS = 4 };

struct party {
    mu_node *node;
    atomic_uint *arrived;
    unsigned all;      /* threads, on all nodes */
    atomic_uint early; /* passed before all had arrived */
    atomic_uint failed;
};

static void *go_through(void *arg)
{
    struct party *party = arg;
    mu_barrier_options options;

    mu_barrier_options_init(&options);
    options.threads = THREADS;
    options.timeout_ms = SOON_MS;
    for (unsigned i = 0; i < ROUNDS; i++) {
        atomic_fetch_add(party->arrived, 1);
        if (mu_barrier_wait(party->node, "b", &options, NULL) != 0)
            atomic_fetch_add(&party->failed, 1);
        if (atomic_load(party->arrived) < (i + 1) * party->all)
            atomic_fetch_add(&party->early, 1);
    }
    return NULL;
}

TEST(test_barriers_of_threads)
{
    atomic_uint arrived = 0;
    struct fixture f;
    struct party parties[3];
    pthread_t threads[3][THREADS];

    begin(&f, 2);
    for (unsigned i = 0; i < 3; i++) {
        parties[i] = (struct party){.node = i == 0 ? f.chief : f.workers[i - 1],
                                    .arrived = &arrived,
                                    .all = 3 * THREADS};
        for (unsigned j = 0; j < THREADS; j++)
            assert_int_equal(
                pthread_create(&threads[i][j], NULL, go_through, &parties[i]), 0);
    }
    for (unsigned i = 0; i < 3; i++) {
        for (unsigned j = 0; j < THREADS; j++)
            (void)pthread_join(threads[i][j], NULL);
        assert_int_equal(atomic_load(&parties[i].failed), 0);
        assert_int_equal(atomic_load(&parties[i].early), 0);
    }
    end(&f);
}

static void barrier_over(void *user, int code, const mu_error *error)
{
    assert_true((code == 0) == (error == NULL));
    atomic_store((atomic_int *)user, code == 0 ? 1 : code);
}

TEST(test_barrier_limit_and_cancel)
{
    mu_barrier_options options;
    atomic_int code = 0;
    mu_error error = {0};
    struct fixture f;

    begin(&f, 1);
    mu_barrier_options_init(&options);
    options.timeout_ms = 100;
    assert_int_equal(mu_barrier_wait(f.chief, "late", &options, &error), -MU_EDEADLINE);
    assert_non_null(strstr(error.message, "/job:worker/task:0"));
    assert_int_equal(mu_barrier_wait_async(f.chief, "b", NULL, barrier_over, &code), 0);
    check(mu_barrier_cancel(f.chief, "b", SOON_MS, &error), &error);
    for (int i = 0; i < SOON_MS && atomic_load(&code) == 0; i++)
        nodes_pause();
    assert_int_equal(atomic_load(&code), -MU_ECANCELLED);
    assert_int_equal(mu_barrier_cancel(f.chief, "b", SOON_MS, &error), -MU_EPRECONDITION);
    end(&f);
}

/* ---- Tasks, errors ---- */

static void text_is(const mu_value *map, const char *key, const char *text)
{
    const char *found = "";
    size_t size = 0;

    (void)mu_value_get_string(mu_value_find(map, key), &found, &size);
    assert_string_equal(found, text);
}

TEST(test_tasks)
{
    mu_value *tasks = NULL;
    mu_error error = {0};
    uint64_t version = 0;
    uint64_t next = 0;
    struct fixture f;

    begin(&f, 2);
    check(mu_tasks_states(f.workers[0], "worker:0-1", SOON_MS, &error, &tasks), &error);
    assert_int_equal(mu_value_count(tasks), 2);
    text_is(mu_value_at(tasks, 1), "task", "/job:worker/task:1");
    text_is(mu_value_at(tasks, 1), "state", "connected");
    mu_value_free(tasks);
    check(mu_tasks_watch(f.chief, "worker:1", 0, SOON_MS, &error, &version, &tasks),
          &error);
    mu_value_free(tasks);
    assert_true(version > 0);
    assert_int_equal(mu_tasks_watch(f.chief, "worker:1", version, 50, &error, &next,
                                    &tasks),
                     -MU_EDEADLINE);
    check(mu_agent_leave(f.workers[1], SOON_MS, &error), &error);
    assert_int_equal(mu_agent_state(f.workers[1], NULL), MU_AGENT_DISCONNECTED);
    check(mu_tasks_watch(f.chief, "worker:1", version, SOON_MS, &error, &next, &tasks),
          &error);
    assert_true(next > version);
    text_is(mu_value_at(tasks, 0), "state", "disconnected");
    mu_value_free(tasks);
    check(mu_tasks_devices(f.chief, SOON_MS, &error, &tasks), &error);
    assert_int_equal(mu_value_count(tasks), 2);
    mu_value_free(tasks);
    check(mu_tasks_wait(f.chief, "chief:0,worker:0", SOON_MS, &error, &tasks), &error);
    assert_int_equal(mu_value_count(tasks), 2);
    mu_value_free(tasks);
    mu_agent_progress(f.chief);
    end(&f);
}

static void note_error(void *user, const mu_error *error)
{
    atomic_store((atomic_int *)user, error->code);
}

TEST(test_error_and_reset)
{
    atomic_int code = 0;
    mu_error error = {0};
    struct fixture f;
    mu_kv_item item;

    begin(&f, 1);
    assert_int_equal(mu_agent_on_error(f.workers[0], note_error, &code), 0);
    assert_int_equal(mu_agent_state(f.workers[0], &error), MU_AGENT_CONNECTED);
    assert_int_equal(mu_agent_reset(f.workers[0], SOON_MS, &error), -MU_EPRECONDITION);
    check(mu_agent_report_error(f.workers[0], -MU_EDATALOSS, "disk", SOON_MS, &error),
          &error);
    assert_int_equal(atomic_load(&code), -MU_EDATALOSS);
    assert_int_equal(mu_agent_state(f.workers[0], &error), MU_AGENT_ERROR);
    assert_int_equal(error.code, -MU_EDATALOSS);
    assert_string_equal(error.message, "disk");
    assert_string_equal(error.task, "/job:worker/task:0");
    assert_int_equal(mu_kv_get(f.workers[0], "a", SOON_MS, &error, &item), -MU_EDATALOSS);
    check(mu_agent_reset(f.workers[0], SOON_MS, &error), &error);
    assert_int_equal(mu_kv_get(f.workers[0], "a", SOON_MS, &error, &item),
                     -MU_EPRECONDITION);
    check(mu_agent_register(f.workers[0], 0, SOON_MS, &error), &error);
    put(f.workers[0], "a", "1", 0);
    assert_int_equal(mu_agent_set_error(f.workers[0], -MU_EINTERNAL, "by hand"), 0);
    assert_int_equal(atomic_load(&code), -MU_EINTERNAL);
    end(&f);
}

/* What a member says cannot end, begin or colour a line of the chief's log. */
TEST(test_error_that_forges_a_line)
{
    static const char forged[] = "x\n/job:chief/task:0 node: ERROR all is lost\x1b[2J\r";
    mu_error error = {0};
    struct fixture f;

    begin(&f, 1);
    check(mu_agent_report_error(f.workers[0], -MU_EDATALOSS, forged, SOON_MS, &error),
          &error);
    nodes_wait_log(&f.nodes,
                   "/job:chief/task:0 coordination: /job:worker/task:0: error: x\\n"
                   "/job:chief/task:0 node: ERROR all is lost\\x1b[2J");
    assert_false(nodes_has_logged(&f.nodes, "\n/job:chief/task:0 node: ERROR"));
    assert_false(nodes_has_logged(&f.nodes, "\x1b"));
    assert_false(nodes_has_logged(&f.nodes, "\r"));
    end(&f);
}

/* ---- Preemption ---- */

struct trainer {
    mu_node *node;
    uint64_t first;
    uint64_t stopped;
    atomic_bool begun; /* has reached a step, and so counts */
};

static void *train(void *arg)
{
    struct trainer *trainer = arg;
    int stop = 0;

    for (uint64_t step = trainer->first; stop == 0 && step < 1000000; step++) {
        if (mu_preemption_reached(trainer->node, step, NULL, &stop) != 0)
            return NULL;
        trainer->stopped = step;
        atomic_store(&trainer->begun, true);
        if (step % 100 == 0)
            nodes_pause();
    }
    return NULL;
}

TEST(test_preemption)
{
    struct trainer trainers[2];
    pthread_t threads[2];
    mu_preemption preemption;
    mu_error error = {0};
    struct fixture f;

    begin(&f, 2);
    for (unsigned i = 0; i < 2; i++) {
        trainers[i] = (struct trainer){.node = f.workers[i], .first = 50 * i};
        assert_int_equal(pthread_create(&threads[i], NULL, train, &trainers[i]), 0);
        while (!atomic_load(&trainers[i].begun))
            nodes_pause();
    }
    check(mu_preemption_notify(f.workers[1], "spot", 30000, SOON_MS, &error), &error);
    check(mu_preemption_wait(f.chief, 0, 1, SOON_MS, &error, &preemption), &error);
    for (unsigned i = 0; i < 2; i++) {
        (void)pthread_join(threads[i], NULL);
        assert_int_equal(trainers[i].stopped, preemption.step);
    }
    assert_string_equal(preemption.task, "/job:worker/task:1");
    assert_string_equal(preemption.reason, "spot");
    assert_true(preemption.left_ms <= 30000 && preemption.left_ms > 0);
    end(&f);
}

/* ---- Closing, and no service ---- */

struct waiter {
    mu_node *node;
    atomic_bool begins;
    int code;
};

static void *wait_for_key(void *arg)
{
    struct waiter *waiter = arg;
    mu_kv_item item;

    atomic_store(&waiter->begins, true);
    waiter->code = mu_kv_get(waiter->node, "never", -1, NULL, &item);
    return NULL;
}

static void *wait_at_barrier(void *arg)
{
    struct waiter *waiter = arg;

    atomic_store(&waiter->begins, true);
    waiter->code = mu_barrier_wait(waiter->node, "never", NULL, NULL);
    return NULL;
}

/* Whatever waits hears that the node is closed; what is asked later does at once. */
TEST(test_closing)
{
    static void *(*const waits[])(void *) = {wait_for_key, wait_at_barrier, wait_for_key};
    const mu_kv_request ask = {.operation = MU_KV_GET, .key = "never", .timeout_ms = -1};
    struct waiter waiters[3];
    pthread_t threads[3];
    atomic_int codes[100];
    struct fixture f;
    mu_kv_watch *watch = NULL;
    mu_error error = {0};

    begin(&f, 1);
    check(mu_kv_watch_open(f.workers[0], "w", 0, SOON_MS, &error, &watch), &error);
    for (unsigned i = 0; i < 3; i++) {
        waiters[i] = (struct waiter){.node = f.workers[0]};
        assert_int_equal(pthread_create(&threads[i], NULL, waits[i], &waiters[i]), 0);
        while (!atomic_load(&waiters[i].begins))
            nodes_pause();
    }
    for (unsigned i = 0; i < 100; i++) {
        atomic_init(&codes[i], 0);
        assert_int_equal(
            mu_kv_request_async(f.workers[0], &ask, note_code, &codes[i], NULL), 0);
    }
    for (int i = 0; i < 50; i++)
        nodes_pause();
    nodes_close(&f.nodes, f.workers[0]);
    for (unsigned i = 0; i < 3; i++) {
        (void)pthread_join(threads[i], NULL);
        assert_int_equal(waiters[i].code, -MU_ECLOSED);
    }
    for (unsigned i = 0; i < 100; i++)
        assert_int_equal(atomic_load(&codes[i]), -MU_ECLOSED);
    mu_kv_watch_close(watch);
    end(&f);
}

/* One that nobody hosts the service for. */
TEST(test_no_service)
{
    mu_node_options options;
    struct nodes nodes;
    mu_error error = {0};
    mu_node *node;
    int stop = 1;

    nodes_init(&nodes, 0, 0);
    nodes_options(&nodes, "chief", 0, &options);
    options.service_hosts = "none";
    node = nodes_open_with(&nodes, &options);
    assert_int_equal(mu_agent_state(node, &error), MU_AGENT_UNINITIALIZED);
    assert_int_equal(mu_kv_put(node, "a", "", 0, 0, 0, -1, &error, NULL),
                     -MU_EPRECONDITION);
    assert_string_equal(error.message,
                        "there is no coordination service: option service_hosts names no "
                        "task that may host it");
    assert_int_equal(mu_preemption_reached(node, 1, &error, &stop), 0);
    assert_int_equal(stop, 0);
    nodes_done(&nodes);
}

TEST_PROGRAM()
