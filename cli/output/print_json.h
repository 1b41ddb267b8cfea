/* JSON output of values. */
#ifndef MU_NODE_CMD_JSON_H
#define MU_NODE_CMD_JSON_H

#include "muster/value.h"

#include <cjson/cJSON.h>

/* A string item; bytes that are not UTF-8 become "?". NULL when out of memory. */
cJSON *cmd_json_text(const char *text, size_t size);

/* An integer item, exact for all 64 bits. NULL when out of memory. */
cJSON *cmd_json_int(int64_t number);

/* Add a member to a map; nothing when `text` is NULL. */
void cmd_json_add_text(cJSON *map, const char *key, const char *text);
void cmd_json_add_int(cJSON *map, const char *key, int64_t number);

/* The JSON of a value: bytes and tensors as maps that describe them, infinities and NaN
 * as null. The caller frees it; NULL when out of memory. */
cJSON *cmd_json_value(const mu_value *value);

/* Add the value of a key: as text "value" when it is UTF-8 without a zero byte, else as
 * "base64". */
void cmd_json_add_value(cJSON *map, const char *bytes, size_t size);

/* Print an item and a line end to standard output, and free it. Returns 0, or -MU_ENOMEM
 * (also for item NULL). */
int cmd_json_print(cJSON *item);

/* The same in one line. */
int cmd_json_line(cJSON *item);

/* Print bytes in one line, with backslashes and unprintable bytes escaped as the shell's
 * printf %b reads them. */
void cmd_print_escaped(const char *bytes, size_t size);

#endif
