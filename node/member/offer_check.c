#include "node/member/offer_check.h"

#include "node/member/session_config.h"
#include "resolver/spec/cluster.h"
#include "runtime/message/codec.h"
#include "transport/wire/url.h"

#include <stdlib.h>
#include <string.h>

/* ---- comparing ---- */

static bool same_task(const mu_cluster *one, const mu_cluster *two, size_t i)
{
    const char *types[2];
    const char *addresses[2];
    int indices[2];

    return mu_cluster_task_at(one, i, &types[0], &indices[0], &addresses[0]) == 0 &&
           mu_cluster_task_at(two, i, &types[1], &indices[1], &addresses[1]) == 0 &&
           strcmp(types[0], types[1]) == 0 && indices[0] == indices[1] &&
           strcmp(mu_cluster_url(one, types[0], indices[0]),
                  mu_cluster_url(two, types[1], indices[1])) == 0;
}

bool mu__cluster_same(const mu_cluster *one, const mu_cluster *two)
{
    size_t count = mu_cluster_task_count(one, NULL);

    if (count != mu_cluster_task_count(two, NULL))
        return false;
    for (size_t i = 0; i < count; i++)
        if (!same_task(one, two, i))
            return false;
    return true;
}

static bool is_host_name(const char *host)
{
    return strchr(host, ':') == NULL && strspn(host, "0123456789.") < strlen(host);
}

static bool is_unspecified_host(const char *host)
{
    return strcmp(host, "0.0.0.0") == 0 || strcmp(host, "::") == 0;
}

static bool is_same_url(const struct mu__url *task, const char *text)
{
    struct mu__url own;

    if (text == NULL || mu__url_parse_any(text, true, &own) != NULL ||
        own.scheme != task->scheme)
        return false;
    if (own.host[0] == '\0')
        return strcmp(own.path, task->path) == 0;
    return own.port == task->port &&
           (strcmp(own.host, task->host) == 0 || is_unspecified_host(own.host) ||
            is_host_name(own.host) || is_host_name(task->host));
}

bool mu__offer_is_at(const char *url, const struct mu__offer_urls *urls)
{
    struct mu__url task;

    return mu__url_parse_any(url, true, &task) == NULL &&
           (is_same_url(&task, urls->listens) || is_same_url(&task, urls->advertised));
}

/* ---- the checks ---- */

static int validate_offer(const mu_cluster *cluster, const struct mu__offer *offer,
                          mu_error *ret_error)
{
    char type[16];

    if (offer->index > MU_CLUSTER_INDEX_MAX)
        return mu_error_set(ret_error, -MU_EINVALID, "task index %u is too large",
                            (unsigned)offer->index);
    mu__view_copy(offer->type, type, sizeof type);
    return mu_cluster_validate(cluster, type, (int)offer->index, ret_error);
}

static int read_offer(const struct mu__offer *offer, mu_error *ret_error,
                      mu_cluster **ret_cluster)
{
    mu_cluster *cluster = NULL;
    mu_error error;
    int rv = mu_cluster_parse(offer->cluster.data, offer->cluster.size, "json", &error,
                              &cluster);

    if (rv == 0)
        rv = validate_offer(cluster, offer, &error);
    if (rv != 0) {
        mu_cluster_free(cluster);
        return mu_error_set(ret_error, rv == -MU_ENOMEM ? rv : -MU_EINVALID,
                            "the offered cluster spec: %s", error.message);
    }
    *ret_cluster = cluster;
    return 0;
}

int mu__offer_check_own(void *owner, const struct mu__offer *offer, mu_error *ret_error)
{
    const struct mu__offer_own *own = owner;
    char name[64];
    mu_cluster *cluster;
    bool is_same;
    int rv = read_offer(offer, ret_error, &cluster);

    if (rv != 0)
        return rv;
    is_same = mu__cluster_same(cluster, own->cluster);
    mu_cluster_free(cluster);
    mu__task_name(name, sizeof name, own->type, own->index);
    if (!is_same)
        return mu_error_set(ret_error, -MU_EPRECONDITION,
                            "the server serves %s of another cluster spec", name);
    if ((int)offer->index != own->index || !mu__view_is(offer->type, own->type))
        return mu_error_set(ret_error, -MU_EPRECONDITION,
                            "the server serves %s of this cluster, not what was offered",
                            name);
    return 0;
}

static int check_config(const struct mu__offer *offer, mu_error *ret_error)
{
    mu_session_config config = {0};
    mu_value *value = NULL;
    char why[128];
    int rv = mu__value_unpack(&offer->config, why, sizeof why, &value);

    if (rv == -MU_ENOMEM)
        return mu_error_set(ret_error, rv, "no memory for a session config");
    if (rv != 0)
        return mu_error_set(ret_error, -MU_EINVALID, "session config: %s", why);
    rv = mu__session_config_read(value, ret_error, &config);
    mu__session_config_done(&config);
    mu_value_free(value);
    return rv;
}

int mu__offer_check_new(void *owner, const struct mu__offer *offer, mu_error *ret_error)
{
    const struct mu__offer_urls *urls = owner;
    char type[16];
    char name[64];
    const char *url;
    mu_cluster *cluster;
    int rv = read_offer(offer, ret_error, &cluster);

    if (rv != 0)
        return rv;
    mu__view_copy(offer->type, type, sizeof type);
    mu__task_name(name, sizeof name, type, (int)offer->index);
    url = mu_cluster_url(cluster, type, (int)offer->index);
    rv = check_config(offer, ret_error);
    if (rv != 0)
        goto end;
    if (url == NULL)
        rv = mu_error_set(ret_error, -MU_EINVALID,
                          "the offered cluster has no address "
                          "for %s, which the server shall be",
                          name);
    else if (!mu__offer_is_at(url, urls))
        rv = mu_error_set(ret_error, -MU_EINVALID,
                          "the offered cluster has %s at "
                          "%.200s, but the server is at %.200s",
                          name, url, urls->listens);
end:
    mu_cluster_free(cluster);
    return rv;
}
