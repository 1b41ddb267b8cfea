#include "runtime/base/json.h"

#include "runtime/base/text.h"

#include <muster/cluster.h>

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    EXCERPT_BYTES = 20 /* shown before and after the place of a syntax error */
};

/* The check walks over the text once. At the first mistake `at` stays where it is and
 * `wanted` says what would have been right there. Of what is picked, each part is added
 * to `picked` once it is checked; that has room for the whole text. */
struct scan {
    const char *text;
    const char *at;
    const char *end;
    const char *wanted;
    unsigned depth;
    bool escaped;           /* there was a backslash in a text */
    char *picked;
    size_t picked_size;
};

static bool scan_value(struct scan *s);
static bool pick_value(struct scan *s, const struct mu__json_want *wants);

static bool wanted(struct scan *s, const char *what)
{
    s->wanted = what;
    return false;
}

/* The next byte; -1 at the end. */
static int peek(const struct scan *s)
{
    return s->at < s->end ? (unsigned char)*s->at : -1;
}

static bool take(struct scan *s, char c)
{
    if (peek(s) != (unsigned char)c)
        return false;
    s->at++;
    return true;
}

static void skip_space(struct scan *s)
{
    while (s->at < s->end &&
           (*s->at == ' ' || *s->at == '\n' || *s->at == '\r' || *s->at == '\t'))
        s->at++;
}

static bool is_digit(int c)
{
    return c >= '0' && c <= '9';
}

static bool scan_digits(struct scan *s)
{
    if (!is_digit(peek(s)))
        return wanted(s, "a digit");
    while (is_digit(peek(s)))
        s->at++;
    return true;
}

static bool scan_number(struct scan *s)
{
    const char *start = s->at;

    (void)take(s, '-');
    if (take(s, '0')) {
        if (is_digit(peek(s)))
            return wanted(s, "no digit after a leading zero");
    } else if (!scan_digits(s)) {
        return false;
    }
    if (take(s, '.') && !scan_digits(s))
        return false;
    if (take(s, 'e') || take(s, 'E')) {
        if (!take(s, '+'))
            (void)take(s, '-');
        if (!scan_digits(s))
            return false;
    }
    if (s->at - start > MU__JSON_NUMBER_BYTES_MAX) {
        s->at = start;
        return wanted(s, "a number with fewer digits");
    }
    return true;
}

static int hex_digit(int c)
{
    if (is_digit(c))
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    if (c >= 'A' && c <= 'F')
        return c - 'A' + 10;
    return -1;
}

/* The four digits after "\u". */
static bool scan_hex(struct scan *s, unsigned *ret_unit)
{
    unsigned unit = 0;

    for (int i = 0; i < 4; i++) {
        int digit = hex_digit(peek(s));

        if (digit < 0)
            return wanted(s, "four hexadecimal digits after \\u");
        unit = unit << 4 | (unsigned)digit;
        s->at++;
    }
    *ret_unit = unit;
    return true;
}

/* What follows "\u": one unit, or a pair of surrogates. */
static bool scan_unicode(struct scan *s)
{
    const char *start = s->at;
    unsigned unit;
    unsigned low = 0;

    if (!scan_hex(s, &unit))
        return false;
    if (unit == 0) {
        s->at = start;
        return wanted(s, "no zero byte in a text");
    }
    if (unit < 0xD800 || unit > 0xDFFF)
        return true;

    if (unit <= 0xDBFF && take(s, '\\') && take(s, 'u') && !scan_hex(s, &low))
        return false;
    if (low >= 0xDC00 && low <= 0xDFFF)
        return true;
    s->at = start;
    return wanted(s, "a pair of surrogates");
}

static bool scan_escape(struct scan *s)
{
    int c = peek(s);

    s->escaped = true;
    if (c <= 0 || strchr("\"\\/bfnrtu", c) == NULL)
        return wanted(s, "one of \"\\/bfnrtu after a backslash");
    s->at++;
    return c == 'u' ? scan_unicode(s) : true;
}

static bool scan_character(struct scan *s)
{
    size_t length = mu__utf8_length(s->at, s->end);

    if (length == 0)
        return wanted(s, "UTF-8");
    if (peek(s) < ' ')
        return wanted(s, "no control character in a text (escape it)");
    s->at += length;
    return true;
}

/* Eight bytes as a number, the first one lowest; compilers make one load of it. */
static uint64_t load(const char *text)
{
    const unsigned char *at = (const unsigned char *)text;

    return (uint64_t)at[0] | (uint64_t)at[1] << 8 | (uint64_t)at[2] << 16 |
           (uint64_t)at[3] << 24 | (uint64_t)at[4] << 32 | (uint64_t)at[5] << 40 |
           (uint64_t)at[6] << 48 | (uint64_t)at[7] << 56;
}

/* Which of eight bytes are a quote, a backslash, a control character or beyond ASCII: the
 * top bit of each, by the borrow that a byte below the limit makes. Above the first one
 * that is, a borrow may mark others that are not. */
static uint64_t find_special(uint64_t bytes)
{
    const uint64_t ones = UINT64_C(0x0101010101010101);
    uint64_t quotes = bytes ^ ones * '"';
    uint64_t backslashes = bytes ^ ones * '\\';

    return (bytes | (bytes - ones * ' ') | ((quotes - ones) & ~quotes) |
            ((backslashes - ones) & ~backslashes)) &
           ones * 0x80;
}

/* What most texts are made of, and needs no closer look. */
static void skip_plain(struct scan *s)
{
    while (s->end - s->at >= 8) {
        uint64_t special = find_special(load(s->at));

        if (special != 0) {
            s->at += __builtin_ctzll(special) / 8;
            return;
        }
        s->at += 8;
    }
    while (s->at < s->end && *s->at >= ' ' && *s->at < 0x7F && *s->at != '"' &&
           *s->at != '\\')
        s->at++;
}

static bool scan_string(struct scan *s)
{
    s->at++;
    while (s->at < s->end) {
        skip_plain(s);
        if (take(s, '"'))
            return true;
        if (s->at < s->end && (take(s, '\\') ? !scan_escape(s) : !scan_character(s)))
            return false;
    }
    return wanted(s, "a closing double quote");
}

static bool scan_key(struct scan *s)
{
    skip_space(s);
    if (peek(s) != '"')
        return wanted(s, "a key in double quotes");
    if (!scan_string(s))
        return false;
    skip_space(s);
    return take(s, ':') || wanted(s, "\":\" after a key");
}

/* ---- Picking: the parts that are wanted are copied ---- */

static void pick(struct scan *s, const char *from, const char *to)
{
    memcpy(s->picked + s->picked_size, from, (size_t)(to - from));
    s->picked_size += (size_t)(to - from);
}

/* Before an item of what is picked: a comma, unless it is the first. */
static void separate(struct scan *s)
{
    char last = s->picked[s->picked_size - 1];

    if (last != '{' && last != '[')
        s->picked[s->picked_size++] = ',';
}

/* The row of a key, which a quote ends. */
static const struct mu__json_want *find_want(const struct mu__json_want *wants,
                                             const char *key)
{
    for (; wants->key != NULL; wants++) {
        size_t i = 0;

        while (wants->key[i] != '\0' && wants->key[i] == key[i])
            i++;
        if (wants->key[i] == '\0' && key[i] == '"')
            return wants;
    }
    return NULL;
}

/* A key that is written with escapes is kept with all that is under it: cJSON knows what
 * it says. */
static bool pick_member(struct scan *s, const char *key,
                        const struct mu__json_want *wants)
{
    static const struct mu__json_want all = {"", NULL};
    const struct mu__json_want *want = s->escaped ? &all : find_want(wants, key + 1);
    size_t before = s->picked_size;
    size_t behind;

    if (want == NULL)
        return scan_value(s);
    separate(s);
    pick(s, key, s->at);
    behind = s->picked_size;
    if (!pick_value(s, want->within))
        return false;
    if (s->picked_size == behind)
        s->picked_size = before;
    return true;
}

/* An item of a list. */
static bool pick_item(struct scan *s, const struct mu__json_want *wants)
{
    size_t before = s->picked_size;
    size_t behind;

    separate(s);
    behind = s->picked_size;
    if (!pick_value(s, wants))
        return false;
    if (s->picked_size == behind)
        s->picked_size = before;
    return true;
}

/* One item of a list or an object; `wants` NULL: it is checked only. */
static bool scan_item(struct scan *s, bool object, const struct mu__json_want *wants)
{
    const char *key;

    skip_space(s);
    key = s->at;
    s->escaped = false;
    if (object && !scan_key(s))
        return false;
    if (wants == NULL)
        return scan_value(s);
    return object ? pick_member(s, key, wants) : pick_item(s, wants);
}

/* A list or an object. */
static bool scan_container(struct scan *s, const struct mu__json_want *wants)
{
    bool object = *s->at == '{';
    char close = object ? '}' : ']';
    size_t before = s->picked_size;

    if (s->depth == MU__JSON_DEPTH_MAX)
        return wanted(s, "fewer lists and objects inside each other");
    s->depth++;
    s->at++;
    if (wants != NULL)
        pick(s, s->at - 1, s->at);
    skip_space(s);
    if (!take(s, close)) {
        do {
            if (!scan_item(s, object, wants))
                return false;
            skip_space(s);
        } while (take(s, ','));
        if (!take(s, close))
            return wanted(s, object ? "\",\" or \"}\"" : "\",\" or \"]\"");
    }
    s->depth--;
    if (wants == NULL)
        return true;
    if (s->picked_size == before + 1 && s->depth > 0)
        s->picked_size = before; /* nothing in it was wanted */
    else
        pick(s, s->at - 1, s->at);
    return true;
}

static bool pick_value(struct scan *s, const struct mu__json_want *wants)
{
    const char *start;

    skip_space(s);
    start = s->at;
    if (wants != NULL && (peek(s) == '{' || peek(s) == '['))
        return scan_container(s, wants);
    if (!scan_value(s))
        return false;
    pick(s, start, s->at);
    return true;
}

static bool scan_word(struct scan *s)
{
    static const char *const words[] = {"true", "false", "null"};

    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        size_t length = strlen(words[i]);

        if ((size_t)(s->end - s->at) >= length && memcmp(s->at, words[i], length) == 0) {
            s->at += length;
            return true;
        }
    }
    return wanted(s, "a value");
}

static bool scan_value(struct scan *s)
{
    int c;

    skip_space(s);
    c = peek(s);
    if (c == '"')
        return scan_string(s);
    if (c == '{' || c == '[')
        return scan_container(s, NULL);
    if (c == '-' || is_digit(c))
        return scan_number(s);
    return scan_word(s);
}

static bool scan_document(struct scan *s, const struct mu__json_want *wants)
{
    if (peek(s) != '{')
        return wanted(s, "an object, \"{\"");
    if (!scan_container(s, wants))
        return false;
    skip_space(s);
    return s->at == s->end || wanted(s, "nothing after the object");
}

/* Line and column (in characters) of `at`, both from 1. */
static void find_spec(const struct scan *s, unsigned *ret_line, unsigned *ret_column)
{
    unsigned line = 1;
    unsigned column = 1;

    for (const char *c = s->text; c < s->at; c++) {
        if (*c == '\n') {
            line++;
            column = 1;
        } else if (((unsigned char)*c & 0xC0) != 0x80) {
            column++;
        }
    }
    *ret_line = line;
    *ret_column = column;
}

/* The text around `at`, of the same line, in quotes. */
static void quote_excerpt(const struct scan *s, char *out, size_t size)
{
    const char *from = s->at;
    const char *to = s->at;

    while (from > s->text && from[-1] != '\n' && s->at - from < EXCERPT_BYTES)
        from--;
    while (from < s->at && ((unsigned char)*from & 0xC0) == 0x80)
        from++;
    while (to < s->end && *to != '\n' && to - s->at < EXCERPT_BYTES)
        to++;
    while (to < s->end && to > s->at && ((unsigned char)*to & 0xC0) == 0x80)
        to--;
    mu__quote(out, size, from, (size_t)(to - from));
}

static int syntax_error(const struct scan *s, const char *source, mu_error *ret_error)
{
    size_t length = mu__utf8_length(s->at, s->end);
    char excerpt[MU__QUOTE_BYTES * 2];
    char got[MU__QUOTE_BYTES] = "the end of the text";
    unsigned line;
    unsigned column;

    find_spec(s, &line, &column);
    quote_excerpt(s, excerpt, sizeof excerpt);
    if (s->at < s->end)
        mu__quote(got, sizeof got, s->at, length > 0 ? length : 1);
    return mu_error_set(ret_error, -MU_EINVALID,
                        "%s: line %u, column %u: expected %s, got %s, near %s", source,
                        line, column, s->wanted, got, excerpt);
}

/* Some editors put a byte order mark in front of UTF-8. Checks what follows. */
static int check_document(struct scan *s, const struct mu__json_want *wants,
                          const char *source, mu_error *ret_error, const char **ret_body)
{
    if (s->end - s->at >= 3 && memcmp(s->at, "\xEF\xBB\xBF", 3) == 0)
        s->at += 3;
    skip_space(s);
    if (s->at == s->end)
        return mu_error_set(ret_error, -MU_EINVALID,
                            "%s: the text is empty; expected a JSON object", source);
    *ret_body = s->at;
    return scan_document(s, wants) ? 0 : syntax_error(s, source, ret_error);
}

int mu__json_parse(const char *text, size_t size, const char *source, mu_error *ret_error,
                   cJSON **ret_root)
{
    struct scan s = {.text = text, .at = text, .end = text + size};
    const char *body;
    cJSON *root;
    int rv;

    if (size > MU_CLUSTER_JSON_BYTES_MAX)
        return mu_error_set(ret_error, -MU_EEXHAUSTED,
                            "%s: the text has %zu bytes; expected at most %d", source,
                            size, MU_CLUSTER_JSON_BYTES_MAX);
    rv = check_document(&s, NULL, source, ret_error, &body);
    if (rv != 0)
        return rv;

    /* Nothing but memory is left to fail: what the check passes, cJSON takes. */
    root = cJSON_ParseWithLengthOpts(body, (size_t)(s.end - body), NULL, 0);
    if (root == NULL)
        return mu_error_set(ret_error, -MU_ENOMEM, "%s: out of memory", source);
    *ret_root = root;
    return 0;
}

int mu__json_parse_wanted(const char *text, size_t size,
                          const struct mu__json_want *wants, const char *source,
                          mu_error *ret_error, cJSON **ret_root)
{
    struct scan s = {.text = text, .at = text, .end = text + size};
    const char *body;
    cJSON *root;
    int rv;

    s.picked = malloc(size + 1);
    if (s.picked == NULL)
        return mu_error_set(ret_error, -MU_ENOMEM, "%s: out of memory", source);
    rv = check_document(&s, wants, source, ret_error, &body);
    if (rv != 0) {
        free(s.picked);
        return rv;
    }
    root = cJSON_ParseWithLengthOpts(s.picked, s.picked_size, NULL, 0);
    free(s.picked);
    if (root == NULL)
        return mu_error_set(ret_error, -MU_ENOMEM, "%s: out of memory", source);
    *ret_root = root;
    return 0;
}

static int compare_keys(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

int mu__json_check_keys(const cJSON *object, const char *place, mu_error *ret_error)
{
    size_t count = (size_t)cJSON_GetArraySize(object);
    const char *twice = NULL;
    char shown[MU__QUOTE_BYTES];
    const char **keys;
    size_t i = 0;

    keys = malloc((count + 1) * sizeof *keys);
    if (keys == NULL)
        return mu_error_set(ret_error, -MU_ENOMEM, "%s: out of memory", place);

    for (const cJSON *item = object->child; item != NULL; item = item->next)
        keys[i++] = item->string;
    qsort(keys, count, sizeof *keys, compare_keys);
    for (i = 1; i < count && twice == NULL; i++) {
        if (strcmp(keys[i - 1], keys[i]) == 0)
            twice = keys[i];
    }
    free(keys);
    if (twice == NULL)
        return 0;

    mu__quote(shown, sizeof shown, twice, strlen(twice));
    return mu_error_set(ret_error, -MU_EEXISTS,
                        "%s: the key %s stands twice; expected it once", place, shown);
}

void mu__json_describe(const cJSON *item, char *out, size_t size)
{
    static const struct {
        cJSON_bool (*is)(const cJSON *item);
        const char *words;
    } kinds[] = {
        {cJSON_IsNull, "null"},        {cJSON_IsTrue, "true"},
        {cJSON_IsFalse, "false"},      {cJSON_IsArray, "a list"},
        {cJSON_IsObject, "an object"},
    };

    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        if (kinds[i].is(item))
            (void)snprintf(out, size, "%s", kinds[i].words);
    }
    if (cJSON_IsNumber(item))
        (void)snprintf(out, size, "number %.15g", item->valuedouble);
    if (cJSON_IsString(item)) {
        (void)snprintf(out, size, "text ");
        mu__quote(out + 5, size - 5, item->valuestring, strlen(item->valuestring));
    }
}

int mu__index_parse(const char *text, int *ret_index)
{
    size_t digits = strspn(text, "0123456789");
    int index = 0;

    if (text[0] == '-' && strspn(text + 1, "0123456789") + 1 == strlen(text) &&
        text[1] != '\0')
        return -MU_ERANGE;
    if (digits == 0 || text[digits] != '\0' || (text[0] == '0' && digits > 1))
        return -MU_EINVALID;

    for (; *text != '\0'; text++) {
        index = index * 10 + (*text - '0');
        if (index > MU_CLUSTER_INDEX_MAX)
            return -MU_ERANGE;
    }
    *ret_index = index;
    return 0;
}

int mu__json_index(const cJSON *item, int *ret_index)
{
    double number;

    if (cJSON_IsString(item))
        return mu__index_parse(item->valuestring, ret_index);
    if (!cJSON_IsNumber(item))
        return -MU_EINVALID;

    number = item->valuedouble;
    if (!(number >= 0 && number <= MU_CLUSTER_INDEX_MAX))
        return -MU_ERANGE;
    if (number > (int)number)
        return -MU_EINVALID;
    *ret_index = (int)number;
    return 0;
}
