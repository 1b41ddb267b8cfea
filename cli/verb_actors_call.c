/* `muster actors call`: a method of an actor that has a name. */
#include "cli/output/print_json.h"
#include "cli/service_client.h"
#include "cli/verbs.h"

#include "muster/actor.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define WHOLE_MAX 9007199254740992.0 /* 2^53: whole numbers of JSON are exact below */
#define INT_END \
    18446744073709551616.0 /* 2^64: what is beyond can only be meant roughly */

/* ---- the argument ---- */

static int json_to_value(const cJSON *item, mu_error *error, mu_value **ret_value);

static int keep_made(mu_value *value, mu_error *error, mu_value **ret_value)
{
    *ret_value = value;
    return value == NULL ? mu_error_set(error, -MU_ENOMEM, "out of memory") : 0;
}

static int json_to_number(double number, mu_error *error, mu_value **ret_value)
{
    if (number != floor(number) || fabs(number) >= INT_END)
        return keep_made(mu_value_float(number), error, ret_value);
    if (fabs(number) >= WHOLE_MAX)
        return mu_error_set(error, -MU_EINVALID,
                            "the argument has a whole number that JSON does not hold "
                            "exactly: %.0f",
                            number);
    return keep_made(mu_value_int((int64_t)number), error, ret_value);
}

static int json_to_items(const cJSON *list, bool is_map, mu_error *error,
                         mu_value **ret_value)
{
    int rv = keep_made(is_map ? mu_value_map() : mu_value_list(), error, ret_value);
    const cJSON *item = list->child;

    for (; rv == 0 && item != NULL; item = item->next) {
        mu_value *value = NULL;

        rv = json_to_value(item, error, &value);
        if (rv != 0)
            break;
        rv = is_map ? mu_value_set(*ret_value, item->string, value)
                    : mu_value_append(*ret_value, value);
        if (rv != 0)
            (void)mu_error_set(error, rv, "the argument cannot be read: %s",
                               mu_strerror(rv));
    }
    if (rv == 0)
        return 0;
    mu_value_free(*ret_value);
    *ret_value = NULL;
    return rv;
}

/* cJSON has bounded the depth. */
static int json_to_value(const cJSON *item, mu_error *error, mu_value **ret_value)
{
    if (cJSON_IsNumber(item))
        return json_to_number(item->valuedouble, error, ret_value);
    if (cJSON_IsString(item))
        return keep_made(mu_value_string(item->valuestring), error, ret_value);
    if (cJSON_IsBool(item))
        return keep_made(mu_value_bool(cJSON_IsTrue(item)), error, ret_value);
    if (cJSON_IsNull(item))
        return keep_made(mu_value_nil(), error, ret_value);
    return json_to_items(item, cJSON_IsObject(item), error, ret_value);
}

static int read_json_argument(const char *text, mu_error *error, mu_value **ret_args)
{
    cJSON *item = cJSON_ParseWithOpts(text, NULL, true);
    int rv;

    if (item == NULL)
        return mu_error_set(error, -MU_EINVALID, "the argument is no JSON: %.200s", text);
    rv = json_to_value(item, error, ret_args);
    cJSON_Delete(item);
    return rv;
}

/* ---- the call ---- */

/* Who has said what, and whether the method ran. */
static void word_call_error(const char *name, const char *method, mu_error *error)
{
    static const char *const runs[] = {
        [MU_RAN_UNKNOWN] = "",
        [MU_RAN_NO] = " (it did not run)",
        [MU_RAN_MAYBE] = " (it may have run)",
        [MU_RAN_YES] = " (it ran)",
    };
    const mu_error why = *error;
    const char *ran =
        why.ran >= MU_RAN_UNKNOWN && why.ran <= MU_RAN_YES ? runs[why.ran] : "";

    (void)mu_error_set(error, why.code, "%.64s of the actor \"%.64s\"%s%s: %s%s", method,
                       name, why.task[0] == '\0' ? "" : " on ", why.task, why.message,
                       ran);
}

static int call_named_actor(struct cmd_client *client, const mu_address *to,
                            const mu_value *args, mu_error *error)
{
    const char *method = client->options->operands[1];
    mu_remote_value *future = NULL;
    mu_value *answer = NULL;
    int rv = mu_actor_request(client->node, to, method, args, cmd_timeout_ms(client),
                              error, &future);

    if (rv == -MU_EINVALID)
        return CMD_USAGE;
    if (rv == 0)
        rv = mu_remote_value_fetch(future, -1, error, &answer);
    mu_remote_value_free(future);
    if (rv != 0) {
        word_call_error(to->name, method, error);
        return cmd_exit_code(rv);
    }
    rv = cmd_json_line(cmd_json_value(answer));
    mu_value_free(answer);
    return rv == 0 ? CMD_FINE : CMD_FAILED;
}

int cmd_actors_call(struct cmd_client *client, mu_error *error)
{
    const char *const *operands = client->options->operands;
    mu_value *args = NULL;
    mu_address to;
    int code;

    if (mu_actor_find(client->node, operands[0], &to) != 0) {
        (void)mu_error_set(error, -MU_EINVALID, "\"%.200s\" is no name of an actor",
                           operands[0]);
        return CMD_USAGE;
    }
    if (operands[2] != NULL && read_json_argument(operands[2], error, &args) != 0)
        return CMD_USAGE;
    code = call_named_actor(client, &to, args, error);
    mu_value_free(args);
    return code;
}
