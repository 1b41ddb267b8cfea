/* The client of the parameter servers, on every node: cuts what a program or a run asks
 * for into pieces for the servers, keeps a bounded window of them under way, and answers.
 *
 * Hears:  CALL with a struct mu__variable_call; EFFECTS_SEND from this node's worker;
 *         SERVES, VAR_OPENED, VAR_DATA, VAR_WRITTEN, EFFECT_WRITTEN from servers; node
 *         news
 * Says:   VAR_OPEN, VAR_READ, VAR_WRITE, EFFECT_WRITE to servers; EFFECTS_SENT to the
 *         worker, once for each run
 * Owns:   of a call, the right to touch it until it is completed; of a run, until
 *         EFFECTS_SENT, its writes (which it sorts by partition), `code` and `failure`
 * Fails:  never by itself; a call ends with an error, at its timeout at the latest, and a
 *         run's `code` says what became of its writes
 *
 * An open goes to shard 0 first, and to the others when shard 0 has its content or is
 * this node's to create. So two nodes that create a variable at once never share the
 * creation, and shards that a server has lost are detected: variable.h says what follows.
 *
 * Each shard is in a partition (actors/partitions.h), and servers say which ones they
 * serve. The writes of one run to one partition are a batch (effects.h): the server
 * stages its pieces, and with the last one applies all or none.
 *
 * A partition that nobody serves is waited for. When the link of its server goes down, or
 * its generation changes, requests without answer are sent again as soon as it is served:
 * opens, reads, writes, and assigns and batches from their first piece. What would count
 * twice has numbers, by which the server knows what it has applied: each piece of an add
 * or a gradient one of this actor, which begins with 1 for each partition; a batch the
 * effect number of its run, or one of this actor. A server that came back without a shard
 * is asked for the variable by name: what was restored meanwhile is used from then on
 * (reopen.c).
 *
 * A server that was up and is away for `server_lost_ms` is lost: what needs it fails, and
 * so does what comes, until it is back.
 *
 * A clock's member (memberships.c) says at which step it is, and says so again when the
 * server of its partition is another one: what it says is the same then.
 *
 * A run whose writes have failed gets `code`, and `failure`: kind MU_ERROR_SERVER, and
 * the server in `task`. `failure` is the run's to free, and NULL when there was no
 * memory. */
#ifndef MU_ACTORS_VARIABLES_H
#define MU_ACTORS_VARIABLES_H

#include "actors/call.h"
#include "actors/ps/rules/rules.h"
#include "actors/ps/shape.h"
#include "muster/variable.h"
#include "runtime/kernel/kernel.h"

/* The `operation` of a call. */
enum mu__variable_operation {
    MU__VARIABLE_NOTHING, /* completed at once */
    MU__VARIABLE_OPEN,
    MU__VARIABLE_READ,
    MU__VARIABLE_VERSION, /* of the shard that has the lowest */
    MU__VARIABLE_ASSIGN,
    MU__VARIABLE_ADD,
    MU__VARIABLE_APPLY,
    MU__VARIABLE_ROWS_READ, /* these: with `rows`, a range, */
    MU__VARIABLE_ROWS_ASSIGN,
    MU__VARIABLE_ROWS_ADD,
    MU__VARIABLE_GATHER, /* or a list */
    MU__VARIABLE_SCATTER_UPDATE,
    MU__VARIABLE_SCATTER_ADD,
    MU__VARIABLE_SCATTER_MIN, /* as enum mu_row_update counts */
    MU__VARIABLE_SCATTER_MAX,
    MU__VARIABLE_SCATTER_MUL,
    MU__VARIABLE_SCATTER_DIV,
    MU__VARIABLE_SLOT, /* restore slot 0, and the next ones the others and the step */
    MU__VARIABLE_STEP = MU__VARIABLE_SLOT + MU__RULE_SLOTS_MAX,
    MU__VARIABLE_SNAPSHOT, /* this and below: with a struct mu__snapshot_call */
    MU__VARIABLE_SNAPSHOT_READ,
    MU__VARIABLE_WINDOWS_PUT,
    MU__VARIABLE_SNAPSHOT_CLOSE, /* completed at once */
    MU__CLOCK_OPEN,              /* these: a struct mu__clock_call */
    MU__CLOCK_TICK,
    MU__CLOCK_MINIMUM,
    MU__CLOCK_CLOSE,
    MU__TABLE_LOOKUP_CALL, /* these: a struct mu__table_call (table_calls.h) */
    MU__TABLE_WRITE_CALL
};

/* A call about a partition. A snapshot of it is there until all of it was read; when it
 * has gone before, with its server or its generation, a read gives -MU_EABORTED. */
struct mu__snapshot_call {
    uint32_t partition;
    uint64_t number;       /* SNAPSHOT sets it, READ and CLOSE name it */
    struct mu__view bytes; /* SNAPSHOT: ids of shards (store_snapshots.h); WINDOWS_PUT */
    uint64_t id;           /* READ: of the shard; 0: the windows, */
    uint64_t offset;       /* from here on, */
    uint32_t size;         /* so many bytes, */
    uint32_t piece_bytes;  /* which are asked for in pieces, one after the other */
    uint64_t record;       /* this and below are set by SNAPSHOT */
    uint64_t sum;
    uint64_t windows_bytes;
    uint8_t *slots; /* SNAPSHOT, room for what each id has (store_snapshots.h); NULL: no
                       slots are wanted */
    struct mu__view tables; /* SNAPSHOT: ids of tables (tables/set_copies.h), */
    uint8_t *sizes;         /* and room for what each has; */
    bool only_sizes;        /* nothing is begun */
    uint64_t since;         /* which rows of tables; 0: all */
    uint64_t mark;          /* from now on; 0: none */
};

struct mu__initial; /* initial/initial.h */
struct mu__rows;    /* row_actions.h */

/* A call about a variable. Lent to the actor, with all that it points to, until it is
 * completed. The shape and the name have been checked. */
struct mu__variable_call {
    struct mu__call call; /* first: a CALL message points here */
    const char *name;
    const struct mu__shape *shape;
    uint32_t servers_count;      /* parameter servers of the cluster, at least 1 */
    unsigned flags;              /* OPEN: enum mu_variable_flag, MU__VARIABLE_REOPEN;
                                    others: MU_VARIABLE_SAME, or 0 */
    uint64_t *ids;               /* one for each shard: OPEN sets them; others read
                                    them, and set them when they had to reopen it */
    const struct mu__rows *rows; /* NULL: the whole variable */
    void *target;                /* READ: the whole variable, or its rows, go here */
    const void *source;          /* OPEN: initial content, NULL for zeros; ASSIGN, ADD,
                                    APPLY: the whole, or the rows */
    const struct mu__initial *initial; /* OPEN: not NULL: generated, `source` is not
                                          looked at */
    struct mu__view rule;              /* APPLY: packed (actors/ps/rules/rules.h) */
    uint64_t version;                  /* set by READ, VERSION and writes */
    uint32_t found_shards;             /* set by an OPEN that fails: the number of shards
                                          there are, if only that differs; else 0 */
    bool reopened; /* set by all but OPEN: the ids are other ones now */
    struct mu__snapshot_call *snapshot; /* else NULL; without ids, and with a shape that
                                           is not looked at */
};

/* A call about a clock; lent in the same way. The name has been checked. */
struct mu__clock_call {
    struct mu__call call;   /* first */
    const char *name;       /* OPEN */
    uint64_t staleness;     /* OPEN; UINT64_MAX: unlimited */
    uint32_t servers_count; /* OPEN */
    uint64_t member;        /* set by OPEN, read by the others */
    uint64_t step;          /* set by OPEN and TICK: steps that are done */
    uint64_t minimum;       /* set by MINIMUM */
    uint64_t token;         /* These: the actor's. */
    uint64_t began_ms;
    uint64_t deadline_ms; /* UINT64_MAX: none */
    uint64_t log_ms;      /* when it is logged next */
};

/* With MU_VARIABLE_EXISTING: a variable that does not exist now gives -MU_ENOTFOUND. */
enum { MU__VARIABLE_REOPEN = 1 << 16 };

/* Bounds. */
#ifdef MUSTER_TINY
enum {
    MU__WINDOW_BYTES = 2 << 20,
    MU__FLIGHTS_MAX = 8,
    MU__OPENS_MAX = 4,
    MU__STAGED_MAX = 1
};
#else
enum {
    MU__WINDOW_BYTES = 4 << 20, /* data under way with one server, plus a piece */
    MU__FLIGHTS_MAX = 1024,     /* requests of calls under way, all servers */
    MU__OPENS_MAX = 512,        /* of these, opens, which may have to wait long */
    MU__STAGED_MAX = 8          /* assigns in several pieces under way with one server */
};
#endif
enum { MU__SERVERS_MAX = 1 << 16 };

/* Spawned as MU__VARIABLES. */
extern const struct mu__behavior mu__variables;

/* Its argument: the addresses of servers, for error messages, and whether this node is a
 * server itself. May be NULL. */
struct mu__variables_options {
    size_t addresses_count;
    const char *const *addresses; /* by task index; NULL: unknown. Copied */
    const char *task;             /* this one, and its process: for clocks */
    uint64_t incarnation;
    bool is_server;          /* MU__PS is an actor of this node, */
    uint32_t index;          /* with this task index */
    uint32_t server_lost_ms; /* away for so long after it was up: lost; 0: never */
    uint32_t effect_wait_ms; /* without an answer for so long a batch fails its
                                run, naming the server; 0: 60000 */
};

#endif
