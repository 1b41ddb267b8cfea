/* A worker on the program's own loop: its functions are registered, and offered to the
 * chief, on that loop's thread. */
#include "tests/real/nodes.h"

#include <pthread.h>
#include <uv.h>

enum { CLOSURES = 50 };

struct program {
    struct nodes nodes;
    uv_loop_t loop;
    uv_async_t done;
    uv_timer_t timer;
    mu_node *worker;
    int inner; /* what registering came to inside of a function */
    int closed;
};

static int square(mu_run *run, void *user)
{
    int64_t x = 0;

    (void)user;
    (void)mu_value_get_int(mu_run_args(run), &x);
    mu_run_return(run, mu_value_int(x * x));
    return 0;
}

/* On the loop's thread, inside of a turn: nothing can be waited for. */
static int inner(mu_run *run, void *user)
{
    struct program *p = user;

    p->inner = mu_node_register_function(mu_run_node(run), "late", square, NULL, 0);
    return 0;
}

/* A program elsewhere, with a chief on a loop thread of its own. */
static void *use(void *arg)
{
    struct program *p = arg;
    mu_coordinator *coordinator = nodes_coordinator(nodes_open(&p->nodes, "chief", 0));
    mu_error error = {0};

    for (int i = 0; i < CLOSURES; i++) {
        mu_value *x = mu_value_int(i);
        mu_remote_value *value = NULL;
        mu_value *result = NULL;
        int64_t number = -1;

        assert_int_equal(mu_coordinator_schedule(coordinator, "square", x, SOON_MS,
                                                 &error, &value),
                         0);
        assert_int_equal(mu_remote_value_fetch(value, SOON_MS, &error, &result), 0);
        (void)mu_value_get_int(result, &number);
        assert_int_equal(number, i * i);
        mu_value_free(x);
        mu_value_free(result);
        mu_remote_value_free(value);
    }
    assert_int_equal(
        mu_coordinator_schedule(coordinator, "inner", NULL, SOON_MS, &error, NULL), 0);
    assert_int_equal(mu_coordinator_join(coordinator, SOON_MS, &error), 0);
    mu_coordinator_close(coordinator);
    (void)uv_async_send(&p->done);
    return NULL;
}

static void on_closed(void *user)
{
    ((struct program *)user)->closed++;
}

static void on_done(uv_async_t *done)
{
    struct program *p = done->data;

    uv_close((uv_handle_t *)done, NULL);
    mu_node_close_async(p->worker, on_closed, p);
}

/* A callback of the program. */
static void on_tick(uv_timer_t *timer)
{
    struct program *p = timer->data;

    uv_close((uv_handle_t *)timer, NULL);
    assert_int_equal(
        mu_node_register_function(p->worker, "inner", inner, p, MU_FUNCTION_INLINE), 0);
    assert_int_equal(mu_node_register_function(p->worker, "inner", inner, p, 0),
                     -MU_EEXISTS);
    assert_int_equal(mu_node_serve(p->worker), 0);
    assert_int_equal(mu_node_register_function(p->worker, "later", square, NULL, 0),
                     -MU_EPRECONDITION);
}

TEST(test_a_worker_on_the_programs_loop)
{
    struct program *p = calloc(1, sizeof *p);
    mu_node_options options;
    mu_error error = {0};
    pthread_t user;

    assert_non_null(p);
    nodes_init(&p->nodes, 1, 0);
    assert_int_equal(uv_loop_init(&p->loop), 0);
    nodes_options(&p->nodes, "worker", 0, &options);
    options.loop = &p->loop;
    if (mu_node_open(&options, &error, &p->worker) != 0)
        fail_msg("%s", error.message);
    /* Before the loop runs. */
    assert_int_equal(mu_node_register_function(p->worker, "square", square, NULL, 0), 0);
    assert_int_equal(mu_node_register_function(p->worker, "", square, NULL, 0),
                     -MU_EINVALID);
    (void)uv_async_init(&p->loop, &p->done, on_done);
    (void)uv_timer_init(&p->loop, &p->timer);
    p->done.data = p;
    p->timer.data = p;
    (void)uv_timer_start(&p->timer, on_tick, 1, 0);
    assert_int_equal(pthread_create(&user, NULL, use, p), 0);
    (void)uv_run(&p->loop, UV_RUN_DEFAULT);
    (void)pthread_join(user, NULL);
    assert_int_equal(p->closed, 1);
    assert_int_equal(p->inner, -MU_EPRECONDITION);
    assert_int_equal(uv_loop_close(&p->loop), 0);
    nodes_done(&p->nodes);
    free(p);
}

TEST_PROGRAM()
