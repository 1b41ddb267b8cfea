/* What one run writes to variables: a list that the run fills, and that the variables
 * actor of its node sends when the function has returned 0 (variables.h). */
#ifndef MU_ACTORS_EFFECTS_H
#define MU_ACTORS_EFFECTS_H

#include "runtime/base/view.h"

#include <stdint.h>

struct mu__opened_variable;
struct mu__effect_block;

/* One write to one shard, with its data. */
struct mu__effect {
    struct mu__effect *next;        /* in the order in which they were made */
    struct mu__effect_block *block; /* whose memory it is in; NULL: its own */
    uint32_t partition;             /* of the shard */
    uint32_t operation; /* enum mu__write_operation: ASSIGN, ADD, GRADIENT; or enum
                           mu__row_operation */
    uint64_t variable;  /* the shard's id */
    struct mu__opened_variable *opened; /* whose shard it is; a reference. NULL: it is not
                                           reopened when its server has lost it */
    uint32_t shard;                     /* of `opened` */
    struct mu__view rule; /* of a gradient, packed: behind the data, once it is added */
    uint64_t offset;      /* in the shard: of ROWS_... */
    uint32_t piece;       /* bytes of a piece, at most; 0: MU__PIECE_BYTES_MAX */
    uint64_t size;
    unsigned char data[];
};

/* The writes of one run. */
struct mu__effects {
    struct mu__effect *first;
    struct mu__effect *last;
    uint64_t bytes;
    struct mu__effect_block *block; /* for the next small ones; NULL: there is none */
    uint64_t origin;                /* of the RUN; effect 0: not applied once */
    uint64_t effect;
    uint64_t effects_done;
};

enum {
    MU__EFFECTS_BYTES_MAX = 64 << 20,
    MU__EFFECT_BYTES_MIN = 64 /* what a smaller write counts as */
};

/* Append a write with `write->size` bytes of data, at least 1, which the caller puts to
 * *ret_data. -MU_EEXHAUSTED, -MU_ENOMEM. */
int mu__effects_append(struct mu__effects *effects, const struct mu__effect *write,
                       unsigned char **ret_data);

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

#endif
