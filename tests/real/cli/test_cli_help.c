/* What the program prints of itself: help, the manual, examples, and where it cannot. */
#include "tests/real/cli.h"

#include "muster.h"

static struct cli cli;

static const char *const verbs[] = {
    "node",      "run",         "status",   "explain",     "drain", "stop",
    "kv get",    "kv put",      "kv watch", "kv ls",       "kv rm", "kv incr",
    "barrier",   "kv txn",      "kv hold",  "lock",        "vars",  "vars show",
    "vars dump", "vars export", "actors",   "actors stop", "tasks", "devices",
    "preempt",   "resolve",     "check",    "version",
};

enum { VERBS_COUNT = sizeof verbs / sizeof verbs[0] };

TEST(test_version)
{
    char expected[64];
    cJSON *root;

    (void)snprintf(expected, sizeof expected, "muster %d.%d.%d\n", MU_VERSION_MAJOR,
                   MU_VERSION_MINOR, MU_VERSION_PATCH);
    cli_start(&cli, NULL, "version", NULL);
    cli_expect_code(&cli, 0);
    assert_string_equal(cli.text, expected);
    cli_start(&cli, NULL, "version", "-o", "json", NULL);
    cli_expect_code(&cli, 0);
    root = cJSON_Parse(cli.text);
    assert_non_null(root);
    assert_string_equal(cJSON_GetObjectItem(root, "version")->valuestring, mu_version());
    cJSON_Delete(root);
}

#define EMPTY_FILE "--resolver file --resolver-set path=/dev/null --resolve-ms 0"
#define ALONE "{\"worker\": [\"127.0.0.1:1\"]}"

/* What a shell prints that runs "muster ARGUMENTS", and then its exit code. */
static void run_in_shell(const char *arguments, char *out, size_t size)
{
    char command[256];
    size_t used;
    FILE *shell;

    (void)snprintf(command, sizeof command, "\"$MUSTER_BIN\" %s; echo $?", arguments);
    shell = popen(command, "r");
    assert_non_null(shell);
    used = fread(out, 1, size - 1, shell);
    out[used] = '\0';
    assert_int_equal(pclose(shell), 0);
}

/* Not printed is not done, and said; the code of a failure stays. */
TEST(test_output_that_cannot_be_written)
{
    static const struct {
        const char *arguments;
        int code;
    } rows[] = {
        {"version", 1},
        {"help", 1},
        {"check --help", 1},
        {"kv --help", 1},
        {"resolve --list", 1},
        {"resolve --cluster '" ALONE "'", 1},
        {"check --cluster '" ALONE "'", 4},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char arguments[128];
        char expected[128];
        char text[512];

        (void)snprintf(arguments, sizeof arguments, "%s 2>&1 >/dev/full",
                       rows[i].arguments);
        (void)snprintf(expected, sizeof expected,
                       "muster: standard output cannot be written: No space left on "
                       "device\n%d\n",
                       rows[i].code);
        run_in_shell(arguments, text, sizeof text);
        assert_string_equal(text, expected);
    }
}

/* Whoever has closed them gets nothing, and nothing else gets it. */
TEST(test_closed_standard_files)
{
    static const struct {
        const char *arguments;
        const char *text;
    } rows[] = {
        {"resolve --cluster '" ALONE "' >&-", "0\n"},
        {"resolve " EMPTY_FILE " <&- >&- 2>&-", "1\n"},
        {"resolve " EMPTY_FILE " 2>&1 >&-",
         "muster resolve: /dev/null: the file is empty, expected a cluster as JSON\n1\n"},
        {"check --cluster '" ALONE "' <&- >&- 2>&-", "4\n"},
        {"node <&- >&- 2>&-", "2\n"},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char text[512];

        run_in_shell(rows[i].arguments, text, sizeof text);
        assert_string_equal(text, rows[i].text);
    }
}

TEST(test_help_lists_the_verbs)
{
    cli_start(&cli, NULL, "help", NULL);
    cli_expect_code(&cli, 0);
    for (size_t i = 0; i < VERBS_COUNT; i++) {
        char line[32];

        (void)snprintf(line, sizeof line, "  %s  ", verbs[i]);
        (void)cli_expect(&cli, NULL, line);
    }
    cli_start(&cli, NULL, NULL);
    cli_expect_code(&cli, 2);
    (void)cli_expect(&cli, NULL, "verbs:");
}

/* One screen: a line for each verb, and where to read on. The examples are apart. */
TEST(test_help_is_short_and_examples_are_apart)
{
    size_t lines = 0;

    cli_start(&cli, NULL, NULL);
    cli_expect_code(&cli, 2);
    for (const char *at = cli.text; (at = strchr(at, '\n')) != NULL; at++)
        lines++;
    assert_true(lines <= 50);
    assert_null(strstr(cli.text, "digits.so"));
    (void)cli_expect(&cli, NULL, "muster help examples");
    cli_start(&cli, NULL, "help", "examples", NULL);
    cli_expect_code(&cli, 0);
    (void)cli_expect(&cli, NULL, "  muster run --workers 3 --ps 2");
    (void)cli_expect(&cli, NULL, "  muster kv incr epochs");
}

/* Cell `number` of a row of a table, without blanks and backquotes around it. */
static void cell_of(const char *row, int number, char *out, size_t size)
{
    const char *end;

    for (; number >= 0; number--) {
        row = strstr(row, "| ");
        assert_non_null(row);
        row += 2;
    }
    end = strstr(row, " |");
    assert_non_null(end);
    row += row[0] == '`';
    (void)snprintf(out, size, "%.*s", (int)(end - row), row);
    if (out[0] != '\0' && out[strlen(out) - 1] == '`')
        out[strlen(out) - 1] = '\0';
}

/* Whether "node, kv, ..." has a verb, itself or as one of its group. */
static bool is_user(const char *users, const char *verb)
{
    size_t group = strcspn(verb, " ");

    while (*users != '\0') {
        size_t length = strcspn(users, ",");

        if (strncmp(users, verb, length) == 0 &&
            (length == strlen(verb) || length == group))
            return true;
        users += length + (users[length] == ',');
        users += strspn(users, " ");
    }
    return false;
}

/* `muster kv get --help` prints the same as `muster help "kv get"`. */
static void expect_help_of(const char *verb)
{
    static char text[CLI_TEXT_BYTES];
    const char *space = strchr(verb, ' ');
    char first[16];

    memcpy(text, cli.text, cli.size + 1);
    (void)snprintf(first, sizeof first, "%.*s", (int)strcspn(verb, " "), verb);
    if (space == NULL)
        cli_start(&cli, NULL, first, "--help", NULL);
    else
        cli_start(&cli, NULL, first, space + 1, "--help", NULL);
    cli_expect_code(&cli, 0);
    assert_string_equal(cli.text, text);
}

/* Every flag stands in the help of every verb that has it, with its variable. */
TEST(test_help_of_verbs_has_their_flags)
{
    static char table[CLI_TEXT_BYTES];
    int seen = 0;

    cli_start(&cli, NULL, "help", "flags", NULL);
    cli_expect_code(&cli, 0);
    memcpy(table, cli.text, cli.size + 1);
    for (size_t i = 0; i < VERBS_COUNT; i++) {
        cli_start(&cli, NULL, "help", verbs[i], NULL);
        cli_expect_code(&cli, 0);
        expect_help_of(verbs[i]);
        for (const char *row = strstr(table, "| `--"); row != NULL;
             row = strstr(row + 1, "\n| `--")) {
            char flag[128];
            char variable[64];
            char users[200];

            cell_of(row, 0, flag, sizeof flag);
            cell_of(row, 1, variable, sizeof variable);
            cell_of(row, 3, users, sizeof users);
            flag[strcspn(flag, " ")] = '\0';
            if (!is_user(users, verbs[i]))
                continue;
            if (strstr(cli.text, flag) == NULL || strstr(cli.text, variable) == NULL)
                fail_msg("`muster %s --help` lacks %s or %s", verbs[i], flag, variable);
            seen++;
        }
    }
    assert_true(seen > 40);
}

/* The manual has the tables that the program prints. */
TEST(test_manual_is_up_to_date)
{
    static const char *const topics[] = {"flags", "exit-codes"};
    static char manual[1 << 17];
    char path[1024];

    (void)snprintf(path, sizeof path, "%s/docs/manual/muster.md",
                   cli_variable("MUSTER_SOURCE"));
    cli_read_file(path, manual, sizeof manual);
    for (size_t i = 0; i < 2; i++) {
        cli_start(&cli, NULL, "help", topics[i], NULL);
        cli_expect_code(&cli, 0);
        if (strstr(manual, cli.text) == NULL)
            fail_msg("docs/manual/muster.md lacks what `muster help %s` prints:\n%s",
                     topics[i], cli.text);
    }
}

/* What a container runs, "[muster, node, --resolver, dns]": each of its flags is one of
 * the verb's. What stands behind "--" is nothing that a verb takes. */
static void expect_command(const char *page, const char *command)
{
    char words[256];
    char *rest = NULL;
    char *verb;

    (void)snprintf(words, sizeof words, "%.*s", (int)strcspn(command, "]"), command);
    verb = strtok_r(words, ", ", &rest);
    assert_non_null(verb);
    cli_start(&cli, NULL, verb, "--help", NULL);
    cli_expect_code(&cli, 0);
    for (char *word = strtok_r(NULL, ", ", &rest); word != NULL;
         word = strtok_r(NULL, ", ", &rest)) {
        char flag[64];

        (void)snprintf(flag, sizeof flag, "  %s ", word);
        if (word[0] == '-' && strstr(cli.text, flag) == NULL)
            fail_msg("%s: `muster %s` has no flag %s", page, verb, word);
    }
}

TEST(test_commands_of_the_pages)
{
    static const char *const pages[] = {"kubernetes", "kubeflow", "dns"};
    static const char mark[] = "command: [muster, ";
    static char page[65536];
    int seen = 0;

    for (size_t i = 0; i < 3; i++) {
        char path[1024];

        (void)snprintf(path, sizeof path, "%s/docs/resolvers/%s.md",
                       cli_variable("MUSTER_SOURCE"), pages[i]);
        cli_read_file(path, page, sizeof page);
        for (const char *at = strstr(page, mark); at != NULL; at = strstr(at, mark)) {
            at += strlen(mark);
            expect_command(pages[i], at);
            seen++;
        }
    }
    assert_int_equal(seen, 8);
}

/* What the examples set are settings of the resolver that they name. */
TEST(test_examples_set_what_there_is)
{
    static const char mark[] = " --resolver ";
    static char help[CLI_TEXT_BYTES];
    int seen = 0;

    cli_start(&cli, NULL, "resolve", "--list", NULL);
    cli_expect_code(&cli, 0);
    memcpy(help, cli.text, cli.size + 1);
    cli_start(&cli, NULL, "help", "examples", NULL);
    cli_expect_code(&cli, 0);
    for (const char *at = strstr(cli.text, mark); at != NULL; at = strstr(at, mark)) {
        char name[32];
        char setting[32];
        char line[64];
        const char *kind;

        at += strlen(mark);
        if (sscanf(at, "%31[a-z_] --resolver-set %31[a-z_]=", name, setting) != 2)
            continue;
        (void)snprintf(line, sizeof line, "\n%s: ", name);
        kind = strstr(help, line);
        assert_non_null(kind);
        (void)snprintf(line, sizeof line, "\n    %s (", setting);
        if (strstr(kind, line) == NULL)
            fail_msg("resolver %s has no setting %s", name, setting);
        seen++;
    }
    assert_int_equal(seen, 2);
}

TEST_PROGRAM()
