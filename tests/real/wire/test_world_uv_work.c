/* Work on the threads of the real world. */
#include "tests/real/wire/world_uv_fixture.h"

/* ---- Set-up ---- */

static bool had_dones(struct fixture *f)
{
    return f->dones >= f->wanted_dones && !f->turn_due;
}

/* ---- Work ---- */

struct job {
    struct mu__work work; /* first: run casts */
    bool ran;
    char thread_name[16];
};

static void run_job(struct mu__work *work)
{
    struct job *job = (struct job *)work;

    job->ran = true;
#ifdef __linux__
    (void)prctl(PR_GET_NAME, job->thread_name);
#endif
}

static void submit(struct fixture *f, struct mu__work *work)
{
    f->door->ops->submit(f->door, work);
}

TEST_ON(test_work_comes_back, struct fixture *f, setup, teardown)
{
    struct job *jobs = calloc(WORKS, sizeof *jobs);

    assert_non_null(jobs);
    for (uint32_t i = 0; i < WORKS; i++) {
        jobs[i].work = (struct mu__work){.run = run_job, .owner = {0, i}};
        submit(f, &jobs[i].work);
    }
    assert_int_equal(mu__world_uv_busy(f->world), WORKS);
    f->wanted_dones = WORKS;
    run_until(f, had_dones);
    assert_int_equal(mu__world_uv_busy(f->world), 0);
    assert_true(f->turns > 0 && f->turns <= WORKS);
    for (unsigned i = 0; i < WORKS; i++) {
        assert_true(jobs[i].ran);
#ifdef __linux__
        assert_true(strcmp(jobs[i].thread_name, "mu-exec-0") == 0 ||
                    strcmp(jobs[i].thread_name, "mu-exec-1") == 0);
#endif
    }

    jobs[7].work.owner = (mu__pid){0, 4711};
    submit(f, &jobs[7].work);
    f->wanted_dones++;
    run_until(f, had_dones);
    assert_ptr_equal(f->last_done, &jobs[7].work);
    assert_int_equal(f->last_to.actor, 4711);
    free(jobs);
}

struct blocker {
    struct mu__work work; /* first: run casts */
    sem_t started;
    sem_t go_on;
    sem_t ended; /* the last thing that run touches */
};

static void wait_for(sem_t *semaphore)
{
    while (sem_wait(semaphore) != 0)
        continue;
}

static void run_blocker(struct mu__work *work)
{
    struct blocker *blocker = (struct blocker *)work;

    (void)sem_post(&blocker->started);
    wait_for(&blocker->go_on);
    (void)sem_post(&blocker->ended);
}

static void start_blocker(struct fixture *f, struct blocker *blocker)
{
    *blocker = (struct blocker){.work = {.run = run_blocker}};
    assert_int_equal(sem_init(&blocker->started, 0, 0), 0);
    assert_int_equal(sem_init(&blocker->go_on, 0, 0), 0);
    assert_int_equal(sem_init(&blocker->ended, 0, 0), 0);
    submit(f, &blocker->work);
    wait_for(&blocker->started);
}

static void end_blocker(struct blocker *blocker)
{
    (void)sem_destroy(&blocker->started);
    (void)sem_destroy(&blocker->go_on);
    (void)sem_destroy(&blocker->ended);
}

/* Work that blocks holds up its thread only; submissions behind it keep their order. */
TEST_ON(test_blocked_work_holds_nobody_up, struct fixture *f, setup, teardown)
{
    struct blocker blocker;
    struct job job = {.work = {.run = run_job}};

    start_blocker(f, &blocker);
    submit(f, &job.work);
    f->wanted_dones = 1;
    run_until(f, had_dones);
    assert_ptr_equal(f->last_done, &job.work);
    f->wanted_turns = f->turns + 1;
    wake_at(f, now_ms(f));
    run_until(f, had_turns);
    assert_int_equal(mu__world_uv_busy(f->world), 1);

    (void)sem_post(&blocker.go_on);
    f->wanted_dones = 2;
    run_until(f, had_dones);
    end_blocker(&blocker);
}

/* Work that waits is given back in its order, work that runs comes back as ever, and
 * nothing starts after that. */
TEST_ON(test_start_no_work, struct fixture *f, setup, teardown)
{
    struct blocker blockers[THREADS];
    struct job first = {.work = {.run = run_job}};
    struct job second = {.work = {.run = run_job}};
    struct job late = {.work = {.run = run_job}};
    struct mu__list given_back;

    for (unsigned i = 0; i < THREADS; i++)
        start_blocker(f, &blockers[i]);
    submit(f, &first.work);
    submit(f, &second.work);
    given_back = mu__world_uv_start_no_work(f->world);
    assert_ptr_equal(given_back.first, &first.work.node);
    assert_ptr_equal(given_back.first->next, &second.work.node);
    assert_ptr_equal(given_back.last, &second.work.node);
    submit(f, &late.work);
    assert_null(mu__world_uv_start_no_work(f->world).first);
    assert_int_equal(mu__world_uv_busy(f->world), THREADS);

    for (unsigned i = 0; i < THREADS; i++)
        (void)sem_post(&blockers[i].go_on);
    f->wanted_dones = THREADS;
    run_until(f, had_dones);
    assert_int_equal(mu__world_uv_busy(f->world), 0);
    mu__world_uv_close(f->world, on_closed, &f->closed);
    run_until(f, is_closed);
    assert_int_equal(f->dones, THREADS);
    assert_false(first.ran || second.ran || late.ran);
    for (unsigned i = 0; i < THREADS; i++)
        end_blocker(&blockers[i]);
}

/* Closing waits for work that runs and forgets work that waits. */
TEST_ON(test_close_waits_for_running_work, struct fixture *f, setup, teardown)
{
    struct blocker blockers[THREADS];
    struct job waiting = {.work = {.run = run_job}};

    for (unsigned i = 0; i < THREADS; i++)
        start_blocker(f, &blockers[i]);
    submit(f, &waiting.work);
    assert_int_equal(mu__world_uv_busy(f->world), THREADS + 1);
    mu__world_uv_close(f->world, on_closed, &f->closed);
    assert_int_equal(mu__world_uv_busy(f->world), THREADS);
    (void)uv_run(&f->loop, UV_RUN_NOWAIT);
    assert_false(f->closed);

    for (unsigned i = 0; i < THREADS; i++)
        (void)sem_post(&blockers[i].go_on);
    run_until(f, is_closed);
    assert_int_equal(f->dones, 0);
    assert_false(waiting.ran);
    for (unsigned i = 0; i < THREADS; i++)
        end_blocker(&blockers[i]);
}

/* Work that finished and was not delivered yet is no reason to wait. */
TEST_ON(test_close_with_finished_work, struct fixture *f, setup, teardown)
{
    struct blocker blocker;

    start_blocker(f, &blocker);
    (void)sem_post(&blocker.go_on);
    mu__world_uv_close(f->world, on_closed, &f->closed);
    run_until(f, is_closed);
    assert_int_equal(f->dones, 0);
    end_blocker(&blocker);
}

/* An abandoned thread goes on by itself, and the world is closed without it. The blocker
 * is static as the work of an abandoned thread must be: it stays. */
TEST_ON(test_abandon, struct fixture *f, setup, teardown)
{
    static struct blocker blocker;

    start_blocker(f, &blocker);
    mu__world_uv_close(f->world, on_closed, &f->closed);
    (void)uv_run(&f->loop, UV_RUN_NOWAIT);
    assert_false(f->closed);
    assert_int_equal(mu__world_uv_busy(f->world), 1);
    mu__world_uv_abandon(f->world);
    run_until(f, is_closed);

    (void)sem_post(&blocker.go_on);
    wait_for(&blocker.ended);
}

TEST_PROGRAM()
