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

void cmd_python_become(const struct cmd_options *options)
{
    static char default_python[] = "python3";
    static char flag[] = "-c";
    static char verb[] = "node";
    static char *words[WORDS_MAX] = {NULL, flag, script, verb};
    char *python = getenv("MUSTER_PYTHON");

    if (options->values[CMD_FLAG_PYTHON].items_count == 0 &&
        cmd_number(options, CMD_FLAG_PROCESSES) == 0)
        return;
    if (cmd_host()->load != NULL)
        return;
    if (python == NULL || python[0] == '\0')
        python = default_python;
    words[0] = python;
    if (cmd_node_words(options, words, 4, WORDS_MAX - 1) == 0) {
        (void)fprintf(stderr, "muster node: --python: too many flags to pass on\n");
        exit(CMD_USAGE);
    }
    (void)execvp(python, words);
    (void)fprintf(stderr,
                  "muster node: --python: the interpreter \"%.200s\" cannot be "
                  "started: %s; MUSTER_PYTHON names another one\n",
                  python, strerror(errno));
    exit(CMD_USAGE);
}

int cmd_python_load(const struct cmd_options *options, mu_node *node, mu_error *ret_error)
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
