/* Actors live in a table indexed by the low bits of their number. Numbers only go up, and
 * one whose place is taken is passed over, so that a number finds its actor with one look
 * and a stale number finds somebody else's, or nothing. */
#include "runtime/kernel/kernel.h"

#include "runtime/base/printable.h"

#include "runtime/kernel/timers.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TABLE_FIRST = 64, LINE_BYTES_MAX = 1024 };

/* Who is told when something ends. The message is made beforehand: telling cannot
 * fail. */
struct monitor {
    struct monitor *next;
    struct mu__msg *down;
    mu__pid target;
};

/* A behavior's handlers, spread out by message number. */
struct dispatch {
    struct dispatch *next;
    const struct mu__behavior *behavior;
    mu__handle_fn handle[];
};

struct actor {
    uint32_t number;
    bool ready;             /* in the list of actors with mail */
    bool stopping;          /* ends after the current message */
    bool watches_nodes;
    const struct dispatch *dispatch;
    void *state;
    struct mu__msg *first;  /* mailbox */
    struct mu__msg *last;
    uint32_t length;
    uint32_t length_max;
    struct actor *ready_next;
    struct monitor *monitors;
};

/* A peer that is up. */
struct node {
    uint32_t number;
    uint32_t index;
    uint64_t incarnation;
    struct mu__buf *words;      /* the two below; NULL: it has gone */
    struct mu__view type;
    struct mu__view address;
};

struct mu__kernel {
    struct mu__world *world;
    const struct mu__schema *schema;
    struct mu__pool pool;
    struct actor **table;
    uint32_t table_size;        /* a power of two */
    uint32_t number_next;
    struct actor *ready_first;  /* actors with mail, round robin */
    struct actor *ready_last;
    struct actor *running;
    bool in_turn;
    struct mu__timers timers;
    struct dispatch *dispatches;
    struct node *nodes;         /* ordered by number */
    size_t nodes_count;
    size_t nodes_gone;          /* of these, without words, not found any more */
    size_t nodes_capacity;
    struct monitor *remote_monitors;
    struct mu__kernel_counters counters;
};

/* ---- finding ---- */

static struct actor *find(const struct mu__kernel *kernel, uint32_t number)
{
    struct actor *actor = kernel->table[number & (kernel->table_size - 1)];

    return actor != NULL && actor->number == number ? actor : NULL;
}

static struct node *find_node(const struct mu__kernel *kernel, uint32_t number)
{
    size_t low = 0;
    size_t high = kernel->nodes_count;

    while (low < high) {
        size_t middle = (low + high) / 2;

        if (kernel->nodes[middle].number < number)
            low = middle + 1;
        else
            high = middle;
    }
    if (low < kernel->nodes_count && kernel->nodes[low].number == number &&
        kernel->nodes[low].words != NULL)
        return &kernel->nodes[low];
    return NULL;
}

/* ---- mailboxes ---- */

static void make_ready(struct mu__kernel *kernel, struct actor *actor)
{
    actor->ready = true;
    actor->ready_next = NULL;
    if (kernel->ready_first == NULL)
        kernel->ready_first = actor;
    else
        kernel->ready_last->ready_next = actor;
    kernel->ready_last = actor;
}

static void put(struct mu__kernel *kernel, struct actor *actor, struct mu__msg *msg)
{
    msg->next = NULL;
    if (actor->first == NULL)
        actor->first = msg;
    else
        actor->last->next = msg;
    actor->last = msg;
    actor->length++;
    kernel->counters.queued++;
    if (!actor->ready)
        make_ready(kernel, actor);
}

/* A mailbox that is long has left the caches: while one message is handled, the next one
 * is on its way. */
static void fetch_ahead(const struct mu__msg *msg)
{
    enum { LINE_BYTES = 64 };
    const char *at = (const char *)msg;

    if (msg == NULL)
        return;
    __builtin_prefetch(at);
    __builtin_prefetch(at + LINE_BYTES);
    __builtin_prefetch(at + 2 * LINE_BYTES);
}

static struct mu__msg *take(struct mu__kernel *kernel, struct actor *actor)
{
    struct mu__msg *msg = actor->first;

    actor->first = msg->next;
    fetch_ahead(actor->first);
    actor->length--;
    kernel->counters.queued--;
    return msg;
}

static int dead_letter(struct mu__kernel *kernel, struct mu__msg *msg, int code)
{
    kernel->counters.dead_letters++;
    mu__pool_put(&kernel->pool, msg);
    return code;
}

static int post(struct mu__kernel *kernel, struct mu__msg *msg)
{
    struct actor *actor = find(kernel, msg->to.actor);

    if (actor == NULL)
        return dead_letter(kernel, msg, -MU_ENOTFOUND);
    if (actor->length >= actor->length_max)
        return dead_letter(kernel, msg, -MU_EEXHAUSTED);
    put(kernel, actor, msg);
    return 0;
}

/* For what the kernel itself sends: exempt from the bound. */
static void post_system(struct mu__kernel *kernel, struct mu__msg *msg)
{
    struct actor *actor = find(kernel, msg->to.actor);

    if (actor == NULL)
        (void)dead_letter(kernel, msg, -MU_ENOTFOUND);
    else
        put(kernel, actor, msg);
}

static void wake_outside_turn(struct mu__kernel *kernel, uint64_t due_ms)
{
    if (!kernel->in_turn)
        kernel->world->ops->wake_at(kernel->world, due_ms);
}

int mu__kernel_deliver(struct mu__kernel *kernel, struct mu__msg *msg)
{
    msg->to.node = MU__NODE_SELF;
    if (mu__is_system_kind(msg->kind)) {
        post_system(kernel, msg);
        return 0;
    }
    return post(kernel, msg);
}

int mu__send(struct mu__ctx *ctx, mu__pid to, struct mu__msg *msg)
{
    struct mu__kernel *kernel = ctx->kernel;

    if (msg == NULL)
        return -MU_ENOMEM;
    msg->from = ctx->self;
    msg->to = to;
    if (to.node != MU__NODE_SELF)
        return kernel->world->ops->transmit(kernel->world, msg);
    if (!kernel->in_turn)
        kernel->world->ops->wake_at(kernel->world, mu__now_ms(ctx));
    return post(kernel, msg);
}

/* ---- messages ---- */

struct mu__msg *mu__msg_new(struct mu__ctx *ctx, uint16_t kind)
{
    struct mu__kernel *kernel = ctx->kernel;

    assert(mu__schema_name(kernel->schema, kind) != NULL);
    return mu__pool_get(&kernel->pool, kind,
                        mu__schema_body_size(kernel->schema, kind));
}

struct mu__msg *mu__claim(struct mu__ctx *ctx)
{
    struct mu__msg *msg = ctx->current;

    assert(msg != NULL);
    ctx->current = NULL;
    return msg;
}

void mu__msg_free(struct mu__ctx *ctx, struct mu__msg *msg)
{
    mu__pool_put(&ctx->kernel->pool, msg);
}

/* ---- monitors ---- */

static void tell_down(struct mu__kernel *kernel, struct monitor *monitor)
{
    post_system(kernel, monitor->down);
    free(monitor);
}

static void free_monitors(struct mu__kernel *kernel, struct monitor *monitor)
{
    while (monitor != NULL) {
        struct monitor *next = monitor->next;

        mu__pool_put(&kernel->pool, monitor->down);
        free(monitor);
        monitor = next;
    }
}

/* What an ending actor had asked to be told of other nodes. */
static void drop_remote_monitors(struct mu__kernel *kernel, uint32_t watcher)
{
    struct monitor **link = &kernel->remote_monitors;

    while (*link != NULL) {
        struct monitor *monitor = *link;

        if (monitor->down->to.actor != watcher) {
            link = &monitor->next;
            continue;
        }
        *link = monitor->next;
        mu__pool_put(&kernel->pool, monitor->down);
        free(monitor);
    }
}

static struct monitor **monitors_of(struct mu__kernel *kernel, mu__pid pid)
{
    struct actor *actor;

    if (pid.node != MU__NODE_SELF)
        return find_node(kernel, pid.node) == NULL ? NULL : &kernel->remote_monitors;
    actor = find(kernel, pid.actor);
    return actor == NULL || actor->stopping ? NULL : &actor->monitors;
}

int mu__monitor(struct mu__ctx *ctx, mu__pid pid)
{
    struct mu__kernel *kernel = ctx->kernel;
    struct monitor **list = monitors_of(kernel, pid);
    struct monitor *monitor = malloc(sizeof *monitor);
    struct mu__down *body;

    if (monitor == NULL)
        return -MU_ENOMEM;
    monitor->down = mu__msg_new(ctx, MU__DOWN);
    if (monitor->down == NULL) {
        free(monitor);
        return -MU_ENOMEM;
    }
    monitor->target = pid;
    monitor->down->to = ctx->self;
    monitor->down->from = pid;
    body = mu__body(monitor->down);
    body->node = pid.node;
    body->actor = pid.actor;
    if (list == NULL) {
        wake_outside_turn(kernel, mu__now_ms(ctx));
        tell_down(kernel, monitor);
        return 0;
    }
    monitor->next = *list;
    *list = monitor;
    return 0;
}

/* ---- actors ---- */

static void on_end(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    const struct mu__end *body = mu__body(msg);

    (void)state;
    mu__log(ctx, MU__LOG_DEBUG, "ends: %.*s", (int)body->reason.size,
            (const char *)body->reason.data);
    mu__stop(ctx->kernel, ctx->self);
}

static const struct dispatch *dispatch_of(struct mu__kernel *kernel,
                                          const struct mu__behavior *behavior)
{
    uint16_t kinds_end = mu__schema_kinds_end(kernel->schema);
    struct dispatch *d;

    for (d = kernel->dispatches; d != NULL; d = d->next)
        if (d->behavior == behavior)
            return d;
    d = calloc(1, sizeof *d + kinds_end * sizeof d->handle[0]);
    if (d == NULL)
        return NULL;
    d->behavior = behavior;
    d->handle[MU__END] = on_end;
    for (size_t i = 0; i < behavior->handlers_count; i++) {
        assert(behavior->handlers[i].kind < kinds_end);
        d->handle[behavior->handlers[i].kind] = behavior->handlers[i].handle;
    }
    d->next = kernel->dispatches;
    kernel->dispatches = d;
    return d;
}

/* Numbers that differ in their low bits still differ in more of them. */
static int grow_table(struct mu__kernel *kernel)
{
    uint32_t size = kernel->table_size * 2;
    struct actor **table;

    if (size > MU__ACTORS_MAX)
        return -MU_EEXHAUSTED;
    table = calloc(size, sizeof *table);
    if (table == NULL)
        return -MU_ENOMEM;
    for (uint32_t i = 0; i < kernel->table_size; i++)
        if (kernel->table[i] != NULL)
            table[kernel->table[i]->number & (size - 1)] = kernel->table[i];
    free(kernel->table);
    kernel->table = table;
    kernel->table_size = size;
    return 0;
}

static int choose_number(struct mu__kernel *kernel, uint32_t wanted, uint32_t *ret_number)
{
    if (wanted != 0) {
        assert(wanted < MU__ACTOR_NAMED_MAX);
        if (kernel->table[wanted] != NULL)
            return -MU_EEXISTS;
        *ret_number = wanted;
        return 0;
    }
    if (kernel->counters.actors >= kernel->table_size / 2) {
        int rv = grow_table(kernel);

        if (rv != 0)
            return rv;
    }
    for (;;) {
        uint32_t number = kernel->number_next++;
        uint32_t slot = number & (kernel->table_size - 1);

        if (slot >= MU__ACTOR_NAMED_MAX && kernel->table[slot] == NULL) {
            *ret_number = number;
            return 0;
        }
    }
}

static void unready(struct mu__kernel *kernel, struct actor *actor)
{
    struct actor **link = &kernel->ready_first;
    struct actor *before = NULL;

    while (*link != actor) {
        before = *link;
        link = &before->ready_next;
    }
    *link = actor->ready_next;
    if (kernel->ready_last == actor)
        kernel->ready_last = before;
}

static void forget(struct mu__kernel *kernel, struct actor *actor)
{
    while (actor->first != NULL)
        (void)dead_letter(kernel, take(kernel, actor), 0);
    mu__timers_drop(&kernel->timers, actor->number, &kernel->pool);
    drop_remote_monitors(kernel, actor->number);
    if (actor->ready)
        unready(kernel, actor);
    kernel->table[actor->number & (kernel->table_size - 1)] = NULL;
    kernel->counters.actors--;
    free(actor->state);
    free(actor);
}

static void end_actor(struct mu__kernel *kernel, struct actor *actor)
{
    struct mu__ctx ctx = {kernel, {MU__NODE_SELF, actor->number}, NULL};
    struct monitor *monitor;

    actor->stopping = true;
    if (actor->dispatch->behavior->done != NULL)
        actor->dispatch->behavior->done(&ctx, actor->state);
    monitor = actor->monitors;
    while (monitor != NULL) {
        struct monitor *next = monitor->next;

        tell_down(kernel, monitor);
        monitor = next;
    }
    forget(kernel, actor);
}

static struct actor *actor_new(struct mu__kernel *kernel,
                               const struct mu__behavior *behavior, uint32_t number)
{
    struct actor *actor = calloc(1, sizeof *actor);

    if (actor == NULL)
        return NULL;
    actor->dispatch = dispatch_of(kernel, behavior);
    actor->state = calloc(1, behavior->state_size == 0 ? 1 : behavior->state_size);
    if (actor->dispatch == NULL || actor->state == NULL) {
        free(actor->state);
        free(actor);
        return NULL;
    }
    actor->number = number;
    actor->length_max = behavior->mailbox_max == 0 ? MU__MAILBOX_MAX
                                                   : behavior->mailbox_max;
    return actor;
}

/* An actor that stops itself here ends when it has begun. */
static int run_init(struct mu__ctx *ctx, struct actor *actor, const void *arg)
{
    const struct mu__behavior *behavior = actor->dispatch->behavior;
    struct actor *running = ctx->kernel->running;
    int rv = 0;

    ctx->kernel->running = actor;
    if (behavior->init != NULL)
        rv = behavior->init(ctx, actor->state, arg);
    ctx->kernel->running = running;
    return rv;
}

int mu__spawn(struct mu__kernel *kernel, const struct mu__behavior *behavior,
              uint32_t number, const void *arg, mu__pid *ret_pid)
{
    struct mu__ctx ctx = {kernel, {MU__NODE_SELF, 0}, NULL};
    struct actor *actor;
    int rv = choose_number(kernel, number, &ctx.self.actor);

    if (rv != 0)
        return rv;
    actor = actor_new(kernel, behavior, ctx.self.actor);
    if (actor == NULL)
        return -MU_ENOMEM;
    kernel->table[actor->number & (kernel->table_size - 1)] = actor;
    kernel->counters.actors++;
    rv = run_init(&ctx, actor, arg);
    if (rv != 0) {
        free_monitors(kernel, actor->monitors);
        forget(kernel, actor);
        return rv;
    }
    if (actor->stopping)
        end_actor(kernel, actor);
    if (ret_pid != NULL)
        *ret_pid = ctx.self;
    return 0;
}

void mu__stop(struct mu__kernel *kernel, mu__pid pid)
{
    struct actor *actor = find(kernel, pid.actor);

    assert(pid.node == MU__NODE_SELF);
    if (actor == NULL || actor->stopping)
        return;
    actor->stopping = true;
    if (actor != kernel->running) {
        wake_outside_turn(kernel, kernel->world->ops->now_ms(kernel->world));
        end_actor(kernel, actor);
    }
}

void *mu__actor_state(struct mu__kernel *kernel, mu__pid pid)
{
    struct actor *actor = pid.node == MU__NODE_SELF ? find(kernel, pid.actor) : NULL;

    return actor == NULL ? NULL : actor->state;
}

/* ---- turns ---- */

static void handle(struct mu__kernel *kernel, struct actor *actor, struct mu__msg *msg)
{
    struct mu__ctx ctx = {kernel, {MU__NODE_SELF, actor->number}, msg};
    mu__handle_fn fn = actor->dispatch->handle[msg->kind];

    kernel->counters.messages++;
    if (fn != NULL)
        fn(&ctx, actor->state, msg);
    else
        kernel->counters.dead_letters++;
    mu__pool_put(&kernel->pool, ctx.current);
}

/* Handles at most `budget` messages of one actor; returns how many. The actor is out of
 * the list but stays marked as ready, so that mail to itself does not list it twice. */
static int run_actor(struct mu__kernel *kernel, struct actor *actor, int budget)
{
    int count = 0;

    kernel->running = actor;
    while (count < budget && actor->first != NULL && !actor->stopping) {
        handle(kernel, actor, take(kernel, actor));
        count++;
    }
    kernel->running = NULL;
    actor->ready = false;
    if (actor->stopping)
        end_actor(kernel, actor);
    else if (actor->first != NULL)
        make_ready(kernel, actor);
    return count;
}

static void fire_timers(struct mu__kernel *kernel)
{
    uint64_t now_ms = kernel->world->ops->now_ms(kernel->world);
    uint64_t order_limit = kernel->timers.order_next;
    struct mu__msg *msg;

    while ((msg = mu__timers_fire(&kernel->timers, now_ms, order_limit)) != NULL)
        post_system(kernel, msg);
}

void mu__kernel_turn(struct mu__kernel *kernel)
{
    int budget = MU__TURN_MESSAGES;
    uint64_t next_ms;

    assert(!kernel->in_turn);
    kernel->in_turn = true;
    kernel->counters.turns++;
    fire_timers(kernel);
    while (budget > 0 && kernel->ready_first != NULL) {
        struct actor *actor = kernel->ready_first;

        kernel->ready_first = actor->ready_next;
        budget -= run_actor(kernel, actor,
                            budget < MU__ACTOR_BATCH ? budget : MU__ACTOR_BATCH);
    }
    kernel->in_turn = false;

    next_ms = mu__timers_next_ms(&kernel->timers);
    if (kernel->ready_first != NULL)
        next_ms = kernel->world->ops->now_ms(kernel->world);
    if (next_ms != UINT64_MAX)
        kernel->world->ops->wake_at(kernel->world, next_ms);
}

/* ---- timers ---- */

uint64_t mu__timer_set(struct mu__ctx *ctx, uint64_t delay_ms, uint64_t token)
{
    struct mu__kernel *kernel = ctx->kernel;
    struct mu__msg *msg = mu__msg_new(ctx, MU__TIMER);
    uint64_t now_ms = mu__now_ms(ctx);
    uint64_t due_ms = delay_ms > UINT64_MAX / 2 ? UINT64_MAX / 2 : now_ms + delay_ms;
    struct mu__timer *body;
    uint64_t timer;

    if (msg == NULL)
        return 0;
    msg->to = ctx->self;
    msg->from = ctx->self;
    body = mu__body(msg);
    body->token = token;
    timer = mu__timers_set(&kernel->timers, due_ms, msg);
    if (timer == 0)
        mu__pool_put(&kernel->pool, msg);
    else
        wake_outside_turn(kernel, due_ms);
    return timer;
}

void mu__timer_cancel(struct mu__ctx *ctx, uint64_t timer)
{
    struct mu__msg *msg;

    if (timer == 0)
        return;
    msg = mu__timers_cancel(&ctx->kernel->timers, timer);
    mu__pool_put(&ctx->kernel->pool, msg);
}

/* ---- nodes ---- */

/* Two strings in one buffer, which the messages to all who are told share. */
static struct mu__buf *join(const char *first, const char *second,
                            struct mu__view *ret_first, struct mu__view *ret_second)
{
    uint32_t a = (uint32_t)strlen(first);
    uint32_t b = (uint32_t)strlen(second);
    struct mu__buf *words = mu__buf_new((size_t)a + b + 1);

    if (words == NULL)
        return NULL;
    memcpy(words->data, first, a);
    memcpy(words->data + a, second, b);
    *ret_first = (struct mu__view){words->data, a};
    *ret_second = (struct mu__view){words->data + a, b};
    return words;
}

/* The strings in `body` stand in `words`. */
static int tell(struct mu__kernel *kernel, uint32_t watcher, uint16_t kind,
                const void *body, struct mu__buf *words)
{
    size_t size = mu__schema_body_size(kernel->schema, kind);
    struct mu__msg *msg = mu__pool_get(&kernel->pool, kind, size);

    if (msg == NULL)
        return -MU_ENOMEM;
    memcpy(msg->body, body, size);
    msg->backing = mu__buf_ref(words);
    msg->to.actor = watcher;
    post_system(kernel, msg);
    return 0;
}

static void say_no_memory(struct mu__kernel *kernel, const char *what)
{
    kernel->world->ops->log(kernel->world, MU__LOG_ERROR, "kernel", what);
}

/* `words` NULL: there was no memory for them. */
static void tell_watchers(struct mu__kernel *kernel, uint16_t kind, const void *body,
                          struct mu__buf *words)
{
    bool is_lost = words == NULL;

    for (uint32_t i = 0; words != NULL && i < kernel->table_size; i++)
        if (kernel->table[i] != NULL && kernel->table[i]->watches_nodes)
            is_lost |= tell(kernel, kernel->table[i]->number, kind, body, words) != 0;
    if (is_lost)
        say_no_memory(kernel, "out of memory: node news lost");
}

static struct mu__node_up up_of(const struct node *node)
{
    return (struct mu__node_up){
        .node = node->number,
        .type = node->type,
        .index = node->index,
        .incarnation = node->incarnation,
        .address = node->address,
    };
}

int mu__watch_nodes(struct mu__ctx *ctx)
{
    struct mu__kernel *kernel = ctx->kernel;
    struct actor *actor = find(kernel, ctx->self.actor);

    actor->watches_nodes = true;
    for (size_t i = 0; i < kernel->nodes_count; i++)
        if (kernel->nodes[i].words != NULL) {
            const struct mu__node_up body = up_of(&kernel->nodes[i]);

            if (tell(kernel, ctx->self.actor, MU__NODE_UP, &body,
                     kernel->nodes[i].words) != 0)
                return -MU_ENOMEM;
        }
    if (kernel->nodes_count > 0)
        wake_outside_turn(kernel, mu__now_ms(ctx));
    return 0;
}

static struct node *add_node(struct mu__kernel *kernel)
{
    if (kernel->nodes_count == kernel->nodes_capacity) {
        size_t capacity = kernel->nodes_capacity == 0 ? 16 : kernel->nodes_capacity * 2;
        struct node *nodes = realloc(kernel->nodes, capacity * sizeof *nodes);

        if (nodes == NULL)
            return NULL;
        kernel->nodes = nodes;
        kernel->nodes_capacity = capacity;
    }
    return &kernel->nodes[kernel->nodes_count];
}

/* Those that have gone leave the array together, in the order of its length: ten thousand
 * may go at once. */
static void drop_gone_nodes(struct mu__kernel *kernel)
{
    size_t kept = 0;

    if (kernel->nodes_gone * 2 < kernel->nodes_count)
        return;
    for (size_t i = 0; i < kernel->nodes_count; i++)
        if (kernel->nodes[i].words != NULL)
            kernel->nodes[kept++] = kernel->nodes[i];
    kernel->nodes_count = kept;
    kernel->nodes_gone = 0;
}

void mu__kernel_node_up(struct mu__kernel *kernel, uint32_t node, const char *type,
                        uint32_t index, uint64_t incarnation, const char *address)
{
    struct node *added = add_node(kernel);
    struct mu__node_up body;

    assert(kernel->nodes_count == 0 ||
           kernel->nodes[kernel->nodes_count - 1].number < node);
    if (added == NULL) {
        say_no_memory(kernel, "out of memory: a node that came up goes unnoticed");
        return;
    }
    *added = (struct node){.number = node, .index = index, .incarnation = incarnation};
    added->words = join(type, address, &added->type, &added->address);
    if (added->words == NULL) {
        say_no_memory(kernel, "out of memory: a node that came up goes unnoticed");
        return;
    }
    kernel->nodes_count++;
    body = up_of(added);
    tell_watchers(kernel, MU__NODE_UP, &body, added->words);
}

static void remote_monitors_down(struct mu__kernel *kernel, uint32_t node)
{
    struct monitor **link = &kernel->remote_monitors;

    while (*link != NULL) {
        struct monitor *monitor = *link;

        if (monitor->target.node != node) {
            link = &monitor->next;
            continue;
        }
        *link = monitor->next;
        tell_down(kernel, monitor);
    }
}

void mu__kernel_node_down(struct mu__kernel *kernel, uint32_t node, const char *reason)
{
    struct node *gone = find_node(kernel, node);
    struct mu__node_down body = {.node = node};
    struct mu__view none;
    struct mu__buf *words;

    if (gone == NULL)
        return;
    mu__buf_unref(gone->words);
    gone->words = NULL;
    kernel->nodes_gone++;
    drop_gone_nodes(kernel);
    remote_monitors_down(kernel, node);
    words = join(reason, "", &body.reason, &none);
    tell_watchers(kernel, MU__NODE_DOWN, &body, words);
    mu__buf_unref(words);
}

void mu__kernel_node_trouble(struct mu__kernel *kernel, const char *type, uint32_t index,
                             const char *reason)
{
    struct mu__node_trouble body = {.index = index};
    struct mu__buf *words = join(type, reason, &body.type, &body.reason);

    tell_watchers(kernel, MU__NODE_TROUBLE, &body, words);
    mu__buf_unref(words);
}

/* ---- life ---- */

int mu__kernel_new(struct mu__world *world, const struct mu__schema *schema,
                   struct mu__kernel **ret_kernel)
{
    struct mu__kernel *kernel = calloc(1, sizeof *kernel);

    if (kernel == NULL)
        return -MU_ENOMEM;
    kernel->table = calloc(TABLE_FIRST, sizeof *kernel->table);
    if (kernel->table == NULL) {
        free(kernel);
        return -MU_ENOMEM;
    }
    kernel->table_size = TABLE_FIRST;
    kernel->number_next = MU__ACTOR_NAMED_MAX;
    kernel->world = world;
    kernel->schema = schema;
    mu__pool_init(&kernel->pool);
    mu__timers_init(&kernel->timers, MU__TIMERS_MAX);
    *ret_kernel = kernel;
    return 0;
}

static void free_nodes(struct mu__kernel *kernel)
{
    for (size_t i = 0; i < kernel->nodes_count; i++)
        mu__buf_unref(kernel->nodes[i].words);
    free(kernel->nodes);
}

void mu__kernel_free(struct mu__kernel *kernel)
{
    if (kernel == NULL)
        return;
    assert(!kernel->in_turn);
    kernel->in_turn = true;     /* what done() sends needs no wake */
    for (uint32_t i = 0; i < kernel->table_size; i++)
        if (kernel->table[i] != NULL)
            end_actor(kernel, kernel->table[i]);
    mu__timers_done(&kernel->timers, &kernel->pool);
    free_monitors(kernel, kernel->remote_monitors);
    while (kernel->dispatches != NULL) {
        struct dispatch *next = kernel->dispatches->next;

        free(kernel->dispatches);
        kernel->dispatches = next;
    }
    free_nodes(kernel);
    free(kernel->table);
    mu__pool_done(&kernel->pool);
    free(kernel);
}

void mu__kernel_counters(const struct mu__kernel *kernel,
                         struct mu__kernel_counters *ret_counters)
{
    *ret_counters = kernel->counters;
    ret_counters->timers = kernel->timers.count;
}

struct mu__pool *mu__kernel_pool(struct mu__kernel *kernel)
{
    return &kernel->pool;
}

const struct mu__schema *mu__kernel_schema(const struct mu__kernel *kernel)
{
    return kernel->schema;
}

struct mu__world *mu__kernel_world(struct mu__kernel *kernel)
{
    return kernel->world;
}

/* ---- the rest of the door ---- */

uint64_t mu__now_ms(struct mu__ctx *ctx)
{
    return ctx->kernel->world->ops->now_ms(ctx->kernel->world);
}

uint64_t mu__random(struct mu__ctx *ctx)
{
    return ctx->kernel->world->ops->random(ctx->kernel->world);
}

uint64_t mu__secret(struct mu__ctx *ctx)
{
    struct mu__world *world = ctx->kernel->world;

    return world->ops->secret == NULL ? 0 : world->ops->secret(world);
}

void mu__submit(struct mu__ctx *ctx, struct mu__work *work)
{
    work->owner = ctx->self;
    ctx->kernel->world->ops->submit(ctx->kernel->world, work);
}

bool mu__withdraw(struct mu__ctx *ctx, struct mu__work *work)
{
    return ctx->kernel->world->ops->withdraw(ctx->kernel->world, work);
}

void mu__log(struct mu__ctx *ctx, enum mu__log_level level, const char *format, ...)
{
    struct mu__kernel *kernel = ctx->kernel;
    struct actor *actor = find(kernel, ctx->self.actor);
    char line[LINE_BYTES_MAX];
    char shown[LINE_BYTES_MAX];
    va_list args;

    va_start(args, format);
    (void)vsnprintf(line, sizeof line, format, args);
    va_end(args);
    mu__printable(line, shown, sizeof shown);
    kernel->world->ops->log(kernel->world, level,
                            actor == NULL ? "?" : actor->dispatch->behavior->name, shown);
}
