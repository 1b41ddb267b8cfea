/* Names as values, for those who look. */
#include "actors/coordination/names/coord_names.h"

#include "muster/value.h"

#include <inttypes.h>
#include <stdio.h>

static const char *name_state(const struct coord_name *name)
{
    if (name->is_stopping)
        return "stopping";
    if (name->state == MU__NAME_RUNS)
        return "running";
    if (name->state == MU__NAME_FAILED)
        return "failed";
    return name->is_starting ? "starting" : "waiting";
}

static int add_task(mu_value *map, const struct coord_name *name)
{
    char task[64] = "";

    if (name->owner != NULL)
        (void)snprintf(task, sizeof task, "/job:%s/task:%" PRIu32, name->owner->type,
                       name->owner->index);
    return mu_value_set(map, "task", mu_value_string(task));
}

static mu_value *describe_name(const struct coord_name *name, uint64_t now_ms)
{
    mu_value *map = mu_value_map();
    uint64_t due_ms =
        name->is_waiting && name->due_ms > now_ms ? name->due_ms - now_ms : 0;
    int rv = mu_value_set(map, "name", mu_value_string(name->text));

    if (rv == 0)
        rv = mu_value_set(map, "type", mu_value_string(name->definition.type));
    if (rv == 0)
        rv = add_task(map, name);
    if (rv == 0)
        rv = mu_value_set(map, "state", mu_value_string(name_state(name)));
    if (rv == 0)
        rv = mu_value_set(map, "due_ms", mu_value_int((int64_t)due_ms));
    if (rv == 0)
        rv = mu_value_set(map, "epoch", mu_value_int((int64_t)name->epoch));
    if (rv == 0)
        rv = mu_value_set(map, "restarts", mu_value_int((int64_t)name->restarts));
    if (rv == 0)
        rv = mu_value_set(map, "mailbox", mu_value_int(name->load.mailbox));
    if (rv == 0)
        rv = mu_value_set(
            map, "oldest_ms",
            mu_value_int(name->load.mailbox == 0 ? 0 : (int64_t)name->load.oldest_ms));
    if (rv == 0)
        rv = mu_value_set(map, "error", mu_value_string(name->why));
    if (rv == 0)
        return map;
    mu_value_free(map);
    return NULL;
}

mu_value *mu__coord_names_list(struct mu__ctx *ctx, struct coordination *c)
{
    mu_value *list = mu_value_list();
    uint64_t now_ms = mu__coord_clock(ctx, c);

    mu__coord_names_read(ctx, c);
    for (const struct mu__text_node *node = mu__text_map_next(&c->names->names, NULL);
         list != NULL && node != NULL; node = mu__text_map_next(&c->names->names, node)) {
        const struct coord_name *name = (const void *)node;

        if (name->is_made && mu_value_append(list, describe_name(name, now_ms)) != 0) {
            mu_value_free(list);
            return NULL;
        }
    }
    return list;
}
