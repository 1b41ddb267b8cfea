/* The master: what a session connects to. */
#include "resolver/engine/resolver.h"
#include "resolver/spec/cluster.h"
#include "runtime/message/arguments.h"

#include <stdio.h>
#include <string.h>

_Static_assert(sizeof((mu_resolution *)0)->master == MU_MASTER_BYTES,
               "a resolution's master has MU_MASTER_BYTES");

static bool is_task_given(const char *type, int index)
{
    return type != NULL && type[0] != '\0' && index >= 0;
}

/* "grpc://" before an address that has no scheme itself. */
static void write_master(const char *rpc_layer, const char *address, char *ret_master)
{
    bool bare =
        rpc_layer[0] == '\0' || address[0] == '\0' || strstr(address, "://") != NULL;

    (void)snprintf(ret_master, MU_MASTER_BYTES, "%.15s%s%.300s", bare ? "" : rpc_layer,
                   bare ? "" : "://", address);
}

static int of_task(const mu_resolution *resolution, const char *type, int index,
                   const char *rpc_layer, mu_error *ret_error, char *ret_master)
{
    const char *address;
    mu_error inner;
    int rv = mu__task_type_check(type, &inner);

    if (rv != 0)
        return mu_error_set(ret_error, -MU_ENOTFOUND, "master: %s", inner.message);
    address = mu_cluster_address(resolution->cluster, type, index);
    if (address == NULL)
        return mu_error_set(ret_error, -MU_ENOTFOUND,
                            "master: task %s:%d is not in the cluster", type, index);
    write_master(rpc_layer, address, ret_master);
    return 0;
}

int mu_resolution_master(const mu_resolution *resolution, const char *type, int index,
                         const char *rpc_layer, mu_error *ret_error, char *ret_master)
{
    MU__REQUIRE(ret_error, resolution, ret_master);

    bool requested = is_task_given(type, index);

    if (rpc_layer == NULL)
        rpc_layer = resolution->rpc_layer;
    if (resolution->master[0] != '\0' && (resolution->master_fixed == 1 || !requested)) {
        write_master(resolution->master_fixed != 0 ? "" : rpc_layer, resolution->master,
                     ret_master);
        return 0;
    }
    if (type == NULL || type[0] == '\0')
        type = resolution->task_type;
    if (index < 0)
        index = resolution->task_index;
    if (!is_task_given(type, index) ||
        (resolution->alone_has_no_master &&
         mu_cluster_task_count(resolution->cluster, NULL) <= 1) ||
        (!requested && mu_cluster_is_empty(resolution->cluster))) {
        ret_master[0] = '\0';
        return 0;
    }
    return of_task(resolution, type, index, rpc_layer, ret_error, ret_master);
}
