/* Shared by the files of the links: links.c has the calls of the owner, lifecycle.c the
 * states of one link, greeting.c the handshake, refusing.c what is refused then, proof.c
 * what peers may say, sending.c and receiving.c its frames, ticking.c its timers, and
 * report.c logs and shows it. */
#ifndef MU_TRANSPORT_LINKS_INTERNAL_H
#define MU_TRANSPORT_LINKS_INTERNAL_H

#include "transport/link/links.h"

#include "runtime/base/map.h"
#include "transport/link/barred.h"
#include "transport/link/frames.h"
#include "transport/link/link.h"
#include "transport/link/log_limit.h"

/* The names and addresses of this task. */
struct mu__links_own {
    char cluster_name[64];
    char task_type[16];
    char address[MU__LINK_URL_BYTES]; /* "": nobody can dial it */
    char host[64];
};

/* The links, by each key by which they are searched. */
struct mu__links_index {
    struct mu__map by_connection;
    struct mu__map by_node;
    struct mu__hash_table by_key;
};

/* The numbers given out last. */
struct mu__links_numbers {
    uint32_t connection;
    uint32_t node;
};

/* A HELLO, and the connection that it came on. */
struct mu__greeting {
    uint32_t connection;
    const struct mu__frame_header *header;
    const struct mu__hello *hello;
    struct mu__link *dialled; /* whose HELLO it answers; NULL: it was accepted */
    struct mu__proof proof;   /* of the other end */
    char seen_at[64];         /* its address: "10.0.0.7:5000"; "": not known */
};

struct mu__links {
    struct mu__links_own own;
    uint64_t refused_twin; /* the second process of a task that was logged last */
    struct mu__links_config config;
    struct mu__links_upcalls upcalls;
    struct mu__wire *wire;
    struct mu__list all;
    struct mu__list dirty; /* links with something to send */
    struct mu__links_index index;
    struct mu__barred barred;
    struct mu__log_limit peers_log;
    uint32_t links_count; /* without those that are PARTING */
    uint32_t parting_count;
    struct mu__links_numbers next;
    uint64_t tick_ms; /* time of the last tick */
    uint64_t due_ms;  /* of the next one */
    bool leaving;
    struct mu__links_counters counters;
};

static inline uint64_t mu__links_now(const struct mu__links *links)
{
    return links->config.world->ops->now_ms(links->config.world);
}

/* ---- report.c ---- */

void mu__links_log(const struct mu__links *links, enum mu__log_level level,
                   const char *format, ...) MU_PRINTF(3, 4);

/* The same for lines that any peer can cause as often as it likes: few of them, by
 * log_limit.h, with how many were left out. */
void mu__links_log_limited(struct mu__links *links, enum mu__log_level level,
                           const char *format, ...) MU_PRINTF(3, 4);

/* The same for a line about a peer at `address`, whatever it says. */
void mu__links_log_peer(struct mu__links *links, enum mu__log_level level,
                        const char *address, const char *format, ...) MU_PRINTF(4, 5);

/* A copy of at most `bytes_max` bytes, its end included; NULL when out of memory. */
char *mu__link_copy(const char *words, size_t bytes_max);

/* Replace the text *at by a copy of `words`; for "", and out of memory, by NULL. Texts
 * are allocated one by one, because a link that is up, as most are, has none. */
void mu__link_keep_words(char **at, const char *words);

/* Log that the task is missing, if such a line is due. */
void mu__link_note_waiting(struct mu__links *links, struct mu__link *link,
                           uint64_t now_ms);

/* Report to the owner (upcall `trouble`) why attempts fail, once for each reason. */
void mu__link_report_failing(struct mu__links *links, struct mu__link *link);

/* ---- lifecycle.c ---- */

/* A new link in `state`, RESTING or PARTING. NULL: out of memory, or
 * mu__links_are_too_many. */
struct mu__link *mu__link_new(struct mu__links *links, const char *type, uint32_t index,
                              const char *url, enum mu__link_state state);

void mu__link_free(struct mu__links *links, struct mu__link *link);

/* Whether a new link would exceed a bound: the number of links, the length of a text. */
bool mu__links_are_too_many(struct mu__links *links, const char *type, const char *url,
                            enum mu__link_state state);

/* Change the state to one that may follow the present one. */
void mu__link_move(struct mu__links *links, struct mu__link *link,
                   enum mu__link_state state);

/* Put a link into by_key, by its task; remove it. PARTING links are not in there. Out of
 * memory: not 0. */
int mu__link_enkey(struct mu__links *links, struct mu__link *link);
void mu__link_unkey(struct mu__links *links, struct mu__link *link);

/* The first link with the key of this task; NULL: none. The caller compares the task. */
struct mu__link *mu__link_first(const struct mu__links *links, struct mu__view type,
                                uint32_t index);

static inline struct mu__link *mu__links_first(const struct mu__links *links)
{
    return MU__LIST_FIRST(&links->all, struct mu__link, listed);
}

/* The next of all links; NULL at the end. */
static inline struct mu__link *mu__links_next(const struct mu__link *link)
{
    return MU__LIST_NEXT(link, struct mu__link, listed);
}

int mu__link_dial(struct mu__links *links, struct mu__link *link);

/* The connection is this link's from now on. Out of memory: not 0. */
int mu__link_connect(struct mu__links *links, struct mu__link *link, uint32_t connection);

/* The connection is no link's any more. */
void mu__link_let_go(struct mu__links *links, struct mu__link *link);

/* End the link's connection, and forget what has come of it. */
void mu__link_disconnect(struct mu__links *links, struct mu__link *link);

/* Rest for the back-off, after which the link is dialled again. */
void mu__link_rest(struct mu__links *links, struct mu__link *link);

/* ticking.c: the next tick is due then, or earlier. */
void mu__links_hasten(struct mu__links *links, uint64_t due_ms);

/* End the connection. A retained link will be dialled again, another one is freed. */
void mu__link_go_down(struct mu__links *links, struct mu__link *link, const char *reason);

/* Go down because the process that was reached is not the peer. The next address of the
 * name is dialled at once; when that was the last one, after `pause_ms` at least. */
void mu__link_try_elsewhere(struct mu__links *links, struct mu__link *link,
                            const char *reason, uint32_t pause_ms);

/* ---- sending.c ---- */

/* Queue a frame of the protocol; `msg` NULL: without a record. */
void mu__link_say(struct mu__links *links, struct mu__link *link, uint8_t type,
                  const struct mu__msg *msg);
void mu__link_say_hello(struct mu__links *links, struct mu__link *link);
void mu__link_say_refuse(struct mu__links *links, struct mu__link *link);
void mu__link_say_bye(struct mu__links *links, struct mu__link *link, const char *reason);

/* Remove a link from the list of links with something to send. */
void mu__link_undirty(struct mu__links *links, struct mu__link *link);

/* ---- greeting.c ---- */

/* Handle a HELLO, or a REFUSE for `link`. */
void mu__links_hello(struct mu__links *links, uint32_t connection,
                     const struct mu__frame_header *header, struct mu__msg *msg);
void mu__links_refusal(struct mu__links *links, struct mu__link *link,
                       const struct mu__frame_header *header, struct mu__msg *msg);

/* The link that is up to the sender's task; NULL: there is none. */
struct mu__link *mu__link_up_to(const struct mu__links *links,
                                const struct mu__greeting *greeting);

static inline bool mu__link_is_client(struct mu__view type)
{
    return mu__view_is(type, MU__CLIENT_TYPE);
}

/* ---- refusing.c ---- */

/* Refuse a HELLO if there is a reason to; true: it was refused, and its connection is no
 * link's any more. */
bool mu__link_refuse_hello(struct mu__links *links, const struct mu__greeting *greeting);

#endif
