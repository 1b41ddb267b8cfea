/* base64: the rows of RFC 4648, what must be refused, and everything there and back. */
#include "muster/error.h"
#include "runtime/base/base64.h"
#include "sim/world/random.h"
#include "tests/support/test.h"

static const struct {
    const char *plain;
    const char *text;
} rows[] = {
    {"", ""},
    {"f", "Zg=="},
    {"fo", "Zm8="},
    {"foo", "Zm9v"},
    {"foob", "Zm9vYg=="},
    {"fooba", "Zm9vYmE="},
    {"foobar", "Zm9vYmFy"},
    {"\xff\xfe\xfd", "//79"},
    {"\xfb\xf0", "+/A="},
};

TEST(test_rows)
{
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        size_t size = strlen(rows[i].plain);
        char text[16] = "";
        uint8_t back[16];
        size_t back_size = 99;

        mu__base64_encode(rows[i].plain, size, text);
        assert_string_equal(text, rows[i].text);
        assert_int_equal(mu__base64_size(size), strlen(rows[i].text));
        assert_int_equal(mu__base64_decode(text, strlen(text), back, &back_size), 0);
        assert_int_equal(back_size, size);
        assert_memory_equal(back, rows[i].plain, size);
    }
}

TEST(test_refused)
{
    static const char *const texts[] = {
        "Z",      "Zg",       "Zg=",  "Zm9",   "=",      "==",         "===",
        "====",   "Z===",     "Zh==", "Zm9=",  "Zm-v",   "Zm_v",       "Zm v",
        "Zm9v\n", "Zg==Zg==", "Z=g=", "Zm9vZ", "Zm9vZg", "\xc3\xa4zz",
    };
    uint8_t out[16];
    size_t size = 99;

    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        if (mu__base64_decode(texts[i], strlen(texts[i]), out, &size) != -MU_EINVALID)
            fail_msg("taken: %s", texts[i]);
        assert_int_equal(size, 99);
    }
    assert_int_equal(mu__base64_decode("Z\0==", 4, out, &size), -MU_EINVALID);
}

/* In memory of the exact sizes, so that a sanitizer sees a byte too many; in place. */
TEST(test_there_and_back)
{
    struct sim_random random = sim_stream(1, 64);

    for (size_t size = 0; size < 200; size++) {
        uint8_t *plain = malloc(size + 1);
        char *text = malloc(mu__base64_size(size) + 1);
        size_t back = 0;

        assert_true(plain != NULL && text != NULL);
        for (size_t i = 0; i < size; i++)
            plain[i] = (uint8_t)sim_draw(&random);
        mu__base64_encode(plain, size, text);
        assert_int_equal(
            mu__base64_decode(text, mu__base64_size(size), (uint8_t *)text, &back), 0);
        assert_int_equal(back, size);
        assert_memory_equal(text, plain, size);
        free(plain);
        free(text);
    }
}

TEST_PROGRAM()
