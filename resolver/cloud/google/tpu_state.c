#include "resolver/cloud/google/tpu.h"

#include "resolver/spec/address.h"
#include "runtime/base/text.h"
#include "runtime/document/refuse.h"

#include <stdio.h>
#include <string.h>

/* Seconds since 1970 by this machine's clock, for the age of symptoms. */
static int64_t clock_s(struct mu__requests *requests)
{
    const struct mu__answer *answer =
        mu__requests_get(requests, &(struct mu__request){.kind = MU__REQUEST_CLOCK});
    int64_t now = 0;

    for (const char *at = answer->code == 0 ? answer->data : ""; *at >= '0' && *at <= '9';
         at++)
        now = now * 10 + (*at - '0');
    return now;
}

static void copy_state_text(char *out, size_t size, const char *text)
{
    (void)snprintf(out, size, "%.*s", (int)size - 1, text);
}

/* ---- Describing ---- */

static int describe_node(const struct mu__pass *pass, struct mu__tpu_choice *choice,
                         const struct mu__tpu_entry *entry, mu_error *ret_error,
                         mu_tpu_state *ret_state)
{
    struct mu__tpu_endpoints endpoints = {0};
    struct mu__tpu_location location;
    struct mu__tpu_node node;
    mu_tpu_state state = {0};
    mu_error inner;
    int rv = mu__tpu_send(pass, choice, entry, ret_error, &location, &node);

    if (rv != 0)
        return rv;
    copy_state_text(state.name, sizeof state.name, location.name);
    copy_state_text(state.project, sizeof state.project, location.project);
    copy_state_text(state.zone, sizeof state.zone, location.zone);
    copy_state_text(state.state, sizeof state.state, node.state);
    copy_state_text(state.health, sizeof state.health, node.health);
    copy_state_text(state.health_description, sizeof state.health_description,
                    node.health_description);
    copy_state_text(state.accelerator_type, sizeof state.accelerator_type,
                    node.accelerator_type);
    copy_state_text(state.runtime_version, sizeof state.runtime_version,
                    node.runtime_version);
    copy_state_text(state.topology, sizeof state.topology, node.topology);
    state.recoverable =
        mu__tpu_node_recoverable(&node, clock_s(pass->requests), state.why);

    /* A node that is being created has none yet. */
    rv = mu__tpu_node_endpoints(&node, location.what, 0, &inner, &endpoints);
    state.endpoints = (int)endpoints.count;
    mu__tpu_endpoints_done(&endpoints);
    if (rv != 0 && rv != -MU_EUNAVAILABLE)
        return mu_error_set(ret_error, rv, "%s", inner.message);
    *ret_state = state;
    return 0;
}

static int version_url(const struct mu__pass *pass,
                       const struct mu__tpu_endpoint *endpoint, const char *rest,
                       mu_error *ret_error, char *out, size_t size)
{
    char host[MU__GOOGLE_HOST_BYTES + 16];
    long port = MU__TPU_VERSION_PORT;
    int rv = mu__setting_number(pass, MU__TPU_SET_VERSION_PORT, ret_error, &port);

    (void)mu__address_join(endpoint->host, (unsigned)port, host, sizeof host);
    if (rv == 0)
        (void)snprintf(out, size, "http://%s/requestversion%s", host, rest);
    return rv;
}

/* Without a name only the hosts can be asked: the first one for its version, if it
 * answers. */
static int describe_addresses(const struct mu__pass *pass,
                              const struct mu__tpu_endpoints *endpoints,
                              mu_error *ret_error, mu_tpu_state *ret_state)
{
    const struct mu__answer *answer;
    const char *version = NULL;
    const cJSON *root;
    mu_error inner;
    char url[400];
    int rv = version_url(pass, &endpoints->items[0], "", ret_error, url, sizeof url);

    if (rv != 0)
        return rv;
    answer = mu__requests_get(
        pass->requests,
        &(struct mu__request){.kind = MU__REQUEST_HTTP, .name = url, .tries = 1});
    *ret_state = (mu_tpu_state){.recoverable = 1, .endpoints = (int)endpoints->count};
    copy_state_text(ret_state->name, sizeof ret_state->name, endpoints->items[0].host);
    if (answer->code == 0 && answer->status == 200 &&
        mu__google_json(answer, url, &inner, &root) == 0 &&
        mu__google_text(root, "currentVersion", url, &inner, &version) == 0)
        copy_state_text(ret_state->runtime_version, sizeof ret_state->runtime_version,
                        version == NULL ? "" : version);
    return 0;
}

/* The TPUs of a handle: names of nodes, and addresses. */
struct meant {
    struct mu__tpu_choice choice;
    struct mu__tpu_endpoints addresses;
};

static int choose_described_tpus(const struct mu__pass *pass, mu_error *ret_error,
                                 struct mu__tpu_choice *choice)
{
    int rv = mu__tpu_choose(pass, false, ret_error, choice);

    if (rv != 0)
        return rv;
    if (choice->source == MU__TPU_NONCLOUD || choice->source == MU__TPU_METADATA)
        return mu_error_set(ret_error, -MU_EPRECONDITION,
                            "setting tpu: expected names or addresses of Cloud TPUs: "
                            "nobody can be asked about %s%.100s",
                            choice->source == MU__TPU_METADATA ? "the one that this "
                                                                 "machine belongs to"
                                                               : "",
                            choice->text == NULL ? "" : choice->text);
    return mu__tpu_expand(pass, ret_error, choice);
}

static int describe_list(const struct mu__pass *pass, struct meant *meant,
                         mu_error *ret_error, mu_tpu_state *ret_states, size_t room,
                         size_t *ret_count)
{
    bool all_addresses = meant->choice.source == MU__TPU_HOSTS;
    struct mu__tpu_entry entry = {0};
    const char *at = meant->choice.text;
    size_t count = 0;
    int rv = 0;

    while (rv == 0 && mu__tpu_next(&at, &entry)) {
        if (entry.is_address || all_addresses || entry.size == 0) {
            rv = mu__tpu_endpoint_add(&meant->addresses, entry.text, entry.size,
                                      MU__TPU_PORT, meant->choice.origin, entry.number,
                                      ret_error);
            continue;
        }
        if (count == room)
            return mu_error_set(ret_error, -MU_EEXHAUSTED,
                                "%s: there are more TPUs than %zu", meant->choice.origin,
                                room);
        rv = describe_node(pass, &meant->choice, &entry, ret_error, &ret_states[count]);
        count++;
    }
    if (rv == 0 && meant->addresses.count > 0 && count == room)
        return mu_error_set(ret_error, -MU_EEXHAUSTED, "%s: there are more TPUs than %zu",
                            meant->choice.origin, room);
    if (rv == 0 && meant->addresses.count > 0) {
        rv = describe_addresses(pass, &meant->addresses, ret_error, &ret_states[count++]);
    }
    if (rv == 0)
        *ret_count = count;
    return rv;
}

int mu__tpu_describe(const struct mu__pass *pass, mu_error *ret_error,
                     mu_tpu_state *ret_states, size_t room, size_t *ret_count)
{
    struct meant meant = {0};
    int rv = choose_described_tpus(pass, ret_error, &meant.choice);

    if (rv == 0)
        rv = describe_list(pass, &meant, ret_error, ret_states, room, ret_count);
    mu__tpu_endpoints_done(&meant.addresses);
    mu__tpu_choice_done(&meant.choice);
    return rv;
}

int mu__tpu_check_health(const mu_tpu_state *states, size_t count, mu_error *ret_error)
{
    int rv = 0;

    for (size_t i = 0; i < count; i++) {
        const mu_tpu_state *state = &states[i];
        bool never = strcmp(state->state, "TERMINATED") == 0 ||
                     strcmp(state->state, "PREEMPTED") == 0 || state->project[0] == '\0';

        if (strcmp(state->health, "HEALTHY") == 0 && !never)
            continue;
        if (state->project[0] == '\0')
            return mu_error_set(ret_error, -MU_EPRECONDITION,
                                "TPU %s: it is only known by its address: expected a "
                                "name, since the API tells the health",
                                state->name);
        if (never || rv == 0)
            rv = mu_error_set(ret_error, never ? -MU_EPRECONDITION : -MU_EUNAVAILABLE,
                              "TPU \"%s\" (project %s, zone %s) is not healthy: state "
                              "\"%s\", health \"%s\"%s%.160s",
                              state->name, state->project, state->zone, state->state,
                              state->health,
                              state->health_description[0] == '\0' ? "" : ": ",
                              state->health_description);
        if (never)
            return rv;
    }
    return rv;
}

/* ---- Versions ---- */

static int request_from(const struct mu__pass *pass,
                        const struct mu__tpu_endpoint *endpoint, const char *rest,
                        const char *version, mu_error *ret_error)
{
    const struct mu__answer *answer;
    char what[400];
    char url[700];
    int rv = version_url(pass, endpoint, rest, ret_error, url, sizeof url);

    if (rv != 0)
        return rv;
    answer =
        mu__requests_get(pass->requests, &(struct mu__request){.kind = MU__REQUEST_HTTP,
                                                               .name = url,
                                                               .method = "POST",
                                                               .body = ""});
    (void)snprintf(what, sizeof what, "TPU host %s", endpoint->host);
    if (answer->code == 0 && answer->status == 404)
        return mu_error_set(ret_error, -MU_ENOTFOUND,
                            "%s: there is no version \"%s\" for it", what, version);
    return mu__answer_check(answer, what, ret_error);
}

/* The endpoints of all TPUs of the handle; nodes have to be ready. */
static int find_version_hosts(const struct mu__pass *pass, mu_error *ret_error,
                              struct mu__tpu_endpoints *endpoints)
{
    struct mu__tpu_choice choice = {0};
    struct mu__tpu_entry entry = {0};
    struct mu__tpu_location location;
    struct mu__tpu_node node;
    const char *at;
    int rv = choose_described_tpus(pass, ret_error, &choice);

    at = rv == 0 ? choice.text : NULL;
    while (rv == 0 && mu__tpu_next(&at, &entry)) {
        if (entry.is_address || choice.source == MU__TPU_HOSTS || entry.size == 0) {
            rv = mu__tpu_endpoint_add(endpoints, entry.text, entry.size, MU__TPU_PORT,
                                      choice.origin, entry.number, ret_error);
            continue;
        }
        rv = mu__tpu_send(pass, &choice, &entry, ret_error, &location, &node);
        if (rv == 0)
            rv = mu__tpu_node_check(&node, location.what, ret_error);
        if (rv == 0)
            rv = mu__tpu_node_endpoints(&node, location.what, 0, ret_error, endpoints);
    }
    mu__tpu_choice_done(&choice);
    return rv;
}

static int check_tpu_version(const char *version, const char *restart_type,
                             mu_error *ret_error)
{
    int rv = mu__google_name_check("the version", version, ret_error);

    if (rv != 0 || strcmp(restart_type, "always") == 0 ||
        strcmp(restart_type, "ifNeeded") == 0)
        return rv;
    return mu__refuse(ret_error, restart_type, strlen(restart_type),
                      "the type of restart: expected \"always\" or \"ifNeeded\"");
}

int mu__tpu_request_version(const struct mu__pass *pass, const char *version,
                            const char *restart_type, mu_error *ret_error)
{
    struct mu__tpu_endpoints endpoints = {0};
    char rest[256];
    int rv = check_tpu_version(version, restart_type, ret_error);

    if (rv == 0)
        rv = find_version_hosts(pass, ret_error, &endpoints);
    (void)snprintf(rest, sizeof rest, "/%.150s?restartType=%.20s", version, restart_type);
    for (size_t i = 0; i < endpoints.count && rv == 0; i++) {
        rv = request_from(pass, &endpoints.items[i], rest, version, ret_error);
    }
    mu__tpu_endpoints_done(&endpoints);
    return rv;
}
