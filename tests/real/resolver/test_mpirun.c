/* Launchers of MPI start tasks on this machine: each finds out which one it is, and they
 * are a cluster.
 *
 * Open MPI's mpirun and MPICH's mpiexec are those that are installed; or, in place of
 * both, the one that the variable MUSTER_MPIRUN has the path of:
 *
 *     MUSTER_MPIRUN=/opt/intel/bin/mpiexec ctest --test-dir build/dev -R real_mpirun */
#include "tests/real/launch.h"

#include <sys/stat.h>

static char folder[64];
static char plugin[96];
static char agent[96];
static char host[256];  /* of this machine */
static char hosts[320]; /* this one, and another one, */
static char slots[320]; /* with two tasks each */

/* What a launcher wants to be told. */
struct family {
    const char *mark; /* in what `--version` prints */
    const char *resolver;
    const char *always[8];
    const char *two[9];     /* nodes: the first one is filled first, */
    const char *in_turn[9]; /* or one task is put on each in turn */
    bool tells_host;        /* its own, to the tasks */
    const char *bind;       /* where they listen then; "": they know it */
};

/* The second node is this machine, too: the agent, which would reach it, starts the
 * daemon here. The node's name is an address, so that nobody looks it up. */
static const struct family families[] = {
    {"(Open MPI) 4",
     "open_mpi",
     {"--allow-run-as-root", "--oversubscribe", "--mca", "oob_tcp_if_include", "lo"},
     {"--mca", "plm", "rsh", "--mca", "plm_rsh_agent", agent, "-host", slots},
     {"--mca", "plm_rsh_agent", agent, "-host", slots, "--map-by", "node"},
     true,
     ""},
    {"(Open MPI) 5",
     "open_mpi",
     {"--allow-run-as-root", "--oversubscribe", "--bind-to", "none"},
     {"--prtemca", "plm", "ssh", "--prtemca", "plm_ssh_agent", agent, "--host", slots},
     {"--prtemca", "plm_ssh_agent", agent, "--host", slots, "--map-by", "node"},
     true,
     "open_mpi.bind_address=0.0.0.0:0"},
    {"", /* Hydra of MPICH, and that of Intel MPI */
     "mpich",
     {NULL},
     {"-launcher", "ssh", "-launcher-exec", agent, "-hosts", hosts, "-ppn", "2"},
     {"-launcher", "ssh", "-launcher-exec", agent, "-hosts", hosts, "-ppn", "1"},
     false,
     ""},
};

static char program[512]; /* the launcher's path */
static const struct family *family;
static struct cli mpirun;

/* ---- Starting ---- */

static void find_family(void)
{
    const char *const arguments[] = {program, "--version", NULL};

    launch_start(&mpirun, arguments);
    cli_expect_code(&mpirun, 0);
    family = families;
    while (strstr(mpirun.text, family->mark) == NULL)
        family++;
}

static int set_up(void **state)
{
    (void)state;
    cli_folder(folder, sizeof folder);
    launch_compile(folder, plugin, sizeof plugin);
    (void)snprintf(agent, sizeof agent, "%s/agent", folder);
    cli_write_file(agent, "#!/bin/sh\n"
                          "while [ \"${1#-}\" != \"$1\" ]; do shift; done\n"
                          "shift\n"
                          "exec sh -c \"$*\"\n");
    assert_int_equal(gethostname(host, sizeof host), 0);
    (void)snprintf(hosts, sizeof hosts, "%.255s,198.51.100.7", host);
    (void)snprintf(slots, sizeof slots, "%.255s:2,198.51.100.7:2", host);
    find_family();
    return chmod(agent, 0755);
}

static int clean(void **state)
{
    (void)state;
    launch_remove(folder);
    return 0;
}

static size_t append(const char **arguments, size_t count, const char *const *more)
{
    while (*more != NULL)
        arguments[count++] = *more++;
    return count;
}

/* `where` says on which nodes, `words` are the arguments of muster; both end with a
 * NULL. */
static void start(const char *const *where, const char *tasks, const char *const *words)
{
    const char *arguments[CLI_ARGUMENTS_MAX] = {program};
    const char *const counted[] = {"-n", tasks, cli_variable("MUSTER_BIN"), NULL};
    size_t count = append(arguments, 1, family->always);

    count = append(arguments, count, where);
    count = append(arguments, count, counted);
    (void)append(arguments, count, words);
    launch_start(&mpirun, arguments);
}

static const char *const here[] = {NULL};

/* A setting of the resolver that recognises this launcher; valid up to the next call but
 * three. */
static const char *setting(const char *text)
{
    static char texts[4][320];
    static unsigned next;
    char *out = texts[next++ % 4];

    (void)snprintf(out, sizeof texts[0], "%s.%.255s", family->resolver, text);
    return out;
}

static void expect_all(const char *const *lines)
{
    for (; *lines != NULL; lines++)
        (void)cli_expect(&mpirun, NULL, *lines);
    cli_expect_code(&mpirun, 0);
}

static void expect_failure(const char *words)
{
    (void)cli_expect(&mpirun, NULL, words);
    assert_int_not_equal(cli_wait(&mpirun), 0);
}

static const char *const two_workers[] = {"/job:worker/task:0 says so",
                                          "/job:worker/task:1 says so",
                                          "all have said so: yes", NULL};
static const char *const three_workers[] = {
    "/job:worker/task:0 says so", "/job:worker/task:1 says so",
    "/job:worker/task:2 says so", "all have said so: yes", NULL};

/* ---- One node ---- */

/* The port is made of the id of the job, where there is one. */
LISTED_TEST(test_who_they_are)
{
    static const char *const words[] = {"resolve", "-o", "TF_CONFIG", NULL};
    static const char *const lines[] = {"\"task\":{\"type\":\"worker\",\"index\":0}",
                                        "\"task\":{\"type\":\"worker\",\"index\":1}",
                                        "\"task\":{\"type\":\"worker\",\"index\":2}",
                                        NULL};

    start(here, "3", words);
    expect_all(lines);
}

/* All on one host: the launcher tells so, and the ports follow from the ranks. */
LISTED_TEST(test_a_cluster_with_all_listed)
{
    const char *const words[] = {"node",
                                 "--resolver-set",
                                 setting("jobs=chief=1,ps=1,worker=*"),
                                 "--plugin",
                                 plugin,
                                 "--set",
                                 "workers=2",
                                 NULL};

    start(here, "4", words);
    expect_all(two_workers);
}

/* Only the address of rank 0 is known: the others are workers, and join it. */
LISTED_TEST(test_a_cluster_that_meets)
{
    char address[64];
    const char *const words[] = {
        "node",     "--resolver", family->resolver, "--resolver-set", address,
        "--plugin", plugin,       "--set",          "workers=3",      NULL};

    (void)snprintf(address, sizeof address, "coordinator_address=127.0.0.1:%d",
                   ports_free_run(4));
    start(here, "4", words);
    expect_all(three_workers);
}

/* ---- Two nodes ---- */

/* Nobody tells the hosts of two nodes: the launcher's own is where rank 0 is. */
LISTED_TEST(test_two_nodes_meet)
{
    const char *const words[] = {
        "node",       "--plugin",  plugin,
        "--set",      "workers=3", family->bind[0] == '\0' ? NULL : "--resolver-set",
        family->bind, NULL};

    start(family->two, "4", words);
    if (family->tells_host)
        expect_all(three_workers);
    else
        expect_failure("but not where the others are: set hosts");
}

/* With a list of them they are all known; the second one's name is loopback's, too. */
LISTED_TEST(test_two_nodes_that_are_listed)
{
    const char *const words[] = {"node",
                                 "--resolver-set",
                                 setting("hosts=127.0.0.[1-2]"),
                                 "--resolver-set",
                                 setting("jobs=chief=1,ps=1,worker=*"),
                                 "--plugin",
                                 plugin,
                                 "--set",
                                 "workers=2",
                                 NULL};

    start(family->two, "4", words);
    expect_all(two_workers);
    assert_non_null(strstr(mpirun.text, "worker/task:1 node: is up at tcp://127.0.0.2:"));
}

/* Two tasks on the first one and one on the second. */
LISTED_TEST(test_uneven_nodes)
{
    char path[96];
    char file[128];
    const char *const words[] = {"node",
                                 "--resolver",
                                 family->resolver,
                                 "--resolver-set",
                                 file,
                                 "--resolver-set",
                                 "jobs=chief=1,worker=*",
                                 "--plugin",
                                 plugin,
                                 "--set",
                                 "workers=2",
                                 NULL};

    (void)snprintf(path, sizeof path, "%s/hosts", folder);
    (void)snprintf(file, sizeof file, "hostfile=%s", path);
    cli_write_file(path, "127.0.0.1 slots=2\n127.0.0.2 slots=1\n");
    start(family->two, "3", words);
    expect_all(two_workers);
    assert_non_null(strstr(mpirun.text, "worker/task:1 node: is up at tcp://127.0.0.2:"));
}

LISTED_TEST(test_nodes_in_turn)
{
    const char *const words[] = {"resolve",
                                 "--resolver-set",
                                 setting("hosts=127.0.0.[1-2]"),
                                 "--resolver-set",
                                 setting("mapping=cyclic"),
                                 "--resolver-set",
                                 setting("port_base=7000"),
                                 "-o",
                                 "TF_CONFIG",
                                 NULL};
    static const char *const lines[] = {
        "[\"127.0.0.1:7000\",\"127.0.0.2:7000\",\"127.0.0.1:7001\",\"127.0.0.2:7001\"]",
        "\"index\":0",
        "\"index\":1",
        "\"index\":2",
        "\"index\":3",
        NULL};

    start(family->in_turn, "4", words);
    expect_all(lines);
}

/* The launcher tells each task the name of its host. */
LISTED_TEST(test_hosts_in_another_order)
{
    char order[320];
    const char *const words[] = {"resolve",        "--resolver", family->resolver,
                                 "--resolver-set", order,        NULL};

    (void)snprintf(order, sizeof order, "hosts=198.51.100.7,%.255s", host);
    start(family->two, "4", words);
    expect_failure("expected the hosts, slots and mapping that the launcher has");
}

static int test_launcher(const char *name)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_who_they_are),
        cmocka_unit_test(test_a_cluster_with_all_listed),
        cmocka_unit_test(test_a_cluster_that_meets),
        cmocka_unit_test(test_two_nodes_meet),
        cmocka_unit_test(test_two_nodes_that_are_listed),
        cmocka_unit_test(test_uneven_nodes),
        cmocka_unit_test(test_nodes_in_turn),
        cmocka_unit_test(test_hosts_in_another_order),
    };

    if (!needs_find(name, program, sizeof program))
        return needs_skip(needs_programs(name, NULL));
    return cmocka_run_group_tests_name(name, tests, set_up, clean);
}

int main(void)
{
    const char *given = getenv("MUSTER_MPIRUN");
    int first;
    int second;

    if (given != NULL)
        return test_launcher(given);
    first = test_launcher("mpirun");
    second = test_launcher("mpiexec.hydra");
    if (first == NEEDS_SKIPPED)
        return second;
    return second == NEEDS_SKIPPED ? first : first + second;
}
