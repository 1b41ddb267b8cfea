#include "resolver/spec/changes.h"

#include "resolver/spec/cluster.h"

#include <stdlib.h>
#include <string.h>

/* Changes that a running job cannot take. A server may have what no other one has, and
 * closures are the chief's. */
static const struct {
    enum mu__change_kind kind;
    const char *type;
    const char *words;
} refusals[] = {
    {MU__CHANGE_ADDED, "chief",
     "a chief that comes changes what the job is: the job has begun without one"},
    {MU__CHANGE_REMOVED, "chief",
     "the chief has the closures: a job ends with it, or it moves"},
    {MU__CHANGE_REMOVED, "ps",
     "it may have what no other parameter server has: once it was drained, its process "
     "may end"},
};

/* Without a chief worker 0 plays its part. */
static bool is_leading_worker(const mu_cluster *cluster, const char *type, int index)
{
    return strcmp(type, "worker") == 0 && index == 0 &&
           mu_cluster_address(cluster, "chief", 0) == NULL;
}

static const char *get_refusal(const mu_cluster *before, const struct mu__change *change)
{
    for (size_t i = 0; i < sizeof refusals / sizeof refusals[0]; i++)
        if (refusals[i].kind == change->kind &&
            strcmp(refusals[i].type, change->type) == 0)
            return refusals[i].words;
    if (change->kind == MU__CHANGE_ADDED && strcmp(change->type, "ps") == 0 &&
        mu_cluster_task_count(before, "ps") == 0)
        return "the job has begun without parameter servers";
    if (change->kind == MU__CHANGE_REMOVED &&
        is_leading_worker(before, change->type, change->index))
        return "there is no chief, so worker 0 ends the job: it stays, or moves";
    return NULL;
}

/* One side of the comparison: the next task of a spec. */
struct side {
    const mu_cluster *cluster;
    size_t at;
    bool at_end;
    const char *type;
    int index;
    const char *address;
};

static void read_side(struct side *side)
{
    side->at_end = mu_cluster_task_at(side->cluster, side->at, &side->type, &side->index,
                                      &side->address) != 0;
}

static void step_side(struct side *side)
{
    side->at++;
    read_side(side);
}

/* The side that has the next task in the order of both: below 0 the first, above 0 the
 * second, 0 both. */
static int compare_sides(const struct side *one, const struct side *two)
{
    int order;

    if (one->at_end || two->at_end)
        return (int)one->at_end - (int)two->at_end;
    order = strcmp(one->type, two->type);
    return order != 0 ? order : (one->index > two->index) - (one->index < two->index);
}

static void note_change(struct mu__changes *changes, const mu_cluster *before,
                        enum mu__change_kind kind, const struct side *side)
{
    struct mu__change *change = &changes->rows[changes->count++];

    *change = (struct mu__change){
        .kind = kind,
        .type = side->type,
        .index = side->index,
        .address = side->address,
        .url = mu_cluster_url(side->cluster, side->type, side->index),
    };
    change->refused = get_refusal(before, change);
    changes->refused_count += change->refused != NULL;
}

static bool is_moved(const struct side *before, const struct side *after)
{
    return strcmp(mu_cluster_url(before->cluster, before->type, before->index),
                  mu_cluster_url(after->cluster, after->type, after->index)) != 0;
}

int mu__changes_find(const mu_cluster *before, const mu_cluster *after,
                     struct mu__changes *ret_changes)
{
    struct side old = {.cluster = before};
    struct side new = {.cluster = after};
    struct mu__changes found = {0};
    size_t most = mu_cluster_task_count(before, NULL);

    most += mu_cluster_task_count(after, NULL);
    found.rows = calloc(most + 1, sizeof *found.rows);
    if (found.rows == NULL)
        return -MU_ENOMEM;
    read_side(&old);
    read_side(&new);
    while (!old.at_end || !new.at_end) {
        int order = compare_sides(&old, &new);

        if (order > 0)
            note_change(&found, before, MU__CHANGE_ADDED, &new);
        else if (order < 0)
            note_change(&found, before, MU__CHANGE_REMOVED, &old);
        else if (is_moved(&old, &new))
            note_change(&found, before, MU__CHANGE_MOVED, &new);
        if (order >= 0)
            step_side(&new);
        if (order <= 0)
            step_side(&old);
    }
    *ret_changes = found;
    return 0;
}

void mu__changes_done(struct mu__changes *changes)
{
    free(changes->rows);
    *changes = (struct mu__changes){0};
}

/* Rows stand in the order of the later spec, so one walk over both is enough. */
static bool is_task_accepted(const struct mu__changes *changes, const char *type,
                             int index, size_t *at)
{
    const struct mu__change *row;

    while (*at < changes->count && changes->rows[*at].kind == MU__CHANGE_REMOVED)
        ++*at;
    if (*at == changes->count)
        return true;
    row = &changes->rows[*at];
    if (row->index != index || strcmp(row->type, type) != 0)
        return true;
    ++*at;
    return row->refused == NULL;
}

static int add_later(const mu_cluster *after, const struct mu__changes *changes,
                     mu_error *ret_error, mu_cluster *cluster)
{
    const char *type;
    const char *address;
    int index;
    size_t at = 0;
    int rv = 0;

    for (size_t i = 0;
         rv == 0 && mu_cluster_task_at(after, i, &type, &index, &address) == 0; i++)
        if (is_task_accepted(changes, type, index, &at))
            rv = mu_cluster_add(cluster, type, index, address, ret_error);
    return rv;
}

int mu__changes_take(const mu_cluster *after, const struct mu__changes *changes,
                     mu_error *ret_error, mu_cluster **ret_cluster)
{
    mu_cluster *cluster = mu_cluster_new();
    int rv = cluster == NULL ? -MU_ENOMEM : add_later(after, changes, ret_error, cluster);

    for (size_t i = 0; rv == 0 && i < changes->count; i++) {
        const struct mu__change *row = &changes->rows[i];

        if (row->refused != NULL && row->kind == MU__CHANGE_REMOVED)
            rv = mu_cluster_add(cluster, row->type, row->index, row->address, ret_error);
    }
    if (rv != 0) {
        mu_cluster_free(cluster);
        return rv == -MU_ENOMEM ? mu_error_set(ret_error, rv, "no memory for a cluster")
                                : rv;
    }
    *ret_cluster = cluster;
    return 0;
}
