/* The door to HTTP: its connections, requests that are cancelled or left when it closes,
 * and a library that cannot be loaded. */
#include "tests/real/resolver/cloud/http_curl_fixture.h"

#include <sys/prctl.h>
#include <sys/wait.h>

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
LISTED_TEST(test_cancel)
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
LISTED_TEST(test_many_at_once)
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

LISTED_TEST(test_connections_are_used_again)
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
LISTED_TEST(test_connection_that_was_just_closed)
{
    struct fixture *f = *state;

    for (unsigned i = 0; i < 5; i++)
        expect_answer(ask(f, prepare(f, 0, "/once")), 200, "hello");
    assert_int_equal(atomic_load(&f->server.accepted), 5);
    assert_int_equal(atomic_load(&f->server.requests), 9);
}

LISTED_TEST(test_tell_then_close)
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
LISTED_TEST(test_tell_nobody)
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
LISTED_TEST(test_close_with_requests)
{
    static const char *const paths[] = {"/slow", "/half", "/endless", "/hello"};
    struct fixture *f = *state;

    for (size_t i = 0; i < 4; i++)
        f->door->ops->send(f->door, prepare(f, i, paths[i]));
    run_until(f, never, 20);
    assert_true(f->heard_count <= 1);
}

/* ---- This program once more, with another file in a library's place ---- */

LISTED_TEST(test_missing_library)
{
    const char *file = getenv("TEST_BAD_LIBRARY");
    const struct mu__cloud *cloud;
    mu_error error;

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

LISTED_TEST(test_without_library)
{
    assert_int_equal(run_with_bad("libcurl.so.4"), 0);
    assert_int_equal(run_with_bad(MU__CLOUD_LIBRARY), 0);
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
#define CASE_CLOSES(name) cmocka_unit_test_setup_teardown(name, setup, teardown_closed)
    static const struct CMUnitTest tests[] = {
        CASE(test_cancel),
        CASE(test_many_at_once),
        CASE(test_connections_are_used_again),
        CASE(test_connection_that_was_just_closed),
        CASE_CLOSES(test_tell_then_close),
        CASE_CLOSES(test_tell_nobody),
        CASE(test_close_with_requests),
        cmocka_unit_test(test_without_library),
    };

    if (getenv("TEST_BAD_LIBRARY") != NULL)
        return run_without_library();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
