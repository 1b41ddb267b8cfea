#include "actors/keeper/keeper_items.h"

#include "actors/keep.h"
#include "actors/keeper/keeper_bounds.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum {
    ITEM_BYTES = 512, /* beside its value and message */
    SPARE_SHARE = 4   /* beyond the bound, for what was under way */
};

static const struct mu__keep_item *item_of(const struct mu__msg *msg)
{
    return (const void *)msg->body;
}

static uint64_t count_item_bytes(const struct mu__keep_item *item)
{
    return (uint64_t)item->value.head_size + item->value.tail_size + item->message.size +
           ITEM_BYTES;
}

uint64_t mu__kept_item_bytes(const struct mu__msg *item)
{
    return count_item_bytes(item_of(item));
}

/* ---- lists of items ---- */

static void append_kept_item(struct items *items, struct mu__msg *msg)
{
    msg->next = NULL;
    if (items->first == NULL)
        items->first = msg;
    else
        items->last->next = msg;
    items->last = msg;
}

static void drop_item(struct kept_actors *actors, struct kept_actor *actor,
                      struct mu__msg *msg)
{
    uint64_t bytes = count_item_bytes(item_of(msg));

    actor->bytes -= bytes;
    actors->bytes -= bytes;
    mu__kept_walk_item_goes(actors, msg);
    mu__pool_put(actors->pool, msg);
}

static void drop_kept_items(struct kept_actors *actors, struct kept_actor *actor,
                            struct items *items)
{
    while (items->first != NULL) {
        struct mu__msg *msg = items->first;

        items->first = msg->next;
        drop_item(actors, actor, msg);
    }
    items->last = NULL;
}

/* ---- senders ---- */

static void raise_sender(struct kept_actors *actors, struct kept_actor *actor,
                         struct kept_sender *sender, uint64_t base)
{
    struct items *answers = &sender->answers;

    if (sender->base < base)
        sender->base = base;
    while (answers->first != NULL && item_of(answers->first)->call < sender->base) {
        struct mu__msg *msg = answers->first;

        answers->first = msg->next;
        drop_item(actors, actor, msg);
    }
    if (answers->first == NULL)
        answers->last = NULL;
}

static void free_sender(struct kept_actors *actors, struct kept_actor *actor,
                        struct kept_sender *sender)
{
    if (sender == NULL)
        return;
    mu__kept_walk_sender_goes(actors, sender);
    mu__list_remove(&actor->senders_all, &sender->node);
    drop_kept_items(actors, actor, &sender->answers);
    free(sender);
}

static struct kept_sender *get_sender(struct kept_actor *actor, uint64_t id)
{
    struct kept_sender *sender = mu__map_get(&actor->senders, id);

    if (sender != NULL)
        return sender;
    sender = calloc(1, sizeof *sender);
    if (sender == NULL)
        return NULL;
    sender->id = id;
    sender->order = ++actor->senders_made;
    if (mu__map_set(&actor->senders, id, sender) != 0) {
        free(sender);
        return NULL;
    }
    mu__list_append(&actor->senders_all, &sender->node);
    return sender;
}

static void put_answer(struct kept_actors *actors, struct kept_actor *actor,
                       struct mu__msg *msg)
{
    const struct mu__keep_item *item = item_of(msg);
    struct kept_sender *sender = mu__map_get(&actor->senders, item->sender);

    raise_sender(actors, actor, sender, item->base);
    if (item->call < sender->base) {
        drop_item(actors, actor, msg);
        return;
    }
    append_kept_item(&sender->answers, msg);
    mu__kept_walk_item_came(actors, actor, sender, msg);
}

/* ---- actors ---- */

struct kept_actor *mu__kept_actor_find(const struct kept_actors *actors,
                                       struct mu__view name)
{
    return (struct kept_actor *)mu__text_map_find(&actors->by_name, name);
}

int mu__kept_actor_add(struct kept_actors *actors, struct mu__view name,
                       struct kept_actor **ret_actor)
{
    struct kept_actor *actor;

    if (actors->count >= MU__KEPT_ACTORS_MAX)
        return -MU_EEXHAUSTED;
    actor = calloc(1, sizeof *actor + name.size + 1);
    if (actor == NULL)
        return -MU_ENOMEM;
    memcpy(actor->name, name.data, name.size);
    actor->named.text = mu__view_str(actor->name);
    actor->named.text.size = name.size;
    mu__map_seed(&actor->senders, actors->by_name.secret);
    if (mu__text_map_add(&actors->by_name, &actor->named) != 0) {
        free(actor);
        return -MU_ENOMEM;
    }
    actors->count++;
    mu__list_append(&actors->all, &actor->node);
    mu__kept_walk_actor_came(actors, actor);
    *ret_actor = actor;
    return 0;
}

void mu__kept_actor_clear(struct kept_actors *actors, struct kept_actor *actor)
{
    drop_kept_items(actors, actor, &actor->kept);
    drop_kept_items(actors, actor, &actor->open);
    while (!mu__list_is_empty(&actor->senders_all))
        free_sender(actors, actor,
                    MU__LIST_FIRST(&actor->senders_all, struct kept_sender, node));
    mu__map_done(&actor->senders);
}

static void free_kept_actor(struct kept_actors *actors, struct kept_actor *actor)
{
    mu__kept_actor_clear(actors, actor);
    free(actor);
}

void mu__kept_actor_remove(struct kept_actors *actors, struct kept_actor *actor)
{
    mu__kept_walk_actor_goes(actors, actor);
    mu__list_remove(&actors->all, &actor->node);
    mu__text_map_remove(&actors->by_name, &actor->named);
    actors->count--;
    free_kept_actor(actors, actor);
}

void mu__kept_actors_done(struct kept_actors *actors)
{
    struct kept_actor *actor;

    mu__kept_walk_end(actors);
    while ((actor = MU__LIST_FIRST(&actors->all, struct kept_actor, node)) != NULL) {
        mu__list_remove(&actors->all, &actor->node);
        free_kept_actor(actors, actor);
    }
    actors->count = 0;
    mu__text_map_done(&actors->by_name);
}

void mu__kept_actor_fence(struct kept_actors *actors, struct kept_actor *actor,
                          const struct mu__keep_fence *fence)
{
    drop_kept_items(actors, actor, &actor->open);
    actor->epoch = fence->epoch;
    actor->owner = fence->owner;
    actor->last = actor->flushed = fence->number;
}

/* ---- putting items ---- */

static int check_answer(const struct kept_actor *actor, const struct mu__keep_item *item,
                        mu_error *ret_error)
{
    if (item->sender == 0 || item->call == 0 || item->base > item->call ||
        item->call - item->base >= MU__KEPT_CALLS_SPAN)
        return mu_error_set(ret_error, -MU_EINVALID,
                            "call %" PRIu64 " with base %" PRIu64 " of a sender is none",
                            item->call, item->base);
    if (mu__map_get(&actor->senders, item->sender) == NULL &&
        actor->senders.count >= MU__KEPT_SENDERS_MAX)
        return mu_error_set(ret_error, -MU_EEXHAUSTED,
                            "%d processes have called the actor, and may ask again",
                            MU__KEPT_SENDERS_MAX);
    return 0;
}

static int check_room(const struct kept_actors *actors, const struct kept_actor *actor,
                      uint64_t bytes, mu_error *ret_error)
{
    if (actor->bytes + bytes > MU__KEPT_ACTOR_BYTES)
        return mu_error_set(ret_error, -MU_EEXHAUSTED,
                            "more than %d MiB are kept of the actor: it should record "
                            "its whole state now and then",
                            MU__KEPT_ACTOR_BYTES >> 20);
    if (actors->bytes + bytes > actors->bytes_max + actors->bytes_max / SPARE_SHARE)
        return mu_error_set(ret_error, -MU_EEXHAUSTED,
                            "more than %" PRIu64 " bytes are kept of all actors",
                            actors->bytes_max);
    return 0;
}

int mu__kept_actor_check(const struct kept_actors *actors, const struct kept_actor *actor,
                         const struct mu__keep_item *item, mu_error *ret_error)
{
    int rv = 0;

    if (item->kind == MU__KEPT_END)
        return mu_error_set(ret_error, -MU_EINVALID, "an item of an actor has no kind");
    if (item->kind != MU__KEPT_FORGET)
        rv = check_room(actors, actor, count_item_bytes(item), ret_error);
    if (rv != 0)
        return rv;
    return item->kind == MU__KEPT_ANSWER ? check_answer(actor, item, ret_error) : 0;
}

static void keep_item(struct kept_actors *actors, struct kept_actor *actor,
                      struct mu__msg *msg)
{
    append_kept_item(&actor->kept, msg);
    mu__kept_walk_item_came(actors, actor, NULL, msg);
}

/* The item counts from now on. A sender that was forgotten in the same turn has no
 * window: its calls have ended. */
static void apply_kept_item(struct kept_actors *actors, struct kept_actor *actor,
                            struct mu__msg *msg)
{
    struct mu__keep_item *item = mu__body(msg);

    item->more = false;
    if (item->kind == MU__KEPT_FORGET) {
        free_sender(actors, actor, mu__map_remove(&actor->senders, item->sender));
        mu__kept_walk_forgets(actors, actor, msg);
    }
    if (item->kind == MU__KEPT_SNAPSHOT)
        drop_kept_items(actors, actor, &actor->kept);
    if (item->kind == MU__KEPT_SNAPSHOT || item->kind == MU__KEPT_RECORD)
        keep_item(actors, actor, msg);
    else if (item->kind == MU__KEPT_ANSWER &&
             mu__map_get(&actor->senders, item->sender) != NULL)
        put_answer(actors, actor, msg);
    else
        drop_item(actors, actor, msg);
}

static void apply_turn(struct kept_actors *actors, struct kept_actor *actor)
{
    while (actor->open.first != NULL) {
        struct mu__msg *msg = actor->open.first;

        actor->open.first = msg->next;
        apply_kept_item(actors, actor, msg);
    }
    actor->open.last = NULL;
}

static struct mu__msg *copy_item(const struct kept_actors *actors,
                                 const struct mu__msg *msg)
{
    struct mu__msg *copy =
        mu__pool_get(actors->pool, MU__KEEP_ITEM, sizeof(struct mu__keep_item));

    if (copy == NULL)
        return NULL;
    memcpy(copy->body, msg->body, sizeof(struct mu__keep_item));
    if (mu__msg_keep(actors->schema, copy) == 0)
        return copy;
    mu__pool_put(actors->pool, copy);
    return NULL;
}

int mu__kept_actor_put(struct kept_actors *actors, struct kept_actor *actor,
                       const struct mu__msg *msg)
{
    const struct mu__keep_item *item = item_of(msg);
    struct mu__msg *copy;

    if (item->kind == MU__KEPT_ANSWER && get_sender(actor, item->sender) == NULL)
        return -MU_ENOMEM;
    copy = copy_item(actors, msg);
    if (copy == NULL)
        return -MU_ENOMEM;
    actor->bytes += count_item_bytes(item);
    actors->bytes += count_item_bytes(item);
    append_kept_item(&actor->open, copy);
    if (!item->more)
        apply_turn(actors, actor);
    return 0;
}

/* ---- walking ---- */

static int each_item(const struct items *items, mu__kept_visit_fn visit, void *owner)
{
    int rv = 0;

    for (struct mu__msg *msg = items->first; msg != NULL && rv == 0; msg = msg->next)
        rv = visit(owner, msg);
    return rv;
}

int mu__kept_actor_each(const struct kept_actor *actor, mu__kept_visit_fn visit,
                        void *owner)
{
    int rv = each_item(&actor->kept, visit, owner);

    for (const struct kept_sender *sender =
             MU__LIST_FIRST(&actor->senders_all, struct kept_sender, node);
         sender != NULL && rv == 0;
         sender = MU__LIST_NEXT(sender, struct kept_sender, node))
        rv = each_item(&sender->answers, visit, owner);
    return rv == 0 ? each_item(&actor->open, visit, owner) : rv;
}
