/* Who is refused, and why: tasks that left the cluster, and processes of tasks
 * that are elsewhere now. Plain data. */
#ifndef MU_TRANSPORT_BARRED_H
#define MU_TRANSPORT_BARRED_H

#include "runtime/base/hash_table.h"
#include "runtime/base/list.h"
#include "runtime/base/view.h"

/* Bound: one more, and the one that is barred longest is not any more. It may then come
 * back as a worker may that nobody has listed. */
enum { MU__BARRED_MAX = 16384 };

struct mu__barred {
    struct mu__list list;               /* first: barred longest */
    struct mu__hash_table by_task;
};

/* Zeroed memory is the empty list. */
void mu__barred_done(struct mu__barred *barred);

/* Bar a task, for good; or (incarnation not 0, or url not NULL) that process of it,
 * and whoever plays it at that url. The words are copied. Replaces what was said of the
 * task. -MU_ENOMEM: nobody is barred for it. */
int mu__barred_add(struct mu__barred *barred, const char *type, uint32_t index,
                   uint64_t incarnation, const char *url, const char *words);

void mu__barred_remove(struct mu__barred *barred, const char *type, uint32_t index);

/* Why somebody is barred; NULL: he is not. Owned by the list. */
const char *mu__barred_why(const struct mu__barred *barred, struct mu__view type,
                           uint32_t index, uint64_t incarnation, struct mu__view url);

#endif
