/* The processes of user_net.h with a chief that has a keeper, and a type of kept actors:
 * "counter". Who owns it is told by the test. */
#ifndef MU_TESTS_KEPT_NET_H
#define MU_TESTS_KEPT_NET_H

#include "actors/keeper/kept_state.h"
#include "sim/world/storage.h"
#include "tests/support/users/user_net.h"

struct kept_net {
    struct user_net *users;
    struct net_process *chief;
    struct sim_storage *storage;
    uint64_t bytes_max;                /* of its keeper, from its next start on, */
    uint64_t rewrite_bytes;            /* and of its file */
    mu_address probes[USER_NET_NODES]; /* that call, and note the answers */
    mu_address told;                   /* hears from "tell" */
    uint64_t epoch;                    /* the last that was given out */
    uint64_t made;                     /* see struct mu__kept_own */
    bool is_born;
    unsigned starts; /* of the counter's `start` */
    unsigned flips;
    unsigned born; /* news */
    unsigned ended;
    mu_error why; /* of the last end */
    mu_error error;
};

int kept_net_set_up(void **state);
int kept_net_tear_down(void **state);

/* The counter's methods: "add" a number, "get"; "bad" records 100 and fails; "flip" does
 * so the first time, and is "add" afterwards; "tell" records 1, and sends that to `told`;
 * "hold" records 1 and answers later, "give" answers it;
 * "wait" puts a call off, "work" records 1 and answers it; "flow" records 1, and begins
 * a stream with what it has. */
extern const mu_actor_type kept_counter;

/* The next life begins on this node; all are told. */
void kept_net_own(struct kept_net *f, size_t node);
void kept_net_route(struct kept_net *f, size_t from, size_t to);

/* A call by the probe of a node, with its number as the token; nothing is settled. */
void kept_net_call(struct kept_net *f, size_t node, const char *method, int64_t number,
                   uint64_t token);

/* The same by node 0, until nothing is left to do. */
void kept_net_ask(struct kept_net *f, const char *method, int64_t number, uint64_t token);

struct net *kept_net_net(const struct kept_net *f);
struct net_process *kept_net_node(const struct kept_net *f, size_t node);

/* The note of an answer; NULL: there is none. More than one fails the test. */
const struct probe_note *kept_net_answer(const struct kept_net *f, uint64_t token);

void kept_net_expect(const struct kept_net *f, uint64_t token, int64_t value);

struct kept *kept_net_owned(const struct kept_net *f, size_t node);

#endif
