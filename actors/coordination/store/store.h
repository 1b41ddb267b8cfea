/* Where the coordination service keeps what must outlive its host: key-values, the
 * outcomes of barriers, and the results of what agents asked. It is a list of changes
 * that is read once, when its holder begins, and then only written: the service answers
 * all requests from its memory.
 *
 *   memory    nothing is kept; another process begins with nothing
 *   journal   a file of this machine (journal.h, storage.h): survives the process, and
 *             with sync the machine
 *   etcd      etcd's v3 JSON gateway (runtime/kernel/http.h): the holder is elected
 *             there, and a former one can change nothing
 *
 * A store calls its owner's functions, never within the call that asked for it, unless
 * said otherwise. Loop thread only. */
#ifndef MU_ACTORS_STORE_H
#define MU_ACTORS_STORE_H

#include "runtime/kernel/http.h"
#include "runtime/kernel/kernel.h"
#include "runtime/kernel/storage.h"

struct mu__store {
    const struct mu__store_ops *ops;
};

/* Records are messages of the table: STORE_CHANGE and STORE_RESULT. What a former record
 * of the same key said is void, and so are results of an agent below the `done` of a
 * later one; its own may be below it, too: then there is no new one. */
struct mu__store_upcalls {
    void *owner;

    /* While it is read: each record that counts, in any order of keys, those of one key
     * or one agent in order. Nonzero ends the reading: the store is tried again later. */
    int (*visit)(void *owner, struct mu__msg *record);

    /* All was visited: this node holds the store, until `lost`. `epoch` is higher than
     * that of any holder before; `number` is of the content, drawn when it was new. */
    void (*held)(void *owner, struct mu__ctx *ctx, uint64_t epoch, uint64_t number);

    /* All that was written before the commit of that sequence number is safe. May be
     * called from within commit. */
    void (*committed)(void *owner, struct mu__ctx *ctx, uint64_t sequence);

    /* Not held any more; what was not committed may or may not be in the store. The store
     * goes on trying to be held again, and then visits everything anew. */
    void (*lost)(void *owner, struct mu__ctx *ctx, const char *reason);

    /* It is read from its begin on: what was visited before is void. */
    void (*reading)(void *owner);

    /* Why it is not held yet, when that is no usual wait: in words that may be shown. May
     * be NULL. */
    void (*trouble)(void *owner, struct mu__ctx *ctx, const char *reason);
};

/* How a store that is elsewhere is known, and how it knows us. */
struct mu__store_access {
    struct mu__http_tls tls;    /* for https */
    const char *user;           /* NULL: none */
    const char *password;
    size_t password_size;
};

struct mu__store_config {
    const char *location;           /* what stands behind the name: "", a path, URLs */
    const char *cluster_name;
    const char *task;               /* "/job:chief/task:0", for those who look at it */
    uint64_t incarnation;           /* of this node: random, not 0 */
    const struct mu__schema *schema;
    struct mu__pool *pool;
    struct mu__storage *storage;    /* journal: its file, open */
    struct mu__http *http;          /* etcd */
    const struct mu__store_access *access;  /* etcd; may be NULL. Outlives the store */
    uint32_t lease_ms;              /* etcd: a leader not heard for so long is replaced */
    struct mu__store_upcalls up;
};

struct mu__store_ops {
    /* Begin to read it, or to stand for election; `held` follows, in a tick at the
     * earliest, when that succeeds, and every failure is logged and tried again. */
    void (*start)(struct mu__store *store, struct mu__ctx *ctx);

    /* Add one record to the present batch. The message stays the caller's. While held.
     * -MU_EEXHAUSTED, -MU_ENOMEM, and what else writing may fail with: the batch is void
     * and `lost` follows. */
    int (*write)(struct mu__store *store, struct mu__ctx *ctx,
                 const struct mu__msg *record);

    /* Whether `bytes` more of records can be written, so that a change which has
     * no room is refused before it is made; what makes room, or ends something, has some
     * room of its own beyond. -MU_EEXHAUSTED says what is full. May be NULL. */
    int (*reserve)(struct mu__store *store, struct mu__ctx *ctx, uint64_t bytes,
                   mu_error *ret_error);

    /* End the batch; all of it counts, or nothing. `committed(sequence)` follows, in
     * order, several batches may be under way. */
    void (*commit)(struct mu__store *store, struct mu__ctx *ctx, uint64_t revision,
                   uint64_t sequence);

    /* Whether this node certainly holds the store now, so that what it reads from its
     * memory is what is there. */
    bool (*may_read)(struct mu__store *store, struct mu__ctx *ctx);

    /* About every 50 ms. */
    void (*tick)(struct mu__store *store, struct mu__ctx *ctx);

    /* HTTP_DONE of one of its requests; false: it is none of them. May be NULL. */
    bool (*heard)(struct mu__store *store, struct mu__ctx *ctx,
                  struct mu__http_request *request);

    /* Whether the content has become small against what is kept of it, so that it should
     * be written anew: the owner then calls rewrite, writes all that counts, and commits.
     * May be NULL. */
    bool (*needs_rewrite)(struct mu__store *store, uint64_t records);
    void (*rewrite)(struct mu__store *store, struct mu__ctx *ctx);

    /* Let go: the next holder need not wait. Nothing is called from then on. Frees it. */
    void (*close)(struct mu__store *store, struct mu__ctx *ctx);
};

/* A kind of store, by name. */
struct mu__store_kind {
    const char *name;
    bool has_location;  /* something stands behind its name */
    bool shared;        /* several tasks may stand for it; else it has one host */
    bool lasting;       /* what is in it survives its holder */
    int (*open)(const struct mu__store_config *config, mu_error *ret_error,
                struct mu__store **ret_store);
};

extern const struct mu__store_kind mu__store_memory;
extern const struct mu__store_kind mu__store_journal;
/* mu__store_etcd is in actors/coordination/store/etcd_store.h. */

/* Find a kind among those of a registry, which NULL ends: "memory", "journal:PATH",
 * "etcd:URL,URL" give the kind and what stands behind its name. -MU_EINVALID lists the
 * names that there are; one without the place that it needs, or with one that it does not
 * take, is wrong, too. */
int mu__store_find(const struct mu__store_kind *const *registry, const char *text,
                   mu_error *ret_error, const struct mu__store_kind **ret_kind,
                   const char **ret_location);

#endif
