/* The resolver gce: the running instances of an instance group of Google Compute
 * Engine. */
#include "resolver/cloud/google/gce.h"
#include "resolver/cloud/resolvers.h"

#include "resolver/engine/kind.h"
#include "resolver/spec/address.h"
#include "runtime/base/text.h"
#include "runtime/document/json.h"
#include "runtime/document/refuse.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- The cluster ---- */

static int write_addresses(const struct mu__gce_location *location,
                           struct mu__gce_instances *all, long port, mu_error *ret_error)
{
    for (size_t i = 0; i < all->count; i++) {
        struct mu__gce_instance *instance = &all->items[i];
        char address[MU__GOOGLE_HOST_BYTES];

        if (instance->address == NULL)
            return mu_error_set(ret_error, -MU_EUNAVAILABLE,
                                "%s: instance %s is in the group, but not in the list of "
                                "its zone's instances",
                                location->what, instance->name);
        (void)mu__address_join(instance->address, (unsigned)port, address,
                               sizeof address);
        instance->host_port = strdup(address);
        if (instance->host_port == NULL)
            return mu_error_set(ret_error, -MU_ENOMEM, "out of memory");
    }
    return 0;
}

static int sort_instances(const struct mu__pass *pass, struct mu__gce_instances *all,
                          mu_error *ret_error)
{
    static const char *const orders[] = {"address", "name", NULL};
    unsigned order = 0;
    int rv = mu__setting_word(pass, MU__GCE_SET_ORDER, orders, "\"address\" or \"name\"",
                              ret_error, &order);

    if (rv == 0)
        qsort(all->items, all->count, sizeof *all->items,
              order == 0 ? mu__gce_by_address : mu__gce_by_name);
    return rv;
}

static int add_instances(const struct mu__gce_location *location,
                         const struct mu__gce_instances *all, mu_error *ret_error,
                         mu_resolution *ret_resolution)
{
    const char *type = mu__setting(location->google.pass, MU__GCE_SET_TASK_TYPE);
    const char *origin = mu__setting_origin(location->google.pass, MU__GCE_SET_TASK_TYPE);
    int rv = 0;

    for (size_t i = 0; i < all->count && rv == 0; i++)
        rv = mu__resolution_add(ret_resolution, i == 0 ? origin : location->what, type,
                                (int)i, all->items[i].host_port, ret_error);
    if (rv != 0)
        return rv;
    MU__COPY_TEXT(ret_resolution->task_type, type);
    MU__COPY_TEXT(ret_resolution->rpc_layer,
                  mu__setting(location->google.pass, MU__GCE_SET_RPC_LAYER));
    return 0;
}

/* This machine's position in the group; 0, as in TensorFlow, when it is not in it. */
static int find_own_instance(const struct mu__gce_location *location,
                             const struct mu__gce_instances *all, mu_error *ret_error,
                             int *ret_index)
{
    const char *name = NULL;
    mu_error inner;
    int rv = mu__google_here(location->google.pass->requests, &inner);

    if (rv == 1)
        rv = mu__google_metadata(location->google.pass->requests, "instance/name", false,
                                 &inner, &name);
    else if (rv == 0)
        mu__requests_explain(location->google.pass->requests, "this task is 0: %s",
                             inner.message);
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
        mu__requests_explain(location->google.pass->requests,
                             "this task is 0: this machine is not in the group");
    *ret_index = 0;
    return 0;
}

static int get_gce_task_index(const struct mu__gce_location *location,
                              const struct mu__gce_instances *all, mu_error *ret_error,
                              int *ret_index)
{
    const char *text = mu__setting(location->google.pass, MU__GCE_SET_TASK_INDEX);

    if (strcmp(text, "auto") == 0)
        return find_own_instance(location, all, ret_error, ret_index);
    if (strcmp(text, "none") == 0 || text[0] == '\0') {
        *ret_index = -1;
        return 0;
    }
    if (mu__index_parse(text, ret_index) == 0)
        return 0;
    return mu__setting_refuse(location->google.pass, MU__GCE_SET_TASK_INDEX,
                              "a number, \"auto\" or \"none\"", ret_error);
}

static int resolve_instances(const struct mu__gce_location *location,
                             struct mu__gce_instances *all, mu_error *ret_error,
                             mu_resolution *ret_resolution)
{
    long port = 0;
    int rv =
        mu__setting_number(location->google.pass, MU__GCE_SET_PORT, ret_error, &port);

    if (rv == 0)
        rv = mu__gce_list(location, ret_error, all);
    if (rv == 0)
        rv = write_addresses(location, all, port, ret_error);
    if (rv == 0)
        rv = sort_instances(location->google.pass, all, ret_error);
    if (rv == 0)
        rv = add_instances(location, all, ret_error, ret_resolution);
    if (rv == 0)
        rv = get_gce_task_index(location, all, ret_error, &ret_resolution->task_index);
    return rv;
}

int mu__gce_resolve(const struct mu__pass *pass, mu_error *ret_error,
                    mu_resolution *ret_resolution)
{
    struct mu__gce_instances all = {0};
    struct mu__gce_location location;
    int rv = mu__gce_find_location(pass, ret_error, &location);

    if (rv == 0)
        rv = resolve_instances(&location, &all, ret_error, ret_resolution);
    mu__gce_instances_done(&all);
    return rv;
}
