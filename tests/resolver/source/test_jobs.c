/* Jobs of tasks that only have ranks, by rows. */
#include "resolver/engine/kind.h"
#include "tests/support/test.h"

static void text_of(const struct mu__jobs *jobs, unsigned tasks, char *out, size_t size)
{
    size_t used = 0;

    out[0] = '\0';
    for (unsigned rank = 0; rank < tasks; rank++) {
        const char *type;
        int index;

        mu__jobs_at(jobs, rank, &type, &index);
        used += (size_t)snprintf(out + used, size - used, "%s%s:%d", rank == 0 ? "" : " ",
                                 type, index);
    }
}

TEST(test_rows)
{
    static const struct {
        const char *text;
        unsigned tasks;
        const char *ranks;
    } rows[] = {
        {NULL, 2, "worker:0 worker:1"},
        {NULL, 0, ""},
        {"worker=2", 2, "worker:0 worker:1"},
        {"chief=1,ps=2,worker=2", 5, "chief:0 ps:0 ps:1 worker:0 worker:1"},
        {"ps=1,worker=*", 4, "ps:0 worker:0 worker:1 worker:2"},
        {"worker=*,ps=1", 3, "worker:0 worker:1 ps:0"},
        {"chief=*", 1, "chief:0"},
        {"ps=0,worker=1", 1, "worker:0"},
        {"worker=*,ps=2", 2, "ps:0 ps:1"},
        {"evaluator=1,client=1", 2, "evaluator:0 client:0"},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct mu__jobs jobs;
        mu_error error;
        char ranks[200];

        if (mu__jobs_parse(rows[i].text, "J", rows[i].tasks, &error, &jobs) != 0)
            fail_msg("%s: %s", rows[i].text, error.message);
        text_of(&jobs, rows[i].tasks, ranks, sizeof ranks);
        assert_string_equal(ranks, rows[i].ranks);
    }
}

TEST(test_bad)
{
    static const struct {
        const char *text;
        unsigned tasks;
        int rv;
        const char *words;
    } rows[] = {
        {"", 1, -MU_EINVALID, "J: job 1: expected TYPE=COUNT"},
        {"worker", 1, -MU_EINVALID, "J: job 1: expected TYPE=COUNT"},
        {"worker=", 1, -MU_EINVALID, "J: job 1: expected TYPE=COUNT"},
        {"worker=-1", 1, -MU_EINVALID, "J: job 1: expected TYPE=COUNT"},
        {"worker=1,", 1, -MU_EINVALID, "J: job 2: expected TYPE=COUNT"},
        {"worker=99999999999999999999", 1, -MU_EINVALID, "expected TYPE=COUNT"},
        {"worker=1,worker=1", 2, -MU_EEXISTS, "J: job 2: \"worker\" appears twice"},
        {"wroker=1", 1, -MU_EINVALID, "J: job 1: "},
        {"=1", 1, -MU_EINVALID, "J: job 1: "},
        {"ps=*,worker=*", 2, -MU_EINVALID, "expected one job with \"*\", got several"},
        {"worker=3", 2, -MU_EINVALID, "J: the jobs have 3 tasks, but there are 2"},
        {"worker=1", 2, -MU_EINVALID, "J: the jobs have 1 tasks, but there are 2"},
        {"ps=3,worker=*", 2, -MU_EINVALID, "J: the jobs have 3 tasks, but there are 2"},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct mu__jobs jobs;
        mu_error error = {0};
        int rv = mu__jobs_parse(rows[i].text, "J", rows[i].tasks, &error, &jobs);

        if (rv != rows[i].rv || strstr(error.message, rows[i].words) == NULL)
            fail_msg("\"%s\": %d, \"%s\"", rows[i].text, rv, error.message);
    }
}

TEST_PROGRAM()
