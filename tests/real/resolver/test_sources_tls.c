/* Requests over TLS, against OpenSSL's own server with certificates that are made for
 * the test. Skipped where there is no `openssl`. */
#include "tests/real/asking.h"
#include "tests/real/needs.h"
#include "tests/support/test.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include <uv.h>

enum { TEXT_BYTES = 8192, TIMEOUT_MS = 20000 };

static char folder[] = "/tmp/muster-tls-XXXXXX";
static char ca[TEXT_BYTES];
static char certificate[TEXT_BYTES];
static char key[TEXT_BYTES];

/* ---- Certificates ---- */

/* Run a command of openssl's in the folder. */
static void openssl(const char *arguments)
{
    char command[1024];

    (void)snprintf(command, sizeof command, "cd %s && openssl %s >/dev/null 2>&1", folder,
                   arguments);
    if (system(command) != 0)
        fail_msg("openssl %s", arguments);
}

static void read_text(const char *name, char *out)
{
    char path[128];
    FILE *file;
    size_t size;

    (void)snprintf(path, sizeof path, "%s/%s", folder, name);
    file = fopen(path, "r");
    assert_non_null(file);
    size = fread(out, 1, TEXT_BYTES - 1, file);
    out[size] = '\0';
    assert_int_equal(fclose(file), 0);
}

static int make_certificates(void **state)
{
    (void)state;
    (void)signal(SIGPIPE, SIG_IGN);
    assert_non_null(mkdtemp(folder));
    openssl("req -x509 -newkey rsa:2048 -nodes -keyout ca.key -out ca.pem -days 2 "
            "-subj '/CN=test authority'");
    openssl("req -newkey rsa:2048 -nodes -keyout server.key -out server.csr "
            "-subj '/CN=server' -addext 'subjectAltName=DNS:names.test'");
    openssl("x509 -req -in server.csr -CA ca.pem -CAkey ca.key -CAcreateserial "
            "-out server.pem -days 2 -copy_extensions copy");
    openssl("req -newkey rsa:2048 -nodes -keyout client.key -out client.csr "
            "-subj '/CN=client'");
    openssl("x509 -req -in client.csr -CA ca.pem -CAkey ca.key -CAcreateserial "
            "-out client.pem -days 2");
    read_text("ca.pem", ca);
    read_text("client.pem", certificate);
    read_text("client.key", key);
    return 0;
}

static int remove_certificates(void **state)
{
    char command[64];

    (void)state;
    (void)snprintf(command, sizeof command, "rm -rf %s", folder);
    return system(command);
}

/* ---- The server ---- */

struct server {
    pid_t pid;
    int output;
    char url[64];
};

static void child(int output, const char *extra)
{
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    (void)dup2(output, STDOUT_FILENO);
    (void)dup2(open("/dev/null", O_RDWR), STDERR_FILENO);
    if (chdir(folder) == 0)
        (void)execlp("openssl", "openssl", "s_server", "-accept", "127.0.0.1:0", "-www",
                     "-cert", "server.pem", "-key", "server.key", "-CAfile", "ca.pem",
                     extra, extra == NULL ? NULL : "1", (char *)NULL);
    _exit(127);
}

/* It says "ACCEPT 127.0.0.1:PORT" when it listens. */
static void server_start(struct server *server, const char *extra)
{
    char text[512] = "";
    size_t size = 0;
    int ends[2];

    assert_int_equal(pipe(ends), 0);
    server->pid = fork();
    assert_true(server->pid >= 0);
    if (server->pid == 0)
        child(ends[1], extra);
    (void)close(ends[1]);
    server->output = ends[0];
    while (strstr(text, "ACCEPT 127.0.0.1:") == NULL || strchr(text, '\n') == NULL ||
           strchr(strstr(text, "ACCEPT"), '\n') == NULL) {
        ssize_t got = read(ends[0], text + size, sizeof text - 1 - size);

        assert_true(got > 0);
        size += (size_t)got;
        text[size] = '\0';
    }
    (void)snprintf(server->url, sizeof server->url, "https://127.0.0.1:%ld/",
                   strtol(strstr(text, "ACCEPT 127.0.0.1:") + 17, NULL, 10));
}

static void server_stop(struct server *server)
{
    int status;

    assert_int_equal(kill(server->pid, SIGKILL), 0);
    assert_int_equal(waitpid(server->pid, &status, 0), server->pid);
    (void)close(server->output);
}

/* ---- Asking ---- */

/* The status of the answer, or its error's code; its words in `words`, which has
 * TEXT_BYTES. */
static int request(const struct server *server, const struct mu__request_tls *tls,
                   char *words)
{
    const struct mu__request request = {.kind = MU__REQUEST_HTTP,
                                        .name = server->url,
                                        .tls = tls,
                                        .timeout_ms = TIMEOUT_MS};
    const struct mu__answer *answer;
    struct asking a;
    int result;

    asking_begin(&a);
    answer = asking_get(&a, &request);
    result = answer->code != 0 ? answer->code : answer->status;
    (void)snprintf(words, TEXT_BYTES, "%s", answer->error.message);
    asking_end(&a);
    return result;
}

TEST(test_who_the_server_is)
{
    const struct {
        const char *what;
        struct mu__request_tls tls;
        int result;
    } rows[] = {
        {"nobody known", {.ca = NULL}, -MU_EUNAUTHENTICATED},
        {"its name is another", {.ca = ca}, -MU_EUNAUTHENTICATED},
        {"the name that it has", {.ca = ca, .server_name = "names.test"}, 200},
        {"not that name", {.ca = ca, .server_name = "other.test"}, -MU_EUNAUTHENTICATED},
        {"whoever it is", {.insecure = true}, 200},
        {"no authority at all", {.ca = "nonsense"}, -MU_EINVALID},
    };
    struct server server;
    char words[TEXT_BYTES];

    server_start(&server, NULL);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        int result = request(&server, &rows[i].tls, words);

        if (result != rows[i].result)
            fail_msg("%s: %d, %s", rows[i].what, result, words);
    }
    server_stop(&server);
}

TEST(test_who_we_are)
{
    const struct mu__request_tls without = {.ca = ca, .server_name = "names.test"};
    const struct mu__request_tls with = {
        .ca = ca, .server_name = "names.test", .certificate = certificate, .key = key};
    const struct mu__request_tls bad = {.ca = ca,
                                        .server_name = "names.test",
                                        .certificate = certificate,
                                        .key = "a secret"};
    struct server server;
    char words[TEXT_BYTES];
    int result;

    server_start(&server, "-Verify");
    result = -MU_EUNAVAILABLE; /* it may have hung up before its reason is read */
    for (int i = 0; i < 50 && result == -MU_EUNAVAILABLE; i++)
        result = request(&server, &without, words);
    if (result != -MU_EUNAUTHENTICATED || strstr(words, "alert") == NULL)
        fail_msg("without a certificate: %d, %s", result, words);
    result = request(&server, &with, words);
    if (result != 200)
        fail_msg("with a certificate: %d, %s", result, words);
    result = request(&server, &bad, words);
    if (result != -MU_EINVALID)
        fail_msg("with a key that is none: %d, %s", result, words);
    assert_null(strstr(words, "a secret"));
    server_stop(&server);
}

NEEDS_PROGRAM(needs_programs("openssl", NULL), make_certificates, remove_certificates)
