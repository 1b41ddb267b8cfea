/* A journal that is rewritten, cannot be written, or has any history. */
#include "tests/support/journal_file.h"
#include "tests/support/test.h"

/* ---- What cannot be written ---- */

TEST_ON(test_messages_that_are_refused, struct fixture *f, set_up, tear_down)
{
    struct mu__msg *msg = make(&f->pool, 4);
    struct mu__journal_scheduled *body = (void *)msg->body;

    open_and_expect(f, 0);
    append(f, 1);
    body->name = (struct mu__view){blob, MU__CLOSURE_NAME_MAX + 1};
    assert_int_equal(mu__journal_append(f->journal, msg, &f->error), -MU_ERANGE);
    assert_non_null(strstr(f->error.message, "journal_scheduled"));
    msg->kind = MU__KINDS_END - 1;
    assert_int_equal(mu__journal_append(f->journal, msg, &f->error), -MU_EINVALID);
    mu__pool_put(&f->pool, msg);
    append(f, 2);
    flush(f);
    reopen(f);
}

TEST_ON(test_failed_append_and_flush, struct fixture *f, set_up, tear_down)
{
    uint64_t bytes;

    open_and_expect(f, 0);
    append(f, 1);
    bytes = mu__journal_bytes(f->journal);
    sim_storage_fail(f->storage, SIM_STORAGE_APPEND, 1, -MU_EEXHAUSTED);
    assert_int_equal(try_append(f, 2), -MU_EEXHAUSTED);
    assert_int_equal(f->error.code, -MU_EEXHAUSTED);
    assert_int_equal(mu__journal_bytes(f->journal), bytes);
    append(f, 3);
    sim_storage_fail(f->storage, SIM_STORAGE_FLUSH, 2, -MU_EEXHAUSTED);
    for (int i = 0; i < 2; i++)
        assert_int_equal(mu__journal_flush(f->journal, &f->error), -MU_EEXHAUSTED);
    append(f, 4);
    flush(f);
    reopen(f);
}

/* ---- Rewrites ---- */

/* The messages of `ids` become the new content; what it returns is the commit's. */
static int rewrite(struct fixture *f, const struct ids *ids)
{
    mu__journal_rewrite_begin(f->journal);
    for (size_t i = 0; i < ids->count; i++)
        assert_int_equal(try_append(f, ids->at[i]), 0);
    return mu__journal_rewrite_commit(f->journal, &f->error);
}

TEST_ON(test_rewrite, struct fixture *f, set_up, tear_down)
{
    static struct ids many;

    for (many.count = 0; many.count < 2000; many.count++)
        many.at[many.count] = many.count;
    write_some(f, 20);
    open_and_expect(f, 20);
    append(f, 21);
    assert_int_equal(rewrite(f, &many), 0);
    f->wanted = many;
    assert_int_equal(mu__journal_bytes(f->journal), f->storage->flushed);
    reopen(f);
    append(f, 22);
    flush(f);
    reopen(f);
    assert_int_equal(rewrite(f, &(struct ids){.count = 0}), 0);
    f->wanted.count = 0;
    assert_int_equal(mu__journal_bytes(f->journal), HEADER_BYTES);
    append(f, 23);
    flush(f);
    reopen(f);
}

/* Appends since the begin are nothing until the commit; what was there before is. */
TEST_ON(test_crash_before_commit, struct fixture *f, set_up, tear_down)
{
    write_some(f, 5);
    open_and_expect(f, 5);
    append(f, 6);
    mu__journal_rewrite_begin(f->journal);
    assert_int_equal(try_append(f, 7), 0);
    flush(f);
    reopen(f);
}

TEST_ON(test_rewrite_that_fails, struct fixture *f, set_up, tear_down)
{
    struct ids one = {.at = {9}, .count = 1};
    struct mu__msg *msg = make(&f->pool, 4);

    write_some(f, 5);
    open_and_expect(f, 5);
    append(f, 6);
    sim_storage_fail(f->storage, SIM_STORAGE_REPLACE, 1, -MU_EEXHAUSTED);
    assert_int_equal(rewrite(f, &one), -MU_EEXHAUSTED);
    append(f, 7);

    mu__journal_rewrite_begin(f->journal);
    ((struct mu__journal_scheduled *)(void *)msg->body)->worker = 1;
    ((struct mu__journal_scheduled *)(void *)msg->body)->name =
        (struct mu__view){blob, MU__CLOSURE_NAME_MAX + 1};
    assert_int_equal(mu__journal_append(f->journal, msg, &f->error), -MU_ERANGE);
    assert_int_equal(try_append(f, 9), 0);
    assert_int_equal(mu__journal_rewrite_commit(f->journal, &f->error), -MU_ERANGE);
    assert_non_null(strstr(f->error.message, "the old journal stays"));
    mu__pool_put(&f->pool, msg);
    append(f, 8);
    flush(f);
    reopen(f);

    mu__journal_rewrite_begin(f->journal);
    assert_int_equal(try_append(f, 10), 0);
    assert_int_equal(rewrite(f, &one), 0);
    f->wanted = one;
    reopen(f);
}

/* ---- Any history ---- */

/* What may be found after a death: any prefix of `now` from `safe` messages on, or, when
 * it came in a commit, all of `next`. */
struct history {
    struct ids now;
    size_t safe;
    struct ids next;
    bool committing;
};

/* One operation; false: the process has died in it. */
static bool act(struct fixture *f, struct sim_random *random, struct history *h,
                uint64_t id)
{
    uint64_t choice = sim_between(random, 0, 9);
    size_t from;

    h->committing = choice == 0;
    if (choice > 3) {
        h->now.at[h->now.count] = id;
        h->now.count++;
        return try_append(f, id) == 0;
    }
    if (choice > 0) {
        if (mu__journal_flush(f->journal, &f->error) != 0)
            return false;
        h->safe = h->now.count;
        return true;
    }
    from = (size_t)sim_between(random, 0, h->now.count);
    h->next.count = h->now.count - from;
    memcpy(h->next.at, h->now.at + from, h->next.count * sizeof h->now.at[0]);
    if (rewrite(f, &h->next) != 0)
        return false;
    h->now = h->next;
    h->safe = h->now.count;
    return true;
}

static void expect_history(const struct fixture *f, const struct history *h)
{
    const struct ids *seen = &f->seen;

    if (seen->count >= h->safe && seen->count <= h->now.count &&
        memcmp(seen->at, h->now.at, seen->count * sizeof seen->at[0]) == 0)
        return;
    assert_true(h->committing);
    expect_ids(seen, &h->next, h->next.count);
}

/* Lives of a process that dies anywhere: each finds what it may, and goes on from it. */
TEST_ON(test_histories, struct fixture *f, set_up, tear_down)
{
    static struct history h;
    uint64_t seed;
    uint64_t end;

    for (sim_seeds(100, &seed, &end); seed < end; seed++) {
        struct sim_random random = sim_stream(seed, 1);
        uint64_t id = 0;

        sim_storage_set(f->storage, NULL, 0);
        f->storage->random = sim_stream(seed, 2);
        h = (struct history){.safe = 0};
        for (int life = 0; life < 8; life++) {
            assert_int_equal(try_open(f), 0);
            expect_history(f, &h);
            h.now = f->seen;
            h.safe = h.now.count;
            sim_storage_die_after(f->storage, (unsigned)sim_between(&random, 0, 30));
            while (act(f, &random, &h, id))
                id++;
            leave(f);
            sim_storage_crash(f->storage);
        }
    }
    assert_true(f->storage->counts[SIM_STORAGE_REPLACE] > 0);
}

TEST_PROGRAM()
