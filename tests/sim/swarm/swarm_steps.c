#include "tests/sim/swarm/swarm.h"

struct swarm_round *swarm_note_round(struct swarm *run, uint64_t store, uint64_t number)
{
    struct swarm_round *round;

    for (size_t i = 0; i < run->rounds_count; i++)
        if (run->rounds[i].store == store && run->rounds[i].number == number)
            return &run->rounds[i];
    run->rounds = swarm_grown(run->rounds, run->rounds_count, &run->rounds_capacity,
                              sizeof *run->rounds);
    round = &run->rounds[run->rounds_count++];
    *round =
        (struct swarm_round){.store = store, .number = number, .agreed_ms = now_ms(run)};
    run->reached[ROUNDS]++;
    return round;
}

/* The one that the agent has heard of last, whose step is agreed on. */
static struct swarm_round *round_of(struct swarm_program *program)
{
    const struct agent *a = agent_of(program);
    struct swarm_round *round =
        swarm_note_round(program->run, a->preemption.store, a->preemption.number);

    if (!round->has_step)
        round->step = a->preemption.last.step;
    round->has_step = true;
    return round;
}

static void note_stop(struct swarm_program *program, uint64_t step)
{
    const struct swarm_round *round = round_of(program);

    program->run->reached[STOPPED]++;
    if (round->step != step)
        cluster_break(program->run->cluster,
                      "%s stops at step %" PRIu64 ", others at %" PRIu64
                      " in round %" PRIu64,
                      program->task->name, step, round->step, round->number);
}

/* As mu_preemption_reached does it. */
void swarm_reach(struct swarm_program *program)
{
    struct mu__agent_shared *shared = &program->task->member.agent;
    uint64_t step = program->step++;
    int gate;

    atomic_store(&shared->step, step + 1);
    gate = atomic_load(&shared->gate);
    if (atomic_load(&shared->state) != MU_AGENT_ERROR && gate != MU__GATE_REQUESTED) {
        if (gate == MU__GATE_AGREED && atomic_load(&shared->stop) == step)
            note_stop(program, step);
        return;
    }
    program->reaching = cluster_agent(program->task, CALL(CALL_OF(MU__AGENT_REACHED, -1),
                                                          .version = step));
}

void swarm_end_reaching(struct swarm_program *program)
{
    struct cluster_call *call = program->reaching;

    program->reaching = NULL;
    if (call->of.call.code == 0 && call->of.agent.number != 0 &&
        agent_of(program)->preemption.last.agreed != 0)
        note_stop(program, call->of.agent.version);
}

void swarm_check_gate(struct swarm_program *program)
{
    const struct agent *a = agent_of(program);
    uint64_t step = atomic_load(&program->task->member.agent.step);
    const struct swarm_round *round;

    if (a->preemption.rounds != program->asked) {
        program->asked = a->preemption.rounds;
        program->asked_session = a->registration.session;
        program->asked_ms = now_ms(program->run);
    }
    if (a->preemption.last.agreed == 0 || a->preemption.rounds == program->rounds)
        return;
    program->rounds = a->preemption.rounds;
    round = round_of(program);
    if (round->step != a->preemption.last.step)
        cluster_break(program->run->cluster,
                      "%s is to stop at step %" PRIu64 ", others "
                      "at %" PRIu64 " in round %" PRIu64,
                      program->task->name, a->preemption.last.step, round->step,
                      round->number);
    if (a->preemption.vote.counts && step > round->step + 1 &&
        program->asked_session == a->registration.session &&
        program->asked_ms < round->agreed_ms)
        cluster_break(program->run->cluster,
                      "%s is to stop at step %" PRIu64 ", and has "
                      "reached %" PRIu64 ", in round %" PRIu64 " of which it was asked "
                      "at %" PRIu64 " ms, agreed at %" PRIu64 " ms",
                      program->task->name, round->step, step - 1, round->number,
                      program->asked_ms, round->agreed_ms);
}
