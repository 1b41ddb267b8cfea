/* Open MPI's mpirun starts tasks on this machine: each finds out which one it is, and
 * they are a cluster. */
#include "tests/real/launch.h"

static struct cli mpirun;
static char folder[64];
static char plugin[96];

static int set_up(void **state)
{
    char path[512];

    (void)state;
    cli_folder(folder, sizeof folder);
    if (launch_find("mpirun", path, sizeof path))
        launch_compile(folder, plugin, sizeof plugin);
    return 0;
}

static int clean(void **state)
{
    (void)state;
    launch_remove(folder);
    return 0;
}

/* `words`: the program's arguments, up to a NULL; its path is put before them. */
static void start(const char *tasks, const char *const *words)
{
    const char *arguments[CLI_ARGUMENTS_MAX] = {
        "mpirun", "--allow-run-as-root", "--oversubscribe", "--mca", "oob_tcp_if_include",
        "lo", "--mca", "btl", "self", "-n", tasks, cli_variable("MUSTER_BIN")};
    char path[512];
    size_t count = 12;

    if (!launch_find("mpirun", path, sizeof path)) {
        print_message("mpirun is not installed\n");
        skip();
    }
    while (*words != NULL)
        arguments[count++] = *words++;
    launch_start(&mpirun, arguments);
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
        cmocka_unit_test(test_pmix),
    };

    return cmocka_run_group_tests_name("mpirun", tests, set_up, clean);
}
