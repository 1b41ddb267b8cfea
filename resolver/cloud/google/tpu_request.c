/* The choice of TPUs, and requests to their API. */
#include "resolver/cloud/google/tpu.h"
#include "runtime/base/build.h"
#include "runtime/base/text.h"
#include "runtime/document/json.h"
#include "runtime/document/refuse.h"

#include <stdio.h>
#include <string.h>

enum { NEAR_MAX = 3 }; /* edit distance of a name that is suggested */

/* ---- Choice of TPUs ---- */

static bool has_prefix(const char *text, const char *with)
{
    return strncmp(text, with, strlen(with)) == 0;
}

static bool is_noncloud(const char *tpu)
{
    return tpu[0] == '\0' || strcmp(tpu, "local") == 0 || has_prefix(tpu, "localhost:") ||
           has_prefix(tpu, "/bns");
}

/* An empty name has a meaning on Google's own machines outside of its cloud, and is
 * refused on Compute Engine. */
static int choose_by_hand(struct mu__requests *requests, const char *tpu,
                          mu_error *ret_error, struct mu__tpu_choice *choice)
{
    mu_error why;
    int rv;

    if (tpu[0] == '\0') {
        rv = mu__google_here(requests, &why);
        if (rv == 1)
            return mu_error_set(ret_error, -MU_EPRECONDITION,
                                "setting tpu is empty: expected the name of a TPU on "
                                "Google Compute Engine");
        if (rv < 0)
            return mu_error_set(ret_error, rv, "%s", why.message);
    }
    choice->source = is_noncloud(tpu) ? MU__TPU_NONCLOUD : MU__TPU_LIST;
    choice->text = tpu;
    (void)snprintf(choice->origin, sizeof choice->origin, "setting tpu");
    return 0;
}

/* {"tpu_node_name": "a", "project": "p", "zone": "z"} */
static int read_tpu_config(const cJSON *root, mu_error *ret_error,
                           struct mu__tpu_choice *choice)
{
    const struct {
        const char *key;
        char *out;
        size_t size;
    } members[] = {
        {"tpu_node_name", choice->name, sizeof choice->name},
        {"project", choice->project, sizeof choice->project},
        {"zone", choice->zone, sizeof choice->zone},
    };

    for (size_t i = 0; i < 3; i++) {
        const char *text = NULL;
        int rv = mu__google_text(root, members[i].key, "TPU_CONFIG", ret_error, &text);

        if (rv != 0)
            return rv;
        if ((text == NULL || text[0] == '\0') && i == 0)
            return mu_error_set(ret_error, -MU_EINVALID,
                                "TPU_CONFIG: tpu_node_name is missing");
        if (text != NULL && strlen(text) >= members[i].size)
            return mu_error_set(ret_error, -MU_EINVALID,
                                "TPU_CONFIG: %s: expected at most %zu bytes",
                                members[i].key, members[i].size - 1);
        (void)snprintf(members[i].out, members[i].size, "%s", text == NULL ? "" : text);
    }
    choice->text = choice->name;
    choice->source = MU__TPU_LIST;
    return 0;
}

/* JSON, or the path of a file with it. */
static int choose_by_config(struct mu__requests *requests, const char *config,
                            mu_error *ret_error, struct mu__tpu_choice *choice)
{
    const struct mu__answer *answer;
    cJSON *root = NULL;
    int rv;

    (void)snprintf(choice->origin, sizeof choice->origin, "TPU_CONFIG");
    if (config[strspn(config, " \t\r\n")] != '{') {
        answer = mu__request_file(requests, config);
        rv = mu__answer_check(answer, "TPU_CONFIG", ret_error);
        if (rv != 0)
            return rv;
        config = answer->data;
    }
    rv = mu__json_parse(config, strlen(config), "TPU_CONFIG", ret_error, &root);
    if (rv == 0)
        rv = read_tpu_config(root, ret_error, choice);
    cJSON_Delete(root);
    return rv;
}

/* Whether this machine is a host of a TPU, as its metadata say. */
static int choose_by_metadata(struct mu__requests *requests, bool probes,
                              mu_error *ret_error, struct mu__tpu_choice *choice)
{
    const char *number;
    mu_error why;
    int rv = mu__google_here(requests, &why);

    if (rv == 1 && mu__tpu_skips_metadata(requests)) {
        rv = 0;
        (void)mu_error_set(&why, -MU_ENOTFOUND,
                           "TPU_SKIP_MDS_QUERY forbids to ask the metadata server");
    }
    if (rv == 1)
        rv = mu__google_metadata(requests, "instance/attributes/agent-worker-number",
                                 probes, &why, &number);
    else if (rv == 0)
        rv = -MU_ENOTFOUND;
    if (rv != 0)
        return mu_error_set(ret_error, rv == -MU_ENOTFOUND ? -MU_EPRECONDITION : rv,
                            MU__TPU_UNTOLD ", and %s", why.message);
    choice->source = MU__TPU_METADATA;
    (void)snprintf(choice->origin, sizeof choice->origin, "the metadata server");
    return 0;
}

int mu__tpu_choose(const struct mu__pass *pass, bool probes, mu_error *ret_error,
                   struct mu__tpu_choice *ret_choice)
{
    static const struct {
        const char *variable;
        enum mu__tpu_source source;
    } variables[] = {{"KUBE_GOOGLE_CLOUD_TPU_ENDPOINTS", MU__TPU_LIST},
                     {"TPU_WORKER_HOSTNAMES", MU__TPU_HOSTS},
                     {"TPU_NAME", MU__TPU_LIST}};
    const char *tpu = mu__setting(pass, MU__TPU_SET_TPU);

    *ret_choice = (struct mu__tpu_choice){0};
    if (tpu != NULL)
        return choose_by_hand(pass->requests, tpu, ret_error, ret_choice);
    for (size_t i = 0; i < sizeof variables / sizeof variables[0]; i++) {
        tpu = mu__request_variable(pass->requests, variables[i].variable);
        if (tpu == NULL)
            continue;
        ret_choice->text = tpu;
        ret_choice->source = variables[i].source;
        if (variables[i].source == MU__TPU_LIST && is_noncloud(tpu))
            ret_choice->source = MU__TPU_NONCLOUD;
        MU__COPY_TEXT(ret_choice->origin, variables[i].variable);
        return 0;
    }
    tpu = mu__request_variable(pass->requests, "TPU_CONFIG");
    if (tpu != NULL)
        return choose_by_config(pass->requests, tpu, ret_error, ret_choice);
    return choose_by_metadata(pass->requests, probes, ret_error, ret_choice);
}

/* ---- Project, zone and name ---- */

void mu__tpu_location_init(const struct mu__pass *pass, struct mu__tpu_choice *choice,
                           struct mu__tpu_location *ret_location)
{
    *ret_location = (struct mu__tpu_location){.refused = &choice->refused};
    mu__google_init(pass, MU__TPU_SET_GOOGLE, &ret_location->google);
}

static int take_part(const struct mu__tpu_choice *choice,
                     const struct mu__tpu_entry *entry, const char *text, size_t size,
                     mu_error *ret_error, char *ret_name)
{
    char what[192];
    char name[MU__GOOGLE_NAME_BYTES + 1];
    int rv;

    (void)snprintf(what, sizeof what, "%s[%zu]", choice->origin, entry->number);
    (void)snprintf(name, sizeof name, "%.*s",
                   (int)(size < sizeof name ? size : sizeof name), text);
    rv = mu__google_name_check(what, name, ret_error);
    if (rv == 0)
        memcpy(ret_name, name, strlen(name) + 1);
    return rv;
}

int mu__tpu_full_name(const struct mu__tpu_choice *choice,
                      const struct mu__tpu_entry *entry, const char *kind,
                      mu_error *ret_error, struct mu__tpu_location *location)
{
    const char *const words[] = {"projects/", "locations/", kind};
    char *parts[] = {location->project, location->zone, location->name};
    const char *at = entry->text;
    const char *end = entry->text + entry->size;

    for (size_t i = 0; i < 3; i++) {
        size_t word = strlen(words[i]);
        size_t size;
        int rv;

        if ((size_t)(end - at) < word || memcmp(at, words[i], word) != 0)
            break;
        at += word;
        size = i == 2 ? (size_t)(end - at) : strcspn(at, "/,");
        rv = take_part(choice, entry, at, size, ret_error, parts[i]);
        if (rv != 0)
            return rv;
        at += size;
        if (i == 2)
            return 0;
        at += *at == '/';
    }
    return mu__refuse(
        ret_error, entry->text, entry->size,
        "%s[%zu]: expected a name or projects/PROJECT/locations/ZONE/%sNAME",
        choice->origin, entry->number, kind);
}

/* The setting, else the value beside the name in TPU_CONFIG. */
static const char *get_given_setting(const struct mu__google *google, unsigned number,
                                     const char *beside)
{
    const char *set = mu__setting(google->pass, number);

    return set != NULL && set[0] != '\0' ? set : beside;
}

static int take_tpu_name(const struct mu__tpu_choice *choice,
                         const struct mu__tpu_entry *entry, mu_error *ret_error,
                         struct mu__tpu_location *location)
{
    const struct mu__google *google = &location->google;
    int rv =
        take_part(choice, entry, entry->text, entry->size, ret_error, location->name);

    if (rv == 0)
        rv = mu__google_project(
            google, get_given_setting(google, MU__TPU_SET_PROJECT, choice->project),
            ret_error, location->project);
    return rv != 0
               ? rv
               : mu__google_zone(
                     google, get_given_setting(google, MU__TPU_SET_ZONE, choice->zone),
                     ret_error, location->zone);
}

static int find_tpu_location(const struct mu__pass *pass, struct mu__tpu_choice *choice,
                             const struct mu__tpu_entry *entry, mu_error *ret_error,
                             struct mu__tpu_location *location)
{
    mu_error inner;
    int rv;

    mu__tpu_location_init(pass, choice, location);
    if (memchr(entry->text, '/', entry->size) != NULL)
        rv = mu__tpu_full_name(choice, entry, "nodes/", &inner, location);
    else
        rv = take_tpu_name(choice, entry, &inner, location);
    if (rv != 0)
        return mu_error_set(ret_error, rv, "TPU \"%.*s\": %s",
                            (int)(entry->size < 120 ? entry->size : 120), entry->text,
                            inner.message);
    (void)snprintf(location->what, sizeof location->what,
                   "TPU \"%s\" (project %s, zone %s)", location->name, location->project,
                   location->zone);
    return 0;
}

/* ---- The API's url ---- */

/* Fill in the template of the discovery document's url. */
static void build_discovery_url(struct mu__build *url, const char *template,
                                const char *version)
{
    static const char api[] = "{api}";
    static const char api_version[] = "{apiVersion}";

    while (*template != '\0') {
        if (has_prefix(template, api)) {
            mu__build_add(url, "tpu");
            template += sizeof api - 1;
        } else if (has_prefix(template, api_version)) {
            mu__build_escaped(url, version);
            template += sizeof api_version - 1;
        } else {
            mu__build_bytes(url, template ++, 1);
        }
    }
}

/* The document is public: the request has no token. */
static int request_document(const struct mu__tpu_location *location, const char *template,
                            const char *version, mu_error *ret_error,
                            const cJSON **ret_root)
{
    struct mu__google google = location->google;
    struct mu__build url = {0};
    char base[1024];
    int rv = mu__google_endpoint(&google, template, ret_error, base, sizeof base);

    if (rv != 0)
        return rv;
    google.credentials = "none";
    google.access_token = NULL;
    google.access_token_file = NULL;
    google.token_command = NULL;
    build_discovery_url(&url, base, version);
    rv = !mu__build_whole(&url)
             ? mu_error_set(ret_error, -MU_ENOMEM, "out of memory")
             : mu__google_send(&google,
                               &(struct mu__google_request){.url = url.text,
                                                            .what = "discovery document"},
                               ret_error, ret_root);
    mu__build_done(&url);
    return rv;
}

/* {"rootUrl": "https://tpu.googleapis.com/", "servicePath": ""} */
static int read_document(const struct mu__tpu_location *location, const cJSON *root,
                         mu_error *ret_error, char *ret_base, size_t size)
{
    const char *path = NULL;
    const char *url = NULL;
    char whole[1024];
    int rv = mu__google_text(root, "rootUrl", "discovery document", ret_error, &url);

    if (rv == 0)
        rv = mu__google_text(root, "servicePath", "discovery document", ret_error, &path);
    if (rv == 0 && url == NULL)
        return mu_error_set(ret_error, -MU_EINVALID,
                            "discovery document: rootUrl is missing");
    if (rv != 0)
        return rv;
    (void)snprintf(whole, sizeof whole, "%s%s", url, path == NULL ? "" : path);
    return mu__google_endpoint(&location->google, whole, ret_error, ret_base, size);
}

/* "https://tpu.googleapis.com/v2"; the variable comes before the settings. */
static int find_base(const struct mu__tpu_location *location, mu_error *ret_error,
                     char *ret_base, size_t size)
{
    const struct mu__pass *pass = location->google.pass;
    const char *version = mu__setting(pass, MU__TPU_SET_API_VERSION);
    const char *template = mu__request_variable(pass->requests, "TPU_API_DISCOVERY_URL");
    const cJSON *root = NULL;
    char base[600];
    int rv = mu__google_name_check("setting api_version", version, ret_error);

    if (rv != 0)
        return rv;
    if (template == NULL)
        template = mu__setting(pass, MU__TPU_SET_DISCOVERY_URL);
    if (template != NULL && template[0] != '\0') {
        rv = request_document(location, template, version, ret_error, &root);
        if (rv == 0)
            rv = read_document(location, root, ret_error, base, sizeof base);
    } else {
        rv = mu__google_endpoint(&location->google,
                                 mu__setting(pass, MU__TPU_SET_API_ENDPOINT), ret_error,
                                 base, sizeof base);
    }
    if (rv == 0)
        (void)snprintf(ret_base, size, "%s/%s", base, version);
    return rv;
}

/* ---- Requests ---- */

static const char *last_part(const char *name)
{
    const char *slash = strrchr(name, '/');

    return slash == NULL ? name : slash + 1;
}

/* The name in the list that is nearest to `name`; NULL: none is near. */
static const char *find_nearest_tpu(const cJSON *root, const char *name)
{
    const cJSON *nodes = cJSON_GetObjectItemCaseSensitive(root, "nodes");
    const cJSON *node = cJSON_IsArray(nodes) ? nodes->child : NULL;
    const char *near = NULL;
    unsigned best = NEAR_MAX + 1;

    for (; node != NULL; node = node->next) {
        const cJSON *item = cJSON_GetObjectItemCaseSensitive(node, "name");
        const char *other = cJSON_IsString(item) ? last_part(item->valuestring) : "";
        unsigned distance = mu__text_distance(name, other);

        if (distance < best && other[0] != '\0') {
            best = distance;
            near = other;
        }
    }
    return near;
}

int mu__tpu_get(const struct mu__tpu_location *location, const char *rest, unsigned tries,
                mu_error *ret_error, const cJSON **ret_root)
{
    char base[700];
    char url[1400];
    mu_error inner;
    int rv = find_base(location, &inner, base, sizeof base);

    if (rv != 0)
        return mu_error_set(ret_error, rv, "%s: %s", location->what, inner.message);
    (void)snprintf(url, sizeof url, "%s/projects/%s/locations/%s/%s", base,
                   location->project, location->zone, rest);
    return mu__google_send(&location->google,
                           &(struct mu__google_request){.url = url,
                                                        .what = location->what,
                                                        .tries = tries,
                                                        .refused = location->refused},
                           ret_error, ret_root);
}

/* The API has no such node: it may be queued, else the list of nodes has the name that
 * was probably meant. A list that may not be read is left out. */
static int no_such_node(const struct mu__tpu_location *location, mu_error *error)
{
    const cJSON *queues = NULL;
    const cJSON *root = NULL;
    const char *near = NULL;
    char shown[MU__QUOTE_BYTES];
    mu_error inner;
    int queued =
        mu__tpu_get(location, "queuedResources?pageSize=1000", 1, &inner, &queues);
    int rv = mu__tpu_get(location, "nodes?pageSize=1000", 1, &inner, &root);

    if (queued == 0) {
        queued = mu__tpu_queue_find(location, queues, error);
        if (queued != 0)
            return queued;
    }
    if (rv == 0)
        near = find_nearest_tpu(root, location->name);
    if (near == NULL)
        return mu_error_set(error, -MU_ENOTFOUND,
                            "%s: the API knows no such TPU there: check name, project "
                            "and zone",
                            location->what);
    mu__quote(shown, sizeof shown, near, strlen(near));
    return mu_error_set(error, -MU_ENOTFOUND,
                        "%s: the API knows no such TPU there; did you mean %s?",
                        location->what, shown);
}

int mu__tpu_send(const struct mu__pass *pass, struct mu__tpu_choice *choice,
                 const struct mu__tpu_entry *entry, mu_error *ret_error,
                 struct mu__tpu_location *ret_location, struct mu__tpu_node *ret_node)
{
    struct mu__tpu_location location;
    const cJSON *root = NULL;
    char rest[MU__GOOGLE_NAME_BYTES + 16];
    int rv = find_tpu_location(pass, choice, entry, ret_error, &location);

    if (rv != 0)
        return rv;
    (void)snprintf(rest, sizeof rest, "nodes/%s", location.name);
    rv = mu__tpu_get(&location, rest, 0, ret_error, &root);
    if (rv == -MU_ENOTFOUND)
        return no_such_node(&location, ret_error);
    if (rv == 0)
        rv = mu__tpu_node_read(root, location.what, ret_error, ret_node);
    if (rv == 0)
        *ret_location = location;
    return rv;
}
