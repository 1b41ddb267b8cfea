/* Any bytes as JSON: an error in words of UTF-8 and with its place, or a tree of bounded
 * depth in UTF-8, which is written and read again the same. */
#include "runtime/base/json.h"
#include "runtime/base/text.h"

#include <muster/error.h>

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Unlike assert(), stays in every build. */
static void must(bool truth, const char *what)
{
    if (truth)
        return;
    (void)fprintf(stderr, "broken: %s\n", what);
    abort();
}

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

static void check_again(const cJSON *root)
{
    char *written = cJSON_PrintUnformatted(root);
    cJSON *again = NULL;
    char *rewritten;
    mu_error error;

    must(written != NULL, "memory");
    must(mu__json_parse(written, strlen(written), "again", &error, &again) == 0, "again");
    rewritten = cJSON_PrintUnformatted(again);
    must(rewritten != NULL && strcmp(written, rewritten) == 0, "the same");
    cJSON_free(rewritten);
    cJSON_Delete(again);
    cJSON_free(written);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    cJSON *root = NULL;
    mu_error error;
    int rv = mu__json_parse((const char *)data, size, "fuzz", &error, &root);

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
