/* Parsing of Cloud TPUs' names, addresses and descriptions. */
#include "resolver/cloud/google/tpu.h"

#include "runtime/base/array.h"
#include "runtime/base/date.h"
#include "runtime/base/text.h"
#include "runtime/document/json.h"
#include "runtime/document/refuse.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Endpoints ---- */

void mu__tpu_endpoints_done(struct mu__tpu_endpoints *endpoints)
{
    free(endpoints->items);
    *endpoints = (struct mu__tpu_endpoints){0};
}

static int append_endpoint(struct mu__tpu_endpoints *endpoints, const char *host,
                           size_t size, unsigned port, mu_error *ret_error)
{
    struct mu__tpu_endpoint *endpoint;

    if (endpoints->count == MU__TPU_ENDPOINTS_MAX)
        return mu_error_set(ret_error, -MU_EEXHAUSTED,
                            "more than %d endpoints of TPUs are too many",
                            MU__TPU_ENDPOINTS_MAX);
    if (!MU__ARRAY_RESERVE(&endpoints->items, &endpoints->room, endpoints->count, 8))
        return mu_error_set(ret_error, -MU_ENOMEM, "out of memory");
    endpoint = &endpoints->items[endpoints->count++];
    *endpoint = (struct mu__tpu_endpoint){.port = port};
    memcpy(endpoint->host, host, size);
    return 0;
}

static bool read_endpoint_port(const char *text, size_t size, unsigned *ret_port)
{
    int64_t port = mu__decimal(text, size, 65535);

    *ret_port = (unsigned)port;
    return port > 0;
}

/* Split "host:port"; an IPv6 address stands alone or in brackets. */
static bool split_endpoint(const char *text, size_t size, size_t *ret_host_size,
                           size_t *ret_port_at)
{
    const char *first = memchr(text, ':', size);
    const char *close;
    size_t at;

    if (size > 0 && text[0] == '[') {
        close = memchr(text, ']', size);
        if (close == NULL)
            return false;
        at = (size_t)(close - text) + 1;
    } else if (first == NULL ||
               memchr(first + 1, ':', size - (size_t)(first + 1 - text)) != NULL) {
        at = size;
    } else {
        at = (size_t)(first - text);
    }
    *ret_host_size = at;
    *ret_port_at = at == size ? size : at + 1;
    return at == size || text[at] == ':';
}

static bool is_endpoint_host(const char *text, size_t size)
{
    if (size == 0 || size >= MU__GOOGLE_HOST_BYTES)
        return false;
    for (size_t i = 0; i < size; i++)
        if (text[i] <= ' ' || text[i] > '~' || strchr("/@,\"\\?#", text[i]) != NULL)
            return false;
    return true;
}

int mu__tpu_endpoint_add(struct mu__tpu_endpoints *endpoints, const char *text,
                         size_t size, unsigned port, const char *source, size_t number,
                         mu_error *ret_error)
{
    const char *from = text;
    size_t left = size;
    size_t port_at;
    size_t host;

    if (left >= 7 && memcmp(from, "grpc://", 7) == 0) {
        from += 7;
        left -= 7;
    }
    if (split_endpoint(from, left, &host, &port_at) && is_endpoint_host(from, host) &&
        (host == left || read_endpoint_port(from + port_at, left - port_at, &port)))
        return append_endpoint(endpoints, from, host, port, ret_error);
    return mu__refuse(
        ret_error, text, size,
        "%s[%zu]: expected HOST or HOST:PORT, with or without grpc:// in front", source,
        number);
}

/* ---- Lists ---- */

static bool is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

/* A TPU's name has neither dots nor colons; a full name has slashes. */
static bool looks_like_address(const char *text, size_t size)
{
    if (size >= 7 && memcmp(text, "grpc://", 7) == 0)
        return true;
    return memchr(text, '/', size) == NULL &&
           (memchr(text, ':', size) != NULL || memchr(text, '.', size) != NULL);
}

bool mu__tpu_next(const char **at, struct mu__tpu_entry *entry)
{
    const char *from = *at;
    size_t size;

    if (from == NULL)
        return false;
    size = strcspn(from, ",");
    *at = from[size] == ',' ? from + size + 1 : NULL;
    while (size > 0 && is_space(*from)) {
        from++;
        size--;
    }
    while (size > 0 && is_space(from[size - 1]))
        size--;
    entry->number += entry->text != NULL;
    entry->text = from;
    entry->size = size;
    entry->is_address |= looks_like_address(from, size);
    return true;
}

/* ---- Nodes ---- */

int mu__tpu_node_read(const cJSON *root, const char *what, mu_error *ret_error,
                      struct mu__tpu_node *ret_node)
{
    struct mu__tpu_node node = {.root = root};
    const char *old_version = NULL;
    const cJSON *config;
    const struct {
        const char *key;
        const char **text;
    } members[] = {
        {"name", &node.name},
        {"state", &node.state},
        {"health", &node.health},
        {"healthDescription", &node.health_description},
        {"acceleratorType", &node.accelerator_type},
        {"runtimeVersion", &node.runtime_version},
        {"tensorflowVersion", &old_version},
    };
    int rv = 0;

    for (size_t i = 0; i < sizeof members / sizeof members[0] && rv == 0; i++)
        rv = mu__google_text(root, members[i].key, what, ret_error, members[i].text);
    config = cJSON_GetObjectItemCaseSensitive(root, "acceleratorConfig");
    if (rv == 0 && config != NULL)
        rv = mu__google_text(config, "topology", what, ret_error, &node.topology);
    if (rv == 0 && config != NULL)
        rv = mu__google_text(config, "type", what, ret_error, &node.chip);
    if (rv != 0)
        return rv;
    if (node.runtime_version == NULL)
        node.runtime_version = old_version;
    node.topology = node.topology == NULL ? "" : node.topology;
    node.chip = node.chip == NULL ? "" : node.chip;
    for (size_t i = 0; i < sizeof members / sizeof members[0]; i++)
        if (*members[i].text == NULL)
            *members[i].text = "";
    *ret_node = node;
    return 0;
}

/* All states but READY: whether the node may still become READY. */
static const struct {
    const char *state;
    bool passes;
    const char *words;
} states[] = {
    {"", true, "it does not say its state"},
    {"STATE_UNSPECIFIED", true, "its state is not known"},
    {"CREATING", true, "it is being created"},
    {"STARTING", true, "it is starting"},
    {"RESTARTING", true, "it is restarting"},
    {"REIMAGING", true, "it gets a new image"},
    {"REPAIRING", true, "it is being repaired"},
    {"UNHIDING", true, "it is being shown again"},
    {"STOPPING", false, "it is being stopped"},
    {"STOPPED", false, "it was stopped: start it"},
    {"DELETING", false, "it is being deleted"},
    {"PREEMPTED", false, "it was preempted: delete it and create another"},
    {"TERMINATED", false, "it was terminated: delete it and create another"},
    {"HIDING", false, "it is being hidden"},
    {"HIDDEN", false, "it is hidden"},
    {"UNKNOWN", false, "its state is not known after a repair that failed"},
};

int mu__tpu_node_check(const struct mu__tpu_node *node, const char *what,
                       mu_error *ret_error)
{
    char shown[MU__QUOTE_BYTES];

    if (strcmp(node->state, "READY") == 0)
        return 0;
    mu__quote(shown, sizeof shown, node->state, strlen(node->state));
    for (size_t i = 0; i < sizeof states / sizeof states[0]; i++) {
        if (strcmp(states[i].state, node->state) != 0)
            continue;
        return mu_error_set(ret_error,
                            states[i].passes ? -MU_EUNAVAILABLE : -MU_EPRECONDITION,
                            "%s is not ready: state %s: %s", what, shown,
                            states[i].words);
    }
    return mu_error_set(ret_error, -MU_EPRECONDITION,
                        "%s is not ready: state %s, which is not known here", what,
                        shown);
}

/* A port as number or text; 0 and "" mean that there is none. */
static bool json_port(const cJSON *item, unsigned *ret_port)
{
    int number;

    if (item == NULL || (cJSON_IsString(item) && item->valuestring[0] == '\0'))
        return true;
    if (mu__json_index(item, &number) != 0 || number > 65535)
        return false;
    *ret_port = number == 0 ? *ret_port : (unsigned)number;
    return true;
}

static int read_endpoint(const cJSON *item, const char *what, size_t number,
                         unsigned set_port, mu_error *ret_error,
                         struct mu__tpu_endpoints *endpoints)
{
    const cJSON *address = cJSON_GetObjectItemCaseSensitive(item, "ipAddress");
    unsigned port = MU__TPU_PORT;

    if (!cJSON_IsString(address) || address->valuestring[0] == '\0')
        return mu_error_set(ret_error, -MU_EINVALID,
                            "%s: networkEndpoints[%zu]: ipAddress: expected an address",
                            what, number);
    if (!json_port(cJSON_GetObjectItemCaseSensitive(item, "port"), &port))
        return mu_error_set(ret_error, -MU_EINVALID,
                            "%s: networkEndpoints[%zu]: port: expected a number of 1 to "
                            "65535",
                            what, number);
    return mu__tpu_endpoint_add(endpoints, address->valuestring,
                                strlen(address->valuestring),
                                set_port != 0 ? set_port : port, what, number, ret_error);
}

int mu__tpu_node_endpoints(const struct mu__tpu_node *node, const char *what,
                           unsigned port, mu_error *ret_error,
                           struct mu__tpu_endpoints *endpoints)
{
    const cJSON *list = cJSON_GetObjectItemCaseSensitive(node->root, "networkEndpoints");
    size_t number = 0;
    int rv = 0;

    if (list == NULL && cJSON_HasObjectItem(node->root, "ipAddress"))
        return read_endpoint(node->root, what, 0, port, ret_error, endpoints);
    if (list != NULL && !cJSON_IsArray(list))
        return mu_error_set(ret_error, -MU_EINVALID,
                            "%s: networkEndpoints: expected a list", what);
    if (list == NULL || list->child == NULL)
        return mu_error_set(ret_error, -MU_EUNAVAILABLE,
                            "%s: the API tells no network endpoints of it", what);
    for (const cJSON *item = list->child; item != NULL && rv == 0; item = item->next)
        rv = read_endpoint(item, what, number++, port, ret_error, endpoints);
    return rv;
}

/* ---- Health ---- */

/* The age of {"symptomType": "OUT_OF_MEMORY", "createTime": "..."} in seconds; -1: it is
 * another symptom, or has no time. */
static int64_t get_seconds_since_oom(const cJSON *symptom, int64_t now_s)
{
    const cJSON *type = cJSON_GetObjectItemCaseSensitive(symptom, "symptomType");
    const cJSON *time = cJSON_GetObjectItemCaseSensitive(symptom, "createTime");
    int64_t then;

    if (!cJSON_IsString(type) || !cJSON_IsString(time) ||
        (strcmp(type->valuestring, "OUT_OF_MEMORY") != 0 &&
         strcmp(type->valuestring, "HBM_OUT_OF_MEMORY") != 0) ||
        mu__date_parse(time->valuestring, &then) != 0)
        return -1;
    return now_s < then ? 0 : now_s - then; /* the API's clock may be ahead */
}

bool mu__tpu_node_recoverable(const struct mu__tpu_node *node, int64_t now_s,
                              char *ret_why)
{
    const cJSON *symptoms = cJSON_GetObjectItemCaseSensitive(node->root, "symptoms");
    const cJSON *symptom = cJSON_IsArray(symptoms) ? symptoms->child : NULL;

    if (strcmp(node->state, "TERMINATED") == 0 || strcmp(node->state, "PREEMPTED") == 0) {
        (void)snprintf(ret_why, 256, "its state is %s", node->state);
        return false;
    }
    for (; symptom != NULL; symptom = symptom->next) {
        int64_t ago = get_seconds_since_oom(symptom, now_s);

        if (ago < 0 || ago >= MU__TPU_OOM_S)
            continue;
        (void)snprintf(ret_why, 256, "it was out of memory %d s ago", (int)ago);
        return false;
    }
    return true;
}

/* ---- Devices ---- */

/* The number in a type ("v2-8") counts cores, or chips for the later generations.
 * per_device: how many of these are one device; per_chip: how many devices a chip has. */
static const struct {
    const char *generation;
    const char *chip; /* in acceleratorConfig */
    unsigned per_device;
    unsigned per_chip;
} generations[] = {
    {"v2", "V2", 1, 2},
    {"v3", "V3", 1, 2},
    {"v4", "V4", 2, 1},
    {"v5p", "V5P", 2, 1},
    {"v5litepod", "V5LITE_POD", 1, 1},
    {"v5e", "", 1, 1},
    {"v5lite", "", 1, 1},
    {"v6e", "V6E", 1, 1},
};

static int share_devices(size_t count, size_t parts)
{
    return parts > 0 && count % parts == 0 ? (int)(count / parts) : -1;
}

int mu__tpu_devices(const char *accelerator_type, size_t tasks)
{
    const char *dash = strrchr(accelerator_type, '-');
    int count;

    if (dash == NULL || mu__index_parse(dash + 1, &count) != 0)
        return -1;
    for (size_t i = 0; i < sizeof generations / sizeof generations[0]; i++) {
        const char *name = generations[i].generation;

        if (strlen(name) == (size_t)(dash - accelerator_type) &&
            strncmp(name, accelerator_type, strlen(name)) == 0)
            return share_devices((size_t)count, tasks * generations[i].per_device);
    }
    return -1;
}

/* "2x2x4" is 16; 0: the text is no such product, or too large. */
static size_t count_chips(const char *topology)
{
    size_t chips = 1;

    for (;;) {
        size_t digits = strspn(topology, "0123456789");
        size_t number = 0;

        for (size_t i = 0; i < digits; i++)
            number = number * 10 + (size_t)(topology[i] - '0');
        if (digits == 0 || digits > 4 || chips > MU__TPU_ENDPOINTS_MAX)
            return 0;
        chips *= number;
        if (topology[digits] == '\0')
            return chips;
        if (topology[digits] != 'x')
            return 0;
        topology += digits + 1;
    }
}

int mu__tpu_chip_devices(const char *chip, const char *topology, size_t tasks)
{
    size_t chips = count_chips(topology);

    for (size_t i = 0; i < sizeof generations / sizeof generations[0] && chips > 0; i++)
        if (chip[0] != '\0' && strcmp(generations[i].chip, chip) == 0)
            return share_devices(chips * generations[i].per_chip, tasks);
    return -1;
}
