/* The output of `muster resolve`, as text, JSON, and TF_CONFIG. */
#include "cli/resolve/resolve.h"

#include "cli/chief_client.h"
#include "cli/output/print_json.h"

#include <stdio.h>
#include <stdlib.h>

/* The target of sessions; "" when there is none, or the task is not in the cluster. */
static void find_master(const mu_resolution *found, char *ret_master)
{
    ret_master[0] = '\0';
    (void)mu_resolution_master(found, NULL, -1, NULL, NULL, ret_master);
}

/* ---- text ---- */

static void print_line(const char *name, const char *text)
{
    if (text[0] != '\0')
        (void)printf("%-16s%s\n", name, text);
}

static void print_cluster(const mu_cluster *cluster)
{
    const char *type;
    const char *address;
    int index;

    (void)printf("%s\n", mu_cluster_is_empty(cluster) ? "cluster         none: this "
                                                        "process is alone"
                                                      : "cluster");
    for (size_t i = 0; mu_cluster_task_at(cluster, i, &type, &index, &address) == 0; i++)
        (void)printf("  /job:%s/task:%d at %s\n", type, index, address);
}

static void print_rest(const mu_resolution *found)
{
    char master[MU_MASTER_BYTES];
    char text[64];

    (void)snprintf(text, sizeof text, "unknown");
    if (found->task_type[0] != '\0' && found->task_index >= 0)
        (void)snprintf(text, sizeof text, "/job:%s/task:%d", found->task_type,
                       found->task_index);
    else if (found->task_type[0] != '\0')
        (void)snprintf(text, sizeof text, "of type %s, of unknown index",
                       found->task_type);
    print_line("this task", text);
    find_master(found, master);
    print_line("master", master);
    print_line("rpc layer", found->rpc_layer);
    print_line("environment", found->environment);
    if (found->accelerators >= 0) {
        (void)snprintf(text, sizeof text, "%d %s of each task", found->accelerators,
                       found->accelerator);
        print_line("accelerators", text);
    }
    print_line("visible devices", found->visible_devices);
    if (found->partition >= 0) {
        (void)snprintf(text, sizeof text, "%d", found->partition);
        print_line("partition", text);
    }
    print_line("listens at", found->bind_address);
    print_line("cluster's name", found->cluster_name);
    print_line("source", found->source);
}

static void print_tried(const mu_value *tried)
{
    (void)printf("tried\n");
    for (size_t i = 0; i < mu_value_count(tried); i++) {
        const mu_value *map = mu_value_at(tried, i);
        const mu_value *requests = mu_value_find(map, "asked");
        const char *why = cmd_map_text(map, "why");

        (void)printf("  %s: %s%s%s\n", cmd_map_text(map, "resolver"),
                     cmd_map_text(map, "state"), why[0] == '\0' ? "" : ": ", why);
        for (size_t j = 0; j < mu_value_count(requests); j++) {
            const char *text = "";
            size_t size;

            (void)mu_value_get_string(mu_value_at(requests, j), &text, &size);
            (void)printf("    %s\n", text);
        }
    }
}

/* ---- JSON ---- */

static cJSON *cluster_json(const mu_cluster *cluster)
{
    char *text = mu_cluster_to_json(cluster);
    cJSON *item = text == NULL ? NULL : cJSON_Parse(text);

    free(text);
    return item;
}

static cJSON *make_found_task_json(const mu_resolution *found)
{
    cJSON *map;

    if (found->task_type[0] == '\0')
        return cJSON_CreateNull();
    map = cJSON_CreateObject();
    cmd_json_add_text(map, "type", found->task_type);
    if (found->task_index >= 0)
        cmd_json_add_int(map, "index", found->task_index);
    return map;
}

static cJSON *found_json(const mu_resolution *found)
{
    cJSON *map = cJSON_CreateObject();
    char master[MU_MASTER_BYTES];

    find_master(found, master);
    cmd_json_add_text(map, "source", found->source);
    (void)cJSON_AddItemToObject(map, "cluster", cluster_json(found->cluster));
    (void)cJSON_AddItemToObject(map, "task", make_found_task_json(found));
    cmd_json_add_text(map, "master", master);
    cmd_json_add_text(map, "rpc_layer", found->rpc_layer);
    cmd_json_add_text(map, "environment", found->environment);
    if (found->accelerators >= 0) {
        cJSON *counts = cJSON_AddObjectToObject(map, "accelerators");

        (void)cJSON_AddItemToObject(counts, found->accelerator,
                                    cmd_json_int(found->accelerators));
    }
    cmd_json_add_text(map, "visible_devices", found->visible_devices);
    if (found->partition >= 0)
        cmd_json_add_int(map, "partition", found->partition);
    cmd_json_add_text(map, "bind_address", found->bind_address);
    cmd_json_add_text(map, "cluster_name", found->cluster_name);
    return map;
}

int resolve_print(const struct resolve *resolve)
{
    cJSON *map;

    if (cmd_number(resolve->options, CMD_FLAG_RESOLVE_OUTPUT) == RESOLVE_TEXT) {
        print_cluster(resolve->found.cluster);
        print_rest(&resolve->found);
        if (resolve->tried != NULL)
            print_tried(resolve->tried);
        return 0;
    }
    map = found_json(&resolve->found);
    if (resolve->tried != NULL)
        (void)cJSON_AddItemToObject(map, "tried", cmd_json_value(resolve->tried));
    if (cmd_number(resolve->options, CMD_FLAG_RESOLVE_WATCH) == 1)
        return cmd_json_line(map);
    return cmd_json_print(map);
}

/* For TF_CONFIG output nothing is printed. */
int resolve_print_failure(const struct resolve *resolve, const mu_error *error)
{
    unsigned output = cmd_number(resolve->options, CMD_FLAG_RESOLVE_OUTPUT);
    cJSON *map;

    if (output == RESOLVE_TEXT)
        print_tried(resolve->tried);
    if (output != RESOLVE_JSON)
        return 0;
    map = cJSON_CreateObject();
    cmd_json_add_text(map, "error", error->message);
    (void)cJSON_AddItemToObject(map, "tried", cmd_json_value(resolve->tried));
    return cmd_json_print(map);
}

/* ---- TF_CONFIG ---- */

int resolve_print_tf_config(const struct resolve *resolve)
{
    const mu_resolution *found = &resolve->found;
    cJSON *map = cJSON_CreateObject();

    if (!mu_cluster_is_empty(found->cluster))
        (void)cJSON_AddItemToObject(map, "cluster", cluster_json(found->cluster));
    if (found->task_type[0] != '\0' && found->task_index >= 0)
        (void)cJSON_AddItemToObject(map, "task", make_found_task_json(found));
    if (found->rpc_layer[0] != '\0')
        cmd_json_add_text(map, "rpc_layer", found->rpc_layer);
    if (found->environment[0] != '\0')
        cmd_json_add_text(map, "environment", found->environment);
    if (found->master[0] != '\0')
        cmd_json_add_text(map, "session_master", found->master);
    return cmd_json_line(map);
}
