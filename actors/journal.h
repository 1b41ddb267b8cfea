/* A list of messages that survives the process that wrote it: what the supervisor knows
 * about named closures. Framing, checksums and the cut of a torn end; what the messages
 * mean is the supervisor's. Plain data over a storage. */
#ifndef MU_ACTORS_JOURNAL_H
#define MU_ACTORS_JOURNAL_H

#include "runtime/codec.h"
#include "runtime/pool.h"
#include "runtime/storage.h"

struct mu__journal;

/* Called for each message of the journal, the oldest first. The message and what its
 * views point to are valid during the call; mu__buf_ref(msg->backing) keeps them. */
typedef int (*mu__journal_visit_fn)(void *owner, struct mu__msg *msg);

/* Read what is there and hand each message to `visit`. A torn or damaged end is cut off
 * (ret_cut, may be NULL, says how many bytes): what was flushed before stays. A file that
 * is no journal, or one of a newer format, gives -MU_EDATALOSS and is left as it is.
 * `storage`, `schema` and `pool` outlive the journal. */
int mu__journal_open(struct mu__storage *storage, const struct mu__schema *schema,
                     struct mu__pool *pool, mu__journal_visit_fn visit, void *owner,
                     mu_error *ret_error, uint64_t *ret_cut,
                     struct mu__journal **ret_journal);
void mu__journal_close(struct mu__journal *journal);

/* Append a message: its kind and fields, not who sent it. Stays the caller's. */
int mu__journal_append(struct mu__journal *journal, const struct mu__msg *msg,
                       mu_error *ret_error);

/* What was appended survives the process from here on. Nothing when nothing was. */
int mu__journal_flush(struct mu__journal *journal, mu_error *ret_error);

/* Write the journal anew: between begin and commit, appends go to the new content, which
 * takes the place of the old one at once. A failure leaves the old one. */
void mu__journal_rewrite_begin(struct mu__journal *journal);
int mu__journal_rewrite_commit(struct mu__journal *journal, mu_error *ret_error);

/* Bytes of the journal now. */
uint64_t mu__journal_bytes(const struct mu__journal *journal);

#endif
