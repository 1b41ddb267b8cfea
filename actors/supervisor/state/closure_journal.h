/* The chief's journal file: what is written of named closures. It says of each that it
 * was scheduled, and that it has finished (with its result) or was removed. What a
 * closure asks for is filled in by its owner, through `describe`. The shared per-worker
 * values that it uses stand before it, each once.
 *
 * What has no effect any more is left out by a compaction: a new file is written in
 * steps, beside the old one, which is used as before. It gets what there is, and what is
 * appended meanwhile. A record that could not be written leaves the journal behind: it is
 * then compacted, once a second at most, until that succeeds. */
#ifndef MU_ACTORS_SUPERVISOR_CLOSURE_JOURNAL_H
#define MU_ACTORS_SUPERVISOR_CLOSURE_JOURNAL_H

#include "actors/coordination/store/journal.h"
#include "actors/supervisor/state/finished_closures.h"
#include "actors/supervisor/state/named_closures.h"
#include "actors/supervisor/state/sent_bodies.h"
#include "runtime/base/id_window.h"

/* Among the flags of a SCHEDULED record. Without `inputs`: it is of a closure that no
 * other chief can run, and counts only together with its FINISHED record. With `inputs`:
 * a muster that does not know these takes it for such a one. */
#define MU__JOURNAL_LATE (UINT32_C(1) << 31)

/* The numbering of the supervisor's effects, as servers know it. */
struct effect_numbers {
    uint64_t origin; /* of the supervisor; servers apply only the effects of
                        the last one that fenced them */
    uint64_t epoch;
    uint64_t last;               /* given out */
    struct mu__id_window window; /* the settled ones */
};

/* Fills in what closure `id` asks for: args, effect, flags and so on. */
typedef void (*mu__journal_describe_fn)(void *owner, uint64_t id,
                                        struct mu__journal_scheduled *record);

/* Fills in the content of a value that such a closure has among its inputs; returns what
 * the journal notes of it. */
typedef struct sent_body *(*mu__journal_content_fn)(void *owner, uint64_t number,
                                                    struct mu__journal_body *record);

/* A compaction. Closures under way come first: one that is written goes to the end of
 * their list. Then those that had finished when it began, and the end of the file's
 * renewal. */
struct compaction {
    bool runs;
    bool is_requested; /* once more, since something was forgotten */
    uint32_t number;   /* of this one, or the last one */
    mu__finished_ref at;
    mu__finished_ref end;
    uint64_t timer; /* of the next step, or the next one's begin; 0: none */
    uint64_t begun_ms;
};

struct closure_journal {
    struct mu__journal *file; /* NULL: there is no journal */
    struct named_closures named;
    struct finished_closures finished;
    struct sent_bodies bodies;
    struct compaction compaction;
    struct effect_numbers *effects;
    mu__journal_describe_fn describe;
    mu__journal_content_fn content;
    void *owner;            /* for describe and content */
    uint64_t number_last;   /* the highest number of a closure so far */
    uint64_t effects_end;   /* numbers of effects below are reserved in the file */
    uint64_t compact_bytes; /* the file is compacted when it has grown so large */
    uint64_t timer;         /* flushes what was scheduled in this turn; 0: none */
    bool is_dirty;          /* something was appended, and not flushed */
    bool is_behind;         /* it lacks a record: it is to be compacted, */
    char error[256];        /* why it cannot be written, as reported to clients; "":
                               it can */
};

/* All return 0 or the error of the file. */
int mu__closure_journal_flush(struct closure_journal *journal, mu_error *ret_error);
int mu__closure_journal_scheduled(struct closure_journal *journal,
                                  struct named_closure *named, mu_error *ret_error);

/* Write the end of a closure, and flush. `result`: it has finished with it; NULL: it was
 * removed. */
int mu__closure_journal_ended(struct closure_journal *journal,
                              struct named_closure *named,
                              const struct mu__packed *result, mu_error *ret_error);

/* All that have finished are forgotten, from this call on also over a restart. */
int mu__closure_journal_forget(struct closure_journal *journal, mu_error *ret_error);

/* Reserve a block of effect numbers if the next one is beyond what is reserved. */
int mu__closure_journal_reserve(struct closure_journal *journal, mu_error *ret_error);

/* After reading: begin an epoch, reserve effect numbers from `last` + 1 on. */
int mu__closure_journal_begin(struct closure_journal *journal, mu_error *ret_error);

/* Whether there is a reason for a compaction. */
bool mu__closure_journal_is_due(const struct closure_journal *journal);

/* Begin one, and take one step of it: some milliseconds at most. MU__STORAGE_NOT_YET:
 * there are more steps; 0: the new file is in place, and the journal not behind. After an
 * error there is none under way any more, and the old file stays. */
int mu__closure_journal_compact(struct closure_journal *journal, mu_error *ret_error);
int mu__closure_journal_compact_step(struct closure_journal *journal,
                                     mu_error *ret_error);

void mu__closure_journal_done(struct closure_journal *journal);

#endif
