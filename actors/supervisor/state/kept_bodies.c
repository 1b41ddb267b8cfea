#include "actors/supervisor/state/kept_bodies.h"

#include <assert.h>

static struct kept_body *first_of(const struct kept_bodies *bodies)
{
    return MU__LIST_FIRST(&bodies->all, struct kept_body, node);
}

static struct kept_body *next_of(const struct kept_body *body)
{
    return MU__LIST_NEXT(body, struct kept_body, node);
}

static bool has_room(const struct kept_bodies *bodies, uint32_t count, uint64_t bytes)
{
    return count <= MU__KEPT_BODIES_MAX && bodies->count <= MU__KEPT_BODIES_MAX - count &&
           bytes <= MU__KEPT_BODIES_BYTES_MAX &&
           bodies->bytes <= MU__KEPT_BODIES_BYTES_MAX - bytes;
}

bool mu__kept_bodies_make_room(struct kept_bodies *bodies, uint32_t count, uint64_t bytes)
{
    struct kept_body *body = first_of(bodies);

    while (body != NULL && !has_room(bodies, count, bytes)) {
        struct kept_body *next = next_of(body);

        if (body->users == 0)
            mu__kept_bodies_remove(bodies, body);
        body = next;
    }
    return has_room(bodies, count, bytes);
}

void mu__kept_bodies_add(struct kept_bodies *bodies, struct kept_body *body,
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

void mu__kept_bodies_remove(struct kept_bodies *bodies, struct kept_body *body)
{
    if (!body->is_listed)
        return;
    assert(bodies->count > 0 && bodies->bytes >= body->bytes);
    mu__list_remove(&bodies->all, &body->node);
    bodies->count--;
    bodies->bytes -= body->bytes;
    body->is_listed = body->is_written = false;
}

void mu__kept_bodies_renewed(struct kept_bodies *bodies, uint32_t compaction)
{
    for (struct kept_body *body = first_of(bodies); body != NULL;
         body = next_of(body))
        body->is_written = body->compaction == compaction;
    mu__kept_bodies_stay(bodies);
}

void mu__kept_bodies_stay(struct kept_bodies *bodies)
{
    struct kept_body *body = first_of(bodies);

    while (body != NULL) {
        struct kept_body *next = next_of(body);

        if (!body->is_written)
            mu__kept_bodies_remove(bodies, body);
        body = next;
    }
}
