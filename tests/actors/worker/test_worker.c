/* What a worker does with runs: calls, lines, cancelling, effects, ends. */
#include "tests/support/lone_worker.h"

#include "actors/packing.h"

#include <stdio.h>
#include <string.h>

/* ---- Functions ---- */

static int run_about(mu_run *run, void *user)
{
    char text[160];

    (void)lone_called(run, user);
    (void)snprintf(text, sizeof text, "%s/%llu/%u/%d", mu_run_closure_name(run),
                   (unsigned long long)mu_run_closure_id(run), mu_run_attempt(run),
                   mu_run_worker(run));
    mu_run_return(run, mu_value_string(text));
    return 0;
}

static int run_chatter(mu_run *run, void *user)
{
    struct fixture *f = lone_called(run, user);

    for (unsigned i = 0; i < f->lines; i++)
        mu_run_log(run, "line %u of the function\n", i);
    return mu_run_fail(run, -MU_EINVALID, "said enough");
}

/* Errors of all sorts, by number. */
static const struct error_row {
    const char *what;
    mu_error error;
    int returns; /* 0: what mu_run_fail_with gave back */
    const char *stack;
    unsigned code;
    unsigned kind;
    const char *origin;
    const char *message;
    const char *detail;
} error_rows[] = {
    /* clang-format off */
    {"a server's, by its task",
     {.code = -MU_EUNAVAILABLE, .task = "/job:ps/task:1", .message = "gone"}, 0, NULL,
     MU_EUNAVAILABLE, MU_ERROR_SERVER, "/job:ps/task:1", "gone", ""},
    {"with a kind of its own",
     {.code = -MU_EDEADLINE, .kind = MU_ERROR_LIMIT, .message = "late",
      .detail = "where"}, 0, NULL,
     MU_EDEADLINE, MU_ERROR_LIMIT, "", "late", "where"},
    {"of nothing known", {.code = -MU_EINVALID, .message = "hm"}, 0, NULL,
     MU_EINVALID, MU_ERROR_FUNCTION, "", "hm", ""},
    {"no error at all", {.code = 0}, 0, "at f()\nat g()",
     MU_EUNKNOWN, MU_ERROR_FUNCTION, "", "unknown error", "at f()\nat g()"},
    {"a code that is none", {.code = -4000, .kind = 777, .message = "x"}, 0, NULL,
     MU_EUNKNOWN, MU_ERROR_FUNCTION, "", "x", ""},
    {"another code is returned in the end",
     {.code = -MU_EUNAVAILABLE, .task = "/job:ps/task:1", .message = "gone"},
     -MU_EINVALID, NULL, MU_EINVALID, MU_ERROR_FUNCTION, "", "gone", ""},
    {"a number that is no code is returned",
     {.code = -MU_EUNAVAILABLE, .task = "/job:ps/task:1", .message = "gone"},
     7, NULL, MU_EUNKNOWN, MU_ERROR_FUNCTION, "", "the function returned 7", ""},
    /* clang-format on */
};

static int run_error(mu_run *run, void *user)
{
    const struct error_row *row;
    int64_t i = 0;
    int rv;

    (void)lone_called(run, user);
    (void)mu_value_get_int(mu_run_args(run), &i);
    row = &error_rows[i];
    rv = mu_run_fail_with(run, &row->error);
    if (row->stack != NULL)
        mu_run_set_stack_trace(run, row->stack);
    return row->returns == 0 ? rv : row->returns;
}

static const struct lone_function own[] = {{"about", run_about, 0},
                                           {"chatter", run_chatter, 0},
                                           {"error", run_error, 0},
                                           {"whole:name", run_about, 0}};

static int set_up(void **state)
{
    return lone_set_up_with(state, own, sizeof own / sizeof own[0]);
}

/* ---- Plain runs ---- */

TEST_ON(test_plain, struct fixture *f, set_up, lone_tear_down)
{
    RUN(f, 9, "echo", mu_value_int(5));
    expect_silence(f);
    work(f);
    expect_result(f, 9, mu_value_int(5));
    RUN(f, 10, "quick", mu_value_int(6));
    expect_result(f, 10, mu_value_int(6));
    RUN(f, 11, "about", .attempt = 4);
    work(f);
    expect_result(f, 11, mu_value_string("the closure/11/4/3"));
    RUN(f, 12, "nothing");
    expect_error(f, 12, MU_ENOTFOUND, MU_ERROR_FUNCTION,
                 "no function \"nothing\" on /job:worker/task:3, which has 13 (is its "
                 "plugin loaded there?)");
    assert_int_equal(f->calls, 3);
}

/* "echo:x" is an "echo" whose errors have the whole name. */
TEST_ON(test_name_with_a_colon, struct fixture *f, set_up, lone_tear_down)
{
    RUN(f, 9, "echo:this", mu_value_int(5));
    work(f);
    expect_result(f, 9, mu_value_int(5));
    RUN(f, 10, "echo:this:that", mu_value_int(6));
    work(f);
    expect_result(f, 10, mu_value_int(6));
    RUN(f, 11, "whole:name", mu_value_int(7));
    work(f);
    expect_result(f, 11, mu_value_string("the closure/11/1/3"));
    RUN(f, 12, ":echo");
    expect_error(f, 12, MU_ENOTFOUND, MU_ERROR_FUNCTION,
                 "no function \":echo\" on /job:worker/task:3, which has 13 (is its "
                 "plugin loaded there?)");
    assert_int_equal(f->calls, 3);
}

TEST_ON(test_errors, struct fixture *f, set_up, lone_tear_down)
{
    for (size_t i = 0; i < sizeof error_rows / sizeof error_rows[0]; i++) {
        const struct error_row *row = &error_rows[i];
        struct mu__msg *msg;
        struct mu__result *body;

        RUN(f, 1, "error", mu_value_int((int64_t)i));
        work(f);
        msg = hear(f, MU__RESULT);
        body = mu__body(msg);
        if (body->code != row->code || body->error_kind != row->kind)
            fail_msg("%s: code %u, kind %u", row->what, body->code, body->error_kind);
        expect_view(body->origin, row->origin);
        expect_view(body->message, row->message);
        expect_view(body->detail, row->detail);
        free_msg(f, msg);
    }
    RUN(f, 2, "fail");
    work(f);
    expect_error(f, 2, MU_EINVALID, MU_ERROR_FUNCTION, "bad data");
}

/* ---- What has begun ---- */

static void expect_begun(struct fixture *f, uint64_t closure, uint32_t for_ms)
{
    struct mu__msg *msg = hear(f, MU__BEGUN);
    struct mu__view begun = ((struct mu__begun *)mu__body(msg))->begun;
    struct mu__attempt told;

    assert_int_equal(mu__attempts_count(begun, MU__ATTEMPT_TIMED_BYTES), 1);
    told = mu__attempts_at(begun, MU__ATTEMPT_TIMED_BYTES, 0);
    assert_int_equal(told.closure, closure);
    assert_int_equal(told.for_ms, for_ms);
    free_msg(f, msg);
}

/* The chief hears of a run that takes long, also when the system was slow to wake the
 * thread that runs it. */
TEST_ON(test_begun_late, struct fixture *f, set_up, lone_tear_down)
{
    struct mu__work *first;

    pass_time(f, 1000);
    RUN(f, 9, "echo", mu_value_int(5));
    RUN(f, 10, "echo", mu_value_int(6));
    for (int i = 0; i < 10; i++)
        pass_time(f, 10);
    expect_silence(f);
    first = take_work(f);
    pass_time(f, 5);
    expect_silence(f);
    pass_time(f, 10);
    expect_begun(f, 9, 15);
    pass_time(f, 100);
    end_work(f, first);
    expect_result(f, 9, mu_value_int(5));
    pass_time(f, 50);
    first = take_work(f);
    pass_time(f, 20);
    expect_begun(f, 10, 20);
    end_work(f, first);
    expect_result(f, 10, mu_value_int(6));
    pass_time(f, 1000);
    expect_silence(f);
}

/* ---- Lines ---- */

static void handle_lines(struct fixture *f)
{
    while (f->posted != NULL) {
        struct mu__msg *msg = f->posted;

        f->posted = msg->next;
        assert_int_equal(mu__kernel_deliver(f->kernel, msg), 0);
    }
    lone_turn(f);
}

/* The log gets each line while the function runs; the error gets the last ones. */
TEST_ON(test_lines, struct fixture *f, set_up, lone_tear_down)
{
    struct mu__msg *msg;
    struct mu__result *body;

    f->lines = 2;
    RUN(f, 1, "chatter");
    work(f);
    handle_lines(f);
    assert_string_equal(f->log, "chatter: line 0 of the function\n"
                                "chatter: line 1 of the function\n");
    msg = hear(f, MU__RESULT);
    body = mu__body(msg);
    expect_view(body->detail, "line 0 of the function\nline 1 of the function");
    free_msg(f, msg);
}

/* More than the loop takes: some are left out, and that is said. */
TEST_ON(test_too_many_lines, struct fixture *f, set_up, lone_tear_down)
{
    struct mu__msg *msg;
    struct mu__result *body;
    char first[64];
    unsigned posted = 0;

    f->lines = MU__RUN_LINES_MAX + 10;
    RUN(f, 1, "chatter");
    work(f);
    for (const struct mu__msg *m = f->posted; m != NULL; m = m->next)
        posted++;
    assert_int_equal(posted, MU__RUN_LINES_MAX);
    handle_lines(f);
    assert_non_null(strstr(f->log, "chatter: 10 log lines dropped"));
    msg = hear(f, MU__RESULT);
    body = mu__body(msg);
    assert_true(body->detail.size <= MU__DETAIL_BYTES_MAX && body->detail.size > 900);
    mu__view_copy(body->detail, first, sizeof first);
    assert_memory_equal(first, "line ", 5);
    free_msg(f, msg);

    f->lines = 1;
    RUN(f, 2, "chatter");
    work(f);
    assert_non_null(f->posted);
    free_msg(f, hear(f, MU__RESULT));
}

/* ---- Cancelling ---- */

/* What a thread has taken runs; what it has not is answered at once, without a call. */
TEST_ON(test_cancel, struct fixture *f, set_up, lone_tear_down)
{
    struct mu__work *one;

    RUN(f, 1, "echo", mu_value_int(1));
    RUN(f, 2, "echo", mu_value_int(2));
    one = begin_work(f);
    TELL(f, MU__CANCEL, cancel, 1, 1);
    TELL(f, MU__CANCEL, cancel, 2, 2);
    TELL(f, MU__CANCEL, cancel, 3, 1);
    TELL(f, MU__CANCEL, cancel, 2, 1);
    expect_error(f, 2, MU_ECANCELLED, MU_ERROR_OTHER, "cancelled before it began");
    assert_null(f->works.first);
    end_work(f, one);
    expect_result(f, 1, mu_value_int(1));
    assert_int_equal(f->calls, 1);
}

TEST_ON(test_cancel_what_is_kept, struct fixture *f, set_up, lone_tear_down)
{
    struct mu__work *one;

    RUN(f, 1, "echo", mu_value_int(1), MU__CLOSURE_KEEP);
    RUN(f, 2, "quick", ref(1), 0, {1});
    one = begin_work(f);
    TELL(f, MU__CANCEL, cancel, 1, 1);
    end_work(f, one);
    expect_error(f, 1, MU_ECANCELLED, MU_ERROR_FUNCTION, "cancelled: nothing was kept");
    expect_not_there(f, 1);
    TELL(f, MU__CANCEL, cancel, 2, 1);
    expect_error(f, 2, MU_ECANCELLED, MU_ERROR_OTHER,
                 "cancelled while it waited for inputs");
    RUN(f, ITEM(1), "fail", NULL, MU__CLOSURE_BUILD);
    TELL(f, MU__CANCEL, cancel, ITEM(1), 1);
    expect_error(f, ITEM(1), MU_ECANCELLED, MU_ERROR_OTHER, "cancelled before it began");
    expect_not_there(f, ITEM(1));
}

/* The chief had it from another worker and sends it here, while a run that nobody waits
 * for still makes it: what was sent counts, whatever becomes of the run. */
TEST_ON(test_input_while_building, struct fixture *f, set_up, lone_tear_down)
{
    struct mu__work *one;

    RUN(f, 1, "echo", mu_value_int(1), MU__CLOSURE_KEEP);
    RUN(f, 2, "quick", ref(1), 0, {1});
    one = begin_work(f);
    give_input(f, 1, mu_value_int(7));
    expect_result(f, 2, mu_value_int(7));
    TELL(f, MU__CANCEL, cancel, 1, 1);
    end_work(f, one);
    expect_error(f, 1, MU_ECANCELLED, MU_ERROR_FUNCTION, "cancelled: nothing was kept");
    expect_pull(f, 1, 0, mu_value_int(7), "");
}

/* ---- Effects ---- */

TEST_ON(test_effects, struct fixture *f, set_up, lone_tear_down)
{
    RUN(f, 1, "write");
    work(f);
    expect_silence(f);
    assert_int_equal(f->sent_count, 1);
    assert_int_equal(f->sent[0]->effects.origin, 70);
    assert_int_equal(f->sent[0]->effects.effect, 0);
    assert_int_equal(f->sent[0]->effects.effects_done, 72);
    answer_effects(f, 0);
    expect_result(f, 1, mu_value_int(1));

    RUN(f, 2, "write", NULL, MU__CLOSURE_ONCE | MU__CLOSURE_KEEP);
    RUN(f, 3, "quick", ref(2), 0, {2});
    work(f);
    assert_int_equal(f->sent[0]->effects.effect, 71);
    expect_not_there(f, 2);
    answer_effects(f, 0);
    expect_result(f, 2, NULL);
    expect_result(f, 3, mu_value_int(1));

    RUN(f, 4, "write");
    work(f);
    answer_effects(f, -MU_EUNAVAILABLE);
    expect_error(f, 4, MU_EUNAVAILABLE, MU_ERROR_SERVER, "did not answer");
}

/* Not those of a function that failed, or that nobody wants; without a variables actor
 * they are an error. */
TEST_ON(test_effects_that_are_not_sent, struct fixture *f, set_up, lone_tear_down)
{
    struct mu__work *one;

    RUN(f, 1, "write_and_fail");
    work(f);
    expect_error(f, 1, MU_EINVALID, MU_ERROR_FUNCTION, "after all");
    RUN(f, 2, "write");
    one = begin_work(f);
    TELL(f, MU__CANCEL, cancel, 2, 1);
    end_work(f, one);
    expect_error(f, 2, MU_ECANCELLED, MU_ERROR_FUNCTION,
                 "cancelled: nothing was written");
    RUN(f, 3, "write");
    work(f);
    TELL(f, MU__CANCEL, cancel, 3, 1);
    answer_effects(f, 0);
    expect_result(f, 3, mu_value_int(1));
    mu__stop(f->kernel, (mu__pid){MU__NODE_SELF, MU__VARIABLES});
    RUN(f, 4, "write");
    work(f);
    expect_error(f, 4, MU_ENOTFOUND, MU_ERROR_FUNCTION,
                 "what the function wrote cannot be sent: not found");
    assert_int_equal(f->sent_count, 0);
}

/* ---- Ends ---- */

/* One run in each place, one item in each state. */
static struct mu__work *begin_everything(struct fixture *f)
{
    struct mu__work *begun;

    RUN(f, ITEM(1), "make", NULL, MU__CLOSURE_BUILD);
    work(f);
    RUN(f, ITEM(2), "fail", NULL, MU__CLOSURE_BUILD);
    work(f);
    RUN(f, 1, "write");
    work(f);
    give_input(f, 2, mu_value_string("here"));
    RUN(f, ITEM(3), "make", ref(2), MU__CLOSURE_BUILD, {2});
    begun = begin_work(f);
    RUN(f, 3, "use", ref(ITEM(1)), 0, {ITEM(1)});
    RUN(f, 4, "echo", ref(ITEM(3)), 0, {ITEM(3)});
    RUN(f, 5, "echo", nested(ref(2), ref(77)), MU__CLOSURE_KEEP, {2, 77});
    drop_item(f, 99);
    free_msgs(f, &f->said);
    return begun;
}

/* A lost chief gets no answers, and nothing of its is kept or called. */
TEST_ON(test_chief_lost, struct fixture *f, set_up, lone_tear_down)
{
    struct mu__work *begun = begin_everything(f);
    unsigned calls = f->calls;

    lose_chief(f);
    assert_int_equal(mu__worker_pinned_bytes(worker_of(f)), 0);
    assert_null(f->works.first);
    assert_int_equal(f->drops, 1);
    end_work(f, begun);
    assert_int_equal(f->calls, calls + 1);
    assert_int_equal(f->drops, 2);
    answer_effects(f, 0);
    assert_null(f->works.first);
    assert_int_equal(mu__worker_pinned_bytes(worker_of(f)), 0);
    for (const struct mu__msg *msg = f->said; msg != NULL; msg = msg->next)
        assert_int_equal(msg->to.node, CHIEF);
}

/* A node that leaves: what runs comes back, what waits is gone, nothing begins. */
TEST_ON(test_leave, struct fixture *f, set_up, lone_tear_down)
{
    struct mu__work *begun = begin_everything(f);
    unsigned calls = f->calls;
    char running[64];

    mu__worker_leave(worker_of(f), mu__kernel_pool(f->kernel), f->works);
    f->works = (struct mu__list){NULL, NULL};
    mu__worker_cancel_all(worker_of(f));
    assert_true(mu__worker_running(worker_of(f), running, sizeof running));
    assert_string_equal(running, "make");
    end_work(f, begun);
    assert_false(mu__worker_running(worker_of(f), running, sizeof running));
    RUN(f, 6, "quick");
    give_input(f, 77, mu_value_int(7));
    assert_int_equal(f->calls, calls + 1);
    assert_null(f->works.first);
}

/* tear_down frees everything, wherever it is. */
TEST_ON(test_end_in_the_middle, struct fixture *f, set_up, lone_tear_down)
{
    (void)begin_everything(f);
    assert_non_null(f->works.first);
    assert_int_equal(f->sent_count, 1);
}

/* The worker ends with runs that wait and one that the variables actor has. */
TEST_ON(test_end_of_the_actor, struct fixture *f, set_up, lone_tear_down)
{
    char running[64];

    end_work(f, begin_everything(f));
    while (f->works.first != NULL)
        work(f);
    RUN(f, 7, "echo", ref(78), MU__CLOSURE_KEEP, {78});
    assert_false(mu__worker_running(worker_of(f), running, sizeof running));
    assert_true(mu__worker_pinned_bytes(worker_of(f)) > 0);
    mu__stop(f->kernel, (mu__pid){MU__NODE_SELF, MU__WORKER});
    assert_null(worker_of(f));
    mu_value_free(f->seen);
    f->seen = NULL;
    assert_int_equal(f->drops, 2);
}

TEST_PROGRAM()
