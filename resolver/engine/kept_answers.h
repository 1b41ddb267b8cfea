/* Answers that may be given again (keep_ms of a question): tokens, which cost their
 * server more than what is done with them. Bounded; the one that ends first makes room.
 * Pure; whoever has it says what time it is. Zeroed memory has none. */
#ifndef MU_RESOLVER_KEPT_ANSWERS_H
#define MU_RESOLVER_KEPT_ANSWERS_H

#include "resolver/engine/question.h"

enum { MU__PINNED_ANSWERS_MAX = 16 };

struct mu__pinned_answers {
    struct mu__pinned_answer {
        bool used;              /* it is no free place */
        struct mu__question question;
        char *data;
        size_t size;
        uint64_t end_ms;
    } rows[MU__PINNED_ANSWERS_MAX];
};

/* The answer to the same question, whatever its `again` was; NULL when there is none that
 * is still good, and for questions that want a new one. */
const struct mu__pinned_answer *mu__pinned_answers_find(struct mu__pinned_answers *kept,
                                            const struct mu__question *question,
                                            uint64_t now_ms);

/* Copy an answer, in place of an earlier one. Without memory nothing is kept. */
void mu__pinned_answers_put(struct mu__pinned_answers *kept,
                          const struct mu__question *question, const char *data,
                          size_t size, uint64_t now_ms);

void mu__pinned_answers_done(struct mu__pinned_answers *kept);

#endif
