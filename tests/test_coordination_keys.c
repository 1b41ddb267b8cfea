/* Key-values of the coordination service, in virtual time. A host answers at once; tasks
 * that are silent are dead after 900 ms, or 600 when their link is down. */
#include "actors/coordination_keys.h"
#include "tests/service.h"

enum { ONCE = 0, OVER = MU__PUT_OVERWRITE, COMPARE = MU__PUT_COMPARE };

/* ---- What agents ask, who have all answers of before ---- */

static uint64_t put_sized(struct service_agent *agent, const char *key, const void *value,
                          size_t size, uint32_t flags, uint64_t revision)
{
    TELL(agent, KEY_PUT, key_put, .token = ++agent->token, .done = agent->token,
         .key = mu__view_str(key), .value = {value, (uint32_t)size}, .flags = flags,
         .revision = revision);
    return agent->token;
}

static uint64_t put(struct service_agent *agent, const char *key, const char *value,
                    uint32_t flags)
{
    return put_sized(agent, key, value, strlen(value), flags, 0);
}

static uint64_t get(struct service_agent *agent, const char *key, bool wait)
{
    TELL(agent, KEY_GET, key_get, .token = ++agent->token, .key = mu__view_str(key),
         .wait = wait);
    return agent->token;
}

static uint64_t increment(struct service_agent *agent, const char *key, int64_t by)
{
    TELL(agent, KEY_INCREMENT, key_increment, .token = ++agent->token,
         .done = agent->token, .key = mu__view_str(key), .by = by);
    return agent->token;
}

static uint64_t delete(struct service_agent *agent, const char *key)
{
    TELL(agent, KEY_DELETE, key_delete, .token = ++agent->token, .done = agent->token,
         .key = mu__view_str(key));
    return agent->token;
}

static uint64_t watch(struct service_agent *agent, const char *key, bool below)
{
    TELL(agent, KEY_WATCH, key_watch, .token = ++agent->token, .key = mu__view_str(key),
         .below = below);
    return agent->token;
}

static uint64_t list(struct service_agent *agent, const char *key, const char *after,
                     bool names_only)
{
    TELL(agent, KEY_LIST, key_list, .token = ++agent->token, .key = mu__view_str(key),
         .after = mu__view_str(after), .names_only = names_only);
    return agent->token;
}

/* What a key has now, by asking; "" when it is not there. */
static const char *value_of(struct service_agent *agent, const char *key)
{
    static char text[128];
    uint64_t token = get(agent, key, false);
    const struct service_said *said = service_answer(agent, MU__KEY_DONE, token);
    const struct mu__key_done *done;

    assert_non_null(said);
    done = (const void *)said->msg->body;
    assert_true(done->code == 0 || done->code == MU_ENOTFOUND);
    mu__view_copy(done->value, text, sizeof text);
    (void)service_text(agent);
    return text;
}

#define expect_key(agent, key, text) assert_string_equal(value_of(agent, key), text)

struct pair {
    struct service *s;
    struct service_agent *w0;
    struct service_agent *w1;
};

/* Two tasks that are registered: their next token is 2. */
static struct pair begin(const struct mu__store_kind *store)
{
    struct pair p = {.s = SERVICE(.store = store)};

    p.w0 = service_task(p.s, "worker", 0);
    p.w1 = service_task(p.s, "worker", 1);
    return p;
}

/* ---- Changes ---- */

static void test_put(void **state)
{
    struct pair p = begin(&mu__store_memory);

    (void)state;
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
    expect_said(p.w1,
        "[    0] key_done token=2 revision=1 value=\"one\"\n"
        "[    0] key_done token=3 code=6 revision=1 message=\"key \"a/b\" is there "
        "already\"\n"
        "[    0] key_done token=4 revision=2\n");
    service_end(p.s);
}

static void test_compare(void **state)
{
    struct pair p = begin(&mu__store_memory);

    (void)state;
    (void)put_sized(p.w0, "a", "1", 1, COMPARE, 7);
    (void)put_sized(p.w0, "a", "2", 1, COMPARE, 0);
    (void)put_sized(p.w0, "a", "3", 1, COMPARE, 0);
    (void)put_sized(p.w0, "a", "4", 1, COMPARE | OVER, 2);
    (void)put_sized(p.w0, "a", "5", 1, COMPARE, 1);
    expect_said(p.w0,
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

static void test_bytes(void **state)
{
    struct pair p = begin(&mu__store_memory);
    static uint8_t large[MU__KEY_VALUE_MAX];
    const struct service_said *said;
    const struct mu__key_done *done;

    (void)state;
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

#define NOT_NORMAL "a key is not in its normal form: it is empty, too long, has " \
                   "slashes too many or control characters"
#define OWN "is the service's own: keys below _muster are for reading"

static void test_bad_keys(void **state)
{
    static const char *const keys[] = {"", "/a", "a//b", "a/", "a\tb"};
    struct pair p = begin(&mu__store_memory);
    char text[256];

    (void)state;
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        uint64_t tokens[] = {put(p.w0, keys[i], "x", OVER), get(p.w0, keys[i], true),
                             increment(p.w0, keys[i], 1), delete(p.w0, keys[i])};

        for (size_t k = 0; k < sizeof tokens / sizeof tokens[0]; k++) {
            const struct service_said *said = service_answer(p.w0, MU__KEY_DONE,
                                                             tokens[k]);
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
    expect_said(p.w0,
        "[    0] key_event token=22 code=3 message=\"" NOT_NORMAL "\"\n"
        "[    0] key_listed token=23 code=3 message=\"" NOT_NORMAL "\"\n");
    assert_int_equal(service_state(p.s, 0)->revision, 0);
    service_end(p.s);
}

/* Programs may read the service's own keys, and change none. */
static void test_own_keys(void **state)
{
    struct pair p = begin(&mu__store_memory);

    (void)state;
    (void)put(p.w0, "_muster", "x", OVER);
    (void)put(p.w0, "_muster/x", "x", OVER);
    (void)increment(p.w0, "_muster/x", 1);
    (void)delete(p.w0, "_muster");
    (void)get(p.w0, "_muster/x", false);
    (void)put(p.w0, "_musterx", "x", OVER);
    expect_said(p.w0,
        "[    0] key_done token=2 code=7 message=\"key \"_muster\" " OWN "\"\n"
        "[    0] key_done token=3 code=7 message=\"key \"_muster/x\" " OWN "\"\n"
        "[    0] key_done token=4 code=7 message=\"key \"_muster/x\" " OWN "\"\n"
        "[    0] key_done token=5 code=7 message=\"key \"_muster\" " OWN "\"\n"
        "[    0] key_done token=6 code=5 message=\"key \"_muster/x\" is not there\"\n"
        "[    0] key_done token=7 revision=1\n");
    service_end(p.s);
}

static void test_not_registered(void **state)
{
    struct service *s = SERVICE();
    struct service_agent *w0 = service_agent(s, "worker", 0);

    (void)state;
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

static void test_increment(void **state)
{
    struct pair p = begin(&mu__store_memory);

    (void)state;
    (void)increment(p.w0, "n", 5);
    (void)increment(p.w0, "n", -7);
    (void)increment(p.w0, "n", 0);
    (void)increment(p.w0, "n", INT64_MIN + 2);
    (void)increment(p.w0, "n", -1);
    (void)increment(p.w0, "m", INT64_MAX);
    (void)increment(p.w0, "m", 1);
    (void)increment(p.w0, "m", INT64_MIN);
    expect_said(p.w0,
        "[    0] key_done token=2 revision=1 number=5\n"
        "[    0] key_done token=3 revision=2 number=-2\n"
        "[    0] key_done token=4 revision=3 number=-2\n"
        "[    0] key_done token=5 revision=4 number=-9223372036854775808\n"
        "[    0] key_done token=6 code=11 message=\"key \"n\" would not fit 64 bits any "
        "more\"\n"
        "[    0] key_done token=7 revision=5 number=9223372036854775807\n"
        "[    0] key_done token=8 code=11 message=\"key \"m\" would not fit 64 bits any "
        "more\"\n"
        "[    0] key_done token=9 revision=6 number=-1\n");
    expect_key(p.w1, "n", "-9223372036854775808");
    service_end(p.s);
}

static void test_what_is_no_number(void **state)
{
    static const struct {
        const char *value;
        bool is_number;
    } rows[] = {
        {"0", true}, {"-0", true}, {"007", true}, {"9223372036854775806", true},
        {"-9223372036854775808", true}, {"9223372036854775808", false},
        {"-9223372036854775809", false}, {"99999999999999999999", false},
        {"", false}, {"-", false}, {"+1", false}, {" 1", false}, {"1 ", false},
        {"1.0", false}, {"0x10", false}, {"one", false}, {"1-", false},
        {"000000000000000000001", false},
    };
    struct pair p = begin(&mu__store_memory);

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const struct service_said *said;

        (void)put(p.w0, "n", rows[i].value, OVER);
        said = service_answer(p.w0, MU__KEY_DONE, increment(p.w0, "n", 1));
        assert_int_equal(((const struct mu__key_done *)(const void *)said->msg->body)
                         ->code, rows[i].is_number ? 0 : MU_EPRECONDITION);
    }
    service_end(p.s);
}

static void test_delete(void **state)
{
    struct pair p = begin(&mu__store_memory);

    (void)state;
    (void)put(p.w0, "a", "x", ONCE);
    (void)put(p.w0, "a/b", "x", ONCE);
    (void)put(p.w0, "a/b/c", "x", ONCE);
    (void)put(p.w0, "a!", "x", ONCE);
    (void)put(p.w0, "ab", "x", ONCE);
    (void)service_text(p.w0);
    (void)delete(p.w0, "a/b/c");
    (void)delete(p.w0, "a");
    (void)delete(p.w0, "a");
    expect_said(p.w0, "[    0] key_done token=7 revision=6 number=1\n"
                      "[    0] key_done token=8 revision=8 number=2\n"
                      "[    0] key_done token=9 revision=8\n");
    expect_key(p.w1, "a!", "x");
    expect_key(p.w1, "ab", "x");
    expect_key(p.w1, "a/b", "");
    service_end(p.s);
}

/* ---- Once ---- */

static void tell_put(struct service_agent *agent, uint64_t token, uint64_t done,
                     const char *key, const char *value, uint32_t flags)
{
    TELL(agent, KEY_PUT, key_put, .token = token, .done = done, .key = mu__view_str(key),
         .value = mu__view_str(value), .flags = flags);
}

static void tell_increment(struct service_agent *agent, uint64_t token, uint64_t done)
{
    TELL(agent, KEY_INCREMENT, key_increment, .token = token, .done = done,
         .key = mu__view_str("n"), .by = 1);
}

/* Asked again under the same token: the answer again, until the agent has it. */
static void test_once(void **state)
{
    struct pair p = begin(&mu__store_memory);

    (void)state;
    tell_increment(p.w0, 10, 0);
    tell_increment(p.w0, 10, 0);
    tell_increment(p.w1, 10, 0);
    tell_increment(p.w0, 11, 0);
    tell_increment(p.w0, 10, 0);
    tell_increment(p.w0, 12, 12);
    tell_increment(p.w0, 11, 0);        /* it has said that it has this one's answer */
    tell_put(p.w0, 13, 12, "n", "x", ONCE);
    (void)delete(p.w1, "n");
    tell_put(p.w0, 13, 12, "n", "x", ONCE);
    expect_said(p.w0,
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
static void test_once_over_lives(void **state)
{
    struct pair p = begin(&mu__store_journal);
    uint64_t number = service_state(p.s, 0)->number;

    (void)state;
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
static void test_memory_forgets(void **state)
{
    struct pair p = begin(&mu__store_memory);
    uint64_t number = service_state(p.s, 0)->number;

    (void)state;
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
static void test_answers_that_nobody_has(void **state)
{
    struct pair p = begin(&mu__store_memory);
    const struct service_said *said;
    const struct mu__key_done *done;

    (void)state;
    for (uint64_t token = 10; token < 10 + MU__ASKED_MAX; token++) {
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
    assert_int_equal(done->number, MU__ASKED_MAX + 1);
    service_end(p.s);
}

/* One that was lost, and does not know it, is not told that it failed: it registers again
 * and asks again. */
static void test_asked_by_the_lost(void **state)
{
    struct pair p = begin(&mu__store_memory);

    (void)state;
    p.w0->beats = false;
    service_run_until(p.s, 1000);
    (void)put(p.w0, "a", "x", ONCE);
    (void)get(p.w0, "a", false);
#define WORDS "/job:worker/task:0 has not been heard for 900 ms: it must register again"
    expect_said(p.w0, "[ 1000] key_done token=2 code=14 message=\"" WORDS "\"\n"
                      "[ 1000] key_done token=3 code=14 message=\"" WORDS "\"\n");
#undef WORDS
    expect_ok(p.w0, service_register(p.w0, false, 0));
    (void)service_text(p.w0);
    tell_put(p.w0, 2, 2, "a", "x", ONCE);
    expect_said(p.w0, "[ 1000] key_done token=2 revision=1\n");
    service_end(p.s);
}

enum { CROWD = 12 };    /* in a tiny build more than may be gone besides all tasks */

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
        (void)snprintf(text, sizeof text, "[%5" PRIu64 "] key_done token=10 revision=%u "
                       "number=%u\n", at_ms, i + 1, i + 1);
        expect_said(crowd[i], text);
    }
}

/* However many are lost at once, and come back to this host or to the next one: what they
 * ask again is not made again. */
static void test_once_when_all_are_lost(void **state)
{
    struct service *s = SERVICE(.tasks = "worker:0-11", .store = &mu__store_journal);
    struct service_agent *crowd[CROWD];

    (void)state;
    for (unsigned i = 0; i < CROWD; i++)
        crowd[i] = service_task(s, "worker", i);
    for (unsigned i = 0; i < CROWD; i++) {
        tell_increment(crowd[i], 10, 10);
        crowd[i]->beats = false;
        (void)service_text(crowd[i]);
    }
    service_run_until(s, 1000);
    come_again(crowd);
    service_run_until(s, 2000);         /* lost once more, without having asked */
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
static void test_once_for_who_is_back(void **state)
{
    struct pair p = begin(&mu__store_memory);

    (void)state;
    tell_increment(p.w0, 10, 10);
    p.w0->beats = false;
    service_run_until(p.s, 1000);
    expect_ok(p.w0, service_register(p.w0, false, 0));
    for (unsigned i = 0; i < MU__ASKED_GONE_MAX + 4; i++) {
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

/* ---- The store ---- */

/* An answer waits until what was written is safe; when it cannot be, there is none, and
 * who asks again gets the answer of what counted. */
static void test_answers_wait_for_the_store(void **state)
{
    struct pair p = begin(&mu__store_journal);

    (void)state;
    service_run_until(p.s, 100);
    (void)service_text(p.w0);
    sim_storage_fail(p.s->hosts[0].storage, SIM_STORAGE_FLUSH, 1, -MU_EEXHAUSTED);
    tell_increment(p.w0, 10, 0);
    (void)get(p.w1, "n", false);
    expect_said(p.w0, "");
    expect_said(p.w1, "");
    service_run_until(p.s, 1500);
    assert_int_equal(service_state(p.s, 0)->epoch, 2);
    (void)service_register(p.w0, false, 0);
    (void)service_text(p.w0);
    tell_increment(p.w0, 10, 0);
    expect_said(p.w0, "[ 1500] key_done token=10 revision=1 number=1\n");
    service_end(p.s);
}

/* What cannot be written at all did not happen. */
static void test_a_full_disk(void **state)
{
    struct pair p = begin(&mu__store_journal);

    (void)state;
    tell_increment(p.w0, 10, 0);
    sim_storage_fail(p.s->hosts[0].storage, SIM_STORAGE_APPEND, 1, -MU_EEXHAUSTED);
    (void)service_text(p.w0);
    tell_increment(p.w0, 11, 0);
    expect_said(p.w0, "");
    service_run_until(p.s, 1500);
    (void)service_register(p.w0, false, 0);
    expect_key(p.w0, "n", "1");
    tell_increment(p.w0, 11, 0);
    expect_said(p.w0, "[ 1500] key_done token=11 revision=2 number=2\n");
    service_end(p.s);
}

static void again_at(struct pair *p)
{
    service_crash(p->s, 0);
    service_start(p->s, 0);
    service_link_up(p->w0, 0);
    service_link_up(p->w1, 0);
    (void)service_register(p->w0, false, 0);
    (void)service_register(p->w1, false, 0);
    (void)service_text(p->w0);
    (void)service_text(p->w1);
}

/* A file that has grown is written anew, and has everything that counts. */
static void test_rewrite(void **state)
{
    struct pair p = begin(&mu__store_journal);
    static char large[10000];
    size_t most = 0;

    (void)state;
    memset(large, 'x', sizeof large);
    for (uint64_t i = 0; i < 400; i++) {
        (void)put_sized(p.w0, "large", large, sizeof large, OVER, 0);
        tell_increment(p.w1, 10 + i, 10 + i);
        (void)service_text(p.w1);
        if (p.s->hosts[0].storage->size > most)
            most = p.s->hosts[0].storage->size;
        (void)service_next(p.w0, 0);
        if (i % 10 == 0)
            service_run(p.s, 100);
    }
    assert_true(most < 3 << 20);
    (void)put(p.w0, "small", "y", OVER);
    again_at(&p);
    expect_key(p.w0, "n", "400");
    expect_key(p.w0, "small", "y");
    tell_increment(p.w1, 409, 0);
    expect_said(p.w1, "[ 4000] key_done token=409 revision=800 number=400\n");
    service_end(p.s);
}

/* Revisions ascend although the key that had the last one is gone, and its file is
 * rewritten. */
static void test_revisions_ascend(void **state)
{
    struct pair p = begin(&mu__store_journal);
    static char large[MU__KEY_VALUE_MAX];
    uint64_t before;

    (void)state;
    for (unsigned i = 0; i < 3; i++)
        (void)put_sized(p.w0, "large", large, sizeof large, OVER, 0);
    (void)delete(p.w0, "large");
    /* One that is refused: its result is not kept, and the others are done with. */
    TELL(p.w0, KEY_DELETE, key_delete, .token = ++p.w0->token, .done = p.w0->token,
         .key = mu__view_str("_muster"));
    before = p.s->hosts[0].storage->size;
    service_run(p.s, 1500);
    assert_true(p.s->hosts[0].storage->size < before / 100);
    again_at(&p);
    (void)put(p.w0, "a", "x", ONCE);
    assert_int_equal(service_state(p.s, 0)->revision, 5);
    service_end(p.s);
}

/* ---- Gets that wait ---- */

static void test_gets_wait(void **state)
{
    struct pair p = begin(&mu__store_memory);

    (void)state;
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
static void test_who_waits_goes(void **state)
{
    struct pair p = begin(&mu__store_memory);

    (void)state;
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

static void test_waits_are_bounded(void **state)
{
    struct pair p = begin(&mu__store_memory);

    (void)state;
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

/* ---- Lists ---- */

/* Keys of a page, with spaces; and whether there is more. */
static const char *listed(struct service_agent *agent, const char *key, const char *after,
                          bool *ret_more)
{
    static char text[512];
    const struct service_said *said =
        service_answer(agent, MU__KEY_LISTED, list(agent, key, after, true));
    const struct mu__key_listed *page;
    mu_value *items = NULL;
    size_t used = 0;

    assert_non_null(said);
    page = (const void *)said->msg->body;
    assert_int_equal(page->code, 0);
    assert_int_equal(mu__value_unpack(&page->items, NULL, 0, &items), 0);
    text[0] = '\0';
    for (size_t i = 0; i < mu_value_count(items) && used + 64 < sizeof text; i++) {
        const mu_value *item = mu_value_at(items, i);
        const char *name = "(bytes)";
        size_t size;

        (void)mu_value_get_string(mu_value_find(item, "key"), &name, &size);
        assert_null(mu_value_find(item, "value"));
        used += (size_t)snprintf(text + used, sizeof text - used, "%s ", name);
    }
    *ret_more = page->more;
    mu_value_free(items);
    return text;
}

static void test_list(void **state)
{
    struct pair p = begin(&mu__store_memory);
    bool more;

    (void)state;
    assert_string_equal(listed(p.w0, "", "", &more), "");
    (void)put(p.w0, "a", "x", ONCE);
    (void)put(p.w0, "a/b", "x", ONCE);
    (void)put(p.w0, "a!/b", "x", ONCE);
    assert_string_equal(listed(p.w0, "a", "", &more), "a/b ");
    (void)put(p.w0, "a/a/c", "x", ONCE);
    (void)put(p.w0, "a/\xff", "x", ONCE);
    assert_string_equal(listed(p.w0, "a", "", &more), "a/a/c a/b (bytes) ");
    assert_false(more);
    assert_string_equal(listed(p.w0, "a", "a/a/c", &more), "a/b (bytes) ");
    assert_string_equal(listed(p.w0, "a/a", "z", &more), "a/a/c ");
    assert_string_equal(listed(p.w0, "b", "", &more), "");
    service_end(p.s);
}

/* Values and revisions, in pages of so many items, or of 1 MiB. */
static void test_pages(void **state)
{
    struct pair p = begin(&mu__store_memory);
    static char value[COORD_PAGE_BYTES / 2];
    const struct mu__key_listed *page;
    mu_value *items = NULL;
    const void *data;
    size_t size;
    int64_t revision;
    char key[32];
    bool more;

    (void)state;
    for (unsigned i = 0; i <= COORD_PAGE_ITEMS; i++) {
        (void)snprintf(key, sizeof key, "d/%05u", i);
        (void)put(p.w0, key, "x", ONCE);
    }
    (void)listed(p.w0, "d", "", &more);
    assert_true(more);
    (void)snprintf(key, sizeof key, "d/%05u", COORD_PAGE_ITEMS - 1);
    assert_int_equal(strlen(listed(p.w0, "d", key, &more)), 8);
    assert_false(more);
    for (unsigned i = 0; i < 3; i++) {
        (void)snprintf(key, sizeof key, "large/%u", i);
        (void)put_sized(p.w0, key, value, sizeof value, ONCE, 0);
    }
    page = (const void *)service_answer(p.w1, MU__KEY_LISTED,
                                        list(p.w1, "large", "", false))->msg->body;
    assert_true(page->more);
    assert_int_equal(mu__value_unpack(&page->items, NULL, 0, &items), 0);
    assert_int_equal(mu_value_count(items), 1);
    assert_int_equal(mu_value_get_bytes(mu_value_find(mu_value_at(items, 0), "value"),
                                        &data, &size), 0);
    assert_int_equal(size, sizeof value);
    assert_int_equal(mu_value_get_int(mu_value_find(mu_value_at(items, 0), "revision"),
                                      &revision), 0);
    assert_int_equal(revision, COORD_PAGE_ITEMS + 2);
    mu_value_free(items);
    service_end(p.s);
}

/* ---- Watches ---- */

static void test_watch(void **state)
{
    struct pair p = begin(&mu__store_memory);

    (void)state;
    (void)put(p.w1, "a", "1", ONCE);
    (void)put(p.w1, "a/b", "2", ONCE);
    (void)watch(p.w0, "a", false);
    (void)watch(p.w0, "a", true);
    (void)watch(p.w0, "z", false);
    expect_said(p.w0, "[    0] key_event token=2 key=\"a\" value=\"1\" revision=1\n"
                      "[    0] key_event token=2 complete=yes\n"
                      "[    0] key_event token=3 key=\"a/b\" value=\"2\" revision=2\n"
                      "[    0] key_event token=3 complete=yes\n"
                      "[    0] key_event token=4 complete=yes\n");
    (void)put(p.w1, "a", "3", OVER);
    (void)put(p.w1, "a/b/c", "4", OVER);
    (void)put(p.w1, "ab", "5", OVER);
    (void)delete(p.w1, "a");
    (void)increment(p.w1, "z", 1);
    expect_said(p.w0,
        "[    0] key_event token=2 key=\"a\" value=\"3\" revision=3\n"
        "[    0] key_event token=3 key=\"a/b/c\" value=\"4\" revision=4\n"
        "[    0] key_event token=2 key=\"a\" revision=6 deleted=yes\n"
        "[    0] key_event token=3 key=\"a/b\" revision=7 deleted=yes\n"
        "[    0] key_event token=3 key=\"a/b/c\" revision=8 deleted=yes\n"
        "[    0] key_event token=4 key=\"z\" value=\"1\" revision=9\n");
    TELL(p.w0, KEY_UNWATCH, key_unwatch, .token = 3);
    (void)put(p.w1, "a/b", "6", OVER);
    (void)put(p.w1, "a", "7", OVER);
    expect_said(p.w0, "[    0] key_event token=2 key=\"a\" value=\"7\" revision=11\n");
    service_end(p.s);
}

/* Asked again it begins again, whatever it was told before. And it ends with its task,
 * also where the link stays. */
static void test_watch_again(void **state)
{
    struct pair p = begin(&mu__store_memory);
    uint64_t token = watch(p.w0, "a", false);

    (void)state;
    (void)put(p.w1, "a", "1", ONCE);
    (void)service_text(p.w0);
    TELL(p.w0, KEY_WATCH, key_watch, .token = token, .key = mu__view_str("a"));
    (void)put(p.w1, "a", "2", OVER);
    expect_said(p.w0, "[    0] key_event token=2 key=\"a\" value=\"1\" revision=1\n"
                      "[    0] key_event token=2 complete=yes\n"
                      "[    0] key_event token=2 key=\"a\" value=\"2\" revision=2\n");
    (void)get(p.w0, "b", true);
    expect_ok(p.w0, service_leave(p.w0, 0));
    (void)service_text(p.w0);
    (void)put(p.w1, "a", "3", OVER);
    (void)put(p.w1, "b", "3", ONCE);
    expect_said(p.w0, "");
    service_end(p.s);
}

static void test_watch_everything(void **state)
{
    struct pair p = begin(&mu__store_memory);

    (void)state;
    (void)watch(p.w0, "", true);
    (void)put(p.w1, "x/y", "1", ONCE);
    (void)put(p.w1, "x", "2", ONCE);
    expect_said(p.w0, "[    0] key_event token=2 complete=yes\n"
                      "[    0] key_event token=2 key=\"x/y\" value=\"1\" revision=1\n"
                      "[    0] key_event token=2 key=\"x\" value=\"2\" revision=2\n");
    service_end(p.s);
}

/* Whether an event with that key and revision was said among those up to `complete`. */
struct snapshot {
    unsigned count;
    bool complete;
    uint64_t first_revision;    /* of the first key, by its last event */
    uint64_t last_revision;     /* of the last one, by its only event */
    unsigned last_seen;
};

static struct snapshot take_snapshot(struct service_agent *agent, const char *first,
                                     const char *last)
{
    struct snapshot found = {.count = 0};
    const struct service_said *said;

    while ((said = service_next(agent, MU__KEY_EVENT)) != NULL) {
        const struct mu__key_event *event = (const void *)said->msg->body;

        if (event->complete) {
            found.complete = true;
            continue;
        }
        assert_false(found.complete);
        found.count++;
        if (mu__view_is(event->key, first))
            found.first_revision = event->revision;
        if (mu__view_is(event->key, last)) {
            found.last_revision = event->revision;
            found.last_seen++;
        }
    }
    return found;
}

/* What there is at the begin comes in pages, a millisecond between them. Changes of what
 * was told are told, and of what will be are found. */
static void test_watch_in_pages(void **state)
{
    struct pair p = begin(&mu__store_memory);
    unsigned count = 3 * COORD_SNAPSHOT_ITEMS;
    struct snapshot found;
    char key[32];

    (void)state;
    for (unsigned i = 0; i < count; i++) {
        (void)snprintf(key, sizeof key, "d/%05u", i);
        (void)put(p.w1, key, "x", ONCE);
    }
    (void)watch(p.w0, "d", true);
    found = take_snapshot(p.w0, "d/00000", key);
    assert_int_equal(found.count, COORD_SNAPSHOT_ITEMS);
    (void)put(p.w1, "d/00000", "y", OVER);
    (void)put(p.w1, key, "y", OVER);
    (void)put(p.w1, "e", "y", OVER);
    found = take_snapshot(p.w0, "d/00000", key);
    assert_int_equal(found.count, 1);
    assert_int_equal(found.first_revision, count + 1);
    service_run(p.s, 1);
    assert_int_equal(take_snapshot(p.w0, "", "").count, COORD_SNAPSHOT_ITEMS);
    service_run(p.s, 1);
    found = take_snapshot(p.w0, "", key);
    assert_int_equal(found.count, COORD_SNAPSHOT_ITEMS);
    assert_true(found.complete);
    assert_int_equal(found.last_revision, count + 2);
    assert_int_equal(found.last_seen, 1);
    (void)put(p.w1, key, "z", OVER);
    assert_int_equal(take_snapshot(p.w0, "", key).last_revision, count + 4);
    service_end(p.s);
}

/* Two at a time, one of which goes while its pages come. */
static void test_watches_in_pages_end(void **state)
{
    struct pair p = begin(&mu__store_memory);
    char key[32];

    (void)state;
    for (unsigned i = 0; i < 3 * COORD_SNAPSHOT_ITEMS; i++) {
        (void)snprintf(key, sizeof key, "d/%05u", i);
        (void)put(p.w1, key, "x", ONCE);
    }
    (void)watch(p.w0, "d", true);
    (void)watch(p.w0, "d", true);
    (void)watch(p.w1, "", true);
    TELL(p.w0, KEY_UNWATCH, key_unwatch, .token = 3);
    service_run(p.s, 1);
    service_link_down(p.w1, 0, "cut");
    service_run(p.s, 10);
    assert_int_equal(take_snapshot(p.w0, "", "").count, 4 * COORD_SNAPSHOT_ITEMS);
    service_end(p.s);
}

/* ---- Leases ---- */

static void test_lease_ends(void **state)
{
    struct pair p = begin(&mu__store_memory);

    (void)state;
    (void)put(p.w0, "a", "x", MU__PUT_LEASE);
    (void)put(p.w0, "b", "x", MU__PUT_LEASE);
    (void)put(p.w0, "c", "x", MU__PUT_LEASE);
    (void)put(p.w0, "d", "5", MU__PUT_LEASE);
    (void)put(p.w0, "e", "x", ONCE);
    (void)put(p.w1, "b", "y", OVER);                    /* nobody's lease any more */
    (void)put(p.w1, "c", "y", OVER | MU__PUT_LEASE);
    (void)increment(p.w1, "d", 1);                      /* stays w0's */
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
static void test_lease_of_the_dead(void **state)
{
    struct pair p = begin(&mu__store_memory);

    (void)state;
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
static void test_leases_over_lives(void **state)
{
    struct pair p = begin(&mu__store_journal);

    (void)state;
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

/* ---- Reads while the store is not certainly held ---- */

static bool readable;

static bool may_read_if(struct mu__store *store, struct mu__ctx *ctx)
{
    return readable && mu__store_memory.open != NULL && store != NULL && ctx != NULL;
}

static struct mu__store_ops doubtful_ops;

/* The memory's store, which is not certain of itself. */
static int doubtful_open(const struct mu__store_config *config, mu_error *ret_error,
                         struct mu__store **ret_store)
{
    int rv = mu__store_memory.open(config, ret_error, ret_store);

    if (rv != 0)
        return rv;
    doubtful_ops = *(*ret_store)->ops;
    doubtful_ops.may_read = may_read_if;
    (*ret_store)->ops = &doubtful_ops;
    return 0;
}

static const struct mu__store_kind doubtful = {.name = "doubtful", .open = doubtful_open};

static void test_reads_wait(void **state)
{
    struct pair p = begin(&doubtful);

    (void)state;
    readable = false;
    (void)put(p.w1, "a", "x", ONCE);
    (void)get(p.w0, "a", false);
    (void)get(p.w0, "b", false);
    (void)get(p.w0, "a", false);
    (void)watch(p.w0, "a", false);
    TELL(p.w0, KEY_CANCEL, key_cancel, .token = 4);
    service_run_until(p.s, 75);
    expect_said(p.w0, "");
    (void)get(p.w1, "a", false);
    service_link_down(p.w1, 0, "cut");
    readable = true;
    (void)get(p.w0, "a", true);         /* behind the others */
    service_run_until(p.s, 200);
    expect_said(p.w0,
        "[  100] key_done token=2 revision=1 value=\"x\"\n"
        "[  100] key_done token=3 code=5 message=\"key \"b\" is not there\"\n"
        "[  100] key_event token=5 key=\"a\" value=\"x\" revision=1\n"
        "[  100] key_event token=5 complete=yes\n"
        "[  100] key_done token=6 revision=1 value=\"x\"\n");
    (void)get(p.w0, "a", false);
    expect_said(p.w0, "[  200] key_done token=7 revision=1 value=\"x\"\n");
    service_end(p.s);
}

static void test_reads_that_wait_are_bounded(void **state)
{
    struct pair p = begin(&doubtful);

    (void)state;
    readable = false;
    for (unsigned i = 0; i < COORD_HELD_MAX; i++)
        (void)get(p.w0, "a", false);
    expect_said(p.w0, "");
    (void)get(p.w1, "a", false);
    assert_non_null(strstr(service_text(p.w1), "reads wait until it is certain that "
                           "/job:chief/task:0 holds its store"));
    service_end(p.s);
}

/* ---- A store that is slow ---- */

static bool is_slow;
static struct mu__store_ops slow_ops;
static const struct mu__store_ops *quick_ops;

static void commit_later(struct mu__store *store, struct mu__ctx *ctx, uint64_t revision,
                         uint64_t sequence)
{
    if (!is_slow)
        quick_ops->commit(store, ctx, revision, sequence);
}

/* While it is slow no commit of the memory's store is safe, and it is not certain of
 * itself. */
static int slow_open(const struct mu__store_config *config, mu_error *ret_error,
                     struct mu__store **ret_store)
{
    int rv = mu__store_memory.open(config, ret_error, ret_store);

    if (rv != 0)
        return rv;
    quick_ops = (*ret_store)->ops;
    slow_ops = *quick_ops;
    slow_ops.commit = commit_later;
    slow_ops.may_read = may_read_if;
    (*ret_store)->ops = &slow_ops;
    return 0;
}

static const struct mu__store_kind slow = {
    .name = "slow", .lasting = true, .open = slow_open};

static struct pair begin_slow(void)
{
    is_slow = false;
    readable = true;
    return begin(&slow);
}

/* That a key is there is what the store has, too: a host that may have lost it says so
 * only when it has written something since. */
static void test_refusals_wait(void **state)
{
    struct pair p = begin_slow();

    (void)state;
    (void)put(p.w0, "a", "x", ONCE);
    (void)put(p.w1, "a", "y", ONCE);
    expect_said(p.w1, "[    0] key_done token=2 code=6 revision=1 message=\"key \"a\" is "
                      "there already\"\n");
    readable = false;
    is_slow = true;
    (void)put(p.w1, "a", "y", ONCE);
    (void)put_sized(p.w1, "a", "z", 1, COMPARE, 7);
    (void)increment(p.w1, "a", 1);
    service_run_until(p.s, 1000);
    expect_said(p.w1, "");
    is_slow = false;
    (void)put(p.w0, "b", "x", ONCE);
    expect_said(p.w1,
        "[ 1000] key_done token=3 code=6 revision=1 message=\"key \"a\" is there "
        "already\"\n"
        "[ 1000] key_done token=4 code=9 revision=1 message=\"key \"a\" has revision 1, "
        "expected 7\"\n"
        "[ 1000] key_done token=5 code=9 message=\"key \"a\" has no decimal number of 64 "
        "bits to increment\"\n");
    service_end(p.s);
}

/* No answer is lost: where too many wait, nothing more is taken, and that is said. */
static void test_answers_that_wait_are_bounded(void **state)
{
    struct pair p = begin_slow();

    (void)state;
    (void)service_text(p.w0);
    is_slow = true;
    for (unsigned i = 0; i < COORD_LATER_ASKS; i++)
        (void)put(p.w0, "a", "x", OVER);
    expect_said(p.w0, "");
    (void)put(p.w1, "b", "x", ONCE);
    (void)get(p.w1, "a", false);
    (void)watch(p.w1, "a", false);
    (void)list(p.w1, "a", "", false);
#define WORDS "131072 answers wait for the store of /job:chief/task:0: no more is taken"
    expect_said(p.w1, "[    0] key_done token=2 code=8 message=\"" WORDS "\"\n"
                      "[    0] key_done token=3 code=8 message=\"" WORDS "\"\n"
                      "[    0] key_event token=4 code=8 message=\"" WORDS "\"\n"
                      "[    0] key_listed token=5 code=8 message=\"" WORDS "\"\n");
#undef WORDS
    is_slow = false;
    service_run_until(p.s, 1000);
    assert_int_equal(service_state(p.s, 0)->later_count, COORD_LATER_ASKS);
    service_end(p.s);
}

/* A watch that would miss changes is over, and says so. */
static void test_watch_of_too_many_changes(void **state)
{
    struct pair p = begin_slow();
    char key[32];

    (void)state;
#ifdef MUSTER_TINY
    skip();     /* there may not be so many keys */
#endif
    (void)watch(p.w1, "d/0", false);
    (void)watch(p.w1, "d", true);
    (void)service_text(p.w1);
    for (unsigned i = 0; i <= COORD_LATER_EVENTS; i++) {
        (void)snprintf(key, sizeof key, "d/%u", i);
        (void)put(p.w0, key, "", ONCE);
        (void)service_next(p.w0, 0);
        (void)service_text(p.w1);
    }
    is_slow = true;
    (void)delete(p.w0, "d");
    expect_said(p.w1, "[    0] key_event token=3 code=8 message=\"no memory for what a "
                      "watch is told, or too much waits for the store: it is over\"\n");
    service_end(p.s);
}

/* ---- Preemption ---- */

/* The key is a notice. */
static void test_preemption_key(void **state)
{
    struct pair p = begin(&mu__store_memory);
    const struct service_said *said;

    (void)state;
    (void)put(p.w0, MU__KEY_PREEMPTION, "", ONCE);
    said = service_next(p.w1, MU__PREEMPT_ASK);
    assert_non_null(said);
    assert_true(mu__view_is(((const struct mu__preempt_ask *)(const void *)said->msg
                             ->body)->task, "/job:worker/task:0"));
    service_end(p.s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_put),
        cmocka_unit_test(test_compare),
        cmocka_unit_test(test_bytes),
        cmocka_unit_test(test_bad_keys),
        cmocka_unit_test(test_own_keys),
        cmocka_unit_test(test_not_registered),
        cmocka_unit_test(test_increment),
        cmocka_unit_test(test_what_is_no_number),
        cmocka_unit_test(test_delete),
        cmocka_unit_test(test_once),
        cmocka_unit_test(test_once_over_lives),
        cmocka_unit_test(test_memory_forgets),
        cmocka_unit_test(test_answers_that_nobody_has),
        cmocka_unit_test(test_asked_by_the_lost),
        cmocka_unit_test(test_once_when_all_are_lost),
        cmocka_unit_test(test_once_for_who_is_back),
        cmocka_unit_test(test_answers_wait_for_the_store),
        cmocka_unit_test(test_a_full_disk),
        cmocka_unit_test(test_rewrite),
        cmocka_unit_test(test_revisions_ascend),
        cmocka_unit_test(test_gets_wait),
        cmocka_unit_test(test_who_waits_goes),
        cmocka_unit_test(test_waits_are_bounded),
        cmocka_unit_test(test_list),
        cmocka_unit_test(test_pages),
        cmocka_unit_test(test_watch),
        cmocka_unit_test(test_watch_again),
        cmocka_unit_test(test_watch_everything),
        cmocka_unit_test(test_watch_in_pages),
        cmocka_unit_test(test_watches_in_pages_end),
        cmocka_unit_test(test_lease_ends),
        cmocka_unit_test(test_lease_of_the_dead),
        cmocka_unit_test(test_leases_over_lives),
        cmocka_unit_test(test_reads_wait),
        cmocka_unit_test(test_reads_that_wait_are_bounded),
        cmocka_unit_test(test_refusals_wait),
        cmocka_unit_test(test_answers_that_wait_are_bounded),
        cmocka_unit_test(test_watch_of_too_many_changes),
        cmocka_unit_test(test_preemption_key),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
