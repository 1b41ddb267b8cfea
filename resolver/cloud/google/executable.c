/* Programs that say who an external account is ("executable-sourced credentials"). They
 * are run only where GOOGLE_EXTERNAL_ACCOUNT_ALLOW_EXECUTABLES is 1: who can write a file
 * of credentials should not run programs by it. */
#include "resolver/cloud/google/token.h"

#include "runtime/base/json.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BLANKS " \t\r\n"
#define TYPES "urn:ietf:params:oauth:token-type:"

enum {
    VERSION = 1, /* of what is printed */
    TIMEOUT_MS = 30000,
    LIMIT_LEAST_MS = 5000,
    LIMIT_MOST_MS = 120000,
    WHAT_BYTES = 380
};

struct program {
    const struct mu__google_file *account;
    const char *what;       /* begins messages */
    const char *command;    /* with its arguments */
    const char *output;     /* where it leaves what it prints; NULL: nowhere */
    int timeout_ms;
    char name[512];         /* the command's first word */
};

/* ---- What it is ---- */

static int read_limit(const cJSON *executable, const char *what, mu_error *ret_error,
                      int *ret_ms)
{
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(executable, "timeout_millis");
    int timeout_ms = TIMEOUT_MS;

    if (item != NULL && (mu__json_index(item, &timeout_ms) != 0 ||
                         timeout_ms < LIMIT_LEAST_MS || timeout_ms > LIMIT_MOST_MS))
        return mu_error_set(ret_error, -MU_EINVALID,
                            "%s: timeout_millis: expected a number of %d to %d", what,
                            LIMIT_LEAST_MS, LIMIT_MOST_MS);
    *ret_ms = timeout_ms;
    return 0;
}

/* Words are between blanks; there are no quotes. */
static int read_name(struct program *program, mu_error *ret_error)
{
    const char *text = program->command + strspn(program->command, BLANKS);
    size_t size = strcspn(text, BLANKS);

    if (size == 0)
        return mu_error_set(ret_error, -MU_EINVALID, "%s: command is missing",
                            program->what);
    if (size >= sizeof program->name)
        return mu_error_set(ret_error, -MU_EINVALID,
                            "%s: command: expected a path of at most %zu bytes",
                            program->what, sizeof program->name - 1);
    (void)snprintf(program->name, sizeof program->name, "%.*s", (int)size, text);
    program->command = text + size;
    return 0;
}

/* {"command": "/path ARGUMENT...", "timeout_millis": 5000, "output_file": "/path"} */
static int read_program(const cJSON *executable, mu_error *ret_error,
                        struct program *program)
{
    const struct mu__google_file members = {.root = executable, .what = program->what};
    int rv;

    if (!cJSON_IsObject(executable))
        return mu_error_set(ret_error, -MU_EINVALID, "%s: expected an object",
                            program->what);
    rv = mu__google_member(&members, "command", ret_error, &program->command);
    if (rv == 0)
        rv = read_limit(executable, program->what, ret_error, &program->timeout_ms);
    if (rv == 0)
        rv = mu__google_text(executable, "output_file", program->what, ret_error,
                             &program->output);
    return rv != 0 ? rv : read_name(program, ret_error);
}

/* ---- What it prints ---- */

static int64_t clock_s(const struct mu__google_file *account)
{
    const struct mu__answer *answer = mu__requests_get(
        account->google->requests,
        &(struct mu__request){.kind = MU__REQUEST_CLOCK, .again = account->again});

    return answer->code == 0 ? strtoll(answer->data, NULL, 10) : 0;
}

/* In the program's words, unless these may be secret. */
static int has_none(const cJSON *root, const char *what, mu_error *ret_error)
{
    const char *code = mu__google_described(root, "code");
    const char *message = mu__google_described(root, "message");

    return mu_error_set(ret_error, -MU_EUNAUTHENTICATED,
                        "%.380s: the program has no token%s%s%s%s", what,
                        code[0] == '\0' ? "" : ": ", code,
                        message[0] == '\0' ? "" : code[0] == '\0' ? ": " : " ", message);
}

/* {"version": 1, "success": true, "expiration_time": 1620433341}: whether there is a
 * token, which is good still. What a later run may take from a file has to say it. */
static int check_response(const struct program *program, const cJSON *root,
                          mu_error *ret_error)
{
    const cJSON *success = cJSON_GetObjectItemCaseSensitive(root, "success");
    const cJSON *until = cJSON_GetObjectItemCaseSensitive(root, "expiration_time");
    int version = 0;

    if (mu__json_index(cJSON_GetObjectItemCaseSensitive(root, "version"), &version) !=
            0 ||
        version != VERSION)
        return mu_error_set(ret_error, -MU_EINVALID,
                            "%s: what the program prints: version: expected %d",
                            program->what, VERSION);
    if (!cJSON_IsBool(success))
        return mu_error_set(ret_error, -MU_EINVALID,
                            "%s: what the program prints: success: expected true or "
                            "false",
                            program->what);
    if (!cJSON_IsTrue(success))
        return has_none(root, program->what, ret_error);
    if (until != NULL && !cJSON_IsNumber(until))
        return mu_error_set(ret_error, -MU_EINVALID,
                            "%s: what the program prints: expiration_time: expected a "
                            "number",
                            program->what);
    if (until == NULL && program->output != NULL)
        return mu_error_set(ret_error, -MU_EINVALID,
                            "%s: what the program prints: expiration_time: expected a "
                            "number, since there is an output_file",
                            program->what);
    if (until != NULL && until->valuedouble <= (double)clock_s(program->account))
        return mu_error_set(ret_error, -MU_EUNAUTHENTICATED,
                            "%s: the program's token has expired", program->what);
    return 0;
}

/* {"token_type": "urn:...:id_token", "id_token": "..."} */
static int take_token(const struct program *program, const cJSON *root,
                      mu_error *ret_error, char **ret_subject)
{
    static const struct {
        const char *type;
        const char *member;
    } types[] = {{TYPES "id_token", "id_token"},
                 {TYPES "jwt", "id_token"},
                 {TYPES "saml2", "saml_response"}};
    char what[WHAT_BYTES + 40];
    const struct mu__google_file response = {.root = root, .what = what};
    const char *text = NULL;
    size_t i = 0;
    int rv;

    (void)snprintf(what, sizeof what, "%.380s: what the program prints", program->what);
    rv = mu__google_member(&response, "token_type", ret_error, &text);
    if (rv != 0)
        return rv;
    while (i < sizeof types / sizeof types[0] && strcmp(types[i].type, text) != 0)
        i++;
    if (i == sizeof types / sizeof types[0])
        return mu_error_set(ret_error, -MU_EINVALID,
                            "%s: token_type: expected " TYPES " and jwt, id_token or "
                            "saml2",
                            what);
    rv = mu__google_member(&response, types[i].member, ret_error, &text);
    return rv != 0 ? rv : mu__google_token_take(what, text, ret_error, ret_subject);
}

static int read_response(const struct program *program, const struct mu__answer *answer,
                         mu_error *ret_error, char **ret_subject)
{
    const cJSON *root;
    int rv = mu__google_parse(answer, program->what, ret_error, &root);

    if (rv == 0)
        rv = check_response(program, root, ret_error);
    return rv != 0 ? rv : take_token(program, root, ret_error, ret_subject);
}

/* ---- What it has left ---- */

/* -MU_ENOTFOUND: nothing that could be taken, whatever is wrong with it. */
static int take_left(const struct program *program, mu_error *ret_error,
                     char **ret_subject)
{
    const struct mu__answer *answer;
    mu_error inner = {0};
    int rv;

    if (program->output == NULL || program->account->again > 0)
        return -MU_ENOTFOUND;
    answer = mu__requests_get(program->account->google->requests,
                              &(struct mu__request){.kind = MU__REQUEST_FILE,
                                                    .name = program->output,
                                                    .tries = 1,
                                                    .bytes_max = MU__GOOGLE_FILE_BYTES});
    if (answer == NULL)
        return MU__LATER;
    rv = answer->code != 0 ? answer->code
                           : read_response(program, answer, &inner, ret_subject);
    if (rv == -MU_ENOMEM)
        return mu_error_set(ret_error, rv, "out of memory");
    return rv == 0 ? 0 : -MU_ENOTFOUND;
}

/* ---- Running it ---- */

static void add_variable(struct mu__build *words, const char *name, const char *value,
                         size_t size)
{
    mu__build_format(words, "vGOOGLE_EXTERNAL_ACCOUNT_%s=", name);
    mu__build_bytes(words, value, size);
    mu__build_bytes(words, "", 1);
}

/* "https://.../serviceAccounts/EMAIL:generateAccessToken" */
static void add_email(struct mu__build *words, const cJSON *root)
{
    const cJSON *item =
        cJSON_GetObjectItemCaseSensitive(root, "service_account_impersonation_url");
    const char *slash = cJSON_IsString(item) ? strrchr(item->valuestring, '/') : NULL;
    const char *end = slash == NULL ? NULL : strstr(slash, ":generateAccessToken");

    if (end != NULL)
        add_variable(words, "IMPERSONATED_EMAIL", slash + 1, (size_t)(end - slash - 1));
}

static int build_words(const struct program *program, mu_error *ret_error,
                       struct mu__build *words)
{
    const struct mu__google_file *account = program->account;
    const char *audience = NULL;
    const char *type = NULL;
    int rv = mu__google_member(account, "audience", ret_error, &audience);

    if (rv == 0)
        rv = mu__google_member(account, "subject_token_type", ret_error, &type);
    if (rv != 0)
        return rv;
    for (const char *at = program->command + strspn(program->command, BLANKS);
         *at != '\0'; at += strspn(at, BLANKS)) {
        size_t size = strcspn(at, BLANKS);

        mu__build_add(words, "a");
        mu__build_bytes(words, at, size);
        mu__build_bytes(words, "", 1);
        at += size;
    }
    add_variable(words, "AUDIENCE", audience, strlen(audience));
    add_variable(words, "TOKEN_TYPE", type, strlen(type));
    add_variable(words, "INTERACTIVE", "0", 1);
    add_email(words, account->root);
    if (program->output != NULL)
        add_variable(words, "OUTPUT_FILE", program->output, strlen(program->output));
    return mu__build_whole(words) ? 0
                                  : mu_error_set(ret_error, -MU_ENOMEM, "out of memory");
}

static int request_program(const struct program *program, mu_error *ret_error,
                           char **ret_subject)
{
    const struct mu__answer *answer = NULL;
    struct mu__build words = {0};
    int rv = build_words(program, ret_error, &words);

    if (rv == 0) {
        answer = mu__requests_get(
            program->account->google->requests,
            &(struct mu__request){.kind = MU__REQUEST_PROGRAM,
                                  .name = program->name,
                                  .again = program->account->again,
                                  .body = words.text,
                                  .body_size = words.size,
                                  .tries = 1,
                                  .timeout_ms = (uint32_t)program->timeout_ms,
                                  .bytes_max = MU__GOOGLE_FILE_BYTES});
        rv = answer == NULL ? MU__LATER
                            : mu__answer_check(answer, program->what, ret_error);
    }
    mu__build_done(&words);
    return rv != 0 ? rv : read_response(program, answer, ret_error, ret_subject);
}

int mu__google_executable(const struct mu__google_file *account,
                          const struct mu__google_file *source, mu_error *ret_error,
                          char **ret_subject)
{
    static const char allows[] = "GOOGLE_EXTERNAL_ACCOUNT_ALLOW_EXECUTABLES";
    const char *allowed = mu__request_variable(account->google->requests, allows);
    char what[WHAT_BYTES];
    struct program program = {.account = account, .what = what};
    int rv;

    (void)snprintf(what, sizeof what, "%.320s: executable", source->what);
    if (allowed == NULL || strcmp(allowed, "1") != 0)
        return mu_error_set(ret_error, -MU_EPERMISSION,
                            "%s: no program is run unless the variable %s is 1", what,
                            allows);
    rv = read_program(cJSON_GetObjectItemCaseSensitive(source->root, "executable"),
                      ret_error, &program);
    if (rv != 0)
        return rv;
    rv = take_left(&program, ret_error, ret_subject);
    return rv == -MU_ENOTFOUND ? request_program(&program, ret_error, ret_subject) : rv;
}
