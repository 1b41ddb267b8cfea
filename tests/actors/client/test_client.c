/* The client actor alone, with a probe in the supervisor's place that notes what it is
 * told, and answers when the test says so. */
#include "actors/client/client.h"
#include "actors/client/holds.h"
#include "actors/messages.h"
#include "actors/packing.h"
#include "actors/references.h"
#include "runtime/message/codec.h"
#include "runtime/message/value_parts.h"
#include "tests/support/bare_world.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* ---- A world of one kernel ---- */

enum { HEARD_MAX = 4096, NO_NUMBER = 0 };

/* One message that the supervisor got. */
struct heard {
    uint16_t kind;
    uint64_t token;         /* the first number of its body */
    uint64_t input;         /* of FETCH */
    uint32_t priority;      /* of SCHEDULE, and what follows */
    uint64_t deadline_ms;
    uint64_t inputs[4];
    uint32_t inputs_count;
    mu_value *args;
};

struct fixture {
    struct mu__world world; /* first: a world is its fixture */
    uint64_t now_ms;
    uint64_t wake_ms;
    struct mu__kernel *kernel;
    struct mu__future_owner home;
    struct mu__session session;
    struct heard heard[HEARD_MAX];
    size_t heard_count;
    unsigned holdings;      /* futures and per-worker values that are alive */
    unsigned given_back;
    unsigned completed;
};

static struct fixture *probed;  /* whose probe hears */

static uint64_t world_now_ms(struct mu__world *world)
{
    return ((struct fixture *)world)->now_ms;
}

static void world_wake_at(struct mu__world *world, uint64_t due_ms)
{
    struct fixture *f = (struct fixture *)world;

    if (due_ms < f->wake_ms)
        f->wake_ms = due_ms;
}

static int world_transmit(struct mu__world *world, struct mu__msg *msg)
{
    mu__pool_put(mu__kernel_pool(((struct fixture *)world)->kernel), msg);
    return -MU_EUNAVAILABLE;
}

static const struct mu__world_ops world_ops = {
    .now_ms = world_now_ms,
    .random = bare_random,
    .wake_at = world_wake_at,
    .transmit = world_transmit,
    .submit = bare_submit,
    .log = bare_log,
};

static void run_until(struct fixture *f, uint64_t ms)
{
    while (f->wake_ms <= ms) {
        if (f->wake_ms > f->now_ms)
            f->now_ms = f->wake_ms;
        f->wake_ms = UINT64_MAX;
        mu__kernel_turn(f->kernel);
    }
    f->now_ms = ms;
}

static void run(struct fixture *f)
{
    mu__kernel_turn(f->kernel);
    run_until(f, f->now_ms);
}

/* ---- The probe ---- */

static void note_schedule(struct heard *heard, const struct mu__schedule *body)
{
    char why[128];

    heard->priority = body->priority;
    heard->deadline_ms = body->deadline_ms;
    heard->inputs_count = body->inputs.size / 8;
    memcpy(heard->inputs, body->inputs.data == NULL ? "" : body->inputs.data,
           body->inputs.data == NULL ? 0 : body->inputs.size);
    assert_int_equal(mu__value_unpack(&body->args, why, sizeof why, &heard->args), 0);
}

static void note(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    struct heard *heard = &probed->heard[probed->heard_count++];

    (void)ctx;
    (void)state;
    assert_true(probed->heard_count <= HEARD_MAX);
    heard->kind = msg->kind;
    heard->token = *(const uint64_t *)(const void *)msg->body;
    if (msg->kind == MU__SCHEDULE)
        note_schedule(heard, mu__body(msg));
    if (msg->kind == MU__FETCH)
        heard->input = ((struct mu__fetch *)mu__body(msg))->input;
}

static const struct mu__handler probe_handlers[] = {
    {MU__SCHEDULE, note},   {MU__CANCEL_CLOSURE, note},  {MU__CANCEL_ALL, note},
    {MU__FETCH, note},      {MU__RELEASE, note},         {MU__STATUS_GET, note},
    {MU__DRAIN, note},      {MU__PER_WORKER_MAKE, note}, {MU__FORGET, note},
};

static const struct mu__behavior probe = {
    .name = "probe",
    .state_size = 8,
    .handlers = probe_handlers,
    .handlers_count = sizeof probe_handlers / sizeof probe_handlers[0],
};

static void deliver(struct fixture *f, struct mu__msg *msg, uint32_t from)
{
    msg->from = (mu__pid){MU__NODE_SELF, from};
    msg->to = (mu__pid){MU__NODE_SELF, MU__CLIENT};
    assert_int_equal(mu__kernel_deliver(f->kernel, msg), 0);
    run(f);
}

static struct mu__msg *answer(uint16_t kind, size_t size)
{
    struct mu__msg *msg = mu__msg_heap(kind, size);

    assert_non_null(msg);
    return msg;
}

/* RESOLVED with an int, or with an error. */
static void resolve(struct fixture *f, uint64_t token, int64_t number, int code)
{
    struct mu__msg *msg = answer(MU__RESOLVED, sizeof(struct mu__resolved));
    struct mu__resolved *body = mu__body(msg);
    mu_value *value = mu_value_int(number);

    body->token = token;
    body->closure = 100 + token;
    body->attempt = 1;
    body->code = (uint32_t)-code;
    if (code == 0) {
        msg->backing = mu__pack_value(value, &body->result);
    } else {
        body->error_kind = MU_ERROR_FUNCTION;
        body->message = mu__view_str("it broke");
        body->function = mu__view_str("f");
        body->task = mu__view_str("/job:worker/task:3");
        body->detail = mu__view_str("a stack");
    }
    mu_value_free(value);
    deliver(f, msg, MU__SUPERVISOR);
}

static void resolve_kept(struct fixture *f, uint64_t token)
{
    struct mu__msg *msg = answer(MU__RESOLVED, sizeof(struct mu__resolved));
    struct mu__resolved *body = mu__body(msg);

    *body = (struct mu__resolved){
        .token = token, .closure = 100 + token, .attempt = 1, .kept = true};
    deliver(f, msg, MU__SUPERVISOR);
}

static void send_fetched(struct fixture *f, uint64_t input, int64_t number, int code,
                         uint32_t kind)
{
    struct mu__msg *msg = answer(MU__FETCHED, sizeof(struct mu__fetched));
    struct mu__fetched *body = mu__body(msg);
    mu_value *value = mu_value_int(number);

    *body = (struct mu__fetched){.token = input, .input = input, .code = (uint32_t)-code,
                                 .error_kind = kind, .message = mu__view_str("away")};
    if (code == 0)
        msg->backing = mu__pack_value(value, &body->content);
    mu_value_free(value);
    deliver(f, msg, MU__SUPERVISOR);
}

static void allow(struct fixture *f, uint32_t number, uint64_t closures, uint64_t bytes)
{
    struct mu__msg *msg = answer(MU__ROOM_ALLOW, sizeof(struct mu__room_allow));

    *(struct mu__room_allow *)mu__body(msg) = (struct mu__room_allow){
        .number = number, .closures = closures, .bytes = bytes, .session = 1,
        .closures_max = 1024, .bytes_max = 1 << 30, .clients = 2};
    deliver(f, msg, MU__SUPERVISOR);
}

/* ---- The program ---- */

static void home_ref(struct mu__future_owner *home)
{
    ((struct fixture *)(void *)home->node)->holdings++;
}

static void home_unref(struct mu__future_owner *home)
{
    ((struct fixture *)(void *)home->node)->holdings--;
}

static void home_give_back(struct mu__future_owner *home, struct mu__held *held)
{
    struct fixture *f = (struct fixture *)(void *)home->node;
    struct mu__msg *msg = mu__msg_heap(MU__RELEASE_HELD, sizeof(struct mu__release_held));

    f->given_back++;
    ((struct mu__release_held *)mu__body(msg))->held = held;
    msg->to = (mu__pid){MU__NODE_SELF, MU__CLIENT};
    assert_int_equal(mu__kernel_deliver(f->kernel, msg), 0);
}

static void completed(struct mu__call *call)
{
    (*(unsigned *)call->owner)++;
}

static void post(struct fixture *f, struct mu__client_call *call)
{
    struct mu__msg *msg = mu__msg_heap(MU__CALL, sizeof(struct mu__call_msg));

    call->call.complete = completed;
    call->call.owner = &f->completed;
    ((struct mu__call_msg *)mu__body(msg))->call = call;
    deliver(f, msg, 0);
}

static struct mu__client_call ask(struct fixture *f, int operation)
{
    struct mu__client_call call = {.call.operation = operation, .call.timeout_ms = -1,
                                   .session = &f->session};
    unsigned before = f->completed;

    post(f, &call);
    assert_int_equal(f->completed, before + 1);
    return call;
}

static int setup(void **state)
{
    static struct fixture fixture;
    const struct mu__client_config config = {true, 1024, "the chief", 0};
    struct fixture *f = &fixture;

    *f = (struct fixture){.world = {&world_ops}, .wake_ms = UINT64_MAX};
    f->home = (struct mu__future_owner){(mu_node *)(void *)f, home_ref, home_unref,
                                home_give_back};
    probed = f;
    assert_int_equal(mu__kernel_new(&f->world, &mu__messages, &f->kernel), 0);
    assert_int_equal(mu__spawn(f->kernel, &probe, MU__SUPERVISOR, NULL, NULL), 0);
    assert_int_equal(mu__spawn(f->kernel, &mu__client, MU__CLIENT, &config, NULL), 0);
    (void)ask(f, MU__CLIENT_OPEN);
    allow(f, 1, 1024, 1 << 30);
    *state = f;
    return 0;
}

/* Nothing is left over. */
static int teardown(void **state)
{
    struct fixture *f = *state;
    struct mu__error_entry *entry = atomic_load(&f->session.errors);

    run(f);
    mu__kernel_free(f->kernel);
    for (size_t i = 0; i < f->heard_count; i++)
        mu_value_free(f->heard[i].args);
    while (entry != NULL) {
        struct mu__error_entry *next = entry->next;

        free(entry);
        entry = next;
    }
    return f->holdings == 0 ? 0 : -1;
}

/* A closure without references. Takes args. */
static mu_remote_value *schedule(struct fixture *f)
{
    mu_remote_value *future = mu__future_new(&f->home);
    struct mu__msg *msg = mu__msg_heap(MU__SUBMIT, sizeof(struct mu__submit));
    struct mu__submit *body = mu__body(msg);

    body->future = future;
    body->function = mu__view_str("f");
    (void)atomic_fetch_add(&f->session.scheduled, 1);
    deliver(f, msg, 0);
    return future;
}

/* One with references, as the public coordinator makes it. Takes args. */
static mu_remote_value *schedule_pending(struct fixture *f, mu_value *args,
                                         uint64_t deadline_ms)
{
    mu_remote_value *future = mu__future_new(&f->home);
    struct mu__msg *msg =
        mu__msg_heap(MU__SCHEDULE_PENDING, sizeof(struct mu__schedule_pending));
    struct mu__references references = {0};
    struct mu__pending_closure *closure;
    struct mu__schedule *body;

    assert_int_equal(mu__references_collect(args, &references), 0);
    closure = mu__pending_new(references.held, (uint32_t)references.count, args);
    assert_non_null(closure);
    closure->msg =
        mu__msg_heap(MU__SUBMIT, sizeof(struct mu__submit) + 8 * references.count);
    body = mu__body(closure->msg);
    body->function = mu__view_str("g");
    body->deadline_ms = deadline_ms;
    closure->numbers = (uint8_t *)body + sizeof(struct mu__submit);
    closure->future = future;
    mu__references_done(&references);
    mu_value_free(args);
    ((struct mu__schedule_pending *)mu__body(msg))->pending = closure;
    (void)atomic_fetch_add(&f->session.scheduled, 1);
    deliver(f, msg, 0);
    return future;
}

/* One with references to per-worker values alone, as the public coordinator makes it.
 * Takes args. */
static mu_remote_value *schedule_holds(struct fixture *f, mu_value *args)
{
    mu_remote_value *future = mu__future_new(&f->home);
    struct mu__references references = {0};
    struct mu__schedule *body;
    struct mu__msg *msg;

    assert_int_equal(mu__references_collect(args, &references), 0);
    assert_true(mu__holds_suffice(&references));
    msg = mu__msg_heap(MU__SUBMIT, sizeof(struct mu__submit) + 8 * references.count);
    body = mu__body(msg);
    ((struct mu__submit *)mu__body(msg))->future = future;
    body->function = mu__view_str("h");
    msg->backing = mu__pack_value(args, &body->args);
    mu__holds_take(body, (uint8_t *)body + sizeof(struct mu__submit), &references);
    mu__references_done(&references);
    mu_value_free(args);
    (void)atomic_fetch_add(&f->session.scheduled, 1);
    deliver(f, msg, 0);
    return future;
}

/* One that the chief has made in its present life. */
static mu_per_worker *per_worker_at(struct fixture *f, uint64_t number)
{
    mu_per_worker *per_worker = mu__per_worker_new(&f->home);

    per_worker->held.number = MU__PER_WORKER_BIT | number;
    per_worker->held.chief_epoch = 0;
    return per_worker;
}

/* References to as many of them. Lets go of them. */
static mu_value *references_to(mu_per_worker **per_workers, size_t count)
{
    mu_value *list = mu_value_list();

    for (size_t i = 0; i < count; i++) {
        (void)mu_value_append(list, mu__reference_to(&per_workers[i]->held));
        mu__held_unref(&per_workers[i]->held);
    }
    return list;
}

static mu_value *pair(mu_remote_value *a, mu_remote_value *b)
{
    mu_value *list = mu_value_list();
    mu_value *map = mu_value_map();

    assert_int_equal(mu_value_append(list, mu_value_remote(a)), 0);
    assert_int_equal(mu_value_set(map, "deep", mu_value_remote(b)), 0);
    assert_int_equal(mu_value_append(list, map), 0);
    return list;
}

static const struct heard *last(const struct fixture *f)
{
    return &f->heard[f->heard_count - 1];
}

static uint64_t count(const atomic_uint_fast64_t *counter)
{
    return atomic_load(counter);
}

static int64_t int_at(const mu_value *value)
{
    int64_t number = -1;

    (void)mu_value_get_int(value, &number);
    return number;
}

#define FREE(...) free_all((mu_remote_value *[]){__VA_ARGS__, NULL})

static void free_all(mu_remote_value **values)
{
    for (; *values != NULL; values++)
        mu_remote_value_free(*values);
}

/* ---- References ---- */

/* The same input twice is waited for once. */
static void test_waits_for_inputs(void **state)
{
    struct fixture *f = *state;
    mu_remote_value *a = schedule(f);
    mu_remote_value *b = schedule(f);
    mu_value *args = pair(a, b);
    mu_remote_value *c;
    const struct heard *heard;

    assert_int_equal(mu_value_append(args, mu_value_remote(a)), 0);
    c = schedule_pending(f, args, 0);
    assert_int_equal(f->heard_count, 2);
    resolve(f, f->heard[0].token, 7, 0);
    assert_int_equal(f->heard_count, 2);
    resolve(f, f->heard[1].token, 8, 0);
    assert_int_equal(f->heard_count, 3);
    heard = last(f);
    assert_int_equal(heard->kind, MU__SCHEDULE);
    assert_int_equal(heard->inputs_count, 0);
    assert_int_equal(int_at(mu_value_at(heard->args, 0)), 7);
    assert_int_equal(int_at(mu_value_find(mu_value_at(heard->args, 1), "deep")), 8);
    assert_int_equal(int_at(mu_value_at(heard->args, 2)), 7);
    resolve(f, heard->token, 9, 0);
    assert_int_equal(mu_remote_value_state(c), MU_REMOTE_READY);
    assert_int_equal(count(&f->session.finished), 3);
    FREE(a, b, c);
}

/* The first one by position is told, whichever came first; what depends on that in turn
 * hears the same, and all of it is counted. */
static void test_input_errors(void **state)
{
    struct fixture *f = *state;
    mu_remote_value *a = schedule(f);
    mu_remote_value *b = schedule(f);
    mu_remote_value *c = schedule_pending(f, pair(a, b), 0);
    mu_remote_value *d = schedule_pending(f, pair(c, c), 0);
    uint64_t first = f->heard[0].token;

    resolve(f, f->heard[1].token, 0, -MU_ERANGE);
    resolve(f, first, 0, -MU_EINVALID);
    assert_int_equal(c->error->code, -MU_EINVALID);
    assert_int_equal(c->error->kind, MU_ERROR_INPUT);
    assert_string_equal(c->error->message, "input closure 101 \"f\" failed: it broke "
                                           "(and 1 more of its inputs failed)");
    assert_string_equal(c->error->function, "g");
    assert_string_equal(c->error->task, "/job:worker/task:3");
    assert_string_equal(c->error->detail, "a stack");
    assert_string_equal(d->error->message, c->error->message);
    assert_int_equal(count(&f->session.failed), 4);
    assert_int_equal(atomic_load(&f->session.errors_stored), 4);
    assert_int_equal(f->heard_count, 2);
    FREE(a, b, c, d);
}

/* Cancelled inputs are no error. */
static void test_cancelled_input(void **state)
{
    struct fixture *f = *state;
    mu_remote_value *a = schedule(f);
    mu_remote_value *b = schedule_pending(f, pair(a, a), 0);

    resolve(f, f->heard[0].token, 0, -MU_ECANCELLED);
    assert_int_equal(mu_remote_value_state(b), MU_REMOTE_ABORTED);
    assert_int_equal(b->error->code, -MU_ECANCELLED);
    assert_int_equal(count(&f->session.cancelled), 2);
    assert_int_equal(atomic_load(&f->session.errors_stored), 0);
    assert_int_equal(atomic_load(&f->session.phase), MU__SESSION_FINE);
    FREE(a, b);
}

/* Thousands that wait for each other are resolved without a deep stack. */
static void test_long_chain(void **state)
{
    enum { LENGTH = 3000 };
    struct fixture *f = *state;
    mu_remote_value *chain[LENGTH];

    chain[0] = schedule(f);
    for (size_t i = 1; i < LENGTH; i++)
        chain[i] = schedule_pending(f, pair(chain[i - 1], chain[0]), 0);
    resolve(f, f->heard[0].token, 0, -MU_ERANGE);
    for (size_t i = 0; i < LENGTH; i++) {
        assert_int_equal(chain[i]->error->code, -MU_ERANGE);
        mu_remote_value_free(chain[i]);
    }
    assert_int_equal(atomic_load(&f->session.errors_stored), MU__ERRORS_STORED_MAX);
    assert_int_equal(count(&f->session.errors_lost), LENGTH - MU__ERRORS_STORED_MAX);
}

static void cancel(struct fixture *f, mu_remote_value *future)
{
    struct mu__msg *msg =
        mu__msg_heap(MU__CANCEL_FUTURE, sizeof(struct mu__cancel_future));

    mu__held_ref(&future->held);
    ((struct mu__cancel_future *)mu__body(msg))->future = future;
    deliver(f, msg, 0);
}

static void test_cancel(void **state)
{
    struct fixture *f = *state;
    mu_remote_value *a = schedule(f);
    mu_remote_value *b = schedule_pending(f, pair(a, a), 0);
    mu_remote_value *c = schedule_pending(f, pair(b, b), 0);

    cancel(f, b);
    assert_int_equal(mu_remote_value_state(b), MU_REMOTE_ABORTED);
    assert_int_equal(mu_remote_value_state(c), MU_REMOTE_ABORTED);
    assert_int_equal(f->heard_count, 1);
    cancel(f, a);
    assert_int_equal(mu_remote_value_state(a), MU_REMOTE_NOT_READY);
    assert_int_equal(last(f)->kind, MU__CANCEL_CLOSURE);
    assert_int_equal(last(f)->token, f->heard[0].token);
    resolve(f, f->heard[0].token, 0, -MU_ECANCELLED);
    cancel(f, a);
    assert_int_equal(f->heard_count, 2);
    assert_int_equal(count(&f->session.cancelled), 3);
    FREE(a, b, c);
}

static void test_error_cancels_waiting(void **state)
{
    struct fixture *f = *state;
    mu_remote_value *a = schedule(f);
    mu_remote_value *b = schedule(f);
    mu_remote_value *c = schedule_pending(f, pair(a, a), 0);
    struct mu__client_call join = {.call.operation = MU__CLIENT_JOIN,
                                   .call.timeout_ms = -1};

    post(f, &join);
    resolve(f, f->heard[1].token, 0, -MU_EINVALID);
    assert_int_equal(last(f)->kind, MU__CANCEL_ALL);
    assert_int_equal(mu_remote_value_state(c), MU_REMOTE_ABORTED);
    resolve(f, f->heard[0].token, 0, -MU_ECANCELLED);
    assert_int_equal(join.call.code, -MU_EINVALID);
    assert_int_equal(join.call.error.kind, MU_ERROR_FUNCTION);
    assert_string_equal(join.call.error.detail, "a stack");
    FREE(a, b, c);
}

static void test_deadline_while_waiting(void **state)
{
    struct fixture *f = *state;
    mu_remote_value *a = schedule(f);
    mu_remote_value *b = schedule_pending(f, pair(a, a), 100);
    mu_remote_value *c = schedule_pending(f, pair(a, a), 1000);

    run_until(f, 100);
    assert_int_equal(b->error->code, -MU_EDEADLINE);
    assert_int_equal(b->error->kind, MU_ERROR_LIMIT);
    resolve(f, f->heard[0].token, 1, 0);
    assert_int_equal(last(f)->deadline_ms, 900);
    resolve(f, last(f)->token, 1, 0);
    FREE(a, b, c);
}

/* ---- Kept results ---- */

/* Its number goes along, once; it is let go when the program has done so and the closure
 * that uses it was sent: the chief keeps it as long as that needs it. */
static void test_kept_input(void **state)
{
    struct fixture *f = *state;
    mu_remote_value *a = schedule(f);
    mu_remote_value *b = schedule_pending(f, pair(a, a), 0);
    const mu_value *item;
    uint64_t token;

    resolve_kept(f, f->heard[0].token);
    assert_int_equal(mu_remote_value_state(a), MU_REMOTE_READY);
    assert_int_equal(last(f)->inputs_count, 1);
    assert_int_equal(last(f)->inputs[0], 101);
    item = mu_value_at(last(f)->args, 0);
    assert_int_equal(mu_value_type(item), MU_VALUE_REFERENCE);
    assert_int_equal(((const struct mu__reference *)item)->number, 101);
    token = last(f)->token;
    run(f);
    assert_int_equal(f->heard_count, 2);
    mu_remote_value_free(a);
    run(f);
    assert_int_equal(f->heard_count, 3);
    assert_int_equal(last(f)->kind, MU__RELEASE);
    assert_int_equal(last(f)->token, 101);
    assert_int_equal(f->given_back, 1);
    resolve(f, token, 5, 0);
    assert_int_equal(f->heard_count, 3);
    mu_remote_value_free(b);
}

/* Several that fetch it ask once; then the content is here. */
static void test_fetch_kept(void **state)
{
    struct fixture *f = *state;
    mu_remote_value *a = schedule(f);
    struct mu__client_call calls[2];
    unsigned before = f->completed;

    for (size_t i = 0; i < 2; i++) {
        calls[i] = (struct mu__client_call){.call.operation = MU__CLIENT_FETCH,
                                            .call.timeout_ms = -1, .future = a};
        post(f, &calls[i]);
        if (i == 0)
            resolve_kept(f, f->heard[0].token);
    }
    assert_int_equal(f->heard_count, 2);
    assert_int_equal(last(f)->kind, MU__FETCH);
    assert_int_equal(last(f)->input, 101);
    assert_int_equal(f->completed, before);
    send_fetched(f, 101, 6, 0, 0);
    assert_int_equal(f->completed, before + 2);
    assert_int_equal(calls[0].call.code, 0);
    assert_int_equal(int_at(a->result), 6);
    send_fetched(f, 101, 7, 0, 0);
    assert_int_equal(int_at(a->result), 6);
    mu_remote_value_free(a);
}

/* What may pass is not kept; what is final is. */
static void test_fetch_errors(void **state)
{
    struct fixture *f = *state;
    mu_remote_value *a = schedule(f);
    struct mu__client_call call;

    resolve_kept(f, f->heard[0].token);
    for (size_t i = 0; i < 2; i++) {
        call = (struct mu__client_call){.call.operation = MU__CLIENT_FETCH,
                                        .call.timeout_ms = -1, .future = a};
        post(f, &call);
        send_fetched(f, 101, 0, -MU_EUNAVAILABLE, i == 0 ? MU_ERROR_OTHER
                                                         : MU_ERROR_FUNCTION);
        assert_int_equal(call.call.code, -MU_EUNAVAILABLE);
        assert_true(mu__future_is(a, i == 0 ? MU__REMOTE_PINNED : MU_REMOTE_READY));
    }
    assert_string_equal(a->error->message, "away");
    mu_remote_value_free(a);
}

/* One call for all; at its limit it says which one is missing, and why. */
static void test_fetch_many(void **state)
{
    struct fixture *f = *state;
    mu_remote_value *a = schedule(f);
    mu_remote_value *b = schedule(f);
    struct mu__waiter waiters[3] = {{.future = a}, {.future = b}, {.future = a}};
    struct mu__client_call call = {.call.operation = MU__CLIENT_FETCH,
                                   .call.timeout_ms = 50, .waiters = waiters,
                                   .waiters_count = 3};
    unsigned before = f->completed;

    post(f, &call);
    resolve(f, f->heard[0].token, 1, 0);
    assert_int_equal(f->completed, before);
    run_until(f, 50);
    assert_int_equal(last(f)->kind, MU__STATUS_GET);
    assert_int_equal(f->completed, before);
    run_until(f, 2050);
    assert_int_equal(f->completed, before + 1);
    assert_int_equal(call.call.code, -MU_EDEADLINE);
    assert_int_equal(call.call.error.kind, MU_ERROR_LIMIT);
    assert_int_equal(call.error_at, 1);
    assert_string_equal(call.call.error.message, "the closure has no result after 50 ms; "
                                                 "the chief did not say more");
    resolve(f, f->heard[1].token, 1, 0);
    FREE(a, b);
}

/* ---- Errors of no closure; questions ---- */

static void test_fault(void **state)
{
    struct fixture *f = *state;
    struct mu__msg *msg = answer(MU__FAULT, sizeof(struct mu__fault));
    struct mu__fault *body = mu__body(msg);
    struct mu__client_call join;

    *body = (struct mu__fault){MU_EUNAVAILABLE, MU_ERROR_WORKER,
                               mu__view_str("/job:worker/task:1"), mu__view_str("away")};
    deliver(f, msg, MU__SUPERVISOR);
    join = ask(f, MU__CLIENT_JOIN);
    assert_int_equal(join.call.code, -MU_EUNAVAILABLE);
    assert_int_equal(join.call.error.kind, MU_ERROR_WORKER);
    assert_string_equal(join.call.error.task, "/job:worker/task:1");
    assert_int_equal(ask(f, MU__CLIENT_JOIN).call.code, 0);
    assert_int_equal(atomic_load(&f->session.errors_stored), 1);
}

/* A per-worker value's number is listed like that of a kept result. */
static void test_per_worker(void **state)
{
    struct fixture *f = *state;
    struct mu__msg *request =
        mu__msg_heap(MU__PER_WORKER_MAKE, sizeof(struct mu__per_worker_make));
    struct mu__client_call call = {
        .call.operation = MU__CLIENT_REQUEST, .call.timeout_ms = -1, .request = request};
    struct mu__msg *made =
        answer(MU__PER_WORKER_MADE, sizeof(struct mu__per_worker_made));
    struct mu__per_worker_made *body = mu__body(made);
    mu_per_worker *per_worker = mu__per_worker_new(&f->home);
    mu_remote_value *future;

    post(f, &call);
    *body = (struct mu__per_worker_made){.token = last(f)->token,
                                         .input = MU__PER_WORKER_BIT | 1};
    deliver(f, made, MU__SUPERVISOR);
    per_worker->held.number = call.input;
    per_worker->held.chief_epoch = call.chief_epoch;
    future = schedule_pending(f, mu__reference_to(&per_worker->held), 0);
    mu__held_unref(&per_worker->held);
    assert_int_equal(last(f)->kind, MU__SCHEDULE);
    assert_true(last(f)->inputs[0] == (MU__PER_WORKER_BIT | 1));
    resolve(f, last(f)->token, 0, 0);
    assert_int_equal(last(f)->kind, MU__RELEASE);
    assert_true(last(f)->token == (MU__PER_WORKER_BIT | 1));
    mu_remote_value_free(future);
}

/* Their numbers go along, and they are let go of: the chief has them from then on. */
static void test_holds(void **state)
{
    struct fixture *f = *state;
    mu_per_worker *per_workers[6];
    mu_remote_value *future;
    uint64_t token;

    for (size_t i = 0; i < 2; i++)
        per_workers[i] = per_worker_at(f, i + 1);
    future = schedule_holds(f, references_to(per_workers, 2));
    assert_int_equal(f->heard_count, 3);
    assert_int_equal(f->heard[0].kind, MU__SCHEDULE);
    assert_int_equal(f->heard[0].inputs_count, 2);
    for (size_t i = 0; i < 2; i++) {
        assert_true(f->heard[0].inputs[i] == (MU__PER_WORKER_BIT | (i + 1)));
        assert_int_equal(f->heard[1 + i].kind, MU__RELEASE);
        assert_true(f->heard[1 + i].token == (MU__PER_WORKER_BIT | (i + 1)));
    }
    token = f->heard[0].token;
    resolve(f, token, 5, 0);
    assert_int_equal(f->heard_count, 3);
    assert_int_equal(int_at(future->result), 5);
    mu_remote_value_free(future);
}

/* As long as there is no room at the chief they are held; of one that is cancelled there,
 * they are let go of. */
static void test_holds_wait(void **state)
{
    struct fixture *f = *state;
    mu_per_worker *per_workers[] = {per_worker_at(f, 1), per_worker_at(f, 2)};
    mu_remote_value *sent;
    mu_remote_value *cancelled;

    allow(f, 2, 0, 0);
    sent = schedule_holds(f, references_to(&per_workers[0], 1));
    cancelled = schedule_holds(f, references_to(&per_workers[1], 1));
    assert_int_equal(f->given_back, 0);
    cancel(f, cancelled);
    assert_int_equal(mu_remote_value_state(cancelled), MU_REMOTE_ABORTED);
    assert_int_equal(f->given_back, 1);
    assert_true(last(f)->token == (MU__PER_WORKER_BIT | 2));
    allow(f, 3, 1024, 1 << 30);
    assert_int_equal(f->given_back, 2);
    assert_int_equal(last(f)->kind, MU__RELEASE);
    assert_true(last(f)->token == (MU__PER_WORKER_BIT | 1));
    for (size_t i = 0; i < f->heard_count; i++)
        if (f->heard[i].kind == MU__SCHEDULE) {
            assert_true(f->heard[i].inputs[0] == (MU__PER_WORKER_BIT | 1));
            resolve(f, f->heard[i].token, 5, 0);
            break;
        }
    assert_int_equal(int_at(sent->result), 5);
    FREE(sent, cancelled);
}

/* Those of a chief that was lost since fail their closure, with words. */
static void test_holds_lost(void **state)
{
    struct fixture *f = *state;
    mu_per_worker *per_workers[6];
    mu_remote_value *future;

    for (size_t i = 0; i < 6; i++) {
        per_workers[i] = per_worker_at(f, i + 1);
        per_workers[i]->held.chief_epoch = i == 2 || i == 5 ? 9 : 0;
    }
    future = schedule_holds(f, references_to(per_workers, 6));
    assert_int_equal(future->error->code, -MU_EUNAVAILABLE);
    assert_int_equal(future->error->kind, MU_ERROR_INPUT);
    assert_string_equal(future->error->function, "h");
    assert_string_equal(future->error->message, "an input was kept for a chief that is "
                                                "lost (and 1 more of its inputs failed)");
    for (size_t i = 0; i < f->heard_count; i++)
        assert_int_not_equal(f->heard[i].kind, MU__SCHEDULE);
    assert_int_equal(f->given_back, 6);
    mu_remote_value_free(future);
}

/* The answer to one who gave up is let go of. */
static void test_made_too_late(void **state)
{
    struct fixture *f = *state;
    struct mu__msg *made =
        answer(MU__PER_WORKER_MADE, sizeof(struct mu__per_worker_made));

    *(struct mu__per_worker_made *)mu__body(made) =
        (struct mu__per_worker_made){.token = 77, .input = MU__PER_WORKER_BIT | 2};
    deliver(f, made, MU__SUPERVISOR);
    assert_int_equal(last(f)->kind, MU__RELEASE);
}

static void test_drain(void **state)
{
    struct fixture *f = *state;
    struct mu__client_call call = {
        .call.operation = MU__CLIENT_REQUEST, .call.timeout_ms = 70,
        .request = mu__msg_heap(MU__DRAIN, sizeof(struct mu__drain))};
    struct mu__msg *msg = answer(MU__DRAINED, sizeof(struct mu__drained));

    post(f, &call);
    *(struct mu__drained *)mu__body(msg) = (struct mu__drained){
        last(f)->token, MU_ENOTFOUND, mu__view_str("no such worker")};
    deliver(f, msg, MU__SUPERVISOR);
    assert_int_equal(call.call.code, -MU_ENOTFOUND);
    assert_string_equal(call.call.error.message, "no such worker");
    call.request = mu__msg_heap(MU__DRAIN, sizeof(struct mu__drain));
    post(f, &call);
    run_until(f, 70);
    assert_int_equal(call.call.code, -MU_EDEADLINE);
    assert_string_equal(call.call.error.message,
                        "the chief did not answer within 70 ms");
}

/* The node is closed while everything waits for something. */
static void test_end(void **state)
{
    struct fixture *f = *state;
    mu_remote_value *a = schedule(f);
    mu_remote_value *b = schedule_pending(f, pair(a, a), 1000);
    mu_remote_value *c = schedule(f);
    struct mu__client_call fetch = {.call.operation = MU__CLIENT_FETCH,
                                    .call.timeout_ms = 9, .future = b};
    struct mu__client_call kept = {.call.operation = MU__CLIENT_FETCH,
                                   .call.timeout_ms = 9, .future = c};

    post(f, &fetch);
    post(f, &kept);
    resolve_kept(f, last(f)->token);
    mu__stop(f->kernel, (mu__pid){MU__NODE_SELF, MU__CLIENT});
    run(f);
    assert_int_equal(b->error->code, -MU_ECLOSED);
    assert_int_equal(c->error->code, -MU_ECLOSED);
    c->held.number = NO_NUMBER;     /* no client is there to be told */
    FREE(a, b, c);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_waits_for_inputs),
        TEST(test_input_errors),
        TEST(test_cancelled_input),
        TEST(test_long_chain),
        TEST(test_cancel),
        TEST(test_error_cancels_waiting),
        TEST(test_deadline_while_waiting),
        TEST(test_kept_input),
        TEST(test_fetch_kept),
        TEST(test_fetch_errors),
        TEST(test_fetch_many),
        TEST(test_fault),
        TEST(test_per_worker),
        TEST(test_holds),
        TEST(test_holds_wait),
        TEST(test_holds_lost),
        TEST(test_made_too_late),
        TEST(test_drain),
        TEST(test_end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
