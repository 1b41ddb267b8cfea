/* The verbs of the command `muster`, and its exit codes. */
#ifndef MU_NODE_CMD_H
#define MU_NODE_CMD_H

#include "muster/main.h"

#include <stdbool.h>
#include <stdint.h>

struct cmd_client;
struct cmd_options;

/* The options of the embedding program, as passed to mu_main_with; all NULL for `muster`
 * itself. */
const mu_main_options *cmd_host(void);

/* Exit codes; the help topic "exit-codes" (options/help.c) describes them. */
enum cmd_exit {
    CMD_FINE = MU_EXIT_FINE,
    CMD_FAILED = MU_EXIT_FAILED,
    CMD_USAGE = MU_EXIT_USAGE,
    CMD_ADDRESS = MU_EXIT_ADDRESS,
    CMD_UNREACHED = 4,
    CMD_UNENDED = MU_EXIT_UNENDED,
    CMD_COMPARED = 6,
    CMD_NOT_STARTED = 126, /* of a command that cannot be started, as shells do */
    CMD_NOT_FOUND = 127,
    CMD_SIGNAL = MU_EXIT_SIGNAL /* plus the signal's number */
};

/* One bit for each verb, as the flag table names them. */
enum cmd_verb_bit {
    CMD_NODE = 1,
    CMD_RUN = 2,
    CMD_STATUS = 4,
    CMD_VERSION = 8,
    CMD_EXPLAIN = 16,
    CMD_DRAIN = 32,
    CMD_KV_GET = 64,
    CMD_KV_PUT = 128,
    CMD_KV_WATCH = 256,
    CMD_KV_LS = 512,
    CMD_KV_RM = 1024,
    CMD_KV_INCR = 2048,
    CMD_BARRIER = 4096,
    CMD_TASKS = 8192,
    CMD_DEVICES = 16384,
    CMD_PREEMPT = 32768,
    CMD_STOP = 65536,
    CMD_RESOLVE = 131072,
    CMD_CHECK = 262144,
    CMD_STORE_LS = 1 << 19,
    CMD_STORE_CLEAR = 1 << 20,
    CMD_JOURNAL_CHECK = 1 << 21,
    CMD_JOURNAL_REPAIR = 1 << 22,
    CMD_TASK_REPORT = 1 << 23,
    CMD_TASK_RESET = 1 << 24,
    CMD_ASSIGN = 1 << 25,
    CMD_KV_TXN = 1 << 26,
    CMD_KV_HOLD = 1 << 27,
    CMD_LOCK = 1 << 28,
    CMD_KEY = 1 << 29, /* new, derive, show */
    CMD_VARS = 1 << 30
};

/* More, which an enum has no room for. */
#define CMD_VARS_SHOW (UINT64_C(1) << 31)
#define CMD_VARS_DUMP (UINT64_C(1) << 32)
#define CMD_VARS_EXPORT (UINT64_C(1) << 33)
#define CMD_ACTORS (UINT64_C(1) << 34)
#define CMD_ACTORS_STOP (UINT64_C(1) << 35)
#define CMD_ACTORS_CALL (UINT64_C(1) << 36)
#define CMD_ACTORS_LOOK (UINT64_C(1) << 37) /* state, explain */

/* Sends the verb's requests and prints the responses. Returns the exit code; unless that
 * is CMD_FINE, `error` has a message to print, or "". */
typedef int (*cmd_request_fn)(struct cmd_client *client, mu_error *error);

struct cmd_verb {
    const char *name;                         /* one word, or two: "kv get" */
    uint64_t bit;                             /* CMD_NODE ... */
    int (*main)(struct cmd_options *options); /* returns the exit code */
    cmd_request_fn request; /* called by cmd_service_verb or cmd_chief_verb; NULL when
                               `main` is neither of them */
    const char *summary;    /* one line */
    const char *text;       /* description, a few lines */
    const char *examples;
    const char *operands; /* the arguments besides flags, "KEY [VALUE]", optional ones
                             in brackets. NULL: none */
};

int cmd_node(struct cmd_options *options);
int cmd_run(struct cmd_options *options);
int cmd_status(struct cmd_options *options);
int cmd_explain(struct cmd_client *client, mu_error *error);
int cmd_vars(struct cmd_client *client, mu_error *error);
int cmd_vars_show(struct cmd_client *client, mu_error *error);
int cmd_vars_dump(struct cmd_client *client, mu_error *error);
int cmd_vars_export(struct cmd_client *client, mu_error *error);
int cmd_actors(struct cmd_client *client, mu_error *error);
int cmd_actors_call(struct cmd_client *client, mu_error *error);
int cmd_actors_explain(struct cmd_client *client, mu_error *error);
int cmd_actors_state(struct cmd_client *client, mu_error *error);
int cmd_actors_stop(struct cmd_client *client, mu_error *error);
int cmd_drain(struct cmd_client *client, mu_error *error);
int cmd_version(struct cmd_options *options);
int cmd_kv_get(struct cmd_client *client, mu_error *error);
int cmd_kv_put(struct cmd_client *client, mu_error *error);
int cmd_kv_watch(struct cmd_client *client, mu_error *error);
int cmd_kv_ls(struct cmd_client *client, mu_error *error);
int cmd_kv_rm(struct cmd_client *client, mu_error *error);
int cmd_kv_incr(struct cmd_client *client, mu_error *error);
int cmd_kv_txn(struct cmd_client *client, mu_error *error);
int cmd_kv_hold(struct cmd_client *client, mu_error *error);
int cmd_lock(struct cmd_client *client, mu_error *error);
int cmd_barrier(struct cmd_options *options);
int cmd_tasks(struct cmd_client *client, mu_error *error);
int cmd_devices(struct cmd_client *client, mu_error *error);
int cmd_preempt(struct cmd_client *client, mu_error *error);
int cmd_stop(struct cmd_options *options);
int cmd_store_ls(struct cmd_options *options);
int cmd_store_clear(struct cmd_options *options);
int cmd_task_report(struct cmd_client *client, mu_error *error);
int cmd_task_reset(struct cmd_client *client, mu_error *error);
int cmd_assign(struct cmd_options *options);
int cmd_resolve(struct cmd_options *options);
int cmd_check(struct cmd_options *options);
int cmd_key_new(struct cmd_options *options);
int cmd_key_derive(struct cmd_options *options);
int cmd_key_show(struct cmd_options *options);
int cmd_journal_check(struct cmd_options *options);
int cmd_journal_repair(struct cmd_options *options);

/* All verbs, ended by one with name NULL (options/help.c). */
extern const struct cmd_verb cmd_verbs[];

enum { CMD_WORDS_MAX = 48 };

/* Write the names of all verbs and a NULL: at most CMD_WORDS_MAX - 2 elements. */
void cmd_verb_words(const char **ret_words);

/* The verb whose name `arguments` (ended by NULL) begin with, and how many words that
 * name has; NULL when there is no such verb. */
const struct cmd_verb *cmd_verb_find(char *const *arguments, int *ret_words);

/* Whether `word` is the first word of verbs that have two, such as "kv". */
bool cmd_verb_begins(const char *word);

/* Print help: the overview (NULL), a verb, all verbs that begin with a word ("kv"), or a
 * topic ("exit-codes", "flags"). Returns the exit code; unknown topics are a usage
 * error. */
int cmd_help(const char *topic);

/* The most similar of `words` (ended by NULL), for "did you mean"; NULL when none is
 * similar. */
const char *cmd_nearest(const char *word, const char *const *words);

/* The monotonic clock, in milliseconds. */
uint64_t cmd_now_ms(void);

#endif
