#include "tests/sim/mending.h"

enum { PAUSE_MIN_MS = 100, PAUSE_MAX_MS = 1200, ROOM_BYTES = 1500 };

static bool is_over(const struct cluster_mending *m)
{
    return sim_now_ms(m->cluster->sim) >= m->until_ms;
}

/* Once it has been refused: before that nobody knows. */
static void mend(struct cluster_mending *m)
{
    if (!sim_storage_is_hurt(m->storage) ||
        (m->task->refused == m->refused && !is_over(m)))
        return;
    m->refused = m->task->refused;
    sim_note(m->cluster->sim, MU__LOG_WARN, "%s is mended", m->storage->base.name);
    if (!sim_storage_mend(m->storage))
        cluster_break(m->cluster, "%s was damaged, and has been changed",
                      m->storage->base.name);
    sim_storage_limit(m->storage, 0);
    if (sim_restart(m->task->node) != 0)
        cluster_break(m->cluster, "%s does not start over the mended file",
                      m->task->name);
}

/* A chief that could not start for that is started again. */
static void make_room(struct cluster_mending *m)
{
    sim_storage_limit(m->storage, 0);
    if (m->task->refused_tight != m->refused_tight && !sim_alive(m->task->node) &&
        !sim_storage_is_hurt(m->storage))
        cluster_start(m->task);
    m->refused_tight = m->task->refused_tight;
}

static void change_room(struct cluster_mending *m)
{
    if (sim_storage_is_limited(m->storage)) {
        if (is_over(m) || sim_chance(&m->random, 50))
            make_room(m);
    } else if (m->tight && !is_over(m) && sim_chance(&m->random, 20)) {
        m->tight_count++;
        sim_note(m->cluster->sim, MU__LOG_WARN, "%s has no room", m->storage->base.name);
        sim_storage_limit(m->storage,
                          m->storage->size + sim_between(&m->random, 1, ROOM_BYTES));
    }
}

static void look_after(struct sim *sim, void *arg)
{
    struct cluster_mending *m = arg;
    uint64_t next_ms =
        sim_now_ms(sim) + sim_between(&m->random, PAUSE_MIN_MS, PAUSE_MAX_MS);

    if (is_over(m))
        sim_storage_hurt(m->storage, 0);
    mend(m);
    change_room(m);
    if (!is_over(m))
        sim_at(sim, next_ms < m->until_ms ? next_ms : m->until_ms, look_after, m);
}

void cluster_mending_begin(struct cluster_mending *m)
{
    sim_storage_hurt(m->storage, m->hurt_percent);
    look_after(m->cluster->sim, m);
}
