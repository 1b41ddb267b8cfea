/* Cluster specs that change during a test; for tests/cluster only. */
#ifndef MU_TESTS_CLUSTER_SPECS_H
#define MU_TESTS_CLUSTER_SPECS_H

#include "tests/support/story.h"

enum { SPECS_MAX = 32 };

static mu_cluster *specs[SPECS_MAX];
static unsigned specs_count;

/* The present spec of a task without one task, or with one, or with another address.
 * Freed when the test is over. */
static inline mu_cluster *spec_with(const struct cluster_task *task, const char *type,
                                    int index, const char *address)
{
    const mu_cluster *from = task->spec != NULL ? task->spec : task->cluster->spec;
    mu_cluster *spec = mu_cluster_new();
    const char *at_type;
    const char *at_address;
    int at_index;

    assert_non_null(spec);
    assert_true(specs_count < SPECS_MAX);
    specs[specs_count++] = spec;
    for (size_t i = 0; mu_cluster_task_at(from, i, &at_type, &at_index, &at_address) == 0;
         i++)
        if (strcmp(at_type, type) != 0 || at_index != index)
            assert_int_equal(mu_cluster_add(spec, at_type, at_index, at_address, NULL),
                             0);
    if (address != NULL)
        assert_int_equal(mu_cluster_add(spec, type, index, address, NULL), 0);
    return spec;
}

static inline int free_specs(void **state)
{
    (void)state;
    while (specs_count > 0)
        mu_cluster_free(specs[--specs_count]);
    return 0;
}

static inline void learn(struct cluster_task *task, const char *type, int index,
                         const char *address)
{
    assert_int_equal(cluster_learn(task, spec_with(task, type, index, address), NULL), 0);
}

/* Up, with a coordination service on the chief. */
static inline struct cluster *begin_service(const struct cluster_options *options)
{
    struct cluster *cluster = cluster_new(1, options);

    cluster_start_all(cluster);
    assert_true(cluster_settle(cluster));
    return cluster;
}

#define BEGIN_SERVICE(...) \
    begin_service(&(struct cluster_options){.hosts = "chief:0", __VA_ARGS__})

#endif
