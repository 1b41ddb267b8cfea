/* Lists of hosts as Slurm writes them: "n[1-2],m5,o[3-4,6,7-9]".
 *
 *     list  = item {separator item}      separators: a comma, spaces and newlines
 *     item  = {text | bracket}           a name: letters, digits and . _ - :
 *     bracket = "[" part {"," part} "]"
 *     part  = number | number "-" number | bracket
 *
 * Numbers keep the width of the lower bound's text: "[09-10]" is 09, 10. Of several
 * brackets in a name the last one counts fastest, then the first, the second and so on,
 * as in Slurm; of two the left one is the outer loop. Hosts may be repeated. Beyond
 * Slurm's syntax: text behind a bracket, and brackets within brackets, which have no
 * meaning. */
#ifndef MU_RESOLVER_HOST_LIST_H
#define MU_RESOLVER_HOST_LIST_H

#include <muster/error.h>

#include <stdbool.h>

enum {
    MU__HOST_BYTES_MAX = 255,  /* of a name */
    MU__HOST_BRACKETS_MAX = 8, /* in a name */
    MU__HOST_NESTING_MAX = 8
};

struct mu__host_list {
    char **names;
    size_t count; /* MU_CLUSTER_TASKS_MAX at most */
    size_t capacity;
};

/* Parse; a list of nothing has no hosts. Messages begin with `source`, the place as a
 * number of bytes from 1, and what stands there.
 *
 * Returns: -MU_EINVALID, -MU_EEXHAUSTED (too many hosts), -MU_ENOMEM. On success the
 *          caller calls mu__host_list_done. */
int mu__host_list_parse(const char *text, size_t size, const char *source,
                        mu_error *ret_error, struct mu__host_list *ret_list);

/* Fine on a list that is all zeros. */
void mu__host_list_done(struct mu__host_list *list);

/* Append a copy of a name. -MU_EEXHAUSTED, -MU_ENOMEM. */
int mu__host_list_add(struct mu__host_list *list, const char *name);

/* The first place of a name; list->count when it is not there. */
size_t mu__host_list_find(const struct mu__host_list *list, const char *name,
                          size_t length);

/* Whether two names are of the same host, as far as names show it: "n1" and
 * "n1.cluster" are; addresses are compared as a whole. */
bool mu__host_same(const char *a, const char *b);

/* Whether one of the list is the same host. */
bool mu__host_list_has(const struct mu__host_list *list, const char *name);

#endif
