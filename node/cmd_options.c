#include "node/cmd_options.h"

#include "node/cmd.h"
#include "resolver/text.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ORIGIN_BYTES = 64 };

#define NODES (CMD_NODE | CMD_RUN)

const struct cmd_flag_spec cmd_flags[CMD_FLAGS_COUNT] = {
    [CMD_FLAG_CLUSTER] = {
        .name = "cluster", .variable = "MUSTER_CLUSTER", .kind = CMD_TEXT,
        .verbs = CMD_NODE | CMD_STATUS, .word = "SPEC",
        .help = "the cluster as JSON, {\"worker\": [\"host:port\"]}, or the file it is "
                "in (FILE or @FILE); without it TF_CONFIG says it",
    },
    [CMD_FLAG_TASK] = {
        .name = "task", .variable = "MUSTER_TASK", .kind = CMD_TEXT, .verbs = CMD_NODE,
        .word = "TYPE:INDEX",
        .help = "which task this is, \"worker:1\"; without it TF_CONFIG says it",
    },
    [CMD_FLAG_TYPE] = {
        .name = "type", .variable = "MUSTER_TYPE", .kind = CMD_TEXT, .verbs = CMD_NODE,
        .word = "TYPE",
        .help = "the task's type alone: chief, worker, ps, evaluator or client",
    },
    [CMD_FLAG_INDEX] = {
        .name = "index", .variable = "MUSTER_INDEX", .kind = CMD_NUMBER,
        .verbs = CMD_NODE, .word = "N", .initial = "0", .high = 999999,
        .help = "the task's index, beside --type",
    },
    [CMD_FLAG_CLUSTER_NAME] = {
        .name = "cluster-name", .variable = "MUSTER_CLUSTER_NAME", .kind = CMD_TEXT,
        .verbs = NODES | CMD_STATUS, .word = "NAME", .initial = "muster",
        .help = "nodes of a cluster with another name are refused",
    },
    [CMD_FLAG_BIND] = {
        .name = "bind", .variable = "MUSTER_BIND", .kind = CMD_TEXT,
        .verbs = CMD_NODE | CMD_STATUS, .word = "URL",
        .help = "where to listen, \"tcp://0.0.0.0:4000\"; without it the task's own "
                "address",
    },
    [CMD_FLAG_ADVERTISE] = {
        .name = "advertise", .variable = "MUSTER_ADVERTISE", .kind = CMD_TEXT,
        .verbs = CMD_NODE | CMD_STATUS, .word = "URL",
        .help = "where the others reach this task, if that is not its own address",
    },
    [CMD_FLAG_THREADS] = {
        .name = "threads", .variable = "MUSTER_THREADS", .kind = CMD_NUMBER,
        .verbs = NODES, .word = "N", .initial = "1", .low = 1, .high = 1024,
        .help = "functions that a worker runs at the same time",
    },
    [CMD_FLAG_WINDOW] = {
        .name = "window", .variable = "MUSTER_WINDOW", .kind = CMD_NUMBER,
        .verbs = NODES, .word = "N", .initial = "0", .high = 65536,
        .help = "chief: closures given to one worker at a time; 0: twice its threads, at "
                "least 4",
    },
    [CMD_FLAG_QUEUE_MAX] = {
        .name = "queue-max", .variable = "MUSTER_QUEUE_MAX", .kind = CMD_NUMBER,
        .verbs = NODES, .word = "N", .initial = "262144", .low = 1, .high = 1U << 28,
        .help = "closures scheduled and not resolved before scheduling blocks",
    },
    [CMD_FLAG_ATTEMPTS_MAX] = {
        .name = "attempts-max", .variable = "MUSTER_ATTEMPTS_MAX", .kind = CMD_NUMBER,
        .verbs = NODES, .word = "N", .initial = "10", .low = 1, .high = 65534,
        .help = "chief: workers that may die under one closure before it is given up",
    },
    [CMD_FLAG_HEARTBEAT_MS] = {
        .name = "heartbeat-ms", .variable = "MUSTER_HEARTBEAT_MS", .kind = CMD_NUMBER,
        .verbs = NODES, .word = "MS", .initial = "1000", .low = 10, .high = 3600000,
        .help = "how often a silent link says that it lives",
    },
    [CMD_FLAG_SILENCE_MS] = {
        .name = "silence-ms", .variable = "MUSTER_SILENCE_MS", .kind = CMD_NUMBER,
        .verbs = NODES, .word = "MS", .initial = "5000", .low = 20, .high = 7200000,
        .help = "a task not heard for so long is lost; at least twice --heartbeat-ms",
    },
    [CMD_FLAG_PLUGIN] = {
        .name = "plugin", .variable = "MUSTER_PLUGIN", .kind = CMD_LIST, .verbs = NODES,
        .word = "FILE",
        .help = "shared object with functions and programs; may be repeated",
    },
    [CMD_FLAG_SET] = {
        .name = "set", .variable = "MUSTER_SET", .kind = CMD_LIST, .verbs = NODES,
        .word = "KEY=VALUE", .help = "a setting for the plugins; may be repeated",
    },
    [CMD_FLAG_GRACE_MS] = {
        .name = "grace-ms", .variable = "MUSTER_GRACE_MS", .kind = CMD_NUMBER,
        .verbs = NODES, .word = "MS", .initial = "5000", .high = 3600000,
        .help = "how long functions that run may take to end when the task is stopped",
    },
    [CMD_FLAG_WORKERS] = {
        .name = "workers", .variable = "MUSTER_WORKERS", .kind = CMD_NUMBER,
        .verbs = CMD_RUN, .word = "N", .initial = "2", .high = 200,
        .help = "how many workers",
    },
    [CMD_FLAG_PS] = {
        .name = "ps", .variable = "MUSTER_PS", .kind = CMD_NUMBER, .verbs = CMD_RUN,
        .word = "N", .initial = "1", .high = 200, .help = "how many parameter servers",
    },
    [CMD_FLAG_EVALUATOR] = {
        .name = "evaluator", .variable = "MUSTER_EVALUATOR", .kind = CMD_NUMBER,
        .verbs = CMD_RUN, .word = "0|1", .initial = "0", .high = 1,
        .help = "whether there is an evaluator",
    },
    [CMD_FLAG_CHIEF] = {
        .name = "chief", .variable = "MUSTER_RUN_CHIEF", .kind = CMD_NUMBER,
        .verbs = CMD_RUN, .word = "0|1", .initial = "1", .high = 1,
        .help = "whether there is a chief; the cluster ends with it",
    },
    [CMD_FLAG_TRANSPORT] = {
        .name = "transport", .variable = "MUSTER_TRANSPORT", .kind = CMD_CHOICE,
        .verbs = CMD_RUN, .word = "KIND", .initial = "tcp", .choices = "tcp|ipc",
        .help = "free ports of 127.0.0.1, or sockets in a fresh directory",
    },
    [CMD_FLAG_RESTART] = {
        .name = "restart", .variable = "MUSTER_RESTART", .kind = CMD_TEXT,
        .verbs = CMD_RUN, .word = "POLICY", .initial = "never",
        .help = "never, on-failure or always; or for each type, "
                "\"worker=always,ps=never\". The chief is never started again",
    },
    [CMD_FLAG_RESTART_MAX] = {
        .name = "restart-max", .variable = "MUSTER_RESTART_MAX", .kind = CMD_NUMBER,
        .verbs = CMD_RUN, .word = "N", .initial = "10", .high = 1000000,
        .help = "restarts of one task in a row; one that has run for a minute begins "
                "again",
    },
    [CMD_FLAG_STATUS_FILE] = {
        .name = "status-file", .variable = "MUSTER_STATUS_FILE", .kind = CMD_TEXT,
        .verbs = CMD_RUN, .word = "FILE",
        .help = "keep a file of JSON up to date: pid, address, state of each task",
    },
    [CMD_FLAG_COLOR] = {
        .name = "color", .variable = "MUSTER_COLOR", .kind = CMD_CHOICE,
        .verbs = CMD_RUN, .word = "WHEN", .initial = "auto",
        .choices = "auto|always|never",
        .help = "colours for the names of tasks; auto: on a terminal, unless NO_COLOR is "
                "set",
    },
    [CMD_FLAG_ADDRESS] = {
        .name = "address", .variable = "MUSTER_CHIEF", .kind = CMD_TEXT,
        .verbs = CMD_STATUS, .word = "URL",
        .help = "the chief's address, \"tcp://host:port\"; without it --cluster or "
                "TF_CONFIG says it",
    },
    [CMD_FLAG_LIMIT_MS] = {
        .name = "limit-ms", .variable = "MUSTER_LIMIT_MS", .kind = CMD_NUMBER,
        .verbs = CMD_STATUS, .word = "MS", .initial = "5000", .low = 1,
        .high = 3600000, .help = "how long to wait for the chief",
    },
    [CMD_FLAG_LOG_LEVEL] = {
        .name = "log-level", .variable = "MUSTER_LOG_LEVEL", .kind = CMD_CHOICE,
        .verbs = NODES | CMD_STATUS, .word = "LEVEL", .initial = "info",
        .choices = "error|warn|info|debug",
        .help = "the least grave lines to log; `muster status` logs errors alone unless "
                "it is told",
    },
    [CMD_FLAG_LOG_FORMAT] = {
        .name = "log-format", .variable = "MUSTER_LOG_FORMAT", .kind = CMD_CHOICE,
        .verbs = NODES | CMD_STATUS, .word = "FORMAT", .initial = "text",
        .choices = "text|json", .help = "lines for people, or one JSON object a line",
    },
    [CMD_FLAG_LOG_FILE] = {
        .name = "log-file", .variable = "MUSTER_LOG_FILE", .kind = CMD_TEXT,
        .verbs = NODES | CMD_STATUS, .word = "FILE",
        .help = "append the log to a file; without it to standard error",
    },
    [CMD_FLAG_OUTPUT] = {
        .name = "output", .variable = "MUSTER_OUTPUT", .letter = 'o', .kind = CMD_CHOICE,
        .verbs = CMD_STATUS | CMD_VERSION, .word = "FORMAT", .initial = "text",
        .choices = "text|json", .help = "what is printed: text or JSON",
    },
};

/* ---- values ---- */

const char *cmd_text(const struct cmd_options *options, enum cmd_flag flag)
{
    return options->values[flag].text;
}

unsigned cmd_number(const struct cmd_options *options, enum cmd_flag flag)
{
    return options->values[flag].number;
}

const char *cmd_origin(const struct cmd_options *options, enum cmd_flag flag, char *out,
                       size_t size)
{
    bool variable = options->values[flag].source == CMD_FROM_VARIABLE;

    (void)snprintf(out, size, "%s%s", variable ? "" : "--",
                   variable ? cmd_flags[flag].variable : cmd_flags[flag].name);
    return out;
}

static int refuse(const struct cmd_options *options, enum cmd_flag flag,
                  const char *expected, mu_error *error)
{
    char origin[ORIGIN_BYTES];
    char got[MU__QUOTE_BYTES];
    const char *text = options->values[flag].text;

    mu__quote(got, sizeof got, text, strlen(text));
    return mu_error_set(error, -MU_EINVALID, "%s: expected %s, got %s",
                        cmd_origin(options, flag, origin, sizeof origin), expected, got);
}

static int read_number(struct cmd_options *options, enum cmd_flag flag, mu_error *error)
{
    const struct cmd_flag_spec *spec = &cmd_flags[flag];
    struct cmd_value *value = &options->values[flag];
    char expected[80];
    unsigned long number;
    char *end;

    errno = 0;
    number = strtoul(value->text, &end, 10);
    if (value->text[0] >= '0' && value->text[0] <= '9' && *end == '\0' && errno == 0 &&
        number >= spec->low && number <= spec->high) {
        value->number = (unsigned)number;
        return 0;
    }
    (void)snprintf(expected, sizeof expected, "a whole number of %u to %u", spec->low,
                   spec->high);
    return refuse(options, flag, expected, error);
}

static int read_choice(struct cmd_options *options, enum cmd_flag flag, mu_error *error)
{
    struct cmd_value *value = &options->values[flag];
    const char *at = cmd_flags[flag].choices;
    char expected[96];

    for (unsigned i = 0; at != NULL; i++) {
        const char *bar = strchr(at, '|');
        size_t length = bar == NULL ? strlen(at) : (size_t)(bar - at);

        if (strlen(value->text) == length && strncmp(value->text, at, length) == 0) {
            value->number = i;
            return 0;
        }
        at = bar == NULL ? NULL : bar + 1;
    }
    (void)snprintf(expected, sizeof expected, "one of %s", cmd_flags[flag].choices);
    return refuse(options, flag, expected, error);
}

static int add_item(struct cmd_value *value, const char *text, size_t length)
{
    char **items = realloc(value->items, (value->items_count + 1) * sizeof *items);
    char *item;

    if (items == NULL)
        return -MU_ENOMEM;
    value->items = items;
    item = strndup(text, length);
    if (item == NULL)
        return -MU_ENOMEM;
    items[value->items_count++] = item;
    return 0;
}

static int read_list(struct cmd_value *value)
{
    const char *at = value->text;
    int rv = 0;

    while (rv == 0 && at != NULL) {
        size_t length = strcspn(at, ";");

        if (length > 0)
            rv = add_item(value, at, length);
        at = at[length] == ';' ? at + length + 1 : NULL;
    }
    return rv;
}

static int read_value(struct cmd_options *options, enum cmd_flag flag, mu_error *error)
{
    switch (cmd_flags[flag].kind) {
    case CMD_NUMBER:
        return read_number(options, flag, error);
    case CMD_CHOICE:
        return read_choice(options, flag, error);
    default:
        return 0;
    }
}

static void drop_items(struct cmd_value *value)
{
    for (size_t i = 0; i < value->items_count; i++)
        free(value->items[i]);
    free(value->items);
    value->items = NULL;
    value->items_count = 0;
}

/* ---- the environment, then the command line ---- */

static int read_rest(struct cmd_options *options, mu_error *error)
{
    int rv = 0;

    for (int flag = 0; rv == 0 && flag < CMD_FLAGS_COUNT; flag++) {
        struct cmd_value *value = &options->values[flag];
        const char *text;

        if ((cmd_flags[flag].verbs & options->verb) == 0 ||
            value->source == CMD_FROM_LINE)
            continue;
        text = getenv(cmd_flags[flag].variable);
        if (text != NULL && text[0] != '\0')
            *value = (struct cmd_value){.source = CMD_FROM_VARIABLE, .text = text};
        else
            *value = (struct cmd_value){.text = cmd_flags[flag].initial};
        if (value->text != NULL && cmd_flags[flag].kind == CMD_LIST &&
            read_list(value) != 0)
            rv = mu_error_set(error, -MU_ENOMEM, "out of memory");
        else if (value->text != NULL)
            rv = read_value(options, (enum cmd_flag)flag, error);
    }
    return rv;
}

static int unknown_flag(const struct cmd_options *options, const char *name,
                        size_t length, mu_error *error)
{
    const char *words[CMD_FLAGS_COUNT + 2] = {"help"};
    char shown[MU__QUOTE_BYTES];
    char asked[64];
    const char *near;
    size_t count = 1;

    for (int flag = 0; flag < CMD_FLAGS_COUNT; flag++)
        if ((cmd_flags[flag].verbs & options->verb) != 0)
            words[count++] = cmd_flags[flag].name;
    (void)snprintf(asked, sizeof asked, "%.*s", (int)(length < 60 ? length : 60), name);
    near = cmd_nearest(asked, words);
    mu__quote(shown, sizeof shown, name, length);
    return mu_error_set(error, -MU_EINVALID,
                        "no flag %s%s%s%s; `muster %s --help` lists them", shown,
                        near == NULL ? "" : "; did you mean --", near == NULL ? "" : near,
                        near == NULL ? "" : "?", options->verb_name);
}

/* Which flag an argument is, "--name", "--name=value" or "-o"; ret_value is what stands
 * behind its "=", or NULL. */
static int find_flag(const struct cmd_options *options, const char *argument,
                     mu_error *error, int *ret_flag, const char **ret_value)
{
    bool is_long = argument[1] == '-';
    const char *name = argument + (is_long ? 2 : 1);
    size_t length = strcspn(name, "=");

    for (int flag = 0; flag < CMD_FLAGS_COUNT; flag++) {
        const struct cmd_flag_spec *spec = &cmd_flags[flag];

        if ((spec->verbs & options->verb) == 0)
            continue;
        if (is_long ? strlen(spec->name) != length ||
                          strncmp(spec->name, name, length) != 0
                    : spec->letter == 0 || length != 1 || name[0] != spec->letter)
            continue;
        *ret_flag = flag;
        *ret_value = name[length] == '=' ? name + length + 1 : NULL;
        return 0;
    }
    return unknown_flag(options, name, length, error);
}

/* One argument, and maybe its value behind it; ret_used says how many. */
static int read_argument(struct cmd_options *options, char **arguments, mu_error *error,
                         size_t *ret_used)
{
    char shown[MU__QUOTE_BYTES];
    const char *text = NULL;
    struct cmd_value *value;
    int flag = 0;
    int rv;

    if (arguments[0][0] != '-' || arguments[0][1] == '\0') {
        mu__quote(shown, sizeof shown, arguments[0], strlen(arguments[0]));
        return mu_error_set(error, -MU_EINVALID, "%s: expected a flag", shown);
    }
    rv = find_flag(options, arguments[0], error, &flag, &text);
    if (rv != 0)
        return rv;
    *ret_used = text == NULL ? 2 : 1;
    if (text == NULL)
        text = arguments[1];
    if (text == NULL)
        return mu_error_set(error, -MU_EINVALID, "--%s: expected %s behind it",
                            cmd_flags[flag].name, cmd_flags[flag].word);
    value = &options->values[flag];
    value->source = CMD_FROM_LINE;
    value->text = text;
    if (cmd_flags[flag].kind != CMD_LIST)
        return read_value(options, (enum cmd_flag)flag, error);
    return add_item(value, text, strlen(text)) == 0
               ? 0
               : mu_error_set(error, -MU_ENOMEM, "out of memory");
}

static bool asks_help(char **arguments)
{
    for (size_t i = 0; arguments[i] != NULL; i++)
        if (strcmp(arguments[i], "--help") == 0 || strcmp(arguments[i], "-h") == 0)
            return true;
    return false;
}

int cmd_options_parse(unsigned verb, const char *verb_name, char **arguments,
                      mu_error *ret_error, struct cmd_options *ret_options)
{
    size_t used = 0;
    int rv = 0;

    *ret_options = (struct cmd_options){.verb = verb, .verb_name = verb_name};
    if (asks_help(arguments)) {
        ret_options->help = true;
        return 0;
    }
    for (size_t i = 0; rv == 0 && arguments[i] != NULL; i += used)
        rv = read_argument(ret_options, arguments + i, ret_error, &used);
    if (rv == 0)
        rv = read_rest(ret_options, ret_error);
    if (rv != 0)
        cmd_options_done(ret_options);
    return rv;
}

void cmd_options_done(struct cmd_options *options)
{
    for (int flag = 0; flag < CMD_FLAGS_COUNT; flag++)
        drop_items(&options->values[flag]);
}
