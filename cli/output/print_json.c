#include "cli/output/print_json.h"

#include "runtime/base/base64.h"
#include "runtime/base/text.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

cJSON *cmd_json_text(const char *text, size_t size)
{
    char *clean = malloc(size + 1);
    const char *end = text + size;
    cJSON *item;
    size_t used = 0;

    if (clean == NULL)
        return NULL;
    while (text < end) {
        size_t length = *text == '\0' ? 0 : mu__utf8_length(text, end);

        if (length == 0)
            clean[used++] = '?';
        else
            memcpy(clean + used, text, length);
        used += length;
        text += length == 0 ? 1 : length;
    }
    clean[used] = '\0';
    item = cJSON_CreateString(clean);
    free(clean);
    return item;
}

cJSON *cmd_json_int(int64_t number)
{
    char digits[32];

    (void)snprintf(digits, sizeof digits, "%" PRId64, number);
    return cJSON_CreateRaw(digits);
}

void cmd_json_add_text(cJSON *map, const char *key, const char *text)
{
    if (text != NULL)
        (void)cJSON_AddItemToObject(map, key, cmd_json_text(text, strlen(text)));
}

void cmd_json_add_int(cJSON *map, const char *key, int64_t number)
{
    (void)cJSON_AddItemToObject(map, key, cmd_json_int(number));
}

static cJSON *json_string(const mu_value *value)
{
    const char *text;
    size_t size;

    (void)mu_value_get_string(value, &text, &size);
    return cmd_json_text(text, size);
}

static cJSON *json_number(const mu_value *value)
{
    int64_t whole;
    double number;

    if (mu_value_get_int(value, &whole) == 0)
        return cmd_json_int(whole);
    (void)mu_value_get_float(value, &number);
    return cJSON_CreateNumber(number);
}

static cJSON *json_bytes(const mu_value *value)
{
    const void *data;
    size_t size;
    cJSON *map = cJSON_CreateObject();

    (void)mu_value_get_bytes(value, &data, &size);
    cmd_json_add_int(map, "bytes", (int64_t)size);
    return map;
}

static cJSON *json_tensor(const mu_value *value)
{
    cJSON *map = cJSON_CreateObject();
    cJSON *shape = cJSON_AddArrayToObject(map, "shape");
    mu_tensor tensor;

    (void)mu_value_get_tensor(value, &tensor);
    (void)cJSON_AddStringToObject(map, "tensor", mu_dtype_name(tensor.dtype));
    for (unsigned i = 0; i < tensor.rank; i++)
        (void)cJSON_AddItemToArray(shape, cmd_json_int((int64_t)tensor.dims[i]));
    return map;
}

static cJSON *json_list(const mu_value *value)
{
    cJSON *list = cJSON_CreateArray();

    for (size_t i = 0; i < mu_value_count(value); i++)
        (void)cJSON_AddItemToArray(list, cmd_json_value(mu_value_at(value, i)));
    return list;
}

static cJSON *json_map(const mu_value *value)
{
    cJSON *map = cJSON_CreateObject();

    for (size_t i = 0; i < mu_value_count(value); i++)
        (void)cJSON_AddItemToObject(map, mu_value_key(value, i),
                                    cmd_json_value(mu_value_at(value, i)));
    return map;
}

static cJSON *json_bool(const mu_value *value)
{
    int truth = 0;

    (void)mu_value_get_bool(value, &truth);
    return cJSON_CreateBool(truth);
}

static cJSON *json_nil(const mu_value *value)
{
    (void)value;
    return cJSON_CreateNull();
}

cJSON *cmd_json_value(const mu_value *value)
{
    static cJSON *(*const makers[])(const mu_value *value) = {
        [MU_VALUE_NIL] = json_nil,       [MU_VALUE_BOOL] = json_bool,
        [MU_VALUE_INT] = json_number,    [MU_VALUE_FLOAT] = json_number,
        [MU_VALUE_STRING] = json_string, [MU_VALUE_BYTES] = json_bytes,
        [MU_VALUE_LIST] = json_list,     [MU_VALUE_MAP] = json_map,
        [MU_VALUE_TENSOR] = json_tensor,
    };

    return makers[mu_value_type(value)](value);
}

static int print_json_text(cJSON *item, char *text)
{
    cJSON_Delete(item);
    if (text == NULL)
        return -MU_ENOMEM;
    (void)printf("%s\n", text);
    cJSON_free(text);
    return 0;
}

int cmd_json_print(cJSON *item)
{
    return print_json_text(item, item == NULL ? NULL : cJSON_Print(item));
}

int cmd_json_line(cJSON *item)
{
    return print_json_text(item, item == NULL ? NULL : cJSON_PrintUnformatted(item));
}

/* ---- values of keys ---- */

static bool is_utf8_text(const char *bytes, size_t size)
{
    const char *end = bytes + size;

    while (bytes < end) {
        size_t length = *bytes == '\0' ? 0 : mu__utf8_length(bytes, end);

        if (length == 0)
            return false;
        bytes += length;
    }
    return true;
}

void cmd_json_add_value(cJSON *map, const char *bytes, size_t size)
{
    char *encoded;

    if (is_utf8_text(bytes, size)) {
        (void)cJSON_AddItemToObject(map, "value", cmd_json_text(bytes, size));
        return;
    }
    encoded = malloc(mu__base64_size(size) + 1);
    if (encoded == NULL)
        return;
    mu__base64_encode(bytes, size, encoded);
    encoded[mu__base64_size(size)] = '\0';
    (void)cJSON_AddStringToObject(map, "base64", encoded);
    free(encoded);
}

static void print_byte(unsigned char byte)
{
    if (byte == '\\')
        (void)printf("\\\\");
    else if (byte == '\n')
        (void)printf("\\n");
    else if (byte == '\t')
        (void)printf("\\t");
    else if (byte < 32 || byte >= 127)
        (void)printf("\\x%02x", byte);
    else
        (void)putchar(byte);
}

void cmd_print_escaped(const char *bytes, size_t size)
{
    const char *end = bytes + size;

    while (bytes < end) {
        size_t length = mu__utf8_length(bytes, end);

        if (length > 1)
            (void)fwrite(bytes, 1, length, stdout);
        else
            print_byte((unsigned char)*bytes);
        bytes += length > 1 ? length : 1;
    }
}
