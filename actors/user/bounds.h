/* Bounds of users' actors. */
#ifndef MU_ACTORS_USER_BOUNDS_H
#define MU_ACTORS_USER_BOUNDS_H

#ifdef MUSTER_TINY
enum {
    MU__ACTOR_MAILBOX = 16,
    MU__ACTOR_CALLS_MAX = 16,
    MU__ACTOR_WINDOW = 8,
    MU__ACTOR_TURNS = 2,
    MU__ACTOR_WATCHERS_MAX = 64,
    MU__STREAM_AHEAD = 4,
    MU__STREAM_AHEAD_MAX = 8,
    MU__ACTOR_STREAMS_MAX = 8
};
#else
enum {
    MU__ACTOR_MAILBOX = 10000,   /* messages that wait for an actor, by default */
    MU__ACTOR_CALLS_MAX = 10000, /* of an actor, not answered */
    MU__ACTOR_WINDOW = 1024,     /* messages of one node to one actor of another, that
                                    were not taken out of its mailbox */
    MU__ACTOR_TURNS = 64,        /* of one actor before the next one runs */
    MU__ACTOR_WATCHERS_MAX = 1 << 16, /* monitors that one node has here */
    MU__STREAM_AHEAD = 64,            /* items under way, by default */
    MU__STREAM_AHEAD_MAX = 1024,
    MU__ACTOR_STREAMS_MAX = 1000 /* that an actor gives */
};
#endif

enum {
    MU__ACTOR_MAILBOX_BYTES = 64 << 20,
    MU__ACTOR_WINDOW_BYTES = 8 << 20,
    MU__STREAM_BYTES = 8 << 20, /* of items under way; one may exceed it */
    MU__ACTOR_SLOW_MS = 100,    /* a turn that takes longer is named in the log */
    MU__ACTOR_BATCH_MS = 10,    /* then the next actor runs */
    OFFICE_NEAR = 16            /* actors that are found without the kernel */
};

#endif
