/* What closures get besides their arguments: results that stay on workers, and values of
 * which each worker has its own. */
#include "tests/support/story.h"

/* What was made and dropped, by number; how often "dear" was computed. */
static int made[8];
static int dropped[8];
static int computed;
static int64_t fails_from; /* "dear" fails from its so manyth run on */
static int fails_on;       /* "shelf" fails on this worker */

static void reset(void)
{
    memset(made, 0, sizeof made);
    memset(dropped, 0, sizeof dropped);
    computed = 0;
    fails_from = INT64_MAX;
    fails_on = -1;
}

/* A result that takes long to compute. */
static int run_dear(mu_run *run, void *user)
{
    note_run(user, "dear", number_of(run));
    if (++computed >= fails_from)
        return mu_run_fail(run, -MU_EDATALOSS, "the source has gone");
    mu_run_return(run, mu_value_int(1000 + number_of(run)));
    return 0;
}

/* The number that it gets, and one. */
static int run_next(mu_run *run, void *user)
{
    note_run(user, "next", number_of(run));
    mu_run_return(run, mu_value_int(number_of(run) + 1));
    return 0;
}

struct object {
    int number;
};

static void drop_object(void *object)
{
    dropped[((struct object *)object)->number]++;
    free(object);
}

/* An object that stays on its worker, as a kept result or a per-worker value. */
static int run_shelf(mu_run *run, void *user)
{
    struct cluster_task *task = user;
    struct object *object;

    note_run(task, "shelf", number_of(run));
    if ((int)task->index == fails_on)
        return mu_run_fail(run, -MU_ENOTFOUND, "no such file");
    object = malloc(sizeof *object);
    object->number = (int)number_of(run);
    made[object->number]++;
    mu_run_return_object(run, object, drop_object);
    return 0;
}

/* The number of the object that it is given; on which worker does not matter. */
static int run_look(mu_run *run, void *user)
{
    const struct object *object = mu_run_object(run, mu_run_args(run));

    if (object == NULL)
        return mu_run_fail(run, -MU_EINVALID, "no object");
    note_run(user, "look", object->number);
    mu_run_return(run, mu_value_int(object->number));
    return 0;
}

static const struct cluster_function own[] = {
    {"dear", run_dear, 0},
    {"next", run_next, 0},
    {"shelf", run_shelf, 0},
    {"look", run_look, 0},
};

#define OWN .functions = own, .functions_count = 4
#define KEPT ASK(.flags = MU_CLOSURE_PIN_RESULT)

static struct cluster_closure *use(struct cluster_closure *input, const char *function,
                                   const struct cluster_ask *ask)
{
    return cluster_schedule_args(input->task, function, cluster_reference(input), ask);
}

static struct cluster_closure *use_held(struct cluster_task *task, const char *function,
                                        struct mu__held *held,
                                        const struct cluster_ask *ask)
{
    return cluster_schedule_args(task, function, mu__reference_to(held), ask);
}

static int64_t fetched(struct cluster_closure *closure)
{
    int64_t number = -1;

    assert_int_equal(cluster_wait(cluster_fetch(closure, -1)), 0);
    assert_null(closure->future->error);
    assert_int_equal(mu_value_get_int(closure->future->result, &number), 0);
    return number;
}

/* ---- Kept results ---- */

/* The result is on worker/1; what uses it runs there, and not on the other one. */
TEST(test_used_where_it_is)
{
    struct cluster *cluster = BEGIN(.workers = 2, OWN);
    struct cluster_closure *dear;
    struct cluster_closure *users[2];

    reset();
    open_at(cluster->chief);
    dear = call_with(cluster->chief, "dear", 5, KEPT);
    run_for(cluster, 100);
    (void)sim_trace(cluster->sim);
    for (int i = 0; i < 2; i++)
        users[i] = use(dear, "next", NULL);
    assert_int_equal(join(cluster->chief), 0);
    expect_trace(cluster, "[  280] sim note: worker/1 runs next 1005\n"
                          "[  290] sim note: worker/1 runs next 1005\n");
    assert_int_equal(cluster_result(users[0]), 1006);
    assert_int_equal(cluster_result(users[1]), 1006);

    /* The program has not got it; now it asks. */
    assert_true(mu__future_is(dear->future, MU__REMOTE_PINNED));
    assert_int_equal(fetched(dear), 1005);
    assert_int_equal(computed, 1);
    end(cluster);
}

/* On another worker: to the chief and from there on, once for all users. The closure is
 * given out at 260, pulled until 280, is given out again, and runs until 300. */
TEST(test_used_elsewhere)
{
    struct cluster *cluster = BEGIN(.workers = 2, OWN);
    struct cluster_closure *dear;
    struct cluster_closure *users[3];
    struct cluster_call *call;

    reset();
    open_at(cluster->chief);
    dear = call_with(cluster->chief, "dear", 5, KEPT);
    run_until(cluster, 260);
    (void)sim_trace(cluster->sim);
    users[0] = use(dear, "next", ASK(.not_worker = 2));
    call = cluster_fetch(users[0], -1);
    assert_int_equal(cluster_wait(call), 0);
    assert_int_equal(call->done_ms, 260 + 20 + 30);
    users[1] = use(dear, "next", ASK(.not_worker = 2));
    call = cluster_fetch(users[1], -1);
    assert_int_equal(cluster_wait(call), 0);
    assert_int_equal(call->done_ms, 310 + 30);
    expect_trace(cluster, "[  300] sim note: worker/0 runs next 1005\n"
                          "[  330] sim note: worker/0 runs next 1005\n");

    /* What the chief has does not depend on the worker any more. */
    sim_crash(cluster->workers[1]->node);
    run_until(cluster, 500);
    users[2] = use(dear, "next", NULL);
    assert_int_equal(fetched(users[2]), 1006);
    assert_int_equal(fetched(dear), 1005);
    assert_int_equal(computed, 1);
    end(cluster);
}

/* The holder is lost. Nobody wants the result: nothing happens. Somebody does: it is
 * computed again, elsewhere. */
TEST(test_computed_again)
{
    struct cluster *cluster = BEGIN(.workers = 2, OWN);
    struct cluster_closure *dear;
    struct cluster_closure *user;

    reset();
    open_at(cluster->chief);
    dear = call_with(cluster->chief, "dear", 5, KEPT);
    run_until(cluster, 260);
    sim_crash(cluster->workers[1]->node);
    run_until(cluster, 1000);
    assert_int_equal(computed, 1);
    (void)sim_trace(cluster->sim);
    user = use(dear, "next", NULL);
    assert_int_equal(fetched(user), 1006);
    expect_trace(
        cluster,
        "[ 1000] chief/0 supervisor: the result of closure 4294967296 is lost: it is "
        "computed again\n"
        "[ 1020] sim note: worker/0 runs dear 5\n"
        "[ 1050] sim note: worker/0 runs next 1005\n");
    assert_int_equal(fetched(dear), 1005);
    assert_int_equal(computed, 2);
    end(cluster);
}

/* A chain: what is lost is computed from the end that is wanted, each link once. */
TEST(test_chain)
{
    struct cluster *cluster = BEGIN(.workers = 2, OWN);
    struct cluster_closure *links[4];

    reset();
    open_at(cluster->chief);
    links[0] = call_with(cluster->chief, "dear", 5, KEPT);
    for (int i = 1; i < 4; i++)
        links[i] = use(links[i - 1], "next", KEPT);
    run_until(cluster, 500);
    sim_crash(cluster->workers[1]->node);
    run_until(cluster, 1000);
    (void)sim_trace(cluster->sim);
    assert_int_equal(fetched(links[3]), 1008);
    expect_trace(
        cluster,
        "[ 1000] chief/0 supervisor: the result of closure 4294967299 is lost: it is "
        "computed again\n"
        "[ 1000] chief/0 supervisor: the result of closure 4294967298 is lost: it is "
        "computed again\n"
        "[ 1000] chief/0 supervisor: the result of closure 4294967297 is lost: it is "
        "computed again\n"
        "[ 1000] chief/0 supervisor: the result of closure 4294967296 is lost: it is "
        "computed again\n"
        "[ 1020] sim note: worker/0 runs dear 5\n"
        "[ 1050] sim note: worker/0 runs next 1005\n"
        "[ 1080] sim note: worker/0 runs next 1006\n"
        "[ 1110] sim note: worker/0 runs next 1007\n");
    assert_int_equal(computed, 2);
    end(cluster);
}

/* It cannot be computed again: that is the input error of those who use it. */
TEST(test_computing_fails)
{
    struct cluster *cluster = BEGIN(.workers = 2, OWN);
    struct cluster_closure *dear;
    struct cluster_closure *user;

    reset();
    fails_from = 2;
    open_at(cluster->chief);
    dear = call_with(cluster->chief, "dear", 5, KEPT);
    run_until(cluster, 260);
    sim_crash(cluster->workers[1]->node);
    run_until(cluster, 1000);
    user = use(dear, "next", NULL);
    run_until(cluster, 1200);
    assert_int_equal(error_of(user)->kind, MU_ERROR_INPUT);
    assert_int_equal(error_of(user)->code, -MU_EDATALOSS);
    assert_int_equal(error_of(user)->attempt, 0);
    assert_string_equal(error_of(user)->message, "the source has gone");
    assert_int_equal(join(cluster->chief), -MU_EDATALOSS);
    end(cluster);
}

/* The program lets go: the object goes at its worker. While a closure uses it, it
 * stays. */
TEST(test_release)
{
    struct cluster *cluster = BEGIN(.workers = 2, .clients = 1, OWN);
    struct cluster_task *client = cluster->clients[0];
    struct cluster_closure *kept;
    struct cluster_closure *user;

    reset();
    open_at(client);
    kept = call_with(client, "shelf", 1, KEPT);
    run_for(cluster, 100);
    assert_true(is_resolved(kept));
    set_work_ms(cluster, 1000);
    user = use(kept, "look", NULL);
    run_for(cluster, 100);
    cluster_let_go(kept);
    run_for(cluster, 500);
    assert_int_equal(dropped[1], 0);
    assert_int_equal(fetched(user), 1);
    run_for(cluster, 100);
    assert_int_equal(made[1], 1);
    assert_int_equal(dropped[1], 1);
    end(cluster);
}

/* Nobody is there any more for what a worker has kept: its client has died while the
 * function ran, or has cancelled it just too late for the worker to know. */
TEST(test_kept_for_nobody)
{
    struct cluster *cluster = BEGIN(.workers = 1, .clients = 2, OWN);
    struct cluster_closure *late;

    reset();
    set_work_ms(cluster, 500);
    open_at(cluster->clients[0]);
    open_at(cluster->clients[1]);
    (void)call_with(cluster->clients[0], "shelf", 1, KEPT);
    run_for(cluster, 100);
    sim_crash(cluster->clients[0]->node);
    run_for(cluster, 1000);
    assert_int_equal(made[1], 1);
    assert_int_equal(dropped[1], 1);

    late = call_with(cluster->clients[1], "shelf", 2, KEPT);
    run_for(cluster, 510);
    cluster_cancel(late);
    run_for(cluster, 100);
    assert_int_equal(error_of(late)->code, -MU_ECANCELLED);
    assert_int_equal(made[2], 1);
    assert_int_equal(dropped[2], 1);
    end(cluster);
}

/* A chain is being computed again for a closure whose program has let go of everything
 * too early, as a program should not: with that closure the whole chain goes. Places of
 * closures that were done before are not taken for some that wait. */
TEST(test_chain_is_cancelled)
{
    struct cluster *cluster = BEGIN(.workers = 2, OWN);
    struct cluster_task *chief = cluster->chief;
    struct cluster_closure *before[8];
    struct cluster_closure *links[4];
    struct cluster_closure *user;

    reset();
    open_at(chief);
    schedule(chief, "square", 8, before);
    links[0] = call_with(chief, "dear", 5, KEPT);
    for (int i = 1; i < 4; i++)
        links[i] = use(links[i - 1], "next", KEPT);
    run_until(cluster, 600);
    sim_crash(cluster->workers[0]->node);
    sim_crash(cluster->workers[1]->node);
    run_until(cluster, 700);
    cluster_start(cluster->workers[0]);
    run_until(cluster, 3000);
    set_work_ms(cluster, 2000);
    user = use(links[3], "next", NULL);
    run_until(cluster, 3100);
    for (int i = 0; i < 4; i++) {
        const struct mu__release release = {.input = links[i]->future->held.number};

        forge(chief, (mu__pid){0, MU__CLIENT}, MU__SUPERVISOR, MU__RELEASE, &release,
              sizeof release);
    }
    run_until(cluster, 3200);
    expect_explained(user, "held", "for 1 of its 1 inputs");
    assert_int_equal(cluster_wait(cluster_ask(chief, MU__CLIENT_CLOSE, -1)), 0);
    chief->session->over = true;
    assert_int_equal(error_of(user)->code, -MU_ECANCELLED);
    end(cluster);
}

/* ---- Per-worker values by function ---- */

static struct mu__held *per_worker(struct cluster_task *task, const char *function,
                                   mu_value *args)
{
    struct cluster_call *call = cluster_per_worker(task, function, args, 1000);

    assert_int_equal(cluster_wait(call), 0);
    return cluster_per_worker_made(call);
}

/* Each worker builds its own, and again when it comes back, before it gets closures. One
 * that joins later does, too. */
TEST(test_built_everywhere)
{
    struct cluster *cluster = BEGIN(.workers = 2, OWN);
    struct mu__held *held;
    struct cluster_closure *users[3];

    NEEDS_LONG_TURNS(cluster);
    reset();
    open_at(cluster->chief);
    held = per_worker(cluster->chief, "shelf", mu_value_int(3));
    for (int i = 0; i < 2; i++)
        users[i] = use_held(cluster->chief, "look", held, NULL);
    assert_int_equal(join(cluster->chief), 0);
    expect_trace(cluster, "[  180] sim note: worker/1 runs shelf 3\n"
                          "[  180] sim note: worker/0 runs shelf 3\n"
                          "[  190] sim note: worker/1 runs look 3\n"
                          "[  190] sim note: worker/0 runs look 3\n");
    assert_int_equal(cluster_result(users[0]) + cluster_result(users[1]), 6);
    assert_int_equal(sim_restart(cluster->workers[0]->node), 0);
    sim_crash(cluster->workers[1]->node);
    run_for(cluster, 50);
    (void)sim_trace(cluster->sim);
    users[2] = use_held(cluster->chief, "look", held, NULL);
    assert_int_equal(fetched(users[2]), 3);
    cluster_start(cluster_add(cluster, "worker", 2, "third"));
    run_for(cluster, 1000);
    users[2] = use_held(cluster->chief, "look", held, ASK(.worker = 3));
    assert_int_equal(fetched(users[2]), 3);
    assert_int_equal(made[3], 4);

    /* Closing: each worker that is left drops its own; dead ones had theirs freed. */
    mu__held_unref(held);
    run_for(cluster, 100);
    assert_int_equal(dropped[3], 4);
    end(cluster);
}

/* A worker that cannot build it makes closures fail there, and there only. */
TEST(test_build_error)
{
    struct cluster *cluster = BEGIN(.workers = 2, OWN);
    struct mu__held *held;
    struct cluster_closure *users[2];

    reset();
    fails_on = 1;
    open_at(cluster->chief);
    held = per_worker(cluster->chief, "shelf", mu_value_int(3));
    for (unsigned i = 0; i < 2; i++)
        users[i] = use_held(cluster->chief, "look", held, ASK(.worker = i + 1));
    run_for(cluster, 200);
    assert_int_equal(cluster_result(users[0]), 3);
    assert_int_equal(error_of(users[1])->kind, MU_ERROR_INPUT);
    assert_int_equal(error_of(users[1])->code, -MU_ENOTFOUND);
    assert_string_equal(error_of(users[1])->task, "/job:worker/task:1");
    assert_string_equal(
        error_of(users[1])->message,
        "per-worker value 1, made by function \"shelf\", failed: no such file");
    assert_int_equal(join(cluster->chief), -MU_ENOTFOUND);
    mu__held_unref(held);
    end(cluster);
}

/* ---- Per-worker values by values ---- */

TEST(test_values)
{
    struct cluster *cluster = BEGIN(.workers = 3, OWN);
    mu_value *list = mu_value_list();
    struct mu__held *held;
    struct cluster_closure *users[3];

    reset();
    (void)mu_value_append(list, mu_value_int(100));
    (void)mu_value_append(list, mu_value_int(200));
    open_at(cluster->chief);
    held = per_worker(cluster->chief, NULL, list);
    for (unsigned i = 0; i < 3; i++)
        users[i] = use_held(cluster->chief, "next", held, ASK(.worker = i + 1));
    run_for(cluster, 200);
    assert_int_equal(cluster_result(users[0]), 101);
    assert_int_equal(cluster_result(users[1]), 201);
    assert_int_equal(error_of(users[2])->kind, MU_ERROR_INPUT);
    assert_string_equal(error_of(users[2])->message,
                        "a per-worker value has no item for /job:worker/task:2");
    assert_int_equal(join(cluster->chief), -MU_ENOTFOUND);

    /* A worker that comes back gets its own again. */
    assert_int_equal(sim_restart(cluster->workers[1]->node), 0);
    users[1] = use_held(cluster->chief, "next", held, ASK(.worker = 2));
    assert_int_equal(fetched(users[1]), 201);
    mu__held_unref(held);
    end(cluster);
}

/* Closed while a closure that uses it runs, and another one is queued: both get it. */
TEST(test_closed_in_use)
{
    struct cluster *cluster = BEGIN(.workers = 1, .window = 1, OWN);
    struct mu__held *held;
    struct cluster_closure *users[2];

    reset();
    open_at(cluster->chief);
    held = per_worker(cluster->chief, "shelf", mu_value_int(3));
    run_for(cluster, 100);
    set_work_ms(cluster, 500);
    for (int i = 0; i < 2; i++)
        users[i] = use_held(cluster->chief, "look", held, NULL);
    mu__held_unref(held);
    assert_int_equal(join(cluster->chief), 0);
    for (int i = 0; i < 2; i++)
        assert_int_equal(cluster_result(users[i]), 3);
    run_for(cluster, 100);
    assert_int_equal(dropped[3], 1);
    end(cluster);
}

TEST_PROGRAM()
