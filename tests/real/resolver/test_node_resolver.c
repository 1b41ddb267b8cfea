/* What a node makes of any resolver: one that is found by itself, several, one that does
 * not answer; and of a loop of the program's own. */
#include "tests/real/find.h"

#include <dlfcn.h>
#include <netdb.h>
#include <uv.h>

TEST_WITH(test_auto, find_set_up_folder, find_tear_down)
{
    find_play_auto(*state, "MUSTER_CLUSTER_DIRECTORY");
    assert_non_null(*state);
}

/* ---- Several sources ---- */

static mu_resolver *unite(mu_resolver *one, mu_resolver *other)
{
    mu_resolver *members[] = {one, other};
    mu_resolver *whole = NULL;
    mu_error error = {0};

    if (mu_resolver_new_union(members, 2, &error, &whole) != 0)
        fail_msg("%s", error.message);
    return whole;
}

static int open_united(struct find *f, mu_resolver *whole, mu_error *ret_error,
                       mu_node **ret_node)
{
    mu_node_options options;

    nodes_options(&f->nodes, "chief", 0, &options);
    options.cluster = NULL;
    options.resolver = whole;
    options.resolve_ms = 3000;
    options.bind_address = "tcp://127.0.0.1:0";
    return mu_node_open(&options, ret_error, ret_node);
}

/* Parameter servers stand in a file, the others tell each other where they are. */
TEST_ON(test_union_with_fixed, struct find *f, find_set_up_folder, find_tear_down)
{
    static const char ps[] = "{\"ps\":[\"127.0.0.1:9\"]}";
    mu_resolver *folder = find_resolver("directory", f->where, 0);
    mu_resolver *fixed = NULL;
    mu_resolver *whole;
    mu_cluster *cluster = NULL;
    mu_error error = {0};
    mu_node *node = NULL;
    char text[128];

    find_set(folder, "tasks", "chief=1");
    assert_int_equal(mu_cluster_parse(ps, strlen(ps), "ps", &error, &cluster), 0);
    assert_int_equal(mu_resolver_new_static(cluster, NULL, NULL, -1, &error, &fixed), 0);
    mu_cluster_free(cluster);
    whole = unite(folder, fixed);
    if (open_united(f, whole, &error, &node) != 0)
        fail_msg("%s", error.message);
    assert_int_equal(mu_node_task_count(node, "chief"), 1);
    assert_int_equal(mu_node_task_count(node, "ps"), 1);
    assert_true(find_read_entry(f, "chief-0", text, sizeof text));
    assert_int_equal(mu_node_close(node, SOON_MS, &error), 0);
    assert_false(find_read_entry(f, "chief-0", text, sizeof text));
    mu_resolver_free(whole);
}

/* A task that tells two sources where it is would be in the cluster twice: that is said,
 * and what was told is taken back from both. */
TEST_ON(test_union_of_two, struct find *f, find_set_up_folder, find_tear_down)
{
    char other[128];
    mu_resolver *first = find_resolver("directory", f->where, 0);
    mu_resolver *second;
    mu_resolver *whole;
    mu_error error = {0};
    mu_node *node = NULL;
    char text[128];

    (void)snprintf(other, sizeof other, "%s-2", f->folder);
    assert_int_equal(mkdir(other, 0700), 0);
    second = find_resolver("directory", other, 0);
    find_set(first, "tasks", "chief=1");
    find_set(second, "tasks", "chief=1");
    whole = unite(first, second);
    assert_int_equal(open_united(f, whole, &error, &node), -MU_EEXISTS);
    if (strstr(error.message, "union: ") == NULL)
        fail_msg("%s", error.message);
    assert_false(find_read_entry(f, "chief-0", text, sizeof text));
    assert_int_equal(rmdir(other), 0);
    mu_resolver_free(whole);
}

/* ---- A loop of the program's own ---- */

struct embedded {
    struct find *f;
    uv_loop_t *loop;
    uv_timer_t timer;
    mu_resolver *resolver;
    mu_node *node;
    unsigned ticks;
    char first[128]; /* what the node has told at first */
    bool has_told_again;
    bool is_closed;
};

static int open_embedded(struct embedded *e, const char *tasks, unsigned resolve_ms,
                         mu_error *ret_error)
{
    mu_node_options options;

    find_set(e->resolver, "tasks", tasks);
    nodes_options(&e->f->nodes, "chief", 0, &options);
    options.cluster = NULL;
    options.resolver = e->resolver;
    options.resolve_ms = resolve_ms;
    options.bind_address = "tcp://127.0.0.1:0";
    options.loop = e->loop;
    return mu_node_open(&options, ret_error, &e->node);
}

static void on_embedded_closed(void *user)
{
    ((struct embedded *)user)->is_closed = true;
}

/* Opening waits on the loop's thread, and runs nothing else of it. What was told is taken
 * back when the time is over. */
static void open_within_the_loop(struct embedded *e)
{
    char text[128];
    mu_error error = {0};

    assert_int_equal(open_embedded(e, "chief=1,worker=1", 500, &error), -MU_EDEADLINE);
    assert_int_equal(e->ticks, 1);
    assert_false(find_read_entry(e->f, "chief-0", text, sizeof text));
    if (open_embedded(e, "chief=1", SOON_MS, &error) != 0)
        fail_msg("%s", error.message);
    assert_true(find_read_entry(e->f, "chief-0", e->first, sizeof e->first));
}

/* Until the node, which runs on this loop, has told again where it is. */
static void on_embedded_tick(uv_timer_t *timer)
{
    struct embedded *e = timer->data;
    char text[128];

    if (++e->ticks == 1)
        open_within_the_loop(e);
    assert_true(find_read_entry(e->f, "chief-0", text, sizeof text));
    e->has_told_again = strcmp(text, e->first) != 0;
    if (!e->has_told_again && e->ticks < SOON_MS / 10)
        return;
    uv_close((uv_handle_t *)timer, NULL);
    mu_node_close_async(e->node, on_embedded_closed, e);
}

TEST_ON(test_programs_loop, struct find *f, find_set_up_folder, find_tear_down)
{
    struct embedded e = {.f = f};
    char text[128];
    uv_loop_t loop;

    assert_int_equal(uv_loop_init(&loop), 0);
    e.loop = &loop;
    e.resolver = find_resolver("directory", f->where, 0);
    (void)uv_timer_init(&loop, &e.timer);
    e.timer.data = &e;
    (void)uv_timer_start(&e.timer, on_embedded_tick, 0, 10);
    (void)uv_run(&loop, UV_RUN_DEFAULT);
    assert_true(e.is_closed);
    assert_true(e.has_told_again);
    assert_false(find_read_entry(f, "chief-0", text, sizeof text));
    assert_int_equal(uv_loop_close(&loop), 0);
    mu_resolver_free(e.resolver);
}

/* A look-up that hangs until it is let go, as with name servers that are away: this takes
 * the place of the system's. */
static struct {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool hangs;
    bool is_released;
} look_up = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

static void hang(void)
{
    (void)pthread_mutex_lock(&look_up.lock);
    look_up.hangs = true;
    while (!look_up.is_released)
        (void)pthread_cond_wait(&look_up.changed, &look_up.lock);
    look_up.hangs = false;
    (void)pthread_cond_signal(&look_up.changed);
    (void)pthread_mutex_unlock(&look_up.lock);
}

/* Whether it hung; it does not from now on. */
static bool release(void)
{
    bool hung;

    (void)pthread_mutex_lock(&look_up.lock);
    hung = look_up.hangs;
    look_up.is_released = true;
    (void)pthread_cond_broadcast(&look_up.changed);
    while (look_up.hangs)
        (void)pthread_cond_wait(&look_up.changed, &look_up.lock);
    (void)pthread_mutex_unlock(&look_up.lock);
    return hung;
}

MU_EXPORT int getaddrinfo(const char *restrict node, const char *restrict service,
                          const struct addrinfo *restrict hints,
                          struct addrinfo **restrict res)
{
    int (*system)(const char *, const char *, const struct addrinfo *,
                  struct addrinfo **);
    void *symbol = dlsym(RTLD_NEXT, "getaddrinfo");

    memcpy(&system, &symbol, sizeof system);
    if (node != NULL && strcmp(node, "hangs.test") == 0) {
        hang();
        return EAI_AGAIN;
    }
    return system(node, service, hints, res);
}

/* Opening takes no longer than it may, whoever does not answer: it is over while the
 * look-up still hangs. */
TEST_ON(test_look_up_that_hangs, struct find *f, find_set_up_folder, find_tear_down)
{
    mu_resolver *resolver = NULL;
    mu_node_options options;
    mu_error error = {0};
    mu_node *node = NULL;

    assert_int_equal(mu_resolver_new("dns", &error, &resolver), 0);
    find_set(resolver, "names", "chief=hangs.test:1");
    nodes_options(&f->nodes, "chief", 0, &options);
    options.cluster = NULL;
    options.resolver = resolver;
    options.resolve_ms = 300;
    assert_int_not_equal(mu_node_open(&options, &error, &node), 0);
    assert_true(release());
    if (strstr(error.message, "hangs.test: no answer in time") == NULL)
        fail_msg("%s", error.message);
    assert_int_equal(error.code, -MU_EDEADLINE);
    mu_resolver_free(resolver);
}

/* What was asked for in vain is told, also when no resolver was found. */
TEST_ON(test_nobody_recognises, struct find *f, find_set_up_folder, find_tear_down)
{
    mu_node_options options;
    mu_error error = {0};
    mu_resolver *resolver = NULL;
    mu_node *node = NULL;
    mu_value *explained;

    assert_int_equal(mu_resolver_new("auto", &error, &resolver), 0);
    nodes_options(&f->nodes, "chief", 0, &options);
    options.cluster = NULL;
    options.resolver = resolver;
    assert_int_equal(mu_node_open(&options, &error, &node), -MU_ENOTFOUND);
    assert_non_null(strstr(error.message, "no resolver recognises"));
    explained = mu_resolver_explain(resolver);
    assert_non_null(explained);
    assert_true(mu_value_count(explained) > 10);
    mu_value_free(explained);
    mu_resolver_free(resolver);
}

TEST_PROGRAM()
