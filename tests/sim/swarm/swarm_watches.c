#include "tests/sim/swarm/swarm.h"

#include <stdlib.h>

static void forget_seen(struct swarm_program *program)
{
    for (unsigned i = 0; i < KEYS; i++)
        program->seen[i] = -1;
}

void swarm_end_watch(struct swarm_program *program)
{
    if (program->watch != NULL)
        mu__agent_watch_unref(program->watch);
    program->watch = NULL;
    program->opening = NULL;
    program->next = NULL;
}

void swarm_note_event(struct swarm_program *program, const mu_kv_event *event)
{
    struct swarm *run = program->run;

    run->reached[WATCHED]++;
    for (unsigned i = 0; event->key != NULL && i < KEYS; i++)
        if (strcmp(event->key, swarm_key_names[i]) == 0)
            program->seen[i] = event->type == MU_KV_EVENT_DELETED
                                   ? -1
                                   : strtoll(event->item.value, NULL, 10);
    free(event->key);
    free(event->item.value);
}

static void close_watch(struct swarm_program *program)
{
    (void)cluster_agent(program->task, CALL(CALL_OF(MU__AGENT_WATCH_CLOSE, -1),
                                            .watch = program->watch));
}

/* Called in the actor: it may be registered again a message later. */
static void next_ended(struct mu__call *done)
{
    struct cluster_call *call = (struct cluster_call *)(void *)done;
    struct swarm_program *program = swarm_call_ended(call);

    if (done->code != -MU_ECLOSED && call->life == program->life)
        program->next_may_fail = agent_of(program)->error.code != 0 ||
                                 !agent_of(program)->registration.is_requested;
}

static void ask_next(struct swarm_program *program, int64_t timeout_ms)
{
    program->next =
        cluster_agent(program->task, CALL(CALL_OF(MU__AGENT_WATCH_NEXT, timeout_ms),
                                          .watch = program->watch, .user = program->run));
    program->next->of.call.complete = next_ended;
}

/* After a loss it begins anew; what ends it is an error that is no limit. */
void swarm_end_next(struct swarm_program *program)
{
    struct cluster_call *call = program->next;
    int code = call->of.call.code;

    program->next = NULL;
    if (code == 0)
        swarm_note_event(program, &call->of.agent.event);
    else if (code == -MU_EEXHAUSTED)
        forget_seen(program);
    else if (code != -MU_EDEADLINE && !program->next_may_fail)
        cluster_break(program->run->cluster, "%s: a watch ends: %s", program->task->name,
                      call->of.call.error.message);
}

void swarm_go_on_watching(struct swarm_program *program)
{
    if (program->opening != NULL || program->next != NULL)
        return;
    if (program->watch != NULL) {
        ask_next(program, (int64_t)draw(program, 0, 2000));
        return;
    }
    if (program->run->calm || !sim_chance(&program->random, 20))
        return;
    forget_seen(program);
    program->below = sim_chance(&program->random, 70);
    program->watch = mu__agent_watch_new();
    program->opening = cluster_agent(
        program->task, CALL(CALL_OF(MU__AGENT_WATCH, 2000), .watch = program->watch,
                            .below = program->below,
                            .name = program->below ? "k" : swarm_key_names[KEYS - 1]));
}

void swarm_end_opening(struct swarm_program *program)
{
    int code = program->opening->of.call.code;

    program->opening = NULL;
    if (code != 0)
        swarm_end_watch(program);
}

static bool has_read_all(const struct swarm *run)
{
    for (unsigned i = 0; i < run->programs_count; i++)
        if (run->programs[i].next != NULL)
            return false;
    return true;
}

/* Until nothing more comes within a while. */
static void read_watch(struct swarm_program *program)
{
    struct swarm *run = program->run;
    uint64_t before;

    do {
        before = run->reached[WATCHED];
        ask_next(program, 300);
        swarm_wait(run, "the last events", FINAL_MS);
    } while (!is_broken(run) && has_read_all(run) && run->reached[WATCHED] != before);
}

void swarm_check_watches(struct swarm *run, const int64_t numbers[ALL_KEYS])
{
    for (unsigned i = 0; i < run->programs_count && !is_broken(run); i++) {
        struct swarm_program *program = &run->programs[i];

        if (program->watch == NULL)
            continue;
        read_watch(program);
        for (unsigned key = program->below ? 0 : KEYS - 1; key < KEYS; key++)
            if (program->seen[key] != numbers[key])
                cluster_break(run->cluster,
                              "a watch of %s has %s as %" PRId64 ", it is %" PRId64,
                              program->task->name, swarm_key_names[key],
                              program->seen[key], numbers[key]);
        close_watch(program);
        swarm_end_watch(program);
    }
}
