/* What the program's side of the parameter servers is made of; for actors/variables*.c
 * only.
 *
 *     variables.c          an operation's way: planned, sent, answered, over
 *     variables_open.c     how an open goes from phase to phase
 *     variables_servers.c  where the servers are, and what is done when one is lost
 *     variables_fail.c     how an operation fails, and whom its error names
 *     variables_abandon.c  telling servers what is not wanted any more
 *     ps/lost_servers.c    servers that are away for too long
 *     ps/reopen.c          what was opened on a server that has forgotten it
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

enum { TROUBLE_BYTES_MAX = 128 };

/* What an operation is: how it writes (0: it reads) and whether what was asked of a lost
 * server may be asked again. */
struct rule {
    const char *verb;
    uint32_t write;
    bool repeats;
};

/* What a part can be. Those of an open take several turns.
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
 * to it: all could have been made anew. FILL: they get their content, FILL_HOME: then
 * shard 0 does. COMMIT: the others are told so.
 *
 * What is missing in FIND although shard 0 is there, or there although shard 0 was
 * missing, tells of a server that lost its memory. Back to FIND_HOME: the creation of
 * shard 0 was lost, or lost shards are to be made anew, with all others, or were. */
enum open_phase { FIND_HOME, FIND, CONFIRM, FILL, FILL_HOME, COMMIT };

struct op_part {
    struct op_part *next;      /* in its server's queue */
    struct operation *op;
    enum step step;
    bool queued;
    bool begun;             /* something of this step was sent */
    bool staged;            /* counts in its server's `staged` */
    bool opened;            /* OPEN: the shard was found, or made, */
    bool made;              /* which is: it is this operation's to fill; */
    bool absent;            /* there is none, and nobody makes one */
    bool stale;             /* its server does not know `id`: it waits for another one */
    uint32_t shard;
    uint32_t server;
    uint32_t write;         /* while MOVING: what is written, 0 for a read */
    uint64_t offset;        /* of the shard in the whole */
    uint64_t shard_bytes;
    uint64_t bytes;         /* to move in this step, */
    uint64_t sent;          /* of these: asked for or sent, */
    uint64_t done;          /* and answered */
    uint64_t transfer;      /* the server knows this open, creation or assign by it */
    uint64_t replaces;      /* OPENING: the shard to drop for it, 0: none */
    uint64_t id;            /* but of an open: of the shard, as it is asked for now */
    uint64_t version;       /* as the last answer has it */
};

struct operation {
    struct operation *next;
    struct mu__variable_call *call;
    struct operation *inner;    /* reopens its variable; NULL: none */
    struct operation *outer;    /* of an inner one */
    struct mu__reopen *request; /* of one that a VAR_REOPEN asked for; NULL: of others */
    mu__pid requester;              /* who did */
    unsigned reopens;
    const struct rule *rule;
    uint64_t id;
    uint64_t began_ms;
    uint32_t flights;
    uint32_t parts_left;    /* that do not rest */
    enum open_phase phase;       /* this and below: OPEN. */
    bool creates;           /* shard 0 is ours to fill */
    bool recreates;            /* lost shards are made anew, with all others */
    uint64_t home;          /* the id of shard 0, as found in FIND_HOME */
    struct op_part *parked; /* one that is absent, and whose server tells when it is made;
                               to wait for all would fill the table of flights */
    uint32_t parts_count;
    struct op_part parts[];
};

struct variable_server {
    uint32_t node;
    bool up;
    bool was_up;            /* at any time: before that it is waited for */
    uint64_t down_ms;       /* since when, if not up */
    char *address;          /* NULL: not known */
    char trouble[TROUBLE_BYTES_MAX];
    struct op_part *first;     /* parts that have something to send */
    struct op_part *last;
    uint64_t bytes_under_way;
    uint32_t staged;
};

struct flight {
    uint64_t token;         /* 0: free */
    struct op_part *part;      /* NULL: nobody waits for the answer any more */
    uint64_t offset;        /* in the part */
    uint32_t size;
    uint32_t server;
    uint16_t answer;        /* kind of message that ends it */
};

struct pending_abandon;                /* an ABANDON that is owed to a server */

/* What it remembers. */
struct variables {
    struct variable_server *servers; /* by task index */
    uint32_t servers_count;
    struct flight *flights; /* by token modulo MU__FLIGHTS_MAX */
    uint32_t flights_count;
    uint32_t opens_count;
    uint64_t token_last;
    uint64_t id_last;
    struct operation *operations;
    uint64_t retry_timer;
    uint32_t server_lost_ms;    /* 0: servers are never lost */
    uint32_t away_count;        /* servers that were up and are not */
    uint64_t lost_timer;        /* for the next server to be lost; 0: not set */
    struct pending_abandon *abandons;
    uint32_t abandons_count;
    bool pump_all_due;       /* any server's queue may go on: an operation failed, or the
                               bounds of all servers together were reached, or an open
                               goes on with other servers */
    uint32_t pumped_first;  /* where pump_all() began last, so that all come first once */
};

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

/* ---- variables.c ---- */

/* A part that has something to send stands in the queue of its server. */
void mu__vars_enqueue(struct variables *v, struct op_part *part);
void mu__vars_dequeue(struct variables *v, struct op_part *part);
void mu__vars_unstage(struct variables *v, struct op_part *part);

/* A new operation, which is to be begun. -MU_ERANGE, -MU_ENOMEM, -MU_EEXHAUSTED. */
int mu__vars_plan(struct mu__ctx *ctx, struct variables *v,
                  struct mu__variable_call *call, struct operation **ret_op);

/* It may be over, and gone, when this returns. */
void mu__vars_begin(struct mu__ctx *ctx, struct variables *v, struct operation *op);

/* Free a flight; returns what it was. */
struct flight mu__vars_end_flight(struct variables *v, struct flight *flight);

/* Answers that are under way are of no use to the operation, or the part, any more. */
void mu__vars_disown_flights(struct variables *v, struct operation *op);
void mu__vars_disown_part(struct variables *v, struct op_part *part);

/* Whether a refused message may be accepted later. The loss of a server is told soon. */
bool mu__vars_is_transient(int rv);
void mu__vars_retry_later(struct mu__ctx *ctx, struct variables *v);

/* A part has nothing left to do in this phase, or at all. */
void mu__vars_rest(struct mu__ctx *ctx, struct variables *v, struct op_part *part);

/* The operation is over, and gone. */
void mu__vars_complete(struct mu__ctx *ctx, struct variables *v, struct operation *op,
                       int code);

/* Send to all servers what their windows have room for. */
void mu__vars_pump_all(struct mu__ctx *ctx, struct variables *v);

/* ---- variables_open.c ---- */

/* Begin an open, perhaps anew: in place of the shard 0 with the id `replaces`, if that is
 * not 0. */
void mu__vars_begin_open(struct variables *v, struct operation *op, uint64_t replaces);

/* After anything happened to a part of an open. */
void mu__vars_go_through(struct mu__ctx *ctx, struct variables *v, struct operation *op);

/* Whether a part of an open leaves it to others to create its shard: it may wait long. */
bool mu__vars_asks_existing(const struct op_part *part);
bool mu__vars_has_absent(const struct operation *op);

void mu__vars_take_opened(struct mu__ctx *ctx, struct variables *v, struct op_part *part,
                          const struct mu__var_opened *body);

/* Not an answer yet, and perhaps none before the limit. `flight` may be NULL. */
void mu__vars_take_absent(struct mu__ctx *ctx, struct variables *v,
                          struct flight *flight);

/* A server is lost that the open may need. */
void mu__vars_lose_in_open(struct mu__ctx *ctx, struct variables *v,
                           struct operation *op, uint32_t server);

/* ---- variables_servers.c ---- */

/* What is known at the start; `options` may be NULL. After a failure, too, ..._done. */
int mu__vars_servers_init(struct mu__ctx *ctx, struct variables *v,
                          const struct mu__variables_options *options);
void mu__vars_servers_done(struct variables *v);

/* Servers up to an index; their queues stay where they are. */
int mu__vars_need_servers(struct mu__ctx *ctx, struct variables *v, uint32_t count);
void mu__vars_on_node_up(struct mu__ctx *ctx, void *state, struct mu__msg *msg);
void mu__vars_on_node_down(struct mu__ctx *ctx, void *state, struct mu__msg *msg);
void mu__vars_on_node_trouble(struct mu__ctx *ctx, void *state, struct mu__msg *msg);
void mu__vars_on_cluster_moved(struct mu__ctx *ctx, void *state, struct mu__msg *msg);

/* ---- ps/reopen.c ---- */

/* The server does not know the shard: look for the variable by its name, and go on. */
void mu__vars_reopen(struct mu__ctx *ctx, struct variables *v, struct op_part *part);

/* True: the shard that has answered for a write is not the variable's any more, and the
 * operation has failed. */
bool mu__vars_fail_if_replaced(struct mu__ctx *ctx, struct variables *v,
                               struct op_part *part);

/* An operation that reopens for another one, or for a VAR_REOPEN, is over, and out of all
 * lists. */
void mu__vars_reopened(struct mu__ctx *ctx, struct variables *v,
                       const struct operation *op, int code);
void mu__vars_on_reopen(struct mu__ctx *ctx, void *state, struct mu__msg *msg);

/* ---- ps/lost_servers.c ---- */

enum { LOST_TOKEN = 1 };        /* of `lost_timer`; operations begin behind it */

bool mu__vars_is_lost(struct mu__ctx *ctx, const struct variables *v, uint32_t server);

/* End an operation that needs a server that is lost; false: it needs none. */
bool mu__vars_end_if_lost(struct mu__ctx *ctx, struct variables *v, struct operation *op);

/* After a server went down or an operation began: the timer for what is lost next. */
void mu__vars_watch_lost(struct mu__ctx *ctx, struct variables *v);
void mu__vars_lost_tick(struct mu__ctx *ctx, struct variables *v);

/* ---- variables_fail.c: each of these ends an operation ---- */

/* Whether its server is to blame when the operation ends without an answer: one that is
 * missing for what will be asked of it too. */
bool mu__vars_needs_server(const struct variables *v, const struct op_part *part);

/* Servers that the operation needs are lost. */
void mu__vars_fail_by_loss(struct mu__ctx *ctx, struct variables *v,
                           struct operation *op);

/* With an error from `server`: "variable w: add: <words>". */
void mu__vars_fail(struct mu__ctx *ctx, struct variables *v, struct operation *op,
                   uint32_t server, int code, const char *reason);

/* A server has said that it cannot; has answered something else than was asked; was lost
 * before it answered what cannot be asked again. */
void mu__vars_fail_by_answer(struct mu__ctx *ctx, struct variables *v,
                             struct op_part *part, uint32_t code, struct mu__view reason);
void mu__vars_fail_bad_answer(struct mu__ctx *ctx, struct variables *v,
                               struct op_part *part);
void mu__vars_fail_unknown(struct mu__ctx *ctx, struct variables *v,
                           struct op_part *part);

/* What was asked of it is not the variable's any more. */
void mu__vars_fail_replaced(struct mu__ctx *ctx, struct variables *v,
                            struct op_part *part);

/* Its server does not have the shard. */
void mu__vars_fail_forgotten(struct mu__ctx *ctx, struct variables *v,
                             struct op_part *part);

/* As another operation has failed: an inner one. */
void mu__vars_fail_as(struct mu__ctx *ctx, struct variables *v, struct operation *op,
                      const struct mu__variable_call *inner);

/* Some servers have their shards of what is opened and others have not. */
void mu__vars_fail_lost(struct mu__ctx *ctx, struct variables *v, struct operation *op);

/* The limit has passed. */
void mu__vars_fail_by_timeout(struct mu__ctx *ctx, struct variables *v,
                            struct operation *op);

/* ---- variables_abandon.c ---- */

/* Without this, others would wait for what we gave up for as long as this node lives. */
void mu__vars_send_abandon(struct mu__ctx *ctx, struct variables *v, mu__pid to,
                           uint64_t variable, uint64_t transfer);

/* What a part has begun and will not finish is given up on its server too. */
void mu__vars_abandon_part(struct mu__ctx *ctx, struct variables *v,
                           const struct op_part *part);

/* Try again what found no room in its link; give that up. */
void mu__vars_retry_abandons(struct mu__ctx *ctx, struct variables *v);
void mu__vars_drop_abandons(struct variables *v);

/* ---- flights.c ---- */

struct flight *mu__vars_flight_new(struct variables *v);

void mu__vars_count_flight(struct variables *v, const struct flight *flight);

/* The flight that a message is about; NULL when there is none. */
struct flight *mu__vars_find_flight(struct variables *v, const struct mu__msg *msg,
                                    uint64_t token);

/* The flight that a message answers; false when there is none. */
bool mu__vars_end_answered_flight(struct variables *v, const struct mu__msg *msg,
                                  uint64_t token, struct flight *ret_flight);

#endif
