/* The resolver slurm, by rows; their environments are what srun of Slurm 22.05 gave, with
 * what does not matter left out. */
#include "resolver/kinds.h"
#include "tests/support/script.h"
#include "tests/support/test.h"

#include <muster/cluster.h>

#define V SCRIPT_VARIABLE
#define COUNT(array) (sizeof(array) / sizeof(array)[0])

static const struct mu__resolver_kind *const kind = &mu__resolver_slurm;

/* srun -N2 -n3, rank 1 */
#define THREE                                                                          \
    V("SLURM_JOB_ID", "6"), V("SLURM_JOB_NODELIST", "n[1-2]"), V("SLURM_NTASKS", "3"), \
        V("SLURM_STEP_NODELIST", "n[1-2]"), V("SLURM_STEP_NUM_TASKS", "3"),            \
        V("SLURM_STEP_TASKS_PER_NODE", "2,1"), V("SLURM_TASKS_PER_NODE", "2,1"),       \
        V("SLURM_PROCID", "1"), V("SLURM_LOCALID", "1"), V("SLURM_NODEID", "0")

static const struct script_row three[] = {THREE, SCRIPT_END};

TEST(test_all_are_workers)
{
    mu_resolution resolution;
    mu_error error;

    assert_int_equal(script_resolve(kind, three, NULL, &error, &resolution), 0);
    assert_string_equal(resolution.rpc_layer, "grpc");
    mu_cluster_free(resolution.cluster);
    script_expect(kind, three, NULL,
                  "{\"worker\":[\"n1:10192\",\"n1:10193\",\"n2:10192\"]}", "worker:1");
}

TEST(test_jobs_in_the_order_of_ranks)
{
    static const char *const settings[] = {"jobs=ps=1,worker=*", "port_base=1000",
                                           "host_suffix=-ib.local", NULL};

    script_expect(kind, three, settings,
                  "{\"ps\":[\"n1-ib.local:1000\"],"
                  "\"worker\":[\"n1-ib.local:1001\",\"n2-ib.local:1000\"]}",
                  "worker:0");
}

/* The port of the first of `tasks` tasks of a job, all on one node. */
static unsigned port_of(unsigned job, unsigned tasks)
{
    char job_text[16];
    char tasks_text[16];
    const struct script_row rows[] = {
        V("SLURM_JOB_ID", job_text),
        V("SLURM_STEP_NODELIST", "a"),
        V("SLURM_STEP_NUM_TASKS", tasks_text),
        V("SLURM_STEP_TASKS_PER_NODE", tasks_text),
        V("SLURM_PROCID", "0"),
        SCRIPT_END,
    };
    mu_resolution resolution;
    unsigned port;
    mu_error error;

    (void)snprintf(job_text, sizeof job_text, "%u", job);
    (void)snprintf(tasks_text, sizeof tasks_text, "%u", tasks);
    assert_int_equal(script_resolve(kind, rows, NULL, &error, &resolution), 0);
    port = (unsigned)atoi(mu_cluster_address(resolution.cluster, "worker", 0) + 2);
    mu_cluster_free(resolution.cluster);
    return port;
}

/* Jobs whose ids are close have no port in common, however many tasks a node has. */
TEST(test_ports_of_jobs_do_not_overlap)
{
    static const struct {
        unsigned tasks;
        unsigned jobs; /* so many in a row */
    } rows[] = {{1, 4096}, {2, 625}, {8, 625}, {32, 625}, {33, 312}, {128, 156}};

    for (size_t i = 0; i < COUNT(rows); i++) {
        unsigned char taken[65536] = {0};

        for (unsigned job = 0; job < rows[i].jobs; job += rows[i].jobs / 50 + 1)
            for (unsigned near = job; near <= job + 1 && near < rows[i].jobs; near++) {
                unsigned port = port_of(70000 + near, rows[i].tasks);

                for (unsigned k = 0; k < rows[i].tasks; k++) {
                    assert_true(port + k <= 65535 && port + k >= 10000);
                    assert_int_equal(taken[port + k], 0);
                    taken[port + k] = 1;
                }
            }
    }
}

/* A task refuses those of another job by the name of its cluster. */
TEST(test_the_job_names_the_cluster)
{
    static const struct script_row unknown[] = {
        V("SLURM_STEP_NODELIST", "a"), V("SLURM_STEP_NUM_TASKS", "1"),
        V("SLURM_STEP_TASKS_PER_NODE", "1"), V("SLURM_PROCID", "0"), SCRIPT_END};
    static const struct {
        const struct script_row *script;
        const char *name;
    } rows[] = {{three, "slurm-6"}, {unknown, ""}};

    for (size_t i = 0; i < COUNT(rows); i++) {
        mu_resolution resolution;
        mu_error error;

        assert_int_equal(script_resolve(kind, rows[i].script, NULL, &error, &resolution),
                         0);
        assert_string_equal(resolution.cluster_name, rows[i].name);
        mu_cluster_free(resolution.cluster);
    }
}

TEST(test_port_by_the_job)
{
    static const struct script_row rows[] = {
        V("SLURM_JOB_ID", "4100"),      V("SLURM_STEP_NODELIST", "a,b"),
        V("SLURM_STEP_NUM_TASKS", "2"), V("SLURM_STEP_TASKS_PER_NODE", "1(x2)"),
        V("SLURM_PROCID", "0"),         SCRIPT_END,
    };

    script_expect(kind, rows, NULL, "{\"worker\":[\"a:61444\",\"b:61444\"]}", "worker:0");
}

/* Slurm keeps its own order of nodes: names are not sorted. */
TEST(test_hosts_keep_their_order)
{
    static const struct script_row rows[] = {
        V("SLURM_STEP_NODELIST", "z,b[02-03],a"),
        V("SLURM_STEP_NUM_TASKS", "4"),
        V("SLURM_STEP_TASKS_PER_NODE", "1(x4)"),
        V("SLURM_PROCID", "3"),
        V("SLURM_NODEID", "3"),
        SCRIPT_END,
    };

    script_expect(kind, rows, NULL,
                  "{\"worker\":[\"z:61440\",\"b02:61440\",\"b03:61440\",\"a:61440\"]}",
                  "worker:3");
}

/* Where ranks are by the distribution, as srun -l printed it for nine and eleven tasks on
 * n[1-2],nodea,nodeb. */
TEST(test_distributions)
{
    static const struct {
        const char *name;
        const char *plane;
        const char *counts;
        const char *tasks;
        const char *ports; /* node (1, 2, a, b) and last digit of each rank */
    } rows[] = {
        {"block", NULL, "4,3,1(x2)", "9", "18 19 10 11 28 29 20 a8 b8"},
        {"block:cyclic", NULL, "4,3,1(x2)", "9", "18 19 10 11 28 29 20 a8 b8"},
        {"block,pack", NULL, "4,3,1(x2)", "9", "18 19 10 11 28 29 20 a8 b8"},
        {NULL, NULL, "4,3,1(x2)", "9", "18 19 10 11 28 29 20 a8 b8"},
        {"cyclic", NULL, "4,3,1(x2)", "9", "18 28 a8 b8 19 29 10 20 11"},
        {"cyclic:block", NULL, "4,3,1(x2)", "9", "18 28 a8 b8 19 29 10 20 11"},
        {"plane", "2", "4(x2),2,1", "11", "18 19 28 29 a8 a9 b8 10 11 20 21"},
    };
    static const char *const settings[] = {"port_base=8888", NULL};

    for (size_t i = 0; i < COUNT(rows); i++) {
        const struct script_row script[] = {
            V("SLURM_STEP_NODELIST", "n[1-2],na,nb"),
            V("SLURM_STEP_NUM_TASKS", rows[i].tasks),
            V("SLURM_STEP_TASKS_PER_NODE", rows[i].counts),
            V("SLURM_PROCID", "0"),
            V("SLURM_LOCALID", "0"),
            V("SLURM_NODEID", "0"),
            V("SLURM_DIST_PLANESIZE", rows[i].plane == NULL ? "" : rows[i].plane),
            V(rows[i].name == NULL ? "NOTHING" : "SLURM_DISTRIBUTION",
              rows[i].name == NULL ? "" : rows[i].name),
            SCRIPT_END,
        };
        mu_resolution resolution;
        char got[128] = "";
        mu_error error;

        if (script_resolve(kind, script, settings, &error, &resolution) != 0)
            fail_msg("%s: %s", rows[i].name, error.message);
        for (int j = 0; j < atoi(rows[i].tasks); j++) {
            const char *address = mu_cluster_address(resolution.cluster, "worker", j);

            (void)snprintf(got + strlen(got), sizeof got - strlen(got), "%s%c%c",
                           j == 0 ? "" : " ", address[1], address[6]);
        }
        assert_string_equal(got, rows[i].ports);
        mu_cluster_free(resolution.cluster);
    }
}

#define ARBITRARY(path)                                                         \
    V("SLURM_STEP_NODELIST", "n1,nodea,nodeb"), V("SLURM_STEP_NUM_TASKS", "4"), \
        V("SLURM_STEP_TASKS_PER_NODE", "1(x2),2"), V("SLURM_PROCID", "2"),      \
        V("SLURM_LOCALID", "1"), V("SLURM_NODEID", "2"),                        \
        V("SLURM_DISTRIBUTION", "arbitrary"), V("SLURM_HOSTFILE", path),        \
        V("SLURM_SUBMIT_DIR", "/shared/me")

/* The file's lines are the ranks; there may be more than this step has tasks. */
TEST(test_arbitrary)
{
    static const struct script_row relative[] = {
        ARBITRARY("hosts"),
        SCRIPT_FILE("/shared/me/hosts", "nodeb\nn1\nnodeb\nnodea\nnodea\n"),
        SCRIPT_END,
    };
    static const struct script_row absolute[] = {
        ARBITRARY("/hosts"),
        SCRIPT_FILE("/hosts", "nodeb\nn1\nnodeb\nnodea"),
        SCRIPT_END,
    };
    static const char cluster[] = "{\"worker\":[\"nodeb:10000\",\"n1:10000\","
                                  "\"nodeb:10001\",\"nodea:10000\"]}";

    script_expect(kind, relative, NULL, cluster, "worker:2");
    script_expect(kind, absolute, NULL, cluster, "worker:2");
}

TEST(test_arbitrary_without_its_order)
{
    static const struct script_row gone[] = {ARBITRARY("/hosts"), SCRIPT_END};
    static const struct script_row few[] = {
        ARBITRARY("/hosts"), SCRIPT_FILE("/hosts", "nodeb,n1"), SCRIPT_END};
    static const struct script_row other[] = {
        ARBITRARY("/hosts"), SCRIPT_FILE("/hosts", "nodeb,n1,x,nodea"), SCRIPT_END};
    static const struct script_row differs[] = {
        ARBITRARY("/hosts"), SCRIPT_FILE("/hosts", "nodeb,nodea,n1,nodeb"), SCRIPT_END};

    script_expect_error(kind, gone, NULL, -MU_ENOTFOUND,
                        "the file with the order of the hosts cannot be read: "
                        "SLURM_HOSTFILE");
    script_expect_error(kind, few, NULL, -MU_EINVALID,
                        "SLURM_HOSTFILE: it has 2 hosts for 4 tasks");
    script_expect_error(kind, other, NULL, -MU_ENOTFOUND,
                        "SLURM_HOSTFILE: task 2 is on \"x\", which is none of the hosts");
    script_expect_error(kind, differs, NULL, -MU_EPRECONDITION, "SLURM_NODEID is 2, but");
}

TEST(test_tasks_per_node)
{
    static const char *const number[] = {"tasks_per_node=2", NULL};
    static const char *const by_host[] = {"tasks_per_node=b=3,a=1", NULL};
    static const char *const by_list[] = {"tasks_per_node=c[1-2]=1,b=2", NULL};
    static const struct script_row rows[] = {
        V("SLURM_STEP_NODELIST", "a,b"),
        V("SLURM_STEP_NUM_TASKS", "4"),
        V("SLURM_STEP_TASKS_PER_NODE", "4,4"),
        V("SLURM_PROCID", "3"),
        V("SLURM_NODEID", "1"),
        SCRIPT_END,
    };
    static const struct script_row three_hosts[] = {V("SLURM_STEP_NODELIST", "b,c[1-2]"),
                                                    V("SLURM_STEP_NUM_TASKS", "4"),
                                                    V("SLURM_PROCID", "0"), SCRIPT_END};

    script_expect(kind, rows, number,
                  "{\"worker\":[\"a:10000\",\"a:10001\",\"b:10000\",\"b:10001\"]}",
                  "worker:3");
    script_expect(kind, rows, by_host,
                  "{\"worker\":[\"a:10000\",\"b:10000\",\"b:10001\",\"b:10002\"]}",
                  "worker:3");
    script_expect(kind, three_hosts, by_list,
                  "{\"worker\":[\"b:10000\",\"b:10001\",\"c1:10000\",\"c2:10000\"]}",
                  "worker:0");
}

TEST(test_tasks_per_node_refused)
{
    static const struct {
        const char *setting;
        int code;
        const char *words;
    } rows[] = {
        {"tasks_per_node=3", -MU_EINVALID,
         "setting tasks_per_node of resolver slurm: 6 tasks on 2 nodes, "
         "but SLURM_STEP_NUM_TASKS is 3"},
        {"tasks_per_node=n1=3", -MU_EINVALID,
         "it does not say how many tasks \"n2\" has"},
        {"tasks_per_node=n1=1,m=2", -MU_ENOTFOUND, "\"m\" is none of the 2 hosts"},
        {"tasks_per_node=n1=1,n[1-2]=2", -MU_EEXISTS, "\"n1\" appears twice"},
        {"tasks_per_node=n1=0,n2=3", -MU_EINVALID, "expected a number, or HOST=NUMBER"},
        {"tasks_per_node=n1", -MU_EINVALID, "expected a number, or HOST=NUMBER"},
        {"tasks_per_node=n[=1", -MU_EINVALID, "expected a number"},
        {"port_base=0", -MU_EINVALID,
         "expected a whole number of 1 to 65535, or \"auto\""},
        {"port_base=x", -MU_EINVALID,
         "setting port_base of resolver slurm: expected a whole number"},
        {"port_base=65535", -MU_EINVALID, "65535 leaves too few ports"},
        {"jobs=worker=2", -MU_EINVALID, "the jobs have 2 tasks, but there are 3"},
        {"gpus_per_task=1", -MU_EINVALID,
         "gpus_per_task: 2 tasks of one node with 1 GPUs each need more than the 0 GPUs"},
        {"rpc_layer=a-layer-of-many-letters", -MU_EINVALID, "expected at most 15 bytes"},
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        const char *const settings[] = {rows[i].setting, NULL};

        script_expect_error(kind, three, settings, rows[i].code, rows[i].words);
    }
}

/* One variable less, or another one. */
TEST(test_variables_refused)
{
    static const struct {
        const char *name;
        const char *text; /* NULL: not set */
        int code;
        const char *words;
    } rows[] = {
        {"SLURM_PROCID", NULL, -MU_ENOTFOUND,
         "SLURM_PROCID is not set: it is for tasks of a Slurm step; start it with srun"},
        {"SLURM_PROCID", "3", -MU_EINVALID,
         "SLURM_PROCID: expected a number below 3 (SLURM_STEP_NUM_TASKS), got 3"},
        {"SLURM_PROCID", "-1", -MU_EINVALID,
         "SLURM_PROCID: expected a whole number of 0 to 65535, got \"-1\""},
        {"SLURM_STEP_NUM_TASKS", NULL, -MU_ENOTFOUND, "SLURM_STEP_NUM_TASKS is not set"},
        {"SLURM_STEP_NUM_TASKS", "0", -MU_EINVALID, "a whole number of 1 to 65536"},
        {"SLURM_STEP_NUM_TASKS", "4", -MU_EINVALID,
         "SLURM_STEP_TASKS_PER_NODE: 3 tasks on 2 nodes, but SLURM_STEP_NUM_TASKS is 4"},
        {"SLURM_STEP_NODELIST", NULL, -MU_ENOTFOUND, "SLURM_STEP_NODELIST is not set"},
        {"SLURM_STEP_NODELIST", "n[1-", -MU_EINVALID,
         "SLURM_STEP_NODELIST: at 5 (\"n[1-\"): expected a number"},
        {"SLURM_STEP_NODELIST", " ", -MU_EINVALID, "expected a host at least"},
        {"SLURM_STEP_NODELIST", "n[1-3]", -MU_EINVALID,
         "it has numbers for 2 nodes, but there are 3"},
        {"SLURM_STEP_NODELIST", "n1,n1", -MU_EEXISTS, "SLURM_STEP_NODELIST"},
        {"SLURM_STEP_TASKS_PER_NODE", NULL, -MU_ENOTFOUND,
         "SLURM_STEP_TASKS_PER_NODE is not set"},
        {"SLURM_STEP_TASKS_PER_NODE", "1,1,1", -MU_EINVALID,
         "it has numbers for more than the 2 nodes"},
        {"SLURM_STEP_TASKS_PER_NODE", "2(x", -MU_EINVALID,
         "SLURM_STEP_TASKS_PER_NODE: at 4 of \"2(x\": expected a number from 1"},
        {"SLURM_STEP_TASKS_PER_NODE", "2(y2)", -MU_EINVALID, "expected \"(xNUMBER)\""},
        {"SLURM_STEP_TASKS_PER_NODE", "2(x2", -MU_EINVALID, "expected \")\""},
        {"SLURM_STEP_TASKS_PER_NODE", "2;1", -MU_EINVALID, "expected \",\""},
        {"SLURM_STEP_TASKS_PER_NODE", "0,3", -MU_EINVALID, "a number from 1"},
        {"SLURM_STEP_TASKS_PER_NODE", "2,", -MU_EINVALID, "at 3 of \"2,\""},
        {"SLURM_STEP_TASKS_PER_NODE", "99999999999", -MU_EINVALID, "from 1 to 65536"},
        {"SLURM_DISTRIBUTION", "diagonal", -MU_EINVALID,
         "SLURM_DISTRIBUTION: expected block, cyclic, plane or arbitrary, got"},
        {"SLURM_DISTRIBUTION", "plane", -MU_ENOTFOUND, "SLURM_DIST_PLANESIZE is not set"},
        {"SLURM_DISTRIBUTION", "arbitrary", -MU_ENOTFOUND, "SLURM_HOSTFILE"},
        {"SLURM_DISTRIBUTION", "cyclic", -MU_EPRECONDITION,
         "SLURM_NODEID is 0, but rank 1 would have 1 by SLURM_STEP_TASKS_PER_NODE"},
        {"SLURM_NODEID", "1", -MU_EPRECONDITION, "--distribution=block"},
        {"SLURM_LOCALID", "0", -MU_EPRECONDITION, "SLURM_LOCALID is 0"},
        {"SLURM_LOCALID", "x", -MU_EINVALID, "SLURM_LOCALID: expected a whole number"},
        {"SLURM_GPUS_ON_NODE", "many", -MU_EINVALID, "SLURM_GPUS_ON_NODE"},
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        struct script_row script[COUNT(three) + 1];
        size_t count = 0;

        if (rows[i].text != NULL)
            script[count++] = (struct script_row)V(rows[i].name, rows[i].text);
        for (size_t j = 0; j < COUNT(three); j++)
            if (three[j].name == NULL || strcmp(three[j].name, rows[i].name) != 0)
                script[count++] = three[j];
        script_expect_error(kind, script, NULL, rows[i].code, rows[i].words);
    }
}

/* In a batch script, which is no step. */
TEST(test_batch_script)
{
    static const struct script_row rows[] = {
        V("SLURM_JOB_ID", "7"),         V("SLURM_JOB_NODELIST", "n[1-2]"),
        V("SLURM_NTASKS", "5"),         V("SLURM_TASKS_PER_NODE", "4,1"),
        V("SLURM_PROCID", "0"),         V("SLURM_LOCALID", "0"),
        V("SLURM_NODEID", "0"),         V("SLURM_DISTRIBUTION", "plane"),
        V("SLURM_DIST_PLANESIZE", "2"), SCRIPT_END,
    };

    script_expect(kind, rows, NULL,
                  "{\"worker\":[\"n1:10224\",\"n1:10225\",\"n2:10224\",\"n1:10226\","
                  "\"n1:10227\"]}",
                  "worker:0");
    script_expect_error(kind, NULL, NULL, -MU_ENOTFOUND, "start it with srun");
}

/* ---- Heterogeneous jobs ---- */

TEST(test_components_refused)
{
    static const struct script_row one[] = {V("SLURM_HET_SIZE", "1"), THREE, SCRIPT_END};
    static const struct script_row two[] = {V("SLURM_HET_SIZE", "2"), THREE, SCRIPT_END};
    mu_resolution resolution;
    mu_error error;

    assert_int_equal(script_resolve(kind, one, NULL, &error, &resolution), 0);
    mu_cluster_free(resolution.cluster);
    script_expect_error(kind, two, NULL, -MU_EPRECONDITION,
                        "SLURM_HET_SIZE is 2: which hosts are whose is not known in a "
                        "heterogeneous job");
}

TEST(test_detection)
{
    static const struct script_row batch[] = {V("SLURM_JOB_ID", "7"), SCRIPT_END};
    static const struct script_row mpirun[] = {THREE, V("OMPI_COMM_WORLD_RANK", "2"),
                                               SCRIPT_END};
    static const struct script_row hydra[] = {THREE, V("MPI_LOCALRANKID", "0"),
                                              SCRIPT_END};
    static const struct script_row prrte[] = {THREE, V("PRTE_LAUNCHED", "1"), SCRIPT_END};
    mu_error why;

    assert_int_equal(script_detect(kind, three, NULL, &why), 1);
    assert_int_equal(script_detect(kind, NULL, NULL, &why), 0);
    assert_string_equal(why.message, "SLURM_PROCID is not set");
    assert_int_equal(script_detect(kind, batch, NULL, &why), 0);
    assert_non_null(strstr(why.message, "start it with srun"));
    assert_int_equal(script_detect(kind, mpirun, NULL, &why), 0);
    assert_non_null(strstr(why.message, "mpirun started this process"));
    assert_int_equal(script_detect(kind, hydra, NULL, &why), 0);
    assert_non_null(strstr(why.message, "MPI_LOCALRANKID is set"));
    assert_int_equal(script_detect(kind, prrte, NULL, &why), 0);
    assert_non_null(strstr(why.message, "PRTE_LAUNCHED is set"));
}

/* ---- GPUs: one node with two tasks, of which this is the second, and one with one
 * ---- */

static void expect_gpus(const struct script_row *more, const char *const *settings,
                        const char *visible, int count)
{
    struct script_row rows[COUNT(three) + 8];
    mu_resolution resolution;
    mu_error error;
    size_t used = 0;

    for (; more != NULL && more->name != NULL; more++)
        rows[used++] = *more;
    memcpy(rows + used, three, sizeof three);
    if (script_resolve(kind, rows, settings, &error, &resolution) != 0)
        fail_msg("%s", error.message);
    assert_string_equal(resolution.visible_devices, visible);
    assert_string_equal(resolution.accelerator, "GPU");
    assert_int_equal(resolution.accelerators, count);
    mu_cluster_free(resolution.cluster);
}

TEST(test_gpus_are_split)
{
    static const char *const set[] = {"gpus_per_node=6", NULL};
    static const char *const one[] = {"gpus_per_node=6", "gpus_per_task=1", NULL};
    static const char *const off[] = {"gpus_per_node=6", "auto_set_gpu=0", NULL};
    static const struct script_row slurm[] = {
        V("SLURM_GPUS_ON_NODE", "4"), V("CUDA_VISIBLE_DEVICES", "0,1,2,3"), SCRIPT_END};
    static const struct script_row count_alone[] = {V("SLURM_GPUS_ON_NODE", "4"),
                                                    SCRIPT_END};
    static const struct script_row visible[] = {
        V("CUDA_VISIBLE_DEVICES", "GPU-a,GPU-b,7"), SCRIPT_END};
    static const struct script_row driver[] = {{.kind = MU__REQUEST_FOLDER,
                                                .name = "/proc/driver/nvidia/gpus",
                                                .text = "0000:01:00.0\n0000:02:00.0\n"},
                                               SCRIPT_END};

    expect_gpus(NULL, set, "3,4,5", 3);
    expect_gpus(NULL, one, "1", 1);
    expect_gpus(NULL, off, "", 3);
    expect_gpus(slurm, NULL, "2,3", 2);
    expect_gpus(count_alone, NULL, "2,3", 2);
    expect_gpus(visible, NULL, "GPU-b", 1);
    expect_gpus(driver, NULL, "1", 1);
}

TEST(test_no_gpus)
{
    static const char *const zero[] = {"gpus_per_node=0", NULL};
    static const struct script_row none[] = {V("CUDA_VISIBLE_DEVICES", "NoDevFiles"),
                                             SCRIPT_END};
    static const struct script_row one[] = {V("SLURM_GPUS_ON_NODE", "1"), SCRIPT_END};

    expect_gpus(NULL, NULL, "", 0);
    expect_gpus(NULL, zero, "", 0);
    expect_gpus(none, NULL, "", 0);
    expect_gpus(one, NULL, "", 0);
}

/* With --gpus-per-task each task sees its own ones already. */
TEST(test_gpus_that_slurm_has_split)
{
    static const char *const three_each[] = {"gpus_per_task=3", NULL};
    static const struct script_row bound[] = {
        V("SLURM_GPUS_ON_NODE", "4"), V("CUDA_VISIBLE_DEVICES", "2,3"), SCRIPT_END};
    static const struct script_row rows[] = {THREE, V("SLURM_GPUS_ON_NODE", "4"),
                                             V("CUDA_VISIBLE_DEVICES", "2,3"),
                                             SCRIPT_END};

    expect_gpus(bound, NULL, "", 2);
    script_expect_error(kind, rows, three_each, -MU_EINVALID,
                        "gpus_per_task is 3, but Slurm has given this task 2 of the "
                        "node's 4 GPUs");
}

TEST(test_more_gpus_than_there_are)
{
    static const char *const two_each[] = {"gpus_per_task=2", NULL};
    static const struct script_row rows[] = {THREE, V("CUDA_VISIBLE_DEVICES", "0,1,2"),
                                             SCRIPT_END};

    script_expect_error(kind, rows, two_each, -MU_EINVALID,
                        "2 tasks of one node with 2 GPUs each need more than the 3 GPUs");
}

TEST_PROGRAM()
