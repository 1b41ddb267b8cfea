#include "tests/sim/cluster/losses.h"

#include "actors/local_messages.h"
#include "actors/ps/server.h"
#include "actors/views/views.h"

#include <stdlib.h>

enum {
    PAUSE_MAX_MS = 400,
    BACK_MAX_MS = 2000,
    DRAIN_PERCENT = 15,
    CHIEF_PERCENT = 6,
    RESIZING_PERCENT = 40
};

struct backing {
    const struct cluster *cluster;
    bool is_whole;
};

static bool runs_here(const struct cluster *cluster, const struct mu__replica *replica)
{
    const struct cluster_task *task = cluster->servers[replica->task];

    return sim_alive(task->node) && task->member.incarnation == replica->incarnation;
}

/* Whether the primary completes nothing without the backup. */
static bool is_streaming(const struct cluster *cluster,
                         const struct mu__partition_view *view)
{
    const struct cluster_task *task = cluster->servers[view->primary.task];
    const struct ps *ps =
        mu__actor_state(task->member.kernel, (mu__pid){MU__NODE_SELF, MU__PS});
    const struct partition *p = ps->partitions[view->partition];

    return p != NULL && p->role == SERVING && p->streams[TO_BACKUP].needed &&
           p->streams[TO_BACKUP].node != 0 && p->view.number == view->number;
}

/* The chief may not have heard yet of a process that died, or of a link that broke. */
static void check_members(void *user, const struct mu__partition_view *view)
{
    struct backing *backing = user;

    if (!runs_here(backing->cluster, &view->primary) ||
        !runs_here(backing->cluster, &view->backup) ||
        !is_streaming(backing->cluster, view))
        backing->is_whole = false;
}

const void *cluster_views(const struct cluster *cluster)
{
    const struct cluster_task *chief = cluster->chief;

    if (!sim_alive(chief->node) || chief->member.kernel == NULL)
        return NULL;
    return mu__actor_state(chief->member.kernel, (mu__pid){MU__NODE_SELF, MU__VIEWS});
}

bool cluster_is_backed(const struct cluster *cluster)
{
    const void *views = cluster_views(cluster);
    struct backing backing = {.cluster = cluster};
    struct mu__view_totals totals;

    if (views == NULL)
        return false;
    mu__views_totals(views, &totals);
    backing.is_whole = totals.placed == MU__PARTITIONS && totals.degraded == 0 &&
                       totals.without_primary == 0;
    if (backing.is_whole)
        mu__views_each(views, check_members, &backing);
    return backing.is_whole;
}

static void start_killed(struct sim *sim, void *arg)
{
    struct cluster_task *task = arg;

    (void)sim;
    if (!sim_alive(task->node))
        cluster_start(task);
}

static void kill_task(struct cluster_losses *losses, struct cluster_task *task)
{
    struct sim *sim = losses->cluster->sim;

    sim_note(sim, MU__LOG_WARN, "%s is killed", task->name);
    sim_crash(task->node);
    sim_at(sim, sim_now_ms(sim) + sim_between(&losses->random, 1, BACK_MAX_MS),
           start_killed, task);
}

static void kill_server(struct cluster_losses *losses)
{
    struct cluster_task *task =
        losses->cluster->servers[sim_between(&losses->random, 0, losses->servers - 1)];

    if (!sim_alive(task->node))
        return;
    losses->killed++;
    kill_task(losses, task);
}

static void kill_chief(struct cluster_losses *losses)
{
    if (!losses->chief_dies || !sim_chance(&losses->random, CHIEF_PERCENT) ||
        !sim_alive(losses->cluster->chief->node))
        return;
    losses->chiefs++;
    kill_task(losses, losses->cluster->chief);
}

/* Nobody waits for the answer: the token is of no request. */
bool cluster_drain_server(struct cluster *cluster, unsigned server)
{
    struct mu__msg *msg = mu__msg_heap(MU__SERVER_DRAIN, sizeof(struct mu__server_drain));

    if (msg == NULL || cluster_views(cluster) == NULL) {
        free(msg);
        return false;
    }
    *(struct mu__server_drain *)mu__body(msg) = (struct mu__server_drain){
        .index = server,
        .requester = {MU__NODE_SELF, MU__CLIENT},
    };
    msg->to = (mu__pid){MU__NODE_SELF, MU__VIEWS};
    sim_note(cluster->sim, MU__LOG_WARN, "a server is drained");
    (void)mu__kernel_deliver(cluster->chief->member.kernel, msg);
    return true;
}

static void drain_some(struct cluster_losses *losses)
{
    unsigned server = (unsigned)sim_between(&losses->random, 0, losses->servers - 1);

    losses->drained += cluster_drain_server(losses->cluster, server);
}

static void note_moves(struct cluster_losses *losses)
{
    const void *views = cluster_views(losses->cluster);
    struct mu__view_totals totals;

    if (views == NULL)
        return;
    mu__views_totals(views, &totals);
    losses->moving += totals.moving > 0;
}

static void step_losses(struct sim *sim, void *arg)
{
    struct cluster_losses *losses = arg;
    uint64_t now_ms = sim_now_ms(sim);

    if (now_ms >= losses->until_ms)
        return;
    if (cluster_is_backed(losses->cluster))
        kill_server(losses);
    if (sim_chance(&losses->random, DRAIN_PERCENT))
        drain_some(losses);
    kill_chief(losses);
    note_moves(losses);
    sim_at(sim, now_ms + sim_between(&losses->random, 1, PAUSE_MAX_MS), step_losses,
           losses);
}

static void draw_resizing(struct cluster_losses *losses)
{
    struct cluster_resizing *resizing = losses->resizing;

    if (resizing == NULL || !sim_chance(&losses->random, RESIZING_PERCENT))
        return;
    resizing->cluster = losses->cluster;
    resizing->random = sim_stream(sim_draw(&losses->random), 1);
    resizing->until_ms = losses->until_ms;
    cluster_resizing_prepare(resizing);
    cluster_resizing_begin(resizing);
    losses->servers = resizing->servers;
}

void cluster_losses_begin(struct cluster_losses *losses)
{
    draw_resizing(losses);
    sim_at(losses->cluster->sim,
           sim_now_ms(losses->cluster->sim) +
               sim_between(&losses->random, 1, PAUSE_MAX_MS),
           step_losses, losses);
}

bool cluster_losses_are_mended(void *arg)
{
    const struct cluster_losses *losses = arg;
    const void *views = cluster_views(losses->cluster);
    struct mu__view_totals totals;

    if (views == NULL)
        return losses->servers == 0;
    mu__views_totals(views, &totals);
    return totals.moving == 0 && totals.filling == 0 && totals.without_primary == 0;
}
