/* The resolver kubernetes: pods by label, from the cluster's API. */
#include "resolver/cloud/kubernetes/access.h"
#include "resolver/cloud/kubernetes/pods.h"
#include "resolver/cloud/resolvers.h"
#include "resolver/engine/kind.h"
#include "resolver/spec/cluster.h"
#include "runtime/base/text.h"
#include "runtime/document/json.h"
#include "runtime/document/refuse.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    SELECTORS_MAX = 32,
    SELECTOR_BYTES = 512,
    PAGE_PODS = 500,
    PAGES_MAX = 200, /* of one selector */
    PAGE_BYTES_MAX = 32 << 20,
    LIST_BYTES_MAX = 256 << 20, /* all pages of a selector together */
    ROUNDS_MAX = 3,             /* a list that expires is begun anew so often */
    URL_BYTES = 8192
};

/* ---- Selectors and counts ---- */

struct selector {
    char type[16];
    char labels[SELECTOR_BYTES];
    char source[300]; /* for messages */
};

/* The settings of a query, and its access to the API. */
struct pods_query {
    struct selector selectors[SELECTORS_MAX];
    size_t selectors_count;
    const char *name_space;
    long port;
    const char *port_name;
    bool host;
    struct mu__kubernetes_access access;
    struct mu__request_tls tls;
    const char *headers[3];
};

static int bad_selector(const char *origin, size_t position, const char *text,
                        size_t size, mu_error *ret_error)
{
    return mu__refuse(
        ret_error, text, size,
        "%s: at %zu: expected TYPE:LABELS, as in \"worker:app=a,role=w;ps:app=b\"",
        origin, position);
}

/* "worker:app=a" or "worker=app=a": the type ends at the first of both. */
static int read_selector(const char *origin, size_t position, const char *text,
                         size_t size, mu_error *ret_error, struct selector *selector)
{
    size_t type = 0;
    size_t labels;
    int rv;

    while (type < size && text[type] != ':' && text[type] != '=')
        type++;
    labels = size - type;
    if (type == 0 || labels < 2 || labels > SELECTOR_BYTES)
        return bad_selector(origin, position, text, size, ret_error);
    rv = mu__task_type_read(text, type, ret_error, selector->type, "%s: at %zu", origin,
                            position);
    if (rv == 0)
        (void)snprintf(selector->labels, sizeof selector->labels, "%.*s", (int)labels - 1,
                       text + type + 1);
    return rv;
}

static int read_selectors(const struct mu__pass *pass, mu_error *ret_error,
                          struct pods_query *plan)
{
    const char *text = mu__setting(pass, MU__KUBE_SET_SELECTORS);
    const char *at = text;
    const char *origin = mu__setting_origin(pass, MU__KUBE_SET_SELECTORS);

    while (*at != '\0') {
        size_t size = strcspn(at, ";");
        int rv;

        if (plan->selectors_count == SELECTORS_MAX)
            return mu_error_set(ret_error, -MU_EINVALID,
                                "%s: expected at most %d selectors", origin,
                                (int)SELECTORS_MAX);
        rv = read_selector(origin, (size_t)(at - text) + 1, at, size, ret_error,
                           &plan->selectors[plan->selectors_count++]);
        if (rv != 0)
            return rv;
        at += size;
        at += *at == ';';
    }
    return plan->selectors_count > 0 ? 0 : bad_selector(origin, 1, "", 0, ret_error);
}

/* "worker=4". */
static int read_pod_count(const char *origin, size_t position, const char *text,
                          size_t size, mu_error *ret_error, char *ret_type,
                          size_t *ret_count)
{
    size_t type = strcspn(text, "=,");
    char digits[8] = "";
    int count;

    if (type < size && size - type - 1 < sizeof digits)
        memcpy(digits, text + type + 1, size - type - 1);
    if (mu__index_parse(digits, &count) != 0)
        return mu_error_set(ret_error, -MU_EINVALID,
                            "%s: at %zu: expected TYPE=COUNT, as in \"worker=4,ps=2\"",
                            origin, position);
    *ret_count = (size_t)count;
    return mu__task_type_read(text, type, ret_error, ret_type, "%s: at %zu", origin,
                              position);
}

/* Compare the cluster with the counts of the setting `tasks`. */
static int check_tasks(const struct mu__pass *pass, const mu_resolution *resolution,
                       mu_error *ret_error)
{
    const char *text = mu__setting(pass, MU__KUBE_SET_TASKS);
    const char *origin = mu__setting_origin(pass, MU__KUBE_SET_TASKS);

    for (const char *at = text; at != NULL && *at != '\0'; at += *at == ',') {
        size_t size = strcspn(at, ",");
        char type[16];
        size_t expected = 0;
        size_t found;
        int rv = read_pod_count(origin, (size_t)(at - text) + 1, at, size, ret_error,
                                type, &expected);

        if (rv != 0)
            return rv;
        found = mu_cluster_task_count(resolution->cluster, type);
        if (found != expected)
            return mu_error_set(ret_error,
                                found < expected ? -MU_EUNAVAILABLE : -MU_EPRECONDITION,
                                "%s: expected %zu pods of %s, but there are %zu", origin,
                                expected, type, found);
        at += size;
    }
    return 0;
}

/* ---- Settings ---- */

static int read_name_space(const struct mu__pass *pass, mu_error *ret_error,
                           struct pods_query *plan)
{
    const char *text = mu__setting(pass, MU__KUBE_SET_NAMESPACE);

    if (text == NULL)
        text = plan->access.name_space;
    if (text == NULL && !plan->access.within)
        text = "default";
    if (text == NULL)
        return mu_error_set(ret_error, -MU_ENOTFOUND,
                            "namespace: the pod has no service account that tells it; "
                            "set the setting namespace");
    if (text[0] == '\0' || strlen(text) > 63 ||
        text[strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789-")] != '\0')
        return mu__refuse(
            ret_error, text, strlen(text),
            "namespace: expected a namespace's name (small letters, digits and \"-\")");
    plan->name_space = text;
    return 0;
}

static int read_settings(const struct mu__pass *pass, mu_error *ret_error,
                         struct pods_query *plan)
{
    static const char *const addresses[] = {"pod_ip", "host_ip", NULL};
    unsigned address = 0;
    int rv = read_selectors(pass, ret_error, plan);

    plan->port_name = mu__setting(pass, MU__KUBE_SET_PORT_NAME);
    if (rv == 0)
        rv = mu__setting_number(pass, MU__KUBE_SET_PORT, ret_error, &plan->port);
    if (rv == 0)
        rv = mu__setting_word(pass, MU__KUBE_SET_ADDRESS, addresses,
                              "\"pod_ip\" or \"host_ip\"", ret_error, &address);
    plan->host = address == 1;
    return rv;
}

/* ---- One list of pods ---- */

/* Write `text` as a part of a url's query. False: there is no room. */
static bool append_encoded(char *url, const char *text)
{
    static const char plain[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
                                "0123456789-._~";
    size_t used = strlen(url);

    for (; *text != '\0'; text++) {
        bool is_plain = strchr(plain, *text) != NULL;

        if (used + 4 > URL_BYTES)
            return false;
        (void)snprintf(url + used, URL_BYTES - used, is_plain ? "%c" : "%%%02X",
                       (unsigned char)*text);
        used += is_plain ? 1 : 3;
    }
    return true;
}

static int make_url(const struct pods_query *plan, const struct selector *selector,
                    const char *next, mu_error *ret_error, char *url)
{
    int size = snprintf(url, URL_BYTES, "%s/api/v1/namespaces/%s/pods?limit=%d",
                        plan->access.server, plan->name_space, (int)PAGE_PODS);

    if (size > 0 && size < URL_BYTES - 64) {
        (void)snprintf(url + size, 64, "&labelSelector=");
        if (append_encoded(url, selector->labels)) {
            size = (int)strlen(url);
            if (next[0] == '\0')
                return 0;
            (void)snprintf(url + size, (size_t)(URL_BYTES - size), "&continue=");
            if (append_encoded(url, next))
                return 0;
        }
    }
    return mu_error_set(ret_error, -MU_EEXHAUSTED,
                        "%s: the url has too many bytes; expected at most %d",
                        selector->source, (int)URL_BYTES);
}

/* An error for a status that is not 200, with a hint at its usual cause. */
static int check_pods_status(const struct selector *selector,
                             const struct mu__answer *answer, mu_error *ret_error)
{
    static const struct {
        int status;
        const char *words;
    } hints[] = {
        {401, "; is the token of this cluster, and still valid?"},
        {403, "; a Role with get and list of pods in this namespace is needed, bound to "
              "the pod's service account"},
        {404, "; is api_server the API of a Kubernetes cluster?"},
    };
    mu_error inner;
    const char *hint = "";
    int rv = mu__answer_check(answer, "Kubernetes API", &inner);

    for (size_t i = 0; i < sizeof hints / sizeof hints[0]; i++)
        if (answer->code == 0 && answer->status == hints[i].status)
            hint = hints[i].words;
    if (rv != 0)
        return mu_error_set(ret_error, rv, "%.160s: %.220s%s", selector->source,
                            inner.message, hint);
    if (strcmp(answer->content_type, "application/json") == 0)
        return 0;
    return mu_error_set(ret_error, -MU_EINVALID,
                        "%.200s: Kubernetes API: expected application/json, got "
                        "\"%.60s\"; is there another server in between?",
                        selector->source, answer->content_type);
}

/* The pods of a page; they are parsed in the first pass and kept with the answer. */
static int read_pods_page(const struct selector *selector,
                          const struct mu__answer *answer, mu_error *ret_error,
                          const struct mu__pods **ret_pods)
{
    struct mu__pods *pods;
    int rv = check_pods_status(selector, answer, ret_error);

    if (rv == 0 && answer->parsed == NULL) {
        rv = mu__pods_parse(answer->data, answer->size, selector->source, ret_error,
                            &pods);
        if (rv == 0)
            mu__answer_set_parsed(answer, pods, mu__pods_free);
    }
    if (rv != 0)
        return rv;
    *ret_pods = answer->parsed;
    return 0;
}

/* Pods over all pages. */
struct pod_list {
    const struct mu__pod **pods;
    size_t count;
    size_t bytes;
};

static int append_pods(struct pod_list *list, const struct mu__pods *page,
                       const char *source, mu_error *ret_error)
{
    const struct mu__pod **pods =
        realloc(list->pods, (list->count + page->count + 1) * sizeof *pods);

    if (pods == NULL)
        return mu_error_set(ret_error, -MU_ENOMEM, "%s: out of memory", source);
    list->pods = pods;
    for (size_t i = 0; i < page->count; i++)
        pods[list->count++] = &page->items[i];
    return 0;
}

static int refuse_large_pod_list(const struct selector *selector, mu_error *ret_error)
{
    return mu_error_set(ret_error, -MU_EEXHAUSTED,
                        "%s: expected a list of at most %d pages and %d MiB; is the "
                        "selector too wide?",
                        selector->source, (int)PAGES_MAX, LIST_BYTES_MAX >> 20);
}

/* Read all pages of the list. *ret_status is that of the last answer: 410: the list has
 * expired meanwhile; 401: the token has. */
static int read_pages(struct mu__requests *requests, const struct pods_query *plan,
                      const struct selector *selector, unsigned again,
                      mu_error *ret_error, struct pod_list *list, int *ret_status)
{
    char url[URL_BYTES];
    struct mu__request request = {.kind = MU__REQUEST_HTTP,
                                  .name = url,
                                  .again = again,
                                  .bytes_max = PAGE_BYTES_MAX,
                                  .tls = &plan->tls,
                                  .headers = plan->headers,
                                  .uses_proxy = !plan->access.within};
    const char *next = "";

    list->count = 0;
    list->bytes = 0;
    for (unsigned i = 0; i < PAGES_MAX; i++) {
        const struct mu__answer *answer;
        const struct mu__pods *page = NULL;
        int rv = make_url(plan, selector, next, ret_error, url);

        if (rv != 0)
            return rv;
        answer = mu__requests_get(requests, &request);
        *ret_status = answer->code == 0 ? answer->status : 0;
        rv = read_pods_page(selector, answer, ret_error, &page);
        if (rv == 0)
            rv = append_pods(list, page, selector->source, ret_error);
        if (rv != 0)
            return rv;
        list->bytes += answer->size;
        if (page->next[0] == '\0')
            return 0;
        if (list->bytes > LIST_BYTES_MAX)
            return refuse_large_pod_list(selector, ret_error);
        next = page->next;
    }
    return refuse_large_pod_list(selector, ret_error);
}

/* `token`: how often the token was read again. */
static int read_whole_pod_list(struct mu__requests *requests,
                               const struct pods_query *plan,
                               const struct selector *selector, unsigned token,
                               mu_error *ret_error, struct pod_list *list,
                               int *ret_status)
{
    for (unsigned round = 0; round < ROUNDS_MAX; round++) {
        int rv = read_pages(requests, plan, selector, token * ROUNDS_MAX + round,
                            ret_error, list, ret_status);

        if (rv == 0 || *ret_status != 410)
            return rv;
    }
    return mu_error_set(ret_error, -MU_EUNAVAILABLE,
                        "%s: the list has expired %d times before its end was read",
                        selector->source, (int)ROUNDS_MAX);
}

/* ---- The own pod ---- */

/* One way to recognise the own pod. */
struct self {
    const char *text;
    size_t offset; /* of the text in struct mu__pod that has to be equal */
};

static bool is_self(const struct mu__pod *pod, const struct self *self)
{
    const char *text = *(const char *const *)((const char *)pod + self->offset);

    return text[0] != '\0' && strcmp(text, self->text) == 0;
}

/* The pod that is the only one with this text. */
static bool find_self(const struct pods_query *plan, const struct pod_list *lists,
                      const size_t *firsts, const struct self *self,
                      mu_resolution *resolution)
{
    const struct selector *type = NULL;
    size_t index = 0;

    if (self->text == NULL)
        return false;
    for (size_t i = 0; i < plan->selectors_count; i++) {
        for (size_t k = 0; k < lists[i].count; k++) {
            if (!is_self(lists[i].pods[k], self))
                continue;
            if (type != NULL)
                return false;
            type = &plan->selectors[i];
            index = firsts[i] + k;
        }
    }
    if (type == NULL)
        return false;
    MU__COPY_TEXT(resolution->task_type, type->type);
    resolution->task_index = (int)index;
    return true;
}

/* A name is unique only within its namespace, an address in the cluster. */
static void find_own_pod(struct mu__requests *requests, const struct pods_query *plan,
                         const struct pod_list *lists, const size_t *firsts,
                         mu_resolution *resolution)
{
    const struct mu__request host = {.kind = MU__REQUEST_HOST_NAME};
    const struct mu__answer *answer = mu__requests_get(requests, &host);
    const char *host_name = mu__request_variable(requests, "HOSTNAME");
    const char *own = plan->access.name_space;
    bool same = own == NULL || strcmp(own, plan->name_space) == 0;
    struct self ways[] = {
        {mu__request_variable(requests, "POD_NAME"), offsetof(struct mu__pod, name)},
        {mu__request_variable(requests, "POD_IP"), offsetof(struct mu__pod, pod_ip)},
        {host_name, offsetof(struct mu__pod, name)},
        {host_name, offsetof(struct mu__pod, host_name)},
        {answer->code == 0 ? answer->data : NULL, offsetof(struct mu__pod, name)},
        {answer->code == 0 ? answer->data : NULL, offsetof(struct mu__pod, host_name)},
    };

    if (!plan->access.within)
        return;
    for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++)
        if ((same || ways[i].offset == offsetof(struct mu__pod, pod_ip)) &&
            find_self(plan, lists, firsts, &ways[i], resolution))
            return;
    mu__requests_explain(requests,
                         "this process is in none of these pods (by POD_NAME, POD_IP and "
                         "HOSTNAME)");
}

/* ---- All together ---- */

static void explain_left_out(struct mu__requests *requests,
                             const struct selector *selector, size_t count)
{
    if (count > 0)
        mu__requests_explain(requests,
                             "%s: %zu left out that have ended or are being deleted",
                             selector->source, count);
}

static int add_pod_lists(struct mu__requests *requests, const struct pods_query *plan,
                         struct pod_list *lists, size_t *firsts, mu_error *ret_error,
                         mu_resolution *resolution)
{
    for (size_t i = 0; i < plan->selectors_count; i++) {
        const struct mu__pods_rule rule = {
            .source = plan->selectors[i].source,
            .type = plan->selectors[i].type,
            .host = plan->host,
            .port = (unsigned)plan->port,
            .port_name = plan->port_name,
        };
        size_t count = lists[i].count;
        int rv = mu__pods_add(lists[i].pods, &lists[i].count, &rule, ret_error,
                              resolution, &firsts[i]);

        explain_left_out(requests, &plan->selectors[i], count - lists[i].count);
        if (rv != 0)
            return rv;
    }
    return 0;
}

static int read_lists(struct mu__requests *requests, const struct pods_query *plan,
                      unsigned token, mu_error *ret_error, struct pod_list *lists,
                      bool *ret_refused)
{
    for (size_t i = 0; i < plan->selectors_count; i++) {
        int status = 0;
        int rv = read_whole_pod_list(requests, plan, &plan->selectors[i], token,
                                     ret_error, &lists[i], &status);

        if (rv != 0) {
            *ret_refused = status == 401;
            return rv;
        }
    }
    return 0;
}

static void prepare_pods_query(struct pods_query *plan)
{
    const struct mu__kube_access *tls = &plan->access.tls;

    plan->tls = (struct mu__request_tls){.ca = tls->ca.text,
                                         .certificate = tls->certificate.text,
                                         .key = tls->key.text,
                                         .server_name = tls->server_name,
                                         .insecure = tls->insecure};
    plan->headers[0] = "Accept: application/json";
    plan->headers[1] = plan->access.authorization;
    for (size_t i = 0; i < plan->selectors_count; i++)
        (void)snprintf(plan->selectors[i].source, sizeof plan->selectors[i].source,
                       "pods of namespace %.63s with %.150s", plan->name_space,
                       plan->selectors[i].labels);
}

/* One try with the token number `token`. *ret_refused: the API has refused it. */
static int resolve_pods_with(const struct mu__pass *pass, struct pods_query *plan,
                             unsigned token, mu_error *ret_error,
                             mu_resolution *resolution, bool *ret_refused)
{
    struct pod_list lists[SELECTORS_MAX] = {{0}};
    size_t firsts[SELECTORS_MAX] = {0};
    int rv = read_name_space(pass, ret_error, plan);

    if (rv == 0) {
        prepare_pods_query(plan);
        rv = read_lists(pass->requests, plan, token, ret_error, lists, ret_refused);
    }
    if (rv == 0)
        rv = add_pod_lists(pass->requests, plan, lists, firsts, ret_error, resolution);
    if (rv == 0)
        rv = check_tasks(pass, resolution, ret_error);
    if (rv == 0)
        find_own_pod(pass->requests, plan, lists, firsts, resolution);
    for (size_t i = 0; i < plan->selectors_count; i++)
        free(lists[i].pods);
    return rv;
}

int mu__pods_resolve(const struct mu__pass *pass, mu_error *ret_error,
                     mu_resolution *ret_resolution)
{
    struct pods_query plan = {.port = 8470};
    bool again = true;
    int rv = read_settings(pass, ret_error, &plan);

    MU__COPY_TEXT(ret_resolution->rpc_layer, mu__setting(pass, MU__KUBE_SET_RPC_LAYER));
    for (unsigned token = 0; rv == 0 && token < 2 && again; token++) {
        again = false;
        rv = mu__kubernetes_access(pass, token, ret_error, &plan.access);
        if (rv != 0)
            return rv;
        rv = resolve_pods_with(pass, &plan, token, ret_error, ret_resolution, &again);
        again = again && plan.access.token_is_new;
        mu__kubernetes_access_done(&plan.access);
        if (again && token == 0)
            rv = 0;
    }
    return rv;
}
