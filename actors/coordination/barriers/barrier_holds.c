/* What a former host was passed by, and processes that began later.
 *
 * Of a job whose processes die one after another, each may have been told an outcome, and
 * may have noted so in keys or elsewhere: it never comes to that barrier again, and who
 * was killed before it could note it must be told the same, or stands there alone. Of a
 * job that was killed as a whole, and whose programs begin anew, nobody must pass what
 * its others have not come to. The store is the same in both, and so is the first that
 * comes. So a success of a former host is told to a process that began later
 *   - at once, if one of that host's time is here, or comes back: it has gone on;
 *   - else as soon as all have come: they have met again;
 *   - or it shows that they will not all come: one who is missing waits for one who is
 *     here at a barrier that was not passed before this one; or has ended, or has left,
 *     and if it was a former host that it left, is not back after HELD_LEFT_MS; or
 *     HELD_HERE_MS are over since all that are missing registered;
 *   - at the latest when its timeout is over.
 * It is the same outcome in each case: what was told once is never told otherwise. A
 * failure is told at once. Whom an outcome was told is one of its time from then on, at
 * later hosts, too: it is stored again, with a new revision, before it is sent.
 *
 * Who has left has a key until it registers again: its host may be another one then. */
#include "actors/coordination/barriers/barrier_requests.h"
#include "actors/coordination/job_runs.h"
#include "actors/coordination/keys/keys.h"
#include "actors/coordination/tasks.h"

#include <inttypes.h>
#include <stdio.h>

enum {
    HELD_HERE_MS = 5 * 60 * 1000,
    HELD_LEFT_MS = 30 * 1000,
    HELD_SETTLE_MS = 1000 /* before who waits for whom counts */
};

static bool is_of_the_time(const struct mu__barrier *barrier,
                           const struct mu__roster_task *task)
{
    return mu__coord_task_is_connected(task) &&
           task->since <= barrier->outcomes->revision;
}

bool mu__coord_barrier_holds(const struct coordination *c,
                             const struct mu__barrier_arrival *arrival,
                             const struct mu__task_set *set)
{
    const struct mu__barriers *table = &c->barriers->table;
    const struct mu__barrier *barrier =
        c->barriers->has_former ? mu__barriers_find(table, arrival->name) : NULL;

    if (barrier == NULL || !mu__barrier_is_late(table, barrier, arrival))
        return false;
    for (uint32_t i = 0; i < c->roster->count; i++) {
        const struct mu__roster_task *task = c->roster->tasks[i];

        if (is_of_the_time(barrier, task) &&
            mu__task_set_has(set, task->type, task->index))
            return false;
    }
    return true;
}

/* ---- who comes back, and who has left ---- */

static void left_key(const struct coordination *c, const struct mu__roster_task *task,
                     char out[MU__RUN_KEY_MAX])
{
    size_t used = mu__coord_run_key(c, "left/", out);

    (void)snprintf(out + used, MU__RUN_KEY_MAX - used, "%s:%" PRIu32, task->type,
                   task->index);
}

static bool is_leave_recorded(struct coordination *c, const struct mu__roster_task *task)
{
    struct mu__key_value entry;
    char key[MU__RUN_KEY_MAX];

    left_key(c, task, key);
    return mu__coord_keys_get_own(c, key, &entry);
}

void mu__coord_barriers_registered(struct mu__ctx *ctx, struct coordination *c,
                                   const struct mu__roster_task *task)
{
    struct mu__barrier *next;
    char key[MU__RUN_KEY_MAX];

    if (!c->config.store->lasting)
        return;
    if (is_leave_recorded(c, task)) {
        left_key(c, task, key);
        (void)mu__coord_keys_delete_own(ctx, c, key);
    }
    for (struct mu__barrier *at = mu__barrier_first(&c->barriers->table.running);
         at != NULL; at = next) {
        next = mu__barrier_next(at);
        if (at->held && mu__barrier_seat(at, task->slot) != NULL &&
            is_of_the_time(at, task))
            (void)mu__coord_barrier_finish(ctx, c, at, NULL);
    }
}

void mu__coord_barriers_left(struct mu__ctx *ctx, struct coordination *c,
                             const struct mu__roster_task *task)
{
    struct coord_barriers *barriers = c->barriers;
    char key[MU__RUN_KEY_MAX];

    if (!c->config.store->lasting || !task->coordinated)
        return;
    mu__coord_barrier_read_outcomes(ctx, c);
    if (barriers->table.over.count + barriers->table.running.count == 0)
        return;
    left_key(c, task, key);
    (void)mu__coord_keys_put_quietly(ctx, c, key, "", 0);
}

/* ---- what shows that not all will come ---- */

static bool has_participant_ended(struct coordination *c,
                                  const struct mu__roster_task *task, uint64_t now_ms)
{
    if (mu__coord_task_is_connected(task))
        return false;
    return task->failure.ended != NULL || task->left ||
           (now_ms - c->barriers->read_ms >= HELD_LEFT_MS && is_leave_recorded(c, task));
}

/* Whether one who is missing at what is held waits elsewhere for one who is there, at
 * what was not passed before it. */
static bool waits_at_other_barrier(const struct mu__barrier *held,
                                   const struct mu__barrier *other)
{
    bool waits = false;
    bool is_missed = false;

    if (other == held ||
        (other->held && other->outcomes->revision < held->outcomes->revision))
        return false;
    for (uint32_t i = 0; i < other->seats_count; i++) {
        const struct mu__barrier_seat *there = &other->seats[i];
        const struct mu__barrier_seat *here = mu__barrier_seat(held, there->slot);

        if (here == NULL || (there->past & 1) == 0)
            continue;
        waits = waits || (there->arrived && !here->arrived);
        is_missed = is_missed || (!there->arrived && here->arrived);
    }
    return waits && is_missed;
}

static bool is_waited_for_anywhere(const struct coordination *c,
                                   const struct mu__barrier *held, uint32_t *looks)
{
    for (const struct mu__barrier *at = mu__barrier_first(&c->barriers->table.running);
         at != NULL && *looks > at->seats_count; at = mu__barrier_next(at)) {
        *looks -= at->seats_count + 1;
        if (waits_at_other_barrier(held, at))
            return true;
    }
    return false;
}

bool mu__coord_barrier_hold_is_over(struct coordination *c, struct mu__barrier *barrier,
                                    uint64_t now_ms, uint32_t *looks)
{
    bool all_are_here = true;

    for (uint32_t i = 0; i < barrier->seats_count; i++) {
        const struct mu__barrier_seat *seat = &barrier->seats[i];
        const struct mu__roster_task *task = c->roster->tasks[seat->slot];

        if ((seat->past & 1) == 0 || seat->arrived)
            continue;
        if (has_participant_ended(c, task, now_ms))
            return true;
        all_are_here = all_are_here && mu__coord_task_is_connected(task);
    }
    if (!all_are_here)
        barrier->here_ms = 0;
    else if (barrier->here_ms == 0)
        barrier->here_ms = now_ms;
    if (all_are_here && now_ms - barrier->here_ms >= HELD_HERE_MS)
        return true;
    return now_ms - barrier->since_ms >= HELD_SETTLE_MS &&
           is_waited_for_anywhere(c, barrier, looks);
}
