/* A question as a value: a copy of it, and whether two are one and the same. Pure. */
#ifndef MU_RESOLVER_QUESTION_H
#define MU_RESOLVER_QUESTION_H

#include "resolver/engine/ask.h"

/* Whether one answer is right for both: all of their fields are the same, secret ones,
 * too. A default counts as what it stands for: no method as "GET", a limit of 0 as
 * MU__ASK_TIMEOUT_MS. */
bool mu__question_same(const struct mu__question *a, const struct mu__question *b);

/* Of what mostly differs: kind, name and `again`. Equal for questions that are the
 * same. */
uint64_t mu__question_hash(const struct mu__question *question);

/* With all its texts. On success the caller calls mu__question_done. -MU_ENOMEM. */
int mu__question_copy(const struct mu__question *question,
                      struct mu__question *ret_copy);
void mu__question_done(struct mu__question *copy);

/* What a question may take, and the bytes that its answer may have: where it has 0, the
 * defaults. */
uint32_t mu__question_timeout_ms(const struct mu__question *question);
size_t mu__question_bytes_max(const struct mu__question *question);

#endif
