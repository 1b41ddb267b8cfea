/* Moves: a server that is drained gives away all that it has; and when no partition lacks
 * anything, and no server is expected back, load is spread until the counts of primaries
 * and of backups differ by one at most between servers.
 *
 * What is under way counts as if it had ended already. So no more is begun than is
 * needed, and moves come to an end: each handover makes the counts of primaries more
 * alike, and each copy, unless it is for a handover, those of backups. Nothing is
 * remembered but the views: a restarted chief goes on with them. */
#include "actors/views/internal.h"

#include "actors/messages/limits.h"

enum {
    MOVES_MAX = 4,          /* under way, of each server */
    DRAINED_LOAD = 1 << 20, /* more than any server has */
    UNEVEN = 2              /* a difference that a move makes smaller */
};

static struct view_server *mover_of(const struct mu__view_table *table,
                                    const struct mu__replica *replica)
{
    return replica->incarnation == 0 ? NULL : mu__views_server(table, replica->task);
}

/* ---- Load ---- */

static uint32_t primary_load(const struct view_server *server)
{
    return server->load.primaries + (server->is_draining ? DRAINED_LOAD : 0);
}

static uint32_t backup_load(const struct view_server *server)
{
    return server->load.backups + (server->is_draining ? DRAINED_LOAD : 0);
}

static bool needs_handover(const struct view_server *primary,
                           const struct view_server *backup)
{
    return mu__views_is_open(backup) &&
           primary_load(primary) >= primary_load(backup) + UNEVEN;
}

static void count_members(const struct mu__view_table *table, struct view_server *primary,
                          struct view_server *backup)
{
    primary->load.primaries++;
    if (backup != NULL && table->backups > 0)
        backup->load.backups++;
}

static void count_move(struct view_server *primary, struct view_server *target)
{
    primary->load.moves++;
    target->load.moves++;
}

/* What a row will be once its move has ended. */
static void count_row(const struct mu__view_table *table, const struct view_row *row)
{
    struct view_server *primary = mover_of(table, &row->view.primary);
    struct view_server *backup = mover_of(table, &row->view.backup);
    struct view_server *learner = mover_of(table, &row->view.learner);
    struct view_server *target = learner != NULL ? learner : backup;
    bool is_moving = learner != NULL || row->view.handover;

    if (is_moving)
        count_move(primary, target);
    if (row->view.handover || (learner != NULL && needs_handover(primary, learner)))
        count_members(table, target, primary);
    else
        count_members(table, primary, target);
}

static bool is_moving_row(const struct view_row *row)
{
    return row->view.handover || row->view.learner.incarnation != 0;
}

/* Those that stay first: what becomes of the others depends on them. */
static void count_all(struct mu__view_table *table)
{
    for (uint32_t i = 0; i < table->servers_count; i++)
        table->servers[i].load = (struct view_load){0};
    for (int moving = 0; moving < 2; moving++)
        for (uint32_t i = 0; i < MU__PARTITIONS; i++)
            if (table->rows[i].view.number != 0 &&
                is_moving_row(&table->rows[i]) == (moving == 1))
                count_row(table, &table->rows[i]);
}

/* ---- Which rows, and which servers ---- */

/* Whether a move may begin. */
static bool is_movable(const struct mu__view_table *table, const struct view_row *row)
{
    bool has_backup = row->view.backup.incarnation != 0;

    return row->view.number != 0 && !is_moving_row(row) && !row->is_handed_over &&
           (row->backup_fate == 0 || row->backup_fate == MU__REPLICA_SPARE) &&
           mu__views_is_known(table, row) && mu__views_is_up(table, &row->view.primary) &&
           (has_backup ? mu__views_is_up(table, &row->view.backup) : table->backups == 0);
}

static bool has_move_room(const struct view_server *server)
{
    return server->load.moves < MOVES_MAX;
}

typedef uint32_t (*load_fn)(const struct view_server *server);

/* The server with the least load that may get a copy; NULL: there is none. */
static struct view_server *choose_target(const struct mu__view_table *table,
                                         const struct view_row *row, load_fn load)
{
    struct view_server *best = NULL;

    for (uint32_t i = 0; i < table->servers_count; i++) {
        struct view_server *server = &table->servers[i];

        if (mu__views_is_open(server) && has_move_room(server) &&
            server != mover_of(table, &row->view.primary) &&
            server != mover_of(table, &row->view.backup) &&
            (best == NULL || load(server) < load(best)))
            best = server;
    }
    return best;
}

/* Of the partitions of a primary, how many have their backup on a server. */
static uint32_t count_pairs(const struct mu__view_table *table,
                            const struct mu__replica *primary,
                            const struct view_server *backup)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < MU__PARTITIONS; i++) {
        const struct mu__partition_view *view = &table->rows[i].view;
        const struct mu__replica *other =
            view->learner.incarnation != 0 ? &view->learner : &view->backup;

        count += view->number != 0 && view->primary.task == primary->task &&
                 mover_of(table, other) == backup;
    }
    return count;
}

/* ---- Moves ---- */

static void begin_copy(struct mu__view_table *table, struct view_row *row,
                       const struct view_server *target)
{
    (void)mu__views_decide(table, row, row->view.primary, row->view.backup,
                           (struct mu__replica){target->task, target->incarnation});
    count_all(table);
}

/* True: it has begun. */
static bool hand_over(struct mu__view_table *table, struct view_row *row, bool is_settled)
{
    const struct view_server *primary = mover_of(table, &row->view.primary);
    const struct view_server *backup = mover_of(table, &row->view.backup);

    if (backup == NULL || !is_movable(table, row) || !needs_handover(primary, backup) ||
        !(is_settled || primary->is_draining || table->backups == 0) ||
        !has_move_room(primary) || !has_move_room(backup))
        return false;
    mu__views_hand_over(table, row);
    count_all(table);
    return true;
}

/* Without backups there is one only as long as a move lasts, which is until the primary
 * has what it got in its journal. */
static void drop_spare(struct mu__view_table *table, struct view_row *row)
{
    const struct view_server *backup = mover_of(table, &row->view.backup);

    if (table->backups > 0 || backup == NULL || row->is_handed_over ||
        is_moving_row(row) || !mu__views_is_known(table, row) ||
        !mu__views_is_up(table, &row->view.primary) ||
        needs_handover(mover_of(table, &row->view.primary), backup))
        return;
    (void)mu__views_decide(table, row, row->view.primary, (struct mu__replica){0},
                           (struct mu__replica){0});
}

/* A copy that might begin: the best one. */
struct copy {
    struct view_row *row; /* NULL: there is none */
    const struct view_server *target;
    uint32_t gain;
    int64_t spread; /* by how much more alike it makes the places of backups */
};

static bool is_better_copy(const struct copy *a, const struct copy *b)
{
    return b->row == NULL || a->gain > b->gain ||
           (a->gain == b->gain && a->spread > b->spread);
}

static void try_copy(const struct mu__view_table *table, struct view_row *row,
                     load_fn load, bool of_drained, struct copy *best)
{
    const struct mu__replica *from =
        load == primary_load ? &row->view.primary : &row->view.backup;
    const struct view_server *source = mover_of(table, from);
    struct copy copy = {.row = row};

    if (source == NULL || (of_drained && !source->is_draining) ||
        !is_movable(table, row) || !has_move_room(mover_of(table, &row->view.primary)))
        return;
    copy.target = choose_target(table, row, load);
    if (copy.target == NULL || load(source) < load(copy.target) + UNEVEN)
        return;
    copy.gain = load(source) - load(copy.target);
    if (load == backup_load && (best->row == NULL || copy.gain >= best->gain))
        copy.spread = (int64_t)count_pairs(table, &row->view.primary, source) -
                      count_pairs(table, &row->view.primary, copy.target);
    if (is_better_copy(&copy, best))
        *best = copy;
}

static void copy_all(struct mu__view_table *table, load_fn load, bool of_drained)
{
    for (;;) {
        struct copy best = {.row = NULL};

        for (uint32_t i = 0; i < MU__PARTITIONS; i++)
            try_copy(table, &table->rows[i], load, of_drained, &best);
        if (best.row == NULL)
            return;
        begin_copy(table, best.row, best.target);
    }
}

/* ---- When ---- */

static bool is_expected_back(const struct mu__view_table *table,
                             const struct view_server *server, uint64_t now_ms)
{
    return !server->is_up &&
           (server->is_linked || now_ms < server->down_ms + table->config.recovery_ms);
}

static bool is_whole(const struct mu__view_table *table, const struct view_row *row)
{
    return row->view.number != 0 && mu__views_is_up(table, &row->view.primary) &&
           (table->backups == 0 || mu__views_is_up(table, &row->view.backup));
}

/* Whether nothing is missing that has to be there first. */
static bool is_settled(const struct mu__view_table *table, uint64_t now_ms)
{
    for (uint32_t i = 0; i < table->servers_count; i++)
        if (is_expected_back(table, &table->servers[i], now_ms))
            return false;
    for (uint32_t i = 0; i < MU__PARTITIONS; i++)
        if (!is_whole(table, &table->rows[i]))
            return false;
    return true;
}

void mu__views_move(struct mu__view_table *table, uint64_t now_ms)
{
    bool settled = is_settled(table, now_ms);

    count_all(table);
    for (uint32_t i = 0; i < MU__PARTITIONS; i++)
        if (!hand_over(table, &table->rows[i], settled))
            drop_spare(table, &table->rows[i]);
    copy_all(table, backup_load, !settled);
    copy_all(table, primary_load, !settled);
}

uint64_t mu__views_moves_due_ms(const struct mu__view_table *table, uint64_t now_ms)
{
    uint64_t next = UINT64_MAX;

    for (uint32_t i = 0; i < table->servers_count; i++) {
        const struct view_server *server = &table->servers[i];
        uint64_t due_ms = server->down_ms + table->config.recovery_ms;

        if (!server->is_linked && is_expected_back(table, server, now_ms) &&
            due_ms < next)
            next = due_ms;
    }
    return next;
}
