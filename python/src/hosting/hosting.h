/* Actors in Python: classes whose objects live on a worker.
 *
 * All of them are actors of one registered type, "python.actor". The arguments of its
 * start are [pickle of the class, its name, where, concurrency, grade, milliseconds
 * within which it is to be made (0: any), form, ...]. Spawning one without a name is
 * answered when its object has been made, with the address; that of others is made by the
 * first call. A call has the arguments [method, flags, milliseconds until it is not begun
 * any more (0: none), form, ...]; forms are those of "python.call". The loop's thread
 * only queues it: the actor's lane (lane.c) runs it on a thread of the pool, and the
 * answer is given by a later turn. */
#ifndef MUSTER_PYTHON_HOSTING_H
#define MUSTER_PYTHON_HOSTING_H

#include "extension.h"

#include "muster/actor.h"

#include <sys/types.h>

#define MUPY_ACTOR_TYPE "python.actor"

enum {
    MUPY_CALL_ONE_WAY = 1, /* nobody waits for the answer */
    MUPY_CALL_STREAM = 2   /* what it returns is iterated over: the answer is a number */
};

enum mupy_grade { MUPY_GRADE_PLAIN, MUPY_GRADE_NAMED, MUPY_GRADE_KEPT };

/* The places in the arguments. */
enum {
    MUPY_START_CLASS,
    MUPY_START_NAME,
    MUPY_START_WHERE,
    MUPY_START_LANES,
    MUPY_START_GRADE,
    MUPY_START_WITHIN,
    MUPY_START_FORM
};
enum { MUPY_CALL_METHOD, MUPY_CALL_FLAGS, MUPY_CALL_WITHIN, MUPY_CALL_FORM };

/* A call that a lane has. */
struct mupy_job {
    struct mupy_job *next;
    mu_reply *reply; /* the loop thread's alone; NULL: nobody asked */
    mu_value *args;
    uint64_t due_ms; /* 0: none */
    mu_value *result;
    mu_error *error;   /* instead of the result */
    mu_value *changes; /* of a kept actor's state: [the whole one or nil, record, ...] */
    bool is_start;     /* nothing is called: its result is the address; its reply is the
                          actor's */
    bool is_unbegun;   /* its actor ends instead: it waits for that, as if queued */
};

struct mupy_jobs {
    struct mupy_job *first;
    struct mupy_job *last;
    size_t count;
};

/* The calls of one actor, one at a time unless it was made for more. It outlives its
 * actor while one of them runs. */
struct mupy_lane {
    unsigned holders; /* this and the next two groups: guarded by the pool's lock */
    struct mupy_lane *next;
    bool is_queued; /* for a thread of the pool */
    bool is_poked;  /* its actor will take `done` */
    bool is_made;
    bool is_closed; /* its actor has ended */
    bool ends;      /* once what is queued has run: muster.stop */
    bool is_dying;  /* nothing more is begun, for `why` */
    unsigned active;
    struct mupy_jobs queued;
    struct mupy_jobs done;

    unsigned concurrency; /* the rest does not change while calls run */
    mu_node *node;        /* held */
    mu_address address;
    mu_value *start;
    mu_value *saved; /* of a kept actor's earlier life, as changes; NULL: none */
    bool is_kept;
    PyObject *object;  /* the actor's own; NULL until it is made */
    PyObject *streams; /* dict: its open iterators, by number; NULL like the object */
    char name[64];     /* of the class */
    mu_error *why;     /* once it is dying; NULL: there was no memory for it */
    pid_t pid;         /* of its process; 0: it has none */
};

/* ---- lane.c ---- */

/* For one actor; NULL: no memory. */
struct mupy_lane *mupy_lane_new(mu_node *node, const mu_address *address,
                                const mu_value *start);

/* Queue a call; -MU_EEXHAUSTED: too many wait, and the job is the caller's. */
int mupy_lane_put(struct mupy_lane *lane, struct mupy_job *job);

/* What has been done since the last call; the caller frees it. *ret_ends: nothing is left
 * to do, and the actor ends, with lane->why if is_dying. */
struct mupy_jobs mupy_lane_take(struct mupy_lane *lane, bool *ret_ends);

/* Its actor has ended. What was not begun is returned. */
struct mupy_jobs mupy_lane_close(struct mupy_lane *lane);

/* A job is done: lane and job are the pool's. With the GIL. */
void mupy_lane_done(struct mupy_lane *lane, struct mupy_job *job);

/* Its object is made. Nothing more is begun, for `why`. It ends once its queue is
 * empty. */
void mupy_lane_made(struct mupy_lane *lane);
void mupy_lane_die(struct mupy_lane *lane, const mu_error *why);
void mupy_lane_end(struct mupy_lane *lane);

/* An error of an actor. */
void mupy_lane_error(const struct mupy_lane *lane, mu_error *ret_error, int code, int ran,
                     const char *format, ...) MU_PRINTF(5, 6);

struct mupy_job *mupy_job_pop(struct mupy_jobs *jobs);
void mupy_job_push(struct mupy_jobs *jobs, struct mupy_job *job);
void mupy_job_free(struct mupy_job *job);

/* ---- job.c ---- */

/* Run one; with the GIL. It calls mupy_lane_done, at once or when an asynchronous method
 * has ended. */
void mupy_job_run(struct mupy_lane *lane, struct mupy_job *job);

/* Run those of a process, which are sent to it ahead of their answers; the same for each.
 * Whether a job may be one of them. */
void mupy_jobs_run_ahead(struct mupy_lane *lane, struct mupy_jobs *jobs);
bool mupy_job_goes_ahead(const struct mupy_job *job);

/* Whether this thread may run a method of an actor; and its run, for current_run(): a new
 * reference, or NULL with an exception. */
bool mupy_actor_runs(void);
PyObject *mupy_actor_run(void);

/* ---- type.c ---- */

/* Register the type at a node. 0 or a negative code. */
int mupy_actors_register(mu_node *node);

/* The node has been closed, and its object is freed. */
void mupy_actors_forget(const mu_node *node);

/* ---- client.c ---- */

extern PyTypeObject *mupy_actor_type;

/* The node over which a caller reaches an actor, borrowed. */
PyObject *mupy_actor_node(PyObject *actor);

/* Set `actor` of an ActorError, the address. */
void mupy_actor_name(PyObject *exception, PyObject *actor);

#endif
