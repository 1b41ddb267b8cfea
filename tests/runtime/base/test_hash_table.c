/* The hash table, and the keys of tasks. */
#include "runtime/base/hash_table.h"
#include "runtime/base/view.h"
#include "tests/support/test.h"

enum { MANY = 1000, HASHES = 7 };

TEST(test_keys_of_tasks)
{
    static const char *const types[] = {"", "chief", "client", "ps", "worker", "server"};
    static const uint32_t indices[] = {0, 1, 999999, UINT32_MAX};
    uint64_t before = 0;

    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++)
        for (size_t j = 0; j < sizeof indices / sizeof indices[0]; j++) {
            uint64_t key = mu__task_key(mu__view_str(types[i]), indices[j]);

            assert_true(key != 0 && key >> 63 == 0 && key != before);
            assert_true(mu__task_key(mu__view_str(types[i]), indices[j]) == key);
            before = key;
        }
}

static size_t count(const struct mu__hash_table *table, uint64_t hash)
{
    const struct mu__hash_node *node = mu__hash_table_find(table, hash);
    size_t n = 0;

    for (; node != NULL; node = mu__hash_next(node), n++)
        assert_true(node->hash == hash);
    return n;
}

/* The last one of a hash that was added is found first, also when the table has grown. */
TEST(test_order_of_the_same_hash)
{
    static struct mu__hash_node others[MANY];
    struct mu__hash_table table = {0};
    struct mu__hash_node nodes[3] = {{0}};

    assert_null(mu__hash_table_find(&table, 5));
    for (int i = 0; i < 3; i++)
        assert_int_equal(mu__hash_table_add(&table, 5, &nodes[i]), 0);
    for (size_t i = 0; i < MANY; i++) {
        assert_int_equal(mu__hash_table_add(&table, 6 + i, &others[i]), 0);
        assert_ptr_equal(mu__hash_table_find(&table, 5), &nodes[2]);
        assert_ptr_equal(mu__hash_next(&nodes[2]), &nodes[1]);
        assert_ptr_equal(mu__hash_next(&nodes[1]), &nodes[0]);
        assert_null(mu__hash_next(&nodes[0]));
    }
    mu__hash_table_remove(&table, &nodes[1]);
    assert_ptr_equal(mu__hash_next(&nodes[2]), &nodes[0]);
    mu__hash_table_remove(&table, &nodes[2]);
    assert_ptr_equal(mu__hash_table_find(&table, 5), &nodes[0]);
    mu__hash_table_remove(&table, &nodes[0]);
    assert_null(mu__hash_table_find(&table, 5));
    mu__hash_table_done(&table);
    assert_int_equal(table.count, 0);
}

/* Of each hash there are as many as were added and not removed, whatever the order. */
TEST(test_many)
{
    static struct mu__hash_node nodes[MANY];
    struct mu__hash_table table = {0};
    size_t counts[HASHES + 1] = {0};

    for (size_t i = 0; i < MANY; i++, counts[i % HASHES + 1]++)
        assert_int_equal(mu__hash_table_add(&table, (i + 1) % HASHES + 1, &nodes[i]), 0);
    for (size_t i = 0; i < MANY; i++) {
        const struct mu__hash_node *node = NULL;
        size_t at = i * 389 % MANY;
        size_t all = 0;

        counts[nodes[at].hash]--;
        mu__hash_table_remove(&table, &nodes[at]);
        assert_int_equal(nodes[at].hash, 0);
        for (uint64_t hash = 1; hash <= HASHES; hash++)
            assert_int_equal(count(&table, hash), counts[hash]);
        while ((node = mu__hash_table_next(&table, node)) != NULL)
            all++;
        assert_int_equal(all, table.count);
    }
    assert_int_equal(table.count, 0);
    mu__hash_table_done(&table);
}

TEST_PROGRAM()
