/* The door to HTTP: what it sends, what comes back, and what it refuses. */
#include "tests/real/resolver/cloud/http_curl_fixture.h"

TEST_ON(test_answers, struct fixture *f, setup, teardown)
{
    static const struct {
        const char *path;
        int status;
        const char *text;
    } rows[] = {
        {"/hello", 200, "hello"}, {"/chunked", 200, "hello, world"},
        {"/empty", 204, ""},      {"/missing", 404, "none"},
        {"/redirect", 302, ""},   {"/close", 200, "bye"},
        {"/hello", 200, "hello"},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        expect_answer(ask(f, prepare(f, 0, rows[i].path)), rows[i].status, rows[i].text);
}

static bool answer_has(const struct mu__http_request *request, const char *text)
{
    char head[2000] = "";

    memcpy(head, request->answer->data, request->answer->size);
    return strstr(head, text) != NULL;
}

TEST_ON(test_method_headers_body, struct fixture *f, setup, teardown)
{
    static const char *const headers[] = {"Content-Type: application/json", "X-A: b c",
                                          NULL};
    static const char *const methods[] = {"GET", "POST", "PUT"};

    for (size_t i = 0; i < 3; i++) {
        struct mu__http_request *request = prepare(f, 0, "/head");
        char line[40];

        request->method = methods[i];
        request->headers = headers;
        request->body = i == 0 ? NULL : "abc";
        request->body_size = i == 0 ? 0 : 3;
        (void)ask(f, request);
        assert_int_equal(request->status, 200);
        (void)snprintf(line, sizeof line, "%s /head HTTP/1.1\r\n", methods[i]);
        assert_true(answer_has(request, line));
        assert_true(answer_has(request, "\r\nX-A: b c\r\n"));
        assert_true(answer_has(request, "\r\nContent-Type: application/json\r\n"));
        assert_int_equal(answer_has(request, "Content-Length: 3"), i != 0);
        assert_false(answer_has(request, "Expect:"));
    }
}

/* Larger than any buffer on the way, and with every byte. */
TEST_ON(test_large_body, struct fixture *f, setup, teardown)
{
    size_t size = 3000000;
    char *body = malloc(size);
    struct mu__http_request *request = prepare(f, 0, "/echo");

    assert_non_null(body);
    for (size_t i = 0; i < size; i++)
        body[i] = (char)(i * 7 + i / 256);
    request->method = "POST";
    request->body = body;
    request->body_size = size;
    request->answer_max = size;
    (void)ask(f, request);
    assert_int_equal(request->code, 0);
    assert_int_equal(request->answer->size, size);
    assert_memory_equal(request->answer->data, body, size);
    free(body);
}

TEST_ON(test_broken, struct fixture *f, setup, teardown)
{
    static const char *const paths[] = {"/nothing", "/broken", "/torn", "/garbage"};

    for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++)
        expect_error(ask(f, prepare(f, 0, paths[i])), -MU_EUNAVAILABLE, "");
    expect_answer(ask(f, prepare(f, 0, "/hello")), 200, "hello");
}

TEST_ON(test_slow, struct fixture *f, setup, teardown)
{
    static const char *const paths[] = {"/slow", "/half"};

    for (size_t i = 0; i < 2; i++) {
        struct mu__http_request *request = prepare(f, 0, paths[i]);
        uint64_t before_ms = uv_now(&f->loop);
        uint64_t took_ms;

        request->timeout_ms = 100;
        expect_error(ask(f, request), -MU_EDEADLINE, "");
        took_ms = uv_now(&f->loop) - before_ms;
        assert_true(took_ms >= 90 && took_ms < 10000);
    }
}

TEST_ON(test_too_large, struct fixture *f, setup, teardown)
{
    static const char *const paths[] = {"/large", "/endless"};

    for (size_t i = 0; i < 2; i++) {
        struct mu__http_request *request = prepare(f, 0, paths[i]);

        request->answer_max = 100000;
        expect_error(ask(f, request), -MU_EEXHAUSTED, "more than 100000 bytes");
    }
    f->requests[0].answer_max = 5;
    for (size_t max = 4; max <= 5; max++) {
        struct mu__http_request *request = prepare(f, 0, "/hello");

        request->answer_max = max;
        (void)ask(f, request);
        assert_int_equal(request->code, max == 4 ? -MU_EEXHAUSTED : 0);
    }
}

TEST_ON(test_refused, struct fixture *f, setup, teardown)
{
    unsigned port;
    int listener = listener_new(&port);
    struct mu__http_request *request = prepare(f, 0, "/hello");

    (void)close(listener);
    (void)snprintf(f->urls[0], sizeof f->urls[0], "http://127.0.0.1:%u/", port);
    expect_error(ask(f, request), -MU_EUNAVAILABLE, "connect");
}

TEST_ON(test_bad_urls, struct fixture *f, setup, teardown)
{
    static const char *const urls[] = {
        "",
        "http://",
        "ftp://127.0.0.1/a",
        "file:///etc/passwd",
        "gopher://a",
        "http://127.0.0.1:99999/",
        "http:// a/",
        "://",
    };

    for (size_t i = 0; i < sizeof urls / sizeof urls[0]; i++) {
        struct mu__http_request *request = prepare(f, 0, "");

        request->url = urls[i];
        expect_error(ask(f, request), -MU_EINVALID, "");
    }
    assert_int_equal(atomic_load(&f->server.requests), 0);
}

/* What is told arrives although everything of it is gone, and the door closes. */
TEST_ON(test_what_the_head_says, struct fixture *f, setup, teardown)
{
    struct mu__http_request *request = prepare(f, 0, "/typed");

    request->header_name = "X-Wanted";
    (void)ask(f, request);
    expect_answer(request, 200, "{}");
    assert_string_equal(request->content_type, "application/json");
    assert_string_equal(request->header, "the value");
    assert_int_equal(request->retry_after_ms, 0);

    request = prepare(f, 1, "/busy");
    request->header_name = "X-Wanted";
    (void)ask(f, request);
    expect_answer(request, 429, "");
    assert_string_equal(request->content_type, "");
    assert_string_equal(request->header, ""); /* it is longer than there is room */
    assert_int_equal(request->retry_after_ms, 7000);

    request = prepare(f, 2, "/headers");
    expect_error(ask(f, request), -MU_EEXHAUSTED, "headers");
}

TEST_ON(test_other_methods, struct fixture *f, setup, teardown)
{
    static const char *const methods[] = {"DELETE", "PATCH", "PUT"};

    for (size_t i = 0; i < 3; i++) {
        struct mu__http_request *request = prepare(f, i, "/head");

        request->method = methods[i];
        (void)ask(f, request);
        assert_int_equal(request->status, 200);
        assert_memory_equal(request->answer->data, methods[i], strlen(methods[i]));
    }
}

/* User and query may be secret. */
TEST_ON(test_errors_are_discreet, struct fixture *f, setup, teardown)
{
    struct mu__http_request *request = prepare(f, 0, "");

    request->url = "http://me:secret@127.0.0.1:1/path?token=secret";
    (void)ask(f, request);
    assert_int_equal(request->code, -MU_EUNAVAILABLE);
    assert_non_null(strstr(request->error.message, "http://127.0.0.1:1/path: "));
    assert_null(strstr(request->error.message, "secret"));
}

/* The environment's proxy counts only where it is said so. The server is its own. */
TEST_ON(test_proxy, struct fixture *f, setup, teardown)
{
    struct mu__http_request *request = prepare(f, 0, "/head");
    char proxy[64];

    (void)snprintf(proxy, sizeof proxy, "http://127.0.0.1:%u", f->server.port);
    assert_int_equal(setenv("http_proxy", proxy, 1), 0);
    assert_int_equal(unsetenv("no_proxy"), 0);
    (void)ask(f, request);
    assert_memory_equal(request->answer->data, "GET /head ", 10);
    request = prepare(f, 1, "/head");
    request->uses_proxy = true;
    (void)ask(f, request);
    assert_int_equal(unsetenv("http_proxy"), 0);
    expect_answer(request, 404, "none"); /* its path is a whole url */
}

TEST_PROGRAM()
