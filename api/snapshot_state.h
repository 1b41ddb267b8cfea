/* What reading a snapshot is made of: snapshot_reader.c asks and takes the answers,
 * snapshot_regions.c knows which bytes a shard has. */
#ifndef MU_API_SNAPSHOT_STATE_H
#define MU_API_SNAPSHOT_STATE_H

#include "api/checkpoint/snapshot_reader.h"

#include "actors/ps/store_snapshots.h"
#include "actors/ps/tables/copies/set_copies.h"
#include "actors/variables/variables.h"
#include "runtime/base/list.h"

#include <uv.h>

/* Pieces are as large as files like them; what is under way of each is little, as what a
 * program writes meanwhile waits behind it. */
enum {
    PIECE_BYTES = 1 << 20,
    REQUEST_BYTES = 128 << 10,
    PARTITION_SLOTS = 2, /* under way of one partition */
    SERVER_REQUESTS = 2, /* bytes under way of each server on average, of REQUEST_BYTES */
    SERVER_SLOTS = 8,    /* the same of calls: of increments these are small */
    SLOTS_MAX = 32,
    ATTEMPTS_MAX = 64, /* snapshots of one partition, of which none could be read */
    SHARDS_FIRST = 16
};

enum { REGIONS_MAX = 1 + MU__RULE_SLOTS_MAX }; /* the content, and slots */

struct reader_region {
    uint64_t offset; /* in the whole variable, or slot */
    uint64_t bytes;
    uint32_t sum;
};

/* A shard in its partition. */
struct reader_shard {
    size_t variable;
    uint32_t shard;
    uint64_t id;
    struct mu__snapshot_slots slots; /* that it had when it was opened last */
    struct reader_region regions[REGIONS_MAX];
    unsigned regions_count;
};

enum reader_state { CLOSED, OPENING, OPENED };

struct reader_partition {
    struct reader_shard *shards; /* and behind them the windows */
    size_t shards_count;
    size_t shards_room;
    uint8_t *sizes; /* of each table (tables/set_copies.h); NULL: there are no tables */
    struct mu__set_copies_size *settled; /* the same, when the target has begun */
    enum reader_state state;
    uint32_t attempt;
    uint64_t number;
    uint64_t record;
    uint64_t sum;
    uint8_t *windows;
    uint64_t windows_bytes;
    uint8_t *ids;
    uint8_t *slots; /* what each of these has; NULL: it is not asked for */
    size_t item; /* of the next piece: a shard, a table, or the windows; behind these: all
                    is asked for */
    unsigned region; /* of a shard, */
    uint64_t offset; /* and in that */
    bool has_unread; /* slots that are not read */
    uint32_t under_way;
    uint64_t left; /* bytes that are to come; CLOSED, OPENING: not known */
};

/* A call under way. */
struct reader_slot {
    struct mu__list_node node; /* of those that are free, or have ended */
    struct mu__pending pending;
    struct mu__variable_call call;
    struct mu__snapshot_call snapshot;
    struct mu__snapshot_reader *reader;
    struct reader_partition *partition;
    uint32_t attempt;
    size_t item;
    unsigned region;
    uint64_t offset;
    uint32_t requested; /* bytes under way, at most */
    uint8_t *memory;    /* PIECE_BYTES, */
    uint8_t *data;      /* and where in these the piece is */
};

struct mu__snapshot_reader {
    mu_node *node;
    mu_variable *const *variables;
    size_t variables_count;
    mu_table *const *tables;
    size_t tables_count;
    uint8_t *table_ids; /* as SNAPSHOT_OPEN has them */
    uint64_t deadline_ns;
    struct mu__snapshot_target target;
    uint32_t *rules; /* of each variable's slots, once the target has begun; else NULL */
    struct reader_partition partitions[MU__PARTITIONS];
    uint32_t next; /* where the next piece is looked for */
    uint32_t slots_count;
    uint32_t under_way;
    uint64_t bytes_under_way;
    uint64_t bytes_max; /* no call more is made with so many */
    struct reader_slot *slots;
    uint8_t *memory; /* of all slots */
    struct mu__list free_slots;
    uv_sem_t ended;
    uv_mutex_t lock;
    struct mu__list ended_slots; /* with the lock */
    mu_error error;              /* code 0: all is well */
};

/* Regions of a shard follow each other on its server. */
uint64_t mu__reader_bytes_before(const struct reader_shard *shard, unsigned region);

/* The regions that are read of a shard: its content, and its slots, unless it is settled
 * that these are of another rule. */
void mu__reader_plan_regions(const struct mu__snapshot_reader *reader,
                             struct reader_shard *shard);

/* All bytes of a partition that was opened are left. */
void mu__reader_count_left(const struct mu__snapshot_reader *reader,
                           struct reader_partition *p);

/* ---- snapshot_tables.c ---- */

/* Room for what is asked about tables. -MU_EINVALID: one is of another node, or there
 * twice; -MU_ENOMEM. */
int mu__reader_add_tables(struct mu__snapshot_reader *reader, mu_error *ret_error);

/* What a table has in a partition, as it was opened last; bytes of its rows' copies, and
 * with the ids that were deleted. */
struct mu__set_copies_size mu__reader_size(const struct reader_partition *p,
                                           size_t table);
uint64_t mu__reader_rows_bytes(const struct mu__snapshot_reader *reader,
                               const struct reader_partition *p, size_t table);
uint64_t mu__reader_table_bytes(const struct mu__snapshot_reader *reader,
                                const struct reader_partition *p, size_t table);

/* So many bytes of a table are asked for at this offset: whole rows; or, behind the rows,
 * all ids that were deleted. */
uint32_t mu__reader_table_piece(const struct mu__snapshot_reader *reader,
                                const struct reader_partition *p, size_t table,
                                uint64_t offset);

/* As whole rows, too: the bytes of a table that are asked for together. */
uint32_t mu__reader_table_request(const struct mu__snapshot_reader *reader, size_t table);

/* The target begins: no partition may have other numbers of rows from now on. */
void mu__reader_settle_rows(struct mu__snapshot_reader *reader);
bool mu__reader_is_settled(const struct mu__snapshot_reader *reader,
                           const struct reader_partition *p);

/* Once all are open: settle which slots are read, those of a rule that is the same for
 * all shards of a variable. Takes `rules`, which has room for all variables. */
void mu__reader_settle_rules(struct mu__snapshot_reader *reader, uint32_t *rules);

#endif
