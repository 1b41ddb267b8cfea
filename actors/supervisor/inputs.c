/* The inputs of closures: pinned results and per-worker values that they name. */
#include "actors/supervisor/inputs.h"

#include "actors/supervisor/actions.h"
#include "actors/supervisor/builds.h"
#include "actors/supervisor/handlers.h"
#include "actors/supervisor/roles.h"
#include "runtime/message/unpack.h"

#include <inttypes.h>
#include <stdio.h>

void mu__sup_send_input(struct mu__ctx *ctx, uint32_t node, uint64_t number,
                        const struct mu__packed *content, struct mu__buf *backing)
{
    const struct mu__input body = {.input = number, .content = *content};

    (void)mu__send_backed(ctx, (mu__pid){node, MU__WORKER}, MU__INPUT, &body, sizeof body,
                          backing);
}

void mu__sup_send_drop(struct mu__ctx *ctx, uint32_t node, uint64_t number)
{
    const struct mu__drop body = {.input = number};

    (void)mu__send_body(ctx, (mu__pid){node, MU__WORKER}, MU__DROP, &body, sizeof body);
}

void mu__sup_on_release(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    struct supervisor *s = state;
    const struct mu__release *body = mu__body(msg);
    struct pinned_result *pinned = mu__pinned_results_find(&s->pinned, body->input);
    struct per_worker *pw = mu__sup_per_worker_find(s, body->input);

    if (pinned != NULL && mu__pid_equal(pinned->client, msg->from)) {
        pinned->released = true;
        mu__sup_review_use(s, pinned);
    }
    if (pw != NULL)
        mu__sup_per_worker_release(ctx, s, pw, msg->from);
}

static int use_input(struct mu__ctx *ctx, struct supervisor *s,
                     struct mu__closure *closure, struct closure_extra *extra,
                     uint64_t number, mu_error *ret_error)
{
    struct pinned_result *pinned = mu__pinned_results_find(&s->pinned, number);
    struct per_worker *pw = mu__sup_per_worker_find(s, number);
    int rv;

    if (pinned == NULL && pw == NULL) {
        rv = mu_error_set(ret_error, -MU_ENOTFOUND,
                          "input %" PRIu64 " is not there any more",
                          number & ~MU__PER_WORKER_BIT);
        ret_error->kind = MU_ERROR_INPUT;
        return rv;
    }
    if (pinned != NULL && pinned->holder == 0 && pinned->backing == NULL) {
        if (!mu__pinned_result_add_waiting(pinned, mu__closure_id(closure)))
            return mu_error_set(ret_error, -MU_ENOMEM, "out of memory");
        extra->inputs.missing++;
        mu__sup_pinned_request(ctx, s, pinned);
    }
    if (pinned != NULL)
        pinned->users++;
    else
        pw->sent.users++;
    if (extra->inputs.has_many)
        extra->inputs.many[extra->inputs.count] = number;
    else
        extra->inputs.one = number;
    extra->inputs.count++;
    return 0;
}

static uint64_t input_at(struct mu__view inputs, uint32_t i)
{
    return mu__load_little64((const uint8_t *)inputs.data + (size_t)8 * i);
}

int mu__sup_take_inputs(struct mu__ctx *ctx, struct supervisor *s,
                        struct mu__closure *closure, struct mu__view inputs,
                        mu_error *ret_error)
{
    struct closure_extra *extra = mu__sup_extra(s, closure);
    uint32_t count = inputs.size / 8;

    if (count == 0)
        return 0;
    if (count > 1) {
        uint64_t *many = NULL;

        if (!mu__grow_array((void **)&many, count, sizeof *many))
            return mu_error_set(ret_error, -MU_ENOMEM, "out of memory");
        extra->inputs.many = many;
        extra->inputs.has_many = true;
    }
    for (uint32_t i = 0; i < count; i++) {
        int rv = use_input(ctx, s, closure, extra, input_at(inputs, i), ret_error);

        if (rv != 0)
            return rv;
    }
    return 0;
}

void mu__sup_drop_inputs(struct mu__ctx *ctx, struct supervisor *s,
                         struct closure_extra *extra)
{
    const uint64_t *inputs = mu__closure_extra_inputs(extra);
    uint32_t count = extra->inputs.count;

    extra->inputs.count = 0;
    for (uint32_t i = 0; i < count; i++) {
        struct pinned_result *pinned = mu__pinned_results_find(&s->pinned, inputs[i]);
        struct per_worker *pw = mu__sup_per_worker_find(s, inputs[i]);

        if (pinned != NULL) {
            pinned->users--;
            mu__sup_review_use(s, pinned);
        }
        if (pw != NULL) {
            pw->sent.users--;
            mu__sup_per_worker_remove_unused(ctx, s, pw);
        }
    }
    if (extra->inputs.has_many)
        mu__free_array(extra->inputs.many);
    extra->inputs.has_many = false;
}

bool mu__sup_inputs_are_there(const struct supervisor *s, struct mu__view inputs)
{
    for (uint32_t i = 0; i < inputs.size / 8; i++)
        if (mu__sup_per_worker_find(s, input_at(inputs, i)) == NULL)
            return false;
    return true;
}

bool mu__sup_inputs_outlive(const struct supervisor *s, const struct closure_extra *extra)
{
    for (uint32_t i = 0; i < extra->inputs.count; i++) {
        const struct per_worker *pw =
            mu__sup_per_worker_find(s, mu__closure_extra_inputs(extra)[i]);

        if (pw == NULL || !pw->is_shared)
            return false;
    }
    return true;
}

bool mu__sup_inputs_have_room(struct supervisor *s, const struct closure_extra *extra)
{
    uint32_t count = 0;
    uint64_t bytes = 0;

    for (uint32_t i = 0; i < extra->inputs.count; i++) {
        const struct per_worker *pw =
            mu__sup_per_worker_find(s, mu__closure_extra_inputs(extra)[i]);

        count += !pw->sent.is_listed;
        bytes += pw->sent.is_listed ? 0 : pw->sent.bytes;
    }
    return count == 0 || mu__sent_bodies_make_room(&s->journal.bodies, count, bytes);
}

uint32_t mu__sup_inputs_worker(const struct supervisor *s,
                               const struct closure_extra *extra)
{
    for (uint32_t i = 0; i < extra->inputs.count; i++) {
        const struct pinned_result *pinned =
            mu__pinned_results_find(&s->pinned, mu__closure_extra_inputs(extra)[i]);

        if (pinned != NULL && pinned->holder != 0 && pinned->backing == NULL)
            return pinned->holder;
    }
    return 0;
}

static void bring_content(struct mu__ctx *ctx, struct pinned_result *pinned,
                          uint32_t node)
{
    if (mu__pinned_result_was_sent(pinned, node))
        return;
    mu__pinned_result_note_sent(pinned, node);
    mu__sup_send_input(ctx, node, pinned->number, &pinned->content, pinned->backing);
}

/* Whether an input is a per-worker value without an item for this worker. */
static bool lacks_item(const struct supervisor *s, const struct closure_extra *extra,
                       const struct mu__member_worker *worker)
{
    for (uint32_t i = 0; i < extra->inputs.count; i++) {
        const struct per_worker *pw =
            mu__sup_per_worker_find(s, mu__closure_extra_inputs(extra)[i]);

        if (pw != NULL && pw->values != NULL &&
            mu__sup_per_worker_item(s, pw->values, worker) == NULL)
            return true;
    }
    return false;
}

/* Whether an input is a per-worker value whose build was given up on this worker. */
static bool lacks_build(const struct supervisor *s, const struct closure_extra *extra,
                        const struct mu__member_worker *worker, char *text, size_t size)
{
    for (uint32_t i = 0; i < extra->inputs.count; i++) {
        const struct per_worker *pw =
            mu__sup_per_worker_find(s, mu__closure_extra_inputs(extra)[i]);

        if (pw != NULL && mu__sup_build_given_up(s, pw, worker->number, text, size))
            return true;
    }
    return false;
}

int mu__sup_bring_inputs(struct mu__ctx *ctx, struct supervisor *s,
                         struct mu__closure *closure, struct mu__member_worker *worker)
{
    struct closure_extra *extra = mu__sup_extra(s, closure);
    char text[256];

    if (lacks_build(s, extra, worker, text, sizeof text)) {
        struct closure_outcome outcome = {.code = -MU_EABORTED, .kind = MU_ERROR_INPUT};
        const struct task_text task = mu__sup_task(s, worker);

        outcome.message = mu__view_str(text);
        outcome.task = mu__view_str(task.text);
        mu__sup_resolve(ctx, s, closure, &outcome);
        return -MU_EABORTED;
    }
    if (lacks_item(s, extra, worker)) {
        (void)snprintf(text, sizeof text, "a per-worker value has no item for %s",
                       mu__sup_task(s, worker).text);
        mu__sup_resolve_error(ctx, s, closure, -MU_ENOTFOUND, MU_ERROR_INPUT, text);
        return -MU_ENOTFOUND;
    }
    extra->inputs.missing = 0;
    for (uint32_t i = 0; i < extra->inputs.count; i++) {
        struct pinned_result *pinned =
            mu__pinned_results_find(&s->pinned, mu__closure_extra_inputs(extra)[i]);

        if (pinned == NULL || pinned->holder == worker->number)
            continue;
        if (pinned->backing != NULL)
            bring_content(ctx, pinned, worker->node);
        else if (mu__pinned_result_add_waiting(pinned, extra->closure))
            extra->inputs.missing++;
    }
    if (extra->inputs.missing == 0)
        return 0;
    mu__sup_hold(s, closure);
    for (uint32_t i = 0; i < extra->inputs.count; i++) {
        struct pinned_result *pinned =
            mu__pinned_results_find(&s->pinned, mu__closure_extra_inputs(extra)[i]);

        if (pinned != NULL && pinned->backing == NULL && pinned->holder != worker->number)
            mu__sup_pinned_request(ctx, s, pinned);
    }
    return -MU_EAGAIN;
}

void mu__sup_inputs_client_lost(struct mu__ctx *ctx, struct supervisor *s, mu__pid client)
{
    for (size_t i = 0; i < s->pinned.by_number.capacity; i++) {
        struct pinned_result *pinned = s->pinned.by_number.entries[i].value;

        if (s->pinned.by_number.entries[i].key == 0 ||
            !mu__pid_equal(pinned->client, client))
            continue;
        pinned->released = true;
        mu__sup_review_use(s, pinned);
    }
    mu__sup_per_worker_client_lost(ctx, s, client);
}

void mu__sup_inputs_done(struct supervisor *s)
{
    mu__pinned_results_done(&s->pinned);
    mu__sup_per_worker_done(s);
}
