/* Copies of the tables of a partition, piece by piece. */
#include "actors/ps/tables/table_set.h"

#include <inttypes.h>
#include <string.h>

/* Of the candidates that are copied at one time, and their rows. */
enum { RANGE_BUCKETS = 2048, RANGE_BYTES = 512 << 10 };

_Static_assert(sizeof(struct mu__table_state) == MU__TABLE_STATE_BYTES,
               "the state as a message has it");

/* ---- From ---- */

/* The steps of a table, in their order: rows alone, or with candidates. */
enum { STEP_ROWS, STEP_RANGES, STEP_STATE, STEPS };

static void begin_copy_step(const struct mu__table *part, struct mu__table_cursor *cursor,
                            uint32_t step)
{
    const uint32_t sizes[STEPS] = {part->candidates.count > 0 ? 0 : part->rows,
                                   part->candidates.count, 1};

    cursor->step = step;
    cursor->left = sizes[step];
}

/* The table at which a cursor is, with something left; NULL: there is none. */
static const struct mu__named_table *find_copied_table(const struct mu__table_set *set,
                                                       struct mu__table_cursor *cursor)
{
    const struct mu__named_table *table =
        cursor->table == 0 ? mu__tables_first(set) : mu__tables_find(set, cursor->table);

    if (cursor->table == 0 && table != NULL)
        begin_copy_step(&table->part, cursor, 0);
    while (table != NULL) {
        cursor->table = table->id;
        if (cursor->step == STEP_ROWS && cursor->left > table->part.rows)
            cursor->left = table->part.rows;
        if (cursor->left > 0)
            return table;
        if (cursor->step + 1 < STEPS) {
            begin_copy_step(&table->part, cursor, cursor->step + 1);
            continue;
        }
        table = mu__tables_next(table);
        if (table != NULL)
            begin_copy_step(&table->part, cursor, 0);
    }
    return NULL;
}

static struct mu__table_piece rows_piece(const struct mu__named_table *table,
                                         struct mu__table_cursor *cursor)
{
    uint32_t first = (cursor->left - 1) / table->part.slab_rows * table->part.slab_rows;
    uint32_t count = cursor->left - first;

    cursor->left = first;
    return (struct mu__table_piece){
        table->id,
        MU__PIECE_ROWS,
        {mu__table_row_at(&table->part, first), count * table->part.row_bytes}};
}

/* So many buckets that they and their rows have not too many bytes. */
static void begin_copied_range(const struct mu__table *part,
                               struct mu__table_cursor *cursor)
{
    uint64_t buckets =
        (uint64_t)part->candidates.count * RANGE_BYTES / (part->bytes + 1) + 1;

    if (buckets > RANGE_BUCKETS)
        buckets = RANGE_BUCKETS;
    cursor->low = cursor->left > buckets ? cursor->left - (uint32_t)buckets : 0;
    cursor->rows = part->rows;
    cursor->is_within = true;
}

static bool is_in_range(const struct mu__table *part,
                        const struct mu__table_cursor *cursor, uint32_t row)
{
    uint64_t id = mu__table_row_id(mu__table_row_at(part, row));
    uint32_t bucket = mu__candidates_bucket(&part->candidates, id);

    return bucket >= cursor->low && bucket < cursor->left;
}

/* Some rows of the range that follow each other in a slab; 0: there are no more. */
static uint32_t find_range_rows(const struct mu__table *part,
                                struct mu__table_cursor *cursor)
{
    uint32_t end;

    while (cursor->rows > 0 && !is_in_range(part, cursor, cursor->rows - 1))
        cursor->rows--;
    end = cursor->rows;
    while (cursor->rows > 0 &&
           (end - 1) / part->slab_rows == (cursor->rows - 1) / part->slab_rows &&
           is_in_range(part, cursor, cursor->rows - 1))
        cursor->rows--;
    return end - cursor->rows;
}

static struct mu__table_piece range_piece(const struct mu__named_table *table,
                                          struct mu__table_cursor *cursor)
{
    const struct mu__candidate_bucket *buckets = table->part.candidates.buckets;
    struct mu__table_piece piece = {table->id, MU__PIECE_ROWS, {NULL, 0}};
    uint32_t count;

    if (!cursor->is_within)
        begin_copied_range(&table->part, cursor);
    count = find_range_rows(&table->part, cursor);
    if (count > 0) {
        piece.bytes.data = mu__table_row_at(&table->part, cursor->rows);
        piece.bytes.size = count * table->part.row_bytes;
        return piece;
    }
    piece.kind = MU__PIECE_CANDIDATES;
    piece.bytes.data = &buckets[cursor->low];
    piece.bytes.size = (cursor->left - cursor->low) * (uint32_t)sizeof *buckets;
    cursor->left = cursor->low;
    cursor->is_within = false;
    return piece;
}

bool mu__tables_next_piece(const struct mu__table_set *set,
                           struct mu__table_cursor *cursor,
                           struct mu__table_piece *ret_piece)
{
    const struct mu__named_table *table = find_copied_table(set, cursor);

    if (table == NULL)
        return false;
    if (cursor->step == STEP_RANGES) {
        *ret_piece = range_piece(table, cursor);
    } else if (cursor->step == STEP_ROWS) {
        *ret_piece = rows_piece(table, cursor);
    } else {
        cursor->left = 0;
        *ret_piece = (struct mu__table_piece){
            table->id,
            MU__PIECE_STATE,
            {(const uint8_t *)&table->part.state, sizeof table->part.state}};
    }
    return true;
}

/* ---- To ---- */

static int put_rows(struct mu__table *part, struct mu__view rows, mu_error *ret_error)
{
    int rv = 0;

    if (rows.size % part->row_bytes != 0)
        return mu_error_set(ret_error, -MU_EINVALID,
                            "%" PRIu32 " bytes are no rows of %" PRIu32 " bytes",
                            rows.size, part->row_bytes);
    for (uint32_t at = 0; at < rows.size && rv == 0; at += part->row_bytes)
        rv = mu__table_put_row(part, (const uint8_t *)rows.data + at, ret_error);
    return rv;
}

static int put_candidates(struct mu__candidates *candidates, struct mu__view bytes,
                          mu_error *ret_error)
{
    uint32_t count = bytes.size / (uint32_t)sizeof *candidates->buckets;

    if (bytes.size % sizeof *candidates->buckets != 0 || count > candidates->unfilled)
        return mu_error_set(ret_error, -MU_EINVALID,
                            "%" PRIu32 " bytes of candidates, and %" PRIu32
                            " buckets are expected",
                            bytes.size, candidates->unfilled);
    candidates->unfilled -= count;
    memcpy(&candidates->buckets[candidates->unfilled], bytes.data, bytes.size);
    return 0;
}

static int put_state(struct mu__table *part, struct mu__view bytes, mu_error *ret_error)
{
    if (bytes.size != sizeof part->state)
        return mu_error_set(ret_error, -MU_EINVALID,
                            "%" PRIu32 " bytes are no state of a table", bytes.size);
    memcpy(&part->state, bytes.data, sizeof part->state);
    return 0;
}

int mu__tables_put_piece(struct mu__table_set *set, const struct mu__table_piece *piece,
                         mu_error *ret_error)
{
    struct mu__named_table *table = mu__tables_find(set, piece->table);

    if (table == NULL)
        return mu_error_set(ret_error, -MU_ENOTFOUND,
                            "a piece of a table that is not "
                            "here");
    switch (piece->kind) {
    case MU__PIECE_ROWS:
        return put_rows(&table->part, piece->bytes, ret_error);
    case MU__PIECE_CANDIDATES:
        return put_candidates(&table->part.candidates, piece->bytes, ret_error);
    case MU__PIECE_STATE:
        return put_state(&table->part, piece->bytes, ret_error);
    default:
        return mu_error_set(ret_error, -MU_EINVALID, "no piece of kind %" PRIu32,
                            piece->kind);
    }
}

int mu__tables_put(struct mu__table_set *set, const struct mu__table_open *open,
                   struct mu__view state, mu_error *ret_error)
{
    int rv = mu__tables_need(set, open, ret_error);
    struct mu__table *part;

    if (rv != 0)
        return rv;
    part = &mu__tables_find(set, mu__table_id(open->name))->part;
    part->candidates.unfilled = part->candidates.count;
    return state.size == 0 ? 0 : put_state(part, state, ret_error);
}
