/* What an office knows of those of other nodes. */
#ifndef MU_ACTORS_USER_OTHER_OFFICES_H
#define MU_ACTORS_USER_OTHER_OFFICES_H

#include "runtime/base/list.h"
#include "runtime/base/map.h"
#include "runtime/message/message.h"

/* The kind of an error, before a program sees it, that says: there is no such actor, and
 * nothing has run. A call to a name is sent again then. */
enum { MU__ERROR_NO_ACTOR = 200 };

/* An actor to which there was no room, and who waits for it. */
struct room_wait {
    struct mu__list_node node;
    uint32_t actor;
};

/* From this node to one actor of a peer, or the other way. */
struct way {
    uint32_t actor;    /* its number */
    uint32_t messages; /* out: not taken out of its mailbox yet. In: in the mailbox */
    uint64_t bytes;
    uint32_t messages_due; /* in: taken out, and not credited yet */
    uint64_t bytes_due;
    struct mu__list rooms; /* out: struct room_wait */
};

/* One process with an office. */
struct peer {
    struct mu__list_node node; /* of the office's peers */
    uint64_t incarnation;
    char type[16];
    uint32_t index;
    uint32_t number;    /* of its node; 0: not up, it is being dialled */
    struct mu__map out; /* actors' numbers to ways */
    struct mu__map in;
    struct mu__list calls;    /* struct pending_call */
    struct mu__list targets;  /* struct user_watch: of its actors, by ours */
    struct mu__list watchers; /* struct user_watch: of ours, by its */
    uint32_t watchers_count;
    struct mu__list relays;      /* struct relay: for it */
    struct mu__list streams;     /* mu_stream: of actors here, to its */
    struct mu__list consumers;   /* struct consumer: of its actors, to ours */
    struct mu__msg *queue_first; /* until it is up */
    struct mu__msg *queue_last;
};

#endif
