/* Actors with names: who has which, as a part of the coordination service.
 *
 *     name_requests.c   messages of offices
 *     name_owners.c     placing, starting again, leases
 *     name_records.c    the names in the store
 *     name_loads.c      how many messages wait for them
 *     name_keeping.c    what is kept of those without a record is dropped
 *     name_listing.c    names as values, for those who look
 *
 * A name that was made has a record among the service's own keys. When it is given to a
 * process, the record is written, and the revision that it has then is the epoch of the
 * owner. A process has its names as long as it holds its lease: it renews it by NAME_HOLD
 * from the loop that its actors run on. */
#ifndef MU_COORDINATION_NAMES_H
#define MU_COORDINATION_NAMES_H

#include "actors/coordination/internal.h"
#include "actors/names/name_rules.h"
#include "runtime/base/crc32c.h"
#include "runtime/base/text_map.h"

#ifdef MUSTER_TINY
enum { COORD_NAMES_MAX = 64 };
#else
enum { COORD_NAMES_MAX = 1 << 16 };
#endif

enum {
    COORD_NAME_LEASE_MIN_MS = 300, /* reconnect_ms is the lease, within these */
    COORD_NAME_LEASE_MAX_MS = 10000,
    COORD_NAME_WORDS = 256
};

/* A process that has an office. */
struct name_host {
    uint64_t incarnation;
    char type[16];
    uint32_t index;
    uint32_t node; /* valid while it is up */
    bool is_up;    /* it has offered its types over a link that is up */
    bool drains;
    bool holds;     /* its lease is not over */
    bool has_loads; /* some of its names have a mailbox that is not empty */
    struct mu__view types;
    uint64_t renewed_ms;
    struct mu__list names; /* struct coord_name */
    uint32_t actors;
    uint32_t starting;
};

/* A node that is told of a name. */
struct name_follower {
    struct mu__list_node node;
    uint32_t at;
};

/* What a name was made with. */
struct name_definition {
    char type[MU__ACTOR_NAME_MAX + 1];
    char task_type[16]; /* "": any */
    uint32_t flags;
    uint32_t mailbox_max;
    uint64_t mailbox_bytes_max;
    struct mu__name_limits limits;
    struct mu__buf *backing; /* of the arguments; NULL: none */
    struct mu__packed args;
    uint64_t maker; /* the process, and its token: a repeated NAME_MAKE is known */
    uint64_t maker_token;
};

/* As its owner has said last. */
struct name_load {
    uint32_t mailbox; /* messages that wait for it */
    uint64_t oldest_ms;
};

struct coord_name {
    struct mu__text_node named; /* first */
    bool is_born;               /* something is kept of it (MU_ACTOR_KEPT) */
    bool is_made;               /* else it is only followed */
    bool is_starting;           /* at its owner */
    bool is_stopping;
    bool is_waiting;  /* it is in the list of those without an owner */
    bool is_reported; /* by its owner, in the session that it begins */
    enum mu__name_phase state;
    struct name_definition definition;
    uint64_t epoch;
    uint64_t made;           /* the revision: epochs of its owners are higher, and those
                                of who had the name before lower */
    struct name_host *owner; /* NULL: none */
    uint32_t actor;
    struct mu__list_node of_owner;
    struct mu__list_node waiting;
    uint64_t due_ms; /* not started before */
    struct mu__name_history history;
    uint32_t restarts; /* of all */
    struct name_load load;
    int code; /* of the last end */
    char why[COORD_NAME_WORDS];
    uint32_t stopper; /* who has asked for its end, and the token; 0: nobody */
    uint64_t stopper_token;
    struct mu__list followers;
    char text[MU__ACTOR_NAME_MAX + 1];
};

struct coord_names {
    struct mu__text_map names;
    uint32_t count;
    struct mu__map hosts; /* by incarnation */
    struct mu__list waiting;
    uint64_t placing_ms; /* when to look at `waiting`; UINT64_MAX: it is not known */
    uint64_t lease_ms;   /* no lease is over before */
    bool is_read;        /* the records of a former host */
    struct mu__crc32c crc;
};

int mu__coord_names_init(struct mu__ctx *ctx, struct coordination *c);
void mu__coord_names_done(struct coordination *c);

/* This host does not lead any more. */
void mu__coord_names_forget(struct coordination *c);
void mu__coord_names_tick(struct mu__ctx *ctx, struct coordination *c);
uint64_t mu__coord_names_due_ms(const struct coordination *c);
void mu__coord_names_node_down(struct coordination *c, uint32_t node);

/* The process of a task does not run any more: nothing answers at its address. */
void mu__coord_names_process_ended(struct mu__ctx *ctx, struct coordination *c,
                                   struct mu__view type, uint32_t index);

/* Handlers of NAME_..., of a host that leads. */
void mu__coord_names_hear(struct mu__ctx *ctx, struct coordination *c,
                          struct mu__msg *msg);

/* KEEP_CHECK. */
void mu__coord_names_on_keep_check(struct mu__ctx *ctx, void *state, struct mu__msg *msg);

/* All that were made, as a list of maps. NULL: out of memory. */
mu_value *mu__coord_names_list(struct mu__ctx *ctx, struct coordination *c);

/* ---- between the files of this folder ---- */

/* Find a name, or add one that is not made. NULL: there is none, or no room. */
struct coord_name *mu__coord_name_find(struct coordination *c, struct mu__view text);
struct coord_name *mu__coord_name_get(struct coordination *c, struct mu__view text);
void mu__coord_name_free(struct coordination *c, struct coord_name *name);

/* Read the records, once. */
void mu__coord_names_read(struct mu__ctx *ctx, struct coordination *c);

/* Write the record of a name; its revision goes to *ret_revision. */
int mu__coord_name_write(struct mu__ctx *ctx, struct coordination *c,
                         const struct coord_name *name, mu_error *ret_error,
                         uint64_t *ret_revision);

/* Write that it is born; its owner and epoch stay. */
int mu__coord_name_write_born(struct mu__ctx *ctx, struct coordination *c,
                              struct coord_name *name, mu_error *ret_error);
void mu__coord_name_delete(struct mu__ctx *ctx, struct coordination *c,
                           const struct coord_name *name);

/* Whether there is a record of this name, one that cannot be read, too. */
bool mu__coord_name_has_record(struct coordination *c, const char *name);

/* A process, known or new. NULL: out of memory. */
struct name_host *mu__coord_name_host(struct mu__ctx *ctx, struct coordination *c,
                                      uint64_t incarnation, const char *type,
                                      uint32_t index);

/* The name has this owner, which is starting it. */
void mu__coord_name_give(struct coord_name *name, struct name_host *host);

/* It is to be started, when `due_ms` is reached. */
void mu__coord_name_wait(struct coordination *c, struct coord_name *name,
                         uint64_t due_ms);

void mu__coord_name_unwait(struct coordination *c, struct coord_name *name);

/* The owner does not have it any more. */
void mu__coord_name_ended(struct mu__ctx *ctx, struct coordination *c,
                          struct coord_name *name, enum mu__name_end end, int code,
                          const char *why);

/* Forget it; followers stay. */
void mu__coord_name_unmake(struct mu__ctx *ctx, struct coordination *c,
                           struct coord_name *name);

void mu__coord_name_started(struct coord_name *name);

/* name_keeping.c: what is kept of this name without a record is dropped; all that is kept
 * is looked at. Once everything written before is safe. */
void mu__coord_name_drop_kept(struct mu__ctx *ctx, struct coordination *c,
                              struct mu__view text);
void mu__coord_names_review_kept(struct mu__ctx *ctx, struct coordination *c);

/* name_loads.c: what a process says of its mailboxes; of other names it is not heard. */
void mu__coord_names_loads(struct coordination *c, struct name_host *host,
                           struct mu__view loads);

/* Tell all followers; answer one request. */
void mu__coord_name_news(struct mu__ctx *ctx, struct coordination *c,
                         struct coord_name *name);
void mu__coord_name_answer(struct mu__ctx *ctx, struct coordination *c, uint32_t node,
                           uint64_t token, const struct coord_name *name,
                           const mu_error *error);

uint64_t mu__coord_names_lease(const struct coordination *c);

#endif
