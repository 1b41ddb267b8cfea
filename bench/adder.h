/* Threads that add to a small variable without end, as training does, and what they
 * notice: how many adds were answered, and how long one took at most. They are several,
 * as the rate of one alone depends on which threads happen to share a core. */
#ifndef MUSTER_BENCH_ADDER_H
#define MUSTER_BENCH_ADDER_H

#include "bench/cluster.h"

#include <pthread.h>
#include <stdatomic.h>

enum { ADDER_THREADS = 4, ADDER_ELEMENTS_MAX = 512 };

struct adder {
    pthread_t threads[ADDER_THREADS];
    mu_variable *variable;
    size_t bytes;
    _Atomic bool stops;
    _Atomic uint64_t adds;
    _Atomic uint64_t longest_ns;
};

static inline mu_variable *adder_open_floats(mu_node *node, const char *name,
                                             uint64_t elements, uint32_t shards)
{
    const mu_variable_spec spec = {
        .name = name, .dtype = MU_F32, .rank = 1, .dims = &elements, .shards = shards};
    mu_variable *variable = NULL;
    mu_error error;

    cluster_check(mu_variable_open(node, &spec, 60000, &error, &variable), &error);
    return variable;
}

static inline void adder_add(struct adder *adder)
{
    static const float ones[ADDER_ELEMENTS_MAX] = {1};
    uint64_t start_ns = bench_now_ns();
    uint64_t for_ns;
    mu_error error;

    cluster_check(mu_variable_add(adder->variable, ones, adder->bytes, 60000, &error),
                  &error);
    for_ns = bench_now_ns() - start_ns;
    atomic_fetch_add(&adder->adds, 1);
    if (for_ns > atomic_load(&adder->longest_ns))
        atomic_store(&adder->longest_ns, for_ns);
}

static inline void *adder_main(void *arg)
{
    struct adder *adder = arg;

    while (!atomic_load(&adder->stops))
        adder_add(adder);
    return NULL;
}

/* Elements are float; `adder` is zero. */
static inline void adder_begin(struct adder *adder, mu_node *node, uint64_t elements,
                               uint32_t shards)
{
    adder->variable = adder_open_floats(node, "small", elements, shards);
    adder->bytes = (size_t)elements * sizeof(float);
    for (int i = 0; i < ADDER_THREADS; i++)
        if (pthread_create(&adder->threads[i], NULL, adder_main, adder) != 0)
            cluster_die("thread", "none is left");
}

static inline void adder_end(struct adder *adder)
{
    atomic_store(&adder->stops, true);
    for (int i = 0; i < ADDER_THREADS; i++)
        (void)pthread_join(adder->threads[i], NULL);
    mu_variable_close(adder->variable);
}

/* The rate of adds while `work` runs, and how long that took, in seconds. */
static inline double adder_rate_beside(struct adder *adder, void (*work)(void *arg),
                                       void *arg, double *ret_s)
{
    uint64_t before = atomic_load(&adder->adds);
    uint64_t start_ns = bench_now_ns();
    uint64_t end_ns;

    work(arg);
    end_ns = bench_now_ns();
    *ret_s = (double)(end_ns - start_ns) / 1e9;
    return bench_rate(atomic_load(&adder->adds) - before, start_ns, end_ns);
}

#endif
