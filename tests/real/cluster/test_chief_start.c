/* A chief over a journal of 200,000 closures lives while it reads it: it answers
 * `muster status`, obeys signals, and refuses damage that is found late. */
#include "tests/real/cli.h"
#include "tests/real/nodes.h"
#include "tests/support/journal_rows.h"

#include "runtime/uv/file_storage.h"

#include "muster.h"

#include <fcntl.h>
#include <pthread.h>
#include <uv.h>

enum { NAMES = 200000 };

struct fixture {
    char folder[64];
    char journal[128];
    char json[512];
    struct cli chief;
};

static struct fixture fixture;

static void write_journal(const struct fixture *f)
{
    struct mu__storage *storage;
    mu_error error;

    assert_int_equal(mu__storage_uv_open(f->journal, false, &error, &storage), 0);
    journal_add_finished(storage, NAMES);
    mu__storage_uv_close(storage);
}

static int set_up(void **state)
{
    struct fixture *f = &fixture;

    memset(f, 0, sizeof *f);
    f->chief.ended = true;
    cli_folder(f->folder, sizeof f->folder);
    (void)snprintf(f->journal, sizeof f->journal, "%.64s/journal", f->folder);
    nodes_write_cluster(f->json, sizeof f->json, 1, 0);
    write_journal(f);
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;
    char path[160];

    if (!f->chief.ended) {
        cli_kill(&f->chief, SIGKILL);
        (void)cli_wait(&f->chief);
    }
    (void)unlink(f->journal);
    (void)snprintf(path, sizeof path, "%s.new", f->journal);
    (void)unlink(path);
    assert_int_equal(rmdir(f->folder), 0);
    return 0;
}

static void start(struct fixture *f)
{
    cli_start(&f->chief, NULL, "node", "--cluster", f->json, "--task", "chief:0",
              "--journal", f->journal, NULL);
}

TEST_ON(test_answers_while_it_starts, struct fixture *f, set_up, tear_down)
{
    struct cli status;

    start(f);
    cli_start(&status, NULL, "status", "--cluster", f->json, NULL);
    cli_expect_code(&status, 0);
    (void)cli_expect(&status, NULL, " % of the journal's ");
    (void)cli_expect(&status, NULL, "closures wait until all are");
    (void)cli_expect(&f->chief, NULL, "is up at");
    (void)cli_expect(&f->chief, NULL, "the journal: 200000 named closures, 0 of them");
    cli_start(&status, NULL, "status", "--cluster", f->json, NULL);
    cli_expect_code(&status, 0);
    assert_null(strstr(status.text, "of the journal's"));
}

TEST_ON(test_ends_by_a_signal_while_it_starts, struct fixture *f, set_up, tear_down)
{
    start(f);
    (void)cli_expect(&f->chief, NULL, "closures wait until it is");
    cli_kill(&f->chief, SIGTERM);
    cli_expect_code(&f->chief, 128 + SIGTERM);
    assert_null(strstr(f->chief.text, "named closures"));
}

/* So far behind the begin that it is not seen before the node begins. */
static void damage(const struct fixture *f)
{
    int file = open(f->journal, O_RDWR | O_CLOEXEC);

    assert_true(file >= 0);
    assert_int_equal(pwrite(file, "damage", 6, 20 << 20), 6);
    (void)close(file);
}

TEST_ON(test_damage_is_found_late, struct fixture *f, set_up, tear_down)
{
    damage(f);
    start(f);
    cli_expect_code(&f->chief, 2);
    (void)cli_expect(&f->chief, NULL, "closures wait until it is");
    (void)cli_expect(&f->chief, NULL, f->journal);
    (void)cli_expect(&f->chief, NULL, "is damaged: ");
    assert_null(strstr(f->chief.text, "is up at"));
}

/* ---- On a program's loop ---- */

struct embedded {
    const mu_node_options *options;
    uv_loop_t *loop;
    uv_async_t stop;
    uv_sem_t opened;
    int rv; /* of the open */
    mu_node *node;
};

static void on_stop(uv_async_t *stop)
{
    struct embedded *e = stop->data;

    mu_node_close_async(e->node, NULL, NULL);
    uv_close((uv_handle_t *)stop, NULL);
}

static void *run_loop(void *arg)
{
    struct embedded *e = arg;

    e->rv = mu_node_open(e->options, NULL, &e->node);
    uv_sem_post(&e->opened);
    (void)uv_run(e->loop, UV_RUN_DEFAULT);
    return NULL;
}

/* The node opens at once there; calls wait, and fail with the reason. */
TEST_ON(test_damage_on_a_programs_loop, struct fixture *f, set_up, tear_down)
{
    mu_node_options options;
    struct embedded e = {.options = &options};
    mu_cluster *cluster;
    mu_coordinator *c;
    mu_error error;
    uv_loop_t loop;
    pthread_t thread;

    damage(f);
    mu_node_options_init(&options);
    assert_int_equal(
        mu_cluster_parse(f->json, strlen(f->json), "the test", &error, &cluster), 0);
    assert_int_equal(uv_loop_init(&loop), 0);
    options.cluster = cluster;
    options.task_type = "chief";
    options.journal = f->journal;
    options.loop = e.loop = &loop;
    assert_int_equal(uv_sem_init(&e.opened, 0), 0);
    assert_int_equal(uv_async_init(&loop, &e.stop, on_stop), 0);
    e.stop.data = &e;
    assert_int_equal(pthread_create(&thread, NULL, run_loop, &e), 0);
    uv_sem_wait(&e.opened);
    assert_int_equal(e.rv, 0);
    assert_int_equal(mu_coordinator_open(e.node, CLI_SOON_MS, &error, &c), 0);
    assert_int_equal(mu_coordinator_schedule(c, "square", NULL, -1, &error, NULL), 0);
    assert_int_equal(mu_coordinator_join(c, CLI_SOON_MS, &error), -MU_EDATALOSS);
    assert_non_null(strstr(error.message, "is damaged: "));
    mu_coordinator_close(c);
    (void)uv_async_send(&e.stop);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(uv_loop_close(&loop), 0);
    uv_sem_destroy(&e.opened);
    mu_cluster_free(cluster);
}

TEST_PROGRAM()
