/* A task that leaves the cluster, or moves. */
#include "tests/transport/link/links_fixture.h"

/* ---- A task that leaves the cluster, or moves ---- */

#define GONE "it is not in the cluster any more"

/* The owner hears at once; the peer hears why, and is refused until it is allowed. */
TEST_ON(test_hangup, struct fixture *f, setup_up, teardown)
{
    mu__links_hangup(f->us.links, "chief", 0, GONE);
    assert_int_equal(mu__links_count_up(f->us.links), 0);
    mu__links_flush(f->us.links);
    run_for(f, 20);
    dial_us(f);
    say_hello_words(f, &good);
    run_for(f, 50);
    expect_trace(
        f,
        "[   60] us links: hung up on /job:chief/task:0: it is not in the cluster any "
        "more\n"
        "[   60] sim note: node 1 down: it is not in the cluster any more\n"
        "[   70] sim note: hears BYE: it is not in the cluster any more\n"
        "[  110] us links: refused /job:chief/task:0 at tcp://peer:1: it is not in the "
        "cluster any more\n"
        "[  120] sim note: hears REFUSE: it is not in the cluster any more\n");
    run_for(f, 2000);
    mu__links_allow(f->us.links, "chief", 0);
    dial_us(f);
    say_hello_words(f, &good);
    run_for(f, 60);
    assert_int_equal(mu__links_count_up(f->us.links), 1);
}

/* What still comes over the link is not heard, though its connection is there. */
TEST_ON(test_hung_up_is_not_heard, struct fixture *f, setup_up, teardown)
{
    struct mu__links_counters counters;

    mu__links_hangup(f->us.links, "chief", 0, GONE);
    say_data(f, PEER, US);
    run_for(f, 100);
    mu__links_counters(f->us.links, &counters);
    assert_int_equal(counters.messages_in, 0);
    assert_int_equal(counters.stale_frames, 1);
}

/* One that is not up is forgotten: nobody waits for it. */
TEST_ON(test_hangup_while_dialling, struct fixture *f, setup, teardown)
{
    assert_int_equal(mu__links_dial(f->us.links, "ps", 1, "tcp://nobody:1"), 0);
    run_for(f, 100);
    mu__links_hangup(f->us.links, "ps", 1, GONE);
    run_for(f, 20000);
    expect_trace(f, "");
}

/* A peer that began the link by itself, and is dialled then, is waited for from then
 * on. */
TEST_ON(test_dial_what_is_up, struct fixture *f, setup_up, teardown)
{
    assert_int_equal(mu__links_adopt(f->us.links, "chief", 0, "tcp://peer:1"), 0);
    run_for(f, 100);
    expect_trace(f, "");
    sim_crash(f->peer.node);
    run_for(f, 3500);
    expect_trace(
        f, "[  170] us links: /job:chief/task:0 is lost: its connection broke: closed by "
           "the peer\n"
           "[  170] sim note: node 1 down: its connection broke: closed by the peer\n"
           "[ 3178] us links: waiting for /job:chief/task:0 at tcp://peer:1 for 3 s "
           "(dialling; its connection broke: closed by the peer)\n");
}

/* A process that has ended is known by that soon, however rare the heartbeats are. */
TEST_ON(test_refused_after_a_loss, struct fixture *f, setup_up, teardown)
{
    sim_settings(f->sim)->refuses = true;
    assert_int_equal(mu__links_adopt(f->us.links, "chief", 0, "tcp://peer:1"), 0);
    run_for(f, 100);
    expect_trace(f, "");
    sim_crash(f->peer.node);
    run_for(f, 100);
    expect_trace(
        f, "[  170] us links: /job:chief/task:0 is lost: its connection broke: closed by "
           "the peer\n"
           "[  170] sim note: node 1 down: its connection broke: closed by the peer\n"
           "[  210] sim note: trouble: chief 0: connection refused\n");
}

/* The former process is told where the task is, and is refused; the new one may come. */
TEST_ON(test_move, struct fixture *f, setup_up, teardown)
{
    struct hello_words here = good;

    assert_int_equal(mu__links_adopt(f->us.links, "chief", 0, "tcp://peer:1"), 0);
    assert_int_equal(mu__links_move(f->us.links, "chief", 0, "tcp://new:1"), 0);
    mu__links_flush(f->us.links);
    run_for(f, 20);
    dial_us(f);
    say_hello_words(f, &good);
    run_for(f, 50);
    expect_trace(
        f, "[   60] us links: hung up on /job:chief/task:0: the task is at tcp://new:1 "
           "now\n"
           "[   60] sim note: node 1 down: the task is at tcp://new:1 now\n"
           "[   70] sim note: hears BYE: the task is at tcp://new:1 now\n"
           "[  110] us links: refused /job:chief/task:0 at tcp://peer:1: the task is at "
           "tcp://new:1 now\n"
           "[  120] sim note: hears REFUSE: the task is at tcp://new:1 now\n");

    /* Another process at the old place is the former process, too. */
    here.from = PEER + 1;
    dial_us(f);
    say_hello_words(f, &here);
    run_for(f, 2000);
    assert_non_null(strstr(sim_trace(f->sim), "hears REFUSE: the task is at "));

    /* Back again: it is the one. */
    assert_int_equal(mu__links_move(f->us.links, "chief", 0, "tcp://peer:1"), 0);
    run_for(f, 100);
    speak_to_dialler(f);
    say_hello_words(f, &here);
    run_for(f, 100);
    assert_int_equal(mu__links_count_up(f->us.links), 1);
}

/* A link leads already to where the task is said to be. */
TEST_ON(test_move_to_where_it_is, struct fixture *f, setup_up, teardown)
{
    assert_int_equal(mu__links_move(f->us.links, "chief", 0, "tcp://peer:1"), 0);
    assert_int_equal(mu__links_move(f->us.links, "worker", 7, "tcp://peer:1"), 0);
    run_for(f, 100);
    expect_trace(f, "");
    assert_int_equal(mu__links_count_up(f->us.links), 1);
}

/* Only a client gives up, and only if the task itself that it dials has refused it, for
 * what will not change: another task at that address may go, one that does not know its
 * cluster will be told. */
TEST(test_refused_for_good)
{
    static const struct {
        const char *own_type;
        const char *refuser;
        uint32_t refuser_index;
        bool taken;
        bool is_final;
    } rows[] = {
        {"client", "chief", 0, false, true},
        {"worker", "chief", 0, false, false},
        {"client", "chief", 0, true, false},
        {"client", "chief", 1, false, false},
        {"client", "worker", 0, false, false},
        {"client", MU__LINK_UNKNOWN, 0, false, false},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const struct mu__refuse refuse = {mu__view_str(rows[i].refuser),
                                          rows[i].refuser_index,
                                          mu__view_str("cluster \"a\""), rows[i].taken};
        struct mu__buf *frame = frame_of(1, MU__FRAME_REFUSE, PEER, US, 1);
        struct fixture *f;
        const char *trace;

        own_type = rows[i].own_type;
        assert_int_equal(setup(state), 0);
        f = *state;
        assert_int_equal(mu__links_dial(f->us.links, "chief", 0, "tcp://peer:1"), 0);
        run_for(f, 40);
        speak_to_dialler(f);
        put_record(frame, &mu__frame_messages, MU__FRAME_REFUSE, &refuse, sizeof refuse);
        say(f, frame);
        run_for(f, 20);
        trace = sim_trace(f->sim);
        assert_non_null(strstr(trace, ": chief 0: it refused us: cluster"));
        assert_int_equal(strstr(trace, "refused for good: ") != NULL, rows[i].is_final);
        (void)teardown(state);
    }
    own_type = "worker";
}

TEST_PROGRAM()
