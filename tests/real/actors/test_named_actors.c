/* Actors with names, on real processes: one is called by its name from another process,
 * its process is killed, and the name answers elsewhere. */
#include "tests/real/cli.h"
#include "tests/real/nodes.h"

#include <inttypes.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/types.h>
#include <sys/wait.h>

enum { WORKERS = 2 };

/* ---- a type ---- */

struct total {
    int64_t sum;
};

static int start(mu_actor *self, void *state, const mu_value *args)
{
    struct total *total = state;

    (void)self;
    if (args != NULL && mu_value_get_int(args, &total->sum) != 0)
        return mu_actor_fail(self, -MU_EINVALID, "a total begins with a whole number");
    return 0;
}

static int add(mu_actor *self, void *state, const mu_value *args)
{
    struct total *total = state;
    int64_t number = 0;

    if (mu_value_get_int(args, &number) != 0)
        return mu_actor_fail(self, -MU_EINVALID, "add expects a whole number");
    total->sum += number;
    mu_actor_reply(self, mu_value_int(total->sum));
    return 0;
}

static int where(mu_actor *self, void *state, const mu_value *args)
{
    (void)state;
    (void)args;
    mu_actor_reply(self, mu_value_int(getpid()));
    return 0;
}

static int breaks(mu_actor *self, void *state, const mu_value *args)
{
    mu_error error;

    (void)state;
    (void)args;
    (void)mu_error_set(&error, -MU_EDATALOSS, "it is broken");
    return mu_actor_die(self, &error);
}

/* Its answer never comes. */
static int wait_for_ever(mu_actor *self, void *state, const mu_value *args)
{
    (void)state;
    (void)args;
    return mu_actor_reply_later(self) == NULL ? -MU_ENOMEM : 0;
}

/* It waits for the actor of a name, which waits. */
static int pass_on(mu_actor *self, void *state, const mu_value *args)
{
    mu_address to;
    int rv = mu_value_get_actor(args, &to);

    (void)state;
    if (rv == 0 && mu_actor_reply_later(self) == NULL)
        rv = -MU_ENOMEM;
    return rv != 0 ? rv : mu_actor_call(self, &to, "wait", NULL, SOON_MS, 1);
}

static int save_total(void *state, mu_value **ret_saved)
{
    *ret_saved = mu_value_int(((struct total *)state)->sum);
    return *ret_saved == NULL ? -MU_ENOMEM : 0;
}

static const mu_actor_method methods[] = {{"add", add},      {"where", where},
                                          {"break", breaks}, {"wait", wait_for_ever},
                                          {"pass", pass_on}, {NULL, NULL}};

static const mu_actor_type total_type = {
    .name = "total",
    .state_size = sizeof(struct total),
    .methods = methods,
    .start = start,
    .save = save_total,
};

static const mu_actor_type other_type = {.name = "other", .state_size = 1};

/* ---- processes ---- */

struct workers {
    struct nodes nodes;
    mu_node *chief;
    pid_t pids[WORKERS];
};

static void serve_worker(mu_node *node)
{
    assert_int_equal(mu_node_register_actor(node, &total_type), 0);
    assert_int_equal(mu_node_serve(node), 0);
}

static void begin_workers(struct workers *w)
{
    nodes_init(&w->nodes, WORKERS, 0);
    for (int i = 0; i < WORKERS; i++) {
        w->pids[i] = fork();
        assert_true(w->pids[i] >= 0);
        if (w->pids[i] > 0)
            continue;
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        serve_worker(nodes_open(&w->nodes, "worker", i));
        for (;;)
            (void)pause();
    }
    w->chief = nodes_open(&w->nodes, "chief", 0);
}

static void end_workers(struct workers *w)
{
    nodes_done(&w->nodes);
    for (int i = 0; i < WORKERS; i++) {
        (void)kill(w->pids[i], SIGKILL);
        assert_int_equal(waitpid(w->pids[i], NULL, 0), w->pids[i]);
    }
}

/* ---- calls ---- */

static int spawn_total(struct workers *w, mu_actor_options *options, mu_error *ret_error,
                       mu_address *ret_address)
{
    mu_value *args = mu_value_int(100);
    int rv;

    options->name = "sum";
    rv = mu_node_spawn(w->chief, "total", args, options, SOON_MS, ret_error, ret_address);
    mu_value_free(args);
    return rv;
}

static int ask(struct workers *w, const char *method, int64_t number, int64_t timeout_ms,
               mu_error *ret_error, int64_t *ret_answer)
{
    mu_remote_value *value = NULL;
    mu_value *result = NULL;
    mu_value *args = mu_value_int(number);
    mu_address sum;
    int rv;

    assert_int_equal(mu_actor_find(w->chief, "sum", &sum), 0);
    check(mu_actor_request(w->chief, &sum, method, args, timeout_ms, ret_error, &value),
          ret_error);
    mu_value_free(args);
    rv = mu_remote_value_fetch(value, SOON_MS, ret_error, &result);
    if (rv == 0 && ret_answer != NULL)
        assert_int_equal(mu_value_get_int(result, ret_answer), 0);
    mu_value_free(result);
    mu_remote_value_free(value);
    return rv;
}

static int64_t must_ask(struct workers *w, const char *method, int64_t number)
{
    mu_error error = {0};
    int64_t answer = 0;

    check(ask(w, method, number, SOON_MS, &error, &answer), &error);
    return answer;
}

static uint64_t now_us(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}

/* What was under way when it was killed may have run: it is asked again here, never by
 * the library. */
static int64_t ask_until_answered(struct workers *w, const char *method)
{
    mu_error error = {0};
    int64_t answer = 0;

    while (ask(w, method, 0, SOON_MS, &error, &answer) != 0)
        assert_int_equal(error.ran, MU_RAN_MAYBE);
    return answer;
}

/* ---- tests ---- */

TEST(test_a_name_survives_its_process)
{
    struct workers w;
    mu_actor_options options;
    mu_address address;
    mu_error error = {0};
    uint64_t killed_us;
    int64_t first;
    int64_t second;

    begin_workers(&w);
    mu_actor_options_init(&options);
    check(spawn_total(&w, &options, &error, &address), &error);
    assert_string_equal(address.name, "sum");
    assert_int_equal(must_ask(&w, "add", 5), 105);
    check(spawn_total(&w, &options, &error, &address), &error);
    assert_int_equal(must_ask(&w, "add", 5), 110);

    first = must_ask(&w, "where", 0);
    assert_true(first == w.pids[0] || first == w.pids[1]);
    killed_us = now_us();
    assert_int_equal(kill((pid_t)first, SIGKILL), 0);
    second = ask_until_answered(&w, "where");
    (void)printf("killed: answered elsewhere after %" PRIu64 " ms\n",
                 (now_us() - killed_us) / 1000);
    assert_true(second != first && (second == w.pids[0] || second == w.pids[1]));
    assert_int_equal(must_ask(&w, "add", 1), 101);
    end_workers(&w);
}

/* It does not answer when it runs again: its lease was over before. */
TEST(test_a_process_that_stands_still)
{
    struct workers w;
    mu_actor_options options;
    mu_address address;
    mu_error error = {0};
    uint64_t stopped_us;
    int64_t first;
    int64_t second;

    begin_workers(&w);
    mu_actor_options_init(&options);
    check(spawn_total(&w, &options, &error, &address), &error);
    first = must_ask(&w, "where", 0);
    stopped_us = now_us();
    assert_int_equal(kill((pid_t)first, SIGSTOP), 0);
    do
        if (ask(&w, "where", 0, 100, &error, &second) != 0)
            second = first;
    while (second == first);
    (void)printf("stopped: answered elsewhere after %" PRIu64 " ms\n",
                 (now_us() - stopped_us) / 1000);
    assert_int_equal(must_ask(&w, "add", 1), 101);
    assert_int_equal(kill((pid_t)first, SIGCONT), 0);
    for (int i = 0; i < 300; i++) {
        assert_int_equal(must_ask(&w, "where", 0), second);
        nodes_pause();
    }
    assert_int_equal(must_ask(&w, "add", 1), 102);
    end_workers(&w);
}

TEST(test_a_name_that_breaks)
{
    struct workers w;
    mu_actor_options options;
    mu_address address;
    mu_error error = {0};

    begin_workers(&w);
    mu_actor_options_init(&options);
    options.restarts = 2;
    check(spawn_total(&w, &options, &error, &address), &error);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(must_ask(&w, "add", 1), 101);
        assert_int_equal(ask(&w, "break", 0, SOON_MS, &error, NULL), -MU_EDATALOSS);
        assert_int_equal(error.ran, MU_RAN_YES);
    }
    assert_int_equal(ask(&w, "add", 1, SOON_MS, &error, NULL), -MU_EDATALOSS);
    assert_int_equal(error.ran, MU_RAN_NO);
    assert_non_null(strstr(error.message, "it is broken"));
    assert_int_equal(spawn_total(&w, &options, &error, &address), -MU_EDATALOSS);

    assert_int_equal(mu_node_stop_actor(w.chief, &address, MU_STOP_AFTER_QUEUE), 0);
    while (spawn_total(&w, &options, &error, &address) != 0)
        nodes_pause();
    assert_int_equal(must_ask(&w, "add", 1), 101);
    end_workers(&w);
}

TEST(test_what_is_refused)
{
    struct workers w;
    mu_actor_options options;
    mu_address address;
    mu_error error = {0};

    begin_workers(&w);
    mu_actor_options_init(&options);
    assert_int_equal(mu_actor_find(w.chief, "", &address), -MU_EINVALID);
    assert_int_equal(mu_actor_find(w.chief, "a/b", &address), -MU_EINVALID);
    assert_int_equal(ask(&w, "add", 1, 50, &error, NULL), -MU_EDEADLINE);
    assert_int_equal(error.ran, MU_RAN_NO);
    check(spawn_total(&w, &options, &error, &address), &error);
    assert_int_equal(mu_node_register_actor(w.chief, &other_type), 0);
    assert_int_equal(mu_node_spawn(w.chief, "other", NULL, &options, SOON_MS, &error,
                                   &address),
                     -MU_EEXISTS);
    options.flags = MU_ACTOR_NEW;
    assert_int_equal(spawn_total(&w, &options, &error, &address), -MU_EEXISTS);
    options.flags = 0;
    options.name = "nowhere";
    assert_int_equal(mu_node_spawn(w.chief, "missing", NULL, &options, 300, &error,
                                   &address),
                     -MU_EDEADLINE);
    assert_non_null(strstr(error.message, "offers actors of type \"missing\""));
    options.name = "a#b";
    assert_int_equal(mu_node_spawn(w.chief, "total", NULL, &options, SOON_MS, &error,
                                   &address),
                     -MU_EINVALID);
    end_workers(&w);
}

/* ---- the binary ---- */

static struct cli command;

#define MUSTER(...) cli_start(&command, NULL, __VA_ARGS__, NULL)

#define CALL(w, ...) MUSTER("actors", "call", __VA_ARGS__, "--cluster", (w)->nodes.json)

static void expect_said(int code, const char *words)
{
    cli_expect_code(&command, code);
    if (strstr(command.text, words) == NULL)
        cli_show(&command);
    assert_non_null(strstr(command.text, words));
}

/* The owner is a worker, which clients have no link to. */
static void call_by_binary(struct workers *w)
{
    CALL(w, "sum", "add", "7");
    cli_expect_code(&command, 0);
    assert_string_equal(command.text, "107\n");
    CALL(w, "sum", "add", "{\"a\":[1,true,null,\"b\",1.5]}");
    expect_said(1, "add expects a whole number (it ran)");
    assert_non_null(strstr(command.text, "on /job:worker/task:"));
    CALL(w, "sum", "subtract", "7");
    expect_said(1, "the actor has no such method (it did not run)");
    CALL(w, "nobody", "add", "7", "--timeout-ms", "300");
    expect_said(4, "nobody has made it (it did not run)");
    CALL(w, "sum", "add", "{");
    expect_said(2, "is no JSON");
    CALL(w, "sum", "add", "9007199254740993");
    expect_said(2, "does not hold exactly");
    CALL(w, "a/b", "add");
    expect_said(2, "is no name of an actor");
    CALL(w, "sum", "a#b");
    cli_expect_code(&command, 2);
}

TEST(test_the_binary)
{
    struct workers w;
    mu_actor_options options;
    mu_address address;
    mu_error error = {0};
    cJSON *list;

    begin_workers(&w);
    mu_actor_options_init(&options);
    check(spawn_total(&w, &options, &error, &address), &error);
    MUSTER("actors", "--cluster", w.nodes.json);
    cli_expect_code(&command, 0);
    assert_non_null(strstr(command.text, "/job:worker/task:"));

    call_by_binary(&w);

    assert_int_equal(ask(&w, "break", 0, SOON_MS, &error, NULL), -MU_EDATALOSS);
    assert_int_equal(must_ask(&w, "add", 1), 101);
    MUSTER("actors", "-o", "json", "--type", "total", "--cluster", w.nodes.json);
    cli_expect_code(&command, 0);
    list = cli_json(command.text);
    assert_int_equal(cJSON_GetArraySize(list), 1);
    assert_string_equal(cli_text(cJSON_GetArrayItem(list, 0), "state"), "running");
    assert_int_equal(cli_number(cJSON_GetArrayItem(list, 0), "restarts"), 1);
    assert_string_equal(cli_text(cJSON_GetArrayItem(list, 0), "error"), "it is broken");
    cJSON_Delete(list);
    MUSTER("actors", "-o", "json", "--type", "other", "--cluster", w.nodes.json);
    cli_expect_code(&command, 0);
    list = cli_json(command.text);
    assert_int_equal(cJSON_GetArraySize(list), 0);
    cJSON_Delete(list);
    MUSTER("actors", "--type", "other", "--cluster", w.nodes.json);
    cli_expect_code(&command, 0);
    assert_non_null(strstr(command.text, "no actor of type other has a name"));

    MUSTER("actors", "stop", "sum", "--cluster", w.nodes.json);
    cli_expect_code(&command, 0);
    MUSTER("actors", "stop", "sum", "--cluster", w.nodes.json);
    cli_expect_code(&command, 1);
    assert_non_null(strstr(command.text, "no actor has the name"));
    MUSTER("actors", "--cluster", w.nodes.json);
    cli_expect_code(&command, 0);
    assert_non_null(strstr(command.text, "no actor has a name"));
    MUSTER("actors", "-o", "json", "--cluster", w.nodes.json);
    cli_expect_code(&command, 0);
    list = cli_json(command.text);
    assert_int_equal(cJSON_GetArraySize(list), 0);
    cJSON_Delete(list);
    end_workers(&w);
}

static mu_address spawn_named(struct workers *w, const char *name)
{
    mu_actor_options options;
    mu_address address;
    mu_error error = {0};

    mu_actor_options_init(&options);
    options.name = name;
    check(mu_node_spawn(w->chief, "total", NULL, &options, SOON_MS, &error, &address),
          &error);
    return address;
}

static mu_remote_value *begin(struct workers *w, const mu_address *to, const char *method,
                              const mu_value *args)
{
    mu_remote_value *value = NULL;
    mu_error error = {0};

    check(mu_actor_request(w->chief, to, method, args, SOON_MS, &error, &value), &error);
    return value;
}

/* front waits for back, which does not answer. */
TEST(test_who_waits_for_whom)
{
    struct workers w;
    mu_address front;
    mu_address back;
    mu_value *args;
    mu_remote_value *value;
    cJSON *chain;

    begin_workers(&w);
    front = spawn_named(&w, "front");
    back = spawn_named(&w, "back");
    args = mu_value_actor(&back);
    value = begin(&w, &front, "pass", args);
    do {
        MUSTER("actors", "explain", "front", "--cluster", w.nodes.json);
        cli_expect_code(&command, 0);
    } while (strstr(command.text, "back (total)") == NULL ||
             strstr(command.text, "wait is not answered yet") == NULL);
    assert_non_null(strstr(command.text, "front (total) on /job:worker/task:"));
    assert_non_null(strstr(command.text, "pass is not answered yet: /job:worker/task:"));
    assert_non_null(strstr(command.text, "it waits for wait of /actor:back"));
    assert_non_null(strstr(command.text, "total.pass\n"));
    MUSTER("actors", "explain", "front", "-o", "json", "--cluster", w.nodes.json);
    cli_expect_code(&command, 0);
    chain = cli_json(command.text);
    assert_int_equal(cJSON_GetArraySize(chain), 2);
    assert_string_equal(cli_text(cJSON_GetArrayItem(chain, 1), "name"), "back");
    cJSON_Delete(chain);
    MUSTER("actors", "explain", "nobody", "--timeout-ms", "300", "--cluster",
           w.nodes.json);
    expect_said(4, "nobody has made it");
    mu_value_free(args);
    mu_remote_value_free(value);
    end_workers(&w);
}

TEST(test_states)
{
    struct workers w;

    begin_workers(&w);
    (void)spawn_named(&w, "counted");
    CALL(&w, "counted", "add", "-3");
    cli_expect_code(&command, 0);
    MUSTER("actors", "state", "counted", "--cluster", w.nodes.json);
    cli_expect_code(&command, 0);
    assert_string_equal(command.text, "-3\n");
    MUSTER("actors", "state", "a/b", "--cluster", w.nodes.json);
    expect_said(2, "is no name of an actor");
    end_workers(&w);
}

/* The worker that has it is drained: it ends there, and goes on elsewhere. */
TEST(test_a_drained_worker)
{
    struct workers w;
    mu_actor_options options;
    mu_address address;
    mu_error error = {0};
    int64_t first;
    char task[16];

    begin_workers(&w);
    mu_actor_options_init(&options);
    options.restart = MU_RESTART_NEVER;
    check(spawn_total(&w, &options, &error, &address), &error);
    first = must_ask(&w, "where", 0);
    (void)snprintf(task, sizeof task, "worker:%d", first == w.pids[0] ? 0 : 1);
    MUSTER("drain", task, "--cluster", w.nodes.json, "--timeout-ms", "2000");
    while (must_ask(&w, "where", 0) == first)
        nodes_pause();
    (void)cli_wait(&command);
    assert_int_equal(must_ask(&w, "add", 1), 101);
    end_workers(&w);
}

TEST_PROGRAM()
