/* Offices of actors in a few processes of tests/support/net.h, and a type of actors whose
 * turns a test writes: "probe" runs a function of the test, and notes what it hears. */
#ifndef MU_TESTS_USER_NET_H
#define MU_TESTS_USER_NET_H

#include "actors/user/actions.h"
#include "tests/support/net.h"

enum { PROBE_NOTES_MAX = 4096, USER_NET_NODES = 3 };

/* A notice, copied. */
struct probe_note {
    int kind;
    uint64_t token;
    mu_address address;
    int64_t value;  /* of an answer that is a whole number */
    mu_error error; /* code 0: none */
};

struct user_net;

/* One that is to be taken in a turn of a probe. */
typedef int (*probe_turn)(mu_actor *self, struct user_net *f);

struct user_net {
    struct net net;
    struct net_process *nodes[USER_NET_NODES];
    struct probe_note *notes; /* of all probes, as they came */
    size_t notes_count;
    probe_turn on_timer; /* part of the turn of each TIMER notice; NULL: nothing */
};

int user_net_set_up(void **state);
int user_net_tear_down(void **state);

/* Besides "probe", which all have; before or after it runs. */
void user_net_register(struct user_net *f, const mu_actor_type *type);

struct office *user_net_office(const struct user_net *f, size_t node);
mu_address user_net_spawn(struct user_net *f, size_t node, const char *type,
                          const mu_value *args, const mu_actor_options *options);

/* A turn of a probe, and what follows from it now; returns what `turn` returns. */
int user_net_run(struct user_net *f, const mu_address *probe, probe_turn turn);

/* How many notes of a kind, and the last of them. */
size_t user_net_count(const struct user_net *f, int kind);
const struct probe_note *user_net_last(const struct user_net *f, int kind);

bool user_net_lives(const struct user_net *f, size_t node, const mu_address *actor);

#endif
