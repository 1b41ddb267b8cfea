/* A simulated cluster for a program's own actors: a chief and workers that have its
 * types, on a virtual clock, with faults from a seed. An actor runs here as it does on a
 * node: it has no clock, chance or thread but its own. */
#ifndef MU_TESTS_ACTOR_SIM_H
#define MU_TESTS_ACTOR_SIM_H

#include <muster/actor.h>

#include <stdbool.h>

struct actor_sim;

/* Called at each start of a process, once it has the types: "chief" or "worker". */
typedef void (*actor_sim_begin_fn)(struct actor_sim *sim, const char *type,
                                   unsigned index, void *user);

/* `types` ends with NULL, and outlives the simulator. `begin` may be NULL. */
struct actor_sim *actor_sim_new(uint64_t seed, unsigned workers,
                                const mu_actor_type *const *types,
                                actor_sim_begin_fn begin, void *user);
void actor_sim_free(struct actor_sim *sim);

/* The calls below are made outside of turns; the first two in `begin`, too. */
bool actor_sim_spawn(struct actor_sim *sim, const char *type, unsigned index,
                     const char *actor, const mu_value *args, mu_address *ret_address);
uint64_t actor_sim_random(struct actor_sim *sim, uint64_t min, uint64_t max);

/* Faults of kinds that the seed draws, from now on, for so long; the chief is not
 * killed. Then all heals. */
void actor_sim_break(struct actor_sim *sim, uint64_t for_ms);
void actor_sim_run(struct actor_sim *sim, uint64_t for_ms);

/* From the chief; the answer, or NULL with the error. Time goes on until it is there. */
mu_value *actor_sim_call(struct actor_sim *sim, const mu_address *to, const char *method,
                         const mu_value *args, int64_t timeout_ms, mu_error *ret_error);

/* Of all that has happened: equal for equal runs. */
uint64_t actor_sim_digest(const struct actor_sim *sim);
const char *actor_sim_trace(struct actor_sim *sim);

#endif
