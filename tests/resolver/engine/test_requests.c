/* Requests: what is asked is answered from them, in words without secrets. */
#include "tests/support/script.h"
#include "tests/support/test.h"

static struct script script;
static struct mu__requests *requests;

static void begin(const struct script_row *rows)
{
    script_init(&script, rows);
    assert_int_equal(mu__requests_new(&script.sources.base, NULL, &requests), 0);
    mu__requests_begin_pass(requests, "test");
}

TEST(test_asked_once)
{
    static const struct script_row rows[] = {SCRIPT_FILE("/f", "text"), SCRIPT_END};
    const struct mu__answer *answer;

    begin(rows);
    answer = mu__request_file(requests, "/f");
    assert_string_equal(answer->data, "text");
    assert_ptr_equal(mu__request_file(requests, "/f"), answer);
    assert_true(mu__requests_at(requests, 0)->settled);
    assert_null(mu__requests_at(requests, 1));
    assert_int_equal(script.requested[MU__REQUEST_FILE], 1);
    mu__requests_free(requests);
}

/* Some that were asked before, one twice. */
TEST(test_several_at_a_time)
{
    static const struct script_row rows[] = {SCRIPT_FILE("/a", "x"),
                                             SCRIPT_FILE("/b", "y"), SCRIPT_END};
    const struct mu__request list[] = {{.kind = MU__REQUEST_FILE, .name = "/a"},
                                       {.kind = MU__REQUEST_FILE, .name = "/b"},
                                       {.kind = MU__REQUEST_FILE, .name = "/c"},
                                       {.kind = MU__REQUEST_FILE, .name = "/b"}};

    begin(rows);
    assert_string_equal(mu__request_file(requests, "/a")->data, "x");
    mu__requests_get_all(requests, list, 4);
    assert_int_equal(script.requested[MU__REQUEST_FILE], 3);
    assert_string_equal(mu__request_file(requests, "/b")->data, "y");
    assert_int_equal(mu__request_file(requests, "/c")->code, -MU_ENOTFOUND);
    assert_int_equal(script.requested[MU__REQUEST_FILE], 3);
    mu__requests_get_all(requests, list, 4);
    mu__requests_get_all(requests, NULL, 0);
    assert_int_equal(script.requested[MU__REQUEST_FILE], 3);
    mu__requests_free(requests);
}

/* Members of a union may ask the same url as different users: neither sees what only the
 * other may. */
TEST(test_answers_are_not_shared)
{
    static const char *const ones[] = {"Authorization: Bearer one", NULL};
    static const char *const twos[] = {"Authorization: Bearer two", NULL};
    static const struct script_row rows[] = {
        SCRIPT(HTTP, "https://h/", "first", .has_header = "Authorization: Bearer one"),
        SCRIPT(HTTP, "https://h/", "second", .has_header = "Authorization: Bearer two"),
        SCRIPT_END,
    };
    struct mu__request one = {
        .kind = MU__REQUEST_HTTP, .name = "https://h/", .headers = ones};
    struct mu__request two = one;

    two.headers = twos;
    begin(rows);
    assert_string_equal(mu__requests_get(requests, &one)->data, "first");
    assert_string_equal(mu__requests_get(requests, &two)->data, "second");
    assert_string_equal(mu__requests_get(requests, &one)->data, "first");
    assert_int_equal(script.requested[MU__REQUEST_HTTP], 2);
    mu__requests_free(requests);
}

TEST(test_variables)
{
    static const struct script_row rows[] = {SCRIPT_VARIABLE("SET", "value"), SCRIPT_END};

    begin(rows);
    assert_string_equal(mu__request_variable(requests, "SET"), "value");
    assert_null(mu__request_variable(requests, "UNSET"));
    mu__requests_free(requests);
}

static unsigned parsed_freed;

static void on_parsed_done(void *parsed)
{
    parsed_freed++;
    free(parsed);
}

/* What is there, and could not be copied, is not "not set": nothing may come of this
 * run. */
TEST(test_variable_without_memory)
{
    static const struct script_row rows[] = {
        SCRIPT(VARIABLE, "A", "out of memory", .code = -MU_ENOMEM), SCRIPT_END};

    begin(rows);
    assert_null(mu__request_variable(requests, "B"));
    assert_false(mu__requests_out_of_memory(requests));
    for (unsigned runs = 0; runs < 2; runs++) {
        assert_null(mu__request_variable(requests, "A"));
        assert_true(mu__requests_out_of_memory(requests));
    }
    mu__requests_free(requests);
}

TEST(test_parsed_is_kept)
{
    static const struct script_row rows[] = {SCRIPT_FILE("/f", "text"), SCRIPT_END};
    void *parsed = malloc(1);

    assert_non_null(parsed);
    parsed_freed = 0;
    begin(rows);
    mu__answer_set_parsed(mu__request_file(requests, "/f"), parsed, on_parsed_done);
    assert_ptr_equal(mu__request_file(requests, "/f")->parsed, parsed);
    assert_string_equal(mu__request_file(requests, "/f")->data,
                        ""); /* the bytes are gone */
    assert_int_equal(mu__request_file(requests, "/f")->size, 4);
    mu__requests_free(requests);
    assert_int_equal(parsed_freed, 1);
}

TEST(test_what_is_said)
{
    begin(NULL);
    mu__requests_explain(requests, "%s is not set", "X");
    mu__requests_begin_pass(requests, "other");
    mu__requests_explain(requests, "nothing");
    assert_string_equal(mu__requests_explanation(requests, 0), "test: X is not set");
    assert_string_equal(mu__requests_explanation(requests, 1), "other: nothing");
    assert_null(mu__requests_explanation(requests, 2));
    for (unsigned i = 0; i < 300; i++)
        mu__requests_explain(requests, "%u", i);
    assert_non_null(mu__requests_explanation(requests, 255));
    assert_null(mu__requests_explanation(requests, 256));
    mu__requests_free(requests);
}

/* ---- Words ---- */

TEST(test_words)
{
    static const struct {
        struct mu__request request;
        struct script_row row;
        const char *words;
    } rows[] = {
        {{.kind = MU__REQUEST_VARIABLE, .name = "X"},
         SCRIPT_VARIABLE("X", "secret"),
         "variable X: set, 6 bytes"},
        {{.kind = MU__REQUEST_VARIABLE, .name = "Y"},
         SCRIPT_VARIABLE("X", "secret"),
         "variable Y: not set"},
        {{.kind = MU__REQUEST_FILE, .name = "/f"},
         SCRIPT_FILE("/f", "secret"),
         "file /f: 6 bytes"},
        {{.kind = MU__REQUEST_FILE, .name = "/g"},
         SCRIPT_FILE("/f", "secret"),
         "file /g: not there"},
        {{.kind = MU__REQUEST_FOLDER, .name = "/d"},
         SCRIPT(FOLDER, "/d", "a\nb\n"),
         "folder /d: 4 bytes"},
        {{.kind = MU__REQUEST_ADDRESSES, .name = "h"},
         SCRIPT(ADDRESSES, "h", .code = -MU_EDEADLINE,
                .text = "addresses of h: no answer in time"),
         "addresses of h: no answer in time"},
        {{.kind = MU__REQUEST_HTTP,
          .name = "https://me:secret@h:1/p?token=secret#secret",
          .method = "POST",
          .body = "secret",
          .body_size = 6,
          .secret = "secret"},
         SCRIPT(HTTP, "https://me:secret@h:1/p?token=secret#secret", "secret",
                .status = 403, .method = "POST"),
         "POST https://h:1/p: status 403, 6 bytes"},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const struct script_row answers[] = {rows[i].row, SCRIPT_END};
        char words[400];

        begin(answers);
        (void)mu__requests_get(requests, &rows[i].request);
        mu__exchange_describe(mu__requests_at(requests, 0), words, sizeof words);
        assert_string_equal(words, rows[i].words);
        assert_null(strstr(words, "secret"));
        mu__requests_free(requests);
    }
}

TEST(test_checks)
{
    static const struct {
        int status;
        const char *body;
        int rv;
        const char *words;
    } rows[] = {
        {200, "", 0, ""},
        {299, "", 0, ""},
        {302, "", -MU_EINVALID, "it: status 302: a redirect, which is not followed"},
        {400, "{\"error\":{\"message\":\"no such zone\"}}", -MU_EINVALID,
         "it: status 400: the server does not accept the request; it says "
         "\"no such zone\""},
        {401, "", -MU_EUNAUTHENTICATED,
         "it: status 401: the server does not accept the credentials"},
        {403, "{\"message\":\"pods is forbidden\"}", -MU_EPERMISSION,
         "it: status 403: the credentials do not permit this; it says "
         "\"pods is forbidden\""},
        {404, "[]", -MU_ENOTFOUND, "it: status 404: there is no such thing"},
        {408, "", -MU_EUNAVAILABLE,
         "it: status 408: the server has waited too long for the request"},
        {429, "", -MU_EUNAVAILABLE, "it: status 429: too many requests"},
        {500, "{\"message\":7}", -MU_EUNAVAILABLE,
         "it: status 500: the server has failed"},
        {418, "", -MU_EINVALID, "it: status 418: unexpected"},
        {1000000, "", -MU_EINVALID, "it: status 1000000: unexpected"},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const struct script_row answers[] = {
            {.kind = MU__REQUEST_HTTP,
             .name = "http://h/",
             .text = rows[i].body,
             .status = rows[i].status},
            SCRIPT_END,
        };
        const struct mu__request request = {.kind = MU__REQUEST_HTTP,
                                            .name = "http://h/"};
        mu_error error = {0};

        begin(answers);
        assert_int_equal(mu__answer_check(mu__requests_get(requests, &request), "it",
                                          &error),
                         rows[i].rv);
        assert_string_equal(error.message, rows[i].words);
        mu__requests_free(requests);
    }
}

/* A server may repeat what it was sent: that is not shown. */
TEST(test_checks_show_no_secret)
{
    static const char *const headers[] = {"Accept: application/json",
                                          "Authorization: Bearer secret-token", NULL};
    static const struct {
        const char *body;
        const char *words;
    } rows[] = {
        {"{\"message\":\"bad token secret-token\"}",
         "it: status 401: the server does not accept the credentials"},
        {"{\"message\":\"no Bearer of application/json\"}",
         "it: status 401: the server does not accept the credentials; it says "
         "\"no Bearer of application/json\""},
    };
    const struct mu__request request = {
        .kind = MU__REQUEST_HTTP, .name = "http://h/", .headers = headers};

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const struct script_row answers[] = {
            {.kind = MU__REQUEST_HTTP,
             .name = "http://h/",
             .text = rows[i].body,
             .status = 401},
            SCRIPT_END,
        };
        mu_error error;

        begin(answers);
        assert_int_equal(mu__answer_check(mu__requests_get(requests, &request), "it",
                                          &error),
                         -MU_EUNAUTHENTICATED);
        assert_string_equal(error.message, rows[i].words);
        mu__requests_free(requests);
    }
}

/* Ten thousand names are looked up in each run: no run may search through all. */
TEST(test_many_questions)
{
    enum { COUNT = 20000, RUNS = 20 };

    const struct mu__exchange *exchange;
    char name[32];

    begin(NULL);
    for (unsigned run = 0; run < RUNS; run++) {
        for (unsigned i = 0; i < COUNT; i++) {
            const struct mu__request one = {.kind = MU__REQUEST_ADDRESSES, .name = name};

            (void)snprintf(name, sizeof name, "worker-%u.service", i);
            assert_int_equal(mu__requests_get(requests, &one)->code, -MU_ENOTFOUND);
        }
    }
    assert_int_equal(script.requested[MU__REQUEST_ADDRESSES], COUNT);
    for (unsigned i = 0; (exchange = mu__requests_at(requests, i)) != NULL; i++) {
        (void)snprintf(name, sizeof name, "worker-%u.service", i);
        assert_string_equal(exchange->request.name, name);
    }
    mu__requests_free(requests);
}

/* Who never comes to an end does not fill the memory. */
TEST(test_bound)
{
    struct mu__request request = {.kind = MU__REQUEST_FILE, .name = "/f"};
    const struct mu__answer *answer;

    begin(NULL);
    for (; request.again < MU__REQUESTS_MAX; request.again++)
        assert_int_equal(mu__requests_get(requests, &request)->code, -MU_ENOTFOUND);
    answer = mu__requests_get(requests, &request);
    assert_int_equal(answer->code, -MU_EEXHAUSTED);
    assert_string_equal(answer->error.message,
                        "expected at most 70000 requests of one query");
    request.again = 7;
    assert_int_equal(mu__requests_get(requests, &request)->code, -MU_ENOTFOUND);
    mu__requests_free(requests);
}

TEST_PROGRAM()
