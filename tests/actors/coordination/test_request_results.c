/* Results of what agents asked: each is found until it is done with. */
#include "actors/coordination/request_results.h"
#include "sim/world/random.h"
#include "tests/support/test.h"

enum { TOKENS = MU__RESULTS_MAX < 500 ? MU__RESULTS_MAX : 500, AGENTS = 3, STEPS = 2000 };
enum { GONE_MAX = 4 };

static struct mu__request_result result_of(uint64_t token)
{
    return (struct mu__request_result){token, token * 7, -(int64_t)token,
                                       token % 3 == 0 ? -MU_EEXISTS : 0};
}

static void add(struct mu__results *results, uint64_t incarnation, uint64_t token)
{
    struct mu__results_agent *agent = mu__results_agent(results, incarnation);
    struct mu__request_result result = result_of(token);

    assert_non_null(agent);
    assert_int_equal(mu__results_reserve(agent, NULL), 0);
    mu__results_add(agent, &result);
}

static enum mu__request_state look(struct mu__results *results, uint64_t incarnation,
                                   uint64_t token)
{
    struct mu__request_result result = {0};
    struct mu__request_result wanted = result_of(token);
    enum mu__request_state state =
        mu__results_find(mu__results_agent(results, incarnation), token, &result);

    if (state == MU__REQUEST_ANSWERED) {
        assert_int_equal(result.token, wanted.token);
        assert_int_equal(result.revision, wanted.revision);
        assert_int_equal(result.number, wanted.number);
        assert_int_equal(result.code, wanted.code);
    }
    return state;
}

TEST(test_agents_are_apart)
{
    struct mu__results *results = mu__results_new();

    assert_int_equal(look(results, 8, 1), MU__REQUEST_NEW);
    add(results, 8, 1);
    add(results, 9, 2);
    assert_int_equal(look(results, 8, 1), MU__REQUEST_ANSWERED);
    assert_int_equal(look(results, 8, 2), MU__REQUEST_NEW);
    assert_int_equal(look(results, 9, 1), MU__REQUEST_NEW);
    mu__results_acknowledge(mu__results_agent(results, 8), 5);
    assert_int_equal(look(results, 8, 1), MU__REQUEST_ACKNOWLEDGED);
    assert_int_equal(look(results, 8, 4), MU__REQUEST_ACKNOWLEDGED);
    assert_int_equal(look(results, 8, 5), MU__REQUEST_NEW);
    assert_int_equal(look(results, 9, 2), MU__REQUEST_ANSWERED);
    mu__results_acknowledge(mu__results_agent(results, 8), 3); /* it never goes back */
    assert_int_equal(look(results, 8, 4), MU__REQUEST_ACKNOWLEDGED);
    assert_int_equal(mu__results_count(results), 1);
    mu__results_free(results);
    mu__results_free(NULL);
}

/* At the bound nothing more is taken until the agent is done with some. */
TEST(test_bound)
{
    struct mu__results *results = mu__results_new();
    mu_error error;

    for (uint64_t token = 1; token <= MU__RESULTS_MAX; token++)
        add(results, 8, token);
    assert_int_equal(mu__results_reserve(mu__results_agent(results, 8), &error),
                     -MU_EEXHAUSTED);
    assert_non_null(strstr(error.message, "unacknowledged results, the limit"));
    assert_int_equal(mu__results_reserve(mu__results_agent(results, 9), &error), 0);
    mu__results_acknowledge(mu__results_agent(results, 8), 2);
    add(results, 8, MU__RESULTS_MAX + 1);
    for (uint64_t token = 2; token <= MU__RESULTS_MAX + 1; token++)
        assert_int_equal(look(results, 8, token), MU__REQUEST_ANSWERED);
    mu__results_acknowledge(mu__results_agent(results, 8), MU__RESULTS_MAX + 2);
    assert_int_equal(mu__results_count(results), 0);
    add(results, 8, MU__RESULTS_MAX + 2);
    assert_int_equal(look(results, 8, MU__RESULTS_MAX + 2), MU__REQUEST_ANSWERED);
    mu__results_free(results);
}

static uint64_t closed(struct mu__results *results, uint64_t agent)
{
    return mu__results_agent_closed(results, agent, GONE_MAX);
}

/* Who is gone may come back; of many, those that went first are forgotten. */
TEST(test_gone)
{
    struct mu__results *results = mu__results_new();

    assert_int_equal(closed(results, 77), 0);
    for (uint64_t agent = 1; agent <= GONE_MAX + 2; agent++)
        add(results, agent, 5);
    for (uint64_t agent = 1; agent <= GONE_MAX; agent++)
        assert_int_equal(closed(results, agent), 0);
    mu__results_agent_back(results, 1);
    mu__results_agent_back(results, 77);     /* nobody */
    assert_int_equal(closed(results, 3), 0); /* was gone before */
    assert_int_equal(closed(results, GONE_MAX + 1), 0);
    assert_int_equal(closed(results, GONE_MAX + 2), 2);
    assert_int_equal(look(results, 1, 5), MU__REQUEST_ANSWERED);
    assert_int_equal(look(results, 2, 5), MU__REQUEST_NEW);
    assert_int_equal(closed(results, 2), 2); /* has no results */
    assert_int_equal(mu__results_count(results), GONE_MAX + 1);
    assert_int_equal(look(results, 3, 5), MU__REQUEST_ANSWERED);
    mu__results_clear(results);
    assert_int_equal(mu__results_count(results), 0);
    assert_int_equal(look(results, 3, 5), MU__REQUEST_NEW);
    mu__results_free(results);
}

struct model {
    bool there[AGENTS][TOKENS];
    uint64_t done[AGENTS];
    uint64_t seen;
    uint64_t last_agent;
    uint64_t last_token;
};

static int expect_known(void *user, uint64_t agent, uint64_t done,
                        const struct mu__request_result *result)
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
                       const struct mu__request_result *result)
{
    unsigned *count = user;

    assert_true(agent > 0 && done <= result->token);
    return ++*count == 2 ? -MU_EINVALID : 0;
}

static void model_done(struct model *m, struct mu__results *results, unsigned a,
                       uint64_t to)
{
    mu__results_acknowledge(mu__results_agent(results, a + 1), to);
    if (to < m->done[a])
        return;
    memset(m->there[a], 0, to);
    m->done[a] = to;
}

static void model_step(struct model *m, struct mu__results *results,
                       struct sim_random *random)
{
    unsigned a = (unsigned)sim_between(random, 0, AGENTS - 1);
    uint64_t token = sim_between(random, 0, TOKENS - 1);
    enum mu__request_state wanted = token < m->done[a]   ? MU__REQUEST_ACKNOWLEDGED
                                    : m->there[a][token] ? MU__REQUEST_ANSWERED
                                                         : MU__REQUEST_NEW;

    assert_int_equal(look(results, a + 1, token), wanted);
    if (wanted == MU__REQUEST_NEW) {
        add(results, a + 1, token);
        m->there[a][token] = true;
    }
    if (sim_chance(random, 2))
        model_done(m, results, a, sim_between(random, 0, TOKENS / 2 + m->done[a] / 2));
}

TEST(test_against_model)
{
    for (uint64_t seed = 1; seed <= 10; seed++) {
        struct mu__results *results = mu__results_new();
        struct model *m = calloc(1, sizeof *m);
        struct sim_random random = sim_stream(seed, 1);
        unsigned seen = 0;

        for (unsigned step = 0; step < STEPS; step++)
            model_step(m, results, &random);
        assert_int_equal(mu__results_each(results, expect_known, m), 0);
        assert_int_equal(m->seen, mu__results_count(results));
        add(results, 9, 1);
        add(results, 9, 2);
        assert_int_equal(mu__results_each(results, stop_at_two, &seen), -MU_EINVALID);
        free(m);
        mu__results_free(results);
    }
}

TEST_PROGRAM()
