#include "actors/supervisor/state/sent_bodies.h"

#include <assert.h>

static struct sent_body *first_sent_body(const struct sent_bodies *bodies)
{
    return MU__LIST_FIRST(&bodies->all, struct sent_body, node);
}

static struct sent_body *next_sent_body(const struct sent_body *body)
{
    return MU__LIST_NEXT(body, struct sent_body, node);
}

static bool has_bodies_room(const struct sent_bodies *bodies, uint32_t count,
                            uint64_t bytes)
{
    return count <= MU__SENT_BODIES_MAX && bodies->count <= MU__SENT_BODIES_MAX - count &&
           bytes <= MU__SENT_BODIES_BYTES_MAX &&
           bodies->bytes <= MU__SENT_BODIES_BYTES_MAX - bytes;
}

bool mu__sent_bodies_make_room(struct sent_bodies *bodies, uint32_t count, uint64_t bytes)
{
    struct sent_body *body = first_sent_body(bodies);

    while (body != NULL && !has_bodies_room(bodies, count, bytes)) {
        struct sent_body *next = next_sent_body(body);

        if (body->users == 0)
            mu__sent_bodies_remove(bodies, body);
        body = next;
    }
    return has_bodies_room(bodies, count, bytes);
}

void mu__sent_bodies_add(struct sent_bodies *bodies, struct sent_body *body,
                         uint32_t compaction, bool is_written)
{
    body->compaction = compaction;
    body->is_written = body->is_written || is_written;
    if (body->is_listed)
        return;
    body->is_listed = true;
    mu__list_append(&bodies->all, &body->node);
    bodies->count++;
    bodies->bytes += body->bytes;
}

void mu__sent_bodies_remove(struct sent_bodies *bodies, struct sent_body *body)
{
    if (!body->is_listed)
        return;
    assert(bodies->count > 0 && bodies->bytes >= body->bytes);
    mu__list_remove(&bodies->all, &body->node);
    bodies->count--;
    bodies->bytes -= body->bytes;
    body->is_listed = body->is_written = false;
}

void mu__sent_bodies_renewed(struct sent_bodies *bodies, uint32_t compaction)
{
    for (struct sent_body *body = first_sent_body(bodies); body != NULL;
         body = next_sent_body(body))
        body->is_written = body->compaction == compaction;
    mu__sent_bodies_stay(bodies);
}

void mu__sent_bodies_stay(struct sent_bodies *bodies)
{
    struct sent_body *body = first_sent_body(bodies);

    while (body != NULL) {
        struct sent_body *next = next_sent_body(body);

        if (!body->is_written)
            mu__sent_bodies_remove(bodies, body);
        body = next;
    }
}
