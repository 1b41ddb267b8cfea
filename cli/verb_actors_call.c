/* `muster actors call`, `state` and `explain`: questions to an actor that has a name. */
#include "cli/output/print_json.h"
#include "cli/service_client.h"
#include "cli/verbs.h"

#include "muster/actor.h"

#include <inttypes.h>
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

/* Frees the future; `rv` is of its making. Returns the exit code. */
static int fetch_answer(const mu_address *to, const char *method, int rv,
                        mu_remote_value *future, mu_error *error, mu_value **ret_answer)
{
    if (rv == -MU_EINVALID)
        return CMD_USAGE;
    if (rv == 0)
        rv = mu_remote_value_fetch(future, -1, error, ret_answer);
    mu_remote_value_free(future);
    if (rv != 0)
        word_call_error(to->name, method, error);
    return cmd_exit_code(rv);
}

static int find_named_actor(struct cmd_client *client, mu_error *error,
                            mu_address *ret_to)
{
    const char *name = client->options->operands[0];

    if (mu_actor_find(client->node, name, ret_to) == 0)
        return CMD_FINE;
    (void)mu_error_set(error, -MU_EINVALID, "\"%.200s\" is no name of an actor", name);
    return CMD_USAGE;
}

static int print_answer(mu_value *answer)
{
    int rv = cmd_json_line(cmd_json_value(answer));

    mu_value_free(answer);
    return rv == 0 ? CMD_FINE : CMD_FAILED;
}

int cmd_actors_call(struct cmd_client *client, mu_error *error)
{
    const char *const *operands = client->options->operands;
    mu_remote_value *future = NULL;
    mu_value *answer = NULL;
    mu_value *args = NULL;
    mu_address to;
    int code = find_named_actor(client, error, &to);
    int rv;

    if (code != CMD_FINE)
        return code;
    if (operands[2] != NULL && read_json_argument(operands[2], error, &args) != 0)
        return CMD_USAGE;
    rv = mu_actor_request(client->node, &to, operands[1], args, cmd_timeout_ms(client),
                          error, &future);
    mu_value_free(args);
    code = fetch_answer(&to, operands[1], rv, future, error, &answer);
    return code == CMD_FINE ? print_answer(answer) : code;
}

/* ---- state ---- */

int cmd_actors_state(struct cmd_client *client, mu_error *error)
{
    mu_remote_value *future = NULL;
    mu_value *answer = NULL;
    mu_address to;
    int code = find_named_actor(client, error, &to);
    int rv;

    if (code != CMD_FINE)
        return code;
    rv =
        mu_actor_request_state(client->node, &to, cmd_timeout_ms(client), error, &future);
    code = fetch_answer(&to, "save", rv, future, error, &answer);
    return code == CMD_FINE ? print_answer(answer) : code;
}

/* ---- explain ---- */

enum { CHAIN_MAX = 16 }; /* actors that are looked at, each waiting for the next */

static void print_waiters(const mu_value *list, const char *words)
{
    for (size_t i = 0; i < mu_value_count(list); i++) {
        const mu_value *waiter = mu_value_at(list, i);
        const char *chain = cmd_map_text(waiter, "chain");

        (void)printf("  %s %s%s%s\n", cmd_map_text(waiter, "method"), words,
                     chain[0] == '\0' ? "" : ": ", chain);
    }
}

static void print_explanation(const mu_value *actor)
{
    const mu_value *calls = mu_value_find(actor, "waits_for");
    int64_t mailbox = cmd_map_number(actor, "mailbox");
    char text[32];

    (void)printf("%s (%s) on %s: %" PRId64 " message%s wait%s",
                 cmd_map_text(actor, "name")[0] == '\0' ? cmd_map_text(actor, "actor")
                                                        : cmd_map_text(actor, "name"),
                 cmd_map_text(actor, "type"), cmd_map_text(actor, "task"), mailbox,
                 mailbox == 1 ? "" : "s", mailbox == 1 ? "s" : "");
    if (mailbox > 0)
        (void)printf(", the oldest for %s",
                     cmd_duration(cmd_map_number(actor, "oldest_ms"), text, sizeof text));
    (void)printf("\n");
    print_waiters(mu_value_find(actor, "owes"), "is not answered yet");
    print_waiters(mu_value_find(actor, "queue"), "waits in the mailbox");
    for (size_t i = 0; i < mu_value_count(calls); i++) {
        const mu_value *call = mu_value_at(calls, i);

        (void)printf("  it waits for %s of %s for %s\n", cmd_map_text(call, "method"),
                     cmd_map_text(call, "to"),
                     cmd_duration(cmd_map_number(call, "for_ms"), text, sizeof text));
    }
}

/* The actor that the oldest call of one is to. False: it waits for nobody. */
static bool find_next(const mu_value *actor, mu_address *ret_next)
{
    const mu_value *call = mu_value_at(mu_value_find(actor, "waits_for"), 0);

    return call != NULL && mu_value_get_actor(mu_value_find(call, "to"), ret_next) == 0;
}

static bool was_looked_at(const mu_value *chain, const mu_address *actor)
{
    for (size_t i = 0; i < mu_value_count(chain); i++)
        if (actor->name[0] != '\0' &&
            strcmp(cmd_map_text(mu_value_at(chain, i), "name"), actor->name) == 0)
            return true;
    return false;
}

/* Whoever cannot be looked at ends the chain: only the first one has to be there. */
static int look_along(struct cmd_client *client, mu_address to, mu_value *chain,
                      mu_error *error)
{
    for (size_t i = 0; i < CHAIN_MAX; i++) {
        mu_remote_value *future = NULL;
        mu_value *actor = NULL;
        int rv = mu_actor_request_explain(client->node, &to, cmd_timeout_ms(client),
                                          error, &future);
        int code = fetch_answer(&to, "explain", rv, future, error, &actor);

        if (code != CMD_FINE)
            return i == 0 ? code : CMD_FINE;
        if (mu_value_append(chain, actor) != 0)
            return cmd_exit_code(mu_error_set(error, -MU_ENOMEM, "out of memory"));
        if (!find_next(actor, &to) || was_looked_at(chain, &to))
            break;
    }
    return CMD_FINE;
}

int cmd_actors_explain(struct cmd_client *client, mu_error *error)
{
    mu_value *chain = mu_value_list();
    mu_address to;
    int code = find_named_actor(client, error, &to);

    if (code == CMD_FINE)
        code = look_along(client, to, chain, error);
    if (code == CMD_FINE && cmd_is_json(client))
        code = cmd_json_print(cmd_json_value(chain)) == 0 ? CMD_FINE : CMD_FAILED;
    else
        for (size_t i = 0; code == CMD_FINE && i < mu_value_count(chain); i++)
            print_explanation(mu_value_at(chain, i));
    mu_value_free(chain);
    return code;
}
