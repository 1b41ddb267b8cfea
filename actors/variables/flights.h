/* Parts that wait for their turn with a server, and requests that are under way. */
#ifndef MU_ACTORS_VARIABLES_FLIGHTS_H
#define MU_ACTORS_VARIABLES_FLIGHTS_H

#include "actors/variables/internal.h"

/* A part that has something to send stands in the queue of its server. */
void mu__vars_enqueue(struct variables *v, struct op_part *part);
void mu__vars_dequeue(struct variables *v, struct op_part *part);
void mu__vars_unstage(struct variables *v, struct op_part *part);

/* Free a flight; returns what it was. */
struct flight mu__vars_end_flight(struct variables *v, struct flight *flight);

/* Answers that are under way are of no use to the operation, or the part, any more. */
void mu__vars_disown_flights(struct variables *v, struct operation *op);
void mu__vars_disown_part(struct variables *v, struct op_part *part);
struct flight *mu__vars_flight_new(struct variables *v);
void mu__vars_count_flight(struct variables *v, const struct flight *flight);

/* The flight that a message is about; NULL when there is none. */
struct flight *mu__vars_find_flight(struct variables *v, const struct mu__msg *msg,
                                    uint64_t token);

/* The flight that a message answers; false when there is none. */
bool mu__vars_end_answered_flight(struct variables *v, const struct mu__msg *msg,
                                  uint64_t token, struct flight *ret_flight);

#endif
