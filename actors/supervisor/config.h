/* The configuration of a supervisor. */
#ifndef MU_ACTORS_SUPERVISOR_CONFIG_H
#define MU_ACTORS_SUPERVISOR_CONFIG_H

#include "actors/worker_types.h"
#include "muster/value.h"
#include "runtime/kernel/storage.h"

/* The journal is being read: so many bytes of so many are. `error` is NULL but in the
 * last call, where its code is 0 (it is in use from now on) or says why that cannot
 * be. */
typedef void (*mu__journal_news_fn)(void *owner, uint64_t bytes, uint64_t bytes_all,
                                    const mu_error *error);

/* Zero takes the default, where one is named. */
struct mu__supervisor_config {
    uint32_t window;               /* closures in flight at one worker; 0: by run times */
    uint32_t attempts_max;         /* workers that may be lost under one closure */
    uint32_t queue_max;            /* closures held, of all clients together */
    uint64_t queue_bytes_max;      /* of their arguments, all clients; 0: 1 GiB */
    uint32_t retries_max;          /* runs of a closure, whatever ended them; 0: 1000 */
    struct mu__worker_types types; /* task types that run closures; their tasks are
                                      expected from the start. None: "worker", with no
                                      tasks */
    uint64_t recovery_ms;          /* a worker away for longer is an error; 0: never */
    uint64_t start_delay_ms;       /* of worker i: i times this, */
    uint64_t start_delay_max_ms;   /* but at most this; 0: no cap */
    uint32_t server_failures;      /* reports of a failing server that are ignored */
    uint64_t server_failures_ms;   /* after which a report is forgotten; 0: 600000 */
    uint32_t timeouts;             /* DEADLINE results that are retried */
    bool unknown_is_worker;        /* an UNKNOWN result is the worker's failure */
    uint32_t backup_percent;       /* of the mean run time; 0: no backup attempts */
    uint64_t watchdog_ms;          /* 0: off */
    bool measure;                  /* collect timers */
    bool insecure;                 /* this node is; told in the status */
    struct mu__storage *journal;   /* NULL: none. Outlives the actor */
    mu__journal_news_fn journal_news; /* when the journal is not read at once: what
                                     comes of it; may be NULL */
    void *journal_owner;
    uint64_t journal_keep;                /* finished closures that it knows; 0: all */
    uint64_t journal_keep_ms;             /* and for how long; 0: for ever */
    mu_value *(*partitions)(void *owner); /* of the parameter servers, for the status;
                                     NULL: it has none */
    void *partitions_owner;
    uint64_t origin; /* random number of this life of the supervisor, which
                        its effects carry */
};

#endif
