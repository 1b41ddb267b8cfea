/* The instance group of the resolver gce, and its zone or region. */
#include "resolver/cloud/google/gce.h"
#include "runtime/base/text.h"

#include <stdio.h>
#include <string.h>

static bool is_gce_setting_set(const char *text)
{
    return text != NULL && text[0] != '\0';
}

/* The manager that made this machine: "projects/1/zones/z/instanceGroupManagers/g", or
 * with regions/r. Its instance group has the same name, zone and region. */
struct maker {
    char scope[8]; /* "zone" or "region"; "": there is none, for the reason in `why` */
    char location[MU__GOOGLE_NAME_BYTES];
    const char *group;
    mu_error why;
};

static bool read_maker(const char *text, struct maker *maker)
{
    static const char *const scopes[] = {"zone", "region"};
    const char *group = strstr(text, "/instanceGroupManagers/");

    for (size_t i = 0; i < 2 && group != NULL; i++) {
        char word[16];
        const char *at;
        size_t size;

        (void)snprintf(word, sizeof word, "/%ss/", scopes[i]);
        at = strstr(text, word);
        at = at == NULL ? NULL : at + strlen(word);
        size = at == NULL || at > group ? 0 : (size_t)(group - at);
        if (size == 0 || size >= sizeof maker->location)
            continue;
        memcpy(maker->location, at, size);
        maker->location[size] = '\0';
        MU__COPY_TEXT(maker->scope, scopes[i]);
        maker->group = strrchr(group, '/') + 1;
        return true;
    }
    return false;
}

static int request_maker(const struct mu__gce_location *location, mu_error *ret_error,
                         struct maker *ret_maker)
{
    struct maker maker = {.group = NULL};
    const char *text = NULL;
    int rv = mu__google_here(location->google.pass->requests, &maker.why);

    if (rv == 1)
        rv = mu__google_metadata(location->google.pass->requests,
                                 "instance/attributes/created-by", false, &maker.why,
                                 &text);
    else if (rv == 0)
        rv = -MU_ENOTFOUND;
    if (rv == 0 && !read_maker(text, &maker))
        (void)mu_error_set(&maker.why, -MU_ENOTFOUND, "this machine was not made by one");
    if (rv == 0 || rv == -MU_ENOTFOUND) {
        *ret_maker = maker;
        return 0;
    }
    return mu_error_set(ret_error, rv,
                        "resolver gce: the instance group of this machine: %s",
                        maker.why.message);
}

/* The group of the setting, else the one that made this machine. */
static int take_group(struct mu__gce_location *location, const char *group,
                      const struct maker *maker, mu_error *ret_error)
{
    int rv;

    if (!is_gce_setting_set(group) && maker->scope[0] == '\0')
        return mu_error_set(ret_error, -MU_EPRECONDITION,
                            "resolver gce: the instance group is not known: set "
                            "\"instance_group\"; %s",
                            maker->why.message);
    group = is_gce_setting_set(group) ? group : maker->group;
    rv = mu__google_name_check("setting instance_group", group, ret_error);
    if (rv == 0)
        MU__COPY_TEXT(location->group, group);
    return rv;
}

/* Region or zone of the setting; else those of the group that made this machine, if it is
 * the same group; else this machine's zone. */
static int take_scope(struct mu__gce_location *location, const struct maker *maker,
                      mu_error *ret_error)
{
    const char *region = mu__setting(location->google.pass, MU__GCE_SET_REGION);
    const char *zone = mu__setting(location->google.pass, MU__GCE_SET_ZONE);
    const char *scope = is_gce_setting_set(region) ? "region" : "zone";
    int rv = 0;

    if (is_gce_setting_set(region) && is_gce_setting_set(zone))
        return mu_error_set(ret_error, -MU_EINVALID,
                            "resolver gce: expected one of \"zone\" and \"region\": a "
                            "group has a zone or a region");
    if (is_gce_setting_set(region)) {
        rv = mu__google_name_check("setting region", region, ret_error);
        if (rv == 0)
            MU__COPY_TEXT(location->where, region);
    } else if (!is_gce_setting_set(zone) && maker->scope[0] != '\0' &&
               strcmp(location->group, maker->group) == 0) {
        scope = maker->scope;
        rv = mu__google_name_check("metadata created-by", maker->location, ret_error);
        memcpy(location->where, maker->location, sizeof location->where);
    } else {
        rv = mu__google_zone(&location->google, zone, ret_error, location->where);
    }
    location->is_region = strcmp(scope, "region") == 0;
    if (rv == 0)
        (void)snprintf(location->what, sizeof location->what,
                       "instance group \"%s\" (project %s, %s %s)", location->group,
                       location->project, scope, location->where);
    return rv;
}

static int find_gce_group(struct mu__gce_location *location, mu_error *ret_error)
{
    const char *group = mu__setting(location->google.pass, MU__GCE_SET_INSTANCE_GROUP);
    bool is_placed =
        is_gce_setting_set(mu__setting(location->google.pass, MU__GCE_SET_ZONE)) ||
        is_gce_setting_set(mu__setting(location->google.pass, MU__GCE_SET_REGION));
    struct maker maker = {.group = NULL};
    int rv = 0;

    if (!is_placed || !is_gce_setting_set(group))
        rv = request_maker(location, ret_error, &maker);
    if (rv == 0)
        rv = take_group(location, group, &maker, ret_error);
    return rv != 0 ? rv : take_scope(location, &maker, ret_error);
}

/* All entries of the metadata server are requested before waiting for the first. */
int mu__gce_find_location(const struct mu__pass *pass, mu_error *ret_error,
                          struct mu__gce_location *location)
{
    int rv;

    *location = (struct mu__gce_location){0};
    mu__google_init(pass, MU__GCE_SET_GOOGLE, &location->google);
    rv = mu__google_endpoint(&location->google,
                             mu__setting(pass, MU__GCE_SET_API_ENDPOINT), ret_error,
                             location->base, sizeof location->base);
    if (rv == 0)
        rv = mu__google_project(&location->google, mu__setting(pass, MU__GCE_SET_PROJECT),
                                ret_error, location->project);
    return rv != 0 ? rv : find_gce_group(location, ret_error);
}
