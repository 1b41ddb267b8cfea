#include "actors/ps/tables/policies/table_sweeps.h"

/* ---- Scores ---- */

static bool sweeps_by_time(const struct mu__table *table, uint32_t reason)
{
    const struct mu__table_policy *policy = &table->form.policy;

    return reason == MU__SWEEP_CAPACITY ? policy->eviction == MU__EVICT_LRU
                                        : mu__table_policy_has_time(policy);
}

static uint32_t score_of(const struct mu__table *table, const unsigned char *row,
                         bool by_time)
{
    return by_time ? mu__table_row_time(table, row) : mu__table_row_pushes(row);
}

static bool is_below(const struct mu__table_bound *bound, uint32_t score, uint64_t id)
{
    return score < bound->score || (score == bound->score && id < bound->id);
}

/* ---- The best rows ----
 *
 * The bound is found byte by byte, from the highest on: how many rows have which. */

enum { DIGITS = 256, DIGIT_BITS = 8 };

struct selection {
    const struct mu__table *table;
    bool by_time;
    bool of_ids; /* of the rows with this score, */
    uint32_t score;
    uint64_t below; /* so many are below the bound */
};

/* False: the row is not among those that are looked at. */
static bool selected_key(const struct selection *s, uint32_t row, uint64_t *ret_key)
{
    const unsigned char *at = mu__table_row_at(s->table, row);
    uint32_t score = score_of(s->table, at, s->by_time);

    *ret_key = s->of_ids ? mu__table_row_id(at) : score;
    return !s->of_ids || score == s->score;
}

static void count_digits(const struct selection *s, uint64_t prefix, unsigned shift,
                         uint32_t ret_counts[DIGITS])
{
    uint64_t key;

    for (uint32_t i = 0; i < DIGITS; i++)
        ret_counts[i] = 0;
    for (uint32_t row = 0; row < s->table->rows; row++)
        if (selected_key(s, row, &key) &&
            key >> shift >> DIGIT_BITS == prefix >> shift >> DIGIT_BITS)
            ret_counts[key >> shift & (DIGITS - 1)]++;
}

/* The key that `below` rows are below, or as many of its equals as are left are. */
static uint64_t select_key(struct selection *s, unsigned bits)
{
    uint32_t counts[DIGITS];
    uint64_t key = 0;

    for (unsigned shift = bits; shift > 0 && s->below > 0;) {
        uint32_t digit = 0;

        shift -= DIGIT_BITS;
        count_digits(s, key, shift, counts);
        while (s->below >= counts[digit])
            s->below -= counts[digit++];
        key |= (uint64_t)digit << shift;
    }
    return key;
}

static struct mu__table_bound bound_below(const struct mu__table *table, uint32_t rows)
{
    struct selection s = {.table = table,
                          .by_time = sweeps_by_time(table, MU__SWEEP_CAPACITY),
                          .below = rows};
    struct mu__table_bound bound = {.reason = MU__SWEEP_CAPACITY};

    bound.score = (uint32_t)select_key(&s, 32);
    s.of_ids = true;
    s.score = bound.score;
    bound.id = select_key(&s, 64);
    return bound;
}

/* ---- Decisions ---- */

static bool is_age_due(const struct mu__table *table, uint64_t *ret_before)
{
    uint64_t ttl = table->form.policy.ttl;

    if (ttl == 0 || table->state.latest <= ttl)
        return false;
    *ret_before = table->state.latest - ttl;
    return *ret_before > table->state.swept + ttl / 8;
}

bool mu__table_sweep_due(const struct mu__table *table, struct mu__table_bound *ret_bound)
{
    const struct mu__table_policy *policy = &table->form.policy;
    uint64_t before;

    if (is_age_due(table, &before)) {
        *ret_bound = (struct mu__table_bound){MU__SWEEP_AGE, (uint32_t)before, 0};
        return true;
    }
    if (policy->capacity == 0 || policy->eviction == MU__EVICT_NONE ||
        table->rows <= policy->capacity)
        return false;
    *ret_bound = bound_below(table, table->rows - mu__table_policy_retained(policy));
    return true;
}

/* From the last row down, as the last one takes the number of one that goes. */
uint32_t mu__table_sweep(struct mu__table *table, const struct mu__table_bound *bound)
{
    bool by_time = sweeps_by_time(table, bound->reason);
    uint32_t rows = table->rows;

    for (uint32_t row = rows; row > 0; row--) {
        const unsigned char *at = mu__table_row_at(table, row - 1);

        if (is_below(bound, score_of(table, at, by_time), mu__table_row_id(at)))
            (void)mu__table_delete(table, mu__table_row_id(at));
    }
    rows -= table->rows;
    if (bound->reason == MU__SWEEP_CAPACITY)
        table->state.evicted += rows;
    else
        table->state.expired += rows;
    if (bound->reason == MU__SWEEP_AGE && bound->score > table->state.swept)
        table->state.swept = bound->score;
    return rows;
}
