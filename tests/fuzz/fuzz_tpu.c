/* Any bytes as names, addresses and configurations of TPUs, and as their dates and types:
 * an error in words, or what they mean. The first byte says which. */
#include "resolver/cloud/google/tpu.h"
#include "resolver/kinds.h"
#include "runtime/base/date.h"
#include "tests/fuzz/fuzz_requester.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void read_words(const uint8_t *data, size_t size)
{
    char *text = malloc(size + 1);
    int64_t s = -1;

    fuzz_must(text != NULL, "memory");
    if (size > 0)
        memcpy(text, data, size);
    text[size] = '\0';
    fuzz_must(mu__date_parse(text, &s) != 0 || s >= 0, "time");
    fuzz_must(mu__tpu_devices(text, 4) >= -1, "devices");
    free(text);
}

static void read_endpoint(const uint8_t *data, size_t size)
{
    struct mu__tpu_endpoints endpoints = {0};
    mu_error error;
    int rv = mu__tpu_endpoint_add(&endpoints, (const char *)data, size, 8470, "TPU", 0,
                                  &error);

    fuzz_must(rv == 0 || error.message[0] != '\0', "words");
    fuzz_must(rv != 0 ||
                  (endpoints.items[0].port > 0 && endpoints.items[0].port <= 65535 &&
                   endpoints.items[0].host[0] != '\0'),
              "endpoint");
    mu__tpu_endpoints_done(&endpoints);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const names[] = {"KUBE_GOOGLE_CLOUD_TPU_ENDPOINTS",
                                        "TPU_WORKER_HOSTNAMES", "TPU_NAME", "TPU_CONFIG"};
    static const char *const api[] = {"project",      "p", "zone", "z",
                                      "access_token", "t", NULL};
    static const char *const by_hand[] = {"project", "p",   "zone", "z", "access_token",
                                          "t",       "tpu", NULL,   NULL};
    uint8_t first = size == 0 ? 0 : data[0];
    const uint8_t *rest = size == 0 ? data : data + 1;
    size_t left = size == 0 ? 0 : size - 1;
    struct fuzz_variable variables[] = {
        {names[first % 4], NULL}, {"TPU_WORKER_ID", "0"}, {NULL, NULL}};

    if (first % 8 < 4)
        fuzz_resolve(&mu__resolver_tpu, variables, api, 200, rest, left);
    else
        fuzz_resolve(&mu__resolver_tpu, variables + 2, by_hand, 200, rest, left);
    read_words(rest, left);
    read_endpoint(rest, left);
    return 0;
}
