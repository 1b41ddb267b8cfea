/* Connections that have not proven themselves: how many, how long, how fast, and how much
 * processor time. */
#include "tests/support/test.h"
#include "transport/wire/unproven.h"

enum { MANY = 4 * MU__UNPROVEN_MAX };

struct fixture {
    struct mu__unproven unproven;
    struct mu__unproven_entry entries[MANY];
};

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);

    assert_non_null(f);
    mu__unproven_init(&f->unproven, 4711);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    free(*state);
    return 0;
}

static struct mu__source v4(uint32_t number)
{
    struct mu__source source = {.is_limited = true};

    source.bytes[10] = source.bytes[11] = 0xff;
    for (int i = 0; i < 4; i++)
        source.bytes[12 + i] = (uint8_t)(number >> (24 - 8 * i));
    return source;
}

/* Address `host` of an IPv6 network. */
static struct mu__source v6(uint8_t network, uint8_t host)
{
    struct mu__source source = {.bytes = {0x20, 0x01}, .is_limited = true};

    source.bytes[7] = network;
    source.bytes[15] = host;
    return source;
}

/* ---- tokens ---- */

static unsigned admitted(struct fixture *f, struct mu__source source, unsigned attempts,
                         uint64_t now_ms)
{
    unsigned count = 0;

    for (unsigned i = 0; i < attempts; i++)
        count += mu__unproven_admits(&f->unproven, &source, now_ms);
    return count;
}

/* What one address gets, step by step. */
TEST_ON(test_tokens_of_one_address, struct fixture *f, setup, teardown)
{
    static const struct {
        uint64_t now_ms;
        unsigned attempts;
        unsigned admitted;
    } rows[] = {
        {5000, 1, 1},
        {5000, 1000, MU__UNPROVEN_BURST - 1},
        {5000, 1, 0},
        {5100, 10, 0}, /* 0.8 tokens */
        {5125, 10, 1},
        {6125, 100, MU__UNPROVEN_PER_SECOND},
        {7125, 3, 3},
        {8125, 100, 2 * MU__UNPROVEN_PER_SECOND - 3},
        {UINT64_C(1) << 40, 1000, MU__UNPROVEN_BURST}, /* never more than a burst */
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        assert_int_equal(admitted(f, v4(7), rows[i].attempts, rows[i].now_ms),
                         rows[i].admitted);
}

TEST_ON(test_addresses_do_not_share_tokens, struct fixture *f, setup, teardown)
{
    struct mu__source here = {.is_limited = false};

    assert_int_equal(admitted(f, v4(1), 1000, 9), MU__UNPROVEN_BURST);
    assert_int_equal(admitted(f, v4(2), 1000, 9), MU__UNPROVEN_BURST);
    assert_int_equal(admitted(f, v6(1, 1), 1000, 9), MU__UNPROVEN_BURST);
    assert_int_equal(admitted(f, v6(1, 2), 1000, 9), 0); /* the same network */
    assert_int_equal(admitted(f, v6(2, 1), 1000, 9), MU__UNPROVEN_BURST);
    assert_int_equal(admitted(f, v4(1), 1000, 9), 0);
    assert_int_equal(admitted(f, here, 100000, 9), 100000);
}

/* Of addresses beyond the bound the one used last the longest ago is forgotten, and never
 * is an address refused for the sake of others. */
TEST_ON(test_more_addresses_than_are_remembered, struct fixture *f, setup, teardown)
{
    unsigned count = 0;

    for (uint32_t i = 0; i < 100 * MU__UNPROVEN_SOURCES; i++) {
        assert_int_equal(admitted(f, v4(0x0a000000 + i), 1, 1000 + i), 1);
        if (i % 4 == 0) /* one that comes again and again stays remembered */
            count += admitted(f, v4(1), 1, 1000 + i);
    }
    assert_in_range(count, MU__UNPROVEN_BURST,
                    MU__UNPROVEN_BURST +
                        101 * MU__UNPROVEN_SOURCES * MU__UNPROVEN_PER_SECOND / 1000);
}

/* Who proves itself does not pay: a thousand members behind one address. */
TEST_ON(test_proof_gives_the_token_back, struct fixture *f, setup, teardown)
{
    struct mu__source source = v4(3);

    for (unsigned i = 0; i < 1000; i++) {
        assert_true(mu__unproven_admits(&f->unproven, &source, 50));
        assert_null(mu__unproven_add(&f->unproven, &f->entries[i], &source, 50));
        mu__unproven_prove(&f->unproven, &f->entries[i]);
        mu__unproven_prove(&f->unproven, &f->entries[i]);
        mu__unproven_remove(&f->unproven, &f->entries[i]);
    }
    assert_int_equal(f->unproven.count, 0);
    assert_int_equal(admitted(f, source, 1000, 50), MU__UNPROVEN_BURST);
}

/* ---- entries ---- */

static struct mu__unproven_entry *add(struct fixture *f, unsigned i, uint64_t now_ms)
{
    struct mu__source here = {.is_limited = false};

    return mu__unproven_add(&f->unproven, &f->entries[i], &here, now_ms);
}

TEST_ON(test_the_oldest_goes, struct fixture *f, setup, teardown)
{
    for (unsigned i = 0; i < MU__UNPROVEN_MAX; i++)
        assert_null(add(f, i, 1));
    mu__unproven_prove(&f->unproven, &f->entries[0]); /* it is counted no more */
    assert_null(add(f, MU__UNPROVEN_MAX, 1));
    for (unsigned i = MU__UNPROVEN_MAX + 1; i < MANY; i++) {
        struct mu__unproven_entry *oldest = add(f, i, 1);

        assert_ptr_equal(oldest, &f->entries[i - MU__UNPROVEN_MAX]);
        mu__unproven_remove(&f->unproven, oldest);
        assert_int_equal(f->unproven.count, MU__UNPROVEN_MAX);
    }
}

TEST_ON(test_their_time_is_over, struct fixture *f, setup, teardown)
{
    assert_null(mu__unproven_overdue(&f->unproven, UINT64_MAX));
    (void)add(f, 0, 100);
    (void)add(f, 1, 200);
    (void)add(f, 2, 300);
    mu__unproven_prove(&f->unproven, &f->entries[1]);
    assert_null(mu__unproven_overdue(&f->unproven, 99 + MU__UNPROVEN_MS));
    assert_ptr_equal(mu__unproven_overdue(&f->unproven, 100 + MU__UNPROVEN_MS),
                     &f->entries[0]);
    mu__unproven_remove(&f->unproven, &f->entries[0]);
    assert_ptr_equal(mu__unproven_oldest(&f->unproven), &f->entries[2]);
    assert_null(mu__unproven_overdue(&f->unproven, 299 + MU__UNPROVEN_MS));
    assert_ptr_equal(mu__unproven_overdue(&f->unproven, 300 + MU__UNPROVEN_MS),
                     &f->entries[2]);
    mu__unproven_remove(&f->unproven, &f->entries[2]);
    assert_null(mu__unproven_oldest(&f->unproven));
}

/* Sessions have an order of their own: by when the ClientHello came. */
TEST_ON(test_the_oldest_session_goes, struct fixture *f, setup, teardown)
{
    for (unsigned i = 0; i < MU__UNPROVEN_MAX; i++)
        (void)add(f, i, 1);
    for (unsigned i = 0; i < MU__UNPROVEN_SESSIONS_MAX; i++)
        assert_null(mu__unproven_add_session(&f->unproven,
                                             &f->entries[MU__UNPROVEN_MAX - 1 - i]));
    for (unsigned i = 0; i < 9; i++) {
        struct mu__unproven_entry *oldest =
            mu__unproven_add_session(&f->unproven, &f->entries[i]);

        assert_ptr_equal(oldest, &f->entries[MU__UNPROVEN_MAX - 1 - i]);
        mu__unproven_remove(&f->unproven, oldest);
    }
    mu__unproven_prove(&f->unproven, &f->entries[0]);
    assert_null(mu__unproven_add_session(&f->unproven, &f->entries[20]));
    assert_int_equal(f->unproven.sessions_count, MU__UNPROVEN_SESSIONS_MAX);
    for (unsigned i = 0; i < MU__UNPROVEN_MAX; i++)
        mu__unproven_remove(&f->unproven, &f->entries[i]);
    assert_int_equal(f->unproven.sessions_count, 0);
    assert_int_equal(f->unproven.count, 0);
}

/* ---- processor time ---- */

/* Whose handshakes take long has fewer of them, and all together have a share. */
TEST_ON(test_processor_time_is_counted, struct fixture *f, setup, teardown)
{
    struct mu__unproven_entry *entry = &f->entries[0];

    assert_int_equal(admitted(f, v4(1), 1, 5000), 1);
    (void)mu__unproven_add(&f->unproven, entry, &(struct mu__source){.is_limited = false},
                           5000);
    entry->source = v4(1);
    assert_true(mu__unproven_has_time(&f->unproven, 5000));
    mu__unproven_spend(&f->unproven, entry, 100 * MU__UNPROVEN_TOKEN_US);
    assert_int_equal(admitted(f, v4(1), 1000, 5000), MU__UNPROVEN_BURST - 101);
    assert_true(mu__unproven_has_time(&f->unproven, 5000));
    mu__unproven_spend(&f->unproven, entry, MU__UNPROVEN_BURST_US);
    assert_false(mu__unproven_has_time(&f->unproven, 5000));
    assert_true(mu__unproven_has_time(&f->unproven, 7000));

    /* Who proves itself gives all back. */
    mu__unproven_spend(&f->unproven, entry, 3 * MU__UNPROVEN_BURST_US);
    assert_false(mu__unproven_has_time(&f->unproven, 7000));
    mu__unproven_prove(&f->unproven, entry);
    assert_true(mu__unproven_has_time(&f->unproven, 7000));
    assert_int_equal(admitted(f, v4(1), 1000, 7000), MU__UNPROVEN_BURST);
}

/* Also of those whose addresses are not limited: from this machine. */
TEST_ON(test_processor_time_of_this_machine, struct fixture *f, setup, teardown)
{
    const struct mu__source here = {.is_limited = false};

    (void)mu__unproven_add(&f->unproven, &f->entries[0], &here, 1);
    (void)mu__unproven_has_time(&f->unproven, 1);
    mu__unproven_spend(&f->unproven, &f->entries[0], MU__UNPROVEN_BURST_US);
    assert_false(mu__unproven_has_time(&f->unproven, 1));
    mu__unproven_remove(&f->unproven, &f->entries[0]);
    assert_false(mu__unproven_has_time(&f->unproven, 1));
    assert_true(mu__unproven_has_time(&f->unproven, 2));
    assert_int_equal(admitted(f, here, 1000, 2), 1000);
}

TEST_PROGRAM()
