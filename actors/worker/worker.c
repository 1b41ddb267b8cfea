#include "actors/worker/internal.h"

#include "actors/keep.h"
#include "actors/packing.h"
#include "actors/worker/recalled.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>

enum {
    SPARE_MAX = 1024,
    LOOK_MS = 10 /* a run that takes at least this is reported in BEGUN */
};

/* ---- Chiefs ---- */

static void offer_worker(struct mu__ctx *ctx, const struct worker *w, uint32_t chief)
{
    const struct mu__register body = {.threads = w->config.threads};

    if (mu__send_body(ctx, (mu__pid){chief, MU__SUPERVISOR}, MU__REGISTER, &body,
                      sizeof body) != 0)
        mu__log(ctx, MU__LOG_WARN, "could not offer this worker to the chief");
}

/* The chief's option worker_types decides which task types run closures. */
static void on_register_refused(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    const struct worker *w = state;
    const struct mu__register_refused *body = mu__body(msg);

    mu__log(ctx, MU__LOG_WARN,
            "the chief gives %s no closures: its option worker_types "
            "is \"%.*s\", without this task's type (it is to be the same on all nodes)",
            w->config.task, (int)body->worker_types.size,
            (const char *)body->worker_types.data);
}

static void begin_serving(struct mu__ctx *ctx, struct worker *w)
{
    if (w->serving || !w->config.serves)
        return;
    w->serving = true;
    for (size_t i = 0; i < MU__WORKER_CHIEFS_MAX; i++)
        if (w->chiefs[i] != 0)
            offer_worker(ctx, w, w->chiefs[i]);
}

static void on_worker_call(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    struct worker *w = state;
    struct mu__call_msg *body = mu__body(msg);
    struct mu__call *call = body->call;

    if (call->operation == MU__WORKER_SERVE) {
        begin_serving(ctx, w);
        mu__call_complete(call, 0);
        return;
    }
    mu__call_complete(call, mu__functions_add(&w->functions, &w->config,
                                              w->serving && !w->config.serves_at_once,
                                              (struct mu__function_call *)call));
}

static void replace_worker_chief(struct worker *w, uint32_t was, uint32_t is)
{
    for (size_t i = 0; i < MU__WORKER_CHIEFS_MAX; i++)
        if (w->chiefs[i] == was) {
            w->chiefs[i] = is;
            return;
        }
}

static void on_worker_node_up(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    struct worker *w = state;
    struct mu__node_up *body = mu__body(msg);

    if (!mu__view_is(body->type, "chief") || body->index != 0)
        return;
    replace_worker_chief(w, 0, body->node);
    if (w->serving)
        offer_worker(ctx, w, body->node);
}

/* ---- The lists and the memory of runs ---- */

void mu__worker_list_run(struct mu__list *list, struct mu_run *run)
{
    run->list = list;
    mu__list_append(list, &run->listed);
}

void mu__worker_unlist_run(struct mu_run *run)
{
    mu__list_remove(run->list, &run->listed);
    run->list = NULL;
}

static struct mu_run *worker_run_new(struct worker *w)
{
    struct mu_run *run = mu__run_first(&w->spare);

    if (run != NULL) {
        (void)mu__list_pop(&w->spare);
        w->spare_count--;
    } else if (!mu__grow_array((void **)&run, 1, sizeof *run)) {
        return NULL;
    }
    mu__clear(run, sizeof *run);
    return run;
}

static void worker_run_free(struct mu__ctx *ctx, struct worker *w, struct mu_run *run)
{
    mu__worker_forget_inputs(w, run);
    w->runs_bytes -= run->bytes;
    mu__run_clear(run);
    mu__msg_free(ctx, run->msg);
    if (w->spare_count == SPARE_MAX) {
        mu__free_array(run);
        return;
    }
    mu__list_prepend(&w->spare, &run->listed);
    w->spare_count++;
}

static void cancel_run(struct mu_run *run)
{
    atomic_store_explicit(&run->cancelled, true, memory_order_relaxed);
}

/* ---- Runs ---- */

/* End a run that is in no list any more. Runs that needed its result may be ready
 * then. */
static void finish_worker_run(struct mu__ctx *ctx, struct worker *w, struct mu_run *run)
{
    if (mu__run_makes(run)) {
        if (run->code == 0 && mu_run_cancelled(run))
            run->code = mu_run_fail(run, -MU_ECANCELLED, "cancelled: nothing was kept");
        mu__worker_settle(w, run);
    }
    mu__worker_send_outcome(ctx, run);
    worker_run_free(ctx, w, run);
}

/* The variables actor uses the run's writes until EFFECTS_SENT. */
static int send_effects(struct mu__ctx *ctx, struct mu_run *run)
{
    const struct mu__run *request = mu__run_request(run);
    struct mu__msg *msg = mu__msg_new(ctx, MU__EFFECTS_SEND);

    run->effects.origin = request->origin;
    run->effects.effect = (request->flags & MU__CLOSURE_ONCE) != 0 ? request->effect : 0;
    run->effects.effects_done = request->effects_done;
    if (msg != NULL)
        ((struct mu__effects_send *)mu__body(msg))->run = run;
    return mu__send(ctx, (mu__pid){MU__NODE_SELF, MU__VARIABLES}, msg);
}

/* The function has returned. A cancelled run writes nothing. */
static void end_or_send(struct mu__ctx *ctx, struct worker *w, struct mu_run *run)
{
    int rv;

    if (run->code != 0 || run->effects.first == NULL) {
        finish_worker_run(ctx, w, run);
        return;
    }
    if (mu_run_cancelled(run)) {
        run->code = mu_run_fail(run, -MU_ECANCELLED, "cancelled: nothing was written");
        finish_worker_run(ctx, w, run);
        return;
    }
    rv = send_effects(ctx, run);
    if (rv == 0) {
        mu__worker_list_run(&w->sending, run);
        return;
    }
    run->code = mu_run_fail(run, rv, "what the function wrote cannot be sent: %s",
                            mu_strerror(rv));
    finish_worker_run(ctx, w, run);
}

/* Check soon which runs take long; one timer at a time. */
static void watch_begun(struct mu__ctx *ctx, struct worker *w)
{
    if (w->look_timer == 0)
        w->look_timer = mu__timer_set(ctx, LOOK_MS, 0);
}

static void on_worker_timer(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    struct worker *w = state;

    (void)msg;
    w->look_timer = 0;
    if (mu__recall_report_begun(ctx, &w->running, w->config.threads, LOOK_MS))
        watch_begun(ctx, w);
}

/* Start a run that is in no list: here if it is inline, else on the executor. */
static void start_run(struct mu__ctx *ctx, struct worker *w, struct mu_run *run)
{
    if ((run->registered->flags & MU_FUNCTION_INLINE) != 0) {
        mu__run_execute(&run->work);
        end_or_send(ctx, w, run);
        return;
    }
    mu__worker_list_run(&w->running, run);
    run->work.begin = mu__run_begin;
    run->work.run = mu__run_execute;
    mu__submit(ctx, &run->work);
    watch_begun(ctx, w);
}

void mu__worker_start_ready(struct mu__ctx *ctx, struct worker *w)
{
    struct mu_run *run;

    while ((run = mu__run_first(&w->ready)) != NULL) {
        mu__worker_unlist_run(run);
        if (run->code != 0)
            finish_worker_run(ctx, w, run);
        else
            start_run(ctx, w, run);
    }
}

static void refuse_unknown(struct mu__ctx *ctx, struct worker *w, struct mu__msg *msg)
{
    struct mu__run *body = mu__body(msg);
    char text[256];

    (void)snprintf(text, sizeof text,
                   "no function \"%.*s\" on %s, which has %" PRIu32
                   " (is its plugin loaded there?)",
                   (int)body->function.size, (const char *)body->function.data,
                   w->config.task, (uint32_t)w->functions.by_name.table.count);
    (void)mu__worker_send_refusal(ctx, msg->from, body, -MU_ENOTFOUND, text);
    mu__worker_fail_unknown(ctx, w, msg->from, body, text);
}

/* The supervisor's window keeps far below that. */
static bool refuse_too_many(struct mu__ctx *ctx, struct worker *w, mu__pid requester,
                            const struct mu__run *request, uint64_t bytes)
{
    char text[256];

    if (w->config.retained_bytes_max == 0 || w->runs_bytes == 0 ||
        w->runs_bytes + bytes <= w->config.retained_bytes_max)
        return false;
    (void)snprintf(text, sizeof text,
                   "%s has runs of %" PRIu64 " bytes, and may have %" PRIu64
                   " (half of its machine's memory): there is no room for %" PRIu64
                   " more",
                   w->config.task, w->runs_bytes, w->config.retained_bytes_max, bytes);
    (void)mu__worker_send_refusal(ctx, requester, request, -MU_EEXHAUSTED, text);
    return true;
}

static void on_worker_run(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    struct worker *w = state;
    struct mu__run *body = mu__body(msg);
    struct mu__registered *registered = mu__functions_find(&w->functions, body->function);
    uint64_t bytes = sizeof(struct mu_run) + sizeof(struct mu__msg) + sizeof *body +
                     body->args.head_size + body->args.tail_size;
    struct mu_run *run;

    if (w->leaving)
        return;
    if (registered == NULL) {
        refuse_unknown(ctx, w, msg);
        return;
    }
    if (refuse_too_many(ctx, w, msg->from, body, bytes))
        return;
    run = worker_run_new(w);
    if (run == NULL) {
        (void)mu__worker_send_refusal(ctx, msg->from, body, -MU_ENOMEM, NULL);
        return;
    }
    run->registered = registered;
    run->node = w->config.node;
    run->requester = msg->from;
    run->closure = body->closure;
    run->attempt = body->attempt;
    run->bytes = bytes;
    w->runs_bytes += bytes;
    run->msg = mu__claim(ctx);
    if (body->inputs.size == 0 && !mu__run_makes(run)) {
        start_run(ctx, w, run);
        return;
    }
    mu__worker_prepare(w, run);
    mu__worker_start_ready(ctx, w);
}

static void on_work_done(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    struct worker *w = state;
    struct mu__work_done *body = mu__body(msg);
    struct mu_run *run = (struct mu_run *)body->work;

    mu__worker_unlist_run(run);
    if (run->code == MU__RUN_NOT_RETURNED)
        mu__run_not_returned(run);
    end_or_send(ctx, w, run);
    mu__worker_start_ready(ctx, w);
    if (mu__run_first(&w->running) != NULL)
        watch_begun(ctx, w);
}

static void on_effects_sent(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    struct worker *w = state;
    struct mu__effects_sent *body = mu__body(msg);
    struct mu_run *run = body->run;

    assert(run->list == &w->sending);
    mu__worker_unlist_run(run);
    finish_worker_run(ctx, w, run);
    mu__worker_start_ready(ctx, w);
}

static struct mu_run *find_run(const struct mu__list *list, mu__pid requester,
                               const struct mu__cancel *target)
{
    const struct mu__attempt attempt = {target->closure, target->attempt, 0};
    struct mu_run *at = NULL;

    return mu__recall_find(list, &at, requester, &attempt);
}

/* A run that waits for inputs ends at once. */
static void cancel_waiting_run(struct mu__ctx *ctx, struct worker *w,
                               const struct mu__msg *msg, const struct mu__cancel *target)
{
    struct mu_run *run = find_run(&w->waiting, msg->from, target);

    if (run == NULL)
        return;
    cancel_run(run);
    mu__worker_unlist_run(run);
    run->code = mu_run_fail(run, -MU_ECANCELLED, "cancelled while it waited for inputs");
    finish_worker_run(ctx, w, run);
}

/* A run that waits for a thread ends at once; a running function sees
 * mu_run_cancelled. */
static void cancel_running(struct mu__ctx *ctx, struct worker *w,
                           const struct mu__msg *msg, const struct mu__cancel *target)
{
    struct mu_run *run = find_run(&w->running, msg->from, target);

    if (run == NULL)
        return;
    cancel_run(run);
    if (!mu__withdraw(ctx, &run->work))
        return;
    mu__worker_unlist_run(run);
    run->code = mu_run_fail(run, -MU_ECANCELLED, "cancelled before it began");
    finish_worker_run(ctx, w, run);
}

static void on_cancel(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    struct worker *w = state;
    struct mu__cancel *body = mu__body(msg);
    struct mu_run *sending = find_run(&w->sending, msg->from, body);

    cancel_running(ctx, w, msg, body);
    if (sending != NULL)
        cancel_run(sending);
    cancel_waiting_run(ctx, w, msg, body);
    mu__worker_start_ready(ctx, w);
}

/* ---- Recall ---- */

/* Drop a run that will not run here, and what it was to make. */
static void drop_run(struct mu__ctx *ctx, struct worker *w, struct mu_run *run)
{
    struct mu__pinned_item *item =
        mu__run_makes(run)
            ? mu__pinned_find(&w->pinned, run->requester.node, run->closure)
            : NULL;

    mu__worker_unlist_run(run);
    if (item != NULL && item->state == MU__PINNED_BUILDING && item->builder == run)
        mu__pinned_forget(&w->pinned, item);
    worker_run_free(ctx, w, run);
}

/* Each attempt is either given back or runs here; for one that is with the executor
 * mu__withdraw decides. */
static void on_recall(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    struct worker *w = state;
    struct mu__recall *body = mu__body(msg);
    uint32_t count = mu__attempts_count(body->attempts, MU__ATTEMPT_BYTES);
    struct mu_run *at_running = NULL;
    struct mu_run *at_waiting = NULL;
    struct mu__recall_answer answer;

    if (!mu__recall_answer_begin(ctx, &answer, count)) {
        mu__log(ctx, MU__LOG_ERROR, "out of memory: nothing is given back to the chief");
        return;
    }
    for (uint32_t i = 0; i < count; i++) {
        struct mu__attempt target = mu__attempts_at(body->attempts, MU__ATTEMPT_BYTES, i);
        struct mu_run *run =
            mu__recall_find(&w->running, &at_running, msg->from, &target);

        if (run != NULL && !mu__withdraw(ctx, &run->work)) {
            mu__recall_answer_begun(&answer, run, mu__now_ms(ctx));
            continue;
        }
        if (run == NULL)
            run = mu__recall_find(&w->waiting, &at_waiting, msg->from, &target);
        if (run == NULL)
            continue;
        mu__recall_answer_returned(&answer, run);
        drop_run(ctx, w, run);
    }
    (void)mu__recall_answer_send(ctx, &answer, msg->from);
}

static void on_run_log(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    struct mu__run_log *body = mu__body(msg);
    struct mu__registered *function = body->function;
    unsigned lost = atomic_exchange(&function->lines_lost, 0);

    (void)state;
    atomic_fetch_sub(&function->lines_waiting, 1);
    mu__log(ctx, MU__LOG_INFO, "%s: %.*s", function->name, (int)body->line.size,
            (const char *)body->line.data);
    if (lost > 0)
        mu__log(ctx, MU__LOG_WARN, "%s: %u log lines dropped (rate limit)",
                function->name, lost);
}

/* ---- A lost chief ---- */

static void cancel_of(struct mu__list *list, uint32_t node)
{
    for (struct mu_run *run = mu__run_first(list); run != NULL; run = mu__run_next(run))
        if (run->requester.node == node)
            cancel_run(run);
}

/* A lost chief's runs are withdrawn or cancelled, and all that was kept for it is
 * dropped. */
static void on_worker_node_down(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    struct worker *w = state;
    struct mu__node_down *body = mu__body(msg);
    struct mu_run *next;

    replace_worker_chief(w, body->node, 0);
    for (struct mu_run *run = mu__run_first(&w->running); run != NULL; run = next) {
        next = mu__run_next(run);
        if (run->requester.node == body->node && mu__withdraw(ctx, &run->work))
            drop_run(ctx, w, run);
    }
    cancel_of(&w->running, body->node);
    cancel_of(&w->sending, body->node);
    for (struct mu_run *run = mu__run_first(&w->waiting); run != NULL; run = next) {
        next = mu__run_next(run);
        if (run->requester.node != body->node)
            continue;
        mu__worker_unlist_run(run);
        worker_run_free(ctx, w, run);
    }
    mu__pinned_drop_owner(&w->pinned, body->node);
}

/* ---- Start and end ---- */

bool mu__worker_running(const void *state, char *out, size_t size)
{
    const struct mu_run *run = mu__run_first(&((const struct worker *)state)->running);

    out[0] = '\0';
    if (run != NULL)
        mu__view_copy(mu__run_request(run)->function, out, size);
    return run != NULL;
}

uint64_t mu__worker_pinned_bytes(const void *state)
{
    return ((const struct worker *)state)->pinned.bytes;
}

void mu__worker_cancel_all(void *state)
{
    struct worker *w = state;

    for (struct mu_run *run = mu__run_first(&w->running); run != NULL;
         run = mu__run_next(run))
        cancel_run(run);
}

static void forget_worker_run(struct worker *w, struct mu__pool *pool, struct mu_run *run)
{
    mu__worker_unlist_run(run);
    mu__worker_forget_inputs(w, run);
    mu__run_clear(run);
    mu__pool_put(pool, run->msg);
    mu__free_array(run);
}

static void forget_list(struct worker *w, struct mu__pool *pool, struct mu__list *list)
{
    while (mu__run_first(list) != NULL)
        forget_worker_run(w, pool, mu__run_first(list));
}

void mu__worker_leave(void *state, struct mu__pool *pool, struct mu__list unstarted)
{
    struct worker *w = state;
    struct mu__list_node *node;

    w->leaving = true;
    while ((node = mu__list_pop(&unstarted)) != NULL)
        forget_worker_run(w, pool,
                          (struct mu_run *)MU__LIST_ENTRY(node, struct mu__work, node));
    forget_list(w, pool, &w->waiting);
}

void mu__worker_forget_runs(void *state, struct mu__pool *pool)
{
    struct worker *w = state;

    forget_list(w, pool, &w->running);
    forget_list(w, pool, &w->waiting);
    forget_list(w, pool, &w->sending);
}

static int init_worker(struct mu__ctx *ctx, void *state, const void *arg)
{
    struct worker *w = state;

    w->config = *(const struct mu__worker_config *)arg;
    w->serving = w->config.serves && w->config.serves_at_once;
    w->pinned.seed = mu__secret(ctx);
    return mu__watch_nodes(ctx);
}

static void end_worker(struct mu__ctx *ctx, void *state)
{
    struct worker *w = state;

    forget_list(w, mu__kernel_pool(ctx->kernel), &w->waiting);
    forget_list(w, mu__kernel_pool(ctx->kernel), &w->sending);
    mu__pinned_done(&w->pinned);
    mu__functions_done(&w->functions, &w->running);
    while (!mu__list_is_empty(&w->spare)) {
        struct mu_run *run = mu__run_first(&w->spare);

        (void)mu__list_pop(&w->spare);
        mu__free_array(run);
    }
}

static const struct mu__handler handlers[] = {
    {MU__RUN, on_worker_run},
    {MU__CANCEL, on_cancel},
    {MU__RECALL, on_recall},
    {MU__INPUT, mu__worker_on_input},
    {MU__DROP, mu__worker_on_drop},
    {MU__PULL, mu__worker_on_pull},
    {MU__WORK_DONE, on_work_done},
    {MU__EFFECTS_SENT, on_effects_sent},
    {MU__TIMER, on_worker_timer},
    {MU__RUN_LOG, on_run_log},
    {MU__REGISTER_REFUSED, on_register_refused},
    {MU__CALL, on_worker_call},
    {MU__NODE_UP, on_worker_node_up},
    {MU__NODE_DOWN, on_worker_node_down},
    {MU__NODE_TROUBLE, mu__ignore},
};

const struct mu__behavior mu__worker = {
    .name = "worker",
    .state_size = sizeof(struct worker),
    .mailbox_max = MU__MAILBOX_BY_SENDERS, /* the supervisor's window bounds RUNs */
    .handlers = handlers,
    .handlers_count = sizeof handlers / sizeof handlers[0],
    .init = init_worker,
    .done = end_worker,
};
