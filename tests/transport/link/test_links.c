/* One node's links against a peer that says whatever the test wants: handshakes, bytes
 * that make no sense, silence. The peer dials first, and tells what it hears. */
#include "tests/transport/link/links_fixture.h"

/* ---- Handshakes ---- */

TEST_ON(test_up, struct fixture *f, setup, teardown)
{
    dial_us(f);
    say_hello_words(f, &good);
    run_for(f, 60);
    expect_trace(f, "[   30] us links: /job:chief/task:0 is up at tcp://peer:1\n"
                    "[   30] sim note: node 1 up: chief 0 b tcp://peer:1\n"
                    "[   40] sim note: hears HELLO to b of 0 at tcp://us:1\n");
    assert_int_equal(mu__links_count_up(f->us.links), 1);
}

/* We dial, and are answered over the same connection. */
TEST_ON(test_we_dial, struct fixture *f, setup, teardown)
{
    assert_int_equal(mu__links_dial(f->us.links, "chief", 0, "tcp://peer:1"), 0);
    run_for(f, 40);
    speak_to_dialler(f);
    say_hello_words(f, &good);
    run_for(f, 40);
    say_data(f, PEER, US);
    run_for(f, 40);
    expect_trace(f, "[   30] sim note: hears HELLO to 0 of 0 at tcp://us:1\n"
                    "[   50] us links: /job:chief/task:0 is up at tcp://peer:1\n"
                    "[   50] sim note: node 1 up: chief 0 b tcp://peer:1\n"
                    "[   90] sim note: cancel from node 1\n");
}

/* Who has no address is up all the same: nobody dials it. */
TEST_ON(test_without_an_address, struct fixture *f, setup, teardown)
{
    struct hello_words words = good;

    words.address = "";
    dial_us(f);
    say_hello_words(f, &words);
    run_for(f, 60);
    expect_trace(f, "[   30] us links: /job:chief/task:0 is up\n"
                    "[   30] sim note: node 1 up: chief 0 b \n"
                    "[   40] sim note: hears HELLO to b of 0 at tcp://us:1\n");
    f->peer.wire->ops->hangup(f->peer.wire, f->peer.out);
    run_for(f, 2000);
    expect_trace(
        f, "[   90] us links: /job:chief/task:0 is lost: its connection broke: closed by "
           "the peer\n"
           "[   90] sim note: node 1 down: its connection broke: closed by the peer\n");
}

TEST_ON(test_refused, struct fixture *f, setup, teardown)
{
    static const struct {
        struct hello_words words;
        const char *reason;
        const char *who;
    } rows[] = {
        {{2, "test", "chief", 0, "tcp://peer:1", PEER, NULL, 0},
         "protocol version 2, but /job:worker/task:0 speaks version 1",
         ""},
        {{1, "other", "chief", 0, "tcp://peer:1", PEER, NULL, 0},
         "cluster name \"other\", but /job:worker/task:0 belongs to cluster \"test\"",
         ""},
        {{1, "test", "worker", 0, "tcp://peer:1", PEER, NULL, 0},
         "task /job:worker/task:0 is already played by tcp://us:1 (incarnation "
         "000000000000000a)",
         " (incarnation 000000000000000b)"},
        {{1, "test", "chief", 0, "tcp://peer:1", PEER, "worker", 7},
         "task /job:worker/task:7 is not here, but /job:worker/task:0",
         ""},
        {{1, "test", "chief", 0, "tcp://peer:1", PEER, "ps", 0},
         "task /job:ps/task:0 is not here, but /job:worker/task:0",
         ""},
    };
    char expected[1024];

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        uint64_t begin_ms = sim_now_ms(f->sim);

        dial_us(f);
        say_hello_words(f, &rows[i].words);
        run_for(f, 2000);
        (void)snprintf(expected, sizeof expected,
                       "[%5" PRIu64 "] us links: refused /job:%s/task:0 at "
                       "tcp://peer:1%s: %s\n[%5" PRIu64 "] sim note: hears "
                       "REFUSE: %s\n[%5" PRIu64
                       "] sim note: hears the end: closed by the peer\n",
                       begin_ms + 30, rows[i].words.type, rows[i].who, rows[i].reason,
                       begin_ms + 40, rows[i].reason, begin_ms + 1040);
        expect_trace(f, expected);
        assert_int_equal(mu__links_count_up(f->us.links), 0);
        f->peer.wire->ops->hangup(f->peer.wire, f->peer.out);
    }
}

/* A node of another version, which we dial: what it says of us, in a frame of its
 * version, is in our log; and it is told why in our words when it dials. */
TEST_ON(test_another_version, struct fixture *f, setup, teardown)
{
    const struct mu__refuse refuse = {
        mu__view_str("chief"), 0,
        mu__view_str("protocol version 1, but /job:chief/task:0 speaks version 2"),
        false};
    const struct hello_words words = {2,    "test", "chief", 0, "tcp://peer:1",
                                      PEER, NULL,   0};
    struct mu__buf *frame = frame_of(2, MU__FRAME_REFUSE, PEER, US, 1);

    put_record(frame, &mu__frame_messages, MU__FRAME_REFUSE, &refuse, sizeof refuse);
    assert_int_equal(mu__links_dial(f->us.links, "chief", 0, "tcp://peer:1"), 0);
    run_for(f, 40);
    speak_to_dialler(f);
    say(f, frame);
    dial_us(f);
    say_hello_words(f, &words);
    run_for(f, 100);
    expect_trace(
        f,
        "[   30] sim note: hears HELLO to 0 of 0 at tcp://us:1\n"
        "[   50] us links: /job:chief/task:0: it refused us: protocol version 1, but "
        "/job:chief/task:0 speaks version 2\n"
        "[   50] sim note: trouble: chief 0: it refused us: protocol version 1, but "
        "/job:chief/task:0 speaks version 2\n"
        "[   60] sim note: hears the end: closed by the peer\n"
        "[   70] us links: refused /job:chief/task:0 at tcp://peer:1: protocol version "
        "2, but /job:worker/task:0 speaks version 1\n"
        "[   80] sim note: hears REFUSE: protocol version 2, but /job:worker/task:0 "
        "speaks version 1\n");
    assert_int_equal(mu__links_count_up(f->us.links), 0);
}

/* Who is refused is not heard any more on that connection. */
TEST_ON(test_refused_once, struct fixture *f, setup, teardown)
{
    struct hello_words words = good;

    words.expected_type = "ps";
    dial_us(f);
    say_hello_words(f, &words);
    run_for(f, 80);
    say_hello_words(f, &good);
    run_for(f, 80);
    expect_trace(f,
                 "[   30] us links: refused /job:chief/task:0 at tcp://peer:1: task "
                 "/job:ps/task:0 is not here, but /job:worker/task:0\n"
                 "[   40] sim note: hears REFUSE: task /job:ps/task:0 is not here, but "
                 "/job:worker/task:0\n");
    run_for(f, 2000);
    expect_trace(f, "[ 1040] sim note: hears the end: closed by the peer\n");
}

static unsigned count_lines(struct fixture *f, const char *words)
{
    const char *at = sim_trace(f->sim);
    unsigned count = 0;

    while ((at = strstr(at, words)) != NULL) {
        count++;
        at += strlen(words);
    }
    return count;
}

/* A stranger may say HELLO as often as it likes: the log has one line of it in ten
 * seconds, and how many there would have been. Another reason has a line of its own, but
 * a thousand of them have one a second. */
TEST_ON(test_refused_lines_are_limited, struct fixture *f, setup, teardown)
{
    struct hello_words words = good;

    words.cluster = "other";
    dial_us(f);
    for (int i = 0; i < 100; i++) {
        dial_us(f);
        say_hello_words(f, &words);
        run_for(f, 20);
    }
    assert_int_equal(count_lines(f, "us links: refused /job:chief/task:0 at "), 1);
    run_for(f, 10000);
    (void)sim_trace(f->sim);
    dial_us(f);
    say_hello_words(f, &words);
    run_for(f, 100);
    assert_non_null(strstr(sim_trace(f->sim),
                           "\"test\" (99 more lines about peers were left out)"));

    for (words.index = 1; words.index <= 1000; words.index++) {
        dial_us(f);
        say_hello_words(f, &words);
        run_for(f, 1);
    }
    run_for(f, 50);
    assert_in_range(count_lines(f, "us links: refused /job:chief/task:"), 15, 25);
}

/* Who is dialled hears that it is meant, and whoever is there when anybody is. */
TEST_ON(test_who_is_wanted, struct fixture *f, setup, teardown)
{
    struct hello_words words = good;

    words.expected_type = "worker";
    dial_us(f);
    say_hello_words(f, &words);
    run_for(f, 100);
    assert_int_equal(mu__links_count_up(f->us.links), 1);
    assert_string_equal(f->peer.wanted, "chief 0");
    assert_int_equal(mu__links_dial(f->us.links, "ps", 3, "tcp://peer:1"), 0);
    run_for(f, 100);
    assert_string_equal(f->peer.wanted, "ps 3");
    assert_int_equal(mu__links_dial_any(f->us.links, "tcp://peer:1"), 0);
    run_for(f, 100);
    assert_string_equal(f->peer.wanted, " 0");
}

TEST_ON(test_bad_hello, struct fixture *f, setup, teardown)
{
    struct mu__buf *frame = frame_of(1, MU__FRAME_HELLO, PEER, 0, 1);

    dial_us(f);
    frame->size += 16;
    memset(frame->data + MU__FRAME_HEADER_BYTES, 0xee, 16);
    say(f, frame);
    run_for(f, 100);
    expect_trace(f,
                 "[   30] us links: dropped a connection: bad bytes: byte 32: a head of "
                 "4008636142 bytes in a frame that has 8 left\n"
                 "[   40] sim note: hears the end: closed by the peer\n");
}

TEST_ON(test_said_twice, struct fixture *f, setup_up, teardown)
{
    say_hello_words(f, &good);
    run_for(f, 100);
    expect_trace(f, "");
    assert_int_equal(mu__links_count_up(f->us.links), 1);
}

/* A new incarnation is let in when the end of the former one's connection was seen. */
TEST_ON(test_restarted, struct fixture *f, setup_up, teardown)
{
    struct hello_words again = good;

    again.from = PEER + 1;
    f->peer.wire->ops->hangup(f->peer.wire, f->peer.out);
    dial_us(f);
    say_hello_words(f, &again);
    run_for(f, 100);
    expect_trace(
        f, "[   70] us links: /job:chief/task:0 is lost: its connection broke: closed by "
           "the peer\n"
           "[   70] sim note: node 1 down: its connection broke: closed by the peer\n"
           "[   90] us links: /job:chief/task:0 is up at tcp://peer:1\n"
           "[   90] sim note: node 2 up: chief 0 c tcp://peer:1\n"
           "[  100] sim note: hears HELLO to c of 0 at tcp://us:1\n");
    assert_int_equal(mu__links_count_up(f->us.links), 1);
}

/* Two processes play one task, be it at one address or at two: the second one is refused
 * while the first is there, and the first one does not notice. */
TEST_ON(test_twin, struct fixture *f, setup_up, teardown)
{
    struct hello_words twin = good;
    uint32_t first = f->peer.out;

    twin.from = PEER + 1;
    twin.address = "tcp://twin:1";
    dial_us(f);
    say_hello_words(f, &twin);
    run_for(f, 100);
    expect_trace(
        f, "[   90] us links: refused /job:chief/task:0 at tcp://twin:1 (incarnation "
           "000000000000000c): task /job:chief/task:0 is already played by tcp://peer:1 "
           "(incarnation 000000000000000b)\n"
           "[  100] sim note: hears REFUSE: task /job:chief/task:0 is already played by "
           "tcp://peer:1 (incarnation 000000000000000b)\n");
    twin.address = good.address;
    twin.from = PEER + 2;
    dial_us(f);
    say_hello_words(f, &twin);
    run_for(f, 100);
    expect_trace(
        f, "[  220] sim note: hears REFUSE: task /job:chief/task:0 is already played by "
           "tcp://peer:1 (incarnation 000000000000000b)\n");
    f->peer.out = first;
    say_data(f, PEER, US);
    run_for(f, 100);
    expect_trace(f, "[  310] sim note: cancel from node 1\n");
}

/* Once the first process was silent for its limit, the second one has its task. */
TEST_ON(test_twin_of_a_silent_one, struct fixture *f, setup_up, teardown)
{
    struct hello_words twin = good;

    twin.from = PEER + 1;
    dial_us(f);
    run_for(f, 600);
    (void)sim_trace(f->sim);
    say_hello_words(f, &twin);
    run_for(f, 100);
    expect_trace(f, "[  690] us links: /job:chief/task:0 is up at tcp://peer:1\n"
                    "[  690] sim note: node 2 up: chief 0 c tcp://peer:1\n"
                    "[  700] sim note: hears HELLO to c of 0 at tcp://us:1\n");
}

static void say_taken(struct fixture *f, uint64_t to, const char *reason)
{
    const struct mu__refuse refuse = {mu__view_str("chief"), 0, mu__view_str(reason),
                                      true};
    struct mu__buf *frame = frame_of(1, MU__FRAME_REFUSE, PEER, to, 1);

    put_record(frame, &mu__frame_messages, MU__FRAME_REFUSE, &refuse, sizeof refuse);
    say(f, frame);
}

/* We are the second one: we try again every second, and the owner hears of it after
 * claim_ms. What is said to another process at our address is not for us. */
TEST_ON(test_we_are_the_twin, struct fixture *f, setup, teardown)
{
    assert_int_equal(mu__links_dial(f->us.links, "chief", 0, "tcp://peer:1"), 0);
    run_for(f, 100);
    (void)sim_trace(f->sim);
    speak_to_dialler(f);
    say_taken(f, US + 1, "somebody else");
    run_for(f, 120);
    expect_trace(f, "[  220] sim note: trouble: chief 0: nothing has answered yet\n");
    say_taken(f, US, "it is played by X");
    run_for(f, 1000);
    expect_trace(f,
                 "[  230] us links: /job:chief/task:0: it refused us: it is played by X\n"
                 "[  230] sim note: trouble: chief 0: it refused us: it is played by X\n"
                 "[  240] sim note: hears the end: closed by the peer\n"
                 "[ 1027] sim note: hears HELLO to 0 of 0 at tcp://us:1\n");
    for (int i = 0; i < 3; i++) {
        speak_to_dialler(f);
        say_taken(f, US, "it is played by X");
        run_for(f, 1100);
    }
    assert_non_null(strstr(sim_trace(f->sim),
                           "taken: chief 0: it refused us: it is played by X\n"));
}

/* Clients have no place in the spec: two of one index are two. */
TEST_ON(test_clients, struct fixture *f, setup_up, teardown)
{
    struct hello_words client = {1,        "test", "client", 0, "tcp://peer:1",
                                 PEER + 1, NULL,   0};

    dial_us(f);
    say_hello_words(f, &client);
    client.from = PEER + 2;
    dial_us(f);
    say_hello_words(f, &client);
    run_for(f, 100);
    assert_int_equal(mu__links_count_up(f->us.links), 3);
}

/* The address in a HELLO leads nowhere, or is none: it is never dialled. */
TEST_ON(test_cannot_be_dialled, struct fixture *f, setup, teardown)
{
    struct hello_words words = good;

    words.address = "tcp://nowhere:1";
    dial_us(f);
    say_hello_words(f, &words);
    words.address = "nonsense";
    words.type = "ps";
    words.from++;
    dial_us(f);
    say_hello_words(f, &words);
    run_for(f, 100);
    expect_trace(f, "[   30] us links: /job:chief/task:0 is up at tcp://nowhere:1\n"
                    "[   30] sim note: node 1 up: chief 0 b tcp://nowhere:1\n"
                    "[   40] sim note: hears HELLO to b of 0 at tcp://us:1\n"
                    "[   50] us links: /job:ps/task:0 is up at nonsense\n"
                    "[   50] sim note: node 2 up: ps 0 c nonsense\n"
                    "[   60] sim note: hears HELLO to c of 0 at tcp://us:1\n");
    assert_int_equal(mu__links_count_up(f->us.links), 2);
}

/* We dial; the peer takes the connection and says nothing. */
TEST_ON(test_no_answer, struct fixture *f, setup, teardown)
{
    assert_int_equal(mu__links_dial(f->us.links, "chief", 0, "tcp://peer:1"), 0);
    run_for(f, 1200);
    expect_trace(f, "[   30] sim note: hears HELLO to 0 of 0 at tcp://us:1\n"
                    "[  220] sim note: trouble: chief 0: nothing has answered yet\n"
                    "[  530] sim note: hears the end: closed by the peer\n"
                    "[  648] sim note: hears HELLO to 0 of 0 at tcp://us:1\n"
                    "[ 1148] sim note: hears the end: closed by the peer\n");
    assert_int_equal(mu__links_count_up(f->us.links), 0);
}

static void say_refuse(struct fixture *f, uint64_t to, const char *reason)
{
    const struct mu__refuse refuse = {mu__view_str("chief"), 0, mu__view_str(reason),
                                      false};
    struct mu__buf *frame = frame_of(1, MU__FRAME_REFUSE, PEER, to, 1);

    put_record(frame, &mu__frame_messages, MU__FRAME_REFUSE, &refuse, sizeof refuse);
    say(f, frame);
}

/* The peer refuses us: what it says is told, and the next try takes its time. */
TEST_ON(test_we_are_refused, struct fixture *f, setup, teardown)
{
    assert_int_equal(mu__links_dial(f->us.links, "chief", 0, "tcp://peer:1"), 0);
    run_for(f, 40);
    speak_to_dialler(f);
    say_refuse(f, US, "we are full");
    run_for(f, 3200);
    expect_trace(
        f, "[   30] sim note: hears HELLO to 0 of 0 at tcp://us:1\n"
           "[   50] us links: /job:chief/task:0: it refused us: we are full\n"
           "[   50] sim note: trouble: chief 0: it refused us: we are full\n"
           "[   60] sim note: hears the end: closed by the peer\n"
           "[ 3100] us links: waiting for /job:chief/task:0 at tcp://peer:1 for 3 s "
           "(resting; it refused us: we are full)\n");
}

/* Nobody is refused who has not said HELLO. */
TEST_ON(test_refused_by_a_stranger, struct fixture *f, setup, teardown)
{
    dial_us(f);
    say_refuse(f, US, "we are full");
    run_for(f, 100);
    expect_trace(
        f, "[   30] us links: dropped a connection: bad bytes: a frame before a HELLO\n"
           "[   40] sim note: hears the end: closed by the peer\n");
}

/* Who has accepted us hears that it is another one than was meant, when it is up. */
TEST_ON(test_refused_while_up, struct fixture *f, setup_up, teardown)
{
    say_refuse(f, US, "its certificate is that of another task");
    run_for(f, 60);
    assert_int_equal(mu__links_count_up(f->us.links), 0);
    expect_trace(
        f,
        "[   70] us links: /job:chief/task:0: it refused us: its certificate is that of "
        "another task\n"
        "[   70] sim note: trouble: chief 0: it refused us: its certificate is that of "
        "another task\n"
        "[   70] us links: /job:chief/task:0 is lost: it refused us: its certificate is "
        "that of another task\n"
        "[   70] sim note: node 1 down: it refused us: its certificate is that of "
        "another task\n"
        "[   80] sim note: hears the end: closed by the peer\n");
}

/* The task that answers is another one than was dialled. */
TEST_ON(test_another_task_answers, struct fixture *f, setup, teardown)
{
    assert_int_equal(mu__links_dial(f->us.links, "ps", 3, "tcp://peer:1"), 0);
    run_for(f, 40);
    speak_to_dialler(f);
    say_hello_words(f, &good);
    run_for(f, 100);
    expect_trace(
        f, "[   30] sim note: hears HELLO to 0 of 0 at tcp://us:1\n"
           "[   50] us links: refused /job:chief/task:0 at tcp://peer:1: /job:ps/task:3 "
           "was dialled, and /job:chief/task:0 answers\n"
           "[   60] sim note: hears REFUSE: /job:ps/task:3 was dialled, and "
           "/job:chief/task:0 answers\n");
    assert_int_equal(mu__links_count_up(f->us.links), 0);
}

/* An answer to another process than us is none. */
TEST_ON(test_answer_to_another_process, struct fixture *f, setup, teardown)
{
    const struct mu__hello hello = {.cluster = mu__view_str("test"),
                                    .type = mu__view_str("chief")};
    struct mu__buf *frame = frame_of(1, MU__FRAME_HELLO, PEER, US + 1, 1);

    put_record(frame, &mu__frame_messages, MU__FRAME_HELLO, &hello, sizeof hello);
    assert_int_equal(mu__links_dial(f->us.links, "chief", 0, "tcp://peer:1"), 0);
    run_for(f, 40);
    speak_to_dialler(f);
    say(f, frame);
    run_for(f, 60);
    expect_trace(f, "[   30] sim note: hears HELLO to 0 of 0 at tcp://us:1\n");
    assert_int_equal(mu__links_count_up(f->us.links), 0);
}

/* ---- Both dial at once ---- */

/* The peer's HELLO comes while ours is on its way: `from` decides which connection
 * stays. */
static void cross(struct fixture *f, uint64_t from)
{
    struct hello_words words = good;

    words.from = from;
    assert_int_equal(mu__links_dial(f->us.links, "chief", 0, "tcp://peer:1"), 0);
    dial_us(f);
    say_hello_words(f, &words);
    run_for(f, 5);
    expect_trace(f, "");
}

/* Ours is the lower incarnation: our dial stays, and the peer answers it. */
TEST_ON(test_crossed_dials_ours_stays, struct fixture *f, setup, teardown)
{
    struct hello_words words = good;
    struct mu__links_counters counters;

    cross(f, US + 5);
    run_for(f, 10);
    words.from = US + 5;
    speak_to_dialler(f);
    say_hello_words(f, &words);
    run_for(f, 60);
    expect_trace(f, "[   30] sim note: hears HELLO to 0 of 0 at tcp://us:1\n"
                    "[   40] sim note: hears the end: closed by the peer\n"
                    "[   45] us links: /job:chief/task:0 is up at tcp://peer:1\n"
                    "[   45] sim note: node 1 up: chief 0 f tcp://peer:1\n");
    mu__links_counters(f->us.links, &counters);
    assert_int_equal(counters.crossed, 1);
    assert_int_equal(counters.links_up, 1);
}

/* The peer's is the lower one: we answer its HELLO, and give up our own dial. */
TEST_ON(test_crossed_dials_theirs_stays, struct fixture *f, setup, teardown)
{
    struct mu__links_counters counters;

    cross(f, US - 5);
    run_for(f, 60);
    expect_trace(f, "[   30] sim note: hears HELLO to 0 of 0 at tcp://us:1\n"
                    "[   30] us links: /job:chief/task:0 is up at tcp://peer:1\n"
                    "[   30] sim note: node 1 up: chief 0 5 tcp://peer:1\n"
                    "[   40] sim note: hears the end: closed by the peer\n"
                    "[   40] sim note: hears HELLO to 5 of 0 at tcp://us:1\n");
    mu__links_counters(f->us.links, &counters);
    assert_int_equal(counters.crossed, 0);
    assert_int_equal(counters.links_up, 1);
}

/* Who has not reached the peer yet takes its connection, whoever is lower. */
TEST_ON(test_peer_that_cannot_be_reached_dials, struct fixture *f, setup, teardown)
{
    struct hello_words words = good;

    words.from = US + 5;
    assert_int_equal(mu__links_dial(f->us.links, "chief", 0, "tcp://nowhere:1"), 0);
    dial_us(f);
    say_hello_words(f, &words);
    run_for(f, 60);
    expect_trace(f, "[   30] us links: /job:chief/task:0 is up at tcp://nowhere:1\n"
                    "[   30] sim note: node 1 up: chief 0 f tcp://nowhere:1\n"
                    "[   40] sim note: hears HELLO to f of 0 at tcp://us:1\n");
}

TEST_ON(test_dial_errors, struct fixture *f, setup, teardown)
{
    char url[400];

    memset(url, 'a', sizeof url - 1);
    url[sizeof url - 1] = '\0';
    assert_int_equal(mu__links_dial(f->us.links, "chief", 0, "nonsense"), -MU_EINVALID);
    assert_int_equal(mu__links_dial(f->us.links, "chief", 0, url), -MU_EEXHAUSTED);
    assert_int_equal(mu__links_dial(f->us.links, "a type with a long name", 0,
                                    "tcp://peer:1"),
                     -MU_EEXHAUSTED);
    run_for(f, 1000);
    expect_trace(f, "");
}

TEST_PROGRAM()
