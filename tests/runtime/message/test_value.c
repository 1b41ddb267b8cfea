/* Values: building, reading, comparing, freeing, packing; and bytes that are no value. */
#include "tests/runtime/message/value_fixture.h"

/* ---- Building and reading ---- */

TEST(test_scalars)
{
    mu_value *truth = mu_value_bool(7);
    mu_value *number = mu_value_int(INT64_MIN);
    mu_value *real = mu_value_float(-0.5);
    mu_value *nil = mu_value_nil();
    int64_t integer = 1;
    double wide = 1;
    int flag = 0;

    assert_int_equal(mu_value_type(nil), MU_VALUE_NIL);
    assert_int_equal(mu_value_type(NULL), MU_VALUE_NIL);
    assert_int_equal(mu_value_get_bool(truth, &flag), 0);
    assert_int_equal(flag, 1);
    assert_int_equal(mu_value_get_int(number, &integer), 0);
    assert_true(integer == INT64_MIN);
    assert_int_equal(mu_value_get_float(real, &wide), 0);
    assert_true(wide < -0.4 && wide > -0.6);
    assert_int_equal(mu_value_get_float(number, &wide), 0);
    assert_true(wide < -9e18);

    /* What is of another type leaves the result alone. */
    integer = 5;
    assert_int_equal(mu_value_get_int(real, &integer), -MU_EINVALID);
    assert_int_equal(mu_value_get_int(truth, &integer), -MU_EINVALID);
    assert_int_equal(mu_value_get_int(NULL, &integer), -MU_EINVALID);
    assert_true(integer == 5);
    assert_int_equal(mu_value_get_bool(nil, &flag), -MU_EINVALID);
    assert_int_equal(mu_value_get_float(truth, &wide), -MU_EINVALID);
    mu_value_free(truth);
    mu_value_free(number);
    mu_value_free(real);
    mu_value_free(nil);
}

TEST(test_strings_and_bytes)
{
    mu_value *text = mu_value_string("gr\xc3\xbc\xc3\x9f");
    mu_value *bytes = mu_value_bytes("a\0b", 3);
    mu_value *empty = mu_value_bytes(NULL, 0);
    const void *data = NULL;
    const char *read = NULL;
    size_t size = 99;

    assert_int_equal(mu_value_get_string(text, &read, &size), 0);
    assert_string_equal(read, "gr\xc3\xbc\xc3\x9f");
    assert_int_equal(size, 6);
    assert_int_equal(mu_value_get_bytes(bytes, &data, &size), 0);
    assert_int_equal(size, 3);
    assert_memory_equal(data, "a\0b", 4);
    assert_int_equal(mu_value_get_bytes(empty, &data, &size), 0);
    assert_int_equal(size, 0);
    assert_int_equal(mu_value_get_string(bytes, &read, &size), -MU_EINVALID);
    assert_int_equal(mu_value_get_bytes(text, &data, &size), -MU_EINVALID);
    assert_int_equal(mu_value_get_bytes(NULL, &data, &size), -MU_EINVALID);
    assert_null(mu_value_string(NULL));
    assert_null(mu_value_bytes(NULL, 1));
    assert_null(mu_value_bytes("", SIZE_MAX));
    mu_value_free(text);
    mu_value_free(bytes);
    mu_value_free(empty);
}

static const char *const not_utf8[] = {
    /* clang-format off */
    "\x80", "a\xbf", "\xc0\x80", "\xc1\xbf", "\xc3", "\xc3(", "\xe0\x80\x80",
    "\xe0\x9f\xbf", "\xe2\x82", "\xe2\x28\xac", "\xed\xa0\x80", "\xed\xbf\xbf",
    "\xf0\x80\x80\x80", "\xf0\x8f\xbf\xbf", "\xf0\x9f\x98", "\xf4\x90\x80\x80",
    "\xf5\x80\x80\x80", "\xff", "\xfe", "\xf0\x9f\x98\x41",
    /* clang-format on */
};

static const char *const is_utf8[] = {
    "",
    "a",
    "\x7f",
    "\xc2\x80",
    "\xdf\xbf",
    "\xe0\xa0\x80",
    "\xed\x9f\xbf",
    "\xee\x80\x80",
    "\xef\xbf\xbf",
    "\xf0\x90\x80\x80",
    "\xf4\x8f\xbf\xbf",
    "\xe2\x82\xac",
};

TEST(test_utf8)
{
    mu_value *map = mu_value_map();

    for (size_t i = 0; i < sizeof not_utf8 / sizeof not_utf8[0]; i++) {
        if (mu_value_string(not_utf8[i]) != NULL)
            fail_msg("row %zu is not UTF-8", i);
        assert_int_equal(mu_value_set(map, not_utf8[i], mu_value_nil()), -MU_EINVALID);
    }
    for (size_t i = 0; i < sizeof is_utf8 / sizeof is_utf8[0]; i++) {
        mu_value *value = mu_value_string(is_utf8[i]);

        assert_non_null(value);
        mu_value_free(value);
        assert_int_equal(mu_value_set(map, is_utf8[i], mu_value_nil()), 0);
    }
    assert_int_equal(mu_value_count(map), sizeof is_utf8 / sizeof is_utf8[0]);
    mu_value_free(map);
}

TEST(test_dtypes)
{
    assert_int_equal(mu_dtype_bytes(MU_F32), 4);
    assert_int_equal(mu_dtype_bytes(MU_I64), 8);
    assert_int_equal(mu_dtype_bytes(MU_BOOL), 1);
    assert_string_equal(mu_dtype_name(MU_F32), "float32");
    assert_string_equal(mu_dtype_name(MU_BOOL), "bool");
    for (int dtype = -3; dtype < 300; dtype++) {
        assert_int_equal(mu_dtype_name(dtype) == NULL, dtype < 1 || dtype > 13);
        assert_int_equal(mu_dtype_bytes(dtype) == 0, dtype < 1 || dtype > 13);
    }
    for (int dtype = 1; dtype <= 13; dtype++)
        assert_int_equal(mu_dtype_find(mu_dtype_name(dtype)), dtype);
    assert_int_equal(mu_dtype_find("float33"), MU_DTYPE_NONE);
    assert_int_equal(mu_dtype_find(NULL), MU_DTYPE_NONE);
}

TEST(test_tensor)
{
    static const float data[6] = {1, 2, 3, 4, 5, 6};
    static const uint64_t dims[] = {2, 3};
    mu_value *value = mu_value_tensor(MU_F32, 2, dims, data);
    mu_value *zeros = mu_value_tensor(MU_I16, 2, dims, NULL);
    mu_value *scalar = mu_value_tensor(MU_F64, 0, NULL, NULL);
    mu_tensor tensor;

    assert_int_equal(mu_value_get_tensor(value, &tensor), 0);
    assert_int_equal(tensor.dtype, MU_F32);
    assert_int_equal(tensor.rank, 2);
    assert_memory_equal(tensor.dims, dims, sizeof dims);
    assert_int_equal(tensor.bytes, sizeof data);
    assert_memory_equal(tensor.data, data, sizeof data);
    assert_int_equal((uintptr_t)tensor.data % 16, 0);
    assert_ptr_equal(mu_value_tensor_data(value), tensor.data);

    assert_int_equal(mu_value_get_tensor(zeros, &tensor), 0);
    assert_int_equal(tensor.bytes, 12);
    for (size_t i = 0; i < tensor.bytes; i++)
        assert_int_equal(((const char *)tensor.data)[i], 0);
    assert_int_equal(mu_value_get_tensor(scalar, &tensor), 0);
    assert_int_equal(tensor.rank, 0);
    assert_int_equal(tensor.bytes, 8);

    mu_value_free(value);
    value = mu_value_int(1);
    assert_int_equal(mu_value_get_tensor(value, &tensor), -MU_EINVALID);
    assert_int_equal(mu_value_get_tensor(NULL, &tensor), -MU_EINVALID);
    assert_null(mu_value_tensor_data(value));
    assert_null(mu_value_tensor_data(NULL));
    mu_value_free(value);
    mu_value_free(zeros);
    mu_value_free(scalar);
}

struct shape_row {
    int dtype;
    unsigned rank;
    uint64_t dims[9];
    size_t bytes; /* 0: refused, unless a dim is 0 */
};

static const struct shape_row shapes[] = {
    {0, 1, {1}, 0},
    {14, 1, {1}, 0},
    {-1, 1, {1}, 0},
    {MU_U8, 9, {1, 1, 1, 1, 1, 1, 1, 1, 1}, 0},
    {MU_U8, 8, {1, 1, 1, 1, 1, 1, 1, 2}, 2},
    {MU_F64, 1, {UINT64_MAX}, 0},
    {MU_F64, 1, {UINT64_C(1) << 61}, 0},
    {MU_U8, 1, {PTRDIFF_MAX}, 0},
    {MU_U8, 2, {UINT64_C(1) << 32, UINT64_C(1) << 32}, 0},
    {MU_U8, 3, {0, UINT64_MAX, 2}, 0},
    {MU_U8, 3, {UINT64_C(1) << 62, 4, 0}, 0},
};

TEST(test_shapes)
{
    static const uint64_t empty[] = {3, 0, 5};
    mu_value *value = mu_value_tensor(MU_F32, 3, empty, NULL);
    mu_tensor tensor;

    assert_non_null(value);
    assert_int_equal(mu_value_get_tensor(value, &tensor), 0);
    assert_int_equal(tensor.bytes, 0);
    mu_value_free(value);
    assert_null(mu_value_tensor(MU_F32, 1, NULL, NULL));

    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
        value = mu_value_tensor(shapes[i].dtype, shapes[i].rank, shapes[i].dims, NULL);
        assert_int_equal(value == NULL, shapes[i].bytes == 0);
        mu_value_free(value);
    }
}

TEST(test_list)
{
    mu_value *list = mu_value_list();
    int64_t number;

    assert_int_equal(mu_value_count(list), 0);
    assert_null(mu_value_at(list, 0));
    for (int i = 0; i < 1000; i++)
        assert_int_equal(mu_value_append(list, mu_value_int(i)), 0);
    assert_int_equal(mu_value_count(list), 1000);
    for (int i = 0; i < 1000; i++) {
        assert_int_equal(mu_value_get_int(mu_value_at(list, (size_t)i), &number), 0);
        assert_int_equal(number, i);
    }
    assert_null(mu_value_at(list, 1000));
    assert_null(mu_value_key(list, 0));
    assert_null(mu_value_find(list, "a"));
    mu_value_free(list);
}

/* Who appends gives the item away, whatever comes back; the leak checker watches. */
TEST(test_items_that_may_not_be)
{
    mu_value *list = mu_value_list();
    mu_value *map = mu_value_map();
    mu_value *number = mu_value_int(1);

    assert_int_equal(mu_value_append(list, NULL), -MU_ENOMEM);
    assert_int_equal(mu_value_append(list, mu_value_ref(list)), -MU_EINVALID);
    assert_int_equal(mu_value_append(number, mu_value_nil()), -MU_EINVALID);
    assert_int_equal(mu_value_append(map, mu_value_nil()), -MU_EINVALID);
    assert_int_equal(mu_value_append(NULL, mu_value_nil()), -MU_EINVALID);
    assert_int_equal(mu_value_set(map, "a", NULL), -MU_ENOMEM);
    assert_int_equal(mu_value_set(map, "a", mu_value_ref(map)), -MU_EINVALID);
    assert_int_equal(mu_value_set(map, NULL, mu_value_nil()), -MU_EINVALID);
    assert_int_equal(mu_value_set(list, "a", mu_value_nil()), -MU_EINVALID);
    assert_int_equal(mu_value_set(NULL, "a", mu_value_nil()), -MU_EINVALID);
    assert_int_equal(mu_value_count(list), 0);
    assert_int_equal(mu_value_count(map), 0);
    assert_int_equal(mu_value_count(number), 0);
    assert_int_equal(mu_value_count(NULL), 0);
    assert_null(mu_value_at(NULL, 0));
    assert_null(mu_value_key(NULL, 0));
    assert_null(mu_value_find(NULL, "a"));
    assert_null(mu_value_find(map, NULL));
    mu_value_free(list);
    mu_value_free(map);
    mu_value_free(number);
    mu_value_free(NULL);
    assert_null(mu_value_ref(NULL));
}

/* Keys of many lengths, each a beginning of others, in an order that is not theirs. */
static void make_key(unsigned i, char *out, size_t size)
{
    unsigned mixed = i * 2654435761u;

    snprintf(out, size, "%.*s%u", (int)(mixed % 40),
             "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", mixed % 100003u);
}

static void check_map(const mu_value *map, unsigned count)
{
    int64_t number;
    char key[64];

    assert_int_equal(mu_value_count(map), count);
    for (unsigned i = 0; i < count; i++) {
        make_key(i, key, sizeof key);
        assert_string_equal(mu_value_key(map, i), key);
        assert_ptr_equal(mu_value_find(map, key), mu_value_at(map, i));
        assert_int_equal(mu_value_get_int(mu_value_find(map, key), &number), 0);
        assert_int_equal(number, i);
        key[strlen(key) - 1] = 'x';
        assert_null(mu_value_find(map, key));
    }
    assert_null(mu_value_key(map, count));
    assert_null(mu_value_find(map, "z"));
}

/* The order is kept and every key is found at every size, around the change from looking
 * at each to the tree most of all. */
TEST(test_map_at_every_size)
{
    mu_value *map = mu_value_map();
    char key[64];

    for (unsigned i = 0; i < 40; i++) {
        check_map(map, i);
        make_key(i, key, sizeof key);
        assert_int_equal(mu_value_set(map, key, mu_value_int(i)), 0);
    }
    for (unsigned i = 40; i < 5000; i++) {
        make_key(i, key, sizeof key);
        assert_int_equal(mu_value_set(map, key, mu_value_int(i)), 0);
    }
    check_map(map, 5000);
    mu_value_free(map);
}

TEST(test_map_replaces)
{
    mu_value *map = mu_value_map();
    char key[2] = "a";
    int64_t number;

    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < 26; i++) {
            key[0] = (char)('a' + i);
            assert_int_equal(mu_value_set(map, key, mu_value_int(100 * round + i)), 0);
        }
        assert_int_equal(mu_value_count(map), 26);
    }
    assert_int_equal(mu_value_get_int(mu_value_find(map, "c"), &number), 0);
    assert_int_equal(number, 102);
    assert_string_equal(mu_value_key(map, 2), "c");
    assert_int_equal(mu_value_set(map, "", mu_value_nil()), 0);
    assert_non_null(mu_value_find(map, ""));
    mu_value_free(map);
}

/* An item that two hold lives until both have let go. */
TEST(test_sharing)
{
    mu_value *shared = mu_value_string("shared");
    mu_value *list = mu_value_list();
    const char *text;
    size_t size;

    assert_ptr_equal(mu_value_ref(shared), shared);
    assert_int_equal(mu_value_append(list, shared), 0);
    assert_int_equal(mu_value_append(list, mu_value_ref(shared)), 0);
    mu_value_free(list);
    assert_int_equal(mu_value_get_string(shared, &text, &size), 0);
    assert_string_equal(text, "shared");
    mu_value_free(shared);
}

/* A million lists inside each other are freed without a stack of that depth, and are
 * neither packed nor compared. */
TEST(test_deep)
{
    mu_value *deep[2];
    uint32_t head = 77;
    uint32_t tail = 77;

    for (int i = 0; i < 2; i++) {
        deep[i] = mu_value_list();
        for (int level = 0; level < 1000000; level++) {
            mu_value *outer = level % 2 == 0 ? mu_value_list() : mu_value_map();

            assert_int_equal(level % 2 == 0 ? mu_value_append(outer, deep[i])
                                            : mu_value_set(outer, "k", deep[i]),
                             0);
            deep[i] = outer;
        }
    }
    assert_int_equal(mu__value_measure(deep[0], &head, &tail), -MU_ERANGE);
    assert_int_equal(head, 77);
    assert_int_equal(mu_value_equal(deep[0], deep[1]), 0);
    assert_int_equal(mu_value_equal(deep[0], deep[0]), 1);
    mu_value_free(deep[0]);
    mu_value_free(deep[1]);
}

TEST_PROGRAM()
