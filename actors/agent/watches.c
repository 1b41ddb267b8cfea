/* Watches. A watch remembers the keys that it knows to be there: when the service was
 * away, and tells all that is there anew, what it does not tell was deleted meanwhile. */
#include "actors/agent/call_handlers.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A key that is there as far as the watch knows, or whose change was not read. */
struct watch_key {
    struct mu__text_node node;  /* first */
    struct watch_key *next;     /* of those not read, the oldest first */
    struct watch_key *prev;
    bool waits;                 /* to be read */
    bool is_there;
    bool is_mark;               /* not a key: MU_KV_EVENT_SYNCED */
    uint32_t turn;              /* of the watch, when it was told last */
    uint64_t revision;
    char *value;                /* while it waits; with a zero behind it */
    uint32_t size;
    char key[];
};

struct mu__agent_watch {
    atomic_uint refs;
    struct mu__agent_request pending;
    struct mu__agent_watch *next;   /* of the agent's */
    bool held;                  /* by the agent, which has it in its list */
    bool below;
    char *key;
    struct mu__agent_call *opening;
    struct mu__agent_call *nexts;   /* calls that wait, the oldest first */
    struct mu__text_map keys;
    struct watch_key *first;    /* what waits to be read */
    struct watch_key *last;
    uint32_t count;
    uint64_t bytes;
    uint32_t turn;              /* how often it was begun */
    uint64_t store;             /* in which it was, the last time */
    bool current;               /* the mark was told, or waits */
    bool overflowed;            /* and nothing is watched until that was read */
    mu_error over;              /* its code is not 0: the service ended it */
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

/* ---- what waits to be read ---- */

static void unqueue(struct mu__agent_watch *watch, struct watch_key *key)
{
    if (key->prev == NULL)
        watch->first = key->next;
    else
        key->prev->next = key->next;
    if (key->next == NULL)
        watch->last = key->prev;
    else
        key->next->prev = key->prev;
    key->waits = false;
    watch->count--;
}

static void queue(struct mu__agent_watch *watch, struct watch_key *key)
{
    if (key->waits)
        return;
    key->waits = true;
    key->next = NULL;
    key->prev = watch->last;
    if (watch->last == NULL)
        watch->first = key;
    else
        watch->last->next = key;
    watch->last = key;
    watch->count++;
}

static void drop_value(struct mu__agent_watch *watch, struct watch_key *key)
{
    if (key->value == NULL)
        return;
    watch->bytes -= key->size;
    free(key->value);
    key->value = NULL;
}

static void free_key(struct mu__agent_watch *watch, struct watch_key *key)
{
    if (key->waits)
        unqueue(watch, key);
    drop_value(watch, key);
    if (!key->is_mark)
        mu__text_map_remove(&watch->keys, &key->node);
    free(key);
}

static void forget_keys(struct mu__agent_watch *watch)
{
    struct mu__text_node *node;

    while (watch->first != NULL)
        free_key(watch, watch->first);
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

/* ---- being told ---- */

static bool is_full(const struct mu__agent_watch *watch)
{
    return watch->count > AGENT_EVENTS_MAX || watch->bytes > AGENT_EVENT_BYTES_MAX;
}

/* False: no memory. */
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
    drop_value(watch, key);
    key->value = value;
    key->size = body->value.size;
    key->revision = body->revision;
    key->is_there = true;
    watch->bytes += key->size;
    queue(watch, key);
    return true;
}

static void note_deleted(struct mu__agent_watch *watch, struct watch_key *key)
{
    if (key == NULL || !key->is_there)
        return;
    drop_value(watch, key);
    key->is_there = false;
    queue(watch, key);
}

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

/* All that is there was told. */
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
    queue(watch, mark);
    return true;
}

/* ---- reading ---- */

static int take_key(struct mu__agent_watch *watch, struct watch_key *key,
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
        watch->bytes -= key->size;
        key->value = NULL;
    }
    if (key->is_there)
        unqueue(watch, key);
    else
        free_key(watch, key);
    *ret_event = event;
    return 0;
}

static void begin(struct mu__ctx *ctx, struct agent *a, struct mu__agent_watch *watch,
                  int64_t timeout_ms);

/* What a NEXT can be told now; false: nothing. */
static bool read_event(struct mu__ctx *ctx, struct agent *a,
                       struct mu__agent_watch *watch, struct mu__agent_call *call,
                       mu_error *error)
{
    int rv;

    if (watch->overflowed) {
        watch->overflowed = false;
        begin(ctx, a, watch, -1);
        (void)mu_error_set(error, -MU_EEXHAUSTED,
                           "more than %d keys of \"%.100s\" had changed and were not "
                           "read: the watch begins anew", (int)AGENT_EVENTS_MAX,
                           watch->key);
        return true;
    }
    if (watch->first != NULL) {
        rv = take_key(watch, watch->first, &call->event);
        if (rv != 0)
            (void)mu_error_set(error, rv, "no memory for an event");
        return true;
    }
    *error = watch->over;
    return watch->over.code != 0;
}

static void unlist_next(struct mu__agent_call *call)
{
    struct mu__agent_call **link = &call->watch->nexts;

    while (*link != NULL && *link != call)
        link = &(*link)->next;
    if (*link != NULL)
        *link = call->next;
}

static void end_next(struct mu__ctx *ctx, struct agent *a,
                     struct mu__agent_request *pending, const mu_error *error)
{
    unlist_next(agent_call_of(pending));
    mu__agent_call_fail(ctx, a, pending, error);
}

/* Those who wait are told what there is. */
static void serve(struct mu__ctx *ctx, struct agent *a, struct mu__agent_watch *watch)
{
    mu_error error = {0};

    while (watch->nexts != NULL && read_event(ctx, a, watch, watch->nexts, &error)) {
        end_next(ctx, a, &watch->nexts->pending, error.code == 0 ? NULL : &error);
        error.code = 0;
    }
}

static void name_next(const struct mu__agent_request *pending, char *out, size_t size)
{
    (void)snprintf(out, size, "what is watched as \"%.100s\"",
                   agent_call_in(pending)->watch->key);
}

static const struct mu__agent_request_kind reading = {
    .name = name_next,
    .fail = end_next,
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
    struct mu__agent_call **link = &call->watch->nexts;
    mu_error error = {0};

    if (!call->watch->held) {
        (void)not_open(&error);
        mu__agent_complete(call, &error);
        return;
    }
    while (*link != NULL)
        link = &(*link)->next;
    call->next = NULL;
    *link = call;
    if (mu__agent_submit(ctx, a, &call->pending, &reading, call->call.timeout_ms, 0))
        serve(ctx, a, call->watch);
}

/* ---- life ---- */

static void send_unwatch(struct mu__ctx *ctx, struct agent *a,
                        const struct mu__agent_watch *watch)
{
    struct mu__msg *msg;

    if (!a->registration.registered || watch->pending.token == 0 ||
        watch->pending.session != a->registration.session)
        return;
    msg = mu__msg_new(ctx, MU__KEY_UNWATCH);
    if (msg != NULL)
        ((struct mu__key_unwatch *)mu__body(msg))->token = watch->pending.token;
    (void)mu__send(ctx, mu__agent_service(a), msg);
}

/* Nothing is watched from here on. */
static void stop(struct mu__ctx *ctx, struct agent *a, struct mu__agent_watch *watch)
{
    send_unwatch(ctx, a, watch);
    mu__agent_remove(ctx, a, &watch->pending);
    forget_keys(watch);
}

/* The agent lets go of it. */
static void drop(struct mu__ctx *ctx, struct agent *a, struct mu__agent_watch *watch)
{
    struct mu__agent_watch **link = &a->watches;
    mu_error error = {0};

    stop(ctx, a, watch);
    (void)not_open(&error);
    while (watch->nexts != NULL)
        end_next(ctx, a, &watch->nexts->pending, &error);
    while (*link != watch)
        link = &(*link)->next;
    *link = watch->next;
    watch->held = false;
    free(watch->key);
    watch->key = NULL;
    mu__agent_watch_unref(watch);
}

static void name_watch(const struct mu__agent_request *pending, char *out, size_t size)
{
    const struct mu__agent_watch *watch =
        (const struct mu__agent_watch *)(const void *)((const char *)pending -
                                                       offsetof(struct mu__agent_watch,
                                                                pending));

    (void)snprintf(out, size, "the watch of \"%.100s\"", watch->key);
}

static struct mu__msg *make_watch(struct mu__ctx *ctx, struct agent *a,
                                 struct mu__agent_request *pending);

/* Not before it was opened: the call fails, and the watch is no watch. */
static void fail_opening(struct mu__ctx *ctx, struct agent *a,
                         struct mu__agent_request *pending, const mu_error *error)
{
    struct mu__agent_watch *watch = watch_of(pending);
    struct mu__agent_call *call = watch->opening;

    watch->opening = NULL;
    if (call == NULL) {
        watch->over = *error;
        mu__agent_remove(ctx, a, pending);
        serve(ctx, a, watch);
        return;
    }
    drop(ctx, a, watch);
    mu__agent_complete(call, error);
}

static const struct mu__agent_request_kind opening = {
    .make_message = make_watch,
    .name = name_watch,
    .fail = fail_opening,
    .late = "was not begun",
};

static const struct mu__agent_request_kind watching = {
    .make_message = make_watch,
    .name = name_watch,
    .fail = fail_opening,
    .late = "was not begun",
    .survives_error = true,
};

/* The same revision means another change in another store. */
static void note_store(struct mu__agent_watch *watch, uint64_t store)
{
    struct mu__text_node *node = NULL;

    if (watch->store == store)
        return;
    watch->store = store;
    while ((node = mu__text_map_next(&watch->keys, node)) != NULL)
        ((struct watch_key *)(void *)node)->revision = 0;
}

/* It is open when the service is asked for the first time. */
static struct mu__msg *make_watch(struct mu__ctx *ctx, struct agent *a,
                                 struct mu__agent_request *pending)
{
    struct mu__agent_watch *watch = watch_of(pending);
    struct mu__msg *msg = mu__msg_new(ctx, MU__KEY_WATCH);
    struct mu__agent_call *call = watch->opening;
    struct mu__key_watch *body;

    if (msg == NULL)
        return NULL;
    body = mu__body(msg);
    body->token = pending->token;
    body->key = mu__view_str(watch->key);
    body->below = watch->below;
    msg = mu__agent_copy_views(ctx, msg, &body->key, NULL);
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

static void begin(struct mu__ctx *ctx, struct agent *a, struct mu__agent_watch *watch,
                  int64_t timeout_ms)
{
    (void)mu__agent_submit(ctx, a, &watch->pending,
                        watch->opening == NULL ? &watching : &opening, timeout_ms, 0);
}

void mu__agent_call_watch(struct mu__ctx *ctx, struct agent *a,
                          struct mu__agent_call *call)
{
    struct mu__agent_watch *watch = call->watch;
    size_t size = strlen(call->name) + 1;
    mu_error error = {0};

    watch->key = malloc(size);
    if (watch->key == NULL) {
        (void)mu_error_set(&error, -MU_ENOMEM, "no memory for a watch");
        mu__agent_complete(call, &error);
        return;
    }
    memcpy(watch->key, call->name, size);
    watch->below = call->below;
    watch->keys.secret = a->barriers.by_name.secret;
    watch->opening = call;
    watch->held = true;
    (void)atomic_fetch_add_explicit(&watch->refs, 1, memory_order_relaxed);
    watch->next = a->watches;
    a->watches = watch;
    begin(ctx, a, watch, call->call.timeout_ms);
}

void mu__agent_call_watch_close(struct mu__ctx *ctx, struct agent *a,
                                struct mu__agent_call *call)
{
    if (call->watch->held)
        drop(ctx, a, call->watch);
    mu__agent_complete(call, NULL);
}

void mu__agent_watches_done(struct mu__ctx *ctx, struct agent *a)
{
    while (a->watches != NULL)
        drop(ctx, a, a->watches);
}

/* ---- events ---- */

static void overflow(struct mu__ctx *ctx, struct agent *a, struct mu__agent_watch *watch)
{
    stop(ctx, a, watch);
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
    if (!is_fine || is_full(watch))
        overflow(ctx, a, watch);
    serve(ctx, a, watch);
}

void mu__agent_on_key_event(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    struct agent *a = state;
    const struct mu__key_event *body = mu__body(msg);
    struct mu__agent_request *pending;
    mu_error error;

    if (a->hosts.followed == NULL || msg->from.node != a->hosts.followed->node)
        return;
    pending = mu__agent_find_request(a, body->token);
    if (pending == NULL || pending->kind != &watching)
        return;
    /* Events count in any session: a service that has not changed goes on with them, and
     * begins no watch anew that it has. */
    if (body->code != 0 && !mu__agent_is_current(a, pending))
        return;
    /* Errors of this task pass; the watch goes on when it is registered again. */
    if (body->code == MU_EUNAVAILABLE || body->code == MU_EABORTED) {
        mu__agent_resend(a, pending);
        return;
    }
    if (body->code == 0) {
        on_event(ctx, a, watch_of(pending), body);
        return;
    }
    error = mu__agent_error_of(body->code, body->message, (struct mu__view){0}, 0);
    fail_opening(ctx, a, pending, &error);
}
