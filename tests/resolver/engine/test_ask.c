/* Notes: what is asked is answered from them, in words without secrets. */
#include "tests/support/script.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static struct script script;
static struct mu__notes *notes;

static void begin(const struct script_row *rows, bool late)
{
    script_init(&script, rows);
    script.late = late;
    assert_int_equal(mu__notes_new(&script.asker, NULL, NULL, &notes), 0);
    mu__notes_begin(notes, NULL);
    mu__notes_begin(notes, "test");
}

static void test_asked_once(void **state)
{
    static const struct script_row rows[] = {SCRIPT_FILE("/f", "text"), SCRIPT_END};
    const struct mu__answer *answer;

    (void)state;
    begin(rows, true);
    assert_null(mu__ask_file(notes, "/f"));
    assert_null(mu__ask_file(notes, "/f"));
    assert_int_equal(mu__notes_pending(notes), 1);
    assert_int_equal(script.asked[MU__ASK_FILE], 1);
    script_answer(&script);
    assert_int_equal(mu__notes_pending(notes), 0);
    answer = mu__ask_file(notes, "/f");
    assert_string_equal(answer->data, "text");
    assert_ptr_equal(mu__ask_file(notes, "/f"), answer);
    mu__notes_free(notes);
}

/* Members of a union may ask the same url as different users: neither sees what only the
 * other may. */
static void test_answers_are_not_shared(void **state)
{
    static const char *const ones[] = {"Authorization: Bearer one", NULL};
    static const char *const twos[] = {"Authorization: Bearer two", NULL};
    static const struct script_row rows[] = {
        SCRIPT(HTTP, "https://h/", "first", .has_header = "Authorization: Bearer one"),
        SCRIPT(HTTP, "https://h/", "second", .has_header = "Authorization: Bearer two"),
        SCRIPT_END,
    };
    struct mu__question one = {.kind = MU__ASK_HTTP, .name = "https://h/",
                               .headers = ones};
    struct mu__question two = one;

    (void)state;
    two.headers = twos;
    begin(rows, false);
    assert_string_equal(mu__ask(notes, &one)->data, "first");
    assert_string_equal(mu__ask(notes, &two)->data, "second");
    assert_string_equal(mu__ask(notes, &one)->data, "first");
    assert_int_equal(script.asked[MU__ASK_HTTP], 2);
    mu__notes_free(notes);
}

static void test_variables(void **state)
{
    static const struct script_row rows[] = {SCRIPT_VARIABLE("SET", "value"),
                                             SCRIPT_END};

    (void)state;
    begin(rows, true);
    assert_string_equal(mu__ask_variable(notes, "SET"), "value");
    assert_null(mu__ask_variable(notes, "UNSET"));
    mu__notes_free(notes);
}

static unsigned parsed_freed;

static void on_parsed_done(void *parsed)
{
    parsed_freed++;
    free(parsed);
}

/* What is there, and could not be copied, is not "not set": nothing may come of this
 * run. */
static void test_variable_without_memory(void **state)
{
    static const struct script_row rows[] = {
        SCRIPT(VARIABLE, "A", "out of memory", .code = -MU_ENOMEM), SCRIPT_END};

    (void)state;
    begin(rows, false);
    assert_null(mu__ask_variable(notes, "B"));
    assert_false(mu__notes_starved(notes));
    for (unsigned runs = 0; runs < 2; runs++) {
        mu__notes_begin(notes, NULL);
        assert_null(mu__ask_variable(notes, "A"));
        assert_true(mu__notes_starved(notes));
    }
    mu__notes_free(notes);
}

static void test_parsed_is_kept(void **state)
{
    static const struct script_row rows[] = {SCRIPT_FILE("/f", "text"), SCRIPT_END};
    void *parsed = malloc(1);

    (void)state;
    assert_non_null(parsed);
    parsed_freed = 0;
    begin(rows, false);
    mu__answer_keep(mu__ask_file(notes, "/f"), parsed, on_parsed_done);
    assert_ptr_equal(mu__ask_file(notes, "/f")->parsed, parsed);
    assert_string_equal(mu__ask_file(notes, "/f")->data, "");   /* the bytes are gone */
    assert_int_equal(mu__ask_file(notes, "/f")->size, 4);
    mu__notes_free(notes);
    assert_int_equal(parsed_freed, 1);
}

static void test_what_is_said(void **state)
{
    (void)state;
    begin(NULL, false);
    mu__notes_say(notes, "%s is not set", "X");
    mu__notes_begin(notes, "other");
    mu__notes_say(notes, "nothing");
    assert_string_equal(mu__notes_said(notes, 0), "test: X is not set");
    assert_string_equal(mu__notes_said(notes, 1), "other: nothing");
    assert_null(mu__notes_said(notes, 2));
    assert_int_equal(mu__notes_runs(notes), 1);
    mu__notes_begin(notes, NULL);
    assert_int_equal(mu__notes_runs(notes), 2);
    assert_null(mu__notes_said(notes, 0));
    for (unsigned i = 0; i < 300; i++)
        mu__notes_say(notes, "%u", i);
    assert_non_null(mu__notes_said(notes, 255));
    assert_null(mu__notes_said(notes, 256));
    mu__notes_free(notes);
}

/* ---- Words ---- */

static void test_words(void **state)
{
    static const struct {
        struct mu__question question;
        struct script_row row;
        const char *words;
    } rows[] = {
        {{.kind = MU__ASK_VARIABLE, .name = "X"},
         SCRIPT_VARIABLE("X", "secret"), "variable X: set, 6 bytes"},
        {{.kind = MU__ASK_VARIABLE, .name = "Y"}, SCRIPT_VARIABLE("X", "secret"),
         "variable Y: not set"},
        {{.kind = MU__ASK_FILE, .name = "/f"}, SCRIPT_FILE("/f", "secret"),
         "file /f: 6 bytes"},
        {{.kind = MU__ASK_FILE, .name = "/g"}, SCRIPT_FILE("/f", "secret"),
         "file /g: not there"},
        {{.kind = MU__ASK_FOLDER, .name = "/d"},
         SCRIPT(FOLDER, "/d", "a\nb\n"), "folder /d: 4 bytes"},
        {{.kind = MU__ASK_ADDRESSES, .name = "h"},
         SCRIPT(ADDRESSES, "h", .code = -MU_EDEADLINE,
                .text = "addresses of h: no answer in time"),
         "addresses of h: no answer in time"},
        {{.kind = MU__ASK_HTTP, .name = "https://me:secret@h:1/p?token=secret#secret",
          .method = "POST", .body = "secret", .body_size = 6, .secret = "secret"},
         SCRIPT(HTTP, "https://me:secret@h:1/p?token=secret#secret", "secret",
                .status = 403, .method = "POST"),
         "POST https://h:1/p: status 403, 6 bytes"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const struct script_row answers[] = {rows[i].row, SCRIPT_END};
        char words[400];

        begin(answers, false);
        (void)mu__ask(notes, &rows[i].question);
        mu__note_words(mu__notes_at(notes, 0), words, sizeof words);
        assert_string_equal(words, rows[i].words);
        assert_null(strstr(words, "secret"));
        mu__notes_free(notes);
    }
}

static void test_checks(void **state)
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

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const struct script_row answers[] = {
            {.kind = MU__ASK_HTTP, .name = "http://h/", .text = rows[i].body,
             .status = rows[i].status},
            SCRIPT_END,
        };
        const struct mu__question question = {.kind = MU__ASK_HTTP, .name = "http://h/"};
        mu_error error = {0};

        begin(answers, false);
        assert_int_equal(mu__answer_check(mu__ask(notes, &question), "it", &error),
                         rows[i].rv);
        assert_string_equal(error.message, rows[i].words);
        mu__notes_free(notes);
    }
}

/* A server may repeat what it was sent: that is not shown. */
static void test_checks_show_no_secret(void **state)
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
    const struct mu__question question = {.kind = MU__ASK_HTTP, .name = "http://h/",
                                          .headers = headers};

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const struct script_row answers[] = {
            {.kind = MU__ASK_HTTP, .name = "http://h/", .text = rows[i].body,
             .status = 401},
            SCRIPT_END,
        };
        mu_error error;

        begin(answers, false);
        assert_int_equal(mu__answer_check(mu__ask(notes, &question), "it", &error),
                         -MU_EUNAUTHENTICATED);
        assert_string_equal(error.message, rows[i].words);
        mu__notes_free(notes);
    }
}

/* Ten thousand names are looked up in each run: no run may search through all. */
static void test_many_questions(void **state)
{
    enum { COUNT = 20000, RUNS = 20 };

    const struct mu__note *note;
    char name[32];

    (void)state;
    begin(NULL, false);
    for (unsigned run = 0; run < RUNS; run++) {
        for (unsigned i = 0; i < COUNT; i++) {
            const struct mu__question one = {.kind = MU__ASK_ADDRESSES, .name = name};

            (void)snprintf(name, sizeof name, "worker-%u.service", i);
            assert_int_equal(mu__ask(notes, &one)->code, -MU_ENOTFOUND);
        }
    }
    assert_int_equal(script.asked[MU__ASK_ADDRESSES], COUNT);
    for (unsigned i = 0; (note = mu__notes_at(notes, i)) != NULL; i++) {
        (void)snprintf(name, sizeof name, "worker-%u.service", i);
        assert_string_equal(note->question.name, name);
    }
    mu__notes_free(notes);
}

/* Who never comes to an end does not fill the memory. */
static void test_bound(void **state)
{
    struct mu__question question = {.kind = MU__ASK_FILE, .name = "/f"};
    const struct mu__answer *answer;

    (void)state;
    begin(NULL, false);
    for (; question.again < MU__ASK_QUESTIONS_MAX; question.again++)
        assert_int_equal(mu__ask(notes, &question)->code, -MU_ENOTFOUND);
    answer = mu__ask(notes, &question);
    assert_int_equal(answer->code, -MU_EEXHAUSTED);
    assert_string_equal(answer->error.message,
                        "expected at most 70000 questions of one evaluation");
    question.again = 7;
    assert_int_equal(mu__ask(notes, &question)->code, -MU_ENOTFOUND);
    mu__notes_free(notes);
}

/* ---- Giving up ---- */

static void test_given_up(void **state)
{
    const struct mu__question question = {.kind = MU__ASK_HTTP, .name = "http://h/?q=s"};
    const struct mu__answer *answer;

    (void)state;
    begin(NULL, true);
    assert_null(mu__ask(notes, &question));
    mu__note_give_up(mu__notes_at(notes, 0));
    assert_int_equal(script.waiting_count, 0);
    answer = mu__ask(notes, &question);
    assert_int_equal(answer->code, -MU_EDEADLINE);
    assert_string_equal(answer->error.message, "http://h/: no answer in time");
    mu__notes_free(notes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_asked_once),
        cmocka_unit_test(test_answers_are_not_shared),
        cmocka_unit_test(test_variables),
        cmocka_unit_test(test_variable_without_memory),
        cmocka_unit_test(test_parsed_is_kept),
        cmocka_unit_test(test_what_is_said),
        cmocka_unit_test(test_words),
        cmocka_unit_test(test_checks),
        cmocka_unit_test(test_checks_show_no_secret),
        cmocka_unit_test(test_many_questions),
        cmocka_unit_test(test_bound),
        cmocka_unit_test(test_given_up),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
