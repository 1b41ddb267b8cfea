#include "node/member/internal.h"

#include "actors/job/job.h"
#include "actors/messages.h"
#include "resolver/spec/cluster.h"
#include "runtime/kernel/peer_process.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* Stands for any type but "worker" whose tasks run closures. */
#define OWN_TYPE "(own)"

/* The types that a task dials. One of two is enough, since a connection goes both ways; a
 * task dials those without which it cannot do its work. A task of a type of its own dials
 * the chief, which may not know that the type runs closures, and says so then. */
static const struct {
    const char *type;
    const char *dials[4];
} roles[] = {
    {"chief", {"worker", OWN_TYPE, "ps", "evaluator"}},
    {"worker", {"ps"}},
    {OWN_TYPE, {"chief", "ps"}},
    {"ps", {"ps"}},
    {"evaluator", {"chief", "ps"}},
    {"client", {"chief", "ps"}},
};

/* The name of a type in the table. */
static const char *role_name(const struct mu__worker_types *types, const char *type)
{
    return strcmp(type, "worker") != 0 && mu__worker_types_has(types, type) ? OWN_TYPE
                                                                            : type;
}

/* A task that runs closures and that the cluster does not list, so that the chief cannot
 * dial it. */
static bool is_unlisted_worker(const struct mu__worker_types *types,
                               const struct mu__member_config *config)
{
    return mu__worker_types_has(types, config->options->task_type) &&
           mu_cluster_url(config->options->cluster, config->options->task_type,
                          config->options->task_index) == NULL;
}

static bool does_type_dial(const char *type, const char *other)
{
    for (size_t i = 0; i < sizeof roles / sizeof roles[0]; i++) {
        if (strcmp(roles[i].type, type) != 0)
            continue;
        for (size_t j = 0; j < 4 && roles[i].dials[j] != NULL; j++)
            if (strcmp(roles[i].dials[j], other) == 0)
                return true;
    }
    return false;
}

/* Without a chief worker 0 plays its part: it ends the job. */
static const char *job_owner_type(const mu_cluster *cluster)
{
    return mu_cluster_url(cluster, "chief", 0) == NULL &&
                   mu_cluster_url(cluster, "worker", 0) != NULL
               ? "worker"
               : "chief";
}

const char *mu__member_leader_type(const struct mu__member *member)
{
    return job_owner_type(member->cluster);
}

/* The row of `roles` by which a task dials, and is dialled. */
static const char *role_of(const mu_cluster *cluster,
                           const struct mu__worker_types *types, const char *type,
                           uint32_t index)
{
    return index == 0 && strcmp(type, job_owner_type(cluster)) == 0
               ? "chief"
               : role_name(types, type);
}

bool mu__member_dials(const mu_cluster *cluster, const struct mu__worker_types *types,
                      const char *type, int index, const char *other)
{
    return does_type_dial(role_of(cluster, types, type, (uint32_t)index),
                          role_name(types, other));
}

bool mu__member_ends_job(const mu_cluster *cluster, const char *type, int index)
{
    return index == 0 && strcmp(type, job_owner_type(cluster)) == 0;
}

bool mu__member_has_views(const struct mu__member *member)
{
    return strcmp(member->type, "chief") == 0 ||
           mu__member_ends_job(member->cluster, member->type, (int)member->index);
}

/* ---- turns ---- */

static void on_member_turn(void *owner)
{
    struct mu__member *member = owner;
    uint64_t now_ms = member->world->ops->now_ms(member->world);
    uint32_t node;
    bool is_full;

    if (now_ms >= mu__links_due_ms(member->links))
        (void)mu__links_tick(member->links, now_ms);
    mu__member_take_changes(member);
    mu__kernel_turn(member->kernel);
    while (mu__kernel_next_full(member->kernel, &node, &is_full))
        mu__links_read(member->links, node, !is_full);
    mu__links_flush(member->links);
    member->world->ops->wake_at(member->world, mu__links_due_ms(member->links));
}

static void on_member_deliver(void *owner, struct mu__msg *msg)
{
    struct mu__member *member = owner;

    (void)mu__kernel_deliver(member->kernel, msg);
}

static int on_member_transmit(void *owner, struct mu__msg *msg)
{
    struct mu__member *member = owner;

    return mu__links_transmit(member->links, msg);
}

struct mu__world_hooks mu__member_hooks(struct mu__member *member)
{
    return (struct mu__world_hooks){
        .owner = member,
        .deliver = on_member_deliver,
        .turn = on_member_turn,
        .transmit = on_member_transmit,
    };
}

/* ---- events of the wire ---- */

static void on_member_wire_up(void *owner, uint32_t connection)
{
    mu__links_connected(((struct mu__member *)owner)->links, connection);
}

static void on_member_wire_down(void *owner, uint32_t connection, const char *reason)
{
    mu__links_disconnected(((struct mu__member *)owner)->links, connection, reason);
}

static void on_member_writable(void *owner, uint32_t connection)
{
    mu__links_writable(((struct mu__member *)owner)->links, connection);
}

static bool on_member_frame(void *owner, uint32_t connection, struct mu__buf *buf)
{
    struct mu__member *member = owner;
    struct mu__kernel_counters counters;

    mu__links_frame(member->links, connection, buf);
    mu__kernel_counters(member->kernel, &counters);
    return counters.queued < MU__QUEUED_PAUSE;
}

static void on_member_refused(void *owner, const char *address, const char *reason)
{
    mu__links_refused(((struct mu__member *)owner)->links, address, reason);
}

static void on_member_short_of(void *owner, const char *words)
{
    mu__links_short_of(((struct mu__member *)owner)->links, words);
}

const struct mu__wire_events mu__member_events = {
    .up = on_member_wire_up,
    .down = on_member_wire_down,
    .writable = on_member_writable,
    .frame = on_member_frame,
    .burst_end = on_member_turn,
    .refused = on_member_refused,
    .short_of = on_member_short_of,
};

/* ---- news of the links ---- */

static void on_member_link_up(void *owner, uint32_t node, const char *type,
                              uint32_t index, uint64_t incarnation, const char *address)
{
    struct mu__member *member = owner;
    struct mu__process process;

    mu__kernel_node_up(member->kernel, node, type, index, incarnation, address);
    if (mu__links_process(member->links, node, &process))
        mu__kernel_node_process(member->kernel, node, &process);
    mu__kernel_node_right(member->kernel, node, mu__links_own_right(member->links, node));
}

static void link_down(void *owner, uint32_t node, const char *reason, bool left)
{
    mu__kernel_node_down(((struct mu__member *)owner)->kernel, node, reason, left);
}

static void link_behind(void *owner, uint32_t node, bool is_behind)
{
    mu__kernel_node_behind(((struct mu__member *)owner)->kernel, node, is_behind);
}

static void link_refused(void *owner, const char *type, uint32_t index,
                         const char *reason)
{
    mu__kernel_node_refused(((struct mu__member *)owner)->kernel, type, index, reason);
}

static void link_trouble(void *owner, const char *type, uint32_t index,
                         const char *reason)
{
    mu__kernel_node_trouble(((struct mu__member *)owner)->kernel, type, index, reason);
}

/* ---- start ---- */

static uint64_t incarnation_of(struct mu__world *world)
{
    uint64_t number = world->ops->random(world);

    return number == 0 ? 1 : number;
}

static int make_member_links(struct mu__member *member,
                             const struct mu__member_config *config,
                             struct mu__wire *wire)
{
    const struct mu__links_config links = {
        .cluster_name = config->options->cluster_name,
        .task_type = config->options->task_type,
        .task_index = member->index,
        .address = config->address,
        .incarnation = member->incarnation,
        .software = config->software,
        .host = config->host,
        .pid = config->pid,
        .claim_ms = MU__CLAIM_SILENCES * config->options->silence_ms + MU__CLAIM_MS,
        .heartbeat_ms = config->options->heartbeat_ms,
        .silence_ms = config->options->silence_ms,
        .leader = job_owner_type(config->options->cluster),
        .only = config->only,
        .only_why = config->only_why,
        .schema = &mu__messages,
        .pool = mu__kernel_pool(member->kernel),
        .world = member->world,
    };
    const struct mu__links_upcalls upcalls = {
        .owner = member,
        .up = on_member_link_up,
        .down = link_down,
        .trouble = link_trouble,
        .refused = link_refused,
        .deliver = on_member_deliver,
        .behind = link_behind,
        .taken = mu__member_on_taken,
    };

    return mu__links_new(&links, &upcalls, wire, &member->links);
}

static int dial_any(struct mu__member *member, const char *url, mu_error *ret_error)
{
    if (mu__links_dial_any(member->links, url) == 0)
        return 0;
    return mu_error_set(ret_error, -MU_EINVALID, "%s cannot be dialled", url);
}

/* Dial the nodes of which only the address is known. */
static int dial_unknown(struct mu__member *member, const struct mu__member_config *config,
                        mu_error *ret_error)
{
    const char *const *url = config->dials_each;
    int rv = 0;

    if (config->dials_any != NULL)
        rv = dial_any(member, config->dials_any, ret_error);
    for (; rv == 0 && url != NULL && *url != NULL; url++)
        rv = dial_any(member, *url, ret_error);
    return rv;
}

bool mu__member_is(const struct mu__member *member, const char *type, uint32_t index)
{
    return index == member->index && strcmp(type, member->type) == 0;
}

bool mu__member_needs_link(const struct mu__member *member, const char *type,
                           uint32_t index)
{
    const struct mu__worker_types *types = &member->worker_types;
    const char *own = role_of(member->cluster, types, member->type, member->index);
    const char *role = role_of(member->cluster, types, type, index);

    return !mu__member_is(member, type, index) &&
           (does_type_dial(own, role_name(types, type)) || does_type_dial(own, role) ||
            mu__task_set_has(&member->hosts, type, index) ||
            (member->is_unlisted_worker && strcmp(type, "chief") == 0));
}

int mu__member_cannot_dial(int rv, const char *type, uint32_t index, const char *url,
                           mu_error *ret_error)
{
    return mu_error_set(ret_error, rv, "/job:%s/task:%" PRIu32 " at %s cannot be dialled",
                        type, index, url);
}

static int dial_task(struct mu__member *member, const char *type, int index,
                     mu_error *ret_error)
{
    const char *url = mu_cluster_url(member->cluster, type, index);
    int rv = mu__links_dial(member->links, type, (uint32_t)index, url);

    return rv == 0 ? 0
                   : mu__member_cannot_dial(rv, type, (uint32_t)index, url, ret_error);
}

static int dial_tasks(struct mu__member *member, const struct mu__member_config *config,
                      mu_error *ret_error)
{
    const char *type;
    const char *address;
    int index;
    int rv = 0;

    for (size_t i = 0;
         rv == 0 && mu_cluster_task_at(member->cluster, i, &type, &index, &address) == 0;
         i++)
        if (mu__member_needs_link(member, type, (uint32_t)index))
            rv = dial_task(member, type, index, ret_error);
    return rv == 0 ? dial_unknown(member, config, ret_error) : rv;
}

void mu__member_name_leaders(struct mu__member *member)
{
    const char *chief = mu_cluster_url(member->cluster, "chief", 0);
    const char *owner = job_owner_type(member->cluster);
    const char *url = mu_cluster_url(member->cluster, owner, 0);

    (void)snprintf(member->chief, sizeof member->chief, "/job:chief/task:0 at %s",
                   chief == NULL ? "(no address: the cluster has no chief)" : chief);
    (void)snprintf(member->job_owner, sizeof member->job_owner, "/job:%s/task:0 at %s",
                   owner, url == NULL ? "(no address: the cluster has no chief)" : url);
}

/* Which types run closures, and how many tasks of each the cluster lists from 0 on. */
static int take_worker_types(struct mu__member *member,
                             const struct mu__member_config *config, mu_error *ret_error)
{
    struct mu__worker_types *types = &member->worker_types;
    int rv = mu__worker_types_parse(config->options->worker_types, ret_error, types);

    for (uint32_t i = 0; i < types->count; i++)
        while (mu_cluster_url(config->options->cluster, types->rows[i].name,
                              (int)types->rows[i].tasks) != NULL)
            types->rows[i].tasks++;
    return rv;
}

/* The parts of the config that outlive it. */
static int take_config(struct mu__member *member, const struct mu__member_config *config,
                       mu_error *ret_error)
{
    int rv = take_worker_types(member, config, ret_error);

    if (rv != 0)
        return rv;
    member->index = (uint32_t)config->options->task_index;
    member->is_unlisted_worker = is_unlisted_worker(&member->worker_types, config);
    member->upcalls = config->upcalls;
    (void)snprintf(member->type, sizeof member->type, "%s", config->options->task_type);
    (void)snprintf(member->address, sizeof member->address, "%s", config->address);
    (void)snprintf(member->coordinated_jobs, sizeof member->coordinated_jobs, "%s",
                   config->options->coordinated_jobs == NULL
                       ? MU__COORDINATED_JOBS
                       : config->options->coordinated_jobs);
    mu__task_name(member->task, sizeof member->task, config->options->task_type,
                  config->options->task_index);
    member->cluster = mu_cluster_copy(config->options->cluster);
    if (member->cluster == NULL)
        return mu_error_set(ret_error, -MU_ENOMEM, "no memory for a cluster");
    mu__member_name_leaders(member);
    return config->hosts == NULL ? 0
                                 : mu__task_set_parse(mu__view_str(config->hosts),
                                                      ret_error, &member->hosts);
}

/* Log it when a worker, or a task of a program's own type, runs no closures. */
static void log_no_closures(const struct mu__member *member)
{
    struct mu__worker_types own;
    char types[MU__WORKER_TYPES_TEXT_MAX];
    char line[MU__WORKER_TYPES_TEXT_MAX + 128];

    if (mu__worker_types_has(&member->worker_types, member->type) ||
        mu__worker_types_parse(member->type, NULL, &own) != 0)
        return;
    mu__worker_types_text(&member->worker_types, types, sizeof types);
    (void)snprintf(line, sizeof line,
                   "%s runs no closures: option worker_types is \"%s\", without its type",
                   member->task, types);
    member->world->ops->log(member->world, MU__LOG_INFO, "node", line);
}

static void name_process(struct mu__member *member,
                         const struct mu__member_config *config)
{
    struct mu__process own = {.pid = config->pid};

    if (config->software == NULL)
        return;
    (void)snprintf(own.version, sizeof own.version, "%s", config->software);
    (void)snprintf(own.host, sizeof own.host, "%s",
                   config->host == NULL ? "" : config->host);
    mu__kernel_node_process(member->kernel, MU__NODE_SELF, &own);
}

int mu__member_start(struct mu__member *member, const struct mu__member_config *config,
                     struct mu__world *world, struct mu__wire *wire, mu_error *ret_error)
{
    mu_error error = {.code = 0};
    int rv;

    *member = (struct mu__member){.world = world, .incarnation = incarnation_of(world)};
    rv = take_config(member, config, ret_error);
    if (rv != 0) {
        mu__member_stop(member);
        return rv;
    }
    rv = mu__kernel_new(world, &mu__messages, &member->kernel);
    if (rv == 0)
        rv = make_member_links(member, config, wire);
    if (rv == 0)
        name_process(member, config);
    if (rv == 0)
        rv = mu__member_spawn(member, config, &error);
    if (rv != 0)
        (void)mu_error_set(ret_error, rv, "%s cannot start: %.400s", member->task,
                           error.code != 0 ? error.message : mu_strerror(rv));
    else
        rv = dial_tasks(member, config, ret_error);
    if (rv != 0) {
        mu__member_stop(member);
        return rv;
    }
    if (!config->takes_offer)
        log_no_closures(member);
    world->ops->wake_at(world, world->ops->now_ms(world));
    return 0;
}

/* The links outlive the actors, whose last messages may still be sent. */
void mu__member_stop(struct mu__member *member)
{
    mu__kernel_free(member->kernel);
    mu__links_free(member->links);
    mu__member_forget_changes(member);
    mu_cluster_free(member->cluster);
    mu__task_set_done(&member->hosts);
    member->kernel = NULL;
    member->links = NULL;
    member->cluster = NULL;
}

/* Send the coordination service the agent's goodbye: this task has left, and is not
 * lost. */
static void leave_links(struct mu__member *member)
{
    void *agent = mu__actor_state(member->kernel, (mu__pid){MU__NODE_SELF, MU__AGENT});
    struct mu__msg *msg =
        agent == NULL ? NULL : mu__agent_goodbye(agent, mu__kernel_pool(member->kernel));

    if (msg != NULL)
        (void)mu__links_transmit(member->links, msg);
}

void mu__member_leave(struct mu__member *member, const char *reason)
{
    mu__member_forget_changes(member);
    if (!member->fails)
        leave_links(member);
    mu__links_leave(member->links, reason);
    mu__links_flush(member->links);
}
