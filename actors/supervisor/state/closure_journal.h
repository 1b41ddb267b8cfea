/* The chief's journal file: what is written of named closures. It says of each that it
 * was scheduled, and that it has finished (with its result) or was removed. What a
 * closure asks for is filled in by its owner, through `describe`.
 *
 * A record that could not be written leaves the journal behind: it is then rewritten as a
 * whole, once a second at most, until that succeeds. */
#ifndef MU_ACTORS_SUPERVISOR_CLOSURE_JOURNAL_H
#define MU_ACTORS_SUPERVISOR_CLOSURE_JOURNAL_H

#include "actors/coordination/store/journal.h"
#include "actors/supervisor/state/named_closures.h"
#include "runtime/base/id_window.h"

/* Among the flags of a SCHEDULED record: it is of a closure that no other chief can run,
 * and counts only together with its FINISHED record. */
#define MU__JOURNAL_LATE (UINT32_C(1) << 31)

/* The numbering of the supervisor's effects, as servers know it. */
struct effect_numbers {
    uint64_t origin;            /* of the supervisor; servers apply only the effects of
                                   the last one that fenced them */
    uint64_t epoch;
    uint64_t last;              /* given out */
    struct mu__id_window window;    /* the settled ones */
};

/* Fills in what closure `id` asks for: args, effect, flags and so on. */
typedef void (*mu__journal_describe_fn)(void *owner, uint64_t id,
                                        struct mu__journal_scheduled *record);

struct closure_journal {
    struct mu__journal *file;   /* NULL: there is no journal */
    struct named_closures named;
    struct effect_numbers *effects;
    mu__journal_describe_fn describe;
    void *owner;                /* for describe */
    uint64_t number_last;       /* the highest number of a closure so far */
    uint64_t effects_end;       /* numbers of effects below are reserved in the file */
    uint64_t rewrite_bytes;     /* the file is rewritten when it has grown so large */
    uint64_t timer;             /* flushes what was scheduled in this turn; 0: none */
    bool is_dirty;              /* something was appended, and not flushed */
    bool is_behind;             /* it lacks a record: it is to be rewritten, */
    uint64_t retry_ms;          /* but not before this, since it may be long */
    char error[256];            /* why it cannot be written, as reported to clients; "":
                                   it can */
};

/* All return 0 or the error of the file. */
int mu__closure_journal_flush(struct closure_journal *journal, mu_error *ret_error);
int mu__closure_journal_rewrite(struct closure_journal *journal, mu_error *ret_error);
int mu__closure_journal_scheduled(struct closure_journal *journal,
                                  const struct named_closure *named,
                                  mu_error *ret_error);

/* Write the end of a closure, and flush. `has_finished`: with the result that `named`
 * has; it was removed otherwise. */
int mu__closure_journal_ended(struct closure_journal *journal,
                              struct named_closure *named, bool has_finished,
                              mu_error *ret_error);

/* Reserve a block of effect numbers if the next one is beyond what is reserved. */
int mu__closure_journal_reserve(struct closure_journal *journal, mu_error *ret_error);

/* Flush, or rewrite what is behind if it is time for that. True in `ret_rewritten`: it
 * was behind, and is no more. */
int mu__closure_journal_catch_up(struct closure_journal *journal, uint64_t now_ms,
                                 bool *ret_rewritten, mu_error *ret_error);

/* After reading: begin an epoch, reserve effect numbers from `last` + 1 on, rewrite the
 * file. */
int mu__closure_journal_begin(struct closure_journal *journal, mu_error *ret_error);

void mu__closure_journal_done(struct closure_journal *journal);

#endif
