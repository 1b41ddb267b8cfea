/* JSON from outside, read by cJSON, and what the readers of its trees share.
 *
 * The tree that a text becomes has bounded depth, UTF-8 only, and all of each text: what
 * cJSON would cut at a zero byte is refused. docs/decisions/0028-json-by-cjson.md says
 * what is accepted beyond strict JSON.
 *
 * Thread: any; cJSON keeps the place of its last failure in a variable of the process,
 * which nothing here reads. */
#ifndef MU_RESOLVER_JSON_H
#define MU_RESOLVER_JSON_H

#include <muster/error.h>

#include <cjson/cJSON.h>

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

/* The same of any size: who has fetched the text has set a limit. */
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

/* Check that no key stands twice in an object (cJSON keeps both and answers with the
 * first). `path` begins the message, as in "TF_CONFIG: cluster". Returns -MU_EEXISTS
 * naming the key, -MU_ENOMEM. */
int mu__json_check_keys(const cJSON *object, const char *path, mu_error *ret_error);

/* Say what an item is: `text "abc"`, `number 7`, `null`, `true`, `a list`, `an object`.
 * `out` has MU__QUOTE_BYTES or more. */
void mu__json_describe(const cJSON *item, char *out, size_t size);

/* An error of `code`: what the format says, which ends with what was expected, and
 * ", got" with what the item is. */
int mu__json_refuse(mu_error *ret_error, int code, const cJSON *item, const char *format,
                    ...) MU_PRINTF(4, 5);

/* Read an index: a whole number, or the same as text without sign, spaces and leading
 * zeros. Returns -MU_EINVALID when it is none, -MU_ERANGE when it is negative or above
 * MU_CLUSTER_INDEX_MAX. */
int mu__json_index(const cJSON *item, int *ret_index);
int mu__index_parse(const char *text, int *ret_index);

#endif
