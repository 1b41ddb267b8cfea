/* The programs of a node's task, and mu_node_main, which runs one or serves. */
#include "api/task_program.h"

#include "node/node.h"
#include "runtime/message/arguments.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int mu_node_register_program(mu_node *node, const char *task_type, mu_program_fn program,
                             void *user)
{
    MU__REQUIRE(NULL, node, task_type, program);

    struct mu__program *p;

    if (strlen(task_type) >= sizeof p->type)
        return -MU_EINVALID;
    for (p = node->program.entries; p != NULL; p = p->next)
        if (strcmp(p->type, task_type) == 0)
            return -MU_EEXISTS;
    p = calloc(1, sizeof *p);
    if (p == NULL)
        return -MU_ENOMEM;
    (void)snprintf(p->type, sizeof p->type, "%s", task_type);
    p->program = program;
    p->user = user;
    p->next = node->program.entries;
    node->program.entries = p;
    return 0;
}

static const struct mu__program *find_own_program(const mu_node *node)
{
    const struct mu__program *p = node->program.entries;
    char prefix[32];

    for (; p != NULL; p = p->next) {
        (void)snprintf(prefix, sizeof prefix, "/job:%s/", p->type);
        if (strncmp(node->member.task, prefix, strlen(prefix)) == 0)
            return p;
    }
    return NULL;
}

static void set_runs(mu_node *node, bool runs)
{
    uv_mutex_lock(&node->lock);
    node->program.reasons.thread = uv_thread_self();
    node->program.reasons.runs = runs;
    uv_mutex_unlock(&node->lock);
}

/* The error behind the program's code `rv`; code 0: none is known. */
static mu_error reason_of(mu_node *node, int rv)
{
    const mu_error none = {0};
    mu_error reason;

    uv_mutex_lock(&node->lock);
    reason = node->program.reasons.given;
    if (reason.code == 0 && rv == -MU_EUNAVAILABLE)
        reason = node->program.reasons.server;
    if (reason.code == 0 && node->program.reasons.call.code == rv)
        reason = node->program.reasons.call;
    uv_mutex_unlock(&node->lock);
    return reason.message[0] == '\0' ? none : reason;
}

static int program_failed(mu_node *node, int rv, mu_error *ret_error)
{
    mu_error reason = reason_of(node, rv);
    const char *colon = "";
    int code = rv < 0 ? rv : -MU_EUNKNOWN;

    if (reason.code == 0)
        return mu_error_set(ret_error, code, "the program of %s ended with %s (%d)",
                            node->member.task, mu_err_name(rv), rv);
    if (reason.task[0] != '\0' && strstr(reason.message, reason.task) == NULL)
        colon = ": ";
    (void)mu_error_set(ret_error, code, "the program of %s ended with %s: %s%s%.400s",
                       node->member.task, mu_err_name(rv),
                       colon[0] == '\0' ? "" : reason.task, colon, reason.message);
    if (ret_error != NULL) {
        ret_error->kind = reason.kind;
        memcpy(ret_error->task, reason.task, sizeof reason.task);
    }
    return code;
}

/* Whether the program has returned the code with which the job has ended. */
static bool is_of_job(mu_node *node, int rv, mu_error *ret_job)
{
    return mu_node_wait_job(node, 0, ret_job) == 0 && ret_job->code == rv && rv != 0;
}

static int run_task_program(mu_node *node, const struct mu__program *program,
                            mu_error *ret_error)
{
    mu_error job = {0};
    int rv;

    set_runs(node, true);
    rv = program->program(node, program->user);
    set_runs(node, false);
    if (rv == 0)
        return 0;
    if (!is_of_job(node, rv, &job))
        return program_failed(node, rv, ret_error);
    node->program.reasons.by_job = strcmp(program->type, "chief") != 0;
    if (ret_error != NULL)
        *ret_error = job;
    return rv;
}

bool mu__node_has_program(const mu_node *node)
{
    return node->program.distribute != NULL || find_own_program(node) != NULL;
}

static int run_node_main(mu_node *node, mu_error *ret_error)
{
    const struct mu__program *program = find_own_program(node);
    mu_error job = {0};
    int rv;

    if (node->program.distribute != NULL)
        return mu__node_run_distributed(node, ret_error);
    (void)mu_node_serve(node);
    if (program != NULL)
        return run_task_program(node, program, ret_error);
    rv = mu_node_wait_job(node, -1, &job);
    node->program.reasons.by_job = rv == 0 && job.code != 0;
    if (ret_error != NULL && (rv != 0 || job.code != 0))
        *ret_error = job;
    return rv != 0 ? rv : job.code;
}

/* Another thread may close the node meanwhile. */
int mu_node_main(mu_node *node, mu_error *ret_error)
{
    MU__REQUIRE(ret_error, node);

    int rv = run_node_main(mu_node_ref(node), ret_error);

    mu_node_unref(node);
    return rv;
}
