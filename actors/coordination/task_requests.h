/* Requests that wait for tasks, and the groups of tasks that they wait for. */
#ifndef MU_ACTORS_COORDINATION_TASK_REQUESTS_H
#define MU_ACTORS_COORDINATION_TASK_REQUESTS_H

#include "actors/coordination/tasks.h"

#ifdef MUSTER_TINY
enum { PENDING_MAX = 256, PENDING_OF_TASK_MAX = 64, GROUPS_MAX = 16 };
#else
enum {
    PENDING_MAX = 1 << 17,         /* waiting requests; more are refused */
    PENDING_OF_TASK_MAX = 1 << 12, /* of these, those of one task */
    GROUPS_MAX = 1024              /* different sets of tasks that requests wait for */
};
#endif

/* A set of tasks that requests wait for. */
struct group {
    struct mu__list_node link; /* in `groups` */
    char *text;                /* as requested; "": all */
    struct mu__task_set set;
    bool guests;              /* all known tasks, also those that are not coordinated */
    bool stays;               /* also without requests: the group of all */
    bool due;                 /* a task has changed since its requests were checked */
    uint64_t total;           /* tasks */
    uint64_t connected;       /* of these */
    uint64_t version;         /* of the task that changed last */
    uint64_t answered_ms;     /* when watches were answered last; 0: never */
    uint64_t note_ms;         /* when the next note on missing tasks is due; 0: no
                                 request waits */
    struct mu__list requests; /* the last one first */
};

struct pending_request {
    struct coord_request request;
    struct mu__roster_task *task;
    struct group *group;
    uint64_t since_ms;
    uint64_t due_ms; /* UINT64_MAX: it has no timeout */
    struct mu__list_node in_group;
    struct mu__list_node of_task;
    struct mu__list_node by_due;
};

struct coord_requests {
    struct mu__list groups; /* the last one first */
    uint32_t groups_count;
    struct group *all;   /* the coordinated ones */
    struct mu__list due; /* all requests, in order of due_ms */
    uint64_t due_ms;     /* when a group, or a note, is due; of deadlines, `due`
                            says it */
    uint32_t count;
    char missing_text[320]; /* cached: the missing tasks of that group, at that time,
                               of that version of the roster */
    const struct group *missing_group;
    uint64_t missing_ms;
    uint64_t missing_version;
};

/* ---- task_groups.c ---- */

/* Add a request to the lists of its group, its task and by deadline; remove it. */
void mu__coord_group_enlist(struct coord_requests *rs, struct pending_request *pending);
void mu__coord_group_unlist(struct coord_requests *rs, struct pending_request *pending);

bool mu__coord_group_has(const struct group *group, const struct mu__roster_task *task);
mu_value *mu__coord_group_content_of(struct mu__ctx *ctx, const struct coordination *c,
                                     const struct group *group, enum mu__tasks_what what);
void mu__coord_group_group_free(struct group *group);
void mu__coord_group_group_drop(struct coord_requests *rs, struct group *group);
int mu__coord_group_group_new(const struct coordination *c, struct mu__view tasks,
                              bool guests, mu_error *ret_error, struct group **ret_group);

/* The group of a request: a known or a new one. */
int mu__coord_group_group_of(const struct coordination *c,
                             const struct coord_request *request, mu_error *ret_error,
                             struct group **ret_group);

#endif
