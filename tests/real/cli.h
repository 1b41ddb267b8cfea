/* Real processes of the program `muster`, for tests. Every wait has a limit, and no
 * process outlives its test: it dies with this one. */
#ifndef MUSTER_TESTS_REAL_CLI_H
#define MUSTER_TESTS_REAL_CLI_H

#include "tests/support/test.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cjson/cJSON.h>

enum {
    CLI_TEXT_BYTES = 1 << 18,
    CLI_ARGUMENTS_MAX = 40,
    CLI_SOON_MS = 30000 /* after which a test fails: far more than anything takes */
};

struct cli {
    pid_t pid;
    int fd;   /* reads standard output and error */
    int code; /* once it has ended; 128 + n after a signal */
    bool ended;
    size_t size;
    char text[CLI_TEXT_BYTES]; /* what it has printed */
};

static inline uint64_t cli_now_ms(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

/* Give others the processor for a moment, while waiting for an event. */
static inline void cli_pause(void)
{
    const struct timespec moment = {0, 2000000};

    (void)nanosleep(&moment, NULL);
}

static inline const char *cli_variable(const char *name)
{
    const char *text = getenv(name);

    if (text == NULL)
        fail_msg("%s is not set: run this with ctest", name);
    return text;
}

static inline void cli_set_variable(const char *text)
{
    const char *equals = strchr(text, '=');
    char name[64];

    (void)snprintf(name, sizeof name, "%.*s", (int)(equals - text), text);
    (void)setenv(name, equals + 1, 1);
}

/* Start it with its output at `out`; `variables` is NULL or "NAME=VALUE" up to a NULL. */
static inline pid_t cli_fork(int out, const char *const *variables,
                             char *const *arguments)
{
    const char *program = cli_variable("MUSTER_BIN");
    pid_t parent = getpid();
    pid_t pid = fork();

    assert_true(pid >= 0);
    if (pid > 0)
        return pid;
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (arguments[1] != NULL && strcmp(arguments[1], "run") == 0)
        (void)setenv("MUSTER_LOG_LEVEL", "info", 0); /* tests read those lines */
    for (; variables != NULL && *variables != NULL; variables++)
        cli_set_variable(*variables);
    if (getppid() == parent && dup2(out, STDOUT_FILENO) >= 0 &&
        dup2(out, STDERR_FILENO) >= 0)
        (void)execv(program, arguments);
    _exit(126);
}

/* Arguments after the program's name, up to a NULL. */
static inline void cli_start(struct cli *cli, const char *const *variables, ...)
{
    char *arguments[CLI_ARGUMENTS_MAX] = {"muster"};
    size_t count = 1;
    va_list list;
    int ends[2];

    va_start(list, variables);
    while ((arguments[count] = va_arg(list, char *)) != NULL)
        assert_true(++count < CLI_ARGUMENTS_MAX);
    va_end(list);
    assert_int_equal(pipe(ends), 0);
    assert_int_equal(fcntl(ends[0], F_SETFL, O_NONBLOCK), 0);
    assert_int_equal(fcntl(ends[0], F_SETFD, FD_CLOEXEC), 0);
    assert_int_equal(fcntl(ends[1], F_SETFD, FD_CLOEXEC), 0);
    cli->fd = ends[0];
    cli->size = 0;
    cli->text[0] = '\0';
    cli->code = -1;
    cli->pid = cli_fork(ends[1], variables, arguments);
    cli->ended = false;
    (void)close(ends[1]);
}

/* Take what it has printed since. */
static inline void cli_read(struct cli *cli)
{
    ssize_t size;

    do {
        size = read(cli->fd, cli->text + cli->size, sizeof cli->text - 1 - cli->size);
        if (size > 0)
            cli->size += (size_t)size;
    } while (size > 0);
    cli->text[cli->size] = '\0';
    assert_true(cli->size < sizeof cli->text - 1);
}

/* What it has printed may be more than a message of cmocka's can hold. */
static inline void cli_show(const struct cli *cli)
{
    (void)fprintf(stderr, "it has printed:\n%s\n", cli->text);
}

/* The text after `needle`, which is waited for, looked for from `from` on (NULL: from the
 * beginning). */
static inline const char *cli_expect(struct cli *cli, const char *from,
                                     const char *needle)
{
    uint64_t deadline_ms = cli_now_ms() + CLI_SOON_MS;
    const char *found;

    do {
        cli_read(cli);
        found = strstr(from == NULL ? cli->text : from, needle);
        if (found != NULL)
            return found + strlen(needle);
        cli_pause();
    } while (cli_now_ms() < deadline_ms);
    cli_show(cli);
    fail_msg("\"%s\" was not printed", needle);
    return NULL;
}

/* Wait for its end; the exit code. */
static inline int cli_wait(struct cli *cli)
{
    uint64_t deadline_ms = cli_now_ms() + CLI_SOON_MS;
    int status;

    for (;;) {
        pid_t pid = waitpid(cli->pid, &status, WNOHANG);

        cli_read(cli);
        if (pid == cli->pid)
            break;
        if (cli_now_ms() >= deadline_ms) {
            cli_show(cli);
            fail_msg("it did not end within %d ms", CLI_SOON_MS);
        }
        cli_pause();
    }
    cli->ended = true;
    (void)close(cli->fd);
    cli->code = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
    return cli->code;
}

/* Wait for its end and its code; on another one, show what it printed. */
static inline void cli_expect_code(struct cli *cli, int code)
{
    if (cli_wait(cli) == code)
        return;
    cli_show(cli);
    fail_msg("exit code %d instead of %d", cli->code, code);
}

static inline void cli_kill(struct cli *cli, int number)
{
    assert_int_equal(kill(cli->pid, number), 0);
}

/* Ends `muster run`, or another one that SIGINT ends, as its user would. */
static inline void cli_stop(struct cli *cli)
{
    cli_kill(cli, SIGINT);
    cli_expect_code(cli, 128 + SIGINT);
}

/* The URL at which a task has come up, behind `from` as in cli_expect(). */
static inline void cli_expect_up(struct cli *cli, const char *from, const char *task,
                                 char *ret_url, size_t size)
{
    char words[96];
    const char *at;

    (void)snprintf(words, sizeof words, "/job:%s node: is up at tcp://", task);
    at = cli_expect(cli, from, words);
    (void)cli_expect(cli, at, "\n");
    (void)snprintf(ret_url, size, "tcp://%.*s", (int)strcspn(at, "\n"), at);
}

/* The pid of a task of `muster run`, from the line that says it. */
static inline pid_t cli_task_pid(struct cli *cli, const char *from, const char *task)
{
    char needle[64];

    (void)snprintf(needle, sizeof needle, "muster   | %s pid ", task);
    return (pid_t)strtol(cli_expect(cli, from, needle), NULL, 10);
}

/* What a process has of memory. */
static inline unsigned long cli_memory_kib(pid_t pid)
{
    unsigned long kib = 0;
    char path[64];
    char line[256];
    FILE *file;

    (void)snprintf(path, sizeof path, "/proc/%d/status", (int)pid);
    file = fopen(path, "r");
    assert_non_null(file);
    while (kib == 0 && fgets(line, sizeof line, file) != NULL)
        (void)sscanf(line, "VmRSS: %lu", &kib);
    (void)fclose(file);
    return kib;
}

static inline void cli_read_file(const char *path, char *text, size_t size)
{
    FILE *file = fopen(path, "r");

    if (file == NULL)
        fail_msg("%s: %s", path, strerror(errno));
    text[fread(text, 1, size - 1, file)] = '\0';
    (void)fclose(file);
}

/* A fresh folder for a test's files; the caller removes it. */
static inline void cli_folder(char *ret_path, size_t size)
{
    (void)snprintf(ret_path, size, "/tmp/muster-cli-XXXXXX");
    assert_non_null(mkdtemp(ret_path));
}

/* The journal of a coordination service, and beside it what kept actors have. */
static inline void cli_remove_store(const char *path)
{
    char kept[512];

    (void)snprintf(kept, sizeof kept, "%s.kept", path);
    (void)unlink(kept);
    (void)unlink(path);
}

static inline void cli_write_file(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");

    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

/* Compile a plugin from its text, as FOLDER/plugin.so; returns 0 on success. */
static inline int cli_compile(const char *folder, const char *text, char *ret_plugin,
                              size_t size)
{
    const char *compiler = getenv("CC");
    char command[2048];
    char source[96];
    int rv;

    (void)snprintf(source, sizeof source, "%s/plugin.c", folder);
    (void)snprintf(ret_plugin, size, "%s/plugin.so", folder);
    cli_write_file(source, text);
    (void)snprintf(command, sizeof command, "%s -shared -fPIC -I '%s/include' -o %s %s",
                   compiler == NULL ? "cc" : compiler, cli_variable("MUSTER_SOURCE"),
                   ret_plugin, source);
    rv = system(command);
    (void)unlink(source);
    return rv;
}

/* ---- What it prints as JSON ---- */

static inline cJSON *cli_json(const char *text)
{
    cJSON *root = cJSON_Parse(text);

    if (root == NULL)
        fail_msg("no JSON: %s", text);
    return root;
}

static inline const char *cli_text(const cJSON *map, const char *key)
{
    const cJSON *item = cJSON_GetObjectItem(map, key);

    assert_true(cJSON_IsString(item));
    return item->valuestring;
}

static inline double cli_number(const cJSON *map, const char *key)
{
    const cJSON *item = cJSON_GetObjectItem(map, key);

    assert_true(cJSON_IsNumber(item));
    return item->valuedouble;
}

#endif
