/* What the status shows of a parameter server. */
#include "actors/ps/server.h"

#include "actors/packing.h"
#include "actors/ps/tables/table_set.h"

#include <stdlib.h>

struct variable_listing {
    mu_value *list;     /* NULL when out of memory */
    uint32_t partition; /* that is listed now */
    size_t left_out;
};

static mu_value *dims_value(const struct mu__shape *shape)
{
    mu_value *list = mu_value_list();

    for (uint32_t i = 0; list != NULL && i < shape->rank; i++) {
        if (mu_value_append(list, mu_value_int((int64_t)shape->dims[i])) != 0) {
            mu_value_free(list);
            return NULL;
        }
    }
    return list;
}

struct status_entry {
    const char *key;
    mu_value *value;
};

/* A map of the entries; takes their values. NULL when out of memory. */
static mu_value *map_of(const struct status_entry *entries, size_t count)
{
    mu_value *map = mu_value_map();
    bool failed = map == NULL;

    for (size_t i = 0; i < count; i++) {
        if (failed)
            mu_value_free(entries[i].value);
        else
            failed = mu_value_set(map, entries[i].key, entries[i].value) != 0;
    }
    if (failed) {
        mu_value_free(map);
        return NULL;
    }
    return map;
}

static mu_value *make_number_value(uint64_t n)
{
    return mu_value_int((int64_t)n);
}

static mu_value *info_value(const struct mu__store_info *info, uint32_t partition)
{
    const struct status_entry entries[] = {
        {"name", mu_value_string(info->name)},
        {"dtype", mu_value_string(mu_dtype_name((int)info->shape->dtype))},
        {"dims", dims_value(info->shape)},
        {"shard", make_number_value(info->shard)},
        {"shards", make_number_value(info->shape->shards)},
        {"partition", make_number_value(partition)},
        {"bytes", make_number_value(info->bytes)},
        {"version", make_number_value(info->version)},
        {"ready", mu_value_bool(info->ready)},
        {"reads", make_number_value(info->reads)},
        {"writes", make_number_value(info->writes)},
        {"bytes_read", make_number_value(info->bytes_read)},
        {"bytes_written", make_number_value(info->bytes_written)},
        {"optimizer", mu_value_string(info->rule)},
        {"step", make_number_value(info->step)},
        {"nonfinite", make_number_value(info->nonfinite)},
    };

    return map_of(entries, sizeof entries / sizeof entries[0]);
}

/* Takes `item`. A list that lacks memory for one item is dropped as a whole. */
static void append_listing_item(struct variable_listing *listing, mu_value *item)
{
    if (listing->list == NULL) {
        mu_value_free(item);
        return;
    }
    if (mu_value_append(listing->list, item) != 0) {
        mu_value_free(listing->list);
        listing->list = NULL;
    }
}

static void list_variable(void *user, const struct mu__store_info *info)
{
    struct variable_listing *listing = user;

    if (listing->list != NULL && mu_value_count(listing->list) >= MU__PS_STATUS_MAX)
        listing->left_out++;
    else
        append_listing_item(listing, info_value(info, listing->partition));
}

static mu_value *clock_value(const struct mu__clock *clock, uint32_t partition)
{
    char slowest[MU__CLOCK_TEXT_SIZE];
    uint32_t waiting = 0;

    mu__clock_slowest_text(clock, slowest, sizeof slowest);
    for (const struct mu__clock_member *member = mu__clock_first(clock); member != NULL;
         member = mu__clock_next(member))
        waiting += member->token != 0;

    const struct status_entry entries[] = {
        {"clock", mu_value_string(clock->name)},
        {"partition", make_number_value(partition)},
        {"staleness", clock->staleness == UINT64_MAX
                          ? mu_value_string("unlimited")
                          : make_number_value(clock->staleness)},
        {"minimum", make_number_value(clock->minimum)},
        {"members", make_number_value(clock->count)},
        {"waiting", make_number_value(waiting)},
        {"slowest", mu_value_string(slowest)},
    };

    return map_of(entries, sizeof entries / sizeof entries[0]);
}

static void list_clocks(struct variable_listing *listing, const struct partition *p)
{
    for (const struct mu__clock *clock = mu__clocks_first(&p->clocks); clock != NULL;
         clock = mu__clocks_next(clock))
        if (listing->list != NULL && mu_value_count(listing->list) >= MU__PS_STATUS_MAX)
            listing->left_out++;
        else
            append_listing_item(listing, clock_value(clock, listing->partition));
}

/* ---- Tables ---- */

/* What a server has of a table. */
struct listed_table {
    const struct mu__named_table *table;
    uint64_t rows;
    uint64_t bytes;
    uint32_t parts;
    struct mu__table_state counts; /* of these parts together */
};

static int compare_listed_tables(const void *a, const void *b)
{
    uint64_t one = ((const struct listed_table *)a)->table->id;
    uint64_t two = ((const struct listed_table *)b)->table->id;

    return one < two ? -1 : one > two;
}

static const struct mu__table_set *serving_tables(const struct ps *ps, uint32_t partition)
{
    const struct partition *p = ps->partitions[partition];

    return p == NULL || p->role != SERVING ? NULL : mu__store_tables(p->store);
}

/* The parts of all tables, those of one next to each other. NULL: out of memory. */
static struct listed_table *gather_parts(const struct ps *ps, size_t *ret_count)
{
    struct listed_table *parts;
    size_t count = 0;

    for (uint32_t i = 0; i < MU__PARTITIONS; i++)
        count += serving_tables(ps, i) == NULL ? 0 : serving_tables(ps, i)->count;
    parts = calloc(count + 1, sizeof *parts);
    count = 0;
    for (uint32_t i = 0; parts != NULL && i < MU__PARTITIONS; i++) {
        const struct mu__table_set *set = serving_tables(ps, i);

        for (const struct mu__named_table *table = set == NULL ? NULL
                                                               : mu__tables_first(set);
             table != NULL; table = mu__tables_next(table))
            parts[count++] = (struct listed_table){
                table, table->part.rows, table->part.bytes, 1, table->part.state};
    }
    if (count > 1)
        qsort(parts, count, sizeof *parts, compare_listed_tables);
    *ret_count = count;
    return parts;
}

static mu_value *initial_numbers(const struct mu__initial *initial)
{
    mu_value *list = mu_value_list();

    if (list != NULL && mu_value_append(list, mu_value_float(initial->a)) == 0 &&
        mu_value_append(list, mu_value_float(initial->b)) == 0)
        return list;
    mu_value_free(list);
    return NULL;
}

/* A form, as mu_table_open_existing reads it. */
static mu_value *form_value(const struct mu__table_form *form)
{
    const struct mu__table_policy *policy = &form->policy;
    const struct status_entry entries[] = {
        {"initializer", mu_value_string(mu__initial_name(form->initial.kind))},
        {"initial", initial_numbers(&form->initial)},
        {"seed", make_number_value(form->initial.seed)},
        {"admit_after", make_number_value(policy->admit_after)},
        {"admit_chance", make_number_value(policy->admit_chance)},
        {"candidates", make_number_value(policy->candidates)},
        {"ttl", make_number_value(policy->ttl)},
        {"capacity", make_number_value(policy->capacity)},
        {"eviction", make_number_value(policy->eviction)},
        {"unknown_zeros", mu_value_bool(policy->unknown_zeros)},
    };

    return map_of(entries, sizeof entries / sizeof entries[0]);
}

static mu_value *table_value(const struct listed_table *listed)
{
    const struct mu__table_form *form = &listed->table->part.form;
    int dtype = form->dtype == 0 ? MU_F32 : (int)form->dtype;
    const struct status_entry entries[] = {
        {"table", mu_value_string(listed->table->name)},
        {"dim", make_number_value(form->dim)},
        {"dtype", mu_value_string(mu_dtype_name(dtype))},
        {"optimizer", mu_value_string(mu__rule_kind(form->rule.kind)->name)},
        {"form", form_value(form)},
        {"rows", make_number_value(listed->rows)},
        {"bytes", make_number_value(listed->bytes)},
        {"parts", make_number_value(listed->parts)},
        {"pushes", make_number_value(listed->counts.pushes)},
        {"made", make_number_value(listed->counts.made)},
        {"dropped", make_number_value(listed->counts.dropped)},
        {"refused", make_number_value(listed->counts.refused)},
        {"expired", make_number_value(listed->counts.expired)},
        {"evicted", make_number_value(listed->counts.evicted)},
    };

    return map_of(entries, sizeof entries / sizeof entries[0]);
}

static void add_listed_part(struct listed_table *sum, const struct listed_table *part)
{
    sum->rows += part->rows;
    sum->bytes += part->bytes;
    sum->parts++;
    sum->counts.pushes += part->counts.pushes;
    sum->counts.made += part->counts.made;
    sum->counts.dropped += part->counts.dropped;
    sum->counts.refused += part->counts.refused;
    sum->counts.expired += part->counts.expired;
    sum->counts.evicted += part->counts.evicted;
}

static void list_tables(struct variable_listing *listing, const struct ps *ps)
{
    size_t count = 0;
    struct listed_table *parts = gather_parts(ps, &count);

    for (size_t i = 0, end; parts != NULL && i < count; i = end) {
        for (end = i + 1; end < count && parts[end].table->id == parts[i].table->id;
             end++)
            add_listed_part(&parts[i], &parts[end]);
        if (listing->list != NULL && mu_value_count(listing->list) >= MU__PS_STATUS_MAX)
            listing->left_out++;
        else
            append_listing_item(listing, table_value(&parts[i]));
    }
    free(parts);
}

mu_value *mu__ps_status(const void *ps_state)
{
    const struct ps *ps = ps_state;
    struct variable_listing listing = {.list = mu_value_list()};

    if (listing.list == NULL)
        return NULL;
    for (uint32_t i = 0; i < MU__PARTITIONS; i++) {
        listing.partition = i;
        if (ps->partitions[i] == NULL || ps->partitions[i]->role != SERVING)
            continue;
        list_clocks(&listing, ps->partitions[i]);
        mu__store_each(ps->partitions[i]->store, list_variable, &listing);
    }
    list_tables(&listing, ps);
    if (listing.left_out > 0) {
        const struct status_entry entry = {"left_out",
                                           make_number_value(listing.left_out)};

        append_listing_item(&listing, map_of(&entry, 1));
    }
    return listing.list;
}

/* The widest window, and what all partitions stage. */
void mu__ps_effects(const void *ps_state, struct mu__ps_effects *ret_effects)
{
    const struct ps *ps = ps_state;

    *ret_effects = (struct mu__ps_effects){
        .origin = ps->fence.origin,
        .epoch = ps->fence.epoch,
        .batches = ps->written.batches,
        .repeated = ps->written.repeated,
    };
    for (uint32_t i = 0; i < MU__PARTITIONS; i++) {
        const struct partition *p = ps->partitions[i];
        uint64_t span;

        if (p == NULL || p->role != SERVING)
            continue;
        span = p->applied.window.end - p->applied.window.base;
        if (span > ret_effects->span)
            ret_effects->span = span;
        ret_effects->staged_bytes += p->staging.bytes;
        ret_effects->staged_batches += p->staging.batches;
    }
}

void mu__ps_on_status_get(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    const struct mu__status_get *body = mu__body(msg);
    mu_value *value = mu__ps_status(state);
    struct mu__status reply = {.token = body->token};
    struct mu__buf *packed = mu__pack_value(value, &reply.status);

    if (packed != NULL)
        mu__ps_send(ctx, msg->from, MU__STATUS, &reply, sizeof reply);
    else
        mu__log(ctx, MU__LOG_WARN, "no status: out of memory");
    mu_value_free(value);
    mu__buf_unref(packed);
}
