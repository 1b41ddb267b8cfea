/* Lanes, and the threads that they share. An actor that has nothing to do has no thread.
 *
 * A few threads serve all lanes of a process. When all of them are busy for some time,
 * because methods wait for other actors, or sleep, there is one more, up to a limit. */
#include "hosting/hosting.h"

#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
    THREADS_AT_ONCE = 2,
    THREADS_MAX = 64,
    STUCK_MS = 5,      /* all threads are busy for so long: there is one more */
    IDLE_MS = 10000,   /* a thread without work ends */
    BATCH_JOBS = 64,   /* of one lane, then others have their turn */
    QUEUED_MAX = 10000 /* calls that wait in one lane */
};

static pthread_mutex_t pool_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t lanes_wait; /* for a thread */
static pthread_cond_t watch_wakes;
static pthread_once_t pool_once = PTHREAD_ONCE_INIT;
static struct mupy_lane *queue_first;
static struct mupy_lane *queue_last;
static unsigned threads;
static unsigned threads_idle;
static uint64_t lanes_served;

/* ---- jobs ---- */

void mupy_job_push(struct mupy_jobs *jobs, struct mupy_job *job)
{
    job->next = NULL;
    if (jobs->last == NULL)
        jobs->first = job;
    else
        jobs->last->next = job;
    jobs->last = job;
    jobs->count++;
}

/* In front of all others. */
static void unpop_job(struct mupy_jobs *jobs, struct mupy_job *job)
{
    job->next = jobs->first;
    jobs->first = job;
    if (jobs->last == NULL)
        jobs->last = job;
    jobs->count++;
}

struct mupy_job *mupy_job_pop(struct mupy_jobs *jobs)
{
    struct mupy_job *job = jobs->first;

    if (job == NULL)
        return NULL;
    jobs->first = job->next;
    if (jobs->first == NULL)
        jobs->last = NULL;
    jobs->count--;
    return job;
}

void mupy_job_free(struct mupy_job *job)
{
    mu_value_free(job->args);
    mu_value_free(job->result);
    mu_value_free(job->changes);
    free(job->error);
    free(job);
}

/* ---- the threads ---- */

static void *serve_lanes(void *unused);

static void start_pool_thread(void)
{
    pthread_t thread;

    if (pthread_create(&thread, NULL, serve_lanes, NULL) != 0)
        return;
    (void)pthread_detach(thread);
    threads++;
}

/* With the lock. The lane may run one more call. */
static bool may_lane_run(const struct mupy_lane *lane)
{
    return lane->queued.first != NULL && !lane->is_dying && !lane->is_closed &&
           lane->active < (lane->is_made ? lane->concurrency : 1);
}

static void queue_lane(struct mupy_lane *lane)
{
    if (lane->is_queued || !may_lane_run(lane))
        return;
    lane->is_queued = true;
    lane->holders++;
    lane->next = NULL;
    if (queue_first == NULL)
        queue_first = lane;
    else
        queue_last->next = lane;
    queue_last = lane;
    if (threads_idle > 0)
        (void)pthread_cond_signal(&lanes_wait);
    else if (threads < THREADS_AT_ONCE)
        start_pool_thread();
    else
        (void)pthread_cond_signal(&watch_wakes);
}

static struct mupy_lane *unqueue_lane(void)
{
    struct mupy_lane *lane = queue_first;

    queue_first = lane->next;
    lane->is_queued = false;
    lanes_served++;
    return lane;
}

/* More threads while lanes wait and no thread takes one. */
static void *watch_threads(void *unused)
{
    const struct timespec pause = {0, STUCK_MS * 1000000L};

    (void)pthread_mutex_lock(&pool_lock);
    while (true) {
        uint64_t served = lanes_served;

        if (queue_first == NULL) {
            (void)pthread_cond_wait(&watch_wakes, &pool_lock);
            continue;
        }
        (void)pthread_mutex_unlock(&pool_lock);
        (void)nanosleep(&pause, NULL);
        (void)pthread_mutex_lock(&pool_lock);
        if (queue_first != NULL && lanes_served == served && threads < THREADS_MAX)
            start_pool_thread();
    }
    return unused;
}

static void start_pool(void)
{
    pthread_condattr_t attributes;
    pthread_t watcher;

    (void)pthread_condattr_init(&attributes);
    (void)pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    (void)pthread_cond_init(&lanes_wait, &attributes);
    (void)pthread_cond_init(&watch_wakes, &attributes);
    (void)pthread_condattr_destroy(&attributes);
    if (pthread_create(&watcher, NULL, watch_threads, NULL) == 0)
        (void)pthread_detach(watcher);
}

/* Wait for a lane; false: there was none for a long time. */
static bool wait_for_lane(void)
{
    struct timespec until;
    int rv = 0;

    (void)clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += IDLE_MS / 1000;
    threads_idle++;
    while (queue_first == NULL && rv == 0)
        rv = pthread_cond_timedwait(&lanes_wait, &pool_lock, &until);
    threads_idle--;
    return queue_first != NULL;
}

/* ---- lanes ---- */

/* With the lock, which is released; not with the GIL. */
static void release_lane(struct mupy_lane *lane)
{
    bool is_last = --lane->holders == 0;

    (void)pthread_mutex_unlock(&pool_lock);
    if (!is_last)
        return;
    if (lane->streams != NULL)
        mupy_drop_later(lane->streams);
    if (lane->object != NULL)
        mupy_drop_later(lane->object);
    mu_value_free(lane->start);
    mu_value_free(lane->saved);
    mu_node_unref(lane->node);
    free(lane->why);
    free(lane);
}

struct mupy_lane *mupy_lane_new(mu_node *node, const mu_address *address,
                                const mu_value *start)
{
    struct mupy_lane *lane = calloc(1, sizeof *lane);
    int64_t concurrency = 1;
    int64_t grade = MUPY_GRADE_PLAIN;
    const char *name = "";
    size_t size = 0;

    (void)pthread_once(&pool_once, start_pool);
    if (lane == NULL)
        return NULL;
    (void)mu_value_get_int(mu_value_at(start, MUPY_START_LANES), &concurrency);
    (void)mu_value_get_int(mu_value_at(start, MUPY_START_GRADE), &grade);
    (void)mu_value_get_string(mu_value_at(start, MUPY_START_NAME), &name, &size);
    (void)snprintf(lane->name, sizeof lane->name, "%.*s", (int)(size < 63 ? size : 63),
                   name);
    lane->holders = 1;
    lane->is_kept = grade == MUPY_GRADE_KEPT;
    lane->concurrency = concurrency < 1 ? 1 : (unsigned)concurrency;
    lane->node = mu_node_ref(node);
    lane->address = *address;
    lane->start = mu_value_ref(start);
    return lane;
}

int mupy_lane_put(struct mupy_lane *lane, struct mupy_job *job)
{
    int rv = 0;

    (void)pthread_mutex_lock(&pool_lock);
    if (lane->queued.count >= QUEUED_MAX) {
        rv = -MU_EEXHAUSTED;
    } else {
        mupy_job_push(&lane->queued, job);
        queue_lane(lane);
    }
    (void)pthread_mutex_unlock(&pool_lock);
    return rv;
}

struct mupy_jobs mupy_lane_take(struct mupy_lane *lane, bool *ret_ends)
{
    struct mupy_jobs done;

    (void)pthread_mutex_lock(&pool_lock);
    done = lane->done;
    lane->done = (struct mupy_jobs){0};
    lane->is_poked = false;
    *ret_ends = lane->active == 0 &&
                (lane->is_dying || (lane->ends && lane->queued.first == NULL));
    (void)pthread_mutex_unlock(&pool_lock);
    return done;
}

struct mupy_jobs mupy_lane_close(struct mupy_lane *lane)
{
    struct mupy_jobs queued;
    struct mupy_jobs done;
    struct mupy_job *job;

    (void)pthread_mutex_lock(&pool_lock);
    queued = lane->queued;
    done = lane->done;
    lane->queued = (struct mupy_jobs){0};
    lane->done = (struct mupy_jobs){0};
    lane->is_closed = true;
    if (lane->active > 0 && lane->pid != 0)
        (void)kill(lane->pid, SIGKILL); /* what runs is not wanted any more */
    release_lane(lane);
    while ((job = mupy_job_pop(&done)) != NULL)
        mupy_job_free(job);
    return queued;
}

void mupy_lane_die(struct mupy_lane *lane, const mu_error *why)
{
    (void)pthread_mutex_lock(&pool_lock);
    if (!lane->is_dying)
        lane->why = malloc(sizeof *why);
    if (!lane->is_dying && lane->why != NULL)
        *lane->why = *why;
    lane->is_dying = true;
    (void)pthread_mutex_unlock(&pool_lock);
}

void mupy_lane_made(struct mupy_lane *lane)
{
    (void)pthread_mutex_lock(&pool_lock);
    lane->is_made = true;
    (void)pthread_mutex_unlock(&pool_lock);
}

void mupy_lane_end(struct mupy_lane *lane)
{
    (void)pthread_mutex_lock(&pool_lock);
    lane->ends = true;
    (void)pthread_mutex_unlock(&pool_lock);
}

void mupy_lane_error(const struct mupy_lane *lane, mu_error *ret_error, int code, int ran,
                     const char *format, ...)
{
    va_list args;

    *ret_error = (mu_error){.code = code, .kind = MU_ERROR_ACTOR, .ran = ran};
    (void)snprintf(ret_error->task, sizeof ret_error->task, "/job:%s/task:%u",
                   lane->address.type, (unsigned)lane->address.index);
    (void)snprintf(ret_error->function, sizeof ret_error->function, "%s", lane->name);
    va_start(args, format);
    (void)vsnprintf(ret_error->message, sizeof ret_error->message, format, args);
    va_end(args);
}

/* Have the actor give the answers. If its mailbox is full, it does so anyway. */
static void poke_actor(struct mupy_lane *lane)
{
    mu_remote_value *value = NULL;

    if (mu_actor_request(lane->node, &lane->address, "flush", NULL, 60000, NULL,
                         &value) == 0)
        mu_remote_value_free(value);
}

void mupy_lane_done(struct mupy_lane *lane, struct mupy_job *job)
{
    struct mupy_job *dropped = NULL;
    bool pokes = false;

    (void)pthread_mutex_lock(&pool_lock);
    lane->active--;
    if (lane->is_closed) {
        dropped = job;
    } else {
        if (job->is_unbegun)
            unpop_job(&lane->queued, job);
        else
            mupy_job_push(&lane->done, job);
        pokes = !lane->is_poked;
        lane->is_poked = true;
    }
    queue_lane(lane);
    (void)pthread_mutex_unlock(&pool_lock);
    if (pokes)
        poke_actor(lane);
    if (dropped != NULL)
        mupy_job_free(dropped);
    (void)pthread_mutex_lock(&pool_lock);
    release_lane(lane);
}

/* Take the next call; other threads may take those after it, if there may be several. */
static struct mupy_job *begin_job(struct mupy_lane *lane)
{
    struct mupy_job *job;

    (void)pthread_mutex_lock(&pool_lock);
    job = may_lane_run(lane) ? mupy_job_pop(&lane->queued) : NULL;
    if (job != NULL) {
        lane->active++;
        lane->holders++;
        queue_lane(lane);
    }
    (void)pthread_mutex_unlock(&pool_lock);
    return job;
}

/* Take the next calls of a process that may go ahead. */
static struct mupy_jobs begin_jobs_ahead(struct mupy_lane *lane)
{
    struct mupy_jobs jobs = {0};

    (void)pthread_mutex_lock(&pool_lock);
    if (lane->pid != 0 && may_lane_run(lane))
        while (jobs.count < BATCH_JOBS && lane->queued.first != NULL &&
               mupy_job_goes_ahead(lane->queued.first)) {
            mupy_job_push(&jobs, mupy_job_pop(&lane->queued));
            lane->active++;
            lane->holders++;
        }
    (void)pthread_mutex_unlock(&pool_lock);
    return jobs;
}

/* How many it were. */
static size_t run_jobs(struct mupy_lane *lane)
{
    struct mupy_jobs jobs = begin_jobs_ahead(lane);
    size_t count = jobs.count;
    struct mupy_job *job;

    if (count > 0) {
        mupy_jobs_run_ahead(lane, &jobs);
        return count;
    }
    job = begin_job(lane);
    if (job == NULL)
        return 0;
    mupy_job_run(lane, job);
    return 1;
}

static void run_lane(struct mupy_lane *lane)
{
    size_t done = 0;
    size_t count;

    mupy_enter();
    mupy_drop_now();
    do {
        count = run_jobs(lane);
        done += count;
    } while (count > 0 && done < BATCH_JOBS);
    mupy_leave();
}

static void *serve_lanes(void *unused)
{
    (void)pthread_mutex_lock(&pool_lock);
    while (queue_first != NULL || wait_for_lane()) {
        struct mupy_lane *lane = unqueue_lane();

        (void)pthread_mutex_unlock(&pool_lock);
        run_lane(lane);
        (void)pthread_mutex_lock(&pool_lock);
        queue_lane(lane);
        release_lane(lane);
        (void)pthread_mutex_lock(&pool_lock);
    }
    threads--;
    (void)pthread_mutex_unlock(&pool_lock);
    return unused;
}
