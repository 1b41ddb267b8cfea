#include "tests/sim/swarm/swarm.h"

#include "actors/coordination/internal.h"
#include "actors/coordination/preemption.h"

enum { LATE_MS = 2500 }; /* after a limit: the service may say what is missing */

/* Until a message within a node is heard, when that does not stand still. */
#ifdef MUSTER_TINY
enum { HEARS_MS = 3000 }; /* turns are short */
#else
enum { HEARS_MS = 100 };
#endif

static bool is_due(const struct swarm_program *program, const struct cluster_call *call,
                   uint64_t begin_ms)
{
    int64_t timeout_ms =
        call->of.call.timeout_ms < 0 ? AGENT_ROUND_MS : call->of.call.timeout_ms;
    uint64_t from_ms = begin_ms > program->paused_ms ? begin_ms : program->paused_ms;

    return now_ms(program->run) > from_ms + (uint64_t)timeout_ms + LATE_MS;
}

/* Whether a call has ended. `done_ms` has been its begin until then. */
static bool has_ended(struct swarm_program *program, struct cluster_call *call)
{
    struct swarm *run = program->run;

    if (call == NULL)
        return false;
    if (!call->done) {
        if (call->done_ms == 0)
            call->done_ms = now_ms(run);
        if (is_due(program, call, call->done_ms))
            cluster_break(run->cluster,
                          "%s: a call (%d) has no answer after %" PRIu64
                          " ms, its limit is %" PRId64,
                          program->task->name, call->of.call.operation,
                          now_ms(run) - call->done_ms, call->of.call.timeout_ms);
        return false;
    }
    if (call->of.call.code != 0 && call->of.call.code != -MU_ECLOSED &&
        (call->of.call.error.code != call->of.call.code ||
         call->of.call.error.message[0] == '\0'))
        cluster_break(run->cluster, "%s: a call (%d) fails without words: %s",
                      program->task->name, call->of.call.operation,
                      mu_strerror(call->of.call.code));
    return true;
}

static void look_at_calls(struct swarm_program *program)
{
    bool was_meeting = false;

    for (unsigned i = 0; i < OPEN_MAX; i++) {
        if (!has_ended(program, program->keys[i]))
            continue;
        if (program->is_lease[i])
            swarm_end_lease(program, i);
        else
            swarm_end_key(program, i);
        program->keys[i] = NULL;
    }
    for (unsigned i = 0; i < THREADS_MAX; i++) {
        if (!has_ended(program, program->threads[i]))
            continue;
        program->threads[i] = NULL;
        was_meeting = true;
    }
    if (was_meeting)
        swarm_end_visit(program);
    if (has_ended(program, program->listing))
        swarm_end_list(program);
    if (has_ended(program, program->lock.call))
        swarm_end_lock(program);
    if (has_ended(program, program->request))
        swarm_end_request(program);
    if (has_ended(program, program->reaching))
        swarm_end_reaching(program);
    if (has_ended(program, program->opening))
        swarm_end_opening(program);
    if (has_ended(program, program->next))
        swarm_end_next(program);
}

/* Leases end, and what was used is not relied on, when the program is told. */
static void look_at_state(struct swarm_program *program)
{
    const struct agent *a = agent_of(program);
    int state = atomic_load(&program->task->member.agent.state);

    if (a->error.code != 0 || !a->registration.is_requested) {
        program->used = 0;
        program->asked_session = 0;
        swarm_doubt_leases(program);
    }
    if (state == MU_AGENT_ERROR && program->state != MU_AGENT_ERROR)
        program->run->reached[ERRORS]++;
    program->state = state;
}

static void note_leader(struct swarm *run, const struct cluster_task *task,
                        const struct coordination *c)
{
    struct swarm_leader *last =
        run->leaders_count == 0 ? NULL : &run->leaders[run->leaders_count - 1];
    unsigned life = sim_lives(task->node);

    for (size_t i = run->leaders_count; i > 0; i--) {
        const struct swarm_leader *leader = &run->leaders[i - 1];

        if (leader->epoch != c->epoch || leader->store != c->number)
            continue;
        if (leader->task != task || leader->life != life)
            cluster_break(run->cluster, "%s and %s lead in epoch %" PRIu64,
                          leader->task->name, task->name, c->epoch);
        return;
    }
    if (last != NULL && last->store == c->number && c->epoch < last->epoch)
        cluster_break(run->cluster, "%s leads in epoch %" PRIu64 " after %" PRIu64,
                      task->name, c->epoch, last->epoch);
    if (last != NULL && last->store != c->number) {
        run->reached[STORES_LOST]++;
        if (run->plan.store->lasting)
            cluster_break(run->cluster, "a store that lasts is another one at %s",
                          task->name);
    }
    run->leaders = swarm_grown(run->leaders, run->leaders_count, &run->leaders_capacity,
                               sizeof *run->leaders);
    run->leaders[run->leaders_count++] =
        (struct swarm_leader){c->epoch, c->number, task, life, now_ms(run)};
    run->reached[LEADERS]++;
}

/* Whether another process may have its task for a while. */
static bool may_be_another(const struct swarm_program *program)
{
    return is_changing(program) || program->run->plan.twins > 0;
}

/* A leader that takes a task for dead ends its leases, also if it was not. */
static void look_at_roster(struct swarm *run, const struct coordination *c)
{
    const struct swarm_leader *leader = &run->leaders[run->leaders_count - 1];
    bool counts_all = now_ms(run) >= leader->since_ms + c->config.dead_ms / 2;

    for (unsigned i = 0; i < run->programs_count; i++) {
        struct swarm_program *program = &run->programs[i];
        const struct mu__roster_task *task =
            mu__roster_find(c->roster, program->task->type, program->task->index);

        if (task != NULL && task->state == MU__TASK_CONNECTED &&
            (!may_be_another(program) || program->life == 0 ||
             task->incarnation == program->task->member.incarnation))
            continue;
        if (may_be_another(program))
            swarm_doubt_leases(program);
        if ((task != NULL && task->state == MU__TASK_FAILED) || counts_all)
            swarm_doubt_leases(program);
    }
}

/* Whom this life of a leader has removed, and has not added since. */
static void look_at_removed(struct swarm_program *host, const struct coordination *c)
{
    struct swarm *run = host->run;

    for (unsigned i = FIXED; i < run->cluster->options.workers; i++) {
        const struct swarm_removal *removal = &run->removals[host->number][i];
        const struct mu__roster_task *task = mu__roster_find(c->roster, "worker", i);
        uint64_t from_ms =
            removal->learned_ms > host->paused_ms ? removal->learned_ms : host->paused_ms;

        if (removal->life != host->life || now_ms(run) < from_ms + HEARS_MS)
            continue;
        if (task != NULL && (task->coordinated || task->state == MU__TASK_CONNECTED))
            cluster_break(run->cluster,
                          "%s, which %s has removed at %" PRIu64 " ms, is %s", task->name,
                          host->task->name, removal->learned_ms,
                          task->coordinated ? "waited for" : "registered");
    }
}

/* What a host does counts also while nothing of its own program has begun. */
static void look_at_host(struct swarm_program *program)
{
    struct swarm *run = program->run;
    struct cluster_task *task = program->task;
    const struct coordination *c;
    uint64_t round;

    if (!program->is_host || !task->runs)
        return;
    c = mu__actor_state(task->member.kernel, (mu__pid){0, MU__COORDINATION});
    if (c == NULL || !c->leads)
        return;
    if (mu__coord_preempt_agreed(c, &round))
        (void)swarm_note_round(run, c->number, round);
    if (!sim_alive(task->node))
        return;
    note_leader(run, task, c);
    swarm_look_at_run(run, c);
    if (run->plan.leases)
        look_at_roster(run, c);
}

static void look_at_program(struct swarm_program *program)
{
    struct cluster_task *task = program->task;
    const struct coordination *c;

    look_at_host(program);
    if (program->life == 0)
        return;
    if (task->node->paused)
        program->paused_ms = now_ms(program->run);
    if (!runs(program)) {
        swarm_forget_process(program);
        return;
    }
    if (agent_of(program)->registration.store != 0)
        program->store = agent_of(program)->registration.store;
    look_at_calls(program);
    look_at_state(program);
    swarm_check_gate(program);
    if (!program->is_host)
        return;
    c = mu__actor_state(task->member.kernel, (mu__pid){0, MU__COORDINATION});
    if (c->leads && program->run->plan.changes)
        look_at_removed(program, c);
}

/* Of those that lead the one of the last epoch: others do not know it yet. */
static const struct coordination *last_leader(const struct swarm *run)
{
    const struct coordination *last = NULL;

    for (unsigned i = 0; i < run->programs_count; i++) {
        const struct swarm_program *program = &run->programs[i];
        const struct coordination *c;

        if (!program->is_host || !program->task->runs || !sim_alive(program->task->node))
            continue;
        c = mu__actor_state(program->task->member.kernel, (mu__pid){0, MU__COORDINATION});
        if (c->leads && (last == NULL || c->epoch > last->epoch))
            last = c;
    }
    return last;
}

void swarm_look(struct sim *sim, void *arg)
{
    struct swarm *run = arg;
    const struct coordination *c;

    cluster_check_event(sim, run->cluster);
    for (unsigned i = 0; i < run->programs_count && !is_broken(run); i++)
        look_at_program(&run->programs[i]);
    c = run->plan.locks ? last_leader(run) : NULL;
    if (c != NULL)
        swarm_look_at_locks(run, c);
}
