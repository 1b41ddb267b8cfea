/* The journal of a parameter server: a file in the place of a backup, or beside it. Parts
 * of the actor:
 *
 *     ps_journal.c   what is written, and when answers may leave
 *     ps_restore.c   what is read at the start
 *     ps_snapshot.c  the file is written anew, with what the partitions hold
 *
 * The file (actors/coordination/store/journal.h) has the records of the partitions that
 * this server is the primary of, as they travel to a backup, and their views. What is
 * written in one batch of messages is flushed together, before the first answer to it.
 * While it cannot be written, requests that change something wait.
 *
 * A partition is in the file from its begin on, when that is here and empty. One that
 * comes with content, as this server was its backup, gets into it by a snapshot: the file
 * is written anew beside its use, in pieces, as a learner is filled; so it is when it has
 * become large. Records that come meanwhile go to both files.
 *
 * A generation begins before a partition's snapshot if requests are under way there:
 * these are not in the snapshot, so their clients send them again.
 *
 * Who hands a partition over goes on with it in the file, as long as it is the backup:
 * the next primary does not have it in its own at once, and both may crash.
 *
 * A process that starts has the role RESTORED in what it has read, and tells the chief
 * which processes have written that. It serves when a view says so, and drops what
 * another server has taken over. */
#ifndef MU_ACTORS_PS_JOURNAL_H
#define MU_ACTORS_PS_JOURNAL_H

#include "actors/ps/stream.h"

/* ---- ps_journal.c ---- */

/* One record; `body` is of the kind's type. To the file, or to the new one of a snapshot
 * alone. After a failure the file lacks it, or the snapshot fails. */
void mu__ps_journal_put(struct ps *ps, uint16_t kind, const void *body, size_t size,
                        struct mu__buf *backing);
bool mu__ps_journal_put_new(struct ps *ps, uint16_t kind, const void *body, size_t size);

/* Who writes the file, and who has written it. */
struct mu__ps_begin mu__ps_journal_begin_record(const struct ps *ps,
                                                uint8_t former[8 * MU__FORMER_MAX]);
void mu__ps_journal_failed(struct mu__ctx *ctx, struct ps *ps, const mu_error *error);

/* ---- ps_snapshot.c ---- */

/* Whether it is time for one. */
bool mu__ps_snapshot_is_due(const struct ps *ps);

/* One step of it, some milliseconds at most. */
void mu__ps_snapshot_step(struct mu__ctx *ctx, struct ps *ps);

#endif
