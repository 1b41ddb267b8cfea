#include "resolver/cloud/kubernetes/pods.h"

#include "runtime/base/array.h"
#include "runtime/document/json.h"

#include <stdlib.h>
#include <string.h>

enum { PODS_FIRST = 64 }; /* room for so many at first */

#define LABEL_GROUP "jobset.sigs.k8s.io/job-index"
#define LABEL_COMPLETION "batch.kubernetes.io/job-completion-index"
#define LABEL_POD_INDEX "apps.kubernetes.io/pod-index"

/* ---- Reading one pod ---- */

static const cJSON *get_pod_member(const cJSON *object, const char *key)
{
    return cJSON_GetObjectItemCaseSensitive(object, key);
}

/* "" when it is absent or no text. */
static const char *get_pod_text(const cJSON *object, const char *key)
{
    const cJSON *item = get_pod_member(object, key);

    return cJSON_IsString(item) ? item->valuestring : "";
}

/* A label that is an index; -1: it is absent, or no index. */
static int get_index(const cJSON *labels, const char *key)
{
    const cJSON *item = get_pod_member(labels, key);
    int index;

    return cJSON_IsString(item) && mu__index_parse(item->valuestring, &index) == 0 ? index
                                                                                   : -1;
}

static int read_pod_index(const cJSON *metadata)
{
    const cJSON *labels = get_pod_member(metadata, "labels");
    int index = get_index(labels, LABEL_COMPLETION);

    if (index < 0) /* before Kubernetes 1.28 it was an annotation only */
        index = get_index(get_pod_member(metadata, "annotations"), LABEL_COMPLETION);
    return index >= 0 ? index : get_index(labels, LABEL_POD_INDEX);
}

static const char *read_controller(const cJSON *metadata)
{
    const cJSON *owner;

    cJSON_ArrayForEach(owner, get_pod_member(metadata, "ownerReferences"))
    {
        if (cJSON_IsTrue(get_pod_member(owner, "controller")))
            return get_pod_text(owner, "uid");
    }
    return "";
}

static const char *waiting_reason(const cJSON *statuses)
{
    const cJSON *status;

    cJSON_ArrayForEach(status, statuses)
    {
        const char *reason = get_pod_text(
            get_pod_member(get_pod_member(status, "state"), "waiting"), "reason");

        /* A container that waits for an init container has no reason of its own. */
        if (reason[0] != '\0' && strcmp(reason, "PodInitializing") != 0)
            return reason;
    }
    return "";
}

static const char *read_reason(const cJSON *status, const struct mu__pod *pod)
{
    const char *reason = get_pod_text(status, "reason");

    if (reason[0] == '\0')
        reason = waiting_reason(get_pod_member(status, "initContainerStatuses"));
    if (reason[0] == '\0')
        reason = waiting_reason(get_pod_member(status, "containerStatuses"));
    if (reason[0] == '\0' && pod->host_ip[0] == '\0')
        reason = "it has no node yet";
    return reason;
}

static unsigned get_port(const cJSON *port, const char *key)
{
    const cJSON *number = get_pod_member(port, key);

    return cJSON_IsNumber(number) && number->valueint > 0 && number->valueint <= 65535
               ? (unsigned)number->valueint
               : 0;
}

/* A port without a name, or with one that is too long for a setting, is not kept. */
static int read_pod_port(const cJSON *item, struct mu__pod *pod)
{
    const char *name = get_pod_text(item, "name");
    struct mu__pod_port *ports;

    if (name[0] == '\0' || strlen(name) >= sizeof ports->name)
        return 0;
    ports = realloc(pod->ports, (pod->ports_count + 1) * sizeof *ports);
    if (ports == NULL)
        return -MU_ENOMEM;
    pod->ports = ports;
    ports += pod->ports_count++;
    ports->container_port = get_port(item, "containerPort");
    ports->host_port = get_port(item, "hostPort");
    memcpy(ports->name, name, strlen(name) + 1);
    return 0;
}

static int read_ports(const cJSON *containers, struct mu__pod *pod)
{
    const cJSON *container;
    const cJSON *port;
    int rv = 0;

    cJSON_ArrayForEach(container, containers)
    {
        cJSON_ArrayForEach(port, get_pod_member(container, "ports"))
        {
            if (rv == 0)
                rv = read_pod_port(port, pod);
        }
    }
    return rv;
}

/* Replace the texts, which are the tree's, by copies in one block. */
static int copy_texts(struct mu__pod *pod)
{
    const char **const texts[] = {
        &pod->name,    &pod->phase,     &pod->reason,     &pod->pod_ip,
        &pod->host_ip, &pod->host_name, &pod->controller,
    };
    size_t size = 0;
    char *copy;

    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        size += strlen(*texts[i]) + 1;
    copy = malloc(size);
    pod->texts = copy;
    if (copy == NULL)
        return -MU_ENOMEM;
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        size = strlen(*texts[i]) + 1;
        memcpy(copy, *texts[i], size);
        *texts[i] = copy;
        copy += size;
    }
    return 0;
}

static int read_pod(const cJSON *item, struct mu__pod *pod)
{
    const cJSON *metadata = get_pod_member(item, "metadata");
    const cJSON *status = get_pod_member(item, "status");
    const cJSON *spec = get_pod_member(item, "spec");
    int rv;

    *pod = (struct mu__pod){
        .name = get_pod_text(metadata, "name"),
        .phase = get_pod_text(status, "phase"),
        .pod_ip = get_pod_text(status, "podIP"),
        .host_ip = get_pod_text(status, "hostIP"),
        .host_name = get_pod_text(spec, "hostname"),
        .controller = read_controller(metadata),
        .index = read_pod_index(metadata),
        .group = get_index(get_pod_member(metadata, "labels"), LABEL_GROUP),
        .deleted = cJSON_IsString(get_pod_member(metadata, "deletionTimestamp")),
    };
    pod->group = pod->group < 0 ? 0 : pod->group;
    pod->reason = strcmp(pod->phase, "Running") == 0 ? "" : read_reason(status, pod);
    rv = copy_texts(pod);
    if (rv == 0)
        rv = read_ports(get_pod_member(spec, "containers"), pod);
    return rv == 0 ? read_ports(get_pod_member(spec, "initContainers"), pod) : rv;
}

/* ---- Reading a list ---- */

static int pods_no_memory(const char *source, mu_error *ret_error)
{
    return mu_error_set(ret_error, -MU_ENOMEM, "%s: out of memory", source);
}

/* Copy what is needed of an item: its tree is freed before the next item is parsed. */
static int on_pod_item(void *owner, const cJSON *item)
{
    struct mu__pods *pods = owner;

    if (!MU__ARRAY_RESERVE(&pods->items, &pods->room, pods->count, PODS_FIRST))
        return -MU_ENOMEM;
    return read_pod(item, &pods->items[pods->count++]);
}

static int read_pod_list(const cJSON *root, const char *source, mu_error *ret_error,
                         struct mu__pods *pods)
{
    const cJSON *items = get_pod_member(root, "items");

    if (strcmp(get_pod_text(root, "kind"), "PodList") != 0)
        return mu__json_refuse(ret_error, -MU_EINVALID, get_pod_member(root, "kind"),
                               "%s: kind: expected \"PodList\"", source);
    if (items != NULL && !cJSON_IsArray(items) && !cJSON_IsNull(items))
        return mu_error_set(ret_error, -MU_EINVALID, "%s: items: expected a list",
                            source);
    for (size_t i = 0; i < pods->count; i++)
        if (pods->items[i].name[0] == '\0')
            return mu_error_set(ret_error, -MU_EINVALID,
                                "%s: items[%zu].metadata.name: expected a pod's name",
                                source, i);
    pods->next = strdup(get_pod_text(get_pod_member(root, "metadata"), "continue"));
    return pods->next != NULL ? 0 : pods_no_memory(source, ret_error);
}

int mu__pods_parse(const char *text, size_t size, const char *source, mu_error *ret_error,
                   struct mu__pods **ret_pods)
{
    struct mu__pods *pods = calloc(1, sizeof *pods);
    cJSON *root = NULL;
    int rv;

    if (pods == NULL)
        return pods_no_memory(source, ret_error);
    rv = mu__json_parse_items(text, size, source, "items", on_pod_item, pods, ret_error,
                              &root);
    if (rv == 0)
        rv = read_pod_list(root, source, ret_error, pods);
    cJSON_Delete(root);
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
    for (size_t i = 0; i < own->count; i++) {
        free(own->items[i].texts);
        free(own->items[i].ports);
    }
    free(own->items);
    free(own->next);
    free(own);
}
