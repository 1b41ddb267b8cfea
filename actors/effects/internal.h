/* What the effects actor is made of:
 *
 *     effects.c        the actor: planning, answers, servers, timeouts
 *     write_list.c     what one run writes
 *     batches.c        where each batch stands, and the end of a run
 *     batch_sending.c  pieces and windows
 *     batch_reopen.c   variables that a server has lost
 *
 * A run's writes to one server are a batch. A batch stands in one list of its server, or
 * rests until it may be sent again. One that is a single message takes the short way:
 *
 *     SINGLES ----------------------------> FLYING --> (answered)
 *     LARGES --> ACTIVE (piece by piece) ---^  |
 *        ^---------^------ RESTING <-----------'   the server said: again
 *
 * Single messages and pieces of large batches take turns and have windows of their own,
 * so that neither waits for the other's. Few large batches are active at a time: each
 * may have a rest that its server has not told of yet, and these must not fill the
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

/* Its timers. */
enum effects_timer { RETRY, AGAIN, TIMEOUT, LOST, TIMERS };

enum size { SINGLE, LARGE, SIZES };

struct write_batch {
    struct mu__list_node node;  /* of `in`, or of the spare ones */
    struct mu__list *in;        /* NULL: none */
    struct write_batch *sibling;      /* the next of the same run */
    struct sending *sending;    /* NULL: abandoned */
    uint32_t slot;              /* for life: where a token finds it */
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
    uint64_t reported;              /* and what of it is no more under way */
    int refused;                /* RESTING, or was: the code, 0: no supervisor known */
    bool rested;
    uint64_t due_ms;            /* RESTING */
    uint32_t reopening;         /* variables that are looked for: it is in no list */
    unsigned reopens;
};

/* A run whose writes are under way. */
struct sending {
    struct mu__list_node node;  /* in the order of their limits; or of the spare ones */
    struct mu_run *run;
    struct mu__msg *answer;     /* EFFECTS_SENT, in the memory of EFFECTS_SEND */
    mu__pid requester;
    uint64_t deadline_ms;       /* when it fails */
    struct write_batch *batches;
    uint32_t batches_left;
};

struct effect_server {
    uint32_t node;
    bool up;
    bool was_up;                /* at any time: before that it is waited for */
    uint64_t down_ms;           /* since when, if not up */
    char *address;              /* NULL: not known */
    char trouble[TROUBLE_BYTES_MAX];
    struct mu__list waiting[SIZES];    /* not begun */
    struct mu__list active;
    struct mu__list flying;
    uint64_t under_way[SIZES];  /* weight of what was sent and not told of */
    struct write_batch *planned; /* while a run is planned: its batch for this server */
};

/* What it remembers. */
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
    struct reopening *reopenings;
    uint64_t timers[TIMERS];           /* 0: not set */
};

struct reopening;               /* a variable that is looked for, for one batch */

/* ---- ends of a run: batches.c ---- */

/* Ends the batch's run with an error from its server: "what the run wrote: <its task>
 * <words>". */
void mu__effects_fail(struct mu__ctx *ctx, struct effects *e, struct write_batch *batch,
                      int code, const char *reason);

/* With an error that may name another task. */
void mu__effects_fail_with(struct mu__ctx *ctx, struct effects *e,
                           struct write_batch *batch, const mu_error *error);

/* From its first piece. */
void mu__effects_send_again(struct mu__ctx *ctx, struct effects *e,
                            struct write_batch *batch);

/* ---- batch_reopen.c ---- */

/* The server does not know a shard that the batch writes to: look for its variables by
 * their names. False: there is no way to. */
bool mu__effects_reopen(struct mu__ctx *ctx, struct effects *e,
                        struct write_batch *batch);
void mu__effects_on_reopened(struct mu__ctx *ctx, void *state, struct mu__msg *msg);

/* It was looked for, and is not there. */
void mu__effects_fail_forgotten(struct mu__ctx *ctx, struct effects *e,
                                struct write_batch *batch);

/* The batch is gone: what is looked for is not for it. */
void mu__effects_forget_reopenings(struct effects *e, struct write_batch *batch);
void mu__effects_drop_reopenings(struct effects *e);

enum {
    TIMEOUT_MS = 60000,
    RETRY_MS = 5,           /* after a link had no room */
    AGAIN_MS = 50,          /* after a server asked for it */
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

/* A timer that cannot be had now is asked for again with the next event. */
void mu__effects_arm(struct mu__ctx *ctx, struct effects *e, enum effects_timer timer,
                     uint64_t delay_ms);
void mu__effects_arm_at(struct mu__ctx *ctx, struct effects *e, enum effects_timer timer,
                        uint64_t due_ms);

/* Servers up to an index. */
int mu__effects_need_servers(struct mu__ctx *ctx, struct effects *e, uint32_t index);

mu__pid mu__effects_pid_of(const struct effects *e, uint32_t server);
int mu__effects_batch_new(struct effects *e, struct write_batch **ret_batch);

/* What was sent of it is not under way any more. */
void mu__effects_end_flight(struct effects *e, struct write_batch *batch);
void mu__effects_batch_free(struct effects *e, struct write_batch *batch);

/* Nothing of it was sent, or it is to be sent from its first piece again. */
void mu__effects_rewind_batch(struct effects *e, struct write_batch *batch);
struct write_batch *mu__effects_find_batch(const struct effects *e,
                                           const struct mu__msg *msg, uint64_t token);
struct sending *mu__effects_sending_new(struct effects *e);
void mu__effects_sending_free(struct effects *e, struct sending *sending);
void mu__effects_answer(struct mu__ctx *ctx, mu__pid to, struct mu__msg *msg);

/* Applied, so the run is rid of it. */
void mu__effects_complete(struct mu__ctx *ctx, struct effects *e,
                          struct write_batch *batch);

/* ---- batch_sending.c ---- */

/* Send to a server what its windows have room for. */
void mu__effects_pump(struct mu__ctx *ctx, struct effects *e, uint32_t index);
void mu__effects_pump_all(struct mu__ctx *ctx, struct effects *e);

#endif
