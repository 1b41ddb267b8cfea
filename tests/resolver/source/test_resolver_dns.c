/* The resolver dns, by rows. tests/real/resolver/test_dns.c has a real server. */
#include "resolver/kinds.h"
#include "tests/support/script.h"
#include "tests/support/test.h"

static const struct mu__resolver_kind *const kind = &mu__resolver_dns;

#define ADDRESSES(host, lines) SCRIPT(ADDRESSES, .name = (host), .text = (lines))
#define SERVICES(host, lines) SCRIPT(SERVICES, .name = (host), .text = (lines))

static const struct script_row names[] = {
    ADDRESSES("workers.example", "10.0.0.2\n10.0.0.10\n"),
    ADDRESSES("chief.example", "10.0.0.1\n"),
    ADDRESSES("dual.example", "10.0.0.7\nfd00::7\n"),
    ADDRESSES("six.example", "fd00::1\nfd00::2\n"),
    SERVICES("_ps._tcp.example", "0 5 2222 ps-10.example\n0 5 2222 ps-2.example\n"
                                 "0 5 2222 ps-1.example\n"),
    ADDRESSES("ps-1.example", "10.0.1.1\n"),
    ADDRESSES("ps-2.example", "10.0.1.2\n10.0.1.9\n"),
    ADDRESSES("ps-10.example", "fd00::10\n"),
    SERVICES("_order._tcp.example", "1 0 70 b.example\n2 0 70 a.example\n"
                                    "1 9 71 b.example\n"),
    SERVICES("_one._tcp.example", "0 0 9 big.example\n0 0 10 big.example\n"),
    ADDRESSES("this-host", "10.0.0.10\n127.0.1.1\n"),
    ADDRESSES("10.0.0.1", "10.0.0.1\n"),
    ADDRESSES("10.0.9.9", "10.0.9.9\n"),
    SCRIPT_END,
};

static const struct {
    const char *what;
    const char *settings[5];
    const char *cluster;
    const char *task;
} rows[] = {
    {"the addresses of a name are the tasks; this one is found by its address",
     {"names=worker=workers.example:2222"},
     "{\"worker\":[\"10.0.0.2:2222\",\"10.0.0.10:2222\"]}",
     "worker:1"},
    {"several jobs, and the task by a number",
     {"names=chief=chief.example:1,worker=workers.example:2", "host=10.0.0.1"},
     "{\"chief\":[\"10.0.0.1:1\"],\"worker\":[\"10.0.0.2:2\",\"10.0.0.10:2\"]}",
     "chief:0"},
    {"several names of one job follow each other",
     {"names=ps=chief.example:1,ps=workers.example:2", "host=10.0.9.9"},
     "{\"ps\":[\"10.0.0.1:1\",\"10.0.0.2:2\",\"10.0.0.10:2\"]}",
     ""},
    {"numbers in targets count as numbers",
     {"names=ps=_ps._tcp.example"},
     "{\"ps\":[\"ps-1.example:2222\",\"ps-2.example:2222\",\"ps-10.example:2222\"]}",
     ""},
    {"a target is this host by the first part of its name",
     {"names=ps=_ps._tcp.example", "host=PS-2"},
     "{\"ps\":[\"ps-1.example:2222\",\"ps-2.example:2222\",\"ps-10.example:2222\"]}",
     "ps:1"},
    {"priority, then name, then port",
     {"names=worker=_order._tcp.example", "host=10.0.9.9"},
     "{\"worker\":[\"b.example:70\",\"b.example:71\",\"a.example:70\"]}",
     ""},
    {"targets by address",
     {"names=ps=_ps._tcp.example", "address=ip"},
     "{\"ps\":[\"10.0.1.1:2222\",\"10.0.1.2:2222\",\"[fd00::10]:2222\"]}",
     ""},
    {"a name with one address may stay",
     {"names=chief=chief.example:1,worker=workers.example:2", "address=name",
      "host=chief"},
     "{\"chief\":[\"chief.example:1\"],\"worker\":[\"10.0.0.2:2\",\"10.0.0.10:2\"]}",
     "chief:0"},
    {"IPv4 where there is some",
     {"names=worker=dual.example:1,ps=six.example:2"},
     "{\"ps\":[\"[fd00::1]:2\",\"[fd00::2]:2\"],\"worker\":[\"10.0.0.7:1\"]}",
     ""},
    {"IPv6 alone",
     {"names=worker=dual.example:1", "family=6"},
     "{\"worker\":[\"[fd00::7]:1\"]}",
     ""},
    {"all addresses",
     {"names=worker=dual.example:1", "family=all"},
     "{\"worker\":[\"10.0.0.7:1\",\"[fd00::7]:1\"]}",
     ""},
    {"several tasks on a machine: the port tells",
     {"names=worker=_one._tcp.example", "host=big.example", "port=10"},
     "{\"worker\":[\"big.example:9\",\"big.example:10\"]}",
     "worker:1"},
    {"the task as it is said",
     {"names=worker=workers.example:2222", "task_type=worker", "task_index=0"},
     "{\"worker\":[\"10.0.0.2:2222\",\"10.0.0.10:2222\"]}",
     "worker:0"},
    {"an evaluator outside of the cluster",
     {"names=worker=workers.example:2222", "task_type=evaluator", "task_index=0"},
     "{\"worker\":[\"10.0.0.2:2222\",\"10.0.0.10:2222\"]}",
     "evaluator:0"},
    {"the only task of its job",
     {"names=chief=chief.example:1", "task_type=chief"},
     "{\"chief\":[\"10.0.0.1:1\"]}",
     "chief:0"},
    {"all that are waited for are there",
     {"names=worker=workers.example:2222", "tasks=worker=2", "host=10.0.9.9"},
     "{\"worker\":[\"10.0.0.2:2222\",\"10.0.0.10:2222\"]}",
     ""},
};

TEST(test_rows)
{
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        print_message("%s\n", rows[i].what);
        script_expect(kind, names, rows[i].settings, rows[i].cluster, rows[i].task);
    }
}

static const struct {
    const char *settings[4];
    int code;
    const char *words;
} bad_rows[] = {
    {{NULL}, -MU_EINVALID, "expected names in the setting names or MUSTER_DNS_NAMES"},
    {{"names=worker"},
     -MU_EINVALID,
     "setting names of resolver dns: item 1: expected TYPE=NAME:PORT, or "
     "TYPE=_SERVICE._tcp.NAME, got \"worker\""},
    {{"names=worker=a:1,,"}, -MU_EINVALID, "item 2: expected TYPE=NAME:PORT"},
    {{"names=worker=a"}, -MU_EINVALID, "item 1: expected TYPE=NAME:PORT"},
    {{"names=worker=a:0"}, -MU_EINVALID, "item 1: expected TYPE=NAME:PORT"},
    {{"names=worker=a:65536"}, -MU_EINVALID, "item 1: expected TYPE=NAME:PORT"},
    {{"names=worker=:1"}, -MU_EINVALID, "a name of 1 to 255 bytes"},
    {{"names=worker=_a._tcp:1"},
     -MU_EINVALID,
     "a name of SRV records (it begins with \"_\") without port"},
    {{"names=workers=a:1"}, -MU_EINVALID, "item 1: \"workers\" is not a task type"},
    {{"names=worker=a:1", "tasks=worker"},
     -MU_EINVALID,
     "setting tasks of resolver dns: item 1: expected TYPE=COUNT"},
    {{"names=worker=a:1", "tasks=ps=1"},
     -MU_EINVALID,
     "item 1: the setting names has no name for job ps"},
    {{"names=worker=a:1", "tasks=worker=1,worker=2"},
     -MU_EEXISTS,
     "item 2: \"worker\" appears twice"},
    {{"names=worker=a:1", "family=5"},
     -MU_EINVALID,
     "setting family of resolver dns: expected 4, 6, all or auto, got \"5\""},
    {{"names=worker=a:1", "address=both"}, -MU_EINVALID, "expected ip or name"},
    {{"names=worker=a:1", "task_type=Boss"}, -MU_EINVALID, "setting task_type"},
    {{"names=worker=nowhere.example:1"},
     -MU_ENOTFOUND,
     "worker: nowhere.example: \"nowhere.example\" is not there"},
    {{"names=worker=workers.example:1", "tasks=worker=3"},
     -MU_EUNAVAILABLE,
     "job worker: DNS has 2 of 3 tasks"},
    {{"names=worker=workers.example:1", "tasks=worker=1"},
     -MU_EUNAVAILABLE,
     "job worker: DNS has 2 of 1 tasks"},
    {{"names=chief=workers.example:1"},
     -MU_EINVALID,
     "chief: workers.example: expected one task, got chief:0 (10.0.0.2:1) and "
     "chief:1 (10.0.0.10:1)"},
    {{"names=worker=workers.example:1,ps=workers.example:2"},
     -MU_EINVALID,
     "this machine is both worker:1 (10.0.0.10:1) and ps:1 (10.0.0.10:2): the setting "
     "port, or task_type and task_index, must say which"},
    {{"names=worker=workers.example:1,ps=workers.example:1"},
     -MU_EEXISTS,
     "ps: workers.example: "},
    {{"names=worker=workers.example:1", "task_type=worker", "task_index=2"},
     -MU_EUNAVAILABLE,
     "this task is worker:2, and DNS has 2 tasks of job worker"},
    {{"names=worker=chief.example:1", "family=6"},
     -MU_EUNAVAILABLE,
     "worker: chief.example: there is no address of the family that is asked for"},
};

TEST(test_bad_rows)
{
    for (size_t i = 0; i < sizeof bad_rows / sizeof bad_rows[0]; i++)
        script_expect_error(kind, names, bad_rows[i].settings, bad_rows[i].code,
                            bad_rows[i].words);
}

/* The world's answers are what our requester writes; whatever else comes is refused. */
TEST(test_bad_services)
{
    static const char *const settings[] = {"names=ps=_ps._tcp.example", NULL};
    static const char *const texts[] = {
        "0 0 ps-1.example\n", "0 0 0 ps-1.example\n", "0 0 70000 ps-1.example\n",
        "0 0 1 .\n",          "x 0 1 ps-1.example\n", "0 0 1 \n",
    };

    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        const struct script_row answers[] = {SERVICES("_ps._tcp.example", texts[i]),
                                             SCRIPT_END};

        script_expect_error(kind, answers, settings, -MU_EINVALID,
                            "ps: _ps._tcp.example: expected a record with a port and a "
                            "target, got \"");
    }
}

TEST(test_target_without_address)
{
    static const char *const settings[] = {"names=ps=_ps._tcp.example", "address=ip",
                                           NULL};
    static const struct script_row answers[] = {
        SERVICES("_ps._tcp.example", "0 0 1 gone.example\n"), SCRIPT_END};

    script_expect_error(kind, answers, settings, -MU_ENOTFOUND,
                        "ps: _ps._tcp.example: target gone.example: ");
}

TEST(test_detection)
{
    static const struct script_row set[] = {
        SCRIPT_VARIABLE("MUSTER_DNS_NAMES", "worker=a:1"),
        SCRIPT_END,
    };
    mu_error why;

    assert_int_equal(script_detect(kind, set, NULL, &why), 1);
    assert_int_equal(script_detect(kind, NULL, NULL, &why), 0);
    assert_string_equal(why.message, "MUSTER_DNS_NAMES is not set");
}

/* All settings as variables, and the error names the variable. */
TEST(test_variables)
{
    static const struct script_row good[] = {
        SCRIPT_VARIABLE("MUSTER_DNS_NAMES", "worker=workers.example:7"),
        SCRIPT_VARIABLE("MUSTER_DNS_TASKS", "worker=2"),
        SCRIPT_VARIABLE("MUSTER_DNS_HOST", "10.0.0.2"),
        SCRIPT_VARIABLE("MUSTER_DNS_PORT", "7"),
        ADDRESSES("workers.example", "10.0.0.2\n10.0.0.10\n"),
        ADDRESSES("10.0.0.2", "10.0.0.2\n"),
        SCRIPT_END,
    };
    static const struct script_row bad[] = {
        SCRIPT_VARIABLE("MUSTER_DNS_NAMES", "worker"),
        SCRIPT_END,
    };

    script_expect(kind, good, NULL, "{\"worker\":[\"10.0.0.2:7\",\"10.0.0.10:7\"]}",
                  "worker:0");
    script_expect_error(kind, bad, NULL, -MU_EINVALID, "MUSTER_DNS_NAMES: item 1: ");
}

/* Without a name of its own a machine is none of the tasks, and the cluster stands. */
TEST(test_no_name)
{
    static const char *const settings[] = {"names=worker=workers.example:1", NULL};
    static const struct script_row answers[] = {
        ADDRESSES("workers.example", "10.0.0.2\n"),
        SCRIPT(HOST_NAME, .name = "", .code = -MU_ENOTFOUND, .text = "none"),
        SCRIPT_END,
    };

    script_expect(kind, answers, settings, "{\"worker\":[\"10.0.0.2:1\"]}", "");
}

TEST_PROGRAM()
