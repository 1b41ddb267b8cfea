/* Servers that were restarted with a journal: which partitions they have from it, and who
 * gets them back. */
#include "actors/views/internal.h"

#include "muster/error.h"
#include "runtime/base/byte_order.h"

#include <stdlib.h>

struct view_restored {
    uint32_t former_count;
    uint64_t former[MU__FORMER_MAX]; /* processes that wrote the journal */
    uint64_t stores[MU__PARTITIONS]; /* what is in it; 0: not this partition */
};

int mu__views_note_restored(struct mu__view_table *table, uint32_t node,
                            struct mu__view former, struct mu__view partitions)
{
    struct view_server *server = mu__views_linked(table, node);
    struct mu__numbered entry;

    if (server == NULL)
        return 0;
    free(server->restored);
    server->restored = NULL;
    if (former.size == 0)
        return 0;
    server->restored = calloc(1, sizeof *server->restored);
    if (server->restored == NULL)
        return -MU_ENOMEM;
    for (uint32_t i = 0; i < former.size / 8 && i < MU__FORMER_MAX; i++)
        server->restored->former[server->restored->former_count++] =
            mu__load_little64((const uint8_t *)former.data + (size_t)8 * i);
    for (uint32_t i = 0; i < mu__numbered_count(partitions); i++)
        if (mu__numbered_at(partitions, i, &entry))
            server->restored->stores[entry.partition] = entry.number;
    return 0;
}

bool mu__views_speaks_for(const struct view_server *server,
                          const struct mu__replica *replica)
{
    const struct view_restored *restored = server->restored;

    for (uint32_t i = 0; restored != NULL && i < restored->former_count; i++)
        if (restored->former[i] == replica->incarnation)
            return true;
    return false;
}

/* What the newest view's primary had when it died is all that was acknowledged, whatever
 * views it had heard of: nobody else could complete a write. So is what the backup had,
 * to whom each write came first. */
static bool has_restored(const struct view_server *server, const struct view_row *row,
                         const struct mu__replica *member)
{
    return server->restored != NULL &&
           server->restored->stores[row->view.partition] == row->view.store_id &&
           mu__views_speaks_for(server, member);
}

static struct view_server *server_of_member(const struct mu__view_table *table,
                                            const struct mu__replica *member)
{
    return member->incarnation == 0 ? NULL : mu__views_server(table, member->task);
}

bool mu__views_find_restored(const struct mu__view_table *table,
                             const struct view_row *row, const struct mu__replica *member,
                             struct mu__replica *ret_process)
{
    const struct view_server *server = server_of_member(table, member);

    if (server == NULL || !server->is_up || !has_restored(server, row, member))
        return false;
    *ret_process = (struct mu__replica){server->task, server->incarnation};
    return true;
}

bool mu__views_may_restore(const struct mu__view_table *table, const struct view_row *row,
                           const struct mu__replica *member)
{
    const struct view_server *server = server_of_member(table, member);

    if (server == NULL)
        return false;
    if (server->incarnation == 0 || server->reported != server->incarnation)
        return true;
    return server->incarnation == member->incarnation ? server->restored != NULL
                                                      : has_restored(server, row, member);
}

/* A backup that is up goes on without it. */
static uint32_t count_awaited(const struct mu__view_table *table,
                              const struct view_server *server)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < MU__PARTITIONS; i++) {
        const struct mu__partition_view *view = &table->rows[i].view;

        count += view->primary.incarnation != 0 && view->primary.task == server->task &&
                 !mu__views_is_up(table, &view->backup);
    }
    return count;
}

bool mu__view_table_next_awaited(struct mu__view_table *table, uint64_t now_ms,
                                 uint32_t *ret_task, uint32_t *ret_count)
{
    for (uint32_t i = 0; i < table->servers_count; i++) {
        struct view_server *server = &table->servers[i];

        if (server->restored == NULL || server->is_linked ||
            server->awaited == server->closed ||
            now_ms < server->down_ms + table->config.grace_ms)
            continue;
        server->awaited = server->closed;
        *ret_task = server->task;
        *ret_count = count_awaited(table, server);
        if (*ret_count > 0)
            return true;
    }
    return false;
}
