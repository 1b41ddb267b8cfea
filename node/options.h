/* The options of a node, from one table: field, default, range, and the names by which
 * the environment knows them. mu_node_options_init, the checks of mu_node_open, the
 * environment and the flags of the program all come from it. */
#ifndef MU_NODE_OPTIONS_H
#define MU_NODE_OPTIONS_H

#include "muster/node.h"

#include <stdbool.h>

enum mu__option_number {
    MU__OPTION_CLUSTER_NAME,
    MU__OPTION_RESOLVE_MS,
    MU__OPTION_THREADS,
    MU__OPTION_WINDOW,
    MU__OPTION_SPIN_US,
    MU__OPTION_QUEUE_MAX,
    MU__OPTION_QUEUE_BYTES_MAX,
    MU__OPTION_ATTEMPTS_MAX,
    MU__OPTION_RETRIES_MAX,
    MU__OPTION_RECOVERY_MS,
    MU__OPTION_START_DELAY_MS,
    MU__OPTION_START_DELAY_MAX_MS,
    MU__OPTION_SERVER_FAILURES,
    MU__OPTION_SERVER_FAILURES_MS,
    MU__OPTION_SERVER_LOST_MS,
    MU__OPTION_EFFECT_WAIT_MS,
    MU__OPTION_TIMEOUTS,
    MU__OPTION_UNKNOWN_IS_WORKER,
    MU__OPTION_BACKUP_PERCENT,
    MU__OPTION_WATCHDOG_MS,
    MU__OPTION_MEASURE,
    MU__OPTION_JOURNAL,
    MU__OPTION_JOURNAL_SYNC,
    MU__OPTION_JOURNAL_KEEP,
    MU__OPTION_JOURNAL_KEEP_MS,
    MU__OPTION_ORPHAN_MS,
    MU__OPTION_HEARTBEAT_MS,
    MU__OPTION_SILENCE_MS,
    MU__OPTION_SERVICE_HOSTS,
    MU__OPTION_STORE,
    MU__OPTION_STORE_SYNC,
    MU__OPTION_RUN,
    MU__OPTION_COORDINATED_JOBS,
    MU__OPTION_RECOVERABLE,
    MU__OPTION_SUSPECT_MS,
    MU__OPTION_DEAD_MS,
    MU__OPTION_RECONNECT_MS,
    MU__OPTION_STUCK_MS,
    MU__OPTION_LEAVE_MS,
    MU__OPTION_LEASE_MS,
    MU__OPTION_PLUGIN_TIMEOUT_MS,
    MU__OPTION_WORKER_TYPES,
    MU__OPTION_KEY_FILE,
    MU__OPTION_TLS_CA,
    MU__OPTION_TLS_CERTIFICATE,
    MU__OPTION_TLS_PRIVATE_KEY,
    MU__OPTION_TLS_ANY_TASK,
    MU__OPTION_INSECURE,
    MU__OPTION_WIRE,
    MU__OPTION_RESTART_EXIT_CODE,
    MU__OPTIONS_COUNT
};

enum mu__option_kind {
    MU__OPTION_UNSIGNED,
    MU__OPTION_U64,
    MU__OPTION_TEXT,
    MU__OPTION_NO_FIELD     /* a number that is no option of the node */
};

/* How a number under TensorFlow's name is meant. */
enum mu__option_meaning {
    MU__OPTION_SAME,
    MU__OPTION_OFF_BELOW_0, /* below 0 is 0 */
    MU__OPTION_TRUTH        /* above 0 is 1, and the rest 0 */
};

struct mu__option {
    const char *name;           /* of the field in mu_node_options */
    const char *variable;       /* "MUSTER_..." */
    const char *tensorflow;     /* the older name; NULL: none */
    enum mu__option_kind kind;
    size_t offset;              /* of the field */
    uint64_t initial;
    const char *initial_words;  /* how the default is shown where its number says little;
                                   of a text, the default itself */
    uint64_t low;               /* the default is fine beside these two */
    uint64_t high;
    enum mu__option_meaning meaning;
    unsigned unit;              /* of TensorFlow's number in ours, 1000 for seconds */
};

extern const struct mu__option mu__options[MU__OPTIONS_COUNT];

/* An option's value as the environment or a flag gives it. */
struct mu__option_value {
    const char *origin;     /* the variable or flag */
    const char *text;       /* as it was given, borrowed; NULL: it was not given */
    uint64_t number;
};

/* What the environment says; an empty variable counts as absent. -MU_EINVALID with the
 * variable, its text and what was expected. */
int mu__option_environment(const struct mu__option *option, mu_error *ret_error,
                           struct mu__option_value *ret_value);

/* Read a text that was given under `origin`, with our meaning and unit. */
int mu__option_read(const struct mu__option *option, const char *origin, const char *text,
                    mu_error *ret_error, struct mu__option_value *ret_value);

void mu__option_store(const struct mu__option *option,
                      const struct mu__option_value *value, mu_node_options *options);

/* Take a resolver's name of the cluster where none was chosen: where the option is at its
 * default. Keeps the pointer. "" changes nothing. */
void mu__options_name_cluster(mu_node_options *options, const char *name);

/* Every number in its range; -MU_EINVALID names the option that is not. */
int mu__options_check(const mu_node_options *options, mu_error *ret_error);

#endif
