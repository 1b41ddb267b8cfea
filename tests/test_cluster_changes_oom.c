/* Memory runs out while a cluster changes: each allocation fails once. Nothing breaks,
 * and when the same cluster is found again all of it is taken. */
#include "tests/sim/inner.h"
#include "tests/story.h"

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *memory, size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *memory, size_t size);

static long countdown = -1;     /* which allocation fails, once; not the simulator's */
static bool happened;

static bool fails(void)
{
    if (countdown < 0 || sim_own_memory > 0 || countdown-- > 0)
        return false;
    happened = true;
    return true;
}

void *__wrap_malloc(size_t size)
{
    return fails() ? NULL : __real_malloc(size);
}

void *__wrap_calloc(size_t count, size_t size)
{
    return fails() ? NULL : __real_calloc(count, size);
}

void *__wrap_realloc(void *memory, size_t size)
{
    return fails() ? NULL : __real_realloc(memory, size);
}

static mu_cluster *make_spec(const struct cluster *cluster, const char *added)
{
    mu_cluster *spec = mu_cluster_new();

    assert_int_equal(mu_cluster_add(spec, "chief", 0, cluster->chief->address, NULL), 0);
    assert_int_equal(mu_cluster_add(spec, "ps", 0, cluster->servers[0]->address, NULL),
                     0);
    assert_int_equal(mu_cluster_add(spec, "worker", 0, cluster->workers[0]->address,
                                    NULL), 0);
    assert_int_equal(mu_cluster_add(spec, "worker", 2, "tcp://elsewhere:1", NULL), 0);
    assert_int_equal(mu_cluster_add(spec, "worker", 3, added, NULL), 0);
    return spec;
}

/* Worker 1 goes, 2, which is away, moves, and 3 comes. True when an allocation failed. */
static bool play(long n)
{
    struct cluster *cluster =
        cluster_new(1, &(struct cluster_options){.workers = 3, .servers = 1,
                                                 .hosts = "chief:0", .starves = true});
    struct cluster_task *late = cluster_add(cluster, "worker", 3, "late");
    mu_cluster *spec = make_spec(cluster, late->address);
    struct cluster_closure *closures[6];
    mu_error error;
    int rv;

    cluster_start_all(cluster);
    sim_crash(late->node);
    sim_crash(cluster->workers[2]->node);
    run_until(cluster, 1000);
    set_work_ms(cluster, 100);
    open_at(cluster->chief);
    schedule(cluster->chief, "square", 6, closures);
    run_for(cluster, 50);

    happened = false;
    countdown = n;
    rv = cluster_learn(cluster->chief, spec, &error);
    countdown = -1;
    assert_true(rv == 0 || rv == -MU_ENOMEM || rv == -MU_EEXHAUSTED);
    if (rv != 0)
        assert_int_equal(cluster_learn(cluster->chief, spec, &error), 0);
    late->spec = spec;
    cluster_start(late);
    assert_int_equal(join(cluster->chief), 0);
    expect_squares(closures, 6);
    assert_int_equal(mu_cluster_equal(cluster->chief->member.cluster, spec), 1);
    run_for(cluster, 2000);
    assert_true(worker_number(cluster->chief, 3, "window") > 0);
    assert_string_equal(cluster_check(cluster), "");
    cluster_free(cluster);
    mu_cluster_free(spec);
    return happened;
}

static void test_each_allocation_fails_once(void **state)
{
    long n = 0;

    (void)state;
    while (play(n))
        n++;
    assert_true(n > 20);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_allocation_fails_once),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
