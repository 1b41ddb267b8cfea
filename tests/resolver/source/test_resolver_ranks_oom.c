/* Every allocation of the resolvers of launchers fails once: an error in words or the
 * same as without, nothing leaked. */
#include "resolver/engine/kind.h"
#include "resolver/kinds.h"
#include "tests/support/fault.h"
#include "tests/support/script.h"
#include "tests/support/test.h"

#include <muster/cluster.h>

#define V SCRIPT_VARIABLE

/* One run of a resolver with all answers at once, of which allocation `n` fails. */
static int run(const struct mu__resolver_kind *kind, const struct script_row *rows,
               long n, bool *ret_failed)
{
    struct mu__settings settings;
    struct mu__requests *requests;
    struct script script;
    mu_resolution resolution;
    mu_error error = {0};
    int rv;

    script_init(&script, rows);
    assert_int_equal(mu__requests_new(&script.sources.base, NULL, &requests), 0);
    assert_int_equal(mu__settings_init(&settings, kind->name, kind->settings), 0);
    mu__requests_begin_pass(requests, kind->name);
    mu_resolution_init(&resolution);
    fault_arm(n);
    rv = kind->resolve(&(struct mu__pass){requests, &settings}, &error, &resolution);
    *ret_failed = fault_disarm();
    assert_int_equal(error.code, rv);
    assert_true(rv == 0 || error.message[0] != '\0');
    mu_cluster_free(resolution.cluster);
    mu__requests_free(requests);
    mu__settings_done(&settings);
    return rv;
}

static void expect_failures(const struct mu__resolver_kind *kind,
                            const struct script_row *rows)
{
    unsigned errors = 0;
    bool failed = true;
    int rv = 0;

    for (long n = 0; failed; n++) {
        rv = run(kind, rows, n, &failed);
        errors += rv == -MU_ENOMEM;
        assert_true(n < 10000);
    }
    assert_int_equal(rv, 0);
    assert_true(errors >= 3); /* the hosts, their places, the cluster */
}

TEST(test_slurm)
{
    static const struct script_row rows[] = {
        V("SLURM_STEP_NODELIST", "n[1-2,4],m"),
        V("SLURM_STEP_NUM_TASKS", "5"),
        V("SLURM_STEP_TASKS_PER_NODE", "2,1(x3)"),
        V("SLURM_PROCID", "1"),
        V("SLURM_DISTRIBUTION", "arbitrary"),
        V("SLURM_HOSTFILE", "/hosts"),
        SCRIPT_FILE("/hosts", "m\nn1\nn1\nn2\nn4\n"),
        V("CUDA_VISIBLE_DEVICES", "0,1"),
        SCRIPT_END,
    };
    static const struct script_row dealt[] = {
        V("SLURM_STEP_NODELIST", "n[1-2]"),
        V("SLURM_STEP_NUM_TASKS", "3"),
        V("SLURM_STEP_TASKS_PER_NODE", "2,1"),
        V("SLURM_PROCID", "0"),
        V("MUSTER_SLURM_TASKS_PER_NODE", "n1=2,n2=1"),
        SCRIPT_END};

    expect_failures(&mu__resolver_slurm, rows);
    expect_failures(&mu__resolver_slurm, dealt);
}

TEST(test_open_mpi)
{
    static const struct script_row rows[] = {
        V("OMPI_COMM_WORLD_SIZE", "3"),
        V("OMPI_COMM_WORLD_RANK", "1"),
        V("MUSTER_OPEN_MPI_HOSTFILE", "/hosts"),
        SCRIPT_FILE("/hosts", "a slots=2\nb:1\n"),
        SCRIPT_END,
    };

    expect_failures(&mu__resolver_open_mpi, rows);
}

TEST(test_lists)
{
    static const struct script_row hosts[] = {V("MUSTER_HOSTS", "a,b,a"),
                                              V("MUSTER_RANK", "1"), SCRIPT_END};
    static const struct script_row machines[] = {V("SM_HOSTS", "[\"b\", \"a\"]"),
                                                 V("SM_CURRENT_HOST", "a"), SCRIPT_END};
    static const struct script_row groups[] = {
        V("SM_HOSTS", "[\"b\", \"a\"]"), V("SM_CURRENT_HOST", "a"),
        V("MUSTER_SAGEMAKER_GROUPS", "worker=g,ps=h"),
        V("SM_RESOURCE_CONFIG",
          "{\"instance_groups\": [{\"instance_group_name\": \"g\", \"hosts\": [\"a\"]}, "
          "{\"instance_group_name\": \"h\", \"hosts\": [\"b\"]}]}"),
        SCRIPT_END};

    expect_failures(&mu__resolver_environment, hosts);
    expect_failures(&mu__resolver_sagemaker, machines);
    expect_failures(&mu__resolver_sagemaker, groups);
}

TEST_PROGRAM()
