/* Hosts of the service, the one that is followed, and this task's registration with it.
 * Part of the agent: hosts.c, host_registration.c. */
#ifndef MU_AGENT_HOSTS_H
#define MU_AGENT_HOSTS_H

#include "actors/agent/agent.h"

#include "actors/messages.h"
#include "actors/task_set.h"

enum {
    AGENT_WORDS_MAX = 256,
    AGENT_HOSTS_MAX = 1024      /* that are up at a time */
};

struct agent;

/* A task that may host the service, and whose link is up. */
struct agent_host {
    struct agent_host *next;
    uint32_t node;
    char task[64];
    bool has_said;              /* SERVICE_HERE */
    bool leads;
    uint64_t epoch;
    uint64_t store;
    char reason[AGENT_WORDS_MAX];   /* why it does not lead */
};

struct agent_hosts {
    struct mu__task_set set;    /* tasks that may host the service */
    char first_words[320];      /* "/job:chief/task:0 at tcp://..." */
    char first_task[64];
    struct agent_host *followed;    /* NULL: nobody leads */
    uint64_t epoch;             /* with which it is followed */
    uint64_t store;
    uint64_t heard_ms;          /* when it was heard last */
    struct agent_host *linked;  /* all that are up */
    uint32_t linked_count;
    uint64_t lost_ms;           /* when the last link to a host went down; 0: none did */
    char lost_reason[AGENT_WORDS_MAX];
    char lost_task[64];
    char reported_error[AGENT_WORDS_MAX];   /* why none can be reached */
};

struct agent_registration {
    bool is_requested;
    bool registered;
    bool reset_unreported;      /* the service was not told of a reset, */
    bool leave_unreported;      /* or may not know that this task has left */
    bool used;                  /* keys or barriers, in this registration */
    uint64_t store;             /* that it registered with last; 0: none */
    uint32_t session;
    uint64_t token;             /* of the request that is not answered; 0: none */
    uint64_t sent_ms;           /* when that was sent */
    struct mu__packed devices;
    struct mu__buf *devices_buf;
    char refusal[AGENT_WORDS_MAX];  /* why it was not registered; "": nobody refused */
};

/* ---- hosts.c ---- */

/* The pid of the service that is followed. */
mu__pid mu__agent_service(const struct agent *a);

bool mu__agent_is_from_host(const struct agent *a, const struct mu__msg *msg);

/* How things are with the service, words behind a colon. */
void mu__agent_host_words(struct mu__ctx *ctx, const struct agent *a, char *out,
                          size_t size);

/* The first task of the set that may host the service, and where it is, for messages. */
void mu__agent_name_first_host(struct agent *a);

/* The host on this node. -MU_ENOMEM. */
int mu__agent_add_own_host(struct agent *a);

void mu__agent_hosts_done(struct agent *a);

void mu__agent_on_here(struct mu__ctx *ctx, void *state, struct mu__msg *msg);
void mu__agent_on_node_up(struct mu__ctx *ctx, void *state, struct mu__msg *msg);
void mu__agent_on_node_down(struct mu__ctx *ctx, void *state, struct mu__msg *msg);
void mu__agent_on_node_trouble(struct mu__ctx *ctx, void *state, struct mu__msg *msg);
void mu__agent_on_cluster_moved(struct mu__ctx *ctx, void *state, struct mu__msg *msg);

/* ---- host_registration.c ---- */

/* Register if that is wanted, and possible now. */
void mu__agent_register(struct mu__ctx *ctx, struct agent *a);

/* The answer to that has come. */
void mu__agent_register_answered(struct mu__ctx *ctx, struct agent *a,
                                 const struct mu__tasks_answer *body);

/* It is registered no more. */
void mu__agent_end_session(struct agent *a);

/* Not registered, and it does not want to be. What waits ends with `error`. */
void mu__agent_withdraw(struct mu__ctx *ctx, struct agent *a, const mu_error *error);

#endif
