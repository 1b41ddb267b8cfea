/* Dense variables on the parameter servers.
 *
 * A variable has a name, a dtype and a shape. It is cut along its first dimension into
 * shards (the first ones get one row more when it does not divide evenly); shard i lives
 * on parameter server (home + i) modulo their number, where home follows from the name.
 * Every call blocks the calling thread until it is done or `timeout_ms` has passed
 * (negative: no limit), and may be made on any thread except a loop's. Buffers are dense,
 * rows first, in host byte order.
 *
 * Errors of every call: -MU_EUNAVAILABLE names a server that was up and is away for
 * `server_lost_ms` of the node's options; calls that come then have it at once.
 * -MU_EDEADLINE names the servers that were not reached, or did not answer, within the
 * limit, and for how long. -MU_ENOTFOUND says that a server was restarted since the
 * variable was opened and does not have it. Server and words are in the mu_error: `task`
 * is the server's.
 *
 * A handle goes on with a variable that was restored, or created anew, under its name
 * (from a checkpoint, say), by whatever node; so do writes of runs made with it.
 * One with another dtype, shape or number of shards is not the same one:
 * -MU_EPRECONDITION says what it is. An add or a gradient that was applied to some former
 * shards gives -MU_EUNAVAILABLE: its outcome is unknown.
 *
 * A server that is restarted comes back empty. A variable of which some shards are lost
 * and others are there is not mended silently: see mu_variable_open.
 *
 * What is atomic: a shard of at most 1 MiB is read and written as a whole. Larger shards
 * travel in pieces: an assign becomes visible at once when its last piece has arrived;
 * adds and gradients are applied piece by piece; a read may see some pieces before and
 * some after a concurrent update.
 *
 * NULL for what is needed: -MU_EINVALID, or NULL or 0 from what returns no code
 * (error.h). */
#ifndef MUSTER_VARIABLE_H
#define MUSTER_VARIABLE_H

#include "node.h"
#include "value.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct mu_variable mu_variable;

enum mu_variable_flag {
    MU_VARIABLE_EXISTING = 1,   /* never creates: waits, up to the limit, until somebody
                                   who may create it has done so; an opener without this
                                   flag creates */
    MU_VARIABLE_RECREATE = 2    /* when some servers have lost their shards, writes the
                                   whole initial content to all shards, and creates the
                                   missing ones; not together with MU_VARIABLE_EXISTING */
};

typedef struct mu_variable_spec {
    const char *name;           /* 1 to 255 bytes of UTF-8 */
    int dtype;                  /* MU_F32 ...; only F32 and F64 take gradients */
    unsigned rank;
    const uint64_t *dims;       /* `rank` of them */
    unsigned shards;            /* more than dims[0] are as many; 0: as it is there;
                                   else one up to 64 KiB, and one for each server
                                   above; a variable of rank 0 has one in any case */
    const void *initial;        /* the whole variable; NULL: zeros */
    unsigned flags;             /* enum mu_variable_flag, or 0 */
} mu_variable_spec;

/* Open a variable, creating it when there is none of that name: the first to open it sets
 * its initial content, everybody else waits until that is done. All of the content comes
 * from one opener, also when the first is lost meanwhile. An existing variable with
 * another dtype, shape or number of shards gives -MU_EPRECONDITION and says which. Waits
 * for the servers that it needs; at the limit the error names those missing.
 *
 * When some servers have their shards and others were restarted without them:
 * -MU_EDATALOSS names those. With MU_VARIABLE_RECREATE the variable is created anew, and
 * handles opened before go on with that one. With MU_VARIABLE_EXISTING the call waits for
 * somebody who does that, and at the limit names the servers that lack it.
 * When all servers that it lives on were restarted it is created as at first. */
MU_EXPORT int mu_variable_open(mu_node *node, const mu_variable_spec *spec,
                               int64_t timeout_ms, mu_error *ret_error,
                               mu_variable **ret_variable);

/* Free the handle; the variable stays on its servers. NULL is fine. */
MU_EXPORT void mu_variable_close(mu_variable *variable);

/* Bytes of the whole variable. */
MU_EXPORT size_t mu_variable_bytes(const mu_variable *variable);

/* Read the whole into `buffer`, which has `bytes` == mu_variable_bytes(). */
MU_EXPORT int mu_variable_read(mu_variable *variable, void *buffer, size_t bytes,
                               int64_t timeout_ms, mu_error *ret_error);

/* How many writes the variable has seen, its initial content included: the lowest of its
 * shards. Grows by one with each assign, add or gradient; moves no content. */
MU_EXPORT int mu_variable_version(mu_variable *variable, int64_t timeout_ms,
                                  mu_error *ret_error, uint64_t *ret_version);

/* Replace the whole. */
MU_EXPORT int mu_variable_assign(mu_variable *variable, const void *buffer, size_t bytes,
                                 int64_t timeout_ms, mu_error *ret_error);

/* Add element by element (any dtype but BOOL; integers wrap). When a server is lost
 * before it answered, nobody knows whether it added: -MU_EUNAVAILABLE. Not repeated. */
MU_EXPORT int mu_variable_add(mu_variable *variable, const void *delta, size_t bytes,
                              int64_t timeout_ms, mu_error *ret_error);

/* How a gradient is applied: v = momentum * v + gradient; x = x - rate * v. The velocity
 * v lives on the server; momentum 0 is plain gradient descent and keeps none. Fails as
 * mu_variable_add does. */
typedef struct mu_optimizer {
    double rate;
    double momentum;
} mu_optimizer;

MU_EXPORT int mu_variable_apply(mu_variable *variable, const void *gradient, size_t bytes,
                                const mu_optimizer *optimizer, int64_t timeout_ms,
                                mu_error *ret_error);

/* ---- Writes of a run ---- */

/* Writes that belong to a run of a function: copied now, sent when the function has
 * returned 0, and forgotten when it has failed. To each server they arrive together, in
 * the order in which they were made: all are applied there, or none. In a closure with
 * MU_CLOSURE_EFFECT_ONCE each server applies them once, however often the closure runs
 * and whatever dies: a server that is away is waited for, until it is lost
 * (`server_lost_ms`) or `effect_wait_ms` have passed. In others
 * -MU_EUNAVAILABLE says that a server was lost before it answered, as mu_variable_add
 * does. Errors that show up then end the run with the server's error.
 *
 * On the thread that runs the function. What cannot be right is refused at once, with
 * words for the run's error as by mu_run_fail, and nothing of it is written: -MU_EINVALID
 * (bytes, dtype, a variable of another node), -MU_EEXHAUSTED (more than 64 MiB for one
 * run; the part of a shard counts as 64 bytes at least), -MU_ENOMEM. */
MU_EXPORT int mu_run_assign(mu_run *run, mu_variable *variable, const void *buffer,
                            size_t bytes);
MU_EXPORT int mu_run_add(mu_run *run, mu_variable *variable, const void *delta,
                         size_t bytes);
MU_EXPORT int mu_run_apply(mu_run *run, mu_variable *variable, const void *gradient,
                           size_t bytes, const mu_optimizer *optimizer);

#ifdef __cplusplus
}
#endif

#endif
