/* Answers that may be given again. */
#include "resolver/engine/kept_answers.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static struct mu__question ask(const char *name, const char *body)
{
    return (struct mu__question){.kind = MU__ASK_HTTP, .name = name, .body = body,
                                 .body_size = strlen(body), .keep_ms = 100};
}

static void put(struct mu__pinned_answers *kept, const struct mu__question *question,
                const char *text, uint64_t now_ms)
{
    mu__pinned_answers_put(kept, question, text, strlen(text), now_ms);
}

static const char *find(struct mu__pinned_answers *kept,
                        const struct mu__question *question, uint64_t now_ms)
{
    const struct mu__pinned_answer *row =
        mu__pinned_answers_find(kept, question, now_ms);

    return row == NULL ? NULL : row->data;
}

static void test_kept_for_a_time(void **state)
{
    struct mu__pinned_answers kept = {0};
    struct mu__question one = ask("u", "b");
    struct mu__question other = ask("u", "c");
    struct mu__question fresh = one;
    struct mu__question any = one;

    (void)state;
    fresh.again = 1;
    any.keep_ms = 0;
    put(&kept, &one, "first", 1000);
    assert_string_equal(find(&kept, &one, 1099), "first");
    assert_null(find(&kept, &one, 1100));
    assert_null(find(&kept, &other, 1000));
    assert_null(find(&kept, &fresh, 1000));
    assert_null(find(&kept, &any, 1000));
    put(&kept, &fresh, "second", 1050);
    assert_string_equal(find(&kept, &one, 1149), "second");
    mu__pinned_answers_done(&kept);
    assert_null(find(&kept, &one, 1050));
}

/* A token of one user is no answer for another. */
static void test_kept_for_whom_it_is(void **state)
{
    static const char *const headers[] = {"X-Secret: a", NULL};
    static const struct mu__ask_tls tls = {.certificate = "c", .key = "k"};
    struct mu__pinned_answers kept = {0};
    struct mu__question one = ask("u", "b");
    struct mu__question others[] = {one, one, one};

    (void)state;
    others[0].headers = headers;
    others[1].tls = &tls;
    others[2].method = "PUT";
    put(&kept, &one, "mine", 1000);
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        assert_null(find(&kept, &others[i], 1010));
        put(&kept, &others[i], "another's", 1010);
    }
    assert_string_equal(find(&kept, &one, 1020), "mine");
    mu__pinned_answers_done(&kept);
}

/* The one that ends first makes room. */
static void test_bound(void **state)
{
    struct mu__pinned_answers kept = {0};
    char name[16];

    (void)state;
    for (unsigned i = 0; i <= MU__PINNED_ANSWERS_MAX; i++) {
        struct mu__question question;

        (void)snprintf(name, sizeof name, "%u", i);
        question = ask(name, "");
        put(&kept, &question, name, 1000 + i);
    }
    for (unsigned i = 0; i <= MU__PINNED_ANSWERS_MAX; i++) {
        struct mu__question question;

        (void)snprintf(name, sizeof name, "%u", i);
        question = ask(name, "");
        if (i == 0)
            assert_null(find(&kept, &question, 1050));
        else
            assert_string_equal(find(&kept, &question, 1050), name);
    }
    mu__pinned_answers_done(&kept);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_kept_for_a_time),
        cmocka_unit_test(test_kept_for_whom_it_is),
        cmocka_unit_test(test_bound),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
