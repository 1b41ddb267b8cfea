/* The parsed settings of the resolver dns. */
#ifndef MU_RESOLVER_DNS_PLAN_H
#define MU_RESOLVER_DNS_PLAN_H

#include "resolver/engine/dns_records.h"
#include "resolver/engine/kind.h"
#include "resolver/spec/cluster.h"

#include <limits.h>

enum {
    MU__DNS_ROWS_MAX = 64,
    MU__DNS_TYPES_MAX = MU__DNS_ROWS_MAX + 1 /* those of the rows, and this task's */
};

/* One name that is looked up, and the job that its records are. A job may have several
 * names. */
struct mu__dns_row {
    int type; /* its number among the plan's types */
    char type_name[MU__TASK_TYPE_BYTES];
    char name[MU__DNS_NAME_BYTES];
    unsigned port; /* 0: taken from SRV records */
};

/* The addresses that count; AUTO: IPv4, or IPv6 where there is no IPv4. */
enum mu__dns_family { MU__DNS_AUTO, MU__DNS_ONLY_4, MU__DNS_ONLY_6, MU__DNS_ALL };

#define MU__DNS_ANY UINT_MAX /* number of tasks: not given */

/* Texts are valid as long as requests and settings. */
struct mu__dns_plan {
    struct mu__dns_row rows[MU__DNS_ROWS_MAX];
    unsigned rows_count;
    char types[MU__DNS_TYPES_MAX][MU__TASK_TYPE_BYTES];
    int types_count;
    unsigned tasks[MU__DNS_TYPES_MAX]; /* by type: how many are expected */
    enum mu__dns_family family;
    bool as_name;
    bool as_address;    /* neither: the default for the kind of record */
    const char *server; /* NULL: the system's */
    const char *host;   /* NULL: this machine's name */
    long port;          /* 0: not given */
    int task_type;      /* -1: not given */
    long task_index;    /* -1: not given */
};

extern const struct mu__setting_spec mu__dns_settings[];

/* Whether the setting with the names is set. */
bool mu__dns_plan_given(const struct mu__pass *pass);

/* Parse the settings. `plan` is all zeros before, and partly filled after a failure. */
int mu__dns_plan_read(const struct mu__pass *pass, mu_error *ret_error,
                      struct mu__dns_plan *plan);

#endif
