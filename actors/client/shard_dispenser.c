#include "actors/client/shard_dispenser.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { VERSION = 1 };

static const char format_name[] = "muster dataset";

enum shard_state { FREE, OUT, CONSUMED };

struct shard {
    uint64_t ticket; /* while it is out */
    enum shard_state state;
};

/* A consumed shard, in the order of consumption. */
struct entry {
    uint64_t closure;
    uint32_t shard;
    uint32_t attempt;
    int32_t worker;
};

struct mu__dispenser {
    struct mu__dispenser_options options;
    uint64_t epoch;
    uint64_t tickets;  /* the last one */
    uint32_t next;     /* in `order`: shards before it were dispensed */
    uint32_t consumed; /* of this epoch */
    uint32_t out;
    uint32_t back_first; /* in `back` */
    uint32_t back_count;
    struct shard *shards;
    uint32_t *order;       /* of this epoch */
    uint32_t *back;        /* a ring: the shards that were given back */
    struct entry *entries; /* a ring of epochs, each with a row for every shard */
};

/* ---- order ---- */

static uint64_t mix_bits(uint64_t bits)
{
    bits = (bits ^ (bits >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
    bits = (bits ^ (bits >> 27)) * UINT64_C(0x94D049BB133111EB);
    return bits ^ (bits >> 31);
}

/* The next number of a SplitMix64 generator. */
static uint64_t draw_random(uint64_t *counter)
{
    *counter += UINT64_C(0x9E3779B97F4A7C15);
    return mix_bits(*counter);
}

/* The order of an epoch depends on the seed and its number only, so that it need not be
 * saved. */
static void shuffle_epoch(struct mu__dispenser *d)
{
    uint64_t counter = mix_bits(d->options.seed) ^ mix_bits(~d->epoch);

    for (uint32_t i = d->options.shards; i > 1; i--) {
        uint32_t j = (uint32_t)(((draw_random(&counter) >> 32) * i) >> 32);
        uint32_t shard = d->order[i - 1];

        d->order[i - 1] = d->order[j];
        d->order[j] = shard;
    }
}

static void begin_dispenser_epoch(struct mu__dispenser *d, uint64_t epoch)
{
    assert(d->out == 0 && d->back_count == 0);
    d->epoch = epoch;
    d->next = 0;
    d->consumed = 0;
    for (uint32_t i = 0; i < d->options.shards; i++) {
        d->shards[i] = (struct shard){.state = FREE};
        d->order[i] = i;
    }
    if (d->options.seed != 0)
        shuffle_epoch(d);
}

/* ---- making and freeing ---- */

static int check_dispenser_range(const char *name, uint64_t number, uint64_t low,
                                 uint64_t high, mu_error *error)
{
    if (number >= low && number <= high)
        return 0;
    return mu_error_set(error, -MU_EINVALID,
                        "option %s is %" PRIu64 ", expected a number from %" PRIu64
                        " to %" PRIu64,
                        name, number, low, high);
}

static int check_dispenser_options(const struct mu__dispenser_options *options,
                                   mu_error *error)
{
    int rv = check_dispenser_range("shards", options->shards, 1, MU__DISPENSER_SHARDS_MAX,
                                   error);

    return rv != 0 ? rv
                   : check_dispenser_range("records", options->records, 1,
                                           MU__DISPENSER_RECORDS_MAX / options->shards,
                                           error);
}

int mu__dispenser_new(const struct mu__dispenser_options *options, mu_error *ret_error,
                      struct mu__dispenser **ret_dispenser)
{
    size_t shards = options->shards;
    struct mu__dispenser *d;
    int rv = check_dispenser_options(options, ret_error);

    if (rv != 0)
        return rv;
    d = calloc(1, sizeof *d);
    if (d == NULL)
        return mu_error_set(ret_error, -MU_ENOMEM, "no memory for %zu shards", shards);
    d->options = *options;
    d->shards = calloc(shards, sizeof *d->shards);
    d->order = calloc(shards, sizeof *d->order);
    d->back = calloc(shards, sizeof *d->back);
    d->entries = calloc(shards * options->records, sizeof *d->entries);
    if (d->shards == NULL || d->order == NULL || d->back == NULL || d->entries == NULL) {
        mu__dispenser_free(d);
        return mu_error_set(ret_error, -MU_ENOMEM, "no memory for %zu shards", shards);
    }
    begin_dispenser_epoch(d, 1);
    *ret_dispenser = d;
    return 0;
}

void mu__dispenser_free(struct mu__dispenser *dispenser)
{
    if (dispenser == NULL)
        return;
    free(dispenser->shards);
    free(dispenser->order);
    free(dispenser->back);
    free(dispenser->entries);
    free(dispenser);
}

/* ---- dispensing and consuming ---- */

static bool is_last_epoch(const struct mu__dispenser *d)
{
    return d->options.epochs != 0 && d->epoch == d->options.epochs;
}

static bool is_epoch_over(const struct mu__dispenser *d)
{
    return d->consumed == d->options.shards;
}

/* Take the next free shard. False: there is none. */
static bool take_free_shard(struct mu__dispenser *d, uint32_t *ret_shard)
{
    const uint32_t shards = d->options.shards;

    if (d->back_count > 0) {
        *ret_shard = d->back[d->back_first];
        d->back_first = (d->back_first + 1) % shards;
        d->back_count--;
        return true;
    }
    while (d->next < shards && d->shards[d->order[d->next]].state != FREE)
        d->next++;
    if (d->next == shards)
        return false;
    *ret_shard = d->order[d->next++];
    return true;
}

enum mu__dispenser_outcome mu__dispenser_next(struct mu__dispenser *d,
                                              struct mu__dispensed *ret_shard)
{
    uint32_t shard;

    if (is_epoch_over(d))
        return MU__SHARD_ALL_CONSUMED;
    if (!take_free_shard(d, &shard))
        return MU__SHARD_NONE_FREE;
    d->out++;
    d->shards[shard] = (struct shard){.ticket = ++d->tickets, .state = OUT};
    *ret_shard = (struct mu__dispensed){
        .epoch = d->epoch,
        .ticket = d->shards[shard].ticket,
        .shard = shard,
    };
    return MU__SHARD_DISPENSED;
}

/* As tickets are unique, a shard of an earlier epoch is not taken for one of this
 * epoch. */
static bool is_shard_out(const struct mu__dispenser *d,
                         const struct mu__dispensed *dispensed)
{
    return dispensed->shard < d->options.shards &&
           d->shards[dispensed->shard].state == OUT &&
           d->shards[dispensed->shard].ticket == dispensed->ticket;
}

bool mu__dispenser_give_back(struct mu__dispenser *d,
                             const struct mu__dispensed *dispensed)
{
    if (!is_shard_out(d, dispensed))
        return false;
    d->out--;
    d->shards[dispensed->shard].state = FREE;
    d->back[(d->back_first + d->back_count) % d->options.shards] = dispensed->shard;
    d->back_count++;
    return true;
}

static struct entry *entries_of(const struct mu__dispenser *d, uint64_t epoch)
{
    return d->entries + (size_t)(epoch % d->options.records) * d->options.shards;
}

static void record_consumed_shard(struct mu__dispenser *d, uint32_t shard,
                                  const struct mu__consumer *consumer)
{
    d->shards[shard].state = CONSUMED;
    entries_of(d, d->epoch)[d->consumed++] = (struct entry){
        .closure = consumer->closure,
        .shard = shard,
        .attempt = consumer->attempt,
        .worker = consumer->worker,
    };
}

bool mu__dispenser_consume(struct mu__dispenser *d, const struct mu__dispensed *dispensed,
                           const struct mu__consumer *consumer)
{
    if (!is_shard_out(d, dispensed))
        return false;
    d->out--;
    record_consumed_shard(d, dispensed->shard, consumer);
    if (d->consumed == d->options.shards && !is_last_epoch(d))
        begin_dispenser_epoch(d, d->epoch + 1);
    return true;
}

static uint64_t consumed_of(uint64_t epoch, uint64_t shards, uint64_t consumed)
{
    return (epoch - 1) * shards + consumed;
}

void mu__dispenser_counts(const struct mu__dispenser *d,
                          struct mu__dispenser_counts *ret_counts)
{
    *ret_counts = (struct mu__dispenser_counts){
        .epoch = d->epoch,
        .consumed = consumed_of(d->epoch, d->options.shards, d->consumed),
        .shards = d->options.shards,
        .out = d->out,
    };
}

uint32_t mu__dispenser_first_out(const struct mu__dispenser *d)
{
    uint32_t shard = 0;

    while (shard < d->options.shards && d->shards[shard].state != OUT)
        shard++;
    return shard;
}

/* ---- to a value ---- */

/* The columns of the record. */
enum column { SHARD, CLOSURE, ATTEMPT, WORKER, COLUMNS };

static const char *const column_names[COLUMNS] = {"shard", "closure", "attempt",
                                                  "worker"};

static int64_t get_entry_column(const struct entry *entry, enum column column)
{
    switch (column) {
    case SHARD:
        return entry->shard;
    case CLOSURE:
        return (int64_t)entry->closure;
    case ATTEMPT:
        return entry->attempt;
    default:
        return entry->worker;
    }
}

static mu_value *column_value(const struct entry *entries, uint64_t count,
                              enum column column)
{
    mu_value *tensor = mu_value_tensor(MU_I64, 1, &count, NULL);
    int64_t *cells;

    if (tensor == NULL)
        return NULL;
    cells = mu_value_tensor_data(tensor);
    for (uint64_t i = 0; i < count; i++)
        cells[i] = get_entry_column(&entries[i], column);
    return tensor;
}

static mu_value *epoch_value(const struct mu__dispenser *d, uint64_t epoch)
{
    uint32_t count = epoch == d->epoch ? d->consumed : d->options.shards;
    mu_value *map = mu_value_map();
    int rv;

    if (map == NULL)
        return NULL;
    rv = mu_value_set(map, "epoch", mu_value_int((int64_t)epoch));
    for (int c = 0; rv == 0 && c < COLUMNS; c++)
        rv = mu_value_set(map, column_names[c],
                          column_value(entries_of(d, epoch), count, (enum column)c));
    if (rv == 0)
        return map;
    mu_value_free(map);
    return NULL;
}

static uint64_t first_on_record(uint64_t epoch, uint64_t records)
{
    return epoch > records ? epoch - records + 1 : 1;
}

static mu_value *record_value(const struct mu__dispenser *d)
{
    mu_value *list = mu_value_list();
    int rv = list == NULL ? -MU_ENOMEM : 0;

    for (uint64_t e = first_on_record(d->epoch, d->options.records);
         rv == 0 && e <= d->epoch; e++)
        rv = mu_value_append(list, epoch_value(d, e));
    if (rv == 0)
        return list;
    mu_value_free(list);
    return NULL;
}

mu_value *mu__dispenser_value(const struct mu__dispenser *d)
{
    const struct {
        const char *key;
        uint64_t number;
    } numbers[] = {
        {"version", VERSION},
        {"shards", d->options.shards},
        {"epochs", d->options.epochs},
        {"records", d->options.records},
        {"seed", d->options.seed},
        {"epoch", d->epoch},
        {"consumed", consumed_of(d->epoch, d->options.shards, d->consumed)},
    };
    mu_value *map = mu_value_map();
    int rv;

    if (map == NULL)
        return NULL;
    rv = mu_value_set(map, "format", mu_value_string(format_name));
    for (size_t i = 0; rv == 0 && i < sizeof numbers / sizeof numbers[0]; i++)
        rv = mu_value_set(map, numbers[i].key, mu_value_int((int64_t)numbers[i].number));
    if (rv == 0)
        rv = mu_value_set(map, "record", record_value(d));
    if (rv == 0)
        return map;
    mu_value_free(map);
    return NULL;
}

/* ---- from a value ---- */

/* A whole number under a key of a map. */
static int read_dispenser_number(const mu_value *map, const char *key, int64_t low,
                                 int64_t high, mu_error *error, int64_t *ret_number)
{
    int64_t number = 0;

    if (mu_value_find(map, key) == NULL)
        return mu_error_set(error, -MU_EDATALOSS, "%s is missing", key);
    if (mu_value_get_int(mu_value_find(map, key), &number) != 0)
        return mu_error_set(error, -MU_EDATALOSS, "%s: expected a whole number", key);
    if (number < low || number > high)
        return mu_error_set(error, -MU_EDATALOSS,
                            "%s is %" PRId64 ", expected %" PRId64 " to %" PRId64, key,
                            number, low, high);
    *ret_number = number;
    return 0;
}

static int read_format(const mu_value *value, mu_error *error)
{
    const char *text = "";
    size_t size = 0;
    int64_t version;

    if (mu_value_type(value) != MU_VALUE_MAP ||
        mu_value_get_string(mu_value_find(value, "format"), &text, &size) != 0 ||
        strcmp(text, format_name) != 0)
        return mu_error_set(error, -MU_EDATALOSS,
                            "format: expected a map that says \"%s\"", format_name);
    return read_dispenser_number(value, "version", VERSION, VERSION, error, &version);
}

static int read_dispenser_options(const mu_value *value, mu_error *error,
                                  struct mu__dispenser_options *ret_options)
{
    int64_t shards = 0;
    int64_t epochs = 0;
    int64_t records = 0;
    int64_t seed = 0;
    int rv = read_dispenser_number(value, "shards", 1, MU__DISPENSER_SHARDS_MAX, error,
                                   &shards);

    if (rv == 0)
        rv = read_dispenser_number(value, "epochs", 0, UINT32_MAX, error, &epochs);
    if (rv == 0)
        rv = read_dispenser_number(value, "records", 1,
                                   MU__DISPENSER_RECORDS_MAX / shards, error, &records);
    if (rv == 0)
        rv = read_dispenser_number(value, "seed", INT64_MIN, INT64_MAX, error, &seed);
    if (rv != 0)
        return rv;
    *ret_options = (struct mu__dispenser_options){
        .shards = (uint32_t)shards,
        .epochs = (uint32_t)epochs,
        .records = (uint32_t)records,
        .seed = (uint64_t)seed,
    };
    return 0;
}

/* One epoch of the record, as it is being read. */
struct page {
    size_t index;   /* in the list */
    uint64_t count; /* of shards that must be in it */
    const int64_t *columns[COLUMNS];
};

static int read_column(const mu_value *map, enum column column, mu_error *error,
                       struct page *page)
{
    const mu_value *item = mu_value_find(map, column_names[column]);
    mu_tensor tensor;

    if (item == NULL || mu_value_get_tensor(item, &tensor) != 0 ||
        tensor.dtype != MU_I64 || tensor.rank != 1 || tensor.dims[0] != page->count)
        return mu_error_set(error, -MU_EDATALOSS,
                            "record[%zu].%s: expected %" PRIu64 " numbers (int64)",
                            page->index, column_names[column], page->count);
    page->columns[column] = tensor.data;
    return 0;
}

static int refuse_cell(const struct page *page, enum column column, uint64_t row,
                       const char *expected, mu_error *error)
{
    return mu_error_set(error, -MU_EDATALOSS,
                        "record[%zu].%s[%" PRIu64 "] is %" PRId64 ", expected %s",
                        page->index, column_names[column], row,
                        page->columns[column][row], expected);
}

static int read_record_row(struct mu__dispenser *d, const struct page *page, uint64_t row,
                           mu_error *error)
{
    const int64_t shard = page->columns[SHARD][row];
    const int64_t attempt = page->columns[ATTEMPT][row];
    const int64_t worker = page->columns[WORKER][row];

    if (shard < 0 || shard >= d->options.shards)
        return refuse_cell(page, SHARD, row, "a shard that there is", error);
    if (d->shards[shard].state != FREE)
        return refuse_cell(page, SHARD, row, "each shard once", error);
    if (attempt < 0 || attempt > UINT32_MAX)
        return refuse_cell(page, ATTEMPT, row, "a number of 32 bits", error);
    if (worker < -1 || worker > INT32_MAX)
        return refuse_cell(page, WORKER, row, "a task index, or -1", error);
    record_consumed_shard(d, (uint32_t)shard,
                          &(struct mu__consumer){
                              .closure = (uint64_t)page->columns[CLOSURE][row],
                              .attempt = (uint32_t)attempt,
                              .worker = (int32_t)worker,
                          });
    return 0;
}

/* The dispenser has begun this epoch. */
static int read_record_page(struct mu__dispenser *d, const mu_value *map,
                            struct page *page, mu_error *error)
{
    int64_t epoch = 0;
    int rv = mu_value_get_int(mu_value_find(map, "epoch"), &epoch);

    if (rv != 0 || (uint64_t)epoch != d->epoch)
        return mu_error_set(error, -MU_EDATALOSS, "record[%zu].epoch: expected %" PRIu64,
                            page->index, d->epoch);
    for (int c = 0; rv == 0 && c < COLUMNS; c++)
        rv = read_column(map, (enum column)c, error, page);
    for (uint64_t row = 0; rv == 0 && row < page->count; row++)
        rv = read_record_row(d, page, row, error);
    return rv;
}

/* The current epoch and how many of its shards are consumed: all of them only if it is
 * the last epoch. */
static int read_position(const struct mu__dispenser *d, const mu_value *value,
                         mu_error *error, uint64_t *ret_epoch, uint64_t *ret_consumed)
{
    const int64_t shards = d->options.shards;
    const int64_t last = d->options.epochs == 0 ? INT64_MAX / shards : d->options.epochs;
    int64_t epoch = 0;
    int64_t consumed = 0;
    int64_t before;
    int rv = read_dispenser_number(value, "epoch", 1, last, error, &epoch);

    if (rv != 0)
        return rv;
    before = (epoch - 1) * shards;
    rv = read_dispenser_number(value, "consumed", before,
                               before + shards - (d->options.epochs == epoch ? 0 : 1),
                               error, &consumed);
    if (rv != 0)
        return rv;
    *ret_epoch = (uint64_t)epoch;
    *ret_consumed = (uint64_t)(consumed - before);
    return 0;
}

static int read_dispenser_record(struct mu__dispenser *d, const mu_value *value,
                                 mu_error *error)
{
    const mu_value *record = mu_value_find(value, "record");
    uint64_t last = 1;
    uint64_t consumed = 0;
    uint64_t first;
    int rv = read_position(d, value, error, &last, &consumed);

    if (rv != 0)
        return rv;
    first = first_on_record(last, d->options.records);
    if (record == NULL || mu_value_type(record) != MU_VALUE_LIST ||
        mu_value_count(record) != last - first + 1)
        return mu_error_set(error, -MU_EDATALOSS,
                            "record: expected a list of %" PRIu64 " epochs",
                            last - first + 1);
    for (uint64_t e = first; rv == 0 && e <= last; e++) {
        struct page page = {
            .index = (size_t)(e - first),
            .count = e == last ? consumed : d->options.shards,
        };

        begin_dispenser_epoch(d, e);
        rv = read_record_page(d, mu_value_at(record, page.index), &page, error);
    }
    return rv;
}

int mu__dispenser_read(const mu_value *value, mu_error *ret_error,
                       struct mu__dispenser **ret_dispenser)
{
    struct mu__dispenser_options options;
    struct mu__dispenser *d = NULL;
    int rv = read_format(value, ret_error);

    if (rv == 0)
        rv = read_dispenser_options(value, ret_error, &options);
    if (rv == 0)
        rv = mu__dispenser_new(&options, ret_error, &d);
    if (rv != 0)
        return rv;
    rv = read_dispenser_record(d, value, ret_error);
    if (rv != 0) {
        mu__dispenser_free(d);
        return rv;
    }
    *ret_dispenser = d;
    return 0;
}
