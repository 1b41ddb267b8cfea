/* A server of plain sockets, a thread for each connection, and a node's door to HTTP
 * before it. */
#ifndef MU_TESTS_HTTP_CURL_FIXTURE_H
#define MU_TESTS_HTTP_CURL_FIXTURE_H

#include "actors/messages.h"
#include "resolver/engine/uv/cloud_library.h"
#include "resolver/engine/uv/http_client.h"
#include "runtime/kernel/kernel.h"
#include "runtime/message/pool.h"
#include "runtime/uv/loop_world.h"
#include "tests/support/test.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    WAIT_MS = 20000, /* after which a test fails: far more than anything takes */
    CONNECTIONS_MAX = 300,
    REQUESTS_MAX = MU__HTTP_REQUESTS_MAX + 1,
    REQUEST_BYTES_MAX = 4 << 20,
    OWNER = 7 /* the actor that asks */
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
    char *text; /* one request: head, then body, then a zero */
    size_t size;
    size_t head_size;
    unsigned requests;
    bool is_over;
};

static inline bool say(const struct connection *c, const char *text)
{
    size_t size = strlen(text);

    return send(c->socket, text, size, MSG_NOSIGNAL) == (ssize_t)size;
}

static inline void say_ok(const struct connection *c, const char *body, size_t size)
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

static inline void do_hello(struct connection *c)
{
    say_ok(c, "hello", 5);
}

static inline void do_echo(struct connection *c)
{
    say_ok(c, c->text + c->head_size, c->size - c->head_size);
}

/* Method, a header of the test's, and the kind of content. */
static inline void do_head(struct connection *c)
{
    say_ok(c, c->text, c->head_size);
}

static inline void do_chunked(struct connection *c)
{
    (void)say(c, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n"
                 "Trailer: X-After\r\n\r\n5\r\nhello\r\n");
    (void)poll(NULL, 0, 1);
    (void)say(c, "1\r\n,\r\n6\r\n world\r\n0\r\nX-After: 1\r\n\r\n");
}

static inline void do_empty(struct connection *c)
{
    (void)say(c, "HTTP/1.1 204 No Content\r\n\r\n");
}

static inline void do_missing(struct connection *c)
{
    (void)say(c, "HTTP/1.1 404 Not Found\r\nContent-Length: 4\r\n\r\nnone");
}

static inline void do_redirect(struct connection *c)
{
    (void)say(c, "HTTP/1.1 302 Found\r\nLocation: /hello\r\nContent-Length: 0\r\n\r\n");
}

static inline void hang_up(struct connection *c)
{
    (void)shutdown(c->socket, SHUT_RDWR);
}

static inline void do_nothing(struct connection *c)
{
    hang_up(c);
}

static inline void do_broken(struct connection *c)
{
    (void)say(c, "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nonly this");
    hang_up(c);
}

static inline void do_torn_chunk(struct connection *c)
{
    (void)say(c, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhel");
    hang_up(c);
}

static inline void do_garbage(struct connection *c)
{
    (void)say(c, "this is not a server for the web\r\n\r\n");
    hang_up(c);
}

/* Until the other side has had enough. */
static inline void do_slow(struct connection *c)
{
    char byte;

    (void)recv(c->socket, &byte, 1, 0);
}

static inline void do_half(struct connection *c)
{
    (void)say(c, "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhello");
    do_slow(c);
}

static inline void do_large(struct connection *c)
{
    (void)say(c, "HTTP/1.1 200 OK\r\nContent-Length: 1000000000000\r\n\r\nx");
    do_slow(c);
}

static inline void do_endless(struct connection *c)
{
    (void)say(c, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
    while (say(c, "10\r\n0123456789abcdef\r\n"))
        continue;
}

static inline void do_close(struct connection *c)
{
    (void)say(c, "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 3\r\n\r\nbye");
    hang_up(c);
}

/* The first request of a connection. The second one meets its end, as that of a server
 * which closes it in the same moment. */
static inline void do_once(struct connection *c)
{
    const struct linger none = {.l_onoff = 1};

    if (c->requests == 1) {
        do_hello(c);
        return;
    }
    (void)setsockopt(c->socket, SOL_SOCKET, SO_LINGER, &none, sizeof none);
    c->is_over = true;
}

static inline void do_typed(struct connection *c)
{
    (void)say(c, "HTTP/1.1 200 OK\r\nContent-Type: Application/JSON; charset=utf-8\r\n"
                 "x-wanted:  the value\t\r\nContent-Length: 2\r\n\r\n{}");
}

static inline void do_busy(struct connection *c)
{
    (void)say(c, "HTTP/1.1 429 Too Many Requests\r\nRetry-After: 7\r\n"
                 "X-Wanted: 0123456789012345678901234567890123456789012345678901234567"
                 "89012345678901234567890123456789012345678901234567890123456789012345"
                 "67890123456789012345678901234567890123456789012345678901234567890123"
                 "45678901234567890123456789012345678901234567890123456789012345678901"
                 "\r\nContent-Length: 0\r\n\r\n");
}

static inline void do_many_headers(struct connection *c)
{
    (void)say(c, "HTTP/1.1 200 OK\r\n");
    while (say(c, "X-Header: 0123456789012345678901234567890123456789\r\n"))
        continue;
}

static const struct {
    const char *path;
    void (*answer)(struct connection *c);
} pages[] = {
    {"/hello", do_hello},       {"/echo", do_echo},           {"/head", do_head},
    {"/chunked", do_chunked},   {"/empty", do_empty},         {"/missing", do_missing},
    {"/redirect", do_redirect}, {"/nothing", do_nothing},     {"/broken", do_broken},
    {"/torn", do_torn_chunk},   {"/garbage", do_garbage},     {"/slow", do_slow},
    {"/half", do_half},         {"/large", do_large},         {"/endless", do_endless},
    {"/close", do_close},       {"/once", do_once},           {"/typed", do_typed},
    {"/busy", do_busy},         {"/headers", do_many_headers}};

static inline void answer(struct connection *c)
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

static inline size_t body_size(const char *head)
{
    const char *at = strstr(head, "Content-Length: ");

    return at == NULL ? 0 : (size_t)strtoul(at + 16, NULL, 10);
}

/* Reads one request; false at the end of the connection. Clients do not send a second
 * request before the answer. */
static inline bool read_request(struct connection *c)
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

static inline void *serve(void *arg)
{
    struct connection *c = arg;

    while (!atomic_load(&c->server->ends) && !c->is_over && read_request(c))
        answer(c);
    (void)close(c->socket);
    free(c->text);
    free(c);
    return NULL;
}

static inline void *listen_on(void *arg)
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

static inline int listener_new(unsigned *ret_port)
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

static inline void server_start(struct server *server)
{
    server->listener = listener_new(&server->port);
    assert_int_equal(pthread_create(&server->thread, NULL, listen_on, server), 0);
}

/* When the client has closed its connections. */
static inline void server_stop(struct server *server)
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
    bool turn_due; /* something was delivered and no turn followed yet */
    bool in_send;
    bool http_closed;
    bool world_closed;
};

static inline void deliver(void *owner, struct mu__msg *msg)
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

static inline void turn(void *owner)
{
    ((struct fixture *)owner)->turn_due = false;
}

static inline int post(void *owner, struct mu__msg *msg)
{
    return mu__world_uv_post(((struct fixture *)owner)->world, msg);
}

static inline void on_closed(void *arg)
{
    *(bool *)arg = true;
}

static inline void on_limit(uv_timer_t *timer)
{
    ((struct fixture *)timer->data)->late = true;
}

static inline void run_until(struct fixture *f, bool (*done)(const struct fixture *f),
                             uint64_t timeout_ms)
{
    f->late = false;
    (void)uv_timer_start(&f->limit, on_limit, timeout_ms, 0);
    while (!done(f) && !f->late)
        (void)uv_run(&f->loop, UV_RUN_ONCE);
    (void)uv_timer_stop(&f->limit);
}

static inline int setup(void **state)
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

static inline bool all_closed(const struct fixture *f)
{
    return f->http_closed && f->world_closed;
}

/* Every handle is gone at the end, and so is every thread of the server's. */
static inline int teardown(void **state)
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

static inline struct mu__http_request *prepare(struct fixture *f, size_t at,
                                               const char *path)
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

static inline void send_it(struct fixture *f, struct mu__http_request *request)
{
    f->wanted++;
    f->in_send = true;
    f->door->ops->send(f->door, request);
    f->in_send = false;
}

static inline bool all_heard(const struct fixture *f)
{
    return f->heard_count == f->wanted && !f->turn_due;
}

static inline void wait_all(struct fixture *f)
{
    run_until(f, all_heard, WAIT_MS);
    assert_int_equal(f->heard_count, f->wanted);
    assert_false(f->turn_due);
}

static inline struct mu__http_request *ask(struct fixture *f,
                                           struct mu__http_request *request)
{
    send_it(f, request);
    wait_all(f);
    return request;
}

static inline void expect_answer(const struct mu__http_request *request, int status,
                                 const char *text)
{
    if (request->code != 0)
        fail_msg("%s", request->error.message);
    assert_int_equal(request->status, status);
    assert_int_equal(request->answer == NULL ? 0 : request->answer->size, strlen(text));
    if (request->answer != NULL)
        assert_memory_equal(request->answer->data, text, strlen(text));
}

static inline void expect_error(const struct mu__http_request *request, int code,
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

#endif
