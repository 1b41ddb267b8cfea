/* Keys and the store under them: what is said waits until it is safe, or certain. */
#include "tests/support/service/keys.h"

/* ---- The store ---- */

/* An answer waits until what was written is safe; when it cannot be, there is none, and
 * who asks again gets the answer of what counted. */
TEST(test_answers_wait_for_the_store)
{
    struct pair p = begin(&mu__store_journal);

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
TEST(test_a_full_disk)
{
    struct pair p = begin(&mu__store_journal);

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

/* A disk that fills up: changes are refused at once and in words, reads go on, deletions
 * make room by having the file written anew, and then changes go on. Nothing that was
 * answered is lost when the host dies in between. */
TEST(test_a_full_disk_stops_changes_alone)
{
    struct pair p = begin(&mu__store_journal);
    struct sim_storage *storage = p.s->hosts[0].storage;
    static char value[4096];
    char name[16];
    unsigned keys = 0;
    size_t before;

    memset(value, 'x', sizeof value);
    sim_storage_limit(storage, 1 << 20);
    for (const char *said = ""; strstr(said, "code=") == NULL; keys++) {
        (void)snprintf(name, sizeof name, "k%u", keys);
        (void)service_text(p.w0);
        (void)put_sized(p.w0, name, value, sizeof value, 0, 0);
        said = service_text(p.w0);
        assert_true(keys < 1000);
        if (strstr(said, "code=") != NULL)
            assert_non_null(strstr(said, "the store is full: "));
    }
    assert_true(keys > 60);
    for (unsigned i = 0; i < 100; i++)
        (void)increment(p.w1, "n", 1);
    assert_int_equal(strncmp(value_of(p.w1, "k0"), value, 64), 0);
    (void)increment(p.w1, "n", 1);
    assert_non_null(strstr(service_text(p.w1), "the store is full: "));
    before = storage->size;
    for (unsigned i = 0; i < 40; i++) {
        (void)snprintf(name, sizeof name, "k%u", i);
        (void)delete (p.w0, name);
        assert_null(strstr(service_text(p.w0), "code="));
    }
    service_run(p.s, 2000);
    assert_true(storage->size < before / 4 * 3);
    (void)put(p.w0, "after", "y", 0);
    assert_null(strstr(service_text(p.w0), "code="));
    assert_int_equal(service_state(p.s, 0)->epoch, 1);
    service_crash(p.s, 0);
    service_start(p.s, 0);
    service_link_up(p.w0, 0);
    (void)service_register(p.w0, false, 0);
    (void)service_text(p.w0);
    expect_key(p.w0, "after", "y");
    assert_int_equal(strncmp(value_of(p.w0, "k50"), value, 64), 0);
    service_end(p.s);
}

static void fill_the_disk(struct pair *p, struct sim_storage *storage)
{
    static char value[4096];
    const char *said = "";
    char name[16];

    memset(value, 'x', sizeof value);
    sim_storage_limit(storage, 1 << 20);
    for (unsigned keys = 0; strstr(said, "the store is full: ") == NULL; keys++) {
        assert_true(keys < 1000);
        (void)snprintf(name, sizeof name, "k%u", keys);
        (void)service_text(p->w0);
        (void)put_sized(p->w0, name, value, sizeof value, 0, 0);
        said = service_text(p->w0);
    }
}

/* One barrier of two tasks; what the first one was told. */
static const char *meet(struct pair *p, const char *name)
{
    (void)service_text(p->w0);
    TELL(p->w0, BARRIER_ARRIVE, barrier_arrive, .token = ++p->w0->token,
         .name = mu__view_str(name), .tasks = mu__view_str("worker:0-1"));
    TELL(p->w1, BARRIER_ARRIVE, barrier_arrive, .token = ++p->w1->token,
         .name = mu__view_str(name), .tasks = mu__view_str("worker:0-1"));
    service_run(p->s, 1);
    (void)service_text(p->w1);
    return service_text(p->w0);
}

/* Barriers need little of the disk, and go on when it is full, as long as the room lasts
 * that is kept for them; what they came to outlives the host. */
TEST(test_barriers_go_on_with_a_full_disk)
{
    enum { BARRIERS = 2000 };
    struct pair p = begin(&mu__store_journal);
    char name[16];

    p.w0->beats = p.w1->beats = true;
    fill_the_disk(&p, p.s->hosts[0].storage);
    for (unsigned i = 0; i < BARRIERS; i++) {
        const char *said;

        (void)snprintf(name, sizeof name, "b%u", i);
        said = meet(&p, name);
        if (strstr(said, "barrier_passed token=") == NULL ||
            strstr(said, "code=") != NULL)
            fail_msg("%s: %s", name, said);
    }
    (void)increment(p.w1, "n", 1);
    assert_non_null(strstr(service_text(p.w1), "the store is full: "));
    assert_int_equal(service_state(p.s, 0)->epoch, 1);
    service_crash(p.s, 0);
    service_start(p.s, 0);
    service_link_up(p.w0, 0);
    (void)service_register(p.w0, false, 0);
    (void)service_text(p.w0);
    TELL(p.w0, BARRIER_ARRIVE, barrier_arrive, .token = ++p.w0->token,
         .name = mu__view_str(name), .tasks = mu__view_str("worker:0-1"));
    service_run(p.s, 1);
    assert_non_null(strstr(service_text(p.w0), "barrier_passed token="));
    service_end(p.s);
}

/* A change that is refused for want of room takes none, however many are refused: it has
 * no result that is kept, and is tried again when it is asked again. */
TEST(test_refusals_take_no_room)
{
    enum { FIRST = 100, REFUSED = 50 };
    struct pair p = begin(&mu__store_journal);
    struct coord_keys *keys = service_state(p.s, 0)->keys;
    uint64_t before;

    fill_the_disk(&p, p.s->hosts[0].storage);
    before = mu__results_count(keys->results);
    for (uint64_t i = 0; i < REFUSED; i++) {
        (void)service_text(p.w1);
        tell_increment(p.w1, FIRST + i, FIRST);
        assert_non_null(strstr(service_text(p.w1), "the store is full: "));
    }
    assert_int_equal(mu__results_count(keys->results), before);
    (void)delete (p.w0, "k0");
    (void)delete (p.w0, "k1");
    service_run(p.s, 2000);
    (void)service_text(p.w1);
    tell_increment(p.w1, FIRST, FIRST);
    assert_non_null(strstr(service_text(p.w1), "number=1\n"));
    service_end(p.s);
}

/* A file that cannot be read takes the service away, and agents hear why. */
TEST(test_agents_hear_of_a_foreign_file)
{
    static const char notes[] = "somebody's notes";
    struct pair p = begin(&mu__store_journal);
    const char *said;

    service_crash(p.s, 0);
    sim_storage_set(p.s->hosts[0].storage, notes, sizeof notes);
    (void)service_text(p.w0);
    p.w0->notes_hosts = true;
    service_start(p.s, 0);
    service_run(p.s, 1500);
    service_link_up(p.w0, 0);
    said = service_text(p.w0);
    if (strstr(said, "its store is not held yet: ") == NULL ||
        strstr(said, "expected a journal of muster") == NULL)
        fail_msg("%s", said);
    assert_int_equal(p.s->hosts[0].storage->size, sizeof notes);
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
TEST(test_rewrite)
{
    struct pair p = begin(&mu__store_journal);
    static char large[10000];
    size_t most = 0;

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
TEST(test_revisions_ascend)
{
    struct pair p = begin(&mu__store_journal);
    static char large[MU__KEY_VALUE_MAX];
    uint64_t before;

    for (unsigned i = 0; i < 3; i++)
        (void)put_sized(p.w0, "large", large, sizeof large, OVER, 0);
    (void)delete (p.w0, "large");
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

TEST(test_reads_wait)
{
    struct pair p = begin(&doubtful);

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
    (void)get(p.w0, "a", true); /* behind the others */
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

TEST(test_reads_that_wait_are_bounded)
{
    struct pair p = begin(&doubtful);

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
TEST(test_refusals_wait)
{
    struct pair p = begin_slow();

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
    expect_said(
        p.w1,
        "[ 1000] key_done token=3 code=6 revision=1 message=\"key \"a\" is there "
        "already\"\n"
        "[ 1000] key_done token=4 code=9 revision=1 message=\"key \"a\" has revision 1, "
        "expected 7\"\n"
        "[ 1000] key_done token=5 code=9 message=\"key \"a\" has no decimal number of 64 "
        "bits to increment\"\n");
    service_end(p.s);
}

/* No answer is lost: where too many wait, nothing more is taken, and that is said. */
TEST(test_answers_that_wait_are_bounded)
{
    struct pair p = begin_slow();

    (void)service_text(p.w0);
    is_slow = true;
    for (unsigned i = 0; i < COORD_LATER_REQUESTS; i++)
        (void)put(p.w0, "a", "x", OVER);
    expect_said(p.w0, "");
    (void)put(p.w1, "b", "x", ONCE);
    (void)get(p.w1, "a", false);
    (void)watch(p.w1, "a", false);
    (void)list(p.w1, "a", "", false);
#define WORDS "rejected: 131072 answers wait already for the store of /job:chief/task:0"
    expect_said(p.w1, "[    0] key_done token=2 code=8 message=\"" WORDS "\"\n"
                      "[    0] key_done token=3 code=8 message=\"" WORDS "\"\n"
                      "[    0] key_event token=4 code=8 message=\"" WORDS "\"\n"
                      "[    0] key_listed token=5 code=8 message=\"" WORDS "\"\n");
#undef WORDS
    is_slow = false;
    service_run_until(p.s, 1000);
    assert_int_equal(service_state(p.s, 0)->commits.later_count, COORD_LATER_REQUESTS);
    service_end(p.s);
}

/* A watch that would miss changes is over, and says so. */
TEST(test_watch_of_too_many_changes)
{
    struct pair p = begin_slow();
    char key[32];

#ifdef MUSTER_TINY
    skip(); /* there may not be so many keys */
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
    (void)delete (p.w0, "d");
    expect_said(p.w1, "[    0] key_event token=3 code=8 message=\"watch closed: out of "
                      "memory, or too many events wait for the store\"\n");
    service_end(p.s);
}

TEST_PROGRAM()
