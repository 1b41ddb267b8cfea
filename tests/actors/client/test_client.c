/* The client actor alone, with a probe in the supervisor's place that notes what it is
 * told, and answers when the test says so. */
#include "tests/actors/client/client_program.h"

/* ---- References ---- */

/* The same input twice is waited for once. */
TEST_ON(test_waits_for_inputs, struct fixture *f, setup, teardown)
{
    mu_remote_value *a = schedule(f);
    mu_remote_value *b = schedule(f);
    mu_value *args = pair(a, b);
    mu_remote_value *c;
    const struct heard *heard;

    assert_int_equal(mu_value_append(args, mu_value_remote(a)), 0);
    c = schedule_pending(f, args, 0);
    assert_int_equal(f->heard_count, 2);
    resolve(f, f->heard[0].token, 7, 0);
    assert_int_equal(f->heard_count, 2);
    resolve(f, f->heard[1].token, 8, 0);
    assert_int_equal(f->heard_count, 3);
    heard = last(f);
    assert_int_equal(heard->kind, MU__SCHEDULE);
    assert_int_equal(heard->inputs_count, 0);
    assert_int_equal(int_at(mu_value_at(heard->args, 0)), 7);
    assert_int_equal(int_at(mu_value_find(mu_value_at(heard->args, 1), "deep")), 8);
    assert_int_equal(int_at(mu_value_at(heard->args, 2)), 7);
    resolve(f, heard->token, 9, 0);
    assert_int_equal(mu_remote_value_state(c), MU_REMOTE_READY);
    assert_int_equal(count(&f->session.finished), 3);
    FREE(a, b, c);
}

/* The first one by position is told, whichever came first; what depends on that in turn
 * hears the same, and all of it is counted. */
TEST_ON(test_input_errors, struct fixture *f, setup, teardown)
{
    mu_remote_value *a = schedule(f);
    mu_remote_value *b = schedule(f);
    mu_remote_value *c = schedule_pending(f, pair(a, b), 0);
    mu_remote_value *d = schedule_pending(f, pair(c, c), 0);
    uint64_t first = f->heard[0].token;

    resolve(f, f->heard[1].token, 0, -MU_ERANGE);
    resolve(f, first, 0, -MU_EINVALID);
    assert_int_equal(c->error->code, -MU_EINVALID);
    assert_int_equal(c->error->kind, MU_ERROR_INPUT);
    assert_string_equal(c->error->message, "input closure 101 \"f\" failed: it broke "
                                           "(and 1 more of its inputs failed)");
    assert_string_equal(c->error->function, "g");
    assert_string_equal(c->error->task, "/job:worker/task:3");
    assert_string_equal(c->error->detail, "a stack");
    assert_string_equal(d->error->message, c->error->message);
    assert_int_equal(count(&f->session.failed), 4);
    assert_int_equal(atomic_load(&f->session.errors_stored), 4);
    assert_int_equal(f->heard_count, 2);
    FREE(a, b, c, d);
}

/* Cancelled inputs are no error. */
TEST_ON(test_cancelled_input, struct fixture *f, setup, teardown)
{
    mu_remote_value *a = schedule(f);
    mu_remote_value *b = schedule_pending(f, pair(a, a), 0);

    resolve(f, f->heard[0].token, 0, -MU_ECANCELLED);
    assert_int_equal(mu_remote_value_state(b), MU_REMOTE_ABORTED);
    assert_int_equal(b->error->code, -MU_ECANCELLED);
    assert_int_equal(count(&f->session.cancelled), 2);
    assert_int_equal(atomic_load(&f->session.errors_stored), 0);
    assert_int_equal(atomic_load(&f->session.phase), MU__SESSION_FINE);
    FREE(a, b);
}

/* Thousands that wait for each other are resolved without a deep stack. */
TEST_ON(test_long_chain, struct fixture *f, setup, teardown)
{
    enum { LENGTH = 3000 };
    mu_remote_value *chain[LENGTH];

    chain[0] = schedule(f);
    for (size_t i = 1; i < LENGTH; i++)
        chain[i] = schedule_pending(f, pair(chain[i - 1], chain[0]), 0);
    resolve(f, f->heard[0].token, 0, -MU_ERANGE);
    for (size_t i = 0; i < LENGTH; i++) {
        assert_int_equal(chain[i]->error->code, -MU_ERANGE);
        mu_remote_value_free(chain[i]);
    }
    assert_int_equal(atomic_load(&f->session.errors_stored), MU__ERRORS_STORED_MAX);
    assert_int_equal(count(&f->session.errors_lost), LENGTH - MU__ERRORS_STORED_MAX);
}

TEST_ON(test_cancel, struct fixture *f, setup, teardown)
{
    mu_remote_value *a = schedule(f);
    mu_remote_value *b = schedule_pending(f, pair(a, a), 0);
    mu_remote_value *c = schedule_pending(f, pair(b, b), 0);

    cancel(f, b);
    assert_int_equal(mu_remote_value_state(b), MU_REMOTE_ABORTED);
    assert_int_equal(mu_remote_value_state(c), MU_REMOTE_ABORTED);
    assert_int_equal(f->heard_count, 1);
    cancel(f, a);
    assert_int_equal(mu_remote_value_state(a), MU_REMOTE_NOT_READY);
    assert_int_equal(last(f)->kind, MU__CANCEL_CLOSURE);
    assert_int_equal(last(f)->token, f->heard[0].token);
    resolve(f, f->heard[0].token, 0, -MU_ECANCELLED);
    cancel(f, a);
    assert_int_equal(f->heard_count, 2);
    assert_int_equal(count(&f->session.cancelled), 3);
    FREE(a, b, c);
}

TEST_ON(test_error_cancels_waiting, struct fixture *f, setup, teardown)
{
    mu_remote_value *a = schedule(f);
    mu_remote_value *b = schedule(f);
    mu_remote_value *c = schedule_pending(f, pair(a, a), 0);
    struct mu__client_call join = {.call.operation = MU__CLIENT_JOIN,
                                   .call.timeout_ms = -1};

    post(f, &join);
    resolve(f, f->heard[1].token, 0, -MU_EINVALID);
    assert_int_equal(last(f)->kind, MU__CANCEL_ALL);
    assert_int_equal(mu_remote_value_state(c), MU_REMOTE_ABORTED);
    resolve(f, f->heard[0].token, 0, -MU_ECANCELLED);
    assert_int_equal(join.call.code, -MU_EINVALID);
    assert_int_equal(join.call.error.kind, MU_ERROR_FUNCTION);
    assert_string_equal(join.call.error.detail, "a stack");
    FREE(a, b, c);
}

TEST_ON(test_deadline_while_waiting, struct fixture *f, setup, teardown)
{
    mu_remote_value *a = schedule(f);
    mu_remote_value *b = schedule_pending(f, pair(a, a), 100);
    mu_remote_value *c = schedule_pending(f, pair(a, a), 1000);

    run_until(f, 100);
    assert_int_equal(b->error->code, -MU_EDEADLINE);
    assert_int_equal(b->error->kind, MU_ERROR_LIMIT);
    resolve(f, f->heard[0].token, 1, 0);
    assert_int_equal(last(f)->deadline_ms, 900);
    resolve(f, last(f)->token, 1, 0);
    FREE(a, b, c);
}

/* The input is there: the closure does not wait for it any more. */
TEST_ON(test_input_comes_at_the_deadline, struct fixture *f, setup, teardown)
{
    mu_remote_value *a = schedule(f);
    mu_remote_value *b = schedule_pending(f, pair(a, a), 100);

    f->now_ms = 100;
    resolve(f, f->heard[0].token, 1, 0);
    assert_int_equal(f->heard_count, 2);
    assert_int_equal(last(f)->kind, MU__SCHEDULE);
    assert_int_equal(last(f)->deadline_ms, 1);
    resolve(f, last(f)->token, 1, 0);
    assert_int_equal(mu_remote_value_state(b), MU_REMOTE_READY);
    assert_null(b->error);
    FREE(a, b);
}

/* ---- Kept results ---- */

/* Its number goes along, once; it is let go when the program has done so and the closure
 * that uses it was sent: the chief keeps it as long as that needs it. */
TEST_ON(test_kept_input, struct fixture *f, setup, teardown)
{
    mu_remote_value *a = schedule(f);
    mu_remote_value *b = schedule_pending(f, pair(a, a), 0);
    const mu_value *item;
    uint64_t token;

    resolve_kept(f, f->heard[0].token);
    assert_int_equal(mu_remote_value_state(a), MU_REMOTE_READY);
    assert_int_equal(last(f)->inputs_count, 1);
    assert_int_equal(last(f)->inputs[0], 101);
    item = mu_value_at(last(f)->args, 0);
    assert_int_equal(mu_value_type(item), MU_VALUE_REFERENCE);
    assert_int_equal(((const struct mu__reference *)item)->number, 101);
    token = last(f)->token;
    run(f);
    assert_int_equal(f->heard_count, 2);
    mu_remote_value_free(a);
    run(f);
    assert_int_equal(f->heard_count, 3);
    assert_int_equal(last(f)->kind, MU__RELEASE);
    assert_int_equal(last(f)->token, 101);
    assert_int_equal(f->given_back, 1);
    resolve(f, token, 5, 0);
    assert_int_equal(f->heard_count, 3);
    mu_remote_value_free(b);
}

/* Several that fetch it ask once; then the content is here. */
TEST_ON(test_fetch_kept, struct fixture *f, setup, teardown)
{
    mu_remote_value *a = schedule(f);
    struct mu__client_call calls[2];
    unsigned before = f->completed;

    for (size_t i = 0; i < 2; i++) {
        calls[i] = (struct mu__client_call){
            .call.operation = MU__CLIENT_FETCH, .call.timeout_ms = -1, .future = a};
        post(f, &calls[i]);
        if (i == 0)
            resolve_kept(f, f->heard[0].token);
    }
    assert_int_equal(f->heard_count, 2);
    assert_int_equal(last(f)->kind, MU__FETCH);
    assert_int_equal(last(f)->input, 101);
    assert_int_equal(f->completed, before);
    send_fetched(f, 101, 6, 0, 0);
    assert_int_equal(f->completed, before + 2);
    assert_int_equal(calls[0].call.code, 0);
    assert_int_equal(int_at(a->result), 6);
    send_fetched(f, 101, 7, 0, 0);
    assert_int_equal(int_at(a->result), 6);
    mu_remote_value_free(a);
}

/* What may pass is not kept; what is final is. */
TEST_ON(test_fetch_errors, struct fixture *f, setup, teardown)
{
    mu_remote_value *a = schedule(f);
    struct mu__client_call call;

    resolve_kept(f, f->heard[0].token);
    for (size_t i = 0; i < 2; i++) {
        call = (struct mu__client_call){
            .call.operation = MU__CLIENT_FETCH, .call.timeout_ms = -1, .future = a};
        post(f, &call);
        send_fetched(f, 101, 0, -MU_EUNAVAILABLE,
                     i == 0 ? MU_ERROR_OTHER : MU_ERROR_FUNCTION);
        assert_int_equal(call.call.code, -MU_EUNAVAILABLE);
        assert_true(mu__future_is(a, i == 0 ? MU__REMOTE_PINNED : MU_REMOTE_READY));
    }
    assert_string_equal(a->error->message, "away");
    mu_remote_value_free(a);
}

/* One call for all; at its limit it says which one is missing, and why. */
TEST_ON(test_fetch_many, struct fixture *f, setup, teardown)
{
    mu_remote_value *a = schedule(f);
    mu_remote_value *b = schedule(f);
    struct mu__waiter waiters[3] = {{.future = a}, {.future = b}, {.future = a}};
    struct mu__client_call call = {.call.operation = MU__CLIENT_FETCH,
                                   .call.timeout_ms = 50,
                                   .waiters = waiters,
                                   .waiters_count = 3};
    unsigned before = f->completed;

    post(f, &call);
    resolve(f, f->heard[0].token, 1, 0);
    assert_int_equal(f->completed, before);
    run_until(f, 50);
    assert_int_equal(last(f)->kind, MU__STATUS_GET);
    assert_int_equal(f->completed, before);
    run_until(f, 2050);
    assert_int_equal(f->completed, before + 1);
    assert_int_equal(call.call.code, -MU_EDEADLINE);
    assert_int_equal(call.call.error.kind, MU_ERROR_LIMIT);
    assert_int_equal(call.error_at, 1);
    assert_string_equal(call.call.error.message, "the closure has no result after 50 ms; "
                                                 "the chief did not say more");
    resolve(f, f->heard[1].token, 1, 0);
    FREE(a, b);
}

TEST_PROGRAM()
