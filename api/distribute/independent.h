/* What the files about independent tasks share: independent.c, gather.c, end.c. */
#ifndef MU_DISTRIBUTE_INDEPENDENT_H
#define MU_DISTRIBUTE_INDEPENDENT_H

#include "api/distribute/internal.h"

enum { KEY_BYTES = 160, MS_NS = 1000000 };

/* The key that is put when the job is done, in a cluster without a chief. */
#define MU__TASKS_ENDED_KEY "muster/distribute/ended"

/* Which key a request waits for: see independent.c. */
enum { NEWS_FAILED, NEWS_TRAINED, NEWS_ENDED, NEWS_LOST, NEWS_COUNT };

struct mu__task_news {
    atomic_uint holds;
    uv_mutex_t lock; /* guards all below */
    uv_cond_t moved;
    struct mu__distribution *run; /* NULL once it is closed */
    bool heard[NEWS_COUNT];
    mu_error why;                          /* of NEWS_FAILED */
    char lost_task[MU_CLUSTER_TASK_BYTES]; /* of NEWS_LOST */
    mu_error interrupted; /* why this process waits at no barrier any more; code 0:
                             it does */
    bool job_done;        /* the wait for the job has ended */
    mu_error job;         /* the job's outcome, by that wait or by NEWS_ENDED */
    uint64_t requests[NEWS_COUNT]; /* 0: none */
    char prefix[64];
    char *tasks; /* the chief and the workers; owned */
};

/* The key of `what` in the news' run; `out` has KEY_BYTES. */
void mu__tasks_key(const struct mu__task_news *news, const char *what, char *out);

/* Put a result under a key. */
int mu__tasks_put(mu_node *node, const char *key, const mu_value *result, unsigned flags,
                  int64_t timeout_ms, mu_error *ret_error);

/* Begin a wait for the job's end, which also ends when this task is stopped or its node
 * closed. */
int mu__tasks_begin_job_wait(struct mu__distribution *run, mu_error *ret_error);

#endif
