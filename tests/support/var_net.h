/* Two programs and three parameter servers of a net (net.h), and what programs ask for as
 * their threads would: for tests of variables. */
#ifndef MU_TESTS_VAR_NET_H
#define MU_TESTS_VAR_NET_H

#include "actors/partitions.h"
#include "actors/ps/ps.h"
#include "actors/ps/variable_store.h"
#include "actors/variables/variables.h"
#include "tests/support/net.h"

struct var_net {
    struct net net;
    struct net_process *servers[3]; /* arg: NULL, or their struct mu__store_limits */
    struct net_process *alice;
    struct net_process *bob;
    struct net_process *chief;
};

/* Of cmocka; all processes run, and are linked. With copies each partition has a
 * backup. */
int var_set_up(void **state);
int var_set_up_copies(void **state);
int var_tear_down(void **state);

/* The actors of a server; those of a program that asks for variables. */
int var_spawn_server(struct net_process *p);
int var_spawn_program(struct net_process *p);

/* Start all processes of a net, and a chief with the view service. Returns the chief when
 * all are linked, and all partitions are served. */
struct net_process *var_start(struct net *net, bool backups);

/* Where the first shard of a variable lives. */
struct net_process *var_server_of(struct var_net *f, const char *name);

/* ---- Requests ---- */

enum { VAR_NEVER = -1 }; /* as a limit */

/* What a thread would wait for. */
struct var_request {
    struct mu__variable_call call;
    struct mu__shape shape;
    uint64_t ids[16];
    bool done;
};

/* For a variable on all servers of the net. */
struct var_request var_request_of(const struct net *net, const char *name,
                                  struct mu__shape shape);

/* The same to open "v". */
struct var_request var_asked(struct net_process *p, struct mu__shape shape,
                             unsigned flags, const float *initial);

/* Fill in what points into the request itself: after it was copied. */
void var_aim(struct var_request *request);

/* Let it begin; and some events happen, after which it is not done. */
void var_post(struct net_process *p, struct var_request *request, int operation,
              int64_t timeout_ms);
void var_begin(struct net_process *p, struct var_request *request, int operation,
               int events);

/* Post, run until it is done, tell the code; which must be 0. */
int var_ask(struct net_process *p, struct var_request *request, int operation,
            int64_t timeout_ms);
void var_ask_ok(struct net_process *p, struct var_request *request, int operation);

/* One that has opened a variable. */
struct var_request var_opened(struct net_process *p, const char *name,
                              struct mu__shape shape, const float *initial);

void var_assert_reads(struct net_process *p, struct var_request *request,
                      const float *expected);
void var_assert_fails(const struct var_request *r, int code, const char *message);

/* ---- Contents ---- */

static const float var_ones[5] = {1, 1, 1, 1, 1};

/* One small shard; "v" lives on server 0. */
static const struct mu__shape var_four = {MU_F32, 1, {4}, 1};

/* Five pieces and some, in three shards of two pieces each. */
static const struct mu__shape var_large = {MU_F32, 2, {1500, 1024}, 3};
enum { VAR_LARGE_COUNT = 1500 * 1024 };

/* The caller's. */
float *var_numbers(size_t count, float first);

#endif
