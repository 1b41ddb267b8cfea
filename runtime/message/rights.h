/* The rights that the other end of a connection has proven. */
#ifndef MU_RUNTIME_RIGHTS_H
#define MU_RUNTIME_RIGHTS_H

#include <stdbool.h>
#include <stdint.h>

/* Each right has all those before it. */
enum mu__right {
    MU__RIGHT_NONE,
    MU__RIGHT_OBSERVE, /* status, metrics, explanations, reading keys */
    MU__RIGHT_USE,     /* schedule, variables, writing keys */
    MU__RIGHT_OPERATE, /* drain, stop, preempt, delete */
    MU__RIGHT_TASK,    /* be a task of the cluster */
    MU__RIGHT_ALL,     /* the cluster key itself: make other keys, too */
    MU__RIGHTS_END,
    MU__RIGHT_STORED = MU__RIGHTS_END, /* of records in files: no peer has it */
    MU__RIGHT_CHIEF = MU__RIGHT_TASK,  /* of messages that only the chief sends */
    MU__RIGHT_OBSERVE_READ = MU__RIGHT_OBSERVE, /* of reads, */
    MU__RIGHT_USE_READ = MU__RIGHT_USE
};

/* For each column of the message table: whether only the chief sends that. */
enum {
    MU__BY_CHIEF_NONE,
    MU__BY_CHIEF_OBSERVE = 0,
    MU__BY_CHIEF_USE = 0,
    MU__BY_CHIEF_OPERATE = 0,
    MU__BY_CHIEF_TASK = 0,
    MU__BY_CHIEF_STORED = 0,
    MU__BY_CHIEF_CHIEF = 1,
    MU__BY_CHIEF_OBSERVE_READ = 0,
    MU__BY_CHIEF_USE_READ = 0
};

/* And whether it is a read: a request whose answer may be far larger than itself, or one
 * that must not overtake a read. The reads of who does not read its answers wait. */
enum {
    MU__IS_READ_NONE,
    MU__IS_READ_OBSERVE = 0,
    MU__IS_READ_USE = 0,
    MU__IS_READ_OPERATE = 0,
    MU__IS_READ_TASK = 0,
    MU__IS_READ_STORED = 0,
    MU__IS_READ_CHIEF = 0,
    MU__IS_READ_OBSERVE_READ = 1,
    MU__IS_READ_USE_READ = 1
};

/* The task types of processes that are no tasks: a client, and a node that only offers a
 * cluster spec. No cluster has such tasks. */
#define MU__CLIENT_TYPE "client"
#define MU__OFFER_TYPE "offer"

/* The right that it takes to be of this type, and the most that one may do as that: who
 * has more, and says to be a client, sends what clients send. */
enum mu__right mu__right_to_be(const char *type);
enum mu__right mu__right_as(const char *type, enum mu__right right);

/* "observe"; "cluster" of MU__RIGHT_ALL. */
const char *mu__right_name(enum mu__right right);

/* MU__RIGHT_NONE: there is none of this name. */
enum mu__right mu__right_of(const char *name, unsigned size);

/* Proven by the credentials of a connection. */
struct mu__proof {
    enum mu__right right;
    bool names_task; /* a certificate that names its task: only that one */
    char task_type[16];
    uint32_t task_index;
};

#endif
