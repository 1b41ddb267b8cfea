/* The table of options, and what the environment says about them. */
#include "node/options.h"

#include "actors/worker_types.h"

#include "runtime/base/text.h"
#include "runtime/message/arguments.h"
#include "runtime/uv/spin.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FIELD(field) .name = #field, .offset = offsetof(mu_node_options, field)

enum { DAY_MS = 86400000, SECOND_MS = 1000, EXIT_CODE_MAX = 255 };

const struct mu__option mu__options[MU__OPTIONS_COUNT] = {
    [MU__OPTION_CLUSTER_NAME] = {
        FIELD(cluster_name), .variable = "MUSTER_CLUSTER_NAME", .kind = MU__OPTION_TEXT,
        .initial_words = "muster",
    },
    [MU__OPTION_RESOLVE_MS] = {
        FIELD(resolve_ms), .variable = "MUSTER_RESOLVE_MS", .initial = 300000,
        .high = DAY_MS,
    },
    [MU__OPTION_THREADS] = {
        FIELD(threads), .variable = "MUSTER_THREADS", .initial = 1, .low = 1,
        .high = 1024,
    },
    [MU__OPTION_WINDOW] = {
        FIELD(window), .variable = "MUSTER_WINDOW", .high = 65536,
    },
    [MU__OPTION_SPIN_US] = {
        FIELD(spin_us), .variable = "MUSTER_SPIN_US", .initial = MU_SPIN_BY_CORES,
        .initial_words = "100 with two cores or more", .high = MU__SPIN_US_MAX,
    },
    [MU__OPTION_QUEUE_MAX] = {
        FIELD(queue_max), .variable = "MUSTER_QUEUE_MAX", .initial = 262144, .low = 1,
        .high = 1U << 28,
    },
    [MU__OPTION_QUEUE_BYTES_MAX] = {
        FIELD(queue_bytes_max), .variable = "MUSTER_QUEUE_BYTES_MAX",
        .kind = MU__OPTION_U64, .initial = UINT64_C(1) << 30, .low = 1,
        .high = UINT64_C(1) << 50,
    },
    [MU__OPTION_ATTEMPTS_MAX] = {
        FIELD(attempts_max), .variable = "MUSTER_ATTEMPTS_MAX", .initial = 10, .low = 1,
        .high = 65534,
    },
    [MU__OPTION_RETRIES_MAX] = {
        FIELD(retries_max), .variable = "MUSTER_RETRIES_MAX", .initial = 1000, .low = 1,
        .high = 1U << 30,
    },
    [MU__OPTION_RECOVERY_MS] = {
        FIELD(recovery_ms), .variable = "MUSTER_RECOVERY_MS", .initial = 3600000,
        .high = 2000000000,
    },
    [MU__OPTION_START_DELAY_MS] = {
        FIELD(start_delay_ms), .variable = "MUSTER_START_DELAY_MS",
        .tensorflow = "TF_COORDINATOR_SCHEDULE_START_DELAY", .high = DAY_MS,
        .unit = SECOND_MS,
    },
    [MU__OPTION_START_DELAY_MAX_MS] = {
        FIELD(start_delay_max_ms), .variable = "MUSTER_START_DELAY_MAX_MS",
        .tensorflow = "TF_COORDINATOR_SCHEDULE_START_DELAY_MAX", .high = DAY_MS,
        .unit = SECOND_MS,
    },
    [MU__OPTION_SERVER_FAILURES] = {
        FIELD(server_failures), .variable = "MUSTER_SERVER_FAILURES",
        .tensorflow = "TF_COORDINATOR_IGNORE_TRANSIENT_PS_FAILURES", .initial = 3,
        .high = 65535, .meaning = MU__OPTION_OFF_BELOW_0, .unit = 1,
    },
    [MU__OPTION_SERVER_FAILURES_MS] = {
        FIELD(server_failures_ms), .variable = "MUSTER_SERVER_FAILURES_MS",
        .initial = 600000, .low = 1, .high = DAY_MS,
    },
    [MU__OPTION_SERVER_LOST_MS] = {
        FIELD(server_lost_ms), .variable = "MUSTER_SERVER_LOST_MS", .initial = 10000,
        .high = DAY_MS,
    },
    [MU__OPTION_EFFECT_WAIT_MS] = {
        FIELD(effect_wait_ms), .variable = "MUSTER_EFFECT_WAIT_MS", .initial = 60000,
        .low = 1, .high = DAY_MS,
    },
    [MU__OPTION_TIMEOUTS] = {
        FIELD(timeouts), .variable = "MUSTER_TIMEOUTS",
        .tensorflow = "TF_COORDINATOR_IGNORE_TRANSIENT_TIMEOUTS", .initial = UINT_MAX,
        .initial_words = "a tenth of the workers", .high = 1U << 28,
        .meaning = MU__OPTION_OFF_BELOW_0, .unit = 1,
    },
    [MU__OPTION_UNKNOWN_IS_WORKER] = {
        FIELD(unknown_is_worker), .variable = "MUSTER_UNKNOWN_IS_WORKER",
        .tensorflow = "TF_PS_HANDLE_UNKNOWN_ERROR", .high = 1,
        .meaning = MU__OPTION_TRUTH, .unit = 1,
    },
    [MU__OPTION_BACKUP_PERCENT] = {
        FIELD(backup_percent), .variable = "MUSTER_BACKUP_PERCENT", .high = 1000000,
    },
    [MU__OPTION_WATCHDOG_MS] = {
        FIELD(watchdog_ms), .variable = "MUSTER_WATCHDOG_MS",
        .tensorflow = "TF_CLUSTER_COORDINATOR_WATCH_DOG_TIMEOUT", .initial = 60000,
        .high = DAY_MS, .meaning = MU__OPTION_OFF_BELOW_0, .unit = SECOND_MS,
    },
    [MU__OPTION_MEASURE] = {
        FIELD(measure), .variable = "MUSTER_MEASURE", .high = 1,
    },
    [MU__OPTION_JOURNAL] = {
        FIELD(journal), .variable = "MUSTER_JOURNAL", .kind = MU__OPTION_TEXT,
    },
    [MU__OPTION_JOURNAL_SYNC] = {
        FIELD(journal_sync), .variable = "MUSTER_JOURNAL_SYNC", .high = 1,
    },
    [MU__OPTION_JOURNAL_KEEP] = {
        FIELD(journal_keep), .variable = "MUSTER_JOURNAL_KEEP", .high = UINT_MAX,
    },
    [MU__OPTION_JOURNAL_KEEP_MS] = {
        FIELD(journal_keep_ms), .variable = "MUSTER_JOURNAL_KEEP_MS",
        .high = 30U * DAY_MS,
    },
    [MU__OPTION_ORPHAN_MS] = {
        FIELD(orphan_ms), .variable = "MUSTER_ORPHAN_MS", .initial = 600000,
        .high = DAY_MS,
    },
    [MU__OPTION_HEARTBEAT_MS] = {
        FIELD(heartbeat_ms), .variable = "MUSTER_HEARTBEAT_MS", .initial = 1000,
        .low = 10, .high = 3600000,
    },
    [MU__OPTION_SILENCE_MS] = {
        FIELD(silence_ms), .variable = "MUSTER_SILENCE_MS", .initial = 5000, .low = 20,
        .high = 7200000,
    },
    [MU__OPTION_SERVICE_HOSTS] = {
        FIELD(service_hosts), .variable = "MUSTER_SERVICE_HOSTS",
        .kind = MU__OPTION_TEXT,
    },
    [MU__OPTION_STORE] = {
        FIELD(store), .variable = "MUSTER_STORE", .kind = MU__OPTION_TEXT,
        .initial_words = "memory",
    },
    [MU__OPTION_STORE_SYNC] = {
        FIELD(store_sync), .variable = "MUSTER_STORE_SYNC", .initial = 1, .high = 1,
    },
    [MU__OPTION_RUN] = {
        FIELD(run), .variable = "MUSTER_RUN", .kind = MU__OPTION_TEXT,
    },
    [MU__OPTION_COORDINATED_JOBS] = {
        FIELD(coordinated_jobs), .variable = "MUSTER_COORDINATED_JOBS",
        .kind = MU__OPTION_TEXT, .initial_words = "chief,worker,ps",
    },
    [MU__OPTION_RECOVERABLE] = {
        FIELD(recoverable), .variable = "MUSTER_RECOVERABLE", .kind = MU__OPTION_TEXT,
        .initial_words = "all",
    },
    [MU__OPTION_SUSPECT_MS] = {
        FIELD(suspect_ms), .variable = "MUSTER_SUSPECT_MS", .initial = 5000, .low = 10,
        .high = 3600000,
    },
    [MU__OPTION_DEAD_MS] = {
        FIELD(dead_ms), .variable = "MUSTER_DEAD_MS", .initial = 10000, .low = 20,
        .high = DAY_MS,
    },
    [MU__OPTION_RECONNECT_MS] = {
        FIELD(reconnect_ms), .variable = "MUSTER_RECONNECT_MS", .initial = 1000,
        .high = DAY_MS,
    },
    [MU__OPTION_STUCK_MS] = {
        FIELD(stuck_ms), .variable = "MUSTER_STUCK_MS", .high = DAY_MS,
    },
    [MU__OPTION_LEAVE_MS] = {
        FIELD(leave_ms), .variable = "MUSTER_LEAVE_MS", .high = DAY_MS,
    },
    [MU__OPTION_LEASE_MS] = {
        FIELD(lease_ms), .variable = "MUSTER_LEASE_MS", .initial = 5000, .low = 100,
        .high = 3600000,
    },
    [MU__OPTION_PLUGIN_TIMEOUT_MS] = {
        FIELD(plugin_timeout_ms), .variable = "MUSTER_PLUGIN_TIMEOUT_MS",
        .initial = 300000, .high = DAY_MS,
    },
    [MU__OPTION_WORKER_TYPES] = {
        FIELD(worker_types), .variable = "MUSTER_WORKER_TYPES",
        .kind = MU__OPTION_TEXT, .initial_words = MU__WORKER_TYPES,
    },
    [MU__OPTION_KEY_FILE] = {
        FIELD(key_file), .variable = "MUSTER_KEY_FILE", .kind = MU__OPTION_TEXT,
    },
    [MU__OPTION_TLS_CA] = {
        FIELD(tls_ca), .variable = "MUSTER_TLS_CA", .kind = MU__OPTION_TEXT,
    },
    [MU__OPTION_TLS_CERTIFICATE] = {
        FIELD(tls_certificate), .variable = "MUSTER_TLS_CERTIFICATE",
        .kind = MU__OPTION_TEXT,
    },
    [MU__OPTION_TLS_PRIVATE_KEY] = {
        FIELD(tls_private_key), .variable = "MUSTER_TLS_PRIVATE_KEY",
        .kind = MU__OPTION_TEXT,
    },
    [MU__OPTION_TLS_ANY_TASK] = {
        FIELD(tls_any_task), .variable = "MUSTER_TLS_ANY_TASK", .high = 1,
    },
    [MU__OPTION_INSECURE] = {
        FIELD(insecure), .variable = "MUSTER_INSECURE", .high = 1,
    },
    [MU__OPTION_WIRE] = {
        FIELD(wire), .variable = "MUSTER_WIRE", .kind = MU__OPTION_TEXT,
    },
    [MU__OPTION_RESTART_EXIT_CODE] = {
        .name = "restart_exit_code", .variable = "MUSTER_RESTART_EXIT_CODE",
        .tensorflow = "TF_CLIENT_NON_FATAL_RESTART_EXIT_CODE",
        .kind = MU__OPTION_NO_FIELD, .initial_words = "", .high = EXIT_CODE_MAX,
        .unit = 1,
    },
};

/* ---- fields ---- */

static void *field_of(const struct mu__option *option, mu_node_options *options)
{
    return (char *)options + option->offset;
}

static uint64_t number_of(const struct mu__option *option, const mu_node_options *options)
{
    const char *field = (const char *)options + option->offset;
    unsigned small;
    uint64_t large;

    if (option->kind == MU__OPTION_U64) {
        memcpy(&large, field, sizeof large);
        return large;
    }
    memcpy(&small, field, sizeof small);
    return small;
}

void mu__option_store(const struct mu__option *option,
                      const struct mu__option_value *value, mu_node_options *options)
{
    unsigned small = (unsigned)value->number;

    switch (option->kind) {
    case MU__OPTION_UNSIGNED:
        memcpy(field_of(option, options), &small, sizeof small);
        break;
    case MU__OPTION_U64:
        memcpy(field_of(option, options), &value->number, sizeof value->number);
        break;
    case MU__OPTION_TEXT:
        memcpy(field_of(option, options), &value->text, sizeof value->text);
        break;
    case MU__OPTION_NO_FIELD:
        break;
    }
}

void mu_node_options_init_sized(mu_node_options *options, size_t size)
{
    mu_node_options defaults = {.log_level = MU_LOG_INFO};

    for (size_t i = 0; i < MU__OPTIONS_COUNT; i++) {
        const struct mu__option_value initial = {
            .text = mu__options[i].initial_words,
            .number = mu__options[i].initial,
        };

        mu__option_store(&mu__options[i], &initial, &defaults);
    }
    mu__options_init(options, size, &defaults, sizeof defaults);
}

void mu__options_name_cluster(mu_node_options *options, const char *name)
{
    const char *initial = mu__options[MU__OPTION_CLUSTER_NAME].initial_words;

    if (name[0] != '\0' && options->cluster_name != NULL &&
        strcmp(options->cluster_name, initial) == 0)
        options->cluster_name = name;
}

int mu__options_check(const mu_node_options *options, mu_error *ret_error)
{
    for (size_t i = 0; i < MU__OPTIONS_COUNT; i++) {
        const struct mu__option *option = &mu__options[i];
        uint64_t number;

        if (option->kind == MU__OPTION_TEXT || option->kind == MU__OPTION_NO_FIELD)
            continue;
        number = number_of(option, options);
        if (number != option->initial && (number < option->low || number > option->high))
            return mu_error_set(ret_error, -MU_EINVALID,
                                "option %s is %" PRIu64 ", expected a number from "
                                "%" PRIu64 " to %" PRIu64,
                                option->name, number, option->low, option->high);
    }
    return 0;
}

/* ---- texts ---- */

/* Digits, and a sign where one is allowed. False: no whole number, or far too large. */
static bool read_whole(const char *text, bool may_be_negative, int64_t *ret_number)
{
    const char *digits = text + (may_be_negative && text[0] == '-');
    long long number;
    char *end;

    if (digits[0] < '0' || digits[0] > '9')
        return false;
    errno = 0;
    number = strtoll(text, &end, 10);
    if (*end != '\0' || errno != 0)
        return false;
    *ret_number = number;
    return true;
}

static int refuse(const char *origin, const char *text, const char *expected,
                  mu_error *error)
{
    char got[MU__QUOTE_BYTES];

    mu__quote(got, sizeof got, text, strlen(text));
    return mu_error_set(error, -MU_EINVALID, "%s: expected %s, got %s", origin, expected,
                        got);
}

int mu__option_read(const struct mu__option *option, const char *origin, const char *text,
                    mu_error *ret_error, struct mu__option_value *ret_value)
{
    char expected[96];
    int64_t number = 0;

    if (option->kind == MU__OPTION_TEXT ||
        (read_whole(text, false, &number) && (uint64_t)number >= option->low &&
         (uint64_t)number <= option->high)) {
        *ret_value = (struct mu__option_value){origin, text, (uint64_t)number};
        return 0;
    }
    (void)snprintf(expected, sizeof expected,
                   "a whole number of %" PRIu64 " to %" PRIu64, option->low,
                   option->high);
    return refuse(origin, text, expected, ret_error);
}

/* As mu__option_read, with TensorFlow's meaning and unit. */
static int read_tensorflow(const struct mu__option *option, const char *text,
                           mu_error *error, struct mu__option_value *ret_value)
{
    const int64_t high = (int64_t)option->high / option->unit;
    char expected[96];
    int64_t number = 0;
    bool is_whole = read_whole(text, option->meaning != MU__OPTION_SAME, &number);

    if (option->meaning == MU__OPTION_TRUTH)
        number = number > 0;
    if (number < 0)
        number = 0;
    if (is_whole && number <= high) {
        *ret_value = (struct mu__option_value){option->tensorflow, text,
                                               (uint64_t)number * option->unit};
        return 0;
    }
    if (option->meaning == MU__OPTION_TRUTH)
        (void)snprintf(expected, sizeof expected, "a whole number");
    else
        (void)snprintf(expected, sizeof expected,
                       "a whole number of %s0 to %" PRId64 "%s",
                       option->unit == SECOND_MS ? "seconds, " : "", high,
                       option->meaning == MU__OPTION_SAME ? "" : ", or below 0");
    return refuse(option->tensorflow, text, expected, error);
}

static const char *variable_text(const char *variable)
{
    const char *text = variable == NULL ? NULL : getenv(variable);

    return text == NULL || text[0] == '\0' ? NULL : text;
}

int mu__option_environment(const struct mu__option *option, mu_error *ret_error,
                           struct mu__option_value *ret_value)
{
    const char *text = variable_text(option->variable);

    if (text != NULL)
        return mu__option_read(option, option->variable, text, ret_error, ret_value);
    text = variable_text(option->tensorflow);
    if (text != NULL)
        return read_tensorflow(option, text, ret_error, ret_value);
    *ret_value = (struct mu__option_value){0};
    return 0;
}

int mu_node_options_from_environment(mu_node_options *options, mu_error *ret_error)
{
    MU__REQUIRE(ret_error, options);

    mu_node_options changed;
    int rv = MU__OPTIONS_READ(mu_node_options, options, ret_error, &changed);

    for (size_t i = 0; rv == 0 && i < MU__OPTIONS_COUNT; i++) {
        struct mu__option_value value;

        rv = mu__option_environment(&mu__options[i], ret_error, &value);
        if (rv == 0 && value.text != NULL)
            mu__option_store(&mu__options[i], &value, &changed);
    }
    if (rv == 0)
        mu__options_init(options, options->size, &changed, sizeof changed);
    return rv;
}

int mu_restart_exit_code(const mu_error *error)
{
    struct mu__option_value value;

    if (error == NULL || error->code != -MU_EUNAVAILABLE ||
        error->kind != MU_ERROR_SERVER)
        return -1;
    if (mu__option_environment(&mu__options[MU__OPTION_RESTART_EXIT_CODE], NULL,
                               &value) != 0 ||
        value.text == NULL)
        return -1;
    return (int)value.number;
}
