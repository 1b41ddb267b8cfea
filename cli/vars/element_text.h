/* Elements of variables and tables, as text. */
#ifndef MU_CLI_VARS_ELEMENT_TEXT_H
#define MU_CLI_VARS_ELEMENT_TEXT_H

#include <stdbool.h>
#include <stddef.h>

enum { CMD_ELEMENT_BYTES = 40 };

/* An element of a dtype in the fewest digits that read back as the same; "nan", "inf" and
 * "-inf" are, in JSON, null. Returns `out`. */
const char *cmd_element_text(int dtype, const void *at, bool is_json,
                             char out[CMD_ELEMENT_BYTES]);

#endif
