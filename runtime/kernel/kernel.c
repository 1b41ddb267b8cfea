/* Actors are in a table indexed by the low bits of their number. Numbers only go up, and
 * one whose slot is taken is skipped, so that a number finds its actor with one access,
 * and a stale number finds an actor of another number, or none. */
#include "runtime/kernel/internal.h"

#include "runtime/base/printable.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TABLE_FIRST = 64, LINE_BYTES_MAX = 1024 };

/* ---- mailboxes ---- */

static void make_ready(struct mu__kernel *kernel, struct actor *actor)
{
    actor->ready = true;
    mu__list_append(&kernel->ready, &actor->ready_node);
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

/* The messages of a long mailbox have left the caches: the next one is prefetched while
 * one is handled. */
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

static struct mu__msg *pop_message(struct mu__kernel *kernel, struct actor *actor)
{
    struct mu__msg *msg = actor->first;

    actor->first = msg->next;
    fetch_ahead(actor->first);
    actor->length--;
    kernel->counters.queued--;
    return msg;
}

/* Before all that is in the mailbox. */
static void release_held(struct mu__kernel *kernel, struct actor *actor)
{
    if (actor->held_first == NULL)
        return;
    actor->held_last->next = actor->first;
    if (actor->first == NULL)
        actor->last = actor->held_last;
    actor->first = actor->held_first;
    actor->length += actor->held_count;
    kernel->counters.queued += actor->held_count;
    actor->held_first = actor->held_last = NULL;
    actor->held_count = 0;
}

static int dead_letter(struct mu__kernel *kernel, struct mu__msg *msg, int code)
{
    kernel->counters.dead_letters++;
    mu__pool_put(&kernel->pool, msg);
    return code;
}

static int post(struct mu__kernel *kernel, struct mu__msg *msg)
{
    struct actor *actor = mu__kernel_find(kernel, msg->to.actor);

    if (actor == NULL)
        return dead_letter(kernel, msg, -MU_ENOTFOUND);
    if (actor->length >= actor->length_max)
        return dead_letter(kernel, msg, -MU_EEXHAUSTED);
    put(kernel, actor, msg);
    return 0;
}

void mu__kernel_post(struct mu__kernel *kernel, struct mu__msg *msg)
{
    struct actor *actor = mu__kernel_find(kernel, msg->to.actor);

    if (actor == NULL)
        (void)dead_letter(kernel, msg, -MU_ENOTFOUND);
    else
        put(kernel, actor, msg);
}

int mu__kernel_deliver(struct mu__kernel *kernel, struct mu__msg *msg)
{
    msg->to.node = MU__NODE_SELF;
    if (mu__is_system_kind(msg->kind)) {
        mu__kernel_post(kernel, msg);
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
    if (to.node != MU__NODE_SELF && mu__kernel_lacks_right(kernel, to.node, msg->kind)) {
        mu__pool_put(&kernel->pool, msg);
        return -MU_EPERMISSION;
    }
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

    assert(kind < kernel->kinds_end && kernel->body_sizes[kind] != 0);
    return mu__pool_get(&kernel->pool, kind, kernel->body_sizes[kind]);
}

struct mu__msg *mu__claim(struct mu__ctx *ctx)
{
    struct mu__msg *msg = ctx->current;

    assert(msg != NULL);
    ctx->current = NULL;
    return msg;
}

void mu__hold(struct mu__ctx *ctx)
{
    struct actor *actor = ctx->kernel->running;
    struct mu__msg *msg;

    if (actor->held_count == MU__HELD_MAX) {
        ctx->kernel->counters.dead_letters++;
        return;
    }
    msg = mu__claim(ctx);
    msg->next = NULL;
    if (actor->held_first == NULL)
        actor->held_first = msg;
    else
        actor->held_last->next = msg;
    actor->held_last = msg;
    actor->held_count++;
}

void mu__release_held(struct mu__ctx *ctx)
{
    struct actor *actor = ctx->kernel->running;

    release_held(ctx->kernel, actor);
    if (actor->first == NULL || actor->ready)
        return;
    make_ready(ctx->kernel, actor);
    mu__kernel_wake(ctx->kernel, mu__now_ms(ctx));
}

void mu__msg_free(struct mu__ctx *ctx, struct mu__msg *msg)
{
    mu__pool_put(&ctx->kernel->pool, msg);
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

int mu__become(struct mu__ctx *ctx, const struct mu__behavior *behavior)
{
    const struct dispatch *dispatch = dispatch_of(ctx->kernel, behavior);

    if (dispatch == NULL)
        return -MU_ENOMEM;
    ctx->kernel->running->dispatch = dispatch;
    return 0;
}

/* No two actors get the same slot: their numbers differ in the low bits already. */
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

static int choose_number(struct mu__kernel *kernel, uint32_t requested,
                         uint32_t *ret_number)
{
    if (requested != 0) {
        assert(requested < MU__ACTOR_NAMED_MAX);
        if (kernel->table[requested] != NULL)
            return -MU_EEXISTS;
        *ret_number = requested;
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

static void forget(struct mu__kernel *kernel, struct actor *actor)
{
    release_held(kernel, actor);
    while (actor->first != NULL)
        (void)dead_letter(kernel, pop_message(kernel, actor), 0);
    mu__timers_drop(&kernel->timers, actor->number, &kernel->pool);
    mu__monitors_drop_remote(kernel, actor->number);
    if (actor->ready)
        mu__list_remove(&kernel->ready, &actor->ready_node);
    kernel->table[actor->number & (kernel->table_size - 1)] = NULL;
    kernel->counters.actors--;
    free(actor);
}

static void end_actor(struct mu__kernel *kernel, struct actor *actor)
{
    struct mu__ctx ctx = {kernel, {MU__NODE_SELF, actor->number}, NULL};

    actor->stopping = true;
    if (actor->dispatch->behavior->done != NULL)
        actor->dispatch->behavior->done(&ctx, actor->state);
    mu__monitors_notify(kernel, &actor->monitors);
    forget(kernel, actor);
}

static struct actor *actor_new(struct mu__kernel *kernel,
                               const struct mu__behavior *behavior, uint32_t number,
                               const void *arg)
{
    size_t more = behavior->more == NULL ? 0 : behavior->more(arg);
    const struct dispatch *dispatch = dispatch_of(kernel, behavior);
    struct actor *actor =
        dispatch == NULL ? NULL : calloc(1, sizeof *actor + behavior->state_size + more);

    if (actor == NULL)
        return NULL;
    actor->dispatch = dispatch;
    actor->number = number;
    actor->length_max =
        behavior->mailbox_max == 0 ? MU__MAILBOX_MAX : behavior->mailbox_max;
    return actor;
}

static void end_batch(struct mu__ctx *ctx, struct actor *actor)
{
    void (*after_batch)(struct mu__ctx *, void *) =
        actor->dispatch->behavior->after_batch;

    ctx->current = NULL;
    if (after_batch != NULL && !actor->stopping)
        after_batch(ctx, actor->state);
}

/* An actor that stops itself in init() ends after it. */
static int run_init(struct mu__ctx *ctx, struct actor *actor, const void *arg)
{
    const struct mu__behavior *behavior = actor->dispatch->behavior;
    struct actor *running = ctx->kernel->running;
    int rv = 0;

    ctx->kernel->running = actor;
    if (behavior->init != NULL)
        rv = behavior->init(ctx, actor->state, arg);
    if (rv == 0)
        end_batch(ctx, actor);
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
    actor = actor_new(kernel, behavior, ctx.self.actor, arg);
    if (actor == NULL)
        return -MU_ENOMEM;
    kernel->table[actor->number & (kernel->table_size - 1)] = actor;
    kernel->counters.actors++;
    rv = run_init(&ctx, actor, arg);
    if (rv != 0) {
        mu__monitors_free(kernel, &actor->monitors);
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
    struct actor *actor = mu__kernel_find(kernel, pid.actor);

    assert(pid.node == MU__NODE_SELF);
    if (actor == NULL || actor->stopping)
        return;
    actor->stopping = true;
    if (actor != kernel->running) {
        mu__kernel_wake(kernel, kernel->world->ops->now_ms(kernel->world));
        end_actor(kernel, actor);
    }
}

void *mu__actor_state(struct mu__kernel *kernel, mu__pid pid)
{
    struct actor *actor =
        pid.node == MU__NODE_SELF ? mu__kernel_find(kernel, pid.actor) : NULL;

    return actor == NULL ? NULL : actor->state;
}

/* ---- turns ---- */

void mu__ignore(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    (void)ctx;
    (void)state;
    (void)msg;
}

static struct mu__ctx context_of(struct mu__kernel *kernel, const struct actor *actor)
{
    return (struct mu__ctx){kernel, {MU__NODE_SELF, actor->number}, NULL};
}

/* `ctx` serves all messages of the actor. */
static inline void handle(struct mu__ctx *ctx, struct actor *actor, struct mu__msg *msg)
{
    struct mu__kernel *kernel = ctx->kernel;
    mu__handle_fn fn = actor->dispatch->handle[msg->kind];

    ctx->current = msg;
    kernel->counters.messages++;
    if (fn != NULL)
        fn(ctx, actor->state, msg);
    else
        kernel->counters.dead_letters++;
    mu__pool_put(&kernel->pool, ctx->current);
}

/* Handles at most `budget` messages of one actor; returns how many. The actor is out of
 * the list but stays marked as ready, so that mail to itself does not list it twice. */
static int run_actor(struct mu__kernel *kernel, struct actor *actor, int budget)
{
    struct mu__ctx ctx = context_of(kernel, actor);
    int count = 0;

    kernel->running = actor;
    while (count < budget && actor->first != NULL && !actor->stopping) {
        struct mu__msg *msg = pop_message(kernel, actor);

        if (kernel->behind_count == 0 || !mu__reads_hold(kernel, msg))
            handle(&ctx, actor, msg);
        count++;
    }
    end_batch(&ctx, actor);
    kernel->running = NULL;
    actor->ready = false;
    if (actor->stopping)
        end_actor(kernel, actor);
    else if (actor->first != NULL)
        make_ready(kernel, actor);
    return count;
}

void mu__kernel_handle(struct mu__kernel *kernel, struct actor *actor,
                       struct mu__msg *msg)
{
    struct mu__ctx ctx = context_of(kernel, actor);

    kernel->running = actor;
    handle(&ctx, actor, msg);
    end_batch(&ctx, actor);
    kernel->running = NULL;
    if (!actor->stopping)
        return;
    if (actor->ready)
        mu__list_remove(&kernel->ready, &actor->ready_node);
    actor->ready = false;
    end_actor(kernel, actor);
}

static void fire_timers(struct mu__kernel *kernel)
{
    uint64_t order_limit = kernel->timers.order_next;
    struct mu__msg *msg;

    while ((msg = mu__timers_fire(&kernel->timers, kernel->turn_ms, order_limit)) != NULL)
        mu__kernel_post(kernel, msg);
}

bool mu__kernel_is_in_turn(const struct mu__kernel *kernel)
{
    return kernel->in_turn;
}

void mu__kernel_turn(struct mu__kernel *kernel)
{
    int budget = MU__TURN_MESSAGES;
    uint64_t next_ms;

    assert(!kernel->in_turn);
    kernel->in_turn = true;
    kernel->turn_ms = kernel->world->ops->now_ms(kernel->world);
    kernel->counters.turns++;
    fire_timers(kernel);
    budget -= mu__reads_run(kernel);
    while (budget > 0 && !mu__list_is_empty(&kernel->ready)) {
        struct actor *actor =
            MU__LIST_ENTRY(mu__list_pop(&kernel->ready), struct actor, ready_node);

        budget -=
            run_actor(kernel, actor, budget < MU__ACTOR_BATCH ? budget : MU__ACTOR_BATCH);
    }
    kernel->in_turn = false;

    next_ms = mu__timers_next_ms(&kernel->timers);
    if (!mu__list_is_empty(&kernel->ready) || mu__reads_are_due(kernel))
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
        mu__kernel_wake(kernel, due_ms);
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

/* ---- making and freeing ---- */

int mu__kernel_new(struct mu__world *world, const struct mu__schema *schema,
                   struct mu__kernel **ret_kernel)
{
    uint16_t kinds_end = mu__schema_kinds_end(schema);
    struct mu__kernel *kernel =
        calloc(1, sizeof *kernel + kinds_end * sizeof kernel->body_sizes[0]);

    if (kernel == NULL)
        return -MU_ENOMEM;
    kernel->kinds_end = kinds_end;
    for (uint16_t kind = 0; kind < kinds_end; kind++)
        if (mu__schema_name(schema, kind) != NULL)
            kernel->body_sizes[kind] = mu__schema_body_size(schema, kind);
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

void mu__kernel_free(struct mu__kernel *kernel)
{
    if (kernel == NULL)
        return;
    assert(!kernel->in_turn);
    kernel->in_turn = true; /* what done() sends needs no wake */
    kernel->turn_ms = kernel->world->ops->now_ms(kernel->world);
    for (uint32_t i = 0; i < kernel->table_size; i++)
        if (kernel->table[i] != NULL)
            end_actor(kernel, kernel->table[i]);
    mu__timers_done(&kernel->timers, &kernel->pool);
    mu__monitors_free(kernel, &kernel->remote_monitors);
    while (kernel->dispatches != NULL) {
        struct dispatch *next = kernel->dispatches->next;

        free(kernel->dispatches);
        kernel->dispatches = next;
    }
    mu__kernel_free_nodes(kernel);
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

/* ---- access to the world ---- */

uint64_t mu__turn(const struct mu__ctx *ctx)
{
    return ctx->kernel->counters.turns;
}

uint64_t mu__now_ms(struct mu__ctx *ctx)
{
    const struct mu__kernel *kernel = ctx->kernel;

    return kernel->in_turn ? kernel->turn_ms : kernel->world->ops->now_ms(kernel->world);
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
    struct actor *actor = mu__kernel_find(kernel, ctx->self.actor);
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
