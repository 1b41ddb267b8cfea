/* The contract of worlds, over the simulated one: plain, and as seeds draw it. */
#include "sim/world/sim.h"
#include "tests/support/test.h"

#include "tests/support/contract/world.h"

struct place {
    struct sim *sim;
    struct sim_node *node;
    struct mu__world_hooks hooks;
};

/* Which settings the next world has: 0 plain, else drawn from this seed. */
static uint64_t seed;

static int start(void *arg, struct sim_node *node, struct mu__world *world,
                 struct mu__wire *wire)
{
    struct place *place = arg;

    (void)world;
    (void)wire;
    sim_attach(node, &place->hooks, NULL, NULL);
    return 0;
}

static void stop(void *arg)
{
    (void)arg;
}

static const struct sim_program program = {start, stop};

static void *place_open(const struct mu__world_hooks *hooks)
{
    struct place *place = calloc(1, sizeof *place);

    assert_non_null(place);
    place->hooks = *hooks;
    place->sim = sim_new(seed);
    if (seed != 0)
        sim_settings_draw(place->sim);
    sim_settings(place->sim)->executors = 2;
    place->node = sim_node_add(place->sim, "node", "tcp://node:1", &program, place);
    assert_int_equal(sim_start(place->node), 0);
    return place;
}

static void place_close(void *arg)
{
    struct place *place = arg;

    assert_int_equal(sim_works(place->node), 0);
    sim_free(place->sim);
    free(place);
}

static struct mu__world *place_world(void *arg)
{
    struct place *place = arg;

    return sim_node_world(place->node);
}

static void place_post(void *arg, struct mu__msg *msg)
{
    struct place *place = arg;

    sim_post(place->node, msg);
}

static bool place_run(void *arg, bool (*done)(void *arg), void *done_arg, uint64_t for_ms)
{
    struct place *place = arg;

    return sim_run_to(place->sim, done, done_arg, sim_now_ms(place->sim) + for_ms);
}

static const struct contract_world fixture = {
    .open = place_open,
    .close = place_close,
    .world = place_world,
    .post = place_post,
    .run = place_run,
};

int main(void)
{
    enum { SEEDS = 20 };
    int failed = contract_world_run("plain", &fixture);

    for (seed = 1; seed <= SEEDS; seed++) {
        char name[32];

        (void)snprintf(name, sizeof name, "seed %u", (unsigned)seed);
        failed += contract_world_run(name, &fixture);
    }
    return failed;
}
