/* What runs write to parameter servers: applied once for each closure that wants it so,
 * however often it runs, and whichever process is lost at which moment. */
#include "tests/support/story.h"

#define ONCE ASK(.flags = MU_CLOSURE_EFFECT_ONCE)
#define BEGIN_WRITING(...) BEGIN(.effects_add = mu__effects_add, __VA_ARGS__)

/* The program is the chief's. */
static void open_counter(struct cluster *cluster, struct cluster_task *task,
                         unsigned items)
{
    open_at(task);
    assert_int_equal(cluster_wait(cluster_counter_open(task, items, 10000)), 0);
    (void)sim_trace(cluster->sim);
}

static int64_t item(struct cluster_task *task, int64_t key)
{
    assert_int_equal(cluster_wait(cluster_counter_read(task, 10000)), 0);
    return task->cluster->counter.items[key];
}

/* A run ends 20 ms after its closure was scheduled, what it writes is at the server after
 * 30, the worker knows after 40, the chief after 50. The worker dies in between. */
TEST(test_lost_worker)
{
    static const struct {
        unsigned flags;
        uint64_t dies_ms; /* after the closure was scheduled */
        unsigned runs;
        int64_t written;
    } rows[] = {
        {0, 35, 2, 2}, /* written, and nobody knows: twice, at least once */
        {0, 15, 1, 1}, /* before it ran */
        {MU_CLOSURE_EFFECT_ONCE, 35, 2, 1},
        {MU_CLOSURE_EFFECT_ONCE, 45, 1, 1}, /* its answer is on its way */
        {MU_CLOSURE_EFFECT_ONCE, 15, 1, 1},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct cluster *cluster = BEGIN_WRITING(.workers = 1, .servers = 1);
        struct cluster_closure *closure;

        open_counter(cluster, cluster->chief, 4);
        closure = cluster_write(cluster->chief, ASK(.flags = rows[i].flags));
        run_for(cluster, rows[i].dies_ms);
        assert_int_equal(sim_restart(cluster->workers[0]->node), 0);
        assert_int_equal(join(cluster->chief), 0);
        expect_squares(&closure, 1);
        assert_int_equal(cluster->runs[closure->key], rows[i].runs);
        assert_int_equal(item(cluster->chief, closure->key), rows[i].written);
        cluster_check_writes(cluster, rows[i].flags != 0);
        end(cluster);
    }
}

/* The run's writes are held back on their way, the worker dies, the closure runs again:
 * whichever comes first is applied, and only that. */
TEST(test_late_write)
{
    struct cluster *cluster = BEGIN_WRITING(.workers = 2, .servers = 1);
    struct cluster_closure *closure;

    open_counter(cluster, cluster->chief, 4);
    sim_block(cluster->sim, cluster->workers[1]->node, cluster->servers[0]->node);
    closure = cluster_write(cluster->chief, ONCE);
    run_for(cluster, 100);
    assert_int_equal(cluster->runs[0], 1);
    sim_cut(cluster->sim, cluster->workers[1]->node, cluster->chief->node);
    run_for(cluster, 100);
    expect_squares(&closure, 1);
    assert_int_equal(cluster->runs[0], 2);
    assert_int_equal(item(cluster->chief, 0), 1);
    sim_heal(cluster->sim);
    run_for(cluster, 1000);
    assert_int_equal(item(cluster->chief, 0), 1);
    assert_int_equal(join(cluster->chief), 0);
    end(cluster);
}

static void cut_off(struct cluster *cluster, unsigned worker)
{
    struct sim_node *a = cluster->workers[worker]->node;
    struct sim_node *b = cluster->servers[0]->node;

    sim_block(cluster->sim, a, b);
    sim_block(cluster->sim, b, a);
    sim_cut(cluster->sim, a, b);
}

/* One worker is cut off from the server, which the chief and the other one reach: what it
 * cannot write, the other one does. When both are cut off, it counts as the server's. */
TEST(test_cut_off_from_a_server)
{
    struct cluster *cluster = BEGIN_WRITING(.workers = 2, .servers = 1, .window = 1);
    struct cluster_closure *closures[20];
    mu_error error;

    open_counter(cluster, cluster->chief, 20);
    cut_off(cluster, 0);
    for (int i = 0; i < 10; i++)
        closures[i] = cluster_write(cluster->chief, ONCE);
    assert_int_equal(join(cluster->chief), 0);
    expect_squares(closures, 10);
    for (int i = 0; i < 10; i++)
        assert_int_equal(item(cluster->chief, i), 1);
    assert_true(retried(cluster->chief) > 0);

    cut_off(cluster, 1);
    for (int i = 10; i < 20; i++)
        closures[i] = cluster_write(cluster->chief, ONCE);
    error = raised(cluster->chief);
    assert_int_equal(error.code, -MU_EUNAVAILABLE);
    assert_string_equal(error.task, "/job:ps/task:0");
    end(cluster);
}

static void await_said(struct cluster *cluster, const char *words)
{
    for (int i = 0; i < 36000; i++) {
        if (strstr(sim_trace(cluster->sim), words) != NULL)
            return;
        run_for(cluster, 100);
    }
    fail_msg("nobody says \"%s\" within an hour", words);
}

/* A closure that no other worker may run goes back to the one that was cut off. */
TEST(test_cut_off_with_nobody_else)
{
    static const struct {
        struct cluster_ask ask;
        bool other_dies;
    } rows[] = {
        {{.flags = MU_CLOSURE_EFFECT_ONCE, .worker_type = "worker", .not_worker = 1},
         false},
        {{.flags = MU_CLOSURE_EFFECT_ONCE, .worker_type = "worker"}, true},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct cluster *cluster =
            BEGIN_WRITING(.workers = 2, .gpus = 1, .servers = 1, .window = 1);
        struct cluster_closure *closure;

        open_counter(cluster, cluster->chief, 4);
        cut_off(cluster, 1);
        set_work_ms(cluster, 100);
        closure = cluster_write(cluster->chief, &rows[i].ask);
        await_said(cluster, "/job:worker/task:1 does not reach /job:ps/task:0");
        if (rows[i].other_dies)
            sim_crash(cluster->workers[0]->node);
        sim_heal(cluster->sim);
        run_for(cluster, 10000);
        expect_squares(&closure, 1);
        assert_int_equal(item(cluster->chief, closure->key), 1);
        assert_int_equal(join(cluster->chief), 0);
        end(cluster);
    }
}

/* Sixty closures over three servers, and workers that die every 50 ms: the sum is what
 * it should be. */
TEST(test_many_servers)
{
    struct cluster *cluster =
        BEGIN_WRITING(.workers = 3, .servers = 3, .window = 2, .attempts_max = 100);
    struct cluster_closure *closures[60];
    int64_t sum = 0;

    open_counter(cluster, cluster->chief, 60);
    for (int i = 0; i < 60; i++)
        closures[i] = cluster_write(cluster->chief, ONCE);
    for (int i = 0; i < 12; i++) {
        run_for(cluster, 50);
        assert_int_equal(sim_restart(cluster->workers[i % 3]->node), 0);
    }
    assert_int_equal(join(cluster->chief), 0);
    expect_squares(closures, 60);
    (void)item(cluster->chief, 0);
    for (int i = 0; i < 60; i++)
        sum += cluster->counter.items[i];
    assert_int_equal(sum, 60);
    assert_true(retried(cluster->chief) > 0);
    cluster_check_writes(cluster, true);
    end(cluster);
}

/* A straggler and its backup both write; one of them is applied. */
TEST(test_backup)
{
    struct cluster *cluster = BEGIN_WRITING(.workers = 2, .servers = 1, .window = 1,
                                            .node.backup_percent = 300);
    struct cluster_closure *closures[7];

    open_counter(cluster, cluster->chief, 8);
    for (int i = 0; i < 6; i++)
        closures[i] = cluster_write(cluster->chief, ONCE);
    assert_int_equal(join(cluster->chief), 0);
    set_work_ms(cluster, 1000);
    closures[6] = cluster_write(cluster->chief, ONCE);
    run_for(cluster, 3000);
    assert_int_equal(cluster->runs[6], 2);
    expect_squares(closures, 7);
    for (int64_t i = 0; i < 7; i++)
        assert_int_equal(item(cluster->chief, i), 1);
    assert_int_equal(join(cluster->chief), 0);
    end(cluster);
}

/* The chief dies while a run is under way, which ends under the next chief: what it then
 * writes is refused. The program, which is a client's, schedules anew, and the sum is
 * right. */
TEST(test_fence)
{
    struct cluster *cluster = BEGIN_WRITING(.workers = 1, .servers = 1, .clients = 1);
    struct cluster_task *client = cluster->clients[0];
    struct cluster_closure *closure;
    const int64_t key = 0;

    open_counter(cluster, client, 4);
    set_work_ms(cluster, 1000);
    closure = cluster_write(client, ONCE);
    run_for(cluster, 300);
    assert_int_equal(sim_restart(cluster->chief->node), 0);
    run_for(cluster, 2000);
    assert_int_equal(error_of(closure)->kind, MU_ERROR_CHIEF);
    assert_int_equal(join(client), -MU_EUNAVAILABLE);
    assert_int_equal(cluster->runs[0], 1);
    assert_int_equal(item(client, 0), 0);
    closure = cluster_write(client, ASK(.flags = MU_CLOSURE_EFFECT_ONCE, .key = &key));
    assert_int_equal(join(client), 0);
    expect_squares(&closure, 1);
    assert_int_equal(item(client, 0), 1);
    end(cluster);
}

/* A function that fails writes nothing; nor does one that was cancelled while it ran. */
TEST(test_cancelled)
{
    struct cluster *cluster = BEGIN_WRITING(.workers = 1, .servers = 1);
    struct cluster_closure *closure;

    open_counter(cluster, cluster->chief, 4);
    set_work_ms(cluster, 500);
    closure = cluster_write(cluster->chief, ONCE);
    run_for(cluster, 100);
    cluster_cancel(closure);
    assert_int_equal(join(cluster->chief), 0);
    assert_int_equal(error_of(closure)->code, -MU_ECANCELLED);
    assert_int_equal(item(cluster->chief, 0), 0);
    end(cluster);
}

TEST_PROGRAM()
