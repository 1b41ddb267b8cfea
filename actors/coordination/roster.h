/* The tasks that a coordination service knows: their states, errors, incarnations, and
 * last heartbeats. Plain data.
 *
 *                     register
 *   DISCONNECTED ----------------> CONNECTED
 *        ^  ^                        |   |  silence, its own report, restart seen, a
 *        |  '---- leaves, is reset --'   |  shutdown barrier missed
 *        |                               v
 *        '---------- reset ----------- ERROR ---> CONNECTED: recoverable ones, by
 *                                                 registering
 *
 * Every change of a state gives the roster the next version. */
#ifndef MU_ACTORS_ROSTER_H
#define MU_ACTORS_ROSTER_H

#include "actors/task_set.h"
#include "runtime/base/list.h"
#include "runtime/base/map.h"

#include "muster/cluster.h"
#include "muster/value.h"

/* MU__TASK_FAILED is ERROR: MU__TASK_ERROR is a message. */
enum mu__task_state { MU__TASK_DISCONNECTED, MU__TASK_CONNECTED, MU__TASK_FAILED };

/* How a task is reached, and when it was. All times are by mu__coord_clock. */
struct mu__task_link {
    bool up;       /* its link is up, or it is on the service's own node */
    uint32_t node; /* the link to it, valid while it is up; 0 is this node */
    uint64_t heard_ms;
    uint64_t down_ms;              /* since when its link is down; valid while not up */
    struct mu__list_node by_heard; /* in `heard` or `silent` while CONNECTED */
    struct mu__list_node by_down;  /* in `down` while CONNECTED and not up */
};

struct mu__task_progress {
    uint64_t count;
    uint64_t moved_ms; /* of the last increase */
};

/* Why it is in ERROR. */
struct mu__task_failure {
    char *ended; /* what became of its process, after which no other one is
                    started; owned; NULL: it may come, or come back */
    mu_error error;
    bool self_reported; /* reported by the task itself */
};

struct mu__roster_task {
    char type[16];
    uint32_t index;
    char name[64];    /* "/job:worker/task:1" */
    bool coordinated; /* one of the tasks that "all" means */
    bool recoverable;
    bool suspect; /* CONNECTED, without a heartbeat for suspect_ms */
    bool seen;    /* has ever registered */
    bool left;    /* DISCONNECTED by its own request: no other task waits
                     for it to leave */
    enum mu__task_state state;
    uint64_t incarnation; /* of its last registration; 0: none */
    uint64_t since;       /* the store's next revision when this incarnation
                             registered first */
    struct mu__task_link link;
    uint64_t since_ms; /* of its state */
    uint64_t version;  /* of the roster when its state changed last */
    struct mu__task_progress progress;
    bool lost;               /* FAILED (recoverable) or DISCONNECTED (before all were
                                connected) for silence or a broken link: it was not
                                told, and may register again */
    bool leaving;            /* waits for others to leave with it */
    bool notified;           /* of another task's failure, since it registered */
    uint64_t notified_count; /* the service's, when it registered */
    struct mu__task_failure failure;
    mu_value *devices; /* NULL: unknown */

    struct mu__list requests; /* waiting ones, see task_requests.h; empty unless
                                 CONNECTED */
    uint32_t requests_count;
    uint32_t slot;  /* its index among the roster's tasks; never changes */
    uint64_t visit; /* for those who walk over sets */
};

struct mu__roster {
    struct mu__roster_task **tasks; /* by slot */
    uint32_t count;
    uint32_t size;
    uint32_t coordinated; /* how many of the tasks are coordinated */
    uint32_t connected;   /* how many coordinated ones are CONNECTED */
    uint64_t version;
    struct mu__map nodes;                 /* node + 1 -> task */
    struct mu__map names;                 /* type and index, see roster.c -> task */
    char types[MU_CLUSTER_TYPES_MAX][16]; /* of all tasks, present and former */
    uint32_t types_count;
    struct mu__list heard;           /* CONNECTED, not suspect; in order of heard_ms */
    struct mu__list silent;          /* CONNECTED, suspect; in order of heard_ms */
    struct mu__list down;            /* CONNECTED, without a link; in order of down_ms */
    struct mu__task_set recoverable; /* types, each with index 0 */
    bool all_recoverable;
};

/* The coordinated tasks are in it at once, DISCONNECTED. NULL: out of memory. */
struct mu__roster *mu__roster_new(const struct mu__task_set *coordinated,
                                  const char *recoverable);
void mu__roster_free(struct mu__roster *roster);

/* NULL: there is none. */
struct mu__roster_task *mu__roster_find(const struct mu__roster *roster, const char *type,
                                        uint32_t index);
struct mu__roster_task *mu__roster_at_node(const struct mu__roster *roster,
                                           uint32_t node);

/* The known task of this name, or a new one that is not coordinated (an evaluator, a
 * client, a worker that joined), DISCONNECTED. NULL: out of memory, or too many. */
struct mu__roster_task *mu__roster_add(struct mu__roster *roster, const char *type,
                                       uint32_t index);

/* Add a task to the coordinated ones, or remove it from them. */
void mu__roster_coordinate(struct mu__roster *roster, struct mu__roster_task *task,
                           bool coordinated);

/* Give a task a state, the present time and the next version; `error` for ERROR. */
void mu__roster_move(struct mu__roster *roster, struct mu__roster_task *task,
                     enum mu__task_state state, const mu_error *error, uint64_t now_ms);

/* A message of the task has come. True: it was suspect, and is not any more. */
bool mu__roster_heard(struct mu__roster *roster, struct mu__roster_task *task,
                      uint64_t now_ms);

/* A CONNECTED task becomes suspect. */
void mu__roster_suspect(struct mu__roster *roster, struct mu__roster_task *task);

/* A link to the task is up, and replaces a former one; -MU_ENOMEM: nothing changed. Its
 * link is down. */
int mu__roster_link_up(struct mu__roster *roster, struct mu__roster_task *task,
                       uint32_t node, uint64_t now_ms);
void mu__roster_link_down(struct mu__roster *roster, struct mu__roster_task *task,
                          uint64_t now_ms);

/* All tasks become DISCONNECTED, never seen, without a link. */
void mu__roster_clear(struct mu__roster *roster, uint64_t now_ms);

/* "disconnected", "connected", "suspect", "error". */
const char *mu__roster_state_word(const struct mu__roster_task *task);

/* "/job:worker/task:3 (last heard 4,200 ms ago), /job:ps/task:0 (never registered) and 12
 * more" into `out`: at most `most` of the tasks for which `missing` is true, in the order
 * failed, suspect, left, never registered. Returns how many are missing in all. */
uint32_t mu__roster_describe(const struct mu__roster *roster, uint64_t now_ms,
                             bool (*missing)(void *user,
                                             const struct mu__roster_task *task),
                             void *user, uint32_t most, char *out, size_t size);

#endif
