/* The connections that have not proven themselves yet: how many there may be, for how
 * long, and how fast one address may begin them. A connection has proven itself when the
 * links have accepted its HELLO.
 *
 * When there are too many, the oldest goes, so that a member, which proves itself at
 * once, gets in however many others there are. A connection that ends unproven costs its
 * address a token; one that proves itself gives the token back, so that only those that
 * do not are counted. So is the processor time of their TLS handshakes, and that of all
 * of them together, wherever they come from, this machine included.
 *
 * Pure: plain data. Who ends a connection removes it here. */
#ifndef MU_TRANSPORT_UNPROVEN_H
#define MU_TRANSPORT_UNPROVEN_H

#include "runtime/base/list.h"

#include <stdbool.h>
#include <stdint.h>

enum {
    MU__UNPROVEN_MAX = 512,
    MU__UNPROVEN_MS = 10000,         /* the longest for which one may stay so */
    MU__UNPROVEN_BYTES_MAX = 4096,   /* read ahead of it, and of one frame: a HELLO has
                                        some 1,000, a ClientHello at most 2,000 */
    MU__UNPROVEN_SESSIONS_MAX = 192, /* TLS sessions: each has some 40 KiB */

    /* The tasks of a large machine may begin at once behind one address. Later ones
     * are few: probes of health, people's mistakes. */
    MU__UNPROVEN_BURST = 256,
    MU__UNPROVEN_PER_SECOND = 8,
    MU__UNPROVEN_TOKEN_US = 2000, /* of processor time also take a token */

    /* Processor time that all of them may take at once, and in each second. */
    MU__UNPROVEN_BURST_US = 500000,
    MU__UNPROVEN_SECOND_US = 250000,

    MU__UNPROVEN_SOURCES = 512 /* addresses that are remembered; of each group of
                                  eight the one used last the longest ago goes */
};

/* The source of a connection: an IPv6 address, or an IPv4 one mapped into it. */
struct mu__source {
    uint8_t bytes[16];
    bool is_limited; /* false: from this machine, where whoever is hostile has
                        better means than connections */
};

struct mu__unproven_entry {
    struct mu__list_node listed;
    struct mu__list_node in_session;
    struct mu__source source;
    uint64_t since_ms;
    uint64_t spent_us; /* of processor time */
    bool is_listed;
    bool has_session;
};

struct mu__source_tokens {
    uint8_t bytes[16];
    uint64_t at_ms;
    uint32_t thousandths; /* of tokens */
    bool used;
};

struct mu__unproven {
    struct mu__list entries;  /* the oldest first */
    struct mu__list sessions; /* those with a TLS session, the oldest session first */
    unsigned count;
    unsigned sessions_count;
    uint64_t seed;
    uint64_t spent_us; /* of processor time, less what time has given back */
    uint64_t spent_at_ms;
    struct mu__source_tokens sources[MU__UNPROVEN_SOURCES];
};

/* `seed`: a random number, by which nobody can tell which addresses share a group. */
void mu__unproven_init(struct mu__unproven *unproven, uint64_t seed);

/* Whether this address may begin one more connection now: takes a token. */
bool mu__unproven_admits(struct mu__unproven *unproven, const struct mu__source *source,
                         uint64_t now_ms);

/* `entry` begins now, later than all others. Returns the one that is to be ended because
 * of it, or NULL. */
struct mu__unproven_entry *mu__unproven_add(struct mu__unproven *unproven,
                                            struct mu__unproven_entry *entry,
                                            const struct mu__source *source,
                                            uint64_t now_ms);

/* `entry`, which has none, is going to have a TLS session. Returns the one that is to be
 * ended because of it, or NULL. */
struct mu__unproven_entry *mu__unproven_add_session(struct mu__unproven *unproven,
                                                    struct mu__unproven_entry *entry);

/* Whether one more handshake may begin now, by the processor time that the former ones
 * have taken. */
bool mu__unproven_has_time(struct mu__unproven *unproven, uint64_t now_ms);

/* The handshake of `entry`, which may have ended, has taken processor time. */
void mu__unproven_spend(struct mu__unproven *unproven, struct mu__unproven_entry *entry,
                        uint64_t us);

/* It has ended; also for one that has proven itself. */
void mu__unproven_remove(struct mu__unproven *unproven, struct mu__unproven_entry *entry);

/* It has proven itself. */
void mu__unproven_prove(struct mu__unproven *unproven, struct mu__unproven_entry *entry);

/* NULL: there is none. */
struct mu__unproven_entry *mu__unproven_oldest(const struct mu__unproven *unproven);

/* The oldest, if its time is over; else NULL. */
struct mu__unproven_entry *mu__unproven_overdue(const struct mu__unproven *unproven,
                                                uint64_t now_ms);

#endif
