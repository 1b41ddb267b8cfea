/* Any bytes as a page of pods: an error in words, or pods with names, which become tasks
 * or give an error in words. What the filter passes, the strict check of the whole text
 * passes too, and the other way round. */
#include "resolver/cloud/kubernetes/pods.h"
#include "runtime/base/json.h"

#include <muster/cluster.h>

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Unlike assert(), stays in every build. */
static void must(bool truth, const char *what)
{
    if (truth)
        return;
    (void)fprintf(stderr, "broken: %s\n", what);
    abort();
}

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

static const struct mu__json_want wants[] = {
    {"kind", NULL},
    {"items", (const struct mu__json_want[]){{"metadata", NULL}, {NULL, NULL}}},
    {NULL, NULL},
};

static void check_filter(const uint8_t *data, size_t size)
{
    cJSON *whole = NULL;
    cJSON *part = NULL;
    mu_error first;
    mu_error second;
    int rv = mu__json_parse((const char *)data, size, "fuzz", &first, &whole);

    must(mu__json_parse_wanted((const char *)data, size, wants, "fuzz", &second, &part) ==
             rv,
         "the same strictness");
    if (rv != 0)
        must(strcmp(first.message, second.message) == 0, "the same words");
    else
        must(cJSON_IsObject(part), "an object");
    cJSON_Delete(whole);
    cJSON_Delete(part);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    for (int ports = 0; ports < 2; ports++) {
        struct mu__pods *pods = NULL;
        mu_error error;
        int rv = mu__pods_parse((const char *)data, size, ports == 1, "fuzz", &error,
                                &pods);

        must(rv == 0 || pods == NULL, "untouched");
        if (rv == 0)
            check_pods(pods);
        else
            check(rv, &error);
        mu__pods_free(pods);
    }
    check_filter(data, size);
    return 0;
}
