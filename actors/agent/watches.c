/* Watches. A watch remembers the keys that exist. After a time without the service it
 * gets all existing keys again, and reports those that it does not get as deleted. */
#include "actors/agent/call_handlers.h"

#include "actors/keep.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A key that exists as far as the watch knows, or that has an unread event. */
struct watch_key {
    struct mu__text_node node; /* first */
    struct mu__list_node unread_node;
    bool is_unread; /* in the list of unread events */
    bool is_there;  /* the key exists */
    bool is_mark;   /* not a key: the event MU_KV_EVENT_SYNCED */
    uint32_t turn;  /* of the watch, when the service reported the key last */
    uint64_t revision;
    char *value; /* of an unread put, with a zero behind it; else NULL */
    uint32_t size;
    char key[];
};

struct mu__agent_watch {
    atomic_uint refs;
    struct mu__agent_request pending;
    struct mu__list_node watches_node;
    bool held; /* by the agent, in its list */
    bool below;
    char *key;
    struct mu__agent_call *opening; /* the WATCH call; NULL once it is completed */
    struct mu__list nexts;          /* pending WATCH_NEXT calls, the oldest first */
    struct mu__text_map keys;
    struct mu__list unread; /* watch_key: those with an event, the oldest first */
    uint32_t unread_count;
    uint64_t unread_bytes; /* of their values */
    uint32_t turn;         /* how often it was sent to the service */
    uint64_t store;        /* at the last sending */
    bool current;          /* SYNCED was read, or is unread */
    bool overflowed;       /* too much is unread; the watch begins again once the
                              program has read that */
    mu_error over;         /* the service ended the watch; code 0: it did not */
};

static struct mu__agent_watch *watch_of(struct mu__agent_request *pending)
{
    return (struct mu__agent_watch *)(void *)((char *)pending -
                                              offsetof(struct mu__agent_watch, pending));
}

struct mu__agent_watch *mu__agent_watch_new(void)
{
    struct mu__agent_watch *watch = calloc(1, sizeof *watch);

    if (watch != NULL)
        atomic_init(&watch->refs, 1);
    return watch;
}

void mu__agent_watch_unref(struct mu__agent_watch *watch)
{
    if (atomic_fetch_sub_explicit(&watch->refs, 1, memory_order_acq_rel) == 1)
        free(watch);
}

/* ---- unread events ---- */

static struct watch_key *first_unread(const struct mu__agent_watch *watch)
{
    return MU__LIST_FIRST(&watch->unread, struct watch_key, unread_node);
}

static void unqueue_watch_key(struct mu__agent_watch *watch, struct watch_key *key)
{
    mu__list_remove(&watch->unread, &key->unread_node);
    key->is_unread = false;
    watch->unread_count--;
}

/* A key with an older unread event keeps its position. */
static void queue_watch_key(struct mu__agent_watch *watch, struct watch_key *key)
{
    if (key->is_unread)
        return;
    key->is_unread = true;
    mu__list_append(&watch->unread, &key->unread_node);
    watch->unread_count++;
}

static void drop_watch_value(struct mu__agent_watch *watch, struct watch_key *key)
{
    if (key->value == NULL)
        return;
    watch->unread_bytes -= key->size;
    free(key->value);
    key->value = NULL;
}

static void free_key(struct mu__agent_watch *watch, struct watch_key *key)
{
    if (key->is_unread)
        unqueue_watch_key(watch, key);
    drop_watch_value(watch, key);
    if (!key->is_mark)
        mu__text_map_remove(&watch->keys, &key->node);
    free(key);
}

static void forget_keys(struct mu__agent_watch *watch)
{
    struct mu__text_node *node;
    struct watch_key *key;

    while ((key = first_unread(watch)) != NULL)
        free_key(watch, key);
    while ((node = mu__text_map_next(&watch->keys, NULL)) != NULL)
        free_key(watch, (struct watch_key *)(void *)node);
    mu__text_map_done(&watch->keys);
    watch->current = false;
}

static struct watch_key *new_key(struct mu__agent_watch *watch, struct mu__view text)
{
    struct watch_key *key = calloc(1, sizeof *key + text.size + 1);

    if (key == NULL)
        return NULL;
    if (text.size > 0)
        memcpy(key->key, text.data, text.size);
    key->node.text = (struct mu__view){key->key, text.size};
    if (mu__text_map_add(&watch->keys, &key->node) == 0)
        return key;
    free(key);
    return NULL;
}

/* ---- events from the service ---- */

static bool is_watch_full(const struct mu__agent_watch *watch)
{
    return watch->unread_count > AGENT_EVENTS_MAX ||
           watch->unread_bytes > AGENT_EVENT_BYTES_MAX;
}

/* False: out of memory. */
static bool note_set(struct mu__agent_watch *watch, const struct mu__key_event *body)
{
    struct mu__text_node *node = mu__text_map_find(&watch->keys, body->key);
    struct watch_key *key = (struct watch_key *)(void *)node;
    char *value;

    if (key == NULL)
        key = new_key(watch, body->key);
    if (key == NULL)
        return false;
    key->turn = watch->turn;
    if (key->is_there && key->revision == body->revision)
        return true;
    value = malloc((size_t)body->value.size + 1);
    if (value == NULL)
        return false;
    if (body->value.size > 0)
        memcpy(value, body->value.data, body->value.size);
    value[body->value.size] = '\0';
    drop_watch_value(watch, key);
    key->value = value;
    key->size = body->value.size;
    key->revision = body->revision;
    key->is_there = true;
    watch->unread_bytes += key->size;
    queue_watch_key(watch, key);
    return true;
}

static void note_deleted(struct mu__agent_watch *watch, struct watch_key *key)
{
    if (key == NULL || !key->is_there)
        return;
    drop_watch_value(watch, key);
    key->is_there = false;
    queue_watch_key(watch, key);
}

/* The next key behind `node` that the service has not reported in this turn. */
static struct mu__text_node *first_removed(struct mu__agent_watch *watch,
                                           struct mu__text_node *node)
{
    while ((node = mu__text_map_next(&watch->keys, node)) != NULL) {
        const struct watch_key *key = (const struct watch_key *)(const void *)node;

        if (key->is_there && key->turn != watch->turn)
            return node;
    }
    return NULL;
}

/* The service has reported all existing keys. False: out of memory. */
static bool note_complete(struct mu__agent_watch *watch)
{
    struct mu__text_node *node = NULL;
    struct watch_key *mark;

    while ((node = first_removed(watch, node)) != NULL)
        note_deleted(watch, (struct watch_key *)(void *)node);
    if (watch->current)
        return true;
    mark = calloc(1, sizeof *mark);
    if (mark == NULL)
        return false;
    mark->is_mark = true;
    watch->current = true;
    queue_watch_key(watch, mark);
    return true;
}

/* ---- reading ---- */

static int make_key_event(struct mu__agent_watch *watch, struct watch_key *key,
                          mu_kv_event *ret_event)
{
    mu_kv_event event = {.type = key->is_there ? MU_KV_EVENT_PUT : MU_KV_EVENT_DELETED};

    if (key->is_mark) {
        event.type = MU_KV_EVENT_SYNCED;
    } else {
        event.key = malloc((size_t)key->node.text.size + 1);
        if (event.key == NULL)
            return -MU_ENOMEM;
        memcpy(event.key, key->key, (size_t)key->node.text.size + 1);
    }
    if (event.type == MU_KV_EVENT_PUT) {
        event.item = (mu_kv_item){key->value, key->size, key->revision};
        watch->unread_bytes -= key->size;
        key->value = NULL;
    }
    if (key->is_there)
        unqueue_watch_key(watch, key);
    else
        free_key(watch, key);
    *ret_event = event;
    return 0;
}

static void submit_watch(struct mu__ctx *ctx, struct agent *a,
                         struct mu__agent_watch *watch, int64_t timeout_ms);

/* Whether a WATCH_NEXT call can be completed now: with an event, or with `error`, whose
 * code is 0 before. */
static bool read_event(struct mu__ctx *ctx, struct agent *a,
                       struct mu__agent_watch *watch, struct mu__agent_call *call,
                       mu_error *error)
{
    struct watch_key *key = first_unread(watch);
    int rv;

    if (watch->overflowed) {
        watch->overflowed = false;
        submit_watch(ctx, a, watch, -1);
        (void)mu_error_set(error, -MU_EEXHAUSTED,
                           "more than %d keys of \"%.100s\" had changed and were not "
                           "read: the watch begins anew",
                           (int)AGENT_EVENTS_MAX, watch->key);
        return true;
    }
    if (key != NULL) {
        rv = make_key_event(watch, key, &call->event);
        if (rv != 0)
            (void)mu_error_set(error, rv, "no memory for an event");
        return true;
    }
    *error = watch->over;
    return watch->over.code != 0;
}

static struct mu__agent_call *first_next_call(const struct mu__agent_watch *watch)
{
    return MU__LIST_FIRST(&watch->nexts, struct mu__agent_call, node);
}

static void end_next_call(struct mu__ctx *ctx, struct agent *a,
                          struct mu__agent_request *pending, const mu_error *error)
{
    struct mu__agent_call *call = agent_call_of(pending);

    mu__list_remove(&call->watch->nexts, &call->node);
    mu__agent_call_fail(ctx, a, pending, error);
}

/* Complete pending WATCH_NEXT calls as long as there are events. */
static void serve_next_calls(struct mu__ctx *ctx, struct agent *a,
                             struct mu__agent_watch *watch)
{
    struct mu__agent_call *call;
    mu_error error = {0};

    while ((call = first_next_call(watch)) != NULL &&
           read_event(ctx, a, watch, call, &error)) {
        /* Beginning the watch again may have failed, and the call with it. */
        if (call == first_next_call(watch))
            end_next_call(ctx, a, &call->pending, error.code == 0 ? NULL : &error);
        error.code = 0;
    }
}

static void name_watched_key(struct mu__agent_request *pending, char *out, size_t size)
{
    (void)snprintf(out, size, "what is watched as \"%.100s\"",
                   agent_call_of(pending)->watch->key);
}

static const struct mu__agent_request_kind reading = {
    .name = name_watched_key,
    .fail = end_next_call,
    .late = "did not change",
    .is_open = true,
};

static int not_open(mu_error *error)
{
    return mu_error_set(error, -MU_ECLOSED, "the watch is closed");
}

void mu__agent_call_watch_next(struct mu__ctx *ctx, struct agent *a,
                               struct mu__agent_call *call)
{
    if (!call->watch->held) {
        mu__call_complete(&call->call, not_open(&call->call.error));
        return;
    }
    mu__list_append(&call->watch->nexts, &call->node);
    if (mu__agent_submit(ctx, a, &call->pending, &reading, call->call.timeout_ms, 0))
        serve_next_calls(ctx, a, call->watch);
}

/* ---- beginning and ending a watch ---- */

static void send_unwatch(struct mu__ctx *ctx, struct agent *a,
                         const struct mu__agent_watch *watch)
{
    const struct mu__key_unwatch body = {.token = watch->pending.token};

    if (a->registration.registered && body.token != 0 &&
        watch->pending.session == a->registration.session)
        (void)mu__send_body(ctx, mu__agent_service(a), MU__KEY_UNWATCH, &body,
                            sizeof body);
}

/* The watch gets no more events, and forgets all keys. */
static void stop_watch(struct mu__ctx *ctx, struct agent *a,
                       struct mu__agent_watch *watch)
{
    send_unwatch(ctx, a, watch);
    mu__agent_remove(ctx, a, &watch->pending);
    forget_keys(watch);
}

/* Drops the agent's reference; pending WATCH_NEXT calls fail. */
static void drop_watch(struct mu__ctx *ctx, struct agent *a,
                       struct mu__agent_watch *watch)
{
    struct mu__agent_call *call;
    mu_error error = {0};

    stop_watch(ctx, a, watch);
    (void)not_open(&error);
    while ((call = first_next_call(watch)) != NULL)
        end_next_call(ctx, a, &call->pending, &error);
    mu__list_remove(&a->watches, &watch->watches_node);
    watch->held = false;
    free(watch->key);
    watch->key = NULL;
    mu__agent_watch_unref(watch);
}

static void name_watch(struct mu__agent_request *pending, char *out, size_t size)
{
    (void)snprintf(out, size, "the watch of \"%.100s\"", watch_of(pending)->key);
}

static struct mu__msg *make_watch(struct mu__ctx *ctx, struct agent *a,
                                  struct mu__agent_request *pending);

/* Before the watch has opened its call fails and the watch is dropped; later the error is
 * what the program reads from it next. */
static void fail_watch(struct mu__ctx *ctx, struct agent *a,
                       struct mu__agent_request *pending, const mu_error *error)
{
    struct mu__agent_watch *watch = watch_of(pending);
    struct mu__agent_call *call = watch->opening;

    watch->opening = NULL;
    if (call == NULL) {
        watch->over = *error;
        mu__agent_remove(ctx, a, pending);
        serve_next_calls(ctx, a, watch);
        return;
    }
    drop_watch(ctx, a, watch);
    mu__agent_complete(call, error);
}

static const struct mu__agent_request_kind opening = {
    .make_message = make_watch,
    .name = name_watch,
    .fail = fail_watch,
    .late = "was not begun",
};

static const struct mu__agent_request_kind watching = {
    .make_message = make_watch,
    .name = name_watch,
    .fail = fail_watch,
    .late = "was not begun",
    .survives_error = true,
};

/* Revisions are those of one store: forget them when the store is another one. */
static void note_store(struct mu__agent_watch *watch, uint64_t store)
{
    struct mu__text_node *node = NULL;

    if (watch->store == store)
        return;
    watch->store = store;
    while ((node = mu__text_map_next(&watch->keys, node)) != NULL)
        ((struct watch_key *)(void *)node)->revision = 0;
}

/* The WATCH call is completed when the first message is made: the watch is open then. */
static struct mu__msg *make_watch(struct mu__ctx *ctx, struct agent *a,
                                  struct mu__agent_request *pending)
{
    struct mu__agent_watch *watch = watch_of(pending);
    const struct mu__key_watch body = {
        .token = pending->token,
        .key = mu__view_str(watch->key),
        .below = watch->below,
    };
    struct mu__msg *msg = mu__agent_message(ctx, a, MU__KEY_WATCH, &body, sizeof body);
    struct mu__agent_call *call = watch->opening;

    if (msg == NULL)
        return NULL;
    a->registration.used = true;
    note_store(watch, a->registration.store);
    watch->turn++;
    if (call != NULL) {
        watch->opening = NULL;
        pending->kind = &watching;
        mu__agent_clear_timeout(a, pending);
        mu__agent_complete(call, NULL);
    }
    return msg;
}

static void submit_watch(struct mu__ctx *ctx, struct agent *a,
                         struct mu__agent_watch *watch, int64_t timeout_ms)
{
    (void)mu__agent_submit(ctx, a, &watch->pending,
                           watch->opening == NULL ? &watching : &opening, timeout_ms, 0);
}

void mu__agent_call_watch(struct mu__ctx *ctx, struct agent *a,
                          struct mu__agent_call *call)
{
    struct mu__agent_watch *watch = call->watch;
    size_t size = strlen(call->name) + 1;

    watch->key = malloc(size);
    if (watch->key == NULL) {
        mu__call_complete(&call->call, mu_error_set(&call->call.error, -MU_ENOMEM,
                                                    "no memory for a watch"));
        return;
    }
    memcpy(watch->key, call->name, size);
    watch->below = call->below;
    watch->keys.secret = a->barriers.by_name.secret;
    watch->opening = call;
    watch->held = true;
    (void)atomic_fetch_add_explicit(&watch->refs, 1, memory_order_relaxed);
    mu__list_prepend(&a->watches, &watch->watches_node);
    submit_watch(ctx, a, watch, call->call.timeout_ms);
}

void mu__agent_call_watch_close(struct mu__ctx *ctx, struct agent *a,
                                struct mu__agent_call *call)
{
    if (call->watch->held)
        drop_watch(ctx, a, call->watch);
    mu__agent_complete(call, NULL);
}

void mu__agent_watches_done(struct mu__ctx *ctx, struct agent *a)
{
    struct mu__agent_watch *watch;

    while ((watch = MU__LIST_FIRST(&a->watches, struct mu__agent_watch, watches_node)) !=
           NULL)
        drop_watch(ctx, a, watch);
}

/* ---- events ---- */

static void overflow_watch(struct mu__ctx *ctx, struct agent *a,
                           struct mu__agent_watch *watch)
{
    stop_watch(ctx, a, watch);
    watch->overflowed = true;
}

static void on_event(struct mu__ctx *ctx, struct agent *a, struct mu__agent_watch *watch,
                     const struct mu__key_event *body)
{
    bool is_fine = true;

    if (body->deleted)
        note_deleted(watch, (struct watch_key *)(void *)mu__text_map_find(&watch->keys,
                                                                          body->key));
    else if (body->key.data != NULL)
        is_fine = note_set(watch, body);
    if (is_fine && body->complete)
        is_fine = note_complete(watch);
    if (!is_fine || is_watch_full(watch))
        overflow_watch(ctx, a, watch);
    serve_next_calls(ctx, a, watch);
}

void mu__agent_on_key_event(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    struct agent *a = state;
    const struct mu__key_event *body = mu__body(msg);
    struct mu__agent_request *pending;
    mu_error error;

    if (!mu__agent_is_from_host(a, msg))
        return;
    pending = mu__agent_find_request(a, body->token);
    if (pending == NULL || pending->kind != &watching)
        return;
    /* Events of an earlier session count: a service that still has the watch goes on with
     * it when the task registers again, and does not report the existing keys again. */
    if (body->code != 0 && !mu__agent_is_current(a, pending))
        return;
    /* These errors pass: the watch goes on when the task is registered again. */
    if (body->code == MU_EUNAVAILABLE || body->code == MU_EABORTED) {
        mu__agent_resend(a, pending);
        return;
    }
    if (body->code == 0) {
        on_event(ctx, a, watch_of(pending), body);
        return;
    }
    error = mu__agent_error_of(body->code, body->message, (struct mu__view){0}, 0);
    fail_watch(ctx, a, pending, &error);
}
