/* A node that does not hold to what a stream is: what it does wrong ends the stream with
 * an error, and what is no business of its own is not heard. */
#include "tests/support/test.h"
#include "tests/support/users/givers.h"

enum { TOKEN = 7, AHEAD = 4 };

static mu_address here;  /* a probe of node 0, which reads */
static mu_address giver; /* on node 1 */
static uint64_t call;    /* the number that node 0 has given to its call */

static int ask(mu_actor *self, struct user_net *f)
{
    mu_value *ahead = mu_value_int(AHEAD);
    int rv = mu_actor_call(self, &giver, "open", ahead, 1000, TOKEN);

    (void)f;
    mu_value_free(ahead);
    call = self->office->number_next;
    return rv;
}

static int pause_it(mu_actor *self, struct user_net *f)
{
    (void)f;
    return mu_actor_read_stream(self, TOKEN, MU_READ_PAUSE);
}

static int set_up(void **state)
{
    struct user_net *f;
    int rv = user_net_set_up(state);

    if (rv != 0)
        return rv;
    f = *state;
    givers_register(f);
    giver_heard = (struct giver_heard){0};
    here = user_net_spawn(f, 0, "probe", NULL, NULL);
    giver = user_net_spawn(f, 1, "giver", NULL, NULL);
    return user_net_run(f, &here, ask);
}

/* From the office of one node to that of another. */
static void say(struct user_net *f, size_t from, size_t to, uint16_t kind,
                const void *body)
{
    struct office *office = user_net_office(f, from);
    const struct peer *peer =
        mu__map_get(&office->peers, user_net_office(f, to)->config.incarnation);
    struct mu__msg *msg = mu__msg_new(&office->ctx, kind);

    memcpy(mu__body(msg), body, mu__messages.rows[kind].body_size);
    assert_int_equal(mu__send(&office->ctx, (mu__pid){peer->number, MU__ACTORS}, msg), 0);
    net_settle(&f->net);
}

static void say_item(struct user_net *f, size_t from, uint64_t number)
{
    const struct mu__stream_item item = {.call = call, .number = number};

    say(f, from, 0, MU__STREAM_ITEM, &item);
}

static uint64_t stream_of_giver(const struct user_net *f)
{
    const mu_actor *actor = mu__actor_find(user_net_office(f, 1), giver.number);

    return MU__LIST_ENTRY(actor->streams->producers.first, mu_stream, node)->id;
}

/* Its error; and who gives it hears that it is over. */
static void expect_over(struct user_net *f, size_t items, int code, const char *words)
{
    const struct probe_note *last = user_net_last(f, MU_NOTICE_ANSWER);

    assert_int_equal(user_net_count(f, MU_NOTICE_ITEM), items);
    assert_int_equal(user_net_count(f, MU_NOTICE_ANSWER), 1);
    assert_int_equal(last->error.code, code);
    if (strstr(last->error.message, words) == NULL)
        fail_msg("\"%s\" does not say \"%s\"", last->error.message, words);
    assert_int_equal(giver_heard.closed, 1);
    giver_end(f, &giver, 0);
    assert_int_equal(user_net_count(f, MU_NOTICE_ANSWER), 1);
}

TEST_ON(test_an_item_twice, struct user_net *f, set_up, user_net_tear_down)
{
    say_item(f, 1, 1);
    say_item(f, 1, 1);
    expect_over(f, 1, -MU_EDATALOSS, "an item of the stream is missing");
}

TEST_ON(test_an_item_that_is_missing, struct user_net *f, set_up, user_net_tear_down)
{
    say_item(f, 1, 1);
    say_item(f, 1, 3);
    expect_over(f, 1, -MU_EDATALOSS, "an item of the stream is missing");
}

TEST_ON(test_an_end_before_all_items, struct user_net *f, set_up, user_net_tear_down)
{
    const struct mu__stream_end end = {.call = call, .items = 2};

    say_item(f, 1, 1);
    say(f, 1, 0, MU__STREAM_END, &end);
    expect_over(f, 1, -MU_EDATALOSS, "items at the end of the stream are missing");
}

TEST_ON(test_more_items_than_credit, struct user_net *f, set_up, user_net_tear_down)
{
    assert_int_equal(user_net_run(f, &here, pause_it), 0);
    for (uint64_t i = 1; i <= AHEAD + 1; i++)
        say_item(f, 1, i);
    assert_int_equal(giver_heard.closed, 1);
    assert_int_equal(f->notes_count, 0);
}

TEST_ON(test_bytes_that_are_no_value, struct user_net *f, set_up, user_net_tear_down)
{
    static const uint8_t bytes[] = {0xc1, 0xff};
    const struct mu__stream_item item = {
        .call = call,
        .number = 1,
        .item = {.head = bytes, .head_size = sizeof bytes},
    };

    say(f, 1, 0, MU__STREAM_ITEM, &item);
    expect_over(f, 0, -MU_EDATALOSS, "");
}

/* Of another node nothing of it is heard, on either side. */
TEST_ON(test_a_third_node, struct user_net *f, set_up, user_net_tear_down)
{
    const uint64_t stream = stream_of_giver(f);
    const struct mu__stream_begin begin = {call, 99, 1};
    const struct mu__stream_end end = {.call = call};
    const struct mu__stream_close close = {stream};
    const struct mu__stream_taken taken = {stream, 1, 1};

    say_item(f, 2, 1);
    say(f, 2, 0, MU__STREAM_END, &end);
    say(f, 2, 0, MU__STREAM_BEGIN, &begin);
    say(f, 2, 1, MU__STREAM_CLOSE, &close);
    say(f, 2, 1, MU__STREAM_TAKEN, &taken);
    assert_int_equal(f->notes_count, 0);
    assert_int_equal(giver_heard.closed, 0);
    giver_give(f, &giver, 1, 2);
    giver_end(f, &giver, 0);
    assert_int_equal(user_net_count(f, MU_NOTICE_ITEM), 2);
    assert_int_equal(user_net_last(f, MU_NOTICE_ANSWER)->error.code, 0);
}

/* More than was under way; a stream that there is not. */
TEST_ON(test_credit_that_is_none, struct user_net *f, set_up, user_net_tear_down)
{
    struct mu__stream_taken taken = {stream_of_giver(f), UINT32_MAX, UINT64_MAX};
    const struct mu__stream_close close = {12345};

    assert_int_equal(user_net_run(f, &here, pause_it), 0);
    giver_give(f, &giver, 1, 100);
    assert_int_equal(giver_heard.given, AHEAD);
    say(f, 0, 1, MU__STREAM_TAKEN, &taken);
    assert_int_equal(giver_heard.given, 2 * AHEAD);
    assert_int_equal(giver_heard.closed, 1); /* its own bound is kept by who reads */
    taken.stream = 0;
    say(f, 0, 1, MU__STREAM_TAKEN, &taken);
    say(f, 0, 1, MU__STREAM_CLOSE, &close);
}

/* A stream that nobody asked for is closed at once. */
TEST_ON(test_a_stream_that_answers_nothing, struct user_net *f, set_up,
        user_net_tear_down)
{
    const struct mu__stream_begin begin = {call + 1000, 99, 1};
    uint64_t closes = f->net.counts[MU__STREAM_CLOSE];

    say(f, 1, 0, MU__STREAM_BEGIN, &begin);
    assert_int_equal(f->net.counts[MU__STREAM_CLOSE], closes + 1);
    assert_int_equal(user_net_office(f, 0)->streams.consumers.count, 1);
}

/* So many as a stream may have ahead, whatever is said. */
TEST_ON(test_ahead_is_bounded, struct user_net *f, set_up, user_net_tear_down)
{
    struct mu__stream_begin begin = {0, 99, UINT32_MAX};
    size_t items = 0;

    net_link_down(f->nodes[0], f->nodes[1]);
    net_link_up(f->nodes[0], f->nodes[1]);
    net_settle(&f->net);
    f->notes_count = 0;
    f->nodes[1]->deaf = true; /* the call is answered here alone */
    assert_int_equal(user_net_run(f, &here, ask), 0);
    f->nodes[1]->deaf = false;
    begin.call = call;
    say(f, 1, 0, MU__STREAM_BEGIN, &begin);
    assert_int_equal(user_net_run(f, &here, pause_it), 0);
    for (; items <= MU__STREAM_AHEAD_MAX; items++)
        say_item(f, 1, items + 1);
    assert_int_equal(user_net_office(f, 0)->streams.consumers.count, 1);
    assert_int_equal(f->net.counts[MU__STREAM_CLOSE], 1);
}

TEST_PROGRAM()
