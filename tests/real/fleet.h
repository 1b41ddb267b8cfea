/* A chief with a journal and workers that have actors, each in a process that is started
 * anew whenever it has ended; and a worker of the test's own, which calls them. */
#ifndef MUSTER_TESTS_REAL_FLEET_H
#define MUSTER_TESTS_REAL_FLEET_H

#include "tests/real/cli.h"
#include "tests/real/nodes.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/types.h>
#include <sys/wait.h>

enum { FLEET_WORKERS = 2, FLEET_TASKS };

struct fleet {
    struct nodes nodes;
    const mu_actor_type *const *types; /* of the workers; ends with NULL */
    mu_node *node;                     /* that calls */
    char folder[64];
    char store[96];
    pid_t nurses[FLEET_TASKS];
    volatile pid_t *pids; /* of the tasks: the workers, then the chief */
};

static inline void fleet_run_task(struct fleet *f, int task)
{
    bool is_chief = task == FLEET_WORKERS;
    mu_node_options options;
    mu_node *node;

    nodes_options(&f->nodes, is_chief ? "chief" : "worker", is_chief ? 0 : task,
                  &options);
    options.store = f->store;
    node = nodes_open_with(&f->nodes, &options);
    for (size_t i = 0; !is_chief && f->types[i] != NULL; i++)
        assert_int_equal(mu_node_register_actor(node, f->types[i]), 0);
    if (!is_chief)
        assert_int_equal(mu_node_serve(node), 0);
    for (;;)
        (void)pause();
}

/* A process without a node, which starts a task anew when it has ended. */
static inline void fleet_nurse_task(struct fleet *f, int task)
{
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (;;) {
        pid_t pid = fork();

        if (pid == 0) {
            (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
            f->pids[task] = getpid();
            fleet_run_task(f, task);
        }
        (void)waitpid(pid, NULL, 0);
    }
}

/* `own`: what the test's own node has, or NULL. */
static inline void fleet_begin(struct fleet *f, const mu_actor_type *const *types,
                               const mu_actor_type *own)
{
    void *shared = mmap(NULL, FLEET_TASKS * sizeof *f->pids, PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    assert_true(shared != MAP_FAILED);
    f->pids = shared;
    f->types = types;
    nodes_init(&f->nodes, FLEET_WORKERS + 1, 0);
    cli_folder(f->folder, sizeof f->folder);
    (void)snprintf(f->store, sizeof f->store, "journal:%s/store", f->folder);
    for (int i = 0; i < FLEET_TASKS; i++) {
        f->nurses[i] = fork();
        assert_true(f->nurses[i] >= 0);
        if (f->nurses[i] == 0)
            fleet_nurse_task(f, i);
    }
    f->node = nodes_open(&f->nodes, "worker", FLEET_WORKERS);
    if (own != NULL)
        assert_int_equal(mu_node_register_actor(f->node, own), 0);
    assert_int_equal(mu_node_serve(f->node), 0);
}

static inline void fleet_end(struct fleet *f)
{
    nodes_done(&f->nodes);
    for (int i = 0; i < FLEET_TASKS; i++) {
        (void)kill(f->nurses[i], SIGKILL);
        assert_int_equal(waitpid(f->nurses[i], NULL, 0), f->nurses[i]);
    }
    for (int i = 0; i < FLEET_TASKS; i++)
        if (f->pids[i] > 0)
            (void)kill(f->pids[i], SIGKILL);
    cli_remove_store(f->store + strlen("journal:"));
    (void)rmdir(f->folder);
    (void)munmap((void *)f->pids, FLEET_TASKS * sizeof *f->pids);
}

#endif
