#include "tests/sim/cluster/resizing.h"

#include "actors/views/views.h"
#include "sim/world/chaos.h"
#include "tests/sim/cluster/losses.h"

#include <stdio.h>

enum {
    PAUSE_MAX_MS = 400,
    START_MAX_MS = 1000, /* until a server that was added runs */
    BACK_PERCENT = 40,   /* at a look at one that is away */
    GONE_PERCENT = 30    /* of those that are to go */
};

static bool is_there(const struct cluster_resizing *r, unsigned server)
{
    return sim_alive(r->cluster->servers[server]->node);
}

static unsigned count_staying(const struct cluster_resizing *r)
{
    unsigned count = 0;

    for (unsigned i = 0; i < r->servers; i++)
        count += is_there(r, i) && !r->leaves[i];
    return count;
}

static bool has_roles(const struct cluster_resizing *r, unsigned server)
{
    const void *views = cluster_views(r->cluster);
    struct mu__view_roles roles;

    if (views == NULL)
        return true;
    mu__views_roles(views, server, &roles);
    return roles.primary + roles.backup + roles.learner > 0;
}

/* What the chief has decided may not be recorded yet, and it may die: only backups are
 * sure. Without them it lives. */
static bool is_sure(const struct cluster_resizing *r)
{
    return r->cluster->options.node.backups == 0 || cluster_is_backed(r->cluster);
}

/* ---- What happens ---- */

static void start_server(struct sim *sim, void *arg)
{
    struct cluster_task *task = arg;

    (void)sim;
    if (!sim_alive(task->node))
        cluster_start(task);
}

/* The first one of those that are not in the cluster: a chief that begins with a cluster
 * in which an index is missing would wait for that server. */
static void add_next(struct cluster_resizing *r)
{
    unsigned next = 0;
    struct sim *sim = r->cluster->sim;
    struct cluster_task *task;

    while (cluster_changing_lists(&r->changing, r->cluster->servers[next]))
        next++;
    task = r->cluster->servers[next];

    sim_note(sim, MU__LOG_WARN, "%s is added", task->name);
    r->added++;
    cluster_changing_list(&r->changing, task);
    sim_at(sim, sim_now_ms(sim) + sim_between(&r->random, 0, START_MAX_MS), start_server,
           task);
}

static void leave(struct cluster_resizing *r, unsigned server)
{
    struct cluster_task *task = r->cluster->servers[server];

    sim_note(r->cluster->sim, MU__LOG_WARN, "%s leaves", task->name);
    r->leaves[server] = false;
    sim_crash(task->node);
}

static void begin_to_leave(struct cluster_resizing *r, unsigned server)
{
    bool at_once = sim_chance(&r->random, GONE_PERCENT);

    if (!at_once || r->cluster->options.node.backups == 0) {
        r->leaves[server] = cluster_drain_server(r->cluster, server);
    } else if (cluster_is_backed(r->cluster)) {
        r->gone++;
        leave(r, server);
    }
}

/* Another process of it has come meanwhile, or another chief: it is drained again. */
static void go_on_to_leave(struct cluster_resizing *r, unsigned server)
{
    if (has_roles(r, server)) {
        (void)cluster_drain_server(r->cluster, server);
    } else if (is_sure(r)) {
        r->left++;
        leave(r, server);
    }
}

static void resize(struct cluster_resizing *r)
{
    unsigned server = (unsigned)sim_between(&r->random, 0, r->servers - 1);
    struct cluster_task *task = r->cluster->servers[server];

    if (!cluster_changing_lists(&r->changing, task))
        add_next(r);
    else if (!is_there(r, server) && sim_chance(&r->random, BACK_PERCENT))
        cluster_start(task);
    else if (!is_there(r, server))
        return;
    else if (r->leaves[server])
        go_on_to_leave(r, server);
    else if (count_staying(r) > 1 + r->cluster->options.node.backups)
        begin_to_leave(r, server);
}

/* In the end all are there that are in the cluster. */
static void start_all(struct cluster_resizing *r)
{
    for (unsigned i = 0; i < r->servers; i++)
        if (cluster_changing_lists(&r->changing, r->cluster->servers[i]) &&
            !is_there(r, i))
            cluster_start(r->cluster->servers[i]);
}

static void step_resizing(struct sim *sim, void *arg)
{
    struct cluster_resizing *r = arg;
    uint64_t now_ms = sim_now_ms(sim);

    if (now_ms >= r->until_ms) {
        start_all(r);
        return;
    }
    resize(r);
    sim_at(sim, now_ms + sim_between(&r->random, 1, PAUSE_MAX_MS), step_resizing, r);
}

/* ---- A test's ---- */

void cluster_resizing_prepare(struct cluster_resizing *r)
{
    struct cluster *cluster = r->cluster;

    r->changing = (struct cluster_changing){
        .cluster = cluster,
        .random = sim_stream(sim_draw(&r->random), 1),
    };
    r->servers = cluster->options.servers;
    for (unsigned i = 0; i < CLUSTER_RESIZING_MAX; i++) {
        char name[24];

        (void)snprintf(name, sizeof name, "ps/%u", r->servers);
        cluster->servers[r->servers] = cluster_add(cluster, "ps", r->servers, name);
        sim_chaos_spare(cluster->servers[r->servers]->node, SIM_FAULT_CRASH);
        sim_chaos_spare(cluster->servers[r->servers]->node, SIM_FAULT_CRASH_MIDWAY);
        r->servers++;
    }
}

void cluster_resizing_begin(struct cluster_resizing *r)
{
    sim_at(r->cluster->sim,
           sim_now_ms(r->cluster->sim) + sim_between(&r->random, 1, PAUSE_MAX_MS),
           step_resizing, r);
}

void cluster_resizing_free(struct cluster_resizing *r)
{
    cluster_changing_free(&r->changing);
}
