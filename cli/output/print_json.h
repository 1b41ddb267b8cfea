/* Values as JSON, for people's programs to read. */
#ifndef MU_NODE_CMD_JSON_H
#define MU_NODE_CMD_JSON_H

#include "muster/value.h"

#include <cjson/cJSON.h>

/* A text item; bytes that are no UTF-8 become "?". NULL when out of memory. */
cJSON *cmd_json_text(const char *text, size_t size);

/* A whole number, exact in all its 64 bits. NULL when out of memory. */
cJSON *cmd_json_int(int64_t number);

/* Add a member to a map; a text that is NULL adds none. */
void cmd_json_add_text(cJSON *map, const char *key, const char *text);
void cmd_json_add_int(cJSON *map, const char *key, int64_t number);

/* The JSON of a value: bytes and tensors as a description of what they are, a number that
 * JSON does not have as null. The caller frees it; NULL when out of memory. */
cJSON *cmd_json_value(const mu_value *value);

/* Add "value", bytes that somebody put under a key: as text, when they are UTF-8 without
 * a zero byte; or else "base64". */
void cmd_json_add_value(cJSON *map, const char *bytes, size_t size);

/* Print an item and a line end to standard output, and free it. Returns 0, or -MU_ENOMEM
 * (also for item NULL). */
int cmd_json_print(cJSON *item);

/* The same, all of it in one line. */
int cmd_json_line(cJSON *item);

/* Print bytes in one line: a backslash, and bytes that do not print, as printf %b reads
 * them. */
void cmd_print_escaped(const char *bytes, size_t size);

#endif
