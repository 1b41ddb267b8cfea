/* The running instances of an instance group, with their addresses.
 *
 * The group, of a zone or a region, tells the names of its instances, 500 in a page.
 * Their addresses come from each zone's list of instances, filtered by name, some hundred
 * names in a request and all these requests at once: asking for each instance by itself
 * would be as many requests as there are instances. */
#include "resolver/cloud/google/gce.h"

#include "runtime/base/array.h"
#include "runtime/base/build.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    PAGES_MAX = 200, /* of one list */
    INSTANCES_MAX = 100000,
    FILTER_BYTES = 4000 /* of names in one url */
};

/* ---- Instances ---- */

void mu__gce_instances_done(struct mu__gce_instances *all)
{
    for (size_t i = 0; i < all->count; i++)
        free(all->items[i].host_port);
    free(all->items);
}

static int compare_zones(const struct mu__gce_instance *a,
                         const struct mu__gce_instance *b)
{
    size_t least = a->zone_size < b->zone_size ? a->zone_size : b->zone_size;
    int order = memcmp(a->zone, b->zone, least);

    return order != 0 ? order
                      : (a->zone_size > b->zone_size) - (a->zone_size < b->zone_size);
}

static int by_zone(const void *a, const void *b)
{
    const struct mu__gce_instance *one = a;
    const struct mu__gce_instance *other = b;
    int order = compare_zones(one, other);

    return order != 0 ? order : strcmp(one->name, other->name);
}

int mu__gce_by_name(const void *a, const void *b)
{
    const struct mu__gce_instance *one = a;
    const struct mu__gce_instance *other = b;
    int order = strcmp(one->name, other->name);

    return order != 0 ? order : compare_zones(one, other);
}

int mu__gce_by_address(const void *a, const void *b)
{
    return strcmp(((const struct mu__gce_instance *)a)->host_port,
                  ((const struct mu__gce_instance *)b)->host_port);
}

static int add_instance(const struct mu__gce_location *location,
                        struct mu__gce_instances *all,
                        const struct mu__gce_instance *instance, mu_error *ret_error)
{
    if (all->count == INSTANCES_MAX)
        return mu_error_set(ret_error, -MU_EEXHAUSTED,
                            "%s: more than %d instances are too many", location->what,
                            INSTANCES_MAX);
    if (!MU__ARRAY_RESERVE(&all->items, &all->room, all->count, 64))
        return mu_error_set(ret_error, -MU_ENOMEM, "out of memory");
    all->items[all->count++] = *instance;
    return 0;
}

/* ---- Lists in pages ---- */

/* One list: a url and what is done with each item of each page. */
struct paged_list {
    const char *url; /* without pageToken, but with a "?" */
    const char *method;
    const char *body;
    const char *what;
    int (*take)(void *user, const cJSON *item, size_t number, mu_error *ret_error);
    void *user;
    unsigned *refused; /* as in struct mu__google_request */
};

static int take_page_items(const struct paged_list *list, const cJSON *root,
                           size_t *number, mu_error *ret_error)
{
    const cJSON *items = cJSON_GetObjectItemCaseSensitive(root, "items");
    int rv = 0;

    if (items == NULL) /* the API leaves out an empty list */
        return 0;
    if (!cJSON_IsArray(items))
        return mu_error_set(ret_error, -MU_EINVALID, "%s: items: expected a list",
                            list->what);
    for (const cJSON *item = items->child; item != NULL && rv == 0; item = item->next)
        rv = list->take(list->user, item, (*number)++, ret_error);
    return rv;
}

static int request_page(const struct mu__gce_location *location,
                        const struct paged_list *list, const char *token,
                        mu_error *ret_error, const cJSON **ret_root)
{
    struct mu__build url = {0};
    int rv;

    mu__build_add(&url, list->url);
    if (token != NULL) {
        mu__build_add(&url, "&pageToken=");
        mu__build_escaped(&url, token);
    }
    if (mu__build_whole(&url))
        rv = mu__google_send(&location->google,
                             &(struct mu__google_request){.url = url.text,
                                                          .method = list->method,
                                                          .body = list->body,
                                                          .what = list->what,
                                                          .refused = list->refused},
                             ret_error, ret_root);
    else
        rv = mu_error_set(ret_error, -MU_ENOMEM, "out of memory");
    mu__build_done(&url);
    return rv;
}

static int walk_pages(const struct mu__gce_location *location,
                      const struct paged_list *list, mu_error *ret_error)
{
    const char *before = NULL;
    const char *token = NULL;
    const cJSON *root;
    size_t number = 0;
    int rv;

    for (unsigned page = 0; page < PAGES_MAX; page++) {
        rv = request_page(location, list, token, ret_error, &root);
        if (rv == 0)
            rv = take_page_items(list, root, &number, ret_error);
        if (rv == 0)
            rv = mu__google_text(root, "nextPageToken", list->what, ret_error, &token);
        if (rv != 0 || token == NULL || token[0] == '\0')
            return rv;
        if (before != NULL && strcmp(before, token) == 0)
            return mu_error_set(ret_error, -MU_EINVALID,
                                "%s: nextPageToken: the same token came twice: the list "
                                "does not end",
                                list->what);
        before = token;
    }
    return mu_error_set(ret_error, -MU_EEXHAUSTED, "%s: the list has more than %d pages",
                        list->what, PAGES_MAX);
}

/* ---- Members of the group ---- */

struct group_members {
    const struct mu__gce_location *location;
    struct mu__gce_instances *all;
    const struct mu__gce_instance *zone; /* an instance in the zone that is listed */
};

/* Take zone and name from the url. Only a region's urls need to have the zone. */
static int read_url(const struct mu__gce_location *location, const char *url,
                    const char *what, mu_error *ret_error,
                    struct mu__gce_instance *ret_instance)
{
    const char *zone = strstr(url, "/zones/");
    const char *name = strrchr(url, '/') == NULL ? url : strrchr(url, '/') + 1;
    char copy[MU__GOOGLE_NAME_BYTES + 1];
    int rv = mu__google_name_check(what, name, ret_error);

    if (rv != 0)
        return rv;
    *ret_instance = (struct mu__gce_instance){.name = name};
    if (!location->is_region) {
        ret_instance->zone = location->where;
        ret_instance->zone_size = strlen(location->where);
        return 0;
    }
    zone = zone == NULL ? "" : zone + strlen("/zones/");
    ret_instance->zone = zone;
    ret_instance->zone_size = strcspn(zone, "/");
    (void)snprintf(copy, sizeof copy, "%.*s",
                   (int)(ret_instance->zone_size < sizeof copy ? ret_instance->zone_size
                                                               : sizeof copy),
                   zone);
    if (copy[0] == '\0')
        return mu_error_set(ret_error, -MU_EINVALID,
                            "%s: expected a url with the zone in it", what);
    return mu__google_name_check(what, copy, ret_error);
}

/* {"instance": "https://.../zones/z/instances/name", "status": "RUNNING"} */
static int take_member(void *user, const cJSON *item, size_t number, mu_error *ret_error)
{
    struct group_members *members = user;
    const struct mu__gce_location *location = members->location;
    struct mu__gce_instance instance;
    const char *status = NULL;
    const char *url = NULL;
    char what[600];
    int rv;

    (void)snprintf(what, sizeof what, "%s: items[%zu]", location->what, number);
    if (!cJSON_IsObject(item))
        return mu_error_set(ret_error, -MU_EINVALID, "%s: expected an object", what);
    rv = mu__google_text(item, "instance", what, ret_error, &url);
    if (rv == 0)
        rv = mu__google_text(item, "status", what, ret_error, &status);
    if (rv != 0)
        return rv;
    if (url == NULL)
        return mu_error_set(ret_error, -MU_EINVALID, "%s: instance is missing", what);
    if (status != NULL && strcmp(status, "RUNNING") != 0)
        return 0; /* its state may have changed since the server filtered */
    (void)snprintf(what, sizeof what, "%s: items[%zu]: instance", location->what, number);
    rv = read_url(location, url, what, ret_error, &instance);
    return rv != 0 ? rv : add_instance(location, members->all, &instance, ret_error);
}

static int list_members(const struct mu__gce_location *location,
                        struct mu__gce_instances *all, mu_error *ret_error)
{
    struct group_members members = {.location = location, .all = all};
    char url[1200];
    int rv;

    (void)snprintf(url, sizeof url,
                   "%s/projects/%s/%s/%s/instanceGroups/%s/listInstances"
                   "?maxResults=500&orderBy=name",
                   location->base, location->project,
                   location->is_region ? "regions" : "zones", location->where,
                   location->group);
    rv = walk_pages(location,
                    &(struct paged_list){.url = url,
                                         .method = "POST",
                                         .body = "{\"instanceState\":\"RUNNING\"}",
                                         .what = location->what,
                                         .take = take_member,
                                         .user = &members,
                                         .refused = &all->refused},
                    ret_error);
    if (rv == 0 && all->count == 0)
        return mu_error_set(ret_error, -MU_EUNAVAILABLE,
                            "%s: no instance is running there", location->what);
    if (rv != 0)
        return rv;
    qsort(all->items, all->count, sizeof *all->items, by_zone);
    for (size_t i = 1; i < all->count; i++)
        if (by_zone(&all->items[i - 1], &all->items[i]) == 0)
            return mu_error_set(ret_error, -MU_EINVALID,
                                "%s: the instance %s is there twice", location->what,
                                all->items[i].name);
    return 0;
}

/* ---- Addresses ---- */

static bool is_empty(const char *text)
{
    return text == NULL || text[0] == '\0';
}

/* The IPv4 address, or IPv6 where the network has no IPv4. */
static int read_instance_address(const struct mu__gce_location *location,
                                 const cJSON *item, const char *name, mu_error *ret_error,
                                 const char **ret_address)
{
    static const char *const keys[] = {"networkIP", "ipv6Address"};
    const cJSON *interfaces = cJSON_GetObjectItemCaseSensitive(item, "networkInterfaces");
    const cJSON *first = cJSON_IsArray(interfaces) ? interfaces->child : NULL;
    const char *address = NULL;
    char what[700];

    (void)snprintf(what, sizeof what, "%s: instance %s: networkInterfaces",
                   location->what, name);
    if (!cJSON_IsObject(first))
        return mu_error_set(ret_error, -MU_EINVALID, "%s: expected a list of objects",
                            what);
    for (size_t i = 0; i < 2 && is_empty(address); i++) {
        int rv = mu__google_text(first, keys[i], what, ret_error, &address);

        if (rv != 0)
            return rv;
    }
    if (is_empty(address))
        return mu_error_set(ret_error, -MU_EUNAVAILABLE, "%s[0]: networkIP is missing",
                            what);
    *ret_address = address;
    return 0;
}

/* {"name": "a", "networkInterfaces": [{"networkIP": "10.0.0.2"}]} */
static int take_address(void *user, const cJSON *item, size_t number, mu_error *ret_error)
{
    struct group_members *members = user;
    const struct mu__gce_location *location = members->location;
    struct mu__gce_instance key = *members->zone;
    struct mu__gce_instance *found;
    char what[600];
    int rv;

    (void)snprintf(what, sizeof what, "%s: list of instances: items[%zu]", location->what,
                   number);
    if (!cJSON_IsObject(item))
        return mu_error_set(ret_error, -MU_EINVALID, "%s: expected an object", what);
    key.name = NULL;
    rv = mu__google_text(item, "name", what, ret_error, &key.name);
    if (rv != 0)
        return rv;
    if (key.name == NULL)
        return mu_error_set(ret_error, -MU_EINVALID, "%s: name is missing", what);
    found = bsearch(&key, members->all->items, members->all->count, sizeof key, by_zone);
    return found == NULL ? 0
                         : read_instance_address(location, item, found->name, ret_error,
                                                 &found->address);
}

/* Build the filter "name eq 'a|b|c'" for the instances of one zone from index `from` on,
 * as many as a url has room for. It is a regular expression (RE2) over the whole name; of
 * the characters of names only the dot has a meaning there. Returns the index at which
 * the next request begins. */
static size_t build_filter(const struct mu__gce_location *location,
                           const struct mu__gce_instances *all, size_t from,
                           struct mu__build *url)
{
    const struct mu__gce_instance *first = &all->items[from];
    size_t i = from;

    mu__build_format(url,
                     "%s/projects/%s/zones/%.*s/instances?maxResults=500"
                     "&fields=items(name%%2CnetworkInterfaces(networkIP%%2Cipv6Address))"
                     "%%2CnextPageToken&filter=name%%20eq%%20%%27",
                     location->base, location->project, (int)first->zone_size,
                     first->zone);
    for (; i < all->count && compare_zones(&all->items[i], first) == 0 &&
           (i == from || url->size < FILTER_BYTES);
         i++) {
        if (i > from)
            mu__build_add(url, "%7C");
        mu__build_escaped(url, all->items[i].name);
    }
    mu__build_add(url, "%27");
    return i;
}

static int list_addresses(const struct mu__gce_location *location,
                          struct mu__gce_instances *all, mu_error *ret_error)
{
    for (size_t i = 0; i < all->count;) {
        struct group_members members = {location, all, &all->items[i]};
        struct mu__build url = {0};
        int rv;

        i = build_filter(location, all, i, &url);
        rv = !mu__build_whole(&url)
                 ? mu_error_set(ret_error, -MU_ENOMEM, "out of memory")
                 : walk_pages(location,
                              &(struct paged_list){.url = url.text,
                                                   .what = location->what,
                                                   .take = take_address,
                                                   .user = &members,
                                                   .refused = &all->refused},
                              ret_error);
        mu__build_done(&url);
        if (rv != 0)
            return rv;
    }
    return 0;
}

/* ---- All of it ---- */

int mu__gce_list(const struct mu__gce_location *location, mu_error *ret_error,
                 struct mu__gce_instances *all)
{
    int rv = list_members(location, all, ret_error);

    return rv != 0 ? rv : list_addresses(location, all, ret_error);
}
