/* The cluster itself: its tasks and their processes. */
#include "tests/sim/cluster/internal.h"

#include "actors/client/future.h"
#include "actors/client/holds.h"
#include "actors/messages.h"
#include "actors/packing.h"
#include "actors/ps/variable_store.h"
#include "actors/references.h"
#include "actors/user/office.h"
#include "actors/worker/function_run.h"
#include "runtime/message/value_layout.h"
#include "tests/sim/etcd.h"

#include <assert.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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
    if (task->store.storage == NULL)
        config->coordination.kept = NULL; /* beside the store */
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
        .journal = task->journal.storage,
        .journal_spare_bytes = task->journal_spare_bytes,
        .upcalls = {.taken = on_taken, .taken_owner = task},
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
    cluster__register_functions(task);
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
    mu__actors_forget_works(mu__actor_state(kernel, (mu__pid){0, MU__ACTORS}));
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
void cluster__home_ref(struct mu__future_owner *home)
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
        .ref = cluster__home_ref, .unref = home_unref, .give_back = home_give_back};
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
    if (in_spec &&
        mu_cluster_add(cluster->spec, type, (int)index, task->address, &error) != 0)
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
        at +=
            (size_t)snprintf(cluster->coordinated + at, sizeof cluster->coordinated - at,
                             ",ps:0-%u", cluster->options.servers - 1);
    if (cluster->options.workers > 0)
        at +=
            (size_t)snprintf(cluster->coordinated + at, sizeof cluster->coordinated - at,
                             ",worker:0-%u", cluster->options.workers - 1);
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
    struct cluster *cluster = cluster__get(sizeof *cluster);

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
        sim_settings(cluster->sim)->work_us = cluster__work_us;
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
        if (cluster->calls->writes)
            mu__effects_clear(&cluster->calls->of.table.run.effects);
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
