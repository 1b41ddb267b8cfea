/* A transaction over several keys: comparisons, and the changes that are made if all of
 * them hold. Plain data.
 *
 * KEY_TXN has it as a value, a map of two lists: "if", a list of comparisons
 * [type, key, revision, value], and "do", a list of changes
 * [operation, flags, key, value, by]. */
#ifndef MU_ACTORS_COORDINATION_TRANSACTION_H
#define MU_ACTORS_COORDINATION_TRANSACTION_H

#include "muster/coordination.h"
#include "runtime/message/message.h"

struct mu__txn_check {
    int type; /* enum mu_kv_check_type */
    struct mu__view key;
    uint64_t revision;
    struct mu__view value;
};

struct mu__txn_change {
    int operation;  /* MU_KV_PUT, MU_KV_INCREMENT or MU_KV_DELETE */
    unsigned flags; /* MU_KV_LEASE */
    struct mu__view key;
    struct mu__view value;
    int64_t by;
};

/* The views point into `content`, or to the caller's memory. */
struct mu__txn {
    struct mu__txn_check checks[MU_KV_TRANSACTION_MAX];
    struct mu__txn_change changes[MU_KV_TRANSACTION_MAX];
    unsigned checks_count;
    unsigned changes_count;
    mu_value *content; /* of a transaction that was read; else NULL */
};

/* Check a transaction: keys in normal form, none of them changed twice or below a deleted
 * one, types, flags and bounds. -MU_EINVALID, or -MU_EEXHAUSTED beyond a bound; the
 * message names the comparison or change. */
int mu__txn_validate(const struct mu__txn *txn, mu_error *ret_error);

/* As a value to be packed; the caller's. NULL: out of memory. */
mu_value *mu__txn_write(const struct mu__txn *txn);

/* Read and validate a received transaction. mu__txn_free frees it. -MU_EINVALID,
 * -MU_EEXHAUSTED, -MU_ENOMEM; with a message. */
int mu__txn_read(const struct mu__packed *packed, mu_error *ret_error,
                 struct mu__txn **ret_txn);
void mu__txn_free(struct mu__txn *txn);

/* Whether a comparison holds for the entry of its key (NULL: there is none). 0, or
 * -MU_EPRECONDITION with a message that names the difference. */
struct mu__key_value;
int mu__txn_compare(const struct mu__txn_check *check, const struct mu__key_value *entry,
                    mu_error *ret_error);

#endif
