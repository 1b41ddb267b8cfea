#include "tests/sim/swarm/swarm.h"

#include <stdio.h>
#include <stdlib.h>

enum { TOGETHER_MS = 1000 }; /* for so long programs come to the same barrier */

const char *const swarm_barrier_names[NAMES] = {"all", "some", "few", "few/again"};

/* ---- Visits ---- */

/* What a wrong arrival is told itself: which generation is next it may hear with it, and
 * nothing of one that is over. */
static bool is_wrong_arrival(const struct cluster_call *call)
{
    char task[64];

    (void)snprintf(task, sizeof task, "/job:%s/task:%" PRIu32, call->task->type,
                   call->task->index);
    return strcmp(call->of.call.error.task, task) == 0 &&
           (has_words(call, " is too ") || call->of.call.code == -MU_EINVALID);
}

/* Called in the actor, when the generation that was passed can still be seen. */
static void thread_ended(struct mu__call *done)
{
    struct cluster_call *call = (struct cluster_call *)(void *)done;
    struct swarm_program *program = swarm_call_ended(call);
    struct swarm *run = program->run;
    const struct agent *a;
    const struct mu__agent_barrier *barrier;
    struct swarm_visit *visit;

    if (done->code == -MU_ECLOSED || call->life != program->life)
        return;
    a = agent_of(program);
    barrier = (const void *)mu__text_map_find(&a->barriers.by_name,
                                              mu__view_str(call->of.agent.name));
    visit = &run->visits[program->visit];
    if (barrier == NULL || barrier->generation == 0 || visit->has_outcome ||
        is_wrong_arrival(call))
        return;
    if (done->code != 0 && barrier->generation != visit->generation + 1 &&
        (barrier->generation == visit->generation || has_words(call, "again")))
        return;
    visit->has_outcome = true;
    visit->generation = barrier->generation - 1;
    visit->code = done->code;
    visit->store = a->registration.store;
    visit->end_ms = now_ms(run);
    program->store = a->registration.store;
    swarm_note_use(program);
}

static void come(struct swarm_program *program, unsigned thread)
{
    struct swarm *run = program->run;
    unsigned name = run->visits[program->visit].name;
    struct cluster_call *call = cluster_agent(
        program->task, CALL(CALL_OF(MU__AGENT_BARRIER, program->meeting_ms),
                            .name = swarm_barrier_names[name], .tasks = run->sets[name],
                            .threads = run->threads[name], .user = run));

    call->of.call.complete = thread_ended;
    program->threads[thread] = call;
}

/* Most come to the same one at a time: others are seldom passed. */
static unsigned draw_barrier(struct swarm_program *program)
{
    if (sim_chance(&program->random, 90))
        return (unsigned)(now_ms(program->run) / TOGETHER_MS % NAMES);
    return (unsigned)draw(program, 0, NAMES - 1);
}

void swarm_meet(struct swarm_program *program)
{
    struct swarm *run = program->run;
    unsigned name = draw_barrier(program);
    const struct mu__agent_barrier *barrier;
    struct swarm_visit *visit;

    while (program->meeting > 0 && program->threads[0] != NULL) {
        come(program,
             run->threads[run->visits[program->visit].name] - program->meeting--);
        return;
    }
    for (unsigned i = 0; i < THREADS_MAX; i++)
        if (program->threads[i] != NULL)
            return;
    if (!run->takes_part[name][program->number])
        return;
    run->visits = swarm_grown(run->visits, run->visits_count, &run->visits_capacity,
                              sizeof *run->visits);
    program->visit = run->visits_count++;
    visit = &run->visits[program->visit];
    barrier = (const void *)mu__text_map_find(&agent_of(program)->barriers.by_name,
                                              mu__view_str(swarm_barrier_names[name]));
    *visit = (struct swarm_visit){
        .name = name,
        .task = program->plays,
        .by = program->number,
        .life = program->life,
        .life_ms = program->life_ms,
        .begin_ms = now_ms(run),
        .generation = barrier == NULL ? 0 : barrier->generation,
    };
    program->meeting_ms = (int64_t)draw(program, 300, 8000);
    program->meeting = run->threads[name] - 1;
    come(program, 0);
}

void swarm_end_visit(struct swarm_program *program)
{
    struct swarm_visit *visit = &program->run->visits[program->visit];

    for (unsigned i = 0; i < THREADS_MAX; i++)
        if (program->threads[i] != NULL)
            return;
    program->meeting = 0;
    visit->end_ms = now_ms(program->run);
    program->run->reached[visit->has_outcome && visit->code == 0 ? PASSED : FAILED]++;
}

/* ---- Generations ---- */

/* Whether a task may have been there when the generation was passed: one visit stands
 * for one generation. */
static bool had_arrived(struct swarm *run, const struct swarm_visit *passed,
                        unsigned task)
{
    for (size_t i = 0; i < run->visits_count; i++) {
        struct swarm_visit *visit = &run->visits[i];

        if (visit->task != task || visit->name != passed->name ||
            visit->begin_ms > passed->end_ms)
            continue;
        if (visit->has_outcome && visit->store == passed->store &&
            visit->generation == passed->generation)
            return true;
    }
    for (size_t i = 0; i < run->visits_count; i++) {
        struct swarm_visit *visit = &run->visits[i];

        if (visit->task != task || visit->name != passed->name || visit->has_outcome ||
            visit->used || visit->begin_ms > passed->end_ms)
            continue;
        visit->used = true;
        return true;
    }
    return false;
}

/* Of all, those that come and go may have been away. */
static bool must_arrive(const struct swarm *run, unsigned name, unsigned task)
{
    const struct swarm_program *program = &run->programs[task];

    return run->takes_part[name][task] && program->plays == task &&
           (name > 0 || !is_changing(program));
}

static void check_passed(struct swarm *run, const struct swarm_visit *visit)
{
    for (unsigned task = 0; task < run->programs_count; task++)
        if (must_arrive(run, visit->name, task) && !had_arrived(run, visit, task))
            cluster_break(run->cluster,
                          "barrier %s, generation %" PRIu64 " was passed "
                          "by %s at %" PRIu64 " ms, and %s had not come",
                          swarm_barrier_names[visit->name], visit->generation,
                          run->programs[visit->task].task->name, visit->end_ms,
                          run->programs[task].task->name);
}

/* Who has gone through a generation does not go through it again; but its next life may,
 * which does not know what the former one has heard. */
static void check_again(struct swarm *run, const struct swarm_visit *visit)
{
    for (size_t i = 0; i < run->visits_count; i++) {
        const struct swarm_visit *other = &run->visits[i];

        if (other != visit && other->has_outcome && other->name == visit->name &&
            other->by == visit->by && other->life == visit->life &&
            other->store == visit->store && other->generation == visit->generation)
            cluster_break(run->cluster,
                          "barrier %s, generation %" PRIu64 ": %s goes "
                          "through it at %" PRIu64 " and at %" PRIu64 " ms",
                          swarm_barrier_names[visit->name], visit->generation,
                          run->programs[visit->task].task->name, other->end_ms,
                          visit->end_ms);
    }
}

/* Whether somebody was told that outcome while the process lived: then it is one of its
 * time. */
static bool was_told(const struct swarm *run, const struct swarm_visit *visit)
{
    for (size_t i = 0; i < run->visits_count; i++) {
        const struct swarm_visit *other = &run->visits[i];

        if (other != visit && other->has_outcome && other->name == visit->name &&
            other->store == visit->store && other->generation == visit->generation &&
            other->end_ms >= visit->life_ms && other->end_ms <= visit->end_ms)
            return true;
    }
    return false;
}

/* What was passed before a process began is not passed by it; but the last generation is,
 * which a former life may have come to. */
static void check_former(struct swarm *run, const struct swarm_visit *visit,
                         const struct swarm_visit *first)
{
    if (visit->code != 0 || first->end_ms >= visit->life_ms || was_told(run, visit))
        return;
    for (size_t i = 0; i < run->visits_count; i++) {
        const struct swarm_visit *other = &run->visits[i];

        if (other->has_outcome && other->name == visit->name &&
            other->store == visit->store && other->generation > visit->generation &&
            other->end_ms < visit->begin_ms)
            cluster_break(run->cluster,
                          "barrier %s, generation %" PRIu64 ", passed at %" PRIu64
                          " ms and not the last, is passed at %" PRIu64
                          " ms by %s, which began at %" PRIu64 " ms",
                          swarm_barrier_names[visit->name], visit->generation,
                          first->end_ms, visit->end_ms,
                          run->programs[visit->task].task->name, visit->life_ms);
    }
}

static const struct swarm_visit *first_of(const struct swarm *run,
                                          const struct swarm_visit *of)
{
    const struct swarm_visit *first = NULL;

    for (size_t i = 0; i < run->visits_count; i++) {
        const struct swarm_visit *visit = &run->visits[i];

        if (visit->has_outcome && visit->name == of->name && visit->store == of->store &&
            visit->generation == of->generation &&
            (first == NULL || visit->end_ms < first->end_ms))
            first = visit;
    }
    return first;
}

/* Where generations are passed in the order of time, what may have arrived is given to
 * them in that order, too. */
static int compare_visits(const void *a, const void *b)
{
    const struct swarm_visit *left = a;
    const struct swarm_visit *right = b;

    if (left->end_ms != right->end_ms)
        return left->end_ms < right->end_ms ? -1 : 1;
    return left->begin_ms < right->begin_ms ? -1 : left->begin_ms > right->begin_ms;
}

void swarm_check_barriers(struct swarm *run)
{
    if (run->visits_count == 0)
        return;
    qsort(run->visits, run->visits_count, sizeof *run->visits, compare_visits);
    for (size_t i = 0; i < run->visits_count; i++) {
        const struct swarm_visit *visit = &run->visits[i];
        const struct swarm_visit *first =
            visit->has_outcome ? first_of(run, visit) : NULL;

        if (first != NULL && first->code != visit->code)
            cluster_break(run->cluster,
                          "barrier %s, generation %" PRIu64 ": %s got %s "
                          "at %" PRIu64 " ms, %s got %s at %" PRIu64 " ms",
                          swarm_barrier_names[visit->name], visit->generation,
                          run->programs[first->task].task->name, mu_err_name(first->code),
                          first->end_ms, run->programs[visit->task].task->name,
                          mu_err_name(visit->code), visit->end_ms);
        if (first != NULL) {
            check_again(run, visit);
            check_former(run, visit, first);
        }
        if (first == visit && visit->code == 0)
            check_passed(run, visit);
    }
}
