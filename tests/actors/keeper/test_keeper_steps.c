/* The keeper's file is read and written anew in steps: what is acknowledged meanwhile is
 * kept, and calls go on. */
#include "tests/support/test.h"
#include "tests/support/users/kept_net.h"

enum {
    REWRITE_BYTES = 1 << 14, /* in steps of 512 bytes, read in steps of 1024 */
    STEPS_MIN = 10,
    STEPS_MAX = 1000,
    LATE_MS_MAX = 20,
    LONG_MS = 1000
};

static struct kept_net *begin_net(uint64_t rewrite_bytes)
{
    void *state = NULL;
    struct kept_net *f;

    assert_int_equal(kept_net_set_up(&state), 0);
    f = state;
    net_crash(f->chief);
    f->rewrite_bytes = rewrite_bytes;
    net_start(f->chief);
    kept_net_own(f, 1);
    net_settle(kept_net_net(f));
    return f;
}

static void end_net(struct kept_net *f)
{
    void *state = f;

    (void)kept_net_tear_down(&state);
}

/* A call that is answered at once, or when the new content is not so late any more;
 * returns whether it was at once. */
static bool add_one(struct kept_net *f, uint64_t *calls)
{
    bool is_at_once;

    kept_net_ask(f, "add", 1, ++*calls);
    is_at_once = kept_net_answer(f, *calls) != NULL;
    for (int i = 0; i < LATE_MS_MAX && kept_net_answer(f, *calls) == NULL; i++)
        net_run_for(kept_net_net(f), 1);
    kept_net_expect(f, *calls, (int64_t)*calls);
    return is_at_once;
}

static void add_until_renewed(struct kept_net *f, uint64_t *calls)
{
    while (!f->storage->renews && *calls < STEPS_MAX) {
        (void)add_one(f, calls);
        net_run_for(kept_net_net(f), 1);
    }
    assert_true(f->storage->renews);
}

static void restart_keeper(struct kept_net *f)
{
    net_crash(f->chief);
    sim_storage_crash(f->storage);
    net_start(f->chief);
}

/* A later life, of another process, has it. */
static void expect_kept(struct kept_net *f, uint64_t token, int64_t sum)
{
    net_crash(kept_net_node(f, 1));
    kept_net_own(f, 2);
    net_run_for(kept_net_net(f), LONG_MS);
    kept_net_ask(f, "get", 0, token);
    net_run_for(kept_net_net(f), LONG_MS);
    kept_net_expect(f, token, sum);
}

/* ---- written anew ---- */

/* True: it was written before. */
static bool die_after_steps(unsigned steps)
{
    struct kept_net *f = begin_net(REWRITE_BYTES);
    uint64_t calls = 0;
    unsigned at_once = 0;
    uint64_t replaced;
    bool is_over;

    add_until_renewed(f, &calls);
    replaced = f->storage->counts[SIM_STORAGE_REPLACE];
    for (unsigned i = 0; i < steps; i++) {
        net_run_for(kept_net_net(f), 1);
        at_once += add_one(f, &calls);
    }
    assert_true(at_once >= steps / 2);
    is_over = f->storage->counts[SIM_STORAGE_REPLACE] > replaced;
    restart_keeper(f);
    expect_kept(f, calls + 1, (int64_t)calls);
    end_net(f);
    return is_over;
}

TEST(test_a_keeper_that_dies_after_any_step)
{
    unsigned steps = 0;

    while (!die_after_steps(steps))
        assert_true(++steps < STEPS_MAX);
    assert_true(steps > STEPS_MIN);
}

/* What has no answer is sent again. True: it was written before. */
static bool die_in_operation(unsigned operations)
{
    struct kept_net *f = begin_net(REWRITE_BYTES);
    uint64_t calls = 0;
    uint64_t replaced;
    bool is_over;

    add_until_renewed(f, &calls);
    replaced = f->storage->counts[SIM_STORAGE_REPLACE];
    sim_storage_die_after(f->storage, operations);
    while (!f->storage->dead && f->storage->counts[SIM_STORAGE_REPLACE] == replaced) {
        net_run_for(kept_net_net(f), 1);
        kept_net_ask(f, "add", 1, ++calls);
    }
    is_over = !f->storage->dead;
    restart_keeper(f);
    net_run_for(kept_net_net(f), LONG_MS);
    expect_kept(f, calls + 1, (int64_t)calls);
    end_net(f);
    return is_over;
}

TEST(test_a_keeper_that_dies_in_any_write)
{
    unsigned operations = 0;

    while (!die_in_operation(operations))
        assert_true(++operations < STEPS_MAX);
    assert_true(operations > STEPS_MIN);
}

TEST(test_what_cannot_be_written_anew_stays)
{
    struct kept_net *f = begin_net(REWRITE_BYTES);
    uint64_t calls = 0;
    size_t bytes;

    sim_storage_fail(f->storage, SIM_STORAGE_REPLACE, 1, -MU_EEXHAUSTED);
    add_until_renewed(f, &calls);
    net_run_for(kept_net_net(f), LONG_MS);
    assert_false(f->storage->renews);
    assert_non_null(strstr(kept_net_net(f)->warning, "could not be written anew"));
    (void)add_one(f, &calls);
    bytes = f->storage->size;
    add_until_renewed(f, &calls); /* once it has doubled again */
    assert_true(f->storage->size > 2 * bytes - bytes / 2);
    net_run_for(kept_net_net(f), LONG_MS);
    restart_keeper(f);
    expect_kept(f, calls + 1, (int64_t)calls);
    end_net(f);
}

/* What could not be appended is in the next file, and acknowledged with it. */
TEST(test_a_file_that_lacks_something)
{
    struct kept_net *f = begin_net(REWRITE_BYTES);
    uint64_t calls = 0;

    for (int i = 0; i < 5; i++)
        (void)add_one(f, &calls);
    sim_storage_fail(f->storage, SIM_STORAGE_APPEND, 1, -MU_EEXHAUSTED);
    kept_net_ask(f, "add", 1, ++calls);
    assert_null(kept_net_answer(f, calls));
    net_run_for(kept_net_net(f), LONG_MS);
    kept_net_expect(f, calls, (int64_t)calls);
    restart_keeper(f);
    expect_kept(f, calls + 1, (int64_t)calls);
    end_net(f);
}

/* The same while it is written anew. */
TEST(test_a_file_that_lacks_something_in_the_middle)
{
    for (unsigned steps = 0; steps < 2 * STEPS_MIN; steps++) {
        struct kept_net *f = begin_net(REWRITE_BYTES);
        uint64_t calls = 0;

        add_until_renewed(f, &calls);
        net_run_for(kept_net_net(f), steps);
        sim_storage_fail(f->storage, SIM_STORAGE_APPEND, 1, -MU_EEXHAUSTED);
        for (int i = 0; i < 3; i++)
            kept_net_ask(f, "add", 1, ++calls);
        net_run_for(kept_net_net(f), LONG_MS);
        kept_net_expect(f, calls, (int64_t)calls);
        restart_keeper(f);
        expect_kept(f, calls + 1, (int64_t)calls);
        end_net(f);
    }
}

/* ---- read ---- */

TEST(test_calls_wait_until_the_file_is_read)
{
    struct kept_net *f = begin_net(REWRITE_BYTES);
    uint64_t calls = 0;

    while (f->storage->size < REWRITE_BYTES / 2)
        (void)add_one(f, &calls);
    restart_keeper(f);
    net_crash(kept_net_node(f, 1));
    kept_net_own(f, 2);
    kept_net_ask(f, "add", 1, ++calls);
    assert_null(kept_net_answer(f, calls));
    net_run_for(kept_net_net(f), LONG_MS);
    kept_net_expect(f, calls, (int64_t)calls);
    assert_int_equal(f->why.code, 0);
    end_net(f);
}

/* In a part that is not read at once. */
TEST(test_damage_behind_the_first_step)
{
    struct kept_net *f = begin_net(REWRITE_BYTES);
    uint64_t calls = 0;

    while (f->storage->size < REWRITE_BYTES / 2)
        (void)add_one(f, &calls);
    net_crash(f->chief);
    sim_storage_crash(f->storage);
    f->storage->content[f->storage->size / 2] ^= 0x10;
    net_start(f->chief);
    net_crash(kept_net_node(f, 1));
    kept_net_own(f, 2);
    net_run_for(kept_net_net(f), LONG_MS);
    assert_int_equal(f->why.code, -MU_EDATALOSS);
    assert_non_null(strstr(f->why.message, "actors.kept"));
    end_net(f);
}

/* A disk that does not read for a while. */
TEST(test_a_file_that_cannot_be_read_is_read_again)
{
    struct kept_net *f = begin_net(4 << 20); /* read in steps of 256 KiB */
    uint64_t calls = 0;

    while (f->storage->size < (3 << 19)) { /* more than is loaded at once */
        f->users->notes_count = 0;
        (void)add_one(f, &calls);
    }
    restart_keeper(f);
    net_crash(kept_net_node(f, 1));
    kept_net_own(f, 2);
    sim_storage_fail(f->storage, SIM_STORAGE_LOAD, 2, -MU_EUNAVAILABLE);
    net_run_for(kept_net_net(f), LONG_MS);
    assert_non_null(strstr(kept_net_net(f)->warning, "cannot be used"));
    kept_net_ask(f, "get", 0, calls + 1);
    kept_net_expect(f, calls + 1, (int64_t)calls);
    end_net(f);
}

TEST_PROGRAM()
