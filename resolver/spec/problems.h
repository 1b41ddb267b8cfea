/* All errors and oddities of a cluster spec, as texts for people; functions that refuse
 * a spec report only the first error. */
#ifndef MU_RESOLVER_PROBLEMS_H
#define MU_RESOLVER_PROBLEMS_H

#include <muster/cluster.h>

#include <stdbool.h>

enum mu__problem_grade {
    MU__PROBLEM_ERROR,   /* a node refuses it */
    MU__PROBLEM_WARNING, /* probably not what was meant */
    MU__PROBLEM_NOTE     /* what follows from it */
};

struct mu__problem {
    enum mu__problem_grade grade;
    char *text;
};

/* Bounded: what is beyond is only counted. */
enum { MU__PROBLEMS_MAX = 1000 };

struct mu__problems {
    struct mu__problem *rows;
    size_t count;
    size_t of_grade[3]; /* all that were added, those that are not kept, too */
    bool is_short;      /* some are not kept: too many, or out of memory */
};

void mu__problems_done(struct mu__problems *problems);
void mu__problems_add(struct mu__problems *problems, enum mu__problem_grade grade,
                      const char *format, ...) MU_PRINTF(3, 4);

/* The cluster of a text as far as it can be read: the text itself (`is_tf_config`
 * false), or the one in a text of TF_CONFIG. Messages begin with `source`. Returns 0
 * also when there are problems; *ret_cluster is the caller's, NULL when nothing could
 * be read. -MU_ENOMEM. */
int mu__problems_read(struct mu__problems *problems, const char *text, size_t size,
                      const char *source, bool is_tf_config, mu_cluster **ret_cluster);

/* Add the problems of a cluster, and of a task of it (type NULL: unknown). */
void mu__problems_check(struct mu__problems *problems, const mu_cluster *cluster,
                        const char *type, int index);

#endif
