/* The public calls of muster/resolver.h in the real world: variables, files, and a server
 * for HTTP on loopback. */
#include "api/resolver_devices.h"
#include "node/discovery/run_query.h"
#include "resolver/engine/query.h"
#include "tests/real/asking.h"
#include "tests/support/test.h"

#include <muster/resolver.h>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include <uv.h>

enum { TIMEOUT_MS = 20000 };

static mu_error error;

static void expect_words(const char *part)
{
    if (strstr(error.message, part) == NULL)
        fail_msg("\"%s\" is not in \"%s\"", part, error.message);
}

/* ---- A server: one connection after the other, an answer for each ---- */

static struct {
    int listener;
    unsigned port;
    pthread_t thread;
    const char *const *answers; /* in order, the last one again and again */
    pthread_mutex_t lock;       /* guards `head` */
    char head[4096];            /* of the last request */
} server = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void *serve(void *arg)
{
    int socket;

    (void)arg;
    while ((socket = accept(server.listener, NULL, NULL)) >= 0) {
        const char *answer = server.answers[0];
        ssize_t got;

        (void)pthread_mutex_lock(&server.lock);
        got = recv(socket, server.head, sizeof server.head - 1, 0);
        server.head[got > 0 ? got : 0] = '\0';
        (void)pthread_mutex_unlock(&server.lock);
        if (server.answers[1] != NULL)
            server.answers++;
        (void)send(socket, answer, strlen(answer), MSG_NOSIGNAL);
        (void)close(socket);
    }
    return NULL;
}

static void server_start(const char *const *answers)
{
    struct sockaddr_in address = {.sin_family = AF_INET};
    socklen_t size = sizeof address;

    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    server.listener = socket(AF_INET, SOCK_STREAM, 0);
    server.answers = answers;
    assert_int_equal(bind(server.listener, (struct sockaddr *)&address, sizeof address),
                     0);
    assert_int_equal(listen(server.listener, 10), 0);
    assert_int_equal(getsockname(server.listener, (struct sockaddr *)&address, &size), 0);
    server.port = ntohs(address.sin_port);
    assert_int_equal(pthread_create(&server.thread, NULL, serve, NULL), 0);
}

static void server_stop(void)
{
    (void)shutdown(server.listener, SHUT_RDWR);
    assert_int_equal(pthread_join(server.thread, NULL), 0);
    (void)close(server.listener);
}

/* ---- One request to the sources, and what comes of it ---- */

static void write_file(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");

    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

TEST(test_files_and_folders)
{
    static char folder[] = "/tmp/muster-resolver-XXXXXX";
    struct asking a;
    char paths[4][80];
    const struct mu__answer *answer;

    assert_non_null(mkdtemp(folder));
    for (int i = 0; i < 4; i++)
        (void)snprintf(paths[i], sizeof paths[i], "%s/%c", folder, "bazp"[i]);
    write_file(paths[0], "content\n");
    write_file(paths[1], "");
    assert_int_equal(mkfifo(paths[3], 0600), 0);
    asking_begin(&a);

    answer =
        asking_get(&a, &(struct mu__request){.kind = MU__REQUEST_FILE, .name = paths[0]});
    assert_int_equal(answer->code, 0);
    assert_string_equal(answer->data, "content\n");
    answer =
        asking_get(&a, &(struct mu__request){.kind = MU__REQUEST_FILE, .name = paths[1]});
    assert_int_equal(answer->size, 0);
    answer =
        asking_get(&a, &(struct mu__request){.kind = MU__REQUEST_FILE, .name = paths[2]});
    assert_int_equal(answer->code, -MU_ENOTFOUND);
    assert_non_null(strstr(answer->error.message, paths[2]));

    /* Nobody writes into it: it is empty, and does not block. */
    answer =
        asking_get(&a, &(struct mu__request){.kind = MU__REQUEST_FILE, .name = paths[3]});
    assert_int_equal(answer->code, 0);
    assert_int_equal(answer->size, 0);
    answer = asking_get(&a, &(struct mu__request){.kind = MU__REQUEST_FILE,
                                                  .name = "/dev/zero"});
    assert_int_equal(answer->code, -MU_EEXHAUSTED);
    answer =
        asking_get(&a, &(struct mu__request){.kind = MU__REQUEST_FILE, .name = folder});
    assert_int_equal(answer->code, -MU_EINVALID);

    answer =
        asking_get(&a, &(struct mu__request){.kind = MU__REQUEST_FOLDER, .name = folder});
    assert_int_equal(answer->code, 0);
    assert_string_equal(answer->data, "a\nb\np\n");
    answer =
        asking_get(&a, &(struct mu__request){
                           .kind = MU__REQUEST_FOLDER, .name = folder, .bytes_max = 5});
    assert_int_equal(answer->code, -MU_EEXHAUSTED);
    answer = asking_get(&a, &(struct mu__request){.kind = MU__REQUEST_FOLDER,
                                                  .name = paths[2]});
    assert_int_equal(answer->code, -MU_ENOTFOUND);

    asking_end(&a);
    assert_int_equal(unlink(paths[0]), 0);
    assert_int_equal(unlink(paths[1]), 0);
    assert_int_equal(unlink(paths[3]), 0);
    assert_int_equal(rmdir(folder), 0);
}

/* A name may have newlines: it is as several lines then, some of them empty. */
TEST(test_names_with_newlines)
{
    static char folder[] = "/tmp/muster-resolver-XXXXXX";
    const struct mu__answer *answer;
    struct asking a;
    char paths[3][96];

    assert_non_null(mkdtemp(folder));
    (void)snprintf(paths[0], sizeof paths[0], "%s/\n\n\n\n\n\n\n\n\n\n\n\n\n\n", folder);
    (void)snprintf(paths[1], sizeof paths[1], "%s/b\n\na", folder);
    (void)snprintf(paths[2], sizeof paths[2], "%s/c", folder);
    for (int i = 0; i < 3; i++)
        write_file(paths[i], "");
    asking_begin(&a);
    answer =
        asking_get(&a, &(struct mu__request){.kind = MU__REQUEST_FOLDER, .name = folder});
    assert_int_equal(answer->code, 0);
    assert_string_equal(answer->data, "\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\na\nb\nc\n");
    asking_end(&a);
    for (int i = 0; i < 3; i++)
        assert_int_equal(unlink(paths[i]), 0);
    assert_int_equal(rmdir(folder), 0);
}

TEST(test_what_is_known_at_once)
{
    struct asking a;
    const struct mu__answer *answer;
    char *end;

    assert_int_equal(setenv("MUSTER_TEST_SET", "value", 1), 0);
    assert_int_equal(setenv("MUSTER_TEST_EMPTY", "", 1), 0);
    asking_begin(&a);
    assert_string_equal(mu__request_variable(a.requests, "MUSTER_TEST_SET"), "value");
    assert_null(mu__request_variable(a.requests, "MUSTER_TEST_EMPTY"));
    assert_null(mu__request_variable(a.requests, "MUSTER_TEST_UNSET"));
    answer =
        mu__requests_get(a.requests, &(struct mu__request){.kind = MU__REQUEST_CLOCK});
    assert_true(strtoll(answer->data, &end, 10) > 1600000000);
    assert_int_equal(*end, '\0');
    answer = mu__requests_get(a.requests,
                              &(struct mu__request){.kind = MU__REQUEST_HOST_NAME});
    assert_true(answer->size > 0);
    asking_end(&a);
}

TEST(test_http)
{
    static const char *const answers[] = {
        "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nETag: seven\r\n"
        "Content-Length: 5\r\n\r\nhello",
        "HTTP/1.1 503 Busy\r\nRetry-After: 3\r\nContent-Length: 0\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\ncut off",
        "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\ncut off",
        NULL,
    };
    static const char *const headers[] = {"Authorization: Bearer sesame", NULL};
    const struct mu__answer *answer;
    struct mu__request request;
    struct asking a;
    char url[80];

    server_start(answers);
    (void)snprintf(url, sizeof url, "http://127.0.0.1:%u/x?key=sesame", server.port);
    request = (struct mu__request){
        .kind = MU__REQUEST_HTTP, .name = url, .headers = headers, .header = "etag"};
    asking_begin(&a);
    answer = asking_get(&a, &request);
    assert_int_equal(answer->status, 200);
    assert_string_equal(answer->data, "hello");
    assert_string_equal(answer->content_type, "text/plain");
    assert_string_equal(answer->header, "seven");
    (void)pthread_mutex_lock(&server.lock);
    assert_non_null(strstr(server.head, "Bearer sesame"));
    (void)pthread_mutex_unlock(&server.lock);
    request.again++;
    answer = asking_get(&a, &request);
    assert_int_equal(answer->status, 503);
    assert_int_equal(answer->retry_after_ms, 3000);
    request.again++;
    answer = asking_get(&a, &request);
    assert_int_equal(answer->code, -MU_EUNAVAILABLE);
    assert_null(strstr(answer->error.message, "sesame"));
    assert_non_null(strstr(answer->error.message, "/x: "));
    server_stop();
    request.again++;
    answer = asking_get(&a, &request);
    assert_int_equal(answer->code, -MU_EUNAVAILABLE);
    asking_end(&a);
}

/* Requests that are given up while everything is on its way. */
TEST(test_cancelled)
{
    static const char *const answers[] = {"HTTP/1.1 200 OK\r\n", NULL};
    uint64_t begun_ns = uv_hrtime();
    struct mu__request list[60];
    char url[80];
    struct asking a;

    server_start(answers);
    (void)snprintf(url, sizeof url, "http://127.0.0.1:%u/", server.port);
    asking_begin(&a);
    for (unsigned i = 0; i < 60; i++)
        list[i] =
            (struct mu__request){.kind = i < 50 ? MU__REQUEST_HTTP : MU__REQUEST_FILE,
                                 .name = i < 50 ? url : "/etc/hostname",
                                 .again = i};
    asking_start(&a, list, 60);
    uv_sleep(100);
    asking_end(&a);
    assert_true(uv_hrtime() - begun_ns < UINT64_C(5000000000));
    server_stop();
}

/* ---- Public calls ---- */

static mu_resolver *resolver_of(const char *name)
{
    mu_resolver *resolver;

    if (mu_resolver_new(name, &error, &resolver) != 0)
        fail_msg("%s", error.message);
    return resolver;
}

TEST(test_tf_config)
{
    mu_resolver *resolver = resolver_of("tf_config");
    char master[MU_MASTER_BYTES];
    mu_cluster *cluster;
    mu_resolution found;

    assert_int_equal(setenv("TF_CONFIG",
                            "{\"cluster\": {\"worker\": [\"a:1\", \"b:2\"]}, \"task\": "
                            "{\"type\": \"worker\", \"index\": 1}}",
                            1),
                     0);
    assert_int_equal(mu_resolver_resolve(resolver, TIMEOUT_MS, &error, &found), 0);
    assert_int_equal(found.task_index, 1);
    assert_string_equal(mu_cluster_address(found.cluster, "worker", 0), "a:1");
    mu_cluster_free(found.cluster);
    assert_int_equal(mu_resolver_master(resolver, "worker", 0, "grpc", 0, &error, master),
                     0);
    assert_string_equal(master, "grpc://a:1");
    assert_int_equal(mu_resolver_master(resolver, "worker", 2, NULL, 0, &error, master),
                     -MU_ENOTFOUND);
    assert_int_equal(mu_resolver_cluster(resolver, -1, &error, &cluster), 0);
    assert_int_equal(mu_cluster_task_count(cluster, NULL), 2);
    mu_cluster_free(cluster);

    /* Asked anew at every call. */
    assert_int_equal(unsetenv("TF_CONFIG"), 0);
    assert_int_equal(mu_resolver_cluster(resolver, 0, &error, &cluster), 0);
    assert_null(cluster);
    mu_resolver_free(resolver);
}

TEST(test_misuse)
{
    mu_resolver *resolver;
    mu_resolution found;
    mu_value *counts;

    assert_int_equal(mu_resolver_new("slrum", &error, &resolver), -MU_ENOTFOUND);
    expect_words("there is no resolver \"slrum\"");
    assert_int_equal(mu_resolver_new("tf_confg", &error, &resolver), -MU_ENOTFOUND);
    expect_words("did you mean \"tf_config\"?");
    assert_int_equal(mu_resolver_new("tf_config", &error, NULL), -MU_EINVALID);
    assert_int_equal(mu_resolver_new(NULL, NULL, NULL), -MU_EINVALID);
    assert_int_equal(mu_resolver_resolve(NULL, 0, &error, &found), -MU_EINVALID);
    assert_int_equal(mu_resolver_cluster(NULL, 0, NULL, NULL), -MU_EINVALID);
    assert_int_equal(mu_resolver_master(NULL, NULL, -1, NULL, 0, NULL, NULL),
                     -MU_EINVALID);
    resolver = resolver_of("auto");
    assert_int_equal(mu_resolver_resolve(resolver, 0, NULL, NULL), -MU_EINVALID);
    assert_int_equal(mu_resolver_accelerators(resolver, NULL, "wroker", 0, 0, &error,
                                              &counts),
                     -MU_EINVALID);
    expect_words("worker");
    assert_int_equal(mu_resolver_accelerators(resolver, NULL, NULL, -1, 0, &error, NULL),
                     -MU_EINVALID);
    mu_resolver_free(resolver);
}

/* ---- The program's own ---- */

struct mine {
    unsigned detected;
    unsigned resolved;
    unsigned fails; /* so often before it succeeds */
    bool accelerates;
};

static int my_detect(void *user, mu_error *ret_why)
{
    struct mine *mine = user;

    (void)ret_why;
    mine->detected++;
    return 1;
}

static int my_resolve(void *user, int64_t timeout_ms, mu_error *ret_error,
                      mu_resolution *ret_resolution)
{
    struct mine *mine = user;

    assert_true(timeout_ms <= TIMEOUT_MS);
    if (mine->resolved++ < mine->fails)
        return mu_error_set(ret_error, -MU_EUNAVAILABLE, "no ship in the harbour");
    (void)snprintf(ret_resolution->task_type, sizeof ret_resolution->task_type, "ps");
    ret_resolution->task_index = 3;
    if (mine->accelerates) {
        (void)snprintf(ret_resolution->accelerator, sizeof ret_resolution->accelerator,
                       "TPU");
        ret_resolution->accelerators = 4;
    }
    return 0;
}

static void add_line(void *user, const char *line)
{
    char *lines = user;
    size_t used = strlen(lines);

    (void)snprintf(lines + used, 1000 - used, "%s\n", line);
}

TEST(test_own_kinds)
{
    struct mine mine = {.fails = 2};
    mu_resolver_kind kind = {.name = "harbour",
                             .summary = "ships",
                             .user = &mine,
                             .detect = my_detect,
                             .resolve = my_resolve};
    mu_resolver *resolver;
    mu_resolution found;
    char lines[1000] = "";
    mu_value *all;

    assert_int_equal(mu_resolver_register(&kind, &error), 0);
    assert_int_equal(mu_resolver_register(&kind, &error), -MU_EEXISTS);
    assert_string_equal(mu_resolver_name_at(0), "harbour");
    resolver = resolver_of("auto");
    mu_resolver_on_progress(resolver, add_line, lines);
    assert_int_equal(mu_resolver_resolve(resolver, TIMEOUT_MS, &error, &found), 0);
    assert_string_equal(found.source, "harbour");
    assert_int_equal(found.task_index, 3);
    assert_int_equal(mine.resolved, 3);
    assert_non_null(strstr(lines, "no ship in the harbour, try 1, again in "));
    assert_non_null(strstr(lines, "no ship in the harbour, try 2, again in "));
    all = mu_resolver_explain(resolver);
    assert_true(mu_value_count(all) > 1);
    mu_value_free(all);
    mu_resolver_free(resolver);

    mine = (struct mine){.fails = 1};
    resolver = resolver_of("harbour");
    assert_int_equal(mu_resolver_unregister("harbour", &error), 0);
    assert_int_equal(mu_resolver_unregister("harbour", &error), -MU_ENOTFOUND);
    assert_int_equal(mu_resolver_resolve(resolver, 0, &error, &found), -MU_EUNAVAILABLE);
    assert_string_equal(error.message, "no ship in the harbour");
    assert_int_equal(mu_resolver_resolve(resolver, 0, &error, &found), 0);
    assert_int_equal(mine.detected, 0);
    mu_resolver_free(resolver);
}

TEST(test_register_misuse)
{
    static const char *const names[] = {"", "a b", "a.b",
                                        "a-name-of-more-than-thirty-one-bytes", NULL};
    mu_resolver_kind kind = {.name = "x", .resolve = NULL};
    char name[32];

    assert_int_equal(mu_resolver_register(NULL, &error), -MU_EINVALID);
    assert_int_equal(mu_resolver_register(&kind, &error), -MU_EINVALID);
    kind.resolve = my_resolve;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        kind.name = names[i];
        assert_int_equal(mu_resolver_register(&kind, &error), -MU_EINVALID);
    }
    kind.name = "tf_config";
    assert_int_equal(mu_resolver_register(&kind, &error), -MU_EEXISTS);
    kind.name = "auto";
    assert_int_equal(mu_resolver_register(&kind, &error), -MU_EEXISTS);
    assert_int_equal(mu_resolver_unregister(NULL, &error), -MU_EINVALID);
    assert_int_equal(mu_resolver_unregister("tf_config", &error), -MU_ENOTFOUND);
    kind.name = name;
    for (int i = 0; i < MU_RESOLVER_KINDS_MAX; i++) {
        (void)snprintf(name, sizeof name, "kind-%d", i);
        assert_int_equal(mu_resolver_register(&kind, &error), 0);
    }
    kind.name = "one-more";
    assert_int_equal(mu_resolver_register(&kind, &error), -MU_EEXHAUSTED);
    assert_string_equal(mu_resolver_name_at(0), "kind-31");
    for (int i = 0; i < MU_RESOLVER_KINDS_MAX; i++) {
        (void)snprintf(name, sizeof name, "kind-%d", i);
        assert_int_equal(mu_resolver_unregister(name, &error), 0);
    }
}

/* ---- Accelerators ---- */

static void expect_count(const mu_value *counts, const char *kind, int64_t expected)
{
    int64_t count;

    assert_int_equal(mu_value_count(counts), 1);
    assert_string_equal(mu_value_key(counts, 0), kind);
    assert_int_equal(mu_value_get_int(mu_value_at(counts, 0), &count), 0);
    assert_int_equal(count, expected);
}

TEST(test_accelerators_of_the_source)
{
    struct mine mine = {.accelerates = true};
    const mu_resolver_kind kind = {
        .name = "harbour", .user = &mine, .resolve = my_resolve};
    mu_resolver *resolver;
    mu_value *counts;

    assert_int_equal(mu_resolver_register(&kind, &error), 0);
    resolver = resolver_of("harbour");
    assert_int_equal(
        mu_resolver_accelerators(resolver, NULL, NULL, -1, 0, &error, &counts), 0);
    expect_count(counts, "TPU", 4);
    mu_value_free(counts);
    mine.accelerates = false;
    assert_int_equal(
        mu_resolver_accelerators(resolver, NULL, NULL, -1, 0, &error, &counts), 0);
    assert_int_equal(mu_value_count(counts), 0);
    mu_value_free(counts);
    mu_resolver_free(resolver);
    assert_int_equal(mu_resolver_unregister("harbour", &error), 0);
}

static void add_devices(mu_value *machine, const char *key, unsigned count)
{
    mu_value *devices = mu_value_list();

    for (unsigned i = 0; i < count; i++)
        assert_int_equal(mu_value_append(devices, mu_value_map()), 0);
    assert_int_equal(mu_value_set(machine, key, devices), 0);
}

static void add_machine(mu_value *list, const char *task, unsigned gpus, unsigned tpus)
{
    mu_value *machine = mu_value_map();

    assert_int_equal(mu_value_set(machine, "task", mu_value_string(task)), 0);
    add_devices(machine, "gpus", gpus);
    add_devices(machine, "tpus", tpus);
    assert_int_equal(mu_value_append(list, machine), 0);
}

TEST(test_counting)
{
    static const struct {
        const char *type;
        int index;
        bool knows_cluster;
        int rv;
        size_t counts[MU__ACCELERATORS];
        const char *words;
    } rows[] = {
        /* clang-format off */
        {"worker", 0, true, 0, {2, 4}, NULL},
        {"worker", -1, true, -MU_EUNAVAILABLE, {0},
         "/job:worker/task:2 has not reported its devices yet"},
        {"worker", -1, false, 0, {2, 4}, NULL},
        {"ps", 0, true, 0, {0, 0}, NULL},
        {"ps", 1, true, -MU_EUNAVAILABLE, {0},
         "/job:ps/task:1 has not reported its devices yet"},
        {NULL, -1, true, -MU_EPRECONDITION, {0},
         "of GPUs /job:ps/task:0 has 0 and /job:worker/task:0 has 2"},
        {"evaluator", -1, false, -MU_EPRECONDITION, {0},
         "of TPUs /job:evaluator/task:0 has 1 and /job:evaluator/task:1 has 8"},
        {NULL, -1, false, -MU_EPRECONDITION, {0},
         "/job:worker/task:0 has 2 and /job:ps/task:0 has 0"},
        /* clang-format on */
    };
    mu_cluster *cluster = mu_cluster_new();
    mu_value *list = mu_value_list();

    add_machine(list, "/job:worker/task:0", 2, 4);
    add_machine(list, "/job:worker/task:1", 2, 4);
    add_machine(list, "/job:ps/task:0", 0, 0);
    add_machine(list, "/job:evaluator/task:0", 0, 1);
    add_machine(list, "/job:evaluator/task:1", 0, 8);
    for (int i = 0; i < 3; i++) {
        char address[16];

        (void)snprintf(address, sizeof address, "w%d:1", i);
        assert_int_equal(mu_cluster_add(cluster, "worker", i, address, &error), 0);
    }
    assert_int_equal(mu_cluster_add(cluster, "ps", 0, "p0:1", &error), 0);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        size_t counts[MU__ACCELERATORS] = {99, 99};
        int rv = mu__devices_count(list, rows[i].knows_cluster ? cluster : NULL,
                                   rows[i].type, rows[i].index, &error, counts);

        if (rv != rows[i].rv)
            fail_msg("row %zu: %d", i, rv);
        for (size_t j = 0; j < MU__ACCELERATORS; j++)
            assert_int_equal(counts[j], rv == 0 ? rows[i].counts[j] : 99);
        if (rv != 0)
            expect_words(rows[i].words);
    }
    mu_cluster_free(cluster);
    mu_value_free(list);
}

int main(void)
{
    (void)unsetenv("TF_CONFIG");
    return tests_run(NULL, NULL);
}
