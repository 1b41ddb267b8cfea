#include "tests/sim/swarm/swarm.h"

/* ---- Errands ---- */

static void start_request(struct swarm_program *program, enum swarm_request kind,
                          const struct mu__agent_call *call)
{
    if (program->request != NULL)
        return;
    program->request_kind = kind;
    program->request = cluster_agent(program->task, call);
}

static void fail_with(struct swarm_program *program, int operation)
{
    struct mu__agent_call call = {CALL_OF(operation, 3000)};

    (void)mu_error_set(&call.failure, -MU_EDATALOSS, "bad disk of %s",
                       program->task->name);
    start_request(program, REPORT, &call);
}

static void make_trouble(struct swarm_program *program)
{
    switch (draw(program, 0, 3)) {
    case 0:
        fail_with(program, MU__AGENT_REPORT);
        break;
    case 1:
        fail_with(program, MU__AGENT_SET_ERROR);
        break;
    default:
        start_request(program, LEAVE, CALL(CALL_OF(MU__AGENT_LEAVE, 3000)));
        break;
    }
}

static void ask_something(struct swarm_program *program)
{
    static const uint32_t whats[] = {MU__TASKS_STATES, MU__TASKS_DEVICES, MU__TASKS_WAIT,
                                     MU__TASKS_WATCH};
    struct swarm *run = program->run;
    unsigned name = (unsigned)draw(program, 0, NAMES - 1);

    switch (draw(program, 0, 4)) {
    case 0:
        start_request(program, OTHER, CALL(CALL_OF(MU__AGENT_LIST, 2000), .name = "k"));
        break;
    case 1:
        start_request(program, OTHER,
                      CALL(CALL_OF(MU__AGENT_BARRIER_CANCEL, 2000),
                           .name = swarm_barrier_names[name]));
        break;
    case 2:
        if (run->plan.steps)
            start_request(program, NOTICE,
                          CALL(CALL_OF(MU__AGENT_NOTICE, 5000), .name = "maintenance",
                               .version = 5000));
        break;
    case 3:
        if (run->takes_part[name][program->number])
            start_request(program, OTHER,
                          CALL(CALL_OF(MU__AGENT_TASKS, 2000), .what = MU__TASKS_ALIVE,
                               .tasks = run->sets[name]));
        break;
    default:
        start_request(program, OTHER,
                      CALL(CALL_OF(MU__AGENT_TASKS, 2000),
                           .what = whats[draw(program, 0, 3)], .tasks = ""));
        break;
    }
}

void swarm_end_request(struct swarm_program *program)
{
    struct cluster_call *call = program->request;

    mu_value_free(call->of.agent.content);
    call->of.agent.content = NULL;
    program->request = NULL;
    if (call->of.call.code == 0 && program->request_kind == LEAVE)
        program->used = 0;
}

/* From error, or from having left, back to being there. */
static bool comes_back(struct swarm_program *program)
{
    const struct agent *a = agent_of(program);

    if (a->error.code != 0)
        start_request(program, RESET, CALL(CALL_OF(MU__AGENT_RESET, 2000)));
    else if (!a->registration.is_requested)
        start_request(program, REGISTER,
                      CALL(CALL_OF(MU__AGENT_REGISTER, 3000),
                           .barrier = sim_chance(&program->random, 20)));
    else
        return false;
    return true;
}

/* ---- Processes ---- */

/* Nothing was answered to what it had under way. */
void swarm_forget_process(struct swarm_program *program)
{
    struct swarm *run = program->run;

    for (unsigned i = 0; i < OPEN_MAX; i++) {
        if (program->keys[i] != NULL && !program->is_lease[i])
            run->reached[UNKNOWN] +=
                run->records[program->records[i]].op.kind != LINEAR_GET;
        program->keys[i] = NULL;
    }
    if (program->threads[0] != NULL || program->threads[1] != NULL ||
        program->threads[2] != NULL) {
        memset(program->threads, 0, sizeof program->threads);
        swarm_end_visit(program);
    }
    if (program->next != NULL && program->next->done && program->next->of.call.code == 0)
        swarm_note_event(program, &program->next->of.agent.event);
    swarm_end_watch(program);
    if (program->request != NULL && program->request->done)
        mu_value_free(program->request->of.agent.content);
    program->request = NULL;
    if (program->listing != NULL && program->listing->done)
        mu_value_free(program->listing->of.agent.content);
    program->listing = NULL;
    swarm_forget_lock(program);
    program->reaching = NULL;
    program->life = 0;
}

void swarm_begin_process(struct swarm_program *program)
{
    *program = (struct swarm_program){
        .run = program->run,
        .task = program->task,
        .number = program->number,
        .plays = program->plays,
        .is_host = program->is_host,
        .random = program->random,
        .life = sim_lives(program->task->node),
        .life_ms = sim_now_ms(program->run->cluster->sim),
        .step = draw(program, 0, 20),
    };
    program->run->reached[LIVES]++;
    program->run->reached[OWN_TYPES] += strcmp(program->task->type, "gpu") == 0;
}

static void act(struct swarm_program *program)
{
    const struct swarm_plan *plan = &program->run->plan;
    uint64_t what = draw(program, 0, 999);

    if (agent_of(program)->error.code != 0 ||
        !agent_of(program)->registration.is_requested) {
        if (sim_chance(&program->random, 30))
            (void)comes_back(program);
        if (sim_chance(&program->random, 70))
            return;
    }
    if (plan->watches)
        swarm_go_on_watching(program);
    if (plan->steps && program->reaching == NULL && sim_chance(&program->random, 50))
        swarm_reach(program);
    if (plan->barriers && sim_chance(&program->random, 50))
        swarm_meet(program);
    if (plan->locks)
        swarm_go_on_locking(program);
    if (what < 600)
        swarm_ask_key(program);
    else if (what < 660 && plan->leases)
        swarm_ask_lease(program);
    else if (what < 680)
        ask_something(program);
    else if (what < 686 && plan->trouble)
        make_trouble(program);
    else if (what < 700 && program->keys[0] != NULL && !program->is_lease[0])
        cluster_key_cancel(program->keys[0]);
    else if (what >= 700 && plan->txns)
        swarm_ask_txn(program);
}

void swarm_step(struct sim *sim, void *arg)
{
    struct swarm_program *program = arg;
    struct swarm *run = program->run;
    bool is_there = program->task->runs && sim_alive(program->task->node);

    if (run->calm || is_broken(run))
        return;
    if (is_there && program->life == 0)
        swarm_begin_process(program);
    if (is_there && runs(program) && !program->task->node->paused)
        act(program);
    sim_at(sim, sim_now_ms(sim) + draw(program, 1, 2 * run->plan.pace_ms), swarm_step,
           program);
}
