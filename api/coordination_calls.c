/* The public coordination service: tasks, barriers, preemption. Checks, then one call to
 * the node's agent. */
#include "api/internal.h"

#include "actors/coordination/keys/key_map.h"
#include "actors/messages.h"
#include "actors/task_set.h"
#include "runtime/message/arguments.h"

#include "muster/actor.h"
#include "muster/admin.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- calling ---- */

struct mu__agent_detached *mu__agent_detached_new(int operation, const char *name)
{
    size_t size = strlen(name) + 1;
    struct mu__agent_detached *detached = calloc(1, sizeof *detached + size);

    if (detached == NULL)
        return NULL;
    memcpy(detached->name, name, size);
    detached->call.call.operation = operation;
    detached->call.call.timeout_ms = -1;
    detached->call.name = detached->name;
    return detached;
}

void mu__agent_detached_free(struct mu__agent_detached *detached)
{
    free(detached->tasks);
    free(detached);
}

/* The canonical text of a set of tasks; NULL is "". The caller frees it with free(). */
static int canonical_tasks(const char *tasks, mu_error *ret_error, char **ret_text)
{
    struct mu__task_set set = {0};
    char *text;
    int rv = 0;

    if (tasks != NULL)
        rv = mu__task_set_parse(mu__view_str(tasks), ret_error, &set);
    if (rv == 0 && tasks != NULL && set.count == 0)
        rv = mu_error_set(ret_error, -MU_EINVALID,
                          "a set of tasks is empty, expected one as \"worker:0-3,ps:0\", "
                          "or NULL for all");
    if (rv != 0)
        return rv;
    text = mu__task_set_text(&set);
    mu__task_set_done(&set);
    if (text == NULL)
        return mu_error_set(ret_error, -MU_ENOMEM, "no memory for a set of tasks");
    *ret_text = text;
    return 0;
}

int mu__check_key(const char *key, bool may_be_empty, mu_error *ret_error, char *out)
{
    uint32_t size = 0;
    int rv;

    if (key == NULL)
        return mu_error_set(ret_error, -MU_EINVALID, "a key is NULL");
    rv = mu__key_normalize(mu__view_str(key), may_be_empty, ret_error, out, &size);
    if (rv == 0)
        out[size] = '\0';
    return rv;
}

/* ---- this task ---- */

int mu_agent_state(mu_node *node, mu_error *ret_error)
{
    MU__REQUIRE_OR(MU_AGENT_UNINITIALIZED, node);

    int state = atomic_load_explicit(&node->member.agent.state, memory_order_acquire);
    struct mu__agent_call call = {.call.operation = MU__AGENT_STATE};
    const mu_error *error;

    if (state != MU_AGENT_ERROR || ret_error == NULL)
        return state;
    if (mu__node_on_loop(node)) {
        error = mu__agent_error(mu__actor_state(node->member.kernel,
                                                (mu__pid){MU__NODE_SELF, MU__AGENT}));
        if (error != NULL)
            *ret_error = *error;
        return state;
    }
    if (mu__agent_call_and_wait(node, &call, MU__AGENT_STATE, -1, NULL) == 0)
        *ret_error = call.call.error;
    return state;
}

int mu_agent_service(mu_node *node, mu_error *ret_error, mu_value **ret_service)
{
    MU__REQUIRE(ret_error, node, ret_service);

    struct mu__agent_call call = {.number = 0};
    int rv = mu__agent_call_and_wait(node, &call, MU__AGENT_SERVICE, -1, ret_error);

    if (rv == 0)
        *ret_service = call.content;
    return rv;
}

int mu_agent_register(mu_node *node, int barrier, int64_t timeout_ms, mu_error *ret_error)
{
    MU__REQUIRE(ret_error, node);

    struct mu__agent_call call = {.barrier = barrier != 0};

    return mu__agent_call_and_wait(node, &call, MU__AGENT_REGISTER, timeout_ms,
                                   ret_error);
}

int mu_agent_on_error(mu_node *node, mu_agent_error_fn on_error, void *user)
{
    MU__REQUIRE(NULL, node);

    struct mu__agent_call call = {.on_error = on_error, .user = user};

    return mu__agent_call_and_wait(node, &call, MU__AGENT_ON_ERROR, -1, NULL);
}

int mu__known_code(int code)
{
    return strcmp(mu_err_name(code), mu_err_name(-MU_EUNKNOWN)) == 0 ? -MU_EUNKNOWN
                                                                     : code;
}

static int set_failure(struct mu__agent_call *call, int code, const char *message,
                       mu_error *ret_error)
{
    if (code >= 0 || code != mu__known_code(code))
        return mu_error_set(ret_error, -MU_EINVALID,
                            "the code of an error is %d, expected a negative MU_E... "
                            "code",
                            code);
    (void)mu_error_set(&call->failure, code, "%.500s", message == NULL ? "" : message);
    return 0;
}

int mu_agent_report_error(mu_node *node, int code, const char *message,
                          int64_t timeout_ms, mu_error *ret_error)
{
    MU__REQUIRE(ret_error, node);

    struct mu__agent_call call = {.number = 0};
    int rv = set_failure(&call, code, message, ret_error);

    return rv != 0 ? rv
                   : mu__agent_call_and_wait(node, &call, MU__AGENT_REPORT, timeout_ms,
                                             ret_error);
}

int mu_agent_set_error(mu_node *node, int code, const char *message)
{
    MU__REQUIRE(NULL, node);

    struct mu__agent_call call = {.number = 0};
    int rv = set_failure(&call, code, message, NULL);

    return rv != 0 ? rv
                   : mu__agent_call_and_wait(node, &call, MU__AGENT_SET_ERROR, -1, NULL);
}

int mu_agent_reset(mu_node *node, int64_t timeout_ms, mu_error *ret_error)
{
    MU__REQUIRE(ret_error, node);
    return mu__agent_call_and_wait(node, &(struct mu__agent_call){0}, MU__AGENT_RESET,
                                   timeout_ms, ret_error);
}

int mu_agent_leave(mu_node *node, int64_t timeout_ms, mu_error *ret_error)
{
    MU__REQUIRE(ret_error, node);
    return mu__agent_call_and_wait(node, &(struct mu__agent_call){0}, MU__AGENT_LEAVE,
                                   timeout_ms, ret_error);
}

void mu_agent_progress(mu_node *node)
{
    MU__REQUIRE_OR(, node);
    (void)atomic_fetch_add_explicit(&node->member.agent.progress, 1,
                                    memory_order_relaxed);
}

/* ---- requests about tasks ---- */

static int request_tasks(mu_node *node, struct mu__agent_call *call, const char *tasks,
                         int64_t timeout_ms, mu_error *ret_error)
{
    char *text = NULL;
    int rv = canonical_tasks(tasks, ret_error, &text);

    if (rv != 0)
        return rv;
    call->tasks = text;
    rv = mu__agent_call_and_wait(node, call, MU__AGENT_TASKS, timeout_ms, ret_error);
    free(text);
    return rv;
}

static int request_tasks_content(mu_node *node, unsigned what, const char *tasks,
                                 int64_t timeout_ms, mu_error *ret_error,
                                 mu_value **ret_content)
{
    struct mu__agent_call call = {.what = what};
    int rv = request_tasks(node, &call, tasks, timeout_ms, ret_error);

    if (rv == 0)
        *ret_content = call.content;
    return rv;
}

static int mark_task(mu_node *node, const char *task, struct mu__agent_call *call,
                     int64_t timeout_ms, mu_error *ret_error)
{
    struct mu__task_set set = {0};
    char text[MU__TASK_NAME_MAX + 1];
    int rv = mu__task_set_parse(mu__view_str(task), ret_error, &set);

    if (rv == 0 && (set.count != 1 || set.ranges[0].first != set.ranges[0].last))
        rv = mu_error_set(ret_error, -MU_EINVALID,
                          "expected one task, as worker:1, got \"%.200s\"", task);
    if (rv == 0)
        (void)snprintf(text, sizeof text, "%s:%lu", set.ranges[0].type,
                       (unsigned long)set.ranges[0].first);
    mu__task_set_done(&set);
    if (rv != 0)
        return rv;
    call->tasks = text;
    return mu__agent_call_and_wait(node, call, MU__AGENT_MARK, timeout_ms, ret_error);
}

int mu_tasks_report_error(mu_node *node, const char *task, int code, const char *message,
                          int64_t timeout_ms, mu_error *ret_error)
{
    MU__REQUIRE(ret_error, node, task);

    struct mu__agent_call call = {.number = 0};
    int rv = set_failure(&call, code, message, ret_error);

    return rv != 0 ? rv : mark_task(node, task, &call, timeout_ms, ret_error);
}

int mu_tasks_reset(mu_node *node, const char *task, int64_t timeout_ms,
                   mu_error *ret_error)
{
    MU__REQUIRE(ret_error, node, task);

    struct mu__agent_call call = {.number = 0};

    return mark_task(node, task, &call, timeout_ms, ret_error);
}

int mu_tasks_range_at(const char *tasks, size_t i, mu_error *ret_error,
                      mu_task_range *ret_range)
{
    MU__REQUIRE(ret_error, tasks, ret_range);

    struct mu__task_set set;
    int rv = mu__task_set_parse(mu__view_str(tasks), ret_error, &set);

    if (rv != 0)
        return rv;
    if (i < set.count) {
        const struct mu__task_range *range = &set.ranges[i];

        *ret_range = (mu_task_range){"", (int)range->first, (int)range->last};
        memcpy(ret_range->type, range->type, sizeof ret_range->type);
    } else {
        rv = mu_error_set(ret_error, -MU_ENOTFOUND, "\"%.200s\" has %u ranges of tasks",
                          tasks, (unsigned)set.count);
    }
    mu__task_set_done(&set);
    return rv;
}

int mu_tasks_states(mu_node *node, const char *tasks, int64_t timeout_ms,
                    mu_error *ret_error, mu_value **ret_tasks)
{
    MU__REQUIRE(ret_error, node, ret_tasks);
    return request_tasks_content(node, MU__TASKS_STATES, tasks, timeout_ms, ret_error,
                                 ret_tasks);
}

int mu_tasks_wait(mu_node *node, const char *tasks, int64_t timeout_ms,
                  mu_error *ret_error, mu_value **ret_tasks)
{
    MU__REQUIRE(ret_error, node, ret_tasks);
    return request_tasks_content(node, MU__TASKS_WAIT, tasks, timeout_ms, ret_error,
                                 ret_tasks);
}

int mu_tasks_devices(mu_node *node, int64_t timeout_ms, mu_error *ret_error,
                     mu_value **ret_devices)
{
    MU__REQUIRE(ret_error, node, ret_devices);
    return request_tasks_content(node, MU__TASKS_DEVICES, NULL, timeout_ms, ret_error,
                                 ret_devices);
}

int mu_tasks_alive(mu_node *node, const char *tasks, int64_t timeout_ms,
                   mu_error *ret_error, mu_value **ret_alive)
{
    MU__REQUIRE(ret_error, node, ret_alive);
    return request_tasks_content(node, MU__TASKS_ALIVE, tasks, timeout_ms, ret_error,
                                 ret_alive);
}

int mu_actors_list(mu_node *node, int64_t timeout_ms, mu_error *ret_error,
                   mu_value **ret_actors)
{
    MU__REQUIRE(ret_error, node, ret_actors);
    return request_tasks_content(node, MU__TASKS_ACTORS, NULL, timeout_ms, ret_error,
                                 ret_actors);
}

/* Versions are the service's plus one, here and in the request; 0: none is known. */
int mu_tasks_watch(mu_node *node, const char *tasks, uint64_t version, int64_t timeout_ms,
                   mu_error *ret_error, uint64_t *ret_version, mu_value **ret_tasks)
{
    MU__REQUIRE(ret_error, node, ret_version, ret_tasks);

    struct mu__agent_call call = {.what = MU__TASKS_WATCH, .version = version};
    int rv = request_tasks(node, &call, tasks, timeout_ms, ret_error);

    if (rv != 0)
        return rv;
    *ret_version = call.version;
    *ret_tasks = call.content;
    return 0;
}

/* ---- barriers ---- */

void mu_barrier_options_init_sized(mu_barrier_options *options, size_t size)
{
    const mu_barrier_options defaults = {.threads = 1, .timeout_ms = -1};

    mu__options_init(options, size, &defaults, sizeof defaults);
}

static int check_barrier_options(const char *name, const mu_barrier_options *options,
                                 mu_error *ret_error)
{
    size_t size = name == NULL ? 0 : strlen(name);

    if (size == 0 || size > MU__BARRIER_NAME_MAX)
        return mu_error_set(ret_error, -MU_EINVALID,
                            "a barrier's name has 1 to %d bytes, \"%.140s\" has %zu",
                            MU__BARRIER_NAME_MAX, name == NULL ? "" : name, size);
    for (size_t i = 0; i < size; i++)
        if ((unsigned char)name[i] < ' ')
            return mu_error_set(ret_error, -MU_EINVALID,
                                "a barrier's name may have no "
                                "control characters; there is one at byte %zu",
                                i);
    if (options != NULL && options->threads == 0)
        return mu_error_set(ret_error, -MU_EINVALID,
                            "barrier \"%.100s\": option threads is 0, expected at least "
                            "1",
                            name);
    return 0;
}

static void set_barrier(struct mu__agent_call *call, const char *name,
                        const mu_barrier_options *options, const char *tasks)
{
    call->name = name;
    call->tasks = tasks;
    call->threads = options->threads;
    call->call.timeout_ms = options->timeout_ms;
}

int mu_barrier_wait(mu_node *node, const char *name, const mu_barrier_options *options,
                    mu_error *ret_error)
{
    MU__REQUIRE(ret_error, node, name);

    struct mu__agent_call call = {.number = 0};
    mu_barrier_options o;
    char *tasks = NULL;
    int rv = MU__OPTIONS_READ(mu_barrier_options, options, ret_error, &o);

    if (rv == 0)
        rv = check_barrier_options(name, &o, ret_error);
    if (rv == 0)
        rv = canonical_tasks(o.tasks, ret_error, &tasks);
    if (rv != 0)
        return rv;
    set_barrier(&call, name, &o, tasks);
    rv = mu__agent_call_and_wait(node, &call, MU__AGENT_BARRIER, o.timeout_ms, ret_error);
    free(tasks);
    return rv;
}

static void on_barrier_over(struct mu__pending *pending)
{
    struct mu__agent_detached *detached = (struct mu__agent_detached *)(void *)pending;
    const struct mu__call *call = &detached->call.call;

    detached->done(detached->user, call->code, call->code == 0 ? NULL : &call->error);
    mu__agent_detached_free(detached);
}

int mu_barrier_wait_async(mu_node *node, const char *name,
                          const mu_barrier_options *options, mu_barrier_done_fn done,
                          void *user)
{
    MU__REQUIRE(NULL, node, name, done);

    struct mu__agent_detached *detached;
    mu_barrier_options o;
    int rv = MU__OPTIONS_READ(mu_barrier_options, options, NULL, &o);

    if (rv == 0)
        rv = check_barrier_options(name, &o, NULL);
    if (rv != 0)
        return rv;
    detached = mu__agent_detached_new(MU__AGENT_BARRIER, name);
    if (detached == NULL)
        return -MU_ENOMEM;
    rv = canonical_tasks(o.tasks, NULL, &detached->tasks);
    if (rv == 0) {
        set_barrier(&detached->call, detached->name, &o, detached->tasks);
        detached->done = done;
        detached->user = user;
        rv = mu__node_call_later(node, MU__AGENT, &detached->pending,
                                 &detached->call.call, on_barrier_over);
    }
    if (rv != 0)
        mu__agent_detached_free(detached);
    return rv;
}

int mu_barrier_cancel(mu_node *node, const char *name, int64_t timeout_ms,
                      mu_error *ret_error)
{
    MU__REQUIRE(ret_error, node, name);

    struct mu__agent_call call = {.name = name};
    int rv = check_barrier_options(name, NULL, ret_error);

    if (rv != 0)
        return rv;
    return mu__agent_call_and_wait(node, &call, MU__AGENT_BARRIER_CANCEL, timeout_ms,
                                   ret_error);
}

/* ---- preemption ---- */

int mu_preemption_notify(mu_node *node, const char *reason, int64_t grace_ms,
                         int64_t timeout_ms, mu_error *ret_error)
{
    MU__REQUIRE(ret_error, node);

    struct mu__agent_call call = {
        .name = reason == NULL ? "" : reason,
        .version = (uint64_t)grace_ms,
    };

    if (grace_ms < 0)
        return mu_error_set(ret_error, -MU_EINVALID,
                            "the grace of a preemption is %lld ms, expected 0 or more",
                            (long long)grace_ms);
    if (strlen(call.name) > MU__ERROR_TEXT_MAX)
        return mu_error_set(ret_error, -MU_EINVALID,
                            "the reason of a preemption has %zu bytes, at most %d are "
                            "told",
                            strlen(call.name), MU__ERROR_TEXT_MAX);
    return mu__agent_call_and_wait(node, &call, MU__AGENT_NOTICE, timeout_ms, ret_error);
}

/* First the step is written down, then the gate is looked at: see preemption_calls.c. */
int mu_preemption_reached(mu_node *node, uint64_t step, mu_error *ret_error,
                          int *ret_stop)
{
    MU__REQUIRE(ret_error, node, ret_stop);

    struct mu__agent_shared *shared = &node->member.agent;
    struct mu__agent_call call = {.version = step};
    int gate;
    int rv;

    atomic_store(&shared->step, step + 1);
    gate = atomic_load(&shared->gate);
    if (atomic_load_explicit(&shared->state, memory_order_relaxed) != MU_AGENT_ERROR &&
        gate != MU__GATE_REQUESTED) {
        *ret_stop = gate == MU__GATE_AGREED && atomic_load(&shared->stop) == step;
        return 0;
    }
    rv = mu__agent_call_and_wait(node, &call, MU__AGENT_REACHED, -1, ret_error);
    if (rv == 0)
        *ret_stop = call.number != 0;
    return rv;
}

int mu_preemption_wait(mu_node *node, uint64_t round, int agreed, int64_t timeout_ms,
                       mu_error *ret_error, mu_preemption *ret_preemption)
{
    MU__REQUIRE(ret_error, node, ret_preemption);

    struct mu__agent_call call = {.version = round, .number = agreed != 0};
    int rv =
        mu__agent_call_and_wait(node, &call, MU__AGENT_PREEMPTION, timeout_ms, ret_error);

    if (rv == 0)
        *ret_preemption = call.preemption;
    return rv;
}

/* ---- runs in a store ---- */

int mu_runs_list(mu_node *node, int64_t timeout_ms, mu_error *ret_error,
                 mu_value **ret_runs)
{
    MU__REQUIRE(ret_error, node, ret_runs);

    struct mu__agent_call call = {.number = 0};
    int rv = mu__agent_call_and_wait(node, &call, MU__AGENT_RUNS, timeout_ms, ret_error);

    if (rv == 0)
        *ret_runs = call.content;
    return rv;
}

int mu_runs_clear(mu_node *node, const char *name, unsigned flags, int64_t timeout_ms,
                  mu_error *ret_error, uint64_t *ret_count)
{
    MU__REQUIRE(ret_error, node);

    struct mu__agent_call call = {.name = name == NULL ? "" : name, .what = flags};
    int rv =
        mu__agent_call_and_wait(node, &call, MU__AGENT_RUNS_CLEAR, timeout_ms, ret_error);

    if (rv == 0 && ret_count != NULL)
        *ret_count = call.version;
    return rv;
}
