/* A list of messages that survives the process that wrote it: the supervisor's records of
 * named closures, and the store of the coordination service. The format of the file is in
 * journal_scan.h. Plain data over a storage.
 *
 * Data that an older muster may skip is added as a kind or a field; other new data needs
 * a new format number. */
#ifndef MU_ACTORS_JOURNAL_H
#define MU_ACTORS_JOURNAL_H

#include "runtime/kernel/storage.h"
#include "runtime/message/codec.h"
#include "runtime/message/pool.h"

struct mu__journal;

/* Called for each message of the journal, the oldest first, with any kind of the schema.
 * The message and what its views point to are valid during the call;
 * mu__buf_ref(msg->backing), which is never NULL here and holds this message alone, keeps
 * what the views point to. Nonzero, a negative code, makes the open fail. */
typedef int (*mu__journal_visit_fn)(void *owner, struct mu__msg *msg);

/* Read the file and hand each message to `visit`. A torn end, which a crash in the middle
 * of an append leaves and which was never flushed, is cut off (ret_cut, may be NULL: how
 * many bytes). Messages of unknown kinds were written by a newer muster: they are
 * skipped, and stay until the next rewrite. A file of an older format is rewritten in the
 * present one.
 *
 * A file that is damaged elsewhere, is no journal, or is of a newer format gives
 * -MU_EDATALOSS with the offset and what to do, and is left as it is; so does a message
 * that is whole but does not fit the schema. After a failure all messages that `visit`
 * has got are void. `storage`, `schema` and `pool` outlive the journal. */
int mu__journal_open(struct mu__storage *storage, const struct mu__schema *schema,
                     struct mu__pool *pool, mu__journal_visit_fn visit, void *owner,
                     mu_error *ret_error, uint64_t *ret_cut,
                     struct mu__journal **ret_journal);

/* The same in steps, for a file that is large. Begin reads the header; each step hands at
 * most so many messages to `visit`, and no more once they have so many bytes together.
 * MU__STORAGE_NOT_YET: there are more steps; all else ends the reading. What the file
 * needs at the end of it (a torn end is cut off, or it is rewritten) comes with the last
 * one. */
struct mu__journal_reading;

struct mu__journal_step {
    mu__journal_visit_fn visit;
    void *owner;
    size_t records_max;
    size_t bytes_max;
};

struct mu__journal_progress {
    uint64_t records;   /* so many were visited, */
    uint64_t bytes;     /* of so many bytes, */
    uint64_t bytes_all; /* of a file of so many */
};

int mu__journal_read_begin(struct mu__storage *storage, const struct mu__schema *schema,
                           struct mu__pool *pool, mu_error *ret_error,
                           struct mu__journal_reading **ret_reading);
int mu__journal_read_step(struct mu__journal_reading *reading,
                          const struct mu__journal_step *step, mu_error *ret_error,
                          uint64_t *ret_cut, struct mu__journal **ret_journal);
struct mu__journal_progress mu__journal_read_progress(
    const struct mu__journal_reading *reading);

/* End a reading that has not ended. NULL is fine. */
void mu__journal_read_drop(struct mu__journal_reading *reading);

/* The writer of a journal. */
enum mu__journal_use {
    MU__JOURNAL_OF_CHIEF,  /* MU__JOURNAL_BEGIN to MU__JOURNAL_REMOVED, and
                              MU__JOURNAL_BODY */
    MU__JOURNAL_OF_STORE,  /* MU__STORE_BEGIN to MU__STORE_COMMIT */
    MU__JOURNAL_OF_SERVER, /* MU__PS_BEGIN and MU__PS_VIEW, records and FILL_... */
    MU__JOURNAL_OF_KEEPER, /* MU__KEEP_FENCE and MU__KEEP_ITEM */
    MU__JOURNAL_USES
};

/* Whether the file is a journal of this use (-MU_EINVALID: of the other one), and without
 * damage in its first `bytes_max` bytes. Changes nothing. */
int mu__journal_verify(struct mu__storage *storage, enum mu__journal_use use,
                       uint64_t bytes_max, mu_error *ret_error);

/* What was not flushed may be lost. NULL is fine. */
void mu__journal_close(struct mu__journal *journal);

/* Append the kind and fields of a message, which stays the caller's. After a failure
 * nothing of it was appended. -MU_EINVALID for a local message, -MU_ERANGE when a field
 * is beyond its bound, -MU_EEXHAUSTED when the journal is at its bound of 4 GiB or the
 * disk is full, -MU_ENOMEM. */
int mu__journal_append(struct mu__journal *journal, const struct mu__msg *msg,
                       mu_error *ret_error);

/* Another bound of the file than 4 GiB. A rewrite keeps that one. */
void mu__journal_set_bound(struct mu__journal *journal, uint64_t bytes_max);

/* Reserve room for `bytes` more of records, as far as the storage can (storage.h).
 * -MU_EEXHAUSTED with a message. */
int mu__journal_reserve(struct mu__journal *journal, uint64_t bytes, mu_error *ret_error);

/* Make all that was appended survive the process. After a failure the next flush tries
 * again. */
int mu__journal_flush(struct mu__journal *journal, mu_error *ret_error);

/* Rewrite the journal: between begin and commit, appends go to the new content, which
 * commit puts in the place of the old one, atomically and flushed. A failure, also of an
 * append in between, leaves the old content, without the appends since begin. A second
 * begin starts over. */
void mu__journal_rewrite_begin(struct mu__journal *journal);
int mu__journal_rewrite_commit(struct mu__journal *journal, mu_error *ret_error);

/* The same beside the use of the journal, for one that is large: between begin and the
 * end of commit, appends go to the old content and the new one, those of
 * mu__journal_renew_append to the new one alone. So who renews a journal writes down what
 * there is, in any order with the appends. No call waits for the disk.
 *
 * mu__journal_renew_commit returns MU__STORAGE_NOT_YET until it is done: call it again. A
 * failure, also of an append in between, drops the renewal. An append counts as failed
 * when the old content has not got it; the new one may have. */
int mu__journal_renew_begin(struct mu__journal *journal, mu_error *ret_error);
int mu__journal_renew_append(struct mu__journal *journal, const struct mu__msg *msg,
                             mu_error *ret_error);

/* mu__journal_append to the old content alone: the new one gets it by
 * mu__journal_renew_append. */
int mu__journal_append_old(struct mu__journal *journal, const struct mu__msg *msg,
                           mu_error *ret_error);
bool mu__journal_renew_is_busy(const struct mu__journal *journal);
int mu__journal_renew_commit(struct mu__journal *journal, mu_error *ret_error);

/* Bytes of the journal, unflushed ones included, without a rewrite under way. */
uint64_t mu__journal_bytes(const struct mu__journal *journal);

/* How many messages of unknown kinds the open has skipped. */
uint64_t mu__journal_skipped(const struct mu__journal *journal);

#endif
