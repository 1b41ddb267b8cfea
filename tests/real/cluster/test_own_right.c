/* A program with a key for less than it wants to do: its calls fail at once, and say what
 * they need. */
#include "tests/real/nodes.h"

#include "transport/wire/tls/key.h"

#include <fcntl.h>
#include <sys/stat.h>

static struct nodes nodes;
static char folder[64] = "/tmp/muster-right-XXXXXX";
static char cluster_key[96];
static char observer_key[96];

static void write_file(const char *path, const void *data, size_t size)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL, 0600);

    assert_true(fd >= 0);
    assert_int_equal(write(fd, data, size), size);
    assert_int_equal(close(fd), 0);
}

static void make_keys(void)
{
    char text[MU__KEY_TEXT_BYTES];
    struct mu__key observer;
    struct mu__key key;

    assert_non_null(mkdtemp(folder));
    (void)snprintf(cluster_key, sizeof cluster_key, "%s/key", folder);
    (void)snprintf(observer_key, sizeof observer_key, "%s/observer", folder);
    assert_int_equal(mu__key_new(NULL, &key), 0);
    assert_int_equal(mu__key_derive(&key, MU__RIGHT_OBSERVE, NULL, &observer), 0);
    mu__key_write(&observer, text);
    write_file(cluster_key, key.bytes, sizeof key.bytes);
    write_file(observer_key, text, strlen(text));
}

static mu_node *open_node(const char *type, const char *key)
{
    mu_node_options options;

    nodes_options(&nodes, type, 0, &options);
    options.key_file = key;
    return nodes_open_with(&nodes, &options);
}

static int set_up(void **state)
{
    (void)state;
    make_keys();
    nodes_init(&nodes, 1, 1);
    (void)open_node("chief", cluster_key);
    assert_int_equal(mu_node_serve(open_node("worker", cluster_key)), 0);
    (void)open_node("ps", cluster_key);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    nodes_done(&nodes);
    (void)unlink(cluster_key);
    (void)unlink(observer_key);
    return rmdir(folder);
}

TEST_WITH(test_an_observer, set_up, tear_down)
{
    mu_node *observer = open_node("client", observer_key);
    mu_coordinator *coordinator = nodes_coordinator(observer);
    mu_remote_value *value = NULL;
    mu_variable *variable = NULL;
    mu_value *status = NULL;
    const uint64_t dims[] = {4};
    const mu_variable_spec spec = {.name = "w", .dtype = MU_F32, .dims = dims, .rank = 1};
    mu_error error = {0};

    assert_int_equal(mu_node_status(observer, SOON_MS, &error, &status), 0);
    mu_value_free(status);
    assert_int_equal(
        mu_coordinator_schedule(coordinator, "f", NULL, SOON_MS, &error, &value), 0);
    assert_int_equal(mu_coordinator_join(coordinator, SOON_MS, &error), -MU_EPERMISSION);
    assert_non_null(strstr(error.message, "schedule needs the right \"use\", and this "
                                          "node has a key or a certificate for "
                                          "\"observe\""));
    mu_remote_value_free(value);
    assert_int_equal(mu_variable_open(observer, &spec, SOON_MS, &error, &variable),
                     -MU_EPERMISSION);
    assert_non_null(strstr(error.message, "var_open needs the right \"use\""));
    assert_false(nodes_has_logged(&nodes, "dropped"));
    mu_coordinator_close(coordinator);
}

TEST_PROGRAM()
