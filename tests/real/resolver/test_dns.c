/* Names, asked of a real DNS server (dnsmasq), and of one that lies. */
#include "tests/real/asking.h"
#include "tests/real/dnsmasq.h"

#include <muster/resolver.h>

#include <uv.h>

/* ---- Asking ---- */

struct desk {
    struct asking asking;
    char server[32];
};

static void desk_open(struct desk *desk, int port)
{
    (void)snprintf(desk->server, sizeof desk->server, "127.0.0.1:%d", port);
    asking_begin(&desk->asking);
}

/* Whatever is under way is given up. */
static void desk_close(struct desk *desk)
{
    asking_end(&desk->asking);
}

static const struct mu__answer *desk_request(struct desk *desk,
                                             const struct mu__request *request)
{
    return asking_get(&desk->asking, request);
}

/* One request with requests of its own; the caller frees the text. */
static char *request_once(int port, enum mu__request_kind kind, const char *name,
                          uint32_t timeout_ms, mu_error *ret_error)
{
    struct mu__request request = {.kind = kind, .name = name, .timeout_ms = timeout_ms};
    const struct mu__answer *answer;
    char *text = NULL;
    struct desk desk;

    desk_open(&desk, port);
    request.dns_server = desk.server;
    answer = desk_request(&desk, &request);
    *ret_error = answer->error;
    assert_int_equal(ret_error->code, answer->code);
    if (answer->code == 0) {
        assert_int_equal(strlen(answer->data), answer->size);
        text = strdup(answer->data);
        assert_non_null(text);
    }
    desk_close(&desk);
    return text;
}

static void expect(int port, enum mu__request_kind kind, const char *name,
                   const char *expected)
{
    mu_error error = {0};
    char *text = request_once(port, kind, name, 0, &error);

    if (text == NULL)
        fail_msg("%s", error.message);
    assert_string_equal(text, expected);
    free(text);
}

static void expect_error(int port, enum mu__request_kind kind, const char *name,
                         uint32_t timeout_ms, int code, const char *words)
{
    mu_error error = {0};
    char *text = request_once(port, kind, name, timeout_ms, &error);

    if (text != NULL)
        fail_msg("%s is \"%s\"", name, text);
    if (error.code != code || strstr(error.message, words) == NULL)
        fail_msg("%d \"%s\", and not %d \"%s\"", error.code, error.message, code, words);
    if (strstr(error.message, name) == NULL)
        fail_msg("\"%s\" does not name %s", error.message, name);
}

static uint64_t now_ms(void)
{
    return uv_hrtime() / 1000000;
}

/* ---- A real server ---- */

static const char conf[] = "srv-host=_ps._tcp.test,ps-1.test,2222,1,5\n"
                           "srv-host=_ps._tcp.test,ps-0.test,2222,1,7\n"
                           "srv-host=_ps._tcp.test,ps-9.test,2222,0,0\n"
                           "srv-host=_none._tcp.test\n"
                           "cname=alias.test,workers.test\n"
                           "cname=other.test,alias.test\n";

static const char hosts[] = "127.0.0.1 ready.test\n"
                            "10.0.0.10 workers.test\n"
                            "10.0.0.2 workers.test\n"
                            "fd00::2 workers.test\n"
                            "fd00::3 six.test\n";

static int open_server(void **state)
{
    static struct dnsmasq dnsmasq;

    dnsmasq_open(&dnsmasq, 0, conf, hosts);
    *state = &dnsmasq;
    return 0;
}

static int close_server(void **state)
{
    dnsmasq_close(*state);
    return 0;
}

TEST(test_both_kinds_of_records)
{
    const struct dnsmasq *dnsmasq = *state;

    expect(dnsmasq->port, MU__REQUEST_ADDRESSES, "workers.test",
           "10.0.0.2\n10.0.0.10\nfd00::2\n");
    expect(dnsmasq->port, MU__REQUEST_ADDRESSES, "WORKERS.test.",
           "10.0.0.2\n10.0.0.10\nfd00::2\n");
    expect(dnsmasq->port, MU__REQUEST_ADDRESSES, "other.test",
           "10.0.0.2\n10.0.0.10\nfd00::2\n");
    expect(dnsmasq->port, MU__REQUEST_ADDRESSES, "six.test", "fd00::3\n");
    expect(dnsmasq->port, MU__REQUEST_SERVICES, "_ps._tcp.test",
           "0 0 2222 ps-9.test\n1 7 2222 ps-0.test\n1 5 2222 ps-1.test\n");
}

TEST(test_what_is_not_there)
{
    const struct dnsmasq *dnsmasq = *state;

    expect_error(dnsmasq->port, MU__REQUEST_ADDRESSES, "nobody.test", 0, -MU_ENOTFOUND,
                 "DNS server 127.0.0.1 knows no such name");
    expect_error(dnsmasq->port, MU__REQUEST_SERVICES, "_nobody._tcp.test", 0,
                 -MU_ENOTFOUND, "knows no such name");
    expect_error(dnsmasq->port, MU__REQUEST_SERVICES, "workers.test", 0, -MU_ENOTFOUND,
                 "knows no services (SRV) of it");
    expect_error(dnsmasq->port, MU__REQUEST_SERVICES, "_none._tcp.test", 0, -MU_ENOTFOUND,
                 "knows no services (SRV) of it");
    expect_error(dnsmasq->port, MU__REQUEST_ADDRESSES, "elsewhere.example", 0,
                 -MU_EUNAVAILABLE, "says REFUSED");
}

TEST(test_what_is_no_name)
{
    const struct dnsmasq *dnsmasq = *state;

    expect_error(dnsmasq->port, MU__REQUEST_ADDRESSES, "two words", 0, -MU_EINVALID,
                 "at 4: expected a letter, a digit");
    expect_error(dnsmasq->port, MU__REQUEST_SERVICES, "a..test", 0, -MU_EINVALID,
                 "at 3: expected a part of a name");
    expect_error(dnsmasq->port, MU__REQUEST_ADDRESSES, "", 0, -MU_EINVALID,
                 "expected a name to look up, got none");
}

/* Numbers are not asked for at all. */
TEST(test_numbers)
{
    expect(1, MU__REQUEST_ADDRESSES, "10.1.2.3", "10.1.2.3\n");
    expect(1, MU__REQUEST_ADDRESSES, "FD00:0::1", "fd00::1\n");
}

TEST(test_bad_server)
{
    static const char *const servers[] = {"localhost", "1.2.3.4:",      "1.2.3.4:0",
                                          "",          "1.2.3.4:65536", "[::1",
                                          "::1]:53",   "[::1]x"};
    const struct mu__answer *answer;

    for (size_t i = 0; i < sizeof servers / sizeof servers[0]; i++) {
        const struct mu__request request = {
            .kind = MU__REQUEST_SERVICES, .name = "a.test", .dns_server = servers[i]};
        struct desk desk;

        desk_open(&desk, 1);
        answer = desk_request(&desk, &request);
        assert_int_equal(answer->code, -MU_EINVALID);
        assert_non_null(strstr(answer->error.message,
                               "expected ADDRESS or ADDRESS:PORT"));
        desk_close(&desk);
    }
}

TEST(test_changed_answers)
{
    const struct dnsmasq *dnsmasq = *state;
    uint64_t due_ms = now_ms() + SOON_MS;
    mu_error error;
    char *text;

    dnsmasq_change(dnsmasq, "127.0.0.1 ready.test\n10.0.0.77 workers.test\n");
    do {
        text =
            request_once(dnsmasq->port, MU__REQUEST_ADDRESSES, "workers.test", 0, &error);
        assert_non_null(text);
        if (strcmp(text, "10.0.0.77\n") == 0)
            break;
        free(text);
        text = NULL;
    } while (now_ms() < due_ms);
    assert_non_null(text);
    free(text);
    dnsmasq_change(dnsmasq, hosts);
}

/* More than fits a datagram, so that it is asked over TCP. */
TEST(test_large_answer)
{
    enum { COUNT = 700 };
    static char many[COUNT * 40];
    static char expected[COUNT * 16];
    size_t at = 0;
    size_t expected_at = 0;
    struct dnsmasq dnsmasq;

    for (unsigned i = 0; i < COUNT; i++) {
        unsigned shuffled = i * 333 % COUNT; /* 333 and COUNT have no common divisor */

        at += (size_t)snprintf(many + at, sizeof many - at, "10.1.%u.%u many.test\n",
                               shuffled / 256, shuffled % 256);
        expected_at +=
            (size_t)snprintf(expected + expected_at, sizeof expected - expected_at,
                             "10.1.%u.%u\n", i / 256, i % 256);
    }
    dnsmasq_open(&dnsmasq, 0, "", many);
    expect(dnsmasq.port, MU__REQUEST_ADDRESSES, "many.test", expected);
    dnsmasq_close(&dnsmasq);
}

TEST(test_answer_beyond_bound)
{
    const struct dnsmasq *dnsmasq = *state;
    struct mu__request request = {
        .kind = MU__REQUEST_ADDRESSES, .name = "workers.test", .bytes_max = 10};
    const struct mu__answer *answer;
    struct desk desk;

    desk_open(&desk, dnsmasq->port);
    request.dns_server = desk.server;
    answer = desk_request(&desk, &request);
    assert_int_equal(answer->code, -MU_EEXHAUSTED);
    assert_string_equal(answer->error.message,
                        "workers.test: expected at most 10 bytes of records, got 27");
    desk_close(&desk);
}

/* A server that is there and silent: the limit holds; one that goes on answers. */
TEST(test_stopped_server)
{
    const struct dnsmasq *dnsmasq = *state;
    uint64_t begun_ms = now_ms();

    assert_int_equal(kill(dnsmasq->pid, SIGSTOP), 0);
    expect_error(dnsmasq->port, MU__REQUEST_ADDRESSES, "workers.test", 300, -MU_EDEADLINE,
                 "127.0.0.1:");
    assert_in_range(now_ms() - begun_ms, 299, 5000);
    assert_int_equal(kill(dnsmasq->pid, SIGCONT), 0);
    expect(dnsmasq->port, MU__REQUEST_ADDRESSES, "six.test", "fd00::3\n");
}

/* A request that was lost is put again. */
TEST(test_question_is_put_again)
{
    const struct dnsmasq *dnsmasq = *state;
    struct mu__request request = {.kind = MU__REQUEST_SERVICES, .name = "_ps._tcp.test"};
    struct desk desk;

    assert_int_equal(kill(dnsmasq->pid, SIGSTOP), 0);
    desk_open(&desk, dnsmasq->port);
    request.dns_server = desk.server;
    asking_start(&desk.asking, &request, 1);
    uv_sleep(100);
    assert_int_equal(kill(dnsmasq->pid, SIGCONT), 0);
    assert_int_equal(pthread_join(desk.asking.thread, NULL), 0);
    desk.asking.is_started = false;
    assert_int_equal(desk_request(&desk, &request)->code, 0);
    desk_close(&desk);
}

/* Nobody waits for a silent server that nobody wants to hear. */
TEST(test_cancelled)
{
    const struct dnsmasq *dnsmasq = *state;
    const char *const names[] = {"a.test", "b.test", "c.test", "d.test",
                                 "e.test", "f.test", "g.test", "h.test"};
    enum { COUNT = sizeof names / sizeof names[0] };
    struct mu__request list[COUNT];
    uint64_t begun_ms = now_ms();
    struct desk desk;

    assert_int_equal(kill(dnsmasq->pid, SIGSTOP), 0);
    desk_open(&desk, dnsmasq->port);
    for (size_t i = 0; i < COUNT; i++)
        list[i] = (struct mu__request){
            .kind = MU__REQUEST_ADDRESSES, .name = names[i], .dns_server = desk.server};
    asking_start(&desk.asking, list, COUNT);
    uv_sleep(100);
    desk_close(&desk);
    assert_true(now_ms() - begun_ms < MU__REQUEST_TIMEOUT_MS / 2);
    assert_int_equal(kill(dnsmasq->pid, SIGCONT), 0);
}

TEST(test_killed_server)
{
    struct dnsmasq *dnsmasq = *state;
    uint64_t begun_ms = now_ms();

    dnsmasq_kill(dnsmasq);
    expect_error(dnsmasq->port, MU__REQUEST_ADDRESSES, "workers.test", 0,
                 -MU_EUNAVAILABLE, "connection refused");
    assert_true(now_ms() - begun_ms < MU__REQUEST_TIMEOUT_MS / 2);
    dnsmasq_start(dnsmasq);
    expect(dnsmasq->port, MU__REQUEST_ADDRESSES, "six.test", "fd00::3\n");
}

/* The system's own look-up, of the one name that needs no server. */
TEST(test_system)
{
    const struct mu__request request = {.kind = MU__REQUEST_ADDRESSES,
                                        .name = "localhost"};
    const struct mu__answer *answer;
    struct desk desk;

    desk_open(&desk, 1);
    answer = desk_request(&desk, &request);
    assert_int_equal(answer->code, 0);
    assert_non_null(strstr(answer->data, "127.0.0.1\n"));
    desk_close(&desk);
}

/* ---- The resolver ---- */

static mu_resolver *open_resolver(const struct dnsmasq *dnsmasq)
{
    static const char *const settings[][2] = {
        {"names", "worker=grow.test:2222,ps=_ps._tcp.test"},
        {"tasks", "worker=2"},
        {"host", "10.0.0.4"},
    };
    mu_resolver *resolver;
    char server[32];
    mu_error error;

    assert_int_equal(mu_resolver_new("dns", &error, &resolver), 0);
    for (size_t i = 0; i < sizeof settings / sizeof settings[0]; i++)
        assert_int_equal(
            mu_resolver_set(resolver, settings[i][0], settings[i][1], &error), 0);
    (void)snprintf(server, sizeof server, "127.0.0.1:%d", dnsmasq->port);
    assert_int_equal(mu_resolver_set(resolver, "dns_server", server, &error), 0);
    return resolver;
}

/* Tasks join after the first try has failed. */
static void on_progress(void *user, const char *line)
{
    const struct dnsmasq *dnsmasq = user;

    assert_non_null(strstr(line, "1 of 2 tasks"));
    dnsmasq_change(dnsmasq, "127.0.0.1 ready.test\n10.0.0.4 grow.test\n"
                            "10.0.0.3 grow.test\n");
}

TEST(test_resolver_waits_for_tasks)
{
    struct dnsmasq dnsmasq;
    mu_resolution resolution;
    mu_resolver *resolver;
    mu_error error;
    char *json;

    dnsmasq_open(&dnsmasq, 0, conf, "127.0.0.1 ready.test\n10.0.0.4 grow.test\n");
    resolver = open_resolver(&dnsmasq);
    assert_int_equal(mu_resolver_resolve(resolver, 0, &error, &resolution),
                     -MU_EUNAVAILABLE);
    assert_non_null(strstr(error.message, "job worker: DNS has 1 of 2 tasks"));
    mu_resolver_on_progress(resolver, on_progress, &dnsmasq);
    if (mu_resolver_resolve(resolver, SOON_MS, &error, &resolution) != 0)
        fail_msg("%s", error.message);
    json = mu_cluster_to_json(resolution.cluster);
    assert_string_equal(json, "{\"ps\":[\"ps-9.test:2222\",\"ps-0.test:2222\","
                              "\"ps-1.test:2222\"],\"worker\":[\"10.0.0.3:2222\","
                              "\"10.0.0.4:2222\"]}");
    assert_string_equal(resolution.task_type, "worker");
    assert_int_equal(resolution.task_index, 1);
    free(json);
    mu_cluster_free(resolution.cluster);
    mu_resolver_free(resolver);
    dnsmasq_close(&dnsmasq);
}

/* ---- One that lies ---- */

/* What it does with a request: its bytes are changed, and what follows is added. */
struct lie {
    const char *what;
    size_t at;  /* this byte of the answer */
    uint8_t to; /* becomes this */
    const char *tail;
    size_t tail_size;
    uint8_t answers;
    int code;
    const char *words;
};

struct liar {
    int fd;
    int port;
    const struct lie *lie;
    pthread_t thread;
};

static void *lie_on(void *arg)
{
    const struct liar *liar = arg;
    unsigned char bytes[1024];
    struct sockaddr_in from;
    socklen_t from_size = sizeof from;
    ssize_t size;

    for (;;) {
        size = recvfrom(liar->fd, bytes, 512, 0, (struct sockaddr *)&from, &from_size);
        if (size < 12)
            return NULL; /* the test says that it is enough */
        bytes[2] |= 0x80;
        bytes[7] = liar->lie->answers;
        memcpy(bytes + size, liar->lie->tail, liar->lie->tail_size);
        bytes[liar->lie->at] = liar->lie->to;
        size += (ssize_t)liar->lie->tail_size;
        (void)sendto(liar->fd, bytes, (size_t)size, 0, (struct sockaddr *)&from,
                     from_size);
    }
}

static void liar_open(struct liar *liar, const struct lie *lie)
{
    struct sockaddr_in address = {.sin_family = AF_INET};
    socklen_t size = sizeof address;

    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    liar->lie = lie;
    liar->fd = socket(AF_INET, SOCK_DGRAM, 0);
    assert_true(liar->fd >= 0);
    assert_int_equal(bind(liar->fd, (struct sockaddr *)&address, sizeof address), 0);
    assert_int_equal(getsockname(liar->fd, (struct sockaddr *)&address, &size), 0);
    liar->port = ntohs(address.sin_port);
    assert_int_equal(pthread_create(&liar->thread, NULL, lie_on, liar), 0);
}

static void liar_close(struct liar *liar)
{
    struct sockaddr_in address = {.sin_family = AF_INET};
    int fd = socket(AF_INET, SOCK_DGRAM, 0);

    address.sin_port = htons((uint16_t)liar->port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    assert_int_equal(sendto(fd, "", 1, 0, (struct sockaddr *)&address, sizeof address),
                     1);
    (void)close(fd);
    assert_int_equal(pthread_join(liar->thread, NULL), 0);
    (void)close(liar->fd);
}

#define TAIL(text) .tail = (text), .tail_size = sizeof(text) - 1

TEST(test_lies)
{
    static const struct lie lies[] = {
        {.what = "of another question",
         .at = 13,
         .to = 'x',
         TAIL(""),
         .code = -MU_EDEADLINE,
         .words = "127.0.0.1:"},
        {.what = "not an answer",
         .at = 2,
         .to = 1,
         TAIL(""),
         .code = -MU_EINVALID,
         .words = "its answer is malformed"},
        {.what = "SERVFAIL",
         .at = 3,
         .to = 0x82,
         TAIL(""),
         .code = -MU_EUNAVAILABLE,
         .words = "says SERVFAIL"},
        {.what = "FORMERR",
         .at = 3,
         .to = 0x81,
         TAIL(""),
         .code = -MU_EUNAVAILABLE,
         .words = "says FORMERR"},
        {.what = "fewer records than it says",
         .at = 3,
         .to = 0x80,
         TAIL(""),
         .answers = 9,
         .code = -MU_EINVALID,
         .words = "its answer is malformed"},
        {.what = "a name of itself",
         .at = 3,
         .to = 0x80,
         TAIL("\xC0\x1A\0\1\0\1\0\0\0\0\0\4\1\2\3\4"),
         .answers = 1,
         .code = -MU_EINVALID,
         .words = "its answer is malformed"},
        {.what = "cut off, and nobody is there over TCP",
         .at = 2,
         .to = 0x83,
         TAIL(""),
         .code = -MU_EUNAVAILABLE,
         .words = "connection refused"},
    };

    for (size_t i = 0; i < sizeof lies / sizeof lies[0]; i++) {
        struct liar liar;

        print_message("%s\n", lies[i].what);
        liar_open(&liar, &lies[i]);
        expect_error(liar.port, MU__REQUEST_ADDRESSES, "abc.test", 300, lies[i].code,
                     lies[i].words);
        liar_close(&liar);
    }
}

NEEDS_PROGRAM(needs_programs("dnsmasq", NULL), open_server, close_server)
