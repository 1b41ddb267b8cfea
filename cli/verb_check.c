/* `muster check`: checks a configuration, whether its tasks answer, and whether they
 * reach each other. */
#include "cli/resolve/check.h"

#include "cli/resolve/cluster_flags.h"
#include "cli/resolve/resolver_flags.h"
#include "cli/verbs.h"
#include "node/member/service_options.h"
#include "resolver/engine/resolver.h"
#include "resolver/spec/cluster.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- the configuration ---- */

static void take_spec(struct check *check, const struct cmd_spec *spec)
{
    memcpy(check->own_type, spec->type, sizeof check->own_type);
    check->own_index = spec->index;
}

/* Parse a text and list all its errors. If there are any, the task comes from the flags
 * only. */
static int read_text(struct check *check, const struct cmd_spec_text *text,
                     mu_error *error)
{
    struct cmd_spec spec = {0};
    bool is_right;

    (void)snprintf(check->source, sizeof check->source, "%s", text->source);
    if (mu__problems_read(&check->problems, text->text, text->size, text->source,
                          text->is_tf_config, &check->cluster) != 0)
        return mu_error_set(error, -MU_ENOMEM, "out of memory");
    is_right = check->problems.of_grade[MU__PROBLEM_ERROR] == 0;
    if ((is_right ? cmd_spec_find : cmd_spec_task)(check->options, error, &spec) != 0)
        mu__problems_add(&check->problems, MU__PROBLEM_ERROR, "%s", error->message);
    take_spec(check, &spec);
    cmd_spec_done(&spec);
    return 0;
}

/* For resolvers through which tasks announce themselves: take the present tasks as the
 * cluster, whatever is expected. */
static void expect_none(mu_resolver *resolver)
{
    static const char *const kinds[] = {"directory", "etcd"};
    char setting[32];

    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        (void)snprintf(setting, sizeof setting, "%s.tasks", kinds[i]);
        (void)mu_resolver_set(resolver,
                              strcmp(mu__resolver_name(resolver), kinds[i]) == 0
                                  ? "tasks"
                                  : setting,
                              "any", NULL);
    }
}

/* Resolve the tasks that are present. `error` names the missing ones, and becomes a
 * warning. */
static int find_part(struct check *check, mu_error *error, struct cmd_spec *ret_spec)
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
    expect_none(resolver);
    rv = mu_resolver_resolve(resolver, 0, &inner, &found);
    mu_resolver_free(resolver);
    if (rv != 0)
        return rv;
    mu__problems_add(&check->problems, MU__PROBLEM_WARNING, "%s", error->message);
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
        find_part(check, error, &spec) == 0)
        rv = 0;
    if (rv != 0)
        return rv;
    take_spec(check, &spec);
    check->cluster = spec.cluster;
    spec.cluster = NULL;
    (void)snprintf(check->source, sizeof check->source, "%s", spec.source);
    cmd_spec_done(&spec);
    return check->cluster != NULL ? 0 : cmd_spec_none(error);
}

static int read_cluster(struct check *check, mu_error *error)
{
    struct cmd_spec_text text = {0};
    int rv = cmd_spec_text(check->options, error, &text);

    if (rv == 0)
        rv = text.text != NULL ? read_text(check, &text, error)
                               : read_found(check, error);
    free(text.content);
    return rv;
}

static void read_hosts(struct check *check)
{
    const char *text = cmd_text(check->options, CMD_FLAG_SERVICE_HOSTS);
    mu_error error;

    if (mu__service_hosts(check->cluster, text, &error, &check->hosts) != 0)
        mu__problems_add(&check->problems, MU__PROBLEM_ERROR, "%s", error.message);
    else if (check->hosts[0] == '\0')
        mu__problems_add(&check->problems, MU__PROBLEM_NOTE,
                         "no task hosts the coordination service");
}

static int read_configuration(struct check *check, mu_error *error)
{
    int rv = read_cluster(check, error);

    if (rv != 0)
        return rv;
    mu__problems_check(&check->problems, check->cluster,
                       check->own_type[0] == '\0' ? NULL : check->own_type,
                       check->own_index);
    if (!mu_cluster_is_empty(check->cluster))
        read_hosts(check);
    return mu__read_worker_types(cmd_text(check->options, CMD_FLAG_WORKER_TYPES), error,
                                 &check->worker_types);
}

/* ---- the tasks ---- */

static int list_tasks(struct check *check)
{
    size_t count = mu_cluster_task_count(check->cluster, NULL);

    check->tasks = calloc(count + 1, sizeof *check->tasks);
    check->probes = calloc(count + 1, sizeof *check->probes);
    check->links = calloc(count + 1, sizeof *check->links);
    if (check->tasks == NULL || check->probes == NULL || check->links == NULL)
        return -MU_ENOMEM;
    for (size_t i = 0; i < count; i++) {
        struct check_task *task = &check->tasks[i];

        (void)mu_cluster_task_at(check->cluster, i, &task->type, &task->index,
                                 &task->address);
        task->url = mu__cluster_url(check->cluster, task->type, task->index);
        task->link = -1;
        mu__task_name(task->name, sizeof task->name, task->type, task->index);
    }
    check->tasks_count = count;
    return 0;
}

static bool has_no_port(const char *url)
{
    size_t length = strlen(url);

    return strncmp(url, "ipc:", 4) != 0 && length > 2 &&
           strcmp(url + length - 2, ":0") == 0;
}

static int probe(struct check *check)
{
    size_t count = 0;

    for (size_t i = 0; i < check->tasks_count; i++) {
        struct check_task *task = &check->tasks[i];

        if (has_no_port(task->url)) {
            task->outcome = CHECK_SKIPPED;
            (void)snprintf(task->words, sizeof task->words,
                           "not tried: its port is chosen when it starts");
            continue;
        }
        task->probe = &check->probes[count++];
        task->probe->url = task->url;
    }
    return mu__probe_all(check->probes, count,
                         cmd_number(check->options, CMD_FLAG_WAIT_MS),
                         check->proof == NULL ? NULL
                                              : mu__own_proof_source(check->proof));
}

/* Make a link for each address at which a node answers. Tasks with the same address share
 * one: a node refuses a second link of the same client. */
static void make_links(struct check *check)
{
    for (size_t i = 0; i < check->tasks_count; i++) {
        struct check_task *task = &check->tasks[i];
        struct check_link *link = check->links;
        char url[CHECK_URL_BYTES];

        if (task->probe == NULL || task->probe->state != MU__PROBE_GREETS)
            continue;
        (void)snprintf(url, sizeof url, "%s%s",
                       task->probe->at[0] == '/' ? "ipc://" : "tcp://", task->probe->at);
        while (link < check->links + check->links_count && strcmp(link->url, url) != 0)
            link++;
        if (link == check->links + check->links_count) {
            memcpy(link->url, url, sizeof url);
            check->links_count++;
        }
        task->link = (int)(link - check->links);
    }
}

/* ---- results ---- */

/* The text for a probe's state; NULL when a node answered. */
static const char *words_of(const struct check *check, const struct mu__probe *probe)
{
    static const char *const words[] = {
        [MU__PROBE_GREETS] = NULL,
        [MU__PROBE_NO_NAME] = "its name does not resolve",
        [MU__PROBE_REFUSED] = "connection refused: nothing listens there",
        [MU__PROBE_SILENT] = "no answer: is the machine up, or is there a firewall?",
        [MU__PROBE_MUTE] = "it is connected, but says nothing: does its process stand "
                           "still, or is it another server (HTTP, say), which waits for "
                           "whole questions?",
        [MU__PROBE_NO_WAY] = "there is no way to it",
    };

    if (probe->state == MU__PROBE_MUTE && check->is_incomplete)
        return "it is connected, and does not greet yet: a node greets once all tasks of "
               "the cluster are there, and some are missing";
    return probe->state == MU__PROBE_OTHER ? probe->why : words[probe->state];
}

static void judge_greeting(const struct check *check, struct check_task *task)
{
    const struct check_link *link = &check->links[task->link];

    task->took_ms += link->took_ms;
    if (link->is_up && strcmp(link->task, task->name) == 0)
        return;
    task->outcome = CHECK_WRONG;
    if (link->is_up)
        (void)snprintf(task->words, sizeof task->words, "it is %s of this cluster",
                       link->task);
    else
        (void)snprintf(task->words, sizeof task->words, "%s",
                       link->why[0] == '\0' ? "it was not asked who it is" : link->why);
}

static void judge(const struct check *check, struct check_task *task)
{
    const char *words = task->probe == NULL ? NULL : words_of(check, task->probe);
    bool has_why;

    if (task->probe == NULL)
        return;
    task->took_ms = task->probe->took_ms;
    if (words == NULL) {
        judge_greeting(check, task);
        return;
    }
    has_why = task->probe->why[0] != '\0' && words != task->probe->why;
    task->outcome = task->probe->state == MU__PROBE_OTHER ? CHECK_WRONG : CHECK_AWAY;
    (void)snprintf(task->words, sizeof task->words, "%s%s%s%s", words,
                   has_why ? " (" : "", has_why ? task->probe->why : "",
                   has_why ? ")" : "");
}

static int look_at_tasks(struct check *check, mu_error *error)
{
    if (list_tasks(check) != 0 || probe(check) != 0)
        return mu_error_set(error, -MU_ENOMEM, "out of memory");
    make_links(check);
    check_links(check);
    for (size_t i = 0; i < check->tasks_count; i++)
        judge(check, &check->tasks[i]);
    return 0;
}

static int code_of(const struct check *check)
{
    bool is_away = false;
    bool is_wrong = check_pairs(check, NULL, NULL) > 0;

    if (check->problems.of_grade[MU__PROBLEM_ERROR] > 0)
        return CMD_USAGE;
    for (size_t i = 0; i < check->tasks_count; i++) {
        is_away = is_away || check->tasks[i].outcome == CHECK_AWAY;
        is_wrong = is_wrong || check->tasks[i].outcome != CHECK_FINE;
    }
    return is_away || check->is_incomplete ? CMD_UNREACHED
           : is_wrong                      ? CMD_FAILED
                                           : CMD_FINE;
}

/* ---- the verb ---- */

/* A check is over before a file changes. */
static void ignore_change(void *owner, const char *line)
{
    (void)owner;
    (void)line;
}

static int open_proof(struct check *check, mu_error *error)
{
    static const struct mu__own_proof_log log = {ignore_change, NULL};
    mu_node_options options;

    mu_node_options_init(&options);
    cmd_peer_options(check->options, &options);
    return mu__own_proof_open(&options, true, &log, error, &check->proof);
}

static int check_all(struct check *check, mu_error *error)
{
    int rv = read_configuration(check, error);

    if (rv != 0)
        return rv == -MU_EUNAVAILABLE || rv == -MU_EDEADLINE ? CMD_UNREACHED : CMD_USAGE;
    if (open_proof(check, error) != 0)
        return CMD_USAGE;
    if (look_at_tasks(check, error) != 0)
        return CMD_FAILED;
    error->message[0] = '\0';
    if (cmd_number(check->options, CMD_FLAG_OUTPUT) == 0)
        check_print_text(check);
    else if (check_print_json(check) != 0)
        return CMD_FAILED;
    return code_of(check);
}

static void done(struct check *check)
{
    mu__problems_done(&check->problems);
    mu__own_proof_close(check->proof);
    mu_cluster_free(check->cluster);
    mu_value_free(check->peers);
    free(check->hosts);
    free(check->tasks);
    free(check->probes);
    free(check->links);
}

int cmd_check(struct cmd_options *options)
{
    struct check check = {.options = options, .own_index = -1};
    mu_error error = {.message = "out of memory"};
    int code = CMD_USAGE;

    if (cmd_log_open_client(options, &error, &check.log) == 0) {
        code = check_all(&check, &error);
        cmd_log_close(&check.log);
    }
    if (code != CMD_FINE && error.message[0] != '\0')
        (void)fprintf(stderr, "muster check: %s\n", error.message);
    done(&check);
    return code;
}
