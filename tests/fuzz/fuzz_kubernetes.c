/* Any bytes as a page of pods: an error in words, or pods with names, which become tasks
 * or give an error in words. */
#include "resolver/cloud/kubernetes/pods.h"
#include "tests/fuzz/must.h"

#include <muster/cluster.h>

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(int rv, const mu_error *error)
{
    must(rv == error->code && rv < 0 && rv != -MU_ENOMEM, "code");
    must(error->message[0] != '\0', "words");
}

static void add(const struct mu__pods *pods, const struct mu__pods_rule *rule)
{
    const struct mu__pod **list = calloc(pods->count + 1, sizeof *list);
    size_t count = pods->count;
    mu_resolution resolution;
    mu_error error;
    size_t first;
    int rv;

    must(list != NULL, "memory");
    for (size_t i = 0; i < count; i++)
        list[i] = &pods->items[i];
    mu_resolution_init(&resolution);
    rv = mu__pods_add(list, &count, rule, &error, &resolution, &first);
    if (rv == 0)
        must(first == 0 && count <= pods->count &&
                 mu_cluster_task_count(resolution.cluster, rule->type) == count,
             "tasks");
    else
        check(rv, &error);
    mu_cluster_free(resolution.cluster);
    free(list);
}

static void check_pods(const struct mu__pods *pods)
{
    static const struct mu__pods_rule rules[] = {
        {.source = "fuzz", .type = "worker", .port = 8470},
        {.source = "fuzz", .type = "ps", .port = 8470, .host = true},
        {.source = "fuzz", .type = "worker", .port_name = "muster"},
        {.source = "fuzz", .type = "worker", .port_name = "muster", .host = true},
    };

    for (size_t i = 0; i < pods->count; i++)
        must(pods->items[i].name[0] != '\0' && pods->items[i].group >= 0, "pod");
    for (size_t i = 0; i < sizeof rules / sizeof rules[0]; i++)
        add(pods, &rules[i]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct mu__pods *pods = NULL;
    mu_error error;
    int rv = mu__pods_parse((const char *)data, size, "fuzz", &error, &pods);

    must(rv == 0 || pods == NULL, "untouched");
    if (rv == 0)
        check_pods(pods);
    else
        check(rv, &error);
    mu__pods_free(pods);
    return 0;
}
