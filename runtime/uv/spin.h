/* A bounded spin before a thread sleeps, which costs a wake of some 25 us and more.
 *
 * A thread that has to wait looks for a short time whether what it waits for is there. It
 * does so only where this pays: the last waits were short, another core is free, and what
 * spinning in vain has cost is little. One spin serves one kind of wait; of the threads
 * that share it one spins at a time. Any thread. */
#ifndef MU_RUNTIME_SPIN_UV_H
#define MU_RUNTIME_SPIN_UV_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

enum {
    MU__SPIN_US = 100, /* by itself, where the process may use two cores */
    MU__SPIN_US_MAX = 10000
};

#define MU__SPIN_AUTO UINT32_MAX

struct mu__spin {
    uint64_t length_ns;                 /* 0: never */
    atomic_bool taken;                  /* a thread spins */
    atomic_uint history;                /* of the last waits, a bit each: it was short */
    _Atomic(int64_t) budget_ns;         /* what spinning in vain may cost, */
    _Atomic(uint64_t) filled_ns;        /* as of this time */
    _Atomic(uint64_t) blocked_until_ns; /* another thread wanted the core */
};

/* Before threads use it. `spin_us` is a time, 0 for never, or MU__SPIN_AUTO. */
void mu__spin_init(struct mu__spin *spin, uint32_t spin_us);

/* How many cores this process may keep busy, by its affinity and its control group, at
 * least 1. Reads files. */
unsigned mu__spin_cores(void);

/* The lowest quota, in whole cores, of the control group that the file `groups` names and
 * of all around it, which are folders of `root` (version 2); 0: there is none. */
unsigned mu__spin_quota(const char *groups, const char *root);

/* Spin until `is_ready` or for as long as it pays: true once it is ready. False: sleep,
 * and call mu__spin_slept with *ret_begun_ns afterwards. */
bool mu__spin_wait(struct mu__spin *spin, bool (*is_ready)(void *arg), void *arg,
                   uint64_t *ret_begun_ns);
void mu__spin_slept(struct mu__spin *spin, uint64_t begun_ns);

/* uv_sem_wait, with a spin before it, unless the thread has spun since `begun_ns`; 0: it
 * has not. */
void mu__spin_sem_wait(struct mu__spin *spin, uv_sem_t *sem, uint64_t begun_ns);

/* For a spinning thread, between two looks. */
static inline void mu__spin_relax(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

#endif
