/* A server's side of its journal (ps_journal.h). */
#ifndef MU_ACTORS_PS_JOURNAL_STATE_H
#define MU_ACTORS_PS_JOURNAL_STATE_H

#include "actors/partitions.h"
#include "actors/ps/tables/table_set.h"
#include "muster/error.h"

struct mu__journal;

/* The journal is written anew (ps_snapshot.c). */
struct ps_snapshot {
    bool runs;
    bool is_requested;  /* some partition is not in the file */
    bool has_failed;    /* out of memory */
    uint32_t partition; /* the next one, or the one that is written, */
    uint64_t *ids;      /* whose shards are these; NULL: it was not begun */
    uint32_t ids_count;
    uint32_t at; /* the next bytes are of this one */
    uint64_t offset;
    bool slots;                   /* or of the content */
    struct mu__table_cursor rows; /* behind the last shard */
    uint64_t begun_ms;            /* the last one; 0: none was */
    uint64_t spare_bytes; /* in which the file may be larger than twice the variables */
};

struct ps_journal {
    struct mu__journal *file; /* NULL: there is none */
    const char *path;
    char cluster[64]; /* of this server; "": not known */
    char run[64];
    uint64_t former[MU__FORMER_MAX]; /* processes that wrote the file; the last is this */
    uint32_t former_count;
    bool is_dirty;     /* something was written, and not flushed */
    bool is_behind;    /* it lacks a record: it has to be written anew; */
    mu_error error;    /* why */
    bool is_failing;   /* it could not be written: requests wait, */
    uint64_t retry_ms; /* at least until then */
    uint64_t room;     /* bytes that are reserved for records */
    uint64_t timer;    /* for the next step of a snapshot; 0: none */
    bool is_refused;   /* the request that is being applied, for lack of memory */
    struct ps_snapshot snapshot;
};

#endif
