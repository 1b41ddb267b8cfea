/* Queued resources of Cloud TPUs: requests for nodes, which the cloud creates when it has
 * capacity. */
#include "resolver/cloud/google/tpu.h"
#include "runtime/base/build.h"
#include "runtime/base/text.h"
#include "runtime/document/json.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define KIND "queuedResources/"

/* All states but ACTIVE: whether the nodes may still be created. */
static const struct {
    const char *state;
    bool passes;
    const char *words;
} states[] = {
    {"", true, "it does not say its state"},
    {"STATE_UNSPECIFIED", true, "its state is not known"},
    {"CREATING", true, "it is being looked at"},
    {"ACCEPTED", true, "it is in the queue"},
    {"WAITING_FOR_RESOURCES", true, "it waits for room"},
    {"PROVISIONING", true, "its TPUs are being made"},
    {"FAILED", false, "it has failed: delete it and create another"},
    {"SUSPENDING", false, "its TPUs are being taken away"},
    {"SUSPENDED", false, "its TPUs were taken away: delete it and create another"},
    {"DELETING", false, "it is being deleted"},
};

/* {"state": {"state": "ACTIVE"}} */
static int check_state(const cJSON *queue, const char *what, mu_error *ret_error)
{
    const cJSON *object = cJSON_GetObjectItemCaseSensitive(queue, "state");
    const char *state = NULL;
    char shown[MU__QUOTE_BYTES];
    int rv = mu__google_text(object, "state", what, ret_error, &state);

    if (rv != 0 || (state != NULL && strcmp(state, "ACTIVE") == 0))
        return rv;
    state = state == NULL ? "" : state;
    mu__quote(shown, sizeof shown, state, strlen(state));
    for (size_t i = 0; i < sizeof states / sizeof states[0]; i++) {
        if (strcmp(states[i].state, state) != 0)
            continue;
        return mu_error_set(ret_error,
                            states[i].passes ? -MU_EUNAVAILABLE : -MU_EPRECONDITION,
                            "%s: state %s: %s", what, shown, states[i].words);
    }
    return mu_error_set(ret_error, -MU_EPRECONDITION,
                        "%s: state %s, which is not known here", what, shown);
}

/* ---- Its nodes ---- */

struct names {
    const struct mu__tpu_location *location;
    const char *what;
    struct mu__build *text; /* full names with commas between */
    size_t count;
};

static int add_name(struct names *names, const char *name, mu_error *ret_error)
{
    char what[600];
    int rv;

    (void)snprintf(what, sizeof what, "%s: nodeId", names->what);
    rv = mu__google_name_check(what, name, ret_error);
    if (rv != 0)
        return rv;
    if (names->count++ == MU__TPU_NODES_MAX)
        return mu_error_set(ret_error, -MU_EEXHAUSTED,
                            "%s: more than %d TPUs are too many", names->what,
                            MU__TPU_NODES_MAX);
    mu__build_format(names->text, "%sprojects/%s/locations/%s/nodes/%s",
                     names->text->size == 0 ? "" : ",", names->location->project,
                     names->location->zone, name);
    return 0;
}

/* {"nodeCount": 3, "nodeIdPrefix": "a"} makes a-0, a-1 and a-2. */
static int add_several(struct names *names, const cJSON *params, const char *prefix,
                       mu_error *ret_error)
{
    const char *text = NULL;
    char name[2 * MU__GOOGLE_NAME_BYTES];
    int count = 0;
    int rv = mu__google_text(params, "nodeIdPrefix", names->what, ret_error, &text);

    if (rv != 0)
        return rv;
    if (mu__json_index(cJSON_GetObjectItemCaseSensitive(params, "nodeCount"), &count) !=
        0)
        return mu_error_set(ret_error, -MU_EINVALID, "%s: nodeCount: expected a number",
                            names->what);
    text = text == NULL || text[0] == '\0' ? prefix : text;
    for (int i = 0; i < count && rv == 0; i++) {
        (void)snprintf(name, sizeof name, "%.*s-%d", MU__GOOGLE_NAME_BYTES, text, i);
        rv = add_name(names, name, ret_error);
    }
    return rv;
}

/* {"tpu": {"nodeSpec": [{"nodeId": "a"}, {"multisliceParams": {...}}]}}; `queue_name` is
 * the default prefix of the names of several slices' nodes. */
static int add_nodes(struct names *names, const cJSON *queue, const char *queue_name,
                     mu_error *ret_error)
{
    static const char *const several[] = {"multisliceParams", "multiNodeParams"};
    const cJSON *tpu = cJSON_GetObjectItemCaseSensitive(queue, "tpu");
    const cJSON *list = cJSON_GetObjectItemCaseSensitive(tpu, "nodeSpec");
    int rv = 0;

    for (const cJSON *spec = cJSON_IsArray(list) ? list->child : NULL;
         spec != NULL && rv == 0; spec = spec->next) {
        const cJSON *params = NULL;
        const char *name = NULL;

        for (size_t i = 0; i < 2 && params == NULL; i++)
            params = cJSON_GetObjectItemCaseSensitive(spec, several[i]);
        rv = mu__google_text(spec, "nodeId", names->what, ret_error, &name);
        if (rv == 0 && params != NULL)
            rv = add_several(names, params, queue_name, ret_error);
        else if (rv == 0 && name != NULL)
            rv = add_name(names, name, ret_error);
    }
    return rv;
}

/* ---- Replacing a queued resource by its nodes ---- */

static int request_queue(const struct mu__pass *pass, struct mu__tpu_choice *choice,
                         const struct mu__tpu_entry *entry, mu_error *ret_error,
                         struct mu__build *text)
{
    struct mu__tpu_location location;
    struct names names = {.location = &location, .what = location.what, .text = text};
    const cJSON *root = NULL;
    char rest[MU__GOOGLE_NAME_BYTES + sizeof KIND];
    int rv;

    mu__tpu_location_init(pass, choice, &location);
    rv = mu__tpu_full_name(choice, entry, KIND, ret_error, &location);
    if (rv != 0)
        return rv;
    (void)snprintf(location.what, sizeof location.what,
                   "queued resource \"%s\" (project %s, zone %s)", location.name,
                   location.project, location.zone);
    (void)snprintf(rest, sizeof rest, KIND "%s", location.name);
    rv = mu__tpu_get(&location, rest, 0, ret_error, &root);
    if (rv == 0)
        rv = check_state(root, location.what, ret_error);
    if (rv == 0)
        rv = add_nodes(&names, root, location.name, ret_error);
    if (rv == 0 && names.count == 0)
        rv =
            mu_error_set(ret_error, -MU_EINVALID, "%s: it names no nodes", location.what);
    return rv;
}

static bool is_queue(const struct mu__tpu_entry *entry)
{
    const char *at = strstr(entry->text, "/" KIND);

    return !entry->is_address && at != NULL && at < entry->text + entry->size;
}

int mu__tpu_expand(const struct mu__pass *pass, mu_error *ret_error,
                   struct mu__tpu_choice *choice)
{
    struct mu__tpu_entry entry = {0};
    struct mu__build text = {0};
    const char *at = choice->text;
    int rv = 0;

    if (choice->source != MU__TPU_LIST || strstr(at, "/" KIND) == NULL)
        return 0;
    while (rv == 0 && mu__tpu_next(&at, &entry)) {
        if (is_queue(&entry)) {
            rv = request_queue(pass, choice, &entry, ret_error, &text);
        } else {
            mu__build_add(&text, entry.number == 0 ? "" : ",");
            mu__build_bytes(&text, entry.text, entry.size);
        }
    }
    if (rv == 0 && !mu__build_whole(&text))
        rv = mu_error_set(ret_error, -MU_ENOMEM, "out of memory");
    if (rv != 0) {
        mu__build_done(&text);
        return rv;
    }
    choice->expanded = text.text;
    choice->text = text.text;
    return 0;
}

void mu__tpu_choice_done(struct mu__tpu_choice *choice)
{
    free(choice->expanded);
    choice->expanded = NULL;
}

/* ---- The queued resource of a node ---- */

static bool has_name(const char *names, const char *name)
{
    size_t size = strlen(name);

    for (; names != NULL; names = strchr(names, ',')) {
        const char *at = strstr(names, "/nodes/");

        if (at == NULL)
            return false;
        names = at + strlen("/nodes/");
        if (strncmp(names, name, size) == 0 &&
            (names[size] == ',' || names[size] == '\0'))
            return true;
    }
    return false;
}

/* A queued resource that cannot be read is passed over: the caller then says that there
 * is no such node. */
static int check_one(const struct mu__tpu_location *location, const cJSON *queue,
                     mu_error *ret_error)
{
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(queue, "name");
    const char *full = cJSON_IsString(item) ? item->valuestring : "";
    const char *name = strrchr(full, '/') == NULL ? full : strrchr(full, '/') + 1;
    struct mu__build text = {0};
    struct names names = {.location = location, .text = &text};
    char what[800];
    int rv;

    (void)snprintf(what, sizeof what, "%s: queued resource %.120s", location->what, name);
    names.what = what;
    rv = add_nodes(&names, queue, name, NULL);
    if (rv == 0 && mu__build_whole(&text) && has_name(text.text, location->name))
        rv = check_state(queue, what, ret_error);
    else
        rv = 0;
    mu__build_done(&text);
    return rv;
}

int mu__tpu_queue_find(const struct mu__tpu_location *location, const cJSON *list,
                       mu_error *ret_error)
{
    const cJSON *items = cJSON_GetObjectItemCaseSensitive(list, "queuedResources");
    int rv = 0;

    for (const cJSON *item = cJSON_IsArray(items) ? items->child : NULL;
         item != NULL && rv == 0; item = item->next)
        rv = check_one(location, item, ret_error);
    return rv;
}
