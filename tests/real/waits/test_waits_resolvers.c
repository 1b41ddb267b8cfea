/* Calls that ask a server of somebody else (the API of Google's cloud stands for all),
 * tried while it is never there, absent, stopped or gone in the middle (waits.h). */
#include "tests/real/https.h"
#include "tests/real/waits.h"

#include <muster/compat/tpu.h>
#include <muster/resolver.h>

/* ---- The server, and those who ask it ---- */

static char folder[] = "/tmp/muster-waits-XXXXXX";

#define NODE "/v2/projects/p/locations/z/nodes/n"
#define ROUTE(method, path, body) \
    "{'method': '" method "', 'path': '" path "', 'answers': [{'body': " body "}]}"

/* The server's own certificates are not needed: http on this machine is fine. */
/* clang-format off */
static const char script[] =
    "{'port': %P, 'routes': ["
    ROUTE("GET", NODE, "{'name': 'projects/p/locations/z/nodes/n', 'state': 'READY', "
                       "'health': 'HEALTHY', 'networkEndpoints': "
                       "[{'ipAddress': '127.0.0.1', 'port': 8470}]}") ","
    ROUTE("POST", "/requestversion/v1?restartType=always", "{}") "]}";
/* clang-format on */

static int port_of(const struct waits_scene *scene)
{
    return atoi(strrchr(mu_cluster_address(scene->cluster, "chief", 0), ':') + 1);
}

static void start_server(struct waits_scene *scene, unsigned peer)
{
    struct cli *cli = &scene->peers[peer];
    char program[256];
    char name[32];
    char path[64];
    char log[64];
    char text[sizeof script + 16];
    const char *at = strstr(script, "%P");
    pid_t parent = getpid();
    int ends[2];

    (void)snprintf(text, sizeof text, "%.*s%d%s", (int)(at - script), script,
                   port_of(scene), at + 2);
    (void)snprintf(name, sizeof name, "script-%d.json", port_of(scene));
    https_write(folder, name, text);
    (void)snprintf(path, sizeof path, "%s/%s", folder, name);
    (void)snprintf(log, sizeof log, "%s/log-%d", folder, port_of(scene));
    (void)snprintf(program, sizeof program, "%s/tests/real/https_server.py",
                   cli_variable("MUSTER_SOURCE"));
    assert_int_equal(pipe(ends), 0);
    *cli = (struct cli){.fd = ends[0], .code = -1};
    assert_int_equal(fcntl(ends[0], F_SETFL, O_NONBLOCK), 0);
    cli->pid = fork();
    assert_true(cli->pid >= 0);
    if (cli->pid == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() == parent && dup2(ends[1], STDOUT_FILENO) >= 0)
            (void)execlp("python3", "python3", program, path, log, (char *)NULL);
        _exit(127);
    }
    (void)close(ends[1]);
    (void)cli_expect(cli, NULL, "\n");
}

static void name_row(struct waits_scene *scene, struct waits_env *env)
{
    (void)scene;
    waits_name(env, "client", (int)env->number);
}

static void note_line(void *user, const char *line)
{
    struct waits_env *env = user;

    nodes_note(&env->scene->log, MU_LOG_INFO, env->task, "says", line);
}

static void url_of(const struct waits_env *env, char *out, size_t size)
{
    (void)snprintf(out, size, "http://127.0.0.1:%d", port_of(env->scene));
}

static mu_tpu *new_tpu(struct waits_env *env)
{
    const char *const settings[][2] = {
        {"tpu", "n"}, {"project", "p"}, {"zone", "z"}, {"credentials", "none"}};
    char value[64];
    mu_tpu *tpu = NULL;
    mu_error error;
    int rv = mu_tpu_new(&error, &tpu);

    url_of(env, value, sizeof value);
    if (rv == 0)
        rv = mu_tpu_set(tpu, "api_endpoint", value, &error);
    for (size_t i = 0; rv == 0 && i < sizeof settings / sizeof settings[0]; i++)
        rv = mu_tpu_set(tpu, settings[i][0], settings[i][1], &error);
    (void)snprintf(value, sizeof value, "%d", port_of(env->scene));
    if (rv == 0)
        rv = mu_tpu_set(tpu, "version_port", value, &error);
    if (rv != 0)
        fail_msg("%s", error.message);
    mu_tpu_on_progress(tpu, note_line, env);
    return tpu;
}

static mu_resolver *new_resolver(struct waits_env *env)
{
    const char *const settings[][2] = {
        {"tpu", "n"}, {"project", "p"}, {"zone", "z"}, {"credentials", "none"}};
    mu_resolver *resolver = NULL;
    char value[64];
    mu_error error;
    int rv = mu_resolver_new("tpu", &error, &resolver);

    url_of(env, value, sizeof value);
    if (rv == 0)
        rv = mu_resolver_set(resolver, "api_endpoint", value, &error);
    for (size_t i = 0; rv == 0 && i < sizeof settings / sizeof settings[0]; i++)
        rv = mu_resolver_set(resolver, settings[i][0], settings[i][1], &error);
    if (rv != 0)
        fail_msg("%s", error.message);
    mu_resolver_on_progress(resolver, note_line, env);
    return resolver;
}

/* ---- The calls ---- */

static int resolve(struct waits_env *env, int64_t timeout_ms, mu_error *error)
{
    mu_resolver *resolver = new_resolver(env);
    mu_resolution resolution = {.cluster = NULL};
    int rv = mu_resolver_resolve(resolver, timeout_ms, error, &resolution);

    if (rv == 0)
        mu_cluster_free(resolution.cluster);
    mu_resolver_free(resolver);
    return rv;
}

static int resolve_cluster(struct waits_env *env, int64_t timeout_ms, mu_error *error)
{
    mu_resolver *resolver = new_resolver(env);
    mu_cluster *cluster = NULL;
    int rv = mu_resolver_cluster(resolver, timeout_ms, error, &cluster);

    if (rv == 0)
        mu_cluster_free(cluster);
    mu_resolver_free(resolver);
    return rv;
}

static int resolve_master(struct waits_env *env, int64_t timeout_ms, mu_error *error)
{
    mu_resolver *resolver = new_resolver(env);
    char master[MU_MASTER_BYTES];
    int rv = mu_resolver_master(resolver, NULL, -1, NULL, timeout_ms, error, master);

    mu_resolver_free(resolver);
    return rv;
}

static int count_accelerators(struct waits_env *env, int64_t timeout_ms, mu_error *error)
{
    mu_resolver *resolver = new_resolver(env);
    mu_value *counts = NULL;
    int rv =
        mu_resolver_accelerators(resolver, NULL, NULL, -1, timeout_ms, error, &counts);

    if (rv == 0)
        mu_value_free(counts);
    mu_resolver_free(resolver);
    return rv;
}

static int describe(struct waits_env *env, int64_t timeout_ms, mu_error *error)
{
    mu_tpu *tpu = new_tpu(env);
    mu_tpu_state state;
    size_t count;
    int rv = mu_tpu_describe(tpu, timeout_ms, error, &state, 1, &count);

    mu_tpu_free(tpu);
    return rv;
}

static int recoverable(struct waits_env *env, int64_t timeout_ms, mu_error *error)
{
    mu_tpu *tpu = new_tpu(env);
    int is_recoverable;
    int rv = mu_tpu_recoverable(tpu, timeout_ms, error, &is_recoverable, NULL);

    mu_tpu_free(tpu);
    return rv;
}

/* Its limit has no "none": 0 is 20 minutes. */
static int wait_healthy(struct waits_env *env, int64_t timeout_ms, mu_error *error)
{
    mu_tpu *tpu = new_tpu(env);
    int rv = mu_tpu_wait_healthy(tpu, timeout_ms < 0 ? 0 : timeout_ms, 200, error);

    mu_tpu_free(tpu);
    return rv;
}

static int request_version(struct waits_env *env, int64_t timeout_ms, mu_error *error)
{
    mu_tpu *tpu = new_tpu(env);
    int rv = mu_tpu_request_version(tpu, "v1", NULL, timeout_ms, error);

    mu_tpu_free(tpu);
    return rv;
}

/* A node that asks for its cluster; at the most as long as resolve_ms. */
static int open_node(struct waits_env *env, int64_t timeout_ms, mu_error *error)
{
    mu_resolver *resolver = new_resolver(env);
    mu_node_options options;
    mu_node *node = NULL;
    int rv;

    waits_options(env->scene, env, &options);
    options.cluster = NULL;
    options.resolver = resolver;
    options.task_type = "client";
    options.task_index = env->index;
    options.resolve_ms = (unsigned)timeout_ms;
    rv = mu_node_open(&options, error, &node);
    if (rv == 0)
        rv = mu_node_close(node, SOON_MS, error);
    mu_resolver_free(resolver);
    return rv;
}

static int start_environment(struct waits_env *env, int64_t timeout_ms, mu_error *error)
{
    mu_resolver *resolver = new_resolver(env);
    mu_node_options node;
    mu_server_options options;
    mu_server *server = NULL;
    int rv;

    mu_server_options_init(&options);
    options.node = &node;
    waits_options(env->scene, env, &node);
    node.cluster = NULL;
    node.resolver = resolver;
    node.task_type = "worker";
    node.task_index = 0;
    node.resolve_ms = (unsigned)timeout_ms;
    rv = mu_server_start_from_environment(&options, error, &server);
    mu_server_free(server);
    mu_resolver_free(resolver);
    return rv;
}

/* ---- The table ---- */

/* Whatever is wrong, the words name what was asked of whom. */
#define LATE WAITS_ALL(WAITS_LATE("TPU \"n\"|http://127.0.0.1:"))
#define FOUND WAITS_ALL(WAITS_OK)

static const struct waits_row rows[] = {
    {"mu_resolver_resolve", resolve, NULL, LATE, FOUND, 0},
    {"mu_resolver_cluster", resolve_cluster, NULL, LATE, FOUND, 0},
    {"mu_resolver_master", resolve_master, NULL, LATE, FOUND, 0},
    {"mu_resolver_accelerators", count_accelerators, NULL, LATE, FOUND, 0},
    {"mu_tpu_describe", describe, NULL, LATE, FOUND, 0},
    {"mu_tpu_recoverable", recoverable, NULL, LATE, FOUND, 0},
    {"mu_tpu_wait_healthy", wait_healthy, NULL, LATE, FOUND, 0},
    {"mu_tpu_request_version", request_version, NULL, LATE, FOUND, 0},
    {"mu_node_open", open_node, NULL, LATE, WAITS_ALL(WAITS_NONE), 0},
    {"mu_server_start_from_environment", start_environment, NULL, LATE,
     WAITS_ALL(WAITS_NONE), 0},
};

static const struct waits_kind resolvers = {
    .name = "resolvers",
    .rows = rows,
    .rows_count = sizeof rows / sizeof rows[0],
    .peers_count = 1,
    .log = "http://127.0.0.1:",
    .start = start_server,
    .open = name_row,
};

int main(void)
{
    static const struct waits_kind *const kinds[] = {&resolvers};
    const char *missing = needs_programs("python3", NULL);
    char command[64];
    int rv;

    if (missing != NULL)
        return needs_skip(missing);
    (void)unsetenv("TF_CONFIG");
    if (mkdtemp(folder) == NULL)
        return 1;
    rv = waits_main(kinds, 1);
    (void)snprintf(command, sizeof command, "rm -r %s", folder);
    return system(command) == 0 ? rv : 1;
}
