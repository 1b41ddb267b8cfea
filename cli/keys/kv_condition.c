#include "cli/keys/kv_condition.h"

#include "cli/verbs.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int cmd_kv_code(int rv)
{
    return rv == -MU_EINVALID ? CMD_USAGE : cmd_exit_code(rv);
}

bool cmd_kv_is_directory(const struct cmd_client *client)
{
    const char *key = client->options->operands[0];
    size_t length = strlen(key);

    return cmd_number(client->options, CMD_FLAG_PREFIX) == 1 ||
           (length > 0 && key[length - 1] == '/');
}

static bool must_be_absent(const struct cmd_options *options)
{
    return options->verb->bit != CMD_KV_RM &&
           cmd_number(options, CMD_FLAG_IF_ABSENT) == 1;
}

bool cmd_kv_has_condition(const struct cmd_options *options)
{
    return must_be_absent(options) || cmd_text(options, CMD_FLAG_IF_REVISION) != NULL ||
           cmd_text(options, CMD_FLAG_IF_VALUE) != NULL;
}

bool cmd_kv_read_revision(const char *text, uint64_t *ret_revision)
{
    char *end;

    errno = 0;
    *ret_revision = strtoull(text, &end, 10);
    return text[0] >= '0' && text[0] <= '9' && *end == '\0' && errno == 0;
}

static int read_condition(const struct cmd_options *options, const char *key,
                          mu_error *error, mu_kv_check *ret_check)
{
    const char *revision = cmd_text(options, CMD_FLAG_IF_REVISION);
    const char *value = cmd_text(options, CMD_FLAG_IF_VALUE);
    char origin[CMD_ORIGIN_BYTES];

    *ret_check = (mu_kv_check){.type = MU_KV_IF_ABSENT, .key = key};
    if (must_be_absent(options) + (revision != NULL) + (value != NULL) > 1)
        return mu_error_set(error, -MU_EINVALID,
                            "--if-absent, --if-revision and "
                            "--if-value exclude each other");
    if (value != NULL) {
        ret_check->type = MU_KV_IF_VALUE;
        ret_check->value = value;
        ret_check->size = strlen(value);
    } else if (revision != NULL) {
        ret_check->type = MU_KV_IF_REVISION;
        if (!cmd_kv_read_revision(revision, &ret_check->revision))
            return mu_error_set(error, -MU_EINVALID,
                                "%s: expected a revision, a whole number, got \"%.40s\"",
                                cmd_origin(options, CMD_FLAG_IF_REVISION, origin,
                                           sizeof origin),
                                revision);
    }
    return 0;
}

int cmd_kv_change_if(struct cmd_client *client, const mu_kv_change *change,
                     mu_error *error, uint64_t *ret_revision)
{
    mu_kv_check check;
    const mu_kv_transaction transaction = {&check, 1, change, 1};
    mu_kv_transaction_result outcome;
    int rv = read_condition(client->options, change->key, error, &check);

    if (rv != 0)
        return cmd_kv_code(rv);
    rv = mu_kv_transact(client->node, &transaction, cmd_timeout_ms(client), error,
                        &outcome);
    *ret_revision = outcome.revision;
    return rv == -MU_EPRECONDITION && outcome.failed >= 0 ? CMD_COMPARED
                                                          : cmd_kv_code(rv);
}

int cmd_kv_put_if(struct cmd_client *client, const mu_kv_change *change, mu_error *error,
                  uint64_t *ret_revision)
{
    if (cmd_kv_has_condition(client->options))
        return cmd_kv_change_if(client, change, error, ret_revision);
    return cmd_kv_code(mu_kv_put(client->node, change->key, change->value, change->size,
                                 change->flags | MU_KV_OVERWRITE, 0,
                                 cmd_timeout_ms(client), error, ret_revision));
}

bool cmd_kv_read_number(const char *text, int64_t *ret_number)
{
    char *end;

    errno = 0;
    *ret_number = strtoll(text, &end, 10);
    return end != text && *end == '\0' && errno == 0;
}

int cmd_kv_read_input(size_t max, mu_error *error, char **ret_text, size_t *ret_size)
{
    char *text = malloc(max + 1);
    size_t size;

    if (text == NULL)
        return mu_error_set(error, -MU_ENOMEM, "out of memory");
    size = fread(text, 1, max + 1, stdin);
    if (ferror(stdin) == 0 && size <= max) {
        text[size] = '\0';
        *ret_text = text;
        *ret_size = size;
        return 0;
    }
    free(text);
    if (ferror(stdin) != 0)
        return mu_error_set(error, -MU_EINVALID, "standard input cannot be read: %s",
                            strerror(errno));
    return mu_error_set(error, -MU_EINVALID, "standard input has more than %zu bytes",
                        max);
}
