/* The options of a node as a table, for front-ends. */
#ifndef MUSTER_NODE_OPTIONS_H
#define MUSTER_NODE_OPTIONS_H

#include "node.h"

/* Every field of mu_node_options that has an environment variable and a flag; the only
 * such list. The library's defaults and checks, the environment (MUSTER_ and the name),
 * the flags of `muster` (the field's name with "-" for "_") and Python's keyword
 * arguments are made from it.
 *
 *     NUMBER(name, field, default, least, most)            0 to 1: a truth value
 *     COMPUTED(name, field, default, words, least, most)   the default is outside of the
 *                                                          range, and means `words`
 *     TEXT(name, field, default) */
#define MU_NODE_OPTIONS(NUMBER, COMPUTED, TEXT)                                          \
    TEXT(CLUSTER_NAME, cluster_name, "muster")                                           \
    NUMBER(RESOLVE_MS, resolve_ms, 300000, 0, 86400000)                                  \
    NUMBER(THREADS, threads, 1, 1, 1024)                                                 \
    NUMBER(WINDOW, window, 0, 0, 65536)                                                  \
    COMPUTED(SPIN_US, spin_us, MU_SPIN_BY_CORES, "100 with two cores or more", 0, 10000) \
    NUMBER(QUEUE_MAX, queue_max, 262144, 1, 268435456)                                   \
    NUMBER(QUEUE_BYTES_MAX, queue_bytes_max, 1073741824, 1, 1125899906842624)            \
    NUMBER(ATTEMPTS_MAX, attempts_max, 10, 1, 65534)                                     \
    NUMBER(RETRIES_MAX, retries_max, 1000, 1, 1073741824)                                \
    NUMBER(RECOVERY_MS, recovery_ms, 3600000, 0, 2000000000)                             \
    NUMBER(START_DELAY_MS, start_delay_ms, 0, 0, 86400000)                               \
    NUMBER(START_DELAY_MAX_MS, start_delay_max_ms, 0, 0, 86400000)                       \
    NUMBER(SERVER_FAILURES, server_failures, 3, 0, 65535)                                \
    NUMBER(SERVER_FAILURES_MS, server_failures_ms, 600000, 1, 86400000)                  \
    NUMBER(SERVER_LOST_MS, server_lost_ms, 10000, 0, 86400000)                           \
    NUMBER(BACKUPS, backups, 1, 0, 1)                                                    \
    NUMBER(STRICT, strict, 0, 0, 1)                                                      \
    NUMBER(EFFECT_WAIT_MS, effect_wait_ms, 60000, 1, 86400000)                           \
    COMPUTED(TIMEOUTS, timeouts, MU_TIMEOUTS_OF_WORKERS, "a tenth of the workers", 0,    \
             268435456)                                                                  \
    NUMBER(UNKNOWN_IS_WORKER, unknown_is_worker, 0, 0, 1)                                \
    NUMBER(BACKUP_PERCENT, backup_percent, 0, 0, 1000000)                                \
    NUMBER(WATCHDOG_MS, watchdog_ms, 60000, 0, 86400000)                                 \
    NUMBER(MEASURE, measure, 0, 0, 1)                                                    \
    TEXT(JOURNAL, journal, NULL)                                                         \
    NUMBER(JOURNAL_SYNC, journal_sync, 0, 0, 1)                                          \
    TEXT(PS_JOURNAL, ps_journal, NULL)                                                   \
    NUMBER(JOURNAL_KEEP, journal_keep, 0, 0, 4294967295)                                 \
    NUMBER(JOURNAL_KEEP_MS, journal_keep_ms, 0, 0, 2592000000)                           \
    NUMBER(ORPHAN_MS, orphan_ms, 600000, 0, 86400000)                                    \
    NUMBER(HEARTBEAT_MS, heartbeat_ms, 1000, 10, 3600000)                                \
    NUMBER(SILENCE_MS, silence_ms, 5000, 20, 7200000)                                    \
    TEXT(SERVICE_HOSTS, service_hosts, NULL)                                             \
    TEXT(STORE, store, "memory")                                                         \
    NUMBER(STORE_SYNC, store_sync, 1, 0, 1)                                              \
    TEXT(RUN, run, NULL)                                                                 \
    TEXT(COORDINATED_JOBS, coordinated_jobs, "chief,worker,ps")                          \
    TEXT(RECOVERABLE, recoverable, "all")                                                \
    NUMBER(SUSPECT_MS, suspect_ms, 5000, 10, 3600000)                                    \
    NUMBER(DEAD_MS, dead_ms, 10000, 20, 86400000)                                        \
    NUMBER(RECONNECT_MS, reconnect_ms, 1000, 0, 86400000)                                \
    NUMBER(STUCK_MS, stuck_ms, 0, 0, 86400000)                                           \
    NUMBER(LEAVE_MS, leave_ms, 0, 0, 86400000)                                           \
    NUMBER(LEASE_MS, lease_ms, 5000, 100, 3600000)                                       \
    NUMBER(PLUGIN_TIMEOUT_MS, plugin_timeout_ms, 300000, 0, 86400000)                    \
    TEXT(WORKER_TYPES, worker_types, "worker")                                           \
    TEXT(KEY_FILE, key_file, NULL)                                                       \
    TEXT(TLS_CA, tls_ca, NULL)                                                           \
    TEXT(TLS_CERTIFICATE, tls_certificate, NULL)                                         \
    TEXT(TLS_PRIVATE_KEY, tls_private_key, NULL)                                         \
    NUMBER(TLS_ANY_TASK, tls_any_task, 0, 0, 1)                                          \
    NUMBER(INSECURE, insecure, 0, 0, 1)                                                  \
    TEXT(WIRE, wire, NULL)

#endif
