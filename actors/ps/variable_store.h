/* The variables of one parameter server: shards by name and by id, who waits for their
 * initial content, staged assigns, versions. Plain data: no I/O, no clock. The actor
 * (ps.h) feeds it with requests and sends the answers.
 *
 * The first opener of a shard creates it, and owes its initial content: an ASSIGN of all
 * its bytes, or ZERO. Until then other openers wait. When the creator gives up (ABANDON)
 * or is lost, the next opener that waits becomes the creator; when none waits, the shard
 * is removed. Openers that never create (`existing`) wait for one that does.
 *
 * Shard 0 of a variable decides about all: its creator creates the others too, and fills
 * it last. So shard 0 may be used once it has its content; the others, which may be
 * filled long before, once their creator has seen that (COMMIT), or, if it was lost, once
 * an opener says that it has (`existing`). */
#ifndef MU_ACTORS_VARIABLE_STORE_H
#define MU_ACTORS_VARIABLE_STORE_H

#include "actors/messages/limits.h"
#include "actors/ps/shape.h"
#include "runtime/kernel/pid.h"

/* Bounds. A request beyond one is refused with -MU_EEXHAUSTED, naming it. */
struct mu__store_limits {
    uint64_t bytes_max; /* contents, slots and staged pieces together;
                           one replaced content is kept besides */
    uint32_t variables_max;
    uint32_t waiting_max;        /* openers that wait for a shard or its content */
    uint32_t transfers_node_max; /* staged assigns of one node */
    uint64_t *bytes_used;        /* of several stores together; NULL: this one alone */
    uint64_t copies_max;         /* bytes that snapshots copy; 0: as bytes_max */
    uint32_t snapshots_max;      /* open ones */
    struct mu__snapshot_usage *snapshots; /* as bytes_used */
    struct mu__block_pages *pages;        /* for rows of tables; NULL: the heap */
};

extern const struct mu__store_limits mu__store_limits_default;

struct mu__variable_store;
struct mu__table_set;

/* `limits` is copied. `incarnation` is a random number of this life of the server: ids
 * follow from it, so that an id of a former life is unknown. NULL when out of memory. */
struct mu__variable_store *mu__store_new(const struct mu__store_limits *limits,
                                         uint64_t incarnation);
void mu__store_free(struct mu__variable_store *store);

/* The requester of an open, and its token for the answer. */
struct mu__shard_requester {
    mu__pid pid;
    uint64_t token;
};

struct mu__store_open {
    struct mu__view name;
    struct mu__shape shape;
    uint32_t shard;
    uint64_t bytes; /* of the shard, as the opener computed it */
    struct mu__shard_requester requester;
    bool existing;     /* never creates it; of a shard but 0: has found shard 0 with
                          its content */
    uint64_t replaces; /* the shard with this id is dropped, and made anew by the
                          requester; 0: none */
    uint64_t creation; /* of a shard but 0: the number that the server of shard 0
                          gave to this creation of the variable; 0: not known */
};

/* The answer to an open. */
struct mu__store_opened {
    struct mu__shard_requester requester;
    int code;           /* 0; -MU_ECANCELLED after ABANDON; -MU_EPRECONDITION when
                           it was created otherwise than it was waited for;
                           -MU_EAGAIN: no answer yet, but a note that the shard does
                           not exist */
    const char *reason; /* for the code; static */
    uint64_t id;
    bool created;      /* the requester owes the content, as transfer `token` */
    uint64_t creation; /* of shard 0, if it was created: see mu__store_open */
    uint32_t shards;   /* -MU_EPRECONDITION: its number of shards, if only that
                          differs; 0: more does */
};

/* Open a shard, creating it when there is none. On success an answer follows from
 * mu__store_next_opened: at once, or when the content is there. Before it there may be
 * notes (-MU_EAGAIN), one each time that the shard has no creator; out of memory, one may
 * be missing. -MU_EINVALID (name, shape, size), -MU_ERANGE (shards, bytes),
 * -MU_EPRECONDITION (another shape), -MU_EEXHAUSTED, -MU_ENOMEM. */
int mu__store_open(struct mu__variable_store *store, const struct mu__store_open *request,
                   mu_error *ret_error);

/* The number of shards of the existing variable, if nothing else differs from the
 * requested shape; 0: more differs, or there is none. */
uint32_t mu__store_shards(const struct mu__variable_store *store,
                          const struct mu__store_open *request);

/* Take out the next answer that is due, false when there is none. */
bool mu__store_next_opened(struct mu__variable_store *store,
                           struct mu__store_opened *ret_opened);

struct mu__store_read {
    uint64_t id;
    uint64_t offset;
    uint32_t size; /* 0 asks for the version alone */
};

/* Read a part of a shard; `ret_data` is borrowed until the next call with the store.
 * -MU_ENOTFOUND (id), -MU_ERANGE, -MU_EPRECONDITION (no content yet). */
int mu__store_read(struct mu__variable_store *store, const struct mu__store_read *request,
                   mu_error *ret_error, struct mu__view *ret_data, uint64_t *ret_version);

/* Of a shard; 0: there is none. */
uint64_t mu__store_version(const struct mu__variable_store *store, uint64_t id);

struct mu__store_write {
    uint64_t id;
    uint32_t operation;
    uint64_t transfer; /* the writer's number; pieces of one ASSIGN share it */
    uint64_t offset;
    struct mu__view data;
    struct mu__view rule; /* of a gradient, packed (rules/rules.h) */
    mu__pid writer;
    const struct mu__store_write *next; /* of a batch; NULL: none follows */
};

/* Apply a write. The version counts the writes that reached the end of the shard.
 * -MU_ENOTFOUND (id), -MU_EINVALID (operation, dtype, alignment to elements), -MU_ERANGE
 * (offset, size), -MU_EPRECONDITION (no content yet, and not its creator), -MU_EABORTED
 * (a piece that does not follow the one before: the transfer is forgotten),
 * -MU_EEXHAUSTED, -MU_ENOMEM. */
int mu__store_write(struct mu__variable_store *store,
                    const struct mu__store_write *request, mu_error *ret_error,
                    uint64_t *ret_version);

/* The tables of this store. */
struct mu__table_set *mu__store_tables(struct mu__variable_store *store);

/* Whether all writes of a batch could be applied now: ASSIGN (of a part too, which
 * becomes visible at once), ADD, GRADIENT, those to rows, and TABLE_.... Gets the memory
 * that they need. Errors are those of mu__store_write. */
int mu__store_check_batch(struct mu__variable_store *store,
                          const struct mu__store_write *first, mu_error *ret_error);

/* Apply them all, in their order. To be called right after the check has returned 0; so
 * it cannot fail. */
void mu__store_apply_batch(struct mu__variable_store *store,
                           const struct mu__store_write *first);

/* A node is lost: drop what it has begun, and its opens that wait. */
void mu__store_node_down(struct mu__variable_store *store, uint32_t node);

/* Whether there is something for that to drop; and the same for all nodes. */
bool mu__store_has_node(const struct mu__variable_store *store, uint32_t node);
void mu__store_forget_nodes(struct mu__variable_store *store);

/* Of the shard's version, its slots' step, and a few elements of the range, as they are
 * now; or of what came of the last write to a table; 0: there is none, or no such
 * range. */
uint64_t mu__store_sample(const struct mu__variable_store *store, uint64_t id,
                          uint64_t offset, uint64_t size);

/* ---- A copy of a store (store_copy.c) ----
 * The shards are visited one after the other; those that are removed meanwhile are left
 * out, those that are made meanwhile come last. A visit may last: it is at one shard. */

struct mu__store_position {
    uint64_t serial;
    uint32_t creations;
};

struct mu__store_position mu__store_get_position(const struct mu__variable_store *store);
void mu__store_set_position(struct mu__variable_store *store,
                            struct mu__store_position position);

/* A shard with content. */
struct mu__store_shard {
    struct mu__view name;
    struct mu__shape shape;
    uint32_t shard;
    uint64_t id;
    uint64_t creation;
    uint64_t version;
    bool ready; /* false: its creator was lost before it said COMMIT */
    uint64_t bytes;
    const uint8_t *data;
    uint32_t rule; /* of its slots (slots/slots.h); 0: there are none */
    uint64_t step; /* their updates so far */
    uint64_t slots_bytes;
    const uint8_t *slots;
};

/* Begin a visit, or go on to the next shard; false: there is none. */
void mu__store_visit(struct mu__variable_store *store);
bool mu__store_visit_next(struct mu__variable_store *store,
                          struct mu__store_shard *ret_shard);

/* The shard of the visit as it is now; false: it was removed. */
bool mu__store_visited(const struct mu__variable_store *store,
                       struct mu__store_shard *ret_shard);

/* Add a shard and slots of zeros; `data` and `slots` are not looked at. */
int mu__store_put_shard(struct mu__variable_store *store,
                        const struct mu__store_shard *shard, mu_error *ret_error);

struct mu__store_bytes {
    uint64_t id;
    bool slots; /* or the content */
    uint64_t offset;
    struct mu__view data;
};

/* A shard that is unknown is fine: it was removed meanwhile. */
int mu__store_put_bytes(struct mu__variable_store *store,
                        const struct mu__store_bytes *bytes, mu_error *ret_error);

/* One shard, for the status. */
struct mu__store_info {
    const char *name;
    const struct mu__shape *shape;
    uint32_t shard;
    uint64_t bytes;
    uint64_t version;
    bool ready; /* has its initial content, and so do all */
    uint64_t reads;
    uint64_t writes;
    uint64_t bytes_read;
    uint64_t bytes_written;
    const char *rule; /* of its slots; "": there are none */
    uint64_t step;
    uint64_t nonfinite; /* gradients refused for NaN or infinity */
};

/* Calls `visit` for each shard, the oldest first. */
void mu__store_each(const struct mu__variable_store *store,
                    void (*visit)(void *user, const struct mu__store_info *info),
                    void *user);

/* Totals, for tests and status. */
struct mu__store_totals {
    uint64_t bytes;     /* as bounded by bytes_max */
    uint32_t variables; /* shards that exist, not ABSENT ones */
    uint32_t waiting;
    uint32_t transfers;
};

void mu__store_totals(const struct mu__variable_store *store,
                      struct mu__store_totals *ret_totals);

#endif
