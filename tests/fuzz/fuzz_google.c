/* Any bytes as what Google's metadata server, token servers and APIs answer, and as files
 * of credentials: an error in words, or a cluster. The first byte says which. */
#include "resolver/kinds.h"
#include "tests/fuzz/fuzz_requester.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct fuzz_variable none[] = {{NULL, NULL}};
    static const struct fuzz_variable machine[] = {{"GCE_METADATA_HOST", "h"},
                                                   {NULL, NULL}};
    static const char *const api[] = {
        "project", "p", "zone", "z", "instance_group", "g", "access_token", "t", NULL};
    static const char *const credentials[] = {
        "project", "p", "zone", "z", "instance_group", "g", "credentials", "/c", NULL};
    static const char *const node[] = {"project",      "p", "zone", "z", "tpu", "n",
                                       "access_token", "t", NULL};
    static const char *const region[] = {
        "project", "p", "region", "r", "instance_group", "g", "access_token", "t", NULL};
    static const char *const queue[] = {"tpu", "projects/p/locations/z/queuedResources/q",
                                        "access_token", "t", NULL};
    static const char *const by_itself[] = {NULL};
    static const int statuses[] = {200, 200, 200, 200, 200, 401, 403, 404};
    uint8_t first = size == 0 ? 0 : data[0];
    int status = statuses[first >> 5];
    const uint8_t *rest = size == 0 ? data : data + 1;
    size_t left = size == 0 ? 0 : size - 1;

    switch (first % 32 % 7) {
    case 0:
        fuzz_resolve(&mu__resolver_gce, none, api, status, rest, left);
        break;
    case 1:
        fuzz_resolve(&mu__resolver_gce, none, credentials, status, rest, left);
        break;
    case 2:
        fuzz_resolve(&mu__resolver_gce, machine, by_itself, status, rest, left);
        break;
    case 3:
        fuzz_resolve(&mu__resolver_tpu, none, node, status, rest, left);
        break;
    case 4:
        fuzz_resolve(&mu__resolver_gce, none, region, status, rest, left);
        break;
    case 5:
        fuzz_resolve(&mu__resolver_tpu, none, queue, status, rest, left);
        break;
    default:
        fuzz_resolve(&mu__resolver_tpu, machine, by_itself, status, rest, left);
        break;
    }
    return 0;
}
