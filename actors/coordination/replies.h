/* What the service sends. What depends on a change waits until that is safe in the
 * store. */
#ifndef MU_ACTORS_COORDINATION_REPLIES_H
#define MU_ACTORS_COORDINATION_REPLIES_H

#include "actors/coordination/internal.h"

/* Say something to the agent of a node, once what was written before is safe. Takes msg;
 * NULL is fine (no memory: the agent asks again when its limit allows). */
void mu__coord_send(struct mu__ctx *ctx, struct coordination *c, uint32_t node,
                    struct mu__msg *msg);

/* The same at once: for what does not depend on the store. */
void mu__coord_send_now(struct mu__ctx *ctx, uint32_t node, struct mu__msg *msg);

/* Answer with TASKS_ANSWER; `error` NULL: 0. */
void mu__coord_answer(struct mu__ctx *ctx, struct coordination *c, uint32_t node,
                      uint64_t token, const mu_error *error);

/* The same with content, which it takes. */
void mu__coord_answer_value(struct mu__ctx *ctx, struct coordination *c, uint32_t node,
                            uint64_t token, uint64_t version, mu_value *content);

/* The same, packed, in a buffer that stays the caller's; NULL: out of memory, which is
 * answered, as is content that is larger than a message may have. */
void mu__coord_answer_packed(struct mu__ctx *ctx, struct coordination *c, uint32_t node,
                             const struct mu__tasks_answer *answer, struct mu__buf *buf);

/* A buffer for a message's backing with copies of one or two views (`second` may be
 * NULL), which point into it then; without memory they are empty. A message that has a
 * backing keeps it, and its views stay as they are. */
void mu__coord_back(struct mu__msg *msg, struct mu__view *first, struct mu__view *second);

void mu__coord_send_later(struct mu__ctx *ctx, struct coordination *c);
void mu__coord_drop_later(struct mu__ctx *ctx, struct coordination *c);

/* Not what depends on the store: at once. */
void mu__coord_send_here(struct mu__ctx *ctx, const struct coordination *c,
                         uint32_t node);
void mu__coord_send_here_to_all(struct mu__ctx *ctx, const struct coordination *c);

/* ---- Notes for the logs of those who wait for long: which tasks are missing ---- */

enum { COORD_NOTE_FIRST_MS = 5000, COORD_NOTE_STEP_MAX_MS = 60000 };

/* When those who have waited since `since_ms` are told next: after five seconds, then
 * each time that the wait has doubled, and at least once a minute. By
 * mu__coord_clock. */
uint64_t mu__coord_note_next(uint64_t since_ms, uint64_t now_ms);

/* Tell the agent of a node about what it asked under a token. At once: nothing depends on
 * it, and a note that is lost is followed by the next. */
void mu__coord_note(struct mu__ctx *ctx, uint32_t node, uint64_t token,
                    const char *text);

#endif
