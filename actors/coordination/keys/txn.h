/* A transaction over several keys as it travels: comparisons, and the changes that are
 * made if all of them hold. Plain data.
 *
 * KEY_TXN has it as a value, a map of two lists: "if", a list of comparisons
 * [type, key, revision, value], and "do", a list of changes
 * [operation, flags, key, value, by]. */
#ifndef MU_ACTORS_COORDINATION_TRANSACTION_H
#define MU_ACTORS_COORDINATION_TRANSACTION_H

#include "muster/coordination.h"
#include "runtime/message/message.h"

struct mu__txn_check {
    int type;               /* enum mu_kv_check_type */
    struct mu__view key;
    uint64_t revision;
    struct mu__view value;
};

struct mu__txn_change {
    int operation;          /* MU_KV_PUT, MU_KV_INCREMENT or MU_KV_DELETE */
    unsigned flags;         /* MU_KV_LEASE */
    struct mu__view key;
    struct mu__view value;
    int64_t by;
};

/* Views point into `content`, or to what a program gave. */
struct mu__txn {
    struct mu__txn_check checks[MU_KV_TRANSACTION_MAX];
    struct mu__txn_change changes[MU_KV_TRANSACTION_MAX];
    unsigned checks_count;
    unsigned changes_count;
    mu_value *content;      /* of one that was read; else NULL */
};

/* Whether it can be asked for: keys in normal form, none of them changed twice or below
 * one that is deleted, types, flags and bounds. -MU_EINVALID, or -MU_EEXHAUSTED beyond a
 * bound; the message says which comparison or change. */
int mu__txn_validate(const struct mu__txn *txn, mu_error *ret_error);

/* As a value to be packed; the caller's. NULL: out of memory. */
mu_value *mu__txn_write(const struct mu__txn *txn);

/* Read one that somebody sent, and validate it. mu__txn_free frees it. -MU_EINVALID with
 * words, -MU_EEXHAUSTED, -MU_ENOMEM. */
int mu__txn_read(const struct mu__packed *packed, mu_error *ret_error,
                 struct mu__txn **ret_txn);
void mu__txn_free(struct mu__txn *txn);

/* Where a comparison looks: what its key has, or NULL when it is not there. 0, or
 * -MU_EPRECONDITION with a message that say what is there instead. */
struct mu__key_value;
int mu__txn_compare(const struct mu__txn_check *check, const struct mu__key_value *entry,
                    mu_error *ret_error);

#endif
