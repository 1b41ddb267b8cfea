/* What is decided about a partition: one rule each, tried in order until none applies. */
#include "actors/views/internal.h"

#include "actors/messages/limits.h"

static const struct mu__replica no_replica;

static bool is_replica(const struct mu__replica *replica)
{
    return replica->incarnation != 0;
}

/* ---- Chance ---- */

uint64_t mu__views_chance(struct mu__view_table *table)
{
    uint64_t bits = table->chance += UINT64_C(0x9E3779B97F4A7C15);

    bits = (bits ^ (bits >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
    bits = (bits ^ (bits >> 27)) * UINT64_C(0x94D049BB133111EB);
    return bits ^ (bits >> 31);
}

static uint64_t draw_identity(struct mu__view_table *table)
{
    uint64_t bits = mu__views_chance(table);

    return bits == 0 ? 1 : bits;
}

/* ---- Who lives ---- */

bool mu__views_is_up(const struct mu__view_table *table,
                     const struct mu__replica *replica)
{
    const struct view_server *server = mu__views_server(table, replica->task);

    return server != NULL && server->is_up && is_replica(replica) &&
           server->incarnation == replica->incarnation;
}

static bool is_dead(const struct mu__view_table *table, const struct mu__replica *replica)
{
    const struct view_server *server = mu__views_server(table, replica->task);

    if (!is_replica(replica) || server == NULL)
        return false;
    return server->incarnation != 0 && server->incarnation != replica->incarnation;
}

static bool is_unreachable(const struct mu__view_table *table,
                           const struct mu__replica *replica, uint64_t now_ms)
{
    const struct view_server *server = mu__views_server(table, replica->task);

    if (!is_replica(replica) || server == NULL)
        return false;
    return is_dead(table, replica) ||
           (!server->is_linked && now_ms >= server->down_ms + table->config.grace_ms);
}

/* ---- Choosing servers ---- */

static struct mu__replica process_of(const struct view_server *server)
{
    return server == NULL ? no_replica
                          : (struct mu__replica){server->task, server->incarnation};
}

bool mu__views_is_open(const struct view_server *server)
{
    return server->is_up && !server->is_draining;
}

/* Of those that take more and are not `primary`, the one with the least roles; of equals
 * the next, counted from another one for each partition of a home. */
static const struct view_server *choose_second(const struct mu__view_table *table,
                                               const struct mu__replica *primary,
                                               uint32_t partition)
{
    const struct view_server *first = mu__views_server(table, primary->task);
    uint32_t others = table->servers_count - 1;
    uint32_t turn = partition / table->config.servers;
    const struct view_server *best = NULL;

    for (uint32_t i = 0; i < others; i++) {
        uint32_t at = (uint32_t)(first - table->servers) + 1 + (turn + i) % others;
        const struct view_server *server = &table->servers[at % table->servers_count];

        if (mu__views_is_open(server) && (best == NULL || server->roles < best->roles))
            best = server;
    }
    return best;
}

/* One of those that take more, another for each partition of a home; one that is drained
 * if there is no other. */
static const struct view_server *choose_substitute(const struct mu__view_table *table,
                                                   uint32_t partition)
{
    uint32_t turn = partition / table->config.servers;
    const struct view_server *drained = NULL;

    for (uint32_t i = 0; i < table->servers_count; i++) {
        const struct view_server *server =
            &table->servers[(turn + i) % table->servers_count];

        if (mu__views_is_open(server))
            return server;
        if (server->is_up)
            drained = server;
    }
    return drained;
}

/* Its home. Others take its place when it is drained; and for a lost partition when its
 * link is down. NULL: nobody yet. */
static const struct view_server *choose_primary(const struct mu__view_table *table,
                                                const struct view_row *row)
{
    uint32_t partition = row->view.partition;
    const struct view_server *home =
        &table->servers[mu__partition_home(partition, table->config.servers)];

    if (mu__views_is_open(home))
        return home;
    if (!home->is_draining && (home->is_linked || row->view.number == 0))
        return NULL;
    return choose_substitute(table, partition);
}

/* ---- Changes ---- */

static void decide_view(struct mu__view_table *table, struct view_row *row,
                        struct mu__partition_view view)
{
    bool is_first = row->view.number == 0;

    view.number = mu__views_higher(table, row, row->view.number);
    mu__views_owe_members(table, row);
    mu__views_replace(table, row, &view);
    mu__views_owe_members(table, row);
    row->is_newest = true;
    row->is_new = true;
    row->is_decided = !is_first || table->is_informed;
}

bool mu__views_decide(struct mu__view_table *table, struct view_row *row,
                      struct mu__replica primary, struct mu__replica backup,
                      struct mu__replica learner)
{
    struct mu__partition_view view = row->view;

    view.primary = primary;
    view.backup = backup;
    view.learner = learner;
    view.handover = false;
    decide_view(table, row, view);
    return true;
}

void mu__views_hand_over(struct mu__view_table *table, struct view_row *row)
{
    struct mu__partition_view view = row->view;

    view.handover = true;
    decide_view(table, row, view);
}

/* With an empty store. */
static bool begin_empty(struct mu__view_table *table, struct view_row *row)
{
    const struct view_server *server = choose_primary(table, row);
    struct mu__partition_view view = {.partition = row->view.partition};

    if (server == NULL)
        return false;
    view.primary = process_of(server);
    view.store_id = draw_identity(table);
    if (table->backups > 0)
        view.backup = process_of(choose_second(table, &view.primary, view.partition));
    decide_view(table, row, view);
    return true;
}

static bool replace_lost(struct mu__view_table *table, struct view_row *row)
{
    struct view_server *server = mu__views_server(table, row->view.primary.task);

    if (!begin_empty(table, row))
        return false;
    server->lost++;
    table->lost++;
    return true;
}

/* Whether it lives for sure, although the primary's link has gone down: both may have
 * died. */
static bool has_answered(const struct mu__view_table *table,
                         const struct mu__replica *backup,
                         const struct mu__replica *primary)
{
    return mu__views_is_up(table, backup) &&
           mu__views_server(table, backup->task)->heard >
               mu__views_server(table, primary->task)->closed;
}

/* Without backups, one that is promoted in the middle of a move has it in no journal yet:
 * who was the primary stays named, whose journal has it. */
static bool promote_backup(struct mu__view_table *table, struct view_row *row)
{
    const struct mu__partition_view *view = &row->view;
    bool keeps_former =
        table->backups == 0 && mu__views_may_restore(table, row, &view->primary);

    (void)mu__views_decide(table, row, view->backup,
                           keeps_former ? view->primary : no_replica, no_replica);
    row->is_handed_over = keeps_former;
    return true;
}

/* Whether its journal has what the primary's may not have yet. */
static bool may_restore_backup(const struct mu__view_table *table,
                               const struct view_row *row)
{
    return row->is_handed_over && mu__views_may_restore(table, row, &row->view.backup);
}

static bool find_restored(const struct mu__view_table *table, const struct view_row *row,
                          struct mu__replica *ret_process)
{
    return mu__views_find_restored(table, row, &row->view.primary, ret_process) ||
           (row->is_handed_over &&
            mu__views_find_restored(table, row, &row->view.backup, ret_process));
}

/* By the process that has all of it from its journal. A backup that is up comes first. */
static bool restore_primary(struct mu__view_table *table, struct view_row *row)
{
    struct mu__replica process;

    return !mu__views_is_up(table, &row->view.backup) &&
           find_restored(table, row, &process) &&
           mu__views_decide(table, row, process, no_replica, no_replica);
}

static bool is_lost(const struct mu__view_table *table, const struct view_row *row)
{
    const struct mu__partition_view *view = &row->view;

    if (!is_dead(table, &view->primary) ||
        mu__views_may_restore(table, row, &view->primary))
        return false;
    return !is_replica(&view->backup) ||
           (is_dead(table, &view->backup) && !may_restore_backup(table, row));
}

static bool replace_primary(struct mu__view_table *table, struct view_row *row)
{
    const struct mu__partition_view *view = &row->view;

    if (has_answered(table, &view->backup, &view->primary))
        return promote_backup(table, row);
    if (restore_primary(table, row))
        return true;
    return is_lost(table, row) && replace_lost(table, row);
}

static bool is_lost_fate(uint32_t fate)
{
    return fate == MU__REPLICA_LOST || fate == MU__REPLICA_DIVERGED;
}

static bool is_learner_lost(const struct mu__view_table *table,
                            const struct view_row *row, uint64_t now_ms)
{
    const struct mu__replica *learner = &row->view.learner;

    return is_lost_fate(row->learner_fate) || is_unreachable(table, learner, now_ms) ||
           (is_replica(learner) && mu__views_server(table, learner->task)->is_draining);
}

/* In place of the backup, if there is one. */
static bool raise_learner(struct mu__view_table *table, struct view_row *row,
                          uint64_t now_ms)
{
    const struct mu__partition_view *view = &row->view;

    if (row->learner_fate != MU__REPLICA_LEVEL || !is_replica(&view->learner) ||
        is_learner_lost(table, row, now_ms))
        return false;
    return mu__views_decide(table, row, view->primary, view->learner, no_replica);
}

/* Whether a backup can be reached is for the primary to say: it may be only the chief
 * that cannot, while the primary dies. Without backups, it stays as long as it may be
 * needed for its journal. */
static bool is_backup_lost(const struct mu__view_table *table, const struct view_row *row)
{
    const struct mu__replica *backup = &row->view.backup;

    if (row->backup_fate == MU__REPLICA_DIVERGED)
        return true;
    return (row->backup_fate == MU__REPLICA_LOST || is_dead(table, backup)) &&
           (table->backups > 0 || !may_restore_backup(table, row));
}

static bool drop_others(struct mu__view_table *table, struct view_row *row,
                        uint64_t now_ms)
{
    const struct mu__partition_view *view = &row->view;
    bool drops_backup = is_backup_lost(table, row);
    bool drops_learner = is_learner_lost(table, row, now_ms);
    struct mu__replica backup = drops_backup ? no_replica : view->backup;
    struct mu__replica learner = drops_learner ? no_replica : view->learner;

    if (is_replica(&view->backup) == is_replica(&backup) &&
        is_replica(&view->learner) == is_replica(&learner))
        return false;
    return mu__views_decide(table, row, view->primary, backup, learner);
}

/* The primary has stopped, and the backup has all that it has; or the backup cannot be
 * told that it is the primary, and the primary goes on. */
static bool end_handover(struct mu__view_table *table, struct view_row *row,
                         uint64_t now_ms)
{
    const struct mu__partition_view *view = &row->view;

    if (!view->handover)
        return false;
    if (is_unreachable(table, &view->backup, now_ms))
        return mu__views_decide(table, row, view->primary, view->backup, no_replica);
    if (row->backup_fate != MU__REPLICA_READY || !mu__views_is_up(table, &view->backup))
        return false;
    (void)mu__views_decide(table, row, view->backup, view->primary, no_replica);
    row->is_handed_over = true;
    return true;
}

static bool add_learner(struct mu__view_table *table, struct view_row *row)
{
    const struct mu__partition_view *view = &row->view;
    struct mu__replica learner;

    if (table->backups == 0 || is_replica(&view->backup) || is_replica(&view->learner))
        return false;
    learner = process_of(choose_second(table, &view->primary, view->partition));
    return is_replica(&learner) &&
           mu__views_decide(table, row, view->primary, no_replica, learner);
}

/* ---- What a restarted chief knows ---- */

static bool have_all_reported(const struct mu__view_table *table)
{
    for (uint32_t i = 0; i < table->servers_count; i++)
        if (table->servers[i].reported == 0)
            return false;
    return true;
}

/* Whether servers that have not reported are waited for no more. */
static bool is_informed(struct mu__view_table *table, uint64_t now_ms)
{
    if (!table->is_successor && table->backups == 0)
        return true;
    if (!table->is_informed)
        table->is_informed =
            have_all_reported(table) ||
            (table->has_begun && now_ms >= table->begun_ms + table->config.recovery_ms);
    return table->is_informed;
}

/* A newer view is in force only if the primary or the backup has heard of it. */
static bool is_backup_known(const struct mu__view_table *table,
                            const struct view_row *row)
{
    return row->is_newest || (row->reporters & MU__BACKUP_REPORTED) != 0 ||
           !is_replica(&row->view.backup) || is_dead(table, &row->view.backup);
}

static bool is_primary_known(const struct view_row *row)
{
    return row->is_newest || (row->reporters & MU__PRIMARY_REPORTED) != 0;
}

bool mu__views_is_known(const struct mu__view_table *table, const struct view_row *row)
{
    return is_backup_known(table, row) && is_primary_known(row);
}

static bool decide_known(struct mu__view_table *table, struct view_row *row,
                         uint64_t now_ms)
{
    const struct mu__replica *primary = &row->view.primary;

    if (is_unreachable(table, primary, now_ms))
        return replace_primary(table, row);
    if (!mu__views_is_up(table, primary))
        return false;
    return raise_learner(table, row, now_ms) || drop_others(table, row, now_ms) ||
           end_handover(table, row, now_ms) || add_learner(table, row);
}

static bool decide_row(struct mu__view_table *table, struct view_row *row,
                       uint64_t now_ms)
{
    if (row->view.number == 0)
        return begin_empty(table, row);
    if (!is_backup_known(table, row))
        return false;
    if (!is_primary_known(row))
        return is_dead(table, &row->view.primary) && replace_lost(table, row);
    return decide_known(table, row, now_ms);
}

/* ---- All of it ---- */

static uint64_t earlier_of(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static bool is_named(const struct mu__view_table *table, uint32_t task)
{
    for (uint32_t i = 0; i < MU__PARTITIONS; i++) {
        const struct mu__partition_view *view = &table->rows[i].view;

        if ((is_replica(&view->primary) && view->primary.task == task) ||
            (is_replica(&view->backup) && view->backup.task == task) ||
            (is_replica(&view->learner) && view->learner.task == task))
            return true;
    }
    return false;
}

/* When time alone changes something next. */
static uint64_t next_due_ms(const struct mu__view_table *table, uint64_t now_ms)
{
    uint64_t next = UINT64_MAX;

    for (uint32_t i = 0; i < table->servers_count; i++) {
        const struct view_server *server = &table->servers[i];
        uint64_t absent_ms = server->down_ms + table->config.grace_ms;

        if (!server->is_linked && absent_ms > now_ms && is_named(table, server->task))
            next = earlier_of(next, absent_ms);
    }
    next = earlier_of(next, mu__views_moves_due_ms(table, now_ms));
    if (!table->is_informed && table->has_begun &&
        table->begun_ms + table->config.recovery_ms > now_ms)
        next = earlier_of(next, table->begun_ms + table->config.recovery_ms);
    return next;
}

uint64_t mu__view_table_decide(struct mu__view_table *table, uint64_t now_ms)
{
    if (is_informed(table, now_ms)) {
        for (uint32_t i = 0; i < MU__PARTITIONS; i++)
            while (decide_row(table, &table->rows[i], now_ms))
                continue;
        mu__views_move(table, now_ms);
    }
    return next_due_ms(table, now_ms);
}
