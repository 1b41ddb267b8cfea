/* The registered type of actors in Python, on the loop's thread: queues calls for the
 * lanes and gives their answers. It calls no Python. */
#include "hosting/hosting.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Timers: the actor ends; its object is made, if no call has done that; it should have
 * been made. */
enum { DEATH = 1, MAKING, TOO_LATE, MAKING_MS = 500 };

enum { KEPT_VERSION = 1 }; /* of what is saved */

/* The state of the library's actor. */
struct python_actor {
    struct mupy_lane *lane; /* NULL: it did not start */
    mu_reply *start;        /* that of its start; NULL: it is given, or nobody waits */
    mu_value *whole; /* of a kept actor, what is recorded: [state or nil, record, ...];
                        NULL for others */
    bool is_loading; /* what is replayed is of an earlier life */
};

/* ---- nodes ---- */

/* The nodes of this process that have the type. */
struct served {
    struct served *next;
    mu_node *node; /* until mupy_actors_forget */
};

static pthread_mutex_t served_lock = PTHREAD_MUTEX_INITIALIZER;
static struct served *served_nodes;

void mupy_actors_forget(const mu_node *node)
{
    struct served **at = &served_nodes;
    struct served *found;

    (void)pthread_mutex_lock(&served_lock);
    while (*at != NULL && (*at)->node != node)
        at = &(*at)->next;
    found = *at;
    if (found != NULL)
        *at = found->next;
    (void)pthread_mutex_unlock(&served_lock);
    free(found);
}

/* The node of an actor: the last one that was opened for its task. It is open, as the
 * actor starts on its loop. */
static mu_node *node_of_task(const mu_address *address)
{
    struct served *at;
    char task[64];

    (void)snprintf(task, sizeof task, "/job:%s/task:%u", address->type,
                   (unsigned)address->index);
    (void)pthread_mutex_lock(&served_lock);
    for (at = served_nodes; at != NULL && strcmp(mu_node_task(at->node), task) != 0;)
        at = at->next;
    (void)pthread_mutex_unlock(&served_lock);
    return at == NULL ? NULL : at->node;
}

/* ---- what is kept ---- */

/* The items are shared. */
static mu_value *copy_list(const mu_value *list)
{
    mu_value *copy = mu_value_list();

    for (size_t i = 0; copy != NULL && i < mu_value_count(list); i++)
        if (mu_value_append(copy, mu_value_ref(mu_value_at(list, i))) != 0) {
            mu_value_free(copy);
            copy = NULL;
        }
    return copy;
}

/* The object was not made yet. */
static mu_value *whole_of_none(void)
{
    mu_value *whole = mu_value_list();

    if (whole != NULL && mu_value_append(whole, mu_value_nil()) == 0)
        return whole;
    mu_value_free(whole);
    return NULL;
}

/* What a call has changed is recorded with this turn. */
static int record_changes(mu_actor *self, struct python_actor *actor,
                          const mu_value *changes)
{
    int rv = 0;

    if (mu_value_type(mu_value_at(changes, 0)) != MU_VALUE_NIL) {
        mu_value_free(actor->whole);
        actor->whole = copy_list(changes);
        return actor->whole == NULL ? -MU_ENOMEM : mu_actor_record(self, NULL);
    }
    for (size_t i = 1; i < mu_value_count(changes) && rv == 0; i++) {
        const mu_value *record = mu_value_at(changes, i);

        rv = mu_value_append(actor->whole, mu_value_ref(record));
        if (rv == 0)
            rv = mu_actor_record(self, record);
    }
    return rv;
}

static int save_python(void *state, mu_value **ret_saved)
{
    const struct python_actor *actor = state;

    *ret_saved = actor->whole == NULL ? NULL : copy_list(actor->whole);
    return *ret_saved == NULL ? -MU_ENOMEM : 0;
}

/* In this life the object has done that. */
static int replay_python(void *state, const mu_value *record)
{
    struct python_actor *actor = state;
    int rv;

    if (!actor->is_loading)
        return 0;
    rv = mu_value_append(actor->whole, mu_value_ref(record));
    return rv == 0 ? mu_value_append(actor->lane->saved, mu_value_ref(record)) : rv;
}

/* ---- answers ---- */

static mu_reply *take_reply(struct python_actor *actor, const struct mupy_job *job)
{
    mu_reply *reply = job->is_start ? actor->start : job->reply;

    if (job->is_start)
        actor->start = NULL;
    return reply;
}

/* How many there were; or a negative code. */
static long give_done(mu_actor *self, struct python_actor *actor, bool *ret_ends)
{
    struct mupy_jobs done = mupy_lane_take(actor->lane, ret_ends);
    long count = (long)done.count;
    struct mupy_job *job;

    actor->is_loading = false;
    while ((job = mupy_job_pop(&done)) != NULL) {
        int rv = job->changes == NULL ? 0 : record_changes(self, actor, job->changes);
        mu_reply *reply = take_reply(actor, job);

        if (rv != 0)
            count = rv;
        if (job->is_start)
            mu_actor_timer_cancel(self, TOO_LATE);
        if (reply != NULL && mu_reply_give(reply, job->result, job->error) == 0)
            job->result = NULL;
        mupy_job_free(job);
    }
    return count;
}

static void die(mu_actor *self, const struct mupy_lane *lane)
{
    static const mu_error no_memory = {.code = -MU_ENOMEM, .message = "out of memory"};

    (void)mu_actor_die(self, lane->why == NULL ? &no_memory : lane->why);
}

/* Death undoes a turn, so answers, and the promise of one, leave with an earlier turn. */
static int answer_done(mu_actor *self, struct python_actor *actor, bool may_die)
{
    struct mupy_lane *lane = actor->lane;
    bool ends;
    long count = give_done(self, actor, &ends);

    if (count < 0)
        return (int)count;
    if (!ends)
        return 0;
    if (!lane->is_dying)
        (void)mu_actor_stop(self, &lane->address, MU_STOP_NOW);
    else if (may_die && count == 0)
        die(self, lane);
    else
        (void)mu_actor_timer(self, 0, DEATH);
    return 0;
}

static void refuse_queued(struct python_actor *actor, const mu_error *why)
{
    struct mupy_lane *lane = actor->lane;
    bool is_kept = lane->is_kept; /* then the library sends again what was put off */
    struct mupy_jobs queued = mupy_lane_close(lane);
    struct mupy_job *job;
    mu_error error;

    mupy_lane_error(lane, &error, -MU_EABORTED, MU_RAN_NO,
                    "the actor has ended before the call was begun%s%.300s",
                    why == NULL ? "" : ": ", why == NULL ? "" : why->message);
    while ((job = mupy_job_pop(&queued)) != NULL) {
        mu_reply *reply = take_reply(actor, job);

        if (reply != NULL && !is_kept)
            (void)mu_reply_give(reply, NULL, &error);
        mupy_job_free(job);
    }
}

/* ---- turns ---- */

/* The object is made without a call. False: out of memory. */
static bool make_python(struct python_actor *actor)
{
    struct mupy_job *job = calloc(1, sizeof *job);

    if (job == NULL)
        return false;
    job->reply = actor->start;
    job->is_start = true;
    if (mupy_lane_put(actor->lane, job) == 0)
        return true;
    mupy_job_free(job);
    return false;
}

/* The answer is given once the object is made. */
static int make_at_once(mu_actor *self, struct python_actor *actor, const mu_value *args)
{
    int64_t within_ms = 0;
    int rv;

    actor->start = mu_actor_reply_later(self);
    rv = actor->start == NULL ? -MU_ENOMEM : 0;
    (void)mu_value_get_int(mu_value_at(args, MUPY_START_WITHIN), &within_ms);
    if (rv == 0 && within_ms > 0)
        rv = mu_actor_timer(self, (uint64_t)within_ms, TOO_LATE);
    if (rv == 0 && !make_python(actor))
        rv = -MU_ENOMEM;
    if (rv != 0)
        (void)mupy_lane_close(actor->lane);
    return rv;
}

/* Who has asked for it does not wait any more, and does not know its address. */
static void end_unmade(mu_actor *self, struct python_actor *actor)
{
    mu_error error;

    mupy_lane_error(actor->lane, &error, -MU_EDEADLINE, MU_RAN_MAYBE,
                    "%s was not made in time", actor->lane->name);
    if (actor->start != NULL)
        (void)mu_reply_give(actor->start, NULL, &error);
    actor->start = NULL;
    (void)mu_actor_stop(self, &actor->lane->address, MU_STOP_NOW);
}

static int begin_lane(mu_actor *self, struct python_actor *actor, const mu_value *args)
{
    mu_address address;
    mu_node *node = NULL;
    int64_t grade = MUPY_GRADE_PLAIN;

    if (args == NULL || mu_value_type(args) != MU_VALUE_LIST ||
        mu_value_count(args) < MUPY_START_FORM + 1)
        return mu_actor_fail(self, -MU_EINVALID,
                             "an actor in Python is made by "
                             "ClusterCoordinator.spawn");
    if (mu_actor_self(self, &address) == 0)
        node = node_of_task(&address);
    if (node == NULL)
        return mu_actor_fail(self, -MU_EPRECONDITION, "the task has no node of Python");
    actor->lane = mupy_lane_new(node, &address, args);
    if (actor->lane == NULL)
        return -MU_ENOMEM;
    (void)mu_value_get_int(mu_value_at(args, MUPY_START_GRADE), &grade);
    return grade == MUPY_GRADE_PLAIN ? make_at_once(self, actor, args)
                                     : mu_actor_timer(self, MAKING_MS, MAKING);
}

static int start_python(mu_actor *self, void *state, const mu_value *args)
{
    struct python_actor *actor = state;
    int rv = begin_lane(self, actor, args);

    if (rv != 0 || !actor->lane->is_kept)
        return rv;
    actor->whole = whole_of_none();
    return actor->whole == NULL ? -MU_ENOMEM : 0;
}

/* A later life of a kept actor. */
static int load_python(mu_actor *self, void *state, const mu_value *saved,
                       unsigned version)
{
    struct python_actor *actor = state;
    int rv;

    if (version != KEPT_VERSION ||
        (saved != NULL &&
         (mu_value_type(saved) != MU_VALUE_LIST || mu_value_count(saved) == 0)))
        return -MU_EDATALOSS;
    rv = begin_lane(self, actor, mu_actor_args(self));
    if (rv != 0)
        return rv;
    actor->whole = saved == NULL ? whole_of_none() : copy_list(saved);
    actor->lane->saved = actor->whole == NULL ? NULL : copy_list(actor->whole);
    actor->is_loading = true;
    return actor->lane->saved == NULL ? -MU_ENOMEM : 0;
}

static struct mupy_job *job_of(mu_actor *self, const mu_value *args)
{
    struct mupy_job *job = calloc(1, sizeof *job);
    int64_t within_ms = 0;

    if (job == NULL)
        return NULL;
    (void)mu_value_get_int(mu_value_at(args, MUPY_CALL_WITHIN), &within_ms);
    job->args = mu_value_ref(args);
    job->due_ms = within_ms <= 0 ? 0 : mupy_now_ms() + (uint64_t)within_ms;
    job->reply = mu_actor_put_off(self);
    if (job->reply != NULL)
        return job;
    mupy_job_free(job);
    return NULL;
}

static int call_python(mu_actor *self, void *state, const mu_value *args)
{
    struct python_actor *actor = state;
    struct mupy_job *job;

    if (args == NULL || mu_value_type(args) != MU_VALUE_LIST ||
        mu_value_count(args) < MUPY_CALL_FORM + 1)
        return mu_actor_fail(self, -MU_EINVALID,
                             "a call of an actor in Python was expected");
    job = job_of(self, args);
    if (job == NULL)
        return -MU_ENOMEM;
    if (mupy_lane_put(actor->lane, job) != 0) {
        mupy_job_free(job);
        return mu_actor_fail(self, -MU_EEXHAUSTED, "too many calls wait for the actor");
    }
    return answer_done(self, actor, false);
}

static int flush_python(mu_actor *self, void *state, const mu_value *args)
{
    (void)args;
    return answer_done(self, state, true);
}

static void on_python_notice(mu_actor *self, void *state, const mu_notice *notice)
{
    struct python_actor *actor = state;
    mu_error error;
    int rv = 0;

    if (notice->kind == MU_NOTICE_TIMER && notice->token == MAKING)
        (void)make_python(actor);
    else if (notice->kind == MU_NOTICE_TIMER && notice->token == TOO_LATE)
        end_unmade(self, actor);
    else if (notice->kind == MU_NOTICE_TIMER)
        rv = answer_done(self, actor, true);
    if (rv == 0)
        return;
    mupy_lane_error(actor->lane, &error, rv, MU_RAN_MAYBE,
                    "its state cannot be recorded");
    (void)mu_actor_die(self, &error);
}

static void stop_python(mu_actor *self, void *state, const mu_error *why)
{
    struct python_actor *actor = state;
    bool ends;

    if (!actor->lane->is_kept)
        (void)give_done(self, actor, &ends);
    refuse_queued(actor, why);
    mu_value_free(actor->whole);
}

int mupy_actors_register(mu_node *node)
{
    static const mu_actor_method methods[] = {
        {"call", call_python},
        {"flush", flush_python},
        {NULL, NULL},
    };
    static const mu_actor_type type = {
        .name = MUPY_ACTOR_TYPE,
        .state_size = sizeof(struct python_actor),
        .methods = methods,
        .start = start_python,
        .notice = on_python_notice,
        .stop = stop_python,
        .save = save_python,
        .load = load_python,
        .replay = replay_python,
        .version = KEPT_VERSION,
    };
    struct served *served = calloc(1, sizeof *served);

    if (served == NULL)
        return -MU_ENOMEM;
    served->node = node; /* first: an actor may be made at once */
    (void)pthread_mutex_lock(&served_lock);
    served->next = served_nodes;
    served_nodes = served;
    (void)pthread_mutex_unlock(&served_lock);
    return mu_node_register_actor(node, &type);
}
