#include "api/snapshot_state.h"

#include "actors/ps/tables/copies/set_copies.h"
#include "node/deadline.h"
#include "node/node.h"
#include "runtime/base/array.h"

#include <stdlib.h>
#include <string.h>

static int no_memory_for_snapshot(mu_error *ret_error)
{
    return mu_error_set(ret_error, -MU_ENOMEM, "no memory to read a snapshot");
}

static void fail_reader(struct mu__snapshot_reader *reader, const mu_error *error)
{
    if (reader->error.code == 0)
        reader->error = *error;
}

/* ---- Which shards are in which partition ---- */

static int add_reader_shard(struct mu__snapshot_reader *reader, size_t variable,
                            uint32_t shard)
{
    const struct mu__opened_variable *opened = reader->variables[variable]->opened;
    struct reader_partition *p =
        &reader->partitions[mu__partition_of(mu__view_str(opened->name), shard)];
    struct reader_shard *added;

    if (!MU__ARRAY_RESERVE(&p->shards, &p->shards_room, p->shards_count, SHARDS_FIRST))
        return -MU_ENOMEM;
    added = &p->shards[p->shards_count++];
    *added =
        (struct reader_shard){.variable = variable, .shard = shard, .regions_count = 1};
    mu__shape_shard(&opened->shape, shard, &added->regions[0].offset,
                    &added->regions[0].bytes);
    return 0;
}

/* Whether anything of it is read. */
static bool is_read(const struct mu__snapshot_reader *reader,
                    const struct reader_partition *p)
{
    return p->shards_count > 0 || reader->tables_count > 0;
}

static int sort_by_partition(struct mu__snapshot_reader *reader, mu_error *ret_error)
{
    for (size_t i = 0; i < reader->variables_count; i++) {
        if (reader->variables[i]->node != reader->node)
            return mu_error_set(ret_error, -MU_EINVALID,
                                "variable %s is of another node than %s",
                                reader->variables[i]->opened->name,
                                reader->variables[0]->opened->name);
        for (uint32_t k = 0; k < reader->variables[i]->opened->shape.shards; k++)
            if (add_reader_shard(reader, i, k) != 0)
                return no_memory_for_snapshot(ret_error);
    }
    for (uint32_t i = 0; i < MU__PARTITIONS; i++) {
        struct reader_partition *p = &reader->partitions[i];

        if (!is_read(reader, p))
            continue;
        p->ids = malloc(p->shards_count * MU__SNAPSHOT_ID_BYTES + 1);
        if (reader->target.begin != NULL)
            p->slots = malloc(p->shards_count * MU__SNAPSHOT_SLOTS_BYTES + 1);
        if (p->ids == NULL || (reader->target.begin != NULL && p->slots == NULL))
            return no_memory_for_snapshot(ret_error);
    }
    return 0;
}

static int load_ids(const mu_variable *variable, uint64_t **ret_ids)
{
    uint64_t *ids = calloc(variable->opened->shape.shards, sizeof *ids);

    if (ids == NULL)
        return -MU_ENOMEM;
    mu__opened_variable_load(variable->opened, ids);
    *ret_ids = ids;
    return 0;
}

/* The ids by which servers know the shards of a partition now. */
static int find_reader_ids(const struct mu__snapshot_reader *reader,
                           struct reader_partition *p)
{
    uint8_t *at = p->ids;

    for (size_t i = 0; i < p->shards_count; i++) {
        struct reader_shard *shard = &p->shards[i];
        uint64_t *ids;
        int rv = load_ids(reader->variables[shard->variable], &ids);

        if (rv != 0)
            return rv;
        shard->id = ids[shard->shard];
        for (unsigned k = 0; k < REGIONS_MAX; k++)
            shard->regions[k].sum = 0;
        at = mu__snapshot_id_put(at, shard->id);
        free(ids);
    }
    return 0;
}

/* ---- Calls ---- */

/* On the loop's thread. */
static void end_reader_slot(struct mu__pending *pending)
{
    struct reader_slot *slot = MU__LIST_ENTRY(pending, struct reader_slot, pending);
    struct mu__snapshot_reader *reader = slot->reader;

    uv_mutex_lock(&reader->lock);
    mu__list_append(&reader->ended_slots, &slot->node);
    uv_sem_post(&reader->ended);
    uv_mutex_unlock(&reader->lock);
}

static struct mu__variable_call reader_call(const struct mu__snapshot_reader *reader,
                                            const struct reader_partition *p,
                                            int operation,
                                            struct mu__snapshot_call *snapshot)
{
    static const struct mu__shape none = {.shards = 1};
    const struct mu__opened_variable *opened =
        p->shards_count > 0 ? reader->variables[p->shards[0].variable]->opened : NULL;

    snapshot->partition = (uint32_t)(p - reader->partitions);
    snapshot->number = p->number;
    return (struct mu__variable_call){
        .call = {.operation = operation,
                 .timeout_ms = mu__deadline_left_ms(reader->deadline_ns)},
        .name = opened != NULL ? opened->name : reader->tables[0]->name,
        .shape = opened != NULL ? &opened->shape : &none,
        .servers_count = (uint32_t)reader->node->ps_count,
        .snapshot = snapshot,
    };
}

static void free_reader_slot(struct reader_slot *slot)
{
    slot->partition->under_way--;
    slot->reader->under_way--;
    slot->reader->bytes_under_way -= slot->requested;
    mu__list_prepend(&slot->reader->free_slots, &slot->node);
}

static void post_reader_slot(struct reader_slot *slot, int operation)
{
    struct mu__snapshot_reader *reader = slot->reader;
    int rv;

    slot->call = reader_call(reader, slot->partition, operation, &slot->snapshot);
    slot->call.target = slot->data;
    slot->attempt = slot->partition->attempt;
    slot->requested = slot->snapshot.size < REQUEST_BYTES ? slot->snapshot.size
                                                          : (uint32_t)REQUEST_BYTES;
    slot->partition->under_way++;
    reader->under_way++;
    reader->bytes_under_way += slot->requested;
    rv = mu__node_call_later(reader->node, MU__VARIABLES, &slot->pending,
                             &slot->call.call, end_reader_slot);
    if (rv == 0)
        return;
    mu__node_say_closed(reader->node, rv, &slot->call.call.error);
    fail_reader(reader, &slot->call.call.error);
    free_reader_slot(slot);
}

static void post_open(struct reader_slot *slot, struct reader_partition *p)
{
    mu_error error;

    if (find_reader_ids(slot->reader, p) != 0) {
        (void)no_memory_for_snapshot(&error);
        fail_reader(slot->reader, &error);
        mu__list_prepend(&slot->reader->free_slots, &slot->node);
        return;
    }
    p->state = OPENING;
    slot->partition = p;
    slot->snapshot = (struct mu__snapshot_call){
        .bytes = {p->ids, (uint32_t)(p->shards_count * MU__SNAPSHOT_ID_BYTES)},
        .slots = p->slots,
        .tables = {slot->reader->table_ids,
                   (uint32_t)(slot->reader->tables_count * MU__SET_COPIES_ID_BYTES)},
        .sizes = p->sizes,
        .only_sizes = slot->reader->target.only_sizes,
        .since = slot->reader->target.since,
        .mark = slot->reader->target.mark};
    post_reader_slot(slot, MU__VARIABLE_SNAPSHOT);
}

/* The shard, the table or, behind these, the windows that an item is. */
static struct reader_shard *shard_item(const struct reader_partition *p, size_t item)
{
    return item < p->shards_count ? &p->shards[item] : NULL;
}

static size_t windows_item(const struct mu__snapshot_reader *reader,
                           const struct reader_partition *p)
{
    return p->shards_count + reader->tables_count;
}

static bool is_table_item(const struct mu__snapshot_reader *reader,
                          const struct reader_partition *p)
{
    return p->item >= p->shards_count && p->item < windows_item(reader, p);
}

static uint64_t item_bytes(const struct mu__snapshot_reader *reader,
                           const struct reader_partition *p)
{
    if (p->item < p->shards_count)
        return p->shards[p->item].regions[p->region].bytes;
    if (p->item == windows_item(reader, p))
        return p->windows_bytes;
    return mu__reader_table_bytes(reader, p, p->item - p->shards_count);
}

/* To the next item with bytes, or behind the windows. */
static void skip_empty(const struct mu__snapshot_reader *reader,
                       struct reader_partition *p)
{
    while (p->item <= windows_item(reader, p) && item_bytes(reader, p) == 0)
        p->item++;
}

static void move_behind_region(const struct mu__snapshot_reader *reader,
                               struct reader_partition *p)
{
    const struct reader_shard *shard = shard_item(p, p->item);

    p->offset = 0;
    p->region++;
    if (shard != NULL && p->region < shard->regions_count)
        return;
    p->region = 0;
    p->item++;
    skip_empty(reader, p);
}

static uint64_t item_id(const struct mu__snapshot_reader *reader,
                        const struct reader_partition *p)
{
    if (p->item < p->shards_count)
        return p->shards[p->item].id;
    return p->item == windows_item(reader, p)
               ? 0
               : reader->tables[p->item - p->shards_count]->id;
}

static uint32_t next_piece_phase(const struct mu__snapshot_reader *reader,
                                 const struct reader_partition *p)
{
    const struct mu__snapshot_target *target = &reader->target;
    const struct reader_shard *shard = shard_item(p, p->item);

    return shard == NULL || target->phase == NULL
               ? 0
               : target->phase(target->owner, shard->variable, p->region,
                               shard->regions[p->region].offset + p->offset);
}

/* Those of shards end where the next one has no phase. */
static uint32_t next_piece_bytes(const struct mu__snapshot_reader *reader,
                                 const struct reader_partition *p, uint32_t phase)
{
    uint64_t left = item_bytes(reader, p) - p->offset;

    if (is_table_item(reader, p))
        return mu__reader_table_piece(reader, p, p->item - p->shards_count, p->offset);
    return left < PIECE_BYTES - phase ? (uint32_t)left : PIECE_BYTES - phase;
}

/* The piece of a partition that is the next one; the windows come last. */
static void post_piece(struct reader_slot *slot, struct reader_partition *p)
{
    const struct mu__snapshot_reader *reader = slot->reader;
    const struct reader_shard *shard = shard_item(p, p->item);
    uint64_t bytes = item_bytes(reader, p);
    uint32_t phase = next_piece_phase(reader, p);
    uint32_t size = next_piece_bytes(reader, p, phase);

    slot->data = slot->memory + phase;
    slot->partition = p;
    slot->item = p->item;
    slot->region = p->region;
    slot->offset = p->offset;
    slot->snapshot = (struct mu__snapshot_call){
        .id = item_id(reader, p),
        .offset =
            p->offset + (shard == NULL ? 0 : mu__reader_bytes_before(shard, p->region)),
        .size = size,
        .piece_bytes = is_table_item(reader, p)
                           ? mu__reader_table_request(reader, p->item - p->shards_count)
                           : REQUEST_BYTES};
    p->offset += size;
    if (p->offset == bytes)
        move_behind_region(reader, p);
    post_reader_slot(slot, MU__VARIABLE_SNAPSHOT_READ);
}

/* Pieces of a table come in the order of its rows: one after the other. */
static bool has_next_piece(const struct mu__snapshot_reader *reader,
                           const struct reader_partition *p)
{
    if (p->state != OPENED || reader->target.only_sizes ||
        p->under_way >= (is_table_item(reader, p) ? 1 : PARTITION_SLOTS) ||
        (reader->target.begin != NULL && reader->rules == NULL))
        return false;
    return p->item <= windows_item(reader, p);
}

/* Snapshots are opened before any is read: they are of about the same time. NULL: none
 * has something to ask for now. */
static struct reader_partition *next_partition(struct mu__snapshot_reader *reader)
{
    for (uint32_t i = 0; i < MU__PARTITIONS; i++)
        if (is_read(reader, &reader->partitions[i]) &&
            reader->partitions[i].state == CLOSED)
            return &reader->partitions[i];
    for (uint32_t i = 0; i < MU__PARTITIONS; i++) {
        reader->next = (reader->next + 1) % MU__PARTITIONS;
        if (has_next_piece(reader, &reader->partitions[reader->next]))
            return &reader->partitions[reader->next];
    }
    return NULL;
}

static void post_all(struct mu__snapshot_reader *reader)
{
    while (reader->error.code == 0 && !mu__list_is_empty(&reader->free_slots) &&
           reader->bytes_under_way < reader->bytes_max) {
        struct reader_partition *p = next_partition(reader);
        struct reader_slot *slot;

        if (p == NULL)
            return;
        slot =
            MU__LIST_ENTRY(mu__list_pop(&reader->free_slots), struct reader_slot, node);
        if (p->state == CLOSED)
            post_open(slot, p);
        else
            post_piece(slot, p);
    }
}

/* ---- Answers ---- */

/* The program's handles learn the ids of shards that were made anew. */
static int reopen_variables(const struct mu__snapshot_reader *reader,
                            const struct reader_partition *p, mu_error *ret_error)
{
    uint64_t version;
    int rv = 0;

    for (size_t i = 0; rv == 0 && i < p->shards_count; i++)
        rv = mu_variable_version(reader->variables[p->shards[i].variable],
                                 mu__deadline_left_ms(reader->deadline_ns), ret_error,
                                 &version);
    return rv;
}

/* The server need not keep what is not read any more. */
static void close_partition(struct mu__snapshot_reader *reader,
                            struct reader_partition *p)
{
    struct mu__snapshot_call snapshot = {.id = 0};
    struct mu__variable_call call;

    if (p->state != OPENED || reader->target.only_sizes ||
        (p->left == 0 && !p->has_unread))
        return;
    call = reader_call(reader, p, MU__VARIABLE_SNAPSHOT_CLOSE, &snapshot);
    (void)mu__node_call(reader->node, MU__VARIABLES, &call.call, NULL);
}

/* Its server has changed, or shards were made anew: what was read of it does not belong
 * to what is there now. */
static void begin_anew(struct mu__snapshot_reader *reader, struct reader_partition *p,
                       const mu_error *error)
{
    mu_error reopening;

    if (++p->attempt == ATTEMPTS_MAX) {
        fail_reader(reader, error);
        return;
    }
    close_partition(reader, p);
    p->state = CLOSED;
    p->item = 0;
    p->region = 0;
    p->offset = 0;
    free(p->windows);
    p->windows = NULL;
    if (error->code == -MU_ENOTFOUND && reopen_variables(reader, p, &reopening) != 0)
        fail_reader(reader, &reopening);
}

static void take_shard_slots(struct mu__snapshot_reader *reader,
                             struct reader_shard *shard, struct mu__snapshot_slots slots)
{
    mu_error error;

    shard->slots = slots;
    mu__reader_plan_regions(reader, shard);
    if (reader->rules == NULL || shard->regions_count == 1 ||
        slots.rule == reader->rules[shard->variable])
        return;
    (void)mu_error_set(&error, -MU_EABORTED,
                       "variable %s got slots of another rule while it was read",
                       reader->variables[shard->variable]->opened->name);
    fail_reader(reader, &error);
}

/* Tables have the numbers of rows with which the target has begun. */
static void check_settled(struct mu__snapshot_reader *reader,
                          const struct reader_partition *p)
{
    mu_error error;

    if (reader->rules == NULL || mu__reader_is_settled(reader, p))
        return;
    (void)mu_error_set(&error, -MU_EABORTED,
                       "table %s got other numbers of rows while it was read",
                       reader->tables[0]->name);
    fail_reader(reader, &error);
}

static void take_opened_snapshot(struct mu__snapshot_reader *reader,
                                 struct reader_partition *p,
                                 const struct mu__snapshot_call *call)
{
    mu_error error;

    p->state = OPENED;
    p->number = call->number;
    p->record = call->record;
    p->sum = call->sum;
    p->windows_bytes = call->windows_bytes;
    for (size_t i = 0; i < p->shards_count && p->slots != NULL; i++)
        take_shard_slots(reader, &p->shards[i], mu__snapshot_slots_at(p->slots, i));
    check_settled(reader, p);
    mu__reader_count_left(reader, p);
    skip_empty(reader, p);
    p->windows = malloc((size_t)p->windows_bytes + 1);
    if (p->windows != NULL)
        return;
    (void)no_memory_for_snapshot(&error);
    fail_reader(reader, &error);
}

static int take_rows_piece(struct mu__snapshot_reader *reader,
                           const struct reader_partition *p,
                           const struct reader_slot *slot, mu_error *error)
{
    const struct mu__snapshot_target *target = &reader->target;
    size_t table = slot->item - p->shards_count;
    uint32_t row_bytes = mu__table_row_bytes(&reader->tables[table]->form);
    uint32_t partition = (uint32_t)(p - reader->partitions);

    if (slot->offset >= mu__reader_rows_bytes(reader, p, table))
        return target->put_deleted(target->owner, table, partition, slot->data,
                                   slot->snapshot.size / (uint32_t)sizeof(uint64_t),
                                   error);

    return target->put_rows(target->owner, table, partition,
                            (uint32_t)(slot->offset / row_bytes), slot->data,
                            slot->snapshot.size / row_bytes, error);
}

static int take_shard_piece(struct mu__snapshot_reader *reader,
                            struct reader_shard *shard, const struct reader_slot *slot,
                            mu_error *error)
{
    const struct mu__snapshot_target *target = &reader->target;
    struct reader_region *region = &shard->regions[slot->region];
    uint32_t size = slot->snapshot.size;

    if (target->crc != NULL)
        region->sum ^= mu__crc32c_shift(mu__crc32c_add(target->crc, 0, slot->data, size),
                                        region->bytes - slot->offset - size);
    return target->put(target->owner, shard->variable, slot->region,
                       region->offset + slot->offset, slot->data, size, error);
}

static void take_snapshot_piece(struct mu__snapshot_reader *reader,
                                struct reader_partition *p,
                                const struct reader_slot *slot)
{
    struct reader_shard *shard = shard_item(p, slot->item);
    mu_error error;
    int rv = 0;

    p->left -= slot->snapshot.size;
    if (shard != NULL)
        rv = take_shard_piece(reader, shard, slot, &error);
    else if (slot->item == windows_item(reader, p))
        memcpy(p->windows + slot->offset, slot->data, slot->snapshot.size);
    else
        rv = take_rows_piece(reader, p, slot, &error);
    if (rv != 0)
        fail_reader(reader, &error);
}

static void take_ended(struct mu__snapshot_reader *reader, const struct reader_slot *slot)
{
    const struct mu__call *call = &slot->call.call;
    struct reader_partition *p = slot->partition;

    if (slot->attempt != p->attempt || reader->error.code != 0)
        return;
    if (call->code == -MU_EABORTED ||
        (call->code == -MU_ENOTFOUND && p->state == OPENING))
        begin_anew(reader, p, &call->error);
    else if (call->code != 0)
        fail_reader(reader, &call->error);
    else if (p->state == OPENING)
        take_opened_snapshot(reader, p, &slot->snapshot);
    else
        take_snapshot_piece(reader, p, slot);
}

static void await_ended(struct mu__snapshot_reader *reader)
{
    struct reader_slot *slot;

    uv_sem_wait(&reader->ended);
    uv_mutex_lock(&reader->lock);
    slot = MU__LIST_ENTRY(mu__list_pop(&reader->ended_slots), struct reader_slot, node);
    uv_mutex_unlock(&reader->lock);
    take_ended(reader, slot);
    free_reader_slot(slot);
}

/* ---- The whole ---- */

static void close_all_partitions(struct mu__snapshot_reader *reader)
{
    for (uint32_t i = 0; i < MU__PARTITIONS; i++)
        close_partition(reader, &reader->partitions[i]);
}

static bool is_all_opened(const struct mu__snapshot_reader *reader)
{
    for (uint32_t i = 0; i < MU__PARTITIONS; i++)
        if (is_read(reader, &reader->partitions[i]) &&
            reader->partitions[i].state != OPENED)
            return false;
    return true;
}

/* Once all are open: from then on it is settled which slots are read. */
static void begin_target(struct mu__snapshot_reader *reader)
{
    uint32_t *rules;
    mu_error error;

    if (reader->target.begin == NULL || reader->rules != NULL ||
        reader->error.code != 0 || !is_all_opened(reader))
        return;
    rules = calloc(reader->variables_count + 1, sizeof *rules);
    if (rules == NULL) {
        (void)no_memory_for_snapshot(&error);
        fail_reader(reader, &error);
        return;
    }
    mu__reader_settle_rules(reader, rules);
    mu__reader_settle_rows(reader);
    if (reader->target.begin(reader->target.owner, reader, &error) != 0)
        fail_reader(reader, &error);
}

static int read_all_partitions(struct mu__snapshot_reader *reader, mu_error *ret_error)
{
    post_all(reader);
    while (reader->under_way > 0) {
        await_ended(reader);
        begin_target(reader);
        post_all(reader);
    }
    close_all_partitions(reader);
    if (reader->error.code == 0)
        return 0;
    mu__node_note_error(reader->node, &reader->error);
    if (ret_error != NULL)
        *ret_error = reader->error;
    return reader->error.code;
}

static int make_reader_slots(struct mu__snapshot_reader *reader, mu_error *ret_error)
{
    size_t count = reader->node->ps_count * SERVER_SLOTS;

    reader->bytes_max =
        (uint64_t)reader->node->ps_count * SERVER_REQUESTS * REQUEST_BYTES;
    if (count > SLOTS_MAX)
        count = SLOTS_MAX;
    reader->slots = malloc(count * sizeof *reader->slots);
    reader->memory = aligned_alloc(MU__SNAPSHOT_ALIGN, count * PIECE_BYTES);
    if (reader->slots == NULL || reader->memory == NULL)
        return no_memory_for_snapshot(ret_error);
    for (size_t i = 0; i < count; i++) {
        reader->slots[i].reader = reader;
        reader->slots[i].memory = reader->memory + i * PIECE_BYTES;
        mu__list_append(&reader->free_slots, &reader->slots[i].node);
    }
    return 0;
}

/* NULL: out of memory. */
static struct mu__snapshot_reader *snapshot_reader_new(
    const struct mu__snapshot_sources *sources)
{
    struct mu__snapshot_reader *reader = calloc(1, sizeof *reader);

    if (reader == NULL)
        return NULL;
    if (uv_sem_init(&reader->ended, 0) != 0) {
        free(reader);
        return NULL;
    }
    if (uv_mutex_init(&reader->lock) != 0) {
        uv_sem_destroy(&reader->ended);
        free(reader);
        return NULL;
    }
    reader->variables = sources->variables;
    reader->variables_count = sources->variables_count;
    reader->tables = sources->tables;
    reader->tables_count = sources->tables_count;
    return reader;
}

static int read_with(struct mu__snapshot_reader *reader, mu_error *ret_error)
{
    int rv;

    if (reader->variables_count + reader->tables_count == 0)
        return 0;
    reader->node = reader->variables_count > 0 ? reader->variables[0]->node
                                               : reader->tables[0]->node;
    mu__node_ref(reader->node);
    rv = mu__node_may_wait(reader->node, ret_error);
    if (rv == 0)
        rv = sort_by_partition(reader, ret_error);
    if (rv == 0)
        rv = mu__reader_add_tables(reader, ret_error);
    if (rv == 0)
        rv = make_reader_slots(reader, ret_error);
    return rv == 0 ? read_all_partitions(reader, ret_error) : rv;
}

int mu__snapshot_read_all(const struct mu__snapshot_sources *sources, int64_t timeout_ms,
                          const struct mu__snapshot_target *target, mu_error *ret_error,
                          struct mu__snapshot_reader **ret_reader)
{
    struct mu__snapshot_reader *reader = snapshot_reader_new(sources);
    int rv;

    if (reader == NULL)
        return no_memory_for_snapshot(ret_error);
    reader->target = *target;
    reader->deadline_ns = mu__deadline_in(timeout_ms);
    rv = read_with(reader, ret_error);
    if (rv == 0)
        *ret_reader = reader;
    else
        mu__snapshot_reader_free(reader);
    return rv;
}

void mu__snapshot_reader_free(struct mu__snapshot_reader *reader)
{
    if (reader == NULL)
        return;
    for (uint32_t i = 0; i < MU__PARTITIONS; i++) {
        free(reader->partitions[i].shards);
        free(reader->partitions[i].windows);
        free(reader->partitions[i].ids);
        free(reader->partitions[i].slots);
        free(reader->partitions[i].sizes);
        free(reader->partitions[i].settled);
    }
    free(reader->table_ids);
    free(reader->rules);
    if (reader->node != NULL)
        mu__node_unref(reader->node);
    uv_mutex_destroy(&reader->lock);
    uv_sem_destroy(&reader->ended);
    free(reader->slots);
    free(reader->memory);
    free(reader);
}
