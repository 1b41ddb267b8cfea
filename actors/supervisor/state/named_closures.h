/* The closures that a journal knows by name and that are under way. Found by name and by
 * their number in the journal; those that have finished are in finished_closures.h. When
 * the table of names grows, each addition moves a few of its buckets: none takes long,
 * however many there are. Plain data. */
#ifndef MU_ACTORS_SUPERVISOR_NAMED_CLOSURES_H
#define MU_ACTORS_SUPERVISOR_NAMED_CLOSURES_H

#include "actors/messages.h"
#include "actors/supervisor/state/names.h"
#include "runtime/base/list.h"
#include "runtime/base/map.h"
#include "runtime/kernel/kernel.h"

/* A client that scheduled a name that was under way for another client. */
struct joined_client {
    struct joined_client *next;
    mu__pid pid;
    uint64_t token;
};

struct named_closure {
    struct named_closure *next;
    struct mu__list_node node; /* in `all` */
    uint64_t number;
    uint64_t closure;  /* its id; 0 while the journal is read: there is none */
    uint32_t function; /* held in `functions`, or MU__NAME_NONE */
    uint32_t hash;
    uint32_t compaction; /* the last one whose new file has it */
    bool is_late;        /* written down when it has finished, and not before */
    struct joined_client *joined;
    uint32_t name_size;
    char name[]; /* with a NUL */
};

/* `functions` is set before use and outlives the table; all else zeroed is empty. */
struct named_closures {
    struct mu__names *functions;
    struct named_closure **buckets;
    uint32_t size;
    struct named_closure **former; /* half as many buckets, while they are moved; NULL */
    uint32_t former_moved;         /* so many of them are, from the first on */
    uint32_t count;
    struct mu__list all;
    struct mu__map by_number;
};

/* Frees all entries; their functions are not released. */
void mu__named_closures_done(struct named_closures *named);

/* NULL when there is none. */
struct named_closure *mu__named_closures_find(const struct named_closures *named,
                                              struct mu__view name);
struct named_closure *mu__named_closures_numbered(const struct named_closures *named,
                                                  uint64_t number);

/* The name and the number are new; the last of the list. NULL: out of memory. */
struct named_closure *mu__named_closures_add(struct named_closures *named,
                                             struct mu__view name, uint64_t number);

/* Releases its function and frees it. */
void mu__named_closures_remove(struct named_closures *named,
                               struct named_closure *closure);

/* False: out of memory. */
bool mu__named_closure_join(struct named_closure *closure, mu__pid pid, uint64_t token);
void mu__named_closure_forget_joined(struct named_closure *closure);

#endif
