/* What the actor of a parameter server is made of:
 *
 *     ps.c          requests of clients, and their answers; the same as records
 *     replicas.c    views: which partitions are here, and in which role
 *     stream.c      records to the other replicas, and answers that wait for them
 *     filling.c     a learner gets what a partition holds
 *     snapshots.c   clients read what a partition held at one record, and give it back
 *     tables/           look-ups of rows, tables in copies, writes of several partitions
 *     clock_requests.c  clocks: requests, filling, members that are lost
 *     ps_status.c   what the status shows
 *     ps_journal.h  records to a file, and what is read of it at the start
 *
 * A partition is a state machine: what changes it is a request, which gets the next
 * number, is sent to the other replicas as a record, and is applied everywhere in the
 * same order. A client gets its answer when the backup has applied it too; so does who
 * reads it before. A primary that learns of a view without it drops all that it holds.
 *
 * Requests under way belong to a generation. A new one begins when a backup becomes
 * primary, and when a learner begins to be filled: then pieces, openers and creators of
 * the generation before are forgotten, by a backup that stays with the first record of
 * the new one, and clients begin their requests anew. So these are never copied.
 *
 * A primary that hands over takes no requests any more once the view says so. When the
 * backup has all, it tells the chief, and waits for another view: so it has the same as
 * the next primary, and can be its backup at once. */
#ifndef MU_ACTORS_PS_SERVER_H
#define MU_ACTORS_PS_SERVER_H

#include "actors/coordination/store/journal.h"
#include "actors/messages.h"
#include "actors/ps/applied.h"
#include "actors/ps/clocks.h"
#include "actors/ps/journal/journal_state.h"
#include "actors/ps/ps.h"
#include "actors/ps/staging.h"
#include "actors/ps/store_snapshots.h"
#include "actors/ps/tables/table_set.h"
#include "actors/ps/tables/written.h"
#include "actors/ps/variable_store.h"
#include "actors/ps/writers.h"

enum {
    STREAM_RECORDS_MAX = 1024, /* not acknowledged, of one partition */
    FILL_PIECE_BYTES = 1 << 17,
    FILL_WINDOW_MIN = 256 << 10, /* of all fillings, not acknowledged, */
    FILL_WINDOW_MAX = 4 << 20    /* at most */
};

enum role {
    SERVING,  /* the primary */
    BACKING,  /* the backup: applies records */
    LEARNING, /* the same, and has only what it was filled with so far */
    RESTORED  /* from the journal: waits for a view */
};

/* The other replicas of a primary. */
enum { TO_BACKUP, TO_LEARNER, STREAMS };

/* A primary's side of one of them. */
struct stream {
    uint32_t node;              /* where it is; 0: no link to it */
    bool needed;                /* answers wait for it */
    enum mu__replica_fate fate; /* what the chief is told; 0: nothing */
    uint64_t wait_until_ms; /* for a link to it; 0: there is one, or none is waited for */
    uint64_t acked;         /* all records up to this one are applied there */
    uint64_t level_at;      /* a learner that has all up to this one is level */
    uint64_t checked_from;  /* sums of records from this one on are compared */
};

struct held_message {
    struct mu__list_node node;
    uint64_t record; /* of an answer: it waits for this record */
    mu__pid to;
    struct mu__msg *msg; /* NULL: the write with this token is applied */
    uint64_t token;
};

/* A primary's side of a filling; of a learner's only what says so. */
struct filling {
    bool active;                  /* a learner, too: it was begun */
    bool slots;                   /* the next bytes are those of the slots, */
    uint64_t offset;              /* from here, */
    uint64_t id;                  /* of this shard; 0: of the next one */
    struct mu__table_cursor rows; /* behind the last shard: */
    bool ended;     /* a learner, too: the last piece was sent, or has come */
    uint64_t sent;  /* bytes, */
    uint64_t taken; /* and of these acknowledged */
};

/* The window of all fillings by this server. It grows while pieces are acknowledged soon,
 * so that a slow link stays free for heartbeats, and only if they are not acknowledged at
 * once, so that a fast one stays free for what programs write. */
struct fill_window {
    uint64_t size;
    uint64_t in_flight;
    uint64_t probe_left; /* bytes that are acknowledged before the probed piece is; */
    uint64_t probe_ms;   /* when that one was sent; 0: none is probed */
};

struct partition {
    struct mu__partition_view view;
    enum role role;
    uint64_t generation; /* else of the last record */
    uint64_t record;     /* the last one that was applied */
    uint64_t safe;       /* `strict`: without a backup, the last one that was on two */
    bool strict;         /* no writes without a backup */
    uint64_t sum;        /* of what came of all of them */
    struct mu__variable_store *store;
    struct mu__staging staging;
    struct mu__applied applied;      /* effects of runs, */
    struct mu__writers writers;      /* and writes of programs */
    struct written_answers *written; /* of all partitions */
    struct stream streams[STREAMS];
    uint64_t *sums;           /* of the last STREAM_RECORDS_MAX; NULL: none were sent */
    struct mu__list held;     /* answers that wait, struct held_message */
    struct mu__list deferred; /* requests that could not become records yet */
    struct mu__clocks clocks;
    struct filling filling;
    bool ready;        /* SERVING: the chief is told that the backup may be the primary */
    bool broken;       /* BACKING, LEARNING: a record is missing */
    bool mark_due;     /* the primary is to hear how far this replica is */
    bool is_journaled; /* the journal has all of it, */
    bool is_in_snapshot; /* and the new file what comes from now on */
    uint64_t journaled;  /* up to this record; UINT64_MAX: none is waited for */
};

/* A node whose link is up. */
struct ps_node {
    uint32_t node;
    bool is_chief;
    bool is_heard; /* the chief has said VIEWS_SET: no newer view is unknown here */
    bool is_server;
    uint32_t index;
    uint64_t incarnation;
};

struct ps {
    uint32_t index;       /* of this task, */
    uint64_t incarnation; /* and of its process */
    const char *leader;
    struct mu__store_limits limits;
    uint64_t bytes_used;
    struct mu__block_pages pages;
    struct open_snapshots snapshots;
    uint64_t staged_used;
    struct partition *partitions[MU__PARTITIONS];     /* NULL: not here */
    struct mu__partition_view newest[MU__PARTITIONS]; /* that were heard */
    struct ps_node *nodes;
    uint32_t nodes_count;
    uint32_t nodes_room;
    bool fenced;
    struct mu__fence fence; /* the last one of a chief */
    uint32_t marks_due;     /* partitions whose mark is due; */
    struct {
        bool strict;   /* partitions without a backup take no writes */
        bool draining; /* this server gives away all that it has */
    } orders;          /* of a chief */
    bool news_due;     /* some partition has a `fate`; */
    bool serves_due;   /* clients are to hear of all that is served; */
    bool sweeps_due;   /* policies of tables may ask for sweeps */
    struct fill_window fill_window;
    struct {
        uint64_t timer; /* 0: not set */
        uint64_t due_ms;
    } retry;
    uint64_t clock_timer; /* 0: not set */
    struct ps_journal journal;
    struct written_answers written;
};

/* ---- ps.c ---- */

/* What changes a partition, by the kind of its message. */
struct mutation {
    uint16_t kind;
    uint16_t size; /* of the body, and where it has its fields */
    uint16_t partition;
    uint16_t generation;
    uint16_t record;
    uint16_t writer;
    void (*apply)(struct mu__ctx *ctx, struct ps *ps, struct partition *p,
                  const struct mu__msg *msg, mu__pid from);
};

const struct mutation *mu__ps_mutation(uint16_t kind);

/* Apply a message of a client of a partition that is served, or keep it for later. It is
 * the one being handled, or one that this takes. */
void mu__ps_begin(struct mu__ctx *ctx, struct ps *ps, struct partition *p,
                  struct mu__msg *msg);

/* The same for one that was kept; false: it has to be kept longer. */
bool mu__ps_begin_deferred(struct mu__ctx *ctx, struct ps *ps, struct partition *p,
                           struct mu__msg *msg);

/* Answer a request; what a replica applies is not answered. `body` is of the struct of
 * `kind`, with `size` bytes. */
void mu__ps_answer(struct mu__ctx *ctx, struct partition *p, mu__pid to, uint16_t kind,
                   const void *body, size_t size);

/* Send to another actor; a loss is logged. */
void mu__ps_send(struct mu__ctx *ctx, mu__pid to, uint16_t kind, const void *body,
                 size_t size);

/* Codes travel as positive numbers, messages only with an error. */
uint32_t mu__ps_code(int rv);
struct mu__view mu__ps_message_of(int rv, const char *reason);

/* NULL: it is not served here, or not in this generation. */
struct partition *mu__ps_find_serving(const struct ps *ps, uint32_t partition,
                                      uint64_t generation);

/* A primary that has lost a replica, and hears of no chief, may have been replaced. */
bool mu__ps_is_cut_off(const struct ps *ps, const struct partition *p);

/* Let a partition know the fence that the server knows. */
void mu__ps_fence(struct mu__ctx *ctx, struct ps *ps, struct partition *p);

/* ---- ps_status.c, replicas.c ---- */

void mu__ps_on_status_get(struct mu__ctx *ctx, void *state, struct mu__msg *msg);
void mu__ps_on_views_set(struct mu__ctx *ctx, void *state, struct mu__msg *msg);
void mu__ps_on_views_get(struct mu__ctx *ctx, void *state, struct mu__msg *msg);
void mu__ps_on_replica_view(struct mu__ctx *ctx, void *state, struct mu__msg *msg);
void mu__ps_on_node_up(struct mu__ctx *ctx, void *state, struct mu__msg *msg);
void mu__ps_on_node_down(struct mu__ctx *ctx, void *state, struct mu__msg *msg);
bool mu__ps_is_chief(const struct ps *ps, uint32_t node);
bool mu__ps_has_chief(const struct ps *ps);
const struct ps_node *mu__ps_replica_node(const struct ps *ps,
                                          const struct mu__replica *replica);

/* Tell clients what is served, and the chief what became of replicas, if it is due. */
void mu__ps_report(struct mu__ctx *ctx, struct ps *ps);

/* Forget a partition, and all that it holds. */
void mu__ps_drop(struct mu__ctx *ctx, struct ps *ps, uint32_t partition);

/* Forget what is of the generation that ends. */
void mu__ps_end_generation(struct mu__ctx *ctx, struct partition *p);

/* Another generation within a view, here and at the replicas; nothing happens if no
 * record can be written now. */
void mu__ps_renew_generation(struct mu__ctx *ctx, struct ps *ps, struct partition *p);

/* An empty one; NULL when out of memory. */
struct partition *mu__ps_partition_new(
    struct ps *ps, const struct mu__partition_view *view, enum role role);
void mu__ps_free_all(struct mu__ctx *ctx, struct ps *ps);

#endif
