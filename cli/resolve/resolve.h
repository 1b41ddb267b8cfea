/* `muster resolve`: its data, and the functions shared by its files. */
#ifndef MU_NODE_CMD_RESOLVE_H
#define MU_NODE_CMD_RESOLVE_H

#include "cli/resolve/cluster_flags.h"

#include "muster/resolver.h"

enum { RESOLVE_TEXT, RESOLVE_JSON, RESOLVE_TF_CONFIG };

struct resolve {
    const struct cmd_options *options;
    mu_resolver *resolver; /* NULL: --cluster has all */
    struct cmd_spec flags; /* the task of the flags; type "": none */
    mu_resolution found;
    mu_value *tried; /* what was tried, with --explain; else NULL */
};

/* Run the resolver; on success sets `found`, whose cluster the caller frees. */
int resolve_find(struct resolve *resolve, mu_error *ret_error);

/* Print what was found, or `error` and what was tried. Returns 0 or -MU_ENOMEM. */
int resolve_print(const struct resolve *resolve);
int resolve_print_failure(const struct resolve *resolve, const mu_error *error);

/* Print one line, a value for TF_CONFIG. */
int resolve_print_tf_config(const struct resolve *resolve);

/* `muster resolve --list`; and the tables of docs/resolvers.md. */
int resolve_list(const struct cmd_options *options);
void resolve_help(void);

/* Print changes until standard output cannot be written. Returns the exit code. */
int resolve_watch(struct resolve *resolve);

#endif
