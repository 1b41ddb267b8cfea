#include "actors/views/internal.h"

#include "actors/messages/limits.h"
#include "actors/packing.h"
#include "muster/cluster.h"
#include "muster/error.h"

#include <stdlib.h>
#include <string.h>

/* Reported numbers are below: there is room above for all that follow. */
#define NUMBER_MAX (UINT64_C(1) << 47)

/* ---- Servers ---- */

struct view_server *mu__views_server(const struct mu__view_table *table, uint32_t task)
{
    for (uint32_t i = 0; i < table->servers_count; i++)
        if (table->servers[i].task == task)
            return &table->servers[i];
    return NULL;
}

struct view_server *mu__views_linked(const struct mu__view_table *table, uint32_t node)
{
    for (uint32_t i = 0; i < table->servers_count; i++)
        if (table->servers[i].is_linked && table->servers[i].node == node)
            return &table->servers[i];
    return NULL;
}

static void set_backups(struct mu__view_table *table)
{
    table->backups = table->servers_count < 2 ? 0 : table->config.backups;
}

/* Makes one that is not linked. NULL: out of memory, or of numbers. */
static struct view_server *need_view_server(struct mu__view_table *table, uint32_t task,
                                            uint64_t now_ms)
{
    struct view_server *server = mu__views_server(table, task);

    if (server != NULL)
        return server;
    if (table->servers_count >= MU_CLUSTER_TASKS_MAX ||
        !mu__grow_for_one((void **)&table->servers, &table->servers_room,
                          table->servers_count, sizeof *server))
        return NULL;
    server = &table->servers[table->servers_count++];
    *server = (struct view_server){.task = task, .down_ms = now_ms};
    set_backups(table);
    return server;
}

struct mu__view_table *mu__view_table_new(const struct mu__view_config *config,
                                          uint64_t now_ms)
{
    struct mu__view_table *table = calloc(1, sizeof *table);

    if (table == NULL)
        return NULL;
    table->config = *config;
    table->config.tasks = NULL;
    for (uint32_t i = 0; i < MU__PARTITIONS; i++)
        table->rows[i].view.partition = i;
    for (uint32_t i = 0; i < config->servers; i++)
        if (need_view_server(table, config->tasks == NULL ? i : config->tasks[i],
                             now_ms) == NULL) {
            mu__view_table_free(table);
            return NULL;
        }
    return table;
}

void mu__view_table_seed(struct mu__view_table *table, uint64_t seed)
{
    table->chance = seed;
}

void mu__view_table_free(struct mu__view_table *table)
{
    if (table == NULL)
        return;
    for (uint32_t i = 0; i < table->servers_count; i++)
        free(table->servers[i].restored);
    mu__free_array(table->servers);
    free(table);
}

/* ---- What is owed to servers ---- */

static bool has_bit(const uint64_t words[MU__VIEW_WORDS], uint32_t partition)
{
    return (words[partition / 64] >> partition % 64 & 1) != 0;
}

static void set_bit(uint64_t words[MU__VIEW_WORDS], uint32_t partition)
{
    words[partition / 64] |= UINT64_C(1) << partition % 64;
}

static void clear_bit(uint64_t words[MU__VIEW_WORDS], uint32_t partition)
{
    words[partition / 64] &= ~(UINT64_C(1) << partition % 64);
}

static void owe_nothing(struct view_server *server)
{
    memset(server->owed, 0, sizeof server->owed);
    server->is_owed_answer = false;
}

static void owe_view(struct view_server *server, uint32_t partition)
{
    if (server->is_up)
        set_bit(server->owed, partition);
}

static void owe_replica(struct mu__view_table *table, const struct mu__replica *replica,
                        uint32_t partition)
{
    struct view_server *server =
        replica->incarnation == 0 ? NULL : mu__views_server(table, replica->task);

    if (server != NULL && server->incarnation == replica->incarnation)
        owe_view(server, partition);
}

void mu__views_owe_members(struct mu__view_table *table, const struct view_row *row)
{
    const struct mu__partition_view *view = &row->view;

    owe_replica(table, &view->primary, view->partition);
    owe_replica(table, &view->backup, view->partition);
    owe_replica(table, &view->learner, view->partition);
}

bool mu__view_table_next_owed(const struct mu__view_table *table, uint32_t *at,
                              struct mu__views_owed *ret_owed)
{
    uint8_t *end = ret_owed->bytes;
    bool is_found = false;

    for (; *at < table->servers_count && !is_found; (*at)++) {
        const struct view_server *server = &table->servers[*at];

        for (uint32_t i = 0; i < MU__PARTITIONS; i++)
            if (has_bit(server->owed, i))
                end = mu__views_put(end, &table->rows[i].view);
        ret_owed->server = *at;
        ret_owed->node = server->node;
        is_found = server->is_owed_answer || end != ret_owed->bytes;
    }
    ret_owed->size = (uint32_t)(end - ret_owed->bytes);
    return is_found;
}

void mu__view_table_sent(struct mu__view_table *table, uint32_t server)
{
    owe_nothing(&table->servers[server]);
}

bool mu__view_table_next_requested(const struct mu__view_table *table, uint32_t *at,
                                   uint32_t *ret_server, uint32_t *ret_node,
                                   bool *ret_draining)
{
    while (*at < table->servers_count && !table->servers[*at].is_requested)
        ++*at;
    if (*at >= table->servers_count)
        return false;
    *ret_server = *at;
    *ret_draining = table->servers[*at].is_draining;
    *ret_node = table->servers[(*at)++].node;
    return true;
}

void mu__view_table_requested(struct mu__view_table *table, uint32_t server)
{
    table->servers[server].is_requested = false;
}

/* ---- Views ---- */

uint64_t mu__views_higher(struct mu__view_table *table, const struct view_row *row,
                          uint64_t number)
{
    uint64_t gap = 0;

    if (table->is_successor && !row->is_decided)
        gap = mu__views_chance(table) & UINT32_MAX;
    return number + 1 + gap;
}

static void count_role(struct mu__view_table *table, const struct mu__replica *replica,
                       int change)
{
    struct view_server *server =
        replica->incarnation == 0 ? NULL : mu__views_server(table, replica->task);

    if (server != NULL)
        server->roles += (uint32_t)change;
}

void mu__views_replace(struct mu__view_table *table, struct view_row *row,
                       const struct mu__partition_view *view)
{
    count_role(table, &row->view.backup, -1);
    count_role(table, &row->view.learner, -1);
    row->is_handed_over &= view->backup.incarnation == row->view.backup.incarnation &&
                           view->primary.incarnation == row->view.primary.incarnation;
    row->view = *view;
    row->backup_fate = 0;
    row->learner_fate = 0;
    count_role(table, &row->view.backup, 1);
    count_role(table, &row->view.learner, 1);
}

static bool is_same_view(const struct mu__partition_view *a,
                         const struct mu__partition_view *b)
{
    uint8_t bytes[2][MU__VIEW_BYTES];

    (void)mu__views_put(bytes[0], a);
    (void)mu__views_put(bytes[1], b);
    return memcmp(bytes[0], bytes[1], MU__VIEW_BYTES) == 0;
}

static bool is_process_of(const struct view_server *server,
                          const struct mu__replica *replica)
{
    return mu__replica_is(replica, server->task, server->incarnation);
}

static bool has_part(const struct mu__partition_view *view,
                     const struct view_server *server)
{
    return is_process_of(server, &view->primary) ||
           is_process_of(server, &view->backup) || is_process_of(server, &view->learner);
}

/* ---- Links ---- */

int mu__view_table_up(struct mu__view_table *table, uint32_t node,
                      const struct mu__replica *process, uint64_t now_ms)
{
    struct view_server *server = need_view_server(table, process->task, now_ms);

    if (server == NULL)
        return -MU_ENOMEM;
    server->is_draining &= server->incarnation == process->incarnation;
    server->node = node;
    server->incarnation = process->incarnation;
    server->is_linked = true;
    server->is_up = false;
    server->is_requested = false;
    owe_nothing(server);
    return 0;
}

/* Before another server takes the place of this one it has to report: it may have died,
 * too, and its link has not told so yet. */
static void unlink_server(struct mu__view_table *table, struct view_server *server,
                          uint64_t now_ms)
{
    server->closed = ++table->events;
    server->is_linked = false;
    server->is_up = false;
    for (uint32_t i = 0; i < table->servers_count; i++)
        table->servers[i].is_requested = table->servers[i].is_up;
    server->down_ms = now_ms;
    owe_nothing(server);
}

void mu__view_table_down(struct mu__view_table *table, uint32_t node, uint64_t now_ms)
{
    struct view_server *server = mu__views_linked(table, node);

    if (server != NULL)
        unlink_server(table, server, now_ms);
}

int mu__view_table_added(struct mu__view_table *table, uint32_t task, uint64_t now_ms)
{
    return need_view_server(table, task, now_ms) == NULL ? -MU_ENOMEM : 0;
}

bool mu__view_table_drain(struct mu__view_table *table, uint32_t task)
{
    struct view_server *server = mu__views_server(table, task);

    if (server == NULL)
        return false;
    server->is_draining = true;
    server->is_requested = server->is_up;
    return true;
}

void mu__view_table_note_draining(struct mu__view_table *table, uint32_t node,
                                  bool draining)
{
    struct view_server *server = mu__views_linked(table, node);

    if (server == NULL)
        return;
    server->is_requested |= server->is_draining && !draining;
    server->is_draining |= draining;
}

/* ---- Reports ---- */

/* All that the view names exist in the table. */
static bool need_members(struct mu__view_table *table,
                         const struct mu__partition_view *view, uint64_t now_ms)
{
    const struct mu__replica *members[] = {&view->primary, &view->backup, &view->learner};

    for (size_t i = 0; i < sizeof members / sizeof members[0]; i++)
        if (members[i]->incarnation != 0 &&
            need_view_server(table, members[i]->task, now_ms) == NULL)
            return false;
    return true;
}

static bool has_reported(const struct mu__view_table *table,
                         const struct mu__replica *replica)
{
    const struct view_server *server = mu__views_server(table, replica->task);

    return server != NULL && replica->incarnation != 0 && server->reported != 0 &&
           (server->reported == replica->incarnation ||
            mu__views_speaks_for(server, replica));
}

static void note_reporters(const struct mu__view_table *table, struct view_row *row)
{
    if (has_reported(table, &row->view.primary))
        row->reporters |= MU__PRIMARY_REPORTED;
    if (has_reported(table, &row->view.backup))
        row->reporters |= MU__BACKUP_REPORTED;
}

/* Take over what an earlier chief has decided. Without backups there is one only during a
 * move: the primary says when it does without. */
static void adopt_view(struct mu__view_table *table, struct view_row *row,
                       const struct mu__partition_view *view)
{
    mu__views_owe_members(table, row);
    mu__views_replace(table, row, view);
    mu__views_owe_members(table, row);
    row->is_handed_over = table->backups == 0 && view->backup.incarnation != 0;
    row->reporters = 0;
    row->is_newest = false;
    row->is_new = false;
}

static void raise_number(struct mu__view_table *table, struct view_row *row,
                         uint64_t above)
{
    row->view.number = mu__views_higher(table, row, above);
    row->backup_fate = 0;
    row->learner_fate = 0;
    row->is_new = true;
    mu__views_owe_members(table, row);
}

/* `server` has reported a view. Older ones are corrected. */
static void compare_view(struct mu__view_table *table, uint32_t task,
                         const struct mu__partition_view *view)
{
    struct view_server *server = mu__views_server(table, task);
    struct view_row *row = &table->rows[view->partition];

    owe_view(server, view->partition);
    if (is_same_view(view, &row->view)) {
        clear_bit(server->owed, view->partition);
    } else if (view->number > row->view.number && !row->is_decided) {
        adopt_view(table, row, view);
        clear_bit(server->owed, view->partition);
    } else if (view->number >= row->view.number) {
        raise_number(table, row, view->number);
    }
}

static bool is_sane_replica(const struct mu__replica *replica)
{
    return replica->incarnation == 0 || replica->task <= MU_CLUSTER_INDEX_MAX;
}

static bool is_other_task(const struct mu__replica *replica,
                          const struct mu__replica *than)
{
    return replica->incarnation == 0 || replica->task != than->task;
}

static bool is_sane_view(const struct mu__partition_view *view)
{
    return view->number < NUMBER_MAX && view->primary.incarnation != 0 &&
           is_sane_replica(&view->primary) && is_sane_replica(&view->backup) &&
           is_sane_replica(&view->learner) &&
           is_other_task(&view->backup, &view->primary) &&
           is_other_task(&view->learner, &view->primary) &&
           (view->backup.incarnation == 0 ||
            is_other_task(&view->learner, &view->backup)) &&
           (!view->handover ||
            (view->backup.incarnation != 0 && view->learner.incarnation == 0));
}

static int take_views(struct mu__view_table *table, uint32_t task, struct mu__view views,
                      uint64_t now_ms)
{
    int rv = 0;

    for (uint32_t i = 0; i < mu__views_count(views); i++) {
        struct mu__partition_view view;

        if (!mu__views_at(views, i, &view) || !is_sane_view(&view))
            rv = -MU_EINVALID;
        else if (!need_members(table, &view, now_ms))
            rv = -MU_ENOMEM;
        else
            compare_view(table, task, &view);
    }
    return rv;
}

/* A process that knew views before it was told any by this chief, itself or in the life
 * that its journal is of: there was an earlier one. */
static void note_beginning(struct mu__view_table *table, const struct view_server *server,
                           bool known, uint64_t now_ms)
{
    const struct mu__replica last = {server->task, server->reported};
    bool is_successor = known && server->reported != server->incarnation &&
                        !mu__views_speaks_for(server, &last);

    if (!table->has_begun || (is_successor && !table->is_successor))
        table->begun_ms = now_ms;
    table->has_begun = true;
    table->is_successor |= is_successor;
}

int mu__view_table_held(struct mu__view_table *table, uint32_t node,
                        struct mu__view views, bool known, uint64_t now_ms)
{
    struct view_server *server = mu__views_linked(table, node);
    int rv;

    if (server == NULL)
        return -MU_ENOTFOUND;
    note_beginning(table, server, known || mu__views_count(views) > 0, now_ms);
    server->reported = server->incarnation;
    server->is_up = true;
    server->heard = ++table->events;
    server->is_owed_answer = true;
    for (uint32_t i = 0; i < MU__PARTITIONS; i++)
        if (has_part(&table->rows[i].view, server))
            owe_view(server, i);
    rv = take_views(table, server->task, views, now_ms);
    for (uint32_t i = 0; i < MU__PARTITIONS; i++)
        note_reporters(table, &table->rows[i]);
    return rv;
}

/* ---- The store ---- */

uint32_t mu__view_table_pack(const struct mu__view_table *table,
                             uint8_t bytes[MU__VIEW_TABLE_BYTES])
{
    uint8_t *end = bytes;

    for (uint32_t i = 0; i < MU__PARTITIONS; i++)
        if (table->rows[i].view.number != 0)
            end = mu__views_put(end, &table->rows[i].view);
    return (uint32_t)(end - bytes);
}

void mu__view_table_recorded(struct mu__view_table *table)
{
    for (uint32_t i = 0; i < MU__PARTITIONS; i++)
        table->rows[i].is_new = false;
}

static void restore_view(struct mu__view_table *table, bool again,
                         const struct mu__partition_view *view)
{
    struct view_row *row = &table->rows[view->partition];
    bool is_newer = view->number > row->view.number && (again || !row->is_decided);

    if (row->is_new || is_newer) {
        adopt_view(table, row, view);
        row->is_newest = true;
        row->is_decided = false;
    } else if (is_same_view(view, &row->view)) {
        row->is_newest = true;
    } else if (view->number >= row->view.number) {
        raise_number(table, row, view->number);
    }
}

int mu__view_table_restore(struct mu__view_table *table, struct mu__view views,
                           bool again, uint64_t now_ms)
{
    int rv = 0;

    for (uint32_t i = 0; i < mu__views_count(views); i++) {
        struct mu__partition_view view;

        if (!mu__views_at(views, i, &view) || !is_sane_view(&view))
            rv = -MU_EINVALID;
        else if (!need_members(table, &view, now_ms))
            rv = -MU_ENOMEM;
        else
            restore_view(table, again, &view);
    }
    table->is_successor |= mu__views_count(views) > 0;
    for (uint32_t i = 0; i < MU__PARTITIONS; i++)
        note_reporters(table, &table->rows[i]);
    return rv;
}

/* A spare backup may be lost, too. */
static void note_fate(struct view_row *row, uint32_t fate, bool learner)
{
    row->is_handed_over &= fate != MU__REPLICA_SPARE;
    if (learner)
        row->learner_fate = fate;
    else if (fate != MU__REPLICA_SPARE || row->backup_fate == 0)
        row->backup_fate = fate;
}

int mu__view_table_news(struct mu__view_table *table, uint32_t node, uint32_t fate,
                        bool learner, struct mu__view partitions)
{
    const struct view_server *server = mu__views_linked(table, node);
    int rv = 0;

    if (server == NULL)
        return -MU_ENOTFOUND;
    if (fate < MU__REPLICA_LOST || fate > MU__REPLICA_SPARE)
        return -MU_EINVALID;
    for (uint32_t i = 0; i < mu__numbered_count(partitions); i++) {
        struct mu__numbered entry;
        struct view_row *row;

        if (!mu__numbered_at(partitions, i, &entry)) {
            rv = -MU_EINVALID;
            continue;
        }
        row = &table->rows[entry.partition];
        if (entry.number == 0 || entry.number != row->view.number)
            continue;
        if (!is_process_of(server, &row->view.primary))
            rv = -MU_EINVALID;
        else
            note_fate(row, fate, learner);
    }
    return rv;
}

/* ---- Status ---- */

bool mu__view_table_next_lost(struct mu__view_table *table, uint32_t *ret_task,
                              uint32_t *ret_count)
{
    for (uint32_t i = 0; i < table->servers_count; i++) {
        struct view_server *server = &table->servers[i];

        if (server->lost == server->lost_said)
            continue;
        *ret_task = server->task;
        *ret_count = (uint32_t)(server->lost - server->lost_said);
        server->lost_said = server->lost;
        return true;
    }
    return false;
}

static bool lacks_backup(const struct mu__view_table *table,
                         const struct mu__partition_view *view)
{
    return table->backups > 0 && view->backup.incarnation == 0;
}

static void add_up(const struct mu__view_table *table, const struct view_row *row,
                   struct mu__view_totals *totals)
{
    bool is_degraded = lacks_backup(table, &row->view);

    totals->placed++;
    totals->without_primary += !mu__views_is_up(table, &row->view.primary);
    totals->degraded += is_degraded;
    totals->filling += is_degraded && row->view.learner.incarnation != 0;
    totals->moving +=
        row->view.handover || (!is_degraded && row->view.learner.incarnation != 0);
}

void mu__view_table_totals(const struct mu__view_table *table,
                           struct mu__view_totals *ret_totals)
{
    *ret_totals = (struct mu__view_totals){.lost = table->lost};
    for (uint32_t i = 0; i < MU__PARTITIONS; i++)
        if (table->rows[i].view.number != 0)
            add_up(table, &table->rows[i], ret_totals);
}

static bool is_of_task(const struct mu__replica *replica, uint32_t task)
{
    return replica->incarnation != 0 && replica->task == task;
}

static void add_roles(const struct mu__view_table *table,
                      const struct mu__partition_view *view, struct mu__view_roles *roles)
{
    bool is_primary = is_of_task(&view->primary, roles->task);

    roles->primary += is_primary;
    roles->backup += is_of_task(&view->backup, roles->task);
    roles->learner += is_of_task(&view->learner, roles->task);
    roles->degraded += is_primary && lacks_backup(table, view);
}

bool mu__view_table_roles(const struct mu__view_table *table, uint32_t at,
                          struct mu__view_roles *ret_roles)
{
    if (at >= table->servers_count)
        return false;
    *ret_roles = (struct mu__view_roles){.task = table->servers[at].task,
                                         .is_up = table->servers[at].is_up,
                                         .is_draining = table->servers[at].is_draining,
                                         .lost = table->servers[at].lost};
    for (uint32_t i = 0; i < MU__PARTITIONS; i++)
        if (table->rows[i].view.number != 0)
            add_roles(table, &table->rows[i].view, ret_roles);
    return true;
}

bool mu__view_table_roles_of(const struct mu__view_table *table, uint32_t task,
                             struct mu__view_roles *ret_roles)
{
    for (uint32_t i = 0; mu__view_table_roles(table, i, ret_roles); i++)
        if (ret_roles->task == task)
            return true;
    *ret_roles = (struct mu__view_roles){.task = task};
    return false;
}

const struct mu__partition_view *mu__view_table_at(const struct mu__view_table *table,
                                                   uint32_t partition)
{
    const struct mu__partition_view *view = &table->rows[partition].view;

    return view->number == 0 ? NULL : view;
}

bool mu__view_table_has_drained(const struct mu__view_table *table, uint32_t task)
{
    struct mu__view_roles roles = {0};
    uint32_t others = 0;

    for (uint32_t i = 0; i < table->servers_count; i++)
        others += table->servers[i].task != task && !table->servers[i].is_draining;
    (void)mu__view_table_roles_of(table, task, &roles);
    return roles.primary + roles.learner == 0 && (roles.backup == 0 || others < 2);
}
