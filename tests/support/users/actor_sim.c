#include "tests/support/users/actor_sim.h"

#include "actors/client/future.h"
#include "actors/user/actions.h"
#include "tests/sim/chaos.h"
#include "tests/sim/cluster.h"
#include "tests/sim/random.h"
#include "tests/support/test.h"

struct actor_sim {
    struct cluster *cluster;
    struct sim_random random;
    const mu_actor_type *const *types;
    actor_sim_begin_fn begin;
    void *user;
    unsigned starts[CLUSTER_TASKS_MAX];
};

static struct office *office_at(const struct cluster_task *task)
{
    return task->runs && sim_alive(task->node)
               ? mu__actor_state(task->member.kernel,
                                 (mu__pid){MU__NODE_SELF, MU__ACTORS})
               : NULL;
}

/* After each event: new processes get their types. */
static void look(struct sim *world, void *arg)
{
    struct actor_sim *sim = arg;
    struct cluster *cluster = sim->cluster;

    (void)world;
    for (unsigned i = 0; i < cluster->tasks_count; i++) {
        struct cluster_task *task = &cluster->tasks[i];
        struct office *office = office_at(task);

        if (office == NULL || sim->starts[i] == sim_lives(task->node))
            continue;
        sim->starts[i] = sim_lives(task->node);
        for (size_t j = 0; sim->types[j] != NULL; j++)
            assert_int_equal(mu__types_add(office, sim->types[j], NULL), 0);
        if (sim->begin != NULL)
            sim->begin(sim, task->type, task->index, sim->user);
    }
}

struct actor_sim *actor_sim_new(uint64_t seed, unsigned workers,
                                const mu_actor_type *const *types,
                                actor_sim_begin_fn begin, void *user)
{
    struct actor_sim *sim = calloc(1, sizeof *sim);
    const struct cluster_options options = {.workers = workers};

    assert_non_null(sim);
    sim->types = types;
    sim->begin = begin;
    sim->user = user;
    sim->random = sim_stream(seed, 113);
    sim->cluster = cluster_new(seed, &options);
    sim_settings_draw(sim->cluster->sim);
    sim_set_check(sim->cluster->sim, look, sim);
    cluster_start_all(sim->cluster);
    look(sim->cluster->sim, sim);
    return sim;
}

void actor_sim_free(struct actor_sim *sim)
{
    cluster_free(sim->cluster);
    free(sim);
}

static struct cluster_task *task_of(const struct actor_sim *sim, const char *type,
                                    unsigned index)
{
    return strcmp(type, "chief") == 0 ? sim->cluster->chief
                                      : sim->cluster->workers[index];
}

bool actor_sim_spawn(struct actor_sim *sim, const char *type, unsigned index,
                     const char *actor, const mu_value *args, mu_address *ret_address)
{
    struct office *office = office_at(task_of(sim, type, index));
    mu_actor_options options;
    struct mail *start;

    assert_int_equal(mu__actors_read_options(NULL, NULL, &options), 0);
    if (office == NULL || mu__spawn_user(office, mu__view_str(actor), NULL,
                                         args == NULL ? NULL : mu_value_ref(args),
                                         &options, NULL, &start) != 0)
        return false;
    *ret_address = mu__actor_address(office, start->actor);
    mu__turn_do(office, start);
    return true;
}

uint64_t actor_sim_random(struct actor_sim *sim, uint64_t min, uint64_t max)
{
    return sim_between(&sim->random, min, max);
}

void actor_sim_break(struct actor_sim *sim, uint64_t for_ms)
{
    struct sim *world = sim->cluster->sim;
    struct sim_chaos chaos;

    sim_chaos_spare(sim->cluster->chief->node, SIM_FAULT_CRASH);
    sim_chaos_spare(sim->cluster->chief->node, SIM_FAULT_CRASH_MIDWAY);
    sim_chaos_draw(world, &chaos);
    sim_chaos_start(world, &chaos, sim_now_ms(world) + for_ms);
}

void actor_sim_run(struct actor_sim *sim, uint64_t for_ms)
{
    sim_run_until(sim->cluster->sim, sim_now_ms(sim->cluster->sim) + for_ms);
}

static bool is_resolved(void *future)
{
    return mu_remote_value_state(future) != MU_REMOTE_NOT_READY;
}

/* As a thread's request, without its message. */
static mu_remote_value *begin_call(struct office *office, const mu_address *to,
                                   const char *method, const mu_value *args,
                                   int64_t timeout_ms)
{
    struct mu__thread_request *request = calloc(1, sizeof *request);
    struct pending_call *call = mu__call_new(office, to, method, timeout_ms);
    mu_remote_value *future = mu__future_new(NULL);
    struct mail *mail;
    mu_error error;

    assert_true(request != NULL && call != NULL && future != NULL);
    request->future = future;
    call->request = request;
    if (mu__message_make(office, to, method, args, call, 0, &error, &mail) == 0)
        mu__turn_do(office, mail);
    else
        mu__call_end(office, call, NULL, &error);
    return future;
}

mu_value *actor_sim_call(struct actor_sim *sim, const mu_address *to, const char *method,
                         const mu_value *args, int64_t timeout_ms, mu_error *ret_error)
{
    struct sim *world = sim->cluster->sim;
    mu_remote_value *future =
        begin_call(office_at(sim->cluster->chief), to, method, args, timeout_ms);
    mu_value *result = NULL;

    assert_true(sim_run_to(world, is_resolved, future,
                           sim_now_ms(world) + (uint64_t)timeout_ms + 1000));
    if (future->error != NULL)
        *ret_error = *future->error;
    else
        result = future->result == NULL ? mu_value_nil() : mu_value_ref(future->result);
    mu_remote_value_free(future);
    return result;
}

uint64_t actor_sim_digest(const struct actor_sim *sim)
{
    return sim_digest(sim->cluster->sim);
}

const char *actor_sim_trace(struct actor_sim *sim)
{
    return sim_trace(sim->cluster->sim);
}
