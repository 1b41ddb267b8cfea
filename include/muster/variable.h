/* Dense variables on the parameter servers.
 *
 * A variable has a name, a dtype and a shape. It is cut along its first dimension into
 * shards (the first shards get one row more when it does not divide evenly). Each shard
 * is in one of 256 partitions, by the name and its number, which are spread over the
 * parameter servers. With two servers or more a partition is on two, unless the chief's
 * option `backups` is 0, and an acknowledged write survives the loss of any one. Every
 * call but mu_variable_request_async blocks until it is done or `timeout_ms` has passed
 * (negative: no timeout), and may be made on any thread except a loop's. Buffers are
 * dense, in row-major order and host byte order.
 *
 * Errors of every call: -MU_EUNAVAILABLE names a server that was connected and has been
 * away for `server_lost_ms` (node.h), or until the timeout if that is sooner; when it is
 * lost, later calls fail with it at once. -MU_EDEADLINE names the servers that were never
 * reached, or did not answer, before the timeout, and for how long. -MU_ENOTFOUND: a
 * server was restarted since the variable was opened and does not have it. `task` of the
 * mu_error is the server's.
 *
 * A handle stays usable when any node restores the variable (from a checkpoint, say) or
 * creates it anew, and so do writes of runs made with it, unless it was opened with
 * MU_VARIABLE_SAME. If the new variable has another dtype, shape or number of shards,
 * calls return -MU_EPRECONDITION with these. An add or a gradient that was applied to
 * some shards of the former variable, or may have been, returns -MU_EUNAVAILABLE: its
 * outcome is unknown.
 *
 * A server that is restarted is empty. What another server has a copy of goes on there; a
 * variable that has lost some of its shards is not repaired silently: see
 * mu_variable_open.
 *
 * Atomicity: a shard of at most 1 MiB is read and written as a whole. Larger shards
 * travel in pieces: an assign becomes visible at once when its last piece has arrived;
 * adds and gradients are applied piece by piece; a read may see some pieces before and
 * some after a concurrent update.
 *
 * NULL for a required argument gives -MU_EINVALID; functions that return no code return
 * NULL or 0 (error.h). */
#ifndef MUSTER_VARIABLE_H
#define MUSTER_VARIABLE_H

#include "initializer.h"
#include "node.h"
#include "optimizer.h"
#include "value.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct mu_variable mu_variable;

enum mu_variable_flag {
    MU_VARIABLE_EXISTING = 1, /* never create the variable: wait, up to the timeout,
                                 until a call without this flag has created it */
    MU_VARIABLE_RECREATE = 2, /* when some servers have lost their shards, create the
                                 missing ones and write the initial content to all; not
                                 together with MU_VARIABLE_EXISTING */
    MU_VARIABLE_SAME = 4      /* the handle is for the content that it was opened with:
                                 once that was lost, restored or created anew, its calls
                                 and writes fail with -MU_ENOTFOUND. So no update that
                                 was computed from the former content is applied to the
                                 new one: open another handle, and read it again */
};

typedef struct mu_variable_spec {
    const char *name; /* 1 to 255 bytes of UTF-8 */
    int dtype;        /* MU_F32 ...; only F32 and F64 take gradients */
    unsigned rank;
    const uint64_t *dims; /* `rank` of them */
    unsigned shards;      /* at most dims[0] are used, and one for rank 0. 0: as
                             many as the existing variable has; for a new one of up
                             to 64 KiB one, for a larger one as many as servers */
    const void *initial;  /* the whole variable; NULL: zeros */
    unsigned flags;       /* enum mu_variable_flag, or 0 */
    const mu_initializer *initializer; /* not NULL: in place of `initial`, which is not
                                          looked at */
} mu_variable_spec;

/* Open a variable, creating it when there is none of that name: the first to open it sets
 * its initial content, the others wait until that is done. All of the content comes from
 * one opener, even if the first one is lost meanwhile. -MU_EPRECONDITION when the
 * existing variable has another dtype, shape or number of shards. Waits for the servers
 * that it needs; at the timeout the error names the missing ones.
 *
 * When some servers have their shards and others were restarted and lost them:
 * -MU_EDATALOSS names the latter. With MU_VARIABLE_RECREATE the variable is created anew,
 * and earlier handles use the new one. With MU_VARIABLE_EXISTING the call waits until
 * another opener has done that; at the timeout the error names the servers without it.
 * When all its servers were restarted, the variable is created as the first time. */
MU_EXPORT int mu_variable_open(mu_node *node, const mu_variable_spec *spec,
                               int64_t timeout_ms, mu_error *ret_error,
                               mu_variable **ret_variable);

/* The initial values that a variable as in `spec` (its name, dtype and dims) gets by
 * `initializer`: elements from index `first` on, as many as `bytes` of `out` have room
 * for. -MU_EINVALID, -MU_ERANGE: it cannot have these. */
MU_EXPORT int mu_initializer_values(const mu_initializer *initializer,
                                    const mu_variable_spec *spec, uint64_t first,
                                    void *out, size_t bytes, mu_error *ret_error);

/* Free the handle; the variable stays on its servers. NULL is fine. */
MU_EXPORT void mu_variable_close(mu_variable *variable);

/* Bytes of the whole variable. */
MU_EXPORT size_t mu_variable_bytes(const mu_variable *variable);

/* Read the whole variable, with all writes that had returned before, of any node, into
 * `buffer`; `bytes` must be mu_variable_bytes(). */
MU_EXPORT int mu_variable_read(mu_variable *variable, void *buffer, size_t bytes,
                               int64_t timeout_ms, mu_error *ret_error);

/* Read several variables of one node, each once, as they were at one time on each part of
 * the servers (a partition holds whole shards): what was written to a partition by one
 * closure is read as a whole, or not at all. buffers[i] has
 * mu_variable_bytes(variables[i]) bytes. While a server's answer is awaited, it keeps a
 * copy of what is written meanwhile; -MU_EEXHAUSTED: it had no memory for that. */
MU_EXPORT int mu_variables_read(mu_variable *const *variables, void *const *buffers,
                                size_t count, int64_t timeout_ms, mu_error *ret_error);

/* Read one, or give what this handle has read with this call at most `max_age_ms` ago,
 * without a request; but never from before the end of one of its own assigns, adds or
 * gradients (of writes of runs it knows nothing). 0 always reads. A variable of more than
 * MU_VARIABLE_CACHED_BYTES_MAX is not kept, and always read. */
enum { MU_VARIABLE_CACHED_BYTES_MAX = 64 << 20 };
MU_EXPORT int mu_variable_read_cached(mu_variable *variable, void *buffer, size_t bytes,
                                      uint64_t max_age_ms, int64_t timeout_ms,
                                      mu_error *ret_error);

/* Number of writes that were applied to the variable, its initial content included (the
 * lowest number of its shards): one more with each assign, add or gradient of all of it.
 * Transfers no content. */
MU_EXPORT int mu_variable_version(mu_variable *variable, int64_t timeout_ms,
                                  mu_error *ret_error, uint64_t *ret_version);

/* Replace the whole content; `bytes` must be mu_variable_bytes(). */
MU_EXPORT int mu_variable_assign(mu_variable *variable, const void *buffer, size_t bytes,
                                 int64_t timeout_ms, mu_error *ret_error);

/* Add element by element (any dtype but BOOL; integers wrap). It counts once, also when
 * it is sent again because a server was lost before it answered. When it ends with
 * -MU_EDEADLINE or -MU_EUNAVAILABLE, some shards may have added it. */
MU_EXPORT int mu_variable_add(mu_variable *variable, const void *delta, size_t bytes,
                              int64_t timeout_ms, mu_error *ret_error);

/* ---- Rows ---- */

/* Rows of a variable of rank 1 or more: `count` of them from `first` on, or those of a
 * list. A call asks only the servers of the shards that it touches, all of them at once.
 * -MU_ERANGE: a row is not there; a listed row has more than MU_VARIABLE_ROW_BYTES_MAX;
 * nothing was sent then. */
typedef struct mu_rows {
    uint64_t first;
    uint64_t count;
    const int64_t *list; /* not NULL: these `count` rows instead, in any order; `first` is
                            not looked at */
} mu_rows;

enum { MU_VARIABLE_ROW_BYTES_MAX = (1 << 20) - 8 };

/* Read rows, which lie one behind the other in `buffer`, in the order of the list, a row
 * that is listed twice twice. `bytes` is that of them all, also below. */
MU_EXPORT int mu_variable_read_rows(mu_variable *variable, const mu_rows *rows,
                                    void *buffer, size_t bytes, int64_t timeout_ms,
                                    mu_error *ret_error);

/* Replace rows, or add to them; of a row that is listed more than once the last content
 * stays, or all are added. Written in pieces of at most 1 MiB, each of which counts once,
 * as those of mu_variable_add; after -MU_EDEADLINE or -MU_EUNAVAILABLE some may be
 * written. mu_variable_version does not count them. */
MU_EXPORT int mu_variable_assign_rows(mu_variable *variable, const mu_rows *rows,
                                      const void *buffer, size_t bytes,
                                      int64_t timeout_ms, mu_error *ret_error);
MU_EXPORT int mu_variable_add_rows(mu_variable *variable, const mu_rows *rows,
                                   const void *delta, size_t bytes, int64_t timeout_ms,
                                   mu_error *ret_error);

/* What is done to the elements x of rows with an element d for each. Products of integers
 * wrap; quotients of integers are cut towards 0, and divisors of 0 are refused with
 * -MU_EINVALID. NaN in x or d gives NaN. Any dtype but BOOL. */
enum mu_row_update {
    MU_ROWS_MIN = 1, /* the smaller of both */
    MU_ROWS_MAX = 2, /* the larger */
    MU_ROWS_MUL = 3, /* x d */
    MU_ROWS_DIV = 4  /* x / d */
};

/* Update rows, like mu_variable_add_rows: one after the other in the order of the list,
 * each as often as it is there. */
MU_EXPORT int mu_variable_update_rows(mu_variable *variable, int update,
                                      const mu_rows *rows, const void *buffer,
                                      size_t bytes, int64_t timeout_ms,
                                      mu_error *ret_error);

/* Apply a gradient of the variable's shape by the optimizer's rule (optimizer.h), on the
 * servers; `bytes` must be mu_variable_bytes(). It counts once, like mu_variable_add, and
 * fails like it. -MU_EINVALID: a number of the optimizer is out of its range, or an
 * element of the gradient is NaN or infinite. -MU_EPRECONDITION: the variable has slots
 * of another rule. */
MU_EXPORT int mu_variable_apply(mu_variable *variable, const void *gradient, size_t bytes,
                                const mu_optimizer *optimizer, int64_t timeout_ms,
                                mu_error *ret_error);

/* ---- Requests ---- */

enum mu_variable_operation {
    MU_VARIABLE_READ = 1,   /* mu_variable_read, _read_cached, _read_rows */
    MU_VARIABLE_ASSIGN = 2, /* mu_variable_assign, _assign_rows */
    MU_VARIABLE_ADD = 3,    /* mu_variable_add, _add_rows */
    MU_VARIABLE_APPLY = 4,  /* mu_variable_apply */
    MU_VARIABLE_UPDATE = 5  /* mu_variable_update_rows */
};

/* One of these calls. What its operation does not need is not looked at. */
typedef struct mu_variable_request {
    int operation;                 /* enum mu_variable_operation */
    int update;                    /* UPDATE: enum mu_row_update */
    const mu_rows *rows;           /* NULL: the whole. UPDATE has some, APPLY none */
    void *target;                  /* READ: where to, */
    const void *source;            /* else from where, */
    size_t bytes;                  /* so many */
    const mu_optimizer *optimizer; /* APPLY */
    int is_cached;                 /* READ of the whole: 1: as mu_variable_read_cached, */
    uint64_t max_age_ms;           /* with this */
    int64_t timeout_ms;
} mu_variable_request;

/* Make a request, and wait for its end. */
MU_EXPORT int mu_variable_request_wait(
    mu_variable *variable, const mu_variable_request *request, mu_error *ret_error);

/* How a request ended; `error` (NULL: `code` is 0) is valid during this call. */
typedef void (*mu_variable_done_fn)(void *user, int code, const mu_error *error);

/* Begin a request, and return: `done` is called once, on the loop's thread, when it has
 * ended, also when the node is closed meanwhile (-MU_ECLOSED). It must not block, and may
 * begin further requests. Until then `target` and `source` are lent, and not to be
 * changed; the request, its rows and its optimizer are copied. The variable may be closed
 * before.
 *
 * Many are under way at a time, in no order: what one has written is seen by those that
 * began after its end. None is cancelled: its timeout is its limit.
 *
 * Other codes than 0: `done` is not called. -MU_EAGAIN: more than 65536 of a handle are
 * under way, or they have copied 256 MiB of row numbers and what goes to them;
 * -MU_ECLOSED; and those of the arguments, as of the calls that wait. Any thread, also a
 * loop's. */
MU_EXPORT int mu_variable_request_async(mu_variable *variable,
                                        const mu_variable_request *request,
                                        mu_variable_done_fn done, void *user,
                                        mu_error *ret_error);

/* ---- Writes of a run ---- */

/* Writes of a run of a function: copied by the call, sent when the function has returned
 * 0, discarded when it has failed. Each shard gets its writes as one batch, in the order
 * of the calls, and all of them are applied or none. For a closure with
 * MU_CLOSURE_EFFECT_ONCE each shard's are applied once, however often the closure runs: a
 * server that is away is waited for until it is lost (`server_lost_ms`) or
 * `effect_wait_ms` have passed. For other closures -MU_EUNAVAILABLE says that a server
 * was lost before it answered: it is unknown whether it has applied them. An error while
 * sending ends the run with the server's error.
 *
 * On the thread that runs the function. Invalid writes are refused by the call, which
 * sets the run's message as mu_run_fail does: -MU_EINVALID (bytes, dtype, a variable of
 * another node), -MU_EEXHAUSTED (more than 64 MiB for one run; a write counts at least 64
 * bytes for each shard), -MU_ENOMEM. */
MU_EXPORT int mu_run_assign(mu_run *run, mu_variable *variable, const void *buffer,
                            size_t bytes);
MU_EXPORT int mu_run_add(mu_run *run, mu_variable *variable, const void *delta,
                         size_t bytes);
MU_EXPORT int mu_run_assign_rows(mu_run *run, mu_variable *variable, const mu_rows *rows,
                                 const void *buffer, size_t bytes);
MU_EXPORT int mu_run_add_rows(mu_run *run, mu_variable *variable, const mu_rows *rows,
                              const void *delta, size_t bytes);
MU_EXPORT int mu_run_update_rows(mu_run *run, mu_variable *variable, int update,
                                 const mu_rows *rows, const void *buffer, size_t bytes);
MU_EXPORT int mu_run_apply(mu_run *run, mu_variable *variable, const void *gradient,
                           size_t bytes, const mu_optimizer *optimizer);

#ifdef __cplusplus
}
#endif

#endif
