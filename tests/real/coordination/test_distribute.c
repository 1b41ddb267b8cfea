/* The distribute coordinator without servers: local runs, and the threads of a client in
 * standalone mode. What each call is told, who meets whom, how all of it ends. */
#include <muster.h>

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <uv.h>

#include <cmocka.h>

#define COUNT(array) (sizeof(array) / sizeof(array)[0])

enum { CALLS_MAX = 16, LINE_BYTES = 512, TEXT_BYTES = 8192, SOON_MS = 20000 };

#define C "\"chief\":[\"c:1\"]"
#define W2 "\"worker\":[\"w:1\",\"w:2\"]"
#define W3 "\"worker\":[\"w:1\",\"w:2\",\"w:3\"]"
#define P "\"ps\":[\"p:1\"]"
#define E "\"evaluator\":[\"e:1\"]"

/* What the calls of a run write down, one line each. */
struct notes {
    pthread_mutex_t lock;
    size_t count;
    char lines[CALLS_MAX][LINE_BYTES];
    char log[TEXT_BYTES];
    atomic_int inside;
    atomic_int rounds;
    bool wait;                  /* at the barrier, */
    int64_t timeout_ms;           /* so long */
    const char *fails;          /* this task does, before the barrier */
    const char *leaves;         /* this one returns 0 and does not come */
    const char *hangs;          /* this one does not end before `release` */
    atomic_bool release;
    int seen_code;              /* what a wait came to */
};

static int setup(void **state)
{
    struct notes *notes = calloc(1, sizeof *notes);

    assert_non_null(notes);
    (void)pthread_mutex_init(&notes->lock, NULL);
    notes->timeout_ms = SOON_MS;
    (void)unsetenv("TF_CONFIG");
    *state = notes;
    return 0;
}

static int teardown(void **state)
{
    struct notes *notes = *state;

    (void)unsetenv("TF_CONFIG");
    (void)pthread_mutex_destroy(&notes->lock);
    free(notes);
    return 0;
}

static void keep_log(void *user, int level, const char *task, const char *who,
                     const char *line)
{
    struct notes *notes = user;
    size_t used;

    (void)task;
    (void)pthread_mutex_lock(&notes->lock);
    used = strlen(notes->log);
    (void)snprintf(notes->log + used, sizeof notes->log - used, "%d %s: %s\n", level, who,
                   line);
    (void)pthread_mutex_unlock(&notes->lock);
}

/* Everything that a context says of itself. */
static void describe(mu_context *c, const char *what, char *out)
{
    const char *type = mu_context_task_type(c);
    const mu_session_config *config = mu_context_session_config(c);
    size_t used = (size_t)snprintf(
        out, LINE_BYTES,
        "%s %s:%d n=%zu chief=%d distributed=%d init=%d save=%d summary=%d barrier=%d "
        "master=\"%s\"",
        what, type == NULL ? "-" : type, mu_context_task_index(c),
        mu_context_num_workers(c), mu_context_is_chief(c), mu_context_distributed_mode(c),
        mu_context_should_init(c), mu_context_should_checkpoint(c),
        mu_context_should_save_summary(c), mu_context_has_barrier(c),
        mu_context_master_target(c));

    for (size_t i = 0; i < config->device_filters_count; i++)
        used += (size_t)snprintf(out + used, LINE_BYTES - used, "%s%s",
                                 i == 0 ? " filters=" : ",", config->device_filters[i]);
}

static void note(struct notes *notes, mu_context *c, const char *what)
{
    (void)pthread_mutex_lock(&notes->lock);
    assert_true(notes->count < CALLS_MAX);
    describe(c, what, notes->lines[notes->count++]);
    (void)pthread_mutex_unlock(&notes->lock);
}

static bool is_task(const char *wanted, const mu_context *c)
{
    return wanted != NULL && strcmp(mu_context_task(c), wanted) == 0;
}

static int act(struct notes *notes, mu_context *c)
{
    mu_error error = {0};
    int rv;

    if (is_task(notes->fails, c))
        return mu_context_fail(c, -MU_EDATALOSS, "%s lost it", mu_context_task(c));
    if (is_task(notes->leaves, c))
        return 0;
    while (is_task(notes->hangs, c) && !atomic_load(&notes->release))
        uv_sleep(1);
    if (!notes->wait || !mu_context_has_barrier(c))
        return 0;
    rv = mu_context_wait_for_others(c, notes->timeout_ms, &error);
    return rv == 0 ? 0 : mu_context_fail_with(c, &error);
}

static int work(mu_context *c, void *user)
{
    struct notes *notes = user;
    int rv;

    atomic_fetch_add(&notes->inside, 1);
    assert_ptr_equal(mu_context_current(), c);
    note(notes, c, "work");
    mu_context_return(c, mu_value_int(mu_context_task_index(c) + 100));
    rv = act(notes, c);
    atomic_fetch_sub(&notes->inside, 1);
    return rv;
}

/* Let who was left behind come to its end. */
static void release(struct notes *notes)
{
    atomic_store(&notes->release, true);
    while (atomic_load(&notes->inside) != 0)
        uv_sleep(1);
}

static int eval(mu_context *c, void *user)
{
    struct notes *notes = user;

    note(notes, c, "eval");
    assert_true(mu_context_is_evaluation(c));
    while (mu_context_distributed_mode(c) == 0 && mu_context_task_type(c) != NULL &&
           !mu_context_cancelled(c) && !is_task(notes->fails, c))
        uv_sleep(1);
    mu_context_return(c, mu_value_string("good"));
    return act(notes, c);
}

static void options_of(struct notes *notes, mu_distribute_options *o)
{
    mu_distribute_options_init(o);
    o->worker = work;
    o->worker_user = notes;
    o->eval_user = notes;
    o->node_options.log = keep_log;
    o->node_options.log_user = notes;
}

static int by_text(const void *a, const void *b)
{
    return strcmp(a, b);
}

/* The lines of all calls, sorted. */
static void check_lines(struct notes *notes, const char *const *expected, size_t count)
{
    qsort(notes->lines, notes->count, LINE_BYTES, by_text);
    for (size_t i = 0; i < count && i < notes->count; i++)
        assert_string_equal(notes->lines[i], expected[i]);
    assert_int_equal(notes->count, count);
}

static int fail_without_code(mu_context *c, void *user)
{
    static const mu_error none;

    (void)user;
    return mu_context_fail_with(c, &none);
}

static mu_cluster *parse(const char *json)
{
    mu_cluster *cluster = NULL;
    mu_error error;

    if (mu_cluster_parse(json, strlen(json), "test", &error, &cluster) != 0)
        fail_msg("%s: %s", json, error.message);
    return cluster;
}

static int run(const mu_distribute_options *o, mu_value **ret_results)
{
    mu_error error = {0};
    int rv = mu_distribute_run(o, &error, ret_results);

    if (rv != 0)
        fail_msg("%s", error.message);
    assert_null(mu_context_current());
    return rv;
}

static int code_of(const mu_value *results, const char *name)
{
    int64_t code = 1;

    if (mu_value_get_int(mu_value_find(mu_value_find(results, name), "code"), &code) != 0)
        fail_msg("no result of %s", name);
    return (int)code;
}

static const char *text_of(const mu_value *results, const char *name, const char *key)
{
    const char *text = "";
    size_t size;

    (void)mu_value_get_string(mu_value_find(mu_value_find(results, name), key), &text,
                              &size);
    return text;
}

/* ---- local ---- */

static void test_local(void **state)
{
    static const char *const lines[] = {
        "work -:-1 n=0 chief=1 distributed=0 init=1 save=1 summary=1 barrier=0 "
        "master=\"\"",
    };
    struct notes *notes = *state;
    mu_distribute_options o;
    mu_value *results = NULL;
    int64_t number = 0;

    options_of(notes, &o);
    (void)run(&o, &results);
    check_lines(notes, lines, COUNT(lines));
    assert_int_equal(mu_value_count(results), 1);
    assert_int_equal(code_of(results, "worker_fn"), 0);
    (void)mu_value_get_int(mu_value_find(mu_value_find(results, "worker_fn"), "value"),
                           &number);
    assert_int_equal(number, 99);
    assert_non_null(strstr(notes->log, "1 distribute: there is no eval function: "
                                       "nothing is evaluated"));
    mu_value_free(results);
}

static void test_local_evaluates(void **state)
{
    static const char *const lines[] = {
        "eval -:-1 n=0 chief=1 distributed=0 init=1 save=1 summary=1 barrier=0 "
        "master=\"\"",
        "work -:-1 n=0 chief=1 distributed=0 init=1 save=1 summary=1 barrier=0 "
        "master=\"\"",
    };
    struct notes *notes = *state;
    mu_distribute_options o;
    mu_value *results = NULL;

    options_of(notes, &o);
    o.mode = MU_MODE_INDEPENDENT;
    o.eval = eval;
    o.strategy = mu_strategy_parameter_server();
    (void)run(&o, &results);
    check_lines(notes, lines, COUNT(lines));
    assert_string_equal(text_of(results, "eval_fn", "value"), "good");
    assert_non_null(strstr(notes->log, "there is no eval strategy"));
    mu_value_free(results);
}

static int fail_plainly(mu_context *c, void *user)
{
    (void)c;
    (void)user;
    return 7;
}

/* An error ends it: nothing is evaluated, and the result has it, too. */
static void test_local_fails(void **state)
{
    struct notes *notes = *state;
    mu_distribute_options o;
    mu_value *results = NULL;
    mu_error error = {0};

    options_of(notes, &o);
    o.worker = fail_plainly;
    o.eval = eval;
    assert_int_equal(mu_distribute_run(&o, &error, &results), -MU_EUNKNOWN);
    assert_string_equal(error.message,
                        "the worker function of worker_fn ended with EUNKNOWN (-2)");
    assert_int_equal(notes->count, 0);
    assert_int_equal(code_of(results, "worker_fn"), -MU_EUNKNOWN);
    assert_string_equal(text_of(results, "worker_fn", "error"), "EUNKNOWN");
    assert_int_equal(mu_value_count(results), 1);
    mu_value_free(results);
}

static int look_for_things(mu_context *c, void *user)
{
    mu_error error = {0};
    mu_session *session = NULL;
    mu_node *node = NULL;

    assert_null(user);
    assert_null(mu_context_cluster(c));
    assert_string_equal(mu_context_task(c), "");
    assert_int_equal(mu_context_wait_for_others(c, 0, &error), -MU_EINVALID);
    assert_string_equal(error.message,
                        "worker_fn has nobody to wait for: there is no barrier");
    assert_int_equal(mu_context_node(c, &error, &node), -MU_EPRECONDITION);
    assert_string_equal(error.message, "worker_fn has no node: it runs locally");
    assert_int_equal(mu_context_session(c, NULL, &error, &session), -MU_EPRECONDITION);
    assert_false(mu_context_cancelled(c));
    return 0;
}

static void test_local_has_nothing(void **state)
{
    struct notes *notes = *state;
    mu_distribute_options o;

    options_of(notes, &o);
    o.worker = look_for_things;
    o.worker_user = NULL;
    assert_int_equal(run(&o, NULL), 0);
}

static int wait_alone(mu_context *c, void *user)
{
    (void)user;
    return mu_context_wait_for_others(c, -1, NULL);
}

static void test_barrier_optional(void **state)
{
    struct notes *notes = *state;
    mu_distribute_options o;

    options_of(notes, &o);
    o.worker = wait_alone;
    assert_int_equal(mu_distribute_run(&o, NULL, NULL), -MU_EINVALID);
    o.barrier_optional = 1;
    (void)run(&o, NULL);
}

static int nest(mu_context *c, void *user)
{
    mu_error error = {0};
    mu_value *results = (mu_value *)user;
    int rv = mu_distribute_run(user, &error, &results);

    assert_int_equal(rv, -MU_EINVALID);
    assert_string_equal(error.message, "already in a context: that of worker_fn");
    assert_null(results);
    assert_ptr_equal(mu_context_current(), c);
    return 0;
}

static void test_nesting(void **state)
{
    struct notes *notes = *state;
    mu_distribute_options o;

    options_of(notes, &o);
    o.worker = nest;
    o.worker_user = &o;
    assert_int_equal(run(&o, NULL), 0);
}

/* ---- standalone ---- */

static void test_between_graph(void **state)
{
    static const char *const lines[] = {
        "eval evaluator:0 n=3 chief=1 distributed=0 init=1 save=1 summary=1 barrier=0 "
        "master=\"\"",
        "work chief:0 n=3 chief=1 distributed=1 init=1 save=1 summary=1 barrier=1 "
        "master=\"grpc://c:1\" filters=/job:chief/task:0,/job:ps",
        "work worker:0 n=3 chief=0 distributed=1 init=0 save=0 summary=0 barrier=1 "
        "master=\"grpc://w:1\" filters=/job:worker/task:0,/job:ps",
        "work worker:1 n=3 chief=0 distributed=1 init=0 save=0 summary=0 barrier=1 "
        "master=\"grpc://w:2\" filters=/job:worker/task:1,/job:ps",
    };
    struct notes *notes = *state;
    mu_cluster *cluster = parse("{" C "," W2 "," P "," E "}");
    mu_distribute_options o;
    mu_value *results = NULL;
    int64_t number = 0;

    options_of(notes, &o);
    o.cluster = cluster;
    o.eval = eval;
    o.strategy = o.eval_strategy = mu_strategy_parameter_server();
    notes->wait = true;
    (void)run(&o, &results);
    check_lines(notes, lines, COUNT(lines));
    assert_int_equal(mu_value_count(results), 4);
    assert_int_equal(code_of(results, "/job:worker/task:1"), 0);
    (void)mu_value_get_int(
        mu_value_find(mu_value_find(results, "/job:worker/task:1"), "value"), &number);
    assert_int_equal(number, 101);
    assert_string_equal(text_of(results, "/job:evaluator/task:0", "value"), "good");
    assert_string_equal(notes->log, "");
    mu_value_free(results);
    mu_cluster_free(cluster);
}

static void test_in_graph(void **state)
{
    static const char *const lines[] = {
        "work -:-1 n=2 chief=1 distributed=1 init=1 save=1 summary=1 barrier=0 "
        "master=\"tls://w:1\"",
        "work evaluator:0 n=2 chief=1 distributed=0 init=1 save=1 summary=1 barrier=0 "
        "master=\"\"",
    };
    struct notes *notes = *state;
    mu_cluster *cluster = parse("{" W2 "," P "," E "}");
    mu_distribute_options o;
    mu_value *results = NULL;

    options_of(notes, &o);
    o.cluster = cluster;
    o.rpc_layer = "tls";
    (void)run(&o, &results);
    check_lines(notes, lines, COUNT(lines));
    assert_int_equal(mu_value_count(results), 2);
    assert_int_equal(code_of(results, "worker_fn"), 0);
    assert_non_null(strstr(notes->log, "1 distribute: there is no eval function: the "
                                       "worker function stands for it\n"));
    assert_non_null(strstr(notes->log, "1 distribute: there is no eval strategy: "));
    mu_value_free(results);
    mu_cluster_free(cluster);
}

enum { ROUNDS = 50 };

/* Nobody is in a round that the others have not finished. */
static int go_round(mu_context *c, void *user)
{
    struct notes *notes = user;
    int rv = 0;

    for (int round = 0; rv == 0 && round < ROUNDS; round++) {
        atomic_fetch_add(&notes->rounds, 1);
        rv = mu_context_wait_for_others(c, SOON_MS, NULL);
        assert_true(atomic_load(&notes->rounds) >= (round + 1) * 3);
        assert_true(atomic_load(&notes->rounds) <= (round + 2) * 3);
    }
    return rv;
}

static void test_rounds(void **state)
{
    struct notes *notes = *state;
    mu_cluster *cluster = parse("{" W3 "}");
    mu_distribute_options o;

    options_of(notes, &o);
    o.cluster = cluster;
    o.worker = go_round;
    o.strategy = mu_strategy_parameter_server();
    (void)run(&o, NULL);
    assert_int_equal(atomic_load(&notes->rounds), ROUNDS * 3);
    mu_cluster_free(cluster);
}

/* A task that fails before the barrier: the others do not wait for it, and hear why. */
static void test_failure_at_the_barrier(void **state)
{
    struct notes *notes = *state;
    mu_cluster *cluster = parse("{" C "," W2 "," E "}");
    mu_distribute_options o;
    mu_value *results = NULL;
    mu_error error = {0};

    options_of(notes, &o);
    o.cluster = cluster;
    o.eval = eval;
    o.strategy = o.eval_strategy = mu_strategy_parameter_server();
    notes->wait = true;
    notes->timeout_ms = -1;
    notes->fails = "/job:worker/task:1";
    assert_int_equal(mu_distribute_run(&o, &error, &results), -MU_EDATALOSS);
    assert_string_equal(error.message, "/job:worker/task:1 lost it");
    assert_string_equal(error.task, "/job:worker/task:1");
    assert_int_equal(code_of(results, "/job:chief/task:0"), -MU_EDATALOSS);
    assert_int_equal(code_of(results, "/job:worker/task:0"), -MU_EDATALOSS);
    assert_string_equal(text_of(results, "/job:worker/task:0", "task"),
                        "/job:worker/task:1");
    assert_string_equal(text_of(results, "/job:worker/task:1", "message"),
                        "/job:worker/task:1 lost it");
    assert_int_equal(code_of(results, "/job:evaluator/task:0"), 0);
    mu_value_free(results);
    mu_cluster_free(cluster);
}

/* The evaluator's error counts like any other, and ends the workers' waiting. */
static void test_evaluator_fails(void **state)
{
    struct notes *notes = *state;
    mu_cluster *cluster = parse("{" W2 "," E "}");
    mu_distribute_options o;
    mu_value *results = NULL;
    mu_error error = {0};

    options_of(notes, &o);
    o.cluster = cluster;
    o.eval = eval;
    o.strategy = mu_strategy_parameter_server();
    notes->wait = true;
    notes->timeout_ms = -1;
    notes->fails = "/job:evaluator/task:0";
    notes->hangs = "/job:worker/task:1";
    o.end_timeout_ms = 300;
    assert_int_equal(mu_distribute_run(&o, &error, &results), -MU_EDATALOSS);
    assert_int_equal(code_of(results, "/job:worker/task:0"), -MU_EDATALOSS);
    assert_int_equal(code_of(results, "/job:worker/task:1"), -MU_EDEADLINE);
    assert_string_equal(text_of(results, "/job:worker/task:1", "message"),
                        "/job:worker/task:1 did not come to its end within 300 ms");
    assert_non_null(strstr(notes->log, "and is left behind"));
    mu_value_free(results);
    mu_cluster_free(cluster);
    release(notes);
}

/* Who returns without coming is not waited for, either. */
static void test_leaves_without_coming(void **state)
{
    struct notes *notes = *state;
    mu_cluster *cluster = parse("{" W3 "}");
    mu_distribute_options o;
    mu_value *results = NULL;
    mu_error error = {0};

    options_of(notes, &o);
    o.cluster = cluster;
    o.strategy = mu_strategy_parameter_server();
    notes->wait = true;
    notes->timeout_ms = -1;
    notes->leaves = "/job:worker/task:2";
    assert_int_equal(mu_distribute_run(&o, &error, &results), -MU_EABORTED);
    assert_string_equal(error.message, "/job:worker/task:2 has ended, and will not come "
                                       "to the barrier");
    assert_int_equal(code_of(results, "/job:worker/task:2"), 0);
    mu_value_free(results);
    mu_cluster_free(cluster);
}

/* The chief waits without a limit, and a worker says that it need not. */
static int end_the_chief_s_wait(mu_context *c, void *user)
{
    struct notes *notes = user;
    mu_error error = {0};
    int rv;

    if (!is_task("/job:chief/task:0", c)) {
        while (atomic_load(&notes->inside) == 0)
            uv_sleep(1);
        uv_sleep(1);
        (void)mu_error_set(&error, -MU_ECANCELLED, "interrupted");
        assert_int_equal(mu_context_abort_waits(c, &error), -MU_ECANCELLED);
        return 0;
    }
    atomic_fetch_add(&notes->inside, 1);
    rv = mu_context_wait_for_others(c, -1, &error);
    notes->seen_code = rv;
    rv = mu_context_wait_for_others(c, -1, &error);
    assert_int_equal(rv, notes->seen_code);
    assert_string_equal(error.task, "/job:worker/task:0");
    return mu_context_fail_with(c, &error);
}

static void test_waits_are_ended_by_another_thread(void **state)
{
    struct notes *notes = *state;
    mu_distribute_options o;
    mu_error error = {0};
    mu_cluster *cluster = parse("{" C ",\"worker\":[\"w:1\"]}");

    options_of(notes, &o);
    o.worker = end_the_chief_s_wait;
    o.strategy = mu_strategy_parameter_server();
    o.cluster = cluster;
    assert_int_equal(mu_distribute_run(&o, &error, NULL), -MU_ECANCELLED);
    assert_string_equal(error.message, "interrupted");
    assert_int_equal(notes->seen_code, -MU_ECANCELLED);
    mu_cluster_free(cluster);
}

static void test_barrier_limit(void **state)
{
    struct notes *notes = *state;
    mu_cluster *cluster = parse("{" W2 "}");
    mu_distribute_options o;
    mu_value *results = NULL;
    mu_error error = {0};

    options_of(notes, &o);
    o.cluster = cluster;
    o.strategy = mu_strategy_parameter_server();
    o.end_timeout_ms = 100;
    notes->wait = true;
    notes->timeout_ms = 50;
    notes->hangs = "/job:worker/task:0";
    assert_int_equal(mu_distribute_run(&o, &error, &results), -MU_EDEADLINE);
    assert_string_equal(error.message, "1 of 2 had come to the barrier after 50 ms; "
                                       "missing: /job:worker/task:0");
    mu_value_free(results);
    mu_cluster_free(cluster);
    release(notes);
}

/* ---- strategies ---- */

struct counted {
    atomic_int configured;
    atomic_int dropped;
    char tasks[CALLS_MAX][64];
};

struct copy {
    struct counted *counted;
    int index;
    char filter[32];
    const char *filters[1];
};

static int configure(void *user, const mu_strategy_task *task, mu_error *ret_error,
                     void **ret_copy)
{
    struct counted *counted = user;
    struct copy *copy = calloc(1, sizeof *copy);
    int number = atomic_fetch_add(&counted->configured, 1);

    if (task->index == 2) {
        free(copy);
        return mu_error_set(ret_error, -MU_EUNIMPLEMENTED, "no third task");
    }
    (void)snprintf(counted->tasks[number], sizeof counted->tasks[0], "%s:%d %zu %d",
                   task->type == NULL ? "-" : task->type, task->index,
                   mu_cluster_task_count(task->cluster, NULL), task->is_chief);
    copy->counted = counted;
    copy->index = task->index;
    *ret_copy = copy;
    return 0;
}

static void want(void *arg, mu_session_config *config)
{
    struct copy *copy = arg;

    (void)snprintf(copy->filter, sizeof copy->filter, "/job:ps/task:%d", copy->index);
    copy->filters[0] = copy->filter;
    config->device_filters = copy->filters;
    config->device_filters_count = 1;
    config->inter_op_threads++;
}

static int is_first(void *arg)
{
    return ((struct copy *)arg)->index == 1;
}

static void drop(void *arg)
{
    struct copy *copy = arg;

    atomic_fetch_add(&copy->counted->dropped, 1);
    free(copy);
}

static int check_copy(mu_context *c, void *user)
{
    const struct copy *copy = mu_context_strategy(c);

    assert_int_equal(copy->index, mu_context_task_index(c));
    assert_int_equal(mu_context_session_config(c)->inter_op_threads, 8);
    return work(c, user);
}

/* Each task has its own copy, made for it and dropped with it. */
static void test_own_strategy(void **state)
{
    static const char *const lines[] = {
        "work worker:0 n=2 chief=1 distributed=1 init=0 save=1 summary=1 barrier=1 "
        "master=\"w:1\" filters=/job:ps/task:0",
        "work worker:1 n=2 chief=0 distributed=1 init=1 save=0 summary=0 barrier=1 "
        "master=\"w:2\" filters=/job:ps/task:1",
    };
    struct counted counted = {0};
    const mu_strategy strategy = {
        .name = "own",
        .between_graph = 1,
        .user = &counted,
        .configure = configure,
        .session_config = want,
        .should_init = is_first,
        .drop = drop,
    };
    struct notes *notes = *state;
    mu_cluster *cluster = parse("{" W2 "," P "}");
    mu_cluster *larger = parse("{" W3 "," P "}");
    mu_distribute_options o;
    mu_error error = {0};

    options_of(notes, &o);
    o.cluster = cluster;
    o.rpc_layer = "";
    o.strategy = &strategy;
    o.worker = check_copy;
    o.config.inter_op_threads = 7;
    (void)run(&o, NULL);
    check_lines(notes, lines, COUNT(lines));
    assert_int_equal(atomic_load(&counted.configured), 2);
    assert_int_equal(atomic_load(&counted.dropped), 2);
    assert_string_equal(counted.tasks[0], "worker:0 3 1");
    assert_string_equal(counted.tasks[1], "worker:1 3 0");

    o.cluster = larger;
    assert_int_equal(mu_distribute_run(&o, &error, NULL), -MU_EUNIMPLEMENTED);
    assert_string_equal(error.message, "strategy \"own\" cannot be configured for "
                                       "worker:2: no third task");
    assert_int_equal(atomic_load(&counted.dropped), 4);
    mu_cluster_free(cluster);
    mu_cluster_free(larger);
}

/* ---- the environment ---- */

static int own_spec(void *user, mu_error *ret_error, mu_tf_config *ret_config)
{
    const char *json = user;

    return mu_tf_config_parse(json, strlen(json), ret_error, ret_config);
}

static void test_tf_config(void **state)
{
    static const char *const lines[] = {
        "work -:-1 n=1 chief=1 distributed=1 init=1 save=1 summary=1 barrier=0 "
        "master=\"tcp://outside:9\"",
        "work evaluator:0 n=1 chief=1 distributed=0 init=1 save=1 summary=1 barrier=0 "
        "master=\"\"",
    };
    struct notes *notes = *state;
    mu_distribute_options o;

    options_of(notes, &o);
    (void)setenv("TF_CONFIG",
                 "{\"cluster\":{" C "," E "},\"rpc_layer\":\"x\",\"environment\":\"\","
                 "\"session_master\":\"tcp://outside:9\"}", 1);
    (void)run(&o, NULL);
    check_lines(notes, lines, COUNT(lines));
}

static mu_resolver *static_resolver(const char *json, const char *layer)
{
    mu_cluster *cluster = json == NULL ? NULL : parse(json);
    mu_resolver *resolver = NULL;
    mu_error error;

    if (mu_resolver_new_static(cluster, NULL, NULL, -1, &error, &resolver) != 0 ||
        (layer != NULL && mu_resolver_set_rpc_layer(resolver, layer, &error) != 0))
        fail_msg("%s", error.message);
    mu_cluster_free(cluster);
    return resolver;
}

/* The caller's word, then TF_CONFIG, then the resolver's, then the strategy's. */
static void test_precedence(void **state)
{
    static const struct {
        const char *environment;
        const char *found;      /* by a resolver: NULL, there is none; "": no cluster */
        const char *layer;      /* that it says */
        const char *own;        /* of the strategy */
        bool given;             /* the caller says "{worker: [w:1, w:2]}" */
        const char *master;
        size_t workers;
    } rows[] = {
        {NULL, NULL, NULL, NULL, false, "", 0},
        {NULL, NULL, NULL, "{\"cluster\":{" W3 "},\"rpc_layer\":\"s\"}", false, "s://w:1",
         3},
        {"{\"cluster\":{" C "}}", NULL, NULL, "{\"cluster\":{" W3 "}}", false,
         "grpc://c:1", 1},
        {"{\"rpc_layer\":\"e\"}", NULL, NULL, "{\"cluster\":{" W3 "}}", false, "e://w:1",
         3},
        {"{\"cluster\":{" C "},\"rpc_layer\":\"e\"}", NULL, NULL,
         "{\"cluster\":{" W3 "}}", true, "e://w:1", 2},
        {"", NULL, NULL, "{}", true, "grpc://w:1", 2},
        {NULL, "{" W3 "}", NULL, NULL, false, "grpc://w:1", 3},
        {NULL, "{" W3 "}", "r", "{\"cluster\":{" C "}}", false, "r://w:1", 3},
        {"{\"rpc_layer\":\"e\"}", "{" W3 "}", NULL, NULL, false, "e://w:1", 3},
        {"{\"rpc_layer\":\"e\"}", "{" W3 "}", "r", NULL, false, "r://w:1", 3},
        {"{\"cluster\":{" C "}}", "{" W3 "}", "r", NULL, false, "grpc://c:1", 1},
        {NULL, "{" W3 "}", "r", NULL, true, "grpc://w:1", 2},
        {NULL, "", NULL, "{\"cluster\":{" C "}}", false, "grpc://c:1", 1},
        {NULL, "", NULL, NULL, false, "", 0},
    };
    struct notes *notes = *state;
    mu_cluster *cluster = parse("{" W2 "}");

    for (size_t i = 0; i < COUNT(rows); i++) {
        const mu_strategy strategy = {
            .user = (void *)(uintptr_t)rows[i].own,
            .spec = rows[i].own == NULL ? NULL : own_spec,
        };
        char expected[64];
        mu_distribute_options o;

        options_of(notes, &o);
        o.strategy = &strategy;
        o.cluster = rows[i].given ? cluster : NULL;
        if (rows[i].found != NULL)
            o.resolver = static_resolver(rows[i].found[0] == '\0' ? NULL : rows[i].found,
                                         rows[i].layer);
        if (rows[i].environment == NULL)
            (void)unsetenv("TF_CONFIG");
        else
            (void)setenv("TF_CONFIG", rows[i].environment, 1);
        notes->count = 0;
        (void)run(&o, NULL);
        (void)snprintf(expected, sizeof expected, "master=\"%s\"", rows[i].master);
        if (strstr(notes->lines[0], expected) == NULL)
            fail_msg("row %zu: %s", i, notes->lines[0]);
        (void)snprintf(expected, sizeof expected, " n=%zu ", rows[i].workers);
        assert_non_null(strstr(notes->lines[0], expected));
        mu_resolver_free(o.resolver);
    }
    mu_cluster_free(cluster);
}

/* One process needs no cluster, so nothing that says which one there is can be wrong. */
static void test_local_mode_does_not_look_at_tf_config(void **state)
{
    static const char *const broken[] = {"{", "{\"cluster\":7}",
                                         "{\"environment\":\"moon\"}",
                                         "{\"cluster\":{" C "}}"};
    struct notes *notes = *state;
    mu_distribute_options o;

    for (size_t i = 0; i < COUNT(broken); i++) {
        options_of(notes, &o);
        o.mode = MU_MODE_LOCAL;
        notes->count = 0;
        (void)setenv("TF_CONFIG", broken[i], 1);
        (void)run(&o, NULL);
        assert_int_equal(notes->count, 1);
    }
}

/* What it does not find is no local run by mistake; who wants one does not ask it. What
 * it calls the master stands, as TF_CONFIG's session_master does. */
static void test_resolver(void **state)
{
    struct notes *notes = *state;
    mu_distribute_options o;
    mu_resolver *resolver = NULL;
    mu_error error;

    assert_int_equal(mu_resolver_new("file", &error, &resolver), 0);
    assert_int_equal(mu_resolver_set(resolver, "path", "/nobody/has/this", &error), 0);
    options_of(notes, &o);
    o.resolver = resolver;
    o.node_options.resolve_ms = 200;
    assert_int_not_equal(mu_distribute_run(&o, &error, NULL), 0);
    assert_non_null(strstr(error.message, "/nobody/has/this"));
    o.mode = MU_MODE_INDEPENDENT;
    assert_int_not_equal(mu_distribute_run(&o, &error, NULL), 0);
    assert_non_null(strstr(error.message, "/nobody/has/this"));
    assert_int_equal(notes->count, 0);
    o.mode = MU_MODE_LOCAL;
    (void)run(&o, NULL);
    assert_int_equal(notes->count, 1);
    mu_resolver_free(resolver);

    assert_int_equal(mu_resolver_new("tf_config", &error, &resolver), 0);
    (void)setenv("TF_CONFIG",
                 "{\"cluster\":{" C "},\"session_master\":\"tcp://outside:9\"}", 1);
    o.resolver = resolver;
    o.mode = MU_MODE_STANDALONE;
    o.ignore_environment = 1;
    notes->count = 0;
    (void)run(&o, NULL);
    assert_non_null(strstr(notes->lines[0], "master=\"tcp://outside:9\""));
    mu_resolver_free(resolver);

    /* A cluster without a word about this process: a task has to be told. */
    o.resolver = static_resolver("{" W2 "}", NULL);
    o.mode = MU_MODE_INDEPENDENT;
    assert_int_equal(mu_distribute_run(&o, &error, NULL), -MU_EINVALID);
    assert_non_null(strstr(error.message, "there is no task"));
    mu_resolver_free(o.resolver);
}

static const struct {
    const char *environment;
    const char *type;
    int index;
    const char *layer;
    const char *where;          /* the option environment */
    int mode;
    int rv;
    const char *words;
} refused[] = {
    {"{", NULL, 0, NULL, NULL, MU_MODE_STANDALONE, -MU_EINVALID, "TF_CONFIG: "},
    {"{\"cluster\":7}", NULL, 0, NULL, NULL, MU_MODE_STANDALONE, -MU_EINVALID,
     "TF_CONFIG: cluster: "},
    {"{\"cluster\":{" C "},\"task\":{\"type\":\"Boss\",\"index\":0}}", NULL, 0, NULL,
     NULL, MU_MODE_INDEPENDENT, -MU_EINVALID, "TF_CONFIG: task.type: "},
    {"{\"cluster\":{" C "},\"task\":{\"type\":\"worker\",\"index\":0}}", NULL, 0, NULL,
     NULL, MU_MODE_INDEPENDENT, -MU_ENOTFOUND, "TF_CONFIG: task.type: "},
    {"{\"cluster\":{" C "}}", NULL, 0, NULL, NULL, MU_MODE_INDEPENDENT, -MU_EINVALID,
     "there is no task"},
    {"{\"cluster\":{" C "}}", "client", 0, NULL, NULL, MU_MODE_INDEPENDENT, -MU_EINVALID,
     "unexpected task type \"client\""},
    {"{\"cluster\":{" W2 "}}", "worker", 2, NULL, NULL, MU_MODE_INDEPENDENT, -MU_ERANGE,
     "index 2"},
    {"{\"cluster\":{" P "}}", NULL, 0, NULL, NULL, MU_MODE_STANDALONE, -MU_EINVALID,
     "nobody leads"},
    {NULL, NULL, 0, NULL, NULL, 9, -MU_EINVALID, "unexpected mode 9"},
    {NULL, "a task type of many letters", 0, NULL, NULL, MU_MODE_LOCAL, -MU_EINVALID,
     "option task_type"},
    {NULL, NULL, 0, "an rpc layer of many letters", NULL, MU_MODE_LOCAL, -MU_EINVALID,
     "option rpc_layer"},
    {NULL, NULL, 0, NULL, "moon", MU_MODE_LOCAL, -MU_EINVALID, "environment \"moon\""},
    {"{\"environment\":\"moon\"}", NULL, 0, NULL, NULL, MU_MODE_STANDALONE, -MU_EINVALID,
     "environment \"moon\""},
};

static void test_refused(void **state)
{
    struct notes *notes = *state;

    for (size_t i = 0; i < COUNT(refused); i++) {
        mu_value *results = (mu_value *)notes;
        mu_distribute_options o;
        mu_error error = {0};
        int rv;

        options_of(notes, &o);
        o.mode = refused[i].mode;
        o.task_type = refused[i].type;
        o.task_index = refused[i].index;
        o.rpc_layer = refused[i].layer;
        o.environment = refused[i].where;
        if (refused[i].environment == NULL)
            (void)unsetenv("TF_CONFIG");
        else
            (void)setenv("TF_CONFIG", refused[i].environment, 1);
        rv = mu_distribute_run(&o, &error, &results);
        if (rv != refused[i].rv || strstr(error.message, refused[i].words) == NULL)
            fail_msg("row %zu: %d: %s", i, rv, error.message);
        assert_null(results);
    }
    assert_int_equal(notes->count, 0);
}

static void test_no_function(void **state)
{
    mu_distribute_options o;
    mu_error error = {0};

    options_of(*state, &o);
    o.worker = NULL;
    assert_int_equal(mu_distribute_run(&o, &error, NULL), -MU_EINVALID);
    assert_non_null(strstr(error.message, "no worker function"));
    assert_int_equal(mu_distribute_end(0, NULL), 0);
}

/* A spoilt TF_CONFIG of somebody else does not matter to who does not look at it. */
static void test_environment_ignored(void **state)
{
    struct notes *notes = *state;
    mu_distribute_options o;

    options_of(notes, &o);
    o.ignore_environment = 1;
    (void)setenv("TF_CONFIG", "{", 1);
    (void)run(&o, NULL);
    assert_int_equal(notes->count, 1);
}

/* What fails, and does not say why, has failed. */
static void test_error_without_a_code(void **state)
{
    mu_distribute_options options;
    mu_error error;

    options_of(*state, &options);
    options.mode = MU_MODE_LOCAL;
    options.worker = fail_without_code;
    assert_int_equal(mu_distribute_run(&options, &error, NULL), -MU_EUNKNOWN);
    assert_int_equal(error.code, -MU_EUNKNOWN);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_local),
        TEST(test_local_evaluates),
        TEST(test_local_fails),
        TEST(test_error_without_a_code),
        TEST(test_local_has_nothing),
        TEST(test_barrier_optional),
        TEST(test_nesting),
        TEST(test_between_graph),
        TEST(test_in_graph),
        TEST(test_rounds),
        TEST(test_failure_at_the_barrier),
        TEST(test_evaluator_fails),
        TEST(test_leaves_without_coming),
        TEST(test_waits_are_ended_by_another_thread),
        TEST(test_barrier_limit),
        TEST(test_own_strategy),
        TEST(test_tf_config),
        TEST(test_precedence),
        TEST(test_local_mode_does_not_look_at_tf_config),
        TEST(test_resolver),
        TEST(test_refused),
        TEST(test_no_function),
        TEST(test_environment_ignored),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
