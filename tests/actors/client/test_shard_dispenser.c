/* Dealing out shards: rows of steps, a check against a model in random order, and what
 * becomes of a dispenser that is saved, broken and read again. */
#include "actors/client/shard_dispenser.h"
#include "sim/world/random.h"
#include "tests/support/test.h"

enum { STEPS_MAX = 16, HANDS = 8, RANDOM_RUNS = 200, SHARDS_MAX = 20 };

static struct mu__dispenser *dispenser_new(uint32_t shards, uint32_t epochs,
                                           uint64_t seed)
{
    const struct mu__dispenser_options options = {shards, epochs, 2, seed};
    struct mu__dispenser *dispenser = NULL;
    mu_error error = {0};

    if (mu__dispenser_new(&options, &error, &dispenser) != 0)
        fail_msg("%s", error.message);
    return dispenser;
}

static const struct mu__consumer nobody = {0, 0, -1};

/* ---- rows ---- */

enum action { END, DEAL, NONE, OVER, BACK, EAT, STALE };

/* `hand` is where the test keeps what was dispensed; shard and epoch are what is
 * expected. */
struct step {
    enum action action;
    int hand;
    uint32_t shard;
    uint64_t epoch;
};

/* clang-format off */
#define D(hand, shard, epoch) {DEAL, hand, shard, epoch}
#define N {NONE, 0, 0, 0}
#define O {OVER, 0, 0, 0}
#define B(hand) {BACK, hand, 0, 0}
#define E(hand) {EAT, hand, 0, 0}
#define S(hand) {STALE, hand, 0, 0}
/* clang-format on */

static const struct story {
    const char *name;
    uint32_t shards;
    uint32_t epochs;
    struct step steps[STEPS_MAX];
} stories[] = {
    {"in order, then over", 2, 1, {D(0, 0, 1), D(1, 1, 1), N, E(1), N, E(0), O}},
    {"an epoch begins when the one before is consumed",
     2,
     2,
     {D(0, 0, 1), E(0), D(0, 1, 1), N, E(0), D(0, 0, 2), D(1, 1, 2), E(0), E(1), O, O}},
    {"what comes back is next",
     4,
     1,
     {D(0, 0, 1), D(1, 1, 1), D(2, 2, 1), B(1), B(0), D(3, 1, 1), D(4, 0, 1), D(5, 3, 1),
      N, B(2), D(6, 2, 1), N}},
    {"a ticket is good for once",
     2,
     0,
     {D(0, 0, 1), B(0), S(0), D(1, 0, 1), S(0), E(1), S(1), D(2, 1, 1), E(2), D(3, 0, 2),
      S(1), E(3)}},
    {"one shard, without end",
     1,
     0,
     {D(0, 0, 1), N, E(0), D(0, 0, 2), E(0), D(0, 0, 3), B(0), D(0, 0, 3)}},
};

static bool take_step(struct mu__dispenser *dispenser, const struct step *step,
                      struct mu__dispensed *hands)
{
    struct mu__dispensed *hand = &hands[step->hand];
    struct mu__dispensed unused;

    switch (step->action) {
    case DEAL:
        return mu__dispenser_next(dispenser, hand) == MU__SHARD_DISPENSED &&
               hand->shard == step->shard && hand->epoch == step->epoch;
    case NONE:
        return mu__dispenser_next(dispenser, &unused) == MU__SHARD_NONE_FREE;
    case OVER:
        return mu__dispenser_next(dispenser, &unused) == MU__SHARD_ALL_CONSUMED;
    case BACK:
        return mu__dispenser_give_back(dispenser, hand);
    case EAT:
        return mu__dispenser_consume(dispenser, hand, &nobody);
    default:
        return !mu__dispenser_consume(dispenser, hand, &nobody) &&
               !mu__dispenser_give_back(dispenser, hand);
    }
}

TEST(test_stories)
{
    for (size_t i = 0; i < sizeof stories / sizeof stories[0]; i++) {
        const struct story *story = &stories[i];
        struct mu__dispenser *dispenser = dispenser_new(story->shards, story->epochs, 0);
        struct mu__dispensed hands[HANDS] = {{0}};

        for (int s = 0; s < STEPS_MAX && story->steps[s].action != END; s++)
            if (!take_step(dispenser, &story->steps[s], hands))
                fail_msg("%s: step %d", story->name, s);
        mu__dispenser_free(dispenser);
    }
}

TEST(test_options)
{
    static const struct {
        struct mu__dispenser_options options;
        const char *words;
    } rows[] = {
        {{0, 0, 2, 0}, "option shards is 0, expected a number from 1 to 1048576"},
        {{MU__DISPENSER_SHARDS_MAX + 1, 0, 1, 0},
         "option shards is 1048577, expected a number from 1 to 1048576"},
        {{10, 0, 0, 0}, "option records is 0, expected a number from 1 to 1677721"},
        {{MU__DISPENSER_SHARDS_MAX, 0, 17, 0},
         "option records is 17, expected a number from 1 to 16"},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct mu__dispenser *dispenser = NULL;
        mu_error error = {0};

        assert_int_equal(mu__dispenser_new(&rows[i].options, &error, &dispenser),
                         -MU_EINVALID);
        assert_string_equal(error.message, rows[i].words);
        assert_null(dispenser);
    }
}

/* ---- order ---- */

static void dataset_epoch(struct mu__dispenser *dispenser, uint32_t shards,
                          uint32_t *order)
{
    struct mu__dispensed dispensed;

    for (uint32_t i = 0; i < shards; i++) {
        assert_int_equal(mu__dispenser_next(dispenser, &dispensed), MU__SHARD_DISPENSED);
        assert_true(mu__dispenser_consume(dispenser, &dispensed, &nobody));
        order[i] = dispensed.shard;
    }
}

TEST(test_order_follows_from_the_seed)
{
    uint32_t orders[4][SHARDS_MAX];
    struct mu__dispenser *a = dispenser_new(SHARDS_MAX, 0, 5);
    struct mu__dispenser *b = dispenser_new(SHARDS_MAX, 0, 5);
    struct mu__dispenser *c = dispenser_new(SHARDS_MAX, 0, 6);
    uint32_t seen = 0;

    dataset_epoch(a, SHARDS_MAX, orders[0]);
    dataset_epoch(a, SHARDS_MAX, orders[1]);
    dataset_epoch(b, SHARDS_MAX, orders[2]);
    dataset_epoch(c, SHARDS_MAX, orders[3]);
    assert_memory_equal(orders[0], orders[2], sizeof orders[0]);
    assert_memory_not_equal(orders[0], orders[1], sizeof orders[0]);
    assert_memory_not_equal(orders[0], orders[3], sizeof orders[0]);
    for (int i = 0; i < SHARDS_MAX; i++)
        seen |= 1U << orders[0][i];
    assert_int_equal(seen, (1U << SHARDS_MAX) - 1);
    mu__dispenser_free(a);
    mu__dispenser_free(b);
    mu__dispenser_free(c);
}

/* ---- the record ---- */

static const int64_t *column(const mu_value *value, size_t place, const char *name,
                             uint64_t count)
{
    const mu_value *page = mu_value_at(mu_value_find(value, "record"), place);
    mu_tensor tensor;

    assert_int_equal(mu_value_get_tensor(mu_value_find(page, name), &tensor), 0);
    assert_int_equal(tensor.rank, 1);
    assert_int_equal(tensor.dims[0], count);
    return tensor.data;
}

static int64_t number(const mu_value *map, const char *key)
{
    int64_t found = -99;

    assert_int_equal(mu_value_get_int(mu_value_find(map, key), &found), 0);
    return found;
}

/* Three epochs of two shards, and one more shard: two epochs are on record. */
static struct mu__dispenser *dispenser_in_fourth_epoch(void)
{
    struct mu__dispenser *dispenser = dispenser_new(2, 4, 0);
    struct mu__dispensed dispensed;

    for (uint32_t i = 0; i < 7; i++) {
        const struct mu__consumer consumer = {100 + i, i + 1, (int32_t)i - 1};

        assert_int_equal(mu__dispenser_next(dispenser, &dispensed), MU__SHARD_DISPENSED);
        assert_true(mu__dispenser_consume(dispenser, &dispensed, &consumer));
    }
    return dispenser;
}

TEST(test_record)
{
    struct mu__dispenser *dispenser = dispenser_in_fourth_epoch();
    mu_value *value = mu__dispenser_value(dispenser);

    assert_int_equal(number(value, "consumed"), 7);
    assert_int_equal(number(value, "epoch"), 4);
    assert_int_equal(mu_value_count(mu_value_find(value, "record")), 2);
    assert_int_equal(column(value, 0, "shard", 2)[1], 1);
    assert_int_equal(column(value, 0, "closure", 2)[1], 105);
    assert_int_equal(column(value, 0, "attempt", 2)[0], 5);
    assert_int_equal(column(value, 1, "worker", 1)[0], 5);
    assert_int_equal(column(value, 1, "closure", 1)[0], 106);
    mu_value_free(value);
    mu__dispenser_free(dispenser);
}

TEST(test_what_was_out_is_free_again)
{
    struct mu__dispenser *dispenser = dispenser_new(3, 1, 9);
    struct mu__dispenser *copy = NULL;
    struct mu__dispenser_counts counts;
    struct mu__dispensed first;
    struct mu__dispensed second;
    struct mu__dispensed again;
    mu_value *value;

    assert_int_equal(mu__dispenser_next(dispenser, &first), MU__SHARD_DISPENSED);
    assert_int_equal(mu__dispenser_next(dispenser, &second), MU__SHARD_DISPENSED);
    assert_true(mu__dispenser_consume(dispenser, &second, &nobody));
    mu__dispenser_counts(dispenser, &counts);
    assert_int_equal(counts.out, 1);
    assert_int_equal(mu__dispenser_first_out(dispenser), first.shard);
    value = mu__dispenser_value(dispenser);
    assert_int_equal(mu__dispenser_read(value, NULL, &copy), 0);
    mu__dispenser_counts(copy, &counts);
    assert_int_equal(counts.out, 0);
    assert_int_equal(mu__dispenser_first_out(copy), 3);
    assert_int_equal(counts.consumed, 1);
    assert_int_equal(mu__dispenser_next(copy, &again), MU__SHARD_DISPENSED);
    assert_int_equal(again.shard, first.shard);
    assert_int_equal(mu__dispenser_next(copy, &again), MU__SHARD_DISPENSED);
    assert_int_not_equal(again.shard, second.shard);
    assert_int_equal(mu__dispenser_next(copy, &again), MU__SHARD_NONE_FREE);
    mu_value_free(value);
    mu__dispenser_free(copy);
    mu__dispenser_free(dispenser);
}

/* ---- broken records ---- */

static mu_value *cells(uint64_t count, int64_t a, int64_t b)
{
    const int64_t data[] = {a, b};

    return mu_value_tensor(MU_I64, 1, &count, data);
}

/* What is put where, into the value of dispenser_in_fourth_epoch(), and the words. A
 * count of -1 puts the number `a`, else `count` cells a and b. */
static const struct damage {
    int place; /* in the record; -1: the whole */
    const char *key;
    int count;
    int64_t a;
    int64_t b;
    const char *words;
} damages[] = {
    {-1, "format", -1, 1, 0, "format: expected a map that says \"muster dataset\""},
    {-1, "version", -1, 2, 0, "version is 2, expected 1 to 1"},
    {-1, "shards", -1, 0, 0, "shards is 0, expected 1 to 1048576"},
    {-1, "shards", -1, INT64_MAX, 0,
     "shards is 9223372036854775807, expected 1 to 1048576"},
    {-1, "shards", 1, 2, 0, "shards: expected a whole number"},
    {-1, "shards", -1, 3, 0, "consumed is 7, expected 9 to 12"},
    {-1, "epochs", -1, -1, 0, "epochs is -1, expected 0 to 4294967295"},
    {-1, "epochs", -1, 3, 0, "epoch is 4, expected 1 to 3"},
    {-1, "records", -1, 0, 0, "records is 0, expected 1 to 8388608"},
    {-1, "records", -1, 3, 0, "record: expected a list of 3 epochs"},
    {-1, "epoch", -1, 0, 0, "epoch is 0, expected 1 to 4"},
    {-1, "consumed", -1, 9, 0, "consumed is 9, expected 6 to 8"},
    {-1, "consumed", -1, 8, 0, "record[1].shard: expected 2 numbers (int64)"},
    {-1, "record", -1, 1, 0, "record: expected a list of 2 epochs"},
    {0, "epoch", -1, 2, 0, "record[0].epoch: expected 3"},
    {1, "epoch", -1, 3, 0, "record[1].epoch: expected 4"},
    {0, "shard", -1, 0, 0, "record[0].shard: expected 2 numbers (int64)"},
    {0, "worker", 1, 0, 0, "record[0].worker: expected 2 numbers (int64)"},
    {0, "shard", 2, 1, 1, "record[0].shard[1] is 1, expected each shard once"},
    {0, "shard", 2, 0, 2, "record[0].shard[1] is 2, expected a shard that there is"},
    {0, "shard", 2, -1, 0, "record[0].shard[0] is -1, expected a shard that there is"},
    {0, "attempt", 2, 0, -1, "record[0].attempt[1] is -1, expected a number of 32 bits"},
    {0, "worker", 2, -2, 0, "record[0].worker[0] is -2, expected a task index, or -1"},
};

TEST(test_broken_records_are_refused)
{
    for (size_t i = 0; i < sizeof damages / sizeof damages[0]; i++) {
        const struct damage *damage = &damages[i];
        struct mu__dispenser *dispenser = dispenser_in_fourth_epoch();
        struct mu__dispenser *copy = NULL;
        mu_value *value = mu__dispenser_value(dispenser);
        mu_value *map = value;
        mu_error error = {0};

        if (damage->place >= 0)
            map = (mu_value *)mu_value_at(mu_value_find(value, "record"),
                                          (size_t)damage->place);
        assert_int_equal(mu_value_set(map, damage->key,
                                      damage->count < 0 ? mu_value_int(damage->a)
                                                        : cells((uint64_t)damage->count,
                                                                damage->a, damage->b)),
                         0);
        assert_int_equal(mu__dispenser_read(value, &error, &copy), -MU_EDATALOSS);
        assert_string_equal(error.message, damage->words);
        assert_null(copy);
        mu_value_free(value);
        mu__dispenser_free(dispenser);
    }
}

TEST(test_missing_keys_are_named)
{
    static const char *const keys[] = {"version", "shards", "epochs",  "records",
                                       "seed",    "epoch",  "consumed"};

    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        struct mu__dispenser *dispenser = dispenser_in_fourth_epoch();
        struct mu__dispenser *copy = NULL;
        mu_value *whole = mu__dispenser_value(dispenser);
        mu_value *part = mu_value_map();
        char words[64];
        mu_error error = {0};

        for (size_t k = 0; k < mu_value_count(whole); k++)
            if (strcmp(mu_value_key(whole, k), keys[i]) != 0)
                (void)mu_value_set(part, mu_value_key(whole, k),
                                   mu_value_ref(mu_value_at(whole, k)));
        (void)snprintf(words, sizeof words, "%s is missing", keys[i]);
        assert_int_equal(mu__dispenser_read(part, &error, &copy), -MU_EDATALOSS);
        assert_string_equal(error.message, words);
        mu_value_free(whole);
        mu_value_free(part);
        mu__dispenser_free(dispenser);
    }
    assert_int_equal(mu__dispenser_read(NULL, NULL, NULL), -MU_EDATALOSS);
}

/* ---- chance ---- */

/* What the test knows: how often each shard was consumed in this epoch, what is out. */
struct model {
    struct mu__dispenser *dispenser;
    struct sim_random random;
    uint32_t shards;
    uint32_t epochs;
    uint64_t epoch;
    uint32_t eaten[SHARDS_MAX];
    uint32_t eaten_count;
    struct mu__dispensed out[SHARDS_MAX];
    uint32_t out_count;
};

static struct mu__dispensed take_out(struct model *m)
{
    uint32_t i = (uint32_t)sim_between(&m->random, 0, m->out_count - 1);
    struct mu__dispensed dispensed = m->out[i];

    m->out[i] = m->out[--m->out_count];
    return dispensed;
}

static void check_dataset(struct model *m)
{
    struct mu__dispensed dispensed;
    enum mu__dispenser_outcome answer = mu__dispenser_next(m->dispenser, &dispensed);
    uint32_t free_count = m->shards - m->eaten_count - m->out_count;

    if (answer != MU__SHARD_DISPENSED) {
        assert_int_equal(answer, MU__SHARD_NONE_FREE);
        assert_int_equal(free_count, 0);
        return;
    }
    assert_int_not_equal(free_count, 0);
    assert_int_equal(dispensed.epoch, m->epoch);
    assert_int_equal(m->eaten[dispensed.shard], 0);
    for (uint32_t i = 0; i < m->out_count; i++)
        assert_int_not_equal(m->out[i].shard, dispensed.shard);
    m->out[m->out_count++] = dispensed;
}

static void check_consume(struct model *m)
{
    struct mu__dispensed dispensed = take_out(m);

    assert_true(mu__dispenser_consume(m->dispenser, &dispensed, &nobody));
    assert_false(mu__dispenser_give_back(m->dispenser, &dispensed));
    m->eaten[dispensed.shard]++;
    m->eaten_count++;
    if (m->eaten_count < m->shards)
        return;
    for (uint32_t i = 0; i < m->shards; i++)
        assert_int_equal(m->eaten[i], 1);
    memset(m->eaten, 0, sizeof m->eaten);
    m->eaten_count = 0;
    m->epoch++;
}

/* The program dies, and its successor reads what it had saved. */
static void check_restart(struct model *m)
{
    mu_value *value = mu__dispenser_value(m->dispenser);
    struct mu__dispenser *copy = NULL;
    mu_value *again;
    mu_error error = {0};

    if (mu__dispenser_read(value, &error, &copy) != 0)
        fail_msg("%s", error.message);
    again = mu__dispenser_value(copy);
    assert_int_equal(mu_value_equal(value, again), 1);
    mu_value_free(again);
    mu_value_free(value);
    mu__dispenser_free(m->dispenser);
    m->dispenser = copy;
    m->out_count = 0;
}

static void run_model(struct model *m)
{
    struct mu__dispensed dispensed;
    mu_value *value;

    while (m->epoch <= m->epochs) {
        uint64_t what = sim_between(&m->random, 0, 99);

        if (m->out_count == 0 || what < 40) {
            check_dataset(m);
        } else if (what < 70) {
            check_consume(m);
        } else if (what < 97) {
            dispensed = take_out(m);
            assert_true(mu__dispenser_give_back(m->dispenser, &dispensed));
        } else {
            check_restart(m);
        }
    }
    assert_int_equal(mu__dispenser_next(m->dispenser, &dispensed),
                     MU__SHARD_ALL_CONSUMED);
    check_restart(m);
    assert_int_equal(mu__dispenser_next(m->dispenser, &dispensed),
                     MU__SHARD_ALL_CONSUMED);
    value = mu__dispenser_value(m->dispenser);
    assert_int_equal(number(value, "consumed"), m->shards * m->epochs);
    mu_value_free(value);
}

TEST(test_every_shard_once_in_any_order)
{
    for (uint64_t seed = 0; seed < RANDOM_RUNS; seed++) {
        struct model m = {.random = sim_stream(77, seed), .epoch = 1};

        m.shards = (uint32_t)sim_between(&m.random, 1, SHARDS_MAX);
        m.epochs = (uint32_t)sim_between(&m.random, 1, 5);
        m.dispenser = dispenser_new(m.shards, m.epochs, seed % 3 == 0 ? 0 : seed);
        run_model(&m);
        assert_int_equal(m.epoch, m.epochs + 1);
        mu__dispenser_free(m.dispenser);
    }
}

TEST_PROGRAM()
