/* One node without its world: the kernel, the links and the actors of the node's
 * role, put together. The same composition lives in a libuv loop (node.c) and in the
 * simulator. */
#ifndef MU_NODE_MEMBER_H
#define MU_NODE_MEMBER_H

#include "actors/agent/agent.h"
#include "actors/agent/peers.h"
#include "actors/client/client.h"
#include "actors/coordination/coordination.h"
#include "actors/job/job.h"
#include "actors/supervisor/supervisor.h"
#include "actors/task_set.h"
#include "actors/variables/variables.h"
#include "actors/worker/worker.h"
#include "actors/worker_types.h"
#include "resolver/spec/changes.h"
#include "runtime/kernel/kernel.h"
#include "transport/link/links.h"

#include "muster/cluster.h"
#include "muster/node.h"

/* News of the cluster: these changes were taken, but for those that are refused, and
 * `cluster` is what is known now. Both are the member's. Called within
 * mu__member_set_cluster, or within a later turn when there are many. */
typedef void (*mu__cluster_news_fn)(void *owner, const struct mu__changes *changes,
                                    const mu_cluster *cluster);

/* Another process plays this task, and the peers that decide (identity.c) have refused
 * this one for MU__CLAIM_SILENCES times silence_ms and MU__CLAIM_MS: it is to end.
 * `reason` names the other process. Called once, within a turn. */
typedef void (*mu__identity_taken_fn)(void *owner, const char *reason);

/* How long a process tries again whose task another one plays: longer than it takes to
 * find that the other one is silent. */
enum { MU__CLAIM_SILENCES = 2, MU__CLAIM_MS = 2000 };

#define MU__COORDINATED_JOBS "chief,worker,ps" /* by default */

struct mu__member_upcalls {
    mu__cluster_news_fn news; /* may be NULL */
    void *news_owner;
    mu__identity_taken_fn taken; /* may be NULL */
    void *taken_owner;
};

/* What a member is started with; borrowed by mu__member_start alone, unless the comment
 * says otherwise. */
struct mu__member_config {
    const mu_node_options *options; /* the node's. Numbers of 0 are not its defaults, but
                                   mean what the actors say; texts may be NULL: the
                                   default. `run` and task_type outlive the member. Of the
                                   service and its store only `run` and coordinated_jobs
                                   are read: the rest is in `hosts` and `coordination` */
    const char *address;            /* where peers can dial this node; "": nowhere */
    const char *software;           /* its version; NULL: not said. Outlives the member */
    const char *host;               /* of this process, for messages; NULL: not said */
    uint64_t pid;                   /* the same */
    struct mu__storage *journal;    /* the chief's, or a parameter server's; NULL: none.
                                       Outlives the member */
    uint64_t journal_spare_bytes;   /* see actors/ps/ps.h */
    mu__journal_news_fn journal_news; /* see actors/supervisor/config.h; the owner is
                                         `journal_owner` */
    void *journal_owner;
    const char *hosts; /* a task set: who may host the coordination service; NULL
                          or "": nobody */
    struct mu__coordination_config coordination; /* of a host: options and its store;
                                what is the member's own is filled in here */
    const mu_value *devices;                     /* what this machine has; may be NULL */
    bool serves_at_once;         /* a worker serves before its program says so */
    uint64_t retained_bytes_max; /* see actors/worker/worker.h */
    const char *only;      /* task type that may link to this node; NULL: any. The */
    const char *only_why;  /* reason for others; both outlive the member */
    const char *dials_any; /* url of one more node to link to, whoever it is */
    const char *const *dials_each;  /* the same of several, ended by NULL; may be NULL */
    mu__offer_check_fn offer_check; /* see actors/job/job.h */
    void *offer_owner;
    bool takes_offer;
    mu_node *node;    /* handed to functions */
    mu__post_fn post; /* for what they log; may be NULL */
    struct mu__member_upcalls upcalls;
};

/* Changes of the cluster that are being taken, some in each turn. */
struct mu__taking {
    struct mu__changes changes; /* no rows: none */
    size_t next;                /* the first that was not taken */
    mu_cluster *before;         /* these two have the strings of the rows */
    mu_cluster *after;          /* as it was found; may be the member's cluster */
    uint64_t took_ms;           /* when some were taken last */
    uint64_t retry_ms;          /* no more are taken before */
};

struct mu__member {
    struct mu__world *world;
    struct mu__kernel *kernel;
    struct mu__links *links;
    uint64_t incarnation;       /* random, of this life */
    struct mu__own_run own_run; /* the job's run that it takes part in */
    char task[64];              /* "/job:worker/task:1" */
    char type[16];
    char chief[320];               /* "/job:chief/task:0 at tcp://..." */
    char job_owner[320];           /* the same of the task that ends the job */
    struct mu__agent_shared agent; /* with the program's threads */
    uint32_t index;                /* of this task */
    char address[320];             /* where peers reach it */
    mu_cluster *cluster;           /* as it is known now */
    struct mu__taking taking;
    mu_cluster *awaited; /* found since then, the last of several; NULL: none */
    struct mu__task_set hosts;
    char coordinated_jobs[64];
    struct mu__worker_types worker_types;
    uint32_t refused;        /* hash of the changes that were refused last; 0: none */
    bool is_unlisted_worker; /* a worker that the cluster did not list at start */
    struct mu__member_upcalls upcalls;
    bool fails;    /* its program has failed: when it leaves, the
                      coordination service counts that as a failure */
    bool is_taken; /* another process plays its task: this was logged and
                      upcalled */
};

/* The hooks that open the world and the wire; their owner is the member. */
struct mu__world_hooks mu__member_hooks(struct mu__member *member);
extern const struct mu__wire_events mu__member_events;

/* Start everything: from now on turns may be taken. On failure `member` is as before;
 * ret_error says what was wrong. */
int mu__member_start(struct mu__member *member, const struct mu__member_config *config,
                     struct mu__world *world, struct mu__wire *wire, mu_error *ret_error);

/* Free everything, as it is. No turn and no event may follow. */
void mu__member_stop(struct mu__member *member);

/* Change the cluster: a file was edited, a worker has registered itself. Compares the
 * two, reports the differences to links and actors, logs them. The same cluster again
 * does nothing. On the loop thread, outside of a turn. Copies `cluster`.
 *
 * Of ten thousand changes some are taken at once and the others in the turns that follow,
 * so that heartbeats and results do not wait for all of them. A cluster that is set
 * meanwhile is taken after them, and its errors are logged; of several the last.
 *
 * Workers, evaluator and clients may come, go and move, the chief and parameter servers
 * only move; the rest of a cluster with other changes is taken all the same, and
 * -MU_EPRECONDITION says what was not. -MU_EEXISTS: nothing was taken. -MU_ENOMEM,
 * -MU_EEXHAUSTED: nothing, or not all; what has begun goes on by itself after a while,
 * and calling it again does no harm. When that happens in a later turn, the log says
 * so. */
int mu__member_set_cluster(struct mu__member *member, const mu_cluster *cluster,
                           mu_error *ret_error);

/* Whether a task of a cluster dials all tasks of a type; and whether it is the one with
 * whose program the job ends. */
bool mu__member_dials(const mu_cluster *cluster, const struct mu__worker_types *types,
                      const char *type, int index, const char *other);
bool mu__member_ends_job(const mu_cluster *cluster, const char *type, int index);

/* Say goodbye to the peers, and to the coordination service, for which this task has left
 * then; mu__links_count_up(member->links) tells when they have hung up. */
void mu__member_leave(struct mu__member *member, const char *reason);

#endif
