/* Key-values of the coordination service in its actor: one asker beside it in the same
 * kernel keeps 64 operations under way. What is between a program and the actor (its
 * agent, a link) is not in it; what the messages themselves take is measured with an
 * actor that only answers, and is its limit. */
#include "bench/bench.h"

#include "actors/coordination/coordination.h"
#include "actors/messages.h"
#include "runtime/kernel/kernel.h"

enum { WINDOW = 64, VALUE_BYTES = 16 };

/* ---- A world that only lets turns happen ---- */

struct world {
    struct mu__world world;
    bool wanted;
    uint64_t drawn;
};

static uint64_t now_ms(struct mu__world *world)
{
    (void)world;
    return 0;
}

static uint64_t draw(struct mu__world *world)
{
    return ++((struct world *)world)->drawn * UINT64_C(0x9E3779B97F4A7C15);
}

static void wake_at(struct mu__world *world, uint64_t due_ms)
{
    if (due_ms == 0)
        ((struct world *)world)->wanted = true;
}

static void no_log(struct mu__world *world, enum mu__log_level level, const char *who,
                   const char *line)
{
    (void)world;
    (void)level;
    (void)who;
    (void)line;
}

static const struct mu__world_ops ops = {
    .now_ms = now_ms, .random = draw, .wake_at = wake_at, .log = no_log};

/* ---- The asker ---- */

struct plan {
    uint16_t kind;
    uint64_t keys;
    uint64_t count;
};

static struct plan plan;
static uint64_t asked;
static uint64_t answered;
static uint64_t refused;

/* Keys in an order that is not theirs. */
static struct mu__view key_of(uint64_t number, char out[32])
{
    uint64_t mixed = number * UINT64_C(2654435761) % plan.keys;
    int size = snprintf(out, 32, "bench/%08llu", (unsigned long long)mixed);

    return (struct mu__view){out, (uint32_t)size};
}

/* Names and values that outlive the messages, as an agent's requests do. */
static char (*names)[32];
static const char value[VALUE_BYTES] = "0123456789abcdef";

static void ask(struct mu__ctx *ctx)
{
    struct mu__msg *msg;
    struct mu__view key = {names[asked % plan.keys], 14};

    if (asked == plan.count)
        return;
    msg = mu__msg_new(ctx, plan.kind);
    asked++;
    if (plan.kind == MU__KEY_PUT)
        *(struct mu__key_put *)mu__body(msg) =
            (struct mu__key_put){.token = asked,
                                 .done = asked > WINDOW ? asked - WINDOW : 1,
                                 .key = key,
                                 .value = {value, VALUE_BYTES},
                                 .flags = MU__PUT_OVERWRITE};
    else if (plan.kind == MU__KEY_INCREMENT)
        *(struct mu__key_increment *)mu__body(msg) =
            (struct mu__key_increment){.token = asked,
                                       .done = asked > WINDOW ? asked - WINDOW : 1,
                                       .key = key,
                                       .by = 1};
    else
        *(struct mu__key_get *)mu__body(msg) =
            (struct mu__key_get){.token = asked, .key = key};
    (void)mu__send(ctx, (mu__pid){MU__NODE_SELF, MU__COORDINATION}, msg);
}

static void on_here(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    const struct mu__service_here *here = mu__body(msg);
    struct mu__msg *hello = mu__msg_new(ctx, MU__TASK_REGISTER);

    (void)state;
    if (!here->leads) {
        mu__msg_free(ctx, hello);
        return;
    }
    ((struct mu__task_register *)mu__body(hello))->token = 1;
    (void)mu__send(ctx, (mu__pid){MU__NODE_SELF, MU__COORDINATION}, hello);
}

static void on_registered(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    (void)state;
    (void)msg;
    for (unsigned i = 0; i < WINDOW; i++)
        ask(ctx);
}

static void on_done(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    const struct mu__key_done *done = mu__body(msg);

    (void)state;
    answered++;
    refused += done->code != 0;
    ask(ctx);
}

static const struct mu__handler handlers[] = {{MU__SERVICE_HERE, on_here},
                                              {MU__TASKS_ANSWER, on_registered},
                                              {MU__KEY_DONE, on_done}};

static const struct mu__behavior asker = {
    .name = "asker", .handlers = handlers, .handlers_count = 3};

/* ---- Who only answers ---- */

static void on_any(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    const struct mu__key_put *put = mu__body(msg);
    struct mu__msg *done = mu__msg_new(ctx, MU__KEY_DONE);

    (void)state;
    ((struct mu__key_done *)mu__body(done))->token = put->token;
    (void)mu__send(ctx, msg->from, done);
}

static int echo_init(struct mu__ctx *ctx, void *state, const void *arg)
{
    struct mu__msg *answer = mu__msg_new(ctx, MU__TASKS_ANSWER);

    (void)state;
    (void)arg;
    return mu__send(ctx, (mu__pid){MU__NODE_SELF, MU__AGENT}, answer);
}

static const struct mu__handler echo_handlers[] = {{MU__KEY_PUT, on_any}};

static const struct mu__behavior echo = {
    .name = "echo", .handlers = echo_handlers, .handlers_count = 1, .init = echo_init};

/* ---- Measuring ---- */

static void spawn(struct mu__kernel *kernel, const struct mu__behavior *service)
{
    const struct mu__coordination_config config = {
        .store = &mu__store_memory,
        .store_location = "",
        .cluster_name = "bench",
        .task = "/job:chief/task:0",
        .incarnation = 1,
        .tasks = "chief:0",
        .recoverable = "all",
        .suspect_ms = 1000,
        .dead_ms = 3000,
        .reconnect_ms = 2000,
    };

    if (mu__spawn(kernel, &asker, MU__AGENT, NULL, NULL) != 0 ||
        mu__spawn(kernel, service, MU__COORDINATION, &config, NULL) != 0)
        abort();
}

static void turns(struct world *world, struct mu__kernel *kernel)
{
    while (answered < plan.count) {
        world->wanted = false;
        mu__kernel_turn(kernel);
        if (!world->wanted && answered < plan.count)
            abort();
    }
}

/* Nanoseconds for one operation, once each key is there. */
static double measure(const struct mu__behavior *service, uint16_t kind, uint64_t keys)
{
    struct world world = {.world.ops = &ops};
    struct mu__kernel *kernel;
    uint64_t start_ns;
    uint64_t first = service == &echo ? WINDOW : keys;
    uint64_t more = bench_size(1000, 2000000);
    double ns;

    plan = (struct plan){kind == MU__KEY_GET ? MU__KEY_PUT : kind, keys, first};
    names = calloc(keys, sizeof *names);
    for (uint64_t i = 0; i < keys; i++)
        (void)key_of(i, names[i]);
    asked = answered = refused = 0;
    if (mu__kernel_new(&world.world, &mu__messages, &kernel) != 0)
        abort();
    spawn(kernel, service);
    turns(&world, kernel);
    plan.kind = kind;
    plan.count += more;
    start_ns = bench_now_ns();
    /* The asker has stopped: the answers of the first keys are all there. */
    struct mu__ctx ctx = {kernel, {MU__NODE_SELF, MU__AGENT}, NULL};
    for (unsigned i = 0; i < WINDOW; i++)
        ask(&ctx);
    turns(&world, kernel);
    ns = (double)(bench_now_ns() - start_ns) / (double)more;
    mu__kernel_free(kernel);
    free(names);
    if (refused > 0)
        abort();
    return ns;
}

static void report(const char *metric, uint16_t kind, uint64_t keys)
{
    struct bench_line line = {.bench = "keys",
                              .metric = metric,
                              .unit = "ns/operation",
                              .less_is_more = true,
                              .target = 400};

    line.limit = measure(&echo, MU__KEY_PUT, 1000);
    line.value = measure(&mu__coordination, kind, keys);
    bench_report(&line);
}

int main(void)
{
    uint64_t many = bench_size(2000, 1000000);

    report("put_of_1000_keys", MU__KEY_PUT, 1000);
    report("get_of_1000_keys", MU__KEY_GET, 1000);
    report("increment_of_1000_keys", MU__KEY_INCREMENT, 1000);
    report("put_of_many_keys", MU__KEY_PUT, many);
    report("get_of_many_keys", MU__KEY_GET, many);
    return 0;
}
