/* Strangers on the port of a cluster at work, who have proven nothing: silent ones, half
 * greetings, garbage, other keys and certificates, no TLS, and what others have said,
 * played again. MUSTER_STRANGERS is how many of each kind there are. */
#include "tests/real/security/at_work.h"

#include "tests/real/certificates.h"
#include "transport/wire/tls/endpoint.h"
#include "transport/wire/tls/key.h"

#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>

enum { MANY = 60, RECORD_BYTES = 1 << 20, SOME_BYTES = 4096 };

static int silent[4096];
static unsigned silent_count;

static unsigned how_many(void)
{
    const char *text = getenv("MUSTER_STRANGERS");
    unsigned long count = text == NULL ? MANY : strtoul(text, NULL, 10);

    return count < 1 || count > 4096 ? MANY : (unsigned)count;
}

/* Silent ones are there from the begin to the end. */
static int begin(void **state)
{
    (void)state;
    at_work_begin();
    while (silent_count < how_many()) {
        int fd = at_work_connect(silent_count % AT_WORK_TASKS);

        if (fd >= 0)
            silent[silent_count] = fd;
        assert_true(fd >= 0);
        silent_count++;
    }
    return 0;
}

static int finish(void **state)
{
    (void)state;
    while (silent_count > 0)
        (void)close(silent[--silent_count]);
    at_work_end();
    return 0;
}

static void send_all(int fd, const void *data, size_t size)
{
    const uint8_t *at = data;

    while (size > 0) {
        ssize_t sent = send(fd, at, size, MSG_NOSIGNAL);

        if (sent <= 0)
            return; /* they have had enough of it */
        at += sent;
        size -= (size_t)sent;
    }
}

/* Nobody is told anything but TLS's own words: it is not the greeting of a wire, nor a
 * frame. Until the other end hangs up, or for `ms`. */
static void expect_no_answer(int fd, int ms)
{
    static const uint8_t greeting[] = {0, 'S', 'P', 0};
    struct pollfd waits = {.fd = fd, .events = POLLIN};
    uint8_t heard[SOME_BYTES];

    while (poll(&waits, 1, ms) > 0) {
        ssize_t size = recv(fd, heard, sizeof heard, 0);

        if (size <= 0)
            return;
        for (ssize_t i = 0; i + 4 <= size; i++) {
            assert_memory_not_equal(heard + i, "MUST", 4);
            assert_memory_not_equal(heard + i, greeting, 4);
        }
    }
}

/* One after the other to each task, in turn. */
static void each(void (*say)(int fd, unsigned number))
{
    for (unsigned i = 0; i < how_many(); i++) {
        int fd = at_work_connect(i % AT_WORK_TASKS);

        if (fd < 0)
            continue;
        say(fd, i);
        (void)close(fd);
    }
    at_work_is_unharmed();
}

static uint32_t drawn = 4711;

static uint8_t draw(void)
{
    drawn = drawn * 1664525 + 1013904223;
    return (uint8_t)(drawn >> 24);
}

static void say_garbage(int fd, unsigned number)
{
    uint8_t bytes[SOME_BYTES];

    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = draw();
    send_all(fd, bytes, 1 + number * 97 % sizeof bytes);
    expect_no_answer(fd, 20);
}

TEST(test_garbage)
{
    each(say_garbage);
    (void)cli_expect(&at_work.run, NULL, "dropped a connection from 127.0.0.1:");
}

/* As nodes without TLS speak: a greeting, and a HELLO as the chief's. */
static void say_plain(int fd, unsigned number)
{
    static const uint8_t bytes[] = {0, 'S', 'P', 0,  0,   0x50, 0,   0,   0, 0, 0, 0,
                                    0, 0,   0,   40, 'M', 'U',  'S', 'T', 1, 0, 1, 0};

    send_all(fd, bytes, number % 2 == 0 ? sizeof bytes : 8);
    expect_no_answer(fd, 20);
}

TEST(test_plain)
{
    each(say_plain);
    (void)cli_expect(&at_work.run, NULL, "the peer speaks without TLS");
}

/* ---- TLS with what is not theirs ---- */

static struct mu__tls_identity *foreign;

/* Speak with this identity: what is said in the session is never heard. */
static void say_with_tls(int fd, unsigned number)
{
    static const char words[] = "\0SP\0\0\x50\0\0 run touch";
    struct mu__tls *tls = mu__tls_new(foreign, false);
    struct pollfd waits = {.fd = fd, .events = POLLIN};
    bool has_said = false;
    uint8_t heard[SOME_BYTES];

    (void)number;
    assert_non_null(tls);
    assert_int_equal(mu__tls_begin(tls), 0);
    for (int i = 0; i < 20; i++) {
        struct mu__buf *output = mu__tls_output(tls);
        char text[64];
        ssize_t size;

        if (output != NULL)
            send_all(fd, output->data, output->size);
        mu__buf_unref(output);
        if (!has_said && mu__tls_is_open(tls))
            has_said = mu__tls_write(tls, words, sizeof words) >= 0;
        if (poll(&waits, 1, 20) <= 0)
            continue;
        size = recv(fd, heard, sizeof heard, 0);
        if (size <= 0 || !mu__tls_receive(tls, heard, (size_t)size))
            break;
        if (mu__tls_read(tls, text, sizeof text) != 0)
            break; /* an alert: nothing else can be said to it */
        (void)mu__tls_keep_input(tls);
    }
    mu__tls_free(tls);
}

/* Lines about strangers are few, and say why of the last one. */
static void say_until_named(const char *words)
{
    uint64_t deadline_ms = cli_now_ms() + CLI_SOON_MS;

    do {
        int fd = at_work_connect(0);

        if (fd < 0)
            continue;
        say_with_tls(fd, 0);
        (void)close(fd);
        cli_read(&at_work.run);
        if (strstr(at_work.run.text, words) != NULL)
            return;
    } while (cli_now_ms() < deadline_ms);
    fail_msg("\"%s\" was not printed", words);
}

TEST(test_another_key)
{
    struct mu__key key;

    assert_int_equal(mu__key_new(NULL, &key), 0);
    assert_int_equal(mu__tls_identity_of_key(&key, NULL, &foreign), 0);
    each(say_with_tls);
    say_until_named("every node of a cluster needs the same key");
    mu__tls_identity_free(foreign);
}

TEST(test_a_certificate)
{
    struct certified ca;
    struct certified own;
    struct mu__tls_pem pem = {ca.pem, own.pem, own.key_pem, false};

    certified_make(&ca, NULL, NULL, NULL, -60, 3600);
    certified_make(&own, &ca, "URI:muster:/job:chief/task:0", NULL, -60, 3600);
    assert_int_equal(mu__tls_identity_of_pem(&pem, NULL, &foreign), 0);
    each(say_with_tls);
    mu__tls_identity_free(foreign);
    certified_free(&own);
    certified_free(&ca);
}

/* ---- what a client with the key has said, played again ---- */

struct recorder {
    int listens;
    char address[64];
    uint8_t bytes[RECORD_BYTES];
    size_t size;
    atomic_bool is_over;
};

static struct recorder recorder;

/* Carry bytes to the chief and back, and keep those of the client. */
static void carry(int client)
{
    int chief = at_work_connect(0);
    struct pollfd waits[2] = {{.fd = client, .events = POLLIN},
                              {.fd = chief, .events = POLLIN}};
    uint8_t bytes[SOME_BYTES];

    while (chief >= 0 && !recorder.is_over) {
        if (poll(waits, 2, 20) <= 0)
            continue;
        for (int i = 0; i < 2; i++) {
            ssize_t size;

            if ((waits[i].revents & (POLLIN | POLLHUP | POLLERR)) == 0)
                continue;
            size = recv(waits[i].fd, bytes, sizeof bytes, 0);
            if (size <= 0) {
                (void)close(chief);
                return;
            }
            send_all(waits[1 - i].fd, bytes, (size_t)size);
            if (i != 0 || recorder.size + (size_t)size > RECORD_BYTES)
                continue;
            memcpy(recorder.bytes + recorder.size, bytes, (size_t)size);
            recorder.size += (size_t)size;
        }
    }
    (void)close(chief);
}

static void *record(void *arg)
{
    struct pollfd waits = {.fd = recorder.listens, .events = POLLIN};

    while (!recorder.is_over) {
        int client;

        if (poll(&waits, 1, 20) <= 0)
            continue;
        client = accept(recorder.listens, NULL, NULL);
        if (client < 0 || recorder.size > 0) {
            (void)close(client);
            continue;
        }
        carry(client);
        (void)close(client);
    }
    return arg;
}

static void open_recorder(void)
{
    struct sockaddr_in address = {.sin_family = AF_INET};
    socklen_t size = sizeof address;

    recorder.listens = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    assert_int_equal(bind(recorder.listens, (struct sockaddr *)&address, sizeof address),
                     0);
    assert_int_equal(listen(recorder.listens, 16), 0);
    assert_int_equal(getsockname(recorder.listens, (struct sockaddr *)&address, &size),
                     0);
    (void)snprintf(recorder.address, sizeof recorder.address, "tcp://127.0.0.1:%u",
                   (unsigned)ntohs(address.sin_port));
}

static void say_again(int fd, unsigned number)
{
    size_t size = recorder.size;

    if (number % 3 == 1)
        size = size / 2;
    else if (number % 3 == 2)
        size = 100; /* half of a handshake, and then nothing */
    send_all(fd, recorder.bytes, size);
    expect_no_answer(fd, 20);
}

TEST(test_played_again)
{
    static struct cli asked;
    pthread_t thread;
    char value[32];

    open_recorder();
    assert_int_equal(pthread_create(&thread, NULL, record, NULL), 0);
    cli_start(&asked, NULL, "kv", "incr", "counted", "--address", recorder.address,
              "--key-file", at_work.key, NULL);
    cli_expect_code(&asked, 0);
    recorder.is_over = true;
    assert_int_equal(pthread_join(thread, NULL), 0);
    (void)close(recorder.listens);
    assert_in_range(recorder.size, 300, RECORD_BYTES);
    each(say_again);
    /* It has counted once. */
    cli_start(&asked, NULL, "kv", "get", "counted", "--address", at_work.addresses[0],
              "--key-file", at_work.key, NULL);
    cli_expect_code(&asked, 0);
    (void)snprintf(value, sizeof value, "%.30s", asked.text);
    assert_int_equal(strtol(value, NULL, 10), 1);
}

/* Those that say nothing have been there all the time. */
TEST(test_silent_ones_cost_nothing)
{
    for (unsigned i = 0; i < silent_count; i++)
        expect_no_answer(silent[i], 0);
    at_work_is_unharmed();
}

int main(void)
{
    (void)signal(SIGPIPE, SIG_IGN);
    return tests_run(begin, finish);
}
