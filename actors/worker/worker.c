#include "actors/worker/worker.h"

#include "actors/keep.h"
#include "actors/packing.h"
#include "actors/worker/recall.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* What it hears. */
static void on_run(struct mu__ctx *ctx, void *state, struct mu__msg *msg);
static void on_cancel(struct mu__ctx *ctx, void *state, struct mu__msg *msg);
static void on_recall(struct mu__ctx *ctx, void *state, struct mu__msg *msg);
static void on_input(struct mu__ctx *ctx, void *state, struct mu__msg *msg);
static void on_drop(struct mu__ctx *ctx, void *state, struct mu__msg *msg);
static void on_pull(struct mu__ctx *ctx, void *state, struct mu__msg *msg);
static void on_work_done(struct mu__ctx *ctx, void *state, struct mu__msg *msg);
static void on_effects_sent(struct mu__ctx *ctx, void *state, struct mu__msg *msg);
static void on_timer(struct mu__ctx *ctx, void *state, struct mu__msg *msg);
static void on_run_log(struct mu__ctx *ctx, void *state, struct mu__msg *msg);
static void on_register_refused(struct mu__ctx *ctx, void *state, struct mu__msg *msg);
static void on_call(struct mu__ctx *ctx, void *state, struct mu__msg *msg);
static void on_node_up(struct mu__ctx *ctx, void *state, struct mu__msg *msg);
static void on_node_down(struct mu__ctx *ctx, void *state, struct mu__msg *msg);
static void on_node_trouble(struct mu__ctx *ctx, void *state, struct mu__msg *msg);

static const struct mu__handler handlers[] = {
    {MU__RUN, on_run},
    {MU__CANCEL, on_cancel},
    {MU__RECALL, on_recall},
    {MU__INPUT, on_input},
    {MU__DROP, on_drop},
    {MU__PULL, on_pull},
    {MU__WORK_DONE, on_work_done},
    {MU__EFFECTS_SENT, on_effects_sent},
    {MU__TIMER, on_timer},
    {MU__RUN_LOG, on_run_log},
    {MU__REGISTER_REFUSED, on_register_refused},
    {MU__CALL, on_call},
    {MU__NODE_UP, on_node_up},
    {MU__NODE_DOWN, on_node_down},
    {MU__NODE_TROUBLE, on_node_trouble},
};

/* What it remembers. Inputs below LATE_BYTES come in the order in which they were sent:
 * only larger ones travel in pieces, which what is sent later may overtake. */
enum {
    BUCKETS = 256,
    FUNCTIONS_MAX = 65536,
    SPARE_MAX = 1024,
    CHIEFS_MAX = 16,
    LATE_BYTES = 1 << 20,
    LOOK_MS = 10,           /* a run of at least this is told of */
    QUICK_US = 10           /* a run below this is told as one of no time */
};

struct worker {
    struct mu__worker_config config;
    struct mu__registered *buckets[BUCKETS];
    uint32_t functions_count;
    bool serving;
    uint32_t chiefs[CHIEFS_MAX];    /* nodes; 0: none */
    struct mu__run_list running;    /* with the executor */
    struct mu__run_list waiting;    /* for inputs; the supervisor's window bounds them */
    struct mu__run_list ready;      /* inputs are there, or code says why not; empty
                                       between messages */
    struct mu__run_list sending;    /* with the effects actor */
    struct mu__pinned pinned;
    struct mu_run *spare;       /* memory of runs that have ended */
    uint32_t spare_count;
    uint64_t look_timer;        /* for the next look at what has begun; 0: none */
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

/* The function that a closure names, or the one that is called as what stands before the
 * name's first colon. */
static struct mu__registered *function_for(const struct worker *w, struct mu__view name)
{
    struct mu__registered *f = function_of(w, name);
    const uint8_t *colon =
        f != NULL || name.size == 0 ? NULL : memchr(name.data, ':', name.size);

    if (colon == NULL)
        return f;
    name.size = (uint32_t)(colon - (const uint8_t *)name.data);
    return function_of(w, name);
}

static int check_function(struct worker *w, struct mu__function_call *call)
{
    struct mu__view name = mu__view_str(call->name);

    if (name.size == 0 || name.size > MU__FUNCTION_NAME_MAX)
        return mu_error_set(&call->call.error, -MU_EINVALID,
                            "a function's name has 1 to %d bytes, \"%.80s\" has %u",
                            MU__FUNCTION_NAME_MAX, call->name, name.size);
    if (function_of(w, name) != NULL)
        return mu_error_set(&call->call.error, -MU_EEXISTS,
                            "function \"%s\" is registered already", call->name);
    if (w->serving && !w->config.serves_at_once)
        return mu_error_set(&call->call.error, -MU_EPRECONDITION,
                            "this node serves already: functions are registered before "
                            "that");
    return 0;
}

static int add_function(struct worker *w, struct mu__function_call *call)
{
    struct mu__view name = mu__view_str(call->name);
    struct mu__registered *f = NULL;
    int rv = check_function(w, call);

    if (rv != 0)
        return rv;
    if (w->functions_count == FUNCTIONS_MAX ||
        !mu__grow_array((void **)&f, 1, sizeof *f))
        return mu_error_set(&call->call.error, -MU_ENOMEM,
                            "no memory for function \"%s\"", call->name);
    *f = (struct mu__registered){
        .function = call->function,
        .user = call->user,
        .flags = call->flags,
        .worker = (int)w->config.index,
        .worker_type = w->config.type,
        .post = w->config.post,
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

/* The chief decides which types run closures. */
static void on_register_refused(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    const struct worker *w = state;
    const struct mu__register_refused *body = mu__body(msg);

    mu__log(ctx, MU__LOG_WARN, "the chief gives %s no closures: its option worker_types "
            "is \"%.*s\", without this task's type (it is to be the same on all nodes)",
            w->config.task, (int)body->worker_types.size,
            (const char *)body->worker_types.data);
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
    struct worker *w = state;
    struct mu__call_msg *body = mu__body(msg);
    struct mu__call *call = body->call;

    if (call->operation == MU__WORKER_SERVE) {
        serve(ctx, w);
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

/* ---- the lists of runs ---- */

static void list_run(struct mu__run_list *list, struct mu_run *run)
{
    run->list = list;
    run->next = NULL;
    run->prev = list->last;
    if (list->last == NULL)
        list->first = run;
    else
        list->last->next = run;
    list->last = run;
}

static void unlist_run(struct mu_run *run)
{
    struct mu__run_list *list = run->list;

    if (run->prev == NULL)
        list->first = run->next;
    else
        run->prev->next = run->next;
    if (run->next == NULL)
        list->last = run->prev;
    else
        run->next->prev = run->prev;
    run->list = NULL;
}

static void move_run(struct mu__run_list *list, struct mu_run *run)
{
    unlist_run(run);
    list_run(list, run);
}

static struct mu_run *run_new(struct worker *w)
{
    struct mu_run *run = w->spare;

    if (run != NULL) {
        w->spare = run->next;
        w->spare_count--;
    } else if (!mu__grow_array((void **)&run, 1, sizeof *run)) {
        return NULL;
    }
    mu__clear(run, sizeof *run);
    return run;
}

/* It does not wait any more. */
static void forget_inputs(struct worker *w, struct mu_run *run)
{
    struct mu__run_inputs *inputs = run->inputs;

    for (uint32_t i = 0; inputs != NULL && i < inputs->count; i++)
        mu__pinned_unwait(&w->pinned, &inputs->items[i].wait);
}

static void run_free(struct mu__ctx *ctx, struct worker *w, struct mu_run *run)
{
    forget_inputs(w, run);
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

static void cancel(struct mu_run *run)
{
    atomic_store_explicit(&run->cancelled, true, memory_order_relaxed);
}

/* ---- results ---- */

/* Send an error that is no function's. */
static int send_refusal(struct mu__ctx *ctx, mu__pid to, const struct mu__run *request,
                        int code, const char *text)
{
    struct mu__msg *msg = mu__msg_new(ctx, MU__RESULT);
    struct mu__result *body;

    if (msg == NULL)
        return -MU_ENOMEM;
    body = mu__body(msg);
    body->closure = request->closure;
    body->attempt = request->attempt;
    body->code = (uint32_t)-code;
    body->error_kind = code == -MU_ENOTFOUND ? MU_ERROR_FUNCTION : MU_ERROR_OTHER;
    body->message = mu__view_str(text == NULL ? mu_strerror(code) : text);
    return mu__send_borrowed(ctx, to, msg);
}

static void fill_error(struct mu__result *body, const struct mu_run *run)
{
    const mu_error *failure = run->failure;
    const char *text = failure == NULL ? run->text : failure->message;

    body->code = (uint32_t)-run->code;
    body->error_kind = run->began ? MU_ERROR_FUNCTION : MU_ERROR_OTHER;
    if (text == NULL || text[0] == '\0')
        text = mu_strerror(run->code);
    body->message = mu__view_str(text);
    body->detail = mu__run_detail(run);
    if (failure == NULL || failure->code != run->code)
        return;
    body->error_kind = (uint32_t)failure->kind;
    body->origin = mu__view_str(failure->task);
}

static int send_result(struct mu__ctx *ctx, struct mu_run *run)
{
    struct mu__msg *msg = mu__msg_new(ctx, MU__RESULT);
    struct mu__result *body;

    if (msg == NULL)
        return -MU_ENOMEM;
    body = mu__body(msg);
    body->closure = run->closure;
    body->attempt = run->attempt;
    if (run->work.ran_us >= QUICK_US)
        body->ran_us = run->work.ran_us;
    if (run->code != 0) {
        fill_error(body, run);
        return mu__send_borrowed(ctx, run->requester, msg);
    }
    if (run->result_buf != NULL) {
        body->result = run->result_packed;
        msg->backing = run->result_buf;
        run->result_buf = NULL;
    }
    return mu__send(ctx, run->requester, msg);
}

/* A RESULT that cannot be sent, because its chief has gone, is a run that nobody
 * wants. */
static void send_outcome(struct mu__ctx *ctx, struct mu_run *run)
{
    int rv = send_result(ctx, run);

    if (rv == -MU_ERANGE) {
        run->code = mu_run_fail(run, -MU_EEXHAUSTED,
                                "the result is larger than a message may be");
        rv = send_result(ctx, run);
    }
    if (rv == -MU_ENOMEM)
        mu__log(ctx, MU__LOG_ERROR, "out of memory: a result is lost");
}

/* ---- inputs ---- */

/* Words for what failed, once: an input's own input keeps its words. */
static void fail_for_input(struct mu_run *run, const struct mu__pinned_item *item)
{
    bool per_worker = (item->number & MU__PER_WORKER_BIT) != 0;
    const mu_error *cause = item->error;
    mu_error error = cause != NULL ? *cause : (mu_error){.code = -MU_ENOMEM};

    if (cause == NULL || cause->kind != MU_ERROR_INPUT)
        (void)mu_error_set(&error, error.code, "%s %" PRIu64 "%s%s%s failed: %s",
                           per_worker ? "per-worker value" : "result of closure",
                           item->number & ~MU__PER_WORKER_BIT,
                           error.function[0] == '\0' ? "" : ", made by function \"",
                           error.function, error.function[0] == '\0' ? "" : "\",",
                           cause == NULL ? mu_strerror(error.code) : cause->message);
    error.kind = MU_ERROR_INPUT;
    if (cause != NULL) {
        memcpy(error.task, cause->task, sizeof error.task);
        memcpy(error.detail, cause->detail, sizeof error.detail);
    }
    mu__run_set_failure(run, &error);
    run->code = error.code;
}

/* A run that waited has something, or will never have it. */
static void answer_wait(struct worker *w, struct mu__run_input *input,
                        const struct mu__pinned_item *item)
{
    struct mu_run *run = input->run;

    if (item->state == MU__PINNED_READY) {
        input->value = mu_value_ref(item->value);
        run->inputs->missing--;
    } else {
        fail_for_input(run, item);
        forget_inputs(w, run);
    }
    if (run->code != 0 || run->inputs->missing == 0)
        move_run(&w->ready, run);
}

static void answer_waits(struct worker *w, struct mu__pinned_item *item)
{
    struct mu__pinned_wait *wait;

    while ((wait = mu__pinned_take_wait(item)) != NULL)
        answer_wait(w, (struct mu__run_input *)wait, item);
}

/* Take what is there, wait for what is not. */
static int look_for_input(struct worker *w, struct mu_run *run,
                          struct mu__run_input *input)
{
    struct mu__pinned_item *item = mu__pinned_expect(&w->pinned, run->requester.node,
                                                 input->number);

    if (item == NULL)
        return -MU_ENOMEM;
    if (item->state == MU__PINNED_FAILED) {
        fail_for_input(run, item);
        return run->code;
    }
    if (item->state == MU__PINNED_READY) {
        input->value = mu_value_ref(item->value);
        return 0;
    }
    mu__pinned_wait(item, &input->wait);
    run->inputs->missing++;
    return 0;
}

static int look_for_inputs(struct worker *w, struct mu_run *run)
{
    int rv = mu__run_take_inputs(run);

    if (rv == -MU_EINVALID)
        return mu_run_fail(run, rv, "the list of inputs makes no sense");
    for (uint32_t i = 0; rv == 0 && run->inputs != NULL && i < run->inputs->count; i++)
        rv = look_for_input(w, run, &run->inputs->items[i]);
    return rv;
}

/* From now on its result is awaited. */
static int begin_making(struct worker *w, struct mu_run *run)
{
    struct mu__pinned_item *item;

    if (run->closure == 0)
        return mu_run_fail(run, -MU_EINVALID, "what is kept has a number, got 0");
    item = mu__pinned_expect(&w->pinned, run->requester.node, run->closure);
    if (item == NULL)
        return -MU_ENOMEM;
    mu__pinned_build(&w->pinned, item, run);
    return 0;
}

/* A run that needs or makes what is kept. */
static void prepare(struct worker *w, struct mu_run *run)
{
    int rv = mu__run_makes(run) ? begin_making(w, run) : 0;

    if (rv == 0)
        rv = look_for_inputs(w, run);
    run->code = rv;
    if (rv != 0)
        forget_inputs(w, run);
    list_run(rv != 0 || run->inputs == NULL || run->inputs->missing == 0 ? &w->ready
                                                                         : &w->waiting,
             run);
}

/* What the error of a run is for those who need its result. */
static mu_error error_of(const struct worker *w, const struct mu_run *run)
{
    struct mu__result reported = {0};
    mu_error error;

    fill_error(&reported, run);
    (void)mu_error_set(&error, run->code, "%.*s", (int)reported.message.size,
                       (const char *)reported.message.data);
    error.kind = (int)reported.error_kind;
    if (reported.origin.size == 0)
        reported.origin = mu__view_str(w->config.task);
    mu__view_copy(reported.origin, error.task, sizeof error.task);
    mu__view_copy(reported.detail, error.detail, sizeof error.detail);
    mu__view_copy(mu__run_request(run)->function, error.function, sizeof error.function);
    return error;
}

/* Keep what was made, or that it cannot be; unless it was dropped, begun anew or sent by
 * the chief meanwhile. */
static void settle(struct worker *w, struct mu_run *run)
{
    bool builds = (mu__run_request(run)->flags & MU__CLOSURE_BUILD) != 0;
    struct mu__pinned_item *item =
        mu__pinned_find(&w->pinned, run->requester.node, run->closure);
    mu_error error;

    if (item == NULL || item->state != MU__PINNED_BUILDING || item->builder != run)
        return;
    if (run->code == 0) {
        mu__pinned_succeed(&w->pinned, item, run->result,
                         (uint64_t)run->result_packed.head_size +
                             run->result_packed.tail_size);
        run->result = NULL;
    } else if (builds && !mu_run_cancelled(run)) {
        error = error_of(w, run);
        mu__pinned_fail(&w->pinned, item, &error);
    } else {
        mu__pinned_forget(&w->pinned, item);
        return;
    }
    answer_waits(w, item);
}

/* ---- runs ---- */

/* In no list any more. Those who needed its result may be ready then. */
static void finish(struct mu__ctx *ctx, struct worker *w, struct mu_run *run)
{
    if (mu__run_makes(run)) {
        if (run->code == 0 && mu_run_cancelled(run))
            run->code = mu_run_fail(run, -MU_ECANCELLED, "cancelled: nothing was kept");
        settle(w, run);
    }
    send_outcome(ctx, run);
    run_free(ctx, w, run);
}

/* The effects actor may read the run's writes until it answers. */
static int send_effects(struct mu__ctx *ctx, struct mu_run *run)
{
    const struct mu__run *request = mu__run_request(run);
    struct mu__msg *msg = mu__msg_new(ctx, MU__EFFECTS_SEND);

    run->effects.origin = request->origin;
    run->effects.effect = (request->flags & MU__CLOSURE_ONCE) != 0 ? request->effect : 0;
    run->effects.effects_done = request->effects_done;
    if (msg != NULL)
        ((struct mu__effects_send *)mu__body(msg))->run = run;
    return mu__send(ctx, (mu__pid){MU__NODE_SELF, MU__EFFECTS}, msg);
}

/* Its function has returned. What nobody wants any more writes nothing. */
static void end_or_send(struct mu__ctx *ctx, struct worker *w, struct mu_run *run)
{
    int rv;

    if (run->code != 0 || run->effects.first == NULL) {
        finish(ctx, w, run);
        return;
    }
    if (mu_run_cancelled(run)) {
        run->code = mu_run_fail(run, -MU_ECANCELLED, "cancelled: nothing was written");
        finish(ctx, w, run);
        return;
    }
    rv = send_effects(ctx, run);
    if (rv == 0) {
        list_run(&w->sending, run);
        return;
    }
    run->code = mu_run_fail(run, rv, "what the function wrote cannot be sent: %s",
                            mu_strerror(rv));
    finish(ctx, w, run);
}

static void begin_work(struct mu__work *work)
{
    mu__run_begin((struct mu_run *)work);
}

static void execute_work(struct mu__work *work)
{
    mu__run_execute((struct mu_run *)work);
}

/* Look soon which runs take long: but only once after something has changed. */
static void watch_begun(struct mu__ctx *ctx, struct worker *w)
{
    if (w->look_timer == 0)
        w->look_timer = mu__timer_set(ctx, LOOK_MS, 0);
}

static void on_timer(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    struct worker *w = state;

    (void)msg;
    w->look_timer = 0;
    if (mu__recall_tell_begun(ctx, &w->running, w->config.threads, LOOK_MS))
        watch_begun(ctx, w);
}

/* In no list: run it, or let the executor. */
static void start(struct mu__ctx *ctx, struct worker *w, struct mu_run *run)
{
    if ((run->registered->flags & MU_FUNCTION_INLINE) != 0) {
        mu__run_execute(run);
        end_or_send(ctx, w, run);
        return;
    }
    list_run(&w->running, run);
    run->work.begin = begin_work;
    run->work.run = execute_work;
    mu__submit(ctx, &run->work);
    watch_begun(ctx, w);
}

/* At the end of each handler that may have made runs ready: those that end at once may
 * make others so, which join the list. */
static void start_ready(struct mu__ctx *ctx, struct worker *w)
{
    struct mu_run *run;

    while ((run = w->ready.first) != NULL) {
        unlist_run(run);
        if (run->code != 0)
            finish(ctx, w, run);
        else
            start(ctx, w, run);
    }
}

/* Nobody will make it, so nobody shall wait for it. */
static void fail_unknown(struct mu__ctx *ctx, struct worker *w, mu__pid requester,
                         const struct mu__run *request, const char *text)
{
    struct mu__pinned_item *item = NULL;
    mu_error error;

    if ((request->flags & MU__CLOSURE_BUILD) != 0 && request->closure != 0)
        item = mu__pinned_expect(&w->pinned, requester.node, request->closure);
    if (item == NULL)
        return;
    (void)mu_error_set(&error, -MU_ENOTFOUND, "%s", text);
    error.kind = MU_ERROR_FUNCTION;
    (void)snprintf(error.task, sizeof error.task, "%s", w->config.task);
    mu__pinned_fail(&w->pinned, item, &error);
    answer_waits(w, item);
    start_ready(ctx, w);
}

static void refuse_unknown(struct mu__ctx *ctx, struct worker *w, struct mu__msg *msg)
{
    struct mu__run *body = mu__body(msg);
    char text[256];

    (void)snprintf(text, sizeof text,
                   "no function \"%.*s\" on %s, which knows %" PRIu32
                   " (is its plugin loaded there?)",
                   (int)body->function.size, (const char *)body->function.data,
                   w->config.task, w->functions_count);
    (void)send_refusal(ctx, msg->from, body, -MU_ENOTFOUND, text);
    fail_unknown(ctx, w, msg->from, body, text);
}

static void on_run(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    struct worker *w = state;
    struct mu__run *body = mu__body(msg);
    struct mu__registered *registered = function_for(w, body->function);
    struct mu_run *run;

    if (w->leaving)
        return;
    if (registered == NULL) {
        refuse_unknown(ctx, w, msg);
        return;
    }
    run = run_new(w);
    if (run == NULL) {
        (void)send_refusal(ctx, msg->from, body, -MU_ENOMEM, NULL);
        return;
    }
    run->registered = registered;
    run->node = w->config.node;
    run->requester = msg->from;
    run->closure = body->closure;
    run->attempt = body->attempt;
    run->msg = mu__claim(ctx);
    if (body->inputs.size == 0 && !mu__run_makes(run)) {
        start(ctx, w, run);
        return;
    }
    prepare(w, run);
    start_ready(ctx, w);
}

static void on_work_done(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    struct worker *w = state;
    struct mu__work_done *body = mu__body(msg);
    struct mu_run *run = (struct mu_run *)body->work;

    unlist_run(run);
    end_or_send(ctx, w, run);
    start_ready(ctx, w);
    if (w->running.first != NULL)
        watch_begun(ctx, w);
}

static void on_effects_sent(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    struct worker *w = state;
    struct mu__effects_sent *body = mu__body(msg);
    struct mu_run *run = body->run;

    assert(run->list == &w->sending);
    unlist_run(run);
    finish(ctx, w, run);
    start_ready(ctx, w);
}

static bool is_run(const struct mu_run *run, const struct mu__msg *msg,
                   const struct mu__cancel *wanted)
{
    return run->closure == wanted->closure && run->attempt == wanted->attempt &&
           mu__pid_equal(run->requester, msg->from);
}

/* One that waits for inputs has not begun, and never will. */
static void cancel_waiting(struct mu__ctx *ctx, struct worker *w,
                           const struct mu__msg *msg, const struct mu__cancel *wanted)
{
    struct mu_run *run = w->waiting.first;

    while (run != NULL && !is_run(run, msg, wanted))
        run = run->next;
    if (run == NULL)
        return;
    cancel(run);
    unlist_run(run);
    run->code = mu_run_fail(run, -MU_ECANCELLED, "cancelled while it waited for inputs");
    finish(ctx, w, run);
}

/* One that waits for a thread, the same. */
static void cancel_running(struct mu__ctx *ctx, struct worker *w,
                           const struct mu__msg *msg, const struct mu__cancel *wanted)
{
    struct mu_run *run = w->running.first;

    while (run != NULL && !is_run(run, msg, wanted))
        run = run->next;
    if (run == NULL)
        return;
    cancel(run);
    if (!mu__withdraw(ctx, &run->work))
        return;
    unlist_run(run);
    run->code = mu_run_fail(run, -MU_ECANCELLED, "cancelled before it began");
    finish(ctx, w, run);
}

static void on_cancel(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    struct worker *w = state;
    struct mu__cancel *body = mu__body(msg);

    cancel_running(ctx, w, msg, body);
    for (struct mu_run *run = w->sending.first; run != NULL; run = run->next)
        if (is_run(run, msg, body))
            cancel(run);
    cancel_waiting(ctx, w, msg, body);
    start_ready(ctx, w);
}

/* ---- Recall ---- */

/* It will not run here. What it was to make is nobody's to wait for here any more. */
static void drop_run(struct mu__ctx *ctx, struct worker *w, struct mu_run *run)
{
    struct mu__pinned_item *item =
        mu__run_makes(run)
            ? mu__pinned_find(&w->pinned, run->requester.node, run->closure)
            : NULL;

    unlist_run(run);
    if (item != NULL && item->state == MU__PINNED_BUILDING && item->builder == run)
        mu__pinned_forget(&w->pinned, item);
    run_free(ctx, w, run);
}

/* Either an attempt is given back, or it runs here: whoever is with the executor is asked
 * there. */
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
        struct mu__attempt wanted =
            mu__attempts_at(body->attempts, MU__ATTEMPT_BYTES, i);
        struct mu_run *run = mu__recall_find(&w->running, &at_running, msg->from,
                                             &wanted);

        if (run != NULL && !mu__withdraw(ctx, &run->work)) {
            mu__recall_answer_begun(&answer, run, mu__now_ms(ctx));
            continue;
        }
        if (run == NULL)
            run = mu__recall_find(&w->waiting, &at_waiting, msg->from, &wanted);
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
        mu__log(ctx, MU__LOG_WARN, "%s: %u lines came too fast and are not here",
                function->name, lost);
}

/* ---- what is kept ---- */

static int read_input(const struct mu__input *body, mu_value **ret_value, mu_error *error)
{
    char why[128] = "";
    int rv;

    if (body->code != 0)
        return mu_error_set(error, -(int)body->code, "%.*s", (int)body->message.size,
                            body->message.size == 0 ? ""
                                                    : (const char *)body->message.data);
    rv = mu__value_unpack(&body->content, why, sizeof why, ret_value);
    if (rv == -MU_EDATALOSS)
        return mu_error_set(error, rv, "it cannot be read: %s", why);
    return rv == 0 ? 0 : mu_error_set(error, rv, "%s", mu_strerror(rv));
}

/* The content is unpacked once, and then shared by all runs that use it. */
static void on_input(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    struct worker *w = state;
    struct mu__input *body = mu__body(msg);
    uint64_t bytes = (uint64_t)body->content.head_size + body->content.tail_size;
    struct mu__pinned_item *item;
    mu_value *value = NULL;
    mu_error error;

    if (body->input == 0 ||
        (bytes >= LATE_BYTES &&
         mu__pinned_take_note(&w->pinned, msg->from.node, body->input)))
        return;
    item = mu__pinned_expect(&w->pinned, msg->from.node, body->input);
    if (item == NULL)
        mu__log(ctx, MU__LOG_ERROR, "out of memory: an input is lost");
    if (item == NULL || item->state == MU__PINNED_READY ||
        item->state == MU__PINNED_FAILED)
        return;
    if (read_input(body, &value, &error) == 0)
        mu__pinned_succeed(&w->pinned, item, value, bytes);
    else
        mu__pinned_fail(&w->pinned, item, &error);
    answer_waits(w, item);
    start_ready(ctx, w);
}

static void on_drop(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    struct worker *w = state;
    struct mu__drop *body = mu__body(msg);

    (void)ctx;
    mu__pinned_drop(&w->pinned, msg->from.node, body->input);
}

static int send_pulled_error(struct mu__ctx *ctx, mu__pid to, uint64_t number,
                             const mu_error *error)
{
    struct mu__msg *msg = mu__msg_new(ctx, MU__PULLED);
    struct mu__pulled *body;

    if (msg == NULL)
        return -MU_ENOMEM;
    body = mu__body(msg);
    body->input = number;
    body->code = (uint32_t)-error->code;
    body->message = mu__view_str(error->message);
    return mu__send_borrowed(ctx, to, msg);
}

static int send_pulled(struct mu__ctx *ctx, mu__pid to,
                       const struct mu__pinned_item *item)
{
    struct mu__packed packed;
    struct mu__buf *buf = mu__pack_value(item->value, &packed);
    struct mu__msg *msg;
    struct mu__pulled *body;

    if (buf == NULL)
        return -MU_ENOMEM;
    msg = mu__msg_new(ctx, MU__PULLED);
    if (msg == NULL) {
        mu__buf_unref(buf);
        return -MU_ENOMEM;
    }
    body = mu__body(msg);
    body->input = item->number;
    body->content = packed;
    msg->backing = buf;
    return mu__send(ctx, to, msg);
}

/* 0 when it can be sent; else the words for the one who asked. */
static int check_pull(const struct worker *w, const struct mu__pinned_item *item,
                      mu_error *error)
{
    if (item == NULL || item->state == MU__PINNED_EXPECTED ||
        item->state == MU__PINNED_BUILDING)
        return mu_error_set(error, -MU_ENOTFOUND, "it is not on %s", w->config.task);
    if (item->state == MU__PINNED_FAILED) {
        if (item->error == NULL)
            return mu_error_set(error, -MU_ENOMEM, "%s", mu_strerror(-MU_ENOMEM));
        *error = *item->error;
        return error->code;
    }
    if (mu__run_has_object(item->value))
        return mu_error_set(error, -MU_EPRECONDITION,
                            "it is an object or holds one, which cannot leave %s",
                            w->config.task);
    return 0;
}

static void on_pull(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    struct worker *w = state;
    struct mu__pull *body = mu__body(msg);
    const struct mu__pinned_item *item = mu__pinned_find(&w->pinned, msg->from.node,
                                                     body->input);
    mu_error error;
    int rv = check_pull(w, item, &error);

    if (rv == 0)
        rv = send_pulled(ctx, msg->from, item);
    else
        rv = send_pulled_error(ctx, msg->from, body->input, &error);
    if (rv == -MU_ERANGE || rv == -MU_ENOMEM) {
        (void)mu_error_set(&error, -MU_EEXHAUSTED, "it cannot be sent: %s",
                           rv == -MU_ERANGE ? "it is larger than a message may be"
                                            : mu_strerror(rv));
        (void)send_pulled_error(ctx, msg->from, body->input, &error);
    }
}

/* ---- a lost chief ---- */

static void cancel_of(struct mu__run_list *list, uint32_t node)
{
    for (struct mu_run *run = list->first; run != NULL; run = run->next)
        if (run->requester.node == node)
            cancel(run);
}

/* It runs these elsewhere, and needs nothing of what was kept for it. */
static void on_node_down(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    struct worker *w = state;
    struct mu__node_down *body = mu__body(msg);
    struct mu_run *next;

    note_chief(w, body->node, 0);
    for (struct mu_run *run = w->running.first; run != NULL; run = next) {
        next = run->next;
        if (run->requester.node == body->node && mu__withdraw(ctx, &run->work))
            drop_run(ctx, w, run);
    }
    cancel_of(&w->running, body->node);
    cancel_of(&w->sending, body->node);
    for (struct mu_run *run = w->waiting.first; run != NULL; run = next) {
        next = run->next;
        if (run->requester.node != body->node)
            continue;
        unlist_run(run);
        run_free(ctx, w, run);
    }
    mu__pinned_drop_owner(&w->pinned, body->node);
}

/* Whoever waits for a link says why it is not up; this actor waits for none. */
static void on_node_trouble(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    (void)ctx;
    (void)state;
    (void)msg;
}

/* ---- life ---- */

bool mu__worker_running(const void *state, char *out, size_t size)
{
    const struct mu_run *run = ((const struct worker *)state)->running.first;

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

    for (struct mu_run *run = w->running.first; run != NULL; run = run->next)
        cancel(run);
}

static void forget_run(struct worker *w, struct mu__pool *pool, struct mu_run *run)
{
    unlist_run(run);
    forget_inputs(w, run);
    mu__run_clear(run);
    mu__pool_put(pool, run->msg);
    mu__free_array(run);
}

static void forget_list(struct worker *w, struct mu__pool *pool,
                        struct mu__run_list *list)
{
    while (list->first != NULL)
        forget_run(w, pool, list->first);
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
    forget_list(w, pool, &w->waiting);
}

void mu__worker_forget_runs(void *state, struct mu__pool *pool)
{
    struct worker *w = state;

    forget_list(w, pool, &w->running);
    forget_list(w, pool, &w->waiting);
    forget_list(w, pool, &w->sending);
}

static int init(struct mu__ctx *ctx, void *state, const void *arg)
{
    struct worker *w = state;

    w->config = *(const struct mu__worker_config *)arg;
    w->serving = w->config.serves && w->config.serves_at_once;
    w->pinned.seed = mu__secret(ctx);
    return mu__watch_nodes(ctx);
}

static bool is_running(const struct worker *w, const struct mu__registered *f)
{
    const struct mu_run *run = w->running.first;

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

    forget_list(w, mu__kernel_pool(ctx->kernel), &w->waiting);
    forget_list(w, mu__kernel_pool(ctx->kernel), &w->sending);
    mu__pinned_done(&w->pinned);
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
