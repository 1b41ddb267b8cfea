#define _DEFAULT_SOURCE /* MAP_ANONYMOUS */
/* A kept actor on real processes: its owner is killed again and again, and so is the
 * process that keeps it. Each call takes effect once. */
#include "tests/real/fleet.h"

enum { ROUNDS = 9, CALLS = 20, LONG_MS = 120000 };

/* ---- the type ---- */

struct counter {
    int64_t sum;
};

static int counter_start(mu_actor *self, void *state, const mu_value *args)
{
    (void)self;
    return mu_value_get_int(args, &((struct counter *)state)->sum);
}

static int counter_add(mu_actor *self, void *state, const mu_value *args)
{
    int rv = mu_actor_record(self, args);

    if (rv != 0)
        return mu_actor_fail(self, -MU_EINVALID, "add expects a whole number");
    mu_actor_reply(self, mu_value_int(((struct counter *)state)->sum));
    return 0;
}

static int counter_get(mu_actor *self, void *state, const mu_value *args)
{
    (void)args;
    mu_actor_reply(self, mu_value_int(((struct counter *)state)->sum));
    return 0;
}

static int counter_where(mu_actor *self, void *state, const mu_value *args)
{
    (void)state;
    (void)args;
    mu_actor_reply(self, mu_value_int(getpid()));
    return 0;
}

static int counter_save(void *state, mu_value **ret_saved)
{
    *ret_saved = mu_value_int(((struct counter *)state)->sum);
    return *ret_saved == NULL ? -MU_ENOMEM : 0;
}

static int counter_load(mu_actor *self, void *state, const mu_value *saved,
                        unsigned version)
{
    (void)self;
    return version == 1 ? mu_value_get_int(saved, &((struct counter *)state)->sum)
                        : -MU_EINVALID;
}

static int counter_replay(void *state, const mu_value *record)
{
    int64_t number = 0;
    int rv = mu_value_get_int(record, &number);

    ((struct counter *)state)->sum += number;
    return rv;
}

static const mu_actor_method counter_methods[] = {
    {"add", counter_add}, {"get", counter_get}, {"where", counter_where}, {NULL, NULL}};

static const mu_actor_type counter_type = {
    .name = "counter",
    .state_size = sizeof(struct counter),
    .methods = counter_methods,
    .start = counter_start,
    .save = counter_save,
    .load = counter_load,
    .replay = counter_replay,
    .version = 1,
};

static const mu_actor_type plain_type = {.name = "plain", .state_size = 1};

static const mu_actor_type *const types[] = {&counter_type, &plain_type, NULL};

/* ---- calls ---- */

static mu_remote_value *begin_ask(struct fleet *f, const char *method, int64_t number)
{
    mu_value *args = mu_value_int(number);
    mu_remote_value *value = NULL;
    mu_error error = {0};
    mu_address total;

    assert_int_equal(mu_actor_find(f->node, "total", &total), 0);
    check(mu_actor_request(f->node, &total, method, args, LONG_MS, &error, &value),
          &error);
    mu_value_free(args);
    return value;
}

static int64_t end_ask(mu_remote_value *value)
{
    mu_value *result = NULL;
    mu_error error = {0};
    int64_t answer = 0;

    check(mu_remote_value_fetch(value, LONG_MS, &error, &result), &error);
    assert_int_equal(mu_value_get_int(result, &answer), 0);
    mu_value_free(result);
    mu_remote_value_free(value);
    return answer;
}

static int spawn_total(struct fleet *f, const char *type, int64_t begin,
                       mu_error *ret_error)
{
    mu_value *args = mu_value_int(begin);
    mu_actor_options options;
    mu_address address;
    int rv;

    mu_actor_options_init(&options);
    options.name = "total";
    options.flags = MU_ACTOR_KEPT;
    options.restarts = 1000;
    rv = mu_node_spawn(f->node, type, args, &options, LONG_MS, ret_error, &address);
    mu_value_free(args);
    return rv;
}

/* ---- tests ---- */

/* Calls are under way when a process is killed: the owner, and each third time that which
 * keeps it. */
static void kill_amid_calls(struct fleet *f, int round)
{
    mu_remote_value *values[CALLS];
    pid_t victim = (pid_t)end_ask(begin_ask(f, "where", 0));

    assert_true(victim == f->pids[0] || victim == f->pids[1]);
    if (round % 3 == 2)
        victim = f->pids[FLEET_WORKERS];
    for (int i = 0; i < CALLS; i++) {
        values[i] = begin_ask(f, "add", 1);
        if (i == CALLS / 2)
            assert_int_equal(kill(victim, SIGKILL), 0);
    }
    for (int i = 0; i < CALLS; i++)
        assert_int_equal(end_ask(values[i]), 100 + round * CALLS + i + 1);
}

TEST(test_a_kept_counter_is_exact)
{
    struct fleet f;
    mu_error error = {0};

    fleet_begin(&f, types, NULL);
    check(spawn_total(&f, "counter", 100, &error), &error);
    for (int round = 0; round < ROUNDS; round++)
        kill_amid_calls(&f, round);
    assert_int_equal(end_ask(begin_ask(&f, "get", 0)), 100 + ROUNDS * CALLS);
    fleet_end(&f);
}

/* One that was stopped for good leaves nothing to the next of its name. */
TEST(test_a_name_is_made_anew)
{
    struct fleet f;
    mu_address total;
    mu_error error = {0};

    fleet_begin(&f, types, NULL);
    check(spawn_total(&f, "counter", 100, &error), &error);
    assert_int_equal(end_ask(begin_ask(&f, "add", 5)), 105);
    assert_int_equal(mu_actor_find(f.node, "total", &total), 0);
    assert_int_equal(mu_node_stop_actor(f.node, &total, MU_STOP_AFTER_QUEUE), 0);
    while (spawn_total(&f, "counter", 7, &error) != 0)
        nodes_pause();
    assert_int_equal(end_ask(begin_ask(&f, "get", 0)), 7);
    fleet_end(&f);
}

TEST(test_what_cannot_be_kept)
{
    struct fleet f;
    mu_actor_options options;
    mu_address address;
    mu_error error = {0};

    fleet_begin(&f, types, NULL);
    mu_actor_options_init(&options);
    options.flags = MU_ACTOR_KEPT;
    assert_int_equal(mu_node_spawn(f.node, "counter", NULL, &options, SOON_MS, &error,
                                   &address),
                     -MU_EINVALID);
    options.name = "plain";
    options.restarts = 0;
    assert_int_equal(mu_node_spawn(f.node, "plain", NULL, &options, SOON_MS, &error,
                                   &address),
                     -MU_EPRECONDITION);
    assert_non_null(strstr(error.message, "no `save` and `load`"));
    fleet_end(&f);
}

/* The service of this test's chief has its state in memory. */
TEST(test_a_service_without_a_journal)
{
    struct nodes nodes;
    mu_actor_options options;
    mu_address address;
    mu_error error = {0};
    mu_node *chief;

    nodes_init(&nodes, 1, 0);
    chief = nodes_open(&nodes, "chief", 0);
    mu_actor_options_init(&options);
    options.name = "total";
    options.flags = MU_ACTOR_KEPT;
    assert_int_equal(mu_node_spawn(chief, "counter", NULL, &options, SOON_MS, &error,
                                   &address),
                     -MU_EPRECONDITION);
    assert_non_null(strstr(error.message, "is not a journal"));
    nodes_done(&nodes);
}

TEST_PROGRAM()
