/* What the files of the key-values share: changes, reads, watches, transactions. */
#ifndef MU_ACTORS_COORDINATION_KEYS_INTERNAL_H
#define MU_ACTORS_COORDINATION_KEYS_INTERNAL_H

#include "actors/coordination/request_results.h"
#include "actors/coordination/internal.h"
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
    COORD_WAITS_MAX = 1 << 16,  /* gets that wait, and watches, of one node */
    COORD_HELD_MAX = 1 << 16,   /* reads, while the store may not be read */
    COORD_PAGE_ITEMS = 1000,    /* of a list */
    COORD_PAGE_BYTES = 1 << 20, /* of its keys and values; one item may have more */
    COORD_SNAPSHOT_ITEMS = 1000,    /* that one watch is told in one tick */
    COORD_SNAPSHOT_BYTES = 1 << 18
};
#endif
enum { COORD_SNAPSHOT_PAGES = 8 };  /* of all watches in one tick */

struct coord_wait;
struct coord_reads;

struct coord_keys {
    struct mu__key_values *kv;
    struct mu__results *results;
    struct coord_reads *reads;
    struct mu__pool *pool;
    struct mu__msg *change;     /* the records that are being written, so that there is */
    struct mu__msg *result;     /* always memory for one */

    struct mu__map unproved;    /* owners of leases that were read from the store: whether
                                   they live is not known yet */
    bool proving;
    uint64_t prove_ms;          /* by mu__coord_clock: until then they may register */
};

/* -MU_EEXHAUSTED when so much waits for the store that nothing more is taken. */
int mu__coord_key_admit(const struct coordination *c, mu_error *ret_error);

/* Say that something was refused with this code: at once where it is for a bound of this
 * host, which has nothing to do with what is in the store. */
void mu__coord_key_send_refusal(struct mu__ctx *ctx, struct coordination *c,
                                uint32_t node, int code, struct mu__msg *msg);

/* What is kept under a key was changed just now: tell who waits and who watches. */
void mu__coord_reads_changed(struct mu__ctx *ctx, struct coordination *c,
                             const struct mu__key_value *entry);
void mu__coord_reads_deleted(struct mu__ctx *ctx, struct coordination *c,
                             struct mu__view key, uint64_t revision);
struct coord_reads *mu__coord_reads_new(uint64_t secret, struct mu__pool *pool);
void mu__coord_reads_free(struct coord_reads *reads);

/* Everything that waits, or what waits for a node, will be asked again. */
void mu__coord_reads_forget(struct coord_reads *reads);
void mu__coord_reads_node_down(struct coord_reads *reads, uint32_t node);
void mu__coord_reads_tick(struct mu__ctx *ctx, struct coordination *c);

/* The task at the other end of a link; NULL, and why nothing is done for it. */
struct mu__roster_task *mu__coord_key_requester(struct mu__ctx *ctx,
                                                struct coordination *c, uint32_t node,
                                                mu_error *ret_error);

/* Refuse what was asked about keys with KEY_DONE. */
void mu__coord_key_refuse(struct mu__ctx *ctx, struct coordination *c, uint32_t node,
                          uint64_t token, const mu_error *error);

/* Put what the entry says under `revision`; one that is the store's already is for the
 * service alone, and nobody who watches is told. */
int mu__coord_key_put(struct mu__ctx *ctx, struct coordination *c,
                      struct mu__key_value *entry, uint64_t revision,
                      mu_error *ret_error);

/* Tell the store, and those who wait or watch, of an entry that is in memory already. */
void mu__coord_key_changed(struct mu__ctx *ctx, struct coordination *c,
                           const struct mu__key_value *entry);

/* Whether a change that adds `bytes` of keys and values has room in the store. */
int mu__coord_key_check_room(struct mu__ctx *ctx, struct coordination *c, uint64_t bytes,
                             mu_error *ret_error);

/* Whether a program may change what is at a key. */
int mu__coord_key_check(struct mu__view key, mu_error *error);

/* Increase the number that a key has (`before`; NULL: it is not there, which counts as
 * 0): the entry, which has the key, gets value and owner. The value is in `text`.
 * -MU_EPRECONDITION, -MU_ERANGE with a message. */
enum { MU__NUMBER_BYTES = 20 };     /* "-9223372036854775808" */
int mu__coord_key_sum(const struct mu__key_value *before, int64_t by, mu_error *ret_error,
                      char text[MU__NUMBER_BYTES], struct mu__key_value *entry,
                      int64_t *ret_sum);

/* A change that is asked for: by whom, and where its result goes. */
struct coord_change {
    uint32_t node;
    uint64_t token;
    struct mu__roster_task *task;
    struct mu__results_agent *agent;
    struct mu__request_result result;
    mu_error error;
};

/* Whether a change is to be made now; if not, what is to be said has been. */
bool mu__coord_key_begin(struct mu__ctx *ctx, struct coordination *c,
                         const struct mu__msg *msg, uint64_t token, uint64_t done,
                         struct coord_change *a);

/* It was made, or (`code`) refused. */
void mu__coord_key_end(struct mu__ctx *ctx, struct coordination *c,
                       struct coord_change *a, uint64_t done, int code);

/* Delete an entry; its key is gone with it. And a key with all below it: how many. */
void mu__coord_key_delete(struct mu__ctx *ctx, struct coordination *c,
                          const struct mu__key_value *entry);
uint64_t mu__coord_key_delete_below(struct mu__ctx *ctx, struct coordination *c,
                                    struct mu__view key);

/* The keys that `owner` has leases of. */
void mu__coord_key_end_leases(struct mu__ctx *ctx, struct coordination *c,
                              uint64_t owner);

/* Write a STORE_RESULT. With `done` UINT64_MAX it makes void all results of the agent. */
void mu__coord_key_write_result(struct mu__ctx *ctx, struct coordination *c,
                                uint64_t agent, uint64_t done,
                                const struct mu__request_result *result);

/* The words name the key. */
int mu__coord_key_error(mu_error *error, int code, struct mu__view key,
                        const char *reason);

enum wait_kind { WAIT_GET, WAIT_WATCH, WAIT_WATCH_BELOW, WAIT_KINDS };

struct wait_list {
    struct coord_wait *first;
    struct coord_wait *last;
};

struct subject {
    struct wait_list waits[WAIT_KINDS];
    uint32_t count;
    uint32_t key_size;
    char key[];
};

/* A node, and what it waits for. */
struct key_reader {
    uint32_t node;
    struct mu__map waits;       /* by token */
};

struct coord_wait {
    uint64_t token;
    enum wait_kind kind;
    struct key_reader *reader;
    struct subject *subject;
    struct coord_wait *next;            /* in the subject's list of the kind */
    struct coord_wait *before;
    struct coord_wait *page_next;       /* of those whose snapshot is not whole */
    char *cursor;                       /* the last key that it was told; NULL: all */
    uint32_t cursor_size;
};

struct coord_reads {
    struct mu__pool *pool;
    uint64_t secret;                    /* agents choose tokens */
    struct mu__key_values *subjects;    /* a value is a pointer to a struct subject */
    struct mu__map readers;             /* by node + 1 */
    uint64_t counts[WAIT_KINDS];
    struct coord_wait *pages;           /* whose snapshot is not whole */
    struct coord_wait **pages_end;
    struct mu__msg *held;               /* reads that wait for the store */
    struct mu__msg **held_end;
    uint32_t held_count;
};

/* ---- key_waits.c ---- */

struct subject *mu__coord_key_find_subject(const struct coord_reads *r,
                                           struct mu__view key);
void mu__coord_key_drop_subject(struct coord_reads *r, struct subject *subject);
struct mu__view mu__coord_key_key_of(const struct coord_wait *wait);
void mu__coord_key_leave_pages(struct coord_reads *r, struct coord_wait *wait);

/* It is in its reader's map no more. */
void mu__coord_key_free_wait(struct coord_reads *r, struct coord_wait *wait);
void mu__coord_key_end_wait(struct coord_reads *r, struct coord_wait *wait);

/* -MU_EEXISTS: this was asked before, and waits. */
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

/* The next page of the watch that has waited for the longest time. */
void mu__coord_key_next_page(struct mu__ctx *ctx, struct coordination *c);

/* Asked again it begins again: its agent has not taken what it was told since. */
void mu__coord_key_watch(struct mu__ctx *ctx, struct coordination *c,
                         const struct mu__msg *msg);

#endif
