/* What the tests of cluster specs share. */
#ifndef MU_TESTS_CLUSTER_FIXTURE_H
#define MU_TESTS_CLUSTER_FIXTURE_H

#include <muster/cluster.h>

#include "resolver/spec/cluster.h"
#include "tests/support/test.h"

#define COUNT(array) (sizeof(array) / sizeof(array)[0])

/* Parts that an error's message must contain; NULL ends the list. */
#define PARTS_MAX 5

static inline void check_error(const char *what, int rv, const mu_error *error,
                               int expected, const char *const *parts)
{
    if (rv != expected)
        fail_msg("%s: returned %s, expected %s: %s", what, mu_err_name(rv),
                 mu_err_name(expected), error->message);
    assert_int_equal(error->code, expected);
    for (size_t i = 0; i < PARTS_MAX && parts[i] != NULL; i++) {
        if (strstr(error->message, parts[i]) == NULL)
            fail_msg("%s: no <%s> in <%s>", what, parts[i], error->message);
    }
}

static inline mu_cluster *parse(const char *json)
{
    mu_cluster *cluster = NULL;
    mu_error error;

    if (mu_cluster_parse(json, strlen(json), "spec", &error, &cluster) != 0)
        fail_msg("%s: %s", json, error.message);
    return cluster;
}

#define LABEL_64 "a234567890123456789012345678901234567890123456789012345678901234"
#define LABELS_128 LABEL_64 LABEL_64
#define LABEL_60 "a23456789012345678901234567890123456789012345678901234567890"
#define HOST_254 LABEL_60 "." LABEL_60 "." LABEL_60 "." LABEL_60 ".abcdefghij"

#endif
