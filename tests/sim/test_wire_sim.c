/* The contract of wires, over the simulated one: plain, and as seeds draw it. */
#include "sim/world/sim.h"
#include "tests/support/test.h"

#include "tests/support/contract/wire.h"

struct place {
    struct sim *sim;
    struct end {
        struct sim_node *node;
        const struct mu__wire_events *events;
        void *owner;
    } ends[2];
};

static const char *const names[2] = {"a", "b"};
static const char *const urls[2] = {"tcp://a:1", "tcp://b:1"};

/* Which settings the next place has: 0 plain, else drawn from this seed. */
static uint64_t seed;

static int start(void *arg, struct sim_node *node, struct mu__world *world,
                 struct mu__wire *wire)
{
    struct end *end = arg;
    struct mu__world_hooks hooks = {NULL, NULL, NULL, NULL};

    (void)world;
    (void)wire;
    sim_attach(node, &hooks, end->events, end->owner);
    return 0;
}

static void stop(void *arg)
{
    (void)arg;
}

static const struct sim_program program = {start, stop};

static void *place_setup(void)
{
    struct place *place = calloc(1, sizeof *place);

    assert_non_null(place);
    place->sim = sim_new(seed);
    if (seed != 0)
        sim_settings_draw(place->sim);
    for (unsigned i = 0; i < 2; i++)
        place->ends[i].node =
            sim_node_add(place->sim, names[i], urls[i], &program, &place->ends[i]);
    return place;
}

static void place_teardown(void *arg)
{
    struct place *place = arg;

    sim_free(place->sim);
    free(place);
}

static struct mu__wire *place_open(void *arg, unsigned which,
                                   const struct mu__wire_events *events, void *owner)
{
    struct place *place = arg;
    struct end *end = &place->ends[which];

    end->events = events;
    end->owner = owner;
    assert_int_equal(sim_start(end->node), 0);
    return sim_node_wire(end->node);
}

static void place_close(void *arg, unsigned which)
{
    struct place *place = arg;

    sim_crash(place->ends[which].node);
}

static const char *place_url(void *arg, unsigned which)
{
    (void)arg;
    return urls[which];
}

static bool place_run(void *arg, bool (*done)(void *arg), void *done_arg)
{
    struct place *place = arg;

    return sim_run_to(place->sim, done, done_arg, sim_now_ms(place->sim) + 600000);
}

static const struct contract_wire fixture = {
    .setup = place_setup,
    .teardown = place_teardown,
    .open = place_open,
    .close = place_close,
    .url = place_url,
    .run = place_run,
};

int main(void)
{
    enum { SEEDS = 20 };
    int failed = contract_wire_run("plain", &fixture);

    for (seed = 1; seed <= SEEDS; seed++) {
        char name[32];

        (void)snprintf(name, sizeof name, "seed %u", (unsigned)seed);
        failed += contract_wire_run(name, &fixture);
    }
    return failed;
}
