/* What tests of clusters rely on and no cluster would show: the counter, the journal's
 * place, wishes on their way to the chief. */
#include "actors/client/future.h"
#include "actors/messages.h"
#include "tests/sim/cluster.h"
#include "tests/support/test.h"

enum { ITEMS = 8, SERVERS = 3 };

#define BEGIN(...) begin(&(struct cluster_options){__VA_ARGS__})

static struct cluster *begin(const struct cluster_options *options)
{
    struct cluster *cluster = cluster_new(1, options);

    cluster_start_all(cluster);
    assert_true(cluster_settle(cluster));
    assert_int_equal(cluster_wait(cluster_open(cluster->chief, -1)), 0);
    return cluster;
}

static int join(struct cluster *cluster)
{
    return cluster_wait(cluster_ask(cluster->chief, MU__CLIENT_JOIN, -1));
}

/* ---- The counter ---- */

struct written {
    uint64_t shard;
    uint64_t size;
    uint32_t partition;
    size_t item;
};

static struct written writes[ITEMS];
static size_t writes_count;

/* Writes are noted, and go no further. */
static int note_write(struct mu__effects *effects, const struct mu__effect *write,
                      const void *data)
{
    const int64_t *numbers = data;
    size_t i = 0;

    (void)effects;
    while (numbers[i] == 0)
        i++;
    assert_int_equal(numbers[i], 1);
    assert_true(writes_count < ITEMS);
    writes[writes_count++] =
        (struct written){write->variable, write->size, write->partition, i};
    return 0;
}

static struct cluster *begin_writes(void)
{
    struct cluster *cluster =
        BEGIN(.workers = 1, .servers = SERVERS, .effects_add = note_write);

    writes_count = 0;
    assert_int_equal(cluster_wait(cluster_counter_open(cluster->chief, ITEMS, -1)), 0);
    for (size_t i = 0; i < ITEMS; i++)
        (void)cluster_write(cluster->chief, &(struct cluster_ask){0});
    assert_int_equal(join(cluster), 0);
    assert_string_equal(cluster_check(cluster), "");
    return cluster;
}

/* Eight items over three servers: 0 to 2, 3 to 5, and 6 and 7. */
TEST(test_write_is_of_its_item)
{
    static const size_t shards[ITEMS] = {0, 0, 0, 1, 1, 1, 2, 2};
    static const size_t items[ITEMS] = {0, 1, 2, 0, 1, 2, 0, 1};
    static const uint64_t sizes[SERVERS] = {24, 24, 16};
    struct cluster *cluster = begin_writes();

    assert_int_equal(writes_count, ITEMS);
    for (size_t i = 0; i < ITEMS; i++) {
        assert_int_equal(writes[i].item, items[i]);
        assert_int_equal(writes[i].shard, cluster->counter.ids[shards[i]]);
        assert_int_equal(writes[i].size, sizes[shards[i]]);
        assert_int_equal(writes[i].partition,
                         (writes[0].partition + shards[i]) % MU__PARTITIONS);
    }
    cluster_free(cluster);
}

static void expect_break(struct cluster *cluster, bool once, const char *words)
{
    cluster_check_writes(cluster, once);
    assert_string_equal(cluster->broken, words);
    cluster->broken[0] = '\0';
}

/* A write that is missing, one that was applied twice, one too many. */
TEST(test_counter_is_checked)
{
    struct cluster *cluster = begin_writes();
    int64_t *items = cluster->counter.items;

    assert_int_equal(cluster_wait(cluster_counter_read(cluster->chief, -1)), 0);
    expect_break(cluster, true,
                 "write 0 ran 1 times and was reported as finished: its item is 0");
    for (size_t i = 0; i < ITEMS; i++)
        items[i] = 1;
    expect_break(cluster, true, "");
    items[3] = cluster->runs[3] = 2;
    expect_break(cluster, true,
                 "write 3 ran 2 times and was reported as finished: its item is 2");
    expect_break(cluster, false, "");
    items[3] = 3;
    expect_break(cluster, false,
                 "write 3 ran 2 times and was reported as finished: its item is 3");
    cluster_free(cluster);
}

/* ---- Wishes ---- */

/* A name that its program forgets, and a key that is scheduled again. */
TEST(test_schedule_again)
{
    struct cluster *cluster = BEGIN(.workers = 2);
    char name[] = "step 1";
    struct cluster_ask ask = {.name = name, .priority = 1, .worker = 2};
    struct cluster_closure *first = cluster_schedule_with(cluster->chief, "square", &ask);
    struct cluster_closure *second;
    int64_t key = first->key;

    memset(name, 'x', sizeof name - 1);
    assert_string_equal(first->ask.name, "step 1");
    assert_int_equal(join(cluster), 0);
    ask = (struct cluster_ask){.key = &key};
    second = cluster_schedule_with(cluster->chief, "square", &ask);
    key = -1;
    assert_int_equal(second->key, first->key);
    assert_int_equal(join(cluster), 0);
    assert_int_equal(cluster_result(second), cluster_square(first->key));
    assert_int_equal(cluster->runs[first->key], 2);
    assert_int_equal(cluster->key_next, 1);
    cluster_free(cluster);
}

/* ---- A journal's place ---- */

struct notes {
    struct mu__storage storage;
    char text[16];
};

static void note(struct mu__storage *storage, char letter)
{
    struct notes *notes = (struct notes *)storage;
    size_t size = strlen(notes->text);

    assert_true(size + 1 < sizeof notes->text);
    notes->text[size] = letter;
}

static void note_dying(struct mu__storage *storage)
{
    note(storage, 'd');
}

static void note_gone(struct mu__storage *storage)
{
    note(storage, 'g');
}

static int load_nothing(struct mu__storage *storage, uint64_t offset, uint32_t bytes_max,
                        mu_error *ret_error, struct mu__buf **ret_content)
{
    (void)offset;
    (void)bytes_max;
    (void)ret_error;
    note(storage, 'l');
    *ret_content = NULL;
    return 0;
}

static uint64_t size_of_nothing(const struct mu__storage *storage)
{
    (void)storage;
    return 0;
}

static int take_bytes(struct mu__storage *storage, const void *data, size_t size,
                      mu_error *ret_error)
{
    (void)storage;
    (void)data;
    (void)size;
    (void)ret_error;
    return 0;
}

static int take_flush(struct mu__storage *storage, mu_error *ret_error)
{
    (void)storage;
    (void)ret_error;
    return 0;
}

static int refuse_renewal(struct mu__storage *storage, mu_error *ret_error)
{
    return mu_error_set(ret_error, -MU_EEXHAUSTED, "%s: full", storage->name);
}

/* The storage hears of each death of the chief, before and after. */
TEST(test_journal_outlives_its_chief)
{
    static const struct mu__storage_ops ops = {
        .load = load_nothing,
        .size = size_of_nothing,
        .append = take_bytes,
        .flush = take_flush,
        .replace = take_bytes,
        .renew = refuse_renewal,
    };
    struct notes notes = {.storage = {&ops, "notes"}};
    struct cluster *cluster = cluster_new(1, &(struct cluster_options){.workers = 1});
    char ends[16] = "";

    cluster->chief->journal =
        (struct cluster_journal){&notes.storage, note_dying, note_gone, NULL, NULL};
    cluster_start_all(cluster);
    sim_crash(cluster->chief->node);
    cluster_start_all(cluster);
    cluster_free(cluster);
    for (const char *at = notes.text; *at != '\0'; at++)
        if (*at != 'l')
            ends[strlen(ends)] = *at;
    assert_string_equal(ends, "dgdg");
}

TEST_PROGRAM()
