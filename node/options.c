/* The table of options, and what the environment says about them. */
#include "node/options.h"

#include "runtime/base/text.h"
#include "runtime/message/arguments.h"

#include <errno.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SECOND_MS = 1000, EXIT_CODE_MAX = 255 };

#define KIND_OF(field) \
    _Generic(((mu_node_options *)NULL)->field, unsigned: MU__OPTION_UNSIGNED,        \
             uint64_t: MU__OPTION_U64, const char *: MU__OPTION_TEXT)
#define ROW(NAME, field, ...)                                          \
    [MU__OPTION_##NAME] = {.name = #field,                             \
                           .variable = "MUSTER_" #NAME,                \
                           .offset = offsetof(mu_node_options, field), \
                           .kind = KIND_OF(field),                     \
                           __VA_ARGS__},
#define NUMBER(NAME, field, value, least, most) \
    ROW(NAME, field, .initial = value, .low = least, .high = most)
#define COMPUTED(NAME, field, value, words, least, most) \
    ROW(NAME, field, .initial = value, .initial_words = words, .low = least, .high = most)
#define TEXT(NAME, field, value) ROW(NAME, field, .initial_words = value)

const struct mu__option mu__options[MU__OPTIONS_COUNT] = {
    MU_NODE_OPTIONS(NUMBER, COMPUTED, TEXT)[MU__OPTION_RESTART_EXIT_CODE] =
        {
            .name = "restart_exit_code",
            .variable = "MUSTER_RESTART_EXIT_CODE",
            .kind = MU__OPTION_NO_FIELD,
            .initial_words = "",
            .high = EXIT_CODE_MAX,
        },
};

/* How a number under TensorFlow's name is meant. */
enum meaning {
    AS_IT_IS,
    OFF_BELOW_0, /* below 0 is 0 */
    TRUTH        /* above 0 is 1, and the rest 0 */
};

static const struct tensorflow {
    const char *variable; /* NULL: the option has no such name */
    enum meaning meaning;
    unsigned unit; /* of its number in ours */
} tensorflow[MU__OPTIONS_COUNT] = {
    [MU__OPTION_START_DELAY_MS] = {"TF_COORDINATOR_SCHEDULE_START_DELAY", AS_IT_IS,
                                   SECOND_MS},
    [MU__OPTION_START_DELAY_MAX_MS] = {"TF_COORDINATOR_SCHEDULE_START_DELAY_MAX",
                                       AS_IT_IS, SECOND_MS},
    [MU__OPTION_SERVER_FAILURES] = {"TF_COORDINATOR_IGNORE_TRANSIENT_PS_FAILURES",
                                    OFF_BELOW_0, 1},
    [MU__OPTION_TIMEOUTS] = {"TF_COORDINATOR_IGNORE_TRANSIENT_TIMEOUTS", OFF_BELOW_0, 1},
    [MU__OPTION_UNKNOWN_IS_WORKER] = {"TF_PS_HANDLE_UNKNOWN_ERROR", TRUTH, 1},
    [MU__OPTION_WATCHDOG_MS] = {"TF_CLUSTER_COORDINATOR_WATCH_DOG_TIMEOUT", OFF_BELOW_0,
                                SECOND_MS},
    [MU__OPTION_RESTART_EXIT_CODE] = {"TF_CLIENT_NON_FATAL_RESTART_EXIT_CODE", AS_IT_IS,
                                      1},
};

const char *mu__option_tensorflow(const struct mu__option *option)
{
    return tensorflow[option - mu__options].variable;
}

/* ---- fields ---- */

static void *field_of(const struct mu__option *option, mu_node_options *options)
{
    return (char *)options + option->offset;
}

static uint64_t read_option_number(const struct mu__option *option,
                                   const mu_node_options *options)
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
        number = read_option_number(option, options);
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
static bool parse_whole_number(const char *text, bool may_be_negative,
                               int64_t *ret_number)
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

static int refuse_option(const char *origin, const char *text, const char *expected,
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
        (parse_whole_number(text, false, &number) && (uint64_t)number >= option->low &&
         (uint64_t)number <= option->high)) {
        *ret_value = (struct mu__option_value){origin, text, (uint64_t)number};
        return 0;
    }
    (void)snprintf(expected, sizeof expected, "a whole number of %" PRIu64 " to %" PRIu64,
                   option->low, option->high);
    return refuse_option(origin, text, expected, ret_error);
}

/* As mu__option_read, with TensorFlow's meaning and unit. */
static int read_tensorflow(const struct mu__option *option, const char *text,
                           mu_error *error, struct mu__option_value *ret_value)
{
    const struct tensorflow *theirs = &tensorflow[option - mu__options];
    const int64_t high = (int64_t)option->high / theirs->unit;
    char expected[96];
    int64_t number = 0;
    bool is_whole = parse_whole_number(text, theirs->meaning != AS_IT_IS, &number);

    if (theirs->meaning == TRUTH)
        number = number > 0;
    if (number < 0)
        number = 0;
    if (is_whole && number <= high) {
        *ret_value = (struct mu__option_value){theirs->variable, text,
                                               (uint64_t)number * theirs->unit};
        return 0;
    }
    if (theirs->meaning == TRUTH)
        (void)snprintf(expected, sizeof expected, "a whole number");
    else
        (void)snprintf(expected, sizeof expected,
                       "a whole number of %s0 to %" PRId64 "%s",
                       theirs->unit == SECOND_MS ? "seconds, " : "", high,
                       theirs->meaning == AS_IT_IS ? "" : ", or below 0");
    return refuse_option(theirs->variable, text, expected, error);
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
    text = variable_text(mu__option_tensorflow(option));
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
