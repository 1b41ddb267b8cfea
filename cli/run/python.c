#include "cli/run/python.h"

#include "cli/verbs.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { WORDS_MAX = 1024 };

/* The script for python3: the same as `-m muster`, with an error when the package is
 * missing. */
static char script[] =
    "import sys\n"
    "try:\n"
    "    from muster.__main__ import main\n"
    "except ImportError as error:\n"
    "    sys.stderr.write('muster node: --python: %s has no package muster "
    "(pip install muster-runtime; MUSTER_PYTHON names another interpreter): %s\\n'\n"
    "                     % (sys.executable, error))\n"
    "    sys.exit(2)\n"
    "main()\n";

static size_t add_list(char **words, size_t count, char *flag,
                       const struct cmd_value *value)
{
    for (size_t i = 0; i < value->items_count && count + 3 < WORDS_MAX; i++) {
        words[count++] = flag;
        words[count++] = value->items[i];
    }
    return count;
}

/* Pass on the flags of the command line; variables are inherited. */
static void make_words(const struct cmd_options *options, char *python, char **words)
{
    static char names[CMD_FLAGS_COUNT][32];
    static char verb[] = "node";
    static char flag_of_script[] = "-c";
    size_t count = 0;

    words[count++] = python;
    words[count++] = flag_of_script;
    words[count++] = script;
    words[count++] = verb;
    for (int flag = 0; flag < CMD_FLAGS_COUNT; flag++) {
        const struct cmd_value *value = &options->values[flag];

        if ((cmd_flags[flag].verbs & CMD_NODE) == 0 || value->source != CMD_FROM_LINE)
            continue;
        (void)snprintf(names[flag], sizeof names[flag], "--%s", cmd_flags[flag].name);
        if (cmd_flags[flag].kind == CMD_LIST) {
            count = add_list(words, count, names[flag], value);
        } else if (count + 3 < WORDS_MAX) {
            words[count++] = names[flag];
            words[count++] = (char *)(uintptr_t)value->text;
        }
    }
    words[count] = NULL;
}

void cmd_python_become(const struct cmd_options *options)
{
    static char default_python[] = "python3";
    static char *words[WORDS_MAX];
    char *python = getenv("MUSTER_PYTHON");

    if (options->values[CMD_FLAG_PYTHON].items_count == 0 &&
        cmd_number(options, CMD_FLAG_PROCESSES) == 0)
        return;
    if (cmd_host()->load != NULL)
        return;
    if (python == NULL || python[0] == '\0')
        python = default_python;
    make_words(options, python, words);
    (void)execvp(python, words);
    (void)fprintf(stderr, "muster node: --python: the interpreter \"%.200s\" cannot be "
                  "started: %s; MUSTER_PYTHON names another one\n", python,
                  strerror(errno));
    exit(CMD_USAGE);
}

int cmd_python_load(const struct cmd_options *options, mu_node *node,
                    mu_error *ret_error)
{
    const struct cmd_value *modules = &options->values[CMD_FLAG_PYTHON];
    const mu_main_options *host = cmd_host();
    unsigned processes = cmd_number(options, CMD_FLAG_PROCESSES);
    char number[16];
    int rv = 0;

    if (host->load == NULL)
        return 0;
    (void)snprintf(number, sizeof number, "%u", processes);
    if (processes > 0 && mu_node_set_setting(node, "python.processes", number) != 0)
        return mu_error_set(ret_error, -MU_ENOMEM, "out of memory");
    rv = host->load(node, "", host->user, ret_error);
    for (size_t i = 0; rv == 0 && i < modules->items_count; i++)
        if (modules->items[i][0] != '\0')
            rv = host->load(node, modules->items[i], host->user, ret_error);
    return rv;
}
