/* `muster lock` and `muster kv hold` against the service of a real cluster: who holds it,
 * how it ends, what becomes of it when somebody is killed. */
#include "tests/real/cli.h"

enum { WAITERS = 3 };

static struct cli run;
static struct cli asked;
static struct cli holder;
static struct cli waiters[WAITERS];
static char address[64];          /* of the host */
static char address_variable[96]; /* which says it, too */
static char folder[64];

static int start_cluster(void **state)
{
    (void)state;
    cli_folder(folder, sizeof folder);
    cli_start(&run, NULL, "run", "--workers", "1", "--color", "never", "--reconnect-ms",
              "1000", "--silence-ms", "3000", "--log-level", "info", NULL);
    cli_expect_up(&run, NULL, "chief/task:0", address, sizeof address);
    (void)snprintf(address_variable, sizeof address_variable, "MUSTER_CHIEF=%s", address);
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

#define LOCK(cli, name, ...) \
    cli_start(cli, NULL, "lock", name, "--address", address, __VA_ARGS__, NULL)
#define SHELL(text) "--", "sh", "-c", text

#define expect_words(cli, code, words)                        \
    do {                                                      \
        cli_expect_code(cli, code);                           \
        if (strstr((cli)->text, words) == NULL)               \
            fail_msg("no \"%s\" in: %s", words, (cli)->text); \
    } while (0)

/* Lines that are no keys of muster's own. */
static unsigned count_keys(const char *text)
{
    unsigned count = 0;

    for (const char *line = text; *line != '\0'; line = strchr(line, '\n') + 1)
        count += strncmp(line, "muster/", 7) != 0;
    return count;
}

/* Until there are so many keys below one. */
static void await_keys(const char *directory, unsigned count)
{
    for (unsigned lines = count + 1; lines != count;) {
        cli_start(&asked, NULL, "kv", "ls", directory, "--address", address, NULL);
        cli_expect_code(&asked, 0);
        lines = count_keys(asked.text);
    }
}

/* ---- locks ---- */

TEST(test_exit_codes)
{
    LOCK(&holder, "codes", SHELL("echo in; exit 7"));
    expect_words(&holder, 7, "in\n");
    LOCK(&holder, "codes", SHELL("kill -9 $$"));
    cli_expect_code(&holder, 128 + SIGKILL);
    LOCK(&holder, "codes", "--", "/no/such/program");
    expect_words(&holder, 127, "/no/such/program cannot be started: No such file");
    LOCK(&holder, "codes", "--", "/");
    expect_words(&holder, 126, "/ cannot be started: Permission denied");
    LOCK(&holder, "codes", "--", "true", "--flag", "--", "--address");
    cli_expect_code(&holder, 0);
    LOCK(&holder, "", "--", "true");
    expect_words(&holder, 2, "a lock's name is a key");
    LOCK(&holder, "codes", "more", "--", "true");
    cli_expect_code(&holder, 2);
    await_keys("lock/codes", 0);
}

/* The number is in the environment, and is the revision of the key. */
TEST(test_number)
{
    char words[128];
    unsigned long number;

    LOCK(&holder, "number",
         SHELL("echo $MUSTER_LOCK_NUMBER; \"$MUSTER_BIN\" kv get "
               "$MUSTER_LOCK_KEY -o json --address \"$0\""),
         address);
    cli_expect_code(&holder, 0);
    number = strtoul(holder.text, NULL, 10);
    assert_true(number > 0);
    (void)snprintf(words, sizeof words, "\"revision\":\t%lu", number);
    assert_non_null(strstr(holder.text, words));
    LOCK(&holder, "number", SHELL("echo $MUSTER_LOCK_NUMBER"));
    cli_expect_code(&holder, 0);
    assert_true(strtoul(holder.text, NULL, 10) > number);
}

TEST(test_limit_names_the_holder)
{
    LOCK(&holder, "busy", SHELL("echo in; exec sleep 60"));
    (void)cli_expect(&holder, NULL, "in\n");
    LOCK(&asked, "busy", "--timeout-ms", "300", "--", "true");
    expect_words(&asked, 4,
                 "lock \"busy\" was not free within 300 ms: /job:client/task:");
    assert_non_null(strstr(asked.text, " holds it, and 0 wait before this one"));
    cli_kill(&holder, SIGTERM);
    cli_expect_code(&holder, 128 + SIGTERM);
    await_keys("lock/busy", 0);
}

/* First come, first served, whoever is killed meanwhile. */
TEST(test_in_order)
{
    char path[96];
    char text[64];
    char script[160];

    (void)snprintf(path, sizeof path, "%s/order", folder);
    LOCK(&holder, "order", NULL);
    await_keys("lock/order", 1);
    for (unsigned i = 0; i < WAITERS; i++) {
        (void)snprintf(script, sizeof script, "echo %u >>'%s'", i, path);
        LOCK(&waiters[i], "order", SHELL(script));
        await_keys("lock/order", i + 2);
    }
    cli_kill(&waiters[1], SIGKILL);
    cli_expect_code(&waiters[1], 128 + SIGKILL);
    cli_stop(&holder);
    cli_expect_code(&waiters[0], 0);
    cli_expect_code(&waiters[2], 0);
    cli_read_file(path, text, sizeof text);
    assert_string_equal(text, "0\n2\n");
}

/* One that is dead, and not waited for by its new parent, does not run. */
static bool runs(pid_t pid)
{
    char path[64];
    char text[512];
    FILE *file;
    size_t size;

    (void)snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    file = fopen(path, "r");
    if (file == NULL)
        return false;
    size = fread(text, 1, sizeof text - 1, file);
    (void)fclose(file);
    text[size] = '\0';
    return size > 0 && strstr(text, ") Z") == NULL;
}

/* The holder is killed: its command dies with it, before the next one gets the lock. */
TEST(test_killed_holder)
{
    char path[96];
    char script[200];
    char text[64];

    (void)snprintf(path, sizeof path, "%s/killed", folder);
    (void)snprintf(script, sizeof script, "echo $$ >'%s'; echo in; exec sleep 60", path);
    LOCK(&holder, "killed", SHELL(script));
    (void)cli_expect(&holder, NULL, "in\n");
    cli_read_file(path, text, sizeof text);
    LOCK(&waiters[0], "killed", "--", "true");
    await_keys("lock/killed", 2);
    cli_kill(&holder, SIGKILL);
    cli_expect_code(&holder, 128 + SIGKILL);
    cli_expect_code(&waiters[0], 0);
    assert_false(runs((pid_t)strtol(text, NULL, 10)));
}

/* A signal is for the command, and the lock is held until that has ended. */
TEST(test_signal_is_for_the_command)
{
    LOCK(&holder, "signal",
         SHELL("trap 'echo heard; exit 5' TERM; echo in; while :; do sleep 0.05; done"));
    (void)cli_expect(&holder, NULL, "in\n");
    cli_kill(&holder, SIGTERM);
    expect_words(&holder, 5, "heard\n");
    await_keys("lock/signal", 0);
}

/* Who loses the lock must not go on. */
TEST(test_lost)
{
    LOCK(&holder, "gone",
         SHELL("trap 'echo told; exit 0' TERM; echo in; while :; do sleep 0.05; done"));
    (void)cli_expect(&holder, NULL, "in\n");
    cli_start(&asked, NULL, "kv", "rm", "lock/gone", "--address", address, NULL);
    cli_expect_code(&asked, 0);
    (void)cli_expect(&holder, NULL, "told\n");
    expect_words(&holder, 1, "was lost");
}

/* One that stands still loses it, and its command runs on until it hears so. */
TEST(test_holder_that_stands_still)
{
    char path[96];
    char script[240];
    char text[64];
    pid_t command;

    (void)snprintf(path, sizeof path, "%s/still", folder);
    (void)snprintf(script, sizeof script,
                   "trap 'echo told; exit 0' TERM; echo $$ >'%s'; "
                   "echo in; while :; do sleep 0.05; done",
                   path);
    LOCK(&holder, "still", SHELL(script));
    (void)cli_expect(&holder, NULL, "in\n");
    cli_read_file(path, text, sizeof text);
    command = (pid_t)strtol(text, NULL, 10);
    cli_kill(&holder, SIGSTOP);
    LOCK(&asked, "still", "--timeout-ms", "300", "--", "true");
    expect_words(&asked, 4, " holds it, and 0 wait before this one");
    LOCK(&waiters[0], "still", "--", "true");
    cli_expect_code(&waiters[0], 0);
    (void)cli_expect(&run, NULL, "is lost: silent for ");
    assert_true(runs(command));
    cli_kill(&holder, SIGCONT);
    (void)cli_expect(&holder, NULL, "told\n");
    expect_words(&holder, 1, "was lost: this client was declared lost");
    assert_false(runs(command));
}

/* ---- keys that are held ---- */

#define HOLD(cli, ...) \
    cli_start(cli, NULL, "kv", "hold", "--address", address, __VA_ARGS__, NULL)

static void expect_get(int code, const char *key, const char *value)
{
    cli_start(&asked, NULL, "kv", "get", key, "--address", address, NULL);
    cli_expect_code(&asked, code);
    if (code == 0)
        assert_string_equal(asked.text, value);
}

TEST(test_hold)
{
    HOLD(&holder, "held", "up", SHELL("echo in; read line; exit 3"));
    (void)cli_expect(&holder, NULL, "in\n");
    cli_expect_code(&holder, 3);
    expect_get(1, "held", "");
    HOLD(&holder, "held", "up", SHELL("echo in; exec sleep 60"));
    (void)cli_expect(&holder, NULL, "in\n");
    expect_get(0, "held", "up");
    HOLD(&asked, "held", "other", "--if-absent", "--", "true");
    expect_words(&asked, 6, "is there already");
    cli_kill(&holder, SIGTERM);
    cli_expect_code(&holder, 128 + SIGTERM);
    expect_get(1, "held", "");
    HOLD(&holder, "held", "up");
    await_keys("/", 1);
    cli_kill(&holder, SIGKILL);
    cli_expect_code(&holder, 128 + SIGKILL);
    await_keys("/", 0);
}

/* What somebody else puts meanwhile stays, and the command is told. */
TEST(test_hold_is_lost)
{
    HOLD(&holder, "taken", "mine", SHELL("echo in; exec sleep 60"));
    (void)cli_expect(&holder, NULL, "in\n");
    cli_start(&asked, NULL, "kv", "put", "taken", "theirs", "--address", address, NULL);
    cli_expect_code(&asked, 0);
    expect_words(&holder, 1, "the key taken was lost");
    expect_get(0, "taken", "theirs");
    HOLD(&holder, "", "x", "--", "true");
    cli_expect_code(&holder, 2);
}

/* ---- names ---- */

/* An empty name is wrong usage, whatever it names. */
TEST(test_empty_names)
{
    static const char *const rows[][5] = {
        {"barrier", "", "--tasks", "client:0"},
        {"lock", ""},
        {"kv", "get", ""},
        {"kv", "put", "", "1"},
        {"kv", "rm", ""},
        {"kv", "incr", ""},
        {"kv", "watch", ""},
        {"kv", "hold", "", "1"},
        {"explain", ""},
        {"drain", ""},
        {"stop", ""},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        cli_start(&asked, (const char *const[]){address_variable, NULL}, rows[i][0],
                  rows[i][1], rows[i][2], rows[i][3], rows[i][4], NULL);
        cli_expect_code(&asked, 2);
    }
}

TEST_PROGRAM_WITH(start_cluster, stop_cluster)
