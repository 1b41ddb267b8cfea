/* Nodes that find each other over a real etcd: one for all tests, each of which has a
 * cluster of its own there. */
#include "tests/real/etcd.h"
#include "tests/real/find.h"

static struct etcd server;

static int open_server(void **state)
{
    (void)state;
    etcd_open(&server);
    return 0;
}

static int close_server(void **state)
{
    (void)state;
    if (server.pid > 0)
        etcd_close(&server);
    return 0;
}

static int set_up(void **state)
{
    static struct find find;
    static unsigned clusters;

    find_set_up(&find);
    find.resolver = "etcd";
    /* Nobody listens at the first one. */
    (void)snprintf(find.where, sizeof find.where,
                   "http://127.0.0.1:1,http://127.0.0.1:%d", server.port);
    (void)snprintf(find.cluster, sizeof find.cluster, "cluster-%u", ++clusters);
    find_set_variable("MUSTER_CLUSTER_NAME", find.cluster);
    *state = &find;
    return 0;
}

/* Also after a test that has failed in the middle. */
static int tear_down(void **state)
{
    if (server.pid > 0)
        (void)kill(server.pid, SIGCONT);
    else
        etcd_start(&server);
    return find_tear_down(state);
}

TEST_WITH(test_find_and_run, set_up, tear_down)
{
    find_play(*state);
    assert_non_null(*state);
}

TEST_WITH(test_killed_worker, set_up, tear_down)
{
    find_play_killed_worker(*state);
    assert_non_null(*state);
}

TEST_WITH(test_taken_name, set_up, tear_down)
{
    find_play_taken_name(*state);
    assert_non_null(*state);
}

TEST_WITH(test_missing, set_up, tear_down)
{
    find_play_missing(*state);
    assert_non_null(*state);
}

TEST_WITH(test_any_index, set_up, tear_down)
{
    find_play_any_index(*state);
    assert_non_null(*state);
}

/* Without etcd the last cluster stands, and when it is back all tell it again. */
TEST_ON(test_down_for_a_while, struct find *f, set_up, tear_down)
{
    mu_coordinator *coordinator;

    coordinator = nodes_coordinator(find_open_all(f));
    etcd_kill(&server);
    nodes_wait_log(&f->nodes, "the last one that was known stays");
    nodes_wait_log(&f->nodes, "this task cannot be announced");
    assert_int_equal(find_run_on(f, coordinator, 0), getpid());
    etcd_start(&server);
    nodes_wait_log(&f->nodes, "this task can be announced again");
    nodes_wait_log(&f->nodes, "the cluster can be resolved again");
    assert_int_equal(find_run_on(f, coordinator, 1), f->worker);
    mu_coordinator_close(coordinator);
}

/* ---- A slow source ---- */

/* Of the tasks that a second look at etcd, by the address that answers, finds. */
static size_t count_there(struct find *f)
{
    char url[64];
    mu_resolver *resolver = find_resolver("etcd", f->where, 0);
    mu_cluster *cluster = NULL;
    mu_error error = {0};
    size_t count = 0;

    (void)snprintf(url, sizeof url, "http://127.0.0.1:%d", server.port);
    find_set(resolver, "endpoints", url);
    find_set(resolver, "tasks", NULL);
    if (mu_resolver_cluster(resolver, SOON_MS, &error, &cluster) != 0)
        fail_msg("%s", error.message);
    count = mu_cluster_task_count(cluster, "worker") +
            mu_cluster_task_count(cluster, "ps") +
            mu_cluster_task_count(cluster, "chief");
    mu_cluster_free(cluster);
    mu_resolver_free(resolver);
    return count;
}

/* The first endpoints take connections and say nothing, so that each look takes as long
 * as a lease: telling goes on beside it, and nobody's lease ends. */
TEST_ON(test_hanging_endpoint, struct find *f, set_up, tear_down)
{
    uint64_t end_ms;
    int fd;
    int port;

    fd = ports_bound(&port);
    assert_int_equal(listen(fd, 64), 0);
    (void)snprintf(f->where, sizeof f->where,
                   "http://127.0.0.1:%d/a,http://127.0.0.1:%d/b,http://127.0.0.1:%d",
                   port, port, server.port);
    (void)find_open_all(f);
    end_ms = cli_now_ms() + 2 * FINDERS_ETCD_TTL_S * 1000 + 1000;
    while (cli_now_ms() < end_ms) {
        if (count_there(f) != 4)
            fail_msg("a lease has ended; the log:\n%s", f->nodes.log.text);
        for (int i = 0; i < 100; i++)
            nodes_pause();
    }
    assert_int_equal(nodes_has_logged(&f->nodes, "cannot be told"), 0);
    (void)close(fd);
}

/* All of etcd stands still for as long as a lease lasts: when it goes on, so does
 * everything else. */
TEST_ON(test_stopped, struct find *f, set_up, tear_down)
{
    mu_coordinator *coordinator;

    coordinator = nodes_coordinator(find_open_all(f));
    assert_int_equal(kill(server.pid, SIGSTOP), 0);
    nodes_wait_log(&f->nodes, "this task cannot be announced");
    nodes_wait_log(&f->nodes, "the last one that was known stays");
    assert_int_equal(find_run_on(f, coordinator, 0), getpid());
    assert_int_equal(kill(server.pid, SIGCONT), 0);
    nodes_wait_log(&f->nodes, "this task can be announced again");
    for (int i = 0; i < SOON_MS / 100 && count_there(f) != 4; i++)
        for (int k = 0; k < 100; k++)
            nodes_pause();
    assert_int_equal(count_there(f), 4);
    assert_int_equal(find_run_on(f, coordinator, 1), f->worker);
    mu_coordinator_close(coordinator);
}

int main(int argc, char **argv)
{
    const char *missing = needs_programs("etcd", NULL);

    if (argc == 5 && strcmp(argv[1], "worker") == 0)
        return find_be_worker(argv[2], argv[3], argv[4]);
    if (missing != NULL)
        return needs_skip(missing);
    return tests_run(open_server, close_server);
}
