/* Values as JSON: nil, bool, string, list and map as one expects; an int as a number; a
 * float as a number, too, or {"$float": 3} when it is whole; bytes as {"$bytes": BASE64}.
 * Pure. */
#ifndef MU_RUNTIME_DOCUMENT_VALUE_JSON_H
#define MU_RUNTIME_DOCUMENT_VALUE_JSON_H

#include "muster/value.h"
#include "runtime/base/build.h"
#include "runtime/document/json.h"

/* Append the JSON. False when JSON does not hold the value: tensors, references, ints
 * beyond 2^53, floats that are not finite or -0, strings with a zero byte, keys that
 * begin with "$", more than 24 lists and maps in each other; what was appended is useless
 * then. */
bool mu__value_to_json(const mu_value *value, struct mu__build *out);

/* -MU_EDATALOSS with what is wrong, -MU_ENOMEM. */
int mu__value_from_json(const cJSON *item, mu_error *ret_error, mu_value **ret_value);

#endif
