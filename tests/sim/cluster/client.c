/* What a client actor counts must be what it has. */
#include "tests/sim/cluster.h"

#include "actors/client/internal.h"

#include <inttypes.h>

struct sums {
    uint64_t taken;
    uint64_t sent;
    uint64_t bytes; /* of what was sent, as the chief counts them */
    uint64_t waiting;
};

static const struct client_actor *client_of(const struct cluster_task *task)
{
    return mu__actor_state(task->member.kernel, (mu__pid){0, MU__CLIENT});
}

static struct sums add_up(const struct client_actor *c)
{
    struct sums sums = {0};

    for (uint32_t i = 0; i < c->slots.count; i++) {
        const struct closure_slot *slot = &c->slots.items[i];

        if (slot->state == SLOT_FREE)
            continue;
        sums.taken++;
        sums.waiting += slot->state == SLOT_WAITS;
        if (slot->state != SLOT_SENT)
            continue;
        sums.sent++;
        sums.bytes += c->room.bytes_max != 0 && slot->bytes > c->room.bytes_max
                          ? c->room.bytes_max
                          : slot->bytes;
    }
    return sums;
}

void cluster_check_client(struct cluster *cluster, const struct cluster_task *task)
{
    const struct client_actor *c = task->runs ? client_of(task) : NULL;
    struct sums sums;

    if (c == NULL)
        return;
    sums = add_up(c);
    if (c->session.shared != NULL &&
        sums.taken != c->session.arrived - c->session.resolved)
        cluster_break(cluster, "%s has %" PRIu64 " closures, counted as %" PRIu64,
                      task->name, sums.taken, c->session.arrived - c->session.resolved);
    if (sums.sent != c->room.closures_sent || sums.bytes != c->room.bytes_sent)
        cluster_break(cluster,
                      "%s has sent %" PRIu64 " closures with %" PRIu64
                      " bytes, counted as %" PRIu64 " with %" PRIu64,
                      task->name, sums.sent, sums.bytes, c->room.closures_sent,
                      c->room.bytes_sent);
    if (sums.waiting != c->room.waiting)
        cluster_break(cluster,
                      "%" PRIu64 " closures of %s wait for room, counted as %" PRIu32,
                      sums.waiting, task->name, c->room.waiting);
    cluster->waited += sums.waiting > 0;
}

bool cluster_has_room(const struct cluster_task *task, uint64_t closures, uint64_t bytes)
{
    const struct mu__room *room = &client_of(task)->room;

    return room->waiting == 0 &&
           room->closures_sent + closures <= room->closures_allowed &&
           room->bytes_sent + bytes <= room->bytes_allowed;
}

bool cluster_was_sent(const struct cluster_closure *closure)
{
    const struct client_actor *c = client_of(closure->task);
    uint32_t token = closure->future == NULL ? 0 : closure->future->token;

    return token != 0 && c->slots.items[token - 1].state == SLOT_SENT;
}

uint64_t cluster_sent(const struct cluster_task *task)
{
    return client_of(task)->room.closures_sent;
}
