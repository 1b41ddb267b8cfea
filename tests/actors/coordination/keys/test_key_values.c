/* Keys and values: their normal form, their order, bounds, and a naive model beside. */
#include "actors/coordination/keys/key_map.h"
#include "actors/messages.h"
#include "sim/world/random.h"
#include "tests/support/test.h"

/* ---- Keys ---- */

TEST(test_normalize)
{
    static const struct {
        const char *text;
        const char *normal; /* NULL: refused */
        const char *words;
    } rows[] = {
        {"a", "a", ""},
        {"/a//b/", "a/b", ""},
        {"a/b", "a/b", ""},
        {"///a///b///", "a/b", ""},
        {"a b/ c ", "a b/ c ", ""},
        {"_muster/barrier/x", "_muster/barrier/x", ""},
        {"\xff\x80/\x7f", "\xff\x80/\x7f", ""},
        {"/", NULL, "may not be empty"},
        {"", NULL, "may not be empty"},
        {"a\nb", NULL, "control characters; there is one at byte 1"},
        {"\x1f", NULL, "control characters; there is one at byte 0"},
    };
    char out[1024];

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        mu_error error = {.message = ""};
        uint32_t size = 77;
        int rv = mu__key_normalize(mu__view_str(rows[i].text), false, &error, out, &size);

        assert_int_equal(rv, rows[i].normal == NULL ? -MU_EINVALID : 0);
        assert_non_null(strstr(error.message, rows[i].words));
        if (rv != 0) {
            assert_int_equal(size, 77);
            continue;
        }
        assert_string_equal(out, rows[i].normal);
        assert_int_equal(size, strlen(rows[i].normal));
        assert_true(mu__key_is_normal(mu__view_str(out)));
        assert_int_equal(mu__key_is_normal(mu__view_str(rows[i].text)),
                         strcmp(rows[i].text, rows[i].normal) == 0);
    }
}

/* A bad byte is found wherever it stands. */
TEST(test_normal_at_every_byte)
{
    char text[40];

    for (size_t size = 1; size <= sizeof text; size++)
        for (size_t at = 0; at < size; at++) {
            memset(text, 'k', size);
            for (int byte = 1; byte < 256; byte++) {
                bool edge = byte == '/' && (at == 0 || at == size - 1);

                text[at] = (char)byte;
                assert_int_equal(
                    mu__key_is_normal((struct mu__view){text, (uint32_t)size}),
                    byte >= 32 && !edge);
            }
            text[at] = '/';
            if (at > 0)
                text[at - 1] = '/';
            assert_int_equal(mu__key_is_normal((struct mu__view){text, (uint32_t)size}),
                             false);
        }
}

TEST(test_normalize_empty)
{
    char out[1024];
    uint32_t size = 77;

    assert_int_equal(mu__key_normalize(mu__view_str("//"), true, NULL, out, &size), 0);
    assert_int_equal(size, 0);
    assert_string_equal(out, "");
    assert_true(mu__key_is_normal(mu__view_str("")));
    assert_false(mu__key_is_normal(mu__view_str("/")));
    assert_false(mu__key_is_normal(mu__view_str("a\tb")));
}

/* 1,023 bytes fit, with slashes that go not counted. */
TEST(test_normalize_long)
{
    char text[1100];
    char out[1024];
    uint32_t size = 77;
    mu_error error;

    memset(text, 'k', sizeof text);
    text[0] = text[500] = text[501] = text[1025] = '/';
    assert_int_equal(
        mu__key_normalize((struct mu__view){text, 1026}, false, &error, out, &size), 0);
    assert_int_equal(size, MU__KEY_MAX);
    assert_int_equal(strlen(out), MU__KEY_MAX);
    assert_int_equal(mu__key_normalize((struct mu__view){text, 1027}, false, &error, out,
                                       &size),
                     -MU_EINVALID);
    assert_non_null(strstr(error.message, "1023"));
    memset(text, '/', sizeof text);
    text[1099] = 'k';
    assert_int_equal(
        mu__key_normalize((struct mu__view){text, 1100}, false, &error, out, &size), 0);
    assert_string_equal(out, "k");
    memset(text, 'k', sizeof text);
    assert_false(mu__key_is_normal((struct mu__view){text, 1024}));
    assert_true(mu__key_is_normal((struct mu__view){text, 1023}));
}

TEST(test_below)
{
    static const struct {
        const char *key;
        const char *directory;
        bool is;
    } rows[] = {
        {"a/b", "a", true},  {"a/b/c", "a", true}, {"a", "a", false},
        {"ab", "a", false},  {"a", "", true},      {"", "", true},
        {"b/a", "a", false}, {"a", "a/b", false},  {"a/b", "a/", false},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        assert_int_equal(mu__key_is_below(mu__view_str(rows[i].key),
                                          mu__view_str(rows[i].directory)),
                         rows[i].is);
}

/* ---- One store ---- */

static int put(struct mu__key_values *kv, const char *key, const char *value,
               uint64_t owner, uint64_t revision, mu_error *error)
{
    return mu__key_values_put(kv,
                              &(struct mu__key_value){.revision = revision,
                                                      .owner = owner,
                                                      .key = mu__view_str(key),
                                                      .value = mu__view_str(value)},
                              error);
}

static void expect(struct mu__key_values *kv, const char *key, const char *value)
{
    struct mu__key_value entry;

    assert_int_equal(mu__key_values_find(kv, mu__view_str(key), &entry), value != NULL);
    if (value == NULL)
        return;
    assert_true(mu__view_is(entry.key, key));
    assert_true(mu__view_is(entry.value, value));
}

/* All keys, with a space behind each. */
static void expect_order(struct mu__key_values *kv, const char *text)
{
    char found[256] = "";
    size_t used = 0;
    struct mu__key_value entry;
    bool more = mu__key_values_next(kv, mu__view_str(""), false, &entry);

    while (more) {
        used += (size_t)snprintf(found + used, sizeof found - used, "%.*s ",
                                 (int)entry.key.size, (const char *)entry.key.data);
        more = mu__key_values_next(kv, entry.key, true, &entry);
    }
    assert_string_equal(found, text);
}

/* What is below a key follows it at once, whatever bytes there are before '/'. */
TEST(test_order)
{
    static const char *const keys[] = {"b",  "a",  "a.b", "a/b", "a b",  "a/b/c", "ab",
                                       "a/", "a!", "",    "a0",  "\xff", "a/a"};
    struct mu__key_values *kv = mu__key_values_new(7, 0, 0);
    struct mu__key_value entry;

    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++)
        assert_int_equal(put(kv, keys[i], "x", 0, i + 1, NULL), 0);
    expect_order(kv, " a a/ a/a a/b a/b/c a b a! a.b a0 ab b \xff ");
    assert_true(mu__key_values_next(kv, mu__view_str("a/aa"), false, &entry));
    assert_true(mu__view_is(entry.key, "a/b"));
    assert_true(mu__key_values_next(kv, mu__view_str("a/b"), false, &entry));
    assert_true(mu__view_is(entry.key, "a/b"));
    assert_false(mu__key_values_next(kv, mu__view_str("\xff"), true, &entry));
    mu__key_values_free(kv);
}

TEST(test_empty)
{
    struct mu__key_values *kv = mu__key_values_new(1, 0, 0);
    struct mu__key_value entry = {.revision = 77};

    assert_false(mu__key_values_find(kv, mu__view_str("a"), &entry));
    assert_false(mu__key_values_next(kv, mu__view_str(""), false, &entry));
    assert_false(mu__key_values_remove(kv, mu__view_str("a")));
    assert_false(mu__key_values_owned(kv, 5, &entry));
    assert_int_equal(entry.revision, 77);
    mu__key_values_free(kv);
    mu__key_values_free(NULL);
}

/* Who holds the buffer of a value still has it when the key has another one. */
TEST(test_backing)
{
    struct mu__key_values *kv = mu__key_values_new(1, 0, 0);
    struct mu__key_value entry;
    struct mu__buf *held;

    assert_int_equal(put(kv, "a", "one", 0, 1, NULL), 0);
    assert_true(mu__key_values_find(kv, mu__view_str("a"), &entry));
    assert_ptr_equal(entry.backing->data, entry.value.data);
    held = mu__buf_ref(entry.backing);
    assert_int_equal(put(kv, "a", "two", 0, 2, NULL), 0);
    expect(kv, "a", "two");
    assert_memory_equal(held->data, "one", 3);
    assert_int_equal(put(kv, "a", "", 0, 3, NULL), 0);
    assert_true(mu__key_values_find(kv, mu__view_str("a"), &entry));
    assert_null(entry.backing);
    assert_int_equal(entry.value.size, 0);
    mu__key_values_free(kv);
    assert_memory_equal(held->data, "one", 3);
    mu__buf_unref(held);
}

TEST(test_bounds)
{
    struct mu__key_values *kv = mu__key_values_new(1, 3, 20);
    mu_error error;

    assert_int_equal(put(kv, "a", "123456789", 0, 1, NULL), 0);
    assert_int_equal(put(kv, "b", "", 0, 2, NULL), 0);
    assert_int_equal(put(kv, "c", "", 0, 3, NULL), 0);
    assert_int_equal(put(kv, "d", "", 0, 4, &error), -MU_EEXHAUSTED);
    assert_string_equal(error.message, "there are 3 keys, as many as there may be");
    assert_int_equal(put(kv, "b", "12345678", 0, 5, NULL), 0);
    assert_int_equal(put(kv, "c", "1", 0, 6, &error), -MU_EEXHAUSTED);
    assert_string_equal(error.message, "keys and values have 20 bytes, and may have 20: "
                                       "there is no room for 1 more");
    expect(kv, "c", "");
    expect(kv, "d", NULL);
    assert_int_equal(put(kv, "a", "1234", 0, 7, NULL), 0);
    assert_int_equal(put(kv, "c", "12345", 0, 8, NULL), 0);
    assert_int_equal(mu__key_values_bytes(kv), 20);
    assert_int_equal(mu__key_values_count(kv), 3);
    mu__key_values_free(kv);
}

TEST(test_owned)
{
    struct mu__key_values *kv = mu__key_values_new(1, 0, 0);
    struct mu__key_value entry;

    assert_int_equal(put(kv, "a", "x", 5, 1, NULL), 0);
    assert_int_equal(put(kv, "b", "x", 5, 2, NULL), 0);
    assert_int_equal(put(kv, "c", "x", 6, 3, NULL), 0);
    assert_int_equal(put(kv, "d", "x", 5, 4, NULL), 0);
    assert_int_equal(put(kv, "b", "x", 6, 5, NULL), 0);
    assert_int_equal(put(kv, "d", "x", 0, 6, NULL), 0);
    assert_true(mu__key_values_owned(kv, 5, &entry));
    assert_true(mu__view_is(entry.key, "a"));
    assert_int_equal(entry.owner, 5);
    assert_true(mu__key_values_remove(kv, entry.key));
    assert_false(mu__key_values_owned(kv, 5, &entry));
    assert_true(mu__key_values_owned(kv, 6, &entry));
    assert_true(mu__view_is(entry.key, "b"));
    assert_true(mu__key_values_remove(kv, mu__view_str("b")));
    assert_true(mu__key_values_owned(kv, 6, &entry));
    assert_true(mu__view_is(entry.key, "c"));
    mu__key_values_free(kv);
}

/* ---- Against a naive model ---- */

enum { MODEL_MAX = 300, STEPS = 3000, OWNERS = 4 };

struct model_entry {
    char key[8];
    char value[64];
    uint32_t value_size;
    uint64_t owner;
    uint64_t revision;
};

struct model {
    struct model_entry entries[MODEL_MAX]; /* in order */
    size_t count;
    uint64_t bytes;
    struct mu__key_values *kv;
    struct sim_random random;
};

static int compare(const char *a, const char *b)
{
    while (*a != '\0' && *a == *b) {
        a++;
        b++;
    }
    if (*a == *b)
        return 0;
    if (*a == '\0' || (*a == '/' && *b != '\0'))
        return -1;
    if (*b == '\0' || *b == '/')
        return 1;
    return (uint8_t)*a < (uint8_t)*b ? -1 : 1;
}

/* The place of the first entry that is `key` or behind it. */
static size_t place_of(const struct model *m, const char *key)
{
    size_t i = 0;

    while (i < m->count && compare(m->entries[i].key, key) < 0)
        i++;
    return i;
}

static void draw_key(struct model *m, char key[8])
{
    static const char letters[] = "ab/. ~\xc3";
    size_t size = (size_t)sim_between(&m->random, 0, 6);

    for (size_t i = 0; i < size; i++)
        key[i] = letters[sim_between(&m->random, 0, sizeof letters - 2)];
    key[size] = '\0';
}

static void model_put(struct model *m, uint64_t revision)
{
    struct model_entry entry = {.revision = revision};
    size_t at;

    draw_key(m, entry.key);
    entry.owner = sim_between(&m->random, 0, OWNERS);
    entry.value_size = (uint32_t)sim_between(&m->random, 0, sizeof entry.value);
    memset(entry.value, (int)(revision & 0xff), entry.value_size);
    at = place_of(m, entry.key);
    if (at == m->count || compare(m->entries[at].key, entry.key) != 0) {
        if (m->count == MODEL_MAX)
            return;
        memmove(m->entries + at + 1, m->entries + at,
                (m->count - at) * sizeof m->entries[0]);
        m->count++;
        m->bytes += strlen(entry.key);
    } else {
        m->bytes -= m->entries[at].value_size;
    }
    m->entries[at] = entry;
    m->bytes += entry.value_size;
    assert_int_equal(
        mu__key_values_put(m->kv,
                           &(struct mu__key_value){revision,
                                                   entry.owner,
                                                   mu__view_str(entry.key),
                                                   {entry.value, entry.value_size},
                                                   NULL},
                           NULL),
        0);
}

static void model_remove(struct model *m)
{
    char key[8];
    size_t at;
    bool there;

    draw_key(m, key);
    if (m->count > 0 && sim_chance(&m->random, 70))
        memcpy(key, m->entries[sim_between(&m->random, 0, m->count - 1)].key, 8);
    at = place_of(m, key);
    there = at < m->count && compare(m->entries[at].key, key) == 0;
    assert_int_equal(mu__key_values_remove(m->kv, mu__view_str(key)), there);
    if (!there)
        return;
    m->bytes -= strlen(key) + m->entries[at].value_size;
    m->count--;
    memmove(m->entries + at, m->entries + at + 1, (m->count - at) * sizeof m->entries[0]);
}

static void expect_same(const struct model_entry *wanted, const struct mu__key_value *got)
{
    assert_true(mu__view_is(got->key, wanted->key));
    assert_int_equal(got->revision, wanted->revision);
    assert_int_equal(got->owner, wanted->owner);
    assert_int_equal(got->value.size, wanted->value_size);
    if (wanted->value_size > 0)
        assert_memory_equal(got->value.data, wanted->value, wanted->value_size);
}

static void model_ask(struct model *m)
{
    struct mu__key_value entry;
    char key[8];
    size_t at;
    bool there;
    bool behind = sim_chance(&m->random, 50);

    draw_key(m, key);
    at = place_of(m, key);
    there = at < m->count && compare(m->entries[at].key, key) == 0;
    assert_int_equal(mu__key_values_find(m->kv, mu__view_str(key), &entry), there);
    if (there)
        expect_same(&m->entries[at], &entry);
    at += there && behind;
    assert_int_equal(mu__key_values_next(m->kv, mu__view_str(key), behind, &entry),
                     at < m->count);
    if (at < m->count)
        expect_same(&m->entries[at], &entry);
}

static void expect_all(struct model *m)
{
    struct mu__key_value entry;
    bool more = mu__key_values_next(m->kv, mu__view_str(""), false, &entry);

    for (size_t i = 0; i < m->count; i++) {
        assert_true(more);
        expect_same(&m->entries[i], &entry);
        more = mu__key_values_next(m->kv, entry.key, true, &entry);
    }
    assert_false(more);
    assert_int_equal(mu__key_values_count(m->kv), m->count);
    assert_int_equal(mu__key_values_bytes(m->kv), m->bytes);
    for (size_t i = 1; i < m->count; i++) {
        struct mu__view one = mu__view_str(m->entries[i - 1].key);
        struct mu__view two = mu__view_str(m->entries[i].key);

        assert_true(mu__key_compare(one, two) < 0 && mu__key_compare(two, one) > 0);
        assert_int_equal(mu__key_compare(one, one), 0);
    }
}

/* Take out all of one owner, as the end of a lease does. */
static void model_end(struct model *m)
{
    uint64_t owner = sim_between(&m->random, 1, OWNERS);
    struct mu__key_value entry;
    size_t left = 0;
    size_t taken = 0;

    for (size_t i = 0; i < m->count; i++) {
        if (m->entries[i].owner == owner)
            m->bytes -= strlen(m->entries[i].key) + m->entries[i].value_size;
        else
            m->entries[left++] = m->entries[i];
    }
    while (mu__key_values_owned(m->kv, owner, &entry)) {
        assert_int_equal(entry.owner, owner);
        assert_true(mu__key_values_remove(m->kv, entry.key));
        taken++;
    }
    assert_int_equal(taken, m->count - left);
    m->count = left;
}

TEST(test_against_model)
{
    for (uint64_t seed = 1; seed <= 20; seed++) {
        struct model *m = calloc(1, sizeof *m);
        unsigned puts = (unsigned)(20 + seed * 3);

        assert_non_null(m);
        m->random = sim_stream(seed, 1);
        m->kv = mu__key_values_new(seed, MODEL_MAX, 0);
        for (uint64_t step = 1; step <= STEPS; step++) {
            if (sim_chance(&m->random, puts))
                model_put(m, step);
            else
                model_remove(m);
            model_ask(m);
            if (sim_chance(&m->random, 1))
                model_end(m);
            if (step % 50 == 0)
                expect_all(m);
        }
        if (seed % 2 == 0) {
            mu__key_values_clear(m->kv);
            m->count = m->bytes = 0;
        }
        while (m->count > 0)
            model_remove(m);
        expect_all(m);
        model_put(m, STEPS + 1);
        expect_all(m);
        mu__key_values_free(m->kv);
        free(m);
    }
}

TEST_PROGRAM()
