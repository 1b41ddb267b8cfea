#include "transport/wire/nng/closer.h"

#include "runtime/uv/thread.h"
#include "transport/wire/nng/news.h"

#include <stdlib.h>

enum { REST_MS = 20 }; /* nng may stop for ever in the middle of a message */

int (*mu__nng_close_socket)(nng_socket socket) = nng_close;

/* Shared by the loop and the thread; whoever is last frees it. */
struct mu__nng_closer {
    struct mu__nng_news *news;
    uv_mutex_t lock; /* guards these three */
    bool is_over;    /* the thread has closed all */
    bool is_deaf;    /* the loop needs no waking any more */
    bool is_left;    /* the loop's half is over */
    uv_async_t wake;
    uv_timer_t timeout;
    unsigned handles; /* of these two */
    void (*done)(void *owner, bool is_closed);
    void *owner;
    unsigned count;
    nng_socket sockets[];
};

struct mu__nng_closer *mu__nng_closer_new(struct mu__nng_news *news, unsigned count)
{
    struct mu__nng_closer *closer =
        calloc(1, sizeof *closer + count * sizeof closer->sockets[0]);

    if (closer == NULL)
        return NULL;
    if (uv_mutex_init(&closer->lock) != 0) {
        free(closer);
        return NULL;
    }
    mu__nng_news_hold(news);
    closer->news = news;
    return closer;
}

void mu__nng_closer_add(struct mu__nng_closer *closer, nng_socket socket)
{
    closer->sockets[closer->count++] = socket;
}

void mu__nng_closer_free(struct mu__nng_closer *closer)
{
    if (closer == NULL)
        return;
    mu__nng_news_drop(closer->news);
    uv_mutex_destroy(&closer->lock);
    free(closer);
}

static void *run_closer(void *arg)
{
    struct mu__nng_closer *closer = arg;
    bool is_left;

    uv_sleep(REST_MS);
    for (unsigned i = 0; i < closer->count; i++)
        (void)mu__nng_close_socket(closer->sockets[i]);
    uv_mutex_lock(&closer->lock);
    is_left = closer->is_left;
    closer->is_over = true;
    if (!closer->is_deaf)
        (void)uv_async_send(&closer->wake);
    uv_mutex_unlock(&closer->lock);
    if (is_left)
        mu__nng_closer_free(closer);
    return NULL;
}

/* The loop's half is over; the thread frees what it still uses. */
static void on_closer_closed(uv_handle_t *handle)
{
    struct mu__nng_closer *closer = handle->data;
    void (*done)(void *owner, bool is_closed) = closer->done;
    void *owner = closer->owner;
    bool is_over;

    if (--closer->handles > 0)
        return;
    uv_mutex_lock(&closer->lock);
    is_over = closer->is_over;
    closer->is_left = true;
    uv_mutex_unlock(&closer->lock);
    if (is_over)
        mu__nng_closer_free(closer);
    done(owner, is_over);
}

static void finish_closer(struct mu__nng_closer *closer)
{
    uv_mutex_lock(&closer->lock);
    closer->is_deaf = true;
    uv_mutex_unlock(&closer->lock);
    if (uv_is_closing((uv_handle_t *)&closer->wake))
        return;
    uv_close((uv_handle_t *)&closer->wake, on_closer_closed);
    uv_close((uv_handle_t *)&closer->timeout, on_closer_closed);
}

static void on_closer_wake(uv_async_t *wake)
{
    finish_closer(wake->data);
}

static void on_closer_timeout(uv_timer_t *timeout)
{
    finish_closer(timeout->data);
}

bool mu__nng_closer_start(struct mu__nng_closer *closer, uv_loop_t *loop,
                          unsigned timeout_ms, void (*done)(void *owner, bool is_closed),
                          void *owner)
{
    pthread_t thread;

    if (uv_async_init(loop, &closer->wake, on_closer_wake) != 0) {
        mu__nng_closer_free(closer);
        return false;
    }
    (void)uv_timer_init(loop, &closer->timeout);
    closer->wake.data = closer;
    closer->timeout.data = closer;
    closer->handles = 2;
    closer->done = done;
    closer->owner = owner;
    (void)uv_timer_start(&closer->timeout, on_closer_timeout, timeout_ms, 0);
    if (mu__thread_start(run_closer, closer, &thread) != 0) {
        closer->is_over = true;
        finish_closer(closer);
        return true;
    }
    (void)pthread_detach(thread);
    return true;
}
