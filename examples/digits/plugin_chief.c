/* The chief's program: schedules the steps, shows their progress, and prints at the end
 * what became of all of them. */
#include "plugin_digits.h"

#include "../progress.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    OUTSTANDING_MAX = 128, /* steps scheduled without a result yet */
    OPEN_MS = 60000,       /* timeout of opening the variables */
    STALL_MS = 60000,      /* training is given up after this time without any
                              result */
    JOIN_MS = 60000,
    SCORE_MS = 10000,   /* timeout for the evaluator's score of the last
                           parameters */
    REST_MS = 10,       /* polling interval of outstanding steps */
    SHOW_MS = 200,      /* between two lines of progress on a terminal */
    SHOW_LOG_MS = 2000, /* and in a log */
    BAR_COLUMNS = 10
};

struct slot {
    mu_remote_value *value; /* NULL: free */
    uint64_t step;
};

struct training {
    struct digits *digits;
    mu_node *node;
    mu_coordinator *coordinator;
    struct slot slots[OUTSTANDING_MAX];
    uint64_t scheduled;   /* steps so far */
    uint64_t outstanding; /* slots in use */
    uint64_t finished;    /* results that are of the expected step */
    uint64_t failed;
    uint64_t cancelled;
    uint64_t *by_worker; /* results from each worker */
    size_t workers_count;
    uint64_t began_ms;
    uint64_t result_ms; /* when the last result came */
    uint64_t shown_ms;
    uint64_t shown_finished;
    double rate;   /* results in a second, smoothed */
    bool terminal; /* progress lines are overwritten */
};

/* ---- Progress ---- */

static void print_progress(struct training *t, const mu_coordinator_stats *counts)
{
    const uint64_t steps = t->digits->settings.steps;
    const int filled = (int)(t->finished * BAR_COLUMNS / steps);
    char accuracy[32] = "";
    double number;

    if (mu_node_get_metric(t->node, "accuracy", &number, NULL) == 0)
        (void)snprintf(accuracy, sizeof accuracy, ", accuracy %.3f", number);
    (void)printf("[%.*s%.*s] %3d %%  %s/%s steps, %.0f/s, %s retried%s, %.0f s%c", filled,
                 "##########", BAR_COLUMNS - filled, "----------",
                 (int)(t->finished * 100 / steps), group(t->finished).text,
                 group(steps).text, t->rate, group(counts->retried).text, accuracy,
                 (double)(now_ms() - t->began_ms) / 1000, t->terminal ? '\r' : '\n');
    (void)fflush(stdout);
}

static void show_progress(struct training *t, bool last)
{
    const uint64_t now = now_ms();
    const uint64_t passed_ms = now - t->shown_ms;
    mu_coordinator_stats counts;
    double rate;

    if (!last && passed_ms < (t->terminal ? SHOW_MS : SHOW_LOG_MS))
        return;
    rate = (double)(t->finished - t->shown_finished) * 1000 /
           (double)(passed_ms == 0 ? 1 : passed_ms);
    if (!last)
        t->rate = t->shown_finished == 0 ? rate : 0.7 * t->rate + 0.3 * rate;
    t->shown_ms = now;
    t->shown_finished = t->finished;
    mu_coordinator_get_stats(t->coordinator, &counts);
    print_progress(t, &counts);
}

/* ---- Results ---- */

static void count_worker(struct training *t, const mu_value *result)
{
    static const char prefix[] = "/job:worker/task:";
    const char *task;
    size_t size;
    unsigned long index;

    if (mu_value_get_string(mu_value_find(result, "task"), &task, &size) != 0 ||
        strncmp(task, prefix, sizeof prefix - 1) != 0)
        return;
    index = strtoul(task + sizeof prefix - 1, NULL, 10);
    if (index < t->workers_count)
        t->by_worker[index]++;
}

/* A result counts only when it has the number of the step that the slot waits for. */
static void take_result(struct training *t, const struct slot *slot,
                        const mu_value *result)
{
    int64_t step;

    if (mu_value_get_int(mu_value_find(result, "step"), &step) != 0 || step < 0 ||
        (uint64_t)step != slot->step)
        return;
    t->finished++;
    count_worker(t, result);
}

static void empty_slot(struct training *t, struct slot *slot)
{
    mu_value *result = NULL;
    int rv = mu_remote_value_fetch(slot->value, 0, NULL, &result);

    if (rv == 0)
        take_result(t, slot, result);
    else if (rv == -MU_ECANCELLED)
        t->cancelled++;
    else
        t->failed++;
    mu_value_free(result);
    mu_remote_value_free(slot->value);
    slot->value = NULL;
    t->outstanding--;
    t->result_ms = now_ms();
}

static void take_results(struct training *t)
{
    for (size_t i = 0; i < OUTSTANDING_MAX; i++) {
        struct slot *slot = &t->slots[i];

        if (slot->value != NULL &&
            mu_remote_value_state(slot->value) != MU_REMOTE_NOT_READY)
            empty_slot(t, slot);
    }
}

/* ---- Steps ---- */

static mu_value *step_args(const struct settings *settings, uint64_t step)
{
    mu_value *args = mu_value_map();

    if (mu_value_set(args, "step", mu_value_int((int64_t)step)) == 0 &&
        mu_value_set(args, "batch", mu_value_int((int64_t)settings->batch)) == 0 &&
        mu_value_set(args, "seed", mu_value_int((int64_t)settings->seed)) == 0 &&
        mu_value_set(args, "slow_ms", mu_value_int((int64_t)settings->slow_ms)) == 0 &&
        mu_value_set(args, "rate", mu_value_float(settings->rate)) == 0 &&
        mu_value_set(args, "momentum", mu_value_float(settings->momentum)) == 0)
        return args;
    mu_value_free(args);
    return NULL;
}

static int schedule_step(struct training *t, struct slot *slot, mu_error *ret_error)
{
    mu_value *args = step_args(&t->digits->settings, t->scheduled);
    int rv;

    if (args == NULL)
        return mu_error_set(ret_error, -MU_ENOMEM, "no memory for a step's arguments");
    rv = mu_coordinator_schedule(t->coordinator, "digits_step", args, STALL_MS, ret_error,
                                 &slot->value);
    mu_value_free(args);
    if (rv != 0)
        return rv;
    slot->step = t->scheduled++;
    t->outstanding++;
    return 0;
}

static int schedule_steps(struct training *t, mu_error *ret_error)
{
    int rv = 0;

    for (size_t i = 0; rv == 0 && i < OUTSTANDING_MAX; i++)
        if (t->slots[i].value == NULL && t->scheduled < t->digits->settings.steps)
            rv = schedule_step(t, &t->slots[i], ret_error);
    return rv;
}

/* Run until every step has its result, or one has failed. */
static int run_steps(struct training *t, mu_error *ret_error)
{
    for (;;) {
        int rv;

        take_results(t);
        if (t->failed > 0)
            return 0;
        rv = schedule_steps(t, ret_error);
        if (rv != 0)
            return rv;
        if (t->outstanding == 0)
            return 0;
        if (now_ms() - t->result_ms >= STALL_MS)
            return mu_error_set(ret_error, -MU_EDEADLINE,
                                "no step has ended for %d s, "
                                "%" PRIu64 " are outstanding",
                                STALL_MS / 1000, t->outstanding);
        show_progress(t, false);
        nap(REST_MS);
    }
}

/* The first error of a step is returned by schedule or by join; then nothing is in
 * flight, and queued steps are cancelled. */
static int train(struct training *t, mu_error *ret_error)
{
    int rv = run_steps(t, ret_error);

    if (rv == 0)
        rv = mu_coordinator_join(t->coordinator, JOIN_MS, ret_error);
    take_results(t);
    show_progress(t, true);
    return rv;
}

/* ---- The end ---- */

/* Wait for the evaluator's score of the present parameters. */
static int ask_evaluator(struct training *t, mu_error *ret_error,
                         struct digits_score *ret_score)
{
    const uint64_t until_ms = now_ms() + SCORE_MS;
    uint64_t loss_version;
    uint64_t version;
    uint64_t wanted;
    double accuracy;
    double loss;

    while (now_ms() < until_ms) {
        int rv = parameters_version(t->digits, t->node, t->digits->settings.seed,
                                    ret_error, &wanted);

        if (rv != 0)
            return rv;
        if (mu_node_get_metric(t->node, "accuracy", &accuracy, &version) == 0 &&
            mu_node_get_metric(t->node, "loss", &loss, &loss_version) == 0 &&
            version == wanted && loss_version == wanted) {
            *ret_score = (struct digits_score){.loss = loss, .accuracy = accuracy};
            return 0;
        }
        nap(REST_MS);
    }
    return mu_error_set(ret_error, -MU_EDEADLINE,
                        "the evaluator has not reported on the "
                        "last parameters within %d s",
                        SCORE_MS / 1000);
}

/* In a cluster without an evaluator the chief computes the score itself. */
static int score(struct training *t, mu_error *ret_error, struct digits_score *ret_score)
{
    uint64_t version;

    if (mu_node_task_count(t->node, "evaluator") > 0)
        return ask_evaluator(t, ret_error, ret_score);
    return parameters_score(t->digits, t->node, ret_error, ret_score, &version);
}

static void print_workers(const struct training *t)
{
    (void)printf("digits: steps by worker:");
    for (size_t i = 0; i < t->workers_count; i++)
        (void)printf("%s worker/%zu %s", i == 0 ? "" : ",", i,
                     group(t->by_worker[i]).text);
    (void)printf("\n");
}

/* Print the counts. Returns how many steps are lost: without result, not failed, not
 * cancelled. */
static uint64_t print_closures(const struct training *t)
{
    const uint64_t lost = t->scheduled - t->finished - t->failed - t->cancelled;
    mu_coordinator_stats counts;

    mu_coordinator_get_stats(t->coordinator, &counts);
    (void)printf("digits: closures: %s scheduled, %s run, %s retried, %s failed, "
                 "%s cancelled, %s lost\n",
                 group(t->scheduled).text, group(t->finished).text,
                 group(counts.retried).text, group(t->failed).text,
                 group(t->cancelled).text, group(lost).text);
    return lost;
}

static int judge(const struct training *t, const struct digits_score *score,
                 uint64_t lost, mu_error *ret_error)
{
    const double target = t->digits->settings.target;
    const bool good = score->accuracy >= target;

    (void)printf("digits: accuracy %.3f on %d held-out images (wanted %.3f: %s), "
                 "loss %.3f\n",
                 score->accuracy, DIGITS_HELD_ROWS, target, good ? "reached" : "missed",
                 score->loss);
    if (!good)
        return mu_error_set(ret_error, -MU_EPRECONDITION,
                            "the target was missed: accuracy %.3f, wanted %.3f",
                            score->accuracy, target);
    return lost == 0 ? 0
                     : mu_error_set(ret_error, -MU_EPRECONDITION,
                                    "%" PRIu64 " steps were lost", lost);
}

static int finish(struct training *t, mu_error *ret_error)
{
    struct digits_score last;
    uint64_t lost;
    int rv = score(t, ret_error, &last);

    (void)printf("digits: %s steps in %.1f s\n", group(t->finished).text,
                 (double)(t->result_ms - t->began_ms) / 1000);
    print_workers(t);
    lost = print_closures(t);
    return rv != 0 ? rv : judge(t, &last, lost, ret_error);
}

static int train_and_finish(struct training *t, mu_error *ret_error)
{
    int rv = parameters_open(t->digits, t->node, t->digits->settings.seed, ret_error);

    if (rv != 0)
        return rv;
    t->began_ms = now_ms();
    t->result_ms = t->began_ms;
    t->shown_ms = t->began_ms;
    rv = train(t, ret_error);
    if (rv == 0)
        return finish(t, ret_error);
    (void)print_closures(t);
    return rv;
}

/* `muster run` keeps a line that ends with a carriage return at the bottom. */
static bool is_terminal(void)
{
    const char *progress = getenv("MUSTER_PROGRESS");

    return (progress != NULL && strcmp(progress, "1") == 0) || isatty(STDOUT_FILENO);
}

int chief_program(mu_node *node, void *user)
{
    struct training t = {
        .digits = user,
        .node = node,
        .workers_count = mu_node_task_count(node, "worker"),
        .terminal = is_terminal(),
    };
    mu_error error = {0};
    int rv;

    t.by_worker = calloc(t.workers_count + 1, sizeof *t.by_worker);
    if (t.by_worker == NULL)
        return -MU_ENOMEM;
    rv = mu_coordinator_open(node, OPEN_MS, &error, &t.coordinator);
    if (rv == 0)
        rv = train_and_finish(&t, &error);
    if (rv != 0 && error.message[0] != '\0')
        (void)mu_node_fail_with(node, &error);
    for (size_t i = 0; i < OUTSTANDING_MAX; i++)
        mu_remote_value_free(t.slots[i].value);
    mu_coordinator_close(t.coordinator);
    free(t.by_worker);
    (void)fflush(stdout);
    return rv;
}
