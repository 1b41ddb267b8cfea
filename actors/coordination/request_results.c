/* Results of one agent are a ring in order of tokens: new ones are added at its end and
 * old ones removed at its begin. Only while a store is read may one go in between. */
#include "actors/coordination/request_results.h"

#include "runtime/base/list.h"
#include "runtime/base/map.h"

#include <assert.h>
#include <stdlib.h>

enum { RING_FIRST = 4, RING_RETAINED_MAX = 1 << 12 };

struct mu__results_agent {
    uint64_t incarnation;
    uint64_t done;
    struct mu__request_result *ring;
    uint32_t first;
    uint32_t count;
    uint32_t capacity; /* a power of two, or 0 */
    bool closed;
    struct mu__list_node link; /* in `open` or `closed` */
    struct mu__results *results;
};

struct mu__results {
    struct mu__map agents;
    struct mu__list open;
    struct mu__list closed; /* the one closed longest first */
    uint32_t closed_count;
    uint64_t count;
};

static void move_agent_list(struct mu__results_agent *agent, bool closed)
{
    struct mu__results *results = agent->results;

    if (agent->closed == closed)
        return;
    mu__list_remove(closed ? &results->open : &results->closed, &agent->link);
    mu__list_append(closed ? &results->closed : &results->open, &agent->link);
    agent->closed = closed;
    if (closed)
        results->closed_count++;
    else
        results->closed_count--;
}

/* ---- Rings ---- */

static struct mu__request_result *get_request_result(
    const struct mu__results_agent *agent, uint32_t i)
{
    return &agent->ring[(agent->first + i) & (agent->capacity - 1)];
}

/* How many results have a lower token. */
static uint32_t find_result_index(const struct mu__results_agent *agent, uint64_t token)
{
    uint32_t low = 0;
    uint32_t high = agent->count;

    if (high == 0 || get_request_result(agent, high - 1)->token < token)
        return high;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;

        if (get_request_result(agent, middle)->token < token)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static int grow_result_ring(struct mu__results_agent *agent)
{
    uint32_t capacity = agent->capacity == 0 ? RING_FIRST : agent->capacity * 2;
    struct mu__request_result *ring = malloc(capacity * sizeof *ring);

    if (ring == NULL)
        return -MU_ENOMEM;
    for (uint32_t i = 0; i < agent->count; i++)
        ring[i] = *get_request_result(agent, i);
    free(agent->ring);
    agent->ring = ring;
    agent->first = 0;
    agent->capacity = capacity;
    return 0;
}

/* Free a large ring that is empty. */
static void shrink_result_ring(struct mu__results_agent *agent)
{
    if (agent->count > 0 || agent->capacity <= RING_RETAINED_MAX)
        return;
    free(agent->ring);
    agent->ring = NULL;
    agent->capacity = 0;
    agent->first = 0;
}

void mu__results_acknowledge(struct mu__results_agent *agent, uint64_t done)
{
    uint32_t before = agent->count;

    if (done <= agent->done)
        return;
    agent->done = done;
    while (agent->count > 0 && agent->ring[agent->first].token < done) {
        agent->first = (agent->first + 1) & (agent->capacity - 1);
        agent->count--;
    }
    agent->results->count -= before - agent->count;
    shrink_result_ring(agent);
}

enum mu__request_state mu__results_find(const struct mu__results_agent *agent,
                                        uint64_t token,
                                        struct mu__request_result *ret_result)
{
    uint32_t index;

    if (token < agent->done)
        return MU__REQUEST_ACKNOWLEDGED;
    index = find_result_index(agent, token);
    if (index == agent->count || get_request_result(agent, index)->token != token)
        return MU__REQUEST_NEW;
    *ret_result = *get_request_result(agent, index);
    return MU__REQUEST_ANSWERED;
}

int mu__results_reserve(struct mu__results_agent *agent, mu_error *ret_error)
{
    if (agent->count >= MU__RESULTS_MAX)
        return mu_error_set(ret_error, -MU_EEXHAUSTED,
                            "the task has %d unacknowledged results, the limit",
                            MU__RESULTS_MAX);
    if (agent->count < agent->capacity || grow_result_ring(agent) == 0)
        return 0;
    return mu_error_set(ret_error, -MU_ENOMEM, "no memory for the result of a change");
}

void mu__results_add(struct mu__results_agent *agent,
                     const struct mu__request_result *result)
{
    uint32_t index = find_result_index(agent, result->token);

    assert(agent->count < agent->capacity && result->token >= agent->done);
    for (uint32_t i = agent->count; i > index; i--)
        *get_request_result(agent, i) = *get_request_result(agent, i - 1);
    *get_request_result(agent, index) = *result;
    agent->count++;
    agent->results->count++;
}

/* ---- Agents ---- */

struct mu__results *mu__results_new(void)
{
    return calloc(1, sizeof(struct mu__results));
}

void mu__results_seed(struct mu__results *results, uint64_t seed)
{
    mu__map_seed(&results->agents, seed);
}

static void free_agent_list(struct mu__list *list)
{
    struct mu__results_agent *agent;

    while ((agent = MU__LIST_FIRST(list, struct mu__results_agent, link)) != NULL) {
        (void)mu__list_pop(list);
        free(agent->ring);
        free(agent);
    }
}

void mu__results_clear(struct mu__results *results)
{
    free_agent_list(&results->open);
    free_agent_list(&results->closed);
    mu__map_done(&results->agents);
    *results = (struct mu__results){.agents = results->agents};
}

void mu__results_free(struct mu__results *results)
{
    if (results == NULL)
        return;
    mu__results_clear(results);
    free(results);
}

static struct mu__results_agent *add_agent(struct mu__results *results,
                                           uint64_t incarnation)
{
    struct mu__results_agent *agent = calloc(1, sizeof *agent);

    if (agent == NULL)
        return NULL;
    if (mu__map_set(&results->agents, incarnation, agent) != 0) {
        free(agent);
        return NULL;
    }
    agent->incarnation = incarnation;
    agent->results = results;
    mu__list_append(&results->open, &agent->link);
    return agent;
}

struct mu__results_agent *mu__results_agent(struct mu__results *results, uint64_t agent)
{
    struct mu__results_agent *found;

    assert(agent != 0);
    found = mu__map_get(&results->agents, agent);
    if (found == NULL)
        return add_agent(results, agent);
    move_agent_list(found, false);
    return found;
}

static void forget_agent(struct mu__results_agent *agent)
{
    struct mu__results *results = agent->results;

    move_agent_list(agent, true);
    results->closed_count--;
    mu__list_remove(&results->closed, &agent->link);
    results->count -= agent->count;
    (void)mu__map_remove(&results->agents, agent->incarnation);
    free(agent->ring);
    free(agent);
}

void mu__results_agent_back(struct mu__results *results, uint64_t agent)
{
    struct mu__results_agent *found = mu__map_get(&results->agents, agent);

    if (found != NULL)
        move_agent_list(found, false);
}

uint64_t mu__results_agent_closed(struct mu__results *results, uint64_t agent,
                                  uint32_t most)
{
    struct mu__results_agent *found = mu__map_get(&results->agents, agent);
    uint64_t incarnation;

    if (found == NULL)
        return 0;
    move_agent_list(found, true);
    if (found->count > 0)
        found = results->closed_count <= most
                    ? NULL
                    : MU__LIST_FIRST(&results->closed, struct mu__results_agent, link);
    if (found == NULL)
        return 0;
    incarnation = found->incarnation;
    forget_agent(found);
    return incarnation;
}

static int each_of(const struct mu__list *list, mu__results_each_fn each, void *user)
{
    int rv = 0;

    for (const struct mu__results_agent *agent =
             MU__LIST_FIRST(list, struct mu__results_agent, link);
         agent != NULL && rv == 0;
         agent = MU__LIST_NEXT(agent, struct mu__results_agent, link))
        for (uint32_t i = 0; i < agent->count && rv == 0; i++)
            rv =
                each(user, agent->incarnation, agent->done, get_request_result(agent, i));
    return rv;
}

int mu__results_each(const struct mu__results *results, mu__results_each_fn each,
                     void *user)
{
    int rv = each_of(&results->closed, each, user);

    return rv == 0 ? each_of(&results->open, each, user) : rv;
}

uint64_t mu__results_count(const struct mu__results *results)
{
    return results->count;
}
