/* The builds of per-worker values: on which worker each of them is under way, has ended,
 * or is not tried any more.
 *
 *     ABSENT --> WAITING --> UNDER_WAY --> SLOW
 *        ^          ^            |           |
 *        |          |            '-----------'--> ENDED       its worker has answered
 *        '----------'------------'-----------'                its worker was lost
 *                                    or --> GIVEN_UP
 *
 * A worker that joins builds what there is before it gets closures. A build under which
 * workers were lost is treated as a closure is (decision 0009): after QUARANTINE_CRASHES
 * it runs with nothing beside it, and when `attempts_max` workers were lost under it, on
 * all workers together, it is given up on each one that was lost under it: closures that
 * use it get an input error there. Other closures are not affected. A build that takes
 * long delays only the closures that use it. */
#ifndef MU_ACTORS_SUPERVISOR_BUILDS_H
#define MU_ACTORS_SUPERVISOR_BUILDS_H

#include "actors/supervisor/inputs.h"
#include "actors/supervisor/state/sent_bodies.h"

enum build_state { ABSENT, WAITING, UNDER_WAY, SLOW, ENDED, GIVEN_UP };

/* On one worker, by its number. */
struct build {
    enum build_state state;
    bool first;              /* UNDER_WAY: closures wait for it */
    struct mu__worker_id id; /* of the worker: another one may get its number */
    uint32_t losses;         /* of this worker, under this build */
    uint64_t since_ms;       /* UNDER_WAY */
};

struct per_worker {
    struct mu__list_node node; /* among all values */
    uint64_t number;
    mu__pid *holders; /* the clients that have made it, each as often as it
                         did */
    uint32_t holders_count;
    uint32_t holders_room;
    bool is_shared;    /* known by its function and args */
    uint32_t function; /* MU__NAME_NONE: made from values */
    mu_value *values;
    struct mu__buf *backing; /* of the function's arguments */
    struct mu__packed args;
    struct sent_body sent; /* counts the closures that use it */
    uint32_t failures;     /* builds that ended with an error */
    uint32_t losses;       /* of workers, under its builds */
    struct build *builds;
    uint32_t builds_size;
};

static inline struct per_worker *first_value(const struct supervisor *s)
{
    return MU__LIST_FIRST(&s->per_worker.all, struct per_worker, node);
}

static inline struct per_worker *next_value(const struct per_worker *pw)
{
    return MU__LIST_NEXT(pw, struct per_worker, node);
}

/* A new value is built on each worker there is. */
void mu__sup_builds_make(struct mu__ctx *ctx, struct supervisor *s,
                         struct per_worker *pw);

/* The value is being removed: its builds are forgotten. */
void mu__sup_builds_drop(struct mu__ctx *ctx, struct supervisor *s,
                         const struct per_worker *pw);

/* Whether a value's build on a worker was given up; `text` is then the error for closures
 * that use it there. */
bool mu__sup_build_given_up(const struct supervisor *s, const struct per_worker *pw,
                            uint32_t number, char *text, size_t size);

/* Send a worker its item of a value whose items the program gave. */
void mu__sup_send_item(struct mu__ctx *ctx, const struct supervisor *s,
                       const struct per_worker *pw,
                       const struct mu__member_worker *worker);

#endif
