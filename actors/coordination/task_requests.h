/* Requests about tasks, and requests that wait for tasks. */
#ifndef MU_ACTORS_COORDINATION_TASK_REQUESTS_H
#define MU_ACTORS_COORDINATION_TASK_REQUESTS_H

#include "actors/coordination/internal.h"
#include "actors/packing.h"

enum coord_request_kind {
    COORD_REQUEST_REGISTER,    /* to register with all others */
    COORD_REQUEST_WAIT,
    COORD_REQUEST_WATCH,
    COORD_REQUEST_LEAVE        /* with all others */
};

struct coord_request {
    enum coord_request_kind kind;
    uint32_t node;
    uint64_t token;
    uint64_t version;           /* WATCH: the one that is known */
    uint64_t timeout_ms;        /* from now; 0: none */
    struct mu__view tasks;      /* a set; "": all */
};

int mu__coord_requests_init(struct mu__ctx *ctx, struct coordination *c);
void mu__coord_requests_done(struct coordination *c);
void mu__coord_requests_tick(struct mu__ctx *ctx, struct coordination *c);
void mu__coord_on_tasks_get(struct mu__ctx *ctx, void *state, struct mu__msg *msg);

/* A request that waits, of a task; with a token that it has asked already, it is that
 * request. On failure it is answered with the reason. */
void mu__coord_request_add(struct mu__ctx *ctx, struct coordination *c,
                           struct mu__roster_task *task, const struct coord_request *get);

/* Whether a task waits with a request of a kind; answer all of those that it has of a
 * kind, or (`kind` negative) all, with an error or 0. */
bool mu__coord_request_waits(const struct coordination *c,
                             const struct mu__roster_task *task,
                             enum coord_request_kind kind);
void mu__coord_requests_answer(struct mu__ctx *ctx, struct coordination *c,
                               const struct mu__roster_task *task, int kind,
                               const mu_error *error);

/* Forget what a task asked over a link: it will be asked again. And everything. */
void mu__coord_requests_drop(struct coordination *c, const struct mu__roster_task *task,
                             uint32_t node);
void mu__coord_requests_forget(struct coordination *c);

/* Answer everything that waits. */
void mu__coord_requests_stop(struct mu__ctx *ctx, struct coordination *c,
                             const mu_error *error);

/* STATES, DEVICES (of those that are connected), or WAIT, which is both, of the tasks of
 * a set; NULL: of all that are known. The caller's; NULL: out of memory. In
 * coordination_states.c. */
mu_value *mu__coord_states(struct mu__ctx *ctx, const struct coordination *c,
                           const struct mu__task_set *set, enum mu__tasks_what what);

/* A task is one of the coordinated jobs, or is not any more. -MU_ENOMEM: nothing has
 * changed. */
int mu__coord_requests_cluster(struct mu__ctx *ctx, struct coordination *c,
                               const struct mu__roster_task *task);

/* A task was removed from the cluster: nobody waits any longer until it is connected. */
void mu__coord_requests_removed(struct mu__ctx *ctx, struct coordination *c,
                                const struct mu__roster_task *task);

/* The coordinated jobs. */
const struct mu__task_set *mu__coord_requests_all(const struct coordination *c);

/* The state of a task has changed, after it was connected or not. */
void mu__coord_requests_changed(struct mu__ctx *ctx, struct coordination *c,
                                const struct mu__roster_task *task, bool was_connected);

#ifdef MUSTER_TINY
enum { PENDING_MAX = 256, GROUPS_MAX = 16 };
#else
enum {
    PENDING_MAX = 1 << 17,    /* that wait at a time; more are refused, as are more */
    GROUPS_MAX = 1024           /* different sets */
};
#endif

struct group {
    struct group *next;
    char *text;                 /* as it was asked; "": all */
    struct mu__task_set set;
    bool guests;                /* all, those that are not coordinated included */
    bool stays;
    bool due;                   /* something changed since its requests were looked at */
    uint64_t total;
    uint64_t connected;
    uint64_t version;           /* of the task that changed last */
    uint64_t answered_ms;           /* when watches were answered last; 0: never */
    uint64_t note_ms;           /* when those who wait are told next who is missing; 0:
                                   nobody waits */
    struct pending_request *first;
};

struct pending_request {
    struct coord_request request;
    struct mu__roster_task *task;
    struct group *group;
    uint64_t since_ms;
    uint64_t due_ms;            /* UINT64_MAX: it has no limit */
    struct pending_request *next[3];   /* in the group, of the task, by due_ms */
    struct pending_request *prev[3];
};

enum { BY_GROUP, BY_TASK, BY_DUE };

struct coord_requests {
    struct group *groups;
    uint32_t groups_count;
    struct group *all;          /* the coordinated ones */
    struct pending_request *due_first;
    struct pending_request *due_last;
    uint32_t count;
    struct mu__map of_tasks;    /* slot + 1 -> its first request */
    char missing_text[320];     /* who was missing in a group, at a time */
    const struct group *missing_group;
    uint64_t missing_ms;
    uint64_t missing_version;
};

/* ---- task_groups.c ---- */

void mu__coord_group_unlink_from(struct pending_request *pending, int which);
struct pending_request *mu__coord_group_first_of(const struct coord_requests *rs,
                                                 const struct mu__roster_task *task);
int mu__coord_group_enlist(struct coord_requests *rs, struct pending_request *pending);
void mu__coord_group_unlist_of_task(struct coord_requests *rs,
                                    const struct pending_request *pending);
bool mu__coord_group_has(const struct group *group, const struct mu__roster_task *task);
mu_value *mu__coord_group_content_of(struct mu__ctx *ctx, const struct coordination *c,
                                     const struct group *group, enum mu__tasks_what what);
void mu__coord_group_group_free(struct group *group);
void mu__coord_group_group_drop(struct coord_requests *rs, struct group *group);
int mu__coord_group_group_new(const struct coordination *c, struct mu__view tasks,
                              bool guests, mu_error *ret_error, struct group **ret_group);

/* The group of a request: that of before, or a new one. */
int mu__coord_group_group_of(const struct coordination *c,
                             const struct coord_request *request, mu_error *ret_error,
                             struct group **ret_group);

#endif
