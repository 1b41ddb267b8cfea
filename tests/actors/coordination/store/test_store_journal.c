/* The store that is a file, over a simulated storage: what every store must do, and a
 * file that is torn, damaged, full, or of somebody else. */
#include "actors/coordination/store/journal.h"
#include "actors/coordination/store/store.h"
#include "sim/world/storage.h"
#include "tests/support/test.h"

#include "tests/support/contract/store.h"

enum { BATCHES = 12, HEADER_BYTES = 12, ALWAYS = 1 << 30 };

/* ---- The place ---- */

static void *place_open(struct sim *sim, uint64_t seed)
{
    (void)sim;
    return sim_storage_new("sim:keys", seed);
}

static void place_close(void *place)
{
    sim_storage_free(place);
}

static void place_begin(void *place, struct sim_node *node, struct mu__kernel *kernel,
                        struct mu__store_config *config)
{
    struct sim_storage *storage = place;

    (void)node;
    (void)kernel;
    config->location = "keys";
    config->storage = &storage->base;
}

static void place_end(void *place, struct sim_node *node)
{
    (void)node;
    sim_storage_crash(place);
}

static void place_set_full(void *place, bool full)
{
    static const enum sim_storage_op ops[] = {SIM_STORAGE_APPEND, SIM_STORAGE_FLUSH,
                                              SIM_STORAGE_REPLACE};

    for (size_t i = 0; i < sizeof ops / sizeof ops[0]; i++)
        sim_storage_fail(place, ops[i], full ? ALWAYS : 0, -MU_EEXHAUSTED);
}

/* Once the disk is full, a retry comes within a second, and so does one more. */
static const struct contract_store fixture = {
    .kind = &mu__store_journal,
    .open = place_open,
    .close = place_close,
    .begin = place_begin,
    .end = place_end,
    .set_full = place_set_full,
    .held_ms = 2100,
    .safe_ms = 0,
    .seeds = 60,
};

static struct sim_storage *storage_of(struct contract_state *s)
{
    return s->place;
}

/* ---- Torn and damaged files ---- */

/* A file, and where its batches end; 0: the first BEGIN and its COMMIT. */
struct image {
    uint8_t *bytes;
    size_t size;
    size_t ends[BATCHES + 1];
    uint64_t number;
};

static struct image make_image(struct contract_state *s)
{
    struct contract_holder *h = contract_begin(s, 0);
    struct image image = {.number = h->number};

    image.ends[0] = storage_of(s)->flushed;
    for (uint64_t batch = 1; batch <= BATCHES; batch++) {
        contract_put(h, batch);
        image.ends[batch] = storage_of(s)->flushed;
    }
    contract_make_batch(BATCHES + 1, contract_visit_write, h);
    image.size = storage_of(s)->size;
    image.bytes = malloc(image.size);
    assert_non_null(image.bytes);
    memcpy(image.bytes, storage_of(s)->content, image.size);
    contract_kill(h);
    return image;
}

/* How many batches end at that byte or before; -1: not even the begin does. */
static int batches_by(const struct image *image, size_t byte)
{
    int batches = -1;

    while (batches < BATCHES && image->ends[batches + 1] <= byte)
        batches++;
    return batches;
}

/* A process that finds the first `whole` bytes in order reads the batches that are in
 * them, writes one more, and the next one finds that, too. */
static void expect_prefix(struct contract_state *s, const struct image *image,
                          size_t whole)
{
    int batches = batches_by(image, whole);
    uint64_t known = batches < 0 ? 0 : (uint64_t)batches;
    struct contract_holder *h = contract_begin(s, 0);

    assert_int_equal(h->number == image->number, batches >= 0);
    contract_expect_content(&h->content, known);
    contract_put(h, known + 1);
    contract_kill(h);
    h = contract_begin(s, 0);
    contract_expect_content(&h->content, known + 1);
    contract_kill(h);
}

LISTED_TEST(test_cut_at_every_byte)
{
    struct contract_state *s = *state;
    struct image image = make_image(s);

    for (size_t size = 0; size <= image.size; size++) {
        sim_storage_set(storage_of(s), image.bytes, size);
        expect_prefix(s, &image, size);
    }
    free(image.bytes);
}

static void expect_refused(struct contract_state *s, const char *words)
{
    struct contract_holder *h = &s->holders[0];
    size_t size = storage_of(s)->size;

    (void)sim_trace(s->sim);
    assert_int_equal(sim_restart(h->node), 0);
    contract_run_ms(s, 5000);
    assert_int_equal(h->times_held, 0);
    assert_false(contract_may_read(h));
    assert_non_null(strstr(sim_trace(s->sim), words));
    assert_int_equal(storage_of(s)->size, size);
    contract_kill(h);
}

/* One bit of any byte: what was committed is neither cut off nor half read. */
LISTED_TEST(test_damage_at_every_byte)
{
    struct contract_state *s = *state;
    struct image image = make_image(s);

    for (size_t at = HEADER_BYTES; at < image.size; at++) {
        image.bytes[at] ^= (uint8_t)(1 << at % 8);
        sim_storage_set(storage_of(s), image.bytes, image.size);
        image.bytes[at] ^= (uint8_t)(1 << at % 8);
        expect_refused(s, " is damaged: ");
    }
    free(image.bytes);
}

LISTED_TEST(test_not_ours)
{
    struct contract_state *s = *state;
    struct image image = make_image(s);

    for (size_t at = 0; at < HEADER_BYTES; at++) {
        image.bytes[at] ^= 0x40;
        sim_storage_set(storage_of(s), image.bytes, image.size);
        expect_refused(s, at < 8 ? "sim:keys: expected a journal of muster"
                                 : "sim:keys: a journal of format");
        image.bytes[at] ^= 0x40;
    }
    free(image.bytes);
}

static int visit_nothing(void *owner, struct mu__msg *msg)
{
    (void)owner;
    (void)msg;
    return 0;
}

/* The journal of a supervisor, say: whole, but with other messages. */
LISTED_TEST(test_another_journal)
{
    struct contract_state *s = *state;
    struct mu__pool pool;
    struct mu__journal *journal;
    struct mu__msg *msg;

    mu__pool_init(&pool);
    assert_int_equal(mu__journal_open(&storage_of(s)->base, &mu__messages, &pool,
                                      visit_nothing, NULL, NULL, NULL, &journal),
                     0);
    msg = mu__pool_get(&pool, MU__JOURNAL_BEGIN, sizeof(struct mu__journal_begin));
    assert_int_equal(mu__journal_append(journal, msg, NULL), 0);
    assert_int_equal(mu__journal_flush(journal, NULL), 0);
    mu__pool_put(&pool, msg);
    mu__journal_close(journal);
    mu__pool_done(&pool);
    expect_refused(s, "sim:keys: the message at byte 12: data loss");
}

/* ---- Failures and deaths ---- */

/* What was written and could not be flushed may count or not, but file and memory agree
 * about it, now and later. The next try comes a second after. */
LISTED_TEST(test_a_flush_that_fails)
{
    struct contract_state *s = *state;
    struct contract_holder *h = contract_begin(s, 0);
    uint64_t since = sim_now_ms(s->sim);
    uint64_t epoch = h->epoch;

    contract_put(h, 1);
    sim_storage_fail(storage_of(s), SIM_STORAGE_FLUSH, 1, -MU_EEXHAUSTED);
    contract_put(h, 2);
    assert_int_equal(h->committed, 1);
    assert_true(h->held); /* it is not told within the call */
    assert_int_equal(
        contract_write(h, MU__STORE_CHANGE,
                       &(struct mu__store_change){.revision = 77, .key = {"k/1", 3}}),
        -MU_EUNAVAILABLE);
    contract_run_ms(s, CONTRACT_TICK_MS);
    assert_false(h->held);
    assert_non_null(strstr(h->reason, "sim:keys: cannot flush it: resource exhausted"));
    contract_hold(h);
    assert_int_equal(sim_now_ms(s->sim), since + CONTRACT_TICK_MS + 1000);
    assert_int_equal(h->epoch, epoch + 1);
    contract_expect_content(&h->content, 2);
    contract_put(h, 3);
    contract_kill(h);
    h = contract_begin(s, 0);
    contract_expect_content(&h->content, 3);
}

/* A batch of which a part could not be written counts never. */
LISTED_TEST(test_a_write_that_fails)
{
    struct contract_state *s = *state;
    struct contract_holder *h = contract_begin(s, 0);

    contract_put(h, 1);
    assert_int_equal(
        contract_write(h, MU__STORE_CHANGE,
                       &(struct mu__store_change){.revision = 77, .key = {"k/1", 3}}),
        0);
    sim_storage_fail(storage_of(s), SIM_STORAGE_APPEND, 1, -MU_EEXHAUSTED);
    assert_int_equal(
        contract_write(h, MU__STORE_CHANGE,
                       &(struct mu__store_change){.revision = 78, .key = {"k/2", 3}}),
        -MU_EEXHAUSTED);
    contract_commit(h, 2);
    assert_int_equal(h->committed, 1);
    contract_run_ms(s, 2000);
    assert_int_equal(h->times_held, 2);
    contract_expect_content(&h->content, 1);
    contract_put(h, 2);
    contract_kill(h);
    h = contract_begin(s, 0);
    contract_expect_content(&h->content, 2);
}

/* It is tried every second, and said once. */
LISTED_TEST(test_a_file_that_cannot_be_read)
{
    struct contract_state *s = *state;
    struct contract_holder *h = &s->holders[0];

    sim_storage_fail(storage_of(s), SIM_STORAGE_LOAD, 3, -MU_EUNAVAILABLE);
    assert_int_equal(sim_start(h->node), 0);
    contract_run_ms(s, 2900);
    assert_int_equal(h->times_held, 0);
    assert_int_equal(storage_of(s)->counts[SIM_STORAGE_LOAD], 3);
    assert_string_equal(sim_trace(s->sim), "[    0] chief/0 holder: sim:keys: cannot "
                                           "read it: unavailable\n");
    contract_run_ms(s, 200);
    assert_int_equal(h->times_held, 1);
}

/* A rewrite that fails changes nothing: the old file goes on. */
LISTED_TEST(test_a_rewrite_that_fails)
{
    struct contract_state *s = *state;
    struct contract_holder *h = contract_begin(s, 0);
    struct mu__ctx ctx = contract_ctx(h);

    for (uint64_t batch = 1; batch <= 5; batch++)
        contract_put(h, batch);
    sim_storage_fail(storage_of(s), SIM_STORAGE_REPLACE, 1, -MU_EEXHAUSTED);
    contract_make_batch(6, contract_visit_write, h);
    h->store->ops->rewrite(h->store, &ctx);
    contract_make_batch(6, contract_visit_write, h);
    contract_commit(h, 6);
    assert_int_equal(h->committed, 6);
    assert_int_equal(h->times_lost, 0);
    contract_put(h, 7);
    contract_kill(h);
    h = contract_begin(s, 0);
    contract_expect_content(&h->content, 7);
}

static void rewrite_all(struct contract_holder *h, uint64_t batches)
{
    struct mu__ctx ctx = contract_ctx(h);

    h->store->ops->rewrite(h->store, &ctx);
    for (uint64_t batch = 1; batch <= batches; batch++)
        contract_make_batch(batch, contract_visit_write, h);
}

/* The process dies in any operation of a life of batches and a rewrite. */
LISTED_TEST(test_death_in_every_operation)
{
    struct contract_state *s = *state;
    uint64_t committed = 0;
    unsigned both[2] = {0, 0};

    for (unsigned lives_for = 0; lives_for < 400; lives_for++) {
        struct contract_holder *h = contract_begin(s, 0);
        uint64_t batch = h->content.batch;

        assert_true(batch == committed || batch == committed + 1);
        both[batch == committed]++;
        contract_expect_content(&h->content, batch);
        sim_storage_die_after(storage_of(s), lives_for % 40);
        h->committed = batch;
        for (unsigned k = 0; k < 4; k++)
            contract_put(h, ++batch);
        rewrite_all(h, batch + 1);
        contract_commit(h, ++batch);
        contract_put(h, ++batch);
        committed = h->committed;
        contract_kill(h);
    }
    assert_true(both[0] > 10 && both[1] > 10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CONTRACT_STORE_TEST(test_cut_at_every_byte),
        CONTRACT_STORE_TEST(test_damage_at_every_byte),
        CONTRACT_STORE_TEST(test_not_ours),
        CONTRACT_STORE_TEST(test_another_journal),
        CONTRACT_STORE_TEST(test_a_flush_that_fails),
        CONTRACT_STORE_TEST(test_a_write_that_fails),
        CONTRACT_STORE_TEST(test_a_file_that_cannot_be_read),
        CONTRACT_STORE_TEST(test_a_rewrite_that_fails),
        CONTRACT_STORE_TEST(test_death_in_every_operation),
    };
    int failed = contract_store_run("journal", &fixture);

    return failed + cmocka_run_group_tests(tests, NULL, NULL);
}
