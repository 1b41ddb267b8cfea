/* The tasks that a cluster is to have, where tasks make themselves known one by one:
 * "chief=1,worker=3,ps=2". */
#ifndef MU_RESOLVER_SHAPE_H
#define MU_RESOLVER_SHAPE_H

#include "resolver/kind.h"

/* Read the text of a setting, `source`; NULL: no shape, with no rows. No job may have
 * "*". */
int mu__shape_parse(const char *text, const char *source, mu_error *ret_error,
                    struct mu__jobs *ret_shape);

/* How many tasks of a type there are to be; 0 when the shape does not say. */
unsigned mu__shape_count(const struct mu__jobs *shape, const char *type);

/* Is everybody there? -MU_EUNAVAILABLE naming those who are not ("directory /x: 2 of 4
 * tasks are not there yet: ..."); without a shape when nobody is. More than the shape
 * says is fine: tasks may join. NULL stands for an empty cluster. */
int mu__shape_check(const struct mu__jobs *shape, const char *source,
                    const mu_cluster *cluster, mu_error *ret_error);

#endif
