/* The table of views, as its files see it: what happened (view_table.c), what is decided
 * about it (view_rules.c), also so that load is spread (view_moves.c), and what the
 * status shows of it (views_status.c). */
#ifndef MU_ACTORS_VIEWS_INTERNAL_H
#define MU_ACTORS_VIEWS_INTERNAL_H

#include "actors/views/view_table.h"

#include "muster/value.h"

enum { MU__VIEW_WORDS = MU__PARTITIONS / 64 };

/* Of how many partitions a server will be what, once all moves have ended. */
struct view_load {
    uint32_t primaries;
    uint32_t backups;
    uint32_t moves; /* that it gives or gets */
};

struct view_restored;

struct view_server {
    uint32_t task;
    uint32_t node;
    uint64_t incarnation; /* of its newest process; 0: none has come */
    uint64_t reported;    /* of the last process that has reported; 0: none */
    bool is_linked;
    bool is_up;                    /* linked, and has reported since */
    bool is_draining;              /* gets nothing more, and gives away what it has */
    bool is_requested;             /* it is to report once more */
    bool is_owed_answer;           /* to its report, even if no view is owed */
    uint64_t down_ms;              /* since when it is not linked */
    uint64_t closed;               /* number of the event when its link went down last, */
    uint64_t heard;                /* and when its last report came */
    uint32_t roles;                /* as a backup or learner */
    uint64_t lost;                 /* partitions, */
    uint64_t lost_said;            /* and of how many of these next_lost() told */
    uint64_t owed[MU__VIEW_WORDS]; /* bits: views that it is to be told */
    struct view_load load;
    struct view_restored *restored; /* of its last report; NULL: it has no journal */
    uint64_t awaited;               /* when it went; next_awaited() told of that */
};

/* Who has reported, and so knows of no newer view: bits. */
enum view_reporter { MU__PRIMARY_REPORTED = 1, MU__BACKUP_REPORTED = 2 };

struct view_row {
    struct mu__partition_view view; /* number 0: never placed */
    uint32_t reporters;  /* enum view_reporter, of a view of an earlier chief */
    bool is_newest;      /* this chief has decided the view, or the store has it */
    bool is_decided;     /* by this chief, knowing all that may have been before */
    bool is_new;         /* decided, or its number raised, and not recorded yet */
    bool is_handed_over; /* the backup has it in its journal, the primary may not yet */
    /* enum mu__replica_fate, in the newest view; 0: none */
    uint32_t backup_fate;
    uint32_t learner_fate;
};

struct mu__view_table {
    struct mu__view_config config;
    uint64_t chance;
    uint64_t events;             /* so far */
    struct view_server *servers; /* those of the cluster at the start come first */
    uint32_t servers_count;
    uint32_t servers_room;
    uint32_t backups; /* of each partition: 0 as long as there is no second server */
    struct view_row rows[MU__PARTITIONS];
    bool has_begun;    /* a server has reported, */
    uint64_t begun_ms; /* first then, */
    bool is_informed;  /* and those that might know more were waited for */
    bool is_successor; /* a server knew of an earlier chief */
    uint64_t lost;
};

/* NULL: there is none of this task. */
struct view_server *mu__views_server(const struct mu__view_table *table, uint32_t task);

/* A number above `number` for the partition of a row. */
uint64_t mu__views_higher(struct mu__view_table *table, const struct view_row *row,
                          uint64_t number);

/* All who have a part in the row's view, and are up, are to be told of it. */
void mu__views_owe_members(struct mu__view_table *table, const struct view_row *row);

/* Another view for the row; counts the roles. */
void mu__views_replace(struct mu__view_table *table, struct view_row *row,
                       const struct mu__partition_view *view);

/* 64 bits of chance. */
uint64_t mu__views_chance(struct mu__view_table *table);

bool mu__views_is_up(const struct mu__view_table *table,
                     const struct mu__replica *replica);

/* The one that is linked as this node; NULL: none is. */
struct view_server *mu__views_linked(const struct mu__view_table *table, uint32_t node);

/* ---- view_rules.c ---- */

/* Whether it may get partitions. */
bool mu__views_is_open(const struct view_server *server);

/* Whether this chief knows that no newer view of the partition is in force. */
bool mu__views_is_known(const struct mu__view_table *table, const struct view_row *row);

/* Other members. Returns true. */
bool mu__views_decide(struct mu__view_table *table, struct view_row *row,
                      struct mu__replica primary, struct mu__replica backup,
                      struct mu__replica learner);

/* The primary is to stop, so that the backup can take its place. */
void mu__views_hand_over(struct mu__view_table *table, struct view_row *row);

/* ---- view_moves.c ---- */

/* Begin the moves that are due. */
void mu__views_move(struct mu__view_table *table, uint64_t now_ms);

/* When a server that is down is not expected back any more; UINT64_MAX: none is. */
uint64_t mu__views_moves_due_ms(const struct mu__view_table *table, uint64_t now_ms);

/* ---- restoring.c ---- */

/* Of a report; one from no server that is linked is ignored. -MU_ENOMEM. */
int mu__views_note_restored(struct mu__view_table *table, uint32_t node,
                            struct mu__view former, struct mu__view partitions);

/* Whether the server's process knows all that this one of its task has known. */
bool mu__views_speaks_for(const struct view_server *server,
                          const struct mu__replica *replica);

/* The process that has what a member of the row's view had when it died. */
bool mu__views_find_restored(const struct mu__view_table *table,
                             const struct view_row *row, const struct mu__replica *member,
                             struct mu__replica *ret_process);

/* Whether there is such a process, or may be one: the newest of the member's task has yet
 * to come, or to report. */
bool mu__views_may_restore(const struct mu__view_table *table, const struct view_row *row,
                           const struct mu__replica *member);

/* ---- views_status.c ---- */

mu_value *mu__views_value(const struct mu__view_table *table);

#endif
