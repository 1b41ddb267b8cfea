/* A resolver whose every answer is a piece of the input, for fuzz targets: the first
 * request that is answered so gets the first piece, the last piece is for all others.
 * Pieces end with a zero byte. */
#ifndef MUSTER_TESTS_FUZZ_REQUESTER_H
#define MUSTER_TESTS_FUZZ_REQUESTER_H

#include "resolver/engine/kind.h"
#include "tests/support/fake_sources.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct fuzz_variable {
    const char *name; /* NULL ends the table */
    const char *text; /* NULL: the input's next piece */
};

struct fuzz_requester {
    struct fake_sources sources; /* first: it casts */
    const struct fuzz_variable *variables;
    const uint8_t *at; /* the pieces that are left */
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
static inline size_t fuzz_piece(struct fuzz_requester *f, char **ret_text)
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

static inline void fuzz_variable(struct fuzz_requester *f, struct mu__exchange *exchange)
{
    const struct fuzz_variable *variable = f->variables;

    while (variable->name != NULL && strcmp(variable->name, exchange->request.name) != 0)
        variable++;
    if (variable->name == NULL) {
        exchange->answer.code =
            mu_error_set(&exchange->answer.error, -MU_ENOTFOUND, "not set");
        return;
    }
    if (variable->text == NULL) {
        exchange->answer.size = fuzz_piece(f, &exchange->answer.data);
        return;
    }
    exchange->answer.data = strdup(variable->text);
    fuzz_must(exchange->answer.data != NULL, "memory");
    exchange->answer.size = strlen(variable->text);
}

static inline void fuzz_answer(struct fake_sources *sources,
                               struct mu__exchange *exchange)
{
    struct fuzz_requester *f = (struct fuzz_requester *)sources;

    if (exchange->request.kind == MU__REQUEST_VARIABLE) {
        fuzz_variable(f, exchange);
    } else {
        exchange->answer.size = fuzz_piece(f, &exchange->answer.data);
        if (exchange->request.kind == MU__REQUEST_HTTP) {
            exchange->answer.status = f->status;
            (void)snprintf(exchange->answer.content_type,
                           sizeof exchange->answer.content_type, "application/json");
            (void)snprintf(exchange->answer.header, sizeof exchange->answer.header,
                           "Google");
        }
    }
}

/* Evaluate: an error in words, or a cluster that can be written. `settings` are "name",
 * "value" pairs that end with NULL; a NULL value is the input's next piece. */
static inline void fuzz_resolve(const struct mu__resolver_kind *kind,
                                const struct fuzz_variable *variables,
                                const char *const *settings, int status,
                                const uint8_t *data, size_t size)
{
    struct fuzz_requester f = {
        .variables = variables, .at = data, .end = data + size, .status = status};
    struct mu__settings set;
    struct mu__requests *requests;
    mu_resolution resolution;
    mu_error error = {0};
    char *json;
    int rv;

    fake_sources_init(&f.sources, fuzz_answer);
    fuzz_must(mu__settings_init(&set, kind->name, kind->settings) == 0 &&
                  mu__requests_new(&f.sources.base, NULL, &requests) == 0,
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
    rv = kind->resolve(&(struct mu__pass){requests, &set}, &error, &resolution);
    fuzz_must(rv <= 0, "concluded");
    fuzz_must(rv == 0 || (rv == error.code && error.message[0] != '\0'), "words");
    if (rv == 0 && resolution.cluster != NULL) {
        json = mu_cluster_to_json(resolution.cluster);
        fuzz_must(json != NULL, "a cluster that can be written");
        free(json);
    }
    mu_cluster_free(resolution.cluster);
    mu__requests_free(requests);
    mu__settings_done(&set);
}

#endif
