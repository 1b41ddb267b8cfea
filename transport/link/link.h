/* One link to one task: its state, its connection, what waits to be sent. */
#ifndef MU_TRANSPORT_LINK_H
#define MU_TRANSPORT_LINK_H

#include "runtime/base/hash_table.h"
#include "runtime/base/list.h"
#include "transport/link/outbox.h"

struct mu__dial_tried;

enum {
    MU__LINK_RETRY_MAX_MS = 5000,   /* longest pause before dialling again */
    MU__LINK_ANSWER_MS = 200,       /* an attempt that takes longer is reported */
    MU__LINK_TAKEN_RETRY_MS = 1000, /* pause before dialling again while another process
                                       plays this task: that one may end */
    MU__LINK_URL_BYTES = 256,       /* with the zero byte, as the next */
    MU__LINK_REASON_BYTES = 512,
    MU__LINK_WHO_BYTES = 400 /* of a text that names one process */
};

/* lifecycle.c has the table of transitions. */
enum mu__link_state {
    MU__LINK_RESTING,  /* will be dialled again at retry.due_ms */
    MU__LINK_DIALLING, /* the wire tries to connect */
    MU__LINK_GREETING, /* it is connected; our HELLO was sent, theirs has not
                          come */
    MU__LINK_UP,
    MU__LINK_PARTING, /* the last word was said, REFUSE or BYE; until the peer
                         has hung up */
    MU__LINK_STATES_COUNT
};

enum mu__link_origin {
    MU__LINK_ACCEPTED,    /* the peer began it; it ends when it goes down */
    MU__LINK_RETAINED,    /* of mu__links_dial */
    MU__LINK_RETAINED_ANY /* of mu__links_dial_any: to whatever task answers */
};

/* The process at the other end, as its HELLO describes it. */
struct mu__link_peer {
    char *url;      /* its address, or where it was seen if it has none;
                       NULL: that of the link */
    char *software; /* NULL: not known, as the next */
    char *host;
    uint64_t pid;         /* 0: not known */
    uint64_t incarnation; /* 0: its HELLO has not come yet */
    enum mu__right right; /* that it has proven */
    enum mu__right may;   /* the same, as a process of its type; while it is up */
    bool is_chief;        /* while it is up */
};

/* When each last happened. */
struct mu__link_times {
    uint64_t heard_ms;
    uint64_t said_ms;
    uint64_t taken_ms; /* the wire took something of ours */
    uint64_t since_ms; /* of the present state */
};

/* How a link that is down comes up again. */
struct mu__link_retry {
    uint64_t due_ms;
    uint32_t backoff_ms;
    bool is_lost;            /* it was up, and is dialled for the first time since: who
                                needs it wants to know at once whether nobody is there */
    uint32_t early_losses;   /* how often in a row it was lost soon after it came up */
    uint32_t address_number; /* the wire's, of the address that was reached; 0: none */
    unsigned addresses_count;
    struct mu__dial_tried *tried; /* addresses of its name where it was not found in
                                     this round; NULL: none */
};

/* Since when its task is missing, and when the log says so. */
struct mu__link_missing {
    uint64_t since_ms;
    uint64_t taken_since_ms; /* the peer refuses this node as a second process of its
                                task; 0: it does not */
    uint64_t note_ms;        /* time of the next line of the log */
    uint32_t step_ms;        /* from that line to the one after it */
};

/* While it is up. */
struct mu__link_backlog {
    bool is_behind; /* as the owner knows */
    bool is_unread; /* mu__links_read */
};

/* A large record whose pieces are coming in. */
struct mu__link_assembling {
    struct mu__buf *record; /* NULL: none */
    uint64_t total;
};

struct mu__link {
    struct mu__hash_node hashed;  /* by mu__link_key; first: it casts */
    struct mu__list_node listed;  /* of all links */
    struct mu__list_node sending; /* of links with something to send */
    enum mu__link_state state;    /* set by mu__link_move alone */
    enum mu__link_origin origin;
    bool dirty; /* in links->dirty */
    struct mu__link_backlog backlog;
    bool left; /* the peer said goodbye: not logged as missing */
    char type[16];
    uint32_t index;
    char *url;
    char *why;            /* the last reason for not being up; NULL: none */
    char *reported_error; /* the wire's reason that was reported last */
    uint32_t connection;  /* the wire's; 0: none. The epoch of the link */
    uint32_t node;        /* while up */
    struct mu__link_peer peer;
    struct mu__link_times times;
    struct mu__link_retry retry;
    struct mu__link_missing missing;
    struct mu__outbox outbox;
    struct mu__link_assembling assembling;
};

/* Clients come and go, some for one look at the status: no news but for who debugs. */
static inline enum mu__log_level mu__link_news_level(const struct mu__link *link)
{
    return strcmp(link->type, "client") == 0 ? MU__LOG_DEBUG : MU__LOG_INFO;
}

static inline bool mu__link_is_retained(const struct mu__link *link)
{
    return link->origin != MU__LINK_ACCEPTED;
}

/* The address in the peer's HELLO, or where it was seen if it has none; before it has
 * come, the one that is dialled. "": not known. */
static inline const char *mu__link_address(const struct mu__link *link)
{
    return link->peer.url == NULL ? link->url : link->peer.url;
}

/* The next link of the same key; NULL: none. */
static inline struct mu__link *mu__link_next(const struct mu__link *link)
{
    return (struct mu__link *)mu__hash_next(&link->hashed);
}

static inline const char *mu__link_words(const char *words)
{
    return words == NULL ? "" : words;
}

#endif
