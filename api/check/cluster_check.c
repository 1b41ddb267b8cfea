/* mu_cluster_check: reviews a cluster spec, probes each address, asks each node that
 * answers which task it is and whom it reaches; and mu_cluster_read. */
#include "api/check/cluster_check.h"

#include "node/member/service_options.h"
#include "resolver/engine/resolver.h"
#include "resolver/spec/cluster.h"
#include "runtime/message/arguments.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- the configuration ---- */

static mu_value *problems_value(const struct mu__problems *problems)
{
    static const char *const grades[] = {"error", "warning", "note"};
    mu_value *list = mu_value_list();

    for (size_t i = 0; i < problems->count; i++) {
        mu_value *map = mu_value_map();

        (void)mu_value_set(map, "grade",
                           mu_value_string(grades[problems->rows[i].grade]));
        (void)mu_value_set(map, "text", mu_value_string(problems->rows[i].text));
        (void)mu_value_append(list, map);
    }
    return list;
}

int mu_cluster_read(const char *json, size_t size, const char *source,
                    mu_error *ret_error, mu_cluster **ret_cluster,
                    mu_value **ret_problems)
{
    MU__REQUIRE(ret_error, json, source, ret_cluster, ret_problems);

    struct mu__problems problems = {.rows = NULL};
    int rv = mu__problems_read(&problems, json, size, source,
                               mu__spec_is_tf_config(json, size), ret_cluster);

    if (rv == 0)
        *ret_problems = problems_value(&problems);
    else
        rv = mu_error_set(ret_error, rv, "%s: no memory", source);
    mu__problems_done(&problems);
    return rv;
}

static void read_hosts(struct cluster_check *check)
{
    mu_error error;

    if (mu__service_hosts(check->cluster, check->options->service_hosts, &error,
                          &check->hosts) != 0)
        mu__problems_add(&check->problems, MU__PROBLEM_ERROR, "%s", error.message);
    else if (check->hosts[0] == '\0')
        mu__problems_add(&check->problems, MU__PROBLEM_NOTE,
                         "no task hosts the coordination service");
}

/* ---- the tasks ---- */

static int list_tasks(struct cluster_check *check)
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
        task->url = mu_cluster_url(check->cluster, task->type, task->index);
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

static int probe_tasks(struct cluster_check *check)
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
    return mu__probe_all(check->probes, count, check->timeout_ms,
                         check->proof == NULL ? NULL
                                              : mu__own_proof_source(check->proof));
}

/* Make a link for each address at which a node answers. Tasks with the same address share
 * one: a node refuses a second link of the same client. */
static void make_links(struct cluster_check *check)
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
static const char *get_probe_words(const struct mu__probe *probe)
{
    static const char *const words[] = {
        [MU__PROBE_GREETS] = NULL,
        [MU__PROBE_NO_NAME] = "its name does not resolve",
        [MU__PROBE_REFUSED] = "connection refused: nothing listens there",
        [MU__PROBE_SILENT] = "no answer: is the machine up, or is there a firewall?",
        [MU__PROBE_MUTE] = "it is connected, but says nothing: does its process stand "
                           "still, does it wait for tasks of the cluster that are "
                           "missing, or is it another server (HTTP, say), which waits "
                           "for whole requests?",
        [MU__PROBE_NO_WAY] = "there is no way to it",
    };

    return probe->state == MU__PROBE_OTHER ? probe->why : words[probe->state];
}

static void judge_greeting(const struct cluster_check *check, struct check_task *task)
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
                       link->why[0] == '\0' ? "its identity was not requested"
                                            : link->why);
}

static void judge_probe(const struct cluster_check *check, struct check_task *task)
{
    const char *words = task->probe == NULL ? NULL : get_probe_words(task->probe);
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

static int look_at_tasks(struct cluster_check *check, mu_error *error)
{
    if (list_tasks(check) != 0 || probe_tasks(check) != 0)
        return mu_error_set(error, -MU_ENOMEM, "out of memory");
    make_links(check);
    mu__check_links(check);
    for (size_t i = 0; i < check->tasks_count; i++)
        judge_probe(check, &check->tasks[i]);
    return 0;
}

/* ---- the report ---- */

static void set_report_text(mu_value *map, const char *key, const char *text)
{
    (void)mu_value_set(map, key, mu_value_string(text));
}

static mu_value *make_task_report(const struct cluster_check *check,
                                  const struct check_task *task)
{
    static const char *const outcomes[] = {"answers", "wrong", "away", "not tried"};
    mu_value *map = mu_value_map();
    char words[CHECK_DOES_BYTES];

    mu__check_describe(check, task, words);
    set_report_text(map, "task", task->name);
    set_report_text(map, "address", task->address);
    set_report_text(map, "does", words);
    set_report_text(map, "resolves_to", task->probe == NULL ? "" : task->probe->found);
    if (task->probe != NULL && task->probe->others[0] != '\0') {
        set_report_text(map, "at", task->probe->at);
        set_report_text(map, "not_at", task->probe->others);
    }
    set_report_text(map, "state", outcomes[task->outcome]);
    set_report_text(map, "why", task->words);
    (void)mu_value_set(map, "took_ms", mu_value_int((int64_t)task->took_ms));
    return map;
}

static mu_value *make_check_report(struct cluster_check *check)
{
    mu_value *map = mu_value_map();
    mu_value *tasks = mu_value_list();

    for (size_t i = 0; i < check->tasks_count; i++)
        (void)mu_value_append(tasks, make_task_report(check, &check->tasks[i]));
    (void)mu_value_set(map, "problems", problems_value(&check->problems));
    (void)mu_value_set(map, "tasks", tasks);
    (void)mu_value_set(map, "peers",
                       check->peers == NULL ? mu_value_list() : check->peers);
    check->peers = NULL;
    return map;
}

/* ---- the call ---- */

/* A check is over before a file changes. */
static void ignore_change(void *owner, const char *line)
{
    (void)owner;
    (void)line;
}

static int check_whole_cluster(struct cluster_check *check, mu_error *error)
{
    static const struct mu__own_proof_log log = {ignore_change, NULL};
    int rv =
        mu__read_worker_types(check->options->worker_types, error, &check->worker_types);

    if (rv == 0)
        rv = mu__own_proof_open(check->options, true, &log, error, &check->proof);
    if (rv != 0)
        return rv;
    mu__problems_check(&check->problems, check->cluster, check->options->task_type,
                       check->options->task_index);
    if (!mu_cluster_is_empty(check->cluster))
        read_hosts(check);
    return look_at_tasks(check, error);
}

int mu_cluster_check(const mu_node_options *options, int64_t timeout_ms,
                     mu_error *ret_error, mu_value **ret_report)
{
    MU__REQUIRE(ret_error, options, ret_report);

    mu_node_options own;
    struct cluster_check check = {
        .options = &own,
        .timeout_ms =
            timeout_ms < 0 || timeout_ms > UINT32_MAX ? UINT32_MAX : (unsigned)timeout_ms,
    };
    int rv = MU__OPTIONS_READ(mu_node_options, options, ret_error, &own);

    check.cluster = own.cluster;
    if (rv == 0)
        rv = check_whole_cluster(&check, ret_error);
    if (rv == 0)
        *ret_report = make_check_report(&check);
    mu__problems_done(&check.problems);
    mu__own_proof_close(check.proof);
    mu_value_free(check.peers);
    free(check.hosts);
    free(check.tasks);
    free(check.probes);
    free(check.links);
    return rv;
}
