/* The resolver sagemaker: SM_HOSTS and SM_CURRENT_HOST, or the file that they are
 * from. */
#include "resolver/json.h"
#include "resolver/ranks.h"
#include "resolver/text.h"

#include <muster/cluster.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PORT, JOBS, RPC_LAYER };

static const struct mu__setting_spec settings_of[] = {
    [PORT] = {.name = "port", .variable = "MUSTER_SAGEMAKER_PORT", .initial = "2223",
              .help = "port of each task"},
    [JOBS] = {.name = "jobs", .variable = "MUSTER_SAGEMAKER_JOBS",
              .help = "what the hosts are, in the order of their names: "
                      "\"chief=1,worker=*\"; without it all are workers"},
    [RPC_LAYER] = {.name = "rpc_layer", .variable = "MUSTER_SAGEMAKER_RPC_LAYER",
                   .initial = "grpc", .help = "in front of the master"},
    {.name = NULL},
};

static const char config_path[] = "/opt/ml/input/config/resourceconfig.json";

/* Who is there, and where that is from. */
struct found {
    const char *source;
    struct mu__host_list hosts;
    char current[MU__HOST_BYTES_MAX + 1];
};

static int detect(struct mu__notes *notes, const struct mu__settings *settings,
                  mu_error *ret_why)
{
    const struct mu__answer *answer;

    (void)settings;
    if (mu__ask_variable(notes, "SM_HOSTS") != NULL ||
        mu__ask_variable(notes, "SM_RESOURCE_CONFIG") != NULL)
        return 1;
    answer = mu__ask_file(notes, config_path);
    if (answer == NULL)
        return MU__LATER;
    if (answer->code == 0)
        return 1;
    (void)mu_error_set(ret_why, -MU_ENOTFOUND,
                       "SM_HOSTS and SM_RESOURCE_CONFIG are not set, and there is no %s",
                       config_path);
    return 0;
}

/* ---- Reading ---- */

static int not_a_list(const char *source, const char *text, mu_error *ret_error)
{
    char shown[MU__QUOTE_BYTES];

    mu__quote(shown, sizeof shown, text, strlen(text));
    return mu_error_set(ret_error, -MU_EINVALID,
                        "%s: expected a JSON list of hosts, as in [\"algo-1\"], got %s",
                        source, shown);
}

static int read_hosts(const cJSON *list, const char *source, mu_error *ret_error,
                      struct mu__host_list *hosts)
{
    char got[MU__QUOTE_BYTES];
    const cJSON *item;
    size_t i = 0;
    int rv;

    cJSON_ArrayForEach(item, list) {
        mu__json_describe(item, got, sizeof got);
        if (!cJSON_IsString(item) || strlen(item->valuestring) > MU__HOST_BYTES_MAX)
            return mu_error_set(ret_error, -MU_EINVALID,
                                "%s[%zu]: expected a host's name of at most %d bytes, "
                                "got %s",
                                source, i, (int)MU__HOST_BYTES_MAX, got);
        rv = mu__host_list_add(hosts, item->valuestring);
        if (rv != 0)
            return mu_error_set(ret_error, rv, "%s[%zu]: more hosts than memory or the "
                                               "limit of %d",
                                source, i, (int)MU_CLUSTER_TASKS_MAX);
        i++;
    }
    return 0;
}

/* The list stands alone; as the value of an object it is one for the strict reader. */
static int read_list(const char *text, const char *source, mu_error *ret_error,
                     struct mu__host_list *hosts)
{
    size_t size = strlen(text) + sizeof "{\"hosts\":}";
    char *whole = malloc(size);
    const cJSON *list;
    cJSON *root = NULL;
    int rv;

    if (whole == NULL)
        return mu_error_set(ret_error, -MU_ENOMEM, "%s: out of memory", source);
    (void)snprintf(whole, size, "{\"hosts\":%s}", text);
    rv = mu__json_parse(whole, size - 1, source, ret_error, &root);
    free(whole);
    if (rv == -MU_EINVALID)
        return not_a_list(source, text, ret_error);
    if (rv != 0)
        return rv;
    list = cJSON_GetObjectItemCaseSensitive(root, "hosts");
    rv = cJSON_IsArray(list) && list->next == NULL
             ? read_hosts(list, source, ret_error, hosts)
             : not_a_list(source, text, ret_error);
    cJSON_Delete(root);
    return rv;
}

static int read_config(const char *text, size_t size, const char *source,
                       mu_error *ret_error, struct found *found)
{
    cJSON *root = NULL;
    const cJSON *current;
    const cJSON *hosts;
    int rv = mu__json_parse(text, size, source, ret_error, &root);

    if (rv != 0)
        return rv;
    current = cJSON_GetObjectItemCaseSensitive(root, "current_host");
    hosts = cJSON_GetObjectItemCaseSensitive(root, "hosts");
    if (!cJSON_IsArray(hosts) || !cJSON_IsString(current))
        rv = mu_error_set(ret_error, -MU_EINVALID,
                          "%s: expected \"hosts\", a list, and \"current_host\", a text",
                          source);
    else
        rv = read_hosts(hosts, source, ret_error, &found->hosts);
    if (rv == 0)
        (void)snprintf(found->current, sizeof found->current, "%s", current->valuestring);
    cJSON_Delete(root);
    return rv;
}

static int find(struct mu__notes *notes, mu_error *ret_error, struct found *found)
{
    const char *hosts = mu__ask_variable(notes, "SM_HOSTS");
    const char *config = mu__ask_variable(notes, "SM_RESOURCE_CONFIG");
    const char *current = mu__ask_variable(notes, "SM_CURRENT_HOST");
    const struct mu__answer *answer;

    found->source = "SM_HOSTS";
    if (hosts != NULL && current != NULL) {
        (void)snprintf(found->current, sizeof found->current, "%s", current);
        return read_list(hosts, found->source, ret_error, &found->hosts);
    }
    found->source = "SM_RESOURCE_CONFIG";
    if (config != NULL)
        return read_config(config, strlen(config), found->source, ret_error, found);
    found->source = config_path;
    answer = mu__ask_file(notes, config_path);
    if (answer == NULL)
        return MU__LATER;
    if (answer->code == 0)
        return read_config(answer->data, answer->size, found->source, ret_error, found);
    return mu_error_set(ret_error, -MU_ENOTFOUND,
                        "%s is not set, and there is neither SM_RESOURCE_CONFIG nor %s: "
                        "is this SageMaker?",
                        hosts == NULL ? "SM_HOSTS" : "SM_CURRENT_HOST", config_path);
}

/* ---- The cluster ---- */

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* They are sorted. */
static int check_once(const struct found *found, mu_error *ret_error)
{
    for (size_t i = 1; i < found->hosts.count; i++)
        if (strcmp(found->hosts.names[i - 1], found->hosts.names[i]) == 0)
            return mu_error_set(ret_error, -MU_EEXISTS,
                                "%s: \"%.80s\" stands there twice", found->source,
                                found->hosts.names[i]);
    return 0;
}

static int conclude(struct mu__notes *notes, const struct mu__settings *settings,
                    struct found *found, mu_error *ret_error, mu_resolution *resolution)
{
    struct mu__layout layout = {0};
    struct mu__jobs jobs;
    struct mu__ranks ranks = {.source = found->source, .hosts = &found->hosts,
                              .layout = &layout, .jobs = &jobs};
    size_t count = found->hosts.count;
    int rv;

    if (count > 0)
        qsort(found->hosts.names, count, sizeof *found->hosts.names, by_name);
    rv = check_once(found, ret_error);
    if (rv != 0)
        return rv;
    ranks.rank = (unsigned)mu__host_list_find(&found->hosts, found->current,
                                              strlen(found->current));
    if (count == 0 || ranks.rank == count) {
        mu__notes_say(notes, "%s: the current host \"%.80s\" is none of the %zu hosts: "
                             "there is no cluster",
                      found->source, found->current, count);
        return 0;
    }
    rv = mu__rank_jobs(notes, settings, JOBS, (unsigned)count, ret_error, &jobs);
    if (rv == 0)
        rv = mu__rank_port(notes, settings, PORT, 0, 1, ret_error, &ranks.port);
    if (rv == 0)
        rv = mu__layout_listed(&found->hosts, &found->hosts, found->source, ret_error,
                               &layout);
    if (rv == 0)
        rv = mu__ranks_add(&ranks, ret_error, resolution);
    mu__layout_done(&layout);
    return rv;
}

static int resolve(struct mu__notes *notes, const struct mu__settings *settings,
                   mu_error *ret_error, mu_resolution *ret_resolution)
{
    struct found found = {.source = NULL};
    int rv = find(notes, ret_error, &found);

    ret_resolution->alone_has_no_master = 1;
    if (rv == 0)
        rv = conclude(notes, settings, &found, ret_error, ret_resolution);
    if (rv == 0)
        rv = mu__rank_text(notes, settings, RPC_LAYER, ret_resolution->rpc_layer,
                           sizeof ret_resolution->rpc_layer, ret_error);
    mu__host_list_done(&found.hosts);
    return rv;
}

const struct mu__resolver_kind mu__resolver_sagemaker = {
    .name = "sagemaker",
    .summary = "the hosts of a SageMaker training job",
    .settings = settings_of,
    .detect = detect,
    .resolve = resolve,
};
