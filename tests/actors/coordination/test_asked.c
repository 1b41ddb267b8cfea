/* Results of what agents asked: each is found until it is done with. */
#include "actors/coordination/asked.h"
#include "tests/sim/random.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { TOKENS = MU__ASKED_MAX < 500 ? MU__ASKED_MAX : 500, AGENTS = 3, STEPS = 2000 };
enum { GONE_MAX = 4 };

static struct mu__asked_result result_of(uint64_t token)
{
    return (struct mu__asked_result){token, token * 7, -(int64_t)token,
                                     token % 3 == 0 ? -MU_EEXISTS : 0};
}

static void add(struct mu__asked *asked, uint64_t incarnation, uint64_t token)
{
    struct mu__asked_agent *agent = mu__asked_agent(asked, incarnation);
    struct mu__asked_result result = result_of(token);

    assert_non_null(agent);
    assert_int_equal(mu__asked_reserve(agent, NULL), 0);
    mu__asked_add(agent, &result);
}

static enum mu__asked_state look(struct mu__asked *asked, uint64_t incarnation,
                                 uint64_t token)
{
    struct mu__asked_result result = {0};
    struct mu__asked_result wanted = result_of(token);
    enum mu__asked_state state = mu__asked_look(mu__asked_agent(asked, incarnation),
                                                token, &result);

    if (state == MU__ASKED_ANSWERED) {
        assert_int_equal(result.token, wanted.token);
        assert_int_equal(result.revision, wanted.revision);
        assert_int_equal(result.number, wanted.number);
        assert_int_equal(result.code, wanted.code);
    }
    return state;
}

static void test_agents_are_apart(void **state)
{
    struct mu__asked *asked = mu__asked_new();

    (void)state;
    assert_int_equal(look(asked, 8, 1), MU__ASKED_NEW);
    add(asked, 8, 1);
    add(asked, 9, 2);
    assert_int_equal(look(asked, 8, 1), MU__ASKED_ANSWERED);
    assert_int_equal(look(asked, 8, 2), MU__ASKED_NEW);
    assert_int_equal(look(asked, 9, 1), MU__ASKED_NEW);
    mu__asked_done(mu__asked_agent(asked, 8), 5);
    assert_int_equal(look(asked, 8, 1), MU__ASKED_DONE);
    assert_int_equal(look(asked, 8, 4), MU__ASKED_DONE);
    assert_int_equal(look(asked, 8, 5), MU__ASKED_NEW);
    assert_int_equal(look(asked, 9, 2), MU__ASKED_ANSWERED);
    mu__asked_done(mu__asked_agent(asked, 8), 3);       /* it never goes back */
    assert_int_equal(look(asked, 8, 4), MU__ASKED_DONE);
    assert_int_equal(mu__asked_count(asked), 1);
    mu__asked_free(asked);
    mu__asked_free(NULL);
}

/* At the bound nothing more is taken until the agent is done with some. */
static void test_bound(void **state)
{
    struct mu__asked *asked = mu__asked_new();
    mu_error error;

    (void)state;
    for (uint64_t token = 1; token <= MU__ASKED_MAX; token++)
        add(asked, 8, token);
    assert_int_equal(mu__asked_reserve(mu__asked_agent(asked, 8), &error),
                     -MU_EEXHAUSTED);
    assert_non_null(strstr(error.message, "changes of this task were answered"));
    assert_int_equal(mu__asked_reserve(mu__asked_agent(asked, 9), &error), 0);
    mu__asked_done(mu__asked_agent(asked, 8), 2);
    add(asked, 8, MU__ASKED_MAX + 1);
    for (uint64_t token = 2; token <= MU__ASKED_MAX + 1; token++)
        assert_int_equal(look(asked, 8, token), MU__ASKED_ANSWERED);
    mu__asked_done(mu__asked_agent(asked, 8), MU__ASKED_MAX + 2);
    assert_int_equal(mu__asked_count(asked), 0);
    add(asked, 8, MU__ASKED_MAX + 2);
    assert_int_equal(look(asked, 8, MU__ASKED_MAX + 2), MU__ASKED_ANSWERED);
    mu__asked_free(asked);
}

static uint64_t gone(struct mu__asked *asked, uint64_t agent)
{
    return mu__asked_gone(asked, agent, GONE_MAX);
}

/* Who is gone may come back; of many, those that went first are forgotten. */
static void test_gone(void **state)
{
    struct mu__asked *asked = mu__asked_new();

    (void)state;
    assert_int_equal(gone(asked, 77), 0);
    for (uint64_t agent = 1; agent <= GONE_MAX + 2; agent++)
        add(asked, agent, 5);
    for (uint64_t agent = 1; agent <= GONE_MAX; agent++)
        assert_int_equal(gone(asked, agent), 0);
    mu__asked_back(asked, 1);
    mu__asked_back(asked, 77);                                  /* nobody */
    assert_int_equal(gone(asked, 3), 0);                        /* was gone before */
    assert_int_equal(gone(asked, GONE_MAX + 1), 0);
    assert_int_equal(gone(asked, GONE_MAX + 2), 2);
    assert_int_equal(look(asked, 1, 5), MU__ASKED_ANSWERED);
    assert_int_equal(look(asked, 2, 5), MU__ASKED_NEW);
    assert_int_equal(gone(asked, 2), 2);                        /* has no results */
    assert_int_equal(mu__asked_count(asked), GONE_MAX + 1);
    assert_int_equal(look(asked, 3, 5), MU__ASKED_ANSWERED);
    mu__asked_clear(asked);
    assert_int_equal(mu__asked_count(asked), 0);
    assert_int_equal(look(asked, 3, 5), MU__ASKED_NEW);
    mu__asked_free(asked);
}

struct model {
    bool there[AGENTS][TOKENS];
    uint64_t done[AGENTS];
    uint64_t seen;
    uint64_t last_agent;
    uint64_t last_token;
};

static int expect_known(void *user, uint64_t agent, uint64_t done,
                        const struct mu__asked_result *result)
{
    struct model *m = user;

    assert_true(m->there[agent - 1][result->token]);
    assert_int_equal(done, m->done[agent - 1]);
    assert_true(agent != m->last_agent || result->token > m->last_token);
    m->last_agent = agent;
    m->last_token = result->token;
    m->seen++;
    return 0;
}

static int stop_at_two(void *user, uint64_t agent, uint64_t done,
                       const struct mu__asked_result *result)
{
    unsigned *count = user;

    assert_true(agent > 0 && done <= result->token);
    return ++*count == 2 ? -MU_EINVALID : 0;
}

static void model_done(struct model *m, struct mu__asked *asked, unsigned a, uint64_t to)
{
    mu__asked_done(mu__asked_agent(asked, a + 1), to);
    if (to < m->done[a])
        return;
    memset(m->there[a], 0, to);
    m->done[a] = to;
}

static void model_step(struct model *m, struct mu__asked *asked,
                       struct sim_random *random)
{
    unsigned a = (unsigned)sim_between(random, 0, AGENTS - 1);
    uint64_t token = sim_between(random, 0, TOKENS - 1);
    enum mu__asked_state wanted = token < m->done[a] ? MU__ASKED_DONE
        : m->there[a][token] ? MU__ASKED_ANSWERED : MU__ASKED_NEW;

    assert_int_equal(look(asked, a + 1, token), wanted);
    if (wanted == MU__ASKED_NEW) {
        add(asked, a + 1, token);
        m->there[a][token] = true;
    }
    if (sim_chance(random, 2))
        model_done(m, asked, a, sim_between(random, 0, TOKENS / 2 + m->done[a] / 2));
}

static void test_against_model(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 10; seed++) {
        struct mu__asked *asked = mu__asked_new();
        struct model *m = calloc(1, sizeof *m);
        struct sim_random random = sim_stream(seed, 1);
        unsigned seen = 0;

        for (unsigned step = 0; step < STEPS; step++)
            model_step(m, asked, &random);
        assert_int_equal(mu__asked_each(asked, expect_known, m), 0);
        assert_int_equal(m->seen, mu__asked_count(asked));
        add(asked, 9, 1);
        add(asked, 9, 2);
        assert_int_equal(mu__asked_each(asked, stop_at_two, &seen), -MU_EINVALID);
        free(m);
        mu__asked_free(asked);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_agents_are_apart),
        cmocka_unit_test(test_bound),
        cmocka_unit_test(test_gone),
        cmocka_unit_test(test_against_model),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
