/* Cloud TPUs: their state and health. Their addresses come from the resolver "tpu".
 *
 * A handle stands for one or more TPUs, selected by the settings of that resolver
 * (docs/resolvers/tpu.md): name, full name, name of a queued resource, or address,
 * several separated by commas; or by the variables and files that it reads. Every call
 * queries the Cloud TPU API anew. Calls block, for `timeout_ms` at most (negative: no
 * timeout); a handle is used by one thread at a time.
 *
 * NULL for a required argument gives -MU_EINVALID; functions that return no code return
 * NULL or 0 (error.h). */
#ifndef MUSTER_COMPAT_TPU_H
#define MUSTER_COMPAT_TPU_H

#include "../error.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct mu_tpu mu_tpu;

enum {
    MU_TPU_NODES_MAX = 256,   /* of one handle */
    MU_TPU_WAIT_MS = 1200000, /* defaults of mu_tpu_wait_healthy */
    MU_TPU_INTERVAL_MS = 30000
};

/* The state of one TPU; "" for unknown texts. TPUs given by addresses alone count as one
 * TPU, without project, zone, state and health. */
typedef struct mu_tpu_state {
    char name[128];
    char project[128];
    char zone[128];
    char state[32];  /* "READY" */
    char health[32]; /* "HEALTHY" */
    char health_description[256];
    char accelerator_type[64]; /* "v2-8" */
    char runtime_version[128];
    char topology[32]; /* "2x2x1" */
    int endpoints;     /* hosts */
    int recoverable;   /* 1: it is usable, perhaps after some time; 0: it was
                          terminated or preempted, or ran out of memory in
                          the last 90 seconds */
    char why[256];     /* why it is not recoverable */
} mu_tpu_state;

/* Make a handle, without settings. On success the caller frees *ret_tpu. */
MU_EXPORT int mu_tpu_new(mu_error *ret_error, mu_tpu **ret_tpu);

/* Free a handle; NULL is fine. */
MU_EXPORT void mu_tpu_free(mu_tpu *tpu);

/* Change a setting of the resolver "tpu": ("tpu", "my-tpu"). `value` NULL unsets it.
 * -MU_EINVALID: no such setting, or not a valid value. */
MU_EXPORT int mu_tpu_set(mu_tpu *tpu, const char *setting, const char *value,
                         mu_error *ret_error);

/* Set the function that gets a line of text whenever a call retries or waits, on the
 * thread of that call. NULL, the default: none. */
typedef void (*mu_tpu_progress_fn)(void *user, const char *line);
MU_EXPORT void mu_tpu_on_progress(mu_tpu *tpu, mu_tpu_progress_fn progress, void *user);

/* Read the states of all TPUs. `ret_states` has `room` elements, and may be NULL when
 * that is 0. -MU_EEXHAUSTED: there are more. -MU_ENOTFOUND: the API knows no such TPU. */
MU_EXPORT int mu_tpu_describe(mu_tpu *tpu, int64_t timeout_ms, mu_error *ret_error,
                              mu_tpu_state *ret_states, size_t room, size_t *ret_count);

/* Set *ret_recoverable to 1 when all TPUs are recoverable, else to 0, with the TPU and
 * the reason in `ret_why`, which has 512 bytes and may be NULL. */
MU_EXPORT int mu_tpu_recoverable(mu_tpu *tpu, int64_t timeout_ms, mu_error *ret_error,
                                 int *ret_recoverable, char *ret_why);

/* Wait until all are healthy: poll every `interval_ms` (0: MU_TPU_INTERVAL_MS), for
 * `wait_ms` at most (0: MU_TPU_WAIT_MS). -MU_EDEADLINE with the last state and health;
 * -MU_EPRECONDITION as soon as one is terminated or preempted, and for TPUs given by
 * addresses alone, whose health is unknown. */
MU_EXPORT int mu_tpu_wait_healthy(mu_tpu *tpu, int64_t wait_ms, int64_t interval_ms,
                                  mu_error *ret_error);

/* Have all hosts switch to another version of their software: a POST to port 8475 of
 * each, in parallel. `restart_type`: "always" or "ifNeeded"; NULL: "always".
 * -MU_ENOTFOUND: no such version. Errors name the host. */
MU_EXPORT int mu_tpu_request_version(mu_tpu *tpu, const char *version,
                                     const char *restart_type, int64_t timeout_ms,
                                     mu_error *ret_error);

/* The task that should host the coordination service: "/job:worker/task:0". `ret_leader`
 * has 64 bytes. */
MU_EXPORT int mu_tpu_leader(mu_tpu *tpu, mu_error *ret_error, char *ret_leader);

#ifdef __cplusplus
}
#endif

#endif
