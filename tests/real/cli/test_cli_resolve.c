/* `muster resolve`, and --resolver of other verbs. */
#include "tests/real/cli.h"
#include "tests/real/files.h"
#include "tests/real/ports.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

static struct cli cli;
static struct cli node;
static char folder[64];
static char path[96];

#define CLUSTER \
    "{\"chief\": [\"127.0.0.1:1\"], \"worker\": [\"127.0.0.1:2\", \"127.0.0.1:3\"]}"
#define TF_CONFIG_OF(index)            \
    "TF_CONFIG={\"cluster\": " CLUSTER \
    ", \"task\": {\"type\": \"worker\", \"index\": " index "}, \"rpc_layer\": \"grpc\"}"

static const char *const variables[] = {TF_CONFIG_OF("1"), NULL};

static void expect_words(const char *words)
{
    if (strstr(cli.text, words) == NULL)
        fail_msg("no \"%s\" in:\n%s", words, cli.text);
}

static int begin(void **state)
{
    (void)state;
    cli_folder(folder, sizeof folder);
    (void)snprintf(path, sizeof path, "%s/cluster.json", folder);
    return 0;
}

static int end(void **state)
{
    (void)state;
    (void)unlink(path);
    return rmdir(folder);
}

/* ---- what is printed ---- */

TEST(test_text)
{
    cli_start(&cli, variables, "resolve", NULL);
    cli_expect_code(&cli, 0);
    assert_string_equal(cli.text, "cluster\n"
                                  "  /job:chief/task:0 at 127.0.0.1:1\n"
                                  "  /job:worker/task:0 at 127.0.0.1:2\n"
                                  "  /job:worker/task:1 at 127.0.0.1:3\n"
                                  "this task       /job:worker/task:1\n"
                                  "master          grpc://127.0.0.1:3\n"
                                  "rpc layer       grpc\n"
                                  "source          tf_config\n");
}

TEST(test_json)
{
    const cJSON *task;
    cJSON *root;

    cli_start(&cli, variables, "resolve", "-o", "json", "--explain", NULL);
    cli_expect_code(&cli, 0);
    root = cJSON_Parse(cli.text);
    assert_non_null(root);
    task = cJSON_GetObjectItem(root, "task");
    assert_string_equal(cJSON_GetObjectItem(task, "type")->valuestring, "worker");
    assert_int_equal(cJSON_GetObjectItem(task, "index")->valueint, 1);
    assert_string_equal(cJSON_GetObjectItem(root, "master")->valuestring,
                        "grpc://127.0.0.1:3");
    assert_string_equal(cJSON_GetObjectItem(root, "source")->valuestring, "tf_config");
    assert_int_equal(cJSON_GetArraySize(cJSON_GetObjectItem(
                         cJSON_GetObjectItem(root, "cluster"), "worker")),
                     2);
    assert_string_equal(
        cJSON_GetObjectItem(cJSON_GetArrayItem(cJSON_GetObjectItem(root, "tried"), 0),
                            "state")
            ->valuestring,
        "taken");
    cJSON_Delete(root);
}

/* What it prints is what it reads: also of sparse jobs, and without a task. */
TEST(test_tf_config_round_trip)
{
    static const char *const texts[] = {
        TF_CONFIG_OF("0"),
        "TF_CONFIG={\"cluster\": {\"ps\": {\"3\": \"a:1\", \"7\": \"[::1]:2\"}}, "
        "\"task\": {\"type\": \"ps\", \"index\": 7}, \"environment\": \"google\"}",
        "TF_CONFIG={\"cluster\": {\"worker\": [\"a:1\"]}, \"session_master\": "
        "\"grpc://a:1\"}",
        "TF_CONFIG={\"task\": {\"type\": \"evaluator\", \"index\": 0}}",
    };
    static char first[CLI_TEXT_BYTES];

    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        static char again[CLI_TEXT_BYTES + 16];
        const char *const given[] = {texts[i], NULL};
        const char *const printed[] = {again, NULL};
        cJSON *roots[2];

        cli_start(&cli, given, "resolve", "-o", "TF_CONFIG", NULL);
        cli_expect_code(&cli, 0);
        assert_ptr_equal(strchr(cli.text, '\n'), cli.text + cli.size - 1);
        memcpy(first, cli.text, cli.size + 1);
        roots[0] = cJSON_Parse(texts[i] + sizeof "TF_CONFIG=" - 1);
        roots[1] = cJSON_Parse(first);
        if (!cJSON_Compare(roots[0], roots[1], 1))
            fail_msg("%s became %s", texts[i], first);
        cJSON_Delete(roots[0]);
        cJSON_Delete(roots[1]);
        (void)snprintf(again, sizeof again, "TF_CONFIG=%s", first);
        again[strcspn(again, "\n")] = '\0';
        cli_start(&cli, printed, "resolve", "-o", "TF_CONFIG", NULL);
        cli_expect_code(&cli, 0);
        assert_string_equal(cli.text, first);
    }
}

TEST(test_explain)
{
    cli_start(&cli, NULL, "resolve", "--explain", NULL);
    cli_expect_code(&cli, 1);
    expect_words("tried\n");
    expect_words("  tf_config: not here: TF_CONFIG is not set\n");
    expect_words("    variable TF_CONFIG: not set\n");
    expect_words("  slurm: not here: ");
    expect_words("muster resolve: no resolver recognises");
    cli_start(&cli, variables, "resolve", "--explain", NULL);
    cli_expect_code(&cli, 0);
    expect_words("  tf_config: taken");
    expect_words("    variable TF_CONFIG: set, ");
    expect_words("  slurm: not asked\n");
}

/* The failure is JSON, too, and TF_CONFIG's value is then nothing. */
TEST(test_failure)
{
    static const char *const broken[] = {"TF_CONFIG={\"cluster\": 3}", NULL};

    cli_start(&cli, broken, "resolve", NULL);
    cli_expect_code(&cli, 1);
    expect_words("muster resolve: TF_CONFIG: cluster");
    cli_start(&cli, broken, "resolve", "--explain", "-o", "json", NULL);
    cli_expect_code(&cli, 1);
    expect_words("\"error\":\t\"TF_CONFIG: cluster");
    cli_start(&cli, broken, "resolve", "-o", "TF_CONFIG", NULL);
    cli_expect_code(&cli, 1);
    assert_ptr_equal(strstr(cli.text, "muster resolve: "), cli.text);
}

TEST(test_list)
{
    cJSON *root;

    cli_start(&cli, NULL, "resolve", "--list", NULL);
    cli_expect_code(&cli, 0);
    expect_words("tf_config: ");
    expect_words("    variable (default TF_CONFIG): the variable to read\n");
    expect_words("\nfile: ");
    cli_start(&cli, NULL, "resolve", "--list", "-o", "json", NULL);
    cli_expect_code(&cli, 0);
    root = cJSON_Parse(cli.text);
    assert_true(cJSON_GetArraySize(root) >= 5);
    assert_string_equal(
        cJSON_GetObjectItem(cJSON_GetArrayItem(root, 0), "resolver")->valuestring,
        "tf_config");
    cJSON_Delete(root);
}

/* Put the tables as they are now into the page: for MUSTER_UPDATE=1 alone. */
static void update_page(const char *name, const char *page)
{
    const char *begin = strstr(page, "| resolver | by itself |");
    const char *end = begin == NULL ? NULL : strstr(begin, "\n## ");
    FILE *file;

    assert_non_null(end);
    file = fopen(name, "w");
    assert_non_null(file);
    assert_true(fprintf(file, "%.*s%s%s", (int)(begin - page), page, cli.text, end) > 0);
    assert_int_equal(fclose(file), 0);
}

/* docs/resolvers.md has the tables that the program prints. */
TEST(test_page_is_up_to_date)
{
    static char page[1 << 17];
    char name[1024];

    (void)snprintf(name, sizeof name, "%s/docs/resolvers.md",
                   cli_variable("MUSTER_SOURCE"));
    cli_read_file(name, page, sizeof page);
    cli_start(&cli, NULL, "help", "resolvers", NULL);
    cli_expect_code(&cli, 0);
    if (getenv("MUSTER_UPDATE") != NULL)
        update_page(name, page);
    else if (strstr(page, cli.text) == NULL)
        fail_msg("docs/resolvers.md lacks what `muster help resolvers` prints "
                 "(MUSTER_UPDATE=1 writes it):\n%s",
                 cli.text);
}

/* ---- who is asked ---- */

TEST(test_flags_win)
{
    cli_start(&cli, variables, "resolve", "--task", "worker:0", NULL);
    cli_expect_code(&cli, 0);
    expect_words("this task       /job:worker/task:0\n"
                 "master          grpc://127.0.0.1:2\n");
    cli_start(&cli, variables, "resolve", "--type", "worker", "--index", "0", NULL);
    cli_expect_code(&cli, 0);
    expect_words("this task       /job:worker/task:0\n");
    cli_start(&cli, variables, "resolve", "--cluster", "{\"ps\": [\"c:9\"]}", "--task",
              "ps:0", NULL);
    cli_expect_code(&cli, 0);
    assert_string_equal(cli.text, "cluster\n"
                                  "  /job:ps/task:0 at c:9\n"
                                  "this task       /job:ps/task:0\n"
                                  "master          c:9\n"
                                  "source          --cluster\n");
}

/* A whole TF_CONFIG in place of a cluster: its task counts unless a flag says one. */
TEST(test_cluster_flag_takes_a_tf_config)
{
    static const char whole[] = "{\"cluster\": {\"ps\": [\"a:1\", \"b:1\"]}, "
                                "\"task\": {\"type\": \"ps\", \"index\": 1}}";

    cli_start(&cli, NULL, "resolve", "--cluster", whole, NULL);
    cli_expect_code(&cli, 0);
    expect_words("this task       /job:ps/task:1\n");
    cli_start(&cli, NULL, "resolve", "--cluster", whole, "--task", "ps:0", NULL);
    cli_expect_code(&cli, 0);
    expect_words("this task       /job:ps/task:0\n");
    cli_start(&cli, NULL, "check", "--cluster", whole, "--wait-ms", "1", NULL);
    (void)cli_wait(&cli);
    expect_words("/job:ps/task:0 at a:1");
}

TEST(test_by_name)
{
    static const char *const both[] = {TF_CONFIG_OF("1"), "MUSTER_RESOLVER=file", NULL};
    char setting[128];

    files_replace(path, "{\"worker\": [\"f:1\", \"f:2\"]}");
    (void)snprintf(setting, sizeof setting, "path=%s", path);
    cli_start(&cli, variables, "resolve", "--resolver", "file", "--resolver-set", setting,
              NULL);
    cli_expect_code(&cli, 0);
    expect_words("  /job:worker/task:1 at f:2\nthis task       unknown\n");
    expect_words("source          file\n");

    /* By its variable; and with its name before the setting. */
    (void)snprintf(setting, sizeof setting, "file.path=%s", path);
    cli_start(&cli, both, "resolve", "--resolver-set", setting, NULL);
    cli_expect_code(&cli, 0);
    expect_words("source          file\n");
    cli_start(&cli, variables, "resolve", "--resolver", "auto", "--resolver-set", setting,
              NULL);
    cli_expect_code(&cli, 0);
    expect_words("source          tf_config\n");
}

TEST(test_union)
{
    char setting[128];

    files_replace(path, "{\"worker\": [\"f:1\"], \"ps\": [\"f:9\"]}");
    (void)snprintf(setting, sizeof setting, "file.path=%s", path);
    cli_start(&cli, variables, "resolve", "--resolver", "tf_config", "--resolver", "file",
              "--resolver-set", setting, NULL);
    cli_expect_code(&cli, 0);
    expect_words("  /job:ps/task:0 at f:9\n"
                 "  /job:worker/task:0 at 127.0.0.1:2\n"
                 "  /job:worker/task:1 at 127.0.0.1:3\n"
                 "  /job:worker/task:2 at f:1\n"
                 "this task       /job:worker/task:1\n");
}

/* ---- changes ---- */

TEST(test_watch)
{
    char setting[128];
    const char *at;

    files_replace(path, "{\"worker\": [\"f:1\", \"f:2\"]}");
    (void)snprintf(setting, sizeof setting, "path=%s", path);
    cli_start(&cli, NULL, "resolve", "--watch", "--resolver", "file", "--resolver-set",
              setting, NULL);
    at = cli_expect(&cli, NULL, "source          file\n");
    files_replace(path, "{\"worker\": [\"f:1\", \"f:3\"], \"ps\": [\"g:1\"]}");
    at = cli_expect(&cli, at, "new /job:ps/task:0 at g:1\n");
    at = cli_expect(&cli, at, "moved /job:worker/task:1 at f:3\n");
    files_replace(path, "nothing");
    at = cli_expect(&cli, at, "muster resolve: ");
    files_replace(path, "{\"worker\": [\"f:1\"]}");
    at = cli_expect(&cli, at, "gone /job:ps/task:0 at g:1\n");
    (void)cli_expect(&cli, at, "gone /job:worker/task:1 at f:3\n");
    cli_stop(&cli);
}

/* ---- other verbs ---- */

/* A node and a verb that asks it find each other by a file. --task wins; index 0, too. */
TEST(test_node_and_status)
{
    char setting[128];
    char text[200];

    (void)snprintf(text, sizeof text,
                   "{\"cluster\": {\"chief\": [\"127.0.0.1:%d\"], \"worker\": "
                   "[\"127.0.0.1:%d\"]}, \"task\": {\"type\": \"worker\", \"index\": 0}}",
                   ports_free(), ports_free());
    files_replace(path, text);
    (void)snprintf(setting, sizeof setting, "path=%s", path);
    cli_start(&node, NULL, "node", "--resolver", "file", "--resolver-set", setting,
              "--task", "chief:0", NULL);
    (void)cli_expect(&node, NULL, "/job:chief/task:0 node: is up at tcp://127.0.0.1:");
    cli_start(&cli, NULL, "status", "--resolver", "file", "--resolver-set", setting,
              NULL);
    cli_expect_code(&cli, 0);
    expect_words("missing");
    cli_start(&cli, NULL, "check", "--resolver", "file", "--resolver-set", setting, NULL);
    cli_expect_code(&cli, 4);
    expect_words("the cluster, by file, has 1 chief, 1 worker\n"
                 "this task is /job:worker/task:0\n");
    cli_kill(&node, SIGTERM);
    cli_expect_code(&node, 0);
}

/* Without --task the source says it. */
TEST(test_node_is_told_its_task)
{
    char setting[128];
    char text[200];

    (void)snprintf(text, sizeof text,
                   "{\"cluster\": {\"worker\": [\"127.0.0.1:%d\"]}, \"task\": {\"type\": "
                   "\"worker\", \"index\": 0}}",
                   ports_free());
    files_replace(path, text);
    (void)snprintf(setting, sizeof setting, "path=%s", path);
    cli_start(&node, NULL, "node", "--resolver", "file", "--resolver-set", setting, NULL);
    (void)cli_expect(&node, NULL, "/job:worker/task:0 node: is up at tcp://127.0.0.1:");
    cli_kill(&node, SIGTERM);
    cli_expect_code(&node, 0);
}

/* With a type alone, the source says the index, or there is only one that it can be. */
TEST(test_type_alone)
{
    char setting[128];
    char text[300];

    (void)snprintf(setting, sizeof setting, "path=%s", path);
    (void)snprintf(text, sizeof text,
                   "{\"cluster\": {\"worker\": [\"127.0.0.1:%d\", \"127.0.0.1:%d\"], "
                   "\"ps\": {\"3\": \"127.0.0.1:%d\"}}, \"task\": {\"type\": "
                   "\"worker\", \"index\": 1}}",
                   ports_free(), ports_free(), ports_free());
    files_replace(path, text);
    cli_start(&node, NULL, "node", "--resolver", "file", "--resolver-set", setting,
              "--type", "worker", NULL);
    (void)cli_expect(&node, NULL, "/job:worker/task:1 node: is up at tcp://127.0.0.1:");
    cli_kill(&node, SIGTERM);
    cli_expect_code(&node, 0);
    cli_start(&node, NULL, "node", "--resolver", "file", "--resolver-set", setting,
              "--type", "ps", NULL);
    (void)cli_expect(&node, NULL, "/job:ps/task:3 node: is up at tcp://127.0.0.1:");
    cli_kill(&node, SIGTERM);
    cli_expect_code(&node, 0);

    files_replace(path, "{\"worker\": [\"127.0.0.1:1\", \"127.0.0.1:2\"]}");
    cli_start(&cli, NULL, "node", "--resolver", "file", "--resolver-set", setting,
              "--type", "worker", NULL);
    cli_expect_code(&cli, 2);
    expect_words("resolver file does not say which worker this process is, of 2");
}

/* Tasks that are told alike take one place each. */
TEST(test_any_free_place)
{
    const char *const alike[] = {"MUSTER_TYPE=worker", "MUSTER_TASKS=worker=2", NULL};
    char setting[128];
    char words[32];
    int which;

    (void)snprintf(setting, sizeof setting, "path=%s", folder);
    (void)unlink(path);
    cli_start(&node, alike, "node", "--resolver", "directory", "--resolver-set", setting,
              NULL);
    (void)cli_expect(&node, NULL, "there yet");
    cli_start(&cli, alike, "node", "--resolver", "directory", "--resolver-set", setting,
              NULL);
    (void)cli_expect(&node, NULL, "node: is up at");
    (void)cli_expect(&cli, NULL, "node: is up at");
    which = strstr(node.text, "/job:worker/task:0 node: is up") == NULL;
    (void)snprintf(words, sizeof words, "/job:worker/task:%d node: is up", 1 - which);
    assert_non_null(strstr(cli.text, words));
    cli_kill(&node, SIGTERM);
    cli_expect_code(&node, 0);
    cli_kill(&cli, SIGTERM);
    cli_expect_code(&cli, 0);
}

/* A signal ends a node that still looks for its cluster at once. */
TEST(test_signal_while_looking)
{
    char setting[128];

    (void)snprintf(setting, sizeof setting, "path=%s", path);
    (void)unlink(path);
    cli_start(&node, NULL, "node", "--resolver", "file", "--resolver-set", setting,
              "--task", "worker:0", NULL);
    (void)cli_expect(&node, NULL, path);
    cli_kill(&node, SIGTERM);
    cli_expect_code(&node, 128 + SIGTERM);
}

/* So does one that asks: with a word, and once is enough. */
TEST(test_signal_while_asking)
{
    static const char *const verbs[] = {"resolve", "check", "status"};
    static const int signals[] = {SIGINT, SIGTERM, SIGINT};
    char setting[128];
    char words[64];

    (void)snprintf(setting, sizeof setting, "path=%s", path);
    (void)unlink(path);
    for (size_t i = 0; i < sizeof verbs / sizeof verbs[0]; i++) {
        cli_start(&cli, NULL, verbs[i], "--resolver", "file", "--resolver-set", setting,
                  "--resolve-ms", "20000", NULL);
        (void)cli_expect(&cli, NULL, "again in");
        cli_kill(&cli, signals[i]);
        cli_expect_code(&cli, 128 + signals[i]);
        (void)snprintf(words, sizeof words, "muster %s: ended by a signal\n", verbs[i]);
        expect_words(words);
    }
}

/* What a source says about devices is in the environment before the plugin is loaded. */
TEST(test_visible_devices)
{
    static const char source[] =
        "#include <muster.h>\n"
        "#include <stdio.h>\n"
        "#include <stdlib.h>\n"
        "int mu_plugin_open(mu_node *node);\n"
        "int mu_plugin_open(mu_node *node)\n"
        "{\n"
        "    (void)node;\n"
        "    printf(\"devices: %s\\n\", getenv(\"CUDA_VISIBLE_DEVICES\"));\n"
        "    return 0;\n"
        "}\n";
    const char *const slurm[] = {
        "SLURM_PROCID=1",
        "SLURM_STEP_NUM_TASKS=2",
        "SLURM_STEP_NODELIST=localhost",
        "SLURM_STEP_TASKS_PER_NODE=2",
        "SLURM_NTASKS=2",
        "SLURM_JOB_ID=7",
        "CUDA_VISIBLE_DEVICES=4,5,6,7",
        NULL,
    };
    const char *compiler = getenv("CC");
    char files[2][96];
    char command[2048];
    FILE *file;

    (void)snprintf(files[0], sizeof files[0], "%s/plugin.c", folder);
    (void)snprintf(files[1], sizeof files[1], "%s/plugin.so", folder);
    file = fopen(files[0], "w");
    assert_non_null(file);
    assert_true(fputs(source, file) >= 0);
    assert_int_equal(fclose(file), 0);
    (void)snprintf(command, sizeof command, "%s -shared -fPIC -I '%s/include' -o %s %s",
                   compiler == NULL ? "cc" : compiler, cli_variable("MUSTER_SOURCE"),
                   files[1], files[0]);
    assert_int_equal(system(command), 0);
    cli_start(&node, slurm, "node", "--resolver", "slurm", "--bind", "tcp://127.0.0.1:0",
              "--plugin", files[1], NULL);
    (void)cli_expect(&node, NULL, "CUDA_VISIBLE_DEVICES is 6,7");
    (void)cli_expect(&node, NULL, "devices: 6,7\n");
    cli_kill(&node, SIGKILL);
    (void)cli_wait(&node);
    (void)unlink(files[0]);
    (void)unlink(files[1]);
}

/* ---- what is refused ---- */

static const struct refusal {
    const char *arguments[8];
    const char *variable;
    int code;
    const char *words;
} refusals[] = {
    /* clang-format off */
    {{"resolve", "--resolver", "slrum"}, NULL, 2, "slurm"},
    {{"resolve"}, "MUSTER_RESOLVER=slrum", 2, "MUSTER_RESOLVER: "},
    {{"node", "--resolver", "slrum", "--task", "worker:0"}, NULL, 2, "--resolver: "},
    {{"status", "--resolver", "slrum"}, NULL, 2, "--resolver: "},
    {{"resolve", "--resolver", "file", "--resolver-set", "path"}, NULL, 2,
     "--resolver-set: expected SETTING=VALUE, got \"path\""},
    {{"resolve", "--resolver", "file", "--resolver-set", "pth=x"}, NULL, 2, "\"path\""},
    {{"resolve", "--resolver", "slurm", "--resolver-set", "auto_set_gpu=9"}, NULL, 2,
     "auto_set_gpu"},
    {{"resolve", "--resolver", "file", "--resolver", "slurm", "--resolver-set",
      "path=x"}, NULL, 2, "there are several resolvers: expected NAME.SETTING=VALUE"},
    {{"resolve", "--resolver", "file", "--resolver", "gce", "--resolver-set",
      "token=secret"}, NULL, 2, "expected NAME.SETTING=VALUE, got \"token=...\""},
    {{"resolve", "--resolver", ""}, NULL, 2, "there is no resolver \"\"\n"},
    {{"resolve", "--resolver", "file", "--resolver-set", "port=1"}, NULL, 2,
     "has no setting \"port\"; expected path, task_type, task_index"},
    {{"resolve", "--resolver", "file", "--resolver-set", "path=\x1b[2J",
      "--resolve-ms", "0"}, NULL, 1, "?[2J: No such file"},
    {{"resolve"}, "TF_CONFIG={\"rpc_layer\": \"\\u001b[2J\"}", 1,
     "rpc layer: expected no control characters, got \"\\x1b[2J\""},
    {{"resolve", "--resolver", "slurm"}, NULL, 1, "SLURM_"},
    {{"resolve", "--resolver", "file", "--resolver-set", "path=/nowhere/x",
      "--resolve-ms", "0"}, NULL, 1, "/nowhere/x"},
    {{"resolve", "-o", "yaml"}, NULL, 2, "text|json|TF_CONFIG"},
    {{"resolve", "--resolve-ms", "x"}, NULL, 2, "--resolve-ms"},
    {{"resolve", "--task", "wroker:1"}, TF_CONFIG_OF("0"), 2, "\"worker\"?"},
    {{"resolve", "--task", "ps:7"}, TF_CONFIG_OF("0"), 1,
     "the task ps:7 does not fit the cluster: the cluster has no task of type \"ps\""},
    {{"resolve", "--cluster", "{\"worker\": [\"a:1\"]}", "--task", "worker:1"}, NULL, 2,
     "the task worker:1 does not fit the cluster: index 1 is not in the job"},
    {{"resolve", "--resolver", "gce", "--task", "ps:0"}, NULL, 2,
     "the task type of resolver gce is a setting of its own"},
    {{"resolve", "--list", "--threads", "2"}, NULL, 2, "no flag \"threads\""},
    /* clang-format on */
};

TEST(test_refusals)
{
    for (size_t i = 0; i < sizeof refusals / sizeof refusals[0]; i++) {
        const char *const *a = refusals[i].arguments;
        const char *const given[] = {refusals[i].variable, NULL};

        cli_start(&cli, given, a[0], a[1], a[2], a[3], a[4], a[5], a[6], a[7], NULL);
        cli_expect_code(&cli, refusals[i].code);
        expect_words(refusals[i].words);
    }
}

TEST_PROGRAM_WITH(begin, end)
