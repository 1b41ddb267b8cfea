/* Calls that need the chief, tried while it is never there, absent, stopped or gone in
 * the middle (waits.h). */
#include "tests/real/waits.h"

#include <muster/dataset.h>

/* ---- The chief, and those who need it ---- */

static void start_chief(struct waits_scene *scene, unsigned peer)
{
    (void)peer;
    cli_start(&scene->peers[0], NULL, "node", "--cluster", scene->json, "--task",
              "chief:0", "--heartbeat-ms", "200", "--silence-ms", "2000", NULL);
}

enum { IS_WORKER = 1 };

static void open_client(struct waits_scene *scene, struct waits_env *env)
{
    bool is_worker = (scene->kind->rows[env->number].flags & IS_WORKER) != 0;
    mu_node_options options;

    waits_name(env, is_worker ? "worker" : "client", is_worker ? 0 : (int)env->number);
    waits_options(scene, env, &options);
    options.queue_max = 1;
    waits_open_with(env, &options);
}

/* ---- Before ---- */

static int take_coordinator(struct waits_env *env, int64_t timeout_ms, mu_error *error)
{
    return mu_coordinator_open(env->node, timeout_ms, error, &env->coordinator);
}

/* The chief has it: it waits no more at its client. */
static int await_queued(struct waits_env *env, int64_t timeout_ms, mu_error *error)
{
    const char *state = "";
    mu_value *reasons;
    bool is_queued;
    size_t size;
    int rv = 0;

    for (;;) {
        rv = mu_coordinator_explain(env->coordinator, env->value, NULL, timeout_ms, error,
                                    &reasons);
        if (rv != 0)
            return rv;
        (void)mu_value_get_string(mu_value_find(reasons, "state"), &state, &size);
        is_queued = strcmp(state, "queued") == 0;
        mu_value_free(reasons);
        if (is_queued)
            return 0;
        nodes_pause();
    }
}

/* A closure that waits for a worker, and fills the queue. */
static int queue_one(struct waits_env *env, int64_t timeout_ms, mu_error *error)
{
    int rv = take_coordinator(env, timeout_ms, error);

    if (rv == 0)
        rv = mu_coordinator_schedule(env->coordinator, "f", NULL, timeout_ms, error,
                                     &env->value);
    return rv != 0 ? rv : await_queued(env, timeout_ms, error);
}

static int queue_structure(struct waits_env *env, int64_t timeout_ms, mu_error *error)
{
    int rv = queue_one(env, timeout_ms, error);

    if (rv == 0)
        env->structure = mu_value_remote(env->value);
    return rv;
}

static int schedule_one(struct waits_env *env, int64_t timeout_ms, mu_error *error)
{
    mu_dataset_options options;
    int rv = take_coordinator(env, timeout_ms, error);

    mu_dataset_options_init(&options);
    options.shards = 1;
    if (rv == 0)
        rv = mu_dataset_open(env->coordinator, &options, error, &env->dataset);
    return rv != 0
               ? rv
               : mu_dataset_schedule(env->dataset, "f", NULL, NULL, timeout_ms, error);
}

/* It is linked, and has been. */
static int await_chief(struct waits_env *env, int64_t timeout_ms, mu_error *error)
{
    mu_value *status = NULL;
    int rv = mu_node_status(env->node, timeout_ms, error, &status);

    mu_value_free(status);
    return rv;
}

/* ---- The calls ---- */

static int wait_for_chief(struct waits_env *env, int64_t timeout_ms, mu_error *error)
{
    return mu_coordinator_wait_for_chief(env->coordinator, timeout_ms, error);
}

static int schedule(struct waits_env *env, int64_t timeout_ms, mu_error *error)
{
    return mu_coordinator_schedule(env->coordinator, "f", NULL, timeout_ms, error, NULL);
}

static int schedule_with(struct waits_env *env, int64_t timeout_ms, mu_error *error)
{
    return mu_coordinator_schedule_with(env->coordinator, "f", NULL, NULL, timeout_ms,
                                        error, NULL);
}

static int open_per_worker(struct waits_env *env, int64_t timeout_ms, mu_error *error)
{
    return mu_per_worker_open(env->coordinator, "f", NULL, timeout_ms, error,
                              &env->per_worker);
}

static int open_per_worker_shared(struct waits_env *env, int64_t timeout_ms,
                                  mu_error *error)
{
    return mu_per_worker_open_shared(env->coordinator, "f", NULL, timeout_ms, error,
                                     &env->per_worker);
}

static int open_per_worker_values(struct waits_env *env, int64_t timeout_ms,
                                  mu_error *error)
{
    mu_value *values = mu_value_list();
    int rv = mu_value_append(values, mu_value_int(1));

    assert_int_equal(rv, 0);
    rv = mu_per_worker_open_values(env->coordinator, values, timeout_ms, error,
                                   &env->per_worker);
    mu_value_free(values);
    return rv;
}

static int explain(struct waits_env *env, int64_t timeout_ms, mu_error *error)
{
    mu_value *reasons = NULL;
    int rv = mu_coordinator_explain(env->coordinator, NULL, "named", timeout_ms, error,
                                    &reasons);

    mu_value_free(reasons);
    return rv;
}

static int drain_worker(struct waits_env *env, int64_t timeout_ms, mu_error *error)
{
    return mu_coordinator_drain(env->coordinator, 1, timeout_ms, error);
}

static int drain_task(struct waits_env *env, int64_t timeout_ms, mu_error *error)
{
    return mu_coordinator_drain_task(env->coordinator, "worker", 1, timeout_ms, error);
}

static int forget(struct waits_env *env, int64_t timeout_ms, mu_error *error)
{
    return mu_coordinator_forget(env->coordinator, timeout_ms, error);
}

static int join(struct waits_env *env, int64_t timeout_ms, mu_error *error)
{
    return mu_coordinator_join(env->coordinator, timeout_ms, error);
}

static int fetch_value(struct waits_env *env, int64_t timeout_ms, mu_error *error)
{
    return mu_remote_value_fetch(env->value, timeout_ms, error, NULL);
}

static int fetch_all(struct waits_env *env, int64_t timeout_ms, mu_error *error)
{
    return mu_remote_value_fetch_all(&env->value, 1, timeout_ms, error, NULL);
}

static int fetch_structure(struct waits_env *env, int64_t timeout_ms, mu_error *error)
{
    mu_value *value = NULL;
    int rv =
        mu_coordinator_fetch(env->coordinator, env->structure, timeout_ms, error, &value);

    mu_value_free(value);
    return rv;
}

static int schedule_dataset(struct waits_env *env, int64_t timeout_ms, mu_error *error)
{
    return mu_dataset_schedule(env->dataset, "f", NULL, NULL, timeout_ms, error);
}

static int join_dataset(struct waits_env *env, int64_t timeout_ms, mu_error *error)
{
    return mu_dataset_join(env->dataset, timeout_ms, error);
}

static int explain_node(struct waits_env *env, int64_t timeout_ms, mu_error *error)
{
    mu_value *reasons = NULL;
    int rv = mu_node_explain(env->node, 0, "named", timeout_ms, error, &reasons);

    mu_value_free(reasons);
    return rv;
}

static int wait_job(struct waits_env *env, int64_t timeout_ms, mu_error *error)
{
    return mu_node_wait_job(env->node, timeout_ms, error);
}

static int drain_node(struct waits_env *env, int64_t timeout_ms, mu_error *error)
{
    return mu_node_drain(env->node, timeout_ms, error);
}

static int stop_remote(struct waits_env *env, int64_t timeout_ms, mu_error *error)
{
    return mu_server_stop_remote(env->node, "worker:1", "a test", timeout_ms, error);
}

static int ask_done(struct waits_env *env, int64_t timeout_ms, mu_error *error)
{
    int is_done = 0;

    (void)timeout_ms;
    return mu_coordinator_done(env->coordinator, error, &is_done);
}

/* Five seconds at most. */
static int close_coordinator(struct waits_env *env, int64_t timeout_ms, mu_error *error)
{
    (void)timeout_ms;
    (void)error;
    mu_coordinator_close(env->coordinator);
    env->coordinator = NULL;
    return 0;
}

static int serve_main(struct waits_env *env, int64_t timeout_ms, mu_error *error)
{
    (void)timeout_ms;
    return mu_node_main(env->node, error);
}

static int close_node(struct waits_env *env, int64_t timeout_ms, mu_error *error)
{
    mu_node *node = env->node;

    env->node = NULL;
    return mu_node_close(node, timeout_ms, error);
}

/* ---- The table ---- */

#define CHIEF "/job:chief/task:0"
/* What asks the chief: it is waited for, and asked once it is there. One that is lost
 * before it has answered is an error, since nobody knows what it has done. */
#define REFUSED WAITS_LATE(CHIEF "|was not reached|refused")
#define SILENT WAITS_LATE(CHIEF "|did not answer")
#define LOST WAITS_SOON(-MU_EUNAVAILABLE, CHIEF "|is lost")
/* clang-format off */
#define ASKS {REFUSED, REFUSED, SILENT, LOST}
#define ASKS_ON(end) {end, end, LOST, LOST}
#define ASKS_LATER {WAITS_NONE, REFUSED, SILENT, LOST}
#define ASKS_LATER_ON(end) {WAITS_NONE, end, LOST, LOST}

/* What waits for closures: they are lost with the chief. At the limit it is asked why
 * they take so long. */
#define WHY_LOST WAITS_END(-MU_EUNAVAILABLE, CHIEF "|is lost|silent")
#define RESULTS {WAITS_NONE, LOST, WHY_LOST, LOST}
#define RESULTS_ON WAITS_LATER(LOST)
#define PLACE {WAITS_NONE, LOST, WAITS_LATE(CHIEF "|is lost|silent"), LOST}

/* What waits until it is connected, which it is until its silence is noticed. */
#define BACK WAITS_SOON(0, "")
#define UP {REFUSED, REFUSED, BACK, BACK}
#define UP_ON {WAITS_OK, WAITS_OK, BACK, BACK}
#define UP_LATER {WAITS_NONE, REFUSED, BACK, BACK}
#define UP_LATER_ON {WAITS_NONE, WAITS_OK, BACK, BACK}

/* Shards that are out come back at once when it is lost. */
#define SHARDS {WAITS_NONE, BACK, WAITS_LATE("the first is 0|" CHIEF "|silent"), BACK}
#define SHARDS_ON WAITS_LATER(BACK)
#define SHARD {WAITS_NONE, LOST, WAITS_LATE("the first is 0|" CHIEF "|silent"), LOST}

#define JOB_MISSING WAITS_LATE("the job is not done|" CHIEF "|is not connected|refused")
#define JOB                                                                        \
    {JOB_MISSING, JOB_MISSING, WAITS_LATE("the job is not done|" CHIEF "|has not"), \
     JOB_MISSING}

/* The worker that is to stop is not there either, so it is waited for on. */
#define STOP(words) WAITS_LATE("/job:worker/task:1 was not stopped|" CHIEF "|" words)
#define STOPS                                                                      \
    {STOP("connected|refused"), STOP("connected|refused"),                         \
     STOP("has not answered"), STOP("was lost before the answer came|refused")}

/* Nothing is waited for before there is an error to be raised. */
#define RAISES {WAITS_NONE, LOST, BACK, BACK}
/* clang-format on */

/* There is no waiting for a chief that has given nothing. */
#define UNNEEDED WAITS_SOON(-MU_EUNAVAILABLE, CHIEF "|is not connected")
#define UNKNOWN WAITS_END(-MU_ENOTFOUND, "no closure named")
#define NOBODY WAITS_END(-MU_ENOTFOUND, "there is no /job:worker/task:1")

static const struct waits_row rows[] = {
    {"mu_coordinator_open", take_coordinator, await_chief, UP, UP_ON, 0},
    {"mu_coordinator_wait_for_chief", wait_for_chief, take_coordinator, UP_LATER,
     UP_LATER_ON, 0},
    {"mu_coordinator_schedule", schedule, queue_one, PLACE, RESULTS_ON, 0},
    {"mu_coordinator_schedule_with", schedule_with, queue_one, PLACE, RESULTS_ON, 0},
    {"mu_per_worker_open", open_per_worker, take_coordinator, ASKS_LATER,
     ASKS_LATER_ON(WAITS_OK), 0},
    {"mu_per_worker_open_shared", open_per_worker_shared, take_coordinator, ASKS_LATER,
     ASKS_LATER_ON(WAITS_OK), 0},
    {"mu_per_worker_open_values", open_per_worker_values, take_coordinator, ASKS_LATER,
     ASKS_LATER_ON(WAITS_OK), 0},
    {"mu_coordinator_explain", explain, take_coordinator, ASKS_LATER,
     ASKS_LATER_ON(UNKNOWN), 0},
    {"mu_coordinator_drain",
     drain_worker,
     take_coordinator,
     {WAITS_NONE, REFUSED, WHY_LOST, LOST},
     ASKS_LATER_ON(NOBODY),
     0},
    {"mu_coordinator_drain_task",
     drain_task,
     take_coordinator,
     {WAITS_NONE, REFUSED, WHY_LOST, LOST},
     ASKS_LATER_ON(NOBODY),
     0},
    {"mu_coordinator_forget", forget, take_coordinator, ASKS_LATER,
     ASKS_LATER_ON(WAITS_OK), 0},
    {"mu_coordinator_join", join, queue_one, RESULTS, RESULTS_ON, 0},
    {"mu_remote_value_fetch", fetch_value, queue_one, RESULTS, RESULTS_ON, 0},
    {"mu_remote_value_fetch_all", fetch_all, queue_one, RESULTS, RESULTS_ON, 0},
    {"mu_coordinator_fetch", fetch_structure, queue_structure, RESULTS, RESULTS_ON, 0},
    {"mu_coordinator_done", ask_done, queue_one, RAISES, RAISES, 0},
    {"mu_coordinator_close", close_coordinator, queue_one, WAITS_LATER(BACK),
     WAITS_LATER(BACK), 0},
    {"mu_dataset_schedule", schedule_dataset, schedule_one, SHARD, RESULTS_ON, 0},
    {"mu_dataset_join", join_dataset, schedule_one, SHARDS, SHARDS_ON, 0},
    {"mu_node_status", await_chief, await_chief, ASKS, ASKS_ON(WAITS_OK), 0},
    {"mu_node_explain", explain_node, await_chief, ASKS, ASKS_ON(UNKNOWN), 0},
    {"mu_node_wait_job", wait_job, await_chief, JOB, WAITS_ALL(WAITS_CLOSED(NULL)), 0},
    {"mu_node_close", close_node, await_chief, WAITS_ALL(WAITS_OK),
     WAITS_ALL(WAITS_SELF(0, "")), 0},
    {"mu_node_main", serve_main, NULL, WAITS_ALL(WAITS_NONE),
     WAITS_ALL(WAITS_CLOSED(NULL)), 0},
    {"mu_node_drain",
     drain_node,
     await_chief,
     {UNNEEDED, UNNEEDED, WHY_LOST, LOST},
     {UNNEEDED, UNNEEDED, LOST, LOST},
     IS_WORKER},
    {"mu_server_stop_remote", stop_remote, await_chief, STOPS,
     WAITS_ALL(WAITS_CLOSED(NULL)), 0},
};

static const struct waits_kind chief = {
    .name = "chief",
    .rows = rows,
    .rows_count = sizeof rows / sizeof rows[0],
    .workers = 2,
    .peers_count = 1,
    .log = "waiting for " CHIEF,
    .start = start_chief,
    .open = open_client,
};

int main(void)
{
    static const struct waits_kind *const kinds[] = {&chief};

    return waits_main(kinds, 1);
}
