/* The hosts of a coordination service in the simulator, and what they send; service.h has
 * the agents. */
#ifndef MU_TESTS_SERVICE_HOSTS_H
#define MU_TESTS_SERVICE_HOSTS_H

#include "actors/coordination/coordination.h"
#include "actors/coordination/internal.h"
#include "actors/messages.h"
#include "actors/packing.h"
#include "runtime/base/map.h"
#include "runtime/message/codec.h"
#include "sim/world/sim.h"
#include "sim/world/storage.h"
#include "tests/support/test.h"

#include <inttypes.h>

enum { SERVICE_HOSTS_MAX = 3, SERVICE_TEXT_MAX = 1 << 16 };

struct service;
struct service_host;

/* What is 0 or NULL is the usual. */
struct service_options {
    const char *tasks;                  /* the coordinated jobs; "chief:0,worker:0-1" */
    const char *hosts;                  /* types and indices, at most three; "chief:0" */
    const char *recoverable;            /* "all" */
    const struct mu__store_kind *store; /* memory */
    uint32_t suspect_ms;                /* 300 */
    uint32_t dead_ms;                   /* 900 */
    uint32_t reconnect_ms;              /* 600 */
    uint32_t stuck_ms;
    uint32_t leave_ms;
    uint32_t heartbeat_ms; /* 100 */
    uint64_t seed;
    bool fast;  /* many agents: nothing goes through the codec, and what
                   is said to them is counted, not kept */
    bool given; /* by SERVICE */
    void (*configure)(struct service_host *host, struct mu__coordination_config *config);
};

/* What a host said to an agent. */
struct service_said {
    struct service_said *next;
    uint64_t at_ms;
    unsigned host;
    struct mu__msg *msg;
};

struct service_agent {
    struct service_agent *next;
    struct service *service;
    char type[16];
    uint32_t index;
    uint64_t incarnation;
    uint64_t since;                    /* what it was told when it was registered first */
    bool beats;                        /* sends heartbeats */
    bool notes_hosts;                  /* keeps SERVICE_HERE, too */
    bool notes_beats;                  /* and TASK_HEARD without a code */
    uint64_t progress;                 /* what heartbeats say */
    uint64_t token;                    /* the last one */
    uint32_t nodes[SERVICE_HOSTS_MAX]; /* its link to each host; 0: none, or at home */
    int home;                          /* the host on whose node it is; -1: none */
    uint64_t counts[MU__KINDS_END];    /* what was said to it */
    struct service_said *said;
    struct service_said **said_end;
    struct service_said *looked; /* the one that was taken out last */
};

struct service_host {
    struct service *service;
    unsigned number;
    char task[64];
    char type[16];
    uint32_t index;
    uint64_t incarnation;
    struct sim_node *node;
    struct sim_storage *storage;
    struct mu__kernel *kernel; /* NULL: it does not run */
    mu__pid pid;
    uint32_t nodes_count;  /* numbers of links, which are not used again */
    struct mu__map agents; /* link -> agent */
    struct service_agent *at_home;
};

struct service {
    struct sim *sim;
    struct service_options options;
    struct service_host hosts[SERVICE_HOSTS_MAX];
    unsigned hosts_count;
    struct service_agent *agents;
    struct mu__pool pool;
    uint64_t beat_ms;     /* the next one's time */
    uint64_t incarnation; /* the last one */
    char text[SERVICE_TEXT_MAX];
};

#define SERVICE(...) service_begin(&(struct service_options){.given = true, __VA_ARGS__})

/* ---- What hosts say ---- */

static inline struct mu__msg *service_travel(struct service *service,
                                             const struct mu__msg *msg)
{
    struct mu__buf *frame = mu__buf_new(mu__encode_bound(&mu__messages, msg));
    struct mu__msg *copy = NULL;
    size_t offset = 0;
    char why[128] = "";

    assert_non_null(frame);
    assert_int_equal(mu__encode(&mu__messages, msg, frame), 0);
    if (mu__decode(&mu__messages, &service->pool, frame, &offset, why, sizeof why,
                   &copy) != 0)
        fail_msg("%s", why);
    /* Views may point into the frame, or nothing needs it. */
    mu__buf_unref(frame);
    return copy;
}

static inline void service_keep(struct service_host *host, struct service_agent *agent,
                                const struct mu__msg *msg)
{
    const struct mu__task_heard *heard = (const void *)msg->body;
    const struct mu__tasks_answer *answer = (const void *)msg->body;
    struct service_said *said;

    agent->counts[msg->kind]++;
    if (msg->kind == MU__TASKS_ANSWER && agent->since == 0)
        agent->since = answer->since;
    if (host->service->options.fast ||
        (msg->kind == MU__SERVICE_HERE && !agent->notes_hosts) ||
        (msg->kind == MU__TASK_HEARD && heard->code == 0 && !agent->notes_beats))
        return;
    said = calloc(1, sizeof *said);
    assert_non_null(said);
    said->at_ms = sim_now_ms(host->service->sim);
    said->host = host->number;
    said->msg = service_travel(host->service, msg);
    *agent->said_end = said;
    agent->said_end = &said->next;
}

static inline int service_transmit(void *owner, struct mu__msg *msg)
{
    struct service_host *host = owner;
    struct service_agent *agent = mu__map_get(&host->agents, msg->to.node);

    assert_int_equal(msg->to.actor, MU__AGENT);
    if (agent != NULL)
        service_keep(host, agent, msg);
    mu__pool_put(mu__kernel_pool(host->kernel), msg);
    return agent == NULL ? -MU_EUNAVAILABLE : 0;
}

/* The agent at home is an actor beside the service. */
static inline void service_home_heard(struct mu__ctx *ctx, void *state,
                                      struct mu__msg *msg)
{
    struct service_host *host = *(struct service_host **)state;

    (void)ctx;
    if (host->at_home != NULL)
        service_keep(host, host->at_home, msg);
}

static inline int service_home_init(struct mu__ctx *ctx, void *state, const void *arg)
{
    (void)ctx;
    memcpy(state, &arg, sizeof arg);
    return 0;
}

static const struct mu__handler service_home_handlers[] = {
    {MU__SERVICE_HERE, service_home_heard},   {MU__TASK_HEARD, service_home_heard},
    {MU__TASKS_ANSWER, service_home_heard},   {MU__TASK_ERROR, service_home_heard},
    {MU__BARRIER_PASSED, service_home_heard}, {MU__PREEMPT_REQUEST, service_home_heard},
    {MU__PREEMPT_STOP, service_home_heard},   {MU__KEY_DONE, service_home_heard},
    {MU__KEY_LISTED, service_home_heard},     {MU__KEY_EVENT, service_home_heard},
    {MU__WAIT_NOTE, service_home_heard},
};

static const struct mu__behavior service_home = {
    .name = "agent",
    .state_size = sizeof(void *),
    .handlers = service_home_handlers,
    .handlers_count = sizeof service_home_handlers / sizeof service_home_handlers[0],
    .init = service_home_init,
};

/* ---- Hosts ---- */

static inline void service_deliver(void *owner, struct mu__msg *msg)
{
    (void)mu__kernel_deliver(((struct service_host *)owner)->kernel, msg);
}

static inline void service_turn(void *owner)
{
    mu__kernel_turn(((struct service_host *)owner)->kernel);
}

static inline uint64_t service_incarnation(struct service *service)
{
    return ++service->incarnation;
}

static inline int service_spawn(struct service_host *host)
{
    const struct service_options *options = &host->service->options;
    struct mu__coordination_config config = {
        .store = options->store,
        .store_location = "",
        .storage = host->storage == NULL ? NULL : &host->storage->base,
        .cluster_name = "story",
        .task = host->task,
        .incarnation = host->incarnation,
        .tasks = options->tasks,
        .recoverable = options->recoverable,
        .suspect_ms = options->suspect_ms,
        .dead_ms = options->dead_ms,
        .reconnect_ms = options->reconnect_ms,
        .stuck_ms = options->stuck_ms,
        .leave_ms = options->leave_ms,
        .lease_ms = 1000,
    };
    int rv;

    if (options->configure != NULL)
        options->configure(host, &config);
    rv = mu__spawn(host->kernel, &service_home, MU__AGENT, host, NULL);
    if (rv == 0)
        rv = mu__spawn(host->kernel, &mu__coordination, MU__COORDINATION, &config,
                       &host->pid);
    return rv;
}

static inline int service_host_start(void *arg, struct sim_node *node,
                                     struct mu__world *world, struct mu__wire *wire)
{
    struct service_host *host = arg;
    const struct mu__world_hooks hooks = {host, service_deliver, service_turn,
                                          service_transmit};
    int rv;

    (void)wire;
    host->incarnation = service_incarnation(host->service);
    rv = mu__kernel_new(world, &mu__messages, &host->kernel);
    if (rv != 0)
        return rv;
    sim_attach(node, &hooks, NULL, NULL);
    rv = service_spawn(host);
    if (rv != 0) {
        mu__kernel_free(host->kernel);
        host->kernel = NULL;
        return rv;
    }
    world->ops->wake_at(world, 0);
    return 0;
}

static inline void service_host_stop(void *arg)
{
    struct service_host *host = arg;

    for (struct service_agent *agent = host->service->agents; agent != NULL;
         agent = agent->next)
        agent->nodes[host->number] = 0;
    mu__map_done(&host->agents);
    host->agents = (struct mu__map){0};
    mu__kernel_free(host->kernel);
    host->kernel = NULL;
    if (host->storage != NULL)
        sim_storage_crash(host->storage);
}

static const struct sim_program service_program = {service_host_start, service_host_stop};

/* What is due at this moment happens. */
static inline void service_settle(struct service *service)
{
    sim_run_until(service->sim, sim_now_ms(service->sim));
}

static inline void service_wake(struct service_host *host)
{
    struct mu__world *world = sim_node_world(host->node);

    world->ops->wake_at(world, 0);
}

/* The process is gone at once, with all links. And it begins again, with a new
 * incarnation; links must be made again. */
static inline void service_crash(struct service *service, unsigned host)
{
    sim_crash(service->hosts[host].node);
    service_settle(service);
}

static inline void service_start(struct service *service, unsigned host)
{
    assert_int_equal(sim_start(service->hosts[host].node), 0);
    service_settle(service);
    /* The store is held in the first tick, and what follows is in the turn after. */
    service_settle(service);
}

/* The service ends as an actor does: in order. Its process lives on. */
static inline void service_stop(struct service *service, unsigned host)
{
    mu__stop(service->hosts[host].kernel, service->hosts[host].pid);
    service_settle(service);
}

/* The service's own state, to look at. */
static inline const struct coordination *service_state(const struct service *service,
                                                       unsigned host)
{
    return mu__actor_state(service->hosts[host].kernel, service->hosts[host].pid);
}

static inline void service_host_add(struct service *service, const char *type,
                                    uint32_t index)
{
    struct service_host *host = &service->hosts[service->hosts_count];
    char address[64];

    host->service = service;
    host->number = service->hosts_count++;
    host->index = index;
    (void)snprintf(host->type, sizeof host->type, "%s", type);
    (void)snprintf(host->task, sizeof host->task, "/job:%s/task:%" PRIu32, type, index);
    (void)snprintf(address, sizeof address, "tcp://%s%" PRIu32 ":1", host->type, index);
    host->storage = sim_storage_new("coordination", service->options.seed + host->number);
    host->node =
        sim_node_add(service->sim, host->task + 5, address, &service_program, host);
    assert_int_equal(sim_start(host->node), 0);
}

/* ---- Life ---- */

static inline void service_defaults(struct service_options *options)
{
    static const struct service_options usual = {
        .tasks = "chief:0,worker:0-1",
        .hosts = "chief:0",
        .recoverable = "all",
        .store = &mu__store_memory,
        .suspect_ms = 300,
        .dead_ms = 900,
        .reconnect_ms = 600,
        .heartbeat_ms = 100,
        .seed = 1,
    };

#define SERVICE_USUAL(field) \
    if (!options->field)     \
    options->field = usual.field
    SERVICE_USUAL(tasks);
    SERVICE_USUAL(hosts);
    SERVICE_USUAL(recoverable);
    SERVICE_USUAL(store);
    SERVICE_USUAL(suspect_ms);
    SERVICE_USUAL(dead_ms);
    SERVICE_USUAL(reconnect_ms);
    SERVICE_USUAL(heartbeat_ms);
    SERVICE_USUAL(seed);
#undef SERVICE_USUAL
}

static inline struct service *service_begin(const struct service_options *options)
{
    struct service *service = calloc(1, sizeof *service);
    struct mu__task_set hosts = {0};

    assert_non_null(service);
    service->options = *options;
    service_defaults(&service->options);
    service->sim = sim_new(service->options.seed);
    service->incarnation = 0x100;
    mu__pool_init(&service->pool);
    service->beat_ms = service->options.heartbeat_ms;
    assert_int_equal(
        mu__task_set_parse(mu__view_str(service->options.hosts), NULL, &hosts), 0);
    for (uint32_t i = 0; i < hosts.count; i++)
        for (uint32_t at = hosts.ranges[i].first; at <= hosts.ranges[i].last; at++)
            service_host_add(service, hosts.ranges[i].type, at);
    mu__task_set_done(&hosts);
    service_settle(service);
    service_settle(service);
    (void)sim_trace(service->sim);
    return service;
}

static inline void service_free_said(struct service_agent *agent,
                                     struct service_said *said)
{
    if (said == NULL)
        return;
    mu__pool_put(&agent->service->pool, said->msg);
    free(said);
}

static inline void service_forget_said(struct service_agent *agent)
{
    service_free_said(agent, agent->looked);
    agent->looked = NULL;
    while (agent->said != NULL) {
        struct service_said *said = agent->said;

        agent->said = said->next;
        service_free_said(agent, said);
    }
    agent->said_end = &agent->said;
}

static inline void service_end(struct service *service)
{
    sim_free(service->sim);
    for (unsigned i = 0; i < service->hosts_count; i++)
        sim_storage_free(service->hosts[i].storage);
    while (service->agents != NULL) {
        struct service_agent *agent = service->agents;

        service->agents = agent->next;
        service_forget_said(agent);
        free(agent);
    }
    mu__pool_done(&service->pool);
    free(service);
}

#endif
