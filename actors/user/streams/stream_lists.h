/* What actors and offices have of streams. */
#ifndef MU_ACTORS_USER_STREAM_LISTS_H
#define MU_ACTORS_USER_STREAM_LISTS_H

#include "runtime/base/list.h"
#include "runtime/base/map.h"

/* Of an actor. */
struct actor_streams {
    struct mu__list producers; /* mu_stream */
    uint32_t producers_count;
    struct mu__list consumers; /* struct consumer */
};

/* Of an office. */
struct office_streams {
    struct mu__map producers; /* mu_stream, by number */
    struct mu__map consumers; /* struct consumer, by the number of its call */
    struct mu__list readers;  /* mu_stream_reader */
};

#endif
