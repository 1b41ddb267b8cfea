/* Memory runs out while a cluster changes: each allocation fails once. Nothing breaks,
 * and when the same cluster is found again all of it is taken. */
#include "sim/world/inner.h"
#include "tests/support/story.h"
#include "tests/support/wrap_malloc.h"

static long countdown = -1; /* which allocation fails, once; not the simulator's */
static bool happened;

static bool malloc_fails(void)
{
    if (countdown < 0 || sim_own_memory > 0 || countdown-- > 0)
        return false;
    happened = true;
    return true;
}

static mu_cluster *make_spec(const struct cluster *cluster, const char *added)
{
    mu_cluster *spec = mu_cluster_new();

    assert_int_equal(mu_cluster_add(spec, "chief", 0, cluster->chief->address, NULL), 0);
    assert_int_equal(mu_cluster_add(spec, "ps", 0, cluster->servers[0]->address, NULL),
                     0);
    assert_int_equal(
        mu_cluster_add(spec, "worker", 0, cluster->workers[0]->address, NULL), 0);
    assert_int_equal(mu_cluster_add(spec, "worker", 2, "tcp://elsewhere:1", NULL), 0);
    assert_int_equal(mu_cluster_add(spec, "worker", 3, added, NULL), 0);
    return spec;
}

/* Worker 1 goes, 2, which is away, moves, and 3 comes. True when an allocation failed. */
static bool play(long n)
{
    struct cluster *cluster = cluster_new(
        1, &(struct cluster_options){
               .workers = 3, .servers = 1, .hosts = "chief:0", .allocs_fail = true});
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

TEST(test_each_allocation_fails_once)
{
    long n = 0;

    while (play(n))
        n++;
    assert_true(n > 20);
}

/* ---- In later turns ---- */

enum { MANY = 160, FAILURES_MAX = 60 };

static mu_cluster *spec_of_many(const struct cluster *cluster)
{
    mu_cluster *spec = mu_cluster_new();
    char address[32];

    assert_int_equal(mu_cluster_add(spec, "chief", 0, cluster->chief->address, NULL), 0);
    assert_int_equal(
        mu_cluster_add(spec, "worker", 0, cluster->workers[0]->address, NULL), 0);
    for (int i = 1; i <= MANY; i++) {
        (void)snprintf(address, sizeof address, "tcp://nobody-%d:1", i);
        assert_int_equal(mu_cluster_add(spec, "worker", i, address, NULL), 0);
    }
    return spec;
}

static void count_kept(void *user, const struct mu__link_view *view)
{
    *(int *)user += view->is_retained && strcmp(view->type, "worker") == 0;
}

static void count_news(void *owner, const struct mu__changes *changes,
                       const mu_cluster *cluster)
{
    (void)cluster;
    *(size_t *)owner += changes->count;
}

/* True when an allocation failed while others than the first were taken. */
static bool play_many(long n)
{
    struct cluster *cluster =
        cluster_new(1, &(struct cluster_options){
                           .workers = 1, .hosts = "chief:0", .allocs_fail = true});
    mu_cluster *spec = spec_of_many(cluster);
    struct cluster_task *chief = cluster->chief;
    size_t told = 0;
    int kept = 0;

    cluster_start_all(cluster);
    run_until(cluster, 1000);
    open_at(chief);
    chief->member.upcalls.news = count_news;
    chief->member.upcalls.news_owner = &told;
    assert_int_equal(cluster_learn(chief, spec, NULL), 0);
    assert_int_equal(told, 0);

    happened = false;
    countdown = n;
    run_for(cluster, 100);
    countdown = -1;
    run_for(cluster, 4000);
    assert_int_equal(told, MANY);
    mu__links_each(chief->member.links, count_kept, &kept);
    assert_int_equal(kept, 1 + MANY);
    cluster_free(cluster);
    mu_cluster_free(spec);
    return happened;
}

/* Nobody finds the cluster again: what could not be taken is taken later. */
TEST(test_each_allocation_fails_later)
{
    long n = 0;

    while (n < FAILURES_MAX && play_many(n))
        n++;
    assert_int_equal(n, FAILURES_MAX);
}

TEST_PROGRAM()
