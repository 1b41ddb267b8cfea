/* The state of a journal, for journal.c, which writes it, and journal_open.c, which reads
 * it. */
#ifndef MU_ACTORS_JOURNAL_FILE_H
#define MU_ACTORS_JOURNAL_FILE_H

#include "actors/coordination/store/journal.h"
#include "actors/coordination/store/journal_scan.h"

struct mu__journal {
    struct mu__storage *storage;
    const struct mu__schema *schema;
    struct mu__pool *pool;
    struct mu__buf *record;  /* the buffer for packing one */
    struct mu__buf *content; /* of the rewrite under way */
    int rewrite_rv;          /* why it cannot be committed */
    bool rewriting;
    bool renewing;
    mu_error renew_error; /* code 0: none */
    uint64_t renew_bytes; /* of the renewal */
    bool unflushed;
    uint64_t bytes;
    uint64_t bytes_max;      /* of the file */
    uint64_t number;         /* of the next record */
    uint64_t content_number; /* the same of the rewrite, or of the renewal */
    uint64_t skipped;
    struct mu__crc32c crc;
};

/* Between begin and commit of a rewrite: add a message that was read, with a head of the
 * present format. An error comes from the commit. */
void mu__journal_rewrite_record(struct mu__journal *journal, const void *message,
                                size_t message_bytes);

#endif
