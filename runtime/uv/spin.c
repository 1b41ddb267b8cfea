/* When it pays. Each wait is noted, also one that was slept through: as long as most of
 * the last eight were short, the next one is expected to be. A spin in vain is taken off
 * a budget that grows with time, by 1 %, and a spin that was not adds to it: so an idle
 * node spins next to never, and one whose waits vary goes on. The thread yields between
 * two looks; a yield that takes long gave the core to somebody else, who needs it, and
 * then nobody spins for a while. */
#include "runtime/uv/spin.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    SHORT_FACTOR = 4, /* a wait with a sleep is short up to so many spins */
    HISTORY_MASK = 0xff,
    SHORT_MIN = 5,     /* of the waits in the history */
    BUDGET_PART = 100, /* it grows by a hundredth of the time, */
    BUDGET_SPINS = 20, /* up to so many spins */
    YIELD_LONG_NS = 100000,
    BLOCKED_NS = 20000000
};

#define GROUP_MAX 1000
#define TO_TEXT_OF(number) #number
#define TO_TEXT(number) TO_TEXT_OF(number)

/* ---- Cores ---- */

/* "QUOTA PERIOD", in time of processors and on the clock, or "max PERIOD". Returns the
 * whole cores that this is, at least 1; 0: no limit, or no such file. */
static unsigned read_quota(const char *path)
{
    long long quota = 0;
    long long period = 0;
    unsigned cores = 0;
    FILE *file = fopen(path, "r");

    if (file == NULL)
        return 0;
    if (fscanf(file, "%lld %lld", &quota, &period) == 2 && quota > 0 && period > 0)
        cores = (unsigned)(quota / period) + (quota < period);
    (void)fclose(file);
    return cores;
}

/* The name of the own control group, "" when it is not known. */
static void read_control_group(const char *groups, char *out)
{
    FILE *file = fopen(groups, "r");

    out[0] = '\0';
    if (file == NULL)
        return;
    if (fscanf(file, "0::%" TO_TEXT(GROUP_MAX) "s", out) != 1)
        out[0] = '\0';
    (void)fclose(file);
}

unsigned mu__spin_quota(const char *groups, const char *root)
{
    char group[GROUP_MAX + 1];
    char path[2 * GROUP_MAX];
    unsigned least = 0;
    char *slash;

    read_control_group(groups, group);
    do {
        unsigned quota;

        (void)snprintf(path, sizeof path, "%.500s%s/cpu.max", root, group);
        quota = read_quota(path);
        least = quota != 0 && (least == 0 || quota < least) ? quota : least;
        slash = strrchr(group, '/');
        if (slash != NULL)
            *slash = '\0';
    } while (slash != NULL);
    return least;
}

unsigned mu__spin_cores(void)
{
    unsigned cores = uv_available_parallelism();
    unsigned quota = mu__spin_quota("/proc/self/cgroup", "/sys/fs/cgroup");

    return quota != 0 && quota < cores ? quota : cores;
}

/* ---- Spinning ---- */

void mu__spin_init(struct mu__spin *spin, uint32_t spin_us)
{
    if (spin_us == MU__SPIN_AUTO)
        spin_us = mu__spin_cores() > 1 ? MU__SPIN_US : 0;
    spin->length_ns = (uint64_t)spin_us * 1000;
    atomic_init(&spin->taken, false);
    atomic_init(&spin->history, 0);
    atomic_init(&spin->budget_ns, (int64_t)spin->length_ns);
    atomic_init(&spin->filled_ns, uv_hrtime());
    atomic_init(&spin->blocked_until_ns, 0);
}

/* All that is remembered is a hint: a note that two threads make at once may be lost. */
static void note_spin_wait(struct mu__spin *spin, bool was_short)
{
    unsigned history = atomic_load_explicit(&spin->history, memory_order_relaxed);

    atomic_store_explicit(&spin->history, (history << 1 | was_short) & HISTORY_MASK,
                          memory_order_relaxed);
}

static bool are_short(unsigned history)
{
    unsigned count = 0;

    for (; history != 0; history &= history - 1)
        count++;
    return count >= SHORT_MIN;
}

static void add_budget(struct mu__spin *spin, int64_t by_ns)
{
    int64_t high_ns = (int64_t)spin->length_ns * BUDGET_SPINS;
    int64_t now_ns = atomic_load_explicit(&spin->budget_ns, memory_order_relaxed) + by_ns;

    atomic_store_explicit(&spin->budget_ns, now_ns < high_ns ? now_ns : high_ns,
                          memory_order_relaxed);
}

static bool does_spin_pay(struct mu__spin *spin, uint64_t now_ns)
{
    uint64_t filled_ns = atomic_load_explicit(&spin->filled_ns, memory_order_relaxed);

    if (!are_short(atomic_load_explicit(&spin->history, memory_order_relaxed)) ||
        now_ns < atomic_load_explicit(&spin->blocked_until_ns, memory_order_relaxed))
        return false;
    if (now_ns > filled_ns) {
        atomic_store_explicit(&spin->filled_ns, now_ns, memory_order_relaxed);
        add_budget(spin, (int64_t)((now_ns - filled_ns) / BUDGET_PART));
    }
    return atomic_load_explicit(&spin->budget_ns, memory_order_relaxed) >=
           (int64_t)spin->length_ns;
}

/* With the spin taken. */
static bool spin_on(struct mu__spin *spin, bool (*is_ready)(void *arg), void *arg,
                    uint64_t begun_ns)
{
    uint64_t end_ns = begun_ns + spin->length_ns;
    uint64_t now_ns = begun_ns;

    while (now_ns < end_ns) {
        uint64_t before_ns = now_ns;

        if (is_ready(arg)) {
            add_budget(spin, (int64_t)spin->length_ns / SHORT_FACTOR);
            note_spin_wait(spin, true);
            return true;
        }
        (void)sched_yield();
        now_ns = uv_hrtime();
        if (now_ns - before_ns > YIELD_LONG_NS) {
            atomic_store_explicit(&spin->blocked_until_ns, now_ns + BLOCKED_NS,
                                  memory_order_relaxed);
            break;
        }
    }
    add_budget(spin, -(int64_t)(now_ns - begun_ns));
    return false;
}

bool mu__spin_wait(struct mu__spin *spin, bool (*is_ready)(void *arg), void *arg,
                   uint64_t *ret_begun_ns)
{
    bool ready = false;

    if (spin->length_ns == 0)
        return false;
    *ret_begun_ns = uv_hrtime();
    if (!does_spin_pay(spin, *ret_begun_ns) ||
        atomic_exchange_explicit(&spin->taken, true, memory_order_acquire))
        return false;
    ready = spin_on(spin, is_ready, arg, *ret_begun_ns);
    atomic_store_explicit(&spin->taken, false, memory_order_release);
    return ready;
}

void mu__spin_slept(struct mu__spin *spin, uint64_t begun_ns)
{
    if (spin->length_ns != 0)
        note_spin_wait(spin, uv_hrtime() - begun_ns < SHORT_FACTOR * spin->length_ns);
}

static bool try_sem(void *arg)
{
    return uv_sem_trywait(arg) == 0;
}

void mu__spin_sem_wait(struct mu__spin *spin, uv_sem_t *sem, uint64_t begun_ns)
{
    if (begun_ns == 0 && mu__spin_wait(spin, try_sem, sem, &begun_ns))
        return;
    uv_sem_wait(sem);
    mu__spin_slept(spin, begun_ns);
}
