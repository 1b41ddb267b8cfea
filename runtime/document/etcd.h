/* Requests to etcd's v3 JSON gateway, and its answers. Pure: runtime/kernel/http.h
 * carries them.
 *
 * Every request is a POST of a JSON object to one of the paths below. Keys and values are
 * base64, 64-bit numbers are text, and what is zero, false or empty is left out of
 * answers. docs/decisions/0010-etcd.md has what was measured. */
#ifndef MU_RUNTIME_DOCUMENT_ETCD_H
#define MU_RUNTIME_DOCUMENT_ETCD_H

#include "muster/error.h"
#include "runtime/base/build.h"
#include "runtime/base/view.h"

#define MU__ETCD_RANGE "/v3/kv/range"
#define MU__ETCD_TXN "/v3/kv/txn"
#define MU__ETCD_GRANT "/v3/lease/grant"
#define MU__ETCD_KEEP "/v3/lease/keepalive"
#define MU__ETCD_REVOKE "/v3/lease/revoke"
#define MU__ETCD_AUTHENTICATE "/v3/auth/authenticate"

/* ---- Requests ---- */

/* Each makes the whole body. Lease ids are at most INT64_MAX; 0 lets etcd choose. */
void mu__etcd_grant(struct mu__build *body, uint64_t lease, uint64_t ttl_s);
void mu__etcd_keep(struct mu__build *body, uint64_t lease);
void mu__etcd_revoke(struct mu__build *body, uint64_t lease);
void mu__etcd_authenticate(struct mu__build *body, struct mu__view user,
                           struct mu__view password);

/* Read the first `limit` (0: all) keys from `key` on and before `end`; `key` alone when
 * `end` is empty. */
void mu__etcd_range(struct mu__build *body, struct mu__view key, struct mu__view end,
                    uint64_t limit);

/* Read the key of such a range that was written last. */
void mu__etcd_range_newest(struct mu__build *body, struct mu__view key,
                           struct mu__view end);

/* A transaction is built in this order: begin, comparisons, then, the operations for when
 * all comparisons hold, else, those for when one does not, end. */
enum mu__etcd_target { MU__ETCD_CREATE, MU__ETCD_VERSION };

void mu__etcd_txn_begin(struct mu__build *body);
void mu__etcd_txn_compare(struct mu__build *body, enum mu__etcd_target target,
                          struct mu__view key, uint64_t number);
void mu__etcd_txn_then(struct mu__build *body);
void mu__etcd_txn_else(struct mu__build *body);
void mu__etcd_txn_end(struct mu__build *body);

/* Operations. Behind one of then and else no key may be put twice, or put and deleted. */
void mu__etcd_txn_put(struct mu__build *body, struct mu__view key, struct mu__view value,
                      uint64_t lease);
void mu__etcd_txn_delete(struct mu__build *body, struct mu__view key,
                         struct mu__view end);
void mu__etcd_txn_range(struct mu__build *body, struct mu__view key);

/* ---- Answers ---- */

struct mu__etcd_answer;

/* Parse the body of an HTTP response. An error that etcd reports is returned with its
 * code (the numbers are the same as ours) and its words in the message. A body that is
 * not etcd's, and one that there is no memory for, is -MU_EDATALOSS, or what `status`
 * means. */
int mu__etcd_answer_read(int status, const void *text, size_t size, mu_error *ret_error,
                         struct mu__etcd_answer **ret_answer);
void mu__etcd_answer_free(struct mu__etcd_answer *answer);

/* All that follow return -MU_EDATALOSS when their part of the answer is malformed. */

/* The revision of the whole store at the time of the answer. */
int mu__etcd_revision(const struct mu__etcd_answer *answer, mu_error *ret_error,
                      uint64_t *ret_revision);

/* The Raft term of the answer. It changes with each election, after which all leases have
 * their whole TTL again. 0: the answer has none. */
int mu__etcd_term(const struct mu__etcd_answer *answer, mu_error *ret_error,
                  uint64_t *ret_term);

int mu__etcd_granted(const struct mu__etcd_answer *answer, mu_error *ret_error,
                     uint64_t *ret_lease, uint64_t *ret_ttl_s);

/* From the answer to mu__etcd_keep. *ret_ttl_s is 0 when the lease has ended. */
int mu__etcd_lease_ttl(const struct mu__etcd_answer *answer, mu_error *ret_error,
                       uint64_t *ret_ttl_s);

/* What an error means for the login: the token has expired; etcd requires a user and the
 * request had none; etcd has no users, so none is needed. */
bool mu__etcd_needs_new_token(int code, const mu_error *error);
bool mu__etcd_needs_user(const mu_error *error);
bool mu__etcd_lacks_users(const mu_error *error);

/* Remove from the error of a login all words but those that etcd is known to use: a
 * server or proxy may repeat the request in its answer, and so the password. */
void mu__etcd_hide(mu_error *error);

/* Write `before` and the token of an answer to authenticate into `out` (`size` bytes), as
 * a line of an HTTP header. A token that cannot stand in one is -MU_EDATALOSS. */
int mu__etcd_token(const struct mu__etcd_answer *answer, mu_error *ret_error,
                   const char *before, char *out, size_t size);

/* Whether all comparisons held. */
int mu__etcd_succeeded(const struct mu__etcd_answer *answer, mu_error *ret_error,
                       bool *ret_succeeded);

struct mu__etcd_entry {
    struct mu__view key;
    struct mu__view value;
    uint64_t create_revision;
    uint64_t mod_revision;
    uint64_t version;
    uint64_t lease;
};

/* An iterator over the entries of a range. */
struct mu__etcd_entries {
    void *next;     /* the cJSON item of the next entry; NULL at the end */
    bool more;      /* the request's limit has left entries out */
    uint64_t count; /* keys of the whole range */
};

/* Begin with the entries of an answer to a range, or of a transaction's operation number
 * `at` (from 0), which was a range. */
int mu__etcd_ranged(const struct mu__etcd_answer *answer, mu_error *ret_error,
                    struct mu__etcd_entries *ret_entries);
int mu__etcd_txn_ranged(const struct mu__etcd_answer *answer, size_t at,
                        mu_error *ret_error, struct mu__etcd_entries *ret_entries);

/* Take the next entry: 1, or 0 when there is none. Views point into the answer. Each
 * entry can be taken once. */
int mu__etcd_next_entry(struct mu__etcd_entries *entries, mu_error *ret_error,
                        struct mu__etcd_entry *ret_entry);

#endif
