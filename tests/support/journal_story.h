/* Stories of a chief that has a journal, over its restarts. */
#ifndef MU_TESTS_JOURNAL_STORY_H
#define MU_TESTS_JOURNAL_STORY_H

#include "sim/world/storage.h"
#include "tests/support/story.h"

static inline void is_gone(struct mu__storage *base)
{
    sim_storage_crash((struct sim_storage *)base);
}

static inline struct cluster *begin_with(const struct cluster_options *options,
                                         struct sim_storage **ret_storage)
{
    struct cluster *cluster = cluster_new(1, options);

    *ret_storage = sim_storage_new("journal", 5);
    cluster->chief->journal =
        (struct cluster_journal){&(*ret_storage)->base, NULL, is_gone, NULL, NULL};
    story_settle(cluster);
    return cluster;
}

#define BEGIN_WITH(storage, ...) \
    begin_with(&(struct cluster_options){__VA_ARGS__}, storage)

static inline void end_with(struct cluster *cluster, struct sim_storage *storage)
{
    end(cluster);
    sim_storage_free(storage);
}

/* A closure of that name and key. */
static inline struct cluster_closure *named(struct cluster_task *task, const char *name,
                                            int64_t key)
{
    return cluster_schedule_with(task, "square", ASK(.name = name, .key = &key));
}

static inline void restart_chief(struct cluster *cluster)
{
    assert_int_equal(sim_restart(cluster->chief->node), 0);
    run_for(cluster, 500);
}

#endif
