/* Sessions: who initializes the parameters, and who waits until that is done.
 *
 * The chief's session restores a checkpoint or initializes, and says so by a key of the
 * coordination service, which goes with the chief's process. A worker's session waits for
 * that. A chief that is restarted does it again, and meanwhile new workers wait for it;
 * sessions that are open stay so. When the service loses its store while a worker waits,
 * the worker's agent is reset, and waits on. Any thread, but no loop's.
 *
 * NULL for what is needed: -MU_EINVALID, or NULL or 0 from what returns no code
 * (error.h). */
#ifndef MUSTER_COMPAT_SESSION_H
#define MUSTER_COMPAT_SESSION_H

#include "../node.h"
#include "server.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct mu_session mu_session;

/* What the program gives to a session. All may be NULL. They return 0 or a negative code,
 * with words in ret_error, and run on the thread that opens the session. */
typedef struct mu_scaffold {
    int (*init)(mu_node *node, void *user, mu_error *ret_error);
    int (*restore)(mu_node *node, const char *path, void *user,
                   mu_error *ret_error);    /* NULL: mu_checkpoint_restore of all */
    int (*ready)(mu_node *node, void *user,
                 mu_error *ret_error);      /* 0, or why the parameters are not ready */
    int (*local_init)(mu_node *node, void *user,
                      mu_error *ret_error); /* on each task, once all is ready */
    void *user;
} mu_scaffold;

typedef struct mu_session_options {
    mu_scaffold scaffold;
    const char *name;           /* of the key; sessions of one name belong together: 1 to
                                   200 bytes, default "session" */
    const char *checkpoint_dir; /* the newest checkpoint there is restored, if there is
                                   one; */
    const char *checkpoint_name;    /* of that name, default "model" */
    const char *checkpoint_file;    /* or this one, which must be there. Not both */
    mu_session_config config;   /* what the strategy wants: see mu_session_get_config */
    int64_t timeout_ms;           /* to wait for all that must be; default 7200000 */
    unsigned recovery_wait_ms;  /* between two questions of `ready`, and two lines in the
                                   log; default 30000 */
} mu_session_options;

MU_EXPORT void mu_session_options_init(mu_session_options *options);

/* The chief's: restore or initialize, local_init, then `ready` must say 0
 * (-MU_EPRECONDITION with its words), then tell the workers, if there is a coordination
 * service. -MU_EINVALID: both a directory and a file. A directory in which all
 * checkpoints are damaged gives -MU_EDATALOSS: nothing is initialized over them. */
MU_EXPORT int mu_session_open_chief(mu_node *node, const mu_session_options *options,
                                    mu_error *ret_error, mu_session **ret_session);

/* A worker's: waits for the chief's, runs local_init, and waits until `ready` says 0.
 * -MU_EDEADLINE says what it waits for, how long it did, and when the chief was heard
 * last. */
MU_EXPORT int mu_session_open_worker(mu_node *node, const mu_session_options *options,
                                     mu_error *ret_error, mu_session **ret_session);

/* The one that fits the node's task: the chief's (mu_cluster_is_chief), or a worker's. */
MU_EXPORT int mu_session_open(mu_node *node, const mu_session_options *options,
                              mu_error *ret_error, mu_session **ret_session);

MU_EXPORT mu_node *mu_session_node(mu_session *session);

/* The checkpoint that the chief restored, "" when it initialized. Valid until close. */
MU_EXPORT const char *mu_session_restored(const mu_session *session);

MU_EXPORT int mu_session_is_chief(const mu_session *session);
MU_EXPORT const mu_session_config *mu_session_get_config(const mu_session *session);

/* Before the node is closed. The chief's takes its key away: workers that come later wait
 * for the next one. NULL is fine. */
MU_EXPORT void mu_session_close(mu_session *session);

#ifdef __cplusplus
}
#endif

#endif
