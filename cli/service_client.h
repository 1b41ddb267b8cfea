/* A client of the coordination service, for the verbs that send it requests: finds the
 * hosts, registers, and leaves, also when a signal ends the process. */
#ifndef MU_CLI_SERVICE_CLIENT_H
#define MU_CLI_SERVICE_CLIENT_H

#include "cli/chief_client.h"

#include "muster/coordination.h"

/* As cmd_chief_verb, for the hosts of the service: --address (of the first of
 * --service-hosts), or those of the cluster. The client is registered when `request` is
 * called. After a signal the exit code is the signal's, whatever `request` returns. */
int cmd_service_verb(struct cmd_options *options);

/* The same with a request that is not the verb's. */
int cmd_service_request(const struct cmd_options *options, cmd_request_fn request);

/* The same as client `index`. */
int cmd_service_request_as(const struct cmd_options *options, int index,
                           cmd_request_fn request);

/* Wait until the service has heard of all of a set of tasks, so that a request can name
 * them: those that are not of the coordinated jobs are known once they have registered.
 * At the timeout -MU_EDEADLINE, "after 500 ms: ..."; ret_left_ms is what is left of it.
 * What is waited for is printed on standard error after a while. */
int cmd_await_known(const struct cmd_client *client, const char *tasks,
                    mu_error *ret_error, int64_t *ret_left_ms);

/* Forward signals to the process `pid` from now on, instead of ending this one; 0: no
 * more. Those of a terminal are not forwarded: it has sent them to both. */
void cmd_forward_signals(struct cmd_client *client, int pid);

/* Whether output is JSON. */
bool cmd_is_json(const struct cmd_client *client);

/* The timeout of a request: --timeout-ms; and of a request that waits for other tasks:
 * -1, unless --timeout-ms was given. */
int64_t cmd_timeout_ms(const struct cmd_client *client);
int64_t cmd_wait_timeout_ms(const struct cmd_client *client);

#endif
