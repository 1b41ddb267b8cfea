/* Results pinned on the workers that made them.
 *
 * A pinned result has a closure in list MU__LIST_PINNED, which can compute it again. It
 * is at its holder, or was pulled to the chief, or is lost; a lost one is computed again
 * when it is needed, and not before. Whatever waits for it is in its lists: closures by
 * their ids, fetches by their tokens. It is removed when its client has released it and
 * no closure has it among its inputs. */
#include "actors/supervisor/actions.h"
#include "actors/supervisor/handlers.h"
#include "actors/supervisor/inputs.h"
#include "actors/supervisor/unread.h"

#include <inttypes.h>

/* ---- Fetches and closures that wait ---- */

static void answer_fetch(struct mu__ctx *ctx, struct supervisor *s, mu__pid to,
                         uint64_t token, uint64_t number,
                         const struct closure_outcome *outcome)
{
    struct mu__fetched body = {
        .token = token, .input = number, .code = (uint32_t)-outcome->code};

    if (outcome->code != 0) {
        body.error_kind = outcome->kind;
        body.message = outcome->message;
        body.task = outcome->task;
        (void)mu__send_body(ctx, to, MU__FETCHED, &body, sizeof body);
        return;
    }
    body.content = outcome->result;
    (void)mu__sup_send_result(ctx, s, to,
                              mu__msg_backed(ctx, MU__FETCHED, &body, sizeof body,
                                             outcome->backing));
}

static void answer_fetchers(struct mu__ctx *ctx, struct supervisor *s,
                            struct pinned_result *pinned,
                            const struct closure_outcome *outcome)
{
    while (pinned->fetches != NULL) {
        struct pinned_fetch *fetcher = pinned->fetches;

        pinned->fetches = fetcher->next;
        answer_fetch(ctx, s, fetcher->pid, fetcher->token, pinned->number, outcome);
        mu__free_array(fetcher);
    }
}

/* Closures that waited for the result go on; with an `outcome` they end with that
 * error. */
static void serve_waiting(struct mu__ctx *ctx, struct supervisor *s,
                          struct pinned_result *pinned,
                          const struct closure_outcome *outcome)
{
    uint64_t *waiting = pinned->waiting;
    uint32_t count = pinned->waiting_count;

    pinned->waiting = NULL;
    pinned->waiting_count = pinned->waiting_size = 0;
    for (uint32_t i = 0; i < count; i++) {
        struct mu__closure *closure = mu__closures_find(&s->closures, waiting[i]);
        struct closure_extra *extra = closure == NULL ? NULL : mu__sup_extra(s, closure);

        if (extra == NULL || extra->inputs.missing == 0)
            continue;
        extra->inputs.missing--;
        if (outcome != NULL) {
            extra->inputs.missing = 0;
            mu__sup_resolve(ctx, s, closure, outcome);
        } else if (extra->inputs.missing == 0 && closure->list == MU__LIST_HELD) {
            mu__sup_queue_first(ctx, s, closure);
        }
    }
    mu__free_array(waiting);
}

/* ---- Pulling and computing anew ---- */

static void pull_pinned(struct mu__ctx *ctx, struct supervisor *s,
                        struct pinned_result *pinned)
{
    const struct mu__member_worker *worker =
        mu__membership_get(&s->members, pinned->holder);
    const struct mu__pull body = {.input = pinned->number};

    if (pinned->pulling || worker == NULL)
        return;
    pinned->pulling = true;
    (void)mu__send_body(ctx, (mu__pid){worker->node, MU__WORKER}, MU__PULL, &body,
                        sizeof body);
}

/* The result's closure is queued again. It may lack inputs of its own: these are
 * requested when it is about to be given out, so that a chain is computed step by
 * step. */
static void recompute_pinned(struct mu__ctx *ctx, struct supervisor *s,
                             struct pinned_result *pinned)
{
    struct mu__closure *closure = mu__closures_find(&s->closures, pinned->number);

    if (pinned->computing)
        return;
    pinned->computing = true;
    s->counts.args_bytes += mu__closure_bytes(closure);
    mu__log(ctx, MU__LOG_INFO,
            "the result of closure %" PRIu64 " is lost: it is computed again",
            pinned->number);
    if (s->watchdog.timer == 0)
        mu__sup_watchdog_watch(ctx, s);
    mu__sup_queue_first(ctx, s, closure);
}

void mu__sup_pinned_request(struct mu__ctx *ctx, struct supervisor *s,
                            struct pinned_result *pinned)
{
    if (pinned->holder != 0)
        pull_pinned(ctx, s, pinned);
    else
        recompute_pinned(ctx, s, pinned);
}

/* ---- Adding and removing ---- */

bool mu__sup_pin_result(struct supervisor *s, const struct mu__closure *closure,
                        uint32_t number)
{
    if (mu__pinned_results_add(&s->pinned, mu__closure_id(closure),
                               s->clients.items[closure->client].pid, number) == NULL)
        return false;
    mu__membership_step_back(&s->members, number);
    return true;
}

static void drop_copies(struct mu__ctx *ctx, const struct supervisor *s,
                        const struct pinned_result *pinned)
{
    const struct mu__member_worker *worker =
        mu__membership_get(&s->members, pinned->holder);

    if (worker != NULL)
        mu__sup_send_drop(ctx, worker->node, pinned->number);
    for (uint32_t i = 0; i < pinned->sent_count; i++)
        if (worker == NULL || pinned->sent[i] != worker->node)
            mu__sup_send_drop(ctx, pinned->sent[i], pinned->number);
}

static void remove_pinned(struct mu__ctx *ctx, struct supervisor *s,
                          struct pinned_result *pinned)
{
    struct mu__closure *closure = mu__closures_find(&s->closures, pinned->number);

    drop_copies(ctx, s, pinned);
    if (pinned->computing) {
        mu__sup_finish_attempts(ctx, s, closure, 0);
        s->counts.args_bytes -= mu__closure_bytes(closure);
    }
    mu__sup_drop_extra(ctx, s, closure);
    mu__sup_remove(s, closure);
    mu__pinned_results_remove(&s->pinned, pinned);
}

/* Removing one may leave others without a use: a loop and no recursion, since chains may
 * be long. */
void mu__sup_remove_unused_results(struct mu__ctx *ctx, struct supervisor *s)
{
    while (s->pinned.unused != NULL) {
        struct pinned_result *pinned = s->pinned.unused;

        s->pinned.unused = pinned->next_unused;
        if (pinned->users == 0)
            remove_pinned(ctx, s, pinned);
        else
            pinned->is_unused = false;
    }
}

void mu__sup_review_use(struct supervisor *s, struct pinned_result *pinned)
{
    if (pinned->is_unused || !pinned->released || pinned->users > 0)
        return;
    pinned->is_unused = true;
    pinned->next_unused = s->pinned.unused;
    s->pinned.unused = pinned;
}

bool mu__sup_recomputed(struct mu__ctx *ctx, struct supervisor *s,
                        struct mu__closure *closure,
                        const struct closure_outcome *outcome, uint32_t number)
{
    struct pinned_result *pinned =
        mu__pinned_results_find(&s->pinned, mu__closure_id(closure));
    struct closure_outcome failure = *outcome;

    if (pinned == NULL || !pinned->computing)
        return false;
    pinned->computing = false;
    s->counts.args_bytes -= mu__closure_bytes(closure);
    mu__closures_move_last(&s->closures, closure, MU__LIST_PINNED);
    pinned->holder = outcome->code == 0 ? number : 0;
    if (outcome->code == 0) {
        serve_waiting(ctx, s, pinned, NULL);
        if (pinned->fetches != NULL)
            pull_pinned(ctx, s, pinned);
    } else {
        failure.kind = MU_ERROR_INPUT;
        answer_fetchers(ctx, s, pinned, &failure);
        serve_waiting(ctx, s, pinned, &failure);
    }
    return true;
}

static struct closure_outcome get_pinned_outcome(const struct pinned_result *pinned)
{
    return (struct closure_outcome){.result = pinned->content,
                                    .backing = pinned->backing};
}

void mu__sup_on_fetch(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    struct supervisor *s = state;
    const struct mu__fetch *body = mu__body(msg);
    struct pinned_result *pinned = mu__pinned_results_find(&s->pinned, body->input);
    const struct closure_outcome unknown = {
        .code = -MU_ENOTFOUND,
        .kind = MU_ERROR_INPUT,
        .message = mu__view_str("the chief no longer has that result"),
    };
    struct closure_outcome there;

    if (pinned != NULL && pinned->backing != NULL) {
        there = get_pinned_outcome(pinned);
        answer_fetch(ctx, s, msg->from, body->token, body->input, &there);
        return;
    }
    if (pinned == NULL || !mu__pinned_result_add_fetch(pinned, msg->from, body->token)) {
        answer_fetch(ctx, s, msg->from, body->token, body->input, &unknown);
        return;
    }
    mu__sup_pinned_request(ctx, s, pinned);
}

/* An empty content gets a buffer too: `backing` shows that the content is here. */
static bool store_pulled_content(struct pinned_result *pinned,
                                 const struct mu__pulled *body)
{
    if (body->content.head_size == 0 && body->content.tail_size == 0) {
        pinned->backing = mu__buf_new(1);
        pinned->content = (struct mu__packed){0};
    } else {
        pinned->backing = mu__pack_copy(&body->content, &pinned->content);
    }
    return pinned->backing != NULL;
}

void mu__sup_on_pulled(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    struct supervisor *s = state;
    const struct mu__pulled *body = mu__body(msg);
    struct pinned_result *pinned = mu__pinned_results_find(&s->pinned, body->input);
    const struct mu__member_worker *worker =
        pinned == NULL ? NULL : mu__membership_get(&s->members, pinned->holder);
    struct closure_outcome there;

    if (worker == NULL || worker->node != msg->from.node || !pinned->pulling)
        return;
    pinned->pulling = false;
    if (body->code != 0 || !store_pulled_content(pinned, body)) {
        pinned->holder = 0;
        recompute_pinned(ctx, s, pinned);
    } else {
        there = get_pinned_outcome(pinned);
        answer_fetchers(ctx, s, pinned, &there);
        serve_waiting(ctx, s, pinned, NULL);
    }
}

/* ---- Losses ---- */

void mu__sup_drop_stale(struct mu__ctx *ctx, struct supervisor *s, uint32_t node,
                        uint64_t number)
{
    const struct mu__closure *closure = mu__closures_find(&s->closures, number);
    const struct pinned_result *pinned = mu__pinned_results_find(&s->pinned, number);
    const struct mu__member_worker *worker = mu__membership_by_node(&s->members, node);

    if (worker == NULL ||
        (pinned != NULL && (pinned->holder == worker->number ||
                            mu__pinned_result_was_sent(pinned, node))) ||
        (closure != NULL && mu__list_worker(closure->list) == worker->number))
        return;
    mu__sup_send_drop(ctx, node, number);
}

void mu__sup_pinned_lost(struct mu__ctx *ctx, struct supervisor *s, uint32_t number)
{
    for (size_t i = 0; i < s->pinned.by_number.capacity; i++) {
        struct pinned_result *pinned = s->pinned.by_number.entries[i].value;

        if (s->pinned.by_number.entries[i].key == 0 || pinned->holder != number)
            continue;
        pinned->holder = 0;
        pinned->pulling = false;
        if (pinned->backing == NULL &&
            (pinned->waiting_count > 0 || pinned->fetches != NULL))
            recompute_pinned(ctx, s, pinned);
    }
}
