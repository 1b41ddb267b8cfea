/* A discovery from its begin to its end over a folder, in a loop, where each allocation
 * fails once: it finds, or it says what is wrong, and it always comes to its end. */
#include "tests/real/nodes.h"
#include "tests/support/fault.h"

#include "node/discovery/discovery.h"

enum { STEPS_MAX = 3000, TIMEOUT_MS = 5000 };

struct work {
    mu_resolver *resolver;
    struct mu__discovery *discovery;
    mu_error error;
    bool is_found;
    bool is_closed;
};

static void on_closed(void *arg)
{
    ((struct work *)arg)->is_closed = true;
}

static void on_found(void *owner, mu_resolution *resolution)
{
    struct work *work = owner;

    work->is_found = true;
    mu_cluster_free(resolution->cluster);
    mu__discovery_close(work->discovery, true, TIMEOUT_MS, on_closed, work);
}

static void on_failed(void *owner, const mu_error *error)
{
    struct work *work = owner;

    work->error = *error;
    mu__discovery_close(work->discovery, true, TIMEOUT_MS, on_closed, work);
}

static int on_listen(void *owner, mu_error *ret_error, char *ret_address)
{
    (void)owner;
    (void)ret_error;
    (void)snprintf(ret_address, 288, "127.0.0.1:4000");
    return 0;
}

static void on_log(void *owner, int level, const char *line)
{
    (void)owner;
    (void)level;
    assert_int_not_equal(line[0], '\0');
}

static void find(struct work *work)
{
    const mu_announcement announcement = {"muster", "chief", 0, "", "0abc"};
    uv_loop_t loop;
    const struct mu__discovery_config config = {
        .loop = &loop,
        .resolver = work->resolver,
        .announcement = &announcement,
        .timeout_ms = TIMEOUT_MS,
        .found = on_found,
        .failed = on_failed,
        .listen = on_listen,
        .log = on_log,
        .owner = work,
    };

    work->is_found = work->is_closed = false;
    work->error = (mu_error){0};
    assert_int_equal(uv_loop_init(&loop), 0);
    if (mu__discovery_open(&config, &work->error, &work->discovery) != 0)
        work->is_closed = true;
    (void)uv_run(&loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&loop), 0);
    assert_true(work->is_closed);
}

TEST(test_every_allocation_can_fail)
{
    char folder[] = "/tmp/muster-finder-XXXXXX";
    struct work work = {0};
    mu_error error = {0};
    char path[64];
    long n = 0;

    assert_non_null(mkdtemp(folder));
    if (mu_resolver_new("directory", &error, &work.resolver) != 0 ||
        mu_resolver_set(work.resolver, "path", folder, &error) != 0)
        fail_msg("%s", error.message);
    for (;; n++) {
        assert_true(n < STEPS_MAX);
        fault_arm(n);
        find(&work);
        if (!fault_disarm())
            break;
        if (!work.is_found)
            assert_int_not_equal(work.error.message[0], '\0');
    }
    assert_true(work.is_found);
    assert_true(n > 50);
    /* What could not be taken back when there was no memory is taken back now. */
    (void)snprintf(path, sizeof path, "%s/chief-0", folder);
    assert_int_equal(access(path, F_OK), -1);
    assert_int_equal(rmdir(folder), 0);
    mu_resolver_free(work.resolver);
}

TEST_PROGRAM()
