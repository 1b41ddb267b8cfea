/* What is kept for a client that does not read: its order, its bytes, when it is full. */
#include "actors/supervisor/state/unread_results.h"
#include "tests/support/test.h"

enum { ROWS_MAX = 8, OWN = sizeof(struct mu__msg) + sizeof(struct mu__resolved) };

static struct mu__msg *message(uint16_t kind, uint32_t bytes)
{
    struct mu__msg *msg = calloc(1, OWN);
    struct mu__resolved resolved = {.result = {.head_size = 8, .tail_size = bytes - 8}};
    struct mu__fetched fetched = {.content = {.head_size = bytes}};

    assert_non_null(msg);
    msg->kind = kind;
    if (kind == MU__RESOLVED)
        memcpy(msg->body, &resolved, sizeof resolved);
    else
        memcpy(msg->body, &fetched, sizeof fetched);
    return msg;
}

static const struct {
    const char *what;
    uint32_t sizes[ROWS_MAX]; /* of what is added, 0 ends it */
    uint32_t full_from;       /* full once so many were added; 0: never */
    uint32_t full_until;      /* and until so many are left */
} rows[] = {
    {"one small", {100}, 0, 0},
    {"one large", {MU__UNREAD_BYTES}, 1, 0},
    {"just below", {MU__UNREAD_BYTES - 2 * OWN - 8, 7}, 0, 0},
    {"just there", {MU__UNREAD_BYTES - 2 * OWN - 8, 8}, 2, 1},
    {"quarters",
     {MU__UNREAD_BYTES / 4, MU__UNREAD_BYTES / 4, MU__UNREAD_BYTES / 4,
      MU__UNREAD_BYTES / 4},
     4,
     1},
};

TEST(test_rows)
{
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct mu__unread_results unread = {.bytes = 0};
        struct mu__msg *messages[ROWS_MAX] = {NULL};
        uint32_t count = 0;

        for (; count < ROWS_MAX && rows[i].sizes[count] != 0; count++) {
            messages[count] = message(count % 2 == 0 ? MU__RESOLVED : MU__FETCHED,
                                      rows[i].sizes[count]);
            mu__unread_add(&unread, messages[count]);
            if (unread.is_full !=
                (rows[i].full_from != 0 && count + 1 >= rows[i].full_from))
                fail_msg("%s: %u added", rows[i].what, count + 1);
        }
        for (uint32_t at = 0; at < count; at++) {
            assert_ptr_equal(mu__unread_pop(&unread), messages[at]);
            if (unread.is_full !=
                (rows[i].full_from != 0 && count - at - 1 > rows[i].full_until))
                fail_msg("%s: %u left", rows[i].what, count - at - 1);
            free(messages[at]);
        }
        assert_null(unread.first);
        assert_int_equal(unread.bytes, 0);
    }
}

TEST_PROGRAM()
