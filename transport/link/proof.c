#include "transport/link/proof.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

void mu__link_read_proof(const struct mu__links *links, struct mu__greeting *greeting)
{
    const struct mu__wire_ops *ops = links->wire->ops;

    greeting->proof = (struct mu__proof){.right = MU__RIGHT_ALL};
    if (ops->proof != NULL)
        ops->proof(links->wire, greeting->connection, &greeting->proof);
    if (ops->peer != NULL)
        ops->peer(links->wire, greeting->connection, greeting->seen_at,
                  sizeof greeting->seen_at);
}

enum mu__right mu__links_own_right(const struct mu__links *links, uint32_t node)
{
    const struct mu__link *link = mu__map_get(&links->index.by_node, node);

    if (link == NULL || links->wire->ops->own_right == NULL)
        return MU__RIGHT_ALL;
    return links->wire->ops->own_right(links->wire, link->connection);
}

bool mu__link_is_unproven(const struct mu__proof *proof, const struct mu__hello *hello,
                          char *why, size_t size)
{
    enum mu__right needed;
    char type[16];

    mu__view_copy(hello->type, type, sizeof type);
    needed = mu__right_to_be(type);
    if (proof->names_task && needed == MU__RIGHT_TASK &&
        (strcmp(type, proof->task_type) != 0 || hello->index != proof->task_index)) {
        (void)snprintf(why, size,
                       "its certificate is that of /job:%s/task:%" PRIu32
                       ", and it says to be /job:%s/task:%" PRIu32,
                       proof->task_type, proof->task_index, type, hello->index);
        return true;
    }
    if (proof->right >= needed)
        return false;
    (void)snprintf(why, size,
                   "it has proven the right \"%s\", and says to be /job:%s/task:%" PRIu32
                   ", which needs the right \"%s\"",
                   mu__right_name(proof->right), type, hello->index,
                   mu__right_name(needed));
    return true;
}

void mu__link_keep_proof(const struct mu__links *links, struct mu__link *link,
                         const struct mu__proof *proof)
{
    const char *leader = links->config.leader;

    link->peer.right = proof->right;
    link->peer.may = mu__right_as(link->type, proof->right);
    link->peer.is_chief =
        link->index == 0 && (strcmp(link->type, "chief") == 0 ||
                             (leader != NULL && strcmp(link->type, leader) == 0));
}

/* Why the peer may not send a message of this row. */
static void write_right_reason(const struct mu__link *link, const struct mu__row *row,
                               char *why, size_t size)
{
    enum mu__right needed = (enum mu__right)row->right;

    if (link->peer.right < needed)
        (void)snprintf(why, size, "which needs the right \"%s\"; it has proven \"%s\"",
                       mu__right_name(needed), mu__right_name(link->peer.right));
    else if (link->peer.may < needed)
        (void)snprintf(why, size, "which only tasks of the cluster send");
    else
        (void)snprintf(why, size, "which only the chief sends");
}

bool mu__link_is_forbidden(struct mu__links *links, const struct mu__link *link,
                           const struct mu__msg *msg)
{
    const struct mu__row *row = &links->config.schema->rows[msg->kind];
    const char *at = mu__link_address(link);
    char why[128];

    if (link->peer.may >= (enum mu__right)row->right &&
        (row->by_chief == 0 || link->peer.is_chief))
        return false;
    write_right_reason(link, row, why, sizeof why);
    links->counters.forbidden++;
    mu__links_log_limited(links, MU__LOG_WARN,
                          "/job:%s/task:%" PRIu32 "%s%s has sent %s, %s: dropped",
                          link->type, link->index, at[0] == '\0' ? "" : " at ", at,
                          mu__schema_name(links->config.schema, msg->kind), why);
    return true;
}
