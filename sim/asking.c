/* What a story does to actors: it makes them, calls them and looks at them. And time. */
#include "sim/internal.h"

#include "actors/client/future.h"
#include "actors/names/naming.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* ---- Actors ---- */

static int make_named_actor(struct office *office, const char *type, const mu_value *args,
                            const mu_actor_options *options, mu_error *ret_error,
                            mu_address *ret_address)
{
    struct name_wish *wish = mu__wish_new(type, args, options);

    if (wish == NULL)
        return mu_error_set(ret_error, -MU_ENOMEM, "no memory for an actor");
    *ret_address = (mu_address){.number = 0};
    mu__view_copy(mu__view_str(options->name), ret_address->name,
                  sizeof ret_address->name);
    return mu__naming_wish(office, wish, ret_error);
}

static int make_actor(const mu_sim *sim, struct office *office, const char *type,
                      const mu_value *args, const mu_actor_options *options,
                      mu_error *ret_error, mu_address *ret_address)
{
    mu_actor_options own;
    struct mail *start;
    int rv = mu__actors_read_options(options, ret_error, &own);

    if (rv == 0 && own.name != NULL && sim->service.task == NULL)
        return mu_error_set(ret_error, -MU_EPRECONDITION,
                            "an actor with a name needs mu_sim_service");
    if (rv == 0 && own.name != NULL)
        return make_named_actor(office, type, args, &own, ret_error, ret_address);
    if (rv == 0)
        rv = mu__spawn_user(office, mu__view_str(type), NULL,
                            args == NULL ? NULL : mu_value_ref(args), &own, ret_error,
                            &start);
    if (rv != 0)
        return rv;
    *ret_address = mu__actor_address(office, start->actor);
    mu__turn_do(office, start);
    return 0;
}

int mu_sim_spawn(mu_sim *sim, const char *task, const char *type, const mu_value *args,
                 const mu_actor_options *options, mu_address *ret_address)
{
    struct sim_task *where;
    struct office *office;
    mu_error error = {0};

    if (sim == NULL)
        return -MU_EINVALID;
    sim_begin_all(sim);
    where = sim_task_find(sim, "mu_sim_spawn", task);
    if (type == NULL || ret_address == NULL)
        mu_sim_fail(sim, "mu_sim_spawn: the type or ret_address is NULL");
    if (sim_verdict(sim) != 0)
        return -MU_EABORTED;
    office = sim_office(where);
    if (office == NULL)
        return -MU_EUNAVAILABLE;
    if (make_actor(sim, office, type, args, options, &error, ret_address) != 0)
        mu_sim_fail(sim, "mu_sim_spawn: %s", error.message);
    return sim_verdict(sim);
}

static const struct office *office_of(const mu_sim *sim, const mu_address *actor)
{
    for (size_t i = 0; i < sim->tasks_count; i++) {
        const struct office *office = sim_office(sim->tasks[i]);

        if (office != NULL && office->config.incarnation == actor->incarnation)
            return office;
    }
    return NULL;
}

/* The last one: an actor of a former epoch may not have ended yet. */
static const mu_actor *find_owner_in(const struct office *office, const char *name)
{
    const mu_actor *found = NULL;

    for (const struct name_owned *owned =
             MU__LIST_FIRST(&office->names->owned, struct name_owned, node);
         owned != NULL; owned = MU__LIST_NEXT(owned, struct name_owned, node))
        if (strcmp(owned->text, name) == 0 && !owned->actor->ends)
            found = owned->actor;
    return found;
}

/* Of the highest epoch: a former owner may not know yet that it is one. */
static const mu_actor *find_owner(const mu_sim *sim, const char *name)
{
    const mu_actor *best = NULL;

    for (size_t i = 0; i < sim->tasks_count; i++) {
        const struct office *office = sim_office(sim->tasks[i]);
        const mu_actor *owner = office == NULL ? NULL : find_owner_in(office, name);

        if (owner != NULL && (best == NULL || owner->owned->epoch > best->owned->epoch))
            best = owner;
    }
    return best;
}

static const mu_actor *find_actor(const mu_sim *sim, const mu_address *address)
{
    const struct office *office;

    if (address->name[0] != '\0')
        return find_owner(sim, address->name);
    office = office_of(sim, address);
    return office == NULL ? NULL : mu__actor_find(office, address->number);
}

const void *mu_sim_state(mu_sim *sim, const mu_address *address)
{
    const mu_actor *actor =
        sim == NULL || address == NULL ? NULL : find_actor(sim, address);

    return actor == NULL || !actor->is_started ? NULL : actor->state;
}

/* ---- Calls ---- */

static bool is_resolved(void *future)
{
    return mu_remote_value_state(future) != MU_REMOTE_NOT_READY;
}

/* As a thread's request, without its message. NULL: out of memory. */
static mu_remote_value *begin_request(struct office *office, const mu_address *to,
                                      const char *method, const mu_value *args,
                                      int64_t timeout_ms)
{
    struct mu__thread_request *request = sim_alloc(sizeof *request);
    struct pending_call *call = mu__call_new(office, to, method, timeout_ms);
    mu_remote_value *future = mu__future_new(NULL);
    struct mail *mail;
    mu_error error;

    if (call == NULL || future == NULL) {
        free(request);
        return NULL;
    }
    request->future = future;
    call->request = request;
    if (mu__message_make(office, to, method, args, call, 0, &error, &mail) == 0)
        mu__turn_do(office, mail);
    else
        mu__call_end(office, call, NULL, &error);
    return future;
}

enum { LATE_MS = 60000 }; /* a task may stand still when the time of its call is over */

static int check_request(mu_sim *sim, const mu_address *to, const char *method,
                         int64_t timeout_ms)
{
    if (to == NULL || method == NULL)
        mu_sim_fail(sim, "mu_sim_request: the address or the method is NULL");
    else if (timeout_ms < 1 || timeout_ms > MU_ACTOR_TIMEOUT_MAX)
        mu_sim_fail(sim, "mu_sim_request: timeout_ms is %" PRId64 ", expected 1 to %d",
                    timeout_ms, MU_ACTOR_TIMEOUT_MAX);
    else if (sim->is_within)
        mu_sim_fail(sim, "mu_sim_request: time cannot pass within a check or the "
                         "beginning of a task");
    return sim_verdict(sim);
}

static int end_request(mu_sim *sim, mu_remote_value *future, const char *task,
                       const char *method, mu_error *ret_error, mu_value **ret_value)
{
    int rv = sim_verdict(sim);

    if (rv == 0 && !is_resolved(future))
        rv = mu_error_set(ret_error, -MU_EUNAVAILABLE,
                          "the call of %.60s has not ended a minute after its time: "
                          "%s stands still",
                          method, task);
    else if (rv == 0 && future->error != NULL) {
        rv = future->error->code;
        if (ret_error != NULL)
            *ret_error = *future->error;
    } else if (rv == 0 && ret_value != NULL) {
        *ret_value =
            future->result == NULL ? mu_value_nil() : mu_value_ref(future->result);
    }
    return rv;
}

int mu_sim_request(mu_sim *sim, const char *task, const mu_address *to,
                   const char *method, const mu_value *args, int64_t timeout_ms,
                   mu_error *ret_error, mu_value **ret_value)
{
    struct sim_task *from;
    struct office *office;
    mu_remote_value *future;
    uint64_t until_ms;
    int rv;

    if (sim == NULL)
        return -MU_EINVALID;
    sim_begin_all(sim);
    from = sim_task_find(sim, "mu_sim_request", task);
    if (check_request(sim, to, method, timeout_ms) != 0)
        return -MU_EABORTED;
    office = sim_office(from);
    if (office == NULL)
        return mu_error_set(ret_error, -MU_EUNAVAILABLE, "%s does not run", task);
    future = begin_request(office, to, method, args, timeout_ms);
    if (future == NULL)
        return -MU_ENOMEM;
    until_ms = sim_now_ms(sim->world) + (uint64_t)timeout_ms + LATE_MS;
    while (sim_verdict(sim) == 0 && !is_resolved(future) &&
           sim_now_ms(sim->world) < until_ms && sim_step(sim->world))
        ;
    rv = end_request(sim, future, task, method, ret_error, ret_value);
    mu_remote_value_free(future);
    return rv;
}

/* ---- Time ---- */

uint64_t mu_sim_now_ms(const mu_sim *sim)
{
    return sim == NULL ? 0 : sim_now_ms(sim->world);
}

static int check_run(mu_sim *sim, const char *call)
{
    sim_begin_all(sim);
    if (sim->is_within)
        mu_sim_fail(sim, "%s: time cannot pass within a check or the beginning of a task",
                    call);
    return sim_verdict(sim);
}

static bool has_failed(void *arg)
{
    return sim_verdict(arg) != 0;
}

int mu_sim_run_until(mu_sim *sim, uint64_t until_ms)
{
    if (sim == NULL)
        return -MU_EINVALID;
    if (check_run(sim, "mu_sim_run_until") == 0 &&
        !sim_run_to(sim->world, has_failed, sim, until_ms))
        sim_run_until(sim->world, until_ms);
    return sim_verdict(sim);
}

struct until {
    mu_sim *sim;
    int (*done)(mu_sim *sim, void *user);
    void *user;
};

static bool is_until(void *arg)
{
    const struct until *until = arg;

    return sim_verdict(until->sim) != 0 || until->done(until->sim, until->user) != 0;
}

int mu_sim_run_to(mu_sim *sim, int (*done)(mu_sim *sim, void *user), void *user,
                  uint64_t until_ms)
{
    struct until until = {sim, done, user};
    bool is_done;

    if (sim == NULL)
        return -MU_EINVALID;
    if (done == NULL)
        mu_sim_fail(sim, "mu_sim_run_to: done is NULL");
    if (check_run(sim, "mu_sim_run_to") != 0)
        return -MU_EABORTED;
    is_done = sim_run_to(sim->world, is_until, &until, until_ms);
    if (sim_verdict(sim) == 0 && !is_done) {
        sim_run_until(sim->world, until_ms);
        return -MU_EDEADLINE;
    }
    return sim_verdict(sim);
}

int mu_sim_check(mu_sim *sim, void (*check)(mu_sim *sim, void *user), void *user)
{
    if (sim == NULL)
        return -MU_EINVALID;
    sim->check = check;
    sim->check_user = user;
    return sim_verdict(sim);
}

uint64_t mu_sim_random(mu_sim *sim, uint64_t min, uint64_t max)
{
    return sim == NULL ? min : sim_between(&sim->random, min, max);
}

const char *mu_sim_trace(mu_sim *sim)
{
    return sim == NULL ? "" : sim_trace(sim->world);
}
