/* What is different between two cluster specs, and what of it a job can take. */
#include "resolver/spec/changes.h"
#include "tests/support/test.h"

static mu_cluster *parse(const char *json)
{
    mu_cluster *cluster = NULL;
    mu_error error;

    if (mu_cluster_parse(json, strlen(json), "test", &error, &cluster) != 0)
        fail_msg("%s: %s", json, error.message);
    return cluster;
}

/* Each change as "+worker:2@w:2 ", -worker... or >worker...; "!" before one that is
 * refused. */
static const struct {
    const char *before;
    const char *after;
    const char *changes;
    const char *taken; /* NULL: the same as `after` */
} rows[] = {
    {"{}", "{}", "", NULL},
    {"{\"chief\":[\"c:1\"],\"worker\":[\"w:1\"]}",
     "{\"worker\":{\"0\":\"tcp://w:1\"},\"chief\":{\"0\":\"c:1\"}}", "", NULL},
    {"{}", "{\"worker\":[\"w:1\"]}", "+worker:0@w:1 ", NULL},
    {"{\"chief\":[\"c:1\"],\"worker\":[\"w:1\",\"w:2\"]}",
     "{\"chief\":[\"c:1\"],\"worker\":{\"1\":\"w:9\",\"3\":\"w:3\",\"10\":\"w:4\"}}",
     "-worker:0@w:1 >worker:1@w:9 +worker:3@w:3 +worker:10@w:4 ", NULL},
    {"{\"chief\":[\"c:1\"],\"worker\":[\"w:1\",\"w:2\"]}",
     "{\"chief\":[\"c:1\"],\"worker\":[\"w:2\",\"w:1\"]}", ">worker:0@w:2 >worker:1@w:1 ",
     NULL},
    {"{\"chief\":[\"c:1\"],\"client\":[\"k:1\"],\"evaluator\":[\"e:1\"],"
     "\"ps\":[\"p:1\"],\"worker\":[\"w:1\"]}",
     "{\"chief\":[\"c:2\"],\"client\":{\"1\":\"k:1\"},\"ps\":[\"p:2\"],"
     "\"worker\":[\"w:2\"]}",
     ">chief:0@c:2 -client:0@k:1 +client:1@k:1 -evaluator:0@e:1 >ps:0@p:2 >worker:0@w:2 ",
     NULL},
    {"{\"chief\":[\"c:1\"],\"ps\":[\"p:1\",\"p:2\"]}",
     "{\"chief\":[\"c:1\"],\"ps\":{\"0\":\"p:1\",\"2\":\"p:3\"},\"worker\":[\"w:1\"]}",
     "!-ps:1@p:2 +ps:2@p:3 +worker:0@w:1 ",
     "{\"chief\":[\"c:1\"],\"ps\":[\"p:1\",\"p:2\",\"p:3\"],\"worker\":[\"w:1\"]}"},
    {"{\"chief\":[\"c:1\"]}", "{\"chief\":[\"c:1\"],\"ps\":[\"p:1\"]}", "!+ps:0@p:1 ",
     "{\"chief\":[\"c:1\"]}"},
    {"{\"chief\":[\"c:1\"],\"worker\":[\"w:1\"]}", "{\"worker\":[\"w:2\"]}",
     "!-chief:0@c:1 >worker:0@w:2 ", "{\"chief\":[\"c:1\"],\"worker\":[\"w:2\"]}"},
    {"{\"worker\":[\"w:1\",\"w:2\"]}",
     "{\"chief\":[\"c:1\"],\"worker\":{\"1\":\"w:2\",\"2\":\"w:3\"}}",
     "!+chief:0@c:1 !-worker:0@w:1 +worker:2@w:3 ",
     "{\"worker\":[\"w:1\",\"w:2\",\"w:3\"]}"},
    {"{\"chief\":[\"c:1\"],\"worker\":[\"w:1\"]}", "{}", "!-chief:0@c:1 -worker:0@w:1 ",
     "{\"chief\":[\"c:1\"]}"},
};

static void write_changes(const struct mu__changes *changes, char *out, size_t size)
{
    size_t refused = 0;
    size_t at = 0;

    out[0] = '\0';
    for (size_t i = 0; i < changes->count; i++) {
        const struct mu__change *row = &changes->rows[i];

        refused += row->refused != NULL;
        at += (size_t)snprintf(out + at, size - at, "%s%c%s:%d@%s ",
                               row->refused != NULL ? "!" : "", "+->"[row->kind],
                               row -> type, row -> index, row -> address);
        assert_int_equal(strncmp(row->url, "tcp://", 6), 0);
    }
    assert_int_equal(changes->refused_count, refused);
}

TEST(test_rows)
{
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        mu_cluster *before = parse(rows[i].before);
        mu_cluster *after = parse(rows[i].after);
        mu_cluster *wanted = parse(rows[i].taken == NULL ? rows[i].after : rows[i].taken);
        mu_cluster *taken = NULL;
        struct mu__changes changes;
        char words[512];

        assert_int_equal(mu__changes_find(before, after, &changes), 0);
        write_changes(&changes, words, sizeof words);
        assert_string_equal(words, rows[i].changes);
        assert_int_equal(mu__changes_take(after, &changes, NULL, &taken), 0);
        assert_true(mu_cluster_equal(taken, wanted));
        mu__changes_done(&changes);

        /* What was taken is not different any more, but for what is refused. */
        assert_int_equal(mu__changes_find(taken, after, &changes), 0);
        assert_int_equal(changes.count, changes.refused_count);
        mu__changes_done(&changes);
        mu_cluster_free(before);
        mu_cluster_free(after);
        mu_cluster_free(wanted);
        mu_cluster_free(taken);
    }
}

/* A server that stays has the address of a worker that comes. */
TEST(test_address_twice)
{
    mu_cluster *before = parse("{\"chief\":[\"c:1\"],\"ps\":[\"p:1\"]}");
    mu_cluster *after = parse("{\"chief\":[\"c:1\"],\"worker\":[\"p:1\"]}");
    mu_cluster *taken = NULL;
    struct mu__changes changes;
    mu_error error;

    assert_int_equal(mu__changes_find(before, after, &changes), 0);
    assert_int_equal(mu__changes_take(after, &changes, &error, &taken), -MU_EEXISTS);
    assert_non_null(strstr(error.message, "p:1"));
    assert_null(taken);
    mu__changes_done(&changes);
    mu_cluster_free(before);
    mu_cluster_free(after);
}

TEST(test_nothing)
{
    mu_cluster *after = parse("{\"chief\":[\"c:1\"],\"worker\":[\"w:1\"]}");
    struct mu__changes changes;

    assert_int_equal(mu__changes_find(NULL, NULL, &changes), 0);
    assert_int_equal(changes.count, 0);
    mu__changes_done(&changes);
    assert_int_equal(mu__changes_find(NULL, after, &changes), 0);
    assert_int_equal(changes.count, 2);
    mu__changes_done(&changes);
    mu_cluster_free(after);
}

TEST_PROGRAM()
