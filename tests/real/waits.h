/* Calls that wait, tried one by one while the process that they need is not what it
 * should be: each is a row of a table, and each row is tried in eight scenes.
 *
 * In a scene all rows are called at the same time, each on a thread and, usually, with a
 * node of its own, and there is one peer, a process of its own, which all of them need.
 * In half of the scenes the calls have a limit; in the others they have none: then either
 * a limit of the node's ends them, or they have to be waiting still when the log has
 * named who is missing, and end once the peer is back. */
#ifndef MUSTER_TESTS_REAL_WAITS_H
#define MUSTER_TESTS_REAL_WAITS_H

#include "tests/real/cli.h"
#include "tests/real/launch.h"
#include "tests/real/nodes.h"

#include <inttypes.h>
#include <stdatomic.h>

enum {
    WAITS_ROWS_MAX = 40,
    WAITS_TASKS_MAX = 40, /* of one cluster */
    WAITS_PEERS_MAX = 3,
    WAITS_KINDS_MAX = 4,     /* tables of a program */
    WAITS_AT_ONCE = 4,       /* scenes */
    WAITS_TIMEOUT_MS = 1000, /* of the calls that have one */
    WAITS_SLACK_MS = 9000,   /* and how much later they may end on a busy machine */
    WAITS_SILENCE_MS = 2000,
    WAITS_WORDS_MAX = 256
};

enum waits_state {
    WAITS_NEVER,   /* nobody ever listened at the peer's address */
    WAITS_ABSENT,  /* it was there, and was killed before the call */
    WAITS_STOPPED, /* it was there, and stands still */
    WAITS_MIDDLE,  /* it stands still, and is killed while the call waits */
    WAITS_STATES
};

static const char *const waits_state_names[WAITS_STATES] = {"never there", "absent",
                                                            "stopped", "gone meanwhile"};

/* How a call has to end; all zero: it is not tried. */
struct waits_end {
    const char *words; /* of the message; several, all of which have to be there,
                          have '|' between them */
    int code;
    bool at_once;    /* well before its limit */
    bool by_itself;  /* without a limit: before the peer is back */
    bool is_closed;  /* nothing but closing its node ends it */
    const char *log; /* without a limit: what the log has, while it waits; NULL:
                        its scene's words */
};

/* clang-format off */
#define WAITS_NONE {NULL, 0, false, false, false, NULL}
#define WAITS_END(code, words) {words, code, false, false, false, NULL}
#define WAITS_OK WAITS_END(0, "")
#define WAITS_LATE(words) WAITS_END(-MU_EDEADLINE, words)
#define WAITS_SOON(code, words) {words, code, true, true, false, NULL}
#define WAITS_SELF(code, words) {words, code, false, true, false, NULL}
#define WAITS_LOGS(code, words, log) {words, code, false, false, false, log}
#define WAITS_CLOSED(log) {"closed", -MU_ECLOSED, false, false, true, log}

/* The same in all four states. */
#define WAITS_ALL(end) {end, end, end, end}
#define WAITS_LATER(end) {WAITS_NONE, end, end, end}
/* clang-format on */

/* What a row's call is made with; filled in by its `prepare`. */
struct waits_env {
    struct waits_scene *scene;
    unsigned number; /* of the row */
    char type[16];
    int index;
    char task[64];
    mu_node *node;
    mu_coordinator *coordinator;
    mu_remote_value *value;
    mu_value *structure;
    mu_per_worker *per_worker;
    mu_dataset *dataset;
    mu_variable *variable;
    mu_clock *clock;
    mu_table *table;
    mu_kv_watch *watch;
    mu_session *session;
    mu_server *server;
    uint64_t version;
    mu_address address;
    mu_stream_reader *reader;
};

typedef int (*waits_call_fn)(struct waits_env *env, int64_t timeout_ms, mu_error *error);

struct waits_row {
    const char *function; /* of the public headers, tests/check_waits.py knows */
    waits_call_fn call;
    waits_call_fn prepare; /* while the peer is there; NULL: nothing */
    struct waits_end limited[WAITS_STATES];
    struct waits_end unlimited[WAITS_STATES];
    unsigned flags; /* of the program's own */
};

struct waits_scene {
    const struct waits_kind *kind;
    enum waits_state state;
    bool is_limited;
    char json[2048];
    mu_cluster *cluster;
    struct nodes_log log;
    struct cli peers[WAITS_PEERS_MAX];
    struct waits_env envs[WAITS_ROWS_MAX];
    void *own; /* of the program */
};

/* What the scenes of one table have in common. */
struct waits_kind {
    const char *name;
    const struct waits_row *rows;
    unsigned rows_count;
    int workers; /* tasks of the cluster beside the chief */
    int servers;
    unsigned peers_count;
    const char *log;      /* names the peer */
    const char *log_task; /* in the log of this task; NULL: of each row's own */

    /* Start a peer, when the scene begins or later. */
    void (*start)(struct waits_scene *scene, unsigned peer);

    /* The node of a row, before `prepare`. NULL: none. */
    void (*open)(struct waits_scene *scene, struct waits_env *env);

    /* All are to know that the peer is absent, before they are called. May be NULL. */
    void (*settle)(struct waits_scene *scene);

    /* With the peer, others may come back. May be NULL. */
    void (*revive)(struct waits_scene *scene);

    /* Before and after all rows. May be NULL. */
    void (*begin)(struct waits_scene *scene);
    void (*end)(struct waits_scene *scene);
};

/* ---- Threads ---- */

struct waits_thread {
    struct waits_env *env;
    const struct waits_row *row;
    pthread_t thread;
    atomic_bool has_begun;
    atomic_bool has_ended;
    uint64_t began_ms;
    uint64_t ended_ms;
    int64_t timeout_ms;
    int rv;
    mu_error error;
};

static inline void *waits_run(void *arg)
{
    struct waits_thread *t = arg;

    t->began_ms = cli_now_ms();
    atomic_store(&t->has_begun, true);
    t->rv = t->row->call(t->env, t->timeout_ms, &t->error);
    t->ended_ms = cli_now_ms();
    atomic_store(&t->has_ended, true);
    return NULL;
}

/* ---- What is expected ---- */

static inline const struct waits_end *waits_end_of(const struct waits_scene *scene,
                                                   const struct waits_row *row)
{
    const struct waits_end *end =
        scene->is_limited ? &row->limited[scene->state] : &row->unlimited[scene->state];

    return end->words == NULL ? NULL : end;
}

static inline bool waits_has_words(const char *text, const char *words)
{
    char word[WAITS_WORDS_MAX];

    while (*words != '\0') {
        size_t length = strcspn(words, "|");

        assert_true(length < sizeof word);
        memcpy(word, words, length);
        word[length] = '\0';
        if (strstr(text, word) == NULL)
            return false;
        words += length + (words[length] == '|');
    }
    return true;
}

static inline void waits_show(const struct waits_thread *t, const char *words)
{
    const struct waits_scene *scene = t->env->scene;

    (void)fprintf(stderr, "%s, peer %s, %s limit: %s after %" PRIu64 " ms: %s \"%s\"\n",
                  t->row->function, waits_state_names[scene->state],
                  scene->is_limited ? "with" : "without", words,
                  t->ended_ms - t->began_ms, mu_err_name(t->rv), t->error.message);
}

/* 1 when it is not as it should be. */
static inline unsigned waits_check(const struct waits_thread *t)
{
    const struct waits_scene *scene = t->env->scene;
    const struct waits_end *end = waits_end_of(scene, t->row);
    uint64_t most_ms =
        (end->at_once ? WAITS_TIMEOUT_MS / 2 : (uint64_t)t->timeout_ms) + WAITS_SLACK_MS;

    if (t->rv != end->code) {
        waits_show(t, "another code");
    } else if (t->rv != 0 && !waits_has_words(t->error.message, end->words)) {
        waits_show(t, "other words");
    } else if (t->timeout_ms >= 0 && t->ended_ms - t->began_ms > most_ms) {
        waits_show(t, "too late");
    } else if (t->timeout_ms >= 0 && t->rv == -MU_EDEADLINE &&
               t->ended_ms - t->began_ms < WAITS_TIMEOUT_MS / 2) {
        waits_show(t, "too soon");
    } else {
        if (getenv("WAITS_SHOW") != NULL)
            waits_show(t, "right");
        return 0;
    }
    (void)fprintf(stderr, "    expected: %s \"%s\"\n", mu_err_name(end->code),
                  end->words);
    return 1;
}

/* ---- Scenes ---- */

static inline void waits_cluster(struct waits_scene *scene)
{
    const struct {
        const char *type;
        int count;
    } jobs[] = {
        {"chief", 1}, {"worker", scene->kind->workers}, {"ps", scene->kind->servers}};
    size_t at = 0;
    int count = 0;
    mu_error error;

    for (size_t i = 0; i < sizeof jobs / sizeof jobs[0]; i++) {
        if (jobs[i].count == 0)
            continue;
        at += (size_t)snprintf(scene->json + at, sizeof scene->json - at, "%s\"%s\":[",
                               at == 0 ? "{" : ",", jobs[i].type);
        for (int j = 0; j < jobs[i].count; j++) {
            assert_true(++count < WAITS_TASKS_MAX);
            at += (size_t)snprintf(scene->json + at, sizeof scene->json - at,
                                   "%s\"127.0.0.1:%d\"", j == 0 ? "" : ",", ports_free());
        }
        at += (size_t)snprintf(scene->json + at, sizeof scene->json - at, "]");
    }
    (void)snprintf(scene->json + at, sizeof scene->json - at, "}");
    if (mu_cluster_parse(scene->json, strlen(scene->json), "test", &error,
                         &scene->cluster) != 0)
        fail_msg("%s", error.message);
}

static inline void waits_options(struct waits_scene *scene, struct waits_env *env,
                                 mu_node_options *options)
{
    mu_node_options_init(options);
    options->cluster = scene->cluster;
    options->task_type = env->type;
    options->task_index = env->index;
    options->log = nodes_note;
    options->log_user = &scene->log;
    options->heartbeat_ms = 200;
    options->silence_ms = WAITS_SILENCE_MS;
}

static inline void waits_open_with(struct waits_env *env, const mu_node_options *options)
{
    mu_error error;

    if (mu_node_open(options, &error, &env->node) != 0)
        fail_msg("%s: %s", env->task, error.message);
}

/* For `open`: who the row's node is. */
static inline void waits_name(struct waits_env *env, const char *type, int index)
{
    (void)snprintf(env->type, sizeof env->type, "%s", type);
    env->index = index;
    (void)snprintf(env->task, sizeof env->task, "/job:%s/task:%d", type, index);
}

static inline void waits_signal(struct waits_scene *scene, int number)
{
    for (unsigned i = 0; i < scene->kind->peers_count; i++) {
        siginfo_t info;

        cli_kill(&scene->peers[i], number);
        if (number == SIGKILL)
            (void)cli_wait(&scene->peers[i]);
        else if (number == SIGSTOP) /* all of its threads */
            assert_int_equal(waitid(P_PID, (id_t)scene->peers[i].pid, &info, WSTOPPED),
                             0);
    }
}

static inline void waits_start_peers(struct waits_scene *scene)
{
    for (unsigned i = 0; i < scene->kind->peers_count; i++)
        scene->kind->start(scene, i);
}

/* The nodes are opened before the first of them has to be somewhere. */
static inline void waits_prepare(struct waits_scene *scene)
{
    const struct waits_kind *kind = scene->kind;
    mu_error error = {0};

    for (unsigned i = 0; i < kind->rows_count; i++) {
        scene->envs[i].scene = scene;
        scene->envs[i].number = i;
        if (waits_end_of(scene, &kind->rows[i]) != NULL && kind->open != NULL)
            kind->open(scene, &scene->envs[i]);
    }
    for (unsigned i = 0; i < kind->rows_count; i++) {
        const struct waits_row *row = &kind->rows[i];

        if (scene->state != WAITS_NEVER && row->prepare != NULL &&
            waits_end_of(scene, row) != NULL &&
            row->prepare(&scene->envs[i], SOON_MS, &error) != 0)
            fail_msg("%s, before the peer is %s: %s", row->function,
                     waits_state_names[scene->state], error.message);
    }
}

/* Everything that needs the peer, and then the peer becomes what the scene says. */
static inline void waits_begin(struct waits_scene *scene)
{
    const struct waits_kind *kind = scene->kind;

    if (kind->begin != NULL)
        kind->begin(scene);
    if (scene->state != WAITS_NEVER)
        waits_start_peers(scene);
    waits_prepare(scene);
    if (scene->state == WAITS_ABSENT) {
        waits_signal(scene, SIGKILL);
        if (kind->settle != NULL)
            kind->settle(scene);
    } else if (scene->state != WAITS_NEVER) {
        waits_signal(scene, SIGSTOP);
    }
}

static inline void waits_call(struct waits_scene *scene, struct waits_thread *threads)
{
    for (unsigned i = 0; i < scene->kind->rows_count; i++) {
        struct waits_thread *t = &threads[i];

        t->row = &scene->kind->rows[i];
        t->env = &scene->envs[i];
        t->timeout_ms = scene->is_limited ? WAITS_TIMEOUT_MS : -1;
        if (waits_end_of(scene, t->row) == NULL)
            continue;
        assert_int_equal(pthread_create(&t->thread, NULL, waits_run, t), 0);
        while (!atomic_load(&t->has_begun))
            nodes_pause();
    }
    if (scene->state != WAITS_MIDDLE)
        return;
    for (int i = 0; i < 100; i++) /* they are with their actors now, most likely */
        nodes_pause();
    waits_signal(scene, SIGKILL);
}

static inline void waits_close_node(struct waits_env *env)
{
    mu_node *node = env->node;
    mu_error error;

    env->node = NULL;
    if (env->server != NULL && mu_server_stop(env->server, 0, &error) != 0)
        fail_msg("%s: %s", env->task, error.message);
    if (node != NULL && mu_node_close(node, SOON_MS, &error) != 0)
        fail_msg("%s: %s", env->task, error.message);
}

static inline bool waits_ends_soon(struct waits_thread *t)
{
    uint64_t deadline_ms = cli_now_ms() + CLI_SOON_MS;

    while (!atomic_load(&t->has_ended) && cli_now_ms() < deadline_ms)
        nodes_pause();
    if (atomic_load(&t->has_ended))
        return true;
    t->ended_ms = cli_now_ms();
    waits_show(t, "no end");
    return false;
}

/* Whether a line of this task's node has the words. */
static inline bool waits_is_logged(struct waits_scene *scene, const char *task,
                                   const char *words)
{
    bool found = false;

    (void)pthread_mutex_lock(&scene->log.lock);
    for (char *line = scene->log.text; !found && *line != '\0';) {
        char *end = strchr(line, '\n');

        *end = '\0';
        found = strncmp(line, task, strlen(task)) == 0 && waits_has_words(line, words);
        *end = '\n';
        line = end + 1;
    }
    (void)pthread_mutex_unlock(&scene->log.lock);
    return found;
}

/* It waits, and its node says for whom. */
static inline unsigned waits_check_waiting(struct waits_scene *scene,
                                           struct waits_thread *t)
{
    const struct waits_end *end = waits_end_of(scene, t->row);
    const char *words = end->log == NULL ? scene->kind->log : end->log;
    const char *task =
        scene->kind->log_task == NULL ? t->env->task : scene->kind->log_task;
    uint64_t deadline_ms = cli_now_ms() + CLI_SOON_MS;

    while (!waits_is_logged(scene, task, words) && cli_now_ms() < deadline_ms &&
           !atomic_load(&t->has_ended))
        nodes_pause();
    if (atomic_load(&t->has_ended)) {
        waits_show(t, "it did not wait");
        return 1;
    }
    if (waits_is_logged(scene, task, words))
        return 0;
    t->ended_ms = cli_now_ms();
    waits_show(t, "it waits silently");
    (void)fprintf(stderr, "    expected in the log of %s: \"%s\"\n", task, words);
    return 1;
}

static inline void waits_revive(struct waits_scene *scene)
{
    if (scene->state == WAITS_STOPPED)
        waits_signal(scene, SIGCONT);
    else
        waits_start_peers(scene);
    if (scene->kind->revive != NULL)
        scene->kind->revive(scene);
}

/* Calls without a limit. */
static inline unsigned waits_watch(struct waits_scene *scene,
                                   struct waits_thread *threads)
{
    unsigned wrong = 0;

    for (unsigned i = 0; i < scene->kind->rows_count; i++) {
        const struct waits_end *end = waits_end_of(scene, threads[i].row);

        if (end != NULL && end->by_itself)
            wrong += waits_ends_soon(&threads[i]) ? 0 : 1;
    }
    for (unsigned i = 0; i < scene->kind->rows_count; i++) {
        const struct waits_end *end = waits_end_of(scene, threads[i].row);

        if (end != NULL && !end->by_itself)
            wrong += waits_check_waiting(scene, &threads[i]);
    }
    waits_revive(scene);
    return wrong;
}

static inline void waits_free(struct waits_env *env)
{
    mu_remote_value_free(env->value);
    mu_value_free(env->structure);
    mu_stream_close(env->reader);
    mu_per_worker_close(env->per_worker);
    mu_dataset_close(env->dataset);
    mu_clock_close(env->clock);
    mu_table_close(env->table);
    mu_variable_close(env->variable);
    mu_kv_watch_close(env->watch);
    mu_session_close(env->session);
    waits_close_node(env);
    mu_coordinator_close(env->coordinator);
    mu_server_free(env->server);
}

static inline void waits_end(struct waits_scene *scene)
{
    for (unsigned i = 0; i < scene->kind->peers_count; i++)
        if (scene->peers[i].pid != 0 && !scene->peers[i].ended) {
            cli_kill(&scene->peers[i], SIGKILL);
            (void)cli_wait(&scene->peers[i]);
        }
    for (unsigned i = 0; i < scene->kind->rows_count; i++)
        waits_free(&scene->envs[i]);
    if (scene->kind->end != NULL)
        scene->kind->end(scene);
    mu_cluster_free(scene->cluster);
    (void)pthread_mutex_destroy(&scene->log.lock);
}

/* All rows of a table in one state of the peer. */
static inline void waits_play(const struct waits_kind *kind, enum waits_state state,
                              bool is_limited)
{
    static struct waits_scene scene;
    static struct waits_thread threads[WAITS_ROWS_MAX];
    unsigned wrong = 0;

    assert_true(kind->rows_count <= WAITS_ROWS_MAX);
    memset(&scene, 0, sizeof scene);
    memset(threads, 0, sizeof threads);
    scene.kind = kind;
    scene.state = state;
    scene.is_limited = is_limited;
    (void)pthread_mutex_init(&scene.log.lock, NULL);
    waits_cluster(&scene);
    waits_begin(&scene);
    waits_call(&scene, threads);
    if (!is_limited)
        wrong += waits_watch(&scene, threads);
    for (unsigned i = 0; i < kind->rows_count; i++) {
        if (waits_end_of(&scene, threads[i].row) == NULL)
            continue;
        if (waits_end_of(&scene, threads[i].row)->is_closed)
            waits_close_node(threads[i].env);
        if (!waits_ends_soon(&threads[i])) {
            waits_close_node(threads[i].env);
            if (!waits_ends_soon(&threads[i]))
                abort(); /* its thread cannot be ended */
        }
        (void)pthread_join(threads[i].thread, NULL);
        wrong += waits_check(&threads[i]);
    }
    if (wrong > 0 && getenv("WAITS_LOG") != NULL)
        (void)fprintf(stderr, "the log:\n%s\n", scene.log.text);
    waits_end(&scene);
    if (wrong > 0)
        fail_msg("%u of the calls did not do as they should", wrong);
}

/* ---- The program ---- */

struct waits_test {
    const struct waits_kind *kind;
    enum waits_state state;
    bool is_limited;
    char name[96];
    pid_t pid; /* of its process; 0: not begun, or over */
    FILE *output;
};

static inline void waits_test(void **state)
{
    const struct waits_test *test = *state;

    waits_play(test->kind, test->state, test->is_limited);
}

/* In a process of its own. */
static inline void waits_begin_test(struct waits_test *test)
{
    const struct CMUnitTest unit = {
        .name = test->name, .test_func = waits_test, .initial_state = test};

    test->output = tmpfile();
    assert_non_null(test->output);
    (void)fflush(NULL);
    test->pid = fork();
    assert_true(test->pid >= 0);
    if (test->pid > 0)
        return;
    (void)dup2(fileno(test->output), STDOUT_FILENO);
    (void)dup2(fileno(test->output), STDERR_FILENO);
    exit(_cmocka_run_group_tests(test->kind->name, &unit, 1, NULL, NULL));
}

/* What it has written is shown as a whole. */
static inline void waits_end_test(struct waits_test *test, int status)
{
    int byte;

    test->pid = 0;
    rewind(test->output);
    while ((byte = getc(test->output)) != EOF)
        (void)putchar(byte);
    (void)fclose(test->output);
    if (WIFSIGNALED(status))
        (void)printf("\"%s\" was ended by signal %d\n", test->name, WTERMSIG(status));
}

/* Wait for one of them: whether it went well. */
static inline bool waits_await_test(struct waits_test *tests, size_t count)
{
    int status;
    pid_t pid = wait(&status);

    for (size_t i = 0; i < count; i++)
        if (tests[i].pid == pid)
            waits_end_test(&tests[i], status);
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

/* The eight scenes of each table, some of them at the same time: they wait, mostly. The
 * exit code: how many failed. */
static inline int waits_main(const struct waits_kind *const *kinds, size_t count)
{
    static struct waits_test tests[WAITS_KINDS_MAX * 2 * WAITS_STATES];
    size_t tests_count = count * 2 * WAITS_STATES;
    int failed = 0;

    assert_true(count <= WAITS_KINDS_MAX);
    for (size_t i = 0; i < tests_count; i++) {
        struct waits_test *test = &tests[i];

        test->kind = kinds[i / (2 * WAITS_STATES)];
        test->state = (enum waits_state)(i / 2 % WAITS_STATES);
        test->is_limited = i % 2 == 0;
        (void)snprintf(test->name, sizeof test->name, "%s: %s, %s limit",
                       test->kind->name, waits_state_names[test->state],
                       test->is_limited ? "with" : "without");
        if (i >= WAITS_AT_ONCE)
            failed += !waits_await_test(tests, tests_count);
        waits_begin_test(test);
    }
    for (size_t i = 0; i < WAITS_AT_ONCE && i < tests_count; i++)
        failed += !waits_await_test(tests, tests_count);
    return failed;
}

#endif
