#include "resolver/cloud/kubernetes/pods.h"

#include "runtime/base/json.h"
#include "runtime/base/text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LABEL_GROUP "jobset.sigs.k8s.io/job-index"
#define LABEL_COMPLETION "batch.kubernetes.io/job-completion-index"
#define LABEL_POD_INDEX "apps.kubernetes.io/pod-index"

/* ---- Reading one pod ---- */

static const cJSON *get(const cJSON *object, const char *key)
{
    return cJSON_GetObjectItemCaseSensitive(object, key);
}

/* "" when it is absent or no text. */
static const char *get_text(const cJSON *object, const char *key)
{
    const cJSON *item = get(object, key);

    return cJSON_IsString(item) ? item->valuestring : "";
}

/* A number in a label; -1 when it is absent or none. */
static int get_index(const cJSON *labels, const char *key)
{
    const cJSON *item = get(labels, key);
    int index;

    return cJSON_IsString(item) && mu__index_parse(item->valuestring, &index) == 0
               ? index
               : -1;
}

static int read_index(const cJSON *metadata)
{
    const cJSON *labels = get(metadata, "labels");
    int index = get_index(labels, LABEL_COMPLETION);

    if (index < 0) /* before Kubernetes 1.28 it was an annotation only */
        index = get_index(get(metadata, "annotations"), LABEL_COMPLETION);
    return index >= 0 ? index : get_index(labels, LABEL_POD_INDEX);
}

static const char *read_controller(const cJSON *metadata)
{
    const cJSON *owner;

    cJSON_ArrayForEach(owner, get(metadata, "ownerReferences")) {
        if (cJSON_IsTrue(get(owner, "controller")))
            return get_text(owner, "uid");
    }
    return "";
}

static const char *waiting_reason(const cJSON *statuses)
{
    const cJSON *status;

    cJSON_ArrayForEach(status, statuses) {
        const char *reason = get_text(get(get(status, "state"), "waiting"), "reason");

        /* What waits for an init container says nothing of its own. */
        if (reason[0] != '\0' && strcmp(reason, "PodInitializing") != 0)
            return reason;
    }
    return "";
}

static const char *read_reason(const cJSON *status, const struct mu__pod *pod)
{
    const char *reason = get_text(status, "reason");

    if (reason[0] == '\0')
        reason = waiting_reason(get(status, "initContainerStatuses"));
    if (reason[0] == '\0')
        reason = waiting_reason(get(status, "containerStatuses"));
    if (reason[0] == '\0' && pod->host_ip[0] == '\0')
        reason = "it has no node yet";
    return reason;
}

/* False: it has no name. */
static bool read_pod(const cJSON *item, struct mu__pod *pod)
{
    const cJSON *metadata = get(item, "metadata");
    const cJSON *status = get(item, "status");

    *pod = (struct mu__pod){
        .name = get_text(metadata, "name"),
        .phase = get_text(status, "phase"),
        .pod_ip = get_text(status, "podIP"),
        .host_ip = get_text(status, "hostIP"),
        .spec = get(item, "spec"),
        .controller = read_controller(metadata),
        .index = read_index(metadata),
        .group = get_index(get(metadata, "labels"), LABEL_GROUP),
        .deleted = cJSON_IsString(get(metadata, "deletionTimestamp")),
    };
    pod->group = pod->group < 0 ? 0 : pod->group;
    pod->host_name = get_text(pod->spec, "hostname");
    pod->reason = strcmp(pod->phase, "Running") == 0 ? "" : read_reason(status, pod);
    return pod->name[0] != '\0';
}

/* Free the members of an object that are not among `keys`, which NULL ends. */
static void keep_members(const cJSON *object, const char *const *keys)
{
    cJSON *next;

    for (cJSON *item = object != NULL ? object->child : NULL; item != NULL; item = next) {
        const char *const *key = keys;

        next = item->next;
        while (*key != NULL && (item->string == NULL || strcmp(*key, item->string) != 0))
            key++;
        if (*key == NULL)
            cJSON_Delete(cJSON_DetachItemViaPointer((cJSON *)object, item));
    }
}

/* A pod has some hundred members, and a list many pods: what is still needed stays. */
static void free_unread(const cJSON *pod)
{
    static const char *const of_pod[] = {"metadata", "spec", "status", NULL};
    static const char *const of_metadata[] = {"name", "ownerReferences", NULL};
    static const char *const of_spec[] = {"hostname", "containers", "initContainers",
                                          NULL};
    static const char *const of_container[] = {"ports", NULL};
    const cJSON *spec = get(pod, "spec");
    const cJSON *container;

    keep_members(pod, of_pod);
    keep_members(get(pod, "metadata"), of_metadata);
    keep_members(spec, of_spec);
    cJSON_ArrayForEach(container, get(spec, "containers"))
        keep_members(container, of_container);
    cJSON_ArrayForEach(container, get(spec, "initContainers"))
        keep_members(container, of_container);
}

/* ---- Reading a list ---- */

static int no_memory(const char *source, mu_error *ret_error)
{
    return mu_error_set(ret_error, -MU_ENOMEM, "%s: out of memory", source);
}

static int read_items(const cJSON *items, const char *source, mu_error *ret_error,
                      struct mu__pods *pods)
{
    const cJSON *item;

    pods->items = calloc((size_t)cJSON_GetArraySize(items) + 1, sizeof *pods->items);
    if (pods->items == NULL)
        return no_memory(source, ret_error);
    cJSON_ArrayForEach(item, items) {
        if (!read_pod(item, &pods->items[pods->count]))
            return mu_error_set(ret_error, -MU_EINVALID,
                                "%s: items[%zu].metadata.name: expected a pod's name",
                                source, pods->count);
        free_unread(item);
        pods->count++;
    }
    return 0;
}

static int read_list(const char *source, mu_error *ret_error, struct mu__pods *pods)
{
    const cJSON *items = get(pods->root, "items");

    if (strcmp(get_text(pods->root, "kind"), "PodList") != 0)
        return mu__json_refuse(ret_error, -MU_EINVALID, get(pods->root, "kind"),
                               "%s: kind: expected \"PodList\"", source);
    if (items != NULL && !cJSON_IsArray(items) && !cJSON_IsNull(items))
        return mu_error_set(ret_error, -MU_EINVALID, "%s: items: expected a list",
                            source);
    pods->next = get_text(get(pods->root, "metadata"), "continue");
    return read_items(items, source, ret_error, pods);
}

int mu__pods_parse(const char *text, size_t size, const char *source,
                   mu_error *ret_error, struct mu__pods **ret_pods)
{
    struct mu__pods *pods = calloc(1, sizeof *pods);
    int rv;

    if (pods == NULL)
        return no_memory(source, ret_error);
    rv = mu__json_parse_large(text, size, source, ret_error, &pods->root);
    if (rv == 0)
        rv = read_list(source, ret_error, pods);
    if (rv != 0) {
        mu__pods_free(pods);
        return rv;
    }
    *ret_pods = pods;
    return 0;
}

void mu__pods_free(void *pods)
{
    struct mu__pods *own = pods;

    if (own == NULL)
        return;
    cJSON_Delete(own->root);
    free(own->items);
    free(own);
}
