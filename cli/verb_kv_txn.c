/* `muster kv txn`: a transaction from standard input, one comparison or change a line. */
#include "cli/keys/kv_condition.h"
#include "cli/output/print_json.h"
#include "cli/verbs.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { INPUT_BYTES_MAX = 4 << 20 };

struct input {
    char *text; /* words are ended by zero bytes as they are read */
    size_t size;
    unsigned line;
    mu_kv_check checks[MU_KV_TRANSACTION_MAX];
    size_t checks_count;
    mu_kv_change changes[MU_KV_TRANSACTION_MAX];
    size_t changes_count;
    bool increments;
};

/* ---- Words ---- */

static int refuse_line(const struct input *input, mu_error *error, const char *words)
{
    return mu_error_set(error, -MU_EINVALID, "line %u of standard input: %s", input->line,
                        words);
}

/* Decode a JSON string in place: the content is never longer than the JSON. */
static int read_string(struct input *input, char **at, mu_error *error, char **ret_word)
{
    const char *end = NULL;
    cJSON *string = cJSON_ParseWithOpts(*at, &end, 0);

    if (!cJSON_IsString(string) || (end[0] != '\0' && end[0] != ' ' && end[0] != '\t')) {
        cJSON_Delete(string);
        return refuse_line(input, error,
                           "expected a string as in JSON behind the quotation mark");
    }
    *ret_word = *at;
    *at += end - *at;
    if (**at != '\0')
        *(*at)++ = '\0';
    (void)memmove(*ret_word, string->valuestring, strlen(string->valuestring) + 1);
    cJSON_Delete(string);
    return 0;
}

static void skip_line_blanks(char **at)
{
    *at += strspn(*at, " \t");
}

/* Read one word, or with `rest` the rest of the line. */
static int read_line_word(struct input *input, char **at, bool rest, const char *expected,
                          mu_error *error, char **ret_word)
{
    size_t length;

    skip_line_blanks(at);
    if (**at == '"')
        return read_string(input, at, error, ret_word);
    length = rest ? strlen(*at) : strcspn(*at, " \t");
    if (length == 0 && !rest)
        return refuse_line(input, error, expected);
    *ret_word = *at;
    *at += length;
    if (**at != '\0')
        *(*at)++ = '\0';
    return 0;
}

static int expect_end(struct input *input, char **at, mu_error *error)
{
    skip_line_blanks(at);
    return **at == '\0' ? 0 : refuse_line(input, error, "there is more than expected");
}

/* ---- Lines ---- */

static int read_check_kind(struct input *input, mu_kv_check *check, const char *kind,
                           char **at, mu_error *error)
{
    char *word = NULL;
    int rv = 0;

    if (strcmp(kind, "absent") == 0) {
        check->type = MU_KV_IF_ABSENT;
    } else if (strcmp(kind, "present") == 0) {
        check->type = MU_KV_IF_PRESENT;
    } else if (strcmp(kind, "value") == 0) {
        check->type = MU_KV_IF_VALUE;
        rv = read_line_word(input, at, true, "", error, &word);
        check->value = word;
        check->size = rv == 0 ? strlen(word) : 0;
    } else if (strcmp(kind, "revision") == 0) {
        check->type = MU_KV_IF_REVISION;
        rv = read_line_word(input, at, false, "expected a revision", error, &word);
        if (rv == 0 && !cmd_kv_read_revision(word, &check->revision))
            rv = refuse_line(input, error, "expected a revision, a whole number");
    } else {
        rv = refuse_line(input, error,
                         "expected absent, present, revision or value behind the key");
    }
    return rv;
}

static int read_if(struct input *input, char **at, mu_error *error)
{
    mu_kv_check *check = &input->checks[input->checks_count];
    char *kind = NULL;
    char *key = NULL;
    int rv;

    if (input->checks_count == MU_KV_TRANSACTION_MAX)
        return refuse_line(input, error, "there are more than 128 comparisons");
    rv = read_line_word(input, at, false, "expected a key", error, &key);
    if (rv == 0)
        rv = read_line_word(input, at, false,
                            "expected absent, present, revision or value behind the key",
                            error, &kind);
    if (rv == 0)
        rv = read_check_kind(input, check, kind, at, error);
    check->key = key;
    input->checks_count++;
    return rv;
}

static int read_by(struct input *input, char **at, mu_error *error, int64_t *ret_by)
{
    char *word = NULL;
    int rv;

    skip_line_blanks(at);
    *ret_by = 1;
    if (**at == '\0')
        return 0;
    rv = read_line_word(input, at, false, "", error, &word);
    if (rv != 0 || cmd_kv_read_number(word, ret_by))
        return rv;
    return refuse_line(input, error, "expected a whole number of 64 bits to add");
}

static int read_change_line(struct input *input, int operation, char **at,
                            mu_error *error)
{
    mu_kv_change *change = &input->changes[input->changes_count];
    char *key = NULL;
    char *value = NULL;
    int rv;

    if (input->changes_count == MU_KV_TRANSACTION_MAX)
        return refuse_line(input, error, "there are more than 128 changes");
    rv = read_line_word(input, at, false, "expected a key", error, &key);
    change->operation = operation;
    change->key = key;
    if (rv == 0 && operation == MU_KV_INCREMENT)
        rv = read_by(input, at, error, &change->by);
    if (rv == 0 && operation == MU_KV_PUT) {
        rv = read_line_word(input, at, true, "", error, &value);
        change->value = value;
        change->size = rv == 0 ? strlen(value) : 0;
    }
    input->changes_count++;
    input->increments = input->increments || operation == MU_KV_INCREMENT;
    return rv;
}

static int read_txn_line(struct input *input, char *line, mu_error *error)
{
    char *word = NULL;
    int rv;

    skip_line_blanks(&line);
    if (line[0] == '\0' || line[0] == '#')
        return 0;
    rv = read_line_word(input, &line, false, "", error, &word);
    if (rv == 0 && strcmp(word, "if") == 0)
        rv = read_if(input, &line, error);
    else if (rv == 0 && strcmp(word, "put") == 0)
        rv = read_change_line(input, MU_KV_PUT, &line, error);
    else if (rv == 0 && strcmp(word, "incr") == 0)
        rv = read_change_line(input, MU_KV_INCREMENT, &line, error);
    else if (rv == 0 && strcmp(word, "rm") == 0)
        rv = read_change_line(input, MU_KV_DELETE, &line, error);
    else if (rv == 0)
        rv = refuse_line(input, error, "expected if, put, incr or rm");
    return rv == 0 ? expect_end(input, &line, error) : rv;
}

static int read_lines(struct input *input, mu_error *error)
{
    char *line = input->text;
    int rv = 0;

    while (rv == 0 && line < input->text + input->size) {
        size_t length = strcspn(line, "\n");

        input->line++;
        if (line + length < input->text + input->size && line[length] == '\0')
            return refuse_line(input, error, "there is a zero byte");
        line[length] = '\0';
        rv = read_txn_line(input, line, error);
        line += length + 1;
    }
    return rv;
}

/* ---- The verb ---- */

static int print_txn_outcome(const struct cmd_client *client, const struct input *input,
                             const mu_kv_transaction_result *outcome)
{
    cJSON *map;

    if (!cmd_is_json(client)) {
        (void)printf("%" PRIu64, outcome->revision);
        if (input->increments)
            (void)printf(" %" PRId64, outcome->number);
        (void)printf("\n");
        return CMD_FINE;
    }
    map = cJSON_CreateObject();
    cmd_json_add_int(map, "revision", (int64_t)outcome->revision);
    if (input->increments)
        cmd_json_add_int(map, "number", outcome->number);
    return cmd_json_print(map) == 0 ? CMD_FINE : CMD_FAILED;
}

static int transact_input(struct cmd_client *client, const struct input *input,
                          mu_error *error)
{
    const mu_kv_transaction transaction = {input->checks, input->checks_count,
                                           input->changes, input->changes_count};
    mu_kv_transaction_result outcome;
    int rv = mu_kv_transact(client->node, &transaction, cmd_timeout_ms(client), error,
                            &outcome);

    if (rv == -MU_EPRECONDITION && outcome.failed >= 0)
        return CMD_COMPARED;
    return rv == 0 ? print_txn_outcome(client, input, &outcome) : cmd_kv_code(rv);
}

int cmd_kv_txn(struct cmd_client *client, mu_error *error)
{
    struct input *input = calloc(1, sizeof *input);
    int rv;

    if (input == NULL)
        return mu_error_set(error, CMD_FAILED, "out of memory");
    rv = cmd_kv_read_input(INPUT_BYTES_MAX, error, &input->text, &input->size);
    if (rv == 0)
        rv = read_lines(input, error);
    rv = rv == 0 ? transact_input(client, input, error) : cmd_kv_code(rv);
    free(input->text);
    free(input);
    return rv;
}
