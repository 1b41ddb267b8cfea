/* What all update rules have in common: which are refused, packing, any length and any
 * address, the same bits on every machine. */
#include "actors/ps/rules/rules.h"

#include "actors/ps/rules/internal.h"
#include "tests/support/test.h"

#include <math.h>

/* ---- The table ---- */

TEST(test_kinds_have_names_and_slots)
{
    for (uint32_t kind = 1; kind < MU__RULE_KINDS; kind++) {
        const struct mu__rule_kind *row = mu__rule_kind(kind);
        unsigned slots;

        assert_non_null(row);
        assert_int_equal(mu__rule_kind_by_name(row->name), kind);
        slots = row->slots + row->row_slots;
        assert_in_range(slots, 0, MU__RULE_SLOTS_MAX);
        for (unsigned k = 0; k < MU__RULE_SLOTS_MAX; k++)
            assert_int_equal(row->slot_names[k] != NULL, k < slots);
    }
    assert_null(mu__rule_kind(0));
    assert_null(mu__rule_kind(MU__RULE_KINDS));
    assert_int_equal(mu__rule_kind_by_name("adam "), 0);
}

TEST(test_defaults_are_allowed)
{
    for (uint32_t kind = 1; kind < MU__RULE_KINDS; kind++) {
        struct mu__rule rule = mu__rule_defaults(kind);

        assert_int_equal(mu__rule_check(&rule, MU_F32, NULL), 0);
        assert_int_equal(mu__rule_check(&rule, MU_F64, NULL), 0);
        assert_int_equal(mu__rule_check(&rule, MU_I32, NULL), -MU_EINVALID);
        assert_int_equal(mu__rule_check(&rule, 99, NULL), -MU_EINVALID);
    }
}

static const struct refusal {
    uint32_t kind;
    unsigned number;
    double value;
    const char *words;
} refusals[] = {
    {MU__RULE_SGD, MU__RATE, NAN, "sgd: rate nan: expected -1e+30 to 1e+30"},
    {MU__RULE_SGD, MU__RATE, INFINITY, "sgd: rate inf: expected -1e+30 to 1e+30"},
    {MU__RULE_ADAM, MU__BETA1, 1, "adam: beta1 1: expected 0 to 1"},
    {MU__RULE_ADAM, MU__BETA2, -0.1, "adam: beta2 -0.1: expected 0 to 1"},
    {MU__RULE_ADAM, MU__EPSILON, 0, "adam: epsilon 0: expected 1e-37 to 1e+30"},
    {MU__RULE_RMSPROP, MU__RHO, 1.5, "rmsprop: rho 1.5: expected 0 to 1"},
    {MU__RULE_MOMENTUM, MU__MOMENTUM, 2, "momentum: momentum 2: expected -1 to 1"},
    {MU__RULE_ADAGRAD, MU__INITIAL, -1, "adagrad: initial -1: expected 0 to 1e+30"},
    {MU__RULE_FTRL, MU__POWER, 0.5, "ftrl: power 0.5: expected -1 to 0"},
    {MU__RULE_FTRL, MU__L1, -1, "ftrl: l1 -1: expected 0 to 1e+30"},
    {MU__RULE_FTRL, MU__RATE, 0, "ftrl: rate 0: expected above 0"},
};

TEST(test_numbers_out_of_range)
{
    for (size_t i = 0; i < sizeof refusals / sizeof refusals[0]; i++) {
        struct mu__rule rule = mu__rule_defaults(refusals[i].kind);
        mu_error error = {.code = 0};

        rule.numbers[refusals[i].number] = refusals[i].value;
        assert_int_equal(mu__rule_check(&rule, MU_F32, &error), -MU_EINVALID);
        assert_string_equal(error.message, refusals[i].words);
    }
}

TEST(test_unknown_kinds_and_flags)
{
    struct mu__rule rule = mu__rule_defaults(MU__RULE_ADAM);
    mu_error error = {.code = 0};

    rule.flags = 4;
    assert_int_equal(mu__rule_check(&rule, MU_F32, &error), -MU_EINVALID);
    assert_string_equal(error.message, "adam: flags 0x4");
    rule = mu__rule_defaults(200);
    assert_int_equal(mu__rule_check(&rule, MU_F32, &error), -MU_EINVALID);
    assert_string_equal(error.message, "no update rule 200");
}

/* ---- Packing ---- */

TEST(test_packed_and_unpacked)
{
    for (uint32_t kind = 1; kind < MU__RULE_KINDS; kind++) {
        struct mu__rule rule = mu__rule_defaults(kind);
        struct mu__rule other;
        uint8_t bytes[MU__RULE_BYTES_MAX];
        size_t size;

        rule.flags = MU__RULE_REPLACES;
        rule.step = UINT64_C(0x123456789ABCDEF0);
        size = mu__rule_pack(&rule, bytes);
        assert_true(size <= sizeof bytes);
        assert_true(mu__rule_unpack(bytes, size, &other));
        assert_memory_equal(&rule, &other, sizeof rule);
        for (size_t cut = 0; cut < size; cut++)
            assert_false(mu__rule_unpack(bytes, cut, &other));
        bytes[0] = MU__RULE_KINDS;
        assert_false(mu__rule_unpack(bytes, size, &other));
    }
}

TEST(test_bytes_behind_a_rule)
{
    uint8_t bytes[MU__RULE_BYTES_MAX + 1] = {0};
    struct mu__rule rule = mu__rule_defaults(MU__RULE_SGD);
    size_t size = mu__rule_pack(&rule, bytes);

    assert_false(mu__rule_unpack(bytes, size + 1, &rule));
}

/* ---- Lengths, addresses, parts ---- */

enum { LENGTH_MAX = 1500, SIZE_MAX_OF_ELEMENT = 8 };

struct elements {
    _Alignas(8) uint8_t x[LENGTH_MAX * SIZE_MAX_OF_ELEMENT];
    _Alignas(8) uint8_t slots[MU__RULE_SLOTS_MAX][LENGTH_MAX * SIZE_MAX_OF_ELEMENT];
    _Alignas(8) uint8_t g[LENGTH_MAX * SIZE_MAX_OF_ELEMENT + 8];
};

static void put_number(int dtype, uint8_t *to, double number)
{
    float single = (float)number;

    if (dtype == MU_F32)
        memcpy(to, &single, sizeof single);
    else
        memcpy(to, &number, sizeof number);
}

/* Multiples of 2^-12 from -2 to 2: they are floats. */
static double number_at(uint64_t seed)
{
    uint64_t mixed = (seed + 1) * UINT64_C(0x9E3779B97F4A7C15);

    return (double)(int64_t)((mixed >> 40 & 0x3FFF) - 0x2000) / 0x1000;
}

static void fill_elements(struct elements *e, const struct mu__rule *rule, int dtype,
                          size_t offset)
{
    size_t bytes = mu_dtype_bytes(dtype);

    for (size_t i = 0; i < LENGTH_MAX; i++) {
        put_number(dtype, e->x + i * bytes, number_at(i));
        put_number(dtype, e->g + offset + i * bytes, number_at(i + LENGTH_MAX));
    }
    for (unsigned k = 0; k < MU__RULE_SLOTS_MAX; k++)
        mu__rule_slot_fill(rule, dtype, k, e->slots[k], LENGTH_MAX);
}

/* Two steps over `count` elements, in parts of at most `part` of them. */
static void run_parts(struct elements *e, const struct mu__rule *rule, int dtype,
                      size_t offset, size_t count, size_t part)
{
    size_t bytes = mu_dtype_bytes(dtype);
    void *const all[] = {e->slots[0], e->slots[1], e->slots[2]};

    for (uint64_t t = 1; t <= 2; t++) {
        const struct mu__rule_at at = mu__rule_prepare(rule, dtype, t);

        for (size_t from = 0; from < count; from += part) {
            size_t n = count - from < part ? count - from : part;
            void *const slots[] = {e->slots[0] + from * bytes, e->slots[1] + from * bytes,
                                   e->slots[2] + from * bytes};

            mu__rule_run(&at, e->x + from * bytes, slots, e->g + offset + from * bytes,
                         n);
        }
        mu__rule_finish(&at, e->x, all, count);
    }
}

static const size_t lengths[] = {0,  1,  3,  4,    7,    8,    15,
                                 16, 17, 64, 1023, 1024, 1025, 1499};

static void check_lengths(struct elements *whole, struct elements *parts, uint32_t kind,
                          int dtype)
{
    struct mu__rule rule = mu__rule_defaults(kind);

    rule.numbers[MU__WEIGHT_DECAY] = 0.125;
    for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
        bool is_row = mu__rule_kind(kind)->row_slots > 0;

        fill_elements(whole, &rule, dtype, 0);
        fill_elements(parts, &rule, dtype, 3);
        run_parts(whole, &rule, dtype, 0, lengths[i], LENGTH_MAX);
        run_parts(parts, &rule, dtype, 3, lengths[i], is_row ? LENGTH_MAX : 13);
        assert_memory_equal(whole->x, parts->x, sizeof whole->x);
        assert_memory_equal(whole->slots, parts->slots, sizeof whole->slots);
    }
}

/* In parts, from an odd address, and nothing behind the last element is touched (which
 * both begin with). */
TEST(test_parts_give_the_same_bits)
{
    struct elements *whole = calloc(1, sizeof *whole);
    struct elements *parts = calloc(1, sizeof *parts);

    assert_non_null(whole);
    assert_non_null(parts);
    for (uint32_t kind = 1; kind < MU__RULE_KINDS; kind++) {
        check_lengths(whole, parts, kind, MU_F32);
        check_lengths(whole, parts, kind, MU_F64);
    }
    free(whole);
    free(parts);
}

static void run_loops(struct elements *e, const struct mu__rule_loops *loops,
                      uint32_t kind, size_t count)
{
    const struct mu__rule rule = mu__rule_defaults(kind);
    const struct mu__rule_at at = mu__rule_prepare(&rule, MU_F32, 3);
    void *const slots[] = {e->slots[0], e->slots[1], e->slots[2]};

    fill_elements(e, &rule, MU_F32, 1);
    for (int t = 0; t < 2; t++) {
        loops->run[kind](e->x, slots, e->g + 1, count, at.factors);
        if (loops->finish[kind] != NULL)
            loops->finish[kind](e->x, slots, count, at.factors);
    }
}

/* The loops of this processor, and those of any. */
TEST(test_wider_loops_give_the_same_bits)
{
    struct elements *wide = calloc(1, sizeof *wide);
    struct elements *plain = calloc(1, sizeof *plain);

    assert_non_null(wide);
    assert_non_null(plain);
    for (uint32_t kind = 1; kind < MU__RULE_KINDS; kind++)
        for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
            run_loops(wide, mu__rule_loops_of(MU_F32), kind, lengths[i]);
            run_loops(plain, &mu__rule_loops_f32, kind, lengths[i]);
            assert_memory_equal(wide, plain, sizeof *wide);
        }
    free(wide);
    free(plain);
}

/* FNV-1a of x and slots after two steps with the defaults. Another machine or compiler
 * that gives other bits is found here. */
static const uint64_t expected_bits[MU__RULE_KINDS][2] = {
    [MU__RULE_SGD] = {0xD2A4181AC72069F1, 0xD9928F09D3710A96},
    [MU__RULE_MOMENTUM] = {0x470B9B5D69702749, 0x1DFB2A0BF9AEE49E},
    [MU__RULE_MOMENTUM_KERAS] = {0x003CFC1749CACA99, 0x05E671CDD4705BFD},
    [MU__RULE_NESTEROV] = {0xC95FBFC4E960B6E8, 0x291EBD91060C20F8},
    [MU__RULE_NESTEROV_KERAS] = {0xD0850373494CF35B, 0x98FDC964CF812820},
    [MU__RULE_ADAGRAD] = {0xD0109EFC9B36D412, 0x7915771EEB2AB505},
    [MU__RULE_ROWWISE_ADAGRAD] = {0x70C9B5D91380898E, 0xE4271600CF967582},
    [MU__RULE_RMSPROP] = {0x94C5B54009ABABC6, 0xE15FA7A75F27B12D},
    [MU__RULE_RMSPROP_MOMENTUM] = {0x32AC6ACFFF66DD10, 0xFF89496A6D53CCFB},
    [MU__RULE_RMSPROP_CENTERED] = {0x3B75D603A4FE070B, 0xB96B8AC9BF653E21},
    [MU__RULE_ADAM] = {0x75958FEEB892DFC2, 0x937E8A7DED86241B},
    [MU__RULE_ADAMW] = {0x8244803DDE8369B4, 0x4116BBA522FD6C4B},
    [MU__RULE_AMSGRAD] = {0x05334251C019F37A, 0x0CF038E1FBD137C1},
    [MU__RULE_FTRL] = {0xFFDFDB1DB36352F1, 0x1E539BB7257201E4},
    [MU__RULE_ADADELTA] = {0x1EA40C8E7DE6938F, 0xF7174A165A96F478},
    [MU__RULE_ADAMAX] = {0xEC39BF5D364CB70E, 0xDB0F3CEAAEB35BC4},
    [MU__RULE_NADAM] = {0x088B0DCE299DC065, 0x4A9A1FCEE3C8A25E},
    [MU__RULE_LION] = {0x4A61D57475DF3353, 0xFC150DE3CE3F022D},
    [MU__RULE_LAMB] = {0x4F284577912CB11C, 0x55564B5048BC6E9E},
};

static uint64_t hash_bytes(uint64_t hash, const uint8_t *bytes, size_t size)
{
    for (size_t i = 0; i < size; i++)
        hash = (hash ^ bytes[i]) * UINT64_C(0x100000001b3);
    return hash;
}

static uint64_t bits_of(struct elements *e, uint32_t kind, int dtype)
{
    struct mu__rule rule = mu__rule_defaults(kind);
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    size_t bytes = LENGTH_MAX * mu_dtype_bytes(dtype);

    if (kind == MU__RULE_FTRL)
        rule.numbers[MU__POWER] = -0.7;
    fill_elements(e, &rule, dtype, 0);
    run_parts(e, &rule, dtype, 0, LENGTH_MAX, LENGTH_MAX);
    hash = hash_bytes(hash, e->x, bytes);
    for (unsigned k = 0; k < MU__RULE_SLOTS_MAX; k++)
        hash = hash_bytes(hash, e->slots[k], bytes);
    return hash;
}

TEST(test_the_same_bits_everywhere)
{
    static const int dtypes[] = {MU_F32, MU_F64};
    struct elements *e = calloc(1, sizeof *e);

    assert_non_null(e);
    for (uint32_t kind = 1; kind < MU__RULE_KINDS; kind++)
        for (size_t i = 0; i < 2; i++) {
            uint64_t bits = bits_of(e, kind, dtypes[i]);

            if (bits != expected_bits[kind][i])
                fail_msg("%s, %s: 0x%016llX", mu__rule_kind(kind)->name,
                         mu_dtype_name(dtypes[i]), (unsigned long long)bits);
        }
    free(e);
}

/* ---- Powers ---- */

TEST(test_powers_are_near_those_of_the_library)
{
    for (double base = 1e-30; base < 1e30; base *= 1.7)
        for (double power = -1; power <= 1; power += 0.0625) {
            double expected = pow(base, power);

            assert_true(fabs(mu__rule_power(base, power) - expected) < 1e-13 * expected);
        }
    assert_true(mu__rule_power(0, 0.3) == 0);
    assert_true(mu__rule_power(0, 0) == 1);
    assert_true(mu__rule_power(1e308, 1) > 9e307);
}

/* ---- NaN and infinity ---- */

TEST(test_elements_that_are_no_finite_numbers)
{
    static const double bad[] = {NAN, INFINITY, -INFINITY};
    static const size_t indices[] = {0, 1, 255, 256, 999};
    uint8_t g[1000 * 8 + 1] = {0};

    for (size_t d = 0; d < 2; d++)
        for (size_t b = 0; b < 3; b++)
            for (size_t i = 0; i < 5; i++) {
                int dtype = d == 0 ? MU_F32 : MU_F64;
                uint8_t *at = g + 1 + indices[i] * mu_dtype_bytes(dtype);

                put_number(dtype, at, bad[b]);
                assert_int_equal(mu__rule_find_nonfinite(dtype, g + 1, 1000), indices[i]);
                assert_int_equal(mu__rule_find_nonfinite(dtype, g + 1, indices[i]),
                                 indices[i]);
                put_number(dtype, at, 1e38);
                assert_int_equal(mu__rule_find_nonfinite(dtype, g + 1, 1000), 1000);
            }
    assert_int_equal(mu__rule_find_nonfinite(MU_I32, g, 10), 10);
}

TEST_PROGRAM()
