/* The end of a run of independent tasks: tasks that only serve (parameter servers) wait
 * for it, and the leading task ends it once they are connected. */
#include "api/distribute/independent.h"

#include "actors/task_set.h"
#include "node/deadline.h"
#include "node/node.h"

#include "muster/coordination.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum {
    LEAVE_MS = 5000, /* for the others to leave after the end, */
    ALONE_MS = 200,  /* and for one look at whether they have */
    PAUSE_MS = 20,
    STATUS_MS = 1000
};

/* ---- serving ---- */

/* Lock held. */
static int await_end(struct mu__task_news *news, int64_t timeout_ms, mu_error *ret_error)
{
    uint64_t deadline_ns = mu__deadline_in(timeout_ms);

    while (!news->heard[NEWS_ENDED] && !news->job_done)
        if (!mu__deadline_wait(deadline_ns, &news->moved, &news->lock))
            return mu_error_set(ret_error, -MU_EDEADLINE,
                                "the leading task has not ended the job within %" PRId64
                                " ms",
                                timeout_ms);
    *ret_error = news->job;
    return news->job.code == -MU_ECLOSED ? -MU_ECLOSED : 0;
}

/* Whether only this task is connected; also when the service does not answer. */
static bool is_only_connected_task(mu_node *node)
{
    const char *self = mu_node_task(node);
    mu_value *states = NULL;
    bool alone = true;

    if (mu_tasks_states(node, NULL, ALONE_MS, NULL, &states) != 0)
        return true;
    for (size_t i = 0; i < mu_value_count(states); i++) {
        const mu_value *one = mu_value_at(states, i);
        const char *task = "";
        const char *state = "";
        size_t size;

        (void)mu_value_get_string(mu_value_find(one, "task"), &task, &size);
        (void)mu_value_get_string(mu_value_find(one, "state"), &state, &size);
        if (strcmp(task, self) != 0 && strcmp(state, "connected") == 0)
            alone = false;
    }
    mu_value_free(states);
    return alone;
}

static bool hosts_service(mu_node *node)
{
    mu_value *service;
    const char *task = "";
    bool hosts;
    size_t size;

    if (mu_agent_service(node, NULL, &service) != 0)
        return false;
    (void)mu_value_get_string(mu_value_find(service, "task"), &task, &size);
    hosts = strcmp(task, mu_node_task(node)) == 0;
    mu_value_free(service);
    return hosts;
}

/* The service's host stays until the others have got the key of the end, and have
 * left. */
static void host_to_the_end(mu_node *node, int64_t timeout_ms)
{
    uint64_t deadline_ns =
        mu__deadline_in(timeout_ms < 0 || timeout_ms > LEAVE_MS ? LEAVE_MS : timeout_ms);

    if (!hosts_service(node))
        return;
    while (!is_only_connected_task(node) && uv_hrtime() < deadline_ns)
        uv_sleep(PAUSE_MS);
}

/* Without a chief the end of the job is a key. */
static int join_by_key(struct mu__distribution *run, mu_error *ret_error)
{
    int rv = mu__tasks_open(run, ret_error);

    if (rv == 0 && run->news == NULL)
        return mu_node_wait_job(run->node, run->options.join_timeout_ms, ret_error);
    if (rv == 0)
        rv = mu__tasks_begin_job_wait(run, ret_error);
    if (rv != 0)
        return rv;
    uv_mutex_lock(&run->news->lock);
    rv = await_end(run->news, run->options.join_timeout_ms, ret_error);
    uv_mutex_unlock(&run->news->lock);
    if (rv == 0)
        host_to_the_end(run->node, -1);
    return rv;
}

int mu__tasks_join(struct mu__distribution *run, mu_error *ret_error)
{
    mu_error job = {0};
    int rv;

    if (run->node == NULL)
        return mu_server_join(run->server, run->options.join_timeout_ms, ret_error);
    (void)mu_node_serve(run->node);
    if (mu_cluster_task_count(run->spec.cluster, "chief") == 0)
        rv = join_by_key(run, &job);
    else
        rv = mu_node_wait_job(run->node, run->options.join_timeout_ms, &job);
    if (rv != -MU_ECLOSED)
        run->node->program.reasons.by_job = rv == 0 && job.code != 0;
    if (ret_error != NULL && job.code != 0)
        *ret_error = job;
    return rv != 0 ? rv : job.code;
}

static int end_by_key(mu_node *node, const mu_error *why, int64_t timeout_ms,
                      mu_error *ret_error)
{
    mu_value *result;
    int rv;

    if (!mu__tasks_have_service(node))
        return 0;
    result = mu__result_make(why->code, NULL, why);
    if (result == NULL)
        return mu_error_set(ret_error, -MU_ENOMEM, "no memory to end the job");
    rv = mu__tasks_put(node, MU__TASKS_ENDED_KEY, result, MU_KV_OVERWRITE, MU__SERVICE_MS,
                       ret_error);
    mu_value_free(result);
    if (rv == 0)
        host_to_the_end(node, timeout_ms);
    return rv;
}

int mu__tasks_end(mu_node *node, bool has_chief, const mu_error *why, int64_t timeout_ms,
                  mu_error *ret_error)
{
    if (node == NULL)
        return 0;
    if (!has_chief)
        return end_by_key(node, why, timeout_ms, ret_error);
    return mu_node_finish_job(node, why->code, why->code == 0 ? "" : why->message,
                              timeout_ms, ret_error);
}

/* ---- waiting for tasks that only serve ---- */

/* Wait until the service has them as connected. A task whose job is not coordinated, an
 * evaluator say, is unknown to it (-MU_ENOTFOUND) before that. */
static int await_states(mu_node *node, const char *tasks, uint64_t deadline_ns,
                        mu_error *ret_error)
{
    int64_t left_ms = mu__deadline_left_ms(deadline_ns);
    mu_value *states = NULL;
    int rv = mu_tasks_wait(node, tasks, left_ms, ret_error, &states);

    while (rv == -MU_ENOTFOUND && left_ms != 0) {
        uv_sleep(PAUSE_MS);
        left_ms = mu__deadline_left_ms(deadline_ns);
        rv = mu_tasks_wait(node, tasks, left_ms, ret_error, &states);
    }
    mu_value_free(states);
    return rv;
}

static uint64_t count_connected(mu_node *node, const struct mu__task_set *tasks)
{
    mu_value *status = NULL;
    const mu_value *list;
    uint64_t count = 0;

    if (mu_node_status(node, STATUS_MS, NULL, &status) != 0)
        return 0;
    list = mu_value_find(status, "tasks");
    for (size_t i = 0; i < mu_value_count(list); i++) {
        const mu_value *task = mu_value_at(list, i);
        const char *type = "";
        int64_t index = -1;
        size_t size;

        (void)mu_value_get_string(mu_value_find(task, "type"), &type, &size);
        (void)mu_value_get_int(mu_value_find(task, "index"), &index);
        if (index >= 0 && mu__task_set_has(tasks, type, (uint32_t)index))
            count++;
    }
    mu_value_free(status);
    return count;
}

/* The same by this task's own links: the service answers no task in error, and a run that
 * has failed brings its leading task into that state. */
static int await_task_links(mu_node *node, const char *text, int64_t timeout_ms,
                            mu_error *ret_error)
{
    uint64_t deadline_ns = mu__deadline_in(timeout_ms);
    struct mu__task_set tasks = {0};
    int rv = mu__task_set_parse(mu__view_str(text), ret_error, &tasks);

    while (rv == 0 && count_connected(node, &tasks) < mu__task_set_count(&tasks)) {
        if (uv_hrtime() >= deadline_ns)
            rv = mu_error_set(ret_error, -MU_EDEADLINE,
                              "not all of %.200s connected within %lld ms", text,
                              (long long)timeout_ms);
        else
            uv_sleep(PAUSE_MS);
    }
    mu__task_set_done(&tasks);
    return rv;
}

void mu__tasks_await_joining(struct mu__distribution *run)
{
    uint64_t deadline_ns = mu__deadline_in(run->options.end_timeout_ms);
    char *tasks = mu__plan_joining(&run->plan, run->spec.cluster, run->spec.task_type,
                                   run->spec.task_index);
    mu_error error = {0};
    int rv = 0;

    if (tasks != NULL && tasks[0] != '\0' && mu__tasks_have_service(run->node)) {
        rv = await_states(run->node, tasks, deadline_ns, &error);
        if (rv != 0 && rv != -MU_EDEADLINE && rv != -MU_ECLOSED)
            rv = await_task_links(run->node, tasks, mu__deadline_left_ms(deadline_ns),
                                  &error);
    }
    if (rv != 0)
        mu__distribution_say(run, MU_LOG_WARN,
                             "not all serving tasks learn that the job is done: %s",
                             error.message);
    free(tasks);
}
