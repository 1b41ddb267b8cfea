/* `muster node`: runs one task, as mu_task_main does. */
#include "cli/output/log.h"
#include "cli/resolve/cluster_flags.h"
#include "cli/resolve/resolver_flags.h"
#include "cli/run/python.h"
#include "cli/verbs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct node_verb {
    const struct cmd_options *options;
    struct cmd_log log;
    struct cmd_spec spec;
};

/* ---- options ---- */

/* -1 when no flag has an index and a resolver may choose one. Chief and evaluator always
 * have index 0. */
static int get_node_index(const struct cmd_options *o, const struct cmd_spec *spec)
{
    bool said = o->values[CMD_FLAG_TASK].text != NULL ||
                o->values[CMD_FLAG_INDEX].source != CMD_FROM_DEFAULT;

    return said || spec->resolver == NULL || spec->cluster != NULL ||
                   strcmp(spec->type, "chief") == 0 ||
                   strcmp(spec->type, "evaluator") == 0
               ? spec->index
               : -1;
}

static mu_node_options node_options(struct node_verb *verb)
{
    const struct cmd_options *o = verb->options;
    const struct cmd_spec *spec = &verb->spec;
    mu_node_options options;

    mu_node_options_init(&options);
    cmd_node_options(o, &options);
    if (cmd_number(o, CMD_FLAG_PROCESSES) > 0)
        options.threads = cmd_number(o, CMD_FLAG_PROCESSES);
    options.cluster = spec->cluster;
    options.resolver = spec->resolver;
    options.task_type = spec->type[0] == '\0' ? NULL : spec->type;
    options.task_index = get_node_index(o, spec);
    options.bind_address = cmd_text(o, CMD_FLAG_BIND);
    if (options.bind_address == NULL && spec->found.bind_address[0] != '\0')
        options.bind_address = spec->found.bind_address;
    options.advertise_address = cmd_text(o, CMD_FLAG_ADVERTISE);
    options.log = cmd_log_line;
    options.log_user = &verb->log;
    options.log_level = verb->log.level;
    return options;
}

/* The assigned cluster replaces these flags. */
static int check_waiting(const struct cmd_options *options, mu_error *error)
{
    static const enum cmd_flag others[] = {CMD_FLAG_CLUSTER, CMD_FLAG_TASK,
                                           CMD_FLAG_TYPE};

    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
        if (options->values[others[i]].source == CMD_FROM_LINE)
            return mu_error_set(error, -MU_EINVALID,
                                "--wait-cluster: expected no --%s beside it",
                                cmd_flag_name(others[i]));
    if (cmd_text(options, CMD_FLAG_BIND) == NULL)
        return mu_error_set(error, -MU_EINVALID,
                            "--wait-cluster: expected --bind beside it, where the server "
                            "waits");
    return 0;
}

/* Set CUDA_VISIBLE_DEVICES to this task's share of the machine's accelerators, before any
 * library looks for devices. */
static int set_devices(const struct cmd_spec *spec, mu_error *error)
{
    const char *devices = spec->found.visible_devices;

    if (devices[0] == '\0' || setenv("CUDA_VISIBLE_DEVICES", devices, 1) == 0)
        return 0;
    return mu_error_set(error, -MU_ENOMEM, "CUDA_VISIBLE_DEVICES: out of memory");
}

/* ---- the node ---- */

static int apply_setting(const struct cmd_options *options, mu_node *node,
                         const char *text, mu_error *error)
{
    const char *value;
    char *key;
    int rv = cmd_setting_split(options, text, error, &key, &value);

    if (rv != 0)
        return rv;
    rv = mu_node_set_setting(node, key, value);
    free(key);
    return rv == 0 ? 0 : mu_error_set(error, rv, "out of memory");
}

static int prepare_node(mu_node *node, void *user, mu_error *error)
{
    const struct node_verb *verb = user;
    const struct cmd_value *settings = &verb->options->values[CMD_FLAG_SET];
    const struct cmd_value *plugins = &verb->options->values[CMD_FLAG_PLUGIN];
    int rv = 0;

    for (size_t i = 0; rv == 0 && i < settings->items_count; i++)
        rv = apply_setting(verb->options, node, settings->items[i], error);
    for (size_t i = 0; rv == 0 && i < plugins->items_count; i++)
        rv = mu_node_load_plugin(node, plugins->items[i], error);
    return rv == 0 ? cmd_python_load(verb->options, node, error) : rv;
}

static int reopen_node_log(void *user)
{
    struct node_verb *verb = user;

    return cmd_log_reopen(&verb->log);
}

static int run_task(struct node_verb *verb)
{
    const struct cmd_options *o = verb->options;
    const mu_node_options node = node_options(verb);
    mu_task_options task;
    mu_error none;

    (void)cmd_spec_none(&none);
    mu_task_options_init(&task);
    task.node = &node;
    task.mode = cmd_mode(o);
    task.ignore_environment = cmd_text(o, CMD_FLAG_CLUSTER) != NULL;
    task.grace_ms = cmd_number(o, CMD_FLAG_GRACE_MS);
    task.preempt_on_sigterm = cmd_number(o, CMD_FLAG_PREEMPT_ON_SIGTERM);
    if (o->values[CMD_FLAG_RESTART_EXIT_CODE].source != CMD_FROM_DEFAULT)
        task.restart_exit_code = (int)cmd_number(o, CMD_FLAG_RESTART_EXIT_CODE);
    task.wait_cluster = cmd_number(o, CMD_FLAG_WAIT_CLUSTER);
    task.no_cluster = cmd_resolver_is_given(o) ? NULL : none.message;
    task.prepare = prepare_node;
    task.reopen_log = reopen_node_log;
    task.stacks_fd = verb->log.fd;
    task.user = verb;
    return mu_task_main(&task);
}

int cmd_node(struct cmd_options *options)
{
    struct node_verb verb = {.options = options};
    mu_error error;
    int code = CMD_USAGE;
    int rv;

    cmd_python_become(options);
    /* Line buffering, also for a pipe, so that lines of plugins appear at once. */
    (void)setvbuf(stdout, NULL, _IOLBF, 0);
    if (cmd_log_open(options, &error, &verb.log) != 0) {
        (void)fprintf(stderr, "muster node: %s\n", error.message);
        return CMD_USAGE;
    }
    rv = cmd_number(options, CMD_FLAG_WAIT_CLUSTER) != 0
             ? check_waiting(options, &error)
             : cmd_spec_read(options, &error, &verb.spec);
    if (rv == 0)
        rv = set_devices(&verb.spec, &error);
    if (rv != 0)
        cmd_log_say(&verb.log, MU_LOG_ERROR, "muster", "%s", error.message);
    else
        code = run_task(&verb);
    cmd_spec_done(&verb.spec);
    cmd_log_close(&verb.log);
    return code;
}
