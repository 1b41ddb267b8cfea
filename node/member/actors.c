/* The actors of a member, each with its configuration made from the node's options. */
#include "node/member/internal.h"

#include "actors/job/job.h"
#include "actors/keeper/keeper.h"
#include "actors/ps/ps.h"
#include "actors/user/office.h"
#include "actors/views/views.h"
#include "resolver/spec/cluster.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { WORKERS_PER_TIMEOUT = 10 }; /* of -MU_EDEADLINE results that are retried */

/* ---- peers ---- */

struct peer_visit {
    mu__peer_fn visit;
    void *user;
};

static void show_peer(void *user, const struct mu__link_view *view)
{
    const struct peer_visit *to = user;
    const struct mu__peer peer = {
        .type = view->type,
        .index = view->index,
        .address = view->url,
        .state = view->state,
        .why = view->why,
        .for_ms = view->for_ms,
        .node = view->node,
        .is_dialled = view->is_retained,
    };

    to->visit(to->user, &peer);
}

static void each_peer(void *owner, mu__peer_fn visit, void *user)
{
    struct peer_visit to = {visit, user};

    mu__links_each(((struct mu__member *)owner)->links, show_peer, &to);
}

/* ---- partitions ---- */

static mu_value *partitions_value(void *owner)
{
    const struct mu__member *member = owner;
    const void *views =
        mu__actor_state(member->kernel, (mu__pid){MU__NODE_SELF, MU__VIEWS});

    return views == NULL ? NULL : mu__views_status(views);
}

/* ---- the actors ---- */

static int spawn_member_actor(struct mu__member *member,
                              const struct mu__behavior *behavior, uint32_t number,
                              const void *arg)
{
    return mu__spawn(member->kernel, behavior, number, arg, NULL);
}

static int spawn_job(struct mu__member *member, const struct mu__member_config *config)
{
    const struct mu__job_config job = {
        .task = member->task,
        .type = member->type,
        .index = member->index,
        .runs_closures = mu__worker_types_has(&member->worker_types, member->type),
        .chief_type =
            config->dials_any != NULL ? MU__LINK_UNKNOWN : mu__member_leader_type(member),
        .chief = member->job_owner,
        .check = config->offer_check,
        .check_owner = config->offer_owner,
        .takes_offer = config->takes_offer,
        .orphan_ms = config->dials_any != NULL ? 0 : config->options->orphan_ms,
        .hosts = &member->hosts,
    };

    return spawn_member_actor(member, &mu__job, MU__JOB, &job);
}

static int spawn_variables(struct mu__member *member,
                           const struct mu__member_config *config)
{
    size_t count = mu_cluster_task_count(config->options->cluster, "ps");
    const char **addresses = calloc(count + 1, sizeof *addresses);
    const struct mu__variables_options options = {
        .addresses_count = count,
        .addresses = addresses,
        .task = member->task,
        .incarnation = member->incarnation,
        .is_server = strcmp(member->type, "ps") == 0,
        .index = member->index,
        .server_lost_ms = config->options->server_lost_ms,
        .effect_wait_ms = config->options->effect_wait_ms,
    };
    int rv;

    if (addresses == NULL)
        return -MU_ENOMEM;
    for (size_t i = 0; i < count; i++)
        addresses[i] = mu_cluster_url(config->options->cluster, "ps", (int)i);
    rv = spawn_member_actor(member, &mu__variables, MU__VARIABLES, &options);
    free(addresses);
    return rv;
}

struct link_search {
    const char *type;
    uint32_t index;
    bool found;
};

static void note_searched_link(void *user, const struct mu__link_view *view)
{
    struct link_search *search = user;

    search->found = search->found || (view->index == search->index &&
                                      strcmp(view->type, search->type) == 0);
}

/* A link that an actor needs is made when it is needed, and stays. One that is there, or
 * being made, is left alone. */
static int dial_for_actor(void *owner, const char *type, uint32_t index,
                          mu_error *ret_error)
{
    struct mu__member *member = owner;
    const char *url = mu_cluster_url(member->cluster, type, (int)index);
    struct link_search search = {type, index, false};
    int rv;

    if (url == NULL)
        return mu_error_set(ret_error, -MU_EUNAVAILABLE,
                            "%s cannot reach /job:%s/task:%" PRIu32
                            ": they are not connected, and the cluster has no address "
                            "of it",
                            member->task, type, index);
    mu__links_each(member->links, note_searched_link, &search);
    if (search.found)
        return 0;
    rv = mu__links_dial(member->links, type, index, url);
    return rv == 0 ? 0 : mu__member_cannot_dial(rv, type, index, url, ret_error);
}

static int spawn_actors_office(struct mu__member *member,
                               const struct mu__member_config *config)
{
    const struct mu__actors_config actors = {
        .task = member->task,
        .type = member->type,
        .index = member->index,
        .incarnation = member->incarnation,
        .silence_ms = config->options->silence_ms,
        .dial = dial_for_actor,
        .owner = member,
    };

    return spawn_member_actor(member, &mu__actors, MU__ACTORS, &actors);
}

static uint32_t get_third_ms(uint32_t ms)
{
    return ms < 3 ? 1 : ms / 3;
}

static int spawn_agent(struct mu__member *member, const struct mu__member_config *config,
                       const struct mu__task_set *hosts)
{
    const struct mu__task_range *first = hosts->ranges;
    const char *url = hosts->count == 0 ? NULL
                                        : mu_cluster_url(config->options->cluster,
                                                         first->type, (int)first->first);
    const struct mu__agent_config agent = {
        .hosts = config->hosts == NULL ? "" : config->hosts,
        .address = url == NULL ? "" : url,
        .tasks = config->coordination.tasks,
        .any = config->dials_any == NULL ? NULL : MU__LINK_UNKNOWN,
        .type = member->type,
        .index = member->index,
        .incarnation = member->incarnation,
        .devices = config->devices,
        .heartbeat_ms = get_third_ms(config->coordination.suspect_ms),
        .dead_ms = config->coordination.dead_ms,
        .registers_at_once = hosts->count > 0,
        .shared = &member->agent,
        .run = config->options->run,
        .own_run = &member->own_run,
    };

    return spawn_member_actor(member, &mu__agent, MU__AGENT, &agent);
}

static int spawn_coordination(struct mu__member *member,
                              const struct mu__member_config *config,
                              const struct mu__task_set *hosts)
{
    struct mu__coordination_config coordination = config->coordination;
    int rv = spawn_agent(member, config, hosts);

    coordination.cluster_name = config->options->cluster_name;
    coordination.task = member->task;
    coordination.incarnation = member->incarnation;
    coordination.run = config->options->run;
    coordination.own_run = &member->own_run;
    if (rv == 0 && mu__task_set_has(hosts, member->type, member->index))
        rv = spawn_member_actor(member, &mu__coordination, MU__COORDINATION,
                                &coordination);
    if (rv == 0 && coordination.kept != NULL)
        rv = spawn_member_actor(member, &mu__keeper, MU__KEEPER,
                                &(struct mu__keeper_config){
                                    .storage = coordination.kept,
                                    .bytes_max = MU__KEEPER_BYTES,
                                });
    return rv;
}

/* Tasks of the cluster that run closures. */
static uint32_t count_workers(const struct mu__member *member)
{
    size_t count = 0;

    for (uint32_t i = 0; i < member->worker_types.count; i++)
        count +=
            mu_cluster_task_count(member->cluster, member->worker_types.rows[i].name);
    return (uint32_t)count;
}

static struct mu__supervisor_config supervisor_config(
    struct mu__member *member, const struct mu__member_config *config)
{
    const mu_node_options *o = config->options;

    return (struct mu__supervisor_config){
        .window = o->window,
        .attempts_max = o->attempts_max,
        .queue_max = o->queue_max,
        .queue_bytes_max = o->queue_bytes_max,
        .retries_max = o->retries_max,
        .types = member->worker_types,
        .recovery_ms = o->recovery_ms,
        .start_delay_ms = o->start_delay_ms,
        .start_delay_max_ms = o->start_delay_max_ms,
        .server_failures = o->server_failures,
        .server_failures_ms = o->server_failures_ms,
        .timeouts = o->timeouts != MU_TIMEOUTS_OF_WORKERS
                        ? o->timeouts
                        : count_workers(member) / WORKERS_PER_TIMEOUT,
        .unknown_is_worker = o->unknown_is_worker != 0,
        .backup_percent = o->backup_percent,
        .watchdog_ms = o->watchdog_ms,
        .measure = o->measure != 0,
        .insecure = o->insecure != 0,
        .journal = config->journal,
        .journal_news = config->journal_news,
        .journal_owner = config->journal_owner,
        .journal_keep = config->options->journal_keep,
        .journal_keep_ms = config->options->journal_keep_ms,
        .partitions = partitions_value,
        .partitions_owner = member,
        .origin = member->incarnation,
    };
}

/* Indices of the parameter servers, which need not follow each other; one of 0 if there
 * are none. NULL when out of memory. */
static uint32_t *list_servers(const mu_cluster *cluster, uint32_t *ret_count)
{
    size_t room = mu_cluster_task_count(cluster, "ps");
    uint32_t *tasks = calloc(room == 0 ? 1 : room, sizeof *tasks);
    uint32_t count = 0;
    const char *type;
    const char *address;
    int index;

    for (size_t i = 0; tasks != NULL && count < room &&
                       mu_cluster_task_at(cluster, i, &type, &index, &address) == 0;
         i++)
        if (strcmp(type, "ps") == 0)
            tasks[count++] = (uint32_t)index;
    *ret_count = room == 0 ? 1 : count;
    return tasks;
}

static int spawn_views(struct mu__member *member, const struct mu__member_config *config)
{
    uint32_t servers;
    uint32_t *tasks = list_servers(member->cluster, &servers);
    const struct mu__views_options views = {
        .table = {.servers = servers,
                  .tasks = tasks,
                  .backups = config->options->backups,
                  .grace_ms = MU__VIEW_GRACE_MS,
                  .recovery_ms = MU__VIEW_RECOVERY_MS},
        .strict = config->options->strict != 0,
        .agent = member->hosts.count == 0 ? NULL : &member->agent,
    };
    int rv;

    rv = tasks == NULL ? -MU_ENOMEM
                       : spawn_member_actor(member, &mu__views, MU__VIEWS, &views);
    free(tasks);
    return rv;
}

int mu__member_spawn(struct mu__member *member, const struct mu__member_config *config,
                     mu_error *ret_error)
{
    bool is_chief = strcmp(member->type, "chief") == 0;
    const struct mu__supervisor_config supervisor = supervisor_config(member, config);
    const struct mu__worker_config worker = {
        .serves = mu__worker_types_has(&member->worker_types, member->type),
        .serves_at_once = config->serves_at_once,
        .threads = config->options->threads,
        .retained_bytes_max = config->retained_bytes_max,
        .index = member->index,
        .task = member->task,
        .type = member->type,
        .node = config->node,
        .post = config->post,
    };
    const struct mu__client_config client = {
        .is_chief = is_chief,
        .queue_max = config->options->queue_max,
        .chief = member->chief,
        .queue_bytes_max = config->options->queue_bytes_max,
    };
    const struct mu__ps_config ps = {.index = member->index,
                                     .incarnation = member->incarnation,
                                     .leader = mu__member_leader_type(member),
                                     .journal = config->journal,
                                     .cluster_name = config->options->cluster_name,
                                     .run = config->options->run,
                                     .spare_bytes = config->journal_spare_bytes,
                                     .error = ret_error};
    const struct mu__peers_config peers = {.each = each_peer, .owner = member};
    int rv = 0;

    if (is_chief)
        rv = spawn_member_actor(member, &mu__supervisor, MU__SUPERVISOR, &supervisor);
    if (rv == 0 && mu__member_has_views(member))
        rv = spawn_views(member, config);
    if (rv == 0)
        rv = spawn_member_actor(member, &mu__worker, MU__WORKER, &worker);
    if (rv == 0 && strcmp(member->type, "ps") == 0)
        rv = spawn_member_actor(member, &mu__ps, MU__PS, &ps);
    if (rv == 0)
        rv = spawn_member_actor(member, &mu__client, MU__CLIENT, &client);
    if (rv == 0)
        rv = spawn_actors_office(member, config);
    if (rv == 0)
        rv = spawn_variables(member, config);
    if (rv == 0)
        rv = spawn_job(member, config);
    if (rv == 0)
        rv = spawn_member_actor(member, &mu__peers, MU__PEERS, &peers);
    if (rv == 0)
        rv = spawn_coordination(member, config, &member->hosts);
    return rv;
}
