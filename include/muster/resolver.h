/* Resolvers: who is in the cluster, and which task is this process?
 *
 * A resolver asks one source: TF_CONFIG, a file, Slurm's variables, the Kubernetes API,
 * DNS, etcd and so on; docs/resolvers.md has all of them with their settings. Without a
 * name the first one that recognises where the process runs is taken. Everything is asked
 * anew at every call, since clusters change.
 *
 * A resolver is used by one thread at a time. Calls block, for `timeout_ms` at most
 * (negative: no limit); on a thread that runs a node's loop (in a callback, or in an
 * inline function) they return -MU_EPRECONDITION. While there is time,
 * what fails for now (a server that does not answer, a pod that does not run yet, a task
 * that is not there yet) is tried again, with growing pauses; 0 tries once, without
 * waiting for others.
 *
 * NULL for what is needed: -MU_EINVALID, or NULL or 0 from what returns no code
 * (error.h). */
#ifndef MUSTER_RESOLVER_H
#define MUSTER_RESOLVER_H

#include "cluster.h"
#include "value.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct mu_resolver mu_resolver;
struct mu_node;

enum { MU_ACCELERATOR_KINDS_MAX = 8 };

/* So many accelerators of one kind. */
typedef struct mu_accelerator {
    char kind[16];
    int count;
} mu_accelerator;

/* Everything that one evaluation finds out. */
typedef struct mu_resolution {
    mu_cluster *cluster;        /* NULL: there is none: the process is alone. The caller
                                   of the resolver frees it */
    char task_type[16];         /* "": unknown */
    int task_index;             /* -1: unknown */
    char rpc_layer[16];         /* "grpc"; "": none */
    char environment[16];       /* "" or "google" */
    char master[320];           /* what the source itself says is to be connected to, as
                                   it stands; "": see mu_resolver_master */
    int master_fixed;           /* 1: it is the answer whatever task is asked for; 2: when
                                   none is; both without an rpc layer before it */
    int alone_has_no_master;    /* 1: a cluster of one task has none */
    char bind_address[288];     /* where this task should listen; "": at its address */
    char visible_devices[512];  /* for CUDA_VISIBLE_DEVICES of this process: "0,1"; "":
                                   leave it as it is */
    int partition;              /* of the devices of this process: the number that those
                                   have in common which reach each other fast; -1: the
                                   source does not say */
    char accelerator[16];       /* "GPU", "TPU"; "": the source does not say */
    int accelerators;           /* of each task; -1: the source does not say */
    char source[32];            /* the resolver that it is from */
    int accelerators_set_count; /* kinds that mu_resolver_set_accelerators has set; the
                                   first of them is `accelerator` too */
    mu_accelerator accelerators_set[MU_ACCELERATOR_KINDS_MAX];
    char cluster_name[64]; /* of nodes whose options leave theirs at the default; "":
                              the source does not say */
} mu_resolution;

/* Nothing is known. */
MU_EXPORT void mu_resolution_init(mu_resolution *resolution);

/* Read JSON: a cluster spec, or all that TF_CONFIG may have, over an initialised
 * *ret_resolution. `source` names the origin of the text, for error messages; codes are
 * those of mu_cluster_parse and mu_tf_config_parse. The caller frees
 * ret_resolution->cluster. */
MU_EXPORT int mu_resolution_parse(const char *json, size_t size, const char *source,
                                  mu_error *ret_error, mu_resolution *ret_resolution);

/* Where a task is, for the others. */
typedef struct mu_announcement {
    const char *cluster_name;
    const char *type;
    int index;               /* -1: any that is free, where the resolver can choose */
    const char *address;     /* "host:port" */
    const char *incarnation; /* a text that no other process has: who announces */
} mu_announcement;

/* Make a resolver by its name, "slurm"; NULL or "auto": the first one that fits. On
 * success the caller frees *ret_resolver. -MU_ENOTFOUND: no such resolver, with the one
 * that was probably meant; -MU_ENOMEM. */
MU_EXPORT int mu_resolver_new(const char *name, mu_error *ret_error,
                              mu_resolver **ret_resolver);

/* One with a fixed answer. `cluster` is copied, and may be NULL; `task_type` NULL and
 * `task_index` -1 stand for unknown; `master` may be NULL. */
MU_EXPORT int mu_resolver_new_static(const mu_cluster *cluster, const char *master,
                                     const char *task_type, int task_index,
                                     mu_error *ret_error, mu_resolver **ret_resolver);

/* One of several. Takes its members, when it succeeds. A job that has no gaps in any of
 * them (its indices are 0, 1, 2..., however it was written) is concatenated, in their
 * order; one with gaps in a member is merged by index, and the same index twice is an
 * error (-MU_EEXISTS). Task, rpc layer and environment are
 * those of the first member, the master is the first that a member has.
 * -MU_EINVALID without members. */
MU_EXPORT int mu_resolver_new_union(mu_resolver *const *members, size_t count,
                                    mu_error *ret_error, mu_resolver **ret_resolver);

/* NULL is fine. */
MU_EXPORT void mu_resolver_free(mu_resolver *resolver);

/* Set what docs/resolvers.md calls a setting: ("port", "8888"). NULL takes it back. For
 * an auto-detecting one "NAME.SETTING". -MU_EINVALID: no such setting, or not such a
 * value. */
MU_EXPORT int mu_resolver_set(mu_resolver *resolver, const char *setting,
                              const char *value, mu_error *ret_error);

/* What stands whatever the source says. NULL (index: -1) takes it back; index 0 is an
 * index. A type must be a task type, -MU_EINVALID; of a resolver whose type is a setting
 * of its own (gce), -MU_EPRECONDITION. */
MU_EXPORT int mu_resolver_set_task_type(mu_resolver *resolver, const char *type,
                                        mu_error *ret_error);
MU_EXPORT int mu_resolver_set_task_index(mu_resolver *resolver, int index,
                                         mu_error *ret_error);
MU_EXPORT int mu_resolver_set_rpc_layer(mu_resolver *resolver, const char *rpc_layer,
                                        mu_error *ret_error);
MU_EXPORT int mu_resolver_set_environment(mu_resolver *resolver, const char *environment,
                                          mu_error *ret_error);

/* `count` of `kind` ("GPU") for each task. Several kinds stand side by side, at most
 * MU_ACCELERATOR_KINDS_MAX (-MU_EEXHAUSTED); the same kind again has the new count. kind
 * NULL takes all of them back. */
MU_EXPORT int mu_resolver_set_accelerators(mu_resolver *resolver, const char *kind,
                                           int count, mu_error *ret_error);

/* Called with a line for people when something is tried again: what, and why the last try
 * failed. On the thread of the call. NULL: nothing is said, the default. */
typedef void (*mu_resolver_progress_fn)(void *user, const char *line);
MU_EXPORT void mu_resolver_on_progress(mu_resolver *resolver,
                                       mu_resolver_progress_fn progress, void *user);

/* Evaluate: everything at once. The caller frees ret_resolution->cluster. -MU_ENOTFOUND:
 * no source recognises this place. Other errors name the source and the place. */
MU_EXPORT int mu_resolver_resolve(mu_resolver *resolver, int64_t timeout_ms,
                                  mu_error *ret_error, mu_resolution *ret_resolution);

/* The cluster alone; NULL when there is none. The caller frees it. */
MU_EXPORT int mu_resolver_cluster(mu_resolver *resolver, int64_t timeout_ms,
                                  mu_error *ret_error, mu_cluster **ret_cluster);

enum { MU_MASTER_BYTES = 320 };

/* What a session connects to: that of the given task ("grpc://host:port"); else (type
 * NULL, index -1) the source's own, else that of this task; "" when nothing applies.
 * `rpc_layer` NULL: the source's; "": none. -MU_ENOTFOUND: no such task in the cluster.
 * ret_master has MU_MASTER_BYTES. */
MU_EXPORT int mu_resolver_master(mu_resolver *resolver, const char *type, int index,
                                 const char *rpc_layer, int64_t timeout_ms,
                                 mu_error *ret_error, char *ret_master);

/* The same from what was resolved before. */
MU_EXPORT int mu_resolution_master(const mu_resolution *resolution, const char *type,
                                   int index, const char *rpc_layer, mu_error *ret_error,
                                   char *ret_master);

/* The accelerators of a task (type NULL, index -1: of this one; an index of -1 beside a
 * type: of each task of that type) as a map from kind to count. With a node they are
 * counted in the device lists that the tasks themselves have told (mu_tasks_devices),
 * once all are connected: tried again while there is time; tasks with unequal counts are
 * -MU_EPRECONDITION, naming two of them. Without a node, what the source says. The caller
 * frees *ret_counts. */
MU_EXPORT int mu_resolver_accelerators(mu_resolver *resolver, struct mu_node *node,
                                       const char *type, int index, int64_t timeout_ms,
                                       mu_error *ret_error, mu_value **ret_counts);

/* For programs that resolve again and again, as a node does by itself: notices when that
 * may be worth it. Uses the resolver until it is closed; the same thread. */
typedef struct mu_resolver_watch mu_resolver_watch;

/* -MU_ENOMEM. On success the caller closes *ret_watch. */
MU_EXPORT int mu_resolver_watch_open(mu_resolver *resolver, mu_error *ret_error,
                                     mu_resolver_watch **ret_watch);

/* Wait until the interval of the source (or 5 s) has passed, or earlier for a change of a
 * file or folder that the last evaluation read. */
MU_EXPORT int mu_resolver_watch_wait(mu_resolver_watch *watch, mu_error *ret_error);

/* NULL is fine. */
MU_EXPORT void mu_resolver_watch_close(mu_resolver_watch *watch);

/* What the last evaluation tried: a list of maps: resolver, state ("taken", "not here",
 * "failed", "not asked"), why, and asked: a list of texts, what was asked with what
 * result. Nothing in it is secret. Owned by the caller; NULL when out of memory. */
MU_EXPORT mu_value *mu_resolver_explain(const mu_resolver *resolver);

/* ---- Resolvers of one's own ---- */

enum { MU_RESOLVER_ATTEMPT_TIMEOUT_MS = 10000, MU_RESOLVER_CLOSE_TIMEOUT_MS = 2000 };

/* Functions of a resolver. They block, on a thread of the library, whoever asks: never on
 * the thread of a call, nor on that of a node's loop. They are called one after the other
 * for each mu_resolver; several of these may call at the same time. `timeout_ms` is what
 * is left (negative: no limit; 0, as when a node looks again: one try, for which there
 * are MU_RESOLVER_ATTEMPT_TIMEOUT_MS). What takes longer is not waited for: the call, or
 * the look, fails with -MU_EDEADLINE and the resolver's name, what is found later is
 * dropped, and until then the resolver is not asked again (-MU_EUNAVAILABLE).
 *
 * One that takes too long cannot be ended, and so it goes on; what it uses has to stay
 * until it returns: its code, too, so that a library with such a function is not to be
 * unloaded (dlclose) meanwhile. A node that closes waits for it,
 * MU_RESOLVER_CLOSE_TIMEOUT_MS at most, and logs that it was left behind. Eight functions
 * can run at the same time in a process: more wait for them, as does one that such a
 * function asks for itself; who has waited in vain is told so. */
typedef struct mu_resolver_kind {
    const char *name;    /* letters, digits, _ and -; copied */
    const char *summary; /* copied; may be NULL */
    void *user;          /* has to stay as long as one of its functions may be called,
                            until resolvers that were made of it are freed */

    /* 1: this is the place; 0: it is not, with the reason in ret_why. NULL: only by
     * name. */
    int (*detect)(void *user, mu_error *ret_why);

    /* As of mu_resolver_resolve, over an initialised *ret_resolution. -MU_EUNAVAILABLE:
     * not now, it is called again while there is time. */
    int (*resolve)(void *user, int64_t timeout_ms, mu_error *ret_error,
                   mu_resolution *ret_resolution);
} mu_resolver_kind;

/* Make a resolver known to this process. It comes before all others in the order of
 * auto-detection, a later one before an earlier one. -MU_EEXISTS: the name is taken,
 * -MU_EINVALID: the name, or there is no `resolve`. -MU_EEXHAUSTED:
 * MU_RESOLVER_KINDS_MAX. Any thread. */
enum { MU_RESOLVER_KINDS_MAX = 32 };
MU_EXPORT int mu_resolver_register(const mu_resolver_kind *kind, mu_error *ret_error);

/* Forget it; resolvers that were made of it go on. -MU_ENOTFOUND. */
MU_EXPORT int mu_resolver_unregister(const char *name, mu_error *ret_error);

/* The i-th name in the order of auto-detection, NULL past the end. Static, or valid until
 * it is unregistered. */
MU_EXPORT const char *mu_resolver_name_at(size_t i);

/* The resolvers that muster has, in the order of auto-detection: a list of maps:
 * resolver, summary, detected (false: it is only taken by name), and settings: a list of
 * maps: setting, variable, default, help. The caller frees it; NULL when out of
 * memory. */
MU_EXPORT mu_value *mu_resolver_list(void);

#ifdef __cplusplus
}
#endif

#endif
