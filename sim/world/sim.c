/* The simulator itself: the clock, the order of events, and what draws on them. */
#include "sim/world/inner.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

static const struct sim_settings settings_plain = {
    .latency = {10000, 10000},
    .connect = {20000, 20000},
    .notice = {10000, 10000},
    .work = {10000, 10000},
    .redial = {20000, 1000000},
    .connection_bytes_max = 16 << 20,
    .executors = 2,
};

struct sim *sim_new(uint64_t seed)
{
    struct sim *sim = sim_alloc(sizeof *sim);

    sim->seed = seed;
    sim->random = sim_stream(seed, 1);
    sim->chaos_random = sim_stream(seed, 2);
    sim->settings = settings_plain;
    sim->digest = sim_mix(seed);
    sim_queue_init(&sim->queue);
    sim_text_init(&sim->text);
    mu__pool_init(&sim->pool);
    return sim;
}

void sim_free(struct sim *sim)
{
    if (sim == NULL)
        return;
    for (uint32_t i = 0; i < sim->nodes_count; i++)
        sim_process_end(sim->nodes[i]);
    sim_network_done(sim);
    for (uint32_t i = 0; i < sim->nodes_count; i++)
        sim_node_free(sim->nodes[i]);
    while (sim->calls != NULL) {
        struct sim_call *call = sim->calls;

        sim->calls = call->next;
        free(call);
    }
    sim_chaos_free(sim);
    mu__pool_done(&sim->pool);
    sim_text_done(&sim->text);
    sim_queue_done(&sim->queue);
    free(sim);
}

struct sim_settings *sim_settings(struct sim *sim)
{
    return &sim->settings;
}

static struct sim_range draw_us(struct sim_random *random, uint64_t min, uint64_t max)
{
    uint64_t least = sim_between(random, min, max);

    return (struct sim_range){least, sim_between(random, least, max)};
}

void sim_settings_draw(struct sim *sim)
{
    struct sim_random random = sim_stream(sim->seed, 3);
    static const uint64_t windows[] = {4096, 65536, 1 << 20, 16 << 20};
    static const uint64_t rates[] = {0, 0, 1000, 100000};
    static const unsigned loses[] = {0, 50, 100};
    struct sim_settings *settings = &sim->settings;

    settings->latency = draw_us(&random, 50, 20000);
    settings->connect = draw_us(&random, 100, 50000);
    settings->notice = draw_us(&random, 50, 100000);
    settings->work = draw_us(&random, 10, 50000);
    settings->post = draw_us(&random, 0, 500);
    settings->late = draw_us(&random, 0, 2000);
    settings->redial = (struct sim_range){10000, 1000000};
    settings->redial_drawn = true;
    settings->clock = (struct sim_range){0, UINT64_C(1) << 42};
    settings->burst_us = sim_between(&random, 0, 1000);
    settings->connection_bytes_max = windows[sim_between(&random, 0, 3)];
    settings->bytes_per_ms = rates[sim_between(&random, 0, 3)];
    settings->executors = (unsigned)sim_between(&random, 1, 4);
    settings->burst_percent = (unsigned)sim_between(&random, 0, 90);
    settings->again_percent = (unsigned)(sim_chance(&random, 30) ? 5 : 0);
    settings->lose_percent = loses[sim_between(&random, 0, 2)];
}

void sim_counters(const struct sim *sim, struct sim_counters *ret_counters)
{
    *ret_counters = sim->counters;
}

static bool seed_from(const char *name, uint64_t *ret_number)
{
    const char *text = getenv(name);
    char *end;
    unsigned long long number;

    if (text == NULL || *text == '\0')
        return false;
    number = strtoull(text, &end, 10);
    if (*end != '\0') {
        fprintf(stderr, "%s is \"%s\": expected a number\n", name, text);
        abort();
    }
    *ret_number = number;
    return true;
}

void sim_seeds(uint64_t count, uint64_t *ret_first, uint64_t *ret_end)
{
    uint64_t seed;

    if (seed_from("MUSTER_SIM_SEED", &seed)) {
        *ret_first = seed;
        *ret_end = seed + 1;
        return;
    }
    (void)seed_from("MUSTER_SIM_SEEDS", &count);
    *ret_first = 1;
    *ret_end = count + 1;
}

/* ---- Events ---- */

void sim_event_init(struct sim_event *event, struct sim_node *node,
                    enum sim_context context, void (*fire)(void *owner), void *owner)
{
    *event = (struct sim_event){
        .fire = fire, .owner = owner, .node = node, .context = context};
}

void sim_event_at_order(struct sim *sim, struct sim_event *event, uint64_t due_us,
                        uint64_t order)
{
    sim_event_cancel(sim, event);
    event->due_us = due_us > sim->now_us ? due_us : sim->now_us;
    event->order = order;
    sim_queue_push(&sim->queue, event);
}

void sim_event_at(struct sim *sim, struct sim_event *event, uint64_t due_us)
{
    sim_event_at_order(sim, event, due_us, sim->order++);
}

void sim_event_in(struct sim *sim, struct sim_event *event, struct sim_range after)
{
    sim_event_at(sim, event, sim->now_us + sim_draw_range(sim, after));
}

static void park(struct sim_node *node, struct sim_event *event)
{
    if (node->parked_count == node->parked_capacity) {
        size_t capacity = node->parked_capacity * 2 + 16;
        struct sim_event **parked = sim_alloc(capacity * sizeof parked[0]);

        for (size_t i = 0; i < node->parked_count; i++)
            parked[i] = node->parked[i];
        free(node->parked);
        node->parked = parked;
        node->parked_capacity = capacity;
    }
    event->place = SIM_EVENT_PARKED;
    event->index = node->parked_count;
    node->parked[node->parked_count++] = event;
}

static void unpark(struct sim_event *event)
{
    struct sim_node *node = event->node;
    struct sim_event *last = node->parked[--node->parked_count];

    node->parked[event->index] = last;
    last->index = event->index;
    event->place = SIM_EVENT_IDLE;
}

void sim_event_cancel(struct sim *sim, struct sim_event *event)
{
    if (event->place == SIM_EVENT_QUEUED)
        sim_queue_remove(&sim->queue, event);
    else if (event->place == SIM_EVENT_PARKED)
        unpark(event);
}

uint64_t sim_draw_range(struct sim *sim, struct sim_range range)
{
    return sim_between(&sim->random, range.min_us, range.max_us);
}

/* ---- Pauses, which hold a process's events back ---- */

static bool event_before(const struct sim_event *a, const struct sim_event *b)
{
    if (a->due_us != b->due_us)
        return a->due_us < b->due_us;
    return a->order < b->order;
}

static struct sim_event *first_parked(const struct sim_node *node)
{
    struct sim_event *first = node->parked[0];

    for (size_t i = 1; i < node->parked_count; i++)
        if (event_before(node->parked[i], first))
            first = node->parked[i];
    return first;
}

/* All of it happens now, in the order in which it was due. */
void sim_pause_end(void *owner)
{
    struct sim_node *node = owner;

    node->paused = false;
    while (node->parked_count > 0) {
        struct sim_event *event = first_parked(node);

        unpark(event);
        sim_event_at(node->sim, event, node->sim->now_us);
    }
}

void sim_pause(struct sim_node *node, uint64_t for_ms)
{
    struct sim *sim = node->sim;

    if (!node->running)
        return;
    node->paused = true;
    sim_event_at(sim, &node->resume, sim->now_us + for_ms * 1000);
}

void sim_resume(struct sim_node *node)
{
    if (!node->paused)
        return;
    sim_event_cancel(node->sim, &node->resume);
    sim_pause_end(node);
}

/* ---- Steps ---- */

static void guard_against_livelock(struct sim *sim)
{
    if (sim->instant_us != sim->now_us) {
        sim->instant_us = sim->now_us;
        sim->instant_events = 0;
    }
    if (++sim->instant_events < SIM_INSTANT_EVENTS_MAX)
        return;
    fprintf(stderr,
            "%ssim: seed %" PRIu64 ": time stands still at %" PRIu64 " us for %d"
            " events, now of %s\n",
            sim_trace(sim), sim->seed, sim->now_us, SIM_INSTANT_EVENTS_MAX,
            sim->current != NULL ? sim->current->name : "nobody");
    abort();
}

static void after_event(struct sim *sim)
{
    struct sim_node *node = sim->current;

    sim->current = NULL;
    if (node != NULL && node->doomed)
        sim_process_end(node);
    if (sim->sweep)
        sim_network_sweep(sim);
    if (sim->check != NULL)
        sim->check(sim, sim->check_arg);
}

bool sim_step(struct sim *sim)
{
    struct sim_event *event;
    struct sim_node *node;

    if (sim->queue.count == 0)
        return false;
    event = sim_queue_pop(&sim->queue);
    node = event->node;
    sim->now_us = event->due_us;
    if (node != NULL && node->paused) {
        park(node, event);
        return true;
    }
    sim->counters.events++;
    sim->digest = sim_mix(sim->digest ^ (event->due_us << 8) ^
                          (node != NULL ? node->number + 1 : 0));
    sim->current = node;
    guard_against_livelock(sim);
    if (node != NULL && event->context == SIM_CONTEXT_LOOP)
        sim_burst_close(node);
    event->fire(event->owner);
    after_event(sim);
    return true;
}

static bool due_by(const struct sim *sim, uint64_t until_us)
{
    return sim->queue.count > 0 && sim->queue.slots[0].due_us <= until_us;
}

void sim_run_until(struct sim *sim, uint64_t until_ms)
{
    while (due_by(sim, until_ms * 1000))
        (void)sim_step(sim);
    if (sim->now_us < until_ms * 1000)
        sim->now_us = until_ms * 1000;
}

bool sim_run_idle(struct sim *sim, uint64_t until_ms)
{
    while (due_by(sim, until_ms * 1000))
        (void)sim_step(sim);
    return sim->queue.count == 0;
}

bool sim_run_to(struct sim *sim, bool (*done)(void *arg), void *arg, uint64_t until_ms)
{
    while (!done(arg)) {
        if (!due_by(sim, until_ms * 1000))
            return false;
        (void)sim_step(sim);
    }
    return true;
}

uint64_t sim_now_ms(const struct sim *sim)
{
    return sim->now_us / 1000;
}

uint64_t sim_now_us(const struct sim *sim)
{
    return sim->now_us;
}

void sim_set_check(struct sim *sim, void (*check)(struct sim *sim, void *arg), void *arg)
{
    sim->check = check;
    sim->check_arg = arg;
}

/* ---- Calls at a time ---- */

static void call_fire(void *owner)
{
    struct sim_call *call = owner;
    struct sim_call copy = *call;

    *call->link = call->next;
    if (call->next != NULL)
        call->next->link = call->link;
    free(call);
    if (copy.call != NULL)
        copy.call(copy.sim, copy.arg);
    else
        copy.apply(copy.a, copy.b);
}

static struct sim_call *call_new(struct sim *sim)
{
    struct sim_call *call = sim_alloc(sizeof *call);

    call->sim = sim;
    call->next = sim->calls;
    call->link = &sim->calls;
    if (call->next != NULL)
        call->next->link = &call->next;
    sim->calls = call;
    sim_event_init(&call->event, NULL, SIM_CONTEXT_ASIDE, call_fire, call);
    return call;
}

void sim_at(struct sim *sim, uint64_t at_ms, void (*call)(struct sim *sim, void *arg),
            void *arg)
{
    struct sim_call *entry = call_new(sim);

    assert(call != NULL);
    entry->call = call;
    entry->arg = arg;
    sim_event_at(sim, &entry->event, at_ms * 1000);
}

void sim_apply_at(struct sim *sim, uint64_t at_us,
                  void (*apply)(struct sim_node *a, struct sim_node *b),
                  struct sim_node *a, struct sim_node *b)
{
    struct sim_call *entry = call_new(sim);

    entry->apply = apply;
    entry->a = a;
    entry->b = b;
    sim_event_at(sim, &entry->event, at_us);
}
