/* Keys that peers choose so that they all want one place of a hash table: with a seed
 * that they do not know they are keys like any others. */
#include "actors/supervisor/state/names.h"
#include "actors/worker/pinned.h"
#include "runtime/base/map.h"
#include "runtime/base/sip_hash.h"
#include "sim/world/sim.h"
#include "tests/support/test.h"

#include <time.h>

enum { KEYS = 20000, INPUTS = 60000, RUN_MAX = 1000 };

/* Of the factor that an unseeded map multiplies with, modulo 2^64. */
static uint64_t inverse(void)
{
    uint64_t factor = UINT64_C(0x9e3779b97f4a7c15);
    uint64_t guess = factor;

    for (int i = 0; i < 6; i++)
        guess *= 2 - factor * guess;
    return guess;
}

/* All of them want the first place of an unseeded map. */
static uint64_t crafted(uint64_t i)
{
    return (i << 40) * inverse();
}

static size_t longest_run(const struct mu__map *map)
{
    size_t longest = 0;
    size_t run = 0;

    for (size_t i = 0; i < map->capacity; i++) {
        run = map->entries[i].key == 0 ? 0 : run + 1;
        longest = run > longest ? run : longest;
    }
    return longest;
}

static size_t run_of_crafted(uint64_t seed)
{
    struct mu__map map = {0};
    size_t longest;

    mu__map_seed(&map, seed);
    for (uint64_t i = 1; i <= KEYS; i++)
        assert_int_equal(mu__map_set(&map, crafted(i), &map), 0);
    for (uint64_t i = 1; i <= KEYS; i++)
        assert_ptr_equal(mu__map_get(&map, crafted(i)), &map);
    longest = longest_run(&map);
    for (uint64_t i = 1; i <= KEYS; i++)
        assert_ptr_equal(mu__map_remove(&map, crafted(i)), &map);
    assert_int_equal(map.count, 0);
    mu__map_done(&map);
    return longest;
}

TEST(test_crafted_keys_spread_with_a_seed)
{
    for (uint64_t seed = 1; seed < UINT64_MAX / 3; seed = seed * 1000003 + 1)
        assert_in_range(run_of_crafted(seed), 1, RUN_MAX);
}

/* The seed stays when the map is emptied, and orders are those of the seed. */
TEST(test_seed_outlives_the_content)
{
    struct mu__map map = {0};

    mu__map_seed(&map, 5);
    assert_int_equal(mu__map_set(&map, 1, &map), 0);
    mu__map_done(&map);
    assert_int_equal(map.seed, 5);
    assert_int_equal(map.count, 0);
}

/* CPU seconds for as many inputs of one chief. */
static double seconds_for(uint64_t seed, uint64_t (*number)(uint64_t i))
{
    struct mu__pinned kept = {.seed = seed};
    clock_t begin = clock();

    for (uint64_t i = 1; i <= INPUTS; i++) {
        struct mu__pinned_item *item = mu__pinned_expect(&kept, 1, number(i));

        assert_non_null(item);
    }
    mu__pinned_done(&kept);
    return (double)(clock() - begin) / CLOCKS_PER_SEC;
}

static uint64_t itself(uint64_t i)
{
    return i;
}

/* What took six seconds takes about as long as any other numbers. */
TEST(test_colliding_inputs_are_harmless)
{
    double usual = seconds_for(77, itself);
    double bad = seconds_for(77, crafted);

    assert_true(bad < 20 * usual + 0.05);
}

TEST(test_text_hash_depends_on_the_secret)
{
    static const char text[] = "a name of a function";
    uint64_t last = 0;

    for (uint64_t secret = 0; secret < 100; secret++) {
        uint64_t hash = mu__sip_hash(secret, text, sizeof text);

        assert_int_not_equal(hash, last);
        assert_int_equal(hash, mu__sip_hash(secret, text, sizeof text));
        last = hash;
    }
}

/* Numbers of names do not depend on where they are. */
TEST(test_names_with_a_secret)
{
    for (uint64_t secret = 0; secret < 3; secret++) {
        struct mu__names names = {.secret = secret};
        char name[16];

        for (uint32_t i = 0; i < 1000; i++) {
            (void)snprintf(name, sizeof name, "f%u", i * 7919);
            assert_int_equal(mu__names_take(&names, mu__view_str(name)), i);
        }
        mu__names_done(&names);
    }
}

TEST_PROGRAM()
