/* Sends what runs write to the parameter servers. One on every node.
 *
 * Hears:  EFFECTS_SEND from the worker of this node; EFFECT_WRITTEN from servers;
 *         VAR_REOPENED from the variables actor of this node; node news; its timers
 * Says:   EFFECT_WRITE to servers; VAR_REOPEN; EFFECTS_SENT to the worker, once for each
 *         run
 * Owns:   of a run, its writes (which it sorts by server), `code` and `failure`, until
 *         EFFECTS_SENT
 * Fails:  never by itself; a run's `code` says what became of its writes
 *
 * The writes of one run to one server are a batch: the server stages its pieces, and with
 * the last one applies all or none. When a server is lost before it answered, the batch
 * is sent again, from its first piece, once it is back - if the run has an effect number,
 * by which the server knows what it has applied, or if the last piece was not sent; else
 * the run fails as mu_variable_add does. A server that does not know a shard any more has
 * refused the batch as a whole: its variables are opened by their names, and the batch is
 * sent again if they were restored.
 *
 * A run whose writes have failed gets `code`, and `failure`: kind MU_ERROR_SERVER, and
 * the server in `task`. `failure` is the run's to free, and NULL when there was no
 * memory. */
#ifndef MU_ACTORS_EFFECTS_H
#define MU_ACTORS_EFFECTS_H

#include "runtime/kernel/kernel.h"

struct mu__opened_variable;

/* One write to one shard, with its data. */
struct mu__effect {
    struct mu__effect *next;    /* in the order in which they were made */
    uint32_t server;            /* task index */
    uint32_t operation;         /* enum mu__write_operation: ASSIGN, ADD, SGD, MOMENTUM */
    uint64_t variable;          /* the shard's id */
    struct mu__opened_variable *opened; /* whose shard it is; a reference. NULL: it is not
                                           reopened when its server has lost it */
    uint32_t shard;             /* of `opened` */
    double rate;
    double momentum;
    uint64_t size;
    unsigned char data[];
};

/* The writes of one run. */
struct mu__effects {
    struct mu__effect *first;
    struct mu__effect *last;
    uint64_t bytes;
    uint64_t origin;            /* of the RUN; effect 0: not applied once */
    uint64_t effect;
    uint64_t effects_done;
};

enum {
    MU__EFFECTS_BYTES_MAX = 64 << 20,
    MU__EFFECT_BYTES_MIN = 64       /* what a smaller write counts as */
};

/* Append a copy of a write with `write->size` bytes of data, at least 1. -MU_EEXHAUSTED,
 * -MU_ENOMEM. */
int mu__effects_add(struct mu__effects *effects, const struct mu__effect *write,
                    const void *data);
void mu__effects_clear(struct mu__effects *effects);

/* Remove what was appended behind `last` (NULL: all), when the list had `bytes`. */
void mu__effects_cut(struct mu__effects *effects, struct mu__effect *last,
                     uint64_t bytes);

/* The weight of a piece in windows and bounds of memory, at both ends. */
static inline uint64_t mu__effect_weight(uint64_t bytes)
{
    return bytes + 128;
}

/* A server reports how much of a batch is staged each time this much more has come. */
enum { MU__EFFECTS_REPORT_BYTES = 256 << 10 };

struct mu__effects_config {
    uint32_t timeout_ms;     /* without an answer for so long a batch fails its run,
                                naming the server; 0: 60000 */
    uint32_t server_lost_ms; /* so does each batch for a server that was up and is away
                                for so long; 0: never */
};

extern const struct mu__behavior mu__effects_actor; /* init takes the config, or NULL */

#endif
