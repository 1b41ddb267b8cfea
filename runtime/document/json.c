#include "runtime/document/json.h"

#include "runtime/base/text.h"

#include <muster/cluster.h>

#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SPACE " \t\r\n"

enum {
    EXCERPT_BYTES = 20 /* shown before and after the place of an error */
};

/* A text being parsed. */
struct document {
    const char *source;
    char *text; /* a copy with a zero behind it, where cJSON stops in a truncated text */
    char *end;
    mu_error *error;
};

static int json_no_memory(const char *source, mu_error *ret_error)
{
    return mu_error_set(ret_error, -MU_ENOMEM, "%s: out of memory", source);
}

/* Line and column (in characters) of `at`, both from 1. */
static void find_line(const char *text, const char *at, unsigned *ret_line,
                      unsigned *ret_column)
{
    unsigned line = 1;
    unsigned column = 1;

    for (const char *c = text; c < at; c++) {
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
static void quote_excerpt(const struct document *d, const char *at, char *out,
                          size_t size)
{
    const char *from = at;
    const char *to = at;

    while (from > d->text && from[-1] != '\n' && at - from < EXCERPT_BYTES)
        from--;
    while (from < at && ((unsigned char)*from & 0xC0) == 0x80)
        from++;
    while (to < d->end && *to != '\n' && to - at < EXCERPT_BYTES)
        to++;
    while (to < d->end && to > at && ((unsigned char)*to & 0xC0) == 0x80)
        to--;
    mu__quote(out, size, from, (size_t)(to - from));
}

static int refuse_json(const struct document *d, const char *at, const char *expected)
{
    size_t length = mu__utf8_length(at, d->end);
    char excerpt[MU__QUOTE_BYTES * 2];
    char got[MU__QUOTE_BYTES] = "the end of the text";
    unsigned line;
    unsigned column;

    find_line(d->text, at, &line, &column);
    quote_excerpt(d, at, excerpt, sizeof excerpt);
    if (at < d->end)
        mu__quote(got, sizeof got, at, length > 0 ? length : 1);
    return mu_error_set(d->error, -MU_EINVALID,
                        "%s: line %u, column %u: expected %s, got %s, near %s", d->source,
                        line, column, expected, got, excerpt);
}

/* ---- Checks that cJSON does not make ---- */

/* cJSON makes a zero byte of \u0000 and of \u without four digits, which would cut the
 * string silently. */
static int check_escapes(const struct document *d)
{
    const char *at = d->text;

    while ((at = memchr(at, '\\', (size_t)(d->end - at))) != NULL) {
        const char *digits = at + 2;

        if (at[1] == 'u' && strspn(digits, "0123456789abcdefABCDEF") < 4)
            return refuse_json(d, digits, "four hexadecimal digits after \\u");
        if (at[1] == 'u' && strspn(digits, "0") >= 4)
            return refuse_json(d, digits, "no zero byte in a text");
        at = digits;
    }
    return 0;
}

/* Behind the ASCII characters at `at`, eight at a time: most texts have nothing else. */
static const char *skip_ascii(const char *at, const char *end)
{
    uint64_t eight;

    for (; end - at >= (ptrdiff_t)sizeof eight; at += sizeof eight) {
        memcpy(&eight, at, sizeof eight);
        if ((eight & UINT64_C(0x8080808080808080)) != 0)
            break;
    }
    while (at < end && (unsigned char)*at < 0x80)
        at++;
    return at;
}

/* Outside of texts and keys cJSON takes only ASCII, and its escapes make UTF-8. */
static int check_utf8(const struct document *d)
{
    const char *at = skip_ascii(d->text, d->end);

    while (at < d->end) {
        size_t length = mu__utf8_length(at, d->end);

        if (length == 0)
            return refuse_json(d, at, "UTF-8");
        at = skip_ascii(at + length, d->end);
    }
    return 0;
}

/* Check an item, its siblings and all below; `depth`: lists and objects around it. */
static int check_depth(const struct document *d, const cJSON *item, unsigned depth)
{
    int rv = 0;

    if (item != NULL && depth > MU__JSON_DEPTH_MAX)
        return mu_error_set(d->error, -MU_EINVALID,
                            "%s: expected at most %d lists and objects inside each "
                            "other, got more",
                            d->source, MU__JSON_DEPTH_MAX);
    for (; item != NULL && rv == 0; item = item->next)
        rv = check_depth(d, item->child, depth + 1);
    return rv;
}

/* ---- Parsing ---- */

/* The first byte behind spaces and the byte order mark that some editors write. */
static const char *skip_to_object(const struct document *d)
{
    bool has_mark = strncmp(d->text, "\xEF\xBB\xBF", 3) == 0;
    const char *body = d->text + (has_mark ? 3 : 0);

    return body + strspn(body, SPACE);
}

static int check_start(const struct document *d, const char *body)
{
    const char *zero = memchr(d->text, '\0', (size_t)(d->end - d->text));

    if (body == d->end)
        return mu_error_set(d->error, -MU_EINVALID,
                            "%s: the text is empty; expected a JSON object", d->source);
    if (zero != NULL)
        return refuse_json(d, zero, "no zero byte");
    return *body == '{' ? 0 : refuse_json(d, body, "an object, \"{\"");
}

/* Whether a key is missing one byte before `at`, where cJSON stopped: for a missing key
 * it points behind the wrong byte, for all other errors to the wrong byte itself. */
static bool lacks_key(const char *body, const char *at)
{
    const char *got = at - 1;
    const char *before = got;

    if (got <= body || strchr(SPACE "\"", *got) != NULL || *at == '\\')
        return false;
    while (strchr(SPACE, before[-1]) != NULL)
        before--;
    return before[-1] == '{' ? *got != '}'
                             : before[-1] == ',' && strchr("[{0123456789", *got) == NULL;
}

/* Parse the value at *at, and move *at behind it. */
static int parse_value(const struct document *d, const char **at, cJSON **ret_value)
{
    const char *from = *at;

    errno = 0;
    *ret_value = cJSON_ParseWithLengthOpts(from, (size_t)(d->end - from) + 1, at, 0);
    if (*ret_value != NULL)
        return 0;
    if (errno == ENOMEM)
        return json_no_memory(d->source, d->error);
    return lacks_key(from, *at) ? refuse_json(d, *at - 1, "a key in double quotes")
                                : refuse_json(d, *at, "JSON");
}

/* Refuse text behind the object, and what cJSON takes that we do not. */
static int check_json_end(const struct document *d, const char *at)
{
    int rv;

    at += strspn(at, SPACE);
    rv = at < d->end ? refuse_json(d, at, "nothing after the object") : check_escapes(d);
    return rv == 0 ? check_utf8(d) : rv;
}

static int parse_document(const struct document *d, cJSON **ret_root)
{
    const char *at = skip_to_object(d);
    cJSON *root = NULL;
    int rv = check_start(d, at);

    if (rv == 0)
        rv = parse_value(d, &at, &root);
    if (rv == 0)
        rv = check_json_end(d, at);
    if (rv == 0)
        rv = check_depth(d, root, 0);
    if (rv == 0)
        *ret_root = root;
    else
        cJSON_Delete(root);
    return rv;
}

static int open_document(const char *text, size_t size, const char *source,
                         mu_error *ret_error, struct document *ret_document)
{
    char *copy = malloc(size + 1);

    if (copy == NULL)
        return json_no_memory(source, ret_error);
    memcpy(copy, text, size);
    copy[size] = '\0';
    *ret_document = (struct document){source, copy, copy + size, ret_error};
    return 0;
}

int mu__json_parse_large(const char *text, size_t size, const char *source,
                         mu_error *ret_error, cJSON **ret_root)
{
    struct document d;
    int rv = open_document(text, size, source, ret_error, &d);

    if (rv != 0)
        return rv;
    rv = parse_document(&d, ret_root);
    free(d.text);
    return rv;
}

int mu__json_parse(const char *text, size_t size, const char *source, mu_error *ret_error,
                   cJSON **ret_root)
{
    if (size > MU_CLUSTER_JSON_BYTES_MAX)
        return mu_error_set(ret_error, -MU_EEXHAUSTED,
                            "%s: the text has %zu bytes; expected at most %d", source,
                            size, MU_CLUSTER_JSON_BYTES_MAX);
    return mu__json_parse_large(text, size, source, ret_error, ret_root);
}

/* ---- An object that is large, or has a large list ---- */

/* An object that is parsed member by member, and its list item by item. */
struct items_parser {
    const struct document *d;
    const char *at;
    const char *key; /* of the list */
    mu__json_item_fn *read;
    mu__json_member_fn *read_member; /* NULL: members go into the root */
    void *owner;
    cJSON *root;
};

static void skip_space(struct items_parser *p)
{
    while (*p->at != '\0' && (unsigned char)*p->at <= ' ') /* as cJSON */
        p->at++;
}

static bool skip_token(struct items_parser *p, char token)
{
    skip_space(p);
    if (*p->at != token)
        return false;
    p->at++;
    return true;
}

/* The text between commas, up to `end`. */
static int parse_each(struct items_parser *p, char end,
                      int (*parse_one)(struct items_parser *p))
{
    int rv;

    if (skip_token(p, end))
        return 0;
    do {
        rv = parse_one(p);
    } while (rv == 0 && skip_token(p, ','));
    if (rv == 0 && !skip_token(p, end))
        rv = refuse_json(p->d, p->at, "JSON");
    return rv;
}

/* A value inside `depth` lists and objects. */
static int parse_inner(struct items_parser *p, unsigned depth, cJSON **ret_value)
{
    int rv;

    skip_space(p);
    if (*p->at == '\xEF') /* at the beginning of a text, cJSON skips a byte order mark */
        return refuse_json(p->d, p->at, "JSON");
    rv = parse_value(p->d, &p->at, ret_value);
    return rv == 0 ? check_depth(p->d, *ret_value, depth) : rv;
}

static int parse_item(struct items_parser *p)
{
    cJSON *item = NULL;
    int rv = parse_inner(p, 2, &item);

    if (rv == 0 && p->read(p->owner, item) != 0)
        rv = json_no_memory(p->d->source, p->d->error);
    cJSON_Delete(item);
    return rv;
}

static int parse_list(struct items_parser *p, cJSON **ret_list)
{
    *ret_list = cJSON_CreateArray();
    return *ret_list != NULL ? parse_each(p, ']', parse_item)
                             : json_no_memory(p->d->source, p->d->error);
}

static int parse_and_read_member(struct items_parser *p, const char *key)
{
    cJSON *value = NULL;
    int rv = parse_inner(p, 1, &value);

    if (rv == 0)
        rv = p->read_member(p->owner, key, value);
    cJSON_Delete(value);
    return rv;
}

static int parse_member_value(struct items_parser *p, const char *key)
{
    bool is_list = strcmp(key, p->key) == 0 &&
                   cJSON_GetObjectItemCaseSensitive(p->root, key) == NULL &&
                   skip_token(p, '[');
    cJSON *value = NULL;
    int rv = is_list ? parse_list(p, &value) : parse_inner(p, 1, &value);

    if (rv == 0 && !cJSON_AddItemToObject(p->root, key, value))
        rv = json_no_memory(p->d->source, p->d->error);
    if (rv != 0)
        cJSON_Delete(value);
    return rv;
}

static int parse_member(struct items_parser *p)
{
    cJSON *key = NULL;
    int rv;

    skip_space(p);
    if (*p->at != '"')
        return refuse_json(p->d, p->at, "a key in double quotes");
    rv = parse_inner(p, 1, &key);
    if (rv == 0 && !skip_token(p, ':'))
        rv = refuse_json(p->d, p->at, "JSON");
    if (rv == 0)
        rv = p->read_member != NULL ? parse_and_read_member(p, key->valuestring)
                                    : parse_member_value(p, key->valuestring);
    cJSON_Delete(key);
    return rv;
}

static int parse_members(struct items_parser *p, const char *text, size_t size,
                         const char *source, mu_error *ret_error)
{
    struct document d;
    int rv = open_document(text, size, source, ret_error, &d);

    if (rv != 0)
        return rv;
    p->d = &d;
    p->at = skip_to_object(&d);
    rv = check_start(&d, p->at);
    if (rv == 0) {
        (void)skip_token(p, '{');
        rv = parse_each(p, '}', parse_member);
    }
    if (rv == 0)
        rv = check_json_end(&d, p->at);
    free(d.text);
    return rv;
}

int mu__json_parse_items(const char *text, size_t size, const char *source,
                         const char *key, mu__json_item_fn *read, void *owner,
                         mu_error *ret_error, cJSON **ret_root)
{
    struct items_parser p = {
        .key = key, .read = read, .owner = owner, .root = cJSON_CreateObject()};
    int rv = p.root == NULL ? json_no_memory(source, ret_error)
                            : parse_members(&p, text, size, source, ret_error);

    if (rv == 0)
        *ret_root = p.root;
    else
        cJSON_Delete(p.root);
    return rv;
}

int mu__json_parse_members(const char *text, size_t size, const char *source,
                           mu__json_member_fn *read, void *owner, mu_error *ret_error)
{
    struct items_parser p = {.read_member = read, .owner = owner};

    return parse_members(&p, text, size, source, ret_error);
}

/* ---- Reading what was parsed ---- */

static int compare_json_keys(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

int mu__json_check_keys(const cJSON *object, const char *path, mu_error *ret_error)
{
    size_t count = (size_t)cJSON_GetArraySize(object);
    const char *twice = NULL;
    char shown[MU__QUOTE_BYTES];
    const char **keys;
    size_t i = 0;

    keys = malloc((count + 1) * sizeof *keys);
    if (keys == NULL)
        return json_no_memory(path, ret_error);

    for (const cJSON *item = object->child; item != NULL; item = item->next)
        keys[i++] = item->string;
    qsort(keys, count, sizeof *keys, compare_json_keys);
    for (i = 1; i < count && twice == NULL; i++) {
        if (strcmp(keys[i - 1], keys[i]) == 0)
            twice = keys[i];
    }
    free(keys);
    if (twice == NULL)
        return 0;

    mu__quote(shown, sizeof shown, twice, strlen(twice));
    return mu_error_set(ret_error, -MU_EEXISTS,
                        "%s: the key %s appears twice; expected it once", path, shown);
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

int mu__json_refuse(mu_error *ret_error, int code, const cJSON *item, const char *format,
                    ...)
{
    char got[MU__QUOTE_BYTES] = "nothing";
    mu_error expected;
    va_list arguments;

    va_start(arguments, format);
    (void)vsnprintf(expected.message, sizeof expected.message, format, arguments);
    va_end(arguments);
    if (item != NULL)
        mu__json_describe(item, got, sizeof got);
    return mu_error_set(ret_error, code, "%s, got %s", expected.message, got);
}

bool mu__json_whole(const cJSON *item, uint64_t max, uint64_t *ret_number)
{
    const double exact_max = 9007199254740992.0;
    double number = cJSON_IsNumber(item) ? item->valuedouble : -1;

    if (!(number >= 0 && number <= exact_max) || number > (double)(uint64_t)number ||
        (uint64_t)number > max)
        return false;
    *ret_number = (uint64_t)number;
    return true;
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
