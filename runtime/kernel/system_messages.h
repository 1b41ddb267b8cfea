/* Messages that the kernel itself sends to actors. They never travel. */
#ifndef MU_RUNTIME_SYSTEM_MESSAGES_H
#define MU_RUNTIME_SYSTEM_MESSAGES_H

#include "runtime/message/message.h"

#define MU__TIMER_FIELDS(F, S)                                              \
    F(S, REQUIRED, u64, timer, 0)                                           \
    F(S, REQUIRED, u64, token, 0)

#define MU__DOWN_FIELDS(F, S)                                               \
    F(S, REQUIRED, u32, node, 0)                                            \
    F(S, REQUIRED, u32, actor, 0)

#define MU__NODE_UP_FIELDS(F, S)                                            \
    F(S, REQUIRED, u32, node, 0)                                            \
    F(S, REQUIRED, str, type, 0)                                            \
    F(S, REQUIRED, u32, index, 0)                                           \
    F(S, REQUIRED, u64, incarnation, 0)                                     \
    F(S, REQUIRED, str, address, 0)

#define MU__NODE_DOWN_FIELDS(F, S)                                          \
    F(S, REQUIRED, u32, node, 0)                                            \
    F(S, REQUIRED, str, reason, 0)

#define MU__WORK_DONE_FIELDS(F, S)                                          \
    F(S, REQUIRED, ptr, work, 0)

#define MU__NODE_TROUBLE_FIELDS(F, S)                                       \
    F(S, REQUIRED, str, type, 0)                                            \
    F(S, REQUIRED, u32, index, 0)                                           \
    F(S, REQUIRED, str, reason, 0)

/* From the node's own composition: end, once what is before this in the mailbox has been
 * handled. Every actor obeys. */
#define MU__END_FIELDS(F, S)                                                \
    F(S, REQUIRED, str, reason, 0)

#define MU__SYSTEM_MESSAGES(M)                                              \
    M(1, TIMER, timer, MU__TIMER_FIELDS, false)                             \
    M(2, DOWN, down, MU__DOWN_FIELDS, false)                                \
    M(3, NODE_UP, node_up, MU__NODE_UP_FIELDS, false)                       \
    M(4, NODE_DOWN, node_down, MU__NODE_DOWN_FIELDS, false)                 \
    M(5, WORK_DONE, work_done, MU__WORK_DONE_FIELDS, false)                 \
    M(6, NODE_TROUBLE, node_trouble, MU__NODE_TROUBLE_FIELDS, false)        \
    M(7, END, end, MU__END_FIELDS, false)

enum mu__system_kind {
#define MU__SYSTEM_KIND(number, NAME, name, FIELDS, travels) MU__##NAME = number,
    MU__SYSTEM_MESSAGES(MU__SYSTEM_KIND)
#undef MU__SYSTEM_KIND
    MU__SYSTEM_KINDS_END = 16   /* numbers below are the kernel's */
};

MU__MESSAGE_STRUCT(timer, MU__TIMER_FIELDS)
MU__MESSAGE_STRUCT(down, MU__DOWN_FIELDS)
MU__MESSAGE_STRUCT(node_up, MU__NODE_UP_FIELDS)
MU__MESSAGE_STRUCT(node_down, MU__NODE_DOWN_FIELDS)
MU__MESSAGE_STRUCT(work_done, MU__WORK_DONE_FIELDS)
MU__MESSAGE_STRUCT(node_trouble, MU__NODE_TROUBLE_FIELDS)
MU__MESSAGE_STRUCT(end, MU__END_FIELDS)

#endif
