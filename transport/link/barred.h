/* Tasks and processes that are refused, and why: tasks that left the cluster, and former
 * processes of tasks that have moved. Plain data. */
#ifndef MU_TRANSPORT_BARRED_H
#define MU_TRANSPORT_BARRED_H

#include "runtime/base/hash_table.h"
#include "runtime/base/list.h"
#include "runtime/base/view.h"

/* Bound: with one more the oldest entry is dropped, and its task may link again, like any
 * unlisted worker. */
enum { MU__BARRED_MAX = 16384 };

struct mu__barred {
    struct mu__list list; /* first: barred longest */
    struct mu__hash_table by_task;
};

/* Zeroed memory is the empty list. */
void mu__barred_done(struct mu__barred *barred);

/* Bar a task; or, if incarnation is not 0 or url not NULL, only that process of it and
 * any process at that url. `words` say why; they are copied. Replaces the task's entry.
 * -MU_ENOMEM: the task has no entry then. */
int mu__barred_add(struct mu__barred *barred, const char *type, uint32_t index,
                   uint64_t incarnation, const char *url, const char *words);

void mu__barred_remove(struct mu__barred *barred, const char *type, uint32_t index);

/* Why a process is barred; NULL: it is not. Owned by the list. */
const char *mu__barred_why(const struct mu__barred *barred, struct mu__view type,
                           uint32_t index, uint64_t incarnation, struct mu__view url);

#endif
