/* A real Slurm starts tasks with srun: where Slurm has put each of them is what all of
 * them say, and they are a cluster. */
#include "tests/real/slurm.h"

enum { TASKS_MAX = 13 };

static struct cli srun;
static struct slurm slurm;
static bool is_up;
static char plugin[96];

static int set_up(void **state)
{
    (void)state;
    (void)cli_variable("MUSTER_SOURCE");
    is_up = slurm_start(&slurm);
    if (is_up)
        launch_compile(slurm.folder, plugin, sizeof plugin);
    return 0;
}

static int clean(void **state)
{
    (void)state;
    if (is_up)
        slurm_stop(&slurm);
    return 0;
}

/* ---- Where tasks are ---- */

/* What one task wrote: its place by Slurm, then what it found out. */
struct told {
    char place[64]; /* "127.0.0.1:1001", by node and local number */
    cJSON *json;
};

static void read_told(int rank, int port, struct told *told)
{
    static char text[1 << 16];
    char node[32];
    char name[32];
    int local;
    int size;

    (void)snprintf(name, sizeof name, "out.%d", rank);
    cli_read_file(slurm_path(&slurm, name), text, sizeof text);
    if (sscanf(text, "%31s %d%n", node, &local, &size) != 2)
        fail_msg("task %d wrote: %s", rank, text);
    (void)snprintf(told->place, sizeof told->place, "%s:%d", node, port + local);
    told->json = cJSON_Parse(text + size);
    if (told->json == NULL)
        fail_msg("task %d wrote: %s", rank, text);
}

static void check_task(const struct told *tasks, int count, int rank)
{
    const cJSON *root = tasks[rank].json;
    const cJSON *cluster = cJSON_GetObjectItem(root, "cluster");
    const cJSON *workers = cJSON_GetObjectItem(cluster, "worker");
    const cJSON *task = cJSON_GetObjectItem(root, "task");

    assert_string_equal(cJSON_GetObjectItem(task, "type")->valuestring, "worker");
    assert_int_equal(cJSON_GetObjectItem(task, "index")->valueint, rank);
    assert_int_equal(cJSON_GetArraySize(workers), count);
    for (int i = 0; i < count; i++)
        assert_string_equal(cJSON_GetArrayItem(workers, i)->valuestring, tasks[i].place);
}

/* Start with these words, which end with srun and its options; each of so many tasks
 * writes where Slurm says that it is, and what muster says about all. */
static void check_run(const char *const *words, int tasks)
{
    struct told told[TASKS_MAX];
    static const char *const script[] = {
        "sh", "-c",
        "exec >$MUSTER_FOLDER/out.$SLURM_PROCID 2>&1; "
        "echo $SLURMD_NODENAME $SLURM_LOCALID; exec $MUSTER_BIN resolve -o json "
        "--resolver slurm --resolver-set port_base=1000",
        NULL};
    const char *arguments[CLI_ARGUMENTS_MAX];
    size_t count = 0;

    assert_int_equal(setenv("MUSTER_FOLDER", slurm.folder, 1), 0);
    while (*words != NULL)
        arguments[count++] = *words++;
    memcpy(arguments + count, script, sizeof script);
    launch_start(&srun, arguments);
    cli_expect_code(&srun, 0);
    for (int i = 0; i < tasks; i++)
        read_told(i, 1000, &told[i]);
    for (int i = 0; i < tasks; i++)
        check_task(told, tasks, i);
    for (int i = 0; i < tasks; i++)
        cJSON_Delete(told[i].json);
}

static void check_places(int nodes, int tasks, const char *distribution)
{
    char nodes_text[16];
    char tasks_text[16];
    const char *const words[] = {"srun", nodes_text, tasks_text, distribution, NULL};

    (void)snprintf(nodes_text, sizeof nodes_text, "-N%d", nodes);
    (void)snprintf(tasks_text, sizeof tasks_text, "-n%d", tasks);
    check_run(words, tasks);
}

static void need_slurm(void)
{
    needs_skip_test(is_up ? NULL : "Slurm does not start here");
}

LISTED_TEST(test_distributions)
{
    static const struct {
        const char *option;
        int nodes;
        int tasks;
    } rows[] = {
        {"--distribution=block", 4, 9},
        {"--distribution=block", 2, 5},
        {"--distribution=cyclic", 4, 13},
        {"--distribution=cyclic", 3, 7},
        {"--distribution=cyclic", 2, 6},
        {"--distribution=plane=2", 4, 11},
        {"--distribution=plane=3", 4, 13},
        {"--distribution=plane=1", 3, 8},
        {"--distribution=plane=2", 2, 5},
        {"--distribution=block:cyclic", 3, 8},
        {"--distribution=cyclic:block", 4, 10},
        {"--mpi=none", 4, 13},
        {"--mpi=none", 4, 4},
        {"--mpi=none", 1, 3},
        {"--distribution=block,pack", 4, 8},
        {"--ntasks-per-node=2", 4, 8},
    };

    need_slurm();
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        check_places(rows[i].nodes, rows[i].tasks, rows[i].option);
}

LISTED_TEST(test_arbitrary)
{
    need_slurm();
    cli_write_file(slurm_path(&slurm, "hosts"),
                   "127.0.0.3\n127.0.0.1\n127.0.0.3\n127.0.0.2\n127.0.0.1\n");
    (void)setenv("SLURM_HOSTFILE", slurm_path(&slurm, "hosts"), 1);
    check_places(3, 5, "--distribution=arbitrary");
    (void)unsetenv("SLURM_HOSTFILE");
}

/* ---- A cluster ---- */

static void expect_all(const char *const *lines)
{
    for (; *lines != NULL; lines++)
        (void)cli_expect(&srun, NULL, *lines);
    cli_expect_code(&srun, 0);
}

/* MPICH's launcher within a job: it starts a daemon on each node with srun. */
LISTED_TEST(test_hydra_in_a_job)
{
    static const char *const lines[] = {"\"index\":0}", "\"index\":1}", "\"index\":2}",
                                        "\"index\":3}"};
    const char *const words[] = {"salloc",
                                 "-Q",
                                 "-N2",
                                 "-n4",
                                 "--ntasks-per-node=2",
                                 "mpiexec.hydra",
                                 "-n",
                                 "4",
                                 cli_variable("MUSTER_BIN"),
                                 "resolve",
                                 "-o",
                                 "TF_CONFIG",
                                 NULL};

    need_slurm();
    needs_skip_test(needs_programs("mpiexec.hydra", NULL));
    launch_start(&srun, words);
    cli_expect_code(&srun, 0);
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++)
        (void)cli_expect(&srun, NULL, lines[i]);
}

LISTED_TEST(test_a_cluster)
{
    char base[64];
    const char *const arguments[] = {"srun",
                                     "-N2",
                                     "-n4",
                                     cli_variable("MUSTER_BIN"),
                                     "node",
                                     "--resolver-set",
                                     "slurm.jobs=chief=1,ps=1,worker=*",
                                     "--resolver-set",
                                     base,
                                     "--plugin",
                                     plugin,
                                     "--set",
                                     "workers=2",
                                     NULL};
    static const char *const lines[] = {"/job:worker/task:0 says so",
                                        "/job:worker/task:1 says so",
                                        "all have said so: yes", NULL};

    need_slurm();
    (void)snprintf(base, sizeof base, "slurm.port_base=%d", ports_free_run(4));
    launch_start(&srun, arguments);
    expect_all(lines);
}

/* Two jobs of one user on the same node at once, started in the same way with nothing
 * chosen: each is a cluster of its own tasks alone. */
LISTED_TEST(test_two_jobs_on_a_node)
{
    static struct cli second;
    struct cli *const jobs[] = {&srun, &second};
    const char *const arguments[] = {"srun",
                                     "-N1",
                                     "-n2",
                                     "--nodelist=127.0.0.1",
                                     cli_variable("MUSTER_BIN"),
                                     "node",
                                     "--resolver-set",
                                     "slurm.jobs=chief=1,worker=*",
                                     "--plugin",
                                     plugin,
                                     "--set",
                                     "workers=1",
                                     NULL};

    need_slurm();
    for (size_t i = 0; i < 2; i++)
        launch_start(jobs[i], arguments);
    for (size_t i = 0; i < 2; i++) {
        (void)cli_expect(jobs[i], NULL, "/job:worker/task:0 says so");
        (void)cli_expect(jobs[i], NULL, "all have said so: yes");
        cli_expect_code(jobs[i], 0);
    }
}

/* What nodes and clients of a job take for their cluster's name. */
LISTED_TEST(test_the_job_names_the_cluster)
{
    static const char *const words[] = {"srun",
                                        "-N1",
                                        "-n1",
                                        "sh",
                                        "-c",
                                        "$MUSTER_BIN resolve -o json --resolver slurm "
                                        "| grep -F \"\\\"slurm-$SLURM_JOB_ID\\\"\"",
                                        NULL};

    need_slurm();
    launch_start(&srun, words);
    cli_expect_code(&srun, 0);
    (void)cli_expect(&srun, NULL, "\"cluster_name\"");
}

/* Each task of a node has its own of the node's GPUs. */
LISTED_TEST(test_gpus)
{
    static const char *const lines[] = {"chief/task:0 sees 0,1.",
                                        "worker/task:0 sees 2,3.",
                                        "all have said so: yes", NULL};
    char base[64];
    /* clang-format off */
    const char *const arguments[] = {
        "srun", "-N1", "-n2", "--gres=gpu:4", cli_variable("MUSTER_BIN"), "node",
        "--resolver", "slurm", "--resolver-set", "jobs=chief=1,worker=*",
        "--resolver-set", base, "--plugin", plugin, "--set", "workers=1", NULL};
    /* clang-format on */

    need_slurm();
    (void)snprintf(base, sizeof base, "port_base=%d", ports_free_run(4));
    launch_start(&srun, arguments);
    expect_all(lines);
}

/* With --gpus-per-task Slurm has split them itself. */
LISTED_TEST(test_gpus_of_slurm)
{
    static const char *const lines[] = {"chief/task:0 sees 0,1.",
                                        "worker/task:0 sees 2,3.",
                                        "all have said so: yes", NULL};
    char base[64];
    /* clang-format off */
    const char *const arguments[] = {
        "srun", "-N1", "-n2", "--gpus-per-task=2", cli_variable("MUSTER_BIN"), "node",
        "--resolver", "slurm", "--resolver-set", "jobs=chief=1,worker=*",
        "--resolver-set", base, "--plugin", plugin, "--set", "workers=1", NULL};
    /* clang-format on */

    need_slurm();
    (void)snprintf(base, sizeof base, "port_base=%d", ports_free_run(4));
    launch_start(&srun, arguments);
    expect_all(lines);
}

LISTED_TEST(test_outside_of_a_step)
{
    cli_start(&srun, NULL, "resolve", "--resolver", "slurm", "--resolve-ms", "0", NULL);
    (void)cli_expect(&srun, NULL, "start it with srun");
    assert_int_not_equal(cli_wait(&srun), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_distributions),
        cmocka_unit_test(test_arbitrary),
        cmocka_unit_test(test_hydra_in_a_job),
        cmocka_unit_test(test_a_cluster),
        cmocka_unit_test(test_two_jobs_on_a_node),
        cmocka_unit_test(test_the_job_names_the_cluster),
        cmocka_unit_test(test_gpus),
        cmocka_unit_test(test_gpus_of_slurm),
    };
    static const struct CMUnitTest without[] = {
        cmocka_unit_test(test_outside_of_a_step),
    };
    int failed = cmocka_run_group_tests_name("without slurm", without, NULL, NULL);

    if (failed == 0 && slurm_missing() != NULL)
        return needs_skip(slurm_missing());
    return failed + cmocka_run_group_tests_name("slurm", tests, set_up, clean);
}
