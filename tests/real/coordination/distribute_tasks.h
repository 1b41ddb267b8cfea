/* Tasks of a distributed run, each a thread with a node of its own. */
#ifndef MU_TESTS_DISTRIBUTE_TASKS_H
#define MU_TESTS_DISTRIBUTE_TASKS_H

#include "tests/real/nodes.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <uv.h>

enum { TASKS_MAX = 8, ROUNDS = 5, LARGE_BYTES = 2 << 20 };

struct world;

/* One process of the job. */
struct process {
    struct world *world;
    const char *type;
    int index;
    mu_distribute_options options;
    mu_node_options node_options;
    uv_thread_t thread;
    int rv;
    mu_error error;
    mu_value *results;
};

struct world {
    struct nodes_log log;
    char json[1024];
    mu_cluster *cluster;
    struct process processes[TASKS_MAX];
    int count;
    atomic_int calls;
    atomic_int rounds;
    atomic_int evaluated;
    atomic_int opened;
    const char *fails;   /* this task does, before the barrier */
    const char *returns; /* this task ends well before the barrier */
    bool large;          /* results are */
    int64_t timeout_ms;
    const char *lasts_until; /* its work: words in the log; NULL: it just ends */
};

/* ---- the cluster ---- */

static inline void write_cluster(struct world *world, int chiefs, int workers,
                                 int servers, int evaluators)
{
    const struct {
        const char *type;
        int count;
    } jobs[] = {
        {"chief", chiefs},
        {"worker", workers},
        {"ps", servers},
        {"evaluator", evaluators},
    };
    size_t at = 0;

    for (size_t i = 0; i < 4; i++) {
        if (jobs[i].count == 0)
            continue;
        at += (size_t)snprintf(world->json + at, sizeof world->json - at, "%s\"%s\":[",
                               at == 0 ? "{" : ",", jobs[i].type);
        for (int j = 0; j < jobs[i].count; j++)
            at += (size_t)snprintf(world->json + at, sizeof world->json - at,
                                   "%s\"127.0.0.1:%d\"", j == 0 ? "" : ",", ports_free());
        at += (size_t)snprintf(world->json + at, sizeof world->json - at, "]");
    }
    (void)snprintf(world->json + at, sizeof world->json - at, "}");
}

static inline int setup(void **state)
{
    struct world *world = calloc(1, sizeof *world);

    assert_non_null(world);
    (void)unsetenv("TF_CONFIG");
    (void)pthread_mutex_init(&world->log.lock, NULL);
    world->timeout_ms = SOON_MS;
    *state = world;
    return 0;
}

static inline void make_cluster(struct world *world, int chiefs, int workers, int servers,
                                int evaluators)
{
    mu_error error;

    write_cluster(world, chiefs, workers, servers, evaluators);
    if (mu_cluster_parse(world->json, strlen(world->json), "test", &error,
                         &world->cluster) != 0)
        fail_msg("%s", error.message);
}

static inline int teardown(void **state)
{
    struct world *world = *state;

    for (int i = 0; i < world->count; i++)
        mu_value_free(world->processes[i].results);
    mu_cluster_free(world->cluster);
    (void)pthread_mutex_destroy(&world->log.lock);
    free(world);
    return 0;
}

/* ---- the program ---- */

/* A job that ends before a server has looked again is over for it. */
static inline void wait_until_told(struct world *world)
{
    bool told = world->lasts_until == NULL;

    for (int i = 0; i < SOON_MS && !told; i++) {
        (void)pthread_mutex_lock(&world->log.lock);
        told = strstr(world->log.text, world->lasts_until) != NULL;
        (void)pthread_mutex_unlock(&world->log.lock);
        nodes_pause();
    }
}

static inline int work(mu_context *c, void *user)
{
    struct world *world = user;
    int workers = (int)mu_context_num_workers(c);
    mu_error error = {0};
    int rv = 0;

    atomic_fetch_add(&world->calls, 1);
    if (world->fails != NULL && strcmp(world->fails, mu_context_task(c)) == 0)
        return mu_context_fail(c, -MU_EDATALOSS, "%s lost it", mu_context_task(c));
    if (world->returns != NULL && strcmp(world->returns, mu_context_task(c)) == 0)
        return 0;
    for (int round = 0; mu_context_has_barrier(c) && rv == 0 && round < ROUNDS; round++) {
        atomic_fetch_add(&world->rounds, 1);
        rv = mu_context_wait_for_others(c, world->timeout_ms, &error);
        if (rv == 0 && atomic_load(&world->rounds) < (round + 1) * workers)
            rv = mu_error_set(&error, -MU_EINTERNAL, "round %d began too early", round);
    }
    if (rv != 0)
        return mu_context_fail_with(c, &error);
    wait_until_told(world);
    mu_context_return(c, world->large
                             ? mu_value_tensor(MU_U8, 1, (uint64_t[]){LARGE_BYTES}, NULL)
                             : mu_value_int(mu_context_task_index(c) + 100));
    return 0;
}

static inline int eval(mu_context *c, void *user)
{
    struct world *world = user;

    while (!mu_context_cancelled(c))
        uv_sleep(1);
    atomic_fetch_add(&world->evaluated, 1);
    mu_context_return(c, mu_value_string("good"));
    return 0;
}

/* ---- processes ---- */

static inline struct process *add(struct world *world, int mode, const char *type,
                                  int index)
{
    struct process *p = &world->processes[world->count++];

    p->world = world;
    p->type = type;
    p->index = index;
    mu_distribute_options_init(&p->options);
    p->options.mode = mode;
    p->options.worker = work;
    p->options.eval = eval;
    p->options.worker_user = p->options.eval_user = world;
    p->options.strategy = p->options.eval_strategy = mu_strategy_parameter_server();
    p->options.cluster = world->cluster;
    p->options.task_type = type;
    p->options.task_index = index;
    p->options.end_timeout_ms = SOON_MS;
    mu_node_options_init(&p->node_options);
    p->options.node_options = &p->node_options;
    p->node_options.log = nodes_note;
    p->node_options.log_user = &world->log;
    p->node_options.heartbeat_ms = 200;
    p->node_options.silence_ms = 4000;
    return p;
}

/* All tasks of the cluster. */
static inline void add_all(struct world *world, int mode, const mu_strategy *strategy)
{
    const char *type;
    const char *address;
    int index;

    for (size_t i = 0;
         mu_cluster_task_at(world->cluster, i, &type, &index, &address) == 0; i++)
        add(world, mode, type, index)->options.strategy = strategy;
}

static inline void run_process(void *arg)
{
    struct process *p = arg;

    p->rv = mu_distribute_run(&p->options, &p->error, &p->results);
}

static inline void run_all(struct world *world)
{
    for (int i = 0; i < world->count; i++)
        assert_int_equal(uv_thread_create(&world->processes[i].thread, run_process,
                                          &world->processes[i]),
                         0);
    for (int i = 0; i < world->count; i++)
        (void)uv_thread_join(&world->processes[i].thread);
}

static inline struct process *find(struct world *world, const char *type, int index)
{
    for (int i = 0; i < world->count; i++)
        if (strcmp(world->processes[i].type, type) == 0 &&
            world->processes[i].index == index)
            return &world->processes[i];
    fail_msg("there is no %s:%d", type, index);
    return NULL;
}

static inline void check_fine(struct world *world)
{
    for (int i = 0; i < world->count; i++) {
        const struct process *p = &world->processes[i];

        if (p->rv != 0)
            fail_msg("%s:%d: %d %s\n%s", p->type, p->index, p->rv, p->error.message,
                     world->log.text);
    }
}

static inline int64_t number_of(const struct process *p, const char *task,
                                const char *key)
{
    int64_t number = -999;

    if (mu_value_get_int(mu_value_find(mu_value_find(p->results, task), key), &number) !=
        0)
        fail_msg("%s:%d has no %s of %s", p->type, p->index, key, task);
    return number;
}

static inline const char *text_of(const struct process *p, const char *task,
                                  const char *key)
{
    const char *text = "";
    size_t size;

    (void)mu_value_get_string(mu_value_find(mu_value_find(p->results, task), key), &text,
                              &size);
    return text;
}

#endif
