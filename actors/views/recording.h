/* The table of views in the coordination service: one key, MU__KEY_VIEWS, with all
 * views. It is read before the first view is decided, and written after each decision,
 * before that is told to anybody. One request is under way at a time, and no view is
 * decided meanwhile.
 *
 * Writing compares the key's revision: of two chiefs only one can go on. The other reads
 * the key again, takes its views, and decides anew. So does a chief whose write fails.
 *
 * A service that cannot be reached at first is waited for, as servers are, for
 * `recovery_ms`. Then views are decided and told without it, and the log says so; they
 * are recorded once it can be reached. Once the key was read, no view is told that is not
 * recorded: it waits for as long as it takes, and the log says so every 10 s.
 *
 * A part of the views actor (views.h). */
#ifndef MU_ACTORS_VIEWS_RECORDING_H
#define MU_ACTORS_VIEWS_RECORDING_H

#include "actors/agent/calls.h"
#include "actors/views/view_table.h"

struct mu__view_request;

struct mu__view_recording {
    struct mu__agent_shared *agent; /* NULL: there is no service */
    uint32_t recovery_ms;
    uint64_t since_ms;                /* when waiting began, */
    uint64_t log_ms;                  /* and when the log says so again */
    bool is_read;                     /* once at least */
    bool is_behind;                   /* it must be read, for the first time or again, */
    uint64_t again_ms;                /* then at the earliest */
    bool goes_without;                /* the service could not be reached at first */
    struct mu__view_request *request; /* under way; NULL: none is */
    char reason[192];                 /* why the last request failed; "": it did not */
    uint64_t revision;                /* of the key; 0: it is not there */
    uint32_t size;
    uint8_t bytes[MU__VIEW_TABLE_BYTES]; /* its value */
};

/* Zeroed before. `agent` of this node, which outlives the actor; NULL: nothing is
 * recorded. */
void mu__view_recording_init(struct mu__view_recording *recording,
                             struct mu__agent_shared *agent, uint32_t recovery_ms,
                             uint64_t now_ms);
void mu__view_recording_done(struct mu__view_recording *recording);

/* Go on: take what was answered, read the key if it must be read. Whether views may be
 * decided now. */
bool mu__view_recording_is_ready(struct mu__ctx *ctx,
                                 struct mu__view_recording *recording,
                                 struct mu__view_table *table);

/* Whether the views of the table may be told: they are recorded, or need not be. */
bool mu__view_recording_has(const struct mu__view_recording *recording,
                            const struct mu__view_table *table);

/* Record the table. It is ready, and does not have it. */
void mu__view_recording_write(struct mu__ctx *ctx, struct mu__view_recording *recording,
                              const struct mu__view_table *table);

/* When it is to go on without an answer; UINT64_MAX: never. */
uint64_t mu__view_recording_due_ms(const struct mu__view_recording *recording);

#endif
