/* A file with the cluster is edited while real nodes run: programs hear of each change,
 * closures go where they may, and a worker that is taken out ends. */
#include "tests/real/nodes.h"

#include <muster/resolver.h>

enum { EVENTS_MAX = 16, TASKS_MAX = 3 };

struct seen {
    pthread_mutex_t lock;
    mu_cluster_change changes[EVENTS_MAX];
    char types[EVENTS_MAX][16];
    size_t counts[EVENTS_MAX]; /* of workers, as the callback saw it */
    int count;
};

struct fixture {
    struct nodes nodes;
    struct seen seen;
    mu_resolver *resolvers[TASKS_MAX];
    char folder[64];
    char path[96];
    int ports[TASKS_MAX]; /* chief, worker 0, worker 1 */
};

static void on_change(mu_node *node, const mu_cluster_change *change, void *user)
{
    struct seen *seen = user;

    (void)pthread_mutex_lock(&seen->lock);
    assert_true(seen->count < EVENTS_MAX);
    seen->changes[seen->count] = *change;
    seen->counts[seen->count] = mu_node_task_count(node, "worker");
    (void)snprintf(seen->types[seen->count], sizeof seen->types[0], "%s", change->type);
    seen->count++;
    (void)pthread_mutex_unlock(&seen->lock);
}

static void wait_seen(struct fixture *f, int count)
{
    int now = 0;

    for (int i = 0; i < SOON_MS && now < count; i++) {
        nodes_pause();
        (void)pthread_mutex_lock(&f->seen.lock);
        now = f->seen.count;
        (void)pthread_mutex_unlock(&f->seen.lock);
    }
    if (now != count)
        fail_msg("%d changes, expected %d; the log:\n%s", now, count, f->nodes.log.text);
}

static void expect_change(const struct fixture *f, int at, int event, int index,
                          size_t workers)
{
    assert_int_equal(f->seen.changes[at].event, event);
    assert_string_equal(f->seen.types[at], "worker");
    assert_int_equal(f->seen.changes[at].index, index);
    assert_int_equal(f->seen.changes[at].is_own, 0);
    assert_int_equal(f->seen.counts[at], workers);
}

static void write_cluster(struct fixture *f, int workers)
{
    char other[128];
    FILE *file;

    (void)snprintf(other, sizeof other, "%s.new", f->path);
    file = fopen(other, "w");
    assert_non_null(file);
    (void)fprintf(file, "{\"chief\":[\"127.0.0.1:%d\"],\"worker\":[\"127.0.0.1:%d\"",
                  f->ports[0], f->ports[1]);
    if (workers == 2)
        (void)fprintf(file, ",\"127.0.0.1:%d\"", f->ports[2]);
    (void)fputs("]}", file);
    assert_int_equal(fclose(file), 0);
    assert_int_equal(rename(other, f->path), 0);
}

static mu_node *open_task(struct fixture *f, const char *type, int index)
{
    char address[64];
    mu_node_options options;
    mu_error error = {0};
    mu_node *node = NULL;
    mu_resolver *resolver = NULL;

    if (mu_resolver_new("file", &error, &resolver) != 0 ||
        mu_resolver_set(resolver, "path", f->path, &error) != 0)
        fail_msg("%s", error.message);
    nodes_options(&f->nodes, type, index, &options);
    (void)snprintf(address, sizeof address, "tcp://127.0.0.1:%d",
                   f->ports[strcmp(type, "chief") == 0 ? 0 : index + 1]);
    options.cluster = NULL;
    options.resolver = resolver;
    options.bind_address = address;
    if (mu_node_open(&options, &error, &node) != 0)
        fail_msg("%s; the log:\n%s", error.message, f->nodes.log.text);
    f->resolvers[f->nodes.open_count] = resolver;
    f->nodes.open[f->nodes.open_count++] = node;
    return node;
}

static int run_index(mu_run *run, void *user)
{
    (void)user;
    mu_run_return(run, mu_value_int(mu_run_worker(run)));
    return 0;
}

static mu_node *open_worker(struct fixture *f, int index)
{
    mu_node *node = open_task(f, "worker", index);

    assert_int_equal(mu_node_register_function(node, "index", run_index, NULL, 0), 0);
    assert_int_equal(mu_node_serve(node), 0);
    return node;
}

static void run_on(mu_coordinator *coordinator, int worker)
{
    mu_closure_options options;
    mu_remote_value *value = NULL;
    mu_value *result = NULL;
    mu_error error = {0};
    int64_t index = -1;

    mu_closure_options_init(&options);
    options.worker = worker;
    if (mu_coordinator_schedule_with(coordinator, "index", NULL, &options, SOON_MS,
                                     &error, &value) != 0 ||
        mu_remote_value_fetch(value, SOON_MS, &error, &result) != 0)
        fail_msg("%s", error.message);
    assert_int_equal(mu_value_get_int(result, &index), 0);
    assert_int_equal(index, worker);
    mu_value_free(result);
    mu_remote_value_free(value);
}

LISTED_TEST(test_added_and_removed)
{
    struct fixture *f = *state;
    mu_coordinator *coordinator;
    mu_node *chief;
    mu_node *late;
    mu_error error = {0};

    write_cluster(f, 1);
    chief = open_task(f, "chief", 0);
    mu_node_on_cluster_change(chief, on_change, &f->seen);
    (void)open_worker(f, 0);
    coordinator = nodes_coordinator(chief);
    run_on(coordinator, 0);

    write_cluster(f, 2);
    wait_seen(f, 1);
    expect_change(f, 0, MU_CLUSTER_TASK_ADDED, 1, 2);
    late = open_worker(f, 1);
    run_on(coordinator, 1);

    write_cluster(f, 1);
    assert_int_equal(mu_node_wait_job(late, SOON_MS, &error), 0);
    assert_int_equal(error.code, 0);
    wait_seen(f, 2);
    expect_change(f, 1, MU_CLUSTER_TASK_REMOVED, 1, 1);
    run_on(coordinator, 0);

    /* Nobody hears of it any more. */
    mu_node_on_cluster_change(chief, NULL, NULL);
    write_cluster(f, 2);
    for (int i = 0; i < SOON_MS && mu_node_task_count(chief, "worker") != 2; i++)
        nodes_pause();
    assert_int_equal(mu_node_task_count(chief, "worker"), 2);
    assert_int_equal(f->seen.count, 2);
    mu_coordinator_close(coordinator);
}

static int set_up(void **state)
{
    static struct fixture fixture;
    struct fixture *f = &fixture;

    memset(f, 0, sizeof *f);
    (void)pthread_mutex_init(&f->nodes.log.lock, NULL);
    (void)pthread_mutex_init(&f->seen.lock, NULL);
    (void)snprintf(f->folder, sizeof f->folder, "/tmp/muster-XXXXXX");
    assert_non_null(mkdtemp(f->folder));
    (void)snprintf(f->path, sizeof f->path, "%.60s/cluster.json", f->folder);
    for (int i = 0; i < TASKS_MAX; i++)
        f->ports[i] = ports_free();
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;
    mu_error error = {0};

    while (f->nodes.open_count > 0) {
        int last = --f->nodes.open_count;

        assert_int_equal(mu_node_close(f->nodes.open[last], SOON_MS, &error), 0);
        mu_resolver_free(f->resolvers[last]);
    }
    (void)unlink(f->path);
    assert_int_equal(rmdir(f->folder), 0);
    (void)pthread_mutex_destroy(&f->seen.lock);
    (void)pthread_mutex_destroy(&f->nodes.log.lock);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_added_and_removed, set_up, tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
