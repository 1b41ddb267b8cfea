/* What is said to etcd's v3 JSON gateway, and what its answers mean. Pure: who carries it
 * there and back is runtime/kernel/http.h's business.
 *
 * Every request is a POST of a JSON object to one of the paths below. Keys and values are
 * base64, 64-bit numbers are text, and what is zero, false or empty is left out of
 * answers. docs/decisions/0010-etcd.md has what was measured. */
#ifndef MU_RESOLVER_ETCD_H
#define MU_RESOLVER_ETCD_H

#include "muster/error.h"
#include "runtime/base/build.h"
#include "runtime/base/view.h"

#define MU__ETCD_RANGE "/v3/kv/range"
#define MU__ETCD_TXN "/v3/kv/txn"
#define MU__ETCD_GRANT "/v3/lease/grant"
#define MU__ETCD_KEEP "/v3/lease/keepalive"
#define MU__ETCD_REVOKE "/v3/lease/revoke"
#define MU__ETCD_AUTHENTICATE "/v3/auth/authenticate"

enum {
    MU__ETCD_OPS_MAX = 128,         /* of a transaction, as etcd comes */
    MU__ETCD_BYTES_MAX = 1536 << 10 /* of a request in etcd's own form, as it comes */
};

/* ---- Requests ---- */

/* Each makes the whole body. Lease ids are at most INT64_MAX; 0 lets etcd choose. */
void mu__etcd_grant(struct mu__build *body, uint64_t lease, uint64_t ttl_s);
void mu__etcd_keep(struct mu__build *body, uint64_t lease);
void mu__etcd_revoke(struct mu__build *body, uint64_t lease);
void mu__etcd_authenticate(struct mu__build *body, struct mu__view user,
                           struct mu__view password);

/* The first `limit` (0: all) of the keys from `key` on and before `end`; of `key` alone
 * when `end` is empty. */
void mu__etcd_range(struct mu__build *body, struct mu__view key, struct mu__view end,
                    uint64_t limit);

/* Of the same keys the one that was written last. */
void mu__etcd_range_newest(struct mu__build *body, struct mu__view key,
                           struct mu__view end);

/* A transaction: begin, comparisons, then what happens when they all hold, and else what
 * happens when one does not, end. */
enum mu__etcd_target { MU__ETCD_CREATE, MU__ETCD_VERSION };

void mu__etcd_txn_begin(struct mu__build *body);
void mu__etcd_txn_compare(struct mu__build *body, enum mu__etcd_target target,
                          struct mu__view key, uint64_t number);
void mu__etcd_txn_then(struct mu__build *body);
void mu__etcd_txn_else(struct mu__build *body);
void mu__etcd_txn_end(struct mu__build *body);

/* Within then and else. No key may be put twice in one of them, or be put and deleted. */
void mu__etcd_txn_put(struct mu__build *body, struct mu__view key,
                      struct mu__view value, uint64_t lease);
void mu__etcd_txn_delete(struct mu__build *body, struct mu__view key,
                         struct mu__view end);
void mu__etcd_txn_range(struct mu__build *body, struct mu__view key);

/* ---- Answers ---- */

struct mu__etcd_answer;

/* Read what came with an HTTP status. When etcd says an error, that is the error: its
 * codes are ours, its words are part of the message. What is no answer of etcd's is
 * -MU_EDATALOSS, or what the status means. -MU_ENOMEM. */
int mu__etcd_answer_read(int status, const void *text, size_t size, mu_error *ret_error,
                         struct mu__etcd_answer **ret_answer);
void mu__etcd_answer_free(struct mu__etcd_answer *answer);

/* What follows reads parts of an answer: -MU_EDATALOSS when a part is not what it should
 * be. */

/* The revision of the whole store, of which this is the answer. */
int mu__etcd_revision(const struct mu__etcd_answer *answer, mu_error *ret_error,
                      uint64_t *ret_revision);

/* Which reign of a leader this answer is from: another one whenever etcd began anew, and
 * with each reign all leases have their whole time again. 0: it does not say. */
int mu__etcd_term(const struct mu__etcd_answer *answer, mu_error *ret_error,
                  uint64_t *ret_term);

int mu__etcd_granted(const struct mu__etcd_answer *answer, mu_error *ret_error,
                     uint64_t *ret_lease, uint64_t *ret_ttl_s);

/* *ret_ttl_s is 0 when there is no such lease any more. */
int mu__etcd_lease_ttl(const struct mu__etcd_answer *answer, mu_error *ret_error,
                  uint64_t *ret_ttl_s);

/* What an error of a request means for its user: its token has ended; it needs a user and
 * had none; there are no users, so none is needed. */
bool mu__etcd_needs_new_token(int code, const mu_error *error);
bool mu__etcd_needs_user(const mu_error *error);
bool mu__etcd_lacks_users(const mu_error *error);

/* Of what is answered to a password: none but the words that etcd has for it. A server,
 * or what stands before it, may say what it was sent. */
void mu__etcd_hide(mu_error *error);

/* The token of an answer to authenticate, behind `before`: a header's line, so what
 * cannot stand in one is -MU_EDATALOSS. `out` has `size` bytes. */
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

/* The entries of an answer to a range; or to the `at`-th operation of a transaction,
 * which was a range. */
struct mu__etcd_entries {
    void *next;
    bool more;      /* there are more behind these */
    uint64_t count; /* of all that there are in the range */
};

int mu__etcd_ranged(const struct mu__etcd_answer *answer, mu_error *ret_error,
                    struct mu__etcd_entries *ret_entries);
int mu__etcd_txn_ranged(const struct mu__etcd_answer *answer, size_t at,
                        mu_error *ret_error, struct mu__etcd_entries *ret_entries);

/* Take the next entry: 1, or 0 when there is none. Views point into the answer. Each
 * entry can be taken once. */
int mu__etcd_next_entry(struct mu__etcd_entries *entries, mu_error *ret_error,
                  struct mu__etcd_entry *ret_entry);

#endif
