/* Inputs of runs, and values that stay on this worker between runs: pinned results,
 * inputs that were sent, per-worker values. */
#include "actors/keep.h"
#include "actors/packing.h"
#include "actors/worker/internal.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* Inputs below LATE_BYTES arrive in the order in which they were sent; larger ones travel
 * in pieces, and later messages may overtake them. */
enum { LATE_BYTES = 1 << 20 };

/* Beyond the bound of what a chief may keep here, for the errors that say so. */
enum { ERRORS_BYTES_MAX = 1 << 20 };

void mu__worker_forget_inputs(struct worker *w, struct mu_run *run)
{
    struct mu__run_inputs *inputs = run->inputs;

    for (uint32_t i = 0; inputs != NULL && i < inputs->count; i++)
        mu__pinned_unwait(&w->pinned, &inputs->items[i].wait);
}

static void move_run(struct mu__list *list, struct mu_run *run)
{
    mu__worker_unlist_run(run);
    mu__worker_list_run(list, run);
}

/* Fail a run for an input that failed. If the input failed for an input of its own, the
 * error's text stays as it is. */
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

/* Give a run that waited the input's value, or its error. */
static void answer_wait(struct worker *w, struct mu__run_input *input,
                        const struct mu__pinned_item *item)
{
    struct mu_run *run = input->run;

    if (item->state == MU__PINNED_READY) {
        input->value = mu_value_ref(item->value);
        run->inputs->missing--;
    } else {
        fail_for_input(run, item);
        mu__worker_forget_inputs(w, run);
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
    struct mu__pinned_item *item =
        mu__pinned_expect(&w->pinned, run->requester.node, input->number);

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
        return mu_run_fail(run, rv, "the list of inputs is malformed");
    for (uint32_t i = 0; rv == 0 && run->inputs != NULL && i < run->inputs->count; i++)
        rv = look_for_input(w, run, &run->inputs->items[i]);
    return rv;
}

/* Expect the run's own result. */
static int expect_run_result(struct worker *w, struct mu_run *run)
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

void mu__worker_prepare(struct worker *w, struct mu_run *run)
{
    int rv = mu__run_makes(run) ? expect_run_result(w, run) : 0;
    bool is_ready;

    if (rv == 0)
        rv = look_for_inputs(w, run);
    run->code = rv;
    if (rv != 0)
        mu__worker_forget_inputs(w, run);
    is_ready = rv != 0 || run->inputs == NULL || run->inputs->missing == 0;
    mu__worker_list_run(is_ready ? &w->ready : &w->waiting, run);
}

/* The error of a run, for runs that need its result. */
static mu_error get_run_error(const struct worker *w, const struct mu_run *run)
{
    struct mu__result reported = {0};
    mu_error error;

    mu__worker_fill_error(&reported, run);
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

void mu__worker_settle(struct worker *w, struct mu_run *run)
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
        error = get_run_error(w, run);
        mu__pinned_fail(&w->pinned, item, &error);
    } else {
        mu__pinned_forget(&w->pinned, item);
        return;
    }
    answer_waits(w, item);
}

void mu__worker_fail_unknown(struct mu__ctx *ctx, struct worker *w, mu__pid requester,
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
    mu__worker_start_ready(ctx, w);
}

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

/* Whether the sender may have `bytes` more here; else with an error that says why not. */
static bool has_input_room(const struct worker *w, uint32_t owner, uint64_t bytes,
                           mu_error *ret_error)
{
    uint64_t has = mu__pinned_bytes_of(&w->pinned, owner);

    if (w->config.retained_bytes_max == 0 || has + bytes <= w->config.retained_bytes_max)
        return true;
    (void)mu_error_set(ret_error, -MU_EEXHAUSTED,
                       "%s keeps %" PRIu64 " bytes for this chief, and may keep %" PRIu64
                       " (half of its machine's memory): there is no room for %" PRIu64
                       " more",
                       w->config.task, has, w->config.retained_bytes_max, bytes);
    return false;
}

/* Even the error that there is no room needs some. */
static bool is_owner_flooded(struct mu__ctx *ctx, struct worker *w, uint32_t owner)
{
    if (w->config.retained_bytes_max == 0 ||
        mu__pinned_bytes_of(&w->pinned, owner) <=
            w->config.retained_bytes_max + ERRORS_BYTES_MAX)
        return false;
    if (!w->full)
        mu__log(ctx, MU__LOG_ERROR,
                "a chief sends more inputs than may be kept: they are dropped");
    w->full = true;
    return true;
}

/* The content is unpacked once, and then shared by all runs that use it. */
void mu__worker_on_input(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    struct worker *w = state;
    struct mu__input *body = mu__body(msg);
    uint64_t bytes = (uint64_t)body->content.head_size + body->content.tail_size;
    struct mu__pinned_item *item;
    mu_value *value = NULL;
    mu_error error;

    if (body->input == 0 ||
        (bytes >= LATE_BYTES &&
         mu__pinned_take_note(&w->pinned, msg->from.node, body->input)) ||
        is_owner_flooded(ctx, w, msg->from.node))
        return;
    item = mu__pinned_expect(&w->pinned, msg->from.node, body->input);
    if (item == NULL)
        mu__log(ctx, MU__LOG_ERROR, "out of memory: an input is lost");
    if (item == NULL || item->state == MU__PINNED_READY ||
        item->state == MU__PINNED_FAILED)
        return;
    if (has_input_room(w, msg->from.node, bytes, &error) &&
        read_input(body, &value, &error) == 0)
        mu__pinned_succeed(&w->pinned, item, value, bytes);
    else
        mu__pinned_fail(&w->pinned, item, &error);
    answer_waits(w, item);
    mu__worker_start_ready(ctx, w);
}

void mu__worker_on_drop(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    struct worker *w = state;
    struct mu__drop *body = mu__body(msg);

    (void)ctx;
    mu__pinned_drop(&w->pinned, msg->from.node, body->input);
}

static int send_pulled_error(struct mu__ctx *ctx, mu__pid to, uint64_t number,
                             const mu_error *error)
{
    const struct mu__pulled body = {
        .input = number,
        .code = (uint32_t)-error->code,
        .message = mu__view_str(error->message),
    };

    return mu__send_body(ctx, to, MU__PULLED, &body, sizeof body);
}

static int send_pulled(struct mu__ctx *ctx, mu__pid to,
                       const struct mu__pinned_item *item)
{
    struct mu__pulled body = {.input = item->number};
    struct mu__buf *packed = mu__pack_value(item->value, &body.content);
    int rv;

    if (packed == NULL)
        return -MU_ENOMEM;
    rv = mu__send_backed(ctx, to, MU__PULLED, &body, sizeof body, packed);
    mu__buf_unref(packed);
    return rv;
}

/* 0 when the item can be sent; else the error for the chief. */
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
    if (item->bytes > MU__VALUE_BYTES_MAX)
        return mu_error_set(error, -MU_EEXHAUSTED,
                            "it has %" PRIu64 " bytes, and at most %d can be sent",
                            item->bytes, MU__VALUE_BYTES_MAX);
    return 0;
}

void mu__worker_on_pull(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    struct worker *w = state;
    struct mu__pull *body = mu__body(msg);
    const struct mu__pinned_item *item =
        mu__pinned_find(&w->pinned, msg->from.node, body->input);
    mu_error error;
    int rv = check_pull(w, item, &error);

    if (rv == 0)
        rv = send_pulled(ctx, msg->from, item);
    else
        rv = send_pulled_error(ctx, msg->from, body->input, &error);
    if (rv == -MU_ENOMEM) {
        (void)mu_error_set(&error, -MU_EEXHAUSTED, "it cannot be sent: %s",
                           mu_strerror(rv));
        (void)send_pulled_error(ctx, msg->from, body->input, &error);
    }
}
