/* Any bytes as what tasks write about themselves: names of files and keys, and entries.
 * An error in words, or something that is read the same when it is written again; and a
 * folder with any names and contents gives a cluster or an error. */
#include "resolver/kinds.h"
#include "resolver/source/entry.h"
#include "tests/fuzz/must.h"
#include "tests/support/script.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_name(const char *text, size_t size, char between)
{
    char type[16] = "";
    char again[64];
    mu_error error;
    int index = -1;
    int rv = mu__entry_task(text, size, between, "x", &error, type, &index);

    must(rv == 0 || (rv == error.code && error.message[0] != '\0'), "words");
    if (rv != 0)
        return;
    (void)snprintf(again, sizeof again, "%s%c%d", type, between, index);
    must(strlen(again) == size && memcmp(again, text, size) == 0, "name");
}

static void check_entry(const char *text, size_t size)
{
    char again[MU__ENTRY_BYTES_MAX];
    struct mu__task_entry entry = {.until_s = 0};
    struct mu__task_entry other = {.until_s = 0};
    mu_error error;
    int rv = mu__entry_parse(text, size, "x", &error, &entry);

    must(rv == 0 || (rv == error.code && error.message[0] != '\0'), "words");
    if (rv != 0)
        return;
    mu__entry_write(&entry, again);
    must(mu__entry_parse(again, strlen(again), "x", &error, &other) == 0, "again");
    must(strcmp(entry.address, other.address) == 0 && strcmp(entry.who, other.who) == 0 &&
             entry.until_s == other.until_s,
         "the same");
}

/* The first line are the folder's names, with '|' between; each file has the rest. */
static const char *listing;
static const char *content;

static void answer(struct fake_sources *sources, struct mu__exchange *exchange)
{
    const char *text =
        exchange->request.kind == MU__REQUEST_FOLDER  ? listing
        : exchange->request.kind == MU__REQUEST_FILE  ? content
        : exchange->request.kind == MU__REQUEST_CLOCK ? "1700000000"
        : exchange->request.kind == MU__REQUEST_VARIABLE &&
                strcmp(exchange->request.name, "MUSTER_CLUSTER_DIRECTORY") == 0
            ? "/d"
            : NULL;

    (void)sources;
    if (text == NULL) {
        exchange->answer.code =
            mu_error_set(&exchange->answer.error, -MU_ENOTFOUND, "none");
    } else {
        exchange->answer.data = strdup(text);
        must(exchange->answer.data != NULL, "memory");
        exchange->answer.size = strlen(text);
    }
}

static void check_folder(void)
{
    const struct mu__resolver_kind *kind = &mu__resolver_directory;
    struct fake_sources sources;
    struct mu__settings settings;
    struct mu__requests *requests = NULL;
    mu_resolution resolution;
    mu_error error = {0};
    int rv;

    fake_sources_init(&sources, answer);
    mu_resolution_init(&resolution);
    must(mu__requests_new(&sources.base, NULL, &requests) == 0, "memory");
    must(mu__settings_init(&settings, kind->name, kind->settings) == 0, "memory");
    rv = kind->resolve(&(struct mu__pass){requests, &settings}, &error, &resolution);
    must(rv == 0 || (rv == error.code && error.message[0] != '\0'), "words");
    must(rv != 0 || !mu_cluster_is_empty(resolution.cluster), "somebody");
    mu_cluster_free(resolution.cluster);
    mu__settings_done(&settings);
    mu__requests_free(requests);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = malloc(size + 1);
    char *rest;

    must(text != NULL, "memory");
    if (size > 0)
        memcpy(text, data, size);
    text[size] = '\0';
    check_name(text, size, '-');
    check_name(text, size, '/');
    check_entry(text, size);
    rest = strchr(text, '\n');
    if (rest != NULL)
        *rest++ = '\0';
    listing = text;
    content = rest == NULL ? "" : rest;
    for (char *at = text; *at != '\0'; at++)
        *at = *at == '|' ? '\n' : *at;
    check_folder();
    free(text);
    return 0;
}
