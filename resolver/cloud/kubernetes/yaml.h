/* YAML from outside as a cJSON tree: one document of mappings, sequences and scalars. As
 * in YAML's core schema a scalar without quotes may be null, true or false; all others
 * are texts, numbers too. What JSON has no form for is refused: aliases, local tags, keys
 * that are not texts. Pure. */
#ifndef MU_RESOLVER_YAML_H
#define MU_RESOLVER_YAML_H

#include <muster/error.h>

#include <cjson/cJSON.h>

enum {
    MU__YAML_BYTES_MAX = 4 << 20, /* of a text */
    MU__YAML_EVENTS_MAX = 400000, /* scalars, begins and ends of containers */
    MU__YAML_DEPTH_MAX = 32       /* mappings and sequences inside each other */
};

/* Parse a text; `source` names where it came from, for messages. A text without a
 * document is null.
 *
 * Owns:    the caller frees *ret_root with cJSON_Delete().
 * Returns: -MU_EINVALID with line and column, -MU_EEXISTS naming a key that appears
 * twice, -MU_EEXHAUSTED naming the bound, -MU_ENOMEM. */
int mu__yaml_parse(const char *text, size_t size, const char *source, mu_error *ret_error,
                   cJSON **ret_root);

#endif
