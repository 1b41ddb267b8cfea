/* The names of an office: those that its actors and threads talk to, and those that it
 * owns.
 *
 * A name has an entry here from its first use on. The coordination service tells of each
 * change of its owner; until there is one, messages wait in the entry, in the order of
 * their numbers. A message that cannot have run, as its owner was gone, waits again. */
#ifndef MU_ACTORS_NAMES_NAMING_H
#define MU_ACTORS_NAMES_NAMING_H

#include "actors/user/internal.h"

#ifdef MUSTER_TINY
enum { NAMES_MAX = 64, NAME_WAITING_MAX = 16 };
#else
enum {
    NAMES_MAX = 1 << 16,
    NAME_WAITING_MAX = 1024 /* messages that wait for one name */
};
#endif

enum {
    NAME_WAITING_BYTES = 8 << 20,
    NAME_SEND_MS = 10000,  /* a send waits so long for an owner */
    NAME_REQUEST_MS = 100, /* between two questions for an owner that seems gone */
    NAME_AGAIN_MS = 10,    /* until a way that was full is tried again */
    NAME_WORDS_MAX = 256
};

/* Who sends it: an owner of a name. */
struct owner_mark {
    uint64_t epoch; /* 0: it is none */
    char name[MU__ACTOR_NAME_MAX + 1];
};

/* A message to a name, while it has not left. */
struct name_message {
    struct mu__list_node node;
    struct name_entry *entry;
    uint64_t number; /* in the order of sending */
    uint64_t due_ms; /* a send is dropped then */
    mu_value *args;
    struct pending_call *call; /* NULL: a send */
    uint32_t bytes;
    bool waits; /* in its entry; else in a turn */
    struct owner_mark mark;
    char method[MU__ACTOR_NAME_MAX + 1];
};

/* An actor that a thread, or an actor, wants to have under a name. */
struct name_wish {
    struct mu__list_node node;
    uint64_t token;
    uint64_t call; /* of the thread; 0: an actor */
    bool is_answered;
    mu_value *args;
    mu_actor_options options;
    char name[MU__ACTOR_NAME_MAX + 1];
    char type[MU__ACTOR_NAME_MAX + 1];
    char task_type[16];
};

/* A monitor of a name. */
struct name_watch {
    struct mu__list_node node;
    uint32_t actor;
    uint64_t token;
};

struct name_entry {
    struct mu__text_node named; /* first */
    enum mu__name_phase state;
    uint64_t epoch;
    bool is_kept;          /* its owner is called by the name (actors/keeper/kept.h) */
    bool takes_any;        /* epochs of another service's store may be lower */
    uint64_t request_ms;   /* its owner seems gone: the service is asked again; 0: not */
    bool is_relayed;       /* calls to it go over the service (relays.h) */
    uint64_t routed_epoch; /* of the owner to whom a way was looked for */
    uint64_t last;         /* the highest number that went to the owner of this epoch */
    mu_address owner;
    int code;
    struct mu__list waiting; /* struct name_message */
    uint32_t waiting_count;  /* with those of turns */
    uint64_t waiting_bytes;
    struct mu__list rooms;
    struct mu__list wishes;
    struct mu__list watches;
    uint64_t stop_token; /* of a NAME_STOP that is not answered; 0: none */
    uint32_t stop_how;
    char why[NAME_WORDS_MAX];
    char text[MU__ACTOR_NAME_MAX + 1];
};

/* What an actor with a name has of it. */
struct name_owned {
    struct mu__list_node node;
    mu_actor *actor;
    uint64_t epoch;
    bool is_moved; /* its task is drained */
    char text[MU__ACTOR_NAME_MAX + 1];
};

struct naming {
    struct mu__text_map entries;
    uint32_t count;
    struct mu__list owned;
    struct mu__list known; /* owners that others have (owner_marks.h) */
    struct mu__text_map known_map;
    uint32_t known_count;
    uint64_t dropped; /* messages of former owners */
    bool has_service;
    uint32_t service; /* its node */
    bool has_offered; /* in this session */
    bool drains;
    uint64_t timer; /* 0: none */
    uint64_t timer_ms;
    uint64_t hold_due_ms;
    uint32_t lease_ms;
    uint64_t lease_until_ms; /* by this node's clock */
};

/* ---- for the office ---- */

int mu__naming_init(struct office *office);
void mu__naming_done(struct office *office);
void mu__naming_on_timer(struct office *office);

/* The node closes: what it owns moves. */
void mu__naming_leave(struct office *office);

/* A type was registered. */
void mu__naming_offer(struct office *office);

/* A link is down. */
void mu__naming_node_down(struct office *office, uint32_t node);

void mu__naming_on_session(struct mu__ctx *ctx, void *state, struct mu__msg *msg);
void mu__naming_on_news(struct mu__ctx *ctx, void *state, struct mu__msg *msg);
void mu__naming_on_start(struct mu__ctx *ctx, void *state, struct mu__msg *msg);
void mu__naming_on_hold(struct mu__ctx *ctx, void *state, struct mu__msg *msg);
void mu__naming_on_stop(struct mu__ctx *ctx, void *state, struct mu__msg *msg);
void mu__naming_on_drain(struct mu__ctx *ctx, void *state, struct mu__msg *msg);

/* ---- messages ---- */

/* The mail of a message to a name: as mu__message_make, which calls it. */
int mu__naming_make(struct office *office, const mu_address *to, const char *method,
                    const mu_value *args, uint32_t bytes, struct pending_call *call,
                    uint32_t waits, mu_error *ret_error, struct mail **ret_mail);

/* An OUT_NAMED is done, or undone. */
void mu__naming_send(struct office *office, struct name_message *message);
void mu__naming_drop(struct office *office, struct name_message *message);

/* Why a call that waits here was not answered in time. */
void mu__naming_explain(const struct office *office, const struct pending_call *call,
                        char *out, size_t size);

/* A call was refused, as its actor was gone. True: it waits for the next owner. */
bool mu__naming_again(struct office *office, struct pending_call *call);

/* There is no such actor: if one of this name is not started any more, the error is that
 * instead. */
void mu__naming_say_failure(struct office *office, const char *name, mu_error *error);

/* ---- spawning, stopping, monitors ---- */

/* What is wanted; `options` has a name, and is checked. NULL: out of memory. */
struct name_wish *mu__wish_new(const char *type, const mu_value *args,
                               const mu_actor_options *options);
void mu__wish_free(struct name_wish *wish);

/* A thread waits for it, with this call, which has begun. */
void mu__wish_of_thread(struct name_wish *wish, uint64_t call);

/* Takes the wish. */
int mu__naming_wish(struct office *office, struct name_wish *wish, mu_error *ret_error);
void mu__naming_end(struct office *office, const char *name, int how);
void mu__naming_watch(struct office *office, struct user_watch *watch);
void mu__naming_unwatch(struct office *office, uint32_t actor, uint64_t token);

/* ---- owned ---- */

/* Whether the lease of this node is not over. */
bool mu__naming_holds(struct office *office);

/* The actor of a name has started; has ended. */
void mu__naming_started(mu_actor *actor);
void mu__naming_ended(mu_actor *actor);

/* An actor that moves, or has failed, says in its last turn which calls have not begun:
 * like what waits in its mailbox, they go to the next owner of its name. */
void mu__naming_pass_on(const mu_actor *actor, mu_error *error);

/* ---- of the office, for this folder ---- */

/* A call to an actor that cannot get it is answered when the turn has ended; a send
 * returns the code. */
int mu__refuse_at_sender(struct office *office, int code, const char *words,
                         struct pending_call *call, mu_error *ret_error,
                         struct mail **ret_mail);

/* It is not at another node, nor in a mailbox, any more. */
void mu__call_leave_peer(struct pending_call *call);

/* ---- between the files of this folder ---- */

/* The entry of a name that was checked; NULL: there is none. With _get one is made, and
 * followed; NULL: no room. */
struct name_entry *mu__name_entry_find(const struct office *office, struct mu__view name);
struct name_entry *mu__name_entry_get(struct office *office, const char *name);

/* The name, and where it is. */
mu_address mu__name_entry_address(const struct name_entry *entry);

/* Why it is not started any more. */
void mu__name_entry_failure(const struct name_entry *entry, mu_error *ret_error);

/* Its monitors fire; `why` NULL: it was stopped. */
void mu__name_entry_down(struct office *office, struct name_entry *entry,
                         const mu_error *why);

/* The service has answered a wish, or something else. True: it has refused that. */
bool mu__wish_answered(struct office *office, struct name_entry *entry,
                       const struct mu__name_news *body);

/* Those that are answered end: there is an actor, or why there is none. */
void mu__wishes_end(struct office *office, struct name_entry *entry,
                    const mu_error *error);
void mu__wishes_send(struct office *office, const struct name_entry *entry);
void mu__wishes_free(struct name_entry *entry);

/* A message to the service with room for texts behind its body; NULL: there is none now.
 */
struct mu__msg *mu__naming_msg(struct office *office, uint16_t kind, size_t body,
                               size_t texts);
void mu__naming_post(struct office *office, struct mu__msg *msg);
void mu__naming_arm(struct office *office, uint64_t due_ms);
void mu__naming_begin_session(struct office *office);
void mu__naming_own_timer(struct office *office);

#endif
