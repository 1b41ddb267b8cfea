/* Tasks in processes of their own: the test's program, which starts itself again with the
 * task as its arguments. They die with the test. */
#ifndef MUSTER_TESTS_REAL_TASKS_H
#define MUSTER_TESTS_REAL_TASKS_H

#include "tests/real/cli.h"
#include "tests/real/nodes.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>

/* ---- In the test ---- */

/* This program with arguments that end with NULL. It prints to `out`; -1: to where this
 * one does. */
static inline pid_t tasks_start_program(char **arguments, int out)
{
    pid_t parent = getpid();
    pid_t pid = fork();

    assert_true(pid >= 0);
    if (pid > 0)
        return pid;
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() == parent && (out < 0 || dup2(out, STDOUT_FILENO) >= 0))
        (void)execv("/proc/self/exe", arguments);
    _exit(126);
}

/* A task of the cluster that `json` describes. */
static inline pid_t tasks_start(const char *type, int index, const char *json)
{
    char number[16];
    char *arguments[] = {"test", (char *)type, number, (char *)json, NULL};

    (void)snprintf(number, sizeof number, "%d", index);
    return tasks_start_program(arguments, -1);
}

/* The exit code; 128 + n after a signal. */
static inline int tasks_end(pid_t *pid)
{
    uint64_t deadline_ms = cli_now_ms() + 2 * CLI_SOON_MS;
    int status = 0;

    while (waitpid(*pid, &status, WNOHANG) == 0) {
        if (cli_now_ms() >= deadline_ms)
            fail_msg("process %ld did not end", (long)*pid);
        cli_pause();
    }
    *pid = 0;
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

static inline void tasks_kill(pid_t *pid)
{
    if (*pid <= 0)
        return;
    (void)kill(*pid, SIGKILL);
    (void)tasks_end(pid);
}

/* ---- In the task ---- */

struct tasks_function {
    const char *name;
    mu_function_fn run;
    unsigned flags;
};

/* For main(), with the arguments of tasks_start(): plays the task until its job ends, a
 * worker with functions, whose `user` is the argument behind the cluster or NULL. Returns
 * the exit code. `options` say what is not as usual. */
static inline int tasks_play(char **argv, mu_node_options *options,
                             const struct tasks_function *functions, size_t count)
{
    mu_cluster *cluster = NULL;
    mu_node *node = NULL;
    mu_error error = {0};
    int rv = mu_cluster_parse(argv[3], strlen(argv[3]), "test", &error, &cluster);

    options->cluster = cluster;
    options->task_type = argv[1];
    options->task_index = atoi(argv[2]);
    options->log_level = MU_LOG_ERROR;
    if (rv == 0 && mu_cluster_address(cluster, argv[1], options->task_index) == NULL)
        options->bind_address = "tcp://127.0.0.1:0";
    if (rv == 0)
        rv = mu_node_open(options, &error, &node);
    if (strcmp(argv[1], "worker") != 0)
        count = 0;
    for (size_t i = 0; rv == 0 && i < count; i++)
        rv = mu_node_register_function(node, functions[i].name, functions[i].run, argv[4],
                                       functions[i].flags);
    if (rv == 0)
        rv = mu_node_main(node, &error);
    if (rv != 0)
        (void)fprintf(stderr, "%s %s: %s\n", argv[1], argv[2], error.message);
    (void)mu_node_close(node, SOON_MS, NULL);
    mu_cluster_free(cluster);
    return rv == 0 ? 0 : 1;
}

#endif
