/* Seeds of the user's simulator in a second of one processor: ten actors on five tasks
 * that call each other ten times a second for ten seconds, with faults for five. Each
 * seed runs twice, as in mu_sim_main. */
#include "bench/bench.h"

#include <muster/sim.h>

enum { ACTORS = 10, PAUSE_MS = 100, BREAK_MS = 5000, END_MS = 10000 };

static mu_address crew[ACTORS];
static unsigned crew_count;
static uint64_t answers;

static int wait_a_while(mu_actor *self)
{
    return mu_actor_timer(self, 1 + mu_actor_random(self) % (2 * PAUSE_MS), 0);
}

static int start_member(mu_actor *self, void *state, const mu_value *args)
{
    (void)state;
    (void)args;
    return wait_a_while(self);
}

static int add_up(mu_actor *self, void *state, const mu_value *args)
{
    int64_t number = 0;

    (void)mu_value_get_int(args, &number);
    *(int64_t *)state += number;
    mu_actor_reply(self, mu_value_int(*(int64_t *)state));
    return 0;
}

static void hear_member(mu_actor *self, void *state, const mu_notice *notice)
{
    mu_value *one;

    (void)state;
    answers += notice->kind == MU_NOTICE_ANSWER;
    if (notice->kind != MU_NOTICE_TIMER)
        return;
    one = mu_value_int(1);
    (void)mu_actor_call(self, &crew[mu_actor_random(self) % crew_count], "add", one, 1000,
                        0);
    mu_value_free(one);
    (void)wait_a_while(self);
}

static const mu_actor_method methods[] = {{"add", add_up}, {NULL, NULL}};
static const mu_actor_type member_type = {
    .name = "member",
    .state_size = sizeof(int64_t),
    .methods = methods,
    .start = start_member,
    .notice = hear_member,
};
static const mu_actor_type *const types[] = {&member_type, NULL};

/* A task that starts again has two others, in place of some. */
static void begin_task(mu_sim *sim, const char *task, void *user)
{
    (void)user;
    for (int i = 0; i < 2; i++) {
        mu_address member;

        if (mu_sim_spawn(sim, task, "member", NULL, NULL, &member) != 0)
            return;
        if (crew_count < ACTORS)
            crew[crew_count++] = member;
        else
            crew[mu_sim_random(sim, 0, ACTORS - 1)] = member;
    }
}

static int tell_story(mu_sim *sim, void *user)
{
    (void)user;
    crew_count = 0;
    mu_sim_add(sim, "chief:0", types, begin_task, NULL);
    mu_sim_add(sim, "worker:0-3", types, begin_task, NULL);
    mu_sim_run_until(sim, 500);
    mu_sim_chaos(sim, 0, 0, 0, BREAK_MS);
    return mu_sim_run_until(sim, END_MS);
}

/* Of this process: who else uses the machine does not count. */
static uint64_t cpu_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (uint64_t)t.tv_sec * UINT64_C(1000000000) + (uint64_t)t.tv_nsec;
}

int main(void)
{
    const uint64_t seeds = bench_size(5, 500);
    const uint64_t start_ns = cpu_ns();
    uint64_t end_ns;

    for (uint64_t seed = 1; seed <= seeds; seed++)
        if (mu_sim_try(seed, tell_story, NULL, NULL, NULL) != 0)
            return 1;
    end_ns = cpu_ns();
    bench_report(&(struct bench_line){.bench = "simulator",
                                      .metric = "seeds",
                                      .value = bench_rate(seeds, start_ns, end_ns),
                                      .unit = "seeds/s",
                                      .target = 100});
    bench_report(&(struct bench_line){.bench = "simulator",
                                      .metric = "calls",
                                      .value = bench_rate(answers, start_ns, end_ns),
                                      .unit = "calls/s"});
    return 0;
}
