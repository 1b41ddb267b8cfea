/* What is asked about a key is applied once, however often it is asked. */
#include "tests/support/service/keys.h"

/* Asked again under the same token: the answer again, until the agent has it. */
TEST(test_once)
{
    struct pair p = begin(&mu__store_memory);

    tell_increment(p.w0, 10, 0);
    tell_increment(p.w0, 10, 0);
    tell_increment(p.w1, 10, 0);
    tell_increment(p.w0, 11, 0);
    tell_increment(p.w0, 10, 0);
    tell_increment(p.w0, 12, 12);
    tell_increment(p.w0, 11, 0); /* it has said that it has this one's answer */
    tell_put(p.w0, 13, 12, "n", "x", ONCE);
    (void)delete (p.w1, "n");
    tell_put(p.w0, 13, 12, "n", "x", ONCE);
    expect_said(
        p.w0,
        "[    0] key_done token=10 revision=1 number=1\n"
        "[    0] key_done token=10 revision=1 number=1\n"
        "[    0] key_done token=11 revision=3 number=3\n"
        "[    0] key_done token=10 revision=1 number=1\n"
        "[    0] key_done token=12 revision=4 number=4\n"
        "[    0] key_done token=13 code=6 revision=4 message=\"key \"n\" is there "
        "already\"\n"
        "[    0] key_done token=13 code=6 revision=4 message=\"already exists, as was "
        "answered before\"\n");
    service_end(p.s);
}

/* The next life of the host has read what was answered, and what agents ask again. */
TEST(test_once_over_lives)
{
    struct pair p = begin(&mu__store_journal);
    uint64_t number = service_state(p.s, 0)->number;

    tell_increment(p.w0, 10, 0);
    tell_increment(p.w0, 11, 11);
    tell_put(p.w1, 10, 0, "a", "x", ONCE);
    service_crash(p.s, 0);
    service_start(p.s, 0);
    assert_int_equal(service_state(p.s, 0)->number, number);
    assert_int_equal(service_state(p.s, 0)->epoch, 2);
    service_link_up(p.w0, 0);
    service_link_up(p.w1, 0);
    (void)service_register(p.w0, false, 0);
    (void)service_register(p.w1, false, 0);
    (void)service_text(p.w0);
    (void)service_text(p.w1);
    tell_increment(p.w0, 11, 11);
    tell_increment(p.w0, 10, 0);
    tell_increment(p.w0, 12, 11);
    tell_put(p.w1, 10, 0, "a", "x", ONCE);
    expect_said(p.w0, "[    0] key_done token=11 revision=2 number=2\n"
                      "[    0] key_done token=12 revision=4 number=3\n");
    expect_said(p.w1, "[    0] key_done token=10 revision=3\n");
    service_end(p.s);
}

/* In memory alone nothing lasts, and the number says so. */
TEST(test_memory_forgets)
{
    struct pair p = begin(&mu__store_memory);
    uint64_t number = service_state(p.s, 0)->number;

    tell_increment(p.w0, 10, 0);
    service_crash(p.s, 0);
    service_start(p.s, 0);
    assert_true(service_state(p.s, 0)->number != number);
    service_link_up(p.w0, 0);
    (void)service_register(p.w0, false, 0);
    expect_key(p.w0, "n", "");
    service_end(p.s);
}

/* Too many answers that an agent does not have: no more changes until it has some. */
TEST(test_answers_that_nobody_has)
{
    struct pair p = begin(&mu__store_memory);
    const struct service_said *said;
    const struct mu__key_done *done;

    for (uint64_t token = 10; token < 10 + MU__RESULTS_MAX; token++) {
        tell_increment(p.w0, token, 10);
        (void)service_next(p.w0, 0);
    }
    tell_increment(p.w0, 1 << 20, 10);
    said = service_next(p.w0, 0);
    done = (const void *)said->msg->body;
    assert_int_equal(done->code, MU_EEXHAUSTED);
    tell_increment(p.w0, 1 << 20, 11);
    said = service_next(p.w0, 0);
    done = (const void *)said->msg->body;
    assert_int_equal(done->number, MU__RESULTS_MAX + 1);
    service_end(p.s);
}

/* One that was lost, and does not know it, is not told that it failed: it registers again
 * and asks again. */
TEST(test_asked_by_the_lost)
{
    struct pair p = begin(&mu__store_memory);

    p.w0->beats = false;
    service_run_until(p.s, 1000);
    (void)put(p.w0, "a", "x", ONCE);
    (void)get(p.w0, "a", false);
#define WORDS "/job:worker/task:0 has been silent for 900 ms: it must register again"
    expect_said(p.w0, "[ 1000] key_done token=2 code=14 message=\"" WORDS "\"\n"
                      "[ 1000] key_done token=3 code=14 message=\"" WORDS "\"\n");
#undef WORDS
    expect_ok(p.w0, service_register(p.w0, false, 0));
    (void)service_text(p.w0);
    tell_put(p.w0, 2, 2, "a", "x", ONCE);
    expect_said(p.w0, "[ 1000] key_done token=2 revision=1\n");
    service_end(p.s);
}

enum { CROWD = 12 }; /* in a tiny build more than may be gone besides all tasks */

static void come_again(struct service_agent *const *crowd)
{
    for (unsigned i = 0; i < CROWD; i++) {
        expect_ok(crowd[i], service_register(crowd[i], false, 0));
        (void)service_text(crowd[i]);
    }
}

/* All of them ask again what each asked first, and get the answers of then. */
static void expect_once(struct service_agent *const *crowd, uint64_t at_ms)
{
    char text[128];

    for (unsigned i = 0; i < CROWD; i++) {
        tell_increment(crowd[i], 10, 10);
        (void)snprintf(text, sizeof text,
                       "[%5" PRIu64 "] key_done token=10 revision=%u number=%u\n", at_ms,
                       i + 1, i + 1);
        expect_said(crowd[i], text);
    }
}

/* However many are lost at once, and come back to this host or to the next one: what they
 * ask again is not made again. */
TEST(test_once_when_all_are_lost)
{
    struct service *s = SERVICE(.tasks = "worker:0-11", .store = &mu__store_journal);
    struct service_agent *crowd[CROWD];

    for (unsigned i = 0; i < CROWD; i++)
        crowd[i] = service_task(s, "worker", i);
    for (unsigned i = 0; i < CROWD; i++) {
        tell_increment(crowd[i], 10, 10);
        crowd[i]->beats = false;
        (void)service_text(crowd[i]);
    }
    service_run_until(s, 1000);
    come_again(crowd);
    service_run_until(s, 2000); /* lost once more, without having asked */
    come_again(crowd);
    expect_once(crowd, 2000);
    service_crash(s, 0);
    service_start(s, 0);
    for (unsigned i = 0; i < CROWD; i++)
        service_link_up(crowd[i], 0);
    come_again(crowd);
    expect_once(crowd, 2000);
    expect_key(crowd[0], "n", "12");
    service_end(s);
}

/* One that is back has its results, whatever others go meanwhile, also before it asks. */
TEST(test_once_for_who_is_back)
{
    struct pair p = begin(&mu__store_memory);

    tell_increment(p.w0, 10, 10);
    p.w0->beats = false;
    service_run_until(p.s, 1000);
    expect_ok(p.w0, service_register(p.w0, false, 0));
    for (unsigned i = 0; i < MU__RESULTS_CLOSED_MAX + 4; i++) {
        tell_increment(p.w1, 10, 10);
        service_agent_restart(p.w1);
        expect_ok(p.w1, service_register(p.w1, false, 0));
        (void)service_text(p.w1);
    }
    (void)service_text(p.w0);
    tell_increment(p.w0, 10, 10);
    expect_said(p.w0, "[ 1000] key_done token=10 revision=1 number=1\n");
    service_end(p.s);
}

TEST_PROGRAM()
