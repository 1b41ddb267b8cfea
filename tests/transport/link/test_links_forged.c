/* A peer that says to be somebody else: a process whose link is up, who refuses, who is
 * at another address than it says. Everything can be known to it: addresses, tasks,
 * incarnations; but the connection of a link is not its own. */
#include "tests/transport/link/links_fixture.h"

enum { AT_A_TIME_MS = 26 }; /* 38 a second */

static void say_refuse(struct fixture *f, bool taken)
{
    const struct mu__refuse refuse = {mu__view_str("chief"), 0, mu__view_str("go away"),
                                      taken};
    struct mu__buf *frame = frame_of(1, MU__FRAME_REFUSE, PEER, US, 1);

    put_record(frame, &mu__frame_messages, MU__FRAME_REFUSE, &refuse, sizeof refuse);
    say(f, frame);
}

/* Who says to be the process that is linked, over another connection, is neither heard
 * nor does the first one notice. */
TEST_ON(test_incarnation_of_a_living_process, struct fixture *f, setup_up, teardown)
{
    struct mu__links_counters counters;
    uint32_t first = f->peer.out;

    dial_us(f);
    say_hello_words(f, &good);
    say_data(f, PEER, US);
    run_for(f, 100);
    expect_trace(f,
                 "[   90] us links: dropped a second connection of /job:chief/task:0 at "
                 "tcp://peer:1 (incarnation 000000000000000b): the first one is up\n"
                 "[  100] sim note: hears the end: closed by the peer\n");
    f->peer.out = first;
    say_data(f, PEER, US);
    run_for(f, 20);
    expect_trace(f, "[  190] sim note: cancel from node 1\n");
    mu__links_counters(f->us.links, &counters);
    assert_int_equal(counters.doubles, 1);
    assert_int_equal(counters.messages_in, 1);
}

/* Both dialled, and one of the dials gave way: that one may be heard late. What comes
 * much later is not that one. */
TEST_ON(test_late_dial_is_no_news, struct fixture *f, setup, teardown)
{
    assert_int_equal(mu__links_dial(f->us.links, "chief", 0, "tcp://peer:1"), 0);
    run_for(f, 40);
    speak_to_dialler(f);
    say_hello_words(f, &good);
    for (int i = 0; i < 2; i++) {
        uint32_t first = f->peer.out;

        run_for(f, 20);
        assert_int_equal(mu__links_count_up(f->us.links), 1);
        dial_us(f);
        say_hello_words(f, &good);
        run_for(f, 20);
        assert_int_equal(strstr(sim_trace(f->sim), "the first one is up") != NULL, i);
        f->peer.out = first;
        say_data(f, PEER, US);
        run_for(f, 300);
        say_data(f, PEER, US);
        run_for(f, 300);
    }
}

/* The same of clients, of which several may have one index. */
TEST_ON(test_incarnation_of_a_living_client, struct fixture *f, setup_up, teardown)
{
    struct hello_words client = good;
    struct mu__links_counters counters;

    client.type = "client";
    for (int i = 0; i < 3; i++) {
        dial_us(f);
        say_hello_words(f, &client);
        run_for(f, 40);
    }
    mu__links_counters(f->us.links, &counters);
    assert_int_equal(counters.doubles, 2);
    assert_int_equal(counters.links_up, 2); /* with the chief */
}

/* Each way to say HELLO as the chief, 38 times a second for 15 s. */
TEST_ON(test_link_stands_against_many, struct fixture *f, setup_up, teardown)
{
    struct hello_words hello = good;
    uint32_t first = f->peer.out;

    sim_trace_level(f->sim, MU__LOG_INFO);
    for (uint32_t i = 0; i < 15000 / AT_A_TIME_MS; i++) {
        dial_us(f);
        run_for(f, AT_A_TIME_MS - 20);
        hello.from = i % 3 == 0 ? PEER : PEER + i;
        hello.address = i % 2 == 0 ? "tcp://peer:1" : "tcp://elsewhere:1";
        if (i % 5 == 4)
            say_refuse(f, i % 2 == 0);
        else
            say_hello_words(f, &hello);
        f->peer.out = first;
        say_data(f, PEER, US);
    }
    run_for(f, 100);
    assert_null(strstr(sim_trace(f->sim), "down:"));
    assert_int_equal(mu__links_count_up(f->us.links), 1);
    assert_int_equal(f->us.delivered, 15000 / AT_A_TIME_MS);
}

/* It really connects anew, and its end is not seen yet: it is dropped as everybody would
 * be, and let in as soon as the end is seen. */
TEST_ON(test_same_process_connects_anew, struct fixture *f, setup_up, teardown)
{
    uint32_t first = f->peer.out;

    dial_us(f);
    say_hello_words(f, &good);
    run_for(f, 40);
    assert_non_null(strstr(sim_trace(f->sim), "the first one is up"));
    f->peer.wire->ops->hangup(f->peer.wire, first);
    run_for(f, 40);
    assert_non_null(strstr(sim_trace(f->sim), "node 1 down: its connection broke"));
    dial_us(f);
    say_hello_words(f, &good);
    run_for(f, 80);
    assert_non_null(strstr(sim_trace(f->sim), "node 2 up: chief 0 b"));
}

/* Only who is at the other end of our connection may refuse our HELLO. */
TEST_ON(test_forged_refusals, struct fixture *f, setup, teardown)
{
    assert_int_equal(mu__links_dial(f->us.links, "chief", 0, "tcp://peer:1"), 0);
    run_for(f, 40);
    for (uint32_t i = 0; i < 10; i++) {
        dial_us(f);
        say_refuse(f, true);
        run_for(f, 2);
    }
    assert_null(strstr(sim_trace(f->sim), "it refused us"));
    speak_to_dialler(f);
    say_hello_words(f, &good);
    run_for(f, 20);
    assert_int_equal(mu__links_count_up(f->us.links), 1);
    for (uint32_t i = 0; i < 10; i++) {
        dial_us(f);
        say_refuse(f, true);
        run_for(f, 20);
    }
    assert_null(strstr(sim_trace(f->sim), "it refused us"));
    assert_int_equal(mu__links_count_up(f->us.links), 1);
}

/* Nobody has this node dial an address by saying it: neither who is accepted, nor who is
 * refused, nor whose link has ended. */
TEST_ON(test_no_address_is_dialled, struct fixture *f, setup, teardown)
{
    static const char *const types[] = {"chief", "client", "ps"};

    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
        struct hello_words hello = good;

        hello.type = types[i];
        hello.from = PEER + i;
        hello.cluster = i == 2 ? "other" : "test";
        dial_us(f);
        say_hello_words(f, &hello);
        run_for(f, 2000);
        f->peer.wire->ops->hangup(f->peer.wire, f->peer.out);
        run_for(f, 10000);
        assert_false(mu__wire_is_accepted(f->peer.in));
    }
}

TEST_PROGRAM()
