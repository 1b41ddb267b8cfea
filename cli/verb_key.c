/* `muster key new`, `muster key derive` and `muster key show`: the key by which the nodes
 * of a cluster prove themselves, and those that are derived from it. */
#include "cli/options/flags.h"
#include "cli/output/print_json.h"
#include "cli/verbs.h"
#include "node/files/key_file.h"

#include <stdio.h>
#include <string.h>

static int complain(const struct cmd_options *options, const mu_error *error, int code)
{
    (void)fprintf(stderr, "muster %s: %s\n", options->verb->name, error->message);
    return code;
}

/* The file of operand `which`, of --key-file, or the user's own, whose path is put into
 * `own`. NULL: it has no place. */
static const char *file_of(const struct cmd_options *options, size_t which,
                           mu_error *error, char own[MU__KEY_PATH_BYTES])
{
    if (options->operands_count > which)
        return options->operands[which];
    if (cmd_text(options, CMD_FLAG_KEY_FILE) != NULL)
        return cmd_text(options, CMD_FLAG_KEY_FILE);
    return mu__user_key_path(error, own) == 0 ? own : NULL;
}

static int print(const struct cmd_options *options, const struct mu__key *key,
                 const char *file, const char *text)
{
    cJSON *map;

    if (cmd_number(options, CMD_FLAG_OUTPUT) == 0) {
        if (text != NULL)
            (void)printf("%s\n", text);
        else
            (void)printf("%s key %s in %s\n", mu__right_name(key->right),
                         key->fingerprint, file);
        return CMD_FINE;
    }
    map = cJSON_CreateObject();
    cmd_json_add_text(map, "right", mu__right_name(key->right));
    cmd_json_add_text(map, "fingerprint", key->fingerprint);
    cmd_json_add_text(map, "file", file);
    cmd_json_add_text(map, "key", text);
    return cmd_json_print(map) == 0 ? CMD_FINE : CMD_FAILED;
}

int cmd_key_new(struct cmd_options *options)
{
    char own[MU__KEY_PATH_BYTES];
    mu_error error = {0};
    const char *file = file_of(options, 0, &error, own);
    struct mu__key key;
    int code = CMD_FAILED;

    if (file == NULL)
        return complain(options, &error, CMD_FAILED);
    if (mu__key_new(&error, &key) == 0 &&
        mu__key_file_write(file, key.bytes, sizeof key.bytes, &error) == 0)
        code = print(options, &key, file, NULL);
    mu__key_clear(&key);
    return error.code == 0 ? code : complain(options, &error, CMD_FAILED);
}

int cmd_key_show(struct cmd_options *options)
{
    char own[MU__KEY_PATH_BYTES];
    mu_error error = {0};
    const char *file = file_of(options, 0, &error, own);
    struct mu__key key;
    int code;

    if (file == NULL)
        return complain(options, &error, CMD_FAILED);
    if (mu__key_file_read(file, &error, &key) != 0)
        return complain(options, &error, CMD_FAILED);
    code = print(options, &key, file, NULL);
    mu__key_clear(&key);
    return code;
}

/* The line of the key, where no file is named, and otherwise what is in that. */
static int hand_out(struct cmd_options *options, const struct mu__key *key,
                    mu_error *error)
{
    const char *file = options->operands_count > 1 ? options->operands[1] : NULL;
    char text[MU__KEY_TEXT_BYTES + 1];
    size_t size;
    int code = CMD_FAILED;

    mu__key_write(key, text);
    if (file == NULL) {
        code = print(options, key, NULL, text);
    } else {
        size = strlen(text);
        text[size++] = '\n';
        if (mu__key_file_write(file, text, size, error) == 0)
            code = print(options, key, file, NULL);
    }
    return code;
}

int cmd_key_derive(struct cmd_options *options)
{
    const char *word = options->operands[0];
    enum mu__right right = mu__right_of(word, (unsigned)strlen(word));
    char own[MU__KEY_PATH_BYTES];
    mu_error error = {0};
    const char *file = file_of(options, options->operands_count, &error, own);
    struct mu__key key;
    struct mu__key derived;
    int code = CMD_FAILED;

    if (right == MU__RIGHT_NONE || right == MU__RIGHT_ALL) {
        (void)mu_error_set(&error, -MU_EINVALID,
                           "expected RIGHT to be observe, use, operate or task, got "
                           "\"%.40s\"",
                           word);
        return complain(options, &error, CMD_USAGE);
    }
    if (file == NULL)
        return complain(options, &error, CMD_FAILED);
    if (mu__key_file_read(file, &error, &key) != 0)
        return complain(options, &error, CMD_FAILED);
    if (mu__key_derive(&key, right, &error, &derived) == 0)
        code = hand_out(options, &derived, &error);
    mu__key_clear(&key);
    mu__key_clear(&derived);
    return error.code == 0 ? code : complain(options, &error, CMD_FAILED);
}
