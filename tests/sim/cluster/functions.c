/* The functions that the simulated workers register. */
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

/* ---- Functions ---- */

int64_t cluster_square(int64_t key)
{
    return key * key + 7;
}

static int64_t key_of(mu_run *run)
{
    int64_t key = -1;

    (void)mu_value_get_int(mu_run_args(run), &key);
    return key;
}

static int64_t number_at(mu_run *run, size_t i)
{
    int64_t number = -1;

    (void)mu_value_get_int(mu_value_at(mu_run_args(run), i), &number);
    return number;
}

/* Whether a task is the one that `index` + 1 stands for: without a type, a worker. */
static bool is_named(const struct cluster_task *task, int64_t key, unsigned index)
{
    const char *type = task->cluster->type_of[key];

    return index == task->index + 1 &&
           strcmp(task->type, type == NULL ? "worker" : type) == 0;
}

static void record(struct cluster_task *task, const char *function, int64_t key)
{
    struct cluster *cluster = task->cluster;

    assert(key >= 0 && key < CLUSTER_KEYS_MAX);
    if (cluster->type_of[key] != NULL && strcmp(cluster->type_of[key], task->type) != 0)
        cluster_break(cluster, "%s %" PRId64 " is for tasks of type %s, but runs on %s",
                      function, key, cluster->type_of[key], task->name);
    if (cluster->only_on[key] != 0 && !is_named(task, key, cluster->only_on[key]))
        cluster_break(cluster, "%s %" PRId64 " is for task %d only, but runs on %s",
                      function, key, cluster->only_on[key] - 1, task->name);
    if (cluster->never_on[key] != 0 && is_named(task, key, cluster->never_on[key]))
        cluster_break(cluster, "%s %" PRId64 " must not run on %s, but does", function,
                      key, task->name);
    cluster->runs[key]++;
    cluster->runs_count++;
    sim_note(cluster->sim, MU__LOG_DEBUG, "%s runs %s %" PRId64, task->name, function,
             key);
}

/* Inline functions run where a process may have no memory. */
static int return_square(mu_run *run, int64_t key)
{
    mu_value *square = mu_value_int(cluster_square(key));

    mu_run_return(run, square);
    return square == NULL ? -MU_ENOMEM : 0;
}

static int run_square(mu_run *run, void *user)
{
    int64_t key = key_of(run);

    record(user, "square", key);
    return return_square(run, key);
}

static int run_patient(mu_run *run, void *user)
{
    if (mu_run_cancelled(run))
        return mu_run_fail(run, -MU_ECANCELLED, "stopped early");
    return run_square(run, user);
}

static int run_fail(mu_run *run, void *user)
{
    int64_t key = key_of(run);

    record(user, "fail", key);
    return mu_run_fail(run, -MU_EINVALID, "bad %" PRId64, key);
}

static int run_weigh(mu_run *run, void *user)
{
    const void *data;
    size_t size = 0;

    (void)user;
    (void)mu_value_get_bytes(mu_run_args(run), &data, &size);
    mu_run_return(run, mu_value_int((int64_t)size));
    return 0;
}

static int run_make(mu_run *run, void *user)
{
    size_t size = (size_t)key_of(run);
    void *data = cluster__get(size);

    (void)user;
    mu_run_return(run, mu_value_bytes(data, size));
    free(data);
    return 0;
}

/* Differs from that of any other process. */
static int64_t mine_of(const struct cluster_task *task)
{
    bool is_gpu = strcmp(task->type, "gpu") == 0;
    int64_t place = task->index + (is_gpu ? CLUSTER_TASKS_MAX : 0);

    return -(place * 100000 + sim_lives(task->node));
}

static int run_mine(mu_run *run, void *user)
{
    mu_value *mine = mu_value_int(mine_of(user));

    mu_run_return(run, mine);
    return mine == NULL ? -MU_ENOMEM : 0;
}

/* Arguments: the key, then what an input should be, and the input; and so on. */
static int run_sum(mu_run *run, void *user)
{
    struct cluster_task *task = user;
    int64_t key = number_at(run, 0);

    record(task, "sum", key);
    for (size_t i = 1; i < mu_value_count(mu_run_args(run)); i += 2) {
        int64_t expected = number_at(run, i);
        int64_t got = number_at(run, i + 1);

        if (expected == CLUSTER_MINE)
            expected = mine_of(task);
        if (got != expected)
            cluster_break(task->cluster,
                          "sum %" PRId64 " on %s: an input is %" PRId64 ", not %" PRId64,
                          key, task->name, got, expected);
    }
    return return_square(run, key);
}

/* A shard of zeros with one 1. */
static int run_write(mu_run *run, void *user)
{
    struct cluster_task *task = user;
    int64_t key = number_at(run, WRITE_KEY);
    const struct mu__effect write = {
        .partition = (uint32_t)number_at(run, WRITE_PARTITION),
        .operation = MU__WRITE_ADD,
        .variable = (uint64_t)number_at(run, WRITE_SHARD),
        .size = (uint64_t)number_at(run, WRITE_SIZE),
    };
    int64_t *data = cluster__get(write.size);
    int rv;

    record(task, "write", key);
    data[number_at(run, WRITE_ITEM)] = 1;
    rv = task->cluster->options.effects_add(&run->effects, &write, data);
    free(data);
    return rv != 0 ? rv : return_square(run, key);
}

static const struct cluster_function functions[CLUSTER_FUNCTIONS_COUNT] = {
    {"square", run_square, 0},   {"quick", run_square, MU_FUNCTION_INLINE},
    {"patient", run_patient, 0}, {"fail", run_fail, 0},
    {"weigh", run_weigh, 0},     {"make", run_make, 0},
    {"mine", run_mine, 0},       {"sum", run_sum, 0},
    {"write", run_write, 0},
};

static size_t functions_count(const struct cluster *cluster)
{
    return CLUSTER_FUNCTIONS_COUNT - (cluster->options.effects_add == NULL);
}

/* All works are runs. */
uint64_t cluster__work_us(const struct mu__work *work)
{
    const struct mu__registered *registered = ((const struct mu_run *)work)->registered;
    const struct cluster_task *task = registered->user;

    return task->cluster->options.work_us(registered->name);
}

static void registered(struct mu__call *call)
{
    assert(call->code == 0);
}

static void register_function(struct cluster_task *task, struct mu__function_call *call,
                              const struct cluster_function *function)
{
    struct mu__msg *msg = mu__msg_heap(MU__CALL, sizeof(struct mu__call_msg));

    assert(msg != NULL);
    *call = (struct mu__function_call){
        .call.complete = registered,
        .name = function->name,
        .function = function->function,
        .user = task,
        .flags = function->flags,
    };
    ((struct mu__call_msg *)(void *)msg->body)->call = call;
    msg->to.actor = MU__WORKER;
    (void)mu__kernel_deliver(task->member.kernel, msg);
}

/* Before the first turn, as a program does that registers before it serves. */
void cluster__register_functions(struct cluster_task *task)
{
    const struct cluster_options *options = &task->cluster->options;
    size_t count = functions_count(task->cluster);

    assert(options->functions_count <= CLUSTER_OWN_MAX);
    for (size_t i = 0; i < count; i++)
        register_function(task, &task->functions[i], &functions[i]);
    for (size_t i = 0; i < options->functions_count; i++)
        register_function(task, &task->functions[count + i], &options->functions[i]);
}
