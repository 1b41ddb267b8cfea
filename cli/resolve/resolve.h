/* What the files of `muster resolve` share. */
#ifndef MU_NODE_CMD_RESOLVE_H
#define MU_NODE_CMD_RESOLVE_H

#include "cli/resolve/cluster_flags.h"

#include "muster/resolver.h"

enum { RESOLVE_TEXT, RESOLVE_JSON, RESOLVE_TF_CONFIG };

struct resolve {
    const struct cmd_options *options;
    mu_resolver *resolver;      /* NULL: the flags say all */
    struct cmd_spec flags;      /* the task that flags say; type "": none */
    mu_resolution found;
    mu_value *tried;            /* NULL: not asked for */
};

/* Ask the resolver; on success `found` is written, and its cluster the caller's to
 * free. */
int resolve_find(struct resolve *resolve, mu_error *ret_error);

/* What was found; with `error`, that nothing was, and what was tried. Returns 0, or
 * -MU_ENOMEM. */
int resolve_print(const struct resolve *resolve);
int resolve_print_failure(const struct resolve *resolve, const mu_error *error);

/* One line, as the value of TF_CONFIG. */
int resolve_print_tf_config(const struct resolve *resolve);

/* `muster resolve --list`; and a table for docs/resolvers.md. */
int resolve_list(const struct cmd_options *options);
void resolve_help(void);

/* Print changes until standard output cannot be written. Returns the exit code. */
int resolve_watch(struct resolve *resolve);

#endif
