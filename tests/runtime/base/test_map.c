/* The map against an array indexed by key. Keys are dense, spread, or equal in the bits
 * that the hash looks at most. */
#include "runtime/base/map.h"
#include "sim/world/random.h"
#include "tests/support/test.h"

#include <stdbool.h>

enum { KEYS = 700, STEPS = 100000 };

static uint64_t key_dense(uint64_t i)
{
    return i + 1;
}

static uint64_t key_high(uint64_t i)
{
    return (i + 1) << 40;
}

static uint64_t key_spread(uint64_t i)
{
    return sim_mix(i + 1) | 1;
}

static const struct {
    const char *what;
    uint64_t (*key)(uint64_t i);
} kinds[] = {{"dense", key_dense}, {"high", key_high}, {"spread", key_spread}};

TEST(test_empty)
{
    struct mu__map map = {0};
    int a;
    int b;

    assert_null(mu__map_get(&map, 1));
    assert_null(mu__map_remove(&map, 1));
    mu__map_done(&map);
    assert_int_equal(mu__map_set(&map, UINT64_MAX, &a), 0);
    assert_ptr_equal(mu__map_get(&map, UINT64_MAX), &a);
    assert_null(mu__map_get(&map, 1));
    assert_int_equal(mu__map_set(&map, UINT64_MAX, &b), 0);
    assert_int_equal(map.count, 1);
    assert_ptr_equal(mu__map_remove(&map, UINT64_MAX), &b);
    assert_null(mu__map_remove(&map, UINT64_MAX));
    assert_int_equal(map.count, 0);
    mu__map_done(&map);
}

static void check_all(const struct mu__map *map, uint64_t (*key)(uint64_t i),
                      char *const *model)
{
    for (uint64_t i = 0; i < KEYS; i++)
        assert_ptr_equal(mu__map_get(map, key(i)), model[i]);
}

static void run_model(uint64_t (*key)(uint64_t i), uint64_t seed)
{
    static char targets[64];
    char *model[KEYS] = {NULL};
    struct sim_random random = sim_stream(seed, 3);
    struct mu__map map = {0};
    size_t count = 0;

    for (int step = 0; step < STEPS; step++) {
        uint64_t i = sim_between(&random, 0, KEYS - 1);
        unsigned sets = step / 20000 % 2 == 0 ? 70 : 20;

        if (sim_chance(&random, sets)) {
            count += model[i] == NULL;
            model[i] = &targets[sim_between(&random, 0, sizeof targets - 1)];
            assert_int_equal(mu__map_set(&map, key(i), model[i]), 0);
        } else {
            assert_ptr_equal(mu__map_remove(&map, key(i)), model[i]);
            count -= model[i] != NULL;
            model[i] = NULL;
        }
        assert_int_equal(map.count, count);
        if (step % 1000 == 0)
            check_all(&map, key, model);
    }
    mu__map_done(&map);
}

TEST(test_model)
{
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        for (uint64_t seed = 1; seed <= 3; seed++)
            run_model(kinds[i].key, seed);
    assert_int_equal(sizeof kinds / sizeof kinds[0], 3);
}

TEST_PROGRAM()
