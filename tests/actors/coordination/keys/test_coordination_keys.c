/* Key-values of the coordination service, in virtual time: changes, gets, leases. */
#include "tests/support/service/keys.h"

#include "actors/coordination/tasks.h"

/* ---- Changes ---- */

TEST(test_put)
{
    struct pair p = begin(&mu__store_memory);

    (void)put(p.w0, "a/b", "one", ONCE);
    (void)get(p.w1, "a/b", false);
    (void)put(p.w1, "a/b", "two", ONCE);
    (void)put(p.w1, "a/b", "three", OVER);
    (void)get(p.w0, "a/b", false);
    (void)get(p.w0, "a", false);
    expect_said(p.w0,
                "[    0] key_done token=2 revision=1\n"
                "[    0] key_done token=3 revision=2 value=\"three\"\n"
                "[    0] key_done token=4 code=5 message=\"key \"a\" is not there\"\n");
    expect_said(
        p.w1, "[    0] key_done token=2 revision=1 value=\"one\"\n"
              "[    0] key_done token=3 code=6 revision=1 message=\"key \"a/b\" is there "
              "already\"\n"
              "[    0] key_done token=4 revision=2\n");
    service_end(p.s);
}

TEST(test_compare)
{
    struct pair p = begin(&mu__store_memory);

    (void)put_sized(p.w0, "a", "1", 1, COMPARE, 7);
    (void)put_sized(p.w0, "a", "2", 1, COMPARE, 0);
    (void)put_sized(p.w0, "a", "3", 1, COMPARE, 0);
    (void)put_sized(p.w0, "a", "4", 1, COMPARE | OVER, 2);
    (void)put_sized(p.w0, "a", "5", 1, COMPARE, 1);
    expect_said(
        p.w0,
        "[    0] key_done token=2 code=9 message=\"key \"a\" has revision 0, expected "
        "7\"\n"
        "[    0] key_done token=3 revision=1\n"
        "[    0] key_done token=4 code=9 revision=1 message=\"key \"a\" has revision 1, "
        "expected 0\"\n"
        "[    0] key_done token=5 code=9 revision=1 message=\"key \"a\" has revision 1, "
        "expected 2\"\n"
        "[    0] key_done token=6 revision=2\n");
    expect_key(p.w1, "a", "5");
    service_end(p.s);
}

TEST(test_bytes)
{
    struct pair p = begin(&mu__store_memory);
    static uint8_t large[MU__KEY_VALUE_MAX];
    const struct service_said *said;
    const struct mu__key_done *done;

    for (size_t i = 0; i < sizeof large; i++)
        large[i] = (uint8_t)(i * i >> 4);
    (void)put_sized(p.w0, "a", large, sizeof large, ONCE, 0);
    (void)put_sized(p.w0, "b", "", 0, ONCE, 0);
    said = service_answer(p.w1, MU__KEY_DONE, get(p.w1, "a", true));
    done = (const void *)said->msg->body;
    assert_int_equal(done->value.size, sizeof large);
    assert_memory_equal(done->value.data, large, sizeof large);
    (void)service_text(p.w0);
    (void)get(p.w0, "b", false);
    expect_said(p.w0, "[    0] key_done token=4 revision=2\n");
    service_end(p.s);
}

#define NOT_NORMAL                                                 \
    "a key is not in its normal form: it is empty, too long, has " \
    "slashes too many or control characters"
#define OWN "is the service's own: keys below _muster are for reading"

TEST(test_bad_keys)
{
    static const char *const keys[] = {"", "/a", "a//b", "a/", "a\tb"};
    struct pair p = begin(&mu__store_memory);
    char text[256];

    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        uint64_t tokens[] = {put(p.w0, keys[i], "x", OVER), get(p.w0, keys[i], true),
                             increment(p.w0, keys[i], 1), delete (p.w0, keys[i])};

        for (size_t k = 0; k < sizeof tokens / sizeof tokens[0]; k++) {
            const struct service_said *said =
                service_answer(p.w0, MU__KEY_DONE, tokens[k]);
            const struct mu__key_done *done;

            assert_non_null(said);
            done = (const void *)said->msg->body;
            mu__view_copy(done->message, text, sizeof text);
            assert_int_equal(done->code, MU_EINVALID);
            assert_string_equal(text, NOT_NORMAL);
        }
    }
    (void)service_text(p.w0);
    (void)watch(p.w0, "a/", true);
    (void)list(p.w0, "/", "", false);
    expect_said(p.w0, "[    0] key_event token=22 code=3 message=\"" NOT_NORMAL "\"\n"
                      "[    0] key_listed token=23 code=3 message=\"" NOT_NORMAL "\"\n");
    assert_int_equal(service_state(p.s, 0)->revision, 0);
    service_end(p.s);
}

/* Programs may read the service's own keys, and change none. */
TEST(test_own_keys)
{
    struct pair p = begin(&mu__store_memory);

    (void)put(p.w0, "_muster", "x", OVER);
    (void)put(p.w0, "_muster/x", "x", OVER);
    (void)increment(p.w0, "_muster/x", 1);
    (void)delete (p.w0, "_muster");
    (void)get(p.w0, "_muster/x", false);
    (void)put(p.w0, "_musterx", "x", OVER);
    expect_said(
        p.w0,
        "[    0] key_done token=2 code=7 message=\"key \"_muster\" " OWN "\"\n"
        "[    0] key_done token=3 code=7 message=\"key \"_muster/x\" " OWN "\"\n"
        "[    0] key_done token=4 code=7 message=\"key \"_muster/x\" " OWN "\"\n"
        "[    0] key_done token=5 code=7 message=\"key \"_muster\" " OWN "\"\n"
        "[    0] key_done token=6 code=5 message=\"key \"_muster/x\" is not there\"\n"
        "[    0] key_done token=7 revision=1\n");
    service_end(p.s);
}

TEST(test_not_registered)
{
    struct service *s = SERVICE();
    struct service_agent *w0 = service_agent(s, "worker", 0);

    (void)put(w0, "a", "x", ONCE);
    (void)get(w0, "a", true);
    (void)watch(w0, "a", false);
    (void)list(w0, "a", "", false);
#define WORDS "this task is not registered at /job:chief/task:0"
    expect_said(w0, "[    0] key_done token=1 code=14 message=\"" WORDS "\"\n"
                    "[    0] key_done token=2 code=14 message=\"" WORDS "\"\n"
                    "[    0] key_event token=3 code=14 message=\"" WORDS "\"\n"
                    "[    0] key_listed token=4 code=14 message=\"" WORDS "\"\n");
#undef WORDS
    service_end(s);
}

TEST(test_increment)
{
    struct pair p = begin(&mu__store_memory);

    (void)increment(p.w0, "n", 5);
    (void)increment(p.w0, "n", -7);
    (void)increment(p.w0, "n", 0);
    (void)increment(p.w0, "n", INT64_MIN + 2);
    (void)increment(p.w0, "n", -1);
    (void)increment(p.w0, "m", INT64_MAX);
    (void)increment(p.w0, "m", 1);
    (void)increment(p.w0, "m", INT64_MIN);
    expect_said(
        p.w0,
        "[    0] key_done token=2 revision=1 number=5\n"
        "[    0] key_done token=3 revision=2 number=-2\n"
        "[    0] key_done token=4 revision=3 number=-2\n"
        "[    0] key_done token=5 revision=4 number=-9223372036854775808\n"
        "[    0] key_done token=6 code=11 message=\"key \"n\" would exceed 64 bits\"\n"
        "[    0] key_done token=7 revision=5 number=9223372036854775807\n"
        "[    0] key_done token=8 code=11 message=\"key \"m\" would exceed 64 bits\"\n"
        "[    0] key_done token=9 revision=6 number=-1\n");
    expect_key(p.w1, "n", "-9223372036854775808");
    service_end(p.s);
}

TEST(test_what_is_no_number)
{
    static const struct {
        const char *value;
        bool is_number;
    } rows[] = {
        {"0", true},
        {"-0", true},
        {"007", true},
        {"9223372036854775806", true},
        {"-9223372036854775808", true},
        {"9223372036854775808", false},
        {"-9223372036854775809", false},
        {"99999999999999999999", false},
        {"", false},
        {"-", false},
        {"+1", false},
        {" 1", false},
        {"1 ", false},
        {"1.0", false},
        {"0x10", false},
        {"one", false},
        {"1-", false},
        {"000000000000000000001", false},
    };
    struct pair p = begin(&mu__store_memory);

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const struct service_said *said;

        (void)put(p.w0, "n", rows[i].value, OVER);
        said = service_answer(p.w0, MU__KEY_DONE, increment(p.w0, "n", 1));
        assert_int_equal(
            ((const struct mu__key_done *)(const void *)said->msg->body)->code,
            rows[i].is_number ? 0 : MU_EPRECONDITION);
    }
    service_end(p.s);
}

TEST(test_delete)
{
    struct pair p = begin(&mu__store_memory);

    (void)put(p.w0, "a", "x", ONCE);
    (void)put(p.w0, "a/b", "x", ONCE);
    (void)put(p.w0, "a/b/c", "x", ONCE);
    (void)put(p.w0, "a!", "x", ONCE);
    (void)put(p.w0, "ab", "x", ONCE);
    (void)service_text(p.w0);
    (void)delete (p.w0, "a/b/c");
    (void)delete (p.w0, "a");
    (void)delete (p.w0, "a");
    expect_said(p.w0, "[    0] key_done token=7 revision=6 number=1\n"
                      "[    0] key_done token=8 revision=8 number=2\n"
                      "[    0] key_done token=9 revision=8\n");
    expect_key(p.w1, "a!", "x");
    expect_key(p.w1, "ab", "x");
    expect_key(p.w1, "a/b", "");
    service_end(p.s);
}

/* ---- Gets that wait ---- */

TEST(test_gets_wait)
{
    struct pair p = begin(&mu__store_memory);

    (void)get(p.w0, "a", true);
    (void)get(p.w0, "n", true);
    (void)get(p.w0, "b", true);
    TELL(p.w0, KEY_GET, key_get, .token = 3, .key = mu__view_str("n"), .wait = true);
    TELL(p.w0, KEY_CANCEL, key_cancel, .token = 4);
    TELL(p.w0, KEY_CANCEL, key_cancel, .token = 99);
    expect_said(p.w0, "");
    service_run_until(p.s, 50);
    (void)put(p.w1, "a", "x", ONCE);
    (void)put(p.w1, "b", "x", ONCE);
    (void)increment(p.w1, "n", 3);
    expect_said(p.w0, "[   50] key_done token=2 revision=1 value=\"x\"\n"
                      "[   50] key_done token=3 revision=3 value=\"3\"\n");
    (void)increment(p.w1, "n", 3);
    expect_said(p.w0, "");
    service_end(p.s);
}

/* A node that is down will ask again. */
TEST(test_who_waits_goes)
{
    struct pair p = begin(&mu__store_memory);

    (void)get(p.w0, "a", true);
    (void)watch(p.w0, "", true);
    (void)service_text(p.w0);
    service_link_down(p.w0, 0, "cut");
    service_link_up(p.w0, 0);
    (void)put(p.w1, "a", "x", ONCE);
    expect_said(p.w0, "");
    TELL(p.w0, KEY_GET, key_get, .token = 2, .key = mu__view_str("a"), .wait = true);
    expect_said(p.w0, "[    0] key_done token=2 revision=1 value=\"x\"\n");
    service_end(p.s);
}

TEST(test_waits_are_bounded)
{
    struct pair p = begin(&mu__store_memory);

    for (unsigned i = 0; i < COORD_WAITS_MAX; i++)
        (void)get(p.w0, "a", true);
    expect_said(p.w0, "");
    (void)watch(p.w0, "a", false);
    (void)get(p.w1, "a", true);
    expect_said(p.w1, "");
    assert_non_null(strstr(service_text(p.w0), "gets and watches together, as often as "
                                               "it may"));
    (void)put(p.w1, "a", "x", ONCE);
    assert_int_equal(p.w0->counts[MU__KEY_DONE], COORD_WAITS_MAX);
    (void)watch(p.w0, "a", false);
    while (service_next(p.w0, MU__KEY_EVENT) != NULL)
        ;
    assert_int_equal(p.w0->counts[MU__KEY_EVENT], 3);
    service_end(p.s);
}

/* ---- Leases ---- */

TEST(test_lease_ends)
{
    struct pair p = begin(&mu__store_memory);

    (void)put(p.w0, "a", "x", MU__PUT_LEASE);
    (void)put(p.w0, "b", "x", MU__PUT_LEASE);
    (void)put(p.w0, "c", "x", MU__PUT_LEASE);
    (void)put(p.w0, "d", "5", MU__PUT_LEASE);
    (void)put(p.w0, "e", "x", ONCE);
    (void)put(p.w1, "b", "y", OVER); /* nobody's lease any more */
    (void)put(p.w1, "c", "y", OVER | MU__PUT_LEASE);
    (void)increment(p.w1, "d", 1); /* stays w0's */
    (void)watch(p.w1, "", true);
    (void)service_text(p.w1);
    (void)service_leave(p.w0, 0);
    expect_said(p.w1, "[    0] key_event token=5 key=\"d\" revision=9 deleted=yes\n"
                      "[    0] key_event token=5 key=\"a\" revision=10 deleted=yes\n");
    expect_key(p.w1, "b", "y");
    expect_key(p.w1, "c", "y");
    expect_key(p.w1, "e", "x");
    service_end(p.s);
}

/* A task that is dead: 600 ms after its link broke. One that comes back before is not. */
TEST(test_lease_of_the_dead)
{
    struct pair p = begin(&mu__store_memory);

    (void)put(p.w0, "a", "x", MU__PUT_LEASE);
    (void)watch(p.w1, "", true);
    (void)service_text(p.w1);
    service_run_until(p.s, 1000);
    service_link_down(p.w0, 0, "cut");
    service_run_until(p.s, 1500);
    service_link_up(p.w0, 0);
    service_run_until(p.s, 2050);
    expect_said(p.w1, "");
    service_agent_crash(p.w0);
    service_run_until(p.s, 3000);
    expect_said(p.w1, "[ 2650] key_event token=2 key=\"a\" revision=2 deleted=yes\n");
    service_end(p.s);
}

/* After a change of host those who do not come within dead_ms are gone, too. */
TEST(test_leases_over_lives)
{
    struct pair p = begin(&mu__store_journal);

    (void)put(p.w0, "a", "x", MU__PUT_LEASE);
    (void)put(p.w1, "b", "x", MU__PUT_LEASE);
    service_crash(p.s, 0);
    service_start(p.s, 0);
    service_link_up(p.w0, 0);
    service_run_until(p.s, 600);
    (void)service_register(p.w0, false, 0);
    expect_key(p.w0, "b", "x");
    (void)watch(p.w0, "b", false);
    (void)service_text(p.w0);
    service_run_until(p.s, 2000);
    expect_said(p.w0, "[  900] key_event token=5 key=\"b\" revision=3 deleted=yes\n");
    expect_key(p.w0, "a", "x");
    service_end(p.s);
}

/* ---- Preemption ---- */

/* The key is a notice. */
TEST(test_preemption_key)
{
    struct pair p = begin(&mu__store_memory);
    const struct service_said *said;

    (void)put(p.w0, MU__KEY_PREEMPTION, "", ONCE);
    said = service_next(p.w1, MU__PREEMPT_REQUEST);
    assert_non_null(said);
    assert_true(mu__view_is(
        ((const struct mu__preempt_request *)(const void *)said->msg->body)->task,
        "/job:worker/task:0"));
    service_end(p.s);
}

TEST_PROGRAM()
