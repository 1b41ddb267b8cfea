/* `muster vars`, and what `muster status` says of partitions. */
#include "tests/real/cli.h"

static struct cli run;
static struct cli asked;
static char folder[64];
static char plugin[96];
static char address[64]; /* the chief's */

static const char plugin_text[] =
    "#include <muster.h>\n"
    "#include <stdio.h>\n"
    "static int make(mu_node *node, const char *name, unsigned rank, unsigned shards)\n"
    "{\n"
    "    static const uint64_t dims[2] = {4, 3};\n"
    "    static const float initial[12] = {0.5f, 1, -2, 3, 4, 5, 6, 7, 8, 9, 10, 0.1f};\n"
    "    mu_variable_spec spec = {name, MU_F32, rank, dims, shards, initial, 0, NULL};\n"
    "    mu_variable *variable = NULL;\n"
    "    mu_error error;\n"
    "    int rv = mu_variable_open(node, &spec, 20000, &error, &variable);\n"
    "    mu_variable_close(variable);\n"
    "    return rv;\n"
    "}\n"
    "static int chief(mu_node *node, void *user)\n"
    "{\n"
    "    mu_clock *clock = NULL;\n"
    "    const mu_initializer ones = {MU_INITIALIZER_UNIFORM, 7, 1, 1};\n"
    "    mu_table_spec spec = {.name = \"emb\", .dim = 2, .initializer = &ones,\n"
    "                          .admit_after = 2, .ttl = 9};\n"
    "    mu_table *table = NULL;\n"
    "    const uint64_t ids[3] = {1, 2, 3};\n"
    "    const float rows[6] = {1, 2, 3, 4, 5, 6};\n"
    "    int rv = make(node, \"weights\", 2, 3);\n"
    "    (void)user;\n"
    "    if (rv == 0)\n"
    "        rv = make(node, \"bias\", 0, 1);\n"
    "    if (rv == 0)\n"
    "        rv = mu_clock_open(node, \"train\", 2, 20000, NULL, &clock);\n"
    "    if (rv == 0)\n"
    "        rv = mu_clock_tick(clock, 20000, NULL, NULL);\n"
    "    if (rv == 0)\n"
    "        rv = mu_table_open(node, &spec, 20000, NULL, &table);\n"
    "    if (rv == 0)\n"
    "        rv = mu_table_insert(table, ids, rows, 3, 20000, NULL);\n"
    "    printf(\"made %d\\n\", rv);\n"
    "    fflush(stdout);\n"
    "    while (mu_node_wait_job(node, -1, NULL) == 0)\n"
    "        continue;\n"
    "    return 0;\n"
    "}\n"
    "int mu_plugin_open(mu_node *node);\n"
    "int mu_plugin_open(mu_node *node)\n"
    "{\n"
    "    return mu_node_register_program(node, \"chief\", chief, NULL);\n"
    "}\n";

static int compile(void **state)
{
    (void)state;
    cli_folder(folder, sizeof folder);
    return cli_compile(folder, plugin_text, plugin, sizeof plugin);
}

static int clean(void **state)
{
    (void)state;
    (void)unlink(plugin);
    return rmdir(folder);
}

static int begin_with(const char *servers, const char *restart)
{
    cli_start(&run, NULL, "run", "--plugin", plugin, "--workers", "1", "--ps", servers,
              "--restart", restart, "--transport", "tcp", "--color", "never", NULL);
    cli_expect_up(&run, NULL, "chief/task:0", address, sizeof address);
    (void)cli_expect(&run, NULL, "made 0\n");
    return 0;
}

static int set_up_copied(void **state)
{
    (void)state;
    return begin_with("2", "ps=on-failure");
}

static int set_up_three(void **state)
{
    (void)state;
    return begin_with("3", "ps=on-failure");
}

static int set_up_plain(void **state)
{
    (void)state;
    return begin_with("1", "ps=on-failure");
}

static int set_up_degraded(void **state)
{
    (void)state;
    return begin_with("2", "ps=never");
}

static int tear_down(void **state)
{
    (void)state;
    cli_stop(&run);
    return 0;
}

/* What a verb prints. */
static const char *ask(const char *verb, const char *flag, const char *value)
{
    cli_start(&asked, NULL, verb, "--address", address, flag, value, NULL);
    cli_expect_code(&asked, 0);
    return asked.text;
}

static cJSON *ask_json(const char *verb, const char *flag)
{
    return cli_json(ask(verb, "--output=json", flag));
}

TEST_WITH(test_lists_of_variables, set_up_copied, tear_down)
{
    (void)ask("vars", NULL, NULL);
    (void)cli_expect(&asked, NULL, "NAME     DTYPE    SHAPE  SHARDS  BYTES  VERSION\n");
    (void)cli_expect(&asked, NULL, "bias     float32         1       4      1\n");
    (void)cli_expect(&asked, NULL, "weights  float32  4x3    3       48     1\n");
    (void)cli_expect(&asked, NULL,
                     "NAME     SHARD  BYTES  VERSION  PARTITION  PRIMARY  "
                     "BACKUP  LEARNER\n");
    assert_true(strstr(asked.text, "ps:0     ps:1") != NULL ||
                strstr(asked.text, "ps:1     ps:0") != NULL);
}

/* What all servers have of a table, together. */
TEST_WITH(test_lists_of_tables, set_up_copied, tear_down)
{
    cJSON *root = ask_json("vars", NULL);
    const cJSON *table = cJSON_GetArrayItem(cJSON_GetObjectItem(root, "tables"), 0);

    assert_string_equal(cJSON_GetObjectItem(table, "table")->valuestring, "emb");
    assert_int_equal(cJSON_GetObjectItem(table, "rows")->valueint, 3);
    assert_int_equal(cJSON_GetObjectItem(table, "parts")->valueint, 256);
    cJSON_Delete(root);
    (void)ask("vars", NULL, NULL);
    (void)cli_expect(&asked, NULL, "TABLE  DIM  OPTIMIZER  ROWS  BYTES");
    (void)cli_expect(&asked, NULL, "emb    2    sgd        3 ");
}

/* Shards of a variable are in partitions that follow each other. */
TEST_WITH(test_variables_as_json, set_up_copied, tear_down)
{
    cJSON *root = ask_json("vars", NULL);
    const cJSON *weights = cJSON_GetArrayItem(cJSON_GetObjectItem(root, "variables"), 1);
    const cJSON *parts = cJSON_GetObjectItem(weights, "parts");
    int first = (int)cli_number(cJSON_GetArrayItem(parts, 0), "partition");

    assert_string_equal(cli_text(weights, "name"), "weights");
    assert_int_equal(cli_number(weights, "shards"), 3);
    assert_int_equal(cli_number(weights, "bytes"), 48);
    assert_int_equal(cJSON_GetArraySize(parts), 3);
    for (int i = 0; i < 3; i++) {
        const cJSON *part = cJSON_GetArrayItem(parts, i);
        int primary = (int)cli_number(part, "primary");

        assert_int_equal(cli_number(part, "shard"), i);
        assert_int_equal(cli_number(part, "partition"), (first + i) % 256);
        assert_int_equal(primary, (first + i) % 256 % 2);
        assert_int_equal(cli_number(part, "backup"), 1 - primary);
    }
    assert_int_equal(cli_number(root, "servers_missing"), 0);
    cJSON_Delete(root);
}

TEST_WITH(test_lists_of_clocks, set_up_plain, tear_down)
{
    cJSON *root;
    const cJSON *clock;

    (void)ask("vars", NULL, NULL);
    (void)cli_expect(&asked, NULL,
                     "CLOCK  STALENESS  MINIMUM  MEMBERS  WAITING  SLOWEST\n");
    (void)cli_expect(&asked, NULL,
                     "train  2          1        1        0        /job:chief/task:0 is "
                     "at step 1\n");
    root = ask_json("vars", NULL);
    clock = cJSON_GetArrayItem(cJSON_GetObjectItem(root, "clocks"), 0);
    assert_int_equal(cli_number(clock, "minimum"), 1);
    assert_int_equal(cli_number(clock, "members"), 1);
    cJSON_Delete(root);
}

TEST_WITH(test_lists_of_partitions, set_up_copied, tear_down)
{
    cJSON *root;

    (void)ask("vars", "--partitions", NULL);
    (void)cli_expect(&asked, NULL, "PARTITION  VIEW  PRIMARY  BACKUP  LEARNER  MOVE\n");
    (void)cli_expect(&asked, NULL, "254        1     ps:0     ps:1 ");
    (void)cli_expect(&asked, NULL, "255        1     ps:1     ps:0 ");
    root = ask_json("vars", "--partitions");
    assert_int_equal(cJSON_GetArraySize(cJSON_GetObjectItem(root, "views")), 256);
    assert_int_equal(cJSON_GetArraySize(cJSON_GetObjectItem(root, "servers")), 2);
    assert_int_equal(cli_number(root, "placed"), 256);
    assert_int_equal(cli_number(root, "degraded"), 0);
    cJSON_Delete(root);
}

TEST_WITH(test_status_of_whole_partitions, set_up_copied, tear_down)
{
    (void)ask("status", NULL, NULL);
    (void)cli_expect(&asked, NULL,
                     "\n256 partitions on 2 servers, each with a backup\n\n");
}

TEST_WITH(test_status_without_backups, set_up_plain, tear_down)
{
    (void)ask("status", NULL, NULL);
    (void)cli_expect(&asked, NULL, "\n256 partitions on 1 server, without backups\n\n");
}

static void wait_status(const char *words)
{
    uint64_t limit_ms = cli_now_ms() + CLI_SOON_MS;

    while (strstr(ask("status", NULL, NULL), words) == NULL)
        if (cli_now_ms() > limit_ms) {
            cli_show(&asked);
            fail_msg("no status says \"%s\"", words);
        }
}

/* One of two servers is killed, and not started again. */
TEST_WITH(test_status_of_degraded_partitions, set_up_degraded, tear_down)
{
    assert_int_equal(kill(cli_task_pid(&run, NULL, "ps/1"), SIGKILL), 0);
    wait_status(
        "\n256 partitions on 1 server, 256 without a backup, of which 0 are being "
        "copied\n  /job:ps/task:0: 256 have no backup\n");
}

/* The server of a job without backups is killed, and started again, empty. */
TEST_WITH(test_status_of_lost_partitions, set_up_plain, tear_down)
{
    uint64_t limit_ms = cli_now_ms() + CLI_SOON_MS;

    assert_int_equal(kill(cli_task_pid(&run, NULL, "ps/0"), SIGKILL), 0);
    while (strstr(ask("status", NULL, NULL), "/job:ps/task:0: 256 were lost with it\n") ==
           NULL)
        assert_true(cli_now_ms() < limit_ms);
}

/* It gives its part away; and gets it back when it is killed, and started again. */
TEST_WITH(test_a_drained_server, set_up_three, tear_down)
{
    cli_start(&asked, NULL, "drain", "ps:2", "--address", address, NULL);
    cli_expect_code(&asked, 0);
    (void)cli_expect(&asked, NULL,
                     "/job:ps/task:2 may be stopped: nothing is lost with it\n");
    (void)cli_expect(&run, NULL, "/job:ps/task:2 gives away what it has: ");
    wait_status("\n256 partitions on 2 servers, each with a backup\n");
    assert_int_equal(kill(cli_task_pid(&run, NULL, "ps/2"), SIGKILL), 0);
    wait_status("\n256 partitions on 3 servers, each with a backup\n");
}

TEST_WITH(test_a_server_that_is_not_there, set_up_plain, tear_down)
{
    cli_start(&asked, NULL, "drain", "ps:7", "--address", address, NULL);
    cli_expect_code(&asked, 1);
    (void)cli_expect(&asked, NULL, "there is no such parameter server");
}

/* ---- show, dump, export ---- */

/* What `muster vars WORD NAME` prints, with a flag. */
static const char *ask_vars(const char *word, const char *name, const char *flag,
                            const char *value, int code)
{
    cli_start(&asked, NULL, "vars", word, name, "--address", address, flag, value, NULL);
    cli_expect_code(&asked, code);
    return asked.text;
}

TEST_WITH(test_show_a_variable, set_up_copied, tear_down)
{
    cJSON *root;

    (void)ask_vars("show", "weights", NULL, NULL, 0);
    (void)cli_expect(&asked, NULL, "variable\n  name          weights\n");
    (void)cli_expect(&asked, NULL, "  dtype         float32\n");
    (void)cli_expect(&asked, NULL, "  bytes         48\n");
    (void)cli_expect(&asked, NULL, "  shape         4x3\n");
    (void)cli_expect(&asked, NULL, "NAME     SHARD  BYTES  VERSION  PARTITION  PRIMARY");
    root = cli_json(ask_vars("show", "bias", "-o", "json", 0));
    assert_string_equal(cli_text(root, "name"), "bias");
    assert_int_equal(cli_number(root, "nonfinite"), 0);
    cJSON_Delete(root);
}

TEST_WITH(test_show_a_table, set_up_copied, tear_down)
{
    cJSON *root = cli_json(ask_vars("show", "emb", "-o", "json", 0));
    const cJSON *form = cJSON_GetObjectItem(root, "form");

    assert_string_equal(cli_text(root, "table"), "emb");
    assert_string_equal(cli_text(root, "dtype"), "float32");
    assert_int_equal(cli_number(root, "rows"), 3);
    assert_int_equal(cli_number(root, "dropped"), 0);
    assert_string_equal(cli_text(form, "initializer"), "uniform");
    assert_int_equal(cli_number(form, "admit_after"), 2);
    assert_int_equal(cli_number(form, "ttl"), 9);
    cJSON_Delete(root);
    (void)ask_vars("show", "emb", NULL, NULL, 0);
    (void)cli_expect(&asked, NULL, "table\n  table         emb\n");
    (void)cli_expect(&asked, NULL, "  optimizer     sgd\n");
}

TEST_WITH(test_dump_a_variable, set_up_copied, tear_down)
{
    static const struct {
        const char *name;
        const char *flag;
        const char *value;
        const char *text;
    } rows[] = {
        {"weights", NULL, NULL, "0\t0.5 1 -2\n1\t3 4 5\n2\t6 7 8\n3\t9 10 0.1\n"},
        {"weights", "--rows", "2:", "2\t6 7 8\n3\t9 10 0.1\n"},
        {"weights", "--rows", "1:2", "1\t3 4 5\n"},
        {"weights", "--rows", "4:9", ""},
        {"weights", "--limit", "1", "0\t0.5 1 -2\n"},
        {"bias", NULL, NULL, "0\t0.5\n"},
        {"bias", "-o", "json", "{\"row\": 0, \"values\": [0.5]}\n"},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        assert_string_equal(
            ask_vars("dump", rows[i].name, rows[i].flag, rows[i].value, 0), rows[i].text);
}

static int count_lines(const char *text)
{
    int lines = 0;

    for (; *text != '\0'; text++)
        lines += *text == '\n';
    return lines;
}

/* An id without a row has its initial row. */
TEST_WITH(test_dump_a_table, set_up_copied, tear_down)
{
    assert_string_equal(ask_vars("dump", "emb", "--ids", "3,1,9", 0),
                        "3\t5 6\n1\t1 2\n9\t1 1\n");
    assert_int_equal(count_lines(ask_vars("dump", "emb", NULL, NULL, 0)), 3);
    assert_non_null(strstr(asked.text, "2\t3 4\n"));
    assert_int_equal(count_lines(ask_vars("dump", "emb", "--limit", "2", 0)), 2);
    (void)ask_vars("dump", "emb", "-o", "json", 0);
    (void)cli_expect(&asked, NULL, "{\"id\": 2, \"values\": [3, 4]}\n");
}

TEST_WITH(test_bad_questions_about_variables, set_up_copied, tear_down)
{
    static const struct {
        const char *word;
        const char *name;
        const char *flag;
        const char *value;
        int code;
        const char *text;
    } rows[] = {
        {"show", "nothing", NULL, NULL, 1,
         "muster vars show: there is no variable or table \"nothing\"\n"},
        {"dump", "nothing", NULL, NULL, 1, "there is no variable or table \"nothing\"\n"},
        {"dump", "weights", "--rows", "3", 2, "--rows: \"3\": expected FIRST:END\n"},
        {"dump", "weights", "--rows", "3:1", 2, "expected FIRST:END\n"},
        {"dump", "weights", "--rows", "-1:1", 2, "expected FIRST:END\n"},
        {"dump", "weights", "--ids", "1", 2,
         "expected a table, and this is a variable\n"},
        {"dump", "emb", "--rows", "1:2", 2, "expected a variable, and this is a table\n"},
        {"dump", "emb", "--ids", "1,,2", 2, "expected ids with commas between them\n"},
        {"dump", "emb", "--ids", "1,x", 2, "expected ids with commas between them\n"},
        {"dump", "emb", "--ids", "18446744073709551616", 2, "expected ids with commas"},
        {"export", "/nowhere/file", NULL, NULL, 1,
         "\"/nowhere/file\" cannot be written: No such file or directory\n"},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        (void)ask_vars(rows[i].word, rows[i].name, rows[i].flag, rows[i].value,
                       rows[i].code);
        (void)cli_expect(&asked, NULL, rows[i].text);
    }
}

TEST(test_variables_of_no_cluster)
{
    static const char *const words[] = {"show", "dump", "export"};

    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        cli_start(&asked, NULL, "vars", words[i], "weights", "--address",
                  "tcp://127.0.0.1:9", "--timeout-ms", "300", NULL);
        cli_expect_code(&asked, 4);
    }
}

/* Numbers of a tensor of a safetensors file. */
static void read_tensor(const char *file, const cJSON *header, size_t header_size,
                        const char *name, void *out, size_t bytes)
{
    const cJSON *offsets =
        cJSON_GetObjectItem(cJSON_GetObjectItem(header, name), "data_offsets");
    int first = cJSON_GetArrayItem(offsets, 0)->valueint;

    assert_int_equal(cJSON_GetArrayItem(offsets, 1)->valueint - first, (int)bytes);
    memcpy(out, file + 8 + header_size + first, bytes);
}

static void export_to(const char *path, const char *name)
{
    cli_start(&asked, NULL, "vars", "export", path, "--address", address, name, NULL);
    cli_expect_code(&asked, 0);
}

/* As safetensors has it: the size of a header in JSON, the header, the tensors. */
TEST_WITH(test_export, set_up_copied, tear_down)
{
    char path[96];
    char file[8192];
    uint64_t header_size;
    float weights[12];
    float rows[6];
    int64_t ids[3];
    cJSON *header;

    (void)snprintf(path, sizeof path, "%s/all.safetensors", folder);
    export_to(path, NULL);
    cli_read_file(path, file, sizeof file);
    memcpy(&header_size, file, sizeof header_size);
    header = cJSON_ParseWithLength(file + 8, header_size);
    assert_non_null(header);
    read_tensor(file, header, header_size, "weights", weights, sizeof weights);
    assert_true(weights[2] < -1.9f && weights[10] > 9.9f);
    read_tensor(file, header, header_size, "emb#ids", ids, sizeof ids);
    read_tensor(file, header, header_size, "emb", rows, sizeof rows);
    for (int i = 0; i < 3; i++)
        assert_int_equal((int64_t)rows[2 * i], 2 * ids[i] - 1);
    cJSON_Delete(header);
    export_to(path, "bias");
    cli_read_file(path, file, sizeof file);
    memcpy(&header_size, file, sizeof header_size);
    header = cJSON_ParseWithLength(file + 8, header_size);
    assert_non_null(cJSON_GetObjectItem(header, "bias"));
    assert_null(cJSON_GetObjectItem(header, "weights"));
    cJSON_Delete(header);
    assert_int_equal(unlink(path), 0);
}

TEST_PROGRAM_WITH(compile, clean)
