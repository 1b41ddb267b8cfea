/* Stores by name; and the one that keeps nothing. */
#include "actors/coordination/store/store.h"
#include "tests/support/test.h"

#include "tests/support/contract/store.h"

LISTED_TEST(test_find)
{
    static const struct mu__store_kind third = {.name = "third", .has_location = true};
    static const struct mu__store_kind *const registry[] = {
        &mu__store_memory, &mu__store_journal, &third, NULL};
    static const struct {
        const char *text;
        const struct mu__store_kind *kind;
        const char *place;
        const char *words;
    } rows[] = {
        {"memory", &mu__store_memory, "", ""},
        {"journal:/var/x", &mu__store_journal, "/var/x", ""},
        {"journal:C:/x", &mu__store_journal, "C:/x", ""},
        {"third:a,b", &third, "a,b", ""},
        {"", NULL, "",
         "store \"\" is of no kind that there is; expected memory, "
         "journal:... or third:..."},
        {"mem", NULL, "", "\"mem\" is of no kind"},
        {"memory2", NULL, "", "is of no kind"},
        {":memory", NULL, "", "is of no kind"},
        {"journal", NULL, "", "\"journal\" does not say where it is; expected"},
        {"journal:", NULL, "", "does not say where it is"},
        {"memory:x", NULL, "", "says where it is, which means nothing"},
        {"memory:", NULL, "", "says where it is, which means nothing"},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const struct mu__store_kind *kind = NULL;
        const char *place = "untouched";
        mu_error error = {.message = ""};
        int rv = mu__store_find(registry, rows[i].text, &error, &kind, &place);

        assert_int_equal(rv, rows[i].kind == NULL ? -MU_EINVALID : 0);
        assert_ptr_equal(kind, rows[i].kind);
        assert_string_equal(place, rows[i].kind == NULL ? "untouched" : rows[i].place);
        assert_non_null(strstr(error.message, rows[i].words));
    }
}

/* ---- The one in memory, by the contract ---- */

static void *memory_place_open(struct sim *sim, uint64_t seed)
{
    (void)seed;
    return sim;
}

static void memory_place_close(void *place)
{
    assert_non_null(place);
}

static void memory_begin(void *place, struct sim_node *node, struct mu__kernel *kernel,
                         struct mu__store_config *config)
{
    (void)place;
    (void)kernel;
    assert_string_equal(config->location, "");
    assert_string_equal(config->task, sim_node_name(node));
}

static const struct contract_store memory_fixture = {
    .kind = &mu__store_memory,
    .open = memory_place_open,
    .close = memory_place_close,
    .begin = memory_begin,
    .held_ms = CONTRACT_TICK_MS,
    .safe_ms = 0,
};

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_find)};
    int failed = cmocka_run_group_tests(tests, NULL, NULL);

    return failed + contract_store_run("memory", &memory_fixture);
}
