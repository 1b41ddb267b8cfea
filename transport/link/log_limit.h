/* A limit for log lines that a peer can cause as often as it likes: one a second in all,
 * and one in ten seconds for each address, or for each text, so that one peer does not
 * hide the others. The next line has a count of those not shown. Plain data. */
#ifndef MU_TRANSPORT_LINK_LOG_LIMIT_H
#define MU_TRANSPORT_LINK_LOG_LIMIT_H

#include <stdbool.h>
#include <stdint.h>

enum {
    MU__LOG_PAUSE_MS = 1000,    /* from one line to the next */
    MU__LOG_TIMEOUT_MS = 10000, /* the same, of one address or text */
    MU__LOG_LIMIT_SLOTS = MU__LOG_TIMEOUT_MS / MU__LOG_PAUSE_MS,
    MU__LOG_LIMIT_BYTES = 64
};

struct mu__log_limit_slot {
    char about[MU__LOG_LIMIT_BYTES]; /* an address, or a text's hash */
    uint64_t said_ms;
    bool used;
};

/* Zeroed memory: nothing was logged yet. */
struct mu__log_limit {
    struct mu__log_limit_slot slots[MU__LOG_LIMIT_SLOTS];
    uint64_t said_ms;
    uint64_t hidden; /* since then */
    bool used;
};

/* Whether a line about this address is to be shown now, and how many were not shown since
 * the last one. Ports do not tell addresses apart: "10.0.0.1:5000" is "10.0.0.1". */
bool mu__log_limit_show(struct mu__log_limit *limit, const char *address, uint64_t now_ms,
                        uint64_t *ret_hidden);

/* The same by the text of the line. */
bool mu__log_limit_show_line(struct mu__log_limit *limit, const char *line,
                             uint64_t now_ms, uint64_t *ret_hidden);

#endif
