/* Asking what the resolvers of Google's cloud share, by rows. */
#ifndef MU_TESTS_GOOGLE_H
#define MU_TESTS_GOOGLE_H

#include "resolver/cloud/google/metadata.h"
#include "tests/support/script.h"
#include "tests/support/test.h"

#define META "http://metadata.google.internal/computeMetadata/v1/"
#define ROW_GCE SCRIPT_FILE("/sys/class/dmi/id/product_name", "Google Compute Engine\n")
#define METADATA_TOKEN META "instance/service-accounts/default/token"
#define TOKEN(word) "{\"access_token\": \"" word "\", \"token_type\": \"Bearer\"}"

/* No words of what was asked may have what is secret. */
static inline void check_words(struct mu__requests *requests, const mu_error *error)
{
    char line[1024];

    for (size_t i = 0; mu__requests_at(requests, i) != NULL; i++) {
        mu__exchange_describe(mu__requests_at(requests, i), line, sizeof line);
        assert_null(strstr(line, "SECRET"));
    }
    for (size_t i = 0; mu__requests_explanation(requests, i) != NULL; i++)
        assert_null(strstr(mu__requests_explanation(requests, i), "SECRET"));
    assert_null(strstr(error->message, "SECRET"));
}

/* What is asked for; the result is a text. */
typedef int (*request_fn)(const struct mu__google *google, mu_error *ret_error,
                          char **ret_text);

static inline int run(request_fn request, const struct script_row *rows,
                      struct mu__google google, mu_error *ret_error, char **ret_text)
{
    struct mu__requests *requests;
    struct script script;
    int rv;

    *ret_error = (mu_error){0};
    script_init(&script, rows);
    assert_int_equal(mu__requests_new(&script.sources.base, NULL, &requests), 0);
    google.pass =
        &(struct mu__pass){requests, &(struct mu__settings){.resolver = "test"}};
    rv = request(&google, ret_error, ret_text);
    check_words(requests, ret_error);
    mu__requests_free(requests);
    return rv;
}

static inline int first_token(const struct mu__google *google, mu_error *ret_error,
                              char **ret_text)
{
    return mu__google_token(google, 0, ret_error, ret_text);
}

static inline int second_token(const struct mu__google *google, mu_error *ret_error,
                               char **ret_text)
{
    return mu__google_token(google, 1, ret_error, ret_text);
}

static inline int copy_text(const char *text, char **ret_text)
{
    *ret_text = strdup(text);
    assert_non_null(*ret_text);
    return 0;
}

/* The member "m" of an API's answer. */
static inline int api(const struct mu__google *google, mu_error *ret_error,
                      char **ret_text)
{
    const char *text = NULL;
    const cJSON *root;
    int rv = mu__google_send(google,
                             &(struct mu__google_request){.url = "https://api.example/a",
                                                          .what = "thing"},
                             ret_error, &root);

    if (rv == 0)
        rv = mu__google_text(root, "m", "thing", ret_error, &text);
    return rv != 0 ? rv : copy_text(text == NULL ? "" : text, ret_text);
}

static inline void expect(request_fn request, const struct script_row *rows,
                          struct mu__google google, const char *text)
{
    char *got = NULL;
    mu_error error;

    if (run(request, rows, google, &error, &got) != 0)
        fail_msg("%s", error.message);
    assert_string_equal(got, text);
    free(got);
}

static inline void expect_error(request_fn request, const struct script_row *rows,
                                struct mu__google google, int code, const char *words)
{
    char *got = NULL;
    mu_error error;

    assert_int_equal(run(request, rows, google, &error, &got), code);
    assert_null(got);
    if (strstr(error.message, words) == NULL)
        fail_msg("\"%s\" is not in \"%s\"", words, error.message);
}

#endif
