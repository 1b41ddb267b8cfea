/* Programs that start tasks (mpirun, srun), for tests, and a plugin for the tasks. */
#ifndef MUSTER_TESTS_REAL_LAUNCH_H
#define MUSTER_TESTS_REAL_LAUNCH_H

#include "tests/real/cli.h"
#include "tests/real/needs.h"
#include "tests/real/ports.h"

/* Start any program, up to a NULL argument, with its output in `cli`. */
static inline void launch_start(struct cli *cli, const char *const *arguments)
{
    pid_t parent = getpid();
    char path[512];
    int ends[2];

    assert_true(needs_find(arguments[0], path, sizeof path));
    assert_int_equal(pipe(ends), 0);
    assert_int_equal(fcntl(ends[0], F_SETFL, O_NONBLOCK), 0);
    assert_int_equal(fcntl(ends[0], F_SETFD, FD_CLOEXEC), 0);
    *cli = (struct cli){.fd = ends[0], .code = -1};
    cli->pid = fork();
    assert_true(cli->pid >= 0);
    if (cli->pid == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGTERM);
        if (getppid() == parent && dup2(ends[1], STDOUT_FILENO) >= 0 &&
            dup2(ends[1], STDERR_FILENO) >= 0)
            (void)execv(path, (char *const *)arguments);
        _exit(126);
    }
    (void)close(ends[1]);
}

/* The chief has each worker say its number, and ends when all have. */
static const char launch_plugin_text[] =
    "#include <muster.h>\n"
    "#include <stdio.h>\n"
    "#include <stdlib.h>\n"
    "static int say(mu_run *run, void *user)\n"
    "{\n"
    "    (void)run;\n"
    "    printf(\"%s says so\\n\", mu_node_task(user));\n"
    "    return 0;\n"
    "}\n"
    "static int ask(mu_coordinator *c, int worker, mu_error *error)\n"
    "{\n"
    "    mu_closure_options options;\n"
    "    mu_closure_options_init(&options);\n"
    "    options.worker = worker;\n"
    "    return mu_coordinator_schedule_with(c, \"say\", NULL, &options, -1, error, "
    "NULL);\n"
    "}\n"
    "static int chief(mu_node *node, void *user)\n"
    "{\n"
    "    const char *workers = mu_node_get_setting(node, \"workers\");\n"
    "    mu_coordinator *c;\n"
    "    mu_error error;\n"
    "    int rv = mu_coordinator_open(node, 20000, &error, &c);\n"
    "    (void)user;\n"
    "    for (int i = 0; rv == 0 && i < atoi(workers); i++)\n"
    "        rv = ask(c, i, &error);\n"
    "    if (rv == 0)\n"
    "        rv = mu_coordinator_join(c, 20000, &error);\n"
    "    printf(\"all have said so: %s\\n\", rv == 0 ? \"yes\" : error.message);\n"
    "    mu_coordinator_close(c);\n"
    "    return rv;\n"
    "}\n"
    "int mu_plugin_open(mu_node *node);\n"
    "int mu_plugin_open(mu_node *node)\n"
    "{\n"
    "    const char *devices = getenv(\"CUDA_VISIBLE_DEVICES\");\n"
    "    printf(\"%s sees %s.\\n\", mu_node_task(node), devices == NULL ? \"\" : "
    "devices);\n"
    "    (void)mu_node_register_function(node, \"say\", say, node, 0);\n"
    "    return mu_node_register_program(node, \"chief\", chief, NULL);\n"
    "}\n";

/* Compile the plugin as FOLDER/plugin.so. */
static inline void launch_compile(const char *folder, char *ret_plugin, size_t size)
{
    char command[1024];
    char source[128];

    (void)snprintf(source, sizeof source, "%s/plugin.c", folder);
    (void)snprintf(ret_plugin, size, "%s/plugin.so", folder);
    cli_write_file(source, launch_plugin_text);
    (void)snprintf(command, sizeof command,
                   "cc -std=c11 -shared -fPIC -I%s/include -o %s %s",
                   cli_variable("MUSTER_SOURCE"), ret_plugin, source);
    assert_int_equal(system(command), 0);
}

static inline void launch_remove(const char *folder)
{
    char command[128];

    (void)snprintf(command, sizeof command, "rm -rf %s", folder);
    assert_int_equal(system(command), 0);
}

#endif
