/* What the client of the parameter servers is made of (actions.h: what is called of it):
 *     variables.c          the actor: calls are planned, answered, completed
 *     opens.c              how an open goes from phase to phase
 *     batches.c            what a run writes: its list, its batches, their pieces
 *     runs.c               the course of a run's batches: answers, timeouts, the end
 *     flights.c            windows, queues, and requests that are under way
 *     servers.c            where the servers are, and those that stay away
 *     placements.c         which server serves which partition
 *     failures.c           how an operation fails, and whom its error names
 *     abandons.c           telling servers what was given up
 *     reopen.c             variables that a server has lost
 *     memberships.c        clocks of which this node has members; lookups.c: tables
 *
 * There are two kinds of operation. A call has one part for each shard; the writes of a
 * run are one batch for each partition. A part or a batch that has something to send
 * stands in a queue of the server that serves its partition, or waits at the partition
 * while none does; what was sent and is not answered is a flight: a piece of a part, or
 * all that was sent of a batch. What is in the lists of a server, and each flight, is of
 * a partition that this server serves.
 *
 * A part that does not rest is in a queue or has a flight, or both: so it always goes on.
 * When all of its parts rest a call is over; an open goes on to its next phase. Servers
 * answer calls in the order in which they are asked (opens aside), and links keep order,
 * so the answers of a part always make up a prefix: `done` bytes of it.
 *
 * The queues take turns and have windows of their own, so that none waits for another.
 * Few large batches are active at a time: of each a part that its server has not reported
 * may be under way, and these must not fill the window. */
#ifndef MU_ACTORS_VARIABLES_INTERNAL_H
#define MU_ACTORS_VARIABLES_INTERNAL_H

#include "actors/messages.h"
#include "actors/variables/clock_membership.h"
#include "actors/variables/effects.h"
#include "actors/variables/table_calls.h"
#include "actors/variables/variables.h"
#include "runtime/base/list.h"

/* The actor's timers; also their tokens. Operations are numbered behind them, which are
 * the tokens of their timeouts. */
enum timer { RETRY, AGAIN, TIMEOUT, LOST, TIMERS };

/* The queues of a server: calls, batches of a single message, and larger ones. */
enum queue { CALLS, SINGLES, LARGES, QUEUES };

/* A kind of call: how it writes (0: it reads), and whether a piece that is written again
 * would count twice. Such pieces are numbered, so that each is applied once. */
struct rule {
    const char *verb;
    uint32_t write;
    bool counts;
};

/* The steps of a part. Those of an open take several turns.
 *
 *     RESTING <--> OPENING
 *        ^------> MOVING          content, or a COMMIT */
enum step { RESTING, OPENING, MOVING };

/* What an open does about the shards. Shard 0 is the lock and the seal of a creation.
 *
 *     FIND_HOME --> FIND --> CONFIRM --> (complete)         another one created them all
 *         ^          |'----> FILL --> FILL_HOME --> COMMIT --> (complete)
 *         '----------'----------'---------'-----------'
 *
 * FIND_HOME: shard 0 is opened. If it is not this open's to create, it has its content,
 * and so have the others. FIND: the others are opened; if shard 0 is this open's, as its
 * creations. CONFIRM: shard 0 still is the one that was found, so that the others belong
 * to it: all could have been created anew meanwhile. FILL: they get their content,
 * FILL_HOME: then shard 0 does. COMMIT: the others are told so.
 *
 * What is missing in FIND although shard 0 is there, or there although shard 0 was
 * missing, tells of a server that lost its memory. Back to FIND_HOME: the creation of
 * shard 0 was lost, or lost shards are to be made anew, with all others, or were. */
enum open_phase { FIND_HOME, FIND, CONFIRM, FILL, FILL_HOME, COMMIT };

/* The numbers of what counts once: of the pieces of a part, or of a batch. */
struct numbered {
    struct mu__list_node node; /* in its placement's list */
    uint64_t first;            /* 0: there are none */
    uint64_t settled;          /* all below this one are answered, or given up */
};

struct op_part {
    struct mu__list_node node; /* in the queue `in` */
    struct mu__list *in;       /* NULL: in none */
    struct operation *op;
    enum step step;
    bool begun;  /* a request of this step was sent */
    bool staged; /* counts in its server's `staged` */
    bool opened; /* OPEN: the shard was found, or created */
    bool made;   /* it was created: this operation fills it */
    bool absent; /* it does not exist, and has no creator */
    bool stale;  /* its server does not know `id`: it waits for a new id */
    uint32_t shard;
    uint32_t partition;
    uint32_t write;  /* while MOVING: what is written, 0 for a read */
    uint64_t offset; /* of the shard in the variable */
    uint64_t shard_bytes;
    uint32_t piece;    /* bytes of a piece, at most */
    uint64_t bytes;    /* to move in this step, */
    uint64_t sent;     /* of these: requested or sent, */
    uint64_t done;     /* and answered */
    uint64_t transfer; /* by which the server knows this open, creation or assign */
    uint64_t replaces; /* OPENING: the shard that it replaces; 0: none */
    uint64_t id;       /* of the shard, as it is used now; not of an open */
    uint64_t version;  /* from the last answer */
    struct numbered numbered; /* if its pieces count once */
    bool doubted;             /* of these, some were sent to a server that was lost */
};

/* Of a call, or of a run. */
struct operation {
    struct mu__list_node node;
    uint64_t began_ms;
    uint32_t inners;    /* opens under way that reopen its variables */
    struct mu_run *run; /* NULL: a call. These three: of a run. */
    struct effects_writer writer;
    struct write_batch *batches;        /* those that are not applied yet */
    struct mu__variable_call *call;     /* This and below: of a call. */
    struct operation *outer;            /* the operation that an inner one is for, */
    struct write_batch *batch;          /* of a run: its batch, */
    struct mu__opened_variable *opened; /* and the variable */
    unsigned reopens;
    const struct rule *rule;
    uint64_t id;
    uint32_t flights;
    uint32_t parts_left;    /* parts that do not rest */
    enum open_phase phase;  /* this and below: OPEN. */
    bool creates;           /* shard 0 is this open's to fill, */
    uint64_t creation;      /* with this number, which servers compare */
    bool recreates;         /* lost shards are made anew, with all others */
    bool doubts;            /* a creation that found others' shards was begun anew */
    uint64_t home;          /* the id of shard 0, as found in FIND_HOME */
    struct op_part *parked; /* an absent part whose open waits on its server until the
                               shard is created; all would fill the table of flights */
    uint32_t parts_count;
    struct op_part parts[];
};

enum { TROUBLE_BYTES_MAX = 128 };

struct variable_server {
    uint32_t node;
    bool up;
    bool was_up;      /* at any time; before that it is waited for */
    uint64_t down_ms; /* since when, if not up */
    char *address;    /* NULL: not known */
    char trouble[TROUBLE_BYTES_MAX];
    struct mu__list queues[QUEUES]; /* parts with something to send; batches that have
                                       not begun */
    struct mu__list active;         /* batches of which a part was sent; */
    struct mu__list flying;         /* all was sent, and it is not answered */
    uint64_t under_way[QUEUES]; /* bytes, or weight, of what is sent and not reported */
    uint32_t staged;            /* assigns in several pieces */
};

/* Where a partition is. */
struct placement {
    uint64_t generation;      /* as its server has said; 0: none has ever served it */
    uint32_t server;          /* that serves it, or did last; before that, a guess */
    bool served;              /* the server is up, and has said so */
    uint64_t effect_last;     /* of the pieces that count once */
    struct mu__list numbered; /* struct numbered, by number */
    struct mu__list parts;    /* if not served: what waits for it */
    struct mu__list batches;
    struct write_batch *planned; /* while a run is planned: its batch for it */
};

struct flight {
    uint64_t token;            /* 0: free */
    struct op_part *part;      /* of a call; */
    struct write_batch *batch; /* of a run; both NULL: the answer is ignored */
    uint64_t offset; /* of the piece in the part; the weight of all that was sent
                        of the batch */
    uint32_t size;   /* under way */
    uint32_t partition;
    uint32_t server;
    enum queue queue;
    uint16_t answer; /* kind of message that ends it */
};

/* The actor's state. */
struct variables {
    struct variable_server **servers; /* by task index; each stays where it is */
    uint32_t servers_count;
    struct placement placements[MU__PARTITIONS];
    uint64_t origin;         /* of the pieces that count once */
    uint32_t server_lost_ms; /* 0: servers are never lost */
    uint32_t effect_wait_ms;
    uint32_t away_count;    /* servers that were up and are not */
    struct flight *flights; /* by token modulo its size, a power of two */
    uint32_t flights_size;
    uint32_t flights_count;
    uint32_t call_flights_count;
    uint32_t opens_count;
    uint64_t token_last;
    uint64_t id_last;
    struct mu__list calls;   /* operations, the latest first */
    struct mu__list runs;    /* operations, by deadline */
    struct mu__list resting; /* batches that were refused, by time */
    struct spare_writes spares;
    uint64_t timers[TIMERS];  /* 0: not set */
    struct mu__list abandons; /* of struct pending_abandon, the latest first */
    uint32_t abandons_count;
    bool pump_all_due;     /* after this event: an operation failed, the bounds of all
                              servers together were reached, or an open goes on */
    uint32_t pumped_first; /* where pump_all() began last: all come first in turn */
    struct mu__clock_memberships clocks;
    struct mu__list lookups; /* struct lookup, the earliest first */
};

/* The first of `calls` or `runs`. */
static inline struct operation *first_operation(const struct mu__list *list)
{
    return MU__LIST_FIRST(list, struct operation, node);
}

static inline struct operation *next_operation(const struct operation *op)
{
    return MU__LIST_NEXT(op, struct operation, node);
}

static inline bool is_open(const struct operation *op)
{
    return op->call->call.operation == MU__VARIABLE_OPEN;
}

static inline bool has_flag(const struct operation *op, unsigned flag)
{
    return (op->call->flags & flag) != 0;
}

static inline mu__pid pid_of(const struct variables *v, uint32_t server)
{
    return (mu__pid){v->servers[server]->node, MU__PS};
}

/* The server that serves a partition, or did last. */
static inline uint32_t server_of(const struct variables *v, uint32_t partition)
{
    return v->placements[partition].server;
}

static inline bool has_more(const struct op_part *part)
{
    return !part->begun || (part->step == MOVING && part->sent < part->bytes);
}

#endif
