/* What users' actors, their calls and offices have for those that are kept. */
#ifndef MU_ACTORS_KEEPER_INTERNAL_H
#define MU_ACTORS_KEEPER_INTERNAL_H

#include "runtime/base/list.h"
#include "runtime/base/text_map.h"

#include "muster/actor.h"

#include <stdbool.h>

/* A call to a kept actor: the `number`th of a process. */
struct kept_origin {
    uint64_t sender;
    uint64_t number;
};

/* Calls of this process to a kept actor: see kept_calls.c. */
struct kept_way {
    struct mu__text_node named; /* first */
    mu_address owner;           /* the process that has it; incarnation 0: not known */
    uint64_t last;              /* number of a call */
    uint32_t making;            /* calls of turns under way */
    uint16_t round;             /* of sending: what is answered to a former one is late */
    bool is_away;               /* the calls are sent again in a moment */
    struct mu__list calls;      /* struct pending_call, by number */
    struct mu__list rooms;      /* struct room_wait */
    char name[];
};

/* Of a call that waits for its answer. */
struct kept_call {
    struct kept_way *way; /* NULL: it is to no kept actor */
    uint64_t number;      /* 0: not begun, or ended */
    uint32_t bytes;       /* of its arguments */
};

/* Of a turn. */
struct kept_turn {
    struct mu__list records;
    bool saves;     /* the whole state is recorded, */
    bool is_spoilt; /* or is not what is kept: it is loaded anew */
};

/* Of an office. */
struct kept_office {
    struct mu__text_map owned; /* struct kept */
    struct mu__text_map ways;  /* struct kept_way */
    uint32_t ways_count;
    bool is_armed; /* something is sent again in a moment */
};

#endif
