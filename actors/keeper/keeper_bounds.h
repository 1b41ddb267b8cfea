/* Bounds of what is kept of actors. */
#ifndef MU_ACTORS_KEEPER_BOUNDS_H
#define MU_ACTORS_KEEPER_BOUNDS_H

#ifdef MUSTER_TINY
enum { MU__KEPT_SENDERS_MAX = 64, MU__KEPT_CALLS_SPAN = 8 };
#else
enum {
    MU__KEPT_SENDERS_MAX = 1 << 14, /* with windows, of one actor */
    MU__KEPT_CALLS_SPAN = 1024      /* of one sender to one actor, from its oldest call
                                       that has not ended on */
};
#endif

enum {
    MU__KEPT_ACTORS_MAX = 1 << 20,    /* of one keeper */
    MU__KEPT_ACTOR_BYTES = 256 << 20, /* kept of one actor */
    MU__KEEPER_BYTES = 1 << 30,       /* kept of all actors */
    MU__KEEPER_RETRY_MS = 100         /* for what could not be written */
};

#endif
