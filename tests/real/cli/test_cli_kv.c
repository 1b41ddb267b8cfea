/* `muster kv` against the service of a real cluster: what it prints, how it ends. */
#include "tests/real/cli.h"

#include <sys/stat.h>

enum { VALUE_MAX = 1 << 20 };

static struct cli run;
static struct cli asked;
static struct cli other;
static struct cli watcher;
static char address[64]; /* of the host */
static char folder[64];

/* ---- a cluster ---- */

static void begin(const char *const *more)
{
    const char *flags[8] = {NULL};

    for (size_t i = 0; more != NULL && more[i] != NULL; i++) {
        assert_true(i < 8);
        flags[i] = more[i];
    }
    cli_start(&run, NULL, "run", "--workers", "1", "--ps", "1", "--color", "never",
              flags[0], flags[1], flags[2], flags[3], flags[4], flags[5], flags[6],
              flags[7], NULL);
}

static int start_cluster(void **state)
{
    (void)state;
    cli_folder(folder, sizeof folder);
    begin(NULL);
    cli_expect_up(&run, NULL, "chief/task:0", address, sizeof address);
    return 0;
}

static int stop_cluster(void **state)
{
    char command[128];

    (void)state;
    cli_stop(&run);
    (void)snprintf(command, sizeof command, "rm -r '%s'", folder);
    return system(command);
}

/* ---- asking ---- */

#define KV(cli, ...) cli_start(cli, NULL, "kv", __VA_ARGS__, "--address", address, NULL)

#define expect_text(code, printed, ...)           \
    do {                                          \
        KV(&asked, __VA_ARGS__);                  \
        cli_expect_code(&asked, code);            \
        assert_string_equal(asked.text, printed); \
    } while (0)

#define expect_words(code, words, ...)                       \
    do {                                                     \
        KV(&asked, __VA_ARGS__);                             \
        cli_expect_code(&asked, code);                       \
        if (strstr(asked.text, words) == NULL)               \
            fail_msg("no \"%s\" in: %s", words, asked.text); \
    } while (0)

/* The revision that a put prints. */
static void put(const char *key, const char *value, char *ret_revision)
{
    KV(&asked, "put", key, value);
    cli_expect_code(&asked, 0);
    (void)snprintf(ret_revision, 32, "%.*s", (int)strcspn(asked.text, "\n"), asked.text);
    assert_true(strtoul(ret_revision, NULL, 10) > 0);
}

/* Give what is started standard input from a file of `size` bytes. */
static void take_input(const char *name, const void *data, size_t size)
{
    char path[96];
    FILE *file;
    int fd;

    (void)snprintf(path, sizeof path, "%s/%s", folder, name);
    file = fopen(path, "w");
    assert_non_null(file);
    assert_int_equal(fwrite(data, 1, size, file), size);
    assert_int_equal(fclose(file), 0);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    assert_true(fd >= 0);
    assert_true(dup2(fd, STDIN_FILENO) == STDIN_FILENO);
    (void)close(fd);
}

/* ---- keys ---- */

LISTED_TEST(test_put_get_rm)
{
    char revision[32];

    put("/a//b/", "one", revision);
    expect_text(0, "one", "get", "a/b");
    put("a/c", "", revision);
    expect_text(0, "", "get", "a/c");
    put("dash", "-5", revision);
    expect_text(0, "-5", "get", "dash");
    cli_start(&asked, NULL, "kv", "put", "--address", address, "flag", "--", "--wait",
              NULL);
    cli_expect_code(&asked, 0);
    expect_text(0, "--wait", "get", "flag");
    expect_text(0, "2\n", "rm", "a");
    expect_text(0, "0\n", "rm", "a");
    expect_words(1, "a/b", "get", "a/b");
}

LISTED_TEST(test_conditions)
{
    char first[32];
    char second[32];

    put("x", "1", first);
    expect_words(6, "is there already", "put", "x", "2", "--if-absent");
    expect_text(0, "1", "get", "x");
    KV(&asked, "put", "x", "2", "--if-revision", first);
    cli_expect_code(&asked, 0);
    (void)snprintf(second, sizeof second, "%.*s", (int)strcspn(asked.text, "\n"),
                   asked.text);
    assert_true(strtoul(second, NULL, 10) > strtoul(first, NULL, 10));
    expect_words(6, "has revision", "put", "x", "3", "--if-revision", first);
    expect_words(6, "expected 0", "put", "x", "3", "--if-revision", "0");
    expect_text(0, "2", "get", "x");
    KV(&asked, "put", "new", "1", "--if-revision", "0");
    cli_expect_code(&asked, 0);
    KV(&asked, "put", "newer", "1", "--if-absent");
    cli_expect_code(&asked, 0);
    expect_words(6, "has another value", "put", "x", "3", "--if-value", "1");
    expect_words(6, "is not there", "put", "nowhere", "3", "--if-value", "1");
    KV(&asked, "put", "x", "3", "--if-value", "2");
    cli_expect_code(&asked, 0);
    expect_words(6, "has another value", "rm", "x", "--if-value", "2");
    expect_words(6, "has revision", "rm", "x", "--if-revision", first);
    expect_text(0, "3", "get", "x");
    KV(&asked, "rm", "x", "--if-value", "3");
    cli_expect_code(&asked, 0);
    expect_words(1, "x", "get", "x");
}

LISTED_TEST(test_incr)
{
    char revision[32];

    expect_text(0, "1\n", "incr", "n");
    expect_text(0, "11\n", "incr", "n", "10");
    expect_text(0, "-9\n", "incr", "n", "-20");
    expect_text(0, "-9", "get", "n");
    put("word", "many", revision);
    expect_words(1, "word", "incr", "word");
    put("big", "9223372036854775807", revision);
    expect_words(1, "big", "incr", "big");
    expect_text(0, "9223372036854775807", "get", "big");
}

LISTED_TEST(test_ls)
{
    char revision[32];
    char line[96];
    cJSON *root;

    put("l/b", "12345", revision);
    (void)snprintf(line, sizeof line, " %s  l/b\n", revision);
    put("l/a/x", "1", revision);
    put("l-other", "1", revision);
    expect_text(0, "l/a/x\nl/b\n", "ls", "l");
    expect_text(0, "", "ls", "l/b");
    expect_words(0, "\nl/b\nl-other\n", "ls");
    expect_words(0, line, "ls", "l", "-l");
    expect_words(0, "       5 ", "ls", "l", "--long");
    KV(&asked, "ls", "l", "-o", "json");
    cli_expect_code(&asked, 0);
    root = cli_json(asked.text);
    assert_int_equal(cJSON_GetArraySize(root), 2);
    assert_string_equal(cli_text(cJSON_GetArrayItem(root, 1), "key"), "l/b");
    assert_string_equal(cli_text(cJSON_GetArrayItem(root, 1), "value"), "12345");
    assert_true(cli_number(cJSON_GetArrayItem(root, 1), "size") == 5);
    assert_true(cli_number(cJSON_GetArrayItem(root, 1), "revision") > 0);
    cJSON_Delete(root);
}

/* A key that ends with a slash is all below it, for all that look. */
LISTED_TEST(test_get_below)
{
    static const char bytes[] = {'a', '\\', '\t', '\n', (char)0xff, '\0', 'z'};
    char revision[32];
    cJSON *root;

    put("g", "itself", revision);
    put("g/b", "two words", revision);
    put("g/a/x", "", revision);
    put("g-other", "1", revision);
    take_input("escaped", bytes, sizeof bytes);
    KV(&asked, "put", "g/c", "-");
    cli_expect_code(&asked, 0);
#define BELOW "g/a/x\t\ng/b\ttwo words\ng/c\ta\\\\\\t\\n\\xff\\x00z\n"
    expect_text(0, BELOW, "get", "g/");
    expect_text(0, BELOW, "get", "g", "--prefix");
#undef BELOW
    expect_text(0, "itself", "get", "g");
    expect_text(0, "", "get", "nothing/");
    expect_words(0, "\ng-other\t1\n", "get", "/");
    expect_words(2, "--wait is for one key", "get", "g/", "--wait");
    KV(&asked, "get", "g", "--prefix", "-o", "json");
    cli_expect_code(&asked, 0);
    root = cli_json(asked.text);
    assert_int_equal(cJSON_GetArraySize(root), 3);
    assert_string_equal(cli_text(cJSON_GetArrayItem(root, 1), "value"), "two words");
    cJSON_Delete(root);
}

/* ---- transactions ---- */

#define expect_txn(code, words, text)                         \
    do {                                                      \
        static const char text_of_it[] = text;                \
                                                              \
        take_input("txn", text_of_it, sizeof text_of_it - 1); \
        expect_words(code, words, "txn");                     \
    } while (0)

LISTED_TEST(test_txn)
{
    char revision[32];
    char words[64];
    cJSON *root;

    put("t/owner", "a", revision);
    put("t/old/x", "1", revision);
    expect_txn(0, " 5\n",
               "# moves\n\nif t/owner value a\nif t/new absent\n"
               "put t/owner  b \nincr t/moves 5\nrm t/old\n"
               "put \"t/a \\\"key\\\"\" \"two\\nlines\"");
    expect_text(0, "t/a \"key\"\ttwo\\nlines\nt/moves\t5\nt/owner\tb \n", "get", "t/");
    expect_txn(6, "key \"t/owner\" has another value",
               "if t/moves value 5\n"
               "if t/owner value a\nincr t/moves\n");
    expect_text(0, "5", "get", "t/moves");
    put("t/owner", "c", revision);
    take_input("txn", words,
               (size_t)snprintf(words, sizeof words,
                                "if t/owner revision "
                                "%s\nif t/moves present\nincr t/moves -7",
                                revision));
    KV(&asked, "txn", "-o", "json");
    cli_expect_code(&asked, 0);
    root = cli_json(asked.text);
    assert_true(cli_number(root, "number") == -2);
    assert_true(cli_number(root, "revision") > strtod(revision, NULL));
    cJSON_Delete(root);
}

LISTED_TEST(test_txn_that_is_wrong)
{
    expect_txn(2, "neither comparisons nor changes", "\n# nothing\n");
    expect_txn(2, "line 2 of standard input: expected if, put, incr or rm",
               "put a 1\nset b 2\n");
    expect_txn(2, "line 1 of standard input: expected a key", "put\n");
    expect_txn(2, "expected absent, present, revision or value behind the key",
               "if a\nput a 1");
    expect_txn(2, "expected absent, present, revision or value behind the key",
               "if a is b\nput a 1");
    expect_txn(2, "expected a revision, a whole number", "if a revision -1\nput a 1");
    expect_txn(2, "expected a whole number of 64 bits to add", "incr a many");
    expect_txn(2, "there is more than expected", "rm a b");
    expect_txn(2, "expected a string as in JSON", "put \"a b");
    expect_txn(2, "there is a zero byte", "put a b\0c\n");
    expect_txn(2, "changes 1 and 2 of the transaction", "put a 1\nrm a");
    expect_txn(2, "change 1 of the transaction", "put /// 1");
    expect_txn(1, "_muster", "put _muster/a 1");
    KV(&asked, "put", "t-word", "many");
    cli_expect_code(&asked, 0);
    expect_txn(1, "has no decimal number", "incr t-count\nincr t-word\n");
    expect_words(1, "t-count", "get", "t-count");
}

LISTED_TEST(test_json_of_the_others)
{
    cJSON *root;

    KV(&asked, "put", "j", "text", "-o", "json");
    cli_expect_code(&asked, 0);
    root = cli_json(asked.text);
    assert_string_equal(cli_text(root, "key"), "j");
    assert_true(cli_number(root, "revision") > 0);
    cJSON_Delete(root);
    KV(&asked, "get", "j", "-o", "json");
    cli_expect_code(&asked, 0);
    root = cli_json(asked.text);
    assert_string_equal(cli_text(root, "value"), "text");
    cJSON_Delete(root);
    KV(&asked, "incr", "j-count", "-o", "json");
    cli_expect_code(&asked, 0);
    root = cli_json(asked.text);
    assert_true(cli_number(root, "number") == 1);
    cJSON_Delete(root);
    KV(&asked, "rm", "j", "-o", "json");
    cli_expect_code(&asked, 0);
    root = cli_json(asked.text);
    assert_true(cli_number(root, "deleted") == 1);
    cJSON_Delete(root);
}

/* ---- bytes ---- */

LISTED_TEST(test_bytes_are_kept)
{
    static const char bytes[] = {'a', '\0', '\n', (char)0xff, '\0'};
    cJSON *root;

    take_input("bytes", bytes, sizeof bytes);
    KV(&asked, "put", "bytes", "-");
    cli_expect_code(&asked, 0);
    KV(&asked, "get", "bytes");
    cli_expect_code(&asked, 0);
    assert_int_equal(asked.size, sizeof bytes);
    assert_memory_equal(asked.text, bytes, sizeof bytes);
    KV(&asked, "get", "bytes", "-o", "json");
    cli_expect_code(&asked, 0);
    root = cli_json(asked.text);
    assert_string_equal(cli_text(root, "base64"), "YQAK/wA=");
    assert_null(cJSON_GetObjectItem(root, "value"));
    cJSON_Delete(root);
}

LISTED_TEST(test_the_largest_value)
{
    char *bytes = calloc(1, VALUE_MAX + 1);

    assert_non_null(bytes);
    take_input("largest", bytes, VALUE_MAX);
    KV(&asked, "put", "largest", "-");
    cli_expect_code(&asked, 0);
    expect_words(0, " 1048576 ", "ls", "-l");
    take_input("larger", bytes, VALUE_MAX + 1);
    expect_words(2, "standard input has more than 1048576 bytes", "put", "larger", "-");
    free(bytes);
}

/* ---- waiting ---- */

LISTED_TEST(test_get_waits)
{
    char revision[32];

    KV(&other, "get", "later", "--wait");
    expect_words(4, "later", "get", "later", "--wait", "--timeout-ms", "300");
    put("later", "at last", revision);
    cli_expect_code(&other, 0);
    assert_string_equal(other.text, "at last");
}

LISTED_TEST(test_watch_prints_changes)
{
    char revision[32];
    char line[64];

    put("w/old", "1", revision);
    put("w", "not below itself", line);
    KV(&other, "watch", "w", "--prefix", "--count", "3");
    (void)snprintf(line, sizeof line, "put w/old %s \"1\"\nsynced\n", revision);
    (void)cli_expect(&other, NULL, line);
    put("w/new", "two\n", revision);
    (void)snprintf(line, sizeof line, "synced\nput w/new %s \"two", revision);
    (void)cli_expect(&other, NULL, line);
    put("w-other", "1", revision);
    expect_text(0, "1\n", "rm", "w/old");
    (void)cli_expect(&other, NULL, "deleted w/old\n");
    assert_false(other.ended);
    put("w/new", "3", revision);
    cli_expect_code(&other, 0);
    assert_null(strstr(other.text, "w-other"));
}

/* Each line is one object. */
LISTED_TEST(test_watch_as_json)
{
    char revision[32];
    char line[256];
    const char *at;
    cJSON *root;

    KV(&other, "watch", "one", "--count", "1", "-o", "json");
    (void)cli_expect(&other, NULL, "{\"event\":\"synced\"}\n");
    put("one/below", "1", revision);
    put("one", "a\"b", revision);
    cli_expect_code(&other, 0);
    at = strchr(other.text, '\n') + 1;
    (void)snprintf(line, sizeof line, "%s", at);
    root = cli_json(line);
    assert_string_equal(cli_text(root, "event"), "put");
    assert_string_equal(cli_text(root, "key"), "one");
    assert_string_equal(cli_text(root, "value"), "a\"b");
    assert_true(cli_number(root, "revision") == strtod(revision, NULL));
    cJSON_Delete(root);
}

LISTED_TEST(test_watch_ends_at_its_limit)
{
    expect_words(4, "synced\n", "watch", "nothing", "--timeout-ms", "2000");
}

/* Once is a goodbye, and the service hears it; twice does not wait for anybody. */
LISTED_TEST(test_interrupts)
{
    pid_t chief = cli_task_pid(&run, NULL, "chief/0");
    uint64_t began_ms;

    KV(&other, "watch", "/");
    (void)cli_expect(&other, NULL, "synced\n");
    cli_stop(&other);
    KV(&other, "get", "never", "--wait", "--timeout-ms", "60000");
    cli_start(&asked, NULL, "tasks", "--address", address, NULL);
    cli_expect_code(&asked, 0);
    assert_null(strstr(asked.text, "error"));
    KV(&asked, "watch", "/", "--timeout-ms", "60000");
    (void)cli_expect(&asked, NULL, "synced\n");
    assert_int_equal(kill(chief, SIGSTOP), 0);
    began_ms = cli_now_ms();
    cli_kill(&other, SIGTERM);
    cli_expect_code(&other, 128 + SIGTERM);
    cli_kill(&asked, SIGINT);
    cli_stop(&asked);
    assert_int_equal(kill(chief, SIGCONT), 0);
    assert_true(cli_now_ms() - began_ms < 20000);
}

/* ---- what is wrong ---- */

LISTED_TEST(test_wrong_arguments)
{
    char key[1100];

    memset(key, 'k', sizeof key - 1);
    key[sizeof key - 1] = '\0';
    expect_words(2, "1023", "get", key);
    expect_words(2, "key", "put", "///", "1");
    expect_words(2, "--if-revision: expected a revision, a whole number, got \"new\"",
                 "put", "a", "1", "--if-revision", "new");
    expect_words(2, "exclude each other", "put", "a", "1", "--if-revision", "1",
                 "--if-absent");
    expect_words(2, "exclude each other", "rm", "a", "--if-revision", "1", "--if-value",
                 "b");
    expect_words(2, "no flag", "rm", "a", "--if-absent");
    expect_words(2, "a key may not be empty", "put", "", "1");
    expect_words(2, "expected a whole number of 64 bits to add, got \"1.5\"", "incr", "a",
                 "1.5");
    expect_words(2, "9223372036854775808", "incr", "a", "9223372036854775808");
    expect_words(1, "_muster", "put", "_muster/a", "1");
    expect_words(1, "_muster", "rm", "_muster");
}

LISTED_TEST(test_wrong_addresses)
{
    char worker[64];

    cli_start(&asked, NULL, "kv", "get", "a", "--address", "tcp://127.0.0.1:1",
              "--timeout-ms", "1000", NULL);
    cli_expect_code(&asked, 4);
    (void)cli_expect(&asked, NULL, "tcp://127.0.0.1:1");
    (void)cli_expect(&asked, NULL, "was never connected: connection refused");
    cli_start(&asked, NULL, "kv", "get", "a", "--address", "tcp://127.0.0.1:1",
              "--timeout-ms", "3500", "--log-level", "error", NULL);
    cli_expect_code(&asked, 4);
    assert_null(strstr(asked.text, " WARN "));
    (void)snprintf(worker, sizeof worker, "%s", address);
    cli_expect_up(&run, NULL, "worker/task:0", address, sizeof address);
    cli_start(&asked, NULL, "kv", "get", "a", "--address", address, "--timeout-ms", "200",
              NULL);
    (void)snprintf(address, sizeof address, "%s", worker);
    cli_expect_code(&asked, 4);
    cli_start(&asked, NULL, "kv", "get", "a", "--address", address, "--timeout-ms", "200",
              "--cluster-name", "other", NULL);
    cli_expect_code(&asked, 4);
    (void)cli_expect(&asked, NULL, "cluster name \"other\"");
}

/* ---- other hosts ---- */

LISTED_TEST(test_no_service)
{
    begin((const char *const[]){"--service-hosts", "none", NULL});
    cli_expect_up(&run, NULL, "chief/task:0", address, sizeof address);
    expect_words(4, "", "get", "a", "--timeout-ms", "300");
    cli_stop(&run);
}

/* The service of a parameter server that is killed: what its journal has is there when it
 * is back, and who waits gets it then. */
LISTED_TEST(test_killed_host)
{
    char store[96];
    char revision[32];
    const char *after;
    pid_t ps;

    cli_folder(folder, sizeof folder);
    (void)snprintf(store, sizeof store, "journal:%s/store", folder);
    begin((const char *const[]){"--service-hosts", "ps:0", "--store", store, "--restart",
                                "ps=always", NULL});
    cli_expect_up(&run, NULL, "ps/task:0", address, sizeof address);
    put("kept", "1", revision);
    expect_text(0, "1", "get", "kept", "--service-hosts", "ps:0");
    expect_words(4, "/job:chief/task:0 at tcp://", "get", "kept", "--service-hosts",
                 "chief:0", "--timeout-ms", "200");
    KV(&other, "get", "later", "--wait");
    KV(&watcher, "watch", "kept", "--count", "1");
    (void)cli_expect(&watcher, NULL, "synced\n");
    ps = cli_task_pid(&run, NULL, "ps/0");
    assert_int_equal(kill(ps, SIGKILL), 0);
    after = cli_expect(&run, NULL, "; restart 1 of ");
    (void)cli_expect(&run, after, "/job:ps/task:0 node: is up");
    expect_text(0, "1", "get", "kept", "--timeout-ms", "20000");
    put("kept", "2", revision);
    put("later", "now", revision);
    cli_expect_code(&other, 0);
    assert_string_equal(other.text, "now");
    cli_expect_code(&watcher, 0);
    (void)cli_expect(&watcher, NULL, " \"2\"\n");
    (void)stop_cluster(state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_put_get_rm),
        cmocka_unit_test(test_conditions),
        cmocka_unit_test(test_incr),
        cmocka_unit_test(test_ls),
        cmocka_unit_test(test_get_below),
        cmocka_unit_test(test_txn),
        cmocka_unit_test(test_txn_that_is_wrong),
        cmocka_unit_test(test_json_of_the_others),
        cmocka_unit_test(test_bytes_are_kept),
        cmocka_unit_test(test_the_largest_value),
        cmocka_unit_test(test_get_waits),
        cmocka_unit_test(test_watch_prints_changes),
        cmocka_unit_test(test_watch_as_json),
        cmocka_unit_test(test_watch_ends_at_its_limit),
        cmocka_unit_test(test_interrupts),
        cmocka_unit_test(test_wrong_arguments),
        cmocka_unit_test(test_wrong_addresses),
    };
    const struct CMUnitTest own_clusters[] = {
        cmocka_unit_test(test_no_service),
        cmocka_unit_test(test_killed_host),
    };
    int failed = cmocka_run_group_tests(tests, start_cluster, stop_cluster);

    return failed + cmocka_run_group_tests(own_clusters, NULL, NULL);
}
