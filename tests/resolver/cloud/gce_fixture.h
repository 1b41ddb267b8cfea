/* Answers of the API of Compute Engine, as rows. */
#ifndef MU_TESTS_GCE_FIXTURE_H
#define MU_TESTS_GCE_FIXTURE_H

#include "resolver/kinds.h"
#include "tests/support/script.h"
#include "tests/support/test.h"

#define META "http://metadata.google.internal/computeMetadata/v1/"
#define API "https://compute.googleapis.com/compute/v1/projects/p/zones/z/"
#define GROUP API "instanceGroups/g/listInstances?maxResults=500&orderBy=name"
#define LIST(names) LIST_OF("z", names)
#define LIST_OF(zone, names)                                           \
    "https://compute.googleapis.com/compute/v1/projects/p/zones/" zone \
    "/instances?maxResults=500&fields=items(name%2CnetworkInterfaces(" \
    "networkIP%2Cipv6Address))%2CnextPageToken&filter=name%20eq%20%27" names "%27"
#define MEMBER(name) \
    "{\"instance\": \"https://x/zones/z/instances/" name "\", \"status\": \"RUNNING\"}"
#define INSTANCE(name, ip) \
    "{\"name\": \"" name "\", \"networkInterfaces\": [{\"networkIP\": \"" ip "\"}]}"
#define ROW_GCE SCRIPT_FILE("/sys/class/dmi/id/product_name", "Google Compute Engine\n")
#define ROW_META(path, ...)                                                       \
    SCRIPT(HTTP, .name = META path, .header = "Google",                           \
           .has_header = "Metadata-Flavor: Google", .content_type = "text/plain", \
           __VA_ARGS__)
#define ROW_TOKEN(number, word)                                              \
    SCRIPT(HTTP, .name = META "instance/service-accounts/default/token",     \
           .header = "Google", .again = (number),                            \
           .text = "{\"access_token\": \"" word "\", \"expires_in\": 3599, " \
                   "\"token_type\": \"Bearer\"}")

static const struct mu__resolver_kind *const kind = &mu__resolver_gce;
static const char *const named[] = {"project=p",        "zone=z",
                                    "instance_group=g", "access_token=secret1",
                                    "task_index=0",     NULL};

#endif
