#include "resolver/engine/cloud.h"
#include "resolver/engine/exchange.h"

#include <muster.h>

#include <stdatomic.h>

static _Atomic(const struct mu__cloud *) the_cloud;

void mu__cloud_set(const struct mu__cloud *cloud)
{
    atomic_store(&the_cloud, cloud);
}

uint32_t mu__cloud_layout(void)
{
    static const size_t sizes[] = {sizeof(struct mu__request),
                                   sizeof(struct mu__answer),
                                   sizeof(struct mu__exchange),
                                   sizeof(struct mu__settings),
                                   sizeof(struct mu__pass),
                                   sizeof(mu_resolution),
                                   sizeof(struct mu__cloud),
                                   sizeof(mu_tpu_state),
                                   MU__REQUEST_KINDS,
                                   MU_VERSION_MAJOR,
                                   MU_VERSION_MINOR,
                                   MU_VERSION_PATCH};
    uint32_t sum = 0;

    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
        sum = sum * 31 + (uint32_t)sizes[i];
    return sum;
}

int mu__cloud_need(struct mu__requests *requests, mu_error *ret_error,
                   const struct mu__cloud **ret_cloud)
{
    const struct mu__answer *answer;

    *ret_cloud = atomic_load(&the_cloud);
    if (*ret_cloud != NULL)
        return 0;
    answer = mu__requests_get(requests, &(struct mu__request){.kind = MU__REQUEST_LIBRARY,
                                                              .name = MU__CLOUD_LIBRARY,
                                                              .tries = 1});
    if (answer->code != 0) {
        *ret_error = answer->error;
        return answer->code;
    }
    *ret_cloud = atomic_load(&the_cloud);
    return 0;
}

int mu__cloud_resolve(enum mu__cloud_resolver resolver, const struct mu__pass *pass,
                      mu_error *ret_error, mu_resolution *ret_resolution)
{
    const struct mu__cloud *cloud;
    int rv = mu__cloud_need(pass->requests, ret_error, &cloud);

    return rv != 0 ? rv : cloud->resolve[resolver](pass, ret_error, ret_resolution);
}
