/* The command `muster`: finds the verb, parses its flags, runs it, returns the exit
 * code. */
#include "cli/options/flags.h"
#include "cli/output/print_json.h"
#include "cli/verbs.h"
#include "runtime/base/text.h"
#include "runtime/message/arguments.h"

#include "muster.h"
#include "muster/main.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* `second` is the second word of the verb, or NULL. */
static int unknown_verb(const char *first, const char *second)
{
    const char *words[CMD_WORDS_MAX] = {"help"};
    const char *near;
    char shown[MU__QUOTE_BYTES];
    char both[80];

    (void)snprintf(both, sizeof both, "%.38s%s%.38s", first, second == NULL ? "" : " ",
                   second == NULL ? "" : second);
    cmd_verb_words(words + 1);
    near = cmd_nearest(both, words);
    mu__quote(shown, sizeof shown, both, strlen(both));
    (void)fprintf(stderr, "muster: no verb %s%s%s%s; `muster help` lists them\n", shown,
                  near == NULL ? "" : "; did you mean ", near == NULL ? "" : near,
                  near == NULL ? "" : "?");
    return CMD_USAGE;
}

/* The options of the embedding program; set once, before the verb runs. */
static mu_main_options host;

const mu_main_options *cmd_host(void)
{
    return &host;
}

/* The line that the signal handler writes: it may not format one. */
static char interrupted[80];

/* SA_RESETHAND: the signal that is raised again ends the process, so that its parent sees
 * which one it was. */
static void on_verb_signal(int number)
{
    (void)!write(STDERR_FILENO, interrupted, strlen(interrupted));
    (void)raise(number);
}

/* Have a signal that ends the verb print a line first. Verbs that clean up install
 * handlers of their own. An ignored signal stays ignored. */
static void install_signal_line(const char *verb)
{
    static const int numbers[] = {SIGINT, SIGTERM};
    struct sigaction action = {.sa_handler = on_verb_signal,
                               .sa_flags = (int)SA_RESETHAND | SA_NODEFER};
    struct sigaction former;

    (void)snprintf(interrupted, sizeof interrupted, "muster %s: ended by a signal\n",
                   verb);
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
        if (sigaction(numbers[i], NULL, &former) == 0 && former.sa_handler == SIG_DFL)
            (void)sigaction(numbers[i], &action, NULL);
}

/* Open the standard descriptors that the caller has closed, on /dev/null: otherwise a
 * file that is opened later would get one of these numbers, and output meant for the
 * standard file. */
static void open_standard_files(void)
{
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
        if (fcntl(fd, F_GETFD) < 0)
            (void)!open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDWR);
}

/* The exit code once standard output is flushed, which may fail: a full disk, say. */
static int flush_output(int code)
{
    errno = EIO;
    if (fflush(stdout) == 0 && ferror(stdout) == 0)
        return code;
    (void)fprintf(stderr, "muster: standard output cannot be written: %s\n",
                  strerror(errno));
    return code == CMD_FINE ? CMD_FAILED : code;
}

/* node and run pass on the output of plugins: failing to write it is not an error of the
 * verb. */
static bool has_own_output(const struct cmd_verb *verb)
{
    return (verb->bit & (CMD_NODE | CMD_RUN)) == 0;
}

static int run_verb(const struct cmd_verb *verb, char **arguments)
{
    struct cmd_options options;
    mu_error error;
    int code;

    if (cmd_options_parse(verb, arguments, &error, &options) != 0) {
        (void)fprintf(stderr, "muster %s: %s\n", verb->name, error.message);
        return CMD_USAGE;
    }
    install_signal_line(verb->name);
    code = options.help ? cmd_help(verb->name) : verb->main(&options);
    if (options.help || has_own_output(verb))
        code = flush_output(code);
    cmd_options_done(&options);
    return code;
}

static bool is_help_word(const char *word)
{
    return strcmp(word, "help") == 0 || strcmp(word, "--help") == 0 ||
           strcmp(word, "-h") == 0;
}

/* The first word of verbs with two words, "kv", alone or followed by --help. */
static int show_group_help(const char *word, const char *next)
{
    if (next != NULL && is_help_word(next))
        return flush_output(cmd_help(word));
    if (next != NULL)
        return unknown_verb(word, next);
    (void)cmd_help(word);
    return CMD_USAGE;
}

/* "muster help kv get" and "muster help 'kv get'" are the same. */
static int run_help_verb(char **topics)
{
    int words = 0;
    const struct cmd_verb *verb = cmd_verb_find(topics, &words);

    return flush_output(cmd_help(verb == NULL ? topics[0] : verb->name));
}

uint64_t cmd_now_ms(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

/* ---- muster version ---- */

int cmd_version(struct cmd_options *options)
{
    cJSON *map;

    if (cmd_number(options, CMD_FLAG_OUTPUT) == 0) {
        (void)printf("muster %s\n", mu_version());
        return CMD_FINE;
    }
    map = cJSON_CreateObject();
    (void)cJSON_AddStringToObject(map, "version", mu_version());
    return cmd_json_print(map) == 0 ? CMD_FINE : CMD_FAILED;
}

/* ---- the command line ---- */

int mu_main(int count, char **arguments)
{
    return mu_main_with(NULL, count, arguments);
}

void mu_main_options_init_sized(mu_main_options *options, size_t size)
{
    const mu_main_options defaults = {0};

    mu__options_init(options, size, &defaults, sizeof defaults);
}

int mu_main_with(const mu_main_options *options, int count, char **arguments)
{
    const char *word = count < 2 || arguments == NULL ? "" : arguments[1];
    char version[] = "version";
    const struct cmd_verb *verb;
    mu_error error;
    int words = 0;

    open_standard_files();
    if (MU__OPTIONS_READ(mu_main_options, options, &error, &host) != 0) {
        (void)fprintf(stderr, "muster: %s\n", error.message);
        return CMD_USAGE;
    }
    if (count < 2 || arguments == NULL) {
        (void)cmd_help(NULL);
        return CMD_USAGE;
    }
    if (is_help_word(word))
        return run_help_verb(arguments + 2);
    if (strcmp(word, "--version") == 0)
        arguments[1] = version;
    verb = cmd_verb_find(arguments + 1, &words);
    if (verb != NULL)
        return run_verb(verb, arguments + 1 + words);
    return cmd_verb_begins(word) ? show_group_help(word, arguments[2])
                                 : unknown_verb(word, NULL);
}
