/* The simulator: a program's own actors (actor.h), unchanged, in a cluster of one thread
 * with a virtual clock, a network and faults that all follow from a seed. In a library of
 * its own, libmuster-sim.
 *
 * A story is a function that adds tasks, lets time pass, breaks things and says what must
 * be. mu_sim_main runs it with one seed after the other, and each seed twice: both runs
 * must be equal. Of a seed that fails, the shortest story is told: the faults without
 * which it does not fail.
 *
 *     static int story(mu_sim *sim, void *user)
 *     {
 *         mu_address counter;
 *
 *         mu_sim_add(sim, "chief:0", types, NULL, NULL);
 *         mu_sim_add(sim, "worker:0-2", types, begin_worker, user);
 *         mu_sim_spawn(sim, "chief:0", "counter", NULL, NULL, &counter);
 *         mu_sim_chaos(sim, 0, 0, 0, 10000);
 *         mu_sim_run_until(sim, 20000);
 *         ...
 *         return 0;
 *     }
 *
 *     int main(int argc, char **argv)
 *     {
 *         return mu_sim_main(story, NULL, 100, argc, argv);
 *     }
 *
 * A story is run many times: it begins with all that it needs as new. It has no clock and
 * chance but the simulator's, and nor have its actors but their own (mu_actor_now_ms,
 * mu_actor_random). All times are of the virtual clock, which begins at 0.
 *
 * What a story does wrong (a task that there is not, say) fails it as what must never be
 * does: mu_sim_fail. From then on its calls do nothing, and return -MU_EABORTED; so there
 * is no need to look at each. Tasks are named "worker:1". One thread uses a simulator. */
#ifndef MUSTER_SIM_H
#define MUSTER_SIM_H

#include <muster/actor.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct mu_sim mu_sim;

enum { MU_SIM_TASKS_MAX = 64 };

/* ---- Seeds ---- */

/* Returns 0, or a negative code: it has failed. */
typedef int (*mu_sim_story_fn)(mu_sim *sim, void *user);

/* Run a story with a seed, twice. When it fails, *ret_error says what was wrong, and it
 * is run again, some hundred times at most, with fewer and fewer of its faults.
 *
 * -MU_EABORTED: it has failed; *ret_words (may be NULL) is the shortest story, in lines
 * of text, to be freed with mu_sim_words_free. -MU_EDATALOSS: the two runs are not equal;
 * the error names the actor that did something else first, and *ret_words is NULL. */
MU_EXPORT int mu_sim_try(uint64_t seed, mu_sim_story_fn story, void *user,
                         mu_error *ret_error, char **ret_words);
MU_EXPORT void mu_sim_words_free(char *words);

/* The main function of a program of seeds: `count` of them from 1, or those of the
 * command line, [FIRST [COUNT]]; of a single one the trace is printed, if it fails that
 * of its shortest story. Returns the exit code: 0; 1 after the first seed that fails; 2
 * when the command line is wrong. */
MU_EXPORT int mu_sim_main(mu_sim_story_fn story, void *user, uint64_t count, int argc,
                          char **argv);

/* A simulator by itself, for a story that is told once. NULL: out of memory. */
MU_EXPORT mu_sim *mu_sim_new(uint64_t seed);
MU_EXPORT void mu_sim_free(mu_sim *sim);

/* ---- Tasks ---- */

/* Called at each start of a task, the first one and those after crashes, once it has its
 * types: it may spawn. */
typedef void (*mu_sim_begin_fn)(mu_sim *sim, const char *task, void *user);

/* Add a task, or several, "worker:0-2", before time passes. They have the types, a list
 * that ends with NULL and outlives the simulator. `begin` may be NULL. */
MU_EXPORT int mu_sim_add(mu_sim *sim, const char *tasks,
                         const mu_actor_type *const *types, mu_sim_begin_fn begin,
                         void *user);

/* The task hosts the coordination service, on a disk of its own that outlives its
 * process: from then on actors may have names, and be kept. Before time passes, once. */
MU_EXPORT int mu_sim_service(mu_sim *sim, const char *task);

/* The network is plain, whatever the seed: a message takes 10 ms, a work 10 ms, and
 * nothing is lost without a fault. Before time passes. */
MU_EXPORT int mu_sim_calm(mu_sim *sim);

/* Make an actor on a task; its `start` runs when time passes. `args` (NULL: nil) stays
 * the caller's, `options` NULL: the defaults. With options->name the task asks for it, as
 * in mu_actor_spawn, and it may be anywhere. -MU_EUNAVAILABLE: the task does not run now,
 * which does not fail the story. */
MU_EXPORT int mu_sim_spawn(mu_sim *sim, const char *task, const char *type,
                           const mu_value *args, const mu_actor_options *options,
                           mu_address *ret_address);

/* Call an actor as mu_actor_request does, from a task, and let time pass until it is
 * answered. An error of the call is returned, and does not fail the story; *ret_value is
 * the caller's. Not from `begin` or a check. */
MU_EXPORT int mu_sim_request(mu_sim *sim, const char *task, const mu_address *to,
                             const char *method, const mu_value *args, int64_t timeout_ms,
                             mu_error *ret_error, mu_value **ret_value);

/* What an actor has, to be looked at: valid until time passes. NULL: it has not started,
 * or has ended; of a name, nobody has it now. */
MU_EXPORT const void *mu_sim_state(mu_sim *sim, const mu_address *actor);

/* ---- Time ---- */

MU_EXPORT uint64_t mu_sim_now_ms(const mu_sim *sim);

/* All that is due by then happens. */
MU_EXPORT int mu_sim_run_until(mu_sim *sim, uint64_t until_ms);

/* Until done(sim, user), which is asked after each event, is not 0. -MU_EDEADLINE: it was
 * not by then, which does not fail the story. */
MU_EXPORT int mu_sim_run_to(mu_sim *sim, int (*done)(mu_sim *sim, void *user), void *user,
                            uint64_t until_ms);

/* ---- What must be ---- */

/* Look after each event; NULL: no more. */
MU_EXPORT int mu_sim_check(mu_sim *sim, void (*check)(mu_sim *sim, void *user),
                           void *user);

/* The story has failed, and time stands still; the first call counts. */
MU_EXPORT void mu_sim_fail(mu_sim *sim, const char *format, ...) MU_PRINTF(2, 3);

/* What has failed; NULL: nothing has. */
MU_EXPORT const char *mu_sim_failure(const mu_sim *sim);

/* A number from `min` to `max`, of the seed. */
MU_EXPORT uint64_t mu_sim_random(mu_sim *sim, uint64_t min, uint64_t max);

/* Lines since the last call, "[  400] worker:1 who: text": what actors and nodes have
 * logged, and faults; the last half a MiB at least. Valid until the next call. */
MU_EXPORT const char *mu_sim_trace(mu_sim *sim);

/* ---- Faults ---- */

enum mu_sim_kind {
    MU_SIM_CRASH = 1 << 0,        /* `task` is gone at once, and starts again then */
    MU_SIM_CRASH_MIDWAY = 1 << 1, /* the same, when it has sent half of something */
    MU_SIM_PAUSE = 1 << 2,        /* it stands still */
    MU_SIM_CUT = 1 << 3,          /* its connection to `other` breaks; both notice */
    MU_SIM_CUT_HALF = 1 << 4,     /* `task` notices at once, `other` then */
    MU_SIM_BLOCK = 1 << 5,        /* what it sends to `other` is held back until then */
    MU_SIM_PARTITION = 1 << 6,    /* it loses all others, in both directions */
    MU_SIM_SLOW = 1 << 7,         /* its works take ten times as long */
    MU_SIM_SLOW_LINK = 1 << 8,    /* and so does what it sends to `other` */
    MU_SIM_RESTART = 1 << 9       /* it starts if it does not run; told only */
};

/* From now until `until_ms`, faults that the seed draws: of these kinds (bits of enum
 * mu_sim_kind), one in `every_ms` on average, of `lasts_ms` at most. What is 0 is drawn,
 * too. Then all heals, and all tasks run. Once in a story. */
MU_EXPORT int mu_sim_chaos(mu_sim *sim, unsigned kinds, uint64_t every_ms,
                           uint64_t lasts_ms, uint64_t until_ms);

/* No drawn faults of these kinds to a task. */
MU_EXPORT int mu_sim_spare(mu_sim *sim, const char *task, unsigned kinds);

/* One fault at a time that the story tells: of one kind, for so long (0: of a crash,
 * until MU_SIM_RESTART). `other` NULL where there is none. It is in all stories. */
MU_EXPORT int mu_sim_fault(mu_sim *sim, int kind, const char *task, const char *other,
                           uint64_t at_ms, uint64_t for_ms);

#ifdef __cplusplus
}
#endif

#endif
