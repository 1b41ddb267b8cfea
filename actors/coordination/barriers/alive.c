#include "actors/coordination/barriers/alive.h"

#include "actors/coordination/barriers/barrier_requests.h"
#include "actors/coordination/replies.h"
#include "actors/coordination/roster.h"
#include "runtime/base/map.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    MISSING_NAMED_MAX = 3,
    OVER_MAX = 16 /* rounds whose answers are remembered */
};

struct alive_request {
    struct alive_request *next;
    struct member *member;
    uint64_t incarnation;
    uint64_t token;
    uint64_t due_ms; /* 0: it has no timeout */
    uint64_t timeout_ms;
};

struct member {
    uint32_t slot;
    uint32_t requests; /* its waiting requests */
    uint64_t last;     /* the highest token of its requests */
    bool connected;
};

/* The requests about one set that are answered together. The answered round is kept for a
 * while, for requests that are repeated because the answer was lost with a link. */
struct round {
    struct round *next;
    mu_value *list;         /* the answer; NULL: the round is not over */
    uint64_t version;       /* of the roster at the answer */
    char *set;              /* canonical */
    struct member *members; /* in the set's order */
    uint32_t count;
    uint32_t missing;              /* connected members without a request */
    struct mu__map by_slot;        /* slot + 1 -> member */
    struct alive_request *request; /* the last one first */
};

struct coord_alive {
    struct round *rounds;
    uint32_t rounds_count;
    uint32_t requests_count;
    uint64_t due_ms;    /* no timeout is over before */
    struct round *over; /* the last one first */
};

struct coord_alive *mu__coord_alive_new(void)
{
    return calloc(1, sizeof(struct coord_alive));
}

static void free_round(struct round *round)
{
    struct alive_request *next;

    for (struct alive_request *at = round->request; at != NULL; at = next) {
        next = at->next;
        free(at);
    }
    mu__map_done(&round->by_slot);
    mu_value_free(round->list);
    free(round->members);
    free(round->set);
    free(round);
}

static void free_rounds(struct round **rounds)
{
    while (*rounds != NULL) {
        struct round *round = *rounds;

        *rounds = round->next;
        free_round(round);
    }
}

void mu__coord_alive_forget(struct coord_alive *alive)
{
    free_rounds(&alive->rounds);
    free_rounds(&alive->over);
    alive->rounds_count = 0;
    alive->requests_count = 0;
}

void mu__coord_alive_free(struct coord_alive *alive)
{
    if (alive != NULL)
        mu__coord_alive_forget(alive);
    free(alive);
}

/* Take the round out of those that run; it is the caller's. */
static void unlist_round(struct coord_alive *alive, struct round *round)
{
    struct round **at = &alive->rounds;

    while (*at != round)
        at = &(*at)->next;
    *at = round->next;
    alive->rounds_count--;
    for (const struct alive_request *request = round->request; request != NULL;
         request = request->next)
        alive->requests_count--;
}

static void end_alive_round(struct coord_alive *alive, struct round *round)
{
    unlist_round(alive, round);
    free_round(round);
}

/* Keep a round that was answered with this list, which it takes; beyond OVER_MAX the
 * oldest is forgotten. */
static void keep_round(const struct coordination *c, struct coord_alive *alive,
                       struct round *round, mu_value *list)
{
    struct round **at = &alive->over;

    unlist_round(alive, round);
    round->list = list;
    round->version = c->roster->version;
    round->next = alive->over;
    alive->over = round;
    for (int i = 0; *at != NULL && i < OVER_MAX; i++)
        at = &(*at)->next;
    free_rounds(at);
}

/* ---- counting ---- */

static bool has_not_requested(const struct member *member)
{
    return member->connected && member->requests == 0;
}

/* Note whether a member is connected, and how many of its requests wait. */
static void count_member(struct round *round, struct member *member, bool connected,
                         uint32_t requests)
{
    round->missing -= has_not_requested(member);
    member->connected = connected;
    member->requests = requests;
    round->missing += has_not_requested(member);
}

static struct member *member_of(const struct round *round, uint32_t slot)
{
    return mu__map_get(&round->by_slot, (uint64_t)slot + 1);
}

static void remove_request(struct coord_alive *alive, struct round *round,
                           struct alive_request **at)
{
    struct alive_request *request = *at;

    *at = request->next;
    count_member(round, request->member, request->member->connected,
                 request->member->requests - 1);
    alive->requests_count--;
    free(request);
}

static void drop_requests(struct coord_alive *alive, struct round *round,
                          const struct member *member)
{
    struct alive_request **at = &round->request;

    while (*at != NULL)
        if ((*at)->member == member)
            remove_request(alive, round, at);
        else
            at = &(*at)->next;
}

/* ---- answering ---- */

static mu_value *describe_alive_task(const struct mu__roster_task *task)
{
    mu_value *map = mu_value_map();
    char incarnation[24];

    (void)snprintf(incarnation, sizeof incarnation, "%016" PRIx64, task->incarnation);
    if (mu_value_set(map, "task", mu_value_string(task->name)) == 0 &&
        mu_value_set(map, "incarnation", mu_value_string(incarnation)) == 0)
        return map;
    mu_value_free(map);
    return NULL;
}

static mu_value *list_of(const struct coordination *c, const struct round *round)
{
    mu_value *list = mu_value_list();

    for (uint32_t i = 0; list != NULL && i < round->count; i++)
        if (round->members[i].connected &&
            mu_value_append(
                list, describe_alive_task(c->roster->tasks[round->members[i].slot]))) {
            mu_value_free(list);
            list = NULL;
        }
    return list;
}

static void send_alive_list(struct mu__ctx *ctx, struct coordination *c,
                            const struct alive_request *request, const mu_value *list)
{
    const struct mu__roster_task *task = c->roster->tasks[request->member->slot];
    mu_error error;

    if (!task->link.up)
        return;
    if (list != NULL) {
        mu__coord_answer_value(ctx, c, task->link.node, request->token,
                               c->roster->version, mu_value_ref(list));
        return;
    }
    (void)mu_error_set(&error, -MU_ENOMEM, "no memory for the list of who is alive");
    mu__coord_answer(ctx, c, task->link.node, request->token, &error);
}

/* The same list for all, once no member is missing. A task whose link is down will repeat
 * its request. */
static void answer_when_complete(struct mu__ctx *ctx, struct coordination *c,
                                 struct coord_alive *alive, struct round *round)
{
    mu_value *list;

    if (round->missing > 0)
        return;
    list = list_of(c, round);
    for (const struct alive_request *at = round->request; at != NULL; at = at->next)
        send_alive_list(ctx, c, at, list);
    if (list != NULL)
        keep_round(c, alive, round, list);
    else
        end_alive_round(alive, round);
}

/* The round in which this request was answered already; NULL: none. A new request has a
 * higher token than its task's former ones, so the many requests of a round are searched
 * for repeated ones only. */
static const struct round *find_answered_round(
    const struct coord_alive *alive, const struct mu__roster_task *task, uint64_t token)
{
    for (const struct round *round = alive->over; round != NULL; round = round->next) {
        const struct member *member = member_of(round, task->slot);

        if (member == NULL || token > member->last)
            continue;
        for (const struct alive_request *at = round->request; at != NULL; at = at->next)
            if (at->member == member && at->token == token &&
                at->incarnation == task->incarnation)
                return round;
    }
    return NULL;
}

/* ---- requests ---- */

static struct round *find_round(const struct coord_alive *alive, const char *set)
{
    struct round *at = alive->rounds;

    while (at != NULL && strcmp(at->set, set) != 0)
        at = at->next;
    return at;
}

static int add_members(const struct coordination *c, struct round *round,
                       const uint32_t *slots)
{
    round->members = calloc(round->count, sizeof *round->members);
    if (round->members == NULL)
        return -MU_ENOMEM;
    for (uint32_t i = 0; i < round->count; i++) {
        struct member *member = &round->members[i];

        member->slot = slots[i];
        if (mu__map_set(&round->by_slot, (uint64_t)slots[i] + 1, member) != 0)
            return -MU_ENOMEM;
        count_member(round, member,
                     c->roster->tasks[slots[i]]->state == MU__TASK_CONNECTED, 0);
    }
    return 0;
}

/* Takes the set's text. */
static int begin_alive_round(const struct coordination *c, struct coord_alive *alive,
                             struct coord_set *set, mu_error *ret_error,
                             struct round **ret_round)
{
    struct round *round;
    uint32_t *slots;
    uint32_t count;
    int rv;

    if (alive->rounds_count >= MU__ALIVE_ROUNDS_MAX)
        return mu_error_set(ret_error, -MU_EEXHAUSTED,
                            "requests for %d different sets of tasks wait already",
                            MU__ALIVE_ROUNDS_MAX);
    rv = mu__coord_set_slots(c, set, ret_error, &slots, &count);
    if (rv != 0)
        return rv;
    round = calloc(1, sizeof *round);
    if (round == NULL) {
        free(slots);
        return mu_error_set(ret_error, -MU_ENOMEM, "no memory for a set of tasks");
    }
    round->count = count;
    rv = add_members(c, round, slots);
    free(slots);
    if (rv != 0) {
        free_round(round);
        return mu_error_set(ret_error, rv, "no memory for a set of tasks");
    }
    alive->rounds_count++;
    round->set = set->text;
    set->text = NULL;
    round->next = alive->rounds;
    alive->rounds = round;
    *ret_round = round;
    return 0;
}

static bool has_alive_request(const struct round *round, const struct member *member,
                              uint64_t token)
{
    for (const struct alive_request *at = round->request; at != NULL; at = at->next)
        if (at->member == member && at->token == token)
            return true;
    return false;
}

/* Add a waiting request, unless it is a repeated one. */
static int add_request(struct mu__ctx *ctx, struct coordination *c,
                       struct coord_alive *alive, struct round *round,
                       struct member *member, const struct mu__tasks_get *get,
                       mu_error *ret_error)
{
    uint64_t now_ms = mu__coord_clock(ctx, c);
    struct alive_request *request;

    if (member->requests > 0 && has_alive_request(round, member, get->token))
        return 0;
    if (alive->requests_count >= MU__ALIVE_REQUESTS_MAX)
        return mu_error_set(ret_error, -MU_EEXHAUSTED,
                            "%d requests for live tasks wait already",
                            MU__ALIVE_REQUESTS_MAX);
    if (member->requests >= MU__ALIVE_OF_TASK_MAX)
        return mu_error_set(ret_error, -MU_EEXHAUSTED,
                            "%d requests for live tasks of %s wait already, as many as "
                            "one task may have",
                            MU__ALIVE_OF_TASK_MAX, c->roster->tasks[member->slot]->name);
    request = calloc(1, sizeof *request);
    if (request == NULL)
        return mu_error_set(ret_error, -MU_ENOMEM, "no memory for a request");
    request->member = member;
    request->incarnation = c->roster->tasks[member->slot]->incarnation;
    request->token = get->token;
    request->timeout_ms = get->timeout_ms;
    if (get->timeout_ms != 0 && get->timeout_ms < UINT64_MAX / 2) {
        request->due_ms = now_ms + get->timeout_ms;
        alive->due_ms = mu__coord_earlier(alive->due_ms, request->due_ms);
    }
    request->next = round->request;
    round->request = request;
    alive->requests_count++;
    count_member(round, member, true, member->requests + 1);
    if (get->token > member->last)
        member->last = get->token;
    return 0;
}

static int request_in_round(struct mu__ctx *ctx, struct coordination *c,
                            struct coord_alive *alive, struct coord_set *set,
                            const struct mu__roster_task *task,
                            const struct mu__tasks_get *get, mu_error *ret_error)
{
    struct round *round = find_round(alive, set->text);
    int rv = 0;

    if (round == NULL)
        rv = begin_alive_round(c, alive, set, ret_error, &round);
    if (rv != 0)
        return rv;
    rv = add_request(ctx, c, alive, round, member_of(round, task->slot), get, ret_error);
    if (rv != 0 && round->request == NULL)
        end_alive_round(alive, round);
    else
        answer_when_complete(ctx, c, alive, round);
    return rv;
}

void mu__coord_alive_request(struct mu__ctx *ctx, struct coordination *c,
                             struct coord_alive *alive, struct mu__roster_task *task,
                             const struct mu__tasks_get *get)
{
    const struct round *over = find_answered_round(alive, task, get->token);
    struct coord_set set = {.text = NULL};
    mu_error error;
    int rv;

    if (over != NULL) {
        mu__coord_answer_value(ctx, c, task->link.node, get->token, over->version,
                               mu_value_ref(over->list));
        return;
    }
    rv = mu__coord_set_read(get->tasks, task, &error, &set);
    if (rv == 0)
        rv = request_in_round(ctx, c, alive, &set, task, get, &error);
    mu__coord_set_done(&set);
    if (rv != 0)
        mu__coord_answer(ctx, c, task->link.node, get->token, &error);
}

/* ---- tasks that leave or join; timeouts ---- */

void mu__coord_alive_left(struct mu__ctx *ctx, struct coordination *c,
                          struct coord_alive *alive, const struct mu__roster_task *task)
{
    struct round *next;

    for (struct round *at = alive->rounds; at != NULL; at = next) {
        struct member *member = member_of(at, task->slot);

        next = at->next;
        if (member == NULL)
            continue;
        drop_requests(alive, at, member);
        count_member(at, member, false, 0);
        answer_when_complete(ctx, c, alive, at);
    }
}

void mu__coord_alive_joined(struct coord_alive *alive, const struct mu__roster_task *task)
{
    for (struct round *at = alive->rounds; at != NULL; at = at->next) {
        struct member *member = member_of(at, task->slot);

        if (member != NULL)
            count_member(at, member, true, member->requests);
    }
}

static bool waits_for(void *user, const struct mu__roster_task *task)
{
    const struct member *member = member_of(user, task->slot);

    return member != NULL && has_not_requested(member);
}

static void time_out_alive_request(struct mu__ctx *ctx, struct coordination *c,
                                   struct round *round,
                                   const struct alive_request *request)
{
    const struct mu__roster_task *task = c->roster->tasks[request->member->slot];
    char missing[256];
    mu_error error;

    if (!task->link.up)
        return;
    (void)mu__roster_describe(c->roster, mu__coord_clock(ctx, c), waits_for, round,
                              MISSING_NAMED_MAX, missing, sizeof missing);
    (void)mu_error_set(&error, -MU_EDEADLINE,
                       "who of %.100s is alive: after %" PRIu64
                       " ms these are connected and have not asked: %s",
                       round->set, request->timeout_ms, missing);
    error.kind = MU_ERROR_LIMIT;
    mu__coord_answer(ctx, c, task->link.node, request->token, &error);
}

void mu__coord_alive_tick(struct mu__ctx *ctx, struct coordination *c,
                          struct coord_alive *alive)
{
    uint64_t now_ms = mu__coord_clock(ctx, c);
    struct round *next;

    alive->due_ms = UINT64_MAX;
    for (struct round *round = alive->rounds; round != NULL; round = next) {
        struct alive_request **at = &round->request;

        next = round->next;
        while (*at != NULL) {
            if ((*at)->due_ms != 0 && now_ms >= (*at)->due_ms) {
                time_out_alive_request(ctx, c, round, *at);
                remove_request(alive, round, at);
                continue;
            }
            if ((*at)->due_ms != 0)
                alive->due_ms = mu__coord_earlier(alive->due_ms, (*at)->due_ms);
            at = &(*at)->next;
        }
        if (round->request == NULL)
            end_alive_round(alive, round);
    }
}

uint64_t mu__coord_alive_due_ms(const struct coord_alive *alive)
{
    return alive->due_ms;
}
