/* What closures get besides their arguments: results that were kept on workers, and
 * per-worker values.
 *
 * A kept result has a closure in the list of the kept ones, which knows how to compute it
 * again. It is at its holder, or was pulled to the chief, or is lost; a lost one is
 * computed again when somebody wants it, and not before. Who wants it waits in its list:
 * closures by their ids, fetches by their tokens. It goes when its client has released it
 * and no closure has it among its inputs. */
#include "actors/supervisor/builds.h"
#include "runtime/message/unpack.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

struct fetcher {
    struct fetcher *next;
    mu__pid pid;
    uint64_t token;
};

struct pinned_result {
    uint64_t number;            /* the id of its closure */
    mu__pid client;
    uint32_t holder;            /* number of the worker that has it; 0: none */
    uint32_t users;             /* closures that have it among their inputs */
    bool released;
    bool computing;             /* its closure is queued or in flight */
    bool pulling;
    bool leaving;               /* in the list of those that go */
    struct pinned_result *next_leaving;
    struct mu__buf *backing;    /* of the content that was pulled; NULL: none */
    struct mu__packed content;
    struct fetcher *fetchers;
    uint64_t *waiting;          /* closures, perhaps gone by now */
    uint32_t waiting_count;
    uint32_t waiting_size;
    uint32_t *sent;             /* nodes that got the content as an INPUT */
    uint32_t sent_count;
    uint32_t sent_size;
};

/* ---- Messages ---- */

static void send_input(struct mu__ctx *ctx, uint32_t node, uint64_t number,
                       const struct mu__packed *content, struct mu__buf *backing)
{
    struct mu__msg *msg = mu__msg_new(ctx, MU__INPUT);

    if (msg != NULL) {
        struct mu__input *body = mu__body(msg);

        body->input = number;
        body->content = *content;
        if (backing != NULL)
            msg->backing = mu__buf_ref(backing);
    }
    (void)mu__send(ctx, (mu__pid){node, MU__WORKER}, msg);
}

static void send_drop(struct mu__ctx *ctx, uint32_t node, uint64_t number)
{
    struct mu__msg *msg = mu__msg_new(ctx, MU__DROP);

    if (msg != NULL)
        ((struct mu__drop *)mu__body(msg))->input = number;
    (void)mu__send(ctx, (mu__pid){node, MU__WORKER}, msg);
}

static void answer_fetch(struct mu__ctx *ctx, mu__pid to, uint64_t token, uint64_t number,
                         const struct outcome *outcome)
{
    struct mu__msg *msg = mu__msg_new(ctx, MU__FETCHED);

    if (msg != NULL) {
        struct mu__fetched *body = mu__body(msg);

        body->token = token;
        body->input = number;
        body->code = (uint32_t)-outcome->code;
        if (outcome->code == 0) {
            body->content = outcome->result;
            if (outcome->backing != NULL)
                msg->backing = mu__buf_ref(outcome->backing);
        } else {
            size_t size = (size_t)outcome->message.size + outcome->task.size;

            body->error_kind = outcome->kind;
            msg->backing = mu__buf_new(size);
            if (msg->backing != NULL) {
                body->message = outcome->message;
                body->task = outcome->task;
                (void)mu__pack_view(mu__pack_view(msg->backing->data, &body->message),
                                    &body->task);
            }
        }
    }
    (void)mu__send(ctx, to, msg);
}

/* ---- Kept results: those who wait ---- */

static bool append_waiting(struct pinned_result *pinned, uint64_t closure)
{
    if (pinned->waiting_count == pinned->waiting_size) {
        uint32_t size = pinned->waiting_size * 2 + 4;

        if (!mu__grow_array((void **)&pinned->waiting, size, sizeof *pinned->waiting))
            return false;
        pinned->waiting_size = size;
    }
    pinned->waiting[pinned->waiting_count++] = closure;
    return true;
}

static void answer_fetchers(struct mu__ctx *ctx, struct pinned_result *pinned,
                            const struct outcome *outcome)
{
    while (pinned->fetchers != NULL) {
        struct fetcher *fetcher = pinned->fetchers;

        pinned->fetchers = fetcher->next;
        answer_fetch(ctx, fetcher->pid, fetcher->token, pinned->number, outcome);
        mu__free_array(fetcher);
    }
}

/* Closures that waited for this one: `outcome` NULL when it is there. */
static void serve_waiting(struct mu__ctx *ctx, struct supervisor *s,
                          struct pinned_result *pinned, const struct outcome *outcome)
{
    uint64_t *waiting = pinned->waiting;
    uint32_t count = pinned->waiting_count;

    pinned->waiting = NULL;
    pinned->waiting_count = pinned->waiting_size = 0;
    for (uint32_t i = 0; i < count; i++) {
        struct mu__closure *closure = mu__closures_find(&s->closures, waiting[i]);
        struct closure_extra *extra = closure == NULL ? NULL : mu__sup_extra(s, closure);

        if (extra == NULL || extra->inputs_missing == 0)
            continue;
        extra->inputs_missing--;
        if (outcome != NULL) {
            extra->inputs_missing = 0;
            mu__sup_resolve(ctx, s, closure, outcome);
        } else if (extra->inputs_missing == 0 && closure->list == MU__LIST_HELD) {
            mu__sup_queue_first(ctx, s, closure);
        }
    }
    mu__free_array(waiting);
}

static bool was_sent(const struct pinned_result *pinned, uint32_t node)
{
    for (uint32_t i = 0; i < pinned->sent_count; i++)
        if (pinned->sent[i] == node)
            return true;
    return false;
}

/* ---- Kept results: pulling and computing anew ---- */

static void pull(struct mu__ctx *ctx, struct supervisor *s, struct pinned_result *pinned)
{
    const struct mu__member_worker *worker =
        mu__membership_get(&s->members, pinned->holder);
    struct mu__msg *msg;

    if (pinned->pulling || worker == NULL)
        return;
    pinned->pulling = true;
    msg = mu__msg_new(ctx, MU__PULL);
    if (msg != NULL)
        ((struct mu__pull *)mu__body(msg))->input = pinned->number;
    (void)mu__send(ctx, (mu__pid){worker->node, MU__WORKER}, msg);
}

static struct pinned_result *pinned_of(const struct supervisor *s, uint64_t number)
{
    if (number == 0 || (number & MU__PER_WORKER_BIT) != 0)
        return NULL;
    return mu__map_get(&s->pinned_results, number);
}

static struct per_worker *per_worker_of(const struct supervisor *s, uint64_t number)
{
    if ((number & MU__PER_WORKER_BIT) == 0)
        return NULL;
    return mu__map_get(&s->per_worker, number);
}

/* Its closure goes to its queue, or waits for inputs of its own: at most one step of the
 * chain is taken here, the next one when that closure is about to be given out. */
static void compute(struct mu__ctx *ctx, struct supervisor *s,
                    struct pinned_result *pinned)
{
    struct mu__closure *closure = mu__closures_find(&s->closures, pinned->number);

    if (pinned->computing)
        return;
    pinned->computing = true;
    s->args_bytes += mu__closure_bytes(closure);
    mu__log(ctx, MU__LOG_INFO, "the result of closure %" PRIu64 " is lost: it is "
            "computed again", pinned->number);
    if (s->watchdog_timer == 0)
        mu__sup_watchdog_watch(ctx, s);
    mu__sup_queue_first(ctx, s, closure);
}

/* Somebody wants it who cannot have it now. */
static void request_content(struct mu__ctx *ctx, struct supervisor *s,
                            struct pinned_result *pinned)
{
    if (pinned->holder != 0)
        pull(ctx, s, pinned);
    else
        compute(ctx, s, pinned);
}

/* ---- Kept results: coming and going ---- */

bool mu__sup_pin_result(struct mu__ctx *ctx, struct supervisor *s,
                        struct mu__closure *closure, uint32_t number)
{
    struct pinned_result *pinned = NULL;

    (void)ctx;
    if (!mu__grow_array((void **)&pinned, 1, sizeof *pinned))
        return false;
    *pinned = (struct pinned_result){
        .number = mu__closure_id(closure),
        .client = s->clients[closure->client].pid,
        .holder = number,
    };
    if (mu__map_set(&s->pinned_results, pinned->number, pinned) != 0) {
        mu__free_array(pinned);
        return false;
    }
    mu__membership_step_back(&s->members, number);
    return true;
}

static void pinned_free(struct pinned_result *pinned)
{
    while (pinned->fetchers != NULL) {
        struct fetcher *next = pinned->fetchers->next;

        mu__free_array(pinned->fetchers);
        pinned->fetchers = next;
    }
    mu__buf_unref(pinned->backing);
    mu__free_array(pinned->waiting);
    mu__free_array(pinned->sent);
    mu__free_array(pinned);
}

static void drop_copies(struct mu__ctx *ctx, const struct supervisor *s,
                        const struct pinned_result *pinned)
{
    const struct mu__member_worker *worker =
        mu__membership_get(&s->members, pinned->holder);

    if (worker != NULL)
        send_drop(ctx, worker->node, pinned->number);
    for (uint32_t i = 0; i < pinned->sent_count; i++)
        if (worker == NULL || pinned->sent[i] != worker->node)
            send_drop(ctx, pinned->sent[i], pinned->number);
}

static void remove_pinned(struct mu__ctx *ctx, struct supervisor *s,
                          struct pinned_result *pinned)
{
    struct mu__closure *closure = mu__closures_find(&s->closures, pinned->number);

    drop_copies(ctx, s, pinned);
    if (pinned->computing) {
        mu__sup_abandon(ctx, s, closure);
        s->args_bytes -= mu__closure_bytes(closure);
    }
    (void)mu__map_remove(&s->pinned_results, pinned->number);
    mu__sup_drop_extra(ctx, s, closure);
    mu__sup_remove(s, closure);
    pinned_free(pinned);
}

void mu__sup_inputs_pause(struct supervisor *s)
{
    s->walks++;
}

/* One that goes may be the last user of another: no recursion, chains may be long. */
void mu__sup_inputs_resume(struct mu__ctx *ctx, struct supervisor *s)
{
    while (s->walks == 1 && s->leaving != NULL) {
        struct pinned_result *at = s->leaving;

        s->leaving = at->next_leaving;
        remove_pinned(ctx, s, at);
    }
    s->walks--;
}

static void leave(struct mu__ctx *ctx, struct supervisor *s, struct pinned_result *pinned)
{
    if (pinned->leaving || !pinned->released || pinned->users > 0)
        return;
    mu__sup_inputs_pause(s);
    pinned->leaving = true;
    pinned->next_leaving = s->leaving;
    s->leaving = pinned;
    mu__sup_inputs_resume(ctx, s);
}

bool mu__sup_recomputed(struct mu__ctx *ctx, struct supervisor *s,
                        struct mu__closure *closure, const struct outcome *outcome,
                        uint32_t number)
{
    struct pinned_result *pinned = pinned_of(s, mu__closure_id(closure));
    struct outcome failure = *outcome;

    if (pinned == NULL || !pinned->computing)
        return false;
    pinned->computing = false;
    s->args_bytes -= mu__closure_bytes(closure);
    mu__closures_move_last(&s->closures, closure, MU__LIST_PINNED);
    pinned->holder = outcome->code == 0 ? number : 0;
    mu__sup_inputs_pause(s);
    if (outcome->code == 0) {
        serve_waiting(ctx, s, pinned, NULL);
        if (pinned->fetchers != NULL)
            pull(ctx, s, pinned);
    } else {
        failure.kind = MU_ERROR_INPUT;
        answer_fetchers(ctx, pinned, &failure);
        serve_waiting(ctx, s, pinned, &failure);
    }
    mu__sup_inputs_resume(ctx, s);
    return true;
}

static struct outcome content_of(const struct pinned_result *pinned)
{
    return (struct outcome){.result = pinned->content, .backing = pinned->backing};
}

void mu__sup_on_fetch(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    struct supervisor *s = state;
    const struct mu__fetch *body = mu__body(msg);
    struct pinned_result *pinned = pinned_of(s, body->input);
    const struct outcome unknown = {
        .code = -MU_ENOTFOUND,
        .kind = MU_ERROR_INPUT,
        .message = mu__view_str("the chief does not have that result any more"),
    };
    struct fetcher *fetcher = NULL;
    struct outcome there;

    if (pinned != NULL && pinned->backing != NULL) {
        there = content_of(pinned);
        answer_fetch(ctx, msg->from, body->token, body->input, &there);
        return;
    }
    if (pinned == NULL || !mu__grow_array((void **)&fetcher, 1, sizeof *fetcher)) {
        answer_fetch(ctx, msg->from, body->token, body->input, &unknown);
        return;
    }
    *fetcher = (struct fetcher){pinned->fetchers, msg->from, body->token};
    pinned->fetchers = fetcher;
    request_content(ctx, s, pinned);
    mu__sup_dispatch(ctx, s);
}

/* An empty content has a buffer too, by which it is known to be there. */
static bool take_content(struct pinned_result *pinned, const struct mu__pulled *body)
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
    struct pinned_result *pinned = pinned_of(s, body->input);
    const struct mu__member_worker *worker =
        pinned == NULL ? NULL : mu__membership_get(&s->members, pinned->holder);
    struct outcome there;

    if (worker == NULL || worker->node != msg->from.node || !pinned->pulling)
        return;
    pinned->pulling = false;
    if (body->code != 0 || !take_content(pinned, body)) {
        pinned->holder = 0;
        compute(ctx, s, pinned);
    } else {
        there = content_of(pinned);
        answer_fetchers(ctx, pinned, &there);
        serve_waiting(ctx, s, pinned, NULL);
    }
    mu__sup_dispatch(ctx, s);
}

/* ---- Per-worker values ---- */

/* A list for the workers of type "worker", or a map with one for each type. */
static int check_items(const struct supervisor *s, const mu_value *values,
                       mu_error *ret_error)
{
    if (mu_value_type(values) == MU_VALUE_LIST)
        return 0;
    if (mu_value_type(values) != MU_VALUE_MAP)
        return mu_error_set(ret_error, -MU_EINVALID,
                            "per-worker values: expected a list with one item for each "
                            "worker, or a map of such lists by task type");
    for (size_t i = 0; i < mu_value_count(values); i++) {
        const char *type = mu_value_key(values, i);

        if (!mu__worker_types_has(&s->config.types, type))
            return mu_error_set(ret_error, -MU_EINVALID,
                                "per-worker values: \"%.64s\" is no type of tasks that "
                                "run closures (option worker_types of the chief)", type);
        if (mu_value_type(mu_value_at(values, i)) != MU_VALUE_LIST)
            return mu_error_set(ret_error, -MU_EINVALID,
                                "per-worker values: expected a list for type \"%.64s\"",
                                type);
    }
    return 0;
}

/* What a worker is given; NULL: nothing. */
static const mu_value *item_of(const struct supervisor *s, const mu_value *values,
                               const struct mu__member_worker *worker)
{
    const char *type = mu__sup_role_name(s, worker->role);

    if (mu_value_type(values) == MU_VALUE_MAP)
        return mu_value_at(mu_value_find(values, type), worker->index);
    return strcmp(type, MU__WORKER_TYPES) == 0 ? mu_value_at(values, worker->index)
                                               : NULL;
}

static int read_make(struct supervisor *s, const struct mu__per_worker_make *body,
                     struct per_worker *made, mu_error *ret_error)
{
    char why[128] = "out of memory";

    if (body->function.size > 0) {
        made->function = mu__names_take(&s->functions, body->function);
        if (body->args.head_size > 0)
            made->backing = mu__pack_copy(&body->args, &made->args);
        if (made->function == MU__NAME_NONE ||
            (body->args.head_size > 0 && made->backing == NULL))
            return mu_error_set(ret_error, -MU_ENOMEM, "out of memory");
        return 0;
    }
    if (mu__value_unpack(&body->args, why, sizeof why, &made->values) != 0)
        return mu_error_set(ret_error, -MU_EDATALOSS, "the values cannot be read: %s",
                            why);
    return check_items(s, made->values, ret_error);
}

static void per_worker_free(struct supervisor *s, struct per_worker *pw)
{
    mu__names_release(&s->functions, pw->function);
    mu_value_free(pw->values);
    mu__buf_unref(pw->backing);
    mu__free_array(pw->builds);
    mu__free_array(pw);
}

void mu__sup_send_item(struct mu__ctx *ctx, const struct supervisor *s,
                       const struct per_worker *pw,
                       const struct mu__member_worker *worker)
{
    const mu_value *item = item_of(s, pw->values, worker);
    struct mu__packed content = {0};
    struct mu__buf *backing = item == NULL ? NULL : mu__pack_value(item, &content);

    if (backing != NULL)
        send_input(ctx, worker->node, pw->number, &content, backing);
    mu__buf_unref(backing);
}

static void answer_make(struct mu__ctx *ctx, mu__pid to, uint64_t token, uint64_t number,
                        const mu_error *error)
{
    struct mu__msg *msg = mu__msg_new(ctx, MU__PER_WORKER_MADE);

    if (msg != NULL) {
        struct mu__per_worker_made *body = mu__body(msg);

        body->token = token;
        body->input = number;
        body->code = (uint32_t)-error->code;
        if (error->code != 0)
            msg->backing = mu__buf_new(strlen(error->message));
        if (msg->backing != NULL) {
            body->message = mu__view_str(error->message);
            (void)mu__pack_view(msg->backing->data, &body->message);
        }
    }
    (void)mu__send(ctx, to, msg);
}

static struct per_worker *per_worker_new(struct supervisor *s, mu__pid client,
                                         const struct mu__per_worker_make *body,
                                         mu_error *ret_error)
{
    struct per_worker *pw = NULL;

    if (!mu__grow_array((void **)&pw, 1, sizeof *pw)) {
        (void)mu_error_set(ret_error, -MU_ENOMEM, "out of memory");
        return NULL;
    }
    *pw = (struct per_worker){
        .number = MU__PER_WORKER_BIT | (s->per_worker_next + 1),
        .client = client,
        .function = MU__NAME_NONE,
    };
    if (read_make(s, body, pw, ret_error) == 0) {
        if (mu__map_set(&s->per_worker, pw->number, pw) == 0)
            return pw;
        (void)mu_error_set(ret_error, -MU_ENOMEM, "out of memory");
    }
    per_worker_free(s, pw);
    return NULL;
}

void mu__sup_on_per_worker_make(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    struct supervisor *s = state;
    const struct mu__per_worker_make *body = mu__body(msg);
    mu_error error = {.code = 0};
    struct per_worker *pw;

    /* So that it goes when its client does. */
    if (mu__sup_client(s, msg->from) == NULL)
        (void)mu_error_set(&error, -MU_EEXHAUSTED, "the chief has too many clients");
    pw = error.code != 0 ? NULL : per_worker_new(s, msg->from, body, &error);
    answer_make(ctx, msg->from, body->token, pw == NULL ? 0 : pw->number, &error);
    if (pw == NULL)
        return;
    s->per_worker_next++;
    if (s->per_worker_last == NULL)
        s->per_worker_first = pw;
    else
        s->per_worker_last->next = pw;
    s->per_worker_last = pw;
    mu__sup_builds_make(ctx, s, pw);
}

static void unlist(struct supervisor *s, struct per_worker *pw)
{
    struct per_worker **at = &s->per_worker_first;
    struct per_worker *before = NULL;

    while (*at != pw) {
        before = *at;
        at = &before->next;
    }
    *at = pw->next;
    if (s->per_worker_last == pw)
        s->per_worker_last = before;
}

static void drop_per_worker(struct mu__ctx *ctx, struct supervisor *s,
                            struct per_worker *pw)
{
    if (!pw->released || pw->users > 0)
        return;
    for (uint32_t i = 1; i < s->members.workers_size; i++)
        if (mu__membership_get(&s->members, i) != NULL)
            send_drop(ctx, s->members.workers[i].node, pw->number);
    mu__sup_builds_drop(ctx, s, pw);
    unlist(s, pw);
    (void)mu__map_remove(&s->per_worker, pw->number);
    per_worker_free(s, pw);
}

/* ---- Both ---- */

void mu__sup_on_release(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    struct supervisor *s = state;
    const struct mu__release *body = mu__body(msg);
    struct pinned_result *pinned = pinned_of(s, body->input);
    struct per_worker *pw = per_worker_of(s, body->input);

    if (pinned != NULL && mu__pid_equal(pinned->client, msg->from)) {
        pinned->released = true;
        leave(ctx, s, pinned);
    }
    if (pw != NULL && mu__pid_equal(pw->client, msg->from)) {
        pw->released = true;
        drop_per_worker(ctx, s, pw);
    }
}

static int use_input(struct mu__ctx *ctx, struct supervisor *s,
                     struct mu__closure *closure, struct closure_extra *extra,
                     uint64_t number, mu_error *ret_error)
{
    struct pinned_result *pinned = pinned_of(s, number);
    struct per_worker *pw = per_worker_of(s, number);
    int rv;

    if (pinned == NULL && pw == NULL) {
        rv = mu_error_set(ret_error, -MU_ENOTFOUND,
                          "input %" PRIu64 " is not there any more",
                          number & ~MU__PER_WORKER_BIT);
        ret_error->kind = MU_ERROR_INPUT;
        return rv;
    }
    if (pinned != NULL && pinned->holder == 0 && pinned->backing == NULL) {
        if (!append_waiting(pinned, mu__closure_id(closure)))
            return mu_error_set(ret_error, -MU_ENOMEM, "out of memory");
        extra->inputs_missing++;
        request_content(ctx, s, pinned);
    }
    if (pinned != NULL)
        pinned->users++;
    else
        pw->users++;
    if (extra->has_many)
        extra->inputs.many[extra->inputs_count] = number;
    else
        extra->inputs.one = number;
    extra->inputs_count++;
    return 0;
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
        extra->has_many = true;
    }
    for (uint32_t i = 0; i < count; i++) {
        uint64_t number =
            mu__load_little64((const uint8_t *)inputs.data + (size_t)8 * i);
        int rv = use_input(ctx, s, closure, extra, number, ret_error);

        if (rv != 0)
            return rv;
    }
    return 0;
}

void mu__sup_drop_inputs(struct mu__ctx *ctx, struct supervisor *s,
                         struct closure_extra *extra)
{
    const uint64_t *inputs = mu__closure_extra_inputs(extra);
    uint32_t count = extra->inputs_count;

    extra->inputs_count = 0;
    for (uint32_t i = 0; i < count; i++) {
        struct pinned_result *pinned = pinned_of(s, inputs[i]);
        struct per_worker *pw = per_worker_of(s, inputs[i]);

        if (pinned != NULL) {
            pinned->users--;
            leave(ctx, s, pinned);
        }
        if (pw != NULL) {
            pw->users--;
            drop_per_worker(ctx, s, pw);
        }
    }
    if (extra->has_many)
        mu__free_array(extra->inputs.many);
    extra->has_many = false;
}

uint32_t mu__sup_inputs_worker(const struct supervisor *s,
                               const struct closure_extra *extra)
{
    for (uint32_t i = 0; i < extra->inputs_count; i++) {
        const struct pinned_result *pinned =
            pinned_of(s, mu__closure_extra_inputs(extra)[i]);

        if (pinned != NULL && pinned->holder != 0 && pinned->backing == NULL)
            return pinned->holder;
    }
    return 0;
}

static void bring_content(struct mu__ctx *ctx, struct pinned_result *pinned,
                          uint32_t node)
{
    if (was_sent(pinned, node))
        return;
    if (pinned->sent_count == pinned->sent_size) {
        uint32_t size = pinned->sent_size * 2 + 4;

        /* Without a note of it the worker keeps its copy until the chief goes. */
        if (mu__grow_array((void **)&pinned->sent, size, sizeof *pinned->sent))
            pinned->sent_size = size;
    }
    if (pinned->sent_count < pinned->sent_size)
        pinned->sent[pinned->sent_count++] = node;
    send_input(ctx, node, pinned->number, &pinned->content, pinned->backing);
}

/* A closure that needs what its worker was not given a value for. */
static bool lacks_item(const struct supervisor *s, const struct closure_extra *extra,
                       const struct mu__member_worker *worker)
{
    for (uint32_t i = 0; i < extra->inputs_count; i++) {
        const struct per_worker *pw =
            per_worker_of(s, mu__closure_extra_inputs(extra)[i]);

        if (pw != NULL && pw->values != NULL &&
            item_of(s, pw->values, worker) == NULL)
            return true;
    }
    return false;
}

/* One that needs what is not built on its worker any more. */
static bool lacks_build(const struct supervisor *s, const struct closure_extra *extra,
                        const struct mu__member_worker *worker, char *text, size_t size)
{
    for (uint32_t i = 0; i < extra->inputs_count; i++) {
        const struct per_worker *pw =
            per_worker_of(s, mu__closure_extra_inputs(extra)[i]);

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
        struct outcome outcome = {.code = -MU_EABORTED, .kind = MU_ERROR_INPUT};
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
    extra->inputs_missing = 0;
    for (uint32_t i = 0; i < extra->inputs_count; i++) {
        struct pinned_result *pinned = pinned_of(s, mu__closure_extra_inputs(extra)[i]);

        if (pinned == NULL || pinned->holder == worker->number)
            continue;
        if (pinned->backing != NULL)
            bring_content(ctx, pinned, worker->node);
        else if (append_waiting(pinned, extra->closure))
            extra->inputs_missing++;
    }
    if (extra->inputs_missing == 0)
        return 0;
    mu__sup_hold(s, closure);
    for (uint32_t i = 0; i < extra->inputs_count; i++) {
        struct pinned_result *pinned = pinned_of(s, mu__closure_extra_inputs(extra)[i]);

        if (pinned != NULL && pinned->backing == NULL && pinned->holder != worker->number)
            request_content(ctx, s, pinned);
    }
    return -MU_EAGAIN;
}

/* ---- Losses ---- */

void mu__sup_drop_stale(struct mu__ctx *ctx, struct supervisor *s, uint32_t node,
                        uint64_t number)
{
    const struct mu__closure *closure = mu__closures_find(&s->closures, number);
    const struct pinned_result *pinned = pinned_of(s, number);
    const struct mu__member_worker *worker = mu__membership_by_node(&s->members, node);

    if (worker == NULL ||
        (pinned != NULL &&
         (pinned->holder == worker->number || was_sent(pinned, node))) ||
        (closure != NULL && mu__list_worker(closure->list) == worker->number))
        return;
    send_drop(ctx, node, number);
}

void mu__sup_inputs_lost(struct mu__ctx *ctx, struct supervisor *s, uint32_t number)
{
    mu__sup_inputs_pause(s);
    for (size_t i = 0; i < s->pinned_results.capacity; i++) {
        struct pinned_result *pinned = s->pinned_results.entries[i].value;

        if (s->pinned_results.entries[i].key == 0 || pinned->holder != number)
            continue;
        pinned->holder = 0;
        pinned->pulling = false;
        if (pinned->backing == NULL &&
            (pinned->waiting_count > 0 || pinned->fetchers != NULL))
            compute(ctx, s, pinned);
    }
    mu__sup_inputs_resume(ctx, s);
}

void mu__sup_inputs_client_lost(struct mu__ctx *ctx, struct supervisor *s, mu__pid client)
{
    struct per_worker *pw = s->per_worker_first;

    mu__sup_inputs_pause(s);
    for (size_t i = 0; i < s->pinned_results.capacity; i++) {
        struct pinned_result *pinned = s->pinned_results.entries[i].value;

        if (s->pinned_results.entries[i].key == 0 ||
            !mu__pid_equal(pinned->client, client))
            continue;
        pinned->released = true;
        leave(ctx, s, pinned);
    }
    mu__sup_inputs_resume(ctx, s);
    while (pw != NULL) {
        struct per_worker *next = pw->next;

        if (mu__pid_equal(pw->client, client)) {
            pw->released = true;
            drop_per_worker(ctx, s, pw);
        }
        pw = next;
    }
}

void mu__sup_inputs_done(struct supervisor *s)
{
    for (size_t i = 0; i < s->pinned_results.capacity; i++)
        if (s->pinned_results.entries[i].key != 0)
            pinned_free(s->pinned_results.entries[i].value);
    mu__map_done(&s->pinned_results);
    while (s->per_worker_first != NULL) {
        struct per_worker *next = s->per_worker_first->next;

        per_worker_free(s, s->per_worker_first);
        s->per_worker_first = next;
    }
    mu__map_done(&s->per_worker);
}

mu_value *mu__sup_inputs_value(const struct supervisor *s)
{
    mu_value *list = mu_value_list();
    char name[MU__FUNCTION_NAME_MAX + 1];

    for (const struct per_worker *pw = s->per_worker_first; pw != NULL; pw = pw->next) {
        mu_value *map = mu_value_map();

        name[0] = '\0';
        if (pw->function != MU__NAME_NONE)
            mu__view_copy(mu__names_view(&s->functions, pw->function), name,
                          sizeof name);
        (void)mu_value_set(map, "number",
                           mu_value_int((int64_t)(pw->number & ~MU__PER_WORKER_BIT)));
        (void)mu_value_set(map, "function", mu_value_string(name));
        (void)mu_value_set(map, "users", mu_value_int(pw->users));
        (void)mu_value_set(map, "failures", mu_value_int(pw->failures));
        (void)mu_value_set(map, "losses", mu_value_int(pw->losses));
        (void)mu_value_append(list, map);
    }
    return list;
}
