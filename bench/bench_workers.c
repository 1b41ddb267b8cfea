/* One supervisor with 10 and with 10,000 workers: what a closure costs it, what it takes
 * until the workers are registered, and what the loss of one costs. Over the kernel
 * alone: a world swallows RUN and answers with RESULT.
 *
 * As many closures are outstanding with few workers as with many. */
#include "bench/bench.h"

#include "actors/messages.h"
#include "actors/supervisor/supervisor.h"
#include "runtime/kernel/kernel.h"

enum { FEW = 10, MANY = 10000, OUTSTANDING = 10000, WINDOW = 1024, ROUNDS = 5 };

/* ---- a world whose nodes answer every RUN ---- */

struct world {
    struct mu__world world;
    struct mu__kernel *kernel;
    bool wanted;
    struct mu__msg *first; /* RUN messages that were sent in this turn */
    struct mu__msg **last;
    uint64_t answered;
};

static uint64_t now_ms(struct mu__world *world)
{
    (void)world;
    return 1;
}

static void wake_at(struct mu__world *world, uint64_t due_ms)
{
    if (due_ms <= 1)
        ((struct world *)world)->wanted = true;
}

static int transmit(struct mu__world *world, struct mu__msg *msg)
{
    struct world *w = (struct world *)world;

    msg->next = NULL;
    *w->last = msg;
    w->last = &msg->next;
    return 0;
}

static void swallow_line(struct mu__world *world, enum mu__log_level level,
                         const char *who, const char *line)
{
    (void)world;
    (void)level;
    (void)who;
    (void)line;
}

static const struct mu__world_ops ops = {
    .now_ms = now_ms,
    .random = now_ms,
    .wake_at = wake_at,
    .transmit = transmit,
    .log = swallow_line,
};

static void *need(void *memory)
{
    if (memory == NULL)
        abort();
    return memory;
}

static void answer(struct world *w, const struct mu__msg *asked)
{
    const struct mu__run *run = (const struct mu__run *)(const void *)asked->body;
    struct mu__msg *msg = need(mu__pool_get(mu__kernel_pool(w->kernel), MU__RESULT,
                                            sizeof(struct mu__result)));
    struct mu__result *result = mu__body(msg);

    result->closure = run->closure;
    result->attempt = run->attempt;
    msg->from = asked->to;
    msg->to = (mu__pid){MU__NODE_SELF, MU__SUPERVISOR};
    (void)mu__kernel_deliver(w->kernel, msg);
    w->answered++;
}

static void answer_all(struct world *w)
{
    struct mu__msg *msg = w->first;

    w->first = NULL;
    w->last = &w->first;
    while (msg != NULL) {
        struct mu__msg *next = msg->next;

        if (msg->kind == MU__RUN)
            answer(w, msg);
        mu__pool_put(mu__kernel_pool(w->kernel), msg);
        msg = next;
    }
}

static void run_turns(struct world *w)
{
    do {
        w->wanted = false;
        mu__kernel_turn(w->kernel);
        if (w->first != NULL)
            w->wanted = true;
        answer_all(w);
    } while (w->wanted);
}

/* ---- the program: each closure that is resolved makes room for the next ---- */

static uint64_t left;
static uint64_t resolved;

static void schedule(struct mu__ctx *ctx, uint64_t token)
{
    struct mu__msg *msg = need(mu__msg_new(ctx, MU__SCHEDULE));
    struct mu__schedule *body = mu__body(msg);

    left--;
    body->token = token;
    body->function = mu__view_str("work");
    (void)mu__send(ctx, (mu__pid){MU__NODE_SELF, MU__SUPERVISOR}, msg);
}

static void on_resolved(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    (void)state;
    resolved++;
    if (left > 0)
        schedule(ctx, ((struct mu__resolved *)mu__body(msg))->token);
}

static void on_start(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    (void)state;
    (void)msg;
    for (uint64_t token = 1; token <= OUTSTANDING && left > 0; token++)
        schedule(ctx, token);
}

static const struct mu__handler handlers[] = {
    {MU__RESOLVED, on_resolved},
    {MU__CANCEL_ALL, on_start},
};

static const struct mu__behavior program = {
    .name = "program",
    .mailbox_max = MU__MAILBOX_BY_SENDERS,
    .handlers = handlers,
    .handlers_count = sizeof handlers / sizeof handlers[0],
};

/* ---- measuring ---- */

static void make(struct world *w)
{
    const struct mu__supervisor_config config = {
        .window = WINDOW,
        .attempts_max = 5,
        .queue_max = 2 * OUTSTANDING,
        .origin = 1,
    };

    *w = (struct world){.world.ops = &ops};
    w->last = &w->first;
    if (mu__kernel_new(&w->world, &mu__messages, &w->kernel) != 0 ||
        mu__spawn(w->kernel, &mu__supervisor, MU__SUPERVISOR, &config, NULL) != 0)
        abort();
}

static void join(struct world *w, uint32_t node)
{
    struct mu__msg *msg = need(mu__msg_heap(MU__REGISTER, sizeof(struct mu__register)));

    mu__kernel_node_up(w->kernel, node, "worker", node - 1, 1, "tcp://10.0.0.1:7000");
    msg->from = (mu__pid){node, MU__WORKER};
    msg->to = (mu__pid){MU__NODE_SELF, MU__SUPERVISOR};
    ((struct mu__register *)mu__body(msg))->threads = 1;
    (void)mu__kernel_deliver(w->kernel, msg);
}

/* Microseconds for each worker. */
static double join_all(struct world *w, uint32_t workers)
{
    uint64_t start_ns = bench_now_ns();

    for (uint32_t i = 1; i <= workers; i++)
        join(w, i);
    run_turns(w);
    return (double)(bench_now_ns() - start_ns) / 1e3 / workers;
}

/* Every third of them. */
static double lose_some(struct world *w, uint32_t workers)
{
    uint64_t start_ns = bench_now_ns();
    uint32_t count = 0;

    for (uint32_t i = 1; i <= workers; i += 3, count++)
        mu__kernel_node_down(w->kernel, i, "it was stopped", false);
    run_turns(w);
    return (double)(bench_now_ns() - start_ns) / 1e3 / count;
}

/* Picoseconds for each closure. */
static uint64_t run_many(struct world *w, mu__pid pid, uint64_t count)
{
    struct mu__msg *msg =
        need(mu__msg_heap(MU__CANCEL_ALL, sizeof(struct mu__cancel_all)));
    uint64_t start_ns = bench_now_ns();

    left = count;
    resolved = 0;
    msg->to = pid;
    (void)mu__kernel_deliver(w->kernel, msg);
    run_turns(w);
    if (resolved != count)
        abort();
    return (bench_now_ns() - start_ns) * 1000 / count;
}

struct cluster {
    struct world world;
    mu__pid program;
    uint32_t workers;
    double join_us;
    uint64_t samples[ROUNDS];
};

static void begin(struct cluster *c, uint32_t workers)
{
    make(&c->world);
    c->workers = workers;
    c->join_us = join_all(&c->world, workers);
    if (mu__spawn(c->world.kernel, &program, 0, NULL, &c->program) != 0)
        abort();
}

static void report(const struct cluster *c, const char *what, double value,
                   struct bench_line line)
{
    char metric[96];

    (void)snprintf(metric, sizeof metric, "%s, %u workers", what, c->workers);
    line.bench = "workers";
    line.metric = metric;
    line.value = value;
    line.less_is_more = true;
    bench_report(&line);
}

int main(void)
{
    static struct cluster few;
    static struct cluster many;
    uint64_t count = bench_size(20000, 1000000);
    uint64_t rounds = bench_size(1, ROUNDS);
    uint32_t workers = (uint32_t)bench_size(1000, MANY);
    char extra[64];
    double few_ns;

    begin(&few, FEW);
    begin(&many, workers);
    for (uint64_t i = 0; i < rounds; i++) {
        few.samples[i] = run_many(&few.world, few.program, count);
        many.samples[i] = run_many(&many.world, many.program, count);
    }
    (void)snprintf(extra, sizeof extra, "\"digest\":%llu",
                   (unsigned long long)(few.world.answered + many.world.answered));
    few_ns = (double)bench_median(few.samples, rounds) / 1e3;
    report(&few, "closure", few_ns, (struct bench_line){.unit = "ns", .extra = extra});
    report(&many, "closure", (double)bench_median(many.samples, rounds) / 1e3,
           (struct bench_line){
               .unit = "ns", .limit = few_ns, .target = 2 * few_ns, .extra = extra});
    report(&few, "join", few.join_us, (struct bench_line){.unit = "us/worker"});
    report(&many, "join", many.join_us,
           (struct bench_line){.unit = "us/worker", .target = 10});
    report(&many, "loss", lose_some(&many.world, workers),
           (struct bench_line){.unit = "us/worker", .target = 10});
    mu__kernel_free(few.world.kernel);
    mu__kernel_free(many.world.kernel);
    return 0;
}
