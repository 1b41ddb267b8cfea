/* Settings by rows: by hand, by variable, by default. */
#include "tests/support/script.h"
#include "tests/support/test.h"

enum { PORT, NAME, DEEP, PLAIN };

static const struct mu__setting_spec specs[] = {
    [PORT] = {.name = "port",
              .form = MU__SETTING_NUMBER,
              .variable = "X_PORT",
              .initial = "8888",
              .low = 1,
              .high = 65535,
              .help = "the port",
              .by_default = "the default of port"},
    [NAME] = {.name = "name", .variable = "X_NAME", .help = "a name"},
    [DEEP] = {.name = "deep",
              .form = MU__SETTING_SWITCH,
              .variable = "X_DEEP",
              .initial = "0",
              .help = "whether"},
    [PLAIN] = {.name = "plain",
               .form = MU__SETTING_NUMBER,
               .low = -5,
               .high = 5,
               .help = "neither variable nor default"},
    {.name = NULL},
};

static struct script script;
static struct mu__settings settings;
static struct mu__pass pass = {.settings = &settings};
static mu_error error;

static void begin(const struct script_row *rows)
{
    script_init(&script, rows);
    assert_int_equal(mu__requests_new(&script.sources.base, NULL, &pass.requests), 0);
    assert_int_equal(mu__settings_init(&settings, "x", specs), 0);
}

static void end(void)
{
    mu__settings_done(&settings);
    mu__requests_free(pass.requests);
}

TEST(test_order)
{
    static const struct script_row rows[] = {SCRIPT_VARIABLE("X_PORT", "7"),
                                             SCRIPT_VARIABLE("X_NAME", "of the variable"),
                                             SCRIPT_END};
    long number = 0;

    begin(NULL);
    assert_int_equal(mu__setting_number(&pass, PORT, &error, &number), 0);
    assert_int_equal(number, 8888);
    assert_false(mu__setting_given(&pass, PORT));
    assert_string_equal(mu__setting_origin(&pass, PORT), "the default of port");
    assert_null(mu__setting(&pass, NAME));
    number = 42;
    assert_int_equal(mu__setting_number(&pass, PLAIN, &error, &number), 0);
    assert_int_equal(number, 42);
    end();

    begin(rows);
    assert_int_equal(mu__setting_number(&pass, PORT, &error, &number), 0);
    assert_int_equal(number, 7);
    assert_true(mu__setting_given(&pass, PORT));
    assert_string_equal(mu__setting_origin(&pass, PORT), "X_PORT");
    assert_int_equal(mu__settings_set(&settings, "name", "by hand", &error), 0);
    assert_string_equal(mu__setting(&pass, NAME), "by hand");
    assert_string_equal(mu__setting_origin(&pass, NAME), "setting name of resolver x");
    assert_int_equal(mu__settings_set(&settings, "name", NULL, &error), 0);
    assert_string_equal(mu__setting(&pass, NAME), "of the variable");
    end();
}

/* Empty by hand is empty, and not absent. */
TEST(test_empty_by_hand)
{
    static const struct script_row rows[] = {SCRIPT_VARIABLE("X_NAME", "v"), SCRIPT_END};

    begin(rows);
    assert_int_equal(mu__settings_set(&settings, "name", "", &error), 0);
    assert_string_equal(mu__setting(&pass, NAME), "");
    end();
}

TEST(test_values)
{
    static const struct {
        const char *name;
        const char *value;
        int rv;
        const char *words;
    } rows[] = {
        {"port", "1", 0, NULL},
        {"port", "65535", 0, NULL},
        {"port", "0", -MU_EINVALID,
         "setting port of resolver x: expected a whole number of 1 to 65535, got \"0\""},
        {"port", "65536", -MU_EINVALID, "got \"65536\""},
        {"port", "", -MU_EINVALID, "got \"\""},
        {"port", " 1", -MU_EINVALID, "got \" 1\""},
        {"port", "+1", -MU_EINVALID, "got \"+1\""},
        {"port", "1x", -MU_EINVALID, "got \"1x\""},
        {"port", "1-", -MU_EINVALID, "got \"1-\""},
        {"port", "-", -MU_EINVALID, "got \"-\""},
        {"port", "99999999999999999999", -MU_EINVALID, "expected a whole number"},
        {"plain", "-5", 0, NULL},
        {"plain", "-6", -MU_EINVALID, "expected a whole number of -5 to 5"},
        {"deep", "true", 0, NULL},
        {"deep", "false", 0, NULL},
        {"deep", "1", 0, NULL},
        {"deep", "yes", -MU_EINVALID,
         "setting deep of resolver x: expected 0 or 1, got \"yes\""},
        {"prt", "1", -MU_EINVALID,
         "resolver x has no setting \"prt\"; did you mean \"port\"?"},
        {"something", "1", -MU_EINVALID, "resolver x has no setting \"something\""},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        begin(NULL);
        assert_int_equal(mu__settings_set(&settings, rows[i].name, rows[i].value, &error),
                         rows[i].rv);
        if (rows[i].rv != 0 && strstr(error.message, rows[i].words) == NULL)
            fail_msg("\"%s\"", error.message);
        end();
    }
}

TEST(test_bad_variable)
{
    static const struct script_row rows[] = {SCRIPT_VARIABLE("X_PORT", "many"),
                                             SCRIPT_VARIABLE("X_DEEP", "2"), SCRIPT_END};
    long number = 5;

    begin(rows);
    assert_int_equal(mu__setting_number(&pass, PORT, &error, &number), -MU_EINVALID);
    assert_string_equal(error.message,
                        "X_PORT: expected a whole number of 1 to 65535, got \"many\"");
    assert_int_equal(mu__setting_number(&pass, DEEP, &error, &number), -MU_EINVALID);
    assert_int_equal(number, 5);
    end();
}

TEST(test_no_table)
{
    assert_int_equal(mu__settings_init(&settings, "x", NULL), 0);
    assert_int_equal(mu__settings_set(&settings, "port", "1", &error), -MU_EINVALID);
    mu__settings_done(&settings);
}

TEST_PROGRAM()
