/* A round of preemption, which agrees on a step: its state, and its messages. */
#ifndef MU_ACTORS_COORDINATION_PREEMPTION_H
#define MU_ACTORS_COORDINATION_PREEMPTION_H

#include "actors/coordination/internal.h"

enum round_phase { ROUND_NONE, ROUND_EARLY, ROUND_RUNNING, ROUND_OVER };

/* A notice of a task, answered when the round is over. Kept until the next round, so that
 * a repeated one begins none. */
struct preempt_notice {
    struct preempt_notice *next;
    const struct mu__roster_task *task;
    uint64_t incarnation;
    uint64_t token;
    uint64_t due_ms; /* deadline; 0: none */
    bool answered;
};

/* The report of a task in the last round. */
struct voter {
    uint64_t incarnation;
    bool requested; /* PREEMPT_REQUEST was sent to this incarnation */
    bool reported;
    bool counts; /* it counts steps */
    uint64_t step;
};

struct coord_preempt {
    bool is_read;    /* the record of a former host */
    uint64_t led_ms; /* when it was read, at the begin of this host's lead */
    enum round_phase phase;
    uint64_t round; /* number of the last; 0: there was none */
    uint64_t begun_ms;
    char task[64]; /* the task to be preempted */
    char reason[MU__ERROR_TEXT_MAX + 1];
    uint64_t grace_ms; /* from noticed_ms to the preemption; 0: unknown */
    uint64_t noticed_ms;
    uint64_t by; /* incarnation and token of the first notice; 0: a key */
    uint64_t token;
    struct preempt_notice *notices;
    uint32_t notices_count;
    uint64_t notices_due_ms; /* no timeout of a notice is over before */
    struct voter *voters;    /* by slot */
    uint32_t voters_size;
    uint32_t missing; /* voters that were requested and have not reported */
    uint64_t step;    /* ROUND_OVER: where all stop, */
    mu_error error;   /* or why the round failed */
};

/* ---- preemption.c ---- */

extern const char mu__coord_preempt_record_name[];

/* ---- preemption_messages.c ---- */

/* The record of the round in a persistent store; false: other text. */
void mu__coord_preempt_write_record(struct mu__ctx *ctx, struct coordination *c);
bool mu__coord_preempt_read_record(struct coord_preempt *p, struct mu__view value);

/* Milliseconds to the preemption. */
uint64_t mu__coord_preempt_grace_left(const struct coord_preempt *p, uint64_t now_ms);

void mu__coord_preempt_send_request(struct mu__ctx *ctx, struct coordination *c,
                                    uint32_t node);
void mu__coord_preempt_send_stop(struct mu__ctx *ctx, struct coordination *c,
                                 uint32_t node, uint64_t round, uint64_t step,
                                 const mu_error *error);
void mu__coord_preempt_send_outcome(struct mu__ctx *ctx, struct coordination *c,
                                    uint32_t node);
void mu__coord_preempt_answer_notices(struct mu__ctx *ctx, struct coordination *c);
void mu__coord_preempt_forget_notices(struct coord_preempt *p);

/* The last round, when its step is agreed on; for tests. */
bool mu__coord_preempt_agreed(const struct coordination *c, uint64_t *ret_round);

#endif
