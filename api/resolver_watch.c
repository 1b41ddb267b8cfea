/* mu_resolver_watch: a loop with a timer and the files and folders that the resolver has
 * read, which runs while its caller waits. */
#include "node/discovery/path_watch.h"
#include "resolver/engine/resolver.h"
#include "runtime/message/arguments.h"

#include <stdlib.h>

enum {
    DEFAULT_MS = 5000, /* interval, unless the resolver has one */
    SETTLE_MS = 50,    /* delay after a change, since more may follow */
    BETWEEN_MS = 250   /* least time between two waits */
};

struct mu_resolver_watch {
    mu_resolver *resolver;
    uv_loop_t loop;
    uv_timer_t timer;
    struct mu__path_watch paths[MU__WATCHED_PATHS_MAX];
    uint64_t since_ms; /* begin of this wait */
};

static void on_time(uv_timer_t *timer)
{
    uv_stop(timer->loop);
}

/* End the wait soon, and no later than without the change. */
static void on_change(void *owner)
{
    mu_resolver_watch *watch = owner;
    uint64_t now = uv_now(&watch->loop);
    uint64_t ms = SETTLE_MS;

    if (now + ms < watch->since_ms + BETWEEN_MS)
        ms = watch->since_ms + BETWEEN_MS - now;
    if (ms < uv_timer_get_due_in(&watch->timer))
        (void)uv_timer_start(&watch->timer, on_time, ms, 0);
}

/* Watch the paths that the last evaluation has read. */
static void watch_paths(mu_resolver_watch *watch)
{
    const char *path;
    size_t count = 0;

    for (; (path = mu__resolver_watched_path(watch->resolver, count)) != NULL; count++)
        mu__path_watch_start(&watch->paths[count], path);
    for (size_t i = count; i < MU__WATCHED_PATHS_MAX; i++)
        mu__path_watch_stop(&watch->paths[i]);
}

int mu_resolver_watch_open(mu_resolver *resolver, mu_error *ret_error,
                           mu_resolver_watch **ret_watch)
{
    MU__REQUIRE(ret_error, resolver, ret_watch);

    mu_resolver_watch *watch = calloc(1, sizeof *watch);

    if (watch == NULL || uv_loop_init(&watch->loop) != 0) {
        free(watch);
        return mu_error_set(ret_error, -MU_ENOMEM, "no memory for a watch");
    }
    watch->resolver = resolver;
    (void)uv_timer_init(&watch->loop, &watch->timer);
    for (size_t i = 0; i < MU__WATCHED_PATHS_MAX; i++)
        mu__path_watch_init(&watch->paths[i], &watch->loop, on_change, watch);
    watch_paths(watch);
    *ret_watch = watch;
    return 0;
}

int mu_resolver_watch_wait(mu_resolver_watch *watch, mu_error *ret_error)
{
    MU__REQUIRE(ret_error, watch);

    uint32_t ms = mu__resolver_watch_ms(watch->resolver);

    uv_update_time(&watch->loop);
    watch->since_ms = uv_now(&watch->loop);
    (void)uv_timer_start(&watch->timer, on_time, ms == 0 ? DEFAULT_MS : ms, 0);
    (void)uv_run(&watch->loop, UV_RUN_DEFAULT);
    watch_paths(watch);
    return 0;
}

void mu_resolver_watch_close(mu_resolver_watch *watch)
{
    if (watch == NULL)
        return;
    uv_close((uv_handle_t *)&watch->timer, NULL);
    for (size_t i = 0; i < MU__WATCHED_PATHS_MAX; i++)
        uv_close((uv_handle_t *)&watch->paths[i].event, NULL);
    (void)uv_run(&watch->loop, UV_RUN_DEFAULT);
    (void)uv_loop_close(&watch->loop);
    free(watch);
}
