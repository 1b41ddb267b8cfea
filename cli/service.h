/* A client of the coordination service, for the verbs that ask it something: it finds the
 * hosts, registers, asks, and takes leave, also when a signal ends it. */
#ifndef MU_NODE_CMD_SERVICE_H
#define MU_NODE_CMD_SERVICE_H

#include "cli/output/ask.h"

#include "muster/coordination.h"

/* As cmd_ask, of the hosts of the service: --address (of the first of --service-hosts),
 * or those that the cluster has. The client is registered when `question` is asked. After
 * a signal the exit code is that of the signal, whatever `question` comes to. */
int cmd_ask_service(const struct cmd_options *options, cmd_question_fn question);

/* The same as client `index`. */
int cmd_ask_service_as(const struct cmd_options *options, int index,
                       cmd_question_fn question);

/* Wait until the service knows all of a set of tasks, so that it can be asked to wait for
 * them: those that are not of the coordinated jobs are known once they were there. At the
 * limit -MU_EDEADLINE, "after 500 ms: ..."; ret_left_ms is what is left of it. What is
 * waited for is told on standard error after a while. */
int cmd_await_known(const struct cmd_ask *ask, const char *tasks, mu_error *ret_error,
                    int64_t *ret_left_ms);

/* From now on signals are for a command with that pid, and do not end this process; 0:
 * for this process again. Those of a terminal, which has sent them to both, are not sent
 * on. */
void cmd_service_command(struct cmd_ask *ask, int pid);

/* Whether output is JSON. */
bool cmd_wants_json(const struct cmd_ask *ask);

/* The limit for one answer; and for what may take as long as it takes, unless
 * --timeout-ms was given: -1. */
int64_t cmd_limit(const struct cmd_ask *ask);
int64_t cmd_patience(const struct cmd_ask *ask);

#endif
