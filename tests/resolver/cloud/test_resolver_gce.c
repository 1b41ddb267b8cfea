/* The resolver gce, by rows: groups, their instances, and what is wrong with them. */
#include "tests/resolver/cloud/gce_fixture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ROW_GROUP(...) \
    ((struct script_row)SCRIPT(HTTP, .name = GROUP, .method = "POST", __VA_ARGS__))

/* A group as the only member of rows, whose answer is this. */
static void expect_group_error(struct script_row group, int code, const char *words)
{
    const struct script_row rows[] = {group, SCRIPT_END};

    script_expect_error(kind, rows, named, code, words);
}

TEST(test_group)
{
    static const struct script_row rows[] = {
        SCRIPT(HTTP, .name = GROUP, .method = "POST",
               .body = "{\"instanceState\":\"RUNNING\"}",
               .has_header = "Authorization: Bearer secret1",
               .text = "{\"items\": [" MEMBER("c") "," MEMBER("a") "," MEMBER("b") "]}"),
        SCRIPT(HTTP, .name = LIST("a%7Cb%7Cc"),
               .has_header = "Authorization: Bearer secret1",
               .text = "{\"items\": [" INSTANCE("a", "10.0.0.3") "," INSTANCE(
                   "b", "10.0.0.20") "," INSTANCE("c", "10.0.0.1") "]}"),
        SCRIPT_END,
    };

    script_expect(kind, rows, named,
                  "{\"worker\":[\"10.0.0.1:8470\",\"10.0.0.20:8470\","
                  "\"10.0.0.3:8470\"]}",
                  "worker:0");
}

/* A token that is no more accepted is not sent again. */
TEST(test_one_refusal_is_enough)
{
    static const struct script_row rows[] = {
        SCRIPT_FILE("/t", "secret1"),
        SCRIPT(FILE, .name = "/t", .text = "secret2", .again = 1),
        SCRIPT(HTTP, .name = GROUP, .method = "POST", .status = 401, .text = "{}"),
        SCRIPT(HTTP, .name = GROUP, .method = "POST", .again = 1,
               .has_header = "Authorization: Bearer secret2",
               .text = "{\"items\": [" MEMBER("a") "], \"nextPageToken\": \"b\"}"),
        SCRIPT(HTTP, .name = GROUP "&pageToken=b", .method = "POST", .again = 1,
               .has_header = "Authorization: Bearer secret2", .text = "{}"),
        SCRIPT(HTTP, .name = LIST("a"), .again = 1,
               .has_header = "Authorization: Bearer secret2",
               .text = "{\"items\": [" INSTANCE("a", "10.0.0.3") "]}"),
        SCRIPT_END,
    };
    static const struct script_row twice[] = {
        SCRIPT_FILE("/t", "secret1"),
        SCRIPT(FILE, .name = "/t", .text = "secret2", .again = 1),
        SCRIPT(HTTP, .name = GROUP, .method = "POST", .status = 401, .text = "{}"),
        SCRIPT(HTTP, .name = GROUP, .method = "POST", .again = 1,
               .text = "{\"items\": [" MEMBER("a") "], \"nextPageToken\": \"b\"}"),
        SCRIPT(HTTP, .name = GROUP "&pageToken=b", .method = "POST", .again = 1,
               .status = 401, .text = "{}"),
        SCRIPT_END,
    };
    static const char *const settings[] = {"project=p",        "zone=z",
                                           "instance_group=g", "access_token_file=/t",
                                           "task_index=0",     NULL};

    script_expect(kind, rows, settings, "{\"worker\":[\"10.0.0.3:8470\"]}", "worker:0");
    script_expect_error(kind, twice, settings, -MU_EUNAUTHENTICATED, "status 401");
}

TEST(test_settings)
{
    static const char *const settings[] = {
        "project=p", "zone=z",       "instance_group=g", "access_token=t", "task_index=1",
        "port=2222", "task_type=ps", "order=name",       "rpc_layer=",     NULL};
    static const struct script_row rows[] = {
        SCRIPT(HTTP, .name = GROUP, .method = "POST",
               .text = "{\"items\": [" MEMBER("a") "," MEMBER("b") "]}"),
        SCRIPT(HTTP, .name = LIST("a%7Cb"),
               .text = "{\"items\": [" INSTANCE("a", "10.0.0.3") "," INSTANCE(
                   "b", "fd00::1") "]}"),
        SCRIPT_END,
    };
    mu_resolution resolution;
    mu_error error;

    script_expect(kind, rows, settings, "{\"ps\":[\"10.0.0.3:2222\",\"[fd00::1]:2222\"]}",
                  "ps:1");
    assert_int_equal(script_resolve(kind, rows, settings, &error, &resolution), 0);
    assert_string_equal(resolution.rpc_layer, "");
    assert_string_equal(resolution.environment, "");
    assert_string_equal(resolution.master, "");
    mu_cluster_free(resolution.cluster);
}

TEST(test_rpc_layer_is_grpc)
{
    static const struct script_row rows[] = {
        SCRIPT(HTTP, .name = GROUP, .method = "POST",
               .text = "{\"items\": [" MEMBER("a") "]}"),
        SCRIPT(HTTP, .name = LIST("a"),
               .text = "{\"items\": [" INSTANCE("a", "10.0.0.3") "]}"),
        SCRIPT_END,
    };
    mu_resolution resolution;
    mu_error error;

    assert_int_equal(script_resolve(kind, rows, named, &error, &resolution), 0);
    assert_string_equal(resolution.rpc_layer, "grpc");
    assert_false(resolution.alone_has_no_master);
    mu_cluster_free(resolution.cluster);
}

TEST(test_pages)
{
    static const struct script_row rows[] = {
        SCRIPT(HTTP, .name = GROUP, .method = "POST",
               .text = "{\"items\": [" MEMBER("a") "], \"nextPageToken\": \"a/+b\"}"),
        SCRIPT(HTTP, .name = GROUP "&pageToken=a%2F%2Bb", .method = "POST",
               .text = "{\"nextPageToken\": \"c\"}"),
        SCRIPT(HTTP, .name = GROUP "&pageToken=c", .method = "POST",
               .text = "{\"items\": [" MEMBER("b") "]}"),
        SCRIPT(HTTP, .name = LIST("a%7Cb"),
               .text =
                   "{\"items\": [" INSTANCE("a", "10.0.0.1") "], "
                                                             "\"nextPageToken\": \"n\"}"),
        SCRIPT(HTTP, .name = LIST("a%7Cb") "&pageToken=n",
               .text = "{\"items\": [" INSTANCE("b", "10.0.0.2") "]}"),
        SCRIPT_END,
    };

    script_expect(kind, rows, named, "{\"worker\":[\"10.0.0.1:8470\",\"10.0.0.2:8470\"]}",
                  "worker:0");
}

TEST(test_endless_pages)
{
    static const struct script_row rows[] = {
        SCRIPT(HTTP, .name = GROUP, .method = "POST",
               .text = "{\"nextPageToken\": \"again\"}"),
        SCRIPT(HTTP, .name = GROUP "&pageToken=again", .method = "POST",
               .text = "{\"nextPageToken\": \"again\"}"),
        SCRIPT_END,
    };

    script_expect_error(kind, rows, named, -MU_EINVALID,
                        "nextPageToken: the same token came twice");
}

/* ---- Many ---- */

enum { MANY = 1000, MANY_BYTES = 256 << 10 };

struct crowd {
    struct fake_sources sources; /* first: it casts */
    unsigned pages;
    unsigned lists;
};

/* A page of half of the instances, or those whose names are asked for. */
static void say_crowd(struct crowd *crowd, const char *url, char *out)
{
    bool members = strstr(url, "listInstances") != NULL;
    int from = strstr(url, "pageToken=x") == NULL ? 0 : MANY / 2;
    size_t used = (size_t)snprintf(out, MANY_BYTES, "{\"items\": [");
    const char *between = "";

    crowd->pages += members;
    crowd->lists += !members;
    for (int i = members ? from : 0; i < (members ? from + MANY / 2 : MANY); i++) {
        char name[40];

        (void)snprintf(name, sizeof name, "a-name-of-thirty-letters-%05d", i);
        if (!members && strstr(url, name) == NULL)
            continue;
        used += (size_t)snprintf(out + used, MANY_BYTES - used,
                                 members ? "%s{\"instance\": \"x/%s\"}"
                                         : "%s{\"name\": \"%s\", \"networkInterfaces\": "
                                           "[{\"networkIP\": \"10.0.%d.%d\"}]}",
                                 between, name, i / 250, i % 250);
        between = ",";
    }
    (void)snprintf(out + used, MANY_BYTES - used, "]%s}",
                   members && from == 0 ? ", \"nextPageToken\": \"x\"" : "");
}

static void answer_crowd(struct fake_sources *sources, struct mu__exchange *exchange)
{
    struct mu__answer *answer = &exchange->answer;

    if (exchange->request.kind != MU__REQUEST_HTTP) {
        answer->code = mu_error_set(&answer->error, -MU_ENOTFOUND, "not there");
    } else {
        answer->data = malloc(MANY_BYTES);
        assert_non_null(answer->data);
        say_crowd((struct crowd *)sources, exchange->request.name, answer->data);
        answer->size = strlen(answer->data);
        answer->status = 200;
        (void)snprintf(answer->content_type, sizeof answer->content_type,
                       "application/json");
    }
}

/* Two pages of names, one after the other, and nine lists of addresses. */
TEST(test_many_instances)
{
    struct crowd crowd = {.pages = 0};
    struct mu__settings settings;
    mu_resolution resolution;
    struct mu__requests *requests;
    mu_error error;

    mu_resolution_init(&resolution);
    fake_sources_init(&crowd.sources, answer_crowd);
    assert_int_equal(mu__requests_new(&crowd.sources.base, NULL, &requests), 0);
    assert_int_equal(mu__settings_init(&settings, "gce", kind->settings), 0);
    for (size_t i = 0; named[i] != NULL; i++) {
        char name[32];

        (void)snprintf(name, sizeof name, "%.*s", (int)strcspn(named[i], "="), named[i]);
        assert_int_equal(
            mu__settings_set(&settings, name, strchr(named[i], '=') + 1, &error), 0);
    }
    if (kind->resolve(&(struct mu__pass){requests, &settings}, &error, &resolution) != 0)
        fail_msg("%s", error.message);
    assert_int_equal(mu_cluster_task_count(resolution.cluster, "worker"), MANY);
    assert_int_equal(crowd.pages, 2);
    assert_int_equal(crowd.lists, 9);
    mu_cluster_free(resolution.cluster);
    mu__requests_free(requests);
    mu__settings_done(&settings);
}

/* ---- What else there is ---- */

TEST(test_ipv6_alone)
{
    static const struct script_row rows[] = {
        SCRIPT(HTTP, .name = GROUP, .method = "POST",
               .text = "{\"items\": [" MEMBER("a") "]}"),
        SCRIPT(HTTP, .name = LIST("a"),
               .text = "{\"items\": [{\"name\": \"a\", \"networkInterfaces\": "
                       "[{\"ipv6Address\": \"fd20::1\"}]}]}"),
        SCRIPT_END,
    };

    script_expect(kind, rows, named, "{\"worker\":[\"[fd20::1]:8470\"]}", "worker:0");
}

TEST(test_index_of_others)
{
    static const char *const none[] = {"project=p",        "zone=z",
                                       "instance_group=g", "access_token=t",
                                       "task_index=none",  NULL};
    static const char *const by_itself[] = {"project=p", "zone=z", "instance_group=g",
                                            "access_token=t", NULL};
    static const struct script_row rows[] = {
        SCRIPT(HTTP, .name = GROUP, .method = "POST",
               .text = "{\"items\": [" MEMBER("a") "]}"),
        SCRIPT(HTTP, .name = LIST("a"),
               .text = "{\"items\": [" INSTANCE("a", "10.0.0.1") "]}"),
        SCRIPT_END,
    };

    script_expect(kind, rows, none, "{\"worker\":[\"10.0.0.1:8470\"]}", "worker:-1");
    script_expect(kind, rows, by_itself, "{\"worker\":[\"10.0.0.1:8470\"]}", "worker:0");
}

TEST(test_type_is_a_setting)
{
    assert_true(kind->type_is_setting);
}

/* ---- What goes wrong ---- */

TEST(test_statuses)
{
    static const struct {
        int status;
        int code;
        const char *words;
    } rows[] = {
        {403, -MU_EPERMISSION, "status 403: the credentials do not permit this"},
        {404, -MU_ENOTFOUND, "status 404"},
        {400, -MU_EINVALID, "status 400"},
        {302, -MU_EINVALID, "a redirect, which is not followed"},
        {429, -MU_EUNAVAILABLE, "too many requests"},
        {503, -MU_EUNAVAILABLE, "the server has failed"},
        {401, -MU_EUNAUTHENTICATED, "setting access_token is not accepted"},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        expect_group_error(ROW_GROUP(.status = rows[i].status, .text = "{}"),
                           rows[i].code, rows[i].words);
        expect_group_error(ROW_GROUP(.status = rows[i].status, .text = "<html>"),
                           rows[i].code, "instance group \"g\" (project p, zone z)");
    }
}

TEST(test_bad_groups)
{
    static const struct {
        const char *text;
        int code;
        const char *words;
    } rows[] = {
        {"", -MU_EINVALID, "the text is empty"},
        {"{\"items\": [", -MU_EINVALID, "line 1, column 12: expected JSON"},
        {"{\"items\": 7}", -MU_EINVALID, "items: expected a list"},
        {"{\"items\": [7]}", -MU_EINVALID, "items[0]: expected an object"},
        {"{\"items\": [{}]}", -MU_EINVALID, "items[0]: instance is missing"},
        {"{\"items\": [{\"instance\": 7}]}", -MU_EINVALID,
         "items[0]: instance: expected a text"},
        {"{\"items\": [{\"instance\": \"a b\"}]}", -MU_EINVALID,
         "items[0]: instance: expected a name"},
        {"{\"items\": [{\"instance\": \"x/\"}]}", -MU_EINVALID,
         "items[0]: instance: expected a name"},
        {"{\"items\": [{\"instance\": \"a\", \"status\": 1}]}", -MU_EINVALID,
         "items[0]: status: expected a text"},
        {"{\"items\": [" MEMBER("a") "," MEMBER("a") "]}", -MU_EINVALID,
         "the instance a is there twice"},
        {"{\"nextPageToken\": 7}", -MU_EINVALID, "nextPageToken: expected a text"},
        {"{}", -MU_EUNAVAILABLE, "no instance is running there"},
        {"{\"items\": [{\"instance\": \"a\", \"status\": \"STOPPING\"}]}",
         -MU_EUNAVAILABLE, "no instance is running there"},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        expect_group_error(ROW_GROUP(.text = rows[i].text), rows[i].code, rows[i].words);
}

TEST(test_bad_instances)
{
    static const struct {
        const char *text;
        int code;
        const char *words;
    } rows[] = {
        {"{}", -MU_EUNAVAILABLE, "instance a is in the group, but not in the list"},
        {"{\"items\": [" INSTANCE("b", "10.0.0.1") "]}", -MU_EUNAVAILABLE,
         "instance a is in the group, but not in the list"},
        {"{\"items\": [7]}", -MU_EINVALID, "items[0]: expected an object"},
        {"{\"items\": [{}]}", -MU_EINVALID, "items[0]: name is missing"},
        {"{\"items\": [{\"name\": \"a\"}]}", -MU_EINVALID,
         "instance a: networkInterfaces: expected a list of objects"},
        {"{\"items\": [{\"name\": \"a\", \"networkInterfaces\": []}]}", -MU_EINVALID,
         "instance a: networkInterfaces: expected a list of objects"},
        {"{\"items\": [{\"name\": \"a\", \"networkInterfaces\": [{}]}]}",
         -MU_EUNAVAILABLE, "networkIP is missing"},
        {"{\"items\": [{\"name\": \"a\", \"networkInterfaces\": [{\"networkIP\": 1}]}]}",
         -MU_EINVALID, "networkIP: expected a text"},
        {"{\"items\": [" INSTANCE("a", "not an address") "]}", -MU_EINVALID,
         "not an address"},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const struct script_row script[] = {
            SCRIPT(HTTP, .name = GROUP, .method = "POST",
                   .text = "{\"items\": [" MEMBER("a") "]}"),
            SCRIPT(HTTP, .name = LIST("a"), .text = rows[i].text),
            SCRIPT_END,
        };

        script_expect_error(kind, script, named, rows[i].code, rows[i].words);
    }
}

TEST(test_wrong_content_type)
{
    expect_group_error(ROW_GROUP(.content_type = "text/html", .text = "<html></html>"),
                       -MU_EINVALID,
                       "expected an answer of type application/json, got text/html");
}

TEST(test_huge)
{
    expect_group_error(ROW_GROUP(.code = -MU_EEXHAUSTED, .text = "more than 8 MiB"),
                       -MU_EEXHAUSTED, "more than 8 MiB");
}

TEST(test_bad_settings)
{
    static const struct {
        const char *setting;
        int code;
        const char *words;
    } rows[] = {
        {"task_type=master", -MU_EINVALID, "setting task_type of resolver gce"},
        {"task_type=", -MU_EINVALID, "setting task_type of resolver gce"},
        {"task_index=-1", -MU_EINVALID, "expected a number, \"auto\" or \"none\""},
        {"order=size", -MU_EINVALID, "expected \"address\" or \"name\", got \"size\""},
        {"zone=a/../b", -MU_EINVALID, "setting zone: expected a name of letters"},
        {"project=a?b", -MU_EINVALID, "setting project: expected a name of letters"},
        {"instance_group=a b", -MU_EINVALID, "setting instance_group: expected a name"},
        {"api_endpoint=http://example.com", -MU_EINVALID,
         "expected a url that begins with https://"},
        {"api_endpoint=http://127.0.0.1.example.com", -MU_EINVALID,
         "expected a url that begins with https://"},
        {"api_endpoint=https://me:secret@example.com", -MU_EINVALID,
         "since a token is sent there, got one with a user"},
        {"api_endpoint=http://example.com/?key=secret", -MU_EINVALID,
         "since a token is sent there, got \"http://example.com/\""},
        {"ca_file=/none", -MU_ENOTFOUND, "setting ca_file: \"/none\" is not there"},
        {"access_token=two words", -MU_EINVALID,
         "setting access_token: expected a token"},
    };
    static const struct script_row script[] = {
        SCRIPT(HTTP, .name = GROUP, .method = "POST",
               .text = "{\"items\": [" MEMBER("a") "]}"),
        SCRIPT(HTTP, .name = LIST("a"),
               .text = "{\"items\": [" INSTANCE("a", "10.0.0.1") "]}"),
        SCRIPT_END,
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const char *settings[] = {"project=p",      "zone=z",        "instance_group=g",
                                  "access_token=t", rows[i].setting, NULL};

        script_expect_error(kind, script, settings, rows[i].code, rows[i].words);
    }
}

TEST_PROGRAM()
