/* Memory that is missing anywhere in the agent: each thing that a program asks is
 * answered once all the same, and nothing is left. The agent on a kernel of its own; the
 * service on another node is played here. */
#include "actors/agent/agent.h"
#include "actors/messages.h"
#include "actors/packing.h"
#include "tests/support/bare_world.h"
#include "tests/support/fault.h"
#include "tests/support/test.h"

enum { HOST = 7, SAID_MAX = 64, CALLS = 8, KEYS = 12, STEP_MS = 100, TURNS = 32 };

struct world {
    struct bare_world bare; /* first */
    struct mu__kernel *kernel;
    struct mu__agent_shared shared;
    struct mu__msg *said[SAID_MAX]; /* to the service, not answered yet */
    unsigned said_count;
    struct mu__agent_call calls[CALLS];
    unsigned completed[CALLS];
    unsigned begun; /* requests about keys, */
    unsigned answered;
    struct mu__agent_watch *watch;
};

static struct world *of(struct mu__world *world)
{
    return (struct world *)world;
}

static int world_transmit(struct mu__world *world, struct mu__msg *msg)
{
    struct world *w = of(world);

    assert_true(w->said_count < SAID_MAX);
    w->said[w->said_count++] = msg;
    return 0;
}

static const struct mu__world_ops world_ops = BARE_WORLD_OPS(world_transmit);

static void turn(struct world *w)
{
    for (int i = 0; i < TURNS; i++)
        mu__kernel_turn(w->kernel);
}

/* ---- The service ---- */

static void say(struct world *w, uint16_t kind, const void *body, size_t size)
{
    struct mu__msg *msg = mu__msg_heap(kind, size);

    if (msg == NULL)
        return;
    memcpy(mu__body(msg), body, size);
    msg->from = (mu__pid){HOST, MU__COORDINATION};
    msg->to.actor = MU__AGENT;
    (void)mu__kernel_deliver(w->kernel, msg);
}

static void say_event(struct world *w, uint64_t token)
{
    const struct mu__key_event set = {
        .token = token, .key = {"k", 1}, .value = {"v", 1}, .revision = 3};
    const struct mu__key_event deleted = {
        .token = token, .key = {"k", 1}, .deleted = true};
    const struct mu__key_event complete = {.token = token, .complete = true};

    say(w, MU__KEY_EVENT, &set, sizeof set);
    say(w, MU__KEY_EVENT, &complete, sizeof complete);
    say(w, MU__KEY_EVENT, &deleted, sizeof deleted);
}

static void say_list(struct world *w, uint64_t token)
{
    mu_value *items = mu_value_list();
    struct mu__key_listed listed = {.token = token};
    struct mu__buf *buf = NULL;

    if (items != NULL)
        buf = mu__pack_value(items, &listed.items);
    mu_value_free(items);
    if (buf != NULL)
        say(w, MU__KEY_LISTED, &listed, sizeof listed);
    turn(w);
    mu__buf_unref(buf);
}

/* All messages that are answered by one begin with their token. */
static void answer(struct world *w, const struct mu__msg *msg)
{
    uint64_t token = *(const uint64_t *)(const void *)msg->body;
    const struct mu__tasks_answer done = {.token = token};
    const struct mu__key_done key_done = {.token = token, .revision = 1};
    const struct mu__barrier_passed passed = {.token = token};

    if (msg->kind == MU__KEY_WATCH)
        say_event(w, token);
    else if (msg->kind == MU__KEY_LIST)
        say_list(w, token);
    else if (msg->kind == MU__BARRIER_ARRIVE)
        say(w, MU__BARRIER_PASSED, &passed, sizeof passed);
    else if (msg->kind >= MU__KEY_PUT && msg->kind <= MU__KEY_DELETE)
        say(w, MU__KEY_DONE, &key_done, sizeof key_done);
    else if (msg->kind != MU__TASK_HEARTBEAT && msg->kind != MU__KEY_UNWATCH)
        say(w, MU__TASKS_ANSWER, &done, sizeof done);
}

static void serve(struct world *w)
{
    for (unsigned round = 0; round < 4; round++) {
        unsigned count = w->said_count;
        struct mu__msg *said[SAID_MAX];

        memcpy(said, w->said, sizeof said);
        w->said_count = 0;
        for (unsigned i = 0; i < count; i++) {
            answer(w, said[i]);
            mu__pool_put(mu__kernel_pool(w->kernel), said[i]);
        }
        turn(w);
    }
}

/* Without the link, what was on its way is gone. */
static void drop_said(struct world *w)
{
    while (w->said_count > 0)
        mu__pool_put(mu__kernel_pool(w->kernel), w->said[--w->said_count]);
}

static void link_up(struct world *w)
{
    const struct mu__service_here here = {.leads = true, .epoch = 1, .store = 5};

    mu__kernel_node_up(w->kernel, HOST, "chief", 0, 99, "tcp://chief");
    turn(w);
    say(w, MU__SERVICE_HERE, &here, sizeof here);
    turn(w);
}

/* ---- The program ---- */

static void completed(struct mu__call *call)
{
    struct world *w = call->owner;

    w->completed[(struct mu__agent_call *)(void *)call - w->calls]++;
}

static void ask(struct world *w, unsigned i, int operation)
{
    struct mu__agent_call *call = &w->calls[i];
    struct mu__msg *msg = mu__msg_heap(MU__CALL, sizeof(struct mu__call_msg));

    if (msg == NULL) {
        w->completed[i]++;
        return;
    }
    *call = (struct mu__agent_call){
        .call = {.complete = completed,
                 .owner = w,
                 .operation = operation,
                 .timeout_ms = 1000},
        .name = "k",
        .watch = w->watch,
        .failure = {.code = -MU_EINTERNAL},
    };
    ((struct mu__call_msg *)(void *)msg->body)->call = call;
    msg->to.actor = MU__AGENT;
    if (mu__kernel_deliver(w->kernel, msg) != 0)
        w->completed[i]++;
    turn(w);
}

static void key_answered(void *user, const mu_kv_response *given)
{
    (void)given;
    ((struct world *)user)->answered++;
}

static void ask_key(struct world *w, int operation)
{
    const mu_kv_request given = {
        .operation = operation, .key = "k", .value = "v", .size = 1, .timeout_ms = 1000};
    struct mu__msg *msg;
    uint64_t id;

    if (mu__key_request_new(&w->shared, &given, key_answered, w, NULL, &id, &msg) != 0)
        return;
    w->begun++;
    msg->to.actor = MU__AGENT;
    (void)mu__kernel_deliver(w->kernel, msg);
    turn(w);
}

static void use(struct world *w)
{
    static const int operations[CALLS - 1] = {
        MU__AGENT_REGISTER, MU__AGENT_BARRIER, MU__AGENT_LIST, MU__AGENT_WATCH,
        MU__AGENT_NOTICE,   MU__AGENT_REPORT,  MU__AGENT_RESET};

    for (unsigned i = 0; i < KEYS; i++)
        ask_key(w, (int)(i % 5));
    for (unsigned i = 0; i < 5; i++)
        ask(w, i, operations[i]);
    link_up(w);
    serve(w);
    ask(w, 7, MU__AGENT_WATCH_NEXT);
    serve(w);
    mu__kernel_node_down(w->kernel, HOST, "gone", false);
    turn(w);
    drop_said(w);
    for (unsigned i = 0; i < KEYS; i++)
        ask_key(w, (int)(i % 5));
    link_up(w);
    serve(w);
    ask(w, 5, operations[5]);
    serve(w);
    ask(w, 6, operations[6]);
    serve(w);
    for (unsigned i = 0; i < 20; i++) {
        w->bare.now_ms += STEP_MS;
        turn(w);
        serve(w);
    }
}

static void free_world(struct world *w)
{
    drop_said(w);
    mu__kernel_free(w->kernel);
    for (unsigned i = 0; i < CALLS; i++)
        mu_value_free(w->calls[i].content);
    free(w->calls[7].event.key);
    free(w->calls[7].event.item.value);
    if (w->watch != NULL)
        mu__agent_watch_unref(w->watch);
}

/* False: it could not even begin. */
static bool run(struct world *w)
{
    struct mu__agent_config config = {
        .hosts = "chief:0",
        .address = "tcp://chief",
        .tasks = "chief:0,worker:0",
        .type = "worker",
        .incarnation = 3,
        .heartbeat_ms = 100,
        .dead_ms = 1000,
        .registers_at_once = true,
        .shared = &w->shared,
    };

    w->bare = (struct bare_world){{&world_ops}, 1};
    w->watch = mu__agent_watch_new();
    if (w->watch == NULL ||
        mu__kernel_new(&w->bare.world, &mu__messages, &w->kernel) != 0)
        return false;
    if (mu__spawn(w->kernel, &mu__agent, MU__AGENT, &config, NULL) != 0)
        return false;
    use(w);
    return true;
}

TEST(test_every_allocation_can_fail)
{
    bool failed = true;
    long n = 0;

    for (; failed; n++) {
        struct world *w = __real_calloc(1, sizeof *w);
        bool has_begun;

        fault_arm(n);
        has_begun = run(w);
        failed = fault_disarm();
        free_world(w);
        if (has_begun) {
            for (unsigned i = 0; i < CALLS; i++)
                assert_int_equal(w->completed[i], 1);
            assert_int_equal(w->answered, w->begun);
            assert_int_equal(atomic_load(&w->shared.begun),
                             atomic_load(&w->shared.answered));
        }
        for (unsigned i = 0; i < CALLS && !failed; i++)
            assert_int_equal(w->calls[i].call.code, 0);
        assert_true(n < 2000);
        free(w);
    }
    assert_true(n > 50);
}

TEST_PROGRAM()
