/* The office of a node's actors of the program's own: one on every node. It has their
 * types, their calls, timers and monitors, and speaks for them with the offices of other
 * nodes. The actors themselves (user_actor.c) are actors of the kernel, and put mail into
 * each other's mailboxes directly, as they share the loop's thread.
 *
 * Hears:  CALL and ACTOR_REQUEST from the node's own program; ACTOR_REQUEST_CANCEL from
 *         the client; the ACTOR_... messages of other offices; WORK_DONE; node news; its
 *         timer
 * Says:   the ACTOR_... messages to other offices; FUTURE_RESOLVED to the client;
 *         ACTOR_POKE to actors with mail
 * Owns:   every actor of the program: they end with it. Calls, until they are answered
 * Fails:  never by itself; an actor's error is its own */
#ifndef MU_ACTORS_USER_OFFICE_H
#define MU_ACTORS_USER_OFFICE_H

#include "actors/call.h"

#include "muster/actor.h"

struct mu__actors_config {
    const char *task; /* "/job:worker/task:1", */
    const char *type; /* "worker"; both outlive the office */
    uint32_t index;
    uint64_t incarnation;
    uint32_t silence_ms; /* nothing comes over a link that was silent for longer */

    /* A link to a task is needed: 0, or why it cannot be made. NULL: there are only those
     * that are there. */
    int (*dial)(void *owner, const char *type, uint32_t index, mu_error *ret_error);
    void *owner;
};

enum mu__actors_operation {
    MU__ACTORS_REGISTER,    /* `type` */
    MU__ACTORS_STOP,        /* `address`, `how` */
    MU__ACTORS_STREAM_OPEN, /* `address`, `name` of the method, `args`, `reader` */
    MU__ACTORS_STREAM_NEXT,
    MU__ACTORS_STREAM_CLOSE
};

/* A call of a thread of the program. What it points to is the caller's. */
struct mu__actors_call {
    struct mu__call call;
    const mu_actor_type *type;
    const char *name; /* STREAM_OPEN: of the method */
    const mu_value *args;
    mu_address address;
    mu_stream_reader *reader;
    int how;
};

/* A call of a thread that gets a future. */
struct mu__thread_request {
    mu_address to;
    mu_value *args; /* NULL: nil */
    int64_t timeout_ms;
    struct mu_remote_value *future; /* the office's reference */
    char method[64];
    struct mu__spawned_actor *spawned; /* the value is the address of a new actor; NULL:
                                        it is a call */
};

/* A new actor, for a thread: the arguments are those of its `start`. */
struct mu__spawned_actor {
    mu_actor_options options; /* checked; its texts are the next ones */
    char type[64];
    char task_type[64];
    char name[MU_ACTOR_NAME_MAX + 1];
};

extern const struct mu__behavior mu__actors; /* init takes the config */

/* The node leaves: free the works of actors that no thread has begun (a list of
 * mu__work.node). */
void mu__actors_leave(void *state, struct mu__list unstarted);

/* Free all works, of an executor that will not touch them any more. */
void mu__actors_forget_works(void *state);

/* The defaults of options that are 0; -MU_EINVALID. */
int mu__actors_read_options(const mu_actor_options *options, mu_error *ret_error,
                            mu_actor_options *ret_own);

/* A name of an actor's type or method: 1 to MU__ACTOR_NAME_MAX bytes of UTF-8, no '#'. */
int mu__actors_check_name(const char *what, const char *name, mu_error *ret_error);

/* Text of an address into `out`, of MU__ADDRESS_TEXT_MAX bytes. */
enum { MU__ADDRESS_TEXT_MAX = 80 };
void mu__address_write(const mu_address *address, char *out);

#endif
