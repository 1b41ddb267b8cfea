/* A short-lived client node, through which a verb sends requests to the chief or another
 * task, and helpers for reading the responses. service_client.h has requests to the
 * coordination service. */
#ifndef MU_CLI_CHIEF_CLIENT_H
#define MU_CLI_CHIEF_CLIENT_H

#include "cli/options/flags.h"
#include "cli/output/log.h"
#include "cli/verbs.h"

#include "muster/node.h"

#include <signal.h>

enum { CMD_LEAVE_MS = 500 }; /* timeout of a client's leave */

struct cmd_client {
    const struct cmd_options *options;
    struct cmd_log log;
    mu_cluster *spec;      /* the whole cluster, NULL when unknown */
    char cluster_name[64]; /* by the resolver; "": it does not say */
    mu_cluster *targets;   /* the tasks that requests go to, for instance the chief */
    char *hosts;           /* hosts of the coordination service; NULL: not used */
    const char *address;   /* of the first target */
    bool is_any;           /* which task is at `address` is unknown; else it is in
                              `targets` */
    int own_index;         /* task index of this client; -1: chosen */
    mu_node *node;
    void *user; /* argument of cmd_with_client */
};

/* Fills in targets, hosts and address, and if needed own_index and is_any. An error is
 * a usage error. */
typedef int (*cmd_target_fn)(struct cmd_client *client, mu_error *error);

/* Open a client node for the tasks that `target` fills in, call `request`, and close the
 * node. Prints the error. Returns the exit code. */
int cmd_with_client(const struct cmd_options *options, cmd_target_fn target,
                    cmd_request_fn request, void *user);

/* The target function for the chief, which is at --address or in the cluster spec; and
 * the main function of verbs whose request goes to it. */
int cmd_target_chief(struct cmd_client *client, mu_error *error);
int cmd_chief_verb(struct cmd_options *options);

/* Make the task at --address the only target. */
int cmd_target_address(struct cmd_client *client, const char *type, int index,
                       mu_error *error);

/* Whether output is JSON. */
bool cmd_is_json(const struct cmd_client *client);

/* --timeout-ms, for a request; and the timeout of a request that waits for other tasks:
 * --timeout-ms if it was given, else -1. */
int64_t cmd_timeout_ms(const struct cmd_client *client);
int64_t cmd_wait_timeout_ms(const struct cmd_client *client);

/* The options of a client node with a task index of its own, without coordination
 * service. The texts are borrowed. */
mu_node_options cmd_client_options(const struct cmd_options *options, struct cmd_log *log,
                                   const mu_cluster *cluster);

/* Parse "worker:1" or "/job:worker/task:1". False: neither, or it is no task type. */
enum { CMD_TYPE_BYTES = 16, CMD_TASK_BYTES = 64 };
bool cmd_task_parse(const char *text, char ret_type[CMD_TYPE_BYTES], int *ret_index);

/* Write "/job:worker/task:1". */
void cmd_task_name(char out[CMD_TASK_BYTES], const char *type, int index);

/* Block SIGINT and SIGTERM in this thread, so that they can be waited for. One that was
 * ignored at the start, as in the background of a script, stays ignored. */
void cmd_block_signals(sigset_t *ret_signals);

/* The exit code for an error code of a request. */
int cmd_exit_code(int code);

/* An item of a map; 0, false or "" when it is absent or of another type. */
int64_t cmd_map_number(const mu_value *map, const char *key);
bool cmd_map_bool(const mu_value *map, const char *key);
const char *cmd_map_text(const mu_value *map, const char *key);

/* Whether a list of tasks, as of the chief's status, has this one. */
bool cmd_tasks_have(const mu_value *tasks, const char *type, int index);

/* "64x10", of a list of dimensions; "" of a scalar. Returns `out`. */
const char *cmd_shape(const mu_value *dims, char *out, size_t size);

/* "1200 ms", "90 s", "12 min". Returns `out`. */
const char *cmd_duration(int64_t ms, char *out, size_t size);

#endif
