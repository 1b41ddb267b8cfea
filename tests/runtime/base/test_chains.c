/* Chains by key, and the keys of tasks. */
#include "runtime/base/chains.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

enum { MANY = 1000, KEYS = 7 };

static void test_keys_of_tasks(void **state)
{
    static const char *const types[] = {"", "chief", "client", "ps", "worker", "server"};
    static const uint32_t indices[] = {0, 1, 999999, UINT32_MAX};
    uint64_t before = 0;

    (void)state;
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++)
        for (size_t j = 0; j < sizeof indices / sizeof indices[0]; j++) {
            uint64_t key = mu__task_key(mu__view_str(types[i]), indices[j]);

            assert_true(key != 0 && key >> 63 == 0 && key != before);
            assert_true(mu__task_key(mu__view_str(types[i]), indices[j]) == key);
            before = key;
        }
}

static size_t count(const struct mu__chains *chains, uint64_t key)
{
    const struct mu__chained *one = mu__chains_first(chains, key);
    size_t n = 0;

    assert_true(one == NULL || one->prev == NULL);
    for (; one != NULL; one = one->next, n++)
        assert_true(one->key == key && (one->next == NULL || one->next->prev == one));
    return n;
}

/* The last one that was added is the first. */
static void test_order(void **state)
{
    struct mu__chains chains = {0};
    struct mu__chained ones[3] = {{0}};

    (void)state;
    assert_null(mu__chains_first(&chains, 5));
    for (int i = 0; i < 3; i++)
        assert_int_equal(mu__chains_add(&chains, 5, &ones[i]), 0);
    assert_ptr_equal(mu__chains_first(&chains, 5), &ones[2]);
    assert_ptr_equal(ones[2].next, &ones[1]);
    assert_null(mu__chains_first(&chains, 6));
    mu__chains_remove(&chains, &ones[1]);
    assert_ptr_equal(ones[2].next, &ones[0]);
    mu__chains_remove(&chains, &ones[2]);
    assert_ptr_equal(mu__chains_first(&chains, 5), &ones[0]);
    mu__chains_remove(&chains, &ones[2]);
    assert_int_equal(count(&chains, 5), 1);
    mu__chains_remove(&chains, &ones[0]);
    assert_null(mu__chains_first(&chains, 5));
    mu__chains_done(&chains);
}

/* Of each key there are as many as were added and not removed, whatever the order. */
static void test_many(void **state)
{
    static struct mu__chained ones[MANY];
    struct mu__chains chains = {0};
    size_t counts[KEYS + 1] = {0};

    (void)state;
    for (size_t i = 0; i < MANY; i++, counts[i % KEYS + 1]++)
        assert_int_equal(mu__chains_add(&chains, (i + 1) % KEYS + 1, &ones[i]), 0);
    for (size_t i = 0; i < MANY; i++) {
        size_t at = i * 389 % MANY;

        counts[ones[at].key]--;
        mu__chains_remove(&chains, &ones[at]);
        for (uint64_t key = 1; key <= KEYS; key++)
            assert_int_equal(count(&chains, key), counts[key]);
    }
    mu__chains_done(&chains);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_keys_of_tasks),
        cmocka_unit_test(test_order),
        cmocka_unit_test(test_many),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
