/* The program `muster`: one verb, its flags, an exit code. */
#include "node/cmd.h"
#include "node/cmd_options.h"
#include "resolver/text.h"

#include <stdio.h>
#include <string.h>

static int unknown_verb(const char *word)
{
    const char *words[CMD_WORDS_MAX] = {"help"};
    const char *near;
    char shown[MU__QUOTE_BYTES];

    cmd_verb_words(words + 1);
    near = cmd_nearest(word, words);
    mu__quote(shown, sizeof shown, word, strlen(word));
    (void)fprintf(stderr, "muster: no verb %s%s%s%s; `muster help` lists them\n", shown,
                  near == NULL ? "" : "; did you mean ", near == NULL ? "" : near,
                  near == NULL ? "" : "?");
    return CMD_USAGE;
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
    code = options.help ? cmd_help(verb->name) : verb->main(&options);
    cmd_options_done(&options);
    return code;
}

int main(int count, char **arguments)
{
    const char *word = count < 2 ? "" : arguments[1];

    if (count < 2) {
        (void)cmd_help(NULL);
        return CMD_USAGE;
    }
    if (strcmp(word, "help") == 0 || strcmp(word, "--help") == 0 ||
        strcmp(word, "-h") == 0)
        return cmd_help(count < 3 ? NULL : arguments[2]);
    if (strcmp(word, "--version") == 0)
        word = "version";
    for (const struct cmd_verb *verb = cmd_verbs; verb->name != NULL; verb++)
        if (strcmp(word, verb->name) == 0)
            return run_verb(verb, arguments + 2);
    return unknown_verb(word);
}
