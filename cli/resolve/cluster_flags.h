/* Cluster and task from flags, TF_CONFIG, or any other resolver. */
#ifndef MU_NODE_CMD_SPEC_H
#define MU_NODE_CMD_SPEC_H

#include "cli/options/flags.h"

#include "muster/cluster.h"
#include "muster/distribute.h"
#include "muster/resolver.h"

struct cmd_spec {
    mu_cluster *cluster; /* NULL: none, or found by the node's resolver */
    char type[16];       /* "": unknown */
    int index;
    bool index_is_open;    /* a type was given without index: 0, unless the resolver has
                              another one */
    char source[64];       /* where the cluster, or without one the task, came from */
    mu_resolver *resolver; /* for opening a node; NULL: none */
    mu_resolution found;   /* found by a resolver, without cluster and task */
};

void cmd_spec_done(struct cmd_spec *spec);

/* Read cluster and task from flags and resolvers; both may be absent. --cluster and
 * --task (or --type) take precedence over the resolver. Without --resolver that is
 * TF_CONFIG if it is set, else the first resolver that recognises this machine, if any;
 * with --address none. Errors name the source. */
int cmd_spec_find(const struct cmd_options *options, mu_error *ret_error,
                  struct cmd_spec *ret_spec);

/* Take from `found` what the flags left open, and free the rest of it. */
void cmd_spec_fill_in(struct cmd_spec *spec, mu_resolution *found);

/* Read the task from the flags alone; ret_spec->type stays "" without one. --type on the
 * command line takes precedence over the variable of --task, and --task over that of
 * --type. */
int cmd_spec_task(const struct cmd_options *options, mu_error *ret_error,
                  struct cmd_spec *ret_spec);

/* The cluster, and no task; ret_found->cluster, which the caller frees, is NULL when
 * there is none. */
int cmd_spec_cluster(const struct cmd_options *options, mu_error *ret_error,
                     mu_resolution *ret_found);

/* mu_cluster_validate of a task that flags name. */
int cmd_spec_validate(const mu_cluster *cluster, const char *type, int index,
                      mu_error *ret_error);

/* Set the error "there is no cluster". Returns -MU_EINVALID. */
int cmd_spec_none(mu_error *ret_error);

/* The text that contains the cluster: of --cluster, of the file that it names, or of
 * TF_CONFIG. */
struct cmd_spec_text {
    const char *text; /* NULL: the cluster does not come from such a text */
    size_t size;
    char source[64];
    char *content; /* the memory of `text`, which the caller frees; NULL: it is
                      borrowed */
};

int cmd_spec_text(const struct cmd_options *options, mu_error *ret_error,
                  struct cmd_spec_text *ret_text);

/* Check that a text is a task type. -MU_EINVALID: it is none. */
int cmd_type_check(const char *type, mu_error *ret_error);

/* Parse the index of a task, a decimal number without leading zeros. False: none. */
bool cmd_index_parse(const char *text, int *ret_index);

/* Whether a worker of that index may join a cluster that does not list it: one with a
 * chief, which it dials. */
bool cmd_may_join(const mu_cluster *cluster, const char *type, int index);

/* Whether a text is a type whose tasks may run closures. */
bool cmd_is_worker_type(const char *type);

/* Check --worker-types. -MU_EINVALID names what is no such type. */
int cmd_worker_types_check(const struct cmd_options *options, mu_error *ret_error);

/* Whether tasks of a type run closures, by --worker-types. */
bool cmd_runs_closures(const struct cmd_options *options, const char *type);

/* --mode, as one of enum mu_mode. */
int cmd_mode(const struct cmd_options *options);

/* Read cluster and task for a node, and check that they fit each other; or open the
 * resolver by which the node will find them, with the task as far as flags have it. The
 * caller calls cmd_spec_done. In local mode the cluster has only this task; in standalone
 * mode the task is a client by default. */
int cmd_spec_read(const struct cmd_options *options, mu_error *ret_error,
                  struct cmd_spec *ret_spec);

#endif
