/* Resolvers as the program holds them: fixed, with settings, unions, their masters. */
#include "tests/resolver/engine/resolver_fixture.h"

#include <stdio.h>

static mu_resolver *fixed(const char *json, const char *master, const char *type,
                          int index)
{
    mu_cluster *cluster = parse(json);
    mu_resolver *resolver;

    if (mu_resolver_new_static(cluster, master, type, index, &error, &resolver) != 0)
        fail_msg("%s", error.message);
    mu_cluster_free(cluster);
    return resolver;
}

/* ---- Fixed ---- */

TEST(test_static)
{
    mu_resolver *resolver = fixed("{\"worker\":[\"a:1\",\"b:2\"]}", NULL, "worker", 0);

    assert_int_equal(resolve(resolver, NULL), 0);
    assert_string_equal(found.task_type, "worker");
    assert_int_equal(found.task_index, 0);
    assert_string_equal(found.source, "static");
    expect_cluster("{\"worker\":[\"a:1\",\"b:2\"]}");
    mu_resolver_free(resolver);
}

TEST(test_static_accelerators)
{
    mu_resolver *resolver = fixed(NULL, NULL, NULL, -1);

    assert_int_equal(mu_resolver_set_accelerators(resolver, "GPU", 4, &error), 0);
    assert_int_equal(resolve(resolver, NULL), 0);
    assert_string_equal(found.accelerator, "GPU");
    assert_int_equal(found.accelerators, 4);
    assert_int_equal(mu_resolver_set_accelerators(resolver, "GPU", -1, &error),
                     -MU_EINVALID);
    assert_int_equal(mu_resolver_set_accelerators(resolver, "", 1, &error), -MU_EINVALID);
    expect_words("accelerators: expected a kind, and a number of 0 or more");
    assert_int_equal(mu_resolver_set_accelerators(NULL, "GPU", 1, NULL), -MU_EINVALID);
    assert_int_equal(mu_resolver_set_accelerators(resolver, NULL, 0, &error), 0);
    assert_int_equal(resolve(resolver, NULL), 0);
    assert_string_equal(found.accelerator, "");
    assert_int_equal(found.accelerators, -1);
    mu_resolver_free(resolver);
}

TEST(test_static_of_nothing)
{
    mu_resolver *resolver = fixed(NULL, NULL, NULL, -1);

    assert_int_equal(resolve(resolver, NULL), 0);
    assert_string_equal(found.task_type, "");
    assert_int_equal(found.task_index, -1);
    expect_cluster("");
    mu_resolver_free(resolver);
}

TEST(test_static_misuse)
{
    char master[400];
    mu_resolver *resolver;

    assert_int_equal(mu_resolver_new_static(NULL, NULL, "Worker", 0, &error, &resolver),
                     -MU_EINVALID);
    expect_words("worker");
    memset(master, 'm', sizeof master - 1);
    master[sizeof master - 1] = '\0';
    assert_int_equal(mu_resolver_new_static(NULL, master, NULL, -1, &error, &resolver),
                     -MU_EINVALID);
    expect_words("master: expected at most 300 bytes, got 399");
    assert_int_equal(mu_resolver_new_static(NULL, "m\n:1", NULL, -1, &error, &resolver),
                     -MU_EINVALID);
    expect_words("master: expected no control characters");
    assert_int_equal(mu_resolver_new_static(NULL, NULL, NULL, -2, &error, &resolver),
                     -MU_EINVALID);
    expect_words("task index: expected 0 to 999999, or -1 for none, got -2");
    assert_int_equal(mu_resolver_new_static(NULL, NULL, NULL, -1, &error, NULL),
                     -MU_EINVALID);
    expect_words("expected room for the resolver, got NULL");
}

/* ---- What is set ---- */

TEST(test_accelerators_of_several_kinds)
{
    mu_resolver *resolver = of_kind("tf_config");
    char kind[16];

    assert_int_equal(mu_resolver_set_accelerators(resolver, "GPU", 2, &error), 0);
    assert_int_equal(mu_resolver_set_accelerators(resolver, "TPU", 1, &error), 0);
    assert_int_equal(mu_resolver_set_accelerators(resolver, "GPU", 4, &error), 0);
    assert_int_equal(resolve(resolver, tf_config), 0);
    mu_cluster_free(found.cluster);
    assert_int_equal(found.accelerators_set_count, 2);
    assert_string_equal(found.accelerators_set[0].kind, "GPU");
    assert_int_equal(found.accelerators_set[0].count, 4);
    assert_string_equal(found.accelerators_set[1].kind, "TPU");
    assert_int_equal(found.accelerators_set[1].count, 1);
    for (int i = 2; i < MU_ACCELERATOR_KINDS_MAX; i++) {
        (void)snprintf(kind, sizeof kind, "K%d", i);
        assert_int_equal(mu_resolver_set_accelerators(resolver, kind, 1, &error), 0);
    }
    assert_int_equal(mu_resolver_set_accelerators(resolver, "more", 1, &error),
                     -MU_EEXHAUSTED);
    expect_words("expected at most 8 kinds, \"more\" is one more");
    assert_int_equal(mu_resolver_set_accelerators(resolver, NULL, 0, &error), 0);
    assert_int_equal(resolve(resolver, tf_config), 0);
    mu_cluster_free(found.cluster);
    assert_int_equal(found.accelerators_set_count, 0);
    mu_resolver_free(resolver);
}

/* The master of a tpu is its first host, unless the task was set. */
TEST(test_master_of_a_task_that_was_set)
{
    static const struct script_row hosts[] = {
        SCRIPT_VARIABLE("TPU_WORKER_HOSTNAMES", "10.0.0.1,10.0.0.2,10.0.0.3"),
        SCRIPT_VARIABLE("TPU_WORKER_ID", "1"), SCRIPT_END};
    mu_resolver *resolver = of_kind("tpu");
    char master[MU_MASTER_BYTES];

    assert_int_equal(resolve(resolver, hosts), 0);
    assert_string_equal(found.master, "grpc://10.0.0.1:8482");
    mu_cluster_free(found.cluster);

    assert_int_equal(mu_resolver_set_task_type(resolver, "worker", &error), 0);
    assert_int_equal(mu_resolver_set_task_index(resolver, 2, &error), 0);
    assert_int_equal(resolve(resolver, hosts), 0);
    assert_int_equal(mu_resolution_master(&found, NULL, -1, NULL, &error, master), 0);
    assert_string_equal(master, "grpc://10.0.0.3:8482");
    mu_cluster_free(found.cluster);

    assert_int_equal(mu_resolver_set_task_index(resolver, 3, &error), 0);
    assert_int_equal(resolve(resolver, hosts), 0);
    assert_int_equal(mu_resolution_master(&found, NULL, -1, NULL, &error, master),
                     -MU_ENOTFOUND);
    expect_words("task worker:3 is not in the cluster");
    mu_cluster_free(found.cluster);
    mu_resolver_free(resolver);
}

TEST(test_what_is_set_stands)
{
    mu_resolver *resolver = of_kind("tf_config");

    assert_int_equal(mu_resolver_set_task_type(resolver, "ps", &error), 0);
    assert_int_equal(mu_resolver_set_task_index(resolver, 0, &error), 0);
    assert_int_equal(mu_resolver_set_rpc_layer(resolver, "", &error), 0);
    assert_int_equal(mu_resolver_set_environment(resolver, "", &error), 0);
    assert_int_equal(resolve(resolver, tf_config), 0);
    mu_cluster_free(found.cluster);
    assert_string_equal(found.task_type, "ps");
    assert_int_equal(found.task_index, 0);
    assert_string_equal(found.rpc_layer, "");
    assert_string_equal(found.environment, "");

    assert_int_equal(mu_resolver_set_task_type(resolver, NULL, &error), 0);
    assert_int_equal(mu_resolver_set_task_index(resolver, -1, &error), 0);
    assert_int_equal(mu_resolver_set_rpc_layer(resolver, NULL, &error), 0);
    assert_int_equal(mu_resolver_set_environment(resolver, NULL, &error), 0);
    assert_int_equal(resolve(resolver, tf_config), 0);
    mu_cluster_free(found.cluster);
    assert_string_equal(found.task_type, "worker");
    assert_int_equal(found.task_index, 1);
    assert_string_equal(found.rpc_layer, "grpc");
    assert_string_equal(found.environment, "google");
    mu_resolver_free(resolver);
}

TEST(test_setting_misuse)
{
    mu_resolver *one = of_kind("tf_config");
    mu_resolver *any = first_that_fits();
    mu_resolver *none = fixed(NULL, NULL, NULL, -1);

    assert_int_equal(mu_resolver_set_task_type(one, "wroker", &error), -MU_EINVALID);
    expect_words("worker");
    assert_int_equal(mu_resolver_set_task_index(one, -2, &error), -MU_EINVALID);
    assert_int_equal(mu_resolver_set_rpc_layer(one, "0123456789abcdef", &error),
                     -MU_EINVALID);
    assert_int_equal(mu_resolver_set_environment(one, "a\nb", &error), -MU_EINVALID);
    expect_words("no control characters, got \"a\\x0ab\"");
    assert_int_equal(mu_resolver_set(one, "varable", "X", &error), -MU_EINVALID);
    expect_words("did you mean \"variable\"?");
    assert_int_equal(mu_resolver_set(one, "", "X", &error), -MU_EINVALID);
    expect_words("resolver tf_config has no setting \"\"; expected variable");
    assert_int_equal(mu_resolver_set(one, "tf_config.variable", "X", &error), 0);
    assert_int_equal(mu_resolver_set(any, "variable", "X", &error), -MU_EINVALID);
    expect_words("expected NAME.SETTING");
    assert_int_equal(mu_resolver_set(any, "nobody.variable", "X", &error), -MU_EINVALID);
    assert_int_equal(mu_resolver_set(any, "tf_config.variable", "X", &error), 0);
    assert_int_equal(mu_resolver_set(none, "variable", "X", &error), -MU_EINVALID);
    expect_words("resolver static has no settings");
    assert_int_equal(mu_resolver_set(NULL, "a", "b", &error), -MU_EINVALID);
    assert_int_equal(mu_resolver_set(one, NULL, "b", &error), -MU_EINVALID);
    assert_int_equal(mu_resolver_set_task_type(NULL, "ps", NULL), -MU_EINVALID);
    mu_resolver_on_progress(NULL, NULL, NULL);
    assert_null(mu_resolver_explain(NULL));
    mu_resolver_free(NULL);
    mu_resolver_free(one);
    mu_resolver_free(any);
    mu_resolver_free(none);
}

/* gce's task type is a setting, as that of no other resolver is. */
TEST(test_type_that_is_a_setting)
{
    struct mu__resolver_kind kind = mu__resolver_tf_config;
    mu_resolver *resolver;

    kind.name = "fixed_type";
    kind.type_is_setting = true;
    assert_int_equal(mu__resolver_new_kind(&kind, &error, &resolver), 0);
    assert_int_equal(mu_resolver_set_task_type(resolver, "ps", &error),
                     -MU_EPRECONDITION);
    expect_words("the task type of resolver fixed_type is a setting of its own");
    assert_int_equal(mu_resolver_set_task_index(resolver, 0, &error), 0);
    mu_resolver_free(resolver);
}

/* ---- Unions ---- */

TEST(test_unions)
{
    static const struct {
        const char *what;
        const char *members[3];
        const char *cluster;
        int rv;
        const char *words;
    } rows[] = {
        /* clang-format off */
        {"lists follow each other",
         {"{\"worker\":[\"a:1\",\"b:1\"]}", "{\"worker\":[\"c:1\"],\"ps\":[\"d:1\"]}"},
         "{\"ps\":[\"d:1\"],\"worker\":[\"a:1\",\"b:1\",\"c:1\"]}", 0, NULL},
        {"three", {"{\"ps\":[\"a:1\"]}", "{\"ps\":[\"b:1\"]}", "{\"ps\":[\"c:1\"]}"},
         "{\"ps\":[\"a:1\",\"b:1\",\"c:1\"]}", 0, NULL},
        {"a sparse one stays sparse", {"{\"worker\":{\"3\":\"a:1\",\"7\":\"b:1\"}}"},
         "{\"worker\":{\"3\":\"a:1\",\"7\":\"b:1\"}}", 0, NULL},
        {"sparse ones by index",
         {"{\"worker\":{\"0\":\"a:1\",\"2\":\"b:1\"}}", "{\"worker\":{\"1\":\"c:1\"}}"},
         "{\"worker\":[\"a:1\",\"c:1\",\"b:1\"]}", 0, NULL},
        {"a list beside a sparse one counts from 0",
         {"{\"worker\":[\"a:1\"]}", "{\"worker\":{\"2\":\"c:1\"}}"},
         "{\"worker\":{\"0\":\"a:1\",\"2\":\"c:1\"}}", 0, NULL},
        {"without gaps it is a list, however it was written",
         {"{\"worker\":{\"0\":\"a:1\"}}", "{\"worker\":{\"0\":\"b:1\"}}"},
         "{\"worker\":[\"a:1\",\"b:1\"]}", 0, NULL},
        {"an object without gaps beside a list",
         {"{\"worker\":{\"1\":\"b:1\",\"0\":\"a:1\"}}", "{\"worker\":[\"c:1\"]}"},
         "{\"worker\":[\"a:1\",\"b:1\",\"c:1\"]}", 0, NULL},
        {"one that begins at 1 has a gap",
         {"{\"worker\":{\"0\":\"a:1\"}}", "{\"worker\":{\"1\":\"b:1\"}}"},
         "{\"worker\":[\"a:1\",\"b:1\"]}", 0, NULL},
        {"and is merged by index, with a list before it",
         {"{\"worker\":[\"a:1\",\"b:1\"]}", "{\"worker\":{\"0\":\"c:1\"}}",
          "{\"worker\":{\"3\":\"d:1\"}}"},
         NULL, -MU_EEXISTS, "union: member 1: task worker:0 (c:1)"},
        {"an index twice",
         {"{\"worker\":[\"a:1\",\"b:1\"]}", "{\"worker\":{\"1\":\"c:1\"}}"}, NULL,
         -MU_EEXISTS, "union: member 1: task worker:1 (c:1)"},
        {"an address twice", {"{\"worker\":[\"a:1\"]}", "{\"worker\":[\"a:1\"]}"}, NULL,
         -MU_EEXISTS, "union: member 1: "},
        {"each job by itself",
         {"{\"ps\":{\"1\":\"a:1\"},\"worker\":[\"b:1\"]}", "{\"worker\":[\"c:1\"]}"},
         "{\"ps\":{\"1\":\"a:1\"},\"worker\":[\"b:1\",\"c:1\"]}", 0, NULL},
        {"one of nothing", {"{\"ps\":[\"a:1\"]}", "{}"}, "{\"ps\":[\"a:1\"]}", 0, NULL},
        /* clang-format on */
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        mu_resolver *members[3];
        mu_resolver *whole;
        size_t count = 0;

        for (; count < 3 && rows[i].members[count] != NULL; count++)
            members[count] = fixed(rows[i].members[count], NULL, NULL, -1);
        assert_int_equal(mu_resolver_new_union(members, count, &error, &whole), 0);
        if (resolve(whole, NULL) != rows[i].rv)
            fail_msg("%s: %s", rows[i].what, error.message);
        if (rows[i].rv == 0)
            expect_cluster(rows[i].cluster);
        else
            expect_words(rows[i].words);
        mu_resolver_free(whole);
    }
}

TEST(test_union_is_as_its_first)
{
    mu_resolver *members[2] = {fixed("{\"worker\":[\"a:1\"]}", NULL, "worker", 0),
                               of_kind("tf_config")};
    char master[MU_MASTER_BYTES];
    mu_resolver *whole;

    assert_int_equal(mu_resolver_set_rpc_layer(members[0], "grpc", &error), 0);
    assert_int_equal(mu_resolver_new_union(members, 2, &error, &whole), 0);
    assert_int_equal(resolve(whole, tf_config), -MU_EEXISTS); /* a:1 is in both */
    assert_int_equal(mu_resolver_set(members[1], "variable", "OTHER", &error), 0);
    assert_int_equal(resolve(whole, tf_config), 0);
    assert_string_equal(found.task_type, "worker");
    assert_int_equal(found.task_index, 0);
    assert_string_equal(found.rpc_layer, "grpc");
    assert_string_equal(found.source, "union");
    assert_int_equal(mu_resolution_master(&found, NULL, -1, NULL, &error, master), 0);
    assert_string_equal(master, "grpc://a:1");
    mu_cluster_free(found.cluster);

    /* An index of 0 is an index. */
    assert_int_equal(mu_resolver_set_task_type(members[0], "worker", &error), 0);
    assert_int_equal(mu_resolver_set_task_index(members[0], 5, &error), 0);
    assert_int_equal(mu_resolver_set_task_index(whole, 0, &error), 0);
    assert_int_equal(resolve(whole, tf_config), 0);
    assert_int_equal(found.task_index, 0);
    mu_cluster_free(found.cluster);
    mu_resolver_free(whole);
}

/* The master is the first that a member has; a task that is named is looked up in the
 * whole. */
TEST(test_union_master)
{
    mu_resolver *members[3] = {
        fixed("{\"worker\":[\"a:1\"]}", NULL, NULL, -1),
        fixed("{\"worker\":[\"b:1\"]}", "m:7", NULL, -1),
        fixed("{\"worker\":[\"c:1\"]}", "n:8", NULL, -1),
    };
    char master[MU_MASTER_BYTES];
    mu_resolver *whole;

    assert_int_equal(mu_resolver_set_rpc_layer(members[1], "grpc", &error), 0);
    assert_int_equal(mu_resolver_new_union(members, 3, &error, &whole), 0);
    assert_int_equal(resolve(whole, NULL), 0);
    assert_int_equal(mu_resolution_master(&found, NULL, -1, NULL, &error, master), 0);
    assert_string_equal(master, "grpc://m:7");
    assert_int_equal(mu_resolution_master(&found, "worker", 2, "grpc", &error, master),
                     0);
    assert_string_equal(master, "grpc://c:1");
    mu_cluster_free(found.cluster);
    mu_resolver_free(whole);
}

TEST(test_union_misuse)
{
    mu_resolver *one = fixed(NULL, NULL, NULL, -1);
    mu_resolver *members[2] = {one, NULL};
    mu_resolver *whole;

    assert_int_equal(mu_resolver_new_union(NULL, 0, &error, &whole), -MU_EINVALID);
    expect_words("expected one member or more");
    assert_int_equal(mu_resolver_new_union(members, 2, &error, &whole), -MU_EINVALID);
    expect_words("member 1: expected a resolver, got NULL");
    members[1] = one;
    assert_int_equal(mu_resolver_new_union(members, 2, &error, &whole), -MU_EINVALID);
    expect_words("members 0 and 1 are the same");
    assert_int_equal(mu_resolver_new_union(members, 1, &error, NULL), -MU_EINVALID);
    assert_int_equal(mu_resolver_new_union(members, 1, &error, &whole), 0);
    assert_int_equal(mu_resolver_set(whole, "a", "b", &error), -MU_EINVALID);
    expect_words("its members have");
    mu_resolver_free(whole);
}

TEST(test_union_fails_with_a_member)
{
    static const struct script_row rows[] = {
        SCRIPT_VARIABLE("TF_CONFIG", "{\"cluster\": 7}"), SCRIPT_END};
    mu_resolver *members[2] = {fixed("{\"ps\":[\"a:1\"]}", NULL, NULL, -1),
                               of_kind("tf_config")};
    mu_resolver *whole;

    assert_int_equal(mu_resolver_new_union(members, 2, &error, &whole), 0);
    assert_int_equal(resolve(whole, rows), -MU_EINVALID);
    expect_words("TF_CONFIG: cluster: ");
    mu_resolver_free(whole);
}

/* Each once, in the order of the members; of more than are watched the first ones. */
TEST(test_union_watches_all)
{
    static const struct script_row rows[] = {SCRIPT_FILE("/a", "{\"chief\":[\"a:1\"]}"),
                                             SCRIPT_FILE("/b", "{\"worker\":[\"b:1\"]}"),
                                             SCRIPT_VARIABLE("MUSTER_CLUSTER_FILE", "/a"),
                                             SCRIPT_END};
    mu_resolver *resolver;
    mu_resolver *members[4] = {fixed(NULL, NULL, NULL, -1), of_kind("file"),
                               first_that_fits(), of_kind("file")};

    assert_int_equal(mu_resolver_set(members[1], "path", "/b", &error), 0);
    assert_int_equal(mu_resolver_set(members[3], "path", "/none", &error), 0);
    assert_int_equal(mu_resolver_new_union(members, 4, &error, &resolver), 0);
    assert_null(mu__resolver_watched_path(resolver, 0));
    assert_int_equal(resolve(resolver, rows), -MU_ENOTFOUND);
    assert_string_equal(mu__resolver_watched_path(resolver, 0), "/b");
    assert_string_equal(mu__resolver_watched_path(resolver, 1), "/a");
    assert_string_equal(mu__resolver_watched_path(resolver, 2), "/none");
    assert_null(mu__resolver_watched_path(resolver, 3));
    assert_int_equal(resolve(resolver, rows), -MU_ENOTFOUND);
    assert_null(mu__resolver_watched_path(resolver, 3));
    mu_resolver_free(resolver);
}

TEST(test_union_watches_so_many)
{
    enum { MEMBERS = 2 * (MU__WATCHED_PATHS_MAX + 1) };
    mu_resolver *members[MEMBERS];
    mu_resolver *resolver;
    char path[16];

    for (int i = 0; i < MEMBERS; i++) {
        (void)snprintf(path, sizeof path, "/%d", i / 2);
        members[i] = of_kind("file");
        assert_int_equal(mu_resolver_set(members[i], "path", path, &error), 0);
    }
    assert_int_equal(mu_resolver_new_union(members, MEMBERS, &error, &resolver), 0);
    assert_int_equal(resolve(resolver, NULL), -MU_ENOTFOUND);
    for (int i = 0; i < MU__WATCHED_PATHS_MAX; i++) {
        (void)snprintf(path, sizeof path, "/%d", i);
        assert_string_equal(mu__resolver_watched_path(resolver, (size_t)i), path);
    }
    assert_null(mu__resolver_watched_path(resolver, MU__WATCHED_PATHS_MAX));
    mu_resolver_free(resolver);
}

/* ---- Masters ---- */

static const struct {
    const char *what;
    const char *cluster;
    const char *own; /* master of the source */
    int master_fixed;
    int alone_has_none;
    const char *type; /* this task */
    int index;
    const char *rpc_layer;
    const char *asked_type;
    int asked_index;
    const char *asked_rpc;
    int rv;
    const char *master;
} masters[] = {
    {"nothing is known", NULL, "", 0, 0, "", -1, "", NULL, -1, NULL, 0, ""},
    {"own task", "{\"worker\":[\"a:1\"]}", "", 0, 0, "worker", 0, "grpc", NULL, -1, NULL,
     0, "grpc://a:1"},
    {"own type is unknown", "{\"worker\":[\"a:1\"]}", "", 0, 0, "", 0, "grpc", NULL, -1,
     NULL, 0, ""},
    {"own index is unknown", "{\"worker\":[\"a:1\"]}", "", 0, 0, "worker", -1, "", NULL,
     -1, NULL, 0, ""},
    {"no rpc layer", "{\"worker\":[\"a:1\"]}", "", 0, 0, "worker", 0, "", NULL, -1, NULL,
     0, "a:1"},
    {"another rpc layer", "{\"worker\":[\"a:1\"]}", "", 0, 0, "worker", 0, "grpc", NULL,
     -1, "x", 0, "x://a:1"},
    {"an empty one is none", "{\"worker\":[\"a:1\"]}", "", 0, 0, "worker", 0, "grpc",
     NULL, -1, "", 0, "a:1"},
    {"stored master", "{\"worker\":[\"a:1\"]}", "m:7", 0, 0, "worker", 0, "grpc", NULL,
     -1, NULL, 0, "grpc://m:7"},
    {"stored with a layer", NULL, "grpc://m:7", 0, 0, "", -1, "grpc", NULL, -1, NULL, 0,
     "grpc://m:7"},
    {"explicit wins", "{\"worker\":[\"a:1\"]}", "m:7", 0, 0, "worker", 0, "grpc",
     "worker", 0, NULL, 0, "grpc://a:1"},
    {"a type alone does not", "{\"worker\":[\"a:1\"]}", "m:7", 0, 0, "worker", 0, "grpc",
     "worker", -1, NULL, 0, "grpc://m:7"},
    {"index from this task", "{\"ps\":[\"a:1\"],\"worker\":[\"b:1\"]}", "", 0, 0,
     "worker", 0, "", "ps", -1, NULL, 0, "a:1"},
    {"type from this task", "{\"worker\":[\"a:1\",\"b:1\"]}", "", 0, 0, "worker", 0, "",
     NULL, 1, NULL, 0, "b:1"},
    {"unknown task", "{\"worker\":[\"a:1\"]}", "", 0, 0, "worker", 0, "", "worker", 1,
     NULL, -MU_ENOTFOUND, "task worker:1 is not in the cluster"},
    {"unknown type", "{\"worker\":[\"a:1\"]}", "", 0, 0, "worker", 0, "", "wroker", 0,
     NULL, -MU_ENOTFOUND, "worker"},
    {"own task is unknown", "{\"worker\":[\"a:1\",\"b:1\"]}", "", 0, 1, "worker", 7, "",
     NULL, -1, NULL, -MU_ENOTFOUND, "task worker:7"},
    {"session master as it stands", "{\"worker\":[\"a:1\",\"b:1\"]}", "m:7", 1, 1,
     "worker", 0, "grpc", "worker", 1, "x", 0, "m:7"},
    {"alone", "{\"worker\":[\"a:1\"]}", "", 0, 1, "worker", 0, "grpc", NULL, -1, NULL, 0,
     ""},
    {"alone, and asked", "{\"worker\":[\"a:1\"]}", "", 0, 1, "worker", 0, "grpc",
     "worker", 0, NULL, 0, ""},
    {"two are not alone", "{\"worker\":[\"a:1\",\"b:1\"]}", "", 0, 1, "worker", 0, "grpc",
     NULL, -1, NULL, 0, "grpc://a:1"},
    {"a path", "{\"worker\":[\"ipc:///s\"]}", "", 0, 0, "worker", 0, "grpc", NULL, -1,
     NULL, 0, "ipc:///s"},
};

TEST(test_masters)
{
    for (size_t i = 0; i < sizeof masters / sizeof masters[0]; i++) {
        char master[MU_MASTER_BYTES] = "untouched";
        mu_resolution r;
        int rv;

        mu_resolution_init(&r);
        r.cluster = parse(masters[i].cluster);
        r.master_fixed = masters[i].master_fixed;
        r.alone_has_no_master = masters[i].alone_has_none;
        r.task_index = masters[i].index;
        (void)snprintf(r.master, sizeof r.master, "%s", masters[i].own);
        (void)snprintf(r.task_type, sizeof r.task_type, "%s", masters[i].type);
        (void)snprintf(r.rpc_layer, sizeof r.rpc_layer, "%s", masters[i].rpc_layer);
        rv = mu_resolution_master(&r, masters[i].asked_type, masters[i].asked_index,
                                  masters[i].asked_rpc, &error, master);
        if (rv != masters[i].rv)
            fail_msg("%s: got %d", masters[i].what, rv);
        if (rv == 0 && strcmp(master, masters[i].master) != 0)
            fail_msg("%s: got \"%s\"", masters[i].what, master);
        if (rv != 0) {
            expect_words(masters[i].master);
            assert_string_equal(master, "untouched");
        }
        mu_cluster_free(r.cluster);
    }
}

TEST_PROGRAM()
