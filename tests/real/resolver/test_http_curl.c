/* The door to HTTP, against a server of plain sockets on a thread of its own. */
#include "actors/messages.h"
#include "resolver/engine/uv/cloud_library.h"
#include "resolver/engine/uv/http_client.h"
#include "runtime/kernel/kernel.h"
#include "runtime/message/pool.h"
#include "runtime/uv/world.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

enum {
    WAIT_MS = 20000,        /* after which a test fails: far more than anything takes */
    CONNECTIONS_MAX = 300,
    REQUESTS_MAX = MU__HTTP_REQUESTS_MAX + 1,
    REQUEST_BYTES_MAX = 4 << 20,
    OWNER = 7               /* the actor that asks */
};

/* ---- The server: one thread for each connection ---- */

struct server {
    int listener;
    unsigned port;
    pthread_t thread;
    pthread_t connections[CONNECTIONS_MAX];
    atomic_uint accepted;
    atomic_uint requests;
    atomic_bool ends;
};

struct connection {
    struct server *server;
    int socket;
    char *text;             /* one request: head, then body, then a zero */
    size_t size;
    size_t head_size;
    unsigned requests;
    bool is_over;
};

static bool say(const struct connection *c, const char *text)
{
    size_t size = strlen(text);

    return send(c->socket, text, size, MSG_NOSIGNAL) == (ssize_t)size;
}

static void say_ok(const struct connection *c, const char *body, size_t size)
{
    char head[100];

    (void)snprintf(head, sizeof head, "HTTP/1.1 200 OK\r\nContent-Length: %zu\r\n\r\n",
                   size);
    (void)say(c, head);
    while (size > 0) {
        ssize_t sent = send(c->socket, body, size, MSG_NOSIGNAL);

        if (sent <= 0)
            return;
        body += sent;
        size -= (size_t)sent;
    }
}

static void do_hello(struct connection *c)
{
    say_ok(c, "hello", 5);
}

static void do_echo(struct connection *c)
{
    say_ok(c, c->text + c->head_size, c->size - c->head_size);
}

/* Method, a header of the test's, and the kind of content. */
static void do_head(struct connection *c)
{
    say_ok(c, c->text, c->head_size);
}

static void do_chunked(struct connection *c)
{
    (void)say(c, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n"
                 "Trailer: X-After\r\n\r\n5\r\nhello\r\n");
    (void)poll(NULL, 0, 1);
    (void)say(c, "1\r\n,\r\n6\r\n world\r\n0\r\nX-After: 1\r\n\r\n");
}

static void do_empty(struct connection *c)
{
    (void)say(c, "HTTP/1.1 204 No Content\r\n\r\n");
}

static void do_missing(struct connection *c)
{
    (void)say(c, "HTTP/1.1 404 Not Found\r\nContent-Length: 4\r\n\r\nnone");
}

static void do_redirect(struct connection *c)
{
    (void)say(c, "HTTP/1.1 302 Found\r\nLocation: /hello\r\nContent-Length: 0\r\n\r\n");
}

static void hang_up(struct connection *c)
{
    (void)shutdown(c->socket, SHUT_RDWR);
}

static void do_nothing(struct connection *c)
{
    hang_up(c);
}

static void do_broken(struct connection *c)
{
    (void)say(c, "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nonly this");
    hang_up(c);
}

static void do_torn_chunk(struct connection *c)
{
    (void)say(c, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhel");
    hang_up(c);
}

static void do_garbage(struct connection *c)
{
    (void)say(c, "this is not a server for the web\r\n\r\n");
    hang_up(c);
}

/* Until the other side has had enough. */
static void do_slow(struct connection *c)
{
    char byte;

    (void)recv(c->socket, &byte, 1, 0);
}

static void do_half(struct connection *c)
{
    (void)say(c, "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhello");
    do_slow(c);
}

static void do_large(struct connection *c)
{
    (void)say(c, "HTTP/1.1 200 OK\r\nContent-Length: 1000000000000\r\n\r\nx");
    do_slow(c);
}

static void do_endless(struct connection *c)
{
    (void)say(c, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
    while (say(c, "10\r\n0123456789abcdef\r\n"))
        continue;
}

static void do_close(struct connection *c)
{
    (void)say(c, "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 3\r\n\r\nbye");
    hang_up(c);
}

/* The first request of a connection. The second one meets its end, as that of a server
 * which closes it in the same moment. */
static void do_once(struct connection *c)
{
    const struct linger none = {.l_onoff = 1};

    if (c->requests == 1) {
        do_hello(c);
        return;
    }
    (void)setsockopt(c->socket, SOL_SOCKET, SO_LINGER, &none, sizeof none);
    c->is_over = true;
}

static void do_typed(struct connection *c)
{
    (void)say(c, "HTTP/1.1 200 OK\r\nContent-Type: Application/JSON; charset=utf-8\r\n"
                 "x-wanted:  the value\t\r\nContent-Length: 2\r\n\r\n{}");
}

static void do_busy(struct connection *c)
{
    (void)say(c, "HTTP/1.1 429 Too Many Requests\r\nRetry-After: 7\r\n"
                 "X-Wanted: 0123456789012345678901234567890123456789012345678901234567"
                 "89012345678901234567890123456789012345678901234567890123456789012345"
                 "67890123456789012345678901234567890123456789012345678901234567890123"
                 "45678901234567890123456789012345678901234567890123456789012345678901"
                 "\r\nContent-Length: 0\r\n\r\n");
}

static void do_many_headers(struct connection *c)
{
    (void)say(c, "HTTP/1.1 200 OK\r\n");
    while (say(c, "X-Header: 0123456789012345678901234567890123456789\r\n"))
        continue;
}

static const struct {
    const char *path;
    void (*answer)(struct connection *c);
} pages[] = {
    {"/hello", do_hello},       {"/echo", do_echo},     {"/head", do_head},
    {"/chunked", do_chunked},   {"/empty", do_empty},   {"/missing", do_missing},
    {"/redirect", do_redirect}, {"/nothing", do_nothing},
    {"/broken", do_broken},     {"/torn", do_torn_chunk},
    {"/garbage", do_garbage},   {"/slow", do_slow},     {"/half", do_half},
    {"/large", do_large},       {"/endless", do_endless},
    {"/close", do_close},       {"/once", do_once},
    {"/typed", do_typed},       {"/busy", do_busy},
    {"/headers", do_many_headers},
};

static void answer(struct connection *c)
{
    const char *path = strchr(c->text, ' ');

    atomic_fetch_add(&c->server->requests, 1);
    c->requests++;
    for (size_t i = 0; path != NULL && i < sizeof pages / sizeof pages[0]; i++) {
        size_t size = strlen(pages[i].path);

        if (strncmp(path + 1, pages[i].path, size) == 0 && path[1 + size] == ' ') {
            pages[i].answer(c);
            return;
        }
    }
    do_missing(c);
}

static size_t body_size(const char *head)
{
    const char *at = strstr(head, "Content-Length: ");

    return at == NULL ? 0 : (size_t)strtoul(at + 16, NULL, 10);
}

/* Reads one request; false at the end of the connection. Clients do not send a second
 * request before the answer. */
static bool read_request(struct connection *c)
{
    const char *end = NULL;

    c->size = 0;
    while (end == NULL || c->size < c->head_size + body_size(c->text)) {
        ssize_t got = recv(c->socket, c->text + c->size, REQUEST_BYTES_MAX - c->size, 0);

        if (got <= 0)
            return false;
        c->size += (size_t)got;
        c->text[c->size] = '\0';
        end = strstr(c->text, "\r\n\r\n");
        if (end != NULL)
            c->head_size = (size_t)(end - c->text) + 4;
    }
    return true;
}

static void *serve(void *arg)
{
    struct connection *c = arg;

    while (!atomic_load(&c->server->ends) && !c->is_over && read_request(c))
        answer(c);
    (void)close(c->socket);
    free(c->text);
    free(c);
    return NULL;
}

static void *listen_on(void *arg)
{
    struct server *server = arg;
    int socket;

    while ((socket = accept(server->listener, NULL, NULL)) >= 0) {
        struct connection *c = calloc(1, sizeof *c);
        unsigned number = atomic_load(&server->accepted);

        c->server = server;
        c->socket = socket;
        c->text = malloc(REQUEST_BYTES_MAX + 1);
        if (number == CONNECTIONS_MAX || c->text == NULL)
            abort();
        /* Before it answers: who is answered may look at the number. */
        atomic_store(&server->accepted, number + 1);
        if (pthread_create(&server->connections[number], NULL, serve, c) != 0)
            abort();
    }
    return NULL;
}

static int listener_new(unsigned *ret_port)
{
    struct sockaddr_in address = {.sin_family = AF_INET};
    socklen_t size = sizeof address;
    int listener = socket(AF_INET, SOCK_STREAM, 0);

    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    assert_int_equal(bind(listener, (struct sockaddr *)&address, sizeof address), 0);
    assert_int_equal(listen(listener, 300), 0);
    assert_int_equal(getsockname(listener, (struct sockaddr *)&address, &size), 0);
    *ret_port = ntohs(address.sin_port);
    return listener;
}

static void server_start(struct server *server)
{
    server->listener = listener_new(&server->port);
    assert_int_equal(pthread_create(&server->thread, NULL, listen_on, server), 0);
}

/* When the client has closed its connections. */
static void server_stop(struct server *server)
{
    atomic_store(&server->ends, true);
    (void)shutdown(server->listener, SHUT_RDWR);
    assert_int_equal(pthread_join(server->thread, NULL), 0);
    (void)close(server->listener);
    for (unsigned i = 0; i < atomic_load(&server->accepted); i++)
        assert_int_equal(pthread_join(server->connections[i], NULL), 0);
}

/* ---- The node: a world, and the door beside it ---- */

struct fixture {
    uv_loop_t loop;
    uv_timer_t limit;
    bool late;
    struct server server;
    struct mu__world_uv *world;
    struct mu__http_client *http;
    struct mu__http *door;
    struct mu__pool pool;
    struct mu__http_request requests[REQUESTS_MAX];
    char urls[REQUESTS_MAX][64];
    bool heard[REQUESTS_MAX];
    unsigned heard_count;
    unsigned wanted;
    bool turn_due;          /* something was delivered and no turn followed yet */
    bool in_send;
    bool http_closed;
    bool world_closed;
};

static void deliver(void *owner, struct mu__msg *msg)
{
    struct fixture *f = owner;
    const struct mu__http_done *done = mu__body(msg);
    const struct mu__http_request *request = done->request;
    size_t at = (size_t)(request - f->requests);

    assert_false(f->in_send);
    assert_int_equal(msg->kind, MU__HTTP_DONE);
    assert_int_equal(msg->to.actor, OWNER);
    assert_true(at < REQUESTS_MAX && !f->heard[at]);
    f->heard[at] = true;
    f->heard_count++;
    f->turn_due = true;
    mu__pool_put(&f->pool, msg);
}

static void turn(void *owner)
{
    ((struct fixture *)owner)->turn_due = false;
}

static int post(void *owner, struct mu__msg *msg)
{
    return mu__world_uv_post(((struct fixture *)owner)->world, msg);
}

static void on_closed(void *arg)
{
    *(bool *)arg = true;
}

static void on_limit(uv_timer_t *timer)
{
    ((struct fixture *)timer->data)->late = true;
}

static void run_until(struct fixture *f, bool (*done)(const struct fixture *f),
                      uint64_t timeout_ms)
{
    f->late = false;
    (void)uv_timer_start(&f->limit, on_limit, timeout_ms, 0);
    while (!done(f) && !f->late)
        (void)uv_run(&f->loop, UV_RUN_ONCE);
    (void)uv_timer_stop(&f->limit);
}

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    const struct mu__world_hooks hooks = {.owner = f, .deliver = deliver, .turn = turn};
    const struct mu__http_client_config config = {&f->loop, MU__HTTP_DONE, post, f};

    assert_non_null(f);
    (void)signal(SIGPIPE, SIG_IGN);
    server_start(&f->server);
    mu__pool_init(&f->pool);
    assert_int_equal(uv_loop_init(&f->loop), 0);
    assert_int_equal(uv_timer_init(&f->loop, &f->limit), 0);
    f->limit.data = f;
    assert_int_equal(mu__world_uv_open(&f->loop, 1, &hooks, NULL, &f->world), 0);
    assert_int_equal(mu__http_client_open(&config, NULL, &f->http), 0);
    f->door = mu__http_client_door(f->http);
    *state = f;
    return 0;
}

static bool all_closed(const struct fixture *f)
{
    return f->http_closed && f->world_closed;
}

/* Every handle is gone at the end, and so is every thread of the server's. */
static int teardown(void **state)
{
    struct fixture *f = *state;

    mu__http_client_close(f->http, on_closed, &f->http_closed);
    mu__world_uv_close(f->world, on_closed, &f->world_closed);
    run_until(f, all_closed, WAIT_MS);
    assert_true(all_closed(f));
    uv_close((uv_handle_t *)&f->limit, NULL);
    (void)uv_run(&f->loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&f->loop), 0);
    server_stop(&f->server);
    for (size_t i = 0; i < REQUESTS_MAX; i++)
        mu__buf_unref(f->requests[i].answer);
    mu__pool_done(&f->pool);
    free(f);
    return 0;
}

static struct mu__http_request *prepare(struct fixture *f, size_t at, const char *path)
{
    struct mu__http_request *request = &f->requests[at];

    mu__buf_unref(request->answer);
    (void)snprintf(f->urls[at], sizeof f->urls[at], "http://127.0.0.1:%u%s",
                   f->server.port, path);
    *request = (struct mu__http_request){
        .url = f->urls[at],
        .method = "GET",
        .timeout_ms = WAIT_MS,
        .owner = {.actor = OWNER},
    };
    f->heard[at] = false;
    return request;
}

static void send_it(struct fixture *f, struct mu__http_request *request)
{
    f->wanted++;
    f->in_send = true;
    f->door->ops->send(f->door, request);
    f->in_send = false;
}

static bool all_heard(const struct fixture *f)
{
    return f->heard_count == f->wanted && !f->turn_due;
}

static void wait_all(struct fixture *f)
{
    run_until(f, all_heard, WAIT_MS);
    assert_int_equal(f->heard_count, f->wanted);
    assert_false(f->turn_due);
}

static struct mu__http_request *ask(struct fixture *f, struct mu__http_request *request)
{
    send_it(f, request);
    wait_all(f);
    return request;
}

static void expect_answer(const struct mu__http_request *request, int status,
                          const char *text)
{
    if (request->code != 0)
        fail_msg("%s", request->error.message);
    assert_int_equal(request->status, status);
    assert_int_equal(request->answer == NULL ? 0 : request->answer->size, strlen(text));
    if (request->answer != NULL)
        assert_memory_equal(request->answer->data, text, strlen(text));
}

static void expect_error(const struct mu__http_request *request, int code,
                         const char *words)
{
    if (request->code != code)
        fail_msg("expected %d, got %d: %s", code, request->code, request->error.message);
    assert_int_equal(request->error.code, code);
    assert_null(request->answer);
    if (strstr(request->error.message, request->url) == NULL ||
        strstr(request->error.message, words) == NULL)
        fail_msg("expected \"%s\" in: %s", words, request->error.message);
}

/* ---- Tests ---- */

static void test_answers(void **state)
{
    static const struct {
        const char *path;
        int status;
        const char *text;
    } rows[] = {
        {"/hello", 200, "hello"},  {"/chunked", 200, "hello, world"},
        {"/empty", 204, ""},       {"/missing", 404, "none"},
        {"/redirect", 302, ""},    {"/close", 200, "bye"},
        {"/hello", 200, "hello"},
    };
    struct fixture *f = *state;

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        expect_answer(ask(f, prepare(f, 0, rows[i].path)), rows[i].status, rows[i].text);
}

static bool answer_has(const struct mu__http_request *request, const char *text)
{
    char head[2000] = "";

    memcpy(head, request->answer->data, request->answer->size);
    return strstr(head, text) != NULL;
}

static void test_method_headers_body(void **state)
{
    static const char *const headers[] = {"Content-Type: application/json", "X-A: b c",
                                          NULL};
    static const char *const methods[] = {"GET", "POST", "PUT"};
    struct fixture *f = *state;

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
static void test_large_body(void **state)
{
    struct fixture *f = *state;
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

static void test_broken(void **state)
{
    static const char *const paths[] = {"/nothing", "/broken", "/torn", "/garbage"};
    struct fixture *f = *state;

    for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++)
        expect_error(ask(f, prepare(f, 0, paths[i])), -MU_EUNAVAILABLE, "");
    expect_answer(ask(f, prepare(f, 0, "/hello")), 200, "hello");
}

static void test_slow(void **state)
{
    static const char *const paths[] = {"/slow", "/half"};
    struct fixture *f = *state;

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

static void test_too_large(void **state)
{
    static const char *const paths[] = {"/large", "/endless"};
    struct fixture *f = *state;

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

static void test_refused(void **state)
{
    struct fixture *f = *state;
    unsigned port;
    int listener = listener_new(&port);
    struct mu__http_request *request = prepare(f, 0, "/hello");

    (void)close(listener);
    (void)snprintf(f->urls[0], sizeof f->urls[0], "http://127.0.0.1:%u/", port);
    expect_error(ask(f, request), -MU_EUNAVAILABLE, "connect");
}

static void test_bad_urls(void **state)
{
    static const char *const urls[] = {
        "",           "http://",           "ftp://127.0.0.1/a", "file:///etc/passwd",
        "gopher://a", "http://127.0.0.1:99999/", "http:// a/",  "://",
    };
    struct fixture *f = *state;

    for (size_t i = 0; i < sizeof urls / sizeof urls[0]; i++) {
        struct mu__http_request *request = prepare(f, 0, "");

        request->url = urls[i];
        expect_error(ask(f, request), -MU_EINVALID, "");
    }
    assert_int_equal(atomic_load(&f->server.requests), 0);
}

static bool never(const struct fixture *f)
{
    (void)f;
    return false;
}

static bool server_has_one(const struct fixture *f)
{
    return atomic_load(&f->server.requests) == 1;
}

/* At once, while it is under way, and when it is done. */
static void test_cancel(void **state)
{
    struct fixture *f = *state;
    struct mu__http_request *request = prepare(f, 0, "/slow");

    f->door->ops->send(f->door, request);
    f->door->ops->cancel(f->door, request);
    f->door->ops->send(f->door, request);
    for (int i = 0; i < 2000 && !server_has_one(f); i++)
        run_until(f, server_has_one, 10);
    assert_true(server_has_one(f));
    f->door->ops->cancel(f->door, request);
    run_until(f, never, 50);
    assert_int_equal(f->heard_count, 0);

    request = ask(f, prepare(f, 0, "/hello"));
    f->door->ops->cancel(f->door, request);
    expect_answer(request, 200, "hello");
}

/* As many as may be, each with its own answer; one more is refused. */
static void test_many_at_once(void **state)
{
    struct fixture *f = *state;
    char texts[MU__HTTP_REQUESTS_MAX][16];

    for (size_t i = 0; i < MU__HTTP_REQUESTS_MAX; i++) {
        struct mu__http_request *request = prepare(f, i, "/echo");

        (void)snprintf(texts[i], sizeof texts[i], "number %zu", i);
        request->method = "POST";
        request->body = texts[i];
        request->body_size = strlen(texts[i]);
        send_it(f, request);
    }
    send_it(f, prepare(f, MU__HTTP_REQUESTS_MAX, "/hello"));
    wait_all(f);
    for (size_t i = 0; i < MU__HTTP_REQUESTS_MAX; i++)
        expect_answer(&f->requests[i], 200, texts[i]);
    expect_error(&f->requests[MU__HTTP_REQUESTS_MAX], -MU_EEXHAUSTED, "too many");
}

static void test_connections_are_used_again(void **state)
{
    struct fixture *f = *state;

    for (int i = 0; i < 20; i++)
        expect_answer(ask(f, prepare(f, 0, i % 2 ? "/chunked" : "/hello")), 200,
                      i % 2 ? "hello, world" : "hello");
    assert_int_equal(atomic_load(&f->server.accepted), 1);
    expect_answer(ask(f, prepare(f, 0, "/close")), 200, "bye");
    expect_answer(ask(f, prepare(f, 0, "/hello")), 200, "hello");
    assert_int_equal(atomic_load(&f->server.accepted), 2);
}

/* A request that meets a connection which was just closed is sent once more. */
static void test_connection_that_was_just_closed(void **state)
{
    struct fixture *f = *state;

    for (unsigned i = 0; i < 5; i++)
        expect_answer(ask(f, prepare(f, 0, "/once")), 200, "hello");
    assert_int_equal(atomic_load(&f->server.accepted), 5);
    assert_int_equal(atomic_load(&f->server.requests), 9);
}

/* What is told arrives although everything of it is gone, and the door closes. */
static void test_what_the_head_says(void **state)
{
    struct fixture *f = *state;
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
    assert_string_equal(request->header, "");   /* it is longer than there is room */
    assert_int_equal(request->retry_after_ms, 7000);

    request = prepare(f, 2, "/headers");
    expect_error(ask(f, request), -MU_EEXHAUSTED, "headers");
}

static void test_other_methods(void **state)
{
    static const char *const methods[] = {"DELETE", "PATCH", "PUT"};
    struct fixture *f = *state;

    for (size_t i = 0; i < 3; i++) {
        struct mu__http_request *request = prepare(f, i, "/head");

        request->method = methods[i];
        (void)ask(f, request);
        assert_int_equal(request->status, 200);
        assert_memory_equal(request->answer->data, methods[i], strlen(methods[i]));
    }
}

/* User and query may be secret. */
static void test_errors_are_discreet(void **state)
{
    struct fixture *f = *state;
    struct mu__http_request *request = prepare(f, 0, "");

    request->url = "http://me:secret@127.0.0.1:1/path?token=secret";
    (void)ask(f, request);
    assert_int_equal(request->code, -MU_EUNAVAILABLE);
    assert_non_null(strstr(request->error.message, "http://127.0.0.1:1/path: "));
    assert_null(strstr(request->error.message, "secret"));
}

/* The environment's proxy counts only where it is said so. The server is its own. */
static void test_proxy(void **state)
{
    struct fixture *f = *state;
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
    expect_answer(request, 404, "none");    /* its path is a whole url */
}

static void test_tell_then_close(void **state)
{
    struct fixture *f = *state;
    char *url = malloc(64);
    char *body = malloc(4);
    const struct mu__http_request words = {
        .url = url, .method = "POST", .body = body, .body_size = 3, .timeout_ms = 60000};
    struct mu__http_request *request = prepare(f, 0, "/slow");

    assert_true(url != NULL && body != NULL);
    (void)snprintf(url, 64, "http://127.0.0.1:%u/echo", f->server.port);
    memcpy(body, "bye", 4);
    f->door->ops->send(f->door, request);
    f->door->ops->notify(f->door, &words);
    free(url);
    free(body);
    mu__http_client_close(f->http, on_closed, &f->http_closed);
    mu__world_uv_close(f->world, on_closed, &f->world_closed);
    run_until(f, all_closed, WAIT_MS);
    assert_true(all_closed(f));
    assert_true(atomic_load(&f->server.requests) >= 1);
    assert_int_equal(f->heard_count, 0);
    assert_null(request->own);
}

/* A door for the teardown, which closes one. */
static int teardown_closed(void **state)
{
    struct fixture *f = *state;
    const struct mu__world_hooks hooks = {.owner = f, .deliver = deliver, .turn = turn};
    const struct mu__http_client_config config = {&f->loop, MU__HTTP_DONE, post, f};

    f->http_closed = f->world_closed = false;
    assert_int_equal(mu__world_uv_open(&f->loop, 1, &hooks, NULL, &f->world), 0);
    assert_int_equal(mu__http_client_open(&config, NULL, &f->http), 0);
    return teardown(state);
}

/* Who is told and does not answer is not waited for longer than a second. */
static void test_tell_nobody(void **state)
{
    struct fixture *f = *state;
    char url[64];
    const struct mu__http_request words = {
        .url = url, .method = "GET", .timeout_ms = 60000};
    uint64_t before_ms = uv_now(&f->loop);

    (void)snprintf(url, sizeof url, "http://127.0.0.1:%u/slow", f->server.port);
    f->door->ops->notify(f->door, &words);
    mu__http_client_close(f->http, on_closed, &f->http_closed);
    mu__world_uv_close(f->world, on_closed, &f->world_closed);
    run_until(f, all_closed, WAIT_MS);
    assert_true(all_closed(f));
    assert_true(uv_now(&f->loop) - before_ms < 10000);
}

/* The teardown closes with these under way. */
static void test_close_with_requests(void **state)
{
    static const char *const paths[] = {"/slow", "/half", "/endless", "/hello"};
    struct fixture *f = *state;

    for (size_t i = 0; i < 4; i++)
        f->door->ops->send(f->door, prepare(f, i, paths[i]));
    run_until(f, never, 20);
    assert_true(f->heard_count <= 1);
}

/* ---- This program once more, with another file in a library's place ---- */

static void test_missing_library(void **state)
{
    const char *file = getenv("TEST_BAD_LIBRARY");
    const struct mu__cloud *cloud;
    mu_error error;

    (void)state;
    for (int i = 0; i < 2; i++) {
        assert_int_equal(mu__cloud_load(&error, &cloud), -MU_EPRECONDITION);
        if (strstr(error.message, MU__CLOUD_LIBRARY " cannot be loaded (") == NULL ||
            strstr(error.message, file) == NULL ||
            strstr(error.message, "libcurl4, libyaml-0-2, libssl3") == NULL)
            fail_msg("%s", error.message);
    }
    assert_int_equal(unlink(file), 0);
    assert_int_equal(mu__cloud_load(&error, &cloud), 0);
}

static int run_without_library(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_missing_library),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

static void write_bad_library(const char *path)
{
    FILE *file = fopen(path, "w");

    assert_non_null(file);
    assert_true(fputs("this is not a library\n", file) >= 0);
    assert_int_equal(fclose(file), 0);
}

/* How it ends. */
static int run_with_bad(const char *name)
{
    char folder[] = "/tmp/muster-no-curl-XXXXXX";
    const char *before = getenv("LD_LIBRARY_PATH");
    char folders[1024];
    char path[64];
    pid_t child;
    int status;

    assert_non_null(mkdtemp(folder));
    (void)snprintf(folders, sizeof folders, "%s:%s", folder,
                   before == NULL ? folder : before);
    (void)snprintf(path, sizeof path, "%s/%s", folder, name);
    write_bad_library(path);
    child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        (void)setenv("TEST_BAD_LIBRARY", path, 1);
        (void)setenv("LD_LIBRARY_PATH", folders, 1);
        (void)execl("/proc/self/exe", "without-library", (char *)NULL);
        _exit(127);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    (void)unlink(path);
    (void)rmdir(folder);
    return status;
}

static void test_without_library(void **state)
{
    (void)state;
    assert_int_equal(run_with_bad("libcurl.so.4"), 0);
    assert_int_equal(run_with_bad(MU__CLOUD_LIBRARY), 0);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
#define TEST_CLOSES(name) cmocka_unit_test_setup_teardown(name, setup, teardown_closed)
    static const struct CMUnitTest tests[] = {
        TEST(test_answers),
        TEST(test_method_headers_body),
        TEST(test_large_body),
        TEST(test_broken),
        TEST(test_slow),
        TEST(test_too_large),
        TEST(test_refused),
        TEST(test_bad_urls),
        TEST(test_what_the_head_says),
        TEST(test_other_methods),
        TEST(test_errors_are_discreet),
        TEST(test_proxy),
        TEST(test_cancel),
        TEST(test_many_at_once),
        TEST(test_connections_are_used_again),
        TEST(test_connection_that_was_just_closed),
        TEST_CLOSES(test_tell_then_close),
        TEST_CLOSES(test_tell_nobody),
        TEST(test_close_with_requests),
        cmocka_unit_test(test_without_library),
    };

    if (getenv("TEST_BAD_LIBRARY") != NULL)
        return run_without_library();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
