/* Clusters that change in many tasks at once. */
#include "tests/cluster/specs.h"

/* More than are taken in a turn; in the tiny build, more than a mailbox holds. */
#ifdef MUSTER_TINY
enum { MANY = 2 * MU__MAILBOX_MAX + 20 };
#else
enum { MANY = 400 };
#endif

/* The spec of the begin, and that many workers that nobody plays. */
static mu_cluster *spec_of_many(struct cluster *cluster, int workers)
{
    const struct cluster_task as_begun = {.cluster = cluster};
    mu_cluster *spec = spec_with(&as_begun, "worker", 1, NULL);
    char address[32];

    for (int i = 1; i <= workers; i++) {
        (void)snprintf(address, sizeof address, "tcp://nobody-%d:1", i);
        assert_int_equal(mu_cluster_add(spec, "worker", i, address, NULL), 0);
    }
    return spec;
}

static void count_link(void *user, const struct mu__link_view *view)
{
    *(int *)user += strncmp(view->url, "tcp://nobody", 12) == 0;
}

/* Of these. */
static int dialled(const struct cluster_task *task)
{
    int count = 0;

    mu__links_each(task->member.links, count_link, &count);
    return count;
}

static void on_news(void *owner, const struct mu__changes *changes,
                    const mu_cluster *cluster)
{
    int *told = owner;

    told[0]++;
    told[1] = (int)changes->count;
    told[2] = (int)mu_cluster_task_count(cluster, "worker");
}

/* Other things have their turn between them, and who asks for news is told once, at the
 * end. */
TEST_WITH(test_many_over_turns, NULL, free_specs)
{
    struct cluster *cluster = BEGIN_SERVICE(.workers = 1);
    struct cluster_task *chief = cluster->chief;
    int told[3] = {0};

    open_at(chief);
    chief->member.upcalls.news = on_news;
    chief->member.upcalls.news_owner = told;
    assert_int_equal(cluster_learn(chief, spec_of_many(cluster, MANY), NULL), 0);
    assert_true(dialled(chief) > 0 && dialled(chief) < MANY);
    assert_int_equal(told[0], 0);
    run_for(cluster, 1000);
    assert_int_equal(dialled(chief), MANY);
    assert_int_equal(told[0], 1);
    assert_int_equal(told[1], MANY);
    assert_int_equal(told[2], 1 + MANY);
    end(cluster);
}

/* The chief takes them, at most so many at once, and tells of them. */
static void learn_many(struct cluster_task *chief, int workers, int *told)
{
    int before = dialled(chief);
    int more;

    chief->member.upcalls.news = on_news;
    chief->member.upcalls.news_owner = told;
    assert_int_equal(cluster_learn(chief, spec_of_many(chief->cluster, workers), NULL),
                     0);
    more = dialled(chief) - before;
    assert_true(more < MANY / 2 && more > -MANY / 2);
}

static uint64_t dead_letters(const struct cluster_task *task)
{
    struct mu__kernel_counters counters;

    mu__kernel_counters(task->member.kernel, &counters);
    return counters.dead_letters;
}

/* Until so many news were told. */
static void run_to_news(struct cluster *cluster, const int *told, int count)
{
    for (int i = 0; i < 600 && told[0] < count; i++)
        run_for(cluster, 100);
    assert_int_equal(told[0], count);
    run_for(cluster, 100);
}

/* All actors are told of each, though a mailbox may not hold all they are told. */
TEST_WITH(test_many_fit_mailboxes, NULL, free_specs)
{
    struct cluster *cluster = BEGIN_SERVICE(.workers = 1);
    struct cluster_task *chief = cluster->chief;
    uint64_t dead = dead_letters(chief);
    int told[3] = {0};

    open_at(chief);
    learn_many(chief, MANY, told);
    run_to_news(cluster, told, 1);
    learn_many(chief, 0, told);
    run_to_news(cluster, told, 2);
    assert_int_equal(dialled(chief), 0);
    assert_int_equal(told[1], MANY);
    assert_int_equal(told[2], 1);
    assert_int_equal(dead_letters(chief), dead);
    end(cluster);
}

/* What comes before all were taken is taken after them. */
TEST_WITH(test_many_and_then_others, NULL, free_specs)
{
    struct cluster *cluster = BEGIN_SERVICE(.workers = 1);
    struct cluster_task *chief = cluster->chief;
    int told[3] = {0};

    open_at(chief);
    learn_many(chief, MANY, told);
    learn_many(chief, 0, told);
    assert_int_equal(told[0], 0);
    assert_true(dialled(chief) > 0);
    run_to_news(cluster, told, 2);
    assert_int_equal(dialled(chief), 0);
    assert_int_equal(told[1], MANY);
    assert_int_equal(told[2], 1);
    assert_int_equal(mu_cluster_task_count(chief->member.cluster, "worker"), 1);
    end(cluster);
}

/* Of several that come meanwhile the last is, and nobody hears of the others. */
TEST_WITH(test_many_and_the_last, NULL, free_specs)
{
    struct cluster *cluster = BEGIN_SERVICE(.workers = 1);
    struct cluster_task *chief = cluster->chief;
    int told[3] = {0};

    open_at(chief);
    learn_many(chief, MANY, told);
    learn_many(chief, 0, told);
    learn_many(chief, MANY - 1, told);
    run_to_news(cluster, told, 2);
    assert_int_equal(dialled(chief), MANY - 1);
    assert_int_equal(told[1], 1);
    assert_int_equal(told[2], MANY);
    end(cluster);
}

/* What is refused of one that waited is in the log, and the rest of it is taken. */
TEST_WITH(test_many_and_then_refused, NULL, free_specs)
{
    struct cluster *cluster = BEGIN_SERVICE(.workers = 1);
    struct cluster_task *chief = cluster->chief;
    int told[3] = {0};
    mu_cluster *spec;

    open_at(chief);
    learn_many(chief, MANY, told);
    spec = spec_of_many(cluster, 3);
    assert_int_equal(mu_cluster_add(spec, "ps", 0, "tcp://no-server:1", NULL), 0);
    assert_int_equal(cluster_learn(chief, spec, NULL), 0);
    sim_trace_level(cluster->sim, MU__LOG_WARN);
    (void)sim_trace(cluster->sim);
    run_to_news(cluster, told, 2);
    assert_non_null(strstr(sim_trace(cluster->sim), "/job:ps/task:0 at "
                                                    "tcp://no-server:1 is not added: "));
    assert_int_equal(dialled(chief), 3);
    assert_int_equal(told[2], 4);
    end(cluster);
}

static void leave_at_news(void *owner, const struct mu__changes *changes,
                          const mu_cluster *cluster)
{
    struct cluster_task *task = owner;

    mu__member_leave(&task->member, "test");
    for (size_t i = 0; i < changes->count; i++)
        assert_string_equal(changes->rows[i].type, "worker");
    assert_int_equal(mu_cluster_task_count(cluster, "worker"), 1 + MANY);
}

/* Who hears the news may end the node within them. */
TEST_WITH(test_news_end_the_node, NULL, free_specs)
{
    struct cluster *cluster = BEGIN_SERVICE(.workers = 1);
    struct cluster_task *chief = cluster->chief;
    int told[3] = {0};

    open_at(chief);
    learn_many(chief, MANY, told);
    learn_many(chief, 0, told);
    chief->member.upcalls.news = leave_at_news;
    chief->member.upcalls.news_owner = chief;
    run_for(cluster, 5000);
    assert_null(chief->member.awaited);
    assert_int_equal(dialled(chief), 0);
    end(cluster);
}

/* Mail for more than two turns, which nobody hears. */
static void fill(struct cluster_task *task)
{
    struct mu__kernel *kernel = task->member.kernel;

    for (int i = 0; i < 2 * MU__TURN_MESSAGES + 2; i++) {
        struct mu__msg *msg = mu__pool_get(mu__kernel_pool(kernel), MU__CLUSTER_ADDED,
                                           sizeof(struct mu__cluster_change));

        assert_non_null(msg);
        msg->to.actor = MU__JOB;
        assert_int_equal(mu__kernel_deliver(kernel, msg), 0);
    }
}

static void take_turn(struct cluster_task *task)
{
    mu__member_hooks(&task->member).turn(&task->member);
}

/* While much is to be handled no more are taken, but not for ever. */
TEST_WITH(test_many_while_busy, NULL, free_specs)
{
    struct cluster *cluster = BEGIN_SERVICE(.workers = 1);
    struct cluster_task *chief = cluster->chief;
    int told[3] = {0};
    int before;

    open_at(chief);
    run_until(cluster, 5000);
    learn_many(chief, MANY, told);
    before = dialled(chief);
    fill(chief);
    take_turn(chief);
    assert_int_equal(dialled(chief), before);
    chief->member.taking.took_ms -= 1000;
    take_turn(chief);
    assert_true(dialled(chief) > before);
    run_to_news(cluster, told, 1);
    cluster_free(cluster);
}

/* A node that ends meanwhile takes no more of them. */
TEST_WITH(test_many_while_leaving, NULL, free_specs)
{
    struct cluster *cluster = BEGIN_SERVICE(.workers = 1);
    struct cluster_task *chief = cluster->chief;

    open_at(chief);
    assert_int_equal(cluster_learn(chief, spec_of_many(cluster, MANY), NULL), 0);
    assert_true(dialled(chief) > 0);
    mu__member_leave(&chief->member, "test");
    run_for(cluster, 1000);
    assert_int_equal(dialled(chief), 0);
    end(cluster);
}

TEST_PROGRAM()
