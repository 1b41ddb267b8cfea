/* Host lists by rows; tests/real/resolver/test_host_list.c compares with Slurm's own
 * command. */
#include "resolver/spec/host_list.h"
#include "tests/support/test.h"

#include <muster/cluster.h>

#define COUNT(array) (sizeof(array) / sizeof(array)[0])

static char *joined(const struct mu__host_list *list)
{
    size_t size = list->count * (MU__HOST_BYTES_MAX + 2) + 1;
    char *text = calloc(size, 1);
    size_t used = 0;

    assert_non_null(text);
    for (size_t i = 0; i < list->count; i++)
        used += (size_t)snprintf(text + used, size - used, "%s%s", i == 0 ? "" : " ",
                                 list->names[i]);
    return text;
}

TEST(test_expands)
{
    static const struct {
        const char *text;
        const char *hosts;
    } rows[] = {
        {"", ""},
        {" \n", ""},
        {"n1", "n1"},
        {"n[1-2],m5,o[3-4,6,7-9]", "n1 n2 m5 o3 o4 o6 o7 o8 o9"},
        {"n[09-10]", "n09 n10"},
        {"n[9-10]", "n9 n10"},
        {"n[0001-0003]", "n0001 n0002 n0003"},
        {"n[001-002,3]", "n001 n002 n3"},
        {"n[08-0010]", "n08 n09 n10"},
        {"n[099-101]", "n099 n100 n101"},
        {"n[01-1]", "n01"},
        {"r[1-2]n[01-02]-ib", "r1n01-ib r1n02-ib r2n01-ib r2n02-ib"},
        {"n[1-3]b[2,1]", "n1b2 n1b1 n2b2 n2b1 n3b2 n3b1"},
        {"a[1-2]b[1-2]c[1-2]", "a1b1c1 a1b1c2 a2b1c1 a2b1c2 a1b2c1 a1b2c2 a2b2c1 a2b2c2"},
        {"[1-2]", "1 2"},
        {"127.0.0.[1-2]", "127.0.0.1 127.0.0.2"},
        {"n[1-2].rack[3].example", "n1.rack3.example n2.rack3.example"},
        {"n1,n1,n[1,1-2]", "n1 n1 n1 n1 n2"},
        {"n1 , n2\nn3\tn4\n", "n1 n2 n3 n4"},
        {"n[ 1 - 2 , 4 ]", "n1 n2 n4"},
        {"n[[1-2],3]", "n1 n2 n3"},
        {"n[7,[1,[2-3]],[5]]x", "n7x n1x n2x n3x n5x"},
        {"fd00::2,n_1", "fd00::2 n_1"},
        {"n[0]", "n0"},
        {"n[999999999999999998-999999999999999999]",
         "n999999999999999998 n999999999999999999"},
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        struct mu__host_list list;
        mu_error error;
        char *text;

        if (mu__host_list_parse(rows[i].text, strlen(rows[i].text), "LIST", &error,
                                &list) != 0)
            fail_msg("%s: %s", rows[i].text, error.message);
        text = joined(&list);
        assert_string_equal(text, rows[i].hosts);
        free(text);
        mu__host_list_done(&list);
    }
}

TEST(test_refuses)
{
    static const struct {
        const char *text;
        const char *words;
    } rows[] = {
        {"n[1-", "LIST: at 5 (\"n[1-\"): expected a number"},
        {"n[1-2", "LIST: at 6 (\"n[1-2\"): expected \"]\""},
        {"m1,n[", "LIST: at 6 (\"n[\"): expected a number"},
        {"n[2-1]", "LIST: at 5 (\"n[2-1\"): expected a number that is not below the "
                   "first one"},
        {"n[]", "LIST: at 3 (\"n[]\"): expected a number"},
        {"n[1,]", "LIST: at 5 (\"n[1,]\"): expected a number"},
        {"n[-1]", "LIST: at 3 (\"n[-\"): expected a number"},
        {"n[1-]", "LIST: at 5 (\"n[1-]\"): expected a number"},
        {"n[a-b]", "LIST: at 3 (\"n[a\"): expected a number"},
        {"n[1-2-3]", "LIST: at 6 (\"n[1-2-\"): expected \"]\""},
        {"n[1x]", "LIST: at 4 (\"n[1x\"): expected \"]\""},
        {"n[[1,2]", "LIST: at 8 (\"n[[1,2]\"): expected \"]\""},
        {"n[1-[2,3]]", "LIST: at 5 (\"n[1-[\"): expected a number"},
        {"n]", "LIST: at 2 (\"n]\"): expected letters, digits"},
        {"n{1-2}", "LIST: at 2 (\"n{\"): expected letters, digits"},
        {"n1;n2", "LIST: at 3 (\"n1;\"): expected letters, digits"},
        {"n1,,n2", "LIST: at 4 (\",\"): expected a host's name"},
        {",n1", "LIST: at 1 (\",\"): expected a host's name"},
        {"n1,", "LIST: at 4 (\"\"): expected a host's name"},
        {"n[9999999999999999999]", "expected a number of at most 18 digits"},
        {"[[[[[[[[[1]]]]]]]]]", "expected brackets of at most 8 levels"},
        {"[1][1][1][1][1][1][1][1][1]", "expected at most 8 brackets in a name"},
        {"n[0-65536]", "LIST: expected at most 65536 hosts"},
        {"n[0-999999999999999999]", "LIST: expected at most 65536 hosts"},
        {"n[1-300]m[1-300]", "LIST: expected at most 65536 hosts"},
        {"n[1-65536],m", "LIST: expected at most 65536 hosts"},
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        struct mu__host_list list;
        mu_error error = {0};
        int rv = mu__host_list_parse(rows[i].text, strlen(rows[i].text), "LIST", &error,
                                     &list);

        if (rv == 0 || error.code != rv || strstr(error.message, rows[i].words) == NULL)
            fail_msg("%s: %d, \"%s\"", rows[i].text, rv, error.message);
    }
}

TEST(test_long_names)
{
    char text[MU__HOST_BYTES_MAX + 16];
    struct mu__host_list list;
    mu_error error;

    memset(text, 'a', MU__HOST_BYTES_MAX);
    assert_int_equal(mu__host_list_parse(text, MU__HOST_BYTES_MAX, "LIST", &error, &list),
                     0);
    assert_int_equal(strlen(list.names[0]), MU__HOST_BYTES_MAX);
    mu__host_list_done(&list);
    memcpy(text + MU__HOST_BYTES_MAX - 1, "[9-10]", 6);
    assert_int_equal(mu__host_list_parse(text, MU__HOST_BYTES_MAX + 5, "LIST", &error,
                                         &list),
                     -MU_EINVALID);
    assert_non_null(strstr(error.message, "names of at most 255 bytes"));
}

TEST(test_as_many_as_may_be)
{
    struct mu__host_list list;
    mu_error error;
    const char *text = "n[1-256]m[001-256]";

    assert_int_equal(mu__host_list_parse(text, strlen(text), "LIST", &error, &list), 0);
    assert_int_equal(list.count, MU_CLUSTER_TASKS_MAX);
    assert_string_equal(list.names[256], "n2m001");
    assert_int_equal(mu__host_list_find(&list, "n256m256", 8), MU_CLUSTER_TASKS_MAX - 1);
    assert_int_equal(mu__host_list_find(&list, "n256m25", 7), list.count);
    mu__host_list_done(&list);
}

TEST_PROGRAM()
