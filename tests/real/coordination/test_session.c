/* Sessions over real nodes: who initializes, who waits, what is restored, and a chief
 * that is started again. */
#include "tests/real/files.h"
#include "tests/real/nodes.h"

#include <muster/checkpoint.h>
#include <muster/compat/session.h>
#include <muster/coordination.h>

#include <stdatomic.h>

/* ---- What the program's functions saw ---- */

struct seen {
    atomic_int inits;
    atomic_int restores;
    atomic_int local_inits;
    atomic_int ready_asks;
    atomic_int not_ready; /* so often `ready` says no */
    int fails;            /* what init returns */
    char path[256];
};

static int on_init(mu_node *node, void *user, mu_error *ret_error)
{
    struct seen *seen = user;

    (void)node;
    seen->inits++;
    return seen->fails == 0 ? 0 : mu_error_set(ret_error, seen->fails, "no data");
}

static int on_restore(mu_node *node, const char *path, void *user, mu_error *ret_error)
{
    struct seen *seen = user;

    (void)node;
    (void)ret_error;
    (void)snprintf(seen->path, sizeof seen->path, "%s", path);
    seen->restores++;
    return 0;
}

static int on_ready(mu_node *node, void *user, mu_error *ret_error)
{
    struct seen *seen = user;

    (void)node;
    seen->ready_asks++;
    if (atomic_load(&seen->not_ready) == 0)
        return 0;
    seen->not_ready--;
    return mu_error_set(ret_error, -MU_EAGAIN, "variable w is not there");
}

static int on_local_init(mu_node *node, void *user, mu_error *ret_error)
{
    (void)node;
    (void)ret_error;
    ((struct seen *)user)->local_inits++;
    return 0;
}

static void session_options(struct seen *seen, mu_session_options *options)
{
    mu_session_options_init(options);
    options->init = on_init;
    options->restore = on_restore;
    options->ready = on_ready;
    options->local_init = on_local_init;
    options->user = seen;
    options->timeout_ms = SOON_MS;
    options->recovery_wait_ms = 50;
}

/* A thread that opens a worker's session. */
struct opener {
    pthread_t thread;
    mu_node *node;
    mu_session_options options;
    mu_session *session;
    int rv;
    mu_error error;
};

static void *open_session(void *arg)
{
    struct opener *opener = arg;

    opener->rv =
        mu_session_open(opener->node, &opener->options, &opener->error, &opener->session);
    return NULL;
}

static void begin_named(struct opener *opener, mu_node *node, struct seen *seen,
                        const char *name)
{
    *opener = (struct opener){.node = node, .rv = 1};
    session_options(seen, &opener->options);
    opener->options.name = name;
    assert_int_equal(pthread_create(&opener->thread, NULL, open_session, opener), 0);
}

static void begin_open(struct opener *opener, mu_node *node, struct seen *seen)
{
    begin_named(opener, node, seen, "session");
}

static mu_session *end_open(struct opener *opener)
{
    assert_int_equal(pthread_join(opener->thread, NULL), 0);
    if (opener->rv != 0)
        fail_msg("%s", opener->error.message);
    return opener->session;
}

static mu_session *open_chief(mu_node *node, const mu_session_options *options)
{
    mu_session *session = NULL;
    mu_error error = {0};

    if (mu_session_open(node, options, &error, &session) != 0)
        fail_msg("%s", error.message);
    return session;
}

static int is_in(const char *text, const char *words)
{
    return strstr(text, words) != NULL;
}

static void expect_failure(mu_node *node, const mu_session_options *options, int code,
                           const char *words)
{
    mu_session *session = NULL;
    mu_error error = {0};
    int rv = mu_session_open(node, options, &error, &session);

    if (rv != code || !is_in(error.message, words))
        fail_msg("%d: %s", rv, error.message);
    assert_null(session);
}

/* ---- Tests ---- */

/* The chief's parameters cannot be made: those who wait say so at once, and go on when it
 * has tried again. That it waits is in the log of a worker after seconds. */
TEST(test_chief_fails)
{
    struct nodes nodes;
    struct seen chiefs = {.fails = -MU_EDATALOSS};
    struct seen workers = {.fails = 0};
    struct opener opener;
    mu_session_options options;
    mu_session *chief;

    nodes_init(&nodes, 1, 0);
    opener = (struct opener){.node = nodes_open(&nodes, "worker", 0), .rv = 1};
    session_options(&workers, &opener.options);
    opener.options.recovery_wait_ms = 30000;
    assert_int_equal(pthread_create(&opener.thread, NULL, open_session, &opener), 0);
    (void)nodes_open(&nodes, "chief", 0);
    session_options(&chiefs, &options);
    expect_failure(nodes.open[1], &options, -MU_EDATALOSS, "no data");
    nodes_wait_log(&nodes, "/job:worker/task:0 session: session: the chief has failed, "
                           "and is waited for: session session: init: no data");
    nodes_wait_log(&nodes, "/job:worker/task:0 session: session: the chief has not said "
                           "that the parameters are ready after ");
    chiefs.fails = 0;
    chief = open_chief(nodes.open[1], &options);
    mu_session_close(end_open(&opener));
    mu_session_close(chief);
    nodes_done(&nodes);
}

/* The job ends, well or not, and no session comes any more. */
TEST(test_job_ends_while_workers_wait)
{
    static const int codes[] = {0, -MU_EDATALOSS};

    for (size_t i = 0; i < 2; i++) {
        struct nodes nodes;
        struct seen seen = {.fails = 0};
        struct opener opener;
        mu_node *chief;

        nodes_init(&nodes, 1, 0);
        chief = nodes_open(&nodes, "chief", 0);
        begin_open(&opener, nodes_open(&nodes, "worker", 0), &seen);
        nodes_wait_log(&nodes, "/job:chief/task:0 is connected and was heard ");
        (void)mu_node_finish_job(chief, codes[i], codes[i] == 0 ? "" : "no data", 100,
                                 NULL);
        assert_int_equal(pthread_join(opener.thread, NULL), 0);
        assert_int_equal(opener.rv, i == 0 ? -MU_EABORTED : -MU_EDATALOSS);
        assert_true(is_in(opener.error.message,
                          i == 0 ? "the job is done, and the chief has not said"
                                 : "the job has failed: no data"));
        nodes_done(&nodes);
    }
}

/* Workers wait for the chief's word, and say so in the log. */
TEST(test_workers_wait)
{
    struct nodes nodes;
    struct seen chiefs = {.fails = 0};
    struct seen workers = {.fails = 0};
    struct opener openers[2];
    mu_session_options options;
    mu_session *chief;

    nodes_init(&nodes, 2, 0);
    begin_open(&openers[0], nodes_open(&nodes, "worker", 0), &workers);
    begin_open(&openers[1], nodes_open(&nodes, "worker", 1), &workers);
    nodes_wait_log(&nodes, "session: session: the chief has not said that the parameters "
                           "are ready after ");
    (void)nodes_open(&nodes, "chief", 0);
    nodes_wait_log(&nodes, "/job:chief/task:0 is connected and was heard ");
    assert_int_equal(workers.local_inits, 0);
    session_options(&chiefs, &options);
    chief = open_chief(nodes.open[2], &options);
    assert_int_equal(chiefs.inits, 1);
    assert_int_equal(chiefs.restores, 0);
    assert_int_equal(chiefs.local_inits, 1);
    assert_int_equal(chiefs.ready_asks, 1);
    assert_true(mu_session_is_chief(chief));
    assert_string_equal(mu_session_restored(chief), "");
    for (size_t i = 0; i < 2; i++) {
        mu_session *session = end_open(&openers[i]);

        assert_false(mu_session_is_chief(session));
        assert_ptr_equal(mu_session_node(session), openers[i].node);
        mu_session_close(session);
    }
    assert_int_equal(workers.inits, 0);
    assert_int_equal(workers.local_inits, 2);
    mu_session_close(chief);
    mu_session_close(NULL);
    nodes_done(&nodes);
}

TEST(test_options)
{
    static const char *const filters[] = {"/job:ps"};
    static const char *const wrong[] = {"ps"};
    struct nodes nodes;
    struct seen seen = {.fails = 0};
    mu_session_config config;
    mu_session_options good;
    mu_session_options o;
    mu_session *session;
    mu_node *chief;

    nodes_init(&nodes, 0, 0);
    chief = nodes_open(&nodes, "chief", 0);
    session_options(&seen, &good);
    o = good;
    o.checkpoint_dir = "/tmp";
    o.checkpoint_file = "/tmp/x";
    expect_failure(chief, &o, -MU_EINVALID,
                   "checkpoint_dir \"/tmp\" and checkpoint_file "
                   "\"/tmp/x\", expected one of them");
    o = good;
    o.name = "";
    expect_failure(chief, &o, -MU_EINVALID, "a session's name is \"\"");
    o = good;
    o.recovery_wait_ms = 0;
    expect_failure(chief, &o, -MU_EINVALID, "recovery_wait_ms is 0");
    o = good;
    mu_session_config_init(&config);
    config.device_filters = wrong;
    config.device_filters_count = 1;
    o.config = &config;
    expect_failure(chief, &o, -MU_EINVALID, "device_filters[0] is \"ps\"");
    assert_int_equal(seen.inits, 0);
    config.inter_op_threads = 1;
    config.intra_op_threads = 2;
    config.device_filters = filters;
    session = open_chief(chief, &o);
    assert_int_equal(mu_session_get_config(session)->intra_op_threads, 2);
    assert_string_equal(mu_session_get_config(session)->device_filters[0], "/job:ps");
    mu_session_close(session);
    nodes_done(&nodes);
}

/* What the program's functions return. */
TEST(test_functions_fail)
{
    struct nodes nodes;
    struct seen seen = {.fails = -MU_EDATALOSS};
    mu_session_options options;
    mu_session *session;
    mu_node *chief;

    nodes_init(&nodes, 0, 0);
    chief = nodes_open(&nodes, "chief", 0);
    session_options(&seen, &options);
    expect_failure(chief, &options, -MU_EDATALOSS, "session session: init: no data");
    seen.fails = 5;
    expect_failure(chief, &options, -MU_EUNKNOWN, "session session: init: ");
    seen.fails = 0;
    seen.not_ready = 1;
    expect_failure(chief, &options, -MU_EPRECONDITION,
                   "session session: the parameters "
                   "are not ready: variable w is not there");

    /* None of them has to be there. */
    mu_session_options_init(&options);
    session = open_chief(chief, &options);
    mu_session_close(session);
    nodes_done(&nodes);
}

/* A worker asks again until all is ready. */
TEST(test_worker_not_ready)
{
    struct nodes nodes;
    struct seen chiefs = {.fails = 0};
    struct seen workers = {.fails = 0};
    mu_session_options options;
    struct opener opener;
    mu_session *chief;
    mu_node *worker;

    nodes_init(&nodes, 1, 0);
    worker = nodes_open(&nodes, "worker", 0);
    session_options(&chiefs, &options);
    chief = open_chief(nodes_open(&nodes, "chief", 0), &options);
    workers.not_ready = 3;
    begin_open(&opener, worker, &workers);
    mu_session_close(end_open(&opener));
    assert_int_equal(workers.ready_asks, 4);
    assert_int_equal(workers.local_inits, 1);
    nodes_wait_log(&nodes, "session: session: the parameters are not ready: variable w "
                           "is not there after ");

    workers.not_ready = 1000;
    session_options(&workers, &options);
    options.timeout_ms = 200;
    expect_failure(worker, &options, -MU_EDEADLINE,
                   "session session: the parameters "
                   "are not ready: variable w is not there after ");
    mu_session_close(chief);
    nodes_done(&nodes);
}

/* The limit's words say who was waited for, and when it was heard. */
TEST(test_limits)
{
    struct nodes nodes;
    struct seen seen = {.fails = 0};
    mu_session_options options;
    mu_node_options lonely;
    struct opener opener;
    mu_node *worker;

    nodes_init(&nodes, 1, 0);
    worker = nodes_open(&nodes, "worker", 0);
    session_options(&seen, &options);
    options.timeout_ms = 100;
    expect_failure(worker, &options, -MU_EDEADLINE,
                   "session session: the chief has not "
                   "said that the parameters are ready after 1");
    expect_failure(worker, &options, -MU_EDEADLINE,
                   "nothing is known of /job:chief/task:0: ");
    (void)nodes_open(&nodes, "chief", 0);
    expect_failure(worker, &options, -MU_EDEADLINE,
                   "session session: the chief has not "
                   "said that the parameters are ready after 1");
    options.timeout_ms = 3000;
    expect_failure(worker, &options, -MU_EDEADLINE,
                   "/job:chief/task:0 is connected and was heard ");

    /* A node that is closed meanwhile. */
    begin_named(&opener, worker, &seen, "closed");
    nodes_wait_log(&nodes, "session: closed: the chief has not said");
    nodes_close(&nodes, worker);
    assert_int_equal(pthread_join(opener.thread, NULL), 0);
    assert_int_equal(opener.rv, -MU_ECLOSED);

    /* Without the coordination service a worker has nobody to ask. */
    nodes_options(&nodes, "worker", 0, &lonely);
    lonely.service_hosts = "none";
    worker = nodes_open_with(&nodes, &lonely);
    expect_failure(worker, &options, -MU_EPRECONDITION,
                   "there is no coordination service");
    nodes_done(&nodes);
}

/* ---- Checkpoints ---- */

static void break_checkpoint(const char *folder, const char *name)
{
    char path[512];
    FILE *file;

    (void)snprintf(path, sizeof path, "%s/%s/manifest.json", folder, name);
    file = fopen(path, "r+b");
    assert_non_null(file);
    assert_int_equal(fseek(file, 70, SEEK_SET), 0);
    assert_int_equal(fputc('#', file), '#');
    (void)fclose(file);
}

/* Variable "w" is 1 in the checkpoint of step 1, and 2 in that of step 2. */
static mu_variable *save_two(mu_node *chief, const char *folder)
{
    static const int64_t one = 1;
    const mu_variable_spec spec = {.name = "w", .dtype = MU_I64, .initial = &one};
    mu_checkpoint_options saving;
    mu_variable *variable = NULL;
    mu_error error;

    assert_int_equal(mu_variable_open(chief, &spec, SOON_MS, &error, &variable), 0);
    mu_checkpoint_options_init(&saving);
    saving.directory = folder;
    assert_int_equal(mu_checkpoint_save(&saving, 1, &variable, 1, NULL, &error, NULL), 0);
    assert_int_equal(mu_variable_add(variable, &one, sizeof one, SOON_MS, &error), 0);
    assert_int_equal(mu_checkpoint_save(&saving, 2, &variable, 1, NULL, &error, NULL), 0);
    return variable;
}

TEST(test_restores)
{
    struct nodes nodes;
    struct seen seen = {.fails = 0};
    mu_session_options options;
    char folder[] = "/tmp/muster-session-XXXXXX";
    char file[64];
    mu_variable *variable;
    mu_session *session;
    struct opener opener;
    mu_error error;
    mu_node *chief;
    mu_node *worker;
    int64_t read = 0;

    assert_non_null(mkdtemp(folder));
    nodes_init(&nodes, 1, 1);
    (void)nodes_open(&nodes, "ps", 0);
    worker = nodes_open(&nodes, "worker", 0);
    chief = nodes_open(&nodes, "chief", 0);
    session_options(&seen, &options);
    options.checkpoint_dir = folder;

    /* A directory without one is as none. */
    session = open_chief(chief, &options);
    assert_int_equal(seen.inits, 1);
    mu_session_close(session);

    variable = save_two(chief, folder);
    (void)snprintf(file, sizeof file, "%s/model-2", folder);
    session = open_chief(chief, &options);
    assert_string_equal(mu_session_restored(session), file);
    assert_string_equal(seen.path, file);
    assert_int_equal(seen.inits, 1);

    /* The worker is told what it was. */
    begin_open(&opener, worker, &seen);
    assert_string_equal(mu_session_restored(end_open(&opener)), file);
    mu_session_close(opener.session);
    mu_session_close(session);

    /* The newest is damaged: the one before, by the library's own way to restore. */
    break_checkpoint(folder, "model-2");
    options.restore = NULL;
    session = open_chief(chief, &options);
    (void)snprintf(file, sizeof file, "%s/model-1", folder);
    assert_string_equal(mu_session_restored(session), file);
    mu_session_close(session);
    assert_int_equal(mu_variable_read(variable, &read, sizeof read, SOON_MS, &error), 0);
    assert_int_equal(read, 1);

    /* All are: nothing is initialized over them. */
    break_checkpoint(folder, "model-1");
    expect_failure(chief, &options, -MU_EDATALOSS, "is no checkpoint that was saved");
    assert_int_equal(seen.inits, 1);
    options.checkpoint_dir = NULL;
    options.checkpoint_file = file;
    expect_failure(chief, &options, -MU_EDATALOSS, "session session: restore: ");
    options.checkpoint_file = "/tmp/there-is-no-such-file";
    expect_failure(chief, &options, -MU_ENOTFOUND, "session session: restore: ");
    mu_variable_close(variable);
    nodes_done(&nodes);
    files_remove_folder(folder);
}

/* ---- A chief that is started again ---- */

/* The service is elsewhere, and remembers the former chief's word until it knows that the
 * chief has gone; nobody takes that for the new one's. */
TEST(test_chief_restarts)
{
    struct nodes nodes;
    struct seen chiefs = {.fails = 0};
    struct seen workers = {.fails = 0};
    mu_session_options options;
    mu_node_options node_options;
    struct opener openers[2];
    mu_session *session;
    mu_node *chief;
    mu_node *worker[2];

    nodes_init(&nodes, 2, 1);
    nodes_options(&nodes, "ps", 0, &node_options);
    node_options.service_hosts = "ps:0";
    (void)nodes_open_with(&nodes, &node_options);
    for (int i = 0; i < 2; i++) {
        node_options.task_type = "worker";
        node_options.task_index = i;
        worker[i] = nodes_open_with(&nodes, &node_options);
    }
    node_options.task_type = "chief";
    node_options.task_index = 0;
    chief = nodes_open_with(&nodes, &node_options);
    session_options(&chiefs, &options);
    session = open_chief(chief, &options);
    begin_open(&openers[0], worker[0], &workers);
    (void)end_open(&openers[0]);

    /* The chief goes without a word of farewell to its session. */
    nodes_close(&nodes, chief);
    chief = nodes_open_with(&nodes, &node_options);
    chiefs.fails = -MU_EABORTED;
    expect_failure(chief, &options, -MU_EABORTED, "no data");
    begin_open(&openers[1], worker[1], &workers);
    nodes_wait_log(&nodes, "/job:worker/task:1 session: session: the chief has not said");
    chiefs.fails = 0;
    mu_session_close(session);
    session = open_chief(chief, &options);
    mu_session_close(end_open(&openers[1]));
    mu_session_close(openers[0].session);
    mu_session_close(session);
    nodes_done(&nodes);
}

/* The service is the chief's, and its store is lost with it, again and again, while a
 * worker waits. */
TEST(test_service_restarts)
{
    struct nodes nodes;
    struct seen chiefs = {.fails = 0};
    struct seen workers = {.fails = 0};
    mu_session_options options;
    struct opener opener;
    mu_session *session;
    mu_node *worker;

    nodes_init(&nodes, 1, 0);
    worker = nodes_open(&nodes, "worker", 0);
    begin_open(&opener, worker, &workers);
    for (int i = 0; i < 3; i++) {
        mu_node *chief = nodes_open(&nodes, "chief", 0);
        mu_value *tasks;
        mu_error error;

        assert_int_equal(mu_tasks_wait(chief, "worker:0", SOON_MS, &error, &tasks), 0);
        mu_value_free(tasks);
        for (int k = 0; k < 150; k++)
            nodes_pause();
        nodes_close(&nodes, chief);
    }
    session_options(&chiefs, &options);
    session = open_chief(nodes_open(&nodes, "chief", 0), &options);
    mu_session_close(end_open(&opener));
    nodes_wait_log(&nodes, "session: session: waits anew: the coordination service at");
    assert_int_equal(mu_agent_state(worker, NULL), MU_AGENT_CONNECTED);
    mu_session_close(session);
    nodes_done(&nodes);
}

TEST_PROGRAM()
