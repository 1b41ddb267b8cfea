/* A resolver as the program holds it: a tree. Leaves are built-in resolvers with their
 * settings, fixed answers, and resolvers of the program's own; the inner nodes are
 * unions and auto-detections. Pure: it only makes requests (request_table.h), also to
 * call functions of the program's own.
 *
 * Each node has the values that the program has set in place of what its source says. */
#ifndef MU_RESOLVER_RESOLVER_H
#define MU_RESOLVER_RESOLVER_H

#include "resolver/engine/kind.h"

/* A resolver of the program's own: a copy of what was registered. Counted, since
 * resolvers that were made of it go on when it is unregistered. The count is the
 * registry's (node/discovery/resolver_kinds.c), which has a lock. */
struct mu__own_kind {
    mu_resolver_kind kind; /* with `name` and `summary` below */
    char name[32];
    char summary[128];
    void (*ref)(struct mu__own_kind *own);
    void (*unref)(struct mu__own_kind *own);
    unsigned refs;
};

/* Set the resolvers of the program's own that the auto-detections of the tree try
 * first, in this order, from the next round on. Each is referenced. -MU_ENOMEM: as
 * before. */
int mu__resolver_offer_own(mu_resolver *resolver, struct mu__own_kind *const *kinds,
                           size_t count);

/* ---- Running ---- */

/* Run once. On success the caller frees ret_resolution->cluster. */
int mu__resolver_run(mu_resolver *resolver, struct mu__requests *requests,
                     mu_error *ret_error, mu_resolution *ret_resolution);

/* Only find out which resolvers the auto-detections of the tree take. */
int mu__resolver_run_detect(mu_resolver *resolver, struct mu__requests *requests,
                            mu_error *ret_error);

/* Announce this task in all registries of the tree (for an auto-detection, by the
 * resolver that the last run took). Another thread may run the tree meanwhile.
 * *ret_index is the task's index, that of the announcement or the one chosen in place of
 * its -1. *ret_again_ms: when to announce again, 0 when there is no registry. */
int mu__resolver_run_announce(mu_resolver *resolver, struct mu__requests *requests,
                              const mu_announcement *announcement, mu_error *ret_error,
                              int *ret_index, uint32_t *ret_again_ms);
int mu__resolver_run_withdraw(mu_resolver *resolver, struct mu__requests *requests,
                              const mu_announcement *announcement, mu_error *ret_error);

/* ---- After a run ---- */

/* Whether the tree has a registry, by which tasks announce themselves. For an
 * auto-detection it is only known after a run. */
bool mu__resolver_announces(const mu_resolver *resolver);

/* How often to resolve again, ms; 0: the result never changes. */
uint32_t mu__resolver_watch_ms(const mu_resolver *resolver);

/* After a run: collect the paths whose change makes a watch resolve at
 * once, each once, in the order of a union's members. Changes of paths beyond the
 * maximum are seen after mu__resolver_watch_ms. */
enum { MU__WATCHED_PATHS_MAX = 16 };
void mu__resolver_set_watched_paths(mu_resolver *resolver, struct mu__requests *requests);

/* The i-th of these paths; NULL past the end. Owned by the resolver, until they are
 * collected again. */
const char *mu__resolver_watched_path(const mu_resolver *resolver, size_t i);

/* "slurm", "auto", "union", "static". Owned by the resolver. */
const char *mu__resolver_name(const mu_resolver *resolver);

/* The value of mu_resolver_explain; NULL: out of memory. */
mu_value *mu__resolver_explained(const mu_resolver *resolver,
                                 const struct mu__requests *requests);

/* Set the value of mu_resolver_explain. Takes `explained`, which may be NULL. */
void mu__resolver_set_explained(mu_resolver *resolver, mu_value *explained);

/* Pass a progress line to the program's callback, if there is one. */
void mu__resolver_progress(const mu_resolver *resolver, const char *line);

/* ---- Creation ---- */

int mu__resolver_new_kind(const struct mu__resolver_kind *kind, mu_error *ret_error,
                          mu_resolver **ret_resolver);

/* References `own`. */
int mu__resolver_new_own(struct mu__own_kind *own, mu_error *ret_error,
                         mu_resolver **ret_resolver);
int mu__resolver_new_auto(const struct mu__resolver_kind *const *kinds,
                          mu_error *ret_error, mu_resolver **ret_resolver);

/* ---- Parsing ---- */

/* Whether a text is a TF_CONFIG; else it is a cluster spec. */
bool mu__spec_is_tf_config(const char *text, size_t size);

#endif
