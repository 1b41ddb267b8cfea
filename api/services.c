/* The public calls of a node that go to its actors: functions, the job, reports,
 * status. */
#include "node/node.h"

#include "actors/job/job.h"
#include "actors/messages.h"
#include "api/internal.h"
#include "runtime/message/arguments.h"

#include <stdlib.h>
#include <string.h>

int mu_node_register_function(mu_node *node, const char *name, mu_function_fn function,
                              void *user, unsigned flags)
{
    MU__REQUIRE(NULL, node, name, function);

    struct mu__function_call call = {
        .call.timeout_ms = -1,
        .name = name,
        .function = function,
        .user = user,
        .flags = flags,
    };

    return mu__node_call_at_once(node, MU__WORKER, &call.call);
}

int mu_node_serve(mu_node *node)
{
    MU__REQUIRE(NULL, node);

    struct mu__call call = {.operation = MU__WORKER_SERVE, .timeout_ms = -1};

    return mu__node_call_at_once(node, MU__WORKER, &call);
}

/* ---- the job ---- */

int mu_node_wait_job(mu_node *node, int64_t timeout_ms, mu_error *ret_error)
{
    MU__REQUIRE(ret_error, node);

    struct mu__job_call call = {
        .call.operation = MU__JOB_WAIT,
        .call.timeout_ms = timeout_ms,
    };
    int rv;

    (void)mu_node_serve(node);
    rv = mu__node_call(node, MU__JOB, &call.call, NULL);
    if (ret_error != NULL)
        *ret_error = call.call.error;
    return rv;
}

/* The outcome of the job's run is stored before any task learns of it: a task that starts
 * then is in another run. */
static void end_job_run(mu_node *node, int code, const char *message, int64_t timeout_ms)
{
    bool is_short = timeout_ms >= 0 && timeout_ms < MU__RUN_END_MS;
    struct mu__agent_call call = {.number = 0};
    mu_error error = {0};
    int rv;

    if (code != 0)
        (void)mu_error_set(&call.failure, code, "%s", message == NULL ? "" : message);
    rv = mu__agent_call_and_wait(node, &call, MU__AGENT_RUN_END,
                                 is_short ? timeout_ms : MU__RUN_END_MS, &error);
    if (rv == -MU_EDEADLINE || rv == -MU_EUNAVAILABLE)
        mu__node_log(node, MU_LOG_WARN, "run", "%s", error.message);
}

static bool may_end_job(const mu_node *node)
{
    const char *type = node->member.type;

    return node->member.index == 0 &&
           (strcmp(type, "chief") == 0 || strcmp(type, "worker") == 0);
}

int mu_node_finish_job(mu_node *node, int code, const char *message, int64_t timeout_ms,
                       mu_error *ret_error)
{
    MU__REQUIRE(ret_error, node);

    struct mu__job_call call = {
        .call.operation = MU__JOB_END,
        .call.timeout_ms = timeout_ms,
        .job_code = code,
        .message = message,
    };
    int rv;

    if (code > 0 || code < -255)
        return mu_error_set(ret_error, -MU_EINVALID,
                            "a job's code is 0 or a negative MU_E code, got %d", code);
    if (!may_end_job(node))
        return mu_error_set(ret_error, -MU_EPRECONDITION,
                            "%s cannot end the job: the chief does, or worker 0 where "
                            "there is none",
                            mu_node_task(node));
    mu__node_ref(node); /* it may be closed between two calls */
    end_job_run(node, code, message, timeout_ms);
    rv = mu__node_call(node, MU__JOB, &call.call, ret_error);
    mu__node_unref(node);
    return rv;
}

/* ---- reports ---- */

int mu_node_report_metric(mu_node *node, const char *name, double number, uint64_t step)
{
    MU__REQUIRE(NULL, node, name);

    size_t size = strlen(name);
    struct mu__msg *msg;
    struct mu__report *body;

    if (size == 0 || size > 63)
        return -MU_EINVALID;
    msg = mu__msg_heap(MU__REPORT, sizeof *body);
    if (msg == NULL)
        return -MU_ENOMEM;
    msg->backing = mu__buf_new(size);
    if (msg->backing == NULL) {
        free(msg);
        return -MU_ENOMEM;
    }
    memcpy(msg->backing->data, name, size);
    body = (void *)msg->body;
    body->name = (struct mu__view){msg->backing->data, (uint32_t)size};
    body->number = number;
    body->step = step;
    return mu__node_post(node, MU__CLIENT, msg);
}

int mu_node_get_metric(mu_node *node, const char *name, double *ret_number,
                       uint64_t *ret_step)
{
    MU__REQUIRE(NULL, node, name);

    struct mu__metric_call call = {.call.timeout_ms = -1, .name = name};
    int rv;

    if (strcmp(node->member.task, "/job:chief/task:0") != 0)
        return -MU_EPRECONDITION;
    rv = mu__node_call(node, MU__SUPERVISOR, &call.call, NULL);
    if (rv != 0)
        return rv;
    if (ret_number != NULL)
        *ret_number = call.number;
    if (ret_step != NULL)
        *ret_step = call.step;
    return 0;
}

int mu_node_status(mu_node *node, int64_t timeout_ms, mu_error *ret_error,
                   mu_value **ret_status)
{
    MU__REQUIRE(ret_error, node, ret_status);

    struct mu__client_call call = {.call.operation = MU__CLIENT_STATUS};
    int rv = mu__client_call(node, &call, timeout_ms, ret_error);

    if (rv == 0)
        *ret_status = call.status;
    return rv;
}
