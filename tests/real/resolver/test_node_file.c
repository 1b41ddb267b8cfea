/* Nodes whose cluster stands in a file that changes. */
#include "tests/real/files.h"
#include "tests/real/find.h"

#include <stdatomic.h>

/* ---- A file that changes ---- */

static void find_wait_workers(mu_node *node, size_t count)
{
    for (int i = 0; i < SOON_MS && mu_node_task_count(node, "worker") != count; i++)
        nodes_pause();
    assert_int_equal(mu_node_task_count(node, "worker"), count);
}

TEST_ON(test_changes, struct find *f, find_set_up_folder, find_tear_down)
{
    char path[128];
    char text[512];
    int ports[3];
    struct find_task *chief;

    for (int i = 0; i < 3; i++)
        ports[i] = ports_free();
    (void)snprintf(path, sizeof path, "%s/cluster.json", f->folder);
    (void)snprintf(f->where, sizeof f->where, "%s", path);
    f->resolver = "file";
    chief = find_begin(f, "chief", 0);
    nodes_wait_log(&f->nodes, "cluster.json");
    (void)snprintf(text, sizeof text,
                   "{\"chief\":[\"127.0.0.1:%d\"],\"worker\":[\"127.0.0.1:%d\"]}",
                   ports[0], ports[1]);
    files_replace(path, text);
    (void)find_opened(chief);
    assert_int_equal(mu_node_task_count(chief->node, "worker"), 1);

    (void)snprintf(text, sizeof text,
                   "{\"chief\":[\"127.0.0.1:%d\"],"
                   "\"worker\":[\"127.0.0.1:%d\",\"127.0.0.1:%d\"]}",
                   ports[0], ports[1], ports[2]);
    files_replace(path, text);
    find_wait_workers(chief->node, 2);

    files_replace(path, "{\"chief\": oops");
    nodes_wait_log(&f->nodes, "the last one that was known stays");
    assert_int_equal(mu_node_task_count(chief->node, "worker"), 2);
}

/* While it is looked for who is there, the file is written anew, by another member of the
 * union: then nobody knows whether what was read is the old or the new one. */
struct rewriter {
    char path[128];
    char text[512];
    atomic_bool is_armed;
    atomic_uint looks;
};

static int rewrite(void *user, int64_t timeout_ms, mu_error *ret_error,
                   mu_resolution *ret_resolution)
{
    struct rewriter *rewriter = user;

    (void)timeout_ms;
    (void)ret_error;
    (void)ret_resolution;
    if (atomic_exchange(&rewriter->is_armed, false)) {
        const struct timespec pause = {.tv_nsec = 100000000};

        (void)nanosleep(&pause, NULL);
        files_replace(rewriter->path, rewriter->text);
    }
    (void)atomic_fetch_add(&rewriter->looks, 1);
    return 0;
}

static mu_resolver *make_rewriting(struct rewriter *rewriter)
{
    const mu_resolver_kind kind = {
        .name = "rewriter", .resolve = rewrite, .user = rewriter};
    mu_resolver *members[2] = {find_resolver("file", rewriter->path, 0), NULL};
    mu_resolver *whole = NULL;

    assert_int_equal(mu_resolver_register(&kind, NULL), 0);
    assert_int_equal(mu_resolver_new("rewriter", NULL, &members[1]), 0);
    assert_int_equal(mu_resolver_new_union(members, 2, NULL, &whole), 0);
    return whole;
}

TEST_ON(test_changes_during_look, struct find *f, find_set_up_folder, find_tear_down)
{
    static struct rewriter rewriter;
    mu_node_options options;
    mu_error error = {0};
    mu_node *node = NULL;
    mu_resolver *resolver;
    uint64_t begin_ms;
    int ports[2];
    char text[128];

    for (int i = 0; i < 2; i++)
        ports[i] = ports_free();
    (void)snprintf(rewriter.path, sizeof rewriter.path, "%s/cluster.json", f->folder);
    (void)snprintf(text, sizeof text, "{\"chief\":[\"127.0.0.1:%d\"]}", ports[0]);
    (void)snprintf(rewriter.text, sizeof rewriter.text,
                   "{\"chief\":[\"127.0.0.1:%d\"],\"worker\":[\"127.0.0.1:%d\"]}",
                   ports[0], ports[1]);
    files_replace(rewriter.path, text);
    resolver = make_rewriting(&rewriter);
    nodes_options(&f->nodes, "chief", 0, &options);
    options.cluster = NULL;
    options.resolver = resolver;
    if (mu_node_open(&options, &error, &node) != 0)
        fail_msg("%s", error.message);

    for (int i = 0; i < SOON_MS && atomic_load(&rewriter.looks) < 2; i++)
        nodes_pause();
    for (int i = 0; i < 100; i++) /* then it begins to watch */
        nodes_pause();
    atomic_store(&rewriter.is_armed, true);
    files_replace(rewriter.path, text);
    begin_ms = cli_now_ms();
    find_wait_workers(node, 1);
    assert_in_range(cli_now_ms() - begin_ms, 0, 4000);

    assert_int_equal(mu_node_close(node, SOON_MS, NULL), 0);
    mu_resolver_free(resolver);
    assert_int_equal(mu_resolver_unregister("rewriter", NULL), 0);
}

/* Where this task itself is does not change while it runs: a source that says so is taken
 * for the others, and that is logged. */
TEST_ON(test_moves_own_task, struct find *f, find_set_up_folder, find_tear_down)
{
    char path[128];
    char text[512];
    struct find_task *chief;
    int ports[2];

    for (int i = 0; i < 2; i++)
        ports[i] = ports_free();
    (void)snprintf(path, sizeof path, "%s/cluster.json", f->folder);
    (void)snprintf(f->where, sizeof f->where, "%s", path);
    f->resolver = "file";
    (void)snprintf(text, sizeof text, "{\"chief\":[\"127.0.0.1:%d\"]}", ports[0]);
    files_replace(path, text);
    chief = find_begin(f, "chief", 0);
    (void)find_opened(chief);
    (void)snprintf(text, sizeof text,
                   "{\"chief\":[\"127.0.0.1:%d\"],\"worker\":[\"127.0.0.1:9\"]}",
                   ports[1]);
    files_replace(path, text);
    nodes_wait_log(&f->nodes, "is what the cluster calls this task, which is at tcp://");
    find_wait_workers(chief->node, 1);
    assert_int_equal(mu_node_task_count(chief->node, "chief"), 1);
}

TEST_PROGRAM()
