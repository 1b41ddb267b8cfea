#include "resolver/source/ranks.h"

#include "resolver/spec/address.h"
#include "runtime/base/text.h"
#include "runtime/document/refuse.h"

#include <muster/cluster.h>

#include <stdio.h>
#include <string.h>

/* Both ranges are outside of the ports that Linux gives to outgoing connections, 32768 to
 * 60999, and the second one below those of Kubernetes's node ports. */
enum {
    LONE_PORT = 61440, /* of jobs with one task a node: JAX's ports */
    LONE_PORTS = 4096,
    RANGE_PORT = 10000, /* of the others */
    RANGE_PORTS = 20000,
    RANGE_STEP = 32, /* a job has whole multiples of it */
    PORT_MAX = 65535,
};

/* ---- Numbers ---- */

static bool read_rank_number(const char *text, unsigned low, unsigned high,
                             unsigned *ret_number)
{
    int64_t number = mu__decimal(text, strlen(text), high);

    if (number < low)
        return false;
    *ret_number = (unsigned)number;
    return true;
}

static int bad_number(const char *origin, const char *text, unsigned low, unsigned high,
                      const char *also, mu_error *ret_error)
{
    return mu__refuse(ret_error, text, strlen(text),
                      "%s: expected a whole number of %u to %u%s", origin, low, high,
                      also);
}

int mu__rank_number(struct mu__requests *requests, const char *variable, const char *hint,
                    unsigned low, unsigned high, mu_error *ret_error,
                    unsigned *ret_number)
{
    const char *text = mu__request_variable(requests, variable);

    if (text == NULL)
        return mu_error_set(ret_error, -MU_ENOTFOUND, "%s is not set%s", variable, hint);
    if (read_rank_number(text, low, high, ret_number))
        return 0;
    return bad_number(variable, text, low, high, "", ret_error);
}

int mu__rank_own(struct mu__requests *requests, const char *variable, const char *hint,
                 unsigned tasks, const char *tasks_variable, mu_error *ret_error,
                 unsigned *ret_rank)
{
    unsigned rank;
    int rv = mu__rank_number(requests, variable, hint, 0, MU_CLUSTER_TASKS_MAX - 1,
                             ret_error, &rank);

    if (rv != 0)
        return rv;
    if (rank >= tasks)
        return mu_error_set(ret_error, -MU_EINVALID,
                            "%s: expected a number below %u (%s), got %u", variable,
                            tasks, tasks_variable, rank);
    *ret_rank = rank;
    return 0;
}

/* ---- Settings ---- */

int mu__rank_jobs(const struct mu__pass *pass, unsigned setting, unsigned tasks,
                  mu_error *ret_error, struct mu__jobs *ret_jobs)
{
    return mu__jobs_parse(mu__setting(pass, setting), mu__setting_origin(pass, setting),
                          tasks, ret_error, ret_jobs);
}

/* 0: there are too many tasks. */
static unsigned auto_port(uint64_t job, unsigned node_tasks)
{
    uint64_t size = ((uint64_t)node_tasks + RANGE_STEP - 1) / RANGE_STEP * RANGE_STEP;

    if (node_tasks <= 1)
        return LONE_PORT + (unsigned)(job % LONE_PORTS);
    if (size > RANGE_PORTS)
        return 0;
    return RANGE_PORT + (unsigned)(job % (RANGE_PORTS / size) * size);
}

int mu__rank_port(const struct mu__pass *pass, unsigned setting, uint64_t job,
                  unsigned node_tasks, mu_error *ret_error, unsigned *ret_port)
{
    const char *text = mu__setting(pass, setting);
    const char *origin = mu__setting_origin(pass, setting);
    unsigned port = 0;

    if (text == NULL ||
        (strcmp(text, "auto") != 0 && !read_rank_number(text, 1, PORT_MAX, &port)))
        return bad_number(origin, text == NULL ? "" : text, 1, PORT_MAX, ", or \"auto\"",
                          ret_error);
    if (port == 0)
        port = auto_port(job, node_tasks);
    if (port == 0 || node_tasks > PORT_MAX - port + 1)
        return mu_error_set(
            ret_error, -MU_EINVALID,
            "%s: %s leaves too few ports up to %d for %u tasks of one node", origin, text,
            (int)PORT_MAX, node_tasks);
    *ret_port = port;
    return 0;
}

int mu__rank_text(const struct mu__pass *pass, unsigned setting, char *field, size_t size,
                  mu_error *ret_error)
{
    const char *text = mu__setting(pass, setting);

    if (text == NULL)
        return 0;
    if (strlen(text) < size) {
        memcpy(field, text, strlen(text) + 1);
        return 0;
    }
    return mu_error_set(ret_error, -MU_EINVALID,
                        "%s: expected at most %zu bytes, got %zu",
                        mu__setting_origin(pass, setting), size - 1, strlen(text));
}

/* ---- Tasks ---- */

static void set_rank_task(const struct mu__jobs *jobs, unsigned rank,
                          mu_resolution *resolution)
{
    const char *type;

    mu__jobs_at(jobs, rank, &type, &resolution->task_index);
    MU__COPY_TEXT(resolution->task_type, type);
}

static bool has_host_port(const char *host)
{
    const char *colon = strchr(host, ':');

    return colon != NULL && strchr(colon + 1, ':') == NULL;
}

static int add_rank(const struct mu__ranks *ranks, unsigned rank, mu_error *ret_error,
                    mu_resolution *resolution)
{
    const char *host = ranks->hosts->names[ranks->layout->nodes[rank]];
    const char *suffix = ranks->host_suffix == NULL ? "" : ranks->host_suffix;
    const char *type;
    char full[2 * MU__HOST_BYTES_MAX + 2];
    int index;

    mu__jobs_at(ranks->jobs, rank, &type, &index);
    if (has_host_port(host))
        return mu__resolution_add(resolution, ranks->source, type, index, host,
                                  ret_error);
    if (strlen(host) + strlen(suffix) > MU__HOST_BYTES_MAX)
        return mu_error_set(ret_error, -MU_EINVALID,
                            "%s: expected names of at most %d bytes, with \"%.80s\" "
                            "behind them",
                            ranks->source, (int)MU__HOST_BYTES_MAX, suffix);
    (void)snprintf(full, sizeof full, "%s%s", host, suffix);
    return mu__resolution_add_host(resolution, ranks->source, type, index, full,
                                   ranks->port + ranks->layout->locals[rank], ret_error);
}

int mu__ranks_add(const struct mu__ranks *ranks, mu_error *ret_error,
                  mu_resolution *resolution)
{
    int rv = 0;

    for (unsigned rank = 0; rv == 0 && rank < ranks->layout->tasks; rank++)
        rv = add_rank(ranks, rank, ret_error, resolution);
    if (rv == 0)
        set_rank_task(ranks->jobs, ranks->rank, resolution);
    return rv;
}

/* ---- Only rank 0's address is known ---- */

static int check_jobs(const struct mu__jobs *jobs, const char *source,
                      mu_error *ret_error)
{
    unsigned chiefs = 0;
    unsigned others = 0;

    for (unsigned i = 0; i < jobs->rows_count; i++) {
        if (strcmp(jobs->rows[i].type, "chief") == 0)
            chiefs += jobs->rows[i].count;
        else if (strcmp(jobs->rows[i].type, "worker") != 0)
            others += jobs->rows[i].count;
    }
    if (chiefs == 1 && others == 0 && strcmp(jobs->rows[0].type, "chief") == 0)
        return 0;
    return mu_error_set(ret_error, -MU_EINVALID,
                        "%s: only the address of rank 0 is known, and only workers may "
                        "join a chief without being listed: expected the jobs "
                        "\"chief=1,worker=*\", or a setting that lists the hosts",
                        source);
}

static bool is_loopback_host(const char *host)
{
    return strncmp(host, "127.", 4) == 0 || strcmp(host, "::1") == 0 ||
           strcmp(host, "[::1]") == 0 || strcmp(host, "localhost") == 0;
}

static void write_bind(mu_resolution *resolution, const char *host)
{
    char *out = resolution->bind_address;

    MU__COPY_TEXT(resolution->bind_address, "tcp://");
    (void)mu__address_join(host, 0, out + 6, sizeof resolution->bind_address - 6);
}

/* Port 0 of a task that the cluster lists becomes its port there. */
static void take_bind_port(const mu_resolution *resolution, char *url)
{
    const char *own = mu_cluster_address(resolution->cluster, resolution->task_type,
                                         resolution->task_index);
    const char *port = own == NULL ? NULL : strrchr(own, ':');
    size_t size = strlen(url);

    if (port != NULL && size > 2 && strcmp(url + size - 2, ":0") == 0)
        (void)snprintf(url + size - 2, MU__URL_BYTES - (size - 2), "%s", port);
}

/* Take "host:port" as the address to listen at. This task, and the cluster, are known. */
static int set_bind(const char *address, mu_error *ret_error, mu_resolution *resolution)
{
    char url[MU__URL_BYTES];
    mu_error inner;
    int rv = mu__address_url(address, &inner, url);

    if (rv != 0)
        return mu_error_set(ret_error, rv, "bind_address: %s", inner.message);
    take_bind_port(resolution, url);
    (void)snprintf(resolution->bind_address, sizeof resolution->bind_address, "%.280s",
                   url);
    return 0;
}

int mu__rank_host(struct mu__requests *requests, const char *source, mu_error *ret_error,
                  char *ret_host)
{
    const char *name = mu__request_host_name(requests);
    const struct mu__request found = {.kind = MU__REQUEST_ADDRESSES,
                                      .name = name == NULL ? "localhost" : name,
                                      .tries = 1};
    const struct mu__answer *answer = mu__requests_get(requests, &found);
    const char *lines = answer->code == 0 ? answer->data : "";
    const char *line;
    size_t size;

    while (mu__next_line(&lines, &line, &size)) {
        char host[MU__HOST_BYTES_MAX + 1];

        (void)snprintf(host, sizeof host, "%.*s",
                       (int)(size < MU__HOST_BYTES_MAX ? size : MU__HOST_BYTES_MAX),
                       line);
        if (is_loopback_host(host))
            continue;
        memcpy(ret_host, host, sizeof host);
        return 0;
    }
    return mu_error_set(ret_error, -MU_EINVALID,
                        "%s: this host's name, \"%.80s\", has no address at which others "
                        "could reach it; set bind_address",
                        source, found.name);
}

/* Listen at a free port of an address at which the others reach this host; on loopback
 * if the chief is there. */
static int find_bind(struct mu__requests *requests, const char *source,
                     const char *address, mu_error *ret_error, mu_resolution *resolution)
{
    const char *colon = strrchr(address, ':');
    size_t size = colon == NULL ? strlen(address) : (size_t)(colon - address);
    char host[MU_CLUSTER_ADDRESS_BYTES_MAX + 1];
    int rv = 0;

    (void)snprintf(host, sizeof host, "%.*s", (int)size, address);
    if (is_loopback_host(host))
        (void)snprintf(host, sizeof host, "127.0.0.1");
    else
        rv = mu__rank_host(requests, source, ret_error, host);
    if (rv == 0)
        write_bind(resolution, host);
    return rv;
}

static int set_rpc_layer(const struct mu__pass *pass,
                         const struct mu__rank_settings *settings, mu_error *ret_error,
                         mu_resolution *resolution)
{
    return mu__rank_text(pass, settings->rpc_layer, resolution->rpc_layer,
                         sizeof resolution->rpc_layer, ret_error);
}

int mu__ranks_resolve(const struct mu__pass *pass,
                      const struct mu__rank_settings *settings, struct mu__ranks *ranks,
                      uint64_t job, const char *bind_address, mu_error *ret_error,
                      mu_resolution *resolution)
{
    struct mu__jobs jobs;
    int rv = mu__rank_jobs(pass, settings->jobs, ranks->layout->tasks, ret_error, &jobs);

    ranks->jobs = &jobs;
    if (rv == 0)
        rv = mu__rank_port(pass, settings->port, job, ranks->layout->node_tasks_max,
                           ret_error, &ranks->port);
    if (rv == 0)
        rv = mu__ranks_add(ranks, ret_error, resolution);
    ranks->jobs = NULL;
    if (rv == 0 && bind_address != NULL)
        rv = set_bind(bind_address, ret_error, resolution);
    return rv != 0 ? rv : set_rpc_layer(pass, settings, ret_error, resolution);
}

int mu__ranks_meet(const struct mu__pass *pass, const struct mu__rank_settings *settings,
                   const char *source, const char *address, unsigned tasks, unsigned rank,
                   const char *bind_address, mu_error *ret_error,
                   mu_resolution *resolution)
{
    struct mu__jobs jobs = {.rows = {{"chief", 1}, {"worker", tasks - 1}},
                            .rows_count = 2};
    int rv = 0;

    if (mu__setting_given(pass, settings->jobs))
        rv = mu__rank_jobs(pass, settings->jobs, tasks, ret_error, &jobs);
    if (rv == 0)
        rv = check_jobs(&jobs, source, ret_error);
    if (rv == 0)
        rv = mu__resolution_add(resolution, source, "chief", 0, address, ret_error);
    if (rv != 0)
        return rv;
    set_rank_task(&jobs, rank, resolution);
    if (bind_address != NULL)
        rv = set_bind(bind_address, ret_error, resolution);
    else if (rank != 0)
        rv = find_bind(pass->requests, source, address, ret_error, resolution);
    return rv != 0 ? rv : set_rpc_layer(pass, settings, ret_error, resolution);
}
