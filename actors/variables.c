/* A call becomes an operation with one part for each shard. A part that has something to
 * send stands in the queue of its server; what was sent and is not answered is a flight.
 * A part that does not rest is in a queue or has a flight, or both: so it always goes on.
 * When all of its parts rest an operation is over; an open goes on to its next phase.
 *
 * Servers answer in the order in which they are asked (opens aside), and links keep
 * order, so the answers of a part always make up a prefix: `done` bytes of it. */
#include "actors/variables.h"

#include "actors/keep.h"
#include "actors/messages.h"
#include "actors/variable_store.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What it hears. */
static void on_call(struct mu__ctx *ctx, void *state, struct mu__msg *msg);
static void on_opened(struct mu__ctx *ctx, void *state, struct mu__msg *msg);
static void on_data(struct mu__ctx *ctx, void *state, struct mu__msg *msg);
static void on_written(struct mu__ctx *ctx, void *state, struct mu__msg *msg);
static void on_timer(struct mu__ctx *ctx, void *state, struct mu__msg *msg);
static void on_node_up(struct mu__ctx *ctx, void *state, struct mu__msg *msg);
static void on_node_down(struct mu__ctx *ctx, void *state, struct mu__msg *msg);
static void on_node_trouble(struct mu__ctx *ctx, void *state, struct mu__msg *msg);

static void on_cluster_moved(struct mu__ctx *ctx, void *state, struct mu__msg *msg);

static const struct mu__handler handlers[] = {
    {MU__CALL, on_call},
    {MU__VAR_OPENED, on_opened},
    {MU__VAR_DATA, on_data},
    {MU__VAR_WRITTEN, on_written},
    {MU__TIMER, on_timer},
    {MU__NODE_UP, on_node_up},
    {MU__NODE_DOWN, on_node_down},
    {MU__NODE_TROUBLE, on_node_trouble},
    {MU__CLUSTER_MOVED, on_cluster_moved},
};

enum {
    RETRY_MS = 5,           /* after a link had no room */
    DEBTS_MAX = 4096,       /* past it servers learn of it only when the node goes */
    NAMED_MAX = 3,          /* servers that an error names */
    PLACE_BYTES_MAX = 384,  /* a task and its address */
    TROUBLE_BYTES_MAX = 128
};

/* What the operations are: how they write (0: they read) and whether what was asked of a
 * lost server may be asked again. */
static const struct rule {
    const char *verb;
    uint32_t write;
    bool repeats;
} rules[] = {
    [MU__VARIABLE_OPEN] = {"open", 0, true},
    [MU__VARIABLE_READ] = {"read", 0, true},
    [MU__VARIABLE_VERSION] = {"read of the version", 0, true},
    [MU__VARIABLE_ASSIGN] = {"assign", MU__WRITE_ASSIGN, true},
    [MU__VARIABLE_ADD] = {"add", MU__WRITE_ADD, false},
    [MU__VARIABLE_APPLY] = {"gradient", MU__WRITE_MOMENTUM, false},
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
enum phase { FIND_HOME, FIND, CONFIRM, FILL, FILL_HOME, COMMIT };

struct part {
    struct part *next;      /* in its server's queue */
    struct operation *op;
    enum step step;
    bool queued;
    bool begun;             /* something of this step was sent */
    bool staged;            /* counts in its server's `staged` */
    bool opened;            /* OPEN: the shard was found, or made, */
    bool made;              /* which is: it is this operation's to fill; */
    bool absent;            /* there is none, and nobody makes one */
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
};

struct operation {
    struct operation *next;
    struct mu__variable_call *call;
    const struct rule *rule;
    uint64_t id;
    uint64_t began_ms;
    uint32_t flights;
    uint32_t parts_left;    /* that do not rest */
    enum phase phase;       /* this and below: OPEN. */
    bool creates;           /* shard 0 is ours to fill */
    bool renews;            /* lost shards are made anew, with all others */
    uint64_t home;          /* the id of shard 0, as found in FIND_HOME */
    struct part *parked;    /* one that is absent, and whose server tells when it is made;
                               to wait for all would fill the table of flights */
    uint32_t parts_count;
    struct part parts[];
};

struct server {
    uint32_t node;
    bool up;
    uint64_t down_ms;       /* since when, if not up */
    char *address;          /* NULL: not known */
    char trouble[TROUBLE_BYTES_MAX];
    struct part *first;     /* parts that have something to send */
    struct part *last;
    uint64_t bytes_under_way;
    uint32_t staged;
};

struct flight {
    uint64_t token;         /* 0: free */
    struct part *part;      /* NULL: nobody waits for the answer any more */
    uint64_t offset;        /* in the part */
    uint32_t size;
    uint32_t server;
    uint16_t answer;        /* kind of message that ends it */
};

/* An ABANDON that found no room in its link, and is owed to a server. */
struct debt {
    struct debt *next;
    mu__pid to;
    uint64_t variable;
    uint64_t transfer;
};

/* What it remembers. */
struct variables {
    struct server *servers; /* by task index */
    uint32_t servers_count;
    struct flight *flights; /* by token modulo MU__FLIGHTS_MAX */
    uint32_t flights_count;
    uint32_t opens_count;
    uint64_t token_last;
    uint64_t id_last;
    struct operation *operations;
    uint64_t retry_timer;
    struct debt *debts;
    uint32_t debts_count;
    bool look_around;       /* any server's queue may go on: an operation failed, or the
                               bounds of all servers together were reached, or an open
                               goes on with other servers */
    uint32_t pumped_first;  /* where pump_all() began last, so that all come first once */
};

static bool is_open(const struct operation *op)
{
    return op->call->call.operation == MU__VARIABLE_OPEN;
}

static bool has_flag(const struct operation *op, unsigned flag)
{
    return (op->call->flags & flag) != 0;
}

/* Whether a part of an open leaves it to others to create its shard: it may wait long. */
static bool asks_existing(const struct part *part)
{
    if (part->shard == 0)
        return part->op->phase == CONFIRM || has_flag(part->op, MU_VARIABLE_EXISTING);
    return !part->op->creates;
}

/* ---- Servers ---- */

/* Servers up to an index; their queues stay where they are. */
static int need_servers(struct mu__ctx *ctx, struct variables *v, uint32_t count)
{
    struct server *servers;

    if (count <= v->servers_count)
        return 0;
    if (count > MU__SERVERS_MAX)
        return -MU_ERANGE;
    servers = realloc(v->servers, count * sizeof *servers);
    if (servers == NULL)
        return -MU_ENOMEM;
    v->servers = servers;
    for (uint32_t i = v->servers_count; i < count; i++)
        servers[i] = (struct server){.down_ms = mu__now_ms(ctx)};
    v->servers_count = count;
    return 0;
}

static mu__pid pid_of(const struct variables *v, uint32_t server)
{
    return (mu__pid){v->servers[server].node, MU__PS};
}

static void task_text(uint32_t server, char *out, size_t size)
{
    (void)snprintf(out, size, "/job:ps/task:%" PRIu32, server);
}

/* "/job:ps/task:1 (tcp://host:port)" */
static void place_text(const struct variables *v, uint32_t server, char *out, size_t size)
{
    const char *address = v->servers[server].address;

    if (address == NULL)
        task_text(server, out, size);
    else
        (void)snprintf(out, size, "/job:ps/task:%" PRIu32 " (%s)", server, address);
}

static void enqueue(struct variables *v, struct part *part)
{
    struct server *server = &v->servers[part->server];

    if (part->queued)
        return;
    part->queued = true;
    part->next = NULL;
    if (server->first == NULL)
        server->first = part;
    else
        server->last->next = part;
    server->last = part;
}

static void dequeue(struct variables *v, struct part *part)
{
    struct server *server = &v->servers[part->server];
    struct part **link = &server->first;
    struct part *before = NULL;

    if (!part->queued)
        return;
    part->queued = false;
    while (*link != part) {
        before = *link;
        link = &before->next;
    }
    *link = part->next;
    if (server->last == part)
        server->last = before;
}

static void unstage(struct variables *v, struct part *part)
{
    if (part->staged)
        v->servers[part->server].staged--;
    part->staged = false;
}

/* ---- Flights ---- */

static struct flight *flight_new(struct variables *v)
{
    struct flight *flight;

    assert(v->flights_count < MU__FLIGHTS_MAX);
    do {
        flight = &v->flights[++v->token_last % MU__FLIGHTS_MAX];
    } while (flight->token != 0 || v->token_last == 0);
    flight->token = v->token_last;
    return flight;
}

static void count_flight(struct variables *v, const struct flight *flight)
{
    v->flights_count++;
    v->opens_count += flight->answer == MU__VAR_OPENED;
    v->servers[flight->server].bytes_under_way += flight->size;
    flight->part->op->flights++;
}

/* Free a flight; returns what it was. */
static struct flight land(struct variables *v, struct flight *flight)
{
    struct flight was = *flight;

    v->flights_count--;
    v->opens_count -= was.answer == MU__VAR_OPENED;
    v->servers[was.server].bytes_under_way -= was.size;
    if (was.part != NULL)
        was.part->op->flights--;
    *flight = (struct flight){.token = 0};
    return was;
}

/* The flight that a message is about; NULL when there is none. */
static struct flight *find_flight(struct variables *v, const struct mu__msg *msg,
                                  uint64_t token)
{
    struct flight *flight = &v->flights[token % MU__FLIGHTS_MAX];

    if (token == 0 || flight->token != token || flight->answer != msg->kind ||
        !mu__pid_equal(pid_of(v, flight->server), msg->from))
        return NULL;
    return flight;
}

/* The flight that a message answers; false when there is none. */
static bool land_answer(struct variables *v, const struct mu__msg *msg, uint64_t token,
                        struct flight *ret_flight)
{
    struct flight *flight = find_flight(v, msg, token);

    if (flight == NULL)
        return false;
    *ret_flight = land(v, flight);
    return true;
}

/* Answers that are under way are of no use to the operation any more. */
static void disown_flights(struct variables *v, struct operation *op)
{
    for (uint32_t i = 0; i < MU__FLIGHTS_MAX && op->flights > 0; i++) {
        if (v->flights[i].token == 0 || v->flights[i].part == NULL ||
            v->flights[i].part->op != op)
            continue;
        v->flights[i].part = NULL;
        op->flights--;
    }
}

/* ---- Completing ---- */

/* Whether a refused message may be accepted later. The loss of a server is told soon. */
static bool is_passing(int rv)
{
    return rv == -MU_EEXHAUSTED || rv == -MU_EUNAVAILABLE || rv == -MU_EAGAIN ||
           rv == -MU_ENOMEM;
}

static void retry_later(struct mu__ctx *ctx, struct variables *v)
{
    if (v->retry_timer == 0)
        v->retry_timer = mu__timer_set(ctx, RETRY_MS, 0);
}

static int try_abandon(struct mu__ctx *ctx, const struct debt *debt)
{
    struct mu__msg *msg = mu__msg_new(ctx, MU__VAR_WRITE);

    if (msg != NULL) {
        struct mu__var_write *body = mu__body(msg);

        body->operation = MU__WRITE_ABANDON;
        body->variable = debt->variable;
        body->transfer = debt->transfer;
    }
    return mu__send(ctx, debt->to, msg);
}

/* Nothing answers an ABANDON. Without it, others would wait for what we gave up for as
 * long as this node lives. A server that is not there any more has forgotten it. */
static void send_abandon(struct mu__ctx *ctx, struct variables *v, mu__pid to,
                         uint64_t variable, uint64_t transfer)
{
    const struct debt debt = {NULL, to, variable, transfer};
    struct debt *kept;
    int rv = try_abandon(ctx, &debt);

    if (!is_passing(rv) || rv == -MU_EUNAVAILABLE)
        return;
    kept = v->debts_count < DEBTS_MAX ? malloc(sizeof *kept) : NULL;
    if (kept == NULL) {
        mu__log(ctx, MU__LOG_WARN, "node %" PRIu32 " is not told what was given up",
                to.node);
        return;
    }
    *kept = debt;
    kept->next = v->debts;
    v->debts = kept;
    v->debts_count++;
    retry_later(ctx, v);
}

static void pay_debts(struct mu__ctx *ctx, struct variables *v)
{
    struct debt *debt = v->debts;

    v->debts = NULL;
    v->debts_count = 0;
    while (debt != NULL) {
        struct debt *next = debt->next;

        send_abandon(ctx, v, debt->to, debt->variable, debt->transfer);
        free(debt);
        debt = next;
    }
}

/* What a part has begun and will not finish is given up on its server too. */
static void abandon_part(struct mu__ctx *ctx, struct variables *v,
                         const struct part *part)
{
    const struct mu__variable_call *call = part->op->call;

    if (!v->servers[part->server].up)
        return;
    if (part->step == OPENING && part->begun)
        send_abandon(ctx, v, pid_of(v, part->server), 0, part->transfer);
    if (part->made || part->staged)
        send_abandon(ctx, v, pid_of(v, part->server), call->ids[part->shard],
                     part->transfer);
}

static void unlist(struct variables *v, struct operation *op)
{
    struct operation **link = &v->operations;

    while (*link != op)
        link = &(*link)->next;
    *link = op->next;
    disown_flights(v, op);
}

static void complete(struct mu__ctx *ctx, struct variables *v, struct operation *op,
                     int code)
{
    struct mu__variable_call *call = op->call;

    mu__timer_cancel(ctx, call->call.timer);
    unlist(v, op);
    for (uint32_t i = 0; i < op->parts_count; i++) {
        dequeue(v, &op->parts[i]);
        unstage(v, &op->parts[i]);
    }
    free(op);
    mu__call_complete(&call->call, code);
}

/* Ends an operation with the error that its call has, which came from `server`. */
static void end_failed(struct mu__ctx *ctx, struct variables *v, struct operation *op,
                       uint32_t server)
{
    mu_error *error = &op->call->call.error;

    task_text(server, error->task, sizeof error->task);
    for (uint32_t i = 0; i < op->parts_count; i++)
        abandon_part(ctx, v, &op->parts[i]);
    v->look_around = true;
    complete(ctx, v, op, error->code);
}

/* Ends an operation with an error from `server`: "variable w: add: <words>". */
static void fail(struct mu__ctx *ctx, struct variables *v, struct operation *op,
                 uint32_t server, int code, const char *words)
{
    (void)mu_error_set(&op->call->call.error, code, "variable %s: %s: %s", op->call->name,
                       op->rule->verb, words);
    end_failed(ctx, v, op, server);
}

static void fail_by_answer(struct mu__ctx *ctx, struct variables *v, struct part *part,
                           uint32_t code, struct mu__view words)
{
    bool opens = is_open(part->op);
    char said[MU__ERROR_TEXT_MAX + 1];
    char text[sizeof said + 64];

    mu__view_copy(words, said, sizeof said);
    if (code == MU_ENOTFOUND && !opens)
        (void)snprintf(said, sizeof said,
                       "the server was restarted, or the variable created anew: it "
                       "does not have it");
    (void)snprintf(text, sizeof text, "on /job:ps/task:%" PRIu32 ": %s", part->server,
                   said);
    fail(ctx, v, part->op, part->server, -(int)code, text);
}

static void fail_by_nonsense(struct mu__ctx *ctx, struct variables *v, struct part *part)
{
    char text[PLACE_BYTES_MAX + 64];
    char place[PLACE_BYTES_MAX];

    place_text(v, part->server, place, sizeof place);
    (void)snprintf(text, sizeof text, "%s answered something else than was asked", place);
    fail(ctx, v, part->op, part->server, -MU_EDATALOSS, text);
}

/* ---- Sending ---- */

static bool has_more(const struct part *part)
{
    return !part->begun || (part->step == MOVING && part->sent < part->bytes);
}

static bool will_stage(const struct part *part)
{
    return part->op->call->call.operation == MU__VARIABLE_ASSIGN &&
           part->bytes > MU__PIECE_BYTES_MAX;
}

/* Those who wait for a creator leave room for it. */
static uint32_t opens_max(const struct operation *op)
{
    return has_flag(op, MU_VARIABLE_EXISTING) ? MU__OPENS_MAX / 4 * 3 : MU__OPENS_MAX;
}

static bool may_send(struct variables *v, const struct part *part)
{
    const struct server *server = &v->servers[part->server];

    if (v->flights_count >= MU__FLIGHTS_MAX ||
        (part->step == OPENING && v->opens_count >= opens_max(part->op))) {
        v->look_around = true;
        return false;
    }
    if (part->bytes > 0 && server->bytes_under_way >= MU__WINDOW_BYTES)
        return false;
    return !will_stage(part) || part->staged || server->staged < MU__STAGED_MAX;
}

static struct part *next_part(struct variables *v, uint32_t server)
{
    struct part *part = v->servers[server].first;

    while (part != NULL && !may_send(v, part))
        part = part->next;
    return part;
}

static int send_open(struct mu__ctx *ctx, struct variables *v, struct part *part,
                     struct flight *flight)
{
    const struct mu__variable_call *call = part->op->call;
    struct mu__msg *msg = mu__msg_new(ctx, MU__VAR_OPEN);
    uint8_t dims[MU__DIMS_BYTES_MAX];
    struct mu__var_open *body;

    if (msg == NULL)
        return -MU_ENOMEM;
    flight->answer = MU__VAR_OPENED;
    part->transfer = flight->token;
    body = mu__body(msg);
    body->token = flight->token;
    body->name = mu__view_str(call->name);
    body->dtype = call->shape->dtype;
    body->dims = (struct mu__view){dims, mu__shape_pack_dims(call->shape, dims)};
    body->shard = part->shard;
    body->shards = call->shape->shards;
    body->size = part->shard_bytes;
    body->existing = asks_existing(part);
    body->replaces = part->replaces;
    return mu__send_borrowed(ctx, pid_of(v, part->server), msg);
}

static int send_read(struct mu__ctx *ctx, struct variables *v, struct part *part,
                     struct flight *flight)
{
    struct mu__msg *msg = mu__msg_new(ctx, MU__VAR_READ);
    struct mu__var_read *body;

    if (msg == NULL)
        return -MU_ENOMEM;
    flight->answer = MU__VAR_DATA;
    body = mu__body(msg);
    body->token = flight->token;
    body->variable = part->op->call->ids[part->shard];
    body->offset = flight->offset;
    body->size = flight->size;
    return mu__send(ctx, pid_of(v, part->server), msg);
}

static int send_write(struct mu__ctx *ctx, struct variables *v, struct part *part,
                      struct flight *flight)
{
    const struct mu__variable_call *call = part->op->call;
    struct mu__msg *msg = mu__msg_new(ctx, MU__VAR_WRITE);
    struct mu__var_write *body;

    if (msg == NULL)
        return -MU_ENOMEM;
    flight->answer = MU__VAR_WRITTEN;
    if (!part->begun && !is_open(part->op))
        part->transfer = flight->token;
    body = mu__body(msg);
    body->token = flight->token;
    body->variable = call->ids[part->shard];
    body->operation = part->write;
    body->transfer = part->transfer;
    body->offset = flight->offset;
    body->rate = call->rate;
    body->momentum = call->momentum;
    if (flight->size > 0)
        body->data = (struct mu__view){
            (const uint8_t *)call->source + part->offset + flight->offset, flight->size};
    return mu__send_borrowed(ctx, pid_of(v, part->server), msg);
}

/* Send the next piece of a part. */
static int send_piece(struct mu__ctx *ctx, struct variables *v, struct part *part)
{
    uint64_t left = part->bytes - part->sent;
    struct flight *flight = flight_new(v);
    int rv;

    flight->part = part;
    flight->server = part->server;
    flight->offset = part->sent;
    flight->size = left < MU__PIECE_BYTES_MAX ? (uint32_t)left : MU__PIECE_BYTES_MAX;
    if (part->step == OPENING)
        rv = send_open(ctx, v, part, flight);
    else if (part->write == 0)
        rv = send_read(ctx, v, part, flight);
    else
        rv = send_write(ctx, v, part, flight);
    if (rv != 0) {
        *flight = (struct flight){.token = 0};
        return rv;
    }
    count_flight(v, flight);
    part->begun = true;
    part->sent += flight->size;
    if (will_stage(part) && !part->staged) {
        part->staged = true;
        v->servers[part->server].staged++;
    }
    return 0;
}

/* Send to a server what its window has room for; parts take turns. */
static void pump(struct mu__ctx *ctx, struct variables *v, uint32_t server)
{
    struct part *part;

    while (v->servers[server].up && (part = next_part(v, server)) != NULL) {
        int rv;

        dequeue(v, part);
        rv = send_piece(ctx, v, part);
        if (rv != 0 && !is_passing(rv)) {
            fail(ctx, v, part->op, server, rv, "a message could not be sent");
            continue;
        }
        if (has_more(part))
            enqueue(v, part);
        if (rv != 0) {
            retry_later(ctx, v);
            return;
        }
    }
}

static void pump_all(struct mu__ctx *ctx, struct variables *v)
{
    v->look_around = false;
    v->pumped_first++;
    for (uint32_t i = 0; i < v->servers_count; i++)
        pump(ctx, v, (v->pumped_first + i) % v->servers_count);
}

/* After every event: go on with the server it came from, or with all. */
static void go_on(struct mu__ctx *ctx, struct variables *v, uint32_t server)
{
    if (v->look_around)
        pump_all(ctx, v);
    else
        pump(ctx, v, server);
}

/* ---- Opening ---- */

/* Appends to a text that is cut where it ends. */
struct line {
    char text[sizeof((mu_error *)NULL)->message];
    size_t length;
};

static void line_add(struct line *line, const char *text)
{
    size_t room = sizeof line->text - 1 - line->length;
    size_t size = strlen(text);

    if (size > room)
        size = room;
    memcpy(line->text + line->length, text, size);
    line->length += size;
    line->text[line->length] = '\0';
}

/* "/job:ps/task:1, /job:ps/task:2": the servers of the parts that are picked, each once;
 * returns the first, or UINT32_MAX. */
static uint32_t line_add_tasks(struct line *line, const struct operation *op,
                               bool (*is_picked)(const struct part *part))
{
    uint32_t named[NAMED_MAX];
    uint32_t count = 0;

    for (uint32_t i = 0; i < op->parts_count; i++) {
        uint32_t server = op->parts[i].server;
        uint32_t before = 0;
        char text[64];

        while (before < count && named[before] != server)
            before++;
        if (!is_picked(&op->parts[i]) || before < count)
            continue;
        if (count == NAMED_MAX) {
            line_add(line, " and others");
            break;
        }
        named[count++] = server;
        task_text(server, text, sizeof text);
        line_add(line, count == 1 ? "" : ", ");
        line_add(line, text);
    }
    return count == 0 ? UINT32_MAX : named[0];
}

static bool is_absent(const struct part *part)
{
    return part->absent;
}

static bool is_made(const struct part *part)
{
    return part->made;
}

static bool has_absent(const struct operation *op)
{
    for (uint32_t i = 0; i < op->parts_count; i++)
        if (op->parts[i].absent)
            return true;
    return false;
}

static void unpark(struct part *part)
{
    if (part->op->parked == part)
        part->op->parked = NULL;
}

static void begin_step(struct variables *v, struct part *part, enum step step)
{
    part->op->parts_left += part->step == RESTING;
    part->step = step;
    part->begun = false;
    part->write = 0;
    part->bytes = 0;
    part->sent = 0;
    part->done = 0;
    part->absent = false;
    unpark(part);
    enqueue(v, part);
    v->look_around = true;
}

/* In place of the shard with the id `replaces`, if that is not 0. */
static void open_part(struct variables *v, struct part *part, uint64_t replaces)
{
    begin_step(v, part, OPENING);
    part->opened = false;
    part->made = false;
    part->replaces = replaces;
}

/* The initial content, or zeros. */
static void fill_part(struct variables *v, struct part *part)
{
    bool zeros = part->op->call->source == NULL;

    begin_step(v, part, MOVING);
    part->write = zeros ? MU__WRITE_ZERO : MU__WRITE_ASSIGN;
    part->bytes = zeros ? 0 : part->shard_bytes;
}

/* Begin an open, perhaps anew. */
static void find_home(struct variables *v, struct operation *op, uint64_t replaces)
{
    op->phase = FIND_HOME;
    op->creates = false;
    open_part(v, &op->parts[0], replaces);
}

/* Begin an open anew: nothing of it stays on the servers. */
static void find_again(struct mu__ctx *ctx, struct variables *v, struct operation *op,
                       uint64_t replaces)
{
    disown_flights(v, op);
    for (uint32_t i = 0; i < op->parts_count; i++) {
        struct part *part = &op->parts[i];

        abandon_part(ctx, v, part);
        dequeue(v, part);
        part->absent = false;
        part->step = RESTING;
        part->opened = false;
        part->made = false;
    }
    op->parts_left = 0;
    op->parked = NULL;
    find_home(v, op, replaces);
}

/* Some servers have their shards and others have not. Who waits for a creator looks
 * again once one of them has what it had not. */
static void take_loss(struct mu__ctx *ctx, struct variables *v, struct operation *op)
{
    struct line line = {.length = 0};
    uint32_t server;

    if (op->renews || has_flag(op, MU_VARIABLE_EXISTING)) {
        find_again(ctx, v, op, op->renews ? op->call->ids[0] : 0);
        return;
    }
    server = line_add_tasks(&line, op, op->creates ? is_made : is_absent);
    (void)mu_error_set(&op->call->call.error, -MU_EDATALOSS,
                       "variable \"%s\" lost its shards on %s in a restart; others have "
                       "theirs (MU_VARIABLE_RECREATE writes all of it anew)",
                       op->call->name, line.text);
    end_failed(ctx, v, op, server);
}

/* Shard 0 is ours, and yet somebody else's shards are there. */
static bool finds_remains(const struct operation *op)
{
    for (uint32_t i = 1; i < op->parts_count; i++)
        if (!op->parts[i].made)
            return true;
    return false;
}

/* What follows a phase: false when that was the last, or the open begins anew. */
static bool after_find_home(struct mu__ctx *ctx, struct variables *v,
                            struct operation *op)
{
    (void)ctx;
    op->creates = op->parts[0].made;
    if (!op->creates)
        op->renews = has_flag(op, MU_VARIABLE_RECREATE);
    op->home = op->call->ids[0];
    op->phase = FIND;
    for (uint32_t i = 1; i < op->parts_count; i++)
        open_part(v, &op->parts[i], 0);
    return true;
}

static bool after_find(struct mu__ctx *ctx, struct variables *v, struct operation *op)
{
    if (op->creates ? finds_remains(op) : has_absent(op)) {
        take_loss(ctx, v, op);
        return false;
    }
    if (!op->creates) {
        op->phase = CONFIRM;
        if (op->parts_count > 1)
            open_part(v, &op->parts[0], 0);
        return true;
    }
    op->phase = FILL;
    for (uint32_t i = 1; i < op->parts_count; i++)
        fill_part(v, &op->parts[i]);
    return true;
}

static bool after_confirm(struct mu__ctx *ctx, struct variables *v, struct operation *op)
{
    if (has_absent(op) || op->call->ids[0] != op->home)
        find_again(ctx, v, op, 0);
    else
        complete(ctx, v, op, 0);
    return false;
}

static bool after_fill(struct mu__ctx *ctx, struct variables *v, struct operation *op)
{
    if (finds_remains(op)) {
        take_loss(ctx, v, op);
        return false;
    }
    op->phase = FILL_HOME;
    fill_part(v, &op->parts[0]);
    return true;
}

/* From here on others find the variable. A shard that is lost before the end of this open
 * is made anew, and with it all others: we have their content still. */
static bool after_fill_home(struct mu__ctx *ctx, struct variables *v,
                            struct operation *op)
{
    (void)ctx;
    op->phase = COMMIT;
    op->creates = false;
    op->renews = true;
    for (uint32_t i = 1; i < op->parts_count; i++) {
        struct part *part = &op->parts[i];

        if (!part->made) {
            open_part(v, part, 0);
            continue;
        }
        begin_step(v, part, MOVING);
        part->write = MU__WRITE_COMMIT;
    }
    return true;
}

static bool after_commit(struct mu__ctx *ctx, struct variables *v, struct operation *op)
{
    if (has_absent(op))
        take_loss(ctx, v, op);
    else
        complete(ctx, v, op, 0);
    return false;
}

static bool (*const after[])(struct mu__ctx *ctx, struct variables *v,
                             struct operation *op) = {
    [FIND_HOME] = after_find_home,
    [FIND] = after_find,
    [CONFIRM] = after_confirm,
    [FILL] = after_fill,
    [FILL_HOME] = after_fill_home,
    [COMMIT] = after_commit,
};

/* After anything happened to a part of an open. */
static void go_through(struct mu__ctx *ctx, struct variables *v, struct operation *op)
{
    while (op->parts_left == 0)
        if (!after[op->phase](ctx, v, op))
            return;
}

/* ---- Calls ---- */

static void plan_part(struct operation *op, uint32_t shard)
{
    const struct mu__variable_call *call = op->call;
    struct part *part = &op->parts[shard];
    uint64_t home = mu__name_hash(mu__view_str(call->name)) % call->servers_count;

    part->op = op;
    part->shard = shard;
    part->server = (uint32_t)((home + shard) % call->servers_count);
    mu__shape_shard(call->shape, shard, &part->offset, &part->shard_bytes);
    if (is_open(op))
        return;
    part->step = MOVING;
    part->write = op->rule->write;
    if (part->write == MU__WRITE_MOMENTUM && !(call->momentum > 0 || call->momentum < 0))
        part->write = MU__WRITE_SGD;
    if (call->call.operation != MU__VARIABLE_VERSION)
        part->bytes = part->shard_bytes;
}

static struct operation *operation_new(struct variables *v,
                                       struct mu__variable_call *call)
{
    uint32_t count = call->shape->shards;
    struct operation *op = calloc(1, sizeof *op + count * sizeof op->parts[0]);

    if (op == NULL)
        return NULL;
    op->call = call;
    op->rule = &rules[call->call.operation];
    op->id = ++v->id_last;
    op->parts_count = count;
    op->parts_left = is_open(op) ? 0 : count;
    op->renews = has_flag(op, MU_VARIABLE_RECREATE);
    for (uint32_t i = 0; i < count; i++)
        plan_part(op, i);
    op->next = v->operations;
    v->operations = op;
    return op;
}

/* The timer is set first: a call that cannot be bounded is refused. */
static int start(struct mu__ctx *ctx, struct variables *v, struct mu__variable_call *call)
{
    int rv = need_servers(ctx, v, call->servers_count);
    struct operation *op;

    if (rv != 0)
        return rv;
    call->call.timer = 0;
    call->version = UINT64_MAX;
    if (call->call.limit_ms >= 0) {
        call->call.timer =
            mu__timer_set(ctx, (uint64_t)call->call.limit_ms, v->id_last + 1);
        if (call->call.timer == 0)
            return -MU_EEXHAUSTED;
    }
    op = operation_new(v, call);
    if (op == NULL) {
        mu__timer_cancel(ctx, call->call.timer);
        return -MU_ENOMEM;
    }
    op->began_ms = mu__now_ms(ctx);
    if (is_open(op))
        find_home(v, op, 0);
    for (uint32_t i = 0; i < op->parts_count && !is_open(op); i++)
        enqueue(v, &op->parts[i]);
    return 0;
}

static void on_call(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    struct variables *v = state;
    const struct mu__call_msg *body = mu__body(msg);
    struct mu__variable_call *call = body->call;
    int rv;

    assert(call->servers_count > 0);
    assert(call->call.operation >= MU__VARIABLE_OPEN &&
           call->call.operation <= MU__VARIABLE_APPLY);
    rv = start(ctx, v, call);
    if (rv != 0) {
        (void)mu_error_set(&call->call.error, rv, "variable %s: %s: %s", call->name,
                           rules[call->call.operation].verb, mu_strerror(rv));
        mu__call_complete(&call->call, rv);
        return;
    }
    pump_all(ctx, v);
}

/* ---- Answers ---- */

static void rest(struct mu__ctx *ctx, struct variables *v, struct part *part)
{
    struct operation *op = part->op;

    part->step = RESTING;
    unpark(part);
    unstage(v, part);
    op->parts_left--;
    if (is_open(op))
        go_through(ctx, v, op);
    else if (op->parts_left == 0)
        complete(ctx, v, op, 0);
}

/* One more piece of a part is answered. */
static void advance(struct mu__ctx *ctx, struct variables *v, const struct flight *flight,
                    uint64_t version)
{
    struct part *part = flight->part;
    struct mu__variable_call *call = part->op->call;

    part->done += flight->size;
    if (part->done < part->bytes)
        return;
    if (version < call->version)
        call->version = version;
    rest(ctx, v, part);
}

static void take_opened(struct mu__ctx *ctx, struct variables *v, struct part *part,
                        const struct mu__var_opened *body)
{
    struct operation *op = part->op;

    if (body->created && asks_existing(part)) {
        fail_by_nonsense(ctx, v, part);
        return;
    }
    op->call->ids[part->shard] = body->variable;
    part->opened = true;
    part->made = body->created;
    part->absent = false;
    if (!part->made && op->creates && op->renews)
        open_part(v, part, body->variable);
    else if (part->made && op->phase == FILL)
        fill_part(v, part);
    else
        rest(ctx, v, part);
}

/* Not an answer yet, and perhaps none before the limit: one part of an open waits for it,
 * if that never creates; the others have heard enough. */
static void take_note(struct mu__ctx *ctx, struct variables *v, struct flight *flight)
{
    struct part *part = flight == NULL ? NULL : flight->part;
    struct operation *op;

    if (part == NULL || !asks_existing(part))
        return;
    op = part->op;
    part->absent = true;
    if (op->parked == NULL && has_flag(op, MU_VARIABLE_EXISTING))
        op->parked = part;
    if (op->parked == part)
        return;
    abandon_part(ctx, v, part);
    flight->part = NULL;
    op->flights--;
    rest(ctx, v, part);
}

static void on_opened(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    struct variables *v = state;
    const struct mu__var_opened *body = mu__body(msg);
    struct flight flight = {.part = NULL};
    struct part *part;
    bool landed;

    if (body->code == MU_EAGAIN) {
        take_note(ctx, v, find_flight(v, msg, body->token));
        pump_all(ctx, v);
        return;
    }
    landed = land_answer(v, msg, body->token, &flight);
    part = flight.part;
    /* Made ours after we gave up: somebody else shall fill it. */
    if (part == NULL && body->created)
        send_abandon(ctx, v, msg->from, body->variable, body->token);
    if (!landed)
        return;
    if (part != NULL && body->code != 0) {
        fail_by_answer(ctx, v, part, body->code, body->message);
    } else if (part != NULL) {
        take_opened(ctx, v, part, body);
    }
    go_on(ctx, v, flight.server);
}

static void on_data(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    struct variables *v = state;
    const struct mu__var_data *body = mu__body(msg);
    struct flight flight;
    struct part *part;

    if (!land_answer(v, msg, body->token, &flight))
        return;
    part = flight.part;
    if (part != NULL && body->code != 0) {
        fail_by_answer(ctx, v, part, body->code, body->message);
    } else if (part != NULL &&
               (body->data.size != flight.size || flight.offset != part->done)) {
        fail_by_nonsense(ctx, v, part);
    } else if (part != NULL) {
        uint8_t *target = part->op->call->target;

        if (flight.size > 0)
            memcpy(target + part->offset + flight.offset, body->data.data, flight.size);
        advance(ctx, v, &flight, body->version);
    }
    go_on(ctx, v, flight.server);
}

static void on_written(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    struct variables *v = state;
    const struct mu__var_written *body = mu__body(msg);
    struct flight flight;

    if (!land_answer(v, msg, body->token, &flight))
        return;
    if (flight.part != NULL && body->code != 0)
        fail_by_answer(ctx, v, flight.part, body->code, body->message);
    else if (flight.part != NULL && flight.offset != flight.part->done)
        fail_by_nonsense(ctx, v, flight.part);
    else if (flight.part != NULL)
        advance(ctx, v, &flight, body->version);
    go_on(ctx, v, flight.server);
}

/* ---- Limits ---- */

static void line_add_server(struct line *line, const struct variables *v, uint32_t server,
                            uint64_t waited_ms)
{
    const struct server *s = &v->servers[server];
    char place[PLACE_BYTES_MAX];
    char text[PLACE_BYTES_MAX + TROUBLE_BYTES_MAX + 64];

    place_text(v, server, place, sizeof place);
    (void)snprintf(text, sizeof text, "%s%s %s for %" PRIu64 ".%" PRIu64 " s%s%s%s",
                   line->length == 0 ? "" : ", ", place,
                   s->up ? "has not answered" : "not reached", waited_ms / 1000,
                   waited_ms % 1000 / 100, s->up || s->trouble[0] == '\0' ? "" : " (",
                   s->up ? "" : s->trouble,
                   s->up || s->trouble[0] == '\0' ? "" : ")");
    line_add(line, text);
}

/* Whether its server is to blame at the limit: one that is missing for what will be asked
 * of it too. */
static bool is_owed(const struct variables *v, const struct part *part)
{
    if (!v->servers[part->server].up && is_open(part->op) && !part->opened)
        return true;
    return part->step != RESTING && !part->absent;
}

/* Whether an earlier part of the operation waits for the same server. */
static bool named_before(const struct variables *v, const struct operation *op,
                         uint32_t part)
{
    for (uint32_t i = 0; i < part; i++)
        if (op->parts[i].server == op->parts[part].server && is_owed(v, &op->parts[i]))
            return true;
    return false;
}

/* Names the servers in one state that an operation waits for; returns the first, or
 * `none`. */
static uint32_t name_servers(struct mu__ctx *ctx, const struct variables *v,
                             const struct operation *op, bool up, struct line *line)
{
    uint32_t first = UINT32_MAX;
    uint32_t count = 0;

    for (uint32_t i = 0; i < op->parts_count && count <= NAMED_MAX; i++) {
        uint32_t server = op->parts[i].server;
        uint64_t since_ms = up ? op->began_ms : v->servers[server].down_ms;

        if (!is_owed(v, &op->parts[i]) || v->servers[server].up != up ||
            named_before(v, op, i))
            continue;
        if (count++ == 0)
            first = server;
        if (count <= NAMED_MAX)
            line_add_server(line, v, server, mu__now_ms(ctx) - since_ms);
        else
            line_add(line, ", and others");
    }
    return first;
}

/* Nobody has created what an open waits for. */
static void fail_absent(struct mu__ctx *ctx, struct variables *v, struct operation *op)
{
    struct line line = {.length = 0};
    uint32_t server = line_add_tasks(&line, op, is_absent);

    (void)mu_error_set(&op->call->call.error, -MU_EDEADLINE,
                       "variable \"%s\" does not exist on %s (it waits for its creator)",
                       op->call->name, line.text);
    end_failed(ctx, v, op, server);
}

/* The limit has passed: missing servers are to blame before missing shards, and those
 * before servers that are slow. */
static void fail_by_limit(struct mu__ctx *ctx, struct variables *v, struct operation *op)
{
    struct line line = {.length = 0};
    uint32_t server = name_servers(ctx, v, op, false, &line);

    if (server == UINT32_MAX && has_absent(op) &&
        has_flag(op, MU_VARIABLE_EXISTING)) {
        fail_absent(ctx, v, op);
        return;
    }
    if (server == UINT32_MAX)
        server = name_servers(ctx, v, op, true, &line);
    fail(ctx, v, op, server, -MU_EDEADLINE, line.text);
}

static void on_timer(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    struct variables *v = state;
    const struct mu__timer *body = mu__body(msg);
    struct operation *op = v->operations;

    if (body->token == 0) {
        v->retry_timer = 0;
        pay_debts(ctx, v);
    } else {
        while (op != NULL && op->id != body->token)
            op = op->next;
        if (op != NULL)
            fail_by_limit(ctx, v, op);
    }
    pump_all(ctx, v);
}

/* ---- Servers that come and go ---- */

/* A part begins anew what its server may have forgotten; not one of an open. */
static void start_over(struct variables *v, struct part *part)
{
    if (part->op->call->call.operation == MU__VARIABLE_ASSIGN)
        part->done = 0;
    if (part->op->rule->repeats) {
        part->sent = part->done;
        part->begun = false;
        unstage(v, part);
    }
    if (has_more(part))
        enqueue(v, part);
}

/* A shard that was being opened or made on a lost server. */
static void open_over(struct variables *v, struct part *part)
{
    if (part->op->phase == FILL_HOME) {
        part->opened = false;
        part->made = false;
        return;
    }
    open_part(v, part, part->step == OPENING ? part->replaces : 0);
}

/* An open whose creation of shard 0 is lost begins anew: somebody else may create now.
 * What was found is not asked for again, nor is what was committed. */
static void lose_server_in_open(struct mu__ctx *ctx, struct variables *v,
                                struct operation *op, uint32_t server)
{
    if (op->creates && op->parts[0].server == server) {
        op->renews = has_flag(op, MU_VARIABLE_RECREATE);
        find_again(ctx, v, op, 0);
        return;
    }
    for (uint32_t i = 0; i < op->parts_count; i++) {
        struct part *part = &op->parts[i];

        if (part->server == server &&
            (part->step != RESTING || (op->creates && part->made)))
            open_over(v, part);
    }
}

static void fail_unknown_outcome(struct mu__ctx *ctx, struct variables *v,
                                 struct part *part)
{
    char text[PLACE_BYTES_MAX + 96];
    char place[PLACE_BYTES_MAX];

    place_text(v, part->server, place, sizeof place);
    (void)snprintf(text, sizeof text,
                   "%s was lost before it answered: the outcome is unknown", place);
    fail(ctx, v, part->op, part->server, -MU_EUNAVAILABLE, text);
}

static void lose_server(struct mu__ctx *ctx, struct variables *v, uint32_t server)
{
    struct server *s = &v->servers[server];

    s->up = false;
    s->down_ms = mu__now_ms(ctx);
    for (struct part *part = s->first; part != NULL; part = part->next)
        if (!is_open(part->op))
            start_over(v, part);
    for (uint32_t i = 0; i < MU__FLIGHTS_MAX; i++) {
        struct part *part;

        if (v->flights[i].token == 0 || v->flights[i].server != server)
            continue;
        part = land(v, &v->flights[i]).part;
        if (part == NULL || is_open(part->op))
            continue;
        if (part->op->rule->repeats)
            start_over(v, part);
        else
            fail_unknown_outcome(ctx, v, part);
    }
    for (struct operation *op = v->operations; op != NULL; op = op->next)
        if (is_open(op))
            lose_server_in_open(ctx, v, op, server);
}

static void on_node_up(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    struct variables *v = state;
    const struct mu__node_up *body = mu__body(msg);
    struct server *server;

    if (!mu__view_is(body->type, "ps"))
        return;
    if (body->index >= MU__SERVERS_MAX || need_servers(ctx, v, body->index + 1) != 0) {
        mu__log(ctx, MU__LOG_ERROR, "no room for parameter server %" PRIu32, body->index);
        return;
    }
    if (v->servers[body->index].up)
        lose_server(ctx, v, body->index);
    server = &v->servers[body->index];
    server->up = true;
    server->node = body->node;
    server->trouble[0] = '\0';
    free(server->address);
    server->address = malloc(body->address.size + 1);
    if (server->address != NULL)
        mu__view_copy(body->address, server->address, body->address.size + 1);
    pump_all(ctx, v);
}

static void on_node_down(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    struct variables *v = state;
    const struct mu__node_down *body = mu__body(msg);

    for (uint32_t i = 0; i < v->servers_count; i++) {
        if (!v->servers[i].up || v->servers[i].node != body->node)
            continue;
        mu__view_copy(body->reason, v->servers[i].trouble, TROUBLE_BYTES_MAX);
        lose_server(ctx, v, i);
    }
    pump_all(ctx, v);
}

static void on_node_trouble(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    struct variables *v = state;
    const struct mu__node_trouble *body = mu__body(msg);

    if (!mu__view_is(body->type, "ps") || body->index >= MU__SERVERS_MAX ||
        need_servers(ctx, v, body->index + 1) != 0)
        return;
    mu__view_copy(body->reason, v->servers[body->index].trouble, TROUBLE_BYTES_MAX);
}

/* ---- Life ---- */

/* The server on this node, which no news tells of. */
static int learn_own(struct mu__ctx *ctx, struct variables *v,
                     const struct mu__variables_options *options)
{
    int rv;

    if (options == NULL || !options->is_server)
        return 0;
    if (options->index >= MU__SERVERS_MAX)
        return -MU_ERANGE;
    rv = need_servers(ctx, v, options->index + 1);
    if (rv != 0)
        return rv;
    v->servers[options->index].up = true;
    v->servers[options->index].node = MU__NODE_SELF;
    return 0;
}

/* Only messages have the address: the links know where to dial. */
static void on_cluster_moved(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    struct variables *v = state;
    const struct mu__cluster_moved *body = mu__body(msg);
    char *address;

    if (!mu__view_is(body->type, "ps") || body->index >= v->servers_count)
        return;
    address = strndup(body->address.data, body->address.size);
    if (address == NULL) {
        mu__log(ctx, MU__LOG_ERROR, "out of memory: messages have the former address of "
                "/job:ps/task:%" PRIu32, body->index);
        return;
    }
    free(v->servers[body->index].address);
    v->servers[body->index].address = address;
}

static int learn_addresses(struct mu__ctx *ctx, struct variables *v,
                           const struct mu__variables_options *options)
{
    int rv;

    if (options == NULL)
        return 0;
    if (options->addresses_count > MU__SERVERS_MAX)
        return -MU_ERANGE;
    rv = need_servers(ctx, v, (uint32_t)options->addresses_count);
    if (rv != 0)
        return rv;
    for (size_t i = 0; i < options->addresses_count; i++) {
        if (options->addresses[i] == NULL)
            continue;
        v->servers[i].address = strdup(options->addresses[i]);
        if (v->servers[i].address == NULL)
            return -MU_ENOMEM;
    }
    return 0;
}

static void free_memory(struct variables *v)
{
    while (v->debts != NULL) {
        struct debt *next = v->debts->next;

        free(v->debts);
        v->debts = next;
    }
    for (uint32_t i = 0; i < v->servers_count; i++)
        free(v->servers[i].address);
    free(v->servers);
    free(v->flights);
}

static int init(struct mu__ctx *ctx, void *state, const void *arg)
{
    struct variables *v = state;
    int rv;

    v->flights = calloc(MU__FLIGHTS_MAX, sizeof *v->flights);
    rv = v->flights == NULL ? -MU_ENOMEM : learn_addresses(ctx, v, arg);
    if (rv == 0)
        rv = learn_own(ctx, v, arg);
    if (rv == 0)
        rv = mu__watch_nodes(ctx);
    if (rv != 0)
        free_memory(v);
    return rv;
}

/* Servers need not be told: they notice that the node goes. */
static void done(struct mu__ctx *ctx, void *state)
{
    struct variables *v = state;

    while (v->operations != NULL) {
        struct mu__variable_call *call = v->operations->call;

        (void)mu_error_set(&call->call.error, -MU_ECLOSED,
                           "variable %s: %s: the node is being closed", call->name,
                           v->operations->rule->verb);
        complete(ctx, v, v->operations, -MU_ECLOSED);
    }
    free_memory(v);
}

const struct mu__behavior mu__variables = {
    .name = "variables",
    .state_size = sizeof(struct variables),
    .handlers = handlers,
    .handlers_count = sizeof handlers / sizeof handlers[0],
    .init = init,
    .done = done,
};
