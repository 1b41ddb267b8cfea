/* `muster check`: its data, and the functions shared by its files. */
#ifndef MU_CLI_CHECK_H
#define MU_CLI_CHECK_H

#include "cli/chief_client.h"

struct check {
    const struct cmd_options *options;
    struct cmd_log log;
    mu_cluster *cluster; /* NULL: there is none */
    bool is_incomplete;  /* tasks are expected that are not in it */
    char source[64];
    char own_type[CMD_TYPE_BYTES]; /* "": unknown */
    int own_index;
    mu_value *problems; /* of the text, then those of the report */
    mu_value *report;   /* of mu_cluster_check */
};

/* The list of the report's tasks, which are those of the cluster, in its order. */
const mu_value *check_tasks(const struct check *check);

/* Whether a task's result is `state`. */
bool check_is(const mu_value *task, const char *state);

/* How many problems are of a grade. */
size_t check_problems(const struct check *check, const char *grade);

/* Visit each pair of tasks of which the first dials the second and does not reach it;
 * returns how many there are. `visit` may be NULL. */
typedef void (*check_pair_fn)(void *user, const char *from, const char *to,
                              const mu_value *peer);
size_t check_pairs(const struct check *check, check_pair_fn visit, void *user);

/* Print the result; JSON: 0 or -MU_ENOMEM. */
void check_print_text(const struct check *check);
int check_print_json(const struct check *check);

#endif
