/* Why a program has failed: said by its task, told to the others, and said once more at
 * the end of `muster run`. */
#include "tests/real/plugin.h"

static const char plugin_text[] =
    "#include <muster.h>\n"
    "#include <muster/admin.h>\n"
    "#include <stdlib.h>\n"
    "#include <string.h>\n"
    "#include <unistd.h>\n"
    "MU_PLUGIN;\n"
    "static int absent_key(mu_node *node)\n"
    "{\n"
    "    mu_kv_item item;\n"
    "    return mu_kv_try_get(node, \"no/such/key\", 20000, NULL, &item);\n"
    "}\n"
    "static int program(mu_node *node, void *user)\n"
    "{\n"
    "    const char *what = mu_node_get_setting(node, \"do\");\n"
    "    mu_error error;\n"
    "    (void)user;\n"
    "    if (strcmp(what, \"late\") == 0)\n"
    "        (void)sleep(1);\n"
    "    if (strcmp(what, \"words\") == 0 || strcmp(what, \"late\") == 0)\n"
    "        return mu_node_fail(node, -MU_EPRECONDITION, \"missed by %d\", 17);\n"
    "    if (strcmp(what, \"error\") == 0) {\n"
    "        mu_error_set(&error, -MU_EDATALOSS, \"rows\\nare gone\");\n"
    "        strcpy(error.task, \"/job:ps/task:7\");\n"
    "        return mu_node_fail_with(node, &error);\n"
    "    }\n"
    "    if (strcmp(what, \"call\") == 0)\n"
    "        return absent_key(node);\n"
    "    (void)absent_key(node);\n"
    "    return -MU_EDATALOSS;\n"
    "}\n"
    "static int end_with_job(mu_node *node, void *user)\n"
    "{\n"
    "    (void)node;\n"
    "    (void)user;\n"
    "    _exit(write(atoi(getenv(MU_SUPERVISION_VARIABLE)), \"J\\n\", 2) == 2);\n"
    "}\n"
    "static int wait_for_job(mu_node *node, void *user)\n"
    "{\n"
    "    mu_error job;\n"
    "    int rv = mu_node_wait_job(node, -1, &job);\n"
    "    (void)user;\n"
    "    return rv != 0 ? rv : job.code;\n"
    "}\n"
    "int mu_plugin_open(mu_node *node);\n"
    "int mu_plugin_open(mu_node *node)\n"
    "{\n"
    "    const char *type = mu_node_get_setting(node, \"type\");\n"
    "    if (mu_node_fail(NULL, -1, \"x\") != -MU_EINVALID ||\n"
    "        mu_node_fail_with(node, NULL) != -MU_EINVALID)\n"
    "        return -MU_EINTERNAL;\n"
    "    (void)mu_node_register_program(node, \"evaluator\", wait_for_job, NULL);\n"
    "    if (strcmp(mu_node_get_setting(node, \"do\"), \"late\") == 0)\n"
    "        (void)mu_node_register_program(node, \"worker\", end_with_job, NULL);\n"
    "    return mu_node_register_program(node, type, program, NULL);\n"
    "}\n";

static size_t count_of(const char *needle)
{
    const char *text = run.text;
    size_t count = 0;

    for (; (text = strstr(text, needle)) != NULL; text++)
        count++;
    return count;
}

static void expect_count(const char *needle, size_t count)
{
    if (count_of(needle) == count)
        return;
    cli_show(&run);
    fail_msg("\"%s\" was printed %zu times instead of %zu", needle, count_of(needle),
             count);
}

static void run_chief(const char *what, const char *level)
{
    char setting[64];

    (void)snprintf(setting, sizeof setting, "do=%s", what);
    cli_start(&run, NULL, "run", "--plugin", plugin, "--set", setting, "--set",
              "type=chief", "--workers", "2", "--ps", "1", "--log-level", level,
              "--color", "never", NULL);
    cli_expect_code(&run, 1);
}

/* Nothing else is said, by twenty workers, servers and a program that waits for the job,
 * however much is not to be said. */
TEST(test_reason_is_said_by_its_task_and_at_the_end)
{
    cli_start(&run, NULL, "run", "--plugin", plugin, "--set", "do=words", "--set",
              "type=chief", "--workers", "20", "--ps", "2", "--evaluator", "1",
              "--log-level", "error", "--color", "never", NULL);
    cli_expect_code(&run, 1);
    expect_count("\n", 2);
    expect_count("the program of /job:chief/task:0 ended with EPRECONDITION: missed by "
                 "17\n",
                 2);
    expect_count("chief/0     | ", 1);
    expect_count("muster: ended with exit code 1 after ", 1);
}

TEST(test_others_say_at_info_why_the_job_has_failed)
{
    run_chief("words", "info");
    expect_count("/job:worker/task:0 node: the job has failed: the program of "
                 "/job:chief/task:0 ended with EPRECONDITION: missed by 17\n",
                 1);
    expect_count("ERROR", 1);
}

/* They may end before the chief does, which is no trouble of theirs. A slow machine is,
 * and is said; on one, and only there, the chief may live long enough to wait for links.
 */
TEST(test_end_of_others_is_no_warning)
{
    size_t slow;

    run_chief("words", "warn");
    expect_count("chief/0 ended with exit code 1\n", 1);
    slow = count_of("this host was paused");
    if (slow > 0)
        slow += count_of(" links: waiting for /job:");
    expect_count("\n", 4 + slow);
    expect_count("all workers have ended", 0);
}

/* As on a machine on which the chief takes a second for its own end. */
TEST(test_a_slow_chief_does_not_miss_who_ends_with_the_job)
{
    run_chief("late", "warn");
    expect_count("the program of /job:chief/task:0 ended with EPRECONDITION: missed by "
                 "17\n",
                 2);
    expect_count("is not started again", 0);
}

TEST(test_error_of_a_call_keeps_its_task)
{
    run_chief("error", "error");
    expect_count("the program of /job:chief/task:0 ended with EDATALOSS: "
                 "/job:ps/task:7: rows are gone\n",
                 1);
}

/* Who says nothing, and returns what a call came to. */
TEST(test_last_call_with_the_code_is_the_reason)
{
    run_chief("call", "error");
    expect_count("the program of /job:chief/task:0 ended with ENOTFOUND: ", 2);
    expect_count("no/such/key", 2);
}

TEST(test_call_with_another_code_is_no_reason)
{
    run_chief("other", "error");
    expect_count("the program of /job:chief/task:0 ended with EDATALOSS (-15)\n", 2);
    expect_count("no/such/key", 0);
}

/* Without a chief it is the first task that has failed. */
TEST(test_reason_of_a_worker_is_said_at_the_end)
{
    cli_start(&run, NULL, "run", "--plugin", plugin, "--set", "do=words", "--set",
              "type=worker", "--workers", "2", "--ps", "0", "--chief", "0", "--log-level",
              "error", "--color", "never", NULL);
    cli_expect_code(&run, 1);
    expect_count("the program of /job:worker/task:0 ended with EPRECONDITION: missed by "
                 "17\n",
                 2);
    expect_count("the program of /job:worker/task:1 ended with EPRECONDITION: missed by "
                 "17\n",
                 1);
}

PLUGIN_PROGRAM(plugin_text)
