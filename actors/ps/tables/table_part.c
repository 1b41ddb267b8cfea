#include "actors/ps/tables/row_index.h"

#include "actors/ps/tables/copies/table_copies.h"
#include "actors/ps/tables/narrow_rows.h"
#include "actors/ps/tables/policies/row_admission.h"
#include "actors/ps/tables/row_sum.h"
#include "actors/ps/tables/row_values.h"

#include "muster/value.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum {
    SLAB_BYTES = 16 << 10, /* at most, if a row has less */
    INDEX_BITS_MIN = 4,
    HEAP_SLABS = 4 /* of a part; others are in large pages */
};

#define ROWS_MAX (NONE - 1)

/* Where the slots of a row begin: behind its numbers. */
static void set_slot_offsets(struct mu__table *table)
{
    const struct mu__rule_kind *kind = mu__rule_kind(table->form.rule.kind);
    uint32_t at = MU__TABLE_ROW_HEAD + mu__table_values_bytes(&table->form);

    for (unsigned i = 0; i < kind->slots + kind->row_slots; i++) {
        table->slots_at[i] = at;
        at += (i < kind->slots ? table->form.dim : 1) * (uint32_t)sizeof(float);
    }
}

void mu__table_init(struct mu__table *table, const struct mu__table_form *form,
                    const struct mu__table_memory *memory, uint64_t secret)
{
    *table = (struct mu__table){.form = *form, .memory = *memory, .secret = secret};
    table->row_bytes = mu__table_row_bytes(form);
    set_slot_offsets(table);
    table->slab_rows = 1;
    while (table->slab_rows * 2 * table->row_bytes <= SLAB_BYTES)
        table->slab_rows *= 2;
}

static void charge_bytes(struct mu__table *table, uint64_t bytes)
{
    table->bytes += bytes;
    *table->memory.bytes_used += bytes;
}

static void discharge_bytes(struct mu__table *table, uint64_t bytes)
{
    table->bytes -= bytes;
    *table->memory.bytes_used -= bytes;
}

/* The first ones are on the heap: most parts of small tables have few rows. */
static bool is_slab_in_pages(const struct mu__table *table, uint32_t i)
{
    return table->memory.pages != NULL && i >= HEAP_SLABS &&
           (uint64_t)table->slab_rows * table->row_bytes <= MU__PAGE_BLOCK_BYTES_MAX;
}

static void free_slab(struct mu__table *table, uint32_t i)
{
    if (is_slab_in_pages(table, i))
        mu__page_block_put(table->memory.pages, table->slabs[i]);
    else
        free(table->slabs[i]);
}

void mu__table_done(struct mu__table *table)
{
    assert(mu__list_is_empty(&table->copies));
    for (uint32_t i = 0; i < table->slabs_count; i++)
        free_slab(table, i);
    free(table->slabs);
    free(table->index);
    free(table->candidates.buckets);
    mu__marks_clear(&table->marks);
    discharge_bytes(table, table->bytes);
}

/* ---- Rows ---- */

const unsigned char *mu__table_row_at(const struct mu__table *table, uint32_t row)
{
    assert(row < table->rows);
    return row_at(table, row);
}

/* The bytes of a row are about to be overwritten. */
static void will_overwrite(struct mu__table *table, uint32_t row)
{
    if (!mu__list_is_empty(&table->copies))
        mu__table_copies_keep(table, row);
}

/* The same by what is the row's own: it changes. */
static void will_change(struct mu__table *table, uint32_t row)
{
    will_overwrite(table, row);
    if (mu__marks_are_set(&table->marks))
        mu__marks_changed(&table->marks, row);
}

static void *floats_of(unsigned char *row)
{
    return row + MU__TABLE_ROW_HEAD;
}

/* The rows that were guessed of a push; NULL: none were, or a change has to be noted. */
static const unsigned char *const *guessed_rows(const struct mu__table *table,
                                                const void *ids, uint32_t count)
{
    bool is_noted =
        !mu__list_is_empty(&table->copies) || mu__marks_are_set(&table->marks);

    return table->guess.ids == ids && table->guess.count == count && !is_noted
               ? table->guess.rows
               : NULL;
}

/* Row `i` of these, if it is that of the id; else NULL. */
static unsigned char *take_guessed(const unsigned char *const *guessed, uint32_t i,
                                   uint64_t id)
{
    if (guessed == NULL || guessed[i] == NULL || row_id_at(guessed[i], 0) != id)
        return NULL;
    return (unsigned char *)guessed[i];
}

/* ---- The index ---- */

/* How many rows an index of so many bits may have. */
static uint64_t index_room(uint32_t bits)
{
    return (UINT64_C(1) << bits) / 8 * 7;
}

static void fill_index(struct mu__table *table)
{
    for (uint32_t row = 0; row < table->rows; row++) {
        uint64_t hash = hash_in(table, row_id_at(row_at(table, row), 0));
        uint32_t slot = slot_of(table, hash);

        while (table->index[slot] != 0)
            slot = (slot + 1) & mask_of(table);
        table->index[slot] = entry_of(hash, row);
    }
}

/* Take a row's entry out, and move up those behind it that would not be found. */
static void remove_entry(struct mu__table *table, uint32_t slot)
{
    uint32_t mask = mask_of(table);
    uint32_t at = slot;

    for (;;) {
        uint64_t entry;
        uint32_t home;

        at = (at + 1) & mask;
        entry = table->index[at];
        if (entry == 0)
            break;
        home = slot_of(table,
                       hash_in(table, row_id_at(row_at(table, (uint32_t)entry - 1), 0)));
        if (((at - home) & mask) < ((at - slot) & mask))
            continue;
        table->index[slot] = entry;
        slot = at;
    }
    table->index[slot] = 0;
}

/* ---- Room ---- */

static bool has_memory(const struct mu__table *table, uint64_t bytes)
{
    return *table->memory.bytes_used <= table->memory.bytes_max &&
           bytes <= table->memory.bytes_max - *table->memory.bytes_used;
}

static int refuse_memory(const struct mu__table *table, uint64_t bytes,
                         mu_error *ret_error)
{
    if (!has_memory(table, bytes))
        return mu_error_set(ret_error, -MU_EEXHAUSTED,
                            "%" PRIu64 " bytes more: the server holds %" PRIu64
                            " of at most %" PRIu64,
                            bytes, *table->memory.bytes_used, table->memory.bytes_max);
    return mu_error_set(ret_error, -MU_ENOMEM,
                        "the server is out of memory for %" PRIu64 " bytes", bytes);
}

/* NULL: there is none. */
static void *get_bytes(struct mu__table *table, uint64_t bytes)
{
    void *memory;

    if (!has_memory(table, bytes))
        return NULL;
    memory = calloc((size_t)bytes, 1);
    if (memory != NULL)
        charge_bytes(table, bytes);
    return memory;
}

static int reserve_index(struct mu__table *table, uint64_t rows, mu_error *ret_error)
{
    uint32_t bits = table->index_bits == 0 ? INDEX_BITS_MIN : table->index_bits;
    uint64_t former = table->index == NULL ? 0 : sizeof(uint64_t) << table->index_bits;
    uint64_t *index;

    if (table->index != NULL && rows <= index_room(bits))
        return 0;
    while (rows > index_room(bits))
        bits++;
    index = get_bytes(table, sizeof *index << bits);
    if (index == NULL)
        return refuse_memory(table, sizeof *index << bits, ret_error);
    free(table->index);
    discharge_bytes(table, former);
    table->index = index;
    table->index_bits = bits;
    fill_index(table);
    return 0;
}

static void *get_slab(struct mu__table *table, uint64_t bytes)
{
    void *slab;

    if (!is_slab_in_pages(table, table->slabs_count))
        return get_bytes(table, bytes);
    slab = has_memory(table, bytes)
               ? mu__page_block_get(table->memory.pages, (size_t)bytes)
               : NULL;
    if (slab != NULL)
        charge_bytes(table, bytes);
    return slab;
}

static int reserve_slab(struct mu__table *table, mu_error *ret_error)
{
    uint64_t bytes = (uint64_t)table->slab_rows * table->row_bytes;
    unsigned char *slab;

    if (table->slabs_count == table->slabs_room) {
        uint32_t room = table->slabs_room == 0 ? 4 : table->slabs_room * 2;
        unsigned char **slabs = realloc(table->slabs, room * sizeof *slabs);

        if (slabs == NULL)
            return refuse_memory(table, 0, ret_error);
        charge_bytes(table, (room - table->slabs_room) * sizeof *slabs);
        table->slabs = slabs;
        table->slabs_room = room;
    }
    slab = get_slab(table, bytes);
    if (slab == NULL)
        return refuse_memory(table, bytes, ret_error);
    table->slabs[table->slabs_count++] = slab;
    return 0;
}

int mu__table_make_candidates(struct mu__table *table, mu_error *ret_error)
{
    const struct mu__table_policy *policy = &table->form.policy;
    uint32_t count = mu__candidate_buckets(policy->candidates);
    uint64_t bytes = (uint64_t)count * sizeof *table->candidates.buckets;

    if (!mu__table_policy_counts(policy))
        return 0;
    table->candidates.buckets = get_bytes(table, bytes);
    if (table->candidates.buckets == NULL)
        return refuse_memory(table, bytes, ret_error);
    table->candidates.count = count;
    return 0;
}

/* Beyond a capacity with an eviction, a sweep follows. */
static uint32_t most_rows(const struct mu__table_form *form)
{
    const struct mu__table_policy *policy = &form->policy;

    if (policy->capacity > 0 && policy->eviction == MU__EVICT_NONE)
        return policy->capacity;
    return form->rows_max == 0 ? ROWS_MAX : form->rows_max;
}

/* Memory that is got before a refusal stays, for later. */
static int reserve_rows(struct mu__table *table, uint64_t rows, mu_error *ret_error)
{
    uint32_t rows_max = most_rows(&table->form);
    int rv;

    if (rows > rows_max)
        return mu_error_set(ret_error, -MU_EEXHAUSTED,
                            "%" PRIu64 " rows in a partition: at most %" PRIu32, rows,
                            rows_max);
    rv = reserve_index(table, rows, ret_error);
    while (rv == 0 && (uint64_t)table->slabs_count * table->slab_rows < rows)
        rv = reserve_slab(table, ret_error);
    return rv;
}

int mu__table_reserve(struct mu__table *table, const void *ids, uint32_t count,
                      mu_error *ret_error)
{
    const unsigned char *const *guessed = guessed_rows(table, ids, count);
    uint64_t rows = table->rows + table->reserved;
    int rv;

    table->pending++;
    for (uint32_t i = 0; i < count; i++) {
        uint64_t id = row_id_at(ids, i);

        rows += take_guessed(guessed, i, id) == NULL &&
                find_id_row(table, id, hash_in(table, id)) == NONE &&
                mu__admission_may_make(table, id);
    }
    rv = rows == table->rows && table->index != NULL
             ? 0
             : reserve_rows(table, rows, ret_error);
    if (rv == 0)
        table->reserved = rows - table->rows;
    return rv;
}

int mu__table_reserve_row(struct mu__table *table, uint64_t id, mu_error *ret_error)
{
    uint64_t rows = table->rows + table->reserved +
                    (find_id_row(table, id, hash_in(table, id)) == NONE);
    int rv = reserve_rows(table, rows, ret_error);

    if (rv == 0)
        table->reserved = rows - table->rows;
    return rv;
}

void mu__table_unreserve(struct mu__table *table)
{
    table->reserved = 0;
    table->pending = 0;
}

/* ---- Changes ---- */

/* There is room for it. */
static uint32_t append_row(struct mu__table *table, uint64_t id, uint32_t slot,
                           uint64_t hash)
{
    uint32_t row = table->rows++;

    assert((uint64_t)row < (uint64_t)table->slabs_count * table->slab_rows);
    will_change(table, row);
    memcpy(row_at(table, row), &id, sizeof id);
    table->index[slot] = entry_of(hash, row);
    return row;
}

static inline void find_slots(const struct mu__table *table, unsigned char *row,
                              void *ret_slots[MU__RULE_SLOTS_MAX])
{
    for (unsigned i = 0; i < MU__RULE_SLOTS_MAX; i++)
        ret_slots[i] = table->slots_at[i] == 0 ? NULL : row + table->slots_at[i];
}

static void start_row(const struct mu__table *table, uint64_t id, unsigned char *row)
{
    const struct mu__table_form *form = &table->form;
    void *slots[MU__RULE_SLOTS_MAX];

    memset(row + sizeof id, 0, table->row_bytes - sizeof id);
    mu__values_start(form, id, row);
    find_slots(table, row, slots);
    for (unsigned i = 0; i < MU__RULE_SLOTS_MAX && slots[i] != NULL; i++)
        mu__rule_slot_fill(&form->rule, MU_F32, i, slots[i],
                           i < mu__rule_kind(form->rule.kind)->slots ? form->dim : 1);
}

static unsigned char *need_row(struct mu__table *table, uint64_t id)
{
    uint64_t hash = hash_in(table, id);
    uint32_t slot = find_entry(table, id, hash);
    unsigned char *row;

    if (table->index[slot] != 0) {
        will_change(table, (uint32_t)table->index[slot] - 1);
        return row_at(table, (uint32_t)table->index[slot] - 1);
    }
    row = row_at(table, append_row(table, id, slot, hash));
    start_row(table, id, row);
    return row;
}

/* NULL: the id gets none. */
static unsigned char *find_or_admit_row(struct mu__table *table, uint64_t id)
{
    if (mu__table_policy_admits_all(&table->form.policy) ||
        find_id_row(table, id, hash_in(table, id)) != NONE ||
        mu__admission_admit(table, id))
        return need_row(table, id);
    table->state.dropped++;
    return NULL;
}

/* The bits of what became of a row, in which each word counts by its place. */
static uint64_t sample_row(const struct mu__table *table, const unsigned char *row)
{
    uint64_t head =
        mu__table_row_id(row) * UINT64_C(0x9E3779B97F4A7C15) + mu__table_row_pushes(row);

    return mu__row_sum(head, row + MU__TABLE_ROW_HEAD,
                       table->row_bytes - MU__TABLE_ROW_HEAD);
}

/* One more push of a row. */
static uint32_t count_push(const struct mu__table *table, unsigned char *row,
                           uint32_t time)
{
    uint32_t pushes = mu__table_row_pushes(row);

    pushes += pushes < UINT32_MAX;
    memcpy(row + sizeof(uint64_t), &pushes, sizeof pushes);
    if (mu__table_policy_has_time(&table->form.policy) &&
        time > mu__table_row_time(table, row))
        memcpy(row + table->row_bytes - sizeof time, &time, sizeof time);
    return pushes;
}

/* A rule at the step for which it was prepared last. */
struct rule_at_step {
    const struct mu__rule *rule;
    uint32_t time; /* of the push */
    bool is_by_row;
    uint64_t step;
    struct mu__rule_at at;
};

static void prepare_step(struct rule_at_step *rule, uint32_t pushes)
{
    if (!rule->is_by_row || rule->step == pushes)
        return;
    rule->step = pushes;
    rule->at = mu__rule_prepare(rule->rule, MU_F32, pushes);
}

static void run_row_rule(const struct mu__table *table, unsigned char *row, float *values,
                         const void *gradient, const struct mu__rule_at *at)
{
    void *slots[MU__RULE_SLOTS_MAX];

    find_slots(table, row, slots);
    mu__rule_run(at, values, slots, gradient, table->form.dim);
    mu__rule_finish(at, values, slots, table->form.dim);
}

static void run_narrow(const struct mu__table *table, unsigned char *row,
                       const void *gradient, const struct mu__rule_at *at)
{
    const struct mu__table_form *form = &table->form;
    const struct mu__row_chance chance = {form->initial.seed, mu__table_row_id(row),
                                          mu__table_row_pushes(row)};
    float wide[MU__TABLE_DIM_MAX];

    mu__narrow_row_widen(form->dtype, row + MU__TABLE_ROW_HEAD, form->dim, wide);
    run_row_rule(table, row, wide, gradient, at);
    mu__narrow_row_draw(form->dtype, wide, form->dim, &chance, row + MU__TABLE_ROW_HEAD);
}

/* `row` NULL: it is to be found. */
static uint64_t push_row(struct mu__table *table, uint64_t id, unsigned char *row,
                         const void *gradient, struct rule_at_step *rule)
{
    if (row == NULL)
        row = find_or_admit_row(table, id);
    if (row == NULL)
        return 0;
    prepare_step(rule, count_push(table, row, rule->time));
    if (table->form.dtype == 0)
        run_row_rule(table, row, floats_of(row), gradient, &rule->at);
    else
        run_narrow(table, row, gradient, &rule->at);
    return table->is_alone ? 0 : sample_row(table, row);
}

/* One more push of the part; returns its time. */
static uint32_t note_push(struct mu__table_state *state, uint32_t time)
{
    state->pushes++;
    if (time == 0)
        time = (uint32_t)state->latest + (state->latest < UINT32_MAX);
    if (time > state->latest)
        state->latest = time;
    return time;
}

enum { PUSHED_AHEAD = 8 }; /* rows that are asked of memory before they are changed */

/* The ids of a push, from the first one on whose row was not asked for. */
struct pushed_ahead {
    const unsigned char *ids;
    uint32_t count;
    uint32_t at;
    uint64_t hashes[BATCH];
};

/* Ask for one more row, if there is one. */
static void fetch_pushed(const struct mu__table *table, struct pushed_ahead *ahead)
{
    uint32_t left = ahead->count - ahead->at;

    if (left == 0)
        return;
    if (ahead->at % BATCH == 0)
        hash_batch(table, ahead->ids + (size_t)ahead->at * sizeof(uint64_t),
                   left < BATCH ? left : BATCH, ahead->hashes);
    prefetch_row(table, ahead->hashes[ahead->at++ % BATCH], table->row_bytes);
}

uint64_t mu__table_push_at(struct mu__table *table, uint32_t time, const void *ids,
                           const void *gradients, uint32_t count,
                           const struct mu__rule *rule)
{
    struct rule_at_step at = {
        .rule = rule,
        .time = note_push(&table->state, time),
        .is_by_row = rule->step == 0 && mu__rule_kind(rule->kind)->is_stepped,
        .step = rule->step == 0 ? 1 : rule->step,
    };
    size_t bytes = table->form.dim * sizeof(float);
    uint32_t rows = table->rows;
    const unsigned char *const *guessed = guessed_rows(table, ids, count);
    struct pushed_ahead ahead;
    uint64_t sum = 0;

    ahead.ids = ids;
    ahead.count = guessed == NULL ? count : 0; /* those were asked for */
    ahead.at = 0;
    at.at = mu__rule_prepare(rule, MU_F32, at.step);
    for (uint32_t i = 0; i < PUSHED_AHEAD && i < count; i++)
        fetch_pushed(table, &ahead);
    for (uint32_t i = 0; i < count; i++) {
        uint64_t id = row_id_at(ids, i);

        fetch_pushed(table, &ahead);
        sum += push_row(table, id, take_guessed(guessed, i, id),
                        (const unsigned char *)gradients + i * bytes, &at);
    }
    table->state.made += table->rows - rows;
    return sum;
}

bool mu__table_delete(struct mu__table *table, uint64_t id)
{
    uint64_t hash = hash_in(table, id);
    uint32_t row = find_id_row(table, id, hash);
    uint32_t last = table->rows - 1;
    uint64_t last_id;

    mu__candidates_forget(&table->candidates, id);
    if (row == NONE)
        return false;
    table->guess.ids = NULL;
    remove_entry(table, find_entry(table, id, hash));
    if (row != last) {
        last_id = row_id_at(row_at(table, last), 0);
        hash = hash_in(table, last_id);
        table->index[find_entry(table, last_id, hash)] = entry_of(hash, row);
        will_overwrite(table, row);
        memcpy(row_at(table, row), row_at(table, last), table->row_bytes);
    }
    mu__marks_deleted(&table->marks, id, row, last);
    table->rows--;
    return true;
}

void mu__table_clear(struct mu__table *table)
{
    mu__marks_clear(&table->marks);
    table->guess.ids = NULL;
    table->rows = 0;
    table->state = (struct mu__table_state){0};
    if (table->index != NULL)
        memset(table->index, 0, sizeof *table->index << table->index_bits);
    if (table->candidates.count > 0)
        memset(table->candidates.buckets, 0,
               table->candidates.count * sizeof *table->candidates.buckets);
}

/* A row that no push has made is as old as the last push. */
static void begin_time(const struct mu__table *table, unsigned char *row)
{
    uint32_t time = (uint32_t)table->state.latest;

    if (mu__table_policy_has_time(&table->form.policy) &&
        mu__table_row_time(table, row) == 0)
        memcpy(row + table->row_bytes - sizeof time, &time, sizeof time);
}

uint64_t mu__table_insert(struct mu__table *table, uint64_t id, const void *numbers)
{
    unsigned char *row = need_row(table, id);

    mu__candidates_forget(&table->candidates, id);
    begin_time(table, row);
    mu__values_set(&table->form, numbers, row);
    return sample_row(table, row);
}

uint64_t mu__table_set_row(struct mu__table *table, const unsigned char *copy)
{
    memcpy(need_row(table, row_id_at(copy, 0)), copy, table->row_bytes);
    if (mu__table_policy_has_time(&table->form.policy) &&
        mu__table_row_time(table, copy) > table->state.latest)
        table->state.latest = mu__table_row_time(table, copy);
    return sample_row(table, copy);
}

int mu__table_put_row(struct mu__table *table, const unsigned char *copy,
                      mu_error *ret_error)
{
    int rv;

    mu__table_unreserve(table);
    rv = mu__table_reserve_row(table, row_id_at(copy, 0), ret_error);
    if (rv == 0)
        (void)mu__table_set_row(table, copy);
    return rv;
}
