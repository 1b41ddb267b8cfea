/* Runs of the distribute coordinator whose calls write down what they were told. */
#ifndef MU_TESTS_DISTRIBUTE_FIXTURE_H
#define MU_TESTS_DISTRIBUTE_FIXTURE_H

#include "tests/support/test.h"

#include <muster.h>

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <uv.h>

#define COUNT(array) (sizeof(array) / sizeof(array)[0])

enum { CALLS_MAX = 16, LINE_BYTES = 512, TEXT_BYTES = 8192, SOON_MS = 20000 };

#define C "\"chief\":[\"c:1\"]"
#define W2 "\"worker\":[\"w:1\",\"w:2\"]"
#define W3 "\"worker\":[\"w:1\",\"w:2\",\"w:3\"]"
#define P "\"ps\":[\"p:1\"]"
#define E "\"evaluator\":[\"e:1\"]"

/* What the calls of a run write down, one line each. */
struct notes {
    pthread_mutex_t lock;
    size_t count;
    char lines[CALLS_MAX][LINE_BYTES];
    char log[TEXT_BYTES];
    atomic_int inside;
    atomic_int rounds;
    bool wait;          /* at the barrier, */
    int64_t timeout_ms; /* so long */
    const char *fails;  /* this task does, before the barrier */
    const char *leaves; /* this one returns 0 and does not come */
    const char *hangs;  /* this one does not end before `release` */
    atomic_bool release;
    int seen_code; /* what a wait came to */
    mu_node_options node_options;
};

static inline int setup(void **state)
{
    struct notes *notes = calloc(1, sizeof *notes);

    assert_non_null(notes);
    (void)pthread_mutex_init(&notes->lock, NULL);
    notes->timeout_ms = SOON_MS;
    (void)unsetenv("TF_CONFIG");
    *state = notes;
    return 0;
}

static inline int teardown(void **state)
{
    struct notes *notes = *state;

    (void)unsetenv("TF_CONFIG");
    (void)pthread_mutex_destroy(&notes->lock);
    free(notes);
    return 0;
}

static inline void keep_log(void *user, int level, const char *task, const char *who,
                            const char *line)
{
    struct notes *notes = user;
    size_t used;

    (void)task;
    (void)pthread_mutex_lock(&notes->lock);
    used = strlen(notes->log);
    (void)snprintf(notes->log + used, sizeof notes->log - used, "%d %s: %s\n", level, who,
                   line);
    (void)pthread_mutex_unlock(&notes->lock);
}

/* Everything that a context says of itself. */
static inline void describe(mu_context *c, const char *what, char *out)
{
    const char *type = mu_context_task_type(c);
    const mu_session_config *config = mu_context_session_config(c);
    size_t used = (size_t)snprintf(
        out, LINE_BYTES,
        "%s %s:%d n=%zu chief=%d distributed=%d init=%d save=%d summary=%d barrier=%d "
        "master=\"%s\"",
        what, type == NULL ? "-" : type, mu_context_task_index(c),
        mu_context_num_workers(c), mu_context_is_chief(c), mu_context_distributed_mode(c),
        mu_context_should_init(c), mu_context_should_checkpoint(c),
        mu_context_should_save_summary(c), mu_context_has_barrier(c),
        mu_context_master_target(c));

    for (size_t i = 0; i < config->device_filters_count; i++)
        used += (size_t)snprintf(out + used, LINE_BYTES - used, "%s%s",
                                 i == 0 ? " filters=" : ",", config->device_filters[i]);
}

static inline void note(struct notes *notes, mu_context *c, const char *what)
{
    (void)pthread_mutex_lock(&notes->lock);
    assert_true(notes->count < CALLS_MAX);
    describe(c, what, notes->lines[notes->count++]);
    (void)pthread_mutex_unlock(&notes->lock);
}

static inline bool is_task(const char *wanted, const mu_context *c)
{
    return wanted != NULL && strcmp(mu_context_task(c), wanted) == 0;
}

static inline int act(struct notes *notes, mu_context *c)
{
    mu_error error = {0};
    int rv;

    if (is_task(notes->fails, c))
        return mu_context_fail(c, -MU_EDATALOSS, "%s lost it", mu_context_task(c));
    if (is_task(notes->leaves, c))
        return 0;
    while (is_task(notes->hangs, c) && !atomic_load(&notes->release))
        uv_sleep(1);
    if (!notes->wait || !mu_context_has_barrier(c))
        return 0;
    rv = mu_context_wait_for_others(c, notes->timeout_ms, &error);
    return rv == 0 ? 0 : mu_context_fail_with(c, &error);
}

static inline int work(mu_context *c, void *user)
{
    struct notes *notes = user;
    int rv;

    atomic_fetch_add(&notes->inside, 1);
    assert_ptr_equal(mu_context_current(), c);
    note(notes, c, "work");
    mu_context_return(c, mu_value_int(mu_context_task_index(c) + 100));
    rv = act(notes, c);
    atomic_fetch_sub(&notes->inside, 1);
    return rv;
}

/* Let who was left behind come to its end. */
static inline void release(struct notes *notes)
{
    atomic_store(&notes->release, true);
    while (atomic_load(&notes->inside) != 0)
        uv_sleep(1);
}

static inline void options_of(struct notes *notes, mu_distribute_options *o)
{
    mu_distribute_options_init(o);
    mu_node_options_init(&notes->node_options);
    o->node_options = &notes->node_options;
    o->worker = work;
    o->worker_user = notes;
    o->eval_user = notes;
    notes->node_options.log = keep_log;
    notes->node_options.log_user = notes;
}

static inline int by_text(const void *a, const void *b)
{
    return strcmp(a, b);
}

/* The lines of all calls, sorted. */
static inline void check_lines(struct notes *notes, const char *const *expected,
                               size_t count)
{
    qsort(notes->lines, notes->count, LINE_BYTES, by_text);
    for (size_t i = 0; i < count && i < notes->count; i++)
        assert_string_equal(notes->lines[i], expected[i]);
    assert_int_equal(notes->count, count);
}

static inline mu_cluster *parse(const char *json)
{
    mu_cluster *cluster = NULL;
    mu_error error;

    if (mu_cluster_parse(json, strlen(json), "test", &error, &cluster) != 0)
        fail_msg("%s: %s", json, error.message);
    return cluster;
}

static inline int run(const mu_distribute_options *o, mu_value **ret_results)
{
    mu_error error = {0};
    int rv = mu_distribute_run(o, &error, ret_results);

    if (rv != 0)
        fail_msg("%s", error.message);
    assert_null(mu_context_current());
    return rv;
}

#endif
