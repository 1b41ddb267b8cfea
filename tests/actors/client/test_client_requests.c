/* The client actor: errors of no closure, per-worker values, requests to the
 * supervisor. */
#include "tests/actors/client/client_program.h"

/* ---- Errors of no closure; requests ---- */

TEST_ON(test_fault, struct fixture *f, setup, teardown)
{
    struct mu__msg *msg = answer(MU__FAULT, sizeof(struct mu__fault));
    struct mu__fault *body = mu__body(msg);
    struct mu__client_call join;

    *body = (struct mu__fault){MU_EUNAVAILABLE, MU_ERROR_WORKER,
                               mu__view_str("/job:worker/task:1"), mu__view_str("away")};
    deliver(f, msg, MU__SUPERVISOR);
    join = ask(f, MU__CLIENT_JOIN);
    assert_int_equal(join.call.code, -MU_EUNAVAILABLE);
    assert_int_equal(join.call.error.kind, MU_ERROR_WORKER);
    assert_string_equal(join.call.error.task, "/job:worker/task:1");
    assert_int_equal(ask(f, MU__CLIENT_JOIN).call.code, 0);
    assert_int_equal(atomic_load(&f->session.errors_stored), 1);
}

/* A per-worker value's number is listed like that of a kept result. */
TEST_ON(test_per_worker, struct fixture *f, setup, teardown)
{
    struct mu__msg *request =
        mu__msg_heap(MU__PER_WORKER_MAKE, sizeof(struct mu__per_worker_make));
    struct mu__client_call call = {
        .call.operation = MU__CLIENT_REQUEST, .call.timeout_ms = -1, .request = request};
    struct mu__msg *made =
        answer(MU__PER_WORKER_MADE, sizeof(struct mu__per_worker_made));
    struct mu__per_worker_made *body = mu__body(made);
    mu_per_worker *per_worker = mu__per_worker_new(&f->home);
    mu_remote_value *future;

    post(f, &call);
    *body = (struct mu__per_worker_made){.token = last(f)->token,
                                         .input = MU__PER_WORKER_BIT | 1};
    deliver(f, made, MU__SUPERVISOR);
    per_worker->held.number = call.input;
    per_worker->held.chief_epoch = call.chief_epoch;
    future = schedule_pending(f, mu__reference_to(&per_worker->held), 0);
    mu__held_unref(&per_worker->held);
    assert_int_equal(last(f)->kind, MU__SCHEDULE);
    assert_true(last(f)->inputs[0] == (MU__PER_WORKER_BIT | 1));
    resolve(f, last(f)->token, 0, 0);
    assert_int_equal(last(f)->kind, MU__RELEASE);
    assert_true(last(f)->token == (MU__PER_WORKER_BIT | 1));
    mu_remote_value_free(future);
}

/* Their numbers go along, and they are let go of: the chief has them from then on. */
TEST_ON(test_holds, struct fixture *f, setup, teardown)
{
    mu_per_worker *per_workers[6];
    mu_remote_value *future;
    uint64_t token;

    for (size_t i = 0; i < 2; i++)
        per_workers[i] = per_worker_at(f, i + 1);
    future = schedule_holds(f, references_to(per_workers, 2));
    assert_int_equal(f->heard_count, 3);
    assert_int_equal(f->heard[0].kind, MU__SCHEDULE);
    assert_int_equal(f->heard[0].inputs_count, 2);
    for (size_t i = 0; i < 2; i++) {
        assert_true(f->heard[0].inputs[i] == (MU__PER_WORKER_BIT | (i + 1)));
        assert_int_equal(f->heard[1 + i].kind, MU__RELEASE);
        assert_true(f->heard[1 + i].token == (MU__PER_WORKER_BIT | (i + 1)));
    }
    token = f->heard[0].token;
    resolve(f, token, 5, 0);
    assert_int_equal(f->heard_count, 3);
    assert_int_equal(int_at(future->result), 5);
    mu_remote_value_free(future);
}

/* As long as there is no room at the chief they are held; of one that is cancelled there,
 * they are let go of. */
TEST_ON(test_holds_wait, struct fixture *f, setup, teardown)
{
    mu_per_worker *per_workers[] = {per_worker_at(f, 1), per_worker_at(f, 2)};
    mu_remote_value *sent;
    mu_remote_value *cancelled;

    allow(f, 2, 0, 0);
    sent = schedule_holds(f, references_to(&per_workers[0], 1));
    cancelled = schedule_holds(f, references_to(&per_workers[1], 1));
    assert_int_equal(f->given_back, 0);
    cancel(f, cancelled);
    assert_int_equal(mu_remote_value_state(cancelled), MU_REMOTE_ABORTED);
    assert_int_equal(f->given_back, 1);
    assert_true(last(f)->token == (MU__PER_WORKER_BIT | 2));
    allow(f, 3, 1024, 1 << 30);
    assert_int_equal(f->given_back, 2);
    assert_int_equal(last(f)->kind, MU__RELEASE);
    assert_true(last(f)->token == (MU__PER_WORKER_BIT | 1));
    for (size_t i = 0; i < f->heard_count; i++)
        if (f->heard[i].kind == MU__SCHEDULE) {
            assert_true(f->heard[i].inputs[0] == (MU__PER_WORKER_BIT | 1));
            resolve(f, f->heard[i].token, 5, 0);
            break;
        }
    assert_int_equal(int_at(sent->result), 5);
    FREE(sent, cancelled);
}

/* Those of a chief that was lost since fail their closure, with words. */
TEST_ON(test_holds_lost, struct fixture *f, setup, teardown)
{
    mu_per_worker *per_workers[6];
    mu_remote_value *future;

    for (size_t i = 0; i < 6; i++) {
        per_workers[i] = per_worker_at(f, i + 1);
        per_workers[i]->held.chief_epoch = i == 2 || i == 5 ? 9 : 0;
    }
    future = schedule_holds(f, references_to(per_workers, 6));
    assert_int_equal(future->error->code, -MU_EUNAVAILABLE);
    assert_int_equal(future->error->kind, MU_ERROR_INPUT);
    assert_string_equal(future->error->function, "h");
    assert_string_equal(future->error->message, "an input was kept for a chief that is "
                                                "lost (and 1 more of its inputs failed)");
    for (size_t i = 0; i < f->heard_count; i++)
        assert_int_not_equal(f->heard[i].kind, MU__SCHEDULE);
    assert_int_equal(f->given_back, 6);
    mu_remote_value_free(future);
}

/* The answer to one who gave up is let go of. */
TEST_ON(test_made_too_late, struct fixture *f, setup, teardown)
{
    struct mu__msg *made =
        answer(MU__PER_WORKER_MADE, sizeof(struct mu__per_worker_made));

    *(struct mu__per_worker_made *)mu__body(made) =
        (struct mu__per_worker_made){.token = 77, .input = MU__PER_WORKER_BIT | 2};
    deliver(f, made, MU__SUPERVISOR);
    assert_int_equal(last(f)->kind, MU__RELEASE);
}

TEST_ON(test_drain, struct fixture *f, setup, teardown)
{
    struct mu__client_call call = {.call.operation = MU__CLIENT_REQUEST,
                                   .call.timeout_ms = 70,
                                   .request =
                                       mu__msg_heap(MU__DRAIN, sizeof(struct mu__drain))};
    struct mu__msg *msg = answer(MU__DRAINED, sizeof(struct mu__drained));

    post(f, &call);
    *(struct mu__drained *)mu__body(msg) = (struct mu__drained){
        last(f)->token, MU_ENOTFOUND, mu__view_str("no such worker")};
    deliver(f, msg, MU__SUPERVISOR);
    assert_int_equal(call.call.code, -MU_ENOTFOUND);
    assert_string_equal(call.call.error.message, "no such worker");
    call.request = mu__msg_heap(MU__DRAIN, sizeof(struct mu__drain));
    post(f, &call);
    run_until(f, 70);
    assert_int_equal(call.call.code, -MU_EDEADLINE);
    assert_string_equal(call.call.error.message, "the chief did not answer within 70 ms");
}

/* The node is closed while everything waits for something. */
TEST_ON(test_end, struct fixture *f, setup, teardown)
{
    mu_remote_value *a = schedule(f);
    mu_remote_value *b = schedule_pending(f, pair(a, a), 1000);
    mu_remote_value *c = schedule(f);
    struct mu__client_call fetch = {
        .call.operation = MU__CLIENT_FETCH, .call.timeout_ms = 9, .future = b};
    struct mu__client_call kept = {
        .call.operation = MU__CLIENT_FETCH, .call.timeout_ms = 9, .future = c};

    post(f, &fetch);
    post(f, &kept);
    resolve_kept(f, last(f)->token);
    mu__stop(f->kernel, (mu__pid){MU__NODE_SELF, MU__CLIENT});
    run(f);
    assert_int_equal(b->error->code, -MU_ECLOSED);
    assert_int_equal(c->error->code, -MU_ECLOSED);
    c->held.number = NO_NUMBER; /* no client is there to be told */
    FREE(a, b, c);
}

TEST_PROGRAM()
