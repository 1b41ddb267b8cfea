/* Sockets that listen before there is a wire, addresses to tell, and files that are
 * written whole. */
#include "tests/real/nodes.h"

#include "node/own_address.h"
#include "resolver/write_uv.h"
#include "transport/listen_uv.h"

#include <sys/stat.h>

/* What connects early waits. */
static void test_tcp(void **state)
{
    struct sockaddr_in address = {.sin_family = AF_INET};
    struct mu__listening listening;
    struct mu__listening other;
    mu_error error = {0};
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    unsigned port = 0;

    (void)state;
    assert_true(fd >= 0);
    assert_int_equal(mu__listen("tcp://127.0.0.1:0", &error, &listening), 0);
    assert_int_equal(sscanf(listening.text, "tcp://127.0.0.1:%u", &port), 1);
    assert_int_not_equal(port, 0);
    address.sin_port = htons((uint16_t)port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof address), 0);
    assert_int_equal(mu__listen(listening.text, &error, &other), -MU_EEXISTS);
    assert_non_null(strstr(error.message, listening.text));
    (void)close(fd);
    mu__listening_close(&listening);
    mu__listening_close(&listening);
}

static void test_ipc(void **state)
{
    char folder[] = "/tmp/muster-listen-XXXXXX";
    struct mu__listening listening;
    struct mu__listening other;
    char url[64];
    mu_error error = {0};

    (void)state;
    assert_non_null(mkdtemp(folder));
    (void)snprintf(url, sizeof url, "ipc://%s/s", folder);
    assert_int_equal(mu__listen(url, &error, &listening), 0);
    assert_string_equal(listening.text, url);
    assert_int_equal(mu__listen(url, &error, &other), -MU_EEXISTS);
    /* As after a crash: the file is there, and nobody listens. */
    (void)close(listening.fd);
    assert_int_equal(mu__listen(url, &error, &listening), 0);
    mu__listening_close(&listening);
    assert_int_equal(rmdir(folder), 0);
}

static void test_refused(void **state)
{
    static const struct {
        const char *url;
        int code;
    } rows[] = {
        {"127.0.0.1:1", -MU_EINVALID},
        {"tcp://127.0.0.1", -MU_EINVALID},
        {"tcp://192.0.2.1:0", -MU_EINVALID},        /* an address that is not ours */
        {"ipc:///no/such/folder/s", -MU_EINVALID},
    };
    struct mu__listening listening;

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        mu_error error = {0};

        assert_int_equal(mu__listen(rows[i].url, &error, &listening), rows[i].code);
        assert_non_null(strstr(error.message, rows[i].url));
    }
}

static void test_advertised(void **state)
{
    static const struct {
        const char *url;
        const char *advertise;
        const char *expected;
    } rows[] = {
        {"tcp://127.0.0.1:4000", NULL, "tcp://127.0.0.1:4000"},
        {"tcp://127.0.0.1:4000", "me.example", "tcp://me.example:4000"},
        {"tcp://127.0.0.1:4000", "me.example:0", "tcp://me.example:4000"},
        {"tcp://0.0.0.0:4000", "tcp://me.example:0", "tcp://me.example:4000"},
        {"tcp://[::]:4000", "[2001:db8::1]", "tcp://[2001:db8::1]:4000"},
        {"tcp://[::]:4000", "[2001:db8::1]:0", "tcp://[2001:db8::1]:4000"},
        {"tcp://127.0.0.1:4000", "tcp://me.example:80", "tcp://me.example:80"},
        {"tcp://[::1]:4000", NULL, "tcp://[::1]:4000"},
        {"ipc:///x/s", NULL, "ipc:///x/s"},
        {"tcp://127.0.0.1:4000", "ipc:///x/s", "ipc:///x/s"},
    };
    char out[MU__OWN_ADDRESS_BYTES];

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        mu__advertised(rows[i].url, rows[i].advertise, out);
        assert_string_equal(out, rows[i].expected);
    }
}

/* In place of "any" stands this machine's address, at which one can listen. */
static void test_own_address(void **state)
{
    struct mu__listening listening;
    char host[MU__OWN_HOST_BYTES];
    char out[MU__OWN_ADDRESS_BYTES];
    char expected[MU__OWN_ADDRESS_BYTES];
    mu_error error = {0};
    bool v6;

    (void)state;
    mu__own_host(host);
    v6 = strchr(host, ':') != NULL;
    (void)snprintf(expected, sizeof expected, v6 ? "tcp://[%s]:4000" : "tcp://%s:4000",
                   host);
    mu__advertised("tcp://0.0.0.0:4000", NULL, out);
    assert_string_equal(out, expected);
    (void)snprintf(out, sizeof out, v6 ? "tcp://[%s]:0" : "tcp://%s:0", host);
    if (mu__listen(out, &error, &listening) != 0)
        fail_msg("%s", error.message);
    mu__listening_close(&listening);
}

static void expect_content(const char *path, const char *expected)
{
    char text[64] = "";
    FILE *file = fopen(path, "r");

    assert_non_null(file);
    (void)fread(text, 1, sizeof text - 1, file);
    (void)fclose(file);
    assert_string_equal(text, expected);
}

static void test_files(void **state)
{
    char folder[] = "/tmp/muster-write-XXXXXX";
    struct stat about;
    char path[64];
    mu_error error = {0};

    (void)state;
    assert_non_null(mkdtemp(folder));
    (void)snprintf(path, sizeof path, "%s/worker-0", folder);
    assert_int_equal(mu__file_write(path, "one", 3, true, &error), 0);
    expect_content(path, "one");
    assert_int_equal(mu__file_write(path, "two", 3, true, &error), -MU_EEXISTS);
    expect_content(path, "one");
    assert_int_equal(mu__file_write(path, "three", 5, false, &error), 0);
    expect_content(path, "three");
    assert_int_equal(stat(path, &about), 0);
    assert_int_equal(about.st_mode & 0777, 0644);
    assert_int_equal(mu__file_remove(path, &error), 0);
    assert_int_equal(mu__file_remove(path, &error), -MU_ENOTFOUND);
    assert_non_null(strstr(error.message, path));
    /* Nothing of what failed is left behind. */
    assert_int_equal(rmdir(folder), 0);
    assert_int_equal(mu__file_write(path, "x", 1, false, &error), -MU_ENOTFOUND);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tcp),
        cmocka_unit_test(test_ipc),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_advertised),
        cmocka_unit_test(test_own_address),
        cmocka_unit_test(test_files),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
