/* Runs of a job as data: their text in a store, their history, and which one a host
 * goes on with. */
#include "actors/coordination/store/store_run.h"
#include "tests/support/test.h"

static struct mu__store_run make(uint64_t number, const char *name,
                                 enum mu__store_run_state state)
{
    struct mu__store_run run = {
        .number = number, .state = state, .started_ms = 5 * number};

    (void)snprintf(run.name, sizeof run.name, "%s", name);
    return run;
}

TEST(test_text_and_back)
{
    struct mu__store_run run = make(7, "night-3.b_1", MU__RUN_FAILED);
    struct mu__store_run back = {.number = 7};
    char text[MU__RUN_TEXT_MAX];
    size_t size;

    run.ended_ms = UINT64_MAX;
    run.quiet_revision = 12;
    run.code = -MU_EABORTED;
    (void)snprintf(run.message, sizeof run.message, "a function  has failed");
    size = mu__store_run_write(&run, text);
    assert_int_equal(mu__store_run_read((struct mu__view){text, (uint32_t)size}, &back),
                     0);
    assert_string_equal(back.name, run.name);
    assert_string_equal(back.message, run.message);
    assert_int_equal(back.state, run.state);
    assert_int_equal(back.started_ms, run.started_ms);
    assert_true(back.ended_ms == run.ended_ms);
    assert_int_equal(back.quiet_revision, 12);
    assert_int_equal(back.code, -MU_EABORTED);
}

TEST(test_other_text)
{
    static const char *const texts[] = {
        "",
        "running",
        "running 1 2 3 0",
        "walking 1 2 3 0 a ",
        "running 1 2 3 300 a ",
        "running x 2 3 0 a ",
        "running 1 2 3 -4 a ",
        "running 1 2 3 0 a/b ",
    };
    struct mu__store_run run;

    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        assert_int_equal(mu__store_run_read(mu__view_str(texts[i]), &run), -MU_EINVALID);
}

TEST(test_names)
{
    static const char too_long[] = "0123456789012345678901234567890123456789"
                                   "012345678901234567890123";
    static const char *const wrong[] = {"", "a b", "a/b", "\xc3\xa4", too_long};
    mu_error error;

    assert_int_equal(mu__store_run_check_name("run-7", &error), 0);
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        assert_int_equal(mu__store_run_check_name(wrong[i], &error), -MU_EINVALID);
        assert_non_null(strstr(error.message, "expected 1 to 63 letters"));
    }
}

/* Read in any order, the last ones stay, and the last of all is the present one. */
TEST(test_history)
{
    struct mu__store_runs runs = {.count = 0};
    char name[16];

    for (uint64_t i = 0; i < 100; i++) {
        uint64_t number = (i * 37) % 100 + 1;
        struct mu__store_run run;

        (void)snprintf(name, sizeof name, "r%d", (int)number);
        run = make(number, name, MU__RUN_ENDED);
        mu__store_runs_add(&runs, &run);
    }
    assert_int_equal(runs.count, MU__RUN_HISTORY_MAX + 1);
    for (unsigned i = 0; i < runs.count; i++)
        assert_int_equal(runs.runs[i].number, 100 - MU__RUN_HISTORY_MAX + i);
    assert_string_equal(mu__store_runs_present(&runs)->name, "r100");
    assert_null(mu__store_runs_find(&runs, "r7"));
    assert_int_equal(mu__store_runs_find(&runs, "r99")->number, 99);
    mu__store_runs_remove(&runs, 99);
    assert_null(mu__store_runs_find(&runs, "r99"));
    assert_string_equal(mu__store_runs_present(&runs)->name, "r100");
}

/* The store has "old" (1, ended) and "now" (2) in the state of the row. */
TEST(test_choosing)
{
    static const struct {
        enum mu__store_run_state present;
        uint64_t own;
        const char *wanted;
        bool failed;
        enum mu__store_run_choice choice;
        const char *words;
    } rows[] = {
        {MU__RUN_RUNNING, 0, "", false, MU__RUN_CONTINUE, ""},
        {MU__RUN_LEFT, 0, "", false, MU__RUN_CONTINUE, ""},
        {MU__RUN_RUNNING, 0, "", true, MU__RUN_BEGIN, ""},
        {MU__RUN_CLOSED, 0, "", false, MU__RUN_BEGIN, ""},
        {MU__RUN_ENDED, 0, "", false, MU__RUN_BEGIN, ""},
        {MU__RUN_FAILED, 0, "", false, MU__RUN_BEGIN, ""},
        {MU__RUN_ABANDONED, 0, "", false, MU__RUN_BEGIN, ""},
        {MU__RUN_RUNNING, 0, "now", false, MU__RUN_CONTINUE, ""},
        {MU__RUN_ENDED, 0, "now", true, MU__RUN_CONTINUE, ""},
        {MU__RUN_RUNNING, 0, "new", false, MU__RUN_BEGIN, ""},
        {MU__RUN_RUNNING, 0, "old", false, MU__RUN_REFUSE, "run \"old\" is over (ended)"},
        {MU__RUN_RUNNING, 2, "", true, MU__RUN_CONTINUE, ""},
        {MU__RUN_ENDED, 2, "", false, MU__RUN_CONTINUE, ""},
        {MU__RUN_RUNNING, 1, "", false, MU__RUN_REFUSE, "belongs to run 1 of the job"},
        {MU__RUN_RUNNING, 1, "old", false, MU__RUN_REFUSE, "start it again"},
        {MU__RUN_ENDED, 9, "", false, MU__RUN_BEGIN, ""}, /* the store was emptied */
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct mu__store_runs runs = {.count = 0};
        struct mu__store_run old = make(1, "old", MU__RUN_ENDED);
        struct mu__store_run now = make(2, "now", rows[i].present);
        mu_error error = {.message = ""};

        mu__store_runs_add(&runs, &old);
        mu__store_runs_add(&runs, &now);
        if (mu__store_runs_choose(&runs, rows[i].own, rows[i].wanted, rows[i].failed,
                                  &error) != rows[i].choice)
            fail_msg("row %zu", i);
        assert_non_null(strstr(error.message, rows[i].words));
    }
}

TEST(test_choosing_in_an_empty_store)
{
    struct mu__store_runs runs = {.count = 0};
    mu_error error;

    assert_int_equal(mu__store_runs_choose(&runs, 0, "", false, &error), MU__RUN_BEGIN);
    assert_int_equal(mu__store_runs_choose(&runs, 4, "a", true, &error), MU__RUN_BEGIN);
}

TEST_PROGRAM()
