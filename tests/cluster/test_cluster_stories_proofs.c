/* A cluster whose members prove who they are, and those who cannot: other keys, keys that
 * change while everything runs, keys that may do less, certificates of others. */
#include "tests/support/story.h"

enum { COME_MS = 3000, SWEEP = 12 };

static const struct sim_credentials ours = {
    .kind = SIM_KEY, .of = 1, .right = MU__RIGHT_ALL};
static const struct sim_credentials theirs = {
    .kind = SIM_KEY, .of = 2, .right = MU__RIGHT_ALL};

static void all_prove(struct cluster *cluster, const struct sim_credentials *credentials)
{
    for (unsigned i = 0; i < cluster->tasks_count; i++)
        sim_node_prove(cluster->tasks[i].node, credentials);
}

/* Each task has a certificate of its own. */
static void all_certified(struct cluster *cluster)
{
    for (unsigned i = 0; i < cluster->tasks_count; i++) {
        const struct cluster_task *task = &cluster->tasks[i];
        bool is_client = strcmp(task->type, "client") == 0;

        sim_node_prove(task->node,
                       &(struct sim_credentials){
                           SIM_CERTIFICATE, 1, is_client ? MU__RIGHT_USE : MU__RIGHT_TASK,
                           is_client ? NULL : task->type, task->index});
    }
}

static void start(struct cluster *cluster)
{
    cluster_start_all(cluster);
    run_for(cluster, COME_MS);
}

static void assert_said(const char *said, const char *words)
{
    if (strstr(said, words) == NULL)
        fail_msg("\"%s\" is not in\n%s", words, said);
}

/* Closures run, all of them, and none on a worker without the right proof. */
static void expect_work(struct cluster_task *task)
{
    struct cluster_closure *closures[SWEEP];

    schedule(task, "square", SWEEP, closures);
    assert_int_equal(join(task), 0);
    expect_squares(closures, SWEEP);
}

TEST(test_another_key)
{
    struct cluster *cluster = MAKE(.workers = 3, .clients = 1);
    struct cluster_task *stranger = cluster->workers[2];
    const char *said;

    all_prove(cluster, &ours);
    sim_node_prove(stranger->node, &theirs);
    sim_node_prove(cluster->clients[0]->node, &theirs);
    start(cluster);
    assert_int_equal(cluster_links(cluster->chief), 2);
    assert_int_equal(cluster_links(stranger), 0);
    assert_int_equal(cluster_links(cluster->clients[0]), 0);
    said = sim_trace(cluster->sim);
    assert_said(said, "chief/0 links: dropped a connection from client/0: it has the "
                      "cluster key 2, and this node the cluster key 1\n");
    assert_said(said, "worker/2 links: dropped a connection from chief/0: it has the "
                      "cluster key 1, and this node the cluster key 2\n");
    assert_said(said, "waiting for /job:worker/task:2 at tcp://worker-2:1 for 3 s "
                      "(dialling; the peer has another key)\n");
    open_at(cluster->chief);
    expect_work(cluster->chief);
    assert_int_equal(cluster_links(stranger), 0);

    /* It comes in once it has the key, without a new start. */
    sim_node_prove(stranger->node, &ours);
    run_for(cluster, COME_MS);
    assert_int_equal(cluster_links(cluster->chief), 3);
    assert_int_equal(sim_lives(stranger->node), 1);
    expect_work(cluster->chief);
    end(cluster);
}

/* With keys and without: neither lets the other in. */
TEST(test_without_a_key)
{
    struct cluster *cluster = MAKE(.workers = 2);

    all_prove(cluster, &ours);
    sim_node_prove(cluster->workers[1]->node,
                   &(struct sim_credentials){.kind = SIM_PLAIN});
    start(cluster);
    assert_int_equal(cluster_links(cluster->chief), 1);
    assert_int_equal(cluster_links(cluster->workers[1]), 0);
    assert_said(sim_trace(cluster->sim),
                "worker/1 links: dropped a connection from chief/0: it proves itself "
                "otherwise than this node");
    end(cluster);
}

/* What is up stays up; who still has the old key when it comes again has to wait for the
 * new one. */
TEST(test_the_key_changes)
{
    struct cluster *cluster = MAKE(.workers = 3);
    struct cluster_task *late = cluster->workers[1];

    all_prove(cluster, &ours);
    start(cluster);
    open_at(cluster->chief);
    assert_int_equal(cluster_links(cluster->chief), 3);
    sim_node_prove(cluster->chief->node, &theirs);
    sim_node_prove(cluster->workers[0]->node, &theirs);
    run_for(cluster, COME_MS);
    assert_int_equal(cluster_links(cluster->chief), 3);
    expect_work(cluster->chief);

    sim_cut(cluster->sim, late->node, cluster->chief->node);
    (void)sim_restart(cluster->workers[0]->node);
    run_for(cluster, COME_MS);
    assert_int_equal(cluster_links(late), 0);
    assert_int_equal(cluster_links(cluster->chief), 2);
    assert_said(sim_trace(cluster->sim),
                "worker/1 links: dropped a connection from chief/0: it has the cluster "
                "key 2, and this node the cluster key 1");
    expect_work(cluster->chief);
    sim_node_prove(late->node, &theirs);
    run_for(cluster, COME_MS);
    assert_int_equal(cluster_links(cluster->chief), 3);
    end(cluster);
}

/* Who has a key for clients can be one, and no task. */
TEST(test_derived_keys)
{
    static const struct sim_credentials use = {
        .kind = SIM_KEY, .of = 1, .right = MU__RIGHT_USE};
    static const struct sim_credentials observe = {
        .kind = SIM_KEY, .of = 1, .right = MU__RIGHT_OBSERVE};
    struct cluster *cluster = MAKE(.workers = 2, .clients = 2);
    mu_error error;

    all_prove(cluster, &ours);
    sim_node_prove(cluster->clients[0]->node, &use);
    sim_node_prove(cluster->clients[1]->node, &observe);
    sim_node_prove(cluster->workers[1]->node, &use);
    start(cluster);
    assert_int_equal(cluster_links(cluster->clients[0]), 1);
    assert_int_equal(cluster_links(cluster->clients[1]), 1);
    assert_int_equal(cluster_links(cluster->chief), 3);
    assert_int_equal(cluster_links(cluster->workers[1]), 0);
    assert_said(sim_trace(cluster->sim),
                "worker/1 links: dropped a connection from chief/0: it has the cluster "
                "key 1, and this node the use key 1");
    open_at(cluster->clients[0]);
    expect_work(cluster->clients[0]);
    open_at(cluster->clients[1]);
    (void)cluster_schedule(cluster->clients[1], "square");
    error = raised(cluster->clients[1]);
    assert_int_equal(error.code, -MU_EPERMISSION);
    assert_said(error.message, "schedule needs the right \"use\"");
    end(cluster);
}

/* The address of a task leads to a process with the certificate of another one. */
TEST(test_certificates)
{
    static const struct sim_credentials another = {SIM_CERTIFICATE, 1, MU__RIGHT_TASK,
                                                   "worker", 1};
    static const struct sim_credentials of_other_ca = {SIM_CERTIFICATE, 2, MU__RIGHT_TASK,
                                                       "worker", 2};
    struct cluster *cluster = MAKE(.workers = 3, .clients = 1);
    struct cluster_task *twin = cluster_add(cluster, "worker", 0, "twin");
    const char *said;

    all_certified(cluster);
    sim_node_prove(twin->node, &another);
    sim_node_prove(cluster->workers[2]->node, &of_other_ca);
    start(cluster);
    assert_int_equal(cluster_links(cluster->chief), 3);
    assert_int_equal(cluster_links(cluster->workers[2]), 0);
    assert_said(sim_trace(cluster->sim),
                "dropped a connection from chief/0: its certificate is of CA 1, and this "
                "node's of CA 2");
    open_at(cluster->clients[0]);
    expect_work(cluster->clients[0]);

    sim_crash(cluster->workers[0]->node);
    sim_crash(twin->node);
    sim_node_move(twin->node, cluster->workers[0]->address);
    cluster_start(twin);
    run_for(cluster, COME_MS);
    assert_int_equal(cluster_links(cluster->chief), 2);
    said = sim_trace(cluster->sim);
    assert_said(said, "refused /job:worker/task:0 at ");
    assert_said(said, "its certificate is that of /job:worker/task:1, and it says to be "
                      "/job:worker/task:0");
    expect_work(cluster->clients[0]);

    /* With its own it would have been let in. */
    sim_node_prove(twin->node, &(struct sim_credentials){SIM_CERTIFICATE, 1,
                                                         MU__RIGHT_TASK, "worker", 0});
    run_for(cluster, 4 * COME_MS);
    assert_int_equal(cluster_links(cluster->chief), 3);
    end(cluster);
}

TEST_PROGRAM()
