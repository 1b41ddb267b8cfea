/* Memory that is missing anywhere in the coordination service: what was asked fails or is
 * not answered, nothing leaks, and the service goes on. */
#include "actors/coordination/coordination.h"
#include "actors/coordination/internal.h"
#include "actors/messages.h"
#include "tests/support/bare_world.h"
#include "tests/support/fault.h"
#include "tests/support/test.h"

/* ---- The world: nothing leaves it, time is the test's ---- */

struct world {
    struct bare_world bare; /* first */
    struct mu__kernel *kernel;
    mu__pid pid;
    uint64_t answers; /* without a code, to tokens above LATE */
};

enum { LATE = 1000, TASKS = 3 };

static int world_transmit(struct mu__world *world, struct mu__msg *msg)
{
    struct world *w = (struct world *)world;
    const struct mu__tasks_answer *body = mu__body(msg);

    if (msg->kind == MU__TASKS_ANSWER && body->token > LATE && body->code == 0)
        w->answers++;
    mu__pool_put(mu__kernel_pool(w->kernel), msg);
    return 0;
}

static const struct mu__world_ops world_ops = BARE_WORLD_OPS(world_transmit);

static void turns(struct world *w)
{
    for (int i = 0; i < 4; i++)
        mu__kernel_turn(w->kernel);
}

static void run_for(struct world *w, uint64_t ms)
{
    for (; ms > 0; ms -= 10, w->bare.now_ms += 10)
        turns(w);
}

static void tell(struct world *w, uint32_t node, uint16_t kind, const void *body,
                 size_t size)
{
    struct mu__msg *msg = mu__msg_heap(kind, size);

    if (msg == NULL)
        return;
    memcpy(msg->body, body, size);
    msg->from = (mu__pid){node, MU__AGENT};
    msg->to.actor = MU__COORDINATION;
    (void)mu__kernel_deliver(w->kernel, msg);
    turns(w);
}

#define TELL(w, node, KIND, name, ...)                           \
    tell(w, node, MU__##KIND, &(struct mu__##name){__VA_ARGS__}, \
         sizeof(struct mu__##name))

static int spawn(struct world *w)
{
    const struct mu__coordination_config config = {
        .store = &mu__store_memory,
        .cluster_name = "oom",
        .task = "/job:chief/task:0",
        .incarnation = 1,
        .tasks = "chief:0,worker:0-2",
        .recoverable = "chief",
        .suspect_ms = 100,
        .dead_ms = 300,
        .reconnect_ms = 200,
        .leave_ms = 100,
    };

    return mu__spawn(w->kernel, &mu__coordination, MU__COORDINATION, &config, &w->pid);
}

/* Everything that tasks do, once. */
static void live(struct world *w)
{
    for (uint32_t i = 0; i < TASKS; i++) {
        mu__kernel_node_up(w->kernel, i + 1, "worker", i, 10 + i, "tcp://worker:1");
        turns(w);
        TELL(w, i + 1, TASK_REGISTER, task_register, .token = 1, .barrier = i == 0,
             .timeout_ms = 50);
        TELL(w, i + 1, TASKS_GET, tasks_get, .token = 2, .what = MU__TASKS_WAIT,
             .tasks = mu__view_str("worker:0-2"), .timeout_ms = 100);
        TELL(w, i + 1, TASKS_GET, tasks_get, .token = 3, .what = MU__TASKS_WATCH,
             .version = i, .timeout_ms = 100);
        TELL(w, i + 1, TASKS_GET, tasks_get, .token = 4, .what = MU__TASKS_STATES);
        TELL(w, i + 1, TASK_HEARTBEAT, task_heartbeat, .progress = 1);
    }
    run_for(w, 60);
    TELL(w, 1, TASK_LEAVE, task_leave, .token = 5);
    mu__kernel_node_down(w->kernel, 2, "cut", false);
    run_for(w, 60);
    TELL(w, 3, TASK_REPORT, task_report, .token = 6, .code = MU_EDATALOSS,
         .message = mu__view_str("a bad disk"));
    TELL(w, 3, TASK_RESET, task_reset, .token = 7);
    TELL(w, 3, TASK_REGISTER, task_register, .token = 8);
    run_for(w, 400);
}

TEST(test_every_allocation)
{
    bool failed = true;
    long n;

    for (n = 0; failed; n++) {
        struct world w = {.bare = {{&world_ops}, 1}};
        int rv;

        assert_int_equal(mu__kernel_new(&w.bare.world, &mu__messages, &w.kernel), 0);
        fault_arm(n);
        rv = spawn(&w);
        if (rv == 0) {
            turns(&w);
            live(&w);
        }
        failed = fault_disarm();
        if (rv == 0) {
            mu__kernel_node_up(w.kernel, 20, "worker", 1, 99, "tcp://worker:1");
            /* A tick that could not be set is made up for by the next message. */
            TELL(&w, 20, TASK_RESET, task_reset, .token = LATE);
            run_for(&w, 2000);
            TELL(&w, 20, TASK_RESET, task_reset, .token = LATE + 1);
            TELL(&w, 20, TASK_REGISTER, task_register, .token = LATE + 2);
            assert_int_equal(w.answers, 2);
        }
        mu__kernel_free(w.kernel);
    }
    assert_true(n > 100);
}

TEST_PROGRAM()
