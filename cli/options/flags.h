/* The flags of all verbs, in one table, from which parsing, help and the manual's table
 * are made. A value comes from the command line, else from the flag's environment
 * variable (an empty one counts as absent), else it is the default. Flags that are
 * options of the node have their names, variables, ranges and defaults from the table in
 * muster/node_options.h. */
#ifndef MU_NODE_CMD_OPTIONS_H
#define MU_NODE_CMD_OPTIONS_H

#include "node/options.h"

#include <stdbool.h>
#include <stddef.h>

enum cmd_flag {
#define TEXT(flag, ...) CMD_FLAG_##flag,
#define LIST(flag, ...) CMD_FLAG_##flag,
#define NUMBER(flag, ...) CMD_FLAG_##flag,
#define SWITCH(flag, ...) CMD_FLAG_##flag,
#define CHOICE(flag, ...) CMD_FLAG_##flag,
#define OPTION(flag, ...) CMD_FLAG_##flag,
#define OPTION_TEXT(flag, ...) CMD_FLAG_##flag,
#define OPTION_SWITCH(flag, ...) CMD_FLAG_##flag,
#define FLAG(flag, ...) CMD_FLAG_##flag,
#include "cli/options/flag_rows.h"
#undef TEXT
#undef LIST
#undef NUMBER
#undef SWITCH
#undef CHOICE
#undef OPTION
#undef OPTION_TEXT
#undef OPTION_SWITCH
#undef FLAG
    CMD_FLAGS_COUNT
};

enum cmd_kind {
    CMD_TEXT,
    CMD_NUMBER, /* an integer from `low` to `high` */
    CMD_CHOICE, /* one of `choices`, "a|b|c" */
    CMD_LIST,   /* may be repeated; several items in a variable are separated by ; */
    CMD_SWITCH, /* 0 or 1; on the command line 1 without a value */
    CMD_OPTION  /* as the option of the node says */
};

struct cmd_flag_spec {
    const struct mu__option *option; /* of a node's option: its row; NULL: the fields
                                        below have name, variable, range and default */
    const char *name;                /* without the dashes */
    const char *variable;
    char letter; /* "-o" for 'o', or 0 */
    enum cmd_kind kind;
    uint64_t verbs;      /* CMD_NODE | ... */
    const char *word;    /* placeholder of its value in the help; NULL: see
                            cmd_flag_word */
    const char *initial; /* the default, as text; NULL: none */
    unsigned low;
    unsigned high;
    const char *choices;
    const char *help;
};

extern const struct cmd_flag_spec cmd_flags[CMD_FLAGS_COUNT];

enum cmd_source { CMD_FROM_DEFAULT, CMD_FROM_VARIABLE, CMD_FROM_LINE };

enum { CMD_ORIGIN_BYTES = 64, CMD_INITIAL_BYTES = 32, CMD_OPERANDS_MAX = 3 };

struct cmd_value {
    enum cmd_source source;
    const char *text;     /* NULL: none. Borrowed from argv, environ or the table */
    const char *variable; /* the variable that it comes from; NULL: none */
    uint64_t number;      /* of a number; index of the choice */
    char **items;         /* of a list */
    size_t items_count;
};

struct cmd_verb;

struct cmd_options {
    const struct cmd_verb *verb;
    const char *operands[CMD_OPERANDS_MAX]; /* the arguments that are not flags */
    size_t operands_count;
    char **command; /* of verbs that take a command: the arguments after "--",
                       ended by NULL; NULL: none */
    bool help;      /* --help was given; nothing else is valid then */
    struct cmd_value values[CMD_FLAGS_COUNT];
};

/* Read the arguments after the verb, and the environment. -MU_EINVALID names the flag,
 * its value and what was expected; *ret_options then owns no memory. */
int cmd_options_parse(const struct cmd_verb *verb, char **arguments, mu_error *ret_error,
                      struct cmd_options *ret_options);
void cmd_options_done(struct cmd_options *options);

/* The value of a flag: its text (NULL: none), and its number. */
const char *cmd_text(const struct cmd_options *options, enum cmd_flag flag);
unsigned cmd_number(const struct cmd_options *options, enum cmd_flag flag);

/* The flag's name without the dashes in front, the placeholder of its value in the help,
 * its environment variable, and its default as text ("": none). */
const char *cmd_flag_name(enum cmd_flag flag);
const char *cmd_flag_word(enum cmd_flag flag);
const char *cmd_variable(enum cmd_flag flag);
const char *cmd_initial(enum cmd_flag flag, char *out, size_t size);

/* Store the flags that are options of a node in `node_options`; or of these only the name
 * of the cluster, and what the node proves itself with. */
void cmd_node_options(const struct cmd_options *options, mu_node_options *node_options);
void cmd_peer_options(const struct cmd_options *options, mu_node_options *node_options);

/* Append the flags of the command line that `muster node` has to `words`, which has
 * `count` words and room for `max`. Returns the new count, 0 when there is no room. The
 * texts are borrowed. */
size_t cmd_node_words(const struct cmd_options *options, char **words, size_t count,
                      size_t max);

/* Where the value came from, for errors: "--threads" or "MUSTER_THREADS". */
const char *cmd_origin(const struct cmd_options *options, enum cmd_flag flag, char *out,
                       size_t size);

/* Split KEY=VALUE of --set: `ret_value` points into `text`, the caller frees `ret_key`.
 * -MU_EINVALID names the flag or variable that it came from. */
int cmd_setting_split(const struct cmd_options *options, const char *text,
                      mu_error *ret_error, char **ret_key, const char **ret_value);

/* Check that every --set can be split, before anything starts. */
int cmd_settings_check(const struct cmd_options *options, mu_error *ret_error);

#endif
