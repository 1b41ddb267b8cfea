/* What the files of the links share: links.c is what the owner asks for, lifecycle.c one
 * link from its making to its end, greeting.c how it comes up, sending.c and receiving.c
 * its frames, ticking.c its timers, and report.c logs and shows it. */
#ifndef MU_TRANSPORT_LINKS_INTERNAL_H
#define MU_TRANSPORT_LINKS_INTERNAL_H

#include "transport/link/links.h"

#include "runtime/base/map.h"
#include "transport/link/barred.h"
#include "transport/link/frames.h"
#include "transport/link/link.h"
#include "transport/link/log_limit.h"

/* Where a process fell silent without closing its connections: it may hold its port, and
 * whoever takes its place is reached where he listens. */
struct mu__silent {
    uint64_t url_hash;
    uint64_t incarnation;       /* 0: the entry is free */
};

/* What this task is called, and where it is. */
struct mu__links_own {
    char cluster_name[64];
    char task_type[16];
    char address[MU__LINK_URL_BYTES];
    char listens[MU__LINK_URL_BYTES];   /* "": `address` */
    char host[64];
};

/* The links, by what they are found by. */
struct mu__links_index {
    struct mu__map by_out;
    struct mu__map by_in;
    struct mu__map by_node;
    struct mu__map by_epoch;
    struct mu__hash_table by_key;
};

/* The next numbers. */
struct mu__links_numbers {
    uint32_t out;
    uint32_t node;
    uint32_t epoch;
};

struct mu__links {
    struct mu__links_own own;
    struct mu__silent silent[MU__LINK_SILENT_MAX];
    unsigned silent_next;
    uint64_t refused_twin;      /* incarnation that the log has named last */
    struct mu__links_config config;
    struct mu__links_upcalls upcalls;
    struct mu__wire *wire;
    struct mu__list all;
    struct mu__list dirty;          /* links with something to send */
    struct mu__links_index index;
    struct mu__barred barred;
    struct mu__log_limit dropped_log;
    struct mu__proof proof;         /* of the connection whose HELLO is looked at */
    struct mu__log_limit greeting_log;
    uint32_t links_count;       /* without those that are REFUSING */
    uint32_t refusing_count;
    struct mu__links_numbers next;
    uint64_t tick_ms;           /* the last one */
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

/* The same for lines that any peer can cause as often as it likes: each at most once in
 * ten seconds, and then with how many were left out. */
void mu__links_log_limited(struct mu__links *links, enum mu__log_level level,
                           const char *format, ...) MU_PRINTF(3, 4);

/* A copy of at most `bytes_max` bytes, its end included; NULL when out of memory. */
char *mu__link_copy(const char *words, size_t bytes_max);

/* Thousands of links are up, and have no words; so each has memory of its own. Out of
 * memory there are none. */
void mu__link_keep_words(char **at, const char *words);

/* When its time has come, the log says that the task is missing. */
void mu__link_note_waiting(struct mu__links *links, struct mu__link *link,
                           uint64_t now_ms);

/* Those who wait for the task are told why each attempt fails, once for each reason. */
void mu__link_report_failing(struct mu__links *links, struct mu__link *link);

/* ---- lifecycle.c ---- */

/* A link in `state`, found by its key. NULL: out of memory, or
 * mu__links_are_too_many. */
struct mu__link *mu__link_new(struct mu__links *links, const char *type, uint32_t index,
                              const char *url, enum mu__link_state state);

void mu__link_free(struct mu__links *links, struct mu__link *link);

/* Beyond a bound: of links, or of words. */
bool mu__links_are_too_many(struct mu__links *links, const char *type, const char *url,
                            enum mu__link_state state);

/* Into another state, which may follow the present one. */
void mu__link_move(struct mu__links *links, struct mu__link *link,
                   enum mu__link_state state);

/* What a link is found by: its task; one that refuses a peer, by where that peer is, so
 * that it is not refused twice at a time. Nobody searches one that is parting. */
uint64_t mu__link_key(const struct mu__link *link);

/* Nobody finds it by its key any more. */
void mu__link_unkey(struct mu__links *links, struct mu__link *link);

/* Of those with the key of this task; NULL: none. The caller compares. */
struct mu__link *mu__link_first(const struct mu__links *links, struct mu__view type,
                                uint32_t index);

static inline struct mu__link *mu__links_first(const struct mu__links *links)
{
    return MU__LIST_FIRST(&links->all, struct mu__link, listed);
}

/* The next of all links. */
static inline struct mu__link *mu__links_next(const struct mu__link *link)
{
    return MU__LIST_NEXT(link, struct mu__link, listed);
}

/* An epoch begins. */
int mu__link_dial(struct mu__links *links, struct mu__link *link);

/* It was lost soon after it came up, more than once in a row, and rests for that: it is
 * dialled then, and not before. */
bool mu__link_settles(struct mu__links *links, const struct mu__link *link);

/* Until it is dialled again. */
void mu__link_rest(struct mu__links *links, struct mu__link *link);

/* The same, because nothing was heard of the peer: until somebody is up at its address,
 * mu__link_detour is of use. */
void mu__link_go_silent(struct mu__links *links, struct mu__link *link,
                        const char *reason);

/* Whether the process at `url` fell silent, and is another one than `incarnation`. */
bool mu__links_is_silent(const struct mu__links *links, const char *url,
                         uint64_t incarnation);
void mu__links_not_silent(struct mu__links *links, const char *url);

/* Both connections go; a kept link will be dialled again, another one is freed. */
void mu__link_go_down(struct mu__links *links, struct mu__link *link, const char *reason);

/* Whoever was reached is not the peer: at once to the next address of the name, or, when
 * that was the last one, after a pause of `pause_ms` at least. */
void mu__link_try_elsewhere(struct mu__links *links, struct mu__link *link,
                            const char *reason, uint32_t pause_ms);

/* ---- sending.c ---- */

/* A frame of the protocol; `msg` NULL: without a record. */
void mu__link_say(struct mu__links *links, struct mu__link *link, uint8_t type,
                  const struct mu__msg *msg);
void mu__link_say_hello(struct mu__links *links, struct mu__link *link);
void mu__link_say_refuse(struct mu__links *links, struct mu__link *link);
void mu__link_say_bye(struct mu__links *links, struct mu__link *link, const char *reason);

/* It has nothing to send any more. */
void mu__link_undirty(struct mu__links *links, struct mu__link *link);

/* ---- greeting.c ---- */

/* A HELLO has come on `in`, or a REFUSE from anywhere. */
void mu__links_hello(struct mu__links *links, uint32_t in,
                     const struct mu__frame_header *header, struct mu__msg *msg);
void mu__links_refusal(struct mu__links *links, const struct mu__frame_header *header,
                       struct mu__msg *msg);

/* ---- proof.c ---- */

/* What the other end of `in` has proven, into links->proof. */
void mu__link_read_proof(struct mu__links *links, uint32_t in);

/* Whether a HELLO, by links->proof, says what its sender has not proven: to be a task,
 * with a key or certificate for clients, or another task than that of its certificate. */
bool mu__link_is_unproven(const struct mu__links *links, const struct mu__hello *hello,
                          char *why, size_t size);

/* Whether the peer has not proven the right that the message needs; logged. */
bool mu__link_is_forbidden(struct mu__links *links, const struct mu__link *link,
                           const struct mu__msg *msg);

#endif
