#include "resolver/cloud/token_command.h"

#include "runtime/base/build.h"
#include "runtime/document/json.h"

#include <string.h>

#define WHAT "setting token_command"
#define BLANKS " \t\r\n"

/* {"kind": "ExecCredential", "status": {"token": "..."}}. The parser's message is
 * dropped: it quotes the text, which may be secret. */
static int read_credential(const char *text, size_t size, mu_error *ret_error,
                           char **ret_token)
{
    cJSON *root = NULL;
    const cJSON *token;
    mu_error inner;
    int rv = mu__json_parse(text, size, WHAT, &inner, &root);

    if (rv == -MU_ENOMEM)
        return mu_error_set(ret_error, rv, WHAT ": out of memory");
    token = cJSON_GetObjectItemCaseSensitive(
        cJSON_GetObjectItemCaseSensitive(root, "status"), "token");
    if (rv != 0 || !cJSON_IsString(token) || token->valuestring[0] == '\0') {
        rv = mu_error_set(ret_error, -MU_EINVALID,
                          WHAT ": it printed JSON without a text status.token; expected "
                               "a token, or an ExecCredential with one");
    } else {
        *ret_token = strdup(token->valuestring);
        rv = *ret_token != NULL
                 ? 0
                 : mu_error_set(ret_error, -MU_ENOMEM, WHAT ": out of memory");
    }
    cJSON_Delete(root);
    return rv;
}

static int read_output(const struct mu__answer *answer, mu_error *ret_error,
                       char **ret_token)
{
    const char *text = answer->data + strspn(answer->data, BLANKS);
    size_t size = strlen(text);

    while (size > 0 && strchr(BLANKS, text[size - 1]) != NULL)
        size--;
    if (text[0] == '{')
        return read_credential(text, size, ret_error, ret_token);
    if (size == 0)
        return mu_error_set(ret_error, -MU_EINVALID,
                            WHAT ": it printed nothing; expected a token");
    *ret_token = strndup(text, size);
    return *ret_token != NULL
               ? 0
               : mu_error_set(ret_error, -MU_ENOMEM, WHAT ": out of memory");
}

int mu__token_command(struct mu__requests *requests, const char *command, unsigned again,
                      mu_error *ret_error, char **ret_token)
{
    const struct mu__answer *answer = NULL;
    struct mu__build words = {0};
    int rv = 0;

    mu__build_bytes(&words, "a-c", 4);
    mu__build_add(&words, "a");
    mu__build_add(&words, command);
    mu__build_bytes(&words, "", 1);
    if (!mu__build_whole(&words))
        rv = mu_error_set(ret_error, -MU_ENOMEM, WHAT ": out of memory");
    else
        answer =
            mu__requests_get(requests, &(struct mu__request){
                                           .kind = MU__REQUEST_PROGRAM,
                                           .name = "/bin/sh",
                                           .again = again,
                                           .body = words.text,
                                           .body_size = words.size,
                                           .tries = 1,
                                           .timeout_ms = MU__TOKEN_COMMAND_TIMEOUT_MS,
                                           .bytes_max = MU__TOKEN_COMMAND_BYTES_MAX,
                                           .cache_ms = MU__TOKEN_COMMAND_KEEP_MS,
                                       });
    mu__build_done(&words);
    if (rv != 0)
        return rv;
    rv = mu__answer_check(answer, WHAT, ret_error);
    return rv != 0 ? rv : read_output(answer, ret_error, ret_token);
}
