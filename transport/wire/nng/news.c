#include "transport/wire/nng/news.h"

#include <stdlib.h>

/* One connection. */
struct pipe_news {
    struct mu__list_node node; /* in the list of news, if is_listed */
    struct mu__nng_end *end;
    uint32_t pipe;
    bool is_listed;
    bool is_dropped;
    bool begun;
    bool ended;
};

struct mu__nng_news {
    uv_mutex_t lock; /* guards all below, and the ends */
    unsigned holders;
    uv_async_t *wake;       /* NULL: closed */
    struct mu__map records; /* struct pipe_news, by pipe */
    struct mu__list list;
    struct mu__nng_end *ends;
};

struct mu__nng_news *mu__nng_news_new(uv_async_t *wake)
{
    struct mu__nng_news *news = calloc(1, sizeof *news);

    if (news == NULL)
        return NULL;
    if (uv_mutex_init(&news->lock) != 0) {
        free(news);
        return NULL;
    }
    news->holders = 1;
    news->wake = wake;
    return news;
}

void mu__nng_news_hold(struct mu__nng_news *news)
{
    uv_mutex_lock(&news->lock);
    news->holders++;
    uv_mutex_unlock(&news->lock);
}

static void news_free(struct mu__nng_news *news)
{
    for (size_t i = 0; i < news->records.capacity; i++)
        if (news->records.entries[i].key != 0)
            free(news->records.entries[i].value);
    mu__map_done(&news->records);
    while (news->ends != NULL) {
        struct mu__nng_end *end = news->ends;

        news->ends = end->next;
        free(end);
    }
    uv_mutex_destroy(&news->lock);
    free(news);
}

void mu__nng_news_drop(struct mu__nng_news *news)
{
    unsigned left;

    uv_mutex_lock(&news->lock);
    left = --news->holders;
    uv_mutex_unlock(&news->lock);
    if (left == 0)
        news_free(news);
}

void mu__nng_news_close(struct mu__nng_news *news)
{
    uv_mutex_lock(&news->lock);
    news->wake = NULL;
    uv_mutex_unlock(&news->lock);
}

struct mu__nng_end *mu__nng_end_new(struct mu__nng_news *news, void *owner)
{
    struct mu__nng_end *end = calloc(1, sizeof *end);

    if (end == NULL)
        return NULL;
    end->news = news;
    end->owner = owner;
    end->pipes_left = owner == NULL ? MU__NNG_INS_MAX : 1;
    uv_mutex_lock(&news->lock);
    end->next = news->ends;
    news->ends = end;
    uv_mutex_unlock(&news->lock);
    return end;
}

static struct pipe_news *record_of(struct mu__nng_end *end)
{
    const struct mu__map *records = &end->news->records;

    for (size_t i = 0; i < records->capacity; i++) {
        struct pipe_news *record = records->entries[i].value;

        if (records->entries[i].key != 0 && record->end == end)
            return record;
    }
    return NULL;
}

/* With the lock. */
static void record_free(struct mu__nng_news *news, struct pipe_news *record)
{
    if (record->is_listed)
        mu__list_remove(&news->list, &record->node);
    (void)mu__map_remove(&news->records, record->pipe);
    record->end->pipes--;
    if (record->end->owner == NULL)
        record->end->pipes_left++;
    free(record);
}

void mu__nng_end_free(struct mu__nng_end *end)
{
    struct mu__nng_news *news = end->news;
    struct mu__nng_end **at = &news->ends;

    uv_mutex_lock(&news->lock);
    while (end->pipes > 0)
        record_free(news, record_of(end));
    while (*at != end)
        at = &(*at)->next;
    *at = end->next;
    uv_mutex_unlock(&news->lock);
    free(end);
}

void mu__nng_end_open(struct mu__nng_end *end, bool is_open)
{
    uv_mutex_lock(&end->news->lock);
    end->is_open = is_open;
    uv_mutex_unlock(&end->news->lock);
}

/* ---- on nng's threads ---- */

/* With the lock. */
static void list_it(struct mu__nng_news *news, struct pipe_news *record)
{
    if (news->wake == NULL)
        return;
    if (!record->is_listed)
        mu__list_append(&news->list, &record->node);
    record->is_listed = true;
    (void)uv_async_send(news->wake);
}

/* With the lock. While the wire is being closed, what still connects to it is ended with
 * the socket: if it were refused it would come again at once. */
static bool accept_it(struct mu__nng_end *end, uint32_t pipe)
{
    struct mu__nng_news *news = end->news;
    struct pipe_news *record;

    if (news->wake == NULL)
        return end->owner == NULL;
    if (!end->is_open || end->pipes_left == 0)
        return false;
    record = calloc(1, sizeof *record);
    if (record == NULL || mu__map_set(&news->records, pipe, record) != 0) {
        free(record);
        return false;
    }
    record->end = end;
    record->pipe = pipe;
    end->pipes++;
    end->pipes_left--;
    return true;
}

/* nng may tell the end of a connection before its begin, then there is no record any more
 * at the begin. */
static void on_pipe(nng_pipe pipe, nng_pipe_ev event, void *arg)
{
    struct mu__nng_end *end = arg;
    struct mu__nng_news *news = end->news;
    uint32_t id = (uint32_t)nng_pipe_id(pipe);
    bool is_refused = false;
    struct pipe_news *record;

    uv_mutex_lock(&news->lock);
    record = mu__map_get(&news->records, id);
    if (event == NNG_PIPE_EV_ADD_PRE) {
        is_refused = !accept_it(end, id);
    } else if (record != NULL) {
        record->begun = record->begun || event == NNG_PIPE_EV_ADD_POST;
        record->ended = record->ended || event == NNG_PIPE_EV_REM_POST;
        list_it(news, record);
    }
    uv_mutex_unlock(&news->lock);
    if (is_refused)
        (void)nng_pipe_close(pipe);
}

int mu__nng_end_watch(struct mu__nng_end *end, nng_socket socket)
{
    static const nng_pipe_ev events[] = {NNG_PIPE_EV_ADD_PRE, NNG_PIPE_EV_ADD_POST,
                                         NNG_PIPE_EV_REM_POST};
    int rv = 0;

    for (size_t i = 0; i < sizeof events / sizeof events[0] && rv == 0; i++)
        rv = nng_pipe_notify(socket, events[i], on_pipe, end);
    return rv;
}

/* ---- on the loop's thread ---- */

bool mu__nng_news_next(struct mu__nng_news *news, struct mu__nng_event *ret_event)
{
    struct pipe_news *record;
    bool ended;

    uv_mutex_lock(&news->lock);
    record = MU__LIST_FIRST(&news->list, struct pipe_news, node);
    if (record == NULL) {
        uv_mutex_unlock(&news->lock);
        return false;
    }
    mu__list_remove(&news->list, &record->node);
    record->is_listed = false;
    ended = record->ended;
    *ret_event = (struct mu__nng_event){record->end, record->pipe,
                                        record->begun && !record->is_dropped, ended,
                                        record->is_dropped};
    record->begun = false;
    if (ended)
        record_free(news, record);
    uv_mutex_unlock(&news->lock);
    return true;
}

void mu__nng_pipe_end(struct mu__nng_news *news, uint32_t pipe)
{
    const nng_pipe closing = {pipe};
    struct pipe_news *record;

    uv_mutex_lock(&news->lock);
    record = mu__map_get(&news->records, pipe);
    if (record != NULL)
        record->is_dropped = true;
    uv_mutex_unlock(&news->lock);
    (void)nng_pipe_close(closing);
}

/* nng 1.5 may keep a connection among those that it sends on after its end, and frees it
 * once the end is told. Telling takes the lock: so what is sent with the lock, and before
 * the end, finds it there. */
int mu__nng_pipe_send(struct mu__nng_news *news, uint32_t pipe, nng_socket socket,
                      nng_msg *message)
{
    const struct pipe_news *record;
    int rv = NNG_ECLOSED;

    uv_mutex_lock(&news->lock);
    record = mu__map_get(&news->records, pipe);
    if (record != NULL && !record->ended)
        rv = nng_sendmsg(socket, message, NNG_FLAG_NONBLOCK);
    uv_mutex_unlock(&news->lock);
    return rv;
}

bool mu__nng_news_has(struct mu__nng_news *news, uint32_t pipe)
{
    const struct pipe_news *record;
    bool has;

    uv_mutex_lock(&news->lock);
    record = mu__map_get(&news->records, pipe);
    has = record != NULL && !record->is_dropped;
    uv_mutex_unlock(&news->lock);
    return has;
}
