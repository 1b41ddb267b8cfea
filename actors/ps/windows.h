/* Windows of numbers as bytes, as they travel and as checkpoints have them.
 *
 * The bytes of a partition are a list of entries: 0 (of writes of programs) or 1 (of
 * effects of runs), the origin, base and end as 64-bit numbers, the lowest byte first,
 * then a bit for each number from base to end, filled up to whole 8 bytes. */
#ifndef MU_ACTORS_PS_WINDOWS_H
#define MU_ACTORS_PS_WINDOWS_H

#include "actors/ps/applied.h"
#include "actors/ps/writers.h"
#include "muster/error.h"
#include "runtime/message/message.h"

enum { MU__WINDOW_HEAD_BYTES = 32 };

/* The bits of a window. NULL: out of memory. The caller frees it. */
uint8_t *mu__window_pack(const struct mu__id_window *window, struct mu__view *ret_view);

struct mu__packed_window {
    uint64_t base;
    uint64_t end;
    struct mu__view bits;
};

/* Make `window` one with these numbers. -MU_EINVALID, -MU_ENOMEM. */
int mu__window_unpack(const struct mu__packed_window *packed,
                      struct mu__id_window *window);

/* All windows of a partition, the writer that wrote last behind the others. NULL: out of
 * memory. The caller frees it. */
uint8_t *mu__windows_pack(const struct mu__applied *applied,
                          const struct mu__writers *writers, uint64_t *ret_bytes);

/* The bytes of the first entry; 0: there is none, or it is malformed. */
uint64_t mu__windows_entry_bytes(const uint8_t *bytes, uint64_t size);

/* Add the numbers in `bytes` to those that are known: so nothing is forgotten that was
 * applied since. Effects of runs count only if their origin does, or comes to: while no
 * origin is known, they wait for its fence. -MU_EINVALID, -MU_EEXHAUSTED, -MU_ENOMEM;
 * then some are added. */
int mu__windows_add(struct mu__view bytes, struct mu__applied *applied,
                    struct mu__writers *writers);

#endif
