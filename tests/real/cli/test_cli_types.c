/* `muster run` with tasks of types of one's own that run closures: who runs what, that it
 * counts once when one of them is killed, and what a cluster says where its nodes do not
 * agree about the types. */
#include "tests/real/needs.h"
#include "tests/real/plugin.h"

static const char plugin_text[] =
    "#include <muster.h>\n"
    "#include <stdio.h>\n"
    "#include <string.h>\n"
    "#include <unistd.h>\n"
    "static const mu_variable_spec sum_spec = {.name = \"sum\", .dtype = MU_F64};\n"
    "static mu_variable *sum;\n"
    "static int add(mu_run *run, void *user)\n"
    "{\n"
    "    double one = 1;\n"
    "    mu_error error;\n"
    "    int rv = 0;\n"
    "    (void)user;\n"
    "    if (sum == NULL)\n"
    "        rv = mu_variable_open(mu_run_node(run), &sum_spec, 9000, &error, &sum);\n"
    "    if (rv != 0)\n"
    "        return mu_run_fail_with(run, &error);\n"
    "    usleep(mu_node_get_setting(mu_run_node(run), \"slow\") != NULL ? 10000 : "
    "2000);\n"
    "    rv = mu_run_add(run, sum, &one, sizeof one);\n"
    "    mu_run_return(run, mu_value_string(mu_run_worker_type(run)));\n"
    "    return rv;\n"
    "}\n"
    "static int item(mu_run *run, void *user)\n"
    "{\n"
    "    (void)user;\n"
    "    mu_run_return(run, mu_value_ref((mu_value *)mu_run_args(run)));\n"
    "    return 0;\n"
    "}\n"
    "static int is(const mu_value *value, const char *text)\n"
    "{\n"
    "    const char *found = \"\";\n"
    "    size_t size;\n"
    "    return mu_value_get_string(value, &found, &size) == 0 &&\n"
    "           strcmp(found, text) == 0;\n"
    "}\n"
    "static int schedule(mu_coordinator *c, const char *type, mu_error *error,\n"
    "                    mu_remote_value **ret)\n"
    "{\n"
    "    mu_closure_options options;\n"
    "    mu_closure_options_init(&options);\n"
    "    options.flags = MU_CLOSURE_EFFECT_ONCE;\n"
    "    options.worker_type = type;\n"
    "    return mu_coordinator_schedule_with(c, \"add\", NULL, &options, -1, error,\n"
    "                                        ret);\n"
    "}\n"
    "static void items(mu_coordinator *c)\n"
    "{\n"
    "    mu_value *map = mu_value_map(), *list = mu_value_list(), *args, *got = NULL;\n"
    "    mu_closure_options options;\n"
    "    mu_per_worker *values;\n"
    "    mu_remote_value *result;\n"
    "    mu_value_append(list, mu_value_string(\"zero\"));\n"
    "    mu_value_append(list, mu_value_string(\"one\"));\n"
    "    mu_value_set(map, \"gpu\", list);\n"
    "    mu_closure_options_init(&options);\n"
    "    options.worker_type = \"gpu\";\n"
    "    options.worker = 1;\n"
    "    if (mu_per_worker_open_values(c, map, 9000, NULL, &values) != 0) {\n"
    "        mu_value_free(map);\n"
    "        return;\n"
    "    }\n"
    "    args = mu_value_per_worker(values);\n"
    "    mu_coordinator_schedule_with(c, \"item\", args, &options, -1, NULL, &result);\n"
    "    mu_remote_value_fetch(result, 20000, NULL, &got);\n"
    "    printf(\"item %s\\n\", is(got, \"one\") ? \"one\" : \"another\");\n"
    "    mu_remote_value_free(result);\n"
    "    mu_value_free(got);\n"
    "    mu_value_free(args);\n"
    "    mu_value_free(map);\n"
    "    mu_per_worker_close(values);\n"
    "}\n"
    "static int chief(mu_node *node, void *user)\n"
    "{\n"
    "    static mu_remote_value *values[600];\n"
    "    double total = -1;\n"
    "    int right = 0;\n"
    "    mu_coordinator *c;\n"
    "    mu_variable *variable = NULL;\n"
    "    mu_error error = {0};\n"
    "    int rv = mu_coordinator_open(node, 20000, &error, &c);\n"
    "    (void)user;\n"
    "    for (int i = 0; rv == 0 && i < 600; i++)\n"
    "        rv = schedule(c, i % 3 == 0 ? \"worker\" : \"gpu\", &error, &values[i]);\n"
    "    if (rv == 0)\n"
    "        rv = mu_remote_value_fetch(values[100], 20000, &error, NULL);\n"
    "    printf(\"begun\\n\");\n"
    "    fflush(stdout);\n"
    "    if (rv == 0)\n"
    "        rv = mu_coordinator_join(c, 60000, &error);\n"
    "    for (int i = 0; rv == 0 && i < 600; i++) {\n"
    "        mu_value *type = NULL;\n"
    "        rv = mu_remote_value_fetch(values[i], 0, &error, &type);\n"
    "        right += is(type, i % 3 == 0 ? \"worker\" : \"gpu\");\n"
    "        mu_value_free(type);\n"
    "        mu_remote_value_free(values[i]);\n"
    "    }\n"
    "    if (rv == 0)\n"
    "        rv = mu_variable_open(node, &sum_spec, 9000, &error, &variable);\n"
    "    if (rv == 0)\n"
    "        rv = mu_variable_read(variable, &total, sizeof total, 9000, &error);\n"
    "    printf(\"sum %d right %d\\n\", (int)total, right);\n"
    "    if (rv != 0)\n"
    "        printf(\"%s\\n\", error.message);\n"
    "    else if (mu_node_get_setting(node, \"slow\") == NULL)\n"
    "        items(c);\n"
    "    mu_variable_close(variable);\n"
    "    mu_coordinator_close(c);\n"
    "    return rv;\n"
    "}\n"
    "int mu_plugin_open(mu_node *node);\n"
    "int mu_plugin_open(mu_node *node)\n"
    "{\n"
    "    (void)mu_node_register_function(node, \"add\", add, NULL, 0);\n"
    "    (void)mu_node_register_function(node, \"item\", item, NULL, 0);\n"
    "    return mu_node_register_program(node, \"chief\", chief, NULL);\n"
    "}\n";

TEST(test_killed_task_of_a_type_counts_once)
{
    pid_t pid;

    cli_start(&run, NULL, "run", "--plugin", plugin, "--workers", "1", "--ps", "1",
              "--counts", "gpu=2", "--worker-types", "worker,gpu", "--restart",
              "gpu=always", "--color", "never", "--log-level", "info", NULL);
    pid = cli_task_pid(&run, NULL, "gpu/0");
    (void)cli_expect(&run, NULL, "begun");
    assert_int_equal(kill(pid, SIGKILL), 0);
    cli_expect_code(&run, 0);
    (void)cli_expect(&run, NULL, "/job:gpu/task:1 takes closures");
    (void)cli_expect(&run, NULL, "gpu/0 was killed by signal 9");
    (void)cli_expect(&run, NULL, "/job:gpu/task:0 is lost");
    (void)cli_expect(&run, NULL, "sum 600 right 600");
    (void)cli_expect(&run, NULL, "item one");
}

/* By its type and index: the other task of the type does the rest; nothing is lost. */
TEST(test_task_of_a_type_is_drained)
{
    static struct cli asked;
    char address[64];

    cli_start(&run, NULL, "run", "--plugin", plugin, "--set", "slow=1", "--workers", "1",
              "--ps", "1", "--counts", "gpu=2", "--worker-types", "worker,gpu", "--color",
              "never", "--log-level", "info", NULL);
    cli_expect_up(&run, NULL, "chief/task:0", address, sizeof address);
    (void)cli_expect(&run, NULL, "/job:gpu/task:1 takes closures");
    (void)cli_expect(&run, NULL, "begun");
    cli_start(&asked, NULL, "drain", "gpu:7", "--address", address, NULL);
    cli_expect_code(&asked, 1);
    (void)cli_expect(&asked, NULL, "there is no /job:gpu/task:7 that takes closures");
    cli_start(&asked, NULL, "drain", "gpu:1", "--address", address, NULL);
    cli_expect_code(&asked, 0);
    (void)cli_expect(&asked, NULL, "/job:gpu/task:1 has left\n");
    cli_start(&asked, NULL, "status", "--address", address, NULL);
    cli_expect_code(&asked, 0);
    (void)cli_expect(&asked, NULL, "workers lost 0");
    assert_null(strstr(asked.text, "gpu/task:1"));
    assert_non_null(strstr(asked.text, "gpu/task:0"));
    cli_expect_code(&run, 0);
    (void)cli_expect(&run, NULL, "/job:gpu/task:1 has left; nothing was in flight");
    (void)cli_expect(&run, NULL, "gpu/1 ended with exit code 0");
    (void)cli_expect(&run, NULL, "sum 600 right 600");
}

/* The tasks think that they run closures, and the chief does not. */
TEST(test_types_that_differ_are_named)
{
    cli_start(&run, NULL, "run", "--plugin", plugin, "--workers", "1", "--ps", "1",
              "--counts", "gpu=1", "--color", "never", "--log-level", "info", NULL);
    cli_expect_code(&run, 1);
    (void)cli_expect(&run, NULL,
                     "the task type that the closure is for runs no "
                     "closures: option worker_types of the chief is \"worker\"");
}

TEST(test_wrong_lists)
{
    static const struct {
        const char *flag;
        const char *value;
        const char *words;
    } rows[] = {
        {"--counts", "gpu=0", "--counts: expected how many tasks there are"},
        {"--counts", "gpu", "--counts: expected how many tasks there are"},
        {"--counts", "gpu=2,", "--counts: expected how many tasks there are"},
        {"--counts", "gpu=2x", "--counts: expected how many tasks there are"},
        {"--counts", "worker=2", "--counts: expected how many tasks there are"},
        {"--counts", "workers=2", "--counts: expected how many tasks there are"},
        {"--counts", "gpu=1,gpu=1", "--counts: expected how many tasks there are"},
        {"--worker-types", "ps", "option worker_types names \"ps\""},
        {"--worker-types", "workers", "did you mean \"worker\"?"},
        {"--worker-types", "gpu,,cpu", "a task type is missing"},
        {"--restart", "tpu=always", "--restart: expected never, on-failure, always"},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        cli_start(&run, NULL, "run", rows[i].flag, rows[i].value, NULL);
        cli_expect_code(&run, 2);
        (void)cli_expect(&run, NULL, rows[i].words);
    }
}

PLUGIN_PROGRAM(plugin_text)
