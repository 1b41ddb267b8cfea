/* Nodes of the simulator and their processes: lives, the world's door, the executor. */
#include "muster/error.h"
#include "runtime/kernel/system_messages.h"
#include "sim/world/inner.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

static struct sim_node *node_of(struct mu__world *world)
{
    return (struct sim_node *)world; /* the world is its first member */
}

char *sim_copy(const char *text)
{
    size_t size = strlen(text) + 1;

    return memcpy(sim_alloc(size), text, size);
}

/* ---- Bursts ---- */

/* Who has been killed in this event does nothing more in it; who exits ends it well. */
static bool goes_on(const struct sim_node *node)
{
    return node->running && (!node->doomed || node->exited);
}

static void tell_burst_end(struct sim_node *node)
{
    if (goes_on(node) && node->events.burst_end != NULL)
        node->events.burst_end(node->events_owner);
}

static void burst_fire(void *owner)
{
    tell_burst_end(owner);
}

void sim_burst_close(struct sim_node *node)
{
    if (node->burst.place == SIM_EVENT_IDLE)
        return;
    sim_event_cancel(node->sim, &node->burst);
    tell_burst_end(node);
}

void sim_burst_after(struct sim_node *node)
{
    struct sim *sim = node->sim;

    if (!goes_on(node) || node->burst.place != SIM_EVENT_IDLE)
        return;
    if (!sim_chance(&sim->random, sim->settings.burst_percent)) {
        tell_burst_end(node);
        return;
    }
    sim_event_at(sim, &node->burst,
                 sim->now_us + sim_between(&sim->random, 0, sim->settings.burst_us));
}

/* ---- Turns ---- */

static void take_turn(struct sim_node *node)
{
    if (goes_on(node) && node->hooks.turn != NULL)
        node->hooks.turn(node->hooks.owner);
}

static void wake_fire(void *owner)
{
    take_turn(owner);
}

static uint64_t world_now_ms(struct mu__world *world)
{
    struct sim_node *node = node_of(world);

    return node->sim->now_us / 1000 + node->clock_ms;
}

static uint64_t world_random(struct mu__world *world)
{
    return sim_draw(&node_of(world)->random);
}

/* Not drawn from `random`: what follows there does not depend on hash tables. */
static uint64_t world_secret(struct mu__world *world)
{
    const struct sim_node *node = node_of(world);
    struct sim_random random =
        sim_stream(node->sim->seed ^ UINT64_C(0x53454352), node->number + 1);

    return sim_draw(&random);
}

/* When a moment of the process's clock is here. A moment that never comes is far away. */
static uint64_t due_us_of(const struct sim_node *node, uint64_t due_ms)
{
    uint64_t never_ms = UINT64_MAX / 4000;

    due_ms = due_ms > node->clock_ms ? due_ms - node->clock_ms : 0;
    return (due_ms < never_ms ? due_ms : never_ms) * 1000;
}

static void world_wake_at(struct mu__world *world, uint64_t due_ms)
{
    struct sim_node *node = node_of(world);
    struct sim *sim = node->sim;
    uint64_t due_us = due_us_of(node, due_ms);

    if (!node->running)
        return;
    if (due_us < sim->now_us)
        due_us = sim->now_us;
    if (node->wake.place != SIM_EVENT_IDLE && node->wake.due_us <= due_us)
        return;
    sim_event_at(sim, &node->wake, due_us + sim_draw_range(sim, sim->settings.late));
}

static int world_transmit(struct mu__world *world, struct mu__msg *msg)
{
    struct sim_node *node = node_of(world);

    if (node->running && node->hooks.transmit != NULL)
        return node->hooks.transmit(node->hooks.owner, msg);
    /* Last words of a process that is gone: the message is of its own kernel's pool. */
    mu__buf_unref(msg->backing);
    free(msg);
    return -MU_EUNAVAILABLE;
}

static void world_log(struct mu__world *world, enum mu__log_level level, const char *who,
                      const char *line)
{
    struct sim_node *node = node_of(world);
    struct sim *sim = node->sim;

    if (!node->running)
        return;
    sim->digest = sim_digest_bytes(sim->digest, line, strlen(line));
    if (level <= sim->text.level)
        sim_text_line(&sim->text, sim->now_us / 1000, node->name, who, line);
}

/* ---- The executor: as many slots as there are threads, and a queue before them ---- */

static void slot_begin(struct sim_node *node, struct sim_slot *slot,
                       struct mu__work *work);

/* A burst of one: the message and the turn after it. */
static void deliver_done(struct sim_node *node, struct mu__work *work)
{
    struct mu__msg *msg;

    sim_own_memory++;
    msg = mu__msg_heap(MU__WORK_DONE, sizeof(struct mu__work_done));
    sim_own_memory--;
    assert(msg != NULL);
    msg->to = work->owner;
    ((struct mu__work_done *)(void *)msg->body)->work = work;
    if (node->hooks.deliver == NULL) {
        mu__pool_put(&node->sim->pool, msg);
        return;
    }
    node->hooks.deliver(node->hooks.owner, msg);
    take_turn(node);
}

static void slot_done(void *owner)
{
    struct sim_slot *slot = owner;
    struct sim_node *node = slot->event.node;
    struct mu__work *work = slot->work;
    struct mu__list_node *next = mu__list_pop(&node->work_queue);

    slot->work = NULL;
    node->works--;
    if (next != NULL)
        slot_begin(node, slot, MU__LIST_ENTRY(next, struct mu__work, node));
    deliver_done(node, work);
}

static void slot_run(void *owner)
{
    struct sim_slot *slot = owner;
    struct sim_node *node = slot->event.node;

    node->sim->counters.works++;
    sim_own_memory++;
    slot->work->run(slot->work);
    sim_own_memory--;
    sim_event_init(&slot->event, node, SIM_CONTEXT_LOOP, slot_done, slot);
    sim_event_at(node->sim, &slot->event, slot->end_us);
}

static uint64_t draw_work_us(struct sim_node *node, const struct mu__work *work)
{
    struct sim *sim = node->sim;
    const struct sim_settings *settings = &sim->settings;
    uint64_t takes_us = settings->work_us == NULL ? 0 : settings->work_us(work);
    uint64_t stuck_us;

    if (sim->now_us >= settings->stuck_until_us ||
        !sim_chance(&sim->random, settings->stuck_percent))
        return takes_us != 0 ? takes_us
                             : sim_draw_range(sim, settings->work) * node->slow;
    stuck_us = sim_draw_range(sim, settings->stuck);
    sim->counters.stuck++;
    sim_note(sim, MU__LOG_WARN, "a work of %s is stuck for %llu ms", node->name,
             (unsigned long long)stuck_us / 1000);
    return stuck_us;
}

/* What the function does is seen at one moment somewhere in its time. */
static void slot_begin(struct sim_node *node, struct sim_slot *slot,
                       struct mu__work *work)
{
    struct sim *sim = node->sim;
    uint64_t takes_us = draw_work_us(node, work);
    bool drawn = sim->settings.work.min_us != sim->settings.work.max_us;
    uint64_t run_us = drawn ? sim_between(&sim->random, 0, takes_us) : takes_us;

    work->queued = false;
    atomic_store_explicit(&work->begun_ms, world_now_ms(&node->world),
                          memory_order_relaxed);
    if (work->begin != NULL)
        work->begin(work);
    slot->work = work;
    work->ran_us = takes_us < UINT32_MAX ? (uint32_t)takes_us : UINT32_MAX;
    slot->end_us = sim->now_us + takes_us;
    sim_event_init(&slot->event, node, SIM_CONTEXT_ASIDE, slot_run, slot);
    sim_event_at(sim, &slot->event, sim->now_us + run_us);
}

static unsigned executors(const struct sim *sim)
{
    unsigned count = sim->settings.executors;

    assert(count >= 1 && count <= SIM_EXECUTORS_MAX);
    return count;
}

static void world_submit(struct mu__world *world, struct mu__work *work)
{
    struct sim_node *node = node_of(world);
    unsigned count = executors(node->sim);

    if (!node->running)
        return;
    node->works++;
    atomic_store_explicit(&work->begun_ms, 0, memory_order_relaxed);
    for (unsigned i = 0; i < count; i++)
        if (node->slots[i].work == NULL) {
            slot_begin(node, &node->slots[i], work);
            return;
        }
    mu__list_append(&node->work_queue, &work->node);
    work->queued = true;
}

static bool world_withdraw(struct mu__world *world, struct mu__work *work)
{
    struct sim_node *node = node_of(world);

    if (!work->queued)
        return false;
    mu__list_remove(&node->work_queue, &work->node);
    work->queued = false;
    node->works--;
    return true;
}

unsigned sim_works(const struct sim_node *node)
{
    return node->works;
}

const struct mu__world_ops sim_world_ops = {
    .now_ms = world_now_ms,
    .random = world_random,
    .secret = world_secret,
    .wake_at = world_wake_at,
    .transmit = world_transmit,
    .submit = world_submit,
    .withdraw = world_withdraw,
    .log = world_log,
};

/* ---- Messages from other threads ---- */

static void free_posts(struct sim_node *node)
{
    while (node->post_first != NULL) {
        struct mu__msg *msg = node->post_first;

        node->post_first = msg->next;
        mu__pool_put(&node->sim->pool, msg);
    }
    node->post_last = &node->post_first;
}

/* All that were posted until now come as one burst. */
static void posted_fire(void *owner)
{
    struct sim_node *node = owner;

    while (node->post_first != NULL && node->hooks.deliver != NULL) {
        struct mu__msg *msg = node->post_first;

        node->post_first = msg->next;
        if (node->post_first == NULL)
            node->post_last = &node->post_first;
        msg->next = NULL;
        node->hooks.deliver(node->hooks.owner, msg);
    }
    free_posts(node);
    take_turn(node);
}

void sim_post(struct sim_node *node, struct mu__msg *msg)
{
    struct sim *sim = node->sim;

    assert(msg != NULL);
    if (!node->running) {
        mu__pool_put(&sim->pool, msg);
        return;
    }
    msg->next = NULL;
    *node->post_last = msg;
    node->post_last = &msg->next;
    if (node->posted.place == SIM_EVENT_IDLE)
        sim_event_in(sim, &node->posted, sim->settings.post);
}

/* ---- Lives ---- */

struct sim_node *sim_node_add(struct sim *sim, const char *name, const char *address,
                              const struct sim_program *program, void *arg)
{
    struct sim_node *node = sim_alloc(sizeof *node);

    assert(sim->nodes_count < SIM_NODES_MAX);
    node->world.ops = &sim_world_ops;
    node->wire.ops = &sim_wire_ops;
    node->sim = sim;
    node->name = name;
    node->address = sim_copy(address);
    node->program = program;
    node->arg = arg;
    node->slow = 1;
    node->number = sim->nodes_count;
    sim_event_init(&node->resume, NULL, SIM_CONTEXT_ASIDE, sim_pause_end, node);
    sim->nodes[sim->nodes_count++] = node;
    return node;
}

void sim_node_free(struct sim_node *node)
{
    free(node->parked);
    free(node->address);
    free(node);
}

void sim_attach(struct sim_node *node, const struct mu__world_hooks *hooks,
                const struct mu__wire_events *events, void *events_owner)
{
    node->hooks = *hooks;
    if (events != NULL)
        node->events = *events;
    node->events_owner = events_owner;
}

static void life_init(struct sim_node *node)
{
    struct sim *sim = node->sim;
    uint64_t stream = ((uint64_t)node->number + 1) << 32 | ++node->lives;

    sim->counters.lives++;
    node->random = sim_stream(sim->seed, stream);
    node->clock_ms = sim_draw_range(sim, sim->settings.clock);
    sim_event_init(&node->wake, node, SIM_CONTEXT_LOOP, wake_fire, node);
    sim_event_init(&node->posted, node, SIM_CONTEXT_LOOP, posted_fire, node);
    sim_event_init(&node->burst, node, SIM_CONTEXT_WIRE, burst_fire, node);
    node->post_last = &node->post_first;
    node->work_queue = (struct mu__list){NULL, NULL};
    node->ins = 0;
    memset(node->youngest, 0, sizeof node->youngest);
    node->read_us = 0;
    node->midway = false;
    node->doomed = false;
    node->exited = false;
    node->running = true;
}

/* The executor forgets its works; the process frees their memory. */
static void forget_works(struct sim_node *node)
{
    for (size_t i = 0; i < SIM_EXECUTORS_MAX; i++) {
        if (node->slots[i].work != NULL)
            sim_event_cancel(node->sim, &node->slots[i].event);
        node->slots[i].work = NULL;
    }
    node->work_queue = (struct mu__list){NULL, NULL};
    node->works = 0;
}

/* Nothing that is under way reaches the process any more. */
static void process_forget(struct sim_node *node)
{
    struct sim *sim = node->sim;

    node->running = false;
    node->doomed = false;
    node->midway = false;
    sim_event_cancel(sim, &node->wake);
    sim_event_cancel(sim, &node->posted);
    sim_event_cancel(sim, &node->burst);
    if (node->paused)
        sim_event_cancel(sim, &node->resume);
    node->paused = false;
    free_posts(node);
    forget_works(node);
    sim_network_leave(node);
    assert(node->parked_count == 0);
    node->hooks = (struct mu__world_hooks){0};
    node->events = (struct mu__wire_events){0};
    node->events_owner = NULL;
}

void sim_process_end(struct sim_node *node)
{
    if (!node->running)
        return;
    process_forget(node);
    node->program->stop(node->arg);
}

int sim_start(struct sim_node *node)
{
    struct sim_node *outer = node->sim->current;
    int rv;

    assert(!node->running);
    life_init(node);
    node->sim->current = node;
    rv = node->program->start(node->arg, node, &node->world, &node->wire);
    node->sim->current = outer;
    if (rv != 0)
        process_forget(node);
    else if (node->doomed)
        sim_process_end(node);
    return rv;
}

void sim_crash(struct sim_node *node)
{
    if (node->sim->current == node)
        node->doomed = true;
    else
        sim_process_end(node);
}

void sim_crash_midway(struct sim_node *node, unsigned frames)
{
    if (!node->running)
        return;
    node->midway = true;
    node->sends_left = frames;
}

int sim_restart(struct sim_node *node)
{
    assert(node->sim->current != node);
    sim_process_end(node);
    return sim_start(node);
}

void sim_exit(struct sim_node *node)
{
    node->exited = true;
    sim_crash(node);
}

bool sim_alive(const struct sim_node *node)
{
    return node->running && !node->doomed;
}

unsigned sim_lives(const struct sim_node *node)
{
    return node->lives;
}

const char *sim_node_name(const struct sim_node *node)
{
    return node->name;
}

struct sim *sim_node_sim(const struct sim_node *node)
{
    return node->sim;
}

struct mu__world *sim_node_world(struct sim_node *node)
{
    return &node->world;
}

struct mu__wire *sim_node_wire(struct sim_node *node)
{
    return &node->wire;
}

void sim_node_move(struct sim_node *node, const char *address)
{
    assert(!node->running);
    free(node->address);
    node->address = sim_copy(address);
}
