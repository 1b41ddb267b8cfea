#include "cli/options/flags.h"

#include "cli/verbs.h"
#include "runtime/base/text.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- values ---- */

const char *cmd_text(const struct cmd_options *options, enum cmd_flag flag)
{
    return options->values[flag].text;
}

unsigned cmd_number(const struct cmd_options *options, enum cmd_flag flag)
{
    return (unsigned)options->values[flag].number;
}

/* Of an option that of its field, with "-" for "_". */
const char *cmd_flag_name(enum cmd_flag flag)
{
    static char names[CMD_FLAGS_COUNT][32];
    const struct mu__option *option = cmd_flags[flag].option;

    if (option == NULL)
        return cmd_flags[flag].name;
    for (size_t i = 0; option->name[i] != '\0' && names[flag][i] == '\0'; i++)
        names[flag][i] = option->name[i] == '_' ? '-' : option->name[i];
    return names[flag];
}

static bool has_ending(const char *text, const char *end)
{
    size_t length = strlen(text);

    return length >= strlen(end) && strcmp(text + length - strlen(end), end) == 0;
}

const char *cmd_flag_word(enum cmd_flag flag)
{
    const struct cmd_flag_spec *spec = &cmd_flags[flag];

    if (spec->word != NULL)
        return spec->word;
    return has_ending(spec->option->name, "_ms")   ? "MS"
           : has_ending(spec->option->name, "_us") ? "US"
           : spec->option->high == 1               ? "0|1"
                                                   : "N";
}

const char *cmd_variable(enum cmd_flag flag)
{
    const struct cmd_flag_spec *spec = &cmd_flags[flag];

    return spec->option == NULL ? spec->variable : spec->option->variable;
}

const char *cmd_initial(enum cmd_flag flag, char *out, size_t size)
{
    const struct cmd_flag_spec *spec = &cmd_flags[flag];

    if (spec->option == NULL)
        return spec->initial == NULL ? "" : spec->initial;
    if (spec->option->initial_words != NULL)
        return spec->option->initial_words;
    if (spec->option->kind == MU__OPTION_TEXT)
        return "";
    (void)snprintf(out, size, "%" PRIu64, spec->option->initial);
    return out;
}

static void store_options(const struct cmd_options *options, int first, int last,
                          mu_node_options *node_options)
{
    for (int flag = first; flag <= last; flag++) {
        const struct cmd_value *value = &options->values[flag];
        const struct mu__option_value given = {
            .text = value->text,
            .number = value->number,
        };

        if (cmd_flags[flag].option != NULL && value->source != CMD_FROM_DEFAULT)
            mu__option_store(cmd_flags[flag].option, &given, node_options);
    }
}

void cmd_node_options(const struct cmd_options *options, mu_node_options *node_options)
{
    store_options(options, 0, CMD_FLAGS_COUNT - 1, node_options);
}

void cmd_peer_options(const struct cmd_options *options, mu_node_options *node_options)
{
    store_options(options, CMD_FLAG_CLUSTER_NAME, CMD_FLAG_WIRE, node_options);
}

size_t cmd_node_words(const struct cmd_options *options, char **words, size_t count,
                      size_t max)
{
    static char names[CMD_FLAGS_COUNT][32];

    for (int flag = 0; flag < CMD_FLAGS_COUNT; flag++) {
        const struct cmd_value *value = &options->values[flag];
        const char *name = cmd_flag_name((enum cmd_flag)flag);
        bool is_list = cmd_flags[flag].kind == CMD_LIST;
        size_t items = is_list ? value->items_count : 1;

        if ((cmd_flags[flag].verbs & CMD_NODE) == 0 || value->source != CMD_FROM_LINE)
            continue;
        if (count + 2 * items > max)
            return 0;
        if (cmd_flags[flag].kind == CMD_SWITCH) {
            (void)snprintf(names[flag], sizeof names[flag], "--%s=%s", name,
                           value->number == 0 ? "0" : "1");
            words[count++] = names[flag];
            continue;
        }
        (void)snprintf(names[flag], sizeof names[flag], "--%s", name);
        for (size_t i = 0; i < items; i++) {
            words[count++] = names[flag];
            words[count++] = is_list ? value->items[i] : (char *)(uintptr_t)value->text;
        }
    }
    return count;
}

const char *cmd_origin(const struct cmd_options *options, enum cmd_flag flag, char *out,
                       size_t size)
{
    const char *variable = options->values[flag].variable;

    (void)snprintf(out, size, "%s%s", variable == NULL ? "--" : "",
                   variable == NULL ? cmd_flag_name(flag) : variable);
    return out;
}

static int refuse_flag(const struct cmd_options *options, enum cmd_flag flag,
                       const char *expected, mu_error *error)
{
    char origin[CMD_ORIGIN_BYTES];
    char got[MU__QUOTE_BYTES];
    const char *text = options->values[flag].text;

    mu__quote(got, sizeof got, text, strlen(text));
    return mu_error_set(error, -MU_EINVALID, "%s: expected %s, got %s",
                        cmd_origin(options, flag, origin, sizeof origin), expected, got);
}

static int parse_flag_number(struct cmd_options *options, enum cmd_flag flag,
                             mu_error *error)
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
    return refuse_flag(options, flag, expected, error);
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
    return refuse_flag(options, flag, expected, error);
}

static int add_flag_item(struct cmd_value *value, const char *text, size_t length)
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

static int parse_flag_list(struct cmd_value *value)
{
    const char *at = value->text;
    int rv = 0;

    while (rv == 0 && at != NULL) {
        size_t length = strcspn(at, ";");

        if (length > 0)
            rv = add_flag_item(value, at, length);
        at = at[length] == ';' ? at + length + 1 : NULL;
    }
    return rv;
}

/* Parse the text of a flag that is an option of the node. */
static int read_option(struct cmd_options *options, enum cmd_flag flag, mu_error *error)
{
    struct cmd_value *value = &options->values[flag];
    struct mu__option_value read = {0};
    char origin[CMD_ORIGIN_BYTES];
    int rv = mu__option_read(cmd_flags[flag].option,
                             cmd_origin(options, flag, origin, sizeof origin),
                             value->text, error, &read);

    value->number = read.number;
    return rv;
}

static int parse_flag_value(struct cmd_options *options, enum cmd_flag flag,
                            mu_error *error)
{
    if (cmd_flags[flag].option != NULL)
        return read_option(options, flag, error);
    switch (cmd_flags[flag].kind) {
    case CMD_NUMBER:
    case CMD_SWITCH:
        return parse_flag_number(options, flag, error);
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

/* ---- values from the environment ---- */

/* The same for an option of the node: its variable, or its default. */
static int read_rest_option(const struct mu__option *option, struct cmd_value *value,
                            mu_error *error)
{
    struct mu__option_value found;
    int rv = mu__option_environment(option, error, &found);

    if (rv != 0)
        return rv;
    *value = found.text == NULL
                 ? (struct cmd_value){
                       .text = option->initial_words,
                       .number = option->initial,
                   }
                 : (struct cmd_value){
                       .source = CMD_FROM_VARIABLE,
                       .text = found.text,
                       .variable = found.origin,
                       .number = found.number,
                   };
    return 0;
}

static int read_rest_flag(struct cmd_options *options, enum cmd_flag flag,
                          mu_error *error)
{
    const struct cmd_flag_spec *spec = &cmd_flags[flag];
    struct cmd_value *value = &options->values[flag];
    const char *text;

    if (spec->option != NULL)
        return read_rest_option(spec->option, value, error);
    text = getenv(spec->variable);
    *value = (struct cmd_value){.text = spec->initial};
    if (text != NULL && text[0] != '\0')
        *value = (struct cmd_value){
            .source = CMD_FROM_VARIABLE,
            .text = text,
            .variable = spec->variable,
        };
    if (value->text == NULL)
        return 0;
    if (spec->kind == CMD_LIST && parse_flag_list(value) != 0)
        return mu_error_set(error, -MU_ENOMEM, "out of memory");
    return parse_flag_value(options, flag, error);
}

static int read_rest(struct cmd_options *options, mu_error *error)
{
    int rv = 0;

    for (int flag = 0; rv == 0 && flag < CMD_FLAGS_COUNT; flag++)
        if ((cmd_flags[flag].verbs & options->verb->bit) != 0 &&
            options->values[flag].source != CMD_FROM_LINE)
            rv = read_rest_flag(options, (enum cmd_flag)flag, error);
    return rv;
}

static int unknown_flag(const struct cmd_options *options, const char *name,
                        size_t length, mu_error *error)
{
    const char *words[CMD_FLAGS_COUNT + 2] = {"help"};
    char shown[MU__QUOTE_BYTES];
    char given[64];
    const char *near;
    size_t count = 1;

    for (int flag = 0; flag < CMD_FLAGS_COUNT; flag++)
        if ((cmd_flags[flag].verbs & options->verb->bit) != 0)
            words[count++] = cmd_flag_name((enum cmd_flag)flag);
    (void)snprintf(given, sizeof given, "%.*s", (int)(length < 60 ? length : 60), name);
    near = cmd_nearest(given, words);
    mu__quote(shown, sizeof shown, name, length);
    return mu_error_set(error, -MU_EINVALID,
                        "no flag %s%s%s%s; `muster %s --help` lists them", shown,
                        near == NULL ? "" : "; did you mean --", near == NULL ? "" : near,
                        near == NULL ? "" : "?", options->verb->name);
}

/* Find the flag of an argument "--name", "--name=value" or "-o"; ret_value is the text
 * after "=", or NULL. */
static int find_flag(const struct cmd_options *options, const char *argument,
                     mu_error *error, int *ret_flag, const char **ret_value)
{
    bool is_long = argument[1] == '-';
    const char *name = argument + (is_long ? 2 : 1);
    size_t length = strcspn(name, "=");

    for (int flag = 0; flag < CMD_FLAGS_COUNT; flag++) {
        const struct cmd_flag_spec *spec = &cmd_flags[flag];
        const char *known = cmd_flag_name((enum cmd_flag)flag);

        if ((spec->verbs & options->verb->bit) == 0)
            continue;
        if (is_long ? strlen(known) != length || strncmp(known, name, length) != 0
                    : spec->letter == 0 || length != 1 || name[0] != spec->letter)
            continue;
        *ret_flag = flag;
        *ret_value = name[length] == '=' ? name + length + 1 : NULL;
        return 0;
    }
    return unknown_flag(options, name, length, error);
}

/* In a verb's `operands`, the begin of a command, which is not an operand. */
#define COMMAND_BEGIN "[-- "

static bool has_command_operand(const struct cmd_verb *verb)
{
    return verb->operands != NULL && strstr(verb->operands, COMMAND_BEGIN) != NULL;
}

/* How many operands a verb takes at most; ret_least: at least. */
static size_t operands_max(const struct cmd_verb *verb, size_t *ret_least)
{
    const char *at = verb->operands == NULL ? "" : verb->operands;
    size_t most = 0;

    *ret_least = 0;
    while (*at != '\0' && strncmp(at, COMMAND_BEGIN, strlen(COMMAND_BEGIN)) != 0) {
        *ret_least += at[0] != '[';
        most++;
        at += strcspn(at, " ");
        at += strspn(at, " ");
    }
    return most;
}

static int read_operand(struct cmd_options *options, const char *text, mu_error *error)
{
    char shown[MU__QUOTE_BYTES];
    size_t least;
    size_t most = operands_max(options->verb, &least);

    mu__quote(shown, sizeof shown, text, strlen(text));
    if (most == 0)
        return mu_error_set(error, -MU_EINVALID, "%s: expected a flag", shown);
    if (options->operands_count == most)
        return mu_error_set(error, -MU_EINVALID, "%s: expected %s, and had it", shown,
                            options->verb->operands);
    options->operands[options->operands_count++] = text;
    return 0;
}

static int check_operands(const struct cmd_options *options, mu_error *error)
{
    size_t least;

    (void)operands_max(options->verb, &least);
    if (options->operands_count >= least)
        return 0;
    return mu_error_set(error, -MU_EINVALID, "expected %s; `muster %s --help` says more",
                        options->verb->operands, options->verb->name);
}

/* "-" and negative numbers are not flags. */
static bool is_flag_text(const char *text)
{
    return text[0] == '-' && text[1] != '\0' && (text[1] < '0' || text[1] > '9');
}

/* Parse one argument, with its value if that is the next argument; ret_used: how many
 * arguments that were. */
static int read_argument(struct cmd_options *options, char **arguments, mu_error *error,
                         size_t *ret_used)
{
    const char *text = NULL;
    struct cmd_value *value;
    int flag = 0;
    int rv;

    *ret_used = 1;
    if (!is_flag_text(arguments[0]))
        return read_operand(options, arguments[0], error);
    rv = find_flag(options, arguments[0], error, &flag, &text);
    if (rv != 0)
        return rv;
    if (text == NULL && cmd_flags[flag].kind == CMD_SWITCH)
        text = "1";
    if (text == NULL) {
        *ret_used = 2;
        text = arguments[1];
    }
    if (text == NULL)
        return mu_error_set(error, -MU_EINVALID, "--%s: expected %s behind it",
                            cmd_flag_name((enum cmd_flag)flag),
                            cmd_flag_word((enum cmd_flag)flag));
    value = &options->values[flag];
    value->source = CMD_FROM_LINE;
    value->text = text;
    if (cmd_flags[flag].kind != CMD_LIST)
        return parse_flag_value(options, (enum cmd_flag)flag, error);
    return add_flag_item(value, text, strlen(text)) == 0
               ? 0
               : mu_error_set(error, -MU_ENOMEM, "out of memory");
}

static int read_arguments(struct cmd_options *options, char **arguments, mu_error *error)
{
    size_t used = 0;
    int rv = 0;

    for (; rv == 0 && *arguments != NULL && strcmp(*arguments, "--") != 0;
         arguments += used)
        rv = read_argument(options, arguments, error, &used);
    if (rv == 0 && *arguments != NULL)
        arguments++;
    if (rv == 0 && has_command_operand(options->verb)) {
        options->command = *arguments == NULL ? NULL : arguments;
        return 0;
    }
    for (; rv == 0 && *arguments != NULL; arguments++)
        rv = read_operand(options, *arguments, error);
    return rv;
}

static bool has_help_flag(char **arguments)
{
    for (size_t i = 0; arguments[i] != NULL && strcmp(arguments[i], "--") != 0; i++)
        if (strcmp(arguments[i], "--help") == 0 || strcmp(arguments[i], "-h") == 0)
            return true;
    return false;
}

int cmd_options_parse(const struct cmd_verb *verb, char **arguments, mu_error *ret_error,
                      struct cmd_options *ret_options)
{
    int rv;

    *ret_options = (struct cmd_options){.verb = verb};
    if (has_help_flag(arguments)) {
        ret_options->help = true;
        return 0;
    }
    rv = read_arguments(ret_options, arguments, ret_error);
    if (rv == 0)
        rv = check_operands(ret_options, ret_error);
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

/* ---- --set ---- */

int cmd_setting_split(const struct cmd_options *options, const char *text,
                      mu_error *ret_error, char **ret_key, const char **ret_value)
{
    const char *equals = strchr(text, '=');
    char origin[64];

    if (equals == NULL || equals == text)
        return mu_error_set(ret_error, -MU_EINVALID,
                            "%s: expected KEY=VALUE, got \"%.200s\"",
                            cmd_origin(options, CMD_FLAG_SET, origin, sizeof origin),
                            text);
    *ret_value = equals + 1;
    *ret_key = strndup(text, (size_t)(equals - text));
    return *ret_key != NULL ? 0 : mu_error_set(ret_error, -MU_ENOMEM, "out of memory");
}

int cmd_settings_check(const struct cmd_options *options, mu_error *ret_error)
{
    const struct cmd_value *settings = &options->values[CMD_FLAG_SET];

    for (size_t i = 0; i < settings->items_count; i++) {
        const char *value;
        char *key;
        int rv = cmd_setting_split(options, settings->items[i], ret_error, &key, &value);

        if (rv != 0)
            return rv;
        free(key);
    }
    return 0;
}
