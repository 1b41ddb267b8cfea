/* Notifications of ended actors and nodes: monitors of single actors, and watchers of all
 * nodes. */
#include "runtime/kernel/internal.h"

#include "runtime/base/array.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

struct node *mu__kernel_find_node(const struct mu__kernel *kernel, uint32_t number)
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

/* ---- monitors ---- */

static void notify_down(struct mu__kernel *kernel, struct monitor *monitor)
{
    mu__kernel_post(kernel, monitor->down);
    free(monitor);
}

static struct monitor *pop_monitor(struct mu__list *monitors)
{
    struct mu__list_node *node = mu__list_pop(monitors);

    return node == NULL ? NULL : MU__LIST_ENTRY(node, struct monitor, node);
}

static void monitor_free(struct mu__kernel *kernel, struct monitor *monitor)
{
    mu__pool_put(&kernel->pool, monitor->down);
    free(monitor);
}

void mu__monitors_notify(struct mu__kernel *kernel, struct mu__list *monitors)
{
    struct monitor *monitor;

    while ((monitor = pop_monitor(monitors)) != NULL)
        notify_down(kernel, monitor);
}

void mu__monitors_free(struct mu__kernel *kernel, struct mu__list *monitors)
{
    struct monitor *monitor;

    while ((monitor = pop_monitor(monitors)) != NULL)
        monitor_free(kernel, monitor);
}

void mu__monitors_drop_remote(struct mu__kernel *kernel, uint32_t watcher)
{
    struct monitor *next;

    for (struct monitor *m =
             MU__LIST_FIRST(&kernel->remote_monitors, struct monitor, node);
         m != NULL; m = next) {
        next = MU__LIST_NEXT(m, struct monitor, node);
        if (m->down->to.actor == watcher) {
            mu__list_remove(&kernel->remote_monitors, &m->node);
            monitor_free(kernel, m);
        }
    }
}

static struct mu__list *monitors_of(struct mu__kernel *kernel, mu__pid pid)
{
    struct actor *actor;

    if (pid.node != MU__NODE_SELF)
        return mu__kernel_find_node(kernel, pid.node) == NULL ? NULL
                                                              : &kernel->remote_monitors;
    actor = mu__kernel_find(kernel, pid.actor);
    return actor == NULL || actor->stopping ? NULL : &actor->monitors;
}

int mu__monitor(struct mu__ctx *ctx, mu__pid pid)
{
    struct mu__kernel *kernel = ctx->kernel;
    struct mu__list *list = monitors_of(kernel, pid);
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
        mu__kernel_wake(kernel, mu__now_ms(ctx));
        notify_down(kernel, monitor);
        return 0;
    }
    mu__list_prepend(list, &monitor->node);
    return 0;
}

/* ---- nodes ---- */

/* Copy two strings into one buffer, which the messages to all watchers share. */
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

/* Send a message whose body has views into `words`. */
static int notify(struct mu__kernel *kernel, uint32_t watcher, uint16_t kind,
                  const void *body, struct mu__buf *words)
{
    size_t size = kernel->body_sizes[kind];
    struct mu__msg *msg = mu__pool_get(&kernel->pool, kind, size);

    if (msg == NULL)
        return -MU_ENOMEM;
    memcpy(msg->body, body, size);
    msg->backing = mu__buf_ref(words);
    msg->to.actor = watcher;
    mu__kernel_post(kernel, msg);
    return 0;
}

static void say_no_memory(struct mu__kernel *kernel, const char *what)
{
    kernel->world->ops->log(kernel->world, MU__LOG_ERROR, "kernel", what);
}

/* The same to all watchers; `words` is NULL when there was no memory for them. */
static void notify_watchers(struct mu__kernel *kernel, uint16_t kind, const void *body,
                            struct mu__buf *words)
{
    bool is_lost = words == NULL;

    for (uint32_t i = 0; words != NULL && i < kernel->table_size; i++)
        if (kernel->table[i] != NULL && kernel->table[i]->watches_nodes)
            is_lost |= notify(kernel, kernel->table[i]->number, kind, body, words) != 0;
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
    struct actor *actor = mu__kernel_find(kernel, ctx->self.actor);

    actor->watches_nodes = true;
    for (size_t i = 0; i < kernel->nodes_count; i++)
        if (kernel->nodes[i].words != NULL) {
            const struct mu__node_up body = up_of(&kernel->nodes[i]);

            if (notify(kernel, ctx->self.actor, MU__NODE_UP, &body,
                       kernel->nodes[i].words) != 0)
                return -MU_ENOMEM;
        }
    if (kernel->nodes_count > 0)
        mu__kernel_wake(kernel, mu__now_ms(ctx));
    return 0;
}

/* Remove lost nodes once they are half of the array, so that losing ten thousand at once
 * takes linear time. */
static void drop_lost_nodes(struct mu__kernel *kernel)
{
    size_t remaining = 0;

    if (kernel->nodes_lost * 2 < kernel->nodes_count)
        return;
    for (size_t i = 0; i < kernel->nodes_count; i++)
        if (kernel->nodes[i].words != NULL)
            kernel->nodes[remaining++] = kernel->nodes[i];
    kernel->nodes_count = remaining;
    kernel->nodes_lost = 0;
}

void mu__kernel_node_up(struct mu__kernel *kernel, uint32_t node, const char *type,
                        uint32_t index, uint64_t incarnation, const char *address)
{
    struct node added = {.number = node,
                         .index = index,
                         .incarnation = incarnation,
                         .own_right = MU__RIGHT_ALL};
    struct mu__node_up body;

    assert(kernel->nodes_count == 0 ||
           kernel->nodes[kernel->nodes_count - 1].number < node);
    added.words = join(type, address, &added.type, &added.address);
    if (added.words == NULL || !MU__ARRAY_RESERVE(&kernel->nodes, &kernel->nodes_capacity,
                                                  kernel->nodes_count, 16)) {
        mu__buf_unref(added.words);
        say_no_memory(kernel, "out of memory: a node that came up goes unnoticed");
        return;
    }
    kernel->nodes[kernel->nodes_count++] = added;
    body = up_of(&added);
    notify_watchers(kernel, MU__NODE_UP, &body, added.words);
}

/* Where it is kept; NULL: the node is not up. */
static struct mu__process **process_slot(struct mu__kernel *kernel, uint32_t node)
{
    struct node *known = mu__kernel_find_node(kernel, node);

    if (node == MU__NODE_SELF)
        return &kernel->own_process;
    return known == NULL ? NULL : &known->process;
}

void mu__kernel_node_process(struct mu__kernel *kernel, uint32_t node,
                             const struct mu__process *process)
{
    struct mu__process **slot = process_slot(kernel, node);

    if (slot == NULL)
        return;
    if (*slot == NULL)
        *slot = malloc(sizeof **slot);
    if (*slot != NULL)
        **slot = *process;
}

const struct mu__process *mu__process_of(const struct mu__ctx *ctx, uint32_t node)
{
    struct mu__process **slot = process_slot(ctx->kernel, node);

    return slot == NULL ? NULL : *slot;
}

void mu__kernel_node_right(struct mu__kernel *kernel, uint32_t node, enum mu__right right)
{
    struct node *known = mu__kernel_find_node(kernel, node);

    if (known == NULL)
        return;
    known->own_right = right;
    kernel->has_limits = kernel->has_limits || right < MU__RIGHT_TASK;
}

bool mu__kernel_lacks_right(const struct mu__kernel *kernel, uint32_t node, uint16_t kind)
{
    const struct node *known =
        kernel->has_limits ? mu__kernel_find_node(kernel, node) : NULL;

    return known != NULL && known->own_right < kernel->schema->rows[kind].right;
}

bool mu__send_is_forbidden(const struct mu__ctx *ctx, uint32_t node, uint16_t kind,
                           mu_error *ret_error)
{
    const struct mu__schema *schema = ctx->kernel->schema;

    if (!mu__kernel_lacks_right(ctx->kernel, node, kind))
        return false;
    (void)mu_error_set(
        ret_error, -MU_EPERMISSION,
        "%s needs the right \"%s\", and this node has a key or a certificate for \"%s\"",
        mu__schema_name(schema, kind), mu__right_name(schema->rows[kind].right),
        mu__right_name(mu__kernel_find_node(ctx->kernel, node)->own_right));
    return true;
}

static void remote_monitors_down(struct mu__kernel *kernel, uint32_t node)
{
    struct monitor *next;

    for (struct monitor *m =
             MU__LIST_FIRST(&kernel->remote_monitors, struct monitor, node);
         m != NULL; m = next) {
        next = MU__LIST_NEXT(m, struct monitor, node);
        if (m->target.node == node) {
            mu__list_remove(&kernel->remote_monitors, &m->node);
            notify_down(kernel, m);
        }
    }
}

void mu__kernel_node_down(struct mu__kernel *kernel, uint32_t node, const char *reason,
                          bool left)
{
    struct node *lost = mu__kernel_find_node(kernel, node);
    struct mu__node_down body = {.node = node, .left = left};
    struct mu__view none;
    struct mu__buf *words;

    if (lost == NULL)
        return;
    mu__reads_free(kernel, lost);
    free(lost->process);
    lost->process = NULL;
    mu__buf_unref(lost->words);
    lost->words = NULL;
    kernel->nodes_lost++;
    drop_lost_nodes(kernel);
    remote_monitors_down(kernel, node);
    words = join(reason, "", &body.reason, &none);
    notify_watchers(kernel, MU__NODE_DOWN, &body, words);
    mu__buf_unref(words);
}

static void notify_trouble(struct mu__kernel *kernel, const char *type, uint32_t index,
                           const char *reason, bool final)
{
    struct mu__node_trouble body = {.index = index, .final = final};
    struct mu__buf *words = join(type, reason, &body.type, &body.reason);

    notify_watchers(kernel, MU__NODE_TROUBLE, &body, words);
    mu__buf_unref(words);
}

void mu__kernel_node_trouble(struct mu__kernel *kernel, const char *type, uint32_t index,
                             const char *reason)
{
    notify_trouble(kernel, type, index, reason, false);
}

void mu__kernel_node_refused(struct mu__kernel *kernel, const char *type, uint32_t index,
                             const char *reason)
{
    notify_trouble(kernel, type, index, reason, true);
}

void mu__kernel_free_nodes(struct mu__kernel *kernel)
{
    for (size_t i = 0; i < kernel->nodes_count; i++) {
        mu__reads_free(kernel, &kernel->nodes[i]);
        mu__buf_unref(kernel->nodes[i].words);
        free(kernel->nodes[i].process);
    }
    free(kernel->nodes);
    free(kernel->own_process);
}
