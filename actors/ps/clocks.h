/* The clocks of a partition: members, each at a step, and who waits for the slowest.
 * Plain data, no time: the same requests in the same order give the same clocks.
 *
 * A step is what a member has finished, so many times. A member joins at the minimum, or
 * at the step that it had when it was lost, if that is greater: so the minimum never
 * falls. A clock whose last member has closed it is gone; one whose last member was lost
 * keeps its minimum for those that come. */
#ifndef MU_ACTORS_CLOCKS_H
#define MU_ACTORS_CLOCKS_H

#include "actors/messages/limits.h"
#include "runtime/base/list.h"
#include "runtime/kernel/pid.h"

#include "muster/error.h"

/* Bounds, of a partition. A request beyond one is refused with -MU_EEXHAUSTED. */
enum { MU__CLOCKS_MAX = 256, MU__CLOCK_MEMBERS_MAX = 4096 };

/* Zeroed memory has none. */
struct mu__clocks {
    struct mu__list list; /* struct mu__clock, the oldest first */
    uint32_t count;
    uint32_t members; /* of all */
    struct mu__list passed;
};

struct mu__clock {
    struct mu__list_node node;
    uint64_t staleness; /* of the members that there are; UINT64_MAX: unlimited */
    uint64_t minimum;   /* step of the slowest member, or of the last one that was lost */
    uint32_t slowest;   /* members at the minimum */
    uint32_t count;
    struct mu__list members; /* struct mu__clock_member, the oldest first */
    char name[];
};

struct mu__clock_member {
    struct mu__list_node node;
    struct mu__list_node passed; /* in the list of those that are to be answered */
    struct mu__clock *clock;
    uint64_t id;
    uint64_t incarnation;
    uint64_t step;
    uint64_t token; /* of the answer that it waits for; 0: of none */
    mu__pid waiter;
    uint64_t away_ms; /* the primary's alone: since when there is no link; 0: there is */
    char task[MU__TASK_NAME_MAX + 1];
};

/* How a member leaves; the numbers are part of the wire format. */
enum mu__clock_leave { MU__CLOCK_STAYS, MU__CLOCK_CLOSED, MU__CLOCK_LOST };

/* "This member is at this step": makes the clock and the member when there is none. */
struct mu__clock_step {
    struct mu__view name;
    struct mu__view task;
    uint64_t member; /* a random number */
    uint64_t incarnation;
    uint64_t staleness;
    uint64_t step;
    mu__pid waiter;
    uint64_t token; /* 0: no answer is needed */
};

/* What came of it. */
struct mu__clock_outcome {
    mu__pid waiter;
    uint64_t token;
    uint64_t step;
    uint64_t minimum;
    bool waits;                      /* until mu__clocks_next_passed */
    struct mu__clock_member *joined; /* NULL: it was a member before */
};

void mu__clocks_done(struct mu__clocks *clocks);

/* -MU_EINVALID (name, task, member), -MU_EPRECONDITION (other members have another
 * staleness), -MU_EEXHAUSTED, -MU_ENOMEM. */
int mu__clocks_set(struct mu__clocks *clocks, const struct mu__clock_step *request,
                   mu_error *ret_error, struct mu__clock_outcome *ret_outcome);

/* One that is no member is fine. */
void mu__clocks_leave(struct mu__clocks *clocks, uint64_t member,
                      enum mu__clock_leave how);

/* Take out the next member that waits no more; false: there is none. */
bool mu__clocks_next_passed(struct mu__clocks *clocks,
                            struct mu__clock_outcome *ret_outcome);

/* Nobody on this node waits any more, or nobody at all. */
void mu__clocks_forget_node(struct mu__clocks *clocks, uint32_t node);
void mu__clocks_forget_nodes(struct mu__clocks *clocks);
bool mu__clocks_has_node(const struct mu__clocks *clocks, uint32_t node);

/* NULL: there is none. */
const struct mu__clock *mu__clocks_find(const struct mu__clocks *clocks,
                                        struct mu__view name);

/* "/job:worker/task:2 is at step 4": the slowest members, the first ones by name; "" when
 * there is none. */
enum { MU__CLOCK_TEXT_SIZE = 384 };
void mu__clock_slowest_text(const struct mu__clock *clock, char *out, size_t size);

/* A clock of a copy, and its members in their order. */
struct mu__clock *mu__clocks_put(struct mu__clocks *clocks, struct mu__view name,
                                 uint64_t staleness, uint64_t minimum);
struct mu__clock_member *mu__clocks_put_member(struct mu__clocks *clocks,
                                               struct mu__clock *clock,
                                               const struct mu__clock_step *request);

static inline struct mu__clock *mu__clocks_first(const struct mu__clocks *clocks)
{
    return MU__LIST_FIRST(&clocks->list, struct mu__clock, node);
}

static inline struct mu__clock *mu__clocks_next(const struct mu__clock *clock)
{
    return MU__LIST_NEXT(clock, struct mu__clock, node);
}

static inline struct mu__clock_member *mu__clock_first(const struct mu__clock *clock)
{
    return MU__LIST_FIRST(&clock->members, struct mu__clock_member, node);
}

static inline struct mu__clock_member *mu__clock_next(
    const struct mu__clock_member *member)
{
    return MU__LIST_NEXT(member, struct mu__clock_member, node);
}

#endif
