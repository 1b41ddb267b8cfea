/* The resolvers open_mpi and mpich, by rows; the environments are what mpirun of Open MPI
 * 4.1 and 5.0, and mpiexec of MPICH 4.0 and 5.0 and of Intel MPI 2021.19 gave, with what
 * does not matter left out. */
#include "tests/support/script.h"

#include "resolver/kinds.h"
#include "resolver/source/mpi.h"
#include "tests/support/test.h"

#include <muster/cluster.h>

#define V SCRIPT_VARIABLE
#define COUNT(array) (sizeof(array) / sizeof(array)[0])
#define URI "2110717952.0;tcp://10.0.0.1:54593;tcp6://[fd00::2]:47871"
#define OWN_ADDRESSES                                                            \
    {                                                                            \
        .kind = MU__REQUEST_ADDRESSES, .name = "this-host", .text = "10.0.0.7\n" \
    }

static const struct mu__resolver_kind *const kind = &mu__resolver_open_mpi;
static const struct mu__resolver_kind *const mpich = &mu__resolver_mpich;

/* mpirun -n 2, on one host */
#define ONE_HOST(rank)                                                               \
    V("OMPI_COMM_WORLD_SIZE", "2"), V("OMPI_COMM_WORLD_RANK", rank),                 \
        V("OMPI_COMM_WORLD_LOCAL_SIZE", "2"), V("OMPI_COMM_WORLD_LOCAL_RANK", rank), \
        V("OMPI_MCA_orte_num_nodes", "1"), V("OMPI_MCA_orte_hnp_uri", URI),          \
        V("OMPI_MCA_orte_local_daemon_uri", URI), V("PMIX_RANK", rank),              \
        V("PMIX_NAMESPACE", "2110717953")

/* Four tasks on two hosts */
#define TWO_HOSTS(rank, local)                                                        \
    V("OMPI_COMM_WORLD_SIZE", "4"), V("OMPI_COMM_WORLD_RANK", rank),                  \
        V("OMPI_COMM_WORLD_LOCAL_SIZE", "2"), V("OMPI_COMM_WORLD_LOCAL_RANK", local), \
        V("OMPI_MCA_orte_num_nodes", "2"), OWN_ADDRESSES

#define LAUNCHER V("OMPI_MCA_orte_hnp_uri", URI)

static void expect_bind(const struct script_row *rows, const char *const *settings,
                        const char *cluster, const char *task, const char *bind)
{
    mu_resolution resolution;
    mu_error error;

    script_expect(kind, rows, settings, cluster, task);
    assert_int_equal(script_resolve(kind, rows, settings, &error, &resolution), 0);
    assert_string_equal(resolution.bind_address, bind);
    mu_cluster_free(resolution.cluster);
}

/* 2110717952 / 4096 is 515312, and that modulo 4095 is 3437. */
TEST(test_one_host)
{
    static const struct script_row rows[] = {ONE_HOST("1"), SCRIPT_END};
    static const char *const settings[] = {"jobs=chief=1,worker=*", "port_base=100",
                                           "bind_address=0.0.0.0:101", NULL};

    expect_bind(rows, NULL, "{\"worker\":[\"127.0.0.1:19984\",\"127.0.0.1:19985\"]}",
                "worker:1", "");
    expect_bind(rows, settings,
                "{\"chief\":[\"127.0.0.1:100\"],\"worker\":[\"127.0.0.1:101\"]}",
                "worker:0", "tcp://0.0.0.0:101");
}

TEST(test_hosts_that_were_set)
{
    static const struct script_row rows[] = {TWO_HOSTS("2", "0"), LAUNCHER, SCRIPT_END};
    static const char *const by_node[] = {"hosts=n[1-2]", "port_base=1", NULL};
    static const char *const by_rank[] = {"hosts=n1,n1,n2,n2", "port_base=1", NULL};
    static const char cluster[] = "{\"worker\":[\"n1:1\",\"n1:2\",\"n2:1\",\"n2:2\"]}";

    script_expect(kind, rows, by_node, cluster, "worker:2");
    script_expect(kind, rows, by_rank, cluster, "worker:2");
}

TEST(test_mapping)
{
    static const struct script_row rows[] = {TWO_HOSTS("2", "1"), LAUNCHER, SCRIPT_END};
    static const char *const cyclic[] = {"hosts=n[1-2]", "port_base=1", "mapping=cyclic",
                                         NULL};
    static const char *const block[] = {"hosts=n[1-2]", "port_base=1", NULL};
    static const char *const other[] = {"hosts=n[1-2]", "mapping=random", NULL};

    script_expect(kind, rows, cyclic,
                  "{\"worker\":[\"n1:1\",\"n2:1\",\"n1:2\",\"n2:2\"]}", "worker:2");
    script_expect_error(kind, rows, block, -MU_EPRECONDITION,
                        "rank 2 would be task 0 of 2 on \"n2\", but by "
                        "OMPI_COMM_WORLD_LOCAL_RANK it is task 1 of 2 on its node");
    script_expect_error(kind, rows, other, -MU_EINVALID, "expected block or cyclic");
}

TEST(test_host_files)
{
    static const struct script_row set[] = {
        TWO_HOSTS("3", "1"), LAUNCHER,
        SCRIPT_FILE("/hosts", "# two\nn1 slots=2 max_slots=4\n\n  n2:2  # the other\n"),
        SCRIPT_END};
    static const struct script_row launchers[] = {
        TWO_HOSTS("3", "1"), V("OMPI_MCA_orte_default_hostfile", "/etc/hosts.mpi"),
        SCRIPT_FILE("/etc/hosts.mpi", "n1\nn2\n"), SCRIPT_END};
    static const char *const settings[] = {"hostfile=/hosts", "port_base=1", NULL};
    static const char *const port[] = {"port_base=1", NULL};
    static const char cluster[] = "{\"worker\":[\"n1:1\",\"n1:2\",\"n2:1\",\"n2:2\"]}";

    script_expect(kind, set, settings, cluster, "worker:3");
    script_expect(kind, launchers, port, cluster, "worker:3");
}

TEST(test_host_files_refused)
{
    static const struct {
        const char *text;
        const char *words;
    } rows[] = {
        {"", "expected a host at least"},
        {"# none\n", "expected a host at least"},
        {"n1\nn2 slots=x", "line 2: expected HOST, HOST:N or HOST slots=N, got"},
        {"n1 slots=0", "line 1: expected HOST"},
        {"n1:0", "line 1: expected HOST"},
        {"n1 n2", "line 1: expected HOST"},
        {"n1 slots=1\nn2 slots=2", "its 2 hosts have places for 3 of the 4 tasks"},
        {"n[1-", "line 1: at 5"},
    };
    static const char *const settings[] = {"hostfile=/hosts", NULL};
    static const struct script_row none[] = {TWO_HOSTS("3", "1"), LAUNCHER, SCRIPT_END};

    for (size_t i = 0; i < COUNT(rows); i++) {
        const struct script_row script[] = {TWO_HOSTS("3", "1"), LAUNCHER,
                                            SCRIPT_FILE("/hosts", rows[i].text),
                                            SCRIPT_END};

        script_expect_error(kind, script, settings, -MU_EINVALID, rows[i].words);
    }
    script_expect_error(kind, none, settings, -MU_ENOTFOUND, "hostfile");
}

/* Only the launcher's address is known, which is rank 0's: 515312 modulo 4096 is 3312. */
TEST(test_meeting_at_the_launcher)
{
    static const struct script_row first[] = {TWO_HOSTS("0", "0"), LAUNCHER,
                                              V("OMPI_MCA_orte_local_daemon_uri", URI),
                                              SCRIPT_END};
    static const struct script_row last[] = {
        TWO_HOSTS("3", "1"), LAUNCHER,
        V("OMPI_MCA_orte_local_daemon_uri", "2110717952.1;tcp://10.0.0.7:9"), SCRIPT_END};
    static const struct script_row v6[] = {
        TWO_HOSTS("3", "1"),
        V("OMPI_MCA_orte_hnp_uri", "8192.0;tcp6://[fd00::2,fd00::3]:47871"), SCRIPT_END};
    static const char *const settings[] = {"coordinator_address=head", "port_base=7",
                                           NULL};
    static const char *const with_port[] = {"coordinator_address=head:9",
                                            "bind_address=10.1.1.1:0", NULL};
    static const char cluster[] = "{\"chief\":[\"10.0.0.1:64752\"]}";

    expect_bind(first, NULL, cluster, "chief:0", "");
    expect_bind(last, NULL, cluster, "worker:2", "tcp://10.0.0.7:0");
    expect_bind(v6, NULL, "{\"chief\":[\"[fd00::2]:61442\"]}", "worker:2",
                "tcp://10.0.0.7:0");
    expect_bind(last, settings, "{\"chief\":[\"head:7\"]}", "worker:2",
                "tcp://10.0.0.7:0");
    expect_bind(last, with_port, "{\"chief\":[\"head:9\"]}", "worker:2",
                "tcp://10.1.1.1:0");
}

TEST(test_meeting_refused)
{
    static const struct script_row elsewhere[] = {
        TWO_HOSTS("0", "0"), LAUNCHER,
        V("OMPI_MCA_orte_local_daemon_uri", "2110717952.1;tcp://10.0.0.7:9"), SCRIPT_END};
    static const struct script_row broken[] = {
        TWO_HOSTS("1", "1"), V("OMPI_MCA_orte_hnp_uri", "7.0;udp://x"), SCRIPT_END};
    static const struct script_row nobody[] = {TWO_HOSTS("1", "1"), SCRIPT_END};
    static const struct script_row last[] = {TWO_HOSTS("3", "1"), LAUNCHER, SCRIPT_END};
    static const char *const jobs[] = {"jobs=worker=*", NULL};

    script_expect_error(kind, elsewhere, NULL, -MU_EPRECONDITION,
                        "rank 0 does not run on the host of mpirun");
    script_expect_error(kind, broken, NULL, -MU_EINVALID,
                        "OMPI_MCA_orte_hnp_uri: expected JOB.0;tcp://ADDRESS:PORT");
    script_expect_error(kind, nobody, NULL, -MU_ENOTFOUND,
                        "not where the others are: set hosts, hostfile or coordinator");
    script_expect_error(kind, last, jobs, -MU_EINVALID,
                        "only the address of rank 0 is known");
}

TEST(test_variables_refused)
{
    static const struct {
        struct script_row row;
        int code;
        const char *words;
    } rows[] = {
        {V("OMPI_COMM_WORLD_RANK", "2"), -MU_EINVALID,
         "OMPI_COMM_WORLD_RANK: expected a number below 2 (OMPI_COMM_WORLD_SIZE), got 2"},
        {V("OMPI_COMM_WORLD_SIZE", "x"), -MU_EINVALID, "OMPI_COMM_WORLD_SIZE: expected"},
        {V("OMPI_COMM_WORLD_LOCAL_RANK", "2"), -MU_EINVALID,
         "OMPI_COMM_WORLD_LOCAL_RANK"},
        {V("OMPI_COMM_WORLD_LOCAL_SIZE", "3"), -MU_EINVALID,
         "OMPI_COMM_WORLD_LOCAL_SIZE"},
        {V("OMPI_MCA_orte_num_nodes", "0"), -MU_EINVALID, "OMPI_MCA_orte_num_nodes"},
    };
    mu_error why;

    for (size_t i = 0; i < COUNT(rows); i++) {
        const struct script_row script[] = {rows[i].row, ONE_HOST("1"), SCRIPT_END};

        script_expect_error(kind, script, NULL, rows[i].code, rows[i].words);
    }
    script_expect_error(kind, NULL, NULL, -MU_ENOTFOUND,
                        "OMPI_COMM_WORLD_SIZE is not set: mpirun sets it for each task");
    assert_int_equal(script_detect(kind, NULL, NULL, &why), 0);
    assert_string_equal(why.message, "OMPI_COMM_WORLD_RANK is not set");
}

/* ---- Open MPI 5 ---- */

/* Three tasks, two of them on n-1: LOCAL_SIZE is that of the last node for all. */
#define FIVE(rank, local, host)                                                       \
    V("OMPI_COMM_WORLD_SIZE", "3"), V("OMPI_COMM_WORLD_RANK", rank),                  \
        V("OMPI_COMM_WORLD_LOCAL_SIZE", "1"), V("OMPI_COMM_WORLD_LOCAL_RANK", local), \
        V("PRTE_LAUNCHED", "1"), V("PMIX_RANK", rank), V("PMIX_HOSTNAME", host),      \
        V("PMIX_NAMESPACE", "prterun-n-1-8961@1"), OWN_ADDRESSES

TEST(test_uneven_nodes)
{
    static const struct script_row rows[] = {
        FIVE("1", "1", "n-1"), SCRIPT_FILE("/hosts", "n-1 slots=2\nm.cluster slots=1\n"),
        SCRIPT_END};
    static const char *const settings[] = {"hostfile=/hosts", "port_base=1", NULL};
    static const char cluster[] = "{\"worker\":[\"n-1:1\",\"n-1:2\",\"m.cluster:1\"]}";

    script_expect(kind, rows, settings, cluster, "worker:1");
}

/* On one node the local ranks may go by processors, not by ranks. */
TEST(test_shuffled_ranks)
{
    static const struct script_row rows[] = {V("OMPI_COMM_WORLD_SIZE", "3"),
                                             V("OMPI_COMM_WORLD_RANK", "1"),
                                             V("OMPI_COMM_WORLD_LOCAL_SIZE", "3"),
                                             V("OMPI_COMM_WORLD_LOCAL_RANK", "2"),
                                             V("PRTE_LAUNCHED", "1"),
                                             V("PMIX_HOSTNAME", "n1"),
                                             SCRIPT_END};
    static const char *const settings[] = {"port_base=1", NULL};

    script_expect(kind, rows, settings,
                  "{\"worker\":[\"127.0.0.1:1\",\"127.0.0.1:2\",\"127.0.0.1:3\"]}",
                  "worker:1");
}

TEST(test_hosts_in_another_order)
{
    static const struct {
        const char *host; /* as the launcher calls that of rank 2 */
        const char *hosts;
        int code;
        const char *words;
    } rows[] = {
        {"m1", "n-1,n-1,m1", 0, NULL},
        {"m1", "n-1,n-1,m1.cluster", 0, NULL},
        {"m1.cluster", "n-1,n-1,m1", 0, NULL},
        {"elsewhere", "n-1,n-1,m1", 0, NULL},
        {"10.0.0.2", "10.0.0.1,10.0.0.2,10.0.0.3", -MU_EPRECONDITION,
         "rank 2 would be on \"10.0.0.3\", but by PMIX_HOSTNAME it is on \"10.0.0.2\""},
        {"n-1", "n-1,m1,m1", -MU_EPRECONDITION,
         "rank 2 would be on \"m1\", but by PMIX_HOSTNAME it is on \"n-1\""},
        {"n-1.cluster", "n-1,m1,m1", -MU_EPRECONDITION, "it is on \"n-1.cluster\""},
        {"10.0.0.9", "10.0.0.1,10.0.0.2,10.0.0.3", 0, NULL},
    };
    char hosts[80];
    const char *const settings[] = {"port_base=1", hosts, NULL};

    for (size_t i = 0; i < COUNT(rows); i++) {
        const struct script_row script[] = {FIVE("2", "0", rows[i].host), SCRIPT_END};
        mu_resolution resolution;
        mu_error error;

        (void)snprintf(hosts, sizeof hosts, "hosts=%s", rows[i].hosts);
        if (rows[i].code != 0) {
            script_expect_error(kind, script, settings, rows[i].code, rows[i].words);
            continue;
        }
        assert_int_equal(script_resolve(kind, script, settings, &error, &resolution), 0);
        mu_cluster_free(resolution.cluster);
    }
}

/* The launcher's host is in the name of the job: its hash modulo 4096 is the port. */
TEST(test_meeting_at_prterun)
{
    static const struct script_row first[] = {FIVE("0", "0", "n-1"), SCRIPT_END};
    static const struct script_row last[] = {FIVE("2", "0", "m1"), SCRIPT_END};
    static const struct script_row elsewhere[] = {FIVE("0", "0", "m1"), SCRIPT_END};
    static const char *const port[] = {"port_base=9", NULL};
    static const char *const any[] = {"port_base=9", "bind_address=0.0.0.0:0", NULL};
    static const char cluster[] = "{\"chief\":[\"n-1:9\"]}";

    expect_bind(first, port, cluster, "chief:0", "");
    expect_bind(first, any, cluster, "chief:0", "tcp://0.0.0.0:9");
    expect_bind(last, port, cluster, "worker:1", "tcp://10.0.0.7:0");
    expect_bind(last, any, cluster, "worker:1", "tcp://0.0.0.0:0");
    script_expect_error(kind, elsewhere, port, -MU_EPRECONDITION,
                        "rank 0 does not run on the host of mpirun (PMIX_NAMESPACE)");
}

TEST(test_names_of_jobs)
{
    static const char *const others[] = {"2110717953",
                                         "slurm.pmix.7.0",
                                         "prterun-n1-x@1",
                                         "prterun-n1-@1",
                                         "prterun-77@1",
                                         "prterun--77@1",
                                         "prterun-n1-77",
                                         "@1",
                                         "-@",
                                         "-7@",
                                         "a-b@7"};
    static const char *const port[] = {"port_base=9", NULL};

    for (size_t i = 0; i < COUNT(others); i++) {
        const struct script_row rows[] = {TWO_HOSTS("1", "1"),
                                          V("PMIX_NAMESPACE", others[i]), SCRIPT_END};

        script_expect_error(kind, rows, port, -MU_ENOTFOUND,
                            "but not where the others are");
    }
}

/* ---- MPICH, Intel MPI ---- */

TEST(test_hydra)
{
    static const struct script_row rows[] = {V("PMI_RANK", "1"), V("PMI_SIZE", "2"),
                                             V("MPI_LOCALRANKID", "1"),
                                             V("MPI_LOCALNRANKS", "2"), SCRIPT_END};
    static const struct script_row spread[] = {V("PMI_RANK", "1"), V("PMI_SIZE", "3"),
                                               SCRIPT_END};
    static const char *const port[] = {"port_base=5", NULL};
    static const char *const hosts[] = {"port_base=5", "hosts=a,b,c", NULL};
    static const char *const few[] = {"port_base=5", "hosts=a,b", NULL};

    script_expect(mpich, rows, port, "{\"worker\":[\"127.0.0.1:5\",\"127.0.0.1:6\"]}",
                  "worker:1");
    script_expect(mpich, spread, hosts, "{\"worker\":[\"a:5\",\"b:5\",\"c:5\"]}",
                  "worker:1");
    script_expect_error(mpich, spread, few, -MU_EINVALID,
                        "it does not say how many of the 3 tasks are on \"a\"");
    script_expect_error(mpich, spread, port, -MU_ENOTFOUND,
                        "this is rank 1 of 3, but not where the others are");
}

/* Each of Hydra's versions has a name of its own for the host. */
TEST(test_hydra_hosts)
{
    static const char *const variables[] = {"MPIR_CVAR_CH3_INTERFACE_HOSTNAME",
                                            "PMI_HOSTNAME", "HYDRA_BSTRAP_LOCALHOST"};
    static const char *const right[] = {"port_base=5", "hosts=10.0.0.1,10.0.0.2", NULL};
    static const char *const wrong[] = {"port_base=5", "hosts=10.0.0.2,10.0.0.1", NULL};

    for (size_t i = 0; i < COUNT(variables); i++) {
        const struct script_row rows[] = {
            V("PMI_RANK", "1"),          V("PMI_SIZE", "2"),
            V("MPI_LOCALRANKID", "0"),   V("MPI_LOCALNRANKS", "1"),
            V(variables[i], "10.0.0.2"), SCRIPT_END};

        script_expect(mpich, rows, right, "{\"worker\":[\"10.0.0.1:5\",\"10.0.0.2:5\"]}",
                      "worker:1");
        script_expect_error(mpich, rows, wrong, -MU_EPRECONDITION, variables[i]);
    }
}

/* Intel MPI has an id for the job, and MPICH none. */
TEST(test_hydra_ports)
{
    static const struct script_row intel[] = {
        V("PMI_RANK", "0"), V("PMI_SIZE", "1"),
        V("I_MPI_HYDRA_UUID", "5e230000-f6f1-7035-c860-06005ff3d969"), SCRIPT_END};
    static const struct script_row plain[] = {V("PMI_RANK", "0"), V("PMI_SIZE", "1"),
                                              SCRIPT_END};

    script_expect(mpich, intel, NULL, "{\"worker\":[\"127.0.0.1:64427\"]}", "worker:0");
    script_expect(mpich, plain, NULL, "{\"worker\":[\"127.0.0.1:61440\"]}", "worker:0");
}

/* Within a job of Slurm's Hydra starts its daemons in a step, one for each node. */
TEST(test_hydra_in_a_step)
{
    static const struct script_row rows[] = {
        V("PMI_RANK", "2"),        V("PMI_SIZE", "4"),
        V("MPI_LOCALRANKID", "0"), V("MPI_LOCALNRANKS", "2"),
        V("PMI_HOSTNAME", "n2"),   V("SLURM_STEP_NODELIST", "n[1-2]"),
        V("SLURM_PROCID", "1"),    V("SLURM_STEP_NUM_TASKS", "2"),
        V("SLURM_JOB_ID", "7"),    SCRIPT_END};
    static const struct script_row srun[] = {V("PMI_RANK", "1"), V("PMI_SIZE", "2"),
                                             V("SLURM_STEP_NODELIST", "n[1-2]"),
                                             SCRIPT_END};
    static const char *const port[] = {"port_base=5", NULL};

    script_expect(mpich, rows, port, "{\"worker\":[\"n1:5\",\"n1:6\",\"n2:5\",\"n2:6\"]}",
                  "worker:2");
    script_expect_error(mpich, srun, port, -MU_ENOTFOUND, "not where the others are");
}

TEST(test_hydra_refused)
{
    static const struct script_row no_size[] = {V("PMI_RANK", "0"), SCRIPT_END};
    mu_error why;

    script_expect_error(mpich, no_size, NULL, -MU_ENOTFOUND,
                        "PMI_SIZE is not set: mpirun sets it for each task");
    assert_int_equal(script_detect(mpich, no_size, NULL, &why), 1);
    assert_int_equal(script_detect(mpich, NULL, NULL, &why), 0);
    assert_string_equal(why.message, "PMI_RANK is not set");
}

TEST(test_job_ids)
{
    assert_int_equal(mu__mpi_id("2110717952.0;tcp://x"), 2110717952);
    assert_int_equal(mu__mpi_id("prterun-a-1@1"), mu__mpi_id("prterun-a-1@1"));
    assert_int_not_equal(mu__mpi_id("5e23-a"), mu__mpi_id("5f23-a"));
    assert_int_not_equal(mu__mpi_id("prterun-a-1@1"), mu__mpi_id("prterun-a-2@1"));
}

TEST_PROGRAM()
