/* The heap of timers against a naive list: they fire by due time, then in the order in
 * which they were set; a cancelled one never, and a number finds no later timer. */
#include "runtime/kernel/system_messages.h"
#include "runtime/kernel/timers.h"
#include "sim/world/random.h"
#include "tests/support/test.h"

enum { CAPACITY = 500, STEPS = 60000, ACTORS = 4, GONE_MAX = 16 };

static struct mu__msg *message(struct mu__pool *pool, uint64_t token, uint32_t actor)
{
    struct mu__msg *msg = mu__pool_get(pool, MU__TIMER, sizeof(struct mu__timer));

    assert_non_null(msg);
    ((struct mu__timer *)(void *)msg->body)->token = token;
    msg->to.actor = actor;
    return msg;
}

static uint64_t token_of(struct mu__pool *pool, struct mu__msg *msg)
{
    uint64_t token;

    assert_non_null(msg);
    token = ((struct mu__timer *)(void *)msg->body)->token;
    mu__pool_put(pool, msg);
    return token;
}

struct fixture {
    struct mu__pool pool;
    struct mu__timers timers;
};

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);

    if (f == NULL)
        return -1;
    mu__pool_init(&f->pool);
    mu__timers_init(&f->timers, CAPACITY);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;

    mu__timers_done(&f->timers, &f->pool);
    if (f->pool.live != 0)
        return -1;
    mu__pool_done(&f->pool);
    free(f);
    return 0;
}

static uint64_t set(struct fixture *f, uint64_t due_ms, uint64_t token)
{
    uint64_t timer = mu__timers_set(&f->timers, due_ms, message(&f->pool, token, 1));

    assert_true(timer != 0);
    return timer;
}

TEST_ON(test_order, struct fixture *f, setup, teardown)
{
    assert_true(mu__timers_next_ms(&f->timers) == UINT64_MAX);
    (void)set(f, 30, 1);
    (void)set(f, 10, 2);
    (void)set(f, 10, 3);
    (void)set(f, 20, 4);
    assert_int_equal(mu__timers_next_ms(&f->timers), 10);
    assert_null(mu__timers_fire(&f->timers, 9, UINT64_MAX));
    assert_int_equal(token_of(&f->pool, mu__timers_fire(&f->timers, 25, UINT64_MAX)), 2);
    assert_int_equal(token_of(&f->pool, mu__timers_fire(&f->timers, 25, UINT64_MAX)), 3);
    assert_int_equal(token_of(&f->pool, mu__timers_fire(&f->timers, 25, UINT64_MAX)), 4);
    assert_null(mu__timers_fire(&f->timers, 25, UINT64_MAX));
    assert_int_equal(f->timers.count, 1);
}

/* What is set while timers fire waits for the next turn, though it is due. */
TEST_ON(test_order_limit, struct fixture *f, setup, teardown)
{
    uint64_t limit;

    (void)set(f, 10, 1);
    limit = f->timers.order_next;
    (void)set(f, 5, 2);
    assert_null(mu__timers_fire(&f->timers, 10, limit - 1));
    assert_null(mu__timers_fire(&f->timers, 10, limit));
    assert_int_equal(token_of(&f->pool, mu__timers_fire(&f->timers, 10, limit + 1)), 2);
    assert_int_equal(token_of(&f->pool, mu__timers_fire(&f->timers, 10, limit)), 1);
}

TEST_ON(test_cancel, struct fixture *f, setup, teardown)
{
    uint64_t a = set(f, 10, 1);
    uint64_t b;

    assert_int_equal(token_of(&f->pool, mu__timers_cancel(&f->timers, a)), 1);
    assert_null(mu__timers_cancel(&f->timers, a));
    b = set(f, 10, 2);
    assert_true(a != b);
    assert_null(mu__timers_cancel(&f->timers, a));
    assert_null(mu__timers_cancel(&f->timers, 0));
    assert_null(mu__timers_cancel(&f->timers, UINT64_MAX));
    assert_int_equal(token_of(&f->pool, mu__timers_fire(&f->timers, 10, UINT64_MAX)), 2);
    assert_null(mu__timers_cancel(&f->timers, b));
}

TEST_ON(test_full, struct fixture *f, setup, teardown)
{
    struct mu__msg *msg = message(&f->pool, 0, 1);

    for (uint64_t i = 0; i < CAPACITY; i++)
        (void)set(f, i, i);
    assert_int_equal(mu__timers_set(&f->timers, 1, msg), 0);
    assert_int_equal(token_of(&f->pool, mu__timers_fire(&f->timers, 0, UINT64_MAX)), 0);
    assert_true(mu__timers_set(&f->timers, 1, msg) != 0);
}

/* ---- A model: a list that is searched from end to end ---- */

struct entry {
    uint64_t due_ms;
    uint64_t order;
    uint64_t timer;
    uint64_t token;
    uint32_t actor;
};

struct model {
    struct entry entries[CAPACITY];
    size_t count;
    uint64_t order_next;
    uint64_t gone[GONE_MAX]; /* numbers of timers that are no more */
};

static void forget(struct model *model, size_t i)
{
    model->gone[model->order_next % GONE_MAX] = model->entries[i].timer;
    model->entries[i] = model->entries[--model->count];
}

static size_t first_of(const struct model *model)
{
    size_t first = 0;

    for (size_t i = 1; i < model->count; i++)
        if (model->entries[i].due_ms < model->entries[first].due_ms ||
            (model->entries[i].due_ms == model->entries[first].due_ms &&
             model->entries[i].order < model->entries[first].order))
            first = i;
    return first;
}

static void step_set(struct fixture *f, struct model *model, struct sim_random *random,
                     uint64_t now_ms)
{
    uint64_t due_ms = now_ms + sim_between(random, 0, 200);
    uint32_t actor = (uint32_t)sim_between(random, 1, ACTORS);
    uint64_t token = model->order_next;
    uint64_t timer;

    if (model->count == CAPACITY)
        return;
    timer = mu__timers_set(&f->timers, due_ms, message(&f->pool, token, actor));
    assert_true(timer != 0);
    model->entries[model->count++] =
        (struct entry){due_ms, model->order_next++, timer, token, actor};
}

static void step_fire(struct fixture *f, struct model *model, uint64_t now_ms)
{
    struct mu__msg *msg = mu__timers_fire(&f->timers, now_ms, UINT64_MAX);
    size_t first = first_of(model);

    if (model->count == 0 || model->entries[first].due_ms > now_ms) {
        assert_null(msg);
        return;
    }
    assert_int_equal(token_of(&f->pool, msg), model->entries[first].token);
    forget(model, first);
}

static void step_cancel(struct fixture *f, struct model *model, struct sim_random *random)
{
    size_t i;

    assert_null(mu__timers_cancel(&f->timers,
                                  model->gone[sim_between(random, 0, GONE_MAX - 1)]));
    if (model->count == 0)
        return;
    i = sim_between(random, 0, model->count - 1);
    assert_int_equal(token_of(&f->pool,
                              mu__timers_cancel(&f->timers, model->entries[i].timer)),
                     model->entries[i].token);
    forget(model, i);
}

static void step_drop(struct fixture *f, struct model *model, uint32_t actor)
{
    mu__timers_drop(&f->timers, actor, &f->pool);
    for (size_t i = model->count; i-- > 0;)
        if (model->entries[i].actor == actor)
            forget(model, i);
}

TEST_ON(test_model, struct fixture *f, setup, teardown)
{
    static struct model model;
    struct sim_random random = sim_stream(1, 4);
    uint64_t now_ms = 0;

    model = (struct model){.count = 0};
    for (int i = 0; i < STEPS; i++) {
        now_ms += sim_between(&random, 0, 3);
        if (sim_chance(&random, 45))
            step_set(f, &model, &random, now_ms);
        else if (sim_chance(&random, 70))
            step_fire(f, &model, now_ms);
        else if (sim_chance(&random, 98))
            step_cancel(f, &model, &random);
        else
            step_drop(f, &model, (uint32_t)sim_between(&random, 1, ACTORS));
        assert_int_equal(f->timers.count, model.count);
        assert_true(mu__timers_next_ms(&f->timers) ==
                    (model.count == 0 ? UINT64_MAX
                                      : model.entries[first_of(&model)].due_ms));
    }
}

TEST_PROGRAM()
