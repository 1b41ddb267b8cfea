/* The resolver gce: the running instances of an instance group of Google Compute Engine.
 *
 * The group tells the names of its instances, 500 in a page. Their addresses come from
 * the zone's list of instances, filtered by name, some hundred names in a request and all
 * these requests at once: asking for each instance by itself would be as many requests as
 * there are instances. */
#include "resolver/build.h"
#include "resolver/google.h"
#include "resolver/json.h"
#include "resolver/kind.h"
#include "resolver/text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ENDPOINT "https://compute.googleapis.com/compute/v1"

enum {
    PAGES_MAX = 200,            /* of one list */
    INSTANCES_MAX = 100000,
    FILTER_BYTES = 4000         /* of names in one url */
};

enum {
    PROJECT,
    ZONE,
    INSTANCE_GROUP,
    PORT,
    TASK_TYPE,
    TASK_INDEX,
    RPC_LAYER,
    ORDER,
    CREDENTIALS,
    ACCESS_TOKEN,
    ACCESS_TOKEN_FILE,
    API_ENDPOINT,
    CA_FILE
};

static const struct mu__setting_spec settings_of[] = {
    [PROJECT] = {.name = "project", .variable = "MUSTER_GCE_PROJECT",
                 .help = "the project; by itself GOOGLE_CLOUD_PROJECT or this machine's"},
    [ZONE] = {.name = "zone", .variable = "MUSTER_GCE_ZONE",
              .help = "the group's zone; by itself this machine's"},
    [INSTANCE_GROUP] = {.name = "instance_group", .variable = "MUSTER_GCE_INSTANCE_GROUP",
                        .help = "the group; by itself the one that made this machine"},
    [PORT] = {.name = "port", .form = MU__SETTING_NUMBER, .variable = "MUSTER_GCE_PORT",
              .initial = "8470", .low = 1, .high = 65535, .help = "of every task"},
    [TASK_TYPE] = {.name = "task_type", .variable = "MUSTER_GCE_TASK_TYPE",
                   .initial = "worker", .help = "what all instances are"},
    [TASK_INDEX] = {.name = "task_index", .variable = "MUSTER_GCE_TASK_INDEX",
                    .initial = "auto",
                    .help = "of this task: a number, \"none\", or \"auto\": this "
                            "machine's place in the group, else 0"},
    [RPC_LAYER] = {.name = "rpc_layer", .variable = "MUSTER_GCE_RPC_LAYER",
                   .initial = "grpc", .help = "what a master begins with; may be empty"},
    [ORDER] = {.name = "order", .variable = "MUSTER_GCE_ORDER", .initial = "address",
               .help = "\"address\": by the bytes of the addresses, as TensorFlow does; "
                       "\"name\": by the instances' names"},
    [CREDENTIALS] = {.name = "credentials", .initial = "default",
                     .help = "a file of a service account or a user, \"default\" or "
                             "\"none\""},
    [ACCESS_TOKEN] = {.name = "access_token", .variable = "CLOUDSDK_AUTH_ACCESS_TOKEN",
                      .help = "a token, in place of credentials"},
    [ACCESS_TOKEN_FILE] = {.name = "access_token_file",
                           .variable = "CLOUDSDK_AUTH_ACCESS_TOKEN_FILE",
                           .help = "a file with a token, in place of credentials"},
    [API_ENDPOINT] = {.name = "api_endpoint", .variable = "MUSTER_GCE_API_ENDPOINT",
                      .initial = ENDPOINT, .help = "where the API is"},
    [CA_FILE] = {.name = "ca_file", .variable = "MUSTER_GCE_CA_FILE",
                 .help = "certificates (PEM) that are trusted in place of the system's"},
    {.name = NULL},
};

/* ---- What is asked for ---- */

struct place {
    struct mu__google google;
    char project[MU__GOOGLE_NAME_BYTES];
    char zone[MU__GOOGLE_NAME_BYTES];
    char group[MU__GOOGLE_NAME_BYTES];
    char base[512];
    char what[512];     /* begins all messages */
};

static const char *text_of(const struct place *place, const struct mu__settings *settings,
                           unsigned number)
{
    return mu__setting(place->google.notes, settings, number);
}

static void init_google(struct mu__notes *notes, const struct mu__settings *settings,
                        struct mu__google *google)
{
    *google = (struct mu__google){
        .notes = notes,
        .resolver = "gce",
        .credentials = mu__setting(notes, settings, CREDENTIALS),
        .access_token = mu__setting(notes, settings, ACCESS_TOKEN),
        .access_token_file = mu__setting(notes, settings, ACCESS_TOKEN_FILE),
        .ca_file = mu__setting(notes, settings, CA_FILE),
    };
}

/* Who made this machine is told: "projects/1/zones/z/instanceGroupManagers/g"; its group
 * has the same name. */
static int group_of_machine(struct place *place, mu_error *ret_error,
                            const char **ret_group)
{
    const char *text = NULL;
    const char *name;
    mu_error inner;
    int rv = mu__google_here(place->google.notes, &inner);

    if (rv == 1)
        rv = mu__google_metadata(place->google.notes, "instance/attributes/created-by",
                                 false, &inner, &text);
    else if (rv == 0)
        rv = -MU_ENOTFOUND;
    if (rv == MU__LATER)
        return rv;
    if (rv != 0)
        return mu_error_set(ret_error, rv == -MU_ENOTFOUND ? -MU_EPRECONDITION : rv,
                            "resolver gce: the instance group is not known: set "
                            "\"instance_group\"; %s",
                            inner.message);
    name = strstr(text, "/instanceGroupManagers/");
    if (name == NULL)
        return mu_error_set(ret_error, -MU_EPRECONDITION,
                            "resolver gce: the instance group is not known: set "
                            "\"instance_group\"; this machine was not made by one");
    *ret_group = strrchr(name, '/') + 1;
    return 0;
}

static int find_group(struct place *place, const struct mu__settings *settings,
                      mu_error *ret_error)
{
    const char *group = text_of(place, settings, INSTANCE_GROUP);
    int rv;

    if (group == NULL || group[0] == '\0') {
        rv = group_of_machine(place, ret_error, &group);
        if (rv != 0)
            return rv;
    }
    rv = mu__google_name_check("setting instance_group", group, ret_error);
    if (rv == 0)
        (void)snprintf(place->group, sizeof place->group, "%s", group);
    return rv;
}

/* What the metadata server tells is asked for together. */
static int find_place(struct mu__notes *notes, const struct mu__settings *settings,
                      mu_error *ret_error, struct place *place)
{
    int results[4];

    *place = (struct place){0};
    init_google(notes, settings, &place->google);
    results[0] = mu__google_endpoint(&place->google,
                                     text_of(place, settings, API_ENDPOINT), ret_error,
                                     place->base, sizeof place->base);
    if (results[0] != 0)
        return results[0];
    results[1] = mu__google_project(&place->google, text_of(place, settings, PROJECT),
                                    ret_error, place->project);
    if (results[1] != 0 && results[1] != MU__LATER)
        return results[1];
    results[2] = mu__google_zone(&place->google, text_of(place, settings, ZONE),
                                 ret_error, place->zone);
    if (results[2] != 0 && results[2] != MU__LATER)
        return results[2];
    results[3] = find_group(place, settings, ret_error);
    if (results[3] != 0 && results[3] != MU__LATER)
        return results[3];
    (void)snprintf(place->what, sizeof place->what,
                   "instance group \"%s\" (project %s, zone %s)", place->group,
                   place->project, place->zone);
    for (size_t i = 1; i < 4; i++)
        if (results[i] != 0)
            return results[i];
    return 0;
}

/* ---- Instances ---- */

struct instance {
    const char *name;       /* of the answer */
    const char *address;    /* NULL: not known yet */
    char *host_port;        /* the address in the cluster */
};

struct instances {
    struct instance *items;
    size_t count;
    size_t room;
};

static void instances_done(struct instances *all)
{
    for (size_t i = 0; i < all->count; i++)
        free(all->items[i].host_port);
    free(all->items);
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const struct instance *)a)->name, ((const struct instance *)b)->name);
}

static int by_address(const void *a, const void *b)
{
    return strcmp(((const struct instance *)a)->host_port,
                  ((const struct instance *)b)->host_port);
}

static int add_instance(const struct place *place, struct instances *all,
                        const char *name, mu_error *ret_error)
{
    struct instance *items;
    size_t room;

    if (all->count == INSTANCES_MAX)
        return mu_error_set(ret_error, -MU_EEXHAUSTED,
                            "%s: more than %d instances are too many", place->what,
                            INSTANCES_MAX);
    if (all->count == all->room) {
        room = all->room == 0 ? 64 : 2 * all->room;
        items = realloc(all->items, room * sizeof *items);
        if (items == NULL)
            return mu_error_set(ret_error, -MU_ENOMEM, "out of memory");
        all->items = items;
        all->room = room;
    }
    all->items[all->count++] = (struct instance){.name = name};
    return 0;
}

/* ---- Lists in pages ---- */

/* One list: a url and what is done with each item of each page. */
struct list {
    const char *url;        /* without pageToken; with a "?" in it */
    const char *method;
    const char *body;
    const char *what;
    int (*take)(void *user, const cJSON *item, size_t number, mu_error *ret_error);
    void *user;
};

static int take_items(const struct list *list, const cJSON *root, size_t *number,
                      mu_error *ret_error)
{
    const cJSON *items = cJSON_GetObjectItemCaseSensitive(root, "items");
    int rv = 0;

    if (items == NULL)          /* an empty list is left out */
        return 0;
    if (!cJSON_IsArray(items))
        return mu_error_set(ret_error, -MU_EINVALID, "%s: items: expected a list",
                            list->what);
    for (const cJSON *item = items->child; item != NULL && rv == 0; item = item->next)
        rv = list->take(list->user, item, (*number)++, ret_error);
    return rv;
}

static int ask_page(const struct place *place, const struct list *list, const char *token,
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
        rv = mu__google_ask(&place->google,
                            &(struct mu__google_request){.url = url.text,
                                                         .method = list->method,
                                                         .body = list->body,
                                                         .what = list->what},
                            ret_error, ret_root);
    else
        rv = mu_error_set(ret_error, -MU_ENOMEM, "out of memory");
    mu__build_done(&url);
    return rv;
}

static int walk(const struct place *place, const struct list *list, mu_error *ret_error)
{
    const char *before = NULL;
    const char *token = NULL;
    const cJSON *root;
    size_t number = 0;
    int rv;

    for (unsigned page = 0; page < PAGES_MAX; page++) {
        rv = ask_page(place, list, token, ret_error, &root);
        if (rv == 0)
            rv = take_items(list, root, &number, ret_error);
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

/* ---- Who is in the group ---- */

struct members {
    const struct place *place;
    struct instances *all;
};

/* {"instance": "https://.../zones/z/instances/name", "status": "RUNNING"} */
static int take_member(void *user, const cJSON *item, size_t number, mu_error *ret_error)
{
    struct members *members = user;
    const struct place *place = members->place;
    const char *status = NULL;
    const char *url = NULL;
    char what[600];
    int rv;

    (void)snprintf(what, sizeof what, "%s: items[%zu]", place->what, number);
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
        return 0;               /* it may have changed after the server's filter */
    (void)snprintf(what, sizeof what, "%s: items[%zu]: instance", place->what, number);
    url = strrchr(url, '/') == NULL ? url : strrchr(url, '/') + 1;
    rv = mu__google_name_check(what, url, ret_error);
    return rv != 0 ? rv : add_instance(place, members->all, url, ret_error);
}

static int list_members(const struct place *place, struct instances *all,
                        mu_error *ret_error)
{
    struct members members = {place, all};
    char url[1200];
    int rv;

    (void)snprintf(url, sizeof url,
                   "%s/projects/%s/zones/%s/instanceGroups/%s/listInstances"
                   "?maxResults=500&orderBy=name",
                   place->base, place->project, place->zone, place->group);
    rv = walk(place,
              &(struct list){.url = url,
                             .method = "POST",
                             .body = "{\"instanceState\":\"RUNNING\"}",
                             .what = place->what,
                             .take = take_member,
                             .user = &members},
              ret_error);
    if (rv == 0 && all->count == 0)
        return mu_error_set(ret_error, -MU_EUNAVAILABLE,
                            "%s: no instance is running there", place->what);
    if (rv != 0)
        return rv;
    qsort(all->items, all->count, sizeof *all->items, by_name);
    for (size_t i = 1; i < all->count; i++)
        if (strcmp(all->items[i - 1].name, all->items[i].name) == 0)
            return mu_error_set(ret_error, -MU_EINVALID,
                                "%s: the instance %s is there twice", place->what,
                                all->items[i].name);
    return 0;
}

/* ---- Where they are ---- */

static int read_address(const struct place *place, const cJSON *item, const char *name,
                        mu_error *ret_error, const char **ret_address)
{
    const cJSON *interfaces = cJSON_GetObjectItemCaseSensitive(item, "networkInterfaces");
    const cJSON *first = cJSON_IsArray(interfaces) ? interfaces->child : NULL;
    const char *address = NULL;
    char what[700];
    int rv;

    (void)snprintf(what, sizeof what, "%s: instance %s: networkInterfaces", place->what,
                   name);
    if (!cJSON_IsObject(first))
        return mu_error_set(ret_error, -MU_EINVALID, "%s: expected a list of objects",
                            what);
    rv = mu__google_text(first, "networkIP", what, ret_error, &address);
    if (rv == 0 && (address == NULL || address[0] == '\0'))
        return mu_error_set(ret_error, -MU_EUNAVAILABLE, "%s[0]: networkIP is missing",
                            what);
    if (rv == 0)
        *ret_address = address;
    return rv;
}

/* {"name": "a", "networkInterfaces": [{"networkIP": "10.0.0.2"}]} */
static int take_address(void *user, const cJSON *item, size_t number, mu_error *ret_error)
{
    struct members *members = user;
    const struct place *place = members->place;
    struct instance wanted = {0};
    struct instance *found;
    char what[600];
    int rv;

    (void)snprintf(what, sizeof what, "%s: list of instances: items[%zu]", place->what,
                   number);
    if (!cJSON_IsObject(item))
        return mu_error_set(ret_error, -MU_EINVALID, "%s: expected an object", what);
    rv = mu__google_text(item, "name", what, ret_error, &wanted.name);
    if (rv != 0)
        return rv;
    if (wanted.name == NULL)
        return mu_error_set(ret_error, -MU_EINVALID, "%s: name is missing", what);
    found = bsearch(&wanted, members->all->items, members->all->count, sizeof wanted,
                    by_name);
    return found == NULL ? 0 : read_address(place, item, found->name, ret_error,
                                            &found->address);
}

/* name eq 'a|b|c', a regular expression for the whole name. Names have no letter that
 * means something there, but for a dot. */
static size_t build_filter(const struct place *place, const struct instances *all,
                           size_t from, struct mu__build *url)
{
    size_t i = from;

    mu__build_format(url,
                     "%s/projects/%s/zones/%s/instances?maxResults=500"
                     "&fields=items(name%%2CnetworkInterfaces%%2FnetworkIP)%%2C"
                     "nextPageToken&filter=name%%20eq%%20%%27",
                     place->base, place->project, place->zone);
    for (; i < all->count && (i == from || url->size < FILTER_BYTES); i++) {
        if (i > from)
            mu__build_add(url, "%7C");
        mu__build_escaped(url, all->items[i].name);
    }
    mu__build_add(url, "%27");
    return i;
}

/* All requests are made before the first answer is waited for. */
static int list_addresses(const struct place *place, struct instances *all,
                          mu_error *ret_error)
{
    struct members members = {place, all};
    bool later = false;

    for (size_t i = 0; i < all->count;) {
        struct mu__build url = {0};
        int rv;

        i = build_filter(place, all, i, &url);
        rv = !mu__build_whole(&url)
                 ? mu_error_set(ret_error, -MU_ENOMEM, "out of memory")
                 : walk(place,
                        &(struct list){.url = url.text,
                                       .what = place->what,
                                       .take = take_address,
                                       .user = &members},
                        ret_error);
        mu__build_done(&url);
        later |= rv == MU__LATER;
        if (rv != 0 && rv != MU__LATER)
            return rv;
    }
    return later ? MU__LATER : 0;
}

/* ---- The cluster ---- */

static int write_addresses(const struct place *place, struct instances *all, long port,
                           mu_error *ret_error)
{
    for (size_t i = 0; i < all->count; i++) {
        struct instance *instance = &all->items[i];
        struct mu__build text = {0};

        if (instance->address == NULL)
            return mu_error_set(ret_error, -MU_EUNAVAILABLE,
                                "%s: instance %s is in the group, but not in the list of "
                                "the zone's instances",
                                place->what, instance->name);
        if (strchr(instance->address, ':') == NULL)
            mu__build_format(&text, "%s:%ld", instance->address, port);
        else
            mu__build_format(&text, "[%s]:%ld", instance->address, port);
        if (!mu__build_whole(&text))
            return mu_error_set(ret_error, -MU_ENOMEM, "out of memory");
        instance->host_port = text.text;
    }
    return 0;
}

static int sort(const struct mu__settings *settings, struct mu__notes *notes,
                struct instances *all, mu_error *ret_error)
{
    const char *order = mu__setting(notes, settings, ORDER);
    char shown[MU__QUOTE_BYTES];
    char origin[128];

    if (strcmp(order, "name") == 0)
        return 0;               /* as it is */
    if (strcmp(order, "address") == 0) {
        qsort(all->items, all->count, sizeof *all->items, by_address);
        return 0;
    }
    mu__setting_origin(notes, settings, ORDER, origin);
    mu__quote(shown, sizeof shown, order, strlen(order));
    return mu_error_set(ret_error, -MU_EINVALID,
                        "%s: expected \"address\" or \"name\", got %s", origin, shown);
}

static int fill(const struct place *place, const struct mu__settings *settings,
                const struct instances *all, mu_error *ret_error,
                mu_resolution *ret_resolution)
{
    const char *type = text_of(place, settings, TASK_TYPE);
    char origin[128];
    int rv = 0;

    mu__setting_origin(place->google.notes, settings, TASK_TYPE, origin);
    for (size_t i = 0; i < all->count && rv == 0; i++)
        rv = mu__resolution_add(ret_resolution, i == 0 ? origin : place->what, type,
                                (int)i, all->items[i].host_port, ret_error);
    if (rv != 0)
        return rv;
    (void)snprintf(ret_resolution->task_type, sizeof ret_resolution->task_type, "%s",
                   type);
    (void)snprintf(ret_resolution->rpc_layer, sizeof ret_resolution->rpc_layer, "%s",
                   text_of(place, settings, RPC_LAYER));
    return 0;
}

/* This machine's place in the group; 0, as in TensorFlow, where it has none. */
static int own_index(const struct place *place, const struct instances *all,
                     mu_error *ret_error, int *ret_index)
{
    const char *name = NULL;
    mu_error inner;
    int rv = mu__google_here(place->google.notes, &inner);

    if (rv == 1)
        rv = mu__google_metadata(place->google.notes, "instance/name", false, &inner,
                                 &name);
    else if (rv == 0)
        mu__notes_say(place->google.notes, "this task is 0: %s", inner.message);
    if (rv == MU__LATER)
        return rv;
    if (rv < 0)
        return mu_error_set(ret_error, rv, "resolver gce: this machine's name: %s",
                            inner.message);
    for (size_t i = 0; i < all->count && name != NULL; i++) {
        if (strcmp(all->items[i].name, name) != 0)
            continue;
        *ret_index = (int)i;
        return 0;
    }
    if (name != NULL)
        mu__notes_say(place->google.notes,
                      "this task is 0: this machine is not in the group");
    *ret_index = 0;
    return 0;
}

static int task_index(const struct place *place, const struct mu__settings *settings,
                      const struct instances *all, mu_error *ret_error, int *ret_index)
{
    const char *text = text_of(place, settings, TASK_INDEX);
    char shown[MU__QUOTE_BYTES];
    char origin[128];

    if (strcmp(text, "auto") == 0)
        return own_index(place, all, ret_error, ret_index);
    if (strcmp(text, "none") == 0 || text[0] == '\0') {
        *ret_index = -1;
        return 0;
    }
    if (mu__index_parse(text, ret_index) == 0)
        return 0;
    mu__setting_origin(place->google.notes, settings, TASK_INDEX, origin);
    mu__quote(shown, sizeof shown, text, strlen(text));
    return mu_error_set(ret_error, -MU_EINVALID,
                        "%s: expected a number, \"auto\" or \"none\", got %s", origin,
                        shown);
}

static int resolve_instances(const struct place *place,
                             const struct mu__settings *settings, struct instances *all,
                             mu_error *ret_error, mu_resolution *ret_resolution)
{
    long port = 0;
    int rv = mu__setting_number(place->google.notes, settings, PORT, ret_error, &port);

    if (rv == 0)
        rv = list_members(place, all, ret_error);
    if (rv == 0)
        rv = list_addresses(place, all, ret_error);
    if (rv == 0)
        rv = write_addresses(place, all, port, ret_error);
    if (rv == 0)
        rv = sort(settings, place->google.notes, all, ret_error);
    if (rv == 0)
        rv = fill(place, settings, all, ret_error, ret_resolution);
    if (rv == 0)
        rv = task_index(place, settings, all, ret_error, &ret_resolution->task_index);
    return rv;
}

static int resolve(struct mu__notes *notes, const struct mu__settings *settings,
                   mu_error *ret_error, mu_resolution *ret_resolution)
{
    struct instances all = {0};
    struct place place;
    int rv = find_place(notes, settings, ret_error, &place);

    if (rv == 0)
        rv = resolve_instances(&place, settings, &all, ret_error, ret_resolution);
    instances_done(&all);
    return rv;
}

/* That a machine is Google's does not make it a task: the group has to be named. */
static int detect(struct mu__notes *notes, const struct mu__settings *settings,
                  mu_error *ret_why)
{
    bool located = mu__setting_given(notes, settings, ZONE) &&
                   (mu__setting_given(notes, settings, PROJECT) ||
                    mu__ask_variable(notes, "GOOGLE_CLOUD_PROJECT") != NULL);

    if (!mu__setting_given(notes, settings, INSTANCE_GROUP)) {
        (void)mu_error_set(ret_why, -MU_ENOTFOUND,
                           "MUSTER_GCE_INSTANCE_GROUP is not set");
        return 0;
    }
    return located ? 1 : mu__google_here(notes, ret_why);
}

const struct mu__resolver_kind mu__resolver_gce = {
    .name = "gce",
    .summary = "the running instances of an instance group of Google Compute Engine",
    .settings = settings_of,
    .detect = detect,
    .resolve = resolve,
    .watch_ms = 30000,
    .type_is_setting = true,
};
