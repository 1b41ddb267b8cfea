/* Stories about the coordination service, in virtual time.
 *
 * A host is a process of the simulator with the real actor in a kernel of its own; there
 * are up to three, each with storage that survives its crashes. Agents are not processes:
 * the test is all of them. It says with service_tell, or a helper below, what one of them
 * sends to a host, and looks at what hosts said to it. A message takes no time in either
 * direction but goes through the codec, so that what could not travel is found; links
 * come and go when the test says so. So all times that are seen are the service's own,
 * and ten thousand agents are cheap.
 *
 *     struct service *s = SERVICE(.tasks = "worker:0-1");
 *     struct service_agent *w0 = service_agent(s, "worker", 0);
 *
 *     expect_ok(w0, service_register(w0, false, 0));
 *     service_run_until(s, 500);
 *     expect_said(w0, "[  500] task_error 14 ...\n");
 *     service_end(s);
 *
 * Agents of a story do nothing by themselves, but for heartbeats, which those send that
 * have `beats` set: at every multiple of heartbeat_ms. */
#ifndef MU_TESTS_SERVICE_H
#define MU_TESTS_SERVICE_H

#include "actors/coordination/coordination.h"
#include "actors/coordination/internal.h"
#include "actors/messages.h"
#include "actors/packing.h"
#include "runtime/base/map.h"
#include "runtime/message/codec.h"
#include "tests/sim/sim.h"
#include "tests/sim/storage.h"

#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { SERVICE_HOSTS_MAX = 3, SERVICE_TEXT_MAX = 1 << 16 };

struct service;
struct service_host;

/* What is 0 or NULL is the usual. */
struct service_options {
    const char *tasks;          /* the coordinated jobs; "chief:0,worker:0-1" */
    const char *hosts;          /* types and indices, at most three; "chief:0" */
    const char *recoverable;    /* "all" */
    const struct mu__store_kind *store;     /* memory */
    uint32_t suspect_ms;        /* 300 */
    uint32_t dead_ms;           /* 900 */
    uint32_t reconnect_ms;      /* 600 */
    uint32_t stuck_ms;
    uint32_t leave_ms;
    uint32_t heartbeat_ms;      /* 100 */
    uint64_t seed;
    bool fast;                  /* many agents: nothing goes through the codec, and what
                                   is said to them is counted, not kept */
    bool given;                 /* by SERVICE */
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
    uint64_t since;             /* what it was told when it was registered first */
    bool beats;                 /* sends heartbeats */
    bool notes_hosts;           /* keeps SERVICE_HERE, too */
    bool notes_beats;           /* and TASK_HEARD without a code */
    uint64_t progress;          /* what heartbeats say */
    uint64_t token;             /* the last one */
    uint32_t nodes[SERVICE_HOSTS_MAX];  /* its link to each host; 0: none, or at home */
    int home;                   /* the host on whose node it is; -1: none */
    uint64_t counts[MU__KINDS_END];     /* what was said to it */
    struct service_said *said;
    struct service_said **said_end;
    struct service_said *looked;    /* the one that was taken out last */
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
    struct mu__kernel *kernel;  /* NULL: it does not run */
    mu__pid pid;
    uint32_t nodes_count;       /* numbers of links, which are not used again */
    struct mu__map agents;      /* link -> agent */
    struct service_agent *at_home;
};

struct service {
    struct sim *sim;
    struct service_options options;
    struct service_host hosts[SERVICE_HOSTS_MAX];
    unsigned hosts_count;
    struct service_agent *agents;
    struct mu__pool pool;
    uint64_t beat_ms;           /* the next one's time */
    uint64_t incarnation;       /* the last one */
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
    {MU__SERVICE_HERE, service_home_heard}, {MU__TASK_HEARD, service_home_heard},
    {MU__TASKS_ANSWER, service_home_heard}, {MU__TASK_ERROR, service_home_heard},
    {MU__BARRIER_PASSED, service_home_heard}, {MU__PREEMPT_ASK, service_home_heard},
    {MU__PREEMPT_STOP, service_home_heard}, {MU__KEY_DONE, service_home_heard},
    {MU__KEY_LISTED, service_home_heard}, {MU__KEY_EVENT, service_home_heard},
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
    host->node = sim_node_add(service->sim, host->task + 5, address, &service_program,
                              host);
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
    assert_int_equal(mu__task_set_parse(mu__view_str(service->options.hosts), NULL,
                                        &hosts), 0);
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

/* ---- Agents and their links ---- */

static inline void service_link_up(struct service_agent *agent, unsigned number)
{
    struct service_host *host = &agent->service->hosts[number];

    if (agent->home == (int)number || agent->nodes[number] != 0 || host->kernel == NULL)
        return;
    agent->nodes[number] = ++host->nodes_count;
    assert_int_equal(mu__map_set(&host->agents, agent->nodes[number], agent), 0);
    mu__kernel_node_up(host->kernel, agent->nodes[number], agent->type, agent->index,
                       agent->incarnation, "tcp://agent:1");
    service_wake(host);
    service_settle(agent->service);
}

static inline void service_link_down(struct service_agent *agent, unsigned number,
                                     const char *reason)
{
    struct service_host *host = &agent->service->hosts[number];

    if (agent->nodes[number] == 0)
        return;
    (void)mu__map_remove(&host->agents, agent->nodes[number]);
    mu__kernel_node_down(host->kernel, agent->nodes[number], reason);
    agent->nodes[number] = 0;
    service_wake(host);
    service_settle(agent->service);
}

/* A task's process, with links to all hosts that run. */
static inline struct service_agent *service_agent(struct service *service,
                                                  const char *type, uint32_t index)
{
    struct service_agent *agent = calloc(1, sizeof *agent);

    assert_non_null(agent);
    agent->service = service;
    agent->index = index;
    agent->incarnation = service_incarnation(service);
    agent->home = -1;
    agent->said_end = &agent->said;
    (void)snprintf(agent->type, sizeof agent->type, "%s", type);
    agent->next = service->agents;
    service->agents = agent;
    for (unsigned i = 0; i < service->hosts_count; i++) {
        struct service_host *host = &service->hosts[i];

        if (strcmp(host->type, type) == 0 && host->index == index) {
            agent->home = (int)i;
            agent->incarnation = host->incarnation;
            host->at_home = agent;
        } else {
            service_link_up(agent, i);
        }
    }
    return agent;
}

/* Its process ends without a word, and all links with it. And begins again: with another
 * incarnation, new links, and counting tokens from 1. */
static inline void service_agent_crash(struct service_agent *agent)
{
    agent->beats = false;
    for (unsigned i = 0; i < agent->service->hosts_count; i++)
        service_link_down(agent, i, "connection reset");
}

static inline void service_agent_restart(struct service_agent *agent)
{
    service_agent_crash(agent);
    service_forget_said(agent);
    agent->token = 0;
    agent->since = 0;
    agent->incarnation = service_incarnation(agent->service);
    for (unsigned i = 0; i < agent->service->hosts_count; i++)
        service_link_up(agent, i);
}

/* ---- What agents say ---- */

static inline bool service_reaches(const struct service_agent *agent, unsigned number)
{
    return agent->service->hosts[number].kernel != NULL &&
           (agent->home == (int)number || agent->nodes[number] != 0);
}

/* Send a message of `kind` to a host; what the host says to that is there when this
 * returns. Nothing is sent when there is no link. */
static inline void service_tell(struct service_agent *agent, unsigned number,
                                uint16_t kind, const void *body, size_t size)
{
    struct service *service = agent->service;
    struct service_host *host = &service->hosts[number];
    struct mu__msg *msg = mu__msg_heap(kind, size);

    assert_non_null(msg);
    memcpy(msg->body, body, size);
    if (!service->options.fast) {
        struct mu__msg *copy = service_travel(service, msg);

        mu__pool_put(&service->pool, msg);
        /* The kernel's pool frees it: it must be of no other. */
        msg = mu__msg_heap(kind, size);
        assert_non_null(msg);
        memcpy(msg->body, copy->body, size);
        msg->backing = copy->backing;
        copy->backing = NULL;
        mu__pool_put(&service->pool, copy);
    }
    if (!service_reaches(agent, number)) {
        mu__pool_put(&service->pool, msg);
        return;
    }
    msg->from = (mu__pid){agent->nodes[number], MU__AGENT};
    msg->to = (mu__pid){MU__NODE_SELF, MU__COORDINATION};
    assert_int_equal(mu__kernel_deliver(host->kernel, msg), 0);
    service_wake(host);
    if (!service->options.fast)
        service_settle(service);
}

/* A message to host 0: TELL(agent, KEY_PUT, key_put, .token = 1, ...) */
#define TELL(agent, KIND, name, ...) TELL_HOST(agent, 0, KIND, name, __VA_ARGS__)
#define TELL_HOST(agent, number, KIND, name, ...)                           \
    service_tell(agent, number, MU__##KIND, &(struct mu__##name){__VA_ARGS__}, \
                 sizeof(struct mu__##name))

/* The helpers that return a token ask host 0 with a new one. */
static inline uint64_t service_register(struct service_agent *agent, bool barrier,
                                        uint64_t timeout_ms)
{
    TELL(agent, TASK_REGISTER, task_register, .token = ++agent->token,
         .barrier = barrier, .timeout_ms = timeout_ms, .since = agent->since);
    return agent->token;
}

static inline void service_heartbeat(struct service_agent *agent, unsigned host)
{
    TELL_HOST(agent, host, TASK_HEARTBEAT, task_heartbeat, .progress = agent->progress);
}

static inline uint64_t service_report(struct service_agent *agent, int code,
                                      const char *message)
{
    TELL(agent, TASK_REPORT, task_report, .token = ++agent->token,
         .code = (uint32_t)-code, .message = mu__view_str(message));
    return agent->token;
}

static inline uint64_t service_reset(struct service_agent *agent)
{
    TELL(agent, TASK_RESET, task_reset, .token = ++agent->token);
    return agent->token;
}

static inline uint64_t service_leave_now(struct service_agent *agent)
{
    TELL(agent, TASK_LEAVE, task_leave, .token = ++agent->token, .now = true);
    return agent->token;
}

static inline uint64_t service_leave(struct service_agent *agent, uint64_t timeout_ms)
{
    TELL(agent, TASK_LEAVE, task_leave, .token = ++agent->token,
         .timeout_ms = timeout_ms);
    return agent->token;
}

static inline uint64_t service_tasks_get(struct service_agent *agent, uint32_t what,
                                         const char *tasks, uint64_t version,
                                         uint64_t timeout_ms)
{
    TELL(agent, TASKS_GET, tasks_get, .token = ++agent->token, .what = what,
         .tasks = mu__view_str(tasks), .version = version, .timeout_ms = timeout_ms);
    return agent->token;
}

/* ---- Time ---- */

static inline void service_beat(struct service *service)
{
    for (struct service_agent *agent = service->agents; agent != NULL;
         agent = agent->next)
        for (unsigned i = 0; agent->beats && i < service->hosts_count; i++)
            if (service_reaches(agent, i))
                service_heartbeat(agent, i);
    service->beat_ms += service->options.heartbeat_ms;
}

static inline void service_run_until(struct service *service, uint64_t until_ms)
{
    while (service->beat_ms <= until_ms) {
        sim_run_until(service->sim, service->beat_ms);
        service_beat(service);
    }
    sim_run_until(service->sim, until_ms);
}

static inline void service_run(struct service *service, uint64_t ms)
{
    service_run_until(service, sim_now_ms(service->sim) + ms);
}

/* ---- Looking at what was said ---- */

/* The next message to an agent, of a kind or (0) any; what came before it is skipped.
 * NULL: none. Valid until the next look at this agent. */
static inline const struct service_said *service_next(struct service_agent *agent,
                                                      uint16_t kind)
{
    while (agent->said != NULL) {
        struct service_said *said = agent->said;

        service_free_said(agent, agent->looked);
        agent->looked = said;
        agent->said = said->next;
        if (agent->said == NULL)
            agent->said_end = &agent->said;
        if (kind == 0 || said->msg->kind == kind)
            return said;
    }
    return NULL;
}

/* The answer to a token, of a kind of message that begins with its token; what else was
 * said stays. NULL: there is none. */
static inline const struct service_said *service_answer(const struct service_agent *agent,
                                                        uint16_t kind, uint64_t token)
{
    for (const struct service_said *said = agent->said; said != NULL; said = said->next)
        if (said->msg->kind == kind && *(const uint64_t *)said->msg->body == token)
            return said;
    return NULL;
}

/* Take an answer out: it will not be in service_text. */
static inline void service_take(struct service_agent *agent, uint16_t kind,
                                uint64_t token)
{
    for (struct service_said **link = &agent->said; *link != NULL;
         link = &(*link)->next) {
        struct service_said *said = *link;

        if (said->msg->kind != kind || *(const uint64_t *)said->msg->body != token)
            continue;
        *link = said->next;
        if (agent->said_end == &said->next)
            agent->said_end = link;
        service_free_said(agent, said);
        return;
    }
}

static inline void service_print_view(char *out, size_t size, const struct mu__view *view)
{
    (void)snprintf(out, size, "\"%.*s\"", (int)view->size, (const char *)view->data);
}

/* A field that is not zero, " name=1"; "" when it is. */
static inline void service_print_field(const struct mu__msg *msg,
                                       const struct mu__field *field, char *out,
                                       size_t size)
{
    const uint8_t *at = msg->body + field->offset;
    char text[1200] = "";

    if (field->type == MU__FIELD_u64 && *(const uint64_t *)at != 0)
        (void)snprintf(text, sizeof text, "%" PRIu64, *(const uint64_t *)at);
    if (field->type == MU__FIELD_i64 && *(const int64_t *)at != 0)
        (void)snprintf(text, sizeof text, "%" PRId64, *(const int64_t *)at);
    if (field->type == MU__FIELD_u32 && *(const uint32_t *)at != 0)
        (void)snprintf(text, sizeof text, "%" PRIu32, *(const uint32_t *)at);
    if (field->type == MU__FIELD_flag && *(const bool *)at)
        (void)snprintf(text, sizeof text, "yes");
    if ((field->type == MU__FIELD_str || field->type == MU__FIELD_bytes) &&
        ((const struct mu__view *)at)->size > 0)
        service_print_view(text, sizeof text, (const struct mu__view *)at);
    if (field->type == MU__FIELD_value && ((const struct mu__packed *)at)->head_size > 0)
        (void)snprintf(text, sizeof text, "...");
    (void)snprintf(out, size, text[0] == '\0' ? "%s%s" : " %s=%s",
                   text[0] == '\0' ? "" : field->name, text);
}

/* All that was said to an agent since the last look, a line for each message: its time,
 * name, and fields that are not zero. */
static inline const char *service_text(struct service_agent *agent)
{
    struct service *service = agent->service;
    const struct service_said *said;
    size_t used = 0;

    service->text[0] = '\0';
    while ((said = service_next(agent, 0)) != NULL) {
        const struct mu__row *row = &mu__messages.rows[said->msg->kind];

        used += (size_t)snprintf(service->text + used, sizeof service->text - used,
                                 "[%5" PRIu64 "] %s", said->at_ms, row->name);
        for (unsigned i = 0; i < row->fields_count; i++) {
            assert_true(used + 1300 < sizeof service->text);
            service_print_field(said->msg, &row->fields[i], service->text + used,
                                sizeof service->text - used);
            used += strlen(service->text + used);
        }
        used += (size_t)snprintf(service->text + used, sizeof service->text - used, "\n");
    }
    return service->text;
}

#define expect_said(agent, words) assert_string_equal(service_text(agent), words)

/* ---- Answers about tasks ---- */

static inline const struct mu__tasks_answer *service_tasks_answer(
    const struct service_agent *agent, uint64_t token)
{
    const struct service_said *said = service_answer(agent, MU__TASKS_ANSWER, token);

    return said == NULL ? NULL : (const void *)said->msg->body;
}

#define expect_waits(agent, token) \
    assert_null(service_answer(agent, MU__TASKS_ANSWER, token))

#define expect_error(agent, token, wanted_code, words)                      \
    do {                                                                    \
        uint64_t token_of_it = (token);                                     \
        const struct mu__tasks_answer *answer_of_it =                       \
            service_tasks_answer(agent, token_of_it);                       \
        char words_of_it[512];                                              \
                                                                            \
        assert_non_null(answer_of_it);                                      \
        mu__view_copy(answer_of_it->message, words_of_it, sizeof words_of_it); \
        assert_string_equal(words_of_it, words);                            \
        assert_int_equal(-(int)answer_of_it->code, wanted_code);            \
    } while (0)

#define expect_ok(agent, token) expect_error(agent, token, 0, "")

/* When the answer came. */
static inline uint64_t service_answered_ms(const struct service_agent *agent,
                                           uint64_t token)
{
    const struct service_said *said = service_answer(agent, MU__TASKS_ANSWER, token);

    return said == NULL ? UINT64_MAX : said->at_ms;
}

/* The content of an answer; the caller's. */
static inline mu_value *service_content(const struct service_agent *agent, uint64_t token)
{
    const struct mu__tasks_answer *answer = service_tasks_answer(agent, token);
    mu_value *content = NULL;

    assert_non_null(answer);
    assert_int_equal(answer->code, 0);
    assert_int_equal(mu__value_unpack(&answer->content, NULL, 0, &content), 0);
    return content;
}

/* A task's process that has registered, and sends heartbeats. */
static inline struct service_agent *service_task(struct service *service,
                                                 const char *type, uint32_t index)
{
    struct service_agent *agent = service_agent(service, type, index);

    expect_ok(agent, service_register(agent, false, 0));
    (void)service_text(agent);
    agent->beats = true;
    return agent;
}

#endif
