/* The resolver tpu: the hosts of Cloud TPUs. */
#include "resolver/cloud/google/tpu.h"
#include "resolver/cloud/resolvers.h"
#include "resolver/engine/kind.h"
#include "resolver/spec/address.h"
#include "runtime/base/text.h"
#include "runtime/document/json.h"
#include "runtime/document/refuse.h"

#include <stdio.h>
#include <string.h>

/* One pass of the resolver. */
struct tpu_run {
    const struct mu__pass *pass;
    struct mu__tpu_choice choice;
    struct mu__tpu_endpoints endpoints;
    const char *accelerator_type; /* of all nodes; NULL: not known */
    const char *chip;             /* with `topology` in place of a type that is "" */
    const char *topology;
    size_t nodes;
    int own; /* index of this task's endpoint; -1: none */
};

static const char *get_tpu_setting(const struct tpu_run *found, unsigned number)
{
    return mu__setting(found->pass, number);
}

static int default_port(const struct tpu_run *found, unsigned initial,
                        mu_error *ret_error, unsigned *ret_port)
{
    long port = (long)initial;
    int rv = mu__setting_number(found->pass, MU__TPU_SET_PORT, ret_error, &port);

    if (rv == 0)
        *ret_port = (unsigned)port;
    return rv;
}

/* ---- Names and addresses ---- */

static void take_accelerator_type(struct tpu_run *found, const struct mu__tpu_node *node)
{
    if (found->nodes++ == 0) {
        found->accelerator_type = node->accelerator_type;
        found->chip = node->chip;
        found->topology = node->topology;
    } else if (found->accelerator_type != NULL &&
               (strcmp(found->accelerator_type, node->accelerator_type) != 0 ||
                strcmp(found->chip, node->chip) != 0 ||
                strcmp(found->topology, node->topology) != 0)) {
        found->accelerator_type = NULL;
    }
}

static int add_node(struct tpu_run *found, const struct mu__tpu_entry *entry,
                    unsigned port, mu_error *ret_error)
{
    struct mu__tpu_location location;
    struct mu__tpu_node node;
    int rv =
        mu__tpu_send(found->pass, &found->choice, entry, ret_error, &location, &node);

    if (rv != 0)
        return rv;
    rv = mu__tpu_node_check(&node, location.what, ret_error);
    if (rv != 0)
        return rv;
    if (strcmp(node.health, "") != 0 && strcmp(node.health, "HEALTHY") != 0)
        mu__requests_explain(found->pass->requests, "%s: health %.40s", location.what,
                             node.health);
    take_accelerator_type(found, &node);
    return mu__tpu_node_endpoints(&node, location.what, port, ret_error,
                                  &found->endpoints);
}

/* Find this machine's endpoint, by its own address: a TPU's name does not say. Where
 * the metadata have no address, as in some pods, this process is no task. */
static int find_own_endpoint(struct tpu_run *found, mu_error *ret_error)
{
    const char *coordinator = get_tpu_setting(found, MU__TPU_SET_COORDINATOR_NAME);
    const char *address = NULL;
    mu_error why;
    int rv;

    if (found->nodes == 0 || (coordinator != NULL && coordinator[0] != '\0') ||
        mu__tpu_skips_metadata(found->pass->requests))
        return 0;
    rv = mu__google_here(found->pass->requests, &why);
    if (rv == 1)
        rv =
            mu__google_metadata(found->pass->requests, "instance/network-interfaces/0/ip",
                                false, &why, &address);
    if (rv == -MU_ENOMEM)
        return mu_error_set(ret_error, rv, "out of memory");
    if (rv < 0)
        mu__requests_explain(found->pass->requests,
                             "which host this is, is not known: %s", why.message);
    for (size_t i = 0; address != NULL && i < found->endpoints.count; i++)
        if (strcmp(found->endpoints.items[i].host, address) == 0)
            found->own = (int)i;
    return 0;
}

static int add_entry(struct tpu_run *found, const struct mu__tpu_entry *entry,
                     unsigned port, mu_error *ret_error)
{
    if (entry->number >= MU__TPU_NODES_MAX && !entry->is_address)
        return mu_error_set(ret_error, -MU_EEXHAUSTED,
                            "%s: more than %d TPUs are too many", found->choice.origin,
                            MU__TPU_NODES_MAX);
    if (entry->size == 0)
        return mu_error_set(ret_error, -MU_EINVALID,
                            "%s[%zu]: expected a name or an address between commas, got "
                            "nothing",
                            found->choice.origin, entry->number);
    if (!entry->is_address)
        return add_node(found, entry, port, ret_error);
    return mu__tpu_endpoint_add(&found->endpoints, entry->text, entry->size,
                                port == 0 ? MU__TPU_PORT : port, found->choice.origin,
                                entry->number, ret_error);
}

/* The error of a node that never will be ready counts more than that of one that is not
 * ready yet. */
static int add_tpu_list(struct tpu_run *found, mu_error *ret_error)
{
    struct mu__tpu_entry entry = {0};
    const char *at = found->choice.text;
    unsigned port = 0;
    mu_error not_yet = {0};
    mu_error inner;
    int rv = default_port(found, 0, ret_error, &port);

    if (rv != 0)
        return rv;
    while (mu__tpu_next(&at, &entry)) {
        rv = add_entry(found, &entry, port, &inner);
        if (rv == -MU_EUNAVAILABLE && not_yet.code == 0)
            not_yet = inner;
        if (rv != 0 && rv != -MU_EUNAVAILABLE)
            return mu_error_set(ret_error, rv, "%s", inner.message);
    }
    if (not_yet.code != 0)
        return mu_error_set(ret_error, not_yet.code, "%s", not_yet.message);
    return find_own_endpoint(found, ret_error);
}

/* ---- The slice that this task is on ---- */

static int take_own(struct tpu_run *found, const char *source, const char *text,
                    mu_error *ret_error)
{
    int own = -1;

    if (mu__index_parse(text, &own) == 0 && (size_t)own < found->endpoints.count) {
        found->own = own;
        return 0;
    }
    return mu__refuse(ret_error, text, strlen(text),
                      "%s: expected a number below %zu, the number of hosts in %s",
                      source, found->endpoints.count, found->choice.origin);
}

/* A slice has variables and metadata of its own hosts alone: refuse several slices. */
static int check_single_slice(const char *slices, mu_error *ret_error)
{
    if (slices == NULL || slices[0] == '\0' || strcmp(slices, "1") == 0)
        return 0;
    return mu_error_set(ret_error, -MU_EPRECONDITION,
                        "MEGASCALE_NUM_SLICES: this TPU is one of several slices, and "
                        "only the hosts of its own are told: use the resolver "
                        "kubernetes_job, or set \"tpu\" to the names of all");
}

static int add_slice_hosts(struct tpu_run *found, mu_error *ret_error)
{
    const char *own = mu__request_variable(found->pass->requests, "TPU_WORKER_ID");
    struct mu__tpu_entry entry = {0};
    const char *at = found->choice.text;
    unsigned port = MU__TPU_HOST_PORT;
    int rv = check_single_slice(
        mu__request_variable(found->pass->requests, "MEGASCALE_NUM_SLICES"), ret_error);

    if (rv == 0)
        rv = default_port(found, MU__TPU_HOST_PORT, ret_error, &port);
    while (rv == 0 && mu__tpu_next(&at, &entry))
        rv = mu__tpu_endpoint_add(&found->endpoints, entry.text, entry.size, port,
                                  found->choice.origin, entry.number, ret_error);
    found->accelerator_type =
        mu__request_variable(found->pass->requests, "TPU_ACCELERATOR_TYPE");
    if (rv != 0)
        return rv;
    if (own == NULL)
        return mu_error_set(ret_error, -MU_EPRECONDITION,
                            "TPU_WORKER_ID is not set, but TPU_WORKER_HOSTNAMES is: "
                            "expected the number of this host");
    return take_own(found, "TPU_WORKER_ID", own, ret_error);
}

/* An entry of worker-network-endpoints: "unknown:unknown:10.0.0.2", or the address. */
static void last_field(struct mu__tpu_entry *entry)
{
    size_t fields = 0;
    size_t at = 0;

    for (size_t i = 0; i < entry->size; i++) {
        fields += entry->text[i] == ':';
        if (entry->text[i] == ':' && fields == 2)
            at = i + 1;
    }
    if (fields != 2)
        return;
    entry->text += at;
    entry->size -= at;
}

static int add_metadata_hosts(struct tpu_run *found, const char *hosts,
                              mu_error *ret_error)
{
    struct mu__tpu_entry entry = {0};
    const char *at = hosts;
    unsigned port = MU__TPU_HOST_PORT;
    int rv = default_port(found, MU__TPU_HOST_PORT, ret_error, &port);

    while (rv == 0 && mu__tpu_next(&at, &entry)) {
        struct mu__tpu_entry host = entry;

        last_field(&host);
        rv = mu__tpu_endpoint_add(&found->endpoints, host.text, host.size, port,
                                  "metadata worker-network-endpoints", host.number,
                                  ret_error);
    }
    return rv;
}

/* A line of tpu-env: "MEGASCALE_NUM_SLICES: '2'". */
static void env_value(const char *text, const char *key, char *out, size_t size)
{
    out[0] = '\0';
    while (text != NULL && *text != '\0') {
        const char *end = strchr(text, '\n');

        if (strncmp(text, key, strlen(key)) == 0 && text[strlen(key)] == ':') {
            text += strlen(key) + 1;
            text += strspn(text, " '\"");
            (void)snprintf(out, size, "%.*s", (int)strcspn(text, "'\"\r\n "), text);
            return;
        }
        text = end == NULL ? NULL : end + 1;
    }
}

/* Four entries of the metadata, of which the last two may be absent. */
static int add_metadata(struct tpu_run *found, mu_error *ret_error)
{
    static const char *const paths[] = {
        "instance/attributes/worker-network-endpoints",
        "instance/attributes/agent-worker-number",
        "instance/attributes/accelerator-type",
        "instance/attributes/tpu-env",
    };
    const char *texts[4] = {NULL, NULL, NULL, NULL};
    char slices[16];
    int rv;

    for (size_t i = 0; i < 4; i++) {
        rv = mu__google_metadata(found->pass->requests, paths[i], false, ret_error,
                                 &texts[i]);
        if (rv != 0 && !(rv == -MU_ENOTFOUND && i > 1))
            return rv;
    }
    env_value(texts[3], "MEGASCALE_NUM_SLICES", slices, sizeof slices);
    found->accelerator_type = texts[2];
    rv = check_single_slice(slices, ret_error);
    if (rv == 0)
        rv = add_metadata_hosts(found, texts[0], ret_error);
    return rv != 0 ? rv
                   : take_own(found, "metadata agent-worker-number", texts[1], ret_error);
}

/* ---- The coordinator ---- */

/* This machine's address in the metadata, else its host name. */
static int own_host(struct tpu_run *found, mu_error *ret_error, const char **ret_host)
{
    const struct mu__answer *name;
    mu_error why;
    int rv = mu__google_here(found->pass->requests, &why);

    if (rv == 1)
        rv =
            mu__google_metadata(found->pass->requests, "instance/network-interfaces/0/ip",
                                false, &why, ret_host);
    else if (rv == 0) {
        name = mu__requests_get(found->pass->requests,
                                &(struct mu__request){.kind = MU__REQUEST_HOST_NAME});
        rv = name->code;
        why = name->error;
        *ret_host = name->data;
    }
    if (rv != 0)
        return mu_error_set(ret_error, rv,
                            "resolver tpu: the coordinator's address is not known: set "
                            "\"coordinator_address\"; %s",
                            why.message);
    return rv;
}

static int add_coordinator(struct tpu_run *found, mu_error *ret_error,
                           mu_resolution *ret_resolution)
{
    const char *name = get_tpu_setting(found, MU__TPU_SET_COORDINATOR_NAME);
    const char *address = get_tpu_setting(found, MU__TPU_SET_COORDINATOR_ADDRESS);
    const char *host = NULL;
    long port = 0;
    int rv;

    if (name == NULL || name[0] == '\0')
        return 0;
    if (strcmp(name, get_tpu_setting(found, MU__TPU_SET_JOB_NAME)) == 0)
        return mu_error_set(ret_error, -MU_EINVALID,
                            "setting coordinator_name: \"%.40s\" is the job of the TPU's "
                            "hosts: expected another",
                            name);
    if (address != NULL && address[0] != '\0')
        rv = mu__resolution_add(ret_resolution, "setting coordinator_address", name, 0,
                                address, ret_error);
    else {
        rv = mu__setting_number(found->pass, MU__TPU_SET_COORDINATOR_PORT, ret_error,
                                &port);
        if (rv == 0)
            rv = own_host(found, ret_error, &host);
        if (rv == 0)
            rv = mu__resolution_add_host(ret_resolution, "setting coordinator_name", name,
                                         0, host, (unsigned)port, ret_error);
    }
    if (rv != 0 || found->own >= 0)
        return rv;
    MU__COPY_TEXT(ret_resolution->task_type, name);
    ret_resolution->task_index = 0;
    return 0;
}

/* ---- The resolution ---- */

/* A name outside of Google's cloud is the master as it is. */
static void fill_noncloud(const struct tpu_run *found, mu_resolution *ret_resolution)
{
    const char *tpu = found->choice.text;

    MU__COPY_TEXT(ret_resolution->environment, "google");
    ret_resolution->master_fixed = 1;
    if (strcmp(tpu, "local") != 0)
        MU__COPY_TEXT(ret_resolution->master, tpu);
}

static void fill_accelerators(const struct tpu_run *found, mu_resolution *ret_resolution)
{
    size_t nodes = found->nodes == 0 ? 1 : found->nodes;
    size_t tasks = found->endpoints.count / nodes;
    int devices = -1;

    MU__COPY_TEXT(ret_resolution->accelerator, "TPU");
    if (found->accelerator_type == NULL || tasks * nodes != found->endpoints.count)
        return;
    devices = mu__tpu_devices(found->accelerator_type, tasks);
    if (devices < 0 && found->chip != NULL)
        devices = mu__tpu_chip_devices(found->chip, found->topology, tasks);
    ret_resolution->accelerators = devices;
}

static int fill_job(const struct tpu_run *found, mu_error *ret_error,
                    mu_resolution *ret_resolution)
{
    const char *job = get_tpu_setting(found, MU__TPU_SET_JOB_NAME);
    int rv = 0;

    for (size_t i = 0; i < found->endpoints.count && rv == 0; i++) {
        const struct mu__tpu_endpoint *endpoint = &found->endpoints.items[i];

        rv = mu__resolution_add_host(ret_resolution, found->choice.origin, job, (int)i,
                                     endpoint->host, endpoint->port, ret_error);
    }
    return rv;
}

/* The first host is what a session connects to. */
static int fill_tpu_resolution(const struct tpu_run *found, mu_error *ret_error,
                               mu_resolution *ret_resolution)
{
    const struct mu__tpu_endpoint *first = &found->endpoints.items[0];
    char master[MU__GOOGLE_HOST_BYTES + 32];
    int rv = fill_job(found, ret_error, ret_resolution);

    if (rv != 0)
        return rv;
    MU__COPY_TEXT(ret_resolution->rpc_layer, "grpc");
    MU__COPY_TEXT(master, "grpc://");
    (void)mu__address_join(first->host, first->port, master + 7, sizeof master - 7);
    if (strlen(master) >= sizeof ret_resolution->master)
        return mu_error_set(ret_error, -MU_EINVALID,
                            "%s: the first host's name is too long",
                            found->choice.origin);
    memcpy(ret_resolution->master, master, strlen(master) + 1);
    if (found->own >= 0) {
        MU__COPY_TEXT(ret_resolution->task_type,
                      get_tpu_setting(found, MU__TPU_SET_JOB_NAME));
        ret_resolution->task_index = found->own;
    }
    fill_accelerators(found, ret_resolution);
    return 0;
}

static int resolve_cloud(struct tpu_run *found, mu_error *ret_error,
                         mu_resolution *ret_resolution)
{
    static int (*const adders[])(struct tpu_run *, mu_error *) = {
        [MU__TPU_LIST] = add_tpu_list,
        [MU__TPU_HOSTS] = add_slice_hosts,
        [MU__TPU_METADATA] = add_metadata,
    };
    int rv = adders[found->choice.source](found, ret_error);

    if (rv == 0)
        rv = fill_tpu_resolution(found, ret_error, ret_resolution);
    return rv != 0 ? rv : add_coordinator(found, ret_error, ret_resolution);
}

int mu__tpu_resolve(const struct mu__pass *pass, mu_error *ret_error,
                    mu_resolution *ret_resolution)
{
    struct tpu_run found = {.pass = pass, .own = -1};
    int rv = mu__tpu_choose(pass, false, ret_error, &found.choice);

    if (rv == 0)
        rv = mu__tpu_expand(pass, ret_error, &found.choice);
    if (rv != 0)
        return rv;
    if (found.choice.source == MU__TPU_NONCLOUD)
        fill_noncloud(&found, ret_resolution);
    else
        rv = resolve_cloud(&found, ret_error, ret_resolution);
    mu__tpu_endpoints_done(&found.endpoints);
    mu__tpu_choice_done(&found.choice);
    return rv;
}

int mu__tpu_detect(const struct mu__pass *pass, mu_error *ret_why)
{
    struct mu__tpu_choice choice;
    int rv = mu__tpu_choose(pass, true, ret_why, &choice);

    if (rv == 0)
        return 1;
    return rv == -MU_ENOMEM ? rv : 0;
}
