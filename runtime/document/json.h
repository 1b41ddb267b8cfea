/* Untrusted JSON, parsed by cJSON, and helpers for readers of its trees.
 *
 * A tree has bounded depth, only UTF-8, and whole strings: zero bytes, at which cJSON
 * would cut a string, are refused. docs/decisions/0028-json-by-cjson.md says what is
 * accepted beyond strict JSON.
 *
 * Thread: any; cJSON_GetErrorPtr(), which belongs to the process, is not used. */
#ifndef MU_RUNTIME_DOCUMENT_JSON_H
#define MU_RUNTIME_DOCUMENT_JSON_H

#include <muster/error.h>

#include <cjson/cJSON.h>

#include <stdbool.h>
#include <stdint.h>

enum {
    MU__JSON_DEPTH_MAX = 32 /* lists and objects inside each other */
};

/* Parse a text whose top is an object. `source` names where it came from, for messages.
 *
 * Owns:    the caller frees *ret_root with cJSON_Delete().
 * Returns: -MU_EINVALID with line, column and excerpt, -MU_EEXHAUSTED when the text has
 *          more than MU_CLUSTER_JSON_BYTES_MAX bytes, -MU_ENOMEM. */
int mu__json_parse(const char *text, size_t size, const char *source, mu_error *ret_error,
                   cJSON **ret_root);

/* The same without a limit of its own, for a text that was fetched under one. */
int mu__json_parse_large(const char *text, size_t size, const char *source,
                         mu_error *ret_error, cJSON **ret_root);

/* The same of an object in which the list of the member `key` is large: each of its items
 * is parsed, passed to `read`, and freed before the next one is parsed, so that only one
 * of them is in memory. In *ret_root this list is empty; a member `key` that is no list,
 * or that stands there a second time, is as any other. `read` returns 0, or -MU_ENOMEM,
 * which ends it. Items that were read are no sign that the rest of the text is JSON. */
typedef int mu__json_item_fn(void *owner, const cJSON *item);
int mu__json_parse_items(const char *text, size_t size, const char *source,
                         const char *key, mu__json_item_fn *read, void *owner,
                         mu_error *ret_error, cJSON **ret_root);

/* The same of an object that is large itself: each of its members is parsed, passed to
 * `read` with its key, and freed. An error of `read`, which has said what is wrong, ends
 * it. A key may come twice. */
typedef int mu__json_member_fn(void *owner, const char *key, const cJSON *value);
int mu__json_parse_members(const char *text, size_t size, const char *source,
                           mu__json_member_fn *read, void *owner, mu_error *ret_error);

/* Check that an object has no key twice (cJSON keeps both, and its look-up returns the
 * first). `path` begins the message, as in "TF_CONFIG: cluster". Returns -MU_EEXISTS
 * naming the key, -MU_ENOMEM. */
int mu__json_check_keys(const cJSON *object, const char *path, mu_error *ret_error);

/* Say what an item is: `text "abc"`, `number 7`, `null`, `true`, `a list`, `an object`.
 * `out` has MU__QUOTE_BYTES or more. */
void mu__json_describe(const cJSON *item, char *out, size_t size);

/* Return `code`, with a message of the formatted text, which ends with what was expected,
 * and ", got" with what the item is (NULL: nothing). */
int mu__json_refuse(mu_error *ret_error, int code, const cJSON *item, const char *format,
                    ...) MU_PRINTF(4, 5);

/* Read a number that is whole, from 0 to `max` and not above 2^53, up to which a JSON
 * number is exact; false: it is none. */
bool mu__json_whole(const cJSON *item, uint64_t max, uint64_t *ret_number);

/* Read an index: a whole number, or the same as text without sign, spaces and leading
 * zeros. Returns -MU_EINVALID when it is none, -MU_ERANGE when it is negative or above
 * MU_CLUSTER_INDEX_MAX. */
int mu__json_index(const cJSON *item, int *ret_index);
int mu__index_parse(const char *text, int *ret_index);

#endif
