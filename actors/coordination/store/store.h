/* Stores of the coordination service, for the data that outlives its host: key-values,
 * outcomes of barriers, and results of requests. A store is a list of changes that is
 * read once, when its holder begins, and then only written: the service answers all
 * requests from its memory.
 *
 *   memory    nothing is kept
 *   journal   a file of this machine (journal.h, storage.h): survives the process, and
 *             with sync the machine
 *   etcd      etcd's v3 JSON gateway (runtime/kernel/http.h): the holder is elected
 *             there, and a former one can change nothing
 *
 * Upcalls are never made from within the operation that they answer, unless a comment
 * below tells otherwise. Loop thread only. */
#ifndef MU_ACTORS_STORE_H
#define MU_ACTORS_STORE_H

#include "runtime/kernel/http.h"
#include "runtime/kernel/kernel.h"
#include "runtime/kernel/storage.h"

struct mu__store {
    const struct mu__store_ops *ops;
};

/* Records are messages: STORE_CHANGE and STORE_RESULT. A record makes void the former
 * ones of the same key, and a result those of the same agent with tokens below its
 * `done`, possibly itself. */
struct mu__store_upcalls {
    void *owner;

    /* While it is read: each record that is not void, in any order of keys, those of one
     * key or one agent in order. Nonzero ends the reading: it is tried again later. */
    int (*visit)(void *owner, struct mu__msg *record);

    /* All was visited: this node holds the store, until `lost`. `epoch` is higher than
     * that of any former holder; `number` is the random one of the content. */
    void (*held)(void *owner, struct mu__ctx *ctx, uint64_t epoch, uint64_t number);

    /* All that was written before the commit of that sequence number is safe. May be
     * called from within commit. */
    void (*committed)(void *owner, struct mu__ctx *ctx, uint64_t sequence);

    /* Not held any more; uncommitted records may or may not be in the store. The store
     * tries to be held again, and then visits all records anew. */
    void (*lost)(void *owner, struct mu__ctx *ctx, const char *reason);

    /* It is read from its begin on: all records visited before are void. */
    void (*reading)(void *owner);

    /* Why it is not held yet, unless it just waits for another holder. May be NULL. */
    void (*trouble)(void *owner, struct mu__ctx *ctx, const char *reason);
};

/* TLS and credentials for a store that is reached over HTTP. */
struct mu__store_access {
    struct mu__http_tls tls; /* for https */
    const char *user;        /* NULL: none */
    const char *password;
    size_t password_size;
};

struct mu__store_config {
    const char *location; /* behind the name of the kind: "", a path, URLs */
    const char *cluster_name;
    const char *task;     /* "/job:chief/task:0", shown as the holder */
    uint64_t incarnation; /* of this node: random, not 0 */
    const struct mu__schema *schema;
    struct mu__pool *pool;
    struct mu__storage *storage;           /* journal: its file, open */
    struct mu__http *http;                 /* etcd */
    const struct mu__store_access *access; /* etcd; may be NULL. Outlives the store */
    uint32_t lease_ms; /* etcd: a leader silent for so long is replaced */
    struct mu__store_upcalls up;
};

struct mu__store_ops {
    /* Begin to read it, or to stand for election. On success `held` follows, in a tick at
     * the earliest; failures are logged and tried again. */
    void (*start)(struct mu__store *store, struct mu__ctx *ctx);

    /* Add one record, which stays the caller's, to the present batch. While held. After
     * -MU_EEXHAUSTED, -MU_ENOMEM or another error the batch is void and `lost`
     * follows. */
    int (*write)(struct mu__store *store, struct mu__ctx *ctx,
                 const struct mu__msg *record);

    /* Whether `bytes` more of records can be written, so that a change without room is
     * refused before it is made; for deletions and results some room is kept beyond.
     * -MU_EEXHAUSTED with a message. May be NULL. */
    int (*reserve)(struct mu__store *store, struct mu__ctx *ctx, uint64_t bytes,
                   mu_error *ret_error);

    /* End the batch; all of it counts, or nothing. `committed(sequence)` follows, in
     * order; several batches may be under way. */
    void (*commit)(struct mu__store *store, struct mu__ctx *ctx, uint64_t revision,
                   uint64_t sequence);

    /* Whether this node certainly holds the store now, so that its memory is up to
     * date. */
    bool (*may_read)(struct mu__store *store, struct mu__ctx *ctx);

    /* About every 50 ms. */
    void (*tick)(struct mu__store *store, struct mu__ctx *ctx);

    /* HTTP_DONE of a request; false: it is none of the store's. May be NULL. */
    bool (*heard)(struct mu__store *store, struct mu__ctx *ctx,
                  struct mu__http_request *request);

    /* Whether the store has so many void records that it should be rewritten: the owner,
     * which has `records`, then calls rewrite, writes them all, and commits. May be
     * NULL. */
    bool (*needs_rewrite)(struct mu__store *store, uint64_t records);
    void (*rewrite)(struct mu__store *store, struct mu__ctx *ctx);

    /* Let the store go, so that the next holder need not wait, and free it. No upcalls
     * follow. */
    void (*close)(struct mu__store *store, struct mu__ctx *ctx);
};

/* A kind of store, by name. */
struct mu__store_kind {
    const char *name;
    bool has_location; /* "NAME:LOCATION" */
    bool shared;       /* several tasks may stand for election; else it has one host */
    bool lasting;      /* persistent: the content survives its holder */
    int (*open)(const struct mu__store_config *config, mu_error *ret_error,
                struct mu__store **ret_store);
};

extern const struct mu__store_kind mu__store_memory;
extern const struct mu__store_kind mu__store_journal;
/* mu__store_etcd is in actors/coordination/store/etcd_store.h. */

/* Find the kind and location of "memory", "journal:PATH" or "etcd:URL,URL" among the
 * kinds of a registry, which NULL ends. -MU_EINVALID, with a list of the names: an
 * unknown name, or a location that is missing or not taken. */
int mu__store_find(const struct mu__store_kind *const *registry, const char *text,
                   mu_error *ret_error, const struct mu__store_kind **ret_kind,
                   const char **ret_location);

#endif
