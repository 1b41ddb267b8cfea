/* The resolver gce: the running instances of an instance group of Google Compute
 * Engine. */
#include "resolver/cloud/google/gce.h"

#include "resolver/engine/build.h"
#include "resolver/engine/kind.h"
#include "runtime/base/json.h"
#include "runtime/base/text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ENDPOINT "https://compute.googleapis.com/compute/v1"

static const struct mu__setting_spec settings_of[] = {
    [MU__GCE_SET_PROJECT] =
        {.name = "project",
         .variable = "MUSTER_GCE_PROJECT",
         .help = "the project; by itself GOOGLE_CLOUD_PROJECT or this machine's"},
    [MU__GCE_SET_ZONE] = {.name = "zone",
                          .variable = "MUSTER_GCE_ZONE",
                          .help = "the group's zone; by itself this machine's"},
    [MU__GCE_SET_REGION] = {.name = "region",
                            .variable = "MUSTER_GCE_REGION",
                            .help = "in place of a zone: the region of a regional group"},
    [MU__GCE_SET_INSTANCE_GROUP] =
        {.name = "instance_group",
         .variable = "MUSTER_GCE_INSTANCE_GROUP",
         .help = "the group; by itself the one that made this machine"},
    [MU__GCE_SET_PORT] = {.name = "port",
                          .form = MU__SETTING_NUMBER,
                          .variable = "MUSTER_GCE_PORT",
                          .initial = "8470",
                          .low = 1,
                          .high = 65535,
                          .help = "of every task"},
    [MU__GCE_SET_TASK_TYPE] = {.name = "task_type",
                               .variable = "MUSTER_GCE_TASK_TYPE",
                               .initial = "worker",
                               .help = "what all instances are"},
    [MU__GCE_SET_TASK_INDEX] = {.name = "task_index",
                                .variable = "MUSTER_GCE_TASK_INDEX",
                                .initial = "auto",
                                .help =
                                    "of this task: a number, \"none\", or \"auto\": this "
                                    "machine's place in the group, else 0"},
    [MU__GCE_SET_RPC_LAYER] = {.name = "rpc_layer",
                               .variable = "MUSTER_GCE_RPC_LAYER",
                               .initial = "grpc",
                               .help = "what a master begins with; may be empty"},
    [MU__GCE_SET_ORDER] =
        {.name = "order",
         .variable = "MUSTER_GCE_ORDER",
         .initial = "address",
         .help = "\"address\": by the bytes of the addresses, as TensorFlow does; "
                 "\"name\": by the instances' names"},
    [MU__GCE_SET_CREDENTIALS] = {.name = "credentials",
                                 .initial = "default",
                                 .help =
                                     "a file of credentials, \"default\" or \"none\""},
    [MU__GCE_SET_ACCESS_TOKEN] = {.name = "access_token",
                                  .variable = "CLOUDSDK_AUTH_ACCESS_TOKEN",
                                  .help = "a token, in place of credentials"},
    [MU__GCE_SET_ACCESS_TOKEN_FILE] =
        {.name = "access_token_file",
         .variable = "CLOUDSDK_AUTH_ACCESS_TOKEN_FILE",
         .help = "a file with a token, in place of credentials"},
    [MU__GCE_SET_API_ENDPOINT] = {.name = "api_endpoint",
                                  .variable = "MUSTER_GCE_API_ENDPOINT",
                                  .initial = ENDPOINT,
                                  .help = "where the API is"},
    [MU__GCE_SET_CA_FILE] =
        {.name = "ca_file",
         .variable = "MUSTER_GCE_CA_FILE",
         .help = "certificates (PEM) that are trusted in place of the system's"},
    {.name = NULL},
};

/* ---- The cluster ---- */

static int write_addresses(const struct mu__gce_location *location,
                           struct mu__gce_instances *all, long port, mu_error *ret_error)
{
    for (size_t i = 0; i < all->count; i++) {
        struct mu__gce_instance *instance = &all->items[i];
        struct mu__build text = {0};

        if (instance->address == NULL)
            return mu_error_set(ret_error, -MU_EUNAVAILABLE,
                                "%s: instance %s is in the group, but not in the list of "
                                "its zone's instances",
                                location->what, instance->name);
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

static int sort(const struct mu__settings *settings, struct mu__requests *requests,
                struct mu__gce_instances *all, mu_error *ret_error)
{
    const char *order = mu__setting(requests, settings, MU__GCE_SET_ORDER);
    char shown[MU__QUOTE_BYTES];
    char origin[128];

    if (strcmp(order, "name") == 0) {
        qsort(all->items, all->count, sizeof *all->items, mu__gce_by_name);
        return 0;
    }
    if (strcmp(order, "address") == 0) {
        qsort(all->items, all->count, sizeof *all->items, mu__gce_by_address);
        return 0;
    }
    mu__setting_origin(requests, settings, MU__GCE_SET_ORDER, origin);
    mu__quote(shown, sizeof shown, order, strlen(order));
    return mu_error_set(ret_error, -MU_EINVALID,
                        "%s: expected \"address\" or \"name\", got %s", origin, shown);
}

static int fill(const struct mu__gce_location *location,
                const struct mu__settings *settings, const struct mu__gce_instances *all,
                mu_error *ret_error, mu_resolution *ret_resolution)
{
    const char *type = mu__gce_text(location, settings, MU__GCE_SET_TASK_TYPE);
    char origin[128];
    int rv = 0;

    mu__setting_origin(location->google.requests, settings, MU__GCE_SET_TASK_TYPE,
                       origin);
    for (size_t i = 0; i < all->count && rv == 0; i++)
        rv = mu__resolution_add(ret_resolution, i == 0 ? origin : location->what, type,
                                (int)i, all->items[i].host_port, ret_error);
    if (rv != 0)
        return rv;
    (void)snprintf(ret_resolution->task_type, sizeof ret_resolution->task_type, "%s",
                   type);
    (void)snprintf(ret_resolution->rpc_layer, sizeof ret_resolution->rpc_layer, "%s",
                   mu__gce_text(location, settings, MU__GCE_SET_RPC_LAYER));
    return 0;
}

/* This machine's place in the group; 0, as in TensorFlow, where it has none. */
static int own_index(const struct mu__gce_location *location,
                     const struct mu__gce_instances *all, mu_error *ret_error,
                     int *ret_index)
{
    const char *name = NULL;
    mu_error inner;
    int rv = mu__google_here(location->google.requests, &inner);

    if (rv == 1)
        rv = mu__google_metadata(location->google.requests, "instance/name", false,
                                 &inner, &name);
    else if (rv == 0)
        mu__requests_explain(location->google.requests, "this task is 0: %s",
                             inner.message);
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
        mu__requests_explain(location->google.requests,
                             "this task is 0: this machine is not in the group");
    *ret_index = 0;
    return 0;
}

static int task_index(const struct mu__gce_location *location,
                      const struct mu__settings *settings,
                      const struct mu__gce_instances *all, mu_error *ret_error,
                      int *ret_index)
{
    const char *text = mu__gce_text(location, settings, MU__GCE_SET_TASK_INDEX);
    char shown[MU__QUOTE_BYTES];
    char origin[128];

    if (strcmp(text, "auto") == 0)
        return own_index(location, all, ret_error, ret_index);
    if (strcmp(text, "none") == 0 || text[0] == '\0') {
        *ret_index = -1;
        return 0;
    }
    if (mu__index_parse(text, ret_index) == 0)
        return 0;
    mu__setting_origin(location->google.requests, settings, MU__GCE_SET_TASK_INDEX,
                       origin);
    mu__quote(shown, sizeof shown, text, strlen(text));
    return mu_error_set(ret_error, -MU_EINVALID,
                        "%s: expected a number, \"auto\" or \"none\", got %s", origin,
                        shown);
}

static int resolve_instances(const struct mu__gce_location *location,
                             const struct mu__settings *settings,
                             struct mu__gce_instances *all, mu_error *ret_error,
                             mu_resolution *ret_resolution)
{
    long port = 0;
    int rv = mu__setting_number(location->google.requests, settings, MU__GCE_SET_PORT,
                                ret_error, &port);

    if (rv == 0)
        rv = mu__gce_list(location, ret_error, all);
    if (rv == 0)
        rv = write_addresses(location, all, port, ret_error);
    if (rv == 0)
        rv = sort(settings, location->google.requests, all, ret_error);
    if (rv == 0)
        rv = fill(location, settings, all, ret_error, ret_resolution);
    if (rv == 0)
        rv = task_index(location, settings, all, ret_error, &ret_resolution->task_index);
    return rv;
}

static int resolve(struct mu__requests *requests, const struct mu__settings *settings,
                   mu_error *ret_error, mu_resolution *ret_resolution)
{
    struct mu__gce_instances all = {0};
    struct mu__gce_location location;
    int rv = mu__gce_find_location(requests, settings, ret_error, &location);

    if (rv == 0)
        rv = resolve_instances(&location, settings, &all, ret_error, ret_resolution);
    mu__gce_instances_done(&all);
    return rv;
}

/* That a machine is Google's does not make it a task: the group has to be named. */
static int detect(struct mu__requests *requests, const struct mu__settings *settings,
                  mu_error *ret_why)
{
    bool located = (mu__setting_given(requests, settings, MU__GCE_SET_ZONE) ||
                    mu__setting_given(requests, settings, MU__GCE_SET_REGION)) &&
                   (mu__setting_given(requests, settings, MU__GCE_SET_PROJECT) ||
                    mu__request_variable(requests, "GOOGLE_CLOUD_PROJECT") != NULL);

    if (!mu__setting_given(requests, settings, MU__GCE_SET_INSTANCE_GROUP)) {
        (void)mu_error_set(ret_why, -MU_ENOTFOUND,
                           "MUSTER_GCE_INSTANCE_GROUP is not set");
        return 0;
    }
    return located ? 1 : mu__google_here(requests, ret_why);
}

const struct mu__resolver_kind mu__resolver_gce = {
    .name = "gce",
    .summary = "the running instances of an instance group of Google Compute Engine",
    .settings = settings_of,
    .detect = detect,
    .resolve = resolve,
    .watch_ms = 120000, /* a project has so many requests a minute for all tasks */
    .type_is_setting = true,
};
