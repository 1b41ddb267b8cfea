/* What the files of users' actors share. All of it is the loop's thread's. */
#ifndef MU_ACTORS_USER_INTERNAL_H
#define MU_ACTORS_USER_INTERNAL_H

#include "actors/keeper/internal.h"
#include "actors/messages.h"
#include "actors/user/bounds.h"
#include "actors/user/call_deadlines.h"
#include "actors/user/chain_hops.h"
#include "actors/user/office.h"
#include "actors/user/other_offices.h"
#include "actors/user/streams/stream_lists.h"
#include "runtime/base/list.h"
#include "runtime/base/map.h"
#include "runtime/base/text_map.h"

#include <stdalign.h>

/* ---- What is on its way ---- */

/* Who gets the answer of a message. */
struct answer_to {
    uint32_t node; /* that of the caller */
    uint64_t call; /* 0: none, it is a send */
};

enum mail_kind {
    /* In mailboxes; from MAIL_ITEM on what is rare. */
    MAIL_START,
    MAIL_MESSAGE,
    MAIL_NOTICE,
    MAIL_ITEM,   /* of a stream, or its end, to who reads it, */
    MAIL_STREAM, /* and of one to who gives it */
    MAIL_STOP,

    /* What a turn does at its end, besides putting mail into mailboxes. */
    OUT_REMOTE, /* `msg` to `peer` */
    OUT_KEPT_CALL,
    OUT_ANSWER,  /* `value` or `error` to `answer` */
    OUT_FAILED,  /* `call` ends with `error` */
    OUT_MONITOR, /* `watch` */
    OUT_UNMONITOR,
    OUT_TIMER, /* `timer`, which is set; undone if the turn fails */
    OUT_TIMER_CANCEL,
    OUT_WORK,
    OUT_REPLY, /* `reply` is over */
    OUT_STOP,
    OUT_NAMED,  /* `of.named`, to a name */
    OUT_WISH,   /* `of.wish`: an actor with a name */
    OUT_STREAM, /* `of.stream` begins, */
    OUT_ITEM,   /* gets one more, */
    OUT_END,    /* or is over */
    OUT_READ,   /* `actor` reads those of `token` as `code` says */
    MAIL_KINDS
};

/* One thing that an actor is to handle, or that a turn is to do. Thousands wait in a
 * mailbox, so what is read of each is together. */
struct mail {
    struct mu__list_node node;
    uint16_t kind;      /* enum mail_kind */
    uint16_t notice;    /* enum mu_notice_kind */
    int code;           /* of a notice of work, or how to stop */
    uint32_t actor;     /* that gets it */
    uint32_t bytes;     /* that it counts for */
    uint32_t from_node; /* that gets the credit; MU__NODE_SELF: none */
    uint32_t came_ms;   /* the low bits */
    union {
        const mu_actor_method *method;
        struct peer *peer; /* of OUT_REMOTE */
    };
    mu_value *value;
    mu_error *error;
    union {
        uint64_t token;  /* of what is no message */
        uint64_t due_ms; /* of MAIL_MESSAGE: not begun from then on; 0: no limit */
    };
    struct pending_call *call; /* while it has not begun */
    struct chain *chain;
    struct kept_origin *kept; /* NULL: it is no call to a kept actor */
    struct mu__msg *msg;
    union {
        struct answer_to answer; /* of START, MESSAGE and OUT_ANSWER */
        union {
            struct user_watch *watch;
            struct actor_timer *timer;
            struct actor_work *work;
            mu_reply *reply;
            struct name_message *named;
            struct name_wish *wish;
            mu_stream *stream;
            uint64_t number; /* of a stream at its producer or consumer */
        } of;
    };
    mu_address address; /* of the other, of notices and OUT_STOP; last: not cleared */
};

/* A call that was not answered. */
struct pending_call {
    struct mu__deadline deadline; /* first */
    uint64_t id;
    struct mu__list_node of_owner;
    mu_actor *owner; /* NULL: it is one of these: */
    struct mu__thread_request *request;
    struct relay *relay;
    mu_stream_reader *reader;
    uint64_t token;
    int64_t timeout_ms;
    struct mu__list_node of_peer; /* or of its way's calls */
    struct peer *peer;            /* NULL: it is to this node, or a kept actor */
    struct name_message *named;   /* it waits for the owner of its name */
    uint64_t epoch;               /* of the owner that it went to */
    mu_value *args;               /* to send it again */
    struct kept_call kept;
    struct mail *waiting; /* in a mailbox of this node; NULL: in none, or not any more */
    struct chain *chain;
    bool is_send;    /* to a kept actor: of the office's own */
    bool is_begun;   /* it is in the table */
    bool is_sent;    /* to its peer */
    mu_address to;   /* from here on nothing is cleared */
    char method[64]; /* or "start" */
};

struct mu_reply {
    struct mu__list_node node; /* of its actor's replies */
    mu_actor *actor;
    struct answer_to answer;
    const mu_actor_method *method;
    struct kept_origin origin; /* sender 0: none */
    struct chain *chain;       /* NULL: no call was made for it */
    bool is_given;             /* in this turn */
    bool is_put_off;           /* its call has not begun */
};

struct actor_timer {
    struct mu__list_node node; /* of its actor's timers */
    mu_actor *actor;
    uint64_t id;
    uint64_t timer; /* the kernel's */
    uint64_t token;
};

struct actor_work {
    struct mu__work work;        /* first */
    struct mu__list_node listed; /* of the office's works */
    uint32_t actor;
    uint64_t token;
    int (*function)(void *arg);
    void *arg;
    int code;
};

/* A monitor: of an actor here, by an actor here, or one half of either. */
struct user_watch {
    uint64_t id;                     /* of the watcher's node */
    uint64_t token;                  /* of the watcher, if it is here, */
    mu_actor *watcher;               /* which is NULL if it is not; */
    struct peer *watcher_peer;       /* then this is not */
    struct mu__list_node of_watcher; /* of its watches; of its peer's */
    mu_actor *target;                /* NULL: it is on target_peer */
    struct peer *target_peer;
    struct mu__list_node of_target; /* of its watchers; of its peer's */
    mu_address address;             /* of the target */
};

/* ---- Actors ---- */

/* Of a node's many actors most have nothing of this. */
struct actor_ties {
    struct mu__list rooms; /* struct room_wait */
    struct mu__list calls;
    struct mu__list timers;
    struct mu__list watches;
    struct mu__list watchers;
    struct mu__list children; /* struct mu_actor, by as_child: they end with it */
};

struct mu_actor {
    struct office *office;
    const mu_actor_type *type;
    uint32_t number;
    unsigned flags; /* enum mu_actor_flag */
    uint32_t mailbox_max;
    uint32_t mail_count; /* of messages, and of those that turns under way will send */
    uint64_t mailbox_bytes_max;
    uint64_t mail_bytes;
    uint32_t calls_count; /* with those of turns under way, and streams that it reads */
    bool is_poked;
    bool is_started;          /* `start` has returned 0 */
    bool ends;                /* no turn begins any more */
    struct name_owned *owned; /* NULL: it has no name */
    mu_error *why;            /* it ends; NULL: it was stopped */
    struct mu__list mail;
    struct mu__list replies;
    struct actor_streams *streams; /* NULL: it never had one */
    struct actor_ties *ties;       /* NULL: it never had one; see mu__actor_ties */
    mu_actor *parent;              /* NULL: none */
    struct mu__list_node as_child;
    struct mu__list_node in_office;
    struct kept *kept;                          /* NULL: it is not kept */
    alignas(max_align_t) unsigned char state[]; /* of the type */
};

/* The turn that is being taken. */
struct turn {
    mu_actor *actor;
    struct mail *mail; /* NULL: of a timer, or the last turn */
    struct mu__list out;
    mu_value *reply;
    mu_error *failure; /* of mu_actor_fail; NULL: none */
    mu_reply *later;
    mu_stream *stream;
    struct chain *chain; /* of the calls that it makes; NULL: none */
    struct kept_turn kept;
    bool dies;
    bool is_over; /* nothing is added any more */
};

struct office {
    struct mu__actors_config config;
    struct mu__ctx ctx; /* its own, between messages */
    struct turn *turn;
    uint64_t now_ms;             /* while an actor handles its mail; 0: ask the kernel */
    mu_actor *near[OFFICE_NEAR]; /* that have run, by the low bits of their numbers */
    struct mu__text_map types;
    struct mu__list actors;
    struct mu__map calls;   /* by number */
    struct mu__map timers;  /* by number */
    struct mu__map watches; /* of actors here, by number */
    uint64_t number_next;   /* of calls, timers and watches */
    struct mu__deadlines deadlines;
    uint64_t timer;           /* for the deadlines; 0: none */
    uint64_t timer_ms;        /* when it is due */
    struct mu__list works;    /* with the executor */
    struct mu__list requests; /* calls of threads */
    struct mu__map peers;     /* by incarnation */
    struct mu__map nodes;     /* peers that are up, by number */
    struct mu__list peers_all;
    struct naming *names; /* actors/names/naming.h */
    struct office_streams streams;
    struct mail *spare;
    struct pending_call *spare_calls;
    uint64_t late_answers; /* to calls that had ended */
    struct kept_office kept;
};

extern const struct mu__behavior mu__user_actor;

#endif
