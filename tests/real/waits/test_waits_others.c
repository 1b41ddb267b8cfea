/* Calls that need another task, while the service and its host are there: the other task
 * is never there, absent, stopped or gone in the middle (waits.h). */
#include "tests/real/waits.h"

#include <muster/resolver.h>

enum { DEAD_MS = 6000, SUSPECT_MS = 4000, RECONNECT_MS = 3000 };

/* ---- The service, the other task, and those who need it ---- */

static void chief_options(struct waits_scene *scene, struct waits_env *chief,
                          mu_node_options *options)
{
    waits_name(chief, "chief", 0);
    waits_options(scene, chief, options);
    options->coordinated_jobs = "ps";
    options->suspect_ms = SUSPECT_MS;
    options->dead_ms = DEAD_MS;
    options->reconnect_ms = RECONNECT_MS;
}

static void begin(struct waits_scene *scene)
{
    static struct waits_env chief;
    mu_node_options options;

    memset(&chief, 0, sizeof chief);
    chief.scene = scene;
    chief_options(scene, &chief, &options);
    waits_open_with(&chief, &options);
    scene->own = &chief;
}

/* Until the host counts it as lost. */
static void settle(struct waits_scene *scene)
{
    struct waits_env *chief = scene->own;
    const char *state = "";
    bool is_lost = false;
    mu_error error;
    size_t size;

    for (int i = 0; i < SOON_MS && !is_lost; i++) {
        mu_value *tasks = NULL;

        if (mu_tasks_states(chief->node, "ps:0", SOON_MS, &error, &tasks) != 0)
            fail_msg("%s", error.message);
        (void)mu_value_get_string(mu_value_find(mu_value_at(tasks, 0), "state"), &state,
                                  &size);
        is_lost = strcmp(state, "connected") != 0 && strcmp(state, "suspect") != 0;
        mu_value_free(tasks);
        nodes_pause();
    }
}

static void end(struct waits_scene *scene)
{
    waits_close_node(scene->own);
}

static void start_other(struct waits_scene *scene, unsigned peer)
{
    (void)peer;
    cli_start(&scene->peers[0], NULL, "node", "--cluster", scene->json, "--task", "ps:0",
              "--heartbeat-ms", "200", "--silence-ms", "2000", "--coordinated-jobs", "ps",
              NULL);
}

/* A host waits for so long for those who may come over from a former one. */
static void await_all_that_may_come(const struct waits_scene *scene)
{
    static uint64_t first_ms;

    first_ms = first_ms == 0 ? cli_now_ms() : first_ms;
    while (scene->state == WAITS_NEVER && cli_now_ms() < first_ms + DEAD_MS)
        nodes_pause();
}

static void open_agent(struct waits_scene *scene, struct waits_env *env)
{
    mu_node_options options;
    mu_error error;

    waits_name(env, "worker", (int)env->number);
    waits_options(scene, env, &options);
    options.coordinated_jobs = "ps";
    options.dead_ms = DEAD_MS;
    options.suspect_ms = SUSPECT_MS;
    waits_open_with(env, &options);
    if (mu_agent_register(env->node, 0, SOON_MS, &error) != 0)
        fail_msg("%s", error.message);
    await_all_that_may_come(scene);
}

/* ---- Before ---- */

static int see_it(struct waits_env *env, int64_t timeout_ms, mu_error *error)
{
    mu_value *tasks = NULL;
    int rv = mu_tasks_wait(env->node, "ps:0", timeout_ms, error, &tasks);

    mu_value_free(tasks);
    tasks = NULL;
    if (rv == 0)
        rv = mu_tasks_watch(env->node, "ps:0", 0, timeout_ms, error, &env->version,
                            &tasks);
    mu_value_free(tasks);
    return rv;
}

/* ---- The calls ---- */

static int register_all(struct waits_env *env, int64_t timeout_ms, mu_error *error)
{
    return mu_agent_register(env->node, 1, timeout_ms, error);
}

/* What `rv` came with. */
static int drop(int rv, mu_value **value)
{
    mu_value_free(*value);
    return rv;
}

static int tasks_wait(struct waits_env *env, int64_t timeout_ms, mu_error *error)
{
    mu_value *tasks = NULL;

    return drop(mu_tasks_wait(env->node, "ps:0", timeout_ms, error, &tasks), &tasks);
}

static int tasks_watch(struct waits_env *env, int64_t timeout_ms, mu_error *error)
{
    mu_value *tasks = NULL;

    return drop(mu_tasks_watch(env->node, "ps:0", env->version, timeout_ms, error,
                               &env->version, &tasks),
                &tasks);
}

static int tasks_alive(struct waits_env *env, int64_t timeout_ms, mu_error *error)
{
    mu_value *alive = NULL;
    char set[64];

    (void)snprintf(set, sizeof set, "ps:0,worker:%d", env->index);
    return drop(mu_tasks_alive(env->node, set, timeout_ms, error, &alive), &alive);
}

static int barrier(struct waits_env *env, int64_t timeout_ms, mu_error *error)
{
    mu_barrier_options options;
    char set[64];

    (void)snprintf(set, sizeof set, "ps:0,worker:%d", env->index);
    mu_barrier_options_init(&options);
    options.tasks = set;
    options.timeout_ms = timeout_ms;
    return mu_barrier_wait(env->node, set, &options, error);
}

static int notice(struct waits_env *env, int64_t timeout_ms, mu_error *error)
{
    return mu_preemption_notify(env->node, "of the test", 10 * 60 * 1000, timeout_ms,
                                error);
}

static int get_key(struct waits_env *env, int64_t timeout_ms, mu_error *error)
{
    mu_kv_item item = {0};

    return mu_kv_get(env->node, "of/nobody", timeout_ms, error, &item);
}

static int open_session(struct waits_env *env, int64_t timeout_ms, mu_error *error)
{
    mu_session_options options;

    mu_session_options_init(&options);
    options.timeout_ms = timeout_ms;
    options.recovery_wait_ms = 1000;
    return mu_session_open_worker(env->node, &options, error, &env->session);
}

static void note_progress(void *user, const char *line)
{
    struct waits_env *env = user;

    nodes_note(&env->scene->log, MU_LOG_INFO, env->task, "resolver", line);
}

static int count_accelerators(struct waits_env *env, int64_t timeout_ms, mu_error *error)
{
    mu_resolver *resolver = NULL;
    mu_value *counts = NULL;
    int rv =
        mu_resolver_new_static(env->scene->cluster, NULL, NULL, -1, error, &resolver);

    if (rv == 0)
        mu_resolver_on_progress(resolver, note_progress, env);
    if (rv == 0)
        rv = mu_resolver_accelerators(resolver, env->node, "ps", 0, timeout_ms, error,
                                      &counts);
    mu_resolver_free(resolver);
    return drop(rv, &counts);
}

/* ---- The table ---- */

#define OTHER "/job:ps/task:0"

#define AT_ONCE WAITS_SOON(0, "")
#define DONE WAITS_SELF(0, "")
#define MISSING(words) WAITS_LATE(words "|" OTHER)
#define NOTED(words) WAITS_LOGS(0, "", "waiting: |" words "|" OTHER)

/* One that stands still counts as connected until it is suspect. */
/* clang-format off */
#define HERE(words) {MISSING(words), MISSING(words), AT_ONCE, AT_ONCE}
#define HERE_ON(words) {NOTED(words), NOTED(words), AT_ONCE, AT_ONCE}

/* One that is connected is waited for, and one that stands still until it is dead. */
#define HEARD(words) {AT_ONCE, AT_ONCE, MISSING(words), MISSING(words)}
#define HEARD_ON {AT_ONCE, AT_ONCE, DONE, DONE}
/* clang-format on */

/* A barrier waits for one that can recover, in any state. */
#define ARRIVED "barrier|1 of 2 tasks arrived"

static const struct waits_row rows[] = {
    {"mu_agent_register", register_all, NULL, HERE("0 of 1 tasks have registered"),
     HERE_ON("0 of 1 tasks have registered"), 0},
    {"mu_tasks_wait", tasks_wait, see_it, HERE("0 of 1 tasks are connected"),
     HERE_ON("0 of 1 tasks are connected"), 0},
    {"mu_tasks_watch",
     tasks_watch,
     see_it,
     {WAITS_NONE, AT_ONCE, WAITS_LATE("no state of 1 tasks (ps:0) has changed"), AT_ONCE},
     {WAITS_NONE, AT_ONCE, DONE, AT_ONCE},
     0},
    {"mu_tasks_alive", tasks_alive, see_it, HEARD("connected and have not asked"),
     HEARD_ON, 0},
    {"mu_barrier_wait", barrier, see_it, WAITS_ALL(MISSING(ARRIVED)),
     WAITS_ALL(WAITS_CLOSED("waiting: |" ARRIVED "|" OTHER)), 0},
    {"mu_preemption_notify", notice, see_it, HEARD("have not reported the step"),
     HEARD_ON, 0},
    {"mu_kv_get", get_key, see_it,
     WAITS_ALL(WAITS_LATE("key \"of/nobody\" was not put|/job:chief/task:0|connected")),
     WAITS_ALL(WAITS_CLOSED("waiting: key \"of/nobody\" was not put|connected")), 0},
    {"mu_session_open_worker", open_session, see_it,
     WAITS_ALL(WAITS_LATE("the chief has not said|/job:chief/task:0 is connected")),
     WAITS_ALL(WAITS_CLOSED("the chief has not said|/job:chief/task:0 is connected")), 0},
    {"mu_resolver_accelerators",
     count_accelerators,
     see_it,
     {MISSING(""), MISSING(""), AT_ONCE, AT_ONCE},
     {WAITS_LOGS(0, "", "try |" OTHER), WAITS_LOGS(0, "", "try |" OTHER), AT_ONCE,
      AT_ONCE},
     0},
};

static const struct waits_kind others = {
    .name = "another task",
    .rows = rows,
    .rows_count = sizeof rows / sizeof rows[0],
    .workers = 9,
    .servers = 1,
    .peers_count = 1,
    .log = OTHER,
    .start = start_other,
    .open = open_agent,
    .begin = begin,
    .settle = settle,
    .end = end,
};

/* ---- Agreeing about a step ---- */

/* The notice is not waited for: the step is. */
static int reach(struct waits_env *env, int64_t timeout_ms, mu_error *error)
{
    int stop;

    (void)timeout_ms;
    (void)notice(env, 0, error);
    return mu_preemption_reached(env->node, 5, error, &stop);
}

static const struct waits_row agreeing_rows[] = {
    {"mu_preemption_reached",
     reach,
     see_it,
     WAITS_ALL(WAITS_NONE),
     {AT_ONCE, AT_ONCE, DONE, DONE},
     0},
};

static const struct waits_kind agreeing = {
    .name = "a step to stop at",
    .rows = agreeing_rows,
    .rows_count = 1,
    .workers = 1,
    .servers = 1,
    .peers_count = 1,
    .log = OTHER,
    .start = start_other,
    .open = open_agent,
    .begin = begin,
    .settle = settle,
    .end = end,
};

int main(void)
{
    static const struct waits_kind *const kinds[] = {&others, &agreeing};

    return waits_main(kinds, 2);
}
