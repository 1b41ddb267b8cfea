/* Trees of resolvers, and what they come to. */
#ifndef MU_TESTS_RESOLVER_FIXTURE_H
#define MU_TESTS_RESOLVER_FIXTURE_H

#include "resolver/engine/resolver.h"
#include "resolver/kinds.h"
#include "tests/support/script.h"
#include "tests/support/test.h"

static mu_error error;
static mu_resolution found;

static inline int resolve(mu_resolver *resolver, const struct script_row *rows)
{
    struct mu__requests *requests;
    struct script script;
    int rv;

    script_init(&script, rows);
    assert_int_equal(mu__requests_new(&script.sources.base, NULL, &requests), 0);
    memset(&error, 0, sizeof error);
    rv = mu__resolver_run(resolver, requests, &error, &found);
    mu__resolver_set_explained(resolver, mu__resolver_explained(resolver, requests));
    mu__resolver_set_watched_paths(resolver, requests);
    mu__requests_free(requests);
    assert_int_equal(error.code, rv);
    return rv;
}

static inline void expect_cluster(const char *json)
{
    char *got = found.cluster == NULL ? strdup("") : mu_cluster_to_json(found.cluster);

    assert_non_null(got);
    assert_string_equal(got, json);
    free(got);
    mu_cluster_free(found.cluster);
    found.cluster = NULL;
}

static inline void expect_words(const char *part)
{
    if (strstr(error.message, part) == NULL)
        fail_msg("\"%s\" is not in \"%s\"", part, error.message);
}

static inline mu_cluster *parse(const char *json)
{
    mu_cluster *cluster;

    if (json == NULL)
        return NULL;
    if (mu_cluster_parse(json, strlen(json), "test", &error, &cluster) != 0)
        fail_msg("%s", error.message);
    return cluster;
}

static inline mu_resolver *of_kind(const char *name)
{
    mu_resolver *resolver;

    assert_int_equal(
        mu__resolver_new_kind(mu__resolver_kind_find(name), &error, &resolver), 0);
    return resolver;
}

static inline mu_resolver *first_that_fits(void)
{
    mu_resolver *resolver;

    assert_int_equal(mu__resolver_new_auto(mu__resolver_kinds, &error, &resolver), 0);
    return resolver;
}

static const struct script_row tf_config[] = {
    SCRIPT_VARIABLE("TF_CONFIG",
                    "{\"cluster\": {\"worker\": [\"a:1\", \"b:2\"], \"ps\": [\"c:3\"]}, "
                    "\"task\": {\"type\": \"worker\", \"index\": 1}, "
                    "\"rpc_layer\": \"grpc\", \"environment\": \"google\"}"),
    SCRIPT_END,
};

#endif
