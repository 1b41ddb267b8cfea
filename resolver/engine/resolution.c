/* A resolution, which resolvers fill in. */
#include "resolver/engine/kind.h"
#include "resolver/spec/address.h"
#include "runtime/message/arguments.h"

#include <stdio.h>
#include <string.h>

void mu_resolution_init(mu_resolution *resolution)
{
    MU__REQUIRE_OR(, resolution);
    *resolution = (mu_resolution){.task_index = -1, .partition = -1, .accelerators = -1};
}

int mu__resolution_add(mu_resolution *resolution, const char *source, const char *type,
                       int index, const char *address, mu_error *ret_error)
{
    mu_error inner;
    int rv;

    if (resolution->cluster == NULL)
        resolution->cluster = mu_cluster_new();
    if (resolution->cluster == NULL)
        return mu_error_set(ret_error, -MU_ENOMEM, "%s: out of memory", source);
    rv = mu_cluster_add(resolution->cluster, type, index, address, &inner);
    return rv == 0 ? 0 : mu_error_set(ret_error, rv, "%s: %s", source, inner.message);
}

int mu__resolution_add_host(mu_resolution *resolution, const char *source,
                            const char *type, int index, const char *host, unsigned port,
                            mu_error *ret_error)
{
    char address[MU_CLUSTER_ADDRESS_BYTES_MAX + 1];

    if (mu__address_join(host, port, address, sizeof address) >= sizeof address)
        return mu_error_set(ret_error, -MU_EINVALID,
                            "%s: expected a host of at most %d bytes, got one of %zu",
                            source, MU_CLUSTER_ADDRESS_BYTES_MAX - 8, strlen(host));
    return mu__resolution_add(resolution, source, type, index, address, ret_error);
}
