/* Unix sockets are for processes of one user: the other end's user is what the system
 * says. */
#include "tests/real/nodes.h"

#include "tests/real/needs.h"

#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>

enum { OTHER_USER = 65534 };

static struct nodes nodes;
static char folder[64];
static char path[96];

static int set_up(void **state)
{
    mu_error error = {0};
    char json[200];

    (void)state;
    memset(&nodes, 0, sizeof nodes);
    (void)pthread_mutex_init(&nodes.log.lock, NULL);
    (void)snprintf(folder, sizeof folder, "/tmp/muster-user-XXXXXX");
    assert_non_null(mkdtemp(folder));
    (void)snprintf(path, sizeof path, "%s/chief", folder);
    (void)snprintf(json, sizeof json, "{\"chief\":[\"ipc://%s\"]}", path);
    assert_int_equal(mu_cluster_parse(json, strlen(json), "test", &error, &nodes.cluster),
                     0);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    nodes_done(&nodes);
    return rmdir(folder);
}

/* In a child that is of another user: connect, and say how many bytes of a greeting
 * come; 100: it cannot connect. */
static int heard_by_other_user(void)
{
    int status;
    pid_t pid = fork();

    assert_true(pid >= 0);
    if (pid == 0) {
        struct sockaddr_un address = {.sun_family = AF_UNIX};
        int fd = socket(AF_UNIX, SOCK_STREAM, 0);
        char greeting[8];
        ssize_t size;

        (void)snprintf(address.sun_path, sizeof address.sun_path, "%s", path);
        if (setgid(OTHER_USER) != 0 || setuid(OTHER_USER) != 0 ||
            connect(fd, (const struct sockaddr *)&address, sizeof address) != 0)
            _exit(100);
        size = recv(fd, greeting, sizeof greeting, MSG_WAITALL);
        _exit(size < 0 ? 0 : (int)size);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

/* Whoever can reach the socket file. */
static void let_all_in(void)
{
    assert_int_equal(chmod(folder, 0755), 0);
    assert_int_equal(chmod(path, 0777), 0);
}

TEST_WITH(test_another_user_is_refused, set_up, tear_down)
{
    (void)nodes_open(&nodes, "chief", 0);
    let_all_in();
    assert_int_equal(heard_by_other_user(), 0);
    nodes_wait_log(&nodes, "it is a process of user 65534, and this node one of user 0: "
                           "a unix socket is for one user");
}

TEST_WITH(test_insecure_takes_all_users, set_up, tear_down)
{
    nodes.insecure = 1;
    (void)nodes_open(&nodes, "chief", 0);
    let_all_in();
    assert_int_equal(heard_by_other_user(), 8);
}

/* A node that finds another user's process behind a path does not speak to it. */
TEST_WITH(test_another_users_socket, set_up, tear_down)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    mu_node_options options;
    int ends[2];
    pid_t pid;

    assert_int_equal(pipe(ends), 0);
    assert_int_equal(chmod(folder, 0777), 0);
    (void)snprintf(address.sun_path, sizeof address.sun_path, "%s", path);
    pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        int fd = socket(AF_UNIX, SOCK_STREAM, 0);
        char byte = 0;

        (void)close(ends[1]);
        if (setgid(OTHER_USER) != 0 || setuid(OTHER_USER) != 0 ||
            bind(fd, (const struct sockaddr *)&address, sizeof address) != 0 ||
            listen(fd, 8) != 0)
            _exit(1);
        (void)read(ends[0], &byte, 1); /* until the parent closes it */
        _exit(0);
    }
    (void)close(ends[0]);
    nodes_options(&nodes, "client", 0, &options);
    (void)nodes_open_with(&nodes, &options);
    nodes_wait_log(&nodes, "it is a process of user 65534");
    (void)close(ends[1]);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    assert_int_equal(unlink(path), 0);
}

int main(void)
{
    if (geteuid() != 0)
        return needs_skip("it needs root, to become another user");
    return tests_run(NULL, NULL);
}
