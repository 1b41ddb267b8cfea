#include "node/discovery/loop_query.h"

#include "node/discovery/resolver_kinds.h"
#include "resolver/engine/query.h"
#include "resolver/engine/resolver.h"
#include "runtime/base/text.h"

#include <stdlib.h>
#include <string.h>

struct mu__loop_query {
    struct mu__loop_query_config config;
    mu_announcement announcement;   /* its texts are owned */
    struct mu__query *query;
    uv_timer_t timer;               /* the next turn */
    bool woken;                     /* a turn is wanted at once */
    bool turning;
    struct mu__query_result resolved;
};

/* ---- Functions of the query ---- */

static uint64_t now_ms(void *owner)
{
    (void)owner;
    return uv_hrtime() / 1000000;
}

static uint64_t random_bits(void *owner)
{
    uint64_t bits;

    if (uv_random(NULL, NULL, &bits, sizeof bits, 0, NULL) != 0)
        bits = uv_hrtime() ^ (uint64_t)(uintptr_t)owner;
    return bits;
}

static int run_once(void *owner, struct mu__requests *requests, mu_error *ret_error)
{
    struct mu__loop_query *r = owner;
    mu_resolver *resolver = r->config.resolver;
    int64_t left_ms = mu__query_left_ms(r->query);

    if (r->config.run != NULL)
        return r->config.run(r->config.run_owner, requests, ret_error);
    switch (r->config.what) {
    case MU__QUERY_RESOLVE:
        return mu__resolver_run(resolver, requests, left_ms, ret_error,
                                &r->resolved.resolution);
    case MU__QUERY_ANNOUNCE:
        return mu__resolver_run_announce(resolver, requests, &r->announcement, ret_error,
                                         &r->resolved.task_index, &r->resolved.again_ms);
    case MU__QUERY_WITHDRAW:
        return mu__resolver_run_withdraw(resolver, requests, &r->announcement, ret_error);
    case MU__QUERY_DETECT:
        break;
    }
    return mu__resolver_run_detect(resolver, requests, ret_error);
}

static void on_progress(void *owner, const char *line)
{
    struct mu__loop_query *r = owner;

    if (r->config.progress != NULL)
        r->config.progress(r->config.owner, line);
    else if (r->config.resolver != NULL)
        mu__resolver_progress(r->config.resolver, line);
}

/* ---- Turns ---- */

static void on_turn(uv_timer_t *timer);

static void turn_in(struct mu__loop_query *r, uint64_t ms)
{
    uv_update_time(r->config.loop);
    (void)uv_timer_start(&r->timer, on_turn, ms, 0);
}

static void wake(void *owner)
{
    struct mu__loop_query *r = owner;

    r->woken = true;
    if (!r->turning)
        turn_in(r, 0);
}

static void on_closed(uv_handle_t *handle)
{
    struct mu__loop_query *r = handle->data;

    free((void *)(uintptr_t)r->announcement.cluster_name);
    free((void *)(uintptr_t)r->announcement.type);
    free((void *)(uintptr_t)r->announcement.address);
    free((void *)(uintptr_t)r->announcement.incarnation);
    free(r);
}

static void let_go(struct mu__loop_query *r)
{
    mu__query_free(r->query);
    r->query = NULL;
    uv_close((uv_handle_t *)&r->timer, on_closed);
}

static void finish(struct mu__loop_query *r, int rv)
{
    struct mu__requests *requests = mu__query_notes(r->query);
    struct mu__query_result resolved = r->resolved;

    resolved.code = rv;
    resolved.rounds = mu__query_rounds(r->query);
    mu__hide_control(resolved.error.message);
    if (requests != NULL && r->config.resolver != NULL &&
        (r->config.what == MU__QUERY_RESOLVE || r->config.what == MU__QUERY_DETECT)) {
        mu__resolver_set_explained(r->config.resolver,
                                   mu__resolver_explained(r->config.resolver, requests));
        mu__resolver_set_watched_paths(r->config.resolver, requests);
    }
    let_go(r);
    r->config.done(r->config.owner, &resolved);
}

static void on_turn(uv_timer_t *timer)
{
    struct mu__loop_query *r = timer->data;
    uint64_t due_ms = UINT64_MAX;
    uint64_t now;
    int rv;

    r->woken = false;
    r->turning = true;
    rv = mu__query_turn(r->query, &r->resolved.error, &due_ms);
    r->turning = false;
    if (rv != -MU_EAGAIN) {
        finish(r, rv);
        return;
    }
    now = now_ms(r);
    if (r->woken)
        turn_in(r, 0);
    else if (due_ms != UINT64_MAX)
        turn_in(r, due_ms > now ? due_ms - now : 0);
}

/* ---- Beginning and ending ---- */

static bool copy_text(const char *text, const char **ret_copy)
{
    *ret_copy = text == NULL ? NULL : strdup(text);
    return text == NULL || *ret_copy != NULL;
}

static bool copy_announcement(const mu_announcement *from, mu_announcement *to)
{
    bool whole = true;

    if (from == NULL)
        return true;
    to->index = from->index;
    whole &= copy_text(from->cluster_name, &to->cluster_name);
    whole &= copy_text(from->type, &to->type);
    whole &= copy_text(from->address, &to->address);
    whole &= copy_text(from->incarnation, &to->incarnation);
    return whole;
}

static int offer_own(mu_resolver *resolver)
{
    struct mu__own_kind *kinds[MU_RESOLVER_KINDS_MAX];
    size_t count = mu__own_kinds_all(kinds);
    int rv = mu__resolver_offer_own(resolver, kinds, count);

    for (size_t i = 0; i < count; i++)
        kinds[i]->unref(kinds[i]);
    return rv;
}

int mu__loop_query_start(const struct mu__loop_query_config *config,
                         struct mu__loop_query **ret_query)
{
    struct mu__loop_query *r = calloc(1, sizeof *r);
    const struct mu__query_config query = {
        .requester = config->requester,
        .run = run_once,
        .wake = wake,
        .progress = on_progress,
        .now_ms = now_ms,
        .random = random_bits,
        .owner = r,
        .limits = config->limits,
    };

    if (r == NULL)
        return -MU_ENOMEM;
    r->config = *config;
    mu_resolution_init(&r->resolved.resolution);
    r->timer.data = r;
    (void)uv_timer_init(config->loop, &r->timer);
    if (!copy_announcement(config->announcement, &r->announcement) ||
        (config->resolver != NULL && offer_own(config->resolver) != 0) ||
        mu__query_new(&query, &r->query) != 0) {
        uv_close((uv_handle_t *)&r->timer, on_closed);
        return -MU_ENOMEM;
    }
    turn_in(r, 0);
    *ret_query = r;
    return 0;
}

void mu__loop_query_hurry(struct mu__loop_query *loop_query)
{
    mu__query_hurry(loop_query->query);
}

void mu__loop_query_cancel(struct mu__loop_query *loop_query)
{
    if (loop_query != NULL)
        let_go(loop_query);
}
