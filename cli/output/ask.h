/* A client of a chief, for the verbs that ask it something; and reading its answers.
 * cmd_service.h has those that ask the coordination service. */
#ifndef MU_NODE_CMD_ASK_H
#define MU_NODE_CMD_ASK_H

#include "cli/options/options.h"
#include "cli/run/log.h"

#include "muster/node.h"

enum { CMD_LEAVE_MS = 500 };    /* for the service to hear that a client leaves */

struct cmd_ask {
    const struct cmd_options *options;
    struct cmd_log log;
    mu_cluster *spec;       /* the whole cluster, NULL when unknown */
    mu_cluster *asked;      /* those who are asked: the chief alone, say */
    char *hosts;            /* of the service, where it is asked; NULL: it is not */
    const char *address;    /* of the first of them */
    const char *hosts_any;  /* the service is asked at `address`, by whichever of this set
                               is there; NULL: `asked` says who is */
    int own_index;
    mu_node *node;
    void *user;             /* of cmd_ask_of */
};

/* Whom to ask: fills in asked, hosts and address, and may own_index and hosts_any; else
 * the usage is wrong. */
typedef int (*cmd_find_fn)(struct cmd_ask *ask, mu_error *error);

/* Returns the exit code, with words in `error` when that is not CMD_FINE; "" there: there
 * is nothing to say. */
typedef int (*cmd_question_fn)(struct cmd_ask *ask, mu_error *error);

/* Be a client of those whom `find` finds for as long as `question` asks. What it says is
 * printed. Returns the exit code. */
int cmd_ask_of(const struct cmd_options *options, cmd_find_fn find,
               cmd_question_fn question, void *user);

/* Of the chief; and how that is found. */
int cmd_ask_chief(struct cmd_ask *ask, mu_error *error);
int cmd_ask(const struct cmd_options *options, cmd_question_fn question);

/* Ask a task alone, at --address. */
int cmd_ask_at(struct cmd_ask *ask, const char *type, int index, mu_error *error);

/* The exit code for what a question came to. */
int cmd_ask_code(int code);

/* Of a map: 0 or "" when it has none of that name and kind. */
int64_t cmd_map_number(const mu_value *map, const char *key);
bool cmd_map_truth(const mu_value *map, const char *key);
const char *cmd_map_text(const mu_value *map, const char *key);

/* "1200 ms", "90 s", "12 min". Returns `out`. */
const char *cmd_duration(int64_t ms, char *out, size_t size);

#endif
