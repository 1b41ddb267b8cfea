/* mu_resolver and its entries; for resolver/engine/ only. */
#ifndef MU_RESOLVER_RESOLVER_INNER_H
#define MU_RESOLVER_RESOLVER_INNER_H

#include "resolver/engine/exchange.h"
#include "resolver/engine/resolver.h"

#include <stdatomic.h>

enum mu__entry_state {
    MU__ENTRY_NOT_TRIED,
    MU__ENTRY_TAKEN,
    MU__ENTRY_NOT_HERE,
    MU__ENTRY_FAILED
};

/* A leaf of the tree: a built-in resolver or one of the program's own, and its state in
 * this round. */
struct mu__entry {
    const struct mu__resolver_kind *kind; /* one of these two */
    struct mu__own_kind *own;
    struct mu__settings settings; /* of `kind` */
    void *memory;                 /* of kind->announce, between calls */
    enum mu__entry_state state;
    char why[512];
    struct mu__own_call *last_call; /* of `own`; it may not have returned yet.
                                       NULL: none */
};

enum mu__shape { MU__SHAPE_ONE, MU__SHAPE_FIXED, MU__SHAPE_UNION, MU__SHAPE_AUTO };

struct mu_resolver {
    enum mu__shape shape;

    struct mu__entry *entries; /* ONE: one; AUTO: all built-in ones, in order */
    size_t entries_count;
    struct mu__entry *own_entries; /* AUTO: the program's own, which come first */
    size_t own_count;
    struct mu__entry *taken; /* AUTO: the one that the last run took; ONE: its
                                entry */
    _Atomic(struct mu__entry *) registry; /* `taken` when it takes announcements, which
                                             are made beside runs; else NULL */

    mu_resolution fixed; /* FIXED; with its cluster */

    mu_resolver **members; /* UNION */
    size_t members_count;

    bool has_type; /* set by the program, in place of what the source
                      says */
    bool has_index;
    bool has_rpc_layer;
    bool has_environment;
    char task_type[16];
    int task_index;
    char rpc_layer[16];
    char environment[16];
    int accelerators_count; /* kinds that were set */
    mu_accelerator accelerators[MU_ACCELERATOR_KINDS_MAX];

    mu_resolver_progress_fn progress;
    void *progress_user;
    mu_value *explained;
    char *watched[MU__WATCHED_PATHS_MAX];
    size_t watched_count;
};

const char *mu__entry_name(const struct mu__entry *entry);

/* The i-th entry of ONE and AUTO, the program's own first; NULL past the end. */
struct mu__entry *mu__resolver_entry(const mu_resolver *resolver, size_t i);

/* ---- Running: run.c ---- */

/* The entry that an auto-detection takes, or the only one. */
void mu__resolver_take(mu_resolver *resolver, struct mu__entry *entry);

/* Free the paths of mu__resolver_set_watched_paths. */
void mu__resolver_forget_watched_paths(mu_resolver *resolver);

/* Sets the error "out of memory"; returns -MU_ENOMEM. */
int mu__resolver_out_of_memory(mu_error *ret_error);

/* ---- Functions of the program's own: own.c ---- */

/* As `detect` and `resolve` of a built-in resolver. While a call of an earlier round
 * still runs it is -MU_EUNAVAILABLE. */
int mu__own_detect(struct mu__entry *entry, struct mu__requests *requests,
                   mu_error *ret_why);
int mu__own_resolve(struct mu__entry *entry, struct mu__requests *requests,
                    mu_error *ret_error, mu_resolution *ret_resolution);

/* Hand a call that still runs over to the entry that replaces this one. */
void mu__own_move(struct mu__entry *from, struct mu__entry *to);
void mu__own_done(struct mu__entry *entry);

/* ---- Unions ---- */

/* Merge the members' clusters by the rules of mu_resolver_new_union. NULL for a member
 * without one; *ret_cluster is NULL when none has one. */
int mu__union_clusters(const mu_cluster *const *clusters, size_t count,
                       mu_error *ret_error, mu_cluster **ret_cluster);

#endif
