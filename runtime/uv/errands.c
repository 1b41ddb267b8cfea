#include "runtime/uv/errands.h"

#include "runtime/uv/thread.h"

#include <muster/error.h>

#include <assert.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

struct mu__errands {
    uv_async_t wake;            /* first: handles cast */
    struct mu__errand *first;   /* that have run, in order */
    struct mu__errand *last;
    void (*closed)(void *arg);
    void *arg;
};

struct lane {
    struct mu__errand *first;   /* that wait, in order */
    struct mu__errand *last;
    unsigned threads;
};

/* Threads are the process's, as those of libuv's pool are. `lock` guards the lanes, and
 * of errands and their homes what is ours. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct lane lanes[MU__LANES];

/* ---- A child that was forked ---- */

static void before_fork(void)
{
    (void)pthread_mutex_lock(&lock);
}

static void after_fork(void)
{
    (void)pthread_mutex_unlock(&lock);
}

/* Its threads have stayed behind. */
static void begin_in_child(void)
{
    memset(lanes, 0, sizeof lanes);
    (void)pthread_mutex_unlock(&lock);
}

static void on_first_open(void)
{
    (void)pthread_atfork(before_fork, after_fork, begin_in_child);
}

/* ---- Queues ---- */

static void put(struct mu__errand **first, struct mu__errand **last,
                struct mu__errand *errand)
{
    errand->next = NULL;
    if (*first == NULL)
        *first = errand;
    else
        (*last)->next = errand;
    *last = errand;
}

static struct mu__errand *take(struct mu__errand **first)
{
    struct mu__errand *errand = *first;

    if (errand != NULL)
        *first = errand->next;
    return errand;
}

static void take_out(struct mu__errand **first, struct mu__errand **last,
                     struct mu__errand *errand)
{
    struct mu__errand *before = NULL;

    for (struct mu__errand *at = *first; at != errand; at = at->next)
        before = at;
    if (before == NULL)
        *first = errand->next;
    else
        before->next = errand->next;
    if (*last == errand)
        *last = before;
}

/* ---- On a thread ---- */

/* The home of an errand that is wanted is open: it closes after its last errand. */
static bool give_back_locked(struct mu__errand *errand)
{
    struct mu__errands *home = errand->home;

    errand->phase = MU__ERRAND_HAS_RUN;
    if (home == NULL)
        return false;
    put(&home->first, &home->last, errand);
    (void)uv_async_send(&home->wake);
    return true;
}

static void *work(void *arg)
{
    struct lane *lane = arg;
    struct mu__errand *errand;

    (void)pthread_mutex_lock(&lock);
    while ((errand = take(&lane->first)) != NULL) {
        errand->phase = MU__ERRAND_RUNS;
        (void)pthread_mutex_unlock(&lock);
        errand->run(errand);
        (void)pthread_mutex_lock(&lock);
        if (give_back_locked(errand))
            continue;
        (void)pthread_mutex_unlock(&lock);
        errand->dropped(errand);
        (void)pthread_mutex_lock(&lock);
    }
    lane->threads--;
    (void)pthread_mutex_unlock(&lock);
    return NULL;
}

static bool start_thread(struct lane *lane)
{
    pthread_t thread;

    if (mu__thread_start(work, lane, &thread) != 0)
        return false;
    (void)pthread_detach(thread);
    return true;
}

/* ---- In the loop ---- */

/* Each done may drop others, so one is taken at a time. */
static void on_wake(uv_async_t *wake)
{
    struct mu__errands *errands = (struct mu__errands *)wake;
    struct mu__errand *errand;

    for (;;) {
        (void)pthread_mutex_lock(&lock);
        errand = take(&errands->first);
        (void)pthread_mutex_unlock(&lock);
        if (errand == NULL)
            return;
        errand->done(errand);
    }
}

int mu__errands_open(uv_loop_t *loop, struct mu__errands **ret_errands)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    struct mu__errands *errands = calloc(1, sizeof *errands);

    if (errands == NULL)
        return -MU_ENOMEM;
    (void)pthread_once(&once, on_first_open);
    if (uv_async_init(loop, &errands->wake, on_wake) != 0) {
        free(errands);
        return -MU_ENOMEM;
    }
    uv_unref((uv_handle_t *)&errands->wake);
    *ret_errands = errands;
    return 0;
}

int mu__errands_start(struct mu__errands *errands, struct mu__errand *errand)
{
    struct lane *lane = &lanes[errand->lane];
    int rv = 0;

    errand->home = errands;
    errand->phase = MU__ERRAND_WAITS;
    (void)pthread_mutex_lock(&lock);
    put(&lane->first, &lane->last, errand);
    if (lane->threads < MU__LANE_THREADS_MAX && start_thread(lane))
        lane->threads++;
    if (lane->threads == 0) {
        take_out(&lane->first, &lane->last, errand);
        rv = -MU_EEXHAUSTED;
    }
    (void)pthread_mutex_unlock(&lock);
    return rv;
}

unsigned mu__errand_waits_for(struct mu__errand *errand)
{
    unsigned threads;

    (void)pthread_mutex_lock(&lock);
    threads = errand->phase == MU__ERRAND_WAITS ? lanes[errand->lane].threads : 0;
    (void)pthread_mutex_unlock(&lock);
    return threads;
}

void mu__errand_drop(struct mu__errand *errand)
{
    struct lane *lane = &lanes[errand->lane];
    struct mu__errands *home = errand->home;
    bool runs;

    assert(home != NULL);
    (void)pthread_mutex_lock(&lock);
    runs = errand->phase == MU__ERRAND_RUNS;
    if (errand->phase == MU__ERRAND_WAITS)
        take_out(&lane->first, &lane->last, errand);
    else if (errand->phase == MU__ERRAND_HAS_RUN)
        take_out(&home->first, &home->last, errand);
    errand->home = NULL;
    (void)pthread_mutex_unlock(&lock);
    if (!runs)
        errand->dropped(errand);
}

static void on_closed(uv_handle_t *handle)
{
    struct mu__errands *errands = (struct mu__errands *)handle;
    void (*closed)(void *arg) = errands->closed;
    void *arg = errands->arg;

    free(errands);
    closed(arg);
}

void mu__errands_close(struct mu__errands *errands, void (*closed)(void *arg), void *arg)
{
    assert(errands->first == NULL);
    errands->closed = closed;
    errands->arg = arg;
    uv_close((uv_handle_t *)&errands->wake, on_closed);
}
