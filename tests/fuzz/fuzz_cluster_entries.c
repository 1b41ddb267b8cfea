/* Any bytes as what tasks write about themselves: names of files and keys, and entries.
 * An error in words, or something that is read the same when it is written again; and a
 * folder with any names and contents gives a cluster or an error. */
#include "resolver/source/entry.h"
#include "tests/support/script.h"

#include <inttypes.h>
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
    struct mu__entry entry = {.until_s = 0};
    struct mu__entry other = {.until_s = 0};
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

static void on_ask(struct mu__asker *asker, struct mu__note *note)
{
    const char *text = note->question.kind == MU__ASK_FOLDER     ? listing
                       : note->question.kind == MU__ASK_FILE     ? content
                       : note->question.kind == MU__ASK_CLOCK    ? "1700000000"
                       : note->question.kind == MU__ASK_VARIABLE &&
                               strcmp(note->question.name,
                                      "MUSTER_CLUSTER_DIRECTORY") == 0
                           ? "/d"
                           : NULL;

    (void)asker;
    if (text == NULL) {
        note->answer.code = mu_error_set(&note->answer.error, -MU_ENOTFOUND, "none");
    } else {
        note->answer.data = strdup(text);
        must(note->answer.data != NULL, "memory");
        note->answer.size = strlen(text);
    }
    mu__note_answer(note);
}

static void on_cancel(struct mu__asker *asker, struct mu__note *note)
{
    (void)asker;
    (void)note;
}

static void check_folder(void)
{
    static const struct mu__asker_ops ops = {on_ask, on_cancel};
    const struct mu__resolver_kind *kind = &mu__resolver_directory;
    struct mu__asker asker = {&ops};
    struct mu__settings settings;
    struct mu__notes *notes = NULL;
    mu_resolution resolution;
    mu_error error = {0};
    int rv;

    mu_resolution_init(&resolution);
    must(mu__notes_new(&asker, NULL, NULL, &notes) == 0, "memory");
    must(mu__settings_init(&settings, kind->name, kind->settings) == 0, "memory");
    rv = kind->resolve(notes, &settings, &error, &resolution);
    must(rv != MU__LATER, "all was answered");
    must(rv == 0 || (rv == error.code && error.message[0] != '\0'), "words");
    must(rv != 0 || !mu_cluster_is_empty(resolution.cluster), "somebody");
    mu_cluster_free(resolution.cluster);
    mu__settings_done(&settings);
    mu__notes_free(notes);
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
