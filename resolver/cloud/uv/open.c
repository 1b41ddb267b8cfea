/* libmuster-cloud's one exported function. */
#include "resolver/cloud/google/tpu.h"
#include "resolver/cloud/resolvers.h"
#include "resolver/cloud/uv/uv.h"

#include <curl/curl.h>

_Static_assert(LIBCURL_VERSION_NUM >= 0x075700, "libcurl is older than 7.87.0");

MU_EXPORT mu__cloud_open_fn mu__cloud_open;

/* Called once, with a lock held. */
const struct mu__cloud *mu__cloud_open(uint32_t layout)
{
    static struct mu__cloud cloud;

    if (layout != mu__cloud_layout() || curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK)
        return NULL;
    cloud = mu__cloud_pure;
    cloud.http_open = mu__curl_open;
    cloud.http_door = mu__curl_door;
    cloud.http_close = mu__curl_close;
    cloud.http_perform = mu__curl_perform;
    cloud.sign_rs256 = mu__crypto_sign_rs256;
    return &cloud;
}
