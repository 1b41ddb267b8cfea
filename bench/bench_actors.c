/* Messages between actors of one loop, and ask-and-reply, over the kernel alone: what the
 * supervisor and everything else is built on. The limit is bench/raw/raw_ring: an
 * intrusive list and a free list in plain C. */
#include "bench/bench.h"

#include "actors/messages.h"
#include "runtime/kernel/kernel.h"

enum { RING_ACTORS = 100, ASKERS = 100 };

/* ---- a world that only lets turns happen ---- */

struct world {
    struct mu__world world;
    bool wanted;
};

static uint64_t now_ms(struct mu__world *world)
{
    (void)world;
    return 0;
}

static void wake_at(struct mu__world *world, uint64_t due_ms)
{
    (void)due_ms;
    ((struct world *)world)->wanted = true;
}

static const struct mu__world_ops ops = {
    .now_ms = now_ms,
    .random = now_ms,
    .wake_at = wake_at,
};

/* ---- a ring: each actor passes what it gets to the next ---- */

struct passer {
    mu__pid next;
};

static uint64_t passes_left;
static uint64_t digest;

static void on_pass(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    struct passer *passer = state;
    struct mu__status_get *got = mu__body(msg);
    struct mu__status_get *body;
    struct mu__msg *onward;

    digest += got->token;
    if (passes_left == 0)
        return;
    passes_left--;
    onward = mu__msg_new(ctx, MU__STATUS_GET);
    body = mu__body(onward);
    body->token = got->token + 1;
    (void)mu__send(ctx, passer->next, onward);
}

static const struct mu__handler pass_handlers[] = {{MU__STATUS_GET, on_pass}};

static const struct mu__behavior passer_behavior = {
    .name = "passer",
    .state_size = sizeof(struct passer),
    .handlers = pass_handlers,
    .handlers_count = 1,
};

static void inject(struct mu__kernel *kernel, mu__pid to)
{
    struct mu__msg *msg = mu__msg_heap(MU__STATUS_GET, sizeof(struct mu__status_get));

    if (msg == NULL)
        abort();
    msg->to = to;
    (void)mu__kernel_deliver(kernel, msg);
}

static struct mu__kernel *kernel_new(struct world *world)
{
    struct mu__kernel *kernel;

    *world = (struct world){.world.ops = &ops};
    if (mu__kernel_new(&world->world, &mu__messages, &kernel) != 0)
        abort();
    return kernel;
}

static void run_turns(struct world *world, struct mu__kernel *kernel)
{
    do {
        world->wanted = false;
        mu__kernel_turn(kernel);
    } while (world->wanted);
}

static double ring(uint64_t messages, int tokens)
{
    struct world world;
    struct mu__kernel *kernel = kernel_new(&world);
    mu__pid pids[RING_ACTORS];
    uint64_t start_ns;
    double rate;

    for (int i = 0; i < RING_ACTORS; i++)
        if (mu__spawn(kernel, &passer_behavior, 0, NULL, &pids[i]) != 0)
            abort();
    for (int i = 0; i < RING_ACTORS; i++)
        ((struct passer *)mu__actor_state(kernel, pids[i]))->next =
            pids[(i + 1) % RING_ACTORS];
    passes_left = messages;
    for (int i = 0; i < tokens; i++)
        inject(kernel, pids[i]);
    start_ns = bench_now_ns();
    run_turns(&world, kernel);
    rate = bench_rate(messages, start_ns, bench_now_ns());
    mu__kernel_free(kernel);
    return rate;
}

/* ---- ask and reply: each asker asks anew when it has its answer ---- */

static void on_ask(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    struct mu__status_get *got = mu__body(msg);
    struct mu__msg *reply = mu__msg_new(ctx, MU__CANCEL_ALL);
    struct mu__cancel_all *body = mu__body(reply);

    (void)state;
    body->token = got->token * 2;
    (void)mu__send(ctx, msg->from, reply);
}

static void ask(struct mu__ctx *ctx, mu__pid whom, uint64_t token)
{
    struct mu__msg *msg = mu__msg_new(ctx, MU__STATUS_GET);
    struct mu__status_get *body = mu__body(msg);

    body->token = token;
    (void)mu__send(ctx, whom, msg);
}

static void on_reply(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    struct mu__cancel_all *got = mu__body(msg);

    (void)state;
    digest += got->token;
    if (passes_left == 0)
        return;
    passes_left--;
    ask(ctx, msg->from, passes_left);
}

static int asker_init(struct mu__ctx *ctx, void *state, const void *arg)
{
    (void)state;
    ask(ctx, *(const mu__pid *)arg, 1);
    return 0;
}

static const struct mu__handler answer_handlers[] = {{MU__STATUS_GET, on_ask}};
static const struct mu__handler asker_handlers[] = {{MU__CANCEL_ALL, on_reply}};

static const struct mu__behavior answerer_behavior = {
    .name = "answerer",
    .handlers = answer_handlers,
    .handlers_count = 1,
};

static const struct mu__behavior asker_behavior = {
    .name = "asker",
    .handlers = asker_handlers,
    .handlers_count = 1,
    .init = asker_init,
};

static double ask_and_reply(uint64_t asks)
{
    struct world world;
    struct mu__kernel *kernel = kernel_new(&world);
    mu__pid answerer;
    uint64_t start_ns;
    double rate;

    if (mu__spawn(kernel, &answerer_behavior, 0, NULL, &answerer) != 0)
        abort();
    passes_left = asks;
    for (int i = 0; i < ASKERS; i++)
        if (mu__spawn(kernel, &asker_behavior, 0, &answerer, NULL) != 0)
            abort();
    start_ns = bench_now_ns();
    run_turns(&world, kernel);
    rate = bench_rate(asks, start_ns, bench_now_ns());
    mu__kernel_free(kernel);
    return rate;
}

int main(void)
{
    uint64_t count = bench_size(10000, 50000000);
    char extra[64];
    struct bench_line line = {.bench = "actors", .unit = "messages/s", .extra = extra};

    (void)snprintf(extra, sizeof extra, "\"digest\":0");
    (void)ring(count / 10, RING_ACTORS);
    digest = 0;
    line.metric = "ring of 100 actors, 100 tokens";
    line.target = 20e6;
    line.value = ring(count, RING_ACTORS);
    (void)snprintf(extra, sizeof extra, "\"digest\":%llu", (unsigned long long)digest);
    if (bench_is_full())
        (void)bench_raw("raw_ring", "", &line.limit);
    bench_report(&line);

    digest = 0;
    line.metric = "ring of 100 actors, 1 token";
    line.target = 0.0;
    line.limit = 0.0;
    line.value = ring(count, 1);
    (void)snprintf(extra, sizeof extra, "\"digest\":%llu", (unsigned long long)digest);
    bench_report(&line);

    digest = 0;
    line.metric = "ask and reply";
    line.unit = "replies/s";
    line.target = 3e6;
    line.value = ask_and_reply(count / 2);
    (void)snprintf(extra, sizeof extra, "\"digest\":%llu", (unsigned long long)digest);
    bench_report(&line);
    return digest == 0;
}
