/* Actors of the program's own on real nodes: asked from threads, between workers that no
 * closure connects, and when their process is killed. */
#include "tests/real/nodes.h"

#include <signal.h>
#include <stdatomic.h>
#include <sys/prctl.h>
#include <sys/types.h>
#include <sys/wait.h>

/* ---- a type ---- */

struct tally {
    int64_t sum;
    mu_reply *reply;
};

static int add(mu_actor *self, void *state, const mu_value *args)
{
    struct tally *tally = state;
    int64_t number = 0;

    if (mu_value_get_int(args, &number) != 0)
        return mu_actor_fail(self, -MU_EINVALID, "add expects a whole number");
    tally->sum += number;
    mu_actor_reply(self, mu_value_int(tally->sum));
    return 0;
}

static int hold(mu_actor *self, void *state, const mu_value *args)
{
    struct tally *tally = state;

    (void)args;
    tally->reply = mu_actor_reply_later(self);
    return 0;
}

/* [address, number]: adds it there, and answers what that answers. */
static int pass(mu_actor *self, void *state, const mu_value *args)
{
    struct tally *tally = state;
    mu_address to;

    if (mu_value_get_actor(mu_value_at(args, 0), &to) != 0)
        return mu_actor_fail(self, -MU_EINVALID, "pass expects an address");
    tally->reply = mu_actor_reply_later(self);
    return mu_actor_call(self, &to, "add", mu_value_at(args, 1), SOON_MS, 1);
}

static int sleep_here(mu_actor *self, void *state, const mu_value *args)
{
    (void)self;
    (void)state;
    (void)args;
    for (int i = 0; i < 150; i++)
        nodes_pause();
    return 0;
}

static int sleep_there(void *arg)
{
    (void)arg;
    for (int i = 0; i < 50; i++)
        nodes_pause();
    return 17;
}

static int work(mu_actor *self, void *state, const mu_value *args)
{
    struct tally *tally = state;

    (void)args;
    tally->reply = mu_actor_reply_later(self);
    return mu_actor_work(self, sleep_there, NULL, 2);
}

/* More than the executor has threads; nobody waits for them. */
static int burden(mu_actor *self, void *state, const mu_value *args)
{
    int rv = 0;

    (void)state;
    (void)args;
    for (int i = 0; rv == 0 && i < 8; i++)
        rv = mu_actor_work(self, sleep_there, NULL, 9);
    return rv;
}

static int watch(mu_actor *self, void *state, const mu_value *args)
{
    struct tally *tally = state;
    mu_address who;

    if (mu_value_get_actor(args, &who) != 0)
        return mu_actor_fail(self, -MU_EINVALID, "watch expects an address");
    tally->reply = mu_actor_reply_later(self);
    return mu_actor_monitor(self, &who, 3);
}

static void hear(mu_actor *self, void *state, const mu_notice *notice)
{
    struct tally *tally = state;
    mu_value *value = NULL;

    (void)self;
    if (notice->token == 9)
        return;
    if (notice->kind == MU_NOTICE_ANSWER)
        value = notice->value == NULL ? NULL : mu_value_ref(notice->value);
    else if (notice->kind == MU_NOTICE_WORK)
        value = mu_value_int(notice->code);
    else if (notice->kind == MU_NOTICE_DOWN)
        value = mu_value_int(notice->error == NULL ? 0 : notice->error->code);
    assert_int_equal(mu_reply_give(tally->reply, value,
                                   notice->kind == MU_NOTICE_ANSWER ? notice->error
                                                                    : NULL),
                     0);
}

static const mu_actor_method methods[] = {
    {"add", add},   {"hold", hold},   {"pass", pass},     {"sleep", sleep_here},
    {"work", work}, {"watch", watch}, {"burden", burden}, {NULL, NULL}};

static const mu_actor_type tally_type = {
    .name = "tally",
    .state_size = sizeof(struct tally),
    .methods = methods,
    .notice = hear,
};

/* ---- asking ---- */

static mu_address spawn_on(mu_node *node, const char *type, int index)
{
    mu_actor_options options;
    mu_error error = {0};
    mu_address address;

    mu_actor_options_init(&options);
    options.task_type = type;
    options.task_index = index;
    check(mu_node_spawn(node, "tally", NULL, &options, SOON_MS, &error, &address),
          &error);
    return address;
}

static mu_remote_value *request(mu_node *node, const mu_address *to, const char *method,
                                mu_value *args)
{
    mu_remote_value *value = NULL;
    mu_error error = {0};

    check(mu_actor_request(node, to, method, args, SOON_MS, &error, &value), &error);
    mu_value_free(args);
    return value;
}

static int64_t answer_of(mu_remote_value *value)
{
    mu_value *result = NULL;
    mu_error error = {0};
    int64_t number = INT64_MIN;

    check(mu_remote_value_fetch(value, SOON_MS, &error, &result), &error);
    assert_int_equal(mu_value_get_int(result, &number), 0);
    mu_value_free(result);
    mu_remote_value_free(value);
    return number;
}

static mu_error error_of(mu_remote_value *value)
{
    mu_error error = {0};

    assert_int_not_equal(mu_remote_value_fetch(value, SOON_MS, &error, NULL), 0);
    mu_remote_value_free(value);
    return error;
}

static mu_node *open_task(struct nodes *nodes, const char *type, int index)
{
    mu_node *node = nodes_open(nodes, type, index);

    assert_int_equal(mu_node_register_actor(node, &tally_type), 0);
    assert_int_equal(mu_node_register_actor(node, &tally_type), -MU_EEXISTS);
    return node;
}

static mu_value *pass_args(const mu_address *to, int64_t number)
{
    mu_value *args = mu_value_list();

    assert_int_equal(mu_value_append(args, mu_value_actor(to)), 0);
    assert_int_equal(mu_value_append(args, mu_value_int(number)), 0);
    return args;
}

/* ---- tests ---- */

static atomic_int ready;

static void on_ready(mu_remote_value *value, void *user)
{
    (void)value;
    (void)user;
    atomic_fetch_add(&ready, 1);
}

TEST(test_threads_ask)
{
    struct nodes nodes;
    mu_node *chief;
    mu_address address;
    mu_remote_value *value;
    mu_error error;

    nodes_init(&nodes, 0, 0);
    chief = open_task(&nodes, "chief", 0);
    address = spawn_on(chief, "chief", 0);
    assert_int_equal(answer_of(request(chief, &address, "add", mu_value_int(2))), 2);
    assert_int_equal(answer_of(request(chief, &address, "add", mu_value_int(3))), 5);
    assert_int_equal(answer_of(request(chief, &address, "work", NULL)), 17);

    error = error_of(request(chief, &address, "add", NULL));
    assert_int_equal(error.code, -MU_EINVALID);
    assert_int_equal(error.ran, MU_RAN_YES);
    assert_string_equal(error.function, "tally.add");
    error = error_of(request(chief, &address, "subtract", NULL));
    assert_int_equal(error.code, -MU_ENOTFOUND);
    assert_int_equal(error.ran, MU_RAN_NO);

    value = request(chief, &address, "hold", NULL);
    assert_int_equal(mu_remote_value_fetch(value, 20, &error, NULL), -MU_EDEADLINE);
    assert_int_equal(mu_remote_value_on_ready(value, on_ready, NULL), 0);
    assert_int_equal(mu_remote_value_cancel(value), 0);
    error = error_of(value);
    assert_int_equal(error.code, -MU_ECANCELLED);
    assert_int_equal(error.ran, MU_RAN_MAYBE);

    assert_int_equal(answer_of(request(chief, &address, "add", mu_value_int(1))), 6);
    assert_int_equal(atomic_load(&ready), 1);
    value = request(chief, &address, "hold", NULL);
    assert_int_equal(mu_node_stop_actor(chief, &address, MU_STOP_AFTER_QUEUE), 0);
    assert_int_equal(error_of(value).code, -MU_EABORTED);
    nodes_done(&nodes);
}

TEST(test_a_slow_turn_is_named)
{
    struct nodes nodes;
    mu_node *chief;
    mu_address address;

    nodes_init(&nodes, 0, 0);
    chief = open_task(&nodes, "chief", 0);
    address = spawn_on(chief, "chief", 0);
    mu_remote_value_free(request(chief, &address, "sleep", NULL));
    nodes_wait_log(&nodes, "tally.sleep of actor");
    assert_true(nodes_has_logged(&nodes, "mu_actor_work"));
    nodes_done(&nodes);
}

static int square(mu_run *run, void *user)
{
    int64_t number = 0;

    (void)user;
    if (mu_value_get_int(mu_run_args(run), &number) != 0)
        return mu_run_fail(run, -MU_EINVALID, "square expects a whole number");
    mu_run_return(run, mu_value_int(number * number));
    return 0;
}

/* Workers have no link to each other before. */
TEST(test_workers_reach_each_other)
{
    struct nodes nodes;
    mu_node *chief;
    mu_node *workers[2];
    mu_address first;
    mu_address second;
    mu_coordinator *coordinator;
    mu_remote_value *asked;
    mu_remote_value *squared = NULL;
    mu_value *argument;
    mu_error error = {0};

    nodes_init(&nodes, 2, 0);
    for (int i = 0; i < 2; i++) {
        workers[i] = open_task(&nodes, "worker", i);
        assert_int_equal(mu_node_register_function(workers[i], "square", square, NULL, 0),
                         0);
        assert_int_equal(mu_node_serve(workers[i]), 0);
    }
    chief = open_task(&nodes, "chief", 0);
    coordinator = nodes_coordinator(chief);
    first = spawn_on(workers[0], "worker", 0);
    second = spawn_on(workers[1], "worker", 1);
    assert_int_equal(
        answer_of(request(workers[0], &first, "pass", pass_args(&second, 4))), 4);
    asked = request(chief, &first, "pass", pass_args(&second, 3));
    argument = mu_value_remote(asked);
    check(mu_coordinator_schedule(coordinator, "square", argument, SOON_MS, &error,
                                  &squared),
          &error);
    assert_int_equal(answer_of(squared), 49);
    mu_value_free(argument);
    mu_remote_value_free(asked);
    mu_coordinator_close(coordinator);
    nodes_done(&nodes);
}

/* A child process plays the worker, until it is killed. */
static pid_t play_worker(struct nodes *nodes)
{
    pid_t child = fork();

    assert_true(child >= 0);
    if (child > 0)
        return child;
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    (void)open_task(nodes, "worker", 0);
    for (;;)
        (void)pause();
}

static mu_address spawn_soon(mu_node *node)
{
    mu_actor_options options;
    mu_error error = {0};
    mu_address address;
    int rv = -1;

    mu_actor_options_init(&options);
    options.task_type = "worker";
    for (int i = 0; i < SOON_MS && rv != 0; i++) {
        rv = mu_node_spawn(node, "tally", NULL, &options, SOON_MS, &error, &address);
        nodes_pause();
    }
    check(rv, &error);
    return address;
}

TEST(test_a_killed_process)
{
    struct nodes nodes;
    mu_node *chief;
    mu_address there;
    mu_address here;
    mu_remote_value *held;
    mu_remote_value *watched;
    mu_error error;
    pid_t child;

    nodes_init(&nodes, 1, 0);
    child = play_worker(&nodes);
    chief = open_task(&nodes, "chief", 0);
    there = spawn_soon(chief);
    here = spawn_on(chief, "chief", 0);
    assert_int_equal(answer_of(request(chief, &there, "add", mu_value_int(9))), 9);
    assert_int_equal(answer_of(request(chief, &here, "pass", pass_args(&there, 1))), 10);
    held = request(chief, &there, "hold", NULL);
    watched = request(chief, &here, "watch", mu_value_actor(&there));
    assert_int_equal(answer_of(request(chief, &there, "add", mu_value_int(1))), 11);
    assert_int_equal(kill(child, SIGKILL), 0);
    error = error_of(held);
    assert_int_equal(error.code, -MU_EUNAVAILABLE);
    assert_int_equal(error.ran, MU_RAN_MAYBE);
    assert_string_equal(error.task, "/job:worker/task:0");
    assert_int_equal(answer_of(watched), -MU_EUNAVAILABLE);
    assert_int_equal(waitpid(child, NULL, 0), child);
    nodes_done(&nodes);
}

TEST(test_a_node_that_closes_ends_its_calls)
{
    struct nodes nodes;
    mu_node *chief;
    mu_address address;
    mu_remote_value *held;
    mu_remote_value *working;

    nodes_init(&nodes, 0, 0);
    chief = open_task(&nodes, "chief", 0);
    address = spawn_on(chief, "chief", 0);
    working = request(chief, &address, "work", NULL);
    held = request(chief, &address, "hold", NULL);
    nodes_close(&nodes, chief);
    assert_true(mu_remote_value_state(held) != MU_REMOTE_NOT_READY);
    assert_int_not_equal(error_of(held).code, 0);
    mu_remote_value_free(working);
    nodes_done(&nodes);
}

/* Works that have begun are waited for, the others are dropped. */
TEST(test_a_node_closes_with_works_under_way)
{
    struct nodes nodes;
    mu_node *chief;
    mu_address address;
    mu_remote_value *value;
    mu_error error = {0};

    nodes_init(&nodes, 0, 0);
    chief = open_task(&nodes, "chief", 0);
    address = spawn_on(chief, "chief", 0);
    value = request(chief, &address, "burden", NULL);
    check(mu_remote_value_fetch(value, SOON_MS, &error, NULL), &error);
    mu_remote_value_free(value);
    nodes_close(&nodes, chief);
    nodes_done(&nodes);
}

/* ---- an answer of `start` that is given later ---- */

/* Nil: it cannot be made; a number: how long it takes, in milliseconds; 0: it ends before
 * it has been made. */
static int begin_slowly(mu_actor *self, void *state, const mu_value *args)
{
    struct tally *tally = state;
    mu_error error = {.code = -MU_EABORTED};

    if (mu_value_get_int(args, &tally->sum) == 0 && tally->sum == 0)
        return mu_actor_die(self, &error);
    tally->reply = mu_actor_reply_later(self);
    assert_non_null(tally->reply);
    return mu_actor_timer(self, tally->sum > 1 ? (uint64_t)tally->sum : 1, 1);
}

static void has_begun(mu_actor *self, void *state, const mu_notice *notice)
{
    struct tally *tally = state;
    const mu_error no = {.code = -MU_ENOTFOUND, .message = "there is no such bank"};
    mu_address own;

    assert_int_equal(notice->kind, MU_NOTICE_TIMER);
    assert_int_equal(mu_actor_self(self, &own), 0);
    if (tally->sum == 1)
        assert_int_equal(mu_actor_stop(self, &own, MU_STOP_NOW), 0);
    else
        assert_int_equal(mu_reply_give(tally->reply, mu_value_actor(&own),
                                       tally->sum == 0 ? &no : NULL),
                         0);
}

static const mu_actor_type slow_type = {
    .name = "slow",
    .state_size = sizeof(struct tally),
    .methods = methods,
    .start = begin_slowly,
    .notice = has_begun,
};

static mu_remote_value *spawn_slow(mu_node *node, const char *task_type, mu_value *args)
{
    mu_actor_options options;
    mu_remote_value *value = NULL;
    mu_error error = {0};

    mu_actor_options_init(&options);
    options.task_type = task_type;
    check(mu_actor_request_spawn(node, "slow", args, &options, SOON_MS, &error, &value),
          &error);
    mu_value_free(args);
    return value;
}

static mu_address address_of(mu_remote_value *value)
{
    mu_value *result = NULL;
    mu_error error = {0};
    mu_address address;

    check(mu_remote_value_fetch(value, SOON_MS, &error, &result), &error);
    assert_int_equal(mu_value_get_actor(result, &address), 0);
    mu_value_free(result);
    mu_remote_value_free(value);
    return address;
}

static void spawn_slowly(mu_node *node, const char *task_type)
{
    mu_remote_value *slow = spawn_slow(node, task_type, mu_value_int(200));
    mu_remote_value *first = spawn_slow(node, task_type, mu_value_int(20));
    mu_remote_value *dead = spawn_slow(node, task_type, mu_value_int(0));
    mu_remote_value *none = spawn_slow(node, task_type, NULL);
    mu_remote_value *stopped = spawn_slow(node, task_type, mu_value_int(1));
    mu_address address = address_of(first);
    mu_error error;

    assert_int_equal(mu_remote_value_state(slow), MU_REMOTE_NOT_READY);
    assert_int_equal(answer_of(request(node, &address, "add", mu_value_int(2))), 22);
    assert_int_equal(error_of(dead).code, -MU_EABORTED);
    error = error_of(none);
    assert_int_equal(error.code, -MU_ENOTFOUND);
    assert_string_equal(error.message, "there is no such bank");
    assert_string_equal(error.function, "slow.start");
    error = error_of(stopped);
    assert_int_equal(error.code, -MU_EABORTED);
    assert_non_null(strstr(error.message, "has ended before it answered"));
    address = address_of(slow);
    assert_int_equal(answer_of(request(node, &address, "add", mu_value_int(2))), 202);
}

TEST(test_many_actors_begin_at_the_same_time)
{
    struct nodes nodes;
    mu_node *worker;
    mu_node *chief;

    nodes_init(&nodes, 1, 0);
    worker = open_task(&nodes, "worker", 0);
    assert_int_equal(mu_node_register_actor(worker, &slow_type), 0);
    assert_int_equal(mu_node_serve(worker), 0);
    chief = open_task(&nodes, "chief", 0);
    assert_int_equal(mu_node_register_actor(chief, &slow_type), 0);
    spawn_slowly(chief, "chief");
    spawn_slowly(chief, "worker");
    nodes_close(&nodes, chief);
    nodes_close(&nodes, worker);
    nodes_done(&nodes);
}

TEST_PROGRAM()
