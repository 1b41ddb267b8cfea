/* Any bytes as TF_CONFIG and as a cluster spec: either an error that a person can read,
 * or a spec that is written and read again unchanged. */
#include <muster/cluster.h>

#include "resolver/spec/cluster.h"
#include "runtime/base/text.h"
#include "tests/fuzz/must.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* A code of ours, and a message of printable UTF-8. Memory does not run out here. */
static void check_error(int rv, const mu_error *error)
{
    const char *end = error->message + strlen(error->message);
    size_t length;

    must(rv < 0 && rv == error->code, "code");
    must(rv != -MU_ENOMEM, "memory");
    must(strncmp(error->message, "TF_CONFIG: ", 11) == 0, "source");
    for (const char *at = error->message; at < end; at += length) {
        length = mu__utf8_length(at, end);
        must(length > 0, "message in UTF-8");
        must((unsigned char)*at >= ' ', "message without control characters");
    }
}

/* Tasks are in order, have an address and a url, and survive writing and reading. */
static void check_cluster(const mu_cluster *cluster)
{
    char *written = mu_cluster_to_json(cluster);
    mu_cluster *again = NULL;
    char *rewritten;
    const char *type;
    const char *address;
    int index;

    for (size_t i = 0; i < mu_cluster_task_count(cluster, NULL); i++) {
        must(mu_cluster_task_at(cluster, i, &type, &index, &address) == 0, "task at");
        must(mu_cluster_address(cluster, type, index) == address, "address");
        must(mu_cluster_url(cluster, type, index) != NULL, "url");
    }
    must(mu_cluster_parse(written, strlen(written), "again", NULL, &again) == 0, "parse");
    rewritten = mu_cluster_to_json(again);
    must(strcmp(written, rewritten) == 0, "written again");
    free(rewritten);
    mu_cluster_free(again);
    free(written);
}

static void check_config(const mu_tf_config *config)
{
    must(mu_cluster_validate(config->cluster, NULL, 0, NULL) == 0, "cluster is valid");
    if (config->task_index < 0) {
        must(config->task_type[0] == '\0', "no task");
        return;
    }
    must(mu__task_type_is_valid(config->task_type), "type is known");
    if (config->cluster != NULL)
        must(mu_cluster_validate(config->cluster, config->task_type, config->task_index,
                                 NULL) == 0,
             "task is in the cluster");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    mu_tf_config config;
    mu_cluster *cluster;
    mu_error error;
    int rv;

    rv = mu_tf_config_parse((const char *)data, size, &error, &config);
    if (rv != 0) {
        check_error(rv, &error);
    } else {
        check_config(&config);
        check_cluster(config.cluster);
        mu_cluster_free(config.cluster);
    }

    rv = mu_cluster_parse((const char *)data, size, "TF_CONFIG", &error, &cluster);
    if (rv != 0) {
        check_error(rv, &error);
    } else {
        check_cluster(cluster);
        mu_cluster_free(cluster);
    }
    return 0;
}
