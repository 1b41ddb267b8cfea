/* Calls that need the host of the coordination service, tried while it is never there,
 * absent, stopped or gone in the middle (waits.h). The service's store is a journal: what
 * was asked before the host went is answered by the one that comes. */
#include "tests/real/waits.h"

/* ---- The host, and those who need it ---- */

static void begin(struct waits_scene *scene)
{
    static char folder[64];

    cli_folder(folder, sizeof folder);
    scene->own = folder;
}

static void end(struct waits_scene *scene)
{
    char path[96];

    (void)snprintf(path, sizeof path, "%s/store", (char *)scene->own);
    cli_remove_store(path);
    assert_int_equal(rmdir(scene->own), 0);
}

static void start_host(struct waits_scene *scene, unsigned peer)
{
    char store[96];

    (void)peer;
    (void)snprintf(store, sizeof store, "journal:%s/store", (char *)scene->own);
    cli_start(&scene->peers[0], NULL, "node", "--cluster", scene->json, "--task",
              "chief:0", "--heartbeat-ms", "200", "--silence-ms", "2000",
              "--coordinated-jobs", "chief", "--suspect-ms", "2000", "--dead-ms", "4000",
              "--store", store, "--store-sync", "0", "--recoverable", "none", NULL);
}

enum { IS_CLIENT = 1, DEAD_MS = 4000 };

static void open_agent(struct waits_scene *scene, struct waits_env *env)
{
    bool is_client = (scene->kind->rows[env->number].flags & IS_CLIENT) != 0;
    mu_node_options options;

    waits_name(env, is_client ? "client" : "worker", (int)env->number);
    waits_options(scene, env, &options);
    options.coordinated_jobs = "chief";
    options.suspect_ms = DEAD_MS / 2;
    options.dead_ms = DEAD_MS;
    waits_open_with(env, &options);
}

/* ---- Before ---- */

static int be_registered(struct waits_env *env, int64_t timeout_ms, mu_error *error)
{
    return mu_agent_register(env->node, 0, timeout_ms, error);
}

static int be_away(struct waits_env *env, int64_t timeout_ms, mu_error *error)
{
    int rv = be_registered(env, timeout_ms, error);

    return rv != 0 ? rv : mu_agent_leave(env->node, timeout_ms, error);
}

static int be_wrong(struct waits_env *env, int64_t timeout_ms, mu_error *error)
{
    int rv = be_registered(env, timeout_ms, error);

    return rv != 0 ? rv : mu_agent_set_error(env->node, -MU_EABORTED, "of the test");
}

static int watch_key(struct waits_env *env, int64_t timeout_ms, mu_error *error)
{
    mu_kv_event event = {0};
    int rv = be_registered(env, timeout_ms, error);

    if (rv == 0)
        rv = mu_kv_watch_open(env->node, "watched", 0, timeout_ms, error, &env->watch);
    if (rv == 0)
        rv = mu_kv_watch_next(env->watch, timeout_ms, error, &event);
    if (rv == 0)
        mu_kv_event_clear(&event);
    return rv;
}

static void ignore(void *user, int code, const mu_error *error)
{
    (void)user;
    (void)code;
    (void)error;
}

/* Of the barriers: the host itself does not come to them. */
static const char *set_of(const struct waits_env *env, char *out, size_t size)
{
    (void)snprintf(out, size, "chief:0,worker:%d", env->index);
    return out;
}

static int enter_barrier(struct waits_env *env, int64_t timeout_ms, mu_error *error)
{
    mu_barrier_options options;
    char set[64];
    int rv = be_registered(env, timeout_ms, error);

    mu_barrier_options_init(&options);
    options.tasks = set_of(env, set, sizeof set);
    return rv != 0
               ? rv
               : mu_barrier_wait_async(env->node, "cancelled", &options, ignore, NULL);
}

static int open_chief_session(struct waits_env *env, int64_t timeout_ms, mu_error *error)
{
    mu_session_options options;

    mu_session_options_init(&options);
    options.timeout_ms = timeout_ms;
    options.name = env->task;
    options.recovery_wait_ms = 1000;
    return mu_session_open_chief(env->node, &options, error, &env->session);
}

/* ---- The calls ---- */

static int register_again(struct waits_env *env, int64_t timeout_ms, mu_error *error)
{
    return mu_agent_register(env->node, 0, timeout_ms, error);
}

static int report_error(struct waits_env *env, int64_t timeout_ms, mu_error *error)
{
    return mu_agent_report_error(env->node, -MU_EUNKNOWN, "of the test", timeout_ms,
                                 error);
}

static int reset(struct waits_env *env, int64_t timeout_ms, mu_error *error)
{
    return mu_agent_reset(env->node, timeout_ms, error);
}

static int leave(struct waits_env *env, int64_t timeout_ms, mu_error *error)
{
    return mu_agent_leave(env->node, timeout_ms, error);
}

/* What `rv` came with. */
static int drop(int rv, mu_value **value)
{
    mu_value_free(*value);
    return rv;
}

static int tasks_states(struct waits_env *env, int64_t timeout_ms, mu_error *error)
{
    mu_value *tasks = NULL;

    return drop(mu_tasks_states(env->node, NULL, timeout_ms, error, &tasks), &tasks);
}

static int actors_list(struct waits_env *env, int64_t timeout_ms, mu_error *error)
{
    mu_value *tasks = NULL;

    return drop(mu_actors_list(env->node, timeout_ms, error, &tasks), &tasks);
}

static int tasks_wait(struct waits_env *env, int64_t timeout_ms, mu_error *error)
{
    mu_value *tasks = NULL;

    return drop(mu_tasks_wait(env->node, "chief:0", timeout_ms, error, &tasks), &tasks);
}

static int tasks_watch(struct waits_env *env, int64_t timeout_ms, mu_error *error)
{
    mu_value *tasks = NULL;

    return drop(mu_tasks_watch(env->node, "chief:0", 0, timeout_ms, error, &env->version,
                               &tasks),
                &tasks);
}

static int tasks_devices(struct waits_env *env, int64_t timeout_ms, mu_error *error)
{
    mu_value *devices = NULL;

    return drop(mu_tasks_devices(env->node, timeout_ms, error, &devices), &devices);
}

static int tasks_alive(struct waits_env *env, int64_t timeout_ms, mu_error *error)
{
    mu_value *alive = NULL;

    return drop(mu_tasks_alive(env->node, env->task, timeout_ms, error, &alive), &alive);
}

static int put(struct waits_env *env, int64_t timeout_ms, mu_error *error)
{
    return mu_kv_put(env->node, "put", "1", 1, MU_KV_OVERWRITE, 0, timeout_ms, error,
                     NULL);
}

static int get(struct waits_env *env, int64_t timeout_ms, mu_error *error)
{
    mu_kv_item item = {0};
    int rv = mu_kv_get(env->node, "put", timeout_ms, error, &item);

    if (rv == 0)
        mu_kv_item_clear(&item);
    return rv;
}

static int try_get(struct waits_env *env, int64_t timeout_ms, mu_error *error)
{
    mu_kv_item item = {0};

    return mu_kv_try_get(env->node, "nothing", timeout_ms, error, &item);
}

static int increment(struct waits_env *env, int64_t timeout_ms, mu_error *error)
{
    int64_t number;

    return mu_kv_increment(env->node, "number", 1, timeout_ms, error, &number);
}

static int delete (struct waits_env *env, int64_t timeout_ms, mu_error *error)
{
    return mu_kv_delete(env->node, "nothing", timeout_ms, error, NULL);
}

static int list(struct waits_env *env, int64_t timeout_ms, mu_error *error)
{
    mu_value *items = NULL;

    return drop(mu_kv_list(env->node, "nothing", timeout_ms, error, &items), &items);
}

/* A call whose answer comes later. */
struct later {
    atomic_bool is_there;
    int code;
    mu_error error;
};

static int await(struct later *later, mu_error *error)
{
    while (!atomic_load(&later->is_there))
        nodes_pause();
    *error = later->error;
    return later->code;
}

static void on_answer(void *user, const mu_kv_response *answer)
{
    struct later *later = user;

    later->code = answer->code;
    if (answer->code != 0)
        later->error = *answer->error;
    atomic_store(&later->is_there, true);
}

static int ask(struct waits_env *env, int64_t timeout_ms, mu_error *error)
{
    const mu_kv_request asked = {
        .operation = MU_KV_GET, .key = "put", .timeout_ms = timeout_ms};
    struct later later = {.code = 0};
    int rv = mu_kv_request_async(env->node, &asked, on_answer, &later, NULL);

    return rv != 0 ? mu_error_set(error, rv, "not begun") : await(&later, error);
}

static const mu_kv_change change = {
    .operation = MU_KV_PUT, .key = "changed", .value = "1", .size = 1};
static const mu_kv_transaction transaction = {.changes = &change, .changes_count = 1};

static int transact(struct waits_env *env, int64_t timeout_ms, mu_error *error)
{
    return mu_kv_transact(env->node, &transaction, timeout_ms, error, NULL);
}

static int begin_transaction(struct waits_env *env, int64_t timeout_ms, mu_error *error)
{
    struct later later = {.code = 0};
    int rv = mu_kv_transact_async(env->node, &transaction, timeout_ms, on_answer, &later,
                                  error, NULL);

    return rv != 0 ? rv : await(&later, error);
}

static int lock(struct waits_env *env, int64_t timeout_ms, mu_error *error)
{
    mu_lock *held = NULL;
    int rv = mu_lock_acquire(env->node, "lock", timeout_ms, error, &held);

    return rv != 0 ? rv : mu_lock_release(held, timeout_ms, error);
}

static int list_runs(struct waits_env *env, int64_t timeout_ms, mu_error *error)
{
    mu_value *runs = NULL;
    int rv = mu_runs_list(env->node, timeout_ms, error, &runs);

    mu_value_free(runs);
    return rv;
}

static int clear_runs(struct waits_env *env, int64_t timeout_ms, mu_error *error)
{
    return mu_runs_clear(env->node, NULL, MU_RUNS_CLEAR_ENDED, timeout_ms, error, NULL);
}

static int report_other(struct waits_env *env, int64_t timeout_ms, mu_error *error)
{
    return mu_tasks_report_error(env->node, "worker:99", -MU_EABORTED, "test", timeout_ms,
                                 error);
}

static int reset_other(struct waits_env *env, int64_t timeout_ms, mu_error *error)
{
    return mu_tasks_reset(env->node, "worker:99", timeout_ms, error);
}

static int open_watch(struct waits_env *env, int64_t timeout_ms, mu_error *error)
{
    return mu_kv_watch_open(env->node, "watched", 0, timeout_ms, error, &env->watch);
}

static int next(struct waits_env *env, int64_t timeout_ms, mu_error *error)
{
    mu_kv_event event = {0};
    int rv = mu_kv_watch_next(env->watch, timeout_ms, error, &event);

    if (rv == 0)
        mu_kv_event_clear(&event);
    return rv;
}

static int barrier(struct waits_env *env, int64_t timeout_ms, mu_error *error)
{
    mu_barrier_options options;
    char set[64];

    mu_barrier_options_init(&options);
    options.tasks = set_of(env, set, sizeof set);
    options.timeout_ms = timeout_ms;
    return mu_barrier_wait(env->node, "waited", &options, error);
}

static void on_barrier(void *user, int code, const mu_error *error)
{
    struct later *later = user;

    later->code = code;
    if (code != 0)
        later->error = *error;
    atomic_store(&later->is_there, true);
}

static int begin_barrier(struct waits_env *env, int64_t timeout_ms, mu_error *error)
{
    struct later later = {.code = 0};
    mu_barrier_options options;
    char set[64];
    int rv;

    mu_barrier_options_init(&options);
    options.tasks = set_of(env, set, sizeof set);
    options.timeout_ms = timeout_ms;
    rv = mu_barrier_wait_async(env->node, "begun", &options, on_barrier, &later);
    return rv != 0 ? mu_error_set(error, rv, "not begun") : await(&later, error);
}

static int cancel_barrier(struct waits_env *env, int64_t timeout_ms, mu_error *error)
{
    return mu_barrier_cancel(env->node, "cancelled", timeout_ms, error);
}

static int notice(struct waits_env *env, int64_t timeout_ms, mu_error *error)
{
    return mu_preemption_notify(env->node, "of the test", 10 * 60 * 1000, timeout_ms,
                                error);
}

static int wait_preemption(struct waits_env *env, int64_t timeout_ms, mu_error *error)
{
    mu_preemption preemption;

    return mu_preemption_wait(env->node, 0, 0, timeout_ms, error, &preemption);
}

static int open_session(struct waits_env *env, int64_t timeout_ms, mu_error *error)
{
    mu_session_options options;

    mu_session_options_init(&options);
    options.timeout_ms = timeout_ms;
    options.recovery_wait_ms = 1000;
    return mu_session_open(env->node, &options, error, &env->session);
}

static int open_worker_session(struct waits_env *env, int64_t timeout_ms, mu_error *error)
{
    mu_session_options options;

    mu_session_options_init(&options);
    options.timeout_ms = timeout_ms;
    options.recovery_wait_ms = 1000;
    return mu_session_open_worker(env->node, &options, error, &env->session);
}

static int close_session(struct waits_env *env, int64_t timeout_ms, mu_error *error)
{
    (void)timeout_ms;
    (void)error;
    mu_session_close(env->session);
    env->session = NULL;
    return 0;
}

/* ---- The table ---- */

#define HOST "/job:chief/task:0"

/* At the limit the words are about the host: one that stands still is silent at first,
 * and is lost then. */
#define NEVER WAITS_LATE(HOST "|was never connected|refused")
#define ABSENT WAITS_LATE(HOST "|is not connected since|refused")
#define SILENT WAITS_LATE(HOST "|, which hosts the service, ")
#define GONE WAITS_LATE(HOST "|is not connected since")
/* clang-format off */
#define ASKED {NEVER, ABSENT, SILENT, GONE}
#define ASKED_LATER {WAITS_NONE, ABSENT, SILENT, GONE}
/* clang-format on */

/* Without one, everything is asked again. */
#define ANSWERED WAITS_ALL(WAITS_OK)
#define ANSWERED_LATER WAITS_LATER(WAITS_OK)
#define UNANSWERED WAITS_ALL(WAITS_CLOSED(NULL))
#define UNKNOWN WAITS_ALL(WAITS_END(-MU_ENOTFOUND, "/job:worker/task:99 is not known"))
#define MISSING WAITS_ALL(WAITS_END(-MU_ENOTFOUND, "key \"nothing\" is not there"))

/* What is done here in any case. */
#define DONE WAITS_SELF(0, "")
#define AT_ONCE WAITS_SOON(0, "")

/* Only a task that is connected reports. */
#define NO_REPORT(words) WAITS_SOON(-MU_EPRECONDITION, HOST "|" words)

/* The words of a session tell what is known of the chief. */
#define NO_WORD WAITS_LATE("session|has not said|" HOST)

static const struct waits_row rows[] = {
    {"mu_agent_register", register_again, be_away, ASKED, ANSWERED, 0},
    {"mu_agent_report_error",
     report_error,
     be_registered,
     {NO_REPORT("never connected"), NO_REPORT("is not connected"), SILENT, GONE},
     {NO_REPORT("never connected"), NO_REPORT("is not connected"), WAITS_OK, WAITS_OK},
     IS_CLIENT},
    {"mu_agent_reset", reset, be_wrong, WAITS_LATER(WAITS_OK), WAITS_LATER(DONE), 0},
    {"mu_agent_leave",
     leave,
     be_registered,
     {AT_ONCE, ABSENT, SILENT, GONE},
     {AT_ONCE, WAITS_OK, WAITS_OK, WAITS_OK},
     0},
    {"mu_tasks_states", tasks_states, be_registered, ASKED, ANSWERED, 0},
    {"mu_actors_list", actors_list, be_registered, ASKED, ANSWERED, 0},
    {"mu_tasks_wait", tasks_wait, be_registered, ASKED, ANSWERED, 0},
    {"mu_tasks_watch", tasks_watch, be_registered, ASKED, ANSWERED, 0},
    {"mu_tasks_devices", tasks_devices, be_registered, ASKED, ANSWERED, 0},
    {"mu_tasks_alive", tasks_alive, be_registered, ASKED, ANSWERED, 0},
    {"mu_kv_put", put, be_registered, ASKED, ANSWERED, 0},
    {"mu_kv_get", get, be_registered, ASKED, ANSWERED, 0},
    {"mu_kv_try_get", try_get, be_registered, ASKED, MISSING, 0},
    {"mu_kv_increment", increment, be_registered, ASKED, ANSWERED, 0},
    {"mu_kv_delete", delete, be_registered, ASKED, ANSWERED, 0},
    {"mu_kv_list", list, be_registered, ASKED, ANSWERED, 0},
    {"mu_kv_request_async", ask, be_registered, ASKED, ANSWERED, 0},
    {"mu_kv_transact", transact, be_registered, ASKED, ANSWERED, 0},
    {"mu_kv_transact_async", begin_transaction, be_registered, ASKED, ANSWERED, 0},
    {"mu_runs_list", list_runs, be_registered, ASKED, ANSWERED, 0},
    {"mu_runs_clear", clear_runs, be_registered, ASKED, ANSWERED, 0},
    {"mu_lock_acquire", lock, be_registered, ASKED, ANSWERED, 0},
    {"mu_tasks_report_error", report_other, be_registered, ASKED, UNKNOWN, 0},
    {"mu_tasks_reset", reset_other, be_registered, ASKED, UNKNOWN, 0},
    {"mu_kv_watch_open",
     open_watch,
     be_registered,
     {NEVER, ABSENT, AT_ONCE, AT_ONCE},
     {WAITS_OK, WAITS_OK, AT_ONCE, AT_ONCE},
     0},
    {"mu_kv_watch_next", next, watch_key, ASKED_LATER, WAITS_LATER(WAITS_CLOSED(NULL)),
     0},
    {"mu_barrier_wait", barrier, be_registered, ASKED, UNANSWERED, 0},
    {"mu_barrier_wait_async", begin_barrier, be_registered, ASKED, UNANSWERED, 0},
    {"mu_barrier_cancel", cancel_barrier, enter_barrier, ASKED_LATER, ANSWERED_LATER, 0},
    {"mu_preemption_notify", notice, be_registered, ASKED, ANSWERED, 0},
    {"mu_preemption_wait", wait_preemption, be_registered, ASKED, ANSWERED, 0},
    {"mu_session_open", open_session, be_registered, WAITS_ALL(NO_WORD), UNANSWERED, 0},
    {"mu_session_open_chief", open_chief_session, be_registered, ASKED, ANSWERED, 0},
    {"mu_session_open_worker", open_worker_session, be_registered, WAITS_ALL(NO_WORD),
     UNANSWERED, 0},
    {"mu_session_close", close_session, open_chief_session, WAITS_LATER(WAITS_OK),
     WAITS_LATER(DONE), 0},
};

static const struct waits_kind service = {
    .name = "service",
    .rows = rows,
    .rows_count = sizeof rows / sizeof rows[0],
    .workers = 35,
    .peers_count = 1,
    .log = "waiting for " HOST,
    .start = start_host,
    .open = open_agent,
    .begin = begin,
    .end = end,
};

int main(void)
{
    static const struct waits_kind *const kinds[] = {&service};

    return waits_main(kinds, 1);
}
