/* The table of all flags. */
#include "cli/options/flags.h"
#include "cli/verbs.h"

#define NODES (CMD_NODE | CMD_RUN)
#define VARS_VERBS (CMD_VARS | CMD_VARS_SHOW | CMD_VARS_DUMP | CMD_VARS_EXPORT)
#define CHIEF_CLIENTS (CMD_STATUS | CMD_EXPLAIN | VARS_VERBS | CMD_DRAIN | CMD_STOP)
#define KV_VERBS                                                                    \
    (CMD_KV_GET | CMD_KV_PUT | CMD_KV_WATCH | CMD_KV_LS | CMD_KV_RM | CMD_KV_INCR | \
     CMD_KV_TXN | CMD_KV_HOLD)
#define STORE_VERBS (CMD_STORE_LS | CMD_STORE_CLEAR)
#define TASK_VERBS (CMD_TASK_REPORT | CMD_TASK_RESET)
#define SERVICE_CLIENTS                                                            \
    (STORE_VERBS | KV_VERBS | TASK_VERBS | CMD_BARRIER | CMD_TASKS | CMD_DEVICES | \
     CMD_PREEMPT | CMD_LOCK | CMD_ACTORS | CMD_ACTORS_STOP | CMD_ACTORS_CALL |     \
     CMD_ACTORS_LOOK)
#define CLIENTS (CHIEF_CLIENTS | SERVICE_CLIENTS)
#define PEERS (NODES | CLIENTS | CMD_ASSIGN | CMD_CHECK)
#define JOURNALS (CMD_JOURNAL_CHECK | CMD_JOURNAL_REPAIR)
#define CLUSTER_VERBS (CMD_NODE | CLIENTS | CMD_ASSIGN | CMD_RESOLVE | CMD_CHECK)

#define OPTION_OF(flag, value_kind, flag_verbs, value, text)        \
    [CMD_FLAG_##flag] = {.option = &mu__options[MU__OPTION_##flag], \
                         .kind = CMD_##value_kind,                  \
                         .verbs = flag_verbs,                       \
                         .word = value,                             \
                         .help = text},
#define OPTION(flag, verbs, text) OPTION_OF(flag, OPTION, verbs, NULL, text)
#define OPTION_TEXT(flag, verbs, value, text) OPTION_OF(flag, OPTION, verbs, value, text)
#define OPTION_SWITCH(flag, verbs, text) OPTION_OF(flag, SWITCH, verbs, "0|1", text)
#define FLAG(flag, flag_name, env, value_kind, flag_verbs, value, otherwise, ...) \
    [CMD_FLAG_##flag] = {.name = flag_name,                                       \
                         .variable = env,                                         \
                         .kind = CMD_##value_kind,                                \
                         .verbs = flag_verbs,                                     \
                         .word = value,                                           \
                         .initial = otherwise,                                    \
                         __VA_ARGS__},
#define TEXT(flag, name, env, verbs, value, otherwise, text) \
    FLAG(flag, name, env, TEXT, verbs, value, otherwise, .help = text)
#define LIST(flag, name, env, verbs, value, otherwise, text) \
    FLAG(flag, name, env, LIST, verbs, value, otherwise, .help = text)
#define NUMBER(flag, name, env, verbs, value, otherwise, least, most, text)            \
    FLAG(flag, name, env, NUMBER, verbs, value, otherwise, .low = least, .high = most, \
         .help = text)
#define SWITCH(flag, name, env, verbs, text) \
    FLAG(flag, name, env, SWITCH, verbs, "0|1", "0", .high = 1, .help = text)
#define CHOICE(flag, name, env, verbs, value, otherwise, all, text) \
    FLAG(flag, name, env, CHOICE, verbs, value, otherwise, .choices = all, .help = text)

const struct cmd_flag_spec cmd_flags[CMD_FLAGS_COUNT] = {
#include "cli/options/flag_rows.h"
};
