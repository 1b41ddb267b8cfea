/* Sessions: the chief's session initializes the parameters, workers' sessions wait for
 * that.
 *
 * The chief's session restores a checkpoint or initializes, then puts a key into the
 * coordination service, as a lease that ends with the chief's process. A worker's session
 * waits for this key. A restarted chief repeats that, and workers that open a session
 * meanwhile wait; open sessions stay open. When the service loses its store while a
 * worker waits, the worker's agent is reset and the wait continues. Any thread except a
 * loop's.
 *
 * NULL for a required argument gives -MU_EINVALID; functions that return no code return
 * NULL or 0 (error.h). */
#ifndef MUSTER_COMPAT_SESSION_H
#define MUSTER_COMPAT_SESSION_H

#include "../node.h"
#include "server.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct mu_session mu_session;

typedef struct mu_session_options {
    size_t size; /* set by mu_session_options_init */

    /* The program's functions for a session. Each may be NULL. They return 0, or a
     * negative code with ret_error set, and run on the thread that opens the session. */
    int (*init)(mu_node *node, void *user, mu_error *ret_error);
    int (*restore)(mu_node *node, const char *path, void *user,
                   mu_error *ret_error); /* NULL: mu_checkpoint_restore of all */
    int (*ready)(mu_node *node, void *user,
                 mu_error *ret_error); /* 0, or why the parameters are not ready */
    int (*local_init)(mu_node *node, void *user,
                      mu_error *ret_error); /* on each task, after the parameters are
                                               initialized or restored */
    void *user;

    const char *name;            /* part of the key; chief and workers use the same: 1 to
                                    200 bytes, default "session" */
    const char *checkpoint_dir;  /* directory whose newest checkpoint, if any, is
                                    restored */
    const char *checkpoint_name; /* its name; default "model" */
    const char *checkpoint_file; /* a checkpoint that must exist; not together with
                                    checkpoint_dir */
    const mu_session_config *config; /* of the strategy, as mu_session_get_config
                                        returns it; default NULL: none */
    unsigned recovery_wait_ms; /* between two calls of `ready`, and two lines in the log;
                                  default 30000 */
    int64_t timeout_ms;        /* of opening the session; default 7200000 */
} mu_session_options;

/* Fill in the defaults. */
MU_EXPORT void mu_session_options_init_sized(mu_session_options *options, size_t size);
#define mu_session_options_init(options) \
    mu_session_options_init_sized(options, sizeof(mu_session_options))

/* Open the chief's session: restore or initialize, call local_init, check that `ready`
 * returns 0 (else -MU_EPRECONDITION with its message), then put the key for the workers,
 * if there is a coordination service. -MU_EINVALID: both a directory and a file.
 * -MU_EDATALOSS: all checkpoints in the directory are damaged; then nothing is
 * initialized. */
MU_EXPORT int mu_session_open_chief(mu_node *node, const mu_session_options *options,
                                    mu_error *ret_error, mu_session **ret_session);

/* Open a worker's session: wait for the chief's, call local_init, and wait until `ready`
 * returns 0. -MU_EDEADLINE says what it waited for, how long, and when the chief last
 * sent anything. */
MU_EXPORT int mu_session_open_worker(mu_node *node, const mu_session_options *options,
                                     mu_error *ret_error, mu_session **ret_session);

/* Open the session that fits the node's task: the chief's (mu_cluster_is_chief), or a
 * worker's. */
MU_EXPORT int mu_session_open(mu_node *node, const mu_session_options *options,
                              mu_error *ret_error, mu_session **ret_session);

/* The session's node, owned by the caller of mu_session_open. */
MU_EXPORT mu_node *mu_session_node(mu_session *session);

/* Path of the checkpoint that the chief restored, "" when it initialized. Valid until
 * close. */
MU_EXPORT const char *mu_session_restored(const mu_session *session);

/* 1 for a chief's session; the configuration that it was opened with. */
MU_EXPORT int mu_session_is_chief(const mu_session *session);
MU_EXPORT const mu_session_config *mu_session_get_config(const mu_session *session);

/* Close and free a session, before its node is closed. The chief's session deletes its
 * key: later workers wait for the next chief's session. NULL is fine. */
MU_EXPORT void mu_session_close(mu_session *session);

#ifdef __cplusplus
}
#endif

#endif
