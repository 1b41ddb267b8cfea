/* Running a program by posix_spawn, and reading what it prints. */
#define _GNU_SOURCE /* posix_spawn_file_actions_addclosefrom_np */

#include "resolver/engine/uv/run_program.h"

#include "resolver/engine/uv/write.h"
#include "runtime/base/text.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <uv.h>

#ifdef __GLIBC_PREREQ
#if __GLIBC_PREREQ(2, 34)
#define CLOSES_OTHERS
#endif
#endif

enum {
    TICK_MS = 20, /* how often the end of the program is checked */
    ROOM_FIRST = 4096,
    LAST_BYTES = 512,  /* of standard error: the end is kept */
    LINE_BYTES = 240,  /* of its last line, in messages */
    UNBROKEN_MAX = 39, /* letters without a blank: longer ones may be secret */
    READS_MAX = 64     /* of standard error at a time, which may be endless */
};

extern char **environ;

struct program {
    pid_t pid;
    int out; /* -1: at its end */
    int error;
    char *data;
    size_t size;
    size_t room;
    size_t bytes_max;
    char last[LAST_BYTES];
    size_t last_size;
    mu_error *words;
};

static int fail_program(struct program *p, int code, const char *words)
{
    return mu_error_set(p->words, code, "%s", words);
}

/* ---- Arguments and variables ---- */

/* Collect the words that begin with `letter`, without it: "get-token" of "aget-token". */
static void pick_words(const char *words, size_t size, char letter, char **out)
{
    for (size_t i = 0; i < size; i += strlen(words + i) + 1)
        if (words[i] == letter)
            *out++ = (char *)(uintptr_t)(words + i + 1);
}

static size_t count_words(const char *words, size_t size)
{
    size_t count = 0;

    for (size_t i = 0; i < size; i += strlen(words + i) + 1)
        count++;
    return count;
}

/* Whether `words` have another value for a variable of this process. */
static bool is_variable_replaced(const char *variable, const char *words, size_t size)
{
    size_t name = strcspn(variable, "=") + 1;

    for (size_t i = 0; i < size; i += strlen(words + i) + 1)
        if (words[i] == 'v' && strncmp(words + i + 1, variable, name) == 0)
            return true;
    return false;
}

static char **make_program_arguments(const char *program, const char *words, size_t size)
{
    char **arguments = calloc(count_words(words, size) + 2, sizeof *arguments);

    if (arguments == NULL)
        return NULL;
    arguments[0] = (char *)(uintptr_t)program;
    pick_words(words, size, 'a', arguments + 1);
    return arguments;
}

static char **make_program_environment(const char *words, size_t size)
{
    size_t there = 0;
    size_t used = 0;
    char **all;

    while (environ != NULL && environ[there] != NULL)
        there++;
    all = calloc(there + count_words(words, size) + 1, sizeof *all);
    if (all == NULL)
        return NULL;
    for (size_t i = 0; i < there; i++)
        if (!is_variable_replaced(environ[i], words, size))
            all[used++] = environ[i];
    pick_words(words, size, 'v', all + used);
    return all;
}

/* ---- Starting ---- */

/* A group of its own, so that what it has started is killed with it; signals as at the
 * begin of a process, whatever this thread blocks and the host ignores. */
static int set_attributes(posix_spawnattr_t *attributes)
{
    sigset_t none;
    sigset_t all;

    (void)sigemptyset(&none);
    (void)sigfillset(&all);
    (void)posix_spawnattr_setsigmask(attributes, &none);
    (void)posix_spawnattr_setsigdefault(attributes, &all);
    (void)posix_spawnattr_setpgroup(attributes, 0);
    return posix_spawnattr_setflags(attributes, POSIX_SPAWN_SETPGROUP |
                                                    POSIX_SPAWN_SETSIGMASK |
                                                    POSIX_SPAWN_SETSIGDEF);
}

/* Close the host's files and sockets that any program of its would inherit, where the C
 * library can do that (glibc since 2.34). */
static int close_others(posix_spawn_file_actions_t *actions)
{
#ifdef CLOSES_OTHERS
    return posix_spawn_file_actions_addclosefrom_np(actions, STDERR_FILENO + 1);
#else
    (void)actions;
    return 0;
#endif
}

static int set_actions(posix_spawn_file_actions_t *actions, int out, int error)
{
    int rv =
        posix_spawn_file_actions_addopen(actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);

    if (rv == 0)
        rv = posix_spawn_file_actions_adddup2(actions, out, STDOUT_FILENO);
    if (rv == 0)
        rv = posix_spawn_file_actions_adddup2(actions, error, STDERR_FILENO);
    return rv == 0 ? close_others(actions) : rv;
}

/* Returns a number of errno. */
static int spawn_program(struct program *p, char **arguments, char **environment, int out,
                         int error)
{
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    int rv = posix_spawn_file_actions_init(&actions);

    if (rv != 0)
        return rv;
    rv = posix_spawnattr_init(&attributes);
    if (rv == 0) {
        rv = set_attributes(&attributes);
        if (rv == 0)
            rv = set_actions(&actions, out, error);
        if (rv == 0)
            rv = posix_spawnp(&p->pid, arguments[0], &actions, &attributes, arguments,
                              environment);
        (void)posix_spawnattr_destroy(&attributes);
    }
    (void)posix_spawn_file_actions_destroy(&actions);
    return rv;
}

/* The ends that we read do not block, and no other child of this process gets them. */
static int begin_program(struct program *p, char **arguments, char **environment)
{
    int out[2];
    int error[2];
    int rv = -uv_pipe(out, UV_NONBLOCK_PIPE, 0);

    if (rv != 0)
        return rv;
    rv = -uv_pipe(error, UV_NONBLOCK_PIPE, 0);
    if (rv != 0) {
        (void)close(out[0]);
        (void)close(out[1]);
        return rv;
    }
    rv = spawn_program(p, arguments, environment, out[1], error[1]);
    (void)close(out[1]);
    (void)close(error[1]);
    p->out = out[0];
    p->error = error[0];
    return rv;
}

/* ---- Its output ---- */

static bool is_for_now(ssize_t count)
{
    return count < 0 && (errno == EAGAIN || errno == EINTR);
}

/* Read what there is now. */
static int read_program_output(struct program *p)
{
    while (p->out >= 0) {
        ssize_t count;

        if (p->room - p->size < 2) {
            size_t room = p->room == 0 ? ROOM_FIRST : 2 * p->room;
            char *data = realloc(p->data, room);

            if (data == NULL)
                return fail_program(p, -MU_ENOMEM, "out of memory");
            p->data = data;
            p->room = room;
        }
        count = read(p->out, p->data + p->size, p->room - p->size - 1);
        if (is_for_now(count))
            return 0;
        if (count <= 0) {
            (void)close(p->out);
            p->out = -1;
            return 0;
        }
        p->size += (size_t)count;
        if (p->size > p->bytes_max)
            return mu_error_set(p->words, -MU_EEXHAUSTED, "it prints more than %zu bytes",
                                p->bytes_max);
    }
    return 0;
}

static void store_last(struct program *p, const char *bytes, size_t size)
{
    size_t drop;

    if (size > LAST_BYTES) {
        bytes += size - LAST_BYTES;
        size = LAST_BYTES;
    }
    drop = p->last_size + size > LAST_BYTES ? p->last_size + size - LAST_BYTES : 0;
    memmove(p->last, p->last + drop, p->last_size - drop);
    memcpy(p->last + p->last_size - drop, bytes, size);
    p->last_size += size - drop;
}

static void read_program_error(struct program *p)
{
    char bytes[1024];

    for (int i = 0; i < READS_MAX && p->error >= 0; i++) {
        ssize_t count = read(p->error, bytes, sizeof bytes);

        if (is_for_now(count))
            return;
        if (count <= 0) {
            (void)close(p->error);
            p->error = -1;
            return;
        }
        store_last(p, bytes, (size_t)count);
    }
}

static int read_program_streams(struct program *p)
{
    read_program_error(p);
    return read_program_output(p);
}

/* ---- Its end ---- */

/* True: it has ended. *ret_status stays as it is when the host has reaped it. */
static bool has_program_ended(struct program *p, int *ret_status)
{
    pid_t rv = waitpid(p->pid, ret_status, WNOHANG);

    if (rv != p->pid && (rv == 0 || errno == EINTR))
        return false;
    p->pid = 0;
    return true;
}

/* Kill it, with all that it has started in its group. */
static void kill_program(struct program *p)
{
    if (p->pid == 0)
        return;
    (void)kill(-p->pid, SIGKILL);
    while (waitpid(p->pid, NULL, 0) < 0 && errno == EINTR)
        ;
    p->pid = 0;
}

/* Replace words that may be a token or key by "..."; a path stays. */
static void hide_long_words(char *line)
{
    char *out = line;

    while (*line != '\0') {
        size_t size = strcspn(line, " ");
        bool hides = size > UNBROKEN_MAX && *line != '/';
        size_t used = hides ? 3 : size;

        memmove(out, hides ? "..." : line, used);
        out += used;
        line += size;
        while (*line == ' ')
            *out++ = *line++;
    }
    *out = '\0';
}

/* The last line that is not empty, made printable. Of a line that is too long the end,
 * from a word's begin. */
static void last_line(const struct program *p, char *out)
{
    size_t stop = p->last_size;
    size_t start;

    while (stop > 0 && strchr(" \t\r\n", p->last[stop - 1]) != NULL)
        stop--;
    start = stop;
    while (start > 0 && p->last[start - 1] != '\n' && stop - start < LINE_BYTES - 1)
        start--;
    if (start > 0 ? p->last[start - 1] != '\n' : p->last_size == LAST_BYTES)
        while (start < stop && p->last[start] != ' ')
            start++;
    memcpy(out, p->last + start, stop - start);
    out[stop - start] = '\0';
    for (size_t i = 0; i < stop - start; i++)
        out[i] = (char)(out[i] == '\0' ? '?' : out[i] == '\t' ? ' ' : out[i]);
    mu__hide_control(out);
    hide_long_words(out);
}

static int judge_program(struct program *p, int status)
{
    char line[LINE_BYTES];

    if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
        return 0;
    last_line(p, line);
    return mu_error_set(p->words, -MU_EPRECONDITION, "it has ended with %s %d%s%s",
                        WIFEXITED(status) ? "status" : "signal",
                        WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status),
                        line[0] == '\0' ? "" : ": ", line);
}

/* Wait for the program's end, reading what it prints. What a child of it may still
 * print is not waited for. */
static int attend_program(struct program *p, const atomic_bool *cancelled)
{
    int status = 0;

    while (!atomic_load(cancelled)) {
        struct pollfd ends[] = {{.fd = p->out, .events = POLLIN},
                                {.fd = p->error, .events = POLLIN}};
        bool ended;
        int rv;

        (void)poll(ends, 2, TICK_MS);
        ended = has_program_ended(p, &status);
        rv = read_program_streams(p);
        if (rv != 0)
            return rv;
        if (ended)
            return judge_program(p, status);
    }
    return fail_program(p, -MU_ECANCELLED, "it was cancelled");
}

static void program_done(struct program *p)
{
    kill_program(p);
    if (p->out >= 0)
        (void)close(p->out);
    if (p->error >= 0)
        (void)close(p->error);
    free(p->data);
}

int mu__run_program(const char *program, const void *words, size_t words_size,
                    size_t bytes_max, const atomic_bool *cancelled, mu_error *ret_error,
                    char **ret_data, size_t *ret_size)
{
    struct program p = {
        .out = -1, .error = -1, .bytes_max = bytes_max, .words = ret_error};
    char **arguments = make_program_arguments(program, words, words_size);
    char **environment = make_program_environment(words, words_size);
    int rv = ENOMEM;

    if (atomic_load(cancelled))
        rv = ECANCELED;
    else if (arguments != NULL && environment != NULL)
        rv = begin_program(&p, arguments, environment);
    free(arguments);
    free(environment);
    if (rv != 0)
        rv = fail_program(&p, mu__errno_code(rv), strerror(rv));
    else
        rv = attend_program(&p, cancelled);
    if (rv == 0) {
        p.data[p.size] = '\0';
        *ret_data = p.data;
        *ret_size = p.size;
        p.data = NULL;
    }
    program_done(&p);
    return rv;
}
