/* `muster node` that is interrupted while it waits for others: what it has told of itself
 * is taken back, so that nobody waits for who has gone. */
#include "tests/real/cli.h"
#include "tests/real/ports.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <netinet/in.h>
#include <sys/socket.h>

static struct cli cli;
static char folder[64];
static char path[96];
static char tasks[] = "tasks=chief=1,worker=2"; /* more than ever come */

static int make_folder(void **state)
{
    (void)state;
    cli_folder(folder, sizeof folder);
    (void)snprintf(path, sizeof path, "path=%s", folder);
    return 0;
}

static int remove_folder(void **state)
{
    char command[96];

    (void)state;
    (void)snprintf(command, sizeof command, "rm -r %s", folder);
    return system(command);
}

static int count_files(void)
{
    DIR *files = opendir(folder);
    struct dirent *file;
    int count = 0;

    assert_non_null(files);
    while ((file = readdir(files)) != NULL)
        count += file->d_name[0] != '.';
    (void)closedir(files);
    return count;
}

static void begin(const char *task)
{
    int before = count_files();

    cli_start(&cli, NULL, "node", "--resolver", "directory", "--resolver-set", path,
              "--resolver-set", tasks, "--task", task, NULL);
    for (uint64_t begun = cli_now_ms();
         count_files() == before && cli_now_ms() < begun + CLI_SOON_MS;)
        cli_pause();
    assert_int_equal(count_files(), before + 1);
}

TEST_WITH(test_interrupted, make_folder, remove_folder)
{
    static const int numbers[] = {SIGINT, SIGTERM};

    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        begin("chief:0");
        cli_kill(&cli, numbers[i]);
        cli_expect_code(&cli, 128 + numbers[i]);
        assert_int_equal(count_files(), 0);
        assert_null(strstr(cli.text, "ends at once"));
        assert_null(strstr(cli.text, "ERROR"));
    }
}

/* What is taken back is its own alone. */
TEST_WITH(test_another_stays, make_folder, remove_folder)
{
    static struct cli other;

    begin("chief:0");
    other = cli;
    begin("worker:1");
    cli_stop(&cli);
    assert_int_equal(count_files(), 1);
    cli_stop(&other);
    assert_int_equal(count_files(), 0);
}

/* The folder is away while it ends: nothing of it is there to be taken back, and what
 * comes again with the folder runs out. */
TEST_WITH(test_folder_is_away, make_folder, remove_folder)
{
    char moved[96];

    begin("chief:0");
    (void)snprintf(moved, sizeof moved, "%s.moved", folder);
    assert_int_equal(rename(folder, moved), 0);
    cli_stop(&cli);
    assert_int_equal(rename(moved, folder), 0);
    assert_int_equal(count_files(), 1);
    assert_null(strstr(cli.text, "ends at once"));
}

/* ---- who answers nothing ---- */

static int listen_mute(int *ret_port)
{
    int fd = ports_bound(ret_port);

    assert_int_equal(listen(fd, 8), 0);
    return fd;
}

/* It is being told for the first time: whether others know it by now nobody can say. */
TEST(test_not_answered)
{
    int port;
    struct pollfd readable = {.fd = listen_mute(&port), .events = POLLIN};
    char endpoints[64];

    (void)snprintf(endpoints, sizeof endpoints, "endpoints=http://127.0.0.1:%d", port);
    cli_start(&cli, NULL, "node", "--resolver", "etcd", "--resolver-set", endpoints,
              "--resolver-set", tasks, "--task", "chief:0", NULL);
    assert_int_equal(poll(&readable, 1, CLI_SOON_MS), 1);
    cli_stop(&cli);
    (void)cli_expect(&cli, NULL, "the last announcement is not withdrawn");
    (void)close(readable.fd);
}

TEST_PROGRAM()
