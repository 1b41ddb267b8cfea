/* Faults: those that the seed draws, and those that a story tells. */
#include "sim/internal.h"

#include "sim/world/inner.h"

#include <inttypes.h>

enum { KINDS_DRAWN = (1 << SIM_FAULTS) - 1, TELLS_TIMES_SLOWER = 10 };

_Static_assert(MU_SIM_RESTART == 1 << SIM_FAULTS &&
                   MU_SIM_PAUSE == 1 << SIM_FAULT_PAUSE &&
                   MU_SIM_SLOW_LINK == 1 << SIM_FAULT_SLOW_LINK,
               "the kinds are those of the simulated world");

/* ---- Drawn ---- */

/* Those of another run, on this run's nodes. */
static void repeat_planned(mu_sim *sim, uint64_t until_ms)
{
    sim->planned = sim_alloc((sim->plan.count + 1) * sizeof sim->planned[0]);
    for (size_t i = 0; i < sim->plan.count; i++) {
        const struct sim_planned *planned = &sim->plan.faults[i];

        sim->planned[i] = planned->fault;
        sim->planned[i].a = sim->tasks[planned->a]->node;
        sim->planned[i].b = sim->tasks[planned->b]->node;
    }
    sim_chaos_repeat(sim->world, sim->planned, sim->plan.count, until_ms);
}

static void draw_faults(mu_sim *sim, unsigned kinds, uint64_t every_ms, uint64_t lasts_ms,
                        uint64_t until_ms)
{
    struct sim_chaos chaos;

    sim_chaos_draw(sim->world, &chaos);
    for (unsigned i = 0; kinds != 0 && i < SIM_FAULTS; i++)
        chaos.on[i] = (kinds >> i & 1) != 0;
    if (every_ms != 0)
        chaos.every_ms = every_ms;
    if (lasts_ms != 0)
        chaos.lasts_ms_max = lasts_ms;
    sim_chaos_start(sim->world, &chaos, until_ms);
}

int mu_sim_chaos(mu_sim *sim, unsigned kinds, uint64_t every_ms, uint64_t lasts_ms,
                 uint64_t until_ms)
{
    if (sim == NULL)
        return -MU_EINVALID;
    sim_begin_all(sim);
    if ((kinds & ~(unsigned)KINDS_DRAWN) != 0)
        mu_sim_fail(sim, "mu_sim_chaos: kinds is 0x%x, which has unknown ones", kinds);
    else if (sim->has_chaos)
        mu_sim_fail(sim, "mu_sim_chaos: it is called for the second time");
    else if (until_ms <= sim_now_ms(sim->world))
        mu_sim_fail(sim, "mu_sim_chaos: until_ms is %" PRIu64 ", and it is %" PRIu64,
                    until_ms, sim_now_ms(sim->world));
    if (sim_verdict(sim) != 0)
        return -MU_EABORTED;
    sim->has_chaos = true;
    if (sim->plan.has_faults)
        repeat_planned(sim, until_ms);
    else
        draw_faults(sim, kinds, every_ms, lasts_ms, until_ms);
    return 0;
}

int mu_sim_spare(mu_sim *sim, const char *task, unsigned kinds)
{
    struct sim_task *spared;

    if (sim == NULL)
        return -MU_EINVALID;
    spared = sim_task_find(sim, "mu_sim_spare", task);
    if ((kinds & ~(unsigned)KINDS_DRAWN) != 0)
        mu_sim_fail(sim, "mu_sim_spare: kinds is 0x%x, which has unknown ones", kinds);
    for (unsigned i = 0; spared != NULL && i < SIM_FAULTS; i++)
        if ((kinds >> i & 1) != 0)
            sim_chaos_spare(spared->node, (enum sim_fault)i);
    return sim_verdict(sim);
}

/* ---- Told ---- */

static void begin_told(struct sim *world, void *arg)
{
    const struct sim_fault_told *fault = arg;

    (void)world;
    if ((int)fault->kind == SIM_FAULTS)
        sim_fault_revive(fault->a);
    else
        sim_fault_begin(fault);
}

/* What is to be: -1, and the story has failed. */
static int check_told(mu_sim *sim, int kind, const struct sim_task *other, uint64_t at_ms,
                      uint64_t for_ms)
{
    int bit = 0;

    while (bit <= SIM_FAULTS && kind != 1 << bit)
        bit++;
    if (bit > SIM_FAULTS)
        mu_sim_fail(sim, "mu_sim_fault: kind is 0x%x, expected one of enum mu_sim_kind",
                    (unsigned)kind);
    else if (at_ms < sim_now_ms(sim->world))
        mu_sim_fail(sim, "mu_sim_fault: at_ms is %" PRIu64 ", and it is %" PRIu64, at_ms,
                    sim_now_ms(sim->world));
    else if (bit < SIM_FAULTS && kind != MU_SIM_PARTITION &&
             sim_fault_of_two((enum sim_fault)bit) != (other != NULL))
        mu_sim_fail(sim, "mu_sim_fault: %s is %s", sim_fault_name((enum sim_fault)bit),
                    other == NULL ? "between two tasks, and `other` is NULL"
                                  : "of one task, and `other` is not NULL");
    else if (for_ms == 0 && (kind & (MU_SIM_CRASH | MU_SIM_CRASH_MIDWAY | MU_SIM_CUT |
                                     MU_SIM_RESTART)) == 0)
        mu_sim_fail(sim, "mu_sim_fault: for_ms of %s is 0",
                    sim_fault_name((enum sim_fault)bit));
    return sim_verdict(sim) == 0 ? bit : -1;
}

static void tell_fault(mu_sim *sim, int bit, const struct sim_task *task,
                       const struct sim_task *other, uint64_t at_ms, uint64_t for_ms)
{
    struct sim_story_fault *entry = sim_alloc(sizeof *entry);
    struct sim_fault_told *fault = &entry->fault;

    entry->next = sim->story_faults;
    sim->story_faults = entry;
    *fault = (struct sim_fault_told){
        .kind = (enum sim_fault)bit,
        .number = bit == SIM_FAULT_CRASH_MIDWAY ? 1 : TELLS_TIMES_SLOWER,
        .a = task->node,
        .b = other == NULL ? task->node : other->node,
        .at_us = at_ms * 1000,
        .end_us = for_ms == 0 ? SIM_FAULT_NO_END : (at_ms + for_ms) * 1000,
    };
    if (bit == SIM_FAULT_CUT || bit == SIM_FAULTS)
        fault->end_us = fault->at_us;
    if (bit == SIM_FAULT_PARTITION)
        sim_fault_put_aside(fault, task->node);
    sim_at(sim->world, at_ms, begin_told, fault);
}

int mu_sim_fault(mu_sim *sim, int kind, const char *task, const char *other,
                 uint64_t at_ms, uint64_t for_ms)
{
    const struct sim_task *a;
    const struct sim_task *b = NULL;
    int bit;

    if (sim == NULL)
        return -MU_EINVALID;
    a = sim_task_find(sim, "mu_sim_fault", task);
    if (other != NULL)
        b = sim_task_find(sim, "mu_sim_fault", other);
    bit = check_told(sim, kind, b, at_ms, for_ms);
    if (bit >= 0)
        tell_fault(sim, bit, a, b, at_ms, for_ms);
    return sim_verdict(sim);
}
