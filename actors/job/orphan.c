/* A task that waits for the end of the job, and reaches nobody who would say it: neither
 * the chief nor a host of the coordination service. After `orphan_ms` it takes the job to
 * have ended, and says so. */
#include "actors/job/internal.h"

#include <inttypes.h>

static bool is_job_orphaned(const struct job *job)
{
    if (job->config.orphan_ms == 0 || job->end.done || job->calls.waiting == NULL ||
        mu__job_is_chief(job) || mu__job_chief(job) != NULL)
        return false;
    for (uint32_t i = 0; i < job->peers.count; i++)
        if (mu__task_set_has(job->config.hosts, job->peers.items[i].type,
                             job->peers.items[i].index))
            return false;
    return true;
}

void mu__job_watch_orphan(struct mu__ctx *ctx, struct job *job)
{
    bool is_set = job->orphan_timer != 0;

    if (is_job_orphaned(job) == is_set)
        return;
    if (is_set)
        mu__timer_cancel(ctx, job->orphan_timer);
    job->orphan_timer = is_set ? 0 : mu__timer_set(ctx, job->config.orphan_ms, 0);
}

void mu__job_orphan_timer(struct mu__ctx *ctx, struct job *job)
{
    const char *colon = job->reported_error[0] == '\0' ? "" : ": ";
    mu_error error = {0};

    job->orphan_timer = 0;
    (void)mu_error_set(&error, -MU_EUNAVAILABLE,
                       "for %" PRIu64 " ms there has been no "
                       "link to %s, nor to a host of the coordination service%s%s: the "
                       "job is taken to have ended (orphan_ms)",
                       job->config.orphan_ms, job->config.chief, colon,
                       job->reported_error);
    mu__log(ctx, MU__LOG_ERROR, "%s", error.message);
    mu__job_finish(ctx, job, error.code, mu__view_str(error.message));
}
