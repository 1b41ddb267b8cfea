/* A resolver whose every answer is a piece of the input, for fuzz targets: the first
 * question that is answered so gets the first piece, the last piece is for all others.
 * Pieces end with a zero byte. */
#ifndef MUSTER_TESTS_FUZZ_ASKER_H
#define MUSTER_TESTS_FUZZ_ASKER_H

#include "resolver/engine/kind.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct fuzz_variable {
    const char *name;           /* NULL ends the table */
    const char *text;           /* NULL: the input's next piece */
};

struct fuzz_asker {
    struct mu__asker asker;     /* first: operations cast */
    const struct fuzz_variable *variables;
    const uint8_t *at;          /* the pieces that are left */
    const uint8_t *end;
    int status;
};

/* Unlike assert(), stays in every build. */
static inline void fuzz_must(bool truth, const char *what)
{
    if (truth)
        return;
    (void)fprintf(stderr, "broken: %s\n", what);
    abort();
}

/* The caller frees *ret_text. */
static inline size_t fuzz_piece(struct fuzz_asker *f, char **ret_text)
{
    const uint8_t *zero =
        f->at == f->end ? NULL : memchr(f->at, 0, (size_t)(f->end - f->at));
    size_t size = (size_t)((zero == NULL ? f->end : zero) - f->at);

    *ret_text = malloc(size + 1);
    fuzz_must(*ret_text != NULL, "memory");
    if (size > 0)
        memcpy(*ret_text, f->at, size);
    (*ret_text)[size] = '\0';
    if (zero != NULL)
        f->at = zero + 1;
    return size;
}

static inline void fuzz_variable(struct fuzz_asker *f, struct mu__note *note)
{
    const struct fuzz_variable *variable = f->variables;

    while (variable->name != NULL && strcmp(variable->name, note->question.name) != 0)
        variable++;
    if (variable->name == NULL) {
        note->answer.code = mu_error_set(&note->answer.error, -MU_ENOTFOUND, "not set");
        return;
    }
    if (variable->text == NULL) {
        note->answer.size = fuzz_piece(f, &note->answer.data);
        return;
    }
    note->answer.data = strdup(variable->text);
    fuzz_must(note->answer.data != NULL, "memory");
    note->answer.size = strlen(variable->text);
}

static inline void fuzz_on_ask(struct mu__asker *asker, struct mu__note *note)
{
    struct fuzz_asker *f = (struct fuzz_asker *)asker;

    if (note->question.kind == MU__ASK_VARIABLE) {
        fuzz_variable(f, note);
    } else {
        note->answer.size = fuzz_piece(f, &note->answer.data);
        if (note->question.kind == MU__ASK_HTTP) {
            note->answer.status = f->status;
            (void)snprintf(note->answer.content_type, sizeof note->answer.content_type,
                           "application/json");
            (void)snprintf(note->answer.header, sizeof note->answer.header, "Google");
        }
    }
    mu__note_answer(note);
}

static inline void fuzz_on_cancel(struct mu__asker *asker, struct mu__note *note)
{
    (void)asker;
    (void)note;
}

/* Evaluate: an error in words, or a cluster that can be written. `settings` are "name",
 * "value" pairs that end with NULL; a NULL value is the input's next piece. */
static inline void fuzz_resolve(const struct mu__resolver_kind *kind,
                                const struct fuzz_variable *variables,
                                const char *const *settings, int status,
                                const uint8_t *data, size_t size)
{
    static const struct mu__asker_ops ops = {fuzz_on_ask, fuzz_on_cancel};
    struct fuzz_asker f = {{&ops}, variables, data, data + size, status};
    struct mu__settings set;
    struct mu__notes *notes;
    mu_resolution resolution;
    mu_error error = {0};
    char *json;
    int rv;

    fuzz_must(mu__settings_init(&set, kind->name, kind->settings) == 0 &&
                  mu__notes_new(&f.asker, NULL, NULL, &notes) == 0,
              "memory");
    for (; settings[0] != NULL; settings += 2) {
        char *piece = NULL;

        if (settings[1] == NULL)
            (void)fuzz_piece(&f, &piece);
        fuzz_must(mu__settings_set(&set, settings[0],
                                   settings[1] == NULL ? piece : settings[1],
                                   &error) == 0,
                  "setting");
        free(piece);
    }
    mu_resolution_init(&resolution);
    mu__notes_begin(notes, NULL);
    rv = kind->resolve(notes, &set, &error, &resolution);
    fuzz_must(rv != MU__LATER && rv <= 0, "concluded");
    fuzz_must(rv == 0 || (rv == error.code && error.message[0] != '\0'), "words");
    if (rv == 0 && resolution.cluster != NULL) {
        json = mu_cluster_to_json(resolution.cluster);
        fuzz_must(json != NULL, "a cluster that can be written");
        free(json);
    }
    mu_cluster_free(resolution.cluster);
    mu__notes_free(notes);
    mu__settings_done(&set);
}

#endif
