/* Each allocation fails once while a cluster's problems are looked for: either that is
 * said, or all is well, or some words are missing and that is known. */
#include "resolver/spec/problems.h"

#include "tests/support/fault.h"

#include "resolver/spec/cluster.h"
#include "tests/support/test.h"

static const struct {
    const char *text;
    bool is_tf_config;
} rows[] = {
    {"{\"chief\": [\"127.0.0.1:1\"], \"worker\": [\"b:1\", \"c:0\"]}", false},
    {"{\"wroker\": [\"a:1\"], \"worker\": {\"3\": \"b:1\", \"x\": 3}, \"ps\": 7}", false},
    {"{\"worker\": [\"a:1\"], \"worker\": [\"a:1\"]}", false},
    {"{\"worker\": [", false},
    {"{\"cluster\": {\"worker\": [\"a:1\", \"a:1\"]}, \"task\": {\"type\": \"ps\"}}",
     true},
};

static int look(size_t row, struct mu__problems *problems)
{
    mu_cluster *cluster = NULL;
    int rv = mu__problems_read(problems, rows[row].text, strlen(rows[row].text), "T",
                               rows[row].is_tf_config, &cluster);

    if (rv == 0)
        mu__problems_check(problems, cluster, "worker", 0);
    mu_cluster_free(cluster);
    return rv;
}

/* Whether nothing is said that is not said with memory enough, but that there is none. */
static void expect_part_of(const struct mu__problems *part,
                           const struct mu__problems *whole)
{
    for (size_t i = 0; i < part->count; i++) {
        bool is_in = strstr(part->rows[i].text, "memory") != NULL;

        for (size_t j = 0; j < whole->count && !is_in; j++)
            is_in = strcmp(part->rows[i].text, whole->rows[j].text) == 0;
        if (!is_in)
            fail_msg("without memory: %s", part->rows[i].text);
    }
}

static void walk(size_t row)
{
    struct mu__problems whole = {0};
    bool failed = true;

    assert_int_equal(look(row, &whole), 0);
    assert_false(whole.is_short);
    for (long n = 0; failed; n++) {
        struct mu__problems part = {0};
        int rv;

        fault_arm(n);
        rv = look(row, &part);
        failed = fault_disarm();
        assert_true(rv == 0 || rv == -MU_ENOMEM);
        if (rv == 0)
            expect_part_of(&part, &whole);
        if (rv == 0 && part.count < whole.count)
            assert_true(part.is_short);
        if (!failed)
            assert_int_equal(part.count, whole.count);
        mu__problems_done(&part);
    }
    mu__problems_done(&whole);
}

TEST(test_each_allocation)
{
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        walk(i);
    assert_true(sizeof rows / sizeof rows[0] > 0);
}

TEST_PROGRAM()
