/* What message passing costs in bare C on one thread: actors in a ring hand messages on.
 * Each hop takes a message from a free list, queues it in the next actor's mailbox, puts
 * that actor in the run queue if it is not there, and gives the former message back.
 *
 *     raw_ring [actors=100] [tokens=100]
 */
#include "bench/raw/raw.h"

struct message {
    struct message *next;
    uint64_t hops_left;
    uint64_t payload[4];
};

struct actor {
    void (*receive)(struct actor *self, const struct message *message);
    struct message *first;
    struct message **last;
    struct actor *next_runnable;
    bool runnable;
    struct actor *neighbour;
    uint64_t received;
};

/* Everything of the one thread. */
struct kernel {
    struct message *free_list;
    struct actor *first;
    struct actor **last;
};

static struct kernel kernel;

static struct message *message_take(void)
{
    struct message *message = kernel.free_list;

    if (message == NULL) {
        message = malloc(sizeof *message);
        raw_check(message != NULL, "malloc");
        return message;
    }
    kernel.free_list = message->next;
    return message;
}

static void message_give_back(struct message *message)
{
    message->next = kernel.free_list;
    kernel.free_list = message;
}

static void actor_send(struct actor *to, struct message *message)
{
    message->next = NULL;
    *to->last = message;
    to->last = &message->next;
    if (to->runnable)
        return;
    to->runnable = true;
    to->next_runnable = NULL;
    *kernel.last = to;
    kernel.last = &to->next_runnable;
}

static void token_receive(struct actor *self, const struct message *message)
{
    struct message *on;

    self->received++;
    if (message->hops_left == 0)
        return;
    on = message_take();
    on->hops_left = message->hops_left - 1;
    memcpy(on->payload, message->payload, sizeof on->payload);
    actor_send(self->neighbour, on);
}

/* Run one actor: everything that was in its mailbox when its turn began. */
static void actor_turn(struct actor *actor)
{
    struct message *message = actor->first;

    actor->first = NULL;
    actor->last = &actor->first;
    actor->runnable = false;
    while (message != NULL) {
        struct message *next = message->next;

        actor->receive(actor, message);
        message_give_back(message);
        message = next;
    }
}

static void kernel_run(void)
{
    while (kernel.first != NULL) {
        struct actor *actor = kernel.first;

        kernel.first = actor->next_runnable;
        if (kernel.first == NULL)
            kernel.last = &kernel.first;
        actor_turn(actor);
    }
}

static struct actor *ring_new(unsigned count)
{
    struct actor *actors = calloc(count, sizeof actors[0]);

    raw_check(actors != NULL, "calloc");
    for (unsigned i = 0; i < count; i++) {
        actors[i].receive = token_receive;
        actors[i].last = &actors[i].first;
        actors[i].neighbour = &actors[(i + 1) % count];
    }
    return actors;
}

static uint64_t ring_received(const struct actor *actors, unsigned count)
{
    uint64_t total = 0;

    for (unsigned i = 0; i < count; i++)
        total += actors[i].received;
    return total;
}

static void messages_free(void)
{
    while (kernel.free_list != NULL)
        free(message_take());
}

int main(int argc, char **argv)
{
    static const char *const names[] = {"actors", "tokens", NULL};
    unsigned count;
    unsigned tokens;
    uint64_t hops;
    uint64_t start_ns;
    uint64_t end_ns;
    struct actor *actors;
    char extra[64];

    raw_args_check(argc, argv, names);
    count = raw_arg_number(argc, argv, "actors", 100, 1, 1000000);
    tokens = raw_arg_number(argc, argv, "tokens", 100, 1, 1000000);
    alarm(RAW_SECONDS_MAX);
    hops = bench_size(1000000, 200000000) / tokens + 1;
    kernel.last = &kernel.first;
    actors = ring_new(count);

    start_ns = bench_now_ns();
    for (unsigned i = 0; i < tokens; i++) {
        struct message *message = message_take();

        *message = (struct message){.hops_left = hops - 1};
        actor_send(&actors[i % count], message);
    }
    kernel_run();
    end_ns = bench_now_ns();

    raw_check(ring_received(actors, count) == hops * tokens, "number of messages");
    snprintf(extra, sizeof extra, "\"actors\":%u,\"tokens\":%u", count, tokens);
    bench_line_write(stdout, &(struct bench_line){
                                 .bench = "raw_ring",
                                 .metric = "rate",
                                 .value = bench_rate(hops * tokens, start_ns, end_ns),
                                 .unit = "messages/s",
                                 .extra = extra,
                             });
    messages_free();
    free(actors);
    return 0;
}
