/* The public calls of muster/resolver.h that ask, on the calling thread. */
#include "node/discovery/resolver_kinds.h"
#include "node/discovery/run_query.h"
#include "resolver/engine/resolver.h"
#include "resolver/kinds.h"
#include "resolver/spec/cluster.h"
#include "runtime/base/text.h"

#include <muster/resolver.h>

#include <stdlib.h>
#include <string.h>

/* ---- Making ---- */

static void suggest_resolver(const char *name, const char *candidate, unsigned *best,
                             const char **ret_near)
{
    unsigned distance = mu__text_distance(name, candidate);

    if (distance >= *best || distance >= strlen(name))
        return;
    *best = distance;
    *ret_near = candidate;
}

static int no_such_resolver(const char *name, mu_error *ret_error)
{
    struct mu__own_kind *owns[MU_RESOLVER_KINDS_MAX];
    size_t count = mu__own_kinds_all(owns);
    char shown[MU__QUOTE_BYTES];
    const char *near = NULL;
    unsigned best = 4;
    int rv;

    for (size_t i = 0; i < count; i++)
        suggest_resolver(name, owns[i]->name, &best, &near);
    for (size_t i = 0; mu__resolver_kinds[i] != NULL; i++)
        suggest_resolver(name, mu__resolver_kinds[i]->name, &best, &near);
    suggest_resolver(name, "auto", &best, &near);
    mu__quote(shown, sizeof shown, name, strlen(name));
    rv = mu_error_set(ret_error, -MU_ENOTFOUND, "there is no resolver %s%s%s%s", shown,
                      near == NULL ? "" : "; did you mean \"", near == NULL ? "" : near,
                      near == NULL ? "" : "\"?");
    for (size_t i = 0; i < count; i++)
        owns[i]->unref(owns[i]);
    return rv;
}

int mu_resolver_new(const char *name, mu_error *ret_error, mu_resolver **ret_resolver)
{
    const struct mu__resolver_kind *kind;
    struct mu__own_kind *own;
    int rv;

    if (ret_resolver == NULL)
        return mu_error_set(ret_error, -MU_EINVALID,
                            "expected room for the resolver, got NULL");
    if (name == NULL || strcmp(name, "auto") == 0)
        return mu__resolver_new_auto(mu__resolver_kinds, ret_error, ret_resolver);
    kind = mu__resolver_kind_find(name);
    if (kind != NULL)
        return mu__resolver_new_kind(kind, ret_error, ret_resolver);
    own = mu__own_kind_find(name);
    if (own == NULL)
        return no_such_resolver(name, ret_error);
    rv = mu__resolver_new_own(own, ret_error, ret_resolver);
    own->unref(own);
    return rv;
}

/* ---- Listing ---- */

static void set_resolution_text(mu_value *map, const char *key, const char *text)
{
    if (text != NULL)
        (void)mu_value_set(map, key, mu_value_string(text));
}

static mu_value *settings_of(const struct mu__resolver_kind *kind)
{
    mu_value *settings = mu_value_list();

    for (const struct mu__setting_spec *spec = kind->settings;
         spec != NULL && spec->name != NULL; spec++) {
        mu_value *setting = mu_value_map();

        set_resolution_text(setting, "setting", spec->name);
        set_resolution_text(setting, "variable", spec->variable);
        set_resolution_text(setting, "default", spec->initial);
        set_resolution_text(setting, "help", spec->help);
        (void)mu_value_append(settings, setting);
    }
    return settings;
}

mu_value *mu_resolver_list(void)
{
    mu_value *list = mu_value_list();

    for (size_t i = 0; mu__resolver_kinds[i] != NULL; i++) {
        const struct mu__resolver_kind *kind = mu__resolver_kinds[i];
        mu_value *map = mu_value_map();

        set_resolution_text(map, "resolver", kind->name);
        set_resolution_text(map, "summary", kind->summary);
        (void)mu_value_set(map, "detected", mu_value_bool(kind->detect != NULL));
        (void)mu_value_set(map, "settings", settings_of(kind));
        (void)mu_value_append(list, map);
    }
    return list;
}

/* ---- Asking ---- */

int mu_resolver_resolve(mu_resolver *resolver, int64_t timeout_ms, mu_error *ret_error,
                        mu_resolution *ret_resolution)
{
    const struct mu__run_query_config config = {
        .resolver = resolver,
        .what = MU__QUERY_RESOLVE,
        .limits.timeout_ms = timeout_ms,
    };
    struct mu__query_result resolved;
    int rv;

    if (resolver == NULL || ret_resolution == NULL)
        return mu_error_set(ret_error, -MU_EINVALID,
                            "expected a resolver and room for what it finds, got NULL");
    rv = mu__run_query(&config, ret_error, &resolved);
    if (rv == 0)
        *ret_resolution = resolved.resolution;
    return rv;
}

/* ---- Parts of what is found ---- */

int mu_resolver_cluster(mu_resolver *resolver, int64_t timeout_ms, mu_error *ret_error,
                        mu_cluster **ret_cluster)
{
    mu_resolution resolution = {.cluster = NULL};
    int rv;

    if (ret_cluster == NULL)
        return mu_error_set(ret_error, -MU_EINVALID,
                            "expected room for the cluster, got NULL");
    rv = mu_resolver_resolve(resolver, timeout_ms, ret_error, &resolution);
    if (rv == 0)
        *ret_cluster = resolution.cluster;
    return rv;
}

int mu_resolver_master(mu_resolver *resolver, const char *type, int index,
                       const char *rpc_layer, int64_t timeout_ms, mu_error *ret_error,
                       char *ret_master)
{
    char master[MU_MASTER_BYTES];
    mu_resolution resolution;
    int rv;

    if (ret_master == NULL)
        return mu_error_set(ret_error, -MU_EINVALID,
                            "expected room for the master, got NULL");
    rv = mu_resolver_resolve(resolver, timeout_ms, ret_error, &resolution);
    if (rv != 0)
        return rv;
    rv = mu_resolution_master(&resolution, type, index, rpc_layer, ret_error, master);
    mu_cluster_free(resolution.cluster);
    if (rv == 0)
        memcpy(ret_master, master, sizeof master);
    return rv;
}
