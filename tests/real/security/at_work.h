/* A cluster of real processes with a key, whose chief has closures run all the time: what
 * each comes to is compared, and how many there were is in a file. A function that nobody
 * of the cluster schedules leaves a file behind. */
#ifndef MUSTER_TESTS_REAL_SECURITY_AT_WORK_H
#define MUSTER_TESTS_REAL_SECURITY_AT_WORK_H

#include "tests/real/cli.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/time.h>

enum {
    AT_WORK_TASKS = 4,
    AT_WORK_GROWTH_BYTES = 16 << 20, /* most that strangers cost a process */
    AT_WORK_MORE = 200               /* closures that are more than none */
};

static const char *const at_work_tasks[AT_WORK_TASKS] = {
    "/job:chief/task:0", "/job:worker/task:0", "/job:worker/task:1", "/job:ps/task:0"};
static const char *const at_work_short[AT_WORK_TASKS] = {"chief/0", "worker/0",
                                                         "worker/1", "ps/0"};

struct at_work {
    struct cli run;
    char folder[64];
    char key[96];
    char addresses[AT_WORK_TASKS][64];
    pid_t pids[AT_WORK_TASKS];
    size_t bytes[AT_WORK_TASKS]; /* resident, before the strangers */
};

static struct at_work at_work;

static const char at_work_plugin[] =
    "#include <muster.h>\n"
    "#include <stdio.h>\n"
    "#include <string.h>\n"
    "#include <unistd.h>\n"
    "static const char *folder;\n"
    "static const char *in_folder(const char *name)\n"
    "{\n"
    "    static char path[128];\n"
    "    snprintf(path, sizeof path, \"%s/%s\", folder, name);\n"
    "    return path;\n"
    "}\n"
    "static int square(mu_run *run, void *user)\n"
    "{\n"
    "    int64_t n = 0;\n"
    "    (void)user;\n"
    "    if (mu_value_get_int(mu_run_args(run), &n) != 0)\n"
    "        return mu_run_fail(run, -MU_EINVALID, \"no number\");\n"
    "    mu_run_return(run, mu_value_int(n * n));\n"
    "    return 0;\n"
    "}\n"
    "static int touch(mu_run *run, void *user)\n"
    "{\n"
    "    FILE *file = fopen(in_folder(\"touched\"), \"w\");\n"
    "    (void)run; (void)user;\n"
    "    if (file != NULL)\n"
    "        fclose(file);\n"
    "    return 0;\n"
    "}\n"
    "static int one(mu_coordinator *c, int64_t n, mu_error *error)\n"
    "{\n"
    "    mu_value *args = mu_value_int(n);\n"
    "    mu_remote_value *future = NULL;\n"
    "    mu_value *result = NULL;\n"
    "    int64_t got = 0;\n"
    "    int rv = mu_coordinator_schedule(c, \"square\", args, 60000, error, &future);\n"
    "    if (rv == 0)\n"
    "        rv = mu_remote_value_fetch(future, 60000, error, &result);\n"
    "    if (rv == 0 && (mu_value_get_int(result, &got) != 0 || got != n * n))\n"
    "        rv = mu_error_set(error, -MU_EDATALOSS, \"%d squared is %d\", (int)n,\n"
    "                          (int)got);\n"
    "    mu_value_free(result);\n"
    "    mu_value_free(args);\n"
    "    mu_remote_value_free(future);\n"
    "    return rv;\n"
    "}\n"
    "static void note(int64_t n)\n"
    "{\n"
    "    char from[128];\n"
    "    FILE *file = fopen(strcpy(from, in_folder(\"count.new\")), \"w\");\n"
    "    if (file == NULL)\n"
    "        return;\n"
    "    fprintf(file, \"%d\\n\", (int)n);\n"
    "    fclose(file);\n"
    "    rename(from, in_folder(\"count\"));\n"
    "}\n"
    "static int chief(mu_node *node, void *user)\n"
    "{\n"
    "    static const uint64_t dims[] = {16};\n"
    "    mu_variable_spec spec = {\"touch\", MU_F32, 1, dims, 1, NULL, 0, NULL};\n"
    "    mu_variable *variable = NULL;\n"
    "    mu_coordinator *c = NULL;\n"
    "    mu_error error = {0};\n"
    "    int64_t n = 0;\n"
    "    int rv = mu_variable_open(node, &spec, 60000, &error, &variable);\n"
    "    (void)user;\n"
    "    if (rv == 0)\n"
    "        rv = mu_coordinator_open(node, 60000, &error, &c);\n"
    "    while (rv == 0 && access(in_folder(\"stop\"), F_OK) != 0) {\n"
    "        rv = one(c, ++n, &error);\n"
    "        if (n % 10 == 0)\n"
    "            note(n);\n"
    "    }\n"
    "    printf(\"all were exact: %s\\n\", rv == 0 ? \"yes\" : error.message);\n"
    "    fflush(stdout);\n"
    "    mu_coordinator_close(c);\n"
    "    mu_variable_close(variable);\n"
    "    return rv;\n"
    "}\n"
    "int mu_plugin_open(mu_node *node);\n"
    "int mu_plugin_open(mu_node *node)\n"
    "{\n"
    "    folder = mu_node_get_setting(node, \"folder\");\n"
    "    if (mu_node_register_function(node, \"square\", square, NULL, 0) != 0 ||\n"
    "        mu_node_register_function(node, \"touch\", touch, NULL, 0) != 0)\n"
    "        return -MU_EINVALID;\n"
    "    return mu_node_register_program(node, \"chief\", chief, NULL);\n"
    "}\n";

/* "FOLDER/NAME". Valid for the four calls that follow. */
static inline const char *at_work_file(const char *name)
{
    static char paths[4][128];
    static unsigned next;
    char *path = paths[next++ % 4];

    (void)snprintf(path, sizeof paths[0], "%s/%s", at_work.folder, name);
    return path;
}

/* How many closures there were. */
static inline long at_work_count(void)
{
    char text[32] = "0";
    FILE *file = fopen(at_work_file("count"), "r");

    if (file == NULL)
        return 0;
    if (fgets(text, sizeof text, file) == NULL)
        text[0] = '0';
    (void)fclose(file);
    return strtol(text, NULL, 10);
}

/* Wait for some more closures. */
static inline void at_work_goes_on(void)
{
    uint64_t deadline_ms = cli_now_ms() + CLI_SOON_MS;
    long from = at_work_count();

    while (at_work_count() < from + AT_WORK_MORE) {
        cli_read(&at_work.run);
        if (cli_now_ms() >= deadline_ms) {
            cli_show(&at_work.run);
            fail_msg("%ld closures, and then no %d more", from, AT_WORK_MORE);
        }
        cli_pause();
    }
}

static inline size_t at_work_resident(pid_t pid)
{
    unsigned long pages[2] = {0, 0};
    char path[64];
    FILE *file;

    (void)snprintf(path, sizeof path, "/proc/%d/statm", (int)pid);
    file = fopen(path, "r");
    assert_non_null(file);
    assert_int_equal(fscanf(file, "%lu %lu", &pages[0], &pages[1]), 2);
    (void)fclose(file);
    return (size_t)pages[1] * (size_t)sysconf(_SC_PAGESIZE);
}

/* Until a command has ended well. */
static inline void at_work_do(struct cli *cli)
{
    cli_expect_code(cli, 0);
}

static inline void at_work_derive(const char *right)
{
    static struct cli asked;

    cli_start(&asked, NULL, "key", "derive", right, at_work_file(right), "--key-file",
              at_work.key, NULL);
    at_work_do(&asked);
}

static inline void at_work_find(size_t task)
{
    char words[96];
    const char *at;

    (void)snprintf(words, sizeof words, "%s node: is up at ", at_work_tasks[task]);
    at = cli_expect(&at_work.run, NULL, words);
    (void)cli_expect(&at_work.run, at, "\n");
    (void)snprintf(at_work.addresses[task], sizeof at_work.addresses[task], "%.*s",
                   (int)strcspn(at, "\n"), at);
    at_work.pids[task] = cli_task_pid(&at_work.run, NULL, at_work_short[task]);
}

static inline void at_work_begin(void)
{
    static struct cli asked;
    char plugin[96];
    char setting[96];

    cli_folder(at_work.folder, sizeof at_work.folder);
    assert_int_equal(cli_compile(at_work.folder, at_work_plugin, plugin, sizeof plugin),
                     0);
    (void)snprintf(at_work.key, sizeof at_work.key, "%s", at_work_file("key"));
    (void)snprintf(setting, sizeof setting, "folder=%s", at_work.folder);
    cli_start(&asked, NULL, "key", "new", at_work.key, NULL);
    at_work_do(&asked);
    cli_start(&at_work.run, NULL, "run", "--transport", "tcp", "--workers", "2", "--ps",
              "1", "--color", "never", "--key-file", at_work.key, "--plugin", plugin,
              "--set", setting, NULL);
    for (size_t i = 0; i < AT_WORK_TASKS; i++)
        at_work_find(i);
    at_work_goes_on();
    at_work_goes_on();
    for (size_t i = 0; i < AT_WORK_TASKS; i++)
        at_work.bytes[i] = at_work_resident(at_work.pids[i]);
}

/* Nothing of the strangers has run, and the processes are as large as before. */
static inline void at_work_is_unharmed(void)
{
    at_work_goes_on();
    assert_int_not_equal(access(at_work_file("touched"), F_OK), 0);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
    for (size_t i = 0; i < AT_WORK_TASKS; i++) {
        size_t bytes = at_work_resident(at_work.pids[i]);

        if (bytes > at_work.bytes[i] + AT_WORK_GROWTH_BYTES)
            fail_msg("%s has grown from %zu to %zu bytes", at_work_tasks[i],
                     at_work.bytes[i], bytes);
    }
#endif
}

/* Its closures have been exact to the end. */
static inline void at_work_end(void)
{
    char command[128];

    cli_write_file(at_work_file("stop"), "");
    (void)cli_expect(&at_work.run, NULL, "all were exact: yes");
    cli_expect_code(&at_work.run, 0);
    (void)snprintf(command, sizeof command, "rm -r '%s'", at_work.folder);
    assert_int_equal(system(command), 0);
}

/* ---- plain sockets ---- */

static inline int at_work_connect(size_t task)
{
    struct sockaddr_in address = {.sin_family = AF_INET};
    const char *port = strrchr(at_work.addresses[task], ':') + 1;
    const struct timeval limit = {5, 0};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = htons((uint16_t)strtoul(port, NULL, 10));
    assert_true(fd >= 0);
    (void)setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    (void)setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
    if (connect(fd, (struct sockaddr *)&address, sizeof address) == 0)
        return fd;
    (void)close(fd);
    return -1;
}

#endif
