/* Who holds each partition of the parameter servers: the chief's table of views, and the
 * rules by which they change. Pure: it knows the time it is given, and sends nothing.
 *
 * An event (a server comes, goes, reports) is noted by one call. Then
 * mu__view_table_decide() decides what has become due, and mu__view_table_next_owed()
 * says what is to be told to whom. Between the two the caller records what was decided
 * (recording.h).
 *
 * A server is up when its link is, and its report came over it. Its process is dead for
 * sure when another process of its task has come. It is gone when it is dead, or its link
 * has been down for `grace_ms`.
 *
 * - A partition is placed once its home is up. If there are to be backups, all servers
 * are waited for before, for `recovery_ms`: so the backups of each are spread, and what
 * an earlier chief has decided is heard first.
 * - The primary is gone: the backup becomes primary, if it is up, and has reported since
 *   the primary's link went down; servers are asked for reports then. If there is none,
 * or it is dead, a dead primary means that the partition is lost: it is placed anew,
 * empty, and counted. A primary that may come back is waited for.
 * - The primary is up, and says that the other replica is lost or has diverged; or the
 *   backup is dead, or the learner gone: a view without it. Nothing is taken from a
 * primary that is not up: the other may have to replace it.
 * - A primary has neither backup nor learner, but there should be one: a learner, which
 *   is the backup as soon as the primary says that it is level.
 *
 * Partitions are moved, a few at a time, when a server is drained, and to spread load
 * (view_moves.c). A move is made of two steps, each of which leaves all that there is:
 *
 * - A copy: a learner beside the backup, whose place it takes as soon as it is level.
 *   Without backups it is one for as long as the move lasts.
 * - A handover: the primary is told to stop. When it says that the backup has all, the
 * two change their places. The primary needs no filling, since it has stopped since.
 *
 * Servers may have journals (restoring.c). Without backups the former primary stays named
 * as the backup, dead or alive, until the next one says that its own journal has all: of
 * two that die, the one that comes back with it goes on. A primary that dies in the
 * middle of a move stays named, too, with the copy as the next primary.
 *
 * What is lost comes first: a member that dies ends a move, and the rules above go on
 * from what is left.
 *
 * A restarted chief has an empty table. It reads the views that its predecessor recorded:
 * since each was recorded before it was told to anybody, no newer one is in force. So it
 * knows who has what, whoever lives and reports. Before it changes one, it waits for all
 * servers to report, or `recovery_ms`, as a server that is not linked yet may well live.
 *
 * A chief that finds that another one has recorded views takes these instead of those
 * that it has decided and not recorded, which nobody has heard of.
 *
 * What follows is for a chief that finds nothing recorded: there is no service, or its
 * store has kept nothing. It learns views from reports, and must not change one while a
 * newer view may be in force:
 *
 * - The first newer view has the primary or the backup as its primary; so it is in force
 *   only if one of these two has heard of it, and that one knows. So the primary must
 *   have reported, and the backup, too, or be dead.
 * - A later one may be known to servers alone that the reported view does not name. So
 *   nothing is changed or placed before all servers have reported, of the cluster and
 *   of reported views, or `recovery_ms` have passed since the first who knew of views.
 * - A primary that dies without a report may have gone on without its backup. Nobody can
 *   tell: the partition is lost, even if the backup lives.
 * - A backup that dies without a report may have been the primary. That is not seen here:
 *   the former primary goes on.
 * - Nor is the order of what two chiefs decided of which the later did not hear from the
 *   earlier one's servers in time: a third one takes the higher number for the newer.
 * - A restarted chief's first number of a partition lies a random number higher, so that
 *   it is not one that its predecessor has given to somebody who has not reported.
 *
 * Servers report the newest view that they have heard of each partition, also those in
 * which they have no part; or they may be told numbers below, which they refuse.
 *
 * A reported view that is newer than the table's is taken over, until this chief has
 * decided about the partition, knowing what there was before. From then on such a view
 * gives way: the table's gets a number above it. So does a recorded one, if a chief could
 * not read it for so long that it has decided without. */
#ifndef MU_ACTORS_VIEW_TABLE_H
#define MU_ACTORS_VIEW_TABLE_H

#include "actors/partitions.h"

struct mu__view_table;

/* Of a configuration. */
enum { MU__VIEW_GRACE_MS = 20, MU__VIEW_RECOVERY_MS = 10000 };

enum { MU__VIEW_TABLE_BYTES = MU__PARTITIONS * MU__VIEW_BYTES };

struct mu__view_config {
    uint32_t servers;      /* tasks of the parameter servers, at least 1 */
    uint32_t backups;      /* of each partition: 0 or 1, from two servers on */
    uint32_t grace_ms;     /* a link that is down for less makes no difference */
    uint32_t recovery_ms;  /* for which unheard servers are waited for, see above */
    const uint32_t *tasks; /* their indices; NULL: from 0 on. Not kept */
};

/* NULL: out of memory. */
struct mu__view_table *mu__view_table_new(const struct mu__view_config *config,
                                          uint64_t now_ms);

/* The seed of chance, by which stores get their numbers, and views after a restart:
 * before the first server is up. */
void mu__view_table_seed(struct mu__view_table *table, uint64_t seed);
void mu__view_table_free(struct mu__view_table *table);

/* ---- Events ---- */

/* A link to a server came up, to node `node`. -MU_ENOMEM: it is ignored. */
int mu__view_table_up(struct mu__view_table *table, uint32_t node,
                      const struct mu__replica *process, uint64_t now_ms);

/* A link went down; nodes that are no servers are fine. */
void mu__view_table_down(struct mu__view_table *table, uint32_t node, uint64_t now_ms);

/* A task was added to the cluster. -MU_ENOMEM. */
int mu__view_table_added(struct mu__view_table *table, uint32_t task, uint64_t now_ms);

/* A server is to give away all that it has, until another process of its task comes.
 * False: there is none of this task. */
bool mu__view_table_drain(struct mu__view_table *table, uint32_t task);

/* Whether a server that reports is drained: it was told, maybe by a former chief. */
void mu__view_table_note_draining(struct mu__view_table *table, uint32_t node,
                                  bool draining);

/* Whether it has nothing any more, or copies alone that no other server can take. */
bool mu__view_table_has_drained(const struct mu__view_table *table, uint32_t task);

/* VIEWS_HELD. -MU_ENOTFOUND: from no server that is linked; -MU_EINVALID: some views are
 * nonsense, and the others were taken; -MU_ENOMEM, and the others were taken. */
int mu__view_table_held(struct mu__view_table *table, uint32_t node,
                        struct mu__view views, bool known, uint64_t now_ms);

/* REPLICA_NEWS, with an enum mu__replica_fate of the learner or the backup; news of views
 * that are not the newest are ignored. -MU_ENOTFOUND as above; -MU_EINVALID: some are
 * nonsense, or the sender is not the primary. */
int mu__view_table_news(struct mu__view_table *table, uint32_t node, uint32_t fate,
                        bool learner, struct mu__view partitions);

/* ---- Decisions ---- */

/* Decide what is due. Returns when time alone may make more due; UINT64_MAX: never. */
uint64_t mu__view_table_decide(struct mu__view_table *table, uint64_t now_ms);

/* The next server, from number *at on (0 at first), to which views are owed, or an answer
 * to its report, which may be without any: its node, and the bytes of a VIEWS_SET. False:
 * there are no more. */
struct mu__views_owed {
    uint32_t server; /* for mu__view_table_sent() */
    uint32_t node;
    uint32_t size;
    uint8_t bytes[MU__VIEW_TABLE_BYTES];
};

/* The next server, from number *at on (0 at first), that is to report once more
 * (VIEWS_GET): its number for mu__view_table_requested(), its node, and whether it is
 * drained. False: there are no more. */
bool mu__view_table_next_requested(const struct mu__view_table *table, uint32_t *at,
                                   uint32_t *ret_server, uint32_t *ret_node,
                                   bool *ret_draining);
void mu__view_table_requested(struct mu__view_table *table, uint32_t server);

bool mu__view_table_next_owed(const struct mu__view_table *table, uint32_t *at,
                              struct mu__views_owed *ret_owed);
void mu__view_table_sent(struct mu__view_table *table, uint32_t server);

/* The next server of which partitions were lost since this was asked last: its task, and
 * how many. */
bool mu__view_table_next_lost(struct mu__view_table *table, uint32_t *ret_task,
                              uint32_t *ret_count);

/* The next server that is not linked and that has in its journal what no other one has:
 * its task, and how many partitions. Of each that goes this tells once. */
bool mu__view_table_next_awaited(struct mu__view_table *table, uint64_t now_ms,
                                 uint32_t *ret_task, uint32_t *ret_count);

/* ---- The store ---- */

/* All views, in the order of the partitions; returns how many bytes. */
uint32_t mu__view_table_pack(const struct mu__view_table *table,
                             uint8_t bytes[MU__VIEW_TABLE_BYTES]);

/* What was decided is recorded, and may be told; or it is told without. */
void mu__view_table_recorded(struct mu__view_table *table);

/* The views that the store has: read first, or `again`, since another chief has recorded
 * what it decided. -MU_EINVALID: some are nonsense; -MU_ENOMEM; the others were taken. */
int mu__view_table_restore(struct mu__view_table *table, struct mu__view views,
                           bool again, uint64_t now_ms);

/* ---- Status ---- */

struct mu__view_totals {
    uint32_t placed;
    uint32_t without_primary; /* it is not up */
    uint32_t degraded;        /* without a backup, though there should be one */
    uint32_t filling;         /* of these: with a learner */
    uint32_t moving;          /* with a learner beside the backup, or handed over */
    uint64_t lost;            /* since the chief began */
};

void mu__view_table_totals(const struct mu__view_table *table,
                           struct mu__view_totals *ret_totals);

/* Of how many partitions a server is what. */
struct mu__view_roles {
    uint32_t task;
    bool is_up;
    bool is_draining;
    uint32_t primary;
    uint32_t backup;
    uint32_t learner;
    uint32_t degraded; /* as its primary */
    uint64_t lost;     /* of which it was the primary, since the chief began */
};

/* Of server number `at`, from 0. False: there are no more. */
bool mu__view_table_roles(const struct mu__view_table *table, uint32_t at,
                          struct mu__view_roles *ret_roles);

/* Of the server of a task. False: there is none; all is 0. */
bool mu__view_table_roles_of(const struct mu__view_table *table, uint32_t task,
                             struct mu__view_roles *ret_roles);

/* NULL: it was never placed. */
const struct mu__partition_view *mu__view_table_at(const struct mu__view_table *table,
                                                   uint32_t partition);

#endif
