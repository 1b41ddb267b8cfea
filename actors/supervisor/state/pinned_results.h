/* Results that stay on the workers that made them (MU_CLOSURE_PIN_RESULT), by the id of
 * their closure: the holder of each, what waits for it, which nodes have copies. Plain
 * data. */
#ifndef MU_ACTORS_SUPERVISOR_PINNED_RESULTS_H
#define MU_ACTORS_SUPERVISOR_PINNED_RESULTS_H

#include "actors/messages.h"
#include "runtime/base/map.h"
#include "runtime/kernel/kernel.h"

/* A FETCH that is not answered. */
struct pinned_fetch {
    struct pinned_fetch *next;
    mu__pid pid;
    uint64_t token;
};

struct pinned_result {
    uint64_t number; /* the id of its closure */
    mu__pid client;
    uint32_t holder; /* number of the worker that has it; 0: none */
    uint32_t users;  /* closures that have it among their inputs */
    bool released;   /* by its client */
    bool computing;  /* its closure is queued or in flight */
    bool pulling;
    bool is_unused; /* in the list of them */
    struct pinned_result *next_unused;
    struct mu__buf *backing; /* of the content that was pulled; NULL: none */
    struct mu__packed content;
    struct pinned_fetch *fetches;
    uint64_t *waiting; /* ids of closures; some may have ended */
    uint32_t waiting_count;
    uint32_t waiting_size;
    uint32_t *sent; /* nodes that got the content as an INPUT */
    uint32_t sent_count;
    uint32_t sent_size;
};

/* Zeroed memory is empty. */
struct pinned_results {
    struct mu__map by_number;     /* closure id -> struct pinned_result */
    struct pinned_result *unused; /* to be removed after the batch of messages */
};

/* Frees all. */
void mu__pinned_results_done(struct pinned_results *results);

/* NULL when there is none, or `number` is that of a per-worker value. */
struct pinned_result *mu__pinned_results_find(const struct pinned_results *results,
                                              uint64_t number);

/* NULL: out of memory. */
struct pinned_result *mu__pinned_results_add(
    struct pinned_results *results, uint64_t number, mu__pid client, uint32_t holder);
void mu__pinned_results_remove(struct pinned_results *results,
                               struct pinned_result *result);

/* False: out of memory. */
bool mu__pinned_result_add_waiting(struct pinned_result *result, uint64_t closure);
bool mu__pinned_result_add_fetch(struct pinned_result *result, mu__pid pid,
                                 uint64_t token);

/* Whether a node got a copy; it got one. Out of memory: that is not noted, and the copy
 * stays there until the chief is lost. */
bool mu__pinned_result_was_sent(const struct pinned_result *result, uint32_t node);
void mu__pinned_result_note_sent(struct pinned_result *result, uint32_t node);

#endif
