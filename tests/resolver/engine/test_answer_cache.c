/* Answers that may be given again. */
#include "resolver/engine/answer_cache.h"
#include "tests/support/test.h"

static struct mu__request request_of(const char *name, const char *body)
{
    return (struct mu__request){.kind = MU__REQUEST_HTTP,
                                .name = name,
                                .body = body,
                                .body_size = strlen(body),
                                .cache_ms = 100};
}

static void put(struct mu__answer_cache *kept, const struct mu__request *request,
                const char *text, uint64_t now_ms)
{
    mu__answer_cache_put(kept, request, text, strlen(text), now_ms);
}

static const char *find(struct mu__answer_cache *kept, const struct mu__request *request,
                        uint64_t now_ms)
{
    const struct mu__cached_answer *row = mu__answer_cache_find(kept, request, now_ms);

    return row == NULL ? NULL : row->data;
}

TEST(test_kept_for_a_time)
{
    struct mu__answer_cache kept = {0};
    struct mu__request one = request_of("u", "b");
    struct mu__request other = request_of("u", "c");
    struct mu__request fresh = one;
    struct mu__request any = one;

    fresh.again = 1;
    any.cache_ms = 0;
    put(&kept, &one, "first", 1000);
    assert_string_equal(find(&kept, &one, 1099), "first");
    assert_null(find(&kept, &one, 1100));
    assert_null(find(&kept, &other, 1000));
    assert_null(find(&kept, &fresh, 1000));
    assert_null(find(&kept, &any, 1000));
    put(&kept, &fresh, "second", 1050);
    assert_string_equal(find(&kept, &one, 1149), "second");
    mu__answer_cache_done(&kept);
    assert_null(find(&kept, &one, 1050));
}

/* A token of one user is no answer for another. */
TEST(test_kept_for_whom_it_is)
{
    static const char *const headers[] = {"X-Secret: a", NULL};
    static const struct mu__request_tls tls = {.certificate = "c", .key = "k"};
    struct mu__answer_cache kept = {0};
    struct mu__request one = request_of("u", "b");
    struct mu__request others[] = {one, one, one};

    others[0].headers = headers;
    others[1].tls = &tls;
    others[2].method = "PUT";
    put(&kept, &one, "mine", 1000);
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        assert_null(find(&kept, &others[i], 1010));
        put(&kept, &others[i], "another's", 1010);
    }
    assert_string_equal(find(&kept, &one, 1020), "mine");
    mu__answer_cache_done(&kept);
}

/* The one that ends first makes room. */
TEST(test_bound)
{
    struct mu__answer_cache kept = {0};
    char name[16];

    for (unsigned i = 0; i <= MU__ANSWER_CACHE_MAX; i++) {
        struct mu__request request;

        (void)snprintf(name, sizeof name, "%u", i);
        request = request_of(name, "");
        put(&kept, &request, name, 1000 + i);
    }
    for (unsigned i = 0; i <= MU__ANSWER_CACHE_MAX; i++) {
        struct mu__request request;

        (void)snprintf(name, sizeof name, "%u", i);
        request = request_of(name, "");
        if (i == 0)
            assert_null(find(&kept, &request, 1050));
        else
            assert_string_equal(find(&kept, &request, 1050), name);
    }
    mu__answer_cache_done(&kept);
}

TEST_PROGRAM()
