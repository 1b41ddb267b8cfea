/* The resolvers lsf and pbs, by rows. */
#include "tests/support/script.h"

#include <muster/cluster.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define V SCRIPT_VARIABLE
#define COUNT(array) (sizeof(array) / sizeof(array)[0])

static const struct mu__resolver_kind *const lsf = &mu__resolver_lsf;
static const struct mu__resolver_kind *const pbs = &mu__resolver_pbs;

static const char *const port[] = {"port_base=5", NULL};

/* ---- LSF ---- */

#define LSF(task) V("LSF_PM_TASKID", task), V("LSB_JOBID", "4100")

static void test_lsf(void **state)
{
    static const struct script_row rows[] = {LSF("3"), V("LSB_MCPU_HOSTS", "n1 2 n2 1"),
                                             SCRIPT_END};
    static const struct script_row spaces[] = {
        LSF("1"), V("LSB_MCPU_HOSTS", "  n1  1 "), SCRIPT_END};
    static const char *const jobs[] = {"jobs=chief=1,worker=*", "port_base=5", NULL};
    static const char *const hosts[] = {"hosts=n[2-4]", "port_base=5", NULL};

    (void)state;
    script_expect(lsf, rows, port, "{\"worker\":[\"n1:5\",\"n1:6\",\"n2:5\"]}",
                  "worker:2");
    script_expect(lsf, rows, jobs,
                  "{\"chief\":[\"n1:5\"],\"worker\":[\"n1:6\",\"n2:5\"]}", "worker:1");
    script_expect(lsf, rows, hosts, "{\"worker\":[\"n2:5\",\"n3:5\",\"n4:5\"]}",
                  "worker:2");
    script_expect(lsf, spaces, NULL, "{\"worker\":[\"n1:61444\"]}", "worker:0");
}

static void test_lsf_refused(void **state)
{
    static const struct {
        const char *hosts;
        const char *task;
        const char *words;
    } rows[] = {
        {"n1", "1", "LSB_MCPU_HOSTS: at 1: expected HOST and how many slots it has"},
        {"n1 2 n2", "1", "at 6: expected HOST"},
        {"n1 0", "1", "at 1: expected HOST"},
        {"n1 x", "1", "at 1: expected HOST"},
        {"n1 2x", "1", "at 1: expected HOST"},
        {"n1 123456789", "1", "at 1: expected HOST"},
        {"n1 2", "0", "LSF_PM_TASKID: expected a whole number of 1 to 2, got \"0\""},
        {"n1 2", "3", "LSF_PM_TASKID: expected a whole number of 1 to 2"},
        {" ", "1", "LSB_MCPU_HOSTS: expected a host at least"},
    };
    static const struct script_row none[] = {LSF("1"), SCRIPT_END};

    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        const struct script_row script[] = {
            LSF(rows[i].task), V("LSB_MCPU_HOSTS", rows[i].hosts), SCRIPT_END};

        script_expect_error(lsf, script, port, -MU_EINVALID, rows[i].words);
    }
    script_expect_error(lsf, none, port, -MU_ENOTFOUND,
                        "LSB_MCPU_HOSTS is not set: LSF sets it in its jobs, whose tasks "
                        "blaunch starts");
}

/* ---- PBS ---- */

#define PBS V("PBS_NODEFILE", "/nodes"), V("PBS_JOBID", "4100.head")

static void test_pbs(void **state)
{
    static const struct script_row torque[] = {
        PBS, V("PBS_VNODENUM", "2"), V("PBS_NODENUM", "1"),
        SCRIPT_FILE("/nodes", "n1\nn1\nn2\n"), SCRIPT_END};
    static const struct script_row nodes[] = {
        PBS, V("PBS_NODENUM", "1"), SCRIPT_FILE("/nodes", "n1\nn2\n"), SCRIPT_END};
    static const struct script_row copied[] = {
        PBS, V("PBS_VNODENUM", "0"), SCRIPT_FILE("/copy", "n2\n"), SCRIPT_END};
    static const char *const copy[] = {"hostfile=/copy", NULL};

    (void)state;
    script_expect(pbs, torque, port, "{\"worker\":[\"n1:5\",\"n1:6\",\"n2:5\"]}",
                  "worker:2");
    script_expect(pbs, nodes, port, "{\"worker\":[\"n1:5\",\"n2:5\"]}", "worker:1");
    script_expect(pbs, copied, copy, "{\"worker\":[\"n2:61444\"]}", "worker:0");
}

static void test_pbs_refused(void **state)
{
    static const struct script_row gone[] = {PBS, V("PBS_VNODENUM", "1"), SCRIPT_END};
    static const struct script_row twice[] = {
        PBS, V("PBS_NODENUM", "0"), SCRIPT_FILE("/nodes", "n1\nn1\n"), SCRIPT_END};
    static const struct script_row above[] = {
        PBS, V("PBS_VNODENUM", "2"), SCRIPT_FILE("/nodes", "n1\nn2\n"), SCRIPT_END};
    static const struct script_row nobody[] = {
        PBS, SCRIPT_FILE("/nodes", "n1\nn2\n"), SCRIPT_END};
    static const struct script_row empty[] = {
        PBS, V("PBS_VNODENUM", "0"), SCRIPT_FILE("/nodes", "\n"), SCRIPT_END};

    (void)state;
    script_expect_error(pbs, gone, port, -MU_ENOTFOUND,
                        "PBS has it on the first host alone: copy it");
    script_expect_error(pbs, twice, port, -MU_ENOTFOUND,
                        "by PBS_NODENUM alone the tasks of \"n1\"");
    script_expect_error(pbs, above, port, -MU_EINVALID,
                        "PBS_VNODENUM: expected a number below 2 (PBS_NODEFILE), got 2");
    script_expect_error(pbs, nobody, port, -MU_ENOTFOUND, "PBS_VNODENUM is not set");
    script_expect_error(pbs, empty, port, -MU_EINVALID, "expected a host at least");
    script_expect_error(pbs, NULL, port, -MU_ENOTFOUND,
                        "PBS_NODEFILE is not set: PBS sets it in its jobs, whose tasks "
                        "pbsdsh starts; elsewhere set hostfile");
}

/* ---- Both ---- */

static void test_another_host(void **state)
{
    static const struct script_row here[] = {
        LSF("2"), V("LSB_MCPU_HOSTS", "other 1 this-host.cluster 1"), SCRIPT_END};
    static const struct script_row elsewhere[] = {
        LSF("1"), V("LSB_MCPU_HOSTS", "other 1 this-host.cluster 1"), SCRIPT_END};

    (void)state;
    script_expect(lsf, here, port, "{\"worker\":[\"other:5\",\"this-host.cluster:5\"]}",
                  "worker:1");
    script_expect_error(lsf, elsewhere, port, -MU_EPRECONDITION,
                        "task 0 is on \"other\" there, but this is \"this-host\"");
}

static void test_where_they_listen(void **state)
{
    static const struct script_row rows[] = {LSF("2"), V("LSB_MCPU_HOSTS", "n1 2"),
                                             SCRIPT_END};
    static const char *const any[] = {"bind_address=0.0.0.0:0", "port_base=5", NULL};
    mu_resolution resolution;
    mu_error error;

    (void)state;
    assert_int_equal(script_resolve(lsf, rows, any, &error, &resolution), 0);
    assert_string_equal(resolution.bind_address, "tcp://0.0.0.0:6");
    mu_cluster_free(resolution.cluster);
}

static void test_detection(void **state)
{
    static const struct script_row blaunch[] = {LSF("1"), SCRIPT_END};
    static const struct script_row bsub[] = {V("LSB_JOBID", "7"), SCRIPT_END};
    static const struct script_row pbsdsh[] = {PBS, V("PBS_NODENUM", "0"), SCRIPT_END};
    static const struct script_row file[] = {PBS, SCRIPT_END};
    mu_error why;

    (void)state;
    assert_int_equal(script_detect(lsf, blaunch, NULL, &why), 1);
    assert_int_equal(script_detect(lsf, NULL, NULL, &why), 0);
    assert_string_equal(why.message, "LSF_PM_TASKID is not set");
    assert_int_equal(script_detect(lsf, bsub, NULL, &why), 0);
    assert_non_null(strstr(why.message, "start it with blaunch"));
    assert_int_equal(script_detect(pbs, pbsdsh, NULL, &why), 1);
    assert_int_equal(script_detect(pbs, NULL, NULL, &why), 0);
    assert_string_equal(why.message, "PBS_NODEFILE is not set");
    assert_int_equal(script_detect(pbs, file, NULL, &why), 0);
    assert_string_equal(why.message, "PBS_VNODENUM is not set");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lsf),
        cmocka_unit_test(test_lsf_refused),
        cmocka_unit_test(test_pbs),
        cmocka_unit_test(test_pbs_refused),
        cmocka_unit_test(test_another_host),
        cmocka_unit_test(test_where_they_listen),
        cmocka_unit_test(test_detection),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
