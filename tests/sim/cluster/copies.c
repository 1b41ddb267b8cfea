#include "tests/sim/cluster/copies.h"

#include "actors/ps/internal.h"
#include "actors/ps/server.h"
#include "actors/views/views.h"
#include "tests/sim/cluster/losses.h"

#include <inttypes.h>

enum { PAUSE_MAX_MS = 60 };

/* ---- Who has what ---- */

/* NULL: it does not run. */
static const struct ps *server_state(const struct cluster_task *task)
{
    if (!sim_alive(task->node) || !task->runs || task->member.kernel == NULL)
        return NULL;
    return mu__actor_state(task->member.kernel, (mu__pid){MU__NODE_SELF, MU__PS});
}

/* NULL: its process is gone, or has not heard of it yet. */
static const struct partition *find_member(
    const struct cluster_copies *c, uint32_t partition, const struct mu__replica *replica)
{
    const struct ps *ps;

    if (replica->incarnation == 0 || replica->task >= c->servers)
        return NULL;
    ps = server_state(c->counts->cluster->servers[replica->task]);
    return ps != NULL && ps->incarnation == replica->incarnation
               ? ps->partitions[partition]
               : NULL;
}

struct newest {
    uint32_t partition;
    struct mu__partition_view view;
};

static void take_newer(void *user, const struct mu__partition_view *view)
{
    struct newest *newest = user;

    if (view->partition == newest->partition && view->number > newest->view.number)
        newest->view = *view;
}

/* The newest view that anybody knows: the chief has decided it, or a server has heard of
 * it. */
static struct mu__partition_view newest_view(const struct cluster_copies *c,
                                             uint32_t partition)
{
    const void *views = cluster_views(c->counts->cluster);
    struct newest newest = {.partition = partition};

    if (views != NULL)
        mu__views_each(views, take_newer, &newest);
    for (unsigned i = 0; i < c->servers; i++) {
        const struct ps *ps = server_state(c->counts->cluster->servers[i]);

        if (ps != NULL)
            take_newer(&newest, &ps->newest[partition]);
    }
    return newest.view;
}

/* ---- What must be ---- */

static bool is_same_view(const struct mu__partition_view *a,
                         const struct mu__partition_view *b)
{
    return a->primary.task == b->primary.task &&
           a->primary.incarnation == b->primary.incarnation &&
           a->backup.incarnation == b->backup.incarnation &&
           a->learner.incarnation == b->learner.incarnation && a->handover == b->handover;
}

static void check_heard(struct cluster_copies *c, uint32_t shard,
                        const struct mu__partition_view *view)
{
    struct mu__partition_view *heard = &c->heard[shard];

    if (view->number == heard->number && view->number != 0 && !is_same_view(view, heard))
        cluster_break(c->counts->cluster,
                      "view %" PRIu64 " of partition %" PRIu32 " stands for two views",
                      view->number, view->partition);
    if (view->number > heard->number)
        *heard = *view;
}

static bool is_alone(const struct partition *p)
{
    return p->role == SERVING && !p->ready && !p->view.handover &&
           !p->streams[TO_BACKUP].needed && !p->streams[TO_LEARNER].needed;
}

/* A primary that completes writes by itself is that of the newest view. */
static void check_alone(const struct cluster_copies *c,
                        const struct mu__partition_view *newest)
{
    for (unsigned i = 0; i < c->servers; i++) {
        const struct cluster_task *task = c->counts->cluster->servers[i];
        const struct ps *ps = server_state(task);
        const struct partition *p = ps == NULL ? NULL : ps->partitions[newest->partition];

        if (p != NULL && is_alone(p) &&
            !mu__replica_is(&newest->primary, i, ps->incarnation))
            cluster_break(c->counts->cluster,
                          "%s completes writes of partition %" PRIu32
                          " by itself, in view %" PRIu64 ", and view %" PRIu64
                          " has another primary",
                          task->name, newest->partition, p->view.number, newest->number);
    }
}

static void check_items(struct cluster_copies *c, const struct partition *p,
                        uint32_t shard, const struct cluster_counted *counted,
                        const char *who)
{
    const struct variable *v =
        mu__shard_find_by_name(p->store, mu__view_str(counted->name), shard);
    struct mu__store_shard content = {0};
    const int64_t *items;

    if (!mu__shard_describe(v, &content) && counted->acknowledged > 0)
        cluster_break(c->counts->cluster, "%s of partition %" PRIu32 " has no %s", who,
                      p->view.partition, counted->name);
    items = (const void *)content.data;
    for (uint64_t i = 0; i < content.bytes / sizeof *items; i++)
        if (items[i] < (int64_t)counted->acknowledged)
            cluster_break(c->counts->cluster,
                          "%s of partition %" PRIu32 " has %" PRId64 " in an item of %s, "
                          "and %" PRIu64 " adds were acknowledged",
                          who, p->view.partition, items[i], counted->name,
                          counted->acknowledged);
}

/* One that is being filled, or that has only its journal, is not counted on. */
static const struct partition *counted_member(
    const struct cluster_copies *c, uint32_t partition, const struct mu__replica *replica)
{
    const struct partition *p = find_member(c, partition, replica);

    return p != NULL && (p->role == SERVING || p->role == BACKING) ? p : NULL;
}

struct cluster_members cluster_members_of(const struct cluster_copies *c,
                                          uint32_t partition)
{
    struct mu__partition_view newest = newest_view(c, partition);
    struct cluster_members members = {
        .newest = newest,
        .primary = counted_member(c, partition, &newest.primary),
        .backup = counted_member(c, partition, &newest.backup),
    };
    const struct partition *primary = members.primary;
    const struct partition *backup = members.backup;

    members.are_alike = primary != NULL && backup != NULL && primary->role == SERVING &&
                        backup->role == BACKING &&
                        primary->view.number == backup->view.number &&
                        primary->record == backup->record;
    return members;
}

static void check_member(struct cluster_copies *c, const struct partition *p,
                         uint32_t shard, const char *who)
{
    if (p == NULL)
        return;
    c->looked++;
    for (unsigned i = 0; i < c->counts->count; i++)
        check_items(c, p, shard, &c->counts->counted[i], who);
}

static void check_alike(struct cluster_copies *c, const struct cluster_members *members)
{
    if (!members->are_alike)
        return;
    c->compared++;
    if (members->primary->sum != members->backup->sum)
        cluster_break(c->counts->cluster,
                      "primary and backup of partition %" PRIu32
                      " have other sums of record %" PRIu64,
                      members->newest.partition, members->primary->record);
}

static void check_shard(struct cluster_copies *c, uint32_t shard)
{
    uint32_t partition = cluster_counts_partition(c->counts, shard);
    struct cluster_members members = cluster_members_of(c, partition);

    for (unsigned i = 0; i < c->servers; i++) {
        const struct ps *ps = server_state(c->counts->cluster->servers[i]);

        if (ps != NULL)
            check_heard(c, shard, &ps->newest[partition]);
    }
    if (members.newest.number == 0)
        return;
    check_alone(c, &members.newest);
    check_member(c, members.primary, shard, "the primary");
    check_member(c, members.backup, shard, "the backup");
    check_alike(c, &members);
}

static void step_copies(struct sim *sim, void *arg)
{
    struct cluster_copies *c = arg;

    for (uint32_t i = 0; i < c->counts->shape.shards; i++)
        check_shard(c, i);
    if (sim_now_ms(sim) < c->until_ms)
        sim_at(sim, sim_now_ms(sim) + sim_between(&c->random, 1, PAUSE_MAX_MS),
               step_copies, c);
}

void cluster_copies_begin(struct cluster_copies *c)
{
    sim_at(c->counts->cluster->sim,
           sim_now_ms(c->counts->cluster->sim) + sim_between(&c->random, 1, PAUSE_MAX_MS),
           step_copies, c);
}
