/* Actors of the program's own: what leaves a turn, what an answer says, how a call ends,
 * on one node and between nodes. */
#include "runtime/message/value_layout.h"
#include "tests/support/test.h"
#include "tests/support/users/user_net.h"

static mu_address here;  /* a probe of node 0 */
static mu_address other; /* that the turns of `here` are about */

static int set_up(void **state)
{
    int rv = user_net_set_up(state);

    if (rv == 0)
        here = user_net_spawn(*state, 0, "probe", NULL, NULL);
    return rv;
}

static int call_other(mu_actor *self, const char *method, int64_t number, uint64_t token)
{
    mu_value *args = mu_value_int(number);
    int rv = mu_actor_call(self, &other, method, args, 1000, token);

    mu_value_free(args);
    return rv;
}

static int send_other(mu_actor *self, int64_t number)
{
    mu_value *args = mu_value_int(number);
    int rv = mu_actor_send(self, &other, "add", args);

    mu_value_free(args);
    return rv;
}

static void expect_error(const struct user_net *f, int code, int ran, const char *words)
{
    const struct probe_note *last = user_net_last(f, MU_NOTICE_ANSWER);

    assert_int_equal(last->error.code, code);
    assert_int_equal(last->error.ran, ran);
    assert_int_equal(last->error.kind, MU_ERROR_ACTOR);
    if (strstr(last->error.message, words) == NULL)
        fail_msg("\"%s\" does not say \"%s\"", last->error.message, words);
}

/* What each of these does is the same on one node and between two. */
static void check_both(struct user_net *f, void (*test)(struct user_net *f, size_t node))
{
    test(f, 0);
    f->notes_count = 0;
    test(f, 1);
}

/* ---- answers ---- */

static int call_twice(mu_actor *self, struct user_net *f)
{
    (void)f;
    assert_int_equal(call_other(self, "add", 3, 7), 0);
    return call_other(self, "add", 4, 8);
}

static void answers_come(struct user_net *f, size_t node)
{
    other = user_net_spawn(f, node, "probe", NULL, NULL);
    assert_int_equal(user_net_run(f, &here, call_twice), 0);
    assert_int_equal(f->notes_count, 2);
    assert_int_equal(f->notes[0].token, 7);
    assert_int_equal(f->notes[0].value, 3);
    assert_true(mu_address_equal(&f->notes[0].address, &other));
    assert_int_equal(f->notes[1].token, 8);
    assert_int_equal(f->notes[1].value, 7);
}

TEST_ON(test_a_call_is_answered, struct user_net *f, set_up, user_net_tear_down)
{
    check_both(f, answers_come);
}

static int call_badly(mu_actor *self, struct user_net *f)
{
    (void)f;
    return mu_actor_call(self, &other, "add", NULL, 1000, 1);
}

static int call_no_method(mu_actor *self, struct user_net *f)
{
    (void)f;
    return call_other(self, "subtract", 1, 1);
}

static int call_missing(mu_actor *self, struct user_net *f)
{
    mu_address missing = other;

    (void)f;
    missing.number += 1000;
    return mu_actor_call(self, &missing, "add", NULL, 1000, 1);
}

static void errors_say(struct user_net *f, size_t node)
{
    other = user_net_spawn(f, node, "probe", NULL, NULL);
    assert_int_equal(user_net_run(f, &here, call_badly), 0);
    expect_error(f, -MU_EINVALID, MU_RAN_YES, "1 is expected");
    assert_string_equal(user_net_last(f, MU_NOTICE_ANSWER)->error.function, "probe.add");
    assert_int_equal(user_net_run(f, &here, call_no_method), 0);
    expect_error(f, -MU_ENOTFOUND, MU_RAN_NO, "method");
    assert_int_equal(user_net_run(f, &here, call_missing), 0);
    expect_error(f, -MU_ENOTFOUND, MU_RAN_NO, "no such actor");
}

TEST_ON(test_an_error_says_what_ran, struct user_net *f, set_up, user_net_tear_down)
{
    check_both(f, errors_say);
}

static int call_with_reference(mu_actor *self, struct user_net *f)
{
    mu_value *args = mu_value_list();
    int rv;

    (void)f;
    assert_int_equal(mu_value_append(args, mu__value_reference(7, NULL, NULL)), 0);
    rv = mu_actor_call(self, &other, "add", args, 1000, 1);
    mu_value_free(args);
    assert_int_equal(rv, -MU_EINVALID);
    assert_int_equal(mu_actor_call(self, &other, "add", NULL, 0, 1), -MU_EINVALID);
    return 0;
}

TEST_ON(test_references_do_not_travel, struct user_net *f, set_up, user_net_tear_down)
{
    other = user_net_spawn(f, 1, "probe", NULL, NULL);
    assert_int_equal(user_net_run(f, &here, call_with_reference), 0);
    net_run_for(&f->net, 2000);
    assert_int_equal(f->notes_count, 0);
}

TEST_ON(test_who_lacks_the_right_hears_it_at_once, struct user_net *f, set_up,
        user_net_tear_down)
{
    other = user_net_spawn(f, 1, "probe", NULL, NULL);
    mu__kernel_node_right(f->nodes[0]->kernel, f->nodes[0]->numbers[1],
                          MU__RIGHT_OBSERVE);
    assert_int_equal(user_net_run(f, &here, call_twice), 0);
    expect_error(f, -MU_EPERMISSION, MU_RAN_NO, "needs the right \"use\"");
}

/* ---- turns ---- */

static int do_all_and_fail(mu_actor *self, struct user_net *f)
{
    mu_address child;

    (void)f;
    assert_int_equal(send_other(self, 5), 0);
    assert_int_equal(call_other(self, "add", 5, 1), 0);
    assert_int_equal(mu_actor_monitor(self, &other, 2), 0);
    assert_int_equal(mu_actor_timer(self, 10, 3), 0);
    assert_int_equal(mu_actor_spawn(self, "probe", NULL, NULL, &child), 0);
    assert_int_equal(mu_actor_stop(self, &other, MU_STOP_NOW), 0);
    return mu_actor_fail(self, -MU_EABORTED, "on purpose");
}

static void nothing_leaves(struct user_net *f, size_t node)
{
    uint64_t actors;

    other = user_net_spawn(f, node, "probe", NULL, NULL);
    actors = (uint64_t)user_net_lives(f, node, &other);
    assert_int_equal(user_net_run(f, &here, do_all_and_fail), -MU_EABORTED);
    net_run_for(&f->net, 100);
    assert_int_equal(f->notes_count, 0);
    assert_int_equal(user_net_lives(f, node, &other), actors);
    assert_int_equal(user_net_office(f, 0)->calls.count, 0);
    assert_int_equal(user_net_office(f, 0)->timers.count, 0);
    assert_int_equal(user_net_run(f, &here, call_twice), 0);
    assert_int_equal(user_net_last(f, MU_NOTICE_ANSWER)->value, 7);
}

TEST_ON(test_a_failed_turn_has_not_happened, struct user_net *f, set_up,
        user_net_tear_down)
{
    check_both(f, nothing_leaves);
}

TEST_ON(test_outside_of_a_turn_nothing_is_done, struct user_net *f, set_up,
        user_net_tear_down)
{
    mu_actor *self = mu__actor_find(user_net_office(f, 0), here.number);

    assert_int_equal(mu_actor_send(self, &here, "add", NULL), -MU_EPRECONDITION);
    assert_int_equal(mu_actor_timer(self, 1, 1), -MU_EPRECONDITION);
    assert_null(mu_actor_reply_later(self));
}

/* ---- the end of calls ---- */

static int call_holder(mu_actor *self, struct user_net *f)
{
    (void)f;
    return call_other(self, "hold", 0, 1);
}

static int stop_other(mu_actor *self, struct user_net *f)
{
    (void)f;
    return mu_actor_stop(self, &other, MU_STOP_NOW);
}

static int64_t give_code;

static int call_give(mu_actor *self, struct user_net *f)
{
    (void)f;
    return call_other(self, "give", give_code, 2);
}

static void unanswered_ends(struct user_net *f, size_t node)
{
    uint64_t late = user_net_office(f, 0)->late_answers;

    other = user_net_spawn(f, node, "probe", NULL, NULL);
    assert_int_equal(user_net_run(f, &here, call_holder), 0);
    net_run_for(&f->net, 999);
    assert_int_equal(f->notes_count, 0);
    net_run_for(&f->net, 1);
    assert_int_equal(f->notes_count, 1);
    expect_error(f, -MU_EDEADLINE, MU_RAN_MAYBE, "1000 ms");
    give_code = 0;
    assert_int_equal(user_net_run(f, &here, call_give), 0);
    assert_int_equal(f->notes_count, 2);
    assert_int_equal(user_net_office(f, 0)->late_answers, late + 1);
    f->notes_count = 1;
    assert_int_equal(user_net_run(f, &here, call_holder), 0);
    assert_int_equal(user_net_run(f, &here, stop_other), 0);
    assert_int_equal(f->notes_count, 2);
    expect_error(f, -MU_EABORTED, MU_RAN_MAYBE, "before it answered");
    net_run_for(&f->net, 2000);
    assert_int_equal(f->notes_count, 2);
}

TEST_ON(test_each_call_ends_once, struct user_net *f, set_up, user_net_tear_down)
{
    check_both(f, unanswered_ends);
}

TEST_ON(test_a_lost_node_ends_its_calls, struct user_net *f, set_up, user_net_tear_down)
{
    other = user_net_spawn(f, 1, "probe", NULL, NULL);
    assert_int_equal(user_net_run(f, &here, call_holder), 0);
    net_crash(f->nodes[1]);
    net_settle(&f->net);
    assert_int_equal(f->notes_count, 1);
    expect_error(f, -MU_EUNAVAILABLE, MU_RAN_MAYBE, "was lost");
    assert_int_equal(user_net_run(f, &here, call_holder), 0);
    expect_error(f, -MU_EUNAVAILABLE, MU_RAN_NO, "not connected");
    net_start(f->nodes[1]);
    net_settle(&f->net);
    assert_int_equal(user_net_run(f, &here, call_holder), 0);
    expect_error(f, -MU_ENOTFOUND, MU_RAN_NO, "has ended");
}

static void given_once(struct user_net *f, size_t node)
{
    other = user_net_spawn(f, node, "probe", NULL, NULL);
    assert_int_equal(user_net_run(f, &here, call_holder), 0);
    give_code = -MU_EABORTED;
    assert_int_equal(user_net_run(f, &here, call_give), 0);
    assert_int_equal(f->notes_count, 1);
    expect_error(f, -MU_EABORTED, MU_RAN_YES, "probe.give returned EABORTED");
    give_code = 0;
    assert_int_equal(user_net_run(f, &here, call_give), 0);
    assert_int_equal(f->notes_count, 3);
    assert_int_equal(f->notes[1].token, 1);
    assert_int_equal(f->notes[1].value, 42);
    assert_int_equal(f->notes[2].token, 2);
}

TEST_ON(test_an_answer_may_be_given_later, struct user_net *f, set_up, user_net_tear_down)
{
    check_both(f, given_once);
}

/* ---- room ---- */

static int sent;

static int send_until_full(mu_actor *self, struct user_net *f)
{
    int rv = 0;

    (void)f;
    sent = 0;
    while ((rv = send_other(self, 1)) == 0)
        sent++;
    assert_int_equal(rv, -MU_EAGAIN);
    return 0;
}

static int send_and_fail(mu_actor *self, struct user_net *f)
{
    (void)send_until_full(self, f);
    return -MU_EABORTED;
}

static void a_full_one_refuses(struct user_net *f, size_t node)
{
    const mu_actor_options options = {
        .size = sizeof options,
        .mailbox_max = 8,
    };
    int first;

    other = user_net_spawn(f, node, "probe", NULL, &options);
    assert_int_equal(user_net_run(f, &here, send_and_fail), -MU_EABORTED);
    first = sent;
    assert_true(first == 8 || (node != 0 && first == MU__ACTOR_WINDOW));
    assert_int_equal(user_net_run(f, &here, send_until_full), 0);
    assert_int_equal(sent, first); /* what failed holds no room */
    assert_true(user_net_count(f, MU_NOTICE_ROOM) >= 1);
    assert_true(mu_address_equal(&user_net_last(f, MU_NOTICE_ROOM)->address, &other));
    for (int i = 0; i < 5; i++) {
        assert_int_equal(user_net_run(f, &here, send_until_full), 0);
        assert_int_equal(sent, first);
    }
    assert_int_equal(user_net_run(f, &here, call_twice), 0);
    assert_int_equal(user_net_last(f, MU_NOTICE_ANSWER)->value, 6 * first + 7);
}

TEST_ON(test_a_full_mailbox_refuses_and_says_when_not, struct user_net *f, set_up,
        user_net_tear_down)
{
    check_both(f, a_full_one_refuses);
}

static int send_bytes(mu_actor *self, size_t size)
{
    static const char zeros[4096];
    mu_value *args = mu_value_bytes(zeros, size);
    int rv = mu_actor_send(self, &other, "add", args);

    mu_value_free(args);
    return rv;
}

/* One that is too large is taken when it is the only one. */
static int send_by_bytes(mu_actor *self, struct user_net *f)
{
    size_t size = f->notes_count % 2 == 0 ? 2000 : 600;

    assert_int_equal(send_bytes(self, size), 0);
    assert_int_equal(send_bytes(self, 500), -MU_EAGAIN);
    return size == 2000 ? 0 : send_bytes(self, 300);
}

TEST_ON(test_bytes_are_bounded, struct user_net *f, set_up, user_net_tear_down)
{
    const mu_actor_options options = {.size = sizeof options, .mailbox_bytes_max = 1000};

    other = user_net_spawn(f, 0, "probe", NULL, &options);
    for (size_t i = 1; i <= 4; i++) {
        assert_int_equal(user_net_run(f, &here, send_by_bytes), 0);
        assert_int_equal(user_net_count(f, MU_NOTICE_ROOM), i);
    }
}

static int call_until_full(mu_actor *self, struct user_net *f)
{
    int rv;

    (void)f;
    sent = 0;
    while ((rv = call_other(self, "hold", 0, 1)) == 0)
        sent++;
    assert_int_equal(rv, -MU_EEXHAUSTED);
    return -MU_EABORTED;
}

TEST_ON(test_calls_are_bounded, struct user_net *f, set_up, user_net_tear_down)
{
    const mu_actor_options options = {
        .size = sizeof options,
        .mailbox_max = MU__ACTOR_CALLS_MAX + 10,
    };

    other = user_net_spawn(f, 0, "probe", NULL, &options);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(user_net_run(f, &here, call_until_full), -MU_EABORTED);
        assert_int_equal(sent, MU__ACTOR_CALLS_MAX);
    }
}

/* ---- timers ---- */

static int set_timers(mu_actor *self, struct user_net *f)
{
    (void)f;
    assert_int_equal(mu_actor_timer(self, 10, 1), 0);
    assert_int_equal(mu_actor_timer(self, 10, 2), 0);
    return mu_actor_timer(self, 20, 3);
}

static int cancel_second(mu_actor *self, struct user_net *f)
{
    f->on_timer = NULL;
    mu_actor_timer_cancel(self, 2);
    return 0;
}

/* The kernel has sent both by then. */
TEST_ON(test_a_cancelled_timer_is_not_seen, struct user_net *f, set_up,
        user_net_tear_down)
{
    assert_int_equal(user_net_run(f, &here, set_timers), 0);
    f->on_timer = cancel_second;
    net_run_for(&f->net, 30);
    assert_int_equal(user_net_count(f, MU_NOTICE_TIMER), 2);
    assert_int_equal(f->notes[0].token, 1);
    assert_int_equal(f->notes[1].token, 3);
    assert_int_equal(user_net_office(f, 0)->timers.count, 0);
}

/* ---- monitors ---- */

static int watch_other(mu_actor *self, struct user_net *f)
{
    (void)f;
    return mu_actor_monitor(self, &other, 5);
}

static int unwatch_other(mu_actor *self, struct user_net *f)
{
    (void)f;
    mu_actor_unmonitor(self, 5);
    return 0;
}

static int die(mu_actor *self, struct user_net *f)
{
    mu_error why = {.code = -MU_EDATALOSS, .message = "all is lost"};

    (void)f;
    (void)send_other(self, 1);
    return mu_actor_die(self, &why);
}

static void one_down(struct user_net *f, size_t node)
{
    mu_address watched = user_net_spawn(f, node, "probe", NULL, NULL);

    other = watched;
    assert_int_equal(user_net_run(f, &here, watch_other), 0);
    assert_int_equal(user_net_run(f, &here, unwatch_other), 0);
    assert_int_equal(user_net_run(f, &here, watch_other), 0);
    assert_int_equal(user_net_count(f, MU_NOTICE_DOWN), 0);
    assert_int_equal(user_net_run(f, &watched, die), -MU_EDATALOSS);
    net_run_for(&f->net, 100);
    assert_int_equal(user_net_count(f, MU_NOTICE_DOWN), 1);
    assert_int_equal(user_net_last(f, MU_NOTICE_DOWN)->token, 5);
    assert_int_equal(user_net_last(f, MU_NOTICE_DOWN)->error.code, -MU_EDATALOSS);
    assert_string_equal(user_net_last(f, MU_NOTICE_DOWN)->error.message, "all is lost");
    assert_false(user_net_lives(f, node, &watched));
    assert_int_equal(user_net_run(f, &here, watch_other), 0);
    assert_int_equal(user_net_count(f, MU_NOTICE_DOWN), 2);
    assert_int_equal(user_net_last(f, MU_NOTICE_DOWN)->error.code, -MU_ENOTFOUND);
}

TEST_ON(test_one_down_for_each_monitor, struct user_net *f, set_up, user_net_tear_down)
{
    check_both(f, one_down);
}

TEST_ON(test_a_lost_node_is_down, struct user_net *f, set_up, user_net_tear_down)
{
    other = user_net_spawn(f, 1, "probe", NULL, NULL);
    assert_int_equal(user_net_run(f, &here, watch_other), 0);
    net_link_down(f->nodes[0], f->nodes[1]);
    net_settle(&f->net);
    assert_int_equal(user_net_count(f, MU_NOTICE_DOWN), 1);
    assert_int_equal(user_net_last(f, MU_NOTICE_DOWN)->error.code, -MU_EUNAVAILABLE);
    net_link_up(f->nodes[0], f->nodes[1]);
    assert_int_equal(user_net_run(f, &here, stop_other), 0);
    assert_int_equal(user_net_count(f, MU_NOTICE_DOWN), 1);
    assert_false(user_net_lives(f, 1, &other));
}

static int watch_too_often(mu_actor *self, struct user_net *f)
{
    (void)f;
    for (int i = 0; i <= MU__ACTOR_WATCHERS_MAX; i++)
        assert_int_equal(mu_actor_monitor(self, &other, (uint64_t)i), 0);
    return 0;
}

TEST_ON(test_monitors_of_a_node_are_bounded, struct user_net *f, set_up,
        user_net_tear_down)
{
    other = user_net_spawn(f, 1, "probe", NULL, NULL);
    assert_int_equal(user_net_run(f, &here, watch_too_often), 0);
    assert_int_equal(user_net_count(f, MU_NOTICE_DOWN), 1);
    assert_int_equal(user_net_last(f, MU_NOTICE_DOWN)->token, MU__ACTOR_WATCHERS_MAX);
    assert_int_equal(user_net_last(f, MU_NOTICE_DOWN)->error.code, -MU_EEXHAUSTED);
}

/* ---- children ---- */

static mu_address children[2];

static int spawn_two(mu_actor *self, struct user_net *f)
{
    mu_actor_options options;

    (void)f;
    mu_actor_options_init(&options);
    options.flags = MU_ACTOR_DETACHED;
    assert_int_equal(mu_actor_spawn(self, "probe", NULL, NULL, &children[0]), 0);
    assert_int_equal(mu_actor_spawn(self, "nothing", NULL, NULL, &children[1]),
                     -MU_ENOTFOUND);
    return mu_actor_spawn(self, "probe", NULL, &options, &children[1]);
}

TEST_ON(test_children_end_with_their_parent, struct user_net *f, set_up,
        user_net_tear_down)
{
    mu_address parent = user_net_spawn(f, 0, "probe", NULL, NULL);

    other = parent;
    assert_int_equal(user_net_run(f, &parent, spawn_two), 0);
    assert_true(user_net_lives(f, 0, &children[0]));
    assert_int_equal(user_net_run(f, &here, stop_other), 0);
    assert_false(user_net_lives(f, 0, &parent));
    assert_false(user_net_lives(f, 0, &children[0]));
    assert_true(user_net_lives(f, 0, &children[1]));
}

/* ---- chains ---- */

/* Passes a call on to the address in its arguments, and answers when that has answered:
 * [] is answered at once, [a, b] goes to a with [b]. */
struct passer {
    mu_reply *reply;
};

static int pass(mu_actor *self, void *state, const mu_value *args)
{
    struct passer *passer = state;
    mu_value *rest = mu_value_list();
    mu_address to;
    int rv = 0;

    for (size_t i = 1; i < mu_value_count(args); i++)
        assert_int_equal(mu_value_append(rest, mu_value_ref(mu_value_at(args, i))), 0);
    if (mu_value_count(args) > 0) {
        assert_int_equal(mu_value_get_actor(mu_value_at(args, 0), &to), 0);
        passer->reply = mu_actor_reply_later(self);
        rv = mu_actor_call(self, &to, "pass", rest, 1000, 1);
    }
    mu_value_free(rest);
    return rv;
}

static void passed(mu_actor *self, void *state, const mu_notice *notice)
{
    struct passer *passer = state;

    (void)self;
    assert_int_equal(mu_reply_give(passer->reply, NULL, notice->error), 0);
}

static const mu_actor_method passer_methods[] = {{"pass", pass}, {NULL, NULL}};
static const mu_actor_type passer_type = {
    .name = "passer",
    .state_size = sizeof(struct passer),
    .methods = passer_methods,
    .notice = passed,
};

static mu_address path[4];
static size_t path_length;

static int walk_path(mu_actor *self, struct user_net *f)
{
    mu_value *args = mu_value_list();
    int rv;

    (void)f;
    for (size_t i = 1; i < path_length; i++)
        assert_int_equal(mu_value_append(args, mu_value_actor(&path[i])), 0);
    rv = mu_actor_call(self, &path[0], "pass", args, 1000, 1);
    mu_value_free(args);
    return rv;
}

TEST_ON(test_calls_that_wait_for_each_other_end_at_once, struct user_net *f, set_up,
        user_net_tear_down)
{
    mu_actor_options options;

    user_net_register(f, &passer_type);
    path[0] = user_net_spawn(f, 0, "passer", NULL, NULL);
    path[1] = user_net_spawn(f, 1, "passer", NULL, NULL);
    path[2] = user_net_spawn(f, 2, "passer", NULL, NULL);
    path_length = 3;
    assert_int_equal(user_net_run(f, &here, walk_path), 0);
    assert_int_equal(user_net_last(f, MU_NOTICE_ANSWER)->error.code, 0);
    path[3] = path[1];
    path_length = 4;
    assert_int_equal(user_net_run(f, &here, walk_path), 0);
    expect_error(f, -MU_EPRECONDITION, MU_RAN_NO, "the calls wait for each other: ");
    expect_error(f, -MU_EPRECONDITION, MU_RAN_NO, "/job:worker/task:2#");
    path[1] = path[0];
    path_length = 2;
    assert_int_equal(user_net_run(f, &here, walk_path), 0);
    expect_error(f, -MU_EPRECONDITION, MU_RAN_NO, "passer.pass > passer.pass");
    mu_actor_options_init(&options);
    options.flags = MU_ACTOR_REENTRANT;
    path[0] = path[1] = user_net_spawn(f, 0, "passer", NULL, &options);
    assert_int_equal(user_net_run(f, &here, walk_path), 0);
    assert_int_equal(user_net_last(f, MU_NOTICE_ANSWER)->error.code, 0);
}

/* Answers at the first notice, and then calls back whom it has answered. */
static int called_back;

static int put_off(mu_actor *self, void *state, const mu_value *args)
{
    struct passer *passer = state;

    passer->reply = mu_actor_reply_later(self);
    return mu_actor_call(self, &here, "add", args, 1000, 1);
}

static void answer_and_call_back(mu_actor *self, void *state, const mu_notice *notice)
{
    struct passer *passer = state;
    mu_value *list = mu_value_list();

    if (passer->reply != NULL) {
        assert_int_equal(mu_reply_give(passer->reply, NULL, NULL), 0);
        assert_int_equal(mu_actor_call(self, &path[0], "pass", list, 1000, 1), 0);
    } else {
        called_back = notice->error == NULL ? 1 : notice->error->code;
    }
    passer->reply = NULL;
    mu_value_free(list);
}

static const mu_actor_method late_methods[] = {{"pass", put_off}, {NULL, NULL}};
static const mu_actor_type late_type = {
    .name = "late",
    .state_size = sizeof(struct passer),
    .methods = late_methods,
    .notice = answer_and_call_back,
};

TEST_ON(test_who_has_answered_does_not_wait, struct user_net *f, set_up,
        user_net_tear_down)
{
    user_net_register(f, &passer_type);
    user_net_register(f, &late_type);
    path[0] = user_net_spawn(f, 0, "passer", NULL, NULL);
    path[1] = user_net_spawn(f, 0, "late", NULL, NULL);
    path_length = 2;
    called_back = 0;
    assert_int_equal(user_net_run(f, &here, walk_path), 0);
    assert_int_equal(user_net_last(f, MU_NOTICE_ANSWER)->error.code, 0);
    assert_int_equal(called_back, 1);
}

/* ---- addresses and values ---- */

TEST(test_an_address_travels_as_a_value)
{
    static const char *const bad[] = {"", "/job:worker/task:1", "/job:w/task:1#12.3",
                                      "/job:w/task:01#000000000000000a.3",
                                      "/job:w/task:1#000000000000000a.3 "};
    const mu_address address = {
        .type = "worker", .index = 7, .number = 12, .incarnation = 0xabcdef};
    mu_value *value = mu_value_actor(&address);
    mu_address again;

    assert_int_equal(mu_value_get_actor(value, &again), 0);
    assert_true(mu_address_equal(&address, &again));
    assert_string_equal(again.type, "worker");
    assert_int_equal(again.index, 7);
    mu_value_free(value);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        value = mu_value_string(bad[i]);
        assert_int_equal(mu_value_get_actor(value, &again), -MU_EINVALID);
        mu_value_free(value);
    }
}

TEST_PROGRAM()
