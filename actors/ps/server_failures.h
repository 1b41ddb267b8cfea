/* Reports that a parameter server fails, counted for each server by itself.
 *
 * The first `ignored` reports count as transient trouble; the next one does not. A second
 * report of one reporter on the same server within `same_ms` is the same trouble, and
 * does not count. Reports are forgotten after `decay_ms`. Plain data.
 *
 * Memory: at most MU__SERVER_FAILURES_SERVERS_MAX servers, the one without reports for
 * longest is replaced; for each at most `ignored` reports of 16 bytes. Without memory for
 * a report it is forgotten at once. */
#ifndef MU_ACTORS_SERVER_FAILURES_H
#define MU_ACTORS_SERVER_FAILURES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { MU__SERVER_FAILURES_SERVERS_MAX = 1024 };

struct mu__server_failures_options {
    uint32_t ignored; /* 0: none */
    uint64_t decay_ms;
    uint64_t same_ms;
};

struct mu__server_failures;

/* NULL: out of memory. `options` is copied. */
struct mu__server_failures *mu__server_failures_new(
    const struct mu__server_failures_options *options);
void mu__server_failures_free(struct mu__server_failures *failures);

/* A reporter says that a server (by task index) fails. True: the trouble is not
 * transient; the count begins anew. */
bool mu__server_failures_report(struct mu__server_failures *failures, uint32_t server,
                                uint32_t reporter, uint64_t now_ms);

/* How many reports of a server count now. */
uint32_t mu__server_failures_count(struct mu__server_failures *failures, uint32_t server,
                                   uint64_t now_ms);

#endif
