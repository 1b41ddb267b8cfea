/* How many requests about keys may be under way, as the threads count that begin them. */
#include "actors/agent/agent.h"
#include "tests/support/test.h"

static void nothing(void *user, const mu_kv_response *answer)
{
    (void)user;
    (void)answer;
}

static int begin(struct mu__agent_shared *shared, size_t value_size,
                 struct mu__msg **ret_msg)
{
    static const char value[2 * MU__KEY_SMALL_MAX];
    const mu_kv_request ask = {
        .operation = MU_KV_PUT, .key = "k", .value = value, .size = value_size};

    return mu__key_request_new(shared, &ask, nothing, NULL, NULL, NULL, ret_msg);
}

TEST(test_room_is_given_back)
{
    struct mu__agent_shared shared = {.begun = MU__KEY_REQUESTS_MAX - 1};
    struct mu__msg *msg;
    struct mu__msg *none;

    assert_int_equal(begin(&shared, 0, &msg), 0);
    assert_int_equal(begin(&shared, 0, &none), -MU_EAGAIN);
    mu__key_request_drop(msg);
    assert_int_equal(begin(&shared, 0, &msg), 0);
    mu__key_request_drop(msg);
    assert_int_equal(shared.begun, MU__KEY_REQUESTS_MAX - 1);
}

TEST(test_bytes_are_given_back)
{
    struct mu__agent_shared shared = {.begun_bytes = MU__KEY_REQUEST_BYTES_MAX -
                                                     MU__KEY_SMALL_MAX - 1};
    struct mu__msg *msg;
    struct mu__msg *none;

    assert_int_equal(begin(&shared, MU__KEY_SMALL_MAX + 1, &msg), 0);
    assert_int_equal(begin(&shared, MU__KEY_SMALL_MAX + 1, &none), -MU_EAGAIN);
    assert_int_equal(begin(&shared, MU__KEY_SMALL_MAX, &none), 0);
    mu__key_request_drop(none);
    mu__key_request_drop(msg);
    assert_int_equal(shared.begun, 0);
}

/* A thread that was interrupted between reading the two counters sees more answered than
 * begun. */
TEST(test_others_were_answered_meanwhile)
{
    struct mu__agent_shared shared = {
        .begun = 3, .answered = 5, .begun_bytes = 10, .answered_bytes = 4000};
    struct mu__msg *msg;

    assert_int_equal(begin(&shared, MU__KEY_SMALL_MAX + 1, &msg), 0);
    mu__key_request_drop(msg);
}

TEST_PROGRAM()
