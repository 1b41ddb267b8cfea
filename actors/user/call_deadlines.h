/* The deadlines of many calls, of which nearly all are answered in time: a wheel of
 * lists, one for each millisecond, so that adding and removing touch one list. */
#ifndef MU_ACTORS_USER_CALL_DEADLINES_H
#define MU_ACTORS_USER_CALL_DEADLINES_H

#include "runtime/base/list.h"

#include <stdint.h>

enum { MU__DEADLINE_SLOTS = 1024 };

struct mu__deadline {
    struct mu__list_node node;
    uint64_t due_ms;
};

/* The tokens of an office's timers. */
enum {
    OFFICE_TIMER_DEADLINES,
    OFFICE_TIMER_NAMES,
    OFFICE_TIMER_KEPT,
    OFFICE_TIMER_READERS
};

/* Zeroed memory is empty. */
struct mu__deadlines {
    struct mu__list slots[MU__DEADLINE_SLOTS];
    uint64_t checked_ms; /* nothing is due before */
    uint32_t count;
};

/* `due_ms` is after now. */
void mu__deadlines_add(struct mu__deadlines *deadlines, uint64_t now_ms,
                       struct mu__deadline *deadline, uint64_t due_ms);
void mu__deadlines_remove(struct mu__deadlines *deadlines, struct mu__deadline *deadline);

/* Take out one that is due; NULL: there is none. */
struct mu__deadline *mu__deadlines_pop(struct mu__deadlines *deadlines, uint64_t now_ms);

/* A time before which nothing is due, after all that are due were popped; UINT64_MAX:
 * there is none. */
uint64_t mu__deadlines_next_ms(const struct mu__deadlines *deadlines);

#endif
