/* One lock and one condition. Each time that all have come is a generation: a thread that
 * wakes late sees from the number that its own is over, though the next one may have
 * begun already. */
#include "node/thread_barrier.h"

#include "node/deadline.h"

#include <assert.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <uv.h>

enum {
    NAMES_SHOWN = 4, /* of those missing, in a message */
    NAMES_BYTES = 320
};

struct participant {
    char name[MU__THREAD_NAME_BYTES];
    bool here;
    bool left; /* for good */
};

struct mu__thread_barrier {
    uv_mutex_t lock; /* guards all below */
    uv_cond_t moved; /* a generation is over, or the barrier is broken */
    uint64_t generation;
    unsigned here;
    bool broken;
    mu_error why;
    unsigned count;
    struct participant participants[];
};

struct mu__thread_barrier *mu__thread_barrier_new(unsigned count)
{
    struct mu__thread_barrier *barrier =
        calloc(1, sizeof *barrier + count * sizeof(struct participant));

    assert(count > 0);
    if (barrier == NULL || mu__lock_init(&barrier->lock, &barrier->moved) != 0) {
        free(barrier);
        return NULL;
    }
    barrier->count = count;
    return barrier;
}

void mu__thread_barrier_free(struct mu__thread_barrier *barrier)
{
    if (barrier == NULL)
        return;
    mu__lock_destroy(&barrier->lock, &barrier->moved);
    free(barrier);
}

void mu__thread_barrier_name(struct mu__thread_barrier *barrier, unsigned i,
                             const char *name)
{
    assert(i < barrier->count);
    (void)snprintf(barrier->participants[i].name, MU__THREAD_NAME_BYTES, "%s", name);
}

/* ---- under the lock ---- */

static void break_thread_barrier(struct mu__thread_barrier *barrier, const mu_error *why)
{
    if (barrier->broken)
        return;
    barrier->broken = true;
    barrier->why = *why;
    uv_cond_broadcast(&barrier->moved);
}

static void list_missing(const struct mu__thread_barrier *barrier, char *out, size_t size)
{
    size_t used = 0;
    unsigned shown = 0;

    out[0] = '\0';
    for (unsigned i = 0; i < barrier->count; i++) {
        const struct participant *p = &barrier->participants[i];

        if (p->here)
            continue;
        if (shown == NAMES_SHOWN) {
            (void)snprintf(out + used, size - used, " and %u more",
                           barrier->count - barrier->here - shown);
            return;
        }
        (void)snprintf(out + used, size - used, "%s%s", shown == 0 ? "" : ", ", p->name);
        used += strlen(out + used);
        shown++;
    }
}

static void break_late(struct mu__thread_barrier *barrier, int64_t timeout_ms)
{
    char missing[NAMES_BYTES];
    mu_error why;

    list_missing(barrier, missing, sizeof missing);
    (void)mu_error_set(&why, -MU_EDEADLINE,
                       "%u of %u had come to the barrier after %" PRId64
                       " ms; missing: %s",
                       barrier->here, barrier->count, timeout_ms, missing);
    why.kind = MU_ERROR_LIMIT;
    break_thread_barrier(barrier, &why);
}

static void break_left(struct mu__thread_barrier *barrier, unsigned i)
{
    mu_error why;

    (void)mu_error_set(&why, -MU_EABORTED,
                       "%s has ended, and will not come to the barrier",
                       barrier->participants[i].name);
    (void)snprintf(why.task, sizeof why.task, "%s", barrier->participants[i].name);
    break_thread_barrier(barrier, &why);
}

static void break_if_left(struct mu__thread_barrier *barrier)
{
    for (unsigned i = 0; i < barrier->count && !barrier->broken; i++)
        if (barrier->participants[i].left)
            break_left(barrier, i);
}

/* The last participant has come: the generation ends for all. */
static void open_thread_barrier(struct mu__thread_barrier *barrier)
{
    barrier->generation++;
    barrier->here = 0;
    for (unsigned i = 0; i < barrier->count; i++)
        barrier->participants[i].here = false;
    uv_cond_broadcast(&barrier->moved);
}

static void wait_for_rest(struct mu__thread_barrier *barrier, int64_t timeout_ms)
{
    uint64_t generation = barrier->generation;
    uint64_t deadline_ns = mu__deadline_in(timeout_ms);

    while (!barrier->broken && barrier->generation == generation)
        if (!mu__deadline_wait(deadline_ns, &barrier->moved, &barrier->lock))
            break_late(barrier, timeout_ms);
}

static int arrive_at_thread_barrier(struct mu__thread_barrier *barrier, unsigned i,
                                    int64_t timeout_ms, mu_error *ret_error)
{
    struct participant *self = &barrier->participants[i];
    uint64_t generation = barrier->generation;

    if (self->here && !barrier->broken)
        return mu_error_set(ret_error, -MU_EPRECONDITION,
                            "%s is at the barrier already, with another thread",
                            self->name);
    break_if_left(barrier);
    if (!barrier->broken) {
        self->here = true;
        barrier->here++;
        if (barrier->here == barrier->count)
            open_thread_barrier(barrier);
        else
            wait_for_rest(barrier, timeout_ms);
    }
    if (barrier->generation != generation)
        return 0;
    if (ret_error != NULL)
        *ret_error = barrier->why;
    return barrier->why.code;
}

/* ---- from outside ---- */

int mu__thread_barrier_wait(struct mu__thread_barrier *barrier, unsigned i,
                            int64_t timeout_ms, mu_error *ret_error)
{
    int rv;

    assert(i < barrier->count);
    uv_mutex_lock(&barrier->lock);
    rv = arrive_at_thread_barrier(barrier, i, timeout_ms, ret_error);
    uv_mutex_unlock(&barrier->lock);
    return rv;
}

void mu__thread_barrier_break(struct mu__thread_barrier *barrier, const mu_error *why)
{
    assert(why->code < 0);
    uv_mutex_lock(&barrier->lock);
    break_thread_barrier(barrier, why);
    uv_mutex_unlock(&barrier->lock);
}

void mu__thread_barrier_leave(struct mu__thread_barrier *barrier, unsigned i)
{
    assert(i < barrier->count);
    uv_mutex_lock(&barrier->lock);
    barrier->participants[i].left = true;
    if (barrier->here > 0)
        break_if_left(barrier);
    uv_mutex_unlock(&barrier->lock);
}

unsigned mu__thread_barrier_here(struct mu__thread_barrier *barrier)
{
    unsigned here;

    uv_mutex_lock(&barrier->lock);
    here = barrier->here;
    uv_mutex_unlock(&barrier->lock);
    return here;
}
