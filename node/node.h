/* The parts of a public node (mu_node), and what node/ and api/ do with it. */
#ifndef MU_NODE_NODE_H
#define MU_NODE_NODE_H

#include "actors/client/error_data.h"
#include "actors/client/future.h"
#include "node/closing.h"
#include "node/discovery/discover.h"
#include "node/member/member.h"
#include "node/member/offer_check.h"
#include "node/node_call.h"
#include "node/own_proof.h"
#include "node/service_host.h"
#include "runtime/uv/file_storage.h"
#include "runtime/uv/loop_world.h"
#include "transport/wire/uv/streams.h"

#include "muster/node.h"

#include <stdatomic.h>
#include <uv.h>

struct mu__setting {
    struct mu__setting *next;
    char *key;
    char *value;
};

struct mu__program {
    struct mu__program *next;
    char type[16];
    mu_program_fn program;
    void *user;
};

/* Errors that may be why the program has failed; of each kind the last one, code 0: there
 * was none. */
struct mu__reasons {
    mu_error given;     /* by mu_node_fail */
    mu_error server;    /* -MU_EUNAVAILABLE of a parameter server, of any call */
    mu_error call;      /* of a call on the program's thread */
    uv_thread_t thread; /* which it is, while the program runs */
    bool runs;
    bool by_job; /* the task has failed because the job has, elsewhere. Of the
                    thread in mu_node_main alone */
};

/* What its plugins have set, its closures' errors, and why its program has failed. */
struct mu__node_program {
    struct mu__reasons reasons;       /* this and the next: guarded by the node's lock */
    struct mu__error_data error_data; /* of its closures' errors */
    struct mu__setting *settings;
    struct mu__program *entries;
    struct mu_distribute_options *distribute; /* owned; NULL: a plugin has set none */
    unsigned plugin_timeout_ms;               /* 0: never */
};

struct mu__node_log {
    mu_log_fn write;
    void *user;
    int level;
};

struct mu__node_cluster {
    mu_cluster *now; /* guarded by `lock` where others than the loop's
                        thread read it, or it changes */
    uv_mutex_t lock;
    mu_cluster_change_fn changed; /* guarded by `lock` */
    void *user;
};

struct mu__node_limits {
    unsigned queue_max;
    uint64_t queue_bytes_max;
};

/* The journal of the chief, or of a parameter server. */
struct mu__node_journal {
    char *path; /* NULL: none */
    bool sync;
    struct mu__storage *storage; /* open as long as the member */
    uv_cond_t moved;             /* with the node's lock, which guards the rest: the
                                    opening thread waits for its end */
    bool is_read;                /* nothing more is to come of it: see `error` */
    uint64_t bytes;              /* so many were read, */
    uint64_t bytes_all;          /* of so many */
    mu_error error;              /* code 0: none */
};

struct mu__node_offer {
    struct mu__offer_own own;   /* the cluster, and who this node is in it */
    struct mu__offer_urls urls; /* where it listens, and is reached */
};

/* Changes of the cluster, where the node has a resolver. */
struct mu__node_discovery {
    struct mu__discovery *handle; /* NULL: there is no resolver */
    bool stops;
    char refused_change[512]; /* the error of a change, as it was logged last */
};

/* Settings of nodes that the library opens for itself; all may be NULL. */
struct mu__node_extra {
    const char *only; /* as in struct mu__member_config */
    const char *only_why;
    const char *dials_any;
    const char *const *dials_each;
    const char *hosts; /* of the coordination service, instead of those of the
                          option: a set of tasks that no cluster need have */
    bool takes_offer;  /* of a cluster spec that has this node's address */
    bool only_looks;   /* its service shows and clears what a store has */
};

/* Its coordinator, and how whoever opened one on it ends that with the node. */
struct mu__node_coordinator {
    struct mu_coordinator *open;
    struct mu_coordinator *unclosed; /* freed with the node */

    /* The node is being closed: an open coordinator answers every call with -MU_ECLOSED
     * from now on, and gives up what it has. That is waited for, `timeout_ms` and some
     * seconds at most, unless this is the loop's thread. NULL: there was none. */
    void (*detach)(struct mu_node *node, int64_t timeout_ms);

    /* Free the memory of the unclosed one, once no actor knows it. */
    void (*drop)(struct mu_coordinator *coordinator);
};

struct mu_node {
    struct mu__member member;
    struct mu__future_owner future_owner; /* of remote and per-worker values */
    struct mu__world_uv *world;
    struct mu__node_network network;
    uv_loop_t *loop; /* `own_loop`, or the program's */
    uv_loop_t own_loop;
    uv_thread_t thread; /* that runs the loop */
    unsigned forks;     /* mu__process_forks() of the process it is in */
    struct mu__lifecycle lifecycle;
    struct mu__node_calls calls;
    uv_mutex_t lock; /* guards the coordinator, and what says so */
    struct mu__node_coordinator coordinator;
    struct mu__node_program program;
    struct mu__node_log log;
    struct mu__node_limits limits;
    struct mu__node_cluster cluster;
    size_t ps_count;
    struct mu__node_offer offer;
    struct mu__node_journal journal;
    struct mu__service_host service_host; /* of the coordination service */
    struct mu__node_discovery discovery;
    char address[280];
    char visible_devices[512]; /* for this process, by its resolver; "": not said */
    atomic_uint refs;          /* holds of the memory, see mu__node_ref: every remote
                                  value is one, so it is apart from what is read */
};

/* mu_node_open. With `extra` the task may be one that no cluster has; by `stop` another
 * thread can end the search for the cluster. Both may be NULL. */
int mu__node_open(const mu_node_options *options, const struct mu__node_extra *extra,
                  struct mu__discover_stop *stop, mu_error *ret_error,
                  mu_node **ret_node);

/* The memory of a node outlives its closing until the last of these has let go: a thread
 * that was inside a call, its coordinator, its remote values. Any thread. */
void mu__node_ref(mu_node *node);
void mu__node_unref(mu_node *node);

/* Make this node the owner of its remote and per-worker values. */
void mu__node_init_future_owner(mu_node *node);

/* The cluster as it is now; the caller frees it. NULL: out of memory. Any thread. */
mu_cluster *mu__node_cluster(mu_node *node);

/* mu__node_open after mu__discover, which has filled in `options`, and `found` (with
 * nothing, perhaps). Takes the listening socket, and nothing else: the caller calls
 * mu__discovered_done. */
int mu__node_open_discovered(const mu_node_options *options,
                             const struct mu__node_extra *extra,
                             struct mu__discovered *found, mu_error *ret_error,
                             mu_node **ret_node);

/* With a resolver: keep this task announced, and the cluster resolved. Before the loop
 * runs, or on its thread. */
int mu__node_start_discovery(mu_node *node, const mu_node_options *options,
                             const struct mu__discovered *found, mu_error *ret_error);

/* Read the files of key and certificates again, for the connections from now on; a line
 * in the log says what came of it. Any thread, before the node is closed. */
void mu__node_reread_proof(mu_node *node);

/* Withdraw the announcement and end the discovery. Loop thread. May be called again. */
void mu__node_stop_discovery(mu_node *node);

/* The member's news of the cluster; the owner is the node. */
void mu__node_cluster_news(void *owner, const struct mu__changes *changes,
                           const mu_cluster *cluster);

/* Write a line to the node's log, if its level is `level` or more. Any thread. */
void mu__node_log(const mu_node *node, int level, const char *who, const char *format,
                  ...) MU_PRINTF(4, 5);

/* The process was forked after the node was opened, and this is the child: the node's
 * threads are not there, so nothing of it may be waited for or locked. */
bool mu__node_is_forked(const mu_node *node);

/* Set the error of a call that was refused with `code`: the node is closed, or
 * forked. */
void mu__node_say_closed(const mu_node *node, int code, mu_error *ret_error);

/* On a host of the coordination service: let the store record that this host leaves in
 * order. To be called before the closing begins, not on a loop's thread. */
void mu__node_leave_run(mu_node *node);

/* The same without waiting, for a host with a store that lasts: lifecycle.stop is sent
 * when it is done. False: there is nothing to record. Loop thread. */
bool mu__node_leave_run_later(mu_node *node);

/* A call on this node has failed: it may be why its program does. Any thread. */
void mu__node_note_error(mu_node *node, const mu_error *error);

#endif
