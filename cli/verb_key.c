/* `muster key new`, `muster key derive` and `muster key show`: the key by which the nodes
 * of a cluster authenticate each other, and those that are derived from it. */
#include "cli/options/flags.h"
#include "cli/output/print_json.h"
#include "cli/verbs.h"

#include "muster/admin.h"

#include <stdio.h>

/* The file of operand `which`, of --key-file, or the user's own, whose path is put into
 * `own`. NULL: it has no place. */
static const char *choose_key_file(const struct cmd_options *options, size_t which,
                                   mu_error *error, char own[MU_KEY_PATH_BYTES])
{
    if (options->operands_count > which)
        return options->operands[which];
    if (cmd_text(options, CMD_FLAG_KEY_FILE) != NULL)
        return cmd_text(options, CMD_FLAG_KEY_FILE);
    return mu_key_path(error, own) == 0 ? own : NULL;
}

static int print_key(const struct cmd_options *options, const mu_key_info *info,
                     const char *file)
{
    cJSON *map;

    if (cmd_number(options, CMD_FLAG_OUTPUT) == 0) {
        if (info->text[0] != '\0')
            (void)printf("%s\n", info->text);
        else
            (void)printf("%s key %s in %s\n", info->right, info->fingerprint, file);
        return CMD_FINE;
    }
    map = cJSON_CreateObject();
    cmd_json_add_text(map, "right", info->right);
    cmd_json_add_text(map, "fingerprint", info->fingerprint);
    cmd_json_add_text(map, "file", info->text[0] != '\0' ? NULL : file);
    cmd_json_add_text(map, "key", info->text[0] != '\0' ? info->text : NULL);
    return cmd_json_print(map) == 0 ? CMD_FINE : CMD_FAILED;
}

/* Print what came of it, or the error. */
static int finish_key_verb(const struct cmd_options *options, int rv,
                           const mu_error *error, const mu_key_info *info,
                           const char *file)
{
    if (rv == 0)
        return print_key(options, info, file);
    (void)fprintf(stderr, "muster %s: %s\n", options->verb->name, error->message);
    return rv == -MU_ERANGE ? CMD_USAGE : CMD_FAILED;
}

int cmd_key_new(struct cmd_options *options)
{
    char own[MU_KEY_PATH_BYTES];
    mu_error error;
    const char *file = choose_key_file(options, 0, &error, own);
    mu_key_info info;
    int rv = file == NULL ? -MU_EUNAVAILABLE : mu_key_new(file, &error, &info);

    return finish_key_verb(options, rv, &error, &info, file);
}

int cmd_key_show(struct cmd_options *options)
{
    char own[MU_KEY_PATH_BYTES];
    mu_error error;
    const char *file = choose_key_file(options, 0, &error, own);
    mu_key_info info;
    int rv = file == NULL ? -MU_EUNAVAILABLE : mu_key_read(file, &error, &info);

    return finish_key_verb(options, rv, &error, &info, file);
}

/* The key to derive from is that of --key-file, or the user's own. */
int cmd_key_derive(struct cmd_options *options)
{
    const char *new_file = options->operands_count > 1 ? options->operands[1] : NULL;
    char own[MU_KEY_PATH_BYTES];
    mu_error error;
    const char *file = choose_key_file(options, options->operands_count, &error, own);
    mu_key_info info;
    int rv = file == NULL
                 ? -MU_EUNAVAILABLE
                 : mu_key_derive(file, options->operands[0], new_file, &error, &info);

    return finish_key_verb(options, rv, &error, &info, new_file);
}
