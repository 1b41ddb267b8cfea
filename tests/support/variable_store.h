/* A store of variables, and requests to it. */
#ifndef MU_TESTS_VARIABLE_STORE_H
#define MU_TESTS_VARIABLE_STORE_H

#include "actors/ps/variable_store.h"
#include "tests/support/test.h"

#include <inttypes.h>
#include <math.h>

enum { ALICE = 7, BOB = 8, CAROL = 9 }; /* nodes */

static const struct mu__store_limits small = {
    .bytes_max = 4096, .variables_max = 4, .waiting_max = 3, .transfers_node_max = 2};

static inline int set_up(void **state)
{
    *state = mu__store_new(&small, 1234);
    return *state == NULL;
}

static inline int tear_down(void **state)
{
    mu__store_free(*state);
    return 0;
}

static inline mu__pid pid(uint32_t node)
{
    return (mu__pid){node, 5};
}

/* Sixteen floats in one shard, opened by a node under a token. */
static inline struct mu__store_open open_of(const char *name, uint32_t node,
                                            uint64_t token)
{
    return (struct mu__store_open){
        .name = mu__view_str(name),
        .shape = {MU_F32, 1, {16}, 1},
        .bytes = 64,
        .requester = {pid(node), token},
    };
}

/* Opens without an answer yet. */
static inline void opens_and_waits(struct mu__variable_store *store,
                                   const struct mu__store_open *request)
{
    struct mu__store_opened opened;
    mu_error error;

    assert_int_equal(mu__store_open(store, request, &error), 0);
    assert_false(mu__store_next_opened(store, &opened));
}

/* The next answer goes to this node and token. */
static inline struct mu__store_opened answered(struct mu__variable_store *store,
                                               uint32_t node, uint64_t token)
{
    struct mu__store_opened opened = {.code = 1};

    assert_true(mu__store_next_opened(store, &opened));
    assert_int_equal(opened.requester.pid.node, node);
    assert_int_equal(opened.requester.token, token);
    return opened;
}

static inline struct mu__store_opened opens(struct mu__variable_store *store,
                                            const struct mu__store_open *request)
{
    mu_error error;

    assert_int_equal(mu__store_open(store, request, &error), 0);
    return answered(store, request->requester.pid.node, request->requester.token);
}

static inline int write_it(struct mu__variable_store *store, struct mu__store_write write,
                           mu_error *error)
{
    uint64_t version = 0;

    return mu__store_write(store, &write, error, &version);
}

static inline void write_ok(struct mu__variable_store *store,
                            struct mu__store_write write)
{
    mu_error error = {.message = ""};

    if (write_it(store, write, &error) != 0)
        fail_msg("%s", error.message);
}

static inline void zero_it(struct mu__variable_store *store, uint64_t id, uint32_t node,
                           uint64_t token)
{
    write_ok(store, (struct mu__store_write){.id = id,
                                             .operation = MU__WRITE_ZERO,
                                             .transfer = token,
                                             .writer = pid(node)});
}

/* A variable with content, zeros, made by Alice. */
static inline uint64_t make(struct mu__variable_store *store, const char *name)
{
    struct mu__store_open request = open_of(name, ALICE, 1);
    struct mu__store_opened opened = opens(store, &request);

    assert_true(opened.created);
    zero_it(store, opened.id, ALICE, 1);
    return opened.id;
}

static inline float read_first(struct mu__variable_store *store, uint64_t id)
{
    struct mu__view data;
    uint64_t version;
    mu_error error;
    float first;

    assert_int_equal(mu__store_read(store, &(struct mu__store_read){id, 0, 64}, &error,
                                    &data, &version),
                     0);
    assert_int_equal(data.size, 64);
    memcpy(&first, data.data, sizeof first);
    return first;
}

static inline struct mu__store_totals totals_of(const struct mu__variable_store *store)
{
    struct mu__store_totals totals;

    mu__store_totals(store, &totals);
    return totals;
}

static inline struct mu__store_write piece_of(uint64_t id, uint32_t node,
                                              uint64_t transfer, uint64_t offset)
{
    static const float ones[8] = {1, 1, 1, 1, 1, 1, 1, 1};

    return (struct mu__store_write){.id = id,
                                    .operation = MU__WRITE_ASSIGN,
                                    .transfer = transfer,
                                    .offset = offset,
                                    .data = {ones, sizeof ones},
                                    .writer = pid(node)};
}

static inline void remember(void *user, const struct mu__store_info *info)
{
    *(struct mu__store_info *)user = *info;
}

#endif
