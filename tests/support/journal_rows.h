/* A chief's journal that has many named closures which have finished. */
#ifndef MU_TESTS_JOURNAL_ROWS_H
#define MU_TESTS_JOURNAL_ROWS_H

#include "actors/coordination/store/journal.h"
#include "actors/messages.h"
#include "tests/support/test.h"

enum { JOURNAL_ROW_FIRST = 1000000 }; /* their numbers; a test's own are lower */

static inline int journal_pass_over(void *owner, struct mu__msg *msg)
{
    assert_true(owner == NULL && msg->kind != 0);
    return 0;
}

static inline void journal_add(struct mu__journal *journal, struct mu__pool *pool,
                               uint16_t kind, const void *body, size_t size)
{
    struct mu__msg *msg = mu__pool_get(pool, kind, mu__messages.rows[kind].body_size);
    mu_error error;

    assert_non_null(msg);
    memcpy(msg->body, body, size);
    assert_int_equal(mu__journal_append(journal, msg, &error), 0);
    mu__pool_put(pool, msg);
}

/* While no chief has it: "row 0" and so on, of the function "square", without results. */
static inline void journal_add_finished(struct mu__storage *storage, unsigned count)
{
    struct mu__journal *journal;
    struct mu__pool pool;
    char name[32];
    mu_error error;

    mu__pool_init(&pool);
    assert_int_equal(mu__journal_open(storage, &mu__messages, &pool, journal_pass_over,
                                      NULL, &error, NULL, &journal),
                     0);
    for (unsigned i = 0; i < count; i++) {
        struct mu__journal_scheduled scheduled = {.number = JOURNAL_ROW_FIRST + i,
                                                  .function = mu__view_str("square")};
        struct mu__journal_finished finished = {.number = JOURNAL_ROW_FIRST + i};

        (void)snprintf(name, sizeof name, "row %u", i);
        scheduled.name = mu__view_str(name);
        journal_add(journal, &pool, MU__JOURNAL_SCHEDULED, &scheduled, sizeof scheduled);
        journal_add(journal, &pool, MU__JOURNAL_FINISHED, &finished, sizeof finished);
    }
    assert_int_equal(mu__journal_flush(journal, &error), 0);
    mu__journal_close(journal);
    mu__pool_done(&pool);
}

#endif
