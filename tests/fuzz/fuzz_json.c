/* Any bytes as JSON: an error in words of UTF-8 and with its place, or a tree of bounded
 * depth in UTF-8, which is written and read again the same. Read item by item, or
 * member by member, the same texts are refused, and what is read is that of the tree. */
#include "runtime/base/text.h"
#include "runtime/document/json.h"
#include "tests/fuzz/must.h"

#include <muster/error.h>

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_text(const char *text)
{
    const char *end = text + strlen(text);

    while (text < end) {
        size_t length = mu__utf8_length(text, end);

        must(length > 0, "UTF-8");
        text += length;
    }
}

/* False: some number in it is not finite, which JSON cannot write. */
static bool check_items(const cJSON *item, unsigned depth)
{
    bool finite = true;

    must(item == NULL || depth <= MU__JSON_DEPTH_MAX, "depth");
    for (; item != NULL; item = item->next) {
        if (item->string != NULL)
            check_text(item->string);
        if (item->valuestring != NULL)
            check_text(item->valuestring);
        finite &= !cJSON_IsNumber(item) || isfinite(item->valuedouble) != 0;
        finite &= check_items(item->child, depth + 1);
    }
    return finite;
}

/* As texts: two numbers that are not finite are the same. */
static bool same(const cJSON *a, const cJSON *b)
{
    char *first = cJSON_PrintUnformatted(a);
    char *second = cJSON_PrintUnformatted(b);
    bool is_same;

    must(first != NULL && second != NULL, "memory");
    is_same = strcmp(first, second) == 0;
    cJSON_free(first);
    cJSON_free(second);
    return is_same;
}

static void check_again(const cJSON *root)
{
    char *written = cJSON_PrintUnformatted(root);
    cJSON *again = NULL;
    mu_error error;

    must(written != NULL, "memory");
    must(mu__json_parse(written, strlen(written), "again", &error, &again) == 0, "again");
    must(same(again, root), "the same");
    cJSON_Delete(again);
    cJSON_free(written);
}

static int keep_item(void *owner, const cJSON *item)
{
    must(cJSON_AddItemToArray(owner, cJSON_Duplicate(item, 1)), "memory");
    return 0;
}

/* `root` is what all of the text becomes; NULL: it is refused. */
static void check_by_items(const char *text, size_t size, const cJSON *root)
{
    const cJSON *first = root == NULL ? NULL : root->child;
    const char *key = first == NULL ? "items" : first->string;
    cJSON *items = cJSON_CreateArray();
    cJSON *whole = NULL;
    mu_error error;
    int rv =
        mu__json_parse_items(text, size, "fuzz", key, keep_item, items, &error, &whole);

    must((rv == 0) == (root != NULL), "refused both times or never");
    if (rv != 0) {
        must(rv == -MU_EINVALID && rv == error.code && whole == NULL, "code by items");
        must(strncmp(error.message, "fuzz: ", 6) == 0, "source by items");
        cJSON_Delete(items);
        return;
    }
    if (cJSON_IsArray(first)) {
        must(cJSON_GetArraySize(whole->child) == 0, "an empty list");
        must(cJSON_ReplaceItemViaPointer(whole, whole->child, items), "memory");
        items = NULL;
        whole->child->string = cJSON_malloc(strlen(key) + 1);
        must(whole->child->string != NULL, "memory");
        memcpy(whole->child->string, key, strlen(key) + 1);
    }
    must(cJSON_GetArraySize(items) == 0, "no items of no list");
    must(same(whole, root), "the same by items");
    cJSON_Delete(items);
    cJSON_Delete(whole);
}

static int keep_member(void *owner, const char *key, const cJSON *value)
{
    must(cJSON_AddItemToObject(owner, key, cJSON_Duplicate(value, 1)), "memory");
    return 0;
}

static void check_by_members(const char *text, size_t size, const cJSON *root)
{
    cJSON *members = cJSON_CreateObject();
    mu_error error;
    int rv = mu__json_parse_members(text, size, "fuzz", keep_member, members, &error);

    must((rv == 0) == (root != NULL), "refused by members, too, or never");
    must(rv != 0 || same(members, root), "the same by members");
    cJSON_Delete(members);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    cJSON *root = NULL;
    mu_error error;
    int rv = mu__json_parse((const char *)data, size, "fuzz", &error, &root);

    check_by_items((const char *)data, size, root);
    check_by_members((const char *)data, size, root);
    if (rv != 0) {
        must(rv == -MU_EINVALID && rv == error.code && root == NULL, "code");
        must(strncmp(error.message, "fuzz: ", 6) == 0, "source");
        must(strstr(error.message, "expected") != NULL, "expectation");
        check_text(error.message);
        return 0;
    }
    must(cJSON_IsObject(root), "object");
    if (check_items(root, 0))
        check_again(root);
    (void)mu__json_check_keys(root, "fuzz", &error);
    cJSON_Delete(root);
    return 0;
}
