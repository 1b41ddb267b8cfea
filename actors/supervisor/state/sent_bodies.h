/* The shared per-worker values that the journal has by their content, each once: the
 * functions that programs have sent, mostly. One that no closure uses is dropped when
 * room is needed, or by a compaction. Plain data. */
#ifndef MU_ACTORS_SUPERVISOR_SENT_BODIES_H
#define MU_ACTORS_SUPERVISOR_SENT_BODIES_H

#include "runtime/base/list.h"

#include <stdbool.h>
#include <stdint.h>

enum { MU__SENT_BODIES_MAX = 4096 };

#define MU__SENT_BODIES_BYTES_MAX (UINT64_C(256) << 20)

/* Part of a value. Zeroed: the journal does not have it. */
struct sent_body {
    struct mu__list_node node;
    uint64_t bytes;      /* of its content */
    uint32_t users;      /* closures that use it */
    uint32_t compaction; /* the last one whose new file has it */
    bool is_listed;      /* the file has it, or the new file of a compaction */
    bool is_written;     /* the file has it */
};

/* Zeroed is empty. */
struct sent_bodies {
    struct mu__list all;
    uint64_t bytes;
    uint32_t count;
};

/* Whether there is room for so many more; those without users are dropped for it. */
bool mu__sent_bodies_make_room(struct sent_bodies *bodies, uint32_t count,
                               uint64_t bytes);

/* The file has it, or (with `compaction` alone) the new file of that compaction. */
void mu__sent_bodies_add(struct sent_bodies *bodies, struct sent_body *body,
                         uint32_t compaction, bool is_written);

/* One that is not in the list is fine. */
void mu__sent_bodies_remove(struct sent_bodies *bodies, struct sent_body *body);

/* A compaction has ended, and its new file is the file; or it failed, and the old file
 * stays. What is not in the file is dropped. */
void mu__sent_bodies_renewed(struct sent_bodies *bodies, uint32_t compaction);
void mu__sent_bodies_stay(struct sent_bodies *bodies);

#endif
