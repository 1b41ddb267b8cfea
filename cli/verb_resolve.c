/* `muster resolve`: prints the cluster, and which task of it this process is. */
#include "cli/resolve/resolve.h"

#include "cli/resolve/resolver_flags.h"
#include "cli/verbs.h"

#include <stdio.h>
#include <string.h>

/* With --cluster: take cluster and task from the flags. */
static int read_flags(struct resolve *resolve, mu_error *error)
{
    struct cmd_spec spec;
    int rv = cmd_spec_find(resolve->options, error, &spec);

    if (rv != 0)
        return rv;
    (void)cmd_spec_task(resolve->options, NULL, &resolve->flags);
    resolve->found = spec.found;
    resolve->found.cluster = spec.cluster;
    resolve->found.task_index = spec.type[0] == '\0' ? -1 : spec.index;
    memcpy(resolve->found.task_type, spec.type, sizeof resolve->found.task_type);
    (void)snprintf(resolve->found.source, sizeof resolve->found.source, "%.31s",
                   spec.source);
    return 0;
}

/* The flags' task takes precedence over that of the source. */
static void apply_task(struct resolve *resolve)
{
    if (resolve->flags.type[0] == '\0')
        return;
    if (!resolve->flags.index_is_open ||
        strcmp(resolve->found.task_type, resolve->flags.type) != 0)
        resolve->found.task_index = resolve->flags.index;
    memcpy(resolve->found.task_type, resolve->flags.type,
           sizeof resolve->found.task_type);
}

/* Set the flags' task at the resolver, as a program does: a resolver that has the type as
 * a setting of its own refuses it. */
static int set_resolver_task(const struct resolve *resolve, mu_error *ret_error)
{
    const struct cmd_spec *flags = &resolve->flags;
    int rv;

    if (flags->type[0] == '\0')
        return 0;
    rv = mu_resolver_set_task_type(resolve->resolver, flags->type, ret_error);
    if (rv == 0 && flags->index_is_open)
        rv = mu_resolver_set_task_type(resolve->resolver, NULL, ret_error);
    else if (rv == 0)
        rv = mu_resolver_set_task_index(resolve->resolver, flags->index, ret_error);
    return rv;
}

/* Check that the flags' task is in the cluster, if there is one, or may join it. */
static int check_flags_task(const struct resolve *resolve, mu_error *ret_error)
{
    const mu_resolution *found = &resolve->found;

    if (resolve->flags.type[0] == '\0' || mu_cluster_is_empty(found->cluster) ||
        (found->bind_address[0] != '\0' &&
         cmd_may_join(found->cluster, found->task_type, found->task_index)))
        return 0;
    return cmd_spec_validate(found->cluster, found->task_type, found->task_index,
                             ret_error);
}

int resolve_find(struct resolve *resolve, mu_error *ret_error)
{
    int rv =
        mu_resolver_resolve(resolve->resolver, cmd_resolve_timeout_ms(resolve->options),
                            ret_error, &resolve->found);

    if (rv == 0)
        apply_task(resolve);
    return rv;
}

static int print_found(const struct resolve *resolve)
{
    if (cmd_number(resolve->options, CMD_FLAG_RESOLVE_OUTPUT) == RESOLVE_TF_CONFIG)
        return resolve_print_tf_config(resolve);
    return resolve_print(resolve);
}

/* Errors in flags are usage errors (CMD_USAGE), errors of sources are failures
 * (CMD_FAILED). */
static int resolve_and_print(struct resolve *resolve, mu_error *error)
{
    bool explains = cmd_number(resolve->options, CMD_FLAG_EXPLAIN) == 1;
    int rv;

    if (cmd_text(resolve->options, CMD_FLAG_CLUSTER) != NULL)
        return read_flags(resolve, error) != 0 || check_flags_task(resolve, error) != 0
                   ? CMD_USAGE
               : print_found(resolve) != 0 ? CMD_FAILED
                                           : CMD_FINE;
    if (cmd_spec_task(resolve->options, error, &resolve->flags) != 0 ||
        cmd_resolver_open(resolve->options, error, &resolve->resolver) != 0 ||
        set_resolver_task(resolve, error) != 0)
        return CMD_USAGE;
    rv = resolve_find(resolve, error);
    if (explains)
        resolve->tried = mu_resolver_explain(resolve->resolver);
    if (rv != 0) {
        if (explains)
            (void)resolve_print_failure(resolve, error);
        return CMD_FAILED;
    }
    if (print_found(resolve) != 0)
        return CMD_FAILED;
    return check_flags_task(resolve, error) == 0 ? CMD_FINE : CMD_FAILED;
}

int cmd_resolve(struct cmd_options *options)
{
    struct resolve resolve = {.options = options};
    mu_error error = {.message = "out of memory"};
    int code;

    if (cmd_number(options, CMD_FLAG_LIST) == 1)
        return resolve_list(options);
    mu_resolution_init(&resolve.found);
    code = resolve_and_print(&resolve, &error);
    if (code == CMD_FINE && resolve.resolver != NULL &&
        cmd_number(options, CMD_FLAG_RESOLVE_WATCH) == 1)
        code = resolve_watch(&resolve);
    else if (code != CMD_FINE)
        (void)fprintf(stderr, "muster resolve: %s\n", error.message);
    mu_cluster_free(resolve.found.cluster);
    mu_value_free(resolve.tried);
    mu_resolver_free(resolve.resolver);
    return code;
}
