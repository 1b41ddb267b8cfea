/* Look-ups and pushes in one part of a table, in this process, beside a gather from a
 * plain array of the same rows, and a gather and scatter of rows of twice the bytes, both
 * with prefetching and without a hash. Ids are drawn at random from rows that are there.
 *
 *     bench_tables [rows=1000000] */
#include "bench/bench.h"

#include "actors/ps/tables/table_part.h"

enum { DIM = 64, BATCH = 1024, AHEAD = 16, BAG_IDS = 20 };

static uint64_t state = 1;

static uint64_t draw(uint64_t end)
{
    state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (state >> 33) % end;
}

static void draw_ids(uint64_t *ids, uint64_t rows)
{
    for (int i = 0; i < BATCH; i++)
        ids[i] = draw(rows);
}

static void draw_rising(uint64_t *ids, uint64_t rows)
{
    ids[0] = draw(rows / BATCH);
    for (int i = 1; i < BATCH; i++)
        ids[i] = ids[i - 1] + 1 + draw(rows / BATCH - 1);
}

static double measure_gather(const float *array, uint64_t rows, uint64_t batches,
                             float *out)
{
    uint64_t ids[BATCH];
    uint64_t spent_ns = 0;

    for (uint64_t b = 0; b < batches; b++) {
        uint64_t start_ns;

        draw_ids(ids, rows);
        start_ns = bench_now_ns();
        for (int i = 0; i < BATCH; i++) {
            if (i + AHEAD < BATCH)
                for (int at = 0; at < DIM; at += 16)
                    __builtin_prefetch(array + ids[i + AHEAD] * DIM + at);
            memcpy(out + (size_t)i * DIM, array + ids[i] * DIM, DIM * sizeof *array);
        }
        spent_ns += bench_now_ns() - start_ns;
    }
    return bench_rate(batches * BATCH, 0, spent_ns);
}

/* Rows of twice the numbers are read, changed and written, in rising order of ids as
 * those of a push are. */
static double measure_scatter(float *array, uint64_t rows, uint64_t batches,
                              const float *gradients)
{
    uint64_t ids[BATCH];
    uint64_t spent_ns = 0;

    for (uint64_t b = 0; b < batches; b++) {
        uint64_t start_ns;

        draw_rising(ids, rows);
        start_ns = bench_now_ns();
        for (int i = 0; i < BATCH; i++) {
            float *row = array + ids[i] * 2 * DIM;

            if (i + AHEAD < BATCH)
                for (int at = 0; at < 2 * DIM; at += 16)
                    __builtin_prefetch(array + ids[i + AHEAD] * 2 * DIM + at, 1);
            for (int at = 0; at < DIM; at++) {
                row[at] += gradients[i * DIM + at];
                row[DIM + at] += gradients[i * DIM + at];
            }
        }
        spent_ns += bench_now_ns() - start_ns;
    }
    return bench_rate(batches * BATCH, 0, spent_ns);
}

static double measure_table_lookup(const struct mu__table *table, uint64_t rows,
                                   uint64_t batches, float *out)
{
    uint64_t ids[BATCH];
    uint64_t spent_ns = 0;

    for (uint64_t b = 0; b < batches; b++) {
        uint64_t start_ns;

        draw_ids(ids, rows);
        start_ns = bench_now_ns();
        mu__table_lookup(table, ids, BATCH, out);
        spent_ns += bench_now_ns() - start_ns;
    }
    return bench_rate(batches * BATCH, 0, spent_ns);
}

static double measure_table_push(struct mu__table *table, uint64_t rows, uint64_t batches,
                                 const float *gradients)
{
    uint64_t ids[BATCH];
    uint64_t spent_ns = 0;

    for (uint64_t b = 0; b < batches; b++) {
        uint64_t start_ns;

        draw_rising(ids, rows);
        start_ns = bench_now_ns();
        (void)mu__table_push(table, ids, gradients, BATCH, &table->form.rule);
        spent_ns += bench_now_ns() - start_ns;
    }
    return bench_rate(batches * BATCH, 0, spent_ns);
}

/* Sums of bags of 20 ids: gathered without a copy of each row. */
static double measure_table_pool(const struct mu__table *table, uint64_t rows,
                                 uint64_t batches, float *sums)
{
    uint64_t ids[BATCH];
    uint32_t bags[BATCH];
    const struct mu__pooled pooled = {.count = BATCH,
                                      .ids = (const unsigned char *)ids,
                                      .bags = (const unsigned char *)bags};
    uint64_t spent_ns = 0;

    for (uint32_t i = 0; i < BATCH; i++)
        bags[i] = i / BAG_IDS;
    for (uint64_t b = 0; b < batches; b++) {
        uint64_t start_ns;

        draw_ids(ids, rows);
        start_ns = bench_now_ns();
        mu__table_pool(table, &pooled, sums);
        spent_ns += bench_now_ns() - start_ns;
    }
    return bench_rate(batches * BATCH, 0, spent_ns);
}

static void fill_table(struct mu__table *table, uint64_t rows, const float *gradient)
{
    for (uint64_t id = 0; id < rows; id++) {
        mu__table_unreserve(table);
        if (mu__table_reserve(table, &id, 1, NULL) != 0)
            abort();
        (void)mu__table_push(table, &id, gradient, 1, &table->form.rule);
    }
}

static void report(uint64_t rows, const struct mu__table *table, double gather,
                   double lookup, double pooled, double scatter, double push)
{
    const struct bench_line lines[] = {
        {.bench = "tables",
         .metric = "lookup",
         .value = lookup,
         .unit = "rows/s",
         .limit = gather,
         .target = 0.6 * gather},
        {.bench = "tables",
         .metric = "bags of 20",
         .value = pooled,
         .unit = "ids/s",
         .limit = gather,
         .target = 0.6 * gather},
        {.bench = "tables",
         .metric = "push_adagrad",
         .value = push,
         .unit = "rows/s",
         .limit = scatter,
         .target = 0.6 * scatter},
        {.bench = "tables",
         .metric = "memory",
         .value = (double)table->bytes / (double)rows,
         .unit = "bytes/row",
         .limit = DIM * 8 + 28,
         .target = 1.15 * (DIM * 8 + 28),
         .less_is_more = true},
    };

    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++)
        bench_report(&lines[i]);
}

/* What an argument says, or the usual number. */
static uint64_t count_rows(int argc, char **argv)
{
    unsigned long long rows = 1000000;

    if (argc > 1 && (sscanf(argv[1], "rows=%llu", &rows) != 1 || rows < 2 * BATCH)) {
        fprintf(stderr, "bench_tables: %s: expected rows=NUMBER\n", argv[1]);
        exit(2);
    }
    return bench_size(4096, rows);
}

int main(int argc, char **argv)
{
    uint64_t rows = count_rows(argc, argv);
    uint64_t batches = bench_size(4, 4000);
    uint64_t used = 0;
    struct mu__block_pages pages = {{NULL, NULL}};
    const struct mu__table_memory memory = {UINT64_C(1) << 34, &used, &pages};
    const struct mu__table_form form = {.dim = DIM,
                                        .rule = mu__rule_defaults(MU__RULE_ADAGRAD)};
    float *array = calloc(rows * 2 * DIM, sizeof *array);
    float *out = calloc((size_t)BATCH * DIM, sizeof *out);
    struct mu__table table;
    double gather;
    double lookup;
    double pooled;
    double scatter;

    if (array == NULL || out == NULL)
        return 1;
    for (uint64_t i = 0; i < rows * 2 * DIM; i++)
        array[i] = (float)i;
    mu__table_init(&table, &form, &memory, 1);
    fill_table(&table, rows, out);
    gather = measure_gather(array, rows, batches, out);
    lookup = measure_table_lookup(&table, rows, batches, out);
    pooled = measure_table_pool(&table, rows, batches, out);
    scatter = measure_scatter(array, rows, batches, out);
    report(rows, &table, gather, lookup, pooled, scatter,
           measure_table_push(&table, rows, batches, out));
    mu__table_done(&table);
    free(array);
    free(out);
    return 0;
}
