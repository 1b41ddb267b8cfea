/* A peer that says to be somebody else: a process whose link is up, who refuses, who is
 * at another address than it says. Everything but the epoch of a link can be known to it:
 * addresses, tasks, incarnations. */
#include "tests/transport/link/links_fixture.h"

#include "transport/link/link.h"

enum { AT_A_TIME_MS = 26 };     /* 38 a second */

static void say_refuse(struct fixture *f, uint32_t epoch, bool taken)
{
    const struct mu__refuse refuse = {mu__view_str("chief"), 0, mu__view_str("go away"),
                                      taken};
    const struct mu__frame_header header = {1, MU__FRAME_REFUSE, PEER, US, 1, epoch};
    struct mu__buf *frame = frame_of(1, MU__FRAME_REFUSE, PEER, US, 1);

    mu__frame_write(frame, &header);
    put_record(frame, &mu__frame_messages, MU__FRAME_REFUSE, &refuse, sizeof refuse);
    say_as_it_is(f, frame);
}

static void say_hello_of(struct fixture *f, uint64_t from, uint32_t epoch)
{
    const struct mu__hello hello = {
        .cluster = mu__view_str("test"),
        .type = mu__view_str("chief"),
        .address = mu__view_str("tcp://peer:1"),
    };
    const struct mu__frame_header header = {1, MU__FRAME_HELLO, from, US, 1, epoch};
    struct mu__buf *frame = frame_of(1, MU__FRAME_HELLO, from, US, 1);

    mu__frame_write(frame, &header);
    put_record(frame, &mu__frame_messages, MU__FRAME_HELLO, &hello, sizeof hello);
    say_as_it_is(f, frame);
}

/* Who says to be the process that is linked, over another connection, is neither heard
 * nor does the first one notice. */
static void test_incarnation_of_a_living_process(void **state)
{
    struct fixture *f = *state;
    struct mu__links_counters counters;
    uint32_t first = f->peer.out;

    dial_us(f);
    say_hello_words(f, &good);
    say_data(f, PEER, US);
    run_for(f, 100);
    expect_trace(f,
        "[   90] us links: dropped a second connection of /job:chief/task:0 at "
          "tcp://peer:1 (incarnation 000000000000000b): the first one is up\n");
    f->peer.out = first;
    say_data(f, PEER, US);
    run_for(f, 20);
    expect_trace(f, "[  190] sim note: cancel from node 1\n");
    mu__links_counters(f->us.links, &counters);
    assert_int_equal(counters.claims, 1);
    assert_int_equal(counters.messages_in, 1);
}

/* The same of clients, of which several may have one index. */
static void test_incarnation_of_a_living_client(void **state)
{
    struct fixture *f = *state;
    struct hello_words client = good;
    struct mu__links_counters counters;

    client.type = "client";
    for (int i = 0; i < 3; i++) {
        dial_us(f);
        say_hello_words(f, &client);
        run_for(f, 40);
    }
    mu__links_counters(f->us.links, &counters);
    assert_int_equal(counters.claims, 2);
    assert_int_equal(counters.links_up, 2);     /* with the chief */
}

/* Each way to say HELLO as the chief, 38 times a second for 15 s. */
static void test_link_stands_against_many(void **state)
{
    struct fixture *f = *state;
    struct hello_words hello = good;
    uint32_t first = f->peer.out;
    uint32_t epoch = f->peer.epoch;

    sim_trace_level(f->sim, MU__LOG_INFO);
    for (uint32_t i = 0; i < 15000 / AT_A_TIME_MS; i++) {
        uint32_t out;

        f->peer.wire->ops->dial(f->peer.wire, ++f->peer.out + 1000, "tcp://us:1");
        out = f->peer.out;
        run_for(f, AT_A_TIME_MS);
        f->peer.out = out + 1000;
        hello.from = i % 3 == 0 ? PEER : PEER + i;
        hello.address = i % 2 == 0 ? "tcp://peer:1" : "tcp://elsewhere:1";
        if (i % 5 == 4)
            say_hello_of(f, hello.from, epoch + i);
        else
            say_hello_words(f, &hello);
        f->peer.out = first;
        say_data(f, PEER, US);
        f->peer.epoch = epoch;
        f->peer.out = out;
    }
    run_for(f, 100);
    assert_null(strstr(sim_trace(f->sim), "down:"));
    assert_int_equal(mu__links_count_up(f->us.links), 1);
    assert_int_equal(f->us.delivered, 15000 / AT_A_TIME_MS);
}

/* It really connects anew, and its end is not seen yet: it is dropped as everybody would
 * be, and let in as soon as the end is seen. With our epoch it has begun again. */
static void test_same_process_connects_anew(void **state)
{
    struct fixture *f = *state;
    uint32_t first = f->peer.out;

    dial_us(f);
    say_hello_of(f, PEER, 0);
    run_for(f, 40);
    assert_non_null(strstr(sim_trace(f->sim), "the first one is up"));
    f->peer.wire->ops->hangup(f->peer.wire, first);
    run_for(f, 40);
    assert_non_null(strstr(sim_trace(f->sim), "node 1 down: its connection broke"));
    dial_us(f);
    say_hello_words(f, &good);
    run_for(f, 80);
    assert_non_null(strstr(sim_trace(f->sim), "node 2 up: chief 0 b"));
    dial_us(f);
    say_hello_of(f, PEER, f->peer.epoch);
    run_for(f, 80);
    assert_non_null(strstr(sim_trace(f->sim), "node 2 down: it connected anew"));
}

/* Only who has heard our HELLO may refuse it. */
static void test_forged_refusals(void **state)
{
    struct fixture *f = *state;

    assert_int_equal(mu__links_dial(f->us.links, "chief", 0, "tcp://peer:1"), 0);
    run_for(f, 40);
    assert_true(f->peer.epoch != 0);
    for (uint32_t i = 0; i < 100; i++) {
        dial_us(f);
        say_refuse(f, i == 0 ? 0 : f->peer.epoch + i, true);
        run_for(f, 2);
    }
    assert_null(strstr(sim_trace(f->sim), "it refused us"));
    dial_us(f);
    say_hello_words(f, &good);
    run_for(f, 100);
    assert_int_equal(mu__links_count_up(f->us.links), 1);
    for (uint32_t i = 0; i < 100; i++) {
        dial_us(f);
        say_refuse(f, i == 0 ? 0 : f->peer.epoch + i, true);
        run_for(f, 2);
    }
    assert_null(strstr(sim_trace(f->sim), "it refused us"));
}

/* What one epoch was says nothing about the next, on this node or another. */
static void test_epochs_are_drawn(void **state)
{
    uint32_t epochs[4];

    (void)state;
    for (size_t i = 0; i < 4; i++) {
        void *opened = NULL;
        struct fixture *f;

        assert_int_equal(setup(&opened), 0);
        f = opened;
        if (i >= 2) {   /* another process, with another secret */
            sim_free(f->sim);
            f->sim = sim_new(i);
            f->us.node = sim_node_add(f->sim, "us", "tcp://us:1", &us_program, &f->us);
            f->peer.node =
                sim_node_add(f->sim, "peer", "tcp://peer:1", &peer_program, &f->peer);
            assert_int_equal(sim_start(f->us.node) + sim_start(f->peer.node), 0);
        }
        assert_int_equal(mu__links_dial(f->us.links, "chief", 0, "tcp://peer:1"), 0);
        run_for(f, 40);
        if (i == 1) {
            f->peer.wire->ops->drop(f->peer.wire, f->peer.in);
            run_for(f, 400);
        }
        epochs[i] = f->peer.epoch;
        (void)teardown(&opened);
        for (size_t j = 0; j < i; j++)
            assert_true(epochs[i] - epochs[j] + 1000 > 2000);
    }
}

/* ---- dialling back ---- */

static struct fixture *open_seen(const char *at, bool is_near)
{
    void *state = NULL;

    seen_at = at;
    seen_near = is_near;
    assert_int_equal(setup(&state), 0);
    return state;
}

static void close_seen(struct fixture *f)
{
    void *state = f;

    (void)teardown(&state);
    seen_at = "";
}

static void test_where_a_peer_may_be(void **state)
{
    static const struct {
        const char *address;
        bool from_far;      /* it is dialled for a peer on another machine, too */
    } rows[] = {
        {"tcp://10.0.0.9:4000", true},
        {"tcp://node9.example:4000", true},
        {"tcp://[2001:db8::9]:4000", true},
        {"tcp://127.0.0.1:4000", false},
        {"tcp://127.9.9.9:4000", false},
        {"tcp://0.0.0.0:4000", false},
        {"tcp://localhost:4000", false},
        {"tcp://a.localhost:4000", false},
        {"tcp://169.254.169.254:80", false},
        {"tcp://[::1]:4000", false},
        {"tcp://[::]:4000", false},
        {"tcp://[::ffff:127.0.0.1]:4000", false},
        {"tcp://[fe80::1]:4000", false},
        {"ipc:///run/docker.sock", false},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        for (int is_near = 0; is_near < 2; is_near++) {
            struct fixture *f = open_seen("10.0.0.7:5000", is_near != 0);
            const struct hello_words client = {1,    "test", "client", 0, rows[i].address,
                                               PEER, NULL,   0};
            bool may = rows[i].from_far || is_near != 0;
            const char *trace;

            dial_us(f);
            say_hello_words(f, &client);
            run_for(f, 20);
            trace = sim_trace(f->sim);
            if ((strstr(trace, "but it is on another machine, 10.0.0.7: not dialled") ==
                 NULL) != may)
                fail_msg("%s, near %d: %s", rows[i].address, is_near, trace);
            close_seen(f);
        }
}

/* A refusal is no way to have a node dial anything either. */
static void test_refusals_are_not_sent_anywhere(void **state)
{
    static const char *const there[] = {"tcp://peer:1", NULL};

    (void)state;
    for (int is_near = 0; is_near < 2; is_near++) {
        struct fixture *f = open_seen("10.0.0.7:5000", is_near != 0);
        struct hello_words hello = good;
        bool is_told;

        sim_name(f->sim, "tcp://localhost:1", there, 1);
        hello.cluster = "other";
        hello.address = "tcp://localhost:1";
        dial_us(f);
        say_hello_words(f, &hello);
        run_for(f, 100);
        is_told = strstr(sim_trace(f->sim), "hears REFUSE") != NULL;
        assert_int_equal(is_told, is_near);
        close_seen(f);
    }
}

static void say_hello_at(struct fixture *f, int number, const char *type)
{
    struct hello_words hello = good;
    char address[64];

    (void)snprintf(address, sizeof address, "tcp://nowhere%d:1", number);
    hello.type = type;
    hello.address = address;
    hello.from = PEER + 100 + (uint64_t)number;
    dial_us(f);
    say_hello_words(f, &hello);
}

/* So many are dialled for one host at a time; who comes then is dropped, and others are
 * not concerned. */
static void test_how_many_are_dialled_back(void **state)
{
    struct fixture *f = open_seen("10.0.0.7:5000", false);

    (void)state;
    sim_settings(f->sim)->latency = (struct sim_range){100, 200};
    sim_settings(f->sim)->connect = (struct sim_range){100, 200};
    for (int i = 0; i < MU__LINK_BACK_MAX + 5; i++) {
        f->peer.out++;
        assert_int_equal(
            f->peer.wire->ops->dial(f->peer.wire, f->peer.out, "tcp://us:1"), 0);
    }
    run_for(f, 2);
    f->peer.out -= MU__LINK_BACK_MAX + 5;
    for (int i = 0; i < MU__LINK_BACK_MAX + 5; i++) {
        struct hello_words hello = good;
        char address[64];

        f->peer.out++;
        (void)snprintf(address, sizeof address, "tcp://nowhere%d:1", i);
        hello.type = "client";
        hello.address = address;
        hello.from = PEER + 100 + (uint64_t)i;
        say_hello_words(f, &hello);
    }
    run_for(f, 2);
    assert_non_null(strstr(sim_trace(f->sim),
                           "dropped a HELLO from 10.0.0.7: 256 processes from there are "
                           "dialled back and have not answered"));
    seen_at = "10.0.0.8:5000";
    dial_us(f);
    say_hello_words(f, &good);
    run_for(f, 20);
    assert_int_equal(mu__links_count_up(f->us.links), 1);
    /* After silence_ms they are forgotten. */
    run_for(f, 1000);
    (void)sim_trace(f->sim);
    seen_at = "10.0.0.7:5000";
    say_hello_at(f, 9000, "client");
    run_for(f, 20);
    assert_null(strstr(sim_trace(f->sim), "dropped a HELLO"));
    close_seen(f);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
#define TEST_UP(name) cmocka_unit_test_setup_teardown(name, setup_up, teardown)
    const struct CMUnitTest tests[] = {
        TEST_UP(test_incarnation_of_a_living_process),
        TEST_UP(test_incarnation_of_a_living_client),
        TEST_UP(test_link_stands_against_many),
        TEST_UP(test_same_process_connects_anew),
        TEST(test_forged_refusals),
        cmocka_unit_test(test_epochs_are_drawn),
        cmocka_unit_test(test_where_a_peer_may_be),
        cmocka_unit_test(test_refusals_are_not_sent_anywhere),
        cmocka_unit_test(test_how_many_are_dialled_back),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
