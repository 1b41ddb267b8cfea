/* Sets of tasks, as text: "ps:0-1,worker:0,worker:2-7". Plain data.
 *
 * The canonical text of a set has types in alphabetical order, indices ascending,
 * neighbours as ranges, each task once: two sets are equal when their texts are. "" is
 * the empty set, which most callers take for "all". */
#ifndef MU_ACTORS_TASK_SET_H
#define MU_ACTORS_TASK_SET_H

#include "muster/error.h"
#include "runtime/message/message.h"

struct mu__task_range {
    char type[16];
    uint32_t first;
    uint32_t last; /* >= first, at most MU_CLUSTER_INDEX_MAX */
};

/* Ranges are sorted, do not overlap and do not touch, as in the canonical text. */
struct mu__task_set {
    struct mu__task_range *ranges;
    uint32_t count;
    uint32_t size; /* room in `ranges` */
};

/* Zeroed memory is the empty set. */
void mu__task_set_done(struct mu__task_set *set);

/* Add a task, if it is not in the set. -MU_EINVALID: not a task type; -MU_ERANGE: the
 * index; -MU_ENOMEM. */
int mu__task_set_add(struct mu__task_set *set, const char *type, uint32_t index);

/* Remove a task, if it is in the set. -MU_ENOMEM: nothing has changed. */
int mu__task_set_remove(struct mu__task_set *set, const char *type, uint32_t index);

/* Read a text, canonical or not: "worker" (a type alone) is not accepted; "worker:3",
 * "worker:0-2" and "/job:worker/task:3" are, with commas and spaces between. -MU_EINVALID
 * and -MU_ERANGE name the place. At most MU__TASKS_TEXT_MAX bytes. */
int mu__task_set_parse(struct mu__view text, mu_error *ret_error,
                       struct mu__task_set *ret_set);

/* The canonical text. The caller frees it with free(); NULL: out of memory. */
char *mu__task_set_text(const struct mu__task_set *set);

bool mu__task_set_has(const struct mu__task_set *set, const char *type, uint32_t index);

/* The number of tasks. */
uint64_t mu__task_set_count(const struct mu__task_set *set);

#endif
