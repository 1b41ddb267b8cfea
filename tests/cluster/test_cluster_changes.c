/* The cluster changes while a job runs: workers come, go and move, servers move. Each
 * node learns of it by itself. */
#include "actors/views/views.h"
#include "tests/cluster/specs.h"

static struct cluster_closure *pinned(struct cluster_task *task, unsigned worker)
{
    return cluster_schedule_with(task, "square", ASK(.worker = worker + 1));
}

/* ---- Workers ---- */

/* It is dialled at once, and gets closures when it is there: a frame or two later. */
TEST_WITH(test_added, NULL, free_specs)
{
    struct cluster *cluster = BEGIN(.workers = 1, .window = 1);
    struct cluster_task *late = cluster_add(cluster, "worker", 5, "late");
    struct cluster_closure *closures[4];

    set_work_ms(cluster, 1000);
    open_at(cluster->chief);
    schedule(cluster->chief, "square", 4, closures);
    late->spec = spec_with(cluster->chief, "worker", 5, late->address);
    cluster_start(late);
    run_until(cluster, 200);
    sim_trace_level(cluster->sim, MU__LOG_INFO);
    (void)sim_trace(cluster->sim);
    assert_int_equal(cluster_learn(cluster->chief, late->spec, NULL), 0);
    run_until(cluster, 300);
    expect_trace(
        cluster,
        "[  200] chief/0 cluster: /job:worker/task:5 at tcp://late:1 was added\n"
        "[  230] late links: /job:chief/task:0 is up at tcp://chief-0:1\n"
        "[  240] chief/0 links: /job:worker/task:5 is up at tcp://late:1\n"
        "[  240] chief/0 supervisor: /job:worker/task:5 takes closures (1 threads, "
        "window 1)\n");
    assert_int_equal(worker_number(cluster->chief, 5, "in_flight"), 1);
    run_until(cluster, 2400);
    expect_squares(closures, 4);
    end(cluster);
}

/* It is waited for, and what is for it alone waits. */
TEST_WITH(test_added_before_it_starts, NULL, free_specs)
{
    struct cluster *cluster = BEGIN(.workers = 1);
    struct cluster_task *late = cluster_add(cluster, "worker", 1, "late");
    struct cluster_closure *mine;

    open_at(cluster->chief);
    learn(cluster->chief, "worker", 1, late->address);
    mine = pinned(cluster->chief, 1);
    run_for(cluster, 1000);
    expect_explained(mine, "queued", "for /job:worker/task:1, which is missing");
    late->spec = cluster->chief->spec;
    cluster_start(late);
    assert_int_equal(join(cluster->chief), 0);
    expect_squares(&mine, 1);
    end(cluster);
}

#define LABEL "part-of-a-name-that-is-nearly-as-long-as-names-of-hosts-can-be"

/* One that cannot be linked to keeps nobody else from it: its name is too long for a
 * link, while the one behind it is as any other. */
TEST_WITH(test_one_that_cannot_be_linked, NULL, free_specs)
{
    static const char far[] = "tcp://" LABEL "." LABEL "." LABEL "." LABEL ":1";
    struct cluster *cluster = BEGIN(.workers = 1);
    struct cluster_task *late = cluster_add(cluster, "worker", 6, "late");
    struct cluster_closure *mine;
    mu_cluster *both;

    open_at(cluster->chief);
    both = spec_with(cluster->chief, "worker", 5, far);
    assert_int_equal(mu_cluster_add(both, "worker", 6, late->address, NULL), 0);
    late->spec = both;
    cluster_start(late);
    sim_trace_level(cluster->sim, MU__LOG_WARN);
    (void)sim_trace(cluster->sim);
    assert_int_equal(cluster_learn(cluster->chief, both, NULL), 0);
    assert_non_null(strstr(sim_trace(cluster->sim),
                           ":1 cannot be dialled: resource exhausted\n"));
    mine = pinned(cluster->chief, 6);
    assert_int_equal(join(cluster->chief), 0);
    expect_squares(&mine, 1);
    end(cluster);
}

/* A worker that nobody had listed is there already when it is: nothing happens to it. */
TEST_WITH(test_stranger_is_listed, NULL, free_specs)
{
    struct cluster *cluster = BEGIN(.workers = 1);
    struct cluster_task *late = cluster_add(cluster, "worker", 3, "late");
    struct cluster_closure *mine;

    open_at(cluster->chief);
    cluster_start(late);
    run_for(cluster, 200);
    sim_trace_level(cluster->sim, MU__LOG_INFO);
    (void)sim_trace(cluster->sim);
    learn(cluster->chief, "worker", 3, late->address);
    run_for(cluster, 500);
    expect_trace(
        cluster,
        "[  360] chief/0 cluster: /job:worker/task:3 at tcp://late:1 was added\n");
    mine = pinned(cluster->chief, 3);
    assert_int_equal(join(cluster->chief), 0);
    expect_squares(&mine, 1);
    end(cluster);
}

/* What it has in flight runs elsewhere at once; what it still says is not heard, and
 * nobody waits for it. */
TEST_WITH(test_removed, NULL, free_specs)
{
    struct cluster *cluster = BEGIN(.workers = 2, .window = 1, .node.recovery_ms = 1000);
    struct cluster_closure *closures[2];

    set_work_ms(cluster, 300);
    open_at(cluster->chief);
    schedule(cluster->chief, "square", 2, closures);
    run_until(cluster, 300);
    sim_trace_level(cluster->sim, MU__LOG_INFO);
    (void)sim_trace(cluster->sim);
    learn(cluster->chief, "worker", 1, NULL);
    run_until(cluster, 400);
    expect_trace(
        cluster,
        "[  300] chief/0 cluster: /job:worker/task:1 at tcp://worker-1:1 was removed\n"
        "[  300] chief/0 links: hung up on /job:worker/task:1: the task is not in the "
        "cluster any more\n"
        "[  300] chief/0 supervisor: /job:worker/task:1 was removed from the cluster "
        "with 1 closure in flight: it runs again elsewhere\n"
        "[  310] worker/1 links: /job:chief/task:0 is gone: it left: the task is not in "
        "the cluster any more\n");

    /* The first one's ended at 470 + 10; the other one's begins 10 ms later. */
    run_until(cluster, 790);
    assert_false(is_resolved(closures[0]) && is_resolved(closures[1]));
    run_until(cluster, 810);
    expect_squares(closures, 2);
    assert_int_equal(retried(cluster->chief), 1);
    run_until(cluster, 3000);
    assert_int_equal(join(cluster->chief), 0);
    end(cluster);
}

/* What is for it alone waits until it is listed again, whether it was up or not. */
TEST_WITH(test_removed_with_pinned, NULL, free_specs)
{
    struct cluster *cluster = BEGIN(.workers = 3, .window = 1);
    struct cluster_closure *mine[3];

    set_work_ms(cluster, 300);
    open_at(cluster->chief);
    mine[0] = pinned(cluster->chief, 1);
    mine[1] = pinned(cluster->chief, 1);
    sim_crash(cluster->workers[2]->node);
    mine[2] = pinned(cluster->chief, 2);
    run_until(cluster, 300);
    learn(cluster->chief, "worker", 1, NULL);
    learn(cluster->chief, "worker", 2, NULL);
    run_until(cluster, 5000);
    for (unsigned i = 0; i < 3; i++) {
        char words[64];

        (void)snprintf(words, sizeof words, "for /job:worker/task:%d, which is missing",
                       i == 2 ? 2 : 1);
        expect_explained(mine[i], "queued", words);
    }
    /* In the other order: neither gets what is for the other one. */
    learn(cluster->chief, "worker", 2, cluster->workers[2]->address);
    learn(cluster->chief, "worker", 1, cluster->workers[1]->address);
    cluster_start(cluster->workers[2]);
    assert_int_equal(join(cluster->chief), 0);
    expect_squares(mine, 3);
    end(cluster);
}

/* It is away and was waited for: nothing is said of it when the time is over. */
TEST_WITH(test_removed_while_awaited, NULL, free_specs)
{
    struct cluster *cluster = BEGIN(.workers = 2, .node.recovery_ms = 1000);

    open_at(cluster->chief);
    (void)cluster_schedule(cluster->chief, "square");
    sim_crash(cluster->workers[1]->node);
    run_for(cluster, 300);
    sim_trace_level(cluster->sim, MU__LOG_INFO);
    (void)sim_trace(cluster->sim);
    learn(cluster->chief, "worker", 1, NULL);
    run_for(cluster, 5000);
    expect_trace(cluster, "[  460] chief/0 cluster: /job:worker/task:1 at "
                          "tcp://worker-1:1 was removed\n");
    assert_int_equal(join(cluster->chief), 0);
    end(cluster);
}

static int who_runs(struct cluster *cluster)
{
    for (unsigned i = 0; i < cluster->options.workers; i++)
        if (worker_number(cluster->chief, i, "in_flight") == 1)
            return (int)i;
    return -1;
}

/* A removal is nothing that a closure has done to its worker. */
TEST_WITH(test_removals_are_not_crashes, NULL, free_specs)
{
    struct cluster *cluster = BEGIN(.workers = 5, .window = 1, .attempts_max = 2);
    struct cluster_closure *closure;

    set_work_ms(cluster, 500);
    open_at(cluster->chief);
    closure = cluster_schedule(cluster->chief, "square");
    for (int i = 4; i > 0; i--) {
        int worker;

        run_for(cluster, 100);
        worker = who_runs(cluster);
        assert_true(worker >= 0);
        learn(cluster->chief, "worker", worker, NULL);
    }
    assert_int_equal(join(cluster->chief), 0);
    expect_squares(&closure, 1);
    assert_int_equal(retried(cluster->chief), 4);
    end(cluster);
}

/* Its process lives on, dials the chief, who hosts the service, and is refused until it
 * is listed again. */
TEST_WITH(test_removed_and_added, NULL, free_specs)
{
    struct cluster *cluster = BEGIN_SERVICE(.workers = 2);
    struct cluster_closure *mine;

    open_at(cluster->chief);
    learn(cluster->chief, "worker", 1, NULL);
    run_for(cluster, 20000);
    assert_int_equal(worker_number(cluster->chief, 1, "window"), -1);
    learn(cluster->chief, "worker", 1, cluster->workers[1]->address);
    mine = pinned(cluster->chief, 1);
    assert_int_equal(join(cluster->chief), 0);
    expect_squares(&mine, 1);
    end(cluster);
}

/* The worker is the first to know: it finishes what it has and its job is done. */
TEST_WITH(test_worker_finds_itself_removed, NULL, free_specs)
{
    struct cluster *cluster = BEGIN(.workers = 2, .window = 1);
    struct cluster_closure *closures[3];
    struct cluster_call *wait =
        cluster_job(cluster->workers[1], MU__JOB_WAIT, 0, NULL, -1);

    set_work_ms(cluster, 500);
    open_at(cluster->chief);
    schedule(cluster->chief, "square", 3, closures);
    run_until(cluster, 300);
    learn(cluster->workers[1], "worker", 1, NULL);
    assert_int_equal(cluster_wait(wait), 0);

    /* Its function ended at 670; RESULT and DRAINED take 10 ms each. */
    assert_int_equal(wait->done_ms, 690);
    mu__member_leave(&cluster->workers[1]->member, "the job is done");
    sim_crash(cluster->workers[1]->node);
    learn(cluster->chief, "worker", 1, NULL);
    assert_int_equal(join(cluster->chief), 0);
    expect_squares(closures, 3);
    assert_int_equal(retried(cluster->chief), 0);
    end(cluster);
}

/* The chief was the first to know: there is nothing to finish any more. */
TEST_WITH(test_worker_finds_itself_removed_late, NULL, free_specs)
{
    struct cluster *cluster = BEGIN(.workers = 2, .window = 1);
    struct cluster_call *wait =
        cluster_job(cluster->workers[1], MU__JOB_WAIT, 0, NULL, -1);

    learn(cluster->chief, "worker", 1, NULL);
    run_for(cluster, 100);
    assert_false(wait->done);
    learn(cluster->workers[1], "worker", 1, NULL);
    assert_int_equal(cluster_wait(wait), 0);
    assert_int_equal(wait->done_ms, 260);
    end(cluster);
}

/* A new process plays the task elsewhere; the former one lives, and is not heard. */
TEST_WITH(test_moved, NULL, free_specs)
{
    struct cluster *cluster = BEGIN_SERVICE(.workers = 2, .window = 1);
    struct cluster_task *there = cluster_add(cluster, "worker", 1, "there");
    struct cluster_closure *closures[2];
    struct cluster_closure *mine;

    set_work_ms(cluster, 300);
    open_at(cluster->chief);
    schedule(cluster->chief, "square", 2, closures);
    run_until(cluster, 300);
    there->spec = spec_with(cluster->chief, "worker", 1, there->address);
    cluster_start(there);
    assert_int_equal(cluster_learn(cluster->chief, there->spec, NULL), 0);
    mine = pinned(cluster->chief, 1);
    assert_int_equal(join(cluster->chief), 0);
    expect_squares(closures, 2);
    expect_squares(&mine, 1);
    run_for(cluster, 20000);
    assert_int_equal(worker_number(cluster->chief, 1, "finished"), 1);
    end(cluster);
}

/* ---- Servers, and what is refused ---- */

enum { MOVED_MS = 20 * 1000 }; /* until partitions have moved */

static struct mu__view_roles roles_of(const struct cluster *cluster, uint32_t server)
{
    struct mu__view_roles roles;

    mu__views_roles(mu__actor_state(cluster->chief->member.kernel,
                                    (mu__pid){MU__NODE_SELF, MU__VIEWS}),
                    server, &roles);
    return roles;
}

/* A job that has begun with one server: the other gets half of what there is, and its
 * name in errors. Then it gives all back, and its process may end. */
TEST_WITH(test_server_added, NULL, free_specs)
{
    struct cluster *cluster = BEGIN(.workers = 1, .servers = 1);
    struct cluster_task *late = cluster_add(cluster, "ps", 1, "late");
    struct cluster_call *call;

    assert_int_equal(cluster_wait(cluster_counter_open(cluster->chief, 10, -1)), 0);
    late->spec = spec_with(cluster->chief, "ps", 1, late->address);
    for (unsigned i = 0; i < cluster->tasks_count; i++)
        assert_int_equal(cluster_learn(&cluster->tasks[i], late->spec, NULL), 0);
    cluster_start(late);
    run_for(cluster, MOVED_MS);
    assert_int_equal(roles_of(cluster, 0).primary, MU__PARTITIONS / 2);
    assert_int_equal(roles_of(cluster, 1).primary, MU__PARTITIONS / 2);
    assert_int_equal(cluster_wait(cluster_counter_read(cluster->chief, 2000)), 0);
    sim_pause(cluster->servers[0]->node, 5000);
    sim_pause(late->node, 5000);
    call = cluster_counter_read(cluster->chief, 2000);
    assert_int_equal(cluster_wait(call), -MU_EUNAVAILABLE);
    assert_non_null(strstr(call->of.call.error.message, late->address));

    run_for(cluster, MOVED_MS);
    open_at(cluster->chief);
    assert_int_equal(cluster_wait(cluster_drain_task(cluster->chief, "ps", 1, -1)), 0);
    assert_int_equal(roles_of(cluster, 1).primary, 0);
    sim_crash(late->node);
    assert_int_equal(cluster_wait(cluster_counter_read(cluster->chief, 2000)), 0);
    end(cluster);
}

/* What reading a variable comes to after one of its servers was restarted, at its place
 * or elsewhere; who asks while it is not there waits for it where it is said to be. */
static int read_after_restart(bool moves)
{
    struct cluster *cluster = BEGIN(.workers = 1, .servers = 2);
    struct cluster_task *there =
        moves ? cluster_add(cluster, "ps", 1, "there") : cluster->servers[1];
    struct cluster_call *call;
    int rv;

    assert_int_equal(cluster_wait(cluster_counter_open(cluster->chief, 10, -1)), 0);
    sim_crash(cluster->servers[1]->node);
    there->spec = spec_with(cluster->chief, "ps", 1, there->address);
    run_for(cluster, 1000);
    for (unsigned i = 0; i < cluster->tasks_count; i++)
        assert_int_equal(cluster_learn(&cluster->tasks[i], there->spec, NULL), 0);
    call = cluster_counter_read(cluster->chief, 2000);
    assert_int_equal(cluster_wait(call), -MU_EUNAVAILABLE);
    assert_non_null(strstr(call->of.call.error.message, there->address));
    cluster_start(there);
    rv = cluster_wait(cluster_counter_read(cluster->chief, 2000));
    end(cluster);
    return rv;
}

/* A server that moved is as one that was restarted: its variables are lost. */
TEST_WITH(test_server_moved, NULL, free_specs)
{
    assert_int_equal(read_after_restart(false), -MU_ENOTFOUND);
    assert_int_equal(read_after_restart(true), -MU_ENOTFOUND);
}

/* The removed worker lives on and writes to a server that has not learned of it, when its
 * closure has run elsewhere already: the item has 1, as each of them has. Once the server
 * knows, it hangs up on that worker. */
TEST_WITH(test_removed_while_writing, NULL, free_specs)
{
    struct cluster *cluster =
        BEGIN(.workers = 2, .servers = 1, .window = 1, .effects_add = mu__effects_add);
    struct cluster_closure *closures[2];

    open_at(cluster->chief);
    assert_int_equal(cluster_wait(cluster_counter_open(cluster->chief, 10, -1)), 0);
    set_work_ms(cluster, 1000);
    for (unsigned i = 0; i < 2; i++)
        closures[i] = cluster_write(cluster->chief, ASK(.flags = MU__CLOSURE_ONCE));
    run_for(cluster, 100);
    learn(cluster->chief, "worker", 1, NULL);
    run_for(cluster, 10000);
    expect_squares(closures, 2);
    assert_int_equal(cluster->runs[closures[0]->key] + cluster->runs[closures[1]->key],
                     3);
    assert_int_equal(cluster_wait(cluster_counter_read(cluster->chief, -1)), 0);
    cluster_check_writes(cluster, true);

    assert_int_equal(cluster_links(cluster->servers[0]), 3);
    learn(cluster->servers[0], "worker", 1, NULL);
    run_for(cluster, 10000);
    assert_int_equal(cluster_links(cluster->servers[0]), 2);
    end(cluster);
}

/* A chief that is restarted elsewhere is found by its client, which had its address. */
TEST_WITH(test_chief_moved, NULL, free_specs)
{
    struct cluster *cluster = BEGIN(.workers = 1, .clients = 1);
    struct cluster_task *there = cluster_add(cluster, "chief", 0, "there");
    struct cluster_task *client = cluster->clients[0];
    struct cluster_closure *closure;

    sim_crash(cluster->chief->node);
    run_for(cluster, 100);
    cluster->chief = there;
    for (unsigned i = 1; i < cluster->tasks_count; i++)
        learn(&cluster->tasks[i], "chief", 0, there->address);
    cluster_start(there);
    open_at(client);
    closure = cluster_schedule(client, "square");
    assert_int_equal(join(client), 0);
    expect_squares(&closure, 1);
    assert_string_equal(client->member.chief, "/job:chief/task:0 at tcp://there:1");
    end(cluster);
}

TEST_WITH(test_refused, NULL, free_specs)
{
    struct cluster *cluster = BEGIN(.workers = 2, .servers = 1);
    mu_cluster *spec;
    mu_error error;

    open_at(cluster->chief);
    spec = spec_with(cluster->chief, "ps", 0, NULL);
    assert_int_equal(cluster_learn(cluster->chief, spec, &error), -MU_EPRECONDITION);
    assert_string_equal(error.message,
                        "/job:ps/task:0 at tcp://ps-0:1 is not removed: it may have what "
                        "no other parameter server has: once it was drained, its process "
                        "may end");

    /* It is logged once, however often it is found. */
    sim_trace_level(cluster->sim, MU__LOG_INFO);
    (void)sim_trace(cluster->sim);
    assert_int_equal(cluster_learn(cluster->chief, spec, &error), -MU_EPRECONDITION);
    expect_trace(cluster, "");

    /* The rest is taken. */
    spec = spec_with(cluster->chief, "worker", 1, NULL);
    assert_int_equal(cluster_learn(cluster->chief, spec, &error), -MU_EPRECONDITION);
    run_for(cluster, 100);
    assert_int_equal(worker_number(cluster->chief, 1, "window"), -1);
    assert_int_equal(mu_cluster_task_count(cluster->chief->member.cluster, "worker"), 1);
    assert_int_equal(mu_cluster_task_count(cluster->chief->member.cluster, "ps"), 1);

    /* A spec that is none: nothing is taken. */
    assert_int_equal(mu_cluster_add(spec, "chief", 1, "tcp://other:1", NULL), 0);
    assert_int_equal(cluster_learn(cluster->chief, spec, &error), -MU_EINVALID);
    assert_int_equal(mu_cluster_task_count(cluster->chief->member.cluster, "chief"), 1);
    end(cluster);
}

/* The same cluster once more. */
TEST_WITH(test_nothing_changes, NULL, free_specs)
{
    struct cluster *cluster = BEGIN_SERVICE(.workers = 2, .servers = 1);

    run_for(cluster, 1000);
    sim_trace_level(cluster->sim, MU__LOG_INFO);
    (void)sim_trace(cluster->sim);
    for (unsigned i = 0; i < cluster->tasks_count; i++)
        assert_int_equal(cluster_learn(&cluster->tasks[i], cluster->spec, NULL), 0);
    run_for(cluster, 1000);
    expect_trace(cluster, "");
    end(cluster);
}

/* ---- Each node by itself ---- */

/* The same three changes in six orders, at different times for each node: in the end all
 * is the same. */
TEST_WITH(test_any_order, NULL, free_specs)
{
    static const unsigned orders[6][3] = {{0, 1, 2}, {0, 2, 1}, {1, 0, 2},
                                          {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};

    for (unsigned order = 0; order < 6; order++) {
        struct cluster *cluster = BEGIN_SERVICE(.workers = 3, .servers = 1);
        struct cluster_task *added = cluster_add(cluster, "worker", 4, "added");
        struct cluster_task *moved = cluster_add(cluster, "worker", 2, "moved");
        const struct {
            int index;
            const char *address;
        } changes[3] = {{4, added->address}, {1, NULL}, {2, moved->address}};
        struct cluster_closure *closures[20];
        struct cluster_task *all[] = {cluster->chief, cluster->servers[0],
                                      cluster->workers[0], added, moved};

        set_work_ms(cluster, 100);
        open_at(cluster->chief);
        schedule(cluster->chief, "square", 20, closures);
        for (unsigned i = 0; i < 3; i++)
            for (unsigned j = 0; j < 5; j++) {
                unsigned which = orders[(order + j) % 6][i];

                learn(all[j], "worker", changes[which].index, changes[which].address);
                run_for(cluster, 7);
            }
        cluster_start(added);
        sim_crash(cluster->workers[2]->node);
        cluster_start(moved);
        assert_int_equal(join(cluster->chief), 0);
        expect_squares(closures, 20);
        assert_int_equal(worker_number(cluster->chief, 1, "window"), -1);
        assert_true(worker_number(cluster->chief, 2, "window") > 0);
        assert_true(worker_number(cluster->chief, 4, "window") > 0);
        assert_int_equal(mu_cluster_equal(cluster->chief->member.cluster,
                                          cluster->servers[0]->member.cluster),
                         1);
        end(cluster);
        (void)free_specs(NULL);
    }
}

TEST_PROGRAM()
