/* JSON from outside: a strict check of the text in front of cJSON, and what the readers
 * of cJSON trees share.
 *
 * cJSON alone takes more than JSON (control characters, leading zeros, a text cut off by
 * a zero byte) and does not say where or why it failed. What passes the check here is
 * JSON in the strict sense, of bounded depth, in UTF-8, and without zero bytes.
 *
 * Thread: any; cJSON keeps the place of its last failure in a variable of the process,
 * which nothing here reads. */
#ifndef MU_RESOLVER_JSON_H
#define MU_RESOLVER_JSON_H

#include <muster/error.h>

#include <cjson/cJSON.h>

enum {
    MU__JSON_DEPTH_MAX = 32,       /* lists and objects inside each other */
    MU__JSON_NUMBER_BYTES_MAX = 40 /* digits, sign, point and exponent of a number */
};

/* Parse a text whose top is an object. `source` names where it came from, for messages.
 *
 * Owns:    the caller frees *ret_root with cJSON_Delete().
 * Returns: -MU_EINVALID with line, column and excerpt, -MU_EEXHAUSTED when the text has
 *          more than MU_CLUSTER_JSON_BYTES_MAX bytes, -MU_ENOMEM. */
int mu__json_parse(const char *text, size_t size, const char *source, mu_error *ret_error,
                   cJSON **ret_root);

/* What is wanted of a text: keys of an object, each with what is wanted under it. Lists
 * are looked through: what is wanted of a list is wanted of each of its items. What
 * becomes empty is left out. */
struct mu__json_want {
    const char *key;                    /* NULL ends a table */
    const struct mu__json_want *within; /* NULL: everything */
};

/* The same for large answers of which little is wanted: all of the text is checked, but
 * the tree has only what is wanted, in time and memory too. Of any size: who has fetched
 * it has set a limit. -MU_EINVALID, -MU_ENOMEM. */
int mu__json_parse_wanted(const char *text, size_t size,
                          const struct mu__json_want *wants, const char *source,
                          mu_error *ret_error, cJSON **ret_root);

/* Check that no key stands twice in an object (cJSON keeps both and answers with the
 * first). `place` begins the message, as in "TF_CONFIG: cluster". Returns -MU_EEXISTS
 * naming the key, -MU_ENOMEM. */
int mu__json_check_keys(const cJSON *object, const char *place, mu_error *ret_error);

/* Say what an item is: `text "abc"`, `number 7`, `null`, `true`, `a list`, `an object`.
 * `out` has MU__QUOTE_BYTES or more. */
void mu__json_describe(const cJSON *item, char *out, size_t size);

/* Read an index: a whole number, or the same as text without sign, spaces and leading
 * zeros. Returns -MU_EINVALID when it is none, -MU_ERANGE when it is negative or above
 * MU_CLUSTER_INDEX_MAX. */
int mu__json_index(const cJSON *item, int *ret_index);
int mu__index_parse(const char *text, int *ret_index);

#endif
