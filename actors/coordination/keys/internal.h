/* What the files of the key-values share: changes, reads, watches, transactions. */
#ifndef MU_ACTORS_COORDINATION_KEYS_INTERNAL_H
#define MU_ACTORS_COORDINATION_KEYS_INTERNAL_H

#include "actors/coordination/internal.h"
#include "actors/coordination/request_results.h"
#include "runtime/base/map.h"

#ifdef MUSTER_TINY
enum {
    COORD_WAITS_MAX = 64,
    COORD_HELD_MAX = 64,
    COORD_PAGE_ITEMS = 4,
    COORD_PAGE_BYTES = 1 << 10,
    COORD_SNAPSHOT_ITEMS = 4,
    COORD_SNAPSHOT_BYTES = 1 << 10
};
#else
enum {
    COORD_WAITS_MAX = 1 << 16,   /* waiting gets and watches of one node */
    COORD_HELD_MAX = 1 << 16,    /* reads, while the store may not be read */
    COORD_PAGE_ITEMS = 1000,     /* of a list */
    COORD_PAGE_BYTES = 1 << 20,  /* of its keys and values; one item may have more */
    COORD_SNAPSHOT_ITEMS = 1000, /* sent to one watch in one tick */
    COORD_SNAPSHOT_BYTES = 1 << 18
};
#endif
enum {
    COORD_SNAPSHOT_PAGES = 8, /* of all watches in one tick, */
    COORD_SNAPSHOT_LOOKS = 64 /* after looking at so many */
};

struct coord_wait;
struct coord_reads;

struct coord_keys {
    struct mu__key_values *kv;
    struct mu__results *results;
    struct coord_reads *reads;
    struct mu__pool *pool;
    struct mu__msg *change; /* reused for each record, so that writing one takes no */
    struct mu__msg *result; /* memory */

    struct mu__map unproved; /* owners of leases that were read from the store, and
                                have not registered here yet */
    bool proving;
    uint64_t prove_ms; /* by mu__coord_clock: their deadline to register */
};

/* -MU_EEXHAUSTED when too many messages wait for the store. */
int mu__coord_key_admit(const struct coordination *c, mu_error *ret_error);

/* Send a refusal with this code: at once when it is for a bound of this host, which does
 * not depend on the store. */
void mu__coord_key_send_refusal(struct mu__ctx *ctx, struct coordination *c,
                                uint32_t node, int code, struct mu__msg *msg);

/* A key was just changed or deleted: tell the gets and watches that wait for it. */
void mu__coord_reads_changed(struct mu__ctx *ctx, struct coordination *c,
                             const struct mu__key_value *entry);
void mu__coord_reads_deleted(struct mu__ctx *ctx, struct coordination *c,
                             struct mu__view key, uint64_t revision);
struct coord_reads *mu__coord_reads_new(uint64_t secret, struct mu__pool *pool);
void mu__coord_reads_free(struct coord_reads *reads);

/* Forget all waits, or those of a node: the requests will be repeated. */
void mu__coord_reads_forget(struct coord_reads *reads);
void mu__coord_reads_node_down(struct coord_reads *reads, uint32_t node);
void mu__coord_reads_tick(struct mu__ctx *ctx, struct coordination *c);

/* Try held reads and unfinished snapshots again in `delay_ms` at the latest. */
void mu__coord_reads_try_within(struct mu__ctx *ctx, struct coordination *c,
                                uint64_t delay_ms);

/* The CONNECTED task at the other end of a link; NULL with an error: there is none. */
struct mu__roster_task *mu__coord_key_requester(
    struct mu__ctx *ctx, struct coordination *c, uint32_t node, mu_error *ret_error);

/* Refuse a request with KEY_DONE. */
void mu__coord_key_refuse(struct mu__ctx *ctx, struct coordination *c, uint32_t node,
                          uint64_t token, const mu_error *error);

/* Put the entry under `revision`; with the present revision (of the service's own keys
 * only) watches are not told. */
int mu__coord_key_put(struct mu__ctx *ctx, struct coordination *c,
                      struct mu__key_value *entry, uint64_t revision,
                      mu_error *ret_error);

/* Tell the store, gets and watches of an entry that is in memory already. */
void mu__coord_key_changed(struct mu__ctx *ctx, struct coordination *c,
                           const struct mu__key_value *entry);

/* Whether a change by `task` that adds `bytes` of keys and values has room in the store.
 * The last eighth of what there may be in memory is kept for the cluster's tasks: clients
 * cannot take it. */
int mu__coord_key_check_room(struct mu__ctx *ctx, struct coordination *c,
                             const struct mu__roster_task *task, uint64_t bytes,
                             mu_error *ret_error);

/* Whether a program may change a key: in normal form, and not the service's own. */
int mu__coord_key_check(struct mu__view key, mu_error *error);

/* Increase the number that a key has (`before`; NULL: it is not there, which counts as
 * 0): the entry, which has the key, gets value and owner. The value is in `text`.
 * -MU_EPRECONDITION, -MU_ERANGE with a message. */
enum { MU__NUMBER_BYTES = 20 }; /* "-9223372036854775808" */
int mu__coord_key_sum(const struct mu__key_value *before, int64_t by, mu_error *ret_error,
                      char text[MU__NUMBER_BYTES], struct mu__key_value *entry,
                      int64_t *ret_sum);

/* The request of a change: its task, and where its result is kept and sent. */
struct coord_change {
    uint32_t node;
    uint64_t token;
    struct mu__roster_task *task;
    struct mu__results_agent *agent;
    struct mu__request_result result;
    mu_error error;
};

/* Whether a change is to be made now; if not, it was answered or has been before. */
bool mu__coord_key_begin(struct mu__ctx *ctx, struct coordination *c,
                         const struct mu__msg *msg, uint64_t token, uint64_t done,
                         struct coord_change *a);

/* The change was made, or (`code`) refused: keep and send its result. */
void mu__coord_key_end(struct mu__ctx *ctx, struct coordination *c,
                       struct coord_change *a, uint64_t done, int code);

/* Delete an entry, which is void then. */
void mu__coord_key_delete(struct mu__ctx *ctx, struct coordination *c,
                          const struct mu__key_value *entry);

/* Delete the keys that `owner` has leases of. */
void mu__coord_key_end_leases(struct mu__ctx *ctx, struct coordination *c,
                              uint64_t owner);

/* Write a STORE_RESULT. `done` UINT64_MAX voids all results of the agent. */
void mu__coord_key_write_result(struct mu__ctx *ctx, struct coordination *c,
                                uint64_t agent, uint64_t done,
                                const struct mu__request_result *result);

/* The error "key KEY `reason`"; returns `code`. */
int mu__coord_key_error(mu_error *error, int code, struct mu__view key,
                        const char *reason);

enum wait_kind { WAIT_GET, WAIT_WATCH, WAIT_WATCH_BELOW, WAIT_KINDS };

/* A key, or directory, that gets or watches wait for. */
struct subject {
    struct mu__list waits[WAIT_KINDS];
    uint32_t count;
    uint32_t key_size;
    char key[];
};

/* A node with waits. */
struct key_reader {
    uint32_t node;
    struct mu__map waits; /* by token */
};

/* A get that waits, or a watch. */
struct coord_wait {
    uint64_t token;
    enum wait_kind kind;
    struct key_reader *reader;
    struct subject *subject;
    struct mu__list_node link;      /* in the subject's list of the kind */
    struct mu__list_node page_link; /* in `pages`, while it has a cursor */
    char *cursor;                   /* the last key of the snapshot that was sent;
                                       NULL: all were */
    uint32_t cursor_size;
};

struct coord_reads {
    struct mu__pool *pool;
    uint64_t secret;                 /* agents choose tokens */
    struct mu__key_values *subjects; /* a value is a pointer to a struct subject */
    struct mu__map readers;          /* by node + 1 */
    uint64_t counts[WAIT_KINDS];
    struct mu__list pages; /* watches with an unfinished snapshot */
    struct mu__msg *held;  /* reads that wait for the store */
    struct mu__msg **held_end;
    uint32_t held_count;
    uint64_t again_ms; /* when pages and held reads are tried again */
};

/* ---- key_waits.c ---- */

struct subject *mu__coord_key_find_subject(const struct coord_reads *r,
                                           struct mu__view key);
void mu__coord_key_drop_subject(struct coord_reads *r, struct subject *subject);
struct mu__view mu__coord_key_key_of(const struct coord_wait *wait);
void mu__coord_key_leave_pages(struct coord_reads *r, struct coord_wait *wait);

/* Free a wait that is not in its reader's map any more; end one that is. */
void mu__coord_key_free_wait(struct coord_reads *r, struct coord_wait *wait);
void mu__coord_key_end_wait(struct coord_reads *r, struct coord_wait *wait);

/* -MU_EEXISTS: a wait of this token is there already. */
int mu__coord_key_add_wait(struct coord_reads *r, uint32_t node, uint64_t token,
                           enum wait_kind kind, struct mu__view key, mu_error *error,
                           struct coord_wait **ret_wait);
struct coord_wait *mu__coord_key_find_wait(const struct coord_reads *r, uint32_t node,
                                           uint64_t token);

/* ---- key_watches.c ---- */

void mu__coord_key_send_value(struct mu__ctx *ctx, struct coordination *c, uint32_t node,
                              uint64_t token, const struct mu__key_value *entry);
void mu__coord_key_refuse_watch(struct mu__ctx *ctx, struct coordination *c,
                                uint32_t node, uint64_t token, const mu_error *error);
void mu__coord_key_refuse_list(struct mu__ctx *ctx, struct coordination *c, uint32_t node,
                               uint64_t token, const mu_error *error);

/* Send a page to each of the watches that have waited longest for one, up to
 * COORD_SNAPSHOT_PAGES, and whose nodes are not behind. False: to none. */
bool mu__coord_key_next_pages(struct mu__ctx *ctx, struct coordination *c);

/* KEY_WATCH; a repeated one begins anew, with a new snapshot. */
void mu__coord_key_watch(struct mu__ctx *ctx, struct coordination *c,
                         const struct mu__msg *msg);

#endif
