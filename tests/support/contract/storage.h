/* What every storage must do, written once. A test file fills in a struct
 * contract_storage, which says how to make one and what can happen to it, and gets the
 * whole suite:
 *
 *     return contract_storage_run("sim", &sim_fixture);
 *
 * Include it after cmocka.h. */
#ifndef MU_TESTS_CONTRACT_STORAGE_H
#define MU_TESTS_CONTRACT_STORAGE_H

#include "muster/error.h"
#include "runtime/kernel/storage.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct contract_storage {
    /* A place with one storage that is empty. */
    void *(*open)(void);
    void (*close)(void *place);

    /* The same one until the next restart. */
    struct mu__storage *(*storage)(void *place);

    /* The process dies and comes again: what was flushed is there. */
    void (*restart)(void *place);

    /* From now on nothing more can be written; or it can again. */
    void (*set_full)(void *place, bool full);
};

enum {
    CONTRACT_BIG_BYTES = 3 << 20, /* more than any storage keeps in memory */
    CONTRACT_PIECE_BYTES = 300
};

struct contract_storage_state {
    const struct contract_storage *fixture;
    void *place;
    uint8_t *bytes; /* CONTRACT_BIG_BYTES that do not repeat soon */
    mu_error error;
};

/* ---- Doing and looking ---- */

static struct mu__storage *contract_storage(struct contract_storage_state *s)
{
    return s->fixture->storage(s->place);
}

static int contract_try_append(struct contract_storage_state *s, const void *data,
                               size_t size)
{
    struct mu__storage *storage = contract_storage(s);

    return storage->ops->append(storage, data, size, &s->error);
}

static void contract_append(struct contract_storage_state *s, const char *text)
{
    assert_int_equal(contract_try_append(s, text, strlen(text)), 0);
}

static int contract_try_flush(struct contract_storage_state *s)
{
    struct mu__storage *storage = contract_storage(s);

    return storage->ops->flush(storage, &s->error);
}

static void contract_flush(struct contract_storage_state *s)
{
    assert_int_equal(contract_try_flush(s), 0);
}

static int contract_try_replace(struct contract_storage_state *s, const void *data,
                                size_t size)
{
    struct mu__storage *storage = contract_storage(s);

    return storage->ops->replace(storage, data, size, &s->error);
}

static void contract_replace(struct contract_storage_state *s, const char *text)
{
    assert_int_equal(contract_try_replace(s, text, strlen(text)), 0);
}

static struct mu__buf *contract_load(struct contract_storage_state *s)
{
    struct mu__storage *storage = contract_storage(s);
    struct mu__buf *content = NULL;

    assert_int_equal(storage->ops->load(storage, 0, UINT32_MAX, &s->error, &content), 0);
    if (content != NULL)
        assert_true(content->size > 0 && content->refs == 1);
    return content;
}

static void contract_expect(struct contract_storage_state *s, const void *data,
                            size_t size)
{
    struct mu__buf *content = contract_load(s);

    assert_int_equal(content == NULL ? 0 : content->size, size);
    if (content != NULL)
        assert_memory_equal(content->data, data, size);
    mu__buf_unref(content);
}

static void contract_expect_text(struct contract_storage_state *s, const char *text)
{
    contract_expect(s, text, strlen(text));
}

/* After a restart this is there. */
static void contract_expect_kept(struct contract_storage_state *s, const char *text)
{
    s->fixture->restart(s->place);
    contract_expect_text(s, text);
}

/* The disk is full, and says so. */
static void contract_expect_full(struct contract_storage_state *s, int rv)
{
    assert_int_equal(rv, -MU_EEXHAUSTED);
    assert_int_equal(s->error.code, -MU_EEXHAUSTED);
    assert_non_null(strstr(s->error.message, contract_storage(s)->name));
}

/* ---- The suite ---- */

LISTED_TEST(contract_storage_begins_empty)
{
    struct contract_storage_state *s = *state;

    assert_null(contract_load(s));
    contract_flush(s);
    s->fixture->restart(s->place);
    assert_null(contract_load(s));
}

LISTED_TEST(contract_storage_keeps_what_was_flushed)
{
    struct contract_storage_state *s = *state;

    contract_append(s, "one ");
    contract_append(s, "two ");
    contract_flush(s);
    contract_expect_text(s, "one two ");
    contract_append(s, "three");
    contract_append(s, "");
    contract_flush(s);
    contract_flush(s);
    contract_expect_kept(s, "one two three");
    contract_append(s, " four");
    contract_flush(s);
    contract_expect_kept(s, "one two three four");
}

static void contract_expect_part(struct contract_storage_state *s, uint64_t offset,
                                 uint32_t bytes_max, const char *text)
{
    struct mu__storage *storage = contract_storage(s);
    struct mu__buf *content = NULL;

    assert_int_equal(storage->ops->load(storage, offset, bytes_max, &s->error, &content),
                     0);
    assert_int_equal(content == NULL ? 0 : content->size, strlen(text));
    if (content != NULL)
        assert_memory_equal(content->data, text, content->size);
    mu__buf_unref(content);
}

LISTED_TEST(contract_storage_loads_parts)
{
    struct contract_storage_state *s = *state;
    struct mu__storage *storage = contract_storage(s);

    assert_int_equal(storage->ops->size(storage), 0);
    contract_append(s, "one two three");
    contract_flush(s);
    assert_int_equal(storage->ops->size(storage), 13);
    contract_expect_part(s, 0, 4, "one ");
    contract_expect_part(s, 4, 4, "two ");
    contract_expect_part(s, 8, 9, "three");
    contract_expect_part(s, 12, 1, "e");
    contract_expect_part(s, 13, 1, "");
    contract_expect_part(s, UINT64_MAX, 1, "");
}

/* What is appended then stands behind the cut. */
LISTED_TEST(contract_storage_cuts_its_end)
{
    struct contract_storage_state *s = *state;
    struct mu__storage *storage;

    contract_append(s, "whole torn");
    contract_flush(s);
    s->fixture->restart(s->place);
    storage = contract_storage(s);
    assert_int_equal(storage->ops->cut(storage, 6, &s->error), 0);
    assert_int_equal(storage->ops->size(storage), 6);
    contract_expect_kept(s, "whole ");
    contract_append(s, "on");
    contract_flush(s);
    contract_expect_kept(s, "whole on");
}

/* What was not flushed may be lost, from some byte on. */
LISTED_TEST(contract_storage_tears_only_the_end)
{
    struct contract_storage_state *s = *state;
    const char *all = "flushed and appended";
    struct mu__buf *content;

    for (int i = 0; i < 20; i++) {
        contract_replace(s, "flushed");
        contract_append(s, " and");
        contract_append(s, " appended");
        s->fixture->restart(s->place);
        content = contract_load(s);
        assert_non_null(content);
        assert_true(content->size >= strlen("flushed") && content->size <= strlen(all));
        assert_memory_equal(content->data, all, content->size);
        mu__buf_unref(content);
    }
}

/* More than fits a buffer, in pieces of several sizes, and then at once. */
LISTED_TEST(contract_storage_takes_any_size)
{
    struct contract_storage_state *s = *state;
    size_t done = 0;

    while (done < CONTRACT_BIG_BYTES / 2) {
        size_t size = 1 + done % CONTRACT_PIECE_BYTES;

        assert_int_equal(contract_try_append(s, s->bytes + done, size), 0);
        done += size;
    }
    assert_int_equal(contract_try_append(s, s->bytes + done, CONTRACT_BIG_BYTES - done),
                     0);
    contract_flush(s);
    contract_expect(s, s->bytes, CONTRACT_BIG_BYTES);
    s->fixture->restart(s->place);
    contract_expect(s, s->bytes, CONTRACT_BIG_BYTES);
    assert_int_equal(contract_try_replace(s, s->bytes + 1, CONTRACT_BIG_BYTES - 1), 0);
    s->fixture->restart(s->place);
    contract_expect(s, s->bytes + 1, CONTRACT_BIG_BYTES - 1);
}

/* No flush is needed, and what was appended before goes with the old content. */
LISTED_TEST(contract_storage_replaces_everything)
{
    struct contract_storage_state *s = *state;

    contract_append(s, "the old one, which is longer");
    contract_flush(s);
    contract_append(s, "not flushed");
    contract_replace(s, "the new one");
    contract_expect_text(s, "the new one");
    contract_flush(s);
    contract_expect_text(s, "the new one");
    contract_expect_kept(s, "the new one");
    contract_replace(s, "newer");
    contract_append(s, " and on");
    contract_flush(s);
    contract_expect_kept(s, "newer and on");
}

LISTED_TEST(contract_storage_replaces_by_nothing)
{
    struct contract_storage_state *s = *state;

    contract_append(s, "something");
    contract_flush(s);
    assert_int_equal(contract_try_replace(s, NULL, 0), 0);
    assert_null(contract_load(s));
    s->fixture->restart(s->place);
    assert_null(contract_load(s));
    contract_append(s, "anew");
    contract_flush(s);
    contract_expect_kept(s, "anew");
}

/* Nothing is lost by a flush that fails, and nothing comes twice. */
LISTED_TEST(contract_storage_flushes_again)
{
    struct contract_storage_state *s = *state;

    contract_append(s, "one ");
    contract_flush(s);
    contract_append(s, "two ");
    s->fixture->set_full(s->place, true);
    contract_expect_full(s, contract_try_flush(s));
    contract_expect_full(s, contract_try_flush(s));
    contract_expect_text(s, "one ");
    contract_append(s, "three ");
    contract_expect_full(s, contract_try_flush(s));
    s->fixture->set_full(s->place, false);
    contract_append(s, "four");
    contract_flush(s);
    contract_expect_text(s, "one two three four");
    contract_expect_kept(s, "one two three four");
}

/* Who is refused has given nothing, whether at the append or, all of it, at the flush. */
LISTED_TEST(contract_storage_refuses_whole)
{
    struct contract_storage_state *s = *state;
    bool taken;

    contract_append(s, "one ");
    contract_flush(s);
    s->fixture->set_full(s->place, true);
    taken = contract_try_append(s, s->bytes, CONTRACT_BIG_BYTES) == 0;
    if (taken)
        contract_expect_full(s, contract_try_flush(s));
    else
        contract_expect_full(s, s->error.code);
    contract_expect_text(s, "one ");
    s->fixture->set_full(s->place, false);
    if (taken)
        contract_replace(s, "one ");
    contract_append(s, "two");
    contract_flush(s);
    contract_expect_kept(s, "one two");
}

LISTED_TEST(contract_storage_keeps_the_old_one)
{
    struct contract_storage_state *s = *state;

    contract_append(s, "old");
    contract_flush(s);
    contract_append(s, " and appended");
    s->fixture->set_full(s->place, true);
    contract_expect_full(s, contract_try_replace(s, s->bytes, CONTRACT_BIG_BYTES));
    contract_expect_text(s, "old");
    s->fixture->set_full(s->place, false);
    contract_flush(s);
    contract_expect_kept(s, "old and appended");
    contract_replace(s, "new");
    contract_expect_kept(s, "new");
}

/* ---- Renewals ---- */

static void contract_renew(struct contract_storage_state *s, const void *data,
                           size_t size)
{
    struct mu__storage *storage = contract_storage(s);
    size_t done = 0;

    assert_int_equal(storage->ops->renew(storage, &s->error), 0);
    while (done < size) {
        size_t piece =
            size - done < CONTRACT_PIECE_BYTES ? size - done : CONTRACT_PIECE_BYTES;

        (void)storage->ops->renew_is_busy(storage);
        assert_int_equal(storage->ops->renew_append(storage, (const uint8_t *)data + done,
                                                    piece, &s->error),
                         0);
        done += piece;
    }
}

static int contract_commit(struct contract_storage_state *s)
{
    const struct timespec pause = {.tv_nsec = 1000000};
    struct mu__storage *storage = contract_storage(s);

    for (int i = 0; i < 60000; i++) {
        int rv = storage->ops->renew_commit(storage, &s->error);

        if (rv != MU__STORAGE_NOT_YET)
            return rv;
        (void)nanosleep(&pause, NULL);
    }
    fail_msg("the renewal of %s is not ready to be committed", storage->name);
    return -1;
}

/* The old content is used meanwhile, and counts until the commit. */
LISTED_TEST(contract_storage_renews_beside_its_use)
{
    struct contract_storage_state *s = *state;

    contract_append(s, "old");
    contract_flush(s);
    contract_renew(s, s->bytes, CONTRACT_BIG_BYTES);
    contract_append(s, " and on");
    contract_flush(s);
    contract_expect_text(s, "old and on");
    assert_int_equal(contract_commit(s), 0);
    contract_expect(s, s->bytes, CONTRACT_BIG_BYTES);
    s->fixture->restart(s->place);
    contract_expect(s, s->bytes, CONTRACT_BIG_BYTES);
    contract_renew(s, "a", 1);
    assert_int_equal(contract_commit(s), 0);
    contract_append(s, "b");
    contract_flush(s);
    contract_expect_kept(s, "ab");
}

/* By a crash, by a drop, by another renewal, by replace(). */
LISTED_TEST(contract_storage_drops_a_renewal)
{
    struct contract_storage_state *s = *state;
    struct mu__storage *storage = contract_storage(s);

    contract_append(s, "old");
    contract_flush(s);
    contract_renew(s, s->bytes, CONTRACT_BIG_BYTES);
    contract_expect_kept(s, "old");
    storage = contract_storage(s);
    contract_renew(s, s->bytes, 1000);
    storage->ops->renew_drop(storage);
    storage->ops->renew_drop(storage);
    contract_expect_kept(s, "old");
    contract_renew(s, "one", 3);
    contract_renew(s, "two", 3);
    assert_int_equal(contract_commit(s), 0);
    contract_expect_kept(s, "two");
    contract_renew(s, "three", 5);
    contract_replace(s, "four");
    contract_expect_kept(s, "four");
}

/* An error that nobody wants to read is not written. */
LISTED_TEST(contract_storage_needs_no_error)
{
    struct contract_storage_state *s = *state;
    struct mu__storage *storage = contract_storage(s);

    contract_append(s, "a");
    s->fixture->set_full(s->place, true);
    assert_int_equal(storage->ops->flush(storage, NULL), -MU_EEXHAUSTED);
    assert_int_equal(storage->ops->replace(storage, "b", 1, NULL), -MU_EEXHAUSTED);
    s->fixture->set_full(s->place, false);
    assert_int_equal(storage->ops->flush(storage, NULL), 0);
    contract_expect_text(s, "a");
}

/* ---- Running it ---- */

static int contract_storage_setup(void **state)
{
    const struct contract_storage *fixture = *state;
    struct contract_storage_state *s = calloc(1, sizeof *s);
    uint32_t number = 1;

    if (s == NULL)
        return -1;
    s->fixture = fixture;
    s->bytes = malloc(CONTRACT_BIG_BYTES);
    if (s->bytes == NULL)
        return -1;
    for (size_t i = 0; i < CONTRACT_BIG_BYTES; i++) {
        number = number * 1664525 + 1013904223;
        s->bytes[i] = (uint8_t)(number >> 24);
    }
    s->place = fixture->open();
    *state = s;
    return 0;
}

static int contract_storage_teardown(void **state)
{
    struct contract_storage_state *s = *state;

    s->fixture->set_full(s->place, false);
    s->fixture->close(s->place);
    free(s->bytes);
    free(s);
    return 0;
}

#define CONTRACT_STORAGE_TEST(name)                                          \
    {                                                                        \
#name, name, contract_storage_setup, contract_storage_teardown, NULL \
    }

static int contract_storage_run(const char *name, const struct contract_storage *fixture)
{
    struct CMUnitTest tests[] = {
        CONTRACT_STORAGE_TEST(contract_storage_begins_empty),
        CONTRACT_STORAGE_TEST(contract_storage_keeps_what_was_flushed),
        CONTRACT_STORAGE_TEST(contract_storage_loads_parts),
        CONTRACT_STORAGE_TEST(contract_storage_cuts_its_end),
        CONTRACT_STORAGE_TEST(contract_storage_tears_only_the_end),
        CONTRACT_STORAGE_TEST(contract_storage_takes_any_size),
        CONTRACT_STORAGE_TEST(contract_storage_replaces_everything),
        CONTRACT_STORAGE_TEST(contract_storage_replaces_by_nothing),
        CONTRACT_STORAGE_TEST(contract_storage_flushes_again),
        CONTRACT_STORAGE_TEST(contract_storage_refuses_whole),
        CONTRACT_STORAGE_TEST(contract_storage_keeps_the_old_one),
        CONTRACT_STORAGE_TEST(contract_storage_renews_beside_its_use),
        CONTRACT_STORAGE_TEST(contract_storage_drops_a_renewal),
        CONTRACT_STORAGE_TEST(contract_storage_needs_no_error),
    };

    for (size_t i = 0; i < sizeof tests / sizeof tests[0]; i++)
        tests[i].initial_state = (void *)(uintptr_t)fixture;
    return cmocka_run_group_tests_name(name, tests, NULL, NULL);
}

#endif
