#include "runtime/document/value_json.h"

#include "runtime/base/base64.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DEPTH_MAX = 24, NUMBER_BYTES = 64 };

#define EXACT_MAX 9007199254740992.0 /* 2^53 */

static const char float_key[] = "$float";
static const char bytes_key[] = "$bytes";

/* ---- writing ---- */

static bool write_value(const mu_value *value, unsigned depth, struct mu__build *out);

static bool is_exact_whole(double number)
{
    return fabs(number) <= EXACT_MAX && !(floor(number) < number);
}

static bool write_int(const mu_value *value, struct mu__build *out)
{
    int64_t number = 0;

    (void)mu_value_get_int(value, &number);
    mu__build_format(out, "%" PRId64, number);
    return number >= -INT64_C(9007199254740992) && number <= INT64_C(9007199254740992);
}

/* The shortest text that is read as the same number. The decimal point may be another one
 * in the process's locale; cJSON, which prints numbers, drops their last bits. */
static void write_exact_number(double number, struct mu__build *out)
{
    char text[NUMBER_BYTES];
    size_t size = 0;

    for (int digits = 15; digits <= 17; digits++) {
        (void)snprintf(text, sizeof text, "%.*g", digits, number);
        if (!(strtod(text, NULL) < number) && !(strtod(text, NULL) > number))
            break;
    }
    for (const char *at = text; *at != '\0'; at++)
        if (strchr("0123456789+-e", *at) != NULL)
            text[size++] = *at;
        else if (size == 0 || text[size - 1] != '.')
            text[size++] = '.';
    mu__build_bytes(out, text, size);
}

static bool write_float(const mu_value *value, struct mu__build *out)
{
    double number = 0;

    (void)mu_value_get_float(value, &number);
    if (!isfinite(number) || (signbit(number) && !(number < 0)))
        return false;
    if (is_exact_whole(number))
        mu__build_format(out, "{\"%s\": %" PRId64 "}", float_key, (int64_t)number);
    else
        write_exact_number(number, out);
    return true;
}

static bool write_string(const mu_value *value, struct mu__build *out)
{
    const char *text = "";
    size_t size = 0;

    (void)mu_value_get_string(value, &text, &size);
    mu__build_json(out, text, size);
    return memchr(text, '\0', size) == NULL;
}

static void write_bytes(const mu_value *value, struct mu__build *out)
{
    const void *data = NULL;
    size_t size = 0;

    (void)mu_value_get_bytes(value, &data, &size);
    mu__build_format(out, "{\"%s\": \"", bytes_key);
    mu__build_base64(out, data, size);
    mu__build_add(out, "\"}");
}

static bool write_items(const mu_value *value, bool is_map, unsigned depth,
                        struct mu__build *out)
{
    bool is_held = depth <= DEPTH_MAX;

    mu__build_add(out, is_map ? "{" : "[");
    for (size_t i = 0; is_held && i < mu_value_count(value); i++) {
        if (i > 0)
            mu__build_add(out, ", ");
        if (is_map) {
            const char *key = mu_value_key(value, i);

            mu__build_json(out, key, strlen(key));
            mu__build_add(out, ": ");
            is_held = key[0] != '$';
        }
        is_held = is_held && write_value(mu_value_at(value, i), depth, out);
    }
    mu__build_add(out, is_map ? "}" : "]");
    return is_held;
}

static bool write_value(const mu_value *value, unsigned depth, struct mu__build *out)
{
    int truth = 0;

    switch (mu_value_type(value)) {
    case MU_VALUE_NIL:
        mu__build_add(out, "null");
        return true;
    case MU_VALUE_BOOL:
        (void)mu_value_get_bool(value, &truth);
        mu__build_add(out, truth ? "true" : "false");
        return true;
    case MU_VALUE_INT:
        return write_int(value, out);
    case MU_VALUE_FLOAT:
        return write_float(value, out);
    case MU_VALUE_STRING:
        return write_string(value, out);
    case MU_VALUE_BYTES:
        write_bytes(value, out);
        return true;
    case MU_VALUE_LIST:
        return write_items(value, false, depth + 1, out);
    case MU_VALUE_MAP:
        return write_items(value, true, depth + 1, out);
    default:
        return false;
    }
}

bool mu__value_to_json(const mu_value *value, struct mu__build *out)
{
    return write_value(value, 0, out);
}

/* ---- reading ---- */

static int refuse_json_value(mu_error *error, const char *reason)
{
    return mu_error_set(error, -MU_EDATALOSS, "\"values\": %s", reason);
}

static int keep_value(mu_value *value, mu_error *error, mu_value **ret_value)
{
    if (value == NULL)
        return mu_error_set(error, -MU_ENOMEM, "no memory for \"values\"");
    *ret_value = value;
    return 0;
}

static int read_number(const cJSON *item, mu_error *error, mu_value **ret_value)
{
    double number = item->valuedouble;

    if (!isfinite(number))
        return refuse_json_value(error, "a number is too large");
    return keep_value(is_exact_whole(number) ? mu_value_int((int64_t)number)
                                             : mu_value_float(number),
                      error, ret_value);
}

static int read_base64(const cJSON *item, mu_error *error, mu_value **ret_value)
{
    size_t length = cJSON_IsString(item) ? strlen(item->valuestring) : 0;
    uint8_t *data;
    size_t size;
    int rv;

    if (!cJSON_IsString(item))
        return refuse_json_value(error, "\"$bytes\" is no text");
    data = malloc(length + 1);
    if (data == NULL)
        return keep_value(NULL, error, ret_value);
    rv = mu__base64_decode(item->valuestring, length, data, &size);
    rv = rv != 0 ? refuse_json_value(error, "\"$bytes\" is not base64")
                 : keep_value(mu_value_bytes(data, size), error, ret_value);
    free(data);
    return rv;
}

static int read_special(const cJSON *item, mu_error *error, mu_value **ret_value)
{
    if (item->next != NULL)
        return refuse_json_value(error, "there is more beside a key with \"$\"");
    if (strcmp(item->string, bytes_key) == 0)
        return read_base64(item, error, ret_value);
    if (strcmp(item->string, float_key) != 0 || !cJSON_IsNumber(item) ||
        !isfinite(item->valuedouble))
        return refuse_json_value(error, "a key with \"$\" has no known meaning");
    return keep_value(mu_value_float(item->valuedouble), error, ret_value);
}

static int read_item(const cJSON *item, bool is_map, mu_value *container, mu_error *error)
{
    mu_value *inner = NULL;
    int rv;

    if (is_map && item->string[0] == '$')
        return refuse_json_value(error, "there is more beside a key with \"$\"");
    rv = mu__value_from_json(item, error, &inner);
    if (rv != 0)
        return rv;
    rv = is_map ? mu_value_set(container, item->string, inner)
                : mu_value_append(container, inner);
    return rv == 0 ? 0 : mu_error_set(error, rv, "no memory for \"values\"");
}

static int read_items(const cJSON *list, bool is_map, mu_error *error,
                      mu_value **ret_value)
{
    mu_value *container = NULL;
    int rv = 0;

    if (is_map && list->child != NULL && list->child->string[0] == '$')
        return read_special(list->child, error, ret_value);
    if (is_map)
        rv = mu__json_check_keys(list, "\"values\"", error);
    if (rv == -MU_EEXISTS)
        return refuse_json_value(error, "a key is there twice");
    if (rv != 0)
        return rv;
    rv = keep_value(is_map ? mu_value_map() : mu_value_list(), error, &container);
    if (rv != 0)
        return rv;
    for (const cJSON *item = list->child; rv == 0 && item != NULL; item = item->next)
        rv = read_item(item, is_map, container, error);
    if (rv == 0)
        *ret_value = container;
    else
        mu_value_free(container);
    return rv;
}

int mu__value_from_json(const cJSON *item, mu_error *ret_error, mu_value **ret_value)
{
    if (cJSON_IsNumber(item))
        return read_number(item, ret_error, ret_value);
    if (cJSON_IsString(item))
        return keep_value(mu_value_string(item->valuestring), ret_error, ret_value);
    if (cJSON_IsBool(item))
        return keep_value(mu_value_bool(cJSON_IsTrue(item)), ret_error, ret_value);
    if (cJSON_IsNull(item))
        return keep_value(mu_value_nil(), ret_error, ret_value);
    return read_items(item, cJSON_IsObject(item), ret_error, ret_value);
}
