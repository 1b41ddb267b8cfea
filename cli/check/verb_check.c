/* `muster check`: checks a configuration, whether its tasks answer, and whether they
 * reach each other. */
#include "cli/check/check.h"

#include "cli/resolve/cluster_flags.h"
#include "cli/resolve/resolver_flags.h"

#include "muster/admin.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- the configuration ---- */

static void add_problem(struct check *check, const char *grade, const char *text)
{
    mu_value *map = mu_value_map();

    (void)mu_value_set(map, "grade", mu_value_string(grade));
    (void)mu_value_set(map, "text", mu_value_string(text));
    (void)mu_value_append(check->problems, map);
}

static void copy_own_task(struct check *check, const struct cmd_spec *spec)
{
    memcpy(check->own_type, spec->type, sizeof check->own_type);
    check->own_index = spec->index;
}

/* Parse a text and list all its errors. If there are any, the task comes from the flags
 * only. */
static int read_spec_text(struct check *check, const struct cmd_spec_text *text,
                          mu_error *error)
{
    struct cmd_spec spec = {0};
    bool is_right;
    int rv;

    (void)snprintf(check->source, sizeof check->source, "%s", text->source);
    mu_value_free(check->problems);
    check->problems = NULL;
    rv = mu_cluster_read(text->text, text->size, text->source, error, &check->cluster,
                         &check->problems);
    if (rv != 0)
        return rv;
    is_right = check_problems(check, "error") == 0;
    if ((is_right ? cmd_spec_find : cmd_spec_task)(check->options, error, &spec) != 0)
        add_problem(check, "error", error->message);
    copy_own_task(check, &spec);
    cmd_spec_done(&spec);
    return 0;
}

/* For resolvers through which tasks announce themselves: take the present tasks as the
 * cluster, whatever is expected. */
static void expect_none(const struct check *check, mu_resolver *resolver)
{
    static const char *const kinds[] = {"directory", "etcd"};
    const struct cmd_value *names = &check->options->values[CMD_FLAG_RESOLVER];
    char setting[32];

    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        bool is_alone = names->items_count == 1 && strcmp(names->items[0], kinds[i]) == 0;

        (void)snprintf(setting, sizeof setting, "%s%stasks", is_alone ? "" : kinds[i],
                       is_alone ? "" : ".");
        (void)mu_resolver_set(resolver, setting, "any", NULL);
    }
}

/* Resolve the tasks that are present. `error` names the missing ones, and becomes a
 * warning. */
static int resolve_present_tasks(struct check *check, mu_error *error,
                                 struct cmd_spec *ret_spec)
{
    struct cmd_spec spec = {0};
    mu_resolver *resolver = NULL;
    mu_resolution found;
    mu_error inner;
    int rv = cmd_spec_task(check->options, &inner, &spec);

    if (rv == 0)
        rv = cmd_resolver_open(check->options, &inner, &resolver);
    if (rv != 0)
        return rv;
    expect_none(check, resolver);
    rv = mu_resolver_resolve(resolver, 0, &inner, &found);
    mu_resolver_free(resolver);
    if (rv != 0)
        return rv;
    add_problem(check, "warning", error->message);
    check->is_incomplete = true;
    cmd_spec_fill_in(&spec, &found);
    *ret_spec = spec;
    return 0;
}

/* Read the cluster from a resolver. */
static int read_found(struct check *check, mu_error *error)
{
    struct cmd_spec spec = {0};
    int rv = cmd_spec_find(check->options, error, &spec);

    if ((rv == -MU_EUNAVAILABLE || rv == -MU_EDEADLINE) &&
        resolve_present_tasks(check, error, &spec) == 0)
        rv = 0;
    if (rv != 0)
        return rv;
    copy_own_task(check, &spec);
    check->cluster = spec.cluster;
    spec.cluster = NULL;
    (void)snprintf(check->source, sizeof check->source, "%s", spec.source);
    cmd_spec_done(&spec);
    return check->cluster != NULL ? 0 : cmd_spec_none(error);
}

static int read_checked_cluster(struct check *check, mu_error *error)
{
    struct cmd_spec_text text = {0};
    int rv = cmd_spec_text(check->options, error, &text);

    if (rv == 0)
        rv = text.text != NULL ? read_spec_text(check, &text, error)
                               : read_found(check, error);
    free(text.content);
    return rv;
}

/* ---- the verb ---- */

static int get_check_exit_code(const struct check *check)
{
    const mu_value *tasks = check_tasks(check);
    bool is_away = false;
    bool is_wrong = check_pairs(check, NULL, NULL) > 0;

    if (check_problems(check, "error") > 0)
        return CMD_USAGE;
    for (size_t i = 0; i < mu_value_count(tasks); i++) {
        const mu_value *task = mu_value_at(tasks, i);

        is_away = is_away || check_is(task, "away");
        is_wrong = is_wrong || !check_is(task, "answers");
    }
    return is_away || check->is_incomplete ? CMD_UNREACHED
           : is_wrong                      ? CMD_FAILED
                                           : CMD_FINE;
}

static int check_answers(struct check *check, mu_error *error)
{
    const struct cmd_options *o = check->options;
    mu_node_options options = cmd_client_options(o, &check->log, check->cluster);
    const mu_value *problems;
    int rv;

    options.task_type = check->own_type[0] == '\0' ? NULL : check->own_type;
    options.task_index = check->own_index;
    options.service_hosts = cmd_text(o, CMD_FLAG_SERVICE_HOSTS);
    options.worker_types = cmd_text(o, CMD_FLAG_WORKER_TYPES);
    rv = mu_cluster_check(&options, (int64_t)cmd_number(o, CMD_FLAG_WAIT_MS), error,
                          &check->report);
    problems = mu_value_find(check->report, "problems");
    for (size_t i = 0; i < mu_value_count(problems); i++)
        (void)mu_value_append(check->problems, mu_value_ref(mu_value_at(problems, i)));
    return rv;
}

static int run_check(struct check *check, mu_error *error)
{
    int rv = read_checked_cluster(check, error);

    if (rv != 0)
        return rv == -MU_EUNAVAILABLE || rv == -MU_EDEADLINE ? CMD_UNREACHED : CMD_USAGE;
    rv = check_answers(check, error);
    if (rv != 0)
        return rv == -MU_ENOMEM ? CMD_FAILED : CMD_USAGE;
    error->message[0] = '\0';
    if (cmd_number(check->options, CMD_FLAG_OUTPUT) == 0)
        check_print_text(check);
    else if (check_print_json(check) != 0)
        return CMD_FAILED;
    return get_check_exit_code(check);
}

int cmd_check(struct cmd_options *options)
{
    struct check check = {
        .options = options,
        .own_index = -1,
        .problems = mu_value_list(),
    };
    mu_error error = {.message = "out of memory"};
    int code = CMD_USAGE;

    if (cmd_log_open_client(options, &error, &check.log) == 0) {
        code = run_check(&check, &error);
        cmd_log_close(&check.log);
    }
    if (code != CMD_FINE && error.message[0] != '\0')
        (void)fprintf(stderr, "muster check: %s\n", error.message);
    mu_cluster_free(check.cluster);
    mu_value_free(check.problems);
    mu_value_free(check.report);
    return code;
}
