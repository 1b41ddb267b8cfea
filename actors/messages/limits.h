/* Actors that are known by number, bounds of fields, flags and choices in fields. */
#ifndef MU_ACTORS_MESSAGES_LIMITS_H
#define MU_ACTORS_MESSAGES_LIMITS_H

#include "actors/local_messages.h"

/* Actors that other nodes know by number. */
enum mu__actor_number {
    MU__SUPERVISOR = 1,     /* on the chief */
    MU__WORKER = 2,         /* on each worker */
    MU__PS = 3,             /* on each parameter server */
    MU__CLIENT = 4,         /* on every node: the program's side of the supervisor */
    MU__VARIABLES = 5,      /* on every node: the program's side of the servers */
    MU__JOB = 6,            /* on every node: learns that the job is done */
    MU__EFFECTS = 7,        /* on every node: sends its runs' writes to the servers */
    MU__COORDINATION = 8,   /* on the tasks that may host the coordination service */
    MU__AGENT = 9,          /* on every node: its side of that service */
    MU__PEERS = 10          /* on every node: says whom it reaches, and whom not */
};

enum {
    MU__FUNCTION_NAME_MAX = 63,
    MU__VARIABLE_NAME_MAX = 255,
    MU__ERROR_TEXT_MAX = 511,
    MU__TASK_NAME_MAX = 63,
    MU__VALUE_BYTES_MAX = 1 << 30,
    MU__PIECE_BYTES_MAX = 1 << 20,  /* raw bytes of one variable piece */
    MU__CLOSURE_NAME_MAX = 127,
    MU__DETAIL_BYTES_MAX = 1023,    /* a stack, or the last lines of a log */
    MU__RECALL_MAX = 1024,          /* attempts that one message names */
    MU__INPUTS_MAX = 1024,          /* references among the arguments of one closure */
    MU__KEY_MAX = 1023,             /* of the coordination service, as what follows */
    MU__KEY_VALUE_MAX = 1 << 20,
    MU__TXN_BYTES_MAX = (2 << 20) + (1 << 16),  /* of a transaction of keys, packed */
    MU__BARRIER_NAME_MAX = 255,
    MU__TASKS_TEXT_MAX = 1 << 16,   /* a set of tasks: see task_set.h */
    MU__TASKS_CONTENT_MAX = 1 << 26,    /* what is told about tasks */
    MU__DEVICES_MAX = 1 << 16,      /* what a task says about its machine */
    MU__CLUSTER_TEXT_MAX = 1 << 20,
    MU__PEERS_CONTENT_MAX = 1 << 24,    /* what a node says about its links */
    MU__ADDRESS_MAX = 319           /* of a task, as a url */
};

/* What a closure is asked for; SCHEDULE and RUN have them in `flags`. */
enum mu__closure_flag {
    MU__CLOSURE_ONCE = 1,       /* its writes are applied once, however often it runs */
    MU__CLOSURE_KEEP = 2,       /* the result stays on the worker until it is released */
    MU__CLOSURE_NO_BACKUP = 4,  /* never runs twice at a time */
    MU__CLOSURE_BUILD = 8,      /* RUN: builds the per-worker value `closure`; what it
                                   returns stays on this worker under that number */
    MU__CLOSURE_OWN_ERROR = 16, /* from the program to its client actor only: nobody but
                                   the future has its error */
    MU__CLOSURE_HOLDS = 32      /* the same: `inputs` are pointers, see
                                   actors/client/holds.h */
};

/* Priorities run from 0, the most urgent, to 7. A priority travels as p + 1; 0 stands for
 * the usual one. */
enum { MU__PRIORITIES = 8, MU__PRIORITY_DEFAULT = 4 };

/* Numbers of per-worker values have this bit; those of closures never have. The two
 * together are the numbers of what a worker keeps. */
#define MU__PER_WORKER_BIT (UINT64_C(1) << 63)

/* What TASKS_GET asks for. */
enum mu__tasks_what {
    MU__TASKS_STATES,       /* tasks, their states, errors, incarnations */
    MU__TASKS_DEVICES,      /* what their machines have */
    MU__TASKS_WAIT,         /* STATES, once all of the set are connected */
    MU__TASKS_WATCH,        /* STATES, once their version is another one */
    MU__TASKS_ALIVE         /* those connected, once each of them has asked this or is not
                               connected */
};

/* Of what a client has too little at the chief. */
enum mu__room_lack { MU__LACKS_CLOSURES = 1, MU__LACKS_BYTES = 2 };

/* What RUNS_CLEAR forgets. */
enum mu__runs_clear_what {
    MU__RUNS_CLEAR_ENDED = 1,   /* the history */
    MU__RUNS_CLEAR_PRESENT = 2, /* what the present run has come to: outcomes, notices */
    MU__RUNS_CLEAR_KEYS = 4     /* the keys of programs */
};

/* How a key is put. */
enum mu__put_flag {
    MU__PUT_OVERWRITE = 1,  /* else the key must not be there */
    MU__PUT_COMPARE = 2,    /* `revision` must be the key's */
    MU__PUT_LEASE = 4       /* the key goes when the task that puts it does */
};

#endif
