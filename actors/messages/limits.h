/* Numbers of actors, bounds of message fields, and the values of fields that are flags or
 * choices. */
#ifndef MU_ACTORS_MESSAGES_LIMITS_H
#define MU_ACTORS_MESSAGES_LIMITS_H

#include "actors/local_messages.h"

#include <inttypes.h>

/* The actors of a node, by the number in their pids, which other nodes know. */
enum mu__actor_number {
    MU__SUPERVISOR = 1,   /* on the chief */
    MU__WORKER = 2,       /* on each worker */
    MU__PS = 3,           /* on each parameter server */
    MU__CLIENT = 4,       /* on every node: the program's side of the supervisor */
    MU__VARIABLES = 5,    /* on every node: the program's side of parameter servers */
    MU__JOB = 6,          /* on every node: the end of the job */
    MU__COORDINATION = 8, /* on the tasks that may host the coordination service */
    MU__AGENT = 9,        /* on every node: the node's side of that service */
    MU__PEERS = 10,       /* on every node: reports the state of its links */
    MU__VIEWS = 11,       /* on the chief: who holds which partition */
    MU__ACTORS = 12,      /* on every node: the office of the users' actors */
    MU__KEEPER = 14       /* where kept actors are kept */
};

enum {
    MU__FUNCTION_NAME_MAX = 63,
    MU__VARIABLE_NAME_MAX = 255,
    MU__ERROR_TEXT_MAX = 511,
    MU__TASK_NAME_MAX = 63,
    MU__VALUE_BYTES_MAX = 1 << 30,
    MU__PIECE_BYTES_MAX = 1 << 20, /* raw bytes of one variable piece */
    MU__CLOSURE_NAME_MAX = 127,
    MU__DETAIL_BYTES_MAX = 1023,                /* a stack, or the last lines of a log */
    MU__ERROR_DATA_MAX = (1 << 20) + (1 << 12), /* MU_ERROR_DATA_MAX of muster/node.h */
    MU__RECALL_MAX = 1024,                      /* attempts that one message names */
    MU__INPUTS_MAX = 65535, /* references among the arguments of one closure */
    MU__KEY_MAX = 1023,     /* of a key of the coordination service */
    MU__KEY_VALUE_MAX = 1 << 20,
    MU__TXN_BYTES_MAX = (2 << 20) + (1 << 16), /* of a transaction of keys, packed */
    MU__BARRIER_NAME_MAX = 255,
    MU__TASKS_TEXT_MAX = 1 << 16,    /* a set of tasks: see task_set.h */
    MU__TASKS_CONTENT_MAX = 1 << 26, /* the answer to a query about tasks, packed */
    MU__DEVICES_MAX = 1 << 16,       /* the devices of a task's machine, packed */
    MU__CLUSTER_TEXT_MAX = 1 << 20,  /* a cluster spec as JSON */
    MU__PEERS_CONTENT_MAX = 1 << 24, /* the state of a node's links, packed */
    MU__TABLE_DIM_LIMIT = 4096,      /* floats of a row of a table */
    MU__TABLE_OPEN_LIMIT = 512,      /* an open of a table, packed */
    MU__TABLE_STATE_BYTES = 64,      /* what a part of a table knows besides rows */
    MU__LOOKUP_SPAN_BYTES = 16,
    MU__FRAME_WRITES_MAX = 1024, /* writes of one EFFECT_WRITES, and answers */
    MU__FRAME_HEAD_BYTES = 64,
    MU__ADDRESS_MAX = 319 /* of a task, as a URL */
};

/* In CLIENT_LOST, in the place of a node. */
#define MU__CLIENTS_ALL UINT32_MAX
#define MU__CLIENTS_NONE (UINT32_MAX - 1)

/* Of the view service (actors/views/): who holds each partition; and its directory. */
#define MU__KEY_VIEWS MU__KEY_PARTITIONS "/views"
#define MU__KEY_PARTITIONS "muster/partitions"

/* Options of a closure, in `flags` of SCHEDULE and RUN. */
enum mu__closure_flag {
    MU__CLOSURE_ONCE = 1,       /* its writes are applied once, however often it runs */
    MU__CLOSURE_KEEP = 2,       /* the result stays on the worker until it is released */
    MU__CLOSURE_NO_BACKUP = 4,  /* it never has two attempts at a time */
    MU__CLOSURE_BUILD = 8,      /* RUN: builds the per-worker value `closure`; the result
                                   stays on this worker under that number */
    MU__CLOSURE_OWN_ERROR = 16, /* SUBMIT only: its error goes to the future, not to the
                                   session */
    MU__CLOSURE_HOLDS = 32      /* SUBMIT only: `inputs` are pointers, see
                                   actors/client/holds.h */
};

/* Priorities are 0, the most urgent, to 7. A message has priority + 1; 0 is the
 * default. */
enum { MU__PRIORITIES = 8, MU__PRIORITY_DEFAULT = 4 };

/* Set in the numbers of per-worker values, and never in those of closures: workers keep
 * per-worker values and pinned results under these numbers. */
#define MU__PER_WORKER_BIT (UINT64_C(1) << 63)

/* The queries of TASKS_GET. */
enum mu__tasks_what {
    MU__TASKS_STATES,  /* tasks, their states, errors, incarnations */
    MU__TASKS_DEVICES, /* the devices of their machines */
    MU__TASKS_WAIT,    /* STATES, once all tasks of the set are connected */
    MU__TASKS_WATCH,   /* STATES, once their version has changed */
    MU__TASKS_ALIVE,   /* the connected tasks of the set, once each of them has sent
                          this query, too */
    MU__TASKS_ACTORS   /* the actors that have names; not about tasks */
};

/* What a message says of a standstill; of an int64_t. */
#define MU__BLOCKED_WORKERS                                                           \
    "all threads of %" PRId64 " worker(s) run functions that have closures of their " \
    "own outstanding: who waits for these needs one more thread (option threads)"

/* What a REPLICA_NEWS says of the backup or the learner in a view. */
enum mu__replica_fate {
    MU__REPLICA_LOST = 1, /* it cannot be reached */
    MU__REPLICA_LEVEL,    /* the learner has all: it may be the backup */
    MU__REPLICA_DIVERGED, /* its sum differs: it must be filled anew */
    MU__REPLICA_READY,    /* the backup has all, and nothing more will come: it may be
                             the primary */
    MU__REPLICA_SPARE     /* what the primary got in a handover is safe without it */
};

/* The room that a client lacks at the chief: bits. */
enum mu__room_lack { MU__LACKS_CLOSURES = 1, MU__LACKS_BYTES = 2 };

/* How a key is put: bits. */
enum mu__put_flag {
    MU__PUT_OVERWRITE = 1, /* without it the key must not exist */
    MU__PUT_COMPARE = 2,   /* `revision` must be the key's */
    MU__PUT_LEASE = 4      /* the key is deleted when the task that puts it ends */
};

/* What a write does; the numbers are part of the wire format. */
enum mu__write_operation {
    MU__WRITE_ASSIGN = 1, /* replace; in pieces, in order, as one transfer */
    MU__WRITE_ZERO = 2,   /* replace by zeros; no data */
    MU__WRITE_ADD = 3,
    MU__WRITE_GRADIENT = 4, /* by a rule (actors/ps/slots/slots.h) */
    MU__WRITE_ABANDON = 6,  /* forget a transfer that was begun, a creation, or (variable
                               0) an open that waits; no answer */
    MU__WRITE_COMMIT = 7,   /* the creator's: shard 0 has its content too; no data, and
                               not counted as a write */
    MU__WRITE_TABLE_OPEN = 48, /* these: of tables (tables/table_writes.h), in batches */
    MU__WRITE_TABLE_PUSH = 49,
    MU__WRITE_TABLE_DELETE = 50,
    MU__WRITE_TABLE_EXPIRE = 51,
    MU__WRITE_TABLE_CLEAR = 52,
    MU__WRITE_TABLE_ROWS = 53,
    MU__WRITE_TABLE_INSERT = 54
};

static inline bool mu__write_is_of_table(uint32_t operation)
{
    return operation >= MU__WRITE_TABLE_OPEN && operation <= MU__WRITE_TABLE_INSERT;
}

#endif
