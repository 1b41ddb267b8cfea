/* Servers, offers to them, and programs of several tasks: calls that wait for another
 * process, tried while it is never there, absent, stopped or gone in the middle
 * (waits.h). */
#include "tests/real/waits.h"

#include <muster/distribute.h>
#include <muster/resolver.h>

/* ---- Servers, which need the chief ---- */

static void start_chief(struct waits_scene *scene, unsigned peer)
{
    (void)peer;
    cli_start(&scene->peers[0], NULL, "node", "--cluster", scene->json, "--task",
              "chief:0", "--heartbeat-ms", "200", "--silence-ms", "2000", "--suspect-ms",
              "2000", "--dead-ms", "4000", NULL);
}

enum { WITH_NODE = 1 };

static void open_worker(struct waits_scene *scene, struct waits_env *env)
{
    mu_node_options options;

    waits_name(env, "worker", (int)env->number);
    waits_options(scene, env, &options);
    options.suspect_ms = 2000;
    options.dead_ms = 4000;
    if ((scene->kind->rows[env->number].flags & WITH_NODE) != 0)
        waits_open_with(env, &options);
}

static void server_options(struct waits_env *env, mu_node_options *node,
                           mu_server_options *options)
{
    waits_options(env->scene, env, node);
    mu_server_options_init(options);
    options->node = node;
}

static void open_server(struct waits_env *env)
{
    mu_node_options node;
    mu_server_options options;
    mu_error error;

    if (env->server != NULL)
        return;
    server_options(env, &node, &options);
    if (mu_server_start(&options, &error, &env->server) != 0)
        fail_msg("%s", error.message);
}

static int see_chief(mu_node *node, int64_t timeout_ms, mu_error *error)
{
    mu_value *status = NULL;
    int rv = mu_node_status(node, timeout_ms, error, &status);

    mu_value_free(status);
    return rv;
}

static int have_server(struct waits_env *env, int64_t timeout_ms, mu_error *error)
{
    open_server(env);
    return see_chief(mu_server_node(env->server), timeout_ms, error);
}

static int have_node(struct waits_env *env, int64_t timeout_ms, mu_error *error)
{
    return mu_agent_register(env->node, 0, timeout_ms, error);
}

static int join_server(struct waits_env *env, int64_t timeout_ms, mu_error *error)
{
    open_server(env);
    return mu_server_join(env->server, timeout_ms, error);
}

static int stop_server(struct waits_env *env, int64_t timeout_ms, mu_error *error)
{
    open_server(env);
    return mu_server_stop(env->server, timeout_ms, error);
}

static int free_server(struct waits_env *env, int64_t timeout_ms, mu_error *error)
{
    (void)timeout_ms;
    (void)error;
    open_server(env);
    mu_server_free(env->server);
    env->server = NULL;
    return 0;
}

/* ---- Programs, whose calls need the chief's ---- */

struct program {
    waits_call_fn call;
    struct waits_env *env;
    int64_t timeout_ms;
};

static int wait_for_others(mu_context *context, void *user)
{
    const struct program *program = user;
    mu_error error;
    int rv = mu_context_wait_for_others(context, program->timeout_ms, &error);

    return rv == 0 ? 0 : mu_context_fail_with(context, &error);
}

static int open_session(mu_context *context, void *user)
{
    const struct program *program = user;
    mu_session_options options;
    mu_session *session;
    mu_error error;
    int rv;

    mu_session_options_init(&options);
    options.timeout_ms = program->timeout_ms;
    options.recovery_wait_ms = 1000;
    rv = mu_context_session(context, &options, &error, &session);
    return rv == 0 ? 0 : mu_context_fail_with(context, &error);
}

static int distribute(struct waits_env *env, int64_t timeout_ms, mu_worker_fn worker,
                      mu_error *error)
{
    struct program program = {.env = env, .timeout_ms = timeout_ms};
    mu_distribute_options options;

    mu_distribute_options_init(&options);
    options.mode = MU_MODE_INDEPENDENT;
    options.worker = worker;
    options.worker_user = &program;
    options.strategy = mu_strategy_parameter_server();
    options.cluster = env->scene->cluster;
    options.task_type = env->type;
    options.task_index = env->index;
    options.node = env->node;
    options.ignore_environment = 1;
    options.end_timeout_ms = WAITS_TIMEOUT_MS;
    return mu_distribute_run(&options, error, NULL);
}

static int run_barrier(struct waits_env *env, int64_t timeout_ms, mu_error *error)
{
    return distribute(env, timeout_ms, wait_for_others, error);
}

static int run_session(struct waits_env *env, int64_t timeout_ms, mu_error *error)
{
    return distribute(env, timeout_ms, open_session, error);
}

#define CHIEF "/job:chief/task:0"
#define MISSING WAITS_LATE("the job is not done|" CHIEF "|is not connected|refused")
#define STANDS WAITS_LATE("the job is not done|" CHIEF "|has not ended it")

/* A stop ends it, and the join of a server that is stopped is well. */
/* clang-format off */
#define STOPPED {"", 0, false, false, true, NULL}
#define DONE WAITS_SELF(0, "")

/* A run begins when the service is there, for which it waits in any case. */
#define LATE(words) {WAITS_NONE, WAITS_NONE, WAITS_LATE(words "|" CHIEF), \
                     WAITS_LATE(words "|" CHIEF)}
/* clang-format on */

/* Without a limit the chief, which does not come to a barrier here, is waited for for
 * ever, and a node must not be closed under a run. */
#define UNTRIED WAITS_ALL(WAITS_NONE)

/* Whom it does not reach the report says. */
static int check_cluster(struct waits_env *env, int64_t timeout_ms, mu_error *error)
{
    mu_node_options options;
    mu_value *report = NULL;
    int rv;

    waits_options(env->scene, env, &options);
    rv = mu_cluster_check(&options, timeout_ms, error, &report);
    mu_value_free(report);
    return rv;
}

static const struct waits_row server_rows[] = {
    {"mu_server_join",
     join_server,
     have_server,
     {MISSING, MISSING, STANDS, MISSING},
     WAITS_ALL(STOPPED),
     0},
    {"mu_server_stop", stop_server, have_server, WAITS_ALL(WAITS_OK), WAITS_ALL(DONE), 0},
    {"mu_server_free", free_server, have_server, WAITS_ALL(WAITS_OK), WAITS_ALL(DONE), 0},
    {"mu_context_wait_for_others", run_barrier, have_node, LATE("barrier"), UNTRIED,
     WITH_NODE},
    {"mu_context_session", run_session, have_node, LATE("session"), UNTRIED, WITH_NODE},
    {"mu_distribute_run", run_barrier, have_node, LATE("barrier"), UNTRIED, WITH_NODE},
    {"mu_cluster_check", check_cluster, NULL, WAITS_ALL(WAITS_SELF(0, "")), UNTRIED, 0},
};

static const struct waits_kind servers = {
    .name = "servers",
    .rows = server_rows,
    .rows_count = sizeof server_rows / sizeof server_rows[0],
    .workers = 7,
    .peers_count = 1,
    .log = "waiting for /job:chief/task:0",
    .start = start_chief,
    .open = open_worker,
};

/* ---- Offers, which need a server that waits for one, and the other way round ---- */

static void start_waiting(struct waits_scene *scene, unsigned peer)
{
    char url[64];

    (void)peer;
    (void)snprintf(url, sizeof url, "tcp://%s",
                   mu_cluster_address(scene->cluster, "ps", 0));
    cli_start(&scene->peers[0], NULL, "node", "--wait-cluster", "--bind", url,
              "--heartbeat-ms", "200", "--silence-ms", "2000", NULL);
}

static void name_row(struct waits_scene *scene, struct waits_env *env)
{
    (void)scene;
    waits_name(env, "worker", (int)env->number);
}

static int offer_to(struct waits_env *env, const char *type, int index,
                    int64_t timeout_ms, mu_error *error)
{
    mu_node_options node;
    mu_server_options offer;

    mu_node_options_init(&node);
    node.cluster = env->scene->cluster;
    node.task_type = type;
    node.task_index = index;
    node.log = nodes_note;
    node.log_user = &env->scene->log;
    mu_server_options_init(&offer);
    offer.node = &node;
    return mu_server_assign_cluster(&offer, timeout_ms, error);
}

static int offer_cluster(struct waits_env *env, int64_t timeout_ms, mu_error *error)
{
    return offer_to(env, "ps", 0, timeout_ms, error);
}

/* It is there when it has printed where it listens. */
static int see_it_wait(struct waits_env *env, int64_t timeout_ms, mu_error *error)
{
    (void)timeout_ms;
    (void)error;
    (void)cli_expect(&env->scene->peers[0], NULL, "127.0.0.1:");
    return 0;
}

static int start_from_config(struct waits_env *env, int64_t timeout_ms, mu_error *error)
{
    mu_node_options node;
    mu_server_options options;
    char url[64];

    (void)snprintf(url, sizeof url, "tcp://%s",
                   mu_cluster_address(env->scene->cluster, env->type, env->index));
    server_options(env, &node, &options);
    node.cluster = NULL;
    node.task_type = NULL;
    node.task_index = -1;
    node.bind_address = url;
    options.timeout_ms = timeout_ms;
    return mu_server_start(&options, error, &env->server);
}

/* Who tells its cluster to the server that waits for it. */
static void revive_client(struct waits_scene *scene)
{
    mu_error error;

    if (scene->state == WAITS_NEVER &&
        offer_to(&scene->envs[1], "worker", 1, SOON_MS, &error) != 0)
        fail_msg("%s", error.message);
}

#define SERVER "/job:ps/task:0"
#define UNTOLD(words) WAITS_LATE(SERVER "|did not get its cluster|" words)

static const struct waits_row offer_rows[] = {
    {"mu_server_assign_cluster",
     offer_cluster,
     see_it_wait,
     {UNTOLD("refused"), UNTOLD("refused"),
      UNTOLD("is not connected: nothing has answered yet"), UNTOLD("not")},
     WAITS_ALL(WAITS_LOGS(0, "", "waiting: |" SERVER)),
     0},
    {"mu_server_start",
     start_from_config,
     NULL,
     {WAITS_LATE("no client has offered a cluster spec to"), WAITS_NONE, WAITS_NONE,
      WAITS_NONE},
     {WAITS_LOGS(0, "", "waiting: no client has offered"), WAITS_NONE, WAITS_NONE,
      WAITS_NONE},
     0},
};

static const struct waits_kind offers = {
    .name = "offers",
    .rows = offer_rows,
    .rows_count = sizeof offer_rows / sizeof offer_rows[0],
    .workers = 2,
    .servers = 1,
    .peers_count = 1,
    .log = "waiting: ",
    .log_task = "",
    .start = start_waiting,
    .open = name_row,
    .revive = revive_client,
};

/* ---- The end of a program, which the others have to hear ---- */

static void start_worker(struct waits_scene *scene, unsigned peer)
{
    (void)peer;
    cli_start(&scene->peers[0], NULL, "node", "--cluster", scene->json, "--task",
              "worker:0", "--heartbeat-ms", "200", "--silence-ms", "2000", NULL);
}

static void name_chief(struct waits_scene *scene, struct waits_env *env)
{
    (void)scene;
    waits_name(env, "chief", 0);
}

static int end_here(mu_context *context, void *user)
{
    (void)context;
    (void)user;
    return 0;
}

static int run_and_end(struct waits_env *env, int64_t timeout_ms, mu_error *error)
{
    mu_node_options node;
    mu_distribute_options options;
    int rv;

    mu_distribute_options_init(&options);
    options.mode = MU_MODE_INDEPENDENT;
    options.worker = end_here;
    options.cluster = env->scene->cluster;
    options.strategy = mu_strategy_parameter_server();
    options.task_type = env->type;
    options.task_index = env->index;
    options.ignore_environment = 1;
    options.keep_server = 1;
    options.end_timeout_ms = WAITS_TIMEOUT_MS;
    waits_options(env->scene, env, &node);
    options.node_options = &node;
    rv = mu_distribute_run(&options, error, NULL);
    if (rv != -MU_EUNAVAILABLE ||
        !waits_has_words(error->message, "no result of /job:worker/task:0|was away"))
        return mu_error_set(error, rv == 0 ? -MU_EUNKNOWN : rv, "the run came to %d", rv);
    return mu_distribute_end(timeout_ms, error);
}

static const struct waits_row end_rows[] = {
    {"mu_distribute_end", run_and_end, NULL, WAITS_ALL(WAITS_OK), WAITS_ALL(DONE), 0},
};

static const struct waits_kind program_end = {
    .name = "the program's end",
    .rows = end_rows,
    .rows_count = 1,
    .workers = 1,
    .peers_count = 1,
    .log = "/job:worker/task:0",
    .start = start_worker,
    .open = name_chief,
};

int main(void)
{
    static const struct waits_kind *const kinds[] = {&servers, &offers, &program_end};

    (void)unsetenv("TF_CONFIG");
    return waits_main(kinds, 3);
}
