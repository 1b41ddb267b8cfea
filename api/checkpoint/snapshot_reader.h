/* Reading variables as they were at one record of each partition, while work goes on:
 * snapshots of all partitions that hold them are opened, then read in pieces, several at
 * a time. A partition whose server has changed meanwhile is begun anew. */
#ifndef MU_API_CHECKPOINT_SNAPSHOT_READER_H
#define MU_API_CHECKPOINT_SNAPSHOT_READER_H

#include "actors/ps/tables/copies/set_copies.h"
#include "api/internal.h"
#include "api/tables/opened_table.h"
#include "runtime/base/crc32c.h"

enum { MU__SNAPSHOT_ALIGN = 4096 };

/* Where the contents go. Called on the thread that reads. */
struct mu__snapshot_reader;

struct mu__snapshot_target {
    /* Bytes of the i-th variable: of its content, region 0, or of slot k, region k + 1.
     * They may come in any order, and again. */
    int (*put)(void *owner, size_t variable, unsigned region, uint64_t offset,
               const void *data, uint32_t size, mu_error *ret_error);
    void *owner;

    /* How far behind a multiple of MU__SNAPSHOT_ALIGN the data of a piece at this offset
     * are to be in memory, once the target has begun. NULL: it does not matter. */
    uint32_t (*phase)(void *owner, size_t variable, unsigned region, uint64_t offset);
    const struct mu__crc32c *crc; /* NULL: no sums are needed */
    bool only_sizes;              /* of tables; nothing is read */
    uint64_t
        since; /* which rows of tables (actors/ps/tables/copies/table_marks.h); 0: all */
    uint64_t mark; /* that is set; 0: none */

    /* Copies of rows of the i-th table (actors/ps/tables/copies/table_columns.h), from
     * number `first` of its rows in the partition on. Those of a partition come in their
     * order; they may come again, from 0 on. */
    int (*put_rows)(void *owner, size_t table, uint32_t partition, uint32_t first,
                    const void *copies, uint32_t count, mu_error *ret_error);

    /* Behind these: all ids that were deleted since. NULL with `since` 0. */
    int (*put_deleted)(void *owner, size_t table, uint32_t partition, const void *ids,
                       uint32_t count, mu_error *ret_error);

    /* All partitions are open, and what slots there are is known; nothing was put yet.
     * NULL: no slots are wanted. */
    int (*begin)(void *owner, const struct mu__snapshot_reader *reader,
                 mu_error *ret_error);
};

/* What is read: all of one node. */
struct mu__snapshot_sources {
    mu_variable *const *variables;
    size_t variables_count;
    mu_table *const *tables;
    size_t tables_count;
};

/* What was read of a partition. */
struct mu__snapshot_partition {
    uint32_t partition;
    uint64_t record;
    uint64_t sum;
    const uint8_t *windows; /* actors/ps/windows.h */
    uint64_t windows_bytes;
};

/* Read all. Errors are those of mu_variable_read; -MU_EEXHAUSTED: a server had no memory
 * to keep what was written meanwhile; -MU_EABORTED: the target has begun, and after a
 * server was lost its tables have other numbers of rows: it may be tried again. */
int mu__snapshot_read_all(const struct mu__snapshot_sources *sources, int64_t timeout_ms,
                          const struct mu__snapshot_target *target, mu_error *ret_error,
                          struct mu__snapshot_reader **ret_reader);

/* The sum of a region of a variable. */
uint32_t mu__snapshot_sum(const struct mu__snapshot_reader *reader, size_t variable,
                          unsigned region);

/* The kind of rule of which all its shards have slots; 0: they have none, or of several
 * kinds, which are not read. And how many updates a shard's have seen. */
uint32_t mu__snapshot_rule(const struct mu__snapshot_reader *reader, size_t variable);
uint64_t mu__snapshot_step(const struct mu__snapshot_reader *reader, size_t variable,
                           uint32_t shard);

/* What is read of a table in a partition, once the target begins. */
struct mu__set_copies_size mu__snapshot_size(const struct mu__snapshot_reader *reader,
                                             size_t table, uint32_t partition);

/* The same of one table; and the bytes of memory that the servers need for one. */
int mu__snapshot_read_table(mu_table *table, int64_t timeout_ms,
                            const struct mu__snapshot_target *target, mu_error *ret_error,
                            struct mu__snapshot_reader **ret_reader);
uint64_t mu__snapshot_table_bytes(const struct mu__snapshot_reader *reader, size_t table);

/* What was read of the partition with this number; false: nothing. */
bool mu__snapshot_partition_at(const struct mu__snapshot_reader *reader,
                               uint32_t partition,
                               struct mu__snapshot_partition *ret_partition);

void mu__snapshot_reader_free(struct mu__snapshot_reader *reader);

#endif
