/* The cluster and the task, from the flags, TF_CONFIG, or any other resolver. */
#ifndef MU_NODE_CMD_SPEC_H
#define MU_NODE_CMD_SPEC_H

#include "cli/options/flags.h"

#include "muster/cluster.h"
#include "muster/distribute.h"
#include "muster/resolver.h"

struct cmd_spec {
    mu_cluster *cluster;    /* NULL: none, or the node is to find it out */
    char type[16];          /* "": unknown */
    int index;
    bool index_is_open;     /* a type was said, and no index: 0, or another one where who
                               is asked for the cluster knows better */
    char source[64];        /* of the cluster, or else of the task */
    mu_resolver *resolver;  /* what a node is to be opened with; NULL: nothing */
    mu_resolution found;    /* by a resolver; without cluster and task */
};

void cmd_spec_done(struct cmd_spec *spec);

/* What flags and resolvers say, as far as they say something: --cluster and --task (or
 * --type) win over the resolver; nothing is required. Without --resolver that is
 * TF_CONFIG if it is set, else what recognises this place, if anything does (not beside
 * --address, which says enough). Errors name the source. */
int cmd_spec_find(const struct cmd_options *options, mu_error *ret_error,
                  struct cmd_spec *ret_spec);

/* Take what the flags leave open from what was found, and free the rest of that. */
void cmd_spec_fill_in(struct cmd_spec *spec, mu_resolution *found);

/* What the flags say about the task alone; ret_spec->type stays "" when that is
 * nothing. */
int cmd_spec_task(const struct cmd_options *options, mu_error *ret_error,
                  struct cmd_spec *ret_spec);

/* The cluster alone; *ret_cluster is NULL when there is none. */
int cmd_spec_cluster(const struct cmd_options *options, mu_error *ret_error,
                     mu_cluster **ret_cluster);

/* "There is no cluster", for who needs one. Returns -MU_EINVALID. */
int cmd_spec_none(mu_error *ret_error);

/* The text that the cluster is in, when it is one: of --cluster, its file, or
 * TF_CONFIG. */
struct cmd_spec_text {
    const char *text;       /* NULL: it comes from elsewhere */
    size_t size;
    char source[64];
    bool is_tf_config;
    char *content;          /* the caller frees it */
};

int cmd_spec_text(const struct cmd_options *options, mu_error *ret_error,
                  struct cmd_spec_text *ret_text);

/* Whether tasks of a type run closures, as --worker-types says. */
bool cmd_runs_closures(const struct cmd_options *options, const char *type);

/* --mode, as one of enum mu_mode. */
int cmd_mode(const struct cmd_options *options);

/* Cluster and task of a node, which fit each other, or the resolver by which the node is
 * to find them out, and the task as far as flags say it; the caller calls cmd_spec_done.
 * In local mode they are a cluster of nobody else, in standalone mode the task is a
 * client unless it is said. */
int cmd_spec_read(const struct cmd_options *options, mu_error *ret_error,
                  struct cmd_spec *ret_spec);

#endif
