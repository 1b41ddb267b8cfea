/* Any text as a cluster or as TF_CONFIG: what a node refuses has errors, what has none a
 * node takes, and whatever was read can be looked at. */
#include "resolver/spec/problems.h"
#include "tests/fuzz/must.h"

#include <stdint.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool is_taken(const char *text, size_t size, bool is_tf_config)
{
    mu_cluster *cluster = NULL;
    mu_tf_config config = {0};
    int rv = is_tf_config ? mu_tf_config_parse(text, size, NULL, &config)
                          : mu_cluster_parse(text, size, "fuzz", NULL, &cluster);

    mu_cluster_free(is_tf_config ? config.cluster : cluster);
    return rv == 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct mu__problems problems = {0};
    mu_cluster *cluster = NULL;
    bool is_tf_config = size > 0 && data[0] == 't';
    const char *text = (const char *)data + (size > 0);
    size_t length = size - (size > 0);

    must(mu__problems_read(&problems, text, length, "fuzz", is_tf_config, &cluster) == 0,
         "read");
    must((problems.of_grade[MU__PROBLEM_ERROR] == 0) ==
             is_taken(text, length, is_tf_config),
         "a node has another opinion");
    mu__problems_check(&problems, cluster, "worker", 1);
    for (size_t i = 0; i < problems.count; i++)
        must(problems.rows[i].text[0] != '\0', "words");
    mu_cluster_free(cluster);
    mu__problems_done(&problems);
    return 0;
}
