/* The contract of storages, over the simulated one, and the faults that it can have. */
#include "sim/world/storage.h"
#include "tests/support/test.h"

#include <limits.h>

#include "tests/support/contract/storage.h"

static void *place_open(void)
{
    return sim_storage_new("sim:journal", 7);
}

static void place_close(void *place)
{
    sim_storage_free(place);
}

static struct mu__storage *place_storage(void *place)
{
    return &((struct sim_storage *)place)->base;
}

static void place_restart(void *place)
{
    sim_storage_crash(place);
}

static void place_set_full(void *place, bool full)
{
    unsigned times = full ? UINT_MAX : 0;

    sim_storage_fail(place, SIM_STORAGE_FLUSH, times, -MU_EEXHAUSTED);
    sim_storage_fail(place, SIM_STORAGE_REPLACE, times, -MU_EEXHAUSTED);
}

static const struct contract_storage fixture = {
    .open = place_open,
    .close = place_close,
    .storage = place_storage,
    .restart = place_restart,
    .set_full = place_set_full,
};

/* ---- Faults ---- */

static void append_text(struct sim_storage *s, const char *text)
{
    assert_int_equal(s->base.ops->append(&s->base, text, strlen(text), NULL), 0);
}

/* What is left of "abcd" that was appended, as a length. */
static size_t left_after_crash(uint64_t seed)
{
    struct sim_storage *s = sim_storage_new("sim:journal", seed);
    struct mu__buf *content = NULL;
    size_t left;

    append_text(s, "abcd");
    sim_storage_crash(s);
    assert_int_equal(s->base.ops->load(&s->base, 0, UINT32_MAX, NULL, &content), 0);
    left = content == NULL ? 0 : content->size;
    mu__buf_unref(content);
    sim_storage_free(s);
    return left;
}

/* Every tear happens, and the same seed gives the same one. */
LISTED_TEST(test_tears_are_drawn)
{
    unsigned seen[5] = {0};

    for (uint64_t seed = 1; seed <= 200; seed++) {
        size_t left = left_after_crash(seed);

        assert_in_range(left, 0, 4);
        assert_int_equal(left_after_crash(seed), left);
        seen[left]++;
    }
    for (size_t i = 0; i < 5; i++)
        assert_true(seen[i] > 0);
}

LISTED_TEST(test_faults_are_counted)
{
    struct sim_storage *s = sim_storage_new("sim:journal", 1);
    struct mu__buf *content = NULL;
    mu_error error;

    sim_storage_fail(s, SIM_STORAGE_APPEND, 2, -MU_ENOMEM);
    for (int i = 0; i < 2; i++)
        assert_int_equal(s->base.ops->append(&s->base, "a", 1, &error), -MU_ENOMEM);
    append_text(s, "b");
    assert_int_equal(s->base.ops->flush(&s->base, &error), 0);
    sim_storage_fail(s, SIM_STORAGE_LOAD, 1, -MU_EUNAVAILABLE);
    assert_int_equal(s->base.ops->load(&s->base, 0, 9, &error, &content),
                     -MU_EUNAVAILABLE);
    assert_int_equal(s->base.ops->load(&s->base, 0, 9, &error, &content), 0);
    assert_int_equal(content->size, 1);
    assert_int_equal(s->counts[SIM_STORAGE_APPEND], 3);
    mu__buf_unref(content);
    sim_storage_free(s);
}

/* The replace of a process that dies in it has happened or not; nothing after it has. */
LISTED_TEST(test_death_in_the_middle)
{
    unsigned replaced = 0;

    for (uint64_t seed = 1; seed <= 100; seed++) {
        struct sim_storage *s = sim_storage_new("sim:journal", seed);
        mu_error error;

        append_text(s, "old");
        assert_int_equal(s->base.ops->flush(&s->base, &error), 0);
        sim_storage_die_after(s, 1);
        append_text(s, "x");
        assert_int_equal(s->base.ops->replace(&s->base, "newer", 5, &error), -MU_ECLOSED);
        assert_int_equal(s->base.ops->append(&s->base, "y", 1, &error), -MU_ECLOSED);
        assert_int_equal(s->base.ops->flush(&s->base, &error), -MU_ECLOSED);
        sim_storage_crash(s);
        if (s->size == 5)
            replaced++;
        else
            assert_true(s->size == 3 || s->size == 4);
        append_text(s, "z");
        sim_storage_free(s);
    }
    assert_in_range(replaced, 20, 80);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tears_are_drawn),
        cmocka_unit_test(test_faults_are_counted),
        cmocka_unit_test(test_death_in_the_middle),
    };

    return contract_storage_run("storage_sim contract", &fixture) +
           cmocka_run_group_tests_name("storage_sim", tests, NULL, NULL);
}
