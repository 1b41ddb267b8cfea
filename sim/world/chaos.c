/* Faults by chance: one event that picks a kind and a victim, and calls that undo it; or
 * faults that are given, one after the other. */
#include "sim/world/chaos.h"

#include "sim/world/inner.h"

#include <assert.h>
#include <stdlib.h>

struct chaos {
    struct sim *sim;
    struct sim_event event;
    struct sim_chaos plan;
    uint64_t until_us;
    const struct sim_fault_told *told; /* NULL: they are drawn */
    size_t next;                       /* of these */
    size_t end;
    struct sim_fault_told *list; /* those that began; the first SIM_FAULTS_NOTED_MAX */
    size_t count;
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

static unsigned long long lasts_ms(const struct sim_fault_told *fault)
{
    return (unsigned long long)(fault->end_us - fault->at_us) / 1000;
}

/* A fault of one process. */
static void note_one(const char *what, const struct sim_fault_told *fault)
{
    sim_note(fault->a->sim, MU__LOG_WARN, "%s %s for %llu ms", what, fault->a->name,
             lasts_ms(fault));
}

/* A fault of the way from one process to another. */
static void note_two(const char *what, const struct sim_fault_told *fault)
{
    sim_note(fault->a->sim, MU__LOG_WARN, "%s %s -> %s for %llu ms", what, fault->a->name,
             fault->b->name, lasts_ms(fault));
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

/* ---- Faults: what of them is drawn, and how they begin ---- */

static void end_by(const struct sim_fault_told *fault,
                   void (*apply)(struct sim_node *a, struct sim_node *b))
{
    if (fault->end_us != SIM_FAULT_NO_END)
        sim_apply_at(fault->a->sim, fault->end_us, apply, fault->a, fault->b);
}

static void crash(const struct sim_fault_told *fault)
{
    sim_crash(fault->a);
    end_by(fault, revive);
}

static void draw_frames(struct chaos *chaos, struct sim_fault_told *fault)
{
    fault->number = (unsigned)draw(chaos, 0, 3);
}

static void crash_midway(const struct sim_fault_told *fault)
{
    sim_crash_midway(fault->a, fault->number);
    end_by(fault, revive);
}

static void pause_node(const struct sim_fault_told *fault)
{
    sim_pause(fault->a, (fault->end_us - fault->at_us) / 1000);
}

static void cut(const struct sim_fault_told *fault)
{
    sim_cut(fault->a->sim, fault->a, fault->b);
}

static void cut_half(const struct sim_fault_told *fault)
{
    sim_cut_half(fault->a->sim, fault->a, fault->b,
                 (fault->end_us - fault->at_us) / 1000);
}

static void block(const struct sim_fault_told *fault)
{
    sim_block(fault->a->sim, fault->a, fault->b);
    end_by(fault, unblock);
}

void sim_fault_put_aside(struct sim_fault_told *fault, const struct sim_node *node)
{
    fault->side[node->number / 64] |= UINT64_C(1) << (node->number % 64);
}

bool sim_fault_is_aside(const struct sim_fault_told *fault, const struct sim_node *node)
{
    return (fault->side[node->number / 64] >> (node->number % 64) & 1) != 0;
}

/* `a` and who else a coin puts on its side, against the others. */
static void draw_side(struct chaos *chaos, struct sim_fault_told *fault)
{
    struct sim *sim = chaos->sim;

    for (uint32_t i = 0; i < sim->nodes_count; i++)
        if (sim->nodes[i] == fault->a ||
            (sim->nodes[i] != fault->b && draw(chaos, 0, 1) == 1))
            sim_fault_put_aside(fault, sim->nodes[i]);
}

static void partition(const struct sim_fault_told *fault)
{
    struct sim *sim = fault->a->sim;
    struct sim_node *side[SIM_NODES_MAX];
    size_t count = 0;

    for (uint32_t i = 0; i < sim->nodes_count; i++)
        if (sim_fault_is_aside(fault, sim->nodes[i]))
            side[count++] = sim->nodes[i];
    sim_partition(sim, side, count);
    for (uint32_t i = 0; i < sim->nodes_count; i++)
        for (uint32_t j = 0; j < sim->nodes_count; j++)
            if (sim_fault_is_aside(fault, sim->nodes[i]) !=
                sim_fault_is_aside(fault, sim->nodes[j]))
                sim_apply_at(sim, fault->end_us, sim_unblock_later, sim->nodes[i],
                             sim->nodes[j]);
    end_by(fault, unblock);
}

static void draw_factor(struct chaos *chaos, struct sim_fault_told *fault)
{
    fault->number = (unsigned)draw(chaos, 2, 20);
}

static void slow_node(const struct sim_fault_told *fault)
{
    sim_slow(fault->a, fault->number);
    end_by(fault, unslow);
}

static void slow_link(const struct sim_fault_told *fault)
{
    sim_slow_link(fault->a->sim, fault->a, fault->b, fault->number);
    end_by(fault, unslow_link);
}

static const struct fault {
    const char *name;
    void (*begin)(const struct sim_fault_told *fault);
    void (*draw)(struct chaos *chaos, struct sim_fault_told *fault); /* NULL: nothing */
    bool of_two;
} faults[SIM_FAULTS] = {
    [SIM_FAULT_CRASH] = {"crash", crash, NULL, false},
    [SIM_FAULT_CRASH_MIDWAY] = {"crash midway", crash_midway, draw_frames, false},
    [SIM_FAULT_PAUSE] = {"pause", pause_node, NULL, false},
    [SIM_FAULT_CUT] = {"cut", cut, NULL, true},
    [SIM_FAULT_CUT_HALF] = {"cut half", cut_half, NULL, true},
    [SIM_FAULT_BLOCK] = {"block", block, NULL, true},
    [SIM_FAULT_PARTITION] = {"partition", partition, draw_side, true},
    [SIM_FAULT_SLOW_NODE] = {"slow", slow_node, draw_factor, false},
    [SIM_FAULT_SLOW_LINK] = {"slow link", slow_link, draw_factor, true},
};

const char *sim_fault_name(enum sim_fault fault)
{
    return faults[fault].name;
}

bool sim_fault_of_two(enum sim_fault fault)
{
    return faults[fault].of_two;
}

void sim_fault_begin(const struct sim_fault_told *fault)
{
    if (!sim_alive(fault->a))
        return;
    if (faults[fault->kind].of_two)
        note_two(faults[fault->kind].name, fault);
    else
        note_one(faults[fault->kind].name, fault);
    faults[fault->kind].begin(fault);
}

void sim_fault_revive(struct sim_node *node)
{
    revive(node, NULL);
}

/* ---- The plan ---- */

static void begin_noted(struct chaos *chaos, const struct sim_fault_told *fault)
{
    if (chaos->count < SIM_FAULTS_NOTED_MAX)
        chaos->list[chaos->count++] = *fault;
    sim_fault_begin(fault);
}

static void pick(struct chaos *chaos)
{
    size_t kind = draw(chaos, 0, SIM_FAULTS - 1);
    struct sim_fault_told fault = {.a = draw_node(chaos)};

    fault.b = draw_peer(chaos, fault.a);
    while (!chaos->plan.on[kind])
        kind = (kind + 1) % SIM_FAULTS;
    if (!sim_alive(fault.a) || (fault.a->spared >> kind & 1) != 0)
        return;
    if (faults[kind].of_two && (fault.a == fault.b || (fault.b->spared >> kind & 1) != 0))
        return;
    fault.kind = (enum sim_fault)kind;
    fault.at_us = chaos->sim->now_us;
    fault.end_us = kind == SIM_FAULT_CUT ? fault.at_us : draw_end_us(chaos);
    if (faults[kind].draw != NULL)
        faults[kind].draw(chaos, &fault);
    begin_noted(chaos, &fault);
}

static void chaos_end(struct sim_node *a, struct sim_node *b)
{
    (void)b;
    sim_heal(a->sim);
    sim_note(a->sim, MU__LOG_WARN, "chaos ends");
}

/* One fault; when the next is. */
static uint64_t fire_drawn(struct chaos *chaos)
{
    uint64_t next_us =
        chaos->sim->now_us + draw(chaos, 1, 2 * chaos->plan.every_ms * 1000);

    pick(chaos);
    return next_us;
}

static uint64_t fire_told(struct chaos *chaos)
{
    if (chaos->next < chaos->end)
        begin_noted(chaos, &chaos->told[chaos->next++]);
    return chaos->next < chaos->end ? chaos->told[chaos->next].at_us : UINT64_MAX;
}

static void chaos_fire(void *owner)
{
    struct chaos *chaos = owner;
    struct sim *sim = chaos->sim;
    uint64_t next_us = chaos->told != NULL ? fire_told(chaos) : fire_drawn(chaos);

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

static struct chaos *chaos_new(struct sim *sim, uint64_t until_ms)
{
    struct chaos *chaos = sim_alloc(sizeof *chaos);

    assert(sim->chaos == NULL && sim->nodes_count > 0);
    chaos->sim = sim;
    chaos->until_us = until_ms * 1000;
    chaos->list = sim_alloc(SIM_FAULTS_NOTED_MAX * sizeof chaos->list[0]);
    sim_event_init(&chaos->event, NULL, SIM_CONTEXT_ASIDE, chaos_fire, chaos);
    sim->chaos = chaos;
    return chaos;
}

void sim_chaos_start(struct sim *sim, const struct sim_chaos *plan, uint64_t until_ms)
{
    struct chaos *chaos = chaos_new(sim, until_ms);
    bool any = false;

    for (size_t i = 0; i < SIM_FAULTS; i++)
        any = any || plan->on[i];
    assert(any && plan->every_ms > 0);
    chaos->plan = *plan;
    sim_event_at(sim, &chaos->event, sim->now_us + draw(chaos, 1, plan->every_ms * 1000));
}

void sim_chaos_repeat(struct sim *sim, const struct sim_fault_told *told, size_t count,
                      uint64_t until_ms)
{
    struct chaos *chaos = chaos_new(sim, until_ms);

    chaos->told = told;
    chaos->end = count;
    sim_event_at(sim, &chaos->event, count > 0 ? told[0].at_us : sim->now_us);
}

const struct sim_fault_told *sim_chaos_noted(const struct sim *sim, size_t *ret_count)
{
    const struct chaos *chaos = sim->chaos;

    *ret_count = chaos == NULL ? 0 : chaos->count;
    return chaos == NULL ? NULL : chaos->list;
}

void sim_chaos_free(struct sim *sim)
{
    struct chaos *chaos = sim->chaos;

    if (chaos != NULL)
        free(chaos->list);
    free(chaos);
}

void sim_chaos_spare(struct sim_node *node, enum sim_fault fault)
{
    node->spared |= UINT32_C(1) << fault;
}
