/* Options of a node from the environment: names, units, ranges, and who wins. The tests
 * go through tables and leave no variable behind. */
#include "actors/worker_types.h"
#include "node/options.h"
#include "runtime/uv/spin.h"
#include "tests/support/test.h"

#include <limits.h>

enum { PAGE_BYTES = 65536 };

static int forget_all(void **state)
{
    (void)state;
    for (size_t i = 0; i < MU__OPTIONS_COUNT; i++) {
        (void)unsetenv(mu__options[i].variable);
        if (mu__option_tensorflow(&mu__options[i]) != NULL)
            (void)unsetenv(mu__option_tensorflow(&mu__options[i]));
    }
    return 0;
}

/* ---- the table ---- */

#define OF_ONE_NODE(field)                                                         \
    {                                                                              \
        offsetof(mu_node_options, field), sizeof(((mu_node_options *)NULL)->field) \
    }

/* All bytes belong to an option of the table, or to one of these; but for four before a
 * pointer, as a field of four bytes leaves them. */
TEST(test_every_field_has_a_row)
{
    static const struct {
        size_t offset;
        size_t size;
    } others[] = {
        OF_ONE_NODE(size),         OF_ONE_NODE(cluster),
        OF_ONE_NODE(task_type),    OF_ONE_NODE(task_index),
        OF_ONE_NODE(bind_address), OF_ONE_NODE(advertise_address),
        OF_ONE_NODE(resolver),     OF_ONE_NODE(loop),
        OF_ONE_NODE(log_level),    OF_ONE_NODE(log),
        OF_ONE_NODE(log_user),
    };
    unsigned char seen[sizeof(mu_node_options)] = {0};
    size_t gap = 0;

    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
        memset(seen + others[i].offset, 1, others[i].size);
    for (size_t i = 0; i < MU__OPTIONS_COUNT; i++)
        if (mu__options[i].kind != MU__OPTION_NO_FIELD)
            memset(seen + mu__options[i].offset, 1,
                   mu__options[i].kind == MU__OPTION_UNSIGNED ? sizeof(unsigned)
                                                              : sizeof(uint64_t));
    for (size_t i = 0; i < sizeof seen; i++) {
        if (seen[i] && gap != 0 && (gap != 4 || i % sizeof(void *) != 0))
            fail_msg("no row for the field before offset %zu", i);
        gap = seen[i] ? 0 : gap + 1;
    }
    assert_int_equal(gap, 0);
}

TEST(test_defaults_are_those_of_the_parts)
{
    assert_int_equal(mu__options[MU__OPTION_SPIN_US].high, MU__SPIN_US_MAX);
    assert_string_equal(mu__options[MU__OPTION_WORKER_TYPES].initial_words,
                        MU__WORKER_TYPES);
}

/* ---- what is taken over ---- */

#define AT(field) offsetof(mu_node_options, field)

static const struct {
    const char *variable;
    const char *text;
    size_t field;
    unsigned expected;
} numbers[] = {
    {"MUSTER_RESOLVE_MS", "0", AT(resolve_ms), 0},
    {"MUSTER_THREADS", "7", AT(threads), 7},
    {"MUSTER_WINDOW", "65536", AT(window), 65536},
    {"MUSTER_QUEUE_MAX", "1", AT(queue_max), 1},
    {"MUSTER_ATTEMPTS_MAX", "12", AT(attempts_max), 12},
    {"MUSTER_RETRIES_MAX", "13", AT(retries_max), 13},
    {"MUSTER_RECOVERY_MS", "0", AT(recovery_ms), 0},
    {"MUSTER_START_DELAY_MS", "15", AT(start_delay_ms), 15},
    {"MUSTER_START_DELAY_MAX_MS", "16", AT(start_delay_max_ms), 16},
    {"MUSTER_SERVER_FAILURES", "0", AT(server_failures), 0},
    {"MUSTER_SERVER_FAILURES_MS", "17", AT(server_failures_ms), 17},
    {"MUSTER_SERVER_LOST_MS", "0", AT(server_lost_ms), 0},
    {"MUSTER_BACKUPS", "1", AT(backups), 1},
    {"MUSTER_EFFECT_WAIT_MS", "2500", AT(effect_wait_ms), 2500},
    {"MUSTER_PLUGIN_TIMEOUT_MS", "0", AT(plugin_timeout_ms), 0},
    {"MUSTER_TIMEOUTS", "18", AT(timeouts), 18},
    {"MUSTER_UNKNOWN_IS_WORKER", "1", AT(unknown_is_worker), 1},
    {"MUSTER_BACKUP_PERCENT", "150", AT(backup_percent), 150},
    {"MUSTER_WATCHDOG_MS", "19", AT(watchdog_ms), 19},
    {"MUSTER_MEASURE", "1", AT(measure), 1},
    {"MUSTER_JOURNAL_SYNC", "1", AT(journal_sync), 1},
    {"MUSTER_JOURNAL_KEEP", "1000", AT(journal_keep), 1000},
    {"MUSTER_JOURNAL_KEEP_MS", "60000", AT(journal_keep_ms), 60000},
    {"MUSTER_ORPHAN_MS", "0", AT(orphan_ms), 0},
    {"MUSTER_HEARTBEAT_MS", "20", AT(heartbeat_ms), 20},
    {"MUSTER_SILENCE_MS", "040", AT(silence_ms), 40},
    {"MUSTER_STORE_SYNC", "0", AT(store_sync), 0},
    {"MUSTER_SUSPECT_MS", "21", AT(suspect_ms), 21},
    {"MUSTER_DEAD_MS", "22", AT(dead_ms), 22},
    {"MUSTER_RECONNECT_MS", "0", AT(reconnect_ms), 0},
    {"MUSTER_STUCK_MS", "23", AT(stuck_ms), 23},
    {"MUSTER_LEAVE_MS", "24", AT(leave_ms), 24},
    {"MUSTER_LEASE_MS", "100", AT(lease_ms), 100},
    {"TF_COORDINATOR_SCHEDULE_START_DELAY", "3", AT(start_delay_ms), 3000},
    {"TF_COORDINATOR_SCHEDULE_START_DELAY_MAX", "86400", AT(start_delay_max_ms),
     86400000},
    {"TF_COORDINATOR_IGNORE_TRANSIENT_PS_FAILURES", "5", AT(server_failures), 5},
    {"TF_COORDINATOR_IGNORE_TRANSIENT_PS_FAILURES", "0", AT(server_failures), 0},
    {"TF_COORDINATOR_IGNORE_TRANSIENT_PS_FAILURES", "-4", AT(server_failures), 0},
    {"TF_COORDINATOR_IGNORE_TRANSIENT_TIMEOUTS", "6", AT(timeouts), 6},
    {"TF_COORDINATOR_IGNORE_TRANSIENT_TIMEOUTS", "-1", AT(timeouts), 0},
    {"TF_CLUSTER_COORDINATOR_WATCH_DOG_TIMEOUT", "30", AT(watchdog_ms), 30000},
    {"TF_CLUSTER_COORDINATOR_WATCH_DOG_TIMEOUT", "-1", AT(watchdog_ms), 0},
    {"TF_PS_HANDLE_UNKNOWN_ERROR", "9", AT(unknown_is_worker), 1},
    {"TF_PS_HANDLE_UNKNOWN_ERROR", "0", AT(unknown_is_worker), 0},
    {"TF_PS_HANDLE_UNKNOWN_ERROR", "-9", AT(unknown_is_worker), 0},
};

TEST_WITH(test_each_sets_its_field_alone, forget_all, NULL)
{
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        mu_node_options options;
        mu_node_options expected;
        mu_error error = {0};

        mu_node_options_init(&options);
        expected = options;
        memcpy((char *)&expected + numbers[i].field, &numbers[i].expected,
               sizeof numbers[i].expected);
        (void)setenv(numbers[i].variable, numbers[i].text, 1);
        if (mu_node_options_from_environment(&options, &error) != 0)
            fail_msg("%s", error.message);
        if (memcmp(&options, &expected, sizeof options) != 0)
            fail_msg("%s=%s", numbers[i].variable, numbers[i].text);
        (void)forget_all(state);
    }
}

/* The resolver's name of the cluster is taken where none was chosen. */
TEST_WITH(test_resolvers_cluster_name, forget_all, NULL)
{
    static const struct {
        const char *chosen; /* NULL: nothing */
        const char *found;
        const char *name;
    } rows[] = {
        {NULL, "", "muster"},
        {NULL, "slurm-6", "slurm-6"},
        {"blue", "slurm-6", "blue"},
        {"blue", "", "blue"},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        mu_node_options options;

        mu_node_options_init(&options);
        if (rows[i].chosen != NULL)
            (void)setenv("MUSTER_CLUSTER_NAME", rows[i].chosen, 1);
        assert_int_equal(mu_node_options_from_environment(&options, NULL), 0);
        mu__options_name_cluster(&options, rows[i].found);
        assert_string_equal(options.cluster_name, rows[i].name);
        (void)forget_all(state);
    }
}

TEST_WITH(test_bytes_and_texts, forget_all, NULL)
{
    mu_node_options options;

    mu_node_options_init(&options);
    (void)setenv("MUSTER_QUEUE_BYTES_MAX", "68719476736", 1);
    (void)setenv("MUSTER_JOURNAL", "/var/lib/chief.journal", 1);
    (void)setenv("MUSTER_CLUSTER_NAME", "blue", 1);
    assert_int_equal(mu_node_options_from_environment(&options, NULL), 0);
    assert_int_equal(options.queue_bytes_max, UINT64_C(68719476736));
    assert_string_equal(options.journal, "/var/lib/chief.journal");
    assert_string_equal(options.cluster_name, "blue");
    assert_null(options.service_hosts);
    assert_string_equal(options.store, "memory");
    assert_string_equal(options.coordinated_jobs, "chief,worker,ps");
    assert_string_equal(options.recoverable, "all");
    (void)setenv("MUSTER_SERVICE_HOSTS", "ps:0-1", 1);
    (void)setenv("MUSTER_STORE", "journal:/var/lib/store", 1);
    (void)setenv("MUSTER_COORDINATED_JOBS", "worker", 1);
    (void)setenv("MUSTER_RECOVERABLE", "worker,ps", 1);
    assert_string_equal(options.worker_types, "worker");
    (void)setenv("MUSTER_WORKER_TYPES", "worker,gpu", 1);
    assert_int_equal(mu_node_options_from_environment(&options, NULL), 0);
    assert_string_equal(options.service_hosts, "ps:0-1");
    assert_string_equal(options.store, "journal:/var/lib/store");
    assert_string_equal(options.coordinated_jobs, "worker");
    assert_string_equal(options.worker_types, "worker,gpu");
    assert_string_equal(options.recoverable, "worker,ps");
}

TEST_WITH(test_who_wins, forget_all, NULL)
{
    mu_node_options options;

    mu_node_options_init(&options);
    options.server_failures = 77;
    assert_int_equal(mu_node_options_from_environment(&options, NULL), 0);
    assert_int_equal(options.server_failures, 77);
    (void)setenv("TF_COORDINATOR_IGNORE_TRANSIENT_PS_FAILURES", "8", 1);
    (void)setenv("MUSTER_SERVER_FAILURES", "", 1);
    assert_int_equal(mu_node_options_from_environment(&options, NULL), 0);
    assert_int_equal(options.server_failures, 8);
    (void)setenv("MUSTER_SERVER_FAILURES", "9", 1);
    assert_int_equal(mu_node_options_from_environment(&options, NULL), 0);
    assert_int_equal(options.server_failures, 9);
    /* What loses is not even looked at. */
    (void)setenv("TF_COORDINATOR_IGNORE_TRANSIENT_PS_FAILURES", "some", 1);
    assert_int_equal(mu_node_options_from_environment(&options, NULL), 0);
}

/* ---- what is refused ---- */

static const struct {
    const char *variable;
    const char *text;
    const char *expected;
} refused[] = {
    {"MUSTER_QUEUE_MAX", "many", "a whole number of 1 to 268435456"},
    {"MUSTER_QUEUE_MAX", "0", "a whole number of 1 to 268435456"},
    {"MUSTER_QUEUE_MAX", "12x", "a whole number of 1 to 268435456"},
    {"MUSTER_QUEUE_MAX", " 12", "a whole number of 1 to 268435456"},
    {"MUSTER_QUEUE_MAX", "1.5", "a whole number of 1 to 268435456"},
    {"MUSTER_SERVER_LOST_MS", "soon", "a whole number of 0 to 86400000"},
    {"MUSTER_EFFECT_WAIT_MS", "0", "a whole number of 1 to 86400000"},
    {"MUSTER_TIMEOUTS", "-1", "a whole number of 0 to 268435456"},
    {"MUSTER_TIMEOUTS", "4294967295", "a whole number of 0 to 268435456"},
    {"MUSTER_QUEUE_BYTES_MAX", "99999999999999999999",
     "a whole number of 1 to 1125899906842624"},
    {"MUSTER_MEASURE", "yes", "a whole number of 0 to 1"},
    {"MUSTER_STORE_SYNC", "2", "a whole number of 0 to 1"},
    {"MUSTER_DEAD_MS", "19", "a whole number of 20 to 86400000"},
    {"MUSTER_LEASE_MS", "soon", "a whole number of 100 to 3600000"},
    {"MUSTER_RESTART_EXIT_CODE", "256", "a whole number of 0 to 255"},
    {"TF_CLIENT_NON_FATAL_RESTART_EXIT_CODE", "-1", "a whole number of 0 to 255"},
    {"TF_COORDINATOR_SCHEDULE_START_DELAY", "-1",
     "a whole number of seconds, 0 to 86400"},
    {"TF_COORDINATOR_SCHEDULE_START_DELAY", "9223372036854775807",
     "a whole number of seconds, 0 to 86400"},
    {"TF_COORDINATOR_SCHEDULE_START_DELAY_MAX", "1.5",
     "a whole number of seconds, 0 to 86400"},
    {"TF_CLUSTER_COORDINATOR_WATCH_DOG_TIMEOUT", "--1",
     "a whole number of seconds, 0 to 86400, or below 0"},
    {"TF_COORDINATOR_IGNORE_TRANSIENT_PS_FAILURES", "-",
     "a whole number of 0 to 65535, or below 0"},
    {"TF_PS_HANDLE_UNKNOWN_ERROR", "true", "a whole number"},
};

TEST_WITH(test_bad_values_change_nothing, forget_all, NULL)
{
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
        mu_node_options options;
        mu_node_options before;
        char words[256];
        mu_error error = {0};

        mu_node_options_init(&options);
        (void)setenv("MUSTER_THREADS", "9", 1);
        before = options;
        (void)setenv(refused[i].variable, refused[i].text, 1);
        (void)snprintf(words, sizeof words, "%s: expected %s, got \"%s\"",
                       refused[i].variable, refused[i].expected, refused[i].text);
        assert_int_equal(mu_node_options_from_environment(&options, &error),
                         -MU_EINVALID);
        assert_int_equal(error.code, -MU_EINVALID);
        assert_string_equal(error.message, words);
        assert_memory_equal(&options, &before, sizeof options);
        (void)forget_all(state);
    }
}

/* ---- the program's own options ---- */

TEST_WITH(test_ranges_are_checked, forget_all, NULL)
{
    mu_node_options options;
    mu_error error = {0};

    mu_node_options_init(&options);
    assert_int_equal(mu__options_check(&options, &error), 0);
    assert_int_equal(options.timeouts, UINT_MAX);
    options.server_failures = 65536;
    assert_int_equal(mu__options_check(&options, &error), -MU_EINVALID);
    assert_string_equal(error.message,
                        "option server_failures is 65536, expected a number from 0 to "
                        "65535");
    mu_node_options_init(&options);
    options.queue_bytes_max = 0;
    assert_int_equal(mu__options_check(&options, &error), -MU_EINVALID);
}

TEST_WITH(test_exit_code, forget_all, NULL)
{
    mu_error error = {.code = -MU_EUNAVAILABLE, .kind = MU_ERROR_SERVER};

    assert_int_equal(mu_restart_exit_code(&error), -1);
    assert_int_equal(mu_restart_exit_code(NULL), -1);
    (void)setenv("TF_CLIENT_NON_FATAL_RESTART_EXIT_CODE", "41", 1);
    assert_int_equal(mu_restart_exit_code(&error), 41);
    (void)setenv("MUSTER_RESTART_EXIT_CODE", "42", 1);
    assert_int_equal(mu_restart_exit_code(&error), 42);
    error.kind = MU_ERROR_WORKER;
    assert_int_equal(mu_restart_exit_code(&error), -1);
    error.kind = MU_ERROR_SERVER;
    error.code = -MU_EDEADLINE;
    assert_int_equal(mu_restart_exit_code(&error), -1);
    error.code = -MU_EUNAVAILABLE;
    (void)setenv("MUSTER_RESTART_EXIT_CODE", "soon", 1);
    assert_int_equal(mu_restart_exit_code(&error), -1);
}

/* ---- the page ---- */

static char *read_page(void)
{
    const char *source = getenv("MUSTER_SOURCE");
    char *text = calloc(1, PAGE_BYTES);
    char path[1024];
    FILE *file;

    (void)snprintf(path, sizeof path, "%s/docs/environment.md",
                   source == NULL ? "." : source);
    file = fopen(path, "r");
    assert_non_null(file);
    assert_non_null(text);
    assert_true(fread(text, 1, PAGE_BYTES - 1, file) > 0);
    (void)fclose(file);
    return text;
}

static void make_row(const struct mu__option *option, char *out, size_t size)
{
    const char *theirs = mu__option_tensorflow(option);
    char initial[64] = "";
    char range[64];

    if (option->initial_words != NULL)
        (void)snprintf(initial, sizeof initial, "%s", option->initial_words);
    else if (option->kind != MU__OPTION_TEXT)
        (void)snprintf(initial, sizeof initial, "%llu",
                       (unsigned long long)option->initial);
    (void)snprintf(range, sizeof range, "%llu to %llu", (unsigned long long)option->low,
                   (unsigned long long)option->high);
    if (option->kind == MU__OPTION_TEXT)
        (void)snprintf(out, size, "| `%s` | | `%s` |", option->variable, option->name);
    else
        (void)snprintf(out, size, "| `%s` | %s%s%s| `%s` | %s%s| %s |\n",
                       option->variable, theirs == NULL ? "" : "`",
                       theirs == NULL ? "" : theirs, theirs == NULL ? "" : "` ",
                       option->name, initial, initial[0] == '\0' ? "" : " ", range);
}

TEST(test_page_has_every_name)
{
    static const char *const not_read[] = {
        "TF_PSS_ENABLE_COORDINATION_SERVICE",
        "GRPC_FAIL_FAST",
        "TF_PS_DISABLE_ASYNC_EXECUTOR_GLOBALLY",
        "TF_ENABLE_EAGER_CLIENT_STREAMING_ENQUEUE",
        "TF_PSS_VERBOSE_VARIABLE_PLACEMENT",
    };
    char *page = read_page();

    for (size_t i = 0; i < MU__OPTIONS_COUNT; i++) {
        char row[512];

        make_row(&mu__options[i], row, sizeof row);
        if (strstr(page, row) == NULL)
            fail_msg("docs/environment.md lacks the row\n%s", row);
    }
    for (size_t i = 0; i < sizeof not_read / sizeof not_read[0]; i++)
        if (strstr(page, not_read[i]) == NULL)
            fail_msg("docs/environment.md lacks %s", not_read[i]);
    free(page);
}

TEST_PROGRAM()
