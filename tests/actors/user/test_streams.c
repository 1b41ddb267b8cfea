/* Streams between actors: what comes, how it ends, and how much is under way; on one node
 * and between two. */
#include "actors/user/streams/stream_actions.h"
#include "actors/user/streams/stream_readers.h"
#include "tests/support/test.h"
#include "tests/support/users/givers.h"

static mu_address here;  /* a probe of node 0, which asks */
static mu_address giver; /* of the node that a test is about */

static int set_up(void **state)
{
    int rv = user_net_set_up(state);

    if (rv != 0)
        return rv;
    givers_register(*state);
    here = user_net_spawn(*state, 0, "probe", NULL, NULL);
    return 0;
}

enum { TOKEN = 7, AHEAD = 4 };

static int ask_for(mu_actor *self, const char *method)
{
    mu_value *ahead = mu_value_int(AHEAD);
    int rv = mu_actor_call(self, &giver, method, ahead, 1000, TOKEN);

    mu_value_free(ahead);
    return rv;
}

static int ask(mu_actor *self, struct user_net *f)
{
    (void)f;
    return ask_for(self, "open");
}

static int pause_it(mu_actor *self, struct user_net *f)
{
    (void)f;
    return mu_actor_read_stream(self, TOKEN, MU_READ_PAUSE);
}

static int go_on(mu_actor *self, struct user_net *f)
{
    (void)f;
    return mu_actor_read_stream(self, TOKEN, MU_READ_GO_ON);
}

static int close_it(mu_actor *self, struct user_net *f)
{
    (void)f;
    return mu_actor_read_stream(self, TOKEN, MU_READ_CLOSE);
}

static int stop_self(mu_actor *self, struct user_net *f)
{
    (void)f;
    return mu_actor_stop(self, &here, MU_STOP_NOW);
}

static void begin(struct user_net *f, size_t node)
{
    f->notes_count = 0;
    giver_heard = (struct giver_heard){0};
    giver = user_net_spawn(f, node, "giver", NULL, NULL);
    assert_int_equal(user_net_run(f, &here, ask), 0);
    assert_int_equal(f->notes_count, 0);
}

/* Items from 1, and no other notice. */
static void expect_items(const struct user_net *f, size_t count)
{
    assert_int_equal(user_net_count(f, MU_NOTICE_ITEM), count);
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(f->notes[i].kind, MU_NOTICE_ITEM);
        assert_int_equal(f->notes[i].value, i + 1);
        assert_int_equal(f->notes[i].token, TOKEN);
        assert_true(mu_address_equal(&f->notes[i].address, &giver));
    }
}

static void expect_end(const struct user_net *f, int code, int ran, const char *words)
{
    const struct probe_note *last = user_net_last(f, MU_NOTICE_ANSWER);

    assert_int_equal(user_net_count(f, MU_NOTICE_ANSWER), 1);
    assert_ptr_equal(last, &f->notes[f->notes_count - 1]);
    assert_int_equal(last->token, TOKEN);
    assert_int_equal(last->error.code, code);
    assert_int_equal(last->error.ran, ran);
    if (strstr(last->error.message, words) == NULL)
        fail_msg("\"%s\" does not say \"%s\"", last->error.message, words);
}

static void expect_nothing_left(const struct user_net *f)
{
    for (size_t i = 0; i < USER_NET_NODES; i++) {
        assert_int_equal(user_net_office(f, i)->streams.consumers.count, 0);
        assert_int_equal(user_net_office(f, i)->streams.producers.count, 0);
    }
}

/* What each of these does is the same on one node and between two. */
static void check_both(struct user_net *f, void (*test)(struct user_net *f, size_t node))
{
    test(f, 0);
    expect_nothing_left(f);
    test(f, 1);
    expect_nothing_left(f);
}

/* ---- items, and the end ---- */

static void items_come(struct user_net *f, size_t node)
{
    begin(f, node);
    giver_give(f, &giver, 1, 3);
    expect_items(f, 3);
    giver_give(f, &giver, 4, 4);
    expect_items(f, 4);
    assert_int_equal(user_net_count(f, MU_NOTICE_ANSWER), 0);
    giver_end(f, &giver, 0);
    expect_items(f, 4);
    expect_end(f, 0, 0, "");
}

TEST_ON(test_items_come_once_and_in_order_and_then_the_end, struct user_net *f, set_up,
        user_net_tear_down)
{
    check_both(f, items_come);
}

static void end_at_once(struct user_net *f, size_t node)
{
    begin(f, node);
    giver_end(f, &giver, 0);
    expect_end(f, 0, 0, "");
}

TEST_ON(test_a_stream_may_be_empty, struct user_net *f, set_up, user_net_tear_down)
{
    check_both(f, end_at_once);
}

static void error_ends(struct user_net *f, size_t node)
{
    begin(f, node);
    giver_give(f, &giver, 1, 2);
    giver_end(f, &giver, -MU_ERANGE);
    expect_items(f, 2);
    expect_end(f, -MU_ERANGE, MU_RAN_YES, "giver's error");
}

TEST_ON(test_an_error_comes_behind_the_items, struct user_net *f, set_up,
        user_net_tear_down)
{
    check_both(f, error_ends);
}

static void last_beyond_call(struct user_net *f, size_t node)
{
    begin(f, node);
    net_run_for(&f->net, 5000);
    giver_give(f, &giver, 1, 1);
    giver_end(f, &giver, 0);
    expect_items(f, 1);
    expect_end(f, 0, 0, "");
}

TEST_ON(test_a_stream_that_has_begun_may_last, struct user_net *f, set_up,
        user_net_tear_down)
{
    check_both(f, last_beyond_call);
}

/* ---- how much is under way ---- */

static void run_ahead(struct user_net *f, size_t node)
{
    begin(f, node);
    assert_int_equal(user_net_run(f, &here, pause_it), 0);
    giver_give(f, &giver, 1, 100);
    assert_int_equal(giver_heard.code, -MU_EAGAIN);
    assert_int_equal(giver_heard.given, AHEAD);
    assert_int_equal(giver_heard.rooms, 0);
    expect_items(f, 0);
    assert_int_equal(user_net_run(f, &here, go_on), 0);
    expect_items(f, 100); /* it gave the rest when it heard of room */
    assert_true(giver_heard.rooms >= 96 / AHEAD);
    giver_end(f, &giver, 0);
    expect_end(f, 0, 0, "");
}

TEST_ON(test_no_more_are_under_way_than_was_said, struct user_net *f, set_up,
        user_net_tear_down)
{
    check_both(f, run_ahead);
}

static void large_ones(struct user_net *f, size_t node)
{
    begin(f, node);
    assert_int_equal(user_net_run(f, &here, pause_it), 0);
    giver_give_large(f, &giver, MU__STREAM_BYTES / 2 + 1, 3);
    assert_int_equal(giver_heard.code, -MU_EAGAIN);
    assert_int_equal(giver_heard.given, 2);
    assert_int_equal(user_net_run(f, &here, go_on), 0);
    assert_int_equal(giver_heard.rooms, 1);
    giver_end(f, &giver, 0);
    assert_int_equal(user_net_count(f, MU_NOTICE_ITEM), 3);
    expect_end(f, 0, 0, "");
}

TEST_ON(test_bytes_under_way_are_bounded, struct user_net *f, set_up, user_net_tear_down)
{
    check_both(f, large_ones);
}

static void pause_holds(struct user_net *f, size_t node)
{
    begin(f, node);
    giver_give(f, &giver, 1, 2);
    assert_int_equal(user_net_run(f, &here, pause_it), 0);
    giver_give(f, &giver, 3, 4);
    giver_end(f, &giver, 0);
    expect_items(f, 2);
    assert_int_equal(user_net_count(f, MU_NOTICE_ANSWER), 0);
    assert_int_equal(user_net_run(f, &here, go_on), 0);
    expect_items(f, 4);
    expect_end(f, 0, 0, "");
}

TEST_ON(test_a_pause_holds_items_and_the_end, struct user_net *f, set_up,
        user_net_tear_down)
{
    check_both(f, pause_holds);
}

/* ---- who ends ---- */

static void giver_stops(struct user_net *f, size_t node)
{
    begin(f, node);
    giver_give(f, &giver, 1, 3);
    giver_tell(f, &giver, "stop", NULL);
    expect_items(f, 3);
    expect_end(f, -MU_EABORTED, MU_RAN_MAYBE, "before its stream had ended");
}

TEST_ON(test_a_giver_that_ends_is_said, struct user_net *f, set_up, user_net_tear_down)
{
    check_both(f, giver_stops);
}

TEST_ON(test_a_lost_link_ends_both_sides, struct user_net *f, set_up, user_net_tear_down)
{
    begin(f, 1);
    giver_give(f, &giver, 1, 3);
    net_link_down(f->nodes[0], f->nodes[1]);
    net_settle(&f->net);
    expect_items(f, 3);
    expect_end(f, -MU_EUNAVAILABLE, MU_RAN_MAYBE, "/job:worker/task:1 was lost");
    assert_int_equal(giver_heard.closed, 1);
    assert_int_equal(giver_heard.why, -MU_EUNAVAILABLE);
    net_link_up(f->nodes[0], f->nodes[1]);
    giver_give(f, &giver, 4, 4);
    assert_int_equal(giver_heard.code, -MU_ECANCELLED);
    giver_end(f, &giver, 0);
    assert_int_equal(f->notes_count, 4);
    expect_nothing_left(f);
}

static void expect_closed(struct user_net *f)
{
    assert_int_equal(giver_heard.closed, 1);
    assert_int_equal(giver_heard.why, 0);
    giver_give(f, &giver, 50, 50);
    assert_int_equal(giver_heard.code, -MU_ECANCELLED);
    giver_end(f, &giver, 0);
    assert_int_equal(giver_heard.closed, 1);
}

static void asker_closes(struct user_net *f, size_t node)
{
    begin(f, node);
    giver_give(f, &giver, 1, 2);
    assert_int_equal(user_net_run(f, &here, close_it), 0);
    expect_closed(f);
    expect_items(f, 2);
    assert_int_equal(f->notes_count, 2);
}

TEST_ON(test_a_closed_stream_is_said_to_its_giver, struct user_net *f, set_up,
        user_net_tear_down)
{
    check_both(f, asker_closes);
}

static void asker_stops(struct user_net *f, size_t node)
{
    begin(f, node);
    giver_give(f, &giver, 1, 2);
    assert_int_equal(user_net_run(f, &here, stop_self), 0);
    expect_closed(f);
    here = user_net_spawn(f, 0, "probe", NULL, NULL);
}

TEST_ON(test_an_asker_that_ends_is_said, struct user_net *f, set_up, user_net_tear_down)
{
    check_both(f, asker_stops);
}

static int ask_and_close(mu_actor *self, struct user_net *f)
{
    assert_int_equal(ask(self, f), 0);
    return close_it(self, f);
}

/* Before anything of it has come. */
static void close_early(struct user_net *f, size_t node)
{
    f->notes_count = 0;
    giver_heard = (struct giver_heard){0};
    giver = user_net_spawn(f, node, "giver", NULL, NULL);
    assert_int_equal(user_net_run(f, &here, ask_and_close), 0);
    giver_end(f, &giver, 0);
    net_run_for(&f->net, 2000);
    assert_int_equal(f->notes_count, 0);
}

TEST_ON(test_what_has_not_begun_may_be_closed, struct user_net *f, set_up,
        user_net_tear_down)
{
    check_both(f, close_early);
}

/* ---- turns ---- */

static int ask_one_that_fails(mu_actor *self, struct user_net *f)
{
    (void)f;
    return ask_for(self, "fail");
}

static void method_fails(struct user_net *f, size_t node)
{
    f->notes_count = 0;
    giver_heard = (struct giver_heard){0};
    giver = user_net_spawn(f, node, "giver", NULL, NULL);
    assert_int_equal(user_net_run(f, &here, ask_one_that_fails), 0);
    assert_int_equal(f->notes_count, 1);
    expect_end(f, -MU_EDATALOSS, MU_RAN_YES, "giver.fail");
}

TEST_ON(test_a_method_that_fails_has_no_stream, struct user_net *f, set_up,
        user_net_tear_down)
{
    check_both(f, method_fails);
}

/* Room that a failed turn gives back is told. */
static void turn_fails(struct user_net *f, size_t node)
{
    begin(f, node);
    giver_tell(f, &giver, "give and fail", NULL);
    assert_int_equal(giver_heard.rooms, 1);
    assert_int_equal(f->notes_count, 0);
    giver_give(f, &giver, 1, AHEAD);
    assert_int_equal(giver_heard.code, 0);
    giver_end(f, &giver, 0);
    expect_items(f, AHEAD);
    expect_end(f, 0, 0, "");
}

TEST_ON(test_a_failed_turn_gives_nothing, struct user_net *f, set_up, user_net_tear_down)
{
    check_both(f, turn_fails);
}

static void nobody_asks(struct user_net *f, size_t node)
{
    f->notes_count = 0;
    giver_heard = (struct giver_heard){0};
    giver = user_net_spawn(f, node, "giver", NULL, NULL);
    giver_tell(f, &giver, "open", NULL);
    expect_closed(f);
}

TEST_ON(test_a_stream_that_answers_a_send_is_closed, struct user_net *f, set_up,
        user_net_tear_down)
{
    check_both(f, nobody_asks);
}

TEST_ON(test_outside_of_a_turn_there_are_no_streams, struct user_net *f, set_up,
        user_net_tear_down)
{
    struct office *office = user_net_office(f, 0);
    mu_actor *actor;
    mu_stream *stream;

    begin(f, 0);
    actor = mu__actor_find(office, giver.number);
    stream = MU__LIST_ENTRY(actor->streams->producers.first, mu_stream, node);
    assert_null(mu_actor_stream(actor, 0, 1));
    assert_int_equal(mu_stream_give(stream, NULL), -MU_EPRECONDITION);
    assert_int_equal(mu_stream_end(stream, NULL), -MU_EPRECONDITION);
    assert_int_equal(mu_actor_read_stream(actor, TOKEN, MU_READ_PAUSE),
                     -MU_EPRECONDITION);
    giver_end(f, &giver, 0);
    expect_end(f, 0, 0, "");
}

static void many_streams(struct user_net *f, size_t node)
{
    begin(f, node);
    for (int i = 1; i < MU__ACTOR_STREAMS_MAX; i++)
        assert_int_equal(user_net_run(f, &here, ask), 0);
    assert_int_equal(f->notes_count, 0);
    assert_int_equal(user_net_run(f, &here, ask), 0);
    assert_int_equal(f->notes_count, 1);
    assert_int_equal(f->notes[0].error.code, -MU_EEXHAUSTED);
    assert_int_equal(user_net_run(f, &here, close_it), 0);
    giver_tell(f, &giver, "stop", NULL);
    assert_int_equal(f->notes_count, 1);
}

TEST_ON(test_an_actor_gives_so_many_at_once, struct user_net *f, set_up,
        user_net_tear_down)
{
    check_both(f, many_streams);
}

/* ---- threads ---- */

enum { MAILBOX = 8, NOT_ANSWERED = 1 };

static mu_stream_reader reader;
static mu_error refusal;

/* What a thread asks for has been done. */
static void note_answer(struct mu__call *call)
{
    refusal = call->error;
    refusal.code = call->code;
}

static void ask_as_thread(struct user_net *f, int operation)
{
    struct mu__actors_call call = {
        .call = {.operation = operation, .timeout_ms = 1000, .complete = note_answer},
        .name = "open",
        .address = giver,
        .reader = &reader,
    };

    refusal = (mu_error){.code = NOT_ANSWERED};
    mu__reader_on_call(user_net_office(f, 0), &call);
    assert_int_not_equal(refusal.code, NOT_ANSWERED);
}

/* What it has sent is undone. */
static int open_when_full(mu_actor *self, struct user_net *f)
{
    int rv = 0;

    for (int i = 0; i <= MU__ACTOR_WINDOW && rv == 0; i++)
        rv = mu_actor_send(self, &giver, "give", NULL);
    assert_int_equal(rv, -MU_EAGAIN);
    ask_as_thread(f, MU__ACTORS_STREAM_OPEN);
    return rv;
}

/* A thread has no notice to wait for: it hears at once that nothing has begun. */
static void full_for_threads(struct user_net *f, size_t node)
{
    const mu_actor_options options = {.size = sizeof options, .mailbox_max = MAILBOX};
    const struct office *office = user_net_office(f, 0);

    f->notes_count = 0;
    reader = (mu_stream_reader){.method = "open"};
    giver = user_net_spawn(f, node, "giver", NULL, &options);
    assert_int_equal(user_net_run(f, &here, open_when_full), -MU_EAGAIN);
    assert_int_equal(refusal.code, -MU_EEXHAUSTED);
    assert_int_equal(refusal.ran, MU_RAN_NO);
    assert_string_equal(refusal.function, "open");
    assert_non_null(strstr(refusal.message, node == 0 ? "is full" : "on their way"));
    assert_false(reader.is_listed);
    assert_int_equal(office->calls.count, 0);

    ask_as_thread(f, MU__ACTORS_STREAM_OPEN);
    assert_int_equal(refusal.code, 0);
    net_settle(&f->net);
    giver_give(f, &giver, 1, 1);
    ask_as_thread(f, MU__ACTORS_STREAM_NEXT);
    assert_int_equal(refusal.code, 0);
    assert_int_equal(reader.count, 1);
    mu_value_free(reader.items[0]);
    ask_as_thread(f, MU__ACTORS_STREAM_CLOSE);
    net_settle(&f->net);
    giver_end(f, &giver, 0);
}

TEST_ON(test_a_thread_opens_none_on_a_full_mailbox, struct user_net *f, set_up,
        user_net_tear_down)
{
    check_both(f, full_for_threads);
}

TEST_PROGRAM()
