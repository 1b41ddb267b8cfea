/* What peers have proven, and what they may therefore say. */
#include "transport/link/internal.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

void mu__link_read_proof(const struct mu__links *links, struct mu__greeting *greeting)
{
    const struct mu__wire_ops *ops = links->wire->ops;
    char *colon;

    greeting->proof = (struct mu__proof){.right = MU__RIGHT_ALL};
    if (ops->proof != NULL)
        ops->proof(links->wire, greeting->in, &greeting->proof);
    if (ops->peer != NULL)
        ops->peer(links->wire, greeting->in, greeting->from, sizeof greeting->from);
    colon = strrchr(greeting->from, ':');
    if (colon != NULL)
        *colon = '\0';
    greeting->is_near =
        ops->is_near == NULL || ops->is_near(links->wire, greeting->in);
}

bool mu__link_is_unproven(const struct mu__proof *proof, const struct mu__hello *hello,
                          char *why, size_t size)
{
    char type[16];

    mu__view_copy(hello->type, type, sizeof type);
    if (strcmp(type, "client") == 0)
        return false;
    if (proof->names_task && (strcmp(type, proof->task_type) != 0 ||
                              hello->index != proof->task_index)) {
        (void)snprintf(why, size,
                       "its certificate is that of /job:%s/task:%" PRIu32
                       ", and it says to be /job:%s/task:%" PRIu32,
                       proof->task_type, proof->task_index, type, hello->index);
        return true;
    }
    if (proof->right >= MU__RIGHT_TASK)
        return false;
    (void)snprintf(why, size,
                   "it has proven the right \"%s\", and says to be /job:%s/task:%" PRIu32
                   ", which needs the right \"task\"",
                   mu__right_name(proof->right), type, hello->index);
    return true;
}

bool mu__link_is_forbidden(struct mu__links *links, const struct mu__link *link,
                           const struct mu__msg *msg)
{
    enum mu__right needed = links->config.schema->rows[msg->kind].right;

    if (link->peer.right >= needed)
        return false;
    links->counters.forbidden++;
    mu__links_log_limited(links, MU__LOG_WARN,
                          "/job:%s/task:%" PRIu32 " has sent %s, which needs the right "
                          "\"%s\"; it has proven \"%s\": dropped",
                          link->type, link->index,
                          mu__schema_name(links->config.schema, msg->kind),
                          mu__right_name(needed), mu__right_name(link->peer.right));
    return true;
}
