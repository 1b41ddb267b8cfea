/* Results of one agent are a ring in order of tokens: new ones come at its end and old
 * ones leave at its begin. Only while a store is read may one come in between. */
#include "actors/coordination/asked.h"

#include "runtime/base/map.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>

enum { RING_FIRST = 4, RING_KEPT_MAX = 1 << 12 };

struct mu__asked_agent {
    uint64_t incarnation;
    uint64_t done;
    struct mu__asked_result *ring;
    uint32_t first;
    uint32_t count;
    uint32_t capacity;                  /* a power of two, or 0 */
    bool gone;
    struct mu__asked_agent *next;       /* of all; of those gone, in that order */
    struct mu__asked_agent *before;
    struct mu__asked *asked;
};

/* A list with its ends. */
struct list {
    struct mu__asked_agent *first;
    struct mu__asked_agent *last;
};

struct mu__asked {
    struct mu__map agents;
    struct list here;
    struct list gone;
    uint32_t gone_count;
    uint64_t count;
};

/* ---- Lists ---- */

static void list_add(struct list *list, struct mu__asked_agent *agent)
{
    agent->next = NULL;
    agent->before = list->last;
    if (list->last != NULL)
        list->last->next = agent;
    else
        list->first = agent;
    list->last = agent;
}

static void list_take(struct list *list, struct mu__asked_agent *agent)
{
    if (agent->before != NULL)
        agent->before->next = agent->next;
    else
        list->first = agent->next;
    if (agent->next != NULL)
        agent->next->before = agent->before;
    else
        list->last = agent->before;
}

static void move(struct mu__asked_agent *agent, bool gone)
{
    struct mu__asked *asked = agent->asked;

    if (agent->gone == gone)
        return;
    list_take(gone ? &asked->here : &asked->gone, agent);
    list_add(gone ? &asked->gone : &asked->here, agent);
    agent->gone = gone;
    if (gone)
        asked->gone_count++;
    else
        asked->gone_count--;
}

/* ---- Rings ---- */

static struct mu__asked_result *result_at(const struct mu__asked_agent *agent, uint32_t i)
{
    return &agent->ring[(agent->first + i) & (agent->capacity - 1)];
}

/* How many results have a lower token. */
static uint32_t place_of(const struct mu__asked_agent *agent, uint64_t token)
{
    uint32_t low = 0;
    uint32_t high = agent->count;

    if (high == 0 || result_at(agent, high - 1)->token < token)
        return high;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;

        if (result_at(agent, middle)->token < token)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static int grow(struct mu__asked_agent *agent)
{
    uint32_t capacity = agent->capacity == 0 ? RING_FIRST : agent->capacity * 2;
    struct mu__asked_result *ring = malloc(capacity * sizeof *ring);

    if (ring == NULL)
        return -MU_ENOMEM;
    for (uint32_t i = 0; i < agent->count; i++)
        ring[i] = *result_at(agent, i);
    free(agent->ring);
    agent->ring = ring;
    agent->first = 0;
    agent->capacity = capacity;
    return 0;
}

/* A large ring that is empty is given back. */
static void shrink(struct mu__asked_agent *agent)
{
    if (agent->count > 0 || agent->capacity <= RING_KEPT_MAX)
        return;
    free(agent->ring);
    agent->ring = NULL;
    agent->capacity = 0;
    agent->first = 0;
}

void mu__asked_done(struct mu__asked_agent *agent, uint64_t done)
{
    uint32_t before = agent->count;

    if (done <= agent->done)
        return;
    agent->done = done;
    while (agent->count > 0 && agent->ring[agent->first].token < done) {
        agent->first = (agent->first + 1) & (agent->capacity - 1);
        agent->count--;
    }
    agent->asked->count -= before - agent->count;
    shrink(agent);
}

enum mu__asked_state mu__asked_look(const struct mu__asked_agent *agent, uint64_t token,
                                    struct mu__asked_result *ret_result)
{
    uint32_t place;

    if (token < agent->done)
        return MU__ASKED_DONE;
    place = place_of(agent, token);
    if (place == agent->count || result_at(agent, place)->token != token)
        return MU__ASKED_NEW;
    *ret_result = *result_at(agent, place);
    return MU__ASKED_ANSWERED;
}

int mu__asked_reserve(struct mu__asked_agent *agent, mu_error *ret_error)
{
    if (agent->count >= MU__ASKED_MAX)
        return mu_error_set(ret_error, -MU_EEXHAUSTED, "%d changes of this task were "
                            "answered that it has not said to have the answers of; "
                            "there may be no more", MU__ASKED_MAX);
    if (agent->count < agent->capacity || grow(agent) == 0)
        return 0;
    return mu_error_set(ret_error, -MU_ENOMEM, "no memory for the result of a change");
}

void mu__asked_add(struct mu__asked_agent *agent, const struct mu__asked_result *result)
{
    uint32_t place = place_of(agent, result->token);

    assert(agent->count < agent->capacity && result->token >= agent->done);
    for (uint32_t i = agent->count; i > place; i--)
        *result_at(agent, i) = *result_at(agent, i - 1);
    *result_at(agent, place) = *result;
    agent->count++;
    agent->asked->count++;
}

/* ---- Agents ---- */

struct mu__asked *mu__asked_new(void)
{
    return calloc(1, sizeof(struct mu__asked));
}

void mu__asked_seed(struct mu__asked *asked, uint64_t seed)
{
    mu__map_seed(&asked->agents, seed);
}

static void free_list(struct list *list)
{
    while (list->first != NULL) {
        struct mu__asked_agent *agent = list->first;

        list->first = agent->next;
        free(agent->ring);
        free(agent);
    }
}

void mu__asked_clear(struct mu__asked *asked)
{
    free_list(&asked->here);
    free_list(&asked->gone);
    mu__map_done(&asked->agents);
    *asked = (struct mu__asked){.agents = asked->agents};
}

void mu__asked_free(struct mu__asked *asked)
{
    if (asked == NULL)
        return;
    mu__asked_clear(asked);
    free(asked);
}

static struct mu__asked_agent *add_agent(struct mu__asked *asked, uint64_t incarnation)
{
    struct mu__asked_agent *agent = calloc(1, sizeof *agent);

    if (agent == NULL)
        return NULL;
    if (mu__map_set(&asked->agents, incarnation, agent) != 0) {
        free(agent);
        return NULL;
    }
    agent->incarnation = incarnation;
    agent->asked = asked;
    list_add(&asked->here, agent);
    return agent;
}

struct mu__asked_agent *mu__asked_agent(struct mu__asked *asked, uint64_t agent)
{
    struct mu__asked_agent *found;

    assert(agent != 0);
    found = mu__map_get(&asked->agents, agent);
    if (found == NULL)
        return add_agent(asked, agent);
    move(found, false);
    return found;
}

static void forget(struct mu__asked_agent *agent)
{
    struct mu__asked *asked = agent->asked;

    move(agent, true);
    asked->gone_count--;
    list_take(&asked->gone, agent);
    asked->count -= agent->count;
    (void)mu__map_remove(&asked->agents, agent->incarnation);
    free(agent->ring);
    free(agent);
}

void mu__asked_back(struct mu__asked *asked, uint64_t agent)
{
    struct mu__asked_agent *found = mu__map_get(&asked->agents, agent);

    if (found != NULL)
        move(found, false);
}

uint64_t mu__asked_gone(struct mu__asked *asked, uint64_t agent, uint32_t most)
{
    struct mu__asked_agent *found = mu__map_get(&asked->agents, agent);
    uint64_t incarnation;

    if (found == NULL)
        return 0;
    move(found, true);
    if (found->count > 0)
        found = asked->gone_count <= most ? NULL : asked->gone.first;
    if (found == NULL)
        return 0;
    incarnation = found->incarnation;
    forget(found);
    return incarnation;
}

static int each_of(const struct mu__asked_agent *agent, mu__asked_each_fn each,
                   void *user)
{
    int rv = 0;

    for (; agent != NULL && rv == 0; agent = agent->next)
        for (uint32_t i = 0; i < agent->count && rv == 0; i++)
            rv = each(user, agent->incarnation, agent->done, result_at(agent, i));
    return rv;
}

int mu__asked_each(const struct mu__asked *asked, mu__asked_each_fn each, void *user)
{
    int rv = each_of(asked->gone.first, each, user);

    return rv == 0 ? each_of(asked->here.first, each, user) : rv;
}

uint64_t mu__asked_count(const struct mu__asked *asked)
{
    return asked->count;
}
