/* What peers may say for what they have proven: each message of the table, with each
 * right; and who may say HELLO as what. */
#include "tests/transport/link/links_fixture.h"

/* A message of row `kind` with nothing in its fields. */
static void say_empty(struct fixture *f, uint16_t kind)
{
    static const uint8_t nil[] = {0xc0};
    const struct mu__row *row = &mu__messages.rows[kind];
    struct mu__buf *frame = frame_of(1, MU__FRAME_DATA, PEER, US, 1);
    alignas(16) uint8_t body[512] = {0};

    assert_true(row->body_size <= sizeof body);
    for (uint16_t i = 0; i < row->fields_count; i++) {
        const struct mu__packed packed = {nil, NULL, 1, 0};

        if (row->fields[i].type == MU__FIELD_value)
            memcpy(body + row->fields[i].offset, &packed, sizeof packed);
    }
    put_record(frame, &mu__messages, kind, body, row->body_size);
    say(f, frame);
}

static struct fixture *up_as(const struct mu__proof *proof, const char *type,
                             uint32_t index)
{
    const struct hello_words hello = {1,    "test", type, index, "tcp://peer:1",
                                      PEER, NULL,   0};
    void *state = NULL;
    struct fixture *f;

    proven = proof;
    assert_int_equal(setup(&state), 0);
    f = state;
    dial_us(f);
    say_hello_words(f, &hello);
    run_for(f, 60);
    assert_int_equal(mu__links_count_up(f->us.links), 1);
    return f;
}

static void down(struct fixture *f)
{
    void *state = f;

    (void)teardown(&state);
    proven = NULL;
}

/* Who may be no task with what it has proven, is a client; whatever else a client has
 * proven, it sends nothing that tasks send; a task nothing that the chief sends. */
TEST(test_each_message_with_each_right)
{
    static const struct {
        int right;
        const char *type;
        uint32_t index;
        int as;
        bool chief;
    } rows[] = {
        {MU__RIGHT_OBSERVE, "client", 0, MU__RIGHT_OBSERVE, false},
        {MU__RIGHT_USE, "client", 0, MU__RIGHT_USE, false},
        {MU__RIGHT_OPERATE, "client", 0, MU__RIGHT_OPERATE, false},
        {MU__RIGHT_TASK, "client", 0, MU__RIGHT_OPERATE, false},
        {MU__RIGHT_ALL, "client", 0, MU__RIGHT_OPERATE, false},
        {MU__RIGHT_OPERATE, "offer", 3, MU__RIGHT_OPERATE, false},
        {MU__RIGHT_ALL, "offer", 3, MU__RIGHT_OPERATE, false},
        {MU__RIGHT_TASK, "worker", 99, MU__RIGHT_TASK, false},
        {MU__RIGHT_ALL, "ps", 0, MU__RIGHT_TASK, false},
        {MU__RIGHT_ALL, "chief", 5, MU__RIGHT_TASK, false},
        {MU__RIGHT_TASK, "chief", 0, MU__RIGHT_TASK, true},
        {MU__RIGHT_ALL, "chief", 0, MU__RIGHT_ALL, true},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const struct mu__proof proof = {.right = (enum mu__right)rows[i].right};
        struct fixture *f = up_as(&proof, rows[i].type, rows[i].index);
        struct mu__links_counters counters;
        uint64_t forbidden = 0;

        for (uint16_t kind = 0; kind < mu__messages.rows_count; kind++) {
            const struct mu__row *row = &mu__messages.rows[kind];
            uint32_t delivered = f->us.delivered;
            bool may = row->right <= rows[i].as && (row->by_chief == 0 || rows[i].chief);

            if (row->name == NULL)
                continue;
            say_empty(f, kind);
            run_for(f, 20);
            if (f->us.delivered != delivered + may)
                fail_msg("%s of %s with the right %s: %s", row->name, rows[i].type,
                         mu__right_name(proof.right), may ? "dropped" : "delivered");
            forbidden += !may;
        }
        mu__links_counters(f->us.links, &counters);
        assert_int_equal(counters.forbidden, forbidden);
        assert_true(forbidden >= 8); /* what is only stored */
        assert_int_equal(counters.links_up, 1);
        down(f);
    }
}

TEST(test_who_sends_what)
{
    static const struct mu__proof proof = {.right = MU__RIGHT_ALL};
    static const struct {
        const char *type;
        uint32_t index;
        const char *words;
    } rows[] = {
        {"client", 0,
         "/job:client/task:0 at tcp://peer:1 has sent run, which only tasks "
         "of the cluster send: dropped"},
        {"worker", 99,
         "/job:worker/task:99 at tcp://peer:1 has sent run, which only the "
         "chief sends: dropped"},
        {"chief", 5,
         "/job:chief/task:5 at tcp://peer:1 has sent run, which only the "
         "chief sends: dropped"},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct fixture *f = up_as(&proof, rows[i].type, rows[i].index);

        say_empty(f, MU__RUN);
        run_for(f, 20);
        assert_non_null(strstr(sim_trace(f->sim), rows[i].words));
        down(f);
    }
}

/* Who has proven nothing is not even told why. */
TEST(test_no_right)
{
    static const struct mu__proof none = {.right = MU__RIGHT_NONE};
    struct hello_words hello = good;

    hello.type = "client";
    proven = &none;
    assert_int_equal(setup(state), 0);
    dial_us(*state);
    say_hello_words(*state, &hello);
    run_for(*state, 100);
    expect_trace((struct fixture *)*state,
                 "[   40] sim note: hears the end: closed by the peer\n");
    assert_int_equal(mu__links_count_up(((struct fixture *)*state)->us.links), 0);
    down(*state);
}

TEST(test_the_log_names_who_and_what)
{
    static const struct mu__proof proof = {.right = MU__RIGHT_USE};
    struct fixture *f = up_as(&proof, "client", 0);

    (void)sim_trace(f->sim);
    say_empty(f, MU__RUN);
    run_for(f, 20);
    expect_trace(
        f,
        "[   90] us links: /job:client/task:0 at tcp://peer:1 has sent run, which needs "
        "the right \"task\"; it has proven \"use\": dropped\n");
    down(f);
}

TEST(test_who_may_be_what)
{
    static const struct {
        struct mu__proof proof;
        const char *type;
        uint32_t index;
        const char *refusal; /* NULL: it is let in */
    } rows[] = {
        {{.right = MU__RIGHT_ALL}, "chief", 0, NULL},
        {{.right = MU__RIGHT_TASK}, "ps", 3, NULL},
        {{.right = MU__RIGHT_OBSERVE}, "client", 7, NULL},
        {{.right = MU__RIGHT_OPERATE},
         "worker",
         1,
         "it has proven the right \"operate\", and says to be /job:worker/task:1, which "
         "needs the right \"task\""},
        {{.right = MU__RIGHT_USE},
         "evaluator",
         0,
         "it has proven the right \"use\", and says to be /job:evaluator/task:0, which "
         "needs the right \"task\""},
        {{MU__RIGHT_TASK, true, "worker", 1}, "worker", 1, NULL},
        {{MU__RIGHT_TASK, true, "worker", 1},
         "worker",
         2,
         "its certificate is that of /job:worker/task:1, and it says to be "
         "/job:worker/task:2"},
        {{MU__RIGHT_TASK, true, "worker", 1},
         "chief",
         1,
         "its certificate is that of /job:worker/task:1, and it says to be "
         "/job:chief/task:1"},
        {{MU__RIGHT_TASK, true, "worker", 1}, "client", 5, NULL},
        {{.right = MU__RIGHT_OPERATE}, "offer", 5, NULL},
        {{.right = MU__RIGHT_USE},
         "offer",
         5,
         "it has proven the right \"use\", and says to be /job:offer/task:5, which "
         "needs the right \"operate\""},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const struct hello_words hello = {
            1, "test", rows[i].type, rows[i].index, "tcp://peer:1", PEER, NULL, 0};
        struct fixture *f;

        proven = &rows[i].proof;
        members = 0;
        assert_int_equal(setup(state), 0);
        f = *state;
        dial_us(f);
        run_for(f, 40);
        assert_int_equal(members, 0);
        say_hello_words(f, &hello);
        run_for(f, 60);
        assert_int_equal(members, rows[i].refusal == NULL);
        say_hello_words(f, &hello);
        run_for(f, 10);
        assert_int_equal(members, rows[i].refusal == NULL);
        assert_int_equal(mu__links_count_up(f->us.links), rows[i].refusal == NULL);
        if (rows[i].refusal != NULL && strstr(sim_trace(f->sim), rows[i].refusal) == NULL)
            fail_msg("row %zu: not refused with \"%s\"", i, rows[i].refusal);
        down(f);
    }
}

TEST_PROGRAM()
