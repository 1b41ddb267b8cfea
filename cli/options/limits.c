#include "cli/options/limits.h"

#include <errno.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

enum {
    FILES_PER_PEER = 2,         /* a connection each way; of `muster run` its pipes */
    FILES_OF_PROGRAM = 64,      /* the node's own, a journal, files of plugins */
    THREADS_OF_NODE = 3         /* the main one, the loop, the one for signals */
};

static int prepare_files(size_t tasks, mu_error *error)
{
    const rlim_t need = (rlim_t)tasks * FILES_PER_PEER + FILES_OF_PROGRAM;
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= need)
        return 0;
    if (limit.rlim_max < need)
        return mu_error_set(error, -MU_EEXHAUSTED,
                            "%zu tasks need %llu open files in a process, and at most "
                            "%llu are allowed (ulimit -Hn): expected at most %llu tasks, "
                            "or a higher limit",
                            tasks, (unsigned long long)need,
                            (unsigned long long)limit.rlim_max,
                            limit.rlim_max < FILES_OF_PROGRAM
                                ? 0ULL
                                : (unsigned long long)(limit.rlim_max -
                                                       FILES_OF_PROGRAM) /
                                      FILES_PER_PEER);
    limit.rlim_cur = need;
    if (setrlimit(RLIMIT_NOFILE, &limit) == 0)
        return 0;
    return mu_error_set(error, -MU_EEXHAUSTED,
                        "%zu tasks need %llu open files in a process: that limit cannot "
                        "be set: %s",
                        tasks, (unsigned long long)need, strerror(errno));
}

/* What else this user runs counts, too, but is not known here. Root has no limit. */
static int check_threads(size_t tasks, unsigned threads, mu_error *error)
{
    const rlim_t need = (rlim_t)tasks * (THREADS_OF_NODE + threads);
    struct rlimit limit;

    if (geteuid() == 0 || getrlimit(RLIMIT_NPROC, &limit) != 0 || limit.rlim_cur >= need)
        return 0;
    return mu_error_set(error, -MU_EEXHAUSTED,
                        "%zu tasks have %llu threads, and this user may have %llu "
                        "(ulimit -u): expected fewer tasks, or a higher limit",
                        tasks, (unsigned long long)need,
                        (unsigned long long)limit.rlim_cur);
}

int cli_limits_prepare(size_t tasks, unsigned threads, mu_error *ret_error)
{
    int rv = check_threads(tasks, threads, ret_error);

    return rv != 0 ? rv : prepare_files(tasks, ret_error);
}
