/* Credit between nodes. Of what one node sends to one actor of another, a window of
 * messages and bytes may be on its way or in the mailbox; what was taken out of there is
 * credited with ROOM, half a window at a time. Both ends forget when the link breaks. */
#include "actors/user/actions.h"

#include <stdlib.h>

static struct way *find_way_of(struct mu__map *ways, uint32_t actor)
{
    return mu__map_get(ways, actor);
}

static struct way *get_way(struct mu__map *ways, uint32_t actor)
{
    struct way *way = find_way_of(ways, actor);

    if (way != NULL)
        return way;
    way = calloc(1, sizeof *way);
    if (way == NULL)
        return NULL;
    way->actor = actor;
    if (mu__map_set(ways, actor, way) == 0)
        return way;
    free(way);
    return NULL;
}

static void notify_room(struct office *office, const struct peer *peer, struct way *way)
{
    mu_address address = {
        .index = peer->index, .number = way->actor, .incarnation = peer->incarnation};

    mu__view_copy(mu__view_str(peer->type), address.type, sizeof address.type);
    mu__room_notify(office, &way->rooms, &address);
}

static void forget_way(struct office *office, struct peer *peer, struct mu__map *ways,
                       uint32_t actor)
{
    struct way *way = mu__map_remove(ways, actor);

    if (way == NULL)
        return;
    notify_room(office, peer, way);
    free(way);
}

static void free_ways(struct office *office, struct peer *peer, struct mu__map *ways)
{
    struct mu__map all = *ways;

    *ways = (struct mu__map){0};
    for (size_t i = 0; i < all.capacity; i++)
        if (all.entries[i].key != 0) {
            notify_room(office, peer, all.entries[i].value);
            free(all.entries[i].value);
        }
    mu__map_done(&all);
}

void mu__ways_free(struct office *office, struct peer *peer)
{
    free_ways(office, peer, &peer->out);
    free_ways(office, peer, &peer->in);
}

/* ---- out ---- */

int mu__way_take(struct peer *peer, uint32_t actor, uint32_t bytes, uint32_t waits)
{
    struct way *way = get_way(&peer->out, actor);

    if (way == NULL)
        return -MU_ENOMEM;
    /* Of bytes one message more than the window: the other end keeps up to half of the
     * window to itself, so that a large one would otherwise never fit. */
    if (way->messages >= MU__ACTOR_WINDOW || way->bytes >= MU__ACTOR_WINDOW_BYTES) {
        if (waits != 0)
            mu__room_add(&way->rooms, waits);
        return -MU_EAGAIN;
    }
    way->messages++;
    way->bytes += bytes;
    return 0;
}

/* Half of the window is free, so that who waits sends many for one notice. */
static void review_way(struct office *office, const struct peer *peer, struct way *way)
{
    if (way->messages <= MU__ACTOR_WINDOW / 2 && way->bytes <= MU__ACTOR_WINDOW_BYTES / 2)
        notify_room(office, peer, way);
}

void mu__way_untake(struct office *office, struct peer *peer, uint32_t actor,
                    uint32_t bytes)
{
    struct way *way = find_way_of(&peer->out, actor);

    if (way == NULL)
        return;
    way->messages--;
    way->bytes -= bytes;
    review_way(office, peer, way);
}

void mu__way_on_room(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    const struct mu__actor_room *body = mu__body(msg);
    struct office *office = state;
    struct peer *peer = mu__peer_of_node(office, msg->from.node);
    struct way *way = peer == NULL ? NULL : find_way_of(&peer->out, body->actor);

    (void)ctx;
    if (way == NULL)
        return;
    way->messages -= body->messages < way->messages ? body->messages : way->messages;
    way->bytes -= body->bytes < way->bytes ? body->bytes : way->bytes;
    if (body->ended)
        forget_way(office, peer, &peer->out, body->actor);
    else
        review_way(office, peer, way);
}

/* ---- in ---- */

bool mu__way_arrived(struct peer *peer, uint32_t actor, uint32_t bytes)
{
    struct way *way = get_way(&peer->in, actor);

    if (way == NULL || way->messages + way->messages_due >= MU__ACTOR_WINDOW ||
        way->bytes + way->bytes_due >= MU__ACTOR_WINDOW_BYTES)
        return false;
    way->messages++;
    way->bytes += bytes;
    return true;
}

static void send_room(struct office *office, const struct peer *peer, uint32_t actor,
                      struct way *way, bool ended)
{
    struct mu__msg *msg = mu__msg_new(&office->ctx, MU__ACTOR_ROOM);
    struct mu__actor_room *body;

    if (msg == NULL)
        return;
    body = mu__body(msg);
    body->actor = actor;
    body->ended = ended;
    if (way != NULL) {
        body->messages = way->messages_due;
        body->bytes = way->bytes_due;
        way->messages_due = 0;
        way->bytes_due = 0;
    }
    (void)mu__send(&office->ctx, (mu__pid){peer->number, MU__ACTORS}, msg);
}

void mu__way_taken(struct office *office, const struct mail *mail)
{
    struct peer *peer = mu__peer_of_node(office, mail->from_node);
    struct way *way = peer == NULL ? NULL : find_way_of(&peer->in, mail->actor);

    if (way == NULL)
        return;
    way->messages--;
    way->bytes -= mail->bytes;
    way->messages_due++;
    way->bytes_due += mail->bytes;
    if (way->messages_due >= MU__ACTOR_WINDOW / 2 ||
        way->bytes_due >= MU__ACTOR_WINDOW_BYTES / 2)
        send_room(office, peer, mail->actor, way, false);
}

void mu__way_say_ended(struct office *office, struct peer *peer, uint32_t actor)
{
    send_room(office, peer, actor, NULL, true);
    free(mu__map_remove(&peer->in, actor));
}

void mu__way_actor_ended(struct office *office, uint32_t actor)
{
    for (struct peer *peer = MU__LIST_FIRST(&office->peers_all, struct peer, node);
         peer != NULL; peer = MU__LIST_NEXT(peer, struct peer, node))
        if (peer->number != 0 && find_way_of(&peer->in, actor) != NULL)
            mu__way_say_ended(office, peer, actor);
}
