/* Memory that is missing anywhere on the way of a run's writes: an error for the run, or
 * a try later, and never half of a batch. Worker's actor and server on one kernel each;
 * what one says is handed to the other. */
#include "actors/messages.h"
#include "actors/ps/ps.h"
#include "actors/ps/variable_store.h"
#include "actors/variables/effects.h"
#include "actors/variables/variables.h"
#include "actors/worker/function_run.h"
#include "tests/support/bare_world.h"
#include "tests/support/fault.h"
#include "tests/support/packed_rule.h"
#include "tests/support/test.h"

/* ---- The world: nothing leaves it, time stands still ---- */

struct world {
    struct mu__world world; /* first */
    struct mu__kernel *kernel;
    struct mu__msg *heard; /* what the server said last */
};

static uint64_t world_now_ms(struct mu__world *world)
{
    (void)world;
    return 1;
}

static int world_transmit(struct mu__world *world, struct mu__msg *msg)
{
    struct world *w = (struct world *)world;

    mu__pool_put(mu__kernel_pool(w->kernel), w->heard);
    w->heard = msg;
    return 0;
}

static const struct mu__world_ops world_ops = {
    .now_ms = world_now_ms,
    .random = bare_random,
    .wake_at = bare_wake_at,
    .transmit = world_transmit,
    .submit = bare_submit,
    .withdraw = bare_withdraw,
    .log = bare_log,
};

enum { CHIEF = 1, WORKER = 2, COUNT = 4 };

static void deliver(struct world *w, uint32_t node, uint16_t kind, const void *body,
                    size_t size)
{
    struct mu__msg *msg = mu__msg_heap(kind, size);

    if (msg == NULL)
        return;
    memcpy(mu__body(msg), body, size);
    msg->from = (mu__pid){node, MU__VARIABLES};
    msg->to.actor = MU__PS;
    (void)mu__kernel_deliver(w->kernel, msg);
    mu__kernel_turn(w->kernel);
}

static void open_one(struct world *w, uint64_t *ret_id)
{
    const uint8_t dims[8] = {COUNT};
    const struct mu__var_open open = {.token = 1,
                                      .name = {"w", 1},
                                      .dtype = MU_F32,
                                      .dims = {dims, 8},
                                      .shards = 1,
                                      .size = 4 * COUNT,
                                      .generation = mu__generation_of(1)};
    struct mu__var_write write = {.token = 2,
                                  .operation = MU__WRITE_ZERO,
                                  .transfer = 1,
                                  .generation = mu__generation_of(1)};

    deliver(w, WORKER, MU__VAR_OPEN, &open, sizeof open);
    assert_int_equal(w->heard->kind, MU__VAR_OPENED);
    *ret_id = ((struct mu__var_opened *)mu__body(w->heard))->variable;
    write.variable = *ret_id;
    deliver(w, WORKER, MU__VAR_WRITE, &write, sizeof write);
}

/* The first element: all others are like it. */
static float read_all(struct world *w, uint64_t id)
{
    const struct mu__var_read read = {.token = 3,
                                      .variable = id,
                                      .size = 4 * COUNT,
                                      .generation = mu__generation_of(1)};
    float content[COUNT];

    deliver(w, WORKER, MU__VAR_READ, &read, sizeof read);
    assert_int_equal(w->heard->kind, MU__VAR_DATA);
    memcpy(content, ((struct mu__var_data *)mu__body(w->heard))->data.data,
           sizeof content);
    for (int i = 1; i < COUNT; i++)
        assert_true(content[i] >= content[0] && content[i] <= content[0]);
    return content[0];
}

/* A batch of two pieces: halves of an add, or of a gradient with momentum. */
static void send_batch(struct world *w, uint64_t id, uint64_t effect, uint32_t operation)
{
    const float ones[COUNT] = {1, 1, 1, 1};
    struct mu__effect_write write = {.token = effect,
                                     .batch = effect,
                                     .variable = id,
                                     .operation = operation,
                                     .data = {ones, 8},
                                     .origin = 7,
                                     .effect = effect,
                                     .rule = packed_momentum(-1, 0.5),
                                     .generation = mu__generation_of(1)};

    deliver(w, WORKER, MU__EFFECT_WRITE, &write, sizeof write);
    write.offset = 8;
    write.last = true;
    write.before = 1;
    deliver(w, WORKER, MU__EFFECT_WRITE, &write, sizeof write);
}

static void set_up_server(struct world *w, uint64_t *ret_id)
{
    const struct mu__fence fence = {.origin = 7, .epoch = 1};
    const struct mu__ps_config config = {.incarnation = 1, .leader = "chief"};
    const struct mu__partition_view view = {
        .number = 1, .store_id = 1, .primary = {0, 1}};
    uint8_t bytes[MU__VIEW_BYTES];
    const struct mu__views_set views = {.views = {bytes, sizeof bytes}};

    (void)mu__views_put(bytes, &view);
    *w = (struct world){.world = {&world_ops}};
    assert_int_equal(mu__kernel_new(&w->world, &mu__messages, &w->kernel), 0);
    assert_int_equal(mu__spawn(w->kernel, &mu__ps, MU__PS, &config, NULL), 0);
    mu__kernel_node_up(w->kernel, CHIEF, "chief", 0, 1, "a");
    mu__kernel_node_up(w->kernel, WORKER, "worker", 0, 1, "b");
    deliver(w, CHIEF, MU__VIEWS_SET, &views, sizeof views);
    deliver(w, CHIEF, MU__FENCE, &fence, sizeof fence);
    open_one(w, ret_id);
}

/* All of a batch or nothing; and what was not applied is not noted. */
TEST(test_server)
{
    static const uint32_t operations[] = {MU__WRITE_ADD, MU__WRITE_GRADIENT};
    bool failed = true;

    for (long n = 0; failed; n++) {
        struct world w;
        uint64_t id;
        float seen;

        assert_true(n < 100);
        set_up_server(&w, &id);
        fault_arm(n / 2);
        send_batch(&w, id, 1, operations[n % 2]);
        failed = fault_disarm() || n % 2 == 0;
        seen = read_all(&w, id);
        assert_true(seen <= 0 || seen >= 1);
        send_batch(&w, id, 1, MU__WRITE_ADD);
        assert_true(read_all(&w, id) >= 1 && read_all(&w, id) <= 1);
        mu__pool_put(mu__kernel_pool(w.kernel), w.heard);
        mu__kernel_free(w.kernel);
    }
}

/* ---- The worker's side ---- */

static bool was_sent;

static void on_sent(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    (void)ctx;
    (void)state;
    (void)msg;
    was_sent = true;
}

static const struct mu__handler handlers[] = {{MU__EFFECTS_SENT, on_sent}};
static const struct mu__behavior probe = {
    .name = "probe", .state_size = 1, .handlers = handlers, .handlers_count = 1};

static void post(struct world *w, struct mu_run *run)
{
    struct mu__msg *msg = mu__msg_heap(MU__EFFECTS_SEND, sizeof(struct mu__effects_send));
    struct mu__effects_send *body;

    assert_non_null(msg);
    body = mu__body(msg);
    body->run = run;
    msg->from.actor = MU__WORKER;
    msg->to.actor = MU__VARIABLES;
    assert_int_equal(mu__kernel_deliver(w->kernel, msg), 0);
}

/* A run with writes to three partitions, none of which is served. It waits for them, or
 * has been told that there is no memory; its writes are whole in any case. */
static void check_run(long n)
{
    struct world w = {.world = {&world_ops}};
    struct mu_run run = {.code = 0};
    size_t count = 0;

    assert_int_equal(mu__kernel_new(&w.world, &mu__messages, &w.kernel), 0);
    assert_int_equal(mu__spawn(w.kernel, &probe, MU__WORKER, NULL, NULL), 0);
    assert_int_equal(mu__spawn(w.kernel, &mu__variables, MU__VARIABLES, NULL, NULL), 0);
    for (uint32_t i = 0; i < 6; i++)
        assert_int_equal(
            mu__effects_add(&run.effects,
                            &(struct mu__effect){.partition = i % 3, .size = 1}, "x"),
            0);
    was_sent = false;
    post(&w, &run);
    fault_arm(n);
    mu__kernel_turn(w.kernel);
    (void)fault_disarm();
    assert_int_equal(was_sent, run.code != 0);
    assert_true(run.code == 0 || run.code == -MU_ENOMEM);
    for (const struct mu__effect *e = run.effects.first; e != NULL; e = e->next)
        count++;
    assert_int_equal(count, 6);
    mu__kernel_free(w.kernel);
    mu__effects_clear(&run.effects);
}

TEST(test_worker)
{
    for (long n = 0; n < 40; n++)
        check_run(n);
    assert_false(was_sent);
}

TEST_PROGRAM()
