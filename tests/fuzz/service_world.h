/* The real coordination service with the store in a file, and three tasks, of which a
 * fuzzer is the voice. */
#ifndef MUSTER_TESTS_FUZZ_SERVICE_WORLD_H
#define MUSTER_TESTS_FUZZ_SERVICE_WORLD_H

#include "actors/coordination/coordination.h"
#include "actors/messages.h"
#include "sim/world/storage.h"
#include "tests/fuzz/must.h"
#include "tests/support/bare_world.h"

#include <stdint.h>
#include <string.h>

enum { TASKS = 3 };

struct world {
    struct bare_world bare; /* first */
    struct mu__kernel *kernel;
    mu__pid pid; /* of the service */
    struct sim_storage *storage;
    struct sim_storage *kept; /* of the keeper; NULL: there is none */
    const char *run;          /* of the job; NULL: it has none */
    uint32_t reconnect_ms;
    uint64_t asked;
    uint64_t answered;
    uint32_t code; /* of the last answer */
};

static inline void take_turns(struct world *w)
{
    for (int i = 0; i < 3; i++)
        mu__kernel_turn(w->kernel);
}

/* As an actor of a node. */
static inline void say_as(struct world *w, mu__pid from, uint16_t kind, const void *body)
{
    size_t size = mu__messages.rows[kind].body_size;
    struct mu__msg *msg = mu__msg_heap(kind, size);

    must(msg != NULL, "memory");
    memcpy(msg->body, body, size);
    msg->from = from;
    msg->to = w->pid;
    must(mu__kernel_deliver(w->kernel, msg) == 0, "delivered");
    take_turns(w);
}

/* The service starts, and all tasks register. */
static inline void begin_service(struct world *w)
{
    const struct mu__coordination_config config = {
        .store = &mu__store_journal,
        .store_location = "x",
        .storage = &w->storage->base,
        .kept = w->kept == NULL ? NULL : &w->kept->base,
        .cluster_name = "fuzz",
        .task = "/job:chief/task:0",
        .incarnation = 1,
        .tasks = "chief:0,worker:0-2",
        .recoverable = "all",
        .suspect_ms = 100000,
        .dead_ms = 300000,
        .reconnect_ms = w->reconnect_ms,
        .run = w->run,
    };
    const struct mu__task_register body = {.token = 1};

    must(mu__kernel_new(&w->bare.world, &mu__messages, &w->kernel) == 0, "kernel");
    must(mu__spawn(w->kernel, &mu__coordination, MU__COORDINATION, &config, &w->pid) == 0,
         "service");
    take_turns(w);
    for (uint32_t i = 0; i < TASKS; i++) {
        mu__kernel_node_up(w->kernel, 1 + i, "worker", i, 100 + i, "tcp://w:1");
        say_as(w, (mu__pid){1 + i, MU__AGENT}, MU__TASK_REGISTER, &body);
    }
}

#endif
