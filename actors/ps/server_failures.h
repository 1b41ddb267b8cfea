/* Reports that a parameter server fails, counted for each server by itself.
 *
 * The first `ignored` reports are taken for passing; the next one is not. A report of
 * someone whose last report of the same server that counted is less than `same_ms` old is
 * the same trouble told twice, and does not count. Reports are forgotten after
 * `decay_ms`. Plain data.
 *
 * Memory: at most MU__SERVER_FAILURES_SERVERS_MAX servers, the longest silent one gives
 * way; for each at most `ignored` reports of 16 bytes. Without memory for a report it is
 * forgotten at once. */
#ifndef MU_ACTORS_SERVER_FAILURES_H
#define MU_ACTORS_SERVER_FAILURES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { MU__SERVER_FAILURES_SERVERS_MAX = 1024 };

struct mu__server_failures_options {
    uint32_t ignored;       /* 0: none */
    uint64_t decay_ms;
    uint64_t same_ms;
};

struct mu__server_failures;

/* NULL: out of memory. `options` is copied. */
struct mu__server_failures *
mu__server_failures_new(const struct mu__server_failures_options *options);
void mu__server_failures_free(struct mu__server_failures *failures);

/* Someone says that a server (by task index) fails. True: it is not passing any more; its
 * count begins anew. */
bool mu__server_failures_report(struct mu__server_failures *failures, uint32_t server,
                                uint32_t reporter, uint64_t now_ms);

/* Reports of a server that count now. */
uint32_t mu__server_failures_count(struct mu__server_failures *failures, uint32_t server,
                                   uint64_t now_ms);

#endif
