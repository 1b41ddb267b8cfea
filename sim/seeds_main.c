/* The main function of a program of seeds. */
#include "sim/internal.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A run takes far less; what is endless within one event cannot be seen otherwise. */
enum { SEED_SECONDS_MAX = 600 };

static char last_words[256]; /* for a process that dies within a story */

static void tell_seed(int number)
{
    static const char endless[] = "a story does not end: ";

    if (number == SIGALRM)
        (void)!write(STDERR_FILENO, endless, sizeof endless - 1);
    (void)!write(STDERR_FILENO, last_words, strlen(last_words));
    _exit(1);
}

static bool read_number(const char *text, uint64_t *ret_number)
{
    char *end;

    *ret_number = strtoull(text, &end, 10);
    return *text >= '0' && *text <= '9' && *end == '\0';
}

static bool read_seeds(int argc, char **argv, uint64_t *ret_first, uint64_t *ret_count)
{
    if (argc < 2)
        return true;
    *ret_count = 1;
    if (argc <= 3 && read_number(argv[1], ret_first) &&
        (argc == 2 || read_number(argv[2], ret_count)))
        return true;
    fprintf(stderr, "usage: %s [FIRST [COUNT]]\n", argv[0]);
    return false;
}

static int run_seed(const struct sim_told *told, bool shows, const char *program)
{
    struct sim_words words = {0};
    mu_error error = {0};
    char *trace = NULL;
    int rv;

    (void)snprintf(last_words, sizeof last_words,
                   "seed %" PRIu64 " dies\nreplay: %.150s %" PRIu64 "\n", told->seed,
                   program, told->seed);
    (void)alarm(SEED_SECONDS_MAX);
    rv = sim_try_seed(told, &error, &words, shows ? &trace : NULL);
    (void)alarm(0);
    if (trace != NULL)
        (void)fputs(trace, stdout);
    if (rv != 0)
        printf("seed %" PRIu64 ": %s\n%sreplay: %s %" PRIu64 "\n", told->seed,
               error.message, words.bytes == NULL ? "" : words.bytes, program,
               told->seed);
    free(trace);
    free(words.bytes);
    return rv;
}

int mu_sim_main(mu_sim_story_fn story, void *user, uint64_t count, int argc, char **argv)
{
    struct sim_told told = {.story = story, .user = user};
    uint64_t first = 1;

    if (story == NULL || argv == NULL) {
        fprintf(stderr, "mu_sim_main: story or argv is NULL\n");
        return 2;
    }
    if (!read_seeds(argc, argv, &first, &count))
        return 2;
    (void)signal(SIGALRM, tell_seed);
    (void)signal(SIGABRT, tell_seed);
    (void)signal(SIGSEGV, tell_seed);
    for (told.seed = first; told.seed - first < count; told.seed++)
        if (run_seed(&told, argc > 1 && count == 1, argv[0]) != 0)
            return 1;
    printf("%" PRIu64 " seeds, each twice: all is well\n", count);
    return 0;
}
