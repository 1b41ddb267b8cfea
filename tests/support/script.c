#include "tests/support/script.h"

#include "resolver/engine/request_call.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { RUNS_MAX = 1000 };

/* ---- Answering ---- */

static bool has_header(const struct mu__request *request, const char *start)
{
    for (size_t i = 0; request->headers != NULL && request->headers[i] != NULL; i++)
        if (strncmp(request->headers[i], start, strlen(start)) == 0)
            return true;
    return false;
}

static bool has_body(const struct mu__request *request, const char *part)
{
    char *text;
    bool found;

    if (request->body == NULL)
        return false;
    text = calloc(1, request->body_size + 1);
    assert_non_null(text);
    memcpy(text, request->body, request->body_size);
    for (size_t i = 0; i < request->body_size; i++)
        text[i] = (char)(text[i] == '\0' ? '\n' : text[i]);
    found = strstr(text, part) != NULL;
    free(text);
    return found;
}

static bool fits(const struct script_row *row, const struct mu__request *request)
{
    const char *method = request->method == NULL ? "GET" : request->method;

    if (row->kind != request->kind || strcmp(row->name, request->name) != 0 ||
        row->again != request->again)
        return false;
    if (row->body != NULL && !has_body(request, row->body))
        return false;
    if (row->has_header != NULL && !has_header(request, row->has_header))
        return false;
    return row->kind != MU__REQUEST_HTTP ||
           strcmp(row->method == NULL ? "GET" : row->method, method) == 0;
}

static void give_text(struct mu__answer *answer, const char *text)
{
    answer->data = strdup(text);
    assert_non_null(answer->data);
    answer->size = strlen(text);
}

static void give_row(const struct script_row *row, struct mu__answer *answer)
{
    if (row->code != 0) {
        answer->code = mu_error_set(&answer->error, row->code, "%s",
                                    row->text == NULL ? "scripted" : row->text);
        return;
    }
    if (row->kind == MU__REQUEST_HTTP) {
        answer->status = row->status == 0 ? 200 : row->status;
        (void)snprintf(answer->content_type, sizeof answer->content_type, "%s",
                       row->content_type == NULL ? "application/json"
                                                 : row->content_type);
        (void)snprintf(answer->header, sizeof answer->header, "%s",
                       row->header == NULL ? "" : row->header);
    }
    give_text(answer, row->text == NULL ? "" : row->text);
}

static void answer(struct script *script, struct mu__exchange *exchange)
{
    const struct mu__request *request = &exchange->request;
    const struct script_row *row = script->rows;

    while (row != NULL && row->name != NULL && !fits(row, request))
        row++;
    if (request->kind == MU__REQUEST_CALL) {
        mu__request_call_run(request->call);
        give_text(&exchange->answer, "");
    } else if (row != NULL && row->name != NULL) {
        give_row(row, &exchange->answer);
    } else if (request->kind == MU__REQUEST_CLOCK) {
        give_text(&exchange->answer,
                  script->clock == NULL ? "1700000000" : script->clock);
    } else if (request->kind == MU__REQUEST_HOST_NAME) {
        give_text(&exchange->answer,
                  script->host_name == NULL ? "this-host" : script->host_name);
    } else {
        if (request->kind == MU__REQUEST_HTTP)
            fail_msg("nobody thought of %s %s",
                     request->method == NULL ? "GET" : request->method, request->name);
        exchange->answer.code = mu_error_set(&exchange->answer.error, -MU_ENOTFOUND,
                                             "\"%s\" is not there", request->name);
    }
    mu__exchange_answer(exchange);
}

static bool at_once(enum mu__request_kind kind)
{
    return kind == MU__REQUEST_VARIABLE || kind == MU__REQUEST_CLOCK ||
           kind == MU__REQUEST_HOST_NAME;
}

static void on_send(struct mu__requester *requester, struct mu__exchange *exchange)
{
    struct script *script = (struct script *)requester;

    script->requested[exchange->request.kind]++;
    if (!script->late || at_once(exchange->request.kind)) {
        answer(script, exchange);
        return;
    }
    assert_true(script->waiting_count < 256);
    script->waiting[script->waiting_count++] = exchange;
}

static void on_cancel(struct mu__requester *requester, struct mu__exchange *exchange)
{
    struct script *script = (struct script *)requester;

    for (unsigned i = 0; i < script->waiting_count; i++)
        if (script->waiting[i] == exchange)
            script->waiting[i] = script->waiting[--script->waiting_count];
}

void script_init(struct script *script, const struct script_row *rows)
{
    static const struct mu__requester_ops ops = {on_send, on_cancel};

    *script = (struct script){.requester.ops = &ops, .rows = rows};
}

/* The last one first: nothing may depend on the order. */
void script_answer(struct script *script)
{
    while (script->waiting_count > 0)
        answer(script, script->waiting[--script->waiting_count]);
}

/* ---- Evaluating ---- */

static void set_all(struct mu__settings *settings, const char *const *texts)
{
    mu_error error;
    char name[64];

    for (; texts != NULL && *texts != NULL; texts++) {
        const char *equals = strchr(*texts, '=');

        assert_non_null(equals);
        (void)snprintf(name, sizeof name, "%.*s", (int)(equals - *texts), *texts);
        if (mu__settings_set(settings, name, equals + 1, &error) != 0)
            fail_msg("%s", error.message);
    }
}

static int run(const struct mu__resolver_kind *kind, const struct mu__pass *pass,
               bool detects, mu_error *ret_error, mu_resolution *ret_resolution)
{
    mu_resolution resolution;
    int rv;

    mu__requests_begin_pass(pass->requests, NULL);
    mu__requests_begin_pass(pass->requests, kind->name);
    if (detects)
        return kind->detect(pass, ret_error);
    mu_resolution_init(&resolution);
    rv = kind->resolve(pass, ret_error, &resolution);
    if (rv == 0)
        *ret_resolution = resolution;
    else
        mu_cluster_free(resolution.cluster);
    return rv;
}

static int evaluate(const struct mu__resolver_kind *kind, const struct script_row *rows,
                    const char *const *texts, bool late, bool detects,
                    mu_error *ret_error, mu_resolution *ret_resolution)
{
    struct mu__settings settings;
    struct mu__requests *requests;
    struct script script;
    int rv = MU__LATER;

    script_init(&script, rows);
    script.late = late;
    assert_int_equal(mu__requests_new(&script.requester, NULL, NULL, &requests), 0);
    assert_int_equal(mu__settings_init(&settings, kind->name, kind->settings), 0);
    set_all(&settings, texts);
    *ret_error = (mu_error){0};
    for (unsigned i = 0; rv == MU__LATER; i++) {
        assert_true(i < RUNS_MAX);
        rv = run(kind, &(struct mu__pass){requests, &settings}, detects, ret_error,
                 ret_resolution);
        if (rv == MU__LATER)
            assert_true(script.waiting_count > 0);
        script_answer(&script);
    }
    if (rv < 0) {
        assert_int_equal(ret_error->code, rv);
        assert_true(ret_error->message[0] != '\0');
    }
    mu__requests_free(requests);
    mu__settings_done(&settings);
    return rv;
}

static char *json_of(const mu_resolution *resolution)
{
    char *json = resolution->cluster == NULL ? strdup("")
                                             : mu_cluster_to_json(resolution->cluster);

    assert_non_null(json);
    return json;
}

static void expect_same(const mu_resolution *a, const mu_resolution *b)
{
    char *first = json_of(a);
    char *second = json_of(b);

    assert_string_equal(first, second);
    assert_string_equal(a->task_type, b->task_type);
    assert_int_equal(a->task_index, b->task_index);
    assert_string_equal(a->master, b->master);
    assert_string_equal(a->visible_devices, b->visible_devices);
    assert_int_equal(a->partition, b->partition);
    free(first);
    free(second);
}

int script_resolve(const struct mu__resolver_kind *kind, const struct script_row *rows,
                   const char *const *settings, mu_error *ret_error,
                   mu_resolution *ret_resolution)
{
    mu_resolution late;
    mu_error error;
    int rv = evaluate(kind, rows, settings, false, false, ret_error, ret_resolution);

    assert_int_equal(evaluate(kind, rows, settings, true, false, &error, &late), rv);
    if (rv != 0) {
        assert_string_equal(error.message, ret_error->message);
        return rv;
    }
    expect_same(ret_resolution, &late);
    mu_cluster_free(late.cluster);
    return 0;
}

int script_detect(const struct mu__resolver_kind *kind, const struct script_row *rows,
                  const char *const *settings, mu_error *ret_why)
{
    mu_error error;
    int rv = evaluate(kind, rows, settings, false, true, ret_why, NULL);

    assert_int_equal(evaluate(kind, rows, settings, true, true, &error, NULL), rv);
    assert_true(rv != 0 || ret_why->message[0] != '\0');
    return rv;
}

void script_expect(const struct mu__resolver_kind *kind, const struct script_row *rows,
                   const char *const *settings, const char *cluster, const char *task)
{
    mu_resolution resolution;
    mu_error error;
    char got[64] = "";
    char *json;

    if (script_resolve(kind, rows, settings, &error, &resolution) != 0)
        fail_msg("%s", error.message);
    json = json_of(&resolution);
    assert_string_equal(json, cluster);
    if (resolution.task_type[0] != '\0')
        (void)snprintf(got, sizeof got, "%s:%d", resolution.task_type,
                       resolution.task_index);
    assert_string_equal(got, task);
    free(json);
    mu_cluster_free(resolution.cluster);
}

void script_expect_error(const struct mu__resolver_kind *kind,
                         const struct script_row *rows, const char *const *settings,
                         int code, const char *words)
{
    mu_resolution resolution;
    mu_error error;

    assert_int_equal(script_resolve(kind, rows, settings, &error, &resolution), code);
    if (strstr(error.message, words) == NULL)
        fail_msg("\"%s\" is not in \"%s\"", words, error.message);
}

/* ---- Announcing ---- */

enum { OWN_BYTES = 128 };

struct announcing {
    const struct mu__resolver_kind *kind;
    const struct script_row *rows;
    const char *const *texts;
    const mu_announcement *announcement;
    bool withdraws;
    int index;
    uint32_t again_ms;
};

static int announce_once(struct announcing *announcing, const struct mu__pass *pass,
                         void **own, mu_error *ret_error)
{
    mu__requests_begin_pass(pass->requests, NULL);
    mu__requests_begin_pass(pass->requests, announcing->kind->name);
    if (announcing->withdraws)
        return announcing->kind->withdraw(pass, announcing->announcement, ret_error, own);
    return announcing->kind->announce(pass, announcing->announcement, ret_error, own,
                                      &announcing->index, &announcing->again_ms);
}

static int announce(struct announcing *announcing, bool late, void **own,
                    mu_error *ret_error)
{
    const char *name = announcing->kind->name;
    struct mu__settings settings;
    struct mu__requests *requests;
    struct script script;
    int rv = MU__LATER;

    script_init(&script, announcing->rows);
    script.late = late;
    assert_int_equal(mu__requests_new(&script.requester, NULL, NULL, &requests), 0);
    assert_int_equal(mu__settings_init(&settings, name, announcing->kind->settings), 0);
    set_all(&settings, announcing->texts);
    *ret_error = (mu_error){0};
    for (unsigned i = 0; rv == MU__LATER; i++) {
        assert_true(i < RUNS_MAX);
        rv = announce_once(announcing, &(struct mu__pass){requests, &settings}, own,
                           ret_error);
        assert_true(rv != MU__LATER || script.waiting_count > 0);
        script_answer(&script);
    }
    assert_int_equal(rv < 0 ? ret_error->code : 0, rv);
    mu__requests_free(requests);
    mu__settings_done(&settings);
    return rv;
}

static int announce_twice(struct announcing *announcing, void **own, mu_error *ret_error)
{
    struct announcing late = *announcing;
    void *late_own = NULL;
    mu_error error;
    int rv;

    if (*own != NULL) {
        late_own = malloc(OWN_BYTES);
        assert_non_null(late_own);
        *own = realloc(*own, OWN_BYTES);
        assert_non_null(*own);
        memcpy(late_own, *own, OWN_BYTES);
    }
    rv = announce(announcing, false, own, ret_error);
    assert_int_equal(announce(&late, true, &late_own, &error), rv);
    assert_string_equal(error.message, ret_error->message);
    assert_int_equal(late.index, announcing->index);
    free(late_own);
    return rv;
}

int script_announce(const struct mu__resolver_kind *kind, const struct script_row *rows,
                    const char *const *settings, const mu_announcement *announcement,
                    void **own, mu_error *ret_error, int *ret_index,
                    uint32_t *ret_again_ms)
{
    struct announcing announcing = {kind, rows, settings, announcement, .index = -1};
    int rv = announce_twice(&announcing, own, ret_error);

    *ret_index = announcing.index;
    *ret_again_ms = announcing.again_ms;
    return rv;
}

int script_withdraw(const struct mu__resolver_kind *kind, const struct script_row *rows,
                    const char *const *settings, const mu_announcement *announcement,
                    void **own, mu_error *ret_error)
{
    struct announcing announcing = {kind, rows, settings, announcement,
                                    .withdraws = true};

    return announce_twice(&announcing, own, ret_error);
}
