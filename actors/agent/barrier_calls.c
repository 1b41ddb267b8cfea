/* Barriers. The threads of this task meet in the agent; when all of them have called, the
 * agent tells the service once that the task has arrived. */
#include "actors/agent/call_handlers.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct mu__agent_barrier *barrier_of(struct mu__agent_request *pending)
{
    return (struct mu__agent_barrier *)(void *)((char *)pending -
                                                offsetof(struct mu__agent_barrier,
                                                         pending));
}

/* ---- names ---- */

static struct mu__agent_barrier *find_barrier(const struct agent *a, const char *name)
{
    return (struct mu__agent_barrier *)(void *)mu__text_map_find(&a->barriers.by_name,
                                                                 mu__view_str(name));
}

static void free_idle(struct agent *a, struct mu__agent_barrier *barrier)
{
    mu__list_remove(&a->barriers.idle, &barrier->idle_node);
    mu__text_map_remove(&a->barriers.by_name, &barrier->node);
    free(barrier);
}

static struct mu__agent_barrier *add_barrier(struct agent *a, const char *name)
{
    struct mu__agent_barrier *oldest =
        MU__LIST_FIRST(&a->barriers.idle, struct mu__agent_barrier, idle_node);
    size_t size = strlen(name);
    struct mu__agent_barrier *barrier;

    if (a->barriers.by_name.table.count == AGENT_BARRIERS_MAX && oldest != NULL)
        free_idle(a, oldest);
    if (a->barriers.by_name.table.count == AGENT_BARRIERS_MAX)
        return NULL;
    barrier = calloc(1, sizeof *barrier + size + 1);
    if (barrier == NULL)
        return NULL;
    memcpy(barrier->name, name, size);
    barrier->node.text = mu__view_str(barrier->name);
    if (mu__text_map_add(&a->barriers.by_name, &barrier->node) != 0) {
        free(barrier);
        return NULL;
    }
    mu__list_append(&a->barriers.idle, &barrier->idle_node);
    return barrier;
}

/* Barriers with a waiting thread stay, with generation 0. */
void mu__agent_barriers_forget(struct agent *a)
{
    struct mu__text_node *node = mu__text_map_next(&a->barriers.by_name, NULL);

    while (node != NULL) {
        struct mu__agent_barrier *barrier = (struct mu__agent_barrier *)(void *)node;

        node = mu__text_map_next(&a->barriers.by_name, node);
        if (mu__list_is_empty(&barrier->calls))
            free_idle(a, barrier);
        else
            barrier->generation = 0;
    }
}

/* ---- the end of a meeting ---- */

/* Completes the calls of all threads that are at the barrier. */
static void end_barrier(struct mu__ctx *ctx, struct agent *a,
                        struct mu__agent_barrier *barrier, const mu_error *error)
{
    struct mu__list calls = barrier->calls;
    struct mu__list_node *node;

    mu__agent_remove(ctx, a, &barrier->pending);
    barrier->calls = (struct mu__list){0};
    barrier->arrived = 0;
    free(barrier->tasks);
    barrier->tasks = NULL;
    mu__list_append(&a->barriers.idle, &barrier->idle_node);
    while ((node = mu__list_pop(&calls)) != NULL)
        mu__agent_complete(MU__LIST_ENTRY(node, struct mu__agent_call, node), error);
}

static void fail_barrier(struct mu__ctx *ctx, struct agent *a,
                         struct mu__agent_request *pending, const mu_error *error)
{
    end_barrier(ctx, a, barrier_of(pending), error);
}

static void name_barrier(struct mu__agent_request *pending, char *out, size_t size)
{
    (void)snprintf(out, size, "barrier \"%.100s\"", barrier_of(pending)->name);
}

/* ---- the threads of this task ---- */

static void name_meeting(struct mu__agent_request *pending, char *out, size_t size)
{
    const struct mu__agent_barrier *barrier = barrier_of(pending);

    (void)snprintf(out, size,
                   "barrier \"%.100s\": %u of %u threads of this task arrived, the "
                   "others",
                   barrier->name, barrier->arrived, barrier->threads);
}

static const struct mu__agent_request_kind meeting = {
    .name = name_meeting,
    .fail = fail_barrier,
    .late = "did not come",
};

static struct mu__msg *make_arrive(struct mu__ctx *ctx, struct agent *a,
                                   struct mu__agent_request *pending)
{
    const struct mu__agent_barrier *barrier = barrier_of(pending);
    const struct mu__barrier_arrive body = {
        .token = pending->token,
        .name = mu__view_str(barrier->name),
        .generation = barrier->generation,
        .tasks = mu__view_str(barrier->tasks),
        .timeout_ms = mu__agent_left_ms(ctx, pending),
    };

    a->registration.used = true;
    return mu__agent_message(ctx, a, MU__BARRIER_ARRIVE, &body, sizeof body);
}

static const struct mu__agent_request_kind arriving = {
    .make_message = make_arrive,
    .name = name_barrier,
    .fail = fail_barrier,
    .late = "was not passed",
    .is_limited = true,
    .is_shared = true,
};

/* Whether this task is the only one in the set. */
static bool is_only_barrier_task(const struct agent *a, const char *tasks)
{
    if (tasks[0] == '\0')
        return !a->has_joined_tasks && strcmp(a->config.tasks, a->own_task) == 0;
    return strcmp(tasks, a->own_task) == 0;
}

static void arrive_at_barrier(struct mu__ctx *ctx, struct agent *a,
                              struct mu__agent_barrier *barrier)
{
    if (is_only_barrier_task(a, barrier->tasks)) {
        end_barrier(ctx, a, barrier, NULL);
        return;
    }
    barrier->pending.kind = &arriving;
    (void)mu__agent_resubmit(ctx, a, &barrier->pending);
}

static int refuse_thread(const struct mu__agent_barrier *barrier,
                         const struct mu__agent_call *call, mu_error *error)
{
    unsigned threads = call->threads == 0 ? 1 : call->threads;
    const char *tasks = call->tasks == NULL ? "" : call->tasks;

    if (barrier->threads == 1 && threads == 1)
        return mu_error_set(error, -MU_EPRECONDITION,
                            "this task is at barrier \"%.100s\" already", barrier->name);
    if (barrier->threads != threads)
        return mu_error_set(error, -MU_EINVALID,
                            "barrier \"%.100s\": %u threads of this task are to meet, "
                            "and this one says %u",
                            barrier->name, barrier->threads, threads);
    if (strcmp(barrier->tasks, tasks) != 0)
        return mu_error_set(error, -MU_EINVALID,
                            "barrier \"%.100s\": the first thread said tasks \"%.100s\", "
                            "and this one says \"%.100s\"",
                            barrier->name, barrier->tasks, tasks);
    if (barrier->arrived == barrier->threads)
        return mu_error_set(error, -MU_EINVALID,
                            "barrier \"%.100s\": all %u threads of this task are here "
                            "already",
                            barrier->name, barrier->threads);
    return 0;
}

/* The first call determines the tasks and the number of threads. */
static int begin_meeting(struct mu__agent_barrier *barrier,
                         const struct mu__agent_call *call)
{
    const char *tasks = call->tasks == NULL ? "" : call->tasks;
    size_t size = strlen(tasks) + 1;

    barrier->tasks = malloc(size);
    if (barrier->tasks == NULL)
        return -MU_ENOMEM;
    memcpy(barrier->tasks, tasks, size);
    barrier->threads = call->threads == 0 ? 1 : call->threads;
    barrier->arrived = 0;
    return 0;
}

static void add_barrier_call(struct mu__agent_barrier *barrier,
                             struct mu__agent_call *call)
{
    mu__list_prepend(&barrier->calls, &call->node);
    barrier->arrived++;
}

/* The timeout is that of the first call, for the meeting of the threads and the barrier
 * of the tasks together. */
static void begin_barrier(struct mu__ctx *ctx, struct agent *a,
                          struct mu__agent_barrier *barrier, struct mu__agent_call *call)
{
    if (begin_meeting(barrier, call) != 0) {
        mu__call_complete(&call->call, mu_error_set(&call->call.error, -MU_ENOMEM,
                                                    "no memory for a barrier"));
        return;
    }
    mu__list_remove(&a->barriers.idle, &barrier->idle_node);
    add_barrier_call(barrier, call);
    if (mu__agent_submit(ctx, a, &barrier->pending, &meeting, call->call.timeout_ms, 0) &&
        barrier->arrived == barrier->threads)
        arrive_at_barrier(ctx, a, barrier);
}

void mu__agent_call_barrier(struct mu__ctx *ctx, struct agent *a,
                            struct mu__agent_call *call)
{
    struct mu__agent_barrier *barrier = find_barrier(a, call->name);
    int rv;

    if (barrier == NULL)
        barrier = add_barrier(a, call->name);
    if (barrier == NULL) {
        mu__call_complete(
            &call->call,
            mu_error_set(
                &call->call.error, -MU_EEXHAUSTED,
                "out of memory, or limit reached: this task waits at %d barriers",
                (int)AGENT_BARRIERS_MAX));
        return;
    }
    if (mu__list_is_empty(&barrier->calls)) {
        begin_barrier(ctx, a, barrier, call);
        return;
    }
    rv = refuse_thread(barrier, call, &call->call.error);
    if (rv != 0) {
        mu__call_complete(&call->call, rv);
        return;
    }
    add_barrier_call(barrier, call);
    if (barrier->arrived == barrier->threads)
        arrive_at_barrier(ctx, a, barrier);
}

/* ---- the service's answer ---- */

void mu__agent_on_passed(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    struct agent *a = state;
    const struct mu__barrier_passed *body = mu__body(msg);
    struct mu__agent_request *pending = mu__agent_find_answered(a, msg, body->token);
    struct mu__agent_barrier *barrier;
    mu_error error;

    if (pending == NULL || pending->kind != &arriving)
        return;
    if (body->code == MU_EUNAVAILABLE && body->stays) {
        mu__agent_resend(a, pending);
        return;
    }
    barrier = barrier_of(pending);
    /* From the answer, not by counting: a restarted task may have joined a later one. */
    barrier->generation = body->generation + (body->stays ? 0 : 1);
    error = mu__agent_error_of(body->code, body->message, body->task, body->error_kind);
    end_barrier(ctx, a, barrier, body->code == 0 ? NULL : &error);
}

/* ---- cancelling ---- */

static void name_cancel(struct mu__agent_request *pending, char *out, size_t size)
{
    (void)snprintf(out, size, "the cancelling of barrier \"%.100s\"",
                   agent_call_of(pending)->name);
}

/* `call->version`: the generation that was running when the program called. */
static struct mu__msg *make_cancel(struct mu__ctx *ctx, struct agent *a,
                                   struct mu__agent_request *pending)
{
    const struct mu__agent_call *call = agent_call_of(pending);
    const struct mu__barrier_cancel body = {
        .token = pending->token,
        .name = mu__view_str(call->name),
        .generation = call->version,
    };

    return mu__agent_message(ctx, a, MU__BARRIER_CANCEL, &body, sizeof body);
}

static const struct mu__agent_request_kind cancelling = {
    .make_message = make_cancel,
    .on_answer = mu__agent_answered,
    .name = name_cancel,
    .fail = mu__agent_call_fail,
    .late = "was not answered",
};

void mu__agent_call_barrier_cancel(struct mu__ctx *ctx, struct agent *a,
                                   struct mu__agent_call *call)
{
    struct mu__agent_barrier *barrier = find_barrier(a, call->name);
    mu_error error = {0};

    if (barrier == NULL || mu__list_is_empty(&barrier->calls)) {
        mu__call_complete(&call->call,
                          mu_error_set(&call->call.error, -MU_EPRECONDITION,
                                       "this task is not at barrier \"%.100s\"",
                                       call->name));
        return;
    }
    if (barrier->pending.kind == &arriving) {
        call->version = barrier->generation;
        (void)mu__agent_submit(ctx, a, &call->pending, &cancelling, call->call.timeout_ms,
                               0);
        return;
    }
    (void)mu_error_set(&error, -MU_ECANCELLED, "barrier \"%.100s\" was cancelled",
                       call->name);
    end_barrier(ctx, a, barrier, &error);
    mu__agent_complete(call, NULL);
}
