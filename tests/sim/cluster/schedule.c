/* How programs schedule closures, and give them inputs. */
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

/* ---- Scheduling ---- */

static char *copy_of(const char *text)
{
    size_t size = strlen(text) + 1;

    return memcpy(cluster__get(size), text, size);
}

static void note_closure(struct cluster_session *session, struct cluster_closure *closure)
{
    if (session->closures_count == session->closures_capacity) {
        session->closures_capacity = session->closures_capacity * 2 + 64;
        session->closures = realloc(session->closures, session->closures_capacity *
                                                           sizeof *session->closures);
        assert(session->closures != NULL);
    }
    session->closures[session->closures_count++] = closure;
}

static struct cluster_closure *closure_new(struct cluster_task *task,
                                           const char *function, bool wanted,
                                           const struct cluster_ask *ask)
{
    struct cluster_closure *closure = cluster__get(sizeof *closure);

    assert(task->session != NULL);
    note_closure(task->session, closure);
    *closure = (struct cluster_closure){
        .task = task,
        .function = function,
        .key = -1,
        .session = task->session,
        .holding = {.home = cluster__holding_home, .task = task},
    };
    if (wanted)
        closure->future = mu__future_new(&closure->holding.home);
    if (ask != NULL)
        closure->ask = *ask;
    if (closure->ask.name != NULL)
        closure->ask.name = copy_of(closure->ask.name);
    closure->ask.key = NULL;
    assert(!wanted || closure->future != NULL);
    return closure;
}

static void give_key(struct cluster_closure *closure, const struct cluster_ask *ask)
{
    struct cluster *cluster = closure->task->cluster;

    closure->key = ask != NULL && ask->key != NULL ? *ask->key : cluster->key_next++;
    if (ask != NULL) {
        cluster->only_on[closure->key] = (uint8_t)ask->worker;
        cluster->never_on[closure->key] = (uint8_t)ask->not_worker;
        cluster->type_of[closure->key] = ask->worker_type;
    }
}

static void fill_submit(struct mu__msg *msg, const struct cluster_closure *closure)
{
    const struct cluster_ask *ask = &closure->ask;
    struct mu__schedule *body = (void *)msg->body;

    ((struct mu__submit *)(void *)msg->body)->future = closure->future;
    body->function = mu__view_str(closure->function);
    body->flags = ask->flags;
    body->priority = ask->priority;
    body->deadline_ms = ask->deadline_ms;
    body->run_timeout_ms = ask->run_timeout_ms;
    body->attempts_max = ask->attempts_max;
    body->worker = ask->worker;
    body->not_worker = ask->not_worker;
    if (ask->worker_type != NULL)
        body->worker_type = mu__view_str(ask->worker_type);
    if (closure->inputs_size > 0)
        body->inputs = (struct mu__view){closure->inputs, closure->inputs_size};
    if (ask->name != NULL)
        body->name = mu__view_str(ask->name);
}

/* As the public coordinator posts it. */
/* The bytes of its arguments. */
static uint64_t post_admitted(struct cluster_closure *closure, mu_value *args)
{
    struct mu__msg *msg = mu__msg_heap(MU__SUBMIT, sizeof(struct mu__submit));
    struct mu__schedule *body;
    uint64_t bytes;

    assert(msg != NULL && args != NULL);
    body = (void *)msg->body;
    fill_submit(msg, closure);
    msg->backing = mu__pack_value(args, &body->args);
    assert(msg->backing != NULL);
    mu_value_free(args);
    msg->to.actor = MU__CLIENT;
    bytes = body->args.head_size + body->args.tail_size;
    sim_post(closure->task->node, msg);
    return bytes;
}

/* Whether there is room or not. */
static void post_closure(struct cluster_closure *closure, mu_value *args)
{
    struct mu__session *shared = &closure->task->session->shared;

    (void)atomic_fetch_add(&shared->bytes_scheduled, post_admitted(closure, args));
    (void)atomic_fetch_add(&shared->scheduled, 1);
}

struct cluster_closure *cluster_schedule_with(
    struct cluster_task *task, const char *function, const struct cluster_ask *ask)
{
    struct cluster_closure *closure = closure_new(task, function, true, ask);

    give_key(closure, ask);
    post_closure(closure, mu_value_int(closure->key));
    return closure;
}

struct cluster_closure *cluster_schedule(struct cluster_task *task, const char *function)
{
    return cluster_schedule_with(task, function, NULL);
}

void cluster_schedule_dropped(struct cluster_task *task, const char *function)
{
    struct cluster_closure *closure = closure_new(task, function, false, NULL);

    give_key(closure, NULL);
    post_closure(closure, mu_value_int(closure->key));
}

struct cluster_closure *cluster_schedule_value(struct cluster_task *task,
                                               const char *function, mu_value *args)
{
    struct cluster_closure *closure = closure_new(task, function, true, NULL);

    post_closure(closure, args);
    return closure;
}

uint64_t cluster_args_bytes(const mu_value *args)
{
    struct mu__packed packed;
    struct mu__buf *backing = mu__pack_value(args, &packed);

    assert(backing != NULL);
    mu__buf_unref(backing);
    return packed.head_size + packed.tail_size;
}

struct cluster_closure *cluster_schedule_admitted(struct cluster_task *task,
                                                  const char *function, mu_value *args)
{
    struct cluster_closure *closure = closure_new(task, function, true, NULL);

    (void)post_admitted(closure, args);
    return closure;
}

struct cluster_call *cluster_admit(struct cluster_task *task, uint64_t bytes,
                                   int64_t timeout_ms)
{
    struct cluster_call *call = cluster__call_new(task, MU__CLIENT_ROOM, timeout_ms);

    call->of.client.bytes = bytes;
    call->of.client.admits = true;
    call->of.client.raises = true;
    return cluster__post(call, MU__CLIENT);
}

static void store_little64(uint8_t *out, uint64_t number)
{
    for (unsigned i = 0; i < sizeof number; i++)
        out[i] = (uint8_t)(number >> (8 * i));
}

struct cluster_closure *cluster_sum(struct cluster_task *task,
                                    const struct cluster_ask *ask,
                                    const struct cluster_input *inputs, size_t count)
{
    struct cluster_closure *closure = closure_new(task, "sum", true, ask);
    mu_value *list = mu_value_list();

    assert(count <= CLUSTER_INPUTS_MAX);
    give_key(closure, ask);
    (void)mu_value_append(list, mu_value_int(closure->key));
    for (size_t i = 0; i < count; i++) {
        (void)mu_value_append(list, mu_value_int(inputs[i].expected));
        (void)mu_value_append(list, mu__value_reference(inputs[i].number, NULL, NULL));
        store_little64(closure->inputs + closure->inputs_size, inputs[i].number);
        closure->inputs_size += 8;
    }
    post_closure(closure, list);
    return closure;
}

int64_t cluster_result(const struct cluster_closure *closure)
{
    int64_t number = INT64_MIN;

    if (mu_remote_value_state(closure->future) == MU_REMOTE_READY &&
        closure->future->error == NULL && closure->future->result != NULL)
        (void)mu_value_get_int(closure->future->result, &number);
    return number;
}

/* ---- The counter ---- */

static struct cluster_call *ask_counter(struct cluster_task *task, int operation,
                                        int64_t timeout_ms)
{
    struct cluster_counter *counter = &task->cluster->counter;
    const struct mu__variable_call call = {
        .call = {.operation = operation, .timeout_ms = timeout_ms},
        .name = CLUSTER_COUNTER,
        .shape = &counter->shape,
        .servers_count = task->cluster->options.servers,
        .ids = counter->ids,
        .target = counter->items,
    };

    return cluster_variable(task, &call);
}

struct cluster_call *cluster_counter_open(struct cluster_task *task, unsigned items,
                                          int64_t timeout_ms)
{
    uint32_t servers = task->cluster->options.servers;

    assert(items <= CLUSTER_ITEMS_MAX && servers >= 1 && servers <= items);
    task->cluster->counter.shape = (struct mu__shape){
        .dtype = MU_I64, .rank = 1, .dims = {items}, .shards = servers};
    return ask_counter(task, MU__VARIABLE_OPEN, timeout_ms);
}

struct cluster_call *cluster_counter_read(struct cluster_task *task, int64_t timeout_ms)
{
    return ask_counter(task, MU__VARIABLE_READ, timeout_ms);
}

static mu_value *write_args(const struct cluster *cluster, int64_t key)
{
    const struct cluster_counter *counter = &cluster->counter;
    uint64_t at = (uint64_t)key * sizeof(int64_t);
    uint64_t offset = 0;
    uint64_t bytes = 0;
    uint32_t shard = 0;
    mu_value *list = mu_value_list();

    assert(key >= 0 && (uint64_t)key < counter->shape.dims[0]);
    for (; shard < counter->shape.shards; shard++) {
        mu__shape_shard(&counter->shape, shard, &offset, &bytes);
        if (at < offset + bytes)
            break;
    }
    (void)mu_value_append(list, mu_value_int(key));
    (void)mu_value_append(list, mu_value_int((int64_t)counter->ids[shard]));
    (void)mu_value_append(
        list, mu_value_int(mu__partition_of(mu__view_str(CLUSTER_COUNTER), shard)));
    (void)mu_value_append(list, mu_value_int((int64_t)((at - offset) / sizeof at)));
    (void)mu_value_append(list, mu_value_int((int64_t)bytes));
    return list;
}

struct cluster_closure *cluster_write(struct cluster_task *task,
                                      const struct cluster_ask *ask)
{
    struct cluster_closure *closure = closure_new(task, "write", true, ask);

    assert(task->cluster->options.effects_add != NULL);
    give_key(closure, ask);
    post_closure(closure, write_args(task->cluster, closure->key));
    return closure;
}

/* ---- Inputs ---- */

/* As the public coordinator does with per-worker values. */
static void post_holds(struct cluster_closure *closure, const mu_value *args,
                       const struct mu__references *inputs)
{
    struct mu__session *shared = &closure->task->session->shared;
    struct mu__msg *msg = mu__msg_heap(MU__SUBMIT, sizeof(struct mu__submit) +
                                                       inputs->count * sizeof(uint64_t));
    struct mu__schedule *body;

    assert(msg != NULL);
    body = (void *)msg->body;
    fill_submit(msg, closure);
    msg->backing = mu__pack_value(args, &body->args);
    assert(msg->backing != NULL);
    mu__holds_take(body, (uint8_t *)body + sizeof(struct mu__submit), inputs);
    msg->to.actor = MU__CLIENT;
    (void)atomic_fetch_add(&shared->scheduled, 1);
    sim_post(closure->task->node, msg);
}

static void post_pending(struct cluster_closure *closure, mu_value *args,
                         const struct mu__references *inputs)
{
    struct mu__session *shared = &closure->task->session->shared;
    struct mu__msg *msg = mu__msg_heap(MU__SUBMIT, sizeof(struct mu__submit) +
                                                       inputs->count * sizeof(uint64_t));
    struct mu__msg *wrap =
        mu__msg_heap(MU__SCHEDULE_PENDING, sizeof(struct mu__schedule_pending));
    struct mu__pending_closure *pending =
        mu__pending_new(inputs->held, (uint32_t)inputs->count, args);

    assert(msg != NULL && wrap != NULL && pending != NULL);
    fill_submit(msg, closure);
    pending->msg = msg;
    pending->numbers = (uint8_t *)msg->body + sizeof(struct mu__submit);
    pending->future = closure->future;
    ((struct mu__schedule_pending *)(void *)wrap->body)->pending = pending;
    wrap->to.actor = MU__CLIENT;
    (void)atomic_fetch_add(&shared->scheduled, 1);
    sim_post(closure->task->node, wrap);
}

struct cluster_closure *cluster_schedule_args(struct cluster_task *task,
                                              const char *function, mu_value *args,
                                              const struct cluster_ask *ask)
{
    struct cluster_closure *closure = closure_new(task, function, true, ask);
    struct mu__references inputs = {0};

    if (!mu__has_references(args)) {
        post_closure(closure, args);
        return closure;
    }
    if (mu__references_collect(args, &inputs) != 0)
        cluster_break(task->cluster, "references that hold nothing");
    if (mu__holds_suffice(&inputs))
        post_holds(closure, args, &inputs);
    else
        post_pending(closure, args, &inputs);
    mu__references_done(&inputs);
    mu_value_free(args);
    return closure;
}

mu_value *cluster_reference(struct cluster_closure *closure)
{
    return mu__reference_to(&closure->future->held);
}

void cluster_cancel(struct cluster_closure *closure)
{
    struct mu__msg *msg =
        mu__msg_heap(MU__CANCEL_FUTURE, sizeof(struct mu__cancel_future));

    assert(msg != NULL);
    closure->cancelled = true;
    mu__held_ref(&closure->future->held);
    ((struct mu__cancel_future *)(void *)msg->body)->future = closure->future;
    msg->to.actor = MU__CLIENT;
    sim_post(closure->task->node, msg);
}

void cluster_let_go(struct cluster_closure *closure)
{
    mu_remote_value_free(closure->future);
    closure->future = NULL;
}
