/* A kernel with a client actor, and a probe that hears what it sends. */
#ifndef TESTS_CLIENT_WORLD_H
#define TESTS_CLIENT_WORLD_H

#include "actors/client/client.h"
#include "actors/client/holds.h"
#include "actors/messages.h"
#include "actors/packing.h"
#include "actors/references.h"
#include "runtime/message/codec.h"
#include "runtime/message/value_layout.h"
#include "tests/support/bare_world.h"
#include "tests/support/test.h"

/* ---- A world of one kernel ---- */

enum { HEARD_MAX = 4096, NO_NUMBER = 0 };

/* One message that the supervisor got. */
struct heard {
    uint16_t kind;
    uint64_t token;    /* the first number of its body */
    uint64_t input;    /* of FETCH */
    uint32_t priority; /* of SCHEDULE, and what follows */
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
    unsigned holdings; /* futures and per-worker values that are alive */
    unsigned given_back;
    unsigned completed;
};

static struct fixture *probed; /* whose probe hears */

static inline uint64_t world_now_ms(struct mu__world *world)
{
    return ((struct fixture *)world)->now_ms;
}

static inline void world_wake_at(struct mu__world *world, uint64_t due_ms)
{
    struct fixture *f = (struct fixture *)world;

    if (due_ms < f->wake_ms)
        f->wake_ms = due_ms;
}

static inline int world_transmit(struct mu__world *world, struct mu__msg *msg)
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

static inline void run_until(struct fixture *f, uint64_t ms)
{
    while (f->wake_ms <= ms) {
        if (f->wake_ms > f->now_ms)
            f->now_ms = f->wake_ms;
        f->wake_ms = UINT64_MAX;
        mu__kernel_turn(f->kernel);
    }
    f->now_ms = ms;
}

static inline void run(struct fixture *f)
{
    mu__kernel_turn(f->kernel);
    run_until(f, f->now_ms);
}

/* ---- The probe ---- */

static inline void note_schedule(struct heard *heard, const struct mu__schedule *body)
{
    char why[128];

    heard->priority = body->priority;
    heard->deadline_ms = body->deadline_ms;
    heard->inputs_count = body->inputs.size / 8;
    memcpy(heard->inputs, body->inputs.data == NULL ? "" : body->inputs.data,
           body->inputs.data == NULL ? 0 : body->inputs.size);
    assert_int_equal(mu__value_unpack(&body->args, why, sizeof why, &heard->args), 0);
}

static inline void note(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
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
    {MU__SCHEDULE, note}, {MU__CANCEL_CLOSURE, note},  {MU__CANCEL_ALL, note},
    {MU__FETCH, note},    {MU__RELEASE, note},         {MU__STATUS_GET, note},
    {MU__DRAIN, note},    {MU__PER_WORKER_MAKE, note}, {MU__FORGET, note},
};

static const struct mu__behavior probe = {
    .name = "probe",
    .state_size = 8,
    .handlers = probe_handlers,
    .handlers_count = sizeof probe_handlers / sizeof probe_handlers[0],
};

static inline void deliver(struct fixture *f, struct mu__msg *msg, uint32_t from)
{
    msg->from = (mu__pid){MU__NODE_SELF, from};
    msg->to = (mu__pid){MU__NODE_SELF, MU__CLIENT};
    assert_int_equal(mu__kernel_deliver(f->kernel, msg), 0);
    run(f);
}

static inline struct mu__msg *answer(uint16_t kind, size_t size)
{
    struct mu__msg *msg = mu__msg_heap(kind, size);

    assert_non_null(msg);
    return msg;
}

/* RESOLVED with an int, or with an error. */
static inline void resolve(struct fixture *f, uint64_t token, int64_t number, int code)
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

static inline void resolve_kept(struct fixture *f, uint64_t token)
{
    struct mu__msg *msg = answer(MU__RESOLVED, sizeof(struct mu__resolved));
    struct mu__resolved *body = mu__body(msg);

    *body = (struct mu__resolved){
        .token = token, .closure = 100 + token, .attempt = 1, .pinned = true};
    deliver(f, msg, MU__SUPERVISOR);
}

static inline void send_fetched(struct fixture *f, uint64_t input, int64_t number,
                                int code, uint32_t kind)
{
    struct mu__msg *msg = answer(MU__FETCHED, sizeof(struct mu__fetched));
    struct mu__fetched *body = mu__body(msg);
    mu_value *value = mu_value_int(number);

    *body = (struct mu__fetched){.token = input,
                                 .input = input,
                                 .code = (uint32_t)-code,
                                 .error_kind = kind,
                                 .message = mu__view_str("away")};
    if (code == 0)
        msg->backing = mu__pack_value(value, &body->content);
    mu_value_free(value);
    deliver(f, msg, MU__SUPERVISOR);
}

static inline void allow(struct fixture *f, uint32_t number, uint64_t closures,
                         uint64_t bytes)
{
    struct mu__msg *msg = answer(MU__ROOM_ALLOW, sizeof(struct mu__room_allow));

    *(struct mu__room_allow *)mu__body(msg) =
        (struct mu__room_allow){.number = number,
                                .closures = closures,
                                .bytes = bytes,
                                .session = 1,
                                .closures_max = 1024,
                                .bytes_max = 1 << 30,
                                .clients = 2};
    deliver(f, msg, MU__SUPERVISOR);
}

#endif
