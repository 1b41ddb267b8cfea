/* Iterators with many threads at them; lines that functions log from their threads. */
#include "actors/worker/function_run.h"
#include "tests/real/nodes.h"

#include <stdatomic.h>

enum { THREADS = 4, ELEMENTS = 20000 };

/* Counts up to `end`, and notes who comes in while somebody is inside. */
struct counter {
    int64_t at;
    int64_t end;
    int fails_at; /* one error there; 0: none */
    atomic_int inside;
    atomic_int collisions;
    int calls;
    int drops;
};

static int count_next(void *state, mu_value **ret_element)
{
    struct counter *c = state;
    int rv = -MU_ERANGE;

    if (atomic_fetch_add(&c->inside, 1) != 0)
        atomic_fetch_add(&c->collisions, 1);
    c->calls++;
    if (c->fails_at != 0 && c->at + 1 == c->fails_at) {
        c->fails_at = 0;
        rv = -MU_EDATALOSS;
    } else if (c->at < c->end) {
        *ret_element = mu_value_int(++c->at);
        rv = 0;
    }
    atomic_fetch_sub(&c->inside, 1);
    return rv;
}

static void count_drop(void *state)
{
    ((struct counter *)state)->drops++;
}

/* What a function's run gives for an iterator over `c`; the caller frees it. */
static mu_value *open_counter(struct counter *c)
{
    mu_run run = {.closure = 1};
    mu_value *value;

    assert_int_equal(mu_run_return_iterator(&run, count_next, count_drop, c), 0);
    value = run.result;
    run.result = NULL;
    mu__run_clear(&run);
    return value;
}

static int take(const mu_value *iterator, int64_t *ret_number)
{
    mu_run run = {0};
    mu_value *element = NULL;
    int rv = mu_run_iterator_next(&run, iterator, &element);

    assert_int_equal(element != NULL, rv == 0);
    if (rv == 0)
        assert_int_equal(mu_value_get_int(element, ret_number), 0);
    mu_value_free(element);
    return rv;
}

/* Errors are passed on, and it goes on behind them; the end stays the end. */
TEST(test_one_after_the_other)
{
    struct counter c = {.end = 2, .fails_at = 2};
    mu_value *iterator = open_counter(&c);
    mu_run run = {0};
    int64_t number = 0;

    assert_int_equal(take(iterator, &number), 0);
    assert_int_equal(number, 1);
    assert_int_equal(take(iterator, &number), -MU_EDATALOSS);
    assert_int_equal(take(iterator, &number), 0);
    assert_int_equal(number, 2);
    assert_int_equal(take(iterator, &number), -MU_ERANGE);
    c.end = 9;
    assert_int_equal(take(iterator, &number), -MU_ERANGE);
    assert_int_equal(c.calls, 4);
    assert_null(mu_run_object(&run, iterator));
    assert_int_equal(c.drops, 0);
    mu_value_free(iterator);
    assert_int_equal(c.drops, 1);
}

TEST(test_what_is_none)
{
    struct counter c = {.end = 1};
    mu_run run = {.closure = 1};
    mu_value *others[] = {NULL, mu_value_int(1), NULL, NULL};
    int64_t number;

    mu_run_return_object(&run, &c, count_drop);
    others[2] = mu_value_ref(run.result);
    for (size_t i = 0; i < 4; i++)
        assert_int_equal(take(others[i], &number), -MU_EINVALID);
    assert_ptr_equal(mu_run_object(&run, others[2]), &c);
    assert_int_equal(mu_run_return_iterator(&run, NULL, count_drop, &c), -MU_EINVALID);
    assert_int_equal(c.drops, 1);
    mu_value_free(others[1]);
    mu_value_free(others[2]);
    assert_int_equal(c.drops, 2);
    mu__run_clear(&run);
}

struct taker {
    const mu_value *iterator;
    pthread_t thread;
    int64_t sum;
    int rv;
};

static void *take_all(void *arg)
{
    struct taker *taker = arg;
    int64_t number = 0;

    while ((taker->rv = take(taker->iterator, &number)) == 0)
        taker->sum += number;
    return NULL;
}

/* Each element once, one thread at a time. */
TEST(test_many_threads)
{
    struct counter c = {.end = ELEMENTS};
    mu_value *iterator = open_counter(&c);
    struct taker takers[THREADS] = {{0}};
    int64_t sum = 0;

    for (size_t i = 0; i < THREADS; i++) {
        takers[i].iterator = iterator;
        assert_int_equal(pthread_create(&takers[i].thread, NULL, take_all, &takers[i]),
                         0);
    }
    for (size_t i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_join(takers[i].thread, NULL), 0);
        assert_int_equal(takers[i].rv, -MU_ERANGE);
        sum += takers[i].sum;
    }
    assert_int_equal(sum, (int64_t)ELEMENTS * (ELEMENTS + 1) / 2);
    assert_int_equal(c.collisions, 0);
    assert_int_equal(c.calls, ELEMENTS + 1);
    mu_value_free(iterator);
}

static atomic_int seen;

/* Does not end before its line was seen. */
static int run_chatter(mu_run *run, void *user)
{
    (void)user;
    mu_run_log(run, "%s on %d: %d", mu_run_closure_name(run), mu_run_worker(run), 42);
    for (int i = 0; i < SOON_MS && !atomic_load(&seen); i++)
        nodes_pause();
    return 0;
}

TEST(test_lines_come_while_it_runs)
{
    struct nodes nodes;
    mu_node *chief;
    mu_node *worker;
    mu_coordinator *coordinator;
    mu_remote_value *value = NULL;
    mu_error error = {0};

    nodes_init(&nodes, 1, 0);
    chief = nodes_open(&nodes, "chief", 0);
    worker = nodes_open(&nodes, "worker", 0);
    assert_int_equal(mu_node_register_function(worker, "chatter", run_chatter, NULL, 0),
                     0);
    assert_int_equal(mu_node_serve(worker), 0);
    coordinator = nodes_coordinator(chief);
    assert_int_equal(mu_coordinator_schedule(coordinator, "chatter", NULL, SOON_MS,
                                             &error, &value),
                     0);
    nodes_wait_log(&nodes, "/job:worker/task:0 worker: chatter:  on 0: 42");
    atomic_store(&seen, 1);
    assert_int_equal(mu_remote_value_fetch(value, SOON_MS, &error, NULL), 0);
    mu_remote_value_free(value);
    mu_coordinator_close(coordinator);
    nodes_done(&nodes);
}

TEST_PROGRAM()
