/* The cluster itself: its tasks, their processes and what programs in them do. */
#include "tests/sim/cluster.h"

#include "actors/client/future.h"
#include "actors/client/holds.h"
#include "actors/messages.h"
#include "actors/packing.h"
#include "actors/ps/variable_store.h"
#include "actors/references.h"
#include "actors/worker/run.h"
#include "runtime/message/value_parts.h"
#include "tests/sim/etcd.h"

#include <assert.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SETTLE_MS = 60 * 1000, SAID_MS = 100 };

#define COUNTER_NAME "count"

/* The arguments of "write", a list. */
enum { WRITE_KEY, WRITE_SHARD, WRITE_SERVER, WRITE_ITEM, WRITE_SIZE };

static void *get(size_t size)
{
    void *memory = calloc(1, size);

    assert(memory != NULL);
    return memory;
}

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
    void *data = get(size);

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
            cluster_break(task->cluster, "sum %" PRId64 " on %s: an input is %" PRId64
                          ", not %" PRId64, key, task->name, got, expected);
    }
    return return_square(run, key);
}

/* A shard of zeros with one 1. */
static int run_write(mu_run *run, void *user)
{
    struct cluster_task *task = user;
    int64_t key = number_at(run, WRITE_KEY);
    const struct mu__effect write = {
        .server = (uint32_t)number_at(run, WRITE_SERVER),
        .operation = MU__WRITE_ADD,
        .variable = (uint64_t)number_at(run, WRITE_SHARD),
        .size = (uint64_t)number_at(run, WRITE_SIZE),
    };
    int64_t *data = get(write.size);
    int rv;

    record(task, "write", key);
    data[number_at(run, WRITE_ITEM)] = 1;
    rv = task->cluster->options.effects_add(&run->effects, &write, data);
    free(data);
    return rv != 0 ? rv : return_square(run, key);
}

static const struct cluster_function functions[CLUSTER_FUNCTIONS_COUNT] = {
    {"square", run_square, 0},     {"quick", run_square, MU_FUNCTION_INLINE},
    {"patient", run_patient, 0},   {"fail", run_fail, 0},
    {"weigh", run_weigh, 0},       {"make", run_make, 0},
    {"mine", run_mine, 0},         {"sum", run_sum, 0},
    {"write", run_write, 0},
};

static size_t functions_count(const struct cluster *cluster)
{
    return CLUSTER_FUNCTIONS_COUNT - (cluster->options.effects_add == NULL);
}

/* All works are runs. */
static uint64_t work_us(const struct mu__work *work)
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
static void register_functions(struct cluster_task *task)
{
    const struct cluster_options *options = &task->cluster->options;
    size_t count = functions_count(task->cluster);

    assert(options->functions_count <= CLUSTER_OWN_MAX);
    for (size_t i = 0; i < count; i++)
        register_function(task, &task->functions[i], &functions[i]);
    for (size_t i = 0; i < options->functions_count; i++)
        register_function(task, &task->functions[count + i], &options->functions[i]);
}

/* ---- Processes ---- */

static unsigned window_of(const struct cluster_options *options)
{
    if (options->window != 0 || options->adaptive)
        return options->window;
    return options->threads < 2 ? 4 : options->threads * 2;
}

static void set_options(const struct cluster_task *task, mu_node_options *node)
{
    const struct cluster_options *options = &task->cluster->options;

    node->cluster = task->spec != NULL ? task->spec : task->cluster->spec;
    node->cluster_name = task->cluster_name;
    node->task_type = task->type;
    node->task_index = (int)task->plays_index;
    node->threads = options->threads;
    node->window = window_of(options);
    node->queue_max = options->queue_max;
    node->attempts_max = options->attempts_max;
    node->worker_types = task->worker_types != NULL ? task->worker_types
                         : options->gpus > 0        ? "worker,gpu"
                                                    : NULL;
    node->heartbeat_ms = options->heartbeat_ms;
    node->silence_ms = options->silence_ms;
    if (options->hosts != NULL)
        node->run = task->run;
}

/* Of a cluster that has a service. */
static void set_coordination(struct cluster_task *task, struct mu__member_config *config)
{
    const struct cluster_options *options = &task->cluster->options;

    if (options->hosts == NULL)
        return;
    config->hosts = options->hosts;
    config->coordination = options->coordination;
    config->coordination.storage = task->store.storage;
    if (task->cluster->etcd == NULL)
        return;
    task->door = sim_etcd_door(task->cluster->etcd, task->node);
    config->coordination.http = task->door;
}

static void on_taken(void *owner, const char *reason)
{
    struct cluster_task *task = owner;

    (void)reason;
    task->taken++;
}

static bool is_damaged(const struct cluster_journal *journal)
{
    return journal->is_damaged != NULL && journal->is_damaged(journal->storage);
}

/* Of a damaged file nothing may be lost without a word: it is refused, as what it is. A
 * host's process goes on without its service. */
static void check_start(struct cluster_task *task, int rv, const mu_error *error)
{
    bool damaged = is_damaged(&task->journal);
    bool tight = rv == -MU_EEXHAUSTED && task->journal.is_tight != NULL &&
                 task->journal.is_tight(task->journal.storage);

    task->refused += damaged || is_damaged(&task->store);
    task->refused_tight += tight;
    if (!damaged && !tight && rv != 0)
        cluster_break(task->cluster, "%s does not start: %s", task->name, error->message);
    if (!damaged)
        return;
    if (rv == 0)
        cluster_break(task->cluster, "%s starts over a damaged file", task->name);
    else if (rv != -MU_EDATALOSS || error->message[0] == '\0')
        cluster_break(task->cluster, "%s does not start over a damaged file: %s (%s)",
                      task->name, mu_err_name(rv), error->message);
    else
        sim_note(task->cluster->sim, MU__LOG_WARN, "%s: %s", task->name, error->message);
}

static int start_process(void *arg, struct sim_node *node, struct mu__world *world,
                         struct mu__wire *wire)
{
    struct cluster_task *task = arg;
    const struct cluster_options *options = &task->cluster->options;
    mu_node_options own = options->node;
    struct mu__member_config config = {
        .options = &own,
        .serves_at_once = true,
        .only = task->only,
        .only_why = task->only_why,
        .dials_any = task->dials_any,
        .offer_check = task->offer_check,
        .offer_owner = task->offer_owner,
        .takes_offer = task->takes_offer,
        .address = task->advertises != NULL ? task->advertises : task->address,
        .listens = task->address,
        .journal = task->journal.storage,
        .taken = on_taken,
        .taken_owner = task,
    };
    struct mu__world_hooks hooks;
    mu_error error = {0};
    int rv;

    set_options(task, &own);
    set_coordination(task, &config);
    rv = mu__member_start(&task->member, &config, world, wire, &error);
    check_start(task, rv, &error);
    if (rv != 0)
        return rv;
    task->runs = true;
    hooks = mu__member_hooks(&task->member);
    sim_attach(node, &hooks, &mu__member_events, &task->member);
    register_functions(task);
    return 0;
}

/* Calls that never reached their actor end here. */
static void end_calls(struct cluster_task *task)
{
    for (struct cluster_call *call = task->cluster->calls; call != NULL;
         call = call->next)
        if (call->task == task && !call->done) {
            call->of.call.code = -MU_ECLOSED;
            call->done = true;
        }
}

/* What the client actor never heard of has references that are nobody's: a closure, or
 * that it is to be cancelled. */
static void end_closure(struct cluster_closure *closure)
{
    struct mu__held *given = closure->holding.given;

    if (given != NULL)
        mu__held_free(given);
    if (closure->future != NULL &&
        (closure->cancelled ||
         mu_remote_value_state(closure->future) == MU_REMOTE_NOT_READY))
        atomic_store(&closure->future->held.refs, 1);
}

static void end_sessions(struct cluster_task *task)
{
    struct cluster_session *session = task->cluster->sessions;

    for (; session != NULL; session = session->next) {
        session->over = session->over || session == task->session;
        for (size_t i = 0; i < session->closures_count; i++)
            if (session->closures[i]->task == task)
                end_closure(session->closures[i]);
    }
    for (struct cluster_per_worker *at = task->cluster->per_workers; at != NULL;
         at = at->next)
        if (at->holding.task == task && at->holding.given != NULL)
            mu__held_free(at->holding.given);
    task->session = NULL;
}

static void stop_process(void *arg)
{
    struct cluster_task *task = arg;
    struct mu__kernel *kernel = task->member.kernel;
    const struct cluster_journal *journal = &task->journal;
    const struct cluster_journal *store = &task->store;

    if (task == task->cluster->chief)
        cluster_note_supervisor(task->cluster);
    task->runs = false;
    if (journal->dies != NULL)
        journal->dies(journal->storage);
    if (store->dies != NULL)
        store->dies(store->storage);
    if (task->door != NULL)
        sim_etcd_door_end(task->door);
    mu__worker_forget_runs(mu__actor_state(kernel, (mu__pid){0, MU__WORKER}),
                           mu__kernel_pool(kernel));
    mu__member_stop(&task->member);
    if (journal->is_gone != NULL)
        journal->is_gone(journal->storage);
    if (store->is_gone != NULL)
        store->is_gone(store->storage);
    end_calls(task);
    end_sessions(task);
}

static const struct sim_program program = {start_process, stop_process};

/* ---- Clusters ---- */

/* A home is in its task, which outlives what is held. */
static void home_ref(struct mu__future_owner *home)
{
    (void)home;
}

static void home_unref(struct mu__future_owner *home)
{
    (void)home;
}

static void home_give_back(struct mu__future_owner *home, struct mu__held *held)
{
    struct cluster_task *task =
        (void *)((char *)home - offsetof(struct cluster_task, home));
    struct mu__msg *msg;

    if (task->cluster->sim == NULL || !sim_alive(task->node)) {
        mu__held_free(held);
        return;
    }
    msg = mu__msg_heap(MU__RELEASE_HELD, sizeof(struct mu__release_held));
    assert(msg != NULL);
    ((struct mu__release_held *)(void *)msg->body)->held = held;
    msg->to.actor = MU__CLIENT;
    sim_post(task->node, msg);
}

struct cluster_task *cluster_add(struct cluster *cluster, const char *type,
                                 uint32_t index, const char *name)
{
    struct cluster_task *task = &cluster->tasks[cluster->tasks_count++];

    assert(cluster->tasks_count <= CLUSTER_TASKS_MAX);
    *task = (struct cluster_task){
        .cluster = cluster,
        .type = type,
        .index = index,
        .plays_index = index,
        .cluster_name = "test",
    };
    (void)snprintf(task->name, sizeof task->name, "%s", name);
    (void)snprintf(task->address, sizeof task->address, "tcp://%s:1", name);
    for (char *at = task->address + strlen("tcp://"); *at != '\0'; at++)
        if (*at == '/')
            *at = '-';
    task->home = (struct mu__future_owner){
        .ref = home_ref, .unref = home_unref, .give_back = home_give_back};
    task->node = sim_node_add(cluster->sim, task->name, task->address, &program, task);
    return task;
}

static struct cluster_task *add_task(struct cluster *cluster, const char *type,
                                     uint32_t index, bool in_spec)
{
    struct cluster_task *task;
    char name[24];
    mu_error error;

    (void)snprintf(name, sizeof name, "%s/%" PRIu32, type, index);
    task = cluster_add(cluster, type, index, name);
    if (in_spec && mu_cluster_add(cluster->spec, type, (int)index, task->address,
                                  &error) != 0)
        cluster_break(cluster, "%s", error.message);
    return task;
}

static unsigned or_default(unsigned number, unsigned value)
{
    return number == 0 ? value : number;
}

static void set_coordination_defaults(struct cluster *cluster)
{
    struct mu__coordination_config *c = &cluster->options.coordination;
    size_t at = 0;

    if (cluster->options.hosts == NULL)
        return;
    at += (size_t)snprintf(cluster->coordinated, sizeof cluster->coordinated, "chief:0");
    if (cluster->options.servers > 0)
        at += (size_t)snprintf(cluster->coordinated + at,
                               sizeof cluster->coordinated - at, ",ps:0-%u",
                               cluster->options.servers - 1);
    if (cluster->options.workers > 0)
        at += (size_t)snprintf(cluster->coordinated + at,
                               sizeof cluster->coordinated - at, ",worker:0-%u",
                               cluster->options.workers - 1);
    if (cluster->options.gpus > 0)
        (void)snprintf(cluster->coordinated + at, sizeof cluster->coordinated - at,
                       ",gpu:0-%u", cluster->options.gpus - 1);
    if (c->store == NULL)
        c->store = &mu__store_memory;
    if (c->tasks == NULL)
        c->tasks = cluster->coordinated;
    if (c->recoverable == NULL)
        c->recoverable = "all";
    c->suspect_ms = or_default(c->suspect_ms, 500);
    c->dead_ms = or_default(c->dead_ms, 1000);
    c->reconnect_ms = or_default(c->reconnect_ms, 200);
}

struct cluster *cluster_new(uint64_t seed, const struct cluster_options *options)
{
    struct cluster *cluster = get(sizeof *cluster);

    cluster->sim = sim_new(seed);
    cluster->spec = mu_cluster_new();
    assert(cluster->spec != NULL);
    cluster->options = *options;
    cluster->options.threads = or_default(options->threads, 1);
    cluster->options.queue_max = or_default(options->queue_max, 4096);
    cluster->options.attempts_max = or_default(options->attempts_max, 10);
    cluster->options.heartbeat_ms = or_default(options->heartbeat_ms, 100);
    cluster->options.silence_ms = or_default(options->silence_ms, 500);
    set_coordination_defaults(cluster);
    sim_settings(cluster->sim)->executors = cluster->options.threads;
    if (options->work_us != NULL)
        sim_settings(cluster->sim)->work_us = work_us;
    cluster->chief = add_task(cluster, "chief", 0, true);
    for (uint32_t i = 0; i < options->workers; i++)
        cluster->workers[i] = add_task(cluster, "worker", i, true);
    for (uint32_t i = 0; i < options->gpus; i++)
        cluster->gpus[i] = add_task(cluster, "gpu", i, true);
    for (uint32_t i = 0; i < options->servers; i++)
        cluster->servers[i] = add_task(cluster, "ps", i, true);
    if (options->evaluator)
        cluster->evaluator = add_task(cluster, "evaluator", 0, true);
    for (uint32_t i = 0; i < options->clients; i++)
        cluster->clients[i] = add_task(cluster, "client", i, false);
    sim_set_check(cluster->sim, cluster_check_event, cluster);
    return cluster;
}

static void free_session(struct cluster_session *session)
{
    struct mu__error_entry *entry = atomic_load(&session->shared.errors);

    for (size_t i = 0; i < session->closures_count; i++) {
        if (session->closures[i]->future != NULL)
            mu_remote_value_free(session->closures[i]->future);
        free((char *)session->closures[i]->ask.name);
        free(session->closures[i]);
    }
    while (entry != NULL) {
        struct mu__error_entry *next = entry->next;

        mu__free_array(entry);
        entry = next;
    }
    free(session->closures);
    free(session);
}

void cluster_free(struct cluster *cluster)
{
    if (cluster == NULL)
        return;
    sim_free(cluster->sim);
    while (cluster->per_workers != NULL) {
        struct cluster_per_worker *next = cluster->per_workers->next;

        cluster_release_mine(cluster->per_workers);
        free(cluster->per_workers);
        cluster->per_workers = next;
    }
    cluster->sim = NULL;
    while (cluster->sessions != NULL) {
        struct cluster_session *next = cluster->sessions->next;

        free_session(cluster->sessions);
        cluster->sessions = next;
    }
    while (cluster->calls != NULL) {
        struct cluster_call *next = cluster->calls->next;

        if (cluster->calls->asks)
            free(cluster->calls->of.client.request);
        free(cluster->calls);
        cluster->calls = next;
    }
    mu_cluster_free(cluster->spec);
    free(cluster);
}

void cluster_start(struct cluster_task *task)
{
    if (sim_start(task->node) != 0 && task->refused + task->refused_tight == 0)
        cluster_break(task->cluster, "%s does not start", task->name);
}

int cluster_learn(struct cluster_task *task, const mu_cluster *spec, mu_error *ret_error)
{
    task->spec = spec;
    if (!task->runs || !sim_alive(task->node))
        return 0;
    return mu__member_set_cluster(&task->member, spec, ret_error);
}

void cluster_start_all(struct cluster *cluster)
{
    for (unsigned i = 0; i < cluster->tasks_count; i++)
        if (!sim_alive(cluster->tasks[i].node))
            cluster_start(&cluster->tasks[i]);
}

uint32_t cluster_links(const struct cluster_task *task)
{
    return sim_alive(task->node) ? mu__links_count_up(task->member.links) : 0;
}

static bool is_settled(void *arg)
{
    struct cluster *cluster = arg;
    uint32_t peers = cluster->tasks_count - 1;

    if (cluster_links(cluster->chief) < peers)
        return false;
    for (unsigned i = 0; i < cluster->tasks_count; i++)
        if (cluster_links(&cluster->tasks[i]) == 0)
            return false;
    return true;
}

bool cluster_settle(struct cluster *cluster)
{
    struct sim *sim = cluster->sim;

    if (!sim_run_to(sim, is_settled, cluster, sim_now_ms(sim) + SETTLE_MS))
        return false;
    sim_run_until(sim, sim_now_ms(sim) + SAID_MS);
    return true;
}

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

static struct cluster_call *call_new(struct cluster_task *task, int operation,
                                     int64_t timeout_ms)
{
    struct cluster_call *call = get(sizeof *call);

    call->of.call = (struct mu__call){
        .complete = complete, .operation = operation, .timeout_ms = timeout_ms};
    call->task = task;
    call->life = sim_lives(task->node);
    call->next = task->cluster->calls;
    task->cluster->calls = call;
    return call;
}

static struct cluster_call *post(struct cluster_call *call, uint32_t actor)
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
    return post(call_new(task, (int)operation, timeout_ms), MU__CLIENT);
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
    struct cluster_call *call = call_new(task, MU__CLIENT_OPEN, timeout_ms);
    struct cluster_session *session = get(sizeof *session);

    session->shared.closures_max = task->cluster->options.queue_max;
    session->shared.bytes_max = task->cluster->options.node.queue_bytes_max;
    session->next = task->cluster->sessions;
    task->cluster->sessions = session;
    task->session = session;
    note_program(task);
    call->of.client.session = &session->shared;
    return post(call, MU__CLIENT);
}

struct cluster_call *cluster_fetch(struct cluster_closure *closure, int64_t timeout_ms)
{
    struct cluster_call *call = call_new(closure->task, MU__CLIENT_FETCH, timeout_ms);

    call->of.client.future = closure->future;
    return post(call, MU__CLIENT);
}

struct cluster_call *cluster_job(struct cluster_task *task,
                                 enum mu__job_operation operation, int code,
                                 const char *message, int64_t timeout_ms)
{
    struct cluster_call *call = call_new(task, (int)operation, timeout_ms);

    call->of.job.job_code = code;
    call->of.job.message = message;
    return post(call, MU__JOB);
}

struct cluster_call *cluster_job_ask(struct cluster_task *task,
                                     const struct mu__job_call *wanted)
{
    struct cluster_call *call =
        call_new(task, wanted->call.operation, wanted->call.timeout_ms);
    struct mu__call begun = call->of.call;

    call->of.job = *wanted;
    call->of.call = begun;
    return post(call, MU__JOB);
}

struct cluster_call *cluster_peers(struct cluster_task *task,
                                   enum mu__peers_operation operation, int64_t timeout_ms)
{
    return post(call_new(task, (int)operation, timeout_ms), MU__PEERS);
}

struct cluster_call *cluster_metric(struct cluster_task *task, const char *name)
{
    struct cluster_call *call = call_new(task, 0, -1);

    call->of.metric.name = name;
    return post(call, MU__SUPERVISOR);
}

struct cluster_call *cluster_variable(struct cluster_task *task,
                                      const struct mu__variable_call *wanted)
{
    struct cluster_call *call =
        call_new(task, wanted->call.operation, wanted->call.timeout_ms);
    struct mu__call begun = call->of.call;

    call->of.variable = *wanted;
    call->of.call = begun;
    return post(call, MU__VARIABLES);
}

struct cluster_call *cluster_agent(struct cluster_task *task,
                                   const struct mu__agent_call *wanted)
{
    struct cluster_call *call =
        call_new(task, wanted->call.operation, wanted->call.timeout_ms);
    struct mu__call begun = call->of.call;

    call->of.agent = *wanted;
    call->of.call = begun;
    return post(call, MU__AGENT);
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
    struct cluster_call *call = call_new(task, 0, ask->timeout_ms);
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

static const struct mu__future_owner holding_home = {NULL, home_ref, holding_unref,
                                             holding_give_back};

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
    struct cluster_per_worker *per_worker = get(sizeof *per_worker);

    *per_worker = (struct cluster_per_worker){
        .holding = {.home = holding_home, .task = call->task},
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

/* ---- Scheduling ---- */

static char *copy_of(const char *text)
{
    size_t size = strlen(text) + 1;

    return memcpy(get(size), text, size);
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
    struct cluster_closure *closure = get(sizeof *closure);

    assert(task->session != NULL);
    note_closure(task->session, closure);
    *closure = (struct cluster_closure){
        .task = task,
        .function = function,
        .key = -1,
        .session = task->session,
        .holding = {.home = holding_home, .task = task},
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

struct cluster_closure *cluster_schedule_with(struct cluster_task *task,
                                              const char *function,
                                              const struct cluster_ask *ask)
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
    struct cluster_call *call = call_new(task, MU__CLIENT_ROOM, timeout_ms);

    call->of.client.bytes = bytes;
    call->of.client.admits = true;
    return post(call, MU__CLIENT);
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
        .name = COUNTER_NAME,
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
    uint64_t home = mu__name_hash(mu__view_str(COUNTER_NAME)) % cluster->options.servers;
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
    (void)mu_value_append(list, mu_value_int((int64_t)((home + shard) %
                                                       cluster->options.servers)));
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

/* ---- Inputs, wishes, questions ---- */

/* As the public coordinator does with per-worker values. */
static void post_holds(struct cluster_closure *closure, const mu_value *args,
                       const struct mu__references *inputs)
{
    struct mu__session *shared = &closure->task->session->shared;
    struct mu__msg *msg = mu__msg_heap(
        MU__SUBMIT, sizeof(struct mu__submit) + inputs->count * sizeof(uint64_t));
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
    struct mu__msg *msg = mu__msg_heap(
        MU__SUBMIT, sizeof(struct mu__submit) + inputs->count * sizeof(uint64_t));
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

static struct cluster_call *post_question(struct cluster_call *call, struct mu__msg *msg)
{
    assert(msg != NULL);
    call->of.client.request = msg;
    call->asks = true;
    return post(call, MU__CLIENT);
}

struct cluster_call *cluster_per_worker(struct cluster_task *task, const char *function,
                                        mu_value *args, int64_t timeout_ms)
{
    struct mu__msg *msg =
        mu__msg_heap(MU__PER_WORKER_MAKE, sizeof(struct mu__per_worker_make));
    struct mu__per_worker_make *body;

    assert(msg != NULL);
    body = (void *)msg->body;
    if (function != NULL)
        body->function = mu__view_str(function);
    if (args != NULL)
        msg->backing = mu__pack_value(args, &body->args);
    mu_value_free(args);
    return post_question(call_new(task, MU__CLIENT_REQUEST, timeout_ms), msg);
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
    struct cluster_call *call =
        call_new(task, name == NULL ? MU__CLIENT_EXPLAIN : MU__CLIENT_REQUEST, 1000);
    struct mu__msg *msg;

    if (name == NULL) {
        call->of.client.future = closure->future;
        return post(call, MU__CLIENT);
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
    return post_question(call_new(task, MU__CLIENT_REQUEST, timeout_ms), msg);
}

struct cluster_call *cluster_forget(struct cluster_task *task, int64_t timeout_ms)
{
    struct mu__msg *msg = mu__msg_heap(MU__FORGET, sizeof(struct mu__forget));

    assert(msg != NULL);
    return post_question(call_new(task, MU__CLIENT_REQUEST, timeout_ms), msg);
}
