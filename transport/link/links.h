/* Links: the connections of this node to others, over any wire.
 *
 * A link is one connection, which goes both ways, and is up when a HELLO has gone each
 * way. It goes down when the connection breaks, when the peer is silent, says goodbye,
 * sends bytes that make no sense, does not read what it is sent. Each time it comes up it
 * gets a new node number.
 *
 * A task is one process: while a link to it is up, another incarnation of the task is
 * refused, wherever it says that it is. A restarted task is let in as soon as the end of
 * the former connection was seen, or the former process was silent for silence_ms.
 *
 * Links of mu__links_dial are retained: they are dialled again for ever, unless the peer
 * dials first. A link that a peer began ends when it goes down.
 *
 * Pure: no sockets and no clock. The owner passes events of the wire in and calls
 * tick. */
#ifndef MU_TRANSPORT_LINKS_H
#define MU_TRANSPORT_LINKS_H

#include "muster/error.h"
#include "runtime/kernel/world.h"
#include "runtime/message/pool.h"
#include "transport/wire/wire.h"

struct mu__links;

struct mu__links_config {
    const char *cluster_name; /* the strings are copied */
    const char *task_type;
    uint32_t task_index;
    const char *address;  /* where peers can dial this node; "": nowhere */
    uint64_t incarnation; /* not 0 */
    const char *software; /* its version; NULL: none is said. Not copied */
    const char *host;     /* of this process, for messages; NULL: not sent */
    uint64_t pid;         /* the same; 0: not sent */
    uint32_t claim_ms;    /* how long another process may play this task before
                             `taken` is called; 0: it never is */
    uint32_t heartbeat_ms;
    uint32_t silence_ms;
    const char *leader;   /* index 0 of this type may do what the chief may; NULL:
                             nobody else. Not copied */
    const char *only;     /* task type that may link; NULL: any. Not copied */
    const char *only_why; /* reason for refusing others; not copied */
    const struct mu__schema *schema; /* of the messages that travel */
    struct mu__pool *pool;           /* decoded messages come from here */
    struct mu__world *world;         /* clock, random numbers and log */
};

/* Calls to the owner of the links. None of them may call back into the links, except
 * mu__links_transmit. */
struct mu__links_upcalls {
    void *owner;
    void (*up)(void *owner, uint32_t node, const char *type, uint32_t index,
               uint64_t incarnation, const char *address);
    /* `left`: the peer said goodbye. */
    void (*down)(void *owner, uint32_t node, const char *reason, bool left);
    void (*trouble)(void *owner, const char *type, uint32_t index, const char *reason);
    void (*deliver)(void *owner, struct mu__msg *msg); /* takes msg */

    /* A peer has refused this node for `claim_ms` because another process plays this
     * node's task; may be NULL, and is called at each further refusal by that peer. */
    void (*taken)(void *owner, const char *type, uint32_t index, const char *reason);

    /* More than MU__LINK_BEHIND_BYTES wait to be sent to a node that is up; or less than
     * MU__LINK_CAUGHT_UP_BYTES again. May be NULL. */
    void (*behind)(void *owner, uint32_t node, bool is_behind);

    /* Instead of `trouble`: the task that this client dials has refused it for good, so
     * that to wait is of no use; may be NULL, and is called at each further refusal. */
    void (*refused)(void *owner, const char *type, uint32_t index, const char *reason);
};

struct mu__links_counters {
    uint64_t frames_out;
    uint64_t frames_in;
    uint64_t messages_out;
    uint64_t messages_in;
    uint64_t bytes_out;
    uint64_t bytes_in;
    uint64_t forbidden;    /* messages whose sender lacks the right to them */
    uint64_t doubles;      /* HELLOs of a process whose link is up */
    uint64_t crossed;      /* of two dials at once, those that gave way */
    uint64_t stale_frames; /* for another incarnation, or of a link that is down */
    uint32_t links_up;
};

/* Bounds. */
enum {
    MU__LINKS_MAX = 16384,               /* further peers are refused. So many more may be
                                            PARTING; peers beyond these are closed without
                                            a message */
    MU__LINK_QUEUE_BYTES_MAX = 64 << 20, /* with more unsent, and nothing taken for half
                                            of silence_ms, the peer does not read: link
                                            down. A single larger message may wait */
    MU__LINK_BEHIND_BYTES = 4 << 20,
    MU__LINK_CAUGHT_UP_BYTES = 1 << 20,
    MU__LINK_MESSAGE_BYTES_MAX = (1 << 30) + (1 << 20),
    MU__LINK_CLIENTS_LARGE_MAX = 4,       /* so many times that may clients' unfinished
                                             large messages have together; tasks are as
                                             many as the cluster has, and have one each */
    MU__LINK_OBSERVER_BYTES_MAX = 4 << 20 /* of a message whose sender may only observe:
                                             nothing that it may say is larger */
};

int mu__links_new(const struct mu__links_config *config,
                  const struct mu__links_upcalls *upcalls, struct mu__wire *wire,
                  struct mu__links **ret_links);

/* Without upcalls. Frames that wait are freed. */
void mu__links_free(struct mu__links *links);

/* The events of the wire, whose owner the links are. burst_end is handled by the owner of
 * the links, which flushes after its turn. */
void mu__links_connected(struct mu__links *links, uint32_t connection);
void mu__links_disconnected(struct mu__links *links, uint32_t connection,
                            const char *reason);
void mu__links_writable(struct mu__links *links, uint32_t connection);
void mu__links_frame(struct mu__links *links, uint32_t connection, struct mu__buf *frame);
void mu__links_refused(struct mu__links *links, const char *address, const char *reason);
void mu__links_short_of(struct mu__links *links, const char *words);

/* Retain a link to this task from now on. There is no link to it yet. */
int mu__links_dial(struct mu__links *links, const char *type, uint32_t index,
                   const char *url);

/* The same for a task that may have a link already: one that the peer began (an unlisted
 * worker, say) is retained then, and moved if needed. The task is not barred any more. A
 * task without an address (`url` is "") dials itself: its link is not retained. */
int mu__links_adopt(struct mu__links *links, const char *type, uint32_t index,
                    const char *url);

/* mu__links_dial, to whatever task is at `url`. Until it has answered it is called
 * MU__LINK_UNKNOWN, task 0. */
#define MU__LINK_UNKNOWN "server"
int mu__links_dial_any(struct mu__links *links, const char *url);

/* The task is not in the cluster any more: no link to it is retained, those that are up
 * say goodbye with `reason`, and processes of that task are refused with the same
 * words, until it is adopted, moved or allowed. Not for clients, which share indices. */
void mu__links_hangup(struct mu__links *links, const char *type, uint32_t index,
                      const char *reason);
void mu__links_allow(struct mu__links *links, const char *type, uint32_t index);

/* The task is at another url: a link to the former process says goodbye, and that process
 * is refused from then on; a retained link is dialled anew. A link that leads to `url`
 * already stays. -MU_EEXHAUSTED (the url is too long); other errors as mu__links_dial,
 * after which the task has no link. */
int mu__links_move(struct mu__links *links, const char *type, uint32_t index,
                   const char *url);

/* Put a message into the frame for msg->to.node. Takes msg. -MU_EUNAVAILABLE when no link
 * to that node is up. */
int mu__links_transmit(struct mu__links *links, struct mu__msg *msg);

/* Whether what a node sends is read. While it is not, the node counts as silent when it
 * takes nothing. Everything is read of a wire that cannot leave one connection unread. */
void mu__links_read(struct mu__links *links, uint32_t node, bool is_read);

/* Which process a node that is up says that it is. False: the node is not up. */
struct mu__process;
bool mu__links_process(const struct mu__links *links, uint32_t node,
                       struct mu__process *ret_process);

/* What this node has proven to a node that is up. */
enum mu__right mu__links_own_right(const struct mu__links *links, uint32_t node);

/* Send what this turn has put into frames. */
void mu__links_flush(struct mu__links *links);

/* Heartbeats, silence, handshakes that are not answered, dialling again. Returns when the
 * next tick is due. */
uint64_t mu__links_tick(struct mu__links *links, uint64_t now_ms);

/* When that is, by now: what happens to a link may bring it forward. */
uint64_t mu__links_due_ms(const struct mu__links *links);

/* Say goodbye to every peer: no new link is made from now on. mu__links_count_up is 0
 * once all have hung up. */
void mu__links_leave(struct mu__links *links, const char *reason);
uint32_t mu__links_count_up(const struct mu__links *links);

void mu__links_counters(const struct mu__links *links,
                        struct mu__links_counters *ret_counters);

/* One link as it is now. The strings are the links'. */
struct mu__link_view {
    const char *type;
    uint32_t index;
    const char *url;   /* that is dialled */
    const char *state; /* "up", "dialling", "greeting", "resting" */
    const char *why;   /* why it is not up; "": not known, or it is up */
    bool is_taken;     /* that peer knows another process as this task */
    uint64_t for_ms;   /* since it came up, or went missing */
    uint32_t node;     /* while it is up; else 0 */
    bool is_retained;  /* of mu__links_dial: this side began it */
};

/* Visit all links but those that are PARTING. `visit` calls nothing of the
 * links. */
void mu__links_each(const struct mu__links *links,
                    void (*visit)(void *user, const struct mu__link_view *view),
                    void *user);

#endif
