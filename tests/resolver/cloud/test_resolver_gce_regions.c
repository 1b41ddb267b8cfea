/* The resolver gce, by rows: zones and regions, and those of the machine that asks. */
#include "tests/resolver/cloud/gce_fixture.h"

#include <stdio.h>
#include <string.h>

TEST(test_from_this_machine)
{
    static const struct script_row rows[] = {
        ROW_GCE,
        ROW_META("project/project-id", .text = "p"),
        ROW_META("instance/attributes/created-by",
                 .text = "projects/123/zones/z/instanceGroupManagers/g"),
        ROW_META("instance/name", .text = "b"),
        ROW_TOKEN(0, "secret1"),
        SCRIPT(HTTP, .name = GROUP, .method = "POST",
               .has_header = "Authorization: Bearer secret1",
               .text = "{\"items\": [" MEMBER("a") "," MEMBER("b") "]}"),
        SCRIPT(HTTP, .name = LIST("a%7Cb"),
               .text = "{\"items\": [" INSTANCE("a", "10.0.0.1") "," INSTANCE(
                   "b", "10.0.0.2") "]}"),
        SCRIPT_END,
    };

    script_expect(kind, rows, NULL, "{\"worker\":[\"10.0.0.1:8470\",\"10.0.0.2:8470\"]}",
                  "worker:1");
}

/* The group by setting, and a machine that was made by another or by nobody: the zone is
 * the machine's own. */
TEST(test_group_in_this_zone)
{
    static const char *const settings[] = {"project=p", "instance_group=g",
                                           "access_token=t", "task_index=0", NULL};
    static const char *const makers[] = {
        "projects/123/regions/r/instanceGroupManagers/other", "somebody"};

    for (size_t i = 0; i < 2; i++) {
        const struct script_row rows[] = {
            ROW_GCE,
            ROW_META("instance/zone", .text = "projects/123/zones/z\n"),
            ROW_META("instance/attributes/created-by", .text = makers[i]),
            SCRIPT(HTTP, .name = GROUP, .method = "POST",
                   .text = "{\"items\": [" MEMBER("a") "]}"),
            SCRIPT(HTTP, .name = LIST("a"),
                   .text = "{\"items\": [" INSTANCE("a", "10.0.0.1") "]}"),
            SCRIPT_END,
        };

        script_expect(kind, rows, settings, "{\"worker\":[\"10.0.0.1:8470\"]}",
                      "worker:0");
    }
}

/* ---- Regions ---- */

#define REGION_GROUP                                                  \
    "https://compute.googleapis.com/compute/v1/projects/p/regions/r/" \
    "instanceGroups/g/listInstances?maxResults=500&orderBy=name"
#define MEMBER_OF(zone, name)                                                       \
    "{\"instance\": \"https://www.googleapis.com/compute/v1/projects/p/zones/" zone \
    "/instances/" name "\", \"status\": \"RUNNING\"}"

static const char *const regional[] = {
    "project=p",  "region=r", "instance_group=g", "access_token=t", "task_index=0",
    "order=name", NULL};

/* Each zone has its own list of instances. */
TEST(test_region)
{
    static const struct script_row rows[] = {
        SCRIPT(HTTP, .name = REGION_GROUP, .method = "POST",
               .body = "{\"instanceState\":\"RUNNING\"}",
               .text = "{\"items\": [" MEMBER_OF("r-b", "d") "," MEMBER_OF(
                   "r-a", "a") "," MEMBER_OF("r-b", "b") "," MEMBER_OF("r-a", "c") "]}"),
        SCRIPT(HTTP, .name = LIST_OF("r-a", "a%7Cc"),
               .text = "{\"items\": [" INSTANCE("a", "10.0.0.4") "," INSTANCE(
                   "b", "10.9.9.9") "," INSTANCE("c", "10.0.0.3") "]}"),
        SCRIPT(HTTP, .name = LIST_OF("r-b", "b%7Cd"),
               .text = "{\"items\": [" INSTANCE("b", "10.0.0.2") "," INSTANCE(
                   "d", "10.0.0.1") "]}"),
        SCRIPT_END,
    };

    script_expect(kind, rows, regional,
                  "{\"worker\":[\"10.0.0.4:8470\",\"10.0.0.2:8470\","
                  "\"10.0.0.3:8470\",\"10.0.0.1:8470\"]}",
                  "worker:0");
}

/* Who made this machine says that the group is a region's. */
TEST(test_region_of_this_machine)
{
    static const char *const group[] = {"instance_group=g", "order=name", NULL};
    static const char *const nothing[] = {"order=name", NULL};
    static const struct script_row rows[] = {
        ROW_GCE,
        ROW_META("project/project-id", .text = "p"),
        ROW_META("instance/attributes/created-by",
                 .text = "projects/123/regions/r/instanceGroupManagers/g"),
        ROW_META("instance/name", .text = "b"),
        ROW_TOKEN(0, "secret1"),
        SCRIPT(HTTP, .name = REGION_GROUP, .method = "POST",
               .text =
                   "{\"items\": [" MEMBER_OF("r-a", "a") "," MEMBER_OF("r-b", "b") "]}"),
        SCRIPT(HTTP, .name = LIST_OF("r-a", "a"),
               .text = "{\"items\": [" INSTANCE("a", "10.0.0.4") "]}"),
        SCRIPT(HTTP, .name = LIST_OF("r-b", "b"),
               .text = "{\"items\": [" INSTANCE("b", "10.0.0.2") "]}"),
        SCRIPT_END,
    };

    script_expect(kind, rows, group, "{\"worker\":[\"10.0.0.4:8470\",\"10.0.0.2:8470\"]}",
                  "worker:1");
    script_expect(kind, rows, nothing,
                  "{\"worker\":[\"10.0.0.4:8470\",\"10.0.0.2:8470\"]}", "worker:1");
}

TEST(test_bad_regions)
{
    static const char *const both[] = {"project=p", "region=r", "zone=z",
                                       "instance_group=g", NULL};
    static const char *const wrong[] = {"project=p", "region=r/s", "instance_group=g",
                                        NULL};
    static const char *const texts[] = {"{\"instance\": \"zones/a\"}",
                                        "{\"instance\": \"x/zones//instances/a\"}",
                                        "{\"instance\": \"x/zones/z?b/instances/a\"}"};
    static const char *const words[] = {
        "items[0]: instance: expected a url with the zone in it",
        "items[0]: instance: expected a url with the zone in it",
        "items[0]: instance: expected a name of letters"};

    script_expect_error(kind, NULL, both, -MU_EINVALID,
                        "expected one of \"zone\" and \"region\"");
    script_expect_error(kind, NULL, wrong, -MU_EINVALID,
                        "setting region: expected a name");
    for (size_t i = 0; i < 3; i++) {
        char text[128];
        const struct script_row rows[] = {
            SCRIPT(HTTP, .name = REGION_GROUP, .method = "POST", .text = text),
            SCRIPT_END};

        (void)snprintf(text, sizeof text, "{\"items\": [%s]}", texts[i]);
        script_expect_error(kind, rows, regional, -MU_EINVALID, words[i]);
    }
}

/* ---- What goes wrong ---- */

TEST(test_elsewhere)
{
    static const char *const no_group[] = {"project=p", "zone=z", NULL};
    static const char *const no_zone[] = {"project=p", "instance_group=g", NULL};

    script_expect_error(kind, NULL, NULL, -MU_EPRECONDITION,
                        "the project is not known: set \"project\"; this is no machine "
                        "of Google's");
    script_expect_error(kind, NULL, no_zone, -MU_EPRECONDITION,
                        "the zone is not known: set \"zone\"");
    script_expect_error(kind, NULL, no_group, -MU_EPRECONDITION,
                        "the instance group is not known: set \"instance_group\"");
}

TEST(test_machine_of_no_group)
{
    static const char *const settings[] = {"project=p", "zone=z", NULL};
    static const struct script_row absent[] = {
        ROW_GCE,
        ROW_META("instance/attributes/created-by", .status = 404),
        SCRIPT_END,
    };
    static const struct script_row other[] = {
        ROW_GCE,
        ROW_META("instance/attributes/created-by", .text = "somebody"),
        SCRIPT_END,
    };

    script_expect_error(kind, absent, settings, -MU_EPRECONDITION,
                        "the instance group is not known: set \"instance_group\"");
    script_expect_error(kind, other, settings, -MU_EPRECONDITION,
                        "this machine was not made by one");
}

/* ---- Detection ---- */

TEST(test_detection)
{
    static const char *const group[] = {"instance_group=g", NULL};
    static const char *const all[] = {"instance_group=g", "project=p", "zone=z", NULL};
    static const struct script_row here[] = {ROW_GCE, SCRIPT_END};
    static const struct script_row by_variable[] = {
        SCRIPT_VARIABLE("MUSTER_GCE_INSTANCE_GROUP", "g"),
        SCRIPT_VARIABLE("GCE_METADATA_HOST", "127.0.0.1:1"),
        SCRIPT_END,
    };
    mu_error why;

    assert_int_equal(script_detect(kind, here, NULL, &why), 0);
    assert_string_equal(why.message, "MUSTER_GCE_INSTANCE_GROUP is not set");
    assert_int_equal(script_detect(kind, NULL, group, &why), 0);
    assert_non_null(strstr(why.message, "this is no machine of Google's"));
    assert_int_equal(script_detect(kind, here, group, &why), 1);
    assert_int_equal(script_detect(kind, NULL, all, &why), 1);
    assert_int_equal(script_detect(kind, by_variable, NULL, &why), 1);
}

TEST_PROGRAM()
