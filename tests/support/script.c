#include "tests/support/script.h"

#include "resolver/engine/request_call.h"
#include "tests/support/test.h"

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

static void on_request(struct fake_sources *sources, struct mu__exchange *exchange)
{
    struct script *script = (struct script *)sources;
    const struct mu__request *request = &exchange->request;
    const struct script_row *row = script->rows;

    script->requested[request->kind]++;
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
}

void script_init(struct script *script, const struct script_row *rows)
{
    *script = (struct script){.rows = rows};
    fake_sources_init(&script->sources, on_request);
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
                    const char *const *texts, bool detects, mu_error *ret_error,
                    mu_resolution *ret_resolution)
{
    struct mu__settings settings;
    struct mu__requests *requests;
    struct script script;
    int rv;

    script_init(&script, rows);
    assert_int_equal(mu__requests_new(&script.sources.base, NULL, &requests), 0);
    assert_int_equal(mu__settings_init(&settings, kind->name, kind->settings), 0);
    set_all(&settings, texts);
    *ret_error = (mu_error){0};
    rv = run(kind, &(struct mu__pass){requests, &settings}, detects, ret_error,
             ret_resolution);
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

int script_resolve(const struct mu__resolver_kind *kind, const struct script_row *rows,
                   const char *const *settings, mu_error *ret_error,
                   mu_resolution *ret_resolution)
{
    return evaluate(kind, rows, settings, false, ret_error, ret_resolution);
}

int script_detect(const struct mu__resolver_kind *kind, const struct script_row *rows,
                  const char *const *settings, mu_error *ret_why)
{
    int rv = evaluate(kind, rows, settings, true, ret_why, NULL);

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

/* What is announced, or withdrawn. */
struct announcing {
    const struct mu__resolver_kind *kind;
    const mu_announcement *announcement;
    bool withdraws;
    int index;
    uint32_t again_ms;
};

static int announce(struct announcing *announcing, const struct script_row *rows,
                    const char *const *texts, void **own, mu_error *ret_error)
{
    const struct mu__resolver_kind *kind = announcing->kind;
    struct mu__settings settings;
    struct mu__requests *requests;
    struct script script;
    struct mu__pass pass;
    int rv;

    script_init(&script, rows);
    assert_int_equal(mu__requests_new(&script.sources.base, NULL, &requests), 0);
    assert_int_equal(mu__settings_init(&settings, kind->name, kind->settings), 0);
    set_all(&settings, texts);
    *ret_error = (mu_error){0};
    mu__requests_begin_pass(requests, kind->name);
    pass = (struct mu__pass){requests, &settings};
    rv = announcing->withdraws
             ? kind->withdraw(&pass, announcing->announcement, ret_error, own)
             : kind->announce(&pass, announcing->announcement, ret_error, own,
                              &announcing->index, &announcing->again_ms);
    assert_int_equal(rv < 0 ? ret_error->code : 0, rv);
    mu__requests_free(requests);
    mu__settings_done(&settings);
    return rv;
}

int script_announce(const struct mu__resolver_kind *kind, const struct script_row *rows,
                    const char *const *settings, const mu_announcement *announcement,
                    void **own, mu_error *ret_error, int *ret_index,
                    uint32_t *ret_again_ms)
{
    struct announcing announcing = {kind, announcement, .index = -1};
    int rv = announce(&announcing, rows, settings, own, ret_error);

    *ret_index = announcing.index;
    *ret_again_ms = announcing.again_ms;
    return rv;
}

int script_withdraw(const struct mu__resolver_kind *kind, const struct script_row *rows,
                    const char *const *settings, const mu_announcement *announcement,
                    void **own, mu_error *ret_error)
{
    struct announcing announcing = {kind, announcement, .withdraws = true};

    return announce(&announcing, rows, settings, own, ret_error);
}
