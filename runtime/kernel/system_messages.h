/* Messages that the kernel and the hosts of a node send to its actors. They are local. */
#ifndef MU_RUNTIME_SYSTEM_MESSAGES_H
#define MU_RUNTIME_SYSTEM_MESSAGES_H

#include "runtime/message/message.h"

struct mu__work;

struct mu__timer {
    uint64_t timer;
    uint64_t token;
};

struct mu__down {
    uint32_t node;
    uint32_t actor;
};

struct mu__node_up {
    uint32_t node;
    struct mu__view type;
    uint32_t index;
    uint64_t incarnation;
    struct mu__view address;
};

/* `left`: it said goodbye. */
struct mu__node_down {
    uint32_t node;
    bool left;
    struct mu__view reason;
};

/* To the actor that submitted the work, and owns it again. */
struct mu__work_done {
    struct mu__work *work;
};

/* `final`: that node has refused this one for good. */
struct mu__node_trouble {
    struct mu__view type;
    uint32_t index;
    struct mu__view reason;
    bool final;
};

/* From the actor's own node: end, once the messages before this one have been handled.
 * Every actor obeys. */
struct mu__end {
    struct mu__view reason;
};

#define MU__SYSTEM_MESSAGES(M)         \
    M(257, TIMER, timer)               \
    M(258, DOWN, down)                 \
    M(259, NODE_UP, node_up)           \
    M(260, NODE_DOWN, node_down)       \
    M(261, WORK_DONE, work_done)       \
    M(262, NODE_TROUBLE, node_trouble) \
    M(263, END, end)

enum mu__system_kind {
    MU__SYSTEM_KINDS_END = MU__LOCAL_KINDS_BEGIN + 16,
#define MU__SYSTEM_KIND(number, NAME, name) MU__##NAME = number,
    MU__SYSTEM_MESSAGES(MU__SYSTEM_KIND)
#undef MU__SYSTEM_KIND
};

static inline bool mu__is_system_kind(uint16_t kind)
{
    return kind >= MU__LOCAL_KINDS_BEGIN && kind < MU__SYSTEM_KINDS_END;
}

#endif
