/* A client of the coordination service, for verbs: finds the hosts, registers, and leaves
 * the service, also when a signal ends the process. */
#ifndef MU_CLI_SERVICE_CLIENT_H
#define MU_CLI_SERVICE_CLIENT_H

#include "cli/chief_client.h"

#include "muster/coordination.h"

/* Like cmd_chief_verb, for the hosts of the service: --address (the first of
 * --service-hosts), or those in the cluster spec. The client is registered when `request`
 * is called. After a signal the exit code is the signal's, whatever `request` returns. */
int cmd_service_verb(struct cmd_options *options);

/* The same with another request than the verb's. */
int cmd_service_request(const struct cmd_options *options, cmd_request_fn request);

/* The same as the client with task index `index`. */
int cmd_service_request_as(const struct cmd_options *options, int index,
                           cmd_request_fn request);

/* Check the set of tasks of --tasks. -MU_EINVALID names the flag. */
int cmd_tasks_check(const struct cmd_options *options, mu_error *ret_error);

/* Whether a task is in a set of tasks. */
bool cmd_tasks_have_task(const char *tasks, const char *type, int index);

/* Wait until the service knows all of a set of tasks, so that a request can name them:
 * tasks outside of the coordinated jobs are known once they have registered. At the
 * timeout -MU_EDEADLINE, "after 500 ms: ..."; ret_left_ms is the rest of the timeout.
 * After two seconds a line on standard error says what it waits for. */
int cmd_await_known(const struct cmd_client *client, const char *tasks,
                    mu_error *ret_error, int64_t *ret_left_ms);

/* Keep signals back until cmd_forward_signals() says whose they are, while the command
 * is started or reaped: none is taken for this process's own once the command runs, and
 * none goes to a pid that is free again. */
void cmd_hold_signals(struct cmd_client *client);

/* After cmd_hold_signals(): from now on forward signals to the process `pid`, instead of
 * ending this one; 0: end this one again. Signals of a terminal are not forwarded, since
 * it sends them to both processes. */
void cmd_forward_signals(struct cmd_client *client, int pid);

#endif
