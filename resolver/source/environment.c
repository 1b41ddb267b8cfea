/* The resolver environment: variables by which any launcher or script can list all
 * hosts, or give the address of process 0 alone. */
#include "resolver/source/ranks.h"
#include "resolver/spec/address.h"
#include "runtime/base/text.h"
#include "runtime/document/refuse.h"

#include <muster/cluster.h>

#include <stdio.h>
#include <string.h>

enum { JOBS, PORT, BIND_ADDRESS, RPC_LAYER };

static const struct mu__setting_spec settings_of[] = {
    MU__SETTING(JOBS, "jobs", "MUSTER_JOBS", NULL,
                "what the processes are, by number: \"chief=1,ps=2,worker=*\"; without "
                "it all are workers where the hosts are listed, else the chief and "
                "workers"),
    MU__SETTING(PORT, "port", "MUSTER_PORT_BASE", "8888",
                "port of a process whose host has none; the next processes of the same "
                "host follow"),
    MU__SETTING(BIND_ADDRESS, "bind_address", "MUSTER_BIND_ADDRESS", NULL,
                "where this process listens, HOST:PORT"),
    MU__SETTING(RPC_LAYER, "rpc_layer", "MUSTER_RPC_LAYER", "grpc",
                "in front of the master"),
    {.name = NULL},
};

static const struct mu__rank_settings rank_settings = {JOBS, PORT, RPC_LAYER};

/* Sets of variables with one meaning: muster's, JAX's, torchrun's. */
static const struct family {
    const char *address;
    const char *port; /* where the address has none */
    const char *count;
    const char *id;
    const char *bind; /* of process 0; NULL: there is no such variable */
    const char *devices;
    const char *partitions[3]; /* the first that is set; the second is an older name */
} families[] = {
    {"MUSTER_COORDINATOR_ADDRESS",
     "MUSTER_COORDINATOR_PORT",
     "MUSTER_NUM_PROCESSES",
     "MUSTER_PROCESS_ID",
     "MUSTER_COORDINATOR_BIND_ADDRESS",
     "MUSTER_LOCAL_DEVICE_IDS",
     {"MUSTER_PARTITION_INDEX"}},
    {"JAX_COORDINATOR_ADDRESS",
     "JAX_COORDINATOR_PORT",
     "JAX_NUM_PROCESSES",
     "JAX_PROCESS_ID",
     "JAX_COORDINATOR_BIND_ADDRESS",
     "JAX_LOCAL_DEVICE_IDS",
     {"JAX_PARTITION_INDEX", "JAX_SLICE_INDEX"}},
    {"MASTER_ADDR", "MASTER_PORT", "WORLD_SIZE", "RANK", NULL, NULL, {NULL}},
};

enum { OURS, FAMILIES = sizeof families / sizeof families[0] };

static bool is_variable_set(struct mu__requests *requests, const char *variable)
{
    return mu__request_variable(requests, variable) != NULL;
}

/* Whether a set of variables is used. One of muster's is enough; of the others the
 * address and the number of the process are needed, since scripts often set an address
 * alone, and leave the rest to Slurm. */
static bool has_variable_family(struct mu__requests *requests, unsigned number)
{
    const struct family *family = &families[number];

    if (number == OURS)
        return is_variable_set(requests, family->address) ||
               is_variable_set(requests, family->count) ||
               is_variable_set(requests, family->id);
    return is_variable_set(requests, family->address) &&
           is_variable_set(requests, family->id);
}

static int nothing_is_set(mu_error *ret_error)
{
    return mu_error_set(
        ret_error, -MU_ENOTFOUND,
        "none of these is set: MUSTER_HOSTS, MUSTER_COORDINATOR_ADDRESS, "
        "JAX_COORDINATOR_ADDRESS with JAX_PROCESS_ID, MASTER_ADDR with RANK");
}

static int detect_environment(const struct mu__pass *pass, mu_error *ret_why)
{
    if (is_variable_set(pass->requests, "MUSTER_HOSTS"))
        return 1;
    for (unsigned i = 0; i < FAMILIES; i++)
        if (has_variable_family(pass->requests, i))
            return 1;
    (void)nothing_is_set(ret_why);
    return 0;
}

/* ---- All hosts are listed ---- */

static int check_count(struct mu__requests *requests, size_t hosts, mu_error *ret_error)
{
    const char *variable = families[OURS].count;
    unsigned count = 0;
    int rv;

    if (!is_variable_set(requests, variable))
        return 0;
    rv = mu__rank_number(requests, variable, "", 1, MU_CLUSTER_TASKS_MAX, ret_error,
                         &count);
    if (rv != 0 || count == hosts)
        return rv;
    return mu_error_set(ret_error, -MU_EINVALID,
                        "MUSTER_HOSTS: it has %zu hosts, one for each process, but %s is "
                        "%u",
                        hosts, variable, count);
}

static int add_environment_hosts(const struct mu__pass *pass,
                                 const struct mu__host_list *hosts, mu_error *ret_error,
                                 mu_resolution *resolution)
{
    const char *rank = is_variable_set(pass->requests, "MUSTER_RANK") ? "MUSTER_RANK"
                                                                      : families[OURS].id;
    struct mu__layout layout = {0};
    struct mu__ranks ranks = {
        .source = "MUSTER_HOSTS", .hosts = hosts, .layout = &layout};
    int rv = check_count(pass->requests, hosts->count, ret_error);

    if (rv == 0 && !is_variable_set(pass->requests, rank))
        rv = mu_error_set(ret_error, -MU_ENOTFOUND,
                          "MUSTER_RANK is not set: the place of this process in "
                          "MUSTER_HOSTS, from 0");
    if (rv == 0)
        rv = mu__rank_own(pass->requests, rank, "", (unsigned)hosts->count,
                          "MUSTER_HOSTS", ret_error, &ranks.rank);
    if (rv == 0)
        rv = mu__layout_listed(hosts, hosts, "MUSTER_HOSTS", ret_error, &layout);
    if (rv == 0)
        rv = mu__ranks_resolve(pass, &rank_settings, &ranks, 0,
                               mu__setting(pass, BIND_ADDRESS), ret_error, resolution);
    mu__layout_done(&layout);
    return rv;
}

static int resolve_hosts(const struct mu__pass *pass, const char *text,
                         mu_error *ret_error, mu_resolution *resolution)
{
    struct mu__host_list hosts = {0};
    int rv = mu__host_list_parse(text, strlen(text), "MUSTER_HOSTS", ret_error, &hosts);

    if (rv == 0 && hosts.count == 0)
        rv = mu_error_set(ret_error, -MU_EINVALID,
                          "MUSTER_HOSTS: expected a host at least");
    if (rv == 0)
        rv = add_environment_hosts(pass, &hosts, ret_error, resolution);
    mu__host_list_done(&hosts);
    return rv;
}

/* ---- Process 0's address is known ---- */

/* "host:port"; the port may be in a variable of its own. */
static int find_coordinator_address(struct mu__requests *requests,
                                    const struct family *family, mu_error *ret_error,
                                    char *out, size_t size)
{
    const char *address = mu__request_variable(requests, family->address);
    const char *last;
    unsigned port;
    bool is_v6;
    int rv;

    if (address == NULL)
        return mu_error_set(ret_error, -MU_ENOTFOUND,
                            "%s is not set: where process 0 is, HOST:PORT",
                            family->address);
    last = strrchr(address, ':');
    is_v6 = last != NULL && strchr(address, ':') != last && address[0] != '[';
    if (last != NULL && !is_v6 && strchr(last, ']') == NULL) {
        (void)snprintf(out, size, "%s", address);
        return 0;
    }
    rv = mu__rank_number(requests, family->port, ", and the address has no port", 1,
                         65535, ret_error, &port);
    if (rv == 0)
        (void)mu__address_join(address, port, out, size);
    return rv;
}

/* Numbers with commas between, "all" for those that are visible anyway. */
static int take_device_ids(struct mu__requests *requests, const char *variable,
                           mu_error *ret_error, mu_resolution *resolution)
{
    const char *text = variable == NULL ? NULL : mu__request_variable(requests, variable);

    if (text == NULL || strcmp(text, "all") == 0)
        return 0;
    if (strlen(text) < sizeof resolution->visible_devices &&
        text[strspn(text, "0123456789,")] == '\0') {
        memcpy(resolution->visible_devices, text, strlen(text) + 1);
        return 0;
    }
    return mu__refuse(ret_error, text, strlen(text),
                      "%s: expected numbers with commas between, or \"all\"", variable);
}

static int take_partition(struct mu__requests *requests, const struct family *family,
                          mu_error *ret_error, mu_resolution *resolution)
{
    const char *const *variable = family->partitions;
    unsigned number = 0;
    int rv;

    while (*variable != NULL && !is_variable_set(requests, *variable))
        variable++;
    if (*variable == NULL)
        return 0;
    rv = mu__rank_number(requests, *variable, "", 0, MU_CLUSTER_TASKS_MAX - 1, ret_error,
                         &number);
    if (rv == 0)
        resolution->partition = (int)number;
    return rv;
}

static int join_coordinator(const struct mu__pass *pass, const struct family *family,
                            unsigned count, unsigned id, mu_error *ret_error,
                            mu_resolution *resolution)
{
    const char *bind = mu__setting(pass, BIND_ADDRESS);
    char address[MU_CLUSTER_ADDRESS_BYTES_MAX + 64];
    int rv = find_coordinator_address(pass->requests, family, ret_error, address,
                                      sizeof address);

    if (rv != 0)
        return rv;
    if (bind == NULL && id == 0 && family->bind != NULL)
        bind = mu__request_variable(pass->requests, family->bind);
    return mu__ranks_meet(pass, &rank_settings, family->address, address, count, id, bind,
                          ret_error, resolution);
}

static int resolve_family(const struct mu__pass *pass, const struct family *family,
                          mu_error *ret_error, mu_resolution *resolution)
{
    unsigned count = 0;
    unsigned id = 0;
    int rv =
        mu__rank_number(pass->requests, family->count, ": how many processes there are",
                        1, MU_CLUSTER_TASKS_MAX, ret_error, &count);

    if (rv == 0)
        rv = mu__rank_own(pass->requests, family->id, ": which process this is, from 0",
                          count, family->count, ret_error, &id);
    if (rv == 0)
        rv = join_coordinator(pass, family, count, id, ret_error, resolution);
    if (rv == 0)
        rv = take_device_ids(pass->requests, family->devices, ret_error, resolution);
    if (rv == 0)
        rv = take_partition(pass->requests, family, ret_error, resolution);
    return rv;
}

static void explain_proxies(struct mu__requests *requests)
{
    static const char *const names[] = {"http_proxy",  "HTTP_PROXY", "https_proxy",
                                        "HTTPS_PROXY", "grpc_proxy", "all_proxy",
                                        "ALL_PROXY"};

    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (is_variable_set(requests, names[i]))
            mu__requests_explain(requests,
                                 "%s is set: tasks connect to each other directly; if "
                                 "only the proxy gets through, they do not reach each "
                                 "other",
                                 names[i]);
}

static int resolve_environment(const struct mu__pass *pass, mu_error *ret_error,
                               mu_resolution *ret_resolution)
{
    const char *hosts = mu__request_variable(pass->requests, "MUSTER_HOSTS");
    unsigned number = OURS;

    explain_proxies(pass->requests);
    for (unsigned i = FAMILIES; i-- > 0;)
        number = is_variable_set(pass->requests, families[i].address) ? i : number;
    for (unsigned i = FAMILIES; i-- > 0;)
        number = has_variable_family(pass->requests, i) ? i : number;
    if (hosts != NULL)
        return resolve_hosts(pass, hosts, ret_error, ret_resolution);
    if (number == OURS && !has_variable_family(pass->requests, OURS))
        return nothing_is_set(ret_error);
    return resolve_family(pass, &families[number], ret_error, ret_resolution);
}

const struct mu__resolver_kind mu__resolver_environment = {
    .name = "environment",
    .summary = "MUSTER_HOSTS, or the address of process 0 as JAX and torchrun have it",
    .settings = settings_of,
    .detect = detect_environment,
    .resolve = resolve_environment,
};
