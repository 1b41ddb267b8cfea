/* An etcd in virtual time, behind the door to HTTP (runtime/kernel/http.h): delays, lost
 * requests, lost answers of what was done all the same, requests that arrive long after
 * nobody waits for them, endpoints that are away, and the whole of it away and back with
 * its data. What it answers is in etcd_data.h. */
#ifndef MU_TESTS_SIM_ETCD_H
#define MU_TESTS_SIM_ETCD_H

#include "runtime/kernel/http.h"
#include "sim/world/sim.h"
#include "tests/sim/etcd_data.h"

enum { SIM_ETCD_ENDPOINTS = 3 };

/* All three; each by itself is "http://etcd0:2379". */
#define SIM_ETCD_PLACE "http://etcd0:2379,http://etcd1:2379,http://etcd2:2379"

struct sim_etcd_settings {
    struct sim_range way;         /* of a request, and of an answer */
    unsigned lose_percent;        /* of requests: nothing happens */
    unsigned lose_answer_percent; /* it happens, and the connection breaks */
    unsigned late_percent;        /* the request arrives much later */
    struct sim_range late;
    bool lacks_grpc; /* a path of gRPC's is not found */
};

struct sim_etcd;

/* A way takes 2 ms at first, and nothing is lost. */
struct sim_etcd *sim_etcd_new(struct sim *sim, uint64_t seed);

/* After the simulator's end: what is under way is forgotten. */
void sim_etcd_free(struct sim_etcd *etcd);

struct sim_etcd_settings *sim_etcd_settings(struct sim_etcd *etcd);
struct etcd_data *sim_etcd_data(struct sim_etcd *etcd);

/* The door of a process that begins at `node`; valid as long as the etcd. */
struct mu__http *sim_etcd_door(struct sim_etcd *etcd, struct sim_node *node);

/* The process has gone: what it had sent arrives, and nobody hears of it. */
void sim_etcd_door_end(struct mu__http *door);

/* Nobody answers at an endpoint; or somebody does again. */
void sim_etcd_set_down(struct sim_etcd *etcd, unsigned endpoint, bool down);

/* All of it is away, or comes back with its data, and begins every lease anew. */
void sim_etcd_set_away(struct sim_etcd *etcd, bool away);

/* Requests that were sent so far, and those of them that went by gRPC. */
uint64_t sim_etcd_requests(const struct sim_etcd *etcd);
uint64_t sim_etcd_grpc_requests(const struct sim_etcd *etcd);

#endif
