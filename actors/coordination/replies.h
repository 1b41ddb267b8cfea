/* The messages of the service. One that depends on a change waits until the change is
 * safe in the store. */
#ifndef MU_ACTORS_COORDINATION_REPLIES_H
#define MU_ACTORS_COORDINATION_REPLIES_H

#include "actors/coordination/internal.h"

/* Send a message to the agent of a node, NAME_... to its office of actors, or KEEP_... to
 * its keeper, once everything written before is safe. Takes msg; NULL is fine: no memory,
 * the agent repeats its request. */
void mu__coord_send(struct mu__ctx *ctx, struct coordination *c, uint32_t node,
                    struct mu__msg *msg);

/* The same at once: for a message that does not depend on the store. */
void mu__coord_send_now(struct mu__ctx *ctx, uint32_t node, struct mu__msg *msg);

/* Answer with TASKS_ANSWER; `error` NULL: 0. */
void mu__coord_answer(struct mu__ctx *ctx, struct coordination *c, uint32_t node,
                      uint64_t token, const mu_error *error);

/* The same with content, which it frees. */
void mu__coord_answer_value(struct mu__ctx *ctx, struct coordination *c, uint32_t node,
                            uint64_t token, uint64_t version, mu_value *content);

/* The same with packed content in a buffer that stays the caller's. Without a buffer (no
 * memory), or with more content than a message may have, an error is answered. */
void mu__coord_answer_packed(struct mu__ctx *ctx, struct coordination *c, uint32_t node,
                             const struct mu__tasks_answer *answer, struct mu__buf *buf);

/* Copy one or two views (`second` may be NULL) of a message into a backing of its own;
 * without memory they become empty. Nothing when the message has a backing already. */
void mu__coord_back(struct mu__msg *msg, struct mu__view *first, struct mu__view *second);

/* Send the messages whose commit is safe; free all that wait. */
void mu__coord_send_later(struct mu__ctx *ctx, struct coordination *c);
void mu__coord_drop_later(struct mu__ctx *ctx, struct coordination *c);

/* SERVICE_HERE, at once. */
void mu__coord_send_here(struct mu__ctx *ctx, const struct coordination *c,
                         uint32_t node);
void mu__coord_send_here_to_all(struct mu__ctx *ctx, const struct coordination *c);

/* ---- WAIT_NOTE: which tasks are missing, for the logs of tasks that wait long ---- */

enum { COORD_NOTE_FIRST_MS = 5000, COORD_NOTE_STEP_MAX_MS = 60000 };

/* When the next note is due for a wait since `since_ms`: after five seconds, then each
 * time that the wait has doubled, and at least once a minute. By mu__coord_clock. */
uint64_t mu__coord_note_next(uint64_t since_ms, uint64_t now_ms);

/* A note about the request of a token, at once: one that is lost is followed by the
 * next. */
void mu__coord_note(struct mu__ctx *ctx, uint32_t node, uint64_t token, const char *text);

#endif
