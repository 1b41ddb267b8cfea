/* Which writes of programs a partition has applied, so that each is applied once. Plain
 * data.
 *
 * A process numbers its writes from 1, under an origin of its own. At most
 * MU__WRITERS_MAX origins are known: of more, the one that has written nothing for the
 * longest is forgotten. */
#ifndef MU_ACTORS_PS_WRITERS_H
#define MU_ACTORS_PS_WRITERS_H

#include "actors/ps/applied.h"
#include "runtime/base/list.h"
#include "runtime/base/map.h"

enum { MU__WRITERS_MAX = 4096 };

/* Zeroed memory knows nothing. */
struct mu__writers {
    struct mu__map by_origin;
    struct mu__list by_use; /* struct mu__known_writer, the last one first */
    uint32_t count;
};

struct mu__known_writer {
    struct mu__list_node node;
    uint64_t origin;
    struct mu__id_window window;
};

void mu__writers_done(struct mu__writers *writers);

/* MU__APPLIED_NOT or MU__APPLIED_BEFORE. Numbers below `effects_done` are settled. */
enum mu__applied_verdict mu__writers_check(struct mu__writers *writers,
                                           const struct mu__effect_id *id);

/* Note a write as applied; to be called before it is. -MU_EEXHAUSTED, -MU_ENOMEM. */
int mu__writers_mark(struct mu__writers *writers, const struct mu__effect_id *id);

/* A writer, made when there is none; NULL when out of memory. */
struct mu__known_writer *mu__writers_need(struct mu__writers *writers, uint64_t origin);

static inline struct mu__known_writer *mu__writers_first(
    const struct mu__writers *writers)
{
    return MU__LIST_FIRST(&writers->by_use, struct mu__known_writer, node);
}

static inline struct mu__known_writer *mu__writers_next(
    const struct mu__known_writer *writer)
{
    return MU__LIST_NEXT(writer, struct mu__known_writer, node);
}

#endif
