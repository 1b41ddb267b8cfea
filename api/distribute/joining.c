/* Tasks that join a run, parameter servers say, are told that it is over: the leading
 * task waits until they are there to hear it. */
#include "actors/task_set.h"
#include "api/distribute/distribute.h"
#include "node/node.h"

#include "muster/coordination.h"

#include <stdlib.h>
#include <string.h>

enum { PAUSE_MS = 20, STATUS_MS = 1000, MS_NS = 1000000 };

static int64_t left_of(int64_t timeout_ms, uint64_t began_ns)
{
    int64_t left_ms = timeout_ms - (int64_t)((uv_hrtime() - began_ns) / MS_NS);

    return timeout_ms < 0 ? -1 : left_ms < 0 ? 0 : left_ms;
}

/* As the service knows it. A task of a job that is not coordinated, an evaluator say, is
 * not even known before. */
static int await_states(mu_node *node, const char *tasks, int64_t timeout_ms,
                        mu_error *ret_error)
{
    const uint64_t began_ns = uv_hrtime();
    int64_t left_ms = timeout_ms;
    mu_value *states = NULL;
    int rv = mu_tasks_wait(node, tasks, left_ms, ret_error, &states);

    while (rv == -MU_ENOTFOUND && left_ms != 0) {
        uv_sleep(PAUSE_MS);
        left_ms = left_of(timeout_ms, began_ns);
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

/* By this task's own links: the service answers nobody who is in error, and a run that
 * has failed brings its leading task into that state. */
static int await_links(mu_node *node, const char *text, int64_t timeout_ms,
                       mu_error *ret_error)
{
    const uint64_t began_ns = uv_hrtime();
    struct mu__task_set tasks = {0};
    int rv = mu__task_set_parse(mu__view_str(text), ret_error, &tasks);

    while (rv == 0 && count_connected(node, &tasks) < mu__task_set_count(&tasks)) {
        if (left_of(timeout_ms, began_ns) == 0)
            rv = mu_error_set(ret_error, -MU_EDEADLINE, "not all of %.200s connected "
                              "within %lld ms", text, (long long)timeout_ms);
        else
            uv_sleep(PAUSE_MS);
    }
    mu__task_set_done(&tasks);
    return rv;
}

void mu__tasks_await_joining(struct mu__distribution *run)
{
    const uint64_t began_ns = uv_hrtime();
    int64_t timeout_ms = run->options.end_timeout_ms;
    char *tasks = mu__plan_joining(&run->plan, run->spec.cluster, run->spec.task_type,
                                   run->spec.task_index);
    mu_error error = {0};
    int rv = 0;

    if (tasks != NULL && tasks[0] != '\0' && mu__tasks_have_service(run->node)) {
        rv = await_states(run->node, tasks, timeout_ms, &error);
        if (rv != 0 && rv != -MU_EDEADLINE && rv != -MU_ECLOSED)
            rv = await_links(run->node, tasks, left_of(timeout_ms, began_ns), &error);
    }
    if (rv != 0)
        mu__distribution_say(run, MU_LOG_WARN,
                             "somebody does not hear that the job is done: %s",
                             error.message);
    free(tasks);
}
