/* What the program's side of the parameter servers is made of:
 *
 *     variables.c          the actor: an operation is planned, sent, answered, completed
 *     flights.c            queues of parts, and requests that are under way
 *     opens.c              how an open goes from phase to phase
 *     servers.c            where the servers are; lost_servers.c: those that stay away
 *     failures.c           how an operation fails, and whom its error names
 *     abandons.c           telling servers what was given up
 *     reopen.c             variables that a server has lost
 *
 * What these files call of each other is in actions.h.
 *
 * A call becomes an operation with one part for each shard. A part that has something to
 * send stands in the queue of its server; what was sent and is not answered is a flight.
 * A part that does not rest is in a queue or has a flight, or both: so it always goes on.
 * When all of its parts rest an operation is over; an open goes on to its next phase.
 *
 * Servers answer in the order in which they are asked (opens aside), and links keep
 * order, so the answers of a part always make up a prefix: `done` bytes of it. */
#ifndef MU_ACTORS_VARIABLES_INTERNAL_H
#define MU_ACTORS_VARIABLES_INTERNAL_H

#include "actors/messages.h"
#include "actors/variables/variables.h"
#include "runtime/base/list.h"

enum { TROUBLE_BYTES_MAX = 128 };

/* A kind of operation: how it writes (0: it reads), and whether its requests may be
 * repeated after their server was lost. */
struct rule {
    const char *verb;
    uint32_t write;
    bool repeats;
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

struct op_part {
    struct mu__list_node node;  /* in its server's queue, if `queued` */
    struct operation *op;
    enum step step;
    bool queued;
    bool begun;             /* a request of this step was sent */
    bool staged;            /* counts in its server's `staged` */
    bool opened;            /* OPEN: the shard was found, or created */
    bool made;              /* it was created: this operation fills it */
    bool absent;            /* it does not exist, and has no creator */
    bool stale;             /* its server does not know `id`: it waits for a new id */
    uint32_t shard;
    uint32_t server;
    uint32_t write;         /* while MOVING: what is written, 0 for a read */
    uint64_t offset;        /* of the shard in the variable */
    uint64_t shard_bytes;
    uint64_t bytes;         /* to move in this step, */
    uint64_t sent;          /* of these: requested or sent, */
    uint64_t done;          /* and answered */
    uint64_t transfer;      /* by which the server knows this open, creation or assign */
    uint64_t replaces;      /* OPENING: the shard that it replaces; 0: none */
    uint64_t id;            /* of the shard, as it is used now; not of an open */
    uint64_t version;       /* from the last answer */
};

struct operation {
    struct mu__list_node node;
    struct mu__variable_call *call;
    struct operation *inner;    /* the open that reopens its variable; NULL: none */
    struct operation *outer;    /* the operation that an inner one is for */
    struct mu__reopen *request; /* of a VAR_REOPEN; NULL: none */
    mu__pid requester;      /* of the VAR_REOPEN */
    unsigned reopens;
    const struct rule *rule;
    uint64_t id;
    uint64_t began_ms;
    uint32_t flights;
    uint32_t parts_left;    /* parts that do not rest */
    enum open_phase phase;  /* this and below: OPEN. */
    bool creates;           /* shard 0 is this open's to fill, */
    uint64_t creation;      /* with this number, which servers compare */
    bool recreates;         /* lost shards are made anew, with all others */
    bool doubts;            /* a creation that found others' shards was begun anew */
    uint64_t home;          /* the id of shard 0, as found in FIND_HOME */
    struct op_part *parked; /* an absent part whose open stays on its server, which
                               answers when the shard is created; waiting for all would
                               fill the table of flights */
    uint32_t parts_count;
    struct op_part parts[];
};

struct variable_server {
    uint32_t node;
    bool up;
    bool was_up;            /* at any time; before that it is waited for */
    uint64_t down_ms;       /* since when, if not up */
    char *address;          /* NULL: not known */
    char trouble[TROUBLE_BYTES_MAX];
    struct mu__list queue;  /* of parts that have something to send */
    uint64_t bytes_under_way;
    uint32_t staged;
};

struct flight {
    uint64_t token;         /* 0: free */
    struct op_part *part;   /* NULL: the answer is ignored */
    uint64_t offset;        /* in the part */
    uint32_t size;
    uint32_t server;
    uint16_t answer;        /* kind of message that ends it */
};

/* The actor's state. */
struct variables {
    struct variable_server *servers; /* by task index */
    uint32_t servers_count;
    struct flight *flights;     /* by token modulo MU__FLIGHTS_MAX */
    uint32_t flights_count;
    uint32_t opens_count;
    uint64_t token_last;
    uint64_t id_last;
    struct mu__list operations; /* the latest first */
    uint64_t retry_timer;
    uint32_t server_lost_ms;    /* 0: servers are never lost */
    uint32_t away_count;        /* servers that were up and are not */
    uint64_t lost_timer;        /* for the next server to be lost; 0: not set */
    struct mu__list abandons;   /* of struct pending_abandon, the latest first */
    uint32_t abandons_count;
    bool pump_all_due;       /* pump all servers after this event: an operation failed,
                                the bounds of all servers together were reached, or an
                                open goes on with other servers */
    uint32_t pumped_first;  /* where pump_all() began last: each server comes first in
                               turn */
};

static inline struct operation *first_operation(const struct variables *v)
{
    return MU__LIST_FIRST(&v->operations, struct operation, node);
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
    return (mu__pid){v->servers[server].node, MU__PS};
}

static inline bool has_more(const struct op_part *part)
{
    return !part->begun || (part->step == MOVING && part->sent < part->bytes);
}

static inline void unpark(struct op_part *part)
{
    if (part->op->parked == part)
        part->op->parked = NULL;
}

#endif
