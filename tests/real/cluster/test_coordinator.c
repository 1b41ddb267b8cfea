/* The complete coordinator over real nodes: options, references, errors, limits. */
#include "tests/real/nodes.h"

#include <stdatomic.h>
#include <stdbool.h>

enum { WORKERS = 2 };

/* A door that runs wait at. */
struct gate {
    atomic_bool open;
    atomic_int arrived;
};

struct fixture {
    struct nodes nodes;
    struct gate gate;
    mu_node *chief;
    mu_coordinator *coordinator;
};

/* ---- What workers know ---- */

static int64_t int_of(const mu_value *value)
{
    int64_t number = -1;

    if (value != NULL)
        (void)mu_value_get_int(value, &number);
    return number;
}

/* The sum of the ints of a list, and of the lists and maps in it. */
static int64_t sum_of(const mu_value *value)
{
    int64_t sum = 0;

    if (mu_value_type(value) == MU_VALUE_INT)
        return int_of(value);
    for (size_t i = 0; i < mu_value_count(value); i++)
        sum += sum_of(mu_value_at(value, i));
    return sum;
}

static int sum(mu_run *run, void *user)
{
    (void)user;
    mu_run_return(run, mu_value_int(sum_of(mu_run_args(run))));
    return 0;
}

static int fail_always(mu_run *run, void *user)
{
    (void)user;
    return mu_run_fail(run, -MU_ERANGE, "bad %d", (int)int_of(mu_run_args(run)));
}

static int wait_at_gate(mu_run *run, void *user)
{
    struct gate *gate = user;

    (void)atomic_fetch_add(&gate->arrived, 1);
    while (!atomic_load(&gate->open) && !mu_run_cancelled(run))
        nodes_pause();
    mu_run_return(run, mu_value_int(5));
    return 0;
}

static void start_worker(struct fixture *f, int index)
{
    mu_node *node = nodes_open(&f->nodes, "worker", index);

    assert_int_equal(mu_node_register_function(node, "sum", sum, NULL, 0), 0);
    assert_int_equal(mu_node_register_function(node, "fail", fail_always, NULL, 0), 0);
    assert_int_equal(mu_node_register_function(node, "gate", wait_at_gate, &f->gate, 0),
                     0);
    assert_int_equal(mu_node_serve(node), 0);
}

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    mu_node_options options;

    assert_non_null(f);
    nodes_init(&f->nodes, WORKERS, 0);
    nodes_options(&f->nodes, "chief", 0, &options);
    options.queue_bytes_max = 4096;
    f->chief = nodes_open_with(&f->nodes, &options);
    for (int i = 0; i < WORKERS; i++)
        start_worker(f, i);
    f->coordinator = nodes_coordinator(f->chief);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;

    atomic_store(&f->gate.open, true);
    mu_coordinator_close(f->coordinator);
    nodes_done(&f->nodes);
    free(f);
    return 0;
}

/* Takes args. */
static mu_remote_value *schedule(struct fixture *f, const char *function, mu_value *args)
{
    mu_remote_value *value = NULL;
    mu_error error = {0};

    if (mu_coordinator_schedule(f->coordinator, function, args, SOON_MS, &error,
                                &value) != 0)
        fail_msg("%s", error.message);
    mu_value_free(args);
    return value;
}

static int64_t fetch_int(mu_remote_value *value)
{
    mu_value *result = NULL;
    mu_error error = {0};
    int64_t number;

    if (mu_remote_value_fetch(value, SOON_MS, &error, &result) != 0)
        fail_msg("%s", error.message);
    number = int_of(result);
    mu_value_free(result);
    return number;
}

/* {"a": value, "b": [value, 1]} */
static mu_value *twice(mu_remote_value *value)
{
    mu_value *map = mu_value_map();
    mu_value *list = mu_value_list();

    assert_int_equal(mu_value_append(list, mu_value_remote(value)), 0);
    assert_int_equal(mu_value_append(list, mu_value_int(1)), 0);
    assert_int_equal(mu_value_set(map, "a", mu_value_remote(value)), 0);
    assert_int_equal(mu_value_set(map, "b", list), 0);
    return map;
}

static void raise_all(struct fixture *f, int code)
{
    mu_error error = {0};

    assert_int_equal(mu_coordinator_join(f->coordinator, SOON_MS, &error), code);
    assert_int_equal(mu_coordinator_join(f->coordinator, SOON_MS, &error), 0);
}

/* ---- Options ---- */

TEST_ON(test_bad_options, struct fixture *f, setup, teardown)
{
    enum { WHOLE = sizeof(mu_closure_options) };
    static char long_name[129];
    static const struct {
        mu_closure_options options;
        const char *words;
    } rows[] = {
        /* clang-format off */
        {{.name = "", .size = WHOLE, .priority = 4, .worker = -1, .not_worker = -1},
         "a closure's name has 1 to 127 bytes"},
        {{.name = long_name,
          .size = WHOLE, .priority = 4, .worker = -1, .not_worker = -1},
         "a closure's name has 1 to 127 bytes"},
        {{.name = "\xff", .size = WHOLE, .priority = 4, .worker = -1, .not_worker = -1},
         "a closure's name is not UTF-8"},
        {{.flags = 32, .size = WHOLE, .priority = 4, .worker = -1, .not_worker = -1},
         "option flags of a closure is 0x20"},
        {{.priority = 8, .size = WHOLE, .worker = -1, .not_worker = -1},
         "option priority of a closure is 8"},
        {{.priority = -1, .size = WHOLE, .worker = -1, .not_worker = -1},
         "option priority of a closure is -1"},
        {{.deadline_ms = -1,
          .size = WHOLE, .priority = 4, .worker = -1, .not_worker = -1},
         "option deadline_ms of a closure is -1"},
        {{.run_timeout_ms = -2,
          .size = WHOLE, .priority = 4, .worker = -1, .not_worker = -1},
         "option run_timeout_ms of a closure is -2"},
        {{.attempts_max = 70000,
          .size = WHOLE, .priority = 4, .worker = -1, .not_worker = -1},
         "option attempts_max of a closure is"},
        {{.worker = -2, .size = WHOLE, .priority = 4, .not_worker = -1},
         "option worker of a closure is -2"},
        {{.not_worker = -2, .size = WHOLE, .priority = 4, .worker = -1},
         "option not_worker of a closure is -2"},
        {{.worker = 3, .not_worker = 3, .size = WHOLE, .priority = 4},
         "to run on worker 3 only, and never"},
        {{.worker_type = "Gpu",
          .size = WHOLE, .priority = 4, .worker = -1, .not_worker = -1},
         "option worker_type of a closure: "},
        {{.worker_type = "",
          .size = WHOLE, .priority = 4, .worker = -1, .not_worker = -1},
         "option worker_type of a closure: "},
        /* clang-format on */
    };
    mu_coordinator_stats counts;
    mu_error error;

    memset(long_name, 'n', sizeof long_name - 1);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        assert_int_equal(mu_coordinator_schedule_with(f->coordinator, "sum", NULL,
                                                      &rows[i].options, 0, &error, NULL),
                         -MU_EINVALID);
        if (strstr(error.message, rows[i].words) == NULL)
            fail_msg("row %zu: %s", i, error.message);
    }
    mu_coordinator_get_stats(f->coordinator, &counts);
    assert_int_equal(counts.scheduled, 0);
}

TEST_ON(test_options, struct fixture *f, setup, teardown)
{
    mu_closure_options options;
    mu_value *args = mu_value_int(3);
    mu_remote_value *value;
    mu_error error;

    mu_closure_options_init(&options);
    options.name = "three";
    options.priority = MU_PRIORITY_HIGHEST;
    options.worker = 1;
    options.not_worker = 0;
    options.deadline_ms = SOON_MS;
    assert_int_equal(mu_coordinator_schedule_with(f->coordinator, "sum", args, &options,
                                                  0, &error, &value),
                     0);
    assert_int_equal(fetch_int(value), 3);
    mu_remote_value_free(value);
    mu_value_free(args);
}

/* ---- References ---- */

/* Of values that are there, and of ones that are not. */
TEST_ON(test_references, struct fixture *f, setup, teardown)
{
    mu_remote_value *gate = schedule(f, "gate", NULL);
    mu_remote_value *after = schedule(f, "sum", twice(gate));
    mu_remote_value *last = schedule(f, "sum", twice(after));
    mu_value *structure = twice(last);
    mu_value *copy = NULL;
    mu_error error;

    assert_int_equal(mu_remote_value_state(after), MU_REMOTE_NOT_READY);
    atomic_store(&f->gate.open, true);
    assert_int_equal(fetch_int(last), 23);
    assert_int_equal(fetch_int(after), 11);
    mu_remote_value_free(last);
    assert_int_equal(
        mu_coordinator_fetch(f->coordinator, structure, SOON_MS, &error, &copy), 0);
    assert_int_equal(sum_of(copy), 47);
    mu_value_free(copy);
    mu_value_free(structure);
    last = schedule(f, "sum", twice(after));
    assert_int_equal(fetch_int(last), 23);
    mu_remote_value_free(last);
    mu_remote_value_free(after);
    mu_remote_value_free(gate);
}

TEST_ON(test_too_many_references, struct fixture *f, setup, teardown)
{
    enum { MANY = 65536, PATIENT_MS = 300000 };
    static mu_remote_value *values[MANY];
    mu_value *list = mu_value_list();
    mu_error error;

    for (size_t i = 0; i < MANY; i++) {
        values[i] = schedule(f, "sum", NULL);
        assert_int_equal(mu_value_append(list, mu_value_remote(values[i])), 0);
    }
    assert_int_equal(mu_coordinator_schedule(f->coordinator, "sum", list, 0, &error,
                                             NULL),
                     -MU_EINVALID);
    assert_non_null(strstr(error.message, "at most 65535"));
    assert_int_equal(mu_remote_value_fetch_all(values, MANY, PATIENT_MS, &error, NULL),
                     0);
    for (size_t i = 0; i < MANY; i++)
        mu_remote_value_free(values[i]);
    mu_value_free(list);
}

/* ---- What workers keep ---- */

/* A result that is kept is used where it is, and fetched any number of times. */
TEST_ON(test_pinned, struct fixture *f, setup, teardown)
{
    mu_closure_options options;
    mu_value *args = mu_value_int(30);
    mu_remote_value *kept;
    mu_remote_value *user;
    mu_remote_value *both[2];
    mu_value *results[2];
    mu_error error;

    mu_closure_options_init(&options);
    options.flags = MU_CLOSURE_PIN_RESULT;
    assert_int_equal(mu_coordinator_schedule_with(f->coordinator, "sum", args, &options,
                                                  SOON_MS, &error, &kept),
                     0);
    user = schedule(f, "sum", twice(kept));
    assert_int_equal(fetch_int(user), 61);
    both[0] = kept;
    both[1] = user;
    if (mu_remote_value_fetch_all(both, 2, SOON_MS, &error, results) != 0)
        fail_msg("%s", error.message);
    assert_int_equal(int_of(results[0]), 30);
    assert_int_equal(int_of(results[1]), 61);
    assert_int_equal(fetch_int(kept), 30);
    mu_remote_value_free(user);
    user = schedule(f, "sum", twice(kept));
    mu_remote_value_free(kept);
    assert_int_equal(fetch_int(user), 61);
    mu_remote_value_free(user);
    mu_value_free(results[0]);
    mu_value_free(results[1]);
    mu_value_free(args);
}

/* Each worker has its own. */
TEST_ON(test_per_worker, struct fixture *f, setup, teardown)
{
    mu_value *items = mu_value_list();
    mu_per_worker *per_worker = NULL;
    mu_closure_options options;
    mu_value *reference;
    mu_error error;

    assert_int_equal(mu_value_append(items, mu_value_int(100)), 0);
    assert_int_equal(mu_value_append(items, mu_value_int(200)), 0);
    if (mu_per_worker_open_values(f->coordinator, items, SOON_MS, &error, &per_worker) !=
        0)
        fail_msg("%s", error.message);
    reference = mu_value_per_worker(per_worker);
    mu_per_worker_close(per_worker);
    mu_closure_options_init(&options);
    for (int i = 0; i < WORKERS; i++) {
        mu_remote_value *value;

        options.worker = i;
        assert_int_equal(mu_coordinator_schedule_with(f->coordinator, "sum", reference,
                                                      &options, SOON_MS, &error, &value),
                         0);
        assert_int_equal(fetch_int(value), 100 * (i + 1));
        mu_remote_value_free(value);
    }
    mu_value_free(reference);
    mu_value_free(items);
}

TEST_ON(test_per_worker_of_function, struct fixture *f, setup, teardown)
{
    mu_value *three = mu_value_int(3);
    mu_per_worker *per_worker = NULL;
    mu_remote_value *value;
    mu_error error;

    assert_int_equal(mu_per_worker_open(f->coordinator, "", NULL, 0, &error, &per_worker),
                     -MU_EINVALID);
    if (mu_per_worker_open(f->coordinator, "sum", three, SOON_MS, &error, &per_worker) !=
        0)
        fail_msg("%s", error.message);
    value = schedule(f, "sum", mu_value_per_worker(per_worker));
    assert_int_equal(fetch_int(value), 3);
    mu_remote_value_free(value);
    mu_per_worker_close(per_worker);
    mu_value_free(three);
}

/* ---- Errors ---- */

TEST_ON(test_errors, struct fixture *f, setup, teardown)
{
    enum { FAILING = 3 };
    mu_remote_value *values[FAILING + 1];
    mu_value *results[FAILING + 1];
    mu_error errors[8];
    uint64_t lost = 9;

    values[0] = schedule(f, "gate", NULL);
    values[1] = schedule(f, "fail", mu_value_int(1));
    values[2] = schedule(f, "sum", twice(values[1]));
    values[3] = schedule(f, "sum", twice(values[2]));
    atomic_store(&f->gate.open, true);
    assert_int_equal(mu_remote_value_fetch_all(values, FAILING + 1, SOON_MS, &errors[0],
                                               results),
                     -MU_ERANGE);
    assert_int_equal(errors[0].kind, MU_ERROR_FUNCTION);
    assert_string_equal(errors[0].message, "bad 1");
    assert_int_equal(int_of(results[0]), 5);
    mu_value_free(results[0]);
    for (size_t i = 1; i <= FAILING; i++)
        assert_null(results[i]);
    assert_int_equal(mu_remote_value_fetch(values[3], 0, &errors[0], NULL), -MU_ERANGE);
    assert_int_equal(errors[0].kind, MU_ERROR_INPUT);
    assert_non_null(strstr(errors[0].message, "\"fail\" failed: bad 1"));
    raise_all(f, -MU_ERANGE);
    assert_int_equal(mu_coordinator_take_errors(f->coordinator, errors, 1, &lost), 1);
    assert_string_equal(errors[0].message, "bad 1");
    assert_int_equal(mu_coordinator_take_errors(f->coordinator, errors, 8, NULL), 2);
    assert_int_equal(errors[1].kind, MU_ERROR_INPUT);
    assert_int_equal(mu_coordinator_take_errors(f->coordinator, errors, 8, NULL), 0);
    assert_int_equal(lost, 0);
    for (size_t i = 0; i <= FAILING; i++)
        mu_remote_value_free(values[i]);
}

TEST_ON(test_cancel, struct fixture *f, setup, teardown)
{
    mu_remote_value *gate = schedule(f, "gate", NULL);
    mu_remote_value *after = schedule(f, "sum", twice(gate));
    mu_error error;

    while (atomic_load(&f->gate.arrived) == 0)
        nodes_pause();
    assert_int_equal(mu_remote_value_cancel(gate), 0);
    assert_int_equal(mu_remote_value_fetch(after, SOON_MS, &error, NULL), -MU_ECANCELLED);
    assert_int_equal(mu_remote_value_state(gate), MU_REMOTE_ABORTED);
    assert_int_equal(mu_remote_value_cancel(gate), 0);
    assert_int_equal(mu_coordinator_join(f->coordinator, SOON_MS, &error), 0);
    assert_int_equal(mu_coordinator_take_errors(f->coordinator, &error, 1, NULL), 0);
    mu_remote_value_free(after);
    mu_remote_value_free(gate);
}

/* ---- Limits ---- */

TEST_ON(test_fetch_limit, struct fixture *f, setup, teardown)
{
    mu_remote_value *gate = schedule(f, "gate", NULL);
    mu_remote_value *after = schedule(f, "sum", twice(gate));
    mu_error error;

    while (atomic_load(&f->gate.arrived) == 0)
        nodes_pause();
    assert_int_equal(mu_remote_value_fetch(gate, 1, &error, NULL), -MU_EDEADLINE);
    assert_int_equal(error.kind, MU_ERROR_LIMIT);
    assert_non_null(strstr(error.message, "\"gate\""));
    assert_non_null(strstr(error.message, "/job:worker/task:"));
    assert_int_equal(mu_remote_value_fetch(after, 1, &error, NULL), -MU_EDEADLINE);
    assert_non_null(strstr(error.message, "it waits for 1 of its 1 input"));
    atomic_store(&f->gate.open, true);
    assert_int_equal(fetch_int(after), 11);
    mu_remote_value_free(after);
    mu_remote_value_free(gate);
}

TEST_WITH(test_explain, setup, teardown)
{
    struct fixture *f = *state;
    mu_remote_value *gate = schedule(f, "gate", NULL);
    mu_value *reasons = NULL;
    const char *text = "";
    size_t size;
    mu_error error;

    while (atomic_load(&f->gate.arrived) == 0)
        nodes_pause();
    assert_int_equal(
        mu_coordinator_explain(f->coordinator, gate, NULL, SOON_MS, &error, &reasons), 0);
    (void)mu_value_get_string(mu_value_find(reasons, "function"), &text, &size);
    assert_string_equal(text, "gate");
    mu_value_free(reasons);
    atomic_store(&f->gate.open, true);
    assert_int_equal(fetch_int(gate), 5);
    assert_int_equal(
        mu_coordinator_explain(f->coordinator, gate, NULL, SOON_MS, &error, &reasons), 0);
    (void)mu_value_get_string(mu_value_find(reasons, "state"), &text, &size);
    assert_string_equal(text, "finished");
    mu_value_free(reasons);
    mu_remote_value_free(gate);
}

/* Arguments are bounded by their bytes, too; one that is larger than the bound has to be
 * alone. */
TEST_ON(test_bytes_bound, struct fixture *f, setup, teardown)
{
    static const char zeros[5000];
    mu_value *large = mu_value_bytes(zeros, sizeof zeros);
    mu_value *small = mu_value_bytes(zeros, 3000);
    mu_remote_value *gate = schedule(f, "gate", mu_value_ref(small));
    mu_error error;

    assert_int_equal(mu_coordinator_schedule(f->coordinator, "sum", small, 0, &error,
                                             NULL),
                     -MU_EAGAIN);
    assert_non_null(strstr(error.message, "4096 is the most"));
    assert_int_equal(
        mu_coordinator_schedule(f->coordinator, "sum", NULL, 0, &error, NULL), 0);
    atomic_store(&f->gate.open, true);
    assert_int_equal(
        mu_coordinator_schedule(f->coordinator, "sum", large, SOON_MS, &error, NULL), 0);
    assert_int_equal(mu_coordinator_join(f->coordinator, SOON_MS, &error), 0);
    mu_remote_value_free(gate);
    mu_value_free(small);
    mu_value_free(large);
}

TEST_ON(test_drain_of_nobody, struct fixture *f, setup, teardown)
{
    mu_error error;

    assert_int_equal(mu_coordinator_drain(f->coordinator, 7, SOON_MS, &error),
                     -MU_ENOTFOUND);
    assert_int_equal(mu_coordinator_drain(f->coordinator, -1, SOON_MS, &error),
                     -MU_EINVALID);
    assert_int_equal(mu_coordinator_forget(f->coordinator, SOON_MS, &error), 0);
}

/* ---- Life ---- */

/* Values and references outlive their node, and those of another node are refused. */
TEST_ON(test_values_outlive_node, struct fixture *f, setup, teardown)
{
    mu_remote_value *gate = schedule(f, "gate", NULL);
    mu_remote_value *after = schedule(f, "sum", twice(gate));
    mu_value *structure = twice(after);
    mu_error error;

    mu_coordinator_close(f->coordinator);
    f->coordinator = NULL;
    atomic_store(&f->gate.open, true);
    nodes_close(&f->nodes, f->chief);
    assert_int_equal(mu_remote_value_state(after), MU_REMOTE_ABORTED);
    assert_int_equal(mu_remote_value_cancel(after), 0);
    assert_true(mu_remote_value_fetch(after, 0, &error, NULL) < 0);
    mu_remote_value_free(gate);
    mu_remote_value_free(after);
    mu_value_free(structure);
}

TEST_PROGRAM()
