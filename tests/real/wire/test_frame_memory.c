/* Large arguments and results between real nodes: whole, of all kinds and sizes, with the
 * memory of the process bounded while they travel and given back after that. */
#include "runtime/message/block_pool.h"
#include "tests/real/nodes.h"

#include <stdbool.h>

#if defined(__SANITIZE_ADDRESS__)
#define POOLED false
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define POOLED false
#endif
#endif
#ifndef POOLED
#define POOLED true
#endif

struct fixture {
    struct nodes nodes;
    mu_coordinator *coordinator;
};

/* Gives its arguments back. */
static int give(mu_run *run, void *user)
{
    (void)user;
    mu_run_return(run, mu_value_ref(mu_run_args(run)));
    return 0;
}

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    mu_node *chief;
    mu_node *worker;

    if (f == NULL)
        return -1;
    nodes_init(&f->nodes, 1, 0);
    chief = nodes_open(&f->nodes, "chief", 0);
    worker = nodes_open(&f->nodes, "worker", 0);
    assert_int_equal(mu_node_register_function(worker, "give", give, NULL, 0), 0);
    assert_int_equal(
        mu_node_register_function(worker, "inline", give, NULL, MU_FUNCTION_INLINE), 0);
    assert_int_equal(mu_node_serve(worker), 0);
    f->coordinator = nodes_coordinator(chief);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;

    mu_coordinator_close(f->coordinator);
    nodes_done(&f->nodes);
    free(f);
    /* Without a loop nothing is kept. */
    return mu__block_pool_cached(&mu__blocks) == 0 ? 0 : -1;
}

/* Bytes that tell where they are from. */
static void fill(uint8_t *data, size_t size, unsigned number)
{
    for (size_t i = 0; i < size; i++)
        data[i] = (uint8_t)(i * 31 + i / 251 + number * 17);
}

static mu_value *bytes_of(size_t size, unsigned number)
{
    uint8_t *data = malloc(size + 1);
    mu_value *value;

    assert_non_null(data);
    fill(data, size, number);
    value = mu_value_bytes(data, size);
    free(data);
    assert_non_null(value);
    return value;
}

static mu_value *tensor_of(uint64_t size, unsigned number)
{
    mu_value *value = mu_value_tensor(MU_U8, 1, &size, NULL);

    assert_non_null(value);
    fill(mu_value_tensor_data(value), size, number);
    return value;
}

static mu_value *list_of(size_t size, unsigned number)
{
    mu_value *list = mu_value_list();

    assert_int_equal(mu_value_append(list, bytes_of(size / 2, number)), 0);
    assert_int_equal(mu_value_append(list, tensor_of(size, number + 1)), 0);
    assert_int_equal(mu_value_append(list, mu_value_string("the end")), 0);
    return list;
}

static mu_value *value_of(unsigned kind, size_t size, unsigned number)
{
    return kind == 0   ? bytes_of(size, number)
           : kind == 1 ? tensor_of(size, number)
                       : list_of(size, number);
}

static mu_remote_value *schedule(struct fixture *f, const char *function, mu_value *args)
{
    mu_remote_value *future = NULL;
    mu_error error = {0};

    if (mu_coordinator_schedule(f->coordinator, function, args, -1, &error, &future) != 0)
        fail_msg("%s", error.message);
    return future;
}

static mu_value *fetch(mu_remote_value *future)
{
    mu_value *result = NULL;
    mu_error error = {0};

    if (mu_remote_value_fetch(future, SOON_MS, &error, &result) != 0)
        fail_msg("%s", error.message);
    mu_remote_value_free(future);
    return result;
}

TEST_ON(arguments_and_results_of_all_kinds_and_sizes_come_back_whole, struct fixture *f,
        setup, teardown)
{
    static const size_t sizes[] = {0,      1,      8 << 10, 10000,           65536,
                                   70001,  300000, 1 << 20, (4 << 20) - 100, 4 << 20,
                                   9000001};
    enum { SIZES = sizeof sizes / sizeof sizes[0], KINDS = 3 };
    mu_remote_value *futures[SIZES][KINDS];
    mu_value *values[SIZES][KINDS];

    for (unsigned i = 0; i < SIZES; i++)
        for (unsigned kind = 0; kind < KINDS; kind++) {
            values[i][kind] = value_of(kind, sizes[i], i);
            futures[i][kind] =
                schedule(f, i % 2 == 0 ? "give" : "inline", values[i][kind]);
        }
    for (unsigned i = 0; i < SIZES; i++)
        for (unsigned kind = 0; kind < KINDS; kind++) {
            mu_value *result = fetch(futures[i][kind]);

            if (mu_value_equal(result, values[i][kind]) != 1)
                fail_msg("kind %u of %zu bytes came back as another", kind, sizes[i]);
            mu_value_free(result);
            mu_value_free(values[i][kind]);
        }
}

/* The program may do with a tensor what it likes as soon as it is scheduled. */
TEST_ON(tensor_that_is_changed_after_it_was_scheduled_is_sent_as_it_was,
        struct fixture *f, setup, teardown)
{
    enum { AHEAD = 16 };
    mu_value *tensor = tensor_of(1 << 20, 1);
    mu_value *before = tensor_of(1 << 20, 1);
    mu_value *ahead = bytes_of(3 << 20, 3);
    mu_remote_value *future;
    mu_value *result;

    /* So that it waits for some time before it is sent. */
    for (int i = 0; i < AHEAD; i++)
        mu_remote_value_free(schedule(f, "give", ahead));
    future = schedule(f, "give", tensor);
    fill(mu_value_tensor_data(tensor), 1 << 20, 2);
    result = fetch(future);
    assert_int_equal(mu_value_equal(result, before), 1);
    mu_value_free(result);
    mu_value_free(before);
    mu_value_free(ahead);
    mu_value_free(tensor);
}

TEST_ON(many_sizes_keep_memory_bounded_and_idle_nodes_give_it_back, struct fixture *f,
        setup, teardown)
{
    enum { BEATS_BYTES = 64 << 10 }; /* used again by each heartbeat */
    uint32_t random = 7;
    mu_error error = {0};

    for (int i = 0; i < 600; i++) {
        mu_value *args;

        random = random * 1664525 + 1013904223;
        args = bytes_of((random >> 8) % (1 << (12 + i % 10)), 1);
        mu_remote_value_free(schedule(f, "give", args));
        mu_value_free(args);
        assert_true(mu__block_pool_cached(&mu__blocks) <= MU__BLOCKS_CACHED_BYTES_MAX);
    }
    assert_int_equal(mu_coordinator_join(f->coordinator, SOON_MS, &error), 0);
    assert_int_equal(mu__block_pool_counts(&mu__blocks).reused > 0, POOLED);
    for (int i = 0; i < SOON_MS && mu__block_pool_cached(&mu__blocks) > BEATS_BYTES; i++)
        nodes_pause();
    assert_true(mu__block_pool_cached(&mu__blocks) <= BEATS_BYTES);
}

TEST_PROGRAM()
