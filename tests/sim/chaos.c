/* Faults by chance: one event that picks a kind and a victim, and calls that undo it. */
#include "tests/sim/chaos.h"

#include "tests/sim/inner.h"

#include <assert.h>

struct chaos {
    struct sim *sim;
    struct sim_event event;
    struct sim_chaos plan;
    uint64_t until_us;
};

static uint64_t draw(struct chaos *chaos, uint64_t min, uint64_t max)
{
    return sim_between(&chaos->sim->chaos_random, min, max);
}

/* How long it lasts: not beyond the end of all chaos. */
static uint64_t draw_end_us(struct chaos *chaos)
{
    uint64_t lasts_us = draw(chaos, 0, chaos->plan.lasts_ms_max * 1000);
    uint64_t end_us = chaos->sim->now_us + lasts_us;

    return end_us < chaos->until_us ? end_us : chaos->until_us;
}

static struct sim_node *draw_node(struct chaos *chaos)
{
    return chaos->sim->nodes[draw(chaos, 0, chaos->sim->nodes_count - 1)];
}

/* Someone to whom `a` is connected, if there is anyone: between others there is nothing
 * to break, and in a wide cluster most pairs are such. */
static struct sim_node *draw_peer(struct chaos *chaos, const struct sim_node *a)
{
    uint64_t count = 0;

    for (const struct sim_conn *conn = chaos->sim->conns; conn != NULL; conn = conn->next)
        count += conn->from == a;
    if (count == 0)
        return draw_node(chaos);
    count = draw(chaos, 1, count);
    for (const struct sim_conn *conn = chaos->sim->conns;; conn = conn->next) {
        count -= conn->from == a;
        if (count == 0)
            return conn->to;
    }
}

static unsigned long long lasts_ms(const struct chaos *chaos, uint64_t end_us)
{
    return (unsigned long long)(end_us - chaos->sim->now_us) / 1000;
}

/* A fault of one process. */
static void note_one(struct chaos *chaos, const char *what, const struct sim_node *node,
                     uint64_t end_us)
{
    sim_note(chaos->sim, MU__LOG_WARN, "%s %s for %llu ms", what, node->name,
             lasts_ms(chaos, end_us));
}

/* A fault of the way from one process to another. */
static void note_two(struct chaos *chaos, const char *what, const struct sim_node *a,
                     const struct sim_node *b, uint64_t end_us)
{
    sim_note(chaos->sim, MU__LOG_WARN, "%s %s -> %s for %llu ms", what, a->name, b->name,
             lasts_ms(chaos, end_us));
}

/* ---- Ends of faults ---- */

static void revive(struct sim_node *a, struct sim_node *b)
{
    bool waits = a->running && a->midway;

    (void)b;
    if (a->exited || (a->running && !waits))
        return;
    if (sim_restart(a) != 0)
        sim_note(a->sim, MU__LOG_ERROR, "%s does not start", a->name);
    else
        sim_note(a->sim, MU__LOG_WARN, "restart %s", a->name);
}

static void unblock(struct sim_node *a, struct sim_node *b)
{
    sim_unblock(a->sim, a, b);
}

static void unslow(struct sim_node *a, struct sim_node *b)
{
    (void)b;
    sim_slow(a, 1);
}

static void unslow_link(struct sim_node *a, struct sim_node *b)
{
    sim_slow_link(a->sim, a, b, 1);
}

/* ---- Faults ---- */

static void crash(struct chaos *chaos, struct sim_node *a, struct sim_node *b)
{
    uint64_t end_us = draw_end_us(chaos);

    (void)b;
    note_one(chaos, "crash", a, end_us);
    sim_crash(a);
    sim_apply_at(chaos->sim, end_us, revive, a, NULL);
}

static void crash_midway(struct chaos *chaos, struct sim_node *a, struct sim_node *b)
{
    uint64_t end_us = draw_end_us(chaos);

    (void)b;
    note_one(chaos, "crash midway", a, end_us);
    sim_crash_midway(a, (unsigned)draw(chaos, 0, 3));
    sim_apply_at(chaos->sim, end_us, revive, a, NULL);
}

static void pause_node(struct chaos *chaos, struct sim_node *a, struct sim_node *b)
{
    uint64_t end_us = draw_end_us(chaos);

    (void)b;
    note_one(chaos, "pause", a, end_us);
    sim_pause(a, (end_us - chaos->sim->now_us) / 1000);
}

static void cut(struct chaos *chaos, struct sim_node *a, struct sim_node *b)
{
    note_two(chaos, "cut", a, b, chaos->sim->now_us);
    sim_cut(chaos->sim, a, b);
}

static void cut_half(struct chaos *chaos, struct sim_node *a, struct sim_node *b)
{
    uint64_t end_us = draw_end_us(chaos);

    note_two(chaos, "cut half", a, b, end_us);
    sim_cut_half(chaos->sim, a, b, (end_us - chaos->sim->now_us) / 1000);
}

static void block(struct chaos *chaos, struct sim_node *a, struct sim_node *b)
{
    uint64_t end_us = draw_end_us(chaos);

    note_two(chaos, "block", a, b, end_us);
    sim_block(chaos->sim, a, b);
    sim_apply_at(chaos->sim, end_us, unblock, a, b);
}

/* `a` and who else a coin puts on its side, against the others. */
static void partition(struct chaos *chaos, struct sim_node *a, struct sim_node *b)
{
    struct sim *sim = chaos->sim;
    struct sim_node *side[SIM_NODES_MAX];
    bool inside[SIM_NODES_MAX] = {false};
    uint64_t end_us = draw_end_us(chaos);
    size_t count = 0;

    for (uint32_t i = 0; i < sim->nodes_count; i++)
        if (sim->nodes[i] == a || (sim->nodes[i] != b && draw(chaos, 0, 1) == 1)) {
            inside[i] = true;
            side[count++] = sim->nodes[i];
        }
    note_two(chaos, "partition", a, b, end_us);
    sim_partition(sim, side, count);
    for (uint32_t i = 0; i < sim->nodes_count; i++)
        for (uint32_t j = 0; j < sim->nodes_count; j++)
            if (inside[i] != inside[j])
                sim_apply_at(sim, end_us, sim_unblock_later, sim->nodes[i],
                             sim->nodes[j]);
    sim_apply_at(sim, end_us, unblock, a, b);
}

static void slow_node(struct chaos *chaos, struct sim_node *a, struct sim_node *b)
{
    uint64_t end_us = draw_end_us(chaos);

    (void)b;
    note_one(chaos, "slow", a, end_us);
    sim_slow(a, (unsigned)draw(chaos, 2, 20));
    sim_apply_at(chaos->sim, end_us, unslow, a, NULL);
}

static void slow_link(struct chaos *chaos, struct sim_node *a, struct sim_node *b)
{
    uint64_t end_us = draw_end_us(chaos);

    note_two(chaos, "slow link", a, b, end_us);
    sim_slow_link(chaos->sim, a, b, (unsigned)draw(chaos, 2, 20));
    sim_apply_at(chaos->sim, end_us, unslow_link, a, b);
}

static const struct fault {
    const char *name;
    void (*begin)(struct chaos *chaos, struct sim_node *a, struct sim_node *b);
    bool of_two;
} faults[SIM_FAULTS] = {
    [SIM_FAULT_CRASH] = {"crash", crash, false},
    [SIM_FAULT_CRASH_MIDWAY] = {"crash midway", crash_midway, false},
    [SIM_FAULT_PAUSE] = {"pause", pause_node, false},
    [SIM_FAULT_CUT] = {"cut", cut, true},
    [SIM_FAULT_CUT_HALF] = {"cut half", cut_half, true},
    [SIM_FAULT_BLOCK] = {"block", block, true},
    [SIM_FAULT_PARTITION] = {"partition", partition, true},
    [SIM_FAULT_SLOW_NODE] = {"slow", slow_node, false},
    [SIM_FAULT_SLOW_LINK] = {"slow link", slow_link, true},
};

const char *sim_fault_name(enum sim_fault fault)
{
    return faults[fault].name;
}

/* ---- The plan ---- */

static void pick(struct chaos *chaos)
{
    size_t kind = draw(chaos, 0, SIM_FAULTS - 1);
    struct sim_node *a = draw_node(chaos);
    struct sim_node *b = draw_peer(chaos, a);

    while (!chaos->plan.on[kind])
        kind = (kind + 1) % SIM_FAULTS;
    if (!sim_alive(a) || (a->spared >> kind & 1) != 0)
        return;
    if (faults[kind].of_two && (a == b || (b->spared >> kind & 1) != 0))
        return;
    faults[kind].begin(chaos, a, b);
}

static void chaos_end(struct sim_node *a, struct sim_node *b)
{
    (void)b;
    sim_heal(a->sim);
    sim_note(a->sim, MU__LOG_WARN, "chaos ends");
}

static void chaos_fire(void *owner)
{
    struct chaos *chaos = owner;
    struct sim *sim = chaos->sim;
    uint64_t next_us = sim->now_us + draw(chaos, 1, 2 * chaos->plan.every_ms * 1000);

    pick(chaos);
    if (next_us < chaos->until_us)
        sim_event_at(sim, &chaos->event, next_us);
    else
        sim_apply_at(sim, chaos->until_us, chaos_end, sim->nodes[0], NULL);
}

void sim_chaos_draw(struct sim *sim, struct sim_chaos *ret_chaos)
{
    struct sim_random random = sim_stream(sim->seed, 4);
    struct sim_chaos chaos = {{false}, 0, 0};
    static const uint64_t paces_ms[] = {20, 100, 500, 2000};
    static const uint64_t lengths_ms[] = {10, 200, 1000, 5000};

    for (size_t i = 0; i < SIM_FAULTS; i++)
        chaos.on[i] = sim_chance(&random, 40);
    chaos.on[sim_between(&random, 0, SIM_FAULTS - 1)] = true;
    chaos.every_ms = paces_ms[sim_between(&random, 0, 3)];
    chaos.lasts_ms_max = lengths_ms[sim_between(&random, 0, 3)];
    *ret_chaos = chaos;
}

void sim_chaos_start(struct sim *sim, const struct sim_chaos *plan, uint64_t until_ms)
{
    struct chaos *chaos = sim_alloc(sizeof *chaos);
    bool any = false;

    for (size_t i = 0; i < SIM_FAULTS; i++)
        any = any || plan->on[i];
    assert(any && plan->every_ms > 0 && sim->chaos == NULL && sim->nodes_count > 0);
    chaos->sim = sim;
    chaos->plan = *plan;
    chaos->until_us = until_ms * 1000;
    sim_event_init(&chaos->event, NULL, SIM_CONTEXT_ASIDE, chaos_fire, chaos);
    sim->chaos = chaos;
    sim_event_at(sim, &chaos->event, sim->now_us + draw(chaos, 1, plan->every_ms * 1000));
}

void sim_chaos_spare(struct sim_node *node, enum sim_fault fault)
{
    node->spared |= UINT32_C(1) << fault;
}
