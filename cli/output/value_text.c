#include "cli/output/value_text.h"

#include "cli/output/print_json.h"
#include "runtime/base/base64.h"
#include "runtime/base/text.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

static bool is_text(const char *bytes, size_t size)
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

    if (is_text(bytes, size)) {
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
