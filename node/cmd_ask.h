/* A client of a chief, for the verbs that ask it something; and reading its answers. */
#ifndef MU_NODE_CMD_ASK_H
#define MU_NODE_CMD_ASK_H

#include "node/cmd_log.h"
#include "node/cmd_options.h"

#include "muster/node.h"

struct cmd_ask {
    const struct cmd_options *options;
    struct cmd_log log;
    mu_cluster *spec;       /* the whole cluster, NULL when unknown */
    mu_cluster *chief;      /* the chief alone */
    const char *address;
    int own_index;
    mu_node *node;
};

/* Be a client for as long as `question` asks; it returns the exit code, with words in
 * `error` when that is not CMD_FINE. They are printed. Returns the exit code. */
int cmd_ask(const struct cmd_options *options,
            int (*question)(struct cmd_ask *ask, mu_error *error));

/* The exit code for what a question to the chief came to. */
int cmd_ask_code(int code);

/* Of a map: 0 or "" when it has none of that name and kind. */
int64_t cmd_map_number(const mu_value *map, const char *key);
bool cmd_map_truth(const mu_value *map, const char *key);
const char *cmd_map_text(const mu_value *map, const char *key);

/* "1200 ms", "90 s", "12 min". Returns `out`. */
const char *cmd_duration(int64_t ms, char *out, size_t size);

#endif
