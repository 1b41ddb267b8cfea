/* The effects actor:
 *
 *     effects.c        the actor: planning, answers, servers, timeouts
 *     write_list.c     what one run writes
 *     batches.c        where each batch stands, and the end of a run
 *     batch_sending.c  pieces and windows
 *     batch_reopen.c   variables that a server has lost
 *
 * A run's writes to one server are a batch. A batch is in one list of its server, or
 * rests until it may be sent again. A batch of a single message is never active:
 *
 *     SINGLES ----------------------------> FLYING --> (answered)
 *     LARGES --> ACTIVE (piece by piece) ---^  |
 *        ^---------^------ RESTING <-----------'   the server said: again
 *
 * Single messages and pieces of large batches take turns and have windows of their own,
 * so that neither waits for the other's. Few large batches are active at a time: of each
 * a part that its server has not reported may be under way, and these must not fill the
 * window.
 *
 * A batch whose run has failed is abandoned: an active one on its server too,
 * one that is flying ends with its answer, or with its server. */
#ifndef MU_ACTORS_EFFECTS_INTERNAL_H
#define MU_ACTORS_EFFECTS_INTERNAL_H

#include "actors/messages.h"
#include "actors/effects/effects.h"
#include "runtime/base/list.h"

enum { TROUBLE_BYTES_MAX = 128 };

/* The actor's timers; also their tokens. */
enum effects_timer { RETRY, AGAIN, TIMEOUT, LOST, TIMERS };

enum size { SINGLE, LARGE, SIZES };

struct write_batch {
    struct mu__list_node node;  /* in the list `in`, or among the spare batches */
    struct mu__list *in;        /* NULL: in none */
    struct write_batch *sibling;      /* the next of the same run */
    struct sending *sending;    /* NULL: abandoned */
    uint32_t slot;              /* its index in `slots`; part of its tokens */
    uint32_t server;
    enum size size;
    uint32_t writes_count;
    struct mu__effect *first;   /* its writes follow each other */
    struct mu__effect *last;
    uint64_t token;             /* of this try; 0: not begun */
    const struct mu__effect *at;    /* the next piece: of this write, */
    uint64_t offset;                /* from here */
    uint32_t writes_left;           /* `at` included */
    uint32_t pieces;            /* sent in this try, */
    uint64_t sent;              /* their weight, */
    uint64_t reported;              /* and what of that is not under way any more */
    int refused;                /* if `rested`: the server's code; 0: it knows no
                                   supervisor */
    bool rested;
    uint64_t due_ms;            /* RESTING */
    uint32_t reopening;         /* variables that are being reopened; if any, it is in no
                                   list */
    unsigned reopens;
};

/* A run whose writes are under way. */
struct sending {
    struct mu__list_node node;  /* by deadline; or among the spare ones */
    struct mu_run *run;
    struct mu__msg *answer;     /* EFFECTS_SENT, in the memory of the EFFECTS_SEND */
    mu__pid requester;
    uint64_t deadline_ms;       /* when the run fails */
    struct write_batch *batches;
    uint32_t batches_left;
};

struct effect_server {
    uint32_t node;
    bool up;
    bool was_up;                /* at any time; before that it is waited for */
    uint64_t down_ms;           /* since when, if not up */
    char *address;              /* NULL: not known */
    char trouble[TROUBLE_BYTES_MAX];
    struct mu__list waiting[SIZES];    /* not begun */
    struct mu__list active;
    struct mu__list flying;
    uint64_t under_way[SIZES];  /* weight of what was sent and is not reported */
    struct write_batch *planned; /* while a run is planned: its batch for this server */
};

/* The actor's state. */
struct effects {
    struct mu__effects_config config;
    struct effect_server **servers;    /* by task index; each stays where it is */
    uint32_t servers_count;
    struct write_batch **slots;
    uint32_t slots_count;
    uint32_t slots_capacity;
    uint64_t tries;
    struct mu__list spare_batches;
    struct mu__list spare_sendings;
    struct mu__list sendings;
    struct mu__list resting;
    struct mu__list reopenings;     /* variables being reopened, each for one batch */
    uint64_t timers[TIMERS];           /* 0: not set */
};

/* ---- ends of a run: batches.c ---- */

/* End the batch's run with an error from its server: "what the run wrote: <server>
 * <reason>". */
void mu__effects_fail(struct mu__ctx *ctx, struct effects *e, struct write_batch *batch,
                      int code, const char *reason);

/* The same with an error that may name another task. */
void mu__effects_fail_with(struct mu__ctx *ctx, struct effects *e,
                           struct write_batch *batch, const mu_error *error);

/* Send a batch again, from its first piece. */
void mu__effects_send_again(struct mu__ctx *ctx, struct effects *e,
                            struct write_batch *batch);

/* ---- batch_reopen.c ---- */

/* The server does not know a shard that the batch writes to: reopen its variables by
 * their names. False: that is not possible. */
bool mu__effects_reopen(struct mu__ctx *ctx, struct effects *e,
                        struct write_batch *batch);
void mu__effects_on_reopened(struct mu__ctx *ctx, void *state, struct mu__msg *msg);

/* The batch's run fails: a variable does not exist any more. */
void mu__effects_fail_forgotten(struct mu__ctx *ctx, struct effects *e,
                                struct write_batch *batch);

/* The batch does not wait for its reopenings any more; free all reopenings. */
void mu__effects_forget_reopenings(struct effects *e, struct write_batch *batch);
void mu__effects_drop_reopenings(struct effects *e);

enum {
    TIMEOUT_MS = 60000,
    RETRY_MS = 5,           /* after a link had no room */
    AGAIN_MS = 50,          /* before a batch that was refused is sent again */
    ACTIVE_MAX = 4,         /* large batches under way with one server */
    SLOT_BITS = 24,         /* of a token; the rest counts tries */
    SERVER_TEXT_MAX = 384   /* a task and its address */
};

/* ---- batches.c ---- */

/* NULL: the list is empty. */
static inline struct write_batch *mu__effects_first(const struct mu__list *list)
{
    return MU__LIST_FIRST(list, struct write_batch, node);
}

void mu__effects_take_out(struct write_batch *batch);
void mu__effects_put_last(struct mu__list *list, struct write_batch *batch);
void mu__effects_put_first(struct mu__list *list, struct write_batch *batch);
struct mu__list *mu__effects_waiting_of(const struct effects *e,
                                        const struct write_batch *batch);

/* Set a timer, unless it is set. If the kernel has none left, the next event tries
 * again. */
void mu__effects_arm(struct mu__ctx *ctx, struct effects *e, enum effects_timer timer,
                     uint64_t delay_ms);
void mu__effects_arm_at(struct mu__ctx *ctx, struct effects *e, enum effects_timer timer,
                        uint64_t due_ms);

/* Room for servers up to an index. */
int mu__effects_need_servers(struct mu__ctx *ctx, struct effects *e, uint32_t index);

mu__pid mu__effects_pid_of(const struct effects *e, uint32_t server);
int mu__effects_batch_new(struct effects *e, struct write_batch **ret_batch);

/* What was sent of a batch is not under way any more. */
void mu__effects_end_flight(struct effects *e, struct write_batch *batch);
void mu__effects_batch_free(struct effects *e, struct write_batch *batch);

/* Let a batch begin with its first piece, for the first time or again. */
void mu__effects_rewind_batch(struct effects *e, struct write_batch *batch);
struct write_batch *mu__effects_find_batch(const struct effects *e,
                                           const struct mu__msg *msg, uint64_t token);
struct sending *mu__effects_sending_new(struct effects *e);
void mu__effects_sending_free(struct effects *e, struct sending *sending);
void mu__effects_answer(struct mu__ctx *ctx, mu__pid to, struct mu__msg *msg);

/* A batch was applied. The last one ends the run. */
void mu__effects_complete(struct mu__ctx *ctx, struct effects *e,
                          struct write_batch *batch);

/* ---- batch_sending.c ---- */

/* Send to a server what its windows have room for. */
void mu__effects_pump(struct mu__ctx *ctx, struct effects *e, uint32_t index);
void mu__effects_pump_all(struct mu__ctx *ctx, struct effects *e);

#endif
