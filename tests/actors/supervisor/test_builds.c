/* Builds of per-worker values that kill their workers, or do not end: those who use the
 * value are told, and everybody else goes on. */
#include "tests/support/story.h"

enum { LONG_MS = 2000 }; /* of work: workers are lost while they build */

/* A number that stays on its worker. */
static int run_shelf(mu_run *run, void *user)
{
    int64_t *object = malloc(sizeof *object);

    *object = number_of(run);
    note_run(user, "shelf", *object);
    mu_run_return_object(run, object, free);
    return 0;
}

static int run_look(mu_run *run, void *user)
{
    const int64_t *object = mu_run_object(run, mu_run_args(run));

    (void)user;
    if (object == NULL)
        return mu_run_fail(run, -MU_EINVALID, "no object");
    mu_run_return(run, mu_value_int(*object));
    return 0;
}

static const struct cluster_function own[] = {
    {"shelf", run_shelf, 0},
    {"look", run_look, 0},
};

#define OWN .functions = own, .functions_count = 2

static struct mu__held *shelf(struct cluster *cluster, int64_t number)
{
    struct cluster_call *call =
        cluster_per_worker(cluster->chief, "shelf", mu_value_int(number), 1000);

    assert_int_equal(cluster_wait(call), 0);
    return cluster_per_worker_made(call);
}

static struct cluster_closure *look(struct cluster *cluster, struct mu__held *held,
                                    const struct cluster_ask *ask)
{
    return cluster_schedule_args(cluster->chief, "look", mu__reference_to(held), ask);
}

/* How many workers were lost under the builds of a value, as the status has it. */
static int64_t losses_of(struct cluster *cluster, size_t value)
{
    mu_value *status = status_of(cluster->chief);
    const mu_value *list = mu_value_find(status, "per_worker");
    int64_t losses = -1;

    (void)mu_value_get_int(mu_value_find(mu_value_at(list, value), "losses"), &losses);
    mu_value_free(status);
    return losses;
}

/* A worker is lost in the middle of what it does, and comes back. */
static void lose(struct cluster *cluster, unsigned worker)
{
    run_for(cluster, LONG_MS / 2);
    assert_int_equal(sim_restart(cluster->workers[worker]->node), 0);
    run_for(cluster, LONG_MS / 4);
}

/* ---- Builds that kill ---- */

TEST(test_build_that_kills_is_given_up)
{
    struct cluster *cluster = BEGIN(.workers = 2, .attempts_max = 4, OWN);
    struct cluster_closure *others[3];
    struct cluster_closure *users[2];
    struct mu__held *poison;
    struct mu__held *again;

    set_work_ms(cluster, LONG_MS);
    open_at(cluster->chief);
    poison = shelf(cluster, 1);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(losses_of(cluster, 0), 2 * i);
        run_for(cluster, LONG_MS / 2);
        for (int worker = 0; worker < 2; worker++)
            assert_int_equal(sim_restart(cluster->workers[worker]->node), 0);
        run_for(cluster, LONG_MS / 4);
    }
    assert_int_equal(losses_of(cluster, 0), 4);

    /* Nobody builds it any more, on none of the two. */
    (void)sim_trace(cluster->sim);
    set_work_ms(cluster, 10);
    schedule(cluster->chief, "square", 3, others);
    run_for(cluster, 100);
    expect_squares(others, 3);
    for (unsigned i = 0; i < 2; i++)
        users[i] = look(cluster, poison, ASK(.worker = i + 1));
    run_for(cluster, 100);
    for (unsigned i = 0; i < 2; i++) {
        assert_int_equal(error_of(users[i])->kind, MU_ERROR_INPUT);
        assert_int_equal(error_of(users[i])->code, -MU_EABORTED);
    }
    assert_string_equal(error_of(users[0])->task, "/job:worker/task:0");
    assert_string_equal(
        error_of(users[0])->message,
        "per-worker value 1, made by function \"shelf\", lost its worker 4 times, of "
        "these 2 /job:worker/task:0; given up there");
    assert_int_equal(join(cluster->chief), -MU_EABORTED);
    assert_null(strstr(sim_trace(cluster->sim), "runs shelf"));

    /* The program makes a new one, which is another. */
    mu__held_unref(poison);
    again = shelf(cluster, 2);
    users[0] = look(cluster, again, NULL);
    assert_int_equal(join(cluster->chief), 0);
    assert_int_equal(cluster_result(users[0]), 2);
    mu__held_unref(again);
    end(cluster);
}

/* What was lost on one worker alone is given up there alone. */
TEST(test_given_up_on_one_worker)
{
    struct cluster *cluster = BEGIN(.workers = 2, .attempts_max = 2, OWN);
    struct cluster_closure *users[2];
    struct mu__held *held;

    set_work_ms(cluster, LONG_MS);
    open_at(cluster->chief);
    held = shelf(cluster, 7);
    lose(cluster, 0);
    lose(cluster, 0);
    assert_int_equal(losses_of(cluster, 0), 2);
    run_for(cluster, LONG_MS);
    set_work_ms(cluster, 10);
    users[1] = look(cluster, held, ASK(.worker = 2));
    run_for(cluster, 100);
    assert_int_equal(cluster_result(users[1]), 7);
    users[0] = look(cluster, held, ASK(.worker = 1));
    assert_int_equal(join(cluster->chief), -MU_EABORTED);
    assert_int_equal(error_of(users[0])->kind, MU_ERROR_INPUT);
    mu__held_unref(held);
    end(cluster);
}

/* Two values are built beside each other until two workers were lost under them: from
 * then on each has the worker to itself, and the innocent one is done. */
TEST(test_quarantined_builds_run_one_by_one)
{
    struct cluster *cluster = BEGIN(.workers = 1, .threads = 2, .attempts_max = 3, OWN);
    struct mu__held *innocent;
    struct mu__held *poison;
    struct cluster_closure *users[2];

    sim_settings(cluster->sim)->executors = 2;
    set_work_ms(cluster, LONG_MS);
    open_at(cluster->chief);
    innocent = shelf(cluster, 1);
    poison = shelf(cluster, 2);
    lose(cluster, 0);
    lose(cluster, 0);
    assert_int_equal(losses_of(cluster, 0), 2);
    assert_int_equal(losses_of(cluster, 1), 2);
    run_for(cluster, LONG_MS); /* the first one is done, the second begins */
    lose(cluster, 0);
    assert_int_equal(losses_of(cluster, 0), 2);
    assert_int_equal(losses_of(cluster, 1), 3);
    run_for(cluster, 2 * LONG_MS);
    set_work_ms(cluster, 10);
    users[0] = look(cluster, innocent, NULL);
    run_for(cluster, 100);
    assert_int_equal(cluster_result(users[0]), 1);
    users[1] = look(cluster, poison, NULL);
    assert_int_equal(join(cluster->chief), -MU_EABORTED);
    assert_int_equal(error_of(users[1])->kind, MU_ERROR_INPUT);
    mu__held_unref(innocent);
    mu__held_unref(poison);
    end(cluster);
}

/* ---- Builds that do not end ---- */

/* It has one thread of two; those who use it wait, also those that were given to the
 * worker at first, and leave room for the others. */
TEST(test_build_that_hangs_keeps_its_users_alone)
{
    struct cluster *cluster = BEGIN(.workers = 1, .threads = 2, OWN);
    struct sim_settings *settings = sim_settings(cluster->sim);
    struct cluster_closure *users[4];
    struct cluster_closure *others[20];
    struct mu__held *held;

    settings->executors = 2;
    settings->stuck_percent = 100;
    settings->stuck = (struct sim_range){20000 * 1000, 20000 * 1000};
    settings->stuck_until_us = (sim_now_ms(cluster->sim) + 100) * 1000;
    open_at(cluster->chief);
    held = shelf(cluster, 3);
    run_for(cluster, 150);
    for (int i = 0; i < 4; i++)
        users[i] = look(cluster, held, NULL);
    schedule(cluster->chief, "square", 20, others);
    run_for(cluster, 3000);
    expect_squares(others, 20);
    for (int i = 0; i < 4; i++)
        assert_false(is_resolved(users[i]));
    assert_int_equal(join(cluster->chief), 0);
    for (int i = 0; i < 4; i++)
        assert_int_equal(cluster_result(users[i]), 3);
    mu__held_unref(held);
    end(cluster);
}

/* A worker that comes back builds before it gets closures, for a while. */
TEST(test_build_that_hangs_after_a_return)
{
    struct cluster *cluster = BEGIN(.workers = 1, .threads = 2, OWN);
    struct sim_settings *settings = sim_settings(cluster->sim);
    struct cluster_closure *other;
    struct mu__held *held;

    settings->executors = 2;
    open_at(cluster->chief);
    held = shelf(cluster, 3);
    run_for(cluster, 100);
    settings->stuck_percent = 100;
    settings->stuck = (struct sim_range){20000 * 1000, 20000 * 1000};
    settings->stuck_until_us = (sim_now_ms(cluster->sim) + 500) * 1000;
    assert_int_equal(sim_restart(cluster->workers[0]->node), 0);
    run_for(cluster, 500);
    other = cluster_schedule(cluster->chief, "square");
    run_for(cluster, 100);
    assert_false(is_resolved(other));
    run_for(cluster, 1000);
    assert_int_equal(cluster_result(other), cluster_square(other->key));
    mu__held_unref(held);
    end(cluster);
}

TEST_PROGRAM()
