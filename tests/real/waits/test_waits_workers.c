/* Calls that need a worker, tried while it is never there, absent, stopped or gone in the
 * middle (waits.h); the chief is there all the time. Then the end of the job, which the
 * chief tells all others. */
#include "tests/real/waits.h"

#include <muster/dataset.h>

static const char plugin_text[] =
    "#include <muster.h>\n"
    "static int nap(mu_run *run, void *user)\n"
    "{\n"
    "    (void)run;\n"
    "    (void)user;\n"
    "    return 0;\n"
    "}\n"
    "static int drip(mu_actor *self, void *state, const mu_value *args)\n"
    "{\n"
    "    (void)state;\n"
    "    (void)args;\n"
    "    return mu_actor_stream(self, 0, 0) == NULL ? -1 : 0;\n"
    "}\n"
    "static const mu_actor_method methods[] = {{\"drip\", drip}, {NULL, NULL}};\n"
    "static const mu_actor_type napper = {.name = \"napper\", .methods = methods};\n"
    "int mu_plugin_open(mu_node *node);\n"
    "int mu_plugin_open(mu_node *node)\n"
    "{\n"
    "    return mu_node_register_actor(node, &napper) != 0\n"
    "               ? -1\n"
    "               : mu_node_register_function(node, \"nap\", nap, NULL, 0);\n"
    "}\n";

static char folder[64];
static char plugin[96];

/* ---- The chief, the workers, and those who need them ---- */

/* One for closures, one that is drained, one that is stopped. */
enum { FOR_CLOSURES, FOR_DRAIN, FOR_STOP, WORKERS };

static void begin(struct waits_scene *scene)
{
    static struct waits_env chief;
    mu_node_options options;

    memset(&chief, 0, sizeof chief);
    chief.scene = scene;
    waits_name(&chief, "chief", 0);
    waits_options(scene, &chief, &options);
    waits_open_with(&chief, &options);
    scene->own = &chief;
}

static void end(struct waits_scene *scene)
{
    waits_close_node(scene->own);
}

static void start_worker(struct waits_scene *scene, unsigned peer)
{
    char task[16];

    (void)snprintf(task, sizeof task, "worker:%u", peer);
    cli_start(&scene->peers[peer], NULL, "node", "--cluster", scene->json, "--task", task,
              "--plugin", plugin, "--heartbeat-ms", "200", "--silence-ms", "2000", NULL);
}

static void open_client(struct waits_scene *scene, struct waits_env *env)
{
    mu_node_options options;
    mu_error error;

    waits_name(env, "client", (int)env->number);
    waits_options(scene, env, &options);
    options.queue_max = 1;
    waits_open_with(env, &options);
    if (mu_coordinator_open(env->node, SOON_MS, &error, &env->coordinator) != 0)
        fail_msg("%s", error.message);
}

/* ---- Before ---- */

/* All workers have been heard, and this coordinator's first closure has run. */
static int run_one(struct waits_env *env, int64_t timeout_ms, mu_error *error)
{
    int rv =
        mu_coordinator_schedule(env->coordinator, "nap", NULL, timeout_ms, error, NULL);
    mu_value *tasks = NULL;

    if (rv == 0)
        rv = mu_coordinator_join(env->coordinator, timeout_ms, error);
    if (rv == 0)
        rv = mu_tasks_wait(env->node, "worker:0-2", timeout_ms, error, &tasks);
    mu_value_free(tasks);
    return rv;
}

/* ---- The calls ---- */

static int queue(struct waits_env *env, mu_error *error)
{
    return mu_coordinator_schedule(env->coordinator, "nap", NULL, SOON_MS, error,
                                   &env->value);
}

static int join(struct waits_env *env, int64_t timeout_ms, mu_error *error)
{
    int rv = queue(env, error);

    return rv != 0 ? rv : mu_coordinator_join(env->coordinator, timeout_ms, error);
}

static int schedule(struct waits_env *env, int64_t timeout_ms, mu_error *error)
{
    int rv = queue(env, error);

    return rv != 0 ? rv
                   : mu_coordinator_schedule(env->coordinator, "nap", NULL, timeout_ms,
                                             error, NULL);
}

static int schedule_with(struct waits_env *env, int64_t timeout_ms, mu_error *error)
{
    int rv = queue(env, error);

    return rv != 0 ? rv
                   : mu_coordinator_schedule_with(env->coordinator, "nap", NULL, NULL,
                                                  timeout_ms, error, NULL);
}

static int fetch_value(struct waits_env *env, int64_t timeout_ms, mu_error *error)
{
    int rv = queue(env, error);

    return rv != 0 ? rv : mu_remote_value_fetch(env->value, timeout_ms, error, NULL);
}

static int fetch_all(struct waits_env *env, int64_t timeout_ms, mu_error *error)
{
    int rv = queue(env, error);

    return rv != 0 ? rv
                   : mu_remote_value_fetch_all(&env->value, 1, timeout_ms, error, NULL);
}

static int fetch_structure(struct waits_env *env, int64_t timeout_ms, mu_error *error)
{
    mu_value *value = NULL;
    int rv = queue(env, error);

    if (rv != 0)
        return rv;
    env->structure = mu_value_remote(env->value);
    rv =
        mu_coordinator_fetch(env->coordinator, env->structure, timeout_ms, error, &value);
    mu_value_free(value);
    return rv;
}

static int open_dataset(struct waits_env *env, mu_error *error)
{
    mu_dataset_options options;
    int rv;

    mu_dataset_options_init(&options);
    options.shards = 1;
    options.epochs = 2;
    rv = mu_dataset_open(env->coordinator, &options, error, &env->dataset);
    return rv != 0 ? rv
                   : mu_dataset_schedule(env->dataset, "nap", NULL, NULL, SOON_MS, error);
}

static int schedule_dataset(struct waits_env *env, int64_t timeout_ms, mu_error *error)
{
    int rv = open_dataset(env, error);

    return rv != 0
               ? rv
               : mu_dataset_schedule(env->dataset, "nap", NULL, NULL, timeout_ms, error);
}

static int join_dataset(struct waits_env *env, int64_t timeout_ms, mu_error *error)
{
    int rv = open_dataset(env, error);

    return rv != 0 ? rv : mu_dataset_join(env->dataset, timeout_ms, error);
}

static int drain_worker(struct waits_env *env, int64_t timeout_ms, mu_error *error)
{
    return mu_coordinator_drain(env->coordinator, FOR_DRAIN, timeout_ms, error);
}

static int stop_worker(struct waits_env *env, int64_t timeout_ms, mu_error *error)
{
    return mu_server_stop_remote(env->node, "worker:2", "a test", timeout_ms, error);
}

static int spawn_on_worker(struct waits_env *env, int64_t timeout_ms, mu_error *error,
                           mu_address *ret_address)
{
    mu_actor_options options;

    mu_actor_options_init(&options);
    options.task_type = "worker";
    return mu_node_spawn(env->node, "napper", NULL, &options, timeout_ms, error,
                         ret_address);
}

static int spawn_there(struct waits_env *env, int64_t timeout_ms, mu_error *error)
{
    mu_address address;

    return spawn_on_worker(env, timeout_ms, error, &address);
}

/* A stream of which nothing comes has begun. */
static int open_stream(struct waits_env *env, int64_t timeout_ms, mu_error *error)
{
    int rv = run_one(env, timeout_ms, error);
    mu_value *item = NULL;

    if (rv == 0)
        rv = spawn_on_worker(env, timeout_ms, error, &env->address);
    if (rv == 0)
        rv = mu_actor_open_stream(env->node, &env->address, "drip", NULL, SOON_MS, error,
                                  &env->reader);
    if (rv == 0)
        rv = mu_stream_next(env->reader, 10, error, &item);
    return rv == -MU_EDEADLINE ? 0 : rv;
}

static int read_stream(struct waits_env *env, int64_t timeout_ms, mu_error *error)
{
    mu_value *item = NULL;

    return mu_stream_next(env->reader, timeout_ms, error, &item);
}

/* ---- The table ---- */

/* Closures wait for any worker, or are with one that does not go on. */
#define GONE(words) WAITS_LATE(words "|/job:worker/task:0 is missing")
#define LATE(words)                                                                   \
    {                                                                                 \
        GONE(words), GONE(words), WAITS_LATE(words "|/job:worker/task:"), GONE(words) \
    }
#define RUN WAITS_ALL(WAITS_OK)

#define DRAINED WAITS_SOON(0, "")
#define NOBODY WAITS_SOON(-MU_ENOTFOUND, "there is no /job:worker/task:1")

/* An actor cannot be waited for without a limit. */
#define UNCONNECTED WAITS_LATE("/job:worker/task:0 was not connected")

#define LOST WAITS_SELF(-MU_EUNAVAILABLE, "/job:worker/task:0 was lost")
#define LOST_SOON WAITS_SOON(-MU_EUNAVAILABLE, "/job:worker/task:0 was lost")

#define STOP(words) WAITS_LATE("/job:worker/task:2 was not stopped|" words)
#define UNREACHED STOP("is not connected to the chief")
#define DIES WAITS_SELF(-MU_EUNAVAILABLE, "/job:worker/task:2|has not answered")

static const struct waits_row rows[] = {
    {"mu_coordinator_join", join, run_one, LATE("outstanding"), RUN, 0},
    {"mu_coordinator_schedule", schedule, run_one, LATE("outstanding"), RUN, 0},
    {"mu_coordinator_schedule_with", schedule_with, run_one, LATE("outstanding"), RUN, 0},
    {"mu_remote_value_fetch", fetch_value, run_one, LATE("no result"), RUN, 0},
    {"mu_remote_value_fetch_all", fetch_all, run_one, LATE("no result"), RUN, 0},
    {"mu_coordinator_fetch", fetch_structure, run_one, LATE("no result"), RUN, 0},
    {"mu_dataset_schedule", schedule_dataset, run_one, LATE("the first is 0"), RUN, 0},
    {"mu_dataset_join", join_dataset, run_one, LATE("the first is 0"), RUN, 0},
    {"mu_coordinator_drain",
     drain_worker,
     run_one,
     {NOBODY, NOBODY, WAITS_LATE("/job:worker/task:1|closures to finish"), DRAINED},
     {NOBODY, NOBODY, WAITS_SELF(0, ""), DRAINED},
     0},
    {"mu_node_spawn", spawn_there, run_one, WAITS_ALL(UNCONNECTED), WAITS_ALL(WAITS_NONE),
     0},
    {"mu_stream_next",
     read_stream,
     open_stream,
     {WAITS_NONE, LOST_SOON, WAITS_LATE("no item of drip of /job:worker/task:0#"), LOST},
     {WAITS_NONE, LOST_SOON, LOST, LOST},
     0},
    {"mu_server_stop_remote",
     stop_worker,
     run_one,
     {UNREACHED, UNREACHED, STOP("has not finished its work"), UNREACHED},
     {WAITS_OK, WAITS_OK, DIES, DIES},
     0},
};

static const struct waits_kind workers = {
    .name = "workers",
    .rows = rows,
    .rows_count = sizeof rows / sizeof rows[0],
    .workers = WORKERS,
    .peers_count = WORKERS,
    .log = "waiting for /job:worker/task:0",
    .log_task = "/job:chief/task:0",
    .start = start_worker,
    .open = open_client,
    .begin = begin,
    .end = end,
};

/* ---- The end of the job ---- */

static void open_chief(struct waits_scene *scene, struct waits_env *env)
{
    mu_node_options options;

    waits_name(env, "chief", 0);
    waits_options(scene, env, &options);
    waits_open_with(env, &options);
}

static int see_workers(struct waits_env *env, int64_t timeout_ms, mu_error *error)
{
    mu_value *tasks = NULL;
    int rv = mu_tasks_wait(env->node, "worker:0-2", timeout_ms, error, &tasks);

    mu_value_free(tasks);
    return rv;
}

static int end_job(struct waits_env *env, int64_t timeout_ms, mu_error *error)
{
    return mu_node_finish_job(env->node, 0, NULL, timeout_ms, error);
}

static const struct waits_row end_rows[] = {
    {"mu_node_finish_job",
     end_job,
     see_workers,
     {DRAINED, DRAINED,
      WAITS_LATE("3 tasks have not hung up|/job:worker/task:0|/job:worker/task:2"),
      DRAINED},
     {DRAINED, DRAINED, WAITS_SELF(0, ""), DRAINED},
     0},
};

static const struct waits_kind job_end = {
    .name = "the job's end",
    .rows = end_rows,
    .rows_count = 1,
    .workers = WORKERS,
    .peers_count = WORKERS,
    .log = "waiting for /job:worker/task:0",
    .log_task = "/job:chief/task:0",
    .start = start_worker,
    .open = open_chief,
};

int main(void)
{
    static const struct waits_kind *const kinds[] = {&workers, &job_end};
    int rv;

    cli_folder(folder, sizeof folder);
    if (cli_compile(folder, plugin_text, plugin, sizeof plugin) != 0)
        return 1;
    rv = waits_main(kinds, 2);
    (void)unlink(plugin);
    (void)rmdir(folder);
    return rv;
}
