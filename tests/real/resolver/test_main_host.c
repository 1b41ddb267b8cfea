/* The command inside of a host: what --python gives to it. */
#include "cli/verbs.h"

#include "muster/main.h"
#include "tests/support/test.h"

#include <sys/wait.h>
#include <unistd.h>

static char loaded[256];

/* The last module is refused, which ends the node. */
static int load(mu_node *node, const char *module, void *user, mu_error *ret_error)
{
    size_t used = strlen(loaded);

    assert_non_null(node);
    assert_ptr_equal(user, loaded);
    (void)snprintf(loaded + used, sizeof loaded - used, "<%s>", module);
    return strcmp(module, "last") == 0
               ? mu_error_set(ret_error, -MU_ENOTFOUND, "there is no module last")
               : 0;
}

TEST(test_modules_are_given_to_the_host_in_their_order)
{
    mu_main_options options;
    char words[][48] = {
        "muster",   "node",     "--cluster",  "{\"worker\": [\"127.0.0.1:0\"]}",
        "--task",   "worker:0", "--python",   "first",
        "--python", "last",     "--log-file", "/dev/null"};
    char *arguments[sizeof words / sizeof words[0] + 1] = {NULL};
    int count = (int)(sizeof words / sizeof words[0]);

    mu_main_options_init(&options);
    options.load = load;
    options.user = loaded;
    for (int i = 0; i < count; i++)
        arguments[i] = words[i];
    assert_int_equal(mu_main_with(&options, count, arguments), CMD_USAGE);
    assert_string_equal(loaded, "<><first><last>");
}

/* A program that was compiled with older headers: what is behind its options is not
 * looked at. */
TEST(test_options_of_another_size)
{
    char *arguments[] = {(char[]){"muster"}, (char[]){"version"}, NULL};
    _Alignas(mu_main_options) char bytes[sizeof(mu_main_options) + sizeof(void *)];
    mu_main_options *options = (mu_main_options *)(void *)bytes;

    memset(bytes, 0xA5, sizeof bytes);
    mu_main_options_init_sized(options, offsetof(mu_main_options, load));
    assert_int_equal(mu_main_with(options, 2, arguments), 0);
    mu_main_options_init_sized(options, sizeof bytes);
    assert_int_equal(mu_main_with(options, 2, arguments), 0);
    bytes[sizeof(mu_main_options)] = 1;
    assert_int_equal(mu_main_with(options, 2, arguments), CMD_USAGE);
    options->size = 0;
    assert_int_equal(mu_main_with(options, 2, arguments), CMD_USAGE);
}

/* In a process of its own, which becomes the interpreter. */
static int code_of_node(const char *python, char *out, size_t size)
{
    char *arguments[] = {(char[]){"muster"},
                         (char[]){"node"},
                         (char[]){"--python"},
                         (char[]){"module"},
                         (char[]){"--grace-ms"},
                         (char[]){"7"},
                         NULL};
    int ends[2];
    int status;
    ssize_t used;
    size_t filled = 0;
    pid_t pid;

    assert_int_equal(pipe(ends), 0);
    pid = fork();
    if (pid == 0) {
        (void)setenv("MUSTER_PYTHON", python, 1);
        (void)dup2(ends[1], STDOUT_FILENO);
        (void)dup2(ends[1], STDERR_FILENO);
        _exit(mu_main(6, arguments));
    }
    (void)close(ends[1]);
    while ((used = read(ends[0], out + filled, size - 1 - filled)) > 0)
        filled += (size_t)used;
    out[filled] = '\0';
    (void)close(ends[0]);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return WEXITSTATUS(status);
}

TEST(test_without_a_host_the_command_becomes_the_interpreter)
{
    char out[4096];

    assert_int_equal(code_of_node("/bin/echo", out, sizeof out), 0);
    assert_non_null(strstr(out, "node --python module --grace-ms 7"));
    assert_int_equal(code_of_node("/no/such/python", out, sizeof out), CMD_USAGE);
    assert_non_null(strstr(out, "\"/no/such/python\" cannot be started"));
    assert_non_null(strstr(out, "MUSTER_PYTHON names another one"));
}

TEST(test_without_arguments_there_is_help_and_exit_code_2)
{
    char *none[] = {(char[]){"muster"}, NULL};

    assert_int_equal(mu_main(1, none), CMD_USAGE);
}

TEST_PROGRAM()
