/* The registered type of actors in Python, on the loop's thread: queues calls for the
 * lanes and gives their answers. It calls no Python. */
#include "hosting/hosting.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Timers: the actor ends; its object is made, if no call has done that. */
enum { DEATH = 1, MAKING, MAKING_MS = 500 };

/* The state of the library's actor. */
struct python_actor {
    struct mupy_lane *lane; /* NULL: it did not start */
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

/* ---- answers ---- */

/* How many there were. */
static size_t give_done(struct mupy_lane *lane, bool *ret_ends)
{
    struct mupy_jobs done = mupy_lane_take(lane, ret_ends);
    size_t count = done.count;
    struct mupy_job *job;

    while ((job = mupy_job_pop(&done)) != NULL) {
        if (job->reply != NULL && mu_reply_give(job->reply, job->result, job->error) == 0)
            job->result = NULL;
        mupy_job_free(job);
    }
    return count;
}

/* Death undoes a turn, so answers, and the promise of one, leave with an earlier turn. */
static void answer_done(mu_actor *self, struct mupy_lane *lane, bool may_die)
{
    bool ends;

    may_die = give_done(lane, &ends) == 0 && may_die;
    if (!ends)
        return;
    if (!lane->is_dying)
        (void)mu_actor_stop(self, &lane->address, MU_STOP_NOW);
    else if (may_die)
        (void)mu_actor_die(self, &lane->why);
    else
        (void)mu_actor_timer(self, 0, DEATH);
}

static void refuse_queued(struct mupy_lane *lane, const mu_error *why)
{
    struct mupy_jobs queued = mupy_lane_close(lane);
    struct mupy_job *job;
    mu_error error;

    mupy_lane_error(lane, &error, -MU_EABORTED, MU_RAN_NO,
                    "the actor has ended before the call was begun%s%.300s",
                    why == NULL ? "" : ": ", why == NULL ? "" : why->message);
    while ((job = mupy_job_pop(&queued)) != NULL) {
        if (job->reply != NULL)
            (void)mu_reply_give(job->reply, NULL, &error);
        mupy_job_free(job);
    }
}

/* ---- turns ---- */

static int start_python(mu_actor *self, void *state, const mu_value *args)
{
    struct python_actor *actor = state;
    mu_address address;
    mu_node *node = NULL;
    int has_name = 0;

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
    (void)mu_value_get_bool(mu_value_at(args, MUPY_START_NAMED), &has_name);
    return has_name ? mu_actor_timer(self, MAKING_MS, MAKING) : 0;
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
    job->reply = mu_actor_reply_later(self);
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
    answer_done(self, actor->lane, false);
    return 0;
}

/* One that was started again is made without being asked, too. */
static void make_python(struct mupy_lane *lane)
{
    struct mupy_job *job = calloc(1, sizeof *job);
    mu_value *args = mu_value_list();

    if (job == NULL || args == NULL ||
        mu_value_append(args, mu_value_string("muster.ready")) != 0 ||
        mu_value_append(args, mu_value_int(MUPY_CALL_ONE_WAY)) != 0 ||
        mu_value_append(args, mu_value_int(0)) != 0 ||
        mu_value_append(args, mu_value_int(0)) != 0) {
        free(job);
        mu_value_free(args);
        return;
    }
    job->args = args;
    if (mupy_lane_put(lane, job) != 0)
        mupy_job_free(job);
}

static int flush_python(mu_actor *self, void *state, const mu_value *args)
{
    (void)args;
    answer_done(self, ((struct python_actor *)state)->lane, true);
    return 0;
}

static void on_python_notice(mu_actor *self, void *state, const mu_notice *notice)
{
    struct mupy_lane *lane = ((struct python_actor *)state)->lane;

    if (notice->kind == MU_NOTICE_TIMER && notice->token == MAKING)
        make_python(lane);
    else if (notice->kind == MU_NOTICE_TIMER)
        answer_done(self, lane, true);
}

static void stop_python(mu_actor *self, void *state, const mu_error *why)
{
    struct mupy_lane *lane = ((struct python_actor *)state)->lane;
    bool ends;

    (void)self;
    (void)give_done(lane, &ends);
    refuse_queued(lane, why);
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
