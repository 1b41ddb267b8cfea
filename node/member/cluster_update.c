/* The cluster changes while a member runs: the rows of a comparison are taken one after
 * the other, some in each turn. */
#include "node/member/internal.h"

#include "actors/packing.h"
#include "resolver/spec/cluster.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* Well below a millisecond, and all that follows of them is handled in the same turn. */
#ifdef MUSTER_TINY
enum { CHANGES_A_TURN = 2 };
#else
enum { CHANGES_A_TURN = 128 };
#endif

enum {
    RETRY_MS = 1000, /* after a change that could not be taken */
    BUSY_MS = 1000   /* how long changes wait for other mail to be handled */
};

#define NOT_IN_CLUSTER "the task is not in the cluster any more"

/* The changes that each actor gets. The supervisor and the views are on the chief, the
 * service on hosts. */
static const struct {
    uint32_t actor;
    enum mu__change_kind kind;
} who_hears[] = {
    {MU__SUPERVISOR, MU__CHANGE_ADDED},   {MU__SUPERVISOR, MU__CHANGE_REMOVED},
    {MU__VARIABLES, MU__CHANGE_MOVED},    {MU__JOB, MU__CHANGE_REMOVED},
    {MU__COORDINATION, MU__CHANGE_ADDED}, {MU__COORDINATION, MU__CHANGE_REMOVED},
    {MU__AGENT, MU__CHANGE_ADDED},        {MU__AGENT, MU__CHANGE_MOVED},
    {MU__VIEWS, MU__CHANGE_ADDED},
};

static bool has_actor(const struct mu__member *member, uint32_t actor)
{
    if (actor == MU__SUPERVISOR)
        return strcmp(member->type, "chief") == 0;
    if (actor == MU__VIEWS)
        return mu__member_has_views(member);
    return actor != MU__COORDINATION ||
           mu__task_set_has(&member->hosts, member->type, member->index);
}

static bool is_coordinated(const struct mu__member *member, const char *type)
{
    const char *at = member->coordinated_jobs;
    size_t size = strlen(type);

    while (*at != '\0') {
        size_t word = strcspn(at, ", ");

        if (word == size && strncmp(at, type, size) == 0)
            return true;
        at += word;
        at += strspn(at, ", ");
    }
    return false;
}

/* The messages to all actors share the buffer of the strings in `body`. */
static int notify_actor(struct mu__member *member, uint16_t kind, uint32_t actor,
                        const struct mu__cluster_change *body, struct mu__buf *words)
{
    struct mu__msg *msg =
        mu__pool_get(mu__kernel_pool(member->kernel), kind, sizeof *body);

    if (msg == NULL)
        return -MU_ENOMEM;
    memcpy(msg->body, body, sizeof *body);
    msg->backing = mu__buf_ref(words);
    msg->to.actor = actor;
    return mu__kernel_deliver(member->kernel, msg);
}

static int notify_actors(struct mu__member *member, const struct mu__change *change)
{
    static const uint16_t kinds[] = {
        [MU__CHANGE_ADDED] = MU__CLUSTER_ADDED,
        [MU__CHANGE_REMOVED] = MU__CLUSTER_REMOVED,
        [MU__CHANGE_MOVED] = MU__CLUSTER_MOVED,
    };
    struct mu__cluster_change body = {
        .type = mu__view_str(change->type),
        .index = (uint32_t)change->index,
        .address = mu__view_str(change->url),
        .coordinated = is_coordinated(member, change->type),
        .own = mu__member_is(member, change->type, (uint32_t)change->index),
    };
    struct mu__buf *words = mu__pack_two(&body.type, &body.address);
    int rv = words == NULL ? -MU_ENOMEM : 0;

    for (size_t i = 0; rv == 0 && i < sizeof who_hears / sizeof who_hears[0]; i++)
        if (who_hears[i].kind == change->kind && has_actor(member, who_hears[i].actor))
            rv = notify_actor(member, kinds[change->kind], who_hears[i].actor, &body,
                              words);
    mu__buf_unref(words);
    return rv;
}

static void log_cluster_change(const struct mu__member *member, enum mu__log_level level,
                               const struct mu__change *change, const char *what,
                               const char *more)
{
    char line[768];

    (void)snprintf(line, sizeof line, "/job:%s/task:%d at %s %s%s", change->type,
                   change->index, change->url, what, more);
    member->world->ops->log(member->world, level, "cluster", line);
}

/* Log a change of this task itself. Nothing else is done about it here: a worker's job
 * actor lets it finish what it has and end. */
static void log_own_change(const struct mu__member *member,
                           const struct mu__change *change)
{
    bool is_worker = mu__worker_types_has(&member->worker_types, member->type);

    if (change->kind == MU__CHANGE_REMOVED)
        log_cluster_change(member, MU__LOG_WARN, change,
                           "is this task, which the cluster has no more: ",
                           is_worker ? "it finishes what it has and ends" : "it goes on");
    else if (change->kind == MU__CHANGE_MOVED &&
             strcmp(change->url, member->address) != 0)
        log_cluster_change(member, MU__LOG_WARN, change,
                           "is what the cluster calls this task, which is at ",
                           member->address);
}

/* Clients need not be in a cluster: one that leaves it keeps its link. */
static int change_links(struct mu__member *member, const struct mu__change *change)
{
    uint32_t index = (uint32_t)change->index;

    if (mu__member_is(member, change->type, index) || strcmp(change->type, "client") == 0)
        return 0;
    if (change->kind == MU__CHANGE_REMOVED)
        mu__links_hangup(member->links, change->type, index, NOT_IN_CLUSTER);
    else if (mu__member_needs_link(member, change->type, index))
        return mu__links_adopt(member->links, change->type, index, change->url);
    else if (change->kind == MU__CHANGE_MOVED)
        return mu__links_move(member->links, change->type, index, change->url);
    else
        mu__links_allow(member->links, change->type, index);
    return 0;
}

static int take_change(struct mu__member *member, const struct mu__change *change,
                       mu_error *ret_error)
{
    static const char *const words[] = {
        [MU__CHANGE_ADDED] = "was added",
        [MU__CHANGE_REMOVED] = "was removed",
        [MU__CHANGE_MOVED] = "is where the task has moved",
    };
    int rv;

    /* Actors get the change before the news that the link is down. */
    log_cluster_change(member, MU__LOG_INFO, change, words[change->kind], "");
    rv = notify_actors(member, change);
    if (rv != 0)
        return mu_error_set(ret_error, rv,
                            "/job:%s/task:%d: the node's actors cannot be "
                            "told of a change",
                            change->type, change->index);
    if (mu__member_is(member, change->type, (uint32_t)change->index))
        log_own_change(member, change);
    rv = change_links(member, change);
    if (rv == -MU_ENOMEM)
        return mu__member_cannot_dial(rv, change->type, (uint32_t)change->index,
                                      change->url, ret_error);
    /* A task that cannot be dialled does not stop the changes behind it. */
    if (rv != 0)
        log_cluster_change(member, MU__LOG_ERROR, change,
                           "cannot be dialled: ", mu_strerror(rv));
    return 0;
}

static uint32_t hash_refused(const struct mu__changes *changes)
{
    uint32_t hash = 0;
    char words[512];

    for (size_t i = 0; i < changes->count; i++) {
        const struct mu__change *change = &changes->rows[i];

        if (change->refused == NULL)
            continue;
        (void)snprintf(words, sizeof words, "%" PRIu32 " %d %s %d %s", hash,
                       (int)change->kind, change->type, change->index, change->url);
        hash = mu__view_hash(mu__view_str(words));
    }
    return hash;
}

/* Log the refused changes, once: the same cluster is found again and again. Returns the
 * first as an error. */
static int log_refused_changes(struct mu__member *member,
                               const struct mu__changes *changes, mu_error *ret_error)
{
    uint32_t hash = hash_refused(changes);
    bool is_news = hash != member->refused;
    static const char *const words[] = {
        [MU__CHANGE_ADDED] = "is not added: ",
        [MU__CHANGE_REMOVED] = "is not removed: ",
        [MU__CHANGE_MOVED] = "is not moved: ",
    };
    const struct mu__change *first = NULL;

    for (size_t i = 0; i < changes->count; i++) {
        const struct mu__change *change = &changes->rows[i];

        if (change->refused == NULL)
            continue;
        if (is_news)
            log_cluster_change(member, MU__LOG_WARN, change, words[change->kind],
                               change->refused);
        first = first == NULL ? change : first;
    }
    member->refused = hash;
    return first == NULL
               ? 0
               : mu_error_set(ret_error, -MU_EPRECONDITION, "/job:%s/task:%d at %s %s%s",
                              first->type, first->index, first->url, words[first->kind],
                              first->refused);
}

/* ---- taking them ---- */

static bool is_taking(const struct mu__member *member)
{
    return member->taking.changes.rows != NULL;
}

static void taking_done(struct mu__taking *taking, const mu_cluster *present)
{
    mu_cluster_free(taking->before);
    if (taking->after != present)
        mu_cluster_free(taking->after);
    mu__changes_done(&taking->changes);
}

void mu__member_forget_changes(struct mu__member *member)
{
    taking_done(&member->taking, member->cluster);
    mu_cluster_free(member->awaited);
    member->taking = (struct mu__taking){0};
    member->awaited = NULL;
}

/* The upcall may end the node, so the changes are taken out of the member before. */
static void end_taking(struct mu__member *member)
{
    struct mu__taking taken = member->taking;
    const mu_cluster *present = member->cluster;

    member->taking = (struct mu__taking){0};
    mu__member_name_leaders(member);
    if (member->upcalls.news != NULL && taken.changes.count > taken.changes.refused_count)
        member->upcalls.news(member->upcalls.news_owner, &taken.changes, member->cluster);
    taking_done(&taken, present);
}

/* Take at most `count` changes. One that fails is tried again after RETRY_MS, and those
 * behind it wait: some actors may have been notified of it already. */
static int take_some(struct mu__member *member, size_t count, mu_error *ret_error)
{
    struct mu__taking *taking = &member->taking;
    uint64_t now_ms = member->world->ops->now_ms(member->world);
    int rv = 0;

    for (; count > 0 && taking->next < taking->changes.count; count--) {
        const struct mu__change *change = &taking->changes.rows[taking->next];

        if (change->refused == NULL)
            rv = take_change(member, change, ret_error);
        if (rv != 0)
            break;
        taking->next++;
    }
    taking->took_ms = now_ms;
    taking->retry_ms = rv == 0 ? now_ms : now_ms + RETRY_MS;
    member->world->ops->wake_at(member->world, taking->retry_ms);
    if (rv == 0 && taking->next == taking->changes.count)
        end_taking(member);
    return rv;
}

/* ---- another cluster ---- */

/* Takes `after`, whatever is returned. From here on the cluster is the new one, also for
 * the question which task ends the job. */
static int begin_taking(struct mu__member *member, mu_cluster *after, mu_error *ret_error)
{
    struct mu__taking taking = {.before = member->cluster, .after = after};
    mu_cluster *taken = after;
    int rv = mu__changes_find(member->cluster, after, &taking.changes);

    if (rv != 0) {
        mu_cluster_free(after);
        return mu_error_set(ret_error, rv, "no memory to compare two clusters");
    }
    if (taking.changes.refused_count > 0)
        rv = mu__changes_take(after, &taking.changes, ret_error, &taken);
    if (rv != 0) {
        mu__changes_done(&taking.changes);
        mu_cluster_free(after);
        return rv;
    }
    member->cluster = taken;
    member->taking = taking;
    return 0;
}

/* Takes `after`, whatever is returned. */
static int apply_cluster(struct mu__member *member, mu_cluster *after,
                         mu_error *ret_error)
{
    int rv = begin_taking(member, after, ret_error);
    int refused;

    if (rv != 0)
        return rv;
    refused = log_refused_changes(member, &member->taking.changes, ret_error);
    rv = take_some(member, CHANGES_A_TURN, ret_error);
    return rv != 0 ? rv : refused;
}

static int take_awaited(struct mu__member *member, mu_error *ret_error)
{
    mu_cluster *after = member->awaited;

    member->awaited = NULL;
    return apply_cluster(member, after, ret_error);
}

/* Mailboxes are bounded: the messages of the last changes are handled first, but a node
 * that is always busy does not put the next ones off for ever. */
static bool is_time(const struct mu__member *member, uint64_t now_ms)
{
    struct mu__kernel_counters counters;

    mu__kernel_counters(member->kernel, &counters);
    return counters.queued < MU__TURN_MESSAGES ||
           now_ms >= member->taking.took_ms + BUSY_MS;
}

void mu__member_take_changes(struct mu__member *member)
{
    uint64_t now_ms = member->world->ops->now_ms(member->world);
    mu_error error;
    int rv;

    if (!is_taking(member) && member->awaited == NULL)
        return;
    if (now_ms < member->taking.retry_ms || !is_time(member, now_ms))
        return; /* a tick of the links, or the mail that is left, wants a turn */
    rv = is_taking(member) ? take_some(member, CHANGES_A_TURN, &error)
                           : take_awaited(member, &error);
    if (rv != 0 && rv != -MU_EPRECONDITION)
        member->world->ops->log(member->world, MU__LOG_ERROR, "cluster", error.message);
}

int mu__member_set_cluster(struct mu__member *member, const mu_cluster *cluster,
                           mu_error *ret_error)
{
    mu_cluster *after;
    int rv = mu__cluster_check(cluster, ret_error);

    if (rv != 0)
        return rv;
    after = mu_cluster_copy(cluster);
    if (after == NULL)
        return mu_error_set(ret_error, -MU_ENOMEM, "no memory for a cluster");
    if (!is_taking(member) && member->awaited == NULL)
        return apply_cluster(member, after, ret_error);
    mu_cluster_free(member->awaited);
    member->awaited = after;
    return 0;
}
