/* The tests' own HTTPS server (https_server.py, which says what a script is) and its
 * certificates, made when a test begins. It dies with the test; every wait has a
 * limit. */
#ifndef MUSTER_TESTS_REAL_HTTPS_H
#define MUSTER_TESTS_REAL_HTTPS_H

#include "tests/real/needs.h"
#include "tests/support/test.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { HTTPS_SOON_MS = 20000, HTTPS_LOG_BYTES = 1 << 18 };

struct https {
    const char *folder; /* the caller's: certificates, scripts and logs */
    char log[128];
    pid_t pid;
    int port;
};

/* NULL, or which program is missing. */
static inline const char *https_missing(void)
{
    return needs_programs("openssl", "python3", NULL);
}

static inline void https_write(const char *folder, const char *name, const char *text)
{
    char path[160];
    FILE *file;

    (void)snprintf(path, sizeof path, "%s/%s", folder, name);
    file = fopen(path, "w");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

/* The caller frees the text. */
static inline char *https_read(const char *folder, const char *name)
{
    char *text = calloc(1, HTTPS_LOG_BYTES);
    char path[160];
    FILE *file;

    assert_non_null(text);
    (void)snprintf(path, sizeof path, "%s/%s", folder, name);
    file = fopen(path, "r");
    if (file == NULL)
        return text; /* nothing was asked */
    assert_true(fread(text, 1, HTTPS_LOG_BYTES - 1, file) < HTTPS_LOG_BYTES - 1);
    (void)fclose(file);
    return text;
}

/* In `folder`: ca.pem; server.pem for 127.0.0.1 and localhost; expired.pem;
 * elsewhere.pem, for another name; client.pem; all of this CA and each with X.key.
 * other_ca.pem, and other.pem for 127.0.0.1 that is signed by it. jwt.key, an RSA key,
 * and jwt.pem, its public half. */
static inline void https_certificates(const char *folder)
{
    static const char script[] =
        "set -e\n"
        "key() { openssl genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-256"
        " -out $1.key; }\n"
        "ca() { key $1; openssl req -x509 -new -key $1.key -subj /CN=$1 -days 2"
        " -addext keyUsage=critical,keyCertSign -out $1.pem; }\n"
        "ask() { key $1; openssl req -new -key $1.key -subj /CN=$1 -out $1.csr;"
        " printf 'subjectAltName=%s\\n' $2 > $1.ext; }\n"
        "leaf() { ask $1 $3; openssl x509 -req -in $1.csr -CA $2.pem -CAkey $2.key"
        " -CAcreateserial -days 2 -extfile $1.ext -out $1.pem; }\n"
        /* `x509 -req` takes no past before OpenSSL 3.4, and no negative days since. */
        "past() { ask $1 $3; : > index; echo 01 > serial; printf '%s\\n' '[ca]'"
        " default_ca=d '[d]' database=index serial=serial new_certs_dir=. policy=p"
        " default_md=sha256 '[p]' commonName=supplied > ca.conf;"
        " openssl ca -batch -config ca.conf"
        " -cert $2.pem -keyfile $2.key -in $1.csr -extfile $1.ext -notext -out $1.pem"
        " -startdate 20200101000000Z -enddate 20200102000000Z; }\n"
        "ca ca; ca other_ca\n"
        "leaf server ca IP:127.0.0.1,DNS:localhost\n"
        "leaf elsewhere ca DNS:elsewhere.example\n"
        "past expired ca IP:127.0.0.1,DNS:localhost\n"
        "leaf client ca DNS:client\n"
        "leaf other other_ca IP:127.0.0.1,DNS:localhost\n"
        "openssl genpkey -algorithm RSA -pkeyopt rsa_keygen_bits:2048 -out jwt.key\n"
        "openssl pkey -in jwt.key -pubout -out jwt.pem\n";
    char command[256];

    https_write(folder, "make.sh", script);
    (void)snprintf(command, sizeof command, "cd %s && sh make.sh > make.log 2>&1",
                   folder);
    if (system(command) != 0)
        fail_msg("no certificates: see %s/make.log", folder);
}

static inline void https_exec(const char *script, const char *log, int out)
{
    const char *source = getenv("MUSTER_SOURCE");
    char program[256];

    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    (void)snprintf(program, sizeof program, "%s/tests/real/https_server.py",
                   source == NULL ? "." : source);
    if (dup2(out, STDOUT_FILENO) >= 0)
        (void)execlp("python3", "python3", program, script, log, (char *)NULL);
    _exit(127);
}

static inline int https_read_port(int fd)
{
    struct pollfd poll_fd = {.fd = fd, .events = POLLIN};
    char text[16] = "";

    if (poll(&poll_fd, 1, HTTPS_SOON_MS) != 1 || read(fd, text, sizeof text - 1) <= 0)
        fail_msg("the HTTPS server has not begun");
    return atoi(text);
}

/* Begin with a script, "%F" in it being the folder. `name` tells several servers of one
 * folder apart. */
static inline void https_start(struct https *https, const char *folder, const char *name,
                               const char *script)
{
    char path[128];
    char file[64];
    char *text = malloc(strlen(script) * (strlen(folder) + 1) + 1);
    size_t at = 0;
    int ends[2];

    assert_non_null(text);
    for (; *script != '\0'; script++) {
        bool is_folder = script[0] == '%' && script[1] == 'F';
        size_t size = is_folder ? strlen(folder) : 1;

        memcpy(text + at, is_folder ? folder : script, size);
        at += size;
        script += is_folder;
    }
    text[at] = '\0';
    (void)snprintf(file, sizeof file, "%s.json", name);
    https_write(folder, file, text);
    free(text);
    (void)snprintf(path, sizeof path, "%s/%s", folder, file);
    https->folder = folder;
    (void)snprintf(https->log, sizeof https->log, "%s/%s.log", folder, name);
    assert_int_equal(pipe(ends), 0);
    https->pid = fork();
    assert_true(https->pid >= 0);
    if (https->pid == 0)
        https_exec(path, https->log, ends[1]);
    (void)close(ends[1]);
    https->port = https_read_port(ends[0]);
    (void)close(ends[0]);
}

static inline void https_stop(struct https *https)
{
    if (https->pid <= 0)
        return;
    assert_int_equal(kill(https->pid, SIGKILL), 0);
    assert_int_equal(waitpid(https->pid, NULL, 0), https->pid);
    https->pid = 0;
}

/* How many requests were made in whose line of the log all these texts stand, which end
 * with NULL. */
static inline unsigned https_asked(const struct https *https, ...)
{
    FILE *file = fopen(https->log, "r");
    char *line = malloc(HTTPS_LOG_BYTES);
    unsigned count = 0;

    assert_non_null(line);
    while (file != NULL && fgets(line, HTTPS_LOG_BYTES, file) != NULL) {
        const char *text;
        bool all = true;
        va_list texts;

        va_start(texts, https);
        while ((text = va_arg(texts, const char *)) != NULL)
            all &= strstr(line, text) != NULL;
        va_end(texts);
        count += all;
    }
    if (file != NULL)
        (void)fclose(file);
    free(line);
    return count;
}

#endif
