#include "actors/keeper/keeper_walk.h"

#include "actors/keeper/keeper_items.h"

enum { FENCE_BYTES = 512 }; /* an actor without items is some, too */

void mu__kept_walk_begin(struct kept_actors *actors, const struct kept_visitor *visitor)
{
    actors->walk = (struct kept_walk){
        .runs = true,
        .number = actors->walk.number + 1,
        .visitor = *visitor,
        .upcoming = MU__LIST_FIRST(&actors->all, struct kept_actor, node),
    };
}

void mu__kept_walk_end(struct kept_actors *actors)
{
    actors->walk = (struct kept_walk){.number = actors->walk.number};
}

enum kept_walk_phase mu__kept_walk_phase(const struct kept_actors *actors,
                                         const struct kept_actor *actor)
{
    const struct kept_walk *walk = &actors->walk;

    if (walk->runs && actor == walk->actor)
        return KEPT_AT;
    return !walk->runs || actor->walk == walk->number ? KEPT_BEHIND : KEPT_AHEAD;
}

/* ---- steps ---- */

static void visit_actor(struct kept_walk *walk)
{
    walk->epoch = walk->actor->epoch;
    walk->last = walk->actor->last;
    walk->visitor.actor(walk->visitor.owner, walk->actor);
    walk->bytes += FENCE_BYTES;
}

static void visit_item(struct kept_walk *walk, struct mu__msg *item)
{
    walk->visitor.item(walk->visitor.owner, item);
    walk->bytes += mu__kept_item_bytes(item);
}

static void go_to_sender(struct kept_walk *walk, struct kept_sender *sender)
{
    walk->is_at_senders = true;
    walk->sender = sender;
    walk->item = sender == NULL ? NULL : sender->answers.first;
}

static void begin_walk_actor(struct kept_walk *walk)
{
    struct kept_actor *actor = walk->upcoming;

    walk->upcoming = MU__LIST_NEXT(actor, struct kept_actor, node);
    walk->actor = actor;
    walk->is_at_senders = false;
    walk->sender = NULL;
    walk->item = actor->kept.first;
    actor->walk = walk->number;
    visit_actor(walk);
}

/* What is open has numbers already, and what has not stayed had some. */
static void end_walk_actor(struct kept_walk *walk)
{
    struct kept_actor *actor = walk->actor;

    if (walk->epoch != actor->epoch || walk->last != actor->last)
        visit_actor(walk);
    for (struct mu__msg *item = actor->open.first; item != NULL; item = item->next)
        visit_item(walk, item);
    walk->actor = NULL;
}

static void go_on_with_actor(struct kept_walk *walk)
{
    struct mu__msg *item = walk->item;

    if (item != NULL) {
        walk->item = item->next;
        visit_item(walk, item);
    } else if (!walk->is_at_senders) {
        go_to_sender(walk,
                     MU__LIST_FIRST(&walk->actor->senders_all, struct kept_sender, node));
    } else if (walk->sender != NULL) {
        go_to_sender(walk, MU__LIST_NEXT(walk->sender, struct kept_sender, node));
    } else {
        end_walk_actor(walk);
    }
}

bool mu__kept_walk_step(struct kept_actors *actors, uint64_t bytes_max)
{
    struct kept_walk *walk = &actors->walk;

    walk->bytes = 0;
    while (walk->bytes < bytes_max && (walk->actor != NULL || walk->upcoming != NULL))
        if (walk->actor != NULL)
            go_on_with_actor(walk);
        else
            begin_walk_actor(walk);
    return walk->actor == NULL && walk->upcoming == NULL;
}

/* ---- what changes ---- */

void mu__kept_walk_actor_came(struct kept_actors *actors, struct kept_actor *actor)
{
    if (actors->walk.runs && actors->walk.upcoming == NULL)
        actors->walk.upcoming = actor;
}

void mu__kept_walk_actor_goes(struct kept_actors *actors, struct kept_actor *actor)
{
    struct kept_walk *walk = &actors->walk;

    if (walk->upcoming == actor)
        walk->upcoming = MU__LIST_NEXT(actor, struct kept_actor, node);
    if (walk->actor == actor)
        walk->actor = NULL;
}

void mu__kept_walk_sender_goes(struct kept_actors *actors, struct kept_sender *sender)
{
    struct kept_walk *walk = &actors->walk;

    if (walk->sender == sender)
        go_to_sender(walk, MU__LIST_NEXT(sender, struct kept_sender, node));
}

static bool is_walk_behind(const struct kept_walk *walk, const struct kept_sender *sender)
{
    if (sender == NULL)
        return walk->is_at_senders;
    return walk->is_at_senders &&
           (walk->sender == NULL || sender->order < walk->sender->order);
}

void mu__kept_walk_item_came(struct kept_actors *actors, struct kept_actor *actor,
                             const struct kept_sender *sender, struct mu__msg *item)
{
    struct kept_walk *walk = &actors->walk;

    if (mu__kept_walk_phase(actors, actor) != KEPT_AT)
        return;
    if (is_walk_behind(walk, sender))
        visit_item(walk, item);
    else if (walk->sender == sender && walk->item == NULL)
        walk->item = item;
}

void mu__kept_walk_item_goes(struct kept_actors *actors, const struct mu__msg *item)
{
    if (actors->walk.item == item)
        actors->walk.item = item->next;
}

void mu__kept_walk_forgets(struct kept_actors *actors, struct kept_actor *actor,
                           struct mu__msg *item)
{
    if (mu__kept_walk_phase(actors, actor) == KEPT_AT)
        visit_item(&actors->walk, item);
}
