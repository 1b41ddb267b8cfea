/* Bytes that somebody put under a key, as they are printed. */
#ifndef MU_NODE_CMD_BYTES_H
#define MU_NODE_CMD_BYTES_H

#include <cjson/cJSON.h>

#include <stddef.h>

/* Add "value": the bytes as text, when they are UTF-8 without a zero byte; or else
 * "base64". */
void cmd_json_add_value(cJSON *map, const char *bytes, size_t size);

/* Print them in one line: a backslash, and bytes that do not print, as printf %b reads
 * them. */
void cmd_print_escaped(const char *bytes, size_t size);

#endif
