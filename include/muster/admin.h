/* For those who run clusters: the keys by which nodes authenticate each other, checks
 * of a cluster, journals, and the runs of a job in a store. What `muster key`, `muster
 * check`, `muster journal` and `muster store` do.
 *
 * Any thread; calls that take a node wait, not on a loop's thread. NULL for a required
 * argument gives -MU_EINVALID. */
#ifndef MUSTER_ADMIN_H
#define MUSTER_ADMIN_H

#include "node.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Keys ----
 *
 * Files of option key_file. Whoever has the cluster's key may do everything; a key
 * that is derived from it proves one right: "observe", "use", "operate" or "task", each
 * with those before it. Calls that read a file give -MU_EPERMISSION when other users may
 * read it; those that make one -MU_EEXISTS when it is there already. */

enum { MU_KEY_PATH_BYTES = 512 };

typedef struct mu_key_info {
    char right[16];       /* "cluster": of the cluster key; or a derived one */
    char fingerprint[24]; /* of the cluster's key, also of keys derived from it */
    char text[128];       /* of a key that was derived and is in no file: the line that
                             such a file has; else "" */
} mu_key_info;

/* Where the key of this process's user is. -MU_EUNAVAILABLE: neither XDG_CONFIG_HOME nor
 * a home is known. ret_path has MU_KEY_PATH_BYTES. */
MU_EXPORT int mu_key_path(mu_error *ret_error, char *ret_path);

/* Make a new cluster's key in a new file. */
MU_EXPORT int mu_key_new(const char *path, mu_error *ret_error, mu_key_info *ret_info);

/* What a key file holds. -MU_EINVALID: it is none. */
MU_EXPORT int mu_key_read(const char *path, mu_error *ret_error, mu_key_info *ret_info);

/* Derive the key of a right from the key in a file, into a new file; NULL: into
 * ret_info->text. -MU_ERANGE: no such right; -MU_EPERMISSION: the key is derived itself,
 * of another right. */
MU_EXPORT int mu_key_derive(const char *path, const char *right, const char *new_path,
                            mu_error *ret_error, mu_key_info *ret_info);

/* ---- Checking a cluster ----
 *
 * A list of problems has maps: grade ("error": a node refuses it; "warning": probably not
 * what was meant; "note": what follows from it), and text. */

/* Read JSON, a cluster spec or a TF_CONFIG, as far as it can be read, and list what is
 * wrong with the text. *ret_cluster is NULL when nothing could be read; the caller frees
 * both. */
MU_EXPORT int mu_cluster_read(const char *json, size_t size, const char *source,
                              mu_error *ret_error, mu_cluster **ret_cluster,
                              mu_value **ret_problems);

/* Check options->cluster (NULL: an empty one), and options->task_type and task_index as a
 * task of it (NULL: unknown); then, as a client, whether its tasks answer, each within
 * `timeout_ms`, and whether they reach each other. The report is a map: problems; tasks,
 * in the order of the cluster: a list of maps: task, address, does, resolves_to, state
 * ("answers", "wrong", "away", "not tried"), why, took_ms, and if its name has several
 * addresses at and not_at; and peers: a list of what the tasks report: maps: type, index,
 * and peers: a list of maps: type, index, address, state ("up"), why, for_ms, dialled.
 * The caller frees it. -MU_EINVALID: the options. */
MU_EXPORT int mu_cluster_check(const mu_node_options *options, int64_t timeout_ms,
                               mu_error *ret_error, mu_value **ret_report);

/* ---- Supervisors ----
 *
 * Whoever starts tasks, as `muster run` does, may give each one end of a socket pair: the
 * variable has its descriptor and the supervisor's pid, "3:4711". A node writes lines
 * that begin with one of these letters. Each line that it reads says that another task
 * has ended and is not started again: "worker:1 was killed by signal 9 (Killed)". */
#define MU_SUPERVISION_VARIABLE "MUSTER_PARENT_FD"

enum mu_supervision_event {
    MU_SUPERVISION_LOADING = 'L',   /* the plugin that is being loaded; "": none any
                                       more */
    MU_SUPERVISION_REASON = 'R',    /* why the process ends with an error */
    MU_SUPERVISION_JOB_FAILED = 'J' /* it does because the job has failed, elsewhere */
};

enum { MU_SUPERVISION_LINE_BYTES = 256 }; /* longer lines are cut */

/* ---- Journals ----
 *
 * Files of options journal and store. A report is a map: file, format, bytes, records
 * (undamaged ones), kinds (a map from kind to number of records), damaged (a list of
 * maps: record, offset, bytes, records_lost, what), torn_bytes (at the end, never
 * flushed), headless (the header is damaged), and after a repair copy (the path of a copy
 * of the damaged file). The caller frees *ret_report. */

/* Read a journal, which a node may have open. */
MU_EXPORT int mu_journal_check(const char *path, mu_error *ret_error,
                               mu_value **ret_report);

/* If it is damaged, keep a copy and replace it by its undamaged records. -MU_EEXISTS: a
 * node has it open. */
MU_EXPORT int mu_journal_repair(const char *path, mu_error *ret_error,
                                mu_value **ret_report);

/* ---- Runs in a store ---- */

/* Start a node that looks at a store from outside: option `store`, of which no host is
 * running. It hosts the coordination service for the calls below, begins no run, and
 * accepts no other task. `cluster`, `resolver`, the task and service_hosts are not used.
 * Errors as of mu_node_open; mu_agent_register says whether the store can be read. */
MU_EXPORT int mu_node_open_store(const mu_node_options *options, mu_error *ret_error,
                                 mu_node **ret_node);

/* The runs in the store of the coordination service: a map with runs (a list of maps:
 * name, present, state, message, started_ms, ended_ms, and of the present one barriers,
 * preempted, results, bytes), keys and bytes of programs, and store. The caller frees
 * *ret_runs. */
MU_EXPORT int mu_runs_list(mu_node *node, int64_t timeout_ms, mu_error *ret_error,
                           mu_value **ret_runs);

enum mu_runs_clear_flag {
    MU_RUNS_CLEAR_ENDED = 1,   /* all runs that have ended */
    MU_RUNS_CLEAR_PRESENT = 2, /* what the present run has: barriers, results */
    MU_RUNS_CLEAR_KEYS = 4     /* the keys of programs */
};

/* Delete from the store what `flags` says, and the run `name` (NULL: no run by name).
 * *ret_count (may be NULL) is the number of deleted entries. */
MU_EXPORT int mu_runs_clear(mu_node *node, const char *name, unsigned flags,
                            int64_t timeout_ms, mu_error *ret_error, uint64_t *ret_count);

#ifdef __cplusplus
}
#endif

#endif
