/* Cloud TPUs: how they are, beyond where they are, which the resolver tpu tells.
 *
 * A TPU is meant by the settings of that resolver (docs/resolvers/tpu.md): by name, full
 * name, that of a queued resource, or address, several with commas between, or by the
 * variables and files that it reads. Everything is asked anew at every call. Calls block,
 * for `timeout_ms` at most (negative: no limit); a handle is used by one thread at a
 * time.
 *
 * NULL for what is needed: -MU_EINVALID, or NULL or 0 from what returns no code
 * (error.h). */
#ifndef MUSTER_TPU_H
#define MUSTER_TPU_H

#include "error.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct mu_tpu mu_tpu;

enum {
    MU_TPU_NODES_MAX = 256,         /* behind one handle */
    MU_TPU_WAIT_MS = 1200000,       /* the defaults of mu_tpu_wait_healthy */
    MU_TPU_INTERVAL_MS = 30000
};

/* What is known of one TPU; "" where nobody says. TPUs that are only known by addresses
 * are one, without project, zone, state and health. */
typedef struct mu_tpu_state {
    char name[128];
    char project[128];
    char zone[128];
    char state[32];                 /* "READY" */
    char health[32];                /* "HEALTHY" */
    char health_description[256];
    char accelerator_type[64];      /* "v2-8" */
    char runtime_version[128];
    char topology[32];              /* "2x2x1" */
    int endpoints;                  /* hosts */
    int recoverable;                /* 1: work can go on there, maybe after a while; 0:
                                       it was terminated or preempted, or was out of
                                       memory in the last 90 seconds */
    char why[256];                  /* why it is not */
} mu_tpu_state;

/* On success the caller frees *ret_tpu. */
MU_EXPORT int mu_tpu_new(mu_error *ret_error, mu_tpu **ret_tpu);

/* NULL is fine. */
MU_EXPORT void mu_tpu_free(mu_tpu *tpu);

/* A setting of the resolver tpu: ("tpu", "my-tpu"). NULL takes it back. -MU_EINVALID: no
 * such setting, or not such a value. */
MU_EXPORT int mu_tpu_set(mu_tpu *tpu, const char *setting, const char *value,
                         mu_error *ret_error);

/* Called with a line for people when something is tried again or waited for, on the
 * thread of the call. NULL: nothing is said, the default. */
typedef void (*mu_tpu_progress_fn)(void *user, const char *line);
MU_EXPORT void mu_tpu_on_progress(mu_tpu *tpu, mu_tpu_progress_fn progress, void *user);

/* How they are, whatever their state. `ret_states` has room for `room`, and may be NULL
 * with 0. -MU_EEXHAUSTED: there are more. -MU_ENOTFOUND: the API knows no such TPU. */
MU_EXPORT int mu_tpu_describe(mu_tpu *tpu, int64_t timeout_ms, mu_error *ret_error,
                              mu_tpu_state *ret_states, size_t room, size_t *ret_count);

/* Whether work can go on on all of them: *ret_recoverable 1 or 0. `ret_why` has words in
 * the second case, naming the TPU; it has 512 bytes and may be NULL. */
MU_EXPORT int mu_tpu_recoverable(mu_tpu *tpu, int64_t timeout_ms, mu_error *ret_error,
                                 int *ret_recoverable, char *ret_why);

/* Wait until all are healthy, looking every `interval_ms` (0: MU_TPU_INTERVAL_MS), for
 * `wait_ms` at most (0: MU_TPU_WAIT_MS). -MU_EDEADLINE with the last state and health;
 * -MU_EPRECONDITION as soon as one is terminated or preempted, since it never will be.
 * TPUs that are only known by addresses have no health: -MU_EPRECONDITION. */
MU_EXPORT int mu_tpu_wait_healthy(mu_tpu *tpu, int64_t wait_ms, int64_t interval_ms,
                                  mu_error *ret_error);

/* Have all hosts use another version of their software: POST to port 8475 of each, at
 * once. `restart_type`: "always" or "ifNeeded"; NULL: "always". -MU_ENOTFOUND: no such
 * version. Errors name the host. */
MU_EXPORT int mu_tpu_request_version(mu_tpu *tpu, const char *version,
                                     const char *restart_type, int64_t timeout_ms,
                                     mu_error *ret_error);

/* Where the coordination service belongs: "/job:worker/task:0". `ret_leader` has 64
 * bytes. */
MU_EXPORT int mu_tpu_leader(mu_tpu *tpu, mu_error *ret_error, char *ret_leader);

#ifdef __cplusplus
}
#endif

#endif
