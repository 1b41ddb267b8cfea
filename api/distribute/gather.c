/* The leading task of independent ones gathers the result of each call. */
#include "api/distribute/independent.h"

#include "node/node.h"

#include "muster/coordination.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { LOOK_MS = 500 }; /* between two looks at a task whose result is awaited */

struct awaited {
    char name[MU_CLUSTER_TASK_BYTES];
    char key[KEY_BYTES];
    bool evaluates;
    uint64_t away_ns; /* since when it is away; 0: it is not */
};

/* Whether a task is connected. When it has failed and no other process of it will come,
 * its error; else ret_error is not changed. */
static bool is_task_connected(mu_node *node, const char *task, mu_error *ret_error)
{
    mu_value *states = NULL;
    const mu_value *map;
    const char *state = "";
    int reported = 0;
    size_t size;
    bool connected;

    if (mu_tasks_states(node, task, MU__SERVICE_MS, NULL, &states) != 0)
        return false;
    map = mu_value_at(states, 0);
    (void)mu_value_get_string(mu_value_find(map, "state"), &state, &size);
    (void)mu_value_get_bool(mu_value_find(map, "reported"), &reported);
    connected = strcmp(state, "connected") == 0 || strcmp(state, "suspect") == 0;
    if (reported)
        mu__result_error(mu_value_find(map, "error"), ret_error);
    mu_value_free(states);
    return connected;
}

static int refuse_to_wait(const struct mu__distribution *run,
                          const struct awaited *awaited, int code, const char *why,
                          mu_error *ret_error)
{
    (void)mu_error_set(ret_error, code, "no result of %s: %s for %" PRId64 " ms",
                       awaited->name, why, run->options.end_timeout_ms);
    (void)snprintf(ret_error->task, sizeof ret_error->task, "%s", awaited->name);
    return code;
}

/* Whether to go on waiting: 0, or the error. A task that is connected is waited for
 * without end, unless the run has failed or it is the evaluator, which is not needed any
 * more: then from *hurry_ns on for end_timeout_ms. */
static int check_awaited_task(struct mu__distribution *run, struct awaited *awaited,
                              uint64_t *hurry_ns, mu_error *ret_error)
{
    const uint64_t limit_ns = (uint64_t)run->options.end_timeout_ms * MS_NS;
    const uint64_t now_ns = uv_hrtime();
    mu_error failure = {0};

    if (is_task_connected(run->node, awaited->name, &failure))
        awaited->away_ns = 0;
    else if (awaited->away_ns == 0)
        awaited->away_ns = now_ns;
    if (failure.code != 0) {
        *ret_error = failure;
        return failure.code;
    }
    if (*hurry_ns == 0 && (awaited->evaluates || atomic_load(&run->over)))
        *hurry_ns = now_ns;
    if (run->options.end_timeout_ms < 0)
        return 0;
    if (awaited->away_ns != 0 && now_ns - awaited->away_ns >= limit_ns)
        return refuse_to_wait(run, awaited, -MU_EUNAVAILABLE, "it was away", ret_error);
    if (*hurry_ns != 0 && now_ns - *hurry_ns >= limit_ns)
        return refuse_to_wait(run, awaited, -MU_EDEADLINE, "it did not come to its end",
                              ret_error);
    return 0;
}

static int await_result(struct mu__distribution *run, struct awaited *awaited,
                        uint64_t *hurry_ns, mu_error *ret_error, mu_value **ret_result)
{
    for (;;) {
        mu_kv_item item;
        int rv = mu_kv_get(run->node, awaited->key, LOOK_MS, ret_error, &item);

        if (rv == 0) {
            rv = mu__result_unpack(item.value, item.size, ret_error, ret_result);
            mu_kv_item_clear(&item);
            return rv;
        }
        if (rv == -MU_EDEADLINE)
            rv = check_awaited_task(run, awaited, hurry_ns, ret_error);
        if (rv != 0)
            return rv;
    }
}

/* The result of one task, whose error fails the run. */
static void gather_result(struct mu__distribution *run, struct awaited *awaited,
                          uint64_t *hurry_ns)
{
    mu_value *result = NULL;
    mu_error error = {0};

    if (await_result(run, awaited, hurry_ns, &error, &result) == 0)
        mu__result_error(result, &error);
    else
        result = mu__result_make(error.code, NULL, &error);
    mu__result_keep(run, awaited->name, result);
    if (error.code != 0)
        mu__distribution_failed(run, &error);
}

static bool is_result_awaited(const struct mu__distribution *run, const char *type,
                              int index, bool evaluates)
{
    if (strcmp(type, "evaluator") == 0)
        return evaluates;
    if (evaluates || run->plan.barrier != MU__BARRIER_SERVICE)
        return false;
    return (strcmp(type, "chief") == 0 || strcmp(type, "worker") == 0) &&
           (strcmp(type, run->spec.task_type) != 0 || index != run->spec.task_index);
}

static void gather_kind(struct mu__distribution *run, bool evaluates, uint64_t *hurry_ns)
{
    const char *type;
    const char *address;
    int index;

    for (size_t i = 0;
         mu_cluster_task_at(run->spec.cluster, i, &type, &index, &address) == 0; i++) {
        struct awaited awaited = {.evaluates = evaluates};
        char what[KEY_BYTES / 2];

        if (!is_result_awaited(run, type, index, evaluates))
            continue;
        (void)snprintf(awaited.name, sizeof awaited.name, "/job:%s/task:%d", type, index);
        (void)snprintf(what, sizeof what, "result%s", awaited.name);
        mu__tasks_key(run->news, what, awaited.key);
        gather_result(run, &awaited, hurry_ns);
    }
}

int mu__tasks_gather(struct mu__distribution *run, mu_error *ret_error)
{
    uint64_t hurry_ns = 0;
    char key[KEY_BYTES];

    gather_kind(run, false, &hurry_ns);
    mu__tasks_key(run->news, "trained", key);
    (void)mu_kv_put(run->node, key, "", 0, MU_KV_OVERWRITE, 0, MU__SERVICE_MS, NULL,
                    NULL);
    gather_kind(run, true, &hurry_ns);
    (void)mu_kv_delete(run->node, run->news->prefix, MU__SERVICE_MS, NULL, NULL);
    return mu__distribution_error(run, ret_error);
}
