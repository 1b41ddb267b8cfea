/* The clocks of which this node has members. */
#ifndef MU_ACTORS_VARIABLES_CLOCK_MEMBERSHIP_H
#define MU_ACTORS_VARIABLES_CLOCK_MEMBERSHIP_H

#include "actors/messages/limits.h"
#include "runtime/base/list.h"
#include "runtime/kernel/kernel.h"

struct mu__clock_call;
struct mu__variables_options;
struct variables;

struct mu__clock_memberships {
    struct mu__list list; /* struct clock_membership */
    uint64_t incarnation; /* of this process */
    char task[MU__TASK_NAME_MAX + 1];
};

/* Each handle of a program is a member of its own. What it says to the server follows
 * from its state, so that it can be said at any time and as often as is needed. */
struct clock_membership {
    struct mu__list_node node;
    uint64_t id;
    uint64_t staleness;
    uint64_t step;  /* that is said; the program has done it */
    uint64_t token; /* of the answer to it */
    uint32_t partition;
    bool said;                   /* to the present server */
    bool leaves;                 /* the program has closed it: it ends with the answer */
    bool passed;                 /* the program has heard that its step was let through */
    struct mu__clock_call *tick; /* an open or tick that waits; NULL: none does */
    struct mu__clock_call *query;         /* the same: for the minimum */
    char slowest[MU__ERROR_TEXT_MAX + 1]; /* as the server has said; "": not known */
    char name[];
};

/* ---- memberships.c ---- */

int mu__vars_clocks_init(struct variables *v,
                         const struct mu__variables_options *options);

/* The node is being closed: end all calls. */
void mu__vars_clocks_close(struct variables *v);
void mu__vars_clocks_free(struct variables *v);
void mu__vars_on_clock_call(struct mu__ctx *ctx, struct variables *v,
                            struct mu__clock_call *call);
void mu__vars_on_clock_passed(struct mu__ctx *ctx, void *state, struct mu__msg *msg);
void mu__vars_on_clock_state(struct mu__ctx *ctx, void *state, struct mu__msg *msg);

/* Time has passed for a call with this token; false: there is none. */
bool mu__vars_clock_tick(struct mu__ctx *ctx, struct variables *v, uint64_t token);

/* Say what has not been said to the present servers; all is to be said again to those of
 * partitions that are not served now. */
void mu__vars_pump_clocks(struct mu__ctx *ctx, struct variables *v);
void mu__vars_recall_clocks(struct variables *v);

#endif
