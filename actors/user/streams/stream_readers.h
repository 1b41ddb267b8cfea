/* Streams that threads read. The thread has a batch of items, and asks the office for the
 * next one when it has handled all of it. */
#ifndef MU_ACTORS_USER_STREAM_READERS_H
#define MU_ACTORS_USER_STREAM_READERS_H

#include "actors/user/office.h"

enum { MU__READER_BATCH = 32 };

/* Made and freed by the program's side (api/actors/stream_readers.c). */
struct mu_stream_reader {
    /* The thread's, and the office's during its calls. */
    mu_value *items[MU__READER_BATCH];
    uint32_t count; /* of the batch, which the office has filled in */
    uint32_t at;
    uint32_t bytes[MU__READER_BATCH];
    mu_node *node; /* opaque to actors */

    mu_address to;
    char method[64];

    /* The office's, from OPEN to CLOSE or its end. */
    struct mu__list_node in_office;
    uint64_t call;                   /* its number; 0: it is over */
    struct mu__actors_call *waiting; /* NEXT, until something comes; NULL: none */
    uint64_t timer;
    uint64_t due_ms;
    bool is_listed;
    bool has_only; /* it was answered by one value, `only` */
    bool is_over;  /* nothing more comes but that */
    mu_value *only;
    mu_error error; /* code 0: it has ended well */
};

#endif
