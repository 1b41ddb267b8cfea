/* The public calls of muster/resolver.h that ask: each one is an evaluation in a loop of
 * its own, on the calling thread. */
#include "resolver/engine/resolver.h"
#include "node/call_loop.h"
#include "node/discovery/loop_query.h"
#include "node/discovery/resolver_kinds.h"
#include "resolver/engine/uv/requester.h"
#include "resolver/spec/cluster.h"
#include "runtime/base/text.h"

#include <muster/resolver.h>

#include <stdlib.h>
#include <string.h>

/* ---- Making ---- */

static void suggest(const char *name, const char *candidate, unsigned *best,
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
        suggest(name, owns[i]->name, &best, &near);
    for (size_t i = 0; mu__resolver_kinds[i] != NULL; i++)
        suggest(name, mu__resolver_kinds[i]->name, &best, &near);
    suggest(name, "auto", &best, &near);
    mu__quote(shown, sizeof shown, name, strlen(name));
    rv = mu_error_set(ret_error, -MU_ENOTFOUND, "there is no resolver %s%s%s%s", shown,
                      near == NULL ? "" : "; did you mean \"",
                      near == NULL ? "" : near, near == NULL ? "" : "\"?");
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
        return mu__resolver_new_auto(ret_error, ret_resolver);
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

/* ---- A loop for one call ---- */

struct call_loop {
    uv_loop_t loop;
    struct mu__requester_uv *requester;
    const struct mu__loop_query_config *requested;
    struct mu__query_result resolved;
};

static void on_requester_closed(void *arg)
{
    (void)arg;
}

static int loop_begin(struct call_loop **ret_loop, mu_error *ret_error)
{
    struct call_loop *l = calloc(1, sizeof *l);
    int rv;

    if (l == NULL)
        return mu_error_set(ret_error, -MU_ENOMEM, "out of memory");
    rv = uv_loop_init(&l->loop);
    if (rv != 0) {
        free(l);
        return mu_error_set(ret_error, rv == UV_ENOMEM ? -MU_ENOMEM : -MU_EEXHAUSTED,
                            "a loop to ask in: %s", uv_strerror(rv));
    }
    if (mu__requester_uv_open(&l->loop, &l->requester) != 0) {
        (void)uv_loop_close(&l->loop);
        free(l);
        return mu_error_set(ret_error, -MU_ENOMEM, "out of memory");
    }
    *ret_loop = l;
    return 0;
}

static void on_resolved(void *owner, struct mu__query_result *resolved)
{
    struct call_loop *l = owner;

    l->resolved = *resolved;
    uv_stop(&l->loop);
}

static void on_line(void *owner, const char *line)
{
    const struct call_loop *l = owner;

    l->requested->progress(l->requested->owner, line);
}

static int run_in(struct call_loop *l, const struct mu__loop_query_config *requested,
                  mu_error *ret_error)
{
    struct mu__loop_query_config config = *requested;
    struct mu__loop_query *query;

    l->requested = requested;
    config.loop = &l->loop;
    config.requester = mu__requester_uv_base(l->requester);
    config.done = on_resolved;
    config.progress = requested->progress == NULL ? NULL : on_line;
    config.owner = l;
    if (mu__loop_query_start(&config, &query) != 0)
        return mu_error_set(ret_error, -MU_ENOMEM, "out of memory");
    (void)uv_run(&l->loop, UV_RUN_DEFAULT);
    if (l->resolved.code != 0 && ret_error != NULL)
        *ret_error = l->resolved.error;
    return l->resolved.code;
}

int mu__loop_query_call(const struct mu__loop_query_config *config, mu_error *ret_error,
                        struct mu__query_result *ret_resolved)
{
    struct call_loop *l = NULL;
    struct mu__pipe_guard guard;
    int rv = mu__call_may_wait(ret_error);

    if (rv == 0)
        rv = loop_begin(&l, ret_error);
    if (rv != 0)
        return rv;
    mu__pipe_guard(&guard);
    rv = run_in(l, config, ret_error);
    if (rv == 0)
        *ret_resolved = l->resolved;
    mu__requester_uv_close(l->requester, on_requester_closed, NULL);
    mu__call_leave(&l->loop, MU__CALL_LEAVE_MS, free, l);
    mu__pipe_unguard(&guard);
    return rv;
}

int mu_resolver_resolve(mu_resolver *resolver, int64_t timeout_ms, mu_error *ret_error,
                        mu_resolution *ret_resolution)
{
    const struct mu__loop_query_config config = {
        .resolver = resolver,
        .what = MU__QUERY_RESOLVE,
        .limits.timeout_ms = timeout_ms,
    };
    struct mu__query_result resolved;
    int rv;

    if (resolver == NULL || ret_resolution == NULL)
        return mu_error_set(ret_error, -MU_EINVALID,
                            "expected a resolver and room for what it finds, got NULL");
    rv = mu__loop_query_call(&config, ret_error, &resolved);
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
    rv = mu__resolution_master(&resolution, type, index, rpc_layer, ret_error, master);
    mu_cluster_free(resolution.cluster);
    if (rv == 0)
        memcpy(ret_master, master, sizeof master);
    return rv;
}
