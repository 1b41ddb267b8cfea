/* `muster key new`, `muster key derive` and `muster key show`: the key by which the nodes
 * of a cluster prove themselves, and those that are derived from it. */
#include "cli/options/flags.h"
#include "cli/output/print_json.h"
#include "cli/verbs.h"
#include "node/files.h"
#include "node/own_proof.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static int complain(const struct cmd_options *options, const mu_error *error, int code)
{
    (void)fprintf(stderr, "muster %s: %s\n", options->verb->name, error->message);
    return code;
}

/* The file of operand `which`, or of --key-file. */
static const char *file_of(const struct cmd_options *options, size_t which,
                           mu_error *error)
{
    const char *file = options->operands_count > which
                           ? options->operands[which]
                           : cmd_text(options, CMD_FLAG_KEY_FILE);

    if (file == NULL)
        (void)mu_error_set(error, -MU_EINVALID,
                           "expected the file of a key: FILE, --key-file or "
                           "MUSTER_KEY_FILE");
    return file;
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

/* A new file, which nobody else may read; one that is there is never overwritten. */
static int write_new(const char *file, const void *data, size_t size, mu_error *error)
{
    int fd = open(file, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    bool is_written;

    if (fd < 0 && errno == EEXIST)
        return mu_error_set(error, -MU_EEXISTS,
                            "\"%s\" is there already, and is not overwritten", file);
    if (fd < 0)
        return mu__file_error(file, "made", errno, error);
    is_written = write(fd, data, size) == (ssize_t)size && fsync(fd) == 0;
    if (close(fd) == 0 && is_written)
        return 0;
    (void)mu__file_error(file, "written", errno, error);
    (void)unlink(file);
    return error->code;
}

int cmd_key_new(struct cmd_options *options)
{
    mu_error error = {0};
    const char *file = file_of(options, 0, &error);
    struct mu__key key;
    int code = CMD_FAILED;

    if (file == NULL)
        return complain(options, &error, CMD_USAGE);
    if (mu__key_new(&error, &key) == 0 &&
        write_new(file, key.bytes, sizeof key.bytes, &error) == 0)
        code = print(options, &key, file, NULL);
    mu__key_clear(&key);
    return error.code == 0 ? code : complain(options, &error, CMD_FAILED);
}

int cmd_key_show(struct cmd_options *options)
{
    mu_error error = {0};
    const char *file = file_of(options, 0, &error);
    struct mu__key key;
    int code;

    if (file == NULL)
        return complain(options, &error, CMD_USAGE);
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
        if (write_new(file, text, size, error) == 0)
            code = print(options, key, file, NULL);
    }
    return code;
}

int cmd_key_derive(struct cmd_options *options)
{
    const char *word = options->operands[0];
    enum mu__right right = mu__right_of(word, (unsigned)strlen(word));
    const char *file = cmd_text(options, CMD_FLAG_KEY_FILE);
    struct mu__key key;
    struct mu__key derived;
    mu_error error = {0};
    int code = CMD_FAILED;

    if (right == MU__RIGHT_NONE || right == MU__RIGHT_ALL || file == NULL) {
        (void)mu_error_set(&error, -MU_EINVALID,
                           file == NULL ? "expected the file of the cluster's key: "
                                          "--key-file or MUSTER_KEY_FILE"
                                        : "expected RIGHT to be observe, use, operate or "
                                          "task, got \"%.40s\"",
                           word);
        return complain(options, &error, CMD_USAGE);
    }
    if (mu__key_file_read(file, &error, &key) != 0)
        return complain(options, &error, CMD_FAILED);
    if (mu__key_derive(&key, right, &error, &derived) == 0)
        code = hand_out(options, &derived, &error);
    mu__key_clear(&key);
    mu__key_clear(&derived);
    return error.code == 0 ? code : complain(options, &error, CMD_FAILED);
}
