/* Open MPI's mpirun starts tasks on this machine: each finds out which one it is, and
 * they are a cluster. */
#include "tests/real/launch.h"

#include <sys/stat.h>

static struct cli mpirun;
static char folder[64];
static char plugin[96];
static char agent[96];

static int set_up(void **state)
{
    char path[512];

    (void)state;
    cli_folder(folder, sizeof folder);
    if (launch_find("mpirun", path, sizeof path))
        launch_compile(folder, plugin, sizeof plugin);
    (void)snprintf(agent, sizeof agent, "%s/agent", folder);
    launch_write(agent, "#!/bin/sh\nshift\nexec sh -c \"$*\"\n");
    return chmod(agent, 0755);
}

static int clean(void **state)
{
    (void)state;
    launch_remove(folder);
    return 0;
}

/* `hosts`, `words`: the launcher's and the program's arguments, up to a NULL; the
 * program's path is put between them. */
static void start_on(const char *const *hosts, const char *tasks,
                     const char *const *words)
{
    const char *arguments[CLI_ARGUMENTS_MAX] = {
        "mpirun", "--allow-run-as-root", "--oversubscribe",
        "--mca",  "oob_tcp_if_include",  "lo"};
    char path[512];
    size_t count = 6;

    if (!launch_find("mpirun", path, sizeof path)) {
        print_message("mpirun is not installed\n");
        skip();
    }
    while (*hosts != NULL)
        arguments[count++] = *hosts++;
    arguments[count++] = "-n";
    arguments[count++] = tasks;
    arguments[count++] = cli_variable("MUSTER_BIN");
    while (*words != NULL)
        arguments[count++] = *words++;
    launch_start(&mpirun, arguments);
}

static void start(const char *tasks, const char *const *words)
{
    static const char *const nowhere_else[] = {NULL};

    start_on(nowhere_else, tasks, words);
}

/* Two nodes, of which the second is this machine, too: the program that would reach it
 * starts the daemon here. Its name is an address, so that nobody looks it up. */
static void start_on_two(const char *tasks, const char *const *words)
{
    static char list[320];
    const char *const hosts[] = {"--mca", "plm",   "rsh", "--mca", "plm_rsh_agent",
                                 agent,   "-host", list,  NULL};
    char name[256];

    assert_int_equal(gethostname(name, sizeof name), 0);
    (void)snprintf(list, sizeof list, "%s:2,198.51.100.7:2", name);
    start_on(hosts, tasks, words);
}

static void expect_all(const char *const *lines)
{
    for (; *lines != NULL; lines++)
        (void)cli_expect(&mpirun, NULL, *lines);
    cli_expect_code(&mpirun, 0);
}

/* The port is made of the id of the job, which differs from one to the next. */
static void test_who_they_are(void **state)
{
    static const char *const words[] = {"resolve", "-o", "TF_CONFIG", NULL};
    static const char *const lines[] = {
        "\"task\":{\"type\":\"worker\",\"index\":0}",
        "\"task\":{\"type\":\"worker\",\"index\":1}",
        "\"task\":{\"type\":\"worker\",\"index\":2}", NULL};

    (void)state;
    start("3", words);
    expect_all(lines);
}

/* All on one host: mpirun tells so, and the ports follow from the ranks. */
static void test_a_cluster_with_all_listed(void **state)
{
    const char *const words[] = {"node",
                                 "--resolver-set",
                                 "open_mpi.jobs=chief=1,ps=1,worker=*",
                                 "--plugin",
                                 plugin,
                                 "--set",
                                 "workers=2",
                                 NULL};
    static const char *const lines[] = {
        "/job:worker/task:0 says so", "/job:worker/task:1 says so",
        "all have said so: yes", NULL};

    (void)state;
    start("4", words);
    expect_all(lines);
}

/* Only the address of rank 0 is known: the others are workers, and join it. */
static void test_a_cluster_that_meets(void **state)
{
    char address[64];
    const char *const words[] = {"node",     "--resolver",       "open_mpi",
                                 "--resolver-set", address, "--plugin", plugin,
                                 "--set",    "workers=3", NULL};
    static const char *const lines[] = {
        "/job:worker/task:0 says so", "/job:worker/task:1 says so",
        "/job:worker/task:2 says so", "all have said so: yes", NULL};

    (void)state;
    (void)snprintf(address, sizeof address, "coordinator_address=127.0.0.1:%d",
                   launch_free_port());
    start("4", words);
    expect_all(lines);
}

/* Nobody tells the hosts of two nodes: the launcher's own address is where rank 0 is. */
static void test_two_nodes_meet(void **state)
{
    const char *const words[] = {"node",  "--resolver", "open_mpi", "--plugin", plugin,
                                 "--set", "workers=3",  NULL};
    static const char *const lines[] = {
        "/job:worker/task:0 says so", "/job:worker/task:1 says so",
        "/job:worker/task:2 says so", "all have said so: yes", NULL};

    (void)state;
    start_on_two("4", words);
    expect_all(lines);
}

/* With a list of them they are all known; the second one's name is loopback's, too. */
static void test_two_nodes_that_are_listed(void **state)
{
    const char *const words[] = {"node",
                                 "--resolver-set",
                                 "open_mpi.hosts=127.0.0.[1-2]",
                                 "--resolver-set",
                                 "open_mpi.jobs=chief=1,ps=1,worker=*",
                                 "--plugin",
                                 plugin,
                                 "--set",
                                 "workers=2",
                                 NULL};
    static const char *const lines[] = {"/job:worker/task:0 says so",
                                        "/job:worker/task:1 says so",
                                        "all have said so: yes", NULL};

    (void)state;
    start_on_two("4", words);
    expect_all(lines);
    assert_non_null(strstr(mpirun.text, "worker/task:1 node: is up at tcp://127.0.0.2:"));
}

/* The same by the variables of any PMIx launcher: how many there are is not among
 * them. */
static void test_pmix(void **state)
{
    static const char *const words[] = {
        "resolve", "--resolver", "pmix", "--resolver-set", "tasks=2",
        "-o", "TF_CONFIG", NULL};
    static const char *const lines[] = {"\"task\":{\"type\":\"worker\",\"index\":0}",
                                        "\"task\":{\"type\":\"worker\",\"index\":1}",
                                        NULL};

    (void)state;
    start("2", words);
    expect_all(lines);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_who_they_are),
        cmocka_unit_test(test_a_cluster_with_all_listed),
        cmocka_unit_test(test_a_cluster_that_meets),
        cmocka_unit_test(test_two_nodes_meet),
        cmocka_unit_test(test_two_nodes_that_are_listed),
        cmocka_unit_test(test_pmix),
    };

    return cmocka_run_group_tests_name("mpirun", tests, set_up, clean);
}
