/* What programs ask of their nodes: calls, and questions to the supervisor. */
#include "tests/sim/cluster/internal.h"

#include "actors/client/future.h"
#include "actors/client/holds.h"
#include "actors/messages.h"
#include "actors/packing.h"
#include "actors/ps/variable_store.h"
#include "actors/references.h"
#include "actors/worker/function_run.h"
#include "runtime/message/value_layout.h"
#include "tests/sim/etcd.h"

#include <assert.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Calls ---- */

static void complete(struct mu__call *call)
{
    struct cluster_call *done = (struct cluster_call *)(void *)call;

    if (done->done)
        cluster_break(done->task->cluster, "%s: a call was completed twice",
                      done->task->name);
    done->done = true;
    done->done_ms = sim_now_ms(done->task->cluster->sim);
}

struct cluster_call *cluster__call_new(struct cluster_task *task, int operation,
                                       int64_t timeout_ms)
{
    struct cluster_call *call = cluster__get(sizeof *call);

    call->of.call = (struct mu__call){
        .complete = complete, .operation = operation, .timeout_ms = timeout_ms};
    call->task = task;
    call->life = sim_lives(task->node);
    call->next = task->cluster->calls;
    task->cluster->calls = call;
    return call;
}

struct cluster_call *cluster__post(struct cluster_call *call, uint32_t actor)
{
    struct mu__msg *msg = mu__msg_heap(MU__CALL, sizeof(struct mu__call_msg));

    assert(msg != NULL);
    ((struct mu__call_msg *)(void *)msg->body)->call = call;
    msg->to.actor = actor;
    if (!sim_alive(call->task->node)) {
        call->of.call.code = -MU_ECLOSED;
        call->done = true;
    }
    sim_post(call->task->node, msg);
    return call;
}

struct cluster_call *cluster_ask(struct cluster_task *task,
                                 enum mu__client_operation operation, int64_t timeout_ms)
{
    return cluster__post(cluster__call_new(task, (int)operation, timeout_ms), MU__CLIENT);
}

static void note_program(struct cluster_task *task)
{
    struct cluster *cluster = task->cluster;

    for (unsigned i = 0; i < cluster->programs_count; i++)
        if (cluster->programs[i] == task)
            return;
    cluster->programs[cluster->programs_count++] = task;
}

struct cluster_call *cluster_open(struct cluster_task *task, int64_t timeout_ms)
{
    struct cluster_call *call = cluster__call_new(task, MU__CLIENT_OPEN, timeout_ms);
    struct cluster_session *session = cluster__get(sizeof *session);

    session->shared.closures_max = task->cluster->options.queue_max;
    session->shared.bytes_max = task->cluster->options.node.queue_bytes_max;
    session->next = task->cluster->sessions;
    task->cluster->sessions = session;
    task->session = session;
    note_program(task);
    call->of.client.session = &session->shared;
    return cluster__post(call, MU__CLIENT);
}

struct cluster_call *cluster_fetch(struct cluster_closure *closure, int64_t timeout_ms)
{
    struct cluster_call *call =
        cluster__call_new(closure->task, MU__CLIENT_FETCH, timeout_ms);

    call->of.client.future = closure->future;
    return cluster__post(call, MU__CLIENT);
}

struct cluster_call *cluster_job(struct cluster_task *task,
                                 enum mu__job_operation operation, int code,
                                 const char *message, int64_t timeout_ms)
{
    struct cluster_call *call = cluster__call_new(task, (int)operation, timeout_ms);

    call->of.job.job_code = code;
    call->of.job.message = message;
    return cluster__post(call, MU__JOB);
}

struct cluster_call *cluster_job_ask(struct cluster_task *task,
                                     const struct mu__job_call *wanted)
{
    struct cluster_call *call =
        cluster__call_new(task, wanted->call.operation, wanted->call.timeout_ms);
    struct mu__call begun = call->of.call;

    call->of.job = *wanted;
    call->of.call = begun;
    return cluster__post(call, MU__JOB);
}

struct cluster_call *cluster_peers(struct cluster_task *task,
                                   enum mu__peers_operation operation, int64_t timeout_ms)
{
    return cluster__post(cluster__call_new(task, (int)operation, timeout_ms), MU__PEERS);
}

struct cluster_call *cluster_metric(struct cluster_task *task, const char *name)
{
    struct cluster_call *call = cluster__call_new(task, 0, -1);

    call->of.metric.name = name;
    return cluster__post(call, MU__SUPERVISOR);
}

struct cluster_call *cluster_variable(struct cluster_task *task,
                                      const struct mu__variable_call *wanted)
{
    struct cluster_call *call =
        cluster__call_new(task, wanted->call.operation, wanted->call.timeout_ms);
    struct mu__call begun = call->of.call;

    call->of.variable = *wanted;
    call->of.call = begun;
    return cluster__post(call, MU__VARIABLES);
}

struct cluster_call *cluster_clock(struct cluster_task *task,
                                   const struct mu__clock_call *wanted)
{
    struct cluster_call *call =
        cluster__call_new(task, wanted->call.operation, wanted->call.timeout_ms);
    struct mu__call begun = call->of.call;

    call->of.clock = *wanted;
    call->of.call = begun;
    return cluster__post(call, MU__VARIABLES);
}

struct cluster_call *cluster_table(struct cluster_task *task,
                                   const struct mu__table_call *wanted)
{
    struct cluster_call *call =
        cluster__call_new(task, wanted->call.operation, wanted->call.timeout_ms);
    struct mu__call begun = call->of.call;

    call->of.table = *wanted;
    call->of.call = begun;
    call->writes = wanted->call.operation == MU__TABLE_WRITE_CALL;
    return cluster__post(call, MU__VARIABLES);
}

struct cluster_call *cluster_agent(struct cluster_task *task,
                                   const struct mu__agent_call *wanted)
{
    struct cluster_call *call =
        cluster__call_new(task, wanted->call.operation, wanted->call.timeout_ms);
    struct mu__call begun = call->of.call;

    call->of.agent = *wanted;
    call->of.call = begun;
    return cluster__post(call, MU__AGENT);
}

static void note_key(void *user, const mu_kv_response *answer)
{
    struct cluster_call *call = user;
    struct cluster_key_answer *key = &call->of.key;

    key->call.code = answer->code;
    if (answer->code != 0)
        key->call.error = *answer->error;
    key->size = answer->size;
    if (answer->size > 0)
        memcpy(key->value, answer->value,
               answer->size < sizeof key->value ? answer->size : sizeof key->value - 1);
    key->revision = answer->revision;
    key->number = answer->number;
    complete(&call->of.call);
}

struct cluster_call *cluster_key(struct cluster_task *task, const mu_kv_request *ask)
{
    struct cluster_call *call = cluster__call_new(task, 0, ask->timeout_ms);
    struct mu__msg *msg = NULL;
    int rv;

    rv = mu__key_request_new(&task->member.agent, ask, note_key, call,
                             &call->of.call.error, &call->of.key.id, &msg);
    if (rv != 0 || !sim_alive(task->node)) {
        call->of.call.code = rv != 0 ? rv : -MU_ECLOSED;
        call->done = true;
        if (rv == 0)
            mu__key_request_drop(msg);
        return call;
    }
    msg->to.actor = MU__AGENT;
    sim_post(task->node, msg);
    return call;
}

void cluster_key_cancel(struct cluster_call *call)
{
    struct mu__msg *msg = mu__msg_heap(MU__KEY_CANCEL, sizeof(struct mu__key_cancel));

    assert(msg != NULL);
    ((struct mu__key_cancel *)(void *)msg->body)->token = call->of.key.id;
    msg->to.actor = MU__AGENT;
    sim_post(call->task->node, msg);
}

void cluster_report(struct cluster_task *task, const char *name, double number,
                    uint64_t step)
{
    struct mu__msg *msg = mu__msg_heap(MU__REPORT, sizeof(struct mu__report));
    struct mu__report *body;

    assert(msg != NULL);
    body = (void *)msg->body;
    *body = (struct mu__report){mu__view_str(name), number, step};
    msg->to.actor = MU__CLIENT;
    sim_post(task->node, msg);
}

static bool is_done(void *arg)
{
    return ((struct cluster_call *)arg)->done;
}

int cluster_wait(struct cluster_call *call)
{
    struct cluster *cluster = call->task->cluster;
    uint64_t until_ms = sim_now_ms(cluster->sim) + CLUSTER_FOREVER_MS;

    if (!call->done && !sim_run_to(cluster->sim, is_done, call, until_ms)) {
        cluster_break(cluster, "%s: a call was never completed", call->task->name);
        return -MU_EINTERNAL;
    }
    return call->of.call.code;
}

/* ---- What is held at the supervisor ---- */

static void holding_unref(struct mu__future_owner *home)
{
    ((struct cluster_holding *)(void *)home)->given = NULL;
}

/* As the public node does it. */
static void holding_give_back(struct mu__future_owner *home, struct mu__held *held)
{
    struct cluster_holding *holding = (struct cluster_holding *)(void *)home;
    struct mu__msg *msg;

    if (!holding->task->runs) {
        mu__held_free(held);
        return;
    }
    msg = mu__msg_heap(MU__RELEASE_HELD, sizeof(struct mu__release_held));
    assert(msg != NULL);
    ((struct mu__release_held *)(void *)msg->body)->held = held;
    msg->to.actor = MU__CLIENT;
    holding->given = held;
    sim_post(holding->task->node, msg);
}

const struct mu__future_owner cluster__holding_home = {NULL, cluster__home_ref,
                                                       holding_unref, holding_give_back};

uint64_t cluster_kept(const struct cluster_closure *closure)
{
    return closure->future != NULL && closure->state == MU_REMOTE_READY
               ? closure->future->held.number
               : 0;
}

struct cluster_call *cluster_ask_mine(struct cluster_task *task, int64_t timeout_ms)
{
    return cluster_per_worker(task, "mine", NULL, timeout_ms);
}

struct cluster_per_worker *cluster_note_mine(const struct cluster_call *call)
{
    struct cluster *cluster = call->task->cluster;
    struct cluster_per_worker *per_worker = cluster__get(sizeof *per_worker);

    *per_worker = (struct cluster_per_worker){
        .holding = {.home = cluster__holding_home, .task = call->task},
        .next = cluster->per_workers,
        .life = call->life,
    };
    cluster->per_workers = per_worker;
    per_worker->value = mu__per_worker_new(&per_worker->holding.home);
    assert(per_worker->value != NULL);
    per_worker->value->held.number = call->of.client.input;
    per_worker->value->held.chief_epoch = call->of.client.chief_epoch;
    return per_worker;
}

void cluster_release_mine(struct cluster_per_worker *per_worker)
{
    mu_per_worker *value = per_worker->value;

    per_worker->value = NULL;
    if (value != NULL)
        mu__held_unref(&value->held);
}

static struct cluster_call *post_question(struct cluster_call *call, struct mu__msg *msg)
{
    assert(msg != NULL);
    call->of.client.request = msg;
    call->asks = true;
    return cluster__post(call, MU__CLIENT);
}

static struct cluster_call *make_per_worker(struct cluster_task *task,
                                            const char *function, mu_value *args,
                                            bool is_shared, int64_t timeout_ms)
{
    struct mu__msg *msg =
        mu__msg_heap(MU__PER_WORKER_MAKE, sizeof(struct mu__per_worker_make));
    struct mu__per_worker_make *body;

    assert(msg != NULL);
    body = (void *)msg->body;
    body->by_content = is_shared;
    if (function != NULL)
        body->function = mu__view_str(function);
    if (args != NULL)
        msg->backing = mu__pack_value(args, &body->args);
    mu_value_free(args);
    return post_question(cluster__call_new(task, MU__CLIENT_REQUEST, timeout_ms), msg);
}

struct cluster_call *cluster_per_worker(struct cluster_task *task, const char *function,
                                        mu_value *args, int64_t timeout_ms)
{
    return make_per_worker(task, function, args, false, timeout_ms);
}

struct cluster_call *cluster_per_worker_shared(
    struct cluster_task *task, const char *function, mu_value *args, int64_t timeout_ms)
{
    return make_per_worker(task, function, args, true, timeout_ms);
}

struct mu__held *cluster_per_worker_made(struct cluster_call *call)
{
    mu_per_worker *made = mu__per_worker_new(&call->task->home);

    assert(made != NULL);
    made->held.number = call->of.client.input;
    made->held.chief_epoch = call->of.client.chief_epoch;
    return &made->held;
}

struct cluster_call *cluster_explain(struct cluster_task *task,
                                     struct cluster_closure *closure, const char *name)
{
    struct cluster_call *call = cluster__call_new(
        task, name == NULL ? MU__CLIENT_EXPLAIN : MU__CLIENT_REQUEST, 1000);
    struct mu__msg *msg;

    if (name == NULL) {
        call->of.client.future = closure->future;
        return cluster__post(call, MU__CLIENT);
    }
    msg = mu__msg_heap(MU__STATUS_GET, sizeof(struct mu__status_get));
    assert(msg != NULL);
    ((struct mu__status_get *)(void *)msg->body)->name = mu__view_str(name);
    return post_question(call, msg);
}

struct cluster_call *cluster_drain(struct cluster_task *task, int worker,
                                   int64_t timeout_ms)
{
    return cluster_drain_task(task, "worker", worker, timeout_ms);
}

struct cluster_call *cluster_drain_task(struct cluster_task *task, const char *type,
                                        int index, int64_t timeout_ms)
{
    struct mu__msg *msg = mu__msg_heap(MU__DRAIN, sizeof(struct mu__drain));
    struct mu__drain *body = (void *)msg->body;

    assert(msg != NULL);
    body->worker = (uint32_t)(index + 1);
    body->worker_type = mu__view_str(type);
    return post_question(cluster__call_new(task, MU__CLIENT_REQUEST, timeout_ms), msg);
}

struct cluster_call *cluster_forget(struct cluster_task *task, int64_t timeout_ms)
{
    struct mu__msg *msg = mu__msg_heap(MU__FORGET, sizeof(struct mu__forget));

    assert(msg != NULL);
    return post_question(cluster__call_new(task, MU__CLIENT_REQUEST, timeout_ms), msg);
}
