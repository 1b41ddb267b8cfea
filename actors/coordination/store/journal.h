/* A list of messages that survives the process that wrote it: what the supervisor knows
 * about named closures, and what the coordination service keeps. What the messages mean
 * is theirs; how a file of them looks is in journal_scan.h. Plain data over a storage.
 *
 * What an older muster may skip is added as a kind or a field; what it must not skip
 * raises the format. */
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

/* Read what is there and hand each message to `visit`. A torn end, which is what a crash
 * in the middle of an append leaves and which was never flushed, is cut off (ret_cut, may
 * be NULL, says how many bytes). Messages of a kind that the schema does not have were
 * written by a newer muster: they are skipped, and stay until the next rewrite. A file of
 * an older format is written anew in today's.
 *
 * A file that is damaged elsewhere, is no journal, or is of a newer format gives
 * -MU_EDATALOSS with the place and what to do, and is left as it is; so does a message
 * that is whole but does not fit the schema. After a failure what `visit` was told is
 * void. `storage`, `schema` and `pool` outlive the journal. */
int mu__journal_open(struct mu__storage *storage, const struct mu__schema *schema,
                     struct mu__pool *pool, mu__journal_visit_fn visit, void *owner,
                     mu_error *ret_error, uint64_t *ret_cut,
                     struct mu__journal **ret_journal);

/* Who writes it. */
enum mu__journal_use {
    MU__JOURNAL_OF_CHIEF,   /* MU__JOURNAL_BEGIN to MU__JOURNAL_REMOVED */
    MU__JOURNAL_OF_STORE,   /* MU__STORE_BEGIN to MU__STORE_COMMIT */
    MU__JOURNAL_USES
};

/* Whether mu__journal_open would take this file as a journal without damage, and whether
 * it is of this use (-MU_EINVALID: of the other one): for those who must not begin with
 * anything else. Reads all of it and changes nothing. */
int mu__journal_verify(struct mu__storage *storage, enum mu__journal_use use,
                       mu_error *ret_error);

/* What was not flushed may be lost. NULL is fine. */
void mu__journal_close(struct mu__journal *journal);

/* Append a message: its kind and fields; from whom and to whom means nothing. Stays the
 * caller's. After a failure nothing of it was appended. -MU_EINVALID when it does not
 * travel, -MU_ERANGE when a field is beyond its bound, -MU_EEXHAUSTED when the journal is
 * at its bound of 4 GiB or the disk is full, -MU_ENOMEM. */
int mu__journal_append(struct mu__journal *journal, const struct mu__msg *msg,
                       mu_error *ret_error);

/* See to it that `bytes` more of records can be appended and flushed, as far as that can
 * be known before: storage.h. -MU_EEXHAUSTED says what is full. */
int mu__journal_reserve(struct mu__journal *journal, uint64_t bytes, mu_error *ret_error);

/* What was appended survives the process from here on. Nothing when nothing was. After a
 * failure what was appended is kept, and the next flush tries again. */
int mu__journal_flush(struct mu__journal *journal, mu_error *ret_error);

/* Write the journal anew: between begin and commit, appends go to the new content, which
 * takes the place of the old one at once, and needs no flush. A failure, also of an
 * append in between, leaves the old one, without what was appended since begin; the
 * rewrite is over then. To begin again is to begin anew. */
void mu__journal_rewrite_begin(struct mu__journal *journal);
int mu__journal_rewrite_commit(struct mu__journal *journal, mu_error *ret_error);

/* Bytes of the journal now, what is not flushed included, a rewrite under way not. */
uint64_t mu__journal_bytes(const struct mu__journal *journal);

/* Messages of unknown kind that open has skipped. */
uint64_t mu__journal_skipped(const struct mu__journal *journal);

#endif
