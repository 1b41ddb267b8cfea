/* Queues of the parts that wait for their server, and requests that are under way. */
#include "actors/variables/actions.h"

#include <assert.h>

/* ---- Queues ---- */

void mu__vars_enqueue(struct variables *v, struct op_part *part)
{
    if (!part->queued)
        mu__list_append(&v->servers[part->server].queue, &part->node);
    part->queued = true;
}

void mu__vars_dequeue(struct variables *v, struct op_part *part)
{
    if (part->queued)
        mu__list_remove(&v->servers[part->server].queue, &part->node);
    part->queued = false;
}

void mu__vars_unstage(struct variables *v, struct op_part *part)
{
    if (part->staged)
        v->servers[part->server].staged--;
    part->staged = false;
}

/* ---- Flights ---- */

struct flight *mu__vars_flight_new(struct variables *v)
{
    struct flight *flight;

    assert(v->flights_count < MU__FLIGHTS_MAX);
    do {
        flight = &v->flights[++v->token_last % MU__FLIGHTS_MAX];
    } while (flight->token != 0 || v->token_last == 0);
    flight->token = v->token_last;
    return flight;
}

void mu__vars_count_flight(struct variables *v, const struct flight *flight)
{
    v->flights_count++;
    v->opens_count += flight->answer == MU__VAR_OPENED;
    v->servers[flight->server].bytes_under_way += flight->size;
    flight->part->op->flights++;
}

struct flight mu__vars_end_flight(struct variables *v, struct flight *flight)
{
    struct flight was = *flight;

    v->flights_count--;
    v->opens_count -= was.answer == MU__VAR_OPENED;
    v->servers[was.server].bytes_under_way -= was.size;
    if (was.part != NULL)
        was.part->op->flights--;
    *flight = (struct flight){.token = 0};
    return was;
}

struct flight *mu__vars_find_flight(struct variables *v, const struct mu__msg *msg,
                                    uint64_t token)
{
    struct flight *flight = &v->flights[token % MU__FLIGHTS_MAX];

    if (token == 0 || flight->token != token || flight->answer != msg->kind ||
        !mu__pid_equal(pid_of(v, flight->server), msg->from))
        return NULL;
    return flight;
}

bool mu__vars_end_answered_flight(struct variables *v, const struct mu__msg *msg,
                                  uint64_t token, struct flight *ret_flight)
{
    struct flight *flight = mu__vars_find_flight(v, msg, token);

    if (flight == NULL)
        return false;
    *ret_flight = mu__vars_end_flight(v, flight);
    return true;
}

void mu__vars_disown_flights(struct variables *v, struct operation *op,
                             const struct op_part *part)
{
    for (uint32_t i = 0; i < MU__FLIGHTS_MAX && op->flights > 0; i++) {
        struct op_part *flying = v->flights[i].part;

        if (flying == NULL || flying->op != op || (part != NULL && flying != part))
            continue;
        v->flights[i].part = NULL;
        op->flights--;
    }
}
