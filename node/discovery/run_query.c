#include "node/discovery/run_query.h"

#include "node/discovery/resolver_kinds.h"
#include "node/loop_thread.h"
#include "resolver/engine/resolver.h"
#include "runtime/base/text.h"
#include "runtime/uv/thread.h"

#include <stdio.h>
#include <stdlib.h>

enum { LINE_BYTES = 900 };

/* A query, and what it has found. */
struct running {
    struct mu__run_query_config config;
    struct mu__query_notes notes;
    struct mu__query_result resolved;
};

/* ---- The query, on any thread ---- */

static int run_once(void *owner, struct mu__requests *requests, mu_error *ret_error)
{
    struct running *r = owner;
    mu_resolver *resolver = r->config.resolver;

    if (r->config.run != NULL)
        return r->config.run(r->config.run_owner, requests, ret_error);
    switch (r->config.what) {
    case MU__QUERY_RESOLVE:
        return mu__resolver_run(resolver, requests, ret_error, &r->resolved.resolution);
    case MU__QUERY_ANNOUNCE:
        return mu__resolver_run_announce(resolver, requests, r->config.announcement,
                                         ret_error, &r->resolved.task_index,
                                         &r->resolved.again_ms);
    case MU__QUERY_WITHDRAW:
        return mu__resolver_run_withdraw(resolver, requests, r->config.announcement,
                                         ret_error);
    case MU__QUERY_DETECT:
    case MU__QUERY_LEAVE:
        break;
    }
    return mu__resolver_run_detect(resolver, requests, ret_error);
}

static void report_left_call(void *owner, const char *line)
{
    const struct running *r = owner;

    r->config.progress(r->config.owner, line);
}

static void perform_query(struct running *r)
{
    const struct mu__query_config query = {
        .sources = mu__sources_uv_base(r->config.sources),
        .run = run_once,
        .progress = r->config.progress,
        .owner = r->config.owner,
        .run_owner = r,
        .limits = r->config.limits,
    };

    if (r->config.what == MU__QUERY_LEAVE) {
        mu__sources_uv_wait_for_left(
            r->config.sources, (uint64_t)r->config.limits.timeout_ms,
            r->config.limits.timeout_ms > 0 ? report_left_call : NULL, r);
        return;
    }
    r->resolved.code = mu__query(&query, &r->resolved.error, &r->notes);
    r->resolved.rounds = r->notes.rounds;
    mu__hide_control(r->resolved.error.message);
}

/* ---- Before and after, on the resolver's thread ---- */

static int offer_own(mu_resolver *resolver)
{
    struct mu__own_kind *kinds[MU_RESOLVER_KINDS_MAX];
    size_t count = mu__own_kinds_all(kinds);
    int rv = mu__resolver_offer_own(resolver, kinds, count);

    for (size_t i = 0; i < count; i++)
        kinds[i]->unref(kinds[i]);
    return rv;
}

static bool is_look(const struct mu__run_query_config *config)
{
    return config->resolver != NULL &&
           (config->what == MU__QUERY_RESOLVE || config->what == MU__QUERY_DETECT);
}

static int begin_query(struct running *r, const struct mu__run_query_config *config)
{
    *r = (struct running){.config = *config};
    mu_resolution_init(&r->resolved.resolution);
    return is_look(config) ? offer_own(config->resolver) : 0;
}

static void finish_query(struct running *r)
{
    mu_resolver *resolver = r->config.resolver;

    if (is_look(&r->config) && r->notes.requests != NULL) {
        mu__resolver_set_explained(resolver,
                                   mu__resolver_explained(resolver, r->notes.requests));
        mu__resolver_set_watched_paths(resolver, r->notes.requests);
    }
    mu__requests_free(r->notes.requests);
}

/* ---- On a thread of its own ---- */

struct query_thread {
    uv_async_t news; /* first: handles cast */
    struct running running;
    pthread_t thread;
    void (*progress)(void *owner, const char *line); /* the caller's, with */
    void *owner;
    pthread_mutex_t lock; /* of these */
    bool has_line;
    bool has_ended;
    char line[LINE_BYTES];
};

static void on_thread_line(void *owner, const char *line)
{
    struct query_thread *t = owner;

    (void)pthread_mutex_lock(&t->lock);
    (void)snprintf(t->line, sizeof t->line, "%s", line);
    t->has_line = true;
    (void)uv_async_send(&t->news);
    (void)pthread_mutex_unlock(&t->lock);
}

/* The loop joins the thread before it closes `news`. */
static void *run_query_thread(void *arg)
{
    struct query_thread *t = arg;

    perform_query(&t->running);
    (void)pthread_mutex_lock(&t->lock);
    t->has_ended = true;
    (void)uv_async_send(&t->news);
    (void)pthread_mutex_unlock(&t->lock);
    return NULL;
}

static void on_query_thread_closed(uv_handle_t *handle)
{
    struct query_thread *t = (struct query_thread *)handle;

    (void)pthread_mutex_destroy(&t->lock);
    free(t);
}

static void on_news(uv_async_t *news)
{
    struct query_thread *t = (struct query_thread *)news;
    char line[LINE_BYTES] = "";
    bool has_ended;

    (void)pthread_mutex_lock(&t->lock);
    if (t->has_line)
        (void)snprintf(line, sizeof line, "%s", t->line);
    t->has_line = false;
    has_ended = t->has_ended;
    (void)pthread_mutex_unlock(&t->lock);
    if (line[0] != '\0')
        t->progress(t->owner, line);
    if (!has_ended)
        return;
    (void)pthread_join(t->thread, NULL);
    finish_query(&t->running);
    uv_close((uv_handle_t *)news, on_query_thread_closed);
    t->running.config.done(t->owner, &t->running.resolved);
}

static int start_query_thread(struct query_thread *t,
                              const struct mu__run_query_config *config)
{
    t->progress = config->progress;
    t->owner = config->owner;
    if (begin_query(&t->running, config) != 0)
        return -MU_ENOMEM;
    t->running.config.progress = on_thread_line;
    t->running.config.owner = t;
    return mu__thread_start(run_query_thread, t, &t->thread) == 0 ? 0 : -MU_ENOMEM;
}

int mu__run_query_start(const struct mu__run_query_config *config)
{
    struct query_thread *t = calloc(1, sizeof *t);

    if (t == NULL)
        return -MU_ENOMEM;
    (void)pthread_mutex_init(&t->lock, NULL);
    if (uv_async_init(config->loop, &t->news, on_news) != 0) {
        (void)pthread_mutex_destroy(&t->lock);
        free(t);
        return -MU_ENOMEM;
    }
    mu__sources_uv_restart(config->sources);
    if (start_query_thread(t, config) == 0)
        return 0;
    uv_close((uv_handle_t *)&t->news, on_query_thread_closed);
    return -MU_ENOMEM;
}

/* ---- On the calling thread ---- */

static void on_own_line(void *owner, const char *line)
{
    mu__resolver_progress(owner, line);
}

int mu__run_query(const struct mu__run_query_config *config, mu_error *ret_error,
                  struct mu__query_result *ret_resolved)
{
    struct running r;
    int rv = mu__call_may_wait(ret_error);

    if (rv != 0)
        return rv;
    if (begin_query(&r, config) != 0 || mu__sources_uv_new(NULL, &r.config.sources) != 0)
        return mu_error_set(ret_error, -MU_ENOMEM, "out of memory");
    if (config->progress == NULL && config->resolver != NULL) {
        r.config.progress = on_own_line;
        r.config.owner = config->resolver;
    }
    perform_query(&r);
    finish_query(&r);
    mu__sources_uv_wait_for_left(r.config.sources, 0, NULL, NULL);
    mu__sources_uv_free(r.config.sources);
    if (r.resolved.code == 0)
        *ret_resolved = r.resolved;
    else if (ret_error != NULL)
        *ret_error = r.resolved.error;
    return r.resolved.code;
}
