/* Answers of the API of Cloud TPU, as rows. */
#ifndef MU_TESTS_TPU_FIXTURE_H
#define MU_TESTS_TPU_FIXTURE_H

#include "resolver/cloud/google/tpu.h"
#include "resolver/kinds.h"
#include "tests/support/script.h"
#include "tests/support/test.h"

#define META "http://metadata.google.internal/computeMetadata/v1/"
#define NODES "https://tpu.googleapis.com/v2/projects/p/locations/z/nodes"
#define QUEUES "https://tpu.googleapis.com/v2/projects/p/locations/z/queuedResources"
#define ROW_GCE SCRIPT_FILE("/sys/class/dmi/id/product_name", "Google Compute Engine\n")
#define ROW_META(path, ...)                                                           \
    SCRIPT(HTTP, .name = META path, .header = "Google", .content_type = "text/plain", \
           __VA_ARGS__)
#define ROW_NODE(node, ...)                                                            \
    SCRIPT(HTTP, .name = NODES "/" node, .has_header = "Authorization: Bearer secret", \
           __VA_ARGS__)
#define TWO_ENDPOINTS                                                                 \
    "{\"state\": \"READY\", \"health\": \"HEALTHY\", \"acceleratorType\": \"v2-16\"," \
    "\"networkEndpoints\": [{\"ipAddress\": \"10.0.0.2\", \"port\": 8470},"           \
    "{\"ipAddress\": \"10.0.0.3\"}]}"

static const struct mu__resolver_kind *const kind = &mu__resolver_tpu;
static const char *const named[] = {"tpu=n", "project=p", "zone=z", "access_token=secret",
                                    NULL};

#endif
