#include "tests/support/lone_worker.h"

#include "actors/keep.h"
#include "runtime/message/block_pool.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- The world ---- */

static uint64_t world_now_ms(struct mu__world *world)
{
    return ((struct fixture *)world)->now_ms;
}

static uint64_t world_random(struct mu__world *world)
{
    (void)world;
    return 0;
}

static void world_wake_at(struct mu__world *world, uint64_t due_ms)
{
    if (due_ms == 0)
        ((struct fixture *)world)->woken = true;
}

static void append_msg(struct mu__msg **list, struct mu__msg *msg)
{
    msg->next = NULL;
    while (*list != NULL)
        list = &(*list)->next;
    *list = msg;
}

static int world_transmit(struct mu__world *world, struct mu__msg *msg)
{
    struct fixture *f = (struct fixture *)world;

    assert_int_equal(msg->to.node, CHIEF);
    assert_int_equal(mu__msg_keep(&mu__messages, msg), 0);
    append_msg(&f->said, msg);
    return 0;
}

static void world_submit(struct mu__world *world, struct mu__work *work)
{
    mu__list_append(&((struct fixture *)world)->works, &work->node);
    work->queued = true;
}

static bool world_withdraw(struct mu__world *world, struct mu__work *work)
{
    if (!work->queued)
        return false;
    mu__list_remove(&((struct fixture *)world)->works, &work->node);
    work->queued = false;
    return true;
}

static void world_log(struct mu__world *world, enum mu__log_level level, const char *who,
                      const char *line)
{
    struct fixture *f = (struct fixture *)world;
    size_t size = strlen(f->log);

    (void)level;
    (void)who;
    (void)snprintf(f->log + size, sizeof f->log - size, "%s\n", line);
}

static const struct mu__world_ops world_ops = {
    .now_ms = world_now_ms,
    .random = world_random,
    .wake_at = world_wake_at,
    .transmit = world_transmit,
    .submit = world_submit,
    .withdraw = world_withdraw,
    .log = world_log,
};

/* ---- The variables actor ---- */

struct effects_state {
    struct fixture *fixture;
};

static int effects_init(struct mu__ctx *ctx, void *state, const void *arg)
{
    (void)ctx;
    ((struct effects_state *)state)->fixture = (struct fixture *)(uintptr_t)arg;
    return 0;
}

static void on_send(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    struct fixture *f = ((struct effects_state *)state)->fixture;

    (void)ctx;
    assert_true(f->sent_count < SENT_RUNS_MAX);
    f->sent[f->sent_count++] = ((struct mu__effects_send *)mu__body(msg))->run;
}

static const struct mu__handler effects_handlers[] = {{MU__EFFECTS_SEND, on_send}};

static const struct mu__behavior effects_probe = {
    .name = "effects",
    .state_size = sizeof(struct effects_state),
    .handlers = effects_handlers,
    .handlers_count = 1,
    .init = effects_init,
};

/* ---- Functions ---- */

struct fixture *lone_called(mu_run *run, void *user)
{
    struct fixture *f = user;

    f->calls++;
    mu_value_free(f->seen);
    f->seen = mu_value_ref(mu_run_args(run));
    return f;
}

static int run_echo(mu_run *run, void *user)
{
    (void)lone_called(run, user);
    mu_run_return(run, mu_value_ref(mu_run_args(run)));
    return 0;
}

static int run_fail(mu_run *run, void *user)
{
    (void)lone_called(run, user);
    return mu_run_fail(run, -MU_EINVALID, "bad data");
}

static void drop_thing(void *object)
{
    struct fixture *f = object;

    f->drops++;
}

static int run_make(mu_run *run, void *user)
{
    mu_run_return_object(run, lone_called(run, user), drop_thing);
    return 0;
}

/* The argument is an object, and it is the fixture. */
static int run_use(mu_run *run, void *user)
{
    (void)lone_called(run, user);
    if (mu_run_object(run, mu_run_args(run)) != user)
        return mu_run_fail(run, -MU_EINVALID, "no object");
    return 0;
}

static int run_wrap(mu_run *run, void *user)
{
    mu_value *list = mu_value_list();

    (void)lone_called(run, user);
    (void)mu_value_append(list, mu_value_ref(mu_run_args(run)));
    mu_run_return(run, list);
    return 0;
}

static int write_effect(mu_run *run, int code)
{
    struct mu__effect *effect = mu__block_get(sizeof *effect);

    assert_non_null(effect);
    memset(effect, 0, sizeof *effect);
    run->effects.first = effect;
    run->effects.last = effect;
    mu_run_return(run, mu_value_int(1));
    return code;
}

static int run_write(mu_run *run, void *user)
{
    (void)lone_called(run, user);
    return write_effect(run, 0);
}

static int run_write_and_fail(mu_run *run, void *user)
{
    (void)lone_called(run, user);
    return write_effect(run, mu_run_fail(run, -MU_EINVALID, "after all"));
}

static const struct lone_function functions[] = {
    {"echo", run_echo, 0},
    {"quick", run_echo, MU_FUNCTION_INLINE},
    {"fail", run_fail, 0},
    {"quick_fail", run_fail, MU_FUNCTION_INLINE},
    {"make", run_make, 0},
    {"use", run_use, 0},
    {"wrap", run_wrap, 0},
    {"write", run_write, 0},
    {"write_and_fail", run_write_and_fail, 0},
};

/* ---- The fixture ---- */

void lone_turn(struct fixture *f)
{
    do {
        f->woken = false;
        mu__kernel_turn(f->kernel);
    } while (f->woken);
}

void lone_tell(struct fixture *f, struct mu__msg *msg, uint32_t node)
{
    msg->from = (mu__pid){node, node == 0 ? 0 : MU__SUPERVISOR};
    msg->to = (mu__pid){MU__NODE_SELF, MU__WORKER};
    assert_int_equal(mu__msg_keep(&mu__messages, msg), 0);
    assert_int_equal(mu__kernel_deliver(f->kernel, msg), 0);
    lone_turn(f);
}

static int post_line(mu_node *node, uint32_t actor, struct mu__msg *msg)
{
    struct fixture *f = (struct fixture *)(void *)node;

    assert_int_equal(actor, MU__WORKER);
    msg->to = (mu__pid){MU__NODE_SELF, actor};
    append_msg(&f->posted, msg);
    return 0;
}

static void call_done(struct mu__call *call)
{
    assert_int_equal(call->code, 0);
}

static void register_functions(struct fixture *f, const struct lone_function *known,
                               size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct mu__function_call call = {
            .call.complete = call_done,
            .name = known[i].name,
            .function = known[i].function,
            .user = f,
            .flags = known[i].flags,
        };
        struct mu__msg *msg = mu__msg_heap(MU__CALL, sizeof(struct mu__call_msg));

        assert_non_null(msg);
        ((struct mu__call_msg *)mu__body(msg))->call = &call;
        lone_tell(f, msg, 0);
    }
}

int lone_set_up_with(void **state, const struct lone_function *own, size_t count)
{
    struct fixture *f = calloc(1, sizeof *f);
    const struct mu__worker_config config = {
        .threads = 1,
        .retained_bytes_max = LONE_RETAINED_BYTES_MAX,
        .index = 3,
        .task = "/job:worker/task:3",
        .type = "worker",
        .node = (mu_node *)(void *)f,
        .post = post_line,
    };

    assert_non_null(f);
    f->world.ops = &world_ops;
    assert_int_equal(mu__kernel_new(&f->world, &mu__messages, &f->kernel), 0);
    assert_int_equal(mu__spawn(f->kernel, &mu__worker, MU__WORKER, &config, NULL), 0);
    assert_int_equal(mu__spawn(f->kernel, &effects_probe, MU__VARIABLES, f, NULL), 0);
    register_functions(f, functions, sizeof functions / sizeof functions[0]);
    register_functions(f, own, count);
    mu__kernel_node_up(f->kernel, CHIEF, "chief", 0, 1, "tcp://c:1");
    lone_turn(f);
    *state = f;
    return 0;
}

int lone_set_up(void **state)
{
    return lone_set_up_with(state, NULL, 0);
}

int lone_tear_down(void **state)
{
    struct fixture *f = *state;

    free_msgs(f, &f->said);
    free_msgs(f, &f->posted);
    mu_value_free(f->seen);
    f->seen = NULL;
    if (worker_of(f) != NULL)
        mu__worker_forget_runs(worker_of(f), mu__kernel_pool(f->kernel));
    mu__kernel_free(f->kernel);
    free(f);
    return 0;
}
