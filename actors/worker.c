#include "actors/worker.h"

#include "actors/messages.h"
#include "actors/packing.h"
#include "actors/run.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* What it hears. */
static void on_run(struct mu__ctx *ctx, void *state, struct mu__msg *msg);
static void on_cancel(struct mu__ctx *ctx, void *state, struct mu__msg *msg);
static void on_work_done(struct mu__ctx *ctx, void *state, struct mu__msg *msg);
static void on_call(struct mu__ctx *ctx, void *state, struct mu__msg *msg);
static void on_node_up(struct mu__ctx *ctx, void *state, struct mu__msg *msg);
static void on_node_down(struct mu__ctx *ctx, void *state, struct mu__msg *msg);

static const struct mu__handler handlers[] = {
    {MU__RUN, on_run},
    {MU__CANCEL, on_cancel},
    {MU__WORK_DONE, on_work_done},
    {MU__CALL, on_call},
    {MU__NODE_UP, on_node_up},
    {MU__NODE_DOWN, on_node_down},
};

/* What it remembers. */
enum { BUCKETS = 256, FUNCTIONS_MAX = 65536, SPARE_MAX = 1024, CHIEFS_MAX = 16 };

struct worker {
    struct mu__worker_config config;
    struct mu__registered *buckets[BUCKETS];
    uint32_t functions_count;
    bool serving;
    uint32_t chiefs[CHIEFS_MAX];    /* nodes; 0: none */
    struct mu_run *runs;        /* with the executor */
    uint32_t runs_count;
    struct mu_run *spare;       /* memory of runs that have ended */
    uint32_t spare_count;
    bool leaving;               /* starts no run any more */
};

/* ---- functions ---- */

static struct mu__registered *function_of(const struct worker *w, struct mu__view name)
{
    uint32_t hash = mu__view_hash(name);
    struct mu__registered *f = w->buckets[hash % BUCKETS];

    while (f != NULL && (f->hash != hash || f->name_size != name.size ||
                         memcmp(f->name, name.data, name.size) != 0))
        f = f->next;
    return f;
}

static int add_function(struct worker *w, struct mu__function_call *call)
{
    struct mu__view name = mu__view_str(call->name);
    struct mu__registered *f = NULL;

    if (name.size == 0 || name.size > MU__FUNCTION_NAME_MAX)
        return mu_error_set(&call->call.error, -MU_EINVALID,
                            "a function's name has 1 to %d bytes, \"%.80s\" has %u",
                            MU__FUNCTION_NAME_MAX, call->name, name.size);
    if (function_of(w, name) != NULL)
        return mu_error_set(&call->call.error, -MU_EEXISTS,
                            "function \"%s\" is registered already", call->name);
    if (w->functions_count == FUNCTIONS_MAX ||
        !mu__grow_array((void **)&f, 1, sizeof *f))
        return mu_error_set(&call->call.error, -MU_ENOMEM,
                            "no memory for function \"%s\"", call->name);
    *f = (struct mu__registered){
        .function = call->function,
        .user = call->user,
        .flags = call->flags,
        .hash = mu__view_hash(name),
        .name_size = name.size,
    };
    memcpy(f->name, call->name, name.size);
    f->next = w->buckets[f->hash % BUCKETS];
    w->buckets[f->hash % BUCKETS] = f;
    w->functions_count++;
    return 0;
}

/* ---- chiefs ---- */

static void offer(struct mu__ctx *ctx, const struct worker *w, uint32_t chief)
{
    struct mu__msg *msg = mu__msg_new(ctx, MU__REGISTER);
    struct mu__register *body;

    if (msg != NULL) {
        body = mu__body(msg);
        body->threads = w->config.threads;
    }
    if (mu__send(ctx, (mu__pid){chief, MU__SUPERVISOR}, msg) != 0)
        mu__log(ctx, MU__LOG_WARN, "could not offer this worker to the chief");
}

static void serve(struct mu__ctx *ctx, struct worker *w)
{
    if (w->serving || !w->config.serves)
        return;
    w->serving = true;
    for (size_t i = 0; i < CHIEFS_MAX; i++)
        if (w->chiefs[i] != 0)
            offer(ctx, w, w->chiefs[i]);
}

static void on_call(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    struct mu__call_msg *body = mu__body(msg);
    struct mu__call *call = body->call;

    if (call->operation == MU__WORKER_SERVE) {
        serve(ctx, state);
        mu__call_complete(call, 0);
        return;
    }
    mu__call_complete(call, add_function(state, (struct mu__function_call *)call));
}

static void note_chief(struct worker *w, uint32_t was, uint32_t is)
{
    for (size_t i = 0; i < CHIEFS_MAX; i++)
        if (w->chiefs[i] == was) {
            w->chiefs[i] = is;
            return;
        }
}

static void on_node_up(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    struct worker *w = state;
    struct mu__node_up *body = mu__body(msg);

    if (!mu__view_is(body->type, "chief"))
        return;
    note_chief(w, 0, body->node);
    if (w->serving)
        offer(ctx, w, body->node);
}

/* The lost chief runs these elsewhere. */
static void on_node_down(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    struct worker *w = state;
    struct mu__node_down *body = mu__body(msg);

    (void)ctx;
    note_chief(w, body->node, 0);
    for (struct mu_run *run = w->runs; run != NULL; run = run->next)
        if (run->asker.node == body->node)
            atomic_store_explicit(&run->cancelled, true, memory_order_relaxed);
}

/* ---- runs ---- */

static struct mu_run *run_new(struct worker *w)
{
    struct mu_run *run = w->spare;

    if (run != NULL) {
        w->spare = run->next;
        w->spare_count--;
    } else if (!mu__grow_array((void **)&run, 1, sizeof *run)) {
        return NULL;
    }
    memset(run, 0, sizeof *run);
    return run;
}

static void run_free(struct mu__ctx *ctx, struct worker *w, struct mu_run *run)
{
    mu__run_clear(run);
    mu__msg_free(ctx, run->msg);
    if (w->spare_count == SPARE_MAX) {
        mu__free_array(run);
        return;
    }
    run->next = w->spare;
    w->spare = run;
    w->spare_count++;
}

static int send_result(struct mu__ctx *ctx, mu__pid to, uint64_t closure,
                       uint32_t attempt, int code, const char *words)
{
    struct mu__msg *msg = mu__msg_new(ctx, MU__RESULT);
    struct mu__result *body;

    if (msg == NULL)
        return -MU_ENOMEM;
    body = mu__body(msg);
    body->closure = closure;
    body->attempt = attempt;
    body->code = (uint32_t)-code;
    if (code != 0)
        body->message = mu__view_str(words == NULL ? mu_strerror(code) : words);
    return mu__send(ctx, to, msg);
}

static int send_value(struct mu__ctx *ctx, struct mu_run *run)
{
    struct mu__msg *msg = mu__msg_new(ctx, MU__RESULT);
    struct mu__result *body;

    if (msg == NULL)
        return -MU_ENOMEM;
    body = mu__body(msg);
    body->closure = run->closure;
    body->attempt = run->attempt;
    body->result = run->result_packed;
    msg->backing = run->result_buf;
    run->result_buf = NULL;
    return mu__send(ctx, run->asker, msg);
}

/* A RESULT that cannot be sent, because its chief has gone, is a run that nobody
 * wants. */
static void send_outcome(struct mu__ctx *ctx, struct mu_run *run)
{
    int rv;

    if (run->code == 0 && run->result_buf != NULL)
        rv = send_value(ctx, run);
    else
        rv = send_result(ctx, run->asker, run->closure, run->attempt, run->code,
                         run->words);
    if (rv == -MU_ERANGE)
        rv = send_result(ctx, run->asker, run->closure, run->attempt, -MU_EEXHAUSTED,
                         "the result is larger than a message may be");
    if (rv == -MU_ENOMEM)
        mu__log(ctx, MU__LOG_ERROR, "out of memory: a result is lost");
}

static void refuse_unknown(struct mu__ctx *ctx, const struct worker *w,
                           struct mu__msg *msg)
{
    struct mu__run *body = mu__body(msg);
    char words[256];

    (void)snprintf(words, sizeof words,
                   "no function \"%.*s\" on %s, which knows %" PRIu32
                   " (is its plugin loaded there?)",
                   (int)body->function.size, (const char *)body->function.data,
                   w->config.task, w->functions_count);
    (void)send_result(ctx, msg->from, body->closure, body->attempt, -MU_ENOTFOUND, words);
}

static void execute_work(struct mu__work *work)
{
    mu__run_execute((struct mu_run *)work);
}

static void list_run(struct worker *w, struct mu_run *run)
{
    run->next = w->runs;
    if (w->runs != NULL)
        w->runs->prev = run;
    w->runs = run;
    w->runs_count++;
}

static void unlist_run(struct worker *w, struct mu_run *run)
{
    if (run->prev == NULL)
        w->runs = run->next;
    else
        run->prev->next = run->next;
    if (run->next != NULL)
        run->next->prev = run->prev;
    w->runs_count--;
}

static void start(struct mu__ctx *ctx, struct worker *w, struct mu_run *run)
{
    list_run(w, run);
    run->work.run = execute_work;
    mu__submit(ctx, &run->work);
}

static void on_run(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    struct worker *w = state;
    struct mu__run *body = mu__body(msg);
    const struct mu__registered *registered = function_of(w, body->function);
    struct mu_run *run;

    if (w->leaving)
        return;
    if (registered == NULL) {
        refuse_unknown(ctx, w, msg);
        return;
    }
    run = run_new(w);
    if (run == NULL) {
        (void)send_result(ctx, msg->from, body->closure, body->attempt, -MU_ENOMEM, NULL);
        return;
    }
    run->registered = registered;
    run->node = w->config.node;
    run->asker = msg->from;
    run->closure = body->closure;
    run->attempt = body->attempt;
    run->args = body->args;
    run->msg = mu__claim(ctx);
    if ((registered->flags & MU_FUNCTION_INLINE) == 0) {
        start(ctx, w, run);
        return;
    }
    mu__run_execute(run);
    send_outcome(ctx, run);
    run_free(ctx, w, run);
}

static void on_work_done(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    struct worker *w = state;
    struct mu__work_done *body = mu__body(msg);
    struct mu_run *run = body->work;

    unlist_run(w, run);
    send_outcome(ctx, run);
    run_free(ctx, w, run);
}

static void on_cancel(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    struct worker *w = state;
    struct mu__cancel *body = mu__body(msg);

    (void)ctx;
    for (struct mu_run *run = w->runs; run != NULL; run = run->next)
        if (run->closure == body->closure && run->attempt == body->attempt &&
            mu__pid_equal(run->asker, msg->from))
            atomic_store_explicit(&run->cancelled, true, memory_order_relaxed);
}

/* ---- life ---- */

const char *mu__worker_running(const void *state)
{
    const struct worker *w = state;

    return w->runs == NULL ? NULL : w->runs->registered->name;
}

void mu__worker_cancel_all(void *state)
{
    struct worker *w = state;

    for (struct mu_run *run = w->runs; run != NULL; run = run->next)
        atomic_store_explicit(&run->cancelled, true, memory_order_relaxed);
}

static void forget_run(struct worker *w, struct mu__pool *pool, struct mu_run *run)
{
    unlist_run(w, run);
    mu__run_clear(run);
    mu__pool_put(pool, run->msg);
    mu__free_array(run);
}

void mu__worker_leave(void *state, struct mu__pool *pool, struct mu__work *unstarted)
{
    struct worker *w = state;

    w->leaving = true;
    while (unstarted != NULL) {
        struct mu__work *next = unstarted->next;

        forget_run(w, pool, (struct mu_run *)unstarted);
        unstarted = next;
    }
}

void mu__worker_forget_runs(void *state, struct mu__pool *pool)
{
    struct worker *w = state;

    while (w->runs != NULL)
        forget_run(w, pool, w->runs);
}

static int init(struct mu__ctx *ctx, void *state, const void *arg)
{
    struct worker *w = state;

    w->config = *(const struct mu__worker_config *)arg;
    w->serving = w->config.serves && w->config.serves_at_once;
    return mu__watch_nodes(ctx);
}

static bool is_running(const struct worker *w, const struct mu__registered *f)
{
    const struct mu_run *run = w->runs;

    while (run != NULL && run->registered != f)
        run = run->next;
    return run != NULL;
}

/* A function that does not end is left, with its run, to the thread that runs it. */
static void free_functions(struct worker *w)
{
    for (size_t i = 0; i < BUCKETS; i++)
        while (w->buckets[i] != NULL) {
            struct mu__registered *f = w->buckets[i];

            w->buckets[i] = f->next;
            if (!is_running(w, f))
                mu__free_array(f);
        }
}

static void done(struct mu__ctx *ctx, void *state)
{
    struct worker *w = state;

    (void)ctx;
    free_functions(w);
    while (w->spare != NULL) {
        struct mu_run *next = w->spare->next;

        mu__free_array(w->spare);
        w->spare = next;
    }
}

const struct mu__behavior mu__worker = {
    .name = "worker",
    .state_size = sizeof(struct worker),
    .mailbox_max = MU__MAILBOX_BY_SENDERS, /* the supervisor's window bounds RUNs */
    .handlers = handlers,
    .handlers_count = sizeof handlers / sizeof handlers[0],
    .init = init,
    .done = done,
};
