/* Nodes that find each other over a folder. */
#include "tests/real/find.h"

TEST_WITH(test_find_and_run, find_set_up_folder, find_tear_down)
{
    find_play(*state);
    assert_non_null(*state);
}

TEST_WITH(test_killed_worker, find_set_up_folder, find_tear_down)
{
    find_play_killed_worker(*state);
    assert_non_null(*state);
}

TEST_WITH(test_taken_name, find_set_up_folder, find_tear_down)
{
    find_play_taken_name(*state);
    assert_non_null(*state);
}

TEST_WITH(test_missing, find_set_up_folder, find_tear_down)
{
    find_play_missing(*state);
    assert_non_null(*state);
}

TEST_WITH(test_any_index, find_set_up_folder, find_tear_down)
{
    find_play_any_index(*state);
    assert_non_null(*state);
}

/* What a task told is gone: it stood still for too long, say. It tells it anew, and does
 * not take itself for one that was taken out. */
TEST_ON(test_forgotten, struct find *f, find_set_up_folder, find_tear_down)
{
    static const char gone[] = "this task's announcement has expired, and is made again";
    mu_node *chief = find_open_all(f);
    mu_coordinator *coordinator = nodes_coordinator(chief);
    char path[128];

    f->ttl_s = 60;
    (void)find_opened(find_begin(f, "worker", 2));
    assert_int_equal(find_run_on(f, coordinator, 2), getpid());
    (void)snprintf(path, sizeof path, "%s/worker-2", f->folder);
    for (int i = 0; i < SOON_MS && !nodes_has_logged(&f->nodes, gone); i++) {
        (void)unlink(path); /* again and again: it may just be told once more */
        nodes_pause();
    }
    nodes_wait_log(&f->nodes, gone);
    for (int i = 0; i < SOON_MS && access(path, F_OK) != 0; i++)
        nodes_pause();
    assert_int_equal(access(path, F_OK), 0);
    assert_int_equal(find_run_on(f, coordinator, 2), getpid());
    nodes_wait_log(&f->nodes, "the cluster can be resolved again");
    assert_false(nodes_has_logged(&f->nodes, "which the cluster has no more"));
    mu_coordinator_close(coordinator);
}

/* A process that comes while the folder is away waits for it. */
TEST_ON(test_away, struct find *f, find_set_up_folder, find_tear_down)
{
    char away[128];
    struct find_task *ps;

    (void)snprintf(away, sizeof away, "%s.away", f->folder);
    assert_int_equal(rename(f->folder, away), 0);
    ps = find_begin(f, "ps", 0);
    nodes_wait_log(&f->nodes, "ps-0\" cannot be written: No such file or directory");
    assert_int_equal(rename(away, f->folder), 0);
    (void)find_begin(f, "worker", 0);
    (void)find_begin(f, "worker", 1);
    (void)find_opened(find_begin(f, "chief", 0));
    assert_non_null(find_opened(ps));
}

/* A task that leaves takes its file with it. */
TEST_ON(test_leaves_nothing, struct find *f, find_set_up_folder, find_tear_down)
{
    char path[128];
    struct find_task *ps;

    (void)find_open_all(f);
    ps = &f->tasks[0];
    (void)snprintf(path, sizeof path, "%s/ps-0", f->folder);
    assert_int_equal(access(path, F_OK), 0);
    find_close(ps);
    assert_int_equal(access(path, F_OK), -1);
}

/* A port that somebody else has: nothing is told. */
TEST_ON(test_port_in_use, struct find *f, find_set_up_folder, find_tear_down)
{
    struct find_task task = {.f = f, .index = 0, .type = "chief", .resolve_ms = SOON_MS};
    mu_node_options options;
    char url[64];
    char path[128];
    int port;
    int fd = ports_bound(&port);

    assert_int_equal(listen(fd, 1), 0);
    (void)snprintf(url, sizeof url, "tcp://127.0.0.1:%d", port);
    task.resolver = find_resolver(f->resolver, f->where, f->ttl_s);
    find_options(&task, &options);
    options.bind_address = url;
    assert_int_equal(mu_node_open(&options, &task.error, &task.node), -MU_EEXISTS);
    if (strstr(task.error.message, "listens there") == NULL)
        fail_msg("%s", task.error.message);
    (void)snprintf(path, sizeof path, "%s/chief-0", f->folder);
    assert_int_equal(access(path, F_OK), -1);
    (void)close(fd);
    mu_resolver_free(task.resolver);
}

/* Where it listens is not what it tells: a name, with the port that was chosen. */
TEST_ON(test_advertised, struct find *f, find_set_up_folder, find_tear_down)
{
    char path[128];
    char text[128] = "";
    unsigned port = 0;
    mu_coordinator *coordinator;
    FILE *file;

    f->advertise = "localhost:0";
    coordinator = nodes_coordinator(find_open_all(f));
    assert_int_equal(find_run_on(f, coordinator, 0), getpid());
    assert_int_equal(find_run_on(f, coordinator, 1), f->worker);
    mu_coordinator_close(coordinator);
    (void)snprintf(path, sizeof path, "%s/worker-0", f->folder);
    file = fopen(path, "r");
    assert_non_null(file);
    assert_non_null(fgets(text, sizeof text, file));
    (void)fclose(file);
    assert_int_equal(sscanf(text, "localhost:%u", &port), 1);
    assert_int_not_equal(port, 0);
}

int main(int argc, char **argv)
{
    if (argc == 5 && strcmp(argv[1], "worker") == 0)
        return find_be_worker(argv[2], argv[3], argv[4]);
    return tests_run(NULL, NULL);
}
