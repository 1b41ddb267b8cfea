/* Helpers of the raw programs: arguments, fatal errors, and forked peers.
 *
 * A raw program measures the libraries without muster. It forks its own peers, ends by
 * itself, and prints one JSON line. Any error ends the program with a message. */
#ifndef MUSTER_RAW_H
#define MUSTER_RAW_H

#include "bench/bench.h"

#include <signal.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <sys/wait.h>

/* No process of a raw program lives longer, whatever happens to the others. */
#define RAW_SECONDS_MAX 60

#define RAW_PEERS_MAX 16
#define RAW_URL_MAX 160

static inline _Noreturn void raw_die(const char *what, const char *why)
{
    fprintf(stderr, "%s: %s\n", what, why);
    exit(1);
}

static inline void raw_check(bool fine, const char *what)
{
    if (!fine)
        raw_die(what, "failed");
}

/* The value of the argument `name=value`, or `fallback`. */
static inline const char *raw_arg(int argc, char **argv, const char *name,
                                  const char *fallback)
{
    size_t length = strlen(name);

    for (int i = 1; i < argc; i++) {
        if (strncmp(argv[i], name, length) == 0 && argv[i][length] == '=')
            return argv[i] + length + 1;
    }
    return fallback;
}

static inline unsigned raw_arg_number(int argc, char **argv, const char *name,
                                      unsigned fallback, unsigned min, unsigned max)
{
    const char *text = raw_arg(argc, argv, name, NULL);
    char *end;
    unsigned long value;

    if (text == NULL)
        return fallback;
    value = strtoul(text, &end, 10);
    if (end == text || *end != '\0' || value < min || value > max)
        raw_die(name, "not a number in its range");
    return (unsigned)value;
}

/* The index of the argument's value in `words`, a list that ends with NULL; the first is
 * the default. */
static inline unsigned raw_arg_word(int argc, char **argv, const char *name,
                                    const char *const *words)
{
    const char *text = raw_arg(argc, argv, name, words[0]);

    for (unsigned i = 0; words[i] != NULL; i++) {
        if (strcmp(text, words[i]) == 0)
            return i;
    }
    raw_die(name, "not one of its words");
}

/* Refuse arguments whose name is not in `names`, a list that ends with NULL. */
static inline void raw_args_check(int argc, char **argv, const char *const *names)
{
    for (int i = 1; i < argc; i++) {
        bool known = false;

        for (unsigned n = 0; names[n] != NULL; n++) {
            size_t length = strlen(names[n]);

            known = known ||
                    (strncmp(argv[i], names[n], length) == 0 && argv[i][length] == '=');
        }
        if (!known)
            raw_die(argv[i], "not an argument of this program (name=value)");
    }
}

/* A forked process, and the socket over which it and its parent exchange addresses. */
struct raw_peer {
    pid_t pid;
    int channel;
};

/* A peer's main function; the process ends when it returns. */
typedef void (*raw_peer_main)(int channel, unsigned index, const void *config);

/* Fork one peer. Only before the first use of nng, which does not survive a fork. */
static inline struct raw_peer raw_spawn(raw_peer_main run, unsigned index,
                                        const void *config)
{
    int ends[2];
    pid_t pid;

    raw_check(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0, "socketpair");
    pid = fork();
    raw_check(pid >= 0, "fork");
    if (pid == 0) {
        close(ends[0]);
        alarm(RAW_SECONDS_MAX);
        run(ends[1], index, config);
        _exit(0);
    }
    close(ends[1]);
    return (struct raw_peer){.pid = pid, .channel = ends[0]};
}

/* Kill a peer, and wait until it has ended. */
static inline void raw_peer_end(struct raw_peer *peer)
{
    kill(peer->pid, SIGKILL);
    waitpid(peer->pid, NULL, 0);
    close(peer->channel);
}

static inline void raw_write_all(int fd, const void *bytes, size_t length)
{
    const char *from = bytes;

    while (length > 0) {
        ssize_t n = write(fd, from, length);

        raw_check(n > 0, "write");
        from += n;
        length -= (size_t)n;
    }
}

static inline void raw_read_all(int fd, void *bytes, size_t length)
{
    char *to = bytes;

    while (length > 0) {
        ssize_t n = read(fd, to, length);

        raw_check(n > 0, "read");
        to += n;
        length -= (size_t)n;
    }
}

#endif
