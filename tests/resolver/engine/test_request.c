/* Which requests are the same: one answer is right for both. */
#include "resolver/engine/request.h"
#include "tests/support/test.h"

static const char *const headers[] = {"Authorization: Bearer one", "Accept: a", NULL};
static const char *const no_headers[] = {NULL};
static const struct mu__request_tls no_tls;

static const struct mu__request base = {
    .kind = MU__REQUEST_HTTP,
    .name = "https://h/",
    .headers = headers,
    .body = "body",
    .body_size = 4,
    .secret = "s",
    .timeout_ms = 5000,
    .tls =
        &(const struct mu__request_tls){
            .ca = "ca", .certificate = "c", .key = "k", .server_name = "n"},
};

/* One field of each is another one. */
TEST(test_each_field_counts)
{
    static const char *const other_value[] = {"Authorization: Bearer two", "Accept: a",
                                              NULL};
    static const char *const less[] = {"Authorization: Bearer one", NULL};
    static const char *const more[] = {"Authorization: Bearer one", "Accept: a", "B: c",
                                       NULL};
#define WITH(...)                                                   \
    {                                                               \
        .kind = MU__REQUEST_HTTP, .name = "https://h/", __VA_ARGS__ \
    }
    const struct {
        struct mu__request a;
        struct mu__request b;
    } rows[] = {
        {{.kind = MU__REQUEST_FILE, .name = "/f"},
         {.kind = MU__REQUEST_FOLDER, .name = "/f"}},
        {WITH(.again = 0), {.kind = MU__REQUEST_HTTP, .name = "https://i/"}},
        {WITH(.again = 0), WITH(.again = 1)},
        {WITH(.timeout_ms = 7), WITH(.timeout_ms = 8)},
        {WITH(.bytes_max = 7), WITH(.bytes_max = 8)},
        {WITH(.tries = 1), WITH(.tries = 0)},
        {WITH(.retry_missing = true), WITH(.retry_missing = false)},
        {WITH(.new_only = true), WITH(.new_only = false)},
        {WITH(.method = "POST"), WITH(.method = NULL)},
        {WITH(.headers = headers), WITH(.headers = NULL)},
        {WITH(.headers = headers), WITH(.headers = other_value)},
        {WITH(.headers = headers), WITH(.headers = less)},
        {WITH(.headers = headers), WITH(.headers = more)},
        {WITH(.header = "ETag"), WITH(.header = NULL)},
        {WITH(.body = "a", .body_size = 1), WITH(.body = NULL)},
        {WITH(.body = "ab", .body_size = 1), WITH(.body = "ab", .body_size = 2)},
        {WITH(.body = "a", .body_size = 1), WITH(.body = "b", .body_size = 1)},
        {WITH(.secret = "k"), WITH(.secret = "l")},
        {WITH(.tls = &(const struct mu__request_tls){.ca = "a"}), WITH(.tls = NULL)},
        {WITH(.tls = &(const struct mu__request_tls){.ca = "a"}),
         WITH(.tls = &(const struct mu__request_tls){.ca = "b"})},
        {WITH(.tls = &(const struct mu__request_tls){.certificate = "a"}),
         WITH(.tls = &(const struct mu__request_tls){.certificate = "b"})},
        {WITH(.tls = &(const struct mu__request_tls){.key = "a"}),
         WITH(.tls = &(const struct mu__request_tls){.key = "b"})},
        {WITH(.tls = &(const struct mu__request_tls){.server_name = "a"}),
         WITH(.tls = &(const struct mu__request_tls){.server_name = "b"})},
        {WITH(.tls = &(const struct mu__request_tls){.insecure = true}),
         WITH(.tls = NULL)},
        {WITH(.cache_ms = 100), WITH(.cache_ms = 0)},
        {WITH(.uses_proxy = true), WITH(.uses_proxy = false)},
        {WITH(.dns_server = "127.0.0.1:53"), WITH(.dns_server = "127.0.0.1:54")},
        {WITH(.dns_server = "127.0.0.1:53"), WITH(.dns_server = NULL)},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (mu__request_same(&rows[i].a, &rows[i].b) ||
            mu__request_same(&rows[i].b, &rows[i].a))
            fail_msg("row %zu: they count as the same", i);
}

TEST(test_defaults_are_what_they_stand_for)
{
    static const struct {
        struct mu__request a;
        struct mu__request b;
    } rows[] = {
        {WITH(.method = NULL), WITH(.method = "GET")},
        {WITH(.timeout_ms = 0), WITH(.timeout_ms = MU__REQUEST_TIMEOUT_MS)},
        {WITH(.bytes_max = 0), WITH(.bytes_max = MU__REQUEST_BYTES_MAX)},
        {WITH(.headers = NULL), WITH(.headers = no_headers)},
        {WITH(.tls = NULL), WITH(.tls = &no_tls)},
        {{.kind = MU__REQUEST_CLOCK}, {.kind = MU__REQUEST_CLOCK, .name = ""}},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        if (!mu__request_same(&rows[i].a, &rows[i].b))
            fail_msg("row %zu: they count as different", i);
        assert_true(mu__request_hash(&rows[i].a) == mu__request_hash(&rows[i].b));
    }
}

TEST(test_copy)
{
    struct mu__request copy;

    assert_int_equal(mu__request_copy(&base, &copy), 0);
    assert_true(mu__request_same(&base, &copy));
    assert_true(mu__request_hash(&base) == mu__request_hash(&copy));
    assert_ptr_not_equal(copy.headers[0], base.headers[0]);
    assert_ptr_not_equal(copy.tls->key, base.tls->key);
    assert_ptr_not_equal(copy.body, base.body);
    mu__request_free_copy(&copy);
}

TEST_PROGRAM()
