/* Shards handed out to a real cluster: each one once per epoch, although functions fail,
 * closures are cancelled and a worker leaves; and files that are saved, broken, read. */
#include "tests/real/nodes.h"

#include <stdatomic.h>
#include <stdbool.h>

enum { SHARDS = 24, EPOCHS = 3 };

static char path[256];

/* What the functions have seen: runs of each shard, over all epochs. */
static atomic_int runs[SHARDS];
static atomic_int failures_left;
static atomic_bool gate_open;
static atomic_int waiting;

static int64_t number_in(const mu_value *map, const char *key)
{
    int64_t number = -99;

    (void)mu_value_get_int(mu_value_find(map, key), &number);
    return number;
}

static int fn_count(mu_run *run, void *user)
{
    int64_t shard = number_in(mu_run_args(run), "shard");

    (void)user;
    if (shard < 0 || shard >= SHARDS || number_in(mu_run_args(run), "shards") != SHARDS)
        return mu_run_fail(run, -MU_EINVALID, "no shard given");
    atomic_fetch_add(&runs[shard], 1);
    return 0;
}

static int fn_sometimes(mu_run *run, void *user)
{
    if (atomic_fetch_sub(&failures_left, 1) > 0)
        return mu_run_fail(run, -MU_EABORTED, "not this time");
    return fn_count(run, user);
}

/* Holds its shard until the gate opens, or the worker is told to stop. */
static int fn_gate(mu_run *run, void *user)
{
    atomic_fetch_add(&waiting, 1);
    while (!atomic_load(&gate_open) && !mu_run_cancelled(run))
        nodes_pause();
    return mu_run_cancelled(run) ? mu_run_fail(run, -MU_ECANCELLED, "told to stop")
                                 : fn_count(run, user);
}

/* ---- fixture ---- */

struct fixture {
    struct nodes nodes;
    mu_node *chief;
    mu_node *workers[2];
    mu_coordinator *coordinator;
    mu_dataset *dataset;
};

static mu_node *open_worker(struct fixture *f, int index)
{
    mu_node_options options;
    mu_node *worker;

    /* One that waits at the gate shall not hold up the others. */
    nodes_options(&f->nodes, "worker", index, &options);
    options.threads = 2;
    worker = nodes_open_with(&f->nodes, &options);
    assert_int_equal(mu_node_register_function(worker, "count", fn_count, NULL, 0), 0);
    assert_int_equal(
        mu_node_register_function(worker, "sometimes", fn_sometimes, NULL, 0), 0);
    assert_int_equal(mu_node_register_function(worker, "gate", fn_gate, NULL, 0), 0);
    assert_int_equal(mu_node_serve(worker), 0);
    return worker;
}

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);

    assert_non_null(f);
    for (int i = 0; i < SHARDS; i++)
        atomic_store(&runs[i], 0);
    atomic_store(&failures_left, 0);
    atomic_store(&gate_open, false);
    atomic_store(&waiting, 0);
    nodes_init(&f->nodes, 2, 0);
    f->chief = nodes_open(&f->nodes, "chief", 0);
    for (int i = 0; i < 2; i++)
        f->workers[i] = open_worker(f, i);
    f->coordinator = nodes_coordinator(f->chief);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;

    atomic_store(&gate_open, true);
    mu_dataset_close(f->dataset);
    mu_coordinator_close(f->coordinator);
    nodes_done(&f->nodes);
    free(f);
    return 0;
}

static void open_dataset(struct fixture *f, unsigned epochs, uint64_t seed)
{
    mu_dataset_options options;
    mu_error error = {0};

    mu_dataset_options_init(&options);
    options.shards = SHARDS;
    options.epochs = epochs;
    options.seed = seed;
    if (mu_dataset_open(f->coordinator, &options, &error, &f->dataset) != 0)
        fail_msg("%s", error.message);
}

static int schedule(struct fixture *f, const char *function)
{
    mu_error error = {0};

    return mu_dataset_schedule(f->dataset, function, NULL, NULL, SOON_MS, &error);
}

static void check_runs(int expected)
{
    for (int i = 0; i < SHARDS; i++)
        if (atomic_load(&runs[i]) != expected)
            fail_msg("shard %d has run %d times, expected %d", i, atomic_load(&runs[i]),
                     expected);
}

static void check_consumed(struct fixture *f, int64_t consumed)
{
    mu_value *record = mu_dataset_record(f->dataset);

    assert_int_equal(number_in(record, "consumed"), consumed);
    mu_value_free(record);
}

static void wait_for(atomic_int *number, int least)
{
    for (int i = 0; i < SOON_MS; i++) {
        if (atomic_load(number) >= least)
            return;
        nodes_pause();
    }
    fail_msg("only %d of %d came", atomic_load(number), least);
}

/* Each consumed shard of the current epoch names a closure, and its first run. */
static void check_consumers(struct fixture *f)
{
    mu_value *value = mu_dataset_record(f->dataset);
    const mu_value *pages = mu_value_find(value, "record");
    const mu_value *page = mu_value_at(pages, mu_value_count(pages) - 1);
    mu_tensor closures;
    mu_tensor attempts;

    assert_int_equal(mu_value_get_tensor(mu_value_find(page, "closure"), &closures), 0);
    assert_int_equal(mu_value_get_tensor(mu_value_find(page, "attempt"), &attempts), 0);
    assert_int_equal(closures.dims[0], SHARDS);
    for (int i = 0; i < SHARDS; i++) {
        assert_int_not_equal(((const int64_t *)closures.data)[i], 0);
        assert_int_equal(((const int64_t *)attempts.data)[i], 1);
    }
    mu_value_free(value);
}

/* ---- epochs ---- */

LISTED_TEST(test_every_shard_once_per_epoch)
{
    struct fixture *f = *state;
    mu_error error = {0};
    int scheduled = 0;
    int rv;

    open_dataset(f, EPOCHS, 11);
    while ((rv = schedule(f, "count")) == 0)
        scheduled++;
    assert_int_equal(rv, -MU_ERANGE);
    assert_int_equal(scheduled, SHARDS * EPOCHS);
    assert_int_equal(mu_dataset_join(f->dataset, 0, &error), 0);
    check_runs(EPOCHS);
    check_consumed(f, SHARDS * EPOCHS);
    check_consumers(f);
}

/* With options of their own: all on one worker. */
LISTED_TEST(test_closures_have_options)
{
    struct fixture *f = *state;
    mu_closure_options options;
    mu_error error = {0};

    open_dataset(f, 1, 0);
    mu_closure_options_init(&options);
    options.worker = 1;
    for (int i = 0; i < SHARDS; i++)
        assert_int_equal(
            mu_dataset_schedule(f->dataset, "count", NULL, &options, SOON_MS, &error), 0);
    assert_int_equal(mu_dataset_join(f->dataset, SOON_MS, &error), 0);
    check_runs(1);
    assert_int_equal(schedule(f, "count"), -MU_ERANGE);
}

LISTED_TEST(test_failed_closures_give_back)
{
    struct fixture *f = *state;
    int errors = 0;
    int rv;

    open_dataset(f, EPOCHS, 0);
    atomic_store(&failures_left, 5);
    do {
        rv = schedule(f, "sometimes");
        errors += rv != 0 && rv != -MU_ERANGE;
        if (rv != 0 && rv != -MU_ERANGE)
            assert_int_equal(rv, -MU_EABORTED);
    } while (rv != -MU_ERANGE);
    assert_in_range(errors, 1, 5);
    check_consumed(f, SHARDS * EPOCHS);
}

/* What an error cancels is handed out again, as what failed: nothing is lost. */
LISTED_TEST(test_cancelled_closures_give_back)
{
    struct fixture *f = *state;
    mu_error error = {0};

    open_dataset(f, 1, 0);
    assert_int_equal(schedule(f, "gate"), 0);
    assert_int_equal(schedule(f, "none such"), 0);
    assert_int_equal(mu_coordinator_join(f->coordinator, SOON_MS, &error), -MU_ENOTFOUND);
    assert_int_equal(mu_dataset_join(f->dataset, SOON_MS, &error), 0);
    check_consumed(f, 0);
    for (int i = 0; i < SHARDS; i++)
        assert_int_equal(schedule(f, "count"), 0);
    assert_int_equal(schedule(f, "count"), -MU_ERANGE);
    check_runs(1);
}

/* The worker that has shards is closed before it has finished any of them. */
LISTED_TEST(test_worker_leaves_with_shards)
{
    struct fixture *f = *state;
    mu_error error = {0};

    open_dataset(f, 2, 3);
    for (int i = 0; i < SHARDS; i++)
        assert_int_equal(schedule(f, "gate"), 0);
    wait_for(&waiting, 4);
    assert_int_equal(mu_dataset_schedule(f->dataset, "gate", NULL, NULL, 0, &error),
                     -MU_EAGAIN);
    assert_string_equal(error.message,
                        "24 of the 24 shards of epoch 1 are out, the first is 0");
    nodes_close(&f->nodes, f->workers[1]);
    atomic_store(&gate_open, true);
    while (schedule(f, "count") == 0)
        continue;
    check_runs(2);
    check_consumed(f, 2 * SHARDS);
}

LISTED_TEST(test_limits_tell_what_is_out)
{
    struct fixture *f = *state;
    mu_error error = {0};

    open_dataset(f, 2, 0);
    for (int i = 0; i < SHARDS; i++)
        assert_int_equal(schedule(f, "gate"), 0);
    assert_int_equal(mu_dataset_schedule(f->dataset, "gate", NULL, NULL, 5, &error),
                     -MU_EDEADLINE);
    assert_int_equal(mu_dataset_join(f->dataset, 5, &error), -MU_EDEADLINE);
    assert_non_null(strstr(error.message, "24 of the 24 shards of epoch 1 are out"));
    assert_int_equal(mu_dataset_join(f->dataset, 0, &error), -MU_EAGAIN);
    atomic_store(&gate_open, true);
    assert_int_equal(mu_dataset_join(f->dataset, SOON_MS, &error), 0);
    check_consumed(f, SHARDS);
}

LISTED_TEST(test_dataset_may_be_closed_first)
{
    struct fixture *f = *state;
    mu_error error = {0};

    open_dataset(f, 1, 0);
    for (int i = 0; i < SHARDS; i++)
        assert_int_equal(schedule(f, "gate"), 0);
    mu_dataset_close(f->dataset);
    f->dataset = NULL;
    atomic_store(&gate_open, true);
    assert_int_equal(mu_coordinator_join(f->coordinator, SOON_MS, &error), 0);
    check_runs(1);
}

/* The chief ends with shards out: they come back. */
LISTED_TEST(test_closed_node_gives_back)
{
    struct fixture *f = *state;
    mu_error error = {0};

    open_dataset(f, 1, 0);
    for (int i = 0; i < 4; i++)
        assert_int_equal(schedule(f, "gate"), 0);
    nodes_close(&f->nodes, f->chief);
    assert_int_equal(mu_dataset_join(f->dataset, SOON_MS, &error), 0);
    assert_int_equal(schedule(f, "gate"), -MU_ECLOSED);
    check_consumed(f, 0);
}

/* Several threads take shards of one dataset. */
static void *schedule_all(void *arg)
{
    while (schedule(arg, "count") == 0)
        continue;
    return NULL;
}

LISTED_TEST(test_many_threads)
{
    struct fixture *f = *state;
    pthread_t threads[4];

    open_dataset(f, EPOCHS, 2);
    for (int i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, schedule_all, f), 0);
    for (int i = 0; i < 4; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    check_runs(EPOCHS);
    check_consumed(f, SHARDS * EPOCHS);
}

/* ---- files ---- */

/* Half of an epoch is consumed, and one more shard is out. */
static void save_half(struct fixture *f)
{
    mu_error error = {0};

    open_dataset(f, 1, 7);
    for (int i = 0; i < SHARDS / 2; i++)
        assert_int_equal(schedule(f, "count"), 0);
    assert_int_equal(mu_dataset_join(f->dataset, SOON_MS, &error), 0);
    assert_int_equal(schedule(f, "gate"), 0);
    if (mu_dataset_save(f->dataset, path, &error) != 0)
        fail_msg("%s", error.message);
}

LISTED_TEST(test_saved_dataset_goes_on)
{
    struct fixture *f = *state;
    mu_error error = {0};
    mu_dataset *loaded = NULL;
    mu_dataset *first;
    int scheduled = 0;

    save_half(f);
    if (mu_dataset_load(f->coordinator, path, &error, &loaded) != 0)
        fail_msg("%s", error.message);
    first = f->dataset;
    f->dataset = loaded;
    while (schedule(f, "count") == 0)
        scheduled++;
    assert_int_equal(scheduled, SHARDS / 2);
    check_runs(1);
    check_consumed(f, SHARDS);
    mu_dataset_close(first);
}

static size_t read_saved(char *out, size_t size)
{
    FILE *file = fopen(path, "r");
    size_t used;

    assert_non_null(file);
    used = fread(out, 1, size, file);
    (void)fclose(file);
    return used;
}

static void write_saved(const char *data, size_t size)
{
    FILE *file = fopen(path, "w");

    assert_non_null(file);
    assert_int_equal(fwrite(data, 1, size, file), size);
    assert_int_equal(fclose(file), 0);
}

/* Cut short anywhere, or with any byte changed, it is refused and nothing is made. */
LISTED_TEST(test_broken_files_are_refused)
{
    struct fixture *f = *state;
    static char good[8192];
    static char bad[8192];
    mu_dataset *dataset = NULL;
    mu_error error = {0};
    size_t size;

    save_half(f);
    size = read_saved(good, sizeof good);
    assert_in_range(size, 100, sizeof good - 1);
    for (size_t i = 0; i < size; i += 7) {
        write_saved(good, i);
        assert_int_equal(mu_dataset_load(f->coordinator, path, &error, &dataset),
                         -MU_EDATALOSS);
        memcpy(bad, good, size);
        bad[i] = (char)(bad[i] ^ 0x41);
        /* Four bytes of the header mean nothing. */
        if (i >= 20 && i < 24)
            continue;
        write_saved(bad, size);
        assert_int_equal(mu_dataset_load(f->coordinator, path, &error, &dataset),
                         -MU_EDATALOSS);
    }
    assert_null(dataset);
    write_saved(good, size);
    assert_int_equal(mu_dataset_load(f->coordinator, path, &error, &dataset), 0);
    mu_dataset_close(dataset);
}

LISTED_TEST(test_files_that_cannot_be)
{
    struct fixture *f = *state;
    mu_dataset *dataset = NULL;
    mu_error error = {0};

    open_dataset(f, 1, 0);
    assert_int_equal(mu_dataset_load(f->coordinator, "no-folder/dataset", &error,
                                     &dataset),
                     -MU_ENOTFOUND);
    assert_non_null(strstr(error.message, "\"no-folder/dataset\" cannot be read"));
    assert_int_equal(mu_dataset_save(f->dataset, "no-folder/dataset", &error),
                     -MU_ENOTFOUND);
    assert_non_null(strstr(error.message, "\"no-folder/dataset.new\" cannot be written"));
    assert_null(dataset);
}

LISTED_TEST(test_bad_options)
{
    struct fixture *f = *state;
    mu_dataset_options options;
    mu_dataset *dataset = NULL;
    mu_error error = {0};

    mu_dataset_options_init(&options);
    assert_int_equal(mu_dataset_open(f->coordinator, &options, &error, &dataset),
                     -MU_EINVALID);
    assert_string_equal(error.message,
                        "option shards is 0, expected a number from 1 to 1048576");
    assert_null(dataset);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_every_shard_once_per_epoch, setup, teardown),
        cmocka_unit_test_setup_teardown(test_closures_have_options, setup, teardown),
        cmocka_unit_test_setup_teardown(test_failed_closures_give_back, setup, teardown),
        cmocka_unit_test_setup_teardown(test_cancelled_closures_give_back, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_worker_leaves_with_shards, setup, teardown),
        cmocka_unit_test_setup_teardown(test_limits_tell_what_is_out, setup, teardown),
        cmocka_unit_test_setup_teardown(test_dataset_may_be_closed_first, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_closed_node_gives_back, setup, teardown),
        cmocka_unit_test_setup_teardown(test_many_threads, setup, teardown),
        cmocka_unit_test_setup_teardown(test_saved_dataset_goes_on, setup, teardown),
        cmocka_unit_test_setup_teardown(test_broken_files_are_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(test_files_that_cannot_be, setup, teardown),
        cmocka_unit_test_setup_teardown(test_bad_options, setup, teardown),
    };
    const char *folder = getenv("TMPDIR");
    int rv;

    (void)snprintf(path, sizeof path, "%.200s/muster-dataset-%ld",
                   folder == NULL ? "/tmp" : folder, (long)getpid());
    rv = cmocka_run_group_tests(tests, NULL, NULL);
    (void)unlink(path);
    return rv;
}
