/* A short-lived client node, by which a verb sends requests to the chief, or to another
 * task; and reading the answers. service_client.h has requests to the coordination
 * service. */
#ifndef MU_CLI_CHIEF_CLIENT_H
#define MU_CLI_CHIEF_CLIENT_H

#include "cli/options/flags.h"
#include "cli/output/log.h"
#include "cli/verbs.h"

#include "muster/node.h"

enum { CMD_LEAVE_MS = 500 };    /* for the service to process a client's leave */

struct cmd_client {
    const struct cmd_options *options;
    struct cmd_log log;
    mu_cluster *spec;       /* the whole cluster, NULL when unknown */
    mu_cluster *targets;    /* the tasks that requests go to: the chief alone, say */
    char *hosts;            /* of the service, for its requests; NULL: there are none */
    const char *address;    /* of the first target */
const char *hosts_any; /* service requests go to `address`, whichever task of this set
                               is there; NULL: to `targets` */
    int own_index;          /* of this client */
    mu_node *node;
    void *user;             /* of cmd_with_client */
};

/* Fills in targets, hosts and address, and maybe own_index and hosts_any. An error is a
 * usage error. */
typedef int (*cmd_target_fn)(struct cmd_client *client, mu_error *error);

/* Open a client node of the tasks that `target` names, call `request`, and close it. The
 * error is printed. Returns the exit code. */
int cmd_with_client(const struct cmd_options *options, cmd_target_fn target,
                    cmd_request_fn request, void *user);

/* The same for the chief: --address, or the cluster's. And a verb whose request is for
 * it. */
int cmd_target_chief(struct cmd_client *client, mu_error *error);
int cmd_chief_verb(struct cmd_options *options);

/* One task alone is the target, at --address. */
int cmd_target_address(struct cmd_client *client, const char *type, int index,
                       mu_error *error);

/* The exit code for the code of a request. */
int cmd_exit_code(int code);

/* Of a map: 0 or "" when it has none of that name and kind. */
int64_t cmd_map_number(const mu_value *map, const char *key);
bool cmd_map_bool(const mu_value *map, const char *key);
const char *cmd_map_text(const mu_value *map, const char *key);

/* "1200 ms", "90 s", "12 min". Returns `out`. */
const char *cmd_duration(int64_t ms, char *out, size_t size);

#endif
