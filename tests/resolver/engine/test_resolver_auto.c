/* The first resolver that fits, and resolvers of the program's own. */
#include "resolver/kinds.h"
#include "tests/resolver/engine/resolver_fixture.h"

#include <stdint.h>
#include <stdio.h>

/* ---- The first that fits ---- */

static const mu_value *explained(mu_value *all, const char *name)
{
    for (size_t i = 0; i < mu_value_count(all); i++) {
        const mu_value *one = mu_value_at(all, i);
        const char *text;
        size_t size;

        assert_int_equal(
            mu_value_get_string(mu_value_find(one, "resolver"), &text, &size), 0);
        if (strcmp(text, name) == 0)
            return one;
    }
    fail_msg("%s is not explained", name);
    return NULL;
}

static const char *field(const mu_value *one, const char *key)
{
    const char *text;
    size_t size;

    assert_int_equal(mu_value_get_string(mu_value_find(one, key), &text, &size), 0);
    return text;
}

static const char *requested(const mu_value *one, size_t i)
{
    const char *text;
    size_t size;

    assert_int_equal(mu_value_get_string(mu_value_at(mu_value_find(one, "asked"), i),
                                         &text, &size),
                     0);
    return text;
}

TEST(test_auto_takes_the_first)
{
    mu_resolver *resolver = first_that_fits();
    mu_value *all;

    assert_int_equal(resolve(resolver, tf_config), 0);
    assert_string_equal(found.source, "tf_config");
    mu_cluster_free(found.cluster);
    all = mu_resolver_explain(resolver);
    assert_string_equal(field(explained(all, "tf_config"), "state"), "taken");
    assert_string_equal(field(explained(all, "tf_config"), "why"),
                        "this process is worker:1");
    assert_string_equal(requested(explained(all, "tf_config"), 0),
                        "variable TF_CONFIG: set, 140 bytes");
    for (size_t i = 1; mu__resolver_kinds[i] != NULL; i++)
        assert_string_equal(field(explained(all, mu__resolver_kinds[i]->name), "state"),
                            "not asked");
    mu_value_free(all);
    mu_resolver_free(resolver);
}

TEST(test_auto_finds_nobody)
{
    mu_resolver *resolver = first_that_fits();
    mu_value *all;

    assert_int_equal(resolve(resolver, NULL), -MU_ENOTFOUND);
    expect_words("no resolver recognises where this process runs (tf_config");
    all = mu_resolver_explain(resolver);
    assert_string_equal(field(explained(all, "tf_config"), "state"), "not here");
    assert_string_equal(field(explained(all, "tf_config"), "why"),
                        "TF_CONFIG is not set");
    assert_string_equal(requested(explained(all, "tf_config"), 0),
                        "variable TF_CONFIG: not set");
    mu_value_free(all);
    mu_resolver_free(resolver);
}

TEST(test_auto_has_settings)
{
    static const struct script_row rows[] = {
        SCRIPT_VARIABLE("OTHER", "{\"cluster\": {\"chief\": [\"a:1\"]}}"), SCRIPT_END};
    mu_resolver *resolver = first_that_fits();

    assert_int_equal(mu_resolver_set(resolver, "tf_config.variable", "OTHER", &error), 0);
    assert_int_equal(resolve(resolver, rows), 0);
    expect_cluster("{\"chief\":[\"a:1\"]}");
    mu_resolver_free(resolver);
}

/* What was detected and then fails is not passed over. */
TEST(test_auto_failure_is_explained)
{
    static const struct script_row rows[] = {
        SCRIPT_VARIABLE("TF_CONFIG", "{\"cluster\": 7}"), SCRIPT_END};
    mu_resolver *resolver = first_that_fits();
    mu_value *all;

    assert_int_equal(resolve(resolver, rows), -MU_EINVALID);
    all = mu_resolver_explain(resolver);
    assert_string_equal(field(explained(all, "tf_config"), "state"), "failed");
    assert_non_null(strstr(field(explained(all, "tf_config"), "why"), "cluster"));
    mu_value_free(all);
    mu_resolver_free(resolver);
}

/* "Not found" is kept for: nobody recognises this place. */
TEST(test_auto_misses_something)
{
    static const struct script_row rows[] = {SCRIPT_VARIABLE("SLURM_PROCID", "0"),
                                             SCRIPT_END};
    static const struct script_row nothing[] = {SCRIPT_END};
    mu_resolver *resolver = first_that_fits();

    assert_int_equal(resolve(resolver, rows), -MU_EPRECONDITION);
    assert_int_equal(resolve(resolver, nothing), -MU_ENOTFOUND);
    mu_resolver_free(resolver);
}

TEST(test_explain_before_a_run)
{
    mu_resolver *resolver = first_that_fits();
    mu_value *all = mu_resolver_explain(resolver);

    assert_int_equal(mu_value_count(all), 0);
    mu_value_free(all);
    mu_resolver_free(resolver);
}

/* ---- The program's own ---- */

struct own {
    struct mu__own_kind kind;
    int here; /* what detect answers */
    int rv;   /* what resolve returns */
    const char *words;
    unsigned detected;
    unsigned resolved;
};

static void own_ref(struct mu__own_kind *kind)
{
    kind->refs++;
}

static void own_unref(struct mu__own_kind *kind)
{
    kind->refs--;
}

static int own_detect(void *user, mu_error *ret_why)
{
    struct own *own = user;

    own->detected++;
    if (own->here == 0)
        (void)mu_error_set(ret_why, -MU_ENOTFOUND, "no flag on the roof");
    return own->here;
}

static int own_resolve(void *user, int64_t timeout_ms, mu_error *ret_error,
                       mu_resolution *ret_resolution)
{
    struct own *own = user;

    assert_int_equal(timeout_ms, 0);
    own->resolved++;
    if (own->words != NULL)
        (void)mu_error_set(ret_error, own->rv, "%s", own->words);
    if (own->rv == 0)
        ret_resolution->cluster = parse("{\"worker\":[\"a:1\",\"b:1\"]}");
    (void)snprintf(ret_resolution->task_type, sizeof ret_resolution->task_type, "%s",
                   own->rv == 0 ? "worker" : "");
    ret_resolution->task_index = 1;
    return own->rv;
}

static void own_init(struct own *own, const char *name)
{
    *own = (struct own){.here = 1};
    (void)snprintf(own->kind.name, sizeof own->kind.name, "%s", name);
    own->kind.kind = (mu_resolver_kind){.name = own->kind.name,
                                        .user = own,
                                        .detect = own_detect,
                                        .resolve = own_resolve};
    own->kind.ref = own_ref;
    own->kind.unref = own_unref;
    own->kind.refs = 1;
}

TEST(test_own_is_called_once)
{
    mu_resolver *members[2];
    mu_resolver *whole;
    struct own own;

    own_init(&own, "mine");
    assert_int_equal(mu__resolver_new_own(&own.kind, &error, &members[0]), 0);
    members[1] = first_that_fits();
    assert_int_equal(mu_resolver_new_union(members, 2, &error, &whole), 0);
    assert_int_equal(resolve(whole, NULL), -MU_ENOTFOUND);
    assert_int_equal(own.resolved, 1);
    assert_int_equal(resolve(members[0], NULL), 0);
    assert_int_equal(own.resolved, 2);
    assert_string_equal(found.source, "mine");
    assert_int_equal(found.task_index, 1);
    expect_cluster("{\"worker\":[\"a:1\",\"b:1\"]}");
    mu_resolver_free(whole);
    assert_int_equal(own.kind.refs, 1);
}

/* What such a function returns is not believed. */
TEST(test_own_returns_nonsense)
{
    static const struct {
        int rv;
        const char *words;
        int expected;
        const char *message;
    } rows[] = {
        {7, NULL, -MU_EINTERNAL, "resolver mine: expected 0 or an error, got 7"},
        {-MU_EAGAIN, "later", -MU_EUNAVAILABLE, "later"},
        {-MU_EPERMISSION, NULL, -MU_EPERMISSION, "resolver mine: permission denied"},
        {-MU_EUNAVAILABLE, "no ship yet", -MU_EUNAVAILABLE, "no ship yet"},
    };
    mu_resolver *resolver;
    struct own own;

    own_init(&own, "mine");
    assert_int_equal(mu__resolver_new_own(&own.kind, &error, &resolver), 0);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        own.rv = rows[i].rv;
        own.words = rows[i].words;
        assert_int_equal(resolve(resolver, NULL), rows[i].expected);
        assert_string_equal(error.message, rows[i].message);
    }
    mu_resolver_free(resolver);
}

/* Nor what would move the cursor of who reads it, wherever it is from. */
TEST(test_control_characters)
{
    static const struct {
        const char *text;
        const char *words;
    } rows[] = {
        {"{\"rpc_layer\": \"g\\u001b[2J\"}",
         "resolver tf_config: rpc layer: expected no control characters, got "
         "\"g\\x1b[2J\""},
        {"{\"environment\": \"a\\nb\"}", "environment: expected no control"},
        {"{\"session_master\": \"m\\u009b2J\"}",
         "master: expected no control characters, got \"m\\xc2\\x9b2J\""},
    };
    mu_resolver *resolver = of_kind("tf_config");

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const struct script_row script[] = {SCRIPT_VARIABLE("TF_CONFIG", rows[i].text),
                                            SCRIPT_END};

        assert_int_equal(resolve(resolver, script), -MU_EINVALID);
        expect_words(rows[i].words);
    }
    mu_resolver_free(resolver);
}

TEST(test_own_come_first)
{
    mu_resolver *resolver = first_that_fits();
    struct mu__own_kind *kinds[2];
    struct own away;
    struct own here;
    mu_value *all;

    own_init(&away, "away");
    own_init(&here, "here");
    away.here = 0;
    kinds[0] = &away.kind;
    kinds[1] = &here.kind;
    assert_int_equal(mu__resolver_offer_own(resolver, kinds, 2), 0);
    assert_int_equal(resolve(resolver, tf_config), 0);
    assert_string_equal(found.source, "here");
    mu_cluster_free(found.cluster);
    assert_int_equal(away.detected, 1);
    assert_int_equal(away.resolved, 0);
    all = mu_resolver_explain(resolver);
    assert_string_equal(field(mu_value_at(all, 0), "resolver"), "away");
    assert_string_equal(field(mu_value_at(all, 0), "state"), "not here");
    assert_string_equal(field(mu_value_at(all, 0), "why"), "no flag on the roof");
    assert_string_equal(field(mu_value_at(all, 1), "state"), "taken");
    assert_string_equal(field(explained(all, "tf_config"), "state"), "not asked");
    mu_value_free(all);

    /* One that only goes by its name. */
    here.kind.kind.detect = NULL;
    assert_int_equal(resolve(resolver, tf_config), 0);
    assert_string_equal(found.source, "tf_config");
    mu_cluster_free(found.cluster);
    mu_resolver_free(resolver);
    assert_int_equal(here.kind.refs, 1);
}

TEST_PROGRAM()
