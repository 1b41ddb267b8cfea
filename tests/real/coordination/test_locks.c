/* Locks and transactions by their public calls: several nodes in one process. The chief
 * hosts the service. */
#include "tests/real/nodes.h"

#include <stdatomic.h>
#include <stdbool.h>

enum { THREADS = 4, TURNS = 25 };

struct fixture {
    struct nodes nodes;
    mu_node *chief;
    mu_node *workers[2];
};

static struct fixture f;

static int begin(void **state)
{
    mu_error error = {0};

    (void)state;
    nodes_init(&f.nodes, 2, 0);
    f.chief = nodes_open(&f.nodes, "chief", 0);
    for (int i = 0; i < 2; i++)
        f.workers[i] = nodes_open(&f.nodes, "worker", i);
    check(mu_agent_register(f.chief, 1, SOON_MS, &error), &error);
    for (int i = 0; i < 2; i++)
        check(mu_agent_register(f.workers[i], 1, SOON_MS, &error), &error);
    return 0;
}

static int end(void **state)
{
    (void)state;
    nodes_done(&f.nodes);
    return 0;
}

static mu_lock *acquire(mu_node *node, const char *name)
{
    mu_error error = {0};
    mu_lock *lock = NULL;

    check(mu_lock_acquire(node, name, SOON_MS, &error, &lock), &error);
    return lock;
}

static void release(mu_lock *lock)
{
    mu_error error = {0};

    check(mu_lock_release(lock, SOON_MS, &error), &error);
}

static size_t places(const char *name)
{
    char directory[64];
    mu_error error = {0};
    mu_value *items = NULL;
    size_t count;

    (void)snprintf(directory, sizeof directory, MU_LOCK_DIRECTORY "/%s", name);
    check(mu_kv_list(f.chief, directory, SOON_MS, &error, &items), &error);
    count = mu_value_count(items);
    mu_value_free(items);
    return count;
}

static void await_places(const char *name, size_t count)
{
    for (int i = 0; i < SOON_MS && places(name) != count; i++)
        nodes_pause();
    assert_int_equal(places(name), count);
}

/* ---- Locks ---- */

TEST(test_held_by_one)
{
    mu_lock *first;
    mu_lock *other;
    mu_lock *second = NULL;
    mu_error error = {0};
    uint64_t number;

    first = acquire(f.workers[0], "a/b");
    other = acquire(f.workers[1], "a");
    number = mu_lock_fencing_token(first);
    assert_true(number > 0);
    assert_int_equal(mu_lock_acquire(f.workers[1], "a/b", 200, &error, &second),
                     -MU_EDEADLINE);
    assert_non_null(strstr(error.message, "lock \"a/b\" was not free within 200 ms: "
                                          "/job:worker/task:0 on "));
    assert_non_null(strstr(error.message, " holds it, and 0 wait before this one"));
    await_places("a/b", 1);
    assert_int_equal(mu_lock_wait_lost(first, 50, &error), -MU_EDEADLINE);
    release(first);
    release(other);
    second = acquire(f.workers[1], "a/b");
    assert_true(mu_lock_fencing_token(second) > number);
    release(second);
    assert_int_equal(places("a/b"), 0);
    assert_int_equal(mu_lock_release(NULL, 0, NULL), 0);
}

struct waiter {
    mu_node *node;
    atomic_int *next;
    int order; /* in which it came */
    int got;   /* in which it held it */
    uint64_t number;
};

static void *wait_in_order(void *arg)
{
    struct waiter *waiter = arg;
    mu_lock *lock = acquire(waiter->node, "fair");

    waiter->got = atomic_fetch_add(waiter->next, 1);
    waiter->number = mu_lock_fencing_token(lock);
    release(lock);
    return NULL;
}

/* First come, first served, also when one of those who wait gives up. */
TEST(test_in_order)
{
    static struct waiter waiters[THREADS];
    static pthread_t threads[THREADS];
    atomic_int next = 0;
    mu_lock *lock = acquire(f.chief, "fair");
    mu_lock *never = NULL;

    for (int i = 0; i < THREADS; i++) {
        if (i == THREADS / 2)
            assert_int_equal(mu_lock_acquire(f.chief, "fair", 100, NULL, &never),
                             -MU_EDEADLINE);
        await_places("fair", (size_t)i + 1);
        waiters[i] = (struct waiter){f.workers[i % 2], &next, i, -1, 0};
        assert_int_equal(pthread_create(&threads[i], NULL, wait_in_order, &waiters[i]),
                         0);
        await_places("fair", (size_t)i + 2);
    }
    assert_int_equal(atomic_load(&next), 0);
    release(lock);
    for (int i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
        assert_int_equal(waiters[i].got, waiters[i].order);
        assert_true(i == 0 || waiters[i].number > waiters[i - 1].number);
    }
    await_places("fair", 0);
}

static void *wait_for_long(void *arg)
{
    mu_error error = {0};
    mu_lock *lock = NULL;

    check(mu_lock_acquire(arg, "long", -1, &error, &lock), &error);
    release(lock);
    return NULL;
}

TEST(test_wait_without_limit_is_told)
{
    mu_lock *lock = acquire(f.chief, "long");
    pthread_t thread;

    assert_int_equal(pthread_create(&thread, NULL, wait_for_long, f.workers[0]), 0);
    nodes_wait_log(&f.nodes, "/job:worker/task:0 agent: waiting: lock \"long\" is not "
                             "free for 5 s: /job:chief/task:0 on ");
    assert_true(nodes_has_logged(&f.nodes, " holds it, and 0 wait before this one\n"));
    release(lock);
    assert_int_equal(pthread_join(thread, NULL), 0);
}

static atomic_int holders;
static uint64_t last_number;

static void *take_turns(void *arg)
{
    for (int i = 0; i < TURNS; i++) {
        mu_lock *lock = acquire(arg, "turns");

        assert_int_equal(atomic_fetch_add(&holders, 1), 0);
        assert_true(mu_lock_fencing_token(lock) > last_number);
        last_number = mu_lock_fencing_token(lock);
        assert_int_equal(atomic_fetch_sub(&holders, 1), 1);
        release(lock);
    }
    return NULL;
}

TEST(test_never_two)
{
    pthread_t threads[THREADS];

    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, take_turns, f.workers[i % 2]),
                         0);
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    assert_int_equal(places("turns"), 0);
}

/* A task that leaves holds nothing any more: the next one gets the lock, the former
 * holder hears it, and what it guards with the number is refused. */
TEST(test_lost)
{
    mu_lock *lock = acquire(f.workers[0], "lost");
    uint64_t number = mu_lock_fencing_token(lock);
    mu_kv_check check_held = {.type = MU_KV_IF_REVISION, .revision = number};
    const mu_kv_change change = {
        .operation = MU_KV_PUT, .key = "guarded", .value = "x", .size = 1};
    const mu_kv_transaction guarded = {&check_held, 1, &change, 1};
    mu_kv_transaction_result outcome;
    mu_error error = {0};
    mu_lock *next;
    uint64_t count = 0;

    check_held.key = mu_lock_key(lock);
    check(mu_kv_transact(f.workers[0], &guarded, SOON_MS, &error, &outcome), &error);
    check(mu_kv_delete(f.chief, mu_lock_key(lock), SOON_MS, &error, &count), &error);
    assert_int_equal(count, 1);
    next = acquire(f.workers[1], "lost");
    assert_true(mu_lock_fencing_token(next) > number);
    check(mu_lock_wait_lost(lock, SOON_MS, &error), &error);
    assert_int_equal(mu_kv_transact(f.workers[0], &guarded, SOON_MS, &error, &outcome),
                     -MU_EPRECONDITION);
    assert_int_equal(outcome.failed, 0);
    assert_int_equal(mu_lock_release(lock, SOON_MS, &error), -MU_EABORTED);
    assert_string_equal(error.message, "lock \"lost\" was lost before it was released");
    lock = acquire(f.workers[0], "other");
    check(mu_agent_leave(f.workers[0], SOON_MS, &error), &error);
    release(acquire(f.workers[1], "other"));
    assert_true(mu_lock_wait_lost(lock, 1000, &error) != -MU_EDEADLINE);
    assert_true(mu_lock_release(lock, 1000, &error) != 0);
    release(next);
    check(mu_agent_register(f.workers[0], 0, SOON_MS, &error), &error);
}

TEST(test_bad_names)
{
    char name[1100];
    mu_error error = {0};
    mu_lock *lock = NULL;

    assert_int_equal(mu_lock_acquire(f.chief, "", 0, &error, &lock), -MU_EINVALID);
    assert_string_equal(error.message, "a lock's name is a key: a key may not be empty");
    assert_int_equal(mu_lock_acquire(f.chief, NULL, 0, &error, &lock), -MU_EINVALID);
    memset(name, 'n', sizeof name);
    name[1020] = '\0';
    assert_int_equal(mu_lock_acquire(f.chief, name, 0, &error, &lock), -MU_EINVALID);
    assert_string_equal(error.message, "a lock's name has 1020 bytes, which leaves too "
                                       "few of the 1023 of a key");
    name[1000] = '\0';
    assert_int_equal(mu_lock_acquire(f.chief, name, 0, &error, &lock), -MU_EINVALID);
    assert_null(lock);
}

/* ---- Transactions ---- */

TEST(test_transaction)
{
    const mu_kv_check checks[] = {
        {.type = MU_KV_IF_ABSENT, .key = "/x//a/"},
        {.type = MU_KV_IF_VALUE, .key = "x/b", .value = "1", .size = 1}};
    const mu_kv_change changes[] = {
        {.operation = MU_KV_PUT, .key = "x/a", .value = "made", .size = 4},
        {.operation = MU_KV_INCREMENT, .key = "x/n", .by = 7},
        {.operation = MU_KV_DELETE, .key = "x/b"}};
    const mu_kv_transaction transaction = {checks, 2, changes, 3};
    mu_kv_transaction_result outcome;
    mu_kv_item item = {0};
    mu_error error = {0};

    assert_int_equal(mu_kv_transact(f.chief, &transaction, SOON_MS, &error, &outcome),
                     -MU_EPRECONDITION);
    assert_int_equal(outcome.failed, 1);
    assert_string_equal(error.message, "key \"x/b\" is not there");
    check(mu_kv_put(f.workers[0], "x/b", "1", 1, 0, 0, SOON_MS, &error, NULL), &error);
    check(mu_kv_transact(f.workers[1], &transaction, SOON_MS, &error, &outcome), &error);
    assert_int_equal(outcome.number, 7);
    assert_int_equal(outcome.failed, -1);
    check(mu_kv_try_get(f.chief, "x/a", SOON_MS, &error, &item), &error);
    assert_string_equal(item.value, "made");
    assert_true(item.revision < outcome.revision);
    mu_kv_item_clear(&item);
    assert_int_equal(mu_kv_try_get(f.chief, "x/b", SOON_MS, &error, &item),
                     -MU_ENOTFOUND);
    assert_int_equal(mu_kv_transact(f.chief, &transaction, SOON_MS, &error, NULL),
                     -MU_EPRECONDITION);
}

TEST(test_transactions_that_are_wrong)
{
    static const char large[(1 << 20) + 1];
    static mu_kv_change many[MU_KV_TRANSACTION_MAX + 1];
    mu_kv_change change = {
        .operation = MU_KV_PUT, .key = "a", .value = large, .size = sizeof large};
    const mu_kv_transaction one = {NULL, 0, &change, 1};
    const mu_kv_transaction too_many = {NULL, 0, many, MU_KV_TRANSACTION_MAX + 1};
    mu_kv_transaction_result outcome;
    mu_error error = {0};

    assert_int_equal(mu_kv_transact(f.chief, &one, SOON_MS, &error, &outcome),
                     -MU_EEXHAUSTED);
    assert_int_equal(outcome.failed, -1);
    change.value = NULL;
    assert_int_equal(mu_kv_transact(f.chief, &one, SOON_MS, &error, &outcome),
                     -MU_EINVALID);
    change = (mu_kv_change){.operation = MU_KV_PUT, .key = NULL};
    assert_int_equal(mu_kv_transact(f.chief, &one, SOON_MS, &error, &outcome),
                     -MU_EINVALID);
    assert_string_equal(error.message, "change 1 of the transaction: a key is NULL");
    change = (mu_kv_change){.operation = MU_KV_GET, .key = "a"};
    assert_int_equal(mu_kv_transact(f.chief, &one, SOON_MS, &error, &outcome),
                     -MU_EINVALID);
    assert_int_equal(mu_kv_transact(f.chief, &too_many, SOON_MS, &error, &outcome),
                     -MU_EEXHAUSTED);
    assert_string_equal(error.message, "a transaction has 0 comparisons and 129 changes, "
                                       "and may have 128 of each");
}

TEST_PROGRAM_WITH(begin, end)
