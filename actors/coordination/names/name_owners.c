/* Owners of names: placing, starting again, leases. */
#include "actors/coordination/names/coord_names.h"
#include "actors/coordination/replies.h"
#include "actors/packing.h"
#include "runtime/message/pool.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PLACING_AGAIN_MS = 1000 }; /* without news that somebody can have a name */

uint64_t mu__coord_names_lease(const struct coordination *c)
{
    uint32_t ms = c->config.reconnect_ms;

    if (ms < COORD_NAME_LEASE_MIN_MS)
        return COORD_NAME_LEASE_MIN_MS;
    return ms > COORD_NAME_LEASE_MAX_MS ? COORD_NAME_LEASE_MAX_MS : ms;
}

/* ---- processes ---- */

struct name_host *mu__coord_name_host(struct mu__ctx *ctx, struct coordination *c,
                                      uint64_t incarnation, const char *type,
                                      uint32_t index)
{
    struct coord_names *names = c->names;
    struct name_host *host = mu__map_get(&names->hosts, incarnation);

    if (host != NULL)
        return host;
    host = calloc(1, sizeof *host);
    if (host == NULL)
        return NULL;
    host->incarnation = incarnation;
    host->holds = true;
    host->index = index;
    host->renewed_ms = mu__coord_clock(ctx, c);
    (void)snprintf(host->type, sizeof host->type, "%s", type);
    if (mu__map_set(&names->hosts, incarnation, host) != 0) {
        free(host);
        return NULL;
    }
    names->lease_ms =
        mu__coord_earlier(names->lease_ms, host->renewed_ms + mu__coord_names_lease(c));
    return host;
}

static void free_name_host(struct coordination *c, struct name_host *host)
{
    (void)mu__map_remove(&c->names->hosts, host->incarnation);
    free((void *)host->types.data);
    free(host);
}

/* All that it has ends. If its link is up, it gets names again once it has renewed its
 * lease; else it is forgotten, until it is heard again. */
static void lose_name_host(struct mu__ctx *ctx, struct coordination *c,
                           struct name_host *host, const char *why)
{
    while (!mu__list_is_empty(&host->names))
        mu__coord_name_ended(ctx, c,
                             MU__LIST_FIRST(&host->names, struct coord_name, of_owner),
                             MU__NAME_LOST, -MU_EUNAVAILABLE, why);
    host->holds = false;
    if (!host->is_up)
        free_name_host(c, host);
}

void mu__coord_names_node_down(struct coordination *c, uint32_t node)
{
    const struct coord_peer *peer = mu__coord_peer(c, node);
    struct name_host *host =
        peer == NULL ? NULL : mu__map_get(&c->names->hosts, peer->incarnation);

    if (host != NULL)
        host->is_up = false;
}

static void end_if_down(struct mu__ctx *ctx, struct coordination *c,
                        struct name_host *host)
{
    char why[COORD_NAME_WORDS];

    if (host->is_up)
        return;
    (void)snprintf(why, sizeof why, "the process of /job:%s/task:%" PRIu32 " has ended",
                   host->type, host->index);
    lose_name_host(ctx, c, host, why);
}

/* The hosts of a map; a host may be freed by `visit`, so they are listed before. */
static void each_host(struct mu__ctx *ctx, struct coordination *c,
                      bool (*is_meant)(const struct coordination *c,
                                       const struct name_host *host, const void *arg),
                      const void *arg,
                      void (*visit)(struct mu__ctx *ctx, struct coordination *c,
                                    struct name_host *host))
{
    const struct mu__map *hosts = &c->names->hosts;
    struct name_host *meant;

    do {
        meant = NULL;
        for (size_t i = 0; i < hosts->capacity && meant == NULL; i++)
            if (hosts->entries[i].key != 0 && is_meant(c, hosts->entries[i].value, arg))
                meant = hosts->entries[i].value;
        if (meant != NULL)
            visit(ctx, c, meant);
    } while (meant != NULL);
}

struct task_meant {
    struct mu__view type;
    uint32_t index;
};

static bool is_down_task(const struct coordination *c, const struct name_host *host,
                         const void *arg)
{
    const struct task_meant *meant = arg;

    (void)c;
    return !host->is_up && host->index == meant->index &&
           mu__view_is(meant->type, host->type);
}

void mu__coord_names_process_ended(struct mu__ctx *ctx, struct coordination *c,
                                   struct mu__view type, uint32_t index)
{
    const struct task_meant meant = {type, index};

    each_host(ctx, c, is_down_task, &meant, end_if_down);
}

/* ---- leases ---- */

struct lease_end {
    uint64_t now_ms;
};

static bool is_lease_over(const struct coordination *c, const struct name_host *host,
                          const void *arg)
{
    const struct lease_end *end = arg;

    return host->holds && host->renewed_ms + mu__coord_names_lease(c) <= end->now_ms;
}

static void end_lease(struct mu__ctx *ctx, struct coordination *c, struct name_host *host)
{
    char why[COORD_NAME_WORDS];

    (void)snprintf(why, sizeof why,
                   "/job:%s/task:%" PRIu32
                   " did not renew its lease of names for %" PRIu64 " ms",
                   host->type, host->index, mu__coord_names_lease(c));
    lose_name_host(ctx, c, host, why);
}

static void review_leases(struct mu__ctx *ctx, struct coordination *c)
{
    const struct lease_end end = {mu__coord_clock(ctx, c)};
    struct coord_names *names = c->names;

    if (names->lease_ms > end.now_ms)
        return;
    each_host(ctx, c, is_lease_over, &end, end_lease);
    names->lease_ms = UINT64_MAX;
    for (size_t i = 0; i < names->hosts.capacity; i++) {
        const struct name_host *host =
            names->hosts.entries[i].key == 0 ? NULL : names->hosts.entries[i].value;

        if (host != NULL && host->holds)
            names->lease_ms = mu__coord_earlier(
                names->lease_ms, host->renewed_ms + mu__coord_names_lease(c));
    }
}

/* ---- giving and taking ---- */

void mu__coord_name_give(struct coord_name *name, struct name_host *host)
{
    name->owner = host;
    name->is_starting = true;
    mu__list_append(&host->names, &name->of_owner);
    host->actors++;
    host->starting++;
}

void mu__coord_name_started(struct coord_name *name)
{
    if (name->is_starting)
        name->owner->starting--;
    name->is_starting = false;
}

static void take_name_from_owner(struct coord_name *name)
{
    mu__coord_name_started(name);
    name->owner->actors--;
    mu__list_remove(&name->owner->names, &name->of_owner);
    name->owner = NULL;
    name->actor = 0;
    name->load.mailbox = 0;
}

void mu__coord_name_wait(struct coordination *c, struct coord_name *name, uint64_t due_ms)
{
    name->state = MU__NAME_WAITS;
    name->due_ms = due_ms;
    name->is_waiting = true;
    mu__list_append(&c->names->waiting, &name->waiting);
    c->names->placing_ms = mu__coord_earlier(c->names->placing_ms, due_ms);
}

void mu__coord_name_unwait(struct coordination *c, struct coord_name *name)
{
    name->is_waiting = false;
    mu__list_remove(&c->names->waiting, &name->waiting);
}

static void give_name_up(struct mu__ctx *ctx, struct coordination *c,
                         struct coord_name *name)
{
    uint64_t revision;
    mu_error error;

    name->state = MU__NAME_FAILED;
    if (mu__coord_name_write(ctx, c, name, &error, &revision) == 0)
        name->epoch = revision;
    mu__log(ctx, MU__LOG_WARN, "actor \"%s\" is not started any more: %s", name->text,
            name->why);
    mu__coord_name_news(ctx, c, name);
}

void mu__coord_name_ended(struct mu__ctx *ctx, struct coordination *c,
                          struct coord_name *name, enum mu__name_end end, int code,
                          const char *why)
{
    uint64_t now_ms = mu__coord_clock(ctx, c);
    uint64_t delay_ms = 0;
    enum mu__name_verdict verdict;

    take_name_from_owner(name);
    c->names->placing_ms = now_ms;
    if (end == MU__NAME_BROKEN || end == MU__NAME_LOST) {
        name->code = code;
        (void)snprintf(name->why, sizeof name->why, "%s", why);
    }
    verdict = name->is_stopping
                  ? MU__NAME_FORGET
                  : mu__name_judge(&name->definition.limits, end, now_ms, mu__random(ctx),
                                   &name->history, &delay_ms);
    if (verdict == MU__NAME_FORGET) {
        mu__coord_name_unmake(ctx, c, name);
    } else if (verdict == MU__NAME_GIVE_UP) {
        give_name_up(ctx, c, name);
    } else {
        name->restarts += end != MU__NAME_MOVED;
        mu__coord_name_wait(c, name, now_ms + delay_ms);
        mu__coord_name_news(ctx, c, name);
    }
}

/* ---- placing ---- */

static struct name_host *choose_host(const struct coordination *c,
                                     const struct coord_name *name)
{
    const struct name_definition *definition = &name->definition;
    const struct mu__map *hosts = &c->names->hosts;
    struct mu__name_candidate best;
    struct name_host *chosen = NULL;

    for (size_t i = 0; i < hosts->capacity; i++) {
        struct name_host *host =
            hosts->entries[i].key == 0 ? NULL : hosts->entries[i].value;
        struct mu__name_candidate offer;

        if (host == NULL || !host->is_up || !host->holds)
            continue;
        offer = (struct mu__name_candidate){
            .type = host->type,
            .index = host->index,
            .offers = mu__name_types_have(host->types, mu__view_str(definition->type)) &&
                      (definition->task_type[0] == '\0' ||
                       strcmp(definition->task_type, host->type) == 0),
            .drains = host->drains,
            .actors = host->actors,
            .starting = host->starting,
        };
        if (!mu__name_is_better(&offer, chosen == NULL ? NULL : &best))
            continue;
        best = offer;
        chosen = host;
    }
    return chosen;
}

static void send_name_start(struct mu__ctx *ctx, struct coordination *c,
                            const struct coord_name *name)
{
    const struct name_definition *definition = &name->definition;
    struct mu__msg *msg =
        mu__pool_get(mu__kernel_pool(ctx->kernel), MU__NAME_START,
                     sizeof(struct mu__name_start) + 2 * (MU__ACTOR_NAME_MAX + 1));
    struct mu__name_start *body;

    if (msg == NULL)
        return;
    body = mu__body(msg);
    body->name = mu__view_str(name->text);
    body->epoch = name->epoch;
    body->type = mu__view_str(definition->type);
    body->flags = definition->flags | (name->is_born ? MU__NAME_BORN : 0);
    body->mailbox_max = definition->mailbox_max;
    body->mailbox_bytes_max = definition->mailbox_bytes_max;
    body->made = name->made;
    body->args = definition->args;
    (void)mu__pack_view(mu__pack_view((uint8_t *)(body + 1), &body->name), &body->type);
    if (definition->backing != NULL)
        msg->backing = mu__buf_ref(definition->backing);
    mu__coord_send(ctx, c, name->owner->node, msg);
}

/* False: nobody can have it now. */
static bool start_name_at_best(struct mu__ctx *ctx, struct coordination *c,
                               struct coord_name *name)
{
    struct name_host *host = choose_host(c, name);
    mu_error error;

    if (host == NULL) {
        if (name->code == 0 && name->why[0] == '\0') {
            (void)snprintf(name->why, sizeof name->why,
                           "no task that is connected offers actors of type \"%s\"%s%s",
                           name->definition.type,
                           name->definition.task_type[0] == '\0' ? "" : " on ",
                           name->definition.task_type);
            mu__coord_name_news(ctx, c, name);
        }
        return false;
    }
    mu__coord_name_unwait(c, name);
    mu__coord_name_give(name, host);
    if (mu__coord_name_write(ctx, c, name, &error, &name->epoch) == 0) {
        send_name_start(ctx, c, name);
        return true;
    }
    mu__log(ctx, MU__LOG_WARN, "actor \"%s\" cannot be started: %s", name->text,
            error.message);
    take_name_from_owner(name);
    mu__coord_name_wait(c, name, mu__coord_clock(ctx, c) + PLACING_AGAIN_MS);
    return true;
}

static void start_waiting_names(struct mu__ctx *ctx, struct coordination *c)
{
    uint64_t now_ms = mu__coord_clock(ctx, c);
    struct coord_names *names = c->names;
    struct coord_name *next;

    if (names->placing_ms > now_ms)
        return;
    names->placing_ms = UINT64_MAX;
    for (struct coord_name *name =
             MU__LIST_FIRST(&names->waiting, struct coord_name, waiting);
         name != NULL; name = next) {
        next = MU__LIST_NEXT(name, struct coord_name, waiting);
        if (name->due_ms > now_ms)
            names->placing_ms = mu__coord_earlier(names->placing_ms, name->due_ms);
        else if (!start_name_at_best(ctx, c, name))
            names->placing_ms =
                mu__coord_earlier(names->placing_ms, now_ms + PLACING_AGAIN_MS);
    }
}

/* ---- the clock ---- */

void mu__coord_names_tick(struct mu__ctx *ctx, struct coordination *c)
{
    mu__coord_names_read(ctx, c);
    review_leases(ctx, c);
    start_waiting_names(ctx, c);
}

uint64_t mu__coord_names_due_ms(const struct coordination *c)
{
    return mu__coord_earlier(c->names->lease_ms, c->names->placing_ms);
}
